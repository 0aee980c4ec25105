"""Pipelines that end in a model of ours: words are handed on, set_output works."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.decomposition import LatentDirichletAllocation
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import FeatureUnion, make_pipeline

import polyabayes as pb
from helpers.refusals import assert_refused
from polyabayes import exceptions as errors

matplotlib = pytest.importorskip("matplotlib")
pytest.importorskip("matplotlib.pyplot")

TEXTS = ["the urn holds red balls", "a gene in the cell", "draw a ball from the urn"] * 10
MODELS = [
    pb.LatentDirichletAllocation(2, max_iter=20, random_state=0),
    pb.PoissonFactorAnalysis(2, max_iter=20, random_state=0),
]
VECTORISERS = [CountVectorizer, pb.interop.CountVectorizer]


def words_of(pipeline):
    return set(pipeline[0].get_feature_names_out())


@pytest.fixture(params=[(v, m) for v in VECTORISERS for m in MODELS], ids=str)
def pipeline(request):
    vectoriser, model = request.param
    return make_pipeline(vectoriser(), clone(model)).fit(TEXTS)


def test_functions_take_the_pipeline_and_see_words(pipeline):
    words = words_of(pipeline)
    top = pb.topics.diagnostics(pipeline, TEXTS, 3).words
    assert set(top.ravel()) <= words
    table = pipeline[-1].topic_table(3, vocabulary=pipeline[:-1])
    assert {tuple(row) for row in table.words} == {tuple(row) for row in top}
    again = pipeline[-1].topic_table(3, vocabulary=pipeline[0].get_feature_names_out())
    np.testing.assert_array_equal(again.words, table.words)
    counts = pb.Corpus(CountVectorizer().fit_transform(TEXTS), sorted(words))
    of_texts = pb.log_likelihood(pipeline, TEXTS, random_state=0)
    bare = clone(pipeline[-1]).fit(counts)
    expected = pb.log_likelihood(bare, counts, random_state=0)
    np.testing.assert_array_equal(of_texts.values, expected.values)
    drawn = pb.plotting.plot_topics(pipeline, n_words=3)
    assert set(top.ravel()) <= {text.get_text() for text in drawn.texts}
    for plot in (pb.plotting.plot_trace, pb.plotting.plot_topic_weights):
        assert plot(pipeline).has_data()
    assert pb.plotting.plot_topic_similarity(pipeline).images


def test_words_come_with_the_counts_of_our_vectoriser():
    pipeline = make_pipeline(pb.interop.CountVectorizer(min_df=2), clone(MODELS[0])).fit(TEXTS)
    assert set(pipeline[-1].topic_table(3).words.ravel()) <= words_of(pipeline)
    assert pipeline[-1].vocabulary_.tolist() == sorted(words_of(pipeline))
    assert clone(pipeline)[0].min_df == 2
    assert np.isfinite(cross_val_score(clone(pipeline), TEXTS, cv=3)).all()


@pytest.mark.parametrize("container", ["pandas", "polars"])
@pytest.mark.parametrize("model", MODELS)
def test_the_whole_pipeline_has_set_output(container, model):
    library = pytest.importorskip(container)
    pipeline = make_pipeline(pb.interop.CountVectorizer(), clone(model)).fit(TEXTS)
    bare = pipeline.transform(TEXTS[:3])
    pipeline.set_output(transform=container)
    found = pipeline.transform(TEXTS[:3])
    assert isinstance(found, library.DataFrame)
    assert list(found.columns) == ["topic0", "topic1"] == pipeline.get_feature_names_out().tolist()
    np.testing.assert_array_equal(np.asarray(found), bare)
    # Other functions do not depend on the container.
    assert pb.topics.top_documents(pipeline, TEXTS, 2).rows.shape == (2, 2)
    counts = np.ones((2, pipeline[-1].n_features_in_), dtype=int)
    assert pb.plug_in_perplexity(pipeline[-1], counts, counts) > 1


def test_names_of_a_union_are_short():
    union = FeatureUnion([("lda", clone(MODELS[0])), ("pfa", clone(MODELS[1]))])
    pipeline = make_pipeline(pb.interop.CountVectorizer(), union).fit(TEXTS)
    names = pipeline.get_feature_names_out().tolist()
    assert names == ["lda__topic0", "lda__topic1", "pfa__topic0", "pfa__topic1"]


def test_plots_take_models_of_other_packages():
    theirs = make_pipeline(CountVectorizer(), LatentDirichletAllocation(2, random_state=0))
    theirs.fit(TEXTS)
    words = words_of(theirs)
    drawn = pb.plotting.plot_topics(theirs, n_words=3)
    assert len({text.get_text() for text in drawn.texts} & words) >= 3
    bare = pb.plotting.plot_topics(theirs[-1], n_words=3, vocabulary=theirs[0])
    assert len({text.get_text() for text in bare.texts} & words) >= 3
    assert pb.plotting.plot_topic_similarity(theirs).images
    with pytest.raises(errors.InvalidArgumentError, match="give documents to count them in"):
        pb.plotting.plot_topic_weights(theirs)
    bars = pb.plotting.plot_topic_weights(theirs, documents=TEXTS).patches
    assert sum(bar.get_width() for bar in bars) == pytest.approx(1)
    assert_refused(errors.InvalidArgumentError, "no trace", pb.plotting.plot_trace, theirs)
    counts = theirs[0].transform(TEXTS)
    named = pb.Corpus(counts, theirs[0].get_feature_names_out())
    assert set(pb.topics.diagnostics(theirs[-1], named, 3).words.ravel()) <= words
    arguments = pb.interop.pyldavis_arguments(theirs, TEXTS)
    assert set(arguments["vocab"]) == words
