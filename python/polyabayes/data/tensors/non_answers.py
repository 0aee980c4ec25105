"""What stands in a table of answers and is no answer: codes, labels, further headers, sums."""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np

from polyabayes._support import checks
from polyabayes._support.output.frames import DataFrame
from polyabayes._support.output.tables import some
from polyabayes.data.conversion.frames import name_of
from polyabayes.data.conversion.numbers import number_of
from polyabayes.data.conversion.table import are_merged, divider, is_further_header
from polyabayes.data.names import CALLS, NAMES, plain, say, warn
from polyabayes.exceptions import argument

# Numbers by which surveys mark missing answers, if they follow a gap.
_NUMBERS = set(map(int, NAMES["no number"]))
# Codes before labels; those of Stata, perhaps before labels, are a mark by themselves.
_CODE = re.compile(r"[(\[]*([-+]?\d+)[\W_]+(?=\w)|(?<=^\.)[a-z](:.*)?$")
_REMARK = re.compile(r"\(.*?\)|, coded\b.*|(?<=NAP|NAV|IAP), .*|^volunteered:", re.IGNORECASE)
_NO_ANSWER = re.compile("|".join(NAMES["no answer"])).fullmatch
# Words by which a label is the opposite or a degree of another: Unknown, Not very sure.
_DEGREE = re.compile("|".join(NAMES["degree"]))
# Headers are among the first rows; more levels than so many are words, not answers.
_GAP, _FEW_ROWS, _MOST_HEADERS, _MOST_ANSWERS = 2, 10, 3, 50


def marks_by_column(missing: Any, columns: Iterable[Any]) -> dict[str, list[Any]]:
    """Marks of missing answers by the name of the column, from those of some columns or of all."""
    given = missing if isinstance(missing, Mapping) else dict.fromkeys(columns, missing)
    marks = {str(column): own for column, own in given.items() if own is not None}
    for own in marks.values():
        is_list = isinstance(own, Collection) and not checks.is_single(own)
        if odd := [x for x in own if not np.isscalar(x) and x is not None] if is_list else [own]:
            raise checks.wrong_type("missing", odd[0], say("no mark", odd[0]))
    if unknown := marks.keys() - set(map(str, columns)):
        raise checks.wrong("missing", missing, f"names {min(unknown)!r}, which is no column")
    # As numbers and texts of Python: calls in messages hold them.
    return {x: as_python(own) for x, own in marks.items() if len(own)}


def without_missing(
    frame: DataFrame, columns: Sequence[Any], missing: Any, *, may_lack: bool = False
) -> DataFrame:
    """The frame with values that mark missing answers removed from some of its columns.

    Numbers are equal by value; categories that are left out are no levels any more. One list may
    serve many tables, so some marks may occur nowhere. Unless the columns `may_lack` all marks,
    they are refused if none occurs, and so is a mark that differs from an answer only in case or
    type.
    """
    marks = marks_by_column(missing, columns)
    if "are_texts" in frame.attrs:  # Numbers of a file are texts.
        marks = {x: [y if y is None else name_of(y) for y in own] for x, own in marks.items()}
    marked, known = frame.copy(deep=False), {x: _levels_of(frame[x]) for x in columns if marks}
    for column, levels in known.items():
        values: Any = frame[column]
        own = [level for level in levels if level in marks.get(str(column), ())]
        if own and hasattr(values, "cat"):
            # pandas sorts those that it keeps if it removes some.
            marked[column] = values.cat.set_categories([x for x in levels if x not in own])
        elif own:
            whole = getattr(values.dtype, "kind", "") in "iu"
            marked[column] = (values.astype("Int64") if whole else values).mask(values.isin(own))
    held, given = set(chain(*known.values())), [*chain(*marks.values())]
    alike = {str(level).strip().casefold() for level in held}
    wrong = [x for x in given if x not in held and str(x).strip().casefold() in alike]
    wrong = wrong or given * held.isdisjoint(given)
    if wrong and not may_lack:
        raise checks.wrong("missing", wrong[0], say("no such answer", wrong[0]))
    return marked


def warn_of_answers(
    frame: DataFrame, items: Sequence[Any], missing: Any, call: str, *, has_counts: bool = False
) -> None:
    """Warn of further headers, marks of missing answers, several choices, and several spellings.

    Headers are rows that nobody else is like, unless the rows have counts. In a table of which
    nobody has said what is `missing`, blanks beside one answer may be answers; `call` is code of
    the call up to this argument. The calls have the frame's own code, if its attributes hold it.
    """
    code = frame.attrs.get("code", "frame")
    alone, told = further_headers(frame, items, has_counts=has_counts)
    if alone:
        warn(told)
        frame = frame.drop(index=alone)
    known = {item: _levels_of(frame[item]) for item in items}
    # Numbers that are marks of one item are marks of others, if they end their scales.
    given, own = marks_by_column(missing, items), {x: list[Any]() for x in items}
    for _ in range(2):
        shared = {number_of(str(x)) or x for x in chain(*given.values(), *own.values())}
        own = {x: _marks(known[x], shared, is_categorical=hasattr(frame[x], "cat")) for x in items}
    # Numbers of one digit are answers if items called alike have texts for missing answers.
    stems = {x: re.sub(r"\d+", "", str(x)) for x in items}
    worded = [x for x in items if any(number_of(str(y)) is None for y in known[x])]
    held = {x: (*own[x], *given.get(str(x), ())) for x in worded}
    said = {stems[x] for x in worded if any(number_of(str(y)) is None for y in held[x])}
    for x in (x for x in items if x not in worded and stems[x] in said):
        own[x] = [y for y in own[x] if not 0 <= (number_of(str(y)) or 0) < 10]
    for item, zero in _zeros({x: [y for y in known[x] if y not in own[x]] for x in items}).items():
        own[item] += [zero] * (zero not in [*frame[item].mode()])
    # pandas takes None and the like in a file for missing values.
    for x in (x for x in items if "call" in frame.attrs and frame[x].notna().all()):
        own[x] += [y for y in known[x] if y in NAMES["missing"] and y not in own[x]]
    marks = {mark: [x for x in items if mark in own[x]] for mark in chain(*own.values())}
    blank = [x for x in items if missing is None and len(known[x]) == 1 and frame[x].isna().any()]
    spellings: dict[Any, dict[str, str]] = {}
    for item, levels in known.items():
        if are_merged(frame[item].astype(object).where(frame[item].notna(), None).tolist()):
            warn(say("merged answers", item=item, code=code))
        if told := choices_of(frame, item, code):
            warn(told)
        texts = [x for x in levels if isinstance(x, str) and len(levels) <= _MOST_ANSWERS]
        first = {x.strip().casefold(): x for x in reversed(texts)}
        if spelt := {x: y for x in texts if (y := first[x.strip().casefold()]) != x}:
            spellings[item] = spelt
    if marks:
        told = ", ".join(f"{mark!r} of {some(where, 3)}" for mark, where in marks.items())
        named: Any = [*dict.fromkeys(chain(*given.values(), marks))]
        # A mark of one item may be an answer to another.
        others = ((x, mark) for x in items for mark in marks if mark not in own[x])
        if isinstance(missing, Mapping) or any(mark in known[x] for x, mark in others):
            named = {x: both for x in items if (both := [*given.get(str(x), ()), *own[x]])}
        warn(say("marks", told, argument("missing", named, call)))
    if len(blank) > 1:
        ways = argument("missing", [], call), ticked(frame, blank, code=code)
        warn(say("blanks", some(blank, 3), *ways))
    if spellings:
        warn(say("spellings", some([*spellings], 3), code, spellings))


def choices_of(frame: DataFrame, item: Any, code: str = "frame") -> str:
    """A sentence with the call that divides answers of several choices; empty for other answers."""
    # KoboToolbox and ODK write choices beside a column for each.
    of_choice, levels = re.compile(rf"{re.escape(str(item))}[/.:](.+)"), _levels_of(frame[item])
    beside = {x[1] for x in map(of_choice.fullmatch, map(str, frame.columns)) if x}
    is_beside = not beside.isdisjoint(" ".join(map(str, levels)).split())
    sep = divider(levels) or " " * (is_beside and all(isinstance(x, str) for x in levels))
    if not sep:
        return ""
    choices = {x.strip() for level in levels for x in str(level).split(sep)} - {""}
    # Marks of missing answers are no choices, and whoever has one has not answered.
    odd = sorted(x for x in choices if re.fullmatch(r"-\d+", x) or _is_no_answer(x))
    there = {str(x).removeprefix(str(item)).lstrip(" :/_.-") for x in frame.columns}
    told, split = CALLS["choices there" if choices <= {*there, *odd} else "choices"], ""
    if any(re.search(rf"\([^)]*{re.escape(sep)}", str(x)) for x in levels):
        # Signs within brackets divide nothing.
        split = f".str.replace({sep + '(?![^(]*[)])'!r}, ';', regex=True)"
    divided = f"{split}.str.get_dummies({(';' if split else sep)!r})"
    divided += say("marked choices", odd) * bool(odd)
    return told.format(item=item, sep=sep, code=code, divided=divided)


def ticked(frame: DataFrame, items: Sequence[Any], change: str = "", code: str = "frame") -> str:
    """Code of a table, changed, with ticks among choices as answers.

    Who ticks none has not answered where one choice is none, nor who leaves blank all other columns
    of answers with blanks.
    """
    ticks = f"{code}[{[*items]}].notna()"
    choices = (str(x).lower() for item in items for x in (item, *frame[item].dropna().unique()))
    ticks += f".where({ticks}.any(axis=1))" * any("none" in x for x in choices)
    held = {x: y.dropna().astype(str) for x, y in frame.items() if y.isna().any()}
    rest = [x for x, y in held.items() if x not in items and 1 < y.nunique() < len(y)]
    every = [*rest, *items] * bool(rest)
    have_left = every and frame[every].isna().all(axis=1).any()
    rows = f".dropna(subset={every}, how='all')" if have_left else ""
    return f"{code}{rows}{change}.assign(**{ticks})"


def further_headers(frame: DataFrame, items: Any, *, has_counts: bool) -> tuple[list[Any], str]:
    """Labels of rows that may be further headers, and what leaves them out, as names of items."""
    if not (alone := _headers(frame, items, has_counts=has_counts)):
        return [], ""
    names, question = dict[Any, str](), None
    for item, text in frame.loc[alone[-1]].items():
        question = question if str(item).startswith("Unnamed: ") else item
        if isinstance(text, str) and not is_further_header([text]):
            names[item] = f"{question}: {text}"
    told = f"{frame.attrs.get('code', 'frame')}.drop(index={alone})"
    told += f".rename(columns={names})" * any("Unnamed: " in str(x) for x in names)
    return alone, f"row {some(alone, 3)} may be a further header: without it, use {told}"


def _headers(frame: DataFrame, items: Sequence[Any], *, has_counts: bool) -> list[Any]:
    """Labels of the first rows that are headers, or of which no answer occurs again."""
    answers = frame[list(items)]
    once = np.stack([~answers[x].duplicated(keep=False) & answers[x].notna() for x in items], 1)
    first = answers.head(_MOST_HEADERS).where(once[:_MOST_HEADERS])
    are_headers = [any(is_further_header([x]) for x in own.dropna()) for _, own in first.iterrows()]
    if any(are_headers):
        return list(first.index[: are_headers.index(True) + 1])
    if has_counts or len(frame) < _FEW_ROWS or len(items) < 2:
        return []
    shown = answers.notna().to_numpy()
    alone = (once == shown).all(axis=1) & (shown.sum(axis=1) > 1)
    return list(first.index[alone[: len(first)]]) if alone.mean() < 0.5 else []


def _levels_of(values: Any) -> list[Any]:
    """Levels of an item, as numbers and texts of Python."""
    return as_python(values.cat.categories if hasattr(values, "cat") else values.dropna().unique())


def as_python(values: Iterable[Any]) -> list[Any]:
    """Scalars of numpy as those of Python."""
    return [getattr(value, "item", lambda value=value: value)() for value in values]


def _is_no_answer(label: str) -> bool:
    """Whether a label says that there is no answer, in each part, but for codes and remarks."""
    own = _CODE.sub("", label.strip())
    parts = re.split("[-/,;]| or ", _REMARK.sub("", own).strip() or own)
    are_parts = parts != [own] and all(_NO_ANSWER(plain(x) or x.strip()) for x in parts)
    bare = plain(_REMARK.sub("", own))
    return are_parts or any(map(_NO_ANSWER, (own.lower(), plain(own) or own, bare or own)))


def _zeros(known: Mapping[Any, list[Any]]) -> dict[Any, Any]:
    """0, as a number or text, of items from 0 to n, where more that are called alike begin at 1."""
    held = {x: {number_of(str(y)): y for y in levels} for x, levels in known.items()}
    ends = {x: len({0, *own}) for x, own in held.items()}
    scales = [x for x, n in ends.items() if {0, *held[x]} == {*range(n)} and n > 2]
    kinds = {x: (ends[x], re.sub(r"\d+", "", str(x))) for x in scales}
    size = Counter((0 in held[x], kinds[x]) for x in scales)
    odd = [x for x in scales if 0 in held[x] and size[True, kinds[x]] < size[False, kinds[x]]]
    return {x: held[x][0] for x in odd}


def _marks(known: list[Any], shared: Collection[Any], *, is_categorical: bool) -> list[Any]:
    """Levels of an item by which surveys mark missing answers, `shared` ones after any gap."""
    # A blank beside one answer is the other answer.
    labels = [x for x in known if isinstance(x, str) and (x.strip() or len(known) > 2)]
    texts = [*filter(_is_no_answer, labels)]
    beside = [x for x in labels if texts and plain(x) in NAMES["beside no answer"]]
    # Opposites and degrees of answers are answers.
    ends = tuple(x.strip().lower()[-2:] for x in texts + beside)
    alike = [x for x in labels if x.strip().lower().endswith(ends)]
    said = {x: plain(_DEGREE.sub("", _CODE.sub("", x.strip()).lower())) for x in alike}
    others = {said[x] for x in said if x not in texts + beside} - {""}
    texts, beside = ([x for x in own if said[x] not in others] for own in (texts, beside))
    texts += beside * bool(texts)
    # Labels of negative codes are marks, if one is and they are no scale around 0.
    if any(re.match(r"\W?-\d", str(x)) for x in (*texts, *shared)):
        coded = {int(m[1]): x for x in labels if x not in texts and (m := _CODE.match(x)) and m[1]}
        texts += [x for n, x in coded.items() if n < 0 and {-n for n in coded} != {*coded}]
    held: dict[Any, Any] = {number_of(x): x for x in labels if x not in texts}
    # Whoever makes numbers categories says that they are answers.
    held |= {x: x for x in known if type(x) in (int, float) and not is_categorical}
    numbers = sorted(x for x in held if x is not None and x % 1 == 0)
    if {-number for number in numbers} == set(numbers):
        return texts
    codes, last = [number for number in numbers if number < 0], None
    for number in numbers:
        # Surveys that mark by 7, 8 and 9 may begin with 6.
        is_first = number % 10 == 6 and bool({number + x for x in (1, 2, 3)} & {*held, *shared})
        gap = 1 if number in shared or (is_first and number + 3 in shared) else _GAP
        if (number in _NUMBERS or is_first) and last is not None and number > last + gap:
            codes.append(number)
        elif number >= 0:
            last = number
    # Marks end the scale, and an item has two answers at least.
    codes = [code for code in codes if code < 0 or code > (last or 0)]
    return texts + [held[code] for code in codes if len(codes) < len(known) - 1]
