"""Options of the commands on count tensors, and of the search over sizes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from polyabayes.cli.parsers.shared import (
    Parser,
    escape_option,
    estimator_options,
    plot_option,
    vocabulary_option,
)
from polyabayes.cli.parsers.values import Collect, named_size, named_sizes, names, prior


def search_options(parser: Parser) -> None:
    """Options of ``search``."""
    add = parser.add_argument
    add(
        "corpus",
        nargs="+",
        metavar="INPUT",
        help="a corpus, for LDA; or a graph and a tensor, as of 'evidence', one after the other",
    )
    vocabulary_option(parser)
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
    add("--max-steps", type=int, metavar="N", help="stop after as many sizes; default: no limit")
    add("--width", type=float, metavar="X", help="stop where ln p(y) is known to X nats")
    add("--max-seconds", type=float, metavar="X", help="start no size after this time")
    add("--max-unexplored", type=float, metavar="X", help="prior mass that may be left")
    estimator_options(add)
    add("--bound", help="witness, min-witness or paper; default: witness")
    add("--upper", help="multinomial or vacuous; default: multinomial of a corpus")
    add("--level", type=float, metavar="X", help="of all bounds together; default: 0.95")
    add("--checkpoint", metavar="DIR", help="go on from there, if it holds the same search")
    plot_option(parser, "the bounds")
    documents = parser.add_argument_group("of a corpus").add_argument
    documents("--scoring", help="likelihood, or bound (the training's own); default: likelihood")
    documents(
        "--max-iter", type=int, metavar="N", help="iterations of training, each size; default: 200"
    )
    documents(
        "--tol",
        type=float,
        metavar="X",
        help="relative change of the bound that ends it; default: 1e-05",
    )
    documents("--test", metavar="CORPUS", help="bounds on the prediction of these documents, too")
    documents("--folds", type=int, metavar="N", help="average against the best, cross-validated")
    documents(
        "--workers",
        dest="n_workers",
        type=int,
        metavar="N",
        help="processes for the folds; default: 1",
    )
    network = parser.add_argument_group("of a graph and a tensor").add_argument
    _model_options(network, "--table-prior")
    network("--strategy", help="successor, widest or best-first; default: widest")
    network("--given-total", action="store_true", default=None, help="condition on the total")
    network("--budget", type=float, metavar="X", help="multiply-adds of an exact sum")


def network_options() -> Parser:
    """A graph, and a tensor."""
    parser = Parser(add_help=False)
    add = parser.add_argument
    add(
        "graph",
        metavar="GRAPH",
        help="as 'doc -> topic -> word'; nodes that are no axes need --size",
    )
    text = (
        "counts: .tns, .npz, .csv, .parquet, or '-' for FROSTT; axes without names are the "
        "visible nodes in the order of the graph"
    )
    add("tensor", metavar="TENSOR", help=text)
    _model_options(add, "--prior")
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
    add(
        "--concentration",
        type=float,
        metavar="X",
        help="equivalent sample size of the prior; default: 1",
    )
    add("--rate", type=float, metavar="X", help="of the intensity; default: concentration / total")
    add(
        table_prior,
        dest="table_prior",
        choices=("bdeu", "flat"),
        help="of the tables; default: bdeu",
    )
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


def evidence_options(parser: Parser) -> None:
    """Options of ``evidence``."""
    add = parser.add_argument
    add(
        "--method",
        help="exact, smc, smc-lookahead, tempered, vb or auto; default: auto",
    )
    add("--given-total", action="store_true", default=None, help="condition on the total")
    add("--particles", dest="n_particles", type=int, metavar="N", help="smc: per replicate")
    add(
        "--samples",
        dest="n_samples",
        type=int,
        metavar="N",
        help="tempered: scans of the longest round",
    )
    add(
        "--replicates",
        dest="n_replicates",
        type=int,
        metavar="N",
        help="independent estimates; default: 4",
    )
    add(
        "--target-std-error",
        type=float,
        metavar="X",
        help="tempered: error at which rounds end, in nats; default: 0.5",
    )
    add("--max-iter", type=int, metavar="N", help="vb: iterations; default: 1000")
    add("--tol", type=float, metavar="X", help="vb: gain at which iterations end; default: 1e-09")
    add("--restarts", dest="n_restarts", type=int, metavar="N", help="vb: starts; default: 10")
    add(
        "--resampling",
        help="smc: systematic, stratified, residual or multinomial; default: systematic",
    )
    add(
        "--resample-below",
        type=float,
        metavar="X",
        help="smc: share of effective particles; default: 0.5",
    )
    add("--order", help="smc: random or sorted; default: random")
    add("--budget", type=float, metavar="X", help="multiply-adds of an exact sum")
    text = "keep replicates there, and go on from them; of methods that draw, with --seed"
    add("--checkpoint", metavar="DIR", help=text)
    _missing_options(add)
    add("--max-total", type=int, metavar="N", help="with --missing: largest total")
    add(
        "--try",
        dest="tried",
        type=named_sizes,
        metavar="NODE=N..M",
        help="compare all sizes of a hidden node",
    )
    plot_option(parser, "evidence against size, with --try")


def _missing_options(add: Callable[..., Any]) -> None:
    escape_option(add)
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


def decompose_options(parser: Parser) -> None:
    """Options of ``decompose``."""
    add = parser.add_argument
    add("--method", help="vb, em, dual-em, icm, ml, gibbs, smc or tempered; default: vb")
    text = "a folder for one CSV file a table"
    add("-o", "--output", required=True, metavar="FOLDER", help=text)
    add("--max-iter", type=int, metavar="N", help="iterations or sweeps; default: 1000")
    add(
        "--tol",
        type=float,
        metavar="X",
        help="relative gain at which iterations end; default: 1e-09",
    )
    add("--restarts", dest="n_restarts", type=int, metavar="N", help="starts; default: 10")
    add(
        "--burn-in",
        type=int,
        metavar="N",
        help="gibbs: sweeps not averaged over; default: half of them",
    )
    add("--particles", dest="n_particles", type=int, metavar="N", help="of smc")
    _missing_options(add)
