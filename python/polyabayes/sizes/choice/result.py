"""Result of a choice of the number of topics: sizes, scores and their uncertainty."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from polyabayes._support import checks
from polyabayes._support.jackknife import Difference
from polyabayes._support.output.tables import measured
from polyabayes._support.results import Result
from polyabayes._support.warnings import warn
from polyabayes.exceptions import EdgeWarning
from polyabayes.sizes.scores import Score, Sizes

Size = int | Sizes

# Losses in nats per token whose sizes are printed.
_LOSSES = (0.05, 0.02, 0.01)
# Columns of the printed choice.
_COLUMNS = 88


class Gain(NamedTuple):
    """Gain in score of a larger size over a smaller one.

    Attributes
    ----------
    size, larger : int
        The two sizes.
    gain, std_error : float
        Score of the larger size minus that of the smaller one, and its standard error, in nats per
        token (by evidence: in nats).

    Examples
    --------
    >>> from polyabayes.results import Gain
    >>> print(Gain(8, 16, 0.125, 0.004))
    8 to 16 0.1250 ± 0.0040
    """

    size: int
    larger: int
    gain: float
    std_error: float

    def __str__(self) -> str:
        return f"{self.size} to {self.larger} {measured(self.gain, self.std_error)}"


@dataclass(frozen=True, eq=False, repr=False)
class SizeChoice(Result):
    """A choice of the number of topics.

    Attributes
    ----------
    best : int or tuple of int
        The size with the best score; a tuple for several unknown sizes.
    equally_good : tuple
        The best size and all sizes whose 95 % interval of the paired difference to it holds 0.
        With fewer than six groups, sizes that clearly lose more than the tolerance in each are left
        out. By evidence: sizes with odds against them, minus one standard error, of at most 3.
    recommended : int or tuple of int
        The smallest size that is as good as the best within its error, or within the
        `tolerance` of the choice. Bends of the curve are told, but do not decide.
    at_edge : str
        ``"smallest"`` or ``"largest"`` if the best size is at an end of the given sizes, else "".
    is_decided : bool
        False if the choice ended early: by `max_time` or Ctrl-C.
    criterion : {"held-out", "evidence"}
        What was compared.
    rows : list of dict
        One per size, increasing, with its ``size``. By held-out likelihood:

        * ``score``, ``std_error``: nats per token on the documents of the best size, and the error
          of its estimate.
        * ``behind``, ``behind_std_error``: paired difference to the best size on common folds, or,
          of sizes within 0.1 on a curve without a bend, the difference on that curve.
        * ``behind_lower``, ``behind_upper``: its 95 % interval by Student's t.
        * ``gain``, ``gain_std_error``: the same, to the next smaller size tried.
        * ``probability``: of predicting new documents at least as well as the best size, by
          Student's t of ``behind``; NaN unless both were scored on the same folds, two or more.
        * ``n_folds``, ``dropped``: folds scored, one fit each, and whether the size was dropped
          before the last fold of the best size.
        * ``stability``: mean cosine of matched topics over folds; ``coherence`` (NPMI);
          ``exclusivity``; ``seconds`` of the fits.
        * ``repeats``: how many times as often two tokens of a held-out document are the same word
          as the model expects, given the lengths, and ``repeats_std_error``, that of one fold.
          Above 1, words come in bursts. LDA without covariates only, else NaN.

        By evidence, ``score`` is the log evidence in nats, ``probability`` the posterior of the
        size, and ``concentration`` the most probable one at that size, if averaged over.
    joint : list of dict
        One per size and concentration, if the evidence is averaged over concentrations: ``size``,
        ``concentration``, ``score`` (log evidence in nats), ``std_error`` and the joint posterior
        ``probability``. Otherwise empty.
    elbows : tuple of int
        Sizes at which the gain per topic falls by a factor of five or more, sharpest first; a
        corpus with broad and narrow topics has two. Held-out likelihood only.
    gains : tuple of Gain
        Gain of each doubling: from a size to the next one tried that is at least twice as large,
        with the standard error of that paired difference. Empty where several sizes were unknown.
    hint : str
        Another model to try: bursty topics, where held-out documents repeat words more often than
        the model expects (by a tenth or more, at the lower end of the interval). Else "".

    Examples
    --------
    >>> table = [[40, 30, 0, 0], [40, 30, 0, 0], [0, 0, 30, 20]]
    >>> nmf = pb.AllocationModel.nmf(None)
    >>> choice = pb.choose_n_components(nmf, table, [1, 2, 3], random_state=0)
    >>> choice.best, choice.criterion
    (2, 'evidence')
    """

    _index = "size"

    best: Size
    equally_good: tuple[Size, ...]
    recommended: Size
    at_edge: str
    is_decided: bool
    criterion: str
    rows: list[dict[str, Any]]
    joint: list[dict[str, Any]] = field(default_factory=list)
    elbows: tuple[int, ...] = ()
    gains: tuple[Gain, ...] = ()
    hint: str = ""

    def within(self, tolerance: float) -> Size:
        """The smallest size that loses at most `tolerance` against the best size.

        Parameters
        ----------
        tolerance : float
            Loss in nats per token; by evidence: in nats.

        Returns
        -------
        int or tuple of int

        Raises
        ------
        InvalidArgumentError, InvalidTypeError
            If `tolerance` is negative or not a number.

        Examples
        --------
        >>> table = [[40, 30, 0, 0], [40, 30, 0, 0], [0, 0, 30, 20]]
        >>> nmf = pb.AllocationModel.nmf(None)
        >>> choice = pb.choose_n_components(nmf, table, [1, 2, 3], random_state=0)
        >>> choice.within(0.0), choice.within(1000.0)
        (2, 1)
        """
        loss = checks.not_negative_number("tolerance", tolerance)
        least = max(row["score"] for row in self.rows) - loss
        near: list[Size] = [row["size"] for row in self.rows if row["score"] >= least]
        return min(near, key=lambda size: (int(np.prod(size)), size))

    @property
    def is_vague(self) -> bool:
        """Whether the data do not determine the size within a tenth, or 1."""
        sizes = np.reshape(self.equally_good, (len(self.equally_good), -1))
        smallest, largest = sizes.min(axis=0), sizes.max(axis=0)
        return bool((largest - smallest > np.maximum(1, largest / 10)).any())

    @property
    def concentrations(self) -> dict[float, float]:
        """Posterior probability of each concentration, summed over sizes.

        Empty unless the evidence is averaged over concentrations.
        """
        shares: dict[float, float] = {}
        for row in sorted(self.joint, key=lambda row: row["concentration"]):
            value = row["concentration"]
            shares[value] = shares.get(value, 0.0) + row["probability"]
        return shares

    @property
    def probabilities(self) -> dict[Size, float]:
        """``probability`` of each size, where it is known."""
        chances = {row["size"]: row["probability"] for row in self.rows}
        return {size: chance for size, chance in chances.items() if not np.isnan(chance)}

    def _rows(self) -> list[dict[str, Any]]:
        return self.rows

    def _methods_text(self) -> str:
        """A sentence about the choice for a methods section."""
        sizes, how, share = [row["size"] for row in self.rows], "held-out likelihood", ""
        if self.criterion == "evidence":
            how, share = "evidence", f" (probability {self.probabilities[self.best]:.2f})"
        return (
            f"Of {len(sizes)} sizes from {sizes[0]} to {sizes[-1]}, compared by {how}, {self.best} "
            f"is the best{share}; we took {self.recommended}, the smallest as good as it within "
            "the error or the tolerance."
        )

    def __str__(self) -> str:
        ahead = "" if self.is_decided else " so far"
        edge = f", the {self.at_edge} of those tried" if self.at_edge else ""
        others = ", ".join(str(size) for size in self.equally_good)
        others += " (the data cannot tell)" if self.is_vague else ""
        lines = [
            f"best{ahead} by {self.criterion}: {self.best}{edge}; equally good: {others}; "
            f"recommended: {self.recommended}"
        ]
        if shares := self.concentrations:
            value = max(shares, key=shares.__getitem__)
            lines.append(f"concentration: {value:g} with probability {shares[value]:.2f}")
        if self.criterion == "held-out":
            lines += self._losses()
        # No gain is parted from its error.
        wrap = textwrap.TextWrapper(_COLUMNS, subsequent_indent=" " * 4, break_on_hyphens=False)
        return "\n".join(map(wrap.fill, lines)).replace("\xa0", " ")

    def _losses(self) -> Iterator[str]:
        """Lines about sizes that lose little, bends of the curve, and doublings."""
        limits = ", ".join(f"{loss:g}" for loss in _LOSSES)
        small = ", ".join(str(self.within(loss)) for loss in _LOSSES)
        yield f"smallest size that loses at most {limits} nats per token: {small}"
        if self.elbows:
            lost = {row["size"]: row["behind"] for row in self.rows}
            bends = ", ".join(f"{size} (loses {lost[size]:.3f})" for size in sorted(self.elbows))
            yield f"the curve bends at {bends}"
        if self.gains:
            gains = ", ".join(str(gain).replace(" ", "\xa0") for gain in self.gains)
            yield f"gain of each doubling: {gains}"
        if self.hint:
            yield f"hint: {self.hint}"

    def __repr__(self) -> str:
        return f"<SizeChoice: {self}>"


def warn_at_edge(choice: SizeChoice) -> None:
    """Warn if the best size may lie beyond the given sizes."""
    if choice.at_edge:
        warn(
            f"the best size, {choice.best}, is the {choice.at_edge} of those tried: the best "
            "may lie beyond; give a wider range",
            EdgeWarning,
        )


def gains_of(
    sizes: list[Any], difference: Callable[[Any, Any], Difference | Score]
) -> tuple[Gain, ...]:
    """Gains from the smallest size to the first that is at least twice as large, and so on."""
    found: list[Gain] = []
    size = sizes[0]
    while larger := [other for other in sizes if other >= 2 * size]:
        gain, std_error, _ = difference(larger[0], size)
        found.append(Gain(size, larger[0], gain, std_error))
        size = larger[0]
    return tuple(found)
