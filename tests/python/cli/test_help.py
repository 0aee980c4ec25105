"""Help tells the options of the functions that a command calls, and an example that runs."""

import shlex
from pathlib import Path

import pytest

import polyabayes as pb
from polyabayes import cli
from polyabayes.cli.parser import COMMANDS, described, parse


def help_of(capsys, *arguments):
    assert cli.main([*arguments, "--help"]) == 0
    return " ".join(capsys.readouterr().out.split())


def test_version_and_help_of_all(capsys):
    assert cli.main(["--version"]) == 0
    assert capsys.readouterr().out == f"polyabayes {pb.__version__}\n"
    shown = help_of(capsys)
    assert all(name in shown for name in COMMANDS)
    assert "Train a model" in shown


@pytest.mark.parametrize("name", COMMANDS)
def test_every_parameter_is_an_option_with_its_help(capsys, name):
    shown = help_of(capsys, name)
    assert f"example: polyabayes {name}" in shown
    assert all(option in shown for option in ("--seed", "--jobs", "--progress", "--verbose"))
    for takes in COMMANDS[name][1]:
        options = dict(takes.options())
        assert options
        for option, parameter in options.items():
            assert f"--{option.replace('_', '-').removesuffix('s')}" in shown
            assert parameter.help, option


def test_a_parameter_of_a_model_is_an_option_at_once(monkeypatch):
    def init(self, n_components=10, *, sharpness: float = 0.5, names: "Sequence[str]" = ()): ...  # noqa: F821

    made = type("Model", (), {"__init__": init, "__doc__": "A model.\n\nParameters\n----------\n"
                "sharpness : float\n    How sharp. Not more.\nnames\n    Names.\n"})  # fmt: skip
    monkeypatch.setattr(pb, "PoissonFactorAnalysis", made)
    from polyabayes.cli import parser

    parser.documented.cache_clear()
    given = parser.parse(shlex.split("fit pfa c -k 2 -o m --sharpness 2 --names a,b"), "0")
    shown = " ".join(given.parser.format_help().split())
    found = given.of("PoissonFactorAnalysis")
    parser.documented.cache_clear()
    assert found == {"n_components": 2, "sharpness": 2, "names": ["a", "b"]}
    assert "of pfa: How sharp; default: 0.5" in shown


def test_the_examples_run_one_after_the_other(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    corpus = pb.datasets.make_lda_corpus(40, 30, 3, document_length=20, random_state=0).corpus
    for name, part in zip(("train.npz", "test.npz"), corpus.split(random_state=0), strict=True):
        pb.write_corpus(part, name)
    Path("counts.tns").write_text("1 1 4\n1 2 3\n2 2 5\n")
    Path("survey.csv").write_text("q1,q2,q3\n" + 9 * "a,a,b\n" + 8 * "b,b,a\n")
    pb.PoissonFactorAnalysis(2, max_iter=5, random_state=0).fit(corpus).save("pfa.safetensors")
    # The demo has a test of its own.
    for name in COMMANDS.keys() - {"demo"}:
        example = described(name).example
        options = ["--max-iter", "5"] if name in ("fit", "choose", "search") else []
        if not Path("lda.safetensors").exists():
            assert cli.main([*shlex.split(described("fit").example)[2:], "--max-iter", "5"]) == 0
        assert cli.main([*shlex.split(example)[2:], *options]) == 0, capsys.readouterr().err
    written = {path.name for path in tmp_path.iterdir()}
    pictures = {"models.png", "choice.png", "topics.png"}
    assert pictures | {"scores.csv", "topics.html", "bounds.csv", "tables"} < written


def test_priors_are_lists_of_numbers():
    line = "fit lda c.npz -k 2 --alpha 0.3,0.7 --eta 0.2 --learn-priors -o m.safetensors"
    given = parse(line.split(), "0")
    found = given.of("LatentDirichletAllocation")
    assert (found["doc_topic_prior"], found["topic_word_prior"]) == ([0.3, 0.7], 0.2)
    assert found["learn_priors"] is True
