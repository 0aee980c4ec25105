"""Exact values of documents under topics in a ring.

Group g of the words is likely in topics g - 1 and g, and equally unlikely in all others. The n
tokens of topic k contribute (e S + (1 - e) (x_k + x_{k+1}))^n, with a variable x_g for each group
and S for the sum of all. What each topic takes of its own two groups is summed around the ring; the
rest of all groups is a coefficient of a power of S.
"""

from typing import Any

import numpy as np
from scipy.special import gammaln

from polyabayes._support.arrays import Floats

# Most tokens outside their topics: the least unlikely of them cost 7 nats each.
MOST_OUTSIDE = 40


def is_ring(phi: Floats) -> bool:
    """Whether topics have two probabilities each, as in a ring."""
    return len(phi) > 2 and len(np.unique((phi / phi.max(axis=1, keepdims=True)).round(12))) == 2


def ring_value(model: Any, counts: Any, exposure: float = 1.0) -> float:
    """Ln p of one document: of its tokens under LDA, of its counts under gamma-Poisson factors."""
    counts, phi = np.asarray(counts).ravel(), model.components_
    if hasattr(model, "doc_topic_prior_"):
        prior, scale = model.doc_topic_prior_, np.ones(len(phi))
        ln_rest = gammaln(prior.sum()) - gammaln(prior.sum() + counts.sum())
    else:
        prior, odds = model.shape_, exposure * model.probability_ / (1 - model.probability_)
        scale = odds / (1 + odds)
        ln_rest = -prior @ np.log1p(odds) - gammaln(counts + 1).sum()
    return float(ln_rest + Ring(prior, scale, phi).ln_sum(counts.reshape(len(phi), -1).sum(axis=1)))


class Ring:
    """An urn of topics in a ring, whose probabilities of words are multiplied by `scale`."""

    def __init__(self, prior: Floats, scale: Floats, phi: Floats) -> None:
        self.prior, self.ln_q = prior, np.log(scale * phi.max(axis=1))
        self.outside = (phi.min(axis=1) / phi.max(axis=1))[0]

    def ln_sum(self, groups: Any) -> float:
        """Ln of the sum over the topics of all tokens, given the number of tokens of each group."""
        n_topics, most = len(groups), min(groups.sum(), MOST_OUTSIDE)
        ln_factorials, ln_values = gammaln(np.arange(groups.sum() + 1) + 1.0), []
        for first in range(groups[0] + 1):
            # By tokens of the next group, tokens outside, and what earlier groups leave for them.
            start, ln_scale = self._taken(0, np.array([first]), groups[1], most)
            states = np.zeros((groups[1] + 1, most + 1, most + 1))
            states[:, :, 0] = start[0]
            for topic in range(1, n_topics):
                n = groups[topic]
                left = np.zeros((n + 1, most + 1, most + 1))
                for used, own in np.ndindex(len(states), n + 1):
                    if 0 <= (rest := n - used - own) <= most:
                        factor = np.exp(-ln_factorials[rest])
                        left[own, :, rest:] += factor * states[used, :, : most + 1 - rest]
                last = groups[0] - first if topic == n_topics - 1 else groups[topic + 1]
                taken, ln_taken = self._taken(topic, np.arange(n + 1), last, most)
                states = np.zeros((last + 1, most + 1, most + 1))
                for m in range(most + 1):
                    states[:, m:] += np.einsum(
                        "uv,ujr->vjr", taken[:, :, m], left[:, : most + 1 - m]
                    )
                ln_scale += ln_taken + np.log(states.max())
                states /= states.max()
            total = 0.0
            for used, m in np.ndindex(len(states), most + 1):
                if 0 <= (rest := groups[0] - first - used) <= m:
                    ln_orders = ln_factorials[m] - ln_factorials[rest]
                    total += states[used, m, m - rest] * np.exp(ln_orders)
            ln_values.append(ln_scale + np.log(total) if total > 0 else -np.inf)
        return float(np.logaddexp.reduce(ln_values) + ln_factorials[groups].sum())

    def _taken(self, topic: int, first: Any, last: int, most: int) -> tuple[Floats, float]:
        """Weights by tokens of its two groups and outside, over the largest, and ln of that."""
        own, outside = first[:, None, None] + np.arange(last + 1)[:, None], np.arange(most + 1)
        n = own + outside
        orders = gammaln(first[:, None, None] + 1.0) + gammaln(np.arange(last + 1)[:, None] + 1.0)
        ln_rising = gammaln(self.prior[topic] + n) - gammaln(self.prior[topic])
        ln_words = own * np.log1p(-self.outside) + outside * np.log(self.outside)
        ln_weights = ln_rising + ln_words + n * self.ln_q[topic] - orders - gammaln(outside + 1.0)
        return np.exp(ln_weights - ln_weights.max()), float(ln_weights.max())
