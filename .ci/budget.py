"""Hold the budget of code by room: lines that are not blank, comment or docstring.

``budget.txt`` has a number for each room; raising one is a commit of its own that says what went
elsewhere. ``python .ci/budget.py --set`` writes the present numbers, rounded up.
"""

import ast
import io
import subprocess
import sys
import tokenize
from collections import Counter
from pathlib import Path

ROOT, BUDGET = Path(__file__).parents[1], Path(__file__).with_suffix(".txt")
# Folders whose folders are rooms of their own.
HOUSES = ("src", "python/polyabayes", "tests/core", "tests/python", "benches")
STEP = 50


def code_of_python(text):
    """Lines of code of a Python file."""
    prose = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0] if node.body else None
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                prose.update(range(first.lineno, first.end_lineno + 1))
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT and token.line.lstrip().startswith("#"):
            prose.add(token.start[0])
    lines = enumerate(text.splitlines(), 1)
    return sum(1 for number, line in lines if line.strip() and number not in prose)


def code_of_rust(text):
    """Lines of code of a Rust file."""
    return sum(1 for line in text.splitlines() if line.strip()[:2] not in ("", "//"))


def room_of(name):
    """A folder of a house, the house itself for its own files, or the top folder."""
    for house in HOUSES:
        if name.startswith(f"{house}/"):
            inside = name.removeprefix(f"{house}/").split("/")
            return f"{house}/{inside[0]}" if len(inside) > 1 else house
    return "python/src" if name.startswith("python/") else name.split("/")[0]


def main():
    """Print the rooms above their budget; exit status 1 if there is one."""
    listed = ["git", "ls-files", "*.py", "*.pyi", "*.rs"]
    names = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    found = Counter()
    for name in names.splitlines():
        count = code_of_rust if name.endswith(".rs") else code_of_python
        if (ROOT / name).is_file():
            found[room_of(name)] += count((ROOT / name).read_text("utf-8"))
    if "--set" in sys.argv:
        rows = [f"{-(-n // STEP) * STEP:>7,} {room}\n" for room, n in sorted(found.items())]
        BUDGET.write_text("".join(rows))
    rows = (line.split() for line in BUDGET.read_text("utf-8").splitlines())
    most = {room: int(number.replace(",", "")) for number, room in rows}
    over = [room for room in sorted(found) if found[room] > most.get(room, 0)]
    for room in over:
        print(f"{room}: {found[room]:,} lines of code, the budget is {most.get(room, 0):,}")
    print(f"{found.total():,} lines of code; the budgets of all rooms are {sum(most.values()):,}")
    return bool(over)


sys.exit(main())
