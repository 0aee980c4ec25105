"""Documents with several vocabularies: a text in two languages, two measurements of a cell."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from polyabayes._support import checks
from polyabayes._support.arrays import Flags, Floats, Integers
from polyabayes._support.output.tables import counted
from polyabayes.data.conversion.sources import is_of
from polyabayes.data.corpus import Corpus, as_corpus
from polyabayes.data.naming import topics_by_name
from polyabayes.exceptions import InvalidArgumentError, argument
from polyabayes.models.fitted.topic_weights import TopicTransformer


class SeveralVocabularies(TopicTransformer):
    """Base class of models with given parameters whose documents may have several vocabularies."""

    decoder: str
    vocabulary_names: Sequence[str] | None
    vocabulary_sizes_: Integers
    word_prior_: Floats

    @property
    def _vectorise(self) -> Callable[[Any, str], Corpus] | None:  # type: ignore[override]
        if not hasattr(self, "vocabulary_sizes_"):
            return None
        return lambda documents, name: self._joined(documents, name, "raise")[0]

    def _aligned(self, documents: Any, name: str, unseen: str) -> tuple[Corpus, int]:
        if not hasattr(self, "vocabulary_sizes_"):
            return super()._aligned(documents, name, unseen)
        return self._joined(documents, name, unseen)

    def _joined(self, documents: Any, name: str, unseen: str) -> tuple[Corpus, int]:
        """Documents over all columns, and the number of tokens that were dropped."""
        parts = _tables_of(documents, self.vocabulary_names)
        if parts is not None:
            return _join(parts, self.vocabulary_sizes_, self.vocabulary_, name, unseen)
        corpus = as_corpus(documents, name)
        if corpus.n_words != self.n_features_in_:
            raise InvalidArgumentError(
                f"{argument(name)} must be a list of {len(self.vocabulary_sizes_)} corpora, one "
                f"for each vocabulary of the model, or hold its {self.n_features_in_:,} columns; "
                f"it has {corpus.n_words:,}"
            )
        return corpus, 0

    def _set_topic_word(
        self,
        topic_word: Any,
        vocabulary: Any,
        random_state: Any,
        *,
        normalised: bool,
        is_dirichlet: bool = False,
    ) -> None:
        """Set topics, loadings or Dirichlet parameters of each vocabulary."""
        options = {"normalised": normalised, "is_dirichlet": is_dirichlet}
        if hasattr(self, "vocabulary_sizes_"):
            columns = columns_of(self.vocabulary_sizes_)
            tables = [topic_word[:, own] for own in columns]
            words = [None if vocabulary is None else vocabulary[own] for own in columns]
        else:
            if isinstance(topic_word, Mapping):
                self.vocabulary_names = [str(name) for name in topic_word]
            given = _tables_of(topic_word)
            if given is None:
                self._set_words(topic_word, vocabulary, random_state, **options)
                self._name_rows(topic_word)
                return
            if not len(given):
                raise InvalidArgumentError("topic_word is empty; give a table of each vocabulary")
            tables = given
            words = texts_of("vocabulary", vocabulary, self.vocabulary_names, len(tables))
        found = []
        for table, own in zip(tables, words, strict=True):
            self._set_words(table, own, random_state, **options)
            found.append((self.components_, self.vocabulary_, getattr(self, "word_prior_", None)))
        topics, texts, priors = zip(*found, strict=True)
        if len({len(table) for table in topics}) > 1:
            raise InvalidArgumentError(
                f"{argument('topic_word')}: all vocabularies must have the same number of topics, "
                f"got shapes {', '.join(str(table.shape) for table in topics)}"
            )
        self.vocabulary_sizes_ = np.array([table.shape[1] for table in topics], dtype=np.int64)
        self.components_ = np.hstack(topics)
        self.n_features_in_ = self.components_.shape[1]
        self.vocabulary_ = None if any(x is None for x in texts) else np.concatenate(texts)
        if is_dirichlet:
            self.word_prior_ = np.hstack(priors)
        self._seal()

    def _set_words(
        self,
        topic_word: Any,
        vocabulary: Any,
        random_state: Any,
        *,
        normalised: bool,
        is_dirichlet: bool,
    ) -> None:
        """Set topics, loadings or Dirichlet parameters of a single vocabulary."""
        topic_word, vocabulary = topics_by_name("topic_word", topic_word, vocabulary)
        words = checks.matrix("topic_word", topic_word)
        probabilities = words
        if self.decoder == "softmax":
            probabilities = np.full(words.shape, 1.0 / words.shape[1])
        elif is_dirichlet:
            sums = words.sum(axis=1, keepdims=True)
            if not sums.all():
                raise InvalidArgumentError(
                    f"{argument('topic_word')}[{int(np.argmin(sums != 0))}] is zero for every word"
                )
            probabilities = words / sums
        super()._set_topic_word(probabilities, vocabulary, random_state, normalised=normalised)
        if self.decoder == "softmax":
            self.components_ = words.copy()
        elif is_dirichlet:
            self.word_prior_ = words.copy()
        self._seal()

    def _of_words(self, are_kept: Flags) -> Self:
        return self if self._vocabulary_sizes() else super()._of_words(are_kept)

    def _vocabulary_sizes(self) -> list[int]:
        """Sizes of the vocabularies, if there are several."""
        return getattr(self, "vocabulary_sizes_", np.zeros(0, int)).tolist()


def _tables_of(values: Any, names: Sequence[str] | None = None) -> list[Any] | None:
    """Tables by vocabulary, with None for missing tables; None if `values` is a single table.

    A mapping or a MuData holds them by name, a list in order.
    """
    if is_of(values, "mudata", "MuData"):
        values = dict(values.mod)
    if isinstance(values, Mapping):
        return [values.get(name) for name in names or values]
    if isinstance(values, np.ndarray):
        return list(values) if values.ndim == 3 else None
    if not isinstance(values, (list, tuple)) or not values:
        return None
    depths = [_depth(value) for value in values if value is not None]
    return list(values) if all(depth == 2 for depth in depths) else None


def _depth(value: Any) -> int:
    shape = getattr(value, "shape", None)
    if shape is not None:
        return len(shape)
    return 1 + _depth(value[0]) if isinstance(value, (list, tuple)) and value else 0


def texts_of(name: str, values: Any, names: Sequence[str] | None, n: int) -> list[Any]:
    """Given words, for each of `n` vocabularies."""
    if values is None:
        return [None] * n
    found: Any = values
    if isinstance(values, Mapping):
        found = [values.get(key, "") for key in names or values]
    is_list = isinstance(found, (list, tuple)) and len(found) == n
    if not is_list or any(np.ndim(value) != 1 for value in found):
        raise InvalidArgumentError(
            f"{argument(name)} must be a list of {n}: one for each vocabulary of the model"
        )
    return list(found)


def columns_of(sizes: Sequence[int] | Integers) -> list[slice]:
    """Columns of concatenated vocabularies of these sizes."""
    ends = np.cumsum([0, *sizes]).tolist()
    return [slice(start, end) for start, end in pairwise(ends)]


def _join(
    documents: list[Any], sizes: Integers, words: NDArray[np.object_] | None, name: str, unseen: str
) -> tuple[Corpus, int]:
    """Documents over all columns, and the number of tokens that were dropped."""
    policy = checks.choice("unseen", unseen, ("raise", "drop"))
    if len(documents) != len(sizes) or all(part is None for part in documents):
        raise InvalidArgumentError(
            f"{argument(name)} must hold a corpus for each of {len(sizes)} vocabularies, in their "
            f"order, or None for one without tokens; got {len(documents)}"
        )
    found: list[Corpus | None] = []
    n_unseen = 0
    for place, (part, size, columns) in enumerate(
        zip(documents, sizes.tolist(), columns_of(sizes), strict=True)
    ):
        if part is None:
            found.append(None)
            continue
        corpus = as_corpus(part, f"{name}[{place}]")._widened_to(size)
        if corpus.vocabulary is not None and words is not None:
            corpus, n_lost = corpus.aligned_to(words[columns], policy)
            n_unseen += n_lost
        if corpus.n_words != size:
            raise InvalidArgumentError(
                f"{name}[{place}] has {corpus.n_words:,} columns, but vocabulary {place} of the "
                f"model has {size:,} words"
            )
        found.append(corpus)
    return _side_by_side(found, sizes, name), n_unseen


def _side_by_side(parts: list[Corpus | None], sizes: Integers, name: str) -> Corpus:
    known = [(place, part) for place, part in enumerate(parts) if part is not None]
    first_place, first = known[0]
    for place, part in known[1:]:
        if part.n_documents != first.n_documents:
            raise InvalidArgumentError(
                f"{name}[{place}] has {counted(part.n_documents, 'document')}, but "
                f"{name}[{first_place}] has {first.n_documents:,}: their rows must be the same "
                "documents"
            )
        if part.ids is not None and first.ids is not None and (part.ids != first.ids).any():
            row = int(np.argmax(part.ids != first.ids))
            raise InvalidArgumentError(
                f"row {row} is {part.ids[row]!r} in {name}[{place}] and {first.ids[row]!r} in "
                f"{name}[{first_place}]: their rows must be the same documents, in one order"
            )
    n_documents = first.n_documents
    starts = np.zeros(n_documents + 1, np.int64)
    blocks = [
        sparse.csr_matrix(([], [], starts), shape=(n_documents, size), dtype=np.int64)
        if part is None
        else part.counts
        for part, size in zip(parts, sizes.tolist(), strict=True)
    ]
    ids = next((part.ids for _, part in known if part.ids is not None), None)
    metadata = next((part.metadata for _, part in known if part.metadata is not None), None)
    return Corpus(sparse.hstack(blocks, format="csr"), ids=ids, metadata=metadata)
