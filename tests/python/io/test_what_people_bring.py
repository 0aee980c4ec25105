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


def fitted_by_covariates(rows):
    model = pb.LatentDirichletAllocation(2, max_iter=3, random_state=0)
    corpus = pb.Corpus(np.eye(9, 5, dtype=int) + 1, ids=[f"d{n}" for n in range(9)])
    column = pd.DataFrame({"age": np.arange(9.0) ** 2})
    index = corpus.ids if rows.index[0] == "x" else corpus.ids[::-1]
    return model.fit(corpus, covariates=column.set_axis(index)).coefficients_


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
        fitted_by_covariates,
    ],
)
def test_rows_of_pandas_that_name_the_documents_in_another_order_are_refused(call):
    expected = call(OWN)
    assert_refused(InvalidArgumentError, "matched by place", call, OWN[::-1])
    if call is not fitted_by_covariates:
        # Other names, and mere numbers, have nothing to say about the order.
        np.testing.assert_array_equal(call(OWN.set_axis(["a", "b", "c"])), expected)
        np.testing.assert_array_equal(call(OWN.reset_index(drop=True)), expected)


def test_weights_and_covariates_of_rows_in_another_order_are_refused():
    answers = pd.DataFrame({"q1": list("yynn") * 3, "q2": list("ynyn") * 3, "q3": list("yynn") * 3})
    ages = pd.DataFrame({"age": np.arange(12.0)})
    by_age = pb.LatentClassAnalysis(2, random_state=0).fit(answers, covariates=ages)
    for call in (
        lambda: pb.LatentClassAnalysis(2, method="em").fit(answers, weights=ages["age"][::-1]),
        lambda: pb.LatentClassAnalysis(2, random_state=0).fit(answers, covariates=ages[::-1]),
        lambda: by_age.predict_proba(answers, covariates=ages[::-1]),
    ):
        assert_refused(InvalidArgumentError, "matched by place", call)


def test_a_first_column_of_numeric_categories_is_not_dropped_as_names():
    frame = pd.DataFrame({"urn": [3, 1], "ball": [0, 2]})
    assert_refused(InvalidArgumentError, "ids='urn'", pb.Corpus, frame.astype("category"))
    named = frame.astype({"urn": "category"})
    assert pb.Corpus.from_table(named, ids="urn").ids.tolist() == ["3", "1"]


def test_ids_beyond_the_dictionary_are_refused():
    with pytest.raises(InvalidArgumentError, match="id 9, but the largest id of the dict"):
        pb.Corpus.from_gensim([[(0, 1)], [(9, 1)]], {0: "urn", 1: "ball"})


def test_metadata_that_name_the_documents_in_another_order_do_not_describe_others(write):
    write("x.csv", "id,urn,ball\nd1,3,0\nd2,0,5\n")
    write("meta.csv", "id,year\nd2,1999\nd1,2024\n")
    with pytest.raises(InvalidArgumentError, match="another order than their ids, 'd2' first"):
        pb.read_corpus("x.csv").with_metadata(pd.read_csv("meta.csv"))
    write("same.csv", "id,year\nd1,2024\nd2,1999\n")
    corpus = pb.read_corpus("x.csv").with_metadata(pd.read_csv("same.csv"))
    assert corpus["d1"].metadata["year"].tolist() == [2024]
