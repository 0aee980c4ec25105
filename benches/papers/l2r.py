"""Capdevila et al. (2018), left-to-right likelihood estimation in gamma-Poisson factor analysis."""

import csv
import json
import math
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from typing import Any, NamedTuple, Self

import numpy as np
from benches import record
from benches.papers.figure import PARTS, Picture, Row, figure, halves, mean_and_error
from benches.record import DATA
from scipy import special

import polyabayes as pb
from polyabayes._support.arrays import Floats, Integers

# Table 1 of the paper: words, documents, mean and standard deviation of the lengths.
PUBLISHED = {
    "ap": (10_473, 2_246, 194, 111),
    "20ng": (11_928, 18_846, 123, 247),
    "reuters": (8_843, 19_043, 79, 75),
    "web_snippets": (4_679, 12_309, 9, 3),
    "l2r_nips100": (11_463, 5_811, 1_899, 513),
    "l2r_twitter100": (6_344, 10_523, 25, 4),
}
l2r = partial(figure, "l2r")
# Their limit of what could be summed: the terms of the exact sum of a document.
MOST_TERMS = 1e9
# Sweeps of the published models.
N_SWEEPS = 1_000
# Tokens up to which the exact lattice of five topics takes a second a document.
LONGEST_EXACT = 150


@cache
def corpus(name: str) -> pb.Corpus:
    """A collection; 20 Newsgroups with the words of 11 documents or more, as published."""
    read = record.corpus(name)
    if name != "20ng":
        return read
    kept = np.asarray((read.counts > 0).sum(axis=0)).ravel() >= 11
    return pb.Corpus(read.counts[:, np.flatnonzero(kept)], vocabulary=read.vocabulary[kept])


def most_frequent(documents: pb.Corpus, n_words: int) -> pb.Corpus:
    """The same documents, cut to their most frequent words."""
    total = np.asarray(documents.counts.sum(axis=0)).ravel()
    return pb.Corpus(documents.counts[:, np.sort(np.argsort(-total, kind="stable")[:n_words])])


@cache
def trained(name: str, n_words: int, n_topics: int, n_sweeps: int) -> pb.PoissonFactorAnalysis:
    """The model of the paper: alpha = 0.1, r = 1, c = 1, eps = 1 / K.

    Those of the published number of sweeps are trained once for all figures, and kept.
    """
    folder = PARTS / "l2r-models" / f"{name}-{n_words}-{n_topics}"
    return pb.PoissonFactorAnalysis(
        n_topics,
        prior="beta-gamma",
        max_iter=n_sweeps,
        random_state=0,
        checkpoint=folder if n_sweeps == N_SWEEPS else None,
    ).fit(most_frequent(corpus(name), n_words))


def n_terms(counts: Integers, n_topics: int) -> float:
    """Terms of the sum over partitions of every word's count, Π C(y + K - 1, K - 1)."""
    present = counts[counts > 0]
    return math.exp(
        sum(math.lgamma(y + n_topics) - math.lgamma(y + 1) - math.lgamma(n_topics) for y in present)
    )


def short_enough(documents: pb.Corpus, n_topics: int, most: int) -> pb.Corpus:
    """The first documents of two words or more whose exact sum the paper could take."""
    dense = documents.counts.toarray()
    chosen = [
        row
        for row in range(len(dense))
        if (dense[row] > 0).sum() > 1 and n_terms(dense[row], n_topics) < MOST_TERMS
    ]
    return pb.Corpus(dense[chosen[:most]])


@l2r("table1", "Collections", "6.1, Table 1")
def table1() -> Iterator[Row]:
    """Sizes of the collections beside the published ones."""
    for name, (n_words, n_documents, mean, deviation) in PUBLISHED.items():
        found = corpus(name).summary()
        row = {"corpus": name, "documents": found.n_documents, "words": found.n_words}
        row |= {"mean length": found.mean_length, "sd of length": found.sd_length}
        row |= {"published documents": n_documents, "published words": n_words}
        yield row | {"published mean": mean, "published sd": deviation}


# Methods of Figure 2 and ours, by the names of the legend. The published L2R averages word by word
# along one chain, as the sequential form does token by token; `l2r` averages whole runs.
METHODS: dict[str, dict[str, Any]] = {
    "L2R, one draw": {"method": "l2r", "options": {"n_conditional_samples": 1}},
    "L2R, exact conditionals": {"method": "l2r"},
    "L2R, one chain": {"method": "left-to-right-sequential"},
    "direct": {"method": "direct"},
    "harmonic": {"method": "harmonic"},
    "smc-lookahead": {"method": "smc-lookahead"},
    "annealed": {"method": "annealed"},
}
# Methods whose time grows with the square of the length.
QUADRATIC = ("l2r", "left-to-right-sequential")


def divergences(
    model: Any, documents: pb.Corpus, sizes: Sequence[int], n_repeats: int
) -> Iterator[Row]:
    """KL from exact to estimated, by method and number of samples."""
    exact = pb.log_likelihood(model, documents, "exact", budget=1e12)
    for name, choice in METHODS.items():
        for size in sizes:
            found = [
                halves(model, documents, n_samples=size, random_state=seed, **choice).values
                for seed in range(n_repeats)
            ]
            mean, error = mean_and_error(pb.estimator_divergence(exact, x) for x in found)
            worst = max(float(np.abs(x - exact.values).max()) for x in found)
            row = {"method": name, "samples": size, "KL": mean, "error": error}
            yield row | {"largest |ln p̂ - ln p|": worst, "documents": documents.n_documents}


def of_every_length(documents: pb.Corpus, _: int, most: int) -> pb.Corpus:
    """The first documents of one token or more, and so few that the lattice takes a second."""
    lengths = np.asarray(documents.counts.sum(axis=1)).ravel()
    chosen = np.flatnonzero((lengths > 0) & (lengths <= LONGEST_EXACT))
    return pb.Corpus(documents.counts[chosen[:most]])


SMALL = {"collections": ["l2r_twitter100"], "sweeps": 50}


@l2r(
    "fig2",
    "KL to exact against samples",
    "6.2, Figures 1 and 2",
    small={**SMALL, "documents": 60, "samples": [10, 100], "repeats": 3},
    middle={"documents": 200},
    picture=Picture("samples", "KL", "method", panel="corpus", error="error", log="xy"),
)
def figure2(
    collections=tuple(PUBLISHED),
    words=100,
    topics=5,
    sweeps=N_SWEEPS,
    documents=1_000,
    samples=(10, 30, 100, 300, 1_000, 3_000, 10_000),
    repeats=10,
    *,
    choose: Callable[[pb.Corpus, int, int], pb.Corpus] = short_enough,
) -> Iterator[Row]:
    """Documents whose exact sum has fewer terms than the paper could take, or others."""
    for name in collections:
        model = trained(name, words, topics, sweeps)
        chosen = choose(most_frequent(corpus(name), words), topics, documents)
        if chosen.n_documents > 1:
            length = chosen.summary().mean_length
            for row in divergences(model, chosen, samples, repeats):
                yield {"corpus": name, "mean length": length, **row}


@l2r(
    "fig2-all",
    "The same, documents of up to 150 tokens",
    small={**SMALL, "documents": 40, "samples": [10, 100], "repeats": 3},
    middle={"documents": 60, "repeats": 3},
)
def figure2_all(
    collections=tuple(PUBLISHED),
    words=100,
    topics=5,
    sweeps=N_SWEEPS,
    documents=1_000,
    samples=(10, 100, 1_000),
    repeats=10,
) -> Iterator[Row]:
    """Documents whose exact sum takes a second."""
    settings = collections, words, topics, sweeps, documents, samples, repeats
    return figure2(*settings, choose=of_every_length)


@l2r(
    "fig3",
    "ln p, K = 100, all words",
    "6.3, Figure 3",
    small={"collections": ["ap"], "sweeps": 20, "documents": 5, "samples": [10]},
    middle={"collections": ["ap"], "sweeps": 500, "documents": 50},
    picture=Picture("samples", "mean ln p", "method", log="x"),
)
def figure3(
    collections=tuple(PUBLISHED),
    topics=100,
    sweeps=N_SWEEPS,
    documents=1_000,
    samples=(10, 100, 1_000),
) -> Iterator[Row]:
    """All words: mean ln p of a document by method and number of samples."""
    for name in collections:
        own = corpus(name)
        model = trained(name, own.n_words, topics, sweeps)
        chosen = pb.Corpus(own.counts[:documents])
        long = pb.log_likelihood(model, chosen, "annealed", n_samples=1_000, random_state=0)
        for method, choice in METHODS.items():
            for n_samples in samples:
                if choice["method"] in QUADRATIC and n_samples > 100:
                    continue  # hours
                found = halves(model, chosen, n_samples=n_samples, random_state=1, **choice)
                below = (long.values - found.values).mean()
                row = {"corpus": name, "method": method, "samples": n_samples}
                yield row | {"mean ln p": found.values.mean(), "below long annealing": below}


def published_model(name: str) -> pb.PoissonFactorAnalysis:
    """A model from the authors' files."""
    parts = json.loads((DATA / f"{name}.model.json").read_text())
    return pb.PoissonFactorAnalysis.from_parameters(
        topic_word=np.array(parts["phi"]), shape=parts["r"], probability=parts["p"]
    )


class Augmented(NamedTuple):
    """A document under the model of (15) to (22): topic weights and the words' counts by topic.

    `y` has the counts of the words that occur, `phi` their topic weights (words, topics), `rest`
    those of all others together, `r` and `p` the parameters of the topics.
    """

    y: Integers
    phi: Floats
    rest: Floats
    r: Floats
    p: Floats

    @classmethod
    def of(cls, model: pb.PoissonFactorAnalysis, counts: Integers) -> Self:
        """The document with its words first, as section 5.3 has it."""
        phi, words = model.components_.T, np.flatnonzero(counts)
        rest = phi.sum(axis=0) - phi[words].sum(axis=0)
        r, p = (np.broadcast_to(x, rest.shape) for x in (model.shape_, model.probability_))
        return cls(counts[words], phi[words], rest, r, p)

    def scale(self, seen: Floats) -> Floats:
        """Scale of the topic weights given the counts of words whose weights sum to `seen`."""
        return np.asarray(self.p / (1 - self.p + self.p * seen))

    def gibbs_round(self, x: Integers, seen: Floats, rng: np.random.Generator) -> Floats:
        """One round of (15) and (16) over words whose counts by topic are `x`, in place.

        Returns the topic weights, drawn from the counts before the round.
        """
        theta = rng.gamma(self.r + x.sum(axis=1)) * self.scale(seen)
        for word in range(x.shape[1]):
            shares = theta * self.phi[word]
            shares /= shares.sum(axis=1, keepdims=True)
            x[:, word] = rng.multinomial(self.y[word], shares)
        return np.asarray(theta)


def algorithm1(
    document: Augmented, n_samples: int, n_rounds: int, rng: np.random.Generator
) -> float:
    """Algorithm 1 with S' = 1: ln of the product of means over samples side by side.

    A word's counts by topic start from the draw that weighed it; the rounds of line 3 move them on.
    """
    n_words, n_topics = document.phi.shape
    x = np.zeros((n_samples, n_words, n_topics), dtype=np.int64)
    ln_value = 0.0
    for word in range(n_words + 1):
        seen = document.phi[:word].sum(axis=0)
        for _ in range(n_rounds if word else 0):
            document.gibbs_round(x[:, :word], seen, rng)
        b, scale = document.r + x[:, :word].sum(axis=1), document.scale(seen)
        if word == n_words:  # (22), the words without counts
            ln_weights = -(b * np.log1p(scale * document.rest)).sum(axis=1)
        else:
            rates = scale * document.phi[word]
            shares = b * rates
            shares /= shares.sum(axis=1, keepdims=True)
            x[:, word] = drawn = rng.multinomial(document.y[word], shares)
            ln_negative_binomials = (
                (special.gammaln(b + drawn) - special.gammaln(b) - special.gammaln(drawn + 1))
                - (b + drawn) * np.log1p(rates)
                + drawn * np.log(rates)
            )
            ln_proposal = special.gammaln(document.y[word] + 1) + (
                special.xlogy(drawn, shares) - special.gammaln(drawn + 1)
            ).sum(axis=1)
            ln_weights = ln_negative_binomials.sum(axis=1) - ln_proposal
        ln_value += special.logsumexp(ln_weights) - math.log(n_samples)
    return float(ln_value)


def harmonic_of_weights(
    document: Augmented, n_samples: int, n_rounds: int, rng: np.random.Generator
) -> float:
    """The harmonic mean of p(y | topic weights) along one chain of (15) and (16)."""
    x = np.zeros((1, *document.phi.shape), dtype=np.int64)
    seen = document.phi.sum(axis=0) + document.rest
    ln_values = np.empty(n_samples)
    for sample in range(-(n_samples // 5), n_samples):
        for _ in range(n_rounds):
            theta = document.gibbs_round(x, seen, rng)[0]
        rates = document.phi @ theta
        ln_poisson = special.xlogy(document.y, rates) - special.gammaln(document.y + 1) - rates
        if sample >= 0:
            ln_values[sample] = ln_poisson.sum() - document.rest @ theta
    return float(math.log(n_samples) - special.logsumexp(-ln_values))


@l2r(
    "algorithm1",
    "Algorithm 1 to the letter",
    small={"rounds": [1, 3], "documents": 20, "samples": [100], "repeats": 2},
)
def to_the_letter(
    collections=("l2r_twitter100",),
    rounds=(1, 3, 10),
    documents=100,
    samples=(1_000, 10_000),
    repeats=3,
) -> Iterator[Row]:
    """Algorithm 1, and the harmonic mean over topic weights, beside the product's estimators."""
    model = published_model(collections[0])
    chosen = short_enough(corpus(collections[0]), model.n_components, documents)
    exact = pb.log_likelihood(model, chosen, "exact", budget=1e12).values
    augmented = [Augmented.of(model, counts) for counts in chosen.counts.toarray()]

    def literal(run: Callable[..., float], n_rounds: int) -> Callable[[int, int], Floats]:
        def values(size: int, seed: int) -> Floats:
            rng = np.random.default_rng(seed)
            return np.array([run(document, size, n_rounds, rng) for document in augmented])

        return values

    def ours(choice: dict[str, Any]) -> Callable[[int, int], Floats]:
        score = partial(halves, model, chosen, **choice)
        return lambda size, seed: score(n_samples=size, random_state=seed).values

    runs = {
        **{f"Algorithm 1, rounds a word: {n}": literal(algorithm1, n) for n in rounds},
        "harmonic, topic weights": literal(harmonic_of_weights, 1),
        **{name: ours(METHODS[name]) for name in ("L2R, one draw", "L2R, one chain", "direct")},
    }
    for name, values in runs.items():
        for size in samples:
            found = [values(size, seed) for seed in range(repeats)]
            kl, _ = mean_and_error(pb.estimator_divergence(exact, x) for x in found)
            mean, error = mean_and_error(float((x - exact).mean()) for x in found)
            row = {"method": name, "samples": size, "KL": kl, "mean of ln p̂ - ln p": mean}
            yield row | {"error": error, "documents": len(exact)}


@l2r("authors", "The authors' models and values", "authors' files")
def authors() -> Iterator[Row]:
    """The published models: their exact values, and all documents that they left out."""
    for name in ("l2r_twitter100", "l2r_nips100"):
        model, documents = published_model(name), corpus(name)
        path = DATA / f"{name}.exact.csv"
        if path.exists():
            with path.open() as lines:
                published = {
                    int(row[0]): float(row[1]) for row in csv.reader(lines) if row[0].isdigit()
                }
            exact = pb.log_likelihood(model, documents.counts[sorted(published)], "exact")
            differences = exact.values - [published[row] for row in sorted(published)]
            yield {
                "corpus": name,
                "quantity": "largest difference from the published exact values",
                "value": np.abs(differences).max(),
                "documents": len(published),
            }
        found = pb.log_likelihood(model, documents.counts, random_state=0)
        yield {
            "corpus": name,
            "quantity": "nats a document, by auto",
            "value": found.total / documents.n_documents,
            "error": found.total_std_error / documents.n_documents,
            "documents": documents.n_documents,
            "exact": int((found.methods == "exact").sum()),
        }
