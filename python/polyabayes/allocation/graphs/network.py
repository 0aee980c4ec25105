"""A Bayesian network as a model: its graph, sizes of nodes, priors of tables and intensity."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from typing import Any, Self

import numpy as np

from polyabayes._support import checks
from polyabayes._support.docs import shared_docs
from polyabayes._support.output.tables import columns_of, html_table
from polyabayes.allocation.graphs.checks import (
    checked_parameter,
    checked_prior,
    checked_sizes,
    checked_ties,
    known_nodes,
)
from polyabayes.allocation.graphs.graph import Graph
from polyabayes.allocation.graphs.rates import Rate, checked_rate
from polyabayes.data.tensors.cells import checked_axes
from polyabayes.exceptions import InvalidArgumentError, InvalidTypeError

# Most axes of a ready-made graph, which names each of them before data are known.
_MOST_AXES = 10_000


@shared_docs
class Network:
    """Base class of :class:`AllocationModel`: the network, without data, and known ones by name."""

    def __init__(
        self,
        graph: str,
        sizes: Mapping[str, int | None] | None = None,
        concentration: float = 1.0,
        rate: Rate | None = None,
        tied: Sequence[Sequence[str]] = (),
        *,
        prior: str | Mapping[str, float] = "bdeu",
        axes: Sequence[str] | None = None,
    ) -> None:
        self.graph = Graph.parse(graph)
        self.sizes = checked_sizes(self.graph, sizes)
        self.concentration = checked_parameter("concentration", concentration)
        self.rate = checked_rate(rate)
        self.tied = checked_ties(self.graph, tied)
        self.prior = checked_prior(self.graph, self.tied, prior)
        self.axes = self._open_nodes()
        if axes is not None:
            self.axes = known_nodes(self.graph, "axes", checked_axes(axes))

    @property
    def unknown_sizes(self) -> tuple[str, ...]:
        """The nodes whose size is None, in the order of `sizes`."""
        return tuple(node for node, size in self.sizes.items() if size is None)

    def with_sizes(self, **sizes: int) -> Self:
        """Copy the model with other sizes of some nodes.

        Parameters
        ----------
        **sizes : int or None
            Number of values of a node, by its name.

        Returns
        -------
        AllocationModel
            The copy; nodes that are not given keep their sizes.

        Raises
        ------
        InvalidArgumentError, InvalidTypeError
            If the graph has no such node, or a size is not a positive integer.

        Examples
        --------
        >>> pb.AllocationModel.nmf(None).with_sizes(topic=3)
        <AllocationModel: topic -> doc, word; topic 3; concentration 1>
        """
        other = copy(self)
        other.sizes = checked_sizes(self.graph, {**self.sizes, **sizes})
        return other

    @classmethod
    def nmf(cls, K: int | None, axes: Sequence[str] = ("doc", "word"), **options: Any) -> Self:
        """Non-negative matrix factorisation, or LDA with its prior: ``doc <- topic -> word``.

        Parameters
        ----------
        K : int or None
            Number of topics. None means not known yet, here and for every size of such a model.
        axes : sequence of two str, default=("doc", "word")
            Names of the axes.
        {ready made}

        References
        ----------
        D. D. Lee and H. S. Seung (1999). Learning the parts of objects by non-negative matrix
        factorization. Nature 401.

        {Cemgil 2019}

        Examples
        --------
        >>> pb.AllocationModel.nmf(3)
        <AllocationModel: topic -> doc, word; topic 3; concentration 1>
        """
        first, second = _axes(axes, 2)
        return cls(f"{first} <- topic -> {second}", {"topic": K}, **options)

    @classmethod
    def symmetric_nmf(cls, K: int | None, axes: Sequence[str] = ("i", "j"), **options: Any) -> Self:
        """Non-negative factorisation of a square matrix, one table for both axes.

        The prior is the same as for :meth:`symmetric_cp`.

        Parameters
        ----------
        K : int or None
            Rank.
        axes : sequence of two str, default=("i", "j")
            Names of the axes.
        {ready made}

        Examples
        --------
        >>> pb.AllocationModel.symmetric_nmf(2).tied
        (('i', 'j'),)
        """
        return cls.symmetric_cp(2, K, axes, **options)

    @classmethod
    def symmetric_cp(
        cls, order: int, R: int | None, axes: Sequence[str] | None = None, **options: Any
    ) -> Self:
        """Symmetric CP of a tensor whose N axes share one table: ``r -> i1, i2, ...``, tied.

        The default prior is the published one, ``"bdeu-tokens"``, with α = N a / (I R) for I
        levels and a = `concentration`. ``prior="bdeu"`` gives α = a / (I R), as for axes that are
        not tied.

        Parameters
        ----------
        order : int
            Number of axes, from 2 to 10,000.
        R : int or None
            Rank.
        axes : sequence of str, optional
            Names of the axes; by default i1, i2, ...
        {ready made}

        References
        ----------
        {Cemgil 2019}

        Examples
        --------
        >>> pb.AllocationModel.symmetric_cp(3, 2).tied
        (('i1', 'i2', 'i3'),)
        """
        checks.whole_number("order", order, 2, _MOST_AXES)
        names = _axes([f"i{axis}" for axis in range(1, order + 1)] if axes is None else axes, order)
        options = {"prior": "bdeu-tokens", **options}
        return cls(f"r -> {', '.join(names)}", {"r": R}, tied=[names], **options)

    @classmethod
    def cp(cls, axes: Sequence[str], R: int | None, **options: Any) -> Self:
        """CP, also called PARAFAC, of rank R: ``r -> i, j, k``.

        Parameters
        ----------
        axes : sequence of str
            Names of the axes.
        R : int or None
            Rank.
        {ready made}

        References
        ----------
        R. A. Harshman (1970). Foundations of the PARAFAC procedure. UCLA Working Papers in
        Phonetics 16.

        Examples
        --------
        >>> pb.AllocationModel.cp(["user", "item", "week"], 4)
        <AllocationModel: r -> user, item, week; r 4; concentration 1>
        """
        return cls(f"r -> {', '.join(_axes(axes))}", {"r": R}, **options)

    @classmethod
    def tucker(cls, axes: Sequence[str], ranks: Sequence[int | None], **options: Any) -> Self:
        """Tucker decomposition: a hidden node for every axis, and a joint table of these nodes.

        Parameters
        ----------
        axes : sequence of str
            Names of the axes.
        ranks : sequence of int
            Size of the hidden node of each axis. The node of axis ``i`` is called ``r_i``.
        {ready made}

        References
        ----------
        L. R. Tucker (1966). Some mathematical notes on three-mode factor analysis. Psychometrika
        31(3).

        Examples
        --------
        >>> pb.AllocationModel.tucker(["i", "j"], [2, 3])
        <AllocationModel: r_i -> i, r_j; r_j -> j; r_i 2, r_j 3; concentration 1>
        """
        names = _axes(axes)
        hidden = [f"r_{name}" for name in names]
        lengths = _lengths("ranks", ranks, "axis")
        if len(lengths) != len(names):
            raise InvalidArgumentError(
                f"ranks must hold a number for each of the axes {', '.join(names)}, got {ranks!r}"
            )
        loadings = [f"r_{name} -> {name}" for name in names]
        sizes = dict(zip(hidden, lengths, strict=True))
        return cls("; ".join([*loadings, _chain_rule(hidden)]), sizes, **options)

    @classmethod
    def pachinko(
        cls,
        sizes: Sequence[int | None] | Mapping[str, int | None],
        axes: Sequence[str] = ("doc", "word"),
        **options: Any,
    ) -> Self:
        """Pachinko allocation (Li & McCallum 2006): ``doc -> super -> topic -> word``.

        Parameters
        ----------
        sizes : sequence or mapping of int
            Sizes of the hidden nodes, from documents to words, any number of them. A mapping names
            them; else two are called super and topic, and any other number h1, h2, ...
        axes : sequence of two str, default=("doc", "word")
            Names of the axes.
        {ready made}

        References
        ----------
        W. Li and A. McCallum (2006). Pachinko allocation: DAG-structured mixture models of topic
        correlations. ICML.

        Examples
        --------
        >>> pb.AllocationModel.pachinko([2, 5]).sizes
        {'super': 2, 'topic': 5}
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
        """Mixed-membership blockmodel (Airoldi et al. 2008): ``i -> g; j -> h; g, h -> s``.

        Parameters
        ----------
        K1, K2 : int or None
            Number of groups of senders (node g) and of receivers (node h).
        axes : sequence of three str, default=("i", "j", "s")
            Names of the axes of senders, receivers and kinds of link.
        {ready made}

        References
        ----------
        E. M. Airoldi, D. M. Blei, S. E. Fienberg and E. P. Xing (2008). Mixed membership stochastic
        blockmodels. Journal of Machine Learning Research 9.

        Examples
        --------
        >>> pb.AllocationModel.blockmodel(2, 3).sizes
        {'g': 2, 'h': 3}
        """
        i, j, s = _axes(axes, 3)
        return cls(f"{i} -> g; {j} -> h; g, h -> {s}", {"g": K1, "h": K2}, **options)

    @classmethod
    def hidden_markov(
        cls, length: int, n_states: int | None, tied: bool = False, **options: Any
    ) -> Self:
        """Hidden Markov chain ``h1 -> h2 -> ...`` with an axis ``x1``, ``x2``, ... for each step.

        The prior of tied tables does not depend on the length. For a tied chain, ``"vb"``, ``"em"``
        and ``"ml"`` use forward-backward recursions. The evidence by ``"smc"`` (and ``"auto"``)
        draws the states step by step if all steps together have more than 8,192 joint states. Other
        methods sum over the joint states of all steps, so the chain must be short.

        Parameters
        ----------
        length : int
            Number of steps (one axis each), from 2 to 10,000.
        n_states : int or None
            Number of hidden states.
        tied : bool, default=False
            Whether all steps share one table of transitions and one table of emissions.
        {ready made}

        References
        ----------
        L. R. Rabiner (1989). A tutorial on hidden Markov models and selected applications in speech
        recognition. Proceedings of the IEEE 77(2).

        Examples
        --------
        >>> pb.AllocationModel.hidden_markov(3, 2).axes
        ('x1', 'x2', 'x3')
        """
        checks.whole_number("length", length, 2, _MOST_AXES)
        states, seen = _numbered("h", length), _numbered("x", length)
        emissions = [f"{state} -> {x}" for state, x in zip(states, seen, strict=True)]
        ties = [tie for tie in (states[1:], seen) if len(tie) > 1] if tied else []
        text = "; ".join([" -> ".join(states), *emissions])
        return cls(text, dict.fromkeys(states, n_states), tied=ties, axes=seen, **options)

    @classmethod
    def sum_conditioned(
        cls, R: int | None, axes: Sequence[str] = ("i", "j", "k"), **options: Any
    ) -> Self:
        """Sum-conditioned factorisation: ``j -> k; j, k -> r; k, r -> i`` (Cemgil et al. 2019).

        Parameters
        ----------
        R : int or None
            Rank.
        axes : sequence of three str, default=("i", "j", "k")
            Names of the axes.
        {ready made}

        References
        ----------
        {Cemgil 2019}

        Examples
        --------
        >>> pb.AllocationModel.sum_conditioned(2).graph.to_text()
        'j -> k; j, k -> r; k, r -> i'
        """
        i, j, k = _axes(axes, 3)
        text = f"{j} -> {k}; {j}, {k} -> r; {k}, r -> {i}"
        return cls(text, {"r": R}, axes=(i, j, k), **options)

    @classmethod
    def complete(cls, axes: Sequence[str], **options: Any) -> Self:
        """Complete graph: every axis depends on all axes before it; its evidence is exact.

        Parameters
        ----------
        axes : sequence of str
            Names of the axes.
        {ready made}

        Examples
        --------
        >>> pb.AllocationModel.complete(["i", "j"]).log_evidence([[2, 0], [1, 1]]).method
        'exact'
        """
        return cls(_chain_rule(_axes(axes)), **options)

    def _open_nodes(self) -> tuple[str, ...]:
        nodes = tuple(node for node in self.graph.nodes if node not in self.sizes)
        return ("doc", "word") if set(nodes) == {"doc", "word"} else nodes

    def _repr_html_(self) -> str:
        """Nodes, their parents and sizes, for notebooks."""
        nodes = list(self.graph.nodes)
        columns = {
            "node": nodes,
            "parents": [", ".join(self.graph.parents[node]) for node in nodes],
            "size": [self.sizes.get(node) or "that of the data" for node in nodes],
        }
        return html_table(columns_of(columns), repr(self).strip("<>"))

    def __repr__(self) -> str:
        parts = [self.graph.to_text()]
        sizes = {node: f"{size:,}" if size else "?" for node, size in self.sizes.items()}
        parts += [", ".join(f"{node} {size}" for node, size in sizes.items())]
        parts += [f"concentration {self.concentration:g}"]
        parts += [f"rate {_rate_text(self.rate)}"] if self.rate is not None else []
        parts += [f"tied {', '.join(tie)}" for tie in self.tied]
        parts += [f"prior {self.prior}"] if self.prior != "bdeu" else []
        return f"<AllocationModel: {'; '.join(part for part in parts if part)}>"


def _rate_text(rate: Rate) -> str:
    if isinstance(rate, tuple):
        return f"gamma({rate[0]:g}, {rate[1]:g})"
    return f"{rate:g}"


def _chain_rule(names: Sequence[str]) -> str:
    """Text of the graph in which every node depends on all nodes before it."""
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
