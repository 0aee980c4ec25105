"""Poisson factor analysis (Zhou et al. 2012, Zhou & Carin 2013), and the errata of its notes."""

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from benches.papers.figure import Picture, Row, figure, mean_and_error
from benches.papers.l2r import corpus

import polyabayes as pb
from polyabayes._support.arrays import Floats, Integers

PRIORS = ("nmf", "gap", "gamma", "beta-gamma", "beta-gamma-gamma")


def from_triplets(n_documents: int) -> pb.Corpus:
    """The first documents of AP by way of a file of triplets: document, word, count."""
    counts = corpus("ap").counts[:n_documents].tocoo()
    triplets = np.column_stack([counts.row + 1, counts.col + 1, counts.data])
    with TemporaryDirectory() as folder:
        path = Path(folder) / "docword.ap.txt"
        head = "\n".join(map(str, (*counts.shape, counts.nnz)))
        np.savetxt(path, triplets, fmt="%d", header=head, comments="")
        return pb.read_corpus(path)


@figure(
    "pfa",
    "perplexity",
    "Plug-in perplexity against sweeps",
    small={"documents": 200, "topics": 20, "sweeps": 40, "every": 10},
    picture=Picture("sweeps", "perplexity", "prior", log="y"),
)
def perplexity(documents=2_246, topics=100, sweeps=200, every=20) -> Iterator[Row]:
    """Plug-in perplexity (26) of a tenth of the tokens along one fit, by sweeps."""
    observed, held_out = pb.split_tokens(from_triplets(documents), 0.1, random_state=0)
    for prior in PRIORS:
        found: list[float] = []
        model = pb.PoissonFactorAnalysis(topics, prior=prior, max_iter=sweeps, random_state=0)
        model.fit(
            observed,
            eval_every=every,
            callback=lambda fit, to=found: to.append(
                pb.plug_in_perplexity(fit, observed, held_out)
            ),
        )
        for look, value in enumerate(found, 1):
            yield {"prior": prior, "sweeps": look * every, "perplexity": value}


def tables_drawn(counts: Integers, parameter: float, rng: np.random.Generator) -> Integers:
    """Chinese restaurant tables: the sum over n of Bernoulli(parameter / (parameter + n - 1))."""
    return np.array(
        [(rng.random(n) < parameter / (parameter + np.arange(n))).sum() for n in counts]
    )


def shape_chain(n_sweeps: int, printed: bool, seed: int) -> Floats:
    """Joint draws of r and of data from r, as a test of the sampler of r.

    Sixty documents of one topic, p = 1/2, r ~ Gamma(4, rate 4). Whatever the data, a right sampler
    leaves r at its prior. The printed (20) draws tables with p where r belongs.
    """
    rng = np.random.default_rng(seed)
    n_documents, p, r = 60, 0.5, 1.0
    draws = np.empty(n_sweeps)
    for sweep in range(n_sweeps):
        counts = rng.negative_binomial(r, 1 - p, n_documents)
        tables = tables_drawn(counts, p if printed else r, rng).sum()
        r = rng.gamma(4 + tables, 1 / (4 - n_documents * np.log1p(-p)))
        draws[sweep] = r
    return draws


def probability_chain(n_sweeps: int, printed: bool, seed: int) -> Floats:
    """The same of p ~ Beta(c e, c (1 - e)), c = 8, e = 1/4; (17) has c (1 - e) twice."""
    rng = np.random.default_rng(seed)
    n_documents, r, p = 60, 1.0, 0.25
    first, second = (6.0, 6.0) if printed else (2.0, 6.0)
    draws = np.empty(n_sweeps)
    for sweep in range(n_sweeps):
        total = rng.negative_binomial(r, 1 - p, n_documents).sum()
        p = rng.beta(first + total, second + n_documents * r)
        draws[sweep] = p
    return draws


@figure("pfa", "errata", "Samplers of printed and corrected formulas")
def errata() -> Iterator[Row]:
    """Prior means of r and p under samplers of the printed formulas, and of the corrected ones."""
    n_sweeps = 20_000
    for quantity, chain, truth in (("r", shape_chain, 1.0), ("p", probability_chain, 0.25)):
        for printed in (True, False):
            draws = chain(n_sweeps, printed, 0)
            mean, error = mean_and_error(draws.reshape(20, -1).mean(axis=1))
            formula = "printed" if printed else "corrected"
            row = {"quantity": quantity, "formula": formula, "mean": mean, "error": error}
            yield row | {"prior mean": truth}
