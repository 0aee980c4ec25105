"""What people bring, by files, data frames and commands: the right number, or the remedy.

Each case is the smallest input of a kind that packages and their users met with. What has a test in
its own room is not told again here.
"""

import ast
import contextlib
import csv
import email.policy
import gzip
import io
import itertools
import json
import pathlib
import re
import sqlite3
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy
from scipy import sparse
from scipy.io import mmwrite

import polyabayes as pb
from helpers.refusals import assert_refused, call_of
from polyabayes.exceptions import (
    DataWarning,
    FileFormatError,
    InvalidArgumentError,
    PolyabayesError,
)


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_folders_of_texts_are_all_texts_and_nothing_else(here):
    names = ["a.txt", "B.TXT", ".hidden.txt", "._a.txt", ".ipynb_checkpoints/a-checkpoint.txt"]
    (here / "texts/.ipynb_checkpoints").mkdir(parents=True)
    for name in names:
        (here / "texts" / name).write_bytes(b"\x00\xff" if name == "._a.txt" else b"urn ball")
    assert pb.read_corpus("texts").ids.tolist() == ["B.TXT", "a.txt"]


def test_shards_of_wide_tables_and_of_texts_say_what_they_read():
    frame = pd.DataFrame({"doc_id": [1001, 1002], "apple": [2, 0], "pear": [0, 3]})
    assert pb.write_shards(frame, "frame").n_tokens == 5
    frame.to_parquet("wide.parquet")
    assert pb.write_shards("wide.parquet", "read").n_tokens == 5


def test_documents_without_words_make_no_folds_of_their_own():
    model = pb.LatentDirichletAllocation(max_iter=4, random_state=0)
    many = pb.Corpus([[0, 0], [2, 1], [0, 0], [1, 2], [3, 3], [0, 0]])
    # Three documents have tokens: so many folds, each of which has one.
    choice = pb.choose_n_components(model, many, [1, 2], random_state=0)
    assert np.isfinite(choice.to_frame()["score"]).all()


NAMES = ["x", "y", "z"]
NAMED = pb.Corpus([[2, 0], [1, 1], [0, 3]], ids=NAMES)
TOPICS = [[0.7, 0.3], [0.2, 0.8]]
OWN = pd.DataFrame([[1.0, 0.1], [1.0, 0.5], [1.0, 0.9]], index=NAMES)
LDA = pb.LatentDirichletAllocation.from_parameters(doc_topic_prior=1.0, topic_word=TOPICS)
PFA = pb.PoissonFactorAnalysis.from_parameters(topic_word=TOPICS, shape=1.0, probability=0.5)
MIXED = pb.DocumentModel.mixture(TOPICS, [0.5, 0.5])
FITTED = pb.LatentDirichletAllocation(2, max_iter=3, random_state=0)
DMR = pb.DocumentModel.dirichlet(TOPICS, coefficients=[[0.0, 1.5], [0.0, -1.5]])


@pytest.mark.filterwarnings("ignore:there are only")
@pytest.mark.parametrize(
    "call",
    [
        lambda rows: pb.log_likelihood(DMR, NAMED, covariates=rows).values,
        lambda rows: FITTED.fit(NAMED, covariates=rows[[1]]).coefficients_,
        lambda rows: pb.log_likelihood(LDA, NAMED, doc_topic_prior=rows).values,
        lambda rows: pb.log_likelihood(PFA, NAMED, shape=rows).values,
        lambda rows: pb.log_likelihood(PFA, NAMED, exposure=rows[1]).values,
        lambda rows: pb.Corpus(NAMED.counts, ids=NAMES, exposure=rows[1]).exposure,
        lambda rows: pb.Corpus(NAMED.counts, ids=NAMES, metadata=rows).metadata["1"],
        lambda rows: NAMED.with_metadata(rows).metadata["1"],
        lambda rows: NAMED.split(1, 0, groups=rows[1])[1].ids == "x",
        lambda rows: NAMED.split(1, 0, stratify=rows[1] > 2)[1].ids == "x",
        lambda rows: NAMED.split(1, 0, times=rows[1])[1].ids == "x",
        lambda rows: PFA.transform(NAMED, exposure=rows[1]),
        lambda rows: PFA.score_samples(NAMED, exposure=rows[1]),
        lambda rows: pb.topics.by_group(LDA, NAMED, rows[1]).means,
        lambda rows: pb.compare({"a": LDA, "b": DMR}, NAMED, covariates=rows).to_frame().to_numpy(),
        lambda rows: (
            pb.compare({"a": LDA, "b": MIXED}, NAMED, groups=rows[1]).to_frame().to_numpy()
        ),
    ],
)
def test_rows_of_pandas_are_matched_by_name_with_the_documents(call):
    expected = call(OWN)
    for same in (OWN[::-1], OWN.reset_index(drop=True)):
        np.testing.assert_array_equal(call(same), expected)
    assert_refused(InvalidArgumentError, "matched by name", call, OWN.set_axis(["x", "y", "w"]))
    assert_refused(InvalidArgumentError, "several rows for 'x'", call, pd.concat([OWN, OWN]))
    others = (OWN * 2).set_axis(["a", "b", "c"])
    np.testing.assert_array_equal(call(pd.concat([others, OWN[::-1]])), expected)


def test_rows_in_another_order_than_they_are_counted_are_refused_without_names():
    counts = pd.DataFrame([[2, 0], [0, 3], [1, 1]], columns=["ball", "cell"])
    years = pd.DataFrame({"yr": [2010, 2001, 2002]}).sort_values("yr")
    corpus, told = pb.Corpus(counts), r"use metadata\.sort_index\(\) .* metadata\.reset_index"
    for call in (corpus.with_metadata, lambda rows: pb.Corpus(counts.to_numpy(), metadata=rows)):
        assert_refused(InvalidArgumentError, told, call, years)
        assert call(years.sort_index()).metadata["yr"].tolist() == [2010, 2001, 2002]
        for rows in (years.reset_index(drop=True), years.set_axis([5, 2, 0])):
            assert call(rows).metadata["yr"].tolist() == [2001, 2002, 2010]
    told = r"use covariates\.sort_index"
    assert_refused(InvalidArgumentError, told, FITTED.fit, corpus, covariates=years)
    named = pb.Corpus(counts, ids=["1", "2", "0"], metadata=years)
    assert named.metadata["yr"].tolist() == [2001, 2002, 2010]


def test_weights_and_covariates_of_rows_are_matched_by_name():
    answers = pd.DataFrame({"q1": list("yynn") * 3, "q2": list("ynyn") * 3, "q3": list("yynn") * 3})
    ages = pd.DataFrame({"age": np.arange(12.0)})
    by_age = pb.LatentClassAnalysis(2, random_state=0).fit(answers, covariates=ages)
    again = pb.LatentClassAnalysis(2, random_state=0).fit(answers, covariates=ages[::-1])
    np.testing.assert_array_equal(again.class_weights_, by_age.class_weights_)
    shares = [by_age.predict_proba(answers, covariates=rows) for rows in (ages, ages[::-1])]
    np.testing.assert_array_equal(*shares)
    weighed = [
        pb.LatentClassAnalysis(2, method="em", random_state=0).fit(answers, weights=rows)
        for rows in (1 + ages["age"], 1 + ages["age"][::-1])
    ]
    np.testing.assert_array_equal(*(found.class_weights_ for found in weighed))


def test_a_first_column_of_numeric_categories_is_not_dropped_as_names():
    frame = pd.DataFrame({"urn": [3, 1], "ball": [0, 2]})
    assert_refused(InvalidArgumentError, "'urn' holds", pb.Corpus, frame.astype("category"))
    named = frame.astype({"urn": "category"})
    assert pb.Corpus.from_table(named, ids="urn").ids.tolist() == ["3", "1"]


WORDS = list("abcdef")
SIGNATURES = pd.DataFrame(
    [[0.4, 0.2, 0.2, 0.1, 0.05, 0.05], [0.05, 0.05, 0.1, 0.2, 0.2, 0.4]],
    index=["S1", "S2"],
    columns=WORDS,
)
ALPHA = pd.Series([2.0, 0.5], index=SIGNATURES.index)
COUNTS = pd.DataFrame([[9, 1, 5, 2, 0, 3]], columns=WORDS, index=["d"])


def lda_of(topics, alpha=ALPHA, **options):
    make = pb.LatentDirichletAllocation.from_parameters
    return make(doc_topic_prior=alpha, topic_word=topics, random_state=0, **options)


def pfa_of(topics, shape=ALPHA, **options):
    make = pb.PoissonFactorAnalysis.from_parameters
    return make(topic_word=topics, shape=shape, probability=0.9, random_state=0, **options)


@pytest.mark.parametrize(
    "make",
    [
        lda_of,
        pfa_of,
        lambda topics, **options: pb.DocumentModel.dirichlet(topics, [2.0, 0.5], **options),
        lambda topics, **options: pb.DocumentModel.mixture(topics, [0.8, 0.2], **options),
        lambda topics, **options: pb.DocumentModel.logistic_normal(
            topics, [0.0, 0.0], np.eye(2), decoder="softmax", **options
        ),
    ],
)
def test_columns_of_topics_are_the_vocabulary(make):
    expected = pb.log_likelihood(make(SIGNATURES.to_numpy()), COUNTS.to_numpy()).values
    for topics in (SIGNATURES, SIGNATURES[WORDS[::-1]]):
        for vocabulary in (None, WORDS, WORDS[::-1]):
            model = make(topics, vocabulary=vocabulary)
            found = pb.log_likelihood(model, COUNTS[WORDS[2:] + WORDS[:2]])
            np.testing.assert_allclose(found.values, expected, rtol=1e-12)
    other = [*WORDS[:5], "g"]
    assert_refused(InvalidArgumentError, "'f', 'g'", make, SIGNATURES, vocabulary=other)


TIDY = pd.DataFrame(
    {"topic": [1, 1, 2, 2], "term": list("abab"), "beta": [0.2, 0.8, 0.9, 0.1]}, list("1234")
)
WIDE = pd.DataFrame([[0.2, 0.8], [0.9, 0.1]], ["1", "2"], list("ab"))


@pytest.mark.parametrize(
    ("frame", "call"),
    [
        (WIDE, ".set_index(['Unnamed: 0'])"),
        (WIDE.rename_axis("topic"), ".set_index(['topic'])"),
        (WIDE.rename_axis("word", axis=1).T, ".set_index(['word']).T"),
        (WIDE.T.rename_axis("word").reset_index(), ".set_index(['word']).T"),
        (WIDE.rename_axis("topic").reset_index(), ".set_index(['topic'])"),
        (TIDY, ".pivot(index='topic', columns='term', values='beta')"),
        (TIDY.replace({"topic": {1: "x", 2: "y"}}), ".pivot(index='topic'"),
        (TIDY.rename(columns={"topic": "k"}), ".pivot(index='k'"),
    ],
)
def test_tables_of_topics_as_files_hold_them_are_refused_with_the_call_that_reads_them(frame, call):
    topic_word = pd.read_csv(io.StringIO(frame.to_csv()))
    told = call_of(InvalidArgumentError, lda_of, topic_word, [2.0, 0.5])
    assert call in told
    model = lda_of(eval(told), [2.0, 0.5])
    assert model.vocabulary_.tolist() == ["a", "b"]
    np.testing.assert_array_equal(model.components_, WIDE)
    sure = pd.DataFrame([[1, 0], [0, 1]], columns=["topic", "b"])
    assert lda_of(sure, [2.0, 0.5]).vocabulary_.tolist() == ["topic", "b"]


def normal_of(mean, covariance):
    return pb.DocumentModel.logistic_normal(
        SIGNATURES, mean, covariance, decoder="softmax", random_state=0
    )


@pytest.mark.parametrize(
    "make",
    [
        lambda alpha: lda_of(SIGNATURES, alpha),
        lambda alpha: pfa_of(SIGNATURES, alpha),
        lambda alpha: lda_of(SIGNATURES, 1.0, topic_concentration=9 * alpha),
        lambda alpha: pfa_of(SIGNATURES, 1.0, topic_concentration=9 * alpha),
        lambda alpha: pb.DocumentModel.dirichlet(SIGNATURES, alpha),
        lambda alpha: pb.DocumentModel.dirichlet(SIGNATURES, pd.DataFrame([alpha])),
        lambda alpha: pb.DocumentModel.dirichlet(SIGNATURES, coefficients=pd.DataFrame(alpha)),
        lambda alpha: pb.DocumentModel.mixture(SIGNATURES, alpha),
        lambda alpha: normal_of(alpha, np.eye(2)),
        lambda alpha: normal_of([0.0, 0.0], pd.DataFrame(np.diag(alpha), *[alpha.index] * 2)),
    ],
)
def test_priors_of_topics_are_matched_by_name(make):
    model, same = make(ALPHA), make(ALPHA[::-1])
    options = {"covariates": [[1.0]]} if hasattr(model, "coefficients_") else {}
    found = [pb.log_likelihood(x, COUNTS, **options).values for x in (model, same)]
    assert found[0] == found[1]
    assert_refused(InvalidArgumentError, "'S2'", make, ALPHA.rename({"S2": "S3"}))


def test_mappings_of_priors_are_of_names_of_topics():
    model, alpha = lda_of(SIGNATURES, 1.0), dict(ALPHA[::-1])
    expected = pb.log_likelihood(lda_of(SIGNATURES), COUNTS).values
    assert pb.log_likelihood(lda_of(SIGNATURES, alpha), COUNTS).values == expected
    assert pb.log_likelihood(model, COUNTS, doc_topic_prior=alpha).values == expected


def test_words_that_the_documents_lack_are_said_and_may_be_unmeasured(here):
    anndata = pytest.importorskip("anndata")
    model, panel = pfa_of(SIGNATURES), COUNTS[WORDS[:4]]
    exact = pb.log_likelihood(pfa_of(SIGNATURES[WORDS[:4]]), panel).values
    weights = pfa_of(SIGNATURES[WORDS[:4]]).transform(panel)
    told = r"2 of the 6 words of the model, with 35.0% of the mean mass .*'e', 'f'"
    cells = anndata.AnnData(panel.astype(float))
    with pytest.warns(DataWarning, match=f"{told}.* count as not measured"):
        np.testing.assert_allclose(pb.log_likelihood(model, cells).values, exact, rtol=1e-12)
    with pytest.warns(DataWarning, match=told):
        np.testing.assert_array_equal(model.transform(cells), weights)
    with pytest.warns(DataWarning, match=told):
        pb.topics.report(model, cells, here / "report.html")
    with pytest.warns(DataWarning, match=told):
        pb.interop.to_anndata(cells, model)
    np.testing.assert_array_equal(cells.obsm["X_polyabayes"], weights)
    with pytest.warns(DataWarning, match=f"{told}.* count as zero"):
        zeros = pb.log_likelihood(model, panel).values
    for documents in (panel, cells, pb.Corpus(panel)):
        for policy, value in (("zero", zeros), ("not measured", exact)):
            found = pb.log_likelihood(model, documents, missing_words=policy).values
            np.testing.assert_allclose(found, value, rtol=1e-12)
    both = {"one": model, "two": pfa_of(SIGNATURES, 1.0)}
    with pytest.warns(DataWarning, match=told):
        compared = pb.compare(both, cells, event="counts", given_length=False)
    assert compared.results["one"].total == pytest.approx(exact[0], rel=1e-9)
    # Words of texts are those that occur.
    assert np.isfinite(pb.log_likelihood(model, [["a", "b"]]).values).all()


FEW = {"n_simulated": 50, "n_permutations": 9, "random_state": 0}


@pytest.mark.parametrize(
    "call",
    [
        lambda model, X, **words: pb.log_likelihood(model, X, **words).values,
        lambda model, X, **words: pb.log_completion(model, X, X, **words).values,
        lambda model, X, **words: pb.completion_perplexity(model, X, random_state=0, **words).value,
        lambda model, X, **words: pb.plug_in_perplexity(model, X, X, **words),
        lambda model, X, **words: pb.drift(model, X, X, **FEW, **words).z,
        lambda model, X, **words: model.score_samples(X, **words),
        lambda model, X, **words: model.score(X, **words),
        lambda model, X, **words: model.perplexity(X, **words),
        lambda model, X, **words: pb.topics.by_group(model, X, list("ab"), **words).means,
    ],
)
def test_every_score_asks_for_words_that_the_documents_lack(call):
    model, data = lda_of(SIGNATURES), pd.concat([COUNTS, COUNTS])[WORDS[:4]].set_axis(["d", "e"])
    corpus = pb.Corpus(data)
    told = r"2 of the 6 words of the model, with 35.0% of the mean mass .*'e', 'f'"
    with pytest.warns(DataWarning, match=f"{told}.* count as zero"):
        zeros = call(model, corpus)
    np.testing.assert_array_equal(call(model, corpus, missing_words="zero"), zeros)
    np.testing.assert_allclose(call(model, data.assign(e=0, f=0)), zeros, rtol=1e-12)
    part = SIGNATURES[WORDS[:4]].div(SIGNATURES[WORDS[:4]].sum(axis=1), axis=0)
    measured = call(model, corpus, missing_words="not measured")
    np.testing.assert_allclose(measured, call(lda_of(part), corpus), rtol=1e-9)
    assert not np.array_equal(measured, zeros)
    assert_refused(InvalidArgumentError, told, call, model, corpus, missing_words="raise")


def test_groups_are_matched_by_name_and_keep_the_order_of_categories():
    corpus = pb.Corpus([[9, 0], [8, 1], [0, 9], [1, 7]], ids=list("wxyz"))
    months = pd.Categorical(["Jan", "Feb", "Jan", "Feb"], ["Jan", "Feb", "Mar"], ordered=True)
    by = pd.Series(months, index=list("wxyz"))
    found = pb.topics.by_group(LDA, corpus, by)
    assert found.groups.tolist() == ["Jan", "Feb"]
    for same in (by[::-1], months):
        np.testing.assert_array_equal(pb.topics.by_group(LDA, corpus, same).means, found.means)
    described = corpus.with_metadata({"month": months})
    assert pb.topics.by_group(LDA, described, "month").groups.tolist() == ["Jan", "Feb"]


FEATURES = "G1\tTBCE\tGene Expression\nG2\tACT\tGene Expression\nA1\tTBCE\tAntibody Capture\n"
CELLS = np.array([[4, 0, 90], [0, 1, 80]])


def written_by_cell_ranger(folder, kind):
    if kind == "h5":
        h5py = pytest.importorskip("h5py")
        columns = [line.split("\t") for line in FEATURES.split("\n")[:-1]]
        packed = sparse.csc_matrix(CELLS.T)
        with h5py.File(folder / "x.h5", "w") as file:
            for name in ("data", "indices", "indptr"):
                file[f"matrix/{name}"] = getattr(packed, name)
            file["matrix/shape"] = packed.shape
            file["matrix/barcodes"] = np.array([b"AAC-1", b"AAG-1"])
            names = ("id", "name", "feature_type")
            for name, held in zip(names, np.array(columns, dtype="S20").T, strict=True):
                file[f"matrix/features/{name}"] = held
        return folder / "x.h5"
    start = "" if kind.endswith(".tsv") else f"{kind}_"
    (folder / f"{'._' if start else 'raw_'}matrix.mtx").write_bytes(b"\0")
    mmwrite(folder / f"{start}matrix.mtx", sparse.coo_matrix(CELLS.T))
    (folder / f"{start}{kind if not start else 'features.tsv'}").write_text(FEATURES)
    packed = gzip.compress(b"AAC-1\nAAG-1\n")
    (folder / f"{start}barcodes.tsv.gz").write_bytes(packed)
    return folder


@pytest.mark.parametrize("kind", ["features.tsv", "genes.tsv", "h5", "GSM123_sample"])
def test_of_several_kinds_of_features_genes_are_read(here, kind):
    path = written_by_cell_ranger(here, kind)
    with pytest.warns(DataWarning, match=r"'Antibody Capture', 'Gene Expression'.* with 2\.9%"):
        corpus = pb.read_corpus(path)
    assert corpus.vocabulary.tolist() == ["G1", "G2"]
    assert corpus.counts.toarray().tolist() == CELLS[:, :2].tolist()
    assert corpus.ids.tolist() == ["AAC-1", "AAG-1"]
    with pytest.warns(DataWarning, match=r"1 features share their name.*'TBCE-1'"):
        named = pb.read_corpus(path, feature_type=None, word="name")
    assert (named.n_tokens, named.vocabulary.tolist()) == (175, ["TBCE", "ACT", "TBCE-1"])
    with pytest.warns(DataWarning, match="only 'Antibody Capture'"):
        assert pb.read_corpus(path, feature_type="Antibody Capture").n_tokens == 170
    with pytest.raises(FileFormatError, match="kinds 'Antibody Capture', 'Gene Expression'"):
        pb.read_corpus(path, feature_type="Peaks")


def test_of_several_samples_in_a_folder_one_is_read(here):
    for kind in ("GSM1_a", "GSM2_b"):
        written_by_cell_ranger(here, kind)
    call = "polyabayes.read_corpus('GSM1_a_matrix.mtx', format='10x')"
    assert_refused(
        FileFormatError, f"2 samples: read one by {re.escape(call)}", pb.read_corpus, "."
    )
    with pytest.warns(DataWarning, match="use format='10x'"):
        pb.read_corpus("GSM1_a_matrix.mtx")
    with pytest.warns(DataWarning, match="'Antibody Capture'"):
        assert eval(call, NAMES_OF_CALLS).ids.tolist() == ["AAC-1", "AAG-1"]
    (here / "GSM2_b_barcodes.tsv.gz").unlink()
    with pytest.raises(FileFormatError, match=r"it has no GSM2_b_barcodes\.tsv"):
        pb.read_corpus("GSM2_b_matrix.mtx", format="10x")


def test_files_of_cell_ranger_2_have_a_group_for_the_genome(here):
    with pytest.importorskip("h5py").File(written_by_cell_ranger(here, "h5"), "a") as file:
        file["GRCh38"] = file.pop("matrix")
        names = file["GRCh38"].pop("features")
        file["GRCh38/genes"], file["GRCh38/gene_names"] = names["id"], names["name"]
    corpus = pb.read_corpus("x.h5")
    assert corpus.vocabulary.tolist() == ["G1", "G2", "A1"]
    assert corpus.counts.toarray().tolist() == CELLS.tolist()
    assert corpus.ids.tolist() == ["AAC-1", "AAG-1"]
    with pytest.warns(DataWarning, match=r"'TBCE-1'"):
        pb.read_corpus("x.h5", word="name")


def test_a_file_that_is_no_matrix_of_cell_ranger_says_so(here):
    h5py = pytest.importorskip("h5py")
    (here / "x.h5").write_bytes(b"\x89HDF\r\n\x1a\n no more")
    with h5py.File("y.h5", "w") as file:
        file["X"] = [1, 2]
    for name in ("x.h5", "y.h5"):
        with pytest.raises(FileFormatError, match="not a feature-barcode matrix"):
            pb.read_corpus(name)


def test_documents_of_stm_are_counts_of_words_counted_from_one():
    documents = [np.array([[1, 3], [2, 1]]), np.array([[2], [4]])]
    corpus = pb.Corpus(documents, vocabulary=["urn", "ball", "law", "rest"])
    assert corpus.counts.toarray().tolist() == [[2, 0, 1, 0], [0, 4, 0, 0]]
    # As rdata reads a list of R with names, and what prepDocuments returns.
    named, years = dict(zip("ab", documents, strict=True)), pd.DataFrame({"year": [2001, 2002]})
    words = np.array(corpus.vocabulary.tolist())
    for found in (
        pb.Corpus(named, vocabulary=words),
        pb.Corpus(pd.Series(named), vocabulary=words),
        pb.Corpus({"documents": named, "vocab": words, "meta": years, "docs.removed": None}),
    ):
        assert found.counts.toarray().tolist() == corpus.counts.toarray().tolist()
        assert (found.ids.tolist(), [*found.vocabulary]) == (["a", "b"], [*words])
    assert found.metadata["year"].tolist() == [2001, 2002]


def test_texts_of_a_series_are_named_by_its_index():
    texts = pd.Series(["an urn", "a ball"], index=["a", "b"], dtype="string")
    for corpus in (pb.Corpus(texts), pb.Corpus.from_documents(texts)):
        assert corpus.ids.tolist() == ["a", "b"]
    assert pb.Corpus(texts.reset_index(drop=True)).ids is None
    assert (
        pb.log_likelihood(LDA, pd.Series([["urn", "ball"], ["urn"]], index=["a", "b"])).ids[1]
        == "b"
    )


def test_held_out_parts_are_those_of_the_same_documents():
    first, second = (pd.DataFrame(x, index=NAMES) for x in ([[2, 0], [1, 1], [0, 3]], np.eye(3, 2)))
    scores = [pb.log_completion(LDA, first, rows).values for rows in (second, second[::-1])]
    np.testing.assert_array_equal(*scores)
    other = second.rename({"x": "w"})
    assert_refused(InvalidArgumentError, "no row for 'x'", pb.log_completion, LDA, first, other)
    assert pb.plug_in_perplexity(LDA, first, second) == pb.plug_in_perplexity(
        LDA, first, second[::-1]
    )


def test_only_layers_of_counts_are_offered():
    anndata = pytest.importorskip("anndata")
    cells = anndata.AnnData(np.array([[0.5, 1.5]]))
    cells.layers["scaled"], cells.layers["raw"] = cells.X / 2, np.array([[1.0, 3.0]])
    bare = anndata.AnnData(None, cells.obs, cells.var, layers={"raw": cells.layers["raw"]})
    rounded = anndata.AnnData(cells.X * 100, cells.obs, cells.var, layers=bare.layers)
    assert pb.Corpus.from_anndata(rounded, "X").n_tokens == 200
    for layer, data in ((None, cells), ("scaled", cells), (None, bare), (None, rounded)):
        with pytest.raises(InvalidArgumentError) as caught:
            pb.Corpus.from_anndata(data, layer)
        call = str(caught.value).partition(", as in ")[2]
        found = eval(call, {"polyabayes": pb, "adata": data})
        assert found.counts.toarray().tolist() == [[1, 3]]
    del cells.layers["raw"]
    with pytest.raises(InvalidArgumentError, match="it has no layer of counts"):
        pb.Corpus.from_anndata(cells)


def test_kinds_of_features_of_cells_are_told_apart():
    anndata = pytest.importorskip("anndata")
    kinds = pd.DataFrame(
        {"feature_types": ["Antibody Capture", "Gene Expression"]}, ["CD3", "TP53"]
    )
    cells = anndata.AnnData(np.array([[9.0, 0.0], [8.0, 3.0]]), var=kinds)
    with pytest.warns(
        DataWarning, match="'Antibody Capture', 'Gene Expression' all count"
    ) as caught:
        pb.Corpus(cells)
    genes = eval(str(caught[0].message).partition("kind are ")[2], {"adata": cells})
    assert pb.Corpus(genes).vocabulary.tolist() == ["TP53"]


def test_gensim_models_are_known_wherever_a_model_is_taken():
    gensim = pytest.importorskip("gensim")
    texts = [["urn", "ball"], ["ball", "law"]]
    dictionary = gensim.corpora.Dictionary(texts)
    bags = [dictionary.doc2bow(text) for text in texts]
    lda = gensim.models.LdaModel(bags, 2, dictionary, random_state=0)
    assert len(pb.topics.coherence(lda, texts, measure="umass")) == 2


SPOKEN = [["urn", "ball", "law"], ["cat"], ["urn", "urn"], ["ball", "cat"], ["law", "law", "urn"]]


@pytest.mark.parametrize("kind", ["texts", "lists"])
def test_texts_of_parquet_become_shards_over_one_vocabulary(monkeypatch, kind):
    monkeypatch.setattr("polyabayes.io.tabular.parquet._BATCH_ROWS", 2)
    bodies = SPOKEN if kind == "lists" else [" ".join(words) for words in SPOKEN]
    frame = pd.DataFrame({"body": bodies, "id": list("abcde"), "year": range(5)})
    frame.to_parquet("x.parquet")
    corpus = pb.Corpus.from_table(frame, "body")
    for options in ({}, {"min_df": 3}, {"vocabulary": ["urn", "ball", "law", "cat"]}):
        expected = corpus.filter(min_df=options.get("min_df", 1))
        shards = pb.write_shards("x.parquet", "shards", 2, text="body", **options)
        found = pb.Corpus(list(shards.blocks(2)))
        expected = expected.aligned_to(shards.vocabulary)[0]
        assert found.counts.toarray().tolist() == expected.counts.toarray().tolist()
        assert found.ids.tolist() == list("abcde")
        assert found.metadata["year"].tolist() == [0, 1, 2, 3, 4]
    assert_refused(
        InvalidArgumentError, "for a .parquet file", pb.write_shards, SPOKEN, "s", text="b"
    )
    rows = [(name, word, 1) for name, words in zip("abcde", SPOKEN, strict=True) for word in words]
    pd.DataFrame(rows, columns=["doc_id", "word", "n"]).to_parquet("long.parquet")
    found = pb.Corpus(list(pb.write_shards("long.parquet", "long").blocks(10)))
    assert found.counts.toarray().tolist() == corpus.counts.toarray().tolist()
    assert found.ids.tolist() == list("abcde")


def test_streams_of_documents_need_one_vocabulary():
    words = ["ball", "cat", "law", "urn"]
    model = pb.LatentDirichletAllocation.from_parameters(
        doc_topic_prior=0.5, topic_word=[[0.25] * 4, [0.4, 0.2, 0.2, 0.2]], vocabulary=words
    )
    expected = pb.log_likelihood(model, SPOKEN).values
    found = pb.log_likelihood(model, iter([SPOKEN[:2], SPOKEN[2:]])).values
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    shards = pb.write_shards(iter(SPOKEN), "shards", vocabulary=words)
    np.testing.assert_allclose(pb.log_likelihood(model, shards).values, expected, rtol=1e-12)
    blocks = (pb.Corpus.from_documents(block) for block in (SPOKEN[:1], SPOKEN[1:]))
    assert_refused(InvalidArgumentError, "the same words", pb.write_shards, blocks, "others")


def test_words_are_filtered_by_list_and_by_documents():
    corpus = pb.Corpus.from_documents(SPOKEN)
    for options, words in (
        ({"words": ["urn", "ball", "unknown"]}, ["ball", "urn"]),
        ({"min_documents": 3}, ["urn"]),
        ({"max_share": 0.4}, ["ball", "cat", "law"]),
    ):
        assert corpus.filter(**options).vocabulary.tolist() == words


def saved(save, array):
    stream = io.BytesIO()
    save(stream, np.array(array))
    return stream.getvalue()


def cells(logged, **parts):
    counts = np.array([[1.0, 0, 2], [0, 3, 1]])
    stored = pytest.importorskip("anndata").AnnData(np.log1p(counts) if logged else counts, **parts)
    stored.write_h5ad("cells.h5ad")
    return Path("cells.h5ad").read_bytes()


def database():
    with contextlib.closing(sqlite3.connect("x.db")) as base:
        COUNTED.to_sql("my sales", base, index=False)
    return Path("x.db").read_bytes()


COUNTED = pd.DataFrame({"shop": ["a", "b"], "item": ["mug", "cup"], "n": [2, 3]})


def test_texts_of_a_folder_in_two_encodings_are_refused_with_the_call_that_reads_them(here):
    (here / "texts").mkdir()
    for name, encoding in (("a", "utf-8"), ("b", "cp1252"), ("c", "ascii")):
        (here / f"texts/{name}.txt").write_bytes("\xfcber"[name == "c" :].encode(encoding))
    with pytest.raises(FileFormatError, match="encoding='cp1252'"):
        pb.read_corpus("texts")
    with pytest.raises(InvalidArgumentError) as caught:
        pb.read_corpus("texts", encoding="cp1252")
    found = eval(str(caught.value).partition(" use ")[2], NAMES_OF_CALLS)
    assert found.vocabulary.tolist() == ["ber", "\xfcber"]
    assert found.ids.tolist() == ["a.txt", "b.txt", "c.txt"]


@pytest.mark.filterwarnings("ignore:left out")
@pytest.mark.parametrize(
    ("options", "values"),
    [
        ({"ids": "id", "transpose": True, "metadata": ["kind"]}, [[1, 0], [2, 3]]),
        ({"transpose": True, "metadata": ["kind"]}, [[1, 0], [2, 3]]),
        ({"ids": "id", "metadata": ["kind"]}, [[1, 2], [0, 3]]),
        ({"document": "kind", "word": "id", "count": "Jan"}, [[1, 0]]),
    ],
)
def test_options_stay_in_the_call_that_reads_another_file(options, values):
    table = pd.DataFrame({"id": ["a", "b"], "kind": ["k", "k"], "Jan": [1, 0], "Feb": [2, 3]})
    table.to_json("x.json", orient="records")
    with pytest.raises(InvalidArgumentError, match=r"x\.json is a JSON array: ") as caught:
        pb.read_corpus("x.json", **options)
    call = str(caught.value).partition(": ")[2].removesuffix(" takes its table")
    assert eval(call, NAMES_OF_CALLS).counts.toarray().tolist() == values


def test_mails_in_another_encoding_are_read_by_their_own(here):
    kind = 'Content-Type: text/plain; charset="iso-8859-1"\nContent-Transfer-Encoding: 8bit'
    head = f"From a@x Mon Jan  1 10:00:00 2020\nFrom: a@x\nMIME-Version: 1.0\n{kind}"
    (here / "x.mbox").write_bytes(f"{head}\n\nth\xe9 noir\n".encode("latin-1"))
    with pytest.raises(FileFormatError, match="mails") as caught:
        pb.read_corpus("x.mbox", encoding="latin-1")
    call = re.search(r"(polyabayes.*) takes the text", str(caught.value))[1]
    assert eval(call, NAMES_OF_CALLS).vocabulary.tolist() == ["noir", "th\xe9"]


DOORS = Path(__file__).with_name("doors.txt").read_text("utf-8").splitlines()
MODULES = (pb, pd, np, scipy, email, gzip, json, ast, csv, pathlib, re, itertools)
NAMES_OF_CALLS = {module.__name__: module for module in MODULES}
CONTENTS = {"saved": saved, "cells": cells, "database": database}


@pytest.mark.filterwarnings("ignore:left out|Variable|(documents|words) that may|answers that may")
@pytest.mark.parametrize("row", DOORS, ids=[row.split('"')[1] for row in DOORS])
def test_files_enter_right_or_are_refused_with_a_call_that_reads_them(here, row):
    name, content, call, expected, words, *given = eval(row, NAMES_OF_CALLS | CONTENTS)
    is_whole = re.match(r"\w*[.:[]", call) or not re.match(r"\w+=", call)
    names, own, source = {**NAMES_OF_CALLS, **sys.modules}, dict(*given), name.partition("/")[0]
    reader = "read_tensor" if "axes" in own else "read_corpus"
    door, given = getattr(pb, reader), f"polyabayes.{reader}({source!r}, **{own} | dict({call}))"
    if isinstance(content, pd.DataFrame):
        door = pb.Corpus.from_table if own else pb.Corpus
        given = f"polyabayes.Corpus.from_table(table, {call})"
        names["frame"] = names["table"] = source = content
    else:
        for path, held in (content if isinstance(content, dict) else {name: content}).items():
            (here / path).parent.mkdir(parents=True, exist_ok=True)
            held = held() if callable(held) else held
            (here / path).write_bytes(held.encode() if isinstance(held, str) else held)
    if call.endswith(".tolist()"):
        (here / "x.ldac").write_text("2 0:1 2:2\n")
        own, source = {"vocabulary": name}, "x.ldac"
    is_read = not call and bool(own)
    if call or own:
        parts = [call] if is_whole else re.split(r", (?=\w+=)", call)
        with warnings.catch_warnings(record=True, action="always") as told:
            try:
                names["corpus"] = door(source, **own)
            except PolyabayesError as error:
                told = [error]
        message = " ".join(str(getattr(one, "message", one)) for one in told)
        assert all(part in message for part in parts), message
        # Tensors that enter right do so without a word.
        assert call or not told or reader == "read_corpus", message
        # Answers in several columns may be codes, counts are none.
        assert "melt(" in call or "CountTensor" in message or "melt(" not in message
    if expected is not None:
        call = call if call and is_whole else given
        found = names["corpus"] if is_read else eval(call.replace("(), then ", "() or "), names)
        if isinstance(found, pd.Series | pd.DataFrame) or hasattr(found, "obs"):
            found = pb.Corpus(found)
        found = pb.read_corpus(source, vocabulary=found) if isinstance(found, list) else found
        if isinstance(found, pb.CountTensor):
            values, vocabulary = found.to_dense(), found.axes
        elif isinstance(found, pb.Corpus):
            values, vocabulary = found.counts.toarray(), found.vocabulary
        else:
            values, vocabulary = found.components_, found.vocabulary_
        np.testing.assert_allclose(values, expected)
        own = [] if vocabulary is None else [word.replace(" ", "\xa0") for word in vocabulary]
        assert own == words.split(" ") if words else not own
