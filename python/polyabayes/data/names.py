"""Names that have a meaning in tables, by kind: headers of columns, and marks of missing values.

The lists are in ``names.txt``: a kind, a tab and its names, in the order in which they are taken.
Headers are in lower case.
"""

from pathlib import Path

_LINES = Path(__file__).with_suffix(".txt").read_text("utf-8").splitlines()
NAMES = {kind: tuple(names.split("|")) for kind, names in (line.split("\t") for line in _LINES)}
