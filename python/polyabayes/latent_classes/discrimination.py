"""Which items tell the classes apart: numbers of classes compared by sets of such items."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy import special

from polyabayes._support.arrays import Floats
from polyabayes.allocation.inference.draws import ln_table
from polyabayes.data.tensors.tensor import CountTensor
from polyabayes.latent_classes.answers import Answers, indicators, ln_orders
from polyabayes.latent_classes.choice import LEARNED, ClassChoice, ClassComparison, choice_of
from polyabayes.latent_classes.tables import TINY, ClassCounts
from polyabayes.sizes.scores import Sizes

# Which items tell the classes apart.
Telling = tuple[bool, ...]

# Values are those with which ``python benches/latent_classes.py mixed`` made its record.

# Ln of the Bayes factor of an item that tells the classes of all items: they follow noise, too.
_CLEAR = np.log(20)
# Probability from which an item tells the classes of the items that told others.
_PROBABLE = 0.5
# Most sets that are compared, draws that evidence is averaged over, and least share of a set
# that matters.
_MOST_SETS, _MOST_DRAWS, _LEAST_SHARE = 3, 100, 0.01


class ItemEvidence(NamedTuple):
    """What draws of the classes tell of each item."""

    # Ln of the odds that the classes have profiles of their own, against one profile of all.
    log_bayes_factors: Floats
    # Dirichlet parameters of the items' own, geometric means.
    concentrations: Floats
    # Probability that the item tells the classes apart.
    probabilities: Floats

    @classmethod
    def of(cls, counts: ClassCounts) -> ItemEvidence:
        """Means over draws, given the classes of each and the other items that tell.

        The share of the items that tell is uniform a priori. One class has nothing to tell apart.
        """
        step = -(-len(counts.classes) // _MOST_DRAWS)
        tables, tells = [table[::step] for table in counts.items], np.array(counts.tells)
        common = counts.alphas[1 + int(tells.argmax())]
        alphas = np.where(tells, counts.alphas[1:], common)
        given = np.array([ln_table(*pair) for pair in zip(tables, alphas, strict=True)])
        factors = given - [ln_alike(table.sum(axis=2, keepdims=True)) for table in tables]
        others = tells.sum() - tells
        ln_odds = np.log((others + 1) / (len(tells) - others))
        own = np.array([[ln_table(table, alpha) for alpha in LEARNED] for table in tables])
        is_several = float(counts.classes.shape[1] > 1)
        return cls(
            -_ln_mean(-factors, 1) * is_several,
            np.exp(special.softmax(own, axis=1).mean(axis=2) @ np.log(LEARNED)),
            special.expit(factors + ln_odds[:, None]).mean(axis=1) * is_several,
        )


class ItemSets:
    """Comparisons of numbers of classes, each by a set of items that tell the classes apart.

    An item outside of the set has one profile in all classes, so that the probability of its
    answers is a sum over Dirichlet parameters. A priori, the share of items in the set is uniform.
    All items are the first set. The items that tell the classes of its draws are the second, and
    so on, until a set comes again; the posterior is over the sets that were compared (Madigan and
    Raftery 1994). Without `is_searched`, there is one set.
    """

    def __init__(
        self, answers: Answers, make: Callable[[CountTensor], ClassComparison], *, is_searched: bool
    ) -> None:
        self._answers, self._make, self._is_searched = answers, make, is_searched
        self._sets: dict[Telling, ClassComparison] = {}

    def choose(self, ends: bool) -> ClassChoice:
        """Compare all numbers; if it `ends`, up to the first without a chance."""
        tells: Telling = (True,) * len(self._answers.items)
        while sum(tells) > 1 and tells not in self._sets and len(self._sets) < _MOST_SETS:
            compared = self._make(self._with(tells).tensor())
            if self._sets:
                compared.end = next(iter(self._sets.values())).end
                if compared.is_late():
                    break
            self._sets[tells] = compared
            compared.compare(self.choice, progress=compared.run.progress, ends=ends)
            several = [sizes for sizes in compared.done if sizes > (1,)]
            if not self._is_searched or not several:
                break
            shares = choice_of([(compared, 0.0)]).probabilities
            n_classes = max(several, key=lambda sizes: shares[sizes[0]])[0]
            found = ItemEvidence.of(self._of_all(tells, n_classes))
            clear = found.log_bayes_factors >= _CLEAR
            chosen = clear if all(tells) else found.probabilities >= _PROBABLE
            tells = tuple(chosen.tolist())
        return self.choice()

    def choice(self) -> ClassChoice:
        """The choice from the evidences so far."""
        return choice_of(self._parts())

    def occupied(self) -> dict[int, float]:
        """Posterior of the number of classes that hold a row."""
        joint = self._joint()
        shares = dict(zip(joint, special.softmax(list(joint.values())).tolist(), strict=True))
        found: dict[int, float] = {}
        for tells, compared in self._sets.items():
            share = sum(p for (own, _), p in shares.items() if own == tells)
            if share >= _LEAST_SHARE:
                for number, p in compared.occupied().items():
                    found[number] = found.get(number, 0.0) + share * p
        total = sum(found.values())
        return {number: found[number] / total for number in sorted(found)}

    def counts(self, n_classes: int) -> ClassCounts:
        """Draws of the rows of each class and of their answers to all items, by the best set."""
        return self._of_all(self._best(n_classes), n_classes)

    def of_best(self, n_classes: int) -> ClassComparison:
        """The comparison with the best set of items of a number of classes."""
        return self._sets[self._best(n_classes)]

    def _best(self, n_classes: int) -> Telling:
        joint = self._joint()
        return max((one for one in joint if one[1] == (n_classes,)), key=lambda one: joint[one])[0]

    def _joint(self) -> dict[tuple[Telling, Sizes], float]:
        """Ln of the evidence times the prior of each set and number of classes."""
        return {
            (tells, sizes): compared.averaged(sizes).value + shift + compared.ln_masses[sizes]
            for tells, (compared, shift) in zip(self._sets, self._parts(), strict=True)
            for sizes in compared.done
        }

    def _parts(self) -> list[tuple[ClassComparison, float]]:
        """Comparisons, and ln of the prior of each set and of the answers that it leaves out."""
        n_items = len(self._answers.items)
        sizes = np.array([sum(tells) for tells in self._sets])
        ln_masses = special.log_softmax(special.betaln(sizes + 1, n_items - sizes + 1))
        found = []
        for (tells, compared), mass in zip(self._sets.items(), ln_masses, strict=True):
            of_items = zip(self._totals(), tells, strict=True)
            left_out = sum(ln_alike(table)[0] for table, is_own in of_items if not is_own)
            shift = float(mass + left_out - ln_orders(compared.networks.tensor))
            found.append((compared, shift))
        return found

    def _totals(self) -> list[Floats]:
        """Rows by their answers to each item, shape (1, n_levels, 1)."""
        counts = self._answers.weights @ indicators(self._answers.levels, self._answers.shape)
        return np.split(counts[None, :, None], np.cumsum(self._answers.shape)[:-1], axis=1)

    def _with(self, tells: Telling) -> Answers:
        """Answers to the items that tell, of the rows that have any."""
        kept = np.flatnonzero(tells)
        own = self._answers._replace(
            items=tuple(self._answers.items[item] for item in kept),
            labels=tuple(self._answers.labels[item] for item in kept),
            levels=self._answers.levels[:, kept],
        )
        return own.take(np.asarray((own.levels >= 0).any(axis=1)))

    def _of_all(self, tells: Telling, n_classes: int) -> ClassCounts:
        """Counts of all items: classes of the rows are drawn given tables of the items that tell.

        Dirichlet parameters of the other items are their most probable ones.
        """
        compared = self._sets[tells]
        counts = compared.counts(n_classes)
        if all(tells):
            return counts
        generator = np.random.default_rng([compared.run.seed, n_classes])
        tables, shape = counts.drawn(generator), self._answers.shape
        shown, n_rows = indicators(self._answers.levels, shape), self._answers.weights.astype(int)
        own_shown = shown[:, np.repeat(tells, shape)]
        classes, answers = [], []
        for first, *items in zip(tables.weights, *tables.items, strict=True):
            ln_items = np.log(np.maximum(np.concatenate(items), TINY))
            members = generator.multinomial(
                n_rows, special.softmax(np.log(first) + own_shown @ ln_items, axis=1)
            )
            classes.append(members.sum(axis=0).astype(np.float64))
            answers.append(shown.T @ members)
        items = np.split(np.stack(answers), np.cumsum(self._answers.shape)[:-1], axis=1)
        common = counts.alphas[1]
        own = [max(LEARNED, key=lambda a: ln_table(t, a)[0]) for t in self._totals()]
        alphas = [common if is_own else a for is_own, a in zip(tells, own, strict=True)]
        return ClassCounts(np.stack(classes), tuple(items), [counts.alphas[0], *alphas], tells)


def ln_alike(table: Floats) -> Floats:
    """Ln of the probability of counts under a Dirichlet parameter of their own, by draw."""
    return _ln_mean(np.array([ln_table(table, alpha) for alpha in LEARNED]), 0)


def _ln_mean(values: Floats, axis: int) -> Floats:
    return special.logsumexp(values, axis=axis) - np.log(values.shape[axis])
