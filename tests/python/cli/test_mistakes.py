"""Mistakes of the user: status 2 and one line that says which, in the words of the options."""

import shlex
from pathlib import Path

import numpy as np
import pytest

import polyabayes as pb
from helpers.command_line import assert_one_error_line, run, train
from polyabayes import cli

ROWS = (Path(__file__).parent / "mistakes.txt").read_text("utf-8").splitlines()
FILES = {
    "bad.ldac": "1 0:1\n1 x:1\n",
    "one.ldac": "1 0:2\n",
    "survey.csv": "q1,q2,q3\n" + 9 * "yes,no,yes\nno,no,no\n",
    "fruit.csv": "a,b\nApple,\n,Pear\nApple,Pear\n",
    "title.csv": "Which fruit?,,,\nid,a,b,c\n1,Apple,,Fig\n2,,Pear,Fig\n",
    "open.csv": 'a,b\n"1,2\n',
    "catalogue.txt": "gene;S1;S2\nA;10;2\nB;5;7\n",
    "triplets.txt": "1 1 2\n1 2 3\n2 2 1\n",
    "latin.txt": "café\n",
    "reviews.csv": "id,review,stars\na,good cat food,5\nb,bad dog food,1\n",
    "two.csv": "a,b\nthe urn,a ball\nan urn,the ball\n",
    "urns.csv": "who,n_urns\nann,5\nbob,1\n",
    "turned.mtx": "%%MatrixMarket matrix coordinate integer general\n3 2 3\n1 1 4\n3 2 5\n2 2 1\n",
    "w.vocab": "a\nb\nc\n",
    "empty.json": "{}",
    "open.json": "[",
    **{name: name for name in ("scores.csv", "words.ldac", "a.vocab", "here/table.csv")},
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = train(tmp_path_factory.mktemp("mistakes"))
    pb.write_corpus(pb.Corpus([[1, 2]], ["w0", "new"]), folder / "new.npz")
    for name in ("d.safetensors", "here"):
        (folder / name).mkdir()
    whole = (folder / "lda.safetensors").read_bytes()
    (folder / "half.safetensors").write_bytes(whole[: len(whole) // 2])
    for name, text in FILES.items():
        (folder / name).write_text(text, "latin-1")
    for name, axes in (("counts.tns", ["doc", "word"]), ("links.tns", ["user", "item", "s"])):
        counts = np.arange(3 ** len(axes)).reshape([3] * len(axes))
        pb.write_tensor(pb.CountTensor.from_dense(counts, axes), folder / name)
    return folder


def contents():
    return {path: path.is_file() and path.read_bytes() for path in Path().rglob("*")}


@pytest.mark.parametrize("row", ROWS)
def test_mistakes_are_one_line_and_status_two(folder, monkeypatch, capsys, row):
    command, message = row.split("  # ")
    monkeypatch.chdir(folder)
    monkeypatch.setattr(cli, "_discard_output", lambda: None)
    before = contents()
    status = run(*shlex.split(command))
    printed, error = capsys.readouterr()
    assert_one_error_line(status, error, message)
    assert (printed, contents()) == ("", before)
