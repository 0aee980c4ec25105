import csv

import numpy as np
import pytest

import polyabayes as pb
from helpers.command_line import table
from polyabayes import cli, priors
from polyabayes._support.random import draw_seed


@pytest.fixture
def folder(tmp_path, monkeypatch):
    data = pb.datasets.make_lda_corpus(24, 10, 3, document_length=12, random_state=3)
    pb.write_corpus(data.corpus[:20], tmp_path / "train.npz")
    pb.write_corpus(data.corpus[20:], tmp_path / "test.npz")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(arguments):
    return cli.main(["search", *arguments.split()])


def test_one_command_for_several_priors(folder, capsys):
    status = run(
        "train.npz --prior poisson:2 --prior geometric:0.25 --max-steps 4 --seed 1 --test test.npz "
        "-o bounds.csv --plot bounds.png --checkpoint state"
    )
    error = capsys.readouterr().err
    assert status == 0, error
    rows = table(folder / "bounds.csv")
    assert [row["size"] for row in rows] == ["1", "2", "3", "4"] * 2
    told = {"Poisson(mean=2.0, shift=1, truncate=False)", "Geometric(probability=0.25)"}
    assert {row["prior"] for row in rows} == told
    model = pb.LatentDirichletAllocation(learn_priors=True)
    corpus = pb.read_corpus(folder / "train.npz")
    search = pb.WitnessSearch(model, priors.Poisson(2.0), max_steps=4, random_state=1).fit(corpus)
    lower = [float(row["lower"]) for row in rows[:4]]
    np.testing.assert_allclose(lower, search.bounds_["lower"], rtol=1e-12)
    assert (folder / "bounds.png").stat().st_size > 1000
    assert "4 sizes, stopped by max_steps" in error
    assert error.count("ln p(test)") == 2
    # The second time scores are in the folder, with the seconds that they took.
    assert run("train.npz --prior poisson:2 --max-steps 2 --seed 1 -o - --checkpoint state") == 0
    again = csv.DictReader(capsys.readouterr().out.splitlines())
    assert [row["seconds"] for row in again] == [row["seconds"] for row in rows[:2]]


def test_likelihoods_by_a_cheap_method(folder):
    cheap = "--method smc-lookahead --particles 5 --replicates 4 --max-iter 5 --tol 0.001"
    assert run(f"train.npz --prior poisson:2 --max-steps 3 {cheap} --seed 1 -o b.csv") == 0
    assert all(float(row["std_error"]) > 0 for row in table(folder / "b.csv")[1:])


def test_folds(folder):
    priors = "--prior poisson:2 --prior geometric:0.5"
    assert run(f"train.npz {priors} --max-steps 2 --folds 2 -o f.csv") == 0
    rows = table(folder / "f.csv")
    assert [row["fold"] for row in rows] == ["0", "0", "1", "1"]
    assert [row["prior"][:3] for row in rows] == ["Poi", "Geo"] * 2
    assert rows[0]["lower"] != rows[1]["lower"]
    assert all(float(row["lower"]) <= float(row["upper"]) for row in rows)


GRAPH = "user -> g; item -> h; g, h -> s"
LINKS = np.array([[[3, 0], [2, 1]], [[0, 2], [0, 4]]])


@pytest.fixture
def links(folder):
    tensor = pb.CountTensor.from_dense(LINKS, ["user", "item", "s"])
    pb.write_tensor(tensor, folder / "links.tns")
    return folder


def search(*arguments):
    return cli.main(["search", *arguments])


def test_sizes_of_a_network(links, capsys):
    arguments = "links.tns --size g=? --size h=? --concentration 2 --prior poisson:1*uniform:1,3"
    options = "--max-steps 5 --seed 1 --jobs 1 -o bounds.csv --plot bounds.png --checkpoint state"
    status = search(GRAPH, *arguments.split(), *options.split())
    error = capsys.readouterr().err
    assert status == 0, error
    rows = table(links / "bounds.csv")
    model = pb.AllocationModel(GRAPH, {"g": None, "h": None}, 2.0)
    prior = priors.Product(priors.Poisson(1.0), priors.Uniform(1, 3))
    expected = pb.WitnessSearch(model, prior, max_steps=5, random_state=1)
    expected.fit(pb.read_tensor(links / "links.tns"))
    for name in ("g", "h", "log_score", "lower", "upper"):
        np.testing.assert_array_equal([float(row[name]) for row in rows], expected.bounds_[name])
    assert f"best size     g {expected.best_[0]}, h {expected.best_[1]}" in error
    assert "searching <AllocationModel: user -> g; item -> h; g, h -> s; g ?, h ?;" in error
    assert (links / "bounds.png").stat().st_size > 1000
    # It goes on where it was, and not where another one was.
    again = ["--seed", "1", "--max-steps", "7", "-o", "-", "--checkpoint", "state"]
    assert search(GRAPH, *arguments.split(), *again) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 8
    assert [line.rsplit(",", 2)[1] for line in lines[1:6]] == [row["seconds"] for row in rows]
    assert search(GRAPH, *arguments.split(), "--rate", "2", *again) == 2
    assert "its rate is 'None', here it is '2.0'" in capsys.readouterr().err


def test_several_priors_of_one_size(links):
    arguments = "links.tns --size g=? --size h=2 --prior poisson:1 --prior uniform:1,4"
    options = "--max-steps 3 --method vb --given-total --seed 2 -o b.csv --table-prior flat"
    assert search(GRAPH, *arguments.split(), *options.split()) == 0
    rows = table(links / "b.csv")
    assert [row["size"] for row in rows] == ["1", "2", "3"] * 2
    model = pb.AllocationModel(GRAPH, {"g": 2, "h": 2}, prior="flat")
    tensor = pb.read_tensor(links / "links.tns")
    bound = model.log_evidence(tensor, "vb", given_total=True, random_state=draw_seed(2)).value
    assert float(rows[1]["log_score"]) == bound


def test_scores_before_ten_failures_are_written(folder, capsys):
    (folder / "t.csv").write_text("a,b,count\nx,y,3\nz,w,4\nx,w,2\n")
    # Only the exact sum of one value is within the budget.
    options = "--size t=? --prior poisson:3 --method exact --budget 300 -o bounds.csv"
    assert search("a <- t -> b", "t.csv", *options.split()) == 2
    *_, told, line = capsys.readouterr().err.splitlines()
    assert told == "polyabayes: 10 sizes up to the error are written"
    assert line.startswith("polyabayes: error: 10 configurations in a row could not be scored")
    scored = [bool(row["log_score"]) for row in table(folder / "bounds.csv")]
    assert scored == [True] + [False] * 9
