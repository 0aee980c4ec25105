"""Sums of products of tables over the values of nodes, one node at a time."""

import math
from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

import numpy as np

from polyabayes._support.arrays import Floats


class Factor(NamedTuple):
    """A table, and the name of each of its dimensions."""

    values: Floats
    names: tuple[str, ...]


def contract(factors: Sequence[Factor], keep: Sequence[str] = ()) -> Floats:
    """Multiply the factors and sum out all names but those to keep.

    The name whose removal makes the smallest table goes first. The dimensions of the result are
    `keep`.
    """
    factors = list(factors)
    sizes: dict[str, int] = {}
    for factor in factors:
        sizes.update(zip(factor.names, factor.values.shape, strict=True))
    left = [name for name in sizes if name not in keep]

    def cost(name: str) -> int:
        scope = {other for factor in factors if name in factor.names for other in factor.names}
        return math.prod(sizes[other] for other in scope)

    while left:
        name = min(left, key=cost)
        left.remove(name)
        touched = [factor for factor in factors if name in factor.names]
        scope = dict.fromkeys(other for factor in touched for other in factor.names)
        factors = [factor for factor in factors if name not in factor.names]
        factors.append(_product(touched, [other for other in scope if other != name]))
    return _product(factors, keep).values


def _product(factors: Collection[Factor], names: Sequence[str]) -> Factor:
    number = {name: index for index, name in enumerate({n: None for f in factors for n in f.names})}
    operands: list[Any] = []
    for factor in factors:
        operands += [factor.values, [number[name] for name in factor.names]]
    values = np.einsum(*operands, [number[name] for name in names], optimize="greedy")
    return Factor(values, tuple(names))
