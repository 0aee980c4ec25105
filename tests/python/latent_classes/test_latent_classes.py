"""Latent classes: maxima, memberships, draws, files, and doors of many kinds."""

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

import polyabayes as pb
from helpers.processes import python
from polyabayes.allocation.inference.draws import weigh_posteriors
from polyabayes.exceptions import Interrupted

WEIGHTS = np.array([0.6, 0.4])
LEVELS = (2, 3, 2, 4, 2)


def planted(n_rows: int, seed: int, missing: float = 0.0) -> tuple[pd.DataFrame, Any, list[Any]]:
    """Rows of two classes, their classes, and the probabilities of each item's answers."""
    generator = np.random.default_rng(seed)
    classes = generator.choice(2, size=n_rows, p=WEIGHTS)
    tables, columns = [], {}
    for item, n_levels in enumerate(LEVELS):
        table = np.full((2, n_levels), 0.3 / (n_levels - 1))
        table[[0, 1], [0, n_levels - 1]] = 0.7
        points = generator.random((n_rows, 1))
        answers = (points > np.cumsum(table, axis=1)[classes][:, :-1]).sum(axis=1)
        # The first item is never missing, so that no row is empty.
        shown = generator.random(n_rows) >= (missing if item else 0.0)
        columns[f"q {item}"] = pd.array(np.where(shown, answers, -1), dtype="Int64")
        tables.append(table)
    frame = pd.DataFrame(columns).replace(-1, pd.NA)
    return frame, classes, tables


def test_maxima_of_the_carcinoma_data_are_those_published(shared_data: Path) -> None:
    slides = pd.read_csv(shared_data / "carcinoma.csv")
    published = {2: -317.2568, 3: -293.705, 4: -289.2858}
    for n_classes, value in published.items():
        classes = pb.LatentClassAnalysis(n_classes, method="em", random_state=0)
        classes.fit(slides, weights="count")
        assert classes.log_likelihood_ == pytest.approx(value, abs=1e-3)
        assert classes.score(slides, weights=slides["count"]) == pytest.approx(value / 118, 1e-5)
    assert classes.feature_names_in_.tolist() == list("ABCDEFG")
    assert classes.n_parameters_ == 3 + 4 * 7


def test_maxima_of_the_midtown_manhattan_table_are_those_published() -> None:
    """Status of parents by mental health (Srole et al. 1962), as Goodman analysed it by Mplus."""
    counts = [[64, 94, 58, 46], [57, 94, 54, 40], [57, 105, 65, 60], [72, 141, 77, 94]]
    counts += [[36, 97, 54, 78], [21, 71, 54, 71]]
    rows = [(s, m, n) for s, row in enumerate(counts) for m, n in enumerate(row)]
    frame = pd.DataFrame(rows, columns=["status", "health", "n"])
    classes = pb.LatentClassAnalysis([1, 2], method="em", random_state=0).fit(frame, weights="n")
    found = [row["log_likelihood"] for row in classes.choice_.rows]
    assert found == pytest.approx([-5190.578, -5168.243], abs=6e-4)


def test_a_maximum_is_a_fixed_point_where_answers_are_missing() -> None:
    frame, _, _ = planted(150, 3, missing=0.2)
    levels = frame.fillna(-1).to_numpy(dtype=np.int64)
    classes = pb.LatentClassAnalysis(2, method="em", tol=1e-15, random_state=0).fit(frame)
    tables = [table.to_numpy().T for table in classes.item_probabilities_.values()]
    joint = np.tile(classes.class_weights_, (150, 1))
    for column, table in zip(levels.T, tables, strict=True):
        joint[column >= 0] *= table[column[column >= 0]]
    value, shares = np.log(joint.sum(axis=1)).sum(), joint / joint.sum(axis=1, keepdims=True)
    for column, table in zip(levels.T, tables, strict=True):
        counts = np.array([shares[column == level].sum(axis=0) for level in range(len(table))])
        assert table == pytest.approx(counts / counts.sum(axis=0), abs=1e-6)
    assert classes.log_likelihood_ == pytest.approx(value, abs=1e-8)
    assert classes.predict_proba(frame) == pytest.approx(shares, abs=1e-6)
    assert classes.class_weights_ == pytest.approx(shares.mean(axis=0), abs=1e-6)
    entropy = 1 + (shares * np.log(shares)).sum() / (len(frame) * np.log(2))
    assert classes.entropy(frame) == pytest.approx(entropy, abs=1e-6)
    n_parameters = 1 + 2 * sum(n - 1 for n in LEVELS)
    assert classes.aic(frame) == pytest.approx(2 * n_parameters - 2 * value)
    assert classes.bic(frame) == pytest.approx(n_parameters * np.log(150) - 2 * value)
    assert np.isnan(classes.log_evidence_)


def test_planted_classes_are_in_the_intervals_and_come_largest_first() -> None:
    frame, truth, tables = planted(400, 4, missing=0.3)
    for seed in (0, 1):
        classes = pb.LatentClassAnalysis(2, random_state=seed).fit(frame)
        assert classes.class_weights_[0] > classes.class_weights_[1]
        assert np.mean(classes.predict(frame) == truth) > 0.8
    found = classes.profiles(0.999).to_frame()
    weights = found[found.item == ""]
    assert ((weights.lower < WEIGHTS) & (weights.upper > WEIGHTS)).all()
    assert weights.probability.to_numpy() == pytest.approx(classes.class_weights_)
    for number, (item, table) in enumerate(classes.item_probabilities_.items()):
        assert item == f"q {number}"
        rows = found[found.item == item]
        assert rows.probability.to_numpy() == pytest.approx(table.to_numpy().ravel())
        assert ((rows.lower < tables[number].ravel()) & (rows.upper > tables[number].ravel())).all()
        assert table.columns.tolist() == [str(level) for level in range(LEVELS[number])]
        assert table.sum(axis=1).to_numpy() == pytest.approx(1.0)
    narrow = classes.profiles(0.5).to_frame()
    assert ((narrow.upper - narrow.lower) < (found.upper - found.lower)).all()
    point = pb.LatentClassAnalysis(2, method="em", random_state=0).fit(frame).profiles().to_frame()
    inside = (point.probability > 1e-6) & (point.probability < 1 - 1e-6)
    assert ((point.lower < point.probability) & (point.probability < point.upper))[inside].all()


def test_one_class_is_a_closed_form() -> None:
    answers = np.array([[0, 0], [0, 1], [1, 1], [0, 1]])
    classes = pb.LatentClassAnalysis(1, prior="flat", random_state=0).fit(answers)
    # Urns with one ball of each colour: 3 and 1 of the first item, 1 and 3 of the second.
    urn = np.log([1 * 2 * 3 * 1 / (2 * 3 * 4 * 5)]).item()
    assert classes.log_evidence_ == pytest.approx(2 * urn, abs=1e-12)
    assert classes.item_probabilities_["x0"].to_numpy() == pytest.approx(np.array([[4, 2]]) / 6)
    assert classes.score_samples([[1, 0]]) == pytest.approx(np.log([4 / 36]))
    assert np.isnan(classes.entropy(answers))
    assert classes.choice_.occupied == {1: 1.0}


def test_all_doors_give_the_same_classes() -> None:
    frame, _, _ = planted(30, 5)
    polars = pytest.importorskip("polars")
    patterns = frame.value_counts(sort=False).reset_index()
    tensor = pb.CountTensor.from_frame(frame)
    whole = pb.LatentClassAnalysis(2, random_state=1).fit(frame)
    doors: dict[str, tuple[Any, Any]] = {
        "polars": (polars.from_pandas(frame), None),
        "array": (frame.to_numpy(dtype=np.int64), None),
        "floats": (frame.to_numpy(dtype=np.float64), None),
        "tensor": (tensor, None),
        "column": (patterns, "count"),
        "weights": (patterns.drop(columns="count"), patterns["count"]),
    }
    for name, (data, weights) in doors.items():
        other = clone(whole).fit(data, weights=weights)
        assert other.log_evidence_ == whole.log_evidence_, name
        assert other.class_weights_.tolist() == whole.class_weights_.tolist(), name
    order = clone(whole).fit(frame[::-1])
    assert order.predict_proba(frame).tolist() == whole.predict_proba(frame).tolist()
    assert whole.predict_proba(frame.to_numpy()).tolist() == whole.predict_proba(frame).tolist()
    one = pb.LatentClassAnalysis(2, random_state=1, n_jobs=1).fit(frame)
    assert one.profiles().to_frame().equals(whole.profiles().to_frame())
    some = pb.LatentClassAnalysis(2, items=["q 0", "q 3"], random_state=1).fit(frame)
    assert some.feature_names_in_.tolist() == ["q 0", "q 3"]


def test_an_answer_without_rows_and_rows_without_answers_are_predicted() -> None:
    frame, _, _ = planted(100, 7)
    frame["q 0"] = pd.Categorical(frame["q 0"].map({0: "no", 1: "yes"}), ["no", "yes", "never"])
    classes = pb.LatentClassAnalysis(2, random_state=0).fit(frame)
    never = classes.item_probabilities_["q 0"]["never"]
    assert ((never > 0) & (never < 0.05)).all()
    rows = frame[:2].copy()
    rows.loc[0] = None
    rows.loc[1, "q 0"] = "never"
    found = classes.predict_proba(rows)
    assert found[0] == pytest.approx(classes.class_weights_, abs=1e-12)
    assert classes.score_samples(rows)[0] == pytest.approx(0.0, abs=1e-12)
    assert np.isfinite(classes.score_samples(rows)).all()


def test_rows_drawn_have_the_probabilities_of_the_classes() -> None:
    frame, _, _ = planted(300, 8)
    classes = pb.LatentClassAnalysis(2, random_state=0).fit(frame)
    rows, of = classes.sample(20_000, random_state=1)
    assert rows.columns.tolist() == frame.columns.tolist()
    shares = np.bincount(of) / len(of)
    assert shares == pytest.approx(classes.class_weights_, abs=0.015)
    for item, table in classes.item_probabilities_.items():
        for k in range(2):
            drawn = rows[item][of == k].value_counts(normalize=True)[table.columns]
            assert drawn.to_numpy() == pytest.approx(table.loc[k].to_numpy(), abs=0.025)
    assert classes.sample(3)[0].equals(classes.sample(3)[0])


@pytest.mark.parametrize("method", ["bayes", "em"])
def test_files_and_pickles_keep_all(method: str, tmp_path: Path) -> None:
    frame, _, _ = planted(80, 9, missing=0.1)
    classes = pb.LatentClassAnalysis([1, 2], method=method, random_state=0).fit(frame)
    classes.save(tmp_path / "classes.safetensors")
    read = pb.load(tmp_path / "classes.safetensors")
    for other in (read, pickle.loads(pickle.dumps(classes))):
        assert other.predict_proba(frame).tolist() == classes.predict_proba(frame).tolist()
        assert other.profiles().to_frame().equals(classes.profiles().to_frame())
        assert other.choice_.to_frame().equals(classes.choice_.to_frame())
        assert other.choice_.occupied == classes.choice_.occupied
        assert other.log_likelihood_ == classes.log_likelihood_
        assert str(other.log_evidence_) == str(classes.log_evidence_)
        assert other.sample(5)[0].equals(classes.sample(5)[0])
        assert other.n_classes_ == classes.n_classes_ == 2
    program = "import sys, polyabayes as pb; print(pb.load(sys.argv[1]).class_weights_.tolist())"
    made = python("-c", program, tmp_path / "classes.safetensors")
    assert made.stdout.strip() == str(classes.class_weights_.tolist())


def test_an_item_may_be_called_class() -> None:
    frame, _, _ = planted(40, 10)
    renamed = frame.rename(columns={"q 0": "class", "q 1": "klass"})
    plain = pb.LatentClassAnalysis(2, random_state=0).fit(frame)
    other = pb.LatentClassAnalysis(2, random_state=0).fit(renamed)
    assert list(other.item_probabilities_)[:2] == ["class", "klass"]
    assert other.log_evidence_ == pytest.approx(plain.log_evidence_, abs=4.0)
    twins = frame.rename(columns={"q 0": "a b", "q 1": "a_b"})
    assert "a b" in pb.LatentClassAnalysis(2, random_state=0).fit(twins).item_probabilities_


def test_classes_are_an_estimator_of_scikit_learn() -> None:
    frame, _, _ = planted(60, 12)
    estimator = pb.LatentClassAnalysis(2, random_state=0)
    labels = estimator.fit_predict(frame)
    assert labels.tolist() == clone(estimator).fit(frame).predict(frame).tolist()
    search = GridSearchCV(estimator, {"n_classes": [1, 2]}, cv=2).fit(frame)
    assert search.best_params_ == {"n_classes": 2}
    assert estimator.__sklearn_tags__().input_tags.allow_nan


def test_ctrl_c_leaves_the_numbers_that_are_done(monkeypatch: pytest.MonkeyPatch) -> None:
    frame, _, _ = planted(30, 13)

    def third(layouts: Any, *options: Any) -> Any:
        if layouts[0].sizes["class"] == 3:
            raise KeyboardInterrupt
        return weigh_posteriors(layouts, *options)

    # Interrupted within the first set of items, that of all.
    monkeypatch.setattr("polyabayes.latent_classes.discrimination._MOST_SETS", 1)
    whole = pb.LatentClassAnalysis([1, 2], random_state=0).fit(frame).choice_
    monkeypatch.setattr("polyabayes.sizes.evidence.staged.weigh_posteriors", third)
    with pytest.raises(Interrupted, match="2 of 3 sizes are done") as caught:
        pb.LatentClassAnalysis([1, 2, 3], random_state=0).fit(frame)
    kept = [row["log_evidence"] for row in caught.value.partial.rows]
    assert kept == [row["log_evidence"] for row in whole.rows]
