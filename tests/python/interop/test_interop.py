"""Export to other tools."""

import json

import numpy as np
import pytest

import polyabayes as pb
from helpers.small_models import known_lda
from polyabayes.interop import pyldavis_arguments, to_pyldavis

WORDS = ["urn", "ball", "größe", "draw", "never", "colour"]
COUNTS = np.random.default_rng(0).poisson([1.5, 1.0, 2.0, 0.5, 0.0, 1.0], (20, 6))
COUNTS[3] = 0
MODELS = [
    pb.LatentDirichletAllocation(3, max_iter=10, random_state=0),
    pb.PoissonFactorAnalysis(3, max_iter=10, random_state=0),
]


@pytest.mark.parametrize("estimator", MODELS)
def test_arguments_are_what_they_are_called(estimator):
    corpus = pb.Corpus(COUNTS, WORDS)
    model = estimator.fit(corpus)
    arguments = pyldavis_arguments(model, corpus)
    shown = [0, 1, 2, 3, 5]
    assert arguments["vocab"] == [WORDS[column] for column in shown]
    assert arguments["term_frequency"].tolist() == COUNTS.sum(axis=0)[shown].tolist()
    assert arguments["doc_lengths"].tolist() == COUNTS.sum(axis=1).tolist()
    topics = model.components_[:, shown]
    shares = topics / topics.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(arguments["topic_term_dists"], shares, rtol=1e-12)
    np.testing.assert_allclose(arguments["doc_topic_dists"].sum(axis=1), 1, rtol=1e-12)


@pytest.mark.parametrize("n_topics", [1, 2, 40])
def test_pyldavis_prepares_any_number_of_topics(n_topics):
    pyldavis = pytest.importorskip("pyLDAvis", reason="pyLDAvis is not installed")
    rng = np.random.default_rng(0)
    topics = rng.dirichlet(np.full(50, 0.3), n_topics)
    model = known_lda(0.2, topics, random_state=0)
    prepared = to_pyldavis(model, rng.poisson(2, (30, 50)), sort_topics=False, n_jobs=1)
    places = prepared.topic_coordinates[["x", "y"]].to_numpy()
    assert places.dtype == np.float64
    assert json.dumps(prepared.to_dict(), cls=pyldavis.utils.NumPyEncoder)
    if n_topics > 1:
        theirs = np.abs(pyldavis._prepare.js_PCoA(topics))
        np.testing.assert_allclose(np.abs(places), theirs, atol=1e-7)
