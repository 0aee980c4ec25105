"""Pictures of README and guide: ``python docs/pictures.py`` draws them.

Most are those of gallery programs; that of the calibration is drawn from its record.
"""

import json
import runpy
from pathlib import Path
from unittest import mock

import matplotlib as mpl
import matplotlib.pyplot as plt
from scipy.stats import binomtest

HERE = Path(__file__).parent
PROGRAMS = {
    "bursty": "plot_c9_bursty",
    "choice": "plot_d1_choose",
    "latent-classes": "plot_e7_latent_classes",
}

RECORD = HERE.parent / "benches" / "records" / "latent-classes-calibration.json"


def draw_calibration() -> None:
    """Share of true claims by the probability claimed, with intervals of 95 % (Wilson 1927)."""
    figure, ax = plt.subplots(figsize=(5, 4.2), layout="constrained")
    ax.plot([0, 1], [0, 1], color="grey", linewidth=0.8, label="calibrated")
    for n, row in enumerate(json.loads(RECORD.read_text())["rows"]):
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
    """Save the figure that was drawn last."""
    options = {"dpi": 110, "facecolor": "white", "metadata": {"Software": None}}
    plt.gcf().savefig(HERE / "images" / f"{name}.png", **options)
    plt.close("all")


if __name__ == "__main__":
    mpl.use("Agg")
    for name, program in PROGRAMS.items():
        with mock.patch.object(plt, "show"):
            runpy.run_path(str(HERE / "gallery" / f"{program}.py"))
        save(name)
    draw_calibration()
    save("calibration-of-classes")
