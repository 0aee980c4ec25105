"""Parameters of functions and classes, read from their source, so that help imports no library."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from polyabayes._support.docs import filled

_PACKAGE = Path(__file__).parents[1]

_SECTION = r"^{}\n-+\n(.*?)(?=^\S[^\n]*\n---|\Z)"

# Text of a parameter that refers to the same parameter of another function.
_REFERENCE = re.compile(r"(?:As (?:for|of) |Likewise.*?)?:(?:meth|func):`~?([\w.]+)`")


class Parameter(NamedTuple):
    """A parameter: its annotation, its type as the docstring words it, its default and help."""

    name: str
    annotation: str
    wording: str
    default: str | None
    help: str
    is_keyword: bool
    # ``**options``, whose entries have no parameters of their own.
    is_variadic: bool = False


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
    '0.2'
    """
    module, definition = _find(module, name)
    signature = definition
    if isinstance(definition, ast.ClassDef):
        _, signature = _member(module, definition, "__init__")
    assert isinstance(signature, ast.FunctionDef)
    text = filled(ast.get_docstring(definition) or "")
    entries = dict(_entries(_section(text, "Parameters")))
    scope = name.rpartition(".")[0]
    parameters = {
        argument.arg: _parameter(argument, default, entries, scope)._replace(
            is_keyword=argument in signature.args.kwonlyargs
        )
        for argument, default in _arguments(signature.args)
    }
    if signature.args.kwarg is not None:
        rest = signature.args.kwarg.arg
        made = _parameter(ast.arg(rest), None, {rest: entries.get(f"**{rest}", ("", ""))}, scope)
        parameters[rest] = made._replace(is_variadic=True, annotation="Mapping[str, Any]")
    return Documented(text.partition("\n")[0], _section(text, "Examples").strip(), parameters)


def _arguments(arguments: ast.arguments) -> Iterator[tuple[ast.arg, ast.expr | None]]:
    missing: list[ast.expr | None] = [None] * (len(arguments.args) - len(arguments.defaults))
    yield from zip(arguments.args, missing + list(arguments.defaults), strict=True)
    yield from zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)


def _parameter(
    argument: ast.arg, default: ast.expr | None, entries: dict[str, tuple[str, str]], scope: str
) -> Parameter:
    wording, text = entries.get(argument.arg, ("", ""))
    reference = _REFERENCE.match(text)
    if reference:
        target = reference[1].rpartition(".")[2]
        owner = reference[1].rpartition(".")[0] or (scope if ":meth:" in text[:20] else "")
        other = documented(".".join(filter(None, (owner, target)))).parameters.get(argument.arg)
        wording, text = wording or (other.wording if other else ""), other.help if other else text
    annotation = "" if argument.annotation is None else ast.unparse(argument.annotation)
    value = None if default is None else ast.unparse(default)
    told = re.search(r"default=(.+)$", wording)
    return Parameter(
        argument.arg, annotation, wording, told[1] if told else value, _brief(text), False
    )


def _section(text: str, title: str) -> str:
    found = re.search(_SECTION.format(title), text, re.MULTILINE | re.DOTALL)
    return found[1] if found else ""


def _entries(section: str) -> Iterator[tuple[str, tuple[str, str]]]:
    """Type and text by the names of each entry of a numpydoc section."""
    for head, body in re.findall(r"^(\S[^\n]*)\n((?:[ \t]+[^\n]*\n?|\n)*)", section, re.MULTILINE):
        names, _, wording = head.partition(" : ")
        for name in names.split(","):
            yield name.strip().strip("`"), (wording, inspect.cleandoc(body))


def _brief(text: str) -> str:
    """The first sentence, and those about the default, as plain text; of a table its names."""
    table = next((part for part in text.split("\n\n") if part.startswith("===")), "")
    if table:
        rows = re.findall(r"^([`a-z][^\n]*?)(?: {2,}|$)", table, re.MULTILINE)
        rows = [row.rstrip(",") for row in rows if row != "method"]
        return re.sub(r'[`"]', "", ", ".join(rows))
    plain = re.sub(r":\w+(?::\w+)?:`~?\.?([^`<]*?)(?: <[^`]*>)?`", r"\1", text)
    plain = re.sub(r"[`\"]", "", " ".join(plain.partition("\n\n")[0].split()))
    first, *others = re.split(r"(?<=\w\w[.)\]])\s+(?=[A-Z])", plain)
    told = [sentence for sentence in others if re.match("None|Default|By default", sentence)]
    return " ".join([first, *told]).rstrip(".").replace("None means", "By default")


@cache
def _source(module: str) -> ast.Module:
    path = _PACKAGE.joinpath(*module.split(".")[1:])
    places = (path / "__init__.pyi", path / "__init__.py", path.with_suffix(".py"))
    return ast.parse(next(place for place in places if place.is_file()).read_text("utf-8"))


def _find(module: str, name: str) -> tuple[str, ast.ClassDef | ast.FunctionDef]:
    """Module and definition of a name, through the imports of packages."""
    first, _, rest = name.partition(".")
    for node in _source(module).body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name == first:
            return _member(module, node, rest) if rest else (module, node)
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                if (alias.asname or alias.name) == first:
                    origin = ".".join(filter(None, (module if node.level else "", node.module)))
                    if node.module is None:
                        return _find(f"{origin}.{alias.name}", rest)
                    return _find(origin, ".".join(filter(None, (alias.name, rest))))
    raise LookupError(f"{module} has no {first}")


def _member(module: str, owner: ast.AST, name: str) -> tuple[str, ast.FunctionDef]:
    """A method of a class, or of one of its bases."""
    assert isinstance(owner, ast.ClassDef)
    for node in owner.body:
        if isinstance(node, ast.FunctionDef) and node.name == name:
            return module, node
    for base in owner.bases:
        if isinstance(base, ast.Name):
            try:
                return _member(*_find(module, base.id), name)
            except LookupError:
                continue
    raise LookupError(f"{owner.name} has no {name}")
