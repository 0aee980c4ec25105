"""The command that makes a shell complete the others."""

from __future__ import annotations

import argparse

from polyabayes import __version__
from polyabayes.cli.output import need
from polyabayes.cli.parsers import make_parser


def completion(arguments: argparse.Namespace) -> int:
    """Print the completion script of a shell."""
    need("shtab", "completion", "completion")
    import shtab

    print(shtab.complete(make_parser(__version__), arguments.shell))
    return 0
