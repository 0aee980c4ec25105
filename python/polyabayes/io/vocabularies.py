"""Vocabularies of corpora: files with one word per line, and sequences of words."""

import csv
import os
import re
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias

from numpy.typing import NDArray

from polyabayes._support import checks
from polyabayes._support.files import beside, content_of, read_lines, sibling
from polyabayes.data.corpus import Corpus
from polyabayes.data.counts import Words, checked_words
from polyabayes.data.names import NAMES, say, warn
from polyabayes.exceptions import FileFormatError, InvalidArgumentError
from polyabayes.io.integers import is_number
from polyabayes.io.tabular.delimited import encoding_code

VocabularyLike: TypeAlias = str | os.PathLike[str] | Sequence[str] | NDArray[Any]
_QUOTED = re.compile('".+"')


def resolve_vocabulary(vocabulary: VocabularyLike | None, encoding: str = "utf-8") -> Words | None:
    """Words of a vocabulary, given as a sequence or a file with one word per line.

    From a ``.tsv`` file, such as ``features.tsv`` of 10x Genomics, the first column is read. Quotes
    around all words, or all but a header, are no part of them; what looks like a header is told.
    """
    if vocabulary is None:
        return None
    if not isinstance(vocabulary, (str, os.PathLike)):
        return checked_words(vocabulary)
    path = Path(vocabulary)
    words = read_lines(path, encoding)
    is_tabbed = Path(path.name.removesuffix(".gz")).suffix.lower() == ".tsv"
    _refuse_numbers(path, words, is_tabbed, encoding_code(encoding))
    words = [line.partition("\t")[0] if is_tabbed else line for line in words]
    while words and not words[-1].strip():
        words.pop()
    if not words:
        raise FileFormatError(f"{path} holds no words")
    if blank := [line for line, word in enumerate(words, start=1) if not word.strip()]:
        raise FileFormatError(f"{path}, line {blank[0]}: it is blank; put one word on each line")
    is_quoted, first = [bool(_QUOTED.fullmatch(x)) for x in words], words[0].strip('"')
    are_quoted, own = len(words) > 2 and all(is_quoted[1:]), words
    if are_quoted:
        own = [word for (word,) in csv.reader(words, delimiter="\1", escapechar="\\")]
    # The first word of a sorted list, or of numbers, is no header.
    is_word = any(map(str.isdigit, own[1:])) if first == "0" else own == sorted(own, key=str.lower)
    is_header = first.lower() in NAMES["above words"] and not is_word
    if is_header or (len(words) > 2 and {*is_quoted[1:]} == {not is_quoted[0]}):
        why, code = say("header of words", path, words[0]), encoding_code(encoding)
        warn(say("numbers", why, str(path), "\t", 0 if are_quoted else 3, 1, 0, code, ""))
    with content_of(path):
        return checked_words(own)


def _refuse_numbers(path: Path, lines: list[str], is_tabbed: bool, code: str) -> None:
    """Refuse words with their numbers or counts beside them; the call reads the words in order."""
    lines = [line for line in lines if line.strip()]
    for sep in "\t,; ":
        if len(lines) < 2 or sep not in lines[1] or max(map(len, lines)) > csv.field_size_limit():
            continue
        # Quotes of tables; in lines with tabs or blanks, a quote may be a word.
        is_plain = sep in "\t " and not all('"' in line for line in lines[1:])
        rows = [*csv.reader(lines, delimiter=sep, quoting=3 if is_plain else 0)]
        columns = list(zip(*rows[1:], strict=False))
        numbers = [k for k, column in enumerate(columns) if all(map(is_number, column))]
        word = next((k for k in range(len(columns)) if k not in numbers), None)
        if {*map(len, rows[1:])} != {len(columns)} or not numbers or word is None:
            continue
        is_header = len(rows[0]) < len(columns) or not is_number(rows[0][numbers[0]])
        rows = rows[is_header:]
        ids = [int(row[numbers[0]]) for row in rows]
        are_ids = sorted(ids) in ([*range(len(ids))], [*range(1, len(ids) + 1)])
        # Places of a genome repeat names; bigrams may end in numbers; a .tsv begins with its words.
        is_read = is_tabbed and sep == "\t" and not word and not is_header
        if is_read or (sep == " " and not are_ids) or len({row[word] for row in rows}) < len(rows):
            continue
        change = f".sort_values({numbers[0]})" * (are_ids and ids != sorted(ids))
        told = f"{path} holds numbers, too:", str(path), sep, 3 * is_plain, is_header, word
        raise FileFormatError(say("numbers", *told, code, change))


def size_of_vocabulary(vocabulary: Words | None, n_words: int | None) -> int | None:
    """Agree on the number of words, if either the vocabulary or the option gives it."""
    n_words = None if n_words is None else checks.whole_number("n_words", n_words)
    if vocabulary is None:
        return n_words
    if n_words not in (None, len(vocabulary)):
        raise InvalidArgumentError(f"omit n_words: the vocabulary has {len(vocabulary)} words")
    return len(vocabulary)


def with_vocabulary(corpus: Corpus, vocabulary: Words | None) -> Corpus:
    """Give a corpus a vocabulary; if it has words, align its columns to the vocabulary."""
    if vocabulary is None:
        return corpus
    if corpus.vocabulary is None:
        return Corpus(corpus.counts, vocabulary, corpus.ids, corpus.exposure, corpus.metadata)
    return corpus.aligned_to(vocabulary)[0]


@contextmanager
def words_beside(words: Words | None, path: Path) -> Generator[None]:
    """Context that writes words, if any, one per line, next to counts that its body writes."""
    if words is None:
        yield
        return
    are_quoted = len(words) > 2 and all(map(_QUOTED.fullmatch, words[1:]))
    for position, word in enumerate(words):
        if (are_quoted and position) or not word.strip() or "\n" in word or word.endswith("\r"):
            raise InvalidArgumentError(f"word {position}, {word!r}, fits into no line: write .npz")
    with beside(sibling(path, ".vocab"), "".join(f"{word}\n" for word in words).encode()):
        yield
