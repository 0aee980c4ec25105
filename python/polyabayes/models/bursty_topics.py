"""Topic models whose topics may be bursty."""

from __future__ import annotations

from copy import copy
from typing import Any, Self

import numpy as np

from polyabayes._support import checks
from polyabayes._support.arrays import Flags, Floats
from polyabayes.data.corpus import Corpus
from polyabayes.data.naming import columns_by_name
from polyabayes.exceptions import InvalidArgumentError, argument
from polyabayes.models.topic_covariates import TopicCovariates
from polyabayes.scale.shards import Shards


class BurstyTopics(TopicCovariates):
    """Base class of topic models with a concentration of each topic."""

    topic_concentration: Any
    topic_concentration_: Floats
    topic_concentration_draws_: Floats

    def _take_concentrations(self, states: list[Floats], draws: Floats) -> list[Any]:
        """Store learned concentrations, whose logarithms end the states and each sweep's draws.

        Returns both parts of each state, and the draws of coefficients.
        """
        n_topics = len(self.components_)
        n_each = n_topics * (1 + (len(self._design.names) if hasattr(self, "_design") else 0))
        draws = draws.reshape(-1, n_each)
        ln_s = draws[:, n_each - n_topics :]
        ends = [(state[:-n_topics], state[-n_topics:]) for state in states]
        self.topic_concentration_draws_ = np.exp(ln_s)
        mean = ln_s.mean(axis=0) if len(ln_s) else ends[0][1]
        self.topic_concentration_ = np.exp(mean)
        return [*ends, draws[:, : n_each - n_topics]]

    def _bursts(self) -> tuple[Floats, ...]:
        """The concentrations for the core, if a topic is bursty."""
        is_bursty = np.isfinite(self.topic_concentration_).any()
        return (self.topic_concentration_,) if is_bursty else ()

    def _of_words(self, are_kept: Flags) -> Self:
        is_bursty = self._bursts() and not are_kept.all()
        if is_bursty and not self._conditions_on_length:
            raise InvalidArgumentError(
                "bursty topics of a gamma-Poisson model cannot be restricted to some words: "
                "train it on these words"
            )
        made = super()._of_words(are_kept)
        if is_bursty:
            # Given that words are kept, theirs are Dirichlet with the pseudo-counts that they have.
            kept = self.components_[:, are_kept].sum(axis=1)
            made.topic_concentration_ = self.topic_concentration_ * kept
        return made

    def _made_bursty(self, value: Any) -> Self:
        """Give the topics these concentrations, unless they are None."""
        if value is not None:
            names = getattr(self, "topic_names_", None)
            value = columns_by_name("topic_concentration", value, names)
            self.topic_concentration = value
            self.topic_concentration_ = concentrations(value, len(self.components_))
            self._core_model()
        return self

    def _with_concentration(self, value: Any) -> Self:
        """The same model, with topics of these concentrations."""
        return copy(self)._made_bursty(value)

    def _set_topic_word(
        self, topic_word: Any, vocabulary: Any, random_state: Any, *, normalised: bool
    ) -> None:
        super()._set_topic_word(topic_word, vocabulary, random_state, normalised=normalised)
        if not hasattr(self, "topic_concentration_"):
            self.topic_concentration_ = np.full(len(self.components_), np.inf)

    def _learned_state(self) -> dict[str, Any]:
        found = super()._learned_state()
        if hasattr(self, "topic_concentration_draws_"):
            found["topic_concentration"] = np.sort(self._last.concentration)[::-1]
        return found


def concentrations(value: Any, n_components: int) -> Floats:
    """Concentrations of topics, one or one per topic; infinite ones are allowed."""
    name = "topic_concentration"
    if isinstance(value, str):
        rule = f"must be 'learn', a number or one a topic, got {value!r}"
        if value == "learn":
            rule = "is learned by `fit`; polyabayes.learn_topic_concentration takes given topics"
        raise checks.wrong(name, value, rule)
    found = checks.vector(name, value, n_components)
    # The least that the core takes.
    bad = np.flatnonzero(~(found >= 1e-60))
    if len(bad):
        rule = f"must be at least 1e-60, or inf for LDA, but entry {bad[0]} is {found[bad[0]]}"
        raise checks.wrong(name, value, rule)
    return found.copy()


def concentration_of(value: Any, n_components: int) -> Floats | str | None:
    """The concentrations for the core: fixed ones, how they are learned, or None for LDA."""
    if value is None or (isinstance(value, str) and value == "learn"):
        return value and "per topic"
    return concentrations(value, n_components)


def check_in_memory(documents: Corpus | Shards) -> None:
    """Refuse bursty topics of shards."""
    if isinstance(documents, Shards):
        raise InvalidArgumentError(
            f"{argument('topic_concentration')} needs documents in memory: train on a Corpus, or "
            "omit it and find concentrations of the trained topics by learn_topic_concentration"
        )
