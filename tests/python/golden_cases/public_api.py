"""The public API, entry by entry: names of arguments and results stand here only."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

import polyabayes as pb
from golden_cases.inputs import DOCUMENTS, TRAINING

Case = Callable[[], Any]


def plain(value: Any) -> Any:
    """Numbers, lists and mappings for JSON, whatever container they came in."""
    if isinstance(value, pb.Corpus):
        return {
            "counts": value.counts.toarray().tolist(),
            "vocabulary": plain(value.vocabulary),
            "ids": plain(value.ids),
        }
    if isinstance(value, pb.CountTensor):
        return {
            "coordinates": value.coordinates.tolist(),
            "counts": value.counts.tolist(),
            "shape": list(value.shape),
            "axes": list(value.axes),
            "labels": plain(value.labels),
        }
    if isinstance(value, pd.DataFrame):
        return {str(name): plain(value[name].to_numpy()) for name in value}
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, dict):
        return {str(name): plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple | pb.Perplexity):
        return [plain(item) for item in value]
    assert value is None or isinstance(value, bool | int | float | str), type(value)
    return value


def fields(result: Any, *names: str) -> dict[str, Any]:
    return {name: plain(getattr(result, name)) for name in names}


def scored(result: pb.LogLikelihood) -> dict[str, Any]:
    return fields(
        result, "values", "std_errors", "n_effs", "sizes", "total", "total_std_error", "perplexity"
    ) | {"methods": plain(result.methods.astype(str))}


def score(
    model: Any,
    method: str,
    *,
    samples: int | None = None,
    particles: int | None = None,
    replicates: int | None = None,
    options: dict[str, Any] | None = None,
    data: np.ndarray = DOCUMENTS,
    **arguments: Any,
) -> dict[str, Any]:
    result = pb.log_likelihood(
        model,
        data,
        method,
        n_samples=samples,
        n_particles=particles,
        n_replicates=replicates,
        options=options,
        random_state=1,
        **arguments,
    )
    found = scored(result)
    if arguments.get("trace"):
        found["trace"] = fields(result.trace, "n_samples", "values", "std_errors")
    return found


def fitted(model: Any) -> dict[str, Any]:
    names = [
        "components_",
        "doc_topic_prior_",
        "topic_word_prior_",
        "shape_",
        "probability_",
        "topic_counts_",
        "n_iter_",
        "bound_",
    ]
    found = fields(model, *(name for name in names if hasattr(model, name)))
    if hasattr(model, "trace_"):
        found["trace"] = traced(model.trace_)
    return found


def traced(trace: Any) -> dict[str, Any]:
    return {name: plain(item) for name, item in vars(trace).items() if name != "seconds"}


def trained(model: Any) -> dict[str, Any]:
    """Parameters, the last state, and the weights of the first documents."""
    model.fit(TRAINING)
    found = fitted(model)
    if hasattr(model, "last_sample_"):
        found["last_sample"] = plain(model.last_sample_._asdict())
    found["transform"] = plain(model.transform(TRAINING[:3]))
    if hasattr(model, "doc_topic_prior_") or hasattr(model, "shape_"):
        weights = model.topic_weights(TRAINING[:3])
        found["weights"] = fields(weights, "mean", "std")
        found["score"] = model.score(TRAINING[:6])
        found["score_samples"] = plain(model.score_samples(TRAINING[:6]))
    return found


def evidence_fields(found: pb.Evidence) -> dict[str, Any]:
    names = ("value", "std_error", "n_eff", "method", "log_probability_of_total", "log_remainder")
    return fields(found, *names)


def evidence(
    model: pb.AllocationModel,
    data: Any,
    method: str,
    *,
    particles: int | None = None,
    samples: int | None = None,
    replicates: int | None = None,
    **arguments: Any,
) -> dict[str, Any]:
    if method == "vb":
        sizes = {"max_iter": samples, "n_restarts": replicates}
    else:
        sizes = {"n_particles": particles, "n_samples": samples, "n_replicates": replicates}
    return evidence_fields(model.log_evidence(data, method, random_state=2, **sizes, **arguments))


def decomposition(
    model: pb.AllocationModel,
    data: Any,
    method: str,
    *,
    iterations: int | None = None,
    particles: int | None = None,
    **arguments: Any,
) -> dict[str, Any]:
    found = model.decompose(
        data, method, max_iter=iterations, n_particles=particles, random_state=3, **arguments
    )
    names = ("tables", "expected_counts", "intensity", "trace", "value", "fitted_counts")
    errors = ("kl_error", "squared_error", "sparsity", "log_probability_of_total")
    more = ("missing_counts",) if len(found.missing_cells) else ()
    return fields(found, *names, *errors, *more)


def missing(
    model: pb.AllocationModel,
    data: Any,
    method: str,
    *,
    particles: int | None = None,
    samples: int | None = None,
    replicates: int | None = None,
    **arguments: Any,
) -> dict[str, Any]:
    if method == "vb":
        sizes = {"max_iter": samples, "n_restarts": replicates}
    else:
        sizes = {"n_particles": particles, "n_replicates": replicates}
    found = model.predict_missing(data, method, random_state=4, **sizes, **arguments)
    names = ("totals", "log_joint", "std_errors", "posterior", "posterior_std_errors")
    expected = ("expected_counts", "expected_std_errors", "expected_total", "coordinates")
    rest = ("log_remainder", "log_remainder_bound")
    return fields(found, *names, *expected, *rest) | {"evidence": evidence_fields(found.evidence)}


def simulated_bounds(model: pb.AllocationModel, shape: dict[str, int]) -> dict[str, Any]:
    found = model.bidirectional_bounds(
        shape, 12, n_chains=8, n_samples=20, n_replicates=4, random_state=5, n_jobs=1
    )
    return {
        side: {
            "value": float(getattr(found, side)[0]),
            "std_error": float(getattr(found, f"{side}_std_errors")[0]),
        }
        for side in ("lower", "upper")
    }


def searched(search: pb.WitnessSearch) -> dict[str, Any]:
    names = ("best_", "holds_", "log_ceiling_", "n_steps_", "stop_reason_", "unexplored_posterior_")
    found = fields(search, *names)
    for table in ("bounds_", "posterior_bounds_"):
        found[table] = table_columns(getattr(search, table))
    return found


def table_columns(table: Any) -> dict[str, Any]:
    return {name: plain(table[name]) for name in table if name != "seconds"}
