"""State of a run on shards in a folder, and which files of shards it needs."""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from polyabayes._support.state_folder import StateFolder, refuse_other
from polyabayes._support.storage import read_arrays, write_arrays
from polyabayes.exceptions import FileAccessError, FileFormatError, argument
from polyabayes.scale.shards import Shards

__all__ = ["StateFiles", "fingerprint", "state_folder"]

_STATE = "shards.safetensors"

Arrays = dict[str, NDArray[Any]]


class StateFiles:
    """State of a run, and the sum over its kept sweeps.

    Parameters
    ----------
    folder : Path
        Where it is, on storage that all workers share.
    identity : dict
        What a run must agree on to go on from the state, by the names that a message uses.
    """

    def __init__(self, folder: Path, identity: dict[str, Any]) -> None:
        text = json.dumps(identity, sort_keys=True, default=str)
        self.name = hashlib.sha256(text.encode()).hexdigest()[:12]
        self._identity = identity
        self._path = StateFolder(folder, "training").make(_STATE)
        self.folder = folder.resolve()

    def read(self) -> tuple[dict[str, Any] | None, Arrays]:
        """The state, if there is one; refuse that of another run and name the difference."""
        if not self._path.exists():
            return None, {}
        header, arrays = read_arrays(self._path)
        for name, expected in self._identity.items():
            refuse_other(self._path, "run", name, header.get(name), expected)
        names = {"phase", "run", "sweep", "n_kept"}
        if not names <= header.keys():
            raise FileFormatError(f"{self._path} does not hold a whole state: delete it")
        return header, arrays

    def write(self, header: dict[str, Any], arrays: Arrays, kept: set[str]) -> None:
        """Replace the state; then files of shards in other states than `kept` are not needed."""
        write_arrays(self._path, {**self._identity, **header}, arrays)
        prefix = f".{self.name}."
        try:
            for path in self.folder.glob(f"shard-*{prefix}*.*"):
                if path.name.partition(prefix)[2] not in kept:
                    path.unlink(missing_ok=True)
        except OSError as error:
            raise FileAccessError(
                f"cannot remove old files of {self.folder}: {error.strerror or error}"
            ) from error

    def read_kept(self, n_kept: int) -> NDArray[Any]:
        """The sum over so many kept sweeps."""
        return read_arrays(self._kept_path(n_kept))[1]["kept_sum"]

    def write_kept(self, n_kept: int, kept_sum: NDArray[Any]) -> None:
        """Write the sum over so many kept sweeps, beside that over fewer."""
        write_arrays(self._kept_path(n_kept), {}, {"kept_sum": kept_sum})

    def remove_kept_but(self, n_kept: int) -> None:
        """Remove the sums over other numbers of sweeps."""
        for path in self.folder.glob(self._kept_path(0).with_suffix(".*").name):
            if path != self._kept_path(n_kept):
                path.unlink(missing_ok=True)

    def _kept_path(self, n_kept: int) -> Path:
        return self.folder / f"kept.{self.name}.{n_kept}"


@contextmanager
def state_folder(shards: Shards, checkpoint: Any) -> Iterator[Path]:
    """The folder of `checkpoint`; without one, a folder beside the shards that is removed again."""
    if checkpoint is not None:
        yield StateFolder(checkpoint, "training").path
        return
    try:
        folder = tempfile.TemporaryDirectory(
            prefix="training-", dir=shards.folder, ignore_cleanup_errors=True
        )
    except OSError as error:
        raise FileAccessError(
            f"cannot write beside the shards in {shards.folder} ({error.strerror or error}): give "
            f"a folder as {argument('checkpoint')}"
        ) from error
    with folder as path:
        yield Path(path)


def fingerprint(shards: Shards) -> str:
    """Hash of the counts and of the words, and of how they are divided."""
    words = None if shards.vocabulary is None else shards.vocabulary.tolist()
    digest = hashlib.sha256(json.dumps([shards.n_words, words], ensure_ascii=False).encode())
    if shards.replaced_exposure is not None:
        digest.update(shards.replaced_exposure.tobytes())
    for shard in shards:
        digest.update(json.dumps([shard.n_documents, shard.digests], sort_keys=True).encode())
    return digest.hexdigest()[:16]
