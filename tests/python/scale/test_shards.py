"""Corpora on the disk: read as written, refused if damaged, scored as in memory."""

import gc
import gzip
import os
import subprocess
import sys
import textwrap
import time
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

import polyabayes as pb
from helpers.sharded_corpus import CORPUS, COUNTS, DATA, MODEL, rows_of
from helpers.small_models import known_lda, known_pfa
from polyabayes import exceptions as errors
from polyabayes.io.matrices import ldac


@pytest.mark.parametrize("n_shards", [1, 2, 7, 45, 1000])
def test_documents_are_read_as_they_were_written(tmp_path, n_shards):
    shards = pb.write_shards(CORPUS, tmp_path, n_shards)
    assert len(shards) == min(n_shards, 45)
    np.testing.assert_array_equal(rows_of(shards), COUNTS.toarray())
    again = pb.read_shards(tmp_path)
    assert (again.n_documents, again.n_words, again.n_tokens) == (45, 30, CORPUS.n_tokens)
    assert again.vocabulary.tolist() == CORPUS.vocabulary.tolist()
    assert again.longest == COUNTS.sum(axis=1).max()
    assert [shard.first_document for shard in again] == np.cumsum(
        [0, *(shard.n_documents for shard in again)]
    ).tolist()[:-1]
    assert sum(block.n_documents for block in again.blocks(4)) == 45
    again.verify()
    assert not list(tmp_path.glob("tmp*"))


def test_exposures_are_written_beside_counts(tmp_path):
    exposure = np.random.default_rng(0).gamma(2.0, size=45)
    exposed = CORPUS.with_exposure(exposure)
    # Blocks without exposures have 1.
    blocks = iter([exposed[:20], CORPUS[20:30], exposed[30:]])
    exposure[20:30] = 1.0
    shards = pb.write_shards(blocks, tmp_path / "exposed", 4)
    again = pb.read_shards(tmp_path / "exposed")
    for found in (shards, again):
        np.testing.assert_array_equal(found.exposure, exposure)
        own = np.concatenate([shard.corpus().exposure for shard in found])
        np.testing.assert_array_equal(own, exposure)
        own = np.concatenate([block.exposure for block in found.blocks(7)])
        np.testing.assert_array_equal(own, exposure)
    again.verify()
    doubled = again.with_exposure(2 * exposure)
    own = np.concatenate([block.exposure for block in doubled.blocks(7)])
    np.testing.assert_array_equal(own, 2 * exposure)
    assert again.with_exposure(None).exposure is None
    assert next(again.with_exposure(None).blocks()).exposure is None
    path = again[1].folder / "exposure.npy"
    content = path.read_bytes()
    path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    with pytest.raises(errors.FileFormatError, match="checksum"):
        again.verify()
    # Exposures of 1 are none.
    ones = pb.write_shards(CORPUS.with_exposure(1.0), tmp_path / "ones", 4)
    assert ones.exposure is None


def test_ids_are_written_beside_counts_and_name_the_scores(tmp_path):
    ids = [f"größe \u2028 {number}\n" for number in range(45)]
    named = pb.Corpus(CORPUS.counts, CORPUS.vocabulary, ids)
    shards = pb.write_shards(iter([named[:20], named[20:]]), tmp_path / "named", 4)
    bare = pb.write_shards(CORPUS, tmp_path / "bare", 4)
    again = pb.read_shards(tmp_path / "named")
    for found in (shards, again, again.with_exposure(2.0), again.with_exposure(None)):
        own = np.concatenate([block.ids for block in found.blocks(7)])
        assert own.tolist() == ids
        assert np.concatenate([shard.corpus().ids for shard in found]).tolist() == ids
    # Names change no number: a run on either goes on from the other's checkpoint.
    assert again.fingerprint() == bare.fingerprint()
    model = known_lda(0.1, DATA.topic_word)
    assert pb.log_likelihood(model, again).to_frame()["document"].tolist() == ids
    half = pb.write_shards(iter([named[:20], CORPUS[20:]]), tmp_path / "named", 4)
    assert next(half.blocks()).ids is None
    assert not list((tmp_path / "named").glob("*/ids.npy"))


def test_metadata_are_written_beside_counts_and_give_covariates(tmp_path):
    pytest.importorskip("pyarrow")
    party = np.where(np.arange(45) % 3 == 0, "left", "right")
    told = CORPUS.with_metadata({"party": party, "year": np.arange(45)})
    shards = pb.write_shards(iter([told[:20], told[20:]]), tmp_path / "told", 4)
    again = pb.read_shards(tmp_path / "told")
    assert again.metadata["party"].tolist() == party.tolist()
    assert np.concatenate([b.metadata["year"] for b in again.blocks(7)]).tolist() == [*range(45)]
    assert again[1].corpus().metadata.equals(again[1].metadata())
    assert shards.fingerprint() == pb.write_shards(CORPUS, tmp_path / "bare", 4).fingerprint()
    model = pb.DocumentModel.dirichlet(
        DATA.topic_word,
        coefficients=np.zeros((len(DATA.topic_word), 2)),
        covariate_names=["year", "one"],
    )
    told = told.with_metadata({"year": np.arange(45), "one": np.ones(45)})
    shards = pb.write_shards(told, tmp_path / "told", 3)
    found = pb.log_likelihood(model, shards, "smc", random_state=0)
    expected = pb.log_likelihood(model, told, "smc", random_state=0)
    np.testing.assert_array_equal(found.values, expected.values)
    half = pb.write_shards(iter([told[:20], CORPUS[20:]]), tmp_path / "told", 4)
    assert half.metadata is None
    assert not list((tmp_path / "told").glob("*/metadata.npy"))


def test_shards_have_about_as_many_tokens(tmp_path):
    shards = pb.write_shards(CORPUS, tmp_path, 5)
    tokens = [shard.n_tokens for shard in shards]
    assert max(tokens) - min(tokens) <= 3 * shards.longest


def test_streams_tables_and_cells_make_the_same_shards(tmp_path):
    anndata = pytest.importorskip("anndata")
    pd = pytest.importorskip("pandas")
    expected = pb.write_shards(CORPUS, tmp_path / "corpus", 3)
    streamed = pb.write_shards((CORPUS[i : i + 7] for i in range(0, 45, 7)), tmp_path / "stream", 3)
    cells = anndata.AnnData(COUNTS.astype(np.float32))
    from_cells = pb.write_shards(cells, tmp_path / "cells", 3)
    for other in (streamed, from_cells):
        for one, two in zip(expected, other, strict=True):
            ids = {"ids": two.digests["ids"]} if other is from_cells else {}
            assert {**one.digests, **ids} == two.digests
    kept = pb.Corpus(COUNTS[:40], CORPUS.vocabulary)
    table = sparse.coo_matrix(kept.counts)
    order = np.argsort(table.row, kind="stable")
    frame = pd.DataFrame(
        {
            "document": table.row[order],
            "word": kept.vocabulary[table.col[order]],
            "count": table.data[order],
        }
    )
    frame.to_parquet(tmp_path / "long.parquet", row_group_size=50)
    from_table = pb.write_shards(tmp_path / "long.parquet", tmp_path / "table", 2)
    assert from_table.vocabulary.tolist() == sorted(frame["word"].unique())
    aligned = pb.Corpus(kept.counts, kept.vocabulary).aligned_to(from_table.vocabulary)[0]
    np.testing.assert_array_equal(rows_of(from_table), aligned.counts.toarray())


SIZES = np.random.default_rng(0).choice([0.5, 1.0, 2.0], 45)
SCORED = {
    "annealed": (MODEL, None, {"method": "annealed", "n_samples": 300}),
    "total": (MODEL, None, {"total_std_error": 100.0}),
    "exposed": (known_pfa(0.5, 0.8, DATA.topic_word), SIZES, {"method": "smc"}),
    "exposed total": (known_pfa(0.5, 0.8, DATA.topic_word), SIZES, {"total_std_error": 3.0}),
}


@pytest.mark.parametrize(("model", "exposure", "settings"), SCORED.values(), ids=SCORED)
def test_scores_of_shards_are_those_of_memory(tmp_path, model, exposure, settings, monkeypatch):
    from polyabayes.likelihood import streams

    monkeypatch.setattr(streams, "_BLOCK_DOCUMENTS", 8)
    given = {"exposure": exposure, "random_state": 2, **settings}
    alone = pb.log_likelihood(model, CORPUS, **given)
    shards = pb.write_shards(CORPUS, tmp_path / "plain", 3)
    found = [pb.log_likelihood(model, shards, **given)]
    with ThreadPoolExecutor(2) as pool:
        found.append(pb.log_likelihood(model, shards, executor=pool, **given))
    if exposure is not None:
        own = pb.write_shards(CORPUS.with_exposure(exposure), tmp_path / "own", 3)
        found.append(pb.log_likelihood(model, own, **given | {"exposure": None}))
    for one in found:
        for name in ("values", "std_errors", "sizes", "methods", "n_tokens"):
            np.testing.assert_array_equal(getattr(one, name), getattr(alone, name), name)
        assert one.total_std_error == alone.total_std_error


def test_memory_does_not_grow_with_the_corpus(tmp_path):
    rng = np.random.default_rng(0)
    block = sparse.random(2_000, 500, 0.02, "csr", rng=rng).tocsr()
    block.data = np.ones_like(block.data)

    def peak(n_blocks):
        tracemalloc.start()
        shards = pb.write_shards((block for _ in range(n_blocks)), tmp_path / str(n_blocks), 4)
        for part in shards.blocks(2_000):
            assert part.n_words == 500
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return found

    # Beside some numbers a document, one block: of ten times the corpus not ten times the memory.
    assert peak(30) < peak(3) + 30 * 2_000 * 100


def test_many_threads_open_shards_at_once(tmp_path):
    """Python 3.11 parses no literals in two threads, where its collector calls Python between."""
    shard = pb.write_shards([[2, 0, 1], [0, 3, 0]], tmp_path / "shards", n_shards=1)[0]

    def give_way(*_):
        time.sleep(0)

    thresholds = gc.get_threshold()
    gc.callbacks.append(give_way)
    gc.set_threshold(20)
    try:
        with ThreadPoolExecutor(4) as pool:
            found = list(pool.map(lambda _: int(shard.array("data").sum()), range(2_000)))
    finally:
        gc.set_threshold(*thresholds)
        gc.callbacks.remove(give_way)
    assert found == [6] * 2_000


@pytest.mark.parametrize("name", ["corpus.ldac", "corpus.dat.gz"])
def test_ldac_files_are_read_block_by_block(tmp_path, name, monkeypatch):
    monkeypatch.setattr(ldac, "_STREAMED_BYTES", 100)
    words = [f"w{i}" for i in range(40)]
    pb.write_corpus(pb.Corpus(COUNTS), tmp_path / "corpus.ldac")
    path = tmp_path / name
    if name.endswith(".gz"):
        path.write_bytes(gzip.compress((tmp_path / "corpus.ldac").read_bytes()))
    assert sum(1 for _ in ldac.ldac_blocks(path)) > 5
    without = pb.write_shards(path, tmp_path / "without", 3)
    np.testing.assert_array_equal(rows_of(without), COUNTS.toarray())
    named = pb.write_shards(path, tmp_path / "named", 3, vocabulary=words)
    assert (named.n_words, named.vocabulary.tolist()) == (40, words)
    np.testing.assert_array_equal(rows_of(named)[:, :30], COUNTS.toarray())


def shards_of(content, **options):
    """Shards of a file in LDA-C."""
    Path("bad.ldac").write_text(content)
    return pb.write_shards("bad.ldac", "shards", **options)


LIMITED = """
    import resource, sys, warnings
    import numpy as np
    import polyabayes as pb

    folder = sys.argv[1]
    model = pb.LatentDirichletAllocation.from_parameters(
        doc_topic_prior=[0.5, 0.5], topic_word=np.random.default_rng(0).dirichlet(np.ones(500), 2)
    )

    def score(path, into):
        shards = pb.write_shards(path, into)
        return pb.log_likelihood(model, shards, "recursive", n_jobs=1).total

    warnings.simplefilter("ignore")
    score(folder + "/few.ldac", folder + "/few")
    status = dict(line.split(":", 1) for line in open("/proc/self/status"))
    limit = 1024 * int(status["VmData"].split()[0]) + 150 * 2**20
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    try:
        pb.read_corpus(folder + "/many.ldac")
    except (MemoryError, pb.exceptions.PolyabayesError) as error:
        print("refused", type(error).__name__)
    print(score(folder + "/many.ldac", folder + "/many"))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="limits of memory as Linux has them")
def test_a_file_larger_than_memory_is_written_and_scored(tmp_path):
    """150 MiB hold neither the 10 million cells of the file nor the numbers read for them."""
    rng = np.random.default_rng(0)
    lines = []
    for _ in range(500):
        ids = np.sort(rng.choice(500, 50, replace=False)).tolist()
        lines.append(f"50 {' '.join(f'{one}:1' for one in ids)}\n")
    block = "".join(lines)
    (tmp_path / "few.ldac").write_text(block)
    with (tmp_path / "many.ldac").open("w") as stream:
        for _ in range(400):
            stream.write(block)
    script = tmp_path / "limited.py"
    script.write_text(textwrap.dedent(LIMITED))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    done = subprocess.run(
        [sys.executable, str(script), str(tmp_path)],
        capture_output=True,
        text=True,
        env=environment,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    refused, total = done.stdout.splitlines()
    assert refused.startswith("refused")
    shards = pb.read_shards(tmp_path / "few")
    model = known_lda([0.5, 0.5], np.random.default_rng(0).dirichlet(np.ones(500), 2))
    few = pb.log_likelihood(model, shards, "recursive", n_jobs=1).total
    assert float(total) == pytest.approx(400 * few, rel=1e-12)
