"""Ready-made allocation models: known factorisations as graphs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from polyabayes._support import checks
from polyabayes.data.cells import checked_axes
from polyabayes.exceptions import InvalidArgumentError, InvalidTypeError

if TYPE_CHECKING:
    from typing import Self

__all__ = ["ReadyMade"]


class ReadyMade:
    """Constructors of known models; each takes `concentration`, `rate` and `prior` on top.

    A size may be None: not known yet, for :class:`WitnessSearch`.
    """

    if TYPE_CHECKING:

        def __init__(
            self,
            graph: str,
            sizes: Mapping[str, int | None] | None = None,
            concentration: float = 1.0,
            rate: float | None = None,
            tied: Sequence[Sequence[str]] = (),
            **options: Any,
        ) -> None: ...

    @classmethod
    def nmf(cls, K: int | None, axes: Sequence[str] = ("doc", "word"), **options: Any) -> Self:
        """Non-negative matrix factorisation, or LDA with its prior: ``doc <- topic -> word``.

        Parameters
        ----------
        K : int
            Number of topics.
        axes : sequence of two str, default=("doc", "word")
            Names of the axes.
        **options
            `concentration`, `rate` and `prior` of :class:`AllocationModel`.
        """
        first, second = _axes(axes, 2)
        return cls(f"{first} <- topic -> {second}", {"topic": K}, **options)

    @classmethod
    def symmetric_nmf(cls, K: int | None, axes: Sequence[str] = ("i", "j"), **options: Any) -> Self:
        """Non-negative factorisation of a square matrix, one table for both axes."""
        return cls.symmetric_cp(2, K, axes, **options)

    @classmethod
    def symmetric_cp(
        cls, order: int, R: int | None, axes: Sequence[str] | None = None, **options: Any
    ) -> Self:
        """CP of a tensor of any order whose axes have one table: ``r -> i1, i2, ...``, tied.

        Parameters
        ----------
        order : int
            Number of axes, at least 2.
        R : int
            Rank.
        axes : sequence of str, optional
            Names of the axes; by default i1, i2, ...
        **options
            `concentration`, `rate` and `prior` of :class:`AllocationModel`.
        """
        checks.whole_number("order", order, least=2)
        names = _axes(axes or [f"i{axis}" for axis in range(1, order + 1)], order)
        return cls(f"r -> {', '.join(names)}", {"r": R}, tied=[names], **options)

    @classmethod
    def cp(cls, axes: Sequence[str], R: int | None, **options: Any) -> Self:
        """CP, also called PARAFAC, of rank R: ``r -> i, j, k``."""
        return cls(f"r -> {', '.join(_axes(axes))}", {"r": R}, **options)

    @classmethod
    def tucker(cls, axes: Sequence[str], ranks: Sequence[int | None], **options: Any) -> Self:
        """Tucker: every axis has a hidden node of its own, and those have a full joint table.

        Parameters
        ----------
        axes : sequence of str
            Names of the axes.
        ranks : sequence of int
            Size of the hidden node of each axis, which is called as the axis with ``r_`` before.
        **options
            `concentration`, `rate` and `prior` of :class:`AllocationModel`.
        """
        names = _axes(axes)
        hidden = [f"r_{name}" for name in names]
        lengths = _lengths("ranks", ranks, "axis")
        if len(lengths) != len(names):
            raise InvalidArgumentError(
                f"ranks must hold a number for each of the axes {', '.join(names)}, got {ranks!r}"
            )
        sizes = dict(zip(hidden, lengths, strict=True))
        loadings = [f"r_{name} -> {name}" for name in names]
        return cls("; ".join([*loadings, _complete(hidden)]), sizes, **options)

    @classmethod
    def pachinko(
        cls,
        sizes: Sequence[int | None] | Mapping[str, int | None],
        axes: Sequence[str] = ("doc", "word"),
        **options: Any,
    ) -> Self:
        """Pachinko allocation: ``doc -> super -> topic -> word``.

        Parameters
        ----------
        sizes : sequence or mapping of int
            Sizes of the hidden nodes from documents to words, any number of them; a mapping
            names them. Two without a name are called super and topic, others h1, h2, ...
        axes : sequence of two str, default=("doc", "word")
            Names of the axes.
        **options
            `concentration`, `rate` and `prior` of :class:`AllocationModel`.
        """
        first, last = _axes(axes, 2)
        if not isinstance(sizes, Mapping):
            sizes = _lengths("sizes", sizes, "hidden node")
            names = ["super", "topic"] if len(sizes) == 2 else _numbered("h", len(sizes))
            sizes = dict(zip(names, sizes, strict=True))
        return cls(" -> ".join([first, *sizes, last]), sizes, **options)

    @classmethod
    def blockmodel(
        cls, K1: int | None, K2: int | None, axes: Sequence[str] = ("i", "j", "s"), **options: Any
    ) -> Self:
        """Mixed-membership blockmodel: ``i -> g; j -> h; g, h -> s``.

        Parameters
        ----------
        K1, K2 : int
            Number of groups of senders (node g) and of receivers (node h).
        axes : sequence of three str, default=("i", "j", "s")
            Names of the axes of senders, receivers and kinds of link.
        **options
            `concentration`, `rate` and `prior` of :class:`AllocationModel`.
        """
        i, j, s = _axes(axes, 3)
        return cls(f"{i} -> g; {j} -> h; g, h -> {s}", {"g": K1, "h": K2}, **options)

    @classmethod
    def hidden_markov(cls, length: int, n_states: int, tied: bool = False, **options: Any) -> Self:
        """Hidden Markov chain ``h1 -> h2 -> ...`` with an axis ``x1``, ``x2``, ... for each step.

        Parameters
        ----------
        length : int
            Number of steps, which is the number of axes; at least 2.
        n_states : int
            Number of hidden states.
        tied : bool, default=False
            Whether all steps have one table of transitions and one of emissions.
        **options
            `concentration`, `rate` and `prior` of :class:`AllocationModel`.
        """
        checks.whole_number("length", length, least=2)
        states, seen = _numbered("h", length), _numbered("x", length)
        emissions = [f"{state} -> {x}" for state, x in zip(states, seen, strict=True)]
        ties = [tie for tie in (states[1:], seen) if len(tie) > 1] if tied else []
        text = "; ".join([" -> ".join(states), *emissions])
        return cls(text, dict.fromkeys(states, n_states), tied=ties, axes=seen, **options)

    @classmethod
    def sum_conditioned(
        cls, R: int | None, axes: Sequence[str] = ("i", "j", "k"), **options: Any
    ) -> Self:
        """Sum-conditioned factorisation: ``j -> k; j, k -> r; k, r -> i``."""
        i, j, k = _axes(axes, 3)
        text = f"{j} -> {k}; {j}, {k} -> r; {k}, r -> {i}"
        return cls(text, {"r": R}, axes=(i, j, k), **options)

    @classmethod
    def complete(cls, axes: Sequence[str], **options: Any) -> Self:
        """Every axis depends on all before it: no independence, and a closed form."""
        return cls(_complete(list(_axes(axes))), **options)


def _complete(names: Sequence[str]) -> str:
    """Every node depends on all before it."""
    edges = [f"{', '.join(names[:n])} -> {names[n]}" for n in range(1, len(names))]
    return "; ".join([names[0], *edges])


def _numbered(letter: str, length: int) -> list[str]:
    return [f"{letter}{number}" for number in range(1, length + 1)]


def _axes(axes: Any, length: int | None = None) -> tuple[str, ...]:
    names = checked_axes(axes)
    if length is not None and len(names) != length:
        raise InvalidArgumentError(f"axes must name {length} axes, got {', '.join(names)}")
    return names


def _lengths(name: str, values: Any, of: str) -> list[int | None]:
    if np.ndim(values) != 1:
        raise InvalidTypeError(f"{name} must hold a number for each {of}, got {values!r}")
    return list(values)
