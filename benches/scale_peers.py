"""Packages that train LDA, on the documents of shards: passes on one thread, and what they cost.

Each takes a folder of shards, the number of topics and that of passes, and returns processor
seconds and topics. Spark joins in where it is installed, and Java.
"""

import importlib.util
import shutil
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from peers import normalised, tomotopy_model, tomotopy_topics
from record import timed
from scipy import sparse

import polyabayes as pb

# Of documents and of topics, as the generator of the documents has it.
ALPHA, ETA = 0.1, 0.1
# Of a batch of the online methods.
BATCH = 2_000

Trained = tuple[float, np.ndarray]
Train = Callable[[str, int, int], Trained]


def _blocks(folder: str) -> Iterator[Any]:
    return (block.counts for block in pb.read_shards(folder).blocks(BATCH))


def _corpus(folder: str) -> pb.Corpus:
    return pb.Corpus(sparse.vstack(list(_blocks(folder)), "csr"))


def polyabayes(documents: Any, n_topics: int, n_passes: int) -> Trained:
    options = {"max_iter": n_passes, "n_jobs": 1, "random_state": 0}
    options |= {"doc_topic_prior": ALPHA, "topic_word_prior": ETA}
    lda = pb.LatentDirichletAllocation(n_topics, **options)
    return timed(lda.fit, documents)[1], lda.components_


def polyabayes_shards(folder: str, n_topics: int, n_passes: int) -> Trained:
    return polyabayes(pb.read_shards(folder), n_topics, n_passes)


def polyabayes_memory(folder: str, n_topics: int, n_passes: int) -> Trained:
    return polyabayes(_corpus(folder), n_topics, n_passes)


def tomotopy_gibbs(folder: str, n_topics: int, n_passes: int) -> Trained:
    corpus = _corpus(folder)
    model = tomotopy_model(corpus, n_topics)
    _, seconds = timed(model.train, n_passes, workers=1, show_progress=False)
    return seconds, tomotopy_topics(model, corpus.n_words)


def online(folder: str, n_passes: int, update: Callable[[Any], Any]) -> float:
    """Processor seconds of passes over the documents, a batch an update."""

    def passes() -> None:
        for _ in range(n_passes):
            for counts in _blocks(folder):
                update(counts)

    return timed(passes)[1]


def sklearn_online(folder: str, n_topics: int, n_passes: int) -> Trained:
    from sklearn.decomposition import LatentDirichletAllocation

    priors = {"doc_topic_prior": ALPHA, "topic_word_prior": ETA}
    model = LatentDirichletAllocation(n_topics, **priors, learning_method="online", random_state=0)
    return online(folder, n_passes, model.partial_fit), normalised(model.components_)


def gensim_online(folder: str, n_topics: int, n_passes: int) -> Trained:
    from gensim.matutils import Sparse2Corpus
    from gensim.models import LdaModel

    id2word = {word: str(word) for word in range(pb.read_shards(folder).n_words)}
    priors = {"alpha": [ALPHA] * n_topics, "eta": ETA}
    model = LdaModel(None, n_topics, id2word, chunksize=BATCH, random_state=0, **priors)
    seconds = online(
        folder, n_passes, lambda x: model.update(Sparse2Corpus(x, documents_columns=False))
    )
    return seconds, normalised(model.get_topics().astype(float))


def spark(folder: str, n_topics: int, **settings: Any) -> Trained:
    """Spark's LDA on one local thread; the seconds are those of the Java machine."""
    import psutil
    from pyspark.ml.clustering import LDA
    from pyspark.ml.linalg import SparseVector
    from pyspark.sql import SparkSession

    local = SparkSession.builder.master("local[1]").config("spark.driver.memory", "8g")
    session = local.config("spark.ui.enabled", "false").getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    corpus = _corpus(folder)
    rows = [
        (SparseVector(corpus.n_words, counts.indices, counts.data.astype(float)),)
        for counts in corpus.counts
    ]
    frame = session.createDataFrame(rows, ["features"]).cache()
    frame.count()
    machine = session.sparkContext._gateway.proc
    clock = psutil.Process(machine.pid)
    start = sum(clock.cpu_times()[:2])
    lda = LDA(k=n_topics, seed=0, **settings).fit(frame)
    topics = lda.topicsMatrix().toArray().T
    seconds = sum(clock.cpu_times()[:2]) - start
    session.stop()
    # It ends with its standard input; only then does the system tell its memory.
    machine.stdin.close()
    machine.wait()
    return seconds, topics


def spark_em(folder: str, n_topics: int, n_passes: int) -> Trained:
    # The largest posterior density: one more than the priors, and counts without them.
    concentrations = {"docConcentration": [ALPHA + 1] * n_topics, "topicConcentration": ETA + 1}
    seconds, topics = spark(folder, n_topics, optimizer="em", maxIter=n_passes, **concentrations)
    return seconds, normalised(topics + ETA)


def spark_online(folder: str, n_topics: int, n_passes: int) -> Trained:
    share = min(1.0, BATCH / pb.read_shards(folder).n_documents)
    settings = {"docConcentration": [ALPHA] * n_topics, "topicConcentration": ETA}
    settings |= {"subsamplingRate": share, "maxIter": round(n_passes / share)}
    seconds, topics = spark(folder, n_topics, optimizer="online", **settings)
    return seconds, normalised(topics)


TRAINERS: dict[str, Train] = {
    "polyabayes, in memory": polyabayes_memory,
    "polyabayes, 4 shards": polyabayes_shards,
    "tomotopy, in memory": tomotopy_gibbs,
    "scikit-learn, partial_fit": sklearn_online,
    "gensim, online": gensim_online,
}
if importlib.util.find_spec("pyspark") is not None and shutil.which("java") is not None:
    TRAINERS |= {"Spark, EM": spark_em, "Spark, online": spark_online}
