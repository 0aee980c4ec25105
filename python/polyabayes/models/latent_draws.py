"""Draws of the topics, the topic weights and the topics of tokens, given a state of a chain."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from polyabayes._support.machine import memory_of_machine
from polyabayes.data.corpus import Corpus
from polyabayes.exceptions import (
    BudgetExceededError,
    InvalidArgumentError,
    InvalidTypeError,
    argument,
)

# Topics x words, documents x topics, and one topic a token.
VARIABLES = ("phi", "theta", "z")


class TokenTopics(NamedTuple):
    """Topics of all tokens of a corpus, cell after cell, document after document."""

    corpus: Corpus
    topics: NDArray[np.uint16]

    def by_document(self, n_topics: int) -> NDArray[np.int64]:
        """Tokens of each document and topic, shape (n_documents, n_topics)."""
        counts = self.corpus.counts
        ends = np.append(0, np.cumsum(counts.data))[counts.indptr]
        n_documents = len(ends) - 1
        places = np.repeat(np.arange(n_documents) * n_topics, np.diff(ends)) + self.topics
        found = np.bincount(places, minlength=n_documents * n_topics)
        return found.reshape(n_documents, n_topics)


class Variable(NamedTuple):
    """Shape and type of a draw of one latent variable."""

    shape: tuple[int, ...]
    dtype: type[np.generic]

    def n_bytes(self) -> int:
        """Bytes of one draw; whole numbers of Python, which do not overflow."""
        size = np.dtype(self.dtype).itemsize
        for length in self.shape:
            size *= int(length)
        return size


def check_variables(names: Any) -> tuple[str, ...]:
    """Names of latent variables, each once, or one name alone."""
    given = (names,) if isinstance(names, str) else names
    if not isinstance(given, Collection):
        raise InvalidTypeError(f"variables must be a tuple of names, got {names!r:.100}")
    for name in given:
        if name not in VARIABLES:
            raise InvalidArgumentError(
                f"variables may be {', '.join(map(repr, VARIABLES))}, not {name!r:.100}",
                argument="variables",
                value=name,
            )
    return tuple(name for name in VARIABLES if name in given)


def variables_of(corpus: Corpus, n_topics: int, names: Collection[str]) -> dict[str, Variable]:
    """Shapes and types of the named variables."""
    every = {
        "phi": Variable((n_topics, corpus.n_words), np.float64),
        "theta": Variable((corpus.n_documents, n_topics), np.float64),
        "z": Variable((corpus.n_tokens,), np.uint16),
    }
    return {name: every[name] for name in names}


def check_memory(variables: Mapping[str, Variable], n_chains: int, n_draws: int) -> None:
    """Refuse draws that the machine cannot hold."""
    # Those of single chains, and all of them in one array.
    copies = 2 * n_chains * n_draws
    needed = {name: copies * variable.n_bytes() for name, variable in variables.items()}
    total, there_are = sum(needed.values()), memory_of_machine()
    if total > there_are:
        largest = max(needed, key=needed.__getitem__)
        raise BudgetExceededError(
            f"{n_draws:,} draws of {n_chains:,} chains take {total:,} bytes, of which {largest} "
            f"takes {needed[largest]:,}, and the machine has {there_are:,}; raise thin, or leave "
            f"{largest} out of {argument('variables')}"
        )
