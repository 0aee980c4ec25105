"""Plot of tempering: its rounds, both directions, and its ladder."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from polyabayes.allocation.evidence.result import Evidence

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw_rounds(evidence: Evidence, level: float, ax: Axes) -> Axes:
    """Plot the value of every round, its replicates, both directions, and the last ladder."""
    sweeps = np.array([one.n_scans for one in evidence.rounds])
    values = np.array([one.values for one in evidence.rounds])
    sides = np.array([one.sides for one in evidence.rounds])
    ax.plot(sweeps, values, ".", color="0.6", markersize=4)
    ax.plot(sweeps, sides[:, 0], color="C1", linewidth=0.8, label="prior to posterior")
    ax.plot(sweeps, sides[:, 1], color="C2", linewidth=0.8, label="posterior to prior")
    ax.plot(sweeps, values.mean(axis=1), "o-", color="C0", markersize=4, label="both")
    low, high = evidence.interval(level)
    reach = [[evidence.value - low], [high - evidence.value]]
    ax.errorbar(sweeps[-1:], [evidence.value], yerr=reach, color="C0", capsize=3)
    ax.set_xscale("log", base=2)
    ax.set_xlabel("sweeps of a round")
    ax.set_ylabel(f"log evidence{' given the total' if evidence.given_total else ''}, nats")
    state = "converged" if evidence.converged else "not converged"
    ax.set_title(f"{evidence.round_trips} round trips, {state}", loc="left", fontsize="medium")
    ax.legend(frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0), fontsize="small")
    ax.spines[["top", "right"]].set_visible(False)
    # The lower part of the axes is the corner's.
    bottom, top = ax.get_ylim()
    ax.set_ylim(bottom - 0.7 * (top - bottom), top)
    ladder = ax.inset_axes((0.62, 0.12, 0.36, 0.26))
    ladder.stairs(evidence.rejections, evidence.betas, color="C3", baseline=None)
    ladder.set_ylim(0, 1)
    ladder.set_xlabel("inverse temperature", fontsize="x-small")
    ladder.set_ylabel("rejected", fontsize="x-small")
    ladder.tick_params(labelsize="x-small")
    return ax
