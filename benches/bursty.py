"""What an estimate under bursty topics costs beside one under ordinary topics of the same error.

``python benches/bursty.py`` trains both on four fifths of each corpus by default, and scores the
same held-out documents under three seeds. Processor time of one thread; the variance of an
estimate falls as its time grows, so that their product compares the two. Part ``sweeps`` scores
the same held-out documents of AP after more and more sweeps of training, part ``training`` times
a sweep of both.
"""

import numpy as np
import record
from record import Table, main, save, timed

import polyabayes as pb

CASES = [(name, n_topics) for name in ("ap", "poliblog5k", "nips12") for n_topics in (20, 100)]
N_DOCUMENTS, SEEDS = 60, (0, 1, 2)


def scored(
    train: pb.Corpus, test: pb.Corpus, n_topics: int, how: str | None
) -> tuple[float, float]:
    """Milliseconds a document, and the root mean square of the stated errors."""
    options = {"topic_concentration": how, "random_state": 0, "n_jobs": 1}
    model = pb.LatentDirichletAllocation(n_topics, **options).fit(train)
    found = [timed(pb.log_likelihood, model, test, n_jobs=1, random_state=seed) for seed in SEEDS]
    errors = np.array([result.std_errors for result, _ in found])
    seconds = np.mean([seconds for _, seconds in found])
    return 1e3 * seconds / test.n_documents, float(np.sqrt((errors**2).mean()))


def bursts() -> None:
    columns = {
        "corpus": "s", "K": "d", "LDA, ms a document": ".1f", "LDA, ±": ".3f",
        "bursty, ms a document": ".1f", "bursty, ±": ".3f", "time at equal error / LDA's": ".1f",
    }  # fmt: skip
    golden = ["lda, annealed", "bursty lda, annealed"]
    table = Table("bursty", "python benches/bursty.py", columns, golden)
    for name, n_topics in CASES:
        train, test = record.corpus(name).split(test_size=0.2, random_state=0)
        (ms, error), (ms_bursty, error_bursty) = (
            scored(train, test[:N_DOCUMENTS], n_topics, how) for how in (None, "learn")
        )
        ratio = ms_bursty * error_bursty**2 / (ms * error**2)
        table.add(name, n_topics, ms, error, ms_bursty, error_bursty, ratio)
    save(table)


def sweeps() -> None:
    train, test = record.corpus("ap").split(test_size=0.2, random_state=0)
    test = test[:150]
    columns = {"K": "d", "sweeps": ",", "fit, s": ".0f", "nats a token": ".4f", "±": ".4f"}
    columns |= {"median s": ".0f", "sum of α": ".1f"}
    command = "python benches/bursty.py sweeps"
    table = Table("bursty-sweeps", command, columns, ["bursty lda, Gibbs"])
    for n_topics in (20, 100):
        for max_iter in (200, 400, 800):
            model = pb.LatentDirichletAllocation(
                n_topics, topic_concentration="learn", max_iter=max_iter, random_state=0, n_jobs=1
            )
            seconds = timed(model.fit, train)[1]
            found = pb.log_likelihood(model, test, random_state=0)
            error = found.total_std_error / test.n_tokens
            middle, total = np.median(model.topic_concentration_), model.doc_topic_prior_.sum()
            table.add(n_topics, max_iter, seconds, found.nats_per_token, error, middle, total)
    save(table)


def training() -> None:
    """Time of a sweep: that of 160 sweeps, less that of 60, over 100."""
    train, _ = record.corpus("ap").split(test_size=0.2, random_state=0)
    columns = {"AP, K": "d", "LDA, ms a sweep": ".1f", "bursty, ms a sweep": ".1f"}
    columns |= {"bursty / LDA": ".2f"}
    golden = ["lda, Gibbs", "bursty lda, Gibbs"]
    table = Table("bursty-training", "python benches/bursty.py training", columns, golden)
    for n_topics in (20, 100, 300, 500):
        times = []
        for how in (None, "learn"):
            options = {"topic_concentration": how, "random_state": 0, "n_jobs": 1}
            lda = pb.LatentDirichletAllocation(n_topics, **options)
            few, many = (timed(lda.set_params(max_iter=n).fit, train)[1] for n in (60, 160))
            times.append(10 * (many - few))
        table.add(n_topics, *times, times[1] / times[0])
    save(table)


if __name__ == "__main__":
    main(bursts, sweeps, training)
