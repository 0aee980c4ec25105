"""Covariates in training: planted effects and their intervals, held-out scores, cost of a sweep.

``python benches/covariates.py planted``: corpora of 1,000 documents of 100 tokens with 10 topics
and three covariates, of which the last has no effect; the points of tomotopy and topica beside.

``python benches/covariates.py poliblog --topics K``: political blogs of 2008 by rating and day,
a tenth held out: nats per token with covariates and without, and of tomotopy's and topica's models
after the same processor time.

``python benches/covariates.py cost``: processor time of a sweep there, 50 topics.

The blogs are in the folder POLYABAYES_DATA. One thread.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd
import record
import tomotopy
import topica
from peers import trained_for
from record import DATA, Table, main, save, texts, timed
from scipy.optimize import linear_sum_assignment

import polyabayes as pb
from polyabayes._support.jackknife import paired_difference

COMMAND = "python benches/covariates.py"
RESTS_ON = ["lda, Gibbs"]

N_TOPICS, N_DOCUMENTS, N_TOKENS, N_WORDS = 10, 1_000, 100, 500
NAMES = ["group", "score", "nothing"]
N_CORPORA, SWEEPS = 40, 600
N_REPEATS = 3

Floats = np.ndarray[Any, Any]


def drawn(seed: int) -> tuple[pb.Corpus, Floats, Floats]:
    """A corpus with its covariates, the coefficients (topics x 4), and the topics."""
    rng = np.random.default_rng(seed)
    x = np.column_stack(
        [rng.random(N_DOCUMENTS) < 0.5, rng.normal(size=N_DOCUMENTS), rng.normal(size=N_DOCUMENTS)]
    ).astype(float)
    slopes = rng.normal(0, 0.5, (N_TOPICS, 3)) * [1, 1, 0]
    coefficients = np.column_stack([np.full(N_TOPICS, np.log(0.2)), slopes])
    alpha = np.exp(coefficients[:, 0] + x @ slopes.T)
    topics = rng.dirichlet(np.full(N_WORDS, 0.05), N_TOPICS)
    theta = np.array([rng.dirichlet(row) for row in alpha])
    counts = rng.multinomial(N_TOKENS, theta @ topics)
    corpus = pb.Corpus(counts, [f"w{word_ix}" for word_ix in range(N_WORDS)])
    return corpus.with_metadata(pd.DataFrame(x, columns=NAMES)), coefficients, topics


def settings() -> tuple[Floats, Floats]:
    """Rows (1, x) of which contrasts are taken: each covariate at 1 and at 0, others at means."""
    low = np.tile([1.0, 0.5, 0.0, 0.0], (3, 1))
    low[0, 1], high = 0.0, low.copy()
    for i in range(3):
        high[i, 1 + i] = 1.0
    return high, low


def contrasts(coefficients: Floats) -> Floats:
    """Differences of prevalence, (..., 3, topics), of coefficients (..., topics, 4)."""
    shares = []
    for rows in settings():
        alpha = np.exp(rows @ np.swapaxes(coefficients, -1, -2))
        shares.append(alpha / alpha.sum(axis=-1, keepdims=True))
    return shares[0] - shares[1]


def of_polyabayes(corpus: pb.Corpus, seed: int) -> tuple[Floats, Floats, Floats]:
    """Topics, and contrasts with their intervals."""
    formula = f"~ {' + '.join(NAMES)}"
    options: dict[str, Any] = {"max_iter": SWEEPS, "random_state": seed, "n_jobs": 1}
    lda = pb.LatentDirichletAllocation(N_TOPICS, formula=formula, **options).fit(corpus)
    high, low = (pd.DataFrame(rows[:, 1:], columns=NAMES) for rows in settings())
    effect = pb.topics.contrast(lda, high, low)
    return lda.components_, effect.mean, effect.interval()


def gdmr(corpus: pb.Corpus, x: Floats, n_topics: int, seed: int) -> Any:
    """A generalised DMR of first degree, which has no model of numbers without interactions."""
    theirs = tomotopy.GDMRModel(k=n_topics, degrees=[1] * x.shape[1], seed=seed)
    for text, row in zip(texts(corpus), x, strict=True):
        theirs.add_doc(text, numeric_metadata=row.tolist())
    return theirs


def of_tomotopy(corpus: pb.Corpus, seed: int) -> tuple[Floats, Floats, None]:
    theirs = gdmr(corpus, corpus.metadata.to_numpy(), N_TOPICS, seed + 1)
    theirs.train(SWEEPS, workers=1)
    shares = [
        np.array([theirs.tdf(row[1:].tolist(), normalize=True) for row in rows])
        for rows in settings()
    ]
    topics = pb.interop.from_tomotopy(theirs, numeric_metadata=[0.0, 0.0, 0.0])
    return in_order(topics, corpus), shares[0] - shares[1], None


def of_topica(corpus: pb.Corpus, seed: int) -> tuple[Floats, Floats, None]:
    theirs = topica.DMR(N_TOPICS, seed=seed + 1)
    x = corpus.metadata.to_numpy()
    theirs.fit(texts(corpus), features=x, iters=SWEEPS, num_threads=1, progress=False)
    topics = pb.interop.from_topica(theirs, covariates=[0.0, 0.0, 0.0])
    return in_order(topics, corpus), contrasts(np.asarray(theirs.feature_effects)), None


def in_order(model: Any, corpus: pb.Corpus) -> Floats:
    """Topics over the words of the corpus; 0 for those that the model lacks."""
    topics = pd.DataFrame(model.components_, columns=list(model.vocabulary_))
    return topics.reindex(columns=list(corpus.vocabulary), fill_value=0.0).to_numpy()


PACKAGES: dict[str, Callable[[pb.Corpus, int], tuple[Floats, Floats, Floats | None]]] = {
    "polyabayes, LDA with covariates": of_polyabayes,
    "tomotopy, GDMR": of_tomotopy,
    "topica, DMR": of_topica,
}


def planted() -> None:
    """Coverage and errors of contrasts of prevalence."""
    columns = {
        "model": "s", "corpora": "d", "coverage of 95 % intervals": ".1%",
        "coverage, null covariate": ".1%", "rms error, effects": ".4f",
        "rms error, null covariate": ".4f", "s a corpus": ".1f",
    }  # fmt: skip
    table = Table("covariates-planted", f"{COMMAND} planted", columns, RESTS_ON)
    for name, fit in PACKAGES.items():
        held, errors, spent = [], [], 0.0
        for seed in range(N_CORPORA):
            corpus, coefficients, planted_topics = drawn(seed)
            (topics, means, ends), seconds = timed(fit, corpus, seed)
            spent += seconds
            order = linear_sum_assignment(-np.sqrt(planted_topics) @ np.sqrt(topics).T)[1]
            truth = contrasts(coefficients)
            errors.append(means[:, order] - truth)
            if ends is not None:
                low, high = ends[:, :, order]
                held.append((low <= truth) & (truth <= high))
        off, within = np.array(errors), np.array(held)
        shares = [within[:, :2].mean(), within[:, 2].mean()] if held else [None, None]
        rms = [float(np.sqrt((part**2).mean())) for part in (off[:, :2], off[:, 2])]
        table.add(name, N_CORPORA, *shares, *rms, spent / N_CORPORA)
    save(table)


def blogs() -> pb.Corpus:
    """Political blogs with rating and day."""
    return record.corpus("poliblog5k").with_metadata(pd.read_csv(DATA / "poliblog5k.meta.csv"))


def design(corpus: pb.Corpus) -> Floats:
    """Rating, 1 for liberal, and day from 0 to 1."""
    metadata = corpus.metadata
    return np.column_stack([metadata["rating"] == "Liberal", metadata["day"] / 366.0]).astype(float)


Fitted = tuple[str, float, Any, Any]


def with_and_without(train: pb.Corpus, n_topics: int) -> Iterator[Fitted]:
    """Name, training time, model, and covariates by keyword."""
    for name, formula in (("with covariates", "~ rating + day"), ("without", None)):
        lda = pb.LatentDirichletAllocation(n_topics, formula=formula, random_state=0, n_jobs=1)
        yield f"polyabayes, LDA {name}", timed(lda.fit, train)[1], lda, None


def of_gdmr(train: pb.Corpus, test: pb.Corpus, n_topics: int, budget: float) -> Fitted:
    """A model of tomotopy, after as much processor time as ours has taken."""
    theirs = gdmr(train, design(train), n_topics, 1)
    seconds = trained_for(theirs, budget, 10)
    model = pb.interop.from_tomotopy(theirs, numeric_metadata=design(test))
    return "tomotopy, GDMR", seconds, model, None


def of_package(
    make: Any, given: str, train: pb.Corpus, n_topics: int, budget: float
) -> tuple[Any, float]:
    """A model of topica, after about as much processor time; at least six iterations."""
    documents, x = texts(train), design(train)

    def fitted(n_iter: int) -> tuple[Any, float]:
        theirs = make(n_topics, seed=1)
        settings = {"iters": n_iter, "num_threads": 1, given: x}
        return theirs, timed(theirs.fit, documents, **settings)[1]

    first, few = fitted(1)[1], fitted(6)[1]
    return fitted(max(6, int(5 * (budget - first) / max(few - first, 0.01))))


def topica_models(
    train: pb.Corpus, test: pb.Corpus, n_topics: int, budget: float
) -> Iterator[Fitted]:
    x = design(test)
    dmr, seconds = of_package(topica.DMR, "features", train, n_topics, budget)
    yield "topica, DMR", seconds, pb.interop.from_topica(dmr, covariates=x), None
    stm, seconds = of_package(topica.STM, "prevalence", train, n_topics, budget)
    rows = np.column_stack([np.ones(len(x)), x])
    yield "topica, STM", seconds, pb.interop.from_topica(stm), rows


def poliblog(topics: int = 20) -> None:
    """Score the held-out documents by all models."""
    train, test = blogs().split(test_size=0.1, random_state=0)
    columns = {
        "topics": "d", "model": "s", "training, s": ".0f", "nats per token": ".4f", "±": ".4f",
        "behind the first": ".4f", "± of it": ".4f",
    }  # fmt: skip
    name = f"covariates-poliblog-{topics}"
    table = Table(name, f"{COMMAND} poliblog --topics {topics}", columns, RESTS_ON)
    options: dict[str, Any] = {"unseen": "drop", "random_state": 0, "n_jobs": 1}
    first, budget = None, 0.0

    def fits() -> Iterator[Fitted]:
        yield from with_and_without(train, topics)
        yield of_gdmr(train, test, topics, budget)
        yield from topica_models(train, test, topics, budget)

    for name, seconds, model, rows in fits():
        found = pb.log_likelihood(model, test, covariates=rows, **options)
        first, budget = first or found, budget or seconds
        behind = paired_difference(first.values - found.values, first.n_tokens)
        errors = [None, None] if found is first else [behind.mean, behind.std_error]
        score = found.nats_per_token, found.nats_per_token_std_error
        table.add(topics, name, seconds, *score, *errors)
    save(table)


def cost() -> None:
    """Processor time of a sweep with five columns of covariates and without, in turn.

    Fits of few and of more sweeps are subtracted, so that the start does not count.
    """
    corpus = blogs()
    formulas = {"learned priors": None, "five columns of covariates": "~ rating + bs(day, df=4)"}

    def fit_seconds(formula: str | None, max_iter: int) -> float:
        options: dict[str, Any] = {"burn_in": 0, "random_state": 0, "n_jobs": 1}
        model = pb.LatentDirichletAllocation(50, max_iter=max_iter, formula=formula, **options)
        return timed(model.fit, corpus)[1]

    few, many = 3, 15
    found: dict[str, list[float]] = {name: [] for name in formulas}
    for _ in range(N_REPEATS):
        for name, formula in formulas.items():
            seconds = fit_seconds(formula, many) - fit_seconds(formula, few)
            found[name].append(seconds / (many - few))
    columns = {"prior": "s", "processor time of a sweep": "s", "ratio": ".2f", "least to most": "s"}
    table = Table("covariates-cost", f"{COMMAND} cost", columns, RESTS_ON)
    first = next(iter(found.values()))
    for name, seconds in found.items():
        ratios = np.array(seconds) / np.array(first)
        spread = f"{ratios.min():.2f} to {ratios.max():.2f}"
        table.add(name, f"{1e3 * np.median(seconds):.0f} ms", float(np.median(ratios)), spread)
    save(table)


if __name__ == "__main__":
    main(planted, poliblog, cost)
