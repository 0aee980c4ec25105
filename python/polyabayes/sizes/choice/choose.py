"""How many topics: one call, by held-out likelihood or by evidence."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Executor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from polyabayes._support import checks
from polyabayes._support.progress import progress_bar
from polyabayes._support.random import RandomState, draw_seed
from polyabayes._support.state_folder import StateFolder, refuse_other
from polyabayes._support.storage import read_arrays, write_arrays
from polyabayes.allocation import AllocationModel
from polyabayes.data.corpus import Corpus, as_corpus
from polyabayes.exceptions import (
    EdgeWarning,
    FileFormatError,
    Interrupted,
    InvalidArgumentError,
    InvalidTypeError,
)
from polyabayes.models import LatentDirichletAllocation, PoissonFactorAnalysis
from polyabayes.models.fitting import LONG_START, fingerprint
from polyabayes.scale.executors import Workers, check_executor, sharing
from polyabayes.sizes.choice import grid
from polyabayes.sizes.choice.cost import ChoiceCost, measured_cost
from polyabayes.sizes.choice.evidence import by_evidence, cost_by_evidence
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

__all__ = ["choice_cost", "choose_n_components"]

_NOT_BY_EVIDENCE = "concentrations are those of a choice by evidence"
_CRITERIA = ("held-out", "evidence")
# A size is dropped where it is as good as the best with less than this probability.
_HOPELESS = 1e-4
# Sizes that may be the best by more than this probability have the grid refined around them.
_CLOSE = 0.16
# Neighbours within this ratio are near enough: a tenth of the size either way.
_RATIO = 1.21
# The same beside the best size and the smallest that may be as good.
_FINE_RATIO = 1.1
_MOST_SIZE = 2**16 - 1
# One fit may end in a poor mode: neighbours of the leader are dropped by several fits only.
_FOLDS_OF_NEIGHBOURS = 3


def choose_n_components(
    model: Any,
    data: Any,
    sizes: Iterable[Any] | None = None,
    *,
    criterion: str = "held-out",
    n_folds: int = 5,
    max_fits: int = 200,
    concentrations: Any = None,
    random_state: RandomState = None,
    executor: Executor | None = None,
    checkpoint: Any = None,
    progress: bool = False,
    **options: Any,
) -> SizeChoice:
    """Choose the number of topics, with its uncertainty.

    By held-out likelihood: every size is trained on all folds but one and scores the documents of
    that fold, the same documents for all sizes. Sizes are compared by paired differences, whose
    errors hold for new documents and new fits; a size that is clearly behind is dropped after the
    folds that show it. Without `sizes` they come from a geometric grid, which is widened while
    its edge may be the best and refined around the best, until neighbours differ by a fifth, and
    by a tenth beside the best and the smallest equally good one. Fits begin with longer starts than
    those of ``fit``, and the best of two (`n_init`, if that is more), which seldom merge topics.

    By evidence: allocation models whose parameters are integrated out, compared by their
    posterior probabilities. These answer for the prior as it is given: where you do not know the
    concentration, let `concentrations` average over it.

    Parameters
    ----------
    model : LatentDirichletAllocation, PoissonFactorAnalysis or AllocationModel
        Cloned; its parameters but for the number of topics (and `random_state`) are kept. An
        AllocationModel is chosen by evidence; sizes that are None are looked for.
    data : Corpus, sparse matrix, integer array, DataFrame or CountTensor
        The documents; for an AllocationModel its tensor.
    sizes : iterable of int, or mapping of node to iterable of int, optional
        The sizes to choose from; for several hidden nodes, a mapping. By default they are found,
        by held-out likelihood only.
    criterion : {"held-out", "evidence"}, default="held-out"
        Always ``"evidence"`` for an AllocationModel. For LDA it is the evidence of the allocation
        model word <- topic -> doc, which has other priors, of concentration 1 or `concentrations`.
    n_folds : int, default=5
        Folds of the documents.
    max_fits : int, default=200
        Fits after which the choice ends with what is known. A run by held-out likelihood takes
        `n_folds` fits a size, less those of dropped sizes: about 30 to 60 by default. What they
        will take is told by :func:`choice_cost` before they start.
    concentrations : None, "auto", iterable of float or mapping of float to float, default=None
        By evidence: the concentrations that the evidence of a size is the mean over; with a
        mapping, weighed by these prior weights. None: that of the model alone. ``"auto"``: powers
        of 2 with equal weights, from 1/4 to a Dirichlet parameter of 4 in each cell of the largest
        table; every size looks at those around its best one, until the evidence is 10 nats below
        it and two errors more, so that a size takes some 4 to 7 evidences in place of one, and all
        of them where a table says little. Unless
        the model has a `rate`, evidences are then given the total of the data.
    random_state : None, int, RandomState, Generator or SeedSequence
        Equal seeds give equal choices, for any executor and any number of threads.
    executor : concurrent.futures.Executor, optional
        Where the fits run, or the replicates of each evidence; it is not shut down. By default
        here, one after another, each on the `n_jobs` threads of the model.
    checkpoint : path-like, optional
        Folder that keeps every fit, or the replicates of each evidence: a choice that was killed
        goes on from there.
    progress : bool, default=False
        Show the number of fits done (needs tqdm).
    **options
        By evidence: further options of :meth:`AllocationModel.log_evidence`.

    Returns
    -------
    SizeChoice
        ``best``, ``equally_good``, ``recommended``, probabilities, a table of all sizes.

    Warns
    -----
    EdgeWarning
        If the best size is the smallest or largest of those given, or its best concentration.
    UnreliableErrorWarning
        If errors of evidences are not to be trusted: one warning, which tells how many.

    Raises
    ------
    Interrupted
        A KeyboardInterrupt whose ``partial`` is the choice among the fits or evidences done, if
        any.
    InvalidArgumentError, InvalidTypeError
        If an argument is bad; before any work.

    References
    ----------
    Efron & Stein (1981). The jackknife estimate of variance. Annals of Statistics 9(3).

    Rubin (1981). The Bayesian bootstrap. Annals of Statistics 9(1).

    Examples
    --------
    >>> import polyabayes as pb
    >>> corpus = pb.datasets.make_lda_corpus(60, 30, 3, random_state=0).corpus
    >>> lda = pb.LatentDirichletAllocation(max_iter=20, n_jobs=1)
    >>> choice = pb.choose_n_components(lda, corpus, [1, 3, 9], n_folds=2, random_state=0)
    >>> choice.best
    3

    >>> ranks = pb.choose_n_components(
    ...     pb.AllocationModel.nmf(None), [[4, 3, 0], [0, 0, 3]], [1, 2], concentrations="auto"
    ... )
    >>> ranks.best, round(ranks.probabilities[2], 3)
    (2, 0.711)
    """
    checks.choice("criterion", criterion, _CRITERIA)
    if isinstance(model, AllocationModel) or criterion == "evidence":
        options |= {"executor": executor, "checkpoint": checkpoint, "progress": progress}
        return _by_evidence(model, data, sizes, concentrations, random_state, options)
    if concentrations is not None:
        raise InvalidTypeError(_NOT_BY_EVIDENCE)
    if options:
        raise InvalidTypeError(f"unknown options of held-out choice: {', '.join(options)}")
    corpus, given, n_folds = _checked(model, data, sizes, n_folds, max_fits)
    seed = draw_seed(random_state)
    plan = _Plan(model, corpus, _folds(corpus.n_documents, n_folds, seed), n_folds, seed, max_fits)
    store = None if checkpoint is None else _Store(checkpoint, plan, model)
    with progress_bar(progress, max_fits, "fit") as update:
        return _Chooser(plan, given, executor, store, update).run()


def choice_cost(
    model: Any,
    data: Any,
    sizes: Iterable[Any] | None = None,
    *,
    n_folds: int = 5,
    max_fits: int = 200,
    concentrations: Any = None,
) -> ChoiceCost:
    """Tell what a choice will take, before it starts.

    Short fits of the smallest and the largest size are timed here, a few sweeps each and the
    scores of 20 documents. Of an AllocationModel the evidences of its smallest and largest sizes
    are, with the default options, which may take some minutes themselves. Print the result.

    Parameters
    ----------
    model, data, sizes, n_folds, max_fits, concentrations
        As of :func:`choose_n_components`.

    Returns
    -------
    ChoiceCost
        Number of fits or evidences, seconds of each at both ends, seconds of all one after another.

    Raises
    ------
    InvalidArgumentError, InvalidTypeError
        If an argument is bad; before any work.

    Examples
    --------
    >>> import polyabayes as pb
    >>> corpus = pb.datasets.make_lda_corpus(60, 30, 3, random_state=0).corpus
    >>> cost = pb.choice_cost(pb.LatentDirichletAllocation(), corpus, [2, 4, 8])
    >>> cost.n_fits, cost.sizes
    (15, (2, 8))
    """
    if isinstance(model, AllocationModel):
        return cost_by_evidence(model, data, _ranges(model, sizes), concentrations)
    if concentrations is not None:
        raise InvalidTypeError(_NOT_BY_EVIDENCE)
    corpus, given, n_folds = _checked(model, data, sizes, n_folds, max_fits)
    return measured_cost(
        model,
        corpus,
        given or _first_sizes(corpus),
        found=given is None,
        n_folds=n_folds,
        max_fits=max_fits,
    )


def _checked(
    model: Any, data: Any, sizes: Any, n_folds: int, max_fits: int
) -> tuple[Corpus, list[int] | None, int]:
    """The arguments of a choice by held-out likelihood, or an error."""
    if not isinstance(model, (LatentDirichletAllocation, PoissonFactorAnalysis)):
        raise InvalidTypeError(
            "model must be a LatentDirichletAllocation, a PoissonFactorAnalysis or an "
            f"AllocationModel of polyabayes, which is trained at every size; got {model!r:.100}"
        )
    if not model._has_likelihood():
        raise InvalidArgumentError("NMF gives new documents no likelihood: choose another prior")
    corpus = as_corpus(data, "data")
    given = None if sizes is None else _checked_sizes(sizes)
    if corpus.n_documents < 2:
        raise InvalidArgumentError(
            "a choice by held-out likelihood needs two documents or more, to train on some and "
            f"hold out others; got {corpus.n_documents}"
        )
    n_folds = checks.whole_number("n_folds", n_folds, 2, corpus.n_documents)
    checks.whole_number("max_fits", max_fits, n_folds)
    return corpus, given, n_folds


def _most_size(corpus: Corpus) -> int:
    return min(_MOST_SIZE, corpus.n_tokens)


def _first_sizes(corpus: Corpus) -> list[int]:
    return [size for size in grid.START if size <= _most_size(corpus)]


class _Plan(NamedTuple):
    """The inputs that all fits share."""

    model: Any
    corpus: Corpus
    folds: NDArray[np.int64]
    n_folds: int
    seed: int
    max_fits: int

    def with_one_thread(self) -> _Plan:
        """The same, each fit on one thread where the model leaves their number open."""
        if self.model.n_jobs is not None:
            return self
        return self._replace(model=clone(self.model).set_params(n_jobs=1))

    def fit(self, size: int, fold: int) -> FoldFit:
        """The fit of a size without a fold."""
        key = np.random.SeedSequence([self.seed % 2**63, size, fold])
        seed = int(key.generate_state(1, np.uint64)[0])
        return fit_and_score(self.model, self.corpus, self.folds == fold, size, fold, seed)


def _fit(plan: _Plan, size: int, fold: int) -> FoldFit:
    return plan.fit(size, fold)


class _Store:
    """Fits in a folder, one file each."""

    def __init__(self, checkpoint: Any, plan: _Plan, model: Any) -> None:
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
        path = self.path(fit.size, fit.fold)
        self._folder.put(lambda: write_fit(path, fit), f"the fit of size {fit.size}")


class _Chooser:
    """The race of sizes: fold by fold, then further sizes."""

    def __init__(
        self,
        plan: _Plan,
        given: list[int] | None,
        executor: Executor | None,
        store: _Store | None,
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
        wanted = self._given or _first_sizes(self._plan.corpus)
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
                stacklevel=3,
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
        close = [size for size in self._alive() if self.race.behind(size, best) > _CLOSE]
        found = grid.wider(tried, close, 1, most) + self._finer(tried, close, best)
        return sorted(set(found) - set(tried))

    @staticmethod
    def _finer(tried: list[int], close: list[int], best: int) -> list[int]:
        """Sizes between those tried: first everywhere, then beside those that may be chosen."""
        found = grid.finer(tried, close, best, _RATIO)
        chosen = {best, min(close, default=best)}
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


def _folds(n_documents: int, n_folds: int, seed: int) -> NDArray[np.int64]:
    order = np.random.default_rng(seed).permutation(n_documents)
    folds = np.empty(n_documents, dtype=np.int64)
    folds[order] = np.arange(n_documents) % n_folds
    return folds


def _checked_sizes(sizes: Any) -> list[int]:
    if isinstance(sizes, (str, bytes, Mapping)) or not isinstance(sizes, Iterable):
        raise InvalidTypeError(f"sizes must be numbers of topics, got {sizes!r:.100}")
    checked = sorted({checks.whole_number("sizes", size, 1, _MOST_SIZE) for size in sizes})
    if not checked:
        raise InvalidArgumentError("sizes is empty; give at least one, or leave it out")
    return checked


def _by_evidence(
    model: Any,
    data: Any,
    sizes: Any,
    concentrations: Any,
    random_state: RandomState,
    options: Mapping[str, Any],
) -> SizeChoice:
    if isinstance(model, LatentDirichletAllocation):
        model = AllocationModel.nmf(None, concentration=1.0)
    if not isinstance(model, AllocationModel):
        raise InvalidTypeError(
            f"evidence is that of an AllocationModel or of LDA, got {model!r:.100}"
        )
    return by_evidence(
        model, data, _ranges(model, sizes), concentrations, random_state, dict(options)
    )


def _ranges(model: AllocationModel, sizes: Any) -> dict[str, list[int]]:
    """Sizes to choose from, of every node whose size is not known."""
    hidden = [node for node, size in model.sizes.items() if size is None]
    if sizes is None or not hidden:
        raise InvalidArgumentError(
            "give sizes to choose from, and a model whose unknown sizes are None, as "
            "AllocationModel.nmf(None)"
        )
    by_node = sizes if isinstance(sizes, Mapping) else {hidden[0]: sizes}
    if set(by_node) != set(hidden):
        raise InvalidArgumentError(
            f"the unknown sizes are those of {', '.join(hidden)}; give a mapping of each of them "
            "to its sizes"
        )
    return {node: _checked_sizes(by_node[node]) for node in hidden}
