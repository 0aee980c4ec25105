import re
from dataclasses import replace
from functools import wraps
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import polyabayes as pb
from helpers.command_line import assert_one_error_line, run, table, train
from helpers.small_models import known_lda
from polyabayes import cli
from polyabayes.cli import documents
from polyabayes.exceptions import Interrupted

K, WORDS = 3, [f"w{i}" for i in range(40)]
N_TEST = 40


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return train(tmp_path_factory.mktemp("cli"))


def test_fit_pfa_passes_its_options(folder, tmp_path):
    arguments = f"fit pfa {folder / 'train.npz'} -k {K} --prior gamma --max-iter 30 --burn-in 10"
    status = run(*arguments.split(), "--seed", 5, "--jobs", 1, "-o", tmp_path / "p.safetensors")
    assert status == 0
    made, expected = pb.load(tmp_path / "p.safetensors"), pb.load(folder / "pfa.safetensors")
    np.testing.assert_array_equal(made.components_, expected.components_)
    np.testing.assert_array_equal(made.shape_, expected.shape_)
    assert made.vocabulary_ is not None
    assert made.vocabulary_.tolist() == WORDS


def test_only_what_the_user_gave_reaches_the_api(folder, tmp_path, monkeypatch):
    seen = []

    @wraps(pb.log_likelihood)
    def record(model, documents, **options):
        seen.append(options)
        return pb.likelihood.log_likelihood(model, documents)

    monkeypatch.setattr(pb, "log_likelihood", record)
    base = ["score", folder / "pfa.safetensors", folder / "test.npz", "-o", tmp_path / "s.csv"]
    assert run(*base) == 0
    options = "--method smc --event sequence --given-length --particles 3 --samples 4 "
    options += "--replicates 5 --target-std-error 0.5 --unseen drop --budget 1e8 --seed 6 --jobs 2"
    assert run(*base, *options.split(), "--progress") == 0
    assert run(*base, "--no-given-length") == 0
    names = "method event given_length n_particles n_samples n_replicates target_std_error unseen"
    names += " budget random_state n_jobs progress"
    values = ("smc", "sequence", True, 3, 4, 5, 0.5, "drop", 1e8, 6, 2, True)
    given = dict(zip(names.split(), values, strict=True))
    assert seen == [{}, given, {"given_length": False}]


def test_csv_and_parquet_hold_the_result(folder, tmp_path, capsys):
    model, test = pb.load(folder / "pfa.safetensors"), pb.read_corpus(folder / "test.npz")
    expected = pb.log_likelihood(model, test, random_state=2)
    for name in ("s.csv", "s.parquet"):
        base = ["score", folder / "pfa.safetensors", folder / "test.npz", "--seed", 2]
        assert run(*base, "-o", tmp_path / name) == 0
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "s.parquet"), expected.to_frame())
    rows = table(tmp_path / "s.csv")
    assert [row["document"] for row in rows] == test.ids.tolist()
    assert list(rows[0]) == list(expected.to_frame().columns)
    assert [float(row["log_likelihood"]) for row in rows] == expected.values.tolist()
    captured = capsys.readouterr()
    assert captured.out == ""
    assert f"total           {expected.total:,.6f} nats" in captured.err
    assert f"documents       {N_TEST} (exact {N_TEST})" in captured.err
    assert f"nats per token  {expected.nats_per_token:.6f}" in captured.err
    assert "perplexity" not in captured.err
    assert re.search(r"^event +counts$", captured.err, re.MULTILINE)


def test_ldac_may_lack_the_last_words_of_the_model(folder, tmp_path, capsys):
    (tmp_path / "short.ldac").write_text("2 0:1 3:2\n0\n")
    assert run("score", folder / "lda.safetensors", tmp_path / "short.ldac", "-o", "-") == 0
    counts = np.zeros((2, len(WORDS)), dtype=int)
    counts[0, [0, 3]] = 1, 2
    expected = pb.log_likelihood(pb.load(folder / "lda.safetensors"), counts)
    rows = table(capsys.readouterr().out)
    assert [float(row["log_likelihood"]) for row in rows] == expected.values.tolist()
    (tmp_path / "long.ldac").write_text("1 40:1\n")
    status = run("score", folder / "lda.safetensors", tmp_path / "long.ldac", "-o", "-")
    assert_one_error_line(status, capsys.readouterr().err, "ids below 40, the size of")


def test_unseen_words_can_be_dropped(folder, tmp_path, capsys):
    pb.write_corpus(pb.Corpus([[1, 2]], ["w0", "new"]), tmp_path / "new.npz")
    base = ["score", folder / "lda.safetensors", tmp_path / "new.npz", "-o", "-"]
    assert run(*base, "--unseen", "drop") == 0
    captured = capsys.readouterr()
    assert "unseen words    2 tokens left out" in captured.err
    assert table(captured.out)[0]["n_tokens"] == "1"


def test_warnings_are_one_line(folder, capsys):
    base = ["score", folder / "lda.safetensors", folder / "test.npz", "-o", "-"]
    assert run(*base, "--method", "direct", "--samples", 1, "--seed", 0) == 0
    first, *summary = capsys.readouterr().err.splitlines()
    assert first.startswith("polyabayes: warning: documents whose draws vary too much ")
    assert not any("arning" in line for line in summary)


def test_other_warnings_keep_their_form(capsys):
    cli._show_warning(None, "look out", RuntimeWarning, "file.py", 3)
    assert "file.py:3: RuntimeWarning: look out" in capsys.readouterr().err


def test_impossible_documents_score_minus_infinity(tmp_path, capsys):
    known_lda(1.0, [[0.5, 0.5, 0.0]]).save(tmp_path / "m.safetensors")
    pb.write_corpus([[1, 0, 0], [0, 0, 1]], tmp_path / "c.npz")
    assert run("score", tmp_path / "m.safetensors", tmp_path / "c.npz", "-o", "-") == 0
    captured = capsys.readouterr()
    assert [row["log_likelihood"] for row in table(captured.out)] == ["-0.6931471805599453", "-inf"]
    assert "polyabayes: warning: documents of probability zero: 1," in captured.err
    assert "total           -inf" in captured.err


def test_compare_prints_the_table_and_draws_it(folder, tmp_path, capsys):
    models = [folder / "lda.safetensors", folder / "pfa.safetensors"]
    options = ["--on", folder / "test.npz", "--seed", 3, "--event", "sequence"]
    assert run("compare", *models, *options, "--plot", tmp_path / "c.svg") == 0
    expected = pb.compare(
        {path.stem: pb.load(path) for path in models},
        pb.read_corpus(folder / "test.npz"),
        event="sequence",
        random_state=3,
    )
    captured = capsys.readouterr()
    assert captured.out == f"{expected}\n"
    assert captured.err.splitlines()[-1] == f"polyabayes: wrote {tmp_path / 'c.svg'}"
    assert "<svg" in (tmp_path / "c.svg").read_text()


@pytest.mark.parametrize(
    ("paths", "names"),
    [
        (["x/a.safetensors", "b.safetensors"], ["a", "b"]),
        (["x/m.safetensors", "y/m.safetensors", "n.safetensors"], ["x/m", "y/m", "n"]),
        (["m.safetensors"] * 3, ["m", "m (2)", "m (3)"]),
    ],
)
def test_names_of_models_differ(paths, names):
    assert documents._model_names(paths) == names


def test_partial_scores_are_null_in_parquet(folder, tmp_path, monkeypatch):
    model, documents = pb.load(folder / "lda.safetensors"), pb.read_corpus(folder / "test.npz")
    whole = pb.log_likelihood(model, documents)
    values = np.where(np.arange(N_TEST) < 2, whole.values, np.nan)
    partial = replace(whole, values=values)

    def stop(*_, **__):
        raise Interrupted("2 of 40 documents are scored", partial)

    monkeypatch.setattr(pb, "log_likelihood", stop)
    base = ["score", folder / "lda.safetensors", folder / "test.npz"]
    assert run(*base, "-o", tmp_path / "s.parquet") == 130
    column = pd.read_parquet(tmp_path / "s.parquet", dtype_backend="pyarrow")["log_likelihood"]
    assert column.isna().tolist() == [False] * 2 + [True] * (N_TEST - 2)


def test_ctrl_c_before_there_is_anything_is_one_line(monkeypatch, capsys, tmp_path):
    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(pb, "read_corpus", stop)
    assert run("fit", "lda", "c.npz", "-k", 2, "-o", tmp_path / "m.safetensors") == 130
    assert capsys.readouterr().err == (
        "polyabayes: interrupted before the first sweep: there is no model, and "
        f"{tmp_path / 'm.safetensors'} is not written\n"
    )
    assert run("choose", "lda", "c.npz") == 130
    assert capsys.readouterr().err == "polyabayes: interrupted\n"


def test_the_demo_writes_what_it_says(tmp_path, monkeypatch, capsys):
    make = pb.datasets.make_lda_corpus
    small = pb.Corpus(make(120, 50, 4, document_length=15, random_state=9).corpus.counts, None)
    monkeypatch.setattr(pb.datasets, "load_python_docs", lambda: small)
    monkeypatch.setattr(
        pb.datasets,
        "make_lda_corpus",
        lambda **options: make(**{**options, "n_documents": 400, "document_length": 30}),
    )
    monkeypatch.chdir(tmp_path)
    assert run("demo", "--seed", 4, "--jobs", 1) == 0
    output = capsys.readouterr().out
    written = output.partition("written:\n")[2].split()
    there = (tmp_path / "demo-output").iterdir()
    assert sorted(written) == sorted(str(path.relative_to(tmp_path)) for path in there)
    names = {Path(name).name for name in written}
    assert {"scores.csv", "comparison.png", "topics.png", "lda-10.safetensors"} <= names
    assert isinstance(pb.load("demo-output/pfa-10.safetensors"), pb.PoissonFactorAnalysis)
    assert len(table(Path("demo-output/scores.csv"))) == 24
    behind = [
        float(number)
        for number in re.findall(
            r"^(?:lda|pfa)  .* (-?\d\.\d{4})  +\d\.\d{4}  ", output, re.MULTILINE
        )
    ]
    assert len(behind) == 2
    assert all(-0.01 < value < 0.3 for value in behind)
