"""Base class of corpora: sizes, copies with other metadata, exposures or columns; its summary."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from polyabayes._support import checks
from polyabayes._support.output.tables import columns_of, counted, html_table, some
from polyabayes.data.counts import Words, checked_exposure, columns_of_words
from polyabayes.data.metadata import checked_metadata
from polyabayes.data.names import refusal, say
from polyabayes.data.naming import rows_by_name
from polyabayes.data.selection import Selectable
from polyabayes.exceptions import InvalidArgumentError, argument


@dataclass(frozen=True)
class CorpusSummary:
    """Size of a corpus; document lengths are in tokens.

    Attributes
    ----------
    n_documents, n_words : int
        Shape of the counts.
    n_tokens : int
        Sum of the counts.
    n_nonzero : int
        Number of non-zero counts: pairs of a document and a word in it.
    density : float
        Share of non-zero counts.
    mean_length, sd_length : float
        Mean and population standard deviation of the lengths.
    min_length, max_length : int
        Shortest and longest document.
    n_empty_documents : int
        Documents without a token.

    Examples
    --------
    >>> found = pb.Corpus([[2, 0, 1], [0, 3, 1]]).summary()
    >>> found.n_nonzero, found.mean_length
    (4, 3.5)
    """

    n_documents: int
    n_words: int
    n_tokens: int
    n_nonzero: int
    density: float
    mean_length: float
    sd_length: float
    min_length: int
    max_length: int
    n_empty_documents: int

    def _facts(self) -> dict[str, str]:
        facts = say("sizes", **vars(self)).split("; ")
        return {name: told for name, _, told in (fact.partition(": ") for fact in facts)}

    def __str__(self) -> str:
        return "\n".join(f"{name:<9}  {value}" for name, value in self._facts().items())

    def _repr_html_(self) -> str:
        facts = self._facts()
        return html_table(columns_of({"": list(facts), "corpus": list(facts.values())}))


class DocumentCounts(Selectable):
    """Sizes of a corpus, and copies of it with other exposures, metadata or columns."""

    # Bags of ids do not tell how many words there are.
    _has_open_width: bool
    # Whether the words are "gathered" from the documents, "given" with the counts, or "measured".
    _words_are: str = "given"

    @property
    def n_documents(self) -> int:
        """Number of documents."""
        return int(self.counts.shape[0])

    @property
    def n_words(self) -> int:
        """Number of words in the vocabulary, including words that do not occur."""
        return int(self.counts.shape[1])

    @property
    def n_tokens(self) -> int:
        """Sum of all counts."""
        return int(self.counts.data.sum())

    @property
    def shape(self) -> tuple[int, int]:
        """(n_documents, n_words); it lets scikit-learn's model selection split a corpus."""
        return self.n_documents, self.n_words

    def _lengths(self) -> NDArray[np.int64]:
        return np.diff(np.append(0, self.counts.data.cumsum())[self.counts.indptr])

    def summary(self) -> CorpusSummary:
        """Size of the corpus and lengths of its documents.

        Returns
        -------
        CorpusSummary
            Its text form is a table.

        Examples
        --------
        >>> corpus = pb.Corpus([[2, 0, 1], [0, 3, 1]], vocabulary=["urn", "ball", "draw"])
        >>> corpus.summary().n_tokens
        7
        """
        lengths = self._lengths()
        sizes = self.n_documents, self.n_words, self.n_tokens, int(self.counts.nnz)
        moments = float(lengths.mean()), float(lengths.std())
        extremes = int(lengths.min()), int(lengths.max()), int((lengths == 0).sum())
        density = self.counts.nnz / (self.n_documents * self.n_words)
        return CorpusSummary(*sizes, density, *moments, *extremes)

    def top_words(self, n: int = 10) -> list[tuple[str | int, int]]:
        """Rank the words by their frequency.

        Parameters
        ----------
        n : int, default=10
            Largest number of words.

        Returns
        -------
        list of (word, count)
            Most frequent first, ties in column order. Without a vocabulary the word is the
            column number.

        Examples
        --------
        >>> corpus = pb.Corpus([[2, 0, 1], [0, 3, 1]], vocabulary=["urn", "ball", "draw"])
        >>> corpus.top_words(2)
        [('ball', 3), ('urn', 2)]
        """
        totals = np.asarray(self.counts.sum(axis=0)).ravel()
        columns = np.argsort(-totals, kind="stable")[: checks.whole_number("n", n, 0)].tolist()
        words = columns if self.vocabulary is None else self.vocabulary[columns].tolist()
        return list(zip(words, totals[columns].tolist(), strict=True))

    def with_exposure(self, exposure: Any) -> Self:
        """Copy the corpus with known sizes of documents, which multiply their Poisson rates.

        Parameters
        ----------
        exposure : float, array of shape (n_documents,), str, or None
            Positive and finite sizes, in any unit: topic weights of gamma-Poisson models, and the
            prior of their scale, are then per unit. A str is a column of the metadata, or
            ``"total"``: the total count of each document divided by the mean total. None removes
            the exposures.

        Returns
        -------
        Corpus

        Raises
        ------
        InvalidArgumentError, InvalidTypeError
            If there is not one positive, finite number for each document, there is no such column,
            or documents are empty with ``"total"``.

        Examples
        --------
        >>> corpus = pb.Corpus([[2, 0, 1], [0, 3, 1]]).with_exposure([1.0, 2.5])
        >>> corpus[1:].exposure.tolist()
        [2.5]
        """
        sizes = self._sizes(exposure) if isinstance(exposure, str) else exposure
        sizes = rows_by_name("exposure", sizes, self.ids)
        checked = None if sizes is None else checked_exposure(sizes, self.n_documents)
        return self._replaced(exposure=checked)

    def _sizes(self, name: str) -> Any:
        """Exposures by name: a column of the metadata, or totals divided by their mean."""
        if name != "total" or (self.metadata is not None and name in self.metadata):
            return self._rows("exposure", name)
        totals = self._lengths().astype(np.float64)
        if len(empty := np.flatnonzero(totals == 0)):
            raise refusal("no total of", argument("exposure", "total"), len(empty), empty[0])
        return totals / totals.mean()

    def with_metadata(self, metadata: Any) -> Self:
        """Copy the corpus with other metadata.

        Parameters
        ----------
        metadata : DataFrame or mapping of str to sequence, n_documents rows, or None
            A column for each property of the documents. None removes the metadata.

        Returns
        -------
        Corpus

        Raises
        ------
        InvalidArgumentError, InvalidTypeError
            If there is not one row for each document.

        Examples
        --------
        >>> corpus = pb.Corpus([[2, 0, 1], [0, 3, 1]]).with_metadata({"year": [1999, 2024]})
        >>> corpus[1:].metadata["year"].tolist()
        [2024]
        """
        rows = rows_by_name("metadata", metadata, self.ids)
        return self._replaced(metadata=checked_metadata(rows, self.n_documents, self.ids))

    def _with_priors(self, priors: NDArray[np.float64] | None) -> Self:
        """Copy the corpus with prior parameters of each document, shape (n_documents, n)."""
        return self._replaced(_priors=priors)

    def _widened_to(self, n_words: int) -> Self:
        """Extend the columns to `n_words`: bags of ids do not determine the number of words."""
        if not self._has_open_width or self.n_words >= n_words:
            return self
        parts = self.counts.data, self.counts.indices, self.counts.indptr
        counts = sparse.csr_matrix(parts, shape=(self.n_documents, n_words))
        return self._replaced(counts=counts, _has_open_width=False)

    def aligned_to(
        self, vocabulary: Sequence[str] | NDArray[Any], unseen: str = "raise"
    ) -> tuple[Self, int]:
        """Order the columns by another vocabulary, such as that of a model.

        Parameters
        ----------
        vocabulary : sequence of str, shape (n_words_wanted,)
            The words of the new columns. Words that are not in the corpus become empty columns.
        unseen : {"raise", "drop"}, default="raise"
            Whether words of the documents that are not in `vocabulary` are refused or dropped.

        Returns
        -------
        corpus : Corpus
            The same documents over `vocabulary`.
        n_dropped_tokens : int
            Number of dropped tokens.

        Raises
        ------
        InvalidArgumentError
            If the corpus has no vocabulary, or if it holds unseen words and `unseen` is
            "raise".

        Examples
        --------
        >>> corpus = pb.Corpus([[2, 0, 1], [0, 3, 1]], vocabulary=["urn", "ball", "draw"])
        >>> aligned, n_dropped = corpus.aligned_to(["ball", "urn"], unseen="drop")
        >>> aligned.counts.toarray().tolist(), n_dropped
        ([[0, 2], [3, 0]], 2)
        """
        checks.choice("unseen", unseen, ("raise", "drop"))
        if self.vocabulary is None:
            raise InvalidArgumentError("no vocabulary: give one, as Corpus(counts, vocabulary=...)")
        return self._matched(*columns_of_words(vocabulary), unseen)

    def _matched(self, wanted: Words, column_of: dict[str, int], unseen: str) -> tuple[Self, int]:
        """The documents over words in these columns, and the number of tokens dropped."""
        assert self.vocabulary is not None
        if not len(wanted):
            raise InvalidArgumentError("vocabulary holds no words; give at least one")
        if np.array_equal(wanted, self.vocabulary):
            return self, 0
        table = self.counts.tocoo()
        columns = np.array([column_of.get(word, -1) for word in self.vocabulary])[table.col]
        if not (known := columns >= 0).all() and unseen == "raise":
            new = self.vocabulary[np.unique(table.col[~known])].tolist()
            told = counted(len(new), "word"), some(new), argument("unseen", "drop"), wanted[0]
            raise refusal("unseen" if known.any() else "all unseen", *told)
        places, shape = (table.row[known], columns[known]), (self.n_documents, len(wanted))
        counts = sparse.csr_matrix((table.data[known], places), shape=shape)
        counts.sort_indices()
        return self._replaced(counts=counts, vocabulary=wanted), int(table.data[~known].sum())
