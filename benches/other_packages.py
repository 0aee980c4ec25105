"""Models of tomotopy and topica on one scale: the held-out fifth of political blogs of 2008.

``python benches/other_packages.py [--topics K ...] [--sweeps N] [--documents N]`` trains each model
on four fifths and scores the same held-out documents by ``log_likelihood``, on one thread; DMR and
STM know the rating of a blog, conservative or liberal. ``--documents`` scores the first N only, and
keeps no record.
"""

import argparse
import csv
import os
import time
import warnings
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import tomotopy
import topica
from record import Table, save

import polyabayes as pb

_BESIDE = Path(__file__).resolve().parents[2] / "shared" / "data"
DATA = Path(os.environ.get("POLYABAYES_DATA", _BESIDE))
COMMAND = "python benches/other_packages.py"
COLUMNS = {
    "topics": "d", "package": "s", "model": "s", "documents": ",", "training, s": ".1f",
    "nats per token": ".4f", "±": ".4f", "methods": "s", "scoring, s": ".1f",
}  # fmt: skip

Fitted = tuple[str, str, float, Any, Any]


def of_tomotopy(
    texts: list[list[str]], ratings: list[str], held_out: list[str], n_topics: int, sweeps: int
) -> Iterator[Fitted]:
    """Names, training time, model and covariates of the held-out documents."""
    makers = {"LDA": tomotopy.LDAModel, "CTM": tomotopy.CTModel, "DMR": tomotopy.DMRModel}
    for name, make in makers.items():
        theirs = make(k=n_topics, seed=1)
        own = [{"metadata": rating} if name == "DMR" else {} for rating in ratings]
        for text, options in zip(texts, own, strict=True):
            theirs.add_doc(text, **options)
        start = time.process_time()
        theirs.train(sweeps, workers=1)
        seconds = time.process_time() - start
        options = {"metadata": held_out} if name == "DMR" else {}
        yield "tomotopy", name, seconds, pb.interop.from_tomotopy(theirs, **options), None


def of_topica(
    texts: list[list[str]], ratings: list[str], held_out: list[str], n_topics: int, sweeps: int
) -> Iterator[Fitted]:
    """The same; a DMR of topica has one model for each rating, which are made one."""
    liberal, others = (np.array(r) == "Liberal" for r in (ratings, held_out))
    features, design = liberal[:, np.newaxis].astype(float), others[:, np.newaxis].astype(float)
    fits: dict[str, tuple[Any, dict[str, Any]]] = {
        "LDA": (topica.LDA(n_topics, seed=1), {}),
        "CTM": (topica.CTM(n_topics, seed=1), {}),
        "DMR": (topica.DMR(n_topics, seed=1), {"features": features}),
        "STM": (topica.STM(n_topics, seed=1), {"prevalence": features}),
    }
    for name, (theirs, options) in fits.items():
        start = time.process_time()
        theirs.fit(texts, iters=sweeps, num_threads=1, **options)
        seconds = time.process_time() - start
        covariates = None
        if name == "DMR":
            of_rating = [pb.interop.from_topica(theirs, covariates=[x]) for x in (0.0, 1.0)]
            priors = np.array([model.doc_topic_prior_ for model in of_rating])
            model: Any = pb.DocumentModel.dirichlet(
                of_rating[0].components_,
                priors[others.astype(int)],
                vocabulary=of_rating[0].vocabulary_,
            )
        else:
            model = pb.interop.from_topica(theirs)
        if name == "STM":
            covariates = np.column_stack([np.ones(len(design)), design])
        yield "topica", name, seconds, model, covariates


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--topics", type=int, nargs="+", default=[20, 50])
    parser.add_argument("--sweeps", type=int, default=500, help="or iterations of EM, at most")
    parser.add_argument("--documents", type=int)
    chosen = parser.parse_args()
    corpus = pb.read_corpus(DATA / "poliblog5k.ldac.gz", vocabulary=DATA / "poliblog5k.vocab")
    with (DATA / "poliblog5k.meta.csv").open(encoding="utf-8", newline="") as file:
        ratings = np.array([row["rating"] for row in csv.DictReader(file)])
    places = np.random.default_rng(0).permutation(corpus.n_documents)
    fifth = corpus.n_documents // 5
    test, train = np.sort(places[:fifth])[: chosen.documents], np.sort(places[fifth:])
    counts, words = corpus.counts.tocsr(), corpus.vocabulary
    texts = [
        np.repeat(words[counts[d].indices], counts[d].data.astype(int)).tolist() for d in train
    ]
    table = Table("other-packages", COMMAND, COLUMNS, ["lda, annealed"])
    for n_topics in chosen.topics:
        given = texts, ratings[train].tolist(), ratings[test].tolist(), n_topics, chosen.sweeps
        fits = chain(of_tomotopy(*given), of_topica(*given))
        for package, name, seconds, model, covariates in fits:
            start = time.process_time()
            found = pb.log_likelihood(
                model, corpus[test], covariates=covariates, unseen="drop", random_state=0, n_jobs=1
            )
            methods = ", ".join(sorted(set(found.methods.tolist())))
            table.add(
                n_topics, package, name, len(test), seconds, found.nats_per_token,
                found.nats_per_token_std_error, methods, time.process_time() - start,
            )  # fmt: skip
    if chosen.documents is None:
        save(table)


if __name__ == "__main__":
    warnings.simplefilter("ignore", pb.exceptions.PolyabayesWarning)
    warnings.simplefilter("ignore", UserWarning)
    main()
