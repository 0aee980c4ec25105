"""Maximum likelihood: tables, criteria, standard errors and the bootstrap test."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from scipy import linalg, special

from polyabayes._support import checks
from polyabayes._support.arrays import Floats, Indices
from polyabayes.allocation.options import Run
from polyabayes.data.names import CALLS
from polyabayes.data.naming import rows_by_name
from polyabayes.exceptions import InvalidArgumentError, argument
from polyabayes.latent_classes.answers import Answers, column_of, indicators, levels_of
from polyabayes.latent_classes.choice import PRIORS, criteria, hidden_of
from polyabayes.latent_classes.tables import ClassTables

# Distance to 0 or 1 at which a probability is on the boundary and has no error.
_BOUNDARY = 1e-6
# Relative eigenvalue of the information below which a direction is one of softmax that changes
# nothing.
_NULL = 1e-10
# Starts and relative gain at the end of a fit to a data set of the bootstrap test, as in
# benches/latent_classes.py.
_BOOTSTRAP_STARTS, _BOOTSTRAP_TOL = 5, 1e-7


def maxima(
    answers: Answers, sizes: Iterable[int], run: Run, *, n_restarts: int, tol: float
) -> dict[int, ClassTables]:
    """Tables of the largest likelihood for each number of classes."""
    tensor, found = answers.tensor(), {}
    for n_classes in sizes:
        model = PRIORS["flat"].model(tensor.axes, n_classes)
        seed = np.random.SeedSequence([run.seed, n_classes, 0])
        options: dict[str, Any] = {"n_jobs": run.n_jobs, "progress": run.progress}
        options |= {"n_restarts": n_restarts, "tol": tol}
        made = model.decompose(tensor, "ml", random_state=seed, **options)
        nodes = hidden_of(tensor.axes), *tensor.axes
        weights, *items = (made.tables[node][None] for node in nodes)
        found[n_classes] = ClassTables(weights, tuple(items))
    return found


def fit_rows(answers: Answers, fits: Mapping[int, ClassTables]) -> list[dict[str, Any]]:
    """Log-likelihood, parameters and criteria of each number of classes."""
    rows, n_rows = [], float(answers.weights.sum())
    for n_classes, tables in fits.items():
        value = answers.weighted_sum(tables.ln_rows(answers.levels))
        row = {"n_classes": n_classes, "log_likelihood": value}
        row |= {"n_parameters": tables.n_parameters}
        rows.append(row | criteria(value, tables.n_parameters, n_rows))
    return rows


def entropy_r2(shares: Floats, weights: Floats) -> float:
    """1 - Σ H(class | row) / (n ln K); NaN for one class."""
    if shares.shape[1] == 1:
        return float("nan")
    spread = special.entr(shares).sum(axis=1)
    return float(1 - np.average(spread, weights=weights) / np.log(shares.shape[1]))


def bootstrap_p_value(
    answers: Answers, fits: Mapping[int, ClassTables], n_classes: int, n_samples: int, run: Run
) -> float:
    """Share of data sets of one class less whose likelihood ratio is at least that of the rows.

    Data sets lack the answers that the rows lack (McLachlan 1987).
    """
    answers, sizes = answers.one_each(), (n_classes - 1, n_classes)

    def ratio(rows: Answers, tables: Mapping[int, ClassTables]) -> float:
        less, more = (float(tables[n].ln_rows(rows.levels).sum()) for n in sizes)
        return more - less

    observed, n_above = ratio(answers, fits), 0
    for sample in range(n_samples):
        generator = np.random.default_rng([run.seed, n_classes, sample])
        draws = np.zeros(len(answers.levels), dtype=np.int64)
        levels, _ = fits[n_classes - 1].draw(generator, draws)
        levels[answers.levels < 0] = -1
        rows = answers._replace(levels=levels)
        quick = run._replace(progress=False)
        made = maxima(rows, sizes, quick, n_restarts=_BOOTSTRAP_STARTS, tol=_BOOTSTRAP_TOL)
        n_above += ratio(rows, made) >= observed
    return (1 + n_above) / (1 + n_samples)


class SampledUnits(NamedTuple):
    """Clusters in strata by which rows were sampled."""

    # Cluster of each row, and stratum of each cluster.
    of_rows: Indices
    strata: Indices

    @classmethod
    def of(cls, X: Any, strata: Any, clusters: Any, n_rows: int) -> SampledUnits | None:
        """The arguments of these names, columns or their names; None if neither is given."""
        if strata is None and clusters is None:
            return None
        codes = np.stack([np.zeros(n_rows, dtype=np.int64), np.arange(n_rows)])
        for nth, (name, given) in enumerate((("strata", strata), ("clusters", clusters))):
            if given is not None:
                codes[nth] = levels_of(X, name, given, n_rows, np.inf)[0]
                if (codes[nth] < 0).any():
                    row = int(np.argmax(codes[nth] < 0))
                    raise InvalidArgumentError(f"{argument(name)} has no value at row {row}")
        units, of_rows = np.unique(codes, axis=1, return_inverse=True)
        n_clusters = np.bincount(units[0])
        if n_clusters.min() < 2:
            raise InvalidArgumentError(CALLS["one cluster"].format(argument("strata")))
        return cls(of_rows.ravel(), units[0])

    def sentence(self) -> str:
        """A sentence for a methods section."""
        n_strata = int(self.strata.max()) + 1
        return f" Errors are those of {len(self.strata):,} clusters in {n_strata:,} strata."

    def squares(self, scores: Floats) -> Floats:
        """Sum of squares of the scores of clusters, about the means of their strata."""
        sums = np.zeros((len(self.strata), scores.shape[1]))
        np.add.at(sums, self.of_rows, scores)
        n_clusters = np.bincount(self.strata)
        means = np.zeros((len(n_clusters), scores.shape[1]))
        np.add.at(means, self.strata, sums)
        apart = sums - (means / n_clusters[:, None])[self.strata]
        return apart.T @ (apart * (n_clusters / (n_clusters - 1))[self.strata, None])


class Replicates(NamedTuple):
    """Replicate weights of the rows, over the weights of the fit; their sums are the same."""

    # Shape (n_rows, n_replicates).
    ratios: Floats
    # Factors of the squared changes, one for each replicate.
    scales: Floats
    name: str

    @staticmethod
    def columns(given: Any) -> list[str]:
        """The columns that the argument `replicate_weights` names, if it names columns."""
        is_list = isinstance(given, (list, tuple)) or getattr(given, "ndim", 0) == 1
        names = list(given) if is_list else [given]
        return names if all(isinstance(one, str) for one in names) else []

    @classmethod
    def of(cls, X: Any, given: Any, method: Any, weights: Floats) -> Replicates | None:
        """The arguments `replicate_weights` and `replicate_method`, checked; None without them."""
        name, n_rows = "replicate_weights", len(weights)
        if given is None:
            if method is not None:
                raise checks.wrong("replicate_method", method, f"needs {argument(name)}")
            return None
        if columns := cls.columns(given):
            given = np.column_stack([column_of(X, name, one, n_rows) for one in columns])
        given = rows_by_name(name, given, checks.index_of(X))
        found = checks.matrix(name, given, f"({n_rows:,}, n_replicates)")
        if len(found) != n_rows or found.shape[1] < 2:
            rule = f"must have {n_rows:,} rows and two columns or more, got shape {found.shape}"
            raise checks.wrong(name, given, rule)
        is_right = np.isfinite(found) & (found >= 0) & ((found == 0) | (weights[:, None] > 0))
        if not is_right.all():
            row = int(np.argmin(is_right.all(axis=1)))
            rule = f"must be finite, not negative, and 0 where the weight is, but row {row} is not"
            raise checks.wrong(name, given, rule)
        sums, n = found.sum(axis=0), found.shape[1]
        if not sums.all():
            raise checks.wrong(name, given, f"must not be all 0, but column {np.argmin(sums)} is")
        known = {"jackknife": (n - 1) / n, "brr": 1 / n, "bootstrap": 1 / n}
        if method is None or (isinstance(method, str) and method not in known):
            rule = f"must say how replicates were made, {', '.join(map(repr, known))}, or give "
            rule += f"the scale of the squares, one or {n:,} numbers, as for JKn; got {method!r}"
            raise checks.wrong("replicate_method", method, rule)
        is_named = isinstance(method, str)
        scale = known[method] if is_named else method
        scales = checks.positive_vector("replicate_method", scale, n)
        ends = dict.fromkeys(f"{end:g}" for end in (scales.min(), scales.max()))
        label = method if is_named else f"scale {' to '.join(ends)}"
        found = found * (weights.sum() / sums)
        shares = np.divide(found, weights[:, None], out=np.zeros_like(found), where=found > 0)
        return cls(shares, scales, label)

    def sentence(self) -> str:
        """A sentence for a methods section."""
        return f" Errors are those of {self.ratios.shape[1]:,} replicate weights ({self.name})."

    def squares(self, scores: Floats) -> Floats:
        """Sum of squares of the scores of all rows under each replicate, scaled."""
        sums = self.ratios.T @ scores
        return sums.T @ (sums * self.scales[:, None])


def logit_errors(
    answers: Answers, tables: ClassTables, units: SampledUnits | Replicates | None = None
) -> ClassTables:
    """Standard errors of the logits of all probabilities; NaN on the boundary.

    The bread is the observed information (Louis 1982), the meat the sum of squares of the scores of
    rows, which weights with fractions enter by their squares; with sampled units, of clusters about
    the means of their strata, the linearisation of surveys (Binder 1983); with replicate weights,
    of their totals, so that each replicate changes the estimate by one Newton step.
    """
    is_counted = answers.weights > 0
    answers = answers.take(is_counted)
    patterns, of = np.unique(answers.levels, axis=0, return_inverse=True)
    once = np.bincount(of.ravel(), answers.weights)
    squares = answers.weights**2 if answers.has_fractions else answers.weights
    weights, items = tables.weights[0], [table[0] for table in tables.items]
    n_classes, stacked = len(weights), np.concatenate(items)
    shown = indicators(patterns, answers.shape)
    seen = np.repeat(patterns >= 0, [len(item) for item in items], axis=1)
    member = special.softmax(tables.ln_joint(patterns), axis=1)
    apart = [shown - seen * column for column in stacked.T]
    scores = np.hstack([member - weights, *(member.T[:, :, None] * apart)])
    information = scores.T @ (scores * once[:, None])
    first = slice(n_classes)
    masses = once @ member
    information[first, first] += once.sum() * (np.diag(weights) - np.outer(weights, weights))
    expected = np.diag(masses) - np.outer(masses, weights) - np.outer(weights, masses)
    information[first, first] -= expected + once.sum() * np.outer(weights, weights)
    for k, deviations in enumerate(apart):
        own = slice(n_classes + k * len(stacked), n_classes + (k + 1) * len(stacked))
        counted = once * member[:, k]
        sides = np.outer(np.eye(n_classes)[k] - weights, counted @ deviations)
        information[first, own] -= sides
        information[own, first] -= sides.T
        complete = [
            total * (np.diag(column) - np.outer(column, column))
            for total, column in zip(
                counted @ (patterns >= 0), [item[:, k] for item in items], strict=True
            )
        ]
        information[own, own] += linalg.block_diag(*complete)
        information[own, own] -= deviations.T @ (deviations * counted[:, None])
    meat: Any = scores.T @ (scores * np.bincount(of.ravel(), squares)[:, None])
    if units is not None:
        weighted = np.zeros((len(is_counted), scores.shape[1]))
        weighted[is_counted] = scores[of.ravel()] * answers.weights[:, None]
        meat = units.squares(weighted)
    values = np.concatenate([weights, *stacked.T])
    inside = (values > _BOUNDARY) & (values < 1 - _BOUNDARY)
    bread = np.zeros_like(information)
    kept = np.ix_(inside, inside)
    bread[kept] = np.linalg.pinv(information[kept], rcond=_NULL, hermitian=True)
    covariance = bread @ meat @ bread

    def errors(at: slice) -> Floats:
        own = values[at]
        with np.errstate(divide="ignore", invalid="ignore"):
            gradient = (np.eye(len(own)) - own) / (1 - own)[:, None]
        variance = np.einsum("ij,jk,ik->i", gradient, covariance[at, at], gradient)
        return np.where(inside[at], np.sqrt(np.maximum(variance, 0.0)), np.nan)

    found, start = [], n_classes
    ends = np.cumsum([0, *(len(item) for item in items)])
    for low, high in pairwise(ends.tolist()):
        columns = [
            errors(slice(start + k * len(stacked) + low, start + k * len(stacked) + high))
            for k in range(n_classes)
        ]
        found.append(np.stack(columns, axis=1)[None])
    return ClassTables(errors(first)[None], tuple(found))


def end_of_interval(tables: ClassTables, errors: ClassTables, share: float) -> ClassTables:
    """Quantiles of probabilities whose logits are normal with these errors."""
    quantile = special.ndtri(share)
    return tables.each(lambda p, error: special.expit(special.logit(p) + quantile * error), errors)
