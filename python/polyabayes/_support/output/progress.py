"""A progress bar for the compiled core."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar

from polyabayes._support import checks
from polyabayes._support.optional import import_optional

_SHARES = "{percentage:3.0f}%|{bar}| {elapsed}, {remaining} left{postfix}"

# Function that the core calls in tasks of executors, in the place of a bar; it may interrupt them.
look: ContextVar[Callable[..., None] | None] = ContextVar("look", default=None)


@contextmanager
def progress_bar(
    show: bool, total: float | None, unit: str | None
) -> Generator[Callable[..., None] | None]:
    """Give a function that is called with the number of units done, or None.

    A second argument is a text to show beside the bar, a third one what is now known of the total.
    Without a unit the bar shows shares and the time left alone. Where no bar is asked for, the
    function is that of `look`.
    """
    if not checks.flag("progress", show):
        yield look.get()
        return
    tqdm = import_optional("tqdm.auto", "progress=True needs tqdm", "progress").tqdm
    shown = None if unit else _SHARES
    with tqdm(total=total, unit=unit or "", bar_format=shown) as bar:

        def update(done: float, text: str = "", total: float | None = None) -> None:
            if text:
                bar.set_postfix_str(text, refresh=False)
            bar.total = bar.total if total is None else total
            bar.update(done - bar.n)

        yield update
