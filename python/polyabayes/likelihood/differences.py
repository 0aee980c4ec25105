"""Differences of models on the same documents, to the error that a comparison needs.

Every document gets short annealing runs under each model, with the same random numbers. What
longer runs add to the *difference* to the leading model is estimated from ever smaller samples of
documents, the same for both (multilevel Monte Carlo, see ``totals``): much of what short runs are
low by is shared, and cancels. The total of the leading model rests on the same runs.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from polyabayes._support.arrays import Floats, Integers
from polyabayes._support.jackknife import paired_difference
from polyabayes._support.output.progress import progress_bar
from polyabayes.data.corpus import Corpus
from polyabayes.exceptions import Interrupted, PolyabayesError, WorkerError
from polyabayes.likelihood.blocks import BlockScores, ScoringPlan, last_of
from polyabayes.likelihood.foreign import Scorable
from polyabayes.likelihood.methods import Settings
from polyabayes.likelihood.priors import GivenPriors
from polyabayes.likelihood.result import LogLikelihood
from polyabayes.likelihood.streams import documents_of
from polyabayes.likelihood.totals import CorrectedScores, Population, enough_for, score_to_target
from polyabayes.scale.executors import check_executor, threads_of_task

# Any error of a total is enough: the least effort, which finds the leading model.
_ANY_ERROR = 1e100
# Rounds of better differences, and the share of the allowed error that they aim at.
_MOST_ROUNDS, _AIM = 3, 0.9
# The bias of a difference is what the last step shows beyond its noise, and at least a tenth of
# what cumulants add to means: it was less at all levels of three pairs of models. A pilot tells
# little about the samples that differences need, which therefore grow.
_EFFORT = {"share_of_bias": 0.7, "first_aim": 4.0, "one_sided": -1.0, "of_variances": 1 / 20}


class Contender:
    """Scores of a model by number of temperatures; each document has each number at most once."""

    def __init__(
        self,
        model: Scorable,
        documents: Corpus,
        settings: Settings,
        seed: int,
        priors: GivenPriors,
        scoring: Mapping[str, Any],
    ) -> None:
        unseen = scoring.get("unseen", "raise")
        self.corpus = documents_of(model, documents, unseen, None, priors, is_total=True)
        self.settings, self._executor = settings, check_executor(scoring.get("executor"))
        self._progress = scoring.get("progress", False)
        n_threads = threads_of_task(self._executor, scoring.get("n_jobs"))
        self._plan = ScoringPlan(model, settings, seed, n_threads)
        self._kept: dict[int, BlockScores] = {}

    def score(self, rows: Integers, *, n_temperatures: int) -> BlockScores:
        """Scores of some documents."""
        kept = self._kept.setdefault(n_temperatures, BlockScores.none(self.corpus.n_documents))
        missing, interruption = rows[kept.methods[rows] == ""], None
        if len(missing):
            effort: dict[str, Any] = {"rows": missing, "n_temperatures": n_temperatures}
            with progress_bar(self._progress, len(missing), "document") as update:
                found = self.corpus.score(self._plan, self._executor, update, **effort)
            interruption = found.interruption
            kept = self._kept[n_temperatures] = kept.put(missing, found)
        return kept.taken(rows)._replace(interruption=interruption)

    def longest(self) -> BlockScores:
        """Scores of the longest runs of every document."""
        return last_of([self._kept[size] for size in sorted(self._kept)])

    def result(self, scores: BlockScores, shared_std_error: float) -> LogLikelihood:
        """A result of these scores, whose sum has a further error; raises what interrupted them."""
        is_exact = bool((scores.methods == "exact").all())
        return self.corpus.result(scores, self.settings, None if is_exact else shared_std_error)


class _Pair:
    """The leading model against another one: their difference in every document."""

    def __init__(self, leader: Contender, other: Contender, seed: int) -> None:
        self._leader, self._other = leader, other
        both = np.column_stack([leader.corpus.groups, other.corpus.groups])
        groups = np.unique(both, axis=0, return_inverse=True)[1].ravel()
        self.population = Population(groups, leader.corpus.n_tokens, leader.corpus.uniforms(seed))

    def score(self, rows: Integers, *, n_temperatures: int) -> BlockScores:
        """Differences; minus infinity where one of the two has no finite value."""
        one = self._leader.score(rows, n_temperatures=n_temperatures)
        if one.interruption is not None:
            return one
        other = self._other.score(rows, n_temperatures=n_temperatures)
        is_finite = np.isfinite(one.values) & np.isfinite(other.values)
        with np.errstate(invalid="ignore"):
            means, values = np.subtract(_moments(one), _moments(other))
        errors = np.where(is_finite, np.hypot(one.std_errors, other.std_errors), 0.0)
        # Levels add half the squared error to ln of a mean; cumulants need nothing.
        values = np.where(is_finite, values - errors**2 / 2, -np.inf)
        return other._replace(
            values=values,
            std_errors=errors,
            shortfalls=np.where(is_finite, values - means, 0.0),
            variances=one.variances + other.variances,
        )

    def error(self, found: CorrectedScores) -> float:
        """Standard error of the sum of the differences, in nats."""
        population = self.population
        own = population.copies * found.scores.std_errors[population.first]
        return float(np.hypot(found.shared_std_error, np.linalg.norm(own)))

    def to_share(self, share: float, labels: Integers | None) -> CorrectedScores:
        """Score until the error is at most a share of that for new documents, or groups."""
        n_tokens, target = self._leader.corpus.n_tokens.astype(np.float64), _ANY_ERROR
        for _ in range(_MOST_ROUNDS):
            found = score_to_target(self.score, self.population, target, effort=_EFFORT)
            if found.scores.interruption is not None:
                break
            kept = np.isfinite(found.scores.values)
            of_kept = None if labels is None else labels[kept]
            new = paired_difference(found.scores.values[kept], n_tokens[kept], of_kept).std_error
            allowed = share * new * float(n_tokens[kept].sum())
            # The first round has no target: that it is good enough may be luck.
            if not allowed > 0 or (target < _ANY_ERROR and self.error(found) <= allowed):
                break
            target = _AIM * min(allowed, target)
        return found

    def values(self, leader: LogLikelihood, found: CorrectedScores) -> BlockScores:
        """Values of the other model: those of the leading one, less the differences."""
        own = self._other.longest()._replace(interruption=found.scores.interruption)
        # Exact values stay as they are; so do those of documents that only one model can produce.
        is_known = (own.methods == "exact") | ~np.isfinite(found.scores.values)
        with np.errstate(invalid="ignore"):
            values = np.where(is_known, own.values, leader.values - found.scores.values)
        errors = np.hypot(leader.std_errors, found.scores.std_errors)
        return own._replace(
            values=values,
            std_errors=np.where(is_known, own.std_errors, errors),
            n_effs=found.scores.n_effs,
        )


def _moments(scores: BlockScores) -> Floats:
    """Means of ln of the runs, and half their variance above: ln p if ln of a run is normal."""
    means = scores.values - scores.shortfalls
    return np.array([means, means + scores.variances / 2])


def score_differences(
    contenders: Mapping[str, Contender],
    share: float,
    labels: Integers | None,
    seed: int,
    results: dict[str, LogLikelihood],
    refused: dict[str, PolyabayesError],
) -> dict[str, float]:
    """Score the leading model by its total, and the others by their differences to it.

    Puts results, and the errors of models that cannot be scored, into the given mappings; returns
    the error in nats of each difference to the leading model.
    """
    known: dict[int, Floats] = {}

    def total(name: str, nats_per_token: float) -> LogLikelihood:
        one, corpus = contenders[name], contenders[name].corpus
        population = Population(corpus.groups, corpus.n_tokens, corpus.uniforms(seed))
        target = nats_per_token * max(float(corpus.n_tokens.sum()), 1.0)
        scores, error, _ = score_to_target(one.score, population, target, known)
        return _kept(results, name, one, scores, error)

    for name in contenders:
        try:
            total(name, _ANY_ERROR)
        except (WorkerError, Interrupted):
            raise
        except PolyabayesError as error:
            refused[name] = error
    if not results:
        return {}

    def merit(name: str) -> tuple[int, float]:
        finite = results[name].values[np.isfinite(results[name].values)]
        return len(finite), float(finite.sum())

    leading = max(results, key=merit)
    leader, errors = results[leading], {leading: 0.0}
    pairs: dict[str, tuple[_Pair, CorrectedScores]] = {}
    for name in [name for name in results if name != leading]:
        pair = _Pair(contenders[leading], contenders[name], seed)
        found = pair.to_share(share, labels)
        pairs[name], errors[name] = (pair, found), pair.error(found)
        for n_temperatures, own in found.probabilities.items():
            known[n_temperatures] = np.maximum(known.get(n_temperatures, 0.0), own)
        if found.scores.interruption is not None:
            break
    else:
        leader = total(leading, enough_for(contenders[leading].corpus.n_documents))
    for name, (pair, found) in pairs.items():
        shared = float(np.hypot(leader.correction_std_error or 0.0, found.shared_std_error))
        _kept(results, name, contenders[name], pair.values(leader, found), shared)
    return errors


def _kept(
    results: dict[str, LogLikelihood],
    name: str,
    one: Contender,
    scores: BlockScores,
    shared_std_error: float,
) -> LogLikelihood:
    """Put the result of a model among the others; an interruption takes all of them along."""
    try:
        results[name] = one.result(scores, shared_std_error)
    except Interrupted as interruption:
        results[name] = interruption.partial
        raise Interrupted(f"while scoring {name!r}: {interruption}", results) from None
    return results[name]
