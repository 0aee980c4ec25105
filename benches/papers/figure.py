"""A published table or figure: how to compute it again, keep it and draw it."""

from __future__ import annotations

import json
import math
import os
import platform
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, TypeVar

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.ticker import MaxNLocator

_BESIDE = Path(__file__).resolve().parents[3] / "shared" / "data"
DATA = Path(os.environ.get("POLYABAYES_DATA", _BESIDE))

# Folder of what long runs keep: one that was cut goes on from there.
PARTS = Path("papers-output")

# One line of a figure: the coordinates and the values of a point, by name.
Row = dict[str, Any]
T = TypeVar("T")


class Size(StrEnum):
    """How large a run is: seconds for the tests, minutes for the pages, or as published."""

    SMALL = "small"
    MIDDLE = "middle"
    PUBLISHED = "published"

    def pick(self, small: T, published: T, middle: T | None = None) -> T:
        """The setting of this size; the middle form has the published one unless it is given."""
        if self is Size.SMALL:
            return small
        return middle if self is Size.MIDDLE and middle is not None else published


@dataclass(frozen=True)
class Figure:
    """A figure of a paper.

    Attributes
    ----------
    paper, name : str
        Where it stands, as the command line says it.
    title : str
        The quantity.
    compute : callable
        Rows of a size.
    middle : str
        What the middle form has less of than the published one; empty where they are the same.
    x, y : str or None
        Columns drawn; None for a table, which has no picture.
    series, panel : str or None
        Columns whose values are lines, and panels beside one another.
    error : str or None
        Column of standard errors of `y`.
    log : str
        The axes with a logarithmic scale, of "xy".
    """

    paper: str
    name: str
    title: str
    compute: Callable[[Size], Iterable[Row]]
    x: str | None = None
    y: str | None = None
    series: str | None = None
    panel: str | None = None
    error: str | None = None
    log: str = ""
    middle: str = ""

    def rows(self, size: Size) -> list[Row]:
        """The data, as JSON has them."""
        return [{name: _plain(value) for name, value in row.items()} for row in self.compute(size)]

    @property
    def parts(self) -> Path:
        """Folder of what a long run keeps."""
        return PARTS / f"{self.paper}-{self.name}"

    def run(self, size: Size, folder: Path, has_picture: bool = True) -> Path:
        """Compute the rows, and write them and the picture."""
        if size is Size.MIDDLE and not self.middle:
            size = Size.PUBLISHED
        goes_on = self.parts.exists()
        start = time.process_time()
        rows = self.rows(size)
        seconds = round(time.process_time() - start, 1)
        kept = {
            "title": self.title,
            "size": f"{size}: {self.middle}" if size is Size.MIDDLE else f"{size}",
            "processor seconds": None if goes_on else seconds,
            "machine": f"{platform.machine()}, {os.cpu_count()} cores",
            "date": time.strftime("%Y-%m-%d"),
        }
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{self.paper}-{self.name}.json"
        lines = ",\n".join(f"  {json.dumps(row)}" for row in rows)
        head = json.dumps(kept, indent=1)[:-2]
        path.write_text(f'{head},\n "rows": [\n{lines}\n ]\n}}\n')
        if has_picture and self.x is not None:
            self.draw(rows, path.with_suffix(".png"))
        return path

    def draw(self, rows: list[Row], path: Path) -> None:
        """One panel beside another, a line a series, bars of two standard errors."""
        panels = list(dict.fromkeys(row.get(self.panel or "") for row in rows))
        figure, axes = plt.subplots(
            1, len(panels), figsize=(1 + 4.2 * len(panels), 3.8), squeeze=False
        )
        for panel, ax in zip(panels, axes[0], strict=True):
            here = [row for row in rows if row.get(self.panel or "") == panel]
            for i, name in enumerate(dict.fromkeys(row.get(self.series or "") for row in here)):
                line = [
                    row
                    for row in here
                    if row.get(self.series or "") == name and row[self.y] is not None
                ]
                errors = [2 * (row[self.error] or 0) for row in line] if self.error else None
                ax.errorbar(
                    [row[self.x] for row in line],
                    [row[self.y] for row in line],
                    yerr=errors,
                    marker="osv^D*Pxph"[i % 10],
                    markersize=4,
                    label=name,
                )
            ax.set(xlabel=self.x, ylabel=self.y)
            if self.panel:
                ax.set_title(panel if isinstance(panel, str) else f"{self.panel} = {panel:g}")
            if all(isinstance(row[self.x], int) for row in here):
                ax.xaxis.set_major_locator(MaxNLocator(integer=True))
            ax.set_xscale("log" if "x" in self.log else "linear")
            ax.set_yscale("log" if "y" in self.log else "linear")
            ax.spines[["top", "right"]].set_visible(False)
        if self.series:
            axes[0][-1].legend(
                frameon=False, fontsize="small", loc="center left", bbox_to_anchor=(1.0, 0.5)
            )
        figure.suptitle(self.title)
        figure.tight_layout()
        figure.savefig(path, dpi=110, bbox_inches="tight")
        plt.close(figure)


def once(path: Path | None, compute: Callable[[], T]) -> T:
    """A result that JSON has, from its file where that is there; without a path computed anew."""
    if path is None:
        return compute()
    if not path.exists():
        found = json.dumps(compute())
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(found)
    result: T = json.loads(path.read_text())
    return result


def _plain(value: Any) -> Any:
    """A value that JSON has: seven digits, and null for what is not finite."""
    if isinstance(value, (float, np.floating)):
        return float(f"{value:.7g}") if math.isfinite(value) else None
    return value.item() if isinstance(value, np.generic) else value


def mean_and_error(values: Iterable[float]) -> tuple[float, float]:
    """Mean, and its standard error; infinite for a single value."""
    sample = np.array(list(values), dtype=float)
    error = sample.std(ddof=1) / math.sqrt(len(sample)) if len(sample) > 1 else math.inf
    return float(sample.mean()), float(error)
