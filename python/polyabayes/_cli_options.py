"""The arguments of the command line.

Options are called like the keywords of the API (``dest``) and have no defaults of their own: what
the user leaves out is left to the API.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any, NoReturn

from polyabayes import priors
from polyabayes.exceptions import InvalidArgumentError

MODELS = ("lda", "pfa")
CORPUS_SUFFIXES = (".npz", ".ldac", ".ldac.gz", ".mtx", ".mtx.gz")

GENERAL = ("random_state", "n_jobs", "progress")
TRAINING = ("n_components", "max_iter", "burn_in", "fit_method", "prior", "sampler", *GENERAL)
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

SEARCHING = (
    "max_steps",
    "width",
    "max_seconds",
    "max_unexplored",
    "scoring",
    "bound",
    "upper",
    "confidence",
    "checkpoint",
    "random_state",
    "progress",
)
# Of the likelihoods that a search scores by.
SEARCH_SCORING = ("method", "n_particles", "n_samples", "n_replicates", "target_std_error")
_PRIORS: dict[str, tuple[type[priors.UnivariatePrior], tuple[type, ...]]] = {
    "poisson": (priors.Poisson, (float,)),
    "geometric": (priors.Geometric, (float,)),
    "negative-binomial": (priors.NegativeBinomial, (float, float)),
    "uniform": (priors.Uniform, (int, int)),
}
MODEL = ("concentration", "rate", "prior", "tied")
EVIDENCE = (
    "method",
    "given_total",
    "n_particles",
    "n_samples",
    "n_replicates",
    "resampling",
    "resample_below",
    "order",
    "budget",
    "max_total",
    *GENERAL,
)
DECOMPOSITION = ("method", "max_iter", "tolerance", "n_restarts", "burn_in", *GENERAL)


def given(arguments: argparse.Namespace, names: tuple[str, ...]) -> dict[str, Any]:
    """Keywords for the API: those options of `names` that the user gave."""
    values = {name: getattr(arguments, name, None) for name in names}
    return {name: value for name, value in values.items() if value is not None}


class _Collect(argparse.Action):
    """Gathers pairs of name and value in a dictionary."""

    def __call__(self, _parser: Any, namespace: Any, pair: Any, _flag: Any = None) -> None:
        name, value = pair
        setattr(namespace, self.dest, {**(getattr(namespace, self.dest) or {}), name: value})


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise InvalidArgumentError(f"{message}; see {self.prog} --help")


def make_parser(version: str) -> argparse.ArgumentParser:
    """Make the parser; it raises InvalidArgumentError and names the command in ``command``."""
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
        added.set_defaults(command=name)
        return added

    scoring = _scoring_options()
    _fit_options(command("fit", "train a model"))
    _score_options(command("score", "score documents with standard errors", scoring))
    _compare_options(command("compare", "compare models on the same documents", scoring))
    _split_options(command("split", "hold documents out"))
    _search_options(command("search", "bounds on what LDA of every number of topics can do"))
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
    parser.add_argument("--vocabulary", metavar="FILE", help="the words, one a line")


def _fit_options(parser: _Parser) -> None:
    parser.add_argument("model", choices=MODELS, help="the kind of model")
    _corpus_options(parser)
    parser.add_argument(
        "-k", dest="n_components", type=int, required=True, metavar="K", help="number of topics"
    )
    parser.add_argument("-o", "--output", required=True, metavar="MODEL.safetensors")
    parser.add_argument("--max-iter", type=int, metavar="N", help="sweeps, or iterations of EM")
    parser.add_argument("--burn-in", type=int, metavar="N", help="sweeps not averaged over")
    parser.add_argument("--fit-method", help="lda: gibbs or em (variational EM)")
    parser.add_argument("--prior", help="pfa: nmf, gap, gamma, beta-gamma or beta-gamma-gamma")
    parser.add_argument("--sampler", help="pfa: collapsed or blocked")


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
        type=_named_value,
        action=_Collect,
        metavar="NAME=VALUE",
        help="of the method, as order=2 of mean-field; may be repeated",
    )
    return parser


def _score_options(parser: _Parser) -> None:
    parser.add_argument("model", metavar="MODEL", help="what 'fit' wrote")
    _corpus_options(parser)
    text = "one row a document; '-' is CSV on standard output"
    parser.add_argument(
        "-o", "--output", required=True, metavar="SCORES.csv|SCORES.parquet", help=text
    )


def _compare_options(parser: _Parser) -> None:
    parser.add_argument("models", nargs="+", metavar="MODEL", help="what 'fit' wrote")
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
    _corpus_options(parser)
    add = parser.add_argument
    add(
        "--prior",
        dest="priors",
        type=_prior,
        action="append",
        required=True,
        metavar="LAW:NUMBERS",
        help="of the number of topics: poisson:MEAN (on top of 1), geometric:P, "
        "negative-binomial:MEAN,SHAPE or uniform:LOW,HIGH; may be repeated: the first one is "
        "searched, the others get the same scores",
    )
    text = "one row a step, or a fold; '-' is CSV on standard output"
    add("-o", "--output", required=True, metavar="BOUNDS.csv|BOUNDS.parquet", help=text)
    add("--max-steps", type=int, metavar="N", help="stop after as many sizes")
    add("--width", type=float, metavar="X", help="stop where ln p(y) is known to X nats")
    add("--max-seconds", type=float, metavar="X", help="start no size after this time")
    add("--max-unexplored", type=float, metavar="X", help="prior mass that may be left")
    add("--scoring", help="likelihood, or bound (the training's own)")
    _estimator_options(add)
    add("--bound", help="witness, min-witness or paper")
    add("--upper", help="multinomial or vacuous")
    add("--confidence", type=float, metavar="X", help="of all bounds together")
    add("--max-iter", type=int, metavar="N", help="iterations of training, each size")
    add("--tol", type=float, metavar="X", help="relative change of the bound that ends training")
    add("--checkpoint", metavar="DIR", help="go on from there, if it holds the same search")
    add("--test", metavar="CORPUS", help="bounds on the prediction of these documents, too")
    add("--folds", type=int, metavar="N", help="average against the best, by cross-validation")
    add("--workers", dest="n_workers", type=int, metavar="N", help="processes for the folds")
    add("--plot", metavar="FILE.png", help="draw the bounds; also .pdf and .svg")


def _prior(text: str) -> priors.SizePrior:
    name, _, numbers = text.partition(":")
    law, types = _PRIORS.get(name, (priors.UnivariatePrior, ()))
    parts = numbers.split(",")
    if len(parts) != len(types):
        known = "poisson:MEAN, geometric:P, negative-binomial:MEAN,SHAPE or uniform:LOW,HIGH"
        raise argparse.ArgumentTypeError(f"{text!r} is not one of {known}")
    try:
        return law(*(kind(part) for kind, part in zip(types, parts, strict=True)))
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r}: {error}") from None


def _network_options() -> _Parser:
    parser = _Parser(add_help=False)
    add = parser.add_argument
    add(
        "graph",
        metavar="GRAPH",
        help="as 'doc -> topic -> word'; nodes that are no axes need --size",
    )
    add("tensor", metavar="TENSOR", help="counts: .tns, .npz, .csv, .parquet, or '-' for FROSTT")
    add("--axes", type=_names, metavar="A,B,...", help="names of the axes, or columns to take")
    add(
        "--size",
        dest="sizes",
        type=_named_size,
        action=_Collect,
        metavar="NODE=N",
        help="of a hidden node; may be repeated",
    )
    add("--concentration", type=float, metavar="X", help="equivalent sample size of the prior")
    add(
        "--rate", type=float, metavar="X", help="of the intensity; concentration / total by default"
    )
    add("--prior", help="bdeu or flat")
    add(
        "--tied",
        type=_names,
        action="append",
        metavar="A,B,...",
        help="nodes with one table; may be repeated",
    )
    add(
        "--undirected",
        action="store_true",
        help="edges are '-', or arrows with cycles: make the graph directed",
    )
    add("--method", help="see polyabayes.AllocationModel")
    return parser


def _evidence_options(parser: _Parser) -> None:
    add = parser.add_argument
    add("--given-total", action="store_true", default=None, help="condition on the total")
    add("--particles", dest="n_particles", type=int, metavar="N", help="per replicate")
    add("--samples", dest="n_samples", type=int, metavar="N", help="temperatures of annealed")
    add("--replicates", dest="n_replicates", type=int, metavar="N")
    add("--resampling", help="smc: systematic, stratified, residual or multinomial")
    add("--resample-below", type=float, metavar="X", help="smc: share of effective particles")
    add("--order", help="smc: random or sorted")
    add("--budget", type=float, metavar="X", help="multiply-adds of an exact sum")
    add(
        "--missing",
        metavar="TENSOR",
        help="cells that were not observed, by a 1 in each; needs --rate",
    )
    add("--max-total", type=int, metavar="N", help="with --missing: largest total")
    add(
        "--predict",
        metavar="CELLS.csv|CELLS.parquet",
        help="expected counts of the missing cells; '-' is CSV on standard output",
    )
    add(
        "--try",
        dest="tried",
        type=_named_sizes,
        metavar="NODE=N..M",
        help="compare all sizes of a hidden node",
    )
    add(
        "--plot", metavar="FILE.png", help="draw evidence against size, with --try; also .pdf, .svg"
    )


def _decompose_options(parser: _Parser) -> None:
    add = parser.add_argument
    text = "a folder for one CSV file a table"
    add("-o", "--output", required=True, metavar="FOLDER", help=text)
    add("--max-iter", type=int, metavar="N", help="iterations or sweeps")
    add("--tolerance", type=float, metavar="X", help="relative gain at which iterations end")
    add("--restarts", dest="n_restarts", type=int, metavar="N", help="random starts")
    add("--burn-in", type=int, metavar="N", help="gibbs: sweeps not averaged over")


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",")]


def _named_size(text: str) -> tuple[str, int]:
    name, equals, value = text.partition("=")
    if not (equals and value.isdecimal()):
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form NODE=N")
    return name, int(value)


def _named_sizes(text: str) -> tuple[str, range]:
    name, equals, value = text.partition("=")
    first, dots, last = value.partition("..")
    if not (equals and dots and first.isdecimal() and last.isdecimal()):
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form NODE=N..M")
    if not 0 < int(first) <= int(last):
        raise argparse.ArgumentTypeError(f"{text!r} holds no sizes")
    return name, range(int(first), int(last) + 1)


def _named_value(text: str) -> tuple[str, int | str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form NAME=VALUE")
    return name, int(value) if value.isdecimal() else value


def _share_or_number(text: str) -> float:
    try:
        return int(text) if text.isdecimal() else float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number") from None


def _split_options(parser: _Parser) -> None:
    _corpus_options(parser)
    parser.add_argument(
        "--test-size",
        type=_share_or_number,
        metavar="X",
        help="a share, as 0.2, or a number of documents",
    )
    for part in ("--train", "--test"):
        parser.add_argument(part, required=True, metavar="FILE", help=", ".join(CORPUS_SUFFIXES))
