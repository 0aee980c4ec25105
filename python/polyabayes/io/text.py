"""Raw text: files with a document per line, and folders with a document per file."""

from __future__ import annotations

import os
import re
from itertools import islice
from pathlib import Path
from typing import Any

from polyabayes._support.files import content_of, line_blocks, read_lines, reading
from polyabayes.data.conversion.documents import counted_texts, without_empty
from polyabayes.data.conversion.tables import named_rows
from polyabayes.data.conversion.texts import check_text_options, checked_on_empty
from polyabayes.data.corpus import Corpus
from polyabayes.data.counts import Words
from polyabayes.exceptions import FileFormatError, argument
from polyabayes.io.integers import is_number
from polyabayes.io.tabular.delimited import Dialect, records_of, separator_of

_SUFFIX = ".txt"
_HIDDEN = "."
_BYTES_LOOKED_AT = 1 << 16
_LINES_LOOKED_AT = 20
# Lines before the counts of a UCI bag of words.
_N_SIZES = 3
_OF_MALLET = (
    (re.compile(r"\d+\t[\d.eE-]+\t(\S+ ){2,}"), "the keys of topics"),
    (re.compile(r"\d+\t\S+(\t[\d.eE-]+){2,}\s*$"), "the topics of documents"),
)


def read_text(
    path: Path,
    vocabulary: Words | None = None,
    *,
    encoding: str = "utf-8",
    on_empty: str | None = None,
    **options: Any,
) -> Corpus:
    """Count the words of a text file with a document per line, or of a folder of text files.

    Each ``.txt`` file of a folder, at any depth and possibly gzipped, is a document, with its
    relative path as its id; names that begin with a dot are skipped. Words that are not in a given
    vocabulary are dropped; documents without words are kept by default. Options are those of
    scikit-learn's ``CountVectorizer``, and ``stem``, the language of the Snowball stemmer, such as
    "english". Words are stemmed after stop words are dropped and before n-grams are made.
    """
    is_folder = path.is_dir()
    ids, texts = _read_folder(path, encoding) if is_folder else (None, read_lines(path, encoding))
    if not texts:
        kind = "no .txt file, so it holds no documents" if is_folder else "no documents"
        raise FileFormatError(f"{path} holds {kind}")
    return corpus_of_texts(path, ids, texts, vocabulary, on_empty, options)


def refuse_tables(path: Path) -> None:
    """Refuse a table in a text file: its first lines have equally many numbers or tabs."""
    block = next(line_blocks(path, _BYTES_LOOKED_AT), (1, b""))[1]
    lines = [line for line in block.decode("utf-8", "replace").split("\n")[:-1] if line.strip()]
    if lines and all(line.strip().startswith("{") and line.strip().endswith("}") for line in lines):
        raise FileFormatError(
            f"{path} looks like JSON lines, not text: read it by {argument('format', 'jsonl')}"
            f", or as text by {argument('format', 'text')}"
        )
    if lines and (told := _printed_by_mallet(lines)):
        raise FileFormatError(
            f"{path} looks like {told} of MALLET, not text: polyabayes.interop.from_mallet("
            f"'state.gz') reads the state of the same run; as text, {argument('format', 'text')}"
        )
    if len(lines) > _N_SIZES and all(is_number(line.strip()) for line in lines[:_N_SIZES]):
        raise FileFormatError(
            f"{path} looks like counts, not text: if its first lines are numbers of documents, of "
            f"words and of lines, read it by {argument('format', 'docword')}, or as text by "
            f"{argument('format', 'text')}"
        )
    sep = separator_of(lines[0]) if lines else None
    try:
        found = records_of(path, Dialect(sep or " "))
        head, *body = [fields for _, fields in islice(found, _LINES_LOOKED_AT)] or [[]]
    except FileFormatError:  # Quotes of prose, or another encoding.
        return
    if not body:
        return
    n_fields = len(body[0])
    if len(head) == n_fields - 1:  # R does not name the column of the row names.
        head.insert(0, "")
    is_even = n_fields > 1 and all(len(row) == n_fields for row in [head, *body])
    are_counts = is_even and all(is_number(x.strip()) for row in body for x in row[1:])
    if not (are_counts or (is_even and sep == "\t")):
        return
    options = [argument("format", "csv")]
    if all(is_number(field) for field in head):
        options.append(argument("columns", ["document", "word", "count"][:n_fields]))
    elif are_counts and named_rows(head) is None:
        options.append(argument("ids", head[0]))
    transposed = f" (and {argument('transpose', True)} if its rows are words)" * are_counts
    raise FileFormatError(
        f"{path} looks like a table of {n_fields} columns, not text: read it as a table by "
        f"{', '.join(options)}{transposed}, or as text by {argument('format', 'text')}"
    )


def _printed_by_mallet(lines: list[str]) -> str | None:
    """What of a topic model of MALLET the lines are, if any."""
    if lines[0].startswith("#doc "):
        return "the topics of documents" if "proportion" in lines[0] else "the state"
    return next((told for line, told in _OF_MALLET if all(map(line.match, lines))), None)


def corpus_of_texts(
    path: Path,
    ids: list[str] | None,
    texts: list[str],
    vocabulary: Words | None,
    on_empty: str | None,
    options: dict[str, Any],
) -> Corpus:
    """Count the words of texts in a file or folder."""
    checked_on_empty(on_empty)
    check_text_options(options)

    def place(row: int) -> str:
        return f"line {row + 1}" if ids is None else repr(ids[row])

    with content_of(path):
        found = counted_texts(texts, vocabulary, options, are_tokens=False)._replace(ids=ids)
        return Corpus._made(without_empty(found, on_empty, place))


def _read_folder(folder: Path, encoding: str) -> tuple[list[str], list[str]]:
    def refuse(error: OSError) -> None:
        raise error

    found = {}
    with reading(folder):
        for parent, folders, names in os.walk(folder, onerror=refuse):
            folders[:] = [name for name in folders if not name.startswith(_HIDDEN)]
            for name in names:
                is_text = name.lower().removesuffix(".gz").endswith(_SUFFIX)
                if is_text and not name.startswith(_HIDDEN):
                    path = Path(parent, name)
                    found[path.relative_to(folder).as_posix()] = path
    ids = sorted(found)
    return ids, ["\n".join(read_lines(found[name], encoding)) for name in ids]
