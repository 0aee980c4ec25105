"""Training in parts: checkpoints, traces, callbacks."""

import builtins
import pickle
import re
from dataclasses import fields
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import polyabayes as pb
from polyabayes import exceptions as errors
from polyabayes._support.storage.arrays import read_arrays
from polyabayes.models import fitting

MODELS = [pb.LatentDirichletAllocation, pb.PoissonFactorAnalysis]


@pytest.fixture(scope="module")
def data():
    return pb.datasets.make_lda_corpus(120, 80, 4, document_length=40, random_state=0)


def parameters(model):
    arrays = [model.components_, model.topic_counts_]
    if isinstance(model, pb.PoissonFactorAnalysis):
        arrays += [model.shape_, model.probability_]
    if hasattr(model, "coefficients_"):
        arrays += [model.coefficients_, model.coefficient_draws_]
    if hasattr(model, "topic_concentration_draws_"):
        arrays += [model.topic_concentration_draws_, *model.last_sample_]
    return arrays


def assert_same(first, second):
    for x, y in zip(parameters(first), parameters(second), strict=True):
        np.testing.assert_array_equal(x, y)


def other_run(kind=MODELS[0], documents=slice(None), before=None, **change):
    """Go on from the checkpoint of another run, which stays as it is."""
    run = {"n_components": 4, "max_iter": 12, "burn_in": 6, "random_state": 1, **(before or {})}
    corpus = pb.datasets.make_lda_corpus(30, 20, 4, document_length=20, random_state=0).corpus
    MODELS[0](**run, checkpoint="state").fit(corpus)
    written = Path("state/checkpoint.safetensors").read_bytes()
    try:
        kind(**run | change, checkpoint="state").fit(corpus[documents])
    finally:
        assert Path("state/checkpoint.safetensors").read_bytes() == written


DAYS = np.arange(120.0)
BURSTY = {"topic_concentration": "learn"}
# Model, its options, arguments of its fit, those of another run, and what that is refused by.
RESUMED = {
    "lda": (MODELS[0], {}, {}, None, ""),
    "pfa": (MODELS[1], {}, {}, None, ""),
    "exposures": (MODELS[1], {}, {"exposure": "total"}, {"exposure": 2.0}, "corpus"),
    "covariates": (MODELS[0], {}, {"covariates": {"day": DAYS}}, {"covariates": {"day": DAYS**2}},
                   "covariates"),
    "bursty": (MODELS[0], BURSTY, {}, None, ""),
    "bursty, exposures": (MODELS[1], BURSTY, {"exposure": "total"}, {"exposure": 2.0}, "corpus"),
}  # fmt: skip


@pytest.mark.parametrize(("kind", "own", "given", "other", "name"), RESUMED.values(), ids=RESUMED)
@pytest.mark.parametrize("stop_at", [3, 20, 25])
def test_a_resumed_run_ends_bit_equal(tmp_path, data, kind, own, given, other, name, stop_at):
    settings = {"max_iter": 40, "burn_in": 18, "random_state": 1, **own}
    whole = kind(4, **settings).fit(data.corpus, **given)
    broken = kind(4, **settings, checkpoint=tmp_path, checkpoint_every=5)

    def callback(model):
        if model.n_iter_ >= stop_at:
            raise RuntimeError

    with pytest.raises(RuntimeError):
        broken.fit(data.corpus, **given, callback=callback, eval_every=1)
    resumed = kind(4, **settings, checkpoint=tmp_path, checkpoint_every=7)
    resumed.fit(data.corpus, **given)
    assert resumed.n_iter_ == 40
    assert resumed.trace_.n_iter[0] > stop_at // 10 * 10
    assert_same(resumed, whole)
    if other is not None:
        with pytest.raises(errors.InvalidArgumentError, match=name):
            resumed.fit(data.corpus, **other)
    if own:
        with pytest.raises(errors.InvalidArgumentError, match="topic_concentration"):
            resumed.set_params(topic_concentration=3.0).fit(data.corpus, **given)


def test_training_goes_on_when_a_checkpoint_cannot_be_written(tmp_path, data, monkeypatch):
    settings = {"max_iter": 20, "random_state": 1, "checkpoint_every": 5}
    model = pb.LatentDirichletAllocation(4, checkpoint=tmp_path, **settings)
    write = builtins.open
    written = []

    def full(path, mode="r", *rest, **named):
        if "x" in mode:
            written.append(path)
            if len(written) > 2:
                raise OSError(28, "No space left on device")
        return write(path, mode, *rest, **named)

    monkeypatch.setattr(builtins, "open", full)
    with pytest.warns(errors.CheckpointWarning) as caught:
        model.fit(data.corpus)
    # Two checkpoints failed; one warning tells of both.
    (warning,) = caught
    assert re.search(r"after 15 sweeps.*No space left.*no warning", str(warning.message))
    assert len(written) == 4
    assert model.n_iter_ == 20
    monkeypatch.undo()
    assert read_arrays(tmp_path / "checkpoint.safetensors")[0]["position"][2] == 10


@pytest.mark.parametrize(
    ("every", "sweeps"), [("2s", [2, 4, 6, 8, 9]), ("0.05min", [3, 6, 9]), ("1h", [9])]
)
def test_checkpoints_are_written_by_time(monkeypatch, every, sweeps):
    """Every sweep takes a second of a clock of its own."""
    training, written = SimpleNamespace(n_sweeps=0), []

    def sweep(until, *_):
        training.n_sweeps = until
        return [], None

    training.run = sweep
    clock = {name: lambda: float(training.n_sweeps) for name in ("monotonic", "perf_counter")}
    monkeypatch.setattr(fitting, "time", SimpleNamespace(**clock))
    checkpoint = SimpleNamespace(
        period=fitting.CheckpointPeriod(every), write=lambda one: written.append(one.n_sweeps)
    )
    looks = fitting.EvaluationSchedule(10, None, None)
    schedule = SimpleNamespace(max_iter=9)
    assert fitting.run(training, schedule, looks, int, checkpoint, progress=False) is None
    assert written == sweeps


@pytest.mark.parametrize("kind", MODELS)
def test_the_trace_rises_and_ends_where_the_model_does(data, kind):
    train, test = data.corpus[:100], data.corpus[100:]
    model = kind(4, max_iter=45, random_state=1)
    model.fit(train, eval_corpus=test, eval_every=10)
    trace = model.trace_
    assert trace.n_iter.tolist() == [10, 20, 30, 40, 45]
    assert (np.diff(trace.seconds) > 0).all()
    assert np.isfinite(trace.log_joint).all()
    result = pb.log_likelihood(model, test, event="sequence", given_length=True, random_state=0)
    error = np.hypot(result.nats_per_token_std_error, trace.held_out_std_error[-1])
    assert abs(trace.held_out[-1] - result.nats_per_token) < 5 * error
    assert list(trace.to_frame()) == [field.name for field in fields(trace)]
    alone = kind(4, max_iter=45, random_state=1).fit(train)
    assert_same(alone, model)
    assert np.isnan(alone.trace_.held_out).all()
    np.testing.assert_array_equal(alone.trace_.log_joint, trace.log_joint)


def test_a_callback_may_end_training(data):
    seen = []

    def callback(model):
        seen.append((model.n_iter_, model.components_.sum()))
        return model.n_iter_ >= 20

    model = pb.LatentDirichletAllocation(4, max_iter=100, random_state=1)
    model.fit(data.corpus, callback=callback, eval_every=5)
    assert [n for n, _ in seen] == [5, 10, 15, 20]
    assert model.n_iter_ == 20
    assert seen[-1][1] == pytest.approx(4)


@pytest.mark.parametrize("kind", MODELS)
def test_the_last_sample_is_the_state_that_a_run_without_averages_returns(data, kind):
    averaged = kind(4, max_iter=30, burn_in=10, random_state=1).fit(data.corpus)
    # Burn-in to the end: nothing is kept, so that what is returned is the last state itself.
    last = kind(4, max_iter=30, burn_in=10, thin=21, random_state=1).fit(data.corpus)
    sample = averaged.last_sample_
    np.testing.assert_allclose(sample.topic_word, last.components_, rtol=1e-12)
    np.testing.assert_array_equal(averaged.topic_counts_, last.topic_counts_)
    assert (sample.topic_word != averaged.components_).any()
    if kind is pb.PoissonFactorAnalysis:
        np.testing.assert_array_equal(sample.shape, last.shape_)
        assert (sample.shape != averaged.shape_).all()
        assert ((sample.probability > 0) & (sample.probability < 1)).all()
    else:
        np.testing.assert_array_equal(sample.doc_topic_prior, last.doc_topic_prior_)
        assert sample.topic_word_prior == last.topic_word_prior_
        assert sample.topic_word_prior != averaged.topic_word_prior_


@pytest.mark.parametrize("kind", MODELS)
def test_models_that_were_not_sampled_here_have_no_last_sample(data, kind, tmp_path):
    model = kind(2, max_iter=4, random_state=1).fit(data.corpus)
    assert pickle.loads(pickle.dumps(model)).last_sample_.topic_word.shape == (2, 80)
    model.save(tmp_path / "m")
    for without in (kind(), pb.load(tmp_path / "m")):
        assert not hasattr(without, "last_sample_")
        with pytest.raises(errors.NotFittedError, match="no last sample"):
            _ = without.last_sample_


@pytest.fixture(scope="module")
def trained(data):
    model = pb.LatentDirichletAllocation(4, max_iter=30, random_state=1)
    return model.fit(data.corpus[:100], eval_corpus=data.corpus[100:])


def test_plot_trace_draws_what_the_trace_holds(trained, data):
    ax = pb.plotting.plot_trace(trained)
    line = ax.lines[0]
    np.testing.assert_array_equal(line.get_xdata(), trained.trace_.n_iter)
    np.testing.assert_array_equal(line.get_ydata(), trained.trace_.held_out)
    alone = pb.LatentDirichletAllocation(4, max_iter=30, random_state=1).fit(data.corpus)
    ax = pb.plotting.plot_trace({"a": alone, "b": trained}, against="seconds")
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["a", "b"]
    np.testing.assert_array_equal(ax.lines[0].get_ydata(), alone.trace_.log_joint)


def test_densities_without_a_common_scale_have_axes_of_their_own(data):
    def made(n_components, seed):
        model = pb.LatentDirichletAllocation(n_components, max_iter=12, random_state=seed)
        return model.fit(data.corpus[:40])

    models = {"3, a": made(3, 0), "4": made(4, 0), "3, b": made(3, 1)}
    first = pb.plotting.plot_trace(models)
    told = [[text.get_text() for text in ax.get_legend().get_texts()] for ax in first.figure.axes]
    assert told == [["3, a", "3, b"], ["4"]]
    assert first is first.figure.axes[0]
    line = first.figure.axes[1].lines[0]
    np.testing.assert_array_equal(line.get_ydata(), models["4"].trace_.log_joint)
    with pytest.raises(errors.InvalidArgumentError, match="no common scale"):
        pb.plotting.plot_trace(models, ax=first)


def test_plot_topic_similarity_has_similar_topics_beside_each_other():
    topics = np.array([[8, 1, 0, 0], [0, 0, 8, 1], [7, 2, 0, 0], [0, 1, 7, 2]]) / 9.0
    topics /= topics.sum(axis=1, keepdims=True)
    model = pb.LatentDirichletAllocation.from_parameters(doc_topic_prior=1.0, topic_word=topics)
    ax = pb.plotting.plot_topic_similarity(model)
    order = [int(label.get_text()) for label in ax.get_xticklabels()]
    assert {frozenset(order[:2]), frozenset(order[2:])} == {frozenset((0, 2)), frozenset((1, 3))}
    assert [label.get_text() for label in ax.get_yticklabels()] == [f"topic {k}" for k in order]
    image = ax.images[0].get_array()
    assert np.isnan(np.diag(np.ma.filled(image, np.nan))).all()
    apart = np.linalg.norm(np.sqrt(topics[order[0]]) - np.sqrt(topics[order[1]])) / np.sqrt(2)
    assert image[0, 1] == pytest.approx(1 - apart, abs=1e-9)


@pytest.mark.parametrize("cls", MODELS)
def test_standard_deviation_of_a_single_topic_is_that_of_its_dirichlet(cls):
    counts = np.array([[3, 0, 1, 4], [1, 2, 0, 9]])
    options = {"topic_word_prior": 0.5, "max_iter": 10, "random_state": 0}
    model = cls(1, **options).fit(counts)
    a = counts.sum(axis=0) + 0.5
    mean, total = a / a.sum(), a.sum()
    np.testing.assert_allclose(model.components_[0], mean, rtol=1e-12)
    expected = np.sqrt(mean * (1 - mean) / (total + 1))
    np.testing.assert_allclose(model.components_std_[0], expected, rtol=1e-9)


def test_standard_deviations_are_those_of_the_draws(data):
    draws = []
    model = pb.LatentDirichletAllocation(2, max_iter=1000, thin=1, random_state=0)
    keep = {"callback": lambda model: draws.append(model.posterior_draw("phi")["phi"])}
    model.fit(data.corpus, **keep, eval_every=1)
    spread = np.std(draws[500:], axis=0)
    # 500 independent draws would be within some 10 %; those of a chain are worth fewer.
    is_common = model.components_ > 0.005
    np.testing.assert_allclose(model.components_std_[is_common], spread[is_common], rtol=0.3)
    by_em = model.set_params(fit_method="em", thin=5).fit(data.corpus)
    assert not hasattr(by_em, "components_std_")


@pytest.mark.parametrize("cls", MODELS)
def test_a_topic_has_one_share_of_the_training_documents(cls, data, tmp_path):
    model = cls(4, max_iter=10, random_state=0).fit(data.corpus)
    model.save(tmp_path / "model.safetensors")
    for one in (model, pb.load(tmp_path / "model.safetensors")):
        found = pb.topics.diagnostics(one, data.corpus, n_words=2)
        np.testing.assert_array_equal(found.tokens, model.topic_counts_)
        part = pb.topics.diagnostics(one, data.corpus[:60], n_words=2)
        assert part.tokens.sum() == pytest.approx(data.corpus[:60].n_tokens)
