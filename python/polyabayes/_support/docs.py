"""Shared parts of docstrings, each written once.

A line of a docstring with only the name of a part in braces is replaced by that part.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from textwrap import indent
from typing import Any, TypeVar

T = TypeVar("T")

_PARAMETERS = {
    "documents": """\
documents : Corpus, sparse matrix, integer array or DataFrame, shape (n_documents, n_words)
    The documents.""",
    "X": """\
X : Corpus, sparse matrix, integer array or DataFrame, shape (n_documents, n_words)
    The documents.""",
    "y": """\
y : ignored
    Present for scikit-learn.""",
    "observed, held_out": """\
observed, held_out : Corpus, sparse matrix, integer array or DataFrame
    Documents in the same order, shape (n_documents, n_words) each; :func:`split_tokens` makes
    them.""",
    "exposure": """\
exposure : float or array of shape (n_documents,), optional
    Known sizes of the documents, which multiply their Poisson rates; gamma-Poisson models only.
    Default: the exposure of the corpus, else 1 (refused if training had exposures).""",
    "layer": """\
layer : str, optional
    Layer of an AnnData that holds the counts; default ``X``.""",
    "covariates": """\
covariates : array of shape (n_documents, n_covariates) or DataFrame, optional
    Covariates of the documents, if the prior depends on them. Default: the columns of
    ``corpus.metadata`` that the prior depends on.""",
    "unseen": """\
unseen : {"raise", "drop"}, default="raise"
    Whether words outside the model's vocabulary are refused or dropped.""",
    "missing words": """\
missing_words : {"zero", "not measured", "raise"}, optional
    What words of the model are that the documents do not have: words with count 0; words that were
    not counted, so that the model is that of the other words (rates stay, probabilities are
    divided by their sum); or an error. Default: "not measured" for an AnnData and files of cells,
    else "zero"; both with a warning, unless the words are gathered from the documents, as in
    texts.""",
    "level": """\
level : float, default=0.95
    Probability that the interval holds the true value.""",
    "first, second": """\
first, second : str
    Names of the models.""",
    "seed": """\
random_state : None, int, RandomState, Generator or SeedSequence
    The same seed gives the same result, bit for bit, for any number of threads.""",
    "seed of transform": """\
random_state : None, int, RandomState, Generator or SeedSequence
    Seed of ``transform`` and ``score``.""",
    "n_jobs": """\
n_jobs : int, optional
    Threads; None means all cores.""",
    "progress": """\
progress : bool, default=False
    Show a progress bar (needs tqdm).""",
    "n_components": """\
n_components : int, default=10
    Number of topics K.""",
    "burn_in, thin": """\
burn_in : int, optional
    Sweeps left out of the averages; default: half of `max_iter`.
thin : int, default=5
    Interval in sweeps between samples that are averaged.""",
    "checkpoint": """\
checkpoint : path-like, optional
    Folder for the state of the run. If it holds the state of a run with the same corpus, model
    and schedule, ``fit`` resumes it, and the result is the same as without a break, bit for
    bit. The state of another run is refused.
checkpoint_every : int or str, default=100
    Sweeps between two checkpoints, or a time as ``"30s"``, ``"10min"`` or ``"2h"``.""",
    "topic_concentration": """\
topic_concentration : "learn", float or array of shape (n_components,), optional
    Gibbs sampling: makes topics bursty. Every document draws its own version of topic k from
    Dirichlet(s_k phi_k), so that words that it has used become more probable. ``"learn"`` learns
    one s_k per topic; numbers are fixed values, ``inf`` being an ordinary topic. Default: ordinary
    topics. Documents must be in memory, with at most 65,535 tokens each.""",
    "formula": """\
formula : str, optional
    Formula of the covariates on which document priors depend, over the columns of
    ``corpus.metadata`` or of the `covariates` of ``fit``, such as ``"~ party + bs(day, df=5)"``
    (needs formulaic).""",
    "vocabulary": """\
vocabulary : sequence of str of length n_words, optional
    The words.""",
    "sizes of a corpus": """\
n_documents : int, default=1000
    Number of documents.
n_words, n_topics : int, default=500, 10
    Size of the vocabulary and number of topics, unless `topic_word` gives them.""",
    "ax": """\
ax : matplotlib Axes, optional
    Axes to plot on; None makes a figure.""",
    "topics model": """\
model : LatentDirichletAllocation, PoissonFactorAnalysis or foreign model
    A fitted model.""",
    "as of fit": """\
X, weights, covariates
    As for :meth:`fit`.""",
    "as of transform": """\
layer, exposure, covariates : optional
    As for :meth:`transform`.""",
}
# Attributes of estimators.
_ATTRIBUTES = {
    "components_std_": """\
components_std_ : ndarray of shape (n_components, n_words)
    Posterior standard deviation of each entry of phi, over the draws of this chain; only after
    Gibbs sampling, and not saved to files.""",
    "coefficient draws": """\
coefficient_draws_ : ndarray of shape (n_draws, n_components, n_columns)
    Draws of lambda at every sweep after the burn-in, without thinning.
covariate_names_ : ndarray of str, shape (n_columns,)
    Columns of the design, the intercept first.""",
    "concentrations": """\
topic_concentration_ : ndarray of shape (n_components,)
    s, in tokens: exp of the posterior mean of ln s if learned; ``inf`` for ordinary topics.
topic_concentration_draws_ : ndarray of shape (n_draws, n_components)
    Only if learned: draws of s at every sweep after the burn-in, without thinning.""",
    "words and seed": """\
n_features_in_ : int
    Size of the vocabulary.
vocabulary_ : ndarray of str or None
    The words, if the training data had names.
seed_ : int
    Seed from the random state, also for ``transform`` and ``score``.""",
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
    "Zhou 2013": """\
M. Zhou and L. Carin (2013). Negative binomial process count and mixture modeling. IEEE TPAMI
37(2).""",
    "Blei 2003": """\
D. M. Blei, A. Y. Ng and M. I. Jordan (2003). Latent Dirichlet allocation. JMLR 3.""",
    "Doyle 2009": """\
G. Doyle and C. Elkan (2009). Accounting for burstiness in topic models. ICML.""",
    "Griffiths 2004": """\
T. L. Griffiths and M. Steyvers (2004). Finding scientific topics. PNAS 101.""",
    "Syed 2022": """\
S. Syed, A. Bouchard-Côté, G. Deligiannidis and A. Doucet (2022). Non-reversible parallel
tempering: a scalable highly parallel MCMC scheme. JRSS B 84(2).""",
}
# Errors of functions that refuse their arguments or lack a library.
_RAISES = {
    "bad level": "InvalidArgumentError, InvalidTypeError\n    If `level` is not between 0 and 1.",
    "bad argument": """\
InvalidArgumentError, InvalidCountsError, InvalidTypeError
    If an argument is bad; before any work.""",
    "no such node": "InvalidArgumentError\n    If there is no such node.",
    "no such model": "InvalidArgumentError\n    If there is no such model.",
    "bad documents": """\
InvalidArgumentError, InvalidCountsError, InvalidTypeError, NotFittedError
    If the documents do not fit the model, or the model has no topics.""",
    "bad rows": """\
InvalidArgumentError, InvalidTypeError, NotFittedError
    If the rows do not have the items or their levels.""",
    "bad search": """\
InvalidArgumentError, InvalidTypeError, NotFittedError, ScoreError
    If an argument is bad, or the search is not fitted, has no score or cannot predict.""",
    "no tokens": """\
InvalidArgumentError, InvalidCountsError, InvalidTypeError, NotFittedError
    If the documents do not fit the model, or hold no tokens, or the model has no topics.""",
    "bad parameters": """\
InvalidArgumentError, InvalidTypeError
    If parameters are out of range, or their shapes do not fit.""",
    "bad plot": """\
InvalidArgumentError, InvalidTypeError, NotFittedError
    If an argument is bad, or what is to be drawn is not fitted.
MissingDependencyError
    If Matplotlib is not installed.""",
    "no Matplotlib": "MissingDependencyError\n    If Matplotlib is not installed.",
    "no pandas": "MissingDependencyError\n    If pandas is not installed.",
    "no ArviZ": "MissingDependencyError\n    If ArviZ is not installed.",
}
_PARTS = {
    **_PARAMETERS,
    **_ATTRIBUTES,
    **_REFERENCES,
    **_RAISES,
    **{f"raises: {name}": f"Raises\n------\n{text}" for name, text in _RAISES.items()},
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
        # scikit-learn wraps methods, and each layer has a docstring of its own.
        while function is thing or inspect.isfunction(inspect.unwrap(function)):
            if function.__doc__:
                function.__doc__ = filled(function.__doc__)
            function = getattr(function, "__wrapped__", None)
    return thing


def fill_room(names: Mapping[str, Any]) -> None:
    """Put the parts into the docstrings of all public names of a package."""
    for name in names["__all__"]:
        shared_docs(names[name])
