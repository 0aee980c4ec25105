"""Temporary folders; those of killed processes are removed by the next process."""

import hashlib
import os
import re
import shutil
import socket
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def scratch_folder(parent: Path, prefix: str) -> Iterator[Path]:
    """Make a folder in `parent`, readable only by its owner, and remove it at the end."""
    host = hashlib.sha256(socket.gethostname().encode()).hexdigest()[:8]
    owned = re.compile(rf"{re.escape(prefix)}{host}-(\d+)-[0-9a-f]{{32}}")
    for path in parent.glob(f"{prefix}*"):
        found = owned.fullmatch(path.name)
        if found is not None and not _is_alive(int(found[1])):
            shutil.rmtree(path, ignore_errors=True)
    folder = parent / f"{prefix}{host}-{os.getpid()}-{uuid.uuid4().hex}"
    folder.mkdir(mode=0o700)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _is_alive(process: int) -> bool:
    """Whether a process of this machine runs; True if the system cannot tell."""
    if os.name != "posix":
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
