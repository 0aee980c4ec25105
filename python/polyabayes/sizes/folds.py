"""Folds of documents for a choice of sizes and for a search."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from polyabayes._support import checks
from polyabayes._support.arrays import Integers
from polyabayes._support.output.tables import counted
from polyabayes.data.corpus import Corpus
from polyabayes.exceptions import InvalidArgumentError, argument
from polyabayes.likelihood.reliability import groups_of
from polyabayes.models.fitted.covariates import Design

# Default number of folds.
_N_FOLDS = 5


def checked_folds(
    corpus: Corpus, n_folds: Any, groups: Any = None, times: Any = None
) -> tuple[int, Integers | None]:
    """The number of folds, 5 by default, and the group of each document.

    Each fold must have a document, or group, with tokens.
    """
    labels, lengths = groups_of(corpus, groups, times), corpus._lengths()
    held = lengths if labels is None else np.bincount(labels, lengths)
    n_units = int(np.count_nonzero(held))
    units = counted(n_units, "document" if labels is None else "group")
    if n_units < 2:
        raise InvalidArgumentError(f"found {units} with tokens, but folds need two or more")
    n_folds = min(_N_FOLDS, n_units) if n_folds is None else n_folds
    if checks.whole_number("n_folds", n_folds, 2) > n_units:
        raise InvalidArgumentError(
            f"{argument('n_folds')} is {n_folds}, but there are only {units} with tokens"
        )
    return n_folds, labels


def folds_of(
    n_tokens: NDArray[Any], n_folds: int, rng: np.random.Generator, groups: Integers | None = None
) -> Integers:
    """The fold of every document, at random and of about equal sizes.

    Documents without tokens are assigned last, so that no fold has only such documents. Groups stay
    whole: the largest first, each to the fold with the fewest documents (as in scikit-learn's
    GroupKFold); ties are random.
    """
    if groups is None:
        order = rng.permutation(len(n_tokens))
        order = order[np.argsort(n_tokens[order] == 0, kind="stable")]
        folds = np.empty(len(order), dtype=np.int64)
        folds[order] = np.arange(len(order)) % n_folds
        return folds
    sizes = np.bincount(groups)
    by_size = rng.permutation(len(sizes))
    fold_of, filled = np.empty(len(sizes), dtype=np.int64), np.zeros(n_folds, dtype=np.int64)
    is_empty = np.bincount(groups, n_tokens) == 0
    for group in by_size[np.lexsort((-sizes[by_size], is_empty[by_size]))]:
        fold_of[group] = filled.argmin()
        filled[fold_of[group]] += sizes[group]
    return fold_of[groups]


def check_covariates(model: Any, corpus: Corpus, folds: Integers) -> None:
    """Refuse covariates with which a fold cannot be scored by training on the others.

    A rare level may occur in only one fold, a column may be constant without it, and a spline may
    end before the values of the fold.
    """
    metadata = corpus.metadata
    if getattr(model, "formula", None) is None or metadata is None:
        return
    for fold in range(int(folds.max()) + 1):
        train, held_out = metadata[folds != fold], metadata[folds == fold]
        # Errors of the covariates themselves are raised unchanged.
        if fold == 0:
            Design.learn(metadata, model.formula, len(metadata))
        try:
            Design.learn(train, model.formula, len(train))[0].rows(held_out)
        except InvalidArgumentError as error:
            raise InvalidArgumentError(
                f"documents of fold {fold} cannot be scored by training on the others: {error}; or "
                "merge rare levels, or give splines extrapolation='clip'"
            ) from error


def with_one_thread(model: Any) -> Any:
    """A model for a worker: on one thread, unless its `n_jobs` is set."""
    open_number = model.get_params(deep=False).get("n_jobs", 1) is None
    return clone(model).set_params(n_jobs=1) if open_number else model
