"""Programs of the pages: run them, and write down what they print.

``python docs/pages.py`` runs every page and puts the output of each program that has a text block
below it into that block. The tests run the same programs and compare.
"""

import contextlib
import io
import re
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

from polyabayes.exceptions import PolyabayesWarning

ROOT = Path(__file__).parents[1]
_PROGRAM = re.compile(r"```python\n(.*?)```(?:\n\n```text\n(.*?)```)?", re.DOTALL)


def pages() -> list[Path]:
    """Pages with programs; notebooks run when they are built."""
    found = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    kept = [
        path for path in found if not {"notebooks", "auto_gallery"} & set(path.parts)
    ]
    return [path for path in kept if "```python\n" in path.read_text()]


def run(page: Path) -> Iterator[tuple[re.Match[str], str]]:
    """Each program of a page, with what it printed."""
    names: dict[str, object] = {}
    with warnings.catch_warnings():
        # Other packages warn about themselves; what a reader sees of ours is printed.
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", PolyabayesWarning)
        warnings.showwarning = _print_warning
        for program in _PROGRAM.finditer(page.read_text()):
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                exec(compile(program[1], str(page), "exec"), names)
            yield program, printed.getvalue()


def _print_warning(message: object, category: type, *_: object) -> None:
    print(f"{category.__name__}: {message}")


def write(page: Path) -> None:
    """Put what the programs print into the text blocks below them."""
    text = page.read_text()
    for program, printed in reversed(list(run(page))):
        if program[2] is not None:
            text = text[: program.start(2)] + printed + text[program.end(2) :]
    page.write_text(text)


if __name__ == "__main__":
    for path in map(Path, sys.argv[1:]) if sys.argv[1:] else pages():
        print(path.relative_to(ROOT) if path.is_absolute() else path)
        write(path.resolve())
