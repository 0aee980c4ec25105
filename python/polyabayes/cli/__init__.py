"""The command line: every subcommand is a thin call of the public API.

Results go to files or to standard output, everything else to standard error. The exit status is
2 after a mistake of the user, with one line that says which, and 130 after Ctrl-C.
"""

from __future__ import annotations

import io
import logging
import os
import re
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from importlib import import_module
from typing import TextIO

from polyabayes import __version__
from polyabayes.cli.parser import COMMANDS, Given, Parser, parse
from polyabayes.exceptions import Interrupted, PolyabayesError, PolyabayesWarning

__all__ = ["main"]

# Exit status after an input error, after Ctrl-C, and when nobody reads the output.
_USER_ERROR, _INTERRUPTED, _BROKEN_PIPE = 2, 130, 141


class _Closed(io.TextIOBase):
    """Standard output that is closed: a pipe without a reader."""

    def write(self, text: str) -> int:
        """Fail."""
        raise BrokenPipeError(text)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    argv : sequence of str, optional
        The arguments; None takes those of the process.

    Returns
    -------
    int
        Exit status: 0, 1 where a model does not pass a limit, 2 after a mistake of the user, 124
        when the time is up, 130 after Ctrl-C, 141 when nobody reads standard output.
    """
    parser = None
    if sys.stdout is None:
        sys.stdout = _Closed()
    with warnings.catch_warnings():
        warnings.simplefilter("always", PolyabayesWarning)
        try:
            given = parse(list(sys.argv[1:] if argv is None else argv), __version__)
            parser = given.parser
            warnings.showwarning = partial(_show_warning, parser)
            status = _run(given)
            sys.stdout.flush()
        except SystemExit as stop:
            # argparse exits after help and version.
            return int(stop.code or 0)
        except (Interrupted, KeyboardInterrupt):
            _say("interrupted")
            return _INTERRUPTED
        except BrokenPipeError:
            _discard_output()
            return _BROKEN_PIPE
        except UnicodeEncodeError as error:
            character = f"{error.object[error.start]!a} cannot be written in {error.encoding}"
            return _fail(f"{character}: set PYTHONUTF8=1, or write to a file by --output")
        except PolyabayesError as error:
            return _fail(error.told(parser.in_options if parser else str))
        except OSError as error:
            _discard_output()
            place = error.filename or "the output"
            return _fail(f"cannot write {place}: {error.strerror or error}")
    return status


def _run(given: Given) -> int:
    from polyabayes.cli.output import check_outputs, refuse_overwriting

    refuse_overwriting(given)
    check_outputs(given)
    module = import_module(f"polyabayes.cli.{COMMANDS[given.command][0]}")
    command: Callable[..., int] = getattr(module, given.command)
    with _log_shown(given.verbose):
        return command(given, **given.own())


@contextmanager
def _log_shown(verbose: bool) -> Iterator[None]:
    """Print what the package logs meanwhile, beside its messages."""
    logger, handler = logging.getLogger("polyabayes"), logging.StreamHandler()
    handler.setFormatter(logging.Formatter("polyabayes: %(message)s"))
    if verbose:
        logger.addHandler(handler)
        logger.setLevel(logging.DEBUG)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(logging.NOTSET)


def _say(message: str) -> None:
    from polyabayes._support.output.tables import printable

    message += " (in Python; frame is the table)" * bool(re.search(r"\bframe\.\w", message))
    print(f"polyabayes: {printable(' '.join(message.split()))}", file=sys.stderr, flush=True)


def _fail(message: str) -> int:
    _say(f"error: {message}")
    return _USER_ERROR


def _show_warning(
    parser: Parser | None,
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,  # noqa: ARG001
    line: str | None = None,  # noqa: ARG001
) -> None:
    if issubclass(category, PolyabayesWarning):
        refer = parser.in_options if parser else str
        text = message.told(refer) if isinstance(message, PolyabayesWarning) else str(message)
        _say(f"warning: {text}")
    else:
        print(warnings.formatwarning(message, category, filename, lineno), end="", file=sys.stderr)


def _discard_output() -> None:
    """Send what is left in the buffer nowhere, or Python would complain of it when it exits."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
