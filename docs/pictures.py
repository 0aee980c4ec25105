"""Pictures of README and guide: ``python docs/pictures.py`` draws them.

Most are those of gallery programs; those of the calibration and of curves are drawn from records.
"""

import json
import runpy
from pathlib import Path
from unittest import mock

import matplotlib as mpl
import matplotlib.pyplot as plt
from cycler import cycler
from scipy.stats import binomtest

from polyabayes.plotting.axes import colours

HERE = Path(__file__).parent
PROGRAMS = {"bursty": "plot_c9_bursty", "choice": "plot_d1_choose"}
PROGRAMS |= {"latent-classes": "plot_e7_latent_classes"}

RECORDS = HERE.parent / "benches" / "records"


def rows_of(record: str) -> list:
    """Rows of a record."""
    return json.loads((RECORDS / f"{record}.json").read_text())["rows"]


def draw_curves() -> None:
    """Gain of more topics over the fewest, of bursty topics and of LDA."""
    figure, axes = plt.subplots(
        2, figsize=(6, 5), sharex=True, sharey=True, layout="constrained"
    )
    rows = rows_of("choice-bursts-curves")
    for ax, name, column in zip(axes, ("bursty topics", "LDA"), (3, 4), strict=True):
        for corpus in dict.fromkeys(row[0] for row in rows):
            own = [row for row in rows if row[0] == corpus]
            gains = [row[column] - own[0][column] for row in own]
            label = corpus if name == "LDA" else None
            ax.plot([row[1] for row in own], gains, "o-", label=label)
        ax.set_title(name)
    axes[1].set_xscale("log", base=2)
    sizes = sorted({row[1] for row in rows})
    axes[1].set_xticks(sizes, [str(size) for size in sizes])
    axes[1].set_xlabel("number of topics")
    figure.supylabel(f"nats per token gained over {sizes[0]} topics")
    figure.legend(loc="outside lower center", ncols=4)


def draw_calibration() -> None:
    """Share of true claims by the probability claimed, with intervals of 95 % (Wilson 1927)."""
    figure, ax = plt.subplots(figsize=(5, 4.2), layout="constrained")
    ax.plot([0, 1], [0, 1], color="grey", linewidth=0.8, label="calibrated")
    for n, row in enumerate(rows_of("latent-classes-calibration")):
        _, claims, claimed, true = row
        interval = binomtest(round(true * claims), claims).proportion_ci(
            method="wilson"
        )
        label = "share that is true, 95 % interval" if n == 0 else None
        ax.plot([claimed] * 2, [interval.low, interval.high], color="C0")
        ax.plot(claimed, true, "o", color="C0", label=label)
        ax.annotate(f"{claims:,}", (claimed, true), (6, 4), textcoords="offset points")
    ax.set_ylim(-0.06, 1.1)
    ax.set_title("True shares agree with the probabilities, within errors")
    ax.set_xlabel("probability claimed (mean; number of claims beside the point)")
    ax.set_ylabel("share of claims that are true")
    figure.legend(loc="outside lower center", ncols=2)


def save(name: str) -> None:
    """Save the figure that was drawn last; equal figures give equal files."""
    with plt.rc_context({"svg.hashsalt": name}):
        picture = HERE / "images" / f"{name}.svg"
        plt.gcf().savefig(picture, facecolor="white", metadata={"Date": None})
    plt.close("all")


if __name__ == "__main__":
    mpl.use("Agg")
    mpl.rcParams["axes.prop_cycle"] = cycler(color=colours(7))
    for name, program in PROGRAMS.items():
        with mock.patch.object(plt, "show"):
            runpy.run_path(str(HERE / "gallery" / f"{program}.py"))
        save(name)
    draw_calibration()
    save("calibration-of-classes")
    draw_curves()
    save("bursts-curves")
