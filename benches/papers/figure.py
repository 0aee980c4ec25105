"""A published table or figure: how to compute it again, keep it and draw it."""

import inspect
import json
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import matplotlib.pyplot as plt
import numpy as np
from benches.record import machine, timed, write
from matplotlib.ticker import MaxNLocator, NullFormatter

import polyabayes as pb

# Folder of what long runs keep: one that was cut goes on from there.
PARTS = Path("papers-output")

# One line of a figure: the coordinates and the values of a point, by name.
Row = dict[str, Any]
T = TypeVar("T")


@dataclass(frozen=True)
class Picture:
    """Columns that are drawn.

    Attributes
    ----------
    x, y : str
        Coordinates.
    series, panel : str or None
        Columns whose values are lines, and panels beside one another.
    error : str or None
        Column of standard errors of `y`.
    log : str
        The axes with a logarithmic scale, of "xy".
    """

    x: str
    y: str
    series: str | None = None
    panel: str | None = None
    error: str | None = None
    log: str = ""

    def draw(self, rows: list[Row], title: str, path: Path) -> None:
        """Up to three panels side by side, a line a series, bars of two standard errors."""
        panels = list(dict.fromkeys(row.get(self.panel or "") for row in rows))
        n_columns = min(len(panels), 3)
        n_lines = -(-len(panels) // n_columns)
        size = max(6.0, 3.4 * n_columns), 0.9 + 3.2 * n_lines
        style = {"figsize": size, "layout": "constrained"}
        figure, axes = plt.subplots(n_lines, n_columns, squeeze=False, **style)
        for ax in axes.flat[len(panels) :]:
            ax.remove()
        for panel, ax in zip(panels, axes.flat, strict=False):
            here = [row for row in rows if row.get(self.panel or "") == panel]
            for i, name in enumerate(dict.fromkeys(row.get(self.series or "") for row in here)):
                line = [
                    row
                    for row in here
                    if row.get(self.series or "") == name and row[self.y] is not None
                ]
                errors = [2 * (row[self.error] or 0) for row in line] if self.error else None
                x, y = ([row[axis] for row in line] for axis in (self.x, self.y))
                style = {"marker": "osv^D*Pxph"[i % 10], "markersize": 4, "label": name}
                ax.errorbar(x, y, yerr=errors, **style)
            ax.set(xlabel=self.x, ylabel=self.y)
            if self.panel:
                ax.set_title(panel if isinstance(panel, str) else f"{self.panel} = {panel:g}")
            ax.set_xscale("log" if "x" in self.log else "linear")
            if "x" in self.log:
                ax.xaxis.set_minor_formatter(NullFormatter())
            elif all(isinstance(row[self.x], int) for row in here):
                ax.xaxis.set_major_locator(MaxNLocator(integer=True))
            ax.set_yscale("log" if "y" in self.log else "linear")
            ax.spines[["top", "right"]].set_visible(False)
        if self.series:
            lines = axes.flat[0].get_legend_handles_labels()
            figure.legend(*lines, loc="outside lower center", ncols=n_columns + 1, fontsize="small")
        figure.suptitle(title)
        figure.savefig(path, dpi=110, facecolor="white")
        plt.close(figure)


@dataclass(frozen=True)
class Figure:
    """A table or figure of a paper, or a run of ours that tests one of its claims.

    Attributes
    ----------
    paper, name : str
        Where it stands, as the command line says it.
    title : str
        The quantity.
    compute : callable
        Rows of a run with these settings.
    published : dict
        Settings of the paper, with the place in its text under ``"in"``; of a run that the paper
        has not, ``"in"`` is empty.
    ours, small, middle : dict
        Settings instead of the paper's: of all forms, of the small one, of that of the pages.
    picture : Picture or None
        None for a table.
    """

    paper: str
    name: str
    title: str
    compute: Callable[..., Iterable[Row]]
    published: dict[str, Any]
    ours: dict[str, Any] = field(default_factory=dict)
    small: dict[str, Any] = field(default_factory=dict)
    middle: dict[str, Any] = field(default_factory=dict)
    picture: Picture | None = None

    def settings(self, size: str) -> dict[str, Any]:
        """Settings of the small form, of that of the pages, or of the paper."""
        instead = self.ours | {"small": self.small, "middle": self.middle, "published": {}}[size]
        if unknown := instead.keys() - self.published.keys():
            raise ValueError(f"{self.name}: the paper has no setting {unknown}")
        return self.published | instead

    def differences(self, settings: dict[str, Any]) -> list[str]:
        """Settings of a run that are not the paper's."""
        return [
            f"{name} {_told(settings.get(name))} (published: {_told(value)})"
            for name, value in self.published.items()
            if name != "in" and settings.get(name) != value
        ]

    @property
    def parts(self) -> Path:
        """Folder of what a long run keeps."""
        return PARTS / f"{self.paper}-{self.name}"

    def run(self, size: str, folder: Path, has_picture: bool = True) -> Path:
        """Compute the rows, and write them and the picture."""
        goes_on = self.parts.exists()
        settings = self.settings(size)
        taken = {name: settings[name] for name in _defaults(self.compute)}
        found, seconds = timed(lambda: list(self.compute(**taken)))
        rows = [{name: _plain(value) for name, value in row.items()} for row in found]
        kept = {
            "title": self.title,
            "settings": settings,
            "processor seconds": None if goes_on else round(seconds, 1),
            **machine(),
            "rows": rows,
        }
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{self.paper}-{self.name}.json"
        write(path, kept)
        if has_picture:
            self.draw(rows, path.with_suffix(".png"))
        return path

    def draw(self, rows: list[Row], path: Path) -> None:
        """Draw the picture, where there is one."""
        if self.picture is not None:
            self.picture.draw(rows, self.title, path)


# Figures by paper, in the order in which they are declared.
PAPERS: dict[str, list[Figure]] = {name: [] for name in ("l2r", "eltm", "pfa", "bam", "witness")}
Compute = TypeVar("Compute", bound=Callable[..., Iterable[Row]])


def figure(
    paper: str,
    name: str,
    title: str,
    place: str = "",
    *,
    remarks: dict[str, Any] | None = None,
    **more: Any,
) -> Callable[[Compute], Compute]:
    """Declares a figure by the function that computes it.

    Defaults of its parameters, but of those behind a star, are the settings of the paper; `remarks`
    has the settings that it does not take.
    """

    def add(compute: Compute) -> Compute:
        published = {"in": place, **_defaults(compute), **(remarks or {})}
        # As a record has them: lists in place of tuples and ranges.
        published = json.loads(json.dumps(published, default=list))
        PAPERS[paper].append(Figure(paper, name, title, compute, published, **more))
        return compute

    return add


def _defaults(compute: Callable[..., Any]) -> dict[str, Any]:
    """Defaults of the parameters that are settings, by name."""
    parameters = inspect.signature(compute).parameters.items()
    return {name: x.default for name, x in parameters if x.kind is x.POSITIONAL_OR_KEYWORD}


# Methods whose effort is a number of particles; that of others is one of samples.
BY_PARTICLES = ("l2r", "smc-lookahead")
BY_PARTICLES += ("left-to-right", "left-to-right-particle", "left-to-right-sequential")


def halves(model: Any, documents: Any, method: str, n_samples: int, **how: Any) -> Any:
    """Likelihoods by so many samples or particles, in two replicates of half of them."""
    size = "n_particles" if method in BY_PARTICLES else "n_samples"
    how |= {size: n_samples // 2, "n_replicates": 2}
    return pb.log_likelihood(model, documents, method, **how)


def once(path: Path, compute: Callable[[], T]) -> T:
    """A result that JSON has, from its file where that is there."""
    if not path.exists():
        found = json.dumps(compute())
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(found)
    return json.loads(path.read_text())


def _told(value: Any) -> str:
    """A setting as a page has it."""
    if isinstance(value, (list, tuple)):
        first = value[0] if value else None
        is_long = isinstance(first, int) and len(value) > 4
        if is_long and value == list(range(first, first + len(value))):
            return f"{value[0]} to {value[-1]}"
        return ", ".join(map(_told, value))
    return f"{value:,}" if isinstance(value, int) else str(value)


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
