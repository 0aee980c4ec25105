"""Golden values of allocation models."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from scipy import stats

import polyabayes as pb
from golden_cases.public_api import Case, decomposition, evidence, fields, plain, simulated_bounds

READY: dict[str, tuple[Callable[[], pb.AllocationModel], tuple[int, ...]]] = {
    "nmf": (lambda: pb.AllocationModel.nmf(2, concentration=1.5), (3, 4)),
    "symmetric nmf": (lambda: pb.AllocationModel.symmetric_nmf(2), (3, 3)),
    "symmetric cp": (lambda: pb.AllocationModel.symmetric_cp(3, 2), (2, 2, 2)),
    "cp": (lambda: pb.AllocationModel.cp(["i", "j", "k"], 2, rate=0.5), (2, 3, 2)),
    "tucker": (lambda: pb.AllocationModel.tucker(["i", "j"], [2, 3]), (3, 4)),
    "pachinko": (lambda: pb.AllocationModel.pachinko([2, 2], concentration=2.0), (3, 4)),
    "blockmodel": (lambda: pb.AllocationModel.blockmodel(2, 2), (3, 3, 2)),
    "hidden markov": (lambda: pb.AllocationModel.hidden_markov(3, 2), (2, 2, 2)),
    "hidden markov tied": (
        lambda: pb.AllocationModel.hidden_markov(3, 2, tied=True),
        (2, 2, 2),
    ),
    "sum conditioned": (lambda: pb.AllocationModel.sum_conditioned(2), (2, 2, 2)),
    "complete": (lambda: pb.AllocationModel.complete(["i", "j", "k"]), (2, 2, 2)),
    "by graph": (
        lambda: pb.AllocationModel("i <- r -> j; r, i -> k", {"r": 3}, axes=["i", "j", "k"]),
        (2, 2, 2),
    ),
    "by graph, tied": (
        lambda: pb.AllocationModel(
            "i <- r -> j; r -> k", {"r": 2}, tied=[["i", "j"]], axes=["i", "j", "k"]
        ),
        (2, 2, 3),
    ),
    "by graph, given tables": (
        lambda: pb.AllocationModel.nmf(
            2, concentration=3.0, prior={"topic": 1.0, "doc": 0.5, "word": 2.0}
        ),
        (3, 4),
    ),
}

# Hidden nodes in several cliques are refused by methods that need them all in one.
SEVERAL_CLIQUES = ("hidden markov",)
IN_ONE_CLIQUE = ("smc-lookahead", "dual-em", "icm")


def table(shape: tuple[int, ...], total: int) -> np.ndarray:
    """So many tokens in cells of the shape, by a linear congruential generator."""
    counts = np.zeros(math.prod(shape), int)
    state = 1
    for _ in range(total):
        state = (1_103_515_245 * state + 12_345) % 2**31
        counts[(state >> 16) % len(counts)] += 1
    return counts.reshape(shape)


def evidence_cases() -> Iterator[tuple[str, Case]]:
    sizes: dict[str, dict[str, Any]] = {
        "exact": {},
        "auto": {},
        "smc": {"particles": 16},
        "smc-lookahead": {"particles": 16},
        "tempered": {"samples": 16},
        "vb": {"samples": 50, "replicates": 4},
    }
    for (name, (model, shape)), (method, size) in itertools.product(READY.items(), sizes.items()):
        if method in IN_ONE_CLIQUE and name in SEVERAL_CLIQUES:
            continue
        yield (
            f"{name} {method}",
            lambda m=model, s=shape, how=method, z=size: evidence(m(), table(s, 9), how, **z),
        )
    nmf = READY["nmf"][0]
    further: dict[str, dict[str, Any]] = {
        "given total": {"method": "smc", "particles": 16, "given_total": True},
        "auto by sampling": {"method": "auto", "budget": 1.0, "replicates": 4},
        "sorted order": {"method": "smc", "particles": 16, "order": "sorted"},
        "given order": {"method": "smc", "particles": 16, "order": [2, 0, 3, 1, *range(4, 9)]},
    }
    for scheme in ("systematic", "stratified", "residual", "multinomial"):
        further[f"resampling {scheme}"] = {
            "method": "smc",
            "particles": 16,
            "resampling": scheme,
            "resample_below": 0.9,
        }
    for name, arguments in further.items():
        yield f"nmf {name}", lambda a=arguments: evidence(nmf(), table((3, 4), 12), **a)
    yield (
        "nmf of many tokens",
        lambda: evidence(nmf(), table((3, 4), 400), "tempered", samples=16),
    )
    for name in ("nmf", "cp", "hidden markov"):
        model, shape = READY[name]
        yield f"{name} allocations", lambda m=model, s=shape: allocations(m(), table(s, 5))
        yield f"{name} bidirectional", lambda m=model, s=shape: bracketed(m(), s)
    yield "models compared", models_compared
    yield "particle chain", lambda: particle_chain(None)
    yield "particle chain of concentrations", lambda: particle_chain(stats.gamma(2))
    yield "costs", lambda: {name: costs(model(), shape) for name, (model, shape) in READY.items()}
    yield "effective parameters", effective_parameters


def allocations(model: pb.AllocationModel, data: np.ndarray) -> dict[str, Any]:
    found = model.allocations(data)
    names = ("log_probabilities", "multiplicities", "n_parameters", "log_evidence")
    return fields(found, *names) | {"histogram": plain(found.histogram(5))}


def bracketed(model: pb.AllocationModel, shape: tuple[int, ...]) -> dict[str, Any]:
    return simulated_bounds(model, dict(zip(model.axes, shape, strict=True)))


def models_compared() -> dict[str, Any]:
    models = {f"rank {k}": pb.AllocationModel.nmf(k) for k in (1, 2, 3)}
    exact = pb.posterior_over_models(models, table((3, 4), 9), "exact")
    options = {"n_particles": 16, "n_replicates": 4}
    sampled = pb.posterior_over_models(models, table((3, 4), 9), "smc", random_state=11, **options)
    return {
        name: fields(found, "best", "probabilities")
        | {
            "log_odds": plain(found.log_odds("rank 1", "rank 2")),
            "interval": plain(found.interval("rank 2")),
            "quantile": found.quantile(),
        }
        for name, found in (("exact", exact), ("sampled", sampled))
    }


def particle_chain(prior: Any) -> dict[str, Any]:
    found = pb.particle_mcmc(
        lambda k, a: pb.AllocationModel.nmf(k, concentration=a),
        table((3, 4), 9),
        ranks=[1, 2, 3],
        concentration_prior=prior,
        n_steps=30,
        method="smc",
        n_particles=8,
        random_state=12,
    )
    return fields(found, "ranks", "concentrations", "log_evidences", "acceptance") | {
        "rank_probabilities": plain(found.rank_probabilities(5))
    }


def costs(model: pb.AllocationModel, shape: tuple[int, ...]) -> Any:
    found = model.cost(table(shape, 9))
    return fields(found, "n_tokens", "n_cells", "n_states", "n_marginals")


def effective_parameters() -> int:
    found = READY["nmf"][0]().decompose(table((3, 4), 40), random_state=3)
    return pb.n_effective_parameters(found)


def decomposition_cases() -> Iterator[tuple[str, Case]]:
    sizes: dict[str, dict[str, Any]] = {
        "vb": {"iterations": 30, "n_restarts": 3},
        "em": {"iterations": 30, "n_restarts": 3},
        "dual-em": {"iterations": 30, "n_restarts": 3},
        "icm": {"iterations": 30, "n_restarts": 3},
        "ml": {"iterations": 30, "n_restarts": 3},
        "gibbs": {"iterations": 30, "burn_in": 10},
        "smc": {"particles": 16},
    }
    for (name, (model, shape)), (method, size) in itertools.product(READY.items(), sizes.items()):
        if method in IN_ONE_CLIQUE and name in SEVERAL_CLIQUES:
            continue
        yield (
            f"{name} {method}",
            lambda m=model, s=shape, how=method, z=size: decomposition(m(), table(s, 20), how, **z),
        )
