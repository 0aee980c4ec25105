"""Training on shards that was broken off, killed or damaged: the same bits, or a clear refusal."""

import errno
import itertools
import json
import multiprocessing
import os
import signal
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from queue import SimpleQueue

import numpy as np
import pytest
from sklearn.base import clone

import polyabayes as pb
from helpers.damage import flipped
from helpers.sharded_training import CORPUS, N_WORDS, corpus_of, in_memory, lda, looks_of, new_model
from polyabayes._support.storage.arrays import read_arrays, write_arrays
from polyabayes.exceptions import (
    FileAccessError,
    FileFormatError,
    InvalidArgumentError,
    WorkerError,
)
from polyabayes.scale import executors, sealed

pytestmark = pytest.mark.usefixtures("small_blocks")


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


@pytest.mark.parametrize(
    ("n_files", "how"),
    [
        *((n_files, interrupt) for n_files in (1, 8, 29)),
        *((n_files, disk_full) for n_files in (5, 18, 50)),
    ],
)
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
    # sum of kept sweeps and the lock beside it.
    assert len(list((tmp_path / "state").iterdir())) == 9


@pytest.mark.parametrize("nth", [12, 20, 31])
def test_an_interruption_beside_running_tasks_keeps_the_model(tmp_path, nth, monkeypatch):
    """Results of tasks that were left are not taken for those of others."""
    shards, waits = pb.write_shards(CORPUS, tmp_path / "shards", 8), iter(range(100))

    class News(SimpleQueue):
        def get(self, **options):
            if next(waits) == nth:
                raise KeyboardInterrupt
            return super().get(**options)

    model = new_model("gap", checkpoint=tmp_path / "state")
    with monkeypatch.context() as patch, ThreadPoolExecutor(2) as pool:
        patch.setattr(executors, "SimpleQueue", News)
        # The first interruption that finds an update done keeps it; before, there is no model.
        with pytest.raises(KeyboardInterrupt) as caught:
            model.fit(shards, executor=pool)
    if isinstance(caught.value, pb.exceptions.Interrupted):
        np.testing.assert_allclose(model.components_.sum(axis=1), 1)
    again = new_model("gap", checkpoint=tmp_path / "state").fit(shards)
    np.testing.assert_array_equal(again.components_, in_memory("gap").components_)


@pytest.mark.parametrize("kind", ["learned", "beta-gamma-gamma"])
def test_runs_whose_workers_were_killed_go_on_to_the_same_bits(tmp_path, kind):
    shards = pb.write_shards(CORPUS, tmp_path / "shards", 5)

    def kill(model):
        # All of them: one that is left may do the rest before the pool notices.
        for process in list(pool._processes) if model.n_iter_ == 3 else ():
            os.kill(process, signal.SIGKILL)

    spawn = multiprocessing.get_context("spawn")
    model = new_model(kind, checkpoint=tmp_path / "state")
    with ProcessPoolExecutor(2, spawn) as pool, pytest.raises(WorkerError):
        model.fit(shards, executor=pool, callback=kill, eval_every=1)
    sweeps = []
    again = new_model(kind, checkpoint=tmp_path / "state")
    again.fit(shards, callback=lambda model: sweeps.append(model.n_iter_), eval_every=1)
    # Sweeps before the kill are not done again.
    assert sweeps[0] > 3
    np.testing.assert_array_equal(again.components_, in_memory(kind).components_)


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


def test_a_run_beside_another_is_refused(tmp_path, spawned):
    shards, model = pb.write_shards(CORPUS, tmp_path / "shards", 2), lda("fixed")
    model.set_params(checkpoint=tmp_path / "state")
    refused = pytest.raises(InvalidArgumentError, match="state: give each run its own checkpoint")

    def fit_beside(_):
        for seed, documents in itertools.product((3, 4), (shards, CORPUS)):
            with refused:
                spawned.submit(clone(model).set_params(random_state=seed).fit, documents).result()

    for documents in (shards, CORPUS):
        model.fit(documents, callback=fit_beside)


def test_states_of_other_runs_are_refused(tmp_path):
    shards = pb.write_shards(CORPUS, tmp_path / "shards", 2)
    lda("fixed", checkpoint=tmp_path / "state").fit(shards)
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
    assert model.fit(shards).n_iter_ == 14
    for name in ("shard-00001.*.topics", "shard-00001.*.order", "kept.*", "shards.safetensors"):
        part = next((tmp_path / "state").glob(name))
        whole = part.read_bytes()
        for damaged in (whole[:-9], b"", *(flipped(whole, place) for place in (200, 300, -40))):
            part.write_bytes(damaged)
            with pytest.raises(FileFormatError):
                model.fit(shards)
        part.write_bytes(whole)
    np.testing.assert_array_equal(model.fit(shards).components_, in_memory("fixed").components_)
    header, arrays = read_arrays(part)
    del header["position"]
    write_arrays(part, json.loads(json.dumps(header)), arrays)
    with pytest.raises(FileFormatError, match="complete state"):
        model.fit(shards)
