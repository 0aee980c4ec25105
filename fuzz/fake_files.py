"""Files whose reads, writes, syncs and renames fail now and then, as those of a broken disk do."""

import builtins
import errno
import io
import os
import random
from pathlib import Path
from typing import Any


class _Disk:
    """What decides which operation fails; only those in one folder do."""

    def __init__(self, folder: Path, share: float, seed: float) -> None:
        self.folder, self.share = os.fspath(folder), share
        self.rng = random.Random(seed)

    def holds(self, path: Any) -> bool:
        """Whether a path is in the folder."""
        return isinstance(path, (str, os.PathLike)) and os.fspath(path).startswith(self.folder)

    def use(self) -> None:
        """Fail now and then."""
        if self.rng.random() < self.share:
            raise OSError(errno.EIO, os.strerror(errno.EIO))


class _Broken(io.FileIO):
    """A file of that disk; a write that fails may have put a part of its bytes there."""

    disk: _Disk

    def write(self, data: Any) -> int:
        content = bytes(data)
        try:
            self.disk.use()
        except OSError:
            super().write(content[: len(content) // 2])
            raise
        return super().write(content) or 0

    def readinto(self, buffer: Any) -> int:
        self.disk.use()
        return super().readinto(buffer) or 0

    def readall(self) -> bytes:
        self.disk.use()
        return super().readall() or b""


def failing_files(folder: Path, share: float, seed: float) -> None:
    """Make this share of all operations on files in the folder fail with EIO, from now on."""
    disk = _Disk(folder, share, seed)
    plain_open, sync, replace = io.open, os.fsync, os.replace

    def opened(file: Any, mode: str = "r", *arguments: Any, **options: Any) -> Any:
        if not disk.holds(file):
            return plain_open(file, mode, *arguments, **options)
        disk.use()
        raw = _Broken(file, mode.replace("b", "").replace("t", ""))
        raw.disk = disk
        binary = io.BufferedReader(raw) if raw.readable() else io.BufferedWriter(raw)
        if "b" in mode:
            return binary
        return io.TextIOWrapper(binary, encoding=options.get("encoding"))

    def synced(handle: int) -> None:
        disk.use()
        sync(handle)

    def replaced(source: Any, target: Any, **options: Any) -> None:
        if disk.holds(target):
            disk.use()
        replace(source, target, **options)

    io.open = builtins.open = opened  # type: ignore[assignment]
    os.fsync, os.replace = synced, replaced  # type: ignore[assignment]
