"""Documents of MALLET: files that it imports, and its prints of instances."""

from __future__ import annotations

import re
import string
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Literal, get_args

from polyabayes._support import checks
from polyabayes._support.files import content_of, open_binary, read_lines, reading
from polyabayes.data.conversion.sources import Source, bags
from polyabayes.data.corpus import Corpus
from polyabayes.data.counts import Words
from polyabayes.exceptions import FileFormatError, InvalidArgumentError
from polyabayes.io.integers import count_mistake, whole_count
from polyabayes.io.text import corpus_of_texts

Layout = Literal["auto", "lines", "printed", "matrix", "svmlight"]
Document = tuple[str, list[tuple[str, int]]]

_JAVA = b"\xac\xed"
# MALLET's own: csv import --line-regex; \s of Java is that of ASCII.
_LINE = re.compile(r"^(\S*)[\s,]*(\S*)[\s,]*(.*)$", re.ASCII)
_NAME, _DATA = 1, 3
# A token of a sequence as MALLET prints it, and a word of a vector.
_TOKEN = re.compile(r"(\d+): (.*) \(\d+\)$")
_WORD = re.compile(r"(.*)\(\d+\)=(\d+)\.0$")
# Instances as --print-output and as --print-instances print them: a name and, line by line, data.
_PRINTED = re.compile(r"name: (.*)\ntarget: .*\ninput: (?:\n|((?:.+\n)+)\n)")
_INSTANCE = re.compile(r"(.*)\t.*\t(?:\n|((?:.+\n)+)\n)")
_MATRIX = re.compile(r"(\S*) (\S*)((?:  \S+ \d+)+)$")
_SEQUENCE = re.compile(r"(\S*) (\S*)((?: \S+:\d+)+)$")
_SVMLIGHT = re.compile(r"(\S+)((?:[ \t]+\S+:\d+(?:\.0*)?)+)[ \t]*$")


def read_mallet(
    path: Path,
    vocabulary: Words | None = None,
    *,
    layout: Layout = "auto",
    encoding: str = "utf-8",
    **options: Any,
) -> Corpus:
    r"""Read documents in a text form of MALLET, plain or gzipped; labels are ignored.

    * ``"lines"``: input of ``import-file``, ``name label text`` on each line.
    * ``"printed"``: output of ``import-file --print-output`` or ``info --print-instances``.
    * ``"matrix"``: output of ``info --print-matrix`` with words (``sic``, ``siw``).
    * ``"svmlight"``: input of ``import-svmlight``, a label and ``word:count`` pairs with words as
      text.

    Lines take the options of texts. As in MALLET, texts are lower-cased and ``token_pattern`` is
    ``\p{L}[\p{L}\p{P}]+\p{L}``. For files imported with ``--token-regex '\S+'``, use
    ``token_pattern=r"(?a:\S+)"``; with ``--remove-stopwords``, give its list as ``stop_words``.
    """
    checks.choice("layout", layout, get_args(Layout))
    _refuse_java(path)
    lines = read_lines(path, encoding)
    if layout == "auto":
        layout = _layout_of(lines)
    if layout == "lines":
        return _from_lines(path, lines, vocabulary, options)
    if options:
        raise InvalidArgumentError(
            f"{', '.join(options)}: options of lines of text, but the layout of {path} is {layout}"
        )
    documents = list(_PARSERS[layout](path, lines))
    if not documents:
        raise FileFormatError(f"{path} holds no documents")
    with content_of(path):
        return _counted(documents)


def _refuse_java(path: Path) -> None:
    with open_binary(path) as stream, reading(path):
        if stream.peek(2)[:2] == _JAVA:
            raise FileFormatError(
                f"{path} is an instance list of MALLET, a serialised Java object that only MALLET "
                "can read: give the text file that was imported (format='mallet'), or what "
                "mallet info --print-instances prints of the list"
            )


def _layout_of(lines: list[str]) -> Layout:
    filled = [line for line in lines if line.strip()]
    if filled and (filled[0].startswith("name: ") or _starts_instance(filled[0])):
        return "printed"
    if filled and all(_MATRIX.match(line) for line in filled):
        return "matrix"
    # A sequence is printed with an empty line after it, which imported files have not.
    blank = any(not line.strip() for line in lines[:-1])
    if blank and any(map(_SEQUENCE.match, filled)) and all(map(_is_sequence, filled)):
        return "matrix"
    if filled and all(_SVMLIGHT.match(line) for line in filled):
        return "svmlight"
    return "lines"


def _starts_instance(line: str) -> bool:
    fields = line.split("\t")
    return len(fields) == 3 and bool(_TOKEN.match(fields[2]) or _WORD.match(fields[2]))


def _is_sequence(line: str) -> bool:
    return bool(_SEQUENCE.match(line)) or len(line.split(" ")) == 2


def _from_lines(
    path: Path, lines: list[str], vocabulary: Words | None, options: dict[str, Any]
) -> Corpus:
    parts = [match for line in lines if line.strip() and (match := _LINE.match(line))]
    texts = [match[_DATA] for match in parts]
    if "token_pattern" not in options and "analyzer" not in options:
        # Words to leave out are divided as the texts are.
        left_out = [string.ascii_letters, *(options.get("stop_words") or ())]
        options = {"token_pattern": _token_pattern([*texts, *left_out]), **options}
    names = [match[_NAME] for match in parts]
    return corpus_of_texts(path, names, texts, vocabulary, options.pop("on_empty", None), options)


def _token_pattern(texts: Iterable[str]) -> str:
    r"""MALLET's \p{L}[\p{L}\p{P}]+\p{L}, its classes spelt by the characters that occur."""
    letters, marks = "", ""
    for character in sorted({c for text in texts for c in text + text.lower()}):
        kind = unicodedata.category(character)[0]
        letters += re.escape(character) if kind == "L" else ""
        marks += re.escape(character) if kind == "P" else ""
    # A class of characters must not be empty, and no token lacks a letter.
    letters = letters or "a"
    return f"[{letters}][{letters}{marks}]+[{letters}]"


def _from_printed(path: Path, lines: list[str]) -> Iterator[Document]:
    """Documents that MALLET printed: an empty line ends each that has tokens."""
    text = "".join(f"{line}\n" for line in lines)
    begins = _PRINTED if text.startswith("name: ") else _INSTANCE
    place, number = 0, 1
    while place < len(text):
        found = begins.match(text, place)
        if found is None:
            raise _damaged(path, number, "nothing that MALLET prints")
        first = number + text.count("\n", place, max(found.start(2), place))
        rows = (found[2] or "").split("\n")[:-1]
        yield found[1], [_entry(path, first + ix, ix, row) for ix, row in enumerate(rows)]
        place, number = found.end(), number + found[0].count("\n")


def _entry(path: Path, number: int, position: int, row: str) -> tuple[str, int]:
    """A token at its position, or a word and its count."""
    token, word = _TOKEN.match(row), _WORD.match(row)
    if token is not None and token[1] == str(position):
        return token[2], 1
    if word is None:
        told = "neither 'position: word (index)' nor 'word(index)=count' of MALLET"
        raise _damaged(path, number, told)
    return word[1], _count(path, number, word[2])


def _count(path: Path, number: int, text: str) -> int:
    """A count from its digits; numbers with thousands of digits are refused unparsed."""
    mistake = count_mistake(text)
    if mistake:
        raise FileFormatError(f"{path}, line {number:,}: {mistake}")
    return whole_count(text)


def _from_matrix(path: Path, lines: list[str]) -> Iterator[Document]:
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        vector = _MATRIX.match(line)
        if vector is not None:
            fields = vector[3].split()
            yield (
                vector[1],
                [
                    (_without_index(word), _count(path, number, n))
                    for word, n in zip(fields[::2], fields[1::2], strict=True)
                ],
            )
        elif _is_sequence(line):
            name, _, *words = line.split(" ")
            yield name, [(_without_index(word), 1) for word in words]
        else:
            raise _damaged(path, number, "no row of a matrix of MALLET")


def _without_index(word: str) -> str:
    head, colon, index = word.rpartition(":")
    return head if colon and index.isdigit() else word


def _from_svmlight(path: Path, lines: list[str]) -> Iterator[Document]:
    for number, line in enumerate(lines, 1):
        found = _SVMLIGHT.match(line)
        if found is not None:
            pairs = (field.rpartition(":") for field in found[2].split())
            yield "", [(word, _count(path, number, count)) for word, _, count in pairs]
        elif line.strip():
            raise _damaged(path, number, "no 'label word:count word:count ...'")


def _damaged(path: Path, number: int, told: str) -> FileFormatError:
    return FileFormatError(
        f"{path}, line {number:,} is {told}: the file is cut or damaged, or of another layout"
    )


def _counted(documents: list[Document]) -> Corpus:
    words = sorted({word for _, entries in documents for word, count in entries if count})
    column_of = {word: column for column, word in enumerate(words)}
    found = bags([(column_of[word], n) for word, n in entries if n] for _, entries in documents)
    ids = [name for name, _ in documents]
    return Corpus._made(
        Source(found.counts, words, ids if any(ids) else None, words_are="gathered")
    )


_PARSERS: dict[str, Callable[[Path, list[str]], Iterator[Document]]] = {
    "printed": _from_printed,
    "matrix": _from_matrix,
    "svmlight": _from_svmlight,
}
