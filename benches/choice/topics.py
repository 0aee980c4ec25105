"""Corpora drawn from LDA with a known number of topics, in the design of arXiv:2212.14074.

Few and many topics and documents, short and long ones, topics apart and alike, equal and unequal
weights; one where hardly anything can be told.
"""

import math
import time
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import tomotopy
from benches.choice import ldatuning
from benches.choice.pieces import Case, Choice, Method, Part, by_choice, grid, least
from benches.record import texts, timed
from gensim.corpora import Dictionary
from gensim.matutils import Sparse2Corpus
from gensim.models import CoherenceModel, LdaModel
from sklearn.decomposition import LatentDirichletAllocation as SklearnLDA

import polyabayes as pb


class Regime(NamedTuple):
    """How corpora are drawn; `unequal` weights of topics fall by a fifth from each to the next."""

    n_topics: int = 8
    n_documents: int = 300
    length: int = 80
    topic_word_prior: float = 0.05
    unequal: bool = False


REGIMES = {
    "base": Regime(),
    "2 topics": Regime(n_topics=2),
    "3 topics": Regime(n_topics=3),
    "20 topics": Regime(n_topics=20, n_documents=600),
    "50 topics": Regime(n_topics=50, n_documents=1_000, length=100),
    "short": Regime(length=15, n_documents=600),
    "long": Regime(length=300, n_documents=100),
    "few": Regime(n_documents=60),
    "many": Regime(n_documents=1_000),
    "alike": Regime(topic_word_prior=0.3),
    "unequal": Regime(unequal=True),
    "few, short, alike": Regime(n_documents=60, length=15, topic_word_prior=0.3),
}
N_WORDS = 300


def drawn(regime: Regime, seed: int) -> Case:
    """A corpus of the regime, with words."""
    prior: Any = 0.1
    if regime.unequal:
        shares = 0.8 ** np.arange(regime.n_topics)
        prior = 0.1 * regime.n_topics * shares / shares.sum()
    sizes = regime.n_documents, N_WORDS, regime.n_topics
    law = {"document_length": regime.length, "topic_word_prior": regime.topic_word_prior}
    law |= {"doc_topic_prior": prior, "random_state": seed}
    counts = pb.datasets.make_lda_corpus(*sizes, **law).corpus.counts
    corpus = pb.Corpus(counts, vocabulary=[f"w{i}" for i in range(N_WORDS)])
    return Case(regime.n_topics, corpus, grid(max(3 * regime.n_topics, 12)))


def by_scikit_learn(case: Case) -> dict[str, Choice]:
    """The size of the least perplexity of a fifth of the documents."""
    seen, held_out = case.data.split(0.2, random_state=0)
    perplexities = {
        size: SklearnLDA(size, random_state=0).fit(seen.counts).perplexity(held_out.counts)
        for size in case.sizes
    }
    return {"scikit-learn, perplexity of held-out documents": Choice(least(perplexities))}


def by_hdp(case: Case) -> dict[str, Choice]:
    """Live topics of tomotopy's hierarchical Dirichlet process after 1,000 sweeps."""
    model = tomotopy.HDPModel(initial_k=10, seed=0)
    for words in texts(case.data):
        model.add_doc(words)
    model.train(1_000, workers=1)
    return {"tomotopy, HDP": Choice(model.live_k)}


def by_gensim(case: Case) -> dict[str, Choice]:
    """Coherence C_V of gensim's own fits, as its users choose."""
    corpus, documents = list(Sparse2Corpus(case.data.counts.T)), texts(case.data)
    words = [str(word) for word in case.data.vocabulary]
    dictionary = Dictionary()
    dictionary.token2id = {word: i for i, word in enumerate(words)}
    costs = {}
    for size in case.sizes:
        model = LdaModel(corpus, size, dict(enumerate(words)), passes=10, random_state=0)
        tops = [[words[i] for i in np.argsort(-topic)[:10]] for topic in model.get_topics()]
        measure = CoherenceModel(
            topics=tops, texts=documents, dictionary=dictionary, coherence="c_v", processes=1
        )
        costs[size] = -measure.get_coherence()
    return {"gensim, coherence C_V": Choice(least(costs))}


def fitted(case: Case, seed: int) -> tuple[dict[int, Any], dict[int, list[float]]]:
    """An LDA of every size, priors learned; ln p(words | topics of tokens) of some sweeps."""
    models, looks = {}, {}
    for size in case.sizes:
        models[size] = pb.LatentDirichletAllocation(size, random_state=seed)
        looks[size] = ldatuning.fit_and_look(models[size], case.data)
    return models, looks


def by_our_fits(case: Case) -> dict[str, Choice]:
    """The criteria that read trained topics, each with the seconds of training."""
    (models, looks), training = timed(fitted, case, 0)
    lengths = np.asarray(case.data.counts.sum(axis=1), dtype=float).ravel()

    def coherence(size: int, kind: str) -> float:
        return -float(np.mean(pb.topics.coherence(models[size], case.data, kind)))

    def arun(size: int) -> float:
        shares = models[size].transform(case.data)
        return ldatuning.arun_2010(models[size].components_, shares, lengths)

    costs: dict[str, Callable[[int], float]] = {
        "Griffiths & Steyvers 2004": lambda k: -ldatuning.griffiths_2004(np.array(looks[k])),
        "Cao & Juan 2009": lambda k: ldatuning.cao_juan_2009(models[k].components_),
        "Arun 2010": arun,
        "Deveaud 2014": lambda k: -ldatuning.deveaud_2014(models[k].components_),
        "coherence C_V of our fits": partial(coherence, kind="c_v"),
        "coherence UMass of our fits": partial(coherence, kind="umass"),
    }
    found = {}
    for name, cost in costs.items():
        start = time.process_time()
        size = least({size: cost(size) for size in case.sizes})
        found[name] = Choice(size, seconds=training + time.process_time() - start)
    return found


def by_stability(case: Case) -> dict[str, Choice]:
    """The size whose topics two seeds agree on most."""
    one, other = (fitted(case, seed)[0] for seed in (0, 1))
    costs = {
        size: -float(np.mean(pb.topics.stability([one[size], other[size]]))) for size in case.sizes
    }
    return {"stability over seeds": Choice(least(costs))}


def by_bic(case: Case) -> dict[str, Choice]:
    """The Bayesian information criterion, documents integrated over their topic weights."""
    costs = {}
    n_words = case.data.n_words
    for size in case.sizes:
        model = pb.LatentDirichletAllocation(size, random_state=0).fit(case.data)
        found = pb.log_likelihood(model, case.data, random_state=0)
        n_parameters = size * (n_words - 1) + size
        costs[size] = n_parameters * math.log(case.data.n_documents) / 2 - found.total
    return {"BIC": Choice(least(costs))}


METHODS: dict[str, Method] = {
    "choose": by_choice(pb.LatentDirichletAllocation()),
    "fits": by_our_fits,
    "hdp": by_hdp,
    "scikit-learn": by_scikit_learn,
    "stability": by_stability,
    "bic": by_bic,
    "gensim": by_gensim,
}

TOPICS = Part("topics", REGIMES, drawn, METHODS, vague=frozenset({"few, short, alike"}))
