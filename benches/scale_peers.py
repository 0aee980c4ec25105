"""Packages that train LDA, on the documents of shards: passes on one thread, and what they cost.

Those that are installed; Spark also wants Java.
"""

import importlib.util
import shutil
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from peers import normalised, tomotopy_model, tomotopy_topics
from scipy import sparse

import polyabayes as pb

# Of documents and of topics, as the generator of the documents has it.
ALPHA, ETA = 0.1, 0.1
# Of a batch of the online methods.
BATCH = 2_000


class Trained(NamedTuple):
    """CPU seconds of all passes, and the topics."""

    seconds: float
    topic_word: np.ndarray


Train = Callable[[str, int, int], Trained]


def _blocks(folder: str) -> Iterator[Any]:
    return (block.counts for block in pb.read_shards(folder).blocks(BATCH))


def _corpus(folder: str) -> pb.Corpus:
    return pb.Corpus(sparse.vstack(list(_blocks(folder)), "csr"))


def polyabayes(documents: Any, n_topics: int, n_passes: int) -> Trained:
    lda = pb.LatentDirichletAllocation(
        n_topics,
        doc_topic_prior=ALPHA,
        topic_word_prior=ETA,
        max_iter=n_passes,
        n_jobs=1,
        random_state=0,
    )
    start = time.process_time()
    lda.fit(documents)
    return Trained(time.process_time() - start, lda.components_)


def polyabayes_shards(folder: str, n_topics: int, n_passes: int) -> Trained:
    return polyabayes(pb.read_shards(folder), n_topics, n_passes)


def polyabayes_memory(folder: str, n_topics: int, n_passes: int) -> Trained:
    return polyabayes(_corpus(folder), n_topics, n_passes)


def sklearn_online(folder: str, n_topics: int, n_passes: int) -> Trained:
    from sklearn.decomposition import LatentDirichletAllocation

    model = LatentDirichletAllocation(
        n_topics,
        doc_topic_prior=ALPHA,
        topic_word_prior=ETA,
        learning_method="online",
        random_state=0,
    )
    start = time.process_time()
    for _ in range(n_passes):
        for counts in _blocks(folder):
            model.partial_fit(counts)
    return Trained(time.process_time() - start, normalised(model.components_))


def gensim_online(folder: str, n_topics: int, n_passes: int) -> Trained:
    from gensim.matutils import Sparse2Corpus
    from gensim.models import LdaModel

    id2word = {word: str(word) for word in range(pb.read_shards(folder).n_words)}
    model = LdaModel(
        None, n_topics, id2word, chunksize=BATCH, alpha=[ALPHA] * n_topics, eta=ETA, random_state=0
    )
    start = time.process_time()
    for _ in range(n_passes):
        for counts in _blocks(folder):
            model.update(Sparse2Corpus(counts, documents_columns=False))
    return Trained(time.process_time() - start, normalised(model.get_topics().astype(float)))


def tomotopy_gibbs(folder: str, n_topics: int, n_passes: int) -> Trained:
    corpus = _corpus(folder)
    model = tomotopy_model(corpus, n_topics)
    start = time.process_time()
    model.train(n_passes, workers=1, show_progress=False)
    return Trained(time.process_time() - start, tomotopy_topics(model, corpus.n_words))


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
    return Trained(seconds, topics)


def spark_em(folder: str, n_topics: int, n_passes: int) -> Trained:
    # The largest posterior density: one more than the priors, and counts without them.
    concentrations = {"docConcentration": [ALPHA + 1] * n_topics, "topicConcentration": ETA + 1}
    found = spark(folder, n_topics, optimizer="em", maxIter=n_passes, **concentrations)
    return Trained(found.seconds, normalised(found.topic_word + ETA))


def spark_online(folder: str, n_topics: int, n_passes: int) -> Trained:
    share = min(1.0, BATCH / pb.read_shards(folder).n_documents)
    settings = {
        "optimizer": "online",
        "docConcentration": [ALPHA] * n_topics,
        "topicConcentration": ETA,
        "subsamplingRate": share,
        "maxIter": round(n_passes / share),
    }
    found = spark(folder, n_topics, **settings)
    return Trained(found.seconds, normalised(found.topic_word))


def trainers() -> list[tuple[str, Train]]:
    """Ours, and those whose package is installed."""
    known: list[tuple[str, str, Train]] = [
        ("polyabayes", "polyabayes, in memory", polyabayes_memory),
        ("polyabayes", "polyabayes, 4 shards", polyabayes_shards),
        ("tomotopy", "tomotopy, in memory", tomotopy_gibbs),
        ("sklearn", "scikit-learn, partial_fit", sklearn_online),
        ("gensim", "gensim, online", gensim_online),
        ("pyspark", "Spark, EM", spark_em),
        ("pyspark", "Spark, online", spark_online),
    ]
    return [
        (name, function)
        for package, name, function in known
        if importlib.util.find_spec(package) is not None
        and (package != "pyspark" or shutil.which("java") is not None)
    ]
