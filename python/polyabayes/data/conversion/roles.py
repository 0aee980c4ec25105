"""Roles of the columns of a table, by their documented names or as the caller names them.

One rule for frames and files.

A table holds documents as texts or lists of tokens (a row per document), in long form (a row per
document and word) or in wide form (a row per document and a column per word).
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, fields
from itertools import chain
from typing import Any, Literal, NamedTuple

import numpy as np

from polyabayes._support import checks
from polyabayes._support.output.tables import some
from polyabayes.data.conversion import frames, numbers as _numbers, remedies
from polyabayes.data.conversion.table import Table, are_merged
from polyabayes.data.names import NAMED, NAMES, counts_nothing, headed, is_headed, plain, say, warn
from polyabayes.exceptions import InvalidArgumentError, argument

# Largest number of levels of a column of whole numbers that is taken as an axis without asking, and
# largest share of distinct values in a column of a long table; rows in which lists among words are
# looked for.
_FEW_LEVELS, _FEW_DISTINCT, _ROWS_LOOKED_AT = 2, 2 / 3, 1_000
# Why a column may hold counts: by its name, or by the rows.
_WHY = "its name is one of counts", "no two rows have the same levels"


@dataclass(frozen=True)
class NamedColumns:
    """Columns that the caller has named.

    `text` holds texts or lists of tokens. `document`, `word` and `count` are columns of a long
    table. `metadata` are properties of the documents of a table of counts. With the `layout`
    "wide", all further columns count words, whatever their names.
    """

    text: str | None = None
    ids: str | None = None
    document: str | None = None
    word: str | None = None
    count: str | None = None
    exposure: str | None = None
    metadata: Sequence[str] = ()
    layout: Literal["auto", "wide"] = "auto"

    def __post_init__(self) -> None:
        checks.choice("layout", self.layout, ("auto", "wide"))
        if isinstance(self.metadata, str):
            object.__setattr__(self, "metadata", [self.metadata])
        role_of: dict[str, str] = {}
        for field in fields(self)[:-2]:
            name = getattr(self, field.name)
            other = field.name if name is None else role_of.setdefault(str(name), field.name)
            if other != field.name:
                both = argument(field.name, name), argument(other, name)
                raise InvalidArgumentError(say("two roles", *both))

    @classmethod
    def taken_from(cls, options: dict[str, Any]) -> "NamedColumns":
        """The columns that options name; other options are left."""
        names = [field.name for field in fields(cls) if field.name in options]
        return cls(**{name: options.pop(name) for name in names})


class Roles(NamedTuple):
    """Roles of the columns of a table.

    `layout` is "texts", "long" or "wide". `columns` are, by layout: the column of texts; the
    columns of documents, words and, unless each row counts once, counts; the columns of all words.
    `metadata` are the other columns.
    """

    layout: Literal["texts", "long", "wide"]
    ids: str | None
    columns: list[str]
    metadata: list[str]


def roles_of(table: Table, named: NamedColumns) -> Roles:
    """Roles of the columns of a table, as named, else by their documented names.

    Any other column must be a number, which counts a word; else the table is refused.
    """
    table.given = {**table.given, **{x.name: getattr(named, x.name) for x in fields(NamedColumns)}}
    for field in fields(NamedColumns)[:-1]:
        given = getattr(named, field.name)
        for name in given if field.name == "metadata" else [given]:
            if name is not None and name not in table.names:
                few = some(sorted(table.names, key=lambda x: str(name) not in x), 8)
                told = say("no column", table.options(**{field.name: name}), table.title, name, few)
                raise InvalidArgumentError(told, argument=field.name, value=name)
    _refuse_headers(table)
    names = [name for name in table.names if name != named.exposure]
    if named.layout == "wide":
        return _wide_roles(table, named, names, named.ids)
    others = [name for name in names if name != named.text]
    ids, own = named.ids or headed(others, NAMES["document"]), None
    if names[:1] and names[0].lower() in NAMES["row"] and names[0] != named.ids:
        # R's and pandas' own names of rows, unless there are names of documents.
        is_alone, own = ids is None and named.document is None, names[0]
        ids, names = (names[0], names) if is_alone else (ids, names[1:])
    rest = [name for name in names if name not in named.metadata and name != named.ids]
    if (text := named.text) is None:
        lower = {name.lower() for name in rest if table.kind(name) != "text"}
        if lower.issuperset({"types", "tokens"}) and len(lower) == len(rest):
            raise InvalidArgumentError(say("summary", table.title, table.options(layout="wide")))
        if long := _long_columns(table, named, rest):
            _warn_of_lists(table, long[1])
            if len(long) == 2:
                free = [x for x in rest if not (x in long or counts_nothing(x))]
                _warn_of_counts(table, free, long, "count")
            return Roles("long", None, long, [name for name in names if name not in long])
        text = _text_column(table, rest)
    if text is not None:
        ids = None if ids not in (None, named.ids) and None in table.values(ids) else ids
        kept = [name for name in names if name not in (ids, text) or name in named.metadata]
        return Roles("texts", ids, [text], kept)
    # Words of a wide table may have the name of a role; names of documents come first.
    is_named = ids is not None and ([ids] == names[:1] or table.are_labels(ids))
    return _wide_roles(table, named, names, named.ids or (ids if is_named else own))


def _refuse_headers(table: Table) -> None:
    """Refuse a row of the names of the columns, of which pandas calls one x.1, above counts."""
    first, *others = [x for x in table.names if x.lower() not in NAMES["row"]] or [""]
    found = enumerate(table.values(first) if others and _numbers.number_of(first) is None else ())
    same = [k for k, x in found if isinstance(x, str) and x == first]
    held = {x: table.values(x) for x in others if same}
    same = [k for k in same if all(x.startswith(str(held[x][k] or "")) for x in others)]
    # Lists of words in lines have no header.
    is_named = any(table.given.get(x) for x in ("document", "ids", "text"))
    if same and (is_named or {*map(_numbers.number_of, map(str, chain(*held.values())))} != {None}):
        code = table.call(f".loc[lambda rows: rows[{first!r}] != {first!r}]")
        raise InvalidArgumentError(say("names again", table.place(same[0]), code))


def _wide_roles(table: Table, named: NamedColumns, names: list[str], ids: str | None) -> Roles:
    words = [name for name in names if name != ids and name not in named.metadata]
    labels, is_wide = [name for name in words if table.are_labels(name)], named.layout == "wide"
    if not is_wide and words and (words[0] in labels or NAMED.fullmatch(words[0])):
        # Names of several kinds may be numbers.
        labels = [name for name in words if name in labels or NAMED.fullmatch(name)]
    pairs = "" if is_wide else remedies.paired(table, ids)
    if labels or not words or pairs:
        told = f"{f'{labels[0]!r} holds no' if labels else 'no column holds'} counts. "
        told = pairs or told + remedies.remedy(table, names, labels or names, ids)
        raise InvalidArgumentError(f"{table.title} has the columns {some(table.names, 8)}; {told}")
    if is_headed(table.row_label, "words in rows") and ids is None:
        warn(say("rows", table.title, table.row_label, table.call(".T")))
    if not is_wide and table.n_rows > 1:
        _warn_of_names(table, words, ids)
        if table.row_names is None and named.ids is None:
            left_out = (*named.metadata, *(x for x in names[:1] if x.lower() in NAMES["row"]))
            _warn_of_triplets(table, [name for name in names if name not in left_out])
    if merged := [name for name in named.metadata if are_merged(table.values(name))]:
        warn(say("merged", some(merged), table.title))
    return Roles("wide", ids, words, list(named.metadata))


def _long_columns(table: Table, named: NamedColumns, names: list[str]) -> list[str]:
    """Columns of documents, words and, if any, counts; empty if the table is not long."""
    document = named.document or headed(names, NAMES["document"])
    word = named.word or headed(names, NAMES["word"])
    count = named.count or table.count_among([x for x in names if x not in (document, word)])
    found = [name for name in (document, word, count) if name is not None]
    if None not in (named.document, named.word) or (named.count and None not in (document, word)):
        return found
    if (named.document, named.word, named.count) != (None, None, None):
        told = table.options("document", "word")
        raise InvalidArgumentError(say("no roles", table.title, some(names, 8), told))
    # A wide table may have words with these names; it has further columns of counts.
    if None in (document, word) or (len(names) > len(found) and table.kind(found[1]) == "number"):
        return []
    if count is None:
        told = f"{some(names, 8)}: name the counts by {table.options('count')}; if each row is one "
        raise InvalidArgumentError(f"{told}token, {table.options(document=document, word=word)}")
    return found


def _warn_of_lists(table: Table, word: str) -> None:
    """Warn of words most of which are lists, whose items mostly begin others.

    Pairs and paths have as many parts each. Tokens of CoNLL-U may be several words, which follow.
    """
    places = table.values("token_id") if "token_id" in table.names else ()
    if ranges := [x for x in places if re.fullmatch(r"\d+-\d+", str(x))]:
        warn(say("ranges", ranges[0], table.call(say("no ranges"))))
    words = [x.strip() for x in table.values(word)[:_ROWS_LOOKED_AT] if isinstance(x, str)]
    for sep in (r"\s*;\s*", r"\s*\|+\s*", r"\s*,\s*", r"\s+/\s+", r"\s*\n\s*"):
        lists = [re.split(sep, x) for x in words]
        first, rest = {own[0] for own in lists}, {*chain(*(own[1:] for own in lists))}
        sizes, is_shared = [*map(len, lists)], 2 * len(first & rest) > len(rest)
        if is_shared and 2 * sizes.count(1) < len(sizes) and len({*sizes}) > 1:
            warn(say("word lists", word, table.title, table.call(say("divided", word, sep))))


def _text_column(table: Table, names: list[str]) -> str | None:
    """The column of texts or of lists of tokens; None in a table of counts."""
    found = [x for x in names if x.lower() in NAMES["text"] and table.kind(x) != "number"]
    if len(found) > 1:
        raise InvalidArgumentError(f"{some(found)}: name texts by {table.options(text=found[0])}")
    return found[0] if found else None


def _warn_of_names(table: Table, words: list[str], ids: str | None) -> None:
    """Warn of columns of a wide table that look like names or properties, but are read as counts.

    Their headers say so, and their values all differ or none is 0; or those of the first column
    differ and are far larger than all others.
    """
    first = words[:1] if table.row_names is None and ids is None and len(words) > 1 else []
    units = [x for x in first if is_headed(x, "units") or is_headed(x, "times")]
    players = [x for x in table.names if is_headed(x, "players")]
    games = [x for x in words if players and is_headed(x, "games")]
    told = [x for x in words if (counts_nothing(x) or x in games) and x not in units]
    told = [x for x in told if table.n_rows > _FEW_LEVELS or x.lower() in NAMES["row"]]
    columns = {name: table.counts([name]).toarray().ravel() for name in units + told}
    odd = [x for x, held in columns.items() if held.all() or len({*held}) == len(held)]
    # Truth values beside counts are properties.
    flags = [x for x in words if {*map(type, table.values(x))} == {bool}]
    odd += flags * (len(flags) < len(words))
    # One property seldom stands alone.
    odd += [x for x in told if x not in odd and not {*told}.isdisjoint(odd)]
    if first and first[0] not in odd and table.are_far_larger(first[0], words):
        odd = first + odd
    given, is_id = table.given.get("metadata", ()), odd[:1] == first != flags[:1]
    odd += [x for x in table.numbers_beside({*given, *odd[is_id:]}, ids) if x not in odd]
    if odd:
        own = odd[0] if is_id and (units or not counts_nothing(odd[0])) else None
        named = [*given, *(name for name in odd if name != own)]
        both = table.options(ids=own, metadata=named or None), table.options(ids=ids, layout="wide")
        warn(say("names read", table.title, some(odd), *both))


def _warn_of_triplets(table: Table, names: Sequence[str]) -> None:
    """Warn of columns read as counts that look like triplets of document, word and count.

    Their pairs differ, each part in several rows. Those that are called i and j are refused.
    """
    if table.has_headers and len(names) == 3 <= table.n_rows:
        are_named = " ".join(names[:2]).lower() in NAMES["triplets"]
        most = table.n_rows * (1 if are_named else _FEW_DISTINCT)
        is_few = [len(set(table.values(name))) <= most for name in names[:2]]
        are_counts = names[2].lower() in NAMES["count"] or table.numbers_of(names[2]).count(0) == 0
        are_counts = are_counts and table.holds_whole_numbers(names[2])
        if all(is_few) and table.is_distinct(*names[:2]) and are_counts:
            options = table.options(**dict(zip(("document", "word", "count"), names, strict=True)))
            told = say("triplets", some(names), table.title, options, table.options(layout="wide"))
            if are_named:
                raise InvalidArgumentError(told)
            warn(f"{told}; they are read as rows of counts")


def count_column(table: Table, axes: Sequence[str] | None, counts: str | None) -> str | None:
    """The column of counts of a table of factors, by its name; None if each row counts once.

    A warning is given if an unused column may hold the counts; without axes, one of many values
    beside labels is refused, because all rows have distinct levels. So are R's and pandas' own
    names of rows, and measured numbers.
    """
    packed = table.names[0].split(",") if table.names[:1] else [""]
    if axes is None and packed[-1].endswith("\\TIME_PERIOD"):
        code = table.as_frame.replace(r"sep='\t'", r"sep='[,\t]', engine='python'")
        raise InvalidArgumentError(say("eurostat", table.names[0], code, packed))
    if axes is None and table.names[:1] and table.names[0].lower() in NAMES["row"]:
        factors = [name for name in table.names[1:] if name.lower() not in NAMES["count"]]
        code = say("named rows", f"{table.as_frame}{table.index_code(table.names[:1])}")
        code *= [*filter(table.are_labels, table.names)] == table.names[:1]
        raise InvalidArgumentError(say("numbered", table.names[0], argument("axes", factors), code))
    ids = {x for x in table.names if counts_nothing(x) or plain(x) in NAMES["respondent"]}
    free = [x for x in table.names if x not in (axes or ()) and x not in ids]
    found = headed(free, NAMES["count"]) if len(table.names) > 1 else None
    if counts is not None or found == table.count_among(free, NAMES["may count"]) is not None:
        return _without_measured(table, axes, found if counts is None else counts)
    if table.n_rows > 1 and axes is not None and set(axes) <= set(table.names):
        _warn_of_counts(table, free, axes, "counts")
    if table.n_rows < 2 or axes is not None:
        return None
    wholes = [name for name in free if len({*_whole_numbers(table, name)}) > _FEW_LEVELS]
    weights = headed(wholes, NAMES["weights"])
    others = [name for name in table.names if name not in wholes[-1:]]
    if weights or (any(map(table.are_labels, others)) and wholes and table.is_distinct(*others)):
        column = weights or wholes[-1]
        levels = {x: len(set(map(str, table.values(x)))) for x in table.names}
        shares = [x for x in levels if any(number % 1 for number in table.numbers_of(x))]
        # Ids are levels if they recur, twice on average or more; measures are none.
        most = {x: table.n_rows / (1 + bool(NAMED.fullmatch(x))) for x in levels if x not in shares}
        factors = [x for x in most if 1 < levels[x] < most[x] and not is_headed(x, "measures")]
        # Numbers that recur by chance are no axes without labels.
        factors = factors if any(map(table.are_labels, factors)) else []
        given = argument("counts", table.keys.get(column, column))
        axes = [table.keys.get(x, x) for x in most if x != column and levels[x] > 1]
        given += f" and {argument('axes', axes)}" * bool(shares)
        parts = column, _WHY[weights is None], given, argument("axes", factors or table.names)
        crossed = [_crossed(table, wholes)] * (1 < len(wholes) < len(table.names))
        ways = [say("may hold counts", *parts), *crossed]
        raise InvalidArgumentError("; ".join(ways[:: -1 if _are_levels(wholes) else 1]))
    return _without_measured(table, axes, None)


def _without_measured(table: Table, axes: Any, counts: str | None) -> str | None:
    """The column of counts; shares and measured numbers would be axes that nobody has named."""
    held = {x: table.numbers_of(x) for x in table.names if axes is None and x != counts}
    if odd := [x for x in held if plain(x) in NAMES["shares"] or any(n % 1 for n in held[x])]:
        rest = [x for x in held if x not in odd and (counts or not table.is_distinct(x))]
        named = argument("axes", [table.keys.get(x, x) for x in rest or held])
        raise InvalidArgumentError(say("measured", some(odd), named))
    return counts


def _crossed(table: Table, wholes: Sequence[str]) -> str:
    """The call for columns of counts of the levels of one factor."""
    labels = [table.keys.get(x, x) for x in table.names if x not in wholes]
    return say("cross", table.as_frame, labels)


def _are_levels(names: Sequence[str]) -> bool:
    """Whether names differ in their numbers only, as years, or are those of sexes or months."""
    stems = {re.sub(r"\d+", "", x).lower() for x in names}
    return len(names) > 1 and (len(stems) == 1 or stems <= {*NAMES["levels"], *NAMES["totals"]})


def _whole_numbers(table: Table, name: str) -> list[float]:
    """The numbers of a column, all of which are whole; empty if it holds others, or years."""
    held = table.numbers_of(name)
    return [] if any(x < 0 or x % 1 for x in held) or all(map(frames.is_year, held)) else held


def _warn_of_counts(table: Table, names: list[str], axes: Sequence[str], role: str) -> None:
    """Warn of a column that may hold the counts of the rows of a long table, or of axes.

    Its name says so. Or no two rows have the same levels on the axes, or the same levels of all
    other columns, while independent columns would in a pair of rows or more: columns whose levels
    all differ are left out, as they name the rows. `role` is the argument that names the counts.
    """
    wholes = [x for x in names if {*_whole_numbers(table, x)} - {0, 1}]
    headers = NAMES["may count"] + NAMES["weights"] * (role == "counts")
    ended = [x for x in wholes if re.search("|".join(NAMES["ends of counts"]), x)]
    found = named = [x for x in (headed(wholes, headers), *ended) if x][:1]
    # Units are counted in the plural; a code has one value at each level of an axis.
    bare = [x for x in wholes if not any(is_headed(f"{x}s", y) for y in NAMES["no amounts"])]
    if bare and not named:
        others = [x for x in table.names if x not in wholes and not table.is_distinct(x)]
        held = (np.unique([*map(str, table.values(x))], return_counts=True)[1] for x in others)
        are_cells = table.n_rows**2 * np.prod([np.sum((n / table.n_rows) ** 2) for n in held]) >= 2
        if table.is_distinct(*axes) or (are_cells and table.is_distinct(*others)):
            bare = [x for x in bare if not any(table.depends(x, y) for y in axes)] or bare
            found = table.totals_among(bare) or bare * (role == "counts" or len(bare) == 1)
    if found:
        given = argument(role, table.keys.get(found[0], found[0]))
        given += f" (or one of {some(found[1:], 8)})" * bool(found[1:])
        told = say("left out counts", found[0], _WHY[not named], given)
        warn(told + f"; {_crossed(table, wholes)}" * _are_levels(wholes))
