"""Evidence of allocation models of unknown sizes: which work may go on from which."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polyabayes._support.state_folder import fingerprint_of
from polyabayes.allocation import AllocationModel
from polyabayes.data.tensor import CountTensor

_OF_THE_MODEL = ("sizes", "rate", "tied")
# Options that change no value, or that have a place of their own in an identity.
_OF_THE_RUN = ("n_jobs", "executor", "progress", "observed", "random_state")


def identity_of(
    model: AllocationModel,
    tensor: CountTensor,
    options: Mapping[str, Any],
    missing: NDArray[np.int64] | None = None,
) -> dict[str, Any]:
    """Model but for its concentration, data, and how evidences are found.

    Options are those of ``log_evidence``; `missing` are coordinates of the cells that were not
    observed.
    """
    arrays = [tensor.coordinates, tensor.counts, *([] if missing is None else [missing])]
    return {
        "graph": model.graph.to_text(),
        "prior of the tables": repr(model.prior),
        **{name: repr(getattr(model, name)) for name in _OF_THE_MODEL},
        "data": fingerprint_of((tensor.axes, tensor.shape), *arrays),
        "options": {name: repr(v) for name, v in options.items() if name not in _OF_THE_RUN},
    }
