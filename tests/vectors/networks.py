"""Bayesian networks over tokens: exact probabilities of tensors of counts, in two ways.

A network's node n has ``sizes[n]`` values and the nodes ``parents[n]`` as parents; ``visible`` are
the axes of the tensor X, in their order; S counts tokens by the values of all nodes. A table holds
the conditional probabilities of a node given its parents; the nodes of a list in ``ties`` share
one. An entry of node n's table has the Dirichlet parameter ``tables[n]`` where that is given, and
by default

    concentration / (number of values of n and its parents together),

however many nodes share the table.

With B(Z) = prod over parents' values [prod Gamma(Z)] / Gamma(sum Z), and T = sum of X,

    Pr(X | T) = sum over S with margin X of  T! / prod S! * prod over tables B(alpha + S) / B(alpha)

is computed over all tensors S, as it is written, and from the urn, in which a token's node n takes
its value with probability (alpha + S) / (sum of alpha + S), one token at a time, paths merged where
their counts by family are the same.
"""

import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property

Index = tuple[int, ...]
Counts = dict[Index, int]


@dataclass(frozen=True)
class Network:
    sizes: list[int]
    parents: list[list[int]]
    visible: list[int]
    concentration: float = 1.0
    ties: list[list[int]] = field(default_factory=list)
    tables: list[float] | None = None

    def table(self, node: int) -> int:
        """The first of the nodes that share the node's table."""
        return next((tie[0] for tie in self.ties if node in tie), node)

    def parameter(self, table: int) -> Fraction:
        """Of the Dirichlet prior, the same for all entries of a table."""
        if self.tables is not None:
            return Fraction(self.tables[table])
        cells = math.prod(self.sizes[m] for m in [table, *self.parents[table]])
        return Fraction(self.concentration) / cells

    @cached_property
    def entries(self) -> list[tuple[int, Index, int]]:
        """Entries of all tables: table, values of the parents, own value."""
        return [
            (n, given, value)
            for n in range(len(self.sizes))
            if self.table(n) == n
            for given in itertools.product(*(range(self.sizes[m]) for m in self.parents[n]))
            for value in range(self.sizes[n])
        ]

    @cached_property
    def rows(self) -> list[range]:
        """For each entry, all entries with its table and parents' values."""
        starts = [at - value for at, (_, _, value) in enumerate(self.entries)]
        sizes = [self.sizes[node] for node, _, _ in self.entries]
        return [range(at, at + size) for at, size in zip(starts, sizes, strict=True)]

    @cached_property
    def parameters(self) -> list[Fraction]:
        return [self.parameter(table) for table, _, _ in self.entries]

    @cached_property
    def allocations(self) -> dict[Index, list[Index]]:
        """By cell of the tensor: for all hidden values, the entries a token uses, one a node."""
        position, cells = {entry: at for at, entry in enumerate(self.entries)}, defaultdict(list)
        for values in itertools.product(*map(range, self.sizes)):
            used = (
                (self.table(n), tuple(values[m] for m in given), values[n])
                for n, given in enumerate(self.parents)
            )
            cells[tuple(values[n] for n in self.visible)].append(tuple(position[e] for e in used))
        return cells


def compositions(total: int, parts: int) -> Iterator[Index]:
    if parts == 1:
        yield (total,)
        return
    for first in range(total + 1):
        for rest in compositions(total - first, parts - 1):
            yield (first, *rest)


def multinomial(counts: Index) -> int:
    return math.factorial(sum(counts)) // math.prod(map(math.factorial, counts))


def splits(network: Network, cell: Index, count: int) -> list[tuple[int, Index]]:
    """Each way to allocate a cell's tokens: its multiplicity and the table entries it counts."""
    ways = []
    for counts in compositions(count, len(network.allocations[cell])):
        used = [0] * len(network.entries)
        for entries, n in zip(network.allocations[cell], counts, strict=True):
            for entry in entries:
                used[entry] += n
        ways.append((multinomial(counts), tuple(used)))
    return ways


def sum_over_tensors(network: Network, X: Counts) -> Fraction:
    """Return Pr(X | T) from all S, as integers: B(alpha + S) / B(alpha) with alpha = p / q is

    prod over parents' values of  prod p (p + q) .. (p + q S - q) / [P (P + q) .. (P + q S_+ - q)]

    where P / q is the sum of the row's alpha; the powers of q cancel.
    """
    T = sum(X.values())
    most = T * len(network.sizes)
    above, below = [], []
    for alpha, row in zip(network.parameters, network.rows, strict=True):
        p, q = alpha.numerator, alpha.denominator
        for factors, start in ((above, p), (below, p * len(row))):
            steps = (start + i * q for i in range(most))
            factors.append(list(itertools.accumulate(steps, int.__mul__, initial=1)))
    rows = sorted({(row.start, row.stop) for row in network.rows})
    sums: dict[int, int] = Counter()  # of numerators, by denominator
    nothing = (1, (0,) * len(network.entries))
    for ways in itertools.product([nothing], *(splits(network, *cell) for cell in X.items())):
        S = [sum(used) for used in zip(*(used for _, used in ways), strict=True)]
        numerator = math.prod(multiplicity for multiplicity, _ in ways)
        numerator *= math.prod([factors[n] for factors, n in zip(above, S, strict=True)])
        sums[math.prod([below[i][sum(S[i:j])] for i, j in rows])] += numerator
    total = sum((Fraction(value, divisor) for divisor, value in sums.items()), Fraction(0))
    return total * multinomial(tuple(X.values()))


def step(network: Network, S: Index, entries: Index) -> tuple[Index, Fraction]:
    """Put a token with these table entries into the urn: the new counts, and its probability."""
    counts, probability = list(S), Fraction(1)
    for entry in entries:  # one after the other, as tied nodes draw from the same row
        alpha, row = network.parameters[entry], network.rows[entry]
        total = alpha * len(row) + sum(counts[row.start : row.stop])
        probability *= (alpha + counts[entry]) / total
        counts[entry] += 1
    return tuple(counts), probability


def sum_over_urn_states(network: Network, tokens: list[list[Index]]) -> Fraction:
    """Return the probability of tokens in this order, each with a choice of table entries."""
    states = {(0,) * len(network.entries): Fraction(1)}
    for choices in tokens:
        following: dict[Index, Fraction] = defaultdict(Fraction)
        for S, value in states.items():
            for entries in choices:
                after, probability = step(network, S, entries)
                following[after] += value * probability
        states = following
    return sum(states.values(), Fraction(0))


def probability_given_total(network: Network, X: Counts, n_missing=0, missing=()) -> Fraction:
    """Return Pr(X | T), T = sum of X + n_missing, where `missing` cells hold n_missing tokens."""
    tokens = [network.allocations[cell] for cell, count in X.items() for _ in range(count)]
    anywhere = [entries for cell in missing for entries in network.allocations[cell]]
    tokens += [anywhere] * n_missing
    orders = multinomial((*X.values(), n_missing))
    value = sum_over_urn_states(network, tokens) * orders
    completions = [()] if not missing else compositions(n_missing, len(missing))
    completed = ({**X, **dict(zip(missing, counts, strict=True))} for counts in completions)
    assert value == sum((sum_over_tensors(network, Y) for Y in completed), Fraction(0))
    return value


def nmf(shape: list[int], K: int, a: float = 1.0, graph: str = "i<-k->j", **options) -> Network:
    parents = {"i<-k->j": [[2], [2], []], "i->k->j": [[], [2], [0]], "j->k->i": [[2], [], [1]]}
    return Network([*shape, K], parents[graph], options.pop("visible", [0, 1]), a, **options)


def cp(shape: list[int], R: int, a: float = 1.0, **options) -> Network:
    order = len(shape)
    parents = [[order]] * order + [[]]
    return Network([*shape, R], parents, list(range(order)), a, **options)


def symmetric(order: int, size: int, R: int, a: float = 1.0) -> Network:
    return cp([size] * order, R, a, ties=[list(range(order))])


def tucker(shape: list[int], core: list[int], a: float = 1.0, **options) -> Network:
    order = len(shape)
    roots = [list(range(order + m + 1, 2 * order)) for m in range(order)]
    parents = [[order + m] for m in range(order)] + roots
    return Network([*shape, *core], parents, list(range(order)), a, **options)


def pachinko(n_words: int, n_documents: int, levels: list[int], a: float = 1.0) -> Network:
    """Doc -> level 0 -> level 1 .. -> word; axes word and doc."""
    chain = [[n - 1] for n in range(3, 2 + len(levels))]
    parents = [[1 + len(levels)], [], [1], *chain]
    return Network([n_words, n_documents, *levels], parents, [0, 1], a)


def blockmodel(shape: list[int], blocks: list[int], a: float = 1.0, **options) -> Network:
    """I -> g; j -> h; g, h -> s, with axes i, j, s."""
    return Network([*shape, *blocks], [[], [], [3, 4], [0], [1]], [0, 1, 2], a, **options)


def sum_conditioned(sizes: list[int], visible: list[int], a: float = 1.0) -> Network:
    """J -> k; j, k -> r; k, r -> i, with nodes i, j, k, r."""
    return Network(sizes, [[2, 3], [], [1], [1, 2]], visible, a)


def markov(outputs: int, states: int, a: float = 1.0, tied: str = "", **options) -> Network:
    """A hidden Markov chain of length three: axes 0, 1, 2, the chain 3 -> 4 -> 5."""
    ties = [[4, 5]] * ("transitions" in tied) + [[0, 1, 2]] * ("emissions" in tied)
    sizes = [outputs] * 3 + [states] * 3
    return Network(sizes, [[3], [4], [5], [], [3], [4]], [0, 1, 2], a, ties, **options)
