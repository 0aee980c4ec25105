"""Corpora in CSV, TSV, Parquet and JSON lines, with the rules of data frames."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from polyabayes._support.files import content_of, read_lines
from polyabayes._support.output.frames import import_pandas
from polyabayes.data.conversion import documents, frames, numbers, remedies, roles, sources, texts
from polyabayes.data.conversion.table import Table
from polyabayes.data.corpus import Corpus
from polyabayes.data.counts import Words
from polyabayes.data.names import NAMES, headed, is_headed, named_rows, refusal, say
from polyabayes.exceptions import FileFormatError, PolyabayesError, argument
from polyabayes.io.tabular.delimited import LINES_LOOKED_AT, DelimitedTable, Dialect, encoding_code
from polyabayes.io.tabular.parquet import read_parquet_frame

# Cells that a table may have, present or missing, besides one for each character.
_MOST_CELLS = 10**6


def read_csv(
    path: Path,
    vocabulary: Words | None = None,
    *,
    sep: str | None = None,
    encoding: str = "utf-8",
    skiprows: int = 0,
    columns: Sequence[str] | None = None,
    **options: Any,
) -> Corpus:
    """Read a delimited file, plain or gzipped.

    Documents are in order of appearance; the words of a long table are sorted. The dialect is that
    of :class:`Dialect`, the options are those of :func:`corpus_of_table`.
    """
    table = DelimitedTable(path, Dialect(sep, encoding, skiprows, columns), **options)
    # Names of columns may be numbers, in order.
    n, found = len(table.names), map(numbers.number_of, table.names)
    places = [number for number in found if number is not None]
    is_bare = len(places) == n and (n < 4 or places != sorted(places))
    if is_bare and not {"layout", "document", "word"} & options.keys():
        own = argument("columns", [f"word{k}" for k in range(n)])
        three = f"{argument('columns', remedies.columns_of(3, 0))} if its lines are triplets, "
        raise FileFormatError(say("bare", path, argument("layout", "wide"), three * (n == 3), own))
    return corpus_of_table(path, table, vocabulary, **options)


def read_parquet(path: Path, vocabulary: Words | None = None, **options: Any) -> Corpus:
    """Read a Parquet file; the options are those of :func:`corpus_of_table`."""
    with content_of(path):
        code = f"pandas.read_parquet({str(path)!r})"
        table = frames.FrameTable(read_parquet_frame(path), code=code)
    return corpus_of_table(path, table, vocabulary, **options)


def read_json_lines(
    path: Path, vocabulary: Words | None = None, *, encoding: str = "utf-8", **options: Any
) -> Corpus:
    """Read a file with a JSON object per line; options as for :func:`corpus_of_table`."""
    rows, lines, names, n_bytes = list[Any](), list[int](), set[str](), 0
    held = enumerate(read_lines(path, encoding), start=1)
    for number, line in ((number, line) for number, line in held if line.strip()):
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise FileFormatError(f"{path}, line {number}: it is no JSON: {error}") from error
        if not isinstance(row, dict):
            raise FileFormatError(f"{path}, line {number}: not a JSON object of named values")
        rows.append(row)
        lines.append(number)
        names |= row.keys()
        n_bytes += len(line)
        if len(rows) * len(names) > _MOST_CELLS + n_bytes:
            raise FileFormatError(say("names", path, number, len(names), len(rows)))
    code = f"pandas.read_json({str(path)!r}, lines=True, dtype=False{encoding_code(encoding)})"
    with content_of(path):
        frame = import_pandas().DataFrame(rows, index=lines).rename_axis("line")
        table = frames.FrameTable(frame, code=code)
        table.row_names = None
    try:
        return corpus_of_table(path, table, vocabulary, **options)
    except PolyabayesError as error:
        code = f"pandas.json_normalize({code}.to_dict('records'))"
        inner = frames.FrameTable(import_pandas().json_normalize(rows[:LINES_LOOKED_AT]), code=code)
        prose, above = ({x for x in own.names if own.kind(x) == "text"} for own in (inner, table))
        named, inner.given = options.get("text") or next(iter(above), None), table.given
        if named in above or prose <= above or "document" in options:
            raise
        lengths = {x: len("".join(map(str, inner.values(x)))) for x in sorted(prose - above)}
        text = max(lengths, key=lambda x: (x.endswith(f".{named}"), lengths[x]))
        ids = headed(inner.names, ((options.get("ids") or "id").lower(), *NAMES["document"]))
        raise FileFormatError(say("within", path, inner.call(text=text, ids=ids))) from error


def corpus_of_table(
    path: Path, table: Table, vocabulary: Words | None, *, transpose: bool = False, **options: Any
) -> Corpus:
    """The corpus of the table of a file.

    The options are those of :class:`NamedColumns`, and those of texts: ``stem`` and those of
    CountVectorizer. With `transpose` rows are words, named by ``ids``, and columns documents.
    """
    on_empty = texts.checked_on_empty(options.pop("on_empty", None))
    named = roles.NamedColumns.taken_from(options)
    texts.check_text_options(options)
    if transpose:
        named_first = [x for x in table.names[:1] if is_headed(x, "words in rows")]
        ids = named.ids or next(iter(named_first), named_rows(table.names))
        wide = roles.NamedColumns(ids=ids, metadata=named.metadata, layout="wide")
        if named not in (wide, replace(wide, ids=named.ids, layout=named.layout)):
            raise refusal("transpose", *map(argument, ("transpose", "ids", "metadata")))
        named, table.is_turned = wide, True
        if ids in table.names and not table.is_distinct(ids):
            raise refusal("words twice", ids, table.call(ids=ids))
    with content_of(path):
        found = documents.source_of_table(table, named, vocabulary, options, on_empty)
        if transpose:
            found = sources.Source(found.counts.T.tocsr(), found.ids, found.vocabulary)
        return Corpus._made(found)
