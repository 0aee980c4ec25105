"""Counts from what other programs hold in memory."""

from functools import partial

import anndata
import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.decomposition import LatentDirichletAllocation
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.pipeline import make_pipeline

import polyabayes as pb
import polyabayes.exceptions as errors
from helpers.foreign_models import of_gensim
from helpers.refusals import assert_refused
from helpers.small_models import known_lda

COUNTS = np.array([[1, 0, 2], [0, 3, 1]])
WORDS = ["a", "b", "c"]


def test_tokens_are_counted():
    corpus = pb.Corpus.from_documents([["c", "a", "c"], ("b", "b", "c", "b")], ids=["x", "y"])
    assert corpus.counts.toarray().tolist() == COUNTS.tolist()
    assert corpus.vocabulary.tolist() == WORDS
    assert corpus.ids.tolist() == ["x", "y"]
    wider = pb.Corpus.from_documents([["a"], []], vocabulary=["b", "a"])
    assert wider.counts.toarray().tolist() == [[0, 1], [0, 0]]


def test_bags_of_gensim_are_read_once_and_may_have_gaps():
    bags = ([pair] for pair in [(0, 2), (3, 1.0)])
    corpus = pb.Corpus.from_gensim(bags, {0: "urn", 3: "ball", 4: "law"})
    assert corpus.vocabulary.tolist() == ["urn", "#1", "#2", "ball", "law"]
    assert corpus.counts.toarray().tolist() == [[2, 0, 0, 0, 0], [0, 0, 0, 1, 0]]
    assert pb.Corpus.from_gensim([[(1, 1), (1, 2)]]).counts.toarray().tolist() == [[0, 3]]


def test_a_gensim_model_scores_its_own_bags():
    texts = [["urn", "ball"], ["law", "sum", "law"], ["ball", "urn", "urn"]] * 5
    lda, bags = of_gensim(texts)
    of_bags = pb.log_likelihood(lda, bags[:3])
    of_words = pb.log_likelihood(lda, pb.Corpus.from_documents(texts[:3]))
    np.testing.assert_allclose(of_bags.values, of_words.values, rtol=1e-12)
    # Streams, which every door reads once, and empty documents.
    streamed = pb.log_likelihood(lda, map(lda.id2word.doc2bow, texts[:3]))
    np.testing.assert_array_equal(streamed.values, of_bags.values)
    assert pb.log_likelihood(lda, [[]]).values.tolist() == [0.0]
    assert pb.log_likelihood(lda, [[], bags[0]]).values[1] == of_bags.values[0]
    with pytest.raises(errors.InvalidArgumentError, match="holds the id 9"):
        pb.log_likelihood(lda, [[(9, 1)]])


def cells(**layers):
    names = {"obs": pd.DataFrame(index=["x", "y"]), "var": pd.DataFrame(index=WORDS)}
    return anndata.AnnData(COUNTS.astype(np.float32), layers=layers, **names)


@pytest.mark.parametrize("cls", [pb.LatentDirichletAllocation, pb.PoissonFactorAnalysis])
def test_a_layer_is_taken_wherever_an_anndata_is(cls, tmp_path):
    logged = cells(counts=sparse.csr_matrix(COUNTS))
    logged.X = np.log1p(COUNTS)
    corpus = pb.Corpus.from_anndata(logged, "counts")
    model = cls(2, max_iter=4, random_state=0)
    weights = model.fit_transform(logged, layer="counts")
    same = cls(2, max_iter=4, random_state=0).fit(corpus)
    np.testing.assert_array_equal(model.components_, same.components_)
    np.testing.assert_array_equal(weights, same.transform(corpus))
    own = model.transform, model.topic_weights, model.score_samples, model.score, model.perplexity
    calls = [*own, model.fit, partial(pb.log_likelihood, model), partial(pb.compare, {"a": model})]
    calls += [model.partial_fit] if hasattr(model, "partial_fit") else []
    topics = pb.topics
    looks = topics.diagnostics, topics.top_documents, topics.coherence
    calls += [partial(look, model) for look in looks]
    calls += [partial(topics.by_group, model, by=["a", "b"])]
    calls += [partial(topics.report, model, path=tmp_path / "page.html")]
    calls += [pb.WitnessSearch(cls(), pb.priors.Geometric(0.5), max_steps=1).fit]
    for call in calls:
        assert_refused(errors.InvalidArgumentError, "use layer='counts'", call, logged)
        with pytest.raises(errors.InvalidTypeError, match="layer is for an AnnData, got Corpus"):
            call(corpus, layer="counts")
    by_group = partial(topics.by_group, by=["a", "b"])
    looks = [partial(look, model) for look in (*looks, by_group)]
    scores = partial(pb.log_likelihood, model, random_state=0)
    differences = partial(pb.compare, {"a": model, "b": same}, random_state=0)
    for call in (model.score, model.perplexity, model.score_samples, scores, differences, *looks):
        results = call(logged, layer="counts"), call(corpus)
        np.testing.assert_equal(*(x.to_json() if hasattr(x, "to_json") else x for x in results))
    if cls is pb.LatentDirichletAllocation:
        more = model.partial_fit(logged, layer="counts").components_
        np.testing.assert_array_equal(more, same.partial_fit(corpus).components_)


def test_anndata_is_read_with_its_names(tmp_path):
    corpus = pb.Corpus(cells())
    assert (corpus.vocabulary.tolist(), corpus.ids.tolist()) == (WORDS, ["x", "y"])
    assert corpus.counts.toarray().tolist() == COUNTS.tolist()
    stored = cells(counts=sparse.csr_matrix(COUNTS))
    stored.X = sparse.csr_matrix(np.log1p(COUNTS))
    stored.write_h5ad(tmp_path / "cells.h5ad")
    backed = anndata.read_h5ad(tmp_path / "cells.h5ad", backed="r")
    told = r"0\.693147 .*'x', .*'a', .*'counts'.*layer="
    with pytest.raises(errors.InvalidArgumentError, match=told):
        pb.Corpus(backed)
    read = pb.Corpus.from_anndata(backed, layer="counts")
    assert read.counts.toarray().tolist() == COUNTS.tolist()


def test_backed_blocks_come_together(tmp_path):
    rng = np.random.default_rng(0)
    counts = sparse.random_array((2_345, 7), density=0.4, rng=rng, format="csr")
    counts.data = rng.integers(1, 9, counts.nnz).astype(np.float32)
    anndata.AnnData(sparse.csr_matrix(counts)).write_h5ad(tmp_path / "cells.h5ad")
    read = pb.Corpus(anndata.read_h5ad(tmp_path / "cells.h5ad", backed="r"))
    assert (read.counts != counts).nnz == 0


def test_topics_go_into_anndata(tmp_path):
    adata = cells()
    phi = [[0.8, 0.1, 0.1], [0.1, 0.1, 0.8]]
    lda = known_lda([0.5, 0.2], phi, vocabulary=["c", "b", "a"], random_state=0)
    pb.interop.to_anndata(adata, lda, key="lda")
    np.testing.assert_array_equal(adata.obsm["X_lda"], lda.transform(pb.Corpus(cells())))
    std = lda.topic_weights(pb.Corpus(cells())).std
    np.testing.assert_array_equal(adata.obsm["X_lda_std"], std)
    np.testing.assert_array_equal(adata.varm["lda"], lda.components_.T[::-1])
    assert "lda_std" not in adata.varm
    trained = pb.LatentDirichletAllocation(2, max_iter=10, random_state=0).fit(pb.Corpus(cells()))
    pb.interop.to_anndata(adata, trained, key="trained")
    np.testing.assert_array_equal(adata.varm["trained_std"], trained.components_std_.T)
    assert adata.uns["lda"]["model"] == "LatentDirichletAllocation"
    np.testing.assert_array_equal(adata.uns["lda"]["doc_topic_prior"], [0.5, 0.2])
    main = adata.obsm["X_lda"].argmax(axis=1)
    assert adata.obs["lda"].tolist() == [f"topic {k}" for k in main]
    # Scanpy's pictures of rank_genes_groups look here; the file keeps it.
    adata.write_h5ad(tmp_path / "cells.h5ad")
    genes = anndata.read_h5ad(tmp_path / "cells.h5ad").uns["rank_genes_lda"]
    assert genes["params"]["groupby"] == "lda"
    assert genes["names"].dtype.names == ("topic 0", "topic 1")
    assert genes["names"]["topic 0"].tolist() == ["c", "b", "a"]
    # FREX of ranks 3, 1.5, 1.5 by frequency and 3, 2, 1 by exclusivity; lift over the mean topic.
    assert genes["scores"]["topic 0"].tolist() == pytest.approx([1, 4 / 7, 2 / 5])
    lift = np.array([0.8 / 0.45, 0.1 / 0.1, 0.1 / 0.45])
    np.testing.assert_allclose(genes["logfoldchanges"]["topic 0"], np.log2(lift), atol=1e-12)


def test_activities_in_anndata_do_not_follow_the_depth():
    rng = np.random.default_rng(0)
    depth, activity = rng.lognormal(3.5, 1.0, 200), rng.gamma(2.0, size=(200, 2))
    programmes = np.array([[0.6, 0.4, 0.0, 0.0], [0.0, 0.0, 0.3, 0.7]])
    counts = rng.poisson(depth[:, np.newaxis] * activity @ programmes)
    kept = counts.sum(axis=1) > 0
    depth, activity, counts = depth[kept], activity[kept], counts[kept]
    adata = anndata.AnnData(counts.astype(float), obs={"depth": depth})
    pfa = pb.PoissonFactorAnalysis(2, max_iter=60, random_state=0)
    pfa.fit(adata, exposure="depth")
    with pytest.raises(errors.InvalidArgumentError, match="give exposure"):
        pb.interop.to_anndata(adata, pfa)
    assert not adata.obsm
    pb.interop.to_anndata(adata, pfa, exposure="depth")
    found = adata.obsm["X_polyabayes"].sum(axis=1)
    assert abs(np.corrcoef(np.log(found), np.log(depth))[0, 1]) < 0.2
    assert np.corrcoef(found, activity.sum(axis=1))[0, 1] > 0.9
    lda = pb.LatentDirichletAllocation(2, max_iter=5, random_state=0).fit(adata)
    with pytest.raises(errors.InvalidArgumentError, match="LDA takes the lengths"):
        pb.interop.to_anndata(adata, lda, exposure="depth")


@pytest.mark.parametrize(
    ("library", "ids"), [("polars", None), ("polars", ["x", "y"]), ("pyarrow", ["x", "y"])]
)
def test_tables_of_other_libraries_are_read_by_arrow(library, ids):
    library = pytest.importorskip(library)
    make = library.table if hasattr(library, "table") else library.DataFrame
    columns = dict(zip(WORDS, COUNTS.T.tolist(), strict=True))
    corpus = pb.Corpus(make(columns if ids is None else {"id": ids, **columns}))
    assert corpus.counts.toarray().tolist() == COUNTS.tolist()
    assert corpus.vocabulary.tolist() == WORDS
    assert (None if corpus.ids is None else corpus.ids.tolist()) == ids


REVIEWS = ["An urn of balls", "no urn, but a gene", "Balls!"]


def test_datasets_of_hugging_face_are_counted_by_text_or_tokens():
    datasets = pytest.importorskip("datasets")
    reviews = datasets.Dataset.from_dict({"text": REVIEWS, "label": [1, 0, 1]})
    corpus = pb.Corpus(reviews)
    assert corpus.vocabulary.tolist() == ["an", "balls", "but", "gene", "no", "of", "urn"]
    assert corpus.counts.sum(axis=1).ravel().tolist() == [[4, 4, 1]]
    # A selection keeps its table and adds a list of rows.
    chosen = reviews.select([2, 0])
    np.testing.assert_array_equal(pb.Corpus(chosen).counts.sum(axis=1).ravel(), [[1, 4]])
    tokens = datasets.Dataset.from_dict({"id": ["x", "y"], "tokens": [["b", "a", "b"], ["c"]]})
    found = pb.Corpus(tokens)
    assert (found.ids.tolist(), found.vocabulary.tolist()) == (["x", "y"], ["a", "b", "c"])
    assert found.counts.toarray().tolist() == [[1, 2, 0], [0, 0, 1]]
    wide = datasets.Dataset.from_dict({"id": ["x", "y"], "a": [1, 0], "b": [0, 3]})
    assert pb.Corpus(wide).ids.tolist() == ["x", "y"]


def test_models_score_datasets_as_they_are():
    datasets = pytest.importorskip("datasets")
    pipeline = make_pipeline(CountVectorizer(), LatentDirichletAllocation(2, random_state=0))
    pipeline.fit(REVIEWS)
    raw = pb.log_likelihood(pipeline, REVIEWS).values
    for table in (datasets.Dataset.from_dict({"text": REVIEWS}), pd.DataFrame({"text": REVIEWS})):
        np.testing.assert_array_equal(pb.log_likelihood(pipeline, table).values, raw)
        ours = pb.interop.from_sklearn(pipeline[-1], pipeline[:-1])
        np.testing.assert_array_equal(pb.log_likelihood(ours, table).values, raw)
    counts = pd.DataFrame(
        pipeline[0].transform(REVIEWS).toarray(), columns=pipeline[0].get_feature_names_out()
    )
    np.testing.assert_array_equal(pb.log_likelihood(pipeline, counts).values, raw)
    np.testing.assert_array_equal(pb.log_likelihood(pipeline, counts.values.tolist()).values, raw)


def text_tables():
    polars, pyarrow = pytest.importorskip("polars"), pytest.importorskip("pyarrow")
    texts = {"label": [1, 0, 1], "sentence": REVIEWS}
    yield from (pd.DataFrame(texts), polars.DataFrame(texts), pyarrow.table(texts))


def test_tables_of_every_library_hold_texts_tokens_or_single_counts():
    polars, pyarrow = pytest.importorskip("polars"), pytest.importorskip("pyarrow")
    kinds = pd.DataFrame, polars.DataFrame, pyarrow.table
    long = {"document": ["y", "x", "x"], "word": ["c", "a", "c"], "count": [1, 1, 2]}
    for table in text_tables():
        found = pb.Corpus.from_table(table, "sentence", min_df=2)
        assert found.vocabulary.tolist() == ["balls", "urn"]
    named = pd.DataFrame({"text": ["an urn", "a ball"]}, index=["x", "y"])
    assert pb.Corpus(named).ids.tolist() == ["x", "y"]
    for kind in kinds:
        found = pb.Corpus(kind(long))
        assert (found.ids.tolist(), found.vocabulary.tolist()) == (["y", "x"], ["a", "c"])
        assert found.counts.toarray().tolist() == [[0, 1], [1, 2]]
        tokens = pb.Corpus.from_table(kind({"t": [["a", "b"], ["b"]]}), "t", ["b", "a"])
        assert tokens.counts.toarray().tolist() == [[1, 1], [1, 0]]


@pytest.mark.parametrize("are_tokens", [False, True])
def test_texts_and_tokens_take_the_same_options(are_tokens):
    texts = ["the urns of balls", "", "an urn of red balls"]
    documents = [text.split() for text in texts] if are_tokens else texts
    options = {"stop_words": "english", "stem": "english", "ngram_range": (1, 2), "min_df": 2}
    corpus = pb.Corpus.from_documents(documents, ids=["x", "y", "z"], **options)
    assert corpus.vocabulary.tolist() == ["ball", "urn"]
    assert corpus.counts.toarray().tolist() == [[1, 1], [0, 0], [1, 1]]
    with pytest.warns(errors.DataWarning, match="1 document without words dropped, at document 1"):
        left = pb.Corpus.from_documents(documents, ids=["x", "y", "z"], on_empty="drop", **options)
    assert left.ids.tolist() == ["x", "z"]
    table = pb.Corpus.from_table(pd.DataFrame({"text": documents}), "text", **options)
    assert (table.counts != corpus.counts).nnz == 0
    if not are_tokens:
        assert (pb.Corpus(pd.Series(texts)).counts != pb.Corpus(texts).counts).nnz == 0


def test_stop_words_of_a_language_are_filtered():
    corpus = pb.Corpus.from_documents([["the", "urn"], ["der", "urn"]])
    assert corpus.filter(stop_words="english").vocabulary.tolist() == ["der", "urn"]
    pytest.importorskip("stop_words")
    assert corpus.filter(stop_words="german").vocabulary.tolist() == ["the", "urn"]


def test_modalities_of_mudata_are_corpora_of_the_same_cells():
    mudata = pytest.importorskip("mudata")
    parts = {}
    for name, rows in (("rna", ["x", "y", "z"]), ("atac", ["z", "x"])):
        counts = np.arange(len(rows) * 2).reshape(-1, 2)
        words = pd.DataFrame(index=[f"{name} 0", f"{name} 1"])
        parts[name] = anndata.AnnData(np.log1p(counts), pd.DataFrame(index=rows), words)
        parts[name].layers["counts"] = counts
    with mudata.set_options(pull_on_update=False):
        cells = mudata.MuData(parts)
    with pytest.warns(errors.DataWarning, match="1 cells that some modality lacks"):
        found = pb.interop.from_mudata(cells, layer={"rna": "counts", "atac": "counts"})
    assert [corpus.ids.tolist() for corpus in found.values()] == [["x", "z"]] * 2
    assert found["atac"].counts.toarray().tolist() == [[2, 3], [0, 1]]
    with pytest.raises(errors.InvalidArgumentError, match="layer='counts'"):
        pb.interop.from_mudata(cells, ["rna"])
    with pytest.raises(errors.InvalidArgumentError, match="no modality 'adt'; it has 'rna'"):
        pb.interop.from_mudata(cells, ["adt"])


def test_words_may_be_a_sequence_without_iter():
    class Words:
        """As tomotopy's ``used_vocabs``: items and a length, no ``__iter__``."""

        def __len__(self):
            return 3

        def __getitem__(self, column):
            return WORDS[column]

    assert pb.Corpus(COUNTS, Words()).vocabulary.tolist() == WORDS
