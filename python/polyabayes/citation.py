"""How to cite the package, and what a paper says of a model and a score."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from typing import Any

from polyabayes import __version__
from polyabayes._support.output.tables import measured
from polyabayes.exceptions import InvalidTypeError
from polyabayes.likelihood.foreign import as_scorable
from polyabayes.likelihood.result import LogLikelihood
from polyabayes.models import DocumentModel, LatentDirichletAllocation
from polyabayes.models.fitted_topics import fitted_model

__all__ = ["Citation", "cite"]

_BIBTEX = f"""@software{{polyabayes,
  author = {{{{The polyabayes developers}}}},
  title = {{polyabayes: how probable count data are under a model}},
  version = {{{__version__}}},
}}"""


@dataclass(frozen=True)
class Citation:
    """BibTeX of the package, and a paragraph about a model and its scores.

    Attributes
    ----------
    bibtex : str
        An entry for the package in this version.
    methods : str
        Sentences for a methods section, with the numbers of the model and the result; empty where
        neither was given.

    Examples
    --------
    >>> pb.cite().methods
    ''
    """

    bibtex: str
    methods: str

    def __str__(self) -> str:
        return f"{self.methods}\n\n{self.bibtex}".lstrip()


def cite(model: Any = None, result: LogLikelihood | None = None) -> Citation:
    """Make the citation of the package, and a methods paragraph for this model and result.

    Parameters
    ----------
    model : LatentDirichletAllocation, LatentClassAnalysis, SizeChoice or other, optional
        A fitted model, a foreign model, or a choice of a size.
    result : LogLikelihood, optional
        What :func:`log_likelihood` returned for it.

    Returns
    -------
    Citation

    Raises
    ------
    InvalidTypeError, NotFittedError
        If `model` or `result` is something else, or the model is not fitted.

    Examples
    --------
    >>> lda = pb.LatentDirichletAllocation.from_parameters(
    ...     doc_topic_prior=0.5, topic_word=[[0.9, 0.1], [0.1, 0.9]]
    ... )
    >>> result = pb.log_likelihood(lda, [[2, 1], [0, 3]])
    >>> print(pb.cite(lda, result).methods)
    We used latent Dirichlet allocation with 2 topics over 2 words, with parameters taken from
    elsewhere. The 2 documents (6 tokens) have a log-likelihood of -0.6453 nats per token (exact), a
    total of -3.87 nats. Computed with polyabayes 0.1.0.
    """
    if hasattr(model, "_methods_text"):
        parts = [model._methods_text()]
    else:
        parts = [] if model is None else [_about_model(as_scorable("model", model))]
    if result is not None:
        if not isinstance(result, LogLikelihood):
            raise InvalidTypeError(f"result must be of log_likelihood, got {result!r:.100}")
        parts.append(_about_result(result))
    if parts:
        parts.append(f"Computed with polyabayes {__version__}.")
    return Citation(_BIBTEX, textwrap.fill(" ".join(parts), 96, break_on_hyphens=False))


def _about_model(model: Any) -> str:
    if isinstance(model, DocumentModel):
        model._check_fitted()
        name = f"a {model.prior} model"
        if model.decoder == "softmax":
            name += " that decodes weights by a softmax"
    else:
        is_lda = isinstance(fitted_model(model), LatentDirichletAllocation)
        name = "latent Dirichlet allocation" if is_lda else "Poisson factor analysis"
    n_topics, n_words = model.components_.shape
    text = f"We used {name} with {n_topics:,} topics over {n_words:,} words, "
    if hasattr(model, "covariate_names_"):
        on = model.formula or ", ".join(model.covariate_names_[1:])
        text += f"their prior a regression on covariates ({on}), "
    if not model.n_iter_:
        return f"{text}with parameters taken from elsewhere."
    parameters = model.get_params(deep=False)
    how = "Gibbs sampling" if model._samples() else parameters.get("fit_method", "optimisation")
    unit = "sweeps" if model._samples() else "iterations"
    return (
        f"{text}trained by {how if how != 'em' else 'expectation maximisation'} "
        f"({model.n_iter_:,} {unit}, seed {model.seed_})."
    )


def _about_result(result: LogLikelihood) -> str:
    n_tokens = int(result.n_tokens.sum())
    methods = ", ".join(sorted({str(method) for method in result.methods}))
    is_exact = methods == "exact"
    per_token, total = f"{result.nats_per_token:.4f}", f"{result.total:.2f}"
    if not is_exact:
        per_token = measured(result.nats_per_token, result.nats_per_token_std_error)
        total = measured(result.total, result.total_std_error)
    return (
        f"The {len(result.values):,} documents ({n_tokens:,} tokens) have a log-likelihood of "
        f"{per_token} nats per token ({methods}), a total of {total} nats"
        f"{'' if is_exact else ' (standard errors of the estimates)'}."
    )
