"""Exact evidence of count tensors under the Bayesian allocation model, to test against.

Run ``python generate_allocation.py`` to write ``allocation.json`` and ``missing.json``
(deterministic, standard library only, some minutes).

Parameters are read as the exact rational values of the doubles in the file, and every probability
is computed in two ways, with equal results: see ``networks.py``, also for what the keys mean. The
total T is negative binomial, as the intensity's prior is Gamma(concentration a, rate b):

    log_evidence = ln Pr(X | T) + ln [(a)_T / T! * (b / (b + 1))^a / (b + 1)^T]

Cells listed as ``missing`` are not observed, but the total is: ``log_joint`` is the probability of
both the total and the observed cells, summed over all counts of the missing ones.
"""

import itertools
import json
import math
from collections import Counter
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

from generate import ln, rising
from networks import (
    Counts,
    Index,
    Network,
    blockmodel,
    cp,
    markov,
    nmf,
    pachinko,
    probability_given_total,
    sum_conditioned,
    symmetric,
    tucker,
)


def log_total(concentration: float, rate: float, T: int) -> Decimal:
    a, b = Fraction(concentration), Fraction(rate)
    empty = Decimal(concentration) * ln(b / (b + 1))
    return empty + ln(rising(a, T) / math.factorial(T) / (b + 1) ** T)


def cells_of(tokens: str) -> list[Index]:
    return [tuple(map(int, token)) for token in tokens.split()]


def common(name: str, network: Network, rate: float, X: Counts) -> dict:
    return {
        "name": name,
        "sizes": network.sizes,
        "parents": network.parents,
        "visible": network.visible,
        "ties": network.ties,
        "tables": network.tables,
        "concentration": network.concentration,
        "rate": rate,
        "cells": [[list(cell), count] for cell, count in sorted(X.items())],
    }


def evidence(name: str, network: Network, rate: float, tokens: str) -> dict:
    X = Counter(cells_of(tokens))
    log_probability = ln(probability_given_total(network, X))
    log_evidence = log_total(network.concentration, rate, X.total()) + log_probability
    return common(name, network, rate, X) | {
        "log_evidence": float(log_evidence),
        "log_probability_given_total": float(log_probability),
    }


def gaps(name: str, network: Network, rate: float, tokens: str, cells: str, totals: list[int]):
    """One case for each total, tokens being those observed and `cells` the missing ones."""
    X, missing = Counter(cells_of(tokens)), cells_of(cells)
    for T in totals:
        value = probability_given_total(network, X, T - X.total(), missing)
        case = common(f"{name}-total-{T}", network, rate, X)
        case |= {"missing": [list(cell) for cell in missing], "total": T}
        yield case | {"log_joint": float(log_total(network.concentration, rate, T) + ln(value))}


FLAT = [0.5, 1.25, 0.3, 2.0, 0.8, 1.0]
BOTH = "transitions and emissions"

CASES = [  # name, network, rate, tokens: the indices of their cells
    ("nmf-2x3-two", nmf([2, 3], 2, 0.7), 0.3, "00 00 00 02 10 11 11 12 12"),
    (
        "nmf-2x3-two-flat-tables",
        nmf([2, 3], 2, 0.7, tables=[0.5, 0.25, 2.0]),
        0.3,
        "00 00 00 02 10 11 11 12 12",
    ),
    (
        "nmf-2x3-ones",
        nmf([2, 3], 3, 6.0, tables=[1.0, 1.0, 1.0]),
        1.0,
        "00 00 00 02 10 11 11 12 12",
    ),
    ("nmf-3x2-three", nmf([3, 2], 3, 2.0), 1.5, "00 01 01 11 20 20 21"),
    ("nmf-3x3-two", nmf([3, 3], 2, 5.0), 0.4, "00 00 01 11 11 12 20 22 22 22"),
    ("nmf-2x2-five", nmf([2, 2], 5, 1.5), 0.3, "00 00 01 11 11"),
    ("nmf-4x4-diagonal", nmf([4, 4], 2, 4.0), 1 / 3, "00 00 03 10 11 11 22 22 22"),
    ("nmf-3x4-one-tiny-concentration", nmf([3, 4], 1, 0.01), 0.002, "00 02 02 11 20 20 20 22 23"),
    ("nmf-2x2-tiny-concentration", nmf([2, 2], 2, 0.01), 0.0025, "00 10 10"),
    ("nmf-3x3-big-concentration", nmf([3, 3], 3, 50.0), 12.5, "00 02 02 11 11 12 20"),
    ("nmf-2x5-chain", nmf([2, 5], 2, 0.5, "j->k->i"), 0.1, "00 02 02 11 14 14"),
    (
        "nmf-2x5-chain-flat-tables",
        nmf([2, 5], 2, 0.5, "j->k->i", tables=[1.0, 0.2, 0.6]),
        0.1,
        "00 02 02 11 14 14",
    ),
    (
        "nmf-2x2-axes-swapped",
        nmf([3, 2], 2, 1.0, "i->k->j", visible=[1, 0]),
        0.2,
        "00 00 00 02 11 11",
    ),
    (
        "nmf-2x2-many-tokens",
        nmf([2, 2], 2, 3.0),
        0.15,
        "00 00 00 00 00 00 00 01 01 10 11 11 11 11 11 11 11 11",
    ),
    ("nmf-empty", nmf([3, 2], 2, 0.3), 2.0, ""),
    ("nmf-one-token", nmf([2, 3], 3, 0.9), 20.0, "12"),
    ("cp-2x3x2-two", cp([2, 3, 2], 2, 0.8), 0.2, "000 000 010 111 121"),
    ("cp-2x2x2-three", cp([2, 2, 2], 3, 4.0), 0.75, "000 000 010 101 111 111"),
    (
        "cp-2x2x2-flat-tables",
        cp([2, 2, 2], 2, 1.0, tables=FLAT[:4]),
        0.75,
        "000 000 010 101 111 111",
    ),
    ("cp-four-axes", cp([2, 2, 2, 2], 2, 1.2), 0.3, "0010 0010 0111 0111 1110"),
    ("tucker-2x2x2-core-2x2x2", tucker([2, 2, 2], [2, 2, 2], 1.4), 0.35, "001 010 110 110"),
    ("tucker-2x3x2-core-2x1x2", tucker([2, 3, 2], [2, 1, 2], 0.6), 0.2, "021 021 021 100 101"),
    ("tucker-3x2-core-2x3", tucker([3, 2], [2, 3], 2.2), 0.5, "00 11 11 20"),
    ("tucker-3x2-flat-tables", tucker([3, 2], [2, 3], 2.2, tables=FLAT[:4]), 0.5, "00 11 11 20"),
    ("pachinko-two-levels", pachinko(3, 2, [2, 2], 0.9), 0.3, "00 01 11 11 20"),
    ("pachinko-two-levels-widening", pachinko(2, 2, [2, 3], 10.0), 2.0, "00 00 11 11"),
    ("pachinko-three-levels", pachinko(2, 2, [2, 2, 2], 1.6), 0.4, "00 10 11 11"),
    ("pachinko-three-levels-one-value", pachinko(3, 2, [1, 2, 3], 0.5), 0.25, "00 00 11 21"),
    ("blockmodel-2x2x2", blockmodel([2, 2, 2], [2, 2], 0.7), 0.2, "001 001 100 111"),
    ("blockmodel-3x2x2-blocks-2x3", blockmodel([3, 2, 2], [2, 3], 3.0), 1.0, "001 100 210 210"),
    (
        "blockmodel-flat-tables",
        blockmodel([2, 2, 2], [2, 2], 0.7, tables=FLAT[:5]),
        0.2,
        "001 001 100 111",
    ),
    ("sum-conditioned-two-axes", sum_conditioned([2, 3, 2, 2], [0, 1], 1.1), 0.5, "00 02 02 11"),
    (
        "sum-conditioned-three-axes",
        sum_conditioned([2, 2, 3, 2], [0, 1, 2], 2.5),
        0.6,
        "002 002 002 011 110 110",
    ),
    ("markov", markov(2, 2, 0.8), 0.25, "001 001 100 111"),
    ("markov-three-outputs", markov(3, 2, 4.0), 1.0, "012 012 110 220"),
    ("markov-flat-tables", markov(2, 2, 0.8, tables=FLAT), 0.25, "001 001 100 111"),
    ("markov-tied-transitions", markov(2, 2, 0.8, "transitions"), 0.25, "001 001 100 111"),
    ("markov-tied-emissions", markov(2, 2, 0.8, "emissions"), 0.25, "001 001 100 111"),
    ("markov-tied", markov(2, 2, 0.8, BOTH), 0.25, "001 001 100 111"),
    ("markov-tied-three-outputs", markov(3, 2, 2.0, BOTH), 0.4, "002 002 110 122"),
    ("markov-tied-three-states", markov(2, 3, 9.0, BOTH), 3.0, "010 010 110"),
    ("saturated-2x3", Network([2, 3], [[], [0]], [0, 1], 0.35), 0.01, "00 00 00 02 10 11 11 12 12"),
    (
        "saturated-2x2x2",
        Network([2, 2, 2], [[1, 2], [], [1]], [0, 1, 2], 30.0),
        5.0,
        "000 000 010 101 111 111",
    ),
    (
        "visible-chain",
        Network([2, 2, 2], [[1], [2], []], [0, 1, 2], 1.7),
        0.25,
        "000 000 010 101 111 111",
    ),
    (
        "visible-collider",
        Network([2, 2, 2], [[], [], [0, 1]], [2, 0, 1], 0.6),
        0.1,
        "000 000 010 101 111 111",
    ),
    (
        "visible-independent",
        Network([3, 2], [[], []], [0, 1], 2.4),
        0.3,
        "00 00 00 00 01 11 11 20 20 20",
    ),
    ("visible-tied", Network([2, 2], [[], []], [0, 1], 1.3, [[0, 1]]), 0.3, "00 00 00 01 11 11"),
    ("hidden-leaf", Network([2, 2, 3], [[1], [], [0, 1]], [0, 1], 1.9), 0.6, "00 00 01 11 11"),
    (
        "two-hidden-roots",
        Network([2, 3, 2, 2], [[2, 3], [3], [], []], [0, 1], 0.9),
        0.4,
        "00 02 02 11",
    ),
    (
        "hidden-below-visible",
        Network([2, 2, 2, 2], [[], [], [0, 1], [2]], [0, 1, 3], 2.6),
        0.7,
        "000 000 010 101 111 111",
    ),
    (
        "hidden-below-visible-flat-tables",
        Network([2, 2, 2, 2], [[], [], [0, 1], [2]], [0, 1, 3], 2.6, tables=FLAT[:4]),
        0.7,
        "000 000 010 101 111 111",
    ),
    (
        "hidden-of-one-value",
        Network([2, 2, 1, 2], [[2, 3], [3], [3], []], [0, 1], 1.1),
        0.2,
        "00 00 01 10 11 11 11",
    ),
    (
        "tied-with-two-parents",
        Network([2, 2, 2, 2], [[2, 3], [2, 3], [], []], [0, 1], 1.5, [[0, 1]]),
        0.4,
        "00 01 01 11",
    ),
    ("one-axis", Network([4], [[]], [0], 0.02), 0.01, "0 0 0 0 0 2 3 3 3"),
    ("one-axis-mixture", Network([3, 2], [[1], []], [0], 0.5), 0.2, "0 0 0 2 2"),
    (
        "one-axis-mixture-flat-tables",
        Network([3, 3], [[1], []], [0], 0.5, tables=[0.4, 1.0]),
        0.2,
        "0 0 0 1 2 2",
    ),
    ("symmetric-nmf-two", symmetric(2, 3, 2, 0.75), 0.2, "00 02 02 11 11 12 20"),
    ("symmetric-nmf-three", symmetric(2, 2, 3, 12.0), 3.0, "00 00 00 01 11 11"),
    ("symmetric-nmf-one", symmetric(2, 4, 1, 0.05), 0.02, "00 03 03 11 11 11 20"),
    ("symmetric-cp-three-axes", symmetric(3, 2, 2, 1.8), 0.3, "000 001 001 101 111 111"),
    ("symmetric-cp-three-values", symmetric(3, 3, 3, 4.5), 0.9, "011 011 202 222"),
    ("symmetric-cp-four-axes", symmetric(4, 2, 2, 2.0), 0.5, "0000 0101 1110 1110"),
]

MISSING = [  # name, network, rate, tokens, missing cells, totals
    *(
        (f"nmf-one-cell-{K}", nmf([2, 3], K, 1.5), 0.25, "00 00 02 11 12", "01", [5, 6, 9])
        for K in (1, 2, 3)
    ),
    *(
        (f"nmf-two-cells-{K}", nmf([2, 3], K, 4.0), 0.1, "01 02 02 10", "00 11", [4, 5, 7])
        for K in (1, 2, 3)
    ),
    *(
        (f"nmf-whole-row-{K}", nmf([3, 2], K, 0.6), 0.5, "00 01 01 20 20 20", "10 11", [6, 7, 8])
        for K in (1, 2, 3)
    ),
    ("nmf-chain-2", nmf([2, 3], 2, 1.5, "j->k->i"), 0.25, "00 00 02 11 12", "01", [7]),
    ("nmf-nothing-observed-2", nmf([2, 2], 2, 2.0), 1.0, "", "00 01 10 11", [0, 3]),
    ("cp-one-cell-2", cp([2, 2, 2], 2, 0.9), 0.3, "000 011 011 101 110", "010", [5, 7]),
    ("cp-two-cells-2", cp([2, 2, 2], 2, 3.0), 0.3, "000 011 011 110", "010 101", [4, 6]),
]


def write(name: str, cases: list[dict]) -> None:
    text = "[\n" + ",\n".join(map(json.dumps, cases)) + "\n]\n"
    Path(__file__).with_name(name).write_text(text, encoding="utf-8")


def main() -> None:
    write("allocation.json", list(itertools.starmap(evidence, CASES)))
    write("missing.json", list(itertools.chain.from_iterable(itertools.starmap(gaps, MISSING))))


if __name__ == "__main__":
    main()
