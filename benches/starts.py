"""Training that does not get stuck: every seed near the best, on simulated and on real documents.

Simulated documents have a known truth: the share of seeds within 0.01 nats per token of the best,
and how well their topics are recovered. Real ones: held-out nats per token over seeds, fixed priors
against learned ones, beside tomotopy after the processor time of the longer of ours.
`python benches/starts.py [planted|real]`; both are kept in benches/records, one thread and
processor time of each. Scores of real documents are kept seed by seed in benches/records/runs, or
in the folder that POLYABAYES_RUNS names: a run may end at any time and goes on where it was, and
the table is made of all of them.
"""

import argparse
import sys
import time
import warnings
from itertools import product
from typing import Any

import numpy as np
from peers import from_tomotopy, tomotopy, tomotopy_model
from record import DATA, Table, keep, kept, save, told
from scipy.optimize import linear_sum_assignment

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
CORPORA = {"ap": "AP", "reuters": "Reuters", "20ng": "20 Newsgroups", "nips12": "NIPS"}


def nats(model: Any, test: pb.Corpus) -> float:
    """Held-out nats per token, to some 0.001."""
    result = pb.log_likelihood(
        model,
        test,
        "annealed",
        n_samples=20,
        n_replicates=8,
        event="sequence",
        given_length=True,
        n_jobs=1,
        random_state=0,
    )
    return float(result.nats_per_token)


def recovery(found: np.ndarray, true: np.ndarray) -> float:
    """Mean cosine of true topics and those matched with them."""
    rows = [topics / np.linalg.norm(topics, axis=1, keepdims=True) for topics in (true, found)]
    cosines = rows[0] @ rows[1].T
    return float(cosines[linear_sum_assignment(-cosines)].mean())


def planted() -> None:
    """Every kind of training on documents with 8 known topics."""
    data = pb.datasets.make_lda_corpus(
        n_documents=2000,
        n_words=500,
        n_topics=8,
        document_length=80,
        doc_topic_prior=0.1,
        random_state=0,
    )
    train, test = data.corpus.split(test_size=0.2, random_state=0)
    columns = {f"8 topics, {SEEDS} seeds": "s", "near the best": "d", "worst behind": ".4f"}
    columns |= {"least cosine": ".3f", "largest cosine": ".3f", "a fit, s": ".2f"}
    table = Table(
        "starts-planted",
        f"{COMMAND} planted",
        columns,
        ["lda, Gibbs", "lda, EM", "pfa, beta-gamma-gamma"],
    )
    for name, (kind, options) in PLANTED.items():
        scores, cosines, seconds = [], [], []
        for seed in range(SEEDS):
            start = time.process_time()
            model = kind(8, n_jobs=1, random_state=seed, **options).fit(train)
            seconds.append(time.process_time() - start)
            cosines.append(recovery(model.components_, data.topic_word))
            scored = name != "NMF"
            scores.append(nats(model, test) if scored else cosines[-1])
        behind = max(scores) - np.array(scores)
        near = int((behind < NEAR).sum())
        table.add(name, near, behind.max(), min(cosines), max(cosines), np.median(seconds))
    save(table)


def trained_by_tomotopy(train: pb.Corpus, n_topics: int, seed: int, seconds: float) -> Any:
    """Its model after at least so much processor time, as one of ours."""
    peer = tomotopy_model(train, n_topics, seed)
    start = time.process_time()
    while time.process_time() - start < seconds:
        peer.train(5, workers=1)
    return from_tomotopy(peer, train.n_words)


def scores(train: pb.Corpus, test: pb.Corpus, n_topics: int, seed: int) -> dict[str, float]:
    """Held-out nats per token of one seed by every kind of training, and the seconds of ours."""
    found: dict[str, float] = {}
    for kind, options in REAL.items():
        lda = pb.LatentDirichletAllocation(n_topics, n_jobs=1, random_state=seed, **options)
        start = time.process_time()
        lda.fit(train)
        found[f"{kind}, s"] = time.process_time() - start
        found[kind] = nats(lda, test)
    if tomotopy is not None:
        seconds = max(found[f"{kind}, s"] for kind in REAL)
        peer = trained_by_tomotopy(train, n_topics, seed, seconds)
        found["tomotopy"] = nats(peer, test)
    return found


def real(arguments: argparse.Namespace) -> None:
    """Held-out nats per token of real corpora: the seeds that are missing, then the table."""
    until = time.monotonic() + arguments.seconds
    done = {(run["corpus"], run["topics"], run["seed"]) for run in kept("starts")}
    for name in arguments.corpora:
        corpus = pb.read_corpus(DATA / f"{name}.ldac.gz", vocabulary=DATA / f"{name}.vocab")
        train, test = corpus.split(test_size=0.2, random_state=0)
        test = pb.Corpus(test.counts[:N_TEST])
        for n_topics, seed in product(arguments.topics, range(arguments.seeds)):
            if (name, n_topics, seed) in done or time.monotonic() > until:
                continue
            run = {"corpus": name, "topics": n_topics, "seed": seed}
            run |= {"scores": scores(train, test, n_topics, seed)}
            keep("starts", run)
            print(run, flush=True)
    real_table()


def real_table() -> None:
    """One corpus and number of topics a line: mean of the seeds, and the least and most of them."""
    columns = {"corpus": "s", "topics": "d", "seeds": "d"}
    columns |= {f"{kind}, s": ".0f" for kind in REAL}
    columns |= dict.fromkeys((*REAL, "tomotopy"), "s")
    table = Table("starts", f"{COMMAND} real", columns, ["lda, Gibbs"])
    runs = kept("starts")
    for name, n_topics in product(CORPORA, sorted({run["topics"] for run in runs})):
        of_row = [
            run["scores"] for run in runs if (run["corpus"], run["topics"]) == (name, n_topics)
        ]
        if not of_row:
            continue
        spread: list[str | None] = []
        for kind in (*REAL, "tomotopy"):
            values = [found[kind] for found in of_row if kind in found]
            spread.append(
                f"{np.mean(values):.4f} ({min(values):.4f} to {max(values):.4f})"
                if values
                else None
            )
        seconds = [np.median([found[f"{kind}, s"] for found in of_row]) for kind in REAL]
        table.add(CORPORA[name], n_topics, len(of_row), *seconds, *spread)
    save(table, note=told(runs))


def main() -> int:
    """Run the parts that are named."""
    warnings.simplefilter("ignore")
    if not DATA.is_dir():
        print(f"no data in {DATA}: set POLYABAYES_DATA")
        return 1
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("part", nargs="?", choices=["planted", "real"], help="both by default")
    parser.add_argument("--corpora", nargs="+", choices=[*CORPORA], default=[*CORPORA])
    parser.add_argument("--topics", nargs="+", type=int, default=[20, 50, 100])
    parser.add_argument("--seeds", type=int, default=10, help="of each row of the real corpora")
    parser.add_argument("--seconds", type=float, default=1e9, help="after which no seed begins")
    arguments = parser.parse_args()
    if arguments.part in (None, "planted"):
        planted()
    if arguments.part in (None, "real"):
        real(arguments)
    return 0


if __name__ == "__main__":
    sys.exit(main())
