"""WitnessSearch: the search as an estimator."""

from __future__ import annotations

import math
from collections.abc import Mapping
from concurrent.futures import Executor
from typing import Any, Self

from sklearn.base import clone

from polyabayes._support import checks
from polyabayes._support.docs import shared_docs
from polyabayes._support.random import draw_seed
from polyabayes._support.results import ResultTable
from polyabayes._support.state_folder import StateFolder
from polyabayes.allocation.model import AllocationModel
from polyabayes.data.corpus import Corpus, as_corpus, of_layer
from polyabayes.exceptions import Interrupted, InvalidArgumentError, InvalidTypeError
from polyabayes.models.fitting import fingerprint
from polyabayes.scale.executors import check_executor, n_workers
from polyabayes.sizes.priors import Mixture, SizePrior
from polyabayes.sizes.scores import named
from polyabayes.sizes.witness.adapters import Scorer
from polyabayes.sizes.witness.found import SearchResults
from polyabayes.sizes.witness.results import component_bounds
from polyabayes.sizes.witness.runner import Runner, StopRules
from polyabayes.sizes.witness.search import BOUNDS, KINDS, STRATEGIES, Rules, Search
from polyabayes.sizes.witness.sources import (
    ScoreOptions,
    check_further_prior,
    kind_of,
    log_ceiling_of,
    make_scorer,
)

# File of a state folder that says whose it is.
_HEAD = "search.safetensors"


@shared_docs
class WitnessSearch(SearchResults):
    """Search over unknown sizes, with bounds on p(y) and on every posterior that always hold.

    The witness algorithm of Chiang and Poole. Explored sizes give F, the part of p(y) that is
    known; the prior mass H outside is bounded: each unexplored size is at least as good as its
    best witness, an explored size that is no larger in any variable, and no better than a ceiling
    U. Then F + (witnesses' share of H) <= p(y) <= F + U H. The bounds tighten with every step and
    hold wherever the search stops.

    Parameters
    ----------
    estimator : estimator, AllocationModel or callable
        A callable ``estimator(*sizes)`` gives ln p(y | sizes) in nats, or a tuple of it and its
        standard error, or of these and degrees of freedom (Student's distribution; else normal).
        An estimator with parameters ``n_components``, ``fit_method="em"`` and ``init``, as
        :class:`LatentDirichletAllocation`, is trained on the documents: each size from the model
        of its best witness, every size up to 10 and then each that has grown by a tenth also
        afresh, as chains of grown models fall behind. The model of larger ``bound_`` is scored,
        and gives way to the witness's own where it scores lower. Best with learned priors.
        An :class:`AllocationModel` is scored by its integrated evidence, with its error; its sizes
        that are None are the variables, as in ``AllocationModel.blockmodel(None, None)``.
    prior : priors.SizePrior
        Prior of the size, or the joint prior of several; ``priors.Mixture`` where it is not
        certain itself.
    kind : {"nested", "evidence"}, optional
        ``"nested"`` promises that the score never falls as sizes grow (point parameters, each
        size trained from smaller ones): a fall beyond the errors is refused. ``"evidence"``
        promises nothing: then only F <= p(y) <= F + U H holds. An estimator keeps the promise: the
        witness's model with topics that no document uses is one of each larger size. None is
        "evidence" for an allocation model, else "nested".
    bound : {"witness", "min-witness", "paper"}, default="witness"
        ``"witness"``: each unexplored size takes its best witness, and as a ceiling the lowest
        score of the larger ones explored. ``"min-witness"``: all take the lowest witness, and U.
        ``"paper"``: the same with U = 1, and predictive bounds that hold only if every
        unexplored size predicts as the min-witness does.
    upper : {"vacuous", "multinomial"} or callable, optional
        U: 1; the probability of the tokens by each document's own frequencies, for any mixture of
        multinomials, such as LDA (of an allocation model the whole tensor by its frequencies); or a
        function of X that gives ln U. None takes "vacuous" for a callable or the paper's bounds,
        else "multinomial". "vacuous" needs scores of probabilities, not of densities.
    predictive : callable, optional
        Unless `estimator` is one of scikit-learn's kind: ``predictive(documents, *sizes)`` gives
        ln p(documents | y, sizes), with errors as a callable score does.
    scoring : {"likelihood", "bound"}, default="likelihood"
        How an estimator is scored: by :func:`log_likelihood` of the training documents as a
        sequence, with its errors, or by its ``bound_``. That is a lower bound: what it gives for
        ``lower`` holds, all else is as if it were exact (see ``holds_``).
    scoring_options : dict, optional
        Further arguments of :func:`log_likelihood`. Its "auto" takes most of a search's time:
        {"method": "smc-lookahead", "n_particles": 100, "n_replicates": 8} is faster by far, with
        larger errors. Or of an allocation model's ``log_evidence``, whose "vb" is a lower bound.
    strategy : {"successor", "widest", "best-first"}, optional
        What is scored next: ``"successor"``, of those above the witness with the lowest score the
        one of most prior mass (the paper's choice, which raises its lower bound fastest);
        ``"widest"``, that with the largest part in the bounds' width; ``"best-first"``, that with
        the largest part per second that its witness took, which depends on the machine. With
        several sizes the first may stay on one axis for ever, where larger sizes there never catch
        up with the other witnesses: the others explore all. None is "successor" for nested scores,
        "widest" for evidence, whose witnesses say nothing. One size goes up one by one in each.
    max_steps : int, optional
        Stop after as many steps.
    width : float, optional
        Stop where the bounds on ln p(y) are that close, in nats.
    max_seconds : float, optional
        Start no step after this time, but for the first.
    max_unexplored : float, optional
        Stop where H is at most this. Without any of these rules it is 1e-6.
    level : float, default=0.95
        Probability that all scores with errors lie within their intervals: the i-th may miss with
        probability (1 - level) 6 / (pi i)^2, so that bounds hold at any stopping time.
    random_state : None, int, RandomState, Generator or SeedSequence
        Seed of :func:`log_likelihood`, and of an estimator that has none.
    checkpoint : path-like, optional
        Folder for scores, models and predictions, written after every score. A search of the same
        corpus, score, prior, kind and strategy goes on from there; that of another is refused. A
        function is known by its name: after a change of what it does give another folder.
    progress : bool, default=False
        Show a progress bar (needs tqdm).

    Attributes
    ----------
    size_names_ : tuple of str
        Names of the columns of sizes in all tables: ``"size"``; of several ``"size_1"`` and so on,
        or the nodes of an allocation model.
    bounds_ : ResultTable
        One row a step: the sizes, ``log_score`` and ``std_error`` (NaN where scoring failed),
        ``log_prior``, ``log_f``, ``log_h``, ``lower`` and ``upper`` (bounds on ln p(y)),
        ``witness`` (the one with the lowest score, None without), ``n_witnesses``, ``seconds``,
        ``failure``.
    trace_ : list of SearchStep
        The witness set after every step, and what was pruned.
    log_ceiling_ : float
        Ln U.
    holds_ : dict of str to bool
        Whether "lower", "upper", "posterior" and "predictive" bounds hold.
    stop_reason_ : str
        "exhausted", "max_steps", "width", "max_seconds", "max_unexplored" or "interrupted".
    n_steps_ : int
        Steps taken.
    posterior_bounds_ : ResultTable
        One row an explored size: ``lower`` and ``upper`` (bounds on p(sizes | y)), and their logs.
    unexplored_posterior_ : tuple of float
        Bounds on the posterior of all other sizes together.
    best_ : int or tuple of int
        The explored size of largest prior mass times score.

    References
    ----------
    M. Chiang and D. Poole. A search algorithm for latent variable models with unbounded domains.

    Examples
    --------
    >>> search = pb.WitnessSearch(lambda k: -3.0 - 4.0 / k, pb.priors.Poisson(2), width=0.01)
    >>> search = search.fit()
    >>> row = search.bounds_.row(-1)
    >>> print(f"{search.n_steps_} steps, {row['lower']:.3f} to {row['upper']:.3f}")
    10 steps, -4.404 to -4.401
    """

    def __init__(
        self,
        estimator: Any,
        prior: Any,
        *,
        kind: str | None = None,
        bound: str = "witness",
        upper: Any = None,
        predictive: Any = None,
        scoring: str = "likelihood",
        scoring_options: Any = None,
        strategy: str | None = None,
        max_steps: int | None = None,
        width: float | None = None,
        max_seconds: float | None = None,
        max_unexplored: float | None = None,
        level: float = 0.95,
        random_state: Any = None,
        checkpoint: Any = None,
        progress: bool = False,
    ) -> None:
        self.estimator = estimator
        self.prior = prior
        self.kind = kind
        self.bound = bound
        self.upper = upper
        self.predictive = predictive
        self.scoring = scoring
        self.scoring_options = scoring_options
        self.strategy = strategy
        self.max_steps = max_steps
        self.width = width
        self.max_seconds = max_seconds
        self.max_unexplored = max_unexplored
        self.level = level
        self.random_state = random_state
        self.checkpoint = checkpoint
        self.progress = progress

    def fit(
        self,
        X: Any = None,
        y: Any = None,  # noqa: ARG002
        *,
        layer: str | None = None,
        executor: Executor | None = None,
        n_in_flight: int | None = None,
    ) -> Self:
        """Search until a rule says stop.

        Parameters
        ----------
        X : Corpus, sparse matrix, integer array or DataFrame, shape (n_documents, n_words)
            The documents; a callable score does without, unless ``upper="multinomial"``. For an
            allocation model what its ``log_evidence`` takes, as a CountTensor.
        y : ignored
            Present for scikit-learn.
        {layer}
        executor : concurrent.futures.Executor, optional
            Has several configurations scored at once, those that are likely to come next ahead of
            their turn. The steps are those without it, whichever score is finished first. For
            functions and allocation models, which a process pool must be able to pickle; the sizes
            of an estimator come one from the other. Ctrl-C does not stop what its workers do.
        n_in_flight : int, optional
            Configurations that the executor is given at once; by default one a core.

        Returns
        -------
        self

        Raises
        ------
        InvalidArgumentError, InvalidTypeError
            If an argument is bad, or `checkpoint` is of another search; before any work.
        ScoreError
            If a score is NaN or infinite, above the ceiling, or falls where nesting was promised,
            if ten in a row fail, or if the executor breaks down; the search up to there is kept.
        Interrupted
            On Ctrl-C: a KeyboardInterrupt whose ``partial`` is this search, usable as it is.

        Examples
        --------
        >>> prior = pb.priors.Geometric(0.5)
        >>> search = pb.WitnessSearch(lambda k: -10.0 - 2.0 / k, prior, max_steps=6).fit()
        >>> search.n_steps_
        6
        """
        self._check_prior()
        is_corpus = not (X is None or isinstance(self.estimator, AllocationModel))
        data = as_corpus(of_layer(X, layer), "X") if is_corpus else of_layer(X, layer)
        stops = StopRules.checked(self.max_steps, self.width, self.max_seconds, self.max_unexplored)
        seed, folder = draw_seed(self.random_state), None
        if self.checkpoint is not None:
            folder = StateFolder(self.checkpoint, "the search")
            if self.random_state is None:
                seed = folder.header(_HEAD).get("seed", seed)
        scorer = self._make_scorer(data, seed, folder)
        rules = self._rules(data, scorer)
        n_in_flight = _checked_executor(executor, n_in_flight, scorer)
        if folder is not None:
            folder.claim(_HEAD, "search", self._identity(scorer, data, rules, seed))
        self._search, self._scorer = Search(self.prior, rules), scorer
        self.stop_reason_ = "interrupted"
        runner = Runner(self._search, scorer, stops, folder, executor, n_in_flight)
        try:
            self.stop_reason_ = runner.run(progress=self.progress)
        except KeyboardInterrupt:
            raise Interrupted(f"stopped after {self.n_steps_:,} steps", self) from None
        return self

    def under(self, prior: SizePrior) -> WitnessSearch:
        """The same scores under another prior, without scoring anything again.

        Parameters
        ----------
        prior : SizePrior
            A prior of as many sizes.

        Returns
        -------
        WitnessSearch
            A fitted search; this one is left as it is.

        Raises
        ------
        InvalidTypeError, InvalidArgumentError, NotFittedError
            If `prior` is no prior of as many sizes, or the search is not fitted.

        Examples
        --------
        >>> prior = pb.priors.Geometric(0.5)
        >>> search = pb.WitnessSearch(lambda k: -10.0 - 2.0 / k, prior, max_steps=6).fit()
        >>> search.under(pb.priors.Geometric(0.9)).n_steps_
        6
        """
        done = self._fitted()
        check_further_prior(prior, self.prior)
        for record in done.records:
            if any(size < low for size, low in zip(record.sizes, prior.first, strict=True)):
                raise InvalidArgumentError(
                    f"{named(record.sizes)} is explored, but {prior!r} begins at {prior.first}"
                )
        other: WitnessSearch = clone(self).set_params(prior=prior)
        other._search, other._scorer = Search(prior, done.rules), self._scorer
        other.stop_reason_ = self.stop_reason_
        for record in done.records:
            other._search.add(record)
        return other

    def posterior_of_priors(self) -> ResultTable:
        """Bounds on the posterior probability of each component of a mixture of priors.

        Component c has the posterior probability sum over sizes of p(s | y) w_c p(s | c) / p(s),
        which is bounded over all that the scores may be, the same for every component.

        Returns
        -------
        ResultTable
            One row a component: ``prior``, ``log_weight``, ``log_evidence_lower`` and
            ``log_evidence_upper`` (bounds on ln p(y | component)), ``lower`` and ``upper`` (bounds
            on its posterior probability), and their logs.

        Raises
        ------
        InvalidArgumentError, NotFittedError, ScoreError
            If the prior is no :class:`~polyabayes.priors.Mixture`, the search is not fitted, or
            nothing is scored.

        Examples
        --------
        >>> prior = pb.priors.Mixture([pb.priors.Poisson(1), pb.priors.Poisson(9)])
        >>> search = pb.WitnessSearch(lambda k: -8.0 / k, prior).fit()
        >>> search.posterior_of_priors().to_frame()[["lower", "upper"]].round(3).to_numpy().tolist()
        [[0.069, 0.069], [0.931, 0.931]]
        """
        done = self._fitted()
        if not isinstance(self.prior, Mixture):
            raise InvalidArgumentError(
                f"the prior is {self.prior!r}, with no components to compare: fit with "
                "priors.Mixture, or take under(priors.Mixture([...]))"
            )
        shares = component_bounds(done, self.prior)
        names = ("prior", "log_weight", "log_evidence_lower", "log_evidence_upper")
        rows = []
        for prior, log_weight, log_share in zip(
            self.prior.priors, self.prior.log_weights.tolist(), shares, strict=True
        ):
            bounds = self.under(prior)._fitted().bounds[-1]
            evidence = bounds.lower, bounds.upper
            rows.append([repr(prior), log_weight, *evidence, *map(math.exp, log_share), *log_share])
        return ResultTable([*names, "lower", "upper", "log_lower", "log_upper"], rows)

    def _check_prior(self) -> None:
        if not isinstance(self.prior, SizePrior):
            raise InvalidTypeError(
                f"prior must be one of polyabayes.priors, got {self.prior!r}; priors.Custom makes "
                "one of functions"
            )

    def _make_scorer(self, data: Any, seed: int, folder: StateFolder | None) -> Scorer:
        options = {} if self.scoring_options is None else self.scoring_options
        if not isinstance(options, Mapping):
            raise InvalidTypeError(f"scoring_options must be a dict or None, got {options!r}")
        kind = checks.choice("kind", kind_of(self.estimator, self.kind), KINDS)
        given = ScoreOptions(self.predictive, self.scoring, dict(options), seed, folder)
        return make_scorer(self.estimator, kind, self.prior.first, data, given)

    def _rules(self, data: Any, scorer: Scorer) -> Rules:
        kind, strategy = kind_of(self.estimator, self.kind), self.strategy
        if strategy is None:
            strategy = "successor" if kind == "nested" else "widest"
        return Rules(
            kind=kind,
            bound=checks.choice("bound", self.bound, BOUNDS),
            strategy=checks.choice("strategy", strategy, STRATEGIES),
            level=checks.share("level", self.level),
            log_ceiling=log_ceiling_of(self._upper(), data, scorer),
        )

    def _identity(self, scorer: Scorer, data: Any, rules: Rules, seed: int) -> dict[str, Any]:
        return {
            "prior": repr(self.prior),
            "corpus": fingerprint(data) if isinstance(data, Corpus) else None,
            "kind": rules.kind,
            "strategy": rules.strategy,
            "seed": seed,
            **scorer.identity(),
        }


def _checked_executor(executor: Any, n_in_flight: Any, scorer: Scorer) -> int:
    """How many scores an executor is asked for at once."""
    if check_executor(executor) is None:
        if n_in_flight is not None:
            raise InvalidArgumentError("n_in_flight needs an executor: give one, or leave it out")
        return 1
    if scorer.function is None:
        raise InvalidArgumentError(
            "executor scores several sizes at once, but an estimator trains each size from the "
            "one before: leave it out, n_jobs of the estimator gives the threads of each size, "
            "and cross_validate takes an executor for its folds"
        )
    if n_in_flight is None:
        return n_workers(executor) or checks.n_threads(None)
    return checks.whole_number("n_in_flight", n_in_flight)
