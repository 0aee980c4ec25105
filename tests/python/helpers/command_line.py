"""The command line, called as a function."""

import csv
import re
from pathlib import Path

import polyabayes as pb
from polyabayes import cli


def run(*arguments):
    """Exit status of a command: its words, or lines of words."""
    return cli.main([str(argument) for argument in arguments])


def table(text):
    """Rows of a CSV table, or of a file with one."""
    content = text.read_text() if isinstance(text, Path) else text
    return list(csv.DictReader(content.splitlines()))


def train(folder):
    """Write a corpus, its halves in several formats, and a trained model of each kind."""
    data = pb.datasets.make_lda_corpus(200, 40, 3, document_length=20, random_state=0)
    words, ids = [f"w{i}" for i in range(40)], [f"d{i}" for i in range(200)]
    corpus = pb.Corpus(data.corpus.counts, words, ids)
    train, test = corpus.split(40, random_state=0)
    pb.write_corpus(corpus, folder / "all.npz")
    for name, part in (("train", train), ("test", test)):
        pb.write_corpus(part, folder / f"{name}.npz")
        pb.write_corpus(part, folder / f"{name}.ldac")
    sweeps = {"max_iter": 30, "random_state": 5}
    pb.LatentDirichletAllocation(3, **sweeps).fit(train).save(folder / "lda.safetensors")
    pfa = pb.PoissonFactorAnalysis(3, prior="gamma", burn_in=10, **sweeps)
    pfa.fit(train).save(folder / "pfa.safetensors")
    return folder


def assert_one_error_line(status, error, message):
    """The last line says what is wrong, and nothing came before but what is being worked on."""
    assert status == 2, error
    *before, line = error.splitlines()
    assert line.startswith("polyabayes: error: ")
    assert re.search(message, line), line
    at_work = "polyabayes: (training on|choosing on|searching|<AllocationModel)"
    assert all(re.match(at_work, text) for text in before), before
