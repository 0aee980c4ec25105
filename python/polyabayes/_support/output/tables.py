"""Tables as text and as HTML: the one printer of results."""

import math
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any, NamedTuple

import numpy as np


def counted(number: int, noun: str) -> str:
    """A number of things, as ``1 document`` and ``1,040 documents``."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def some(names: Sequence[Any] | Any, most: int = 5) -> str:
    """The first of some names, and how many more there are."""
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(map(repr, names[:most])) + more


def printable(text: str) -> str:
    r"""Text of which no terminal takes a part for a command: others than letters are escaped.

    Examples
    --------
    >>> print(printable("a\x1b[2Jé"), printable("one\ntwo"))
    a\x1b[2Jé one\ntwo
    """
    return "".join(x if x.isprintable() else repr(x)[1:-1] for x in text)


def measured(value: float, error: float = 0.0) -> str:
    """A value with as many decimals as two digits of its error, at least one, and the error.

    Examples
    --------
    >>> measured(-327683.5226, 118.2), measured(0.0105123, 0.00372), measured(-1.5)
    ('-327,683.5 ± 120', '0.0105 ± 0.0037', '-1.500000')
    """
    if not (math.isfinite(error) and error > 0):
        return f"{value:z,.6f}" if not error or math.isnan(error) else f"{value:z,.6f} ± {error}"
    digits = 1 - math.floor(math.log10(error))
    return f"{value:z,.{min(max(digits, 1), 9)}f} ± {round(error, digits):,.{max(digits, 0)}f}"


class Column(NamedTuple):
    """A column of a printed table.

    `width` is the least number of characters; names stand at the left.
    """

    title: str
    cells: Sequence[str]
    width: int = 0
    is_left: bool = False


def text_table(columns: Sequence[Column]) -> str:
    """Lines of columns, two spaces apart; the headings come first."""
    aligned = []
    for column in columns:
        cells = [printable(cell) for cell in (column.title, *column.cells)]
        width = max(column.width, *map(len, cells))
        aligned.append([x.ljust(width) if column.is_left else x.rjust(width) for x in cells])
    return "\n".join("  ".join(line).rstrip() for line in zip(*aligned, strict=True))


def html_table(columns: Sequence[Column], caption: str = "") -> str:
    """The same for a notebook."""
    sides = ["left" if column.is_left else "right" for column in columns]

    def row_of(tag: str, cells: Iterable[str]) -> str:
        placed = zip(sides, cells, strict=True)
        found = (
            f'<{tag} style="text-align:{side};padding:0.1em 0.6em">{escape(cell)}</{tag}>'
            for side, cell in placed
        )
        return f"<tr>{''.join(found)}</tr>"

    head = row_of("th", (column.title for column in columns))
    rows = zip(*(column.cells for column in columns), strict=True)
    body = "".join(row_of("td", row) for row in rows)
    style = "text-align:left;white-space:nowrap"
    title = f'<caption style="{style}">{escape(caption)}</caption>' if caption else ""
    return f"<table>{title}<thead>{head}</thead><tbody>{body}</tbody></table>"


def topic_columns(
    rows: Mapping[str, Any], tables: Mapping[str, Any], topics: Any = None
) -> dict[str, Any]:
    """Columns of arrays (n_rows, n_topics), a row of the table for each entry, and their rows.

    `topics` are the names of the topics; numbers by default.
    """
    n_rows, n_topics = next(iter(tables.values())).shape
    return {
        **{name: np.repeat(np.asarray(values), n_topics) for name, values in rows.items()},
        "topic": np.tile(np.arange(n_topics) if topics is None else topics, n_rows),
        **{name: np.ravel(table) for name, table in tables.items()},
    }


def columns_of(data: Mapping[str, Any], most_rows: int | None = None) -> list[Column]:
    """Columns of values, each with six digits at most; only the first `most_rows` of them."""
    shown = {name: values[:most_rows] for name, values in data.items()}
    return [
        Column(name, [_text(x) for x in values], is_left=any(isinstance(x, str) for x in values))
        for name, values in shown.items()
    ]


def _text(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, (float, np.floating)) else str(value)
