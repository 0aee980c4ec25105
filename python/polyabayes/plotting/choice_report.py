"""A page about a choice of the number of topics, as a supplement shows it."""

from __future__ import annotations

import html
import os
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from polyabayes._support import checks
from polyabayes._support.files import checked_path, replacing
from polyabayes.exceptions import InvalidArgumentError
from polyabayes.plotting.choice import plot_choice
from polyabayes.plotting.signatures import is_channel, plot_signatures
from polyabayes.sizes.choice import SizeChoice
from polyabayes.topics.fitted import fitted_model, names
from polyabayes.topics.matching import match_topics

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_STYLE = """
body { margin: 0 auto; max-width: 900px; padding: 24px; font: 15px/1.5 system-ui, sans-serif; }
table { border-collapse: collapse; } td, th { padding: 2px 10px; text-align: right; }
tr.chosen { font-weight: bold; } th { border-bottom: 1px solid; }
svg { max-width: 100%; height: auto; }
"""


def report_choice(
    choice: SizeChoice,
    path: str | os.PathLike[str],
    *,
    model: Any = None,
    reference: Any = None,
    title: str = "Number of topics",
) -> Path:
    """Write one self-contained HTML page about a choice, as for a supplement.

    It shows the curve with its errors, stability and coherence; a table of all sizes; and, of a
    fitted model, the cosine of each topic to those of a reference set, and its signatures over the
    96 channels of single-base substitutions where its words are these.

    Parameters
    ----------
    choice : SizeChoice
        What :func:`polyabayes.choose_n_components` returns, of one unknown size.
    path : path
        The file, by custom ``*.html``; it takes its name only when it is complete.
    model : model, optional
        Fitted with the size that was taken.
    reference : model, or array or DataFrame of shape (n_components, n_words), optional
        Topics to match those of `model` with, one to one, as :func:`polyabayes.topics.match_topics`
        does: COSMIC's signatures, say, whose names are the index of the table.
    title : str, default="Number of topics"
        Heading of the page.

    Returns
    -------
    pathlib.Path
        The file.

    Raises
    ------
    FileAccessError
        If the file cannot be written.
    InvalidArgumentError, InvalidTypeError
        If `choice` is something else or of several unknown sizes, if there is a reference and no
        model, or if they have no words in common.
    {no Matplotlib}

    Examples
    --------
    >>> corpus = pb.datasets.make_lda_corpus(60, 30, 3, random_state=0)
    >>> lda = pb.LatentDirichletAllocation(3, max_iter=20, n_jobs=1, random_state=0)
    >>> choice = pb.choose_n_components(lda, corpus.corpus, [2, 3, 4], n_folds=2, random_state=0)
    >>> page, found = folder / "choice.html", lda.fit(corpus.corpus)
    >>> pb.plotting.report_choice(choice, page, model=found, reference=corpus.topic_word).name
    'choice.html'
    """
    place = checked_path(path)
    checks.text("title", title)
    if reference is not None and model is None:
        raise InvalidArgumentError("reference needs the model whose topics are matched with it")
    parts = [f"<h1>{html.escape(title)}</h1>", f"<pre>{html.escape(str(choice))}</pre>"]
    parts += [_drawing(plot_choice(choice)), _sizes(choice)]
    if model is not None:
        fitted = fitted_model(model)
        if reference is not None:
            parts += ["<h2>Nearest in the reference set</h2>", _matches(fitted, reference)]
        if all(map(is_channel, names(fitted))):
            drawn: Any = plot_signatures(model)
            parts += ["<h2>Signatures</h2>", _drawing(drawn.figure)]
    head = f'<meta charset="utf-8"><title>{html.escape(title)}</title><style>{_STYLE}</style>'
    page = f'<!DOCTYPE html>\n<html lang="en"><head>{head}</head>\n<body>\n' + "\n".join(parts)
    with replacing(place) as stream:
        stream.write(f"{page}\n</body></html>\n".encode())
    return place


def _drawing(figure: Figure) -> str:
    """The figure as SVG, closed; the same bits for the same figure."""
    from matplotlib import pyplot

    stream = StringIO()
    with pyplot.rc_context({"svg.hashsalt": "polyabayes"}):
        figure.savefig(stream, format="svg", metadata={"Date": None}, bbox_inches="tight")
    pyplot.close(figure)
    text = stream.getvalue()
    return text[text.index("<svg") :]


def _sizes(choice: SizeChoice) -> str:
    """All sizes; the recommended one is marked."""
    columns = list(choice.rows[0])
    rows = [[_shown(row[name]) for name in columns] for row in choice.rows]
    marked = [row["size"] == choice.recommended for row in choice.rows]
    return _table([name.replace("_", " ") for name in columns], rows, marked)


def _matches(fitted: Any, reference: Any) -> str:
    """The topic of the reference set that each topic is matched with, and their cosine."""
    match = match_topics(fitted, reference)
    known = getattr(reference, "index", None)
    rows = [[str(topic), "none left", ""] for topic in range(len(fitted.components_))]
    for topic, other, cosine in zip(match.first, match.second, match.similarities, strict=True):
        name = other if known is None else known[other]
        rows[topic][1:] = [str(name), f"{cosine:.3f}"]
    return _table(["topic", "reference", "cosine"], rows, [False] * len(rows))


def _shown(value: Any) -> str:
    if isinstance(value, (bool, np.bool_)):
        return "yes" if value else ""
    if isinstance(value, float):
        return "" if np.isnan(value) else f"{value:.4g}"
    return str(value)


def _table(columns: list[str], rows: list[list[str]], marked: list[bool]) -> str:
    head = "".join(f"<th>{html.escape(name)}</th>" for name in columns)
    body = [
        f"<tr{' class=chosen' if mark else ''}>"
        + "".join(f"<td>{html.escape(cell)}</td>" for cell in row)
        + "</tr>"
        for row, mark in zip(rows, marked, strict=True)
    ]
    return f"<table>\n<tr>{head}</tr>\n" + "\n".join(body) + "\n</table>"
