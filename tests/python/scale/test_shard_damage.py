"""Shards that are damaged or cannot be written: an error of the file, old shards or none."""

import errno
import hashlib
import json
import os
import signal
import textwrap
from pathlib import Path

import numpy as np
import pytest

import polyabayes as pb
from helpers.damage import flip, full_disk
from helpers.processes import python
from helpers.sharded_corpus import CORPUS, MODEL
from polyabayes.exceptions import FileAccessError, FileFormatError
from polyabayes.scale.shards import sealed_manifest


def test_disks_that_fail_are_errors_of_the_file(tmp_path, monkeypatch):
    """Rows are kept aside before they are divided: the disk may fail there, too."""
    plain_open = Path.open

    def failing(path, mode="r", *arguments, **options):
        if mode == "ab":
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return plain_open(path, mode, *arguments, **options)

    monkeypatch.setattr(Path, "open", failing)
    with pytest.raises(FileAccessError, match=r"cannot write .*Input/output error"):
        pb.write_shards(CORPUS, tmp_path, 2)
    assert not list(tmp_path.iterdir())
    monkeypatch.undo()
    (tmp_path / "file").touch()
    with pytest.raises(FileAccessError, match="cannot write"):
        pb.write_shards(CORPUS, tmp_path / "file", 2)


def test_a_full_disk_leaves_the_old_shards_or_none(tmp_path, monkeypatch):
    """The old ones stay while documents are read; afterwards no part of the new ones does."""
    old = pb.write_shards(CORPUS, tmp_path / "kept", 2)

    def blocks():
        yield CORPUS
        full_disk()

    with pytest.raises(OSError, match="No space left"):
        pb.write_shards(blocks(), tmp_path / "kept", 3)
    pb.read_shards(tmp_path / "kept").verify()
    assert len(old) == len(pb.read_shards(tmp_path / "kept"))

    save, n_left = np.save, [0]

    def full(*arguments, **options):
        n_left[0] -= 1
        if n_left[0] < 0:
            full_disk()
        save(*arguments, **options)

    monkeypatch.setattr(np, "save", full)
    (tmp_path / "kept" / "notes.txt").touch()
    for name in ("kept", "new"):
        n_left[0] = 1
        with pytest.raises(FileAccessError, match=f"cannot write .*{name}.*: No space left"):
            pb.write_shards(CORPUS, tmp_path / name, 3)
    assert [path.name for path in tmp_path.rglob("*")] == ["kept", "notes.txt"]


def test_what_is_not_of_the_shards_is_left(tmp_path):
    """Folders of other names stay, and of shards those of the new manifest alone."""
    others = tmp_path / "shard-0" / "data.npy"
    others.parent.mkdir()
    others.write_bytes(b"another's")
    with pytest.raises(pb.exceptions.PolyabayesError):
        pb.write_shards(iter([[[1, 0]], "bad"]), tmp_path)
    corpus = pb.Corpus(np.ones((20, 3), int), exposure=np.arange(1.0, 21.0))
    assert len(pb.write_shards(corpus, tmp_path, 20)) == 20
    with pytest.raises(pb.exceptions.PolyabayesError):
        pb.write_shards(iter([[[1, 0]], "bad"]), tmp_path)
    assert len(pb.read_shards(tmp_path)) == 20
    pb.write_shards(corpus.with_exposure(None), tmp_path, 3).verify()
    left = sorted(path.name for path in tmp_path.glob("shard-*"))
    assert left == ["shard-0", "shard-00000", "shard-00001", "shard-00002"]
    assert not list(tmp_path.glob("*/exposure.npy"))
    assert others.read_bytes() == b"another's"


READERS = {
    "corpus": lambda shards: [shard.corpus() for shard in shards],
    "blocks": lambda shards: list(shards.blocks()),
    "verify": lambda shards: shards.verify(),
    "score": lambda shards: pb.log_likelihood(MODEL, shards, "exact", random_state=0),
    "fit": lambda shards: pb.LatentDirichletAllocation(2, max_iter=2, random_state=0).fit(shards),
    "exposed fit": lambda shards: pb.PoissonFactorAnalysis(2, max_iter=2).fit(shards),
}


@pytest.mark.parametrize("name", ["indptr", "indices", "data", "exposure"])
@pytest.mark.parametrize("reader", READERS)
def test_a_flipped_bit_or_a_cut_file_is_an_error_wherever_shards_are_read(tmp_path, reader, name):
    if name == "exposure" and reader in ("score", "fit"):
        pytest.skip("LDA takes lengths as given")
    exposed = CORPUS.with_exposure(np.linspace(0.5, 2.0, 45))
    shards = pb.write_shards(exposed, tmp_path, 2)
    path = shards[1].folder / f"{name}.npy"
    whole = path.read_bytes()
    # Once it was right.
    shards[1].array(name)
    flip(path, -7)
    with pytest.raises(FileFormatError, match="checksum"):
        READERS[reader](shards)
    path.write_bytes(whole[:-8])
    with pytest.raises(FileFormatError, match="checksum"):
        READERS[reader](shards)


def exchange_folders(manifest):
    first, second = manifest["shards"]
    first["name"], second["name"] = second["name"], first["name"]


def opened(change, *, resealed=False):
    """Read shards whose manifest was changed, and perhaps sealed again."""
    pb.write_shards(CORPUS, "shards", 2)
    path = Path("shards/manifest.json")
    manifest = json.loads(path.read_text())
    change(manifest)
    path.write_text(json.dumps(sealed_manifest(manifest) if resealed else manifest))
    # Exchanged shards of a new seal have other arrays than their checksums say.
    return list(pb.read_shards("shards").blocks())


def test_folders_of_killed_processes_are_removed(tmp_path):
    script = """
        import os, signal, sys
        import polyabayes as pb

        def blocks():
            yield [[2, 0, 1], [0, 3, 0]]
            os.kill(os.getpid(), signal.SIGKILL)

        pb.write_shards(blocks(), sys.argv[1])
    """
    assert python("-c", textwrap.dedent(script), tmp_path).returncode == -signal.SIGKILL
    assert len(list(tmp_path.iterdir())) == 1
    unfinished = tmp_path / "shard-00000"
    unfinished.mkdir()
    (unfinished / f".data.npy.{'0' * 32}").write_bytes(b"")
    pb.write_shards(CORPUS, tmp_path, 1)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["manifest.json", "shard-00000"]
    assert len(list(unfinished.iterdir())) == 3


def displaced(place, value, *, resealed=False):
    """Read documents of which one begins elsewhere."""
    shard = pb.write_shards(CORPUS, "shards", 1)[0]
    path, digests = shard.folder / "indptr.npy", shard.digests
    offsets = np.load(path)
    offsets[place] = value
    np.save(path, offsets)
    if resealed:
        digests = {**digests, "indptr": hashlib.sha256(path.read_bytes()).hexdigest()}
    return shard._replace(digests=digests).corpus()
