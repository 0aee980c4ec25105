"""Documents under bursty topics whose likelihood is a sum over the splits of a few words.

Most words belong to one topic, so that it is known which topic has their tokens. The others are
shared by all topics: the sum goes over their tokens in each topic, K convolutions over a box.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from benches.truth.coverage import SAMPLED, doubted
from benches.truth.table import Outcome, Simulator
from scipy.special import gammaln, logsumexp

import polyabayes as pb
from polyabayes._support.arrays import Floats

Rng = np.random.Generator
Range = tuple[float, float]
# Cells of the box times topics beyond the second, of a document; stands for a probability of zero.
MOST_CELLS, NO_PROBABILITY = 4e3, 1e-300


class Kind(NamedTuple):
    """Ranges of what is drawn: sizes and pseudo-counts log-uniform."""

    topics: Range = (2, 20)
    tokens: Range = (1, 2000)
    concentration: Range = (0.1, 1e4)
    prior: Range = (0.01, 2)
    shared: Range = (1, 3)
    own: Range = (0, 5)
    unbursty: float = 0.0
    alike: float = 0.0
    gamma_poisson: bool = False


def log_uniform(rng: Rng, ends: Range, size: Any = None) -> Any:
    return np.exp(rng.uniform(*np.log(ends), size))


def ln_rising(a: Any, n: Any) -> Any:
    return gammaln(a + n) - gammaln(a)


def ln_words(s: float, phi: Any, c: Any) -> Any:
    """Weight of c tokens of a word, but for that of their topic."""
    phi = np.maximum(phi, NO_PROBABILITY)
    return c * np.log(phi) if np.isinf(s) else ln_rising(s * phi, c)


def ln_likelihood(prior: Floats, phi: Floats, s: Floats, counts: Any, p: Floats | None) -> float:
    """Of the tokens in order under LDA; of the counts under gamma-Poisson, which has p."""
    is_own = (phi > 0).sum(axis=0) == 1
    splits = np.indices(counts[~is_own] + 1)
    total = np.full(splits.shape[1:], -np.inf)
    total[(0,) * total.ndim] = 0.0
    for k in range(len(prior)):
        own = is_own & (phi[k] > 0)
        n = counts[own].sum() + splits.sum(axis=0)
        term = ln_rising(prior[k], n) - (0 if np.isinf(s[k]) else ln_rising(s[k], n))
        term = term + ln_words(s[k], phi[k, own], counts[own]).sum()
        for c, x in zip(splits, phi[k, ~is_own], strict=True):
            term = term + ln_words(s[k], x, c) - gammaln(c + 1)
        if p is not None:
            term = term + n * np.log(p[k]) + prior[k] * np.log1p(-p[k])
        if k == len(prior) - 1:
            break
        added, before = np.full_like(total, -np.inf), total
        for c in np.argwhere(np.isfinite(before)):
            there = tuple(slice(x, None) for x in c)
            here = tuple(slice(None, -x or None) for x in c)
            added[there] = np.logaddexp(added[there], term[here] + before[tuple(c)])
        total = added
    ln_sum = float(logsumexp(np.flip(total) + term))
    if p is not None:
        return ln_sum - float(gammaln(counts[is_own] + 1).sum())
    of_shared = gammaln(counts[~is_own] + 1).sum()
    return ln_sum + float(of_shared - ln_rising(prior.sum(), counts.sum()))


def drawn(rng: Rng, kind: Kind) -> tuple[Any, Any, Floats, float]:
    """A model, a document, its exposureless counts, and the true value."""
    n_topics = round(log_uniform(rng, kind.topics))
    n_shared = int(rng.integers(*kind.shared, endpoint=True))
    own = rng.integers(*kind.own, endpoint=True, size=n_topics) + (n_topics == 1 or not n_shared)
    shared = np.empty((n_topics, 0))
    if n_shared:
        shared = rng.dirichlet(np.full(n_shared, 0.5), n_topics)
    if kind.alike:
        shared = shared[:1] * np.exp(rng.normal(0, kind.alike, shared.shape))
    phi = np.hstack([np.maximum(shared, 1e-6), np.zeros((n_topics, own.sum()))])
    for k, end in enumerate(n_shared + own.cumsum()):
        phi[k, end - own[k] : end] = rng.gamma(0.5, size=own[k]) + 1e-3
    phi /= phi.sum(axis=1, keepdims=True)
    s = log_uniform(rng, kind.concentration, n_topics)
    s[rng.random(n_topics) < kind.unbursty] = np.inf
    prior = log_uniform(rng, kind.prior) * rng.gamma(2, 0.5, n_topics) + 1e-6
    theta = rng.dirichlet(np.maximum(prior, 0.05))
    parameters = np.minimum(s, 1e6)[:, np.newaxis] * phi + 1e-3
    versions = np.array([rng.dirichlet(row) for row in parameters])
    versions = versions * (phi > 0) + 1e-12 * phi
    words = theta @ versions
    most = min(kind.tokens[1], 2e4 / n_topics)
    n_tokens = round(log_uniform(rng, (kind.tokens[0], most)))
    counts = np.minimum(rng.multinomial(n_tokens, words / words.sum()), 200)
    while (counts[:n_shared] + 1.0).prod() * max(n_topics - 2, 0.1) > MOST_CELLS:
        counts[:n_shared] //= 2
    return prior, phi, s, counts


def outcomes(kind: Kind, rng: Rng, n: int) -> Iterator[Outcome]:
    """Estimates of documents, of which none is summed unless no method estimates it."""
    for _ in range(n):
        prior, phi, s, counts = drawn(rng, kind)
        p = rng.uniform(0.2, 0.9, len(prior)) if kind.gamma_poisson else None
        known = {"topic_word": phi, "topic_concentration": s}
        model = (
            pb.LatentDirichletAllocation.from_parameters(doc_topic_prior=prior, **known)
            if p is None
            else pb.PoissonFactorAnalysis.from_parameters(shape=prior, probability=p, **known)
        )
        options = {"n_jobs": 1, "random_state": int(rng.integers(2**31)), "budget": SAMPLED}
        found = pb.log_likelihood(model, [counts], **options)
        truth = ln_likelihood(prior, phi, s, counts, p)
        yield Outcome(found.total - truth, found.total_std_error, bool(doubted(found)[0]))


KINDS = {
    "one topic": Kind(topics=(1, 1), shared=(0, 0), own=(1, 60)),
    "topics of their own words": Kind(topics=(2, 100), shared=(0, 0)),
    "two topics, shared words": Kind(topics=(2, 2)),
    "a few topics": Kind(),
    "many topics": Kind(topics=(20, 100)),
    "short documents": Kind(tokens=(1, 12), shared=(2, 5), own=(0, 0)),
    "long documents": Kind(tokens=(500, 2000), topics=(2, 10)),
    "very bursty topics": Kind(concentration=(0.1, 3)),
    "tiny concentrations": Kind(concentration=(1e-12, 0.01), prior=(1e-4, 2)),
    "hardly bursty topics": Kind(concentration=(300, 1e4)),
    "some topics without bursts": Kind(unbursty=0.5),
    "small pseudo-counts": Kind(prior=(1e-6, 1e-2)),
    "similar topics": Kind(alike=0.3, own=(0, 1)),
    "gamma-Poisson": Kind(gamma_poisson=True),
    "gamma-Poisson, short documents": Kind(
        tokens=(1, 12), shared=(2, 5), own=(0, 0), gamma_poisson=True
    ),
}
SIMULATORS: dict[str, Simulator] = {
    f"bursty: {name}": partial(outcomes, kind) for name, kind in KINDS.items()
}
