"""Ctrl-C where training has nothing yet, or has just ended."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

import polyabayes as pb
from polyabayes.exceptions import Interrupted
from polyabayes.models import em, fitting, topic_model

LDA, PFA = pb.LatentDirichletAllocation, pb.PoissonFactorAnalysis
# What each of them calls before its first sweep, or iteration.
FIRST_CALLS = [
    (LDA(3, max_iter=5, random_state=0), fitting, "progress_bar"),
    (LDA(3, max_iter=5, random_state=0), topic_model, "as_corpus"),
    (LDA(3, max_iter=5, random_state=0, fit_method="em"), em, "progress_bar"),
    (PFA(3, max_iter=5, random_state=0), fitting, "progress_bar"),
    (PFA(3, max_iter=5, random_state=0, prior="nmf"), fitting, "progress_bar"),
]


def corpus(n_words: int) -> pb.Corpus:
    counts = pb.datasets.make_lda_corpus(30, n_words, 3, document_length=20, random_state=0)
    return pb.Corpus(counts.corpus.counts, [f"w{i}" for i in range(n_words)])


def stop(*_: Any, **__: Any) -> Any:
    raise KeyboardInterrupt


@pytest.mark.parametrize(("model", "place", "name"), FIRST_CALLS)
def test_before_the_first_sweep_a_model_stays_as_it_was(
    model: Any, place: Any, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    new, fitted = copy.deepcopy(model), copy.deepcopy(model).fit(corpus(12))
    before = copy.deepcopy(vars(fitted))
    monkeypatch.setattr(place, name, stop)
    for one in (new, fitted):
        with pytest.raises(KeyboardInterrupt, match="before the first sweep") as caught:
            one.fit(corpus(9))
        assert not isinstance(caught.value, Interrupted)
    assert not hasattr(new, "n_features_in_")
    assert vars(fitted).keys() == before.keys()
    np.testing.assert_array_equal(fitted.components_, before["components_"])
    assert fitted.vocabulary_.tolist() == [f"w{i}" for i in range(12)]
    monkeypatch.undo()
    assert fitted.transform(corpus(12)).shape == (30, 3)


def test_a_switch_of_methods_that_is_interrupted_leaves_the_bound(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = LDA(3, max_iter=5, random_state=0, fit_method="em").fit(corpus(12))
    bound = model.bound_
    monkeypatch.setattr(fitting, "progress_bar", stop)
    with pytest.raises(KeyboardInterrupt):
        model.set_params(fit_method="gibbs").fit(corpus(9))
    assert model.bound_ == bound


def test_partial_fit_before_the_first_sweep(monkeypatch: pytest.MonkeyPatch) -> None:
    model = LDA(3, max_iter=5, random_state=0).fit(corpus(12))
    components = model.components_.copy()
    monkeypatch.setattr(fitting, "progress_bar", stop)
    with pytest.raises(KeyboardInterrupt, match="before the first sweep"):
        model.partial_fit(corpus(12))
    np.testing.assert_array_equal(model.components_, components)


@pytest.mark.parametrize("kind", [LDA, PFA])
def test_while_the_result_is_taken_it_is_not_lost(
    kind: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    original, calls = topic_model.topic_word_counts, []

    def once(*arguments: Any) -> Any:
        calls.append(arguments)
        if len(calls) == 1:
            raise KeyboardInterrupt
        return original(*arguments)

    monkeypatch.setattr(topic_model, "topic_word_counts", once)
    model = kind(3, max_iter=5, random_state=0)
    with pytest.raises(Interrupted, match="stopped after 5 of 5 sweeps") as caught:
        model.fit(corpus(12))
    assert caught.value.partial is model
    whole = kind(3, max_iter=5, random_state=0).fit(corpus(12))
    np.testing.assert_array_equal(model.components_, whole.components_)
    np.testing.assert_array_equal(model.topic_counts_, whole.topic_counts_)
