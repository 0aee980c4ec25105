"""References to arguments in messages of the library, as the options of a command."""

from __future__ import annotations

import argparse
from collections.abc import Mapping

# Names that the library uses for what an option of another name asks for.
_ALSO = {"observed": "missing", "predict_missing": "predict", "n_folds": "folds"}


def in_options(parser: argparse.ArgumentParser | None, reference: str) -> str:
    """An argument of the library, perhaps with a value, as one types it.

    Examples
    --------
    >>> parser = argparse.ArgumentParser()
    >>> _ = parser.add_argument("--particles", dest="n_particles")
    >>> in_options(parser, "n_particles=9"), in_options(parser, "shape")
    ('--particles 9', 'shape')
    """
    options = _options(parser)
    name, equals, value = reference.partition("=")
    name, _, entry = name.partition("[")
    if name not in options:
        return reference
    if entry:
        return f"{options[name]} {entry.strip(chr(39) + ']')}"
    if not equals or value == "True":
        return options[name]
    if value in ("False", "None"):
        return f"no {options[name]}"
    return f"{options[name]} {value.strip(chr(39))}"


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
