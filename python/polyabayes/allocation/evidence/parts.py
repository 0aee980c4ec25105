"""The evidence of a network without hidden nodes, term by term."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.special import betaln, gammaln

from polyabayes._support.output.tables import columns_of, text_table
from polyabayes._support.results import Result, ResultTable
from polyabayes.allocation.layout import Layout
from polyabayes.data.tensors.cells import canonical_cells

# Name of the set of no nodes, whose one cell holds the total.
_NO_NODES = "-"

_PARTS = ("clique", "separator", "multiplicity", "total")


class EvidencePart(NamedTuple):
    """One term of ln of the evidence.

    Attributes
    ----------
    part : str
        "clique", "separator", "multiplicity" or "total".
    nodes : str
        The nodes whose joint counts enter the term; "+" joins tied tables, whose counts are added.
    times : int
        Multiplicity of the term: positive for a clique, negative for a separator.
    value : float
        Contribution to ln of the evidence, in nats.

    Examples
    --------
    >>> found = pb.AllocationModel("i -> j").log_evidence([[2, 1], [0, 1]], given_total=True)
    >>> found.parts.rows[-1].part, f"{found.parts.rows[-1].value:.4f}"  # ln 4!/(2! 1! 0! 1!)
    ('multiplicity', '2.4849')
    """

    part: str
    nodes: str
    times: int
    value: float


@dataclass(frozen=True, repr=False, eq=False)
class EvidenceParts(Result):
    """The evidence of a network without hidden nodes as a sum of terms.

    ln of the evidence is Σ g(C) over cliques C, minus Σ g(D) over separators D, plus the
    multiplicity ln T!/Π S! (the same for all networks), plus the total ln P(T). Here g(U) is the
    sum of ln Γ(α + S) - ln Γ(α) over the cells of the joint counts S of the nodes U; it is large
    if the tokens lie in few cells. For a network that is not decomposable, or a prior that does not
    agree on shared margins, cliques are families of nodes and separators are their parents; terms
    that cancel are left out.

    Attributes
    ----------
    rows : tuple of EvidencePart
        The terms; their values sum to ln of the evidence.

    References
    ----------
    A. T. Cemgil, M. B. Kurutmaz, S. Yıldırım, M. Barsbey and U. Şimşekli (2019). Bayesian
    allocation model. arXiv:1903.04478. Sections 3.3 and 3.4.

    Examples
    --------
    >>> found = pb.AllocationModel("i -> j").log_evidence([[2, 1], [0, 1]], given_total=True)
    >>> found.parts
    part          nodes  times     value
    clique        i, j       1  -3.93574
    separator     -         -1  -3.17805
    multiplicity  i, j       1   2.48491
    """

    rows: tuple[EvidencePart, ...]

    @property
    def value(self) -> float:
        """Sum of the terms, in nats."""
        return math.fsum(row.value for row in self.rows)

    def __sub__(self, other: object) -> ResultTable:
        """Difference of two networks, term by term."""
        if not isinstance(other, EvidenceParts):
            return NotImplemented
        values: dict[tuple[str, str], list[float]] = {}
        for place, one in enumerate((self, other)):
            for row in one.rows:
                values.setdefault((row.part, row.nodes), [0.0, 0.0])[place] += row.value
        terms = sorted(values, key=lambda term: _PARTS.index(term[0]))
        rows = [(*term, *values[term], values[term][0] - values[term][1]) for term in terms]
        return ResultTable(["part", "nodes", "first", "second", "difference"], rows)

    def _columns(self) -> dict[str, Any]:
        columns = zip(*self.rows, strict=True)
        return dict(zip(EvidencePart._fields, map(list, columns), strict=True))

    def __repr__(self) -> str:
        return text_table(columns_of(self._columns()))


def parts_of(layout: Layout, ln_total: float | None) -> EvidenceParts | None:
    """The terms of the evidence, with ln P(T) if given; None if nodes are hidden."""
    if layout.hidden or not layout.tensor.is_complete or not layout.tensor.total:
        return None
    times: Counter[_Term] = Counter()
    for table in layout.tables:
        alpha, size = layout.alphas[table[0]], layout.sizes[table[0]]
        times[_Term.of(layout, [layout.model.graph.family(node) for node in table], alpha)] += 1
        parents = [layout.model.graph.parents[node] for node in table]
        times[_Term.of(layout, parents, alpha * size)] -= 1
    rows = []
    for term, number in sorted(times.items(), key=lambda item: item[1] < 0):
        if number:
            part = "clique" if number > 0 else "separator"
            rows.append(EvidencePart(part, term.name, number, number * term.ln_risings(layout)))
    counts = layout.tensor.counts
    ln_arrangements = float(gammaln(layout.tensor.total + 1.0) - gammaln(counts + 1.0).sum())
    rows.append(EvidencePart("multiplicity", ", ".join(layout.sizes), 1, ln_arrangements))
    if ln_total is not None:
        rows.append(EvidencePart("total", _NO_NODES, 1, ln_total))
    return EvidenceParts(tuple(rows))


class _Term(NamedTuple):
    """Joint counts of a set of nodes (summed over tied tables), and their prior."""

    sets: tuple[tuple[str, ...], ...]
    alpha: float

    @classmethod
    def of(cls, layout: Layout, sets: Sequence[Sequence[str]], alpha: float) -> _Term:
        """The term of one table; terms of equal sets compare equal."""
        if len(sets) == 1:  # the places of tied tables are matched, and keep their order
            sets = [[node for node in layout.sizes if node in sets[0]]]
        # a / 6 x 2 is a / 3.
        return cls(tuple(map(tuple, sets)), float(f"{alpha:.14g}"))

    @property
    def name(self) -> str:
        return " + ".join(", ".join(nodes) or _NO_NODES for nodes in self.sets)

    def ln_risings(self, layout: Layout) -> float:
        """Σ ln Γ(α + S) - ln Γ(α) over the cells."""
        tensor, counts = layout.tensor, np.array([len(self.sets) * layout.tensor.total])
        if self.sets[0]:
            columns = [[tensor.axes.index(node) for node in nodes] for nodes in self.sets]
            cells = np.concatenate([tensor.coordinates[:, of_set] for of_set in columns])
            _, counts = canonical_cells(cells, np.tile(tensor.counts, len(self.sets)))
        return float((gammaln(counts) - betaln(self.alpha, counts)).sum())
