import numpy as np
import pytest

import polyabayes as pb
from helpers.command_line import run, table
from polyabayes import AllocationModel, CountTensor

COUNTS = np.array([[4, 3, 0], [0, 0, 3], [0, 0, 3]])
LABELS = {"doc": ["d0", "d1", "d2"]}
GRAPH = "doc <- topic -> word"


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "counts.tns"
    pb.write_tensor(CountTensor.from_dense(COUNTS, ["doc", "word"], LABELS), path)
    return path


def test_evidence_is_that_of_the_api(file, capsys):
    assert run("evidence", GRAPH, file, "--size", "topic=2") == 0
    output = capsys.readouterr()
    expected = AllocationModel.nmf(2).log_evidence(COUNTS)
    assert repr(expected) in output.out
    assert "13 tokens in all" in output.out
    assert "<AllocationModel: topic -> doc, word; topic 2; concentration 1>" in output.err
    assert "2 joint states per token, 14 marginal counts" in output.err


def test_options_reach_the_model_and_the_method(tmp_path, capsys):
    file = tmp_path / "plain.tns"
    pb.write_tensor(CountTensor.from_dense(COUNTS, ["doc", "word"]), file)
    options = "--size topic=3 --concentration 0.5 --rate 2 --prior flat --tied doc,word --seed 3"
    options += " --method smc --particles 64 --replicates 5 --option order=sorted --jobs 1"
    assert run("evidence", GRAPH, file, *options.split(), "--given-total") == 0
    model = AllocationModel(GRAPH, {"topic": 3}, 0.5, 2.0, tied=[("doc", "word")], prior="flat")
    effort = {"n_particles": 64, "n_replicates": 5, "order": "sorted"}
    expected = model.log_evidence(COUNTS, "smc", given_total=True, random_state=3, **effort)
    output = capsys.readouterr().out
    assert repr(expected) in output


def test_evidences_of_sizes_are_kept(file, tmp_path, capsys):
    kept = ["--checkpoint", tmp_path / "kept"]
    common = ["evidence", GRAPH, file, "--method", "smc", "--seed", 3, *kept]
    assert run(*common, "--try", "topic=1..2") == 0
    first = capsys.readouterr().out
    assert run(*common, "--try", "topic=1..2") == 0
    assert capsys.readouterr().out == first
    assert run(*common, "--try", "topic=2..3") == 2
    assert "another comparison: its models" in capsys.readouterr().err


def test_sizes_are_tried_and_drawn(file, tmp_path, capsys):
    picture = tmp_path / "evidence.png"
    assert run("evidence", GRAPH, file, "--try", "topic=1..3", "--plot", picture) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["model", "3", "2", "1"]
    expected = AllocationModel.nmf(3).log_evidence(COUNTS)
    assert float(lines[1].split()[1]) == pytest.approx(expected.value, abs=1e-4)
    assert picture.read_bytes().startswith(b"\x89PNG")
    # Bounds have no odds.
    vb = ["--method", "vb", "--seed", 0]
    assert run("evidence", GRAPH, file, "--try", "topic=1..3", "--plot", picture, *vb) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "model  log evidence is at least"
    bound = AllocationModel.nmf(2).log_evidence(COUNTS, "vb", random_state=0)
    assert lines[2].split() == ["2", f"{bound.value:,.4f}"]


def test_tables_are_written_one_a_file(file, tmp_path, capsys):
    folder = tmp_path / "tables"
    options = ["--size", "topic=2", "-o", folder, "--seed", 0, "--restarts", 3]
    assert run("decompose", GRAPH, file, *options) == 0
    expected = AllocationModel.nmf(2).decompose(COUNTS, random_state=0, n_restarts=3)
    rows = table(folder / "doc.csv")
    assert [row["doc"] for row in rows] == ["d0", "d0", "d1", "d1", "d2", "d2"]
    found = [float(row["probability"]) for row in rows]
    np.testing.assert_array_equal(found, expected.tables["doc"].ravel())
    assert sorted(path.name for path in folder.iterdir()) == ["doc.csv", "topic.csv", "word.csv"]
    assert f"squared error {expected.squared_error:,.4f}" in capsys.readouterr().err


def test_one_replicate_has_no_interval(file, capsys):
    options = ["--size", "topic=2", "--method", "smc", "--replicates", 1, "--seed", 0]
    assert run("evidence", GRAPH, file, *options) == 0
    output = capsys.readouterr().out
    assert "(smc, one replicate)>" in output
    assert "95 %" not in output


@pytest.mark.filterwarnings("ignore::polyabayes.exceptions.UnreliableErrorWarning")
def test_missing_cells_are_left_out_and_predicted(tmp_path, capsys):
    data, gaps, cells = (tmp_path / name for name in ("a.csv", "gaps.csv", "cells.csv"))
    data.write_text("doc,word,count\nd0,w0,4\nd0,w1,3\nd1,w2,3\nd2,w2,3\n")
    gaps.write_text("doc,word\nd0,w2\nd2,w0\n")
    options = ["--size", "topic=2", "--rate", "0.5", "--method", "exact", "--max-total", "16"]
    assert run("evidence", GRAPH, data, "--missing", gaps, *options) == 0
    output = capsys.readouterr().out
    observed = np.ones((3, 3), dtype=bool)
    observed[[0, 2], [2, 0]] = False
    model = AllocationModel.nmf(2, rate=0.5)
    found = model.predict_missing(COUNTS, "exact", observed=observed, max_total=16)
    assert f"{found.evidence!r}\n13 tokens observed" in output
    written = ["--predict", cells]
    assert run("evidence", GRAPH, data, "--missing", gaps, *written, *options) == 0
    rows = table(cells)
    assert [(row["doc"], row["word"]) for row in rows] == [("d0", "w2"), ("d2", "w0")]
    expected = [float(row["expected_count"]) for row in rows]
    assert expected == pytest.approx(found.expected_counts, abs=1e-12)
    capsys.readouterr()
    gaps.write_text("doc,word\nd0,w9\n")
    assert run("evidence", GRAPH, data, "--missing", gaps, *options) == 2
    assert "level 'w9' of axis 'word'" in capsys.readouterr().err
