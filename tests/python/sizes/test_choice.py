"""The number of topics: found, with errors that hold, resumed, the same everywhere."""

import warnings
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone

import polyabayes as pb
import polyabayes.exceptions as errors
from polyabayes._support.storage.arrays import read_arrays, write_arrays
from polyabayes.sizes.choice import grid, held_out
from polyabayes.sizes.folds import folds_of

LDA = pb.LatentDirichletAllocation(max_iter=30, n_jobs=1)
SIZES = [1, 3, 9]


@pytest.fixture(scope="module")
def choice(corpus):
    return pb.choose_n_components(LDA, corpus, SIZES, n_folds=3, random_state=0)


def test_the_planted_number_is_found(choice):
    assert (choice.best, choice.recommended) == (3, 3)
    assert 1 not in choice.equally_good
    assert choice.is_decided
    assert not choice.at_edge
    frame = choice.to_frame()
    assert frame.index.tolist() == SIZES
    assert frame.loc[3, "behind"] == 0
    assert (frame["behind"] >= 0).all()
    assert choice.probabilities[3] == 1.0
    # One error for everything that is told of a size.
    for row in choice.rows:
        is_good = row["behind_lower"] <= 0
        assert is_good == (row["size"] in choice.equally_good)
        if row["size"] in choice.probabilities:
            assert is_good == (row["probability"] >= 0.025)
    assert frame.loc[3, "stability"] > 0.95
    assert "best by held-out: 3" in str(choice)
    assert "<table" in choice._repr_html_()


def test_a_choice_is_cited(choice):
    told = " ".join(pb.cite(choice).methods.split())
    assert told.startswith(
        "Of 3 sizes from 1 to 9, compared by held-out likelihood, 3 is the best; we took 3, the "
        "smallest as good as it within the error or the tolerance."
    )


def test_sizes_are_found_where_none_are_given(corpus):
    found = pb.choose_n_components(LDA, corpus, n_folds=3, random_state=1)
    assert found.best in (3, 4)
    assert 3 in found.equally_good or found.best == 3
    tried = found.to_frame().index.tolist()
    assert {2, 3, 4, 8, 16}.issubset(tried)
    assert found.to_frame().loc[32, "dropped"]


def test_sizes_that_are_found_keep_below_the_largest_wanted(corpus):
    options = {"n_folds": 3, "random_state": 1}
    with pytest.warns(errors.EdgeWarning, match="the best size, 3, is the largest of those tried"):
        found = pb.choose_n_components(LDA, corpus, 3, **options)
    assert max(found.to_frame().index) == 3


def values(choice):
    return [(row["size"], row["score"], row["behind_std_error"]) for row in choice.rows]


@pytest.mark.parametrize("kind", ["threads", "processes"])
def test_executors_and_order_do_not_matter(corpus, choice, spawned, kind):
    executor = ThreadPoolExecutor(3) if kind == "threads" else spawned
    options = {"n_folds": 3, "random_state": 0, "executor": executor}
    found = pb.choose_n_components(LDA, corpus, SIZES[::-1], **options)
    assert values(found) == values(choice)
    assert found.probabilities == choice.probabilities


def test_a_killed_choice_goes_on(corpus, choice, tmp_path, monkeypatch):
    plain, done = held_out.fit_and_score, []

    def stopped_after_five(*arguments):
        if len(done) == 5:
            raise KeyboardInterrupt
        done.append(arguments[4:6])
        return plain(*arguments)

    options = {"n_folds": 3, "random_state": 0, "checkpoint": tmp_path / "state"}
    monkeypatch.setattr(held_out, "fit_and_score", stopped_after_five)
    with pytest.raises(errors.Interrupted, match="5 fits are done") as stop:
        pb.choose_n_components(LDA, corpus, SIZES, **options)
    # Sizes that have not all folds get no probability of being the best.
    assert stop.value.partial.probabilities == {}
    damaged = next((tmp_path / "state").glob("size-1-*"))
    damaged.write_bytes(damaged.read_bytes()[:100])
    # A fit that is whole, but of another fold; and one whose arrays have other shapes.
    one, other = (tmp_path / "state" / f"size-{size}-fold-0.safetensors" for size in (9, 3))
    one.write_bytes(other.read_bytes())
    kept = {*(tmp_path / "state").glob("size-*")} - {damaged, one, other}
    timeless = min(kept)
    header, arrays = read_arrays(timeless)
    write_arrays(timeless, {**header, "seconds": None}, arrays)
    header, arrays = read_arrays(other)
    write_arrays(other, header, {**arrays, "figures": arrays["figures"][:1]})
    again = []
    monkeypatch.setattr(held_out, "fit_and_score", lambda *a: again.append(a[4:6]) or plain(*a))
    with pytest.warns(errors.CheckpointWarning, match="it is made again") as told:
        resumed = pb.choose_n_components(LDA, corpus, SIZES, **options)
    assert len([one for one in told if one.category is errors.CheckpointWarning]) == 4
    assert values(resumed) == values(choice)
    # Sums over stored topics have other bits where the file has them in another order.
    figures = [
        [[row[name] for name in row if name != "seconds"] for row in found.rows]
        for found in (resumed, choice)
    ]
    np.testing.assert_array_equal(*figures)
    assert len(again) == sum(row["n_folds"] for row in choice.rows) - 1
    with pytest.raises(errors.InvalidArgumentError, match="another choice: its folds is"):
        pb.choose_n_components(LDA, corpus, SIZES, **{**options, "n_folds": 4})


@pytest.mark.parametrize("executor", [None, ThreadPoolExecutor(1)])
def test_the_edge_is_said_where_the_choice_was_asked_for(corpus, executor):
    options = {"n_folds": 3, "random_state": 0, "executor": executor}
    with pytest.warns(errors.EdgeWarning, match="best size, 3, is the largest") as told:
        found = pb.choose_n_components(LDA, corpus, [1, 2, 3], **options)
    assert found.at_edge == "largest"
    assert [one.filename for one in told if one.category is errors.EdgeWarning] == [__file__]


def test_gamma_poisson_models_are_chosen_too():
    drawn = pb.datasets.make_gamma_poisson_corpus(150, 60, 3, random_state=0)
    pfa = pb.PoissonFactorAnalysis(max_iter=60, n_jobs=1)
    found = pb.choose_n_components(pfa, drawn.corpus, SIZES, n_folds=3, random_state=0)
    assert found.best == 3


def test_several_sizes_of_a_table_are_chosen_together():
    table = np.array([[9, 8, 0, 0], [7, 9, 0, 0], [0, 0, 8, 9], [0, 0, 9, 7]])
    several = pb.AllocationModel.tucker(["i", "j"], [None, None])
    hidden = [node for node, size in several.sizes.items() if size is None]
    sizes = {node: [1, 2] for node in hidden}
    with pytest.warns(errors.EdgeWarning, match=r"best size, \(2, 2\), is the largest of those"):
        both = pb.choose_n_components(several, table, sizes, random_state=0)
    assert (both.criterion, both.best) == ("evidence", (2, 2))


@pytest.mark.filterwarnings("ignore::polyabayes.exceptions.EdgeWarning")
def test_groups_stay_whole_in_folds_of_about_equal_sizes(corpus):
    groups = np.random.default_rng(0).integers(0, 12, 60)
    folds = folds_of(np.ones(60, int), 3, np.random.default_rng(5), groups)
    assert all(len(set(folds[groups == group])) == 1 for group in range(12))
    assert np.bincount(folds).min() > 14
    with pytest.warns(errors.UnreliableErrorWarning, match="there are only 2 groups"):
        pb.choose_n_components(LDA, corpus, [2], groups=groups < 6, max_time=1e-9)


@pytest.mark.filterwarnings("ignore::polyabayes.exceptions.EdgeWarning")
def test_folds_take_the_covariates_of_their_documents():
    """Short documents whose covariate says which of two topics they are about."""
    rng = np.random.default_rng(4)
    side = rng.permutation(np.arange(120) % 2)
    counts = rng.multinomial(4, np.kron(np.eye(2), np.full(5, 0.2))[side] * 0.98 + 0.002)
    told = pb.Corpus(counts).with_metadata({"side": side})
    shuffled = told.with_metadata({"side": rng.permutation(side)})
    by_side = clone(LDA).set_params(formula="~ side")
    values = [
        pb.choose_n_components(model, data, [1, 2], n_folds=3, random_state=0)
        .to_frame()
        .loc[2, "score"]
        for model, data in ((by_side, told), (by_side, shuffled), (LDA, told))
    ]
    # A known topic saves up to ln 2 nats of a document, 0.17 per token.
    assert values[0] > max(values[1:]) + 0.1


def test_time_ends_a_choice_with_what_it_has(corpus):
    found = pb.choose_n_components(LDA, corpus, SIZES, n_folds=3, max_time=1e-9, random_state=0)
    assert not found.is_decided
    assert [row["n_folds"] for row in found.rows] == [1]
    assert found.probabilities == {}
    assert "so far" in str(found)


def test_no_fit_begins_that_is_foretold_to_end_too_late(corpus, monkeypatch):
    """By a clock of which a fit takes a second for each topic, and 11 seconds."""
    now, plain = [0.0], held_out.fit_and_score

    def timed(*arguments):
        fit = plain(*arguments)
        now[0] += fit.size
        return fit._replace(seconds=float(fit.size))

    monkeypatch.setattr(held_out, "fit_and_score", timed)
    monkeypatch.setattr(held_out.time, "monotonic", lambda: now[0])
    found = pb.choose_n_components(LDA, corpus, SIZES, n_folds=3, max_time=11, random_state=0)
    assert not found.is_decided
    assert [(row["size"], row["n_folds"]) for row in found.rows] == [(1, 1), (3, 1)]
    # All folds of the size ahead would do, if there were time.
    assert now[0] == 4.0


def test_progress_tells_what_is_left(corpus, monkeypatch):
    seen = []

    @contextmanager
    def bar(_show, _total, _unit):
        yield lambda *told: seen.append(told)

    monkeypatch.setattr("polyabayes.sizes.choice.choose.progress_bar", bar)
    found = pb.choose_n_components(LDA, corpus, SIZES, n_folds=5, random_state=0, progress=True)
    done, texts, totals = zip(*seen, strict=True)
    n_fits = sum(row["n_folds"] for row in found.rows)
    assert len(seen) == n_fits < 5 * len(SIZES)
    assert texts[-1] == f"{n_fits} fits, best so far: {found.best}"
    assert list(done) == sorted(done)
    # At first all folds of all sizes; those of sizes that are dropped are left out.
    assert totals[0] == pytest.approx(5 * sum(held_out._relative_cost(size) for size in SIZES))
    assert done[-1] == totals[-1] < totals[0]


def test_a_usual_search_ends_with_all_folds_of_the_largest_and_of_two_between():
    assert grid.expected_fits(32, 3) == {2: 1, 4: 1, 8: 1, 16: 1, 19: 3, 23: 3, 27: 1, 32: 3}


def test_losses_and_gains_are_told(choice):
    lost = {row["size"]: row["behind"] for row in choice.rows}
    assert choice.within(0.0) == 3
    assert choice.within(lost[1]) == 1
    first, second = choice.gains
    assert (first[:2], second[:2]) == ((1, 3), (3, 9))
    assert first.gain == pytest.approx(lost[1])
    # One pair of sizes has one error, whichever is first.
    assert first.std_error == pytest.approx(choice.rows[0]["behind_std_error"]) != 0.0
    assert f"gain of each doubling: {first}, {second}" in str(choice)
    gains = {row["size"]: (row["gain"], row["gain_std_error"]) for row in choice.rows}
    assert gains[3] == first[2:]
    assert np.isnan(gains[1]).all()
    told = "smallest size that loses at most 0.05, 0.02, 0.01 nats per token: 3, 3, 3"
    assert told in str(choice)
    assert "the curve bends at 3 (loses 0.000)" in str(choice)


@pytest.mark.parametrize(
    ("equally_good", "is_vague"),
    [
        ((8,), False),
        ((8, 9), False),
        ((8, 10), True),
        ((50, 52, 55), False),
        ((50, 52, 56), True),
        (((2, 8), (3, 8)), False),
        (((2, 8), (2, 10)), True),
    ],
)
def test_sizes_far_apart_are_told_as_what_the_data_cannot_tell(choice, equally_good, is_vague):
    found = replace(choice, equally_good=equally_good)
    assert found.is_vague == is_vague
    assert ("the data cannot tell" in str(found)) == is_vague


def test_the_picture_shows_every_size(choice):
    figure = pb.plotting.plot_choice(choice)
    assert len(figure.axes) == 2
    depth = max(row["behind_upper"] for row in choice.rows[1:] if not row["dropped"])
    for end in (2 * depth, 9 * depth):
        far = {"dropped": True, "behind": 0.8 * end, "behind_lower": 0.6 * end, "behind_upper": end}
        rows = [choice.rows[0] | far, *choice.rows[1:]]
        ax = pb.plotting.plot_choice(replace(choice, rows=rows)).axes[0]
        is_hidden = "below the axis" in ax.get_legend_handles_labels()[1]
        assert (ax.get_ylim()[0] > -end) == is_hidden == (end > 3 * depth)
    assert [tick.get_text() for tick in figure.axes[1].get_xticklabels()] == ["1", "3", "9"]
    for row, drawn in zip(choice.rows, figure.axes[0].containers, strict=False):
        ends = drawn.lines[2][0].get_segments()[0][:, 1]
        told = -np.array([row["behind_upper"], row["behind_lower"]])
        np.testing.assert_allclose(ends, told, atol=1e-12)
        assert (ends[1] >= 0) == (row["size"] in choice.equally_good)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        figure.canvas.draw()
