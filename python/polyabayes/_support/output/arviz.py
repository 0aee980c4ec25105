"""Conversion of draws to ArviZ."""

import warnings
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any

from polyabayes._support.optional import import_optional


def import_arviz(what: str) -> ModuleType:
    """Import ArviZ; if it is missing, the error says how to install it for `what`."""
    # Releases before 1.0 announce it at every import.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        return import_optional("arviz", f"{what} needs ArviZ", "diagnostics")


def inference_data(
    posterior: Mapping[str, Any],
    log_joint: Any,
    dims: Mapping[str, Sequence[str]],
    coords: Mapping[str, Any] | None = None,
    constant: Mapping[str, Any] | None = None,
) -> Any:
    """Convert draws by (chain, draw, ...) and log joint densities to ArviZ's container.

    `coords` are labels of dimensions; `constant` are data shared by all draws.
    """
    arviz = import_arviz("to_inference_data")
    groups = {"sample_stats": {"lp": log_joint}, "posterior": dict(posterior)}
    if constant:
        groups["constant_data"] = dict(constant)
    names = {name: list(axes) for name, axes in dims.items()}
    if int(arviz.__version__.split(".")[0]) >= 1:
        return arviz.from_dict(groups, dims=names, coords=dict(coords or {}))
    return arviz.from_dict(**groups, dims=names, coords=dict(coords or {}))
