"""Choice by held-out likelihood: fits, their storage, and the race of sizes."""

import hashlib
import logging
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import Executor
from itertools import islice, product
from typing import Any, NamedTuple

import numpy as np

from polyabayes._support.arrays import Integers
from polyabayes._support.jackknife import Difference
from polyabayes._support.output.tables import measured
from polyabayes._support.storage.state_folder import StateFolder
from polyabayes.data.corpus import Corpus
from polyabayes.exceptions import Interrupted
from polyabayes.models.fitting import fingerprint
from polyabayes.scale.executors import Workers, check_executor, sharing
from polyabayes.sizes.choice import grid
from polyabayes.sizes.choice.curve import LEAST_SIZES, Curve
from polyabayes.sizes.choice.fits import (
    ARRAYS,
    FoldFit,
    fit_and_score,
    frequent_words,
    is_fit,
    mean_figures,
    stability,
)
from polyabayes.sizes.choice.held_out_scores import n_scored
from polyabayes.sizes.choice.race import Race, chance, interval
from polyabayes.sizes.choice.result import SizeChoice, gains_of, warn_at_edge
from polyabayes.sizes.folds import with_one_thread

_LOG = logging.getLogger(__name__)

# Values without a source are those with which ``python -m benches.choice topics`` made its record.

# Topics of tokens have 16 bits.
MOST_SIZE = 2**16 - 1
# The grid is refined around sizes that are the best with more than this probability.
_CLOSE = 0.16
# Neighbours within this ratio are near enough: a tenth of the size either way.
_RATIO = 1.21
# The same next to the best size and the smallest size that is as good with more than this
# probability, which may be far below the best size on a plateau.
_FINE_RATIO = 1.1
_POSSIBLE = 0.01
# One fit may end in a poor mode: neighbours of the leader are dropped only after several fits.
_FOLDS_OF_NEIGHBOURS = 3
# Gaps within this ratio are left to the smooth curve, where there is no bend.
_WIDE_RATIO = 1.5
# The size that is tried for a tolerance loses this share of it, so that it is within it when tried.
_AIM = 0.9
# Share of the tolerance below which a difference, with its error, does not matter.
_EQUAL = 0.2
# Bursty topics are named where words repeat this many times as often as expected, or more.
# benches/choice/bursts.py: 4 to 7 times on AP; 0.9 to 1.1 on planted LDA, 1.6 to 1.9 at s = 20.
_OFTEN = 1.1

# Topics that double the time of a fit, about.
_DOUBLING_SIZE = 128


class Limits(NamedTuple):
    """Limits of a race: seconds, acceptable loss per token, and largest size."""

    max_time: float | None
    tolerance: float | None
    max_size: int

    def most_size(self, corpus: Corpus) -> int:
        """The largest size to look at: as many topics as documents."""
        return min(self.max_size, corpus.n_tokens, corpus.n_documents)


class Plan(NamedTuple):
    """Inputs shared by all fits."""

    model: Any
    corpus: Corpus
    groups: Integers | None
    folds: Integers
    n_folds: int
    seed: int

    def scored(self) -> Integers:
        """The fold of each document that is scored, -1 for the others: a random part of a fold."""
        order = np.random.default_rng([self.seed % 2**63, 1]).permutation(len(self.folds))
        scored = np.full(len(self.folds), -1)
        for fold in range(self.n_folds):
            mine = order[self.folds[order] == fold]
            scored[mine[: n_scored(self.corpus[mine])]] = fold
        return scored

    def fit(self, size: int, fold: int) -> FoldFit:
        """The fit of a size without a fold."""
        key = np.random.SeedSequence([self.seed % 2**63, size, fold])
        seed = int(key.generate_state(1, np.uint64)[0])
        train, scored = self.corpus[self.folds != fold], self.corpus[self.scored() == fold]
        words = frequent_words(self.corpus)
        return fit_and_score(self.model, train, scored, words, size, fold, seed)

    def claimed(self, folder: StateFolder) -> StateFolder:
        """The folder, for fits of this plan; it is refused if a choice cannot be resumed there."""
        left_out = ("n_components", "n_jobs", "progress", "random_state")
        parameters = self.model.get_params(deep=False)
        folds = hashlib.sha256(self.folds.astype(np.int64).tobytes()).hexdigest()[:16]
        identity = {
            "model": type(self.model).__name__,
            "parameters": {n: repr(v) for n, v in parameters.items() if n not in left_out},
            "data": fingerprint(self.corpus),
            "n_folds": self.n_folds,
            "folds": folds,
            "random_state": self.seed,
        }
        folder.claim("choice.safetensors", "choice", identity)
        return folder


def _file(size: int, fold: int) -> str:
    return f"size-{size}-fold-{fold}.safetensors"


class Chooser:
    """The race of sizes: fold by fold, then further sizes."""

    def __init__(
        self,
        plan: Plan,
        limits: Limits,
        given: list[int] | None,
        executor: Executor | None,
        folder: StateFolder | None,
        update: Callable[..., None] | None,
        work: Mapping[int, int],
    ) -> None:
        self._plan, self._limits, self._given, self._folder = plan, limits, given, folder
        self._executor = check_executor(executor)
        self._workers: Workers | None = None
        self._update, self._work = update, work
        self._queued: list[tuple[int, int]] = []
        self.race = Race(plan.scored(), plan.corpus._lengths(), plan.groups)
        self.dropped: set[int] = set()
        self._end = np.inf if limits.max_time is None else time.monotonic() + limits.max_time

    def run(self) -> SizeChoice:
        """Run until the answer is known, or no further fit is foretold to end in time."""
        if self._executor is None:
            return self._race()
        plan = self._plan._replace(model=with_one_thread(self._plan.model))
        with sharing(self._executor, plan) as self._workers:
            return self._race()

    def _race(self) -> SizeChoice:
        wanted = self._given or grid.coarse(self._limits.most_size(self._plan.corpus))
        try:
            while wanted or self._finish():
                self._fit_all([(size, 0) for size in wanted])
                self._drop()
                wanted = self._further()
        except KeyboardInterrupt:
            partial = self._result(ended=False) if self.race.fits else None
            raise Interrupted(f"{self.race.n_fits} fits are done", partial) from None
        except _Spent:
            return self._result(ended=False)
        result = self._result(ended=True)
        warn_at_edge(result)
        return result

    def _finish(self) -> bool:
        """Run further fits of sizes on which the answer depends; False if there are none."""
        any_run = False
        while jobs := self._next_folds():
            self._fit_all(jobs)
            self._drop()
            any_run = True
        return any_run

    def _next_folds(self) -> list[tuple[int, int]]:
        """The next two folds of open sizes, or one if nothing bends; else folds of a new size."""
        curve, jobs = self._curve(), []
        for size in self._open():
            folds = (fold for fold in range(self._plan.n_folds) if fold not in self.race.fits[size])
            jobs += [(size, fold) for fold in islice(folds, 2 if curve.elbows else 1)]
        new = product(self._on_curve(), range(self.race.n_folds(curve.best)))
        return jobs or list(new)

    def _on_curve(self) -> list[int]:
        """The size at which a smooth curve reaches the tolerance."""
        curve = self._curve()
        if self._given or curve.smooth is None:
            return []
        least, aim = (curve.smooth.smallest(curve.best, x * curve.tolerance) for x in (1.0, _AIM))
        least = int(_FINE_RATIO * least)
        wanted = min(aim, least)
        return [wanted] if curve.near > least and wanted not in self.race.fits else []

    def _open(self) -> list[int]:
        """Sizes whose remaining folds may change the answer; of given sizes, all that are kept.

        Without a bend, sizes whose losses are uncertain or of one fold, and the best one.

        Of sizes whose differences to the best size do not matter, only the smallest counts; once
        no other is open, some folds are enough. The size below the recommended one gets as many,
        since its first fit may have been poor.
        """
        kept, curve = self._kept(), self._curve()
        if self._given:
            return kept
        if not curve.elbows:
            wanted = curve.uncertain.union(x for x in curve.close if self.race.n_folds(x) < 2)
            return sorted({curve.best, *wanted}) if wanted else []
        # A smaller size within the tolerance may be the answer.
        margin = self._limits.tolerance or 0.0
        equal = self._equal(curve)
        wanted = {curve.best, curve.recommended, min(equal), *([curve.near] if margin else [])}
        for size in set(kept).difference(equal):
            if size > curve.best:
                may_be = self.race.may_gain(size, curve.best, _EQUAL * curve.tolerance) > _CLOSE
            else:
                to_stay = self.race.chance_to_stay(size, curve.best, margin)
                may_be = _POSSIBLE < to_stay < (1 - _POSSIBLE if margin else 1.0)
            wanted.update([size] if may_be else [])
        below = [size for size in kept if size < curve.recommended]
        if below and self.race.n_folds(below[-1]) < _FOLDS_OF_NEIGHBOURS:
            wanted.add(below[-1])
        n_folds = min(self.race.n_folds(size) for size in wanted)
        is_decided = wanted.issubset(equal) and n_folds >= _FOLDS_OF_NEIGHBOURS
        return [] if is_decided else sorted(wanted.intersection(kept))

    def _equal(self, curve: Curve) -> list[int]:
        """The best size, and kept sizes whose differences to it do not matter."""
        loss = _EQUAL * curve.tolerance
        return [size for size in self._kept() if self.race.are_equal(size, curve.best, loss)]

    def _drop(self) -> None:
        """Drop the sizes that are clearly behind."""
        kept = self._kept()
        leader, curve = self.race.best(kept), self._curve()
        near = {curve.recommended, leader}
        for size in kept:
            n_folds = self.race.n_folds(size)
            patient = _is_near(size, near, kept) and n_folds < _FOLDS_OF_NEIGHBOURS
            # A smaller size within the tolerance may be the answer.
            margin = curve.tolerance if size < leader else 0.0
            if not patient and self.race.is_hopeless(size, leader, margin):
                self.dropped.add(size)

    def _fit_all(self, jobs: list[tuple[int, int]]) -> None:
        """Train sizes without folds, unless stored."""
        missing, self._queued = [], jobs
        for job in jobs:
            fit = self._stored(*job)
            if fit is None:
                missing.append(job)
            else:
                self._take(fit)
        for fit in self._made(missing):
            if self._folder is not None:
                header = {"size": fit.size, "fold": fit.fold, "seconds": fit.seconds}
                arrays = {name: getattr(fit, name) for name in ARRAYS}
                file = _file(fit.size, fit.fold)
                self._folder.keep(file, header, arrays, f"the fit of size {fit.size}")
            self._take(fit)
        if any(fold not in self.race.fits.get(size, ()) for size, fold in missing):
            raise _Spent

    def _is_late(self, size: int) -> bool:
        """Whether a fit that begins now is foretold to end too late: by those of the nearest size.

        A fit of more topics takes at most proportionally longer.
        """
        if not self.race.fits or self._end == np.inf:
            return False
        near = min(self.race.fits, key=lambda tried: abs(tried - size))
        seconds = max(fit.seconds for fit in self.race.fits[near].values())
        return time.monotonic() + seconds * max(1.0, size / near) > self._end

    def _stored(self, size: int, fold: int) -> FoldFit | None:
        """A stored fit, if it exists and is complete."""
        file = _file(size, fold)
        if self._folder is None or (found := self._folder.read(file)) is None:
            return None
        header, arrays = found
        is_same = (header.get("size"), header.get("fold")) == (size, fold)
        is_same = is_same and isinstance(header.get("seconds"), float)
        n_scored = int(np.count_nonzero(self.race.folds == fold))
        if is_same and is_fit(arrays, size, n_scored):
            return FoldFit(size, fold, seconds=header["seconds"], **arrays)
        self._folder.damaged(f"{self._folder.path / file} is of another fit")
        return None

    def _made(self, jobs: list[tuple[int, int]]) -> Iterator[FoldFit]:
        """Fits as they finish, here or on workers."""
        if self._workers is None:
            yield from (self._plan.fit(*job) for job in jobs if not self._is_late(job[0]))
            return
        jobs = [job for job in jobs if not self._is_late(job[0])]

        def describe(number: int) -> str:
            size, fold = jobs[number]
            return f"the fit of {size} topics without fold {fold}"

        for _, fit in self._workers.run(Plan.fit, jobs, describe):
            yield fit
            if time.monotonic() > self._end:
                return

    def _take(self, fit: FoldFit) -> None:
        self.race.add(fit)
        _LOG.info("size %s without fold %s: fitted in %.1f s", fit.size, fit.fold, fit.seconds)
        self._queued = [job for job in self._queued if job != (fit.size, fit.fold)]
        if self._update is not None:
            done = sum(len(fits) * _relative_cost(size) for size, fits in self.race.fits.items())
            text = f"{self.race.n_fits} fits, best so far: {self.race.best(self._kept())}"
            self._update(done, text, done + self._left())

    def _left(self) -> float:
        """Relative cost of the fits that are still expected, or are queued."""
        left = {size: n - len(self.race.fits.get(size, ())) for size, n in self._work.items()}
        open_sizes = [size for size in left if left[size] > 0 and size not in self.dropped]
        expected = sum(left[size] * _relative_cost(size) for size in open_sizes)
        return max(expected, sum(_relative_cost(size) for size, _ in self._queued))

    def _wider(self) -> list[int]:
        """Sizes beyond both ends that may be better."""
        curve, tried = self._curve(), sorted(self.race.fits)
        close = [size for size, chance in self._chances().items() if chance > _CLOSE]
        edges = close if curve.rises else [size for size in close if size < tried[-1]]
        return grid.wider(tried, edges, 1, self._limits.most_size(self._plan.corpus))

    def _further(self) -> list[int]:
        """Sizes beyond and between those tried that may be better."""
        if self._given:
            return []
        if found := self._wider():
            return found
        tried, curve = sorted(self.race.fits), self._curve()
        found, bend = [], curve.possible_bend
        if bend is not None:
            found += grid.finer(tried, bend, bend, _RATIO)
        if not curve.elbows:
            if curve.is_coarse and curve.smooth is None:
                found += grid.finer(tried, 0, curve.near, _WIDE_RATIO)
            if not found and curve.smooth is None and len(curve.close) < LEAST_SIZES:
                found += grid.finer(tried, 0, curve.close[0], _FINE_RATIO)
            if found or curve.smooth is not None or self._next_folds():
                return sorted(set(found))
        if self._limits.tolerance is None:
            chances = self._chances() | dict.fromkeys(self._equal(curve), 1.0)
            found += _finer(tried, chances, curve.best, self._may_gain)
        elif curve.is_coarse:
            found += grid.finer(tried, 0, curve.near, _FINE_RATIO)
        return sorted(set(found) - set(tried))

    def _chances(self) -> dict[int, float]:
        """Probability of each kept size of being as good as the best."""
        kept = self._kept()
        best = self.race.best(kept)
        return {size: self.race.chance_to_stay(size, best) for size in kept}

    def _may_gain(self, low: int, high: int) -> bool:
        """Whether a size between two neighbours may be better than the best size by what matters.

        Scores are taken to be concave in ln size: lines through neighbours on either side are upper
        bounds between the two.
        """
        curve = self._curve()
        tried, middle = sorted(self.race.fits), np.sqrt(low * high)
        bounds = []
        for near, step in ((low, -1), (high, 1)):
            place = tried.index(near) + step
            if 0 <= place < len(tried):
                far = tried[place]
                gain = curve.behind[far].mean - curve.behind[near].mean
                reach = np.log(middle / near) / np.log(near / far)
                bounds.append(gain * reach - curve.behind[near].mean)
        error = self.race.difference(low, high).std_error
        return not min(bounds, default=np.inf) + error <= _EQUAL * curve.tolerance

    def _kept(self) -> list[int]:
        """Sizes that are not dropped."""
        return sorted(size for size in self.race.fits if size not in self.dropped)

    def _curve(self) -> Curve:
        return Curve.of(self.race, self._kept(), self._limits.tolerance)

    def _result(self, *, ended: bool) -> SizeChoice:
        """The choice from the fits so far; `ended` says whether the race was completed."""
        race, curve = self.race, self._curve()
        open_sizes, of_best = {*self._open(), curve.recommended}, race.fits[curve.best].keys()
        top, _ = race.scores(curve.best)
        rows: list[dict[str, Any]] = []
        gain = Difference(np.nan, np.nan, np.nan)
        for size, behind in curve.behind.items():
            # By fold, so that means have the same bits in any order of the fits.
            fits = [race.fits[size][fold] for fold in sorted(race.fits[size])]
            has_same = race.fits[size].keys() == of_best and len(fits) > 1
            if rows:
                gain = curve.difference(size, rows[-1]["size"])
            rows.append(
                {
                    "size": size,
                    "score": top - behind.mean,
                    "std_error": race.scores(size)[1],
                    "behind": behind.mean,
                    "behind_std_error": behind.std_error,
                    **dict(zip(("behind_lower", "behind_upper"), interval(behind), strict=True)),
                    "gain": gain.mean,
                    "gain_std_error": gain.std_error,
                    "probability": chance(behind) if has_same else np.nan,
                    "n_folds": len(fits),
                    "dropped": len(fits) < len(of_best) and size not in open_sizes,
                    "stability": stability(fits),
                    **mean_figures(fits),
                    "seconds": sum(fit.seconds for fit in fits),
                }
            )
        ends = {min(race.fits): "smallest", max(race.fits): "largest"}
        given = self._given is not None or max(race.fits) == self._limits.max_size
        # There is no size below 1.
        edge = ends.get(curve.best, "") if given and len(rows) > 1 and curve.best > 1 else ""
        return SizeChoice(
            curve.best, curve.good, curve.recommended, edge, ended, "held-out", rows,
            elbows=curve.elbows, gains=gains_of([*curve.behind], curve.difference),
            hint=self._hint(rows[[*curve.behind].index(curve.best)]),
        )  # fmt: skip

    def _hint(self, row: Mapping[str, Any]) -> str:
        """What else to try, by the figures of the best size."""
        often, error = row["repeats"], row["repeats_std_error"]
        is_bursty = getattr(self._plan.model, "topic_concentration", None) is not None
        if is_bursty or not often - 2 * error > _OFTEN:
            return ""
        return (
            f"held-out documents repeat words {measured(often, error)} times as often as the model "
            'expects: compare it with topic_concentration="learn"'
        )


def _finer(
    tried: list[int],
    chances: Mapping[int, float],
    best: int,
    may_gain: Callable[[int, int], bool] = grid.always,
) -> list[int]:
    """Sizes between those tried, first in large gaps.

    `chances` are the probabilities of sizes to be as good as the best size.
    """
    for ratio, least in ((_RATIO, _CLOSE), (_FINE_RATIO, _POSSIBLE)):
        smallest = min((size for size, chance in chances.items() if chance > least), default=best)
        if found := grid.finer(tried, best, smallest, ratio, may_gain):
            return found
    return []


def _is_near(size: int, centres: Collection[int], sizes: list[int]) -> bool:
    """Whether a size is one of the centres, or next to one among those that are left."""
    ordered = sorted({*sizes, *centres})
    return any(abs(ordered.index(size) - ordered.index(centre)) <= 1 for centre in centres)


def _relative_cost(size: int) -> float:
    """Time of a fit relative to that of the smallest size, about."""
    return 1 + size / _DOUBLING_SIZE


class _Spent(Exception):  # noqa: N818
    """No further fit is foretold to end in time."""
