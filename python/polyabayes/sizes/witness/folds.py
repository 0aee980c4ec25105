"""Cross-validation of the average over sizes and of the single best model."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from polyabayes._support.random import RandomState, random_generator
from polyabayes._support.results import ResultTable
from polyabayes.data.corpus import Corpus, as_corpus
from polyabayes.exceptions import InvalidArgumentError, InvalidTypeError
from polyabayes.scale.executors import check_executor, sharing
from polyabayes.sizes.folds import check_covariates, checked_folds, folds_of, with_one_thread
from polyabayes.sizes.priors import SizePrior
from polyabayes.sizes.witness.estimator import WitnessSearch, check_further_prior


class _Fold(NamedTuple):
    fold: int
    prior: str
    n_tokens: int
    n_steps: int
    best_size: int
    lower: float
    upper: float
    average: float
    best: float
    best_std_error: float


def cross_validate(
    search: WitnessSearch,
    X: Any,
    n_folds: int = 10,
    *,
    priors: Sequence[SizePrior] = (),
    executor: Executor | None = None,
    groups: Any = None,
    times: Any = None,
    random_state: RandomState = 0,
    checkpoint: Any = None,
) -> ResultTable:
    """Compare the average over sizes with the single best model by k-fold cross-validation.

    Each fold is predicted by a search on the other folds.

    Parameters
    ----------
    search : WitnessSearch
        A search with an estimator; cloned for every fold.
    X : Corpus, sparse matrix, integer array or DataFrame, shape (n_documents, n_words)
        The documents.
    n_folds : int, default=10
        Number of folds.
    priors : sequence of priors.SizePrior, default=()
        Further priors, under which the models of `search` are averaged, too.
    executor : concurrent.futures.Executor, optional
        Runs the folds, each on one thread unless the estimator's ``n_jobs`` is set. By default,
        they run here, one after another.
    groups : str or array of shape (n_documents,), optional
        Groups of dependent documents, for example by author: a column of the corpus's metadata, or
        labels. No group is in two folds.
    times : str or array of shape (n_documents,), optional
        Times of documents: a column of the metadata, numbers, or dates as 2008-01-31. They are cut
        into 20 blocks with about equally many documents. No block is in two folds.
    random_state : None, int, RandomState, Generator or SeedSequence, default=0
        Seed of the folds.
    checkpoint : path-like, optional
        Folder with one checkpoint per fold, including predictions; the same call with the same
        `random_state` resumes from there.

    Returns
    -------
    ResultTable
        One row per fold and prior, in nats: ``lower`` and ``upper``, bounds of ln p(held-out
        documents | other documents) averaged over sizes; ``average`` over explored sizes only;
        ``best`` and ``best_std_error`` of the single best model.

    Raises
    ------
    InvalidArgumentError, InvalidTypeError
        If an argument is bad; before any work.
    WorkerError
        If a worker died and its engine did not rerun its fold.

    Examples
    --------
    >>> corpus = pb.datasets.make_lda_corpus(12, 10, 2, document_length=20, random_state=0).corpus
    >>> lda = pb.LatentDirichletAllocation(fit_method="em", max_iter=5, random_state=0)
    >>> search = pb.WitnessSearch(lda, pb.priors.Uniform(1, 2), scoring="bound", random_state=0)
    >>> pb.cross_validate(search, corpus, 2, random_state=0).n_rows
    2
    """
    if not isinstance(search, WitnessSearch) or not hasattr(search.estimator, "get_params"):
        raise InvalidTypeError(
            "search must be a WitnessSearch of an estimator: a function cannot be trained on folds"
        )
    corpus = as_corpus(X, "X")
    if isinstance(priors, SizePrior) or not isinstance(priors, Sequence):
        raise InvalidTypeError(f"priors must be a list of priors, got {priors!r}")
    for prior in priors:
        check_further_prior(prior, search.prior)
        if any(np.greater(prior.first, search.prior.first)):
            raise InvalidArgumentError(
                f"{prior!r} begins at {prior.first}, but the search explores sizes from "
                f"{search.prior.first} on"
            )
    n_folds, labels = checked_folds(corpus, n_folds, groups, times)
    folds = folds_of(corpus._lengths(), n_folds, random_generator(random_state), labels)
    check_covariates(search.estimator, corpus, folds)
    plan = _Plan(search, tuple(priors), corpus, folds, checkpoint)
    rows = _run_all(plan, n_folds, check_executor(executor))
    return ResultTable(_Fold._fields, [row for rows_of_fold in rows for row in rows_of_fold])


class _Plan(NamedTuple):
    """Inputs shared by all folds."""

    search: WitnessSearch
    priors: tuple[SizePrior, ...]
    corpus: Corpus
    folds: Any
    checkpoint: Any


def _run_fold(plan: _Plan, fold: int) -> list[_Fold]:
    search: WitnessSearch = clone(plan.search)
    folder = search.checkpoint if plan.checkpoint is None else plan.checkpoint
    if folder is not None:
        search.set_params(checkpoint=Path(folder) / f"fold-{fold}")
    held_out = plan.corpus[plan.folds == fold]
    search.fit(plan.corpus[plan.folds != fold])
    rows = []
    for one in (search, *map(search.under, plan.priors)):
        bounds, best = one.predictive_bounds(held_out), one.best_
        assert isinstance(best, int)
        rows.append(_Fold(fold, repr(one.prior), held_out.n_tokens, one.n_steps_, best, *bounds))
    return rows


def _run_all(plan: _Plan, n_folds: int, executor: Executor | None) -> list[list[_Fold]]:
    if executor is None:
        return [_run_fold(plan, fold) for fold in range(n_folds)]
    rows: list[list[_Fold]] = [[] for _ in range(n_folds)]
    search = clone(plan.search)
    search.set_params(estimator=with_one_thread(search.estimator))
    with sharing(executor, plan._replace(search=search)) as workers:
        folds = [(fold,) for fold in range(n_folds)]
        for fold, rows_of_fold in workers.run(_run_fold, folds, lambda fold: f"fold {fold}"):
            rows[fold] = rows_of_fold
    return rows
