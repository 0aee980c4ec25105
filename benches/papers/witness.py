"""Chiang & Poole, a search algorithm for latent variable models with unbounded domains."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from benches.papers.figure import DATA, PARTS, Figure, Row, Settings, mean_and_error, once
from scipy.sparse import csr_matrix
from scipy.special import logsumexp

import polyabayes as pb


def one_dimension(settings: Settings) -> Iterator[Row]:
    """Figure 1: bounds of ln p(y) against steps, one size; log-scores rise to a plateau."""
    search = pb.WitnessSearch(
        lambda size: -2.0 - 8.0 / size, pb.priors.Geometric(0.2), max_steps=settings.steps
    ).fit()
    for step in range(search.n_steps_):
        row = search.bounds_.row(step)
        for side in ("lower", "upper"):
            yield {"step": step + 1, "ln p(y)": row[side], "bound": side, "size": row["size"]}


def two_dimensions(settings: Settings) -> Iterator[Row]:
    """Figure 2: the same over two sizes: the configurations tried, and the witnesses."""
    prior = pb.priors.Product(pb.priors.Geometric(0.3), pb.priors.Geometric(0.3))
    search = pb.WitnessSearch(
        lambda first, second: -2.0 - 4.0 / first - 6.0 / second,
        prior,
        max_steps=settings.steps,
    ).fit()
    for step, trace in enumerate(search.trace_):
        row = search.bounds_.row(step)
        yield {
            "step": step + 1,
            "sizes": " x ".join(map(str, trace.sizes)),
            "witnesses": "; ".join(" x ".join(map(str, w)) for w in trace.witnesses),
            "lower": row["lower"],
            "upper": row["upper"],
        }


def folds(settings: Settings) -> Iterator[tuple[int, csr_matrix, csr_matrix]]:
    """Folds of Cora: number, the other documents, and its own."""
    counts = pb.read_corpus(DATA / "cora.ldac", vocabulary=DATA / "cora.vocab").counts
    counts = counts[: settings.documents]
    fold_of = np.random.default_rng(0).permutation(counts.shape[0]) % settings.folds
    for fold in range(settings.folds):
        yield fold, counts[fold_of != fold], counts[fold_of == fold]


def bounds(settings: Settings) -> Iterator[Row]:
    """Figures 3 and 5: bounds on p(y) and on predictions of the folds, Poisson priors of sizes."""
    found: dict[tuple[Any, ...], list[float]] = {}
    kept = PARTS / "witness-fig3-5"
    for n_steps in settings.steps:
        for fold, train, test in folds(settings):
            search = partial(bounds_of_fold, train, test, n_steps, kept / f"{fold}")
            for *key, value in once(kept / f"{fold}-{n_steps}.json", search):
                found.setdefault(tuple(key), []).append(value)
    for (mean, n_steps, quantity), values in found.items():
        value, error = mean_and_error(values)
        yield {
            "lambda": mean,
            "steps": n_steps,
            "quantity": quantity,
            "nats per token": value,
            "error": error,
        }


def nested(train: csr_matrix, test: csr_matrix, n_sizes: int) -> tuple[list[float], list[float]]:
    """The bound of every size, each trained from the one before, and ln p of the test documents."""
    scores, predictions = [], []
    model = None
    for size in range(1, n_sizes + 1):
        model = pb.LatentDirichletAllocation(
            size, fit_method="em", learn_priors=False, max_iter=20, init=model, random_state=0
        ).fit(train)
        scores.append(model.bound_)
        cheap = {"n_particles": 50, "n_replicates": 4, "random_state": 0}
        predictions.append(pb.log_likelihood(model, test, "smc-lookahead", **cheap).total)
    return scores, predictions


def predictors(settings: Settings) -> Iterator[Row]:
    """Figures 4 and 5: posterior of K; the average over sizes beside the best single LDA."""
    for fold, train, test in folds(settings):
        scores, predictions = nested(train, test, settings.sizes)
        best = int(np.argmax(predictions))
        for mean in settings.means:
            search = pb.WitnessSearch(
                lambda k, values=scores: values[k - 1],
                pb.priors.Poisson(mean, shift=1),
                upper=lambda _, x=train: ceiling(x),
                predictive=lambda _, k, values=predictions: values[k - 1],
                max_steps=settings.sizes,
            ).fit(train)
            ln_prior = search.bounds_["log_prior"]
            joint = ln_prior + np.array(scores)
            averaged = logsumexp(joint + np.array(predictions)) - logsumexp(joint)
            posterior = search.posterior_bounds_.row(int(np.argmax(joint)))
            yield {
                "fold": fold,
                "lambda": mean,
                "K of largest posterior": int(np.argmax(joint)) + 1,
                "ln posterior of it, lower": float(posterior["log_lower"]),
                "ln posterior of it, upper": float(posterior["log_upper"]),
                "best K by test score": best + 1,
                "best single LDA, nats per token": predictions[best] / test.sum(),
                "average over sizes, nats per token": averaged / test.sum(),
            }


def ceiling(counts: csr_matrix) -> float:
    """ln of the probability of every document by its own word frequencies."""
    data, lengths = counts.data, np.asarray(counts.sum(axis=1)).ravel()
    own = np.repeat(lengths, np.diff(counts.indptr))
    return float((data * np.log(data / own)).sum())


def bounds_of_fold(
    train: csr_matrix, test: csr_matrix, n_steps: int, folder: Path
) -> list[tuple[int, int, str, float]]:
    """Nats a token of a fold after so many steps: our bounds, the paper's, and the best model."""
    found = []
    for kind in ("witness", "paper"):
        search = pb.WitnessSearch(
            pb.LatentDirichletAllocation(
                fit_method="em", learn_priors=False, max_iter=20, random_state=0
            ),
            pb.priors.Poisson(10, shift=1),
            bound=kind,
            scoring="bound",
            scoring_options={"method": "smc-lookahead", "n_particles": 50, "n_replicates": 4},
            max_steps=n_steps,
            random_state=0,
            checkpoint=folder,
        ).fit(train)
        for mean in (5, 10, 40):
            under = search.under(pb.priors.Poisson(mean, shift=1))
            row, predicted = under.bounds_.row(-1), under.predictive_bounds(test)
            for side in ("lower", "upper"):
                value = row[side] / train.sum()
                found.append((mean, n_steps, f"ln p(y), {kind}, {side}", value))
                value = getattr(predicted, side) / test.sum()
                found.append((mean, n_steps, f"ln p(y' given y), {kind}, {side}", value))
            if kind == "witness":
                value = predicted.best / test.sum()
                found.append((mean, n_steps, "ln p(y' given y), best size", value))
    return found


FOLDS = {"documents": 2_410, "folds": 10}
FIGURES = [
    Figure(
        "witness",
        "fig1",
        "Bounds on ln p(y), one size",
        one_dimension,
        {"in": "", "steps": 30},
        x="step",
        y="ln p(y)",
        series="bound",
    ),
    Figure("witness", "fig2", "Search over two sizes", two_dimensions, {"in": "", "steps": 60}),
    Figure(
        "witness",
        "fig3-5",
        "Cora: bounds of folds",
        bounds,
        {
            "in": "Figures 3 and 5",
            **FOLDS,
            "steps": [1, 2, 5, 10, 20, 40, 60, 80, 100, 120, 150],
        },
        small={"documents": 100, "folds": 2, "steps": [1, 3]},
        x="steps",
        y="nats per token",
        series="quantity",
        panel="lambda",
        error="error",
    ),
    Figure(
        "witness",
        "fig4-5",
        "Cora: posterior of K, and predictions",
        predictors,
        {"in": "Figures 4 and 5", **FOLDS, "sizes": 150, "means": [5, 10, 40]},
        small={"documents": 100, "folds": 2, "sizes": 6},
        middle={"folds": 2, "sizes": 40},
    ),
]
