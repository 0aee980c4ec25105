"""Identity of computations of evidence, for resuming from saved results."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polyabayes._support.state_folder import fingerprint_of
from polyabayes.allocation import AllocationModel
from polyabayes.data.tensors.tensor import CountTensor

_OF_THE_MODEL = ("sizes", "rate", "tied")
# Options that do not change values, or that are separate entries of an identity.
_OF_THE_RUN = ("n_jobs", "executor", "progress", "observed", "random_state")


def identity_of(
    model: AllocationModel,
    tensor: CountTensor,
    options: Mapping[str, Any],
    missing: NDArray[np.int64] | None = None,
) -> dict[str, Any]:
    """Model without its concentration, data, and options of ``log_evidence``.

    `missing` are coordinates of missing cells.
    """
    arrays = [tensor.coordinates, tensor.counts, *([] if missing is None else [missing])]
    return {
        "graph": model.graph.to_text(),
        "prior of the tables": repr(model.prior),
        **{name: repr(getattr(model, name)) for name in _OF_THE_MODEL},
        "data": fingerprint_of((tensor.axes, tensor.shape), *arrays),
        "options": {name: repr(v) for name, v in options.items() if name not in _OF_THE_RUN},
    }
