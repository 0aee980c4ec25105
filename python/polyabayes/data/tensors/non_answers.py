"""What stands in a table of answers and is no answer: names of rows, codes, headers, long forms."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from polyabayes._support import checks
from polyabayes._support.output.tables import some
from polyabayes._support.warnings import warn
from polyabayes.data.conversion.numbers import number_of
from polyabayes.data.conversion.table import SECOND_HEADER
from polyabayes.data.names import NAMES
from polyabayes.exceptions import DataWarning, argument

if TYPE_CHECKING:
    import pandas as pd

# Numbers by which surveys mark missing answers, if they follow a gap.
_NUMBERS = set(map(int, NAMES["no number"]))
_GAP = 2
_FEW_ROWS = 10


def without_missing(
    frame: pd.DataFrame, columns: Sequence[Any], missing: Any, *, may_lack: bool = False
) -> pd.DataFrame:
    """The frame with values that mark missing answers removed from some of its columns.

    Numbers are equal by value; categories that are left out are no levels any more. One list may
    serve many tables, so some marks may occur nowhere. Unless the columns `may_lack` all marks,
    they are refused if none occurs, and so is a mark that differs from an answer only in case or
    type.
    """
    if missing is None or (isinstance(missing, (list, tuple)) and not missing):
        return frame
    is_list = isinstance(missing, Collection) and not checks.is_single(missing)
    odd = [x for x in missing if not np.isscalar(x) and x is not None] if is_list else [missing]
    if odd:
        rule = f"must be a list of answers, as [9, 'No answer'], got {odd[0]!r:.60}"
        raise checks.wrong_type("missing", odd[0], rule)
    marked = frame.copy(deep=False)
    found: set[Any] = set()
    answers: set[str] = set()
    for column in columns:
        values: Any = frame[column]
        levels = values.cat.categories if hasattr(values, "cat") else values.dropna().unique()
        marks = [level for level in levels if level in missing]
        found.update(marks)
        answers.update(str(level).strip().casefold() for level in levels)
        if marks and hasattr(values, "cat"):
            marked[column] = values.cat.remove_categories(marks)
        elif marks:
            whole = getattr(values.dtype, "kind", "") in "iu"
            marked[column] = (values.astype("Int64") if whole else values).mask(values.isin(marks))
    absent = [mark for mark in missing if mark not in found]
    alike = [mark for mark in absent if str(mark).strip().casefold() in answers]
    if absent and (alike or not found) and not may_lack:
        wrong = (alike or absent)[0]
        rule = f"holds {wrong!r}, which is no answer in any of the columns"
        raise checks.wrong("missing", wrong, rule)
    return marked


def warn_of_non_answers(frame: pd.DataFrame, items: Sequence[Any]) -> None:
    """Warn of what may be no item, no respondent or no answer; nothing is dropped.

    It names columns of names of rows, tables with a row for each answer, rows that nobody else is
    like, such as further headers, and answers by which surveys mark missing ones.
    """
    plain = {item: "".join(filter(str.isalnum, str(item).lower())) for item in items}
    plain |= {item: "id" for item in items if str(item).lower().endswith("_id")}
    ids, questions, answers = (
        [item for item in items if plain[item] in NAMES[kind]]
        for kind in ("respondent", "question", "answer")
    )
    if ids and questions and answers and frame[ids[0]].duplicated().any():
        told = f"by frame.pivot(index={ids[0]!r}, columns={questions[0]!r}, values={answers[0]!r})"
        _tell(f"the table has a row for each answer, not for each respondent: make it one {told}")
        return
    if ids:
        _tell(
            f"item {some(ids, 3)} looks like names of rows: if so, make it the index by "
            f"frame.set_index({ids[0]!r}), or leave it out of {argument('items')}"
        )
    others = [item for item in items if item not in ids]
    warn_of_headers(frame, others, _rows_alone(frame, others))
    marks: dict[Any, list[Any]] = {}
    for item in others:
        for mark in _marks(frame[item]):
            marks.setdefault(mark, []).append(item)
    if marks:
        told = ", ".join(f"{mark!r} of {some(where, 3)}" for mark, where in marks.items())
        _tell(
            f"answers that may mark missing ones: {told}; if so, use "
            f"{argument('missing', list(marks))}; else they count as answers"
        )


def warn_of_headers(frame: pd.DataFrame, items: Sequence[Any], alone: Sequence[Any] = ()) -> None:
    """Warn of further headers of a survey export, or else of rows that nobody else is like."""
    first = [str(value) for value in frame[items[0]].head(_FEW_ROWS)] if items else []
    are_headers = [value.startswith(SECOND_HEADER) for value in first]
    if any(are_headers):
        alone = list(frame.index[: are_headers.index(True) + 1])
    if alone:
        told = f"as if it was a further header: if so, leave it out by frame.drop(index={alone})"
        _tell(f"nobody else gives any answer of row {some(alone, 3)}, {told}")


def _tell(message: str) -> None:
    warn(message, DataWarning)


def _rows_alone(frame: pd.DataFrame, items: Sequence[Any]) -> list[Any]:
    """Labels of rows whose every answer stands once in its column."""
    if len(frame) < _FEW_ROWS or len(items) < 2:
        return []
    alone = np.ones(len(frame), dtype=bool)
    for item in items:
        values = frame[item]
        alone &= (values.isna() | ~values.duplicated(keep=False)).to_numpy()
    alone &= frame[list(items)].notna().sum(axis=1).to_numpy() > 1
    return list(frame.index[alone]) if alone.mean() < 0.5 else []


def _marks(values: Any) -> list[Any]:
    """Levels of an item by which surveys mark missing answers."""
    levels = values.cat.categories if hasattr(values, "cat") else values.dropna().unique()
    known = [getattr(level, "item", lambda level=level: level)() for level in levels]
    texts = [x for x in known if isinstance(x, str) and x.strip().lower() in NAMES["no answer"]]
    # Whoever makes numbers categories says that they are answers.
    kinds = () if hasattr(values, "cat") else (int, float)
    held: dict[Any, Any] = {number_of(x): x for x in known if isinstance(x, str) and x not in texts}
    held |= {x: x for x in known if isinstance(x, kinds) and not isinstance(x, bool)}
    numbers = sorted(x for x in held if x is not None)
    if {-number for number in numbers} == set(numbers):
        return texts
    codes = [number for number in numbers if number < 0]
    last = None
    for number in numbers:
        if number in _NUMBERS and last is not None and number > last + _GAP:
            codes.append(number)
        elif number >= 0:
            last = number
    # An item has two answers at least.
    return texts + [held[code] for code in codes if len(codes) < len(known) - 1]
