"""What is no set of answers is refused before any work, with the column and the remedy."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

import polyabayes as pb
from polyabayes.exceptions import DataWarning, PolyabayesError

GOOD = pd.DataFrame({"a": [0, 1, 0, 1, 0, 1], "b": [1, 1, 0, 0, 1, 0], "c": [0, 0, 1, 1, 0, 1]})
EMPTY_ROWS = GOOD.astype("Int64").copy()
EMPTY_ROWS.loc[[2, 4]] = pd.NA
MANY = pd.DataFrame({"a": np.arange(120) % 2, "age": np.arange(120)})


@pytest.mark.parametrize(
    ("data", "options", "weights", "says"),
    [
        (GOOD.assign(b=1), {}, None, "item 'b' has the answer '1' in all rows.*leave it out"),
        (GOOD.assign(b=None), {}, None, "column 'b' has no value in any row; omit it"),
        (EMPTY_ROWS, {}, None, r"2 rows have no answer to any item \(row 2, 4\).*dropna"),
        (MANY, {}, None, "item 'age' has 120 levels.*cut it"),
        (MANY[:20].assign(b=1), {}, None, "item 'age' has 20 levels, one in each row"),
        (
            GOOD.assign(b=[0, 1.5, 2, 1, 1, 1]),
            {},
            None,
            "item 'b' holds 1.5, which is no whole number.*cut it",
        ),
        (GOOD.assign(b=[0, 1, 0, np.inf, 1, 1]), {}, None, "item 'b' holds inf"),
        (GOOD, {"n_classes": 7}, None, "n_classes=7 is more than the [0-9] different patterns"),
        (GOOD, {}, [1, 1, 1, 1, 1, -1], "`?weights`? has -1 at row 5"),
        (GOOD, {}, [1, 1, 1, 1, np.nan, 1], "`?weights`? has nan at row 4"),
        (GOOD, {}, [1, 2], "a number for each of the 6 rows"),
        (GOOD, {}, np.zeros(6), "all `?weights`? are 0"),
        (GOOD, {}, "n", "no columns called 'n'"),
        (
            GOOD.assign(Count=[3, 1, 2, 1, 1, 5]),
            {},
            None,
            "'Count' has the name of counts.*`?weights='Count'`?.*`?items`?",
        ),
        (GOOD, {"items": ["a", "z"]}, None, "no columns called 'z'"),
        (GOOD, {"items": "a"}, None, "must be a list of columns"),
        (GOOD, {"items": ["a", "a"]}, None, "each once"),
        (MANY.assign(age=MANY["age"].astype(str)), {}, None, "item 'age' has 120 levels"),
        (GOOD[["a"]], {}, None, "two columns or more"),
        (GOOD, {"n_classes": 0}, None, "n_classes"),
        (GOOD, {"n_classes": []}, None, "n_classes is empty"),
        (GOOD, {"n_classes": "three"}, None, "n_classes must be a number"),
        (GOOD, {"method": "mcmc"}, None, "method"),
        (GOOD, {"prior": "uniform"}, None, "prior"),
        (GOOD, {"prior": {"weights": 1.0}}, None, "'weights' and 'items'"),
        (GOOD, {"prior": {"weights": 1.0, "items": 0.0}}, None, "positive"),
        (GOOD, {"prior": {"weights": 1.0, "items": []}}, None, "is empty"),
        (GOOD, {"prior": {"weights": 1.0, "items": "x"}}, None, "items"),
        (GOOD, {"size_prior": 0.5}, None, "size_prior must be"),
        (GOOD, {"size_prior": pb.priors.Uniform(8, 9)}, None, "no mass"),
        (GOOD, {"max_classes": 0}, None, "max_classes"),
        (GOOD, {"tol": -1.0}, None, "tol"),
        (GOOD, {"n_restarts": 0}, None, "n_restarts"),
        (GOOD, {"random_state": -1}, None, "random_state"),
        (GOOD[:0], {}, None, "no rows"),
        (np.zeros(4, dtype=int), {}, None, "shape"),
        ("answers.csv", {}, None, "X must be a table.*pandas.read_csv"),
        (pb.CountTensor.from_frame(GOOD), {}, [1], "takes no `?weights`?"),
    ],
)
def test_bad_input_is_refused(
    data: Any, options: dict[str, Any], weights: Any, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def worked(*_: Any, **__: Any) -> None:
        raise AssertionError("work has begun")

    for name in ("log_evidence", "decompose", "sample_posterior"):
        monkeypatch.setattr(pb.AllocationModel, name, worked)
    with pytest.raises(PolyabayesError, match=says):
        pb.LatentClassAnalysis(**options).fit(data, weights=weights)


def test_rows_that_do_not_fit_are_refused() -> None:
    classes = pb.LatentClassAnalysis(2, random_state=0).fit(GOOD)
    for says, data in (
        ("no column 'b'; the classes were fitted to a, b, c", GOOD.drop(columns="b")),
        ("level '7' at row 3, which the model has", GOOD.assign(a=[0, 1, 1, 7, 0, 0])),
        ("2 columns called 'b'", pd.concat([GOOD, GOOD[["b"]]], axis=1)),
        ("X has 2 columns", GOOD.to_numpy()[:, :2]),
    ):
        with pytest.raises(PolyabayesError, match=says):
            classes.predict(data)
    with pytest.raises(PolyabayesError, match=r"fraction.*data sets of as many rows"):
        classes.residuals(GOOD, weights=np.linspace(0.5, 1, 6))
    extra = classes.predict(GOOD.assign(other=1.5)[["c", "other", "b", "a"]])
    assert extra.tolist() == classes.predict(GOOD).tolist()


@pytest.mark.parametrize(
    ("answers", "code"),
    [
        ([0, 1, 0, -9, 1, 1], "-9"),
        ([1, 2, 5, 9, 1, 2], "9"),
        ([1, 2, 99.0, np.nan, 1, 2], "99"),
        ([1, 2, 1, -1, 2, 1], "-1"),
        (["yes", "no", "N/A", "no", "yes", "no"], "'N/A'"),
        (["yes", "no", " ", "no", "yes", "no"], "' '"),
        ([-1, 1, 0, -1, 1, 0], None),
        ([0, 9, 0, 9, 9, 9], None),
        ([-3, -2, -1, -1, -2, -3], None),
        (pd.Categorical([1, 2, 99, 1, 2, 99]), None),
    ],
)
def test_levels_that_mark_missing_answers_are_warned_of(answers, code, recwarn):
    pb.LatentClassAnalysis(1, random_state=0).fit(GOOD.assign(b=answers))
    told = [str(one.message) for one in recwarn]
    if code is None:
        assert not told
    else:
        assert len(told) == 1
        assert f"may mark missing ones: {code} of 'b'; if so, use missing=[{code}]" in told[0]


def test_counts_that_are_left_out_are_warned_of():
    patterns = GOOD.assign(count=[3, 1, 2, 1, 1, 5])
    classes = pb.LatentClassAnalysis(1, items=list("abc"), random_state=0)
    with pytest.warns(DataWarning, match="'count' is left out and each row counts once.*weights"):
        assert classes.fit(patterns).log_evidence_ == pytest.approx(classes.fit(GOOD).log_evidence_)
    weighted = classes.fit(patterns, weights="count").log_evidence_
    assert weighted < classes.fit(GOOD).log_evidence_
    as_item = pb.LatentClassAnalysis(1, items=["a", "b", "count"], random_state=0).fit(patterns)
    assert as_item.feature_names_in_.tolist() == ["a", "b", "count"]
