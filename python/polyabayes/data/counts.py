"""Counts in canonical form, checked, and what among them may be sums or means of others."""

import os
import re
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping
from itertools import chain, product
from numbers import Integral
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from polyabayes._support import checks
from polyabayes._support.arrays import Integers
from polyabayes._support.output.tables import some
from polyabayes._support.sparse_arrays import checked_sparse
from polyabayes.data.names import CALLS, NAMES, NO_WORD, refusal, say, warn
from polyabayes.exceptions import InvalidCountsError, InvalidTypeError, argument

CountMatrix: TypeAlias = "sparse.csr_matrix[np.int64]"
Words: TypeAlias = NDArray[np.object_]
T = TypeVar("T", bound=Iterable[Any])

# Names of cells, samples and texts; of genes, units of taxonomy and types of mutations; and of what
# percentages are of.
_KINDS = "names of documents", "names of words", "base", "averages", "totals"
_OF_DOCUMENTS, _OF_GENES, _BASE, _MEANS, _ALL = (re.compile("|".join(NAMES[x])) for x in _KINDS)
# Totals by name stand before or behind the name of their group, if they are not of all.
TOTAL = re.compile(f"(?i)(?:{_ALL.pattern})(?![a-z])[ :-]*(.*)|(.+?)[ :-]+(?:{_ALL.pattern})")
# A row is taken for the sum of a block beside it if its counts are one of so many per row. Sums of
# some rows are sought among so few, in so many columns.
MAX_COUNT, _EXPOSURES, _LABELS_LOOKED_AT, _COINCIDENCES = 2**32 - 1, (1e-100, 1e100), 10, 50
_FEW_ROWS = _COLUMNS_LOOKED_AT = 200


def checked_counts(values: Any, name: str) -> CountMatrix:
    """Canonical counts from a sparse matrix or array-like.

    Indices are sorted, without duplicates and explicit zeros. `values` is never changed, but shares
    memory with the result if it is already canonical.
    """
    stored: Any = (checked_sparse if sparse.issparse(values) else count_array)(values, name)
    if stored.ndim != 2:
        kind = {0: "scalar array", 1: "1D array"}.get(stored.ndim, f"{stored.ndim}D array")
        raise refusal("2D", kind=kind, name=name, shape=stored.shape)
    for size, unit in zip(stored.shape, ("sample(s)", "feature(s)"), strict=True):
        if size == 0:
            raise refusal("nothing", unit, stored.shape, name)
    if isinstance(stored, np.ndarray):
        stored = sparse.csr_matrix(stored.astype(float) if stored.dtype == np.float16 else stored)
    stored = stored if stored.format in ("csr", "coo") else stored.tocoo()
    _check_values(stored, name)
    counts: CountMatrix = sparse.csr_matrix(stored, dtype=np.int64, copy=False)
    if not (counts.has_canonical_format and counts.data.all()):
        counts = counts.copy()
        counts.sum_duplicates()
        counts.eliminate_zeros()
    if counts.nnz < stored.nnz:
        _check_values(counts, name)
    return counts


def checked_words(words: Any) -> Words:
    """Words of a vocabulary as an array of str objects; repeated words are refused."""
    remedy = "add up the counts of equal words and name each word once"
    # Vectorisers, transformers and pipelines.
    words = getattr(words, "get_feature_names_out", lambda: words)()
    # Columns by word, as of a gensim Dictionary; those that it skips are called #id.
    words = getattr(words, "token2id", words)
    if isinstance(words, Mapping) and all(isinstance(x, Integral) for x in words.values()):
        word_of = {column: word for word, column in words.items()}
        words = [word_of.get(k, f"#{k}") for k in range(max(word_of, default=-1) + 1)]
    return distinct(checked_labels(words, "vocabulary"), "vocabulary holds the word", remedy)


def distinct(labels: T, holds: str, remedy: str) -> T:
    """Labels of which none stands twice; `holds` begins the message."""
    first: dict[Any, int] = {}
    for place, label in enumerate(labels):
        if first.setdefault(label, place) < place:
            raise refusal("again", holds, label, place, remedy)
    return labels


def warn_of_totals(counts: Any, labels: Any, what: str, others: Any = None) -> None:
    """Warn of rows, called `what`, that are sums or means of others, and of reads of no gene.

    `others` are the labels of the columns; numbers of species are no sums.
    """
    if labels is None:
        return
    words = [not NO_WORD.fullmatch(str(x)) for x in (() if others is None else others)]
    sums = _sums_among(counts if all(words) else counts[:, words], labels)
    # Beside totals, tables tell the numbers of persons or documents.
    sums += [k for k, x in enumerate(labels) if sums and k not in sums and _BASE.fullmatch(str(x))]
    # Means, and what follows them, stand last: a state may be called SD, a rating Average.
    sums += [*range(_MEANS.sub("", "\n".join(map(str, labels))).count("\n") + 1, len(labels))]
    no_gene = labels[[bool(NO_WORD.fullmatch(str(x))) for x in labels]]
    for why, odd in (("count no gene or taxon", no_gene), ("may be sums or means", labels[sums])):
        if len(odd):
            call = CALLS[f"without {what}"].format(odd.tolist())
            warn(f"{what} that {why}: {some(odd.tolist())}; if so, use {call}")


def _sums_among(counts: Any, labels: Any, *, are_levels: bool = False) -> list[int]:
    """Rows that are sums of others, or are called totals and may be.

    A total of all need not be exact, but is the largest. Levels may be names, as of brands: theirs
    is off by rounding, by up to a twentieth. Words are seldom capitals.
    """
    sums, sizes = sums_of(counts), np.asarray(counts.sum(axis=1)).ravel()
    for row, group in _groups_of(labels).items():
        error = abs(2 * sizes[row] - np.delete(sizes, [x for x in sums if x != row]).sum())
        is_named = 20 * error <= sizes[row] if are_levels else not str(labels[row]).islower()
        is_all = is_named and sizes[row] == sizes.max() < sizes.sum()
        is_sum = sizes[row] == sizes[group] if group >= 0 else is_all
        sums += [row] if is_sum and row not in sums else []
    return sums


def sums_of(counts: Any) -> list[int]:
    """Rows that are the sum of all others, of all before them, of a block beside them, or of some.

    Sums are of several columns, and somewhere two counts are added. Those that are found are left
    out of further sums.
    """
    # Numbers by which rows and sums of rows are equal; they may overflow.
    keys = np.asarray(counts @ np.random.default_rng(0).integers(2**62, size=counts.shape[1]))
    left, found = np.flatnonzero(keys), set[int]()
    while True:
        own = keys[left]
        sums = [(row, left[left != row]) for row in left[2 * own == own.sum()]]
        sums += _blocks(counts, keys, left) + _blocks(counts, keys, left[::-1])
        sums += _of_some(counts, keys, left) if 2 < len(left) <= _FEW_ROWS else []
        new = {row for row, block in sums if counts[block].nnz > counts[[row]].nnz > 1}
        if not new:
            return sorted(found)
        found |= new
        left = left[~np.isin(left, [*new])]


def _blocks(counts: Any, keys: NDArray[np.int64], order: NDArray[Any]) -> list[tuple[int, Any]]:
    """Rows beside blocks that end before them in this order, and have their key.

    They are few: counts are too large for a coincidence, or the block is all rows before.
    """
    own = keys[order]
    starts = np.cumsum(own) - own
    by_start, sought = np.argsort(starts), starts - own
    first = np.append(by_start, by_start[-1:])[np.searchsorted(starts, sought, sorter=by_start)]
    found = np.flatnonzero((starts[first] == sought) & (first + 1 < np.arange(len(own))))
    rows = counts[order[found]]
    is_sum = np.asarray(rows.log1p().sum(axis=1)).ravel() > np.log(_COINCIDENCES * len(keys))
    is_sum &= rows.getnnz(axis=1) > 1
    return [(order[k], order[first[k] : k]) for k in found[is_sum]]


def _of_some(counts: Any, keys: NDArray[np.int64], rows: NDArray[Any]) -> list[tuple[int, Any]]:
    """Rows that are sums of some others, wherever they stand, if too large for a coincidence.

    The others are no larger anywhere, and all of these but three at most, or three at most.
    """
    held = counts[rows][:, :: counts.shape[1] // _COLUMNS_LOOKED_AT + 1].toarray()
    sizes, found = np.asarray(counts[rows].log1p().sum(axis=1)).ravel(), list[tuple[int, Any]]()
    # A sum may stand twice.
    are_less = (held[:, None] <= held).all(axis=2) & (keys[rows][:, None] != keys[rows])
    are_sums = (are_less.T @ held >= held).all(axis=1)
    for k in np.flatnonzero(are_sums & (sizes > len(rows) * np.log(2) + np.log(_COINCIDENCES))):
        own = np.append(keys[among := rows[are_less[:, k]]], [0, 0, 0])
        one, other = np.triu_indices(len(own), 1)
        for rest in (np.append(own, -keys[rows[[k]]]).sum(), keys[rows[k]]):
            third = rest - own[one] - own[other]
            for pair in np.flatnonzero(np.isin(third, own))[:1]:
                few = one[pair], other[pair], np.flatnonzero(own == third[pair])[-1]
                parts = np.isin(np.arange(len(among)), few, invert=rest != keys[rows[k]])
                found.append((rows[k], among[parts]))
    return found


def warn_if_turned(words: Any, ids: Any) -> None:
    """Warn of words that are named or numbered as documents are, or documents as words are."""
    if words is None or ids is None:
        return
    genes = {*NAMES["genes"]}.intersection(x.lower() for x in ids)
    words, ids = ([*labels[:_LABELS_LOOKED_AT]] for labels in (words, ids))
    are_counted = not any(map(str.isdigit, ids)) and words == [*map(str, range(1, len(words) + 1))]
    # Terms of R's tm have three letters or more.
    are_counted |= all(map(str.isdigit, words)) and all(re.fullmatch("[a-z]{3,}", x) for x in ids)
    kinds = (words, _OF_DOCUMENTS, are_counted), (ids, _OF_GENES, len(genes) > 1)
    for what, (labels, pattern, is_told) in zip(("words", "documents"), kinds, strict=True):
        if len(labels) > 1 and (is_told or all(map(pattern.fullmatch, labels))):
            warn(say("turned", what, labels[0], argument("transpose", True)))


def columns_of_words(vocabulary: Any) -> tuple[Words, dict[str, int]]:
    """Checked words, and the column of each."""
    words = checked_words(vocabulary)
    return words, {word: column for column, word in enumerate(words)}


def checked_labels(labels: Any, name: str) -> Words:
    """Check strings, as an array of str objects of shape (n_labels,)."""
    # Some sequences, such as tomotopy's words, have no __iter__, only __getitem__.
    if checks.is_single(labels) or not {"__iter__", "__getitem__"} & {*dir(labels)}:
        column = "; Corpus.from_table takes the name of a column" if name == "ids" else ""
        raise InvalidTypeError(f"{name} must be a sequence of str, got {labels!r:.100}{column}")
    entries = list(labels)
    if odd := [(k, x, type(x).__name__) for k, x in enumerate(entries) if not isinstance(x, str)]:
        raise InvalidTypeError(say("no str", name, *odd[0]))
    # Lone surrogates, such as Python makes of bytes of a file name that are no UTF-8.
    if half := re.search("(?m)^.*?[\ud800-\udfff]", "\n".join(entries)):
        raise refusal("half", name, half[0])
    return np.array([str(label) for label in entries], dtype=object)


def words_of(vocabulary: Any, n_words: int, origin: str) -> Words | None:
    """The words of columns, from a sequence or from a fitted vectoriser.

    Vectorisers, transformers and pipelines give ``get_feature_names_out()``. There must be one
    unique word for each column; error messages call the owner of the columns `origin`.
    """
    if vocabulary is None:
        return None
    if len(words := checked_words(vocabulary)) != n_words:
        raise refusal("width", len(words), origin, n_words)
    return words


def checked_exposure(values: Any, n_documents: int) -> NDArray[np.float64]:
    """Check one positive, finite size per document; a single number is for all documents."""
    exposure = checks.vector("exposure", values, n_documents)
    if len(bad := np.flatnonzero(~((exposure >= _EXPOSURES[0]) & (exposure <= _EXPOSURES[1])))):
        document = int(bad[0])
        rule = say("exposure", document, exposure[document], *_EXPOSURES)
        raise checks.wrong("exposure", float(exposure[document]), rule, _EXPOSURES)
    return exposure


def values_of_frame(frame: Any, name: str) -> Any:
    """The counts of a pandas DataFrame as a sparse matrix or an array."""
    import pandas

    if frame.size and all(getattr(x, "fill_value", None) == 0 for x in frame.dtypes):
        return frame.sparse.to_coo()
    if not any(pandas.api.types.is_extension_array_dtype(dtype) for dtype in frame.dtypes):
        return frame.to_numpy()
    try:
        return frame.to_numpy(dtype=np.float64, na_value=np.nan)
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidTypeError(say("no number", name, error)) from error


def count_array(values: Any, name: str) -> NDArray[Any]:
    """An array of numbers in the byte order of the machine, from any array-like."""
    if np.ma.is_masked(values):
        raise InvalidCountsError(say("masked", name))
    try:
        array = np.asarray(values)
        are_objects = array.dtype.kind == "O" and array.ndim
        # Integers of Python stay exact.
        exact = np.array(array.tolist()) if are_objects else array
        array = array.astype(np.float64) if are_objects and exact.dtype.kind in "OU" else exact
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidTypeError(say("no number", name, error)) from error
    if isinstance(values, (str, bytes, os.PathLike)):
        raise InvalidTypeError(say("a path", name=name, path=f"{os.fspath(values)!r:.60}"))
    if array.dtype.kind not in "biufc":
        raise InvalidTypeError(say("no counts", name, type(values).__name__, array.dtype))
    return array.astype(array.dtype.newbyteorder("="), copy=False)


def _check_values(stored: Any, name: str) -> None:
    def place(position: int) -> str:
        cells = stored.tocoo()
        return f"document (row) {cells.row[position]}, word (column) {cells.col[position]}"

    check_values(stored.data, name, MAX_COUNT, place)


def check_values(values: NDArray[Any], name: str, most: int, place: Callable[[int], str]) -> None:
    """Refuse numbers that are no counts from 0 to `most`; `place` describes that of one."""
    if not values.size or (
        values.dtype.kind in "biu" and 0 <= values.min() <= values.max() <= most
    ):
        return
    if values.dtype.kind == "c":
        raise refusal("complex", name, values.dtype)
    largest, correct = f"2**{most.bit_length()} - 1", "correct the value or leave it out"
    # The largest count itself is no float.
    above = np.float64(most + 1) if values.dtype.kind == "f" else most + 1
    are_bad: Any = np.isnan, np.isinf, lambda x: x < 0, lambda x: x % 1 > 0, lambda x: x >= above
    remedies = [CALLS["not observed"], correct, correct, CALLS["fractions"], correct]
    for told, is_wrong, remedy in zip(CALLS["bad"].split("|"), are_bad, remedies, strict=True):
        if (wrong := is_wrong(values)).any():
            position = int(np.argmax(wrong))
            told = told.format(name, largest, values[position], place(position))
            remedy += told_of_thousands(values[wrong][:_LABELS_LOOKED_AT].tolist())
            raise InvalidCountsError(f"{told}: {remedy}")


def told_of_thousands(values: Iterable[float]) -> str:
    """What reads fractions that may be thousands: pandas reads 1.365 of 1365 as a fraction."""
    shown = ",".join(str(x) for x in values if x % 1)
    are_read = re.fullmatch(r"(?=.*\.\d{3}\b)([1-9]\d?\d?\.\d{1,3},?)+", shown)
    return "; if points divide thousands, read the file by thousands='.'" * bool(are_read)


def canonical_cells(coordinates: Integers, counts: Integers) -> tuple[Integers, Integers]:
    """Cells in lexicographic order; equal cells are summed, empty cells dropped."""
    if not (occupied := counts > 0).all():
        coordinates, counts = coordinates[occupied], counts[occupied]
    if not len(counts):
        return coordinates, counts
    # lexsort is many times slower on keys that are not contiguous.
    order = np.lexsort(np.ascontiguousarray(coordinates.T[::-1]))
    coordinates, counts = coordinates[order], counts[order]
    first = np.ones(len(counts), dtype=bool)
    first[1:] = (coordinates[1:] != coordinates[:-1]).any(axis=1)
    return np.ascontiguousarray(coordinates[first]), np.add.reduceat(counts, np.flatnonzero(first))


def totals(coordinates: Integers, counts: Integers, labels: Any) -> dict[int, list[str | None]]:
    """Levels by axis that are sums of others, at equal levels of the other axes; None is a blank.

    A row may be the total of all axes, by name or blank, and is told alone. Rows that are totals of
    another axis, by name or blank, may be left out. Axes do not count whose levels each stand
    beside one level, as numbers of rows, or that have one level beside the largest, and beside no
    other, as the blank in a row of totals.
    """
    import pandas

    found, frame = defaultdict[int, list[Any]](list), pandas.DataFrame(coordinates)
    of_all = [[k for k, group in _groups_of(x).items() if group < 0] for x in labels]
    named = np.stack([*map(np.isin, coordinates.T, of_all)], axis=1)
    ways = [named & False, *(x for x in (named, named | (coordinates < 0)) if x.any())]
    if (is_grand := ways[-1].all(axis=1)).any() and 2 * counts[is_grand].sum() == counts.sum():
        own = coordinates[is_grand.argmax()]
        return {k: [None if own[k] < 0 else str(x[own[k]])] for k, x in enumerate(labels)}
    for axis, are_totals in product(range(len(labels)), ways):
        levels, names = coordinates[:, axis] + 1, [None, *map(str, labels[axis])]
        known = (counts > 0) & ~np.delete(are_totals, axis, axis=1).any(axis=1)
        largest = levels == np.argmax(np.bincount(levels[known], counts[known], 1))
        kept = frame.nunique() < frame.groupby(levels).nunique().sum()
        is_own = coordinates == coordinates[largest].max(axis=0, initial=-1)
        kept &= ~(is_own == largest[:, None]).all(axis=0)
        cells = (frame * kept).groupby([*frame], sort=False).ngroup().to_numpy()
        own = counts[known], (levels[known], cells[known])
        # Sums are of several columns: a single one is taken twice.
        held = [sparse.csr_matrix(own, (len(names), len(cells)))] * (1 + (not cells.any()))
        sums = _sums_among(sparse.hstack(held, "csr"), names, are_levels=True)
        found[axis] += [names[x] for x in sums if names[x] not in found[axis]]
    return {axis: own for axis, own in found.items() if own}


def _groups_of(labels: Iterable[Any]) -> dict[int, int]:
    """Places of labels that are called totals: each with that of its group, -1 if it is of all."""
    place = {str(x): k for k, x in enumerate(labels)}
    held = ((k, TOTAL.fullmatch(x.strip(" :"))) for x, k in place.items())
    groups = {k: found[1] or found[2] or "" for k, found in held if found}
    return {k: place[x] if x else -1 for k, x in groups.items() if not x or x in place}


def warn_of_sums(frame: Any, read: Any, told: Any, values: Any, call: Callable[[str], str]) -> None:
    """Warn of levels of columns that are sums of others of theirs, and of blanks that are.

    Of the columns that are `read`, these are among `told`; others are labels that are left out.
    `call` makes code of the change to the table.
    """
    left = [x for x in frame.select_dtypes(["object", "string", "category"]) if x not in read]
    left = [x for x in left if all(isinstance(value, Hashable) for value in frame[x])]
    left = [x for x in left if 2 * frame[x].nunique() <= len(frame)]
    held, odd = {x: frame[x].factorize() for x in (*read, *left)}, dict[Any, list[Any]]()
    for names in filter(len, ([*told], [*held] * bool(left))):
        codes, labels = zip(*(held[x] for x in names), strict=True)
        found = totals(np.stack(codes, axis=1), values, labels)
        odd |= {names[k]: own for k, own in found.items() if names[k] in (*told, *left)}
    if odd:
        blank = [x for x, own in odd.items() if None in own]
        code = f".dropna(subset={blank})" * bool(blank)
        if named := {x: rest for x, y in odd.items() if (rest := [z for z in y if z is not None])}:
            code += f".loc[lambda rows: ~rows[{[*named]}].astype(str).isin({named}).any(axis=1)]"
        levels = [x or "(blank)" for x in chain(*odd.values())]
        warn(say("sums", some(levels), some([*odd]), call(code)))
