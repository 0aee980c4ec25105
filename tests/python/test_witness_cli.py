from __future__ import annotations

import csv
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest

import polyabayes as pb
from polyabayes import cli, priors

mpl.use("Agg")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    data = pb.datasets.make_lda_corpus(24, 10, 3, document_length=12, random_state=3)
    pb.write_corpus(data.corpus[:20], tmp_path / "train.npz")
    pb.write_corpus(data.corpus[20:], tmp_path / "test.npz")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(arguments: str) -> int:
    return cli.main(["search", *arguments.split()])


def table(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as stream:
        return list(csv.DictReader(stream))


def test_one_command_for_several_priors(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status = run(
        "train.npz --prior poisson:2 --prior geometric:0.25 --max-steps 4 --seed 1 --test test.npz "
        "-o bounds.csv --plot bounds.png --checkpoint state"
    )
    error = capsys.readouterr().err
    assert status == 0, error
    rows = table(folder / "bounds.csv")
    assert [row["size"] for row in rows] == ["1", "2", "3", "4"] * 2
    assert {row["prior"] for row in rows} == {
        "Poisson(mean=2.0, shift=1, truncate=False)",
        "Geometric(probability=0.25)",
    }
    model = pb.LatentDirichletAllocation(learn_priors=True)
    corpus = pb.read_corpus(folder / "train.npz")
    search = pb.WitnessSearch(model, priors.Poisson(2.0), max_steps=4, random_state=1).fit(corpus)
    np.testing.assert_allclose(
        [float(row["lower"]) for row in rows[:4]], search.bounds_["lower"], rtol=1e-12
    )
    assert (folder / "bounds.png").stat().st_size > 1000
    assert "4 sizes, stopped by max_steps" in error
    assert error.count("ln p(test)") == 2
    # The second time all scores are in the folder, whatever the rule of when to stop.
    assert run("train.npz --prior poisson:2 --max-steps 2 --seed 1 -o - --checkpoint state") == 0
    assert len(capsys.readouterr().out.splitlines()) == 5


def test_likelihoods_by_a_cheap_method(folder: Path) -> None:
    cheap = "--method smc-lookahead --particles 5 --replicates 4 --max-iter 5 --tol 0.001"
    assert run(f"train.npz --prior poisson:2 --max-steps 3 {cheap} --seed 1 -o b.csv") == 0
    assert all(float(row["std_error"]) > 0 for row in table(folder / "b.csv")[1:])


def test_folds(folder: Path) -> None:
    priors = "--prior poisson:2 --prior geometric:0.5"
    assert run(f"train.npz {priors} --max-steps 2 --folds 2 -o f.csv --plot f.png") == 0
    rows = table(folder / "f.csv")
    assert [row["fold"] for row in rows] == ["0", "0", "1", "1"]
    assert [row["prior"][:3] for row in rows] == ["Poi", "Geo"] * 2
    assert rows[0]["lower"] != rows[1]["lower"]
    assert all(float(row["lower"]) <= float(row["upper"]) for row in rows)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("train.npz -o b.csv", "required: --prior"),
        ("train.npz --prior zipf:2 -o b.csv", "'zipf:2' is not one of poisson:MEAN"),
        ("train.npz --prior poisson:2,3 -o b.csv", "'poisson:2,3' is not one of"),
        ("train.npz --prior poisson:-2 -o b.csv", "mean must be positive"),
        ("train.npz --prior uniform:a,3 -o b.csv", "invalid literal"),
        ("train.npz --prior poisson:2 -o b.xls", "must end in .csv or .parquet"),
        ("train.npz --prior poisson:2 -o b.csv --bound best", "bound must be one of"),
        ("train.npz --prior poisson:2 -o b.csv --folds 2 --test test.npz", "leave out --test"),
        ("none.npz --prior poisson:2 -o b.csv", "none.npz"),
    ],
)
@pytest.mark.usefixtures("folder")
def test_mistakes(arguments: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(arguments) == 2
    line = capsys.readouterr().err.splitlines()[-1]
    assert line.startswith("polyabayes: error: ")
    assert message in line
