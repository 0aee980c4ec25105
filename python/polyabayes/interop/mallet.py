"""Models of MALLET, from the text files that it writes."""

from __future__ import annotations

import io
import math
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple, TextIO

import numpy as np

from polyabayes._support import checks
from polyabayes._support.arrays import Floats
from polyabayes._support.files import checked_path, open_binary, reading
from polyabayes._support.machine import memory_of_machine
from polyabayes.exceptions import FileFormatError, InvalidArgumentError
from polyabayes.interop.shared import lda_of
from polyabayes.models import LatentDirichletAllocation
from polyabayes.models.fitted_topics import normalised

JAVA = b"\xac\xed"
_MOST_TOPICS = 2**16 - 1
# Tokens of a state that tell a table of another run, whose topics are others.
_COMPARED = 100_000
# Copies of a topics x words table in memory while it is normalised.
_TABLES = 4

Table = dict[str, dict[int, float]]
# Type index and word of a token, by the source of its document.
Readings = dict[str, tuple[str, str]]


class _State(NamedTuple):
    """Priors and counts of a state file."""

    alpha: Floats
    beta: float
    counts: Table


def from_mallet(
    state: str | os.PathLike[str] | None = None,
    *,
    topic_word_weights: str | os.PathLike[str] | None = None,
    word_topic_counts: str | os.PathLike[str] | None = None,
    doc_topic_prior: Any = None,
    topic_word_prior: float | None = None,
    n_words: int | None = None,
    random_state: Any = None,
) -> LatentDirichletAllocation:
    r"""Convert an LDA of MALLET from the text files of ``train-topics``.

    Priors are read from the head of ``--output-state``, or given. Topics are read from
    ``--topic-word-weights-file`` (counts plus beta), else from ``--word-topic-counts-file``
    (counts), else from the state. The state has only words that occur in the training documents,
    but MALLET also gives beta to other words of the alphabet: with the state alone, give the size
    of the alphabet as `n_words`.

    Import test documents with ``--use-pipe-from`` the training file, or match them by word, as
    :func:`log_likelihood` does if both sides have a vocabulary.

    Parameters
    ----------
    state : path, optional
        File of ``--output-state``, gzipped or not.
    topic_word_weights : path, optional
        File of ``--topic-word-weights-file``.
    word_topic_counts : path, optional
        File of ``--word-topic-counts-file``.
    doc_topic_prior : float or array of shape (n_components,), optional
        alpha of each topic, if there is no state. MALLET's ``--alpha`` is the *sum* over topics,
        and alpha in the file of topic keys is rounded to five digits.
    topic_word_prior : float, optional
        beta, for counts without a state.
    n_words : int, optional
        Size of MALLET's alphabet, for a state alone; words that do not occur are called ``#0``,
        ``#1``, and so on.
    {seed of transform}

    Returns
    -------
    LatentDirichletAllocation
        The model, with the words of the files.

    Raises
    ------
    FileAccessError
        If a file is missing or unreadable.
    FileFormatError
        If a file is truncated or of another kind, or of another run than the state, or is a
        serialised Java object (an inferencer, a model or an instance list), which only MALLET can
        read.
    InvalidArgumentError
        If topics or priors are missing.

    Notes
    -----
    MALLET writes the state only if documents were imported with ``--keep-sequence``.

    Examples
    --------
    >>> state = folder / "state.txt"
    >>> head = "#doc source pos typeindex type topic\n#alpha : 0.5 0.5\n#beta : 0.1\n"
    >>> _ = state.write_text(head + "0 NA 0 0 urn 0\n0 NA 1 1 ball 0\n1 NA 0 2 word 1\n")
    >>> pb.interop.from_mallet(state).components_.round(3).tolist()
    [[0.478, 0.478, 0.043], [0.077, 0.077, 0.846]]
    """
    alone = topic_word_weights is None and word_topic_counts is None
    most = math.inf if alone else _COMPARED
    head = None if state is None else _read_state(checked_path(state), most)
    alpha, beta = _priors(head, doc_topic_prior, topic_word_prior)
    if topic_word_weights is not None:
        table, beta = _read_weights(checked_path(topic_word_weights)), 0.0
    elif word_topic_counts is not None:
        table = _read_counts(checked_path(word_topic_counts))
    elif head is not None:
        if not head.counts:
            raise FileFormatError(f"{state} holds no tokens: the state ends after its head")
        table = head.counts
    else:
        raise InvalidArgumentError(
            "give the state of MALLET (--output-state), or one of its tables of topics "
            "(--topic-word-weights-file, --word-topic-counts-file) with doc_topic_prior"
        )
    if head is not None:
        _refuse_other_run(head.counts, table)
    if alpha is None:
        raise InvalidArgumentError(
            "the file lacks the prior of the topics: give also the state (--output-state), or "
            "doc_topic_prior, alpha of each topic (MALLET's --alpha is the sum over the topics)"
        )
    if beta is None:
        raise InvalidArgumentError(
            "counts lack the prior of the words: give also the state (--output-state), or "
            "topic_word_prior (MALLET's --beta, 0.01 by default)"
        )
    words, rows = _dense(table, _n_topics(table, alpha), _n_words(table, n_words))
    return lda_of(normalised(rows + beta, "MALLET's topics"), alpha, words, random_state)


def _priors(
    head: _State | None, doc_topic_prior: Any, topic_word_prior: float | None
) -> tuple[Any, float | None]:
    """The priors given by the caller, else those of the state file."""
    alpha, beta = (None, None) if head is None else (head.alpha, head.beta)
    if doc_topic_prior is not None:
        alpha = checks.floats("doc_topic_prior", doc_topic_prior)
    if topic_word_prior is not None:
        beta = checks.positive_number("topic_word_prior", topic_word_prior)
    return alpha, beta


def _n_topics(table: Table, alpha: Any) -> int:
    found = 1 + max((topic for row in table.values() for topic in row), default=-1)
    given = np.size(alpha)
    if np.ndim(alpha) and given < found:
        raise InvalidArgumentError(
            f"the topics are numbered up to {found - 1}, but the prior has {given} entries: the "
            "files are of different models"
        )
    return given if np.ndim(alpha) else found


def _n_words(table: Table, n_words: int | None) -> int:
    if n_words is None:
        return len(table)
    wanted = checks.whole_number("n_words", n_words)
    if wanted < len(table):
        raise InvalidArgumentError(
            f"n_words is {wanted:,}, but {len(table):,} different words occur in the files"
        )
    return wanted


def _dense(table: Table, n_topics: int, n_words: int) -> tuple[list[str], Floats]:
    needed, there_are = _TABLES * 8 * n_topics * n_words, memory_of_machine()
    if needed > there_are:
        raise FileFormatError(
            f"the files announce {n_topics:,} topics of {n_words:,} words, which take "
            f"{needed / 2**30:,.1f} GiB of the {there_are / 2**30:,.1f} that the machine has"
        )
    rows = np.zeros((n_topics, n_words))
    for column, topics in enumerate(table.values()):
        for topic, weight in topics.items():
            rows[topic, column] = weight
    return [*table, *(f"#{unseen}" for unseen in range(n_words - len(table)))], rows


def _refuse_other_run(counts: Table, table: Table) -> None:
    """Refuse a table that has fewer tokens of a word in a topic than some lines of the state."""
    for word, row in counts.items():
        known = table.get(word, {})
        for topic, count in row.items():
            if count > known.get(topic, 0.0):
                raise FileFormatError(
                    f"the state and the table of topics are of different runs: the state has "
                    f"{count:,.0f} tokens or more of {word!r} in topic {topic}, the table "
                    f"{known.get(topic, 0.0):g}; take the files of one run"
                )


def _read_state(path: Path, most: float) -> _State:
    """The priors of a state file, and counts of topics by word of about so many tokens."""
    with _lines(path) as stream:
        alpha, beta = _read_head(path, stream)
        counts: Table = {}
        _count_tokens(path, stream, counts, len(alpha), most)
    return _State(alpha, beta, counts)


def _read_head(path: Path, stream: TextIO) -> tuple[Floats, float]:
    head = [stream.readline() for _ in range(3)]
    found = [
        re.match(rf"#{name} : (.+)$", line.strip())
        for name, line in zip(("alpha", "beta"), head[1:], strict=True)
    ]
    if not head[0].startswith("#doc source pos typeindex type topic") or None in found:
        raise FileFormatError(
            f"{path} is no state of MALLET: its first lines must be '#doc source pos typeindex "
            "type topic', '#alpha : ...' and '#beta : ...', as train-topics --output-state writes "
            "for documents imported with --keep-sequence"
        )
    try:
        alpha, beta = [np.array(match[1].split(), dtype=np.float64) for match in found if match]
    except ValueError as error:
        raise FileFormatError(f"{path} has a prior that is no number: {error}") from error
    if not (np.r_[alpha, beta] > 0).all() or len(beta) != 1:
        raise FileFormatError(f"{path} has priors that are not positive numbers")
    return alpha, float(beta[0])


def _count_tokens(path: Path, stream: TextIO, counts: Table, n_topics: int, most: float) -> None:
    """Count the topics of every word; a token is ``doc source pos typeindex type topic``."""
    types: dict[str, str] = {}
    n_tokens = 0
    for _, lines in groupby(enumerate(stream, 4), lambda line: line[1].partition(" ")[0]):
        readings: list[Readings] = []
        topics = []
        for position, (number, line) in enumerate(lines):
            fields = line.rstrip("\r\n").split(" ")
            found = _readings(fields, str(position))
            if not found or not line.endswith("\n") or not _is_topic(fields[-1], n_topics):
                raise FileFormatError(
                    f"{path}, line {number:,}: {line.rstrip()!r} is no token of a state ('doc "
                    "source pos typeindex type topic'): the file is cut or damaged; write it again"
                )
            readings.append(found)
            topics.append(int(fields[-1]))
        words = _words_of(readings, types)
        if words is None:
            raise FileFormatError(
                f"{path}, line {number:,}: the tokens of this document have no common source, or "
                "their words not the type indices that they have elsewhere: the file is damaged"
            )
        for word, topic in zip(words, topics, strict=True):
            row = counts.setdefault(word, {})
            row[topic] = row.get(topic, 0.0) + 1.0
        n_tokens += len(words)
        if n_tokens >= most:
            return


def _is_topic(text: str, n_topics: int) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 6 and int(text) < n_topics


def _readings(fields: list[str], position: str) -> Readings:
    """Possible (type index, word) by source: source and word may hold spaces."""
    return {
        " ".join(fields[1:place]): (fields[place + 1], " ".join(fields[place + 2 : -1]))
        for place in range(2, len(fields) - 3)
        if fields[place] == position and re.fullmatch(r"0|[1-9][0-9]*", fields[place + 1])
    }


def _words_of(readings: list[Readings], types: dict[str, str]) -> list[str] | None:
    """Words of a document's tokens, parsed so that all share a source and each index has one word.

    The longest source is tried first, since sources with spaces are more common than words with
    numbers.
    """
    sources = set.intersection(*map(set, readings))
    for source in sorted(sources, key=len, reverse=True):
        tokens = [reading[source] for reading in readings]
        told = dict(tokens)
        if all(told[index] == word == types.get(index, word) for index, word in tokens):
            types.update(told)
            return [word for _, word in tokens]
    return None


def _read_weights(path: Path) -> Table:
    """Table of ``topic <tab> word <tab> weight`` lines, beta added already."""
    table: Table = {}
    n_lines = 0
    with _lines(path) as stream:
        for number, line in enumerate(stream, 1):
            fields = line.rstrip("\r\n").split("\t")
            try:
                topic, word, weight = int(fields[0]), fields[1], float(fields[2])
                whole = line.endswith("\n") and len(fields) == 3
            except (ValueError, IndexError):
                whole = False
            if not whole or not (0 <= topic < _MOST_TOPICS and 0 <= weight < np.inf):
                raise FileFormatError(
                    f"{path}, line {number:,}: {line.rstrip()!r} is no line of "
                    "--topic-word-weights-file ('topic<tab>word<tab>weight'): the file is cut or "
                    "is another one"
                )
            table.setdefault(word, {})[topic] = weight
            n_lines += 1
    n_topics = 1 + max((topic for row in table.values() for topic in row), default=-1)
    if not table or n_lines != n_topics * len(table):
        raise FileFormatError(
            f"{path} has {n_lines:,} weights where {n_topics:,} topics of {len(table):,} words "
            "need one each: the file is cut, or words stand twice"
        )
    return table


def _read_counts(path: Path) -> Table:
    """Table of ``index word topic:count topic:count ...`` lines."""
    table: Table = {}
    with _lines(path) as stream:
        for number, line in enumerate(stream, 1):
            row = re.match(r"(\d+) (.*?)((?: \d{1,5}:\d{1,15})*)\r?\n$", line)
            if row is None or int(row[1]) != number - 1 or row[2] in table:
                raise FileFormatError(
                    f"{path}, line {number:,}: {line.rstrip()!r} is no line of "
                    "--word-topic-counts-file ('index word topic:count ...'): the file is cut or "
                    "is another one"
                )
            pairs = (pair.split(":") for pair in row[3].split())
            table[row[2]] = {int(topic): float(count) for topic, count in pairs}
    if not table:
        raise FileFormatError(f"{path} is empty")
    return table


@contextmanager
def _lines(path: Path) -> Iterator[TextIO]:
    """Lines of a text file, gzipped or not; undecodable lines are format errors."""
    with open_binary(path) as raw, reading(path):
        if raw.peek(2)[:2] == JAVA:
            raise FileFormatError(
                f"{path} is a serialised Java object (an inferencer, a model or an instance "
                "list), which only MALLET can read: write --output-state and "
                "--topic-word-weights-file by train-topics, and keep the documents as text"
            )
        yield io.TextIOWrapper(raw, encoding="utf-8", newline="\n")
