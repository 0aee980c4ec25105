"""Golden values of searches over sizes, and of their priors."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

import polyabayes as pb
from golden_cases.allocation import table
from golden_cases.inputs import TRAINING
from golden_cases.public_api import Case, plain, searched, table_columns


def witness_cases() -> Iterator[tuple[str, Case]]:
    yield "functions, nested", lambda: search_of_function("nested", "witness")
    yield "functions, smallest witness", lambda: search_of_function("nested", "min-witness")
    yield "functions, of the paper", lambda: search_of_function("nested", "paper")
    yield "functions, evidence", lambda: search_of_function("evidence", "witness")
    yield "functions with errors", search_with_errors
    yield "lda by likelihood", lambda: search_of_lda("likelihood")
    yield "lda by bound", lambda: search_of_lda("bound")
    yield "nmf by exact evidence", lambda: search_of_networks({"method": "exact"})
    yield "nmf by sampled evidence", lambda: search_of_networks({"method": "smc"})
    yield "blockmodel", search_of_blockmodel
    yield "cross-validation", folds


def search_of_function(kind: str, bound: str) -> dict[str, Any]:
    search = pb.WitnessSearch(
        lambda k: -3.0 - 4.0 / k, pb.priors.Poisson(2), kind=kind, bound=bound, max_steps=6
    )
    return searched(search.fit())


def search_with_errors() -> dict[str, Any]:
    search = pb.WitnessSearch(
        lambda i, j: (-9.0 - 4.0 / i - 2.0 / j, 0.01),
        pb.priors.Product(pb.priors.Poisson(2), pb.priors.Geometric(0.5)),
        strategy="widest",
        max_steps=8,
    )
    return searched(search.fit())


def search_of_lda(scoring: str) -> dict[str, Any]:
    model = pb.LatentDirichletAllocation(
        fit_method="em", max_iter=5, learn_priors=True, random_state=13
    )
    search = pb.WitnessSearch(
        model, pb.priors.Poisson(2), scoring=scoring, max_steps=3, random_state=13
    )
    search.fit(TRAINING[:14])
    found = searched(search)
    prediction = search.predictive_bounds(TRAINING[14:])
    found["predictive"] = [float(prediction.lower), float(prediction.upper)]
    return found


def search_of_networks(options: dict[str, Any]) -> dict[str, Any]:
    search = pb.WitnessSearch(
        pb.AllocationModel.nmf(None),
        pb.priors.Uniform(1, 4),
        scoring_options=options,
        max_steps=3,
        random_state=14,
    )
    return searched(search.fit(pb.CountTensor.from_dense(table((3, 4), 9), ["doc", "word"])))


def search_of_blockmodel() -> dict[str, Any]:
    search = pb.WitnessSearch(
        pb.AllocationModel.blockmodel(None, None),
        pb.priors.Product(pb.priors.Uniform(1, 3), pb.priors.Poisson(1)),
        max_steps=5,
        random_state=14,
    )
    return searched(search.fit(pb.CountTensor.from_dense(table((3, 3, 2), 6), ["i", "j", "s"])))


def folds() -> dict[str, Any]:
    model = pb.LatentDirichletAllocation(
        fit_method="em", max_iter=5, learn_priors=True, random_state=13
    )
    search = pb.WitnessSearch(
        model, pb.priors.Poisson(2), scoring="bound", max_steps=2, random_state=13
    )
    return table_columns(
        pb.cross_validate(search, TRAINING, 2, priors=[pb.priors.Geometric(0.5)], random_state=15)
    )


def prior_cases() -> Iterator[tuple[str, Case]]:
    laws: dict[str, Case] = {
        "poisson": lambda: pb.priors.Poisson(3.5),
        "poisson truncated": lambda: pb.priors.Poisson(3.5, truncate=True),
        "geometric": lambda: pb.priors.Geometric(0.25),
        "negative binomial": lambda: pb.priors.NegativeBinomial(4.0, 1.5),
        "negative binomial truncated": lambda: pb.priors.NegativeBinomial(4.0, 1.5, truncate=True),
        "uniform": lambda: pb.priors.Uniform(2, 9),
        "table": lambda: pb.priors.Table([0.5, 0.25, 0.125, 0.125]),
        "custom": lambda: pb.priors.Custom(lambda k: -k * math.log(2), lambda k: -k * math.log(2)),
    }
    sizes = np.array([1, 2, 3, 5, 8, 40])
    for name, law in laws.items():
        yield (
            name,
            lambda p=law: {
                "log_pmf": plain(p().log_pmf(sizes)),
                "log_survival": plain(p().log_survival(sizes)),
            },
        )
    joint: dict[str, Case] = {
        "product": lambda: pb.priors.Product(pb.priors.Poisson(2), pb.priors.Uniform(1, 3)),
        "joint table": lambda: pb.priors.JointTable({(1, 2): 0.25, (2, 1): 0.5, (3, 3): 0.25}),
    }
    for name, law in joint.items():
        yield (
            name,
            lambda p=law: {
                "log_masses": plain(p().log_masses((3, 3))),
                "log_box": plain([p().log_box((1, 1), (2.0, math.inf))]),
                "log_upset_union": p().log_upset_union([(1, 3), (2, 2)]),
            },
        )
