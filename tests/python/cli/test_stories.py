"""The work of a social scientist, a biologist and an engineer, from their files to their results.

The programs are those of the guide, which another test runs in Python; here the commands below them
run on the files that the first program of a page writes.
"""

import importlib.util
import json
import re
import shlex
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest

import polyabayes as pb
from helpers.command_line import run, table

GUIDE = Path(__file__).parents[3] / "docs" / "guide"

mpl.use("Agg")


@pytest.fixture
def tell(monkeypatch, tmp_path, capsys):
    """Run the first program of a page and then its commands, all in one folder."""
    place = importlib.util.spec_from_file_location("pages", GUIDE.parent / "pages.py")
    pages = importlib.util.module_from_spec(place)
    place.loader.exec_module(pages)
    monkeypatch.chdir(tmp_path)

    def tell(page):
        next(pages.run(GUIDE / page))
        blocks = re.findall(r"```sh\n(.*?)```", (GUIDE / page).read_text(), re.DOTALL)
        printed = []
        for line in "".join(blocks).replace("\\\n", " ").splitlines():
            assert run(*shlex.split(line)[1:]) == 0, capsys.readouterr().err
            printed.append(capsys.readouterr().out)
        return printed

    return tell


def test_texts_become_a_report_by_party(tell):
    printed = tell("texts.md")
    left = [row for row in table(Path("parties.csv")) if row["group"] == "left"]
    assert min(float(row["mean"]) for row in left) < 0.25
    corpus = pb.read_corpus("speeches.npz")
    weights = table(Path("weights.csv"))
    assert list(dict.fromkeys(row["document"] for row in weights)) == corpus.ids.tolist()
    assert not {"s005", "s017"} & set(corpus.ids)
    page = Path("report.html").read_text()
    content = json.loads(
        re.search(r'<script[^>]*id="data"[^>]*>(.*?)</script>', page, re.DOTALL)[1]
    )
    assert content["part"] == "held out"
    first = content["topics"][0]["documents"][0]
    assert first["excerpt"].startswith("We speak of")
    assert "corpus: speeches" in printed[-1]
    assert "@software" in printed[-1]


def test_cells_become_programmes_of_donors(tell):
    pytest.importorskip("anndata")
    tell("cells.md")
    donors = table(Path("donors.csv"))
    assert len(donors) == 12 * 4
    assert all(float(row["lower"]) <= float(row["mean"]) <= float(row["upper"]) for row in donors)
    cells = [row["document"] for row in table(Path("activities.csv"))]
    assert cells[::4] == [f"cell {number}" for number in range(240)]


def test_mutations_become_signatures(tell):
    tell("signatures.md")
    model = pb.load("signatures.safetensors")
    assert sorted(model.vocabulary_)[:2] == ["A[C>A]A", "A[C>A]C"]
    assert len(table(Path("exposures.csv"))) == 80 * 4
    assert Path("signatures.png").stat().st_size > 10_000


def test_a_stream_becomes_a_model_with_a_history(tell):
    printed = tell("production.md")
    by_command, by_program = pb.load("model.safetensors"), pb.read_corpus("train.npz")
    again = pb.LatentDirichletAllocation(4, max_iter=60, random_state=0).fit(by_program)
    np.testing.assert_array_equal(by_command.components_, again.components_)
    assert next(row["document"] for row in table(Path("scores.csv"))) == "d200"
    assert printed[3].splitlines()[1].startswith("model ")
    assert "corpus: May" in printed[4]
