"""Parts that docstrings have in common, each written once.

A line of a docstring that holds nothing but the name of a part in braces stands for that part.
"""

from __future__ import annotations

import inspect
import re
from textwrap import indent
from typing import Any, TypeVar

T = TypeVar("T")

_PARAMETERS = {
    "documents": """\
documents : Corpus, sparse matrix, integer array or DataFrame, shape (n_documents, n_words)
    The documents.""",
    "observed, held_out": """\
observed, held_out : Corpus, sparse matrix, integer array or DataFrame
    Documents in the same order, shape (n_documents, n_words) each; :func:`split_tokens` makes
    them.""",
    "exposure": """\
exposure : float or array of shape (n_documents,), optional
    Known sizes of the documents, which multiply their Poisson rates; gamma-Poisson models only.
    Default: those of the corpus, else 1.""",
    "layer": """\
layer : str, optional
    Of an AnnData: the layer of counts; by default ``X``.""",
    "covariates": """\
covariates : array of shape (n_documents, n_covariates) or DataFrame, optional
    Covariates of the documents, where the prior depends on them. Default: the columns of
    ``corpus.metadata`` that it depends on.""",
    "unseen": """\
unseen : {"raise", "drop"}, default="raise"
    What to do with words that the model's vocabulary lacks.""",
    "level": """\
level : float, default=0.95
    Probability that the interval holds the true value.""",
    "first, second": """\
first, second : str
    Names of the models.""",
    "seed": """\
random_state : None, int, RandomState, Generator or SeedSequence
    Equal seeds give equal bits, for any number of threads.""",
    "n_jobs": """\
n_jobs : int, optional
    Threads; None means all cores.""",
    "progress": """\
progress : bool, default=False
    Show a progress bar (needs tqdm).""",
}
_REFERENCES = {
    "Cemgil 2019": """\
A. T. Cemgil, M. B. Kurutmaz, S. Yıldırım, M. Barsbey and U. Şimşekli (2019). Bayesian
allocation model. arXiv:1903.04478.""",
    "Grosse 2015": """\
R. Grosse, Z. Ghahramani and R. Adams (2015). Sandwiching the marginal likelihood using
bidirectional Monte Carlo. arXiv:1511.02543.""",
    "Wallach 2009": """\
H. Wallach, I. Murray, R. Salakhutdinov and D. Mimno (2009). Evaluation methods for topic
models. ICML.""",
    "Capdevila 2018": """\
J. Capdevila, J. Cerquides, J. Torres, F. Petitjean and W. Buntine (2018). A left-to-right
algorithm for likelihood estimation in gamma-Poisson factor analysis. ECML PKDD.""",
    "Syed 2022": """\
S. Syed, A. Bouchard-Côté, G. Deligiannidis and A. Doucet (2022). Non-reversible parallel
tempering: a scalable highly parallel MCMC scheme. JRSS B 84(2).""",
}
# Errors of functions that refuse their arguments or lack a library.
_RAISES = {
    "bad level": "InvalidArgumentError, InvalidTypeError\n    If `level` is no probability.",
    "bad argument": """\
InvalidArgumentError, InvalidCountsError, InvalidTypeError
    If an argument is bad; before any work.""",
    "bad file": "FileAccessError, FileFormatError\n    If a file is missing or damaged.",
    "no such node": "InvalidArgumentError\n    If there is no such node.",
    "no such model": "InvalidArgumentError\n    If there is no such model.",
    "no pandas": "MissingDependencyError\n    If pandas is not installed.",
    "no ArviZ": "MissingDependencyError\n    If ArviZ is not installed.",
}
_PARTS = {
    **_PARAMETERS,
    **_REFERENCES,
    **{f"raises: {name}": f"Raises\n------\n{text}" for name, text in _RAISES.items()},
    "running": "\n".join(_PARAMETERS[name] for name in ("seed", "n_jobs", "progress")),
    "ready made": """\
**options
    `concentration`, `rate` and `prior` of :class:`AllocationModel`.

Returns
-------
AllocationModel
    The model.

Raises
------
InvalidArgumentError, InvalidTypeError
    If `axes` do not name as many different nodes, or a size or an option is bad.""",
}


def filled(text: str) -> str:
    """A docstring with its parts."""
    return re.sub(
        r"^([ \t]*)\{([A-Za-z][\w ,:]*)\}$",
        lambda found: indent(_PARTS[found[2]], found[1]),
        text,
        flags=re.MULTILINE,
    )


def shared_docs(thing: T) -> T:
    """Put the parts into the docstring of a function, or of a class and its methods."""
    members: list[Any] = [thing, *vars(thing).values()] if isinstance(thing, type) else [thing]
    for member in members:
        function = getattr(member, "__func__", member)
        if (inspect.isfunction(function) or function is thing) and function.__doc__:
            function.__doc__ = filled(function.__doc__)
    return thing
