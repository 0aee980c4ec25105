"""The result of a comparison: models on the same documents, differences and their errors."""

from __future__ import annotations

from dataclasses import dataclass, field
from html import escape
from itertools import permutations
from typing import Any

import numpy as np
from scipy import stats

from polyabayes._support import checks
from polyabayes._support.arrays import Flags, Floats, Integers
from polyabayes._support.docs import shared_docs
from polyabayes._support.jackknife import paired_difference, totals_of
from polyabayes._support.output.frames import DataFrame
from polyabayes._support.output.tables import Column, text_table
from polyabayes._support.results import Result
from polyabayes.exceptions import InvalidArgumentError
from polyabayes.likelihood.result import LogLikelihood

# Draws of the largest statistic: the error of a p-value of 0.05 is then 0.002.
_N_DRAWS = 10_000


@shared_docs
@dataclass(frozen=True, repr=False, eq=False)
class Comparison(Result):
    """Models compared on the same documents, best first.

    Attributes
    ----------
    results : dict of str to LogLikelihood
        Result of every model, best first. Models that score more of the documents come first, then
        models with a higher total on the documents that all models score.
    event : {"sequence", "counts"}
        The event whose probability is compared.
    given_length : bool
        Whether all values are conditional on the documents' lengths.
    refused : dict of str to str
        Models that could not be scored, and why. They are in no table.
    groups : ndarray of shape (n_documents,) or None
        The group of each document, if errors are for new groups.
    estimation_errors : dict of str to float
        Standard error, in nats, of estimating the total difference of each model to the leading
        one; empty if each document was scored for itself.

    Examples
    --------
    >>> found = pb.compare(models, [[3, 1, 1, 0], [0, 0, 2, 4], [2, 2, 0, 0]])
    >>> found.best
    '0.1'
    """

    results: dict[str, LogLikelihood]
    event: str
    given_length: bool
    refused: dict[str, str] = field(default_factory=dict)
    groups: Integers | None = None
    estimation_errors: dict[str, float] = field(default_factory=dict)

    @property
    def best(self) -> str:
        """Name of the model with the highest total."""
        return next(iter(self.results))

    @property
    def n_left_out(self) -> dict[str, int]:
        """Documents that each model scored ``-inf`` or NaN; differences leave them out."""
        return {name: int((~is_scored(result)).sum()) for name, result in self.results.items()}

    def difference(self, first: str, second: str) -> tuple[float, float]:
        """Difference of `first` and `second` in nats per token, and its standard error.

        Total difference over total length, on the documents to which both models give positive
        probability. The standard error is for new documents from the same source (or new groups):
        a jackknife of the ratio that leaves out one document (or group) at a time. It includes the
        errors of the estimates.

        Parameters
        ----------
        {first, second}

        Returns
        -------
        difference, std_error : float
            In nats per token.

        {raises: no such model}

        References
        ----------
        B. Efron and C. Stein (1981). The jackknife estimate of variance. Annals of Statistics 9(3).

        Examples
        --------
        >>> found = pb.compare(models, [[3, 1, 1, 0], [0, 0, 2, 4], [2, 2, 0, 0]])
        >>> difference, std_error = found.difference("0.1", "1.0")
        >>> difference > 0
        True
        """
        mean, std_error, _ = self._paired(first, second)
        return mean, std_error

    def interval(self, first: str, second: str, level: float = 0.95) -> tuple[float, float]:
        """Confidence interval of :meth:`difference`, by Student's t.

        The degrees of freedom are n - 1, where n = (Σ N)² / Σ N² is the effective number of
        documents of lengths N. NaN for one document.

        Parameters
        ----------
        {first, second}
        level : float, default=0.95
            Probability that the interval contains the difference on new documents.

        Returns
        -------
        lower, upper : float
            Ends of the interval in nats per token.

        Raises
        ------
        InvalidArgumentError, InvalidTypeError
            If there is no such model, or `level` is not between 0 and 1.

        Examples
        --------
        >>> found = pb.compare(models, [[3, 1, 1, 0], [0, 0, 2, 4], [2, 2, 0, 0]])
        >>> low, high = found.interval("0.1", "1.0")
        >>> low < found.difference("0.1", "1.0")[0] < high
        True
        """
        checks.share("level", level)
        mean, std_error, freedom = self._paired(first, second)
        half_width = float(stats.t.ppf(0.5 + level / 2, freedom)) * std_error if std_error else 0.0
        return mean - half_width, mean + half_width

    def _paired(self, first: str, second: str) -> tuple[float, float, float]:
        """The difference, its standard error, and the degrees of freedom of that error."""
        one, other = self._result(first), self._result(second)
        shared = is_scored(one) & is_scored(other)
        n_tokens = one.n_tokens[shared].astype(np.float64)
        total = n_tokens.sum()
        if first == second or not total:
            return 0.0, 0.0, 1.0
        ahead = one.values[shared] - other.values[shared]
        groups = None if self.groups is None else self.groups[shared]
        found = paired_difference(ahead, n_tokens, groups)
        # Values predicted from shorter runs share the error of the prediction.
        known = self.estimation_errors
        error = np.hypot(known.get(first, 0.0), known.get(second, 0.0))
        return found.mean, float(np.hypot(found.std_error, error / total)), found.degrees_of_freedom

    @property
    def error_share(self) -> float:
        """Largest share of estimation in the errors of differences to the leading model.

        NaN if each document was scored for itself, whose errors are in the jackknife.
        """
        leader = [name for name, error in self.estimation_errors.items() if not error]
        shares = [
            error / float(self.results[name].n_tokens.sum()) / std_error
            for name, error in self.estimation_errors.items()
            if error and (std_error := self.difference(leader[0], name)[1])
        ]
        return max(shares, default=0.0 if leader else np.nan)

    def to_frame(self) -> DataFrame:
        """Give the comparison as a DataFrame, a row per model.

        Columns include nats per token, perplexity, the distance behind the best model, and:

        * ``std_error``: error of the estimate on these documents.
        * ``behind_best_std_error``: error of the paired difference, for new documents.
        * ``p_better``: probability that the model beats the best on new documents, by Student's t
          as in :meth:`interval`, for each model alone. The best is chosen on the same documents, so
          with many equal models some ``p_better`` is often small.
        * ``p_as_good``: p-value of "no other model is better on new documents", adjusted for all
          pairs by the largest t statistic (Westfall and Young 1993). If all models are equal, any
          of them is below 0.05 in 5 % of comparisons.
        * ``n_left_out``: documents that the model scored ``-inf`` or NaN.

        A model that cannot produce a document that the best can is infinitely far behind, and both
        probabilities are 0; :meth:`difference` compares them on the other documents.

        Returns
        -------
        pandas.DataFrame
            Indexed by model, best first.

        {raises: no pandas}

        References
        ----------
        P. Westfall and S. Young (1993). Resampling-based multiple testing. Wiley.

        Examples
        --------
        >>> found = pb.compare(models, [[3, 1, 1, 0], [0, 0, 2, 4], [2, 2, 0, 0]])
        >>> found.to_frame().index.tolist()
        ['0.1', '1.0']
        """
        return super().to_frame().set_index("model")

    def _rows(self) -> list[dict[str, Any]]:
        rows = []
        n_left_out = self.n_left_out
        best = self.results[self.best].values
        together = self._p_as_good()
        for name, result in self.results.items():
            behind, std_error, freedom = self._paired(self.best, name)
            if (np.isneginf(result.values) & np.isfinite(best)).any():
                behind, std_error = np.inf, 0.0
            rows.append(
                {
                    "model": name,
                    "nats_per_token": result.nats_per_token,
                    "std_error": result.nats_per_token_std_error,
                    "perplexity": result.perplexity,
                    "behind_best": behind,
                    "behind_best_std_error": std_error,
                    "p_better": float(stats.t.sf(_statistic(behind, std_error), freedom)),
                    "p_as_good": together.get(name, 0.0),
                    "n_left_out": n_left_out[name],
                }
            )
        return rows

    def _p_as_good(self) -> dict[str, float]:
        """p-values of "no other model is better", for models that score what the best does."""
        scored = is_scored(self.results[self.best])
        names = [
            name for name, x in self.results.items() if not np.isneginf(x.values[scored]).any()
        ]
        statistics = np.zeros((len(names), len(names)))
        for (i, one), (j, other) in permutations(enumerate(names), 2):
            ahead, std_error, freedom = self._paired(one, other)
            # Standard normal quantile of the same probability.
            t = stats.t.sf(_statistic(ahead, std_error), freedom)
            statistics[i, j] = stats.norm.isf(t)
        shared = np.logical_and.reduce([is_scored(self.results[name]) for name in names])
        values = np.stack([self.results[name].values[shared] for name in names])
        lengths = self.results[self.best].n_tokens[shared].astype(np.float64)
        if self.groups is not None:
            *rows, lengths = totals_of(self.groups[shared], *values, lengths)
            values = np.stack(rows)
        adjusted = _adjusted_p_values(statistics, values, lengths)
        return dict(zip(names, adjusted.tolist(), strict=True))

    @property
    def _n_groups(self) -> int:
        return 0 if self.groups is None else int(self.groups.max()) + 1

    def _result(self, name: str) -> LogLikelihood:
        if checks.text("name", name) in self.refused:
            raise InvalidArgumentError(f"{name!r} could not be scored: {self.refused[name]}")
        if name not in self.results:
            known = ", ".join(repr(known) for known in self.results)
            raise InvalidArgumentError(f"no model {name!r} in this comparison; there are {known}")
        return self.results[name]

    def _repr_html_(self) -> str:
        return super()._repr_html_() + "".join(f"<p>{escape(note)}</p>" for note in self._notes())

    def _notes(self) -> list[str]:
        best = self.results[self.best]
        left_out, notes = best.n_unseen_tokens, list(_NOTES)
        if self.error_share > 0:
            notes.append(
                f"differences are estimated to {self.error_share:.0%} of their errors; values of "
                "single documents need error_share=None"
            )
        if self.groups is not None:
            notes.append(f"errors and probabilities are for new groups, by {self._n_groups} groups")
        if left_out:
            share = left_out / (left_out + best.n_tokens.sum())
            notes.append(
                f"left out: {left_out:,} tokens ({share:.1%}) of words that some model does not "
                "know; every model is restricted to the words that all know"
            )
        return [*notes, *(f"{name}: {why}" for name, why in self.refused.items())]

    def __str__(self) -> str:
        found = self._columns()
        # Counts have no perplexity; the first row would compare the best with itself.
        behind = [f"{x:.4f}" for x in found["behind_best"][1:]]
        errors = [_shown(x) for x in found["behind_best_std_error"][1:]]
        better = [_probability(x) for x in found["p_better"][1:]]
        table = text_table(
            [
                Column("model", found["model"], is_left=True),
                Column("nats/token", [f"{x:.4f}" for x in found["nats_per_token"]]),
                Column("± estimate", [_shown(x) for x in found["std_error"]]),
                Column(
                    "perplexity", ["" if np.isnan(x) else f"{x:,.1f}" for x in found["perplexity"]]
                ),
                Column("behind best", ["best", *behind]),
                Column("± new groups" if self._n_groups else "± new docs", ["", *errors]),
                Column("P(better)", ["", *better]),
                Column("p(as good)", [_probability(x) for x in found["p_as_good"]]),
            ]
        )
        return "\n".join([table, *self._notes()])

    def __repr__(self) -> str:
        given = ", given the length" if self.given_length else ""
        return f"<Comparison of {len(self.results)} models on {self.event}{given}>\n{self}"


def is_scored(result: LogLikelihood) -> Flags:
    """Mask of the documents with positive probability under the model."""
    return np.asarray(np.isfinite(result.values))


def _shown(std_error: float) -> str:
    """A standard error with four digits; 0 only if the value is exact."""
    return "<0.0001" if 0 < std_error < _LEAST_ERROR else f"{std_error:.4f}" if std_error else "0"


def _probability(p: float) -> str:
    return "<0.001" if p < _LEAST_SHOWN else f"{p:.3f}"


def _statistic(ahead: float, std_error: float) -> float:
    """A difference over its standard error; 0 for a tie, infinite if only the error is 0."""
    return ahead / std_error if std_error else np.inf * ahead if ahead else 0.0


_NOTES = (
    "P(better): chance of being ahead of the best on new documents, each model by itself",
    'p(as good): p-value of "no other model is better", adjusted for all models',
)

# Smaller errors would print as 0.
_LEAST_ERROR = 0.00005

# Smaller probabilities depend on tails that a few hundred documents cannot estimate.
_LEAST_SHOWN = 0.001


def _adjusted_p_values(statistics: Floats, values: Floats, lengths: Floats) -> Floats:
    """Adjusted p-values of "no other model is better", one per model.

    If all models are equal, their differences per token are jointly normal, with the covariance of
    the documents' contributions. The maximum statistic of all pairs is simulated from this
    distribution. A model's p-value is the probability that the maximum exceeds the largest
    statistic by which another model is ahead (single-step maxT, Westfall and Young 1993). It is
    valid under any other hypothesis, too, since then fewer pairs are equal. `statistics` are
    differences of model i to model j over their standard errors, on the normal scale; `values` are
    ln p of each document.
    """
    n_models = len(values)
    observed = statistics.max(axis=0)
    means = values.sum(axis=1) / max(lengths.sum(), 1.0)
    contributions = values - means[:, np.newaxis] * lengths
    covariance = contributions @ contributions.T
    variances = np.diagonal(covariance)
    spread = np.sqrt(variances[:, np.newaxis] + variances - 2 * covariance)
    # Equal models differ only by rounding.
    scale = np.where(spread > 1e-7 * np.sqrt(variances.max(initial=0.0)), spread, np.inf)
    root = np.linalg.eigh(covariance)
    factor = root.eigenvectors * np.sqrt(np.maximum(root.eigenvalues, 0.0))
    draws = np.random.default_rng(0).standard_normal((_N_DRAWS, n_models)) @ factor.T
    largest = np.zeros(_N_DRAWS)
    for model in range(n_models):
        ahead = (draws - draws[:, [model]]) / scale[model]
        largest = np.maximum(largest, ahead.max(axis=1))
    p_values = (largest >= observed[:, np.newaxis]).mean(axis=1)
    # Certain statistics need no draws; without an error there is no probability.
    p_values[observed == np.inf] = 0.0
    return np.where(np.isnan(observed), np.nan, p_values)
