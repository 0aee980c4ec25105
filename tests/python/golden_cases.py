"""Golden values: what the public API gives on small inputs with seeds, kept in tests/golden.

``python tests/python/golden_cases.py --write [GROUP ...]`` computes them anew. A change of a
value is deliberate, and has its line in CHANGELOG.md.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import itertools
import json
import math
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import special, stats

import polyabayes as pb

FOLDER = Path(__file__).parents[1] / "golden"

Case = Callable[[], Any]


# Inputs: ratios of small whole numbers, which every machine divides alike.


def documents(n_documents: int, n_words: int, most: int) -> np.ndarray:
    """Counts from 0 to `most`, about two thirds of them 0; the last document is empty."""
    row, column = np.indices((n_documents, n_words))
    counts = (7 * row + 11 * column + 3 * row * column) % (3 * most) - 2 * most + 1
    counts[-1] = 0
    return np.maximum(counts, 0)


def topics(n_topics: int, n_words: int) -> np.ndarray:
    row, column = np.indices((n_topics, n_words))
    weights = (5 * row * row + 7 * column + 3 * row * column) % 13 + 1.0
    return weights / weights.sum(axis=1, keepdims=True)


DOCUMENTS = documents(6, 8, 3)
LONG = 9 * documents(3, 8, 3)
TRAINING = documents(20, 12, 4)
WORDS = [f"word{i}" for i in range(12)]


def lda() -> pb.LatentDirichletAllocation:
    return pb.LatentDirichletAllocation.from_parameters(
        doc_topic_prior=[0.25, 0.5, 1.5], topic_word=topics(3, 8), random_state=0
    )


def pfa() -> pb.PoissonFactorAnalysis:
    return pb.PoissonFactorAnalysis.from_parameters(
        topic_word=topics(3, 8),
        shape=[0.25, 1.0, 1.75],
        probability=[0.5, 0.75, 0.875],
        random_state=0,
    )


def wide_lda() -> pb.LatentDirichletAllocation:
    """More topics than fit in one round of lanes."""
    return pb.LatentDirichletAllocation.from_parameters(
        doc_topic_prior=np.full(37, 0.125), topic_word=topics(37, 8), random_state=0
    )


MODELS = {"lda": lda, "pfa": pfa}


# The public API, entry by entry: names of arguments and results stand here only.


def plain(value: Any) -> Any:
    """Numbers, lists and mappings for JSON, whatever container they came in."""
    if isinstance(value, pb.Corpus):
        return {
            "counts": value.counts.toarray().tolist(),
            "vocabulary": plain(value.vocabulary),
            "ids": plain(value.ids),
        }
    if isinstance(value, pb.CountTensor):
        return {
            "coordinates": value.coordinates.tolist(),
            "counts": value.counts.tolist(),
            "shape": list(value.shape),
            "axes": list(value.axes),
            "labels": plain(value.labels),
        }
    if isinstance(value, pd.DataFrame):
        return {str(name): plain(value[name].to_numpy()) for name in value}
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, dict):
        return {str(name): plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    assert value is None or isinstance(value, bool | int | float | str), type(value)
    return value


def fields(result: Any, *names: str) -> dict[str, Any]:
    return {name: plain(getattr(result, name)) for name in names}


def scored(result: pb.LogLikelihood) -> dict[str, Any]:
    return fields(
        result, "values", "std_errors", "n_effs", "sizes", "total", "total_std_error", "perplexity"
    ) | {"methods": plain(result.methods.astype(str))}


def score(
    model: Any,
    method: str,
    *,
    samples: int | None = None,
    particles: int | None = None,
    replicates: int | None = None,
    options: dict[str, Any] | None = None,
    data: np.ndarray = DOCUMENTS,
    **arguments: Any,
) -> dict[str, Any]:
    result = pb.log_likelihood(
        model,
        data,
        method,
        n_samples=samples,
        n_particles=particles,
        n_replicates=replicates,
        options=options,
        random_state=1,
        **arguments,
    )
    found = scored(result)
    if arguments.get("trace"):
        found["trace"] = fields(result.trace, "n_samples", "values", "std_errors")
    return found


def fitted(model: Any) -> dict[str, Any]:
    names = [
        "components_",
        "doc_topic_prior_",
        "topic_word_prior_",
        "shape_",
        "probability_",
        "topic_counts_",
        "n_iter_",
        "bound_",
    ]
    found = fields(model, *(name for name in names if hasattr(model, name)))
    if hasattr(model, "trace_"):
        found["trace"] = traced(model.trace_)
    return found


def traced(trace: Any) -> dict[str, Any]:
    return {name: plain(item) for name, item in trace._asdict().items() if name != "seconds"}


def trained(model: Any) -> dict[str, Any]:
    """Parameters, the last state, and the weights of the first documents."""
    model.fit(TRAINING)
    found = fitted(model)
    if hasattr(model, "last_sample_"):
        found["last_sample"] = plain(model.last_sample_._asdict())
    found["transform"] = plain(model.transform(TRAINING[:3]))
    if hasattr(model, "doc_topic_prior_") or hasattr(model, "shape_"):
        weights = model.topic_weights(TRAINING[:3])
        found["weights"] = fields(weights, "mean", "std")
        found["score"] = model.score(TRAINING[:6])
        found["score_samples"] = plain(model.score_samples(TRAINING[:6]))
    return found


def evidence_fields(found: pb.Evidence) -> dict[str, Any]:
    names = ("value", "std_error", "n_eff", "method", "log_probability_of_total", "log_remainder")
    return fields(found, *names)


def evidence(
    model: pb.AllocationModel,
    data: Any,
    method: str,
    *,
    particles: int | None = None,
    samples: int | None = None,
    replicates: int | None = None,
    **arguments: Any,
) -> dict[str, Any]:
    if method == "vb":
        sizes = {"max_iter": samples, "n_restarts": replicates}
    else:
        chains = "n_chains" if method == "annealed" else "n_particles"
        sizes = {chains: particles, "n_samples": samples, "n_replicates": replicates}
    return evidence_fields(model.log_evidence(data, method, random_state=2, **sizes, **arguments))


def decomposition(
    model: pb.AllocationModel,
    data: Any,
    method: str,
    *,
    iterations: int | None = None,
    particles: int | None = None,
    **arguments: Any,
) -> dict[str, Any]:
    found = model.decompose(
        data, method, max_iter=iterations, n_particles=particles, random_state=3, **arguments
    )
    names = ("tables", "expected_counts", "intensity", "trace", "value", "fitted_counts")
    errors = ("kl_error", "squared_error", "sparsity", "log_probability_of_total")
    more = ("missing_counts",) if len(found.missing_cells) else ()
    return fields(found, *names, *errors, *more)


def missing(
    model: pb.AllocationModel,
    data: Any,
    method: str,
    *,
    particles: int | None = None,
    samples: int | None = None,
    replicates: int | None = None,
    **arguments: Any,
) -> dict[str, Any]:
    if method == "vb":
        sizes = {"max_iter": samples, "n_restarts": replicates}
    else:
        sizes = {"n_particles": particles, "n_replicates": replicates}
    found = model.predict_missing(data, method, random_state=4, **sizes, **arguments)
    names = ("totals", "log_joint", "std_errors", "posterior", "posterior_std_errors")
    expected = ("expected_counts", "expected_std_errors", "expected_total", "coordinates")
    rest = ("log_remainder", "log_remainder_bound")
    return fields(found, *names, *expected, *rest) | {"evidence": evidence_fields(found.evidence)}


def simulated_bounds(model: pb.AllocationModel, shape: dict[str, int]) -> dict[str, Any]:
    found = model.bidirectional_bounds(
        shape, 12, n_chains=8, n_samples=20, n_replicates=4, random_state=5, n_jobs=1
    )
    return {
        side: {
            "value": float(getattr(found, side)[0]),
            "std_error": float(getattr(found, f"{side}_std_errors")[0]),
        }
        for side in ("lower", "upper")
    }


def searched(search: pb.WitnessSearch) -> dict[str, Any]:
    names = ("best_", "holds_", "log_ceiling_", "n_steps_", "stop_reason_", "unexplored_posterior_")
    found = fields(search, *names)
    for table in ("bounds_", "posterior_bounds_"):
        found[table] = table_columns(getattr(search, table))
    return found


def table_columns(table: Any) -> dict[str, Any]:
    return {name: plain(table[name]) for name in table if name != "seconds"}


# Documents under a model


def likelihood_cases() -> Iterator[tuple[str, Case]]:
    sizes: dict[str, dict[str, Any]] = {
        "auto": {},
        "exact": {},
        "recursive": {},
        "direct": {"samples": 40},
        "harmonic": {"samples": 20},
        "mean-field": {"samples": 40},
        "left-to-right": {"particles": 4},
        "left-to-right-particle": {"particles": 4},
        "left-to-right-sequential": {"particles": 4},
        "l2r": {"particles": 4},
        "smc": {"particles": 16},
        "smc-lookahead": {"particles": 16},
        "annealed": {"samples": 10},
        "chib": {"samples": 10},
    }
    for (name, model), (method, size) in itertools.product(MODELS.items(), sizes.items()):
        for event in ("sequence", "counts"):
            yield (
                f"{name} {method} {event}",
                lambda m=model, how=method, s=size, e=event: score(m(), how, event=e, **s),
            )
        if name == "pfa":
            yield (
                f"{name} {method} given length",
                lambda m=model, how=method, s=size: score(m(), how, given_length=True, **s),
            )
    for method, size in sizes.items():
        if method != "exact":
            yield (
                f"long documents {method}",
                lambda how=method, s=size: score(lda(), how, data=LONG, **s),
            )
            yield f"many topics {method}", lambda how=method, s=size: score(wide_lda(), how, **s)
    further: dict[str, dict[str, Any]] = {
        "mean-field of order 2": {
            "method": "mean-field",
            "samples": 40,
            "options": {"order": 2, "n_iterations": 5},
        },
        "l2r with sampled conditionals": {
            "method": "l2r",
            "particles": 4,
            "options": {"n_conditional_samples": 3},
        },
        "annealed from the prior": {
            "method": "annealed",
            "samples": 10,
            "options": {"start": "prior"},
        },
        "smc to a target": {"method": "smc", "target_std_error": 0.05},
        "smc-lookahead to a target": {"method": "smc-lookahead", "target_std_error": 0.05},
        "annealed to a target": {"method": "annealed", "target_std_error": 0.05},
        "direct to a target": {"method": "direct", "target_std_error": 0.1},
        "auto within a budget": {"method": "auto", "budget": 10.0},
        "direct with a trace": {"method": "direct", "samples": 64, "trace": True},
        "l2r of many replicates": {"method": "l2r", "particles": 2, "replicates": 40},
    }
    for (name, model), (case, arguments) in itertools.product(MODELS.items(), further.items()):
        yield f"{name} {case}", lambda m=model, a=arguments: score(m(), **a)


def scoring_cases() -> Iterator[tuple[str, Case]]:
    """Completion, comparison, bounds from both sides."""
    for name, model in MODELS.items():
        yield f"{name} completion", lambda m=model: completion(m(), "auto")
        yield f"{name} completion by smc", lambda m=model: completion(m(), "smc", n_particles=16)
        yield f"{name} completion perplexity", lambda m=model: completion_perplexity(m())
        yield f"{name} bounds", lambda m=model: bounds(m(), "smc-lookahead", n_particles=16)
        yield f"{name} bounds by smc", lambda m=model: bounds(m(), "smc", n_particles=16)
        yield f"{name} bounds by annealing", lambda m=model: bounds(m(), "annealed", n_samples=10)
        yield f"{name} transform", lambda m=model: plain(m().transform(DOCUMENTS))
    yield "split tokens", lambda: plain(pb.split_tokens(DOCUMENTS, 0.4, random_state=6))
    yield "compare", comparison
    yield "divergence", lambda: pb.estimator_divergence([-3.0, -5.0], [-3.5, -4.75])


def completion(model: Any, method: str, **sizes: Any) -> dict[str, Any]:
    observed, held_out = pb.split_tokens(DOCUMENTS, 0.5, random_state=6)
    result = pb.log_completion(model, observed, held_out, method, random_state=1, **sizes)
    return scored(result) | {"plug-in": pb.plug_in_perplexity(model, observed, held_out)}


def completion_perplexity(model: Any) -> Any:
    return plain(pb.completion_perplexity(model, DOCUMENTS, random_state=7))


def bounds(model: Any, method: str, **sizes: Any) -> dict[str, Any]:
    length = {"document_length": 12} if isinstance(model, pb.LatentDirichletAllocation) else {}
    found = pb.bidirectional_bounds(
        model, method, n_documents=4, n_replicates=8, random_state=8, **length, **sizes
    )
    names = ("lower", "lower_std_errors", "upper", "upper_std_errors")
    return fields(found, *names) | {"corpus": plain(found.data)}


def comparison() -> dict[str, Any]:
    found = pb.compare({name: model() for name, model in MODELS.items()}, DOCUMENTS)
    return {
        "event": found.event,
        "given_length": found.given_length,
        "best": found.best,
        "difference": plain(found.difference("lda", "pfa")),
        "results": {name: scored(result) for name, result in found.results.items()},
    }


# Training


def training_cases() -> Iterator[tuple[str, Case]]:
    short = {"n_components": 3, "max_iter": 20, "burn_in": 10, "thin": 2, "random_state": 9}
    em = {"n_components": 3, "max_iter": 10, "random_state": 9, "fit_method": "em"}
    models: dict[str, Case] = {
        "lda gibbs": lambda: pb.LatentDirichletAllocation(**short),
        "lda gibbs, learned priors": lambda: pb.LatentDirichletAllocation(
            **short, learn_priors=True
        ),
        "lda gibbs, given priors": lambda: pb.LatentDirichletAllocation(
            **short, doc_topic_prior=[0.5, 0.25, 2.0], topic_word_prior=0.125
        ),
        # Enough topics for the sparse kernel.
        "lda gibbs, many topics": lambda: pb.LatentDirichletAllocation(
            **{**short, "n_components": 70, "max_iter": 6, "burn_in": 2}
        ),
        "lda em": lambda: pb.LatentDirichletAllocation(**em),
        "lda em, learned priors": lambda: pb.LatentDirichletAllocation(
            **em, learn_priors=True, topic_word_prior=0.0
        ),
    }
    for prior, sampler in itertools.product(
        ("gap", "gamma", "beta-gamma", "beta-gamma-gamma"), ("collapsed", "blocked")
    ):
        models[f"pfa {prior} {sampler}"] = lambda p=prior, s=sampler: pb.PoissonFactorAnalysis(
            **short, prior=p, sampler=s
        )
    models["pfa collapsed, many topics"] = lambda: pb.PoissonFactorAnalysis(
        **{**short, "n_components": 70, "max_iter": 6, "burn_in": 2}
    )
    models["nmf"] = lambda: pb.PoissonFactorAnalysis(3, prior="nmf", max_iter=20, random_state=9)
    for name, model in models.items():
        yield name, lambda m=model: trained(m())
    yield "lda em, grown", grown
    yield "lda partial fit", partial_fit
    yield "lda with held-out documents", evaluated
    yield "model files", model_files
    yield "chains", chains
    yield "topic table", topic_table


def grown() -> dict[str, Any]:
    small = pb.LatentDirichletAllocation(
        2, fit_method="em", max_iter=5, random_state=9, topic_word_prior=0.0
    ).fit(TRAINING)
    large = pb.LatentDirichletAllocation(
        4, fit_method="em", max_iter=5, random_state=9, topic_word_prior=0.0, init=small
    )
    return fitted(large.fit(TRAINING))


def partial_fit() -> list[dict[str, Any]]:
    model = pb.LatentDirichletAllocation(3, max_iter=10, random_state=9)
    return [fitted(model.partial_fit(part)) for part in (TRAINING[:8], TRAINING[8:14], TRAINING)]


def evaluated() -> dict[str, Any]:
    model = pb.LatentDirichletAllocation(3, max_iter=10, random_state=9)
    return fitted(model.fit(TRAINING[:15], eval_corpus=TRAINING[15:], eval_every=5))


def model_files() -> dict[str, Any]:
    """Parameters come back from the file as they were saved."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, model in MODELS.items():
            path = Path(folder) / f"{name}.safetensors"
            model().save(path)
            found[name] = fitted(pb.load(path))
    return found


def chains() -> dict[str, Any]:
    model = pb.LatentDirichletAllocation(3, max_iter=16, thin=2, burn_in=8)
    found = pb.sample_chains(model, TRAINING, 2, random_state=10)
    return fields(found, "n_iter", "draws") | {"models": [fitted(model) for model in found.models]}


def topic_table() -> Any:
    model = pb.LatentDirichletAllocation(3, max_iter=10, random_state=9)
    model.fit(pb.Corpus(TRAINING, vocabulary=WORDS))
    return plain(model.topic_table(4)._asdict())


# Allocation models

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
        "annealed": {"particles": 8, "samples": 20},
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
        lambda: evidence(nmf(), table((3, 4), 400), "annealed", particles=8, samples=20),
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


# Cells that were not observed


WITH_RATE: dict[str, tuple[Callable[[], pb.AllocationModel], tuple[int, ...]]] = {
    "nmf": (lambda: pb.AllocationModel.nmf(2, concentration=1.5, rate=0.5), (3, 4)),
    "cp": (lambda: pb.AllocationModel.cp(["i", "j", "k"], 2, rate=0.5), (2, 3, 2)),
    "tucker": (lambda: pb.AllocationModel.tucker(["i", "j"], [2, 3], rate=0.5), (3, 4)),
    "blockmodel": (lambda: pb.AllocationModel.blockmodel(2, 2, rate=0.5), (3, 3, 2)),
    "hidden markov tied": (
        lambda: pb.AllocationModel.hidden_markov(3, 2, tied=True, rate=0.5),
        (2, 2, 2),
    ),
}


def holes(shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Counts, and where they were observed: all but two cells."""
    observed = np.ones(math.prod(shape), bool)
    observed[[1, math.prod(shape) - 2]] = False
    observed = observed.reshape(shape)
    return np.where(observed, table(shape, 6), 0), observed


def missing_cases() -> Iterator[tuple[str, Case]]:
    sizes: dict[str, dict[str, Any]] = {
        "exact": {"max_total": 8},
        "auto": {"max_total": 12},
        "smc": {"max_total": 14, "particles": 16},
        "vb": {"samples": 50, "replicates": 4},
    }
    for (name, (model, shape)), (method, size) in itertools.product(
        WITH_RATE.items(), sizes.items()
    ):
        yield (
            f"{name} {method}",
            lambda m=model, s=shape, how=method, z=size: missing(
                m(), holes(s)[0], how, observed=holes(s)[1], **z
            ),
        )
    for name, method in itertools.product(("nmf", "cp", "tucker"), ("vb", "em")):
        model, shape = WITH_RATE[name]
        yield (
            f"{name} decomposed by {method}",
            lambda m=model, s=shape, how=method: decomposition(
                m(), holes(s)[0], how, observed=holes(s)[1], iterations=30, n_restarts=2
            ),
        )
    nmf, shape = WITH_RATE["nmf"]
    yield (
        "nmf evidence",
        lambda: evidence(
            nmf(), holes(shape)[0], "smc", observed=holes(shape)[1], max_total=14, particles=16
        ),
    )


# Sizes that are not known


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


# Files and corpora

CORPUS_TEXTS: dict[str, tuple[str, dict[str, Any]]] = {
    "x.ldac": ("2 0:2 2:1\n0\n1 1:3\n", {}),
    "x.svmlight": ("1 0:2 2:1\n0\n-1 1:3\n", {"zero_based": True}),
    "docword.x.txt": ("3\n3\n3\n1 1 2\n1 3 1\n3 2 3\n", {}),
    "x.csv": ("document,urn,ball,colour\na,2,0,1\nb,0,0,0\nc,0,3,0\n", {}),
    "long.csv": ("document,word,count\na,urn,2\na,colour,1\nc,ball,3\n", {}),
    "x.mtx": (
        "%%MatrixMarket matrix coordinate integer general\n3 3 3\n1 1 2\n1 3 1\n3 2 3\n",
        {},
    ),
    "x.txt": ("Urns and balls, balls.\n\nA ball of colour\n", {"lowercase": True}),
}

TENSOR_TEXTS = {
    "x.tns": "# hair eye sex count\n1 1 1 32\n1 3 2 11\n\n3 4 2 5\n",
    "x.csv": 'hair,eye,count\nred,"a, b",2\nblack,c,1\nred,c,4\n',
}


def file_cases() -> Iterator[tuple[str, Case]]:
    for name, (text, options) in CORPUS_TEXTS.items():
        yield (
            f"corpus from {name}",
            lambda n=name, t=text, o=options: read_back(pb.read_corpus, n, t.encode(), **o),
        )
        yield (
            f"corpus from {name}.gz",
            lambda n=name, t=text, o=options: read_back(
                pb.read_corpus, f"{n}.gz", gzip.compress(t.encode()), **o
            ),
        )
    for name, text in TENSOR_TEXTS.items():
        yield f"tensor from {name}", lambda n=name, t=text: read_back(pb.read_tensor, n, t.encode())
    for name in ("x.ldac", "x.mtx", "x.npz"):
        yield f"corpus to {name}", lambda n=name: written(pb.write_corpus, named_corpus(), n)
        yield (
            f"corpus there and back, {name}",
            lambda n=name: there_and_back(pb.write_corpus, pb.read_corpus, named_corpus(), n),
        )
    for name in ("x.tns", "x.csv", "x.npz"):
        yield f"tensor to {name}", lambda n=name: written(pb.write_tensor, named_tensor(), n)
        yield (
            f"tensor there and back, {name}",
            lambda n=name: there_and_back(pb.write_tensor, pb.read_tensor, named_tensor(), n),
        )
    yield "folder of texts", folder_of_texts
    yield "parquet", parquet
    yield "split", lambda: plain(named_corpus().split(0.4, random_state=16))
    yield (
        "synthetic lda",
        lambda: synthetic(pb.datasets.make_lda_corpus(4, 6, 2, document_length=9, random_state=17)),
    )
    yield (
        "synthetic gamma-Poisson",
        lambda: synthetic(pb.datasets.make_gamma_poisson_corpus(4, 6, 2, random_state=17)),
    )
    yield (
        "discretised",
        lambda: plain(
            pb.discretise(
                pd.DataFrame({"a": [0.5, 1.5, 4.0, 9.0, 2.5], "b": [1.0, 0.0, 3.0, 2.0, 8.0]}),
                ["a", "b"],
                2,
                random_state=18,
            )
        ),
    )


def named_corpus() -> pb.Corpus:
    return pb.Corpus(DOCUMENTS, vocabulary=WORDS[:8], ids=[*"abcdef"])


def named_tensor() -> pb.CountTensor:
    return pb.CountTensor.from_dense(
        table((2, 3, 2), 9), ["i", "j", "k"], [["x", "y"], ["1", "2", "3"], ["a, b", "c"]]
    )


def read_back(reader: Callable[..., Any], name: str, content: bytes, **options: Any) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(content)
        return plain(reader(path, **options))


def written(writer: Callable[..., Any], data: Any, name: str) -> dict[str, str]:
    """Digest of every file written, by its name; of the arrays inside where it is an archive."""
    with tempfile.TemporaryDirectory() as folder:
        writer(data, Path(folder) / name)
        return {path.name: digest(path) for path in sorted(Path(folder).iterdir())}


def digest(path: Path) -> str:
    if path.suffix != ".npz":
        return hashlib.sha256(path.read_bytes()).hexdigest()
    with np.load(path, allow_pickle=False) as arrays:
        parts = {key: [str(arrays[key].dtype), arrays[key].tolist()] for key in arrays.files}
    return hashlib.sha256(repr(sorted(parts.items())).encode()).hexdigest()


def there_and_back(
    writer: Callable[..., Any], reader: Callable[..., Any], data: Any, name: str
) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        writer(data, Path(folder) / name)
        return plain(reader(Path(folder) / name))


def folder_of_texts() -> Any:
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "sub").mkdir()
        (Path(folder) / "one.txt").write_text("urns and balls")
        (Path(folder) / "sub" / "two.txt").write_text("balls running in urns")
        return plain(pb.read_corpus(folder, stem="english"))


def parquet() -> Any:
    frame = pd.DataFrame({"document": ["a", "a", "c"], "word": [*"uvw"], "count": [2, 1, 3]})
    with tempfile.TemporaryDirectory() as folder:
        frame.to_parquet(Path(folder) / "x.parquet")
        corpus = pb.read_corpus(Path(folder) / "x.parquet")
        tensor = pb.read_tensor(Path(folder) / "x.parquet")
    return {"corpus": plain(corpus), "tensor": plain(tensor)}


def synthetic(data: Any) -> dict[str, Any]:
    names = ("corpus", "topic_word", "doc_topic", "doc_topic_prior", "shape", "probability")
    return fields(data, *(name for name in names if hasattr(data, name)))


GROUPS: dict[str, Callable[[], Iterator[tuple[str, Case]]]] = {
    "likelihood": likelihood_cases,
    "scoring": scoring_cases,
    "training": training_cases,
    "evidence": evidence_cases,
    "decomposition": decomposition_cases,
    "missing": missing_cases,
    "witness": witness_cases,
    "priors": prior_cases,
    "files": file_cases,
}


def elementary_functions() -> dict[str, str]:
    """Digests of what the C library's functions and NumPy's and BLAS's give on this machine."""
    at = np.arange(1, 4001) / 256.0
    scalar = [f(x) for f in (math.log, math.exp, math.lgamma, math.log1p, math.cos) for x in at]
    arrays = [f(at) for f in (np.log, np.exp, np.log1p, np.expm1, np.cos, special.gammaln)]
    square = at[:3969].reshape(63, 63) / 3
    results = {
        "C library": np.array(scalar),
        "NumPy": np.concatenate(arrays),
        "BLAS": np.concatenate([square @ square, square @ square[:, :1]], axis=1),
    }
    return {name: hashlib.sha256(found.tobytes()).hexdigest() for name, found in results.items()}


def compute(case: Case) -> Any:
    """The values, through JSON as they are kept: small samples may doubt their errors."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pb.exceptions.PolyabayesWarning)
        return json.loads(json.dumps(case()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", required=True)
    parser.add_argument("group", nargs="*", choices=[*GROUPS, []])
    arguments = parser.parse_args()
    machine = FOLDER / "machine.json"
    functions = elementary_functions()
    if arguments.group and functions != json.loads(machine.read_text()):
        parser.error("the other groups were written on another machine: write all of them")
    FOLDER.mkdir(exist_ok=True)
    machine.write_text(json.dumps(functions, indent=1) + "\n")
    for group in arguments.group or GROUPS:
        lines = [
            f"{json.dumps(name)}: {json.dumps(compute(case), separators=(',', ':'))}"
            for name, case in GROUPS[group]()
        ]
        (FOLDER / f"{group}.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
