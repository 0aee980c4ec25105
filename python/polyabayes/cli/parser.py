"""The parser of the command line, made from signatures and docstrings of functions.

A command is a function of the rooms beside this file. Its own parameters are its arguments and
options; parameters of the public functions that :data:`COMMANDS` names for it are further options.
Options have no defaults: what the user leaves out is left to the functions.
"""

from __future__ import annotations

import argparse
import importlib.util
import re
import sys
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn

from polyabayes.cli.signatures import Documented, Parameter, documented
from polyabayes.cli.values import how_to_read, is_repeatable
from polyabayes.exceptions import InvalidArgumentError, argument

# Options with another name than their parameter, beside that.
_ALSO = {
    "random_state": "--seed",
    "n_components": "-k",
    "doc_topic_prior": "--alpha",
    "topic_word_prior": "--eta",
    "output": "-o",
    "formula": "--prevalence",
}
# Functions whose first parameter says what an argument of this name may be.
_INPUTS = {"CORPUS": "read_corpus", "MODEL": "interop.read_model", "TENSOR": "read_tensor"}
# Type and help of arguments that several commands have, and whose docstrings leave them out.
_SHARED = {
    "model": ("MODEL", ""),
    "corpus": ("CORPUS", ""),
    "on": ("CORPUS", ""),
    "tensor": ("TENSOR", ""),
    "graph": ("GRAPH", "As 'doc -> topic -> word'; nodes that are no axes need --size"),
    "missing": ("TENSOR", "Cells that were not observed, by a 1 in each; needs --rate"),
    "predict": (
        "CELLS.csv|CELLS.parquet",
        "Expected counts of the missing cells; '-' is CSV on standard output",
    ),
}
# Options that no function of the package has: flags of every command, and what commands on
# documents read beside them.
_FLAGS = {
    "--verbose": "Tell on standard error what is being done",
    "--escape-formulas": "Put ' before text in tables that begins with = + - @, which spreadsheets "
    "execute",
}
_METADATA = (
    "Table with a row for each document, of which formulas and groups are columns; a column with "
    "the names of all documents matches the rows, else their order does; .npz keeps its own"
)
# Names that messages of the library use for what an option of another name asks for.
_SAME = {
    "observed": "missing",
    "predict_missing": "predict",
    "X": "corpus",
    "by": "drop_duplicates",
    "notes": "note",
    "covariates": "metadata",
}


@dataclass(frozen=True)
class Takes:
    """Parameters of a function that a command hands on: all that text can stand for."""

    call: str
    # Kind of input or model that they are for, where a command has several.
    of: str = ""
    only: Collection[str] = ()
    without: Collection[str] = ()
    # Parameters that the command calls something else.
    names: Mapping[str, str] = field(default_factory=dict)

    def options(self) -> Iterator[tuple[str, Parameter]]:
        """Parameters that are options, by the name in the command."""
        for name, parameter in documented(self.call).parameters.items():
            wanted = name in self.only if self.only else name not in self.without
            optional = parameter.default is not None or parameter.is_variadic
            if wanted and optional and how_to_read(parameter) is not None:
                yield self.names.get(name, name), parameter


# Options of formats, which read_corpus takes by any name.
_OF_FORMATS = ("layout", "feature_type", "token_pattern")
_READING = {"options": "read_options", "metadata": "metadata_columns"}
_OF_TEXTS = ("stop_words", "min_df", "max_df", "ngram_range", "stem", "on_empty")
_CORPUS = Takes("read_corpus", names=_READING), Takes("Corpus.from_documents", only=_OF_TEXTS)
_TENSOR = Takes("read_tensor", names=_READING)
# What every command takes, even one that has no use for it.
_GENERAL = Takes("log_likelihood", only=("random_state", "n_jobs", "progress"))
# Arrays with a row for each document come with the model or the corpus.
_OF_DOCUMENTS = ("layer", "exposure", "doc_topic_prior", "shape", "covariates")
_SCORING = Takes("log_likelihood", without=(*_OF_DOCUMENTS, "trace"))
_CHOSEN = ("n_components", "checkpoint", "checkpoint_every", "random_state", "progress")
_MODEL = Takes("AllocationModel", without=("axes",))
_OF_NETWORK, _OF_CORPUS = "a graph and a tensor", "a corpus"
_ESTIMATION = ["method", "n_particles", "n_samples", "n_replicates", "target_std_error"]

# Module of each command, and the functions that it calls.
COMMANDS: dict[str, tuple[str, tuple[Takes, ...]]] = {
    "fit": (
        "documents",
        (
            *_CORPUS,
            Takes("LatentDirichletAllocation", "lda"),
            Takes("PoissonFactorAnalysis", "pfa"),
        ),
    ),
    "score": ("documents", (*_CORPUS, _SCORING)),
    "compare": (
        "documents",
        (Takes("compare", without=(*_OF_DOCUMENTS, "scoring")), _SCORING, *_CORPUS),
    ),
    "convert": ("corpora", (*_CORPUS, Takes("Corpus.filter", only=("min_tokens",)))),
    "split": ("corpora", (*_CORPUS, Takes("Corpus.split"))),
    "choose": (
        "documents",
        (
            *_CORPUS,
            Takes("choose_n_components", without=("options", "layer", "exposure")),
            Takes("LatentDirichletAllocation", "lda", without=_CHOSEN),
            Takes("PoissonFactorAnalysis", "pfa", without=_CHOSEN),
        ),
    ),
    "topics": ("topics", (*_CORPUS, Takes("topics.report", without=("title", "layer")))),
    "transform": (
        "topics",
        (*_CORPUS, Takes("LatentDirichletAllocation.topic_weights", only=("unseen",))),
    ),
    "info": ("topics", ()),
    "plot": ("topics", (*_CORPUS, Takes("plotting.plot_topics", only=("n_words",)))),
    "search": (
        "networks",
        (
            Takes("WitnessSearch", without=("kind", "scoring", "scoring_options")),
            Takes("log_likelihood", _OF_CORPUS, only=(*_ESTIMATION, "budget")),
            Takes("WitnessSearch", _OF_CORPUS, only=("scoring",)),
            Takes("LatentDirichletAllocation", _OF_CORPUS, only=("max_iter", "tol")),
            Takes("cross_validate", _OF_CORPUS, only=("n_folds", "n_workers", "groups", "times")),
            Takes("read_corpus", _OF_CORPUS, names=_READING),
            Takes("Corpus.from_documents", _OF_CORPUS, only=_OF_TEXTS),
            Takes(
                "AllocationModel", _OF_NETWORK, without=("axes",), names={"prior": "table_prior"}
            ),
            Takes(
                "AllocationModel.log_evidence",
                _OF_NETWORK,
                only=(*_ESTIMATION, "budget", "given_total"),
            ),
            Takes("read_tensor", _OF_NETWORK, names=_READING),
        ),
    ),
    "evidence": (
        "networks",
        (
            _TENSOR,
            _MODEL,
            Takes("AllocationModel.log_evidence"),
            Takes("posterior_over_models", only=("checkpoint",)),
        ),
    ),
    "decompose": ("networks", (_TENSOR, _MODEL, Takes("AllocationModel.decompose"))),
    "classes": ("classes", (Takes("LatentClassAnalysis"),)),
    "demo": ("demo", ()),
    "completion": ("documents", ()),
}


class Given(argparse.Namespace):
    """Arguments of a command; an option that the user did not give is None."""

    command: str
    parser: Parser

    def of(self, *calls: str) -> dict[str, Any]:
        """Keywords for public functions of the package: the options given."""
        found: dict[str, Any] = {}
        for takes in (*COMMANDS[self.command][1], _GENERAL):
            if takes.call not in calls:
                continue
            for name, parameter in takes.options():
                value = getattr(self, name)
                if value is None and parameter.name == "progress":
                    value = _shows_progress() or None
                if value is not None and parameter.is_variadic:
                    found |= value
                elif value is not None:
                    found[parameter.name] = value
        return found

    def own(self) -> dict[str, Any]:
        """Arguments of the command itself; those not given have their defaults."""
        values = {name: getattr(self, name) for name in described(self.command).parameters}
        return {name: value for name, value in values.items() if value is not None}

    def refuse_other_kinds(self, kind: str) -> None:
        """Refuse options that are for another kind of input or model than this one."""
        for name, kinds in _kinds_of_options(COMMANDS[self.command][1]).items():
            if getattr(self, name) is not None and not {"", kind} & set(kinds):
                raise InvalidArgumentError(
                    f"{argument(name)} is an option of {kinds[0]}, not of {kind}"
                )


def _kinds_of_options(functions: tuple[Takes, ...]) -> dict[str, list[str]]:
    """Kinds of input or model that each option is for."""
    kinds: dict[str, list[str]] = {}
    for takes in functions:
        for name, _ in takes.options():
            kinds.setdefault(name, []).append(takes.of)
    return kinds


def described(command: str) -> Documented:
    """A command's own signature and docstring."""
    found = documented(command, f"polyabayes.cli.{COMMANDS[command][0]}")
    parameters = {}
    for name, parameter in found.parameters.items():
        if name != "given":
            wording, text = _SHARED.get(name, ("", ""))
            if not parameter.wording:
                parameter = parameter._replace(wording=wording, help=text)
            parameters[name] = parameter
    return found._replace(parameters=parameters)


def _shows_progress() -> bool:
    """Whether someone looks at standard error, and there is something to draw a bar with."""
    return sys.stderr.isatty() and importlib.util.find_spec("tqdm") is not None


class Parser(argparse.ArgumentParser):
    """A parser that raises InvalidArgumentError and keeps the lines of examples."""

    def __init__(self, **options: Any) -> None:
        super().__init__(
            formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False, **options
        )

    def error(self, message: str) -> NoReturn:
        """Raise an error that says where help is."""
        raise InvalidArgumentError(f"{message}; see {self.prog} --help")

    def in_options(self, reference: str) -> str:
        """An argument of the library, perhaps with a value, as one types it.

        Examples
        --------
        >>> parser = Parser()
        >>> _ = parser.add_argument("--n-particles", "--particles")
        >>> parser.in_options("n_particles=9"), parser.in_options("shape")
        ('--particles 9', 'shape')
        """
        shown = {
            action.dest: [name for name in action.option_strings if not name.startswith("--no-")][
                -1
            ]
            if action.option_strings
            else action.dest.upper()
            for action in self._actions
        }
        name, equals, value = reference.partition("=")
        name, _, entry = name.partition("[")
        name = "metadata_columns" if name == "metadata" and value else name
        option = shown.get(name) or shown.get(_SAME.get(name, ""))
        if option is None and name in _OF_FORMATS and value and "read_options" in shown:
            return f"{shown['read_options']} {name}={value.strip(chr(39))}"
        if option is None:
            return reference
        if entry:
            return f"{option} {entry.strip(chr(39) + ']')}"
        if not equals or value == "True":
            return option
        if value in ("False", "None"):
            return f"no {option}"
        parts = [part.strip(chr(39)) for part in value.strip("[]").split(", ")]
        return f"{option} {','.join(parts)}"


def parse(argv: list[str], version: str) -> Given:
    """Parse arguments; what a command does not know is for its own parser to refuse."""
    parser = make_parser(version, argv)
    given, unknown = parser.parse_known_args(argv, Given())
    if unknown:
        given.parser.error(f"unrecognized arguments: {' '.join(unknown)}")
    return given


def make_parser(version: str, named: Collection[str] = tuple(COMMANDS)) -> Parser:
    """Make the parser, with the options of those commands that are named."""
    parser = Parser(
        prog="polyabayes",
        description="How probable are count data under a model? Exact and unbiased likelihoods "
        "with error bars.",
        epilog="polyabayes COMMAND --help tells the options of a command, and an example.",
    )
    parser.add_argument("--version", action="version", version=f"polyabayes {version}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    for name, (_, functions) in COMMANDS.items():
        command = described(name)
        summary = command.summary.rstrip(".")
        example = command.example.replace("$ ", "  ")
        added: Parser = commands.add_parser(
            name, help=summary, description=summary, epilog=f"example:\n{example}"
        )
        added.set_defaults(command=name, parser=added)
        if name in named:
            _add_options(added, command.parameters, functions)
    return parser


def _add_options(
    parser: Parser, own: Mapping[str, Parameter], functions: tuple[Takes, ...]
) -> None:
    for parameter in own.values():
        _add_own(parser, parameter)
    kinds = _kinds_of_options(functions)
    for flag, text in _FLAGS.items():
        parser.add_argument(flag, action="store_true", help=text)
    if any(takes.call == "read_corpus" for takes in functions):
        parser.add_argument("--metadata", metavar="TABLE.csv|TABLE.parquet", help=_METADATA)
    for takes in (*functions, _GENERAL):
        for name, parameter in takes.options():
            if name not in own and not any(name == action.dest for action in parser._actions):
                is_of_one = takes.of and set(kinds[name]) == {takes.of}
                help_ = f"of {takes.of}: " if is_of_one else ""
                _add(parser, name, parameter, help_ + _help(parameter))


def _help(parameter: Parameter) -> str:
    default = parameter.default
    text = parameter.help
    if parameter.name == "progress":
        text, default = text.replace(" (needs tqdm)", ""), "on a terminal, with tqdm"
    if default not in (None, "None", "False", "()"):
        text += "; default: " + str(default).strip("'\"")
    names = re.match(r"\{.*?\}", parameter.wording)
    return f"{names[0].replace(chr(34), '')} {text}" if names else text


def _add(parser: Parser, name: str, parameter: Parameter, text: str) -> None:
    typed = (name.removesuffix("s") if is_repeatable(parameter) else name).replace("_", "-")
    flags = [f"--{typed}"]
    if typed.startswith("n-"):
        flags.append(f"--{typed.removeprefix('n-')}")
    if name in _ALSO:
        flags.append(_ALSO[name])
    how = how_to_read(parameter)
    assert how is not None
    parser.add_argument(*flags, dest=name, default=None, help=text.replace("%", "%%"), **how)


def _add_own(parser: Parser, parameter: Parameter) -> None:
    """An argument, or an option, of the command itself."""
    wording = parameter.wording
    text = parameter.help
    if wording in _INPUTS and not text:
        read = next(iter(documented(_INPUTS[wording]).parameters.values()))
        text = read.help
        if wording != "MODEL":
            piped = "FROSTT (.tns)" if wording == "TENSOR" else "LDA-C"
            text += f", or '-' for {piped} from standard input"
    how: dict[str, Any] = {"help": text.replace("%", "%%")}
    if parameter.annotation != "bool":
        how["metavar"] = wording
    if parameter.is_keyword:
        flags = [f"--{parameter.name.replace('_', '-').rstrip('-')}"]
        flags += filter(None, [_ALSO.get(parameter.name)])
        how = {**(how_to_read(parameter) or {}), **how, "required": parameter.default is None}
        parser.add_argument(*flags, dest=parameter.name, default=None, **how)
        return
    if wording.startswith("{"):
        how |= {"choices": re.findall(r'"(.*?)"', wording), "metavar": None}
    if is_repeatable(parameter):
        how["nargs"] = "+"
    parser.add_argument(parameter.name, **how)
