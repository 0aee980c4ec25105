"""What people bring, by files, data frames and commands: the right number, or the remedy.

Each case is the smallest input of a kind that packages and their users met with. What has a test in
its own room is not told again here.
"""

import numpy as np
import pandas as pd
import pytest

import polyabayes as pb
from helpers.refusals import assert_refused
from polyabayes.exceptions import DataWarning, FileFormatError, InvalidArgumentError


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
    with pytest.raises(FileFormatError, match=r"no column 'count'.*read_corpus"):
        pb.write_shards("wide.parquet", "shards")
    assert pb.write_shards(pb.read_corpus("wide.parquet"), "read").n_tokens == 5
    long = pd.DataFrame({"u": [7, 7, 9], "i": [30, 31, 30], "c": [2, 5, 4]})
    with pytest.warns(DataWarning, match="look like a document, a word and a count"):
        pb.write_shards(long, "long")
    named = pb.Corpus.from_table(long, document="u", word="i", count="c")
    assert pb.write_shards(named, "named").n_tokens == 11


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
DMR = pb.DocumentModel.dirichlet(TOPICS, coefficients=[[0.0, 1.5], [0.0, -1.5]])


def test_covariates_of_training_are_matched_by_name():
    corpus = pb.Corpus(np.eye(9, 5, dtype=int) + 1, ids=[f"d{n}" for n in range(9)])
    ages = pd.DataFrame({"age": np.arange(9.0) ** 2}, index=corpus.ids)
    found = [
        pb.LatentDirichletAllocation(2, max_iter=3, random_state=0)
        .fit(corpus, covariates=rows)
        .coefficients_
        for rows in (ages, ages[::-1], ages.to_numpy())
    ]
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])


@pytest.mark.parametrize(
    "call",
    [
        lambda rows: pb.log_likelihood(DMR, NAMED, covariates=rows).values,
        lambda rows: pb.log_likelihood(LDA, NAMED, doc_topic_prior=rows).values,
        lambda rows: pb.log_likelihood(PFA, NAMED, shape=rows).values,
        lambda rows: pb.log_likelihood(PFA, NAMED, exposure=rows[1]).values,
        lambda rows: pb.Corpus(NAMED.counts, ids=NAMES, exposure=rows[1]).exposure,
        lambda rows: pb.Corpus(NAMED.counts, ids=NAMES, metadata=rows).metadata["1"],
        lambda rows: NAMED.with_metadata(rows).metadata["1"],
        lambda rows: NAMED.split(1, 0, groups=rows[1])[1].ids == "x",
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
    assert_refused(InvalidArgumentError, "ids='urn'", pb.Corpus, frame.astype("category"))
    named = frame.astype({"urn": "category"})
    assert pb.Corpus.from_table(named, ids="urn").ids.tolist() == ["3", "1"]


def test_ids_beyond_the_dictionary_are_refused():
    with pytest.raises(InvalidArgumentError, match="id 9, but the largest id of the dict"):
        pb.Corpus.from_gensim([[(0, 1)], [(9, 1)]], {0: "urn", 1: "ball"})


def test_metadata_are_matched_by_a_column_of_names(write):
    write("x.csv", "id,urn,ball\nd1,3,0\nd2,0,5\nd4,1,1\n")
    corpus = pb.read_corpus("x.csv")
    rows = {"doc_id": ["d2", "d1", "d3", "d4"], "party": ["B", "A", "C", "D"]}
    for metadata in (pd.DataFrame(rows), pd.DataFrame(rows).rename(columns={"doc_id": "speech"})):
        assert corpus.with_metadata(metadata).metadata["party"].tolist() == ["A", "B", "D"]
    other = pd.DataFrame({"doc_id": ["d1", "d2", "d3"], "party": ["A", "B", "C"]})
    remedy = r"no row for 'd4'.*metadata.set_index\('doc_id'\).loc\[corpus.ids\]"
    assert_refused(InvalidArgumentError, remedy, corpus.with_metadata, other)
    by_place = other.drop(columns="doc_id")
    assert corpus.with_metadata(by_place).metadata["party"].tolist() == ["A", "B", "C"]
    both = pd.DataFrame({"a": ["d2", "d1", "d4"], "b": ["d4", "d2", "d1"]})
    assert_refused(InvalidArgumentError, "say which by", corpus.with_metadata, both)


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


def test_priors_of_topics_are_matched_by_name():
    for make in (lda_of, pfa_of):
        found = [
            pb.log_likelihood(make(SIGNATURES, alpha), COUNTS).values
            for alpha in (ALPHA, ALPHA[::-1], ALPHA.to_numpy())
        ]
        assert found[0] == found[1] == found[2]


def test_words_that_the_documents_lack_are_said_and_may_be_unmeasured():
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
        pb.interop.to_anndata(cells, model)
    np.testing.assert_array_equal(cells.obsm["X_polyabayes"], weights)
    with pytest.warns(DataWarning, match=f"{told}.* count as zero"):
        zeros = pb.log_likelihood(model, panel).values
    full = panel.assign(e=0, f=0)
    np.testing.assert_allclose(zeros, pb.log_likelihood(model, full).values, rtol=1e-12)
    for documents in (panel, cells, pb.Corpus(panel)):
        for policy, value in (("zero", zeros), ("not measured", exact)):
            found = pb.log_likelihood(model, documents, missing_words=policy).values
            np.testing.assert_allclose(found, value, rtol=1e-12)
        assert_refused(
            InvalidArgumentError, told, pb.log_likelihood, model, documents, missing_words="raise"
        )
    # Words of texts are those that occur.
    assert np.isfinite(pb.log_likelihood(model, [["a", "b"]]).values).all()


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
