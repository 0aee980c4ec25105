"""Raw text: files with a document per line, and folders with a document per file."""

import os
import re
from contextlib import suppress
from pathlib import Path
from typing import Any

from polyabayes._support.files import content_of, read_lines, reading
from polyabayes.data.conversion.documents import source_of_lists
from polyabayes.data.conversion.texts import check_text_options, checked_on_empty
from polyabayes.data.corpus import Corpus
from polyabayes.data.counts import Words
from polyabayes.data.names import refusal, say, warn
from polyabayes.exceptions import FileFormatError
from polyabayes.io.tabular.delimited import text_code

# Names of files that tell of others.
_SUFFIX, _ABOUT = ".txt", re.compile(r"(?i)(.*/)?(readme|licen[cs]e|changelog)\b")


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
        place = (ids or [f"line {number}" for number in range(1, len(texts) + 1)]).__getitem__
        blank = [] if ids or on_empty else [k for k, text in enumerate(texts) if not text.strip()]
        if blank:
            told = len(blank), place(blank[0]), text_code(path, options.get("encoding"))
            warn(say("blank lines", path, *told))
        return Corpus._made(source_of_lists(texts, vocabulary, ids, options, on_empty, place))


def files_of(folder: Path) -> dict[str, Path]:
    """Files of a folder, at any depth, by their relative paths; hidden ones are left out."""

    def refuse(error: OSError) -> None:
        raise error

    found = {}
    with reading(folder):
        for parent, folders, names in os.walk(folder, onerror=refuse):
            folders[:] = [name for name in folders if not name.startswith(".")]
            paths = (Path(parent, name) for name in names if not name.startswith("."))
            # The same names under every locale; bytes that are no UTF-8 become \xff.
            labels = {os.fsencode(path.relative_to(folder).as_posix()): path for path in paths}
            found.update({x.decode(errors="backslashreplace"): y for x, y in labels.items()})
    return {name: found[name] for name in sorted(found)}


def is_text(name: str) -> bool:
    """Whether a file of a folder is a text, by its name."""
    return name.lower().removesuffix(".gz").endswith(_SUFFIX)


def _read_folder(folder: Path, encoding: str) -> tuple[list[str], list[str]]:
    found = {name: path for name, path in files_of(folder).items() if is_text(name)}
    texts = {name: "\n".join(read_lines(path, encoding)) for name, path in found.items()}
    for name in (x for x in texts if encoding != "utf-8" and not texts[x].isascii()):
        with suppress(FileFormatError):
            if "\n".join(read_lines(found[name])) == texts[name]:
                continue
            given = {"path": found[name], "files": files_code(folder, _SUFFIX)}
            raise refusal("encodings", encoding=encoding, **given)
    if odd := [name for name in texts if _ABOUT.match(name) and len(texts) > 1]:
        warn(say("about", folder=folder, odd=odd))
    return list(texts), list(texts.values())


def files_code(folder: Path, ending: str) -> str:
    """Code of the files of a folder with an ending."""
    code = f"sorted(pathlib.Path({str(folder)!r}).rglob('*{ending}'))"
    return code if ending else f"filter(pathlib.Path.is_file, {code})"
