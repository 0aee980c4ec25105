"""Networks and tensors of the exact vectors, as models and data of the package."""

import itertools
import json
import math
from collections import Counter
from pathlib import Path

import numpy as np

from polyabayes import AllocationModel, CountTensor

VECTORS = json.loads((Path(__file__).parents[2] / "vectors" / "allocation.json").read_text())


def problem(case):
    """A case of the vectors: nodes are called by their numbers."""
    names = [f"n{node}" for node in range(len(case["sizes"]))]
    statements = [
        " -> ".join([", ".join(names[parent] for parent in parents), name]) if parents else name
        for name, parents in zip(names, case["parents"], strict=True)
    ]
    sizes = dict(zip(names, case["sizes"], strict=True))
    tables = case.get("tables")
    model = AllocationModel(
        "; ".join([", ".join(names), *statements]),
        sizes,
        case["concentration"],
        case["rate"],
        tied=[[names[node] for node in tie] for tie in case.get("ties", [])],
        prior="bdeu" if tables is None else dict(zip(names, tables, strict=True)),
    )
    axes = [names[node] for node in case["visible"]]
    shape = [sizes[axis] for axis in axes]
    return model, cells(case["cells"], axes, shape)


def cells(entries, axes, shape):
    coordinates = np.array([place for place, _ in entries], dtype=int).reshape(-1, len(shape))
    return CountTensor.from_coo(coordinates, [count for _, count in entries], axes, shape)


def ln_enumerated_case(case, more=()):
    """The same of a case of the vectors, with tokens in further cells."""
    model, tensor = problem(case)
    cells = [place for place, count in case["cells"] for _ in range(count)]
    rows = [dict(zip(tensor.axes, place, strict=True)) for place in [*cells, *more]]
    return ln_enumerated(model, model.sizes, rows)


def ln_enumerated(model, sizes, rows):
    """ln of the probability of the counts of rows, given the total and which values are None.

    A row maps nodes to values. Every value that it does not give is summed out, token after token,
    by the urns of the tables; paths with equal counts are merged. The prior is a over the cells of
    each table, times the number of tied nodes for ``"bdeu-tokens"``, 1 for ``"flat"``, or as given.
    """
    table_of = {node: tie[0] for tie in model.tied for node in tie}
    table_of = {node: table_of.get(node, node) for node in sizes}
    n_tied = Counter(table_of.values())

    def alpha(node):
        if isinstance(model.prior, dict):
            return model.prior[node]
        if model.prior == "flat":
            return 1.0
        cells = math.prod(sizes[name] for name in model.graph.family(node))
        uses = n_tied[table_of[node]] if model.prior == "bdeu-tokens" else 1
        return uses * model.concentration / cells

    paths = {frozenset(): 1.0}
    for row in rows:
        values = [range(n) if row.get(node) is None else [row[node]] for node, n in sizes.items()]
        tokens = [dict(zip(sizes, token, strict=True)) for token in itertools.product(*values)]
        following = {}
        for (path, mass), token in itertools.product(paths.items(), tokens):
            counts = Counter(dict(path))
            for node in sizes:
                own, *parents = (token[name] for name in model.graph.family(node))
                given = (table_of[node], *parents)
                weight = alpha(node) + counts[given, own]
                mass *= weight / (alpha(node) * sizes[node] + counts[given])
                counts[given, own] += 1
                counts[given] += 1
            key = frozenset(counts.items())
            following[key] = following.get(key, 0.0) + mass
        paths = following
    seen = [tuple(sorted((k, v) for k, v in row.items() if v is not None)) for row in rows]
    patterns = Counter(tuple(node for node, _ in row) for row in seen)
    arrangements = sum(math.lgamma(n + 1) for n in patterns.values())
    arrangements -= sum(math.lgamma(n + 1) for n in Counter(seen).values())
    return math.log(sum(paths.values())) + arrangements
