"""Programs and commands of README and docs run as they stand; programs print what the pages say."""

import json
import re
import shlex
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import polyabayes as pb
from helpers.command_line import run, table
from polyabayes.cli.parser import parse

ROOT = Path(__file__).parents[3]
sys.path.insert(0, str(ROOT / "docs"))

import pages  # noqa: E402

_NUMBER = r"-?\d[\d,]*\.?\d*(?:e-?\d+)?"


# Packages that the pages about them import.
_PACKAGES = {
    "coming-from.md": ("gensim", "tomotopy", "anndata"),
    "pycistopic.md": ("tomotopy", "pandas"),
    "cells.md": ("anndata",),
}


def assert_a_report_by_party(_printed):
    left = [row for row in table(Path("parties.csv")) if row["group"] == "left"]
    assert min(float(row["mean"]) for row in left) < 0.25
    corpus = pb.read_corpus("speeches.npz")
    weights = table(Path("weights.csv"))
    assert list(dict.fromkeys(row["document"] for row in weights)) == corpus.ids.tolist()
    assert not {"s005", "s017"} & set(corpus.ids)
    page = Path("report.html").read_text()
    content = json.loads(re.search(r'<script[^>]*id="data"[^>]*>(.*?)</script>', page, re.S)[1])
    assert content["part"] == "held out"
    assert content["topics"][0]["documents"][0]["excerpt"].startswith("We speak of")


def assert_programmes_of_donors(_printed):
    donors = table(Path("donors.csv"))
    assert len(donors) == 12 * 4
    assert all(float(row["lower"]) <= float(row["mean"]) <= float(row["upper"]) for row in donors)
    cells = [row["document"] for row in table(Path("activities.csv"))]
    assert cells[::4] == [f"cell {number}" for number in range(240)]


def assert_signatures(_printed):
    model = pb.load("signatures.safetensors")
    assert sorted(model.vocabulary_)[:2] == ["A[C>A]A", "A[C>A]C"]
    assert len(table(Path("exposures.csv"))) == 80 * 4
    assert Path("signatures.png").stat().st_size > 10_000


def assert_a_model_with_a_history(printed):
    by_command, by_program = pb.load("model.safetensors"), pb.read_corpus("train.npz")
    again = pb.LatentDirichletAllocation(4, max_iter=60, random_state=0).fit(by_program)
    np.testing.assert_array_equal(by_command.components_, again.components_)
    assert next(row["document"] for row in table(Path("scores.csv"))) == "d200"
    assert printed[3].splitlines()[1].startswith("model ")


# What commands of a page leave, which run on the files of its programs.
_RESULTS = {
    "texts.md": assert_a_report_by_party,
    "cells.md": assert_programmes_of_donors,
    "signatures.md": assert_signatures,
    "production.md": assert_a_model_with_a_history,
}


# Programs that take more than four seconds of a processor, beside README's.
_SLOW = [
    "bursty",
    "cells",
    "how-many",
    "index",
    "latent-classes",
    "latent-transitions",
    "signatures",
]
_PAGES = [
    pytest.param(
        page, id=str(page.relative_to(ROOT)), marks=[pytest.mark.slow] if page.stem in _SLOW else []
    )
    for page in pages.pages()
]


def test_there_are_pages():
    assert len(_PAGES) > 10


@pytest.mark.parametrize("page", _PAGES)
def test_programs_print_what_the_page_says(page, monkeypatch, tmp_path, capsys):
    """Words alike; numbers within 2 %, as other machines may round other libraries elsewhere."""
    for package in _PACKAGES.get(page.name, ()):
        pytest.importorskip(package)
    monkeypatch.chdir(tmp_path)
    for program, printed in pages.run(page):
        told = program[2]
        if told is None:
            continue
        assert re.sub(_NUMBER, "#", printed).split() == re.sub(_NUMBER, "#", told).split()
        found = (re.findall(_NUMBER, text) for text in (printed, told))
        numbers = [[float(number.replace(",", "")) for number in each] for each in found]
        assert numbers[0] == pytest.approx(numbers[1], rel=0.02, abs=0.005)
    if page.name in _RESULTS:
        outputs = []
        for line in _commands(page):
            assert run(*shlex.split(line)[1:]) == 0, capsys.readouterr().err
            outputs.append(capsys.readouterr().out)
        _RESULTS[page.name](outputs)


def _commands(*files):
    for path in files:
        for block in re.findall(r"```sh\n(.*?)```", path.read_text(), re.DOTALL):
            for line in block.replace("\\\n", " ").splitlines():
                if line.startswith("polyabayes "):
                    yield line.partition(" #")[0].partition(" > ")[0]


def test_commands_on_the_pages_exist():
    files = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    commands = [line for line in _commands(*files) if "COMMAND" not in line]
    assert len(commands) > 10
    for line in commands:
        assert parse(shlex.split(line)[1:], "0").command in line


def test_every_public_name_is_in_the_reference():
    listed = set()
    for path in (ROOT / "docs" / "reference").glob("*.md"):
        module = "polyabayes"
        for line in path.read_text().splitlines():
            if line.startswith(".. currentmodule:: "):
                module = line.removeprefix(".. currentmodule:: ")
            elif re.fullmatch(r"   \w+", line):
                listed.add(f"{module}.{line.strip()}")
    modules = [name for name in pb.__all__ if isinstance(getattr(pb, name), ModuleType)]
    public = {f"polyabayes.{name}" for name in pb.__all__ if name not in modules}
    classes = [one for one in vars(pb.exceptions).values() if isinstance(one, type)]
    exceptions = ["NotFittedError"]
    exceptions += [one.__name__ for one in classes if issubclass(one, BaseException)]
    for name in modules:
        # Names that the package has, too, stand there.
        names = getattr(getattr(pb, name), "__all__", exceptions)
        own = [one for one in names if one not in pb.__all__]
        public |= {f"polyabayes.{name}.{one}" for one in own if not one.startswith("_")}
    assert listed == public
