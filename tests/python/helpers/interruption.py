"""Ctrl-C from another thread, while the main thread is at its long work."""

import _thread
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
