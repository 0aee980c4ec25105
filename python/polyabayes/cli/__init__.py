"""The command line: every subcommand is a thin call of the public API.

Results go to files or to standard output, everything else to standard error. The exit status is
2 after a mistake of the user, with one line that says which, and 130 after Ctrl-C.
"""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from importlib import import_module
from typing import TextIO

from polyabayes import __version__
from polyabayes.cli.arguments import in_options
from polyabayes.cli.messages import BROKEN_PIPE, INTERRUPTED, USER_ERROR, say
from polyabayes.cli.parsers import make_parser
from polyabayes.exceptions import PolyabayesError, PolyabayesWarning

__all__ = ["main"]

# Module of each command, imported when it is called: help and version wait for no library.
_COMMANDS = {
    "fit": "documents",
    "score": "documents",
    "compare": "documents",
    "split": "documents",
    "choose": "topics",
    "topics": "topics",
    "plot": "topics",
    "search": "search",
    "evidence": "tensors",
    "decompose": "tensors",
    "demo": "documents",
    "completion": "completion",
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    argv : sequence of str, optional
        The arguments; None takes those of the process.

    Returns
    -------
    int
        Exit status: 0, 2 after a mistake of the user, 130 after Ctrl-C, 141 when the reader of
        standard output has gone.
    """
    parser = None
    with warnings.catch_warnings():
        warnings.simplefilter("always", PolyabayesWarning)
        try:
            arguments = make_parser(__version__).parse_args(argv)
            parser = arguments.parser
            warnings.showwarning = partial(_show_warning, parser)
            status = _run(arguments)
            sys.stdout.flush()
        except KeyboardInterrupt:
            say("interrupted")
            return INTERRUPTED
        except BrokenPipeError:
            _discard_output()
            return BROKEN_PIPE
        except PolyabayesError as error:
            return _fail(error.told(partial(in_options, parser)))
        except OSError as error:
            _discard_output()
            place = error.filename or "the output"
            return _fail(f"cannot write {place}: {error.strerror or error}")
    return status


def _run(arguments: argparse.Namespace) -> int:
    from polyabayes.cli.output import refuse_overwriting

    refuse_overwriting(arguments)
    module = import_module(f"polyabayes.cli.{_COMMANDS[arguments.command]}")
    command: Callable[[argparse.Namespace], int] = getattr(module, arguments.command)
    return command(arguments)


def _fail(message: str) -> int:
    say(f"error: {' '.join(message.split())}")
    return USER_ERROR


def _show_warning(
    parser: argparse.ArgumentParser | None,
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,  # noqa: ARG001
    line: str | None = None,  # noqa: ARG001
) -> None:
    if issubclass(category, PolyabayesWarning):
        refer = partial(in_options, parser)
        text = message.told(refer) if isinstance(message, PolyabayesWarning) else str(message)
        say(f"warning: {' '.join(text.split())}")
    else:
        print(warnings.formatwarning(message, category, filename, lineno), end="", file=sys.stderr)


def _discard_output() -> None:
    """Send what is left in the buffer nowhere, or Python would complain of it when it exits."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
