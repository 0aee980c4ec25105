"""The arguments of the command line.

Options are called like the keywords of the API (``dest``) and have no defaults of their own: what
the user leaves out is left to the API.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any, NoReturn

from polyabayes.allocation.options import Options
from polyabayes.cli.values import (
    Collect,
    named_size,
    named_sizes,
    named_value,
    names,
    prior,
    share_or_number,
    whole_numbers,
)
from polyabayes.exceptions import InvalidArgumentError

MODELS = ("lda", "pfa")
_MODEL_FILES = (
    "what 'fit' wrote; gensim's file or folder, a .bin of tomotopy, a state of MALLET or the "
    "folder with its files"
)
CORPUS_SUFFIXES = (".npz", ".ldac", ".ldac.gz", ".mtx", ".mtx.gz")

GENERAL = ("random_state", "n_jobs", "progress")
TRAINING = (
    "n_components",
    "max_iter",
    "burn_in",
    "n_init",
    "fit_method",
    "prior",
    "sampler",
    "checkpoint",
    "checkpoint_every",
    *GENERAL,
)
SCORING = (
    "method",
    "event",
    "given_length",
    "n_particles",
    "n_samples",
    "n_replicates",
    "target_std_error",
    "unseen",
    "budget",
    "options",
    *GENERAL,
)

CHOOSING = ("n_folds", "max_fits", "checkpoint", "random_state", "progress")
SEARCHING = (
    "max_steps",
    "width",
    "max_seconds",
    "max_unexplored",
    "scoring",
    "strategy",
    "bound",
    "upper",
    "level",
    "checkpoint",
    "random_state",
    "progress",
)
# Options of the likelihoods, or the evidences, that a search scores by.
SEARCH_SCORING = (
    "method",
    "n_particles",
    "n_samples",
    "n_replicates",
    "target_std_error",
    "given_total",
    "budget",
)
# Options that apply to only one kind of search.
OF_NETWORKS = (
    "axes",
    "sizes",
    "concentration",
    "rate",
    "table_prior",
    "tied",
    "undirected",
    "strategy",
    "given_total",
    "budget",
)
OF_DOCUMENTS = (
    "vocabulary",
    "scoring",
    "target_std_error",
    "max_iter",
    "tol",
    "test",
    "folds",
    "n_workers",
)
MODEL = ("concentration", "rate", "tied")
# Options of all methods of allocation models; a method refuses those that it does not take.
EVIDENCE = ("method", "given_total", "max_total", *Options.names(), *GENERAL)
DECOMPOSITION = ("method", *Options.names(), *GENERAL)


def given(arguments: argparse.Namespace, names: tuple[str, ...]) -> dict[str, Any]:
    """Keywords for the API: those options of `names` that the user gave."""
    values = {name: getattr(arguments, name, None) for name in names}
    return {name: value for name, value in values.items() if value is not None}


class _Parser(argparse.ArgumentParser):
    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse; what a command does not know is for its own parser to refuse."""
        arguments, unknown = self.parse_known_args(args, namespace)
        if unknown:
            arguments.parser.error(f"unrecognized arguments: {' '.join(unknown)}")
        return arguments

    def error(self, message: str) -> NoReturn:
        raise InvalidArgumentError(f"{message}; see {self.prog} --help")


def make_parser(version: str) -> argparse.ArgumentParser:
    """Make the parser; it raises InvalidArgumentError.

    What it returns names the command in ``command``, and the parser of that in ``parser``.
    """
    parser = _Parser(
        prog="polyabayes",
        description="How probable are count data under a model? Exact and unbiased likelihoods "
        "with error bars.",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"polyabayes {version}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    general = _Parser(add_help=False)
    general.add_argument(
        "--seed", dest="random_state", type=int, metavar="N", help="equal seeds, equal bits"
    )
    general.add_argument(
        "--jobs", dest="n_jobs", type=int, metavar="N", help="threads; all cores by default"
    )
    general.add_argument("--progress", action="store_true", default=None, help="show a bar")

    def command(name: str, text: str, *parents: _Parser) -> _Parser:
        added = commands.add_parser(
            name, help=text, description=text, parents=[*parents, general], allow_abbrev=False
        )
        added.set_defaults(command=name, parser=added)
        return added

    scoring = _scoring_options()
    _fit_options(command("fit", "train a model"))
    _score_options(command("score", "score documents with standard errors", scoring))
    _compare_options(command("compare", "compare models on the same documents", scoring))
    _split_options(command("split", "hold documents out"))
    _choose_options(command("choose", "the number of topics, with its uncertainty"))
    _topics_options(command("topics", "what the topics of a model hold"))
    _search_options(command("search", "bounds on what LDA, or a network, of every size can do"))
    network = _network_options()
    _evidence_options(command("evidence", "evidence of a count tensor under a network", network))
    _decompose_options(command("decompose", "tables of a network for a count tensor", network))
    demo = command("demo", "train, score and compare on made-up and on real documents")
    demo.add_argument("-o", "--output", default="demo-output", metavar="DIR", help="%(default)s")
    return parser


def _corpus_options(parser: argparse.ArgumentParser, name: str = "corpus", **options: Any) -> None:
    text = (
        "documents: .ldac, .npz, .mtx, .svmlight, docword*.txt, .csv, .parquet, .txt, a folder of "
        "text, or '-' for LDA-C from standard input"
    )
    parser.add_argument(name, metavar="CORPUS", help=text, **options)
    _vocabulary_option(parser)


def _vocabulary_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--vocabulary", metavar="FILE", help="the words, one a line")


def _fit_options(parser: _Parser) -> None:
    parser.add_argument("model", choices=MODELS, help="the kind of model")
    _corpus_options(parser)
    parser.add_argument(
        "-k", dest="n_components", type=int, required=True, metavar="K", help="number of topics"
    )
    parser.add_argument("-o", "--output", required=True, metavar="MODEL.safetensors")
    _training_options(parser)
    text = "keep the state of the run there, and go on from it"
    parser.add_argument("--checkpoint", metavar="DIR", help=text)
    parser.add_argument(
        "--checkpoint-every", type=int, metavar="N", help="sweeps between two states: 100"
    )


def _training_options(parser: _Parser) -> None:
    parser.add_argument("--max-iter", type=int, metavar="N", help="sweeps, or iterations of EM")
    parser.add_argument("--burn-in", type=int, metavar="N", help="sweeps not averaged over")
    parser.add_argument("--n-init", type=int, metavar="N", help="starts: the best is taken")
    parser.add_argument("--fit-method", help="lda: gibbs or em (variational EM)")
    parser.add_argument("--prior", help="pfa: nmf, gap, gamma, beta-gamma or beta-gamma-gamma")
    parser.add_argument("--sampler", help="pfa: collapsed or blocked")


def _choose_options(parser: _Parser) -> None:
    parser.add_argument("model", choices=MODELS, help="the kind of model")
    _corpus_options(parser)
    _training_options(parser)
    add = parser.add_argument
    add(
        "--sizes",
        type=whole_numbers,
        metavar="K,K,...",
        help="sizes to choose from; found by default",
    )
    add("--folds", dest="n_folds", type=int, metavar="N", help="parts held out in turn: 5")
    add("--max-fits", type=int, metavar="N", help="fits after which to end with what is known: 200")
    add("--checkpoint", metavar="DIR", help="keep every fit there, and go on from them")
    add("-o", "--output", metavar="TABLE.csv|TABLE.parquet", help="one row a size")
    add("--plot", metavar="FILE.png", help="draw the choice; also .pdf and .svg")


def _topics_options(parser: _Parser) -> None:
    parser.add_argument("model", metavar="MODEL", help=_MODEL_FILES)
    _corpus_options(parser)
    text = "a table of all figures, or one page for a browser; printed by default"
    parser.add_argument("-o", "--output", metavar="TOPICS.csv|.parquet|.html", help=text)
    parser.add_argument("--words", dest="n_words", type=int, metavar="N", help="of a topic: 10")


def _scoring_options() -> _Parser:
    parser = _Parser(add_help=False)
    add = parser.add_argument
    _estimator_options(add)
    add("--event", help="sequence (ordered tokens) or counts (bag of words)")
    add(
        "--given-length",
        action=argparse.BooleanOptionalAction,
        help="condition on the lengths of the documents",
    )
    add("--unseen", help="words that the model does not know: raise or drop")
    add("--budget", type=float, metavar="X", help="multiply-adds that a document may cost")
    add(
        "--option",
        dest="options",
        type=named_value,
        action=Collect,
        metavar="NAME=VALUE",
        help="of the method, as order=2 of mean-field; may be repeated",
    )
    return parser


def _score_options(parser: _Parser) -> None:
    parser.add_argument("model", metavar="MODEL", help=_MODEL_FILES)
    _corpus_options(parser)
    text = "one row a document; '-' is CSV on standard output; the total alone is printed without"
    parser.add_argument("-o", "--output", metavar="SCORES.csv|SCORES.parquet", help=text)
    _escape_option(parser.add_argument)


def _compare_options(parser: _Parser) -> None:
    parser.add_argument("models", nargs="+", metavar="MODEL", help=_MODEL_FILES)
    _corpus_options(parser, "--on", dest="corpus", required=True)
    parser.add_argument("--plot", metavar="FILE.png", help="draw the table; also .pdf and .svg")


def _estimator_options(add: Callable[..., Any]) -> None:
    """How likelihoods of documents are estimated."""
    add("--method", help="auto, exact, smc, ...; see polyabayes.log_likelihood")
    add("--particles", dest="n_particles", type=int, metavar="N", help="per replicate")
    add("--samples", dest="n_samples", type=int, metavar="N", help="per replicate")
    add("--replicates", dest="n_replicates", type=int, metavar="N", help="per document")
    add("--target-std-error", type=float, metavar="X", help="of every document, in nats")


def _search_options(parser: _Parser) -> None:
    add = parser.add_argument
    add(
        "corpus",
        nargs="+",
        metavar="INPUT",
        help="a corpus, for LDA; or a graph and a tensor, as of 'evidence', one after the other",
    )
    _vocabulary_option(parser)
    add(
        "--prior",
        type=prior,
        action="append",
        required=True,
        metavar="LAW:NUMBERS",
        help="of the size: poisson:MEAN (on top of 1), geometric:P, negative-binomial:MEAN,SHAPE "
        "or uniform:LOW,HIGH; of several sizes joined by '*', in the order of --size; may be "
        "repeated: the first one is searched, the others get the same scores",
    )
    text = "one row a step, or a fold; '-' is CSV on standard output"
    add("-o", "--output", required=True, metavar="BOUNDS.csv|BOUNDS.parquet", help=text)
    add("--max-steps", type=int, metavar="N", help="stop after as many sizes")
    add("--width", type=float, metavar="X", help="stop where ln p(y) is known to X nats")
    add("--max-seconds", type=float, metavar="X", help="start no size after this time")
    add("--max-unexplored", type=float, metavar="X", help="prior mass that may be left")
    _estimator_options(add)
    add("--bound", help="witness, min-witness or paper")
    add("--upper", help="multinomial or vacuous")
    add("--level", type=float, metavar="X", help="of all bounds together")
    add("--checkpoint", metavar="DIR", help="go on from there, if it holds the same search")
    add("--plot", metavar="FILE.png", help="draw the bounds; also .pdf and .svg")
    documents = parser.add_argument_group("of a corpus").add_argument
    documents("--scoring", help="likelihood, or bound (the training's own)")
    documents("--max-iter", type=int, metavar="N", help="iterations of training, each size")
    documents("--tol", type=float, metavar="X", help="relative change of the bound that ends it")
    documents("--test", metavar="CORPUS", help="bounds on the prediction of these documents, too")
    documents("--folds", type=int, metavar="N", help="average against the best, cross-validated")
    documents("--workers", dest="n_workers", type=int, metavar="N", help="processes for the folds")
    network = parser.add_argument_group("of a graph and a tensor").add_argument
    _model_options(network, "--table-prior")
    network("--strategy", help="successor, widest or best-first")
    network("--given-total", action="store_true", default=None, help="condition on the total")
    network("--budget", type=float, metavar="X", help="multiply-adds of an exact sum")


def _network_options() -> _Parser:
    parser = _Parser(add_help=False)
    add = parser.add_argument
    add(
        "graph",
        metavar="GRAPH",
        help="as 'doc -> topic -> word'; nodes that are no axes need --size",
    )
    add("tensor", metavar="TENSOR", help="counts: .tns, .npz, .csv, .parquet, or '-' for FROSTT")
    _model_options(add, "--prior")
    add("--method", help="see polyabayes.AllocationModel")
    return parser


def _model_options(add: Callable[..., Any], table_prior: str) -> None:
    """Options of a network besides its graph."""
    add("--axes", type=names, metavar="A,B,...", help="names of the axes, or columns to take")
    add(
        "--size",
        dest="sizes",
        type=named_size,
        action=Collect,
        metavar="NODE=N",
        help="of a hidden node, '?' where it is searched; may be repeated",
    )
    add("--concentration", type=float, metavar="X", help="equivalent sample size of the prior")
    add(
        "--rate", type=float, metavar="X", help="of the intensity; concentration / total by default"
    )
    add(table_prior, dest="table_prior", choices=("bdeu", "flat"), help="of the tables")
    add(
        "--tied",
        type=names,
        action="append",
        metavar="A,B,...",
        help="nodes with one table; may be repeated",
    )
    add(
        "--undirected",
        action="store_true",
        default=None,
        help="edges are '-', or arrows with cycles: make the graph directed",
    )


def _evidence_options(parser: _Parser) -> None:
    add = parser.add_argument
    add("--given-total", action="store_true", default=None, help="condition on the total")
    add("--particles", dest="n_particles", type=int, metavar="N", help="smc: per replicate")
    add(
        "--samples",
        dest="n_samples",
        type=int,
        metavar="N",
        help="annealed: temperatures; tempered: scans",
    )
    add("--chains", dest="n_chains", type=int, metavar="N", help="annealed: per replicate")
    add("--replicates", dest="n_replicates", type=int, metavar="N")
    add("--max-iter", type=int, metavar="N", help="vb: iterations")
    add("--tol", type=float, metavar="X", help="vb: relative gain at which iterations end")
    add("--restarts", dest="n_restarts", type=int, metavar="N", help="vb: random starts")
    add("--resampling", help="smc: systematic, stratified, residual or multinomial")
    add("--resample-below", type=float, metavar="X", help="smc: share of effective particles")
    add("--order", help="smc: random or sorted")
    add("--budget", type=float, metavar="X", help="multiply-adds of an exact sum")
    _missing_options(add)
    add("--max-total", type=int, metavar="N", help="with --missing: largest total")
    add(
        "--try",
        dest="tried",
        type=named_sizes,
        metavar="NODE=N..M",
        help="compare all sizes of a hidden node",
    )
    add(
        "--plot", metavar="FILE.png", help="draw evidence against size, with --try; also .pdf, .svg"
    )


def _escape_option(add: Callable[..., Any]) -> None:
    add(
        "--escape-formulas",
        action="store_true",
        default=None,
        help="put ' before ids and labels that begin with = + - @, which spreadsheets execute",
    )


def _missing_options(add: Callable[..., Any]) -> None:
    _escape_option(add)
    add(
        "--missing",
        metavar="TENSOR",
        help="cells that were not observed, by a 1 in each; needs --rate",
    )
    add(
        "--predict",
        metavar="CELLS.csv|CELLS.parquet",
        help="expected counts of the missing cells; '-' is CSV on standard output",
    )


def _decompose_options(parser: _Parser) -> None:
    add = parser.add_argument
    text = "a folder for one CSV file a table"
    add("-o", "--output", required=True, metavar="FOLDER", help=text)
    add("--max-iter", type=int, metavar="N", help="iterations or sweeps")
    add("--tol", type=float, metavar="X", help="relative gain at which iterations end")
    add("--restarts", dest="n_restarts", type=int, metavar="N", help="random starts")
    add("--burn-in", type=int, metavar="N", help="gibbs: sweeps not averaged over")
    add("--particles", dest="n_particles", type=int, metavar="N", help="of smc")
    _missing_options(add)


def _split_options(parser: _Parser) -> None:
    _corpus_options(parser)
    parser.add_argument(
        "--test-size",
        type=share_or_number,
        metavar="X",
        help="a share, as 0.2, or a number of documents",
    )
    for part in ("--train", "--test"):
        parser.add_argument(part, required=True, metavar="FILE", help=", ".join(CORPUS_SUFFIXES))
