"""Mixtures of labelled documents: as many topics as labels, at the least.

Documents of one label may well be about several things, so that the number of labels is a lower
bound at best, and no rival is right or wrong here: what each names is what is told.
"""

import os
from pathlib import Path
from typing import NamedTuple

import numpy as np
from benches.choice import topics
from benches.choice.pieces import Case, Part, grid

import polyabayes as pb

_BESIDE = Path(__file__).resolve().parents[3] / "shared" / "data"
DATA = Path(os.environ.get("POLYABAYES_DATA", _BESIDE))
# Words that fewer documents have are left out.
LEAST_DOCUMENTS = 10


class Regime(NamedTuple):
    """Which labels of which corpus, and documents of each."""

    corpus: str
    labels: tuple[str, ...]
    n_documents: int


REGIMES = {
    "20 Newsgroups, 4 groups": Regime(
        "20ng", ("rec.sport.hockey", "sci.space", "talk.politics.mideast", "comp.graphics"), 200
    ),
    "Reuters, 5 subjects": Regime("reuters", ("earn", "acq", "crude", "trade", "coffee"), 100),
    "web snippets, 8 domains": Regime("web_snippets", tuple("12345678"), 150),
}


def drawn(regime: Regime, seed: int) -> Case:
    """Documents of single labels, as many of each."""
    corpus = pb.read_corpus(
        DATA / f"{regime.corpus}.ldac.gz", vocabulary=DATA / f"{regime.corpus}.vocab"
    )
    lines = (DATA / f"{regime.corpus}.labels").read_text().splitlines()
    labels = np.array([line.split("\t")[0] for line in lines])
    rng = np.random.default_rng(seed)
    rows = [
        rng.choice(np.flatnonzero(labels == label), regime.n_documents, replace=False)
        for label in regime.labels
    ]
    counts = corpus.counts[np.sort(np.concatenate(rows))]
    frequent = np.asarray((counts > 0).sum(axis=0)).ravel() >= LEAST_DOCUMENTS
    counts = counts[:, frequent]
    counts = counts[np.asarray(counts.sum(axis=1)).ravel() > 0]
    words = [str(word) for word, kept in zip(corpus.vocabulary, frequent, strict=True) if kept]
    return Case(len(regime.labels), pb.Corpus(counts, vocabulary=words), grid(64))


PLANTED = Part("planted", REGIMES, drawn, topics.METHODS, is_bound=True)
