import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from polyabayes import AllocationModel, CountTensor, exceptions as errors
from polyabayes.allocation.layout import lay_out
from polyabayes.allocation.options import Options

TABLE = [[2, 0, 1], [1, 1, 0], [0, 3, 1]]
TENSOR = CountTensor.from_dense(TABLE, ["doc", "word"])
WIDE = CountTensor.from_coo([[0, 99_999_999_998]], [5], ["doc", "word"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"sizes": {"topic": 0}}, r"sizes\['topic'\] must be"),
        ({"sizes": {"topic": 2.0}}, r"sizes\['topic'\] must be an int"),
        (
            {"sizes": {"tropic": 2}},
            "sizes names 'tropic', which is not a node of the graph 'topic ->",
        ),
        ({"sizes": 3}, "sizes must map"),
        ({"concentration": 0}, "concentration must be positive"),
        ({"concentration": math.nan}, "concentration must be positive and finite"),
        ({"concentration": "1"}, "concentration must be a number"),
        ({"rate": 0}, "rate must be positive"),
        ({"concentration": 1e-300}, "concentration must be between 1e-20 and 1e.?20, got 1e-300"),
        ({"rate": 1e-310}, "rate must be between"),
        ({"prior": {"doc": 1, "topic": 1, "word": 1e300}}, r"prior\['word'\] must be between"),
        ({"tied": ["doc", "word"]}, "tied must hold groups"),
        ({"tied": "doc"}, "tied must hold groups"),
        ({"tied": [("doc",)]}, "two nodes or more"),
        ({"tied": [("doc", "word"), ("word", "topic")]}, "tied names node 'word' twice"),
        ({"tied": [("doc", "x")]}, "tied names 'x', which is not a node"),
        ({"prior": "k2"}, "prior must be one of 'bdeu', 'bdeu-tokens', 'flat'"),
        ({"prior": {"doc": 1.0}}, "prior has no entry for node 'topic'|node 'word'"),
        ({"prior": {"doc": 1, "topic": 1, "word": -1}}, r"prior\['word'\] must be positive"),
        (
            {"prior": {"doc": 1, "topic": 1, "word": 2}, "tied": [("doc", "word")]},
            "prior differs between doc, word",
        ),
        ({"axes": ["doc", "x"]}, "axes names 'x', which is not a node"),
        ({"graph": "doc -> topic -> doc"}, "cycle"),
    ],
)
def test_bad_models_are_refused(arguments, message):
    with pytest.raises(errors.PolyabayesError, match=message):
        AllocationModel(**{"graph": "doc <- topic -> word", **arguments})


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: AllocationModel.nmf(0), "sizes"),
        (lambda: AllocationModel.nmf(2, axes=["a", "b", "c"]), "axes must name 2"),
        (lambda: AllocationModel.nmf(2, axes=["topic", "word"]), "linked to itself"),
        (lambda: AllocationModel.symmetric_cp(1, 2), "order must be between 2 and 10000"),
        (lambda: AllocationModel.tucker(["i", "j"], [2]), "a number for each of the axes i, j"),
        (lambda: AllocationModel.tucker(["i", "j"], 2), "ranks must hold a number for each axis"),
        (lambda: AllocationModel.pachinko(3), "sizes must hold a number for each hidden node, got"),
        (lambda: AllocationModel.cp(np.array(3), 2), "axes must be a sequence of str"),
        (lambda: AllocationModel.hidden_markov(1, 2), "length must be between 2 and 10000"),
        (lambda: AllocationModel.complete([]), "axes is empty"),
    ],
)
def test_bad_ready_made_models_are_refused(make, message):
    with pytest.raises(errors.PolyabayesError, match=message):
        make()


@pytest.mark.parametrize(
    ("text", "sizes", "data", "message"),
    [
        ("doc -> word", {}, TENSOR.rename({"word": "w"}), "no node for axis 'w' of the data"),
        ("doc <- topic -> word", {}, TENSOR, "'topic -> doc, word' has no size for node 'topic'"),
        ("doc <- topic -> word", {}, TABLE, "3 nodes without a size .* have shape"),
        ("doc <- topic -> word", {"topic": 2, "word": 2}, TENSOR, "size 2 of node 'word' is below"),
        ("doc <- topic -> word", {"topic": 2}, [[1, -1]], "negative count"),
        ("doc <- topic -> word", {"topic": 2}, [[1, 0.5]], "fractional"),
        ("doc <- topic -> word", {"topic": 2}, [[1, math.nan]], "holds (nan|NaN) at .*='nan'"),
        ("doc <- topic -> word", {"topic": 2}, [[2**62, 2**62]], "above 2..63 - 1"),
        ("doc <- topic -> word", {"topic": 2}, [1, 2], r"\(2,\); give .* shape \(n_doc, n_word\)"),
        ("doc <- topic -> word", {"topic": 2}, WIDE, "99,999,999,999 values for node 'word', abo"),
        ("doc <- topic -> word", {"topic": 2}, "x.tns", "got 'x.tns'; .* polyabayes.read_tensor"),
        ("doc <- topic -> word", {"topic": 2}, Path("x.tns"), "'x.tns'; .* polyabayes.read_tensor"),
        ("doc <- topic -> word", {"topic": 2}, None, "data must be an array .* got NoneType"),
    ],
)
def test_data_that_do_not_fit_are_refused(text, sizes, data, message):
    model = AllocationModel(text, sizes)
    for call in (model.log_evidence, model.decompose, model.cost, model.sample_posterior):
        with pytest.raises(errors.PolyabayesError, match=message):
            call(data)


def test_frames_and_ties_of_different_shapes_are_refused():
    with pytest.raises(errors.InvalidTypeError, match=r"CountTensor\.from_frame"):
        AllocationModel.nmf(2).log_evidence(pd.DataFrame(TABLE))
    with pytest.raises(errors.InvalidArgumentError, match=r"one tie \(i \(2, 2\), j \(3, 2\)\)"):
        AllocationModel.symmetric_nmf(2).log_evidence([[1, 2, 3], [1, 1, 1]])


BAD_OPTIONS = {
    "log_evidence": [
        ({"method": "mcmc"}, "method must be one of 'auto', 'exact'"),
        ({"method": "exact", "n_particles": 5}, "method 'exact' takes no n_particles.*budget"),
        (
            {"method": "tempered", "order": "sorted"},
            "method 'tempered' takes no order, which is for 'auto', 'smc'; its",
        ),
        (
            {"n_samples": 5, "order": "sorted"},
            "neither of which takes all .* `n_samples` is of 'auto', 'tempered'",
        ),
        ({"n_particles": 0}, "n_particles must be"),
        ({"n_chains": 8}, "no method has an option 'n_chains'"),
        ({"method": "tempered", "n_particles": 8}, "takes no n_particles, which is for 'auto'"),
        ({"method": "vb", "n_samples": 8}, "takes no n_samples, .* max_iter, tol, n_restarts"),
        ({"particles": 8}, "no method has an option 'particles'; the options are n_particles"),
        ({"n_replicates": 1.5}, "n_replicates must be an int"),
        ({"method": "smc", "resampling": "optimal"}, "resampling must be one of"),
        ({"method": "smc", "resample_below": 2}, "resample_below must be between 0 and 1"),
        ({"method": "smc", "resample_below": "1"}, "resample_below must be a number"),
        ({"method": "smc", "order": "reverse"}, "order must be one of 'random', 'sorted'"),
        ({"method": "smc", "order": [0, 1]}, "each of the 6 cells of the data once"),
        ({"method": "smc", "order": [0, 0, 1, 2, 3, 4]}, "each of the 6 cells"),
        ({"method": "smc", "order": 3}, "order must be 'random', 'sorted' or a permut"),
        ({"budget": -1}, "budget must be positive"),
        ({"elimination_order": 3}, "elimination_order must name every hidden node once"),
        ({"given_total": "yes"}, "given_total must be True or False"),
        ({"elimination_order": ["word"]}, r"every hidden node once \(topic\)"),
        ({"elimination_order": "topic"}, "every hidden node once"),
        ({"random_state": -1}, "random_state must be"),
        ({"n_jobs": 0}, "n_jobs must not be 0"),
    ],
    "decompose": [
        ({"method": "svd"}, "method must be one of 'vb', 'em'"),
        ({"burn_in": 3}, "method 'vb' takes no burn_in"),
        ({"method": "gibbs", "tol": 0.1}, "method 'gibbs' takes no tol"),
        ({"method": "gibbs", "max_iter": 5, "burn_in": 5}, "burn_in=5 leaves none of max_iter=5"),
        ({"max_iter": 0}, "max_iter must be at least 1|max_iter must be between"),
        ({"tol": -1}, "tol must be positive"),
        ({"elimination_order": ["doc"]}, "every hidden node once"),
    ],
    "sample_posterior": [
        ({"n_draws": 0}, "n_draws must be"),
        ({"n_draws": 2.5}, "n_draws must be an int"),
        ({"n_draws": 10**9}, "lower n_draws"),
        ({"n_particles": 3}, "takes no n_particles"),
        ({"n_samples": 3, "method": "smc"}, "takes no n_samples"),
        ({"n_sweeps": 0, "method": "smc"}, "give n_sweeps of 1"),
        ({"method": "vb"}, "method must be one of"),
        ({"sweeps": 3}, "no method has an option 'sweeps'"),
    ],
    "bidirectional_bounds": [
        ({"shape": {}}, "shape must map the axes"),
        ({"shape": [3, 3]}, "shape must map the axes"),
        ({"shape": {"doc": 3, "x": 2}}, "no node for axis 'x'"),
        ({"shape": {"doc": 3}}, "no size for node 'word'"),
        ({"shape": {"doc": 3, "word": 2, "topic": 2}}, "no hidden nodes: its evidence is exact"),
        ({"total": 0}, "total must be"),
        ({"total": 10**12}, "total must be"),
        ({"n_samples": 0}, "n_samples must be"),
    ],
    "simulate": [
        ({}, "give the number of tokens as total"),
        ({"total": 3, "rate": 1.0}, "total and rate are given"),
        ({"total": -1}, "total must be"),
        ({"total": 3, "shape": {"k": 2}}, "shape names 'k'"),
        ({"total": 3, "shape": [2, 2]}, "shape must map"),
        ({"total": 3, "shape": None}, r"node 'doc' of graph .* has no size"),
        ({"rate": 0}, "rate must be"),
    ],
}
# Valid arguments that some calls need beside their options.
GIVEN = {
    "bidirectional_bounds": {"shape": {"doc": 3, "word": 2}, "total": 5},
    "simulate": {"shape": {"doc": 3, "word": 2}},
}


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [(name, *row) for name, rows in BAD_OPTIONS.items() for row in rows],
)
def test_bad_options_are_refused(name, options, message):
    with pytest.raises(errors.PolyabayesError, match=message):
        getattr(AllocationModel.nmf(2), name)(**GIVEN.get(name, {"data": TABLE}) | options)


def test_too_much_work_is_refused():
    wide = np.random.default_rng(0).poisson(1.0, (12, 12))
    with pytest.raises(errors.BudgetExceededError, match="raise budget, or use method='tempered'"):
        AllocationModel.nmf(4).log_evidence(wide, "exact", budget=1e4)
    huge = [[9 * 10**11, 10**11], [10**11, 9 * 10**11]]
    for method in ("auto", "smc", "tempered"):
        with pytest.raises(errors.BudgetExceededError, match="2,000,000,000,000 tokens"):
            AllocationModel.nmf(2).log_evidence(huge, method)
    # Two states of each token, with 3 factors and 10 marginal counts.
    with pytest.raises(errors.BudgetExceededError, match=r"5\.2e13 multiply-adds"):
        AllocationModel.nmf(2).log_evidence(huge, "exact")
    with pytest.raises(errors.BudgetExceededError, match="1,000,000,000 particles"):
        AllocationModel.nmf(2).log_evidence(wide, "smc", n_particles=10**9)
    with pytest.raises(errors.BudgetExceededError, match="2,000,000,000,000 tokens"):
        AllocationModel.nmf(2).decompose(huge, "gibbs")
    with pytest.raises(errors.BudgetExceededError, match="1,000,000,000 particles"):
        AllocationModel.nmf(4).decompose(wide, "smc", n_particles=10**9)
    with pytest.raises(errors.InvalidCountsError, match=r"above 2..63 - 1"):
        AllocationModel.nmf(2).log_evidence([[2**62, 2**62]])


def test_tables_that_are_too_large_are_no_matter_of_a_budget():
    model = AllocationModel.nmf(10**9)
    told = r"graph 'topic -> doc, word' with the sizes doc 3, topic 1,000,000,000, word 3: marginal"
    for call in (model.cost, model.log_evidence, model.decompose, model.allocations):
        with pytest.raises(errors.BudgetExceededError, match=f"{told}.*give smaller sizes"):
            call(TABLE)


def test_variational_methods_need_no_tokens():
    huge = np.array([[9 * 10**11, 10**11], [10**11, 9 * 10**11]])
    model = AllocationModel.nmf(2)
    bound = model.log_evidence(huge, "vb", random_state=0)
    assert math.isfinite(bound.value)
    for method in ("vb", "em", "dual-em", "icm"):
        found = model.decompose(huge, method, random_state=0)
        assert found.expected_counts["topic"].sum() == pytest.approx(huge.sum(), rel=1e-9)


def test_more_tokens_than_samplers_count_are_refused():
    core = lay_out(AllocationModel.nmf(2), [[2**31, 1], [3, 4]]).core
    with pytest.raises(errors.InvalidArgumentError, match="2147483656 tokens one by one"):
        core.evidence(Options("smc", 16, n_replicates=1), seed=0, n_jobs=1)


@pytest.mark.parametrize("method", ["smc", "tempered"])
def test_one_replicate_has_no_error(method):
    with pytest.warns(errors.UnreliableErrorWarning, match="one replicate gives no standard error"):
        found = AllocationModel.nmf(2).log_evidence([[5, 4], [3, 2]], method, n_replicates=1)
    assert np.isfinite(found.value)
    assert np.isnan([found.std_error, *found.interval()]).all()
    assert repr(found).endswith(f" nats ({method}, one replicate)>")
