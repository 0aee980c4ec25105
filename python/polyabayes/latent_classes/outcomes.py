"""Outcomes by class: of posterior memberships, and by the three-step methods of the literature."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import special

from polyabayes._support import checks
from polyabayes._support.arrays import Floats, Indices
from polyabayes._support.docs import shared_docs
from polyabayes._support.random import dirichlet, random_generator
from polyabayes._support.results import Result
from polyabayes.data.names import CALLS
from polyabayes.exceptions import InvalidArgumentError, argument
from polyabayes.latent_classes.answers import Answers, column_of, levels_of
from polyabayes.latent_classes.predictions import ClassPredictions
from polyabayes.latent_classes.tables import drawn_index

_HOW = {
    "draws": "from posterior draws of the memberships, given answers and outcome",
    "bch": "by the method of Bolck, Croon and Hagenaars (2004)",
    "three-step": "by three-step maximum likelihood (Vermunt 2010)",
}

# Values are those with which ``python benches/latent_classes.py outcomes`` made its record.

# Sweeps of memberships and parameters of the outcome under each draw of the classes.
_SWEEPS = 5
# Groups of a numeric outcome, of equally many rows, by which it tells classes apart.
_GROUPS = 20
# Dirichlet parameter of the levels of an outcome, and prior rows of a mean.
_ALPHA, _PRIOR_ROWS = 0.5, 0.01
# Iterations of the maximum of the three-step likelihood, and its relative gain at the end.
_MOST_STEPS, _TOLERANCE = 2000, 1e-10
# Step of the derivatives of its scores.
_STEP = 1e-5


@dataclass(frozen=True, eq=False, repr=False)
class ClassOutcome(Result):
    """An outcome by class, with intervals.

    Attributes
    ----------
    levels : tuple of str
        Levels of a categorical outcome; empty for a numeric one.
    values, lower, upper : ndarray of shape (n_classes, n_levels)
        Probability of each level, or the mean in the only column, and the ends of its interval.
    method : {"draws", "bch", "three-step"}
        How they were computed.
    n_rows : int
        Rows with an outcome.

    Examples
    --------
    >>> classes = pb.LatentClassAnalysis(2, random_state=0).fit(answers)
    >>> classes.outcome(answers, np.arange(len(answers))).to_frame().columns.tolist()
    ['class', 'mean', 'lower', 'upper']
    """

    levels: tuple[str, ...]
    values: Floats
    lower: Floats
    upper: Floats
    method: str
    n_rows: int

    def _columns(self) -> dict[str, Any]:
        n_classes, n_columns = self.values.shape
        columns: dict[str, Any] = {"class": np.repeat(np.arange(n_classes), n_columns)}
        if self.levels:
            columns["answer"] = np.tile(np.array(self.levels, dtype=object), n_classes)
        columns["probability" if self.levels else "mean"] = self.values.ravel()
        return columns | {"lower": self.lower.ravel(), "upper": self.upper.ravel()}

    def _methods_text(self) -> str:
        """A sentence about the outcome for a methods section."""
        kind = f"Probabilities of {len(self.levels)} levels" if self.levels else "Means"
        where = f"of the outcome by class, of {self.n_rows:,} rows in {len(self.values)} classes"
        return f"{kind} {where}, are {_HOW[self.method]}."

    def __repr__(self) -> str:
        return f"<ClassOutcome: {self._methods_text()}>"


@shared_docs
class ClassOutcomes(ClassPredictions):
    """Outcomes by class of fitted latent classes."""

    def outcome(
        self,
        X: Any,
        y: Any,
        *,
        method: str | None = None,
        level: float = 0.95,
        weights: Any = None,
        covariates: Any = None,
    ) -> ClassOutcome:
        """A distal outcome by class, with intervals that hold the uncertainty of membership.

        ``"draws"`` draws the classes of the rows given their answers and their outcome, under each
        posterior draw of the classes, and the parameters of the outcome given the classes of the
        rows; classes themselves do not depend on the outcome. A numeric outcome tells classes apart
        by twenty groups of equally many rows, so that it may have any distribution within a class.
        ``"bch"`` and ``"three-step"`` assign rows to their most
        probable class and correct for the errors of the assignment, by weights or by maximum
        likelihood; as usual, they take the classes as known.

        Parameters
        ----------
        X, weights, covariates
            As for :meth:`fit`: the rows.
        y : Series, array of shape (n_rows,) or str
            The outcome of each row, or a column of `X`; missing values are left out. Text,
            categories and booleans are levels, numbers have a mean; more than 50 levels must be
            categories.
        method : {"draws", "bch", "three-step"}, optional
            By default ``"draws"``; ``"three-step"`` for classes fitted by ``"em"``, which has no
            draws. ``"three-step"`` takes numbers as normal within a class; ``"bch"`` assumes
            nothing about them, but may give probabilities outside of 0 and 1.
        {level}

        Returns
        -------
        ClassOutcome
            Its table has one row per class, or per class and level.

        {raises: bad argument}
        NotFittedError
            If there are no classes yet.

        References
        ----------
        A. Bolck, M. Croon and J. Hagenaars (2004). Estimating latent structure models with
        categorical variables: one-step versus three-step estimators. Political Analysis 12(1).

        J. K. Vermunt (2010). Latent class modeling with covariates: two improved three-step
        approaches. Political Analysis 18(4).

        Z. Bakk and J. Kuha (2018). Two-step estimation of models between latent classes and
        external variables. Psychometrika 83(4).

        Examples
        --------
        >>> classes = pb.LatentClassAnalysis(2, random_state=0).fit(answers)
        >>> voted = np.where(np.arange(len(answers)) % 3, "yes", "no")
        >>> table = classes.outcome(answers, voted).to_frame()
        >>> table.groupby("class")["probability"].sum().round(6).tolist()
        [1.0, 1.0]
        """
        half = checks.share("level", level) / 2
        self._check_fitted()
        default = "three-step" if self._counts is None else "draws"
        chosen = checks.choice("method", default if method is None else method, tuple(_HOW))
        if chosen == "draws" and self._counts is None:
            told = (argument("method", x) for x in ("draws", "em"))
            raise InvalidArgumentError(CALLS["no draws"].format(*told))
        answers = self._weighted(X, weights, covariates)
        codes, levels = _read_outcome(X, y, len(answers.levels))
        if not (known := ~np.isnan(codes) & (answers.weights > 0)).any():
            raise InvalidArgumentError(f"{argument('y')} has no value in any row")
        rows = _Rows(answers.take(known), codes[known], len(levels))
        if chosen == "draws":
            draws = np.array(list(self._outcome_draws(rows)))
            ends = np.quantile(draws, [0.5 - half, 0.5 + half], axis=0)
            values = draws.mean(axis=0)
        else:
            estimate = _bch if chosen == "bch" else _three_step
            values, errors = estimate(rows, self._probabilities(rows.answers))
            ends = values + special.ndtri(0.5 + half) * np.array([-1, 1])[:, None, None] * errors
            if chosen == "three-step" and levels:
                logits, slopes = special.logit(values), values * (1 - values)
                with np.errstate(divide="ignore", invalid="ignore"):
                    reach = special.ndtri(0.5 + half) * errors / slopes
                    ends = special.expit([logits - reach, logits + reach])
        return ClassOutcome(levels, values, ends[0], ends[1], chosen, int(known.sum()))

    def _outcome_draws(self, rows: _Rows) -> Iterator[Floats]:
        """Draws of the outcome's means or probabilities, one for each draw of the classes."""
        assert self._counts is not None
        generator = random_generator(self.seed_)
        tables = self._counts.drawn(generator)
        answers, grouped, state = rows.answers, rows.grouped(), None
        for draw in range(len(tables.weights)):
            own = tables.take(np.array([draw]))
            ln_joint = own.ln_joint(answers.levels, answers.covariates)
            for _ in range(_SWEEPS):
                terms = ln_joint if state is None else ln_joint + state.ln_rows(grouped.codes)
                classes = drawn_index(generator, special.softmax(terms, axis=1))
                members = np.eye(self.n_classes_)[classes]
                state = grouped.drawn(generator, members)
            law = state if rows.n_levels else rows.drawn(generator, members)
            assert law is not None
            yield law.values


class _Law(NamedTuple):
    """Law of an outcome in each class: probabilities of levels, or a mean and a deviation."""

    # Shape (n_classes, n_levels), or (n_classes, 1).
    values: Floats
    deviations: Floats | None

    def ln_rows(self, codes: Floats) -> Floats:
        """Ln of the density of each row's outcome by class, shape (n_rows, n_classes)."""
        found: Floats
        if self.deviations is None:
            with np.errstate(divide="ignore"):
                found = np.log(self.values.T[codes.astype(np.intp)])
            return found
        apart = (codes[:, None] - self.values[:, 0]) / self.deviations
        found = -0.5 * apart**2 - np.log(self.deviations)
        return found


class _Rows(NamedTuple):
    """Rows with an outcome: numbers of levels, or values if there are no levels."""

    answers: Answers
    codes: Floats
    n_levels: int

    def grouped(self) -> _Rows:
        """The rows with numbers cut at their quantiles: the law within a class may be any."""
        if self.n_levels:
            return self
        ends = np.unique(np.quantile(self.codes, np.arange(1, _GROUPS) / _GROUPS))
        codes = np.searchsorted(ends, self.codes, side="right").astype(np.float64)
        return self._replace(codes=codes, n_levels=len(ends) + 1)

    def shown(self) -> Floats:
        """Values, shape (n_rows, 1), or indicators of the levels, shape (n_rows, n_levels)."""
        if not self.n_levels:
            return self.codes[:, None]
        return np.eye(self.n_levels)[self.codes.astype(np.intp)]

    def spread(self) -> tuple[float, float]:
        """Mean and variance of a numeric outcome."""
        mean = float(np.average(self.codes, weights=self.answers.weights))
        variance = float(np.average((self.codes - mean) ** 2, weights=self.answers.weights))
        return mean, variance or 1.0

    def drawn(self, generator: np.random.Generator, members: Floats) -> _Law:
        """A draw of the law given the classes of the rows."""
        members = members * self.answers.weights[:, None]
        sums = members.T @ self.shown()
        if self.n_levels:
            return _Law(dirichlet(generator, sums + _ALPHA, axis=1), None)
        mean, variance = self.spread()
        n_rows = members.sum(axis=0) + _PRIOR_ROWS
        centres = (sums[:, 0] + _PRIOR_ROWS * mean) / n_rows
        squares = members.T @ self.codes**2 + _PRIOR_ROWS * (mean**2 + variance)
        squares = np.maximum(squares - n_rows * centres**2, 0) + _PRIOR_ROWS * variance
        # One degree of freedom goes to the mean; the prior has as many rows.
        free = np.maximum(n_rows - 1, 1.0)
        variances = 0.5 * squares / generator.standard_gamma(0.5 * free)
        drawn = generator.normal(centres, np.sqrt(variances / n_rows))
        return _Law(drawn[:, None], np.sqrt(variances))

    def fitted(self, members: Floats) -> _Law:
        """The most likely law given shares of the rows in the classes."""
        members = members * self.answers.weights[:, None]
        totals = members.sum(axis=0)[:, None]
        values = (members.T @ self.shown()) / totals
        if self.n_levels:
            return _Law(values, None)
        apart = (self.codes[:, None] - values[:, 0]) ** 2
        variances = (members * apart).sum(axis=0) / totals[:, 0]
        return _Law(values, np.sqrt(np.maximum(variances, 1e-8 * self.spread()[1])))


def _read_outcome(X: Any, y: Any, n_rows: int) -> tuple[Floats, tuple[str, ...]]:
    """Outcomes as numbers, NaN if missing, and the levels of a categorical one."""
    values = column_of(X, "y", y, n_rows)
    if getattr(values.dtype, "kind", "O") in "iuf" and not hasattr(values, "cat"):
        if np.isinf(found := values.to_numpy(dtype=np.float64, na_value=np.nan)).any():
            row = int(np.argmax(np.isinf(found)))
            raise InvalidArgumentError(f"{argument('y')} has an infinite value at row {row}")
        return found, ()
    codes, labels = levels_of(X, "y", y, n_rows)
    return np.where(codes < 0, np.nan, codes), tuple(labels)


def _assigned(rows: _Rows, shares: Floats) -> tuple[Indices, Floats]:
    """The most probable class of each row, and P(assigned class | class), (assigned, classes)."""
    assigned = shares.argmax(axis=1)
    members = shares * rows.answers.weights[:, None]
    errors = np.eye(shares.shape[1])[assigned].T @ members / members.sum(axis=0)
    return assigned, errors


def _bch(rows: _Rows, shares: Floats) -> tuple[Floats, Floats]:
    """Means or probabilities by class and their errors, by weights that undo the assignment."""
    assigned, errors = _assigned(rows, shares)
    if np.linalg.cond(errors) > 1e8:
        raise InvalidArgumentError(CALLS["never assigned"].format(argument("method", "bch")))
    members = np.linalg.inv(errors)[:, assigned].T * rows.answers.weights[:, None]
    totals, shown = members.sum(axis=0)[:, None], rows.shown()
    values = members.T @ shown / totals
    scores = members[:, :, None] * (shown[:, None] - values)
    return values, np.sqrt((scores**2).sum(axis=0)) / np.abs(totals)


def _three_step(rows: _Rows, shares: Floats) -> tuple[Floats, Floats]:
    """The same by maximum likelihood, with a sandwich of scores and their derivatives."""
    assigned, errors = _assigned(rows, shares)
    with np.errstate(divide="ignore"):
        ln_errors = np.log(errors)[assigned]
    weights = rows.answers.weights
    members, last = shares, -np.inf
    for _ in range(_MOST_STEPS):
        sizes, law = weights @ members / weights.sum(), rows.fitted(members)
        terms = ln_errors + np.log(sizes) + law.ln_rows(rows.codes)
        value = float(weights @ special.logsumexp(terms, axis=1))
        members = special.softmax(terms, axis=1)
        if value - last <= _TOLERANCE * abs(value):
            break
        last = value
    # Parameters: logits of sizes and levels, with one too many each, or means and ln deviations.
    logs = np.log(law.values if law.deviations is None else law.deviations[:, None])
    if law.deviations is not None:
        logs = np.hstack([law.values, logs])
    inside = np.isfinite(logs) & (not rows.n_levels or logs < -1e-6)
    free = np.concatenate([np.log(sizes), np.where(inside, logs, 0.0).ravel()])
    n_classes, shown = len(sizes), rows.shown()

    def scores(parameters: Floats) -> Floats:
        ln_sizes, own = parameters[:n_classes], parameters[n_classes:].reshape(n_classes, -1)
        if rows.n_levels:
            made = _Law(special.softmax(np.where(inside, own, logs), axis=1), None)
            parts = shown[:, None] - made.values
        else:
            made = _Law(own[:, :1], np.exp(own[:, 1]))
            apart = (rows.codes[:, None] - own[:, 0]) / np.exp(own[:, 1])
            parts = np.stack([apart / np.exp(own[:, 1]), apart**2 - 1], axis=2)
        terms = ln_errors + special.log_softmax(ln_sizes) + made.ln_rows(rows.codes)
        belong = special.softmax(terms, axis=1)
        by_class = (belong[:, :, None] * parts).reshape(len(belong), -1)
        return np.hstack([belong - special.softmax(ln_sizes), by_class])

    covariance = _sandwich(scores, free, weights)[n_classes:, n_classes:]
    width = logs.shape[1]
    found = np.full_like(law.values, np.nan)
    for k in range(n_classes):
        own = covariance[k * width : (k + 1) * width, k * width : (k + 1) * width]
        gradient = np.eye(1, 2)
        if rows.n_levels:
            p = law.values[k]
            gradient = np.diag(p) - np.outer(p, p)
        variances = np.einsum("ij,jk,ik->i", gradient, own, gradient)
        found[k] = np.where(inside[k, : len(variances)], np.sqrt(np.maximum(variances, 0)), np.nan)
    return law.values, found


def _sandwich(scores: Callable[[Floats], Floats], free: Floats, weights: Floats) -> Floats:
    """Covariance of parameters from the scores of rows; directions without effect have none."""
    steps = np.eye(len(free)) * _STEP
    slopes = [weights @ (scores(free + s) - scores(free - s)) / (2 * _STEP) for s in steps]
    bread = np.linalg.pinv(-np.array(slopes), rcond=1e-7)
    weighted = scores(free) * weights[:, None]
    return bread @ (weighted.T @ weighted) @ bread.T
