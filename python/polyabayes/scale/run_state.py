"""State of a training run in a file, from which the run resumes."""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from polyabayes._support.arrays import Floats
from polyabayes._support.files import is_there
from polyabayes._support.storage.arrays import read_arrays, write_arrays
from polyabayes._support.storage.state_folder import refuse_other
from polyabayes.exceptions import FileFormatError

# Phase of a run ("start", "merged" or "sweep"), number of the start, and sweeps done.
Position = tuple[str, int, int]

_TYPES = {
    "parameters": np.float64,
    "kept_sum": np.float64,
    "assignments": np.uint16,
    "kept_coefficients": np.float64,
}


class RunState(NamedTuple):
    """State of a run between two sweeps, for the compiled core.

    `position` is the phase, the number of the start and the sweeps done. `best` is the number of
    the best start so far and ln of its joint density. `parameters` are all but phi, in the order of
    the core. `kept_sum` has sums of phi and of `parameters` over `n_kept` sweeps, and
    `kept_coefficients` has their coefficients of covariates and ln of learned concentrations, flat.
    `assignments` are topics of all tokens in memory.
    """

    position: Position
    best: tuple[int, float] | None
    parameters: Floats
    n_kept: int
    kept_sum: Floats | None = None
    assignments: NDArray[np.uint16] | None = None
    kept_coefficients: Floats | None = None


def write_state(path: Path, identity: dict[str, Any], state: RunState) -> None:
    """Replace the state in a file, completely or not at all."""
    header = {"position": state.position, "best": state.best, "n_kept": state.n_kept}
    arrays = {name: getattr(state, name) for name in _TYPES}
    present = {name: array for name, array in arrays.items() if array is not None}
    write_arrays(path, {**identity, **header}, present)


def read_state(path: Path, identity: dict[str, Any]) -> RunState | None:
    """Read the state, if any; refuse the state of another run and name the difference.

    An unreadable or incomplete file is an error: a run must not overwrite it by starting again.
    """
    if not is_there(path):
        return None
    header, arrays = read_arrays(path)
    for name, expected in identity.items():
        refuse_other(path, "run", name, header.get(name), expected)
    try:
        for name in arrays:
            if arrays[name].dtype != _TYPES[name] or arrays[name].ndim != 1:
                raise ValueError(f"{name} are of another type")
        phase, run, sweep = header["position"]
        best = header["best"]
        return RunState(
            position=(str(phase), _number(run), _number(sweep)),
            best=None if best is None else (_number(best[0]), float(best[1])),
            n_kept=_number(header["n_kept"]),
            **arrays,
        )
    except (LookupError, TypeError, ValueError, OverflowError) as error:
        raise FileFormatError(
            f"{path} does not hold a complete state ({error!r}): delete it"
        ) from error


def _number(value: Any) -> int:
    """A number of sweeps or of a start, for the compiled core."""
    number = int(value)
    if not 0 <= number < 2**32:
        raise ValueError(f"{value!r:.40} is no number of sweeps")
    return number
