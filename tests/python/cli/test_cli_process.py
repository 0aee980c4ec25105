"""The command line as a process: streams, signals and exit status."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import polyabayes as pb
from helpers.command_line import table, train
from helpers.small_models import known_lda

ENVIRONMENT = {**os.environ, "MPLBACKEND": "Agg"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return train(tmp_path_factory.mktemp("shell"))


def shell(*arguments, stdin=b"", stdout=subprocess.PIPE, cwd=None):
    return subprocess.run(
        [sys.executable, "-m", "polyabayes", *map(str, arguments)],
        input=stdin,
        stdout=stdout,
        stderr=subprocess.PIPE,
        cwd=cwd,
        env=ENVIRONMENT,
        timeout=60,
        check=False,
    )


def test_from_the_shell(folder, tmp_path):
    """Fit and score, with standard input and output, equal the API bit by bit."""
    fitted = shell(
        *("fit", "lda", folder / "train.ldac", "--vocabulary", folder / "train.vocab", "-k", 3),
        *("--max-iter", 30, "--seed", 5, "-o", "a.safetensors"),
        cwd=tmp_path,
    )
    assert fitted.returncode == 0
    assert fitted.stdout == b""
    first, last = fitted.stderr.decode().splitlines()
    assert first == "polyabayes: training on 160 documents, 40 words, 3,200 tokens"
    assert re.fullmatch(r"polyabayes: 30 sweeps in \d+\.\d s; wrote a.safetensors", last)

    scored = shell(
        *("score", tmp_path / "a.safetensors", "-", "-o", "-", "--seed", 1, "--method", "smc"),
        stdin=(folder / "test.ldac").read_bytes(),
    )
    assert scored.returncode == 0
    model, test = pb.load(folder / "lda.safetensors"), pb.read_corpus(folder / "test.npz")
    expected = pb.log_likelihood(model, test, "smc", random_state=1)
    rows = table(scored.stdout.decode())
    assert [float(row["log_likelihood"]) for row in rows] == expected.values.tolist()
    assert [float(row["std_error"]) for row in rows] == expected.std_errors.tolist()


def interrupted(arguments, pattern):
    """Send Ctrl-C once the progress bar matches; status and last line."""
    # A shell may start its background jobs deaf to Ctrl-C, and they pass that on.
    code = (
        "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); "
        "from polyabayes.cli import main; sys.exit(main())"
    )
    command = [sys.executable, "-c", code, *arguments.split()]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, env=ENVIRONMENT)
    try:
        assert process.stderr is not None
        seen = b""
        while not re.search(pattern, seen):
            piece = os.read(process.stderr.fileno(), 1000)
            assert piece, seen
            seen += piece
        process.send_signal(signal.SIGINT)
        seen += process.stderr.read()
        status = process.wait(timeout=20)
        return status, seen.decode().splitlines()[-1]
    finally:
        process.kill()
        process.wait()
        if process.stderr is not None:
            process.stderr.close()


@pytest.fixture(scope="module")
def long_work(tmp_path_factory):
    folder = tmp_path_factory.mktemp("long")
    data = pb.datasets.make_lda_corpus(500, 200, 10, document_length=200, random_state=0)
    pb.write_corpus(data.corpus, folder / "c.npz")
    known_lda(data.doc_topic_prior, data.topic_word).save(folder / "m.safetensors")
    return folder


def test_ctrl_c_leaves_the_model_reached(long_work, tmp_path):
    output = tmp_path / "m.safetensors"
    status, line = interrupted(
        f"fit lda {long_work / 'c.npz'} -k 20 --max-iter 1000000 --progress -o {output}",
        rb" [1-9]\d*/1000000 ",
    )
    assert status == 130
    assert re.match(r"polyabayes: interrupted: stopped after [\d,]+ of 1,000,000 sweeps; ", line)
    model = pb.load(output)
    assert 0 < model.n_iter_ < 1_000_000
    np.testing.assert_allclose(model.components_.sum(axis=1), 1.0, rtol=1e-12)
    assert list(tmp_path.iterdir()) == [output]


def test_ctrl_c_leaves_the_scores_reached(long_work, tmp_path):
    output = tmp_path / "s.csv"
    # The first documents are through in a moment, the last after hours.
    status, line = interrupted(
        f"score {long_work / 'm.safetensors'} {long_work / 'c.npz'} --method smc "
        f"--particles 20000 --budget 1e15 --progress -o {output}",
        rb" [1-9]\d*/500 ",
    )
    assert status == 130
    found = re.match(r"polyabayes: interrupted: (\d+) of 500 documents are scored, the", line)
    assert found
    rows = table(output)
    assert len(rows) == 500
    reached = [row for row in rows if row["log_likelihood"]]
    assert 0 < len(reached) == int(found[1]) < 500
    assert all(float(row["log_likelihood"]) < 0 and row["method"] == "smc" for row in reached)
    blank = [row for row in rows if not row["log_likelihood"]]
    assert all(row["std_error"] == row["n_eff"] == row["method"] == "" for row in blank)
    assert all(row["n_tokens"] == "200" for row in rows)


def test_a_reader_that_goes_away_is_no_error(folder):
    receive, send = os.pipe()
    os.close(receive)
    try:
        done = shell("score", "lda.safetensors", "test.npz", "-o", "-", stdout=send, cwd=folder)
    finally:
        os.close(send)
    assert done.returncode == 141
    assert done.stderr == b""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_a_full_disk_is_one_line(folder):
    with Path("/dev/full").open("wb") as full:
        done = shell("compare", "lda.safetensors", "--on", "test.npz", stdout=full, cwd=folder)
    assert done.returncode == 2
    line = done.stderr.decode().splitlines()[-1]
    assert line == "polyabayes: error: cannot write the output: No space left on device"
    assert b"Exception" not in done.stderr
    for arguments in (["--help"], ["fit", "--help"], ["--version"]):
        with Path("/dev/full").open("wb") as full:
            assert shell(*arguments, stdout=full).returncode == 2


@pytest.mark.skipif(os.name == "nt", reason="needs a shell")
def test_a_closed_output_is_a_pipe_without_reader(folder):
    command = f"{sys.executable} -m polyabayes score lda.safetensors test.npz >&-"
    done = subprocess.run(["sh", "-c", command], cwd=folder, capture_output=True, env=ENVIRONMENT)
    assert (done.returncode, done.stderr) == (141, b"")
