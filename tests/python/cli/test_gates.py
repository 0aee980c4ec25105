"""Gates in continuous integration: limits of a model's score, and of time."""

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import polyabayes as pb
from helpers.command_line import assert_one_error_line, run
from helpers.small_models import known_lda
from polyabayes.exceptions import Interrupted


@pytest.fixture
def models(tmp_path, monkeypatch):
    """A good model and a bad one of the same documents, and a corpus with an impossible word."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    counts = rng.multinomial(20, [0.6, 0.3, 0.1], size=30)
    pb.write_corpus(pb.Corpus(counts, ["a", "b", "c"]), "test.npz")
    topics = {"good": [0.6, 0.3, 0.1], "bad": [0.1, 0.3, 0.6], "zero": [0.5, 0.5, 0]}
    for name, topic in topics.items():
        known_lda(1.0, [topic], vocabulary=["a", "b", "c"]).save(f"{name}.safetensors")
    return pb.log_likelihood(pb.read_model("good.safetensors"), counts)


def test_scores_as_json_are_a_baseline(models, capsys):
    assert run("score", "good.safetensors", "test.npz", "--json") == 0
    text = capsys.readouterr().out
    found = json.loads(text)
    assert (found["kind"], found["method"], found["total"]) == (
        *("LogLikelihood", "exact", pytest.approx(models.total)),
    )
    assert [row["log_likelihood"] for row in found["rows"]] == models.values.tolist()
    Path("scores.json").write_text(text)
    assert run("score", "good.safetensors", "test.npz", "--baseline", "scores.json") == 0
    assert run("score", "bad.safetensors", "test.npz", "--baseline", "scores.json") == 1
    assert "polyabayes: failed: bad: " in capsys.readouterr().err
    assert run("score", "zero.safetensors", "test.npz", "--baseline", "scores.json") == 1
    longer = [row | {"n_tokens": row["n_tokens"] + 1} for row in found["rows"]]
    for rows, message in ((found["rows"][:3], "3 documents, not these 30"), (longer, "lengths")):
        Path("other.json").write_text(json.dumps({"kind": "LogLikelihood", "rows": rows}))
        capsys.readouterr()
        status = run("score", "good.safetensors", "test.npz", "--baseline", "other.json")
        assert_one_error_line(status, capsys.readouterr().err.splitlines()[-1], message)


def test_a_model_below_the_limit_fails(models):
    per_token = models.nats_per_token
    for limit, status in ((per_token - 0.01, 0), (per_token + 0.01, 1)):
        given = ["--fail-below", limit]
        assert run("score", "good.safetensors", "test.npz", *given) == status
        both = ["good.safetensors", "bad.safetensors", "--on", "test.npz"]
        assert run("compare", *both, *given) == status


@pytest.mark.usefixtures("models")
def test_models_are_compared_with_a_baseline(capsys):
    given = ["--on", "test.npz", "--json", "--baseline"]
    assert run("compare", "good.safetensors", *given, "bad.safetensors") == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert [row["model"] for row in rows] == ["good", "bad"]
    assert run("compare", "bad.safetensors", *given, "good.safetensors") == 1
    assert "nats per token behind the baseline" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("command", "module"),
    [("score good.safetensors test.npz", "log_likelihood"),
     ("compare good.safetensors --on test.npz", "compare")],
)  # fmt: skip
def test_work_that_takes_too_long_ends(models, monkeypatch, capsys, command, module):
    def endless(*_, **__):
        try:
            while True:
                pass
        except KeyboardInterrupt:
            raise Interrupted("0 of 30 documents are scored", models) from None

    monkeypatch.setattr(pb, module, endless)
    assert run(*command.split(), "--max-time", 0.01) == 124
    assert "interrupted" in capsys.readouterr().err
    assert run(*command.split(), "--max-time", 0) == 2


def test_the_workflow_of_the_page_runs(tmp_path):
    page = Path(__file__).parents[3] / "docs" / "guide" / "gate.md"
    steps = re.search(r"- run: \|\n((?: {10}.*\n)+)", page.read_text("utf-8"))[1]
    data = pb.datasets.make_lda_corpus(60, 20, 3, document_length=20, random_state=0)
    for name, part in zip(("train", "test"), data.corpus.split(random_state=0), strict=True):
        pb.write_corpus(part, tmp_path / f"{name}.npz")
    flat = known_lda(1.0, [[0.05] * 20])
    test = pb.read_corpus(tmp_path / "test.npz")
    (tmp_path / "baseline.json").write_text(pb.log_likelihood(flat, test).to_json())
    program = f'set -e\npolyabayes() {{ "{sys.executable}" -m polyabayes "$@"; }}\n{steps}'
    done = subprocess.run(["bash", "-c", program], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert json.loads((tmp_path / "scores.json").read_text())["event"] == "sequence"
