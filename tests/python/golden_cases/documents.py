"""Golden values of documents under a model."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import polyabayes as pb
from golden_cases.inputs import DOCUMENTS, LONG, MODELS, lda, wide_lda
from golden_cases.public_api import Case, fields, plain, score, scored


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
