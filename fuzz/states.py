"""Files of the package's own that are fuzzed: models, checkpoints, records of searches."""

import json
import random
import shutil
from pathlib import Path
from typing import Any

import numpy as np
from changes import changed_bytes, changed_fields
from corpora import CORPUS, COUNTS, Case

import polyabayes as pb
from polyabayes._support.storage import arrays as storage
from polyabayes.sizes.witness import WitnessSearch


class ModelFile(Case):
    """Any change is to be refused; a changed file that is sealed again may be read."""

    suffix = ".safetensors"

    def make(self) -> None:
        self.model = pb.LatentDirichletAllocation(2, max_iter=3, random_state=0).fit(CORPUS)
        self.model.save(self.path)

    def change(self) -> tuple[Path, bytes]:
        self.is_sealed = self.rng.random() < 0.5
        if not self.is_sealed:
            return self.path, changed_bytes(self.valid, self.rng)
        self.path.write_bytes(self.valid)
        header, arrays = storage.read_arrays(self.path)
        seal(self.path, header, arrays, self.rng)
        return self.path, self.path.read_bytes()

    def read(self) -> str:
        if not self.is_sealed and self.path.read_bytes() == self.valid:
            return "unchanged"
        model = pb.load(self.path)
        if not self.is_sealed:
            return "BAD the damage was not noticed"
        if model.components_.shape[1] == 6:
            pb.log_likelihood(model, COUNTS[:2], "mean-field", n_jobs=1)
        return "read"


def seal(path: Path, header: Any, arrays: dict[str, Any], rng: random.Random) -> None:
    """Write changed arrays, or a changed header, with a checksum that holds."""
    name = rng.choice([*arrays, "header", "header"])
    if name == "header":
        text = changed_fields(json.dumps(header).encode(), rng).decode("utf-8", "replace")
        try:
            header = json.loads(text)
        except (ValueError, RecursionError):
            place = header[rng.choice(sorted(header))]
            entries = place if isinstance(place, dict) else header
            entries[rng.choice(sorted(entries))] = rng.choice(
                (None, -1, 10**400, "x", [], {}, 1e308)
            )
    else:
        array = np.array(arrays[name])
        match rng.randrange(4):
            case 0 if array.size and array.dtype.kind in "iuf":
                worst = (0, 1, np.iinfo(array.dtype).max) if array.dtype.kind in "iu" else ()
                values = worst or (np.nan, np.inf, -1.0, 1e308, 1e-308, 0.0)
                array.ravel()[rng.randrange(array.size)] = rng.choice(values)
            case 1:
                array = array.ravel()[: rng.randrange(array.size + 1)]
            case 2:
                array = array.astype(rng.choice(("f4", "i8", "u1", "f8")))
            case _:
                array = np.concatenate([array.ravel()] * 2)
        arrays[name] = array
    storage.write_arrays(path, header, arrays)


class Checkpoint(ModelFile):
    share = 3
    suffix = ""

    def make(self) -> None:
        self.checkpoints = self.folder / "state"
        self.kind = self.rng.randrange(3)
        self._train(4)
        self.path = self.checkpoints / "checkpoint.safetensors"

    def _train(self, max_iter: int) -> Any:
        options = {"random_state": 0, "checkpoint": self.checkpoints, "checkpoint_every": 2}
        options |= {"max_iter": max_iter, "burn_in": 1, "n_jobs": 1}
        if self.kind == 0:
            return pb.LatentDirichletAllocation(2, **options).fit(CORPUS)
        prior = "gap" if self.kind == 1 else "beta-gamma-gamma"
        return pb.PoissonFactorAnalysis(2, prior=prior, **options).fit(CORPUS)

    def read(self) -> str:
        if not self.is_sealed and self.path.read_bytes() == self.valid:
            return "unchanged"
        model = self._train(6)
        if not self.is_sealed:
            return "BAD the damage was not noticed"
        if not np.isfinite(model.components_).all():
            return "BAD the model is not finite"
        return "read"

    def restore(self) -> None:
        self.path.write_bytes(self.valid)


class StateFolder(Case):
    """Files of a folder of work that goes on: a damaged one is refused, or its content made again.

    ``sealed`` is the pattern of files that are also changed under a checksum that holds.
    """

    sealed = "*"

    def make(self) -> None:
        self.state, self.kept = self.folder / "state", self.folder / "kept"
        self.values = self.work()
        shutil.copytree(self.state, self.kept)
        self.path = min(self.state.glob("*.safetensors"))

    def work(self) -> list[float]:
        """Run the work with its folder; what it finds."""
        raise NotImplementedError

    def change(self) -> tuple[Path, bytes]:
        path = self.rng.choice(sorted(self.state.glob("*.safetensors")))
        self.is_sealed = path.match(self.sealed) and self.rng.random() < 0.5
        if not self.is_sealed:
            return path, changed_bytes(path.read_bytes(), self.rng)
        seal(path, *storage.read_arrays(path), self.rng)
        return path, path.read_bytes()

    def read(self) -> str:
        same = np.array_equal(self.work(), self.values, equal_nan=True)
        return "read" if self.is_sealed or same else "BAD other values"

    def restore(self) -> None:
        shutil.rmtree(self.state)
        shutil.copytree(self.kept, self.state)


class SearchRecord(StateFolder):
    share = 0.7
    sealed = "s*"

    def work(self) -> list[float]:
        search = WitnessSearch(
            pb.LatentDirichletAllocation(max_iter=5, n_jobs=1),
            pb.priors.Poisson(2.0),
            scoring="bound",
            max_steps=2,
            random_state=0,
            checkpoint=self.state,
        ).fit(CORPUS)
        return [float(value) for value in search.bounds_["lower"]]


class ChoiceFit(StateFolder):
    share = 0.3

    def work(self) -> list[float]:
        model = pb.LatentDirichletAllocation(max_iter=4, burn_in=1, n_jobs=1)
        options = {"n_folds": 2, "random_state": 0, "checkpoint": self.state}
        choice = pb.choose_n_components(model, CORPUS, [1, 2], **options)
        return [float(value) for value in choice.to_frame().iloc[:, 1]]


STATES: list[type[Case]] = [ModelFile, Checkpoint, SearchRecord, ChoiceFit]
