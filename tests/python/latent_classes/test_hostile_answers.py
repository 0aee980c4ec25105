"""What is no set of answers is refused before any work, with the column and the remedy."""

from functools import cache
from unittest.mock import Mock, patch

import numpy as np
import pandas as pd
import pytest

import polyabayes as pb
from helpers.refusals import call_of
from polyabayes.exceptions import DataWarning, InvalidArgumentError, PolyabayesError

GOOD = pd.DataFrame({"a": [0, 1, 0, 1, 0, 1], "b": [1, 1, 0, 0, 1, 0], "c": [0, 0, 1, 1, 0, 1]})
EMPTY_ROWS = GOOD.astype("Int64").copy()
EMPTY_ROWS.loc[[2, 4]] = pd.NA
MANY = pd.DataFrame({"a": np.arange(120) % 2, "age": np.arange(120)})
CLASSES = cache(lambda: pb.LatentClassAnalysis(2, random_state=0).fit(GOOD))


def fit(data, weights=None, **options):
    """Classes, whose arguments are refused before any work."""
    begun = Mock(side_effect=AssertionError("work has begun"))
    work = dict.fromkeys(("log_evidence", "decompose", "sample_posterior"), begun)
    with patch.multiple(pb.AllocationModel, **work):
        return pb.LatentClassAnalysis(**options).fit(data, weights=weights)


def test_columns_of_rows_are_matched_by_name():
    classes = CLASSES()
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
    assert len(told) == (code is not None)
    assert all(
        f"{code} of 'b'; if so, use classes.fit(frame, missing=[{code}]);" in x for x in told
    )


def test_blanks_of_options_that_were_not_chosen_are_answers_by_the_call():
    frame = GOOD.assign(b=["tea", None] * 3, c=[None, 1.0] * 3)
    classes = pb.LatentClassAnalysis(1, random_state=0)
    call = call_of(InvalidArgumentError, classes.fit, frame)
    fitted = classes.fit(eval(call, {"frame": frame}))
    assert set(fitted.predict(GOOD.assign(b=True, c=False))) == {0}


def test_items_that_answer_alike_in_every_row_are_named():
    many = pd.concat([GOOD] * 9, ignore_index=True).assign(d=lambda rows: rows["b"])
    letters, row = np.array(list("ABCD")), np.arange(40)
    quiz = pd.DataFrame({f"q{k}": letters[row // k % 4] for k in (1, 3, 7)})
    scored = quiz.join(quiz.eq("A").add_suffix(".points")).join(quiz.eq("A").add_suffix(".mark"))
    picks = pd.Series(["tea mug", "mug", "tea"])[row // 5 % 3].reset_index(drop=True)
    chosen = scored.join(picks.str.get_dummies(" ").add_prefix("pick/")).assign(pick=picks)
    options = [*quiz, "pick/mug", "pick/tea"]
    classes = pb.LatentClassAnalysis(1, random_state=0)
    for table, kept in ((many, ["a", "b"]), (scored, [*quiz]), (chosen, options)):
        with pytest.warns(DataWarning, match="follow from others|several") as caught:
            classes.fit(table)
        assert f"items={kept}" in (told := str(caught[-1].message))
        assert [*eval(told.rpartition("use ")[2], {"frame": table})] == kept
    # A single one in few rows may be by chance.
    classes.fit(scored[["q1", "q3", "q1.mark"]])
    # Nobody may have answered an item in the rows that are looked at.
    long = scored[["q1", "q3"]].loc[np.arange(8_000) % 40].reset_index(drop=True)
    classes.fit(long.assign(rare=pd.Series([0.0, 1.0], [1, 3])))


def test_what_an_export_adds_is_refused_together():
    export = pd.concat([GOOD] * 3, ignore_index=True).assign(lang="en", name=range(18), seed=GOOD.a)
    export["day"] = pd.date_range("2024-01-01", periods=18).floor("7D")
    with pytest.warns(DataWarning, match="'seed', 'day'"), pytest.raises(PolyabayesError) as e:
        pb.LatentClassAnalysis(1).fit(export)
    call = str(e.value).partition("out by ")[2].partition(";")[0]
    assert [*eval(call, {"frame": export})] == ["a", "b", "c"]


def test_counts_that_are_left_out_are_warned_of():
    patterns = GOOD.assign(count=[3, 1, 2, 1, 1, 5])
    classes = pb.LatentClassAnalysis(1, items=list("abc"), random_state=0)
    with pytest.warns(DataWarning, match="'count' is left out and each row counts once.*weights"):
        assert classes.fit(patterns).log_evidence_ == pytest.approx(classes.fit(GOOD).log_evidence_)
    weighted = classes.fit(patterns, weights="count").log_evidence_
    assert weighted < classes.fit(GOOD).log_evidence_
    as_item = pb.LatentClassAnalysis(1, items=["a", "b", "count"], random_state=0).fit(patterns)
    assert as_item.feature_names_in_.tolist() == ["a", "b", "count"]
