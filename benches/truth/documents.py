"""Documents of many kinds, drawn from models of random sizes."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from benches.truth.coverage import SAMPLED, doubted, drawn
from benches.truth.rings import is_ring, ring_value
from benches.truth.table import Outcome, Simulator

import polyabayes as pb
from polyabayes._support.arrays import Floats

Rng = np.random.Generator
# Multiply-adds of a sum that is the truth; of a long run where none is affordable; and of a longer
# one where that has a larger error than the estimate, or than ln of a mean can be corrected for.
SUMMED, LONG = 1e8, (3e8, 3e9)
LARGEST_ERROR = 0.3
# Largest number of tokens times topics under small priors: other documents take minutes each.
MOST_SMALL = 2_500
# Estimates of each of these documents, which take less time than its truth.
N_ESTIMATES = 8


class Case(NamedTuple):
    """A document under a model; its options, method, and the value where it is known."""

    model: Any
    counts: Any
    options: dict[str, Any] = {}  # noqa: RUF012
    method: str = "auto"
    truth: float | None = None


def log_uniform(rng: Rng, low: float, high: float) -> float:
    """A draw whose ln is uniform."""
    return float(np.exp(rng.uniform(np.log(low), np.log(high))))


def size(rng: Rng, low: int, high: int) -> int:
    return round(log_uniform(rng, low, high))


def topics(rng: Rng, n_topics: int, n_words: int = 300, prior: float | None = None) -> Floats:
    """Topics of which a few words, or most, are likely."""
    prior = log_uniform(rng, 0.02, 0.5) if prior is None else prior
    phi = np.maximum(rng.dirichlet(np.full(n_words, prior), n_topics), 1e-12)
    return phi / phi.sum(axis=1, keepdims=True)


def ring(rng: Rng, n_topics: int) -> Floats:
    """Topics that share half of their words with either neighbour, and hardly any with others."""
    n_shared = int(rng.integers(2, 5))
    phi = np.full((n_topics, n_topics * n_shared), log_uniform(rng, 1e-6, 1e-3))
    for topic in range(n_topics):
        for pair in (topic, (topic + 1) % n_topics):
            phi[topic, pair * n_shared : (pair + 1) * n_shared] = 1.0
    return phi / phi.sum(axis=1, keepdims=True)


def any_topics(rng: Rng, n_topics: int) -> Floats:
    """Topics apart from each other, in a ring, in families, or around words in Zipf's shares."""
    form = rng.integers(4)
    if form == 1 and n_topics > 2:
        return ring(rng, n_topics)
    if form == 2:
        n_words = size(rng, 100, 1000)
        families = topics(rng, 1 + n_topics // 3, n_words)
        means = log_uniform(rng, 5, 200) * families[rng.integers(len(families), size=n_topics)]
        return np.array([rng.dirichlet(mean + 1e-3) for mean in means])
    if form == 3:
        base = 1.0 / np.arange(1, size(rng, 200, 2000))
        base *= log_uniform(rng, 2, 100) / base.sum()
        return np.array([rng.dirichlet(base + 1e-4) for _ in range(n_topics)])
    return topics(rng, n_topics)


def of_some(rng: Rng, phi: Floats, n_tokens: int) -> Any:
    """A document that uses one to ten topics, whatever the prior says."""
    used = rng.choice(len(phi), min(len(phi), int(rng.integers(1, 11))), replace=False)
    return drawn(rng, rng.dirichlet(np.ones(len(used)))[None] @ phi[used], n_tokens)


def urn(rng: Rng, prior: Floats, phi: Floats, counts: Any) -> Case:
    """The document under LDA or, as often, gamma-Poisson factor analysis with these parameters."""
    if rng.random() < 0.5:
        lda = pb.LatentDirichletAllocation.from_parameters(doc_topic_prior=prior, topic_word=phi)
        return Case(lda, counts)
    p = rng.uniform(0.2, 0.9, len(prior))
    gap = pb.PoissonFactorAnalysis.from_parameters(topic_word=phi, shape=prior, probability=p)
    return Case(gap, counts, {"exposure": rng.uniform(0.5, 2.0)} if rng.random() < 0.5 else {})


def of_prior(rng: Rng, n_topics: int, phi: Floats | None = None, n_tokens: int = 0) -> Case:
    """A prior as learned ones are, and a document drawn from it."""
    prior = rng.gamma(0.7, log_uniform(rng, 0.5, 5) / n_topics, n_topics) + 1e-3
    phi = topics(rng, n_topics) if phi is None else phi
    theta = rng.dirichlet(np.maximum(prior, 0.01))[None]
    return urn(rng, prior, phi, drawn(rng, theta @ phi, n_tokens or size(rng, 10, 300)))


def small(rng: Rng, form: str) -> Case:
    """Pseudo-counts of any magnitude: of all topics alike, of most, or each its own."""
    n_topics, least = size(rng, 5, 200), log_uniform(rng, 1e-8, 1.0)
    n_tokens = size(rng, 10, min(300, MOST_SMALL // n_topics))
    prior = np.full(n_topics, least)
    if form == "one-sided":
        prior[: 1 + n_topics // 6] = max(least, log_uniform(rng, 0.02, 1.0))
    elif form == "mixed":
        prior = np.exp(rng.uniform(np.log(1e-8), 0.0, n_topics))
    phi = any_topics(rng, n_topics)
    return urn(rng, prior, phi, of_some(rng, phi, n_tokens))


def costly_ring(rng: Rng) -> Case:
    """Six topics in a ring, each of its own cost: either half of them covers all words."""
    prior, p, phi = np.exp(rng.uniform(-18, -3, 6)), rng.uniform(0.2, 0.9, 6), ring(rng, 6)
    gap = pb.PoissonFactorAnalysis.from_parameters(topic_word=phi, shape=prior, probability=p)
    return Case(gap, drawn(rng, np.full((1, 6), 1 / 6) @ phi, size(rng, 20, 100)))


def similar(rng: Rng) -> Case:
    """Topics around one distribution of words."""
    n_topics, base = size(rng, 3, 30), rng.dirichlet(np.full(200, 0.3))
    phi = np.array([rng.dirichlet(log_uniform(rng, 5, 200) * base + 1e-3) for _ in range(n_topics)])
    return of_prior(rng, n_topics, phi)


def repeated(rng: Rng) -> Case:
    """Many tokens of few words."""
    n_topics = size(rng, 3, 20)
    phi = topics(rng, n_topics, size(rng, 5, 20), 0.5)
    return of_prior(rng, n_topics, phi, size(rng, 100, 1000))


def own_prior(rng: Rng) -> Case:
    """A prior of the document's own, with topics excluded."""
    n_topics = size(rng, 5, 60)
    case, prior = of_prior(rng, n_topics), rng.gamma(0.3, size=n_topics) + 1e-3
    prior[: n_topics // 3] = 0.0
    name = "shape" if isinstance(case.model, pb.PoissonFactorAnalysis) else "doc_topic_prior"
    return case._replace(options=case.options | {name: prior[None]})


def regression(rng: Rng) -> Case:
    """Dirichlet-multinomial regression."""
    n_topics = size(rng, 5, 60)
    phi, x = topics(rng, n_topics), np.array([[1.0, *rng.normal(size=2)]])
    coefficients = rng.normal(0, 0.7, (n_topics, 3)) - [1.5, 0, 0]
    model = pb.DocumentModel.dirichlet(phi, coefficients=coefficients)
    theta = rng.dirichlet(np.exp(x @ coefficients.T)[0] + 0.01)[None]
    return Case(model, drawn(rng, theta @ phi, size(rng, 10, 300)), {"covariates": x})


def mixture(rng: Rng) -> Case:
    """One component a document."""
    phi, weights = topics(rng, size(rng, 2, 50)), rng.gamma(0.5, size=300)
    weights = weights[: len(phi)] / weights[: len(phi)].sum()
    counts = drawn(rng, phi[[rng.integers(len(phi))]], size(rng, 1, 300))
    truth = float(np.logaddexp.reduce(np.log(weights) + np.log(phi) @ counts[0]))
    return Case(pb.DocumentModel.mixture(phi, weights), counts, truth=truth)


def logistic_normal(rng: Rng, low: int, high: int) -> Case:
    """Correlated topics; up to three are integrated by quadrature."""
    n_topics, n_tokens = size(rng, low, high), size(rng, 20, 300)
    phi, s = topics(rng, n_topics, 1000, 0.05), rng.uniform(0.5, 2.0)
    loadings = rng.normal(size=(n_topics, 5)) / np.sqrt(5)
    covariance = s**2 / 2 * (loadings @ loadings.T + np.eye(n_topics))
    eta = rng.multivariate_normal(np.zeros(n_topics), covariance)
    theta = np.exp(eta - eta.max())[None]
    model = pb.DocumentModel.logistic_normal(phi, np.zeros(n_topics), covariance)
    return Case(model, drawn(rng, theta @ phi, n_tokens), method="annealed")


SMALL: dict[str, Callable[[Rng], Case]] = {
    "small symmetric priors": partial(small, form="symmetric"),
    "small priors beside large ones": partial(small, form="one-sided"),
    "priors of all magnitudes": partial(small, form="mixed"),
    "costly rings": costly_ring,
}
# A new kind is one row: its name, and a function that draws a case.
KINDS: dict[str, Callable[[Rng], Case]] = {
    "documents of the model": lambda rng: of_prior(rng, size(rng, 5, 100)),
    "similar topics": similar,
    "few words, many tokens": repeated,
    "long documents": lambda rng: of_prior(rng, size(rng, 5, 20), n_tokens=size(rng, 500, 2000)),
    "two topics, 2,000 tokens": lambda rng: of_prior(rng, 2, n_tokens=2000),
    "a prior for each document": own_prior,
    "covariates of the prior": regression,
    "one component a document": mixture,
    "logistic normal, two topics": partial(logistic_normal, low=2, high=2),
    "logistic normal, 5 to 20 topics": partial(logistic_normal, low=5, high=20),
    "logistic normal, 20 to 50 topics": partial(logistic_normal, low=20, high=50),
}


def true_value(case: Case, found: Any) -> tuple[float, float] | None:
    """The value, and its error: known, a sum, or a longer run of another path, if one will do."""
    if case.truth is not None:
        return case.truth, 0.0
    if case.method == "auto" and is_ring(case.model.components_):
        return ring_value(case.model, case.counts, **case.options), 0.0
    options: dict[str, Any] = {"n_jobs": 1, "random_state": 99} | case.options
    try:
        exact = pb.log_likelihood(case.model, case.counts, "exact", budget=SUMMED, **options)
        return exact.total, exact.total_std_error
    except (pb.exceptions.BudgetExceededError, pb.exceptions.InvalidArgumentError):
        pass
    if found.methods[0] == "annealed" and case.method == "auto":
        options["options"] = {"start": "lowered"}
    largest = min(max(found.total_std_error, 0.02), LARGEST_ERROR)
    for n_operations in LONG:
        most = n_operations / (32.0 * case.counts.sum() * len(case.model.components_))
        options |= {"n_samples": max(int(most), 200), "n_replicates": 32}
        long = pb.log_likelihood(case.model, case.counts, "annealed", **options)
        if long.total_std_error <= largest:
            # ln of a mean is low by half its squared error.
            return long.total + long.total_std_error**2 / 2, long.total_std_error
    return None


def outcomes(
    draw: Callable[[Rng], Case], rng: Rng, n: int, n_estimates: int = 1
) -> Iterator[Outcome]:
    """Estimates of documents, of which none is summed unless no method estimates it.

    Documents whose value no long run finds are left out.
    """
    for _ in range(n):
        case = draw(rng)
        options = {"n_jobs": 1} | case.options
        if case.method == "auto":
            options["budget"] = SAMPLED
        score = partial(pb.log_likelihood, case.model, case.counts, case.method, **options)
        seeds = [int(rng.integers(2**31)) for _ in range(n_estimates)]
        estimates = [score(random_state=seed) for seed in seeds]
        known = true_value(case, estimates[0])
        for found in estimates if known is not None else ():
            error = np.hypot(found.total_std_error, known[1])
            yield Outcome(found.total - known[0], error, bool(doubted(found)[0]))


SIMULATORS: dict[str, Simulator] = {
    name: partial(outcomes, draw, n_estimates=N_ESTIMATES) for name, draw in SMALL.items()
} | {name: partial(outcomes, draw) for name, draw in KINDS.items()}
