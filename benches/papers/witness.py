"""Chiang & Poole, a search algorithm for latent variable models with unbounded domains."""

from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
from benches.papers.figure import PARTS, Picture, Row, figure, mean_and_error, once
from benches.record import DATA
from scipy.sparse import csr_matrix
from scipy.special import logsumexp
from scipy.stats import poisson

import polyabayes as pb

witness = partial(figure, "witness")
# The printed trace of Figure 2: what is expanded, the witness set after it, and the min-witness.
TRACE = [
    ((1, 1), {(1, 1)}, (1, 1)),
    ((2, 1), {(1, 1), (2, 1)}, (1, 1)),
    ((1, 2), {(1, 2), (2, 1)}, (2, 1)),
    ((3, 1), {(1, 2), (3, 1)}, (1, 2)),
    ((2, 2), {(1, 2), (3, 1)}, (1, 2)),
]


@witness("fig2", "Trace over two sizes", "Figure 2")
def two_dimensions() -> Iterator[Row]:
    """Figure 2: the printed trace beside ours, with scores that rise in its order.

    Of two successors that with more prior mass comes first, here that of the first size.
    """
    scores = {sizes: -9.0 + step for step, (sizes, *_) in enumerate(TRACE)}
    prior = pb.priors.Product(pb.priors.Geometric(0.3), pb.priors.Geometric(0.31))
    search = pb.WitnessSearch(lambda *sizes: scores[sizes], prior, max_steps=len(TRACE)).fit()
    for (expanded, witnesses, least), step in zip(TRACE, search.trace_, strict=True):
        yield {
            "published": told([expanded]),
            "ours": told([step.sizes]),
            "published witnesses": told(witnesses),
            "our witnesses": told(step.witnesses),
            "published min-witness": told([least]),
            "our min-witness": told([step.min_witness or ()]),
        }


def told(configurations: Iterable[tuple[int, ...]]) -> str:
    """Configurations of sizes in their order."""
    return "; ".join(" x ".join(map(str, sizes)) for sizes in sorted(configurations))


def cora(documents: int, folds: int) -> Iterator[tuple[int, csr_matrix, csr_matrix]]:
    """Folds of Cora: number, the other documents, and its own."""
    counts = pb.read_corpus(DATA / "cora.ldac", vocabulary=DATA / "cora.vocab").counts[:documents]
    fold_of = np.random.default_rng(0).permutation(counts.shape[0]) % folds
    for fold in range(folds):
        yield fold, counts[fold_of != fold], counts[fold_of == fold]


@witness(
    "fig3-5",
    "Cora: bounds of folds",
    "Figures 3 and 5",
    small={"documents": 100, "folds": 2, "steps": [1, 3]},
    picture=Picture("steps", "nats per token", "quantity", panel="lambda", error="error"),
)
def bounds(
    documents=2_410, folds=10, steps=(1, 2, 5, 10, 20, 40, 60, 80, 100, 120, 150)
) -> Iterator[Row]:
    """Figures 3 and 5: bounds on p(y) and on predictions of the folds, Poisson priors of sizes."""
    found: dict[tuple[Any, ...], list[float]] = {}
    kept = PARTS / "witness-fig3-5"
    for n_steps in steps:
        for fold, train, test in cora(documents, folds):
            search = partial(bounds_of_fold, train, test, n_steps, kept / f"{fold}")
            for *key, value in once(kept / f"{fold}-{n_steps}.json", search):
                found.setdefault(tuple(key), []).append(value)
    for (mean, n_steps, quantity), values in found.items():
        value, error = mean_and_error(values)
        of = {"lambda": mean, "steps": n_steps, "quantity": quantity}
        yield of | {"nats per token": value, "error": error}


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


@witness(
    "fig4-5",
    "Cora: posterior of K, and predictions",
    "Figures 4 and 5",
    small={"documents": 100, "folds": 2, "sizes": 6},
    middle={"folds": 2, "sizes": 40},
)
def predictors(documents=2_410, folds=10, sizes=150, means=(5, 10, 40)) -> Iterator[Row]:
    """Figures 4 and 5: posterior of K; the average over sizes beside the best single LDA."""
    for fold, train, test in cora(documents, folds):
        scores, predictions = nested(train, test, sizes)
        best = int(np.argmax(predictions))
        for mean in means:
            search = pb.WitnessSearch(
                lambda k, values=scores: values[k - 1],
                pb.priors.Poisson(mean, shift=1),
                upper=lambda _, x=train: ceiling(x),
                predictive=lambda _, k, values=predictions: values[k - 1],
                max_steps=sizes,
            ).fit(train)
            ln_prior = search.bounds_["log_prior"]
            joint = ln_prior + np.array(scores)
            averaged = logsumexp(joint + np.array(predictions)) - logsumexp(joint)
            posterior = search.posterior_bounds_.row(int(np.argmax(joint)))
            row = {"fold": fold, "lambda": mean, "K of largest posterior": int(joint.argmax()) + 1}
            for side in ("lower", "upper"):
                row[f"ln posterior of it, {side}"] = float(posterior[f"log_{side}"])
            row |= {"best K by test score": best + 1}
            row |= {"best single LDA, nats per token": predictions[best] / test.sum()}
            yield row | {"average over sizes, nats per token": averaged / test.sum()}


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
        em = {"fit_method": "em", "learn_priors": False, "max_iter": 20, "random_state": 0}
        scoring = {"method": "smc-lookahead", "n_particles": 50, "n_replicates": 4}
        options = {"scoring": "bound", "scoring_options": scoring, "bound": kind}
        options |= {"max_steps": n_steps, "random_state": 0, "checkpoint": folder}
        prior = pb.priors.Poisson(10, shift=1)
        search = pb.WitnessSearch(pb.LatentDirichletAllocation(**em), prior, **options).fit(train)
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


@witness("two-modes", "Groups of women and kinds of event", small={"most": 2, "replicates": 4})
def women_and_events(most=4, means=(1.0, 2.0, 4.0), replicates=8) -> Iterator[Row]:
    """Two sizes, and a prior mean of both that is not certain: who came to which event.

    A tensor of women, events, and whether she came (Davis, Gardner & Gardner 1941, from NetworkX).
    """
    graph = nx.davis_southern_women_graph()
    women, events = graph.graph["top"], graph.graph["bottom"]
    came = nx.bipartite.biadjacency_matrix(graph, women, events).toarray().astype(int)
    sizes = np.arange(1, most + 1)
    axes = [poisson.pmf(sizes - 1, mean) for mean in means]
    tables = [pb.priors.Table(masses / masses.sum()) for masses in axes]
    search = pb.WitnessSearch(
        pb.AllocationModel.blockmodel(None, None, ["woman", "event", "came"]),
        pb.priors.Mixture([pb.priors.Product(table, table) for table in tables]),
        scoring_options={"method": "tempered", "n_replicates": replicates, "given_total": True},
        random_state=0,
    ).fit(np.stack([1 - came, came], axis=2))
    scores = search.bounds_.to_frame()[["g", "h", "log_score", "std_error"]]
    for row in scores.merge(search.posterior_bounds_.to_frame()).itertuples():
        of = {"groups of women": row.g, "kinds of event": row.h, "lambda": None}
        of |= {"ln evidence": row.log_score, "error": row.std_error}
        yield of | {"posterior": f"{row.lower:.2f} to {row.upper:.2f}"}
    under = search.posterior_of_priors().to_frame()
    for mean, row in zip(means, under.itertuples(), strict=True):
        middle = (row.log_evidence_lower + row.log_evidence_upper) / 2
        of = {"groups of women": None, "kinds of event": None, "lambda": mean}
        of |= {"ln evidence": middle, "error": None}
        yield of | {"posterior": f"{row.lower:.2f} to {row.upper:.2f}"}
