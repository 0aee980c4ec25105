"""Count tensors drawn from a model, and the hidden values of their tokens."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from polyabayes._support import checks
from polyabayes._support.arrays import Floats, Integers
from polyabayes._support.random import RandomState, dirichlet, random_generator
from polyabayes.allocation.graphs.checks import LARGEST_SIZE, known_nodes
from polyabayes.allocation.graphs.network import Network
from polyabayes.allocation.graphs.rates import Rate, checked_rate
from polyabayes.allocation.layout import alphas_of, tables_of
from polyabayes.data.tensors.tensor import CountTensor
from polyabayes.exceptions import InvalidArgumentError, InvalidTypeError, argument

# Most tokens, which are drawn one by one.
_MOST_TOKENS = 2**31


class Simulation(NamedTuple):
    """A count tensor drawn from a model.

    Attributes
    ----------
    tensor : CountTensor
        Counts over the axes: the data.
    allocation : CountTensor
        The same tokens over all nodes, the hidden ones included.

    Examples
    --------
    >>> drawn = pb.AllocationModel.nmf(2).simulate({"doc": 3, "word": 4}, 20, random_state=0)
    >>> drawn.tensor.total, drawn.allocation.axes
    (20, ('doc', 'topic', 'word'))
    """

    tensor: CountTensor
    allocation: CountTensor


def simulate(
    model: Network,
    shape: Mapping[str, int] | None,
    total: int | None,
    rate: Rate | None,
    random_state: RandomState,
) -> Simulation:
    """Draw intensity, tables and tokens, as :meth:`AllocationModel.simulate` documents."""
    sizes, axes = _sizes(model, shape)
    generator = random_generator(random_state)
    n_tokens = _total(model, total, rate, generator)
    tables = tables_of(model, sizes)
    alphas = alphas_of(model, sizes, tables)
    table_of: dict[str, Floats] = {}
    for nodes in tables:
        cells = tuple(sizes[name] for name in model.graph.family(nodes[0]))
        drawn = dirichlet(generator, np.full(cells, alphas[nodes[0]]), axis=0)
        table_of.update(dict.fromkeys(nodes, drawn))
    values: dict[str, Integers] = {}
    for node in model.graph.order:
        table, parents = table_of[node], model.graph.parents[node]
        given = np.zeros(n_tokens, dtype=np.int64)
        for parent in parents:
            given = given * sizes[parent] + values[parent]
        values[node] = _draw(table.reshape(len(table), -1), given, generator)
    coordinates = np.stack([values[node] for node in sizes], axis=1)
    counts = np.ones(n_tokens, dtype=np.int64)
    allocation = CountTensor.from_coo(coordinates, counts, list(sizes), list(sizes.values()))
    return Simulation(allocation.marginal(*axes), allocation)


def _draw(table: Floats, given: Integers, generator: np.random.Generator) -> Integers:
    """Draw a value per token from the column of a table that `given` names."""
    # Column k is shifted to the interval [k, k + 1], so that one sorted search draws all values.
    steps = np.cumsum(table, axis=0)
    steps = steps / steps[-1] + np.arange(table.shape[1])
    found = np.searchsorted(steps.T.ravel(), given + generator.random(len(given)), side="right")
    return np.asarray(np.minimum(found - given * len(table), len(table) - 1))


def _sizes(
    model: Network, shape: Mapping[str, int] | None
) -> tuple[dict[str, int], tuple[str, ...]]:
    given = {} if shape is None else shape
    if not isinstance(given, Mapping):
        raise InvalidTypeError(f"shape must map axes to their sizes, got {shape!r}")
    known_nodes(model.graph, "shape", tuple(given))
    axes = tuple(given) or model.axes
    if not axes:
        raise InvalidArgumentError(
            f"all nodes of graph {model.graph.to_text()!r} have a size: name the axes, by "
            f"{argument('shape')} or by axes=[...] of the model"
        )
    sizes = {}
    for node in model.graph.nodes:
        size = given.get(node) or model.sizes.get(node)
        if size is None:
            raise InvalidArgumentError(
                f"node {node!r} of graph {model.graph.to_text()!r} has no size; give "
                f"{argument('shape')}={{{node!r}: ...}}, or a size to the model"
            )
        sizes[node] = checks.whole_number(f"size of {node!r}", size, 1, LARGEST_SIZE)
    return sizes, axes


def _total(
    model: Network, total: int | None, rate: Rate | None, generator: np.random.Generator
) -> int:
    if total is not None:
        if rate is not None:
            raise InvalidArgumentError(
                f"{argument('total')} and {argument('rate')} are given: a given total needs no rate"
            )
        return checks.whole_number("total", total, 0, _MOST_TOKENS)
    if rate is None and model.rate is None:
        raise InvalidArgumentError(
            f"give the number of tokens as {argument('total')}, or the {argument('rate')} of the "
            "intensity's prior, with which the total is Poisson"
        )
    b = model.rate if rate is None else checked_rate(rate)
    if isinstance(b, tuple):
        b = generator.gamma(b[0], 1 / b[1])
    intensity = generator.gamma(model.concentration, 1 / float(b or 1))
    return checks.whole_number("total", int(generator.poisson(intensity)), 0, _MOST_TOKENS)
