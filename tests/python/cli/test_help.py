"""Help tells defaults and examples that hold, and comes without the libraries of the work."""

import argparse
import ast
import inspect
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import polyabayes as pb
from polyabayes import cli
from polyabayes.cli import signatures
from polyabayes.cli.parser import COMMANDS, Takes, make_parser
from polyabayes.cli.signatures import documented
from polyabayes.cli.values import how_to_read

SHELLS = ("bash", "zsh", "tcsh")


def function(name):
    """A public function by its name after ``polyabayes.``."""
    found = pb
    for part in name.split("."):
        found = getattr(found, part)
    return found


def command(name):
    (commands,) = (
        action
        for action in make_parser("0")._actions
        if isinstance(action, argparse._SubParsersAction)
    )
    return commands.choices[name]


CALLS = sorted({takes.call for _, functions in COMMANDS.values() for takes in functions})


@pytest.mark.parametrize("call", CALLS)
def test_the_source_is_read_as_python_reads_it(call):
    expected = {
        name: None if parameter.default is inspect.Parameter.empty else parameter.default
        for name, parameter in inspect.signature(function(call)).parameters.items()
        if parameter.kind is not inspect.Parameter.VAR_KEYWORD
    }
    expected.pop("self", None)
    found = {
        name: None if parameter.default is None else ast.literal_eval(parameter.default)
        for name, parameter in documented(call).parameters.items()
        if name not in ("self", "cls") and not parameter.is_variadic
    }
    # A docstring may tell the value that None stands for.
    unlike = {name for name in found if found[name] != expected[name]}
    assert found.keys() == expected.keys()
    assert all(expected[name] is None for name in unlike)
    parameters = documented(call).parameters.items()
    told = [parameter for name, parameter in parameters if name not in ("self", "cls")]
    assert all(parameter.help for parameter in told)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_parameter_that_text_can_stand_for_is_an_option(name):
    parser = command(name)
    options = {action.dest: action for action in parser._actions}
    assert f"polyabayes {name}" in parser.format_help().partition("example:")[2]
    for takes in COMMANDS[name][1]:
        for option, parameter in takes.options():
            assert options[option].help, option
            if parameter.default not in (None, "None", "False", "()") and option != "n_components":
                assert re.search(r"default: \S", options[option].help or ""), option
    # What is left out cannot be typed, or is given in another way.
    skipped = {"executor", "callback", "init", "predictive", "observed", "ax", "priors", "self"}
    for takes in COMMANDS[name][1]:
        if not takes.only:
            typed = {parameter.name for _, parameter in takes.options()}
            required = {p.name for p in documented(takes.call).parameters.values() if not p.default}
            rest = set(documented(takes.call).parameters) - typed - required
            assert rest - set(takes.without) <= skipped


def test_a_new_parameter_is_an_option_at_once(monkeypatch):
    module = ast.parse(
        "def split(corpus, *, share: float = 0.5, by: str | None = None, whole: bool = False):\n"
        '    """Split.\n\n    Parameters\n    ----------\n    corpus : Corpus\n'
        "        The corpus.\n    share : float, default=0.5\n"
        '        How much. None of it.\n    """'
    )
    monkeypatch.setitem(COMMANDS, "split", ("documents", (Takes("split"),)))
    monkeypatch.setattr(signatures, "_source", lambda _: module)
    documented.cache_clear()
    found = dict(Takes("split").options())
    documented.cache_clear()
    assert list(found) == ["share", "by", "whole"]
    assert (found["share"].default, found["share"].help) == ("0.5", "How much. None of it")
    assert [how_to_read(one)["action"] for one in (found["whole"],)] == ["store_true"]


def test_the_examples_run_one_after_the_other(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    corpus = pb.datasets.make_lda_corpus(40, 30, 3, document_length=20, random_state=0).corpus
    pb.write_corpus(corpus, "corpus.ldac")
    Path("counts.tns").write_text("1 1 4\n1 2 3\n2 2 5\n")
    Path("reviews.csv").write_text("review\n" + 2 * "good food\nbad food\n")
    Path("survey.csv").write_text("q1,q2,q3\n" + 9 * "a,a,b\n" + 8 * "b,b,a\n")
    pb.PoissonFactorAnalysis(2, max_iter=5, random_state=0).fit(corpus).save("pfa.safetensors")
    # The demo has a test of its own, and the completion goes to the folder of a user.
    for name in ("split", *(n for n in COMMANDS if n not in ("split", "demo", "completion"))):
        example = documented(name, f"polyabayes.cli.{COMMANDS[name][0]}").example
        options = ["--max-iter", "5"] if name in ("fit", "choose", "search") else []
        assert cli.main([*shlex.split(example)[2:], *options]) == 0, capsys.readouterr().err
    written = {path.name for path in tmp_path.iterdir()}
    pictures = {"models.png", "choice.png", "topics.png"}
    assert pictures | {"scores.csv", "topics.html", "bounds.csv", "tables"} < written


@pytest.mark.parametrize("arguments", [["--version"], ["--help"], ["fit", "--help"]])
def test_help_waits_for_no_library(arguments):
    program = (
        "import sys\nfrom polyabayes.cli import main\n"
        f"try:\n    main({arguments!r})\nexcept SystemExit:\n    pass\n"
        "print('loaded', *(set(sys.modules) & {'numpy', 'scipy', 'sklearn', 'pandas'}))"
    )
    found = subprocess.run(
        [sys.executable, "-c", program], env=os.environ, capture_output=True, text=True, check=True
    )
    assert found.stdout.splitlines()[-1] == "loaded"


def test_importing_the_package_imports_no_room():
    program = "import sys, polyabayes; print(*(n for n in sys.modules if 'polyabayes' in n))"
    found = subprocess.run(
        [sys.executable, "-c", program], env=os.environ, capture_output=True, text=True, check=True
    )
    assert found.stdout.split() == ["polyabayes"]
    assert all(getattr(pb, name) is not None for name in pb.__all__)
    assert set(pb.__all__) <= set(dir(pb))


@pytest.mark.parametrize("shell", SHELLS)
def test_a_shell_learns_the_commands(shell, capsys):
    assert cli.main(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert "learn-priors" in script
    assert all(name in script for name in COMMANDS)


def test_priors_reach_the_model(tmp_path):
    corpus = pb.datasets.make_lda_corpus(20, 15, 2, document_length=20, random_state=0).corpus
    pb.write_corpus(corpus, tmp_path / "c.npz")
    start = ["fit", "lda", str(tmp_path / "c.npz"), "-k", "2", "--max-iter", "6", "--seed", "1"]

    def fitted(*options):
        path = tmp_path / "m.safetensors"
        assert cli.main([*start, "-o", str(path), *options]) == 0
        return pb.load(path)

    model = fitted("--alpha", "0.3,0.7", "--eta", "0.2")
    expected = pb.LatentDirichletAllocation(
        2, doc_topic_prior=[0.3, 0.7], topic_word_prior=0.2, max_iter=6, random_state=1
    ).fit(corpus)
    np.testing.assert_array_equal(model.components_, expected.components_)
    np.testing.assert_array_equal(model.doc_topic_prior_, [0.3, 0.7])
    assert not np.array_equal(fitted("--alpha", "2").components_, model.components_)
    learned = fitted("--learn-priors").doc_topic_prior_
    assert learned[0] != learned[1]


def test_a_tensor_without_names_takes_those_of_the_graph(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("t.tns").write_text("1 1 1 4\n1 2 3 3\n2 2 1 5\n")
    graph = "i <- r -> j; r -> k"
    assert cli.main(["evidence", graph, "t.tns", "--size", "r=2"]) == 0
    output = capsys.readouterr()
    tensor = pb.read_tensor("t.tns", ["i", "j", "k"])
    expected = pb.AllocationModel(graph, {"r": 2}).log_evidence(tensor)
    assert f"{expected.value:,.6f}" in output.out
    assert "the axes of t.tns are i, j, k, in this order" in output.err
    assert cli.main(["decompose", graph, "t.tns", "--size", "r=2", "-o", "out"]) == 0
    assert (tmp_path / "out" / "k.csv").exists()
    capsys.readouterr()
    assert cli.main(["evidence", graph, "t.tns", "--try", "r=2..3"]) == 0
    assert f"{expected.value:,.4f}" in capsys.readouterr().out
    assert cli.main(["evidence", "i <- r -> j", "t.tns", "--size", "r=2"]) == 2
    assert "3 axes without names, but the graph has 2 nodes" in capsys.readouterr().err
    # Names that the graph has stand as they are.
    assert cli.main(["evidence", "mode2 <- r -> mode1; r -> mode3", "t.tns", "--size", "r=2"]) == 0
    assert "in this order" not in capsys.readouterr().err
