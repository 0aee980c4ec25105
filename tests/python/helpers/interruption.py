"""Ctrl-C from another thread, while the main thread is at its long work."""

import _thread
import threading
from contextlib import contextmanager, nullcontext


@contextmanager
def interrupted_when_done(least, monkeypatch, module):
    """Ctrl-C as soon as the work of `module` has so many units done, however long that takes."""

    def update(done):
        if done >= least:
            _thread.interrupt_main()

    with monkeypatch.context() as patched:
        patched.setattr(module, "progress_bar", lambda *_: nullcontext(update))
        yield


@contextmanager
def interrupted_at_work(seconds, monkeypatch, module):
    """Ctrl-C so long after `module` has come to its long work, which opens its progress bar."""
    timer = threading.Timer(seconds, _thread.interrupt_main)
    progress_bar = vars(module)["progress_bar"]

    def started(*arguments):
        timer.start()
        return progress_bar(*arguments)

    monkeypatch.setattr(module, "progress_bar", started)
    yield
    timer.join()
