"""Models of tomotopy and topica on one scale: the held-out fifth of political blogs of 2008.

``python benches/other_packages.py [--topics K ...] [--packages NAME ...] [--sweeps N]
[--iterations N] [--documents N]`` trains each model on four fifths, by Gibbs sampling or by EM, and
scores the same held-out documents by ``log_likelihood``, on one thread, beside what the package
prints itself. DMR and STM know the rating of a blog, conservative or liberal. Models are kept one
by one in ``benches/records/runs/other-packages.jsonl``, or in the folder that POLYABAYES_RUNS
names: a run may end at any time and goes on where it was. ``--documents`` scores the first N only,
and keeps nothing.
"""

import argparse
import json
import math
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import tomotopy
import topica
from record import DATA, RUNS, Table, machine, save, texts, told

import polyabayes as pb

KEPT = RUNS / "other-packages.jsonl"
COMMAND = "python benches/other_packages.py"
STD_ERROR = 0.001
RESTS_ON = ["lda, annealed", "logistic normal, annealed"]
COLUMNS = {
    "topics": "d", "package": "s", "model": "s", "nats per token": ".4f", "±": ".4f",
    "its own figure": ".4f", "which is": "s", "processor time of scoring": "s",
}  # fmt: skip
OF_INFER = "`infer`: words and their sampled topics"
# Compared by hand with ln phi of the sampled topics: what it adds to that is small.
OF_INFER_CTM = "`infer`: words given their sampled topics, about"
OF_BOUND = "bound of the training documents"
OF_HALVES = "`perplexity`: every second token, given the others"
OF_PARTICLES = "`evaluate`: left to right, 10 particles"

# A model as one of ours, covariates of the held-out documents, and the package's own figure.
Fitted = tuple[Any, Any, float, str]


def of_tomotopy(name: str, train: pb.Corpus, test: pb.Corpus, chosen: Any, n: int) -> Fitted:
    """A model of `n` topics, whose own figure is the log-likelihood that ``infer`` returns."""
    makers = {"LDA": tomotopy.LDAModel, "CTM": tomotopy.CTModel, "DMR": tomotopy.DMRModel}
    theirs, is_dmr = makers[name](k=n, seed=1), name == "DMR"

    def options(corpus: pb.Corpus) -> list[dict[str, str]]:
        return [{"metadata": rating} if is_dmr else {} for rating in corpus.metadata["rating"]]

    for text, own in zip(texts(train), options(train), strict=True):
        theirs.add_doc(text, **own)
    theirs.train(chosen.sweeps, workers=1)
    held_out = [
        theirs.make_doc(text, **own) for text, own in zip(texts(test), options(test), strict=True)
    ]
    _, values = theirs.infer(held_out, workers=1)
    n_tokens = sum(len(document.words) for document in held_out)
    which = OF_INFER_CTM if name == "CTM" else OF_INFER
    levels = {"metadata": test.metadata["rating"].tolist()} if is_dmr else {}
    model = pb.interop.from_tomotopy(theirs, **levels)
    return model, None, float(np.sum(values)) / n_tokens, which


def of_topica(name: str, train: pb.Corpus, test: pb.Corpus, chosen: Any, n: int) -> Fitted:
    """A model of `n` topics; its own figure is what the package has for this kind."""
    features, rows = (
        (corpus.metadata["rating"].to_numpy() == "Liberal").astype(float)[:, np.newaxis]
        for corpus in (train, test)
    )
    is_em = name in ("CTM", "STM")
    given = {"DMR": {"features": features}, "STM": {"prevalence": features}}.get(name, {})
    theirs = getattr(topica, name)(n, seed=1)
    theirs.fit(
        texts(train), iters=chosen.iterations if is_em else chosen.sweeps, num_threads=1, **given
    )
    if is_em:
        model, figure = pb.interop.from_topica(theirs), theirs.bound / train.n_tokens
        design = np.column_stack([np.ones(len(rows)), rows]) if name == "STM" else None
        return model, design, figure, OF_BOUND
    if name == "DMR":
        figure = -math.log(topica.evaluate.perplexity(theirs, texts(test), seed=1))
        return pb.interop.from_topica(theirs, covariates=rows), None, figure, OF_HALVES
    found = theirs.evaluate(texts(test), seed=1)
    figure = found["log_likelihood"] / found["num_tokens"]
    return pb.interop.from_topica(theirs), None, figure, OF_PARTICLES


MAKERS: dict[str, tuple[Callable[..., Fitted], tuple[str, ...]]] = {
    "tomotopy": (of_tomotopy, ("LDA", "CTM", "DMR")),
    "topica": (of_topica, ("LDA", "CTM", "DMR", "STM")),
}


def blogs() -> tuple[pb.Corpus, pb.Corpus]:
    """The blogs with their ratings: four fifths, and one."""
    corpus = pb.read_corpus(DATA / "poliblog5k.ldac.gz", vocabulary=DATA / "poliblog5k.vocab")
    corpus = corpus.with_metadata(pd.read_csv(DATA / "poliblog5k.meta.csv"))
    return corpus.split(test_size=0.2, random_state=0)


def scored(fitted: Fitted, test: pb.Corpus) -> dict[str, Any]:
    """Columns of the table from the score on."""
    model, covariates, figure, which = fitted
    start = time.process_time()
    options: dict[str, Any] = {"unseen": "drop", "random_state": 0, "n_jobs": 1}
    found = pb.log_likelihood(
        model, test, covariates=covariates, nats_per_token_std_error=STD_ERROR, **options
    )
    return {
        "nats per token": found.nats_per_token,
        "±": found.nats_per_token_std_error,
        "its own figure": figure,
        "which is": which,
        "processor time of scoring": f"{time.process_time() - start:.0f} s",
    }


def kept() -> list[dict[str, Any]]:
    """Models that were scored before."""
    return [json.loads(line) for line in KEPT.read_text().splitlines()] if KEPT.exists() else []


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--topics", type=int, nargs="+", default=[20, 50])
    parser.add_argument("--sweeps", type=int, default=100)
    parser.add_argument("--iterations", type=int, default=25, help="of EM, at most")
    parser.add_argument("--packages", nargs="+", default=list(MAKERS), choices=list(MAKERS))
    parser.add_argument("--documents", type=int)
    chosen = parser.parse_args()
    (train, test), is_kept = blogs(), chosen.documents is None
    test = test[: chosen.documents]
    done = kept() if is_kept else []
    known = {(run["topics"], run["package"], run["model"]) for run in done}
    for n in chosen.topics:
        for package in chosen.packages:
            fit, names = MAKERS[package]
            for name in names:
                if (n, package, name) in known:
                    continue
                run: dict[str, Any] = {"topics": n, "package": package, "model": name}
                run |= scored(fit(name, train, test, chosen, n), test)
                done.append(machine() | run)
                if is_kept:
                    RUNS.mkdir(parents=True, exist_ok=True)
                    with KEPT.open("a") as file:
                        file.write(json.dumps(done[-1]) + "\n")
    table = Table("other-packages", COMMAND, COLUMNS, RESTS_ON)
    for run in sorted(done, key=lambda run: (run["topics"], -run["nats per token"])):
        table.add(*(run[column] for column in COLUMNS))
    if is_kept:
        save(table, note=told(done))


if __name__ == "__main__":
    warnings.simplefilter("ignore", pb.exceptions.PolyabayesWarning)
    warnings.simplefilter("ignore", UserWarning)
    main()
