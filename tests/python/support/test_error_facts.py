"""Errors say what is wrong of which argument, and carry it."""

import pickle
from functools import partial

import numpy as np
import pytest

import polyabayes as pb
from helpers.small_models import known_pfa
from polyabayes import exceptions as errors

COUNTS = np.arange(12).reshape(3, 4)
TOPICS = [[0.25] * 4, [0.1, 0.2, 0.3, 0.4]]
LDA = pb.LatentDirichletAllocation.from_parameters(doc_topic_prior=0.5, topic_word=TOPICS)
NMF = pb.AllocationModel.nmf(2)


def raised(call):
    with pytest.raises(errors.PolyabayesError) as caught:
        call()
    return caught.value


score = partial(pb.log_likelihood, LDA, COUNTS)


def pfa_of_tiny_shape():
    model = known_pfa([1e-200, 1.0], 0.5, TOPICS)
    model._core_model()


def lda_of_sums():
    pb.LatentDirichletAllocation.from_parameters(doc_topic_prior=1, topic_word=[[0.25], [2.0]])


@pytest.mark.parametrize(
    ("call", "name", "value", "limit", "says"),
    [
        (partial(score, "smc", n_particles=0), "n_particles", 0, (1, 10**9), "000000, got 0"),
        (partial(score, "smc", n_jobs=0), "n_jobs", 0, None, "n_jobs must not be 0"),
        (partial(score, n_samples="x"), "n_samples", "x", None, "n_samples must be an int"),
        (partial(score, "exact", budget=5.0), "budget", None, 5.0, "or method='smc-lookahead'"),
        (
            partial(NMF.log_evidence, COUNTS, "exact", budget=5.0),
            *("budget", None, 5.0, "raise budget, or use method='tempered'"),
        ),
        (lda_of_sums, "topic_word", 0.25, 1.0, "topic_word[0] sums to 0.25"),
        (pfa_of_tiny_shape, "shape", 1e-200, None, "shape[0] = 1e-200: must be between"),
    ],
)
def test_errors_carry_argument_value_and_limit(call, name, value, limit, says):
    error = raised(call)
    assert error.argument == name
    assert says in str(error)
    if value is not None:
        assert error.value == value
    if limit is not None:
        assert error.limit == limit
    copy = pickle.loads(pickle.dumps(error))
    assert (str(copy), copy.argument, copy.value) == (str(error), error.argument, error.value)


def test_references_are_text_until_they_are_told():
    for kind in (errors.InvalidArgumentError, errors.FileAccessError, errors.ScoreWarning):
        error = kind(f"use {errors.argument('method', 'vb')}, or raise {errors.argument('budget')}")
        assert str(error) == "use method='vb', or raise budget"
        assert "\x1f" not in repr(error)
        assert error.told(str.upper) == "use METHOD='VB', or raise BUDGET"
