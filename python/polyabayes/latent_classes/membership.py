"""Chains over the classes of rows whose first class depends on covariates, or that have weights."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from scipy import optimize, special

from polyabayes import _core
from polyabayes._support.arrays import Floats, Indices
from polyabayes._support.output.progress import progress_bar
from polyabayes._support.warnings import warn
from polyabayes.allocation.options import Run
from polyabayes.data.names import CALLS
from polyabayes.exceptions import UnreliableErrorWarning
from polyabayes.latent_classes.answers import Answers
from polyabayes.latent_classes.chains import ChainPrior, Chains, Counts, Waves
from polyabayes.latent_classes.tables import ClassCounts
from polyabayes.sizes.evidence import MOST_R_HAT, r_hat

# Chains, their sweeps before the first draw, their draws, and sweeps from one draw to the next.
# Chosen by hand. In a trial, 400 rows of two classes with two covariates, 400 draws were worth 170
# to 360 independent ones (70 to 170 with one sweep between draws, 250 to 370 with eight).
N_CHAINS, _BURN_IN, _N_DRAWS, _BETWEEN = 4, 200, 100, 4


class _Regression:
    """Draws of the coefficients of first classes: p(class k | x) ∝ exp(x·λ_k).

    Exponential variables of rate Σ_k exp(x·λ_k), one a row, make the λ_k independent, each with the
    density of a Poisson regression. exp of each intercept, at the mean of the covariates, has a
    gamma prior, so that without slopes the weights are Dirichlet.
    """

    def __init__(self, waves: Waves, weights: Floats, alpha: float, seed: int) -> None:
        assert waves.covariates is not None
        slopes = np.ascontiguousarray(waves.covariates[:, 1:])
        self._core = _core.ClassRegression(slopes, weights, alpha, seed)
        self._groups = self._core.groups.astype(np.intp)[waves.rows]
        self._row_weights, self._n_classes, self._n_sweeps = waves.row_weights, len(weights), 0

    @property
    def coefficients(self) -> Floats:
        """λ of every class, shape (n_classes, n_columns)."""
        return self._core.parameters[:-1].reshape(self._n_classes, -1)

    def draw(self, classes: Indices, generator: np.random.Generator) -> Floats:
        """Coefficients given the first classes of the rows."""
        rates = self._core.weights.reshape(-1, self._n_classes).sum(axis=1)
        cells = self._groups * self._n_classes + classes
        n_rows = np.bincount(cells, self._row_weights, len(rates) * self._n_classes).astype(float)
        of_groups = n_rows.reshape(-1, self._n_classes).sum(axis=1)
        exposures = generator.standard_gamma(of_groups) / rates
        self._core.draw(n_rows, exposures, self._n_sweeps)
        self._n_sweeps += 1
        return self.coefficients


def sweeps(
    chains: Chains, waves: Waves, prior: ChainPrior, generator: np.random.Generator
) -> Iterator[tuple[Counts, Chains]]:
    """Gibbs draws of the classes of rows, and of all parameters given them.

    Rows count in proportion to their weights: with fractions, draws are of the pseudo-posterior, in
    which the answers and classes of a row have the power of its weight.
    """
    regressions = []
    if waves.covariates is not None:
        regressions = [
            _Regression(waves, weights, prior.weights, int(generator.integers(2**63)))
            for weights in chains.weights
        ]
        chains = replace(chains, coefficients=np.stack([one.coefficients for one in regressions]))
    while True:
        counts = chains.drawn_counts(waves, waves.rows, generator)
        chains = counts.drawn(prior, generator)
        if regressions:
            pairs = zip(regressions, counts.classes, strict=True)
            drawn = np.stack([one.draw(classes, generator) for one, classes in pairs])
            weights = counts.weights / counts.weights.sum(axis=1, keepdims=True)
            chains = replace(chains, weights=weights, coefficients=drawn)
        yield counts, chains


def chain_draws(
    draws: Chains, waves: Waves, prior: ChainPrior, run: Run
) -> tuple[list[tuple[Counts, Chains]], Indices]:
    """Draws of four chains that start at some of these, and the chain of each."""
    start = draws.take(np.linspace(0, len(draws.weights) - 1, N_CHAINS).astype(np.intp))
    generator = np.random.default_rng([run.seed, start.weights.shape[1]])
    found = []
    with progress_bar(run.progress, _N_DRAWS, "draw") as tell:
        for sweep, state in enumerate(sweeps(start, waves, prior, generator), 1 - _BURN_IN):
            if sweep > 0 and sweep % _BETWEEN == 0:
                found.append(state)
                if tell is not None:
                    tell(len(found))
            if len(found) == _N_DRAWS:
                break
    return found, np.tile(np.arange(N_CHAINS), _N_DRAWS)


def warn_of_chains(drawn: Chains, chains: Indices) -> None:
    """Warn where chains of draws disagree about class weights, or about coefficients."""
    what, values = "class weights", drawn.weights
    if drawn.coefficients is not None:
        what = "coefficients of the covariates"
        values = drawn.coefficients - drawn.coefficients[:, :1]
    if (ratio := r_hat(values, chains)) > MOST_R_HAT:
        told = CALLS["chains of draws"].format(what, ratio, MOST_R_HAT)
        warn(told, UnreliableErrorWarning)


def draw_memberships(answers: Answers, counts: ClassCounts, run: Run) -> ClassCounts:
    """Draws of counts and coefficients; chains start from given draws.

    Classes of a draw are numbered as those of the start that hold the same rows, as nearly as an
    assignment gets.
    """
    tables, levels = counts.expected(), answers.levels
    slots = np.arange(levels.shape[1])[None]
    waves = Waves.of(levels[:, None], slots, answers.shape, False, answers.covariates)
    waves = replace(waves, row_weights=answers.weights)
    n_classes = tables.n_classes
    no_steps = np.zeros((len(tables.weights), 0, n_classes, n_classes))
    start = Chains(tables.weights, no_steps, tables.items)
    weight, *alphas = counts.alphas
    found, chains = chain_draws(start, waves, ChainPrior(weight, 1.0, [alphas], counts.tells), run)
    known = special.softmax(tables.ln_joint(levels), axis=1)
    parts = []
    for own, drawn in found:
        shown = np.eye(n_classes)[own.classes]
        orders = np.array([optimize.linear_sum_assignment(-(known.T @ one))[1] for one in shown])
        held = Chains(own.weights, drawn.transitions, tuple(own.items), drawn.coefficients)
        parts.append(held.renumbered(orders))
    joined = Chains.joined(parts)
    warn_of_chains(joined, chains)
    return counts._replace(
        classes=joined.weights, items=joined.items, coefficients=joined.coefficients
    )
