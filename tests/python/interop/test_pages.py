"""Programs of README and docs run as they stand, and print what the pages say."""

import importlib.util
import re
import shlex
from pathlib import Path
from types import ModuleType

import pytest

import polyabayes as pb
from polyabayes.cli.parser import parse

ROOT = Path(__file__).parents[3]
_NUMBER = r"-?\d[\d,]*\.?\d*(?:e-?\d+)?"


def _module():
    spec = importlib.util.spec_from_file_location("pages", ROOT / "docs" / "pages.py")
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


pages = _module()
# Packages that the pages about them import.
_PACKAGES = {
    "coming-from.md": ("gensim", "tomotopy", "anndata"),
    "pycistopic.md": ("tomotopy", "pandas"),
}


def test_there_are_pages():
    assert len(pages.pages()) > 10


@pytest.mark.parametrize("page", pages.pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_programs_print_what_the_page_says(page, monkeypatch, tmp_path):
    """Words alike; numbers within 2 %, as other machines may round other libraries elsewhere."""
    for package in _PACKAGES.get(page.name, ()):
        pytest.importorskip(package)
    monkeypatch.chdir(tmp_path)
    for program, printed in pages.run(page):
        told = program[2]
        if told is None:
            continue
        assert re.sub(_NUMBER, "#", printed).split() == re.sub(_NUMBER, "#", told).split()
        numbers = [
            [float(number.replace(",", "")) for number in re.findall(_NUMBER, text)]
            for text in (printed, told)
        ]
        assert numbers[0] == pytest.approx(numbers[1], rel=0.02, abs=0.005)


def _commands():
    files = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    for path in files:
        for block in re.findall(r"```sh\n(.*?)```", path.read_text(), re.DOTALL):
            for line in block.replace("\\\n", " ").splitlines():
                if line.startswith("polyabayes "):
                    yield line.partition(" #")[0].partition(" > ")[0]


def test_commands_on_the_pages_exist():
    commands = [line for line in _commands() if "COMMAND" not in line]
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
    for name in modules:
        room = getattr(pb, name)
        # Names that the package has, too, stand there.
        if room is pb.exceptions:
            own = {
                n
                for n, x in vars(room).items()
                if isinstance(x, type) and x.__module__ == room.__name__
            }
            names = {name for name in own if not name.startswith("_")} | {"NotFittedError"}
        else:
            names = room.__all__
        own = [one for one in names if one not in pb.__all__]
        public |= {f"polyabayes.{name}.{one}" for one in own}
    assert listed == public
