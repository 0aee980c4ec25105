"""Plot of estimates against the number of samples."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy import stats

from polyabayes._support import checks
from polyabayes.exceptions import InvalidArgumentError, InvalidTypeError
from polyabayes.likelihood.result import LogLikelihood, Trace
from polyabayes.plotting.axes import Axes, axes_or_new, finish


def plot_convergence(
    results: LogLikelihood | Mapping[str, LogLikelihood],
    exact: LogLikelihood | float | None = None,
    document: int | None = None,
    level: float = 0.95,
    ax: Axes | None = None,
) -> Axes:
    """Plot the estimates of one document, or of the total, against the number of samples.

    Parameters
    ----------
    results : LogLikelihood, or mapping of name to LogLikelihood
        Results of ``log_likelihood(..., trace=True)`` on the same documents.
    exact : LogLikelihood or float, optional
        The exact value, for a dashed line.
    document : int, optional
        The document to plot; None means the total of all documents.
    level : float, default=0.95
        Confidence level of the bands, by the normal distribution.
    {ax}

    Returns
    -------
    matplotlib Axes
        ln p in nats against the samples of all replicates of a document (for the total: mean over
        documents), on a logarithmic axis.

    {raises: bad plot}

    Examples
    --------
    >>> found = pb.log_likelihood(
    ...     model, [[3, 1, 1, 0]], "direct", n_samples=64, trace=True, random_state=0
    ... )
    >>> pb.plotting.plot_convergence(found).get_xscale()
    'log'
    """
    named = results if isinstance(results, Mapping) else {"": results}
    quantile = float(stats.norm.ppf(0.5 + checks.share("level", level) / 2))
    traces = {name: _trace(name, result) for name, result in named.items()}
    if not named:
        raise InvalidArgumentError("results is empty; give at least one")
    if document is not None:
        fewest = min(len(result.values) for result in named.values())
        checks.whole_number("document", document, 0, fewest - 1)
    ax = axes_or_new(ax, 7.0, 4.2, len(traces))
    for name, trace in traces.items():
        rows = np.arange(len(trace.values)) if document is None else np.array([document])
        sampled = rows[trace.n_samples[rows, -1] > 0]
        n_samples = trace.n_samples[sampled].mean(axis=0)
        values = trace.values[rows].sum(axis=0)
        # Equal documents share one estimate, so their errors add linearly.
        groups = named[name].groups[rows]
        per_group = np.zeros((groups.max() + 1, len(values)))
        np.add.at(per_group, groups, trace.std_errors[rows])
        errors = np.sqrt((per_group**2).sum(axis=0))
        (line,) = ax.plot(n_samples, values, label=name or None)
        band = quantile * np.where(np.isfinite(errors), errors, np.nan)
        ax.fill_between(
            n_samples, values - band, values + band, color=line.get_color(), alpha=0.2, linewidth=0
        )
    if exact is not None:
        line_style: dict[str, Any] = {"color": "0.5", "linewidth": 0.9, "linestyle": "--"}
        ax.axhline(_value(exact, document), label="exact", zorder=0, **line_style)
    ax.set_xscale("log")
    ax.set_xlabel(f"samples in all replicates (bands: {100 * level:g} %)")
    what = "all documents" if document is None else f"document {document}"
    ax.set_ylabel(f"ln p of {what} (nats)")
    ax.ticklabel_format(axis="y", useOffset=False)
    return finish(ax)


def _trace(name: str, result: LogLikelihood) -> Trace:
    if not isinstance(result, LogLikelihood):
        raise InvalidTypeError(f"results must be of log_likelihood, got {type(result).__name__}")
    if result.trace is None or not result.trace.values.size:
        of = f"result {name!r}" if name else "the result"
        raise InvalidArgumentError(
            f"{of} has no trace: call log_likelihood with a sampling method and trace=True"
        )
    return result.trace


def _value(exact: LogLikelihood | float, document: int | None) -> float:
    if not isinstance(exact, LogLikelihood):
        return checks.number("exact", exact)
    return exact.total if document is None else float(exact.values[document])
