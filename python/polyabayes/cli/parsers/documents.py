"""Options of the commands on documents and topics."""

from __future__ import annotations

import argparse

from polyabayes.cli.parsers.shared import (
    CORPUS_SUFFIXES,
    Parser,
    corpus_options,
    escape_option,
    estimator_options,
    plot_option,
)
from polyabayes.cli.parsers.values import (
    Collect,
    named_value,
    numbers,
    share_or_number,
    whole_numbers,
)

_MODELS = ("lda", "pfa")
_MODEL_FILES = (
    "what 'fit' wrote; gensim's file or folder, a .bin of tomotopy, a state of MALLET or the "
    "folder with its files"
)


def _exposure_option(parser: Parser) -> None:
    text = "pfa: sizes of the documents, a column of the table or a file with one number a line; "
    parser.add_argument(
        "--exposure", metavar="FILE|COLUMN", help=text + "default: those of the corpus, else 1"
    )


def fit_options(parser: Parser) -> None:
    """Options of ``fit``."""
    parser.add_argument("model", choices=_MODELS, help="the kind of model")
    corpus_options(parser)
    parser.add_argument(
        "-k", dest="n_components", type=int, required=True, metavar="K", help="number of topics"
    )
    parser.add_argument("-o", "--output", required=True, metavar="MODEL.safetensors")
    _exposure_option(parser)
    _training_options(parser)
    text = "keep the state of the run there, and go on from it; default: none is kept"
    parser.add_argument("--checkpoint", metavar="DIR", help=text)
    parser.add_argument(
        "--checkpoint-every", type=int, metavar="N", help="sweeps between two states; default: 100"
    )


def _training_options(parser: Parser) -> None:
    add = parser.add_argument
    add("--max-iter", type=int, metavar="N", help="sweeps, or iterations of EM; default: 200")
    add("--burn-in", type=int, metavar="N", help="sweeps not averaged over; default: half of them")
    add("--n-init", type=int, metavar="N", help="starts: the best is taken; default: 1")
    add("--fit-method", help="lda: gibbs or em (variational EM); default: gibbs")
    add(
        "--alpha",
        dest="doc_topic_prior",
        type=numbers,
        metavar="X[,X,...]",
        help="lda: prior of the topics of a document, one number or one a topic; default: 5 / K",
    )
    add(
        "--eta",
        dest="topic_word_prior",
        type=float,
        metavar="X",
        help="prior of the words of a topic; default: 0.1",
    )
    add(
        "--learn-priors",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="lda: learn alpha, one a topic, and with gibbs eta; default: where neither is given",
    )
    add(
        "--prior",
        help="pfa: nmf, gap, gamma, beta-gamma or beta-gamma-gamma; default: beta-gamma-gamma",
    )
    add("--sampler", help="pfa: collapsed or blocked; default: collapsed")


def choose_options(parser: Parser) -> None:
    """Options of ``choose``."""
    parser.add_argument("model", choices=_MODELS, help="the kind of model")
    corpus_options(parser)
    _training_options(parser)
    add = parser.add_argument
    add(
        "--sizes",
        type=whole_numbers,
        metavar="K,K,...",
        help="sizes to choose from; default: they are found",
    )
    add("--folds", dest="n_folds", type=int, metavar="N", help="parts held out in turn; default: 5")
    add(
        "--max-fits",
        type=int,
        metavar="N",
        help="fits after which to end with what is known; default: 200",
    )
    add("--checkpoint", metavar="DIR", help="keep every fit there, and go on from them")
    add("-o", "--output", metavar="TABLE.csv|TABLE.parquet", help="one row a size; default: none")
    plot_option(parser, "the choice")


def topics_options(parser: Parser) -> None:
    """Options of ``topics``."""
    parser.add_argument("model", metavar="MODEL", help=_MODEL_FILES)
    corpus_options(parser)
    text = "a table of all figures, or one page for a browser; default: the words are printed"
    parser.add_argument("-o", "--output", metavar="TOPICS.csv|.parquet|.html", help=text)
    parser.add_argument(
        "--words",
        dest="n_words",
        type=int,
        metavar="N",
        help="of a topic; default: 10, and 15 on a page",
    )


def plot_options(parser: Parser) -> None:
    """Options of ``plot``."""
    text = "most probable words, likeness of topics, or shares of the tokens of --on CORPUS"
    parser.add_argument("what", choices=("topics", "similarity", "weights"), help=text)
    parser.add_argument("model", metavar="MODEL", help=_MODEL_FILES)
    parser.add_argument("-o", "--output", required=True, metavar="FILE.png|.pdf|.svg")
    corpus_options(parser, "--on", dest="corpus")
    parser.add_argument(
        "--words", dest="n_words", type=int, metavar="N", help="of a topic; default: 8"
    )


def scoring_options() -> Parser:
    """How documents are scored."""
    parser = Parser(add_help=False)
    add = parser.add_argument
    estimator_options(add)
    add(
        "--event",
        help="sequence (ordered tokens) or counts (bag of words); default: that of the model",
    )
    add(
        "--given-length",
        action=argparse.BooleanOptionalAction,
        help="condition on the lengths of the documents; default: as the model does",
    )
    add("--unseen", help="words that the model does not know: raise or drop; default: raise")
    add(
        "--budget",
        type=float,
        metavar="X",
        help="multiply-adds that a document may cost; default: by method",
    )
    add(
        "--option",
        dest="options",
        type=named_value,
        action=Collect,
        metavar="NAME=VALUE",
        help="of the method, as order=2 of mean-field; may be repeated",
    )
    return parser


def score_options(parser: Parser) -> None:
    """Options of ``score``."""
    parser.add_argument("model", metavar="MODEL", help=_MODEL_FILES)
    corpus_options(parser)
    text = "one row a document; '-' is CSV on standard output; default: the total is printed"
    parser.add_argument("-o", "--output", metavar="SCORES.csv|SCORES.parquet", help=text)
    escape_option(parser.add_argument)
    _exposure_option(parser)


def compare_options(parser: Parser) -> None:
    """Options of ``compare``."""
    parser.add_argument("models", nargs="+", metavar="MODEL", help=_MODEL_FILES)
    corpus_options(parser, "--on", dest="corpus", required=True)
    plot_option(parser, "the table")
    _exposure_option(parser)


def split_options(parser: Parser) -> None:
    """Options of ``split``."""
    corpus_options(parser)
    parser.add_argument(
        "--test-size",
        type=share_or_number,
        metavar="X",
        help="a share, or a number of documents; default: 0.2",
    )
    for part in ("--train", "--test"):
        parser.add_argument(part, required=True, metavar="FILE", help=", ".join(CORPUS_SUFFIXES))
