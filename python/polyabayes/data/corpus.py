"""Corpus: word counts of documents, with vocabulary, ids, exposures and metadata."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from polyabayes import _core
from polyabayes._support.output.tables import columns_of, counted, html_table, some
from polyabayes.data import counts as _counts
from polyabayes.data.conversion import documents as _documents, frames, roles, sources, texts
from polyabayes.data.conversion.sources import Source
from polyabayes.data.document_counts import DocumentCounts
from polyabayes.data.metadata import checked_metadata, joined_metadata
from polyabayes.data.names import counts_nothing, refusal, say, warn
from polyabayes.data.naming import rows_by_name
from polyabayes.exceptions import InvalidArgumentError, InvalidTypeError, argument

_WORDS_SHOWN = 10


class Corpus(DocumentCounts):
    """Word counts of a collection of documents.

    Parameters
    ----------
    counts : sparse matrix, array or DataFrame of shape (n_documents, n_words)
        How often each word occurs in each document. The column names of a DataFrame become the
        vocabulary, and its index, unless it is the default index, the ids. An AnnData, a corpus of
        tomotopy, a matrix of R that rdata has read, or a table of texts or tokens (see
        :meth:`from_table`) is accepted, too.
    vocabulary : sequence of str of length n_words, optional
        The word of each column; words are unique.
    ids : sequence of str of length n_documents, optional
        The name of each document.
    exposure : float or array of shape (n_documents,), optional
        A known size of each document that multiplies its Poisson rates: depth of a cell, length of
        a genome, time of observation. Gamma-Poisson models use it wherever they take the corpus;
        LDA ignores it, since it is conditional on the lengths of documents.
    metadata : DataFrame or mapping of str to sequence, n_documents rows, optional
        Properties of the documents, one per column: groups, dates, covariates. If there are ids,
        rows are matched with them by their index, or else by a column that holds all ids; so are
        those of `exposure` by an index. Without ids, rows go by place, and those whose index counts
        from 0 in another order are refused.

    Attributes
    ----------
    counts : csr_matrix of int64, shape (n_documents, n_words)
        Sorted indices, no duplicates, no explicit zeros. It shares memory with an argument that is
        already such a matrix.
    vocabulary : ndarray of str objects, shape (n_words,), or None
        The words.
    ids : ndarray of str objects, shape (n_documents,), or None
        The names of the documents.
    exposure : ndarray of float, shape (n_documents,), or None
        The known sizes of the documents; None means 1.
    metadata : pandas.DataFrame or None
        A row for each document; the index is the ids, or else numbers from 0. Indexing, ``split``,
        ``aligned_to`` and ``.npz`` files keep it.

    Raises
    ------
    InvalidCountsError
        If a count is negative, fractional, NaN, infinite or above 2**32 - 1.
    InvalidArgumentError
        If there are no documents or no words, the counts are not two-dimensional, `vocabulary`,
        `ids`, `exposure` or `metadata` does not fit them, or an exposure is not positive.
    InvalidTypeError
        If `counts` does not hold numbers.

    Warns
    -----
    DataWarning
        If several documents have the same id, or documents or words may be sums or means of others.

    Examples
    --------
    >>> corpus = Corpus([[2, 0, 1], [0, 3, 0]], vocabulary=["urn", "ball", "colour"])
    >>> corpus
    <Corpus: 2 documents, 3 words, 6 tokens>
    """

    def __init__(
        self,
        counts: Any,
        vocabulary: Sequence[str] | NDArray[Any] | None = None,
        ids: Sequence[str] | NDArray[Any] | None = None,
        exposure: Any = None,
        metadata: Any = None,
    ) -> None:
        self._fill(_source_of(counts, "counts"), "counts", vocabulary, ids, exposure, metadata)

    def _fill(
        self, found: Source, name: str, vocabulary: Any, ids: Any, exposure: Any, metadata: Any
    ) -> None:
        """Set counts, called `name` in messages, and labels; arguments override `found`."""
        words = found.vocabulary if vocabulary is None else vocabulary
        names = found.ids if ids is None else ids
        self.counts = _counts.checked_counts(found.counts, name)
        self._has_open_width = found.has_open_width
        self._words_are = found.words_are if vocabulary is None else "given"
        self.vocabulary = None if words is None else _counts.checked_words(words)
        self.ids = None if names is None else _counts.checked_labels(names, "ids")
        if self.vocabulary is not None:
            self.counts = self._widened_to(len(self.vocabulary)).counts
        of_words = ("vocabulary", self.vocabulary, self.n_words, "words (columns)")
        of_documents = ("ids", self.ids, self.n_documents, "documents (rows)")
        for part, labels, size, unit in (of_words, of_documents):
            if labels is not None and len(labels) != size:
                told = say("entries", part, len(labels), size, unit)
                turned = say("other axis", argument("transpose", True))
                raise InvalidArgumentError(told + turned * (len(labels) in self.shape))
        held = np.empty(0, object) if self.ids is None else self.ids
        if twice := [name for name, n in Counter(held).items() if n > 1]:
            warn(say("twice", twice=twice[0]))
        full = held[np.diff(self.counts.indptr) == self.n_words] if len(held) else ()
        if odd := [name for name in full if len(name) > 2 and counts_nothing(name)]:
            warn(say("properties", some=some(odd), odd=odd))
        # Those that come with the counts stand in their order.
        sizes = found.exposure if exposure is None else rows_by_name("exposure", exposure, self.ids)
        table = found.metadata if metadata is None else rows_by_name("metadata", metadata, self.ids)
        _counts.warn_if_turned(self.vocabulary, self.ids)
        numbers = None if table is None and not twice else np.arange(self.n_documents)
        what, names = ("rows", numbers) if not len(held) or twice else ("documents", held)
        _counts.warn_of_totals(self.counts, names, what, self.vocabulary)
        _counts.warn_of_totals(self.counts.T, self.vocabulary, "words")
        self.exposure = None if sizes is None else _counts.checked_exposure(sizes, self.n_documents)
        self.metadata = checked_metadata(table, self.n_documents, self.ids)

    @classmethod
    def from_documents(
        cls,
        documents: Iterable[str] | Iterable[Iterable[str]],
        vocabulary: Sequence[str] | NDArray[Any] | None = None,
        ids: Sequence[str] | NDArray[Any] | None = None,
        *,
        on_empty: str | None = None,
        stop_words: str | Sequence[str] | None = None,
        min_df: float | None = None,
        max_df: float | None = None,
        ngram_range: Sequence[int] | None = None,
        stem: str | None = None,
        **options: Any,
    ) -> Corpus:
        """Count the words of documents: texts, or lists of tokens.

        Parameters
        ----------
        documents : iterable of str or of iterables of str
            Texts, or the tokens of every document in any order; read once.
        vocabulary : sequence of str, optional
            The words of the columns; default: all words, sorted. Other words are dropped from
            texts, and refused in lists of tokens.
        ids : sequence of str of length n_documents, optional
            The name of each document; default: the index of a Series, unless it is the default one.
        on_empty : {"raise", "drop", "keep"}, optional
            What to do with documents without words. Default: keep them, but refuse missing values
            of a table.
        stop_words : str or sequence of str, optional
            Words to drop, or a language, such as ``"english"``.
        min_df, max_df : int or float, optional
            Smallest and largest number of documents with a word; floats are shares.
        ngram_range : sequence of int, optional
            Shortest and longest run of words to count, as ``(1, 2)``.
        stem : str, optional
            Language of the Snowball stemmer, such as ``"english"``; needs the extra ``stem``.
        **options
            Further options of scikit-learn's ``CountVectorizer``, such as ``token_pattern``.

        Returns
        -------
        Corpus

        Raises
        ------
        InvalidArgumentError, InvalidTypeError
            If texts and lists of tokens are mixed, a token is not in `vocabulary`, or an option is
            unknown.

        Examples
        --------
        >>> Corpus.from_documents([["urn", "ball", "urn"], ["ball"]]).counts.toarray()
        array([[1, 2],
               [1, 0]])
        >>> Corpus.from_documents(["The urns", "an urn"], stem="english", stop_words="english")
        <Corpus: 2 documents, 1 word, 2 tokens>
        """
        names = ("stop_words", "min_df", "max_df", "ngram_range", "stem")
        options |= {x: y for x, y in [*locals().items()] if x in names and y is not None}
        checked = texts.checked_on_empty(on_empty)
        return cls._made(_documents.source_of_lists(documents, vocabulary, ids, options, checked))

    @classmethod
    def from_gensim(cls, corpus: Iterable[Any], dictionary: Any = None) -> Corpus:
        """Count documents in gensim's form, lists of (id, count).

        Parameters
        ----------
        corpus : iterable of iterables of (int, number)
            The documents, read once, so that a stream is enough. Weights that are not counts
            (tf-idf) are refused.
        dictionary : gensim Dictionary or mapping of int to str, optional
            Words by id. Ids that it skips are called ``#id``; larger ones are refused.

        Returns
        -------
        Corpus

        Raises
        ------
        InvalidArgumentError, InvalidCountsError, InvalidTypeError
            If an entry is not an (id, count) pair, or a count is not an integer.

        Examples
        --------
        >>> Corpus.from_gensim([[(0, 2), (2, 1)], [(1, 3)]], {0: "urn", 1: "ball", 2: "law"})
        <Corpus: 2 documents, 3 words, 6 tokens>
        """
        return cls._made(sources.bags(corpus, dictionary))

    @classmethod
    def from_table(
        cls,
        table: Any,
        text: str | None = None,
        vocabulary: Sequence[str] | NDArray[Any] | None = None,
        *,
        on_empty: str | None = None,
        **options: Any,
    ) -> Corpus:
        """Count the documents of a table: texts or lists of tokens in a column, or counts.

        Every function that takes documents also takes such a table, with the defaults below.

        Parameters
        ----------
        table : DataFrame, polars or pyarrow table, or Hugging Face dataset
            The table. Selections, shuffles and splits of a dataset are respected.
        text : str, optional
            The column of texts or of lists of tokens.
        vocabulary : sequence of str, optional
            The words of the columns. Other words are dropped from texts, and refused in lists of
            tokens.
        on_empty : {"raise", "drop", "keep"}, optional
            What to do with documents without words. Default: keep them, but refuse missing values.
        **options
            ``ids``, ``document``, ``word``, ``count``, ``exposure``, ``metadata`` and ``layout``,
            as in :func:`polyabayes.read_corpus`. For texts, also ``stem`` and the options of
            scikit-learn's ``CountVectorizer``, such as ``stop_words``.

        Returns
        -------
        Corpus

        Raises
        ------
        InvalidArgumentError, InvalidCountsError, InvalidTypeError
            If there is no such column, or it holds neither texts nor tokens, or has missing values.
        MissingDependencyError
            If pandas and pyarrow are not installed.

        Examples
        --------
        >>> import pandas as pd
        >>> reviews = pd.DataFrame({"text": ["An urn of balls", "Balls!"], "label": [1, 0]})
        >>> corpus = Corpus.from_table(reviews, stop_words=["of", "an"])
        >>> corpus.vocabulary.tolist(), corpus.metadata["label"].tolist()
        (['balls', 'urn'], [1, 0])
        """
        if (frame := frames.frame_of(table)) is None:
            raise InvalidTypeError(say("no frame", type(table).__name__))
        options["text"] = text
        named = roles.NamedColumns.taken_from(options)
        checked, source = texts.checked_on_empty(on_empty), frames.FrameTable(frame)
        made = cls._made(_documents.source_of_table(source, named, vocabulary, options, checked))
        return made if vocabulary is None else made.aligned_to(vocabulary)[0]

    @classmethod
    def from_anndata(
        cls, adata: Any, layer: str | None = None, exposure: str | None = None
    ) -> Corpus:
        """Count a layer of an AnnData object: cells are documents, variables are words.

        Parameters
        ----------
        adata : AnnData
            In memory, or backed by a file, which is read in blocks of 1,000 cells.
        layer : str, optional
            Layer that holds the counts, or ``"X"``. Default: ``X``, which is refused if it is
            normalised, or if a layer called counts, raw or UMI holds other counts.
        exposure : str, optional
            Column of ``obs`` that holds a known size of each cell, such as ``"n_counts"``.

        Returns
        -------
        Corpus
            With ``var_names`` as the vocabulary and ``obs_names`` as the ids.

        Raises
        ------
        InvalidArgumentError, InvalidCountsError
            If the layer does not exist or does not hold counts, or the column does not exist or
            does not hold sizes.
        InvalidTypeError
            If `adata` is not an AnnData.

        Examples
        --------
        >>> import anndata
        >>> adata = anndata.AnnData(np.array([[2.0, 0.0], [1.0, 3.0]]))
        >>> Corpus.from_anndata(adata)
        <Corpus: 2 documents, 2 words, 6 tokens>
        """
        if not sources.is_anndata(adata):
            raise InvalidTypeError(f"adata must be an AnnData, got {type(adata).__name__}")
        return cls._made(sources.anndata(adata, layer)).with_exposure(exposure)

    @classmethod
    def _made(cls, found: Source, name: str = "counts") -> Self:
        """A corpus of these parts, which are checked."""
        corpus = cls.__new__(cls)
        corpus._fill(found, name, None, None, None, None)
        return corpus

    def _core_documents(self) -> _core.Documents:
        parts = self.counts.indptr, self.counts.indices, self.counts.data
        indptr, words, counts = (np.asarray(part, dtype=np.int64) for part in parts)
        return _core.Documents(self.n_words, indptr, words, counts, self.exposure, self._priors)

    def __repr__(self) -> str:
        sizes = {"document": self.n_documents, "word": self.n_words, "token": self.n_tokens}
        return f"<Corpus: {', '.join(counted(n, what) for what, n in sizes.items())}>"

    def _repr_html_(self) -> str:
        """Sizes and the most frequent words, for notebooks."""
        words = ", ".join(f"{word} {n:,}" for word, n in self.top_words(_WORDS_SHOWN))
        facts = {**self.summary()._facts(), "most frequent": words}
        columns = columns_of({"": list(facts), "corpus": list(facts.values())})
        return html_table(columns, repr(self).strip("<>"))


def of_layer(documents: Any, layer: str | None) -> Any:
    """The counts of a layer of an AnnData; without a layer, the documents unchanged."""
    if layer is None:
        return documents
    if not sources.is_anndata(documents):
        raise InvalidTypeError(say("no layer", argument("layer"), type(documents).__name__))
    return Corpus.from_anndata(documents, layer)


def as_corpus(documents: Any, name: str = "documents") -> Corpus:
    """Check documents in any accepted form and make a corpus.

    A corpus is returned unchanged; floats are accepted if they are integers. Error messages call
    the documents `name`.
    """
    if isinstance(documents, Corpus):
        return documents
    return Corpus._made(_source_of(documents, name), name)


def _source_of(documents: Any, name: str) -> Source:
    """The parts of a corpus, from documents in any form."""
    if isinstance(documents, Iterator) or sources.is_stream(documents):
        documents = list(documents)
    if isinstance(documents, Corpus):
        return _parts_of(documents)
    if isinstance(documents, list) and documents and isinstance(documents[0], Corpus):
        return _joined(documents, name)
    return _documents.source_of(documents, name)


def _parts_of(corpus: Corpus) -> Source:
    parts = corpus.counts, corpus.vocabulary, corpus.ids, corpus.exposure, corpus.metadata
    return Source(*parts, corpus._has_open_width, corpus._words_are)


def _joined(blocks: list[Any], name: str) -> Source:
    parts: list[Any] = [as_corpus(block, f"block {k} of {name}") for k, block in enumerate(blocks)]
    first = parts[0]
    for number, part in enumerate(parts):
        if part.n_words != first.n_words or not np.array_equal(part.vocabulary, first.vocabulary):
            raise refusal("other words", number, name)

    joined: Any = {"ids": np.concatenate, "exposure": np.concatenate, "metadata": joined_metadata}
    for name, join in joined.items():
        values = [getattr(part, name) for part in parts]
        joined[name] = None if any(value is None for value in values) else join(values)
    counts = sparse.vstack([part.counts for part in parts], format="csr")
    return _parts_of(first)._replace(counts=counts, **joined)
