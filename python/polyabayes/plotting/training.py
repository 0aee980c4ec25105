"""Plots of training and of the trained topics."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.cluster.hierarchy import leaves_list, linkage
from scipy.spatial.distance import squareform

from polyabayes._support import checks
from polyabayes.exceptions import InvalidArgumentError
from polyabayes.models.fitted_topics import (
    TopicModel,
    aligned,
    fitted_model,
    hellinger_similarity,
    labels_of,
    probabilities,
    topic_tokens,
)
from polyabayes.models.traces import BoundTrace, TrainingTrace
from polyabayes.plotting.axes import (
    BLUE,
    Axes,
    axes_or_new,
    colours,
    finish,
    heat_map,
    new_figure,
    shortened,
)

# Letters of a name below a column.
_LONGEST_TICK = 14
# Most ticks on one side of a matrix, and most names of bars.
_MOST_TICKS, _MOST_NAMES = 20, 40

# Most letters of names, with gaps, that fit side by side below a matrix.
_MOST_LETTERS = 45

_LABELS = {
    "log_joint": "ln of the joint density (nats)",
    "bound": "bound of ln p(words) (nats)",
    "held_out": "held-out nats per token (higher is better)",
    "n_iter": "sweeps or iterations",
    "seconds": "seconds of training",
}

# The trace of models without priors, NMF.
_LIKELIHOOD = "log-likelihood of the training counts (nats)"

# Parameters that change the chain but not its target density.
_SCHEDULE = {
    "max_iter",
    "burn_in",
    "thin",
    "n_init",
    "n_jobs",
    "random_state",
    "progress",
    "checkpoint",
    "checkpoint_every",
    "sampler",
    "init",
    "tol",
}


def plot_trace(
    models: Any, what: str | None = None, against: str = "n_iter", ax: Axes | None = None
) -> Axes:
    """Plot the trace of one or several training runs.

    Parameters
    ----------
    models : model, or mapping of name to model
        Models trained by ``fit``, alone or at the end of a Pipeline. Models of other packages have
        no trace.
    what : {"log_joint", "held_out", "bound"}, optional
        The quantity. Default: held-out nats per token if every model has them, else the bound if
        the models were fitted by EM, else the log joint density.
    against : {"n_iter", "seconds"}, default="n_iter"
        The horizontal axis.
    {ax}

    Returns
    -------
    matplotlib Axes
        One line per model; held-out values have bars of two standard errors. Log joint densities
        are comparable only between models that differ just in seed and sweeps: each kind of model
        gets its own axes, below each other, and the first axes are returned.

    Raises
    ------
    InvalidArgumentError, InvalidTypeError
        If a model was not trained here or has no such trace, or `ax` is given for densities without
        a common scale.
    {no Matplotlib}

    Examples
    --------
    >>> corpus = pb.datasets.make_lda_corpus(20, 30, 2, random_state=0).corpus
    >>> lda = pb.LatentDirichletAllocation(2, max_iter=10, random_state=0).fit(corpus)
    >>> ax = pb.plotting.plot_trace(lda)
    >>> len(ax.lines)
    1
    """
    given = dict(models) if isinstance(models, Mapping) else {"": models}
    if not given:
        raise InvalidArgumentError("models is empty; give at least one")
    named = {name: fitted_model(model) for name, model in given.items()}
    traces: dict[str, Any] = {name: _trace(model) for name, model in named.items()}
    with_bound = all(isinstance(trace, BoundTrace) for trace in traces.values())
    with_held_out = all(
        isinstance(trace, TrainingTrace) and np.isfinite(trace.held_out).any()
        for trace in traces.values()
    )
    if what is None:
        what = "held_out" if with_held_out else "bound" if with_bound else "log_joint"
    checks.choice("what", what, ("log_joint", "held_out", "bound"))
    checks.choice("against", against, ("n_iter", "seconds"))
    if what == "held_out" and not with_held_out:
        raise InvalidArgumentError("no held-out values: call fit with eval_corpus")
    for column in (what, against):
        if not all(hasattr(trace, column) for trace in traces.values()):
            raise InvalidArgumentError(f"not every model has a trace of {column!r}")
    kinds = _kinds(named) if what == "log_joint" else [list(named)]
    stack = _stack(ax, len(kinds))
    looks = dict(zip(named, colours(len(named)), strict=True))
    for place, names in zip(stack, kinds, strict=True):
        for name in names:
            trace, errors = traces[name], None
            if what == "held_out" and isinstance(trace, TrainingTrace):
                errors = 2 * trace.held_out_std_error
            x, y = getattr(trace, against), getattr(trace, what)
            place.errorbar(x, y, yerr=errors, marker=".", label=name or None, color=looks[name])
        is_likelihood = what == "log_joint" and not named[names[0]]._samples()
        place.set_ylabel(_LIKELIHOOD if is_likelihood else _LABELS[what])
        place.ticklabel_format(axis="y", useOffset=False)
        finish(place)
    stack[-1].set_xlabel(_LABELS[against])
    return stack[0]


def _kinds(models: Mapping[str, TopicModel]) -> list[list[str]]:
    """Names of the models by kind; models of one kind have comparable densities."""
    kinds: dict[str, list[str]] = {}
    for name, model in models.items():
        told = model.get_params(deep=False)
        law = {option: value for option, value in told.items() if option not in _SCHEDULE}
        kinds.setdefault(f"{type(model).__name__} {law}", []).append(name)
    return list(kinds.values())


def _stack(ax: Axes | None, n_axes: int) -> list[Axes]:
    """Make axes below each other with a common x axis."""
    if n_axes == 1:
        return [axes_or_new(ax, 7.0, 4.2)]
    if ax is not None:
        raise InvalidArgumentError(
            "log joint densities of different models have no common scale: leave ax out, or draw "
            "what='held_out'"
        )
    return list(new_figure(7.0, 1.0 + 2.6 * n_axes, n_axes, sharex=True)[1])


def plot_topic_weights(model: Any, documents: Any = None, *, ax: Axes | None = None) -> Axes:
    """Plot each topic's share of the tokens, largest first.

    Parameters
    ----------
    model : LatentDirichletAllocation, PoissonFactorAnalysis or foreign model
        A fitted model; without `documents`, it must be trained by ``fit``.
    documents : Corpus, sparse matrix, integer array or DataFrame, optional
        Documents whose expected tokens are counted; default: the tokens in the last state of the
        training. Unknown words are dropped.
    {ax}

    Returns
    -------
    matplotlib Axes
        The title shows how many topics have tokens.

    {raises: bad plot}

    Examples
    --------
    >>> corpus = pb.datasets.make_lda_corpus(20, 30, 2, random_state=0).corpus
    >>> lda = pb.LatentDirichletAllocation(2, max_iter=10, random_state=0).fit(corpus)
    >>> ax = pb.plotting.plot_topic_weights(lda)
    >>> ax.get_figure() is not None
    True
    """
    fitted = fitted_model(model)
    if documents is not None:
        tokens = topic_tokens(fitted, aligned(fitted, documents))
    elif hasattr(fitted, "topic_counts_"):
        tokens = fitted.topic_counts_
    else:
        raise InvalidArgumentError(
            "the model was not trained by fit here, so the tokens of its topics are not known: "
            "give documents to count them in"
        )
    order = np.argsort(-tokens, kind="stable")
    counts = tokens[order]
    ax = axes_or_new(ax, 7.0, 1.0 + 0.2 * min(len(counts), _MOST_NAMES))
    ax.barh(np.arange(len(counts)), counts / counts.sum(), color=BLUE)
    ax.set_yticks([])
    if len(counts) <= _MOST_NAMES:
        names = labels_of(fitted)
        ax.set_yticks(np.arange(len(counts)), [names[topic] for topic in order], size="small")
    ax.set_ylim(len(counts) - 0.5, -0.5)
    ax.set_xlabel("share of the tokens")
    ax.set_title(
        f"{int((counts >= 0.5).sum()):,} of {len(counts):,} topics have tokens",
        loc="left",
        size="medium",
    )
    return finish(ax)


def plot_topic_similarity(model: Any, ax: Axes | None = None) -> Axes:
    """Plot the similarity of topics: 1 minus the Hellinger distance of their words.

    Topics are ordered by clustering (average linkage), so that similar ones are neighbours.

    Parameters
    ----------
    model : LatentDirichletAllocation, PoissonFactorAnalysis or foreign model
        Fitted, or made by ``from_parameters``.
    {ax}

    Returns
    -------
    matplotlib Axes
        A matrix of topics without its diagonal; 1 for equal topics, 0 for topics without a common
        word.

    {raises: bad plot}

    Examples
    --------
    >>> ax = pb.plotting.plot_topic_similarity(model)
    >>> len(ax.images)
    1
    """
    fitted = fitted_model(model)
    topics = probabilities(fitted)
    n_topics = len(topics)
    similarity = hellinger_similarity(topics, topics)
    order: NDArray[Any] = np.arange(n_topics)
    if n_topics > 2:
        apart = squareform(1 - similarity, checks=False).clip(0)
        order = leaves_list(linkage(apart, "average", optimal_ordering=True))
    names = [labels_of(fitted, 2)[k] for k in order]
    ax = axes_or_new(ax, 7.5, 4.6)
    step = -(-n_topics // _MOST_TICKS)
    labels = [labels_of(fitted, 0)[k].removeprefix("topic ") for k in order[::step]]
    short = [shortened(label, _LONGEST_TICK) for label in labels]
    crowded = len(short) * (max(map(len, short)) + 1) > _MOST_LETTERS
    ax.set_xticks(range(0, n_topics, step), short, rotation=90 if crowded else 0)
    ax.set_yticks(range(0, n_topics, step), names[::step])
    shown = similarity[np.ix_(order, order)]
    np.fill_diagonal(shown, np.nan)
    heat_map(ax, shown, "similarity: 1 - Hellinger distance", aspect="auto")
    ax.set_xlabel("topic")
    return ax


def _trace(model: TopicModel) -> TrainingTrace | BoundTrace:
    if not hasattr(model, "trace_"):
        raise InvalidArgumentError("the model was not trained by fit here: it has no trace")
    return model.trace_
