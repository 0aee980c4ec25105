"""Bad models and corpora of other packages: one clear line each, which names the remedy."""

import copy
import gzip

import anndata
import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.decomposition import NMF, LatentDirichletAllocation, MiniBatchNMF
from sklearn.feature_extraction.text import (
    CountVectorizer,
    HashingVectorizer,
    TfidfTransformer,
    TfidfVectorizer,
)
from sklearn.pipeline import make_pipeline

import polyabayes as pb
from helpers.foreign_models import of_gensim, of_tomotopy
from helpers.refusals import assert_refused
from polyabayes import exceptions as errors

tomotopy = pytest.importorskip("tomotopy")
gensim_models = pytest.importorskip("gensim.models")

TOKENS = [["urn", "ball", "urn"], ["gene", "cell"], ["ball", "urn"], ["cell", "gene", "gene"]] * 5
TEXTS = [" ".join(text) for text in TOKENS]


@pytest.fixture(scope="module")
def counts():
    return CountVectorizer().fit_transform(TEXTS)


@pytest.fixture(scope="module")
def sklearn_lda(counts):
    return LatentDirichletAllocation(2, random_state=0).fit(counts)


@pytest.fixture(scope="module")
def gensim_parts():
    model, bags = of_gensim(TOKENS)
    return model.id2word, bags


@pytest.fixture(scope="module")
def gensim_lda():
    return of_gensim(TOKENS)[0]


def test_models_that_were_not_fitted(counts, gensim_parts):
    dictionary, _ = gensim_parts
    never_trained = tomotopy.LDAModel()
    never_trained.add_doc(["urn", "ball"])
    unfitted = {
        "scikit-learn is not fitted yet: call its fit": [
            LatentDirichletAllocation(),
            NMF(),
            make_pipeline(CountVectorizer(), LatentDirichletAllocation()),
        ],
        "call its update": [gensim_models.LdaModel(id2word=dictionary, num_topics=2)],
        "call its train": [tomotopy.LDAModel(), never_trained],
        "call fit, or make it by from_parameters": [
            pb.LatentDirichletAllocation(),
            make_pipeline(CountVectorizer(), pb.PoissonFactorAnalysis()),
        ],
    }
    for message, models in unfitted.items():
        for model in models:
            assert_refused(errors.NotFittedError, message, pb.log_likelihood, model, counts)
            assert_refused(errors.NotFittedError, message, pb.topics.diversity, model)
            assert_refused(errors.NotFittedError, message, pb.plotting.plot_topics, model)


def test_words_need_a_vocabulary(sklearn_lda):
    message = "has words, but the model has no vocabulary to find them in: give counts"
    four_words = [["urn", "ball", "ball"], ["gene", "cell"]]
    models = {"one": sklearn_lda, "other": sklearn_lda}
    for documents in (four_words, [" ".join(words) for words in four_words], iter(four_words)):
        assert_refused(
            errors.InvalidArgumentError, message, pb.log_likelihood, sklearn_lda, documents
        )
    assert_refused(errors.InvalidArgumentError, message, pb.compare, models, four_words)


def without(model, name):
    """The same model as a version that lacks an attribute would have it."""
    older = copy.copy(model)
    del older.__dict__[name]
    return older


def test_versions_whose_attributes_are_missing(sklearn_lda, gensim_lda, counts):
    class LDAModel:
        """As a tomotopy from before term weights could be asked for."""

        __module__ = "tomotopy"

    models = {
        r"no attribute 'doc_topic_prior_'.*version of scikit-learn": without(
            sklearn_lda, "doc_topic_prior_"
        ),
        r"no attribute 'state'.*version of gensim": without(gensim_lda, "state"),
        r"no attribute 'tw'.*version of tomotopy": LDAModel(),
    }
    for message, model in models.items():
        assert_refused(
            errors.InvalidTypeError, f"{message}.*from_parameters", pb.log_likelihood, model, counts
        )


def test_weights_that_are_no_counts(sklearn_lda, gensim_lda, gensim_parts):
    lda = LatentDirichletAllocation(2, random_state=0)
    for steps in (
        (TfidfVectorizer(),),
        (CountVectorizer(), TfidfTransformer()),
        (HashingVectorizer(n_features=16, alternate_sign=False, norm=None),),
    ):
        pipeline = make_pipeline(*steps, lda).fit(TEXTS)
        assert_refused(
            errors.InvalidArgumentError, "CountVectorizer", pb.log_likelihood, pipeline, TEXTS
        )
    weighted = TfidfVectorizer().fit_transform(TEXTS)
    assert_refused(errors.InvalidCountsError, "tf-idf", pb.log_likelihood, sklearn_lda, weighted)
    dictionary, bags = gensim_parts
    tfidf = gensim_models.TfidfModel(bags)[bags]
    assert_refused(errors.InvalidCountsError, "tf-idf", pb.log_likelihood, gensim_lda, tfidf)
    assert_refused(errors.InvalidCountsError, "tf-idf", pb.Corpus.from_gensim, tfidf, dictionary)
    for weighting in (tomotopy.TermWeight.IDF, tomotopy.TermWeight.PMI):
        model = of_tomotopy("LDAModel", TOKENS, k=2, tw=weighting)
        message = r"idf or pmi.*TermWeight\.ONE"
        assert_refused(
            errors.InvalidArgumentError, message, pb.log_likelihood, model, [[1, 2, 3, 4]]
        )


def test_vocabularies_that_do_not_match(sklearn_lda, gensim_lda):
    other = pb.Corpus.from_documents([["urn", "law"], ["sum"]])
    named = {
        "pipeline": make_pipeline(CountVectorizer(), LatentDirichletAllocation(2)).fit(TEXTS),
        "gensim": gensim_lda,
        "tomotopy": of_tomotopy("LDAModel", TOKENS, k=2),
    }
    for model in named.values():
        message = r"have 2 words \('law', 'sum'\) outside.*unseen='drop'"
        assert_refused(errors.InvalidArgumentError, message, pb.log_likelihood, model, other)
        dropped = pb.log_likelihood(model, other, unseen="drop")
        assert dropped.n_unseen_tokens == 2
        assert dropped.n_tokens.tolist() == [1, 0]
    message = "has 3 features, but LatentDirichletAllocation is expecting 4"
    assert_refused(
        errors.InvalidArgumentError, message, pb.log_likelihood, sklearn_lda, [[1, 2, 3]]
    )
    message = "vocabulary has 3 words, but the LatentDirichletAllocation has 4 columns"
    assert_refused(
        errors.InvalidArgumentError, message, pb.interop.from_sklearn, sklearn_lda, ["a", "b", "c"]
    )
    assert_refused(
        errors.InvalidTypeError, "sequence of str", pb.interop.from_sklearn, sklearn_lda, "abcd"
    )
    named = pb.interop.from_sklearn(sklearn_lda, of_tomotopy("LDAModel", TOKENS, k=2).used_vocabs)
    assert sorted(named.vocabulary_) == ["ball", "cell", "gene", "urn"]


def test_damaged_and_serialised_files_of_mallet(tmp_path):
    lines = "".join(f"{k}\t{word}\t0.5\n" for k in (0, 1) for word in ("urn", "ball"))
    counts = "0 urn 0:1\n1 ball 1:1\n"
    for name, text, option, kind in (
        ("weights", lines, "topic_word_weights", "cut"),
        ("weights", lines[: lines.rindex("1\t")], "topic_word_weights", "3 weights where 2 topics"),
        ("counts", counts, "word_topic_counts", "cut"),
    ):
        path = tmp_path / name
        path.write_text(text if kind[0].isdigit() else text[:-3])
        assert_refused(
            errors.FileFormatError,
            kind,
            pb.interop.from_mallet,
            doc_topic_prior=0.5,
            topic_word_prior=0.1,
            **{option: path},
        )
    java = b"\xac\xed\x00\x05sr\x00\x20cc.mallet.topics.TopicInferencer"
    for name, content in (("inferencer.mallet", java), ("inferencer.gz", gzip.compress(java))):
        (tmp_path / name).write_bytes(content)
        for call in (pb.interop.from_mallet, pb.interop.read_model):
            assert_refused(
                errors.FileFormatError, "Java object.*--output-state", call, tmp_path / name
            )
    assert_refused(
        errors.FileFormatError,
        "Java object.*give the text file that was imported",
        pb.read_corpus,
        tmp_path / "inferencer.mallet",
    )


@pytest.mark.parametrize("eta", [0.3, "words", "topics", "auto"])
@pytest.mark.parametrize("alpha", ["symmetric", "asymmetric", "auto"])
def test_priors_of_gensim_in_every_form(eta, alpha):
    forms = {"words": np.full(4, 0.2), "topics": np.full((2, 4), 0.4)}
    prior = forms.get(eta, eta) if isinstance(eta, str) else eta
    lda, _ = of_gensim(TOKENS, alpha=alpha, eta=prior)
    ours = pb.interop.from_gensim(lda)
    # An eta that is learned counts from the next pass on: the topics hold the one before.
    eta_of_topics = np.asarray(lda.state.eta, dtype=np.float64)
    pseudo_counts = lda.state.sstats.astype(np.float64) + eta_of_topics
    wanted = pseudo_counts / pseudo_counts.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(ours.components_, wanted, rtol=1e-6)
    np.testing.assert_allclose(ours.components_, lda.get_topics(), rtol=1e-5)
    np.testing.assert_array_equal(ours.doc_topic_prior_, lda.alpha.astype(np.float64))
    if alpha == "symmetric":
        assert ours.doc_topic_prior_.tolist() == [0.5, 0.5]


def test_multicore_models_of_gensim_are_taken(gensim_parts):
    dictionary, bags = gensim_parts
    lda = gensim_models.LdaMulticore(bags, 2, dictionary, workers=1, random_state=0)
    np.testing.assert_allclose(pb.interop.from_gensim(lda).components_, lda.get_topics(), rtol=1e-5)


def test_minibatch_factorisations_are_taken(counts):
    options = {"beta_loss": "kullback-leibler", "init": "random", "random_state": 0}
    theirs = MiniBatchNMF(2, **options).fit(counts)
    ours = pb.interop.from_sklearn(theirs, shape=1.0, probability=0.5)
    np.testing.assert_array_equal(ours.components_, theirs.components_)


def test_corpora_of_tomotopy_have_words_and_uids():
    theirs = tomotopy.utils.Corpus()
    for number, text in enumerate(TOKENS):
        theirs.add_doc(text, uid=f"d{number}")
    found = pb.Corpus(theirs)
    wanted = pb.Corpus.from_documents(TOKENS)
    assert (found.counts != wanted.counts).nnz == 0
    assert found.vocabulary.tolist() == wanted.vocabulary.tolist()
    assert found.ids[:2].tolist() == ["d0", "d1"]
    raw = tomotopy.utils.Corpus(tokenizer=tomotopy.utils.SimpleTokenizer())
    raw.process(TEXTS)
    assert (pb.Corpus(raw).counts != wanted.counts).nnz == 0
    assert pb.Corpus(raw).ids is None
    model = of_tomotopy("LDAModel", TOKENS, k=2)
    np.testing.assert_array_equal(
        pb.log_likelihood(model, theirs).values, pb.log_likelihood(model, wanted).values
    )


@pytest.fixture(scope="module")
def cells():
    values = np.random.default_rng(0).poisson(1.0, (12, 4)).astype(np.float32)
    names = {"obs": pd.DataFrame(index=[f"c{i}" for i in range(12)])}
    names["var"] = pd.DataFrame(index=["ball", "cell", "gene", "urn"])
    return anndata.AnnData(sparse.csr_matrix(values), **names)


def test_anndata_goes_wherever_documents_go(cells, sklearn_lda, gensim_lda):
    corpus = pb.Corpus(cells)
    options = {"max_iter": 10, "random_state": 0}
    lda = pb.LatentDirichletAllocation(2, **options).fit(cells)
    np.testing.assert_array_equal(lda.components_, lda.fit(corpus).components_)
    np.testing.assert_array_equal(lda.transform(cells), lda.transform(corpus))
    assert lda.score(cells) == lda.score(corpus)
    pipeline = make_pipeline(CountVectorizer(), LatentDirichletAllocation(2)).fit(TEXTS)
    for model in (lda, sklearn_lda, gensim_lda, of_tomotopy("LDAModel", TOKENS, k=2), pipeline):
        found = pb.log_likelihood(model, cells)
        np.testing.assert_array_equal(found.values, pb.log_likelihood(model, corpus).values)
    assert pb.split_tokens(cells, random_state=0)[0].ids.tolist() == corpus.ids.tolist()
    assert pb.topics.top_documents(lda, cells, 2).ids.shape == (2, 2)
    nmf = pb.AllocationModel.nmf(2)
    wanted = nmf.decompose(corpus, max_iter=5, random_state=0).value
    assert nmf.decompose(cells, max_iter=5, random_state=0).value == wanted
    assert_refused(
        errors.InvalidTypeError, "from_corpus", pb.CountTensor.from_dense, cells, ["a", "b"]
    )


def test_normalised_cells_are_refused_everywhere(cells, sklearn_lda):
    logged = cells.copy()
    logged.X = np.log1p(cells.X.toarray())
    message = r"normalised or log-transformed.*raw counts"
    for call in (
        pb.Corpus,
        pb.LatentDirichletAllocation(2).fit,
        lambda data: pb.log_likelihood(sklearn_lda, data),
        pb.AllocationModel.nmf(2).decompose,
    ):
        assert_refused(errors.InvalidArgumentError, message, call, logged)


def test_documents_that_a_vectoriser_cannot_read_and_columns_without_a_table_are_refused():
    texts = ["the ball", "an urn ball", "law"]
    lda = LatentDirichletAllocation(2, random_state=0)
    theirs = make_pipeline(CountVectorizer(), lda).fit(texts)
    assert np.isfinite(pb.log_likelihood(theirs, texts).values).all()
    assert_refused(errors.InvalidTypeError, "vectoriser", pb.log_likelihood, theirs, [["urn"]])
    column = pytest.importorskip("polars").Series([["urn", "ball"], ["urn"]])
    assert_refused(errors.InvalidTypeError, "a column of one", pb.Corpus, column)
    assert pb.Corpus(column.to_frame("text")).vocabulary.tolist() == ["ball", "urn"]
