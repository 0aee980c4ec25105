"""Vocabularies of corpora: files with one word per line, and sequences of words."""

from __future__ import annotations

import os
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias

from numpy.typing import NDArray

from polyabayes._support import checks
from polyabayes._support.files import beside, content_of, read_lines, sibling
from polyabayes.data.corpus import Corpus
from polyabayes.data.counts import Words, checked_words
from polyabayes.exceptions import FileFormatError, InvalidArgumentError

_TABBED = ".tsv"

VocabularyLike: TypeAlias = "str | os.PathLike[str] | Sequence[str] | NDArray[Any]"


def resolve_vocabulary(vocabulary: VocabularyLike | None, encoding: str = "utf-8") -> Words | None:
    """Words of a vocabulary, given as a sequence or a file with one word per line.

    From a ``.tsv`` file, such as ``features.tsv`` of 10x Genomics, the first column is read.
    """
    if vocabulary is None:
        return None
    if not isinstance(vocabulary, (str, os.PathLike)):
        return checked_words(vocabulary)
    path = Path(vocabulary)
    words = read_lines(path, encoding)
    if Path(path.name.removesuffix(".gz")).suffix.lower() == _TABBED:
        words = [line.partition("\t")[0] for line in words]
    while words and not words[-1].strip():
        words.pop()
    if not words:
        raise FileFormatError(f"{path} holds no words")
    for line, word in enumerate(words, start=1):
        if not word.strip():
            told = "the line is blank; put one word on each line"
            raise FileFormatError(f"{path}, line {line}: {told}")
    with content_of(path):
        return checked_words(words)


def size_of_vocabulary(vocabulary: Words | None, n_words: int | None) -> int | None:
    """Agree on the number of words, if either the vocabulary or the option gives it."""
    if n_words is not None:
        n_words = checks.whole_number("n_words", n_words)
    if vocabulary is None:
        return n_words
    if n_words not in (None, len(vocabulary)):
        told = f"n_words={n_words}, but the vocabulary has {len(vocabulary)} words; "
        raise InvalidArgumentError(f"{told}omit n_words if a vocabulary is given")
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
    for position, word in enumerate(words):
        if not word.strip() or "\n" in word or word.endswith("\r"):
            told = "which a file with one word per line cannot hold; write .npz instead"
            raise InvalidArgumentError(f"word {position} of the vocabulary is {word!r}, {told}")
    with beside(sibling(path, ".vocab"), "".join(f"{word}\n" for word in words).encode()):
        yield
