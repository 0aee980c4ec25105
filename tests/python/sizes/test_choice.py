"""The number of topics: found, with errors that hold, resumed, and the same everywhere."""

import warnings
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment
from scipy.special import gammaln
from sklearn.base import clone

import polyabayes as pb
import polyabayes.exceptions as errors
from polyabayes._support.jackknife import Difference
from polyabayes._support.storage import read_arrays, write_arrays
from polyabayes.sizes.choice import cost, criteria, grid, held_out, held_out_scores
from polyabayes.sizes.choice.comparable import comparable
from polyabayes.sizes.choice.curve import Curve
from polyabayes.sizes.choice.fits import FoldFit, fit_and_score, frequent_words
from polyabayes.sizes.choice.held_out_scores import annealed, annealed_part, n_scored
from polyabayes.sizes.choice.race import Race
from polyabayes.sizes.folds import folds_of

LDA = pb.LatentDirichletAllocation(max_iter=30, n_jobs=1)
SIZES = [1, 3, 9]


@pytest.fixture(scope="module")
def corpus():
    # Documents of fewer than 64 tokens are scored by chains alone, in a tenth of the time.
    drawn = pb.datasets.make_lda_corpus(60, 40, 3, document_length=50, random_state=0)
    return drawn.corpus


@pytest.fixture(scope="module")
def choice(corpus):
    return pb.choose_n_components(LDA, corpus, SIZES, n_folds=3, random_state=0)


def test_the_planted_number_is_found(choice):
    assert (choice.best, choice.recommended, choice.equally_good) == (3, 3, (3,))
    assert choice.is_decided
    assert not choice.at_edge
    frame = choice.to_frame()
    assert frame.index.tolist() == SIZES
    assert frame.loc[3, "behind"] == 0
    assert (frame["behind"] >= 0).all()
    assert sum(choice.probabilities.values()) == pytest.approx(1)
    assert choice.probabilities[3] > 0.9
    assert frame.loc[3, "stability"] > 0.95
    assert "best by held-out: 3" in str(choice)
    assert "<table" in choice._repr_html_()


def test_sizes_are_found_where_none_are_given(corpus):
    found = pb.choose_n_components(LDA, corpus, n_folds=3, random_state=1)
    assert found.best in (3, 4)
    assert 3 in found.equally_good or found.best == 3
    tried = found.to_frame().index.tolist()
    assert {2, 3, 4, 8, 16}.issubset(tried)
    assert found.to_frame().loc[32, "dropped"]
    few = pb.choose_n_components(LDA, corpus, n_folds=3, max_fits=6, random_state=1)
    assert not few.is_decided
    assert "so far" in str(few)


def test_sizes_that_are_found_keep_below_the_largest_wanted(corpus):
    options = {"max_size": 3, "n_folds": 3, "random_state": 1}
    with pytest.warns(errors.EdgeWarning, match="the best size, 3, is the largest of those tried"):
        found = pb.choose_n_components(LDA, corpus, **options)
    assert max(found.to_frame().index) == 3
    assert pb.choice_cost(LDA, corpus, max_size=3).sizes == (2, 3)
    with pytest.raises(errors.InvalidArgumentError, match="max_size is for sizes that are found"):
        pb.choose_n_components(LDA, corpus, [2, 3], **options)


def values(choice):
    return [(row["size"], row["score"], row["behind_std_error"]) for row in choice.rows]


@pytest.mark.parametrize("kind", ["threads", "processes"])
def test_executors_and_order_do_not_matter(corpus, choice, spawned, kind):
    executor = ThreadPoolExecutor(3) if kind == "threads" else spawned
    found = pb.choose_n_components(
        LDA, corpus, SIZES[::-1], n_folds=3, random_state=0, executor=executor
    )
    assert values(found) == values(choice)
    assert found.probabilities == choice.probabilities


def test_a_killed_choice_goes_on(corpus, choice, tmp_path, monkeypatch):
    plain, done = held_out.fit_and_score, []

    def stopped_after_four(*arguments):
        if len(done) == 4:
            raise KeyboardInterrupt
        done.append(arguments[4:6])
        return plain(*arguments)

    options = {"n_folds": 3, "random_state": 0, "checkpoint": tmp_path / "state"}
    monkeypatch.setattr(held_out, "fit_and_score", stopped_after_four)
    with pytest.raises(errors.Interrupted, match="4 fits are done") as stop:
        pb.choose_n_components(LDA, corpus, SIZES, **options)
    # Sizes that have not all folds get no probability of being the best.
    assert stop.value.partial.probabilities == {}
    damaged = next((tmp_path / "state").glob("size-1-*"))
    damaged.write_bytes(damaged.read_bytes()[:100])
    # A fit that is whole, but of another fold; and one whose arrays have other shapes.
    one, other = (tmp_path / "state" / f"size-{size}-fold-0.safetensors" for size in (9, 3))
    one.write_bytes(other.read_bytes())
    header, arrays = read_arrays(other)
    write_arrays(other, header, {**arrays, "figures": arrays["figures"][:1]})
    again = []
    monkeypatch.setattr(held_out, "fit_and_score", lambda *a: again.append(a[4:6]) or plain(*a))
    with pytest.warns(errors.CheckpointWarning, match="it is made again") as told:
        resumed = pb.choose_n_components(LDA, corpus, SIZES, **options)
    assert len([one for one in told if one.category is errors.CheckpointWarning]) == 3
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


def test_a_fit_that_may_not_be_read_is_an_error(corpus, tmp_path, monkeypatch):
    options = {"n_folds": 2, "random_state": 0, "checkpoint": tmp_path}
    pb.choose_n_components(LDA, corpus, [1], **options)
    read = np.fromfile

    def refused(path, **options):
        if path.name.startswith("size-1-fold-1"):
            raise PermissionError(13, "Permission denied")
        return read(path, **options)

    monkeypatch.setattr(np, "fromfile", refused)
    with pytest.raises(errors.FileAccessError, match=r"size-1-fold-1.*Permission denied"):
        pb.choose_n_components(LDA, corpus, [1], **options)


@pytest.mark.parametrize("executor", [None, ThreadPoolExecutor(1)])
def test_the_edge_is_said_where_the_choice_was_asked_for(corpus, executor):
    with pytest.warns(errors.EdgeWarning, match="best size, 3, is the largest") as told:
        found = pb.choose_n_components(
            LDA, corpus, [1, 2, 3], n_folds=3, random_state=0, executor=executor
        )
    assert found.at_edge == "largest"
    assert [one.filename for one in told if one.category is errors.EdgeWarning] == [__file__]


def test_gamma_poisson_models_are_chosen_too():
    drawn = pb.datasets.make_gamma_poisson_corpus(150, 60, 3, random_state=0)
    pfa = pb.PoissonFactorAnalysis(max_iter=60, n_jobs=1)
    found = pb.choose_n_components(pfa, drawn.corpus, SIZES, n_folds=3, random_state=0)
    assert found.best == 3


def test_tables_are_chosen_by_evidence():
    table = np.array([[9, 8, 0, 0], [7, 9, 0, 0], [0, 0, 8, 9], [0, 0, 9, 7]])
    model = pb.AllocationModel.nmf(None)
    found = pb.choose_n_components(model, table, [1, 2, 3], random_state=0)
    single = model.with_sizes(topic=1).log_evidence(table)
    assert found.criterion == "evidence"
    assert found.best == 2
    assert found.to_frame().loc[1, "score"] == single.value
    assert sum(found.probabilities.values()) == pytest.approx(1)
    several = pb.AllocationModel.tucker(["i", "j"], [None, None])
    hidden = [node for node, size in several.sizes.items() if size is None]
    sizes = {node: [1, 2] for node in hidden}
    with pytest.warns(errors.EdgeWarning, match=r"best size, \(2, 2\), is the largest of those"):
        both = pb.choose_n_components(several, table, sizes, random_state=0)
    assert both.best == (2, 2)
    with pytest.raises(errors.InvalidArgumentError, match="give a mapping"):
        pb.choose_n_components(several, table, [1, 2])


def test_bad_arguments_are_refused_before_any_work(corpus):
    choose = pb.choose_n_components
    nmf = pb.PoissonFactorAnalysis(prior="nmf")
    for error, message, arguments in (
        (errors.InvalidTypeError, "must be a LatentDirichletAllocation", (object(), corpus)),
        (errors.InvalidArgumentError, "NMF gives new documents no likelihood", (nmf, corpus)),
        (errors.InvalidArgumentError, "sizes is empty", (LDA, corpus, [])),
        (errors.InvalidArgumentError, "sizes must be between", (LDA, corpus, [0, 2])),
        (errors.InvalidTypeError, "numbers of topics", (LDA, corpus, "3")),
        (errors.InvalidCountsError, "Negative", (LDA, [[-1, 2]], [2])),
        (errors.InvalidArgumentError, "needs two documents or more", (LDA, [[1, 2]], [2])),
    ):
        with pytest.raises(error, match=message):
            choose(*arguments)
    with pytest.raises(errors.InvalidArgumentError, match="n_folds must be between 2 and 60"):
        choose(LDA, corpus, n_folds=61)
    with pytest.raises(errors.InvalidTypeError, match="covariates come with the documents"):
        pb.choose_n_components(pb.LatentDirichletAllocation(), [[1, 2]], covariates=[[1.0]])
    for options in ({"method": "exact"}, {"concentrations": "auto"}):
        with pytest.raises(errors.InvalidTypeError, match="is an option of a choice by evidence"):
            choose(LDA, corpus, **options)
    with pytest.raises(errors.InvalidArgumentError, match="max_time must be positive"):
        choose(LDA, corpus, max_time=0)
    with pytest.raises(errors.InvalidTypeError, match="executor must be"):
        choose(LDA, corpus, [2], executor=3)


def race_of(differences, lengths, n_folds, noise, rng, groups=None):
    """A race of two sizes whose scores differ by `differences` and noise of every fit."""
    folds = folds_of(lengths, n_folds, rng, groups)
    race = Race(folds, lengths, groups)
    for fold in range(n_folds):
        own = folds == fold
        base = rng.normal(size=own.sum()) * lengths[own]
        shift = rng.normal() * noise * lengths[own]
        for size, values in ((1, base), (2, base + differences[own] + shift)):
            none = np.zeros(0)
            topics = np.zeros((size, 1), "f4")
            race.add(FoldFit(size, fold, values, 0 * values, none, topics, 0.0))
    return race


@pytest.mark.parametrize("noise", [0.0, 0.05])
def test_paired_differences_cover_the_truth(noise):
    """At 95 %, of 400 races of sizes whose true difference is 0."""
    rng = np.random.default_rng(7)
    held = 0
    for _ in range(400):
        lengths = rng.integers(20, 200, 60)
        race = race_of(rng.normal(size=60) * np.sqrt(lengths), lengths, 5, noise, rng)
        held += 0.025 < race.behind(1, 2) < 0.975
    # Two binomial errors below 95 %; the larger of two errors may cover more.
    assert held / 400 > 0.928


def test_errors_for_new_groups_hold_where_those_for_documents_do_not():
    """Planted effects of 40 groups of 5 documents, true difference 0, at 95 %."""
    rng, covered = np.random.default_rng(3), {True: 0, False: 0}
    groups = np.repeat(np.arange(40), 5)
    for _ in range(400):
        effect = rng.normal(size=40)[groups] + 0.5 * rng.normal(size=200)
        for grouped in covered:
            race = race_of(effect, np.full(200, 50), 2, 0.0, rng, groups if grouped else None)
            covered[grouped] += 0.025 < race.behind(1, 2) < 0.975
    assert 0.92 < covered[True] / 400 < 0.98
    assert covered[False] / 400 < 0.75


@pytest.mark.filterwarnings("ignore::polyabayes.exceptions.EdgeWarning")
def test_groups_stay_whole_in_folds_of_about_equal_sizes(corpus):
    groups = np.random.default_rng(0).integers(0, 12, 60)
    folds = folds_of(np.ones(60, int), 3, np.random.default_rng(5), groups)
    assert all(len(set(folds[groups == group])) == 1 for group in range(12))
    assert np.bincount(folds).min() > 14
    named = corpus.with_metadata({"author": [f"a{g}" for g in groups]})
    one, other = (
        pb.choose_n_components(LDA, data, [2, 3], n_folds=2, groups=given, random_state=0)
        for data, given in ((named, "author"), (corpus, [f"a{g}" for g in groups]))
    )
    assert values(one) == values(other)
    with pytest.raises(errors.InvalidArgumentError, match="one label for each"):
        pb.choose_n_components(LDA, corpus, [2], groups=[1, 2])
    with pytest.raises(errors.InvalidArgumentError, match="column"):
        pb.choose_n_components(LDA, named, [2], groups="blog")
    with pytest.warns(errors.UnreliableErrorWarning, match="there are 2 groups only"):
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


@pytest.mark.parametrize(
    ("formula", "told"),
    [("~ rare", "column 'rare' has the level 'c'"), ("~ bs(day, df=4)", "extrapolation='clip'")],
)
def test_covariates_that_a_fold_alone_has_are_refused_before_any_fit(corpus, formula, told):
    n = corpus.n_documents
    rare = np.where(np.arange(n) == 3, "c", np.where(np.arange(n) % 2, "a", "b"))
    data = corpus.with_metadata({"rare": rare, "day": np.arange(n)})
    model = clone(LDA).set_params(formula=formula, max_iter=10**8)
    with pytest.raises(errors.InvalidArgumentError, match=told):
        pb.choose_n_components(model, data, [1, 2], n_folds=3, random_state=0)


def test_time_ends_a_choice_with_what_it_has(corpus):
    found = pb.choose_n_components(LDA, corpus, SIZES, n_folds=3, max_time=1e-9, random_state=0)
    assert not found.is_decided
    assert [row["n_folds"] for row in found.rows] == [1]
    assert found.probabilities == {}


def test_the_leader_is_ahead_on_the_folds_that_it_shares():
    """Size 2 is ahead of 1 on both folds, 3 on the first one, where it is behind 2."""
    values = {1: [[0.0], [0.0]], 2: [[5.0], [1.0]], 3: [[4.0]]}
    race = Race(np.array([0, 1]), np.array([10, 10]))
    for size, rows in values.items():
        for fold, row in enumerate(rows):
            topics, none = np.zeros((size, 1), "f4"), np.zeros(1)
            race.add(FoldFit(size, fold, np.array(row), none, none, topics, 0.0))
    assert race.difference(3, 1).mean > race.difference(2, 1).mean
    assert race.best([1, 2, 3]) == 2


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
    assert totals[0] == pytest.approx(5 * sum(cost.relative_cost(size) for size in SIZES))
    assert done[-1] == totals[-1] < totals[0]


class Losses:
    """A race of known losses."""

    def __init__(self, losses, std_error=0.001):
        self.fits, self._losses, self._error = dict.fromkeys(losses), losses, std_error

    def best(self, sizes):
        return min(sizes, key=lambda size: (self._losses[size], size))

    def difference(self, first, second):
        lost = self._losses[second] - self._losses[first]
        return Difference(lost, self._error if lost else 0.0, 9.0)


@pytest.mark.parametrize(
    ("losses", "tolerance", "recommended", "rule", "elbows"),
    [
        # Documents of the model: 10 topics, and further ones do a little harm.
        ({4: 0.49, 8: 0.13, 9: 0.05, 10: 0, 11: 0.001, 16: 0.002}, None, 10, "equally good", [10]),
        # Bursts of words: 10 topics, and further ones gain a little for ever.
        ({4: 0.53, 8: 0.165, 9: 0.096, 10: 0.0102, 20: 0.008, 64: 0.004, 128: 0}, None, 10, "elbow",
         [10]),
        # No bend at all, as of real texts: the smallest size within 0.01.
        ({2**k: 0.32 * 0.6**k - 0.32 * 0.6**9 for k in range(10)}, None, 128, "tolerance", []),
        ({4: 0.49, 8: 0.13, 9: 0.05, 10: 0, 11: 0.001}, 0.1, 9, "tolerance", [10]),
        ({4: 0.49, 8: 0.13, 9: 0.05, 10: 0, 11: 0.001}, 0.0, 10, "tolerance", [10]),
    ],
)  # fmt: skip
def test_the_rule_of_the_recommended_size(losses, tolerance, recommended, rule, elbows):
    curve = Curve.of(Losses(losses), [*losses], tolerance)
    assert (curve.recommended, curve.rule, [*curve.elbows]) == (recommended, rule, elbows)


def test_losses_and_gains_are_told(choice):
    lost = {row["size"]: row["behind"] for row in choice.rows}
    assert choice.within(0.0) == 3
    assert choice.within(lost[1]) == 1
    assert [(one, other) for one, other, _ in choice.gains()] == [(1, 3), (3, 9)]
    assert choice.gains()[0][2] == pytest.approx(lost[1])
    assert "3 within 0.05, 3 within 0.02, 3 within 0.01" in str(choice)
    assert "the curve bends at 3 (loses 0.000)" in str(choice)
    with pytest.raises(errors.InvalidArgumentError, match="tolerance"):
        choice.within(-1.0)


def test_the_grid_widens_and_refines():
    assert grid.wider([2, 4, 8], {8}, 1, 100) == [16]
    assert grid.wider([2, 4, 8], {2, 4}, 1, 100) == [1]
    assert grid.wider([2, 4, 8], {8}, 1, 8) == []
    assert grid.finer([2, 4, 8, 16], {8}, 8, 1.2) == [6, 11]
    assert grid.finer([7, 8, 9], {8}, 8, 1.2) == []
    assert grid.finer([2, 4, 8, 16], {2, 4, 8}, 8, 1.2) == [3, 6, 11]
    # The recommended size is the smallest close one: below it a smaller one may be as good.
    assert grid.finer([2, 4, 8, 16], {8, 16}, 16, 1.2) == [6, 11]


def test_the_grid_is_finest_beside_what_may_be_chosen():
    def finer(tried, close, possible, best):
        chances = dict.fromkeys(possible, 0.1) | dict.fromkeys(close, 0.5)
        return held_out._finer(tried, chances, best)

    assert finer([16, 19, 23, 32], [23], [23], 23) == [21, 27]
    assert finer([16, 19, 21, 23, 27, 32], [21, 23], [21, 23], 21) == [20]
    assert finer([19, 20, 21, 23, 27, 32], [21, 23], [21, 23], 21) == []
    # Below the smallest that is as good, but not between others.
    assert finer([40, 48, 58, 70, 84], [58, 70, 84], [58, 70, 84], 84) == [53, 77]
    # And below one that is not as good, but may be: the truth may be there.
    assert finer([16, 19, 23, 25, 27, 29, 32], [27], [23, 25, 27, 29], 27) == [21]


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


def test_few_replicates_are_enough_where_words_repeat():
    """Counts by channel, each channel many times: errors of a score are far below 0.003."""
    drawn = pb.datasets.make_gamma_poisson_corpus(20, 8, 3, random_state=0).corpus
    repeated = pb.Corpus(5 * drawn.counts)
    assert repeated.n_tokens > 8 * repeated.counts.nnz
    pfa = pb.PoissonFactorAnalysis(3, max_iter=30, n_jobs=1, random_state=0).fit(repeated)
    found = annealed(pfa, repeated, 0)
    assert found.n_replicates == 4
    assert 0 < found.nats_per_token_std_error < 0.001
    exact = pb.log_likelihood(pfa, repeated, "annealed", event="sequence", given_length=True)
    error = np.hypot(found.total_std_error, exact.total_std_error)
    assert abs(found.total - exact.total) < 4 * error


def test_no_more_topics_than_documents_are_looked_for():
    few = pb.datasets.make_lda_corpus(20, 40, 3, document_length=50, random_state=0).corpus
    cost = pb.choice_cost(LDA, few)
    assert (cost.sizes, cost.beyond) == ((2, 20), None)


def test_fits_begin_with_long_starts():
    model = pb.LatentDirichletAllocation(n_jobs=1)
    longer = clone(model).set_params(n_init=3, max_iter=40)
    made = [comparable(given, 3, 1) for given in (model, longer)]
    assert [(one._schedule().start_sweeps, one.n_init) for one in made] == [(60, 2), (12, 3)]
    # The model that was given, and others, begin as ever.
    assert (model._schedule().start_sweeps, model.n_init) == (40, 1)


def test_rare_topics_are_scored_fast_and_nearly_as_they_are():
    drawn = pb.datasets.make_lda_corpus(20, 60, 4, random_state=0)
    prior = np.array([0.5, 0.5, 0.5, 0.0005])
    model = pb.LatentDirichletAllocation.from_parameters(
        doc_topic_prior=prior, topic_word=drawn.topic_word
    )
    model.n_jobs = 1
    found = annealed(model, drawn.corpus[:5], 0)
    assert model.doc_topic_prior_[3] == 0.0005
    raised = pb.LatentDirichletAllocation.from_parameters(
        doc_topic_prior=np.maximum(prior, 0.0011), topic_word=drawn.topic_word
    )
    exact = pb.log_likelihood(raised, drawn.corpus[:5], event="sequence", given_length=True)
    assert np.allclose(found.values, exact.values, atol=1.0)


def test_corrected_filters_score_as_annealing_all_documents_does(monkeypatch):
    """Totals of two models and their difference, by filters that are low by 10 nats."""
    plain, noise = held_out_scores.filtered, np.random.default_rng(0).uniform(9.5, 10.5, 300)

    def low(*arguments):
        found = plain(*arguments)
        return replace(found, values=found.values - noise)

    monkeypatch.setattr(held_out_scores, "filtered", low)
    drawn = pb.datasets.make_lda_corpus(300, 60, 8, document_length=100, random_state=1)
    documents, scored = drawn.corpus, []
    part = annealed_part(documents)
    # 30,000 tokens are more than are annealed: documents of 10,000 tokens are.
    assert (n_scored(documents), len(part)) == (300, 100)
    assert len(annealed_part(documents[:200])) == 200
    for prior in (0.1, 1.0):
        model = pb.LatentDirichletAllocation.from_parameters(
            doc_topic_prior=np.full(8, prior), topic_word=drawn.topic_word
        )
        model.n_jobs = 1
        full = annealed(model, documents, 1)
        scored.append((held_out_scores.held_out_scores(model, documents, 0), full))
    for found, full in scored:
        error = np.sqrt((found.std_errors**2).sum())
        assert abs(found.values.sum() - full.total) < 4 * np.hypot(error, full.total_std_error)
        # Annealing all of them is more exact.
        assert full.total_std_error < error < 0.0005 * documents.n_tokens
    ahead, exact = (scored[0][way].values - scored[1][way].values for way in (0, 1))
    assert ahead.sum() == pytest.approx(exact.sum(), abs=0.0005 * documents.n_tokens)
    # The spread of the values is that of their documents, and of the correction.
    assert 0.95 * exact.std() < ahead.std() < 1.3 * exact.std()


def test_fits_hold_more_of_many_topics_than_usual_ones():
    """50 topics, two of which share one with another after usual starts of fixed priors."""
    drawn = pb.datasets.make_lda_corpus(
        800, 300, 50, doc_topic_prior=0.1, topic_word_prior=0.05, random_state=2
    )
    model = pb.LatentDirichletAllocation(50, learn_priors=False, n_jobs=1, random_state=0)
    scored, train = drawn.corpus[:20], drawn.corpus[20:]
    columns = frequent_words(drawn.corpus)
    found = fit_and_score(model, train, scored, columns, 50, 0, 0).topics
    true = drawn.topic_word[:, columns]

    def n_held(topics):
        rows = [one / np.linalg.norm(one, axis=1, keepdims=True) for one in (true, topics)]
        cosines = rows[0] @ rows[1].T
        return (cosines[linear_sum_assignment(-cosines)] > 0.8).sum()

    usual = model.fit(train).components_[:, columns]
    assert n_held(found) >= 49 > n_held(usual)


def test_other_criteria_are_those_of_their_definitions():
    rng = np.random.default_rng(0)
    topics = rng.dirichlet(np.ones(6), 3)
    pairs = [(0, 1), (0, 2), (1, 2)]
    cosine = [
        topics[i] @ topics[j] / np.linalg.norm(topics[i]) / np.linalg.norm(topics[j])
        for i, j in pairs
    ]
    assert criteria.cao_juan_2009(topics) == pytest.approx(np.mean(cosine))
    kl = [
        0.5 * (topics[i] * np.log(topics[i] / topics[j])).sum()
        + 0.5 * (topics[j] * np.log(topics[j] / topics[i])).sum()
        for i, j in pairs
    ]
    assert criteria.deveaud_2014(topics) == pytest.approx(sum(kl) / (3 * 2))
    theta, lengths = rng.dirichlet(np.ones(3), 10), rng.integers(1, 50, 10).astype(float)
    cm1 = np.linalg.svd(topics, compute_uv=False)
    cm2 = lengths @ theta / lengths.max()
    divergence = (cm1 * np.log(cm1 / cm2)).sum() + (cm2 * np.log(cm2 / cm1)).sum()
    assert criteria.arun_2010(topics, theta, lengths) == pytest.approx(divergence)
    looks = np.array([-700.0, -702.0, -710.0])
    assert criteria.griffiths_2004(looks) == pytest.approx(
        -np.log(np.mean(np.exp(-looks - 710))) - 710
    )
    counts = np.array([[2, 0, 1], [0, 3, 0]])
    direct = sum(
        gammaln(3 * 0.1) - 3 * gammaln(0.1) + gammaln(row + 0.1).sum() - gammaln(row.sum() + 0.3)
        for row in counts
    )
    assert criteria.log_p_words_given_topics(counts, 0.1) == pytest.approx(direct)


def test_other_criteria_are_computed_when_asked_for(corpus, choice):
    table = choice.criteria(LDA, corpus, random_state=0)
    assert table["size"].tolist() == SIZES
    assert table["cao_juan_2009"][1] < table["cao_juan_2009"][2]
    # Counts of topics and words, found again from the means of a sample.
    looks, seen = [], pb.LatentDirichletAllocation(3, max_iter=10, n_jobs=1, random_state=0)
    criteria.fit_and_look(seen, corpus)

    def look(state):
        looks.append(state._last_state().counts.toarray())

    seen.fit(corpus, callback=look, eval_every=10)
    expected = criteria.log_p_words_given_topics(looks[-1], seen.topic_word_prior_)
    assert criteria.fit_and_look(seen, corpus)[-1] == pytest.approx(expected)
    figure = pb.plotting.plot_choice(choice, criteria=table)
    assert len(figure.axes) == 3


def test_the_picture_shows_every_size(choice):
    figure = pb.plotting.plot_choice(choice)
    assert len(figure.axes) == 2
    assert [tick.get_text() for tick in figure.axes[1].get_xticklabels()] == ["1", "3", "9"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        figure.canvas.draw()
    with pytest.raises(errors.InvalidTypeError, match="must be a SizeChoice"):
        pb.plotting.plot_choice(3)


def test_the_cost_goes_on_from_short_fits_to_all_sweeps(corpus, monkeypatch):
    """By a clock that stands: a second to begin, and a quarter of one a topic and sweep.

    60 sweeps, after two starts of 0.6 times the 30 of the burn-in.
    """

    def timed(model, _train, size, n_sweeps):
        return 1 + 0.25 * size * n_sweeps, model

    monkeypatch.setattr(cost, "_timed_fit", timed)
    monkeypatch.setattr(cost, "_seconds_of_scores", lambda *_: 0.0)
    monkeypatch.setattr(cost.time, "perf_counter", lambda: 0.0)
    model = clone(LDA).set_params(max_iter=60)
    told = pb.choice_cost(model, corpus, [2, 8], n_folds=3)
    assert (told.n_fits, told.sizes, told.seconds_per_fit) == (6, (2, 8), (49.0, 193.0))
    assert told.seconds == pytest.approx(3 * (49 + 193))
    assert str(told) == (
        "about 6 fits, 49 s each with 2 topics and 3 minutes with 8: "
        "some 12 minutes one after another"
    )


def test_the_cost_is_told_of_every_model(corpus):
    told = pb.choice_cost(pb.PoissonFactorAnalysis(max_iter=20, n_jobs=1), corpus, [4])
    assert told.n_fits == 5
    assert told.seconds > 0


def test_the_cost_of_sizes_that_are_found_is_that_of_a_usual_search(corpus):
    told = pb.choice_cost(LDA, corpus, n_folds=3, max_fits=20)
    assert (told.n_fits, told.sizes) == (14, (2, 32))
    # As many documents as there are, 60, are the most topics.
    most, seconds = told.beyond
    assert most == 60
    assert seconds > told.seconds
    assert str(told).endswith(" if more topics are better up to 60")
    fewer = pb.choice_cost(LDA, corpus, n_folds=3, max_fits=5)
    assert fewer.n_fits == 5
    # The largest three with all folds, and one between them.
    assert cost.work_of_found(32, 3) == {2: 1, 4: 1, 8: 3, 16: 3, 23: 3, 32: 3}
    bounded = pb.choice_cost(LDA, corpus, n_folds=3, max_size=48)
    assert (bounded.sizes, bounded.beyond) == ((2, 48), None)


def test_the_cost_refuses_what_the_choice_refuses(corpus):
    with pytest.raises(errors.InvalidTypeError, match="model must be a"):
        pb.choice_cost("lda", corpus)
    with pytest.raises(errors.InvalidArgumentError, match="sizes is empty"):
        pb.choice_cost(LDA, corpus, [])
