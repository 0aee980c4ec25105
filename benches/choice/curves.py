"""The curve of a choice on real corpora, and on planted ones that do not follow LDA.

    python -m benches.choice.curves [CASE ...]

A case is a corpus of the data folder, `ap` or `poliblog5k`, or one of `LAWS` and a seed, as
`bursty:0`. Choices are kept as they are made; both tables are made of all that are kept. Processor
seconds are those of all threads: two cores take half of the time. Those told before are processor
seconds too, by the short fits of ``choice_cost``.
"""

import json
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any
from unittest import mock

import numpy as np
from benches.choice.planted import DATA
from benches.record import RUNS, Table, machine, save, told

import polyabayes as pb
from polyabayes.exceptions import PolyabayesWarning
from polyabayes.sizes.choice import cost

MOST_TOPICS = 200
PATH = RUNS / "choice-curves.jsonl"
N_WORDS = 400
Shares = np.ndarray[Any, np.dtype[np.float64]]


def _documents(weights: Shares, topics: Shares, rng: np.random.Generator, length: int) -> Any:
    """Documents of so many tokens, one for each row of weights."""
    return np.array([rng.multinomial(length, row) for row in weights @ topics])


def bursty(rng: np.random.Generator) -> Any:
    """Each document has topics of its own, drawn around 6 common ones."""
    topics = rng.dirichlet(np.full(N_WORDS, 0.05), 6)
    rows = []
    for weights in rng.dirichlet(np.full(6, 0.1), 400):
        own = np.array([rng.dirichlet(100 * topic + 1e-6) for topic in topics])
        rows.append(rng.multinomial(100, weights @ own))
    return np.array(rows)


def correlated(rng: np.random.Generator) -> Any:
    """8 topics with logistic normal weights: pairs of correlation 0.8."""
    pairs = np.kron(np.eye(4), [[1.0, 0.8], [0.8, 1.0]])
    logits = rng.multivariate_normal(np.zeros(8), 4 * pairs, 400)
    weights = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    return _documents(weights, rng.dirichlet(np.full(N_WORDS, 0.05), 8), rng, 100)


def power_law(rng: np.random.Generator) -> Any:
    """8 topics around words whose frequencies fall as 1 / rank."""
    frequencies = 1.0 / np.arange(1, N_WORDS + 1)
    topics = rng.dirichlet(20 * frequencies / frequencies.sum() + 1e-3, 8)
    return _documents(rng.dirichlet(np.full(8, 0.1), 400), topics, rng, 100)


def background(rng: np.random.Generator) -> Any:
    """8 topics, and two tokens in five from words that all documents share."""
    topics = rng.dirichlet(np.full(N_WORDS, 0.05), 8)
    topics = 0.6 * topics + 0.4 * rng.dirichlet(np.full(N_WORDS, 0.1))
    return _documents(rng.dirichlet(np.full(8, 0.1), 400), topics, rng, 100)


def hierarchy(rng: np.random.Generator) -> Any:
    """10 broad topics of 4 narrow ones each, which share half of their words."""
    broad = rng.dirichlet(np.full(N_WORDS, 0.03), 10)
    topics = 0.5 * np.repeat(broad, 4, axis=0) + 0.5 * rng.dirichlet(np.full(N_WORDS, 0.03), 40)
    weights = rng.dirichlet(np.full(10, 0.1), 800)
    narrow = rng.dirichlet(np.full(4, 0.3), (800, 10))
    return _documents((weights[..., np.newaxis] * narrow).reshape(800, 40), topics, rng, 100)


LAWS: dict[str, tuple[str, Callable[[np.random.Generator], Any]]] = {
    "bursty": ("6", bursty),
    "correlated": ("8", correlated),
    "power law": ("8", power_law),
    "background": ("8, or 9", background),
    "hierarchy": ("10, of 4 each", hierarchy),
}


def chosen(case: str) -> dict[str, Any]:
    """The choice for one corpus, and its processor time."""
    law, _, seed = case.partition(":")
    planted, options = "", {}
    if law in LAWS:
        planted, drawn = LAWS[law]
        counts = drawn(np.random.default_rng([int(seed), *law.encode()]))
        corpus = pb.Corpus(counts[:, counts.any(axis=0)])
    else:
        corpus = pb.read_corpus(DATA / f"{law}.ldac.gz", vocabulary=DATA / f"{law}.vocab")
        options = {"max_size": MOST_TOPICS}
    model = pb.LatentDirichletAllocation(n_jobs=1)
    with mock.patch.object(cost.time, "perf_counter", time.process_time):
        told_before = pb.choice_cost(model, corpus, **options)
    start = time.process_time()
    choice = pb.choose_n_components(model, corpus, random_state=0, **options)
    seconds = time.process_time() - start
    print(f"{case}: {choice}\n{choice.to_frame().round(4).to_string()}", flush=True)
    lost = {row["size"]: row["behind"] for row in choice.rows}
    near = [row["behind_std_error"] for row in choice.rows if row["behind"] <= 0.05]
    return {
        "case": case,
        "planted": planted,
        "documents": corpus.n_documents,
        "tokens": corpus.n_tokens,
        "recommended": f"{choice.recommended} ({choice.rule})",
        "bends": ", ".join(f"{size} ({lost[size]:.3f})" for size in sorted(choice.elbows)),
        "within": ", ".join(str(choice.within(loss)) for loss in (0.05, 0.02, 0.01)),
        "best": choice.best,
        "error": float(np.max(near)),
        "fits": sum(row["n_folds"] for row in choice.rows),
        "told": told_before.seconds,
        "seconds": seconds,
    }


COLUMNS = {
    "case": ("corpus", "s"),
    "planted": ("planted", "s"),
    "documents": ("documents", ",d"),
    "tokens": ("tokens", ",d"),
    "recommended": ("recommended", "s"),
    "bends": ("bends (nats per token behind)", "s"),
    "within": ("within 0.05, 0.02, 0.01", "s"),
    "best": ("best", "d"),
    "error": ("largest error of a difference within 0.05", ".4f"),
    "fits": ("fits", "d"),
    "told": ("told before [s]", ",.0f"),
    "seconds": ("processor time [s]", ",.0f"),
}


def main() -> None:
    """Choose for the corpora named, and make the tables of all that are kept."""
    warnings.simplefilter("ignore", PolyabayesWarning)
    pieces = {piece["case"]: piece for piece in map(json.loads, PATH.read_text().splitlines())}
    for case in sys.argv[1:]:
        pieces[case] = machine() | chosen(case)
        PATH.write_text("".join(json.dumps(piece) + "\n" for piece in pieces.values()))
    for name, is_planted in (("choice-minutes", False), ("choice-laws", True)):
        kept = [piece for piece in pieces.values() if bool(piece["planted"]) == is_planted]
        if not kept:
            continue
        keys = [key for key in COLUMNS if is_planted or key != "planted"]
        columns = dict(COLUMNS[key] for key in keys)
        table = Table(name, "python -m benches.choice.curves", columns, ["lda, Gibbs"])
        for piece in sorted(kept, key=lambda piece: piece["case"]):
            table.add(*(piece.get(key) for key in keys))
        save(table, note=told(kept))


if __name__ == "__main__":
    main()
