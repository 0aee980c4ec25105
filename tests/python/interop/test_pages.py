"""Programs of README and docs run as they stand, and print what the pages say."""

from __future__ import annotations

import re
import warnings
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
_NUMBER = r"-?\d[\d,]*\.?\d*(?:e-?\d+)?"


def run(page, capsys):
    """Each program of a page with what it printed and what the page says it prints, if it does."""
    for package in ("gensim", "tomotopy", "anndata"):
        pytest.importorskip(package)
    found = re.findall(
        r"```python\n(.*?)```(?:\n\n```text\n(.*?)```)?", (ROOT / page).read_text(), re.DOTALL
    )
    names: dict[str, object] = {}
    with warnings.catch_warnings():
        # Warnings that other packages give about themselves, and edges of grids of two sizes.
        warnings.simplefilter("ignore")
        for program, told in found:
            exec(compile(program, page, "exec"), names)
            yield told, capsys.readouterr().out


def test_programs_for_those_who_come_from_elsewhere(capsys):
    shown = [printed for _, printed in run("docs/coming-from.md", capsys)]
    assert len(shown) > 5
    assert "nats a token" in "".join(shown)


def test_the_case_of_pycistopic_tells_what_it_shows(capsys):
    """Their figure rises with every further topic, ours is largest at the number planted."""
    told, shown = zip(
        *(pair for pair in run("docs/guide/pycistopic.md", capsys) if pair[0]), strict=True
    )
    theirs = [float(line.split(":")[1].replace(",", "")) for line in shown[0].splitlines()]
    assert len(theirs) == 7
    assert sorted(set(theirs)) == theirs
    rows = [line.split() for line in shown[1].splitlines()[1:]]
    assert rows[0][0] == "4"
    assert {"20", "40"} == {row[0] for row in rows[-2:]}
    # The sampler may take other draws on other machines; constants do not.
    stated = [float(line.split(":")[1].replace(",", "")) for line in told[0].splitlines()]
    assert theirs == pytest.approx(stated, rel=0.02)


def test_the_readme_prints_what_it_says(capsys):
    """Words alike; numbers within 2 %, as other machines may round other libraries elsewhere."""
    pairs = [pair for pair in run("README.md", capsys) if pair[0]]
    assert len(pairs) >= 4
    for told, printed in pairs:
        assert re.sub(_NUMBER, "#", printed).split() == re.sub(_NUMBER, "#", told).split()
        numbers = [
            [float(number.replace(",", "")) for number in re.findall(_NUMBER, text)]
            for text in (printed, told)
        ]
        assert numbers[0] == pytest.approx(numbers[1], rel=0.02, abs=0.005)
