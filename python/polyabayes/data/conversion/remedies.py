"""Calls that read a table which is refused, by how it looks."""

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator
from itertools import chain
from typing import Any, TypeAlias

import numpy as np

from polyabayes._support.output.tables import some
from polyabayes.data.conversion.numbers import number_of
from polyabayes.data.conversion.table import DATE, PLAIN_KINDS, ROUNDED, Table
from polyabayes.data.names import NAMED, NAMES, OF_KINDS, counts_nothing, headed, is_headed, say

Name: TypeAlias = str | None
Names: TypeAlias = list[str]

# Answers to a question have so many levels, and one more for so many rows. Texts have so many words
# on average, unlike answers.
_FEW_LEVELS, _WORDS = 10, 4


def remedy(table: Table, names: Names, labels: Names, ids: Name) -> str:
    """Options that read a table, by how it looks: they are for the caller, and never taken."""
    names = [name for name in names if name.lower() not in NAMES["row"]] or names
    numbers = [name for name in names if name not in labels and name != ids]
    shares, cells = table.presence(labels), _cells(table, names, ids)
    others = [name for name in labels if table.kind(name) != "cells" and name != ids]
    told = table.under_units or cells * (not others) or _marks(table, labels, numbers, ids)
    told = told or _kinds(table, names, labels, ids)
    told = told or _topics(table, labels, numbers) or say("shares", shares) * bool(shares)
    told = told or "; ".join([*_documents(table, names, labels, numbers, ids), cells]).strip("; ")
    if len(others) > 1 and not re.search("document|word|a text", told):
        told = f"{told}; {say('events', table.options('document', 'word', 'count'))}".strip("; ")
    told = _headless(table, names, labels, told) or told
    return told[:1].upper() + told[1:]


def paired(table: Table, ids: Name) -> str:
    """Code for words beside their counts in numbered columns, as Product 1, Quantity 1."""
    stems = Counter(re.sub(r"\.?\d+$", "", name) for name in table.names)
    words, counts = ([x for x in stems if is_headed(x, kind)] for kind in ("items", "amounts"))
    names = [x for x in words + counts if stems[x] > 1]
    if len(names) != 2 or stems[names[0]] != stems[names[1]] or names[1] not in counts:
        return ""
    rest = [x for x in table.names if not x.startswith((*names,))]
    ids, code = ids or table.own_name(rest), table.as_frame
    code += ".reset_index(names='document')" * (ids not in rest) + ".convert_dtypes()"
    if f"{names[0]}.1" in table.names:  # pandas calls a second one x.1.
        code += f".rename(columns={ {x: f'{x}.0' for x in names} })"
        names = [f"{x}." for x in names]
    return say("pairs", code=code, names=names, ids=ids, word=names[0], count=names[1])


def _headless(table: Table, names: Names, labels: Names, told_of_header: str) -> str:
    """Names of columns, if the first line of a file looks like data, and what reads it if not."""
    are_data = any(number_of(name) is not None or DATE.fullmatch(name) for name in names)
    is_header = counts_nothing(names[0]) or is_headed(names[0], "words in rows")
    if is_header or not are_data or not table.may_lack_header:
        return ""
    told = table.options(columns=columns_of(len(table.names), len(labels)))
    if len(labels) == 1 and table.names_words(names[0]):
        told += f", {table.options(transpose=True)}"
    elif labels:
        told += f" (and {table.options(transpose=True)} if its rows are words)" * (len(labels) == 1)
        told += f"; if it is one, {told_of_header}"
    return f"If its first line is no header, use {told}"


def _cells(table: Table, names: Names, ids: Name) -> str:
    """Code for lists of other than words, or counts by word, in the cells of a column."""
    code = [table.call_of_cells(name, ids) for name in names if table.kind(name) == "cells"]
    return f"with lists of other than words, or counts by word, use {code[0]}" if code else ""


def _marks(table: Table, labels: Names, numbers: Names, ids: Name) -> str:
    """Code for columns of marks of what is there, beside one of names and some of no counts."""
    marks = table.marks_of_presence([name for name in labels if name != ids])
    named = [x for x in dict.fromkeys([ids, *labels]) if x is not None and x not in marks]
    are_counts = any(table.holds_whole_numbers(x) and not counts_nothing(x) for x in numbers)
    if are_counts or named[1:] or not (any(marks.values()) and all(map(table.is_distinct, named))):
        return ""
    code = table.as_frame + table.index_code(named) + f"{list(marks)}".join("[]") * bool(numbers)
    code += f".isin({sorted(set().union(*marks.values()))})"
    code += ".T" * any(map(table.names_words, named))
    return f"with marks of what is there, use polyabayes.Corpus({code})"


def _kinds(table: Table, names: Names, labels: Names, ids: Name) -> str:
    """Code for one of several kinds of numbers of the same samples, as counts and intensities."""
    found: dict[str, dict[str, str]] = defaultdict(dict)
    for kind in filter(None, map(OF_KINDS.search, names)):
        found[kind[0]][kind.string.replace(kind[0], "")] = kind.string
    found = {kind: own for kind, own in found.items() if len(own) > 1}
    samples = set.intersection(*map(set, found.values())) if found else set()
    if len(found) < 2 or len(samples) < 2:
        return ""
    counts = found[min(found, key=lambda kind: not re.search("(?i)count|reads", kind))]
    code = table.index_code([ids or next(iter(_row_names(table, names, labels)), None)])
    code = f"{table.as_frame}{code}[{[counts[x] for x in counts if x in samples]}]"
    return say("kinds of numbers", some([*found], len(found)), code)


def _topics(table: Table, labels: Names, numbers: Names) -> str:
    """Code for topics with words in rows: numbers below 1 whose columns sum to one."""
    held = [table.numbers_of(name) for name in numbers if not counts_nothing(name)]
    are_below = max(chain(*held), default=2) < 1 and table.is_distinct(*labels)
    if not (are_below and np.allclose([*map(sum, held)], 1, atol=ROUNDED)):
        return ""
    return say("topics", f"{table.as_frame}{table.index_code(labels)}.T")


def _documents(table: Table, names: Names, labels: Names, numbers: Names, ids: Name) -> Names:
    """Options of documents in rows, of their words in rows, and code for answers in columns."""
    # Beside a property called Year, year is a word.
    twins = [x for x in numbers if x.islower() and x.title() in names]
    others = [x for x in names if x not in (ids, *twins) and (x in labels or counts_nothing(x))]
    flags = [x for x in numbers if {str(y).lower() for y in table.values(x)} <= {*NAMES["truth"]}]
    others += flags * (len(flags) < len(numbers))
    whole = [x for x in numbers if x not in others and table.holds_whole_numbers(x)]
    dated = flags + [x for x in labels if DATE.fullmatch(str(table.values(x)[0]))]
    constant = {x for x in names if table.n_distinct(x) == 1 < min(table.n_rows, len(names) - 1)}
    # Words may stand under the header of counts, as in tables that pandas has melted.
    words = [x for x in labels if is_headed(x, "word") and not table.is_distinct(x)]
    word = headed(names, NAMES["word"]) or next(iter(words), headed(labels, NAMES["count"]))
    count = table.count_among([x for x in names if x != word], NAMES["may count"])
    left_out = {word, *dated, *constant, *(x for x in names if not any(table.values(x)))}
    left_out |= {count, *others} - {*labels, *(x for x in names if is_headed(x, "units"))}
    # Beside families and genera, an order is a rank of a taxon.
    ranks = {x for x in names if x.lower() in NAMES["ranks"]}
    document = _document(table, names, labels, left_out | (ranks if len(ranks) > 2 else set()))
    rates = [x for x in numbers if x not in (*whole, *others) and table.numbers_of(x)]
    # Estimates of counts have fractions, in all columns or in some that are numbered alike.
    stems = [{re.sub(r"[\W_]*\d+$", "", x) for x in own} for own in (whole, rates)]
    are_alike = (not whole or stems[0] & stems[1]) and 2 * len(whole + rates) > len(names)
    if are_alike and max(chain([0], *map(table.numbers_of, rates))) > 1:
        whole, rates = whole + rates, []
    if word and count not in whole and (told := _topics_in_rows(table, document, word, rates)):
        return [told]
    # Ids differ wherever they are known.
    keys = [x for x in labels if table.n_distinct(x) > table.n_rows - table.values(x).count(None)]
    terms = [x for x in names if x not in (document, count, *constant, *dated, *keys)] or names
    # A column with one value in each document is a property of the document, and has no words.
    differ = [x for x in terms if table.n_distinct(x, document) > table.n_distinct(document)]
    if not (all(map(table.is_distinct, differ)) and any(is_headed(x, "items") for x in terms)):
        terms = differ or terms
    # Long tables have one column of counts.
    term, is_long = _term(table, terms, word), word in labels or not table.is_distinct(document)
    is_long &= term != document and (term not in whole or table.are_codes(term, document))
    is_named = count in whole or document not in whole or is_headed(document, "units")
    is_long &= len(whole) < 3 or is_named
    counted, may_count = _counted(table, names, (document, term, count), whole * is_long)
    # Words that each occur once are names of rows.
    is_long &= bool(word or counted) or not table.is_distinct(term)
    answers = _answers(table, labels, dated)
    are_roles = word in labels or any(is_headed(x, y) for x in answers for y in ("units", "items"))
    axes = [x for x in names if x not in (ids, counted)] if counted in whole else answers
    counts = f", counts={table.keys.get(counted, counted)!r}" * (counted in whole)
    survey = say("answers", f"{table.as_frame}, axes={axes}{counts}")
    is_survey = len(answers) > 1 + is_long and not are_roles and {*whole} <= {count}
    found = _lists(table, names) if labels == names and table.as_lists else []
    melted = [table.melted] if table.codes else []
    bodies = [x for x in labels if x not in (*answers, *dated, *constant)]
    prose = [x for x in labels if table.kind(x) == "text" and is_headed(x, "long texts")]
    # Beside many numbers, names of several words are no texts.
    own_texts = bodies if 2 * len(whole + rates) <= len(names) else prose
    texts = [x for x in own_texts if table.kind(x) in ("text", "tokens")]
    rows = _row_names(table, names, labels) if ids is None and table.row_names is None else []
    own = next(iter([x for x in rows if x not in (*texts, *dated)] or rows), None)
    is_told = is_long and (count in whole or any(None in table.values(x) for x in prose))
    if prose and not (is_survey or is_told) and 2 * len(whole) <= len(names):
        return [*_texts(table, prose, next(filter(NAMED.fullmatch, rows), own))]
    if is_survey:
        return [survey, *melted, *_texts(table, texts, None if own in texts else own)]
    known = {*others, *rates, *table.given.get("metadata", ())} - {own}
    # Lists of numbers, one of which may be a number alone, are no counts.
    held = ((x, table.values(x)) for x in names if x != own)
    known |= {x for x, cells in held if not any(cells) or any(";" in str(y) for y in cells)}
    beside = table.numbers_beside(known, own or ids)
    metadata = [x for x in names if x in known or x in beside] or None
    given, whole = {"ids": own, "metadata": metadata}, [x for x in whole if x not in beside]
    change = table.completion(whole, metadata or ())
    turned = _turned(table, labels, given, ids, change)
    are_words = table.names_words(names[0]) and table.is_distinct(names[0])
    if whole and None in (word, count) and are_words:
        return [f"If its rows are words, use {turned}"]
    if is_long:
        options = table.options(document=document, word=term, count=counted)
        one = say("one counts", some(may_count, 8)) * bool(may_count)
        told = f" ({one}{'without count, ' * bool(counted or may_count)}each row counts once)"
        found.append(f"with a row for each word of a document, use {options}{told * (not count)}")
    are_texts = not (numbers or found) and isinstance(table.values(labels[0])[0], str)
    if word not in labels and (texts or are_texts):
        found += _texts(table, texts or bodies or labels, None if own in texts else own)
    found += melted
    if not {*names} <= {own, ids, *(metadata or ())} and (len(whole) > 1 + is_told or not found):
        wide = table.call(change, **given) if change else table.options(**given)
        wide = table.kept_back(**given) or f"use {wide}"
        among = f" (if {some(beside, len(beside))} count words, leave those out)" * bool(beside)
        # Rows of long tables that are added up are not those of one word.
        are_rows = not (is_long and (words or ".groupby(" in turned))
        told = f"; if its rows are words, {turned}" * are_rows
        found.append(f"with counts in each row, {wide}{among}{told}")
    return found + [survey] * (len(answers) > 1 and not are_roles)


def _document(table: Table, names: Names, labels: Names, left_out: Collection[Name]) -> str:
    """The column that is taken for that of documents."""
    names, labels = ([x for x in y if table.kind(x) in PLAIN_KINDS] or y for y in (names, labels))
    units = [x for x in names if is_headed(x, "units")]
    document = next((x for x in (*units, names[0], *labels) if x not in left_out), names[0])
    repeated = [x for x in (*units, *labels) if x not in left_out and not table.is_distinct(x)]
    # A number in each row, as of orders, names no document: labels that repeat do.
    return repeated[0] if document in units and len({*repeated}) > 1 else document


def _term(table: Table, names: Names, word: Name) -> str:
    """The column that is taken for that of words; tokens of shops are keys of items."""
    # Names of items come before their ids and numbers.
    items = [x for x in names if is_headed(x, "items")]
    own = sorted(items, key=lambda x: (table.kind(x) == "number", x.lower()[-2:] == "id"))
    named = own if word is None or word.lower() == "token" else [word]
    plain = [x for x in names if table.kind(x) != "number" and not is_headed(x, "units")]
    kinds = [x for end in NAMES["ends of words"] for x in plain if x.lower().endswith(end)]
    number = [x for x in named[:1] if table.kind(x) == "number"]
    n_items = {x: table.n_distinct(x, *number) for x in number and kinds}
    twins = [x for x, n in n_items.items() if n == table.n_distinct(x) == table.n_distinct(*number)]
    return [*twins, *named, *filter(None, [word]), *kinds, *plain, *names][0]


def _counted(table: Table, names: Names, roles: Any, whole: Names) -> tuple[Name, Names]:
    """The column of counts, called so or the sum of others, and else those that may hold counts."""
    alone = [x for x in whole if x not in roles] * (roles[-1] is None)
    alone = [x for x in alone if not any(is_headed(f"{x}s", y) for y in NAMES["no amounts"])]
    # Rows of single tokens repeat.
    may_count = alone * table.is_distinct(*{*names}.difference(alone))
    named = [x for x in alone if is_headed(x, "amounts")]
    sure = named if len(named) == 1 else table.totals_among(may_count)
    # One number beside each pair of a document and a word is its count.
    sure = sure or may_count * (len(may_count) == 1 and table.is_distinct(*roles[:2]))
    return next(iter(sure), roles[-1]), [] if sure else named or may_count


def _answers(table: Table, labels: Names, dated: Names) -> Names:
    """Columns of labels with a few levels, as answers to a question have."""
    levels = {x: len(set(table.values(x))) for x in labels if table.kind(x) in PLAIN_KINDS}
    most = min(table.n_rows - 1, _FEW_LEVELS + table.n_rows // _FEW_LEVELS)
    found = [x for x in levels if 1 < levels[x] <= most and x not in dated]
    held = {x: [*filter(None, table.values(x))] for x in found if table.kind(x) == "text"}
    # Texts of several words, of which few recur, are no answers.
    prose = [x for x, own in held.items() if " ".join(own).count(" ") >= _WORDS * len(own)]
    return [x for x in found if x not in prose or 4 * len({*held[x]}) < 3 * len(held[x])]


def _row_names(table: Table, names: Names, labels: Names) -> Names:
    """Columns of different labels, or of numbers under such headers; errors name no rows."""
    held = {x: table.values(x) for x in names if x in labels or NAMED.fullmatch(x)}
    found = [x for x, own in held.items() if None not in own and str(own[0])[:1] != "±"]
    return [*filter(table.is_distinct, found)]


def _topics_in_rows(table: Table, document: str, word: str, rates: Names) -> str:
    """Code for topics with a row for each topic and word: a pivot has no gaps."""
    n_topics, n_words = (len({*map(str, table.values(x))}) for x in (document, word))
    if not rates or table.n_rows < n_topics * n_words or not table.is_distinct(document, word):
        return ""
    code = f"{table.as_frame}.pivot(index={document!r}, columns={word!r}, values={rates[0]!r})"
    return say("long topics", code)


def _turned(table: Table, labels: Names, given: dict[str, Any], ids: Name, change: str) -> str:
    """Options or code for words in rows that a column names, beside columns that count nothing."""
    plain = [x for x in labels if x.lower() not in NAMES["lineages"]]
    terms = [x for x in plain if table.is_distinct(x) and table.are_labels(x)]
    rows: Any = given["ids"] or ids
    if rows not in (None, *terms, table.given.get("ids")) and terms and not table.are_labels(rows):
        # Words have names, and documents may be numbered.
        rest = [x for x in given["metadata"] or () if x != terms[0]]
        given, rows = {"ids": terms[0], "metadata": [rows, *rest]}, terms[0]
    code = table.as_frame
    if code.startswith("pandas.") and rows is not None and not (table.written or change):
        return table.options(**given, transpose=True)
    labels = ([rows] if rows is not None else labels) * (table.row_names is None)
    places = [x for x in given["metadata"] or () if x in labels or table.holds_whole_numbers(x)]
    places = [x for x in table.names if x in (*labels, *places)]
    # Names that recur are told apart by what stands beside them, as places of a chromosome.
    if labels and not table.is_distinct(*labels) and table.is_distinct(*places):
        labels = places
    left_out = [name for name in given["metadata"] or () if name not in labels]
    code += change + f".drop(columns={left_out})" * bool(left_out)
    return f"polyabayes.Corpus({code}{table.index_code(labels)}.T)"


def _lists(table: Table, names: Names) -> Names:
    """Code for lines of words: they hold names of columns, or columns that never repeat share."""
    held = [{*table.values(name)} - {None} for name in names]
    known = set().union(*held)
    are_shared = len(known) < sum(map(len, held)) == len(names) * table.n_rows
    told = f"with a list of words in each line, use {table.as_lists}"
    return [told] * (are_shared or not known.isdisjoint(names))


def _texts(table: Table, names: Names, ids: Name) -> Iterator[str]:
    """Options for texts or lists of words: of lists, and of the longest texts."""
    plain = (x for x in names if table.kind(x) not in ("number", "tokens"))
    bodies = sorted(plain, key=lambda x: sum(map(len, filter(None, table.values(x)))))
    for text in [x for x in names if table.kind(x) == "tokens"] + bodies[-1:]:
        table.refuse_other_kinds(text)
        what = "list of words" if table.kind(text) == "tokens" else "text"
        told = table.options(text=text, ids=None if ids == text else ids)
        if " " in text and "?" not in text and table.may_lack_header:
            roles = {text: "text", ids: "id"}
            columns = [roles.get(x, f"column{k}") for k, x in enumerate(table.names)]
            told += f" (or {table.options(columns=columns)} if its first line is no header)"
        yield f"with a {what} in each row, use {told}"


def columns_of(n_columns: int, n_labels: int) -> list[str]:
    """Names for the columns of a table without a header, so many of which are no numbers."""
    if n_columns == 3 and n_labels != 1:
        return ["document", "word", "count"]
    return ["id"] * (n_labels > 0) + [f"word{k}" for k in range(n_labels > 0, n_columns)]
