"""Selection of documents and words of a corpus, and groups of documents: by author, or by time."""

from collections.abc import Hashable, Iterator, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from polyabayes._support import checks
from polyabayes._support.output.frames import DataFrame
from polyabayes._support.random import RandomState, random_generator
from polyabayes.data.conversion.texts import stop_words_of
from polyabayes.data.counts import CountMatrix, Words, checked_labels
from polyabayes.data.names import CALLS, NAMES, refusal, say
from polyabayes.data.naming import rows_by_name
from polyabayes.exceptions import InvalidArgumentError, InvalidTypeError, argument


class Selectable:
    """Selection of documents by number, name or mask, at random, by groups, and by their words."""

    counts: CountMatrix
    vocabulary: Words | None
    ids: Words | None
    exposure: NDArray[np.float64] | None
    metadata: DataFrame | None
    # Prior parameters of each document, if a call gives them; a row for each row of the counts.
    _priors: NDArray[np.float64] | None = None

    def _replaced(self, **parts: Any) -> Self:
        """Copy the corpus with some parts replaced, unchecked."""
        corpus = type(self).__new__(type(self))
        corpus.__dict__.update({**self.__dict__, **parts})
        return corpus

    def __len__(self) -> int:
        return int(self.counts.shape[0])

    def __iter__(self) -> Iterator[Self]:
        """Iterate over the documents, each as a corpus."""
        for row in range(len(self)):
            yield self[[row]]

    def __getitem__(self, rows: Any) -> Self:
        """Select documents by name, slice, integer array or boolean mask.

        Parameters
        ----------
        rows : str, sequence of str, slice, or array of int or bool
            The documents in the new order, as names from `ids` or as numbers, or a mask of shape
            (n_documents,).

        Returns
        -------
        Corpus
            The selected documents over the same vocabulary.
        """
        if isinstance(rows, tuple) and len(rows) == 2 and rows[1] is Ellipsis:
            rows = rows[0]
        selection = self._selection(rows)
        metadata = None if self.metadata is None else self.metadata.iloc[selection]
        if metadata is not None and self.ids is None:
            metadata = metadata.reset_index(drop=True)
        parts = {name: getattr(self, name) for name in ("ids", "exposure", "_priors")}
        parts = {name: None if x is None else x[selection] for name, x in parts.items()}
        return self._replaced(counts=self.counts[selection], metadata=metadata, **parts)

    def _selection(self, rows: Any) -> NDArray[np.int64]:
        n_documents, rows = len(self), [rows] if isinstance(rows, str) else rows
        selection = np.asarray(np.arange(n_documents)[rows] if isinstance(rows, slice) else rows)
        if selection.ndim == 1 and selection.size and selection.dtype.kind in "UO":
            selection = self._rows_of(selection)
        if selection.ndim != 1 or (selection.size and selection.dtype.kind not in "iub"):
            raise InvalidTypeError(say("indexed", rows))
        is_mask, last = selection.dtype.kind == "b", n_documents - 1
        outside = selection[(selection < -n_documents) | (selection > last)]
        if len(selection) != n_documents if is_mask else len(outside):
            told = CALLS["mask" if is_mask else "no document"]
            raise InvalidArgumentError(told.format(n_documents, len(selection), last, *outside[:1]))
        selection = np.arange(n_documents)[selection] if selection.size else selection
        if not selection.size:
            raise InvalidArgumentError("the selection holds no documents; choose at least one")
        return selection

    def _rows_of(self, names: NDArray[Any]) -> NDArray[Any]:
        """Numbers of the documents with these names; other selections unchanged."""
        if not all(isinstance(name, str) for name in names):
            return names
        if self.ids is None:
            raise InvalidArgumentError(f"there is no document {names[0]!r}: the corpus has no ids")
        row_of = {name: row for row, name in reversed(list(enumerate(self.ids)))}
        for name in map(str, names):
            if name not in row_of:
                raise InvalidArgumentError(f"no document has the id {name!r}")
            if (self.ids == name).sum() > 1:
                raise InvalidArgumentError(f"several documents have the id {name!r}; use numbers")
        return np.array([row_of[name] for name in names])

    def split(
        self,
        test_size: float = 0.2,
        random_state: RandomState = None,
        *,
        stratify: Any = None,
        groups: Any = None,
        times: Any = None,
    ) -> tuple[Self, Self]:
        """Split the documents into a training part and a test part, at random or by time.

        Parameters
        ----------
        test_size : float or int, default=0.2
            Share of the documents in the test part, rounded up (float in (0, 1)), or their number
            (int).
        random_state : None, int, RandomState, Generator or SeedSequence, default=None
            Seed.
        stratify : str or array of shape (n_documents,), optional
            A column of `metadata`, or labels: both parts get the same shares of each label, up to
            rounding.
        groups : str or array of shape (n_documents,), optional
            A column of `metadata`, or labels: documents of one group stay together. Groups are
            added at random until the test part has at least `test_size` documents.
        times : str or array of shape (n_documents,), optional
            A column of `metadata`, numbers, or dates as 2008-01-31: the test part is the latest
            `test_size` documents, or slightly more, so that equal times stay together.

        Returns
        -------
        train, test : Corpus
            Both keep the order of the documents.

        Raises
        ------
        InvalidArgumentError
            If `test_size` is not a share or number, or leaves a part empty, labels or times are
            missing, or more than one of `stratify`, `groups` and `times` is given.

        Examples
        --------
        >>> corpus = pb.Corpus([[2, 0, 1], [0, 3, 1]], vocabulary=["urn", "ball", "draw"])
        >>> train, test = corpus.split(test_size=1, random_state=0)
        >>> train.n_documents, test.n_documents
        (1, 1)
        """
        ways = {"stratify": stratify, "groups": groups, "times": times}
        asked = [argument(name) for name, value in ways.items() if value is not None]
        if len(asked) > 1:
            raise InvalidArgumentError(f"{' and '.join(asked)} exclude each other; give one")
        n_test = _number_of_test_documents(test_size, len(self))
        order = random_generator(random_state).permutation(len(self))
        in_test = np.zeros(len(self), dtype=bool)
        if times is not None:
            in_test = _latest(self._ranks_of(times), n_test)
        elif groups is not None:
            in_test = _whole_groups(self._labels_of("groups", groups), order, n_test)
        elif stratify is not None:
            in_test[_equal_shares(self._labels_of("stratify", stratify), order, n_test)] = True
        else:
            in_test[order[:n_test]] = True
        return self[~in_test], self[in_test]

    def filter(
        self,
        *,
        min_df: float = 1,
        max_df: float = 1.0,
        stop_words: str | Sequence[str] = (),
        min_tokens: int = 0,
        words: Sequence[str] | None = None,
        min_documents: int = 0,
        max_share: float = 1.0,
    ) -> Self:
        """Drop words by frequency, and then short documents.

        Parameters
        ----------
        min_df : int or float, default=1
            Smallest number of documents with a word; a float is a share of the documents.
        max_df : int or float, default=1.0
            Largest number of documents with a word; a float is a share of the documents.
        stop_words : str or sequence of str, optional
            Words to drop, or a language, such as ``"english"``.
        min_tokens : int, default=0
            Smallest number of tokens of a document, after words are dropped.
        words : sequence of str, optional
            Words to keep; those that the corpus does not have are ignored. Default: all.
        min_documents : int, default=0
            Smallest number of documents with a word; with `min_df`, both hold.
        max_share : float, default=1.0
            Largest share of the documents with a word; with `max_df`, both hold.

        Returns
        -------
        Corpus

        Raises
        ------
        InvalidArgumentError
            If no word or no document is left.

        Examples
        --------
        >>> corpus = pb.Corpus([[2, 0, 1], [0, 3, 1]], vocabulary=["urn", "ball", "the"])
        >>> corpus.filter(max_df=1).vocabulary.tolist()
        ['urn', 'ball']
        """
        n_documents = np.bincount(self.counts.indices, minlength=self.counts.shape[1])
        least = number_of_documents("min_df", min_df, len(self))
        most = number_of_documents("max_df", max_df, len(self))
        least = max(least, checks.whole_number("min_documents", min_documents, least=0))
        if checks.not_negative_number("max_share", max_share) > 1:
            raise checks.wrong("max_share", max_share, "must be at most 1, a share of documents")
        is_kept = (n_documents >= least) & (n_documents <= min(most, max_share * len(self)))
        stop_words = stop_words_of(stop_words) if isinstance(stop_words, str) else stop_words
        stop_words = checks.entries("stop_words", () if stop_words is None else stop_words)
        if words is not None:
            is_kept &= self._are_among("words", words)
        if stop_words:
            is_kept &= ~self._are_among("stop_words", stop_words)
        if not is_kept.any():
            raise InvalidArgumentError("the filter leaves no words; relax it")
        kept = None if self.vocabulary is None else self.vocabulary[is_kept]
        found = self._replaced(counts=self.counts[:, is_kept], vocabulary=kept)
        shortest = checks.whole_number("min_tokens", min_tokens, least=0)
        if not ((lengths := np.asarray(found.counts.sum(axis=1)).ravel()) >= shortest).any():
            raise InvalidArgumentError("the filter leaves no documents; relax it")
        return found if (lengths >= shortest).all() else found[lengths >= shortest]

    def _are_among(self, name: str, words: Sequence[str]) -> NDArray[np.bool_]:
        """Which words of the corpus are in the list that the argument `name` gives."""
        if self.vocabulary is None:
            raise InvalidArgumentError(f"{argument(name)}: the corpus has no vocabulary")
        listed = set(checked_labels(words, name))
        return np.array([word in listed for word in self.vocabulary], dtype=bool)

    def duplicated(self, by: str = "words", other: "Selectable | None" = None) -> NDArray[np.bool_]:
        """Find duplicate documents.

        Parameters
        ----------
        by : {"words", "ids"}, default="words"
            Whether documents are equal if their counts are, or if their ids are.
        other : Corpus, optional
            Documents to compare with, such as the training documents; default: earlier documents of
            this corpus. Words are matched by name if both have a vocabulary, else by column.

        Returns
        -------
        ndarray of bool, shape (n_documents,)
            True for duplicates; ``corpus[~corpus.duplicated()]`` drops them.

        Raises
        ------
        InvalidArgumentError
            If there are no ids, or `other` has another number of columns and no vocabulary.

        Examples
        --------
        >>> pb.Corpus([[2, 0], [0, 1], [2, 0]]).duplicated().tolist()
        [False, False, True]
        """
        checks.choice("by", by, ("words", "ids"))
        other = _over_words_of(self, other) if by == "words" and other is not None else other
        keys, seen = [*self._keys(by)], set() if other is None else {*other._keys(by)}
        first = {key: row for row, key in reversed([*enumerate(keys)])} if other is None else {}
        return np.array([x in seen or first.get(x, k) < k for k, x in enumerate(keys)], dtype=bool)

    def _keys(self, by: str) -> Iterator[Any]:
        if by == "ids":
            if self.ids is None:
                raise InvalidArgumentError("the corpus has no ids: give them, or by='words'")
            yield from self.ids
            return
        counts = self.counts
        for start, stop in zip(counts.indptr[:-1], counts.indptr[1:], strict=True):
            yield counts.indices[start:stop].tobytes(), counts.data[start:stop].tobytes()

    def _rows(self, name: str, given: Any) -> Any:
        """Values of the documents in their order: given, or a column of the metadata by name."""
        if not isinstance(given, str):
            return rows_by_name(name, given, self.ids)
        own: Any = () if self.metadata is None else self.metadata.columns
        if self.metadata is None or given not in own:
            raise refusal("no metadata", argument(name, given), ", ".join(map(repr, own)) or "none")
        return self.metadata[given]

    def _values_of(self, name: str, given: Any) -> NDArray[Any]:
        """One value for each document: given, or a column of the metadata."""
        if np.shape(values := self._rows(name, given)) != (len(self),):
            raise checks.wrong(name, given, say("one label", len(self), np.shape(values)))
        found = np.fromiter(values, dtype=object, count=len(self))
        for row, value in enumerate(found):
            if not isinstance(value, str) and str(value) in NAMES["no label"]:
                raise refusal("no label", argument(name), row, value)
        return found

    def _labels_of(self, name: str, labels: Any) -> NDArray[np.int64]:
        """A number for each distinct label of the documents, in order of appearance."""
        known: dict[Hashable, int] = {}
        return np.array([known.setdefault(x, len(known)) for x in self._values_of(name, labels)])

    def _ranks_of(self, times: Any) -> NDArray[np.int64]:
        """Number of earlier documents, for each document."""
        values = self._values_of("times", times)
        try:
            # Text dates in ISO 8601 sort by time; other formats are refused.
            kind = np.str_ if all(isinstance(value, str) for value in values) else None
            known = values.astype(kind).astype("datetime64[us]") if kind else values
            return np.searchsorted(np.sort(known), known)
        except (TypeError, ValueError) as error:
            raise refusal("times", argument("times"), error) from None


def _over_words_of(corpus: Any, other: Any) -> Any:
    """Documents of `other` without further words, over the words of `corpus`."""
    if not isinstance(other, type(corpus)):
        raise InvalidTypeError(f"other must be a Corpus, got {type(other).__name__}")
    if corpus.vocabulary is not None and other.vocabulary is not None:
        found = other.aligned_to(corpus.vocabulary, "drop")[0]
        lengths, before = (part.counts.sum(axis=1) for part in (found, other))
        is_whole = np.asarray(lengths == before).ravel()
        return found[is_whole] if is_whole.any() else None
    if corpus.counts.shape[1] != other.counts.shape[1]:
        raise InvalidArgumentError(f"{argument('other')} has other words: give both vocabularies")
    return other


def number_of_documents(name: str, value: Any, n_documents: int) -> float:
    """A bound of document frequencies, from a number or a share of documents."""
    if isinstance(value, (float, np.floating)) and 0 <= value <= 1:
        return float(value) * n_documents
    return checks.whole_number(name, value, least=0)


def _number_of_test_documents(test_size: float, n_documents: int) -> int:
    is_number = isinstance(test_size, (int, np.integer)) and not isinstance(test_size, bool)
    share = 0.0 if is_number else checks.share("test_size", test_size)
    n_test = int(test_size) if is_number else int(np.ceil(share * n_documents))
    if not 0 < n_test < n_documents:
        raise refusal("one part", test_size, n_test, n_documents)
    return n_test


def _whole_groups(groups: NDArray[np.int64], order: NDArray[Any], n_test: int) -> NDArray[np.bool_]:
    """Test documents: groups by first appearance in `order`, until there are enough."""
    drawn, first = np.unique(groups[order], return_index=True)
    by_draw = drawn[np.argsort(first)]
    n_groups = int(np.searchsorted(np.cumsum(np.bincount(groups)[by_draw]), n_test)) + 1
    if n_groups >= len(by_draw):
        raise refusal("groups", argument("groups"), len(by_draw), n_test)
    return np.isin(groups, by_draw[:n_groups])


def _latest(ranks: NDArray[np.int64], n_test: int) -> NDArray[np.bool_]:
    """Test documents: the latest; equal times stay together."""
    in_test: NDArray[np.bool_] = ranks >= np.sort(ranks)[-n_test]
    if in_test.all():
        raise refusal("same time", argument("times"), n_test)
    return in_test


def _equal_shares(strata: NDArray[np.int64], order: NDArray[Any], n_test: int) -> NDArray[Any]:
    """Test documents: the share of each label, by largest remainders."""
    exact = np.bincount(strata) * (n_test / len(strata))
    taken = np.floor(exact).astype(np.int64)
    taken[np.argsort(taken - exact, kind="stable")[: (n_test - int(taken.sum()))]] += 1
    return np.concatenate([order[strata[order] == label][:n] for label, n in enumerate(taken)])
