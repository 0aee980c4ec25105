"""Lines and processor time of the work of three people: by the package, by hand, by commands.

``python benches/stories.py`` runs the programs of four pages of the guide, the commands on them,
and the same work as ``by_hand/stories.md`` does it. The first program of a page makes the data, and
counts for nothing. Lines are those that are not blank, as the formatter leaves them.
"""

import contextlib
import io
import os
import re
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import matplotlib as mpl
from record import ROOT, Table, main, save, timed

PAGES = {
    "texts": "texts to a report",
    "cells": "cells to programmes",
    "signatures": "mutations to signatures",
    "production": "a stream to a service",
}
_PROGRAM = re.compile(r"```python\n(.*?)```", re.DOTALL)
_COMMANDS = re.compile(r"```sh\n(.*?)```", re.DOTALL)


def n_lines(text: str) -> int:
    return sum(bool(line.strip()) for line in text.splitlines())


def minutes_of(data: str, program: str) -> float:
    """Processor minutes of a program after the one that makes its data, in a folder of its own."""
    names: dict[str, object] = {}
    with (
        tempfile.TemporaryDirectory() as folder,
        contextlib.chdir(folder),
        contextlib.redirect_stdout(io.StringIO()),
    ):
        exec(data, names)
        return timed(exec, program, names)[1] / 60


def minutes_of_commands(data: str, commands: str) -> float:
    """Processor minutes of commands, each of which starts Python anew."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        exec(data, {})
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        for line in commands.replace("\\\n", " ").splitlines():
            subprocess.run(
                line, shell=True, check=True, capture_output=True, env={**os.environ, "PATH": path}
            )
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) / 60


def stories() -> None:
    mpl.use("Agg")
    by_hand = (ROOT / "benches" / "by_hand" / "stories.md").read_text()
    columns = {
        "from": "s", "lines of Python": "d", "by hand": "d", "commands": "d",
        "processor minutes of Python": ".2f", "minutes by hand": ".2f",
        "minutes of commands": ".2f",
    }  # fmt: skip
    golden = ["lda, Gibbs", "lda, exact", "pfa, gamma"]
    table = Table("stories", "python benches/stories.py", columns, golden)
    for page, title in PAGES.items():
        text = (ROOT / "docs" / "guide" / f"{page}.md").read_text()
        data, *programs = _PROGRAM.findall(text)
        program, commands = "".join(programs), "".join(_COMMANDS.findall(text))
        own = _PROGRAM.findall(by_hand.partition(f"## {page}\n")[2])[0]
        table.add(
            f"[{title}](../guide/{page}.md)",
            *(n_lines(lines) for lines in (program, own, commands)),
            minutes_of(data, program),
            minutes_of(data, own),
            minutes_of_commands(data, commands),
        )
    save(table)


if __name__ == "__main__":
    main(stories)
