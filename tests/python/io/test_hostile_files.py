"""Files that are not what they should be: one clear error, no death, no wrong number."""

import io
import os
import subprocess
import sys
import time
import zipfile

import numpy as np
import pytest
from numpy.lib import format as npy

import polyabayes as pb
from helpers.refusals import assert_refused
from polyabayes import exceptions as errors

DENSE = np.array([[1, 0, 2], [0, 3, 0]])
MODEL = pb.LatentDirichletAllocation.from_parameters(
    doc_topic_prior=[0.5, 0.5], topic_word=[[0.5, 0.25, 0.25], [0.1, 0.1, 0.8]]
)
BANNER = "%%MatrixMarket matrix coordinate integer general\n"


def test_matrix_market_adds_up_and_skips_blank_lines(tmp_path):
    text = BANNER.replace("integer", "real") + "%\n\n2 3 3\r\n1 1 1\n\n 1\t1 2\n2 3 4.0e0\n\n"
    (tmp_path / "x.mtx").write_bytes(text.encode())
    counts = pb.read_corpus(tmp_path / "x.mtx").counts.toarray()
    np.testing.assert_array_equal(counts, [[3, 0, 0], [0, 0, 4]])
    counts = pb.read_corpus(tmp_path / "x.mtx", transpose=True).counts.toarray()
    np.testing.assert_array_equal(counts, [[3, 0], [0, 0], [0, 4]])


def test_svmlight_with_all_that_the_format_allows(tmp_path):
    path = tmp_path / "x.svmlight"
    path.write_text("+1 qid:3 1:2 3:1 # a comment\n\n-1.5 2:3.0\n1,2 \n3\n")
    expected = [[2, 0, 1], [0, 3, 0], [0, 0, 0], [0, 0, 0]]
    np.testing.assert_array_equal(pb.read_corpus(path).counts.toarray(), expected)
    path.write_text("1 0:2 2:1\n-1 1:3\n")
    np.testing.assert_array_equal(
        pb.read_corpus(path).counts.toarray(), DENSE * 1 + [[1, 0, -1], [0, 0, 0]]
    )
    assert_refused(errors.FileFormatError, "counted from 1", pb.read_corpus, path, zero_based=False)
    path.write_text("1 2:0.5\n")
    assert_refused(errors.FileFormatError, "'word:count' of whole numbers", pb.read_corpus, path)


def test_what_a_file_is_takes_no_time_in_squares_of_its_lines(tmp_path):
    (tmp_path / "x.txt").write_text("<" + "a" * 60_000 + "\n")
    start = time.process_time()
    assert pb.read_corpus(tmp_path / "x.txt").shape == (1, 1)
    assert time.process_time() - start < 2


def array_bytes(array, header=None):
    """Bytes of an ``.npy`` file; `header` takes the place of what its header says."""
    stream = io.BytesIO()
    array = np.asarray(array)
    npy.write_array_header_1_0(stream, {**npy.header_data_from_array_1_0(array), **(header or {})})
    stream.write(array.tobytes())
    return stream.getvalue()


def corpus_archive(path, **changed):
    parts = {
        "format": np.array(b"csr"),
        "shape": np.array([2, 3]),
        "data": np.array([1, 2, 3]),
        "indices": np.array([0, 2, 1]),
        "indptr": np.array([0, 2, 3]),
    }
    members = {**{name: array_bytes(part) for name, part in parts.items()}, **changed}
    with zipfile.ZipFile(path, "w") as handle:
        for name, content in members.items():
            handle.writestr(f"{name}.npy", content)
    return path


def test_the_archive_that_the_others_break_is_read(tmp_path):
    corpus = pb.read_corpus(corpus_archive(tmp_path / "x.npz"))
    np.testing.assert_array_equal(corpus.counts.toarray(), DENSE)


BROKEN_ARRAYS = {
    "falls": ("indptr", array_bytes([0, 100_000, -1])),
    "ends in 0": ("indptr", array_bytes([0, 3, 0])),
    "shape": ("data", array_bytes([1, 2, 3], {"shape": (10**12,)})),
    "negative shape": ("data", array_bytes([1, 2, 3], {"shape": (-1,)})),
    "width": ("data", array_bytes([1, 2, 3], {"descr": f"<U{10**9}"})),
    "no width": ("data", array_bytes([1, 2, 3], {"descr": "<U0", "shape": (10**17,)})),
    "object": ("data", array_bytes([1, 2, 3], {"descr": "|O"})),
    "header": ("data", b"\x93NUMPY\x01\x00\x10\x00{'descr': '''<i8\n        "),
    "deep": ("data", b"\x93NUMPY\x01\x00\x00\x20" + b"(" * 0x2000),
    "no magic": ("data", b"1 2 3"),
    "documents": ("shape", array_bytes([10**15, 3])),
    "no shape": ("shape", array_bytes(["a", "b"])),
    "letters": ("vocabulary", array_bytes(np.array([0x110000] * 3, "<u4"), {"descr": "<U1"})),
    "surrogates": ("vocabulary", array_bytes(np.array([0xD800] * 3, "<u4"), {"descr": "<U1"})),
}


@pytest.mark.parametrize(("name", "content"), BROKEN_ARRAYS.values(), ids=BROKEN_ARRAYS.keys())
def test_broken_archives(tmp_path, name, content):
    with pytest.raises(errors.FileFormatError, match=r"x\.npz"):
        pb.read_corpus(corpus_archive(tmp_path / "x.npz", **{name: content}))


def test_encrypted_archives_say_so(tmp_path):
    path = corpus_archive(tmp_path / "x.npz")
    content = bytearray(path.read_bytes())
    for signature, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        place = content.find(signature)
        while place >= 0:
            content[place + offset] |= 1
            place = content.find(signature, place + 1)
    path.write_bytes(content)
    assert_refused(errors.FileFormatError, "encrypted", pb.read_corpus, path)


_PIPES = """
import os, sys
from pathlib import Path
import polyabayes as pb
from polyabayes._support.storage.arrays import read_arrays
from polyabayes.scale.sealed import SealedReader
folder = Path(sys.argv[1])
counts = [[1, 2, 0], [0, 1, 4]]
lda = pb.LatentDirichletAllocation(2, max_iter=4, random_state=0, checkpoint=folder / "run")
lda.fit(counts)
shards = pb.write_shards(counts, folder / "shards", n_shards=1)
(folder / "texts").mkdir()
(folder / "texts" / "a.txt").write_text("a word")
places = [*(folder / "run").iterdir(), *(folder / "shards").rglob("*.*")]
places += [folder / "texts" / "b.txt"]
places += [folder / f"x.{end}" for end in ("npz", "ldac", "mtx", "csv", "parquet", "h5ad", "jsonl")]
os.mkfifo(folder / "pipe")
readers = [
    lambda: lda.fit(counts),
    lambda: pb.read_shards(folder / "shards").verify(),
    lambda: pb.read_corpus(folder / "texts"),
    *(lambda: read(place) for read in (
        pb.load, pb.read_corpus, pb.read_tensor, pb.interop.read_model, pb.interop.from_mallet,
        read_arrays, SealedReader, pb.interop.from_stm,
    )),
]
for place in places:
    kept = place.read_bytes() if place.exists() else None
    for target in (folder / "pipe", Path("/dev/zero")):
        place.unlink(missing_ok=True)
        place.symlink_to(target)
        ends = set()
        for read in readers:
            try:
                read()
            except pb.exceptions.PolyabayesError as error:
                ends.add("a device, pipe or socket" in str(error))
        assert True in ends, place
        place.unlink()
    if kept is not None:
        place.write_bytes(kept)
print(len(places))
"""


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_pipes_and_devices_are_never_waited_for(tmp_path):
    run = subprocess.run(
        [sys.executable, "-c", _PIPES, str(tmp_path)], capture_output=True, timeout=60, check=False
    )
    assert run.returncode == 0, run.stderr
    assert int(run.stdout) > 12


@pytest.mark.parametrize("read", [pb.read_corpus, pb.read_tensor])
def test_columns_of_one_name_in_parquet(tmp_path, read):
    pandas, path = pytest.importorskip("pandas"), tmp_path / "x.parquet"
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    table = arrow.Table.from_pandas(pandas.DataFrame([[1, 2]], columns=["one", "two"]))
    # The part of the schema that pandas adds is damaged: both fields have one name.
    about = table.schema.metadata[b"pandas"].replace(b'field_name": "two', b'field_name": "one')
    parquet.write_table(table.replace_schema_metadata({b"pandas": about}), path)
    assert_refused(errors.FileFormatError, "'two' twice", read, path)
