"""KL-NMF and LDA are one network (section 3.5 of Cemgil et al. 2019)."""

import itertools

import numpy as np
import pytest
from scipy.special import gammaln, logsumexp
from sklearn.decomposition import NMF

from polyabayes import AllocationModel

COUNTS = np.array([[2, 1, 0], [0, 1, 3]])
LARGER = np.random.default_rng(2).poisson(np.outer([3, 9, 1, 5], [4, 1, 2, 6, 1]) / 4)


def ln_dirichlet_multinomial(counts, alpha):
    """Ln of the probability of a sequence of draws with these totals."""
    total, n = sum(counts), len(counts)
    rising = sum(float(gammaln(alpha + x) - gammaln(alpha)) for x in counts)
    return rising + float(gammaln(n * alpha) - gammaln(n * alpha + total))


def ln_lda(counts, n_topics, alpha, beta):
    """Ln of the probability of all words in order under LDA, topics and weights integrated out."""
    tokens = [(d, w) for (d, w), x in np.ndenumerate(counts) for _ in range(x)]
    n_documents, n_words = counts.shape
    terms = []
    for topics in itertools.product(range(n_topics), repeat=len(tokens)):
        weights = np.zeros((n_documents, n_topics), dtype=int)
        words = np.zeros((n_topics, n_words), dtype=int)
        for (document, word), topic in zip(tokens, topics, strict=True):
            weights[document, topic] += 1
            words[topic, word] += 1
        of_weights = sum(ln_dirichlet_multinomial(row, alpha) for row in weights.tolist())
        of_words = sum(ln_dirichlet_multinomial(row, beta) for row in words.tolist())
        terms.append(of_weights + of_words)
    return float(logsumexp(terms))


@pytest.mark.parametrize("n_topics", [1, 2])
@pytest.mark.parametrize("concentration", [0.3, 2.0])
def test_given_the_documents_the_evidence_of_nmf_is_that_of_lda(n_topics, concentration):
    n_documents, n_words = COUNTS.shape
    model = AllocationModel.nmf(n_topics, concentration=concentration)
    found = model.log_evidence(COUNTS, "exact", given_total=True).value
    alpha = concentration / (n_documents * n_topics)
    beta = concentration / (n_topics * n_words)
    lengths = COUNTS.sum(axis=1).tolist()
    ln_orders = float(gammaln(COUNTS.sum() + 1) - gammaln(COUNTS + 1).sum())
    ln_documents = ln_dirichlet_multinomial(lengths, concentration / n_documents)
    ln_words = ln_lda(COUNTS, n_topics, alpha, beta)
    assert found == pytest.approx(ln_documents + ln_words + ln_orders, abs=1e-10)


def test_the_largest_likelihood_is_the_least_kl_divergence():
    tables = AllocationModel.nmf(2).decompose(LARGER, "ml", random_state=0).tables
    fitted = LARGER.sum() * (tables["doc"] * tables["topic"]) @ tables["word"].T
    divergences = []
    for seed in range(4):
        least = NMF(
            2,
            beta_loss="kullback-leibler",
            solver="mu",
            init="random",
            max_iter=5_000,
            tol=0,
            random_state=seed,
        )
        weights = least.fit_transform(LARGER.astype(float))
        divergences.append(kl(weights @ least.components_))
    assert kl(fitted) == pytest.approx(min(divergences), abs=1e-4)


def kl(fitted):
    """Generalised Kullback-Leibler divergence of the counts from a fit, in nats."""
    seen = LARGER > 0
    logs = LARGER[seen] * np.log(LARGER[seen] / fitted[seen])
    return float(logs.sum() - LARGER.sum() + fitted.sum())
