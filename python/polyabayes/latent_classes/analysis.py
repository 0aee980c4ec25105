"""Latent class analysis as a scikit-learn estimator."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from polyabayes._support import checks
from polyabayes._support.random import RandomState, draw_seed
from polyabayes._support.results import ResultTable
from polyabayes._support.warnings import warn
from polyabayes.exceptions import InvalidArgumentError, UnreliableErrorWarning, argument
from polyabayes.latent_classes.answers import Answers, read_answers, refuse_fractions
from polyabayes.latent_classes.choice import (
    PRIORS,
    ClassChoice,
    ClassPrior,
    Run,
    by_criteria,
    checked_ln_prior,
    checked_sizes,
)
from polyabayes.latent_classes.chooser import MOST_R_HAT, Chooser, r_hat
from polyabayes.latent_classes.discrimination import ItemEvidence
from polyabayes.latent_classes.fitted import FittedClasses
from polyabayes.latent_classes.membership import draw_memberships
from polyabayes.latent_classes.predictions import standardised
from polyabayes.latent_classes.tables import ClassCounts, ClassTables
from polyabayes.models.fitted.covariates import Design
from polyabayes.models.fitted.formulas import formula_columns
from polyabayes.models.model_files import readers
from polyabayes.sizes.choice.cost import ChoiceCost
from polyabayes.sizes.priors import Geometric, SizePrior

# P(K) ∝ 2^-K.
_SIZE_PRIOR = Geometric(0.5)


class LatentClassAnalysis(FittedClasses):
    """Latent classes of rows with categorical answers, and how probable each number of them is.

    Every row belongs to one of K classes, and answers the items independently given its class:
    p(row) = Σ_k w_k Π_j θ_jk(answer to j). Answers that are missing are summed out. Weights and
    answers have Dirichlet priors and are integrated out, so that numbers of classes are compared by
    their evidence, not by a criterion.

    Membership may depend on covariates: p(class k | x) ∝ exp(x·λ_k). λ is drawn together with the
    classes; exp of an intercept, at the mean of the covariates, has the gamma prior by which
    weights without slopes are Dirichlet, and slopes, by standardised columns, are Gaussian with one
    variance, which is learned. The number of classes is then chosen without the covariates
    (Nylund-Gibson and Masyn 2016).

    Parameters
    ----------
    n_classes : int or iterable of int, optional
        Number of classes, or numbers to choose from. By default 1, 2, 3 and so on, until a further
        class has no chance or there are `max_classes`.
    items : sequence of str, optional
        The columns that are items; by default all but that of the weights.
    method : {"bayes", "em"}, default="bayes"
        ``"bayes"``: posterior means over draws of the classes, with intervals; the number of
        classes of largest posterior probability. ``"em"``: the maximum of the likelihood; the
        number of classes of smallest BIC.
    prior : {"learned", "flat", "jeffreys", "bdeu"} or mapping, default="learned"
        Dirichlet parameters of the class weights and of the items' answers in a class.
        ``"learned"``: 4, which keeps classes from being empty, and for the answers of all items
        one of 1/4, 1, 4, ..., 4,096, each as probable as any other: evidences average over them,
        draws are by the most probable. ``"flat"``, ``"jeffreys"`` and ``"bdeu"``: 1 and 1, 1/2 and
        1/2, or 1/K and 1/(K x levels), which is that of :class:`AllocationModel`. A mapping gives
        ``weights``, a number, and ``items``, a number or several.
    size_prior : SizePrior, optional
        Prior of the number of classes; by default P(K) ∝ 2^-K. Numbers beyond those tried are left
        out.
    max_classes : int, default=10
        Largest number of classes that is tried where `n_classes` is not given.
    formula : str, optional
        Covariates of the classes, as ``"~ age + party"``: columns of `X`, which are then no items,
        or of the `covariates` of :meth:`fit`. Needs formulaic; for ``"bayes"`` only.
    max_time : float, optional
        Of ``"bayes"``: seconds after which no look at a number of classes begins, and the choice
        ends with what is known; the look that runs then is finished, and the chosen classes are
        drawn. What a choice will take is told by :meth:`choice_cost` before it starts.
    n_restarts : int, default=20
        Random starts of ``"em"``.
    tol : float, default=1e-10
        Relative gain at which ``"em"`` has converged.
    random_state : None, int, RandomState, Generator or SeedSequence
        The same seed gives the same result, bit for bit, for any number of threads.
    n_jobs : int, optional
        Threads; None means all cores.
    progress : bool, default=False
        Show the looks at numbers of classes (needs tqdm).

    Attributes
    ----------
    n_classes_ : int
        Number of classes.
    class_weights_ : ndarray of shape (n_classes,)
        Shares of the classes, the largest first.
    item_probabilities_ : dict of str to DataFrame, shape (n_classes, n_levels)
        Probabilities of the answers to each item, a row a class.
    choice_ : ClassChoice
        Every number of classes that was tried.
    log_evidence_ : float
        Ln of the probability of the rows with all parameters integrated out, in nats; NaN by
        ``"em"``, and where classes depend on covariates.
    coefficients_ : ndarray of shape (n_classes, n_columns)
        Where classes depend on covariates: ln of the odds against class 0 by unit of each column,
        means over ``coefficient_draws_``; ``covariate_names_`` are the columns.
    log_likelihood_ : float
        Ln of the probability of the rows under the tables, in nats.
    n_parameters_ : int
        Free parameters: K - 1 + K Σ (levels - 1).
    feature_names_in_ : ndarray of str
        The items.
    n_features_in_ : int
        Their number.

    Raises
    ------
    InvalidArgumentError, InvalidCountsError, InvalidTypeError
        By ``fit``, before any work, if a column is no item, or a row has no answer.

    References
    ----------
    P. F. Lazarsfeld and N. W. Henry (1968). Latent structure analysis. Houghton Mifflin.

    L. A. Goodman (1974). Exploratory latent structure analysis using both identifiable and
    unidentifiable models. Biometrika 61(2).

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
        covariates: Any = None,
    ) -> Self:
        """Find the classes.

        Parameters
        ----------
        X : DataFrame, table of polars or pyarrow, integer array, or CountTensor
            A row a respondent and a column an item; missing values are missing answers. Cells of a
            tensor count as often as they occur.
        y : ignored
            Present for scikit-learn.
        weights : array of shape (n_rows,) or str, optional
            How many rows each row stands for, or the column that says so. Sampling weights, which
            have fractions, are for ``method="em"`` only.
        covariates : DataFrame, mapping or matrix, optional
            Covariates that the class of a row depends on: numbers as they are, categories coded by
            their levels. With `formula` the columns that it takes, by default those of `X`.

        Returns
        -------
        LatentClassAnalysis
            The estimator itself.

        Raises
        ------
        InvalidArgumentError, InvalidCountsError, InvalidTypeError
            If an argument is bad; before any work.

        Examples
        --------
        >>> answers = [[0, 0, 1], [0, 0, 1], [1, 1, 0], [1, 1, 0]]
        >>> classes = pb.LatentClassAnalysis(2, random_state=0).fit(answers, weights=[9, 8, 9, 7])
        >>> classes.predict(answers).tolist()
        [0, 0, 1, 1]
        """
        answers, sizes, ends = self._checked(X, weights)
        design, answers = self._with_design(answers, X, covariates)
        self.seed_ = draw_seed(self.random_state)
        run = Run(self.seed_, self.n_jobs, bool(self.progress))
        if self.method == "em":
            tables, self.choice_ = self._maximum(answers, sizes, run)
            self._set(answers.items, answers.labels, None, tables)
            self.log_evidence_ = np.nan
        else:
            prior = ClassPrior.of(self.prior)
            chooser = Chooser(answers.tensor(), prior, run, self.max_time)
            self.choice_ = chooser.choose(sizes, ends, self._size_prior())
            best = self.choice_.best
            counts = chooser.counts(best)
            chooser.warn(None if design else best)
            if len(prior.items) > 1:
                ItemEvidence.of(counts).warn(answers.items)
            rows = {row["n_classes"]: row for row in self.choice_.rows}
            self.log_evidence_ = float(rows[best]["log_evidence"])
            if design is not None:
                counts, self.log_evidence_ = _by_covariates(answers, counts, run), np.nan
            self._set(answers.items, answers.labels, counts, counts.expected())
        self._design = design
        self.log_likelihood_ = float(answers.weights @ self._ln_rows(answers))
        return self

    def fit_predict(
        self,
        X: Any,
        y: Any = None,  # noqa: ARG002
        *,
        weights: Any = None,
        covariates: Any = None,
    ) -> NDArray[np.intp]:
        """Find the classes, and the most probable one of each row.

        Parameters
        ----------
        X, weights, covariates
            As for :meth:`fit`.
        y : ignored
            Present for scikit-learn.

        Returns
        -------
        ndarray of int, shape (n_rows,)

        Raises
        ------
        InvalidArgumentError, InvalidCountsError, InvalidTypeError
            As for :meth:`fit`.

        Examples
        --------
        >>> answers = [[0, 0, 1]] * 20 + [[1, 1, 0]] * 10
        >>> pb.LatentClassAnalysis(2, random_state=0).fit_predict(answers)[15:25].tolist()
        [0, 0, 0, 0, 0, 1, 1, 1, 1, 1]
        """
        fitted = self.fit(X, weights=weights, covariates=covariates)
        return fitted.predict(X, covariates=covariates)

    def choice_cost(self, X: Any, *, weights: Any = None) -> ChoiceCost:
        """What :meth:`fit` by ``"bayes"`` is expected to take, before it starts.

        A look at the smallest and one at the largest number of classes are timed; where no number
        is given, six are taken as the largest that matters. How many further looks there are
        depends on the data: where one number stands out, a choice takes a fraction of the time
        told; where particles disagree, it takes several times as long.

        Parameters
        ----------
        X, weights
            As for :meth:`fit`.

        Returns
        -------
        ChoiceCost
            Number of evidences, seconds of each at both ends, seconds of all.

        Raises
        ------
        InvalidArgumentError, InvalidCountsError, InvalidTypeError
            As for :meth:`fit`; or by ``"em"``, which compares no evidences.

        Examples
        --------
        >>> answers = [[0, 0, 1], [0, 1, 1], [1, 1, 0], [1, 0, 0]] * 20
        >>> cost = pb.LatentClassAnalysis([1, 2, 3], random_state=0).choice_cost(answers)
        >>> cost.n_fits, cost.sizes
        (15, (2, 3))
        """
        if self.method == "em":
            raise InvalidArgumentError(
                f"{argument('method', 'em')} compares no evidences; their cost is of "
                f"{argument('method', 'bayes')}"
            )
        answers, sizes, ends = self._checked(X, weights)
        run = Run(draw_seed(self.random_state), self.n_jobs, False)
        return Chooser(answers.tensor(), ClassPrior.of(self.prior), run).cost(sizes, ends)

    def compare_priors(self, X: Any, *, weights: Any = None) -> ResultTable:
        """How probable each number of classes is under each prior of tables that has a name.

        How many classes there are hangs on the prior of their weights and answers; where the
        columns differ, tell it.

        Parameters
        ----------
        X, weights
            As for :meth:`fit`.

        Returns
        -------
        ResultTable
            A row a number of classes, and a column of probabilities a prior.

        Raises
        ------
        InvalidArgumentError, InvalidCountsError, InvalidTypeError
            If an argument is bad.

        Examples
        --------
        >>> answers = [[0, 0, 1], [0, 1, 1], [1, 1, 0], [1, 0, 0]]
        >>> classes = pb.LatentClassAnalysis([1, 2, 3], random_state=0)
        >>> table = classes.compare_priors(answers, weights=[9, 8, 9, 7])
        >>> list(table)
        ['n_classes', 'learned', 'flat', 'jeffreys', 'bdeu']
        """
        answers, sizes, ends = self._checked(X, weights)
        refuse_fractions(answers, "evidences are of rows that are counted")
        run = Run(draw_seed(self.random_state), self.n_jobs, bool(self.progress))
        found = {}
        for name, prior in PRIORS.items():
            chooser = Chooser(answers.tensor(), prior, run, self.max_time)
            found[name] = chooser.compare(sizes, ends, self._size_prior()).probabilities
            chooser.warn()
        numbers = sorted(set().union(*found.values()))
        rows = [[n, *(table.get(n, 0.0) for table in found.values())] for n in numbers]
        return ResultTable(["n_classes", *found], rows)

    def _with_design(
        self, answers: Answers, X: Any, covariates: Any
    ) -> tuple[Design | None, Answers]:
        """How covariates become numbers, and the answers with them."""
        if covariates is None and self.formula is None:
            return None, answers
        if self.method == "em":
            raise InvalidArgumentError(
                f"{argument('covariates')} of classes are for {argument('method', 'bayes')}"
            )
        given = X if covariates is None else covariates
        checks.row_names("covariates", covariates, checks.index_of(X))
        design, rows = Design.learn(given, self.formula, len(answers.levels))
        return design, answers._replace(covariates=standardised(design, rows))

    def _checked(self, X: Any, weights: Any) -> tuple[Answers, list[int], bool]:
        """Answers, and the numbers of classes to try; bad arguments are refused."""
        checks.choice("method", self.method, ("bayes", "em"))
        ClassPrior.of(self.prior)
        checks.positive_number("tol", self.tol)
        if self.max_time is not None:
            checks.positive_number("max_time", self.max_time)
        checks.whole_number("n_restarts", self.n_restarts, 1)
        columns = () if self.formula is None else formula_columns(self.formula)
        answers = read_answers(X, self.items, weights, columns)
        n_patterns = len(np.unique(answers.levels[answers.weights > 0], axis=0))
        sizes, ends = checked_sizes(self.n_classes, self.max_classes, n_patterns)
        if self.method == "bayes":
            refuse_fractions(
                answers,
                "rows are counted: the evidence of weighted rows is not defined; take method='em' "
                "for point estimates, or whole numbers",
            )
            checked_ln_prior(self._size_prior(), sizes)
        return answers, sizes, ends

    def _size_prior(self) -> SizePrior:
        return _SIZE_PRIOR if self.size_prior is None else self.size_prior

    def _maximum(
        self, answers: Answers, sizes: list[int], run: Run
    ) -> tuple[ClassTables, ClassChoice]:
        """Tables of the largest likelihood, and the criteria of every number of classes."""
        tensor, fits, found = answers.tensor(), {}, {}
        for n_classes in sizes:
            model, hidden = PRIORS["flat"].model(tensor.axes, n_classes)
            made = model.decompose(
                tensor, "ml", n_restarts=self.n_restarts, tol=self.tol, **run.options(n_classes, 0)
            ).tables
            tables = ClassTables(made[hidden][None], tuple(made[a][None] for a in tensor.axes))
            found[n_classes] = tables
            value = float(answers.weights @ tables.ln_rows(answers.levels))
            fits[n_classes] = (value, tables.n_parameters)
        choice = by_criteria(fits, float(answers.weights.sum()))
        return found[choice.best], choice


def _by_covariates(answers: Answers, counts: ClassCounts, run: Run) -> ClassCounts:
    """Draws of classes whose rows depend on covariates; warns where their chains disagree."""
    found, chain = draw_memberships(answers.one_each(), counts, run)
    assert found.coefficients is not None
    ratio = r_hat(found.coefficients - found.coefficients[:, :1], chain)
    if ratio > MOST_R_HAT:
        warn(
            f"chains of the draws disagree about the coefficients of the covariates (ratio "
            f"{ratio:.2f}, above {MOST_R_HAT}): their intervals may be too narrow",
            UnreliableErrorWarning,
        )
    return found


readers["LatentClassAnalysis"] = LatentClassAnalysis._of_store
