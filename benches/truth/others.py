"""Totals, evidences, numbers of classes, contrasts, profiles and comparisons."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from benches.truth.coverage import drawn
from benches.truth.documents import Rng, log_uniform, size, topics
from benches.truth.table import Outcome, Simulator
from scipy.optimize import linear_sum_assignment
from scipy.special import softmax
from scipy.stats import norm

import polyabayes as pb
from polyabayes import _core
from polyabayes.latent_classes.choice import PRIORS

ONE = {"n_jobs": 1}
# Runs of one corpus, whose reference is what takes long.
N_RUNS = 50


def seed(rng: Rng) -> dict[str, Any]:
    return ONE | {"random_state": int(rng.integers(2**31))}


def of_interval(found: float, low: float, high: float, truth: float) -> Outcome:
    """An estimate with a 95 % interval, its z by the side of the truth."""
    end = high if truth > found else low
    return Outcome(found - truth, abs(end - found) / norm.ppf(0.975))


def corpus(rng: Rng) -> tuple[Any, Any]:
    """A model and some 150 documents of unequal lengths."""
    n_topics, n_documents = size(rng, 8, 60), size(rng, 60, 250)
    prior, phi = rng.gamma(2, log_uniform(rng, 0.005, 0.25), n_topics) + 1e-3, topics(rng, n_topics)
    words = rng.dirichlet(prior, n_documents) @ phi
    lengths = np.maximum(rng.lognormal(np.log(50), 0.7, n_documents), 2).astype(int)
    counts = [drawn(rng, row[None], n)[0] for row, n in zip(words, lengths, strict=True)]
    model = pb.LatentDirichletAllocation.from_parameters(doc_topic_prior=prior, topic_word=phi)
    return model, np.array(counts)


def totals(rng: Rng, n: int) -> Iterator[Outcome]:
    """Totals to errors of .002 to .01 nats a token."""
    for _ in range(n):
        model, counts = corpus(rng)
        long = {"n_samples": 600, "n_replicates": 32} | seed(rng)
        truth = pb.log_likelihood(model, counts, **long)
        # ln of a mean is low by half its squared error.
        value, error = truth.total + (truth.std_errors**2).sum() / 2, truth.total_std_error
        target = log_uniform(rng, 0.002, 0.01) * counts.sum()
        for _ in range(N_RUNS):
            found = pb.log_likelihood(model, counts, total_std_error=target, **seed(rng))
            is_far = not found.reached.all()
            yield Outcome(found.total - value, np.hypot(found.total_std_error, error), is_far)


def topic_weights(spread: tuple[float, float] | None, rng: Rng, n: int) -> Iterator[Outcome]:
    """Weights above .01 in documents of a model, against chains of 40,000 sweeps.

    With a spread, topics are variants of a third as many: their logarithms differ by as much.
    """
    for _ in range(3 * n):
        n_topics = size(rng, 3, 30)
        phi, prior = topics(rng, n_topics, 200), np.full(n_topics, log_uniform(rng, 0.05, 1))
        if spread:
            variants = np.exp(rng.normal(0, log_uniform(rng, *spread), phi.shape))
            phi = phi[np.arange(n_topics) % max(n_topics // 3, 1)] * variants
            phi /= phi.sum(axis=1, keepdims=True)
        counts = drawn(rng, rng.dirichlet(prior, 10) @ phi, size(rng, 20, 300))
        model = pb.LatentDirichletAllocation.from_parameters(
            doc_topic_prior=prior, topic_word=phi, random_state=int(rng.integers(2**31))
        )
        core = model._core_model(), pb.Corpus(counts)._core_documents()
        long = _core.transform(*core, spread=True, n_jobs=1, n_sweeps=40_000, seed=0)
        found = model.topic_weights(counts)
        for row in np.argwhere(long[:, 0] > 0.01):
            row = tuple(row)
            error = np.hypot(found.std_errors[row], long[:, 2][row])
            yield Outcome(found.mean[row] - long[:, 0][row], error)


def comparisons(rng: Rng, n: int) -> Iterator[Outcome]:
    """Differences of two models on documents of which either draws half."""
    for _ in range(4 * n):
        n_topics, prior = size(rng, 3, 12), 0.3
        models = {
            name: pb.LatentDirichletAllocation.from_parameters(
                doc_topic_prior=prior, topic_word=topics(rng, n_topics, 100, 0.1)
            )
            for name in "ab"
        }
        phi = np.array([models[name].components_ for name in rng.choice(["a", "b"], 40)])
        theta = rng.dirichlet(np.full(n_topics, prior), len(phi))
        counts = drawn(rng, np.einsum("dk,dkw->dw", theta, phi), 60)
        found = pb.compare(models, counts, **seed(rng))
        yield Outcome(*found.difference("a", "b"))


def evidences(rng: Rng, n: int) -> Iterator[Outcome]:
    """Small tables, by the methods that estimate, against sums."""
    for _ in range(4 * n):
        n_rows, n_columns, n_topics = (int(rng.integers(2, 5)) for _ in range(3))
        counts = rng.multinomial(size(rng, 6, 20), rng.dirichlet(np.full(n_rows * n_columns, 0.5)))
        table = counts.reshape(n_rows, n_columns)
        model = pb.AllocationModel.nmf(n_topics, concentration=log_uniform(rng, 0.1, 20))
        truth = model.log_evidence(table, "exact", given_total=True).value
        for method in ("smc", "tempered"):
            found = model.log_evidence(table, method, given_total=True, **seed(rng))
            yield Outcome(found.value - truth, found.std_error, not found.converged)


def large_tables(rng: Rng, n: int) -> Iterator[Outcome]:
    """Tables and tensors of 300 to 600 tokens against tempering of eight times as many scans."""
    for number in range(n):
        a, total = log_uniform(rng, 1, 20), size(rng, 300, 600)
        if number % 2:
            model = pb.AllocationModel.nmf(size(rng, 2, 5), concentration=a)
            shape: tuple[int, ...] = (12, 12)
        else:
            model = pb.AllocationModel.tucker(("i", "j", "k"), (2, 2, 2), concentration=a)
            shape = (8, 8, 8)
        weights = [rng.dirichlet(np.full(m, 0.3), 3).T for m in shape]
        cells = np.einsum("ar,br,cr->abc" if len(shape) == 3 else "ar,br->ab", *weights)
        counts = rng.multinomial(total, (cells / cells.sum()).ravel()).reshape(shape)
        found = model.log_evidence(counts, given_total=True, **seed(rng))
        scans = {"n_samples": 8 * max((part.n_scans for part in found.rounds), default=64)}
        long = model.log_evidence(counts, "tempered", given_total=True, **scans, **seed(rng))
        error = np.hypot(found.std_error, long.std_error)
        yield Outcome(found.value - long.value, error, not found.converged)


def missing_cells(rng: Rng, n: int) -> Iterator[Outcome]:
    """Tables with a cell left out: the default against particles."""
    for _ in range(3 * n):
        tables = [rng.dirichlet(np.full(4, 0.5), 2) for _ in range(2)]
        rates = 60 * np.einsum("k,ki,kj->ij", rng.dirichlet([1.0, 1.0]), *tables)
        counts = np.ma.masked_array(rng.poisson(rates), np.zeros((4, 4), bool))
        counts[0, 0] = np.ma.masked
        model = pb.AllocationModel.nmf(2, concentration=4.0, rate=1 / 60)
        found = model.predict_missing(counts, **seed(rng))
        other = model.predict_missing(counts, "smc", **seed(rng))
        error = np.hypot(found.evidence.std_error, other.evidence.std_error)
        gap = found.evidence.value - other.evidence.value
        yield Outcome(gap, error, not (found.evidence.converged and other.evidence.converged))


def answers(rng: Rng, of: Any, tables: list[Any]) -> pd.DataFrame:
    """Answers of rows of these classes."""
    columns = {}
    for item, table in enumerate(tables):
        points = rng.random((len(of), 1))
        codes = (points > np.cumsum(table, axis=1)[of][:, :-1]).sum(axis=1)
        columns[f"q{item}"] = pd.Categorical.from_codes(codes, list(range(table.shape[1])))
    return pd.DataFrame(columns)


def numbers(rng: Rng, n: int) -> Iterator[Outcome]:
    """Posterior probabilities of the number of classes, of data drawn from the prior.

    One outcome for ten sets of data: how many of the claims come true, against their sum.
    """
    prior = PRIORS["learned"]
    for _ in range(n):
        gap, variance = 0.0, 0.0
        for _ in range(10):
            n_classes, shape = int(rng.geometric(0.5)), rng.choice(prior.items)
            of = rng.choice(n_classes, 100, p=rng.dirichlet(np.full(n_classes, prior.weights)))
            tables = [rng.dirichlet(np.full(3, shape), n_classes) for _ in range(6)]
            frame = answers(rng, of, tables)
            # Leaving data out by themselves alone keeps the posterior of the others calibrated.
            if (frame.nunique() == 1).any():
                continue
            found = pb.LatentClassAnalysis(max_classes=8, **seed(rng)).fit(frame)
            p = found.choice_.probabilities[found.n_classes_]
            gap, variance = gap + p - (found.n_classes_ == n_classes), variance + p * (1 - p)
        yield Outcome(float(gap), float(np.sqrt(variance)))


def profiles(rng: Rng, n: int) -> Iterator[Outcome]:
    """Weights and probabilities of answers of two classes."""
    for _ in range(2 * n):
        tables = [rng.dirichlet(np.ones(rng.integers(2, 5)), 2) for _ in range(8)]
        weights = np.array([0.6, 0.4])
        frame = answers(rng, rng.choice(2, 300, p=weights), tables)
        rows = pb.LatentClassAnalysis(2, **seed(rng)).fit(frame).profiles().to_frame()
        orders = [
            np.concatenate([weights[::step], *(table[::step].ravel() for table in tables)])
            for step in (1, -1)
        ]
        # Labels of the nearer of both orders.
        truth = min(orders, key=lambda values: np.abs(rows.probability - values).sum())
        for row, value in zip(rows.itertuples(), truth, strict=True):
            yield of_interval(row.probability, row.lower, row.upper, value)


def memberships(rng: Rng, n: int) -> Iterator[Outcome]:
    """Slopes of a covariate of membership in one of two classes."""
    for _ in range(3 * n):
        tables = [rng.dirichlet(np.full(3, 0.5), 2) for _ in range(8)]
        x, slope = rng.normal(size=400), rng.normal(0, 1)
        of = (rng.random(400) < softmax([np.zeros(400), slope * x], axis=0)[1]).astype(int)
        frame = answers(rng, of, tables).assign(x=x)
        found = pb.LatentClassAnalysis(2, formula="~ x", **seed(rng)).fit(frame)
        agrees = np.mean(found.predict(frame) == of) > 0.5
        draws = found.coefficient_draws_[:, 1, 1] * (1 if agrees else -1)
        yield of_interval(draws.mean(), *np.quantile(draws, [0.025, 0.975]), slope)


def contrasts(rng: Rng, n: int) -> Iterator[Outcome]:
    """Differences of prevalence between two values of a covariate of LDA's prior."""
    for _ in range(n):
        phi, slopes = topics(rng, 4, 200, 0.05), rng.normal(0, 0.5, 4)
        x = (rng.random(300) < 0.5).astype(float)
        alpha = np.exp(np.log(0.3) + x[:, None] * slopes)
        counts = drawn(rng, np.array([rng.dirichlet(row) for row in alpha]) @ phi, 80)
        frame = pd.DataFrame({"x": x})
        options = {"max_iter": 300, "formula": "~ x"} | seed(rng)
        lda = pb.LatentDirichletAllocation(4, **options).fit(counts, covariates=frame)
        ends = [pd.DataFrame({"x": [value]}) for value in (1.0, 0.0)]
        effect = pb.topics.contrast(lda, *ends)
        order = linear_sum_assignment(-np.sqrt(phi) @ np.sqrt(lda.components_).T)[1]
        shares = [row / row.sum() for row in (0.3 * np.exp(slopes), np.full(4, 0.3))]
        low, high = effect.interval()
        columns = (np.ravel(part)[order] for part in (effect.mean, low, high))
        for row in zip(*columns, shares[0] - shares[1], strict=True):
            yield of_interval(*row)


SIMULATORS: dict[str, Simulator] = {
    "totals": totals,
    "topic weights": partial(topic_weights, None),
    "weights of similar topics": partial(topic_weights, (0.03, 1)),
    "comparisons": comparisons,
    "evidence of small tables": evidences,
    "evidence above 300 tokens": large_tables,
    "evidence with a missing cell": missing_cells,
    "P(K)": numbers,
    "profiles of latent classes": profiles,
    "covariates of membership": memberships,
    "contrasts of prevalence": contrasts,
}
