"""How many topics: one call, by held-out likelihood or by evidence."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from concurrent.futures import Executor
from typing import Any

from polyabayes._support import checks
from polyabayes._support.progress import progress_bar
from polyabayes._support.random import RandomState, draw_seed
from polyabayes.allocation import AllocationModel
from polyabayes.data.corpus import Corpus, as_corpus
from polyabayes.exceptions import InvalidArgumentError, InvalidTypeError
from polyabayes.models import LatentDirichletAllocation, PoissonFactorAnalysis
from polyabayes.sizes.choice.cost import ChoiceCost, measured_cost
from polyabayes.sizes.choice.evidence import by_evidence, cost_by_evidence
from polyabayes.sizes.choice.held_out import MOST_SIZE, Chooser, Plan, Store, first_sizes, folds_of
from polyabayes.sizes.choice.result import SizeChoice

__all__ = ["choice_cost", "choose_n_components"]

_NOT_BY_EVIDENCE = "concentrations are those of a choice by evidence"
_N_FOLDS, _MAX_FITS = 5, 200
_CRITERIA = ("held-out", "evidence")


def choose_n_components(
    model: Any,
    data: Any,
    sizes: Iterable[Any] | None = None,
    *,
    criterion: str = "held-out",
    n_folds: int = _N_FOLDS,
    max_fits: int = _MAX_FITS,
    concentrations: Any = None,
    random_state: RandomState = None,
    executor: Executor | None = None,
    checkpoint: Any = None,
    progress: bool = False,
    **options: Any,
) -> SizeChoice:
    """Choose the number of topics, with its uncertainty.

    By held-out likelihood: every size is trained on all folds but one and scores the documents of
    that fold, the same documents for all sizes. Sizes are compared by paired differences, whose
    errors hold for new documents and new fits; a size that is clearly behind is dropped after the
    folds that show it. Without `sizes` they come from a geometric grid, which is widened while
    its edge may be the best and refined around the best, until neighbours differ by a fifth, and
    by a tenth beside the best and the smallest equally good one. Fits begin with longer starts than
    those of ``fit``, and the best of two (`n_init`, if that is more), which seldom merge topics.

    By evidence: allocation models whose parameters are integrated out, compared by their
    posterior probabilities. These answer for the prior as it is given: where you do not know the
    concentration, let `concentrations` average over it.

    Parameters
    ----------
    model : LatentDirichletAllocation, PoissonFactorAnalysis or AllocationModel
        Cloned; its parameters but for the number of topics (and `random_state`) are kept. An
        AllocationModel is chosen by evidence; sizes that are None are looked for.
    data : Corpus, sparse matrix, integer array, DataFrame or CountTensor
        The documents; for an AllocationModel its tensor.
    sizes : iterable of int, or mapping of node to iterable of int, optional
        The sizes to choose from; for several hidden nodes, a mapping. By default they are found,
        by held-out likelihood only.
    criterion : {"held-out", "evidence"}, default="held-out"
        Always ``"evidence"`` for an AllocationModel. For LDA it is the evidence of the allocation
        model word <- topic -> doc, which has other priors, of concentration 1 or `concentrations`.
    n_folds : int, default=5
        Folds of the documents, by held-out likelihood only.
    max_fits : int, default=200
        Fits after which the choice by held-out likelihood ends with what is known. It takes
        `n_folds` fits a size, less those of dropped sizes: about 30 to 60 by default. What they
        will take is told by :func:`choice_cost` before they start.
    concentrations : None, "auto", iterable of float or mapping of float to float, default=None
        By evidence: the concentrations that the evidence of a size is the mean over; with a
        mapping, weighed by these prior weights. None: that of the model alone. ``"auto"``: powers
        of 2 with equal weights, from 1/4 to a Dirichlet parameter of 4 in each cell of the largest
        table; every size looks at those around its best one, until the evidence is 10 nats below
        it and two errors more, so that a size takes some 4 to 7 evidences in place of one, and all
        of them where a table says little. Unless
        the model has a `rate`, evidences are then given the total of the data.
    random_state : None, int, RandomState, Generator or SeedSequence
        Equal seeds give equal choices, for any executor and any number of threads.
    executor : concurrent.futures.Executor, optional
        Where the fits run, or the replicates of each evidence; it is not shut down. By default
        here, one after another, each on the `n_jobs` threads of the model.
    checkpoint : path-like, optional
        Folder that keeps every fit, or the replicates of each evidence: a choice that was killed
        goes on from there.
    progress : bool, default=False
        Show the number of fits done (needs tqdm).
    **options
        By evidence: further options of :meth:`AllocationModel.log_evidence`.

    Returns
    -------
    SizeChoice
        ``best``, ``equally_good``, ``recommended``, probabilities, a table of all sizes.

    Warns
    -----
    EdgeWarning
        If the best size is the smallest or largest of those given, or its best concentration.
    UnreliableErrorWarning
        If errors of evidences are not to be trusted: one warning, which tells how many.

    Raises
    ------
    Interrupted
        A KeyboardInterrupt whose ``partial`` is the choice among the fits or evidences done, if
        any.
    InvalidArgumentError, InvalidTypeError
        If an argument is bad; before any work.

    References
    ----------
    Efron & Stein (1981). The jackknife estimate of variance. Annals of Statistics 9(3).

    Rubin (1981). The Bayesian bootstrap. Annals of Statistics 9(1).

    Examples
    --------
    >>> import polyabayes as pb
    >>> corpus = pb.datasets.make_lda_corpus(60, 30, 3, random_state=0).corpus
    >>> lda = pb.LatentDirichletAllocation(max_iter=20, n_jobs=1)
    >>> choice = pb.choose_n_components(lda, corpus, [1, 3, 9], n_folds=2, random_state=0)
    >>> choice.best
    3

    >>> ranks = pb.choose_n_components(
    ...     pb.AllocationModel.nmf(None), [[4, 3, 0], [0, 0, 3]], [1, 2], concentrations="auto"
    ... )
    >>> ranks.best, round(ranks.probabilities[2], 3)
    (2, 0.711)
    """
    checks.choice("criterion", criterion, _CRITERIA)
    if isinstance(model, AllocationModel) or criterion == "evidence":
        _refuse_folds(n_folds, max_fits)
        options |= {"executor": executor, "checkpoint": checkpoint, "progress": progress}
        return _by_evidence(model, data, sizes, concentrations, random_state, options)
    if concentrations is not None:
        raise InvalidTypeError(_NOT_BY_EVIDENCE)
    if options:
        raise InvalidTypeError(f"unknown options of held-out choice: {', '.join(options)}")
    corpus, given, n_folds = _checked(model, data, sizes, n_folds, max_fits)
    seed = draw_seed(random_state)
    plan = Plan(model, corpus, folds_of(corpus.n_documents, n_folds, seed), n_folds, seed, max_fits)
    store = None if checkpoint is None else Store(checkpoint, plan, model)
    with progress_bar(progress, max_fits, "fit") as update:
        return Chooser(plan, given, executor, store, update).run()


def choice_cost(
    model: Any,
    data: Any,
    sizes: Iterable[Any] | None = None,
    *,
    n_folds: int = _N_FOLDS,
    max_fits: int = _MAX_FITS,
    concentrations: Any = None,
) -> ChoiceCost:
    """Tell what a choice will take, before it starts.

    Short fits of the smallest and the largest size are timed here, a few sweeps each and the
    scores of 20 documents. Of an AllocationModel the evidences of its smallest and largest sizes
    are, with the default options, which may take some minutes themselves. Print the result.

    Parameters
    ----------
    model, data, sizes, n_folds, max_fits, concentrations
        As of :func:`choose_n_components`.

    Returns
    -------
    ChoiceCost
        Number of fits or evidences, seconds of each at both ends, seconds of all one after another.

    Raises
    ------
    InvalidArgumentError, InvalidTypeError
        If an argument is bad; before any work.

    Examples
    --------
    >>> import polyabayes as pb
    >>> corpus = pb.datasets.make_lda_corpus(60, 30, 3, random_state=0).corpus
    >>> cost = pb.choice_cost(pb.LatentDirichletAllocation(), corpus, [2, 4, 8])
    >>> cost.n_fits, cost.sizes
    (15, (2, 8))
    """
    if isinstance(model, AllocationModel):
        _refuse_folds(n_folds, max_fits)
        return cost_by_evidence(model, data, _ranges(model, sizes), concentrations)
    if concentrations is not None:
        raise InvalidTypeError(_NOT_BY_EVIDENCE)
    corpus, given, n_folds = _checked(model, data, sizes, n_folds, max_fits)
    return measured_cost(
        model,
        corpus,
        given or first_sizes(corpus),
        found=given is None,
        n_folds=n_folds,
        max_fits=max_fits,
    )


def _refuse_folds(n_folds: int, max_fits: int) -> None:
    if (n_folds, max_fits) != (_N_FOLDS, _MAX_FITS):
        raise InvalidTypeError("n_folds and max_fits are of a choice by held-out likelihood")


def _checked(
    model: Any, data: Any, sizes: Any, n_folds: int, max_fits: int
) -> tuple[Corpus, list[int] | None, int]:
    """The arguments of a choice by held-out likelihood, or an error."""
    if not isinstance(model, (LatentDirichletAllocation, PoissonFactorAnalysis)):
        raise InvalidTypeError(
            "model must be a LatentDirichletAllocation, a PoissonFactorAnalysis or an "
            f"AllocationModel of polyabayes, which is trained at every size; got {model!r:.100}"
        )
    if not model._has_likelihood():
        raise InvalidArgumentError("NMF gives new documents no likelihood: choose another prior")
    corpus = as_corpus(data, "data")
    given = None if sizes is None else _checked_sizes(sizes)
    if corpus.n_documents < 2:
        raise InvalidArgumentError(
            "a choice by held-out likelihood needs two documents or more, to train on some and "
            f"hold out others; got {corpus.n_documents}"
        )
    n_folds = checks.whole_number("n_folds", n_folds, 2, corpus.n_documents)
    checks.whole_number("max_fits", max_fits, n_folds)
    return corpus, given, n_folds


def _checked_sizes(sizes: Any) -> list[int]:
    if isinstance(sizes, (str, bytes, Mapping)) or not isinstance(sizes, Iterable):
        raise InvalidTypeError(f"sizes must be numbers of topics, got {sizes!r:.100}")
    checked = sorted({checks.whole_number("sizes", size, 1, MOST_SIZE) for size in sizes})
    if not checked:
        raise InvalidArgumentError("sizes is empty; give at least one, or leave it out")
    return checked


def _by_evidence(
    model: Any,
    data: Any,
    sizes: Any,
    concentrations: Any,
    random_state: RandomState,
    options: Mapping[str, Any],
) -> SizeChoice:
    if isinstance(model, LatentDirichletAllocation):
        model = AllocationModel.nmf(None, concentration=1.0)
    if not isinstance(model, AllocationModel):
        raise InvalidTypeError(
            f"evidence is that of an AllocationModel or of LDA, got {model!r:.100}"
        )
    return by_evidence(
        model, data, _ranges(model, sizes), concentrations, random_state, dict(options)
    )


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
            f"the unknown sizes are those of {', '.join(hidden)}; give a mapping of each of them "
            "to its sizes"
        )
    return {node: _checked_sizes(by_node[node]) for node in hidden}
