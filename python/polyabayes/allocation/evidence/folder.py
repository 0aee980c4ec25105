"""The replicates of an evidence in a folder, so that they go on from where they were."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from polyabayes import __version__
from polyabayes._support.state_folder import StateFolder, refuse_other
from polyabayes._support.storage import read_arrays, write_arrays
from polyabayes.allocation.layout import Layout
from polyabayes.allocation.options import REPLICATES, Options
from polyabayes.exceptions import FileFormatError

__all__ = ["Chosen", "EvidenceFolder", "Replicate"]

_HEAD = "evidence.safetensors"

# Options that say when tempering ends: its rounds are the same whatever they are, so that a run may
# go on to a smaller error. They still speak for a method where "auto" chooses one.
_OF_THE_END = ("n_samples", "target_std_error")


class Chosen(NamedTuple):
    """A sampler, and the parameter of its reference where it tempers."""

    method: str
    kappa: float | None


@dataclass
class Replicate:
    """A replicate, as far as it has come.

    Attributes
    ----------
    run : tuple of float, optional
        Result of a filter.
    ladder : bytes, optional
        Chains of tempering.
    found : list of bytes
        What the rounds of tempering that are done have found.
    """

    run: tuple[float, float] | None = None
    ladder: bytes | None = None
    found: list[bytes] = field(default_factory=list)


class EvidenceFolder:
    """A file of what was asked for, and one for each replicate.

    Parameters
    ----------
    checkpoint : path-like
        The folder, made where it is missing.
    layout, options, seed
        What a run must agree on to go on.
    """

    def __init__(self, checkpoint: Any, layout: Layout, options: Options, seed: int) -> None:
        self._folder = StateFolder(checkpoint, "the evidence")
        self._identity = _identity(layout, options, seed)
        text = json.dumps(self._identity, sort_keys=True)
        self._digest = hashlib.sha256(text.encode()).hexdigest()
        self._head = self._folder.make(_HEAD)
        self.chosen: Chosen | None = None
        if not self._head.exists():
            write_arrays(self._head, self._identity, {})
            return
        header, _ = read_arrays(self._head)
        for name, value in self._identity.items():
            refuse_other(self._head, "run", name, header.get(name), value)
        if header.get("chosen") is not None:
            self.chosen = Chosen(*header["chosen"])

    def choose(self, chosen: Chosen) -> None:
        """Keep the choice of a sampler."""
        self.chosen = chosen
        header = {**self._identity, "chosen": list(chosen)}
        self._folder.put(partial(write_arrays, self._head, header, {}), "the choice of a method")

    def read(self, number: int) -> Replicate:
        """A replicate of this work; one that is not there, or is damaged, begins anew."""
        path = self._path(number)
        self._folder.make(path.name)
        try:
            header, arrays = read_arrays(path)
            if header["of"] != self._digest:
                return Replicate()
            n_rounds = int(header["n_rounds"])
            found = [arrays[_round(index)].tobytes() for index in range(n_rounds)]
            run = tuple(arrays["run"].tolist()) if "run" in arrays else None
            ladder = arrays["ladder"].tobytes() if "ladder" in arrays else None
        except (FileFormatError, OSError, LookupError, TypeError, ValueError):
            return Replicate()
        return Replicate(run, ladder, found)

    def keep(self, number: int, replicate: Replicate) -> None:
        """Write a replicate down, or warn once where that cannot be."""
        arrays: dict[str, NDArray[Any]] = {
            _round(index): np.frombuffer(found, np.uint8)
            for index, found in enumerate(replicate.found)
        }
        if replicate.run is not None:
            arrays["run"] = np.array(replicate.run)
        if replicate.ladder is not None:
            arrays["ladder"] = np.frombuffer(replicate.ladder, np.uint8)
        header = {"of": self._digest, "n_rounds": len(replicate.found)}
        write = partial(write_arrays, self._path(number), header, arrays)
        self._folder.put(write, f"the state of replicate {number}")

    def _path(self, number: int) -> Path:
        return self._folder.path / f"replicate-{number}.safetensors"


def _round(index: int) -> str:
    return f"round-{index}"


def _identity(layout: Layout, options: Options, seed: int) -> dict[str, Any]:
    """What decides on the bits of all replicates, by the names that a message uses."""
    model, tensor = layout.model, layout.tensor
    digest = hashlib.sha256(repr((tensor.axes, tensor.shape)).encode())
    for array in (tensor.coordinates, tensor.counts):
        digest.update(np.ascontiguousarray(array, dtype=np.int64).tobytes())
    left_out = ("method", *(() if options.method == "auto" else _OF_THE_END))
    identity = {
        "version of polyabayes": __version__,
        "graph": model.graph.to_text(),
        "sizes": layout.sizes,
        "concentration": model.concentration,
        "prior": model.prior,
        "tied": model.tied,
        "elimination_order": layout.elimination_order,
        "data": digest.hexdigest()[:16],
        "method": options.method,
        **{name: value for name, value in vars(options).items() if name not in left_out},
        "n_replicates": options.n_replicates or REPLICATES,
        "random_state": seed,
    }
    plain: dict[str, Any] = json.loads(json.dumps(identity))
    return plain
