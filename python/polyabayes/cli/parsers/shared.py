"""The parser class, and options that commands share.

Options are called like the keywords of the API (``dest``) and have no defaults of their own: what
the user leaves out is left to the API, whose defaults the help repeats.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any, NoReturn

from polyabayes.exceptions import InvalidArgumentError

CORPUS_SUFFIXES = (".npz", ".ldac", ".ldac.gz", ".mtx", ".mtx.gz")


class Parser(argparse.ArgumentParser):
    """A parser that raises InvalidArgumentError and keeps the lines of examples."""

    def __init__(self, **options: Any) -> None:
        super().__init__(
            formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False, **options
        )

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse; what a command does not know is for its own parser to refuse."""
        arguments, unknown = self.parse_known_args(args, namespace)
        if unknown:
            arguments.parser.error(f"unrecognized arguments: {' '.join(unknown)}")
        return arguments

    def error(self, message: str) -> NoReturn:
        """Raise an error that says where help is."""
        raise InvalidArgumentError(f"{message}; see {self.prog} --help")


def general_options() -> Parser:
    """What every command takes."""
    parser = Parser(add_help=False)
    parser.add_argument(
        "--seed", dest="random_state", type=int, metavar="N", help="equal seeds, equal bits"
    )
    parser.add_argument(
        "--jobs", dest="n_jobs", type=int, metavar="N", help="threads; default: all cores"
    )
    parser.add_argument("--progress", action="store_true", default=None, help="show a bar")
    return parser


def corpus_options(parser: Parser, name: str = "corpus", **options: Any) -> None:
    """A corpus and its words."""
    text = (
        "documents: .ldac, .npz, .mtx, .svmlight, docword*.txt, .csv, .parquet, .txt, a folder of "
        "text, or '-' for LDA-C from standard input"
    )
    parser.add_argument(name, metavar="CORPUS", help=text, **options)
    vocabulary_option(parser)


def vocabulary_option(parser: Parser) -> None:
    """The words of a corpus whose format has none."""
    text = "the words, one a line; default: those of the corpus, or of the model where it has none"
    parser.add_argument("--vocabulary", metavar="FILE", help=text)


def estimator_options(add: Callable[..., Any]) -> None:
    """How likelihoods of documents are estimated."""
    add("--method", help="auto, exact, smc, ...: see polyabayes.log_likelihood; default: auto")
    by_method = "per replicate; default: by method and document"
    add("--particles", dest="n_particles", type=int, metavar="N", help=by_method)
    add("--samples", dest="n_samples", type=int, metavar="N", help=by_method)
    add(
        "--replicates", dest="n_replicates", type=int, metavar="N", help="per document; default: 16"
    )
    add(
        "--target-std-error",
        type=float,
        metavar="X",
        help="of every document, in nats; default: whatever the samples give",
    )


def plot_option(parser: Parser, what: str) -> None:
    """A picture beside the output."""
    parser.add_argument(
        "--plot", metavar="FILE.png", help=f"draw {what}; also .pdf and .svg; default: none"
    )


def escape_option(add: Callable[..., Any]) -> None:
    """Text that spreadsheets would execute."""
    add(
        "--escape-formulas",
        action="store_true",
        default=None,
        help="put ' before ids and labels that begin with = + - @, which spreadsheets execute",
    )
