"""Bad models and corpora of other packages: one clear line each, which names the remedy."""

import copy
from functools import cache
from pathlib import Path

import anndata
import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn import decomposition
from sklearn.feature_extraction import text
from sklearn.pipeline import make_pipeline

import polyabayes as pb
from helpers.foreign_models import of_gensim, of_tomotopy

tomotopy = pytest.importorskip("tomotopy")
gensim_models = pytest.importorskip("gensim.models")

CountVectorizer = text.CountVectorizer
LatentDirichletAllocation = decomposition.LatentDirichletAllocation

TOKENS = [["urn", "ball", "urn"], ["gene", "cell"], ["ball", "urn"], ["cell", "gene", "gene"]] * 5
TEXTS = [" ".join(words) for words in TOKENS]


COUNTS = CountVectorizer().fit_transform(TEXTS)
SHORT = [["urn", "ball", "ball"], ["gene", "cell"]]
OTHER = pb.Corpus.from_documents([["urn", "law"], ["sum"]])


@cache
def sklearn_lda():
    return LatentDirichletAllocation(2, random_state=0).fit(COUNTS)


@cache
def gensim_parts():
    """A model and its bags."""
    return of_gensim(TOKENS)


def gensim_tfidf():
    return gensim_models.TfidfModel(gensim_parts()[1])[gensim_parts()[1]]


def of_tomo(**options):
    return of_tomotopy("LDAModel", TOKENS, k=2, **options)


def never_trained():
    model = tomotopy.LDAModel()
    model.add_doc(["urn", "ball"])
    return model


def pipeline(*steps):
    return make_pipeline(*steps, LatentDirichletAllocation(2, random_state=0)).fit(TEXTS)


def without(model, name):
    """The same model as a version that lacks an attribute would have it."""
    older = copy.copy(model)
    del older.__dict__[name]
    return older


class LDAModel:
    """As a tomotopy from before term weights could be asked for."""

    __module__ = "tomotopy"


@pytest.mark.parametrize(
    "make", [lambda: pipeline(CountVectorizer()), lambda: gensim_parts()[0], of_tomo]
)
def test_words_that_a_model_lacks_may_be_dropped(make):
    dropped = pb.log_likelihood(make(), OTHER, unseen="drop")
    assert dropped.n_unseen_tokens == 2
    assert dropped.n_tokens.tolist() == [1, 0]


def of_mallet(text, option):
    """Read a table of MALLET."""
    Path("table").write_text(text)
    return pb.interop.from_mallet(doc_topic_prior=0.5, topic_word_prior=0.1, **{option: "table"})


WEIGHTS = "".join(f"{k}\t{word}\t0.5\n" for k in (0, 1) for word in ("urn", "ball"))


def of_java(read, pack=bytes):
    """Read what MALLET serialised."""
    java = b"\xac\xed\x00\x05sr\x00\x20cc.mallet.topics.TopicInferencer"
    Path("inferencer.mallet").write_bytes(pack(java))
    return read("inferencer.mallet")


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


def test_multicore_models_of_gensim_are_taken():
    model, bags = gensim_parts()
    lda = gensim_models.LdaMulticore(bags, 2, model.id2word, workers=1, random_state=0)
    np.testing.assert_allclose(pb.interop.from_gensim(lda).components_, lda.get_topics(), rtol=1e-5)


def test_minibatch_factorisations_are_taken():
    options = {"beta_loss": "kullback-leibler", "init": "random", "random_state": 0}
    theirs = decomposition.MiniBatchNMF(2, **options).fit(COUNTS)
    ours = pb.interop.from_sklearn(theirs, shape=1.0, probability=0.5)
    np.testing.assert_array_equal(ours.components_, theirs.components_)


def test_corpora_of_tomotopy_have_words_and_uids():
    theirs = tomotopy.utils.Corpus()
    for number, words in enumerate(TOKENS):
        theirs.add_doc(words, uid=f"d{number}")
    found = pb.Corpus(theirs)
    wanted = pb.Corpus.from_documents(TOKENS)
    assert (found.counts != wanted.counts).nnz == 0
    assert found.vocabulary.tolist() == wanted.vocabulary.tolist()
    assert found.ids[:2].tolist() == ["d0", "d1"]
    raw = tomotopy.utils.Corpus(tokenizer=tomotopy.utils.SimpleTokenizer())
    raw.process(TEXTS)
    assert (pb.Corpus(raw).counts != wanted.counts).nnz == 0
    assert pb.Corpus(raw).ids is None
    model = of_tomo()
    values = (pb.log_likelihood(model, x).values for x in (theirs, wanted))
    np.testing.assert_array_equal(*values)


def cells(change=np.asarray):
    values = np.random.default_rng(0).poisson(1.0, (12, 4)).astype(np.float32)
    names = {"obs": pd.DataFrame(index=[f"c{i}" for i in range(12)])}
    names["var"] = pd.DataFrame(index=["ball", "cell", "gene", "urn"])
    return anndata.AnnData(sparse.csr_matrix(change(values)), **names)


def test_anndata_goes_wherever_documents_go():
    adata = cells()
    corpus = pb.Corpus(adata)
    options = {"max_iter": 10, "random_state": 0}
    lda = pb.LatentDirichletAllocation(2, **options).fit(adata)
    np.testing.assert_array_equal(lda.components_, lda.fit(corpus).components_)
    np.testing.assert_array_equal(lda.transform(adata), lda.transform(corpus))
    assert lda.score(adata) == lda.score(corpus)
    theirs = sklearn_lda(), gensim_parts()[0], of_tomo(), pipeline(CountVectorizer())
    for model in (lda, *theirs):
        scores = [pb.log_likelihood(model, x).values for x in (adata, corpus)]
        np.testing.assert_array_equal(*scores)
    assert pb.split_tokens(adata, random_state=0)[0].ids.tolist() == corpus.ids.tolist()
    assert pb.topics.top_documents(lda, adata, 2).ids.shape == (2, 2)
    nmf = pb.AllocationModel.nmf(2)
    wanted = nmf.decompose(corpus, max_iter=5, random_state=0).value
    assert nmf.decompose(adata, max_iter=5, random_state=0).value == wanted


def test_a_pipeline_reads_texts_and_a_column_is_read_in_a_table():
    assert np.isfinite(pb.log_likelihood(pipeline(CountVectorizer()), TEXTS).values).all()
    column = pytest.importorskip("polars").Series([["urn", "ball"], ["urn"]])
    assert pb.Corpus(column.to_frame("text")).vocabulary.tolist() == ["ball", "urn"]
