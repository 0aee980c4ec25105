from __future__ import annotations

import doctest

import pytest

from polyabayes.cli import words
from polyabayes.cli.options import make_parser
from polyabayes.cli.words import in_options

EVIDENCE = "evidence graph counts.csv"
SEARCH = "search corpus.npz --prior poisson:3 -o -"
FIT = "fit lda corpus.npz -k 3 -o m.safetensors"


def told(command: str, message: str) -> str:
    return in_options(message, make_parser("0").parse_args(command.split()).parser)


@pytest.mark.parametrize(
    ("command", "message", "expected"),
    [
        (EVIDENCE, "raise max_total", "raise --max-total"),
        (EVIDENCE, "pass max_total=... or budget=1e9", "pass --max-total ... or --budget 1e9"),
        (EVIDENCE, "use method='vb', which", "use --method vb, which"),
        (EVIDENCE, 'or use method="vb"', "or use --method vb"),
        (EVIDENCE, "method 'exact' takes no order", "--method exact takes no --order"),
        (EVIDENCE, "its options: n_samples, budget", "its options: --samples, --budget"),
        (EVIDENCE, "given_total=True needs all", "--given-total needs all"),
        (EVIDENCE, "the default of `rate` is", "the default of --rate is"),
        (EVIDENCE, "axes: '' cannot name", "--axes: '' cannot name"),
        (EVIDENCE, "rate must be positive", "--rate must be positive"),
        (EVIDENCE, "add sizes={'topic': ...}", "add --size topic=..."),
        (EVIDENCE, "sizes['topic'] must be", "--size topic must be"),
        (EVIDENCE, "observed marks no cell; predict_missing", "--missing marks no cell; --predict"),
        (EVIDENCE, "n_jobs must not be 0", "--jobs must not be 0"),
        (SEARCH, "random_state must be", "--seed must be"),
        (SEARCH, "give another `upper`", "give another --upper"),
        (FIT, "X holds no tokens", "CORPUS holds no tokens"),
        (FIT, "n_components must be at least 1", "-k must be at least 1"),
    ],
)
def test_arguments_are_called_by_their_options(command: str, message: str, expected: str) -> None:
    assert told(command, message) == expected


@pytest.mark.parametrize(
    "message",
    [
        "the order of the nodes, their prior and the rate",
        "the axes of the tensor have another order",
        "'n_particles' is no column",
        "counts.csv, line 3: the prior is missing",
        "elimination_order must name every hidden node",
    ],
)
def test_other_words_stay_as_they_are(message: str) -> None:
    assert told(EVIDENCE, message) == message
    assert in_options("n_particles must be an int", None) == "n_particles must be an int"


def test_the_example_is_true() -> None:
    found = doctest.testmod(words)
    assert found.attempted > 0
    assert found.failed == 0
