"""Rows and columns of tables matched with documents and words: by name where both have names."""

import re
from collections.abc import Mapping, Sequence
from os.path import commonprefix
from typing import Any

import numpy as np

from polyabayes._support import checks
from polyabayes._support.output.frames import import_pandas
from polyabayes._support.output.tables import some
from polyabayes.data.conversion.frames import frame_of, name_of
from polyabayes.data.conversion.table import ROUNDED
from polyabayes.data.counts import columns_of_words
from polyabayes.data.names import NAMES, is_headed, names_documents, refusal, say, warn
from polyabayes.exceptions import argument

# Folders, endings of names of files, and decimals of whole numbers; other endings, such as ".v1",
# may tell documents apart.
_OF_FILES = re.compile(r".*[/\\]|(\.(txt|csv|tsv|json|xml|html|md|pdf|docx|gz|0))+$")


def rows_by_name(name: str, rows: Any, names: Any, by_place: str = "") -> Any:
    """Rows of a table or a corpus in the order of `names`, of documents or other rows.

    The index of the rows names them, or else a column with all names; with a warning, also names
    that differ from them in case, blanks, leading zeros, folders, endings of files, or an ending
    that all have. Rows without names, and rows for data without names, are returned unchanged: they
    are matched by place. Other names are refused; an index that counts from 0 is none, and refused
    in another order where data have no names. `by_place` is code that drops the names.
    A mapping is of names to rows, or of columns to values.
    """
    table = name
    if isinstance(rows, Mapping):
        rows, table = _of_mapping(name, rows, names)
    rows = rows if (frame := frame_of(rows)) is None else frame
    index, is_frame = checks.index_of(rows), hasattr(rows, "iloc")
    index = index if is_frame else getattr(rows, "ids", None)
    if index is None:
        return rows
    is_sorted = not is_frame or index.dtype.kind not in "iu" or index.is_monotonic_increasing
    if names is None and not is_sorted and set(index) == set(range(len(index))):
        raise checks.wrong(name, None, say("other order", table))
    if names is None:
        return rows
    wanted, mine = list(map(name_of, names)), list(map(name_of, index))
    if mine == wanted:
        return rows
    by_number = rows.iloc if is_frame else rows
    if set(mine).issuperset(wanted):
        return by_number[_places(name, mine, wanted)]
    is_counted = index.dtype.kind in "iu" and mine == [*map(str, range(len(mine)))]
    if wanted == [*map(str, range(len(wanted)))] and (is_counted or {*wanted}.isdisjoint(mine)):
        return rows
    held: dict[Any, list[str]] = {} if is_counted else {None: mine}
    for column in getattr(rows, "columns", ()):
        if rows[column].dtype.kind not in "biufc" or names_documents(str(column)):
            held[column] = [*map(name_of, rows[column])]
    for spell in (list, _plain, _stems):
        keys, spelt = spell(wanted), {column: spell(labels) for column, labels in held.items()}
        # Names that are the same when spelt so are not taken for one another.
        kept = {column: set(labels) for column, labels in spelt.items()}
        found = [x for x in kept if kept[x].issuperset(keys) and len(kept[x]) == len(set(held[x]))]
        # Several columns may hold the names: those that agree with the order of the rows need no
        # other.
        same = [column for column in found if spelt[column] == keys]
        if len(found) > 1 and not same:
            raise refusal("both", argument(name), *found[:2], table)
        if found and len(set(keys)) == len(set(wanted)):
            column = [*same, *found][0]
            places = range(len(keys)) if same else _places(name, spelt[column], keys)
            labels = [held[column][place] for place in places]
            if labels != wanted:
                own, other = next(x for x in zip(labels, wanted, strict=True) if x[0] != x[1])
                warn(say("spelt", argument(name), own, other))
            matched = rows if same else by_number[places]
            # Names are metadata, but no values.
            return matched if column is None or name == "metadata" else matched.drop(columns=column)
    for column, labels in held.items():
        n_known = len(set(wanted).intersection(labels))
        code, other = "", by_place or (".reset_index(drop=True)" if is_frame else ".counts")
        if column is not None:
            if not names_documents(str(column)) and 2 * n_known < len(wanted):
                continue
            code, other = f".set_index({column!r})", f".drop(columns={column!r})"
        missing = [label for label in wanted if label not in set(labels)]
        told = f"{table}{code}.reindex(corpus.ids) to leave them missing, or "
        told = told * (is_frame and isinstance(names, np.ndarray) and n_known > 0)
        told = say("no row", some(missing), some(labels), f"{told}{table}{other}")
        raise checks.wrong(name, missing[0], told)
    return rows


def _of_mapping(name: str, rows: Mapping[Any, Any], names: Any) -> tuple[Any, str]:
    """A series or frame of a mapping, and code of it; columns without names go by place."""
    pandas, known = import_pandas(), set(map(str, () if names is None else names))
    is_table = name in ("metadata", "covariates")
    if not is_table and all(map(pandas.api.types.is_scalar, rows.values())):
        return pandas.Series(rows), f"pandas.Series({name})"
    if not known.isdisjoint(map(name_of, rows)):
        own = pandas.DataFrame.from_dict(rows, orient="index")
        return own, f"pandas.DataFrame.from_dict({name}, orient='index')"
    try:
        columns = {column: rows_by_name(column, x, names) for column, x in rows.items()}
        # Arrays keep their categories, and have no index by which pandas would match them.
        arrays = {column: getattr(x, "array", x) for column, x in columns.items()}
        lists = {column: list(x) for column, x in arrays.items() if not hasattr(x, "dtype")}
        frame = pandas.DataFrame(arrays | lists)
        are_by_place = all(columns[column] is x for column, x in rows.items())
        frame = frame if are_by_place else frame.set_axis([*names], axis=0)
        return frame, f"pandas.DataFrame({name})"
    except (TypeError, ValueError) as error:
        raise refusal("values", argument(name), error) from error


def columns_by_name(name: str, values: Any, names: Any) -> Any:
    """The same of the columns of a frame, or of the entries of a Series."""
    turned = values.T if hasattr(values, "columns") else values
    found = rows_by_name(name, turned, names, ".to_numpy()")
    return found.T if turned is not values else found


def by_topic(name: str, values: Any, topic_word: Any, axes: Sequence[int] = (1,)) -> Any:
    """Values of topics in the order of the rows of a frame of topics: entries, or axes of a frame.

    There may be values for the first topics only. A mapping is of names of topics to values.
    """
    topics = checks.index_of(topic_word)
    if topics is not None and isinstance(values, Mapping) and {*values} == {*topics[: len(values)]}:
        values = import_pandas().Series(values)
    if topics is not None and checks.index_of(values) is not None:
        for axis in axes if hasattr(values, "columns") else (0,):
            match = rows_by_name if hasattr(values, "columns") and not axis else columns_by_name
            values = match(name, values, topics[: values.shape[axis]])
    return values


def _plain(labels: list[str]) -> list[str]:
    """Names without case, blanks, leading zeros, folders and the endings of files."""
    return [_OF_FILES.sub("", label.strip().casefold()).lstrip("0") for label in labels]


def _stems(labels: list[str]) -> list[str]:
    """The same without an ending that all of several names share, such as ".bam"."""
    shared = commonprefix([label[::-1] for label in labels])[::-1]  # noqa: RUF071
    ending = re.search(r"(_counts|\.\w+)+$", shared) if len(set(labels)) > 1 else None
    return _plain([label.removesuffix(ending[0] if ending else "") for label in labels])


def _places(name: str, mine: list[str], wanted: list[str]) -> list[int]:
    place = {label: row for row, label in reversed(list(enumerate(mine)))}
    for row, label in enumerate(mine):
        if row != place[label] and label in set(wanted):
            raise checks.wrong(name, label, f"has several rows for {label!r}: keep one of them")
    return [place[label] for label in wanted]


def topics_by_name(name: str, topics: Any, vocabulary: Any) -> tuple[Any, Any]:
    """Topics and their words; columns of a table are words, in the order of `vocabulary` if given.

    Topics without names of columns are returned unchanged.
    """
    frame = frame_of(topics)
    if frame is None or not all(isinstance(column, str) for column in frame.columns):
        return topics, vocabulary
    frame = frame.infer_objects()
    numbers = [column for column in frame.columns if column.lower() in NAMES["row"]]
    are_shares = np.allclose(frame.select_dtypes("number").sum(axis=1), 1, ROUNDED)
    kinds = {column: frame[column].dtype.kind for column in frame.columns.drop(numbers)}
    numbered = [x for x in kinds if x.lower() == "topic" and kinds[x] in "iu" and not are_shares]
    labels = [column for column in kinds if kinds[column] not in "biuf" or column in numbered]
    if (turned := frame.drop(columns=numbers + labels)).empty:
        raise checks.wrong(name, None, f"holds no numbers: use {name}.astype(float)")
    of_columns, of_rows = (np.allclose(turned.sum(axis=axis), 1, ROUNDED) for axis in (0, 1))
    has_words = of_columns and not of_rows
    terms = [column for column in labels if is_headed(column, "words in rows")]
    rest = [column for column in frame.columns if column not in numbers + terms]
    is_tidy = len(terms) == 1 and len(rest) == 2 and rest[1] not in labels
    if is_tidy and (rest[0] in labels or frame[terms[0]].duplicated().any()):
        raise checks.wrong(name, None, say("tidy", name, rest[0], terms[0], rest[1]))
    if labels or numbers or has_words:
        dropped = f".drop(columns={numbers})" if labels and numbers else ""
        labels = labels or numbers
        code = f"{name}{dropped}{f'.set_index({labels})' * bool(labels)}{'.T' * has_words}"
        raise checks.wrong(name, None, say("words in rows" if has_words else "no words", code))
    words, column_of = columns_of_words(list(frame.columns))
    if vocabulary is None or np.array_equal(words, vocabulary := np.asarray(vocabulary, object)):
        return frame.to_numpy(), words
    if set(words) != set(vocabulary):
        others = sorted(set(words) ^ set(map(str, vocabulary)))
        raise checks.wrong(name, None, say("columns", argument("vocabulary"), some(others), name))
    return frame.to_numpy()[:, [column_of[word] for word in vocabulary]], vocabulary
