"""Tables as text and as HTML: the one printer of results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any, NamedTuple

import numpy as np

__all__ = ["Column", "columns_of", "html_table", "text_table"]


class Column(NamedTuple):
    """A column of a printed table.

    Attributes
    ----------
    title : str
        Its heading.
    cells : sequence of str
        One text a row.
    width : int
        Least number of characters.
    is_left : bool
        Whether the cells stand at the left, as names do.
    """

    title: str
    cells: Sequence[str]
    width: int = 0
    is_left: bool = False


def text_table(columns: Sequence[Column]) -> str:
    """Lines of columns, two spaces apart; the headings come first."""
    aligned = []
    for column in columns:
        cells = [column.title, *column.cells]
        width = max(column.width, *map(len, cells))
        aligned.append([x.ljust(width) if column.is_left else x.rjust(width) for x in cells])
    return "\n".join("  ".join(line).rstrip() for line in zip(*aligned, strict=True))


def html_table(columns: Sequence[Column], caption: str = "") -> str:
    """The same for a notebook."""
    head = "".join(f"<th>{escape(column.title)}</th>" for column in columns)
    rows = zip(*(column.cells for column in columns), strict=True)
    body = "".join(
        f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows
    )
    title = f"<caption>{escape(caption)}</caption>" if caption else ""
    return f"<table>{title}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def columns_of(data: Mapping[str, Any], most_rows: int | None = None) -> list[Column]:
    """Columns of values, each with six digits at most; only the first `most_rows` of them."""
    return [Column(name, [_text(x) for x in values[:most_rows]]) for name, values in data.items()]


def _text(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, (float, np.floating)) else str(value)
