"""Choice of the number of topics by held-out likelihood or by evidence."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from concurrent.futures import Executor
from difflib import get_close_matches
from inspect import signature
from typing import Any

import numpy as np

from polyabayes._support import checks
from polyabayes._support.output.progress import progress_bar
from polyabayes._support.random import RandomState, draw_seed
from polyabayes._support.storage.state_folder import StateFolder
from polyabayes.allocation import AllocationModel
from polyabayes.data.corpus import Corpus, as_corpus, of_layer
from polyabayes.exceptions import InvalidArgumentError, InvalidTypeError, argument
from polyabayes.likelihood.foreign import exposed, given_instead
from polyabayes.likelihood.reliability import warn_of_few_groups
from polyabayes.models import LatentDirichletAllocation, PoissonFactorAnalysis
from polyabayes.sizes.choice.evidence import Evidences
from polyabayes.sizes.choice.grid import LAST, expected_fits
from polyabayes.sizes.choice.held_out import MOST_SIZE, Chooser, Limits, Plan
from polyabayes.sizes.choice.result import SizeChoice
from polyabayes.sizes.folds import check_covariates, checked_folds, folds_of


def choose_n_components(
    model: Any,
    data: Any,
    sizes: Iterable[Any] | int | None = None,
    *,
    tolerance: float | None = None,
    layer: str | None = None,
    exposure: Any = None,
    groups: Any = None,
    times: Any = None,
    max_time: float | None = None,
    n_folds: int | None = None,
    concentrations: Any = None,
    random_state: RandomState = None,
    executor: Executor | None = None,
    checkpoint: Any = None,
    progress: bool = False,
    **options: Any,
) -> SizeChoice:
    """Choose the number of topics, with its uncertainty.

    By held-out likelihood: every size is trained on all folds but one, and scores documents of the
    remaining fold, up to 500,000 tokens per fold and the same for all sizes. Sizes are compared by
    paired differences, with errors for new documents and new fits. A size that is clearly behind is
    dropped early. A size is as good as the best if the 95 % interval of its loss holds 0, and the
    smallest such size is recommended. Without `sizes`, the search tries a geometric grid on one
    fold and extends it while the last doubling gains enough. If the curve bends, the search refines
    the grid around the recommended size until neighbours differ by a tenth; the other folds are for
    sizes on which the answer depends. If it has no bend, a smooth curve through the scores on two
    folds or more gives the losses and the size for the tolerance, which is trained as well. Fits
    keep the best of two starts (or of `n_init`, if larger), which are longer than in ``fit``, so
    that topics are rarely merged.

    By evidence: allocation models are compared by posterior probabilities, with parameters
    integrated out. These depend on the prior: if you do not know the concentration, average over
    it with `concentrations`.

    Parameters
    ----------
    model : LatentDirichletAllocation, PoissonFactorAnalysis or AllocationModel
        The model; it is cloned, and keeps its parameters except the number of topics and
        `random_state`. An AllocationModel is chosen by evidence, among `sizes` for its sizes that
        are None; other models by held-out likelihood.
    data : Corpus, sparse matrix, integer array, DataFrame, AnnData or CountTensor
        The documents; for an AllocationModel, its tensor. ``obs`` of an AnnData is metadata.
    sizes : iterable of int, int, or mapping of node to iterable of int, optional
        The sizes to choose from; for several hidden nodes, a mapping. By default they are found
        (held-out likelihood only), up to the number of documents, or up to a single number here.
    tolerance : float, optional
        Held-out likelihood: acceptable loss in nats per token, as 0.01. The smallest size that is
        as good as the best within its error, or within `tolerance`, is recommended.
    layer : str, optional
        Layer of an AnnData that holds the counts; default ``X``.
    exposure : "total", str, float or array of shape (n_documents,), optional
        Held-out likelihood of a PoissonFactorAnalysis: known sizes of the documents, as for its
        ``fit``, or a column of the metadata. ``"total"`` is the total count of each document
        divided by the mean total, unless there is a column of this name.
    groups : str or array of shape (n_documents,), optional
        Held-out likelihood: groups of dependent documents, for example by author, donor or day: a
        column of the corpus's metadata, or labels. Folds do not split groups, and errors are for
        new groups, by a jackknife over groups.
    times : str or array of shape (n_documents,), optional
        Held-out likelihood: times of documents, if neighbours in time are dependent: a column of
        the metadata, numbers, or dates as 2008-01-31. They are cut into 20 blocks with about
        equally many documents, which are the groups.
    max_time : float, optional
        Held-out likelihood: seconds that the choice may take. No fit starts that is foretold to
        end later, by the fits of the nearest size; the first one always runs.
    n_folds : int, default=5
        Held-out likelihood: number of folds.
    concentrations : None, "auto", iterable of float or mapping of float to float, default=None
        Evidence: concentrations over which the evidence of each size is averaged, with equal
        weights, or with the prior weights of a mapping. None uses the model's concentration.
        ``"auto"`` averages over powers of 2, from 1/4 to a Dirichlet parameter of 4 in each cell of
        the largest table. Each size evaluates those around its best one, until the evidence is 10
        nats plus two errors lower: usually 4 to 7, but all of them if a table is hardly
        informative. Unless the model has a `rate`, evidences are then conditional on the total.
    random_state : None, int, RandomState, Generator or SeedSequence
        The same seed gives the same choice, for any executor and number of threads.
    executor : concurrent.futures.Executor, optional
        Runs the fits, or the replicates of each evidence; it is not shut down. By default, they run
        here, one after another, on the `n_jobs` threads of the model.
    checkpoint : path-like, optional
        Folder that keeps every fit or evidence; the same call resumes from there.
    progress : bool, default=False
        Show the time left, the fits done and the best size so far (needs tqdm).
    **options
        Evidence: further options of :meth:`AllocationModel.log_evidence`.

    Returns
    -------
    SizeChoice
        ``best``, ``equally_good``, ``recommended``, probabilities, a table of all sizes.

    Warns
    -----
    EdgeWarning
        If the best size or concentration is the smallest or largest of those given.
    UnreliableErrorWarning
        If errors of evidences cannot be trusted; one warning with their number.

    Raises
    ------
    Interrupted
        A KeyboardInterrupt whose ``partial`` is the choice from the fits or evidences so far, if
        any.
    InvalidArgumentError, InvalidTypeError
        If an argument is bad; before any work.

    References
    ----------
    Efron & Stein (1981). The jackknife estimate of variance. Annals of Statistics 9(3).

    Examples
    --------
    >>> corpus = pb.datasets.make_lda_corpus(60, 30, 3, random_state=0).corpus
    >>> lda = pb.LatentDirichletAllocation(max_iter=20, n_jobs=1)
    >>> choice = pb.choose_n_components(lda, corpus, [1, 3, 9], n_folds=2, random_state=0)
    >>> choice.best
    3

    >>> table = [[40, 30, 0], [40, 30, 0], [0, 0, 30]]
    >>> nmf = pb.AllocationModel.nmf(None)
    >>> pb.choose_n_components(nmf, table, [1, 2, 3], concentrations="auto", random_state=0).best
    2
    """
    held_out = {
        "tolerance": tolerance,
        "layer": layer,
        "exposure": exposure,
        "groups": groups,
        "times": times,
        "max_time": max_time,
        "n_folds": n_folds,
    }
    if isinstance(model, AllocationModel):
        _refuse("held-out likelihood, but an AllocationModel is chosen by evidence", held_out)
        folder = None if checkpoint is None else StateFolder(checkpoint, "the choice")
        options |= {"executor": executor, "progress": progress}
        arguments = model, data, _ranges(model, sizes), concentrations
        return Evidences(*arguments, random_state, options, folder).choose()
    if "covariates" in options:
        raise InvalidTypeError(
            f"{argument('covariates')} come with the documents: give corpus.with_metadata(frame), "
            f"and a model with a {argument('formula')}"
        )
    for name in options.keys() - signature(AllocationModel.log_evidence).parameters.keys():
        near = get_close_matches(name, [*held_out, *signature(choose_n_components).parameters])
        remedy = f": did you mean {argument(near[0])}?" if near else ""
        raise InvalidTypeError(f"choose_n_components has no option {name!r}{remedy}")
    _refuse(_BY_EVIDENCE, {"concentrations": concentrations, **options})
    corpus, given, limits = _checked(model, data, sizes, held_out)
    n_folds, labels = checked_folds(corpus, n_folds, groups, times)
    warn_of_few_groups(labels)
    seed = draw_seed(random_state)
    folds = folds_of(corpus._lengths(), n_folds, np.random.default_rng(seed), labels)
    check_covariates(model, corpus, folds)
    plan = Plan(model, corpus, labels, folds, n_folds, seed)
    folder = None if checkpoint is None else plan.claimed(StateFolder(checkpoint, "the choice"))
    with progress_bar(progress, None, None) as update:
        work = _work(corpus, given, limits, n_folds)
        return Chooser(plan, limits, given, executor, folder, update, work).run()


def _work(corpus: Corpus, given: list[int] | None, limits: Limits, n_folds: int) -> dict[int, int]:
    """Fits that are expected of each size."""
    if given is not None:
        return dict.fromkeys(given, n_folds)
    most = limits.most_size(corpus)
    return expected_fits(most if limits.max_size < MOST_SIZE else min(most, LAST), n_folds)


_CHECKPOINT = "a model's checkpoint is of one fit: give choose_n_components its own, for all fits"
_BY_EVIDENCE = "evidence, and only an AllocationModel is chosen by that"


def _refuse(way: str, options: Mapping[str, Any]) -> None:
    """Refuse options of the other way to choose."""
    for name, value in options.items():
        if value is not None:
            raise InvalidTypeError(f"{argument(name)} is an option of a choice by {way}")


def _checked(
    model: Any, data: Any, sizes: Any, options: Mapping[str, Any]
) -> tuple[Corpus, list[int] | None, Limits]:
    """The arguments of a choice by held-out likelihood, or an error."""
    if not isinstance(model, (LatentDirichletAllocation, PoissonFactorAnalysis)):
        raise InvalidTypeError(
            "model must be a LatentDirichletAllocation, a PoissonFactorAnalysis or an "
            f"AllocationModel of polyabayes, which is trained at every size, got "
            f"{given_instead(model)}"
        )
    if not model._has_likelihood():
        raise InvalidArgumentError("NMF gives new documents no likelihood: choose another prior")
    if model.checkpoint is not None:
        raise InvalidArgumentError(_CHECKPOINT)
    documents = as_corpus(of_layer(data, options["layer"]), "data")
    corpus = exposed(model, documents, options["exposure"])
    is_found = sizes is None or isinstance(sizes, (int, np.integer))
    given = None if is_found else _checked_sizes(sizes)
    most = MOST_SIZE if sizes is None else sizes
    max_size = checks.whole_number("sizes", most, 1, MOST_SIZE) if is_found else MOST_SIZE
    if corpus.n_documents < 2:
        raise InvalidArgumentError(
            "a choice by held-out likelihood needs two documents or more, to train on some and "
            f"hold out others; got {corpus.n_documents}"
        )
    max_time, tolerance = (
        None if options.get(name) is None else check(name, options[name])
        for name, check in (
            ("max_time", checks.positive_number),
            ("tolerance", checks.not_negative_number),
        )
    )
    return corpus, given, Limits(max_time, tolerance, max_size)


def _checked_sizes(sizes: Any) -> list[int]:
    if isinstance(sizes, Mapping) or checks.is_single(sizes) or not isinstance(sizes, Iterable):
        raise InvalidTypeError(f"sizes must be numbers of topics, got {sizes!r:.100}")
    checked = sorted({checks.whole_number("sizes", size, 1, MOST_SIZE) for size in sizes})
    if not checked:
        raise InvalidArgumentError("sizes is empty; give at least one, or leave it out")
    return checked


def _ranges(model: AllocationModel, sizes: Any) -> dict[str, list[int]]:
    """Sizes to choose from, of every node whose size is not known."""
    hidden = [node for node, size in model.sizes.items() if size is None]
    if sizes is None or not hidden:
        raise InvalidArgumentError(
            "give sizes to choose from, and a model whose unknown sizes are None, as "
            "AllocationModel.nmf(None)"
        )
    by_node = sizes if isinstance(sizes, Mapping) else {hidden[0]: sizes}
    if set(by_node) != set(hidden):
        raise InvalidArgumentError(
            f"unknown sizes are those of {', '.join(hidden)}; give a mapping of each of them "
            "to its sizes"
        )
    return {node: _checked_sizes(by_node[node]) for node in hidden}
