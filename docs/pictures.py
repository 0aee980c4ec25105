"""Pictures of README and guide: ``python docs/pictures.py`` draws them by gallery programs."""

import runpy
from pathlib import Path
from unittest import mock

import matplotlib as mpl
import matplotlib.pyplot as plt

HERE = Path(__file__).parent
PROGRAMS = {"choice": "plot_d1_choose", "latent-classes": "plot_e7_latent_classes"}

if __name__ == "__main__":
    mpl.use("Agg")
    for name, program in PROGRAMS.items():
        with mock.patch.object(plt, "show"):
            runpy.run_path(str(HERE / "gallery" / f"{program}.py"))
        options = {"dpi": 110, "facecolor": "white", "metadata": {"Software": None}}
        plt.gcf().savefig(HERE / "images" / f"{name}.png", **options)
        plt.close("all")
