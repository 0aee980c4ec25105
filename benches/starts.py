"""Training that does not get stuck: every seed near the best, on simulated and on real documents.

Simulated documents have a known truth: the share of seeds within 0.01 nats per token of the best,
and how well their topics are recovered. Real ones: held-out nats per token over seeds, fixed priors
against learned ones, beside tomotopy after the processor time of the longer of ours.
`python benches/starts.py [planted|real]`; both are kept in benches/records, one thread and
processor time of each. Scores of real documents are kept seed by seed in benches/records/runs, or
in the folder that POLYABAYES_RUNS names: a run may end at any time and goes on where it was, and
the table is made of all of them.
"""

from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from peers import from_tomotopy, tomotopy_model, trained_for
from record import Table, corpus, keep, kept, main, save, timed, told

import polyabayes as pb

COMMAND = "python benches/starts.py"
SEEDS = 20
NEAR = 0.01
N_TEST = 300

Options = dict[str, Any]
PLANTED: dict[str, tuple[type, Options]] = {
    "LDA, Gibbs, fixed priors": (pb.LatentDirichletAllocation, {"learn_priors": False}),
    "LDA, Gibbs, learned priors": (pb.LatentDirichletAllocation, {}),
    "LDA, EM": (pb.LatentDirichletAllocation, {"fit_method": "em"}),
    "PFA": (pb.PoissonFactorAnalysis, {}),
    "NMF": (pb.PoissonFactorAnalysis, {"prior": "nmf"}),
}
REAL: dict[str, Options] = {"fixed priors": {"learn_priors": False}, "learned priors": {}}
SIZES = (20, 50, 100)
KEPT = "starts"
CORPORA = {"ap": "AP", "reuters": "Reuters", "20ng": "20 Newsgroups", "nips12": "NIPS"}


def nats(model: Any, test: pb.Corpus) -> float:
    """Held-out nats per token, to some 0.001."""
    options: Options = {"event": "sequence", "given_length": True, "n_jobs": 1, "random_state": 0}
    options |= {"n_samples": 20, "n_replicates": 8}
    return float(pb.log_likelihood(model, test, "annealed", **options).nats_per_token)


def planted() -> None:
    """Every kind of training on documents with 8 known topics."""
    law: Options = {"document_length": 80, "doc_topic_prior": 0.1, "random_state": 0}
    data = pb.datasets.make_lda_corpus(n_documents=2000, n_words=500, n_topics=8, **law)
    train, test = data.corpus.split(test_size=0.2, random_state=0)
    columns = {f"8 topics, {SEEDS} seeds": "s", "near the best": "d", "worst behind": ".4f"}
    columns |= {"least cosine": ".3f", "largest cosine": ".3f", "a fit, s": ".2f"}
    golden = ["lda, Gibbs", "lda, EM", "pfa, beta-gamma-gamma"]
    table = Table("starts-planted", f"{COMMAND} planted", columns, golden)
    for name, (kind, options) in PLANTED.items():
        scores, cosines, seconds = [], [], []
        for seed in range(SEEDS):
            model, spent = timed(kind(8, n_jobs=1, random_state=seed, **options).fit, train)
            seconds.append(spent)
            matched = pb.topics.match_topics(data.topic_word, model)
            cosines.append(float(matched.similarities.mean()))
            scored = name != "NMF"
            scores.append(nats(model, test) if scored else cosines[-1])
        behind = max(scores) - np.array(scores)
        near = int((behind < NEAR).sum())
        table.add(name, near, behind.max(), min(cosines), max(cosines), np.median(seconds))
    save(table)


def scores(train: pb.Corpus, test: pb.Corpus, n_topics: int, seed: int) -> dict[str, float]:
    """Held-out nats per token of one seed by every kind of training, and the seconds of ours."""
    found: dict[str, float] = {}
    for kind, options in REAL.items():
        lda = pb.LatentDirichletAllocation(n_topics, n_jobs=1, random_state=seed, **options)
        _, found[f"{kind}, s"] = timed(lda.fit, train)
        found[kind] = nats(lda, test)
    peer = tomotopy_model(train, n_topics, seed)
    trained_for(peer, max(found[f"{kind}, s"] for kind in REAL), 5)
    return found | {"tomotopy": nats(from_tomotopy(peer, train.n_words), test)}


def real(seeds: int = 10) -> None:
    """Held-out nats per token of real corpora: the seeds that are missing, then the table."""
    done = {(run["corpus"], run["topics"], run["seed"]) for run in kept(KEPT)}
    for name in CORPORA:
        train, test = corpus(name).split(test_size=0.2, random_state=0)
        test = pb.Corpus(test.counts[:N_TEST])
        for n_topics, seed in product(SIZES, range(seeds)):
            if (name, n_topics, seed) not in done:
                run = {"corpus": name, "topics": n_topics, "seed": seed}
                run |= {"scores": scores(train, test, n_topics, seed)}
                print(keep(KEPT, run), flush=True)
    real_table()


def real_table() -> None:
    """One corpus and number of topics a line: mean of the seeds, and the least and most of them."""
    columns = {"corpus": "s", "topics": "d", "seeds": "d"}
    columns |= {f"{kind}, s": ".0f" for kind in REAL}
    columns |= dict.fromkeys((*REAL, "tomotopy"), "s")
    table = Table("starts", f"{COMMAND} real", columns, ["lda, Gibbs"])
    runs = kept(KEPT)
    for name, n_topics in product(CORPORA, SIZES):
        own = [run for run in runs if (run["corpus"], run["topics"]) == (name, n_topics)]
        found = pd.DataFrame([run["scores"] for run in own])
        spread = [
            f"{nats.mean():.4f} ({nats.min():.4f} to {nats.max():.4f})"
            for nats in (found[kind] for kind in (*REAL, "tomotopy"))
        ]
        seconds = [found[f"{kind}, s"].median() for kind in REAL]
        table.add(CORPORA[name], n_topics, len(found), *seconds, *spread)
    save(table, note=told(runs))


if __name__ == "__main__":
    main(planted, real)
