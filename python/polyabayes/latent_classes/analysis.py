"""Latent class analysis as a scikit-learn estimator."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
from scipy import special

from polyabayes._support import checks
from polyabayes._support.arrays import Indices
from polyabayes._support.docs import shared_docs
from polyabayes._support.random import RandomState
from polyabayes._support.results import ResultTable
from polyabayes.allocation.options import Run
from polyabayes.data.names import CALLS
from polyabayes.data.tensors.non_answers import marks_by_column
from polyabayes.exceptions import InvalidArgumentError, PolyabayesError, argument
from polyabayes.latent_classes.answers import (
    Answers,
    RowWeights,
    read_answers,
    refuse_fractions,
    warn_of_copies,
)
from polyabayes.latent_classes.choice import (
    PRIORS,
    ClassChoice,
    ClassComparison,
    ClassPrior,
    checked_ln_prior,
    checked_sizes,
)
from polyabayes.latent_classes.discrimination import ItemSets
from polyabayes.latent_classes.fitted import FittedClasses
from polyabayes.latent_classes.maximum import (
    Replicates,
    SampledUnits,
    bootstrap_p_value,
    entropy_r2,
    fit_rows,
    logit_errors,
    maxima,
)
from polyabayes.latent_classes.membership import draw_memberships
from polyabayes.models.files.load import readers
from polyabayes.models.fitted.formulas import formula_columns
from polyabayes.sizes.priors import SizePrior


@shared_docs
class LatentClassAnalysis(FittedClasses):
    """Latent class analysis of categorical answers, with a probability for each number of classes.

    Every row belongs to one of K classes, and answers the items independently given its class:
    p(row) = Σ_k w_k Π_j θ_jk(answer to j). Missing answers are summed out. Class weights w and
    answer probabilities θ have Dirichlet priors and are integrated out, so numbers of classes are
    compared by their evidence.

    Membership may depend on covariates: p(class k | x) ∝ exp(x·λ_k). λ is drawn together with the
    classes. The exponential of an intercept, at the mean of the covariates, has a gamma prior, so
    weights without slopes are Dirichlet. Slopes of standardised columns are normal with a common,
    learned variance. The number of classes is chosen without the covariates (Nylund-Gibson and
    Masyn 2016).

    An evaluation of one number of classes costs particles x rows x items x classes.

    Parameters
    ----------
    n_classes : int or iterable of int, optional
        Number of classes, or numbers to choose from. By default 1, 2, 3 and so on, until a further
        class has no chance or there are `max_classes`.
    items : sequence of str, optional
        The columns that are items; by default all but that of the weights.
    method : {"bayes", "em"}, default="bayes"
        ``"bayes"``: posterior means over draws of the classes, with intervals, for the most
        probable number of classes. ``"em"``: maximum likelihood, for the number of classes with the
        smallest BIC.
    prior : {"learned", "flat", "jeffreys", "bdeu"} or mapping, default="learned"
        Dirichlet parameters of the class weights, and of the answers to each item in a class.

        * ``"learned"``: 4 for the weights, so classes are seldom empty. For the answers of all
          items that tell the classes apart, 1/4, 1, 4, ..., 4,096 are equally probable; evidences
          average over them, and draws use the most probable one. An item that does not tell has
          one profile in all classes, and a parameter of its own: see :meth:`item_discrimination`.
        * ``"flat"``: 1 and 1. ``"jeffreys"``: 1/2 and 1/2.
        * ``"bdeu"``: 1/K and 1/(K x levels), as in :class:`AllocationModel`.
        * A mapping: ``weights``, a number, and ``items``, a number or several.
    size_prior : SizePrior, optional
        Prior of the number of classes; by default P(K) ∝ 2^-K. Numbers that were not tried are left
        out.
    max_classes : int, default=10
        Largest number of classes to try if `n_classes` is not given.
    formula : str, optional
        Covariates of membership, such as ``"~ age + party"``: columns of `X`, which are then no
        items, or of the `covariates` of :meth:`fit`. Needs formulaic; ``"bayes"`` only.
    max_time : float, optional
        For ``"bayes"``: seconds after which no evaluation of a number of classes starts. The choice
        then uses what is known; drawing the chosen classes comes on top.
    n_restarts : int, default=20
        Random starts of ``"em"``.
    tol : float, default=1e-10
        Relative gain at which ``"em"`` has converged.
    {seed}
    {n_jobs}
    progress : bool, default=False
        Show the evaluations of numbers of classes (needs tqdm).

    Attributes
    ----------
    n_classes_ : int
        Number of classes.
    class_weights_ : ndarray of shape (n_classes,)
        Probabilities of the classes, the largest first.
    item_probabilities_ : dict of str to DataFrame, shape (n_classes, n_levels)
        Probabilities of the answers to each item, one row per class.
    choice_ : ClassChoice
        Every number of classes that was tried.
    log_evidence_ : float
        ln of the probability of the rows with all parameters integrated out, in nats, averaged over
        the sets of items that were compared as those that tell; NaN for ``"em"``, for `weights`
        that are not all whole numbers, and if membership depends on covariates.
    coefficients_ : ndarray of shape (n_classes, n_columns)
        If membership depends on covariates: log odds ratios against class 0, per unit of each
        column; means over ``coefficient_draws_``. ``covariate_names_`` has the columns.
    log_likelihood_ : float
        ln of the probability of the rows under the fitted probabilities, in nats.
    n_parameters_ : int
        Free parameters: K - 1 + K Σ (levels - 1), an item of one profile counted once.
    feature_names_in_ : ndarray of str
        The items.
    n_features_in_ : int
        Number of items.

    Raises
    ------
    InvalidArgumentError, InvalidCountsError, InvalidTypeError
        In ``fit``, before any work, if a column cannot be an item, or a row has no answer.

    References
    ----------
    P. F. Lazarsfeld and N. W. Henry (1968). Latent structure analysis. Houghton Mifflin.

    L. A. Goodman (1974). Exploratory latent structure analysis using both identifiable and
    unidentifiable models. Biometrika 61(2).

    D. A. Binder (1983). On the variances of asymptotically normal estimators from complex surveys.
    International Statistical Review 51(3).

    S. Frühwirth-Schnatter (2006). Finite mixture and Markov switching models. Springer. Section
    4.2.2, on the parameter of the weights.

    J. W. Miller and M. T. Harrison (2018). Mixture models with a prior on the number of components.
    Journal of the American Statistical Association 113(521).

    K. Nylund-Gibson and K. E. Masyn (2016). Covariates and mixture modeling: Results of a
    simulation study exploring the impact of misspecified effects on class enumeration. Structural
    Equation Modeling 23(6).

    Examples
    --------
    >>> import pandas as pd
    >>> yes_no = {"q1": ["yes"] * 20 + ["no"] * 20, "q2": ["yes"] * 19 + ["no"] * 21}
    >>> frame = pd.DataFrame({**yes_no, "q3": yes_no["q1"]})
    >>> frame.loc[0, "q2"] = None  # an answer that is missing
    >>> classes = pb.LatentClassAnalysis(random_state=0).fit(frame)
    >>> classes.n_classes_, classes.class_weights_.round(1).tolist()
    (2, [0.5, 0.5])
    >>> classes.predict_proba(frame).shape
    (40, 2)
    """

    def __init__(
        self,
        n_classes: int | Iterable[int] | None = None,
        *,
        items: Sequence[str] | None = None,
        method: str = "bayes",
        prior: str | Mapping[str, Any] = "learned",
        size_prior: SizePrior | None = None,
        max_classes: int = 10,
        formula: str | None = None,
        max_time: float | None = None,
        n_restarts: int = 20,
        tol: float = 1e-10,
        random_state: RandomState = None,
        n_jobs: int | None = None,
        progress: bool = False,
    ) -> None:
        self.n_classes = n_classes
        self.items = items
        self.method = method
        self.prior = prior
        self.size_prior = size_prior
        self.max_classes = max_classes
        self.formula = formula
        self.max_time = max_time
        self.n_restarts = n_restarts
        self.tol = tol
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.progress = progress

    def fit(
        self,
        X: Any,
        y: Any = None,  # noqa: ARG002
        *,
        weights: Any = None,
        strata: Any = None,
        clusters: Any = None,
        replicate_weights: Any = None,
        replicate_method: str | float | Sequence[float] | None = None,
        covariates: Any = None,
        missing: Sequence[Any] | Mapping[str, Sequence[Any]] = (),
    ) -> Self:
        """Find the classes.

        Parameters
        ----------
        X : DataFrame, table of polars or pyarrow, integer array, or CountTensor
            One row per respondent and one column per item; missing values are missing answers. A
            cell of a tensor stands for as many respondents as its count.
        {y}
        weights : array of shape (n_rows,) or str, optional
            Number of respondents that each row stands for, or the column with these numbers.
            Weights with fractions are sampling weights. For ``"bayes"``, they are scaled to sum to
            the effective number of rows (Kish 1965), (Σ w)² / Σ w²: draws are of the
            pseudo-posterior with these weights as powers, and numbers of classes are compared on
            a systematic sample of this size. Other methods of the classes use the same weights
            unless they are given others.
        strata, clusters : Series, array of shape (n_rows,) or str, optional
            For ``"em"``: the stratum and the cluster (primary sampling unit) of each row, or the
            columns with them, for errors of a complex sample. Strata have two clusters or more;
            without `clusters`, every row is one.
        replicate_weights : matrix of shape (n_rows, n_replicates) or sequence of str, optional
            For ``"em"``, in place of strata and clusters: replicate weights of any scale, or the
            columns with them. Each changes the estimate by one Newton step from that of all rows.
        replicate_method : {"jackknife", "brr", "bootstrap"}, float or R floats, optional
            How the R replicates were made, needed with them: the variance is the sum of the squares
            of the changes, times (R - 1)/R for a jackknife that leaves out one cluster each (JK1),
            1/R for balanced repeated replication and a bootstrap, or this number: 1/(R (1 - k)²)
            for Fay's method; one for each replicate for a jackknife within strata (JKn).
        covariates : DataFrame, mapping or matrix, optional
            Covariates of membership; categories are coded by their levels. With `formula`, the
            columns that it names; by default those of `X`.
        missing : sequence, or mapping of str to sequences, optional
            Values of all items that are missing answers, such as ``[9, "No answer"]``, or those of
            some items: ``{"trust": [77, 88], "vote": [7]}``. They hold in other rows, too.

        Returns
        -------
        LatentClassAnalysis
            The estimator itself.

        {raises: bad argument}

        Examples
        --------
        >>> answers = [[0, 0, 1], [0, 0, 1], [1, 1, 0], [1, 1, 0]]
        >>> classes = pb.LatentClassAnalysis(2, random_state=0).fit(answers, weights=[9, 8, 9, 7])
        >>> classes.predict(answers).tolist()
        [0, 0, 1, 1]
        """
        named = [column for column in (strata, clusters) if isinstance(column, str)]
        named += Replicates.columns(replicate_weights)
        answers, sizes, ends = self._checked(X, weights, missing, named)
        is_sampled = strata is not None or clusters is not None
        if self.method != "em" and (is_sampled or replicate_weights is not None):
            names = "strata and clusters" if is_sampled else "replicate_weights"
            raise InvalidArgumentError(f"{names} are for {argument('method', 'em')}")
        if is_sampled and replicate_weights is not None:
            names = f"{argument('replicate_weights')} replace {argument('strata')}"
            raise InvalidArgumentError(f"{names} and {argument('clusters')}")
        units: Replicates | SampledUnits | None
        units = Replicates.of(X, replicate_weights, replicate_method, answers.weights)
        units = units or SampledUnits.of(X, strata, clusters, len(answers.levels))
        self._sampling = "" if units is None else units.sentence()
        self._missing = marks_by_column(missing, answers.items)
        self._row_weights = None if weights is None else RowWeights.of(answers, weights)
        if self.method == "em" and (covariates is not None or self.formula is not None):
            told = f"{argument('covariates')} of classes are for {argument('method', 'bayes')}"
            raise InvalidArgumentError(told)
        design, answers = self._with_design(answers, X, covariates)
        run = Run.of(self.random_state, self.n_jobs, self.progress)
        self.seed_ = run.seed
        if self.method == "em":
            fits = maxima(answers, sizes, run, n_restarts=self.n_restarts, tol=self.tol)
            rows = fit_rows(answers, fits)
            best = min(rows, key=lambda row: row["bic"])["n_classes"]
            self.choice_, tables = ClassChoice(best, "bic", rows), fits[best]
            self._errors = logit_errors(answers, tables, units)
            self._set(answers.items, answers.labels, None, tables)
            self.log_evidence_ = np.nan
        else:
            is_weighted, answers = answers.has_fractions, self._counted(answers)
            prior = ClassPrior.of(self.prior)
            sets = self._comparison(answers, prior, sizes, run)
            try:
                choice = sets.choose(ends)
            except PolyabayesError as error:
                if isinstance(weights, str) and "divide the counts" in str(error):
                    error.args = (error.args[0] + CALLS["millionths"].format(weights),)
                raise
            self.choice_ = replace(choice, occupied=sets.occupied())
            counts, compared = sets.counts(choice.best), sets.of_best(choice.best)
            compared.warn_of_all(choice.best, sizes[-1] if ends else None)
            if design is None and not is_weighted:
                compared.warn_of_draws(compared.best((choice.best,)))
            evidences = {row["n_classes"]: row["log_evidence"] for row in choice.rows}
            self.log_evidence_ = float(evidences[choice.best])
            if design is not None or is_weighted:
                kept = answers.weights > 0
                single = answers.take(kept) if answers.has_fractions else answers.one_each()
                counts, self.log_evidence_ = draw_memberships(single, counts, run), np.nan
            self._set(answers.items, answers.labels, counts, counts.expected())
        self._design = design
        self.log_likelihood_ = answers.weighted_sum(self._ln_rows(answers))
        return self

    def fit_predict(
        self,
        X: Any,
        y: Any = None,  # noqa: ARG002
        *,
        weights: Any = None,
        covariates: Any = None,
        missing: Sequence[Any] | Mapping[str, Sequence[Any]] = (),
    ) -> Indices:
        """Find the classes, and the most probable one of each row.

        Parameters
        ----------
        {as of fit}
        {y}
        missing
            As for :meth:`fit`.

        Returns
        -------
        ndarray of int, shape (n_rows,)

        {raises: bad argument}

        Examples
        --------
        >>> pb.LatentClassAnalysis(2, random_state=0).fit_predict(answers)[15:25].tolist()
        [0, 0, 0, 0, 0, 1, 1, 1, 1, 1]
        """
        fitted = self.fit(X, weights=weights, covariates=covariates, missing=missing)
        return fitted.predict(X, covariates=covariates)

    def compare_priors(
        self,
        X: Any,
        *,
        weights: Any = None,
        missing: Sequence[Any] | Mapping[str, Sequence[Any]] = (),
    ) -> ResultTable:
        """Probabilities of the numbers of classes under each of the named priors.

        The number of classes depends on the prior of weights and answers. If the columns differ,
        report it.

        Parameters
        ----------
        X, weights, missing
            As for :meth:`fit`.

        Returns
        -------
        ResultTable
            One row per number of classes, and one column of probabilities per prior.

        {raises: bad argument}

        Examples
        --------
        >>> answers = [[0, 0, 1], [0, 1, 1], [1, 1, 0], [1, 0, 0]]
        >>> classes = pb.LatentClassAnalysis([1, 2, 3], random_state=0)
        >>> table = classes.compare_priors(answers, weights=[9, 8, 9, 7])
        >>> list(table)
        ['n_classes', 'learned', 'flat', 'jeffreys', 'bdeu']
        """
        answers, sizes, ends = self._checked(X, weights, missing)
        answers = self._counted(answers)
        run = Run.of(self.random_state, self.n_jobs, self.progress)
        found = {}
        for name, prior in PRIORS.items():
            sets = self._comparison(answers, prior, sizes, run)
            choice = sets.choose(ends)
            found[name] = choice.probabilities
            sets.of_best(choice.best).warn_of_all(choice.best, sizes[-1] if ends else None)
        numbers = sorted(set().union(*found.values()))
        rows = [[n, *(table.get(n, 0.0) for table in found.values())] for n in numbers]
        return ResultTable(["n_classes", *found], rows)

    def compare_fits(
        self,
        X: Any,
        *,
        weights: Any = None,
        missing: Sequence[Any] | Mapping[str, Sequence[Any]] = (),
        n_bootstrap: int = 0,
    ) -> ResultTable:
        """One table of all numbers of classes: criteria of maximum likelihood, and P(K).

        Report P(K): criteria and tests compare maxima, whose number of parameters says little in
        small tables, while P(K) integrates over all parameters, and has named the number of planted
        classes more often than each criterion (see the user guide).

        Parameters
        ----------
        X, weights, missing
            As for :meth:`fit`.
        n_bootstrap : int, default=0
            Data sets of the bootstrap likelihood-ratio test of each number of classes against one
            less, such as 99; 0 leaves it out. Every data set is fitted twice.

        Returns
        -------
        ResultTable
            Columns ``n_classes``, ``log_likelihood``, ``n_parameters``, ``aic``, ``bic``, ``sabic``
            (sample-size adjusted BIC), ``entropy`` (R2), ``smallest_class`` (its weight),
            ``probability`` (P(K), by the prior of this estimator), and ``blrt_p_value``: small if
            one class less does not explain the rows.

        {raises: bad argument}

        References
        ----------
        G. J. McLachlan (1987). On bootstrapping the likelihood ratio test statistic for the number
        of components in a normal mixture. Applied Statistics 36(3).

        K. L. Nylund, T. Asparouhov and B. O. Muthén (2007). Deciding on the number of classes in
        latent class analysis and growth mixture modeling. Structural Equation Modeling 14(4).

        Examples
        --------
        >>> classes = pb.LatentClassAnalysis([1, 2], random_state=0)
        >>> table = classes.compare_fits(answers, n_bootstrap=19).to_frame()
        >>> table.n_classes.tolist(), bool(table.blrt_p_value[1] == 0.05)
        ([1, 2], True)
        """
        n_bootstrap = checks.whole_number("n_bootstrap", n_bootstrap, 0)
        answers, sizes, ends = self._checked(X, weights, missing)
        if n_bootstrap:
            refuse_fractions(answers)
        run = Run.of(self.random_state, self.n_jobs, self.progress)
        counted, prior = self._counted(answers), ClassPrior.of(self.prior)
        sets = self._comparison(counted, prior, sizes, run)
        choice = sets.choose(ends)
        chances = choice.probabilities
        sets.of_best(choice.best).warn()
        fits = maxima(answers, chances, run, n_restarts=self.n_restarts, tol=self.tol)
        rows = fit_rows(answers, fits)
        for row, (n_classes, tables) in zip(rows, fits.items(), strict=True):
            shares = special.softmax(tables.ln_joint(answers.levels), axis=1)
            row["entropy"] = entropy_r2(shares, answers.weights)
            row["smallest_class"] = float(tables.weights.min())
            row["probability"] = chances[n_classes]
            if n_bootstrap:
                is_tested = n_classes - 1 in fits
                value = np.nan
                if is_tested:
                    value = bootstrap_p_value(answers, fits, n_classes, n_bootstrap, run)
                row["blrt_p_value"] = value
        return ResultTable.of_columns({name: [row[name] for row in rows] for name in rows[0]})

    def _comparison(
        self, answers: Answers, prior: ClassPrior, sizes: list[int], run: Run
    ) -> ItemSets:
        """Comparisons of numbers of classes; sampling weights are rounded for them."""
        whole = answers.systematic() if answers.has_fractions else answers
        ln_masses = checked_ln_prior(self.size_prior, sizes)
        return ItemSets(
            whole,
            lambda tensor: ClassComparison(tensor, prior, ln_masses, run, self.max_time),
            is_searched=len(prior.items) > 1,
        )

    @staticmethod
    def _counted(answers: Answers) -> Answers:
        """Answers for a posterior: sampling weights are scaled to the effective number of rows."""
        return answers.scaled() if answers.has_fractions else answers

    def _checked(
        self, X: Any, weights: Any, missing: Any, others: Sequence[str] = ()
    ) -> tuple[Answers, list[int], bool]:
        """Answers, and the numbers of classes to try; bad arguments are refused."""
        checks.choice("method", self.method, ("bayes", "em"))
        ClassPrior.of(self.prior)
        checks.positive_number("tol", self.tol)
        if self.max_time is not None:
            checks.positive_number("max_time", self.max_time)
        checks.whole_number("n_restarts", self.n_restarts, 1)
        columns = () if self.formula is None else formula_columns(self.formula)
        answers = read_answers(X, self.items, weights, [*columns, *others], missing)
        warn_of_copies(X, answers)
        n_patterns = len(np.unique(answers.levels[answers.weights > 0], axis=0))
        sizes, ends = checked_sizes(self.n_classes, self.max_classes, n_patterns)
        if self.method == "bayes":
            checked_ln_prior(self.size_prior, sizes)
        return answers, sizes, ends


readers["LatentClassAnalysis"] = LatentClassAnalysis._of_store
