"""Draws from the posterior of allocations, by parallel tempering or by particles."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

from polyabayes import _core
from polyabayes._support import checks
from polyabayes._support.arrays import Floats, Indices, Integers
from polyabayes._support.docs import shared_docs
from polyabayes._support.output.arviz import inference_data
from polyabayes._support.output.tables import counted
from polyabayes._support.random import RandomState, dirichlet, random_generator
from polyabayes._support.results import Result
from polyabayes._support.warnings import warn
from polyabayes.allocation.evidence.bounds import held_by_bound
from polyabayes.allocation.evidence.result import Estimate, Evidence, as_evidence
from polyabayes.allocation.inference.alignment import Numbering
from polyabayes.allocation.inference.decomposition import Decomposition
from polyabayes.allocation.layout import Layout
from polyabayes.allocation.options import METHODS, Options, Run
from polyabayes.data.tensors.tensor import CountTensor
from polyabayes.exceptions import (
    BudgetExceededError,
    Interrupted,
    InvalidArgumentError,
    TargetWarning,
    UnreliableErrorWarning,
    argument,
)

# Default number of draws of all chains together.
DRAWS = 400

# Methods that draw from the posterior.
DRAWING = {name: METHODS[name] for name in ("tempered", "smc")}

# Mark of a node that is observed for a token.
_NOT_DRAWN = np.iinfo(np.uint32).max

# Most bytes that the counts of all draws may take.
_MOST_BYTES = 2**32


class _Groups(NamedTuple):
    """Groups of equal tokens, draw after draw; `starts` has the first group of each draw."""

    starts: Integers
    cells: NDArray[np.uint32]
    numbers: NDArray[np.uint32]
    values: NDArray[np.uint32]


@shared_docs
@dataclass(frozen=True, repr=False, eq=False)
class PosteriorDraws(Result):
    """Posterior draws of the allocation of a count tensor to hidden values.

    Draws of ``"tempered"`` are states of its chains at the posterior; draws of one chain are
    correlated. Draws of ``"smc"`` are particles, drawn by their weights.

    The posterior does not identify the numbers of hidden values. Every draw is renumbered to match
    the most probable draw as well as an assignment can.

    Attributes
    ----------
    counts : dict of str to ndarray, shape (n_draws, size of the node, sizes of its parents)
        Tokens of every value of a node and its parents, summed over tied nodes.
    log_joint : ndarray of shape (n_draws,)
        ln π(S | T) = ln Pr(X, S | T) of every draw, in nats, where S are the numbers of tokens
        (Cemgil et al. 2019, equation 3.11).
    chain : ndarray of int, shape (n_draws,)
        Replicate of tempering that each draw comes from, equally many each; 0 for ``"smc"``.
    evidence : Evidence
        The evidence from the same chains or particles.
    alphas : dict of str to float
        Dirichlet parameter of every cell of a node's table.
    families : dict of str to tuple of str
        The node and its parents: the axes of its table.
    intensity : float
        Posterior mean of λ, the expected total.
    tensor : CountTensor
        The data.

    Examples
    --------
    >>> model = pb.AllocationModel.nmf(2)
    >>> draws = model.sample_posterior(counts, random_state=0)
    >>> draws.counts["word"].shape, len(draws)
    ((400, 3, 2), 400)
    """

    counts: dict[str, Floats]
    log_joint: Floats
    chain: Integers
    evidence: Evidence
    alphas: dict[str, float]
    families: dict[str, tuple[str, ...]]
    intensity: float
    tensor: CountTensor
    _groups: _Groups
    _numbers: list[dict[str, Indices]]
    _hidden: tuple[str, ...]
    _seed: int

    def __len__(self) -> int:
        return len(self.log_joint)

    def tables(self, random_state: RandomState = None) -> dict[str, Floats]:
        """Draws of the conditional tables, one for each allocation: Dirichlet(α + counts).

        Parameters
        ----------
        random_state : None, int, RandomState, Generator or SeedSequence
            None gives the same draws at every call.

        Returns
        -------
        dict of str to ndarray, shapes as `counts`
            Probabilities, which sum to 1 over the second axis. Tied nodes have one table.

        Examples
        --------
        >>> model = pb.AllocationModel.nmf(2)
        >>> draws = model.sample_posterior(counts, random_state=0)
        >>> draws.tables()["word"].sum(axis=1).round(12).max()
        np.float64(1.0)
        """
        generator = random_generator(self._seed if random_state is None else random_state)
        return self._by_table(lambda node, n: dirichlet(generator, self.alphas[node] + n, axis=1))

    @cached_property
    def _fits(self) -> Floats:
        """Expected counts of the non-zero cells under the tables, by draw."""
        tables = self.tables()
        return np.array(
            [
                self._explained({node: table[i] for node, table in tables.items()}, i).fitted_counts
                for i in range(len(self))
            ]
        )

    @property
    def fitted_counts(self) -> Floats:
        """Posterior mean of the expected counts of the data's non-zero cells, shape (n_cells,)."""
        return np.asarray(self._fits.mean(axis=0))

    @property
    def fitted_std(self) -> Floats:
        """Posterior standard deviation of the expected counts, the total fixed at its mean."""
        return np.asarray(self._fits.std(axis=0))

    def decomposition(self) -> Decomposition:
        """Average tables and counts over the draws.

        Counts S of a draw give the tables (α + S) / Σ (α + S). Every draw has equal weight.

        Returns
        -------
        Decomposition
            Its trace is `log_joint`, and its value the mean of the trace.

        Examples
        --------
        >>> model = pb.AllocationModel.nmf(2)
        >>> draws = model.sample_posterior(counts, random_state=0)
        >>> draws.decomposition().tables["word"].shape
        (3, 2)
        """
        return self._explained(self._by_table(lambda node, n: _mean_table(self.alphas[node], n)))

    def allocation(self, draw: int) -> tuple[Integers, Floats, dict[str, Any]]:
        """Hidden values of all tokens in a draw, grouped by cell and values.

        Parameters
        ----------
        draw : int
            Number of the draw.

        Returns
        -------
        cells : ndarray of int, shape (n_groups,)
            Cell of each group: a row of ``tensor.coordinates``.
        numbers : ndarray of int, shape (n_groups,)
            Number of tokens in each group.
        values : dict of str to ndarray of int, shape (n_groups,)
            The value of every hidden node, and of axes that are missing for some tokens; -1 for
            tokens whose value is observed, or has no effect on anything observed.

        Raises
        ------
        InvalidArgumentError
            If there is no such draw.

        Examples
        --------
        >>> model = pb.AllocationModel.nmf(2)
        >>> draws = model.sample_posterior(counts, random_state=0)
        >>> cells, numbers, values = draws.allocation(0)
        >>> numbers.sum(), list(values)
        (np.int64(13), ['topic'])
        """
        if not 0 <= checks.whole_number("draw", draw, 0) < len(self):
            raise InvalidArgumentError(
                f"no draw {draw}; there are {len(self)}, counted from 0", argument="draw"
            )
        groups = self._groups
        rows = slice(*groups.starts[draw : draw + 2])
        by_group = groups.values[rows]
        values = {}
        for column, node in enumerate(self._hidden):
            drawn = by_group[:, column].astype(np.int64)
            drawn[by_group[:, column] == _NOT_DRAWN] = -1
            if node in self._numbers[draw]:
                drawn[drawn >= 0] = np.argsort(self._numbers[draw][node])[drawn[drawn >= 0]]
            values[node] = drawn
        return groups.cells[rows].astype(np.int64), groups.numbers[rows].astype(np.int64), values

    def to_inference_data(self) -> Any:
        """Convert the draws for ArviZ.

        Returns
        -------
        arviz.InferenceData, or xarray.DataTree from ArviZ 1.0 on
            A ``posterior`` group with draws of every table, dimensions (chain, draw, nodes);
            ``log_joint`` is ``lp`` in ``sample_stats``.

        {raises: no ArviZ}

        Examples
        --------
        >>> model = pb.AllocationModel.nmf(2)
        >>> draws = model.sample_posterior(counts, random_state=0)
        >>> draws.to_inference_data().posterior.sizes["topic"]
        2
        """
        n_chains = len(np.unique(self.chain))

        def by_chain(draws: Floats) -> Floats:
            return draws.reshape(n_chains, -1, *draws.shape[1:])

        tables = {f"p_{node}": by_chain(table) for node, table in self.tables().items()}
        dims = {f"p_{node}": list(family) for node, family in self.families.items()}
        return inference_data(tables, by_chain(self.log_joint), dims)

    def _by_table(self, make: Callable[[str, Floats], Floats]) -> dict[str, Floats]:
        """Apply `make` to the counts of every node; once for tied nodes, which share a table."""
        made: dict[int, Floats] = {}
        for node, counts in self.counts.items():
            if id(counts) not in made:
                made[id(counts)] = make(node, counts)
        return {node: made[id(counts)] for node, counts in self.counts.items()}

    def _explained(self, tables: dict[str, Floats], draw: int | None = None) -> Decomposition:
        """The decomposition with given tables, of one draw or averaged."""
        seen = slice(None) if draw is None else slice(draw, draw + 1)
        return Decomposition(
            tables=tables,
            expected_counts=self._by_table(lambda _, counts: counts[seen].mean(axis=0)),
            families=self.families,
            intensity=self.intensity,
            trace=self.log_joint[seen],
            value=float(self.log_joint[seen].mean()),
            has_converged=self.evidence.converged,
            log_probability_of_total=self.evidence.log_probability_of_total,
            method="smc" if self.evidence.method == "smc" else "tempered",
            tensor=self.tensor,
            missing_cells=np.empty((0, len(self.tensor.axes)), dtype=np.int64),
            seconds=self.evidence.seconds,
        )

    def _columns(self) -> dict[str, Any]:
        return {"chain": self.chain, "log_joint": self.log_joint}

    def __repr__(self) -> str:
        source = "particles"
        if self.evidence.method != "smc":
            source = (
                f"{counted(len(np.unique(self.chain)), 'chain')}, "
                f"{counted(self.evidence.round_trips, 'round trip')}"
            )
        return f"<PosteriorDraws: {len(self):,} of {source}; {self.evidence!r}>"


def _mean_table(alpha: float, counts: Floats) -> Floats:
    """Mean over draws of the expected table given the counts of each, (α + S) / Σ (α + S)."""
    weights = 1 / (alpha * counts.shape[1] + counts.sum(axis=1, keepdims=True))
    # Counts of all draws are large: avoid a second array of their size.
    found: Floats = np.einsum("d...,d...->...", counts, weights) + alpha * weights.sum(axis=0)
    return found / len(counts)


def ln_table(counts: Floats, alpha: float) -> Floats:
    """Ln of the probability of the counts of a table, integrated out, by draw.

    Counts have the shape (n_draws, n_levels, ...); every other column of levels has a distribution
    from a symmetric Dirichlet of this parameter.
    """
    n_levels, totals = counts.shape[1], counts.sum(axis=1)
    above = special.gammaln(counts + alpha) - special.gammaln(alpha)
    below = special.gammaln(totals + n_levels * alpha) - special.gammaln(n_levels * alpha)
    shape = len(counts), -1
    return np.asarray(above.reshape(shape).sum(axis=1) - below.reshape(shape).sum(axis=1))


def ln_tables(draws: PosteriorDraws, alphas: Mapping[str, float]) -> Floats:
    """Ln of the probability of all counts with the tables integrated out, by draw.

    `alphas` has the Dirichlet parameter of every cell of a node's table; tied nodes have one table.
    """
    alpha_of = {id(table): (table, alphas[node]) for node, table in draws.counts.items()}
    return np.sum([ln_table(table, alpha) for table, alpha in alpha_of.values()], axis=0)


def draw_posterior(
    layout: Layout, options: Options, n_draws: int | None, run: Run
) -> PosteriorDraws:
    """Draw allocations of a tensor under a model that is laid out for it.

    `n_draws=None` gives about `DRAWS`, or fewer if rounds must be short.
    """
    n_wanted = 1 if n_draws is None else checks.whole_number("n_draws", n_draws, 1)
    n_draws = DRAWS if n_draws is None else n_wanted
    options = options.checked(layout.tensor.n_cells, DRAWING)
    if options.n_sweeps == 0:
        raise InvalidArgumentError(
            f"draws by 'smc' need Gibbs sweeps, else few particles have descendants: give "
            f"{argument('n_sweeps')} of 1 or more"
        )
    n_bytes = 8 * n_draws * sum(int(np.prod(layout.shape(table[0]))) for table in layout.tables)
    if n_bytes > _MOST_BYTES:
        raise BudgetExceededError(
            f"the counts of {n_draws:,} draws take {n_bytes:,} bytes, more than {_MOST_BYTES:,}; "
            f"lower {argument('n_draws')}"
        )
    start = time.perf_counter()
    found, interruption = _found(layout, (), options, n_draws, run)
    estimate, method = Estimate(found.ln_laws[0], 0.0, np.inf, 0), "exact"
    if found.estimate is not None:
        estimate = Estimate.of(found.estimate, tempering=found.tempering)
        method = options.method
        if interruption is None and method == "tempered":
            estimate = held_by_bound(layout.core, estimate, run)
            interruption = estimate.interruption
    evidence = as_evidence(
        layout, method, estimate, given_total=False, ln_total=layout.ln_total(), start=start
    )
    draws = _posterior_draws(layout, found, evidence, run.seed)
    if interruption is not None:
        raise Interrupted(f"stopped with {len(draws):,} draws of {n_draws:,}", draws)
    if len(draws) < n_wanted:
        n_each = -(-n_wanted // evidence.n_replicates)
        warn(
            f"{len(draws):,} draws, not {n_wanted:,}: {argument('n_samples')}={options.n_samples} "
            f"makes the last round too short; lower {argument('n_draws')}, or raise "
            f"{argument('n_samples')} to {2 * n_each:,}",
            TargetWarning,
        )
    if evidence.doubt:
        warn(evidence.doubt, UnreliableErrorWarning)
    return draws


def weigh_posteriors(
    layouts: Sequence[Layout], options: Options, n_draws: int, run: Run
) -> tuple[list[Evidence], PosteriorDraws | None]:
    """Evidences given the total under several priors, by particles drawn under the first of them.

    `layouts` have the same network, of which a node is hidden, and the same data. All estimates are
    unbiased; the error grows with the distance of the priors. Of the first, `n_draws` draws, if
    any.
    """
    start = time.perf_counter()
    first, *others = layouts
    found, interruption = _found(first, others, options, n_draws, run)
    if interruption is not None:
        raise interruption
    assert found.estimate is not None
    evidences = [
        as_evidence(
            layout,
            options.method,
            Estimate.of(one),
            given_total=True,
            ln_total=layout.ln_total(),
            start=start,
        )
        for layout, one in zip(layouts, [found.estimate, *found.others], strict=True)
    ]
    draws = _posterior_draws(first, found, evidences[0], run.seed) if n_draws else None
    return evidences, draws


def _found(
    layout: Layout, others: Sequence[Layout], options: Options, n_draws: int, run: Run
) -> tuple[_core.AllocationDraws, BaseException | None]:
    """Draws of the compiled core, and an interrupt from the keyboard; other exceptions rise."""
    unit = "round" if options.method == "tempered" else "replicate"
    with run.shown(None, unit) as running:
        cores = [other.core for other in others]
        found, interruption = layout.core.draws(options, cores, n_draws=n_draws, **running)
    if interruption is not None and not isinstance(interruption, KeyboardInterrupt):
        raise interruption
    return found, interruption


def _posterior_draws(
    layout: Layout, found: _core.AllocationDraws, evidence: Evidence, seed: int
) -> PosteriorDraws:
    """Draws of the compiled core, their hidden values numbered alike."""
    nodes = list(layout.sizes)
    hidden = tuple(nodes[number] for number in found.hidden)
    families = {node: layout.model.graph.family(node) for node in nodes}
    counts, numbers = _numbered(layout, found, hidden, families)
    return PosteriorDraws(
        counts=counts,
        log_joint=found.ln_laws,
        chain=found.replicates,
        evidence=evidence,
        alphas=layout.alphas,
        families=families,
        intensity=layout.intensity(),
        tensor=layout.tensor,
        _groups=_Groups(
            found.starts,
            found.cells,
            found.numbers,
            found.values.reshape(len(found.cells), len(hidden)),
        ),
        _numbers=numbers,
        _hidden=hidden,
        _seed=seed,
    )


def _numbered(
    layout: Layout,
    found: _core.AllocationDraws,
    hidden: tuple[str, ...],
    families: dict[str, tuple[str, ...]],
) -> tuple[dict[str, Floats], list[dict[str, Indices]]]:
    """Counts of all draws, renumbered as in the most probable draw, and the new numbers."""
    raw = {
        table[0]: flat.reshape(-1, *layout.shape(table[0]))
        for flat, table in zip(found.counts, layout.tables, strict=True)
    }
    best = int(np.argmax(found.ln_laws))
    reference = {node: counts[best] for node, counts in raw.items()}
    tied = [table for table in layout.tables if len(table) > 1]
    unseen = tuple(node for node in hidden if node not in layout.tensor.axes)
    numbering = Numbering(families, unseen, tied)
    numbers = numbering.of_draws(raw, reference)
    for node, table in raw.items():
        for draw, of_draw in enumerate(numbers):
            table[draw] = numbering.renumbered(families[node], table[draw], of_draw)
    counts = {node: raw[table[0]] for table in layout.tables for node in table}
    return {node: counts[node] for node in layout.sizes}, numbers
