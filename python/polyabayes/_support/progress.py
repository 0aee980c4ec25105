"""A progress bar for the compiled core."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager

from polyabayes._support import checks
from polyabayes._support.optional import import_optional


@contextmanager
def progress_bar(show: bool, total: int | None, unit: str) -> Generator[Callable[..., None] | None]:
    """Give a function that is called with the number of units done, or None where not asked for.

    A second argument is a text to show beside the bar.
    """
    if not checks.flag("progress", show):
        yield None
        return
    tqdm = import_optional("tqdm.auto", "progress=True needs tqdm", "progress").tqdm
    with tqdm(total=total, unit=unit) as bar:

        def update(done: int, text: str = "") -> None:
            if text:
                bar.set_postfix_str(text, refresh=False)
            bar.update(done - bar.n)

        yield update
