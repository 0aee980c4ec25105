import contextlib
import json
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import sparse, stats
from scipy.special import gammaln, logsumexp, softmax

import polyabayes as pb
from helpers.interruption import interrupted_when_done
from helpers.small_models import COUNTS, TOPICS, gamma_poisson, lda, ln_lda, ln_urn_sum
from polyabayes import exceptions as errors
from polyabayes.likelihood import scoring
from polyabayes.likelihood.methods import METHODS

VECTORS = Path(__file__).parents[2] / "vectors"
CASES = json.loads((VECTORS / "documents.json").read_text(encoding="utf-8"))
WORDS = ["urn", "ball", "größe", "🎲"]
SAMPLERS = ["smc", "smc-lookahead", "direct"]


def model_of(case):
    if case["model"] == "lda":
        return lda(case["doc_topic_prior"], case["topic_word"])
    return gamma_poisson(case["shape"], case["probability"], case["topic_word"])


def corpus_and_model(n_documents, length, prior, n_topics=4, topic_word_prior=0.1):
    options = {"document_length": length, "doc_topic_prior": prior, "random_state": 3}
    options |= {"topic_word_prior": topic_word_prior}
    data = pb.datasets.make_lda_corpus(n_documents, 60, n_topics, **options)
    return data.corpus, lda(data.doc_topic_prior, data.topic_word)


@pytest.fixture(scope="module")
def dense():
    """Documents that mix their topics, and their exact values."""
    corpus, model = corpus_and_model(60, 30, [0.6, 1.0, 1.5], 3, topic_word_prior=0.5)
    return corpus, model, pb.log_likelihood(model, corpus, "exact", budget=1e10)


def by_definition(case):
    """Values of all events by the sum over the topics of all tokens."""
    counts = np.array(case["counts"])
    n, phi = counts.sum(), np.array(case["topic_word"])
    orders = gammaln(n + 1) - gammaln(counts + 1).sum()
    if case["model"] == "lda":
        sequence = ln_lda(counts, case["doc_topic_prior"], phi)
        return {"log_sequence": sequence, "log_counts": sequence + orders}
    shape, p = np.array(case["shape"]), np.array(case["probability"])
    q = (p / (1 - p + p * phi.sum(axis=1)))[:, np.newaxis] * phi
    sums, empty = q.sum(axis=1, keepdims=True), (1 - p) / (1 - p + p * phi.sum(axis=1))
    ln_of_all = shape @ np.log(empty) - gammaln(n + 1)
    sequence, length = (ln_urn_sum(*x) for x in ((counts, shape, q), ([n], shape, sums)))
    found = {"log_sequence": sequence + ln_of_all, "log_sequence_given_length": sequence - length}
    return found | {name.replace("sequence", "counts"): x + orders for name, x in found.items()}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_exact_values_of_every_event(case):
    model = model_of(case)
    for name, expected in by_definition(case).items():
        event, given_length = name.split("_")[1], name.endswith("length") or case["model"] == "lda"
        asked = {"event": event, "given_length": given_length}
        found = pb.log_likelihood(model, [case["counts"]], "exact", **asked)
        assert found.values[0] == pytest.approx(case[name], rel=1e-11, abs=1e-11)
        assert expected == pytest.approx(case[name], rel=1e-11, abs=1e-11)
        assert (found.std_errors[0], found.n_effs[0]) == (0, np.inf)


@pytest.mark.parametrize("size", [1e-99, 1e-50, 1e-20, 1e-12, 1e-8, 1e-3, 1e3, 1e8])
def test_exact_values_for_small_and_large_priors(size):
    prior, topics = [size, 2 * size, 0.5 * size], [*TOPICS.tolist(), [0.25, 0.5, 0.125, 0.125]]
    for counts in ([1, 3, 1, 2], [9, 0, 0, 4]):
        value = pb.log_likelihood(lda(prior, topics), [counts], "exact").values[0]
        assert value == pytest.approx(ln_lda(counts, prior, topics), abs=1e-11)


def test_exact_values_of_a_published_corpus(shared_data):
    trained = json.loads((shared_data / "l2r_twitter100.model.json").read_text())
    table = np.loadtxt(shared_data / "l2r_twitter100.exact.csv", delimiter=",", skiprows=1)
    corpus = pb.read_corpus(shared_data / "l2r_twitter100.ldac.gz", n_words=trained["W"])
    model = gamma_poisson(trained["r"], trained["p"], trained["phi"])
    result = pb.log_likelihood(model, corpus.counts[table[:, 0].astype(int)], "exact")
    assert len(result.values) == 10
    np.testing.assert_allclose(result.values, table[:, 1], rtol=0, atol=1e-9)


@pytest.mark.parametrize(
    "documents",
    [
        sparse.csc_array(COUNTS),
        COUNTS.tolist(),
        pd.DataFrame(COUNTS, columns=WORDS),
        pd.DataFrame(COUNTS, columns=WORDS)[WORDS[::-1]],
        pb.Corpus(COUNTS[:, [2, 0, 3, 1]], [WORDS[i] for i in (2, 0, 3, 1)]),
    ],
    ids=lambda documents: type(documents).__name__,
)
def test_every_kind_of_documents_gives_the_same(documents):
    expected = pb.log_likelihood(gamma_poisson(), COUNTS)
    result = pb.log_likelihood(gamma_poisson(vocabulary=WORDS), documents)
    np.testing.assert_array_equal(result.values, expected.values)
    np.testing.assert_array_equal(result.n_tokens, [6, 0, 6])
    assert result.n_unseen_tokens == 0


@pytest.mark.parametrize(
    ("model", "event", "given_length"),
    [(lda(), "sequence", True), (gamma_poisson(), "counts", False)],
)
def test_defaults_of_the_event(model, event, given_length):
    result = pb.log_likelihood(model, COUNTS)
    assert (result.event, result.given_length) == (event, given_length)
    explicit = pb.log_likelihood(model, COUNTS, event=event, given_length=given_length)
    np.testing.assert_array_equal(result.values, explicit.values)
    other = {"sequence": "counts", "counts": "sequence"}[event]
    assert (pb.log_likelihood(model, COUNTS, event=other).values != result.values).sum() == 2


@pytest.mark.parametrize("method", ["exact", *SAMPLERS])
@pytest.mark.parametrize("model", [lda(), gamma_poisson()], ids=["lda", "gamma-poisson"])
def test_sequence_and_counts_differ_by_the_number_of_orders(model, method):
    bag = pb.log_likelihood(model, COUNTS, method, event="counts", random_state=1)
    tokens = pb.log_likelihood(model, COUNTS, method, event="sequence", random_state=1)
    orders = gammaln(COUNTS.sum(axis=1) + 1) - gammaln(COUNTS + 1).sum(axis=1)
    np.testing.assert_allclose(bag.values - tokens.values, orders, rtol=0, atol=1e-12)


@pytest.mark.parametrize("event", ["sequence", "counts"])
def test_equal_probabilities_make_gamma_poisson_an_lda_with_a_random_length(event):
    shape = np.array([0.7, 1.3])
    joint, conditional = (
        pb.log_likelihood(gamma_poisson(shape, 0.3), COUNTS, event=event, given_length=given)
        for given in (False, True)
    )
    expected = pb.log_likelihood(lda(shape), COUNTS, event=event)
    np.testing.assert_allclose(conditional.values, expected.values, rtol=0, atol=1e-12)
    lengths = stats.nbinom(shape.sum(), 0.7).logpmf(COUNTS.sum(axis=1))
    np.testing.assert_allclose(joint.values, expected.values + lengths, rtol=0, atol=1e-12)


@pytest.mark.parametrize("prior", [1.0, 0.1, 0.01])
def test_intervals_cover_the_exact_values(prior):
    corpus, model = corpus_and_model(500, 30, prior)
    exact = pb.log_likelihood(model, corpus, "exact")
    # Particles may miss topics of priors up to 0.01, which these documents do not need.
    warned = (
        pytest.warns(errors.UnreliableErrorWarning) if prior == 0.01 else contextlib.nullcontext()
    )
    with warned:
        result = pb.log_likelihood(model, corpus, "smc-lookahead", random_state=0)
    lower, upper = result.interval(0.95)
    covered = (lower <= exact.values) & (exact.values <= upper)
    assert 0.90 <= covered.mean() <= 0.99


@pytest.mark.filterwarnings("ignore::polyabayes.exceptions.UnreliableErrorWarning")
@pytest.mark.parametrize("method", sorted(set(METHODS) - {"auto", "exact", "recursive"}))
def test_bits_depend_on_nothing_but_seed_and_document(dense, method):
    corpus, model, _ = dense

    def values(counts, n_jobs=1, seed=5):
        run = {"n_samples": 50, "random_state": seed, "n_jobs": n_jobs}
        result = pb.log_likelihood(model, counts, method, **run)
        return np.column_stack([result.values, result.std_errors, result.n_effs])

    expected = values(corpus)
    for n_jobs in (2, 4, -1):
        np.testing.assert_array_equal(values(corpus, n_jobs), expected)
    order = np.random.default_rng(0).permutation(corpus.n_documents)
    np.testing.assert_array_equal(values(corpus.counts[order], 2), expected[order])
    np.testing.assert_array_equal(values(corpus.counts[[7]]), expected[[7]])
    assert (values(corpus, seed=6)[:, 0] != expected[:, 0]).all()


def test_equal_documents_share_one_estimate_and_its_error():
    result = pb.log_likelihood(lda(), COUNTS[[0, 2, 0, 1, 0]], "smc", random_state=0)
    first, other, *_ = errors_of_each = result.std_errors
    np.testing.assert_array_equal(result.values[[0, 2, 4]], result.values[0])
    np.testing.assert_array_equal(errors_of_each, [first, other, first, 0, first])
    bias = -(3 * first**2 + other**2) / 2
    assert result.log_bias.sum() == pytest.approx(bias, rel=1e-12)
    spread = np.hypot(3 * first, other)
    assert result.total_std_error == pytest.approx(np.hypot(spread, bias), rel=1e-12)


@pytest.mark.parametrize(
    "make",
    [
        lambda: 7,
        lambda: np.int64(7),
        lambda: np.random.RandomState(7),
        lambda: np.random.default_rng(7),
        lambda: np.random.SeedSequence(7),
        pytest.param(lambda: None, id="None"),
    ],
)
def test_every_random_state_can_be_repeated_but_none(make):
    first, again = (
        pb.log_likelihood(lda(), COUNTS, "smc", random_state=make()).values for _ in range(2)
    )
    state = make()
    assert np.array_equal(first, again) == (state is not None)
    one, two = (pb.log_likelihood(lda(), COUNTS, "smc", random_state=state).total for _ in "12")
    is_stream = isinstance(state, (np.random.RandomState, np.random.Generator, type(None)))
    assert (one != two) == is_stream


@pytest.mark.parametrize("prior", ["dirichlet", "logistic-normal"])
def test_nearly_all_documents_reach_the_error_asked_for(prior):
    rng = np.random.default_rng(8)
    topics = rng.dirichlet(np.full(300, 0.1), 10)
    if prior == "dirichlet":
        model = lda(0.1, topics)
        weights = rng.dirichlet(np.full(10, 0.1), 60)
    else:
        root = rng.normal(size=(10, 10))
        covariance = root @ root.T / 5
        model = pb.DocumentModel.logistic_normal(topics, np.zeros(10), covariance)
        weights = softmax(rng.multivariate_normal(np.zeros(10), covariance, 60), axis=1)
    documents = np.array([rng.multinomial(100, row @ topics) for row in weights])
    options = {"target_std_error": 0.05, "random_state": 0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pb.exceptions.TargetWarning)
        result = pb.log_likelihood(model, documents, "annealed", **options)
    assert result.reached.mean() >= 0.95


def test_auto_is_exact_where_that_is_cheap():
    rng = np.random.default_rng(0)
    model = lda(0.1, rng.dirichlet(np.ones(200), 30))
    documents = np.zeros((3, 200), dtype=int)
    documents[0, :3] = 1
    documents[1] = rng.poisson(1, 200)
    result = pb.log_likelihood(model, documents, random_state=0)
    assert result.methods.tolist() == ["exact", "annealed", "exact"]
    assert result.method == "auto"
    assert result.std_errors[0] == result.std_errors[2] == 0 < result.std_errors[1] < 5
    sampled = pb.log_likelihood(model, documents, "annealed", random_state=0)
    # auto has chosen another number of temperatures, by a smaller run beside.
    difference = sampled.values[1] - result.values[1]
    assert abs(difference) < 4 * np.hypot(sampled.std_errors[1], result.std_errors[1])
    assert pb.log_likelihood(lda(), COUNTS, budget=1).methods[0] == "annealed"


@pytest.mark.parametrize("method", ["exact", *SAMPLERS])
def test_one_topic_has_a_closed_form(method):
    phi = np.array([0.5, 0.25, 0.125, 0.125])
    result = pb.log_likelihood(lda(0.3, [phi]), COUNTS, method, random_state=0)
    np.testing.assert_allclose(result.values, COUNTS @ np.log(phi), rtol=1e-12)
    # Scale p / (1 - p) times the topic's total rate 3: the length is negative binomial.
    model = gamma_poisson(0.7, 0.25, [3 * phi])
    result = pb.log_likelihood(model, COUNTS, method, event="sequence", random_state=0)
    lengths = stats.nbinom(0.7, 0.75 / (0.75 + 0.25 * 3)).logpmf(COUNTS.sum(axis=1))
    np.testing.assert_allclose(result.values, COUNTS @ np.log(phi) + lengths, rtol=1e-12)


@pytest.mark.filterwarnings("ignore::polyabayes.exceptions.UnreliableErrorWarning")
def test_long_documents_have_the_value_of_a_sum_over_the_one_word_that_both_topics_know():
    options = {"n_particles": 20, "n_replicates": 4, "random_state": 0}
    prior, topics = (0.2, 0.6), [[0.999, 0.001, 0.0], [0.001, 0.0, 0.999]]
    shared, first, second = 50_000, 50, 49_950
    model = lda(prior, topics)
    result = pb.log_likelihood(model, [[shared, first, second]], "smc-lookahead", **options)
    # Tokens of the shared word by their topic: the first has 0 to all of them.
    n = np.arange(shared + 1)
    ways = gammaln(shared + 1) - gammaln(n + 1) - gammaln(shared - n + 1)
    words = (n + second) * np.log(0.999) + (shared - n + first) * np.log(0.001)
    rising = gammaln(prior[0] + n + first) - gammaln(prior[0])
    rising += gammaln(prior[1] + shared - n + second) - gammaln(prior[1])
    total = gammaln(sum(prior)) - gammaln(sum(prior) + shared + first + second)
    exact = logsumexp(ways + words + rising + total)
    assert abs(result.total - exact) < 4 * result.std_errors[0]
    assert 0 < result.std_errors[0] < 20


@pytest.mark.parametrize(
    ("third", "share", "a", "counts"),
    [
        (0.05, 1e-6, 0.1, [200, 200]),
        (0.05, 0.2, 0.1, [200, 200]),
        (0.5, 0.2, 1.0, [300, 250]),
        (0.6, 0.1, 0.1, [500, 500]),
    ],
)
def test_errors_hold_where_some_topics_are_nearly_equal(third, share, a, counts):
    topics = np.array([[0.7, 0.3], [0.7 * (1 - share), 1 - 0.7 * (1 - share)], [third, 1 - third]])
    model = lda([a, 1.3 * a, 0.8 * a], topics)
    exact = pb.log_likelihood(model, [counts], "exact", budget=1e12).total
    for seed in range(4):
        found = pb.log_likelihood(model, [counts], "annealed", random_state=seed)
        assert abs(found.total - exact) < 4 * found.total_std_error < 0.2


@pytest.mark.filterwarnings("ignore::polyabayes.exceptions.UnreliableErrorWarning")
@pytest.mark.parametrize("method", ["smc-lookahead", "direct", "exact"])
def test_interrupts_keep_the_documents_done(method, monkeypatch):
    n_documents, length, n_topics = (20, 80, 6) if method == "exact" else (5_000, 120, 50)
    corpus, model = corpus_and_model(n_documents, length, 0.1, n_topics)
    options = {"n_particles": 200, "n_samples": 2_000, "budget": 1e12, "random_state": 4}
    least = 0 if method == "exact" else 1
    stop = interrupted_when_done(least, monkeypatch, scoring)
    with stop, pytest.raises(errors.Interrupted) as caught:
        pb.log_likelihood(model, corpus, method, **options)
    partial = caught.value.partial
    done = np.flatnonzero(partial.methods != "")
    assert f"{len(done):,} of {n_documents:,} documents" in str(caught.value)
    assert least <= len(done) < n_documents
    np.testing.assert_array_equal(np.isfinite(partial.values), partial.methods != "")
    np.testing.assert_array_equal(np.isnan(partial.std_errors), partial.methods == "")
    assert np.isnan(partial.total)
    assert "not scored" in repr(partial)
    for row in done[:20]:
        alone = pb.log_likelihood(model, corpus.counts[row], method, **options)
        assert alone.values[0] == partial.values[row]


class RecordingBar:
    def __init__(self, total, unit, bar_format):  # noqa: ARG002
        self.total, self.unit, self.n, self.seen = total, unit, 0, []
        RecordingBar.last = self

    def __enter__(self):
        return self

    def __exit__(self, *failure):
        self.closed = True

    def update(self, n):
        self.n += n
        self.seen.append(self.n)

    def refresh(self):
        pass


def test_progress_counts_documents_up_to_the_last(monkeypatch, dense):
    monkeypatch.setattr("tqdm.auto.tqdm", RecordingBar)
    corpus, model, _ = dense
    pb.log_likelihood(model, corpus, "direct", n_samples=4_000, progress=True)
    bar = RecordingBar.last
    assert (bar.total, bar.unit, bar.n) == (60, "document", 60)
    assert bar.seen == sorted(bar.seen)
    assert len(bar.seen) > 3


def test_failing_progress_stops_the_work(monkeypatch, dense):
    monkeypatch.setattr("tqdm.auto.tqdm", RecordingBar)
    monkeypatch.setattr(RecordingBar, "update", lambda *_: 1 / 0)
    corpus, model, _ = dense
    with pytest.raises(ZeroDivisionError):
        pb.log_likelihood(model, corpus, "direct", n_samples=10**8, progress=True, budget=1e15)


def test_the_method_is_the_estimator_that_served_all_documents():
    model = lda(0.1, [[0.5, 0.5], [0.2, 0.8]])
    assert pb.log_likelihood(model, [[1, 1], [0, 2]]).method == "exact"
    mixture = pb.DocumentModel.mixture([[0.5, 0.5], [0.2, 0.8]], [0.5, 0.5])
    assert pb.log_likelihood(mixture, [[1, 1], [0, 2]]).method == "exact"


@pytest.mark.parametrize(("make", "name"), [(lda, "doc_topic_prior"), (gamma_poisson, "shape")])
def test_names_of_topics_order_what_a_call_gives_by_topic(make, name, tmp_path):
    names = ["war", "peace"]
    make(topics=pd.DataFrame(TOPICS, names)).save(tmp_path / "model.safetensors")
    model = pb.load(tmp_path / "model.safetensors")
    rows = pd.DataFrame([[1, 0.5], [3, 0.1], [0.2, 4]], columns=names)
    bursts = pd.Series([9.0, 2.0], names)
    for key, table in ((name, rows.T), ("topic_concentration", bursts)):
        found = [
            pb.log_likelihood(model, COUNTS, random_state=0, **{key: given.T}).values
            for given in (table.to_numpy(), table, table[::-1])
        ]
        np.testing.assert_array_equal(found[1:], found[:1] * 2)
