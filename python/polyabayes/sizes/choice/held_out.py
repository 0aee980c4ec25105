"""A choice by held-out likelihood: its fits, where they are kept, and the race of sizes."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from concurrent.futures import Executor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from polyabayes._support.state_folder import StateFolder, refuse_other
from polyabayes._support.storage import read_arrays, write_arrays
from polyabayes.data.corpus import Corpus
from polyabayes.exceptions import EdgeWarning, FileFormatError, Interrupted
from polyabayes.models.fitting import LONG_START, fingerprint
from polyabayes.scale.executors import Workers, check_executor, sharing
from polyabayes.sizes.choice import grid
from polyabayes.sizes.choice.fits import (
    MATCHED_WORDS,
    STARTS,
    FoldFit,
    fit_and_score,
    is_fit,
    read_fit,
    write_fit,
)
from polyabayes.sizes.choice.race import Race
from polyabayes.sizes.choice.result import SizeChoice, choice_by_fits

__all__ = ["MOST_SIZE", "Chooser", "Plan", "Store", "first_sizes", "folds_of"]

# Assignments are of 16 bits.
MOST_SIZE = 2**16 - 1
# A size is dropped where it is as good as the best with less than this probability.
_HOPELESS = 1e-4
# Sizes that may be the best by more than this probability have the grid refined around them.
_CLOSE = 0.16
# Neighbours within this ratio are near enough: a tenth of the size either way.
_RATIO = 1.21
# The same beside the best size and the smallest that is as good with more than this probability: it
# may be at the end of a plateau whose best size lies far above the first that is as good.
_FINE_RATIO = 1.1
_POSSIBLE = 0.01
# One fit may end in a poor mode: neighbours of the leader are dropped by several fits only.
_FOLDS_OF_NEIGHBOURS = 3


def _most_size(corpus: Corpus) -> int:
    """The largest size to look at: as many topics as documents."""
    return min(MOST_SIZE, corpus.n_tokens, corpus.n_documents)


def first_sizes(corpus: Corpus) -> list[int]:
    """The coarse grid that a search begins with."""
    return [size for size in grid.START if size <= _most_size(corpus)]


class Plan(NamedTuple):
    """The inputs that all fits share."""

    model: Any
    corpus: Corpus
    folds: NDArray[np.int64]
    n_folds: int
    seed: int
    max_fits: int

    def with_one_thread(self) -> Plan:
        """The same, each fit on one thread where the model leaves their number open."""
        if self.model.n_jobs is not None:
            return self
        return self._replace(model=clone(self.model).set_params(n_jobs=1))

    def fit(self, size: int, fold: int) -> FoldFit:
        """The fit of a size without a fold."""
        key = np.random.SeedSequence([self.seed % 2**63, size, fold])
        seed = int(key.generate_state(1, np.uint64)[0])
        return fit_and_score(self.model, self.corpus, self.folds == fold, size, fold, seed)


def _fit(plan: Plan, size: int, fold: int) -> FoldFit:
    return plan.fit(size, fold)


class Store:
    """Fits in a folder, one file each."""

    def __init__(self, checkpoint: Any, plan: Plan, model: Any) -> None:
        self._folder, self._plan = StateFolder(checkpoint, "the choice"), plan
        identity = {
            "model": type(model).__name__,
            "parameters": {
                name: repr(value)
                for name, value in sorted(model.get_params(deep=False).items())
                if name not in ("n_components", "n_jobs", "progress", "random_state")
            },
            "data": fingerprint(plan.corpus),
            "n_folds": plan.n_folds,
            "random_state": plan.seed,
            "starts": [STARTS, *LONG_START],
        }
        head = self._folder.make("choice.safetensors")
        if head.exists():
            found, _ = read_arrays(head)
            for name, value in identity.items():
                refuse_other(head, "choice", name, found.get(name), value)
        else:
            write_arrays(head, identity, {})

    def path(self, size: int, fold: int) -> Path:
        """Where the fit of a size without a fold is kept."""
        return self._folder.path / f"size-{size}-fold-{fold}.safetensors"

    def read(self, size: int, fold: int) -> FoldFit | None:
        """A fit that is there and whole; a damaged one is made again."""
        try:
            fit = read_fit(self.path(size, fold))
        except (FileFormatError, OSError, LookupError, TypeError, ValueError, ArithmeticError):
            return None
        n_held_out = int(np.count_nonzero(self._plan.folds == fold))
        n_words = min(MATCHED_WORDS, self._plan.corpus.n_words)
        is_whole = (fit.size, fit.fold) == (size, fold) and is_fit(fit, n_held_out, n_words)
        return fit if is_whole else None

    def keep(self, fit: FoldFit) -> None:
        """Store a fit that was made."""
        path = self.path(fit.size, fit.fold)
        self._folder.put(lambda: write_fit(path, fit), f"the fit of size {fit.size}")


class Chooser:
    """The race of sizes: fold by fold, then further sizes."""

    def __init__(
        self,
        plan: Plan,
        given: list[int] | None,
        executor: Executor | None,
        store: Store | None,
        update: Callable[[int], None] | None,
    ) -> None:
        self._plan, self._given, self._store = plan, given, store
        self._executor = check_executor(executor)
        self._workers: Workers | None = None
        self._update = update
        n_tokens = np.asarray(plan.corpus.counts.sum(axis=1)).ravel()
        self.race = Race(plan.folds, n_tokens)
        self.dropped: dict[int, int] = {}
        self._n_fits = 0

    def run(self) -> SizeChoice:
        """Race until the best is known, or the fits are spent."""
        if self._executor is None:
            return self._race()
        with sharing(self._executor, self._plan.with_one_thread()) as self._workers:
            return self._race()

    def _race(self) -> SizeChoice:
        most = _most_size(self._plan.corpus)
        wanted = self._given or first_sizes(self._plan.corpus)
        try:
            while wanted:
                self._stage(wanted)
                wanted = [] if self._given else self._further(most)
        except KeyboardInterrupt:
            partial = self._result(ended=False) if self._alive() else None
            message = f"{self._n_fits} fits are done"
            raise Interrupted(message, partial) from None
        except _Spent:
            return self._result(ended=False)
        result = self._result(ended=True)
        if result.at_edge:
            warnings.warn(
                f"the best size, {result.best}, is the {result.at_edge} of those tried: the best "
                "of all may lie beyond; give a wider range, or none",
                EdgeWarning,
                stacklevel=4,
            )
        return result

    def _stage(self, sizes: list[int]) -> None:
        """All folds of new sizes, without those that fall behind."""
        for fold in range(self._plan.n_folds):
            running = [size for size in sizes if size not in self.dropped]
            self._fit_all([(size, fold) for size in running])
            whole = [s for s in self.race.fits if s not in self.dropped]
            leader = self.race.best(whole)
            for size in running:
                patient = _near(size, leader, whole) and fold + 1 < _FOLDS_OF_NEIGHBOURS
                if not patient and self.race.behind(size, leader) < _HOPELESS:
                    self.dropped[size] = fold + 1

    def _fit_all(self, jobs: list[tuple[int, int]]) -> None:
        stored = [] if self._store is None else [self._store.read(*job) for job in jobs]
        missing = []
        for job, fit in zip(jobs, stored or [None] * len(jobs), strict=True):
            if fit is None:
                missing.append(job)
            else:
                self._take(fit, keep=False)
        if self._n_fits + len(missing) > self._plan.max_fits:
            raise _Spent
        if self._workers is None:
            for job in missing:
                self._take(_fit(self._plan, *job))
            return

        def describe(number: int) -> str:
            return "the fit of {} topics without fold {}".format(*missing[number])

        for _, fit in self._workers.run(_fit, missing, describe):
            self._take(fit)

    def _take(self, fit: FoldFit, *, keep: bool = True) -> None:
        self.race.add(fit)
        self._n_fits += 1
        if keep and self._store is not None:
            self._store.keep(fit)
        if self._update is not None:
            self._update(self._n_fits)

    def _further(self, most: int) -> list[int]:
        """Sizes that may be better than those so far."""
        tried = sorted(self.race.fits)
        best = self.race.best(self._alive())
        chances = {size: self.race.behind(size, best) for size in self._alive()}
        close = [size for size, chance in chances.items() if chance > _CLOSE]
        possible = [size for size, chance in chances.items() if chance > _POSSIBLE]
        found = grid.wider(tried, close, 1, most) + self._finer(tried, close, possible, best)
        return sorted(set(found) - set(tried))

    @staticmethod
    def _finer(tried: list[int], close: list[int], possible: list[int], best: int) -> list[int]:
        """Sizes between those tried: first everywhere, then beside those that may be chosen."""
        found = grid.finer(tried, close, best, _RATIO)
        chosen = {best, min(possible, default=best)}
        return found or grid.finer(tried, chosen, best, _FINE_RATIO)

    def _alive(self) -> list[int]:
        """Sizes with all folds that are not dropped."""
        folds = self._plan.n_folds
        whole = [s for s in self.race.fits if self.race.n_folds(s) == folds]
        return sorted(size for size in whole if size not in self.dropped) or sorted(whole)

    def _result(self, *, ended: bool) -> SizeChoice:
        rng = np.random.default_rng(self._plan.seed)
        return choice_by_fits(
            self.race, self._alive(), self.dropped, self._given is not None, ended, rng
        )


def _near(size: int, leader: int, sizes: list[int]) -> bool:
    """Whether a size is the leader or the next one to it among those that are left."""
    ordered = sorted(sizes)
    return abs(ordered.index(size) - ordered.index(leader)) <= 1


class _Spent(Exception):  # noqa: N818
    """All fits that were granted are done."""


def folds_of(n_documents: int, n_folds: int, seed: int) -> NDArray[np.int64]:
    """The fold of every document, at random and of about equal sizes."""
    order = np.random.default_rng(seed).permutation(n_documents)
    folds = np.empty(n_documents, dtype=np.int64)
    folds[order] = np.arange(n_documents) % n_folds
    return folds
