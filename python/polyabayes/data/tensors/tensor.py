"""Count tensors: sparse counts over any number of named axes."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np

from polyabayes._support import checks
from polyabayes._support.arrays import Integers
from polyabayes._support.output.frames import DataFrame, data_frame, import_pandas
from polyabayes._support.output.tables import columns_of, counted, html_table, some
from polyabayes.data.conversion import frames, sources
from polyabayes.data.corpus import as_corpus
from polyabayes.data.counts import canonical_cells, totals, warn_of_sums
from polyabayes.data.names import CALLS, refusal, say, warn
from polyabayes.data.tensors import cells as _cells, factors as _factors
from polyabayes.data.tensors.cells import Axes, AxisLabels, LabelsLike, Shape
from polyabayes.data.tensors.non_answers import warn_of_answers, without_missing
from polyabayes.exceptions import BudgetExceededError, InvalidTypeError, argument

# Cells above which factors that say the same in each of them are hardly two; labels of an axis.
_FEW_CELLS, _LABELS_SHOWN = 10, 5


@dataclass(frozen=True, eq=False, repr=False, init=False)
class CountTensor:
    """Counts over named axes, stored by non-zero cells.

    A tensor is immutable. It is made by :meth:`from_dense`, :meth:`from_coo`, :meth:`from_frame`,
    :meth:`from_corpus` or :func:`polyabayes.read_tensor`. Memory is proportional to the number of
    non-zero cells.

    Attributes
    ----------
    coordinates : ndarray of int64, shape (n_cells, n_axes)
        Coordinates of the non-zero cells, counted from 0, in lexicographic order; -1 if the value
        on an axis is missing. Read-only.
    counts : ndarray of int64, shape (n_cells,)
        Positive counts of these cells. Read-only.
    shape : tuple of int, length n_axes
        Size of each axis, including levels that do not occur.
    axes : tuple of str, length n_axes
        Name of each axis: letters of any script, digits and underscores, as nodes of graphs.
    labels : tuple of (ndarray of str objects, shape (size,), or None), length n_axes
        Unique names of the levels of each axis, or None for an axis without labels. Read-only.

    Examples
    --------
    >>> tensor = CountTensor.from_dense([[3, 0], [1, 2]], axes=["hair", "eye"])
    >>> tensor
    <CountTensor: hair 2 x eye 2, 3 cells, total 6>
    >>> tensor.marginal("eye").to_dense()
    array([4, 2])
    """

    coordinates: Integers
    counts: Integers
    shape: tuple[int, ...]
    axes: tuple[str, ...]
    labels: AxisLabels

    def __init__(self) -> None:
        raise InvalidTypeError(CALLS["made by"])

    @classmethod
    def _from_checked(
        cls, coordinates: Integers, counts: Integers, shape: Shape, axes: Axes, labels: AxisLabels
    ) -> CountTensor:
        tensor = cls.__new__(cls)
        for array in (coordinates, counts, *labels):
            if array is not None:
                array.flags.writeable = False
        # Bypasses the frozen attributes.
        held = {"coordinates": coordinates, "counts": counts, "shape": shape}
        vars(tensor).update(held, axes=axes, labels=labels)
        return tensor

    @classmethod
    def from_coo(
        cls,
        coordinates: Any,
        counts: Any,
        axes: Sequence[str],
        shape: Sequence[int] | None = None,
        labels: LabelsLike = None,
        *,
        unknown: int | None = None,
    ) -> CountTensor:
        """Make a tensor from coordinates and counts.

        Parameters
        ----------
        coordinates : array-like of int, shape (n_entries, n_axes)
            Coordinates of the cells, counted from 0, in any order.
        counts : array-like of int, shape (n_entries,)
            Counts of the cells. Zeros are dropped, and counts of equal coordinates are summed.
            Floats must be integers in the range where their type is exact.
        axes : sequence of str, length n_axes
            Name of each axis.
        shape : sequence of int, length n_axes, optional
            Size of each axis. Default: the number of its labels, or the largest coordinate + 1.
        labels : mapping or sequence, optional
            Unique names of the levels: a mapping from axes to sequences of str, or a sequence with
            an entry (sequence of str, or None) for each axis.
        unknown : int, optional
            Negative coordinate that marks a missing value on an axis.

        Returns
        -------
        CountTensor
            The counts.

        Raises
        ------
        InvalidCountsError
            If a count is negative, fractional, NaN or infinite, the total is above 2**63 - 1, or a
            cell is outside the shape.
        InvalidArgumentError
            If axes, shape and labels do not fit one another.
        InvalidTypeError
            If coordinates or counts are not numbers.

        Examples
        --------
        >>> CountTensor.from_coo([[0, 2], [1, 0], [0, 2]], [1, 4, 1], axes=["i", "j"]).to_dense()
        array([[0, 0, 2],
               [4, 0, 0]])
        """
        names = _cells.checked_axes(axes)
        cells = _cells.checked_coordinates(coordinates, names)
        if unknown is not None:
            checks.whole_number("unknown", unknown, least=-(2**63), most=-1)
            cells = np.where(cells == unknown, -1, cells)

        def place(position: int) -> str:
            return f"cell {position}, coordinates {tuple(cells[position].tolist())}"

        checked = _cells.checked_cell_counts(counts, len(cells), "counts", place)
        return cls._from_cells(cells, checked, names, shape, labels, 0 if unknown is None else -1)

    @classmethod
    def _from_cells(
        cls, cells: Integers, counts: Integers, axes: Axes, shape: Any, labels: Any, least: int
    ) -> CountTensor:
        """Make a tensor from checked counts at unchecked cells."""
        names = _cells.checked_axis_labels(labels, axes)
        sizes = _cells.checked_shape(shape, cells, axes, names)
        _cells.refuse_outside(cells, sizes, axes, least)
        return cls._from_checked(*canonical_cells(cells, counts), sizes, axes, names)

    @classmethod
    def from_dense(cls, array: Any, axes: Sequence[str], labels: LabelsLike = None) -> CountTensor:
        """Make a tensor from an array of counts.

        Parameters
        ----------
        array : array-like of int, sparse matrix or DataFrame
            The counts; its dimensions are the axes. Columns of a DataFrame, and its index unless it
            is the default index, become labels.
        axes : sequence of str
            Name of each dimension.
        labels : mapping or sequence, optional
            As for :meth:`from_coo`.

        Returns
        -------
        CountTensor
            The counts.

        Raises
        ------
        InvalidCountsError, InvalidArgumentError, InvalidTypeError
            As for :meth:`from_coo`.

        Examples
        --------
        >>> CountTensor.from_dense([5, 0, 1], ["eye"], {"eye": ["brown", "blue", "green"]})
        <CountTensor: eye 3, 2 cells, total 6>
        """
        names = _cells.checked_axes(axes)
        if sources.is_anndata(array):
            raise InvalidTypeError("array is an AnnData: make it a tensor by from_corpus")
        if hasattr(array, "columns") and labels is None:
            labels = [frames.row_names(array), [*map(frames.name_of, array.columns)]]
        shape, coordinates, values = _cells.non_zeros(array)
        if len(shape) != len(names):
            raise refusal("dimensions", len(shape), ", ".join(names))

        def place(position: int) -> str:
            return f"cell {tuple(coordinates[position].tolist())}"

        counts = _cells.checked_cell_counts(values, len(values), "array", place)
        if sums := totals(coordinates, counts, array.axes) if hasattr(array, "iloc") else {}:
            held = {
                k: [x for x in array.axes[k].tolist() if str(x) in own] for k, own in sums.items()
            }
            odd = {("index", "columns")[k]: own for k, own in held.items()}
            call = f"polyabayes.CountTensor.from_dense(frame.drop(**{odd}), {[*names]})"
            warn(say("sums", some([*chain(*odd.values())]), some([names[k] for k in sums]), call))
        return cls._from_cells(coordinates, counts, names, shape, labels, 0)

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        axes: Sequence[str] | None = None,
        counts: str | None = None,
        *,
        missing: Sequence[Any] | Mapping[str, Sequence[Any]] | None = None,
    ) -> CountTensor:
        """Make a tensor from a table of observations.

        Parameters
        ----------
        frame : DataFrame, or table of polars or pyarrow
            A row per observation, or a row and a count per kind of observation. Missing values are
            allowed. Levels of the index of a DataFrame with one column, or that `axes` name, are
            columns.
        axes : sequence of str, optional
            The columns that are axes; default: all but `counts`. Labels are the distinct values as
            text, sorted, or the categories of a categorical column in their order, including
            unused ones. Characters that are not allowed in a graph become ``_``: column
            ``Sepal.Length`` is axis ``Sepal_Length``.
        counts : str, optional
            The column of counts. Default: a column outside `axes` called ``count``, ``counts``,
            ``freq``, ``frequency``, ``n`` or ``value``; else each row counts once. Without `axes`,
            a column of whole numbers beside labels that no two rows share is refused, and so are
            shares and measured numbers as axes.
        missing : sequence, or mapping of str to sequences, optional
            Values that mark missing ones, such as ``[9, "No answer"]``, in all axes, or those of
            some columns: ``{"trust": [77, 88], "vote": [7]}``. An empty list says that only blanks
            are.

        Returns
        -------
        CountTensor
            The counts, summed over equal rows.

        Raises
        ------
        InvalidCountsError
            As for :meth:`from_coo`; the message names the row.
        InvalidArgumentError
            If there is no such column, a column has no values, or a row has no count.
        InvalidTypeError
            If `frame` is not a table.

        Warns
        -----
        DataWarning
            If an unused column may hold the counts, answers may mark missing values or differ only
            in case or blanks, blanks may be answers, a row may be a further header, or a level
            counts as much as others of its axis together, in each combination of the others, or is
            called a total and nearly does, or rows that are blank on an axis have the sums of the
            others.

        Examples
        --------
        >>> import pandas as pd
        >>> frame = pd.DataFrame({"sex": ["f", "m", "f"], "rings": [9, 15, 9]})
        >>> tensor = CountTensor.from_frame(frame)
        >>> tensor
        <CountTensor: sex 2 x rings 2, 2 cells, total 3>
        >>> tensor.labels[1].tolist()
        ['9', '15']

        Categories keep their order:

        >>> vote = pd.Categorical(["no", "yes", "Refused"], ["yes", "no", "Refused"])
        >>> asked = pd.DataFrame({"vote": vote})
        >>> CountTensor.from_frame(asked, missing=["Refused"]).labels[0].tolist()
        ['yes', 'no']
        """
        table, axes = _factors.checked_frame(frame), [axes] if isinstance(axes, str) else axes
        named = [] if axes is None else checks.entries("axes", axes)
        table = frames.flat(table, named)
        if axes is None and None not in (*table.index.names, table.columns.name):
            raise checks.wrong("frame", None, say("levels", table.columns.name))
        if not all(isinstance(name, Hashable) for name in (*named, counts)):
            raise InvalidTypeError("axes and counts must be names of columns")
        counts = _factors.counts_of_frame(table, None if axes is None else named, counts)
        columns = [x for x in table.columns if x != counts] if axes is None else named
        names = _cells.checked_axes(_factors.axis_names(columns))
        if counts in columns:
            raise refusal("axis and counts", counts)
        table = without_missing(table, columns, missing)
        held = ((x, _factors.one_column(table, x)) for x in columns)
        filled = [x for x, y in held if named or len(getattr(y.dtype, "categories", y.dropna()))]
        codes, labels = zip(*(_factors.factor(table, x) for x in filled or columns), strict=True)
        if filled and len(filled) < len(columns):
            given = {"axes": _factors.useful(codes, labels, filled), "counts": counts}
            told = ", ".join(argument(x, own) for x, own in given.items() if own is not None)
            raise refusal("no values", some([x for x in columns if x not in filled], 8), told)
        call = f"polyabayes.CountTensor.from_frame(frame, {columns}, {counts!r}, "
        call = table.attrs.get("call", call)
        warn_of_answers(table, columns, missing, call, has_counts=counts is not None)
        checked = np.ones(len(table), dtype=np.int64)
        if counts is not None:
            values, told = _factors.complete_column(table, counts).to_numpy(), f"column {counts!r}"
            checked = _cells.checked_cell_counts(values, len(table), told, frames.row_place(table))
            if twins := _factors.alike(codes, labels, columns) if len(table) > _FEW_CELLS else []:
                kept = argument("axes", _factors.useful(codes, labels, columns))
                warn(say("twins", " and ".join(map(some, twins)), kept, argument("counts", counts)))
            call = f"polyabayes.CountTensor.from_frame({table.attrs.get('code', 'frame')}"
            rest = f", {columns}, {counts!r}{f', missing={missing!r}' if missing else ''})"
            warn_of_sums(table, columns, columns, checked, lambda code: call + code + rest)
        return cls._from_cells(np.stack(codes, axis=1), checked, names, None, labels, least=-1)

    @classmethod
    def from_corpus(cls, corpus: Any, axes: Sequence[str] = ("doc", "word")) -> CountTensor:
        """Make a tensor from the word counts of documents.

        Parameters
        ----------
        corpus : Corpus, sparse matrix, array or DataFrame of shape (n_documents, n_words)
            The documents.
        axes : sequence of two str, default=("doc", "word")
            Names of the axes of documents and of words.

        Returns
        -------
        CountTensor
            The counts; the ids and the vocabulary are the labels.

        Raises
        ------
        InvalidCountsError, InvalidArgumentError, InvalidTypeError
            As for :class:`polyabayes.Corpus`, and if two documents have the same id.

        Examples
        --------
        >>> pb.CountTensor.from_corpus(pb.Corpus([[2, 0, 1], [0, 3, 1]]))
        <CountTensor: doc 2 x word 3, 4 cells, total 7>
        """
        documents = as_corpus(corpus, "corpus")
        return cls.from_dense(documents.counts, axes, [documents.ids, documents.vocabulary])

    @property
    def is_complete(self) -> bool:
        """Whether no token has a missing value on any axis."""
        return bool((self.coordinates >= 0).all())

    @property
    def n_axes(self) -> int:
        """Number of axes."""
        return len(self.axes)

    @property
    def n_cells(self) -> int:
        """Number of cells that are not zero."""
        return len(self.counts)

    @property
    def total(self) -> int:
        """Sum of all counts."""
        return int(self.counts.sum())

    def __repr__(self) -> str:
        axes = " x ".join(f"{axis} {n:,}" for axis, n in zip(self.axes, self.shape, strict=True))
        return f"<CountTensor: {axes}, {counted(self.n_cells, 'cell')}, total {self.total:,}>"

    def _repr_html_(self) -> str:
        """Axes, their sizes and first labels, for notebooks."""
        shown = [() if names is None else names[:_LABELS_SHOWN] for names in self.labels]
        labels = [", ".join(map(str, names)) for names in shown]
        columns = {"axis": self.axes, "size": self.shape, "first labels": labels}
        return html_table(columns_of(columns), repr(self).strip("<>"))

    def __eq__(self, other: object) -> bool:
        """Whether axes, shape, labels and all counts are the same."""
        if not isinstance(other, CountTensor):
            return NotImplemented
        arrays = ((x.coordinates, x.counts, *x.labels) for x in (self, other))
        is_like = (self.axes, self.shape) == (other.axes, other.shape)
        return is_like and all(map(np.array_equal, *arrays))

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> tuple[Any, ...]:
        # Unpickled arrays are writeable; this makes them read-only again.
        parts = (self.coordinates, self.counts, self.shape, self.axes, self.labels)
        return self._from_checked, parts

    def marginal(self, *axes: str) -> CountTensor:
        """Sum over all other axes.

        Parameters
        ----------
        *axes : str
            The axes to keep, in the new order.

        Returns
        -------
        CountTensor
            Counts over these axes. All axes in another order transpose the tensor.

        Raises
        ------
        InvalidArgumentError
            If there is no such axis, an axis is named twice, or none is named.

        Notes
        -----
        Tokens with a missing value on a kept axis are kept, with the value still missing.

        Examples
        --------
        >>> tensor = CountTensor.from_dense([[[1, 2], [0, 3]]], axes=["i", "j", "k"])
        >>> tensor.marginal("k", "j").to_dense()
        array([[1, 0],
               [2, 3]])
        """
        columns = [self._axis_ix(name) for name in _cells.checked_axes(axes)]
        cells = canonical_cells(self.coordinates[:, columns], self.counts)
        shape = tuple(self.shape[column] for column in columns)
        return self._from_checked(*cells, shape, axes, tuple(self.labels[k] for k in columns))

    def _axis_ix(self, name: str) -> int:
        if name not in self.axes:
            raise refusal("axes there", name, ", ".join(self.axes))
        return self.axes.index(name)

    def rename(self, axes: Mapping[str, str]) -> CountTensor:
        """Rename axes.

        Parameters
        ----------
        axes : mapping of str to str
            New names by old names; other axes keep their names.

        Returns
        -------
        CountTensor
            The same counts; memory is shared.

        Raises
        ------
        InvalidArgumentError
            If there is no such axis, or a new name is invalid or taken.

        Examples
        --------
        >>> tensor = pb.CountTensor.from_dense([[4, 0], [1, 2]], ["hair", "eye"])
        >>> tensor.rename({"eye": "iris"}).axes
        ('hair', 'iris')
        """
        if not isinstance(axes, Mapping):
            raise InvalidTypeError(f"axes must map old names to new ones, got {axes!r}")
        for old in axes:
            self._axis_ix(old)
        own = _cells.checked_axes([axes.get(name, name) for name in self.axes])
        return self._from_checked(self.coordinates, self.counts, self.shape, own, self.labels)

    def to_dense(self, *, max_bytes: int = 2**30) -> Integers:
        """Convert to a dense array.

        Parameters
        ----------
        max_bytes : int, default=2**30
            Largest array to make.

        Returns
        -------
        ndarray of int64, shape `shape`
            The counts.

        Raises
        ------
        BudgetExceededError
            If the array would be larger.
        InvalidArgumentError
            If some tokens have missing values.

        Examples
        --------
        >>> tensor = pb.CountTensor.from_dense([[4, 0], [1, 2]], ["hair", "eye"])
        >>> tensor.to_dense().tolist()
        [[4, 0], [1, 2]]
        """
        if not self.is_complete:
            cell, axis = np.argwhere(self.coordinates < 0)[0].tolist()
            raise refusal("unshown", self.counts[cell], self.axes[axis])
        if (n_bytes := 8 * math.prod(self.shape)) > checks.whole_number("max_bytes", max_bytes):
            raise BudgetExceededError(say("bytes", self.shape, n_bytes, max_bytes))
        array = np.zeros(self.shape, dtype=np.int64)
        array[tuple(self.coordinates.T)] = self.counts
        return array

    def to_frame(self, counts: str = "count") -> DataFrame:
        """Give the non-zero cells as a DataFrame, which :meth:`from_frame` reads.

        Parameters
        ----------
        counts : str, default="count"
            Name of the column of counts.

        Returns
        -------
        DataFrame
            A row per cell, with a column per axis (categorical if the axis has labels, else the
            coordinate) and a column of counts.

        Raises
        ------
        InvalidArgumentError
            If `counts` is the name of an axis.
        MissingDependencyError
            If pandas is not installed.

        Examples
        --------
        >>> tensor = pb.CountTensor.from_dense([[4, 0], [1, 2]], ["hair", "eye"])
        >>> tensor.to_frame()["count"].tolist()
        [4, 1, 2]
        """
        pandas = import_pandas()
        if checks.text("counts", counts) in self.axes:
            raise refusal("counts are an axis", counts)
        columns: dict[str, Any] = {}
        for axis, levels, labels in zip(self.axes, self.coordinates.T, self.labels, strict=True):
            columns[axis] = levels
            if labels is not None:
                columns[axis] = pandas.Categorical.from_codes(levels, pandas.Index(labels))
            elif (levels < 0).any():
                columns[axis] = pandas.Series(levels, dtype="Int64").where(levels >= 0)
        return data_frame({**columns, counts: self.counts})
