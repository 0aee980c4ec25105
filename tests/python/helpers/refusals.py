"""Calls that are to be refused."""

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
