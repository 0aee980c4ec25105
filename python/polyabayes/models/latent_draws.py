"""Posterior draws of topics, topic weights and topics of tokens."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from polyabayes._support import checks
from polyabayes._support.arrays import Floats, Integers
from polyabayes._support.machine import memory_of_machine
from polyabayes._support.random import RandomState, dirichlet, draw_seed, random_generator
from polyabayes.data.corpus import Corpus
from polyabayes.exceptions import (
    BudgetExceededError,
    InvalidArgumentError,
    InvalidTypeError,
    NotFittedError,
    argument,
)
from polyabayes.models.fitted.topic_weights import TopicTransformer
from polyabayes.models.fitting import LastState

# Topics x words, documents x topics, and one topic a token.
VARIABLES = ("phi", "theta", "z")

# Stream of random numbers for draws of latent variables only.
_DRAW_KEY = 0x6C6174


class TokenTopics(NamedTuple):
    """Topics of all tokens of a corpus, ordered by document and cell."""

    corpus: Corpus
    topics: NDArray[np.uint16]

    def by_document(self, n_topics: int) -> Integers:
        """Tokens of each document and topic, shape (n_documents, n_topics)."""
        n_documents, documents = self.corpus.n_documents, tokens_of(self.corpus)[0]
        found = np.bincount(documents * n_topics + self.topics, minlength=n_documents * n_topics)
        return found.reshape(n_documents, n_topics)


def tokens_of(corpus: Corpus) -> tuple[Integers, Integers]:
    """Document and word of each token, in the order of `z`."""
    cells = corpus.counts.tocoo()
    documents, words = (np.repeat(x, cells.data).astype(np.int64) for x in cells.coords)
    return documents, words


class Variable(NamedTuple):
    """Shape and type of a draw of one latent variable."""

    shape: tuple[int, ...]
    dtype: type[np.generic]

    def n_bytes(self) -> int:
        """Bytes of one draw, as a Python int, which cannot overflow."""
        return math.prod(map(int, self.shape)) * np.dtype(self.dtype).itemsize


def check_variables(names: Any) -> tuple[str, ...]:
    """Check names of latent variables, without repeats; a single name is allowed."""
    given = (names,) if isinstance(names, str) else names
    if not isinstance(given, Collection) or checks.is_single(given):
        raise InvalidTypeError(f"variables must be a tuple of names, got {names!r:.100}")
    for name in given:
        if not isinstance(name, str) or name not in VARIABLES:
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
    # Arrays of single chains, and the array of all chains.
    copies = 2 * n_chains * n_draws
    needed = {name: copies * variable.n_bytes() for name, variable in variables.items()}
    total, there_are = sum(needed.values()), memory_of_machine()
    if total > there_are:
        largest = max(needed, key=needed.__getitem__)
        raise BudgetExceededError(
            f"{n_draws:,} draws of {n_chains:,} chains take {total:,} bytes, of which {largest} "
            f"takes {needed[largest]:,}, but the machine has {there_are:,}; raise thin, or omit "
            f"{largest} from {argument('variables')}"
        )


class LatentDraws(TopicTransformer):
    """Mixin: draws of latent variables by models trained by Gibbs sampling."""

    n_iter_: int
    topic_counts_: NDArray[Any]
    _last: LastState
    # Topics of tokens during callbacks; neither kept nor copied.
    _tokens: TokenTopics

    def posterior_draw(
        self, variables: str | Collection[str] = VARIABLES, random_state: RandomState = None
    ) -> dict[str, NDArray[Any]]:
        """Draw latent variables from their posterior, given the current state of the chain.

        `z` is the state; `phi` and `theta` are drawn given `z` and the priors of the state. Draws
        of one chain at different sweeps are correlated. Topic 3 of one chain is not topic 3 of
        another, and numbers may switch within a chain.

        Parameters
        ----------
        variables : str or collection of str, default=("phi", "theta", "z")
            Variables to draw. ``"phi"`` is available after training, too. ``"theta"`` and ``"z"``
            are available only in a `callback` of ``fit``, for documents in memory, since a model
            does not keep topics of tokens; :func:`sample_chains` collects them.
        random_state : None, int, RandomState, Generator or SeedSequence
            Seed of `phi` and `theta`. By default, it follows from the model's seed and the number
            of sweeps, so that calls in the same state give the same draws.

        Returns
        -------
        dict of str to ndarray
            ``phi``, shape (n_components, n_words): word probabilities of each topic.
            ``theta``, shape (n_documents, n_components): topic weights, probabilities for LDA and
            rates at exposure 1 for gamma-Poisson. ``z``, shape (n_tokens,), dtype uint16: topic of
            each token, in the order of ``np.repeat(corpus.counts.indices, corpus.counts.data)``.

        Raises
        ------
        InvalidArgumentError
            If there is no such variable, or it is not available.
        NotFittedError
            If the model was not trained by Gibbs sampling here.

        References
        ----------
        T. L. Griffiths and M. Steyvers (2004). Finding scientific topics. PNAS 101.

        Examples
        --------
        >>> counts = [[3, 1, 0, 0], [2, 2, 0, 0], [0, 0, 1, 3], [0, 0, 2, 2]]
        >>> weights = []
        >>> def keep(model):
        ...     weights.append(model.posterior_draw("theta")["theta"])
        >>> lda = pb.LatentDirichletAllocation(2, max_iter=20, random_state=0)
        >>> lda = lda.fit(counts, callback=keep, eval_every=5)
        >>> np.shape(weights), lda.posterior_draw("phi")["phi"].shape
        ((4, 4, 2), (2, 4))
        """
        names, last = check_variables(variables), self._last_state()
        if random_state is None:
            # A separate stream; the number of tokens distinguishes batches of partial_fit.
            words = [self.seed_, self.n_iter_, int(self.topic_counts_.sum())]
            random_state = np.random.SeedSequence(words, spawn_key=(_DRAW_KEY,))
        generator = random_generator(random_state)
        of_phi, of_theta = (np.random.default_rng(draw_seed(generator)) for _ in range(2))
        found: dict[str, NDArray[Any]] = {}
        if "phi" in names:
            found["phi"] = dirichlet(of_phi, last.topic_word_parameters(), axis=1)
        if "theta" in names:
            found["theta"] = self._draw_weights(of_theta, self._token_topics())
        if "z" in names:
            found["z"] = self._token_topics().topics.copy()
        return found

    def _token_topics(self) -> TokenTopics:
        """Topics of all tokens, during callbacks of a run in memory."""
        if not hasattr(self, "_tokens"):
            raise InvalidArgumentError(
                "theta and z rest on the topics of all tokens, which a model does not keep: take "
                "them by sample_chains, or in a callback of fit, of documents in memory",
                argument="variables",
            )
        return self._tokens

    def _draw_weights(self, generator: np.random.Generator, tokens: TokenTopics) -> Floats:
        """Topic weights drawn given the topics of all tokens, (n_documents, n_components)."""
        raise NotImplementedError

    def __getstate__(self) -> Any:
        state = super().__getstate__()
        return {name: x for name, x in state.items() if name not in ("_tokens", "_rows")}

    def _last_state(self) -> LastState:
        """Last state of the chain; refused for models that were not trained here."""
        if not hasattr(self, "_last"):
            raise NotFittedError(
                f"this {type(self).__name__} has no last sample: it was not sampled by fit here"
            )
        return self._last

    def _learned_state(self) -> dict[str, Any]:
        """Learned parameters of the last state, independent of topic numbers."""
        if not hasattr(self, "_design"):
            return {}
        return {"coefficient_variance": float(self._last.parameters[-1])}
