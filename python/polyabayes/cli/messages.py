"""Messages beside the results, and exit statuses."""

from __future__ import annotations

import sys

# After a mistake of the user, after Ctrl-C, and when the reader of standard output has gone.
USER_ERROR = 2
INTERRUPTED = 130
BROKEN_PIPE = 141


def say(message: str) -> None:
    """Tell the user, beside the results."""
    print(f"polyabayes: {message}", file=sys.stderr, flush=True)
