"""The command line, called as a function."""

import csv
import re
from pathlib import Path

from polyabayes import cli


def run(*arguments):
    """Exit status of a command: its words, or lines of words."""
    return cli.main([str(argument) for argument in arguments])


def table(text):
    """Rows of a CSV table, or of a file with one."""
    content = text.read_text() if isinstance(text, Path) else text
    return list(csv.DictReader(content.splitlines()))


def assert_one_error_line(status, error, message):
    """The last line says what is wrong, and nothing came before but what is being trained on."""
    assert status == 2, error
    *before, line = error.splitlines()
    assert line.startswith("polyabayes: error: ")
    assert re.search(message, line), line
    assert all(re.match("polyabayes: training on", text) for text in before), before
