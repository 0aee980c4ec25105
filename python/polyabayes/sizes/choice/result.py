"""The answer to "how many topics?": sizes, their scores, and how sure that is."""

from __future__ import annotations

from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special
from scipy.optimize import linear_sum_assignment

from polyabayes._support.frames import data_frame
from polyabayes.sizes.choice.fits import FIGURES
from polyabayes.sizes.choice.race import Race

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["SizeChoice"]

Size = int | tuple[int, ...]

# Log odds that are not worth more than a bare mention (Kass & Raftery 1995).
_NO_EVIDENCE = float(np.log(3))


@dataclass(frozen=True, eq=False, repr=False)
class SizeChoice:
    """A choice of the number of topics.

    Attributes
    ----------
    best : int or tuple of int
        The size with the best score; with several unknown sizes, one of each.
    equally_good : tuple
        All sizes within one standard error of the paired difference to the best (by evidence:
        the odds against them, less their standard error, are at most 3), itself included.
    recommended : int or tuple of int
        The smallest of these.
    at_edge : str
        ``"smallest"`` or ``"largest"`` where the best is at an end of the sizes given, else "".
    is_decided : bool
        False where the fits granted were spent, or Ctrl-C came, before the best was known.
    criterion : {"held-out", "evidence"}
        What was compared.
    rows : list of dict
        One a size; see :meth:`to_frame`.
    joint : list of dict
        One a size and concentration, where the evidence is averaged over concentrations: ``size``,
        ``concentration``, ``score`` (log evidence in nats), ``std_error`` and the posterior
        ``probability`` of both. Empty otherwise.

    Examples
    --------
    >>> import polyabayes as pb
    >>> choice = pb.choose_n_components(
    ...     pb.AllocationModel.nmf(None), [[4, 3, 0], [0, 0, 3], [0, 0, 3]], [1, 2, 3]
    ... )
    >>> choice.best, choice.criterion
    (3, 'evidence')
    """

    best: Size
    equally_good: tuple[Size, ...]
    recommended: Size
    at_edge: str
    is_decided: bool
    criterion: str
    rows: list[dict[str, Any]]
    joint: list[dict[str, Any]] = field(default_factory=list)

    @property
    def is_vague(self) -> bool:
        """Whether the data cannot tell: equally good sizes lie further apart than a tenth, or 1."""
        sizes = np.reshape(self.equally_good, (len(self.equally_good), -1))
        smallest, largest = sizes.min(axis=0), sizes.max(axis=0)
        return bool((largest - smallest > np.maximum(1, largest / 10)).any())

    @property
    def concentrations(self) -> dict[float, float]:
        """Posterior probability of each concentration, summed over sizes.

        Empty where concentrations were not averaged over.
        """
        shares: dict[float, float] = {}
        for row in sorted(self.joint, key=lambda row: row["concentration"]):
            value = row["concentration"]
            shares[value] = shares.get(value, 0.0) + row["probability"]
        return shares

    @property
    def probabilities(self) -> dict[Size, float]:
        """Probability of each size to be the best of those tried; 0 for the dropped ones."""
        return {row["size"]: row["probability"] for row in self.rows}

    def to_frame(self) -> pd.DataFrame:
        """One row a size, increasing.

        By held-out likelihood: ``score`` and ``std_error`` in nats per token; ``behind`` and
        ``behind_std_error``, the paired difference to the best; ``probability`` to be the best;
        ``n_folds`` scored, and ``dropped`` where that was after fewer than all; ``stability`` of
        the topics over folds (mean cosine of matched topics), ``coherence`` (NPMI),
        ``exclusivity``; the criteria of Griffiths 2004 (largest asked for), Cao 2009 (smallest),
        Arun 2010 (smallest), Deveaud 2014 (largest); ``seconds`` of the fits. By evidence:
        ``score`` is the log evidence in nats, ``probability`` the posterior of the size; averaged
        over concentrations, ``concentration`` is the most probable one at that size.

        Returns
        -------
        pandas.DataFrame
            Indexed by ``size``.

        Raises
        ------
        MissingDependencyError
            If pandas is not installed.

        References
        ----------
        T. L. Griffiths and M. Steyvers (2004). Finding scientific topics. PNAS 101.

        J. Cao, T. Xia, J. Li, Y. Zhang and S. Tang (2009). A density-based method for adaptive LDA
        model selection. Neurocomputing 72.

        R. Arun, V. Suresh, C. E. Veni Madhavan and M. N. Narasimha Murthy (2010). On finding the
        natural number of topics with latent Dirichlet allocation: some observations. PAKDD.

        R. Deveaud, E. SanJuan and P. Bellot (2014). Accurate and effective latent concept modeling
        for ad hoc information retrieval. Document Numérique 17.

        Examples
        --------
        >>> import polyabayes as pb
        >>> choice = pb.choose_n_components(
        ...     pb.AllocationModel.nmf(None), [[4, 3, 0], [0, 0, 3], [0, 0, 3]], [1, 2, 3]
        ... )
        >>> choice.to_frame().index.tolist()
        [1, 2, 3]
        """
        return data_frame(self.rows).set_index("size")

    def _repr_html_(self) -> str:
        return f"<p>{escape(str(self))}</p>{self.to_frame().to_html()}"

    def __str__(self) -> str:
        ahead = "" if self.is_decided else " so far"
        edge = f", the {self.at_edge} of those tried" if self.at_edge else ""
        others = ", ".join(str(size) for size in self.equally_good)
        others += " (the data cannot tell)" if self.is_vague else ""
        told = (
            f"best{ahead} by {self.criterion}: {self.best}{edge}; equally good: {others}; "
            f"recommended: {self.recommended}"
        )
        if shares := self.concentrations:
            value = max(shares, key=shares.__getitem__)
            told += f"; concentration: {value:g} with probability {shares[value]:.2f}"
        return told

    def __repr__(self) -> str:
        return f"<SizeChoice: {self}>"


def choice_by_fits(
    race: Race,
    alive: list[int],
    dropped: dict[int, int],
    given: bool,
    ended: bool,
    rng: np.random.Generator,
) -> SizeChoice:
    """The choice among sizes that were trained and scored.

    Parameters
    ----------
    race : Race
        All fits.
    alive : list of int
        Sizes that may be chosen.
    dropped : dict of int to int
        Folds after which other sizes were dropped.
    given, ended : bool
        Whether the sizes were given, and whether the race came to its end.
    rng : Generator
        Source of the draws behind the probabilities to be the best.
    """
    best = race.best(alive)
    chances = race.probabilities(alive, rng)
    rows: list[dict[str, Any]] = []
    for size in sorted(race.fits):
        score, std_error = race.scores(size)
        behind = race.difference(best, size)
        fits = list(race.fits[size].values())
        rows.append(
            {
                "size": size,
                "score": score,
                "std_error": std_error,
                "behind": behind.mean,
                "behind_std_error": behind.std_error,
                "probability": chances.get(size, 0.0),
                "n_folds": len(fits),
                "dropped": size in dropped,
                "stability": _stability([fit.topics for fit in fits]),
                **dict(zip(FIGURES, _means([fit.figures for fit in fits]), strict=True)),
                "seconds": sum(fit.seconds for fit in fits),
            }
        )
    ahead = {size: race.difference(best, size) for size in alive}
    good = tuple(size for size in alive if ahead[size].mean <= ahead[size].std_error)
    ends = {min(race.fits): "smallest", max(race.fits): "largest"}
    # There is no size below 1.
    edge = ends.get(best, "") if given and len(rows) > 1 and best > 1 else ""
    return SizeChoice(best, good, min(good), edge, ended, "held-out", rows)


class Score(NamedTuple):
    """Log evidence of a size and its standard error, in nats."""

    value: float
    std_error: float


def choice_by_evidence(
    scores: dict[Size, Score],
    joint: list[dict[str, Any]],
    ranges: list[list[int]],
    ended: bool,
) -> SizeChoice:
    """The choice among sizes of allocation models by their posterior.

    Parameters
    ----------
    scores : dict of size to Score
        Log evidences, averaged over concentrations.
    joint : list of dict
        Rows of ``size``, ``concentration``, ``score``, ``std_error`` and ``ln_joint``, the log
        evidence and log prior of the concentration; empty where there is one concentration.
    ranges : list of list of int
        Sizes to choose from, of every unknown node.
    ended : bool
        Whether all sizes are done.
    """
    chances = special.softmax([score.value for score in scores.values()]).tolist()
    rows: list[dict[str, Any]] = [
        {"size": size, "score": score.value, "std_error": score.std_error, "probability": chance}
        for (size, score), chance in zip(scores.items(), chances, strict=True)
    ]
    _add_concentrations(rows, joint)
    best = max(scores, key=lambda size: scores[size].value)
    good = tuple(
        size for size in scores if _odds_against(scores[size], scores[best]) <= _NO_EVIDENCE
    )
    smallest = min(good, key=lambda size: (int(np.prod(size)), size))
    values = best if isinstance(best, tuple) else (best,)
    edge = ""
    for value, tried in zip(values, ranges, strict=True):
        if len(tried) > 1 and value in (tried[0], tried[-1]) and value != 1:
            edge = "smallest" if value == tried[0] else "largest"
    return SizeChoice(best, good, smallest, edge, ended, "evidence", rows, joint)


def _odds_against(score: Score, best: Score) -> float:
    """Log odds against a size, less their standard error where it is known."""
    if score is best:
        return 0.0
    error = np.nan_to_num(np.hypot(best.std_error, score.std_error))
    return best.value - score.value - float(error)


def _add_concentrations(rows: list[dict[str, Any]], joint: list[dict[str, Any]]) -> None:
    """Posterior probabilities of the joint rows, and the best concentration of every size."""
    if not joint:
        return
    shares = special.softmax([row.pop("ln_joint") for row in joint]).tolist()
    for row, share in zip(joint, shares, strict=True):
        row["probability"] = share
    for row in rows:
        of_size = [other for other in joint if other["size"] == row["size"]]
        row["concentration"] = max(of_size, key=lambda one: one["probability"])["concentration"]


def _means(figures: list[NDArray[np.float64]]) -> list[float]:
    """Means over folds; NaN where a figure is not defined."""
    table = np.array(figures)
    known = np.isfinite(table)
    sums, counts = np.where(known, table, 0.0).sum(axis=0), known.sum(axis=0)
    return [float(s / n) if n else float("nan") for s, n in zip(sums, counts, strict=True)]


def _stability(topics: list[NDArray[np.float32]]) -> float:
    """Mean cosine of topics of the first fit matched with those of the others; NaN for one fit."""
    if len(topics) < 2:
        return float("nan")
    units = [rows / np.linalg.norm(rows, axis=1, keepdims=True).clip(1e-30) for rows in topics]
    found = []
    for other in units[1:]:
        cosines = units[0] @ other.T
        pairs = linear_sum_assignment(-cosines)
        found.append(float(cosines[pairs].mean()))
    return float(np.mean(found))
