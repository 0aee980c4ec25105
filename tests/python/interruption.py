"""Ctrl-C from another thread, while the main thread is at its long work."""

from __future__ import annotations

import _thread
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import pytest


@contextmanager
def interrupted_after(seconds: float) -> Iterator[None]:
    """Ctrl-C so long after the start of the block."""
    timer = threading.Timer(seconds, _thread.interrupt_main)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()


@contextmanager
def interrupted_at_work(
    seconds: float, monkeypatch: pytest.MonkeyPatch, module: ModuleType
) -> Iterator[None]:
    """Ctrl-C so long after `module` has come to its long work, which opens its progress bar."""
    timer = threading.Timer(seconds, _thread.interrupt_main)
    progress_bar = vars(module)["progress_bar"]

    def started(*arguments: Any) -> Any:
        timer.start()
        return progress_bar(*arguments)

    monkeypatch.setattr(module, "progress_bar", started)
    yield
    timer.join()
