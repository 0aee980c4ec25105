"""Leaderboard of held-out likelihoods: topic models of several packages, each with an error.

    python benches/leaderboard.py run [--corpus NAME ...] [--model NAME ...] [--topics K ...]
    python benches/leaderboard.py table

``run`` fits what is not there yet on one thread and keeps a line of JSON for each row in
``benches/records/runs/leaderboard.jsonl``: versions, commit, settings, and the SHA-256 of the exact
counts and split. ``table`` makes the records, the file and the picture of ``docs/leaderboard.md``
from them.

A model is added as a function of the training and test documents and the number of topics, in
``MODELS``; a corpus as a row of ``CORPORA``. Fitted models are kept in ``target/leaderboard``, so
that a change of the scoring code needs no new fits.
"""

import hashlib
import math
import re
from collections.abc import Callable, Sequence
from functools import partial
from importlib.metadata import version
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import record
from record import DATA, ROOT, Table, golden, machine, save, texts, timed, told
from scipy import sparse
from sklearn.decomposition import LatentDirichletAllocation as SklearnLDA

import polyabayes as pb

KEPT = "leaderboard"
FITS = ROOT / "target" / "leaderboard"
PAGE = ROOT / "docs"
# Name of a corpus, name of its files, and its covariates, as a column of its metadata.
CORPORA: dict[str, tuple[str, str | None]] = {
    "web snippets": ("web_snippets", None),
    "AP": ("ap", None),
    "Reuters": ("reuters", None),
    "poliblog5k": ("poliblog5k", "rating"),
    "NIPS": ("nips12", None),
    "20 Newsgroups": ("20ng", None),
    "simulated cells": ("cells", None),
    "Enron": ("enron", None),
}
SIZES = (20, 50, 100)


def cells() -> pb.Corpus:
    """2,000 simulated cells of 1,000 genes: eight programmes whose genes come in bursts."""
    rng = np.random.default_rng(0)
    programmes = rng.dirichlet(np.full(1_000, 0.1), 8)
    counts = np.zeros((2_000, 1_000), dtype=int)
    for genes in programmes:
        own = rng.gamma(np.maximum(30 * genes, 1e-6), size=counts.shape)
        activities = rng.gamma(1.0, 65.0, (len(counts), 1))
        counts += rng.poisson(activities * own / own.sum(axis=1, keepdims=True))
    return pb.Corpus(counts, [f"gene {gene_ix}" for gene_ix in range(1_000)])


def enron() -> pb.Corpus:
    """To whom each of 184 employees wrote in a month: a document, its words the receivers."""
    tensor = pb.read_tensor(DATA / "enron.tns.gz")
    sender, receiver, month = tensor.coordinates.T
    _, document = np.unique([sender, month], axis=1, return_inverse=True)
    counts = sparse.coo_array((tensor.counts, (document, receiver)))
    return pb.Corpus(counts.tocsr(), [f"employee {employee}" for employee in range(184)])


def planted() -> pb.Corpus:
    """4,000 simulated documents of 150 tokens of 8,000 words, under 2,000 topics."""
    rng = np.random.default_rng(0)
    topics = rng.dirichlet(np.full(8_000, 0.01), 2_000)
    weights = rng.dirichlet(np.full(2_000, 0.002), 4_000)
    counts = rng.multinomial(150, weights @ topics)
    return pb.Corpus(counts, [f"word {word_ix}" for word_ix in range(8_000)])


# Corpora that are made here, by the name of their file.
TABLES = {"cells": cells, "enron": enron, "planted topics": planted}
# Error of the scores, in nats per token.
STD_ERROR = 0.0005
SWEEPS, ITERATIONS = 500, 100


class Fitted(NamedTuple):
    """A fitted model, and the figure per token that its own package prints for test documents."""

    model: Any
    own: Callable[[pb.Corpus], float] | None = None
    # Covariates of the test documents, of models that take them while they score.
    covariates: Any = None
    # Number of topics in use, of models that choose it.
    used: int | None = None
    # Processor time of an earlier fit that this one begins with.
    seconds: float = 0.0


Parts = tuple[pb.Corpus, pb.Corpus]


def ratings(corpus: pb.Corpus) -> Any:
    """Covariates of the documents, as words."""
    return corpus.metadata["rating"].tolist()


def polyabayes_lda(parts: Parts, n_topics: int, **settings: Any) -> Fitted:
    lda = pb.LatentDirichletAllocation(n_topics, n_jobs=1, random_state=0, **settings)
    return Fitted(lda.fit(parts[0]))


def polyabayes_pfa(parts: Parts, n_topics: int, **settings: Any) -> Fitted:
    pfa = pb.PoissonFactorAnalysis(n_topics, n_jobs=1, random_state=0, **settings)
    return Fitted(pfa.fit(parts[0]))


def sklearn_lda(parts: Parts, n_topics: int, max_iter: int = 50) -> Fitted:
    lda = SklearnLDA(n_topics, max_iter=max_iter, random_state=0).fit(parts[0].counts)
    model = pb.interop.from_sklearn(lda, vocabulary=parts[0].vocabulary)
    return Fitted(model, lambda test: -np.log(lda.perplexity(test.counts)))


def gensim_lda(parts: Parts, n_topics: int, **settings: Any) -> Fitted:
    import gensim

    def bags(corpus: pb.Corpus) -> Any:
        return gensim.matutils.Sparse2Corpus(corpus.counts.T)

    words = dict(enumerate(parts[0].vocabulary))
    lda = gensim.models.LdaModel(bags(parts[0]), n_topics, words, random_state=0, **settings)
    return Fitted(pb.interop.from_gensim(lda), lambda test: lda.log_perplexity(list(bags(test))))


def tomotopy_model(
    name: str, parts: Parts, n_topics: int, sweeps: int = SWEEPS, seed: int = 1, **prior: float
) -> Fitted:
    import tomotopy

    size = {"initial_k" if name == "HDPModel" else "k": n_topics}
    model = getattr(tomotopy, name)(**size, seed=seed, **prior)
    is_dmr = name == "DMRModel"

    def documents(part: pb.Corpus, make: Callable[..., Any]) -> list[Any]:
        levels = [{"metadata": rating} for rating in ratings(part)] if is_dmr else None
        of_each = levels or [{}] * part.n_documents
        return [make(words, **own) for words, own in zip(texts(part), of_each, strict=True)]

    documents(parts[0], model.add_doc)
    model.train(sweeps, workers=1)

    def own(test: pb.Corpus) -> float:
        _, values = model.infer(documents(test, model.make_doc), workers=1)
        return float(np.sum(values) / test.n_tokens)

    levels = {"metadata": ratings(parts[1])} if is_dmr else {}
    used = model.live_k if name == "HDPModel" else None
    return Fitted(pb.interop.from_tomotopy(model, **levels), own, used=used)


def topica_model(name: str, parts: Parts, n_topics: int) -> Fitted:
    import topica

    train, test = parts
    model = getattr(topica, name)(n_topics, seed=1)
    options: dict[str, Any] = {"iters": ITERATIONS if name in ("CTM", "STM") else SWEEPS}
    options |= {} if name == "GSDMM" else {"num_threads": 1}
    covariates = {}
    if name in ("DMR", "STM"):
        levels = sorted(set(ratings(train)))[1:]
        rows = [
            np.array([[float(rating == level) for level in levels] for rating in ratings(part)])
            for part in parts
        ]
        options |= {"features" if name == "DMR" else "prevalence": rows[0]}
        covariates = {"covariates": rows[1]}
    model.fit(texts(train), **options)

    def own(test: pb.Corpus) -> float:
        return -math.log(topica.evaluate.perplexity(model, texts(test), seed=1))

    if name == "STM":
        design = np.column_stack([np.ones(test.n_documents), rows[1]])
        return Fitted(pb.interop.from_topica(model), own, design)
    if name == "GSDMM":
        places = {word: word_ix for word_ix, word in enumerate(train.vocabulary)}
        counts = train.counts[:, [places[word] for word in model.vocabulary]]
        taken = pb.interop.from_topica(model, documents=counts)
        return Fitted(taken, own, used=len(set(model.doc_cluster)))
    return Fitted(pb.interop.from_topica(model, **covariates), own)


def bursty(name: str, parts: Parts, n_topics: int) -> Fitted:
    """The topics of another row, and a concentration learned for each."""
    model, known = fitted(MODELS[name], parts, name, n_topics)
    options = {"per_topic": True, "random_state": 0, "n_jobs": 1}
    concentration = pb.learn_topic_concentration(model, parts[0], **options)
    made = pb.LatentDirichletAllocation.from_parameters(
        doc_topic_prior=model.doc_topic_prior_,
        topic_word=model.components_,
        topic_concentration=concentration.value,
        vocabulary=model.vocabulary_,
    )
    return Fitted(made, seconds=known["seconds"])


class Recipe(NamedTuple):
    """How a model is fitted, what is told of it, and the golden values of its scores and fits."""

    fit: Callable[[Parts, int], Fitted]
    settings: str
    scores: tuple[str, ...] = ("lda, auto",)
    fits: tuple[str, ...] = ()
    needs_covariates: bool = False


BURSTY = {"scores": ("bursty lda, annealed",), "fits": ("bursty lda, Gibbs",)}
NORMAL = ("logistic normal, annealed",)
OF_SWEEPS, OF_EM = f"{SWEEPS} sweeps", f"up to {ITERATIONS} iterations"
# Settings of the tutorial of gensim.
OF_GENSIM = {"passes": 20, "iterations": 400, "alpha": "auto", "eta": "auto", "eval_every": None}
# Cheap models first; topics of other packages after their own rows.
MODELS = {
    "polyabayes, bursty LDA": Recipe(
        partial(polyabayes_lda, topic_concentration="learn"), "default sweeps", **BURSTY
    ),
    "polyabayes, bursty PFA": Recipe(
        partial(polyabayes_pfa, topic_concentration="learn"), "default sweeps", **BURSTY
    ),
    "polyabayes, LDA": Recipe(polyabayes_lda, "200 sweeps", fits=("lda, Gibbs",)),
    "polyabayes, PFA": Recipe(
        polyabayes_pfa, "200 sweeps", ("pfa, annealed",), ("pfa, beta-gamma-gamma",)
    ),
    "polyabayes, DMR": Recipe(
        partial(polyabayes_lda, formula="~ rating"),
        "200 sweeps",
        fits=("lda, Gibbs",),
        needs_covariates=True,
    ),
    "tomotopy, LDA": Recipe(partial(tomotopy_model, "LDAModel"), OF_SWEEPS),
    "topica, LDA": Recipe(partial(topica_model, "LDA"), OF_SWEEPS),
    "scikit-learn, LDA": Recipe(sklearn_lda, "50 iterations"),
    "gensim, LDA": Recipe(partial(gensim_lda, **OF_GENSIM), "20 passes, priors learned"),
    "topica, GSDMM": Recipe(partial(topica_model, "GSDMM"), OF_SWEEPS, ()),
    "tomotopy, DMR": Recipe(partial(tomotopy_model, "DMRModel"), OF_SWEEPS, needs_covariates=True),
    "topica, DMR": Recipe(partial(topica_model, "DMR"), OF_SWEEPS, needs_covariates=True),
    "topica, CTM": Recipe(partial(topica_model, "CTM"), OF_EM, NORMAL),
    "topica, STM": Recipe(partial(topica_model, "STM"), OF_EM, NORMAL, needs_covariates=True),
    "tomotopy, HDP": Recipe(partial(tomotopy_model, "HDPModel"), OF_SWEEPS),
    "tomotopy, CTM": Recipe(partial(tomotopy_model, "CTModel"), OF_SWEEPS, NORMAL),
}
MODELS |= {
    f"{package}, LDA, bursty": Recipe(
        partial(bursty, f"{package}, LDA"), "s learned for its topics", BURSTY["scores"]
    )
    for package in ("tomotopy", "topica", "scikit-learn", "gensim")
}


def split(name: str) -> Parts:
    """A fifth of the documents for the test; words that training lacks are left out of both."""
    file, covariates = CORPORA.get(name, (name, None))
    corpus = TABLES[file]() if file in TABLES else record.corpus(file)
    if covariates:
        corpus = corpus.with_metadata(pd.read_csv(DATA / f"{file}.meta.csv")[[covariates]])
    train, test = corpus.split(test_size=0.2, random_state=0)
    kept = np.flatnonzero(np.asarray(train.counts.sum(axis=0)).ravel())
    words = [corpus.vocabulary[word_ix] for word_ix in kept]
    parts = [pb.Corpus(x.counts[:, kept], words, metadata=x.metadata) for x in (train, test)]
    return parts[0], parts[1][np.flatnonzero(parts[1].counts.sum(axis=1))]


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
    """Rows whose recipes and golden values are today's."""
    return [
        row
        for row in record.kept(KEPT)
        if row["settings"] == MODELS[row["model"]].settings
        and row["golden"] == golden(row["golden"])
    ]


def fitted(recipe: Recipe, parts: Parts, name: str, n_topics: int) -> tuple[Any, dict[str, Any]]:
    """A model, from its file if that was fitted alike, and what is known of its fit."""
    label = f"{name} {n_topics} {recipe.settings}"
    known = {"counts": fingerprint(*parts), "golden": golden(recipe.fits)}
    file = FITS / (re.sub(r"\W+", "-", f"{label} {known['counts'][:12]}") + ".safetensors")
    if file.exists():
        model = pb.load(file)
        found = model.provenance_["notes"]
        if found["golden"] == known["golden"]:
            return model, found
    (model, own, covariates, used, earlier), seconds = timed(recipe.fit, parts, n_topics)
    known |= machine() | {"seconds": earlier + seconds, "used": used}
    known |= {"own": None if own is None else float(own(parts[1]))}
    known |= {"covariates": None if covariates is None else covariates.tolist()}
    file.parent.mkdir(parents=True, exist_ok=True)
    model.save(file, notes=known)
    return model, known


def scored(model: Any, test: pb.Corpus, **options: Any) -> Any:
    """Log-likelihoods of the test documents as ordered tokens, given their lengths."""
    options |= {"event": "sequence", "given_length": True, "n_jobs": 1, "random_state": 0}
    return pb.log_likelihood(model, test, nats_per_token_std_error=STD_ERROR, **options)


def measured(corpus: str, name: str, n_topics: int) -> dict[str, Any]:
    """Fit a model and score the test documents."""
    parts, recipe = split(corpus), MODELS[name]
    model, fit = fitted(recipe, parts, name, n_topics)
    result, seconds = timed(scored, model, parts[1], covariates=fit["covariates"])
    row = {"corpus": corpus, "counts": fit["counts"], "model": name}
    row |= {"version": version(name.split(",")[0]), "settings": recipe.settings}
    row |= {"topics": n_topics, "used": fit["used"]}
    row |= {"nats": result.nats_per_token, "error": result.nats_per_token_std_error}
    row |= {"own": fit["own"], "seconds": fit["seconds"], "seconds of scoring": seconds}
    return row | {"golden": golden([*recipe.scores, *recipe.fits])}


def run(
    corpus: Sequence[str] = (*CORPORA,),
    model: Sequence[str] = (*MODELS,),
    topics: Sequence[int] = SIZES,
) -> None:
    """Make the rows that are not there, one line each."""
    there = {(row["corpus"], row["model"], row["topics"]) for row in rows()}
    for size, name, recipe in product(topics, corpus, model):
        has_covariates = CORPORA[name][1] is not None
        if (name, recipe, size) not in there and (
            has_covariates or not MODELS[recipe].needs_covariates
        ):
            print(record.keep(KEPT, measured(name, recipe, size)), flush=True)


def cell(row: dict[str, Any] | None) -> str | None:
    """A score with its error, and how many topics are in use where the model chooses."""
    if row is None:
        return None
    error = f"± {row['error']:.4f}" if row["error"] else "exact"
    topics = "" if row["used"] is None else f" ({row['used']} topics)"
    return f"{row['nats']:.4f} {error}{topics}"


def tables(found: pd.DataFrame) -> None:
    """A record for each corpus: models by their score with the fewest topics, a column a size."""
    note = told(found.to_dict("records"))
    for corpus, of_corpus in found.groupby("corpus", sort=False):
        sizes = sorted(set(of_corpus.topics))
        columns = {"model": "s"} | {f"K = {size}": "s" for size in sizes}
        columns |= {f"training, K = {SIZES[0]}": "s", f"its own figure, K = {SIZES[0]}": ".2f"}
        rests_on = sorted({case for cases in of_corpus.golden for case in cases})
        name = f"leaderboard-{CORPORA[corpus][0]}"
        made = Table(name, "python benches/leaderboard.py run", columns, rests_on)
        for model, of_model in of_corpus.groupby("model", sort=False):
            by_size = {row["topics"]: row for row in of_model.to_dict("records")}
            first = by_size.get(SIZES[0])
            seconds, own = (f"{first['seconds']:.0f} s", first["own"]) if first else (None, None)
            made.add(model, *(cell(by_size.get(size)) for size in sizes), seconds, own)
        save(made, note=note)


def rows_as_file(found: pd.DataFrame) -> None:
    """Every row with versions, settings and hash, for the page to offer."""
    digits = {"nats": 5, "error": 5, "own": 4, "seconds": 1}
    columns = ["corpus", "topics", "model", "version", "settings", "used", *digits]
    columns += ["commit", "date", "counts"]
    shown = found[columns].copy()
    for name, n_digits in digits.items():
        shown[name] = [None if x is None else f"{x:.{n_digits}f}" for x in found[name]]
    shown.to_csv(PAGE / "leaderboard.csv", index=False, lineterminator="\n")


def draw(found: pd.DataFrame) -> None:
    """Nats per token of each model, a panel for each corpus."""
    import matplotlib.pyplot as plt

    # Colours of Okabe & Ito (2008).
    looks = list(zip(SIZES, "os^", ("#0072B2", "#D55E00", "#009E73"), strict=True))
    corpora = list(found.groupby("corpus", sort=False))
    n_lines = -(-len(corpora) // 2)
    style = {"figsize": (10, 3.3 * n_lines), "layout": "constrained"}
    figure, axes = plt.subplots(n_lines, 2, squeeze=False, **style)
    for ax in axes.flat[len(corpora) :]:
        ax.remove()
    for ax, (corpus, of_corpus) in zip(axes.flat, corpora, strict=False):
        places = {model: -place for place, model in enumerate(of_corpus.model.unique())}
        for size, marker, colour in looks:
            kept = of_corpus[of_corpus.topics == size]
            style = {"color": colour, "label": f"K = {size}"}
            ax.plot(kept.nats, kept.model.map(places), marker, **style)
        ax.set_yticks(list(places.values()), list(places))
        ax.set_title(corpus)
        ax.grid(alpha=0.3)
        ax.locator_params(axis="x", nbins=5)
        ax.set_xlabel("held-out nats per token (better \N{RIGHTWARDS ARROW})")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels))
    with plt.rc_context({"svg.hashsalt": "leaderboard"}):
        picture = PAGE / "images" / "leaderboard.svg"
        figure.savefig(picture, facecolor="white", metadata={"Date": None})


def table() -> None:
    """Records, file and picture of the page."""
    order = list(CORPORA)
    found = sorted(rows(), key=lambda x: (order.index(x["corpus"]), x["topics"], -x["nats"]))
    # Columns of objects: whole numbers stay whole where others are missing.
    frame = pd.DataFrame(found, dtype=object)
    tables(frame)
    rows_as_file(frame)
    draw(frame)


if __name__ == "__main__":
    record.main(run, table)
