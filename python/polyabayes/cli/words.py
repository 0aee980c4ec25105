"""Messages of the library in the words of the command line.

The library speaks of its arguments by name, as ``max_total=9`` or ``n_particles``; whoever types
options wants to read ``--max-total 9`` and ``--particles``.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping

__all__ = ["in_options"]

# What the library calls a thing that an option of another name asks for.
_ALSO = {"observed": "missing", "predict_missing": "predict", "n_folds": "folds"}

_VALUE = r"""'[^']*'|"[^"]*"|\{[^}]*\}|\.\.\.|[\w+-]+(?:\.\d+)?"""


def in_options(message: str, parser: argparse.ArgumentParser | None) -> str:
    """Replace the names of arguments by the options that `parser` has for them.

    A name is one beyond doubt where it has a value, an underscore or backquotes; one that may be
    an English word, as ``rate``, where it begins the message, or where a value is told to change.

    Examples
    --------
    >>> parser = argparse.ArgumentParser()
    >>> _ = parser.add_argument("--particles", dest="n_particles")
    >>> _ = parser.add_argument("--budget")
    >>> in_options("raise budget, or use n_particles=9", parser)
    'raise --budget, or use --particles 9'
    """
    options = _options(parser)
    if not options:
        return message
    names = "|".join(map(re.escape, options))
    long = "|".join(re.escape(name) for name in options if "_" in name) or "(?!)"

    def flag(match: re.Match[str]) -> str:
        return options[match["name"]]

    def setting(match: re.Match[str]) -> str:
        return _setting(options[match["name"]], match["value"])

    def listed(match: re.Match[str]) -> str:
        return re.sub(rf"\b(?P<name>{names})\b", flag, match[0])

    rules = [
        (rf"(?<![\w.'\"])(?P<name>{names})=(?P<value>{_VALUE})", setting),
        (rf"`(?P<name>{names})`", flag),
        (rf"^(?P<name>{names})\[(?P<value>'\w+')\]", setting),
        (rf"^(?P<name>{names}) (?P<value>'[\w-]+')", setting),
        (rf"^(?P<name>{names})(?=[ :])", flag),
        (rf"(?<![\w.'\"-])(?P<name>{long})(?![\w'\"(])", flag),
        (rf"(?:(?<=raise )|(?<=lower )|(?<=takes no )|(?<=smaller ))(?P<name>{names})\b", flag),
        (r"(?<=its options: )[\w, -]+", listed),
    ]
    for pattern, said in rules:
        message = re.sub(pattern, said, message)
    return message


def _options(parser: argparse.ArgumentParser | None) -> Mapping[str, str]:
    """Long option by name of the argument."""
    actions = [] if parser is None else parser._actions
    options = {
        action.dest: max(action.option_strings, key=lambda flag: flag.startswith("--"))
        for action in actions
        if action.option_strings
    }
    options |= {name: options[other] for name, other in _ALSO.items() if other in options}
    return options | {"X": "CORPUS"} if any(a.dest == "corpus" for a in actions) else options


def _setting(flag: str, value: str) -> str:
    """An option with a value, as one types it."""
    if value in ("True", "False", "None"):
        return flag if value == "True" else f"no {flag}"
    if value.startswith("{"):
        value = re.sub(r"'(\w+)': ", r"\1=", value.strip("{}"))
    bare = value.strip("'\"")
    return f"{flag} {bare}"
