"""Comparison of models by their likelihood of the same documents."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import replace
from functools import reduce
from typing import Any

import numpy as np

from polyabayes._support import checks
from polyabayes._support.docs import shared_docs
from polyabayes._support.random import RandomState, draw_seed
from polyabayes._support.warnings import quiet, warn
from polyabayes.data.corpus import Corpus, of_layer
from polyabayes.exceptions import (
    ImpossibleDocumentWarning,
    Interrupted,
    InvalidArgumentError,
    PolyabayesError,
    RefusedModelWarning,
    WorkerError,
    argument,
)
from polyabayes.likelihood import foreign
from polyabayes.likelihood.comparison import Comparison, is_scored
from polyabayes.likelihood.differences import Contender, score_differences
from polyabayes.likelihood.foreign import Scorable, as_scorable, exposed, read_documents
from polyabayes.likelihood.methods import check_settings
from polyabayes.likelihood.priors import GivenPriors, covariates_by_model
from polyabayes.likelihood.reliability import groups_of, shared_caveats, warn_of_few_groups
from polyabayes.likelihood.result import LogLikelihood
from polyabayes.likelihood.scoring import EVENTS, conditions_on_length, log_likelihood

# Default share of the error for new documents that the estimates may add to a difference.
_ERROR_SHARE = 0.1
# Arguments of log_likelihood that leave the effort to the comparison.
_OF_DIFFERENCES = frozenset(("unseen", "n_jobs", "executor", "progress", "budget"))


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
    error_share: float | None = _ERROR_SHARE,
    groups: Any = None,
    times: Any = None,
    **scoring: Any,
) -> Comparison:
    """Compare models by the probability of the same event on the same documents.

    Differences are paired. Their errors are for new documents (or groups), by a jackknife. The
    effort goes to the differences: all documents get short runs under all models, with the same
    random numbers, and longer runs of samples of documents tell what the differences miss, until
    each is known to a tenth of its error for new documents.

    Parameters
    ----------
    models : mapping of str to model
        The models by name.
    documents : Corpus, sparse matrix, integer array or DataFrame, shape (n_documents, n_words)
        Held-out documents: no model was trained on them.
    method : str, default="auto"
        As for :func:`log_likelihood`.
    event : {"sequence", "counts"}, default="sequence"
        The event of all models. Differences do not depend on it; perplexity needs the sequence.
    given_length : bool, optional
        Whether to condition on the length of the documents. Default: True if any model, such as
        LDA, can do nothing else.
    {layer}
    exposure : float or array of shape (n_documents,), optional
        Known sizes of the documents, for gamma-Poisson models; no effect on LDA. Default: the
        exposure of the corpus, else 1.
    covariates : mapping of str to array or DataFrame, array or DataFrame, optional
        Covariates of the documents, a row for each, for all models whose prior depends on
        covariates; a mapping gives them by name of the model. Default: columns of
        ``corpus.metadata``, for models that know their names.
    random_state : None, int, RandomState, Generator or SeedSequence
        Seed, the same for all models.
    error_share : float or None, default=0.1
        Error of estimation of each difference to the leading model, as a share of its error for new
        documents. Values of single documents then serve for sums only. With None, a named
        `method`, or a sample size, each document is scored for itself, as by
        :func:`log_likelihood`.
    groups : str or array of shape (n_documents,), optional
        Groups of dependent documents, for example by author, donor or thread: a column of the
        corpus's metadata, or labels. Errors and probabilities are then for new groups.
    times : str or array of shape (n_documents,), optional
        Times of documents, if neighbours in time are dependent: a column of the metadata, numbers,
        or dates as 2008-01-31. They are cut into 20 blocks with about equally many documents,
        which are the groups.
    **scoring
        Further arguments of :func:`log_likelihood`, as `executor`, `unseen`, `missing_words`. With
        ``unseen="drop"``, all models score the tokens of the words that all models know. Given the
        lengths, each topic is renormalised over these words. The table shows the share of tokens
        left out.

    Returns
    -------
    Comparison
        The models by decreasing likelihood, with paired differences. A document that a model
        scores ``-inf`` or NaN is left out of that model's differences, with a warning; the model
        comes after models that score more documents.

        A model that cannot be scored (not fitted, other words) is left out and listed in
        ``refused``, with a warning, as long as two others are left.

    Raises
    ------
    PolyabayesError
        If fewer than two models can be scored; the message names one that cannot, and why.
    Interrupted
        A KeyboardInterrupt whose ``partial`` is a dict of the results so far; the last of them is
        incomplete.

    References
    ----------
    B. Efron and C. Stein (1981). The jackknife estimate of variance. Annals of Statistics 9(3).

    P. Westfall and S. Young (1993). Resampling-based multiple testing. Wiley.

    Examples
    --------
    >>> found = pb.compare(models, [[3, 1, 1, 0], [0, 0, 2, 4], [2, 2, 0, 0]])
    >>> list(found.results)
    ['0.1', '1.0']
    """
    checks.models_by_name(models)
    refused: dict[str, PolyabayesError] = {}
    known: dict[str, Scorable] = {}
    for name, model in models.items():
        try:
            known[str(name)] = as_scorable("a model", model)
        except PolyabayesError as error:
            refused[str(name)] = error
    if given_length is None:
        given_length = any(model._conditions_on_length for model in known.values())
    for model in known.values():
        conditions_on_length(model, given_length)
    rows = covariates_by_model(known, models, covariates)
    drawn = draw_seed(random_state)
    # A number is used as the seed of log_likelihood; from anything else one seed is drawn.
    seed = random_state if isinstance(random_state, int) else drawn
    event = checks.choice("event", event, EVENTS)
    budget = scoring.get("budget")
    settings = check_settings(method=method, event=event, given_length=given_length, budget=budget)
    corpus = read_documents(known.values(), of_layer(documents, layer))
    labels = groups_of(corpus, groups, times)
    warn_of_few_groups(labels)
    policy = scoring.pop("missing_words", None)
    known = {name: _named_by(corpus, model, policy) for name, model in known.items()}
    known, documents, n_unseen = _known_to_all(known, corpus, scoring.get("unseen", "raise"))
    # Each model may need exposures; a comparison of only LDA models refuses them.
    by_use = sorted(known.values(), key=lambda model: model._conditions_on_length)
    for model in by_use if exposure is None else by_use[:1]:
        sized = exposed(model, documents, exposure)
        documents = documents if exposure is None else sized
    results: dict[str, LogLikelihood] = {}
    common = {"event": event, "given_length": given_length, "random_state": seed, **scoring}
    errors: dict[str, float] = {}
    is_plain = method == "auto" and _OF_DIFFERENCES.issuperset(scoring)
    if error_share is not None and is_plain:
        share = checks.share("error_share", error_share)
        contenders: dict[str, Contender] = {}
        for name, model in known.items():
            try:
                priors = GivenPriors(None, None, rows.get(name))
                contenders[name] = Contender(model, documents, settings, drawn, priors, scoring)
            except PolyabayesError as error:
                refused[name] = error
        with quiet():
            errors = score_differences(contenders, share, labels, drawn, results, refused)
    elif error_share not in (None, _ERROR_SHARE):
        other = next((x for x in scoring if x not in _OF_DIFFERENCES), "method")
        raise InvalidArgumentError(
            f"{argument('error_share')} chooses the effort, and so does {argument(other)}: omit one"
        )
    else:
        _score_each(known, documents, method, rows, common, results, refused)
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
    return Comparison(_best_first(results), event, given_length, told, labels, errors)


def _best_first(results: Mapping[str, LogLikelihood]) -> dict[str, LogLikelihood]:
    """Sort models by number of documents scored, then by total on the documents common to all."""
    scored = {name: is_scored(result) for name, result in results.items()}
    if not scored:
        return {}
    shared = reduce(np.logical_and, scored.values())

    def merit(name: str) -> tuple[int, float]:
        return int(scored[name].sum()), float(results[name].values[shared].sum())

    return {name: results[name] for name in sorted(results, key=merit, reverse=True)}


def _score_each(
    known: Mapping[str, Scorable],
    documents: Corpus,
    method: str,
    rows: Mapping[str, Any],
    common: Mapping[str, Any],
    results: dict[str, LogLikelihood],
    refused: dict[str, PolyabayesError],
) -> None:
    """Score every document for itself; puts results, and errors of models, into the mappings."""
    for name, model in known.items():
        try:
            with quiet():
                results[name] = log_likelihood(
                    model, documents, method, covariates=rows.get(name), **common
                )
        except Interrupted as interruption:
            results[name] = interruption.partial
            raise Interrupted(f"while scoring {name!r}: {interruption}", results) from None
        except WorkerError:
            raise
        except PolyabayesError as error:
            refused[name] = error


def _check_enough(results: Mapping[str, Any], refused: Mapping[str, PolyabayesError]) -> None:
    if not refused or len(results) > 1:
        return
    name, error = next(iter(refused.items()))
    if not results and len({str(error) for error in refused.values()}) == 1:
        raise error
    raise type(error)(f"models[{name!r}]: {error}") from error


def _named_by(corpus: Corpus, model: Any, policy: str | None) -> Scorable:
    """Give a model without a vocabulary the words of the documents, whose columns it shares.

    Words that another model lacks can then be dropped for all. `policy` is that of words that the
    documents lack.
    """
    nameless = getattr(model, "vocabulary_", corpus) is None
    if nameless and getattr(model, "n_features_in_", None) == corpus.n_words:
        model = copy(model)
        model.vocabulary_ = corpus.vocabulary
    return foreign.of_measured_words(model, corpus, "documents", policy, "drop")[0]


def _known_to_all(
    known: Mapping[str, Scorable], corpus: Corpus, unseen: str
) -> tuple[dict[str, Scorable], Corpus, int]:
    """Restrict models and documents to the words that all models know.

    All models must score the same tokens. Without the restriction, a model with a small vocabulary
    would win, since others spread their probability over more words.
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
    vocabulary, restricted = (getattr(model, x, None) for x in ("vocabulary_", "_of_words"))
    if vocabulary is None or restricted is None or len(vocabulary) == len(words):
        return model
    return restricted(np.array([word in words for word in vocabulary]))
