"""Training that does not get stuck: every seed near the best, on simulated documents.

Their truth is known: the share of seeds within 0.01 nats per token of the best, and how well their
topics are recovered. `python benches/starts.py planted`: one thread and processor time.
"""

from typing import Any

import numpy as np
from record import Table, main, save, timed

import polyabayes as pb

SEEDS = 20
NEAR = 0.01

Options = dict[str, Any]
PLANTED: dict[str, tuple[type, Options]] = {
    "LDA, Gibbs, fixed priors": (pb.LatentDirichletAllocation, {"learn_priors": False}),
    "LDA, Gibbs, learned priors": (pb.LatentDirichletAllocation, {}),
    "LDA, EM": (pb.LatentDirichletAllocation, {"fit_method": "em"}),
    "PFA": (pb.PoissonFactorAnalysis, {}),
    "NMF": (pb.PoissonFactorAnalysis, {"prior": "nmf"}),
}


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
    table = Table("starts-planted", "python benches/starts.py planted", columns, golden)
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


if __name__ == "__main__":
    main(planted)
