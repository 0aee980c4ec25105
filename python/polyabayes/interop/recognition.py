"""Models of other packages, recognised by the module of their class; no package is imported."""

from __future__ import annotations

from typing import Any

from polyabayes.exceptions import InvalidTypeError
from polyabayes.interop.gensim import from_gensim
from polyabayes.interop.pycistopic import from_pycistopic
from polyabayes.interop.schpf import from_schpf
from polyabayes.interop.sklearn import from_sklearn
from polyabayes.interop.tomotopy import from_tomotopy
from polyabayes.likelihood.foreign import Scorable

_CONVERTERS = {
    "sklearn": from_sklearn,
    "gensim": from_gensim,
    "tomotopy": from_tomotopy,
    "pycisTopic": from_pycistopic,
    "schpf": from_schpf,
}


def convert(model: Any) -> Scorable | None:
    """A model of ours for one of another package; None where the package is not known.

    Classes derived from those of the packages count as theirs.

    Raises
    ------
    InvalidTypeError
        If the model is of a known package, but of a kind that has another prior.
    """
    for base in type(model).__mro__:
        package = base.__module__.partition(".")[0]
        if (package, base.__name__) == ("scvi", "AmortizedLDA"):
            raise InvalidTypeError(
                "an AmortizedLDA of scvi has a logistic-normal prior, under which this would score "
                "another model: to score its topics under a Dirichlet prior of your own, use "
                "LatentDirichletAllocation.from_parameters(doc_topic_prior=..., "
                "topic_word=model.get_feature_by_topic().T.to_numpy())"
            )
        converter = _CONVERTERS.get(package)
        if converter is not None:
            found: Scorable = converter(model)
            return found
    return None
