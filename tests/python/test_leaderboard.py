"""The leaderboard: rows name their data and versions, old ones are dropped, every recipe works."""

import json
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import polyabayes as pb

sys.path.insert(0, str(Path(__file__).parents[2] / "benches"))

import equal_time
import leaderboard

COUNTS = np.random.default_rng(0).poisson(1.0, (30, 8)) + 1
WORDS = [f"w{word_ix}" for word_ix in range(8)]
CORPUS = pb.Corpus(COUNTS, WORDS, metadata={"rating": ["Liberal", "Conservative"] * 15})
PARTS = CORPUS[:24], CORPUS[24:]


@pytest.fixture
def kept(tmp_path, monkeypatch):
    monkeypatch.setattr(leaderboard, "split", lambda _name: PARTS)
    monkeypatch.setattr(leaderboard, "KEPT", str(tmp_path / "rows"))
    monkeypatch.setattr(leaderboard, "FITS", tmp_path / "fits")
    return tmp_path / "rows.jsonl"


@pytest.mark.parametrize("name", leaderboard.MODELS)
@pytest.mark.usefixtures("kept")
@pytest.mark.filterwarnings("ignore")
def test_every_recipe_gives_a_score_with_an_error(name):
    package = name.split(",")[0]
    if find_spec(package.replace("scikit-learn", "sklearn")) is None:
        pytest.skip(f"{package} is not installed")
    row = leaderboard.measured("poliblog5k", name, 2)
    assert -3 < row["nats"] < -1.5
    assert 0 <= row["error"] < 0.1
    assert row["counts"] == leaderboard.fingerprint(*PARTS)
    assert row["own"] is None or row["own"] < 0
    again = leaderboard.measured("poliblog5k", name, 2)
    assert all(again[key] == row[key] for key in ("nats", "own", "seconds"))


def test_rows_are_made_once_and_dropped_when_their_golden_values_change(kept):
    for _ in range(2):
        leaderboard.run(["AP"], ["polyabayes, LDA", "polyabayes, DMR"], [2])
    (row,) = leaderboard.rows()
    assert row["model"] == "polyabayes, LDA"
    kept.write_text(json.dumps(row | {"golden": {"lda, auto": "0" * 12}}))
    assert leaderboard.rows() == []
    kept.write_text(json.dumps(row | {"settings": "10 sweeps"}))
    assert leaderboard.rows() == []


def test_the_hash_is_that_of_counts_order_and_split():
    found = leaderboard.fingerprint(*PARTS)
    other = COUNTS.copy()
    other[0, 0] += 1
    changed = pb.Corpus(other[:24], WORDS)
    assert found == leaderboard.fingerprint(*PARTS)
    split = pb.Corpus(COUNTS[:20], WORDS), pb.Corpus(COUNTS[20:], WORDS)
    others = [leaderboard.fingerprint(*p) for p in ((changed, PARTS[1]), PARTS[::-1], split)]
    assert len({found, *others}) == 4


def test_a_fit_in_equal_time_takes_its_budget(monkeypatch):
    monkeypatch.setattr(
        equal_time, "timed", lambda fit, n_sweeps: (fit(n_sweeps), 3 + n_sweeps / 9)
    )
    model, n_sweeps, seconds = equal_time.within(str, 30.0, 20)
    assert model == str(n_sweeps)
    assert seconds == pytest.approx(30, rel=equal_time.TOLERANCE)
