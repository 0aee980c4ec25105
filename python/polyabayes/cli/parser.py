"""The parser of the command line, made from signatures and docstrings of functions.

A command is a function of the rooms beside this file. Its own parameters are its arguments and
options; parameters of the public functions that :data:`COMMANDS` names for it are further options.
Options have no defaults: what the user leaves out is left to the functions.
"""

from __future__ import annotations

import argparse
import ast
import importlib.util
import inspect
import re
import shlex
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import import_module
from operator import attrgetter
from typing import Any, NamedTuple, NoReturn

from polyabayes.cli.values import how_to_read, is_repeatable
from polyabayes.exceptions import InvalidArgumentError, argument

# Additional flags of options, by parameter.
_ALSO = {
    "random_state": "--seed",
    "n_components": "-k",
    "doc_topic_prior": "--alpha",
    "topic_word_prior": "--eta",
    "output": "-o",
    "formula": "--prevalence",
}
# Help of arguments that several commands share.
_SHARED = {
    "model": "A file of fit or save, a fit of R's stm, or a state of MALLET",
    "corpus": "A file or folder of documents of any format; '-' is LDA-C from standard input",
    "tensor": "A .tns, .npz, CSV or Parquet file; '-' is .tns from standard input",
    "missing": "Cells that were not observed, by a 1 in each; needs --rate",
    "predict": "Expected counts of the missing cells; '-' is CSV on standard output",
    "graph": "As 'doc -> topic -> word'; nodes that are no axes need --size",
}
_SHARED |= {"models": _SHARED["model"], "on": _SHARED["corpus"]}
_METADATA = (
    "Table with a row for each document, of which formulas and groups are columns; a column with "
    "the names of all documents matches the rows, else their order does; .npz keeps its own"
)
# Options of commands by the names that messages of the library use for them.
_SAME = {
    "observed": "missing",
    "predict_missing": "predict",
    "X": "corpus",
    "covariates": "metadata",
}
# Parameters whose values cannot be written as text.
_UNTYPED = {"self", "executor", "callback", "init", "predictive", "observed", "ax"}


class Parameter(NamedTuple):
    """A parameter: its annotation, its type as the docstring words it, its default and help."""

    name: str
    annotation: str
    wording: str
    default: Any
    help: str
    kind: Any

    def how_to_read(self) -> dict[str, Any]:
        """Arguments of ``add_argument`` that read its value."""
        return how_to_read(self.name, self.annotation, self.default)

    @property
    def is_variadic(self) -> bool:
        """Whether it is ``**options``, whose entries have no parameters of their own."""
        return bool(self.kind is inspect.Parameter.VAR_KEYWORD)

    @property
    def is_required(self) -> bool:
        """Whether it has no default."""
        return self.default is inspect.Parameter.empty and not self.is_variadic


class Documented(NamedTuple):
    """A function or class: the first line of its docstring, its example and its parameters."""

    summary: str
    example: str
    parameters: dict[str, Parameter]


@cache
def documented(name: str, module: str = "polyabayes") -> Documented:
    """Read the signature and the docstring of a function, class or method of a module.

    Examples
    --------
    >>> documented("Corpus.split").parameters["test_size"].default
    0.2
    """
    called = attrgetter(name)(import_module(module))
    text = inspect.getdoc(called) or ""
    entries = dict(_entries(_section(text, "Parameters")))
    parameters = {}
    for one in inspect.signature(called).parameters.values():
        wording, help_ = entries.get(one.name, ("", ""))
        kind = "Mapping[str, Any]" if one.kind is one.VAR_KEYWORD else str(one.annotation)
        parameters[one.name] = Parameter(one.name, kind, wording, one.default, help_, one.kind)
    return Documented(text.partition("\n")[0], _section(text, "Examples").strip(), parameters)


def _section(text: str, title: str) -> str:
    """Lines of a section of a numpydoc docstring."""
    return re.split(r"\n\S.*\n---+\n", text.partition(f"\n{title}\n{'-' * len(title)}\n")[2])[0]


def _entries(section: str) -> Iterator[tuple[str, tuple[str, str]]]:
    """Type and first sentence by the names of each entry of a numpydoc section."""
    for head, body in re.findall(r"^(\S.*)\n((?:[ \t].*\n?|\n)*)", section, re.MULTILINE):
        names, _, wording = head.partition(" : ")
        paragraph = " ".join(inspect.cleandoc(body).partition("\n\n")[0].split())
        plain = re.sub(r":[\w:]+:`~?\.?([^`]*)`|[`\"]", r"\1", paragraph)
        first = re.split(r"(?<=\w\w[.)\]])\s+(?=[A-Z])", plain)[0].rstrip(".")
        for name in names.split(","):
            yield name.strip(" `*"), (wording, first)


@dataclass(frozen=True)
class Takes:
    """Parameters of a function that a command hands on: all that text can stand for."""

    call: str
    # Kind of input or model, if the command has several kinds.
    of: str = ""
    only: Collection[str] = ()
    without: Collection[str] = ()
    # Other names of parameters on the command line.
    names: Mapping[str, str] = field(default_factory=dict)

    def options(self) -> Iterator[tuple[str, Parameter]]:
        """Parameters that are options, by the name in the command."""
        for name, parameter in documented(self.call).parameters.items():
            wanted = name in self.only if self.only else name not in self.without
            if wanted and not parameter.is_required and name not in _UNTYPED:
                yield self.names.get(name, name), parameter


# Options of formats, which read_corpus takes by any name.
_OF_FORMATS = ("layout", "feature_type", "token_pattern", "skiprows")
_READING = {"options": "read_options", "metadata": "metadata_columns"}
_OF_TEXTS = ("stop_words", "min_df", "max_df", "ngram_range", "stem", "on_empty")
_CORPUS = Takes("read_corpus", names=_READING), Takes("Corpus.from_documents", only=_OF_TEXTS)
_TENSOR = Takes("read_tensor", names=_READING)
# Options of every command, even of one without use for them.
_GENERAL = Takes("log_likelihood", only=("random_state", "n_jobs", "progress"))
# Arrays with a row for each document come with the model or the corpus.
_OF_DOCUMENTS = ("layer", "exposure", "doc_topic_prior", "shape", "covariates")
_SCORING = Takes("log_likelihood", without=(*_OF_DOCUMENTS, "trace"))
_CHOSEN = ("n_components", "checkpoint", "checkpoint_every", "random_state", "progress")
_LDA, _PFA = Takes("LatentDirichletAllocation", "lda"), Takes("PoissonFactorAnalysis", "pfa")
_MODEL = Takes("AllocationModel", without=("axes",))
_ESTIMATION = ("method", "n_particles", "n_samples", "n_replicates", "target_std_error", "budget")
# Options of a search by its input.
_SEARCHES = {
    "a corpus": (
        Takes("log_likelihood", only=_ESTIMATION),
        Takes("WitnessSearch", only=("scoring",)),
        Takes("LatentDirichletAllocation", only=("max_iter", "tol")),
        Takes("cross_validate", only=("n_folds", "groups", "times")),
        *_CORPUS,
    ),
    "a graph and a tensor": (
        replace(_MODEL, names={"prior": "table_prior"}),
        Takes("AllocationModel.log_evidence", only=(*_ESTIMATION, "given_total")),
        _TENSOR,
    ),
}
_SEARCHING = tuple(replace(takes, of=of) for of, those in _SEARCHES.items() for takes in those)

# Module of each command, and the functions that it calls.
COMMANDS: dict[str, tuple[str, Sequence[Takes]]] = {
    "fit": ("documents", [*_CORPUS, _LDA, _PFA]),
    "score": ("documents", [*_CORPUS, _SCORING]),
    "compare": (
        "documents",
        [Takes("compare", without=(*_OF_DOCUMENTS, "scoring")), _SCORING, *_CORPUS],
    ),
    "choose": (
        "documents",
        [
            *_CORPUS,
            Takes("choose_n_components", without=("options", "layer", "exposure")),
            replace(_LDA, without=_CHOSEN),
            replace(_PFA, without=_CHOSEN),
        ],
    ),
    "topics": ("topics", [*_CORPUS, Takes("topics.report", without=("title", "layer"))]),
    "transform": (
        "topics",
        [*_CORPUS, Takes("LatentDirichletAllocation.topic_weights", only=("unseen",))],
    ),
    "plot": ("topics", [*_CORPUS, Takes("plotting.plot_topics", only=("n_words",))]),
    "search": (
        "networks",
        [Takes("WitnessSearch", without=("kind", "scoring", "scoring_options")), *_SEARCHING],
    ),
    "evidence": (
        "networks",
        [
            _TENSOR,
            _MODEL,
            Takes("AllocationModel.log_evidence"),
            Takes("posterior_over_models", only=("checkpoint",)),
        ],
    ),
    "decompose": ("networks", [_TENSOR, _MODEL, Takes("AllocationModel.decompose")]),
    "classes": ("classes", [Takes("LatentClassAnalysis")]),
    "demo": ("demo", []),
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


def _kinds_of_options(functions: Sequence[Takes]) -> dict[str, list[str]]:
    """Kinds of input or model that each option is for."""
    kinds: dict[str, list[str]] = {}
    for takes in functions:
        for name, _ in takes.options():
            kinds.setdefault(name, []).append(takes.of)
    return kinds


def described(command: str) -> Documented:
    """A command's own signature and docstring."""
    found = documented(command, f"polyabayes.cli.{COMMANDS[command][0]}")
    own = {name: one for name, one in found.parameters.items() if name != "given"}
    return found._replace(parameters=own)


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

    def _print_message(self, message: str, file: Any = None) -> None:
        # argparse ignores errors of writing; here they are raised.
        (file or sys.stderr).write(message)
        (file or sys.stderr).flush()

    def in_options(self, reference: str) -> str:
        """An argument of the library, perhaps with a value, as one types it.

        Examples
        --------
        >>> parser = Parser()
        >>> _ = parser.add_argument("--n-particles", "--particles")
        >>> parser.in_options("n_particles=9"), parser.in_options("shape")
        ('--particles 9', 'shape')
        >>> _ = parser.add_argument("--missing")
        >>> parser.in_options("missing={'trust': [77, 88], 'vote': [7]}")
        '--missing trust=77,trust=88,vote=7'
        >>> parser.in_options("missing=[-4, -1]")
        '--missing=-4,-1'
        """
        name, equals, value = reference.partition("=")
        name, _, entry = name.partition("[")
        shown = {action.dest: action for action in self._actions}
        # --metadata is a file; the metadata of a reader are columns.
        name = "metadata_columns" if name == "metadata" and value else name
        action = shown.get(name) or shown.get(_SAME.get(name, ""))
        if action is None and name in _OF_FORMATS and value and "read_options" in shown:
            name, value = "read_options", f"{name}={value.strip(chr(39))}"
            action = shown[name]
        if action is None:
            return f"{reference} in Python" if value else reference
        typed = [flag for flag in action.option_strings if not flag.startswith("--no-")]
        option = typed[-1] if typed else action.dest.upper()
        if entry:
            return f"{option} {entry.strip(chr(39) + ']')}"
        if not equals or value == "True":
            return option
        if value in ("False", "None"):
            return f"no {option}"
        if value.startswith("{"):
            value = ", ".join(f"{k}={x}" for k, own in ast.literal_eval(value).items() for x in own)
        entries = ",".join(x.strip(chr(39)) for x in value.strip("[]").split(", "))
        # What begins with a minus would be an option.
        return f"{option}{' ='[entries.startswith('-')]}{shlex.quote(entries)}"


def parse(argv: list[str], version: str) -> Given:
    """Parse arguments; what a command does not know is for its own parser to refuse."""
    parser = make_parser(version, next((name for name in argv if name in COMMANDS), None))
    given, unknown = parser.parse_known_args(argv, Given())
    if unknown:
        given.parser.error(f"unrecognized arguments: {' '.join(unknown)}")
    return given


def make_parser(version: str, named: str | None) -> Parser:
    """Make the parser, with the options of the command that is named, or what each command does."""
    parser = Parser(
        prog="polyabayes",
        description="How probable are count data under a model? Exact and unbiased likelihoods "
        "with error bars.",
        epilog="polyabayes COMMAND --help tells the options of a command, and an example.",
    )
    parser.add_argument("--version", action="version", version=f"polyabayes {version}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    for name, (_, functions) in COMMANDS.items():
        if named not in (None, name):
            commands.add_parser(name)
            continue
        command = described(name)
        summary = command.summary.rstrip(".")
        example = "example:\n" + command.example.replace("$ ", "  ")
        added = commands.add_parser(name, help=summary, description=summary, epilog=example)
        added.set_defaults(command=name, parser=added)
        if named:
            _add_options(added, command.parameters, functions)
    return parser


def _add_options(parser: Parser, own: Mapping[str, Parameter], functions: Sequence[Takes]) -> None:
    for parameter in own.values():
        _add_own(parser, parameter)
    parser.add_argument("--verbose", action="store_true", help="Tell what is being done")
    if any(takes.call == "read_corpus" for takes in functions):
        parser.add_argument("--metadata", metavar="TABLE.csv|TABLE.parquet", help=_METADATA)
    kinds, added = _kinds_of_options(functions), set(own)
    for takes in (*functions, _GENERAL):
        for name, parameter in takes.options():
            if name not in added:
                is_of_one = takes.of and set(kinds[name]) == {takes.of}
                help_ = f"of {takes.of}: " if is_of_one else ""
                how = {**parameter.how_to_read(), "help": help_ + _help(parameter)}
                parser.add_argument(*_flags(name, parameter), dest=name, default=None, **how)
                added.add(name)


def _help(parameter: Parameter) -> str:
    default = "" if parameter.name == "progress" else parameter.default
    choices = re.match(r"\{.*?\}", parameter.wording.replace('"', ""))
    text = f"{choices[0]} {parameter.help}" if choices else parameter.help
    if default not in (None, False, "", (), inspect.Parameter.empty):
        text += f"; default: {default}"
    return text.replace("%", "%%")


def _flags(name: str, parameter: Parameter) -> list[str]:
    one = name.removesuffix("s") if is_repeatable(parameter.annotation) else name
    typed = one.replace("_", "-")
    short = [f"--{typed.removeprefix('n-')}"] if typed.startswith("n-") else []
    return [f"--{typed.rstrip('-')}", *short, *filter(None, [_ALSO.get(name)])]


def _add_own(parser: Parser, parameter: Parameter) -> None:
    """An argument, or an option, of the command itself."""
    name, wording = parameter.name, parameter.wording
    text = parameter.help or _SHARED.get(name, "")
    how: dict[str, Any] = {**parameter.how_to_read(), "help": text.replace("%", "%%")}
    if "metavar" in how and wording:
        how["metavar"] = wording
    if parameter.kind is inspect.Parameter.KEYWORD_ONLY:
        how |= {"dest": name, "default": None, "required": parameter.is_required}
        parser.add_argument(*_flags(name, parameter), **how)
    elif parameter.annotation.startswith("Literal"):
        choices = ast.literal_eval(parameter.annotation.removeprefix("Literal"))
        parser.add_argument(name, choices=choices, help=how["help"])
    else:
        if how.pop("action", None):
            how["nargs"] = "+"
        parser.add_argument(name, **{**how, "metavar": wording or name.upper()})
