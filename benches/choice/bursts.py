"""Bursty topics beside LDA: the choice on corpora of a known number of topics, and real corpora.

``python -m benches.choice bursts`` chooses. ``python -m benches.choice.bursts [CORPUS ...]`` trains
both models with more and more topics on four fifths of real documents, and looks at the others.
"""

import sys
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from benches.choice.laws import bursty
from benches.choice.pieces import Case, Part, by_choice
from benches.record import Table, corpus, keep, kept, save, told
from scipy.optimize import linear_sum_assignment

import polyabayes as pb
from polyabayes.sizes.choice.fits import quality, repeats


class Regime(NamedTuple):
    """Topics, the concentration around which documents draw their own, and documents."""

    n_topics: int
    concentration: int
    n_documents: int
    length: int = 80


SIZES = {5: 200, 12: 300, 30: 400}
REGIMES = {
    f"{size} topics, s = {s}": Regime(size, s, n) for s in (20, 100) for size, n in SIZES.items()
}


def drawn(regime: Regime, seed: int) -> Case:
    """A corpus of the regime; sizes are found."""
    counts = bursty(np.random.default_rng([seed, *regime]), *regime)
    return Case(regime.n_topics, pb.Corpus(counts[:, counts.any(axis=0)]), [])


MODELS = {"bursty topics": "learn", "LDA": None}
METHODS = {
    name: by_choice(pb.LatentDirichletAllocation(topic_concentration=s, n_jobs=1), f", {name}")
    for name, s in MODELS.items()
}
BURSTS = Part("bursts", REGIMES, drawn, METHODS, rests_on="bursty lda, Gibbs")

KEPT, COMMAND = "choice-bursts-curves", "python -m benches.choice.bursts"
RESTS_ON = ["lda, Gibbs", "bursty lda, Gibbs"]
CURVE_SIZES, SWEEPS, ERROR = (5, 10, 20, 40, 80), 100, 0.002
# Topics that are shown side by side, of the largest of LDA.
SHOWN, SHOWN_SIZE, SHOWN_CORPUS = 10, 20, "ap"


def trained(name: str, size: int, kind: str) -> dict[str, Any]:
    """Figures of a model on held-out documents, and the words of its topics, the largest first."""
    train, test = corpus(name).split(0.2, random_state=0)
    options: dict[str, Any] = {"n_jobs": 1, "random_state": 0}
    model = pb.LatentDirichletAllocation(
        size, topic_concentration=MODELS[kind], max_iter=SWEEPS, **options
    ).fit(train)
    found = pb.log_likelihood(
        model, test, event="sequence", given_length=True, nats_per_token_std_error=ERROR, **options
    )
    coherence, exclusivity = quality(model, test)
    words = np.asarray(train.vocabulary)
    topics = model.components_[np.argsort(-model.doc_topic_prior_)]
    return {
        "nats": found.nats_per_token,
        "repeats": repeats(model, test)[0],
        "NPMI": coherence,
        "exclusivity": exclusivity,
        "s": float(np.median(model.topic_concentration_)),
        "words": [" ".join(words[np.argsort(-topic)[:10]]) for topic in topics],
    }


def table_of_curves(pieces: dict[tuple[str, int, str], dict[str, Any]]) -> None:
    """A line a corpus and size, of both models."""
    formats = {"nats": ".3f", "repeats": ".2f", "NPMI": ".3f", "exclusivity": ".2f"}
    titles = {"nats": "nats per token", "repeats": "words repeat, times expected"}
    columns = {"corpus": "s", "topics": "d", "median s": ".0f"} | {
        f"{titles.get(name, name)}, {kind}": formats[name] for name in formats for kind in MODELS
    }
    table = Table(KEPT, COMMAND, columns, RESTS_ON)
    for name, size in sorted({key[:2] for key in pieces}):
        of = [pieces[name, size, kind] for kind in MODELS if (name, size, kind) in pieces]
        if len(of) < len(MODELS):
            continue
        figures = [piece[figure] for figure in formats for piece in of]
        table.add(name, size, of[0]["s"], *figures)
    save(table, note=told([*pieces.values()]))


def table_of_topics(pieces: dict[tuple[str, int, str], dict[str, Any]]) -> None:
    """The largest topics of LDA, and bursty ones with as many of their words as possible."""
    ours, theirs = (pieces[SHOWN_CORPUS, SHOWN_SIZE, kind]["words"] for kind in MODELS)
    common = [[len({*x.split()} & {*y.split()}) for y in ours] for x in theirs]
    pairs = zip(*linear_sum_assignment(common, maximize=True), strict=True)
    table = Table(f"{KEPT[:13]}-topics", COMMAND, {"LDA": "s", "bursty topics": "s"}, RESTS_ON)
    for theirs_ix, ours_ix in [*pairs][:SHOWN]:
        table.add(theirs[theirs_ix], ours[ours_ix])
    save(table, note=told([*pieces.values()]))


def main() -> None:
    """Train what is missing of the corpora that are named, and make the tables of all."""
    done = [(piece["corpus"], piece["size"], piece["kind"]) for piece in kept(KEPT)]
    for name, size, kind in product(sys.argv[1:], CURVE_SIZES, MODELS):
        if (name, size, kind) not in done:
            told_of = {"corpus": name, "size": size, "kind": kind}
            piece = keep(KEPT, told_of | trained(name, size, kind))
            print(*[*piece.values()][-9:-1], flush=True)
    pieces = {(x["corpus"], x["size"], x["kind"]): x for x in kept(KEPT)}
    table_of_curves(pieces)
    table_of_topics(pieces)


if __name__ == "__main__":
    main()
