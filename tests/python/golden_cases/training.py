"""Golden values of training."""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polyabayes as pb
from golden_cases.inputs import MODELS, TRAINING, WORDS
from golden_cases.public_api import Case, fields, fitted, plain, trained


def training_cases() -> Iterator[tuple[str, Case]]:
    short = {"n_components": 3, "max_iter": 20, "burn_in": 10, "thin": 2, "random_state": 9}
    em = {"n_components": 3, "max_iter": 10, "random_state": 9, "fit_method": "em"}
    models: dict[str, Case] = {
        "lda gibbs": lambda: pb.LatentDirichletAllocation(**short, learn_priors=False),
        "lda gibbs, learned priors": lambda: pb.LatentDirichletAllocation(**short),
        "lda gibbs, given priors": lambda: pb.LatentDirichletAllocation(
            **short, doc_topic_prior=[0.5, 0.25, 2.0], topic_word_prior=0.125
        ),
        # Enough topics for the sparse kernel.
        "lda gibbs, many topics": lambda: pb.LatentDirichletAllocation(
            **{**short, "n_components": 70, "max_iter": 6, "burn_in": 2}, learn_priors=False
        ),
        "lda em": lambda: pb.LatentDirichletAllocation(**em, learn_priors=False),
        "lda em, learned priors": lambda: pb.LatentDirichletAllocation(**em, topic_word_prior=0.0),
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
    return plain(vars(model.topic_table(4)))
