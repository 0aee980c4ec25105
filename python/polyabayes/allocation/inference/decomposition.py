"""Decomposition of a count tensor into conditional tables."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import compress
from typing import Any

import numpy as np

from polyabayes._support import checks
from polyabayes._support.arrays import Floats, Indices, Integers
from polyabayes._support.docs import shared_docs
from polyabayes._support.output.frames import DataFrame, data_frame
from polyabayes._support.output.tables import counted
from polyabayes._support.results import Result
from polyabayes.allocation.inference.contraction import Factor, contract
from polyabayes.allocation.observed_cells import known_cells
from polyabayes.data.tensors.cells import named_cells
from polyabayes.data.tensors.tensor import CountTensor
from polyabayes.exceptions import (
    BudgetExceededError,
    InvalidArgumentError,
    InvalidTypeError,
    argument,
)

# Objective of each method: event, and what is given beside the total.
_OBJECTIVES = {
    "vb": ("P(X",),
    "em": ("p(X, θ",),
    "icm": ("p(S, θ",),
    "ml": ("P(X", "θ"),
    "dual-em": ("P(S",),
    "gibbs": ("P(S",),
    "tempered": ("P(S",),
    "smc": ("P(labelled tokens, S",),
}

# Columns of a decomposition with all its tables.
_ALL_COLUMNS = ("node", "level", "given", "probability", "expected_count")

# Entries of the tables that are gathered for a chunk of cells.
_CHUNK = 2**22


@shared_docs
@dataclass(frozen=True, repr=False, eq=False)
class Decomposition(Result):
    """A count tensor explained by the tables of an allocation model.

    Attributes
    ----------
    tables : dict of str to ndarray, shape (size of the node, sizes of its parents)
        Conditional probabilities of every node given its parents; they sum to 1 over the first
        axis. They are (α + E S) / Σ (α + E S), from the expected counts E S; for ``"tempered"``,
        posterior means of (α + S) / Σ (α + S) over draws of S; for ``"ml"``, E S / Σ E S. Tied
        nodes have one table.
    expected_counts : dict of str to ndarray, shapes as `tables`
        Expected number of tokens of every value of a node and its parents, summed over tied nodes.
        Means over sweeps for ``"gibbs"``, over draws for ``"tempered"``.
    families : dict of str to tuple of str
        The node and its parents: the axes of its table.
    intensity : float
        Posterior mean of λ, the expected total; for ``"ml"``, the total.
    trace : ndarray of shape (n_iterations,)
        The objective in nats, by iteration (sweep for ``"gibbs"``, draw for ``"tempered"``). It is
        conditional on the total, unless cells are missing. ``"vb"``: the bound, which never
        decreases. ``"dual-em"``, ``"gibbs"`` and ``"tempered"``: ln π(S | T) of an allocation S.
        ``"smc"``: the same for labelled tokens, lower by Σ ln X! - Σ ln S!. See :attr:`objective`.
    value : float
        The final value of the objective.
    has_converged : bool
        Whether the last gain was below the tolerance; always True for ``"gibbs"``.
    log_probability_of_total : float
        ln P(T). The bound of ``"vb"`` plus ln P(T) is a bound of the evidence. NaN with missing
        cells; the bound is then already one of the evidence.
    method : str
        The method that was used.
    tensor : CountTensor
        The data.
    missing_cells : ndarray of int, shape (n_missing, n_axes)
        Cells that were not observed.
    seconds : float
        Run time.

    Examples
    --------
    >>> found = pb.AllocationModel.nmf(2).decompose(counts, random_state=0)
    >>> found.tables["topic"].sum().round(12), found.families["word"]
    (np.float64(1.0), ('word', 'topic'))
    """

    tables: dict[str, Floats]
    expected_counts: dict[str, Floats]
    families: dict[str, tuple[str, ...]]
    intensity: float
    trace: Floats
    value: float
    has_converged: bool
    log_probability_of_total: float
    method: str
    tensor: CountTensor
    missing_cells: Integers
    seconds: float

    @property
    def is_lower_bound(self) -> bool:
        """Whether `value` is a lower bound of the evidence."""
        return self.method == "vb"

    @property
    def objective(self) -> str:
        """The quantity that `value` is (for ``"vb"``, bounds), as ``"ln P(X | T)"``.

        X are the counts, S their allocation, θ the tables and T the total, which is left out if
        cells are missing. Methods have different objectives, so their values do not compare.
        """
        event, *conditions = _OBJECTIVES[self.method]
        conditions += [] if len(self.missing_cells) else ["T"]
        given = f" | {', '.join(conditions)}" if conditions else ""
        return f"ln {event}{given})"

    def reached(self, n_digits: int = 4) -> str:
        """Text of the objective and its value, as ``"ln P(X | T) >= -8.31 nats"``.

        Parameters
        ----------
        n_digits : int, default=4
            Digits after the point.

        Returns
        -------
        str

        Examples
        --------
        >>> found = pb.AllocationModel.nmf(1).decompose([[4, 3], [0, 3]], "ml", random_state=0)
        >>> found.reached(2)
        'ln P(X | θ, T) = -4.50 nats'
        """
        checks.whole_number("n_digits", n_digits, 0, 30)
        sign = ">=" if self.is_lower_bound else "="
        return f"{self.objective} {sign} {self.value:z,.{n_digits}f} nats"

    @cached_property
    def fitted_counts(self) -> Floats:
        """Expected counts of the non-zero cells, shape (n_cells,), in the order of the tensor.

        For tokens with missing axes, the counts are expected among tokens with the same observed
        axes. :meth:`reconstruction` has the counts of all cells.
        """
        return self._fit(self.tensor.coordinates)

    @cached_property
    def missing_counts(self) -> Floats:
        """Expected counts of the missing cells, shape (n_missing,)."""
        return self._fit(self.missing_cells)

    def reconstruction(self, *, max_bytes: int = 2**30) -> Floats:
        """Expected counts of all cells, as an array of the shape of the data.

        Parameters
        ----------
        max_bytes : int, default=2**30
            Largest array to make.

        Returns
        -------
        ndarray of the shape of the data
            The counts, which sum to the total.

        Raises
        ------
        BudgetExceededError
            If the array would take more than `max_bytes`.

        Examples
        --------
        >>> found = pb.AllocationModel.nmf(2).decompose(counts, random_state=0)
        >>> found.reconstruction().sum().round(6)
        np.float64(13.0)
        """
        n_bytes = 8 * math.prod(self.tables[axis].shape[0] for axis in self.tensor.axes)
        if n_bytes > checks.whole_number("max_bytes", max_bytes):
            raise BudgetExceededError(
                f"all cells take {n_bytes:,} bytes, above max_bytes={max_bytes:,}; "
                "fitted_counts has those that are not zero"
            )
        dense = self.intensity * contract(self._factors(), self.tensor.axes)
        return dense[tuple(slice(size) for size in self.tensor.shape)]

    @cached_property
    def squared_error(self) -> float:
        """Σ (X - X̂)² over all observed cells."""
        fitted = self.fitted_counts
        observed = ((self.tensor.counts - fitted) ** 2 - fitted**2).sum()
        everywhere = np.zeros(())
        for shown, share in self._shares.items():
            copy = [
                Factor(table, tuple(n if n in shown else f"{n} again" for n in names))
                for table, names in self._factors()
            ]
            everywhere += (share * self.intensity) ** 2 * contract([*self._factors(), *copy])
        return float(observed + everywhere - (self.missing_counts**2).sum())

    @cached_property
    def kl_error(self) -> float:
        """Σ X ln(X/X̂) - X + X̂ over all observed cells, in nats."""
        counts = self.tensor.counts
        explained = counts * np.log(counts / self.fitted_counts)
        fitted = self.intensity - self.missing_counts.sum()
        return float(explained.sum() - counts.sum() + fitted)

    @property
    def sparsity(self) -> dict[str, float]:
        """Hoyer's sparsity of every node's conditional distributions, averaged over the parents.

        (√n - ‖θ‖₁/‖θ‖₂) / (√n - 1) for n values: 0 if all are equally probable, 1 if one
        is certain, NaN for a node with one value (Hoyer 2004).
        """
        return {node: hoyer(table) for node, table in self.tables.items()}

    def to_frame(self, node: str | None = None) -> DataFrame:
        """Give the table of a node as a DataFrame, a row per cell.

        Parameters
        ----------
        node : str, optional
            The node. By default all tables, one below the other.

        Returns
        -------
        pandas.DataFrame
            A column for the node and each of its parents, `probability` and `expected_count`. For
            all tables, the columns are `node`, its `level`, `given` (the levels of its parents as
            text), `probability` and `expected_count`.

        {raises: no such node}
        {no pandas}

        Examples
        --------
        >>> found = pb.AllocationModel.nmf(2).decompose(counts, random_state=0)
        >>> len(found.to_frame("word"))  # 3 words x 2 topics
        6
        """
        return data_frame(self._columns(node))

    def missing_to_frame(self) -> DataFrame:
        """Give the missing cells and their expected counts as a DataFrame, a row per cell.

        Returns
        -------
        pandas.DataFrame
            A column per axis, and `expected_count`.

        {raises: no pandas}

        Examples
        --------
        >>> model = pb.AllocationModel.nmf(1, rate=0.1)
        >>> table = np.ma.masked_equal([[-1, 3], [3, 3]], -1)
        >>> len(model.decompose(table, random_state=0).missing_to_frame())
        1
        """
        return data_frame(self._missing_columns())

    def level_probabilities(self, data: Any = None, node: str | None = None) -> Floats:
        """Probabilities of the levels of a hidden node, given the observed values of rows or cells.

        Parameters
        ----------
        data : DataFrame, table of polars or pyarrow, or CountTensor, optional
            Rows with a column for each axis, or cells; values may be missing. By default the
            non-zero cells of the tensor.
        node : str, optional
            The node; default: the hidden node, if there is only one.

        Returns
        -------
        ndarray of shape (n_rows, size of the node)
            p(level | row) under the tables; rows sum to 1.

        Raises
        ------
        InvalidArgumentError, InvalidTypeError
            If there is no such node or column, or a level that the tensor does not have.

        Examples
        --------
        >>> found = pb.AllocationModel.nmf(2).decompose(counts, random_state=0)
        >>> found.level_probabilities().sum(axis=1).round(12).tolist()
        [1.0, 1.0, 1.0, 1.0]
        """
        hidden = [name for name in self.tables if name not in self.tensor.axes]
        if node is None and len(hidden) != 1:
            raise InvalidArgumentError(
                f"{argument('node')} must name one of the nodes {', '.join(self.tables)}; hidden "
                f"are {', '.join(hidden) or 'none'}"
            )
        node = hidden[0] if node is None else node
        self._table(node)
        cells = self.tensor.coordinates if data is None else known_cells(self.tensor, data)
        found = np.empty((len(cells), self.tables[node].shape[0]))
        # The observed value of the queried node is ignored.
        for chunk, axes in self._parts(cells, node):
            found[chunk] = self._contracted(cells[chunk], axes, 1.0, (node,))
        return shares(found, 1)

    def log_likelihood(self, data: Any = None) -> Floats:
        """Log-probability of the observed values of rows or cells under the tables, in nats.

        Hidden nodes and missing values are summed out, row by row. The tables are fixed, so rows of
        other data are scored as new ones.

        Parameters
        ----------
        data : DataFrame, table of polars or pyarrow, or CountTensor, optional
            Rows with a column for each axis, or cells, as for :meth:`level_probabilities`.

        Returns
        -------
        ndarray of shape (n_rows,)
            ln p(row); a count does not multiply it. -inf for a row that is impossible.

        Raises
        ------
        InvalidArgumentError, InvalidTypeError
            If there is no such column, or a level that the tensor does not have.

        Examples
        --------
        >>> found = pb.AllocationModel.nmf(1).decompose(counts, random_state=0)
        >>> found.log_likelihood().shape
        (4,)
        """
        cells = self.tensor.coordinates if data is None else known_cells(self.tensor, data)
        found = np.empty(len(cells))
        for chunk, axes in self._parts(cells):
            found[chunk] = self._contracted(cells[chunk], axes, 1.0)
        with np.errstate(divide="ignore"):
            logs: Floats = np.log(found)
        return logs

    def level_names(self, node: str) -> list[Any]:
        """Labels of the values of a node, or their numbers if it has no labels.

        Parameters
        ----------
        node : str
            The node.

        Returns
        -------
        list of str or int
            One entry per value.

        {raises: no such node}

        Examples
        --------
        >>> found = pb.AllocationModel.nmf(2).decompose(counts, random_state=0)
        >>> found.level_names("topic")
        [0, 1]
        """
        size = self._table(node).shape[0]
        labels = None
        if node in self.tensor.axes:
            labels = self.tensor.labels[self.tensor.axes.index(node)]
        named = [] if labels is None else labels.tolist()
        return [*named, *range(len(named), size)]

    def _table(self, node: Any) -> Floats:
        if not isinstance(node, str) or node not in self.tables:
            told = repr(node) if isinstance(node, (str, int)) else f"a {type(node).__name__}"
            raise InvalidArgumentError(f"no node {told}; there are {', '.join(self.tables)}")
        return self.tables[node]

    def _columns(self, node: str | None = None) -> dict[str, Any]:
        if node is None:
            return self._all_columns()
        table = self._table(node)
        cells = np.indices(table.shape).reshape(table.ndim, -1)
        columns: dict[str, Any] = {
            name: np.array(self.level_names(name), dtype=object)[levels]
            for name, levels in zip(self.families[node], cells, strict=True)
        }
        columns["probability"] = self.tables[node].ravel()
        columns["expected_count"] = self.expected_counts[node].ravel()
        return columns

    def _all_columns(self) -> dict[str, Any]:
        found: dict[str, list[Any]] = {name: [] for name in _ALL_COLUMNS}
        for node in self.tables:
            columns = self._columns(node)
            own, *parents = self.families[node]
            found["node"] += [node] * len(columns[own])
            found["level"] += columns[own].tolist()
            found["given"] += [
                ", ".join(f"{name}={level}" for name, level in zip(parents, levels, strict=True))
                for levels in zip(*(columns[name] for name in parents), strict=True)
            ] or [""] * len(columns[own])
            for name in ("probability", "expected_count"):
                found[name] += columns[name].tolist()
        return found

    def _missing_columns(self) -> dict[str, Any]:
        places = named_cells(self.tensor.axes, self.missing_cells, self.tensor.labels)
        return {**places, "expected_count": self.missing_counts}

    def _factors(self) -> list[Factor]:
        return [Factor(table, self.families[node]) for node, table in self.tables.items()]

    @cached_property
    def _shares(self) -> dict[tuple[str, ...], float]:
        """Share of all tokens that have the same observed axes, by these axes."""
        if self.tensor.is_complete:
            return {self.tensor.axes: 1.0}
        shown, number = np.unique(self.tensor.coordinates >= 0, axis=0, return_inverse=True)
        n_tokens = np.bincount(number.ravel(), self.tensor.counts) / self.tensor.total
        axes = (tuple(compress(self.tensor.axes, pattern)) for pattern in shown)
        return dict(zip(axes, n_tokens.tolist(), strict=True))

    def _fit(self, cells: Integers) -> Floats:
        found = np.empty(len(cells))
        for chunk, axes in self._parts(cells):
            found[chunk] = self._contracted(cells[chunk], axes, self._shares[axes] * self.intensity)
        return found

    def _parts(
        self, cells: Integers, unread: str = ""
    ) -> Iterator[tuple[Indices, tuple[str, ...]]]:
        """Cells with the same observed axes, in parts that fit into memory, and these axes."""
        shown, number = np.unique(cells >= 0, axis=0, return_inverse=True)
        for pattern, seen in enumerate(shown):
            axes = tuple(axis for axis in compress(self.tensor.axes, seen) if axis != unread)
            entries = max(
                int(np.prod([table.shape[i] for i, n in enumerate(names) if n not in axes]))
                for table, names in self._factors()
            )
            rows, size = np.flatnonzero(number.ravel() == pattern), max(1, _CHUNK // entries)
            yield from ((rows[start : start + size], axes) for start in range(0, len(rows), size))

    def _contracted(
        self, cells: Integers, axes: tuple[str, ...], scale: float, keep: tuple[str, ...] = ()
    ) -> Floats:
        """Product of the tables at the cells' values, summed over the other nodes."""
        factors = [Factor(np.full(len(cells), scale), ("",))]
        for table, names in self._factors():
            visible = [name for name in names if name in axes]
            hidden = [name for name in names if name not in visible]
            columns = tuple(cells[:, self.tensor.axes.index(name)] for name in visible)
            gathered = table.transpose([names.index(name) for name in (*visible, *hidden)])[columns]
            factors.append(Factor(gathered, ("", *hidden) if visible else tuple(hidden)))
        return contract(factors, ("", *keep))

    def __repr__(self) -> str:
        sizes = ", ".join(f"{node} {table.shape[0]:,}" for node, table in self.tables.items())
        of = f", {len(self.missing_cells):,} cells missing"
        return (
            f"<Decomposition by {self.method}: {sizes}; {self.reached(2)}"
            f"{of if len(self.missing_cells) else ''}, {counted(len(self.trace), 'iteration')}>"
        )


def shares(weights: Floats, axis: int) -> Floats:
    """Scale weights to sum to 1 along an axis; zeros only become uniform."""
    total = weights.sum(axis=axis, keepdims=True)
    found = np.full_like(weights, 1 / weights.shape[axis])
    np.divide(weights, total, out=found, where=total > 0)
    return found


def hoyer(table: Floats) -> float:
    """Mean sparsity of the columns: 0 where all entries are equal, 1 where one is not zero."""
    n = table.shape[0]
    if n == 1:
        return float("nan")
    ratio = table.sum(axis=0) / np.sqrt((table**2).sum(axis=0))
    return float(np.mean((np.sqrt(n) - ratio) / (np.sqrt(n) - 1)))


@shared_docs
def n_effective_parameters(
    allocation: Decomposition | Mapping[str, Any], threshold: float = 0.5
) -> int:
    """Number of parameters that an allocation uses.

    d(S) = Σ over tables of (cells that hold tokens) - (parents' values that hold tokens). For a
    concentration a near 0, ln π(S | T) = d(S) ln a + O(1).

    Parameters
    ----------
    allocation : Decomposition, or mapping of str to array
        Counts of each table, the node's own axis first. A table shared by tied nodes counts once;
        in a mapping, give it once.
    threshold : float, default=0.5
        A cell holds tokens if its expected count exceeds this. Integer counts give the same
        result for any threshold in [0, 1).

    Returns
    -------
    int
        d(S).

    Raises
    ------
    InvalidTypeError
        If `allocation` is neither a decomposition nor a mapping.

    References
    ----------
    {Cemgil 2019}

    Examples
    --------
    >>> n_effective_parameters({"topic": [3, 1], "word": [[2, 0], [1, 1]]})
    2
    """
    counts: Any = allocation
    if isinstance(allocation, Decomposition):
        counts = {id(table): table for table in allocation.expected_counts.values()}
    if not isinstance(counts, Mapping):
        raise InvalidTypeError(
            f"allocation must be a Decomposition or a mapping of counts, got {allocation!r}"
        )
    tables = [np.asarray(table, dtype=np.float64) for table in counts.values()]
    return sum(
        int((table > threshold).sum()) - int((table.sum(axis=0) > threshold).sum())
        for table in tables
    )
