"""Do groups have the same classes? Probabilities that items differ between groups of rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import special

from polyabayes._support.arrays import Flags, Floats, Indices
from polyabayes._support.results import Result
from polyabayes._support.warnings import warn
from polyabayes.data.names import CALLS
from polyabayes.exceptions import UnreliableErrorWarning, argument
from polyabayes.latent_classes.answers import Answers, indicators
from polyabayes.latent_classes.membership import N_CHAINS
from polyabayes.latent_classes.tables import ClassCounts, drawn_index

# Values are those with which ``python benches/latent_classes.py invariance`` made its record.

# Sweeps of a chain before its first draw, in proportion to its draws, and the distance between
# probabilities by two chains beyond which they disagree.
_BURN_IN, _APART = 0.5, 0.2


@dataclass(frozen=True, eq=False, repr=False)
class ClassInvariance(Result):
    """Measurement invariance of latent classes by group of rows.

    Attributes
    ----------
    groups : tuple of str
        The groups.
    items : tuple of str
        The items.
    probabilities : ndarray of shape (n_items,)
        Probability that members of a class answer the item differently in different groups.
    answer : dict of str to float
        Probabilities that classes are ``"invariant"`` (no item differs), ``"partial"`` (some items
        differ) and ``"none"`` (all items differ).
    weights_differ : float
        Probability that class weights differ between groups.
    n_rows : int
        Rows with a group.

    Examples
    --------
    >>> classes = pb.LatentClassAnalysis(2, random_state=0).fit(answers)
    >>> found = classes.invariance(answers, ["a", "b"] * (len(answers) // 2))
    >>> found.to_frame().columns.tolist(), round(sum(found.answer.values()), 6)
    (['item', 'probability'], 1.0)
    """

    groups: tuple[str, ...]
    items: tuple[str, ...]
    probabilities: Floats
    answer: dict[str, float]
    weights_differ: float
    n_rows: int

    def _columns(self) -> dict[str, Any]:
        return {"item": list(self.items), "probability": self.probabilities}

    def _methods_text(self) -> str:
        """Sentences about the comparison for a methods section."""
        pairs = zip(self.items, self.probabilities, strict=True)
        told = ", ".join(f"{item} ({p:.2f})" for item, p in pairs if p >= 0.5)
        others = told or "none", self.weights_differ
        return CALLS["invariance"].format(len(self.groups), *others, **self.answer)

    def __repr__(self) -> str:
        return f"<ClassInvariance: {self._methods_text()}>"


def invariance_of(
    answers: Answers,
    codes: Indices,
    groups: tuple[str, ...],
    counts: ClassCounts,
    n_samples: int,
    seed: int,
) -> ClassInvariance:
    """Probabilities from chains that start at draws of the classes of all groups together."""
    starts, generator = counts.expected(), np.random.default_rng([seed, len(groups)])
    ends = np.linspace(0, len(starts.weights) - 1, N_CHAINS).astype(np.intp)
    ln_joint = np.stack([starts.take(at[None]).ln_joint(answers.levels) for at in ends])
    chains = _GroupChains(answers, codes, len(groups), counts, generator)
    sweeps = chains.run(ln_joint, n_samples + int(_BURN_IN * n_samples))
    of_chains = np.mean(list(sweeps)[-n_samples:], axis=0)
    if (apart := float(np.ptp(of_chains, axis=0).max())) > _APART:
        told = CALLS["chains of items"].format(apart, argument("n_samples"))
        warn(told, UnreliableErrorWarning)
    weights, *values = of_chains.mean(axis=0).tolist()
    n_items, n_rows = len(answers.items), int((answers.weights > 0).sum())
    numbers = values[n_items:]
    parts = numbers[0], sum(numbers[1:-1]), numbers[-1]
    answer = dict(zip(("invariant", "partial", "none"), parts, strict=True))
    found = np.array(values[:n_items])
    return ClassInvariance(groups, answers.items, found, answer, weights, n_rows)


class _State(NamedTuple):
    """Counts of all chains, and what they tell of the items that differ."""

    # Shape (n_chains, n_groups, n_levels, n_classes); class weights are levels of a first item.
    counts: Floats
    # Ln of the odds that class weights and each item differ between the groups, by chain.
    ln_odds: Floats
    # Entry (j, m): ln of the sum over all sets of m of the first j items of their odds.
    ln_sets: Floats
    # Ln of the probability of the classes and the answers, summed over all sets.
    values: Floats


class _GroupChains:
    """Gibbs chains over the classes of rows, the items that differ, and probabilities.

    Given the classes, items that differ are drawn with all probabilities of answers integrated
    out: an item has one profile a class, or one a class and group. The share of items that differ
    is uniform a priori; class weights differ or not with equal probability. A Metropolis move
    permutes the classes of one group.
    """

    def __init__(
        self,
        answers: Answers,
        codes: Indices,
        n_groups: int,
        counts: ClassCounts,
        generator: np.random.Generator,
    ) -> None:
        self._generator, self._n_classes = generator, counts.classes.shape[1]
        n_levels = np.array([self._n_classes, *answers.shape])
        self._starts = np.cumsum(n_levels) - n_levels
        # The item of each level, its Dirichlet parameter, and whether all classes share a profile.
        self._item = np.repeat(np.arange(len(n_levels)), n_levels)
        self._alphas = np.array(counts.alphas)[self._item, None]
        self._shared = ~np.array((False, *counts.tells))[self._item]
        self._shown, self._row_weights = indicators(answers.levels, answers.shape), answers.weights
        self._rows = [np.flatnonzero(codes == group) for group in range(n_groups)]
        sizes = np.arange(len(answers.items) + 1)
        self._ln_prior = special.betaln(sizes + 1, sizes[::-1] + 1)

    def run(self, ln_joint: Floats, n_sweeps: int) -> Iterator[Floats]:
        """Probabilities that weights and each item differ, and of each number of items, by chain.

        They are conditional on the classes of each sweep: their means are those of the posterior.
        """
        terms = [ln_joint[:, rows] for rows in self._rows]
        for _ in range(n_sweeps):
            state = self._permuted(self._told(self._counted(terms)))
            numbers = special.softmax(state.ln_sets[:, -1] + self._ln_prior, axis=1)
            differ = self._drawn_set(state, numbers)
            others = differ.sum(axis=1, keepdims=True) - differ
            ln_odds = state.ln_odds.copy()
            ln_odds[:, 1:] += np.log((others + 1) / (differ.shape[1] - others))
            yield np.hstack([special.expit(ln_odds), numbers])
            of_weights = self._is_more(state.ln_odds[:, 0])
            logs = np.log(self._drawn(state.counts, np.column_stack([of_weights, differ])))
            classes, items = np.split(logs, self._starts[1:2], axis=2)
            terms = [
                self._shown[rows] @ items[:, group] + classes[:, group, None, :, 0]
                for group, rows in enumerate(self._rows)
            ]

    def _is_more(self, ln_odds: Floats) -> Flags:
        """Draws of these odds."""
        return special.expit(ln_odds) > self._generator.random(ln_odds.shape)

    def _counted(self, terms: list[Floats]) -> Floats:
        """Counts with classes of the rows drawn in proportion to exp of the terms."""
        groups = []
        for rows, own in zip(self._rows, terms, strict=True):
            shares = special.softmax(own, axis=2).reshape(-1, self._n_classes)
            members = np.eye(self._n_classes)[drawn_index(self._generator, shares)]
            members = members.reshape(own.shape) * self._row_weights[rows, None]
            classes = members.sum(axis=1)[:, :, None] * (np.arange(self._n_classes) == 0)
            groups.append(np.hstack([classes, self._shown[rows].T @ members]))
        return np.stack(groups, axis=1)

    def _profiles(self, counts: Floats) -> Floats:
        """Counts whose first class holds all of an item that has one profile."""
        found = counts.copy()
        found[:, :, self._shared] = 0.0
        found[:, :, self._shared, 0] = counts[:, :, self._shared].sum(axis=3)
        return found

    def _ln_items(self, counts: Floats) -> Floats:
        """Ln of the probability of the answers to each item, integrated out, by chain."""
        above = special.gammaln(counts + self._alphas) - special.gammaln(self._alphas)
        sums = np.add.reduceat(counts, self._starts, axis=2)
        all_alphas = np.add.reduceat(self._alphas, self._starts)
        below = special.gammaln(sums + all_alphas) - special.gammaln(all_alphas)
        above = np.add.reduceat(above, self._starts, axis=2)
        return np.asarray(above.sum(axis=(1, 3)) - below.sum(axis=(1, 3)))

    def _told(self, counts: Floats) -> _State:
        held = self._profiles(counts)
        alike = self._ln_items(held.sum(axis=1, keepdims=True))
        ln_odds = self._ln_items(held) - alike
        n_items = ln_odds.shape[1] - 1
        ln_sets = np.full((len(counts), n_items + 1, n_items + 1), -np.inf)
        ln_sets[:, 0, 0] = 0.0
        for item, factor in enumerate(ln_odds.T[1:, :, None]):
            ln_sets[:, item + 1] = ln_sets[:, item]
            with_item = ln_sets[:, item, :-1] + factor
            ln_sets[:, item + 1, 1:] = np.logaddexp(ln_sets[:, item, 1:], with_item)
        values = special.logsumexp(ln_sets[:, -1] + self._ln_prior, axis=1) + alike.sum(axis=1)
        return _State(counts, ln_odds, ln_sets, values + np.logaddexp(0.0, ln_odds[:, 0]))

    def _permuted(self, state: _State) -> _State:
        """The state after Metropolis steps to other numbers of the classes of one group."""
        counts, first = state.counts.copy(), np.arange(self._n_classes)
        for own in counts:
            group = own[self._generator.integers(len(own))]
            order = self._generator.permutation(self._n_classes)
            group[first], group[len(first) :] = group[order], group[len(first) :, order]
        other = self._told(counts)
        is_taken = np.log(self._generator.random(len(counts))) < other.values - state.values
        return _State(
            *(
                np.where(is_taken.reshape(-1, *[1] * (new.ndim - 1)), new, old)
                for new, old in zip(other, state, strict=True)
            )
        )

    def _drawn_set(self, state: _State, numbers: Floats) -> Flags:
        """Items that differ, given the classes of all rows."""
        n_items, chains = numbers.shape[1] - 1, np.arange(len(numbers))
        found = np.zeros((len(numbers), n_items), dtype=bool)
        left = drawn_index(self._generator, numbers)
        for item in reversed(range(n_items)):
            ln_without = state.ln_sets[chains, item, left]
            ln_with = state.ln_sets[chains, item, left - 1] + state.ln_odds[:, item + 1]
            found[:, item] = (left > 0) & self._is_more(ln_with - ln_without)
            left -= found[:, item]
        return found

    def _drawn(self, counts: Floats, differ: Flags) -> Floats:
        """Probabilities given counts, of each group where an item differs, or of all together."""
        held = self._profiles(counts) + self._alphas
        whole = held.sum(axis=1, keepdims=True) - (held.shape[1] - 1) * self._alphas
        own, alike = (self._generator.standard_gamma(one) for one in (held, whole))
        drawn = np.where(differ[:, None, self._item, None], own, alike)
        drawn = np.maximum(drawn, np.finfo(float).tiny)
        drawn /= np.add.reduceat(drawn, self._starts, axis=2)[:, :, self._item]
        drawn[:, :, self._shared] = drawn[:, :, self._shared, :1]
        return np.asarray(drawn)
