"""Documents scored block by block, on the workers of an executor."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from polyabayes import _core
from polyabayes._support.arrays import Flags, Floats, Integers
from polyabayes._support.output.progress import look
from polyabayes.data.corpus import Corpus
from polyabayes.likelihood.foreign import Scorable
from polyabayes.likelihood.methods import Settings
from polyabayes.scale.executors import sharing

# Most blocks of a corpus, and most tokens of a block: a few tenths of a second to a few seconds.
_N_BLOCKS = 64
_TOKENS = (2**12, 2**16)

# Methods whose cost grows with the square of the length.
_QUADRATIC = ("left-to-right", "left-to-right-particle", "left-to-right-sequential", "l2r")

# Effective share of log-normal replicates whose logs have standard deviation 1.
_RELIABLE_SHARE = 0.37
# Target variance of ln p in a replicate.
_ENOUGH_VARIANCE = 0.16

# Arrays of scores with an entry per document; arrays of a trace.
_N_ARRAYS, _N_TRACED = 7, 3


class BlockScores(NamedTuple):
    """Scores of documents: those of the compiled core, picklable and in parts."""

    values: Floats
    std_errors: Floats
    n_effs: Floats
    methods: NDArray[np.object_]
    sizes: Integers
    shortfalls: Floats
    variances: Floats
    trace: list[Floats]
    interruption: BaseException | None = None

    @classmethod
    def of(cls, scores: _core.Scores) -> BlockScores:
        """Take the arrays of the core's scores."""
        found = cls(*(getattr(scores, name) for name in cls._fields))
        return found._replace(methods=np.array(found.methods, dtype=object))

    @classmethod
    def none(cls, n_documents: int) -> BlockScores:
        """Scores of documents that are not scored yet."""
        values, std_errors, n_effs = np.full((3, n_documents), np.nan)
        return cls(
            values,
            std_errors,
            n_effs,
            methods=np.full(n_documents, "", dtype=object),
            sizes=np.zeros(n_documents, np.int64),
            shortfalls=np.zeros(n_documents),
            variances=np.zeros(n_documents),
            trace=[np.full((n_documents, 0), np.nan) for _ in range(_N_TRACED)],
        )

    def put(self, rows: slice | Integers, scores: BlockScores) -> BlockScores:
        """Set the scores of the documents at `rows`."""
        arrays: list[tuple[Any, Any]] = list(zip(self, scores, strict=True))
        for mine, other in arrays[:_N_ARRAYS]:
            mine[rows] = other
        n_points = max(self.trace[0].shape[1], scores.trace[0].shape[1])
        trace = self._widened(n_points)
        for mine, other in zip(trace, scores._widened(n_points), strict=True):
            mine[rows] = other
        return self._replace(trace=trace)

    def taken(self, rows: Integers) -> BlockScores:
        """The scores of the documents at these places, which may repeat."""
        arrays = {name: getattr(self, name)[rows] for name in self._fields[:_N_ARRAYS]}
        return self._replace(**arrays, trace=[table[rows] for table in self.trace])

    def _widened(self, n_points: int) -> list[Floats]:
        """Pad the trace to more points, with 0 samples and the final estimate."""
        n_more = n_points - self.trace[0].shape[1]
        if not n_more:
            return self.trace
        none = np.where(np.isnan(self.values), np.nan, 0.0)
        columns = (none, self.values, self.std_errors)
        return [
            np.concatenate([table, np.repeat(column[:, np.newaxis], n_more, axis=1)], axis=1)
            for table, column in zip(self.trace, columns, strict=True)
        ]


def last_of(scores: Sequence[BlockScores]) -> BlockScores:
    """The last scores that each document has."""
    last = BlockScores.none(len(scores[0].values))
    for found in scores:
        rows = np.flatnonzero(found.methods != "")
        last = last.put(rows, found.taken(rows))
    return last


def has_error(scores: Any) -> Flags:
    """Whether each document was scored by a method with a standard error."""
    # np.isin loops over strings one by one, and numpy drops a Ctrl-C there.
    methods = scores.methods
    return np.asarray((methods != "exact") & (methods != "recursive") & (methods != ""))


def unreliable(scores: Any, n_replicates: int) -> Integers:
    """Places of documents whose standard errors rest on only a few replicates."""
    return np.flatnonzero((scores.n_effs < _RELIABLE_SHARE * n_replicates) & has_error(scores))


def size_wanted(size: Any, n_eff: Any, n_replicates: int) -> Any:
    """Samples at which replicates would agree, given the effective number of replicates.

    The variance of ln p in a replicate is inversely proportional to its samples.
    """
    effective = np.maximum(np.nan_to_num(n_eff), 1.0)
    return size * np.log(n_replicates / effective) / _ENOUGH_VARIANCE


class ScoringPlan:
    """Arguments shared by all blocks: the model as arrays, the settings, the seed.

    `seed` is common to all documents; `n_jobs` are threads per block.
    """

    def __init__(self, model: Scorable, settings: Settings, seed: int, n_jobs: int) -> None:
        self._settings, self._seed, self._n_jobs = settings, seed, n_jobs
        self._parts, self.model = model._core_parts(), model._core_model()

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "model"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self.model = self._parts.core_model()

    def check(self, *documents: _core.Documents) -> None:
        """Refuse, before any work, documents (or observed and held-out parts) without a score."""
        check: Any = _core.check_score if len(documents) == 1 else _core.check_completion
        check(self.model, *documents, self._settings)

    def score(
        self,
        *documents: _core.Documents,
        n_temperatures: int | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> BlockScores:
        """Score documents, or held-out tokens given observed ones.

        `n_temperatures`, if given, sets the annealing runs for a total.
        """
        run: Any = {"seed": self._seed, "n_jobs": self._n_jobs, "progress": progress}
        function: Any = _core.completion
        if len(documents) == 1:
            function, run["n_temperatures"] = _core.score, n_temperatures
        return BlockScores.of(function(self.model, *documents, self._settings, **run))

    def costs(self, n_tokens: Integers) -> Floats:
        """Cost of documents of these lengths, in tokens of a document of ordinary length."""
        lengths = n_tokens.astype(np.float64)
        if self._settings.method in _QUADRATIC:
            lengths *= lengths / max(lengths.mean(), 1.0)
        return lengths + 1.0


class _Rows(NamedTuple):
    """Rows of a count matrix, picklable."""

    n_words: int
    indptr: Integers
    indices: NDArray[np.uint32]
    data: NDArray[np.uint32]
    exposure: Floats | None
    priors: Floats | None

    @classmethod
    def of(cls, corpus: Corpus, rows: Integers) -> _Rows:
        counts = sparse.csr_matrix(corpus.counts[rows])
        return cls(
            counts.shape[1],
            counts.indptr.astype(np.int64),
            counts.indices.astype(np.uint32),
            counts.data.astype(np.uint32),
            None if corpus.exposure is None else corpus.exposure[rows],
            None if corpus._priors is None else corpus._priors[rows],
        )

    def documents(self) -> _core.Documents:
        indices, data = self.indices.astype(np.int64), self.data.astype(np.int64)
        # Unpickled arrays may not be aligned.
        offsets = np.require(self.indptr, np.int64, ["C", "A"])
        exposure, priors = (
            None if array is None else np.require(array, np.float64, ["C", "A"])
            for array in (self.exposure, self.priors)
        )
        return _core.Documents(self.n_words, offsets, indices, data, exposure, priors)


def distinct(*documents: _core.Documents) -> Integers:
    """Number the distinct documents, or pairs of observed and held-out documents."""
    groups = documents[0].groups()
    for others in documents[1:]:
        groups = np.unique(groups * len(groups) + others.groups(), return_inverse=True)[1].ravel()
    return groups


def score_corpora(
    plan: ScoringPlan,
    executor: Executor | None,
    corpora: Sequence[Corpus],
    progress: Callable[[int], None] | None,
    **effort: Any,
) -> BlockScores:
    """Score documents, or held-out given observed tokens, here or on the workers of an executor.

    A document's random numbers depend on its content, so blocks have no effect on the bits. Equal
    documents are scored once.
    """
    documents = [corpus._core_documents() for corpus in corpora]
    if executor is None:
        return plan.score(*documents, progress=progress, **effort)
    plan.check(*documents)
    groups = distinct(*documents)
    first, copies = np.unique(groups, return_index=True, return_counts=True)[1:]
    lengths = np.sum([corpus._lengths()[first] for corpus in corpora], axis=0)
    blocks = list(_cut(plan.costs(lengths)))
    scores = BlockScores.none(len(first))
    done = 0

    def describe(number: int) -> str:
        rows = first[blocks[number]]
        return f"documents {rows.min():,} to {rows.max():,}"

    tasks = ((tuple(_Rows.of(corpus, first[own]) for corpus in corpora), effort) for own in blocks)
    try:
        with sharing(executor, plan) as workers:
            for number, found in workers.run(_score_block, tasks, describe):
                block = blocks[number]
                scores = scores.put(block, found)
                done += int(copies[block].sum())
                if progress is not None:
                    progress(done)
    except KeyboardInterrupt as interruption:
        scores = scores._replace(interruption=interruption)
    return scores.taken(groups)


def _score_block(plan: ScoringPlan, rows: tuple[_Rows, ...], effort: dict[str, Any]) -> BlockScores:
    scores = plan.score(*(part.documents() for part in rows), progress=look.get(), **effort)
    if scores.interruption is not None:
        raise scores.interruption
    return scores


def _cut(costs: Floats) -> Iterator[slice]:
    """Consecutive documents of about equal cost."""
    ends = np.cumsum(costs)
    size = float(np.clip(ends[-1] / _N_BLOCKS, *_TOKENS))
    numbers = ((ends - costs / 2) // size).astype(np.int64)
    starts = [*np.flatnonzero(np.diff(numbers, prepend=-1)).tolist(), len(costs)]
    for start, stop in pairwise(starts):
        yield slice(start, stop)
