"""Leaderboard of held-out likelihoods: topic models of several packages, each with an error.

    python benches/leaderboard.py run [--corpus NAME] [--model NAME] [--topics K ...]
    python benches/leaderboard.py table

``run`` fits what is not there yet on one thread and keeps a line of JSON for each row in
``benches/records/runs/leaderboard.jsonl``: versions, commit, settings, and the SHA-256 of the exact
counts and split. ``table`` makes the record and the picture of ``docs/leaderboard.md`` from them.

A model is added as a function of the training counts and the number of topics that returns what
`pb.log_likelihood` accepts, in ``MODELS``; a corpus as a row of ``CORPORA``.
"""

import argparse
import hashlib
import json
import time
import warnings
from collections.abc import Callable
from importlib.metadata import version
from typing import Any, NamedTuple

import numpy as np
from record import DATA, ROOT, RUNS, Table, golden, machine, save, texts
from sklearn.decomposition import LatentDirichletAllocation as SklearnLDA

import polyabayes as pb

KEPT = RUNS / "leaderboard.jsonl"
PICTURE = ROOT / "docs" / "images" / "leaderboard.png"
CORPORA = {
    "web snippets": "web_snippets",
    "AP": "ap",
    "20 Newsgroups": "20ng",
    "Reuters": "reuters",
    "NIPS": "nips12",
    "poliblog5k": "poliblog5k",
}
# Golden values of the scores, and of the fits of this package.
SCORES = "lda, auto"
FITS = {"polyabayes, LDA": "lda, Gibbs", "polyabayes, PFA": "pfa, beta-gamma-gamma"}


class Fitted(NamedTuple):
    """A fitted model, and the figure per token that its own package prints for test documents."""

    model: Any
    own: Callable[[pb.Corpus], float] | None


def polyabayes_lda(train: pb.Corpus, n_topics: int, **settings: Any) -> Fitted:
    lda = pb.LatentDirichletAllocation(n_topics, n_jobs=1, random_state=0, **settings)
    return Fitted(lda.fit(train), None)


def polyabayes_pfa(train: pb.Corpus, n_topics: int) -> Fitted:
    pfa = pb.PoissonFactorAnalysis(n_topics, n_jobs=1, random_state=0)
    return Fitted(pfa.fit(train), None)


def sklearn_lda(train: pb.Corpus, n_topics: int, max_iter: int = 20) -> Fitted:
    lda = SklearnLDA(n_topics, max_iter=max_iter, random_state=0).fit(train.counts)
    return Fitted(lda, lambda test: -np.log(lda.perplexity(test.counts)))


def gensim_lda(train: pb.Corpus, n_topics: int, passes: int = 10) -> Fitted:
    import gensim

    def bags(corpus: pb.Corpus) -> Any:
        return gensim.matutils.Sparse2Corpus(corpus.counts.T)

    words = dict(enumerate(train.vocabulary))
    lda = gensim.models.LdaModel(bags(train), n_topics, words, passes=passes, random_state=0)
    return Fitted(lda, lambda test: lda.log_perplexity(list(bags(test))))


def tomotopy_model(model: Any, train: pb.Corpus, sweeps: int = 500) -> Fitted:
    for words in texts(train):
        model.add_doc(words)
    model.train(sweeps, workers=1)

    def own(test: pb.Corpus) -> float:
        _, values = model.infer([model.make_doc(words) for words in texts(test)], workers=1)
        return float(np.sum(values) / test.n_tokens)

    return Fitted(model, own)


def tomotopy_lda(
    train: pb.Corpus, n_topics: int, sweeps: int = 500, seed: int = 1, **prior: float
) -> Fitted:
    import tomotopy

    return tomotopy_model(tomotopy.LDAModel(k=n_topics, seed=seed, **prior), train, sweeps)


def tomotopy_hdp(train: pb.Corpus, n_topics: int) -> Fitted:
    import tomotopy

    return tomotopy_model(tomotopy.HDPModel(initial_k=n_topics, seed=1), train)


def tomotopy_ctm(train: pb.Corpus, n_topics: int) -> Fitted:
    import tomotopy

    return tomotopy_model(tomotopy.CTModel(k=n_topics, seed=1), train)


def topica_lda(train: pb.Corpus, n_topics: int) -> Fitted:
    import topica

    lda = topica.LDA(n_topics, seed=1)
    lda.fit(texts(train), iters=500, progress=False)
    return Fitted(lda, None)


# Name of a model: package, settings that are not its defaults, function that fits it.
MODELS: dict[str, tuple[str, str, Callable[[pb.Corpus, int], Fitted]]] = {
    "polyabayes, LDA": ("polyabayes", "defaults: 200 sweeps", polyabayes_lda),
    "polyabayes, PFA": ("polyabayes", "defaults: 200 sweeps", polyabayes_pfa),
    "tomotopy, LDA": ("tomotopy", "500 sweeps", tomotopy_lda),
    "tomotopy, HDP": ("tomotopy", "500 sweeps, starts at K", tomotopy_hdp),
    "tomotopy, CTM": ("tomotopy", "500 sweeps", tomotopy_ctm),
    "topica, LDA": ("topica", "500 sweeps", topica_lda),
    "scikit-learn, LDA": ("scikit-learn", "20 iterations", sklearn_lda),
    "gensim, LDA": ("gensim", "10 passes", gensim_lda),
}


def split(name: str) -> tuple[pb.Corpus, pb.Corpus]:
    """A fifth of the documents for the test; words that training lacks are left out of both."""
    file = DATA / f"{CORPORA[name]}.ldac.gz"
    corpus = pb.read_corpus(file, vocabulary=DATA / f"{CORPORA[name]}.vocab")
    train, test = corpus.split(test_size=0.2, random_state=0)
    kept = np.flatnonzero(np.asarray(train.counts.sum(axis=0)).ravel())
    words = [corpus.vocabulary[word_ix] for word_ix in kept]
    parts = [pb.Corpus(part.counts[:, kept], words) for part in (train, test)]
    return parts[0], parts[1]


def fingerprint(*parts: pb.Corpus) -> str:
    """SHA-256 of the counts of training and test documents, in their order."""
    found = hashlib.sha256()
    for part in parts:
        counts = part.counts.tocsr().sorted_indices()
        found.update(np.array(counts.shape, dtype="<i8").tobytes())
        for array in (counts.indptr, counts.indices, counts.data):
            found.update(array.astype("<i8").tobytes())
    return found.hexdigest()


def rows() -> list[dict[str, Any]]:
    """Rows whose golden values are today's."""
    lines = KEPT.read_text().splitlines() if KEPT.exists() else []
    found = [json.loads(line) for line in lines]
    return [row for row in found if row["golden"] == golden(row["golden"])]


def measured(corpus: str, name: str, n_topics: int) -> dict[str, Any]:
    """Fit a model and score the test documents."""
    train, test = split(corpus)
    package, settings, fit = MODELS[name]
    start = time.process_time()
    fitted = fit(train, n_topics)
    seconds = time.process_time() - start
    event = {"event": "sequence", "given_length": True}
    result = pb.log_likelihood(fitted.model, test, n_jobs=1, random_state=0, **event)
    return machine() | {
        "corpus": corpus,
        "counts": fingerprint(train, test),
        "model": name,
        "version": version(package),
        "settings": settings,
        "topics": n_topics,
        "nats": result.nats_per_token,
        "error": result.nats_per_token_std_error,
        "own": None if fitted.own is None else float(fitted.own(test)),
        "seconds": seconds,
        "golden": golden([SCORES, FITS[name]] if name in FITS else [SCORES]),
    }


def run(corpora: list[str], names: list[str], sizes: list[int]) -> None:
    """Make the rows that are not there, one line each."""
    keys = ("corpus", "model", "topics")
    there = {tuple(row[key] for key in keys) for row in rows()}
    wanted = [(corpus, name, size) for corpus in corpora for size in sizes for name in names]
    for one in wanted:
        if one not in there:
            row = measured(*one)
            with KEPT.open("a") as stream:
                stream.write(json.dumps(row, ensure_ascii=False) + "\n")
            print(f"{one}: {row['nats']:.4f} ± {row['error']:.4f}", flush=True)


def table() -> None:
    """The record of the page, best first, and its picture."""
    found = sorted(rows(), key=lambda row: (row["corpus"], row["topics"], -row["nats"]))
    columns = {"corpus": "s", "topics": "d", "model": "s", "version": "s", "settings": "s"}
    columns |= {"nats per token": ".4f", "±": ".5f", "its own figure": ".2f", "commit": "s"}
    columns |= {"SHA-256 of the counts": "s"}
    made = Table(
        "leaderboard", "python benches/leaderboard.py run", columns, [SCORES, *FITS.values()]
    )
    for row in found:
        names = ("corpus", "topics", "model", "version", "settings", "nats", "error", "own")
        made.add(*(row[name] for name in names), row["commit"], row["counts"][:12])
    machines = ", ".join(sorted({row["machine"] for row in found}))
    days = [row["date"] for row in found]
    dates = " to ".join(sorted({min(days), max(days)}))
    save(made, note=f"{dates}, {machines}.")
    draw(found)


def draw(found: list[dict[str, Any]]) -> None:
    """Nats per token behind the best model of a corpus and number of topics."""
    import matplotlib.pyplot as plt

    groups = sorted({(row["corpus"], row["topics"]) for row in found})
    figure, axes = plt.subplots(
        1, len(groups), figsize=(3.6 * len(groups), 2.8), squeeze=False, layout="constrained"
    )
    for ax, group in zip(axes[0], groups, strict=True):
        kept = [row for row in found if (row["corpus"], row["topics"]) == group][::-1]
        ax.errorbar(
            [row["nats"] for row in kept],
            [row["model"] for row in kept],
            xerr=[1.96 * row["error"] for row in kept],
            fmt="o",
            capsize=3,
        )
        ax.set_title(f"{group[0]}, K = {group[1]}")
        ax.set_xlabel("held-out nats per token")
        ax.grid(axis="x", alpha=0.3)
    figure.savefig(PICTURE, dpi=120, metadata={"Software": None})


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    added = commands.add_parser("run")
    added.add_argument("--corpus", choices=CORPORA, action="append")
    added.add_argument("--model", choices=MODELS, action="append")
    added.add_argument("--topics", type=int, nargs="+", default=[20, 50, 100])
    commands.add_parser("table")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    if given.command == "run":
        run(given.corpus or list(CORPORA), given.model or list(MODELS), given.topics)
    else:
        table()


if __name__ == "__main__":
    main()
