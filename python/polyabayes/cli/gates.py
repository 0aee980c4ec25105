"""Whether a model passes in continuous integration: limits of its score, and of time."""

from __future__ import annotations

import _thread
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import stats

from polyabayes._support.jackknife import paired_difference
from polyabayes._support.output.tables import measured
from polyabayes.cli.output import INTERRUPTED, say
from polyabayes.exceptions import FileAccessError, FileFormatError, InvalidArgumentError

if TYPE_CHECKING:
    from polyabayes import LogLikelihood

# Exit status of a model that fails a limit, and of work that takes too long.
_FAILED, _TIMED_OUT = 1, 124


class _Stopped:
    """Exit status of interrupted work: that of Ctrl-C, unless the time is up."""

    status = INTERRUPTED


@contextmanager
def limited(seconds: float | None) -> Iterator[_Stopped]:
    """Interrupt the work inside after some seconds."""
    if seconds is not None and not seconds > 0:
        raise InvalidArgumentError(f"--max-time must be positive, got {seconds:g}")
    stopped = _Stopped()

    def stop() -> None:
        stopped.status = _TIMED_OUT
        _thread.interrupt_main()

    timer = threading.Timer(seconds or 0.0, stop)
    if seconds is not None:
        timer.start()
    try:
        yield stopped
    except KeyboardInterrupt:
        if stopped.status != _TIMED_OUT:
            raise
        say("interrupted: the time is up")
        raise SystemExit(_TIMED_OUT) from None
    finally:
        timer.cancel()


def read_scores(path: str, n_documents: int) -> list[dict[str, Any]]:
    """Rows of the documents that an earlier ``score --json`` printed: so many."""
    try:
        found = json.loads(Path(path).read_text("utf-8"))
    except OSError as error:
        raise FileAccessError(f"--baseline: cannot read {path}: {error.strerror}") from error
    except ValueError as error:
        raise FileFormatError(f"--baseline: {path} is not JSON: {error}") from error
    rows = found.get("rows") if isinstance(found, dict) else None
    if not rows or found.get("kind") != "LogLikelihood":
        raise FileFormatError(f"--baseline: {path} is not what polyabayes score --json prints")
    if len(rows) != n_documents:
        raise InvalidArgumentError(
            f"--baseline scores {len(rows):,} documents, not these {n_documents:,}"
        )
    return list(rows)


def ahead_of(earlier: list[dict[str, Any]], result: LogLikelihood) -> tuple[float, float]:
    """95 % interval of the nats per token by which a model is ahead of an earlier one."""
    n_tokens = [row["n_tokens"] for row in earlier]
    if n_tokens != result.n_tokens.tolist():
        raise InvalidArgumentError("--baseline scores other documents: their lengths differ")
    values = np.array([row["log_likelihood"] for row in earlier], dtype=np.float64)
    shared = np.isfinite(result.values) & np.isfinite(values)
    if not shared.any():
        raise InvalidArgumentError("--baseline and the model share no document with a finite score")
    found = paired_difference(
        result.values[shared] - values[shared], result.n_tokens[shared].astype(np.float64), None
    )
    half_width = float(stats.t.ppf(0.975, found.degrees_of_freedom)) * found.std_error
    return found.mean - half_width, found.mean + half_width


def status(
    name: str, result: LogLikelihood, least: float | None, ahead: tuple[float, float] | None
) -> int:
    """Exit status of a model, and why it does not pass."""
    value, error = result.nats_per_token, result.nats_per_token_std_error
    failed = []
    if least is not None and not value + 1.96 * error >= least:
        failed.append(f"{name}: {measured(value, error)} nats per token, below {least:g}")
    if ahead is not None and np.isnan(ahead[1]):
        raise InvalidArgumentError("--baseline needs two documents or more")
    if ahead is not None and (ahead[1] < 0 or np.isneginf(value)):
        failed.append(
            f"{name}: {-ahead[1]:.4f} to {-ahead[0]:.4f} nats per token behind the baseline"
        )
    for message in failed:
        say(f"failed: {message}")
    return _FAILED if failed else 0
