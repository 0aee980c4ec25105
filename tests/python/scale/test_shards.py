"""Corpora on the disk: read as written, refused if damaged, scored as in memory."""

import gc
import gzip
import sys
import time
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

import polyabayes as pb
from helpers.processes import python
from helpers.sharded_corpus import CORPUS, COUNTS, DATA, MODEL, rows_of
from helpers.small_models import known_lda, known_pfa
from polyabayes.exceptions import FileAccessError, InvalidArgumentError
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
    ends = np.cumsum([shard.n_documents for shard in again])
    assert [shard.first_document for shard in again] == [0, *ends[:-1]]
    assert sum(block.n_documents for block in again.blocks(4)) == 45
    again.verify()
    assert not list(tmp_path.glob("tmp*"))


def gathered(blocks, name):
    """A part of the documents of all blocks, as a list."""
    parts = [getattr(block, name) for block in blocks]
    return np.concatenate([np.asarray(part) for part in parts]).tolist()


YEARS = {"year": np.arange(45), "one": np.ones(45)}
PARTS = {
    "exposure": CORPUS.with_exposure(np.random.default_rng(0).gamma(2.0, size=45)),
    "ids": pb.Corpus(COUNTS, CORPUS.vocabulary, [f"größe \u2028 {n}\n" for n in range(45)]),
    "metadata": CORPUS.with_metadata({"party": ["left", "right", "none"] * 15, **YEARS}),
}


@pytest.mark.parametrize("name", PARTS)
def test_parts_of_documents_are_written_beside_counts(tmp_path, name):
    whole, bare = PARTS[name], pb.write_shards(CORPUS, tmp_path / "bare", 4)
    shards = pb.write_shards(iter([whole[:20], whole[20:]]), tmp_path / "whole", 4)
    again = pb.read_shards(tmp_path / "whole")
    expected = gathered([whole], name)
    for found in (shards, again):
        assert gathered(found.blocks(7), name) == expected
        assert gathered([shard.corpus() for shard in found], name) == expected
    again.verify()
    # Names and metadata change no number: a run on either goes on from the other's checkpoint.
    assert (again.fingerprint() == bare.fingerprint()) == (name != "exposure")
    half = pb.write_shards(iter([whole[:20], CORPUS[20:]]), tmp_path / "whole", 4)
    if name == "exposure":
        # Blocks without exposures have 1.
        assert gathered(half.blocks(7), name) == [*expected[:20], *[1.0] * 25]
    else:
        assert getattr(next(half.blocks()), name) is None
        assert not list((tmp_path / "whole").glob(f"*/{name}.npy"))


def test_shards_take_other_exposures_and_keep_their_ids(tmp_path):
    shards = pb.write_shards(PARTS["exposure"], tmp_path / "exposed", 4)
    expected = PARTS["exposure"].exposure
    np.testing.assert_array_equal(shards.exposure, expected)
    doubled = shards.with_exposure(2 * expected)
    assert gathered(doubled.blocks(7), "exposure") == (2 * expected).tolist()
    assert shards.with_exposure(None).exposure is None
    assert next(shards.with_exposure(None).blocks()).exposure is None
    # Exposures of 1 are none.
    assert pb.write_shards(CORPUS.with_exposure(1.0), tmp_path / "ones", 4).exposure is None
    named = pb.write_shards(PARTS["ids"], tmp_path / "named", 4)
    for found in (named.with_exposure(2.0), named.with_exposure(None)):
        assert gathered(found.blocks(7), "ids") == PARTS["ids"].ids.tolist()


def test_ids_name_the_scores_and_metadata_give_covariates(tmp_path):
    named = pb.write_shards(PARTS["ids"], tmp_path / "named", 4)
    model = known_lda(0.1, DATA.topic_word)
    frame = pb.log_likelihood(model, named).to_frame()
    assert frame["document"].tolist() == PARTS["ids"].ids.tolist()
    zeros = np.zeros((len(DATA.topic_word), 2))
    regression = {"coefficients": zeros, "covariate_names": ["year", "one"]}
    by_year = pb.DocumentModel.dirichlet(DATA.topic_word, **regression)
    told = CORPUS.with_metadata(YEARS)
    shards = pb.write_shards(told, tmp_path / "told", 3)
    found, expected = (pb.log_likelihood(by_year, x, "smc", random_state=0) for x in (shards, told))
    np.testing.assert_array_equal(found.values, expected.values)


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
    words = kept.vocabulary[table.col]
    frame = pd.DataFrame({"document": table.row, "word": words, "count": table.data})
    frame = frame.sort_values("document", kind="stable", ignore_index=True)
    frame.to_parquet(tmp_path / "long.parquet", row_group_size=50)
    from_table = pb.write_shards(tmp_path / "long.parquet", tmp_path / "table", 2)
    assert from_table.vocabulary.tolist() == sorted(frame["word"].unique())
    aligned = pb.Corpus(kept.counts, kept.vocabulary).aligned_to(from_table.vocabulary)[0]
    np.testing.assert_array_equal(rows_of(from_table), aligned.counts.toarray())


@pytest.mark.parametrize("are_known", [False, True], ids=["gathered words", "known words"])
def test_blocks_of_token_lists_are_documents(tmp_path, are_known):
    named = known_lda(0.1, DATA.topic_word, vocabulary=CORPUS.vocabulary)
    counts = CORPUS.counts.toarray()
    lists = [np.repeat(CORPUS.vocabulary, row).tolist() for row in counts]

    def blocks():
        return (lists[i : i + 7] for i in range(0, 45, 7))

    words = CORPUS.vocabulary if are_known else None
    shards = pb.write_shards(blocks(), tmp_path, 2, vocabulary=words)
    told = pb.Corpus(rows_of(shards), shards.vocabulary)
    np.testing.assert_array_equal(told.aligned_to(CORPUS.vocabulary)[0].counts.toarray(), counts)
    found, expected = (pb.log_likelihood(named, x, random_state=0) for x in (blocks(), CORPUS))
    np.testing.assert_array_equal(found.values, expected.values)
    with pytest.raises(InvalidArgumentError, match="block 0 of documents has words, but the model"):
        pb.log_likelihood(known_lda(0.1, DATA.topic_word), blocks())


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


def test_one_writer_at_a_time_has_a_folder(tmp_path):
    def blocks():
        yield [[2, 0]]
        with pytest.raises(FileAccessError, match="another process writes shards"):
            pb.write_shards([[1, 1]], tmp_path)
        yield [[0, 3]]

    assert pb.write_shards(blocks(), tmp_path).n_documents == 2


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
import polyabayes as pb

def score(path):
    shards = pb.write_shards(path, path.partition(".")[0])
    return pb.log_likelihood(pb.load("model"), shards, "recursive", n_jobs=1).total

warnings.simplefilter("ignore")
print(score("few.ldac"))
status = dict(line.split(":", 1) for line in open("/proc/self/status"))
limit = 1024 * int(status["VmData"].split()[0]) + 150 * 2**20
resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
try:
    pb.read_corpus("many.ldac")
except (MemoryError, pb.exceptions.PolyabayesError):
    print("refused")
print(score("many.ldac"))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="limits of memory as Linux has them")
def test_a_file_larger_than_memory_is_written_and_scored(tmp_path):
    """150 MiB hold neither the 10 million cells of the file nor the numbers read for them."""
    rng = np.random.default_rng(0)
    rows = [np.sort(rng.choice(500, 50, replace=False)).tolist() for _ in range(500)]
    block = "".join(f"50 {' '.join(f'{word}:1' for word in row)}\n" for row in rows)
    (tmp_path / "few.ldac").write_text(block)
    with (tmp_path / "many.ldac").open("w") as stream:
        for _ in range(400):
            stream.write(block)
    known_lda([0.5, 0.5], rng.dirichlet(np.ones(500), 2)).save(tmp_path / "model")
    done = python("-c", LIMITED, cwd=tmp_path)
    assert done.returncode == 0, done.stderr[-2000:]
    few, refused, many = done.stdout.split()
    assert refused == "refused"
    assert float(many) == pytest.approx(400 * float(few), rel=1e-12)
