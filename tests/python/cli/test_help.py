"""Help tells defaults and examples that hold, and comes without the libraries of the work."""

from __future__ import annotations

import argparse
import inspect
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest

import polyabayes as pb
from polyabayes import cli
from polyabayes.allocation.options import MAX_ITER, REPLICATES, RESTARTS, TOL
from polyabayes.cli.parsers import EXAMPLES, SHELLS, make_parser

mpl.use("Agg")

# Functions of the API that a command hands its options to, the first that takes one by name.
_CALLS = {
    "fit": (pb.LatentDirichletAllocation, pb.PoissonFactorAnalysis),
    "score": (pb.log_likelihood,),
    "compare": (pb.log_likelihood,),
    "choose": (pb.LatentDirichletAllocation, pb.PoissonFactorAnalysis, pb.choose_n_components),
    "split": (pb.Corpus.split,),
    "search": (pb.WitnessSearch, pb.LatentDirichletAllocation, pb.AllocationModel),
    "evidence": (pb.AllocationModel, pb.AllocationModel.log_evidence),
    "decompose": (pb.AllocationModel, pb.AllocationModel.decompose),
}
# Defaults that the API takes from the method, not from its signature.
_OF_METHODS = {
    "evidence": {
        "n_replicates": REPLICATES,
        "max_iter": MAX_ITER,
        "tol": TOL,
        "n_restarts": RESTARTS,
        "resampling": "systematic",
        "resample_below": 0.5,
        "order": "random",
    },
    "decompose": {"max_iter": MAX_ITER, "tol": TOL, "n_restarts": RESTARTS},
}
# Parameters that a search asks for by an option of its own name.
_OTHERWISE = {"prior", "sizes", "tied"}


def commands() -> dict[str, argparse.ArgumentParser]:
    (action,) = (
        action
        for action in make_parser("0")._actions
        if isinstance(action, argparse._SubParsersAction)
    )
    return dict(action.choices)


def defaults(name: str) -> Iterator[tuple[argparse.Action, object]]:
    """Options of a command whose default is a value, and that value."""
    signatures = [inspect.signature(call).parameters for call in _CALLS.get(name, ())]
    for action in commands()[name]._actions:
        found = [known[action.dest].default for known in signatures if action.dest in known]
        value = _OF_METHODS.get(name, {}).get(action.dest, found[0] if found else None)
        skipped = action.required or action.dest in _OTHERWISE
        if value not in (None, False, inspect.Parameter.empty) and not skipped:
            yield action, value


@pytest.mark.parametrize("name", commands())
def test_every_command_has_an_example(name: str) -> None:
    assert f"polyabayes {EXAMPLES[name]}" in commands()[name].format_help()


@pytest.mark.parametrize("name", _CALLS)
def test_the_defaults_told_are_those_of_the_api(name: str) -> None:
    found = list(defaults(name))
    assert found
    for action, value in found:
        shown = f"{value:g}" if isinstance(value, float) else str(value)
        assert re.search(rf"default: {re.escape(shown)}\b", action.help or ""), action.dest


def test_the_examples_run_one_after_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    corpus = pb.datasets.make_lda_corpus(40, 30, 3, document_length=20, random_state=0).corpus
    pb.write_corpus(corpus, "corpus.ldac")
    Path("counts.tns").write_text("1 1 4\n1 2 3\n2 2 5\n")
    pb.PoissonFactorAnalysis(2, max_iter=5, random_state=0).fit(corpus).save("pfa.safetensors")
    # The demo has a test of its own, and the completion goes to the folder of a user.
    for name in (name for name in EXAMPLES if name not in ("demo", "completion")):
        options = ["--max-iter", "5"] if name in ("fit", "choose", "search") else []
        assert cli.main([*shlex.split(EXAMPLES[name]), *options]) == 0, capsys.readouterr().err
    written = {path.name for path in tmp_path.iterdir()}
    pictures = {"models.png", "choice.png", "topics.png"}
    assert pictures | {"scores.csv", "topics.html", "bounds.csv", "tables"} < written


@pytest.mark.parametrize("arguments", [["--version"], ["--help"], ["fit", "--help"]])
def test_help_waits_for_no_library(arguments: list[str]) -> None:
    program = (
        "import sys\nfrom polyabayes.cli import main\n"
        f"try:\n    main({arguments!r})\nexcept SystemExit:\n    pass\n"
        "print('loaded', *(set(sys.modules) & {'numpy', 'scipy', 'sklearn', 'pandas'}))"
    )
    found = subprocess.run(
        [sys.executable, "-c", program], env=os.environ, capture_output=True, text=True, check=True
    )
    assert found.stdout.splitlines()[-1] == "loaded"


def test_importing_the_package_imports_no_room() -> None:
    program = "import sys, polyabayes; print(*(n for n in sys.modules if 'polyabayes' in n))"
    found = subprocess.run(
        [sys.executable, "-c", program], env=os.environ, capture_output=True, text=True, check=True
    )
    assert found.stdout.split() == ["polyabayes"]
    assert all(getattr(pb, name) is not None for name in pb.__all__)
    assert set(pb.__all__) <= set(dir(pb))


def test_models_of_other_packages_are_known_before_interop_is_named() -> None:
    program = (
        "import polyabayes as pb, numpy as np\n"
        "from sklearn.decomposition import LatentDirichletAllocation\n"
        "X = np.array([[3, 1], [0, 2]])\n"
        "model = LatentDirichletAllocation(2, random_state=0).fit(X)\n"
        "print(pb.log_likelihood(model, X).total)"
    )
    found = subprocess.run(
        [sys.executable, "-c", program], env=os.environ, capture_output=True, text=True, check=True
    )
    assert float(found.stdout) < 0


@pytest.mark.parametrize("shell", SHELLS)
def test_a_shell_learns_the_commands(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert "learn-priors" in script
    assert all(name in script for name in commands())


def test_priors_reach_the_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    corpus = pb.datasets.make_lda_corpus(20, 15, 2, document_length=20, random_state=0).corpus
    pb.write_corpus(corpus, tmp_path / "c.npz")
    start = ["fit", "lda", str(tmp_path / "c.npz"), "-k", "2", "--max-iter", "6", "--seed", "1"]

    def fitted(*options: str) -> pb.LatentDirichletAllocation:
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
    capsys.readouterr()
    pfa = ["fit", "pfa", *start[2:], "-o", str(tmp_path / "p.safetensors"), "--alpha", "1"]
    assert cli.main(pfa) == 2
    assert "--alpha is an option of lda, not of pfa" in capsys.readouterr().err
    assert cli.main([*start, "-o", "m.safetensors", "--alpha", "x"]) == 2
    assert "'x' is no number or list of numbers" in capsys.readouterr().err


def test_a_tensor_without_names_takes_those_of_the_graph(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
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
