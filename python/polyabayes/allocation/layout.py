"""Layout of a model for its data: which nodes are visible, and the size of each node."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from polyabayes import _core
from polyabayes._support import checks
from polyabayes._support.output.frames import import_pandas
from polyabayes.allocation.graphs.checks import LARGEST_SIZE
from polyabayes.allocation.graphs.network import Network
from polyabayes.allocation.graphs.rates import Rate, RatePoints, rate_points
from polyabayes.allocation.graphs.tied_levels import match_levels
from polyabayes.data.conversion.sources import is_anndata
from polyabayes.data.corpus import Corpus
from polyabayes.data.names import CALLS
from polyabayes.data.tensors.cells import non_zeros
from polyabayes.data.tensors.tensor import CountTensor
from polyabayes.exceptions import (
    BudgetExceededError,
    InvalidArgumentError,
    InvalidTypeError,
    argument,
)


class Cost(NamedTuple):
    """Cost of a token, and of an allocation, under a model.

    Attributes
    ----------
    n_tokens : int
        Total of the data.
    n_cells : int
        Number of non-zero cells.
    n_states : int
        Joint states of hidden nodes that each token is summed over, in all cliques of the
        elimination. A sweep or a particle takes n_tokens x n_states steps.
    n_marginals : int
        Marginal counts of one allocation; a particle takes at most four bytes for each.

    Examples
    --------
    >>> cost = pb.AllocationModel.nmf(3).cost(counts)
    >>> cost.n_tokens, cost.n_cells
    (13, 4)
    """

    n_tokens: int
    n_cells: int
    n_states: int
    n_marginals: int


@dataclass(frozen=True, eq=False)
class Layout:
    """A model laid out for a tensor.

    `tables` groups tied nodes, ordered by the first node of each group. `core` is the compiled
    layout; it is not pickled but made again in another process. `elimination_order` and `method`
    are as given by the user.
    """

    model: Network
    tensor: CountTensor
    sizes: dict[str, int]
    tables: tuple[tuple[str, ...], ...]
    core: _core.Allocation
    elimination_order: tuple[str, ...] | None = None
    method: str | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        return lay_out, (self.model, self.tensor, self.elimination_order, self.method)

    @property
    def hidden(self) -> tuple[str, ...]:
        """The nodes that are not axes of the data."""
        return tuple(node for node in self.sizes if node not in self.tensor.axes)

    def shape(self, node: str) -> tuple[int, ...]:
        """Shape of a node's table: its own size, then those of its parents."""
        return tuple(self.sizes[name] for name in self.model.graph.family(node))

    @cached_property
    def alphas(self) -> dict[str, float]:
        """Dirichlet parameter of every cell of each node's table."""
        return alphas_of(self.model, self.sizes, self.tables)

    def rate(self) -> Rate:
        """Rate of the intensity's prior, or its gamma prior; an empty tensor needs one."""
        if self.model.rate is not None:
            return self.model.rate
        if not self.tensor.total:
            told = argument("rate"), argument("given_total", True)
            raise InvalidArgumentError(CALLS["no total"].format(*told))
        return self.model.concentration / self.tensor.total

    def ln_total(self) -> float:
        """Ln P(T), averaged over the rate if it has a prior; raises as :meth:`rate`."""
        return self._rates().ln_mean(self.core.ln_total)

    def intensity(self) -> float:
        """Posterior mean of the intensity."""
        tokens = self.model.concentration + self.tensor.total
        return tokens * self._rates().intensity_factor(self.core.ln_total)

    def _rates(self) -> RatePoints:
        return rate_points(self.model.concentration, self.tensor.total, self.rate(), fine=True)


# Methods in which the weight of a token is a product of table entries: hidden nodes of tied tables
# are summed out as in untied networks, a Markov chain by forward-backward recursions.
_FACTORISED = ("vb", "em", "ml")


def lay_out(
    model: Network,
    data: Any,
    elimination_order: Sequence[str] | None = None,
    method: str | None = None,
    *,
    stepwise: bool = False,
) -> Layout:
    """Find the visible nodes, and check that model and data fit the method.

    `stepwise` allows particles to draw hidden nodes of tied tables one by one. Tables of hidden
    nodes that are too large for counts raise a BudgetExceededError.
    """
    if method is not None:
        checks.text("method", method)
    tensor, _ = match_levels(model.graph, model.tied, as_tensor(model, data))
    sizes = _sizes(model, tensor)
    tables = tables_of(model, sizes)
    number = {node: index for index, node in enumerate(sizes)}
    elimination = _elimination(elimination_order, number, tensor)
    # Unpickled arrays may be unaligned.
    cells, counts = (np.require(x, None, "A") for x in (tensor.coordinates.ravel(), tensor.counts))
    try:
        core = _core.Allocation(
            list(sizes.values()),
            [[number[parent] for parent in model.graph.parents[node]] for node in sizes],
            [number[axis] for axis in tensor.axes],
            [[number[node] for node in tie] for tie in model.tied],
            model.concentration,
            None if model.prior == "bdeu" else [*alphas_of(model, sizes, tables).values()],
            tensor.shape,
            cells,
            counts,
            elimination,
            "factorised" if method in _FACTORISED else "stepwise" if stepwise else "joint",
        )
    except BudgetExceededError as error:
        told = ", ".join(f"{node} {size:,}" for node, size in sizes.items())
        raise BudgetExceededError(
            f"graph {model.graph.to_text()!r} with the sizes {told}: {error}; give smaller sizes"
            f"{_remedy(model, method)}"
        ) from None
    order = None if elimination_order is None else tuple(map(str, elimination_order))
    return Layout(model, tensor, sizes, tables, core, order, method)


def _remedy(model: Network, method: str | None) -> str:
    """Further remedy if tied tables have too many joint states for samplers."""
    if not model.tied or method in _FACTORISED:
        return ""
    return (
        f", or take {argument('method', 'vb')}, {argument('method', 'em')} or "
        f"{argument('method', 'ml')}, which sum out the nodes of tied tables one by one, or for "
        f"the evidence {argument('method', 'smc')}, which draws them one by one"
    )


def alphas_of(
    model: Network, sizes: Mapping[str, int], tables: Sequence[tuple[str, ...]]
) -> dict[str, float]:
    """Dirichlet parameter of every cell of each node's table, node after node."""
    if isinstance(model.prior, dict):
        return {node: model.prior[node] for node in sizes}
    if model.prior == "flat":
        return dict.fromkeys(sizes, 1.0)
    n_tied = {node: len(table) for table in tables for node in table}
    alphas = {}
    for node in sizes:
        n_cells = math.prod(sizes[name] for name in model.graph.family(node))
        n_uses = n_tied[node] if model.prior == "bdeu-tokens" else 1
        alphas[node] = n_uses * model.concentration / n_cells
    return alphas


def _are_sequences(data: Any) -> bool:
    """Whether data are lists of labels, such as those of a Markov chain."""
    rows = data if isinstance(data, (list, tuple)) else []
    lists = [row for row in rows if isinstance(row, (list, tuple)) and row]
    return bool(lists) and len(lists) == len(rows) and all(isinstance(x[0], str) for x in lists)


def _tensor_of_sequences(model: Network, rows: Sequence[Sequence[str]]) -> CountTensor:
    """Make a tensor with one token per sequence; missing last steps are unobserved."""
    longest, n_axes = max(rows, key=len), len(model.axes)
    if len(longest) > n_axes:
        raise _misfit(model, "steps", n_axes, len(longest))
    columns = import_pandas().DataFrame([[*row, *[None] * (n_axes - len(row))] for row in rows])
    return CountTensor.from_frame(columns.set_axis(model.axes, axis=1), missing=())


def as_tensor(model: Network, data: Any) -> CountTensor:
    """Make a tensor whose axes are nodes of the graph."""
    if isinstance(data, CountTensor):
        for axis in data.axes:
            if axis not in model.graph.parents:
                raise _misfit(model, "no node", axis, argument("counts", axis))
        return data
    if is_anndata(data):
        data = Corpus(data)
    if _are_sequences(data):
        return _tensor_of_sequences(model, data)
    if hasattr(data, "columns"):
        raise InvalidTypeError(CALLS["a frame"])
    shape = data.shape if isinstance(data, Corpus) else non_zeros(data, "data")[0]
    if len(shape) != len(model.axes):
        wanted, named = ", ".join(f"n_{axis}" for axis in model.axes), ", ".join(model.axes)
        raise _misfit(model, "other shape", len(model.axes), named or "none", shape, wanted)
    if isinstance(data, Corpus):
        return CountTensor.from_corpus(data, model.axes)
    return CountTensor.from_dense(data, model.axes)


def _sizes(model: Network, tensor: CountTensor) -> dict[str, int]:
    found = dict(zip(tensor.axes, tensor.shape, strict=True))
    sizes: dict[str, int] = {}
    for node in model.graph.nodes:
        size = model.sizes.get(node) or found.get(node)
        if size is None:
            raise _misfit(model, "no size", node, ", ".join(tensor.axes))
        if size > LARGEST_SIZE:
            raise _misfit(model, "large size", size, node, LARGEST_SIZE)
        if size < found.get(node, 0):
            raise _misfit(model, "small size", size, node, found[node])
        sizes[node] = size
    return sizes


def tables_of(model: Network, sizes: Mapping[str, int]) -> tuple[tuple[str, ...], ...]:
    """Nodes by table, in the order of the compiled core."""
    table_of: dict[str, tuple[str, ...]] = {node: (node,) for node in sizes}
    for tie in model.tied:
        shapes = {node: tuple(sizes[x] for x in model.graph.family(node)) for node in sorted(tie)}
        if len(set(shapes.values())) > 1:
            found = ", ".join(f"{node} {shape}" for node, shape in shapes.items())
            raise _misfit(model, "other tables", found)
        ordered = tuple(node for node in sizes if node in tie)
        table_of.update(dict.fromkeys(tie, ordered))
    return tuple(dict.fromkeys(table_of[node] for node in sizes))


def _elimination(
    order: Sequence[str] | None, number: Mapping[str, int], tensor: CountTensor
) -> list[int] | None:
    if order is None:
        return None
    hidden = [node for node in number if node not in tensor.axes]
    if np.ndim(order) != 1 or sorted(map(str, order)) != sorted(hidden):
        told = ", ".join(hidden) or "none", order
        raise InvalidArgumentError(CALLS["elimination"].format(*told))
    return [number[node] for node in order]


def _misfit(model: Network, problem: str, *values: Any) -> InvalidArgumentError:
    return InvalidArgumentError(f"graph {model.graph.to_text()!r} {CALLS[problem].format(*values)}")
