"""Ctrl-C from another thread, while the main thread is at its long work."""

import _thread
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from types import ModuleType
from typing import Any

import pytest


@contextmanager
def interrupted_when_done(
    least: int, monkeypatch: pytest.MonkeyPatch, module: ModuleType
) -> Iterator[None]:
    """Ctrl-C as soon as the work of `module` has so many units done, however long that takes."""

    def update(done: int) -> None:
        if done >= least:
            _thread.interrupt_main()

    with monkeypatch.context() as patched:
        patched.setattr(module, "progress_bar", lambda *_: nullcontext(update))
        yield


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
