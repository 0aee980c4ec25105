"""svmlight and libsvm: ``label word:count word:count ...``; labels are ignored."""

import re
from pathlib import Path
from typing import Literal

import numpy as np

from polyabayes._support.files import content_of, line_blocks, refuse_announced
from polyabayes.data.corpus import Corpus
from polyabayes.data.counts import MAX_COUNT, Words
from polyabayes.exceptions import FileFormatError, InvalidArgumentError
from polyabayes.io.integers import COMMENT, COUNT, check_lines, numbers_of
from polyabayes.io.matrices.ldac import Rows
from polyabayes.io.vocabularies import size_of_vocabulary

# Labels and query numbers, which are ignored.
_BEFORE_WORDS = re.compile(rb"(?m)^[ \t]*[^\s:]+(?=\s|\Z)([ \t]+qid:[^\s]+)?")

_DOCUMENT = rb"[^\s:]++(?:[ \t]++qid:\S++)?(?:[ \t]++\d{1,18}+:%b)*+" % COUNT


def read_svmlight(
    path: Path,
    vocabulary: Words | None = None,
    *,
    n_words: int | None = None,
    zero_based: bool | Literal["auto"] = "auto",
) -> Corpus:
    """Read a svmlight file, plain or gzipped.

    The default number of words is the largest index. With "auto", indices start at 1 unless an
    index 0 occurs. Repeated words of a line are summed.
    """
    if zero_based not in (True, False, "auto"):
        raise InvalidArgumentError(f"zero_based must be a bool or 'auto', got {zero_based!r}")
    size = size_of_vocabulary(vocabulary, n_words)
    parts = [_rows(path, line, block) for line, block in line_blocks(path)]
    if not sum(len(part.lengths) for part in parts):
        raise FileFormatError(f"{path} cannot be read: it holds no documents")
    rows = Rows.joined(parts)
    if zero_based is False and not rows.ids.all():
        raise FileFormatError(f"{path} names the word 0, but its words are counted from 1")
    first = 0 if zero_based is True or (zero_based == "auto" and not rows.ids.all()) else 1
    largest = rows.most_words - first
    if size is not None and largest > size:
        raise FileFormatError(f"{path} has word {largest - 1 + first}, the vocabulary {size}")
    size = max(largest, 1) if size is None else size
    refuse_announced(path, len(rows.lengths), size)
    with content_of(path):
        return rows._replace(ids=rows.ids - first).corpus(size, vocabulary)


def _rows(path: Path, first_line: int, block: bytes) -> Rows:
    """Number of words of each document, and its words and counts as they are written."""
    plain, what = COMMENT.sub(b"", block), "a label and pairs 'word:count' of whole numbers"
    check_lines(path, plain, _DOCUMENT, what, first_line)
    pairs = _BEFORE_WORDS.sub(b"", plain)
    if (values := numbers_of(pairs)).max(initial=0) > MAX_COUNT:
        raise FileFormatError(f"{path} holds numbers above {MAX_COUNT:,}")
    lengths = np.array([line.count(b":") for line in pairs.split(b"\n")])
    filled = [bool(line.strip()) for line in plain.split(b"\n")]
    return Rows(lengths[filled], *values.astype(np.int64).reshape(-1, 2).T)
