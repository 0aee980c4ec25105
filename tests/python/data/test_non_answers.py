"""What is no answer, in tables of answers: named by one look, and dropped only if asked for."""

import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import polyabayes as pb
from helpers.refusals import call_of
from polyabayes.exceptions import DataWarning, InvalidArgumentError
from polyabayes.latent_classes.answers import warn_of_non_answers

CYCLE = np.arange(40)


def each(*levels):
    return [levels[n] for n in CYCLE % len(levels)]


def told_of(frame):
    with warnings.catch_warnings(record=True, action="always") as caught:
        warn_of_non_answers(frame, list(frame.columns))
    return [str(warning.message) for warning in caught]


# A name, answers, what marks missing ones among them, and perhaps answers to another item.
MARKS = Path(__file__).with_name("marks.txt").read_text("utf-8").splitlines()


@pytest.mark.parametrize("row", MARKS, ids=[row.split('"')[1] for row in MARKS])
def test_marks_of_missing_answers_are_named_and_left_out_if_asked_for(row):
    _, values, marks, *others = eval(row)
    columns = enumerate([values, *(others or [each("x", "y")])], 1)
    frame = pd.DataFrame({f"q{number}": own for number, own in columns})
    told = told_of(frame)
    if not marks:
        assert told == []
        return
    assert len(told) == 1
    assert f"use missing={marks!r}" in told[0]
    tensor = pb.CountTensor.from_frame(frame, missing=marks)
    kept = [value for value in pd.Series(values).dropna().unique() if value not in marks]
    assert tensor.labels[0].tolist() == sorted(str(value).removesuffix(".0") for value in kept)
    is_missing = pd.Series(values).isin(marks) | pd.Series(values).isna()
    assert tensor.counts[tensor.coordinates[:, 0] < 0].sum() == is_missing.sum()


def test_a_code_of_one_item_that_is_an_answer_to_another_is_left_out_of_the_one(tmp_path):
    frame = pd.DataFrame({"trust": each(*range(11), 77), "vote": each(1, 2, 7), "q3": CYCLE % 9})
    told = r"use polyabayes.CountTensor.from_frame\(.*missing=\{'trust': \[77\], 'vote': \[7\]\}"
    with pytest.warns(DataWarning, match=told) as caught:
        pb.CountTensor.from_frame(frame)
    call = str(caught[0].message).partition("use ")[2].partition(";")[0]
    missing = eval(call.partition("missing=")[2].removesuffix(")"))
    with pytest.warns(DataWarning, match=told):
        pb.CountTensor.from_frame(frame, missing={"trust": [77]})
    found = eval(call, {"polyabayes": pb, "frame": frame})
    assert [*map(list, found.labels[:2])] == [[str(x) for x in range(11)], ["1", "2"]]
    empty = pd.concat([frame, pd.DataFrame({"trust": [77, 7], "vote": [7, 7]})], ignore_index=True)
    classes = pb.LatentClassAnalysis(2, method="em", random_state=0)
    for marks in (missing, [77, 7]):
        call = call_of(InvalidArgumentError, classes.fit, empty, missing=marks)
        fixed = eval(call, {"frame": empty})
        assert len(fixed) == len(empty) - (1 if marks is missing else 2)
    classes.fit(fixed, missing=missing).save(tmp_path / "classes.safetensors")
    again = pb.load(tmp_path / "classes.safetensors").predict_proba(empty)
    np.testing.assert_array_equal(again, classes.predict_proba(empty))
    assert [*classes.item_probabilities_["vote"]] == ["1", "2"]


def test_other_things_than_answers_are_named_with_the_call():
    items = {"q1": each("a", "b"), "q2": each("c", "d", "e")}
    added = [
        "Q1_3_TEXT",
        "TIME001",
        "DEG_TIME",
        "Q1_Page Submit",
        "groupTime12. Group time",
        "redcap_x",
    ]
    for name in ["ID", "person_id", "Unnamed: 0", "baseline_complete", "Complete?.1", *added]:
        (told,) = told_of(pd.DataFrame({name: CYCLE // 2, **items, "q3": CYCLE % 4}))
        assert f"frame.drop(columns=[{name!r}])" in told
    for name in ("Status", "record", "treatment_complete", "MISSING"):
        assert told_of(pd.DataFrame({name: each("a", "b"), **items})) == []
    (told,) = told_of(pd.DataFrame({"Status": each("a", "b"), "Finished": each(1, 0), **items}))
    assert "frame.drop(columns=['Status', 'Finished'])" in told
    days = pd.date_range("2024-01-01", periods=40)
    remarks = [None] * 36 + ["Great!", "Too loud", "Thanks", "Fine"]
    often_no = {"Anything": [f"Remark {n} of mine" if n % 2 else "no" for n in CYCLE]}
    for own in (often_no, {"Date Created": days.floor("7D")}, {"Done": days.strftime("%d/%m/%Y")}):
        beside = {"lastpage. Last page": each(1, 2), "Others": remarks, **own}
        (told,) = told_of(pd.DataFrame({**items, **beside}))
        assert f"frame.drop(columns={[*beside]})" in told
    assert told_of(pd.DataFrame({**items, "age": each("18-24", "25-34")})) == []
    assert (
        told_of(pd.DataFrame({"1.0": each(0, 1), "1.0.1": each(1, 1, 0), "1.0.2": each(0, 0, 1)}))
        == []
    )
    few = ["The coffee is great", "More desks and chairs please"]
    (told,) = told_of(pd.DataFrame({**items, "Anything else?": [None, *few, "No", *[None] * 36]}))
    assert "frame.drop(columns=['Anything else?'])" in told
    asked = pd.DataFrame(items).assign(ballot=each("a", "b", "c"))
    asked.loc[CYCLE % 3 == 0, [*items]] = None
    with pytest.warns(DataWarning, match="14 rows have no answer but to 'ballot'"):
        pb.LatentClassAnalysis(2, method="em").fit(asked)
    with pytest.raises(
        InvalidArgumentError, match="if 'wtssps' holds weights, use weights='wtssps'"
    ):
        pb.LatentClassAnalysis(2).fit(pd.DataFrame({**items, "wtssps": CYCLE / 7}))
    assert len(told_of(pd.DataFrame({"start": each("a", "b"), "end": each(1, 0)}))) == 1
    long = pd.DataFrame(
        {"respondent": CYCLE // 4, "question": each(*"abcd"), "answer": each("x", "y", "x")}
    )
    (told,) = told_of(long)
    pivot = "frame.pivot(index=['respondent'], columns='question', values='answer')"
    assert pivot in told
    assert eval(pivot, {"frame": long}).shape == (10, 4)
    people = pd.DataFrame({"value": each("x", "y", "x"), "who": CYCLE // 3, "what": CYCLE % 3})
    (told,) = told_of(people)
    assert "frame.pivot(index=['who'], columns='what', values='value')" in told
    second = {"q1": ["What is?", '{"ImportId":"QID0"}'], "q2": ["How?", '{"ImportId":"QID1"}']}
    survey = pd.concat([pd.DataFrame(second), pd.DataFrame(items)], ignore_index=True)
    (told,) = told_of(survey)
    assert "frame.drop(index=[0, 1])" in told
    assert told_of(survey.drop(index=[0, 1])) == []
    few = survey.head(5)
    with pytest.warns(DataWarning, match=r"frame.drop\(index=\[0, 1\]\)"):
        pb.CountTensor.from_frame(few)
    options = pd.DataFrame({"tea": each("Tea", None), "q": ["Response", *each("Yes", "No")[1:]]})
    assert "frame.drop(index=[0])" in told_of(options)[0]
    options = options.rename(columns={"tea": "Drinks"}).assign(x=each("Milk", None))
    options = options[["Drinks", "x", "q"]].rename(columns={"x": "Unnamed: 1"})
    names = "{'Drinks': 'Drinks: Tea', 'Unnamed: 1': 'Drinks: Milk'}"
    call = f"frame.drop(index=[0]).rename(columns={names})"
    assert call in told_of(options)[0]
    assert [*eval(call, {"frame": options})] == ["Drinks: Tea", "Drinks: Milk", "q"]
    assert "rename" not in told_of(options.assign(**options[["Unnamed: 1"]].notna()))[0]
    assert pb.CountTensor.from_frame(few.drop(index=[0, 1])).shape == (2, 3)


@pytest.mark.parametrize("sep", [";", "; ", ", ", ",", "|", " ", "\n", "\r\n"])
def test_several_choices_in_an_answer_are_named_with_the_call_that_divides_them(sep):
    chosen = each("red", None, "blue", f"red{sep}blue", "green")
    frame = pd.DataFrame({"hue": chosen, "q": each("x", "y", "z")})
    (told,) = told_of(frame)
    tensor = pb.CountTensor.from_frame(eval(told.partition("column by ")[2], {"frame": frame}))
    assert tensor.axes == ("q", "hue__blue", "hue__green", "hue__red")
    assert tensor.marginal("hue__red").counts.tolist() == [8, 16, 16]
    beside = frame.join(frame["hue"].str.get_dummies(sep).add_prefix("hue/"))
    (told,) = told_of(beside)
    left = eval(told.partition("answers by ")[2], {"frame": beside})
    assert [*left] == ["q", "hue/blue", "hue/green", "hue/red"]
    assert told_of(frame.assign(hue=each("Yes, a lot", "Yes, a little", "No"))) == []
    assert told_of(frame.assign(hue=each("good", "very good", "bad", "very bad"))) == []
    assert "by ' ': make" in told_of(frame.assign(hue=each("1", "2", "1 3", "2 3")))[0]


def test_titles_and_merged_cells_of_spreadsheets_are_told_with_the_call_that_reads_them():
    cells = [["Sales"], [None], ["id", "tea", "mug"], ["A", 2, 3], ["B", 0, 5]]
    two = pd.MultiIndex.from_tuples([(name, "Unnamed: 0_level_1") for name in cells[2]])
    for rows, names in ((cells, ["Sales of 2024", "Unnamed: 1", "Unnamed: 2"]), (cells[3:], two)):
        frame = pd.DataFrame(rows, columns=names)
        corpus = pb.Corpus(eval(call_of(InvalidArgumentError, pb.Corpus, frame), {"frame": frame}))
        assert [*corpus.ids, *corpus.counts.toarray().ravel()] == ["A", "B", 2, 3, 0, 5]
    frame = pd.DataFrame({"region": ["N", None, "S", None, None], "q": list("xyxyx")})
    (told,) = told_of(frame)
    assert [*eval(told.partition(" use ")[2], {"frame": frame})["region"]] == list("NNSSS")


def test_a_last_row_of_averages_or_totals_is_named_with_the_call_that_leaves_it_out():
    marks = pd.DataFrame({"q1": each("0.00", "1.00", "-"), "q2": each("0.0", "2.0"), "q3": "a"})
    points = pd.DataFrame({"q1": each(0, 1, 2), "q2": each(3, 0)})
    for rows, last in ((marks, ["0.57", "1.02", "b"]), (points, [39, 60]), (points, [0.9, 1.5])):
        table = pd.concat([rows, pd.DataFrame([last], ["Mean"], rows.columns)])
        told = told_of(table)
        assert "the last row, 'Mean', looks like averages" in told[0]
        assert not any("last row" in x for x in told_of(table[::-1]) + told_of(rows))
    call = call_of(InvalidArgumentError, pb.LatentClassAnalysis(2).fit, table)
    pd.testing.assert_frame_equal(eval(call, {"frame": table}), table[:-1])


def test_two_lines_of_header_are_named_before_the_columns_that_they_leave_without_answers():
    drinks = {"Drinks": ["Tea", *["Tea", None] * 6], "Unnamed: 1": ["Milk", *[None, "Milk"] * 6]}
    survey = pd.DataFrame({**drinks, "Sex": ["Response", *["f", "m", "f"] * 4]})
    call = call_of(InvalidArgumentError, pb.LatentClassAnalysis(2).fit, survey)
    assert [*eval(call, {"frame": survey})] == ["Drinks: Tea", "Drinks: Milk", "Sex"]


def test_numbers_of_many_levels_are_named_as_measured():
    rows = pd.DataFrame({"age": np.arange(300) % 47, "q": np.arange(300) % 2})
    with pytest.warns(DataWarning, match="'age' are more than 21 numbers.* of items$"):
        pb.LatentClassAnalysis(1, method="em").fit(rows)
    scales = {"A1": each(1, 2, 3), "A2": each(3, 2, 1), "chosen": each(0, 1, 2, 3)}
    assert told_of(pd.DataFrame(scales)) == []


def test_choices_are_not_divided_within_brackets():
    chat, calls = "Chat (Slack, Teams)", "Calls (Zoom, Teams)"
    both = each(f"{chat}, Email", "Email", calls, chat, f"Email, {calls}", f"{chat}, {calls}")
    frame = pd.DataFrame({"by": both, "q": each("x", "y", "z")})
    (told,) = told_of(frame)
    found = eval(told.rpartition("a column by ")[2], {"frame": frame})
    assert [*found] == ["q", f"by: {calls}", f"by: {chat}", "by: Email"]


def test_what_repeats_other_columns_is_named_with_the_call(tmp_path):
    frame = pd.DataFrame({"q1": each(0, 1, 2), "q2": each(1, 0), "q3": each(2, 2, 0, 1, 3)})
    graded = frame.assign(views=each(13, 12, 15), **{"Grade/6.00": frame.sum(axis=1)})
    (told,) = told_of(graded[["Grade/6.00", "q2", "views", "q1", "q3"]])
    assert "'Grade/6.00' may be sums" in told
    assert "frame.drop(columns=['Grade/6.00'])" in told
    choices = {"a": each(1, 0), "b": each(0, 1, 1), "c": each(1, 1, 0, 1)}
    beside = pd.DataFrame({f"which/{x}": own for x, own in choices.items()})
    chosen = [
        " ".join(x for x in "abc" if own[f"which/{x}"]) or None for _, own in beside.iterrows()
    ]
    told = told_of(beside.assign(which=[*chosen[:-1], "-99"]))
    assert told[0].endswith("frame.drop(columns='which')")
    twice = pd.DataFrame({"Sex Code": ["F1", "M1"] * 6, "Sex": ["f", "m"] * 6})
    twice = twice.assign(Age=[x for x in "abcdef" for _ in "fm"], n=range(12))
    twice.to_csv(tmp_path / "x.csv", index=False)
    for door, table in ((pb.read_tensor, tmp_path / "x.csv"), (pb.CountTensor.from_frame, twice)):
        with pytest.warns(DataWarning, match="'Sex', 'Sex Code' say the same in every row") as told:
            door(table, counts="n")
        assert str(told[0].message).endswith("axes=['Sex', 'Age'], counts='n'")
    many = frame.loc[[*frame.index] * 2].assign(code=lambda rows: 7 - rows["q3"])
    with pytest.warns(DataWarning, match=r"'code' from 'q3'.*columns=\['code'\]"):
        pb.LatentClassAnalysis(2, method="em").fit(many)
