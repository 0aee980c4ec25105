"""Models from files: this package's, MALLET's and fastTopics'; other packages load their own."""

import csv
import gzip
import io
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.decomposition import LatentDirichletAllocation

import polyabayes as pb
from polyabayes import exceptions as errors
from polyabayes.cli import main

STATE = """#doc source pos typeindex type topic
#alpha : 0.5 0.25
#beta : 0.1
0 NA 0 0 urn 0
0 NA 1 1 ball 0
1 NA 0 2 gene 1
"""


FITTED = LatentDirichletAllocation(2).fit([[1, 2], [3, 4]])


def test_a_folder_of_mallet_is_read_by_what_its_files_hold(tmp_path):
    (tmp_path / "state.txt").write_text(STATE)
    alone = pb.interop.read_model(tmp_path / "state.txt")
    assert alone.vocabulary_.tolist() == ["urn", "ball", "gene"]
    (tmp_path / "counts.txt").write_text("0 urn 0:1\n1 ball 0:1\n2 gene 1:1\n3 never\n")
    read = pb.interop.read_model(tmp_path)
    assert read.vocabulary_.tolist() == ["urn", "ball", "gene", "never"]
    (tmp_path / "more.txt").write_text("0 urn 1:1\n1 ball 0:1\n2 gene 1:1\n")
    with pytest.raises(errors.FileFormatError, match="several tables of MALLET"):
        pb.interop.read_model(tmp_path)
    (tmp_path / "counts.txt").unlink()
    with pytest.raises(errors.FileFormatError, match=r"different runs.*'urn' in topic 0"):
        pb.interop.read_model(tmp_path)
    (tmp_path / "other.txt").write_text(STATE)
    with pytest.raises(errors.FileFormatError, match="2 states of MALLET; name one file"):
        pb.interop.read_model(tmp_path)


def test_the_command_line_scores_and_compares_them(tmp_path, capsys):
    theirs = LatentDirichletAllocation(2, random_state=0).fit([[1, 2, 0], [3, 0, 4]])
    ours = pb.interop.from_sklearn(theirs, ["urn", "ball", "gene"])
    saved = os.fspath(tmp_path / "lda.safetensors")
    ours.save(saved)
    (tmp_path / "state.txt").write_text(STATE)
    corpus = pb.Corpus.from_documents([["urn", "ball"], ["gene"]])
    pb.write_corpus(corpus, tmp_path / "corpus.npz")
    place = [os.fspath(tmp_path / name) for name in ("state.txt", "corpus.npz")]
    assert main(["score", *place, "-o", "-"]) == 0
    shown = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    values = pb.log_likelihood(pb.interop.from_mallet(place[0]), corpus).values
    assert [float(row["log_likelihood"]) for row in shown] == pytest.approx(values.tolist())
    assert main(["compare", saved, place[0], "--on", place[1]]) == 0
    table = capsys.readouterr().out.splitlines()[1:3]
    assert {line.split()[0] for line in table} == {"lda", "state"}
    assert main(["score", os.fspath(tmp_path / "nothing"), place[1], "-o", "-"]) == 2


SPACED = """#doc source pos typeindex type topic
#alpha : 0.5 0.25
#beta : 0.1
0 my file 0 0 urn 0
0 my file 1 1 ice cream 0
0 my file 2 0 urn 1
1 NA 0 2 ball 1
"""


def mallet(folder, text=SPACED, name="state.txt"):
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_mallet_state_alone(tmp_path):
    ours = pb.interop.from_mallet(mallet(tmp_path), n_words=4)
    assert ours.vocabulary_.tolist() == ["urn", "ice cream", "ball", "#0"]
    counts = np.array([[1, 1, 0, 0], [1, 0, 1, 0]]) + 0.1
    np.testing.assert_allclose(ours.components_, counts / counts.sum(axis=1, keepdims=True))
    assert ours.doc_topic_prior_.tolist() == [0.5, 0.25]


@pytest.mark.parametrize(
    ("tokens", "words"),
    [
        (["0 /t/Vol 1 02 a.txt 0 0 urn 0", "0 /t/Vol 1 02 a.txt 1 1 ball 0"], ["urn", "ball"]),
        (["0 /t/Vol 1 2 a.txt 0 0 urn 0", "0 /t/Vol 1 2 a.txt 1 1 ball 0"], ["urn", "ball"]),
        # One token: the type index of the word elsewhere decides.
        (["0 NA 0 1 ball 0", "1 Vol 0 2 a 0 1 ball 0"], ["ball"]),
        (["0 NA 0 2 a 0 1 ball 0", "0 NA 1 1 urn 1"], ["a 0 1 ball", "urn"]),
    ],
)
def test_sources_of_mallet_may_be_paths_with_spaces_and_numbers(tmp_path, tokens, words):
    text = SPACED[: SPACED.index("0 my file")] + "".join(f"{token}\n" for token in tokens)
    assert pb.interop.from_mallet(mallet(tmp_path, text)).vocabulary_.tolist() == words


def test_mallet_tables_agree(tmp_path):
    state = mallet(tmp_path)
    counts = mallet(tmp_path, "0 urn 0:1 1:1\n1 ice cream 0:1\n2 ball 1:1\n3 never\n", "counts")
    rows = [("urn", 1.1, 1.1), ("ice cream", 1.1, 0.1), ("ball", 0.1, 1.1), ("never", 0.1, 0.1)]
    lines = [f"{k}\t{row[0]}\t{row[1 + k]}\n" for k in (0, 1) for row in rows]
    weights = mallet(tmp_path, "".join(lines), "weights")
    one = pb.interop.from_mallet(state, word_topic_counts=counts)
    other = pb.interop.from_mallet(state, topic_word_weights=weights)
    np.testing.assert_allclose(one.components_, other.components_, rtol=1e-12)
    assert one.vocabulary_.tolist() == other.vocabulary_.tolist() == [row[0] for row in rows]
    given = pb.interop.from_mallet(topic_word_weights=weights, doc_topic_prior=[0.5, 0.25])
    np.testing.assert_array_equal(given.components_, other.components_)


def of_mallet(text, **tables):
    """Read a state of this text, if any, and other files of these."""
    here = Path()
    tables = {name: mallet(here, content, name) for name, content in tables.items()}
    return pb.interop.from_mallet(*([mallet(here, text)] if text else []), **tables)


def test_real_mallet_is_scored_as_by_hand(shared_data):
    folder = shared_data.parent / "interop" / "mallet"
    if not folder.is_dir():
        pytest.skip(f"no files of MALLET in {folder}")
    weights = folder / "topic_word_weights.txt.gz"
    ours = pb.interop.from_mallet(folder / "state.gz", topic_word_weights=weights)
    path = folder / "word_topic_counts.txt.gz"
    counts = pb.interop.from_mallet(folder / "state.gz", word_topic_counts=path)
    np.testing.assert_allclose(ours.components_, counts.components_, rtol=1e-12)
    column = {word: column for column, word in enumerate(ours.vocabulary_)}
    table = np.zeros((500, len(column)), dtype=np.int64)
    with gzip.open(folder / "test.txt.gz", "rt") as stream:
        for row, line in enumerate(stream):
            for word in line.rstrip("\n").split("\t")[2].split():
                table[row, column[word]] += 1
    result = pb.log_likelihood(ours, table, random_state=0)
    theirs = np.loadtxt(folder / "doc_probs_default.txt")
    # By hand with other seeds: -58,199.8 +- 1.8; MALLET's own estimator is biased, by 27 nats here.
    assert abs(result.total + 58_199.8) < 4 * np.hypot(result.total_std_error, 1.8)
    assert result.total - theirs.sum() > 10


def test_fasttopics_keeps_the_likelihood_and_finds_a_prior(tmp_path):
    rng = np.random.default_rng(3)
    alpha = np.array([0.4, 0.8, 1.6])
    rates = rng.dirichlet(np.ones(6), 3).T * [2.0, 3.0, 4.0]
    # Loadings of a Poisson factorisation: weights times a size, over the totals of F.
    loadings = rng.dirichlet(alpha, 4_000) * rng.gamma(5, 20, (4_000, 1)) / rates.sum(axis=0)
    with pytest.warns(errors.PriorWarning, match="fitted to L"):
        fit = pb.interop.from_fasttopics(rates, loadings)
    np.testing.assert_allclose(fit.components_, (rates / rates.sum(axis=0)).T, atol=1e-8)
    # The standard error of a Dirichlet parameter from 4,000 draws is about 2 % here.
    np.testing.assert_allclose(fit.doc_topic_prior_, alpha, rtol=0.08)
    table = pd.DataFrame(rates, index=list("abcdef"))
    table.to_csv(tmp_path / "F.csv")
    read = pb.interop.from_fasttopics(tmp_path / "F.csv", doc_topic_prior=0.5)
    assert read.vocabulary_.tolist() == list("abcdef")
    np.testing.assert_allclose(read.components_, fit.components_)
