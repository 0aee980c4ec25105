"""Raw text: files with a document per line, and folders with a document per file."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from polyabayes._support.files import content_of, read_lines, reading
from polyabayes.data.conversion.documents import source_of_lists
from polyabayes.data.conversion.texts import check_text_options, checked_on_empty
from polyabayes.data.corpus import Corpus
from polyabayes.data.counts import Words
from polyabayes.exceptions import FileFormatError

_SUFFIX = ".txt"
_HIDDEN = "."


def read_text(
    path: Path, vocabulary: Words | None = None, *, encoding: str = "utf-8", **options: Any
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
    return corpus_of_texts(path, ids, texts, vocabulary, options)


def corpus_of_texts(
    path: Path, ids: Any, texts: list[str], vocabulary: Words | None, options: dict[str, Any]
) -> Corpus:
    """Count the words of texts in a file or folder; an option is `on_empty`."""
    on_empty = checked_on_empty(options.pop("on_empty", None))
    check_text_options(options)
    with content_of(path):
        places = ids or [f"line {number}" for number in range(1, len(texts) + 1)]
        place = places.__getitem__
        return Corpus._made(source_of_lists(texts, vocabulary, ids, options, on_empty, place))


def _read_folder(folder: Path, encoding: str) -> tuple[list[str], list[str]]:
    def refuse(error: OSError) -> None:
        raise error

    found: list[tuple[str, Path]] = []
    with reading(folder):
        for parent, folders, names in os.walk(folder, onerror=refuse):
            folders[:] = [name for name in folders if not name.startswith(_HIDDEN)]
            for name in names:
                is_text = name.lower().removesuffix(".gz").endswith(_SUFFIX)
                if is_text and not name.startswith(_HIDDEN):
                    path = Path(parent, name)
                    # The same ids under every locale; bytes that are no UTF-8 become \xff.
                    label = os.fsencode(path.relative_to(folder).as_posix())
                    found.append((label.decode(errors="backslashreplace"), path))
    found.sort()
    ids = [name for name, _ in found]
    return ids, ["\n".join(read_lines(path, encoding)) for _, path in found]
