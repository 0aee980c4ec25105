"""Memberships, probabilities and criteria of rows under fitted classes."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import special
from sklearn.base import DensityMixin

from polyabayes._support.arrays import Floats
from polyabayes._support.docs import shared_docs
from polyabayes.latent_classes.answers import Answers, RowWeights, like_answers
from polyabayes.latent_classes.choice import criteria
from polyabayes.latent_classes.maximum import entropy_r2
from polyabayes.latent_classes.saved import SavedClasses
from polyabayes.latent_classes.tables import ClassCounts, ClassTables


@shared_docs
class ClassPredictions(DensityMixin, SavedClasses):  # type: ignore[misc]
    """Base class of latent class analysis: predictions for rows under fitted classes."""

    log_likelihood_: float
    n_parameters_: int

    # Tables of the classes, one for each draw, and the draws' counts.
    _tables: ClassTables
    _counts: ClassCounts | None
    # Weights of the rows of the fit.
    _row_weights: RowWeights | None = None

    def predict_proba(self, X: Any, *, covariates: Any = None) -> Floats:
        """Probabilities of the classes of rows.

        Parameters
        ----------
        X : DataFrame, table of polars or pyarrow, integer array, or CountTensor
            Rows with the items of the fit; answers may be missing, even all of a row.
        covariates : DataFrame, mapping or matrix, optional
            Covariates of these rows, if membership depends on covariates; by default, columns of
            `X`.

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
            p(class | answers); for ``"bayes"``, averaged over the draws.

        {raises: bad rows}

        Examples
        --------
        >>> classes = pb.LatentClassAnalysis(2, random_state=0).fit(answers)
        >>> classes.predict_proba([[0, 0, 1]]).round(1).tolist()
        [[1.0, 0.0]]
        """
        return self._probabilities(self._like(X, covariates=covariates))

    def score_samples(self, X: Any, *, covariates: Any = None) -> Floats:
        """Log-probability of the answers of each row, in nats.

        Parameters
        ----------
        X, covariates
            As for :meth:`predict_proba`.

        Returns
        -------
        ndarray of shape (n_rows,)
            For ``"bayes"``, ln of the posterior predictive probability.

        {raises: bad rows}

        Examples
        --------
        >>> classes = pb.LatentClassAnalysis(2, method="em", random_state=0).fit(answers)
        >>> classes.score_samples([[0, 0, 1]]).round(4).tolist()
        [-0.4055]
        """
        return self._ln_rows(self._like(X, covariates=covariates))

    def score(
        self,
        X: Any,
        y: Any = None,  # noqa: ARG002
        *,
        weights: Any = None,
        covariates: Any = None,
    ) -> float:
        """Mean of :meth:`score_samples`, in nats per row; higher is better.

        Parameters
        ----------
        {as of fit}
        {y}

        Returns
        -------
        float

        {raises: bad rows}

        Examples
        --------
        >>> classes = pb.LatentClassAnalysis(2, method="em", random_state=0).fit(answers)
        >>> round(classes.score(answers), 4)
        -0.6365
        """
        answers = self._weighted(X, weights, covariates)
        return answers.weighted_sum(self._ln_rows(answers)) / float(answers.weights.sum())

    def bic(self, X: Any, *, weights: Any = None, covariates: Any = None) -> float:
        """Bayesian information criterion of the tables on rows; lower is better.

        Parameters
        ----------
        {as of fit}

        Returns
        -------
        float
            p ln n - 2 ln p(rows), with p = ``n_parameters_``.

        {raises: bad rows}

        Examples
        --------
        >>> classes = pb.LatentClassAnalysis(2, method="em", random_state=0).fit(answers)
        >>> round(classes.bic(answers), 3)
        61.999
        """
        return self._criterion("bic", X, weights, covariates)

    def aic(self, X: Any, *, weights: Any = None, covariates: Any = None) -> float:
        """Akaike's information criterion of the tables on rows; lower is better.

        Parameters
        ----------
        {as of fit}

        Returns
        -------
        float
            2 p - 2 ln p(rows), with p = ``n_parameters_``.

        {raises: bad rows}

        Examples
        --------
        >>> classes = pb.LatentClassAnalysis(2, method="em", random_state=0).fit(answers)
        >>> round(classes.aic(answers), 3)
        52.191
        """
        return self._criterion("aic", X, weights, covariates)

    def entropy(self, X: Any, *, weights: Any = None, covariates: Any = None) -> float:
        """Entropy R2: how clearly rows belong to one class.

        Parameters
        ----------
        {as of fit}

        Returns
        -------
        float
            1 - Σ H(class | row) / (n ln K): 1 if all memberships are certain, 0 if all classes are
            equally probable in each row; NaN for one class.

        {raises: bad rows}

        Examples
        --------
        >>> classes = pb.LatentClassAnalysis(2, method="em", random_state=0).fit(answers)
        >>> round(classes.entropy(answers), 3)
        1.0
        """
        answers = self._weighted(X, weights, covariates)
        return entropy_r2(self._probabilities(answers), answers.weights)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = tags.input_tags.string = tags.input_tags.allow_nan = True
        return tags

    def _kept_tables(self) -> ClassTables:
        return self._tables

    def _like(self, X: Any, weights: Any = None, covariates: Any = None) -> Answers:
        self._check_fitted()
        items = self.feature_names_in_.tolist()
        answers = like_answers(X, items, self._labels, weights, self._missing)
        return answers._replace(covariates=self._covariates_of(X, covariates, len(answers.levels)))

    def _weighted(self, X: Any, weights: Any, covariates: Any) -> Answers:
        """Rows with their weights, by default those of the fit."""
        self._check_fitted()
        own = self._row_weights if weights is None else None
        column = weights if own is None else own.column
        answers = self._like(X, column, covariates)
        if own is not None and own.column is None:
            answers = own.put(answers)
        is_scaled = self._counts is not None and answers.has_fractions
        return answers.scaled() if is_scaled else answers

    def _probabilities(self, answers: Answers) -> Floats:
        ln_joint = self._tables.ln_joint(answers.levels, answers.covariates)
        # A row that is impossible in every class gets the class weights.
        ln_joint[~np.isfinite(ln_joint).any(axis=1)] = np.log(self.class_weights_)
        return special.softmax(ln_joint, axis=1)

    def _ln_rows(self, answers: Answers) -> Floats:
        return self._tables.ln_rows(answers.levels, answers.covariates)

    def _criterion(self, name: str, X: Any, weights: Any, covariates: Any) -> float:
        answers = self._weighted(X, weights, covariates)
        value = answers.weighted_sum(self._ln_rows(answers))
        return criteria(value, self.n_parameters_, answers.weights.sum())[name]
