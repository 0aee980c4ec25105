"""The table of fits, the bootstrap likelihood-ratio test, and sentences about choices."""

import numpy as np
import pytest

import polyabayes as pb
from polyabayes.exceptions import InvalidCountsError

YES = np.array([[0.9, 0.8, 0.85, 0.75, 0.8], [0.2, 0.1, 0.3, 0.2, 0.25]])


def test_the_table_of_fits_is_that_of_single_fits() -> None:
    rng = np.random.default_rng(1)
    answers = (rng.random((150, 5)) < YES[rng.choice(2, 150)]).astype(float)
    answers[rng.random(answers.shape) < 0.1] = np.nan
    answers = answers[~np.isnan(answers).all(axis=1)]
    classes = pb.LatentClassAnalysis([1, 2, 3], random_state=0)
    table = classes.compare_fits(answers, n_bootstrap=19).to_frame()
    assert not hasattr(classes, "n_classes_")
    chances = classes.fit(answers).choice_.probabilities
    assert table.n_classes.tolist() == [1, 2, 3]
    assert table.probability.tolist() == pytest.approx(list(chances.values()))
    for row in table.itertuples():
        point = pb.LatentClassAnalysis(row.n_classes, method="em", random_state=0).fit(answers)
        assert row.log_likelihood == point.log_likelihood_
        assert row.n_parameters == point.n_parameters_
        assert (row.aic, row.bic) == pytest.approx((point.aic(answers), point.bic(answers)))
        penalty = point.n_parameters_ * np.log((len(answers) + 2) / 24)
        assert row.sabic == pytest.approx(penalty - 2 * point.log_likelihood_)
        assert row.entropy == pytest.approx(point.entropy(answers), nan_ok=True)
        assert row.smallest_class == pytest.approx(point.class_weights_.min())
    assert np.isnan(table.blrt_p_value[0])
    # No data set of one class has such a ratio; of two classes, many.
    assert table.blrt_p_value[1] == 0.05
    assert table.blrt_p_value[2] > 0.1
    sentence = pb.cite(classes.choice_).methods
    assert f"Of 1 to 3 classes, 2 have a posterior probability of {chances[2]:.2f}" in sentence
    point = pb.LatentClassAnalysis([1, 2], method="em", random_state=0).fit(answers)
    assert "2 have the smallest BIC" in pb.cite(point.choice_).methods


def test_sampling_weights_have_criteria_but_no_bootstrap_test() -> None:
    rng = np.random.default_rng(2)
    answers = (rng.random((80, 5)) < YES[rng.choice(2, 80)]).astype(int)
    weights = rng.uniform(0.5, 1.5, 80)
    classes = pb.LatentClassAnalysis([1, 2], random_state=0)
    table = classes.compare_fits(answers, weights=weights).to_frame()
    point = pb.LatentClassAnalysis(2, method="em", random_state=0).fit(answers, weights=weights)
    assert table.bic[1] == pytest.approx(point.bic(answers))
    assert 0.5 < table.probability[1] <= 1
    with pytest.raises(InvalidCountsError, match=r"fraction.*data sets of as many rows"):
        classes.compare_fits(answers, weights=weights, n_bootstrap=9)


def test_a_choice_of_a_size_is_cited() -> None:
    table = [[40, 30, 0], [40, 30, 0], [0, 0, 30]]
    nmf = pb.AllocationModel.nmf(None)
    choice = pb.choose_n_components(nmf, table, [1, 2, 3, 4], random_state=0)
    text = " ".join(pb.cite(choice).methods.split())
    assert f"Of 4 sizes from 1 to 4, compared by evidence, {choice.best} is the best (" in text
