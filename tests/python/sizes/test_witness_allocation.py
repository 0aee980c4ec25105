"""Unknown sizes of allocation models, against sums over all sizes that tiny data allow."""

import itertools
import math

import numpy as np
import pandas as pd
import pytest
from scipy import special, stats

import polyabayes as pb
from polyabayes import priors
from polyabayes.exceptions import InvalidArgumentError
from polyabayes.sizes.witness import WitnessSearch
from polyabayes.sizes.witness.adapters import EvidenceOf

RNG = np.random.default_rng(6)
LINKS = pb.CountTensor.from_dense(
    RNG.multinomial(6, np.full(18, 1 / 18)).reshape(3, 3, 2), ["user", "item", "s"]
)
CELLS = RNG.multinomial(5, np.full(8, 1 / 8)).reshape(2, 2, 2)
CUBE = pb.CountTensor.from_dense(CELLS, ["i", "j", "k"])
WORDS = pb.CountTensor.from_dense([[3, 0, 0], [1, 2, 0], [0, 0, 2]], ["doc", "word"])

COCLUSTERING = pb.AllocationModel.blockmodel(None, None, axes=["user", "item", "s"])
TUCKER = pb.AllocationModel.tucker(["i", "j", "k"], [None, None, None], concentration=2.0)
PACHINKO = pb.AllocationModel.pachinko([None, None], concentration=2.0)

TO_3 = priors.Uniform(1, 3)
HOLED = priors.JointTable({(1, 2): 0.2, (2, 1): 0.4, (2, 3): 0.1, (3, 3): 0.3})
TO_4 = priors.Product(TO_3, priors.Table({1: 0.5, 2: 0.2, 4: 0.3}))
CASES = {
    "users": (COCLUSTERING, LINKS, priors.Product(TO_3, TO_3)),
    "users and a prior with holes": (COCLUSTERING, LINKS, HOLED),
    "Tucker ranks": (TUCKER, CUBE, priors.Product(*[priors.Table([0.5, 0.3, 0.2])] * 3)),
    "Pachinko": (PACHINKO, WORDS, TO_4),
}


def all_sizes(prior):
    """Every configuration with mass, and its ln mass."""
    sizes = itertools.product(range(1, 5), repeat=prior.n_variables)
    masses = {s: prior.log_box(s, s) for s in sizes if all(map(int.__ge__, s, prior.first))}
    return {s: mass for s, mass in masses.items() if mass > -math.inf}


@pytest.mark.parametrize(("model", "tensor", "prior"), CASES.values(), ids=CASES)
@pytest.mark.parametrize("strategy", [None, "successor"])
def test_bounds_contain_the_whole_sum_of_exact_evidences(model, tensor, prior, strategy):
    masses = all_sizes(prior)
    assert math.fsum(map(math.exp, masses.values())) == pytest.approx(1.0, abs=1e-12)
    terms = {}
    for sizes, mass in masses.items():
        named = dict(zip(model.unknown_sizes, sizes, strict=True))
        found = model.with_sizes(**named).log_evidence(tensor, "exact", given_total=True)
        terms[sizes] = mass + found.value
    truth = float(special.logsumexp(list(terms.values())))
    search = WitnessSearch(
        model, prior, strategy=strategy, scoring_options={"given_total": True}, random_state=0
    ).fit(tensor)
    table = search.bounds_
    assert (table["std_error"] == 0).all()
    assert search.n_steps_ == len(terms)
    assert (table["lower"] <= truth).all()
    assert (truth <= table["upper"]).all()
    assert (np.diff(table["lower"]) > 0).all()
    assert (np.diff(table["upper"]) < 0).all()
    assert search.stop_reason_ == "exhausted"
    assert table["upper"][-1] - table["lower"][-1] < 1e-10
    posterior = search.posterior_bounds_
    for row in range(len(terms)):
        cells = posterior.row(row)
        share = math.exp(terms[tuple(cells[name] for name in search.size_names_)] - truth)
        assert cells["lower"] <= share <= cells["upper"]
    assert search.best_ == max(terms, key=terms.__getitem__)
    best = search.model()
    assert tuple(best.sizes[node] for node in model.unknown_sizes) == search.best_
    assert search.model(*sizes).decompose(tensor, max_iter=2).tables


def test_the_ceiling_is_the_probability_by_the_frequencies_themselves():
    counts = LINKS.counts
    ceiling = stats.multinomial(LINKS.total, counts / LINKS.total).logpmf(counts)
    search = WitnessSearch(COCLUSTERING, priors.JointTable([[1.0]])).fit(LINKS)
    assert search.log_ceiling_ == pytest.approx(ceiling, rel=1e-10)
    assert search.log_ceiling_ >= ceiling
    search.set_params(upper="vacuous").fit(LINKS)
    assert search.log_ceiling_ == 0.0


def test_the_ceiling_is_that_of_each_set_of_axes_that_tokens_show():
    """Where axes have one level, counts within each set of axes are certain."""
    frame = pd.DataFrame({"a": [0, 0], "b": [0, None]}).astype(pd.CategoricalDtype([0]))
    answers = pb.CountTensor.from_frame(frame)
    model = pb.AllocationModel.cp(["a", "b"], None)
    options = {"given_total": True}
    search = WitnessSearch(model, priors.Uniform(1, 2), scoring_options=options).fit(answers)
    assert search.log_ceiling_ == 0.0
    np.testing.assert_allclose(search.bounds_["log_score"], 0.0, atol=1e-12)


def test_errors_of_the_evidence_are_carried_into_the_bounds():
    """All nine by filters, against their exact values, by Student's law of the replicates."""
    prior = priors.Product(priors.Uniform(1, 3), priors.Uniform(1, 3))
    options = {"method": "smc", "n_particles": 16, "n_replicates": 8}
    noisy = WitnessSearch(COCLUSTERING, prior, scoring_options=options, random_state=4).fit(LINKS)
    exact = WitnessSearch(COCLUSTERING, prior, random_state=0).fit(LINKS)
    truth = exact.bounds_["lower"][-1]
    table = noisy.bounds_
    hidden = table["std_error"] > 0
    assert hidden.sum() >= 4
    assert (table["lower"] <= truth).all()
    assert (truth <= table["upper"]).all()
    width = table["upper"][-1] - table["lower"][-1]
    # By hand: the i-th of those with an error may miss with probability 0.05 6 / (pi i)^2.
    mass, lower, upper, i = math.log(1 / 9), [], [], 0
    for value, error in zip(table["log_score"], table["std_error"], strict=True):
        i += error > 0
        tail = 0.05 * 6 / (math.pi * max(i, 1)) ** 2
        half = -special.stdtrit(7, tail / 2) * error
        lower.append(mass + value - half)
        upper.append(mass + min(value + half, noisy.log_ceiling_))
    assert width == pytest.approx(special.logsumexp(upper) - special.logsumexp(lower), abs=1e-9)
    assert width > 0.01
    score = EvidenceOf(COCLUSTERING, LINKS, {**options, "random_state": 1})(2, 2)
    assert score.degrees_of_freedom == 7


def test_a_variational_bound_is_flagged():
    options = {"method": "vb", "n_restarts": 2}
    search = pachinko(scoring_options=options, random_state=0)
    assert search.holds_ == {"lower": True, "upper": False, "posterior": False, "predictive": False}
    exact = pachinko()
    assert search.bounds_["lower"][-1] < exact.bounds_["upper"][-1]


def test_sizes_are_called_by_their_nodes():
    graph = "user -> lower; item -> h; lower, h -> s"
    model = pb.AllocationModel(graph, {"lower": None, "h": None}, axes=["user", "item", "s"])
    prior = priors.Product(priors.Uniform(1, 2), priors.Uniform(1, 2))
    search = WitnessSearch(model, prior).fit(LINKS)
    # A column of this name is there already.
    assert search.size_names_ == ("size_lower", "h")
    assert list(search.bounds_)[:3] == ["size_lower", "h", "log_score"]
    sides = ["lower", "upper", "log_lower", "log_upper"]
    assert list(search.posterior_bounds_) == [*search.size_names_, *sides]
    same = WitnessSearch(COCLUSTERING, prior).fit(LINKS)
    np.testing.assert_array_equal(search.bounds_["lower"], same.bounds_["lower"])
    one = WitnessSearch(COCLUSTERING.with_sizes(g=2), priors.Uniform(1, 2)).fit(LINKS)
    assert one.size_names_ == ("size",)
    assert pb.plotting.plot_size_bounds(one).get_xlabel() == "largest size of h explored"
    assert pb.plotting.plot_size_posterior({"": one}).get_xlabel() == "size of h"


def test_some_sizes_may_be_known():
    model = pb.AllocationModel.blockmodel(2, None, axes=["user", "item", "s"])
    assert model.unknown_sizes == ("h",)
    assert repr(model) == "<AllocationModel: user -> g; item -> h; g, h -> s; g 2, h ?; " + (
        "concentration 1>"
    )
    search = WitnessSearch(model, priors.Uniform(1, 3)).fit(LINKS)
    whole = model.with_sizes(h=3).log_evidence(LINKS, "exact")
    assert search.bounds_["log_score"][2] == pytest.approx(whole.value, abs=1e-9)
    assert model.sizes == {"g": 2, "h": None}


def test_a_search_of_a_bare_matrix_goes_on(tmp_path):
    counts = WORDS.to_dense()

    def search(**options):
        model = pb.AllocationModel.nmf(None, concentration=options.pop("concentration", 1.0))
        arguments = {"checkpoint": tmp_path, "random_state": 1, "max_steps": 3, **options}
        return WitnessSearch(model, priors.Poisson(2.0), **arguments)

    first = search(max_steps=2).fit(counts).bounds_["log_score"].tolist()
    assert search().fit(WORDS).bounds_["log_score"].tolist()[:2] == first
    for options, data, message in (
        ({}, counts + 1, "its data is"),
        ({"concentration": 2.0}, counts, "its concentration is 1.0"),
        ({"scoring_options": {"n_samples": 7}}, counts, "its scoring_options is"),
    ):
        with pytest.raises(InvalidArgumentError, match=f"is of another search: {message}"):
            search(**options).fit(data)
    search(scoring_options={"n_jobs": 1}).fit(counts)


def pachinko(**options):
    return WitnessSearch(PACHINKO, TO_4, **options).fit(WORDS)
