"""Models compared by the probability of the same documents."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import replace
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polyabayes._support import checks
from polyabayes._support.docs import shared_docs
from polyabayes._support.random import RandomState, draw_seed
from polyabayes._support.warnings import quiet, warn
from polyabayes.data.corpus import Corpus, of_layer
from polyabayes.data.grouping import warn_of_few_groups
from polyabayes.exceptions import (
    ImpossibleDocumentWarning,
    Interrupted,
    InvalidArgumentError,
    InvalidTypeError,
    PolyabayesError,
    RefusedModelWarning,
    WorkerError,
)
from polyabayes.likelihood.comparison import Comparison, is_scored
from polyabayes.likelihood.foreign import Scorable, as_scorable, exposed, read_documents
from polyabayes.likelihood.priors import covariates_by_model
from polyabayes.likelihood.reliability import shared_caveats
from polyabayes.likelihood.result import LogLikelihood
from polyabayes.likelihood.scoring import conditions_on_length, log_likelihood

# Any error of a total will do: the least effort that corrected values take.
_ANY_ERROR = 1e100

# Rounds in which models are scored better, and how far below what is allowed they aim.
_MOST_ROUNDS, _AIM = 3, 0.9


@shared_docs
def compare(
    models: Mapping[str, Any],
    documents: Any,
    *,
    method: str = "auto",
    event: str = "sequence",
    given_length: bool | None = None,
    layer: str | None = None,
    exposure: Any = None,
    covariates: Any = None,
    random_state: RandomState = None,
    error_share: float | None = None,
    groups: Any = None,
    times: Any = None,
    **scoring: Any,
) -> Comparison:
    """Compare models by the probability of the same event on the same documents.

    Parameters
    ----------
    models : mapping of str to model
        The models by name.
    documents : Corpus, sparse matrix, integer array or DataFrame, shape (n_documents, n_words)
        Documents that no model was trained on.
    method : str, default="auto"
        As for :func:`log_likelihood`.
    event : {"sequence", "counts"}, default="sequence"
        Asked of all models alike. Differences between models do not depend on it; perplexity
        has its usual meaning for the sequence.
    given_length : bool, optional
        By default, condition on the length of the documents if any model can only do that.
    {layer}
    exposure : float or array of shape (n_documents,), optional
        Known sizes of the documents, for the gamma-Poisson models among them; that of LDA does not
        depend on it. Default: those of the corpus, else 1.
    covariates : mapping of str to array or DataFrame, array or DataFrame, optional
        Covariates of the documents, a row for each. A mapping gives them by the name of the model;
        else all models whose prior depends on covariates take the same. Default: columns of
        ``corpus.metadata``, for models that know their names.
    random_state : None, int, RandomState, Generator or SeedSequence
        One seed serves all models.
    error_share : float, optional
        Score only until the error of estimating each difference to the best model is at most this
        share of its standard error for new documents, say 0.2: which is all that more effort
        could take from the latter. The values then serve for sums, as with `total_std_error`.
    groups : str or array of shape (n_documents,), optional
        Documents that are not independent, as of one author, donor or thread: a column of the
        corpus's metadata, or labels. Errors and probabilities then hold for new groups.
    times : str or array of shape (n_documents,), optional
        Documents that are near in time are not independent: a column of the metadata, or numbers,
        or dates as 2008-01-31, which are cut into 20 blocks of about as many documents. These are
        the groups.
    **scoring
        Further arguments of :func:`log_likelihood`: `executor`, `n_jobs`, `unseen` and others. With
        ``unseen="drop"`` all models score the tokens of the words that all of them know, each
        restricted to these: word probabilities of topics are divided by their sums, where the
        lengths are given. The table tells the share of the tokens that is left out.

    Returns
    -------
    Comparison
        The models by decreasing likelihood, with paired differences. A document that some model
        cannot produce (``-inf``), or has no number for (NaN), does not count in that model's
        differences; the model comes after those that score more documents, and a warning says so.

        A model that cannot be scored at all (not fitted, other words) is left out, named in
        ``refused`` and by a warning, as long as two others are left.

    Raises
    ------
    PolyabayesError
        If less than two models can be scored; it names one that cannot, and says why.
    Interrupted
        A KeyboardInterrupt whose ``partial`` is a dict of the results so far, the last of them
        incomplete.

    Examples
    --------
    >>> found = pb.compare(models, [[3, 1, 1, 0], [0, 0, 2, 4], [2, 2, 0, 0]])
    >>> list(found.results)
    ['0.1', '1.0']
    """
    if not isinstance(models, Mapping) or not models:
        raise InvalidTypeError("models must be a mapping from names to at least one model")
    refused: dict[str, PolyabayesError] = {}
    known: dict[str, Scorable] = {}
    for name, model in models.items():
        try:
            known[str(name)] = as_scorable(f"models[{name!r}]", model)
        except PolyabayesError as error:
            refused[str(name)] = error
    if given_length is None:
        given_length = any(model._conditions_on_length for model in known.values())
    for model in known.values():
        conditions_on_length(model, given_length)
    rows = covariates_by_model(known, models, covariates)
    # A number is the seed that log_likelihood would be given; anything else is drawn from once.
    seed = random_state if isinstance(random_state, int) else draw_seed(random_state)
    corpus = read_documents(known.values(), of_layer(documents, layer))
    labels = corpus._groups_of(groups, times)
    warn_of_few_groups(labels)
    known = {name: _named_by(corpus, model) for name, model in known.items()}
    known, documents, n_unseen = _known_to_all(known, corpus, scoring.get("unseen", "raise"))
    if exposure is None:
        for model in known.values():
            # It warns where one needs exposures.
            exposed(model, documents, None)
    else:
        # A comparison of LDA alone is told that it takes none.
        last = sorted(known.values(), key=lambda model: model._conditions_on_length)[:1]
        for model in last:
            documents = exposed(model, documents, exposure)
    results: dict[str, LogLikelihood] = {}
    common: dict[str, Any] = {
        "event": event,
        "given_length": given_length,
        "random_state": seed,
        **scoring,
    }

    def score(targets: Mapping[str, dict[str, Any]]) -> None:
        for name, of_total in targets.items():
            try:
                with quiet():
                    results[name] = log_likelihood(
                        known[name],
                        documents,
                        method,
                        covariates=rows.get(name),
                        **common,
                        **of_total,
                    )
            except Interrupted as interruption:
                results[name] = interruption.partial
                raise Interrupted(f"while scoring {name!r}: {interruption}", results) from None
            except WorkerError:
                raise
            except PolyabayesError as error:
                refused[name] = error

    if error_share is None:
        score({name: {} for name in known})
    else:
        share = checks.share("error_share", error_share)
        score({name: {"total_std_error": _ANY_ERROR} for name in known})
        for _ in range(_MOST_ROUNDS):
            wanted = _targets(_best_first(results), share, labels)
            if not wanted:
                break
            score({name: {"total_std_error": error} for name, error in wanted.items()})
    _check_enough(results, refused)
    for name, why in refused.items():
        warn(f"{name} is not compared: {why}", RefusedModelWarning)
    for name, result in results.items():
        results[name] = replace(result, n_unseen_tokens=n_unseen) if n_unseen else result
        left_out = np.flatnonzero(~is_scored(result))
        if len(left_out):
            warn(
                f"{name}: {len(left_out):,} documents without a finite score, document "
                f"{left_out[0]} first, are left out of its differences to other models",
                ImpossibleDocumentWarning,
            )
    for category, message in shared_caveats(results):
        warn(message, category)
    told = {name: str(why) for name, why in refused.items()}
    return Comparison(_best_first(results), event, given_length, told, labels)


def _best_first(results: Mapping[str, LogLikelihood]) -> dict[str, LogLikelihood]:
    """Those that score most of the documents, then by the total of what all of them score."""
    scored = {name: is_scored(result) for name, result in results.items()}
    if not scored:
        return {}
    shared = reduce(np.logical_and, scored.values())

    def merit(name: str) -> tuple[int, float]:
        return int(scored[name].sum()), float(results[name].values[shared].sum())

    return {name: results[name] for name in sorted(results, key=merit, reverse=True)}


def _targets(
    results: dict[str, LogLikelihood], share: float, groups: NDArray[np.int64] | None
) -> dict[str, float]:
    """Errors of totals to reach, of those models that are not known well enough."""
    found: dict[str, float] = {}
    if not results:
        return found
    comparison = Comparison(results, "", given_length=True, refused={}, groups=groups)
    best = comparison.best
    for name, result in results.items():
        std_error = comparison.difference(best, name)[1]
        allowed = share * std_error * float(result.n_tokens.sum())
        error = np.hypot(results[best].total_std_error, result.total_std_error)
        if name == best or not allowed > 0 or error <= allowed:
            continue
        for one in (best, name):
            target = _AIM * allowed / np.sqrt(2)
            if results[one].total_std_error > target:
                found[one] = min(found.get(one, np.inf), float(target))
    return found


def _check_enough(results: Mapping[str, Any], refused: Mapping[str, PolyabayesError]) -> None:
    """Refuse a comparison that models without a score leave with less than two."""
    if not refused or len(results) > 1:
        return
    name, error = next(iter(refused.items()))
    if not results and len({str(error) for error in refused.values()}) == 1:
        raise error
    raise type(error)(f"models[{name!r}]: {error}") from error


def _named_by(corpus: Corpus, model: Scorable) -> Scorable:
    """The model with the words of the documents, whose columns are its own where it has no words.

    Words that another model lacks can then be dropped for all.
    """
    nameless = getattr(model, "vocabulary_", corpus) is None
    if not nameless or getattr(model, "n_features_in_", None) != corpus.n_words:
        return model
    named: Any = copy(model)
    named.vocabulary_ = corpus.vocabulary
    return named  # type: ignore[no-any-return]


def _known_to_all(
    known: Mapping[str, Scorable], corpus: Corpus, unseen: str
) -> tuple[dict[str, Scorable], Corpus, int]:
    """Models and documents of the words that all models know: all must score the same tokens.

    A model of more words would share its probability with what it is never asked for, and one of
    three words would win; so each is the model of the common words that it makes.
    """
    vocabularies = [getattr(model, "vocabulary_", None) for model in known.values()]
    words = [set(vocabulary.tolist()) for vocabulary in vocabularies if vocabulary is not None]
    if unseen != "drop" or not words or corpus.vocabulary is None:
        return dict(known), corpus, 0
    common = reduce(set.__and__, words)
    if not common:
        raise InvalidArgumentError("the models have no word in common")
    models = {name: _over_words(model, common) for name, model in known.items()}
    kept = [word for word in corpus.vocabulary if word in common]
    return models, *corpus.aligned_to(kept, unseen)


def _over_words(model: Scorable, words: set[str]) -> Scorable:
    """The model of these of its words."""
    vocabulary, restricted = (getattr(model, x, None) for x in ("vocabulary_", "_of_words"))
    if vocabulary is None or restricted is None or len(vocabulary) == len(words):
        return model
    found: Scorable = restricted(np.array([word in words for word in vocabulary]))
    return found
