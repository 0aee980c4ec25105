import numpy as np
import pandas as pd
import pytest

import polyabayes as pb
from helpers.command_line import run


@pytest.fixture
def survey(tmp_path):
    generator = np.random.default_rng(0)
    of = generator.choice(2, size=60, p=[0.6, 0.4])
    yes = generator.random((60, 4)) < np.where(of, 0.9, 0.1)[:, None]
    frame = pd.DataFrame(np.where(yes, "yes", "no"), columns=["q1", "q2", "q3", "other"])
    frame.loc[::9, "q2"] = None
    frame["n"] = 1 + np.arange(60) % 3
    frame.to_csv(tmp_path / "survey.csv", index=False)
    return tmp_path / "survey.csv"


def test_classes_are_those_of_the_api(survey, tmp_path, capsys):
    names = ("rows.csv", "profiles.csv", "classes.safetensors", "classes.png")
    rows, profiles, model, picture = (tmp_path / name for name in names)
    options = "--items q1,q2,q3 --weights n --seed 0 --classes 1,2 --prior jeffreys"
    files = ["-o", rows, "--profiles", profiles, "--save", model, "--plot", picture]
    assert run("classes", survey, *options.split(), *files) == 0
    frame = pd.read_csv(survey)
    expected = pb.LatentClassAnalysis(
        [1, 2], items=["q1", "q2", "q3"], prior="jeffreys", random_state=0
    ).fit(frame, weights="n")
    output = capsys.readouterr()
    assert str(expected.choice_) in output.out
    assert "q3 = yes" in output.out
    assert f"wrote {model}" in output.err
    found = pd.read_csv(rows)
    assert found.shape == (60, 4)
    assert found["class"].tolist() == expected.predict(frame).tolist()
    shares = found[["class_0", "class_1"]].to_numpy()
    assert shares == pytest.approx(expected.predict_proba(frame), abs=1e-12)
    found = pd.read_csv(profiles).probability.to_numpy()
    assert found == pytest.approx(expected.profiles()["probability"])
    assert pb.load(model).class_weights_.tolist() == expected.class_weights_.tolist()
    assert picture.stat().st_size > 1000


def test_effects_of_covariates_are_printed(survey, capsys):
    frame = pd.read_csv(survey).drop(columns="n")
    frame["age"] = 30.0 + (7 * np.arange(60)) % 45
    frame.to_csv(survey, index=False)
    options = ["--items", "q1,q2,q3", "--classes", "2", "--formula", "~ age", "--seed", "0"]
    assert run("classes", survey, *options) == 0
    output = capsys.readouterr().out
    options = {"items": ["q1", "q2", "q3"], "formula": "~ age", "random_state": 0}
    found = pb.LatentClassAnalysis(2, **options).fit(frame)
    assert str(found.effects()) in output
    assert "age" in output


def test_none_is_an_answer_and_na_is_a_missing_one(survey, capsys):
    frame = pd.read_csv(survey).replace({"q3": {"no": "None"}})
    frame.loc[::7, "q3"] = "NA"
    frame.to_csv(survey, index=False)
    assert run("classes", survey, "--items", "q1,q3", "--method", "em", "--classes", "1") == 0
    shares = frame["q3"][frame["q3"] != "NA"].value_counts(normalize=True)
    lines = [line for line in capsys.readouterr().out.splitlines() if "q3 = " in line]
    assert lines == [f"{shares[answer]:.3f}  q3 = {answer}" for answer in ("None", "yes")]


def test_tables_go_to_standard_output(survey, capsys):
    options = ["--items", "q1,q2", "--method", "em", "--classes", "2"]
    assert run("classes", survey, *options, "-o", "-") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "row,class,class_0,class_1"
    assert len(lines) == 61


def test_a_table_of_mplus_has_no_header_but_frequencies(tmp_path, capsys):
    rows = tmp_path / "patterns.dat"
    rows.write_text("1 1 1 20\n0 0 0 18\n1 9 1 5\n0 NA 0 3\n2 1 2 4\n")
    given = ["--columns", "u1,u2,u3,n", "--sep", " ", "--weights", "n", "--missing", "9,u1=2"]
    assert run("classes", rows, *given, "--classes", 2, "--method", "em", "--seed", 0) == 0
    frame = pd.read_csv(rows, sep=" ", names=["u1", "u2", "u3", "n"])
    frame = frame.mask(frame.isin({"u1": [2], "u2": [9]}))
    expected = pb.LatentClassAnalysis(2, method="em", random_state=0).fit(frame, weights="n")
    weights = "  ".join(f"{weight:.3f}" for weight in expected.class_weights_)
    output = capsys.readouterr().out
    assert f"weights  {weights}" in output
    assert ("u1 = 2" in output, "u2 = 9" in output, "u3 = 2" in output) == (False, False, True)
    assert run("classes", rows, *given, "--missing", "9,u0=2") == 2
    assert "--missing u0=2: no item has this answer" in capsys.readouterr().err
    # A name for each column: pandas takes columns without one for names of the rows.
    given[1] = "u2,u3,n"
    assert run("classes", rows, *given) == 2
    assert "names 3 columns" in capsys.readouterr().err


def test_a_survey_in_another_encoding_is_read_by_the_option_that_is_told(tmp_path, capsys):
    survey = tmp_path / "survey.csv"
    survey.write_bytes("città,età\nsì,no\nno,sì\nsì,sì\n".encode("cp1252"))
    assert run("classes", survey, "--classes", "1") == 2
    assert "try --encoding cp1252 ('città" in capsys.readouterr().err
    assert run("classes", survey, "--classes", "1", "--encoding", "cp1252") == 0
    assert "città = sì" in capsys.readouterr().out
