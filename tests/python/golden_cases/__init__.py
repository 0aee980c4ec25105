"""Golden values: what the public API gives on small inputs with seeds, kept in tests/golden.

``python -m golden_cases --write [GROUP ...]``, in tests/python, computes them anew. A change of a
value is deliberate, and has its line in CHANGELOG.md.
"""

from __future__ import annotations

import hashlib
import json
import math
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy import special

import polyabayes as pb
from golden_cases.allocation import decomposition_cases, evidence_cases
from golden_cases.documents import likelihood_cases, scoring_cases
from golden_cases.files import file_cases
from golden_cases.missing import missing_cases
from golden_cases.public_api import Case
from golden_cases.sizes import prior_cases, witness_cases
from golden_cases.training import training_cases

FOLDER = Path(__file__).parents[2] / "golden"

GROUPS: dict[str, Callable[[], Iterator[tuple[str, Case]]]] = {
    "likelihood": likelihood_cases,
    "scoring": scoring_cases,
    "training": training_cases,
    "evidence": evidence_cases,
    "decomposition": decomposition_cases,
    "missing": missing_cases,
    "witness": witness_cases,
    "priors": prior_cases,
    "files": file_cases,
}


def elementary_functions() -> dict[str, str]:
    """Digests of what the C library's functions and NumPy's and BLAS's give on this machine."""
    at = np.arange(1, 4001) / 256.0
    scalar = [f(x) for f in (math.log, math.exp, math.lgamma, math.log1p, math.cos) for x in at]
    arrays = [f(at) for f in (np.log, np.exp, np.log1p, np.expm1, np.cos, special.gammaln)]
    square = at[:3969].reshape(63, 63) / 3
    results = {
        "C library": np.array(scalar),
        "NumPy": np.concatenate(arrays),
        "BLAS": np.concatenate([square @ square, square @ square[:, :1]], axis=1),
    }
    return {name: hashlib.sha256(found.tobytes()).hexdigest() for name, found in results.items()}


def compute(case: Case) -> Any:
    """The values, through JSON as they are kept: small samples may doubt their errors."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pb.exceptions.PolyabayesWarning)
        return json.loads(json.dumps(case()))
