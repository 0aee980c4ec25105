"""What the command line writes, where it cannot be written."""

import re
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest

import polyabayes as pb
from helpers import processes
from helpers.command_line import run, table
from helpers.small_models import known_lda
from polyabayes import AllocationModel, CountTensor

COUNTS = np.array([[4, 3, 0], [0, 0, 3], [0, 0, 3]])
GRAPH = "doc <- topic -> word"
FIT = ["fit", "lda", "train.npz", "-k", 3, "--max-iter", 20, "--seed", 5]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Here, with a corpus, a tensor and a temporary directory of its own."""
    monkeypatch.chdir(tmp_path)
    corpus = pb.datasets.make_lda_corpus(50, 40, 3, document_length=20, random_state=0).corpus
    pb.write_corpus(corpus, "train.npz")
    pb.write_tensor(CountTensor.from_dense(COUNTS, ["doc", "word"]), "counts.tns")
    Path("temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    return tmp_path


def fill_disk(monkeypatch):
    """Let no file be written but in the temporary directory."""
    replace = Path.replace

    def full(path, target):
        if "temporary" not in str(target):
            raise OSError(28, "No space left on device")
        return replace(path, target)

    monkeypatch.setattr(Path, "replace", full)


def limited(n_bytes, *arguments):
    """Run the command line in a process whose files may have so many bytes."""
    return processes.limited("RLIMIT_FSIZE", n_bytes, "-m", "polyabayes", *arguments)


@pytest.mark.skipif(sys.platform != "linux", reason="no room is asked for beforehand")
def test_a_model_without_room_is_refused_before_training(folder):
    done = limited(900, *FIT, "-o", "m.safetensors")
    assert done.returncode == 2
    told = "polyabayes: error: cannot write 960 bytes to the folder .: File too large\n"
    assert done.stderr == told
    assert not (folder / "m.safetensors").exists()


def test_a_model_that_nothing_takes_is_told_to_be_lost(folder):
    before = sorted(Path(tempfile.gettempdir()).glob("polyabayes-*"))
    done = limited(1200, *FIT, "-o", "m.safetensors")
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1] == (
        "polyabayes: error: cannot write m.safetensors: File too large; the temporary directory "
        "did not take it either"
    )
    assert not (folder / "m.safetensors").exists()
    assert sorted(Path(tempfile.gettempdir()).glob("polyabayes-*")) == before


def test_a_trained_model_goes_to_the_temporary_directory(folder, monkeypatch, capsys):
    fill_disk(monkeypatch)
    assert run(*FIT, "-o", "m.safetensors") == 2
    line = capsys.readouterr().err.splitlines()[-1]
    found = re.fullmatch(
        "polyabayes: error: cannot write m.safetensors: No space left on device; it is kept as "
        r"(.*/temporary/polyabayes-.*/m\.safetensors)",
        line,
    )
    assert found
    model = pb.LatentDirichletAllocation(3, max_iter=20, random_state=5)
    model.fit(pb.read_corpus(folder / "train.npz"))
    np.testing.assert_array_equal(pb.load(found[1]).components_, model.components_)


def test_all_results_of_a_command_are_kept_or_printed(folder, monkeypatch, capsys):
    (folder / "gaps.csv").write_text("doc,word\n0,2\n")
    (folder / "data.csv").write_text("doc,word,count\n0,0,4\n0,1,3\n1,2,3\n2,2,3\n")
    options = ["--size", "topic=2", "--rate", 0.5, "--missing", "gaps.csv", "--seed", 0]
    command = ["decompose", GRAPH, "data.csv", *options, "--predict"]
    assert run(*command, "-", "-o", "written") == 0
    expected = capsys.readouterr().out
    model, observed = AllocationModel.nmf(2, rate=0.5), np.ones((3, 3), dtype=bool)
    observed[0, 2] = False
    (row,) = table(expected)
    found = model.decompose(COUNTS, observed=observed, random_state=0).missing_counts
    assert (row["doc"], row["word"], float(row["expected_count"])) == ("0", "2", found[0])
    fill_disk(monkeypatch)
    assert run(*command, "-", "-o", "tables") == 2
    output = capsys.readouterr()
    assert output.out == expected
    assert f"cannot write {Path('tables', 'doc.csv')}: No space left on device" in output.err
    assert run(*command, "cells.csv", "-o", "tables") == 2
    output = capsys.readouterr().err
    tables, cells = map(Path, re.findall(r"kept as ([^;\n]*)", output))
    assert sorted(path.name for path in tables.iterdir()) == ["doc.csv", "topic.csv", "word.csv"]
    assert cells.read_text() == expected


def test_a_folder_is_made_when_there_are_tables(folder):
    command = ["decompose", GRAPH, "counts.tns", "--seed", 0]
    assert run(*command, "--size", "topic=2", "-o", "some/tables") == 0
    expected = AllocationModel.nmf(2).decompose(COUNTS, random_state=0).tables["topic"]
    found = [float(row["probability"]) for row in table(folder / "some/tables/topic.csv")]
    assert found == expected.tolist()


def test_no_text_of_a_table_runs_as_a_formula(folder):
    ids = ["=1+1", "@a", "-b", "-3", "plain"]
    pb.write_corpus(pb.Corpus([[1, 2]] * 5, ["=urn", "b"], ids), "formulas.npz")
    known_lda(0.5, [[0.9, 0.1]], vocabulary=["=urn", "b"]).save("m.safetensors")
    assert run("score", "m.safetensors", "formulas.npz", "-o", "scores.csv") == 0
    found = [row["document"] for row in table(folder / "scores.csv")]
    assert found == ["'=1+1", "'@a", "'-b", "-3", "plain"]
    assert run("topics", "m.safetensors", "formulas.npz", "-o", "topics.csv") == 0
    assert table(folder / "topics.csv")[0]["words"] == "'=urn b"
