"""Models compared by the probability of the same documents."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass, field, replace
from functools import reduce
from html import escape
from itertools import permutations
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from polyabayes._support import checks
from polyabayes._support.docs import shared_docs
from polyabayes._support.jackknife import paired_difference, totals_of
from polyabayes._support.random import RandomState, draw_seed
from polyabayes._support.results import Result
from polyabayes._support.tables import Column, text_table
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
from polyabayes.likelihood.foreign import Scorable, as_scorable, exposed, read_documents
from polyabayes.likelihood.multiplicity import p_as_good
from polyabayes.likelihood.priors import covariates_by_model
from polyabayes.likelihood.result import LogLikelihood, shared_doubts
from polyabayes.likelihood.scoring import conditions_on_length, log_likelihood

if TYPE_CHECKING:
    import pandas as pd


@shared_docs
@dataclass(frozen=True, repr=False, eq=False)
class Comparison(Result):
    """Models compared on the same documents, best first.

    Attributes
    ----------
    results : dict of str to LogLikelihood
        Every model's result: first those that score most of the documents, then by decreasing
        total of the documents that all models score.
    event : {"sequence", "counts"}
        The event that all models were asked about.
    given_length : bool
        Whether all are conditional on the documents' lengths.
    refused : dict of str to str
        Models that could not be scored, and why; they are in no other table.
    groups : ndarray of shape (n_documents,) or None
        The group of each document, where errors are to hold for new groups.

    Examples
    --------
    >>> found = pb.compare(models, [[3, 1, 1, 0], [0, 0, 2, 4], [2, 2, 0, 0]])
    >>> found.best
    '0.1'
    """

    results: dict[str, LogLikelihood]
    event: str
    given_length: bool
    refused: dict[str, str] = field(default_factory=dict)
    groups: NDArray[np.int64] | None = None

    @property
    def best(self) -> str:
        """Name of the model with the highest total."""
        return next(iter(self.results))

    @property
    def n_left_out(self) -> dict[str, int]:
        """Documents by model that it scored ``-inf`` or NaN, and that no difference counts."""
        return {name: int((~_scored(result)).sum()) for name, result in self.results.items()}

    def difference(self, first: str, second: str) -> tuple[float, float]:
        """Nats per token that `first` is ahead of `second`, and the standard error.

        On the documents to which both give a positive probability: the total difference over the
        total length. The error is the jackknife of that ratio, which leaves out a document at a
        time, or a group of them: it holds for new documents from the same source, or new groups,
        and includes the error of the estimates.

        Parameters
        ----------
        {first, second}

        Returns
        -------
        difference, std_error : float
            In nats per token.

        {raises: no such model}

        References
        ----------
        B. Efron and C. Stein (1981). The jackknife estimate of variance. Annals of Statistics 9(3).

        Examples
        --------
        >>> found = pb.compare(models, [[3, 1, 1, 0], [0, 0, 2, 4], [2, 2, 0, 0]])
        >>> difference, std_error = found.difference("0.1", "1.0")
        >>> difference > 0
        True
        """
        mean, std_error, _ = self._paired(first, second)
        return mean, std_error

    def interval(self, first: str, second: str, level: float = 0.95) -> tuple[float, float]:
        """Confidence interval of :meth:`difference`, by Student's t.

        Its degrees of freedom are one less than the effective number of documents, the squared
        total length over the sum of the squared lengths: that is the number of documents where
        their lengths are equal, and fewer where some long ones decide. NaN for one document.

        Parameters
        ----------
        {first, second}
        level : float, default=0.95
            Probability that the interval holds the difference on new documents.

        Returns
        -------
        lower, upper : float
            Bounds in nats per token.

        Raises
        ------
        InvalidArgumentError, InvalidTypeError
            If there is no such model, or `level` is no probability.

        Examples
        --------
        >>> found = pb.compare(models, [[3, 1, 1, 0], [0, 0, 2, 4], [2, 2, 0, 0]])
        >>> low, high = found.interval("0.1", "1.0")
        >>> low < found.difference("0.1", "1.0")[0] < high
        True
        """
        checks.share("level", level)
        mean, std_error, freedom = self._paired(first, second)
        half_width = float(stats.t.ppf(0.5 + level / 2, freedom)) * std_error if std_error else 0.0
        return mean - half_width, mean + half_width

    def _paired(self, first: str, second: str) -> tuple[float, float, float]:
        """The difference, its standard error, and the degrees of freedom behind that."""
        one, other = self._result(first), self._result(second)
        shared = _scored(one) & _scored(other)
        n_tokens = one.n_tokens[shared].astype(np.float64)
        total = n_tokens.sum()
        if first == second or not total:
            return 0.0, 0.0, 1.0
        ahead = one.values[shared] - other.values[shared]
        groups = None if self.groups is None else self.groups[shared]
        found = paired_difference(ahead, n_tokens, groups)
        # Predicted values lack their errors, and share that of what they were predicted by.
        first_error, second_error = (
            0.0 if x.correction_std_error is None else x.total_std_error for x in (one, other)
        )
        std_error = np.hypot(found.std_error, np.hypot(first_error, second_error) / total)
        return found.mean, float(std_error), found.degrees_of_freedom

    def to_frame(self) -> pd.DataFrame:
        """One row a model: nats per token, perplexity, and how far behind the best it is.

        ``std_error`` is the error of the estimate on these documents;
        ``behind_best_std_error`` that of the paired difference for new documents;
        ``p_better`` the probability that it beats the best on those, by Student's t as in
        :meth:`interval`, for each model by itself. The best was chosen by the same documents, so
        that among several equal models some ``p_better`` is often small. ``p_as_good`` is valid for
        all models together: the p-value of "no other model is better on new documents", adjusted
        for all pairs by the largest t statistic (Westfall and Young 1993); where all models are
        equal, one of them has less than 0.05 in 5 % of comparisons. ``n_left_out`` counts the
        documents that the model scored ``-inf`` or NaN, which the others leave out.

        A model that cannot produce a document which the best can is infinitely far behind, and both
        probabilities are 0; :meth:`difference` has its distance on the other documents.

        Returns
        -------
        pandas.DataFrame
            Indexed by model, best first.

        {raises: no pandas}

        References
        ----------
        P. Westfall and S. Young (1993). Resampling-based multiple testing. Wiley.

        Examples
        --------
        >>> found = pb.compare(models, [[3, 1, 1, 0], [0, 0, 2, 4], [2, 2, 0, 0]])
        >>> found.to_frame().index.tolist()
        ['0.1', '1.0']
        """
        return super().to_frame().set_index("model")

    def _rows(self) -> list[dict[str, Any]]:
        rows = []
        n_left_out = self.n_left_out
        best = self.results[self.best].values
        together = self._p_as_good()
        for name, result in self.results.items():
            behind, std_error, freedom = self._paired(self.best, name)
            if (np.isneginf(result.values) & np.isfinite(best)).any():
                behind, std_error = np.inf, 0.0
            rows.append(
                {
                    "model": name,
                    "nats_per_token": result.nats_per_token,
                    "std_error": result.nats_per_token_std_error,
                    "perplexity": result.perplexity,
                    "behind_best": behind,
                    "behind_best_std_error": std_error,
                    "p_better": float(stats.t.sf(_statistic(behind, std_error), freedom)),
                    "p_as_good": together.get(name, 0.0),
                    "n_left_out": n_left_out[name],
                }
            )
        return rows

    def _p_as_good(self) -> dict[str, float]:
        """p-values of "no other model is better", of those that lack no document of the best."""
        scored = _scored(self.results[self.best])
        names = [
            name for name, x in self.results.items() if not np.isneginf(x.values[scored]).any()
        ]
        statistics = np.zeros((len(names), len(names)))
        for (i, one), (j, other) in permutations(enumerate(names), 2):
            ahead, std_error, freedom = self._paired(one, other)
            # The standard normal value of the same probability.
            t = stats.t.sf(_statistic(ahead, std_error), freedom)
            statistics[i, j] = stats.norm.isf(t)
        shared = np.logical_and.reduce([_scored(self.results[name]) for name in names])
        values = np.stack([self.results[name].values[shared] for name in names])
        lengths = self.results[self.best].n_tokens[shared].astype(np.float64)
        if self.groups is not None:
            *rows, lengths = totals_of(self.groups[shared], *values, lengths)
            values = np.stack(rows)
        return dict(zip(names, p_as_good(statistics, values, lengths).tolist(), strict=True))

    @property
    def _n_groups(self) -> int:
        return 0 if self.groups is None else int(self.groups.max()) + 1

    def _result(self, name: str) -> LogLikelihood:
        if name in self.refused:
            raise InvalidArgumentError(f"{name!r} could not be scored: {self.refused[name]}")
        if name not in self.results:
            known = ", ".join(repr(known) for known in self.results)
            raise InvalidArgumentError(f"no model {name!r} in this comparison; there are {known}")
        return self.results[name]

    def _repr_html_(self) -> str:
        return super()._repr_html_() + "".join(f"<p>{escape(note)}</p>" for note in self._notes())

    def _notes(self) -> list[str]:
        """What is to be said below the table."""
        best = self.results[self.best]
        left_out, notes = best.n_unseen_tokens, list(_NOTES)
        if self.groups is not None:
            notes.append(f"errors and probabilities are for new groups, by {self._n_groups} groups")
        if left_out:
            share = left_out / (left_out + best.n_tokens.sum())
            notes.append(
                f"left out: {left_out:,} tokens ({share:.1%}) of words that some model does not "
                "know; every model is restricted to the words that all know"
            )
        return [*notes, *(f"{name}: {why}" for name, why in self.refused.items())]

    def __str__(self) -> str:
        found = self._columns()
        # The best is compared with itself in the first row.
        behind = [f"{x:.4f}" for x in found["behind_best"][1:]]
        errors = [_shown(x) for x in found["behind_best_std_error"][1:]]
        better = [_probability(x) for x in found["p_better"][1:]]
        table = text_table(
            [
                Column("model", found["model"], is_left=True),
                Column("nats/token", [f"{x:.4f}" for x in found["nats_per_token"]]),
                Column("+- estimate", [_shown(x) for x in found["std_error"]]),
                Column("perplexity", [_finite(x) for x in found["perplexity"]]),
                Column("behind best", ["best", *behind]),
                Column("+- new groups" if self._n_groups else "+- new docs", ["", *errors]),
                Column("P(better)", ["", *better]),
                Column("p(as good)", [_probability(x) for x in found["p_as_good"]]),
            ]
        )
        return "\n".join([table, *self._notes()])

    def __repr__(self) -> str:
        given = ", given the length" if self.given_length else ""
        return f"<Comparison of {len(self.results)} models on {self.event}{given}>\n{self}"


def _finite(perplexity: float) -> str:
    """A perplexity; nothing for counts, which have none."""
    return "" if np.isnan(perplexity) else f"{perplexity:,.1f}"


def _shown(std_error: float) -> str:
    """A standard error by four digits; 0 only where the value is exact."""
    return "<0.0001" if 0 < std_error < _LEAST_ERROR else f"{std_error:.4f}" if std_error else "0"


def _probability(p: float) -> str:
    return "<0.001" if p < _LEAST_SHOWN else f"{p:.3f}"


def _statistic(ahead: float, std_error: float) -> float:
    """A difference over its standard error.

    Twice the same model is a tie; a difference without an error is a certainty.
    """
    return ahead / std_error if std_error else np.inf * ahead if ahead else 0.0


_NOTES = (
    "P(better): chance of being ahead of the best on new documents, each model by itself",
    "p(as good): p-value of no other model being better, valid for all models together",
)

# Smaller errors are not told from 0 by four digits.
_LEAST_ERROR = 0.00005

# Smaller probabilities rest on tails that a few hundred documents say nothing of.
_LEAST_SHOWN = 0.001

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
        left_out = np.flatnonzero(~_scored(result))
        if len(left_out):
            warn(
                f"{name}: {len(left_out):,} documents without a finite score, document "
                f"{left_out[0]} first, are left out of its differences to other models",
                ImpossibleDocumentWarning,
            )
    for category, message in shared_doubts(results):
        warn(message, category)
    told = {name: str(why) for name, why in refused.items()}
    return Comparison(_best_first(results), event, given_length, told, labels)


def _best_first(results: Mapping[str, LogLikelihood]) -> dict[str, LogLikelihood]:
    """Those that score most of the documents, then by the total of what all of them score."""
    scored = {name: _scored(result) for name, result in results.items()}
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


def _scored(result: LogLikelihood) -> NDArray[np.bool_]:
    """Which documents the model gives a positive probability."""
    finite: NDArray[np.bool_] = np.isfinite(result.values)
    return finite


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
