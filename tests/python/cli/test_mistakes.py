"""Mistakes of the user: status 2 and one line that says which, in the words of the options."""

import shlex
from pathlib import Path

import numpy as np
import pytest

import polyabayes as pb
from helpers.command_line import assert_one_error_line, run, train
from polyabayes import cli

NETWORK, LINKS = "'doc <- topic -> word' counts.tns", "'user -> g; item -> h; g, h -> s' links.tns"
SIZED = f"{NETWORK} --size topic=2"
FIT = "fit lda train.npz -k 3 -o m.safetensors"
OF_CORPORA = [
    ("", "required: COMMAND; see polyabayes --help"),
    ("frobnicate", "invalid choice: 'frobnicate'"),
    (
        "fit lda train.npz -o m.safetensors",
        "required: --n-components/--components/-k; see polyabayes fit --help",
    ),
    ("fit lda train.npz -k 0 -o m.safetensors", "error: -k must be"),
    ("fit nmf train.npz -k 3 -o m.safetensors", "invalid choice: 'nmf'"),
    ("fit lda train.npz -k 3 --prior gap -o m.safetensors", "--prior is an option of pfa"),
    ("fit pfa train.npz -k 3 --prior none -o m.safetensors", "error: --prior must be one of"),
    ("fit lda train.npz -k 3 --seed -1 -o m.safetensors", "error: --seed must be"),
    ("fit lda train.npz -k 3 --jobs 0 -o m.safetensors", "error: --jobs must not be 0"),
    ("fit lda train.npz -k 3 -o m.bin", "m.bin: its name must end in .safetensors"),
    ("fit lda train.npz -k 3 -o d.safetensors", "d.safetensors: it is a folder"),
    (
        "fit lda train.npz -k 3 -o m.safetensors --max-it 3",
        "unrecognized arguments: --max-it 3; see polyabayes fit --help",
    ),
    ("score lda.safetensors test.npz -o s.xls", "s.xls: its name must end in .csv or .parquet"),
    ("score lda.safetensors test.npz --no-given-length -o -", "error: no --given-length: LDA"),
    ("score lda.safetensors new.npz -o -", "have 1 word .'new'. outside.* use --unseen drop"),
    ("score train.npz test.npz -o -", "looks like an archive of arrays, .npz: a table"),
    ("fit lda nowhere.npz -k 0 -o m.safetensors", "error: -k must be between 1 and 65535"),
    ("compare lda.safetensors --on test.npz --plot c.doc", "c.doc: its name must end in"),
    ("fit lda nowhere.ldac -k 3 -o m.safetensors", "nowhere.ldac does not exist"),
    ("fit lda bad.ldac -k 3 -o m.safetensors", "bad.ldac, line 2: 'x:1' is not an id:count"),
    ("score lda.safetensors test.npz --method exact --budget 5 -o -", "above the budget"),
    ("score half.safetensors test.npz -o -", "half.safetensors is not a whole safetensors"),
    ("demo -o all.npz", "cannot write to the folder all.npz: Not a directory"),
    ("choose lda train.npz --sizes 1,x", "error: --sizes"),
    ("plot weights lda.safetensors -o w.png", "needs documents: give --on CORPUS"),
    ("plot topics lda.safetensors --on train.npz -o w.png", "has no use for --on CORPUS"),
    ("plot topics lda.safetensors -o topics.txt", "must end in .png or .pdf or .svg"),
    ("plot groups lda.safetensors --on train.npz -o w.svg", "needs --by"),
    ("plot weights lda.safetensors --on train.npz --by x -o w.svg", "has no use for --by"),
    ("topics lda.safetensors train.npz --by rating -o x.html", "--by makes a table"),
    (f"{FIT} --prevalence '~ rating'", "--prevalence needs columns: give --metadata"),
    (f"{FIT} --metadata survey.csv", "--metadata holds columns for --prevalence"),
    (f"{FIT} --prevalence '~ rating' --metadata no.csv", "cannot read no.csv"),
    (f"{FIT} --checkpoint-every seldom", "--checkpoint-every must be a number of sweeps, or a ti"),
    (f"{FIT} --alpha x", "error: --alpha"),
    ("fit pfa train.npz -k 3 --alpha 1 -o m.safetensors", "--alpha is an option of lda, not of"),
]
# No output is an input of the same command.
READ = [
    "score lda.safetensors train.npz -o scores.csv --vocabulary scores.csv",
    "fit lda train.npz -k 2 -o lda.safetensors --vocabulary lda.safetensors",
    "decompose doc<-topic->word here/table.csv --size topic=2 -o here",
]
# Outputs are checked before inputs are read.
NOWHERE = [
    "fit lda missing.npz -k 3 -o nowhere/m.safetensors",
    "score missing.npz missing.npz -o nowhere/s.csv",
    "compare missing.npz --on missing.npz --plot nowhere/c.png",
]
OF_MODELS = [
    ("'doc -> -> word' counts.tns", r"'doc -> \[HERE\]-> word': expected the name of a node"),
    ("'doc -> word -> doc' counts.tns", "has the cycle"),
    (NETWORK, "has no size for node 'topic'"),
    (f"{NETWORK} --size topic", "'topic' is not of the form NODE=N"),
    (f"{NETWORK} --size topic=-1", "is not of the form NODE=N"),
    (f"{NETWORK} --size topic=0", "error: --size topic must be"),
    (f"{NETWORK} --size x=2", "error: --size names 'x', which is not a node"),
    (f"{SIZED} --size word=2", "size 2 of node 'word'"),
    (f"{SIZED} --concentration 0", "--concentration must be positive"),
    (f"{SIZED} --axes doc,w", "no node for axis 'w' of the data"),
    (f"{SIZED} --method magic", "error: --method must be one of"),
    ("'i <- r -> j' none.tns --size r=2", "none.tns does not exist"),
]
OF_EVIDENCE = [
    (f"{NETWORK} --try topic=3", r"not of the form NODE=N\.\.M"),
    (f"{NETWORK} --try topic=3..1", "'topic=3..1' holds no size: 3 is above 1"),
    (f"{NETWORK} --try x=1..2", "error: --try names 'x', which is not a node of the graph"),
    (f"{NETWORK} --try topic=1..1000000000", "holds more than 10,000 sizes; try fewer, or use"),
    (f"{NETWORK} --try topic=0..2", "'topic=0..2' begins at 0; the least size is 1"),
    (f"{NETWORK} --sizes topic=2", "arguments: --sizes topic=2; see polyabayes evidence --help"),
    (f"{SIZED} --plot a.png", r"add --try NODE=N\.\.M"),
    (f"{SIZED} --method exact --particles 3", "which is for 'auto', 'smc'; its options: --budget"),
    (f"{SIZED} --method exact --budget 1", "raise --budget"),
    (f"{SIZED} --predict -", "--predict needs --missing"),
    (f"{SIZED} --checkpoint kept", "--checkpoint keeps evidences of sizes; add --try"),
    (
        f"{SIZED} --checkpoint kept --predict - --missing counts.tns",
        "--predict goes with no --try, --given-total or --checkpoint",
    ),
]
OF_SEARCHES = [
    ("train.npz", "required: --prior"),
    ("train.npz --prior zipf:2", "'zipf:2' is not one of poisson:MEAN"),
    ("train.npz --prior poisson", "'poisson' is not one of poisson:MEAN"),
    ("train.npz --prior poisson:x", "'poisson:x' is not one of poisson:MEAN"),
    ("train.npz --prior poisson:2,3", "'poisson:2,3' is not one of"),
    ("train.npz --prior poisson:-2", "mean must be positive"),
    ("train.npz --prior uniform:a,3", "'uniform:a,3' is not one of"),
    ("train.npz --prior poisson:2 -o b.xls", "must end in .csv or .parquet"),
    ("train.npz --prior poisson:2 --bound best", "bound must be one of"),
    ("train.npz --prior poisson:2 --folds 2 --test test.npz", "leave out --test"),
    ("train.npz --prior poisson:2 --size topic=?", "--size is an option of a graph and a tensor"),
    ("none.npz --prior poisson:2", "none.npz"),
    (f"{LINKS} --size g=2 --size h=2 --prior poisson:1", r"give --size NODE=\? for each to search"),
    (f"{LINKS} --size g=? --prior poisson:1", "has no size for node 'h'"),
    (f"{LINKS} --size g=? --size h=? --prior poisson:1", "--prior has 1 parts for the sizes of g,"),
    (f"{LINKS} --size g=? --size h=2 --prior poisson:1 --folds 3", "--folds is an option of a co"),
    (f"{LINKS} --size g=? --size h=2 --prior poisson:1 --max-iter 3", "--max-iter is an option of"),
    (f"{LINKS} --size g=? --size h=2 --prior poisson:1*x:2", "'x:2' is not one of poisson:MEAN"),
    (f"{LINKS} more.tns --size g=? --prior poisson:1", "give a corpus, or a graph and a tensor"),
    (f"{LINKS} --size g=? --size h=2 --prior poisson:1 --method x", "--method must be one of"),
]
OF_CLASSES = [
    ("survey.csv --items q1,q9", "no columns called 'q9'"),
    ("survey.csv --weights q1 --classes 2", "--weights must be a number for each"),
    ("survey.csv -o survey.csv", "which this command reads"),
    ("missing.csv", "cannot read"),
    ("survey.csv --sep ;", "--items must be two columns or more"),
    ("open.csv", "a quoted field does not end"),
]
MISTAKES = [
    *OF_CORPORA,
    *((command, "cannot write to the folder nowhere") for command in NOWHERE),
    *((command, "which this command reads") for command in READ),
    *((f"evidence {arguments}", message) for arguments, message in OF_MODELS + OF_EVIDENCE),
    *((f"decompose -o tables {arguments}", message) for arguments, message in OF_MODELS),
    *((f"search -o b.csv {arguments}", message) for arguments, message in OF_SEARCHES),
    *((f"classes {arguments}", message) for arguments, message in OF_CLASSES),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = train(tmp_path_factory.mktemp("mistakes"))
    pb.write_corpus(pb.Corpus([[1, 2]], ["w0", "new"]), folder / "new.npz")
    for name in ("d.safetensors", "here"):
        (folder / name).mkdir()
    whole = (folder / "lda.safetensors").read_bytes()
    (folder / "half.safetensors").write_bytes(whole[: len(whole) // 2])
    for name, text in (
        ("bad.ldac", "1 0:1\n1 x:1\n"),
        ("survey.csv", "q1,q2,q3\n" + 9 * "yes,no,yes\nno,no,no\n"),
        ("open.csv", 'a,b\n"1,2\n'),
        *((name, name) for name in ("scores.csv", "words.ldac", "a.vocab", "here/table.csv")),
    ):
        (folder / name).write_text(text)
    for name, axes in (("counts.tns", ["doc", "word"]), ("links.tns", ["user", "item", "s"])):
        counts = np.arange(3 ** len(axes)).reshape([3] * len(axes))
        pb.write_tensor(pb.CountTensor.from_dense(counts, axes), folder / name)
    return folder


def contents():
    return {path: path.is_file() and path.read_bytes() for path in Path().rglob("*")}


@pytest.mark.parametrize(("command", "message"), MISTAKES)
def test_mistakes_are_one_line_and_status_two(folder, monkeypatch, capsys, command, message):
    monkeypatch.chdir(folder)
    monkeypatch.setattr(cli, "_discard_output", lambda: None)
    before = contents()
    status = run(*shlex.split(command))
    printed, error = capsys.readouterr()
    assert_one_error_line(status, error, message)
    assert (printed, contents()) == ("", before)
