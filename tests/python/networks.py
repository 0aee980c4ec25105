"""Networks and tensors of the exact vectors, as models and data of the package."""

from __future__ import annotations

from typing import Any

import numpy as np

from polyabayes import AllocationModel, CountTensor


def problem(case: dict[str, Any]) -> tuple[AllocationModel, CountTensor]:
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


def cells(entries: list[Any], axes: Any, shape: list[int]) -> CountTensor:
    coordinates = np.array([place for place, _ in entries], dtype=int).reshape(-1, len(shape))
    return CountTensor.from_coo(coordinates, [count for _, count in entries], axes, shape)
