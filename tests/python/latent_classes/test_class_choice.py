"""How many classes: posterior of their number, of those that hold a row, and whether any fits."""

import itertools
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import special
from sklearn.base import clone

import polyabayes as pb
from polyabayes import priors
from polyabayes.allocation.inference.draws import weigh_posteriors
from polyabayes.allocation.layout import lay_out
from polyabayes.allocation.options import Options, Run
from polyabayes.exceptions import EdgeWarning, TargetWarning
from polyabayes.latent_classes.answers import ln_orders
from polyabayes.latent_classes.choice import PRIORS, ClassComparison

ROWS = [(0, 0, 1), (0, 0, None), (0, 1, 1), (1, 1, 0), (1, None, 0), (1, 1, 0), (0, 0, 1)]
FRAME = pd.DataFrame(ROWS, columns=["a", "b", "c"]).astype(pd.CategoricalDtype([0, 1]))


def enumerated(n_classes: int, weights: float, items: float) -> dict[int, float]:
    """Probability of the rows by the number of classes that hold one, over all allocations."""
    classes = np.array(list(itertools.product(range(n_classes), repeat=len(ROWS))))
    held = classes[:, :, None] == np.arange(n_classes)
    given = np.array([[[answer == 0, answer == 1] for answer in row] for row in ROWS])
    sizes, counts = held.sum(axis=1), np.einsum("arc,rio->acio", held * 1.0, given)
    value = math.lgamma(n_classes * weights) - special.gammaln(n_classes * weights + len(ROWS))
    value += (special.gammaln(sizes + weights) - math.lgamma(weights)).sum(axis=1)
    value += (special.gammaln(counts + items) - math.lgamma(items)).sum(axis=(1, 2, 3))
    totals = counts.sum(axis=3)
    value += (math.lgamma(2 * items) - special.gammaln(2 * items + totals)).sum(axis=(1, 2))
    found = np.bincount((sizes > 0).sum(axis=1), weights=np.exp(value))
    return {number: mass for number, mass in enumerate(found) if mass}


@pytest.mark.parametrize(
    ("prior", "weights", "items"),
    [
        ("flat", 1, [1]),
        ("jeffreys", 0.5, [0.5]),
        ({"weights": 2.0, "items": 0.3}, 2.0, [0.3]),
        ({"weights": 4.0, "items": [2.0, 0.5]}, 4.0, [0.5, 2.0]),
        ("learned", 4.0, [4.0**power for power in range(-1, 7)]),
    ],
)
def test_probabilities_are_those_of_all_allocations(prior: Any, weights: Any, items: Any) -> None:
    by_size: dict[int, dict[int, float]] = {n: {} for n in (1, 2, 3)}
    for n, found in by_size.items():
        for value in items:
            for number, mass in enumerated(n, weights, value).items():
                found[number] = found.get(number, 0.0) + mass / len(items)
    joint = {n: 2.0**-n * sum(found.values()) for n, found in by_size.items()}
    total = sum(joint.values())
    classes = pb.LatentClassAnalysis([1, 2, 3], prior=prior, random_state=0).fit(FRAME)
    choice = classes.choice_
    for row in choice.rows:
        n = row["n_classes"]
        assert row["log_evidence"] == pytest.approx(math.log(sum(by_size[n].values())), abs=1e-10)
        assert row["prior"] == pytest.approx(2.0**-n / 0.875)
        assert row["probability"] == pytest.approx(joint[n] / total, abs=1e-10)
    assert choice.best == max(joint, key=lambda n: joint[n])
    chosen = math.log(sum(by_size[choice.best].values()))
    assert classes.log_evidence_ == pytest.approx(chosen, abs=1e-10)
    assert sum(choice.occupied.values()) == pytest.approx(1.0)
    for number, probability in choice.occupied.items():
        exact = sum(2.0**-n * found.get(number, 0.0) for n, found in by_size.items()) / total
        # 400 draws of each number of classes, which are correlated.
        assert probability == pytest.approx(exact, abs=0.06)


@pytest.mark.parametrize("at", [1, 4])
def test_particles_tell_the_evidence_under_other_concentrations(at: int) -> None:
    prior, tensor = PRIORS["learned"], pb.CountTensor.from_frame(FRAME)
    places = sorted(range(len(prior.items)), key=lambda place: place != at)
    layouts = [lay_out(prior.model(tensor.axes, 3, place), tensor) for place in places]
    options = Options.of(method="smc", n_particles=16, n_sweeps=4)
    exact = [
        math.log(sum(enumerated(3, prior.weights, prior.items[place]).values())) + ln_orders(tensor)
        for place in places
    ]
    found = np.array(
        [
            [(e.value, e.std_error) for e in weigh_posteriors(layouts, options, 0, run)[0]]
            for run in (Run(seed, 1, False) for seed in range(150))
        ]
    )
    misses = found[..., 0] - exact
    ratios = np.exp(misses)
    errors = ratios.std(axis=0) / np.sqrt(len(ratios))
    assert (np.abs(ratios.mean(axis=0) - 1) < 4 * errors).all()
    # The nearest others: the error that is reported is the one that is made.
    told = np.sqrt((misses**2).mean(axis=0) / (found[..., 1] ** 2).mean(axis=0))
    assert (told < 1.3).all()
    near = [nth for nth, place in enumerate(places) if abs(place - at) == 1]
    assert (found[:, near, 1].mean(axis=0) < 0.5).all()


def test_particles_of_a_thousand_rows_agree_with_the_exact_sum() -> None:
    # Sweeps grow rarer beyond 300 rows.
    yes, no = np.arange(701)[:, None], np.arange(401)[None]

    def ln_law(*counts: Any) -> Any:
        return sum(map(special.gammaln, (n + 1 for n in counts))) - special.gammaln(sum(counts) + 2)

    ln_ways = -sum(special.gammaln(n + 1) for n in (yes, 700 - yes, no, 400 - no))
    ln_first, ln_second = ln_law(yes, no), ln_law(700 - yes, 400 - no)
    ln_classes = ln_law(yes + no, 1100 - yes - no)
    exact = special.gammaln(1101) + special.logsumexp(ln_ways + ln_first + ln_second + ln_classes)
    model, table = PRIORS["flat"].model(["a"], 2), np.array([700, 400])
    options = {"n_particles": 16, "n_sweeps": 8, "n_replicates": 100}
    found = model.log_evidence(table, "smc", given_total=True, random_state=0, **options)
    assert found.value == pytest.approx(exact, abs=4 * found.std_error)
    assert found.std_error < 0.2


def test_candidates_that_particles_of_a_neighbour_put_far_behind_get_no_look() -> None:
    of = np.repeat([0, 1, 2], [150, 90, 60])
    yes = np.array([[0.9] * 8, [0.1] * 8, [0.9] * 4 + [0.1] * 4])
    frame = pd.DataFrame((np.random.default_rng(1).random((300, 8)) < yes[of]).astype(int))
    tensor, run = pb.CountTensor.from_frame(frame), Run(0, 1, False)
    compared = ClassComparison(tensor, PRIORS["learned"], dict.fromkeys([2, 3, 4], 0.0), run)
    compared.compare(lambda: None, progress=False)
    n_skipped = 0
    for one, rough in compared._rough.items():
        if one not in compared.evidences and compared.is_far(one):
            own = ClassComparison(tensor, PRIORS["learned"], {one[0][0]: 0.0}, run)
            own.look(one, 0)
            best = max(compared.joint().values())
            assert own.evidences[one].value < best - 10 > rough.value
            n_skipped += 1
    assert n_skipped >= 2


def test_a_lower_evidence_by_particles_of_a_neighbour_replaces_no_look() -> None:
    tensor, run, one = pb.CountTensor.from_frame(FRAME), Run(0, 1, False), ((2,), 1)
    compared = ClassComparison(tensor, PRIORS["learned"], {2: 0.0}, run)
    compared._most_exact = 0.0
    compared.look(one, 0)
    found = compared.evidences[one]
    for apart, is_replaced in ((6.0, False), (-6.0, True)):
        own = replace(found, value=found.value + apart, std_error=4.0)
        compared.evidences[one] = own
        compared.look(((2,), 2), 0)
        assert (compared.evidences[one] is not own) == is_replaced


def test_particles_that_miss_the_classes_are_not_believed() -> None:
    # Two binary classes, whose single class looks like noise: the largest concentration is best.
    generator = np.random.default_rng(2)
    of = generator.choice(2, size=200, p=[0.6, 0.4])
    answers = (generator.random((200, 5)) < np.where(of, 0.85, 0.2)[:, None]).astype(int)
    found = pb.LatentClassAnalysis([1, 2, 3], random_state=0).fit(answers).choice_
    assert found.rows[0]["concentration"] == 4096.0
    assert found.rows[1]["concentration"] == 1.0
    fixed = {"weights": 4, "items": 1}
    one = pb.LatentClassAnalysis([1, 2, 3], prior=fixed, random_state=0).fit(answers).choice_
    for mean, part in zip(found.rows[1:], one.rows[1:], strict=True):
        error = math.hypot(mean["std_error"], part["std_error"])
        # The mean over eight concentrations is an eighth of each at least.
        assert mean["log_evidence"] > part["log_evidence"] - math.log(8) - 4 * error


def test_predictions_average_over_all_allocations() -> None:
    classes = pb.LatentClassAnalysis(2, prior="flat", random_state=0).fit(FRAME)
    row = (0, 1, 0)
    base = sum(enumerated(2, 1.0, 1.0).values())
    ROWS.append(row)
    try:
        extended = sum(enumerated(2, 1.0, 1.0).values())
    finally:
        ROWS.pop()
    found = classes.score_samples(pd.DataFrame([row], columns=["a", "b", "c"]))
    assert found == pytest.approx([math.log(extended / base)], abs=0.05)


def test_the_default_tries_numbers_until_none_has_a_chance() -> None:
    answers = np.repeat([[0, 0, 0, 0, 0], [1, 1, 1, 1, 1]], 40, axis=0)
    answers[::7, 0] ^= 1
    answers[::5, 2] ^= 1
    answers[::11, 4] ^= 1
    choice = pb.LatentClassAnalysis(random_state=0).fit(answers).choice_
    assert choice.best == 2
    numbers = [row["n_classes"] for row in choice.rows]
    assert numbers == list(range(1, len(numbers) + 1))
    assert numbers[-1] < 10
    last = choice.rows[-1]
    assert last["probability"] < 0.01
    assert max(choice.occupied, key=lambda n: choice.occupied[n]) == 2
    with pytest.warns(EdgeWarning, match="max_classes"):
        few = pb.LatentClassAnalysis(max_classes=2, random_state=0).fit(answers).choice_
    assert few.probabilities[2] > 0.999
    only = pb.LatentClassAnalysis(size_prior=priors.Uniform(3, 3), random_state=0).fit(answers)
    assert only.n_classes_ == 3


def test_noise_is_one_class() -> None:
    answers = np.random.default_rng(0).integers(4, size=(100, 8))
    flat = pb.LatentClassAnalysis([1, 2, 4], prior="flat", random_state=0).fit(answers)
    learned = pb.LatentClassAnalysis([1, 2, 4], random_state=0).fit(answers)
    assert learned.n_classes_ == 1
    assert flat.choice_.probabilities[1] < 0.5 < learned.choice_.probabilities[1]
    rows = learned.choice_.rows
    assert {row["concentration"] for row in rows} <= {64.0, 256.0, 1024.0, 4096.0}
    planted = np.repeat([[0, 0, 0, 0], [1, 1, 1, 1]], 30, axis=0)
    sure = pb.LatentClassAnalysis([1, 2], random_state=0).fit(planted).choice_
    assert sure.best == 2
    assert sure.rows[1]["concentration"] == 0.25


def test_the_named_priors_are_compared() -> None:
    classes = pb.LatentClassAnalysis([1, 2], random_state=0)
    table = classes.compare_priors(FRAME)
    assert table["n_classes"].tolist() == [1, 2]
    for name, weights in (("flat", 1.0), ("jeffreys", 0.5)):
        joint = [2.0**-n * sum(enumerated(n, weights, weights).values()) for n in (1, 2)]
        assert table[name] == pytest.approx(np.array(joint) / sum(joint), abs=1e-9)
    models = {str(n): pb.AllocationModel.cp(list("abc"), n) for n in (1, 2)}
    data = pb.CountTensor.from_frame(FRAME)
    found = pb.posterior_over_models(models, data, prior={"1": 0.5, "2": 0.25}, given_total=True)
    default = found.probabilities
    assert table["bdeu"] == pytest.approx([default["1"], default["2"]], abs=1e-9)


def test_time_ends_the_comparison(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = np.random.default_rng(1).integers(3, size=(60, 5))
    classes = pb.LatentClassAnalysis([1, 2, 3, 4], max_time=2.0, prior="flat", random_state=0)
    clock = itertools.count()
    # A look takes a second.
    monkeypatch.setattr("polyabayes.sizes.evidence.comparison.time.monotonic", lambda: next(clock))
    with pytest.warns(TargetWarning, match="before 3 classes to 4 classes were evaluated"):
        found = classes.fit(answers)
    assert list(found.choice_.probabilities) == [1, 2]
    assert sum(found.choice_.probabilities.values()) == pytest.approx(1.0)


def test_residuals_tell_a_pair_that_classes_do_not_explain() -> None:
    generator = np.random.default_rng(11)
    of = generator.choice(2, size=400)
    answers = (generator.random((400, 6)) < np.where(of, 0.8, 0.25)[:, None]).astype(int)
    classes = pb.LatentClassAnalysis(2, random_state=0)
    fair = clone(classes).fit(answers).residuals(answers)
    assert fair.p_value > 0.05
    assert fair.residual.mean() == pytest.approx(1.0, abs=0.5)
    answers[:, 5] = np.where(generator.random(400) < 0.5, answers[:, 4], answers[:, 5])
    fit = clone(classes).fit(answers)
    found = fit.residuals(answers).to_frame()
    worst = found.loc[found.residual.idxmax()]
    assert (worst["item"], worst["other"]) == ("x4", "x5")
    assert worst["p_value"] < 0.05
    assert fit.residuals(answers).p_value < 0.05
    patterns, counts = np.unique(answers, axis=0, return_counts=True)
    weighted = fit.residuals(patterns, weights=counts)
    assert weighted.residual == pytest.approx(found.residual.to_numpy(), rel=1e-9)
    hidden = answers.astype(float)
    hidden[generator.random(answers.shape) < 0.3] = np.nan
    partly = clone(classes).fit(hidden).residuals(hidden)
    assert partly.pairs[int(np.argmax(partly.residual))] == ("x4", "x5")


def test_a_paragraph_reports_the_choice() -> None:
    classes = pb.LatentClassAnalysis([1, 2], random_state=0).fit(FRAME)
    text = " ".join(pb.cite(classes).methods.split())
    probability = classes.choice_.probabilities[classes.n_classes_]
    assert "of 3 items with Dirichlet priors, the concentration of answers learned (" in text
    assert f"Of 1 to 2 classes, {classes.n_classes_} have a posterior" in text
    assert f"of {probability:.2f} (" in text
    row = classes.profiles().row(0)
    assert f"{row['probability']:.2f} ({row['lower']:.2f} to {row['upper']:.2f})" in text
    for prior, says in (
        ("flat", "with flat Dirichlet priors"),
        ({"weights": 2, "items": [0.5]}, "parameters 2 of weights and 0.5 of answers"),
    ):
        other = pb.LatentClassAnalysis(2, prior=prior, random_state=0).fit(FRAME)
        assert says in " ".join(pb.cite(other).methods.split())
    point = pb.LatentClassAnalysis([1, 2], method="em", random_state=0).fit(FRAME)
    assert "by maximum likelihood" in pb.cite(point).methods
