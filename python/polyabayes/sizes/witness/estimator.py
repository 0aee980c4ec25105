"""WitnessSearch: the search as an estimator."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Self

from sklearn.base import clone

from polyabayes._support import checks
from polyabayes._support.docs import shared_docs
from polyabayes._support.random import draw_seed
from polyabayes._support.results import ResultTable
from polyabayes._support.storage.state_folder import StateFolder
from polyabayes.allocation.model import AllocationModel
from polyabayes.data.corpus import Corpus, as_corpus, of_layer
from polyabayes.exceptions import Interrupted, InvalidArgumentError, InvalidTypeError
from polyabayes.models.fitting import fingerprint
from polyabayes.sizes.priors import Mixture, SizePrior
from polyabayes.sizes.scores import named
from polyabayes.sizes.witness.adapters import (
    EvidenceScorer,
    FunctionScorer,
    NestedEstimator,
    Scorer,
    is_estimator,
    log_multinomial_ceiling,
)
from polyabayes.sizes.witness.results import SearchResults, component_bounds
from polyabayes.sizes.witness.runner import Runner, StopRules
from polyabayes.sizes.witness.search import BOUNDS, KINDS, STRATEGIES, Rules, Search

# File of a state folder that identifies its search.
_HEAD = "search.safetensors"


@shared_docs
class WitnessSearch(SearchResults):
    """Search over unknown sizes, with bounds of p(y) and of the posterior of every size.

    This is the witness algorithm of Chiang and Poole. Explored sizes contribute F to p(y);
    unexplored sizes have prior mass H. The score of an unexplored size is at least that of its best
    witness (an explored size that is not larger in any variable), and at most a ceiling U. Hence
    F + (witnesses' share of H) <= p(y) <= F + U H. The bounds tighten with every step and are valid
    at any stopping time.

    Parameters
    ----------
    estimator : estimator, AllocationModel or callable
        Source of scores:

        * A callable ``estimator(*sizes)`` returns ln p(y | sizes) in nats, or a tuple (value,
          standard error) or (value, standard error, degrees of freedom of Student's t).
        * An estimator with parameters ``n_components``, ``fit_method="em"`` and ``init``, such as
          :class:`LatentDirichletAllocation`, is trained at each size from the model of its best
          witness. Every size up to 10, and then after each growth by a tenth, is also trained
          afresh. The model with the larger ``bound_`` is scored; if it scores below the witness,
          the witness's model is kept. Learned priors work best.
        * An :class:`AllocationModel` is scored by its evidence, with its error. Its sizes that are
          None are the variables, as in ``AllocationModel.blockmodel(None, None)``.
    prior : priors.SizePrior
        Prior of the size, or joint prior of several sizes; ``priors.Mixture`` if the prior is
        uncertain.
    kind : {"nested", "evidence"}, optional
        ``"nested"``: scores never fall as sizes grow (point parameters, each size trained from
        smaller ones); a fall beyond the errors is refused. An estimator satisfies this, since the
        witness's model with unused topics is a model of each larger size. ``"evidence"``: scores
        may fall, and the bounds are F <= p(y) <= F + U H. Default: "evidence" for an allocation
        model, else "nested".
    bound : {"witness", "min-witness", "paper"}, default="witness"
        ``"witness"``: the lower bound of an unexplored size is its best witness, and the upper
        bound is the lowest score of larger explored sizes. ``"min-witness"``: the bounds are the
        lowest witness and U for all sizes. ``"paper"``: as "min-witness" with U = 1, and predictive
        bounds that are valid only if all unexplored sizes predict like the lowest witness.
    upper : {"vacuous", "multinomial"} or callable, optional
        The ceiling U. ``"vacuous"``: 1, for scores that are probabilities, not densities.
        ``"multinomial"``: the probability of the tokens under each document's own frequencies, for
        any mixture of multinomials, such as LDA (for an allocation model: of the tensor under its
        frequencies). A callable of X returns ln U. Default: "vacuous" for a callable score or
        ``bound="paper"``, else "multinomial".
    predictive : callable, optional
        For a callable score: ``predictive(documents, *sizes)`` returns ln p(documents | y, sizes),
        with errors as for the score.
    scoring : {"likelihood", "bound"}, default="likelihood"
        Score of an estimator: :func:`log_likelihood` of the training documents as a sequence, with
        its errors, or its ``bound_``. With ``bound_``, a lower bound, only ``lower`` is valid;
        other results treat it as exact (see ``holds_``).
    scoring_options : dict, optional
        Further arguments of :func:`log_likelihood`, or of an allocation model's ``log_evidence``,
        whose "vb" is a lower bound. The default method takes most of the time of a search;
        {"method": "smc-lookahead", "n_particles": 100, "n_replicates": 8} is much faster, with
        larger errors.
    strategy : {"successor", "widest"}, optional
        The configuration to score next:

        * ``"successor"``: the one with the largest prior mass above the lowest witness (the paper's
          choice). It raises the lower bound fastest, but with several sizes it may stay on one
          axis forever.
        * ``"widest"``: the one with the largest contribution to the width of the bounds.

        Default: "successor" for nested scores, "widest" for evidence. A single size always grows
        one by one.
    max_steps : int, optional
        Most steps.
    width : float, optional
        Stop if the bounds of ln p(y) are this close, in nats.
    max_seconds : float, optional
        Start no step after this time, except the first.
    max_unexplored : float, optional
        Stop if H is at most this. Default: 1e-6 if no stopping rule is given.
    level : float, default=0.95
        Probability that all scores with errors are within their intervals. The i-th interval may
        fail with probability (1 - level) 6 / (pi i)^2, so that bounds are valid at any stopping
        time.
    random_state : None, int, RandomState, Generator or SeedSequence
        Seed of :func:`log_likelihood`, and of an estimator without a seed.
    checkpoint : path-like, optional
        Folder for scores, models and predictions, written after every score. A search with the same
        corpus, score, prior, kind and strategy resumes from there; another is refused. A function
        is identified by its name: use another folder if its result changes.
    progress : bool, default=False
        Show a progress bar (needs tqdm).

    Attributes
    ----------
    size_names_ : tuple of str
        Names of the columns of sizes in all tables: ``"size"``; for several, ``"size_1"`` and so
        on, or the nodes of an allocation model.
    bounds_ : ResultTable
        One row per step: the sizes, ``log_score`` and ``std_error`` (NaN if scoring failed),
        ``log_prior``, ``log_f``, ``log_h``, ``lower`` and ``upper`` (bounds of ln p(y)),
        ``witness`` (the lowest witness, or None), ``n_witnesses``, ``seconds``, ``failure``.
    trace_ : list of SearchStep
        The witness set after every step, and the pruned configurations.
    log_ceiling_ : float
        Ln U.
    holds_ : dict of str to bool
        Whether the "lower", "upper", "posterior" and "predictive" bounds are valid.
    stop_reason_ : str
        "exhausted", "max_steps", "width", "max_seconds", "max_unexplored" or "interrupted".
    n_steps_ : int
        Number of steps.
    posterior_bounds_ : ResultTable
        One row per explored size: ``lower`` and ``upper`` (bounds of p(sizes | y)), and their logs.
    unexplored_posterior_ : tuple of float
        Bounds of the posterior of all other sizes together.
    best_ : int or tuple of int
        The explored size with the largest prior mass times score.

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
    ) -> Self:
        """Search until a stopping rule applies.

        Parameters
        ----------
        X : Corpus, sparse matrix, integer array or DataFrame, shape (n_documents, n_words)
            The documents; for an allocation model, the data of its ``log_evidence``. A callable
            score needs them only with ``upper="multinomial"``.
        {y}
        {layer}

        Returns
        -------
        self

        Raises
        ------
        InvalidArgumentError, InvalidTypeError
            If an argument is bad, or `checkpoint` is of another search; before any work.
        ScoreError
            If a score is NaN, infinite or above the ceiling, a nested score falls, ten scores in a
            row fail; the search so far is kept.
        Interrupted
            On Ctrl-C: a KeyboardInterrupt whose ``partial`` is this search, ready for use.

        Examples
        --------
        >>> prior = pb.priors.Geometric(0.5)
        >>> search = pb.WitnessSearch(lambda k: -10.0 - 2.0 / k, prior, max_steps=6).fit()
        >>> search.n_steps_
        6
        """
        if not isinstance(self.prior, SizePrior):
            raise InvalidTypeError(
                f"prior must be one of polyabayes.priors, got {self.prior!r}; priors.Custom makes "
                "one of functions"
            )
        is_corpus = not (X is None or isinstance(self.estimator, AllocationModel))
        data = as_corpus(of_layer(X, layer), "X") if is_corpus else of_layer(X, layer)
        stops = StopRules.checked(self.max_steps, self.width, self.max_seconds, self.max_unexplored)
        seed, folder = draw_seed(self.random_state), None
        if self.checkpoint is not None:
            folder = StateFolder(self.checkpoint, "the search")
            if self.random_state is None:
                seed = folder.header(_HEAD).get("seed", seed)
        kind = "evidence" if isinstance(self.estimator, AllocationModel) else "nested"
        kind = checks.choice("kind", kind if self.kind is None else self.kind, KINDS)
        scorer = self._make_scorer(kind, data, seed, folder)
        rules = self._rules(kind, data, scorer)
        if folder is not None:
            identity = {
                "prior": repr(self.prior),
                "corpus": fingerprint(data) if isinstance(data, Corpus) else None,
                "kind": kind,
                "strategy": rules.strategy,
                "seed": seed,
            }
            folder.claim(_HEAD, "search", identity | scorer.identity())
        self._search, self._scorer = Search(self.prior, rules), scorer
        self.stop_reason_ = "interrupted"
        runner = Runner(self._search, scorer, stops, folder)
        try:
            self.stop_reason_ = runner.run(progress=self.progress)
        except KeyboardInterrupt:
            raise Interrupted(f"stopped after {self.n_steps_:,} steps", self) from None
        return self

    def under(self, prior: SizePrior) -> WitnessSearch:
        """Use the same scores under another prior, without scoring again.

        Parameters
        ----------
        prior : SizePrior
            A prior of the same number of sizes.

        Returns
        -------
        WitnessSearch
            A fitted search; this search is unchanged.

        {raises: bad search}

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
        """Bounds of the posterior probability of each component of a mixture of priors.

        Component c has posterior probability Σ_s p(s | y) w_c p(s | c) / p(s), bounded over all
        possible scores.

        Returns
        -------
        ResultTable
            One row per component: ``prior``, ``log_weight``, ``log_evidence_lower`` and
            ``log_evidence_upper`` (bounds of ln p(y | component)), ``lower`` and ``upper`` (bounds
            of its posterior probability), and their logs.

        {raises: bad search}

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
                "priors.Mixture, or use under(priors.Mixture([...]))"
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

    def _make_scorer(self, kind: str, data: Any, seed: int, folder: StateFolder | None) -> Scorer:
        estimator, predictive, first = self.estimator, self.predictive, self.prior.first
        options = {} if self.scoring_options is None else self.scoring_options
        if not isinstance(options, Mapping):
            raise InvalidTypeError(f"scoring_options must be a dict or None, got {options!r}")
        if predictive is not None and not callable(predictive):
            raise InvalidTypeError(f"predictive must be a function or None, got {predictive!r}")
        if isinstance(estimator, AllocationModel):
            if kind != "evidence":
                raise InvalidArgumentError(
                    "the evidence of an allocation model may fall as sizes grow: use "
                    'kind="evidence"'
                )
            return EvidenceScorer(estimator, data, first, options, seed, predictive)
        if is_estimator(estimator):
            if kind != "nested" or len(first) != 1:
                raise InvalidArgumentError(
                    'an estimator gives nested scores of one size: use kind="nested" and a prior '
                    "of one size; to choose by integrated evidence, give an allocation model of "
                    "unknown size, as AllocationModel.nmf(None), or a function of the sizes"
                )
            if data is None:
                raise InvalidArgumentError("X is missing: an estimator must be fitted to documents")
            return NestedEstimator(estimator, data, self.scoring, options, seed, folder)
        if not callable(estimator) or isinstance(estimator, type):
            raise InvalidTypeError(
                "estimator must be one of scikit-learn's kind, an AllocationModel or a function of "
                f"sizes, got {estimator!r}"
            )
        return FunctionScorer(estimator, predictive)

    def _rules(self, kind: str, data: Any, scorer: Scorer) -> Rules:
        strategy = self.strategy
        if strategy is None:
            strategy = "successor" if kind == "nested" else "widest"
        return Rules(
            kind=kind,
            bound=checks.choice("bound", self.bound, BOUNDS),
            strategy=checks.choice("strategy", strategy, STRATEGIES),
            level=checks.share("level", self.level),
            log_ceiling=self._log_ceiling(data, scorer),
        )

    def _log_ceiling(self, data: Any, scorer: Scorer) -> float:
        """Ln of an upper bound of p(y | sizes) for all sizes."""
        upper = self._upper()
        if callable(upper):
            value = float(upper(data))
            if not math.isfinite(value):
                raise InvalidArgumentError(f"upper(X) is {value}: it must be a finite number")
            return value
        if checks.choice("upper", upper, ("multinomial", "vacuous")) == "vacuous":
            return 0.0
        if isinstance(scorer, EvidenceScorer):
            return scorer.log_ceiling()
        if data is None:
            raise InvalidArgumentError('upper="multinomial" needs X, the counts')
        return log_multinomial_ceiling(data)


def check_further_prior(prior: Any, first: SizePrior) -> None:
    """Refuse anything but a prior of the same number of sizes."""
    if not isinstance(prior, SizePrior) or prior.n_variables != first.n_variables:
        raise InvalidArgumentError(f"prior must be of {first.n_variables} sizes, got {prior!r}")
