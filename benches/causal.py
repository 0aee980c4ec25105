"""Causal direction by evidence: a complete graph against a common hidden cause.

    python benches/causal.py [ABALONE.csv]

Two columns that are measured on the same object depend on each other. The complete graph says so
without a reason; the other graph says that a hidden cause with few values explains it. Numbers are
cut into levels by k-means, column by column; the table printed has, for pairs of columns, the log
odds of the best hidden cause against the complete graph, with the error of the estimate.
"""

from __future__ import annotations

import argparse
import os
from itertools import combinations
from pathlib import Path

import pandas as pd

import polyabayes as pb
from polyabayes import discretise

_BESIDE = Path(__file__).resolve().parents[2] / "shared" / "data"
DATA = Path(os.environ.get("POLYABAYES_DATA", _BESIDE)) / "abalone.csv"
COLUMNS = ["length", "diameter", "height", "whole_weight", "rings"]
FACTOR = "sex"


def models(one: str, other: str, sizes: range) -> dict[str, pb.AllocationModel]:
    """The complete graph, independence, and common hidden causes of several sizes."""
    return {
        "complete": pb.AllocationModel.complete([one, other]),
        "independent": pb.AllocationModel(f"{one}, {other}"),
        **{
            f"cause of {size}": pb.AllocationModel(f"{one} <- cause -> {other}", {"cause": size})
            for size in sizes
        },
    }


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", nargs="?", type=Path, default=DATA)
    parser.add_argument("--rows", type=int, default=500, help="rows of the table to take")
    parser.add_argument("--levels", type=int, default=6, help="levels of every column")
    parser.add_argument("--causes", type=int, default=4, help="largest size of the cause")
    arguments = parser.parse_args()
    frame = pd.read_csv(arguments.file).head(arguments.rows)
    tensor = discretise(frame, COLUMNS, arguments.levels, factors=[FACTOR], random_state=0)
    print(f"{tensor}\n")
    print(f"{'pair':<26}  {'best cause':<10}  {'log odds':>9}  {'+-':>6}  {'seconds':>7}")
    for one, other in combinations([FACTOR, *COLUMNS], 2):
        found = pb.posterior_over_models(
            models(one, other, range(2, arguments.causes + 1)),
            tensor.marginal(one, other),
            random_state=0,
        )
        cause = next(name for name in found.evidences if name.startswith("cause"))
        log_odds, error = found.log_odds(cause, "complete")
        seconds = sum(evidence.seconds for evidence in found.evidences.values())
        pair = f"{one}, {other}"
        print(f"{pair:<26}  {cause:<10}  {log_odds:>9.2f}  {error:>6.2g}  {seconds:>7.1f}")


if __name__ == "__main__":
    main()
