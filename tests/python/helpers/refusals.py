"""Calls that are to be refused."""

import re

import pytest

# No message prints a corpus, a vocabulary or a model.
_LONGEST = 420


def assert_refused(error, says, call, *arguments, **options):
    """The call ends with this error; its message is one short line, which says so."""
    with pytest.raises(error, match=says) as caught:
        call(*arguments, **options)
    text = str(caught.value)
    assert "\n" not in text
    assert len(text) < _LONGEST


def call_of(error, function, *arguments, **options):
    """The code after the last "use" of a refusal."""
    with pytest.raises(error) as caught:
        function(*arguments, **options)
    return re.search(r"\buse (.*?)(?: to |,? or | if |$)", str(caught.value))[1]
