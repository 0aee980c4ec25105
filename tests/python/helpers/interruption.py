"""Ctrl-C from another thread, while the main thread is at its long work."""

import _thread
from contextlib import contextmanager, nullcontext

from polyabayes._support.output.progress import look


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
def unwanted():
    """Tasks of this thread find, when they look, that nobody waits for them."""

    def stop(*_):
        raise KeyboardInterrupt

    token = look.set(stop)
    try:
        yield
    finally:
        look.reset(token)
