"""Training on shards is training in memory, bit for bit, whoever is killed when."""

import concurrent.futures
import dataclasses
import errno
import hashlib
import json
import multiprocessing
import os
import signal
import subprocess
import sys
import textwrap
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from functools import cache

import numpy as np
import pytest
from scipy import sparse

import polyabayes as pb
from polyabayes.exceptions import (
    BudgetExceededError,
    FileAccessError,
    FileFormatError,
    InvalidArgumentError,
    InvalidTypeError,
    WorkerError,
)
from polyabayes.scale import executors, sealed, shard_sweeps, shard_tokens, token_order

N_WORDS = 40
DATA = pb.datasets.make_lda_corpus(60, N_WORDS, 3, document_length=25, random_state=0)
NONE = np.zeros((1, N_WORDS), int)
# Empty documents first, within and last, and a run of them that may fill a shard.
CORPUS = pb.Corpus(
    np.concatenate([NONE, DATA.corpus.counts[:30].toarray(), *[NONE] * 20]).tolist()
    + np.concatenate([DATA.corpus.counts[30:].toarray(), NONE]).tolist(),
    vocabulary=[f"w{i}" for i in range(N_WORDS)],
)
SETTINGS = {"max_iter": 14, "burn_in": 8, "thin": 2, "random_state": 3}
MODELS = {
    "fixed": {},
    "learned": {"learn_priors": True},
    "starts": {"n_init": 3, "learn_priors": True},
    "own alpha": {"doc_topic_prior": [0.5, 0.25, 2.0, 0.1], "burn_in": 1},
}


PFA_MODELS = {
    "gap": {"prior": "gap", "shape": 0.5},
    "gamma": {"prior": "gamma", "probability": 0.6, "n_init": 2},
    "beta-gamma": {"prior": "beta-gamma", "shape": [0.5, 0.25, 2.0, 0.1]},
    "beta-gamma-gamma": {"shape_mean": 0.5},
}
# The same on documents of different exposures.
EXPOSED_MODELS = {f"exposed {kind}": options for kind, options in PFA_MODELS.items()}
EXPOSED = CORPUS.with_exposure(np.random.default_rng(1).choice([0.5, 1.0, 1.5, 3.7], 82))


def lda(kind, **options):
    return pb.LatentDirichletAllocation(4, **{**SETTINGS, **MODELS[kind], **options})


def new_model(kind, **options):
    """LDA or Poisson factor analysis."""
    if kind in MODELS:
        return lda(kind, **options)
    own = (PFA_MODELS | EXPOSED_MODELS)[kind]
    return pb.PoissonFactorAnalysis(4, **{**SETTINGS, **own, **options})


def corpus_of(kind):
    return EXPOSED if kind in EXPOSED_MODELS else CORPUS


def looks_of(kind):
    return {"eval_corpus": corpus_of(kind)[:5], "eval_every": 4}


@cache
def in_memory(kind):
    corpus = corpus_of(kind)
    return new_model(kind).fit(corpus, **looks_of(kind))


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """Several blocks a shard, also where documents have more cells."""
    monkeypatch.setattr(token_order, "_BLOCK_TOKENS", 60)
    monkeypatch.setattr(token_order, "_TOKENS_PER_WORD", 0)
    monkeypatch.setattr(token_order, "_MOST_DOCUMENTS", 7)
    monkeypatch.setattr(token_order, "_CELLS", 70)
    monkeypatch.setattr(shard_sweeps, "_BLOCKS", 2)
    monkeypatch.setattr(shard_sweeps, "_THREAD_BLOCKS", 1)
    monkeypatch.setattr(shard_sweeps, "_TOPICS", 64)


def assert_same(found, expected):
    is_lda = isinstance(expected, pb.LatentDirichletAllocation)
    learned = ("doc_topic_prior_", "topic_word_prior_") if is_lda else ("shape_", "probability_")
    for name in ("components_", "topic_counts_", "vocabulary_", *learned):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name), name)
    for name in ("n_iter_", "seed_", "n_features_in_", "n_active_"):
        assert getattr(found, name) == getattr(expected, name), name
    for name in ("n_iter", "log_joint", "held_out"):
        np.testing.assert_array_equal(
            getattr(found.trace_, name), getattr(expected.trace_, name), name
        )
    for one, other in zip(found.last_sample_, expected.last_sample_, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("n_shards", [1, 2, 5])
@pytest.mark.parametrize("kind", [*MODELS, *PFA_MODELS, *EXPOSED_MODELS])
def test_shards_give_the_bits_of_memory(tmp_path, kind, n_shards):
    corpus = corpus_of(kind)
    shards = pb.write_shards(corpus, tmp_path, n_shards)
    assert len(shards) == n_shards
    model = new_model(kind).fit(shards, **looks_of(kind))
    assert_same(model, in_memory(kind))
    # Nothing is left beside the shards.
    assert len(list(tmp_path.iterdir())) == n_shards + 1


def test_exposures_are_those_of_the_call_of_the_shards_or_none(tmp_path):
    exposed, plain = in_memory("exposed gap"), in_memory("gap")
    shards = pb.write_shards(CORPUS, tmp_path / "plain", 3)
    model = new_model("gap").fit(shards, exposure=EXPOSED.exposure)
    np.testing.assert_array_equal(model.components_, exposed.components_)
    model = new_model("gap").fit(shards, exposure=1.0)
    np.testing.assert_array_equal(model.components_, plain.components_)
    shards = pb.write_shards(EXPOSED, tmp_path / "exposed", 3)
    model = new_model("gap").fit(shards.with_exposure(None))
    np.testing.assert_array_equal(model.components_, plain.components_)
    # LDA takes lengths as given.
    model = lda("fixed").fit(shards)
    np.testing.assert_array_equal(model.components_, in_memory("fixed").components_)
    state = {"checkpoint": tmp_path / "state"}
    new_model("gap", **state).fit(shards)
    with pytest.raises(InvalidArgumentError, match="its corpus is"):
        new_model("gap", **state).fit(shards.with_exposure(2.0))
    with pytest.raises(InvalidArgumentError, match="exposure"):
        new_model("gap").fit(shards, exposure=[1.0, 2.0])


def test_different_exposures_of_many_documents_of_threads(tmp_path):
    exposure = np.random.default_rng(2).gamma(3.0, size=82)
    shards = pb.write_shards(CORPUS.with_exposure(exposure), tmp_path, 2)
    model = new_model("beta-gamma-gamma", n_jobs=2).fit(shards)
    expected = new_model("beta-gamma-gamma", n_jobs=1).fit(CORPUS, exposure=exposure)
    assert_same(model, expected)


def test_shards_without_tokens(tmp_path):
    few = CORPUS[28:54]
    shards = pb.write_shards(few, tmp_path, few.n_documents)
    assert sum(shard.n_tokens == 0 for shard in shards) == 20
    expected = lda("learned", max_iter=4, burn_in=2).fit(few)
    assert_same(lda("learned", max_iter=4, burn_in=2).fit(shards), expected)


def test_a_shard_without_documents_counts_for_nothing(tmp_path):
    shards = pb.write_shards(CORPUS, tmp_path, 2)
    first, second = shards
    folder = tmp_path / "shard-00009"
    folder.mkdir()
    arrays = {
        "indptr": np.zeros(1, "<i8"),
        "indices": np.zeros(0, "<u4"),
        "data": np.zeros(0, "<u4"),
    }
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array)
    files = {name: (folder / f"{name}.npy").read_bytes() for name in arrays}
    digests = {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}
    none = second._replace(folder=folder, n_documents=0, n_cells=0, n_tokens=0, digests=digests)
    with_none = dataclasses.replace(shards, shards=(first, none, second))
    model = lda("learned").fit(with_none, eval_corpus=CORPUS[:5], eval_every=4)
    assert_same(model, in_memory("learned"))


@pytest.mark.parametrize("n_components", [2, 300])
def test_both_kinds_of_tallies_and_threads(tmp_path, n_components):
    long = sparse.csr_matrix(([70_000], ([0], [3])), (1, N_WORDS)).toarray()
    counts = np.concatenate([CORPUS.counts.toarray(), long])
    shards = pb.write_shards(counts, tmp_path, 3)
    model = pb.LatentDirichletAllocation(n_components, max_iter=4, random_state=1, n_jobs=2)
    expected = pb.LatentDirichletAllocation(n_components, max_iter=4, random_state=1, n_jobs=1)
    assert_same(model.fit(shards), expected.fit(counts))


@pytest.fixture(scope="module", params=[1, 2])
def processes(request):
    with ProcessPoolExecutor(request.param, multiprocessing.get_context("spawn")) as pool:
        yield pool


@pytest.mark.parametrize("n_shards", [1, 2, 5])
@pytest.mark.parametrize(
    "kind", ["learned", "fixed", "beta-gamma-gamma", "exposed beta-gamma-gamma"]
)
def test_processes_give_the_bits_of_memory(tmp_path, processes, kind, n_shards):
    shards = pb.write_shards(corpus_of(kind), tmp_path, n_shards)
    model = new_model(kind).fit(shards, executor=processes, **looks_of(kind))
    assert_same(model, in_memory(kind))


def test_threads_and_dask_give_the_bits_of_memory(tmp_path):
    shards = pb.write_shards(CORPUS, tmp_path, 5)
    held_out = {"eval_corpus": CORPUS[:5], "eval_every": 4}
    with ThreadPoolExecutor(2) as pool:
        assert_same(lda("starts").fit(shards, executor=pool, **held_out), in_memory("starts"))
    distributed = pytest.importorskip("distributed")
    cluster = distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0"
    )
    with cluster, distributed.Client(cluster) as client:
        found = lda("learned").fit(shards, executor=client.get_executor(), **held_out)
    assert_same(found, in_memory("learned"))


class StopAfter:
    """Ends the process, or raises, after so many files of a kind have been written."""

    def __init__(self, n_files, how):
        self.left, self.how = n_files, how
        self._replacing = sealed.replacing

    def __call__(self, path):
        self.left -= 1
        if self.left < 0:
            self.how(path)
        return self._replacing(path)


def interrupt(_):
    raise KeyboardInterrupt


def disk_full(path):
    raise FileAccessError(f"cannot write {path}: {os.strerror(errno.ENOSPC)}")


@pytest.mark.parametrize("n_files", [1, 5, 8, 18, 29, 50])
@pytest.mark.parametrize("how", [interrupt, disk_full])
@pytest.mark.parametrize("kind", ["starts", "beta-gamma-gamma", "exposed beta-gamma-gamma"])
def test_what_was_broken_off_goes_on_to_the_same_bits(tmp_path, kind, how, n_files, monkeypatch):
    corpus = corpus_of(kind)
    shards = pb.write_shards(corpus, tmp_path / "shards", 3)
    model, held_out = new_model(kind, checkpoint=tmp_path / "state"), looks_of(kind)
    with monkeypatch.context() as patch:
        stop = StopAfter(n_files, how)
        patch.setattr(sealed, "replacing", stop)
        with pytest.raises((KeyboardInterrupt, FileAccessError)) as caught:
            model.fit(shards, **held_out)
    if isinstance(caught.value, pb.exceptions.Interrupted):
        assert 0 < model.n_iter_ < 14
        np.testing.assert_allclose(model.components_.sum(axis=1), 1)
    with ThreadPoolExecutor(2) as pool:
        again = new_model(kind, checkpoint=tmp_path / "state").fit(
            pb.read_shards(tmp_path / "shards"), executor=pool, **held_out
        )
    np.testing.assert_array_equal(again.components_, in_memory(kind).components_)
    np.testing.assert_array_equal(again.last_sample_[1], in_memory(kind).last_sample_[1])
    np.testing.assert_array_equal(again.topic_counts_, in_memory(kind).topic_counts_)
    assert again.trace_.log_joint[-1] == in_memory(kind).trace_.log_joint[-1]
    # One state is kept: of each shard, beside the order of its tokens, and of the chain, with the
    # sum of kept sweeps beside it.
    assert len(list((tmp_path / "state").iterdir())) == 8


@pytest.mark.parametrize("nth", [12, 20, 31])
def test_an_interruption_beside_running_tasks_keeps_the_model(tmp_path, nth, monkeypatch):
    """Results of tasks that were left are not taken for those of others."""
    shards, waits = pb.write_shards(CORPUS, tmp_path / "shards", 8), iter(range(100))

    def wait(*arguments, **options):
        if next(waits) == nth:
            raise KeyboardInterrupt
        return concurrent.futures.wait(*arguments, **options)

    model = new_model("gap", checkpoint=tmp_path / "state")
    with monkeypatch.context() as patch, ThreadPoolExecutor(2) as pool:
        patch.setattr(executors, "wait", wait)
        # The first interruption that finds an update done keeps it; before, there is no model.
        with pytest.raises(KeyboardInterrupt) as caught:
            model.fit(shards, executor=pool)
    if isinstance(caught.value, pb.exceptions.Interrupted):
        np.testing.assert_allclose(model.components_.sum(axis=1), 1)
    again = new_model("gap", checkpoint=tmp_path / "state").fit(shards)
    np.testing.assert_array_equal(again.components_, in_memory("gap").components_)


SCRIPT = """
    import json, multiprocessing, os, signal, sys
    from concurrent.futures import ProcessPoolExecutor
    import numpy as np
    import polyabayes as pb
    from polyabayes.scale import shard_sweeps

    folder, n_workers, kill_worker = sys.argv[1], int(sys.argv[2]), sys.argv[3] == "worker"
    classes = {
        "learned": pb.LatentDirichletAllocation,
        "beta-gamma-gamma": pb.PoissonFactorAnalysis,
    }

    def watch(model):
        print(model.n_iter_, flush=True)
        if kill_worker and model.n_iter_ == 3:
            os.kill(next(iter(pool._processes)), signal.SIGKILL)

    if __name__ == "__main__":
        model = classes[sys.argv[4]](
            4, max_iter=14, burn_in=8, thin=2, random_state=3, checkpoint=folder + "/state",
        )
        model.set_params(**json.loads(sys.argv[5]))
        with ProcessPoolExecutor(n_workers, multiprocessing.get_context("spawn")) as pool:
            shards = pb.read_shards(folder + "/shards")
            model.fit(shards, executor=pool, callback=watch, eval_every=1)
        np.save(folder + "/components.npy", model.components_)
"""


def start(tmp_path, n_workers, killed, kind):
    script = tmp_path / "train.py"
    script.write_text(textwrap.dedent(SCRIPT))
    options = json.dumps((MODELS | PFA_MODELS)[kind])
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    return subprocess.Popen(
        [sys.executable, str(script), str(tmp_path), str(n_workers), killed, kind, options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        start_new_session=True,
    )


@pytest.mark.skipif(not hasattr(os, "killpg"), reason="no process groups")
@pytest.mark.parametrize("killed", ["driver", "worker"])
@pytest.mark.parametrize("kind", ["learned", "beta-gamma-gamma"])
def test_killed_processes_go_on_to_the_same_bits(tmp_path, kind, killed):
    pb.write_shards(CORPUS, tmp_path / "shards", 5)
    first = start(tmp_path, 2, killed, kind)
    assert first.stdout is not None
    if killed == "driver":
        for line in first.stdout:
            if line.strip() == "3":
                break
        # The driver and its workers.
        os.killpg(first.pid, signal.SIGKILL)
        first.communicate(timeout=60)
        assert first.returncode == -signal.SIGKILL
    else:
        _, errors = first.communicate(timeout=120)
        assert first.returncode != 0
        assert WorkerError.__name__ in errors
    assert not (tmp_path / "components.npy").exists()
    second = start(tmp_path, 1, "nobody", kind)
    output, errors = second.communicate(timeout=120)
    assert second.returncode == 0, errors
    # Sweeps before the kill are not done again.
    assert int(output.split()[0]) > 3
    found = np.load(tmp_path / "components.npy")
    np.testing.assert_array_equal(found, in_memory(kind).components_)


def test_longer_runs_go_on_from_the_state(tmp_path):
    shards = pb.write_shards(CORPUS, tmp_path / "shards", 2)
    lda("fixed", max_iter=9, checkpoint=tmp_path / "state").fit(shards)
    longer = lda("fixed", checkpoint=tmp_path / "state").fit(shards)
    np.testing.assert_array_equal(longer.components_, in_memory("fixed").components_)
    with pytest.raises(InvalidArgumentError, match="14 sweeps, max_iter is 9"):
        lda("fixed", max_iter=9, checkpoint=tmp_path / "state").fit(shards)
    # A finished run gives its result again.
    again = lda("fixed", checkpoint=tmp_path / "state").fit(shards)
    np.testing.assert_array_equal(again.components_, longer.components_)


def test_states_of_other_runs_are_refused(tmp_path):
    shards = pb.write_shards(CORPUS, tmp_path / "shards", 2)
    lda("fixed", checkpoint=tmp_path / "state").fit(shards)
    with pytest.raises(InvalidArgumentError, match="seed"):
        lda("fixed", random_state=4, checkpoint=tmp_path / "state").fit(shards)
    with pytest.raises(InvalidArgumentError, match="its model is"):
        new_model("gap", checkpoint=tmp_path / "state").fit(shards)
    new_model("gap", checkpoint=tmp_path / "other state").fit(shards)
    with pytest.raises(InvalidArgumentError, match="shape"):
        new_model("gap", shape=0.6, checkpoint=tmp_path / "other state").fit(shards)
    others = pb.Corpus(CORPUS.counts, [f"other{i}" for i in range(N_WORDS)])
    for corpus, n_shards in ((others, 2), (CORPUS, 3), (CORPUS[:-2], 2)):
        shards = pb.write_shards(corpus, tmp_path / "others", n_shards)
        with pytest.raises(InvalidArgumentError, match="its corpus is"):
            lda("fixed", checkpoint=tmp_path / "state").fit(shards)


def test_files_that_were_changed_or_damaged_are_refused(tmp_path):
    shards = pb.write_shards(CORPUS, tmp_path / "shards", 2)
    model = lda("fixed", checkpoint=tmp_path / "state")
    path = shards[1].folder / "data.npy"
    content = path.read_bytes()

    def change(_):
        time.sleep(0.01)
        path.write_bytes(content[:-4] + bytes(4))

    with pytest.raises(FileFormatError, match="has changed during"):
        model.fit(shards, callback=change, eval_every=3)
    assert model.n_iter_ == 3
    with pytest.raises(FileFormatError, match="checksum"):
        model.fit(shards)
    path.write_bytes(content)
    topics = next((tmp_path / "state").glob("shard-00001.*.topics"))
    whole = topics.read_bytes()
    for damaged in (whole[:-200], whole[:200] + b"\\1" + whole[201:], b""):
        topics.write_bytes(damaged)
        with pytest.raises(FileFormatError):
            model.fit(shards)
    topics.write_bytes(whole)
    order = next((tmp_path / "state").glob("shard-00001.*.order"))
    whole = order.read_bytes()
    for damaged in (whole[:-2], whole[:300] + b"\1" + whole[301:], whole[:-40] + bytes(40), b""):
        order.write_bytes(damaged)
        with pytest.raises(FileFormatError):
            model.fit(shards)
    order.write_bytes(whole)
    np.testing.assert_array_equal(model.fit(shards).components_, in_memory("fixed").components_)
    kept = next((tmp_path / "state").glob("kept.*"))
    whole = kept.read_bytes()
    kept.write_bytes(whole[:-9])
    with pytest.raises(FileFormatError):
        model.fit(shards)
    kept.write_bytes(whole)
    state = tmp_path / "state" / "shards.safetensors"
    state.write_bytes(state.read_bytes()[:-9])
    with pytest.raises(FileFormatError):
        model.fit(shards)


def test_what_shards_cannot_do_is_said(tmp_path):
    shards = pb.write_shards(CORPUS, tmp_path / "shards", 2)
    with pytest.raises(InvalidArgumentError, match="training on shards needs Gibbs sampling"):
        pb.LatentDirichletAllocation(4, fit_method="em").fit(shards)
    with ThreadPoolExecutor(1) as pool, pytest.raises(InvalidArgumentError, match="write_shards"):
        pb.PoissonFactorAnalysis(4).fit(CORPUS, executor=pool)
    with pytest.raises(InvalidArgumentError, match="exposure"):
        lda("fixed").fit(shards, exposure=2.0)
    with ThreadPoolExecutor(1) as pool, pytest.raises(InvalidArgumentError, match="write_shards"):
        lda("fixed").fit(CORPUS, executor=pool)
    with pytest.raises(InvalidTypeError, match="executor"):
        lda("fixed").fit(shards, executor=3)
    empty = pb.write_shards(np.zeros((3, 2), int), tmp_path / "empty")
    with pytest.raises(InvalidArgumentError, match="no tokens"):
        lda("fixed").fit(empty)


def test_counts_that_overflow_are_found(tmp_path, monkeypatch):
    shards = pb.write_shards(CORPUS, tmp_path / "shards", 2)

    def wrapped(*arguments):
        counts = count(*arguments)
        counts[0, 0] -= np.uint32(7)
        return counts

    count = shard_sweeps.count_topics
    monkeypatch.setattr(shard_sweeps, "count_topics", wrapped)
    with pytest.raises(BudgetExceededError, match="4,294,967,295 tokens in one topic"):
        lda("fixed").fit(shards)


def test_folders_that_workers_do_not_share_are_named(tmp_path):
    shards = pb.write_shards(CORPUS, tmp_path / "shards", 2)
    training = shard_sweeps.ShardTraining(
        shards.shards, tmp_path / "elsewhere", "name", shards.longest, 0, 1
    )
    with pytest.raises(FileAccessError, match="all workers share"):
        shard_sweeps.inspect_shards(training, [0])
    if os.geteuid() != 0:
        shards.folder.chmod(0o500)
        with (
            pytest.raises(FileAccessError, match="checkpoint"),
            shard_tokens.state_folder(shards, None),
        ):
            pass


def test_a_missing_part_of_the_state_is_an_error_of_the_file(tmp_path):
    shards = pb.write_shards(CORPUS, tmp_path / "shards", 2)
    model = lda("fixed", checkpoint=tmp_path / "state").fit(shards)
    assert model.n_iter_ == 14
    from polyabayes._support.storage import read_arrays, write_arrays

    path = tmp_path / "state" / "shards.safetensors"
    header, arrays = read_arrays(path)
    del header["position"]
    write_arrays(path, json.loads(json.dumps(header)), arrays)
    with pytest.raises(FileFormatError, match="complete state"):
        model.fit(shards)
