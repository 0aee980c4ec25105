import re
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from scipy import stats
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.pipeline import make_pipeline

import polyabayes as pb
from helpers.small_models import COUNTS, FLAT, TOPICS, gamma_poisson, lda
from polyabayes import exceptions as errors
from polyabayes.likelihood.reliability import caveats, shared_caveats


def test_all_models_are_asked_about_the_same_event():
    models = {"lda": lda(), "gamma-poisson": gamma_poisson()}
    comparison = pb.compare(models, COUNTS, method="smc", random_state=5)
    assert (comparison.event, comparison.given_length) == ("sequence", True)
    asked = {"event": "sequence", "given_length": True, "random_state": 5}
    for name, model in models.items():
        result = comparison.results[name]
        expected = pb.log_likelihood(model, COUNTS, "smc", **asked)
        assert (result.event, result.given_length) == ("sequence", True)
        np.testing.assert_array_equal(result.values, expected.values)


def test_lengths_count_unless_a_model_has_no_law_of_them():
    models = {"a": gamma_poisson(), "b": gamma_poisson(probability=0.5)}
    free = pb.compare(models, COUNTS)
    assert not free.given_length
    expected = pb.log_likelihood(models["a"], COUNTS, event=free.event)
    assert free.results["a"].total == expected.total
    given = pb.compare(models, COUNTS, given_length=True, event="sequence")
    expected = pb.log_likelihood(models["b"], COUNTS, event="sequence", given_length=True)
    assert given.results["b"].total == expected.total


def test_differences_do_not_depend_on_the_event():
    models = {"lda": lda(), "gamma-poisson": gamma_poisson()}
    bags, tokens = (pb.compare(models, COUNTS, event=event) for event in ("counts", "sequence"))
    expected = tokens.difference("lda", "gamma-poisson")
    assert bags.difference("lda", "gamma-poisson") == pytest.approx(expected, abs=1e-12)


def test_paired_differences_are_a_ratio_of_sums_with_its_error():
    law = {"document_length": np.arange(80) % 23, "doc_topic_prior": 0.4, "random_state": 0}
    data = pb.datasets.make_lda_corpus(80, 30, 3, **law)
    models = {
        "true": lda(0.4, data.topic_word),
        "flat": lda(0.4, np.full((1, 30), 1 / 30)),
        "wrong prior": lda(20.0, data.topic_word),
    }
    comparison = pb.compare(models, data.corpus, error_share=None, random_state=0)
    assert comparison.best == "true"
    assert list(comparison.results) == ["true", "wrong prior", "flat"]
    lengths = np.asarray(data.corpus.counts.sum(axis=1)).ravel()
    for name in ("wrong prior", "flat"):
        ahead = comparison.results["true"].values - comparison.results[name].values
        mean, std_error = comparison.difference("true", name)
        assert mean == pytest.approx(ahead.sum() / lengths.sum(), rel=1e-12)
        without = (ahead.sum() - ahead) / (lengths.sum() - lengths)
        expected = np.std(without) * np.sqrt(len(ahead) - 1)
        assert std_error == pytest.approx(expected, rel=1e-9)
        low, high = comparison.interval("true", name, 0.9)
        t = stats.t(lengths.sum() ** 2 / (lengths**2).sum() - 1).ppf(0.95)
        assert (low, high) == pytest.approx((mean - t * std_error, mean + t * std_error), rel=1e-9)
        assert mean > 3 * std_error
        reverse = comparison.difference(name, "true")
        assert reverse == pytest.approx((-mean, std_error), rel=1e-12)
    assert comparison.difference("flat", "flat") == (0, 0)


def test_tables_name_every_model():
    comparison = pb.compare({"worse": lda(topics=FLAT), "besser ü": gamma_poisson()}, COUNTS)
    frame = comparison.to_frame()
    assert frame.index.tolist() == list(comparison.results)
    best, other = frame.index
    assert [*frame.loc[best, "behind_best":"p_better"]] == [0, 0, 0.5]
    behind, std_error = comparison.difference(best, other)
    row = frame.loc[other]
    assert (row["behind_best"], row["behind_best_std_error"]) == (behind, std_error)
    assert behind > 0
    # Two documents of six tokens, and an empty one.
    assert row["p_better"] == pytest.approx(stats.t.cdf(-behind / std_error, 1), rel=1e-12)
    assert row["perplexity"] == comparison.results[other].perplexity
    assert row["nats_per_token"] == comparison.results[other].nats_per_token
    *lines, better, as_good = str(comparison).splitlines()
    assert better.startswith("P(better): chance of being ahead of the best on new documents")
    assert as_good == 'p(as good): p-value of "no other model is better", adjusted for all models'
    assert [line.split("  ")[0].strip() for line in lines] == ["model", best, other]
    assert f"{row['nats_per_token']:.4f}" in lines[2]
    # The best is not compared with itself.
    as_good = [f"{p:.3f}" for p in frame["p_as_good"]]
    assert lines[1].split()[-2:] == ["best", as_good[0]]
    numbers = [f"{behind:.4f}", f"{std_error:.4f}", f"{row['p_better']:.3f}", as_good[1]]
    assert lines[2].split()[-4:] == numbers
    assert "2 models on sequence, given the length" in repr(comparison)


def test_impossible_documents_are_left_out_and_their_models_come_last():
    models = {
        "no first word": lda(topics=[[0.0, 0.25, 0.25, 0.5]]),
        "fine": lda(),
        "no last word": lda(topics=[[0.4, 0.3, 0.3, 0.0]]),
    }
    counts = np.vstack([COUNTS, [[0, 3, 1, 2]], [[2, 1, 1, 0]], [[0, 2, 2, 0]]])
    with pytest.warns(errors.ImpossibleDocumentWarning, match=r"word 3, no|word: 3") as said:
        comparison = pb.compare(models, counts)
    assert any("no last word: 3 documents without" in str(warning.message) for warning in said)
    assert comparison.best == "fine"
    assert comparison.n_left_out == {"fine": 0, "no first word": 3, "no last word": 3}
    frame = comparison.to_frame()
    assert frame["n_left_out"].tolist() == [0, 3, 3]
    row = frame.loc["no first word"]
    assert (row["nats_per_token"], row["perplexity"]) == (-np.inf, np.inf)
    # The others are compared on the documents that both can produce.
    del models["no last word"]
    shared = pb.compare(models, counts[[1, 3, 5]])
    expected = shared.difference("fine", "no first word")
    assert comparison.difference("fine", "no first word") == pytest.approx(expected, rel=1e-12)
    # A model that cannot produce what the best can is behind by any measure.
    assert row[["behind_best", "p_better", "p_as_good"]].tolist() == [np.inf, 0, 0]


def test_p_values_of_six_equal_models_hold_for_all_of_them():
    rng = np.random.default_rng(3)
    n_documents, n_runs, together, alone = 30, 150, 0, 0
    n_tokens = np.full(n_documents, 50)
    for _ in range(n_runs):
        values = rng.standard_normal((6, n_documents)) * np.arange(1, 7)[:, np.newaxis]
        order = np.argsort(-values.sum(axis=1))
        results = {str(model): as_scored(values[model], n_tokens) for model in order}
        frame = pb.Comparison(results, "sequence", given_length=True).to_frame()
        together += frame["p_as_good"].min() < 0.05
        alone += frame["p_better"].min() < 0.05
    # Within three standard errors of the share that is promised.
    assert together / n_runs < 0.05 + 3 * np.sqrt(0.05 * 0.95 / n_runs)
    assert together > 0
    assert alone / n_runs > 0.2


def test_p_values_find_the_model_that_is_worse():
    rng = np.random.default_rng(1)
    values = rng.standard_normal((3, 400)) - np.array([[0.0], [0.0], [1.0]])
    results = {
        name: as_scored(row, np.full(400, 9)) for name, row in zip("abc", values, strict=True)
    }
    frame = pb.Comparison(results, "sequence", given_length=True).to_frame()
    assert frame.loc["c", "p_as_good"] < 0.001
    assert frame.loc[["a", "b"], "p_as_good"].min() > 0.05


@cache
def one_document():
    return pb.log_likelihood(lda(), [[1, 0, 0, 0]])


def as_scored(values, n_tokens):
    """A result with these values."""
    zeros = np.zeros(len(values))
    found = replace(one_document(), values=values, n_tokens=n_tokens)
    return replace(found, std_errors=zeros, groups=np.arange(len(values)))


def test_documents_without_a_number_do_not_spoil_the_others():
    n_tokens = np.array([3, 4, 5, 6])
    values = {
        "a": as_scored(np.array([-3.0, np.nan, -5.0, -7.0]), n_tokens),
        "b": as_scored(np.array([-3.5, -4.0, -np.inf, -6.0]), n_tokens),
    }
    comparison = pb.Comparison(values, "sequence", given_length=True)
    mean, std_error = comparison.difference("a", "b")
    assert mean == pytest.approx((0.5 - 1) / 9)
    assert std_error > 0
    assert comparison.n_left_out == {"a": 1, "b": 1}


@pytest.mark.parametrize("n_documents", [10, 30])
@pytest.mark.parametrize("sigma", [0.3, 1.0, 1.5])
def test_intervals_and_p_values_are_calibrated_at_ties(n_documents, sigma, monkeypatch):
    # Its simulations take nearly all the time, and nothing is asked of them here.
    monkeypatch.setattr(pb.Comparison, "_p_as_good", lambda _: {})
    rng = np.random.default_rng(7)
    covered, sure, n_runs = 0, 0, 1000
    for _ in range(n_runs):
        # Lengths with heavy tails; differences grow with the length, as those of real models.
        n_tokens = np.ceil(np.exp(4 + sigma * rng.standard_normal(n_documents))).astype(int)
        per_token = 0.05 * rng.standard_normal(n_documents)
        noise = 0.2 * np.sqrt(n_tokens) * rng.standard_normal(n_documents)
        ahead = n_tokens * per_token + noise
        models = {"a": as_scored(ahead, n_tokens), "b": as_scored(np.zeros(n_documents), n_tokens)}
        models = dict(sorted(models.items(), key=lambda pair: -pair[1].total))
        comparison = pb.Comparison(models, "sequence", given_length=True)
        low, high = comparison.interval("a", "b")
        covered += low <= 0 <= high
        sure += comparison.to_frame()["p_better"].iloc[1] < 0.01
    assert 0.92 <= covered / n_runs <= 0.97
    # The model that the documents favour is the best: 2 % of ties have the other below 0.01.
    assert sure / n_runs <= 0.03


def test_models_with_their_own_vocabularies_are_compared_on_the_same_words():
    words = ["urn", "ball", "größe", "🎲"]
    order = [2, 0, 3, 1]
    other = lda(topics=TOPICS[:, order], vocabulary=[words[i] for i in order])
    models = {"a": lda(vocabulary=words), "b": other}
    comparison = pb.compare(models, pb.Corpus(COUNTS, words))
    assert comparison.difference("a", "b") == pytest.approx((0, 0), abs=1e-13)
    extra = pb.Corpus(np.c_[COUNTS, [1, 0, 5]], [*words, "new"])
    with pytest.raises(errors.InvalidArgumentError, match="'new'"):
        pb.compare(models, extra)
    dropped = pb.compare(models, extra, unseen="drop")
    assert dropped.results["a"].n_unseen_tokens == dropped.results["b"].n_unseen_tokens == 6
    assert dropped.results["a"].total == comparison.results["a"].total


def test_small_probabilities_are_printed_without_false_precision():
    models = {"worse": lda(topics=FLAT), "better": lda()}
    comparison = pb.compare(models, np.tile(COUNTS, (50, 1)))
    assert comparison.to_frame()["p_better"].iloc[1] < 1e-6
    assert str(comparison).splitlines()[2].split()[-2:] == ["<0.001", "<0.001"]


def test_models_share_a_warning_that_is_of_all_of_them():
    documents = [[1, 0, 0, 0], [300] * 4]
    models = {name: lda(0.1, [[0.9, 0.1, 0, 0], [0, 0, 0.5, 0.5]]) for name in ("one", "two")}
    with pytest.warns(errors.UnreliableErrorWarning) as caught:
        pb.compare(models, documents, method="direct", n_samples=5, random_state=0)
    (warning,) = caught
    assert "standard error: one 1, two 1; score them by method=" in str(warning.message)
    with pytest.warns(errors.UnreliableErrorWarning, match=r"^one: documents .*: 1, document 1 f"):
        pb.compare({"one": models["one"]}, documents, method="direct", n_samples=5, random_state=0)


def test_models_that_need_different_remedies_are_told_apart():
    template = pb.log_likelihood(lda(), COUNTS, "annealed", n_samples=50, random_state=0)
    shaky = replace(template, n_effs=np.array([2.0, np.inf, np.inf]))
    results = {"one": shaky, "two": replace(shaky, n_effs=np.array([1.5, np.inf, np.inf]))}
    alone = [str(caveats(result)[0]) for result in results.values()]
    # Heavy tails, whose effective number is 0.
    results["three"] = replace(shaky, n_effs=np.array([0.0, np.inf, np.inf]))
    ((_, message),) = shared_caveats(results)
    message = str(errors.PolyabayesWarning(message))
    assert "standard error: one 1, two 1, three 1; for one, two use n_samples=" in message
    assert message.endswith("they had up to 50; for three score them by method='auto'")
    # The two need different sizes, of which the larger serves both.
    sizes = [int(re.search(r"n_samples=(\d+)", text)[1]) for text in (*alone, message)]
    assert sizes[0] < sizes[1] == sizes[2]


def test_one_document_has_no_known_error_of_its_difference():
    comparison = pb.compare({"a": lda(), "b": lda(topics=FLAT)}, COUNTS[:1])
    mean, std_error = comparison.difference(*comparison.results)
    assert mean > 0
    assert np.isnan(std_error)


WORDS, OTHERS = list("abcd"), np.array([[0.4, 0.3, 0.2, 0.1], [0.1, 0.2, 0.3, 0.4]])
NAMED = pb.Corpus([[3, 1, 2, 0], [0, 2, 1, 5]], WORDS)


def lda_of(words):
    """The topics `OTHERS` over some of their words."""
    part = OTHERS[:, [WORDS.index(word) for word in words]]
    return lda(topics=part / part.sum(axis=1, keepdims=True), vocabulary=[*words])


def test_a_model_that_cannot_be_scored_does_not_stop_the_others():
    whole = {str(a): lda(a, OTHERS, vocabulary=WORDS) for a in (0.5, 1.0)}
    models = {"untrained": pb.LatentDirichletAllocation(), **whole, "fewer words": lda_of("abc")}
    with pytest.warns(errors.RefusedModelWarning) as caught:
        found = pb.compare(models, NAMED)
    told = [str(warning.message) for warning in caught]
    assert len(told) == 2
    assert any("untrained is not compared: This Latent" in text for text in told)
    lacking = "fewer words is not compared: the documents have 1 word ('d')"
    assert any(lacking in text for text in told)
    wanted = pb.compare(whole, NAMED)
    assert list(found.results) == list(wanted.results)
    assert found.difference("0.5", "1.0") == wanted.difference("0.5", "1.0")
    assert set(found.refused) == {"untrained", "fewer words"}
    assert str(found).startswith(str(wanted) + "\n")
    with pytest.raises(errors.InvalidArgumentError, match="'untrained' could not be scored: This"):
        found.difference("0.5", "untrained")


def test_words_are_dropped_for_models_without_words_too():
    """The columns of a model without words are those of documents of its width."""
    fewer = lda_of("bcd")
    nameless, named = lda(topics=OTHERS), lda(topics=OTHERS, vocabulary=WORDS)
    found = pb.compare({"all": nameless, "fewer": fewer}, NAMED, unseen="drop")
    wanted = pb.compare({"all": named, "fewer": fewer}, NAMED, unseen="drop")
    assert found.difference("all", "fewer") == wanted.difference("all", "fewer")
    assert found.results["all"].n_tokens.tolist() == [3, 8]
    assert nameless.vocabulary_ is None


def test_the_fewest_words_do_not_win():
    """A model of three words is no better for being asked for these only."""
    words = [f"w{number}" for number in range(20)]
    data = pb.datasets.make_lda_corpus(120, 20, 3, random_state=0)
    texts = [" ".join(np.repeat(words, row)) for row in np.asarray(data.corpus.counts.todense())]
    models = {
        name: make_pipeline(
            CountVectorizer(max_features=n), pb.LatentDirichletAllocation(2, random_state=0)
        ).fit(texts[:80])
        for name, n in (("few", 3), ("all", None))
    }
    for order in (models, dict(reversed(models.items()))):
        with pytest.raises(errors.InvalidArgumentError, match=r"models\['few'\]: the documents"):
            pb.compare(order, texts[80:])
        found = pb.compare(order, texts[80:], unseen="drop")
        behind, std_error = found.difference("few", "all")
        assert abs(behind) < 4 * std_error
        assert "of words that some model does not know" in str(found)
    left_out = found.results["few"].n_unseen_tokens
    assert left_out + found.results["few"].n_tokens.sum() == sum(len(x.split()) for x in texts[80:])


@pytest.mark.parametrize("event", ["sequence", "counts"])
def test_models_restricted_to_common_words_are_those_of_these_words(event):
    """Rates of gamma-Poisson models are those of the words; probabilities are divided by sums."""
    for whole, less in (
        (lda(topics=OTHERS, vocabulary=WORDS), lda_of("ab")),
        (
            gamma_poisson(topics=OTHERS, vocabulary=WORDS),
            gamma_poisson(topics=OTHERS[:, :2], vocabulary=WORDS[:2]),
        ),
    ):
        found = pb.compare({"whole": whole, "less": less}, NAMED, unseen="drop", event=event)
        assert found.difference("whole", "less") == pytest.approx((0, 0), abs=1e-13)
    options = {"mean": np.zeros(1), "covariance": np.eye(1), "decoder": "softmax"}
    normal, ln = pb.DocumentModel.logistic_normal, np.log(OTHERS)
    whole, less = (normal(ln[:, :n], vocabulary=WORDS[:n], **options) for n in (4, 2))
    found = pb.compare({"whole": whole, "less": less}, NAMED, unseen="drop", random_state=0)
    assert found.difference("whole", "less")[0] == pytest.approx(0, abs=1e-12)
