"""Particles of the parameters of a chain of classes; the classes of rows are summed out."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy import optimize, special

from polyabayes._support.arrays import Floats, Indices, Integers
from polyabayes._support.random import dirichlet
from polyabayes.allocation.inference.draws import ln_table
from polyabayes.latent_classes.answers import indicators
from polyabayes.latent_classes.tables import TINY, ClassTables, profiles

# Chosen by hand. In a trial, 12 runs of 64 particles for 100 rows of three waves, four items and
# three classes, deviations of ln evidence were 0.8 to 1.6 nats with one to four sweeps, with the
# further ones or without, and with shares of 0.25 to 0.8: so few runs do not tell which is best.

# Share of effective particles at which they are resampled, and Gibbs sweeps of each afterwards.
_LEAST_SHARE, _SWEEPS = 0.5, 2
# Further sweeps while rows are few, and classes take shape: as many as rows fit into this number.
_MORE_SWEEPS, _FEW_ROWS = 8, 200

Levels = Integers


@dataclass(frozen=True, eq=False)
class Waves:
    """Answers of rows in waves, and which tables they share."""

    # Indicators of the answers in each wave, shape (n_patterns, sum of levels of all tables).
    shown: list[Floats]
    # Pattern of each row.
    rows: Indices
    # Levels of each table.
    n_levels: tuple[int, ...]
    is_stationary: bool
    # Covariates of the first class of a pattern, shape (n_patterns, n_columns).
    covariates: Floats | None = None
    # Weight of each row, if they differ.
    row_weights: Floats | None = None

    @classmethod
    def of(
        cls,
        levels: Levels,
        slots: Levels,
        n_levels: tuple[int, ...],
        is_stationary: bool,
        covariates: Floats | None = None,
    ) -> Waves:
        """Waves of answers, shape (n_rows, n_waves, n_items); -1 is missing.

        `slots` has the table of each wave and item. Covariates are of the rows.
        """
        columns = levels.reshape(len(levels), -1)
        n_answers = columns.shape[1]
        if covariates is not None:
            columns = np.column_stack([columns, covariates])
        patterns, rows = np.unique(columns, axis=0, return_inverse=True)
        if covariates is not None:
            covariates = np.ascontiguousarray(patterns[:, n_answers:])
        patterns = patterns[:, :n_answers].astype(np.int64).reshape(-1, *levels.shape[1:])
        pairs = zip(patterns.swapaxes(0, 1), slots, strict=True)
        shown = [indicators(answers, n_levels, own) for answers, own in pairs]
        return cls(shown, rows.ravel(), n_levels, is_stationary, covariates)

    @property
    def n_waves(self) -> int:
        """Number of waves."""
        return len(self.shown)

    def step(self, wave: int) -> int:
        """Transition table from a wave to the next."""
        return 0 if self.is_stationary else wave


class ChainPrior(NamedTuple):
    """Dirichlet parameters: of first classes, of transitions, and possible ones of the tables."""

    weights: float
    transitions: float
    # One number for all tables, or one each.
    items: Sequence[float | Sequence[float]]
    # Whether each table has a profile for each class, or one for all; all have by default.
    tells: Sequence[bool] | None = None


@dataclass(frozen=True, eq=False)
class Chains:
    """Draws of the parameters of a chain of classes, of shape (n_draws, ...) each."""

    weights: Floats
    # Shape (n_draws, n_steps, from, to).
    transitions: Floats
    # Shape (n_draws, n_levels, n_classes) for each table.
    items: tuple[Floats, ...]
    # λ of p(first class k | x) ∝ exp(x·λ_k): (n_draws, n_classes, n_columns).
    coefficients: Floats | None = None

    @classmethod
    def of_prior(
        cls,
        waves: Waves,
        prior: ChainPrior,
        n_classes: int,
        n_draws: int,
        generator: np.random.Generator,
    ) -> Chains:
        """Independent draws from the prior."""
        n_steps = 1 if waves.is_stationary else waves.n_waves - 1
        counts = Counts(
            np.zeros((n_draws, n_classes)),
            np.zeros((n_draws, n_steps, n_classes, n_classes)),
            [np.zeros((n_draws, n, n_classes)) for n in waves.n_levels],
            np.zeros((n_draws, 0), dtype=np.intp),
        )
        return counts.drawn(prior, generator)

    def tables(self) -> ClassTables:
        """Weights in the first wave, and probabilities of answers."""
        return ClassTables(self.weights, self.items, self.coefficients)

    def take(self, draws: Indices) -> Chains:
        """Some of the draws."""
        return self.each(lambda table: table[draws])

    def each(self, function: Callable[..., Floats], *others: Chains) -> Chains:
        """Draws that a function makes of each table."""
        parts = (self, *others)
        return Chains(
            function(*(part.weights for part in parts)),
            function(*(part.transitions for part in parts)),
            tuple(function(*tables) for tables in zip(*(p.items for p in parts), strict=True)),
            None if self.coefficients is None else function(*(p.coefficients for p in parts)),
        )

    def renumbered(self, orders: Indices) -> Chains:
        """Classes of each draw in an order of its own, shape (n_draws, n_classes)."""
        draws = np.arange(len(orders))[:, None]
        rows = self.transitions.swapaxes(1, 2)[draws, orders]
        return replace(
            self,
            weights=self.weights[draws, orders],
            transitions=rows.transpose(0, 3, 2, 1)[draws, orders].transpose(0, 2, 3, 1),
            items=tuple(table.swapaxes(1, 2)[draws, orders].swapaxes(1, 2) for table in self.items),
            coefficients=None if self.coefficients is None else self.coefficients[draws, orders],
        )

    @classmethod
    def joined(cls, parts: Sequence[Chains]) -> Chains:
        """The draws of all parts."""
        return parts[0].each(lambda *tables: np.concatenate(tables), *parts[1:])

    def forward(self, waves: Waves) -> tuple[Floats, list[Floats]]:
        """Ln of the probability of all patterns, and filtered classes of each wave.

        Shapes (n_draws, n_patterns), and (n_classes, n_draws, n_patterns) for each wave.
        """
        logs = np.log(np.maximum(np.concatenate(self.items, axis=1), TINY))
        filtered: list[Floats] = []
        found = np.zeros(())
        for wave, shown in enumerate(waves.shown):
            terms = np.ascontiguousarray((shown @ logs).transpose(2, 0, 1))
            top = terms.max(axis=0)
            joint = np.exp(terms - top)
            joint *= self._ahead(waves, wave, filtered)
            total = joint.sum(axis=0)
            found = found + np.log(total) + top
            filtered.append(joint / total)
        return found, filtered

    def _ahead(self, waves: Waves, wave: int, filtered: list[Floats]) -> Floats:
        """Class probabilities in a wave given the answers before it."""
        if not wave:
            if self.coefficients is None or waves.covariates is None:
                return self.weights.T[:, :, None]
            linear = np.einsum("np,dkp->kdn", waves.covariates, self.coefficients)
            return np.asarray(special.softmax(linear, axis=0))
        table = self.transitions[:, waves.step(wave - 1)]
        return np.einsum("jnp,njk->knp", filtered[wave - 1], table)

    def smoothed(self, waves: Waves) -> Floats:
        """Class probabilities of patterns and waves, (n_patterns, n_waves, n_classes).

        Means over the draws.
        """
        _, filtered = self.forward(waves)
        later, found = filtered[-1], [filtered[-1].mean(axis=1).T]
        for wave in range(waves.n_waves - 2, -1, -1):
            ratio = later / np.maximum(self._ahead(waves, wave + 1, filtered), TINY)
            table = self.transitions[:, waves.step(wave)]
            later = filtered[wave] * np.einsum("knp,njk->jnp", ratio, table)
            found.append(later.mean(axis=1).T)
        return np.stack(found[::-1], axis=1)

    def drawn_counts(self, waves: Waves, rows: Indices, generator: np.random.Generator) -> Counts:
        """Counts of the classes of rows, drawn given the parameters of each draw."""
        _, filtered = self.forward(waves)
        n_draws, n_classes = self.weights.shape
        particles, n_patterns = np.arange(n_draws)[:, None], len(waves.shown[0])
        answers = np.zeros((n_draws, n_classes, sum(waves.n_levels)))
        transitions, after = np.zeros_like(self.transitions), np.zeros((1, 1), dtype=np.intp)
        counted = None if waves.row_weights is None else np.tile(waves.row_weights, n_draws)
        for wave in range(waves.n_waves - 1, -1, -1):
            shares = [part[:, rows] for part in filtered[wave]]
            is_last = wave == waves.n_waves - 1
            if not is_last:
                # Probabilities of every class now, given the class of each row afterwards.
                table = self.transitions[:, waves.step(wave)]
                shares = [share * table[particles, k, after] for k, share in enumerate(shares)]
            ends = list(itertools.accumulate(shares))
            points = generator.random((n_draws, len(rows))) * ends[-1]
            classes = np.zeros(points.shape, dtype=np.intp)
            for end in ends[:-1]:
                classes += points >= end
            if not is_last:
                cells = (particles * n_classes + classes) * n_classes + after
                found = np.bincount(cells.ravel(), counted, n_draws * n_classes**2)
                transitions[:, waves.step(wave)] += found.reshape(-1, n_classes, n_classes)
            cells = (particles * n_classes + classes) * n_patterns + rows
            found = np.bincount(cells.ravel(), counted, n_draws * n_classes * n_patterns)
            members = found.reshape(n_draws, n_classes, n_patterns).astype(float)
            answers += members @ waves.shown[wave]
            after = classes
        ends_of_slots = np.cumsum(waves.n_levels)[:-1]
        items = [part.swapaxes(1, 2) for part in np.split(answers, ends_of_slots, axis=2)]
        return Counts(members.sum(axis=2), transitions, items, after)


class Counts(NamedTuple):
    """Rows of first classes, of transitions and of answers by class, draw after draw."""

    weights: Floats
    transitions: Floats
    items: list[Floats]
    # First classes of the rows, shape (n_draws, n_rows).
    classes: Indices

    def drawn(self, prior: ChainPrior, generator: np.random.Generator) -> Chains:
        """Parameters from their posterior; those of the items' prior first."""
        n_classes, tells = self.weights.shape[1], prior.tells or [True] * len(self.items)
        tables = [profiles(table, own) for table, own in zip(self.items, tells, strict=True)]
        options = np.stack([np.broadcast_to(one, len(tables)) for one in prior.items])
        terms = [sum(map(ln_table, tables, option)) for option in options]
        shares = special.softmax(terms, axis=0).cumsum(axis=0)
        chosen = (generator.random(len(self.weights)) >= shares[:-1]).sum(axis=0)
        alphas = options[chosen].T[:, :, None, None]
        return Chains(
            dirichlet(generator, self.weights + prior.weights, axis=1),
            dirichlet(generator, self.transitions + prior.transitions, axis=3),
            tuple(
                np.repeat(
                    dirichlet(generator, table + alpha, axis=1), n_classes // table.shape[2], axis=2
                )
                for table, alpha in zip(tables, alphas, strict=True)
            ),
        )


def sampled(
    waves: Waves, prior: ChainPrior, n_classes: int, n_particles: int, seed: np.random.SeedSequence
) -> tuple[float, Chains]:
    """Ln of an unbiased estimate of the probability of all rows, and posterior draws.

    Particles take up the rows in a random order, as many at a time as leave half of them effective,
    and are then resampled and moved (Chopin 2002).
    """
    generator = np.random.default_rng(seed)
    rows = generator.permutation(waves.rows)
    chains = Chains.of_prior(waves, prior, n_classes, n_particles, generator)
    total, start = 0.0, 0
    while start < len(rows):
        ln_patterns, _ = chains.forward(waves)
        sums = np.cumsum(ln_patterns[:, rows[start:]], axis=1)
        doubled = special.logsumexp(2 * sums, axis=0)
        ln_effective = 2 * special.logsumexp(sums, axis=0) - doubled
        few = ln_effective < np.log(_LEAST_SHARE * n_particles)
        n_more = int(np.argmax(few)) + 1 if few.any() else sums.shape[1]
        logs = sums[:, n_more - 1]
        total += float(special.logsumexp(logs) - np.log(n_particles))
        start += n_more
        points = (np.arange(n_particles) + generator.random()) / n_particles
        ends = np.cumsum(special.softmax(logs))
        chains = chains.take(np.minimum(np.searchsorted(ends, points), n_particles - 1))
        for _ in range(_SWEEPS + min(_MORE_SWEEPS, _FEW_ROWS // start)):
            chains = chains.drawn_counts(waves, rows[:start], generator).drawn(prior, generator)
    return total, chains


def aligned(chains: Chains, waves: Waves) -> Chains:
    """Draws with classes numbered alike, as in the mean of all, the largest first."""
    n_rows = np.bincount(waves.rows, minlength=len(waves.shown[0]))
    _, filtered = chains.forward(waves)
    shown = np.concatenate(filtered, axis=2).transpose(1, 2, 0)
    weights = np.tile(n_rows, waves.n_waves)[:, None]
    reference, draws = shown[0], np.arange(len(shown))[:, None]
    for _ in range(2):
        counted = (reference * weights).T
        orders = np.array([optimize.linear_sum_assignment(-(counted @ one))[1] for one in shown])
        reference = shown.swapaxes(1, 2)[draws, orders].mean(axis=0).T
    found = chains.renumbered(orders)
    by_size = np.argsort(-found.weights.mean(axis=0), kind="stable")
    return found.renumbered(np.tile(by_size, (len(orders), 1)))
