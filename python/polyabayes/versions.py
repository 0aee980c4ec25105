"""Versions and platform for a bug report."""

from __future__ import annotations

import os
import platform
import sys
from importlib import metadata

__all__ = ["show_versions"]

_PACKAGES = (
    "numpy", "scipy", "scikit-learn", "safetensors", "pandas", "pyarrow", "matplotlib", "tqdm",
    "arviz", "networkx", "PyStemmer", "gensim", "tomotopy", "anndata",
)  # fmt: skip


def show_versions() -> None:
    """Print the versions of polyabayes, Python, the system and the packages it may meet.

    Examples
    --------
    >>> pb.show_versions()  # doctest: +ELLIPSIS
    polyabayes...
    """
    rows = {
        "polyabayes": metadata.version("polyabayes"),
        "python": sys.version.split()[0],
        "system": platform.platform(),
        "processor": f"{platform.machine()}, {os.cpu_count()} cores",
    }
    for name in _PACKAGES:
        try:
            rows[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            rows[name] = "not installed"
    sys.stdout.write("".join(f"{name:<14} {version}\n" for name, version in rows.items()))
