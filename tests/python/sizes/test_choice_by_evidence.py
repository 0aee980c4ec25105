"""Sizes by evidence averaged over concentrations: against the sum over all allocations."""

import numpy as np
import pytest
from scipy.special import logsumexp, softmax

import polyabayes as pb
import polyabayes.exceptions as errors
from helpers.networks import ln_enumerated
from polyabayes.sizes.choice import evidence

# So few tokens tell concentrations little: the best may be the first or the last.
pytestmark = pytest.mark.filterwarnings("ignore::polyabayes.exceptions.EdgeWarning")

TABLE = np.array([[3, 0, 1], [0, 2, 1]])
NMF = pb.AllocationModel.nmf(None)
SIZES, VALUES = [1, 2, 3], [0.5, 4.0, 32.0]


def enumerated(size, concentration):
    """ln p(table | total) by the sum over the topics of all tokens."""
    model = pb.AllocationModel.nmf(size, concentration=concentration)
    tokens = np.repeat(np.argwhere(TABLE >= 0), TABLE.ravel(), axis=0).tolist()
    rows = [{"doc": doc, "word": word} for doc, word in tokens]
    return ln_enumerated(model, {"topic": size, "doc": 2, "word": 3}, rows)


@pytest.fixture(scope="module")
def exact():
    """ln p(table | total) of all sizes and concentrations."""
    return np.array([[enumerated(size, a) for a in VALUES] for size in SIZES])


def choose(**options):
    return pb.choose_n_components(NMF, TABLE, SIZES, random_state=0, **options)


def test_the_average_is_that_of_all_allocations(exact):
    found = choose(concentrations=VALUES)
    scores = logsumexp(exact, axis=1) - np.log(3)
    np.testing.assert_allclose([row["score"] for row in found.rows], scores, atol=1e-9)
    np.testing.assert_allclose([*found.probabilities.values()], softmax(scores), atol=1e-9)
    np.testing.assert_allclose([row["score"] for row in found.joint], exact.ravel(), atol=1e-9)
    joint = softmax(exact)
    probabilities = [row["probability"] for row in found.joint]
    np.testing.assert_allclose(probabilities, joint.ravel(), atol=1e-9)
    assert [*found.concentrations] == VALUES
    np.testing.assert_allclose([*found.concentrations.values()], joint.sum(axis=0), atol=1e-9)
    likeliest = [VALUES[index] for index in exact.argmax(axis=1)]
    assert found.to_frame()["concentration"].tolist() == likeliest
    assert "\nconcentration: " in str(found)


def test_prior_weights_of_concentrations_weigh(exact):
    found = choose(concentrations={32.0: 1, 0.5: 6, 4.0: 3})
    scores = logsumexp(exact + np.log([0.6, 0.3, 0.1]), axis=1)
    np.testing.assert_allclose([row["score"] for row in found.rows], scores, atol=1e-9)


@pytest.mark.parametrize("method", ["smc", "tempered"])
def test_errors_of_sampled_evidences_are_carried(exact, method):
    found = choose(concentrations=VALUES, method=method, n_replicates=8)
    scores = logsumexp(exact, axis=1) - np.log(3)
    for row, score in zip(found.rows[1:], scores[1:], strict=True):
        assert 0 < row["std_error"] < 0.1
        assert abs(row["score"] - score) < 4 * row["std_error"]
    # Errors of a mean are at most those of its largest part.
    largest = max(row["std_error"] for row in found.joint if row["size"] == 3)
    assert found.rows[2]["std_error"] < largest


def test_the_concentration_of_the_model_is_kept_by_default(exact):
    model = pb.AllocationModel.nmf(None, concentration=4.0)
    found = pb.choose_n_components(model, TABLE, SIZES, given_total=True, random_state=0)
    np.testing.assert_allclose([row["score"] for row in found.rows], exact[:, 1], atol=1e-9)
    assert found.joint == []
    assert found.concentrations == {}
    assert "concentration" not in found.to_frame()
    single = model.with_sizes(topic=2).log_evidence(TABLE)
    assert pb.choose_n_components(model, TABLE, [2]).rows[0]["score"] == single.value


def test_a_rate_of_the_model_weighs_the_total():
    model = pb.AllocationModel.nmf(None, rate=0.5)
    found = pb.choose_n_components(model, TABLE, [2], concentrations=VALUES)
    for row in found.joint:
        one = pb.AllocationModel.nmf(2, concentration=row["concentration"], rate=0.5)
        assert row["score"] == one.log_evidence(TABLE).value


def test_auto_leaves_out_what_does_not_matter():
    """Its grid is that of the largest table; the values that it leaves out weigh nothing."""
    table = np.kron(np.eye(2, dtype=np.int64), np.full((3, 3), 12))
    model = pb.AllocationModel.nmf(None)
    options = {"random_state": 0, "method": "tempered", "target_std_error": 0.3}
    found = pb.choose_n_components(model, table, [1, 2], concentrations="auto", **options)
    # 6 rows, 2 topics: 12 cells, so that 48 is below the largest power of 2.
    grid = [2.0**power for power in range(-2, 7)]
    whole = pb.choose_n_components(model, table, [1, 2], concentrations=grid, **options)
    assert len(found.joint) < len(whole.joint)
    kept = {(row["size"], row["concentration"]): row["score"] for row in found.joint}
    full = {(row["size"], row["concentration"]): row["score"] for row in whole.joint}
    assert all(full[key] == score for key, score in kept.items())
    assert found.best == 2
    for one, other in zip(found.rows, whole.rows, strict=True):
        assert one["score"] == pytest.approx(other["score"], abs=1e-3)


def test_evidences_are_resumed_and_seeds_belong_to_sizes_and_concentrations(tmp_path, monkeypatch):
    options = {"concentrations": [4.0, 16.0, 64.0], "method": "tempered"}
    plain = choose(**options)
    log_evidence, done = pb.AllocationModel.log_evidence, []

    def stopped(model, *arguments, **given):
        if len(done) == 4:
            raise KeyboardInterrupt
        done.append((model.sizes["topic"], model.concentration))
        return log_evidence(model, *arguments, **given)

    monkeypatch.setattr(pb.AllocationModel, "log_evidence", stopped)
    with pytest.raises(errors.Interrupted, match="1 of 3 sizes are done") as stop:
        choose(**options, checkpoint=tmp_path)
    partial = stop.value.partial
    assert not partial.is_decided
    assert [row["size"] for row in partial.rows] == [1]
    assert partial.rows[0]["score"] == plain.rows[0]["score"]
    monkeypatch.setattr(pb.AllocationModel, "log_evidence", log_evidence)
    assert len(list(tmp_path.iterdir())) == 1 + 4
    resumed = choose(**options, checkpoint=tmp_path)
    assert resumed.to_frame().equals(plain.to_frame())
    assert len(list(tmp_path.iterdir())) == 1 + 9
    with pytest.raises(errors.InvalidArgumentError, match="another choice: its options"):
        choose(**options, n_replicates=8, checkpoint=tmp_path)
    alone = pb.choose_n_components(
        NMF, TABLE, [3], random_state=0, concentrations=[16.0, 64.0], method="tempered"
    )
    assert [row["score"] for row in alone.joint] == [row["score"] for row in plain.joint[-2:]]


def test_the_edge_of_given_concentrations_is_said_where_the_choice_was_asked_for():
    with pytest.warns(errors.EdgeWarning, match="0.25 at size 2, is the largest") as told:
        pb.choose_n_components(NMF, TABLE, [1, 2], concentrations=[0.125, 0.25])
    assert {one.filename for one in told} == {__file__}


def test_doubts_are_told_once():
    with pytest.warns(errors.UnreliableErrorWarning) as told:
        pb.choose_n_components(
            NMF, TABLE, [2, 3], concentrations=VALUES, method="smc", n_particles=16, n_replicates=1
        )
    assert len([one for one in told if one.category is errors.UnreliableErrorWarning]) == 1
    assert "size 2, concentration 0.5: one replicate" in str(told[0].message)
    assert "5 more evidences are unreliable" in str(told[0].message)
    assert told[0].filename == __file__


def test_unknown_errors_do_not_decide():
    """One replicate has no error: sizes of nearly equal evidence are equally good all the same."""
    best = evidence.Score(-100.0, np.nan)
    scores = {1: evidence.Score(-100.5, np.nan), 2: best, 3: evidence.Score(-104.0, np.nan)}
    found = evidence.choice_by_evidence(scores, [], [[1, 2, 3]], True)
    assert (found.best, found.equally_good) == (2, (1, 2))


def test_the_picture_shows_concentrations():
    figure = pb.plotting.plot_choice(choose(concentrations=VALUES))
    labels = [[tick.get_text() for tick in ax.get_xticklabels()] for ax in figure.axes]
    assert labels == [["1", "2", "3"], ["0.5", "4", "32"]]
    assert len(pb.plotting.plot_choice(choose()).axes) == 1
