"""Calls that read a table which is refused, by how it looks."""

from __future__ import annotations

from polyabayes.data.conversion.numbers import number_of
from polyabayes.data.conversion.table import DATE, PLAIN_KINDS, Table
from polyabayes.data.names import NAMES, OF_NAMES, counts_nothing, headed, is_headed, named_rows

# Answers to a question have so many levels, and one more for so many rows.
_FEW_LEVELS = 10


def remedy(table: Table, names: list[str], labels: list[str], ids: str | None) -> str:
    """Options that read a table, by how it looks: they are for the caller, and never taken."""
    names = [name for name in names if name.lower() not in NAMES["row"]] or names
    if not table.n_rows or names in ([], [ids]):
        return "Give a table with rows and columns"
    kinds = {name: table.kind(name) for name in names}
    labels = [name for name in names if name in labels or table.are_labels(name)]
    numbers = [name for name in names if name not in labels and name != ids]
    others = [x for x in names if (x in labels or counts_nothing(x)) and x != ids]
    whole = [x for x in numbers if x not in others and table.holds_whole_numbers(x)]
    is_file = table.as_frame.startswith("pandas.") and "io.StringIO" not in table.as_frame
    are_data = any(number_of(name) is not None or DATE.fullmatch(name) for name in names)
    may_lack_header = is_file and ", names=[" not in table.as_frame
    is_header = named_rows(names) or is_headed(names[0], "words in rows")
    if may_lack_header and are_data and not is_header:
        told = table.options(columns=columns_of(len(table.names), len(labels)))
        if len(labels) == 1 and table.names_words(names[0]):
            told += f", {table.options(transpose=True)}"
        elif len(labels) == 1:
            told += f" (and {table.options(transpose=True)} if its rows are words)"
            told += f"; if it is one, {table.options(ids=labels[0])}"
        return f"If its first line is no header, use {told}"
    if of_cells := [name for name in names if kinds[name] == "cells"]:
        code = table.call_of_cells(of_cells[0], ids)
        return f"With lists of other than words, or counts by word, in each row, use {code}"
    marks = table.marks_of_presence([name for name in labels if name != ids])
    named = [x for x in names if x == ids or (x in labels and x not in marks)]
    is_named = len(named) < 2 and all(map(table.is_distinct, named))
    if any(marks.values()) and not whole and is_named:
        code = table.as_frame + (f".set_index({named[0]!r})" if named else "")
        code += f"{list(marks)}".join("[]") * bool(numbers)
        code += f".isin({sorted(set().union(*marks.values()))})"
        code += ".T" * table.names_words(names[0])
        return f"With marks of what is there, use polyabayes.Corpus({code})"
    call = "polyabayes.LatentDirichletAllocation.from_parameters(doc_topic_prior=1.0, topic_word="
    if numbers and max((x for name in numbers for x in table.numbers_of(name)), default=2) < 1:
        code = f"{table.as_frame}.set_index({labels}).T"
        return f"Topics or signatures, with words in rows, are read by {call}{code})"
    word, count = headed(names, NAMES["word"]), headed(names, NAMES["count"] + NAMES["may count"])
    dated = [name for name in labels if table.is_dated(name)]
    left = {word, count, *others, *dated} - ({*labels} - {word, *dated})
    units = [name for name in names if is_headed(name, "units")]
    document = next((x for x in (*units, names[0], *labels) if x not in left), names[0])
    is_long = len(names) > 1 and (word in labels or not table.is_distinct(document))
    levels = {x: len(set(table.values(x))) for x in labels if kinds[x] in PLAIN_KINDS}
    most = min(table.n_rows - 1, _FEW_LEVELS + table.n_rows // _FEW_LEVELS)
    answers = [x for x in levels if 1 < levels[x] <= most and x not in (ids, *dated)]
    rest = [x for x in names if x not in (ids, count)]
    axes = rest if count in whole and table.is_distinct(*rest) else answers
    survey = f"{table.as_frame}, axes={axes}" + f", counts={count!r}" * (count in whole)
    survey = f"with an answer in each column, use polyabayes.CountTensor.from_frame({survey})"
    are_roles = word in labels or any(x in units or is_headed(x, "items") for x in answers)
    if len(answers) > 1 + is_long and not are_roles and {*whole} <= {count}:
        return f"W{survey[1:]}; polyabayes.LatentClassAnalysis takes the same columns"
    texts = [x for x in labels if kinds[x] in ("text", "tokens") and x not in (*answers, *dated)]
    if len(whole) > 1 or is_long:  # Names of two words are no texts.
        texts = [x for x in texts if len(str(table.values(x)).split()) > 2.5 * table.n_rows]
    may_be_turned = names[0] in labels and whole and None in (word, count)
    is_turned = may_be_turned and table.names_words(names[0])
    rows = [name for name in labels if table.is_distinct(name) and ids is None]
    plain = [name for name in rows if name not in (*texts, *dated)]
    own = next(iter(plain or rows), None)
    own = names[0] if is_turned or (not rows and labels == names[:1]) else own
    given = {"ids": own, "metadata": [name for name in others if name != own] or None}
    wide, turned = table.options(**given), table.options(**given, transpose=True)
    by = own or ids
    left_out = [name for name in others if name not in labels]
    code = f"polyabayes.Corpus({table.as_frame}{f'.drop(columns={left_out})' * bool(left_out)}"
    if by is None:
        wide = f"{code}.set_index({labels}))"
    if not is_file or table.written or by is None or not table.is_distinct(by):
        turned = f"{code}.set_index({labels}).T)"
    if is_turned:
        return f"If its rows are words, use {turned}"
    found: list[str] = []
    rates = [x for x in numbers if x not in whole and max(table.numbers_of(x), default=2) <= 1]
    if word in labels and rates and count is None:
        code = f"{table.as_frame}.pivot(index={document!r}, columns={word!r}, values={rates[0]!r})"
        return f"Topics or signatures, with a row for each word, are read by {call}{code})"
    if is_long:
        terms = [x for x in names if x not in (document, count, *dated)] or names
        items = [x for x in terms if is_headed(x, "items")]
        term = word or [*items, *(x for x in terms if kinds[x] != "number"), *terms][0]
        told = table.options(document=document, word=term, count=count)
        if count is None:
            after = [table.options(count=x) for x in names[names.index(term) + 1 :] if x in whole]
            told += f" (and {after[0]} if that counts)" if after else " (each row counts once)"
        found.append(f"with a row for each word of a document, use {told}")
    are_texts = not (numbers or found) and isinstance(table.values(labels[0])[0], str)
    if word not in labels and (texts or are_texts):
        kept = [x for x in texts or labels if x not in (*answers, *dated)]
        kept = [x for x in kept if not OF_NAMES.fullmatch(x)] or kept or labels
        length = {x: len("".join(map(str, table.values(x)[-2:]))) for x in kept}
        bodies = sorted((x for x in kept if kinds[x] != "tokens"), key=length.__getitem__)
        for text in [x for x in kept if kinds[x] == "tokens"] + bodies[-1:]:
            table.refuse_other_kinds(text)
            what = "list of words" if kinds[text] == "tokens" else "text"
            told = table.options(text=text, ids=None if own in (*texts, text) else own)
            n_words = len(" ".join(map(str, table.values(text))).split())
            is_long_header = 2 * table.n_rows * len(text.split()) >= n_words
            if may_lack_header and " " in text and "?" not in text and is_long_header:
                roles = {text: "text", own: "id"}
                columns = [roles.get(x, f"column{k}") for k, x in enumerate(table.names)]
                told += f" (or {table.options(columns=columns)} if its first line is no header)"
            found.append(f"with a {what} in each row, use {told}")
    if (len(whole) > 1 and not (found and count)) or not found:
        found.append(f"with counts in each row, use {wide}; if its rows are words, {turned}")
    if len(answers) > 1 and not are_roles:
        found.append(survey)
    told = "; ".join(found)
    return told[:1].upper() + told[1:]


def columns_of(n_columns: int, n_labels: int) -> list[str]:
    """Names for the columns of a table without a header, so many of which are no numbers."""
    if n_columns == 3 and n_labels != 1:
        return ["document", "word", "count"]
    return ["id"] * (n_labels > 0) + [f"word{k}" for k in range(n_labels > 0, n_columns)]
