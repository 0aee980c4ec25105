"""HTML report of a choice of the number of topics."""

from __future__ import annotations

import os
from html import escape
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from polyabayes._support import checks
from polyabayes._support.files import checked_path
from polyabayes._support.output.pages import write_page
from polyabayes._support.output.tables import columns_of, html_table
from polyabayes.exceptions import InvalidArgumentError
from polyabayes.models.fitted_topics import fitted_model, names
from polyabayes.plotting.choice import plot_choice
from polyabayes.plotting.signatures import is_channel, plot_signatures
from polyabayes.sizes.choice import SizeChoice
from polyabayes.topics.matching import match_topics

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def report_choice(
    choice: SizeChoice,
    path: str | os.PathLike[str],
    *,
    model: Any = None,
    reference: Any = None,
    title: str = "Number of topics",
) -> Path:
    """Write a self-contained HTML page about a choice of the number of topics.

    It shows the curve with its errors, stability and coherence, and a table of all sizes. For a
    fitted model, it also shows the cosine of each topic to its match in a reference set and, for
    mutational signatures, bars over the 96 channels of single-base substitutions.

    Parameters
    ----------
    choice : SizeChoice
        Result of :func:`polyabayes.choose_n_components` for one unknown size.
    path : path
        The file, usually ``*.html``; it is written completely or not at all.
    model : model, optional
        Model fitted with the chosen size.
    reference : model, or array or DataFrame of shape (n_components, n_words), optional
        Reference topics, such as the signatures of COSMIC, matched one to one with the topics of
        `model` as in :func:`polyabayes.topics.match_topics`. The index of a DataFrame has their
        names.
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
        If `choice` has another type or several unknown sizes, there is a reference but no model, or
        they have no words in common.
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
    parts = [f"<pre>{escape(str(choice))}</pre>", _drawing(plot_choice(choice))]
    marked = [row["size"] == choice.recommended for row in choice.rows]
    parts.append(html_table(columns_of(choice._columns()), marked=marked))
    if model is not None:
        fitted = fitted_model(model)
        if reference is not None:
            parts += ["<h2>Nearest in the reference set</h2>", _matches(fitted, reference)]
        if all(map(is_channel, names(fitted))):
            drawn: Any = plot_signatures(model)
            parts += ["<h2>Signatures</h2>", _drawing(drawn.figure)]
    room = "polyabayes.plotting"
    return write_page(place, room, "choice_report.html", title, body="\n".join(parts))


def _drawing(figure: Figure) -> str:
    """Close the figure and give it as SVG; equal figures give equal bytes."""
    from matplotlib import pyplot

    stream = StringIO()
    with pyplot.rc_context({"svg.hashsalt": "polyabayes"}):
        figure.savefig(stream, format="svg", metadata={"Date": None}, bbox_inches="tight")
    pyplot.close(figure)
    text = stream.getvalue()
    return text[text.index("<svg") :]


def _matches(fitted: Any, reference: Any) -> str:
    """Table of topics with their match in the reference set, and their cosine."""
    match = match_topics(fitted, reference)
    known = getattr(reference, "index", None)
    topics = range(len(fitted.components_))
    nearest, cosines = ["none left" for _ in topics], ["" for _ in topics]
    for topic, other, cosine in zip(match.first, match.second, match.similarities, strict=True):
        nearest[topic] = str(other if known is None else known[other])
        cosines[topic] = f"{cosine:.3f}"
    return html_table(columns_of({"topic": topics, "reference": nearest, "cosine": cosines}))
