"""Comparisons, splits and folds of documents that are not independent."""

from dataclasses import replace
from datetime import date, timedelta

import numpy as np
import pytest
from scipy import stats

import polyabayes as pb
from polyabayes import exceptions as errors
from polyabayes.likelihood.reliability import groups_of

N_GROUPS, IN_A_GROUP, N_RUNS = 40, 5, 150
TOPICS = np.array([[0.4, 0.3, 0.2, 0.1], [0.1, 0.1, 0.3, 0.5]])
LDA = pb.LatentDirichletAllocation.from_parameters
MODELS = {
    "rare": LDA(doc_topic_prior=[0.3, 0.5], topic_word=TOPICS),
    "even": LDA(doc_topic_prior=[1.0, 1.0], topic_word=TOPICS),
}


@pytest.fixture(scope="module")
def authors():
    """Documents of authors who each prefer a topic, and their exact scores by both models."""
    rng = np.random.default_rng(5)
    author = np.repeat(np.arange(N_RUNS * N_GROUPS), IN_A_GROUP)
    weights = rng.dirichlet([0.3, 0.3], N_RUNS * N_GROUPS)[author]
    counts = np.array([rng.multinomial(12, row) for row in weights @ TOPICS])
    corpus = pb.Corpus(counts, metadata={"author": author})
    return corpus, pb.compare(MODELS, corpus, method="exact", groups="author")


def part_of(found, rows, groups):
    results = {
        name: replace(
            result,
            values=result.values[rows],
            std_errors=result.std_errors[rows],
            n_tokens=result.n_tokens[rows],
            groups=np.arange(len(rows)),
        )
        for name, result in found.results.items()
    }
    return pb.Comparison(results, found.event, found.given_length, {}, groups)


def test_errors_for_new_groups_hold_where_those_for_documents_do_not(authors):
    found = authors[1]
    # The truth: 6,000 authors, whose error is a twelfth of that of 40.
    truth = found.difference("rare", "even")[0]
    held = {"groups": 0, "documents": 0}
    for run in range(N_RUNS):
        rows = np.arange(run * N_GROUPS * IN_A_GROUP, (run + 1) * N_GROUPS * IN_A_GROUP)
        labels = found.groups[rows] - found.groups[rows[0]]
        for name, groups in (("groups", labels), ("documents", None)):
            low, high = part_of(found, rows, groups).interval("rare", "even")
            held[name] += low < truth < high
    assert 0.92 <= held["groups"] / N_RUNS <= 0.98
    assert held["documents"] / N_RUNS < 0.8


def test_a_group_counts_as_its_documents_together(authors):
    corpus = authors[0]
    first = corpus[: N_GROUPS * IN_A_GROUP]
    grouped = pb.compare(MODELS, first, method="exact", groups="author")
    lengths = np.full(N_GROUPS, 12 * IN_A_GROUP)
    joined = {}
    for name, result in grouped.results.items():
        values = result.values.reshape(-1, IN_A_GROUP).sum(axis=1)
        template = pb.log_likelihood(MODELS[name], first[:N_GROUPS], "exact")
        joined[name] = replace(template, values=values, n_tokens=lengths)
    together = pb.Comparison(joined, "sequence", given_length=True)
    expected = together.difference("rare", "even")
    assert grouped.difference("rare", "even") == pytest.approx(expected, rel=1e-12)
    ahead, std_error = grouped.difference(*grouped.results)
    p = grouped.to_frame()["p_better"].iloc[1]
    assert p == pytest.approx(stats.t.sf(ahead / std_error, N_GROUPS - 1))
    column = [frame["p_as_good"].tolist() for frame in (grouped.to_frame(), together.to_frame())]
    assert column[0] == column[1]
    assert "± new groups" in str(grouped)
    assert "by 40 groups" in str(grouped)
    assert "± new docs" in str(together)


DAYS = [date(2008, 1, 1) + timedelta(days=day // 3) for day in range(120)]


@pytest.mark.parametrize(
    "times",
    [
        np.arange(120) // 3,
        np.array(DAYS, dtype="datetime64[D]"),
        DAYS,
        [day.isoformat() for day in DAYS],
    ],
)
def test_times_are_cut_into_blocks_and_the_latest_are_held_out(times):
    order = np.random.default_rng(0).permutation(120)
    corpus = pb.Corpus(np.ones((120, 2), int)).with_metadata({"day": np.asarray(times)[order]})
    blocks = groups_of(corpus, None, "day")
    assert np.bincount(blocks).tolist() == [6] * 20
    assert (blocks == order // 6).all()
    train, test = corpus.split(0.25, times="day")
    assert test.n_documents == 30
    assert max(train.metadata["day"]) < min(test.metadata["day"])
    # One day has three documents.
    assert corpus.split(1, times="day")[1].n_documents == 3


CORPUS = pb.Corpus(np.ones((4, 2), int))
SEARCH = pb.WitnessSearch(pb.LatentDirichletAllocation(), pb.priors.Uniform(1, 2))
BOTH = {"groups": [1, 1, 2, 2], "times": [1, 2, 3, 4]}


def test_few_groups_are_told():
    with pytest.warns(errors.UnreliableErrorWarning, match="only 2 groups"):
        pb.compare(MODELS, np.ones((4, 4), int), groups=BOTH["groups"])


@pytest.mark.filterwarnings("ignore::polyabayes.exceptions.EdgeWarning")
def test_blocks_of_time_are_groups_of_a_choice_and_of_folds(authors):
    corpus = authors[0][:60]
    times, blocks = np.arange(60), np.arange(60) // 3
    lda = pb.LatentDirichletAllocation(max_iter=5, n_jobs=1)
    one, other = (
        pb.choose_n_components(lda, corpus, [1, 2], n_folds=2, random_state=0, **given)
        for given in ({"times": times}, {"groups": blocks})
    )
    assert one.rows[0]["score"] == other.rows[0]["score"]
    em = pb.LatentDirichletAllocation(fit_method="em", max_iter=5, random_state=0)
    search = pb.WitnessSearch(em, pb.priors.Uniform(1, 2), scoring="bound", random_state=0)
    one = pb.cross_validate(search, corpus, 3, times=times)
    other = pb.cross_validate(search, corpus, 3, groups=blocks)
    assert one["lower"].tolist() == other["lower"].tolist()
