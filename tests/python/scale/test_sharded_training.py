"""Training on shards is training in memory, bit for bit, whoever is killed when."""

import dataclasses
import hashlib
import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from scipy import sparse

import polyabayes as pb
from helpers.interruption import unwanted
from helpers.sharded_training import (
    CORPUS,
    EXPOSED,
    EXPOSED_MODELS,
    LARGE,
    LARGE_MODELS,
    MODELS,
    N_WORDS,
    PFA_MODELS,
    assert_same,
    corpus_of,
    in_memory,
    lda,
    looks_of,
    new_model,
)
from polyabayes.exceptions import BudgetExceededError, FileAccessError, InvalidArgumentError
from polyabayes.scale import shard_sweeps, shard_tokens

pytestmark = pytest.mark.usefixtures("small_blocks")


@pytest.mark.parametrize("n_shards", [1, 5])
@pytest.mark.parametrize("kind", [*MODELS, *PFA_MODELS, *EXPOSED_MODELS, *LARGE_MODELS])
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


@pytest.mark.parametrize("corpus", [CORPUS, LARGE])
def test_different_exposures_of_many_documents_of_threads(tmp_path, corpus):
    exposure = np.random.default_rng(2).gamma(3.0, size=82)
    shards = pb.write_shards(corpus.with_exposure(exposure), tmp_path, 2)
    model = new_model("beta-gamma-gamma", n_jobs=2).fit(shards)
    expected = new_model("beta-gamma-gamma", n_jobs=1).fit(corpus, exposure=exposure)
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
    nothing = np.zeros(0, "<u4")
    arrays = {"indptr": np.zeros(1, "<i8"), "indices": nothing, "data": nothing}
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


@pytest.mark.parametrize(
    "kind", ["learned", "fixed", "beta-gamma-gamma", "exposed beta-gamma-gamma"]
)
def test_processes_give_the_bits_of_memory(tmp_path, spawned, kind):
    shards = pb.write_shards(corpus_of(kind), tmp_path, 5)
    model = new_model(kind).fit(shards, executor=spawned, **looks_of(kind))
    assert_same(model, in_memory(kind))


def test_threads_and_dask_give_the_bits_of_memory(tmp_path, dask_client):
    shards = pb.write_shards(CORPUS, tmp_path, 5)
    held_out = {"eval_corpus": CORPUS[:5], "eval_every": 4}
    with ThreadPoolExecutor(2) as pool:
        assert_same(lda("starts").fit(shards, executor=pool, **held_out), in_memory("starts"))
    found = lda("learned").fit(shards, executor=dask_client.get_executor(), **held_out)
    assert_same(found, in_memory("learned"))


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
    parts = shards.shards, tmp_path / "elsewhere", "name", (shards.longest, 1, 1)
    training = shard_sweeps.ShardTraining(*parts, 0, 1)
    with pytest.raises(FileAccessError, match="all workers share"):
        shard_sweeps.inspect_shards(training, [0])
    training = training._replace(folder=tmp_path)
    shard_sweeps.inspect_shards(training, [0])
    # On Dask, nobody may wait for a task any more.
    with unwanted(), pytest.raises(KeyboardInterrupt):
        next(training.blocks(shards[0]))
    if os.geteuid() != 0:
        shards.folder.chmod(0o500)
        refused = pytest.raises(FileAccessError, match="checkpoint")
        with refused, shard_tokens.state_folder(shards, None):
            pass
