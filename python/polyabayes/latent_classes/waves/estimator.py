"""Latent transition analysis as a scikit-learn estimator."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np

from polyabayes._support.docs import shared_docs
from polyabayes._support.random import RandomState
from polyabayes.allocation.options import Run
from polyabayes.data.conversion.frames import frame_of
from polyabayes.data.tensors.non_answers import marks_by_column
from polyabayes.exceptions import InvalidTypeError
from polyabayes.latent_classes.answers import RowWeights, read_answers
from polyabayes.latent_classes.chains import ChainPrior, Chains, aligned
from polyabayes.latent_classes.choice import (
    LEARNED,
    ClassChoice,
    checked_ln_prior,
    checked_sizes,
    choice_of,
)
from polyabayes.latent_classes.membership import chain_draws, warn_of_chains
from polyabayes.latent_classes.waves.evidence import ChainComparison
from polyabayes.latent_classes.waves.fitted import FittedWaves, checked_waves
from polyabayes.models.files.load import readers
from polyabayes.sizes.priors import SizePrior

# Uniform class weights and transitions, and answers as of LatentClassAnalysis.
_PRIOR = ChainPrior(1.0, 1.0, LEARNED)


@shared_docs
class LatentTransitionAnalysis(FittedWaves):
    """Latent transition analysis: latent classes of the same rows in several waves.

    A row is in class k in the first wave with probability w_k, and goes from class j to class k
    from a wave to the next with probability A_jk. Within a class, answers of a wave are
    independent. Missing answers and missing waves are summed out. Class weights, transitions and
    answers have Dirichlet priors: uniform ones of weights and transitions; the parameter of all
    answers is 1/4, 1, 4, ... or 4,096, and is learned. The number of classes has a posterior, from
    evidences in which all parameters and the classes of all rows are integrated out.

    Particles of the parameters take up the rows one after the other; forward sums make the classes
    of each row exact. The cost is particles x rows x waves x classes² for each of about a hundred
    steps.

    Parameters
    ----------
    n_classes : int or iterable of int, optional
        Number of classes, or numbers to choose from. By default 1, 2, 3 and so on, until a further
        class has no chance or there are `max_classes`.
    is_invariant : bool, default=True
        Whether classes have the same answers in all waves (measurement invariance). Items are then
        matched by their place in `waves`.
    is_stationary : bool, default=False
        Whether transitions are the same between all waves.
    size_prior : SizePrior, optional
        Prior of the number of classes; by default P(K) ∝ 2^-K.
    max_classes : int, default=6
        Largest number of classes to try if `n_classes` is not given.
    formula : str, optional
        Covariates of the first class, such as ``"~ age + party"``: columns of `X`, or of the
        `covariates` of :meth:`fit`. Needs formulaic.
    {seed}
    {n_jobs}
    progress : bool, default=False
        Show the evaluations of numbers of classes (needs tqdm).

    Attributes
    ----------
    n_classes_ : int
        Number of classes.
    class_weights_ : ndarray of shape (n_classes,)
        Probabilities of the classes in the first wave, the largest first.
    transition_probabilities_ : ndarray of shape (n_waves - 1, n_classes, n_classes)
        Probabilities of the class in the next wave (columns, "to") given that in a wave (rows,
        "from").
    item_probabilities_ : dict of str to DataFrame, shape (n_classes, n_levels)
        Probabilities of the answers, one row per class, by the names of the first wave; of all
        waves, if classes are not invariant.
    choice_ : ClassChoice
        Every number of classes that was tried.
    log_evidence_ : float
        ln of the probability of the rows with all parameters integrated out, in nats; NaN with
        covariates or sampling weights.
    coefficients_ : ndarray of shape (n_classes, n_columns)
        If the first class depends on covariates: log odds ratios against class 0, per unit of each
        column; means over ``coefficient_draws_``. ``covariate_names_`` has the columns.

    References
    ----------
    L. M. Collins and S. T. Lanza (2010). Latent class and latent transition analysis. Wiley.

    N. Chopin (2002). A sequential particle filter method for static models. Biometrika 89(3).

    Examples
    --------
    >>> import pandas as pd
    >>> first = [0] * 20 + [1] * 20
    >>> then = [0] * 14 + [1] * 26
    >>> frame = pd.DataFrame({"a1": first, "b1": first, "a2": then, "b2": then})
    >>> model = pb.LatentTransitionAnalysis(2, random_state=0)
    >>> model = model.fit(frame, waves=[["a1", "b1"], ["a2", "b2"]])
    >>> model.transition_probabilities_.shape, model.predict(frame).shape
    ((1, 2, 2), (40, 2))
    """

    def __init__(
        self,
        n_classes: int | Iterable[int] | None = None,
        *,
        is_invariant: bool = True,
        is_stationary: bool = False,
        size_prior: SizePrior | None = None,
        max_classes: int = 6,
        formula: str | None = None,
        random_state: RandomState = None,
        n_jobs: int | None = None,
        progress: bool = False,
    ) -> None:
        self.n_classes = n_classes
        self.is_invariant = is_invariant
        self.is_stationary = is_stationary
        self.size_prior = size_prior
        self.max_classes = max_classes
        self.formula = formula
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.progress = progress

    def fit(
        self,
        X: Any,
        y: Any = None,  # noqa: ARG002
        *,
        waves: Sequence[Sequence[str]],
        weights: Any = None,
        covariates: Any = None,
        missing: Sequence[Any] | Mapping[str, Sequence[Any]] = (),
    ) -> Self:
        """Find the classes and how rows move between them.

        Parameters
        ----------
        X : DataFrame or table of polars or pyarrow
            One row per respondent; missing values are missing answers.
        {y}
        waves : sequence of sequences of str
            Columns of the items of each wave, in order of time: in each wave the same items in the
            same order. Waves that a row lacks are missing; so are the last ones of shorter
            sequences.
        weights : array of shape (n_rows,) or str, optional
            Number of respondents that each row stands for, or the column with these numbers.
            Weights with fractions are sampling weights, as for :meth:`LatentClassAnalysis.fit`.
        covariates : DataFrame, mapping or matrix, optional
            Covariates of the first class; with `formula`, the columns that it names.
        missing : sequence, or mapping of str to sequences, optional
            Values that are missing answers, such as ``[9, "No answer"]``, or those of some columns.

        Returns
        -------
        LatentTransitionAnalysis
            The estimator itself.

        Warns
        -----
        UnreliableErrorWarning
            If an evidence that matters cannot be trusted.
        DataWarning
            If the same item has other answers in another wave, or some that differ only in case or
            blanks, and classes are invariant.

        {raises: bad argument}

        Examples
        --------
        >>> import pandas as pd
        >>> frame = pd.DataFrame({"a1": [0, 0, 1, 1] * 9, "a2": [0, 0, 1, None] * 9})
        >>> frame = frame.assign(b1=frame.a1, b2=frame.a2)
        >>> waves = [["a1", "b1"], ["a2", "b2"]]
        >>> pb.LatentTransitionAnalysis(2, random_state=0).fit(frame, waves=waves).n_classes_
        2
        """
        columns = checked_waves(waves)
        if frame_of(X) is None:
            raise InvalidTypeError(f"X must be a data frame, got {type(X).__name__}")
        flat = [column for wave in columns for column in wave]
        answers = read_answers(X, flat, weights, (), missing, "classes.fit(frame, waves=waves, ")
        self._sampling = "" if weights is None else RowWeights.of(answers, weights).sentence(self)
        self._columns, self._missing = columns, marks_by_column(missing, flat)
        self._labels = self._labels_of(answers)
        self._design, answers = self._with_design(answers, X, covariates)
        if is_sampled := answers.has_fractions:
            counted = answers.take(answers.weights > 0).scaled()
            whole = counted.systematic().one_each()
        else:
            counted = whole = answers.one_each()
        rows = self._waves(self._levels(whole))
        sizes, ends = checked_sizes(self.n_classes, self.max_classes, len(rows.shown[0]))
        ln_masses = checked_ln_prior(self.size_prior, sizes)
        run = Run.of(self.random_state, self.n_jobs, self.progress)
        self.seed_ = run.seed
        compared = ChainComparison(rows, _PRIOR, ln_masses, run)
        self.choice_: ClassChoice = compared.compare(
            lambda: choice_of([(compared, 0.0)]), progress=run.progress, ends=ends
        )
        compared.warn(compared.uncertain(), with_remedy=False)
        best = compared.best((self.choice_.best,))
        self.log_evidence_ = compared.averaged(best[0]).value
        chains = aligned(compared.draws[best], rows)
        if self._design is not None or is_sampled:
            self.log_evidence_ = np.nan
            rows = self._waves(self._levels(counted), counted.covariates)
            rows = replace(rows, row_weights=counted.weights if is_sampled else None)
            found, numbers = chain_draws(chains, rows, _PRIOR, run)
            chains = aligned(Chains.joined([drawn for _, drawn in found]), rows)
            warn_of_chains(chains, numbers)
        self._set(chains)
        return self


readers["LatentTransitionAnalysis"] = LatentTransitionAnalysis._of_store
