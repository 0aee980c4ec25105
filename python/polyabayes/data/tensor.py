"""A count tensor: sparse counts over any number of named axes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from polyabayes._support.checks import whole_number
from polyabayes._support.frames import data_frame, import_pandas
from polyabayes._support.tables import columns_of, counted, html_table
from polyabayes.data import cells as _cells
from polyabayes.data.cells import AxisLabels, Integers, LabelsLike
from polyabayes.data.corpus import as_corpus
from polyabayes.data.factors import (
    axis_names,
    checked_frame,
    complete_column,
    counts_of_frame,
    factor,
    frame_labels,
    row_place,
)
from polyabayes.data.sources import is_anndata
from polyabayes.exceptions import BudgetExceededError, InvalidArgumentError, InvalidTypeError

if TYPE_CHECKING:
    import pandas as pd

_LABELS_SHOWN = 5


@dataclass(frozen=True, eq=False, repr=False, init=False)
class CountTensor:
    """Counts over named axes, stored by their non-zero cells.

    A tensor never changes. It is made by :meth:`from_dense`, :meth:`from_coo`,
    :meth:`from_frame`, :meth:`from_corpus` or :func:`polyabayes.read_tensor`; its memory is
    proportional to the number of non-zero cells.

    Attributes
    ----------
    coordinates : ndarray of int64, shape (n_cells, n_axes)
        Where the non-zero cells are, counted from 0, each once and in lexicographic order; -1 on
        an axis that the tokens of a cell do not show. Read-only.
    counts : ndarray of int64, shape (n_cells,)
        The positive counts of those cells. Read-only.
    shape : tuple of int, length n_axes
        Size of each axis, levels that do not occur included.
    axes : tuple of str, length n_axes
        Name of each axis: letters of any script, digits and underscores, as nodes of graphs.
    labels : tuple of (ndarray of str objects, shape (size,), or None), length n_axes
        Names of the levels of each axis, each once, or None for an axis without. Read-only.

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
        raise InvalidTypeError(
            "CountTensor is made by from_dense, from_coo, from_frame, from_corpus or read_tensor"
        )

    @classmethod
    def _from_checked(
        cls,
        coordinates: Integers,
        counts: Integers,
        shape: tuple[int, ...],
        axes: tuple[str, ...],
        labels: AxisLabels,
    ) -> CountTensor:
        tensor = cls.__new__(cls)
        for array in (coordinates, counts, *labels):
            if array is not None:
                array.flags.writeable = False
        # The one door past the frozen attributes.
        vars(tensor).update(
            coordinates=coordinates, counts=counts, shape=shape, axes=axes, labels=labels
        )
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
        """Make a tensor of cells given by their coordinates.

        Parameters
        ----------
        coordinates : array-like of int, shape (n_entries, n_axes)
            Coordinates of the cells, counted from 0, in any order.
        counts : array-like of int, shape (n_entries,)
            Their counts. Zeros are dropped, counts of equal coordinates are added up. Floats
            are accepted if they are whole numbers below which their type is exact.
        axes : sequence of str, length n_axes
            Name of each axis.
        shape : sequence of int, length n_axes, optional
            Size of each axis; otherwise the number of its labels, or the least that holds the
            coordinates.
        labels : mapping or sequence, optional
            The names of the levels: sequences of str by the name of the axis, or a sequence
            of such a sequence or None for each axis. No level twice.
        unknown : int, optional
            A negative number that stands on axes that the tokens of a cell do not show.

        Returns
        -------
        CountTensor
            The counts.

        Raises
        ------
        InvalidCountsError
            If a count is negative, fractional, NaN or infinite, if the total is above
            2**63 - 1, or if a cell is outside of the shape.
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
            whole_number("unknown", unknown, least=-(2**63), most=-1)
            cells = np.where(cells == unknown, -1, cells)

        def place(position: int) -> str:
            return f"cell {position}, coordinates {tuple(cells[position].tolist())}"

        checked = _cells.checked_cell_counts(counts, len(cells), "counts", place)
        least = 0 if unknown is None else -1
        return cls._from_cells(cells, checked, names, shape, labels, least)

    @classmethod
    def _from_cells(
        cls,
        coordinates: Integers,
        counts: Integers,
        axes: tuple[str, ...],
        shape: Sequence[int] | None,
        labels: LabelsLike,
        least: int = 0,
    ) -> CountTensor:
        """Counts that are checked, at coordinates that may be outside of the shape."""
        names = _cells.checked_axis_labels(labels, axes)
        sizes = _cells.checked_shape(shape, coordinates, axes, names)
        _cells.refuse_outside(coordinates, sizes, axes, least)
        cells = _cells.canonical_cells(coordinates, counts)
        return cls._from_checked(*cells, sizes, axes, names)

    @classmethod
    def from_dense(cls, array: Any, axes: Sequence[str], labels: LabelsLike = None) -> CountTensor:
        """Make a tensor of an array of counts.

        Parameters
        ----------
        array : array-like of int, sparse matrix or DataFrame
            The counts; its dimensions are the axes. Columns of a data frame, and its index unless
            it just counts rows, are the labels.
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
        if is_anndata(array):
            raise InvalidTypeError("array is an AnnData: make it a tensor by from_corpus")
        if hasattr(array, "columns"):
            labels = frame_labels(array) if labels is None else labels
        shape, coordinates, values = _cells.non_zeros(array)
        if len(shape) != len(names):
            raise InvalidArgumentError(
                f"array has {len(shape)} dimensions, but axes names {len(names)} "
                f"({', '.join(names)}); give a name for each"
            )

        def place(position: int) -> str:
            return f"cell {tuple(coordinates[position].tolist())}"

        counts = _cells.checked_cell_counts(values, len(values), "array", place)
        return cls._from_cells(coordinates, counts, names, shape, labels)

    @classmethod
    def from_frame(
        cls, frame: Any, axes: Sequence[str] | None = None, counts: str | None = None
    ) -> CountTensor:
        """Make a tensor of a table of observations.

        Parameters
        ----------
        frame : DataFrame, or table of polars or pyarrow
            A row an observation, or a row and a count for each kind of observation. A value that
            is missing is an axis that the tokens of its row do not show.
        axes : sequence of str, optional
            The columns that are axes; otherwise all but `counts`. Their distinct values,
            sorted and as text, are the labels; a categorical column brings its categories, in
            their order, whether they occur or not. Names of axes have ``_`` for spaces and other
            characters that a graph cannot name: ``Sepal.Length`` is axis ``Sepal_Length``.
        counts : str, optional
            The column that holds the counts. By default one that is called ``count``, ``freq`` or
            the like and is not in `axes`, or ``n`` or ``value`` if no two rows have the same
            levels; else each row counts once.

        Returns
        -------
        CountTensor
            The counts; equal rows are added up.

        Raises
        ------
        InvalidCountsError
            As for :meth:`from_coo`; the message names the row.
        InvalidArgumentError
            If there is no such column, if a column has no values, or a row no count.
        InvalidTypeError
            If `frame` is not a table.

        Warns
        -----
        DataWarning
            If a column that may hold the counts is left out.

        Examples
        --------
        >>> import pandas as pd
        >>> frame = pd.DataFrame({"sex": ["f", "m", "f"], "rings": [9, 15, 9]})
        >>> tensor = CountTensor.from_frame(frame)
        >>> tensor
        <CountTensor: sex 2 x rings 2, 2 cells, total 3>
        >>> tensor.labels[1].tolist()
        ['9', '15']
        """
        table = checked_frame(frame)
        counts = counts_of_frame(table, axes, counts)
        others = [column for column in table.columns if column != counts]
        columns = others if axes is None else [axes] if isinstance(axes, str) else list(axes)
        names = _cells.checked_axes(axis_names(columns))
        if counts in columns:
            raise InvalidArgumentError(f"column {counts!r} cannot be an axis and hold the counts")
        factors = [factor(table, column) for column in columns]
        coordinates = np.stack([levels for levels, _ in factors], axis=1)
        values: Any = np.ones(len(table), dtype=np.int64)
        if counts is not None:
            values = complete_column(table, counts).to_numpy()
        checked = _cells.checked_cell_counts(
            values, len(table), f"column {counts!r}", row_place(table)
        )
        labels = [labels for _, labels in factors]
        return cls._from_cells(coordinates, checked, names, None, labels, least=-1)

    @classmethod
    def from_corpus(cls, corpus: Any, axes: Sequence[str] = ("doc", "word")) -> CountTensor:
        """Make a tensor of the word counts of documents.

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
            As for :class:`polyabayes.Corpus`, and if two documents have one id.

        Examples
        --------
        >>> pb.CountTensor.from_corpus(pb.Corpus([[2, 0, 1], [0, 3, 1]]))
        <CountTensor: doc 2 x word 3, 4 cells, total 7>
        """
        documents = as_corpus(corpus, "corpus")
        return cls.from_dense(documents.counts, axes, [documents.ids, documents.vocabulary])

    @property
    def is_complete(self) -> bool:
        """Whether all tokens show all axes."""
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
        labels = [
            "" if names is None else ", ".join(map(str, names[:_LABELS_SHOWN]))
            for names in self.labels
        ]
        columns = {"axis": self.axes, "size": self.shape, "first labels": labels}
        return html_table(columns_of(columns), repr(self).strip("<>"))

    def __eq__(self, other: object) -> bool:
        """Whether axes, shape, labels and all counts are the same."""
        if not isinstance(other, CountTensor):
            return NotImplemented
        return (self.axes, self.shape) == (other.axes, other.shape) and all(
            np.array_equal(mine, its)
            for mine, its in zip(self._arrays(), other._arrays(), strict=True)
        )

    __hash__ = None  # type: ignore[assignment]

    def _arrays(self) -> tuple[Any, ...]:
        return self.coordinates, self.counts, *self.labels

    def __reduce__(self) -> tuple[Any, ...]:
        # Arrays come out of a pickle writeable; this way they are closed again.
        parts = (self.coordinates, self.counts, self.shape, self.axes, self.labels)
        return self._from_checked, parts

    def marginal(self, *axes: str) -> CountTensor:
        """Sum over all other axes.

        Parameters
        ----------
        *axes : str
            The axes to keep, in the order wanted.

        Returns
        -------
        CountTensor
            Counts over those axes; all of them, in another order, transpose the tensor.

        Raises
        ------
        InvalidArgumentError
            If there is no such axis, or if one is named twice or none at all.

        Notes
        -----
        Tokens that do not show an axis that is kept stay, and do not show it here either.

        Examples
        --------
        >>> tensor = CountTensor.from_dense([[[1, 2], [0, 3]]], axes=["i", "j", "k"])
        >>> tensor.marginal("k", "j").to_dense()
        array([[1, 0],
               [2, 3]])
        """
        columns = [self._axis_ix(name) for name in _cells.checked_axes(axes)]
        return self._from_checked(
            *_cells.canonical_cells(self.coordinates[:, columns], self.counts),
            tuple(self.shape[column] for column in columns),
            axes,
            tuple(self.labels[column] for column in columns),
        )

    def _axis_ix(self, name: str) -> int:
        if name not in self.axes:
            raise InvalidArgumentError(
                f"there is no axis {name!r}; the axes are {', '.join(self.axes)}"
            )
        return self.axes.index(name)

    def rename(self, axes: Mapping[str, str]) -> CountTensor:
        """Give axes other names.

        Parameters
        ----------
        axes : mapping of str to str
            New names by the old ones; other axes keep theirs.

        Returns
        -------
        CountTensor
            The same counts, in the same memory.

        Raises
        ------
        InvalidArgumentError
            If there is no such axis, or if a new name is not valid or taken.

        Examples
        --------
        >>> tensor = pb.CountTensor.from_dense([[4, 0], [1, 2]], ["hair", "eye"])
        >>> tensor.rename({"eye": "iris"}).axes
        ('hair', 'iris')
        """
        if not isinstance(axes, Mapping):
            raise InvalidTypeError(f"axes must map old names to new ones, got {axes!r}")
        names = list(self.axes)
        for old, new in axes.items():
            names[self._axis_ix(old)] = new
        return self._from_checked(
            self.coordinates, self.counts, self.shape, _cells.checked_axes(names), self.labels
        )

    def to_dense(self, *, max_bytes: int = 2**30) -> Integers:
        """All cells as an array.

        Parameters
        ----------
        max_bytes : int, default=2**30
            Memory that the array may take.

        Returns
        -------
        ndarray of int64, shape `shape`
            The counts.

        Raises
        ------
        BudgetExceededError
            If the array would be larger.
        InvalidArgumentError
            If some tokens do not show all axes.

        Examples
        --------
        >>> tensor = pb.CountTensor.from_dense([[4, 0], [1, 2]], ["hair", "eye"])
        >>> tensor.to_dense().tolist()
        [[4, 0], [1, 2]]
        """
        if not self.is_complete:
            cell, axis = np.argwhere(self.coordinates < 0)[0].tolist()
            raise InvalidArgumentError(
                f"{self.counts[cell]:,} tokens do not show axis {self.axes[axis]!r}, so that they "
                "have no place in an array; to_frame() has all cells"
            )
        n_bytes = 8 * math.prod(self.shape)
        if n_bytes > whole_number("max_bytes", max_bytes):
            raise BudgetExceededError(
                f"an array of shape {self.shape} takes {n_bytes:,} bytes, above "
                f"max_bytes={max_bytes:,}; take a marginal() first, or allow more"
            )
        array = np.zeros(self.shape, dtype=np.int64)
        array[tuple(self.coordinates.T)] = self.counts
        return array

    def to_frame(self, counts: str = "count") -> pd.DataFrame:
        """The non-zero cells as a table; :meth:`from_frame` turns it back into this tensor.

        Parameters
        ----------
        counts : str, default="count"
            Name of the column of counts.

        Returns
        -------
        DataFrame
            A row a cell, a column an axis: categorical where the axis has labels, otherwise the
            coordinate, missing where tokens do not show the axis; then the counts.

        Raises
        ------
        InvalidArgumentError
            If an axis is called as the counts.
        MissingDependencyError
            If pandas is not installed.

        Examples
        --------
        >>> tensor = pb.CountTensor.from_dense([[4, 0], [1, 2]], ["hair", "eye"])
        >>> tensor.to_frame()["count"].tolist()
        [4, 1, 2]
        """
        pandas = import_pandas()
        if counts in self.axes:
            raise InvalidArgumentError(f"{counts!r} is an axis; choose another name for the counts")
        columns: dict[str, Any] = {}
        for axis, levels, labels in zip(self.axes, self.coordinates.T, self.labels, strict=True):
            columns[axis] = levels
            if labels is not None:
                columns[axis] = pandas.Categorical.from_codes(levels, pandas.Index(labels))
            elif (levels < 0).any():
                columns[axis] = pandas.Series(levels, dtype="Int64").where(levels >= 0)
        return data_frame({**columns, counts: self.counts})
