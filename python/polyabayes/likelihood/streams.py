"""Documents to score: a corpus at once, shards and streams block by block."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from functools import partial
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polyabayes._support.arrays import Floats, Integers
from polyabayes.data.corpus import Corpus, as_corpus
from polyabayes.likelihood.blocks import BlockScores, ScoringPlan, score_corpora
from polyabayes.likelihood.foreign import Scorable, exposed
from polyabayes.likelihood.methods import Settings
from polyabayes.likelihood.priors import GivenPriors
from polyabayes.likelihood.result import LogLikelihood, collect
from polyabayes.scale.shards import Shards

# Documents of shards per block in memory.
_BLOCK_DOCUMENTS = 20_000

# Odd multipliers of SplitMix64, which mix words and counts.
_MIX = tuple(np.uint64(x) for x in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))


# Documents over the vocabulary of a model, and the number of tokens dropped.
Block = tuple[Corpus, int]


class Documents:
    """Documents over the vocabulary of a model, block by block; known when all have been read once.

    `groups` numbers the distinct documents; `n_unseen` tokens were dropped.
    """

    def __init__(self, blocks: Callable[[], Iterator[Block]]) -> None:
        self._blocks, self._is_known, self.n_unseen = blocks, False, 0
        self._lengths: list[Integers] = []
        self._keys: list[NDArray[np.uint64]] = []
        self._ids: list[NDArray[Any] | None] = []

    def blocks(self) -> Iterator[Corpus]:
        """The documents in order, in blocks."""
        for corpus, n_unseen in self._blocks():
            if not self._is_known:
                self.n_unseen += n_unseen
                self._lengths.append(corpus._lengths())
                self._keys.append(_keys(corpus))
                self._ids.append(corpus.ids)
            yield corpus
        self._is_known = True

    def read(self) -> Documents:
        """Read all documents before they are scored."""
        for _ in self.blocks():
            pass
        return self

    @property
    def n_documents(self) -> int:
        """Number of documents read so far."""
        return sum(map(len, self._lengths))

    @property
    def n_tokens(self) -> Integers:
        """Length of each document."""
        return np.concatenate(self._lengths)

    @property
    def groups(self) -> Integers:
        """Number of each document among the distinct documents."""
        return np.unique(np.concatenate(self._keys), return_inverse=True)[1].ravel()

    @property
    def ids(self) -> NDArray[Any] | None:
        """Names of the documents; None unless all have one."""
        named = [ids for ids in self._ids if ids is not None]
        return np.concatenate(named) if len(named) == len(self._ids) else None

    def uniforms(self, seed: int) -> Floats:
        """A uniform number on [0, 1) for each document, from its content."""
        return _mixed(np.concatenate(self._keys) ^ np.uint64(seed)) / 2.0**64

    def result(
        self, scores: BlockScores, settings: Settings, correction: float | None = None
    ) -> LogLikelihood:
        """Scores of all documents as a result; `correction` is the error that they share."""
        return collect(
            scores,
            settings,
            n_tokens=self.n_tokens,
            n_unseen_tokens=self.n_unseen,
            ids=self.ids,
            groups=self.groups,
            correction_std_error=correction,
        )

    def score(
        self,
        plan: ScoringPlan,
        executor: Executor | None,
        progress: Callable[[int], None] | None,
        *,
        rows: Integers | None = None,
        **effort: Any,
    ) -> BlockScores:
        """Score all documents, or those of `rows`, block by block."""
        found: list[BlockScores] = []
        done = 0

        def told(number: int) -> None:
            if progress is not None:
                progress(done + number)

        interruption: BaseException | None = None
        try:
            for block in self._chosen(rows):
                shown = None if progress is None else told
                found.append(score_corpora(plan, executor, [block], shown, **effort))
                done += block.n_documents
                interruption = found[-1].interruption
                if interruption is not None:
                    break
        except KeyboardInterrupt as error:
            # An interrupt while blocks are read keeps the scores so far, too.
            interruption = error
            if not found:
                raise
        scores = BlockScores.none(self.n_documents if rows is None else len(rows))
        start = 0
        for part in found:
            scores = scores.put(slice(start, start + len(part.values)), part)
            start += len(part.values)
        return scores._replace(interruption=interruption)

    def _chosen(self, rows: Integers | None) -> Iterator[Corpus]:
        if rows is None:
            yield from self.blocks()
            return
        start = 0
        for block in self.blocks():
            stop = start + block.n_documents
            own = rows[(rows >= start) & (rows < stop)] - start
            if len(own):
                yield block[own]
            start = stop


def documents_of(
    model: Scorable,
    documents: Any,
    unseen: str,
    exposure: Any,
    priors: GivenPriors,
    *,
    is_total: bool = False,
) -> Documents:
    """Documents to score, from a corpus, shards or an iterator.

    Blocks of an iterator are gathered if all documents must be known before scoring: for a target
    of the total, and for arguments with a row for each document.
    """
    if isinstance(documents, Shards):
        shards, rows = exposed(model, documents, exposure), priors.rows(model, documents)

        def read_shards() -> Iterator[Block]:
            start = 0
            for block in shards.blocks(_BLOCK_DOCUMENTS):
                corpus, n_unseen = model._aligned(block, "documents", unseen)
                own = slice(start, start + corpus.n_documents)
                yield corpus._with_priors(None if rows is None else rows[own]), n_unseen
                start = own.stop

        return Documents(read_shards).read()
    if isinstance(documents, Iterator):
        rest, first = documents, next(documents, None)
        documents = iter(()) if first is None else chain(iter([first]), rest)
        is_blocks = isinstance(first, Corpus) or getattr(first, "ndim", 0) == 2
        # A block of lists of tokens; a document is a list of tokens, or of pairs.
        is_blocks |= isinstance(first, list) and all(
            isinstance(x, list) and all(isinstance(token, str) for token in x)
            for x in first[:1] or [0]
        )
        needs_all = is_total or any(given is not None for given in (exposure, *priors))
        if is_blocks and not (needs_all or model._has_prior_rows()):
            return Documents(partial(_streamed, model, documents, unseen))
        if is_blocks:
            documents = [as_corpus(block, "a block of documents") for block in documents]
    corpus, n_unseen = model._aligned(documents, "documents", unseen)
    corpus = exposed(model, corpus, exposure)
    corpus = corpus._with_priors(priors.rows(model, corpus))
    return Documents(lambda: iter([(corpus, n_unseen)])).read()


def _streamed(model: Scorable, blocks: Iterator[Any], unseen: str) -> Iterator[Block]:
    for number, documents in enumerate(blocks):
        name = f"block {number} of documents"
        corpus, n_unseen = model._aligned(documents, name, unseen)
        corpus = exposed(model, corpus, None)
        yield corpus._with_priors(model._priors_of(corpus, None)), n_unseen


def _keys(corpus: Corpus) -> NDArray[np.uint64]:
    """A hash of each document's counts, exposure and prior; collisions are one in 10^19."""
    counts = corpus.counts
    cells = counts.indices.astype(np.uint64) << np.uint64(32) | counts.data.astype(np.uint64)
    sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(_mixed(cells))])
    # Differences of wrapped sums are exact modulo 2^64.
    keys: NDArray[np.uint64] = sums[counts.indptr[1:]] - sums[counts.indptr[:-1]]
    if corpus.exposure is not None:
        own = _mixed(corpus.exposure.view(np.uint64))
        keys ^= np.where(corpus.exposure == 1.0, np.uint64(0), own)
    if corpus._priors is not None:
        for column in np.ascontiguousarray(corpus._priors.T + 0.0):
            keys = _mixed(keys ^ column.view(np.uint64))
    return keys


def _mixed(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Mix the bits of integers, one to one."""
    for multiplier in _MIX:
        numbers = (numbers ^ (numbers >> np.uint64(29))) * multiplier
    return np.asarray(numbers ^ (numbers >> np.uint64(32)))
