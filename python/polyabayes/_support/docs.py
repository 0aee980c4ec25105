"""Shared parts of docstrings, each written once.

A line of a docstring with only the name of a part in braces is replaced by that part.
"""

import inspect
import re
from collections.abc import Mapping
from pathlib import Path
from textwrap import indent
from typing import Any, TypeVar

T = TypeVar("T")

# Name and text of each part in turn; in the file, names stand in brackets.
_TEXT = re.split(
    r"^\[(.+)\]$", Path(__file__).with_name("docs.txt").read_text("utf-8"), flags=re.MULTILINE
)[1:]
_PARTS = {name: part.strip() for name, part in zip(_TEXT[::2], _TEXT[1::2], strict=True)}


def filled(text: str) -> str:
    """A docstring with its parts; ``raises:`` before a name adds the heading of the section."""
    return re.sub(r"^([ \t]*)\{(raises: )?([A-Za-z][\w ,]*)\}$", _part, text, flags=re.MULTILINE)


def _part(found: re.Match[str]) -> str:
    indentation, heading, name = found.groups()
    return indent(("Raises\n------\n" if heading else "") + _PARTS[name], indentation)


def shared_docs(thing: T) -> T:
    """Put the parts into the docstring of a function, or of a class and its methods."""
    members: list[Any] = [thing, *vars(thing).values()] if isinstance(thing, type) else [thing]
    for member in members:
        function = getattr(member, "__func__", member)
        # scikit-learn wraps methods, and each layer has a docstring of its own.
        while function is thing or inspect.isfunction(inspect.unwrap(function)):
            if function.__doc__:
                function.__doc__ = filled(function.__doc__)
            function = getattr(function, "__wrapped__", None)
    return thing


def fill_room(names: Mapping[str, Any]) -> None:
    """Put the parts into the docstrings of all public names of a package."""
    for name in names["__all__"]:
        shared_docs(names[name])
