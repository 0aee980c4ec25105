"""Fitted latent classes: the classes of rows, profiles, scores and files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polyabayes._support import checks
from polyabayes._support.arrays import Indices
from polyabayes._support.docs import shared_docs
from polyabayes._support.output.frames import DataFrame, data_frame
from polyabayes._support.random import RandomState, random_generator
from polyabayes._support.results import ResultTable
from polyabayes.data.names import CALLS
from polyabayes.exceptions import InvalidArgumentError, NotFittedError, argument
from polyabayes.latent_classes.answers import RowWeights, levels_of, refuse_fractions
from polyabayes.latent_classes.choice import ClassPrior
from polyabayes.latent_classes.discrimination import ItemEvidence
from polyabayes.latent_classes.invariance import ClassInvariance, invariance_of
from polyabayes.latent_classes.maximum import end_of_interval
from polyabayes.latent_classes.outcomes import ClassOutcomes
from polyabayes.latent_classes.residuals import PairResiduals, pair_residuals
from polyabayes.latent_classes.saved import arrays_of, names_of_tables, stored_tables
from polyabayes.latent_classes.tables import ClassCounts, ClassTables
from polyabayes.models.fitted.stored_model import StoredModel


@shared_docs
class FittedClasses(ClassOutcomes):
    """Fitted latent classes: their profiles, what they depend on, draws, and files."""

    _figures = "log_evidence_", "log_likelihood_"

    def item_discrimination(self) -> ResultTable:
        """Which items tell the classes apart.

        Under the default prior, an item either tells, and each class has its own profile, or it has
        one profile in all classes. The share of the items that tell is uniform a priori.

        Returns
        -------
        ResultTable
            Columns ``item``; ``probability`` that the item tells the classes apart;
            ``log_bayes_factor``, log odds that each class has its own profile, against one profile
            for all classes, whatever the other items do; and ``concentration``, the Dirichlet
            parameter of this item alone (geometric mean over its posterior).

        Raises
        ------
        NotFittedError
            If there are no classes yet, or the method is ``"em"``, which has no draws.

        References
        ----------
        N. Dean and A. E. Raftery (2010). Latent class analysis variable selection. Annals of the
        Institute of Statistical Mathematics 62(1).

        D. Madigan and A. E. Raftery (1994). Model selection and accounting for model uncertainty in
        graphical models using Occam's window. Journal of the American Statistical Association
        89(428).

        Examples
        --------
        >>> answers = [[0, 0, 1, 0], [0, 0, 1, 1]] * 10 + [[1, 1, 0, 0], [1, 1, 0, 1]] * 10
        >>> classes = pb.LatentClassAnalysis(2, random_state=0).fit(answers)
        >>> classes.item_discrimination().to_frame().probability.round(1).tolist()
        [1.0, 1.0, 1.0, 0.1]
        """
        found = ItemEvidence.of(self._with_draws())
        columns = {
            "item": self.feature_names_in_.tolist(),
            "probability": found.probabilities.tolist(),
            "log_bayes_factor": found.log_bayes_factors.tolist(),
            "concentration": found.concentrations.tolist(),
        }
        return ResultTable.of_columns(columns)

    def invariance(
        self, X: Any, groups: Any, *, weights: Any = None, n_samples: int = 200
    ) -> ClassInvariance:
        """Whether the classes mean the same in groups of rows (measurement invariance).

        An item has the same answers of a class in all groups, or answers of its own in each group;
        class weights, too, differ or not. A chain draws the classes of the rows and the items that
        differ together, from the same prior as the classes; all probabilities of answers are
        integrated out. Of the items, any share may differ with equal probability, so that the more
        items there are, the less often one differs by chance. The number of classes is that of the
        fit.

        Parameters
        ----------
        X, weights
            As for :meth:`fit`: the rows.
        groups : Series, array of shape (n_rows,) or str
            The group of each row, or a column of `X`; rows without a group are left out. More than
            50 groups must be categories.
        n_samples : int, default=200
            Draws of each of four chains.

        Returns
        -------
        ClassInvariance
            Its table has one row per item.

        Warns
        -----
        UnreliableErrorWarning
            If chains disagree.

        {raises: bad argument}
        NotFittedError
            If there are no classes yet, or the method is ``"em"``, which has no draws.

        References
        ----------
        M. Kankaraš, G. Moors and J. K. Vermunt (2011). Testing for measurement invariance with
        latent class analysis. In Cross-cultural analysis, Routledge.

        J. G. Scott and J. O. Berger (2010). Bayes and empirical-Bayes multiplicity adjustment in
        the variable-selection problem. Annals of Statistics 38(5).

        Examples
        --------
        >>> classes = pb.LatentClassAnalysis(2, random_state=0).fit(answers)
        >>> found = classes.invariance(answers, ["men", "women"] * (len(answers) // 2))
        >>> max(found.answer, key=found.answer.get)
        'invariant'
        """
        counts = self._with_draws()
        n_samples = checks.whole_number("n_samples", n_samples, 1)
        if self._design is not None:
            raise InvalidArgumentError(CALLS["by covariates"].format(argument("covariates")))
        answers = self._weighted(X, weights, None)
        codes, labels = levels_of(X, "groups", groups, len(answers.levels))
        if not answers.has_fractions:
            codes = np.repeat(codes, answers.weights.astype(np.int64))
            answers = answers.one_each()
        known = (codes >= 0) & (answers.weights > 0)
        present, codes = np.unique(codes[known], return_inverse=True)
        if len(present) < 2:
            told = f"{argument('groups')} must have two groups or more, got {len(present)}"
            raise InvalidArgumentError(told)
        named = tuple(labels[group] for group in present)
        return invariance_of(answers.take(known), codes, named, counts, n_samples, self.seed_)

    def _with_draws(self) -> ClassCounts:
        self._check_fitted()
        if self._counts is None:
            raise NotFittedError(CALLS["of em"].format(argument("method", "em")))
        return self._counts

    def residuals(
        self, X: Any, *, weights: Any = None, covariates: Any = None, n_samples: int = 200
    ) -> PairResiduals:
        """Residuals of each pair of items under the classes, with posterior predictive p-values.

        Parameters
        ----------
        {as of fit}
        n_samples : int, default=200
            Data sets drawn from the model; for ``"bayes"``, at most as many as there are draws.

        Returns
        -------
        PairResiduals
            A residual and a p-value for each pair, and the p-value of the largest.

        Raises
        ------
        InvalidArgumentError, InvalidTypeError, NotFittedError
            As for :meth:`predict_proba`; or if weights have fractions, because data sets with
            as many rows are drawn.

        Examples
        --------
        >>> classes = pb.LatentClassAnalysis(2, random_state=0).fit(answers)
        >>> classes.residuals(answers).p_value > 0.05
        True
        """
        answers = self._weighted(X, weights, covariates)
        refuse_fractions(answers)
        answers = answers.one_each()
        n_samples = checks.whole_number("n_samples", n_samples, 1)
        checks.fits("n_samples", n_samples, 8)
        generator = random_generator(self.seed_)
        if self._counts is None:
            drawn, at = self._tables, np.zeros(n_samples, dtype=np.intp)
        else:
            drawn = self._counts.drawn(generator)
            last = len(drawn.weights) - 1
            at = np.linspace(0, last, min(n_samples, last + 1)).round().astype(np.intp)
        return pair_residuals(answers, drawn.take(at), generator)

    def sample(
        self, n_samples: int = 1, *, covariates: Any = None, random_state: RandomState = None
    ) -> tuple[DataFrame, Indices]:
        """Draw rows from the model; for ``"bayes"``, from the posterior predictive distribution.

        Parameters
        ----------
        n_samples : int, default=1
            Number of rows; with covariates, for each row of these.
        covariates
            As for :meth:`predict_proba`.
        random_state : None, int, RandomState, Generator or SeedSequence
            By default, every call draws the same rows.

        Returns
        -------
        X : DataFrame of shape (n_samples, n_items)
            Answers, as text.
        y : ndarray of int, shape (n_samples,)
            Their classes.

        {raises: bad argument}

        Examples
        --------
        >>> rows, of = pb.LatentClassAnalysis(2, random_state=0).fit(answers).sample(5)
        >>> rows.shape, of.shape
        ((5, 3), (5,))
        """
        self._check_fitted()
        n_samples = checks.whole_number("n_samples", n_samples, 1)
        checks.fits("n_samples", n_samples, 8)
        generator = random_generator(self.seed_ if random_state is None else random_state)
        rows = self._covariates_of(None, covariates, None)
        if rows is not None:
            rows = np.repeat(rows, n_samples, axis=0)
            n_samples = len(rows)
        draws = generator.integers(len(self._tables.weights), size=n_samples)
        levels, classes = self._tables.draw(generator, draws, rows)
        parts = zip(self.feature_names_in_, self._labels, levels.T, strict=True)
        columns = {item: np.array(own, dtype=object)[column] for item, own, column in parts}
        return data_frame(columns), classes

    def _quantiles(self, shares: Sequence[float]) -> list[ClassTables]:
        if self._counts is None:
            return [end_of_interval(self._means(), self._errors, share) for share in shares]
        drawn = self._counts.drawn(random_generator(self.seed_))
        return [drawn.quantile(share) for share in shares]

    def _content(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        scalars: dict[str, Any] = {"items": self.feature_names_in_.tolist()}
        kept: Any = self._tables
        arrays: dict[str, Any] = {}
        if self._counts is not None:
            kept, scalars["alphas"] = self._counts, list(self._counts.alphas)
            scalars["tells"] = list(self._counts.tells)
        else:
            arrays = arrays_of(self._errors, "error_")
        arrays |= arrays_of(kept)
        if self._row_weights is not None:
            own = self._row_weights._asdict()
            arrays["weights"] = own.pop("values")
            scalars["weights"] = own
        return scalars, arrays

    @classmethod
    def _of_store(cls, content: StoredModel) -> FittedClasses:
        """Classes of the content of a file."""
        scalars, arrays = content.scalars, content.arrays
        items, labels = scalars["items"], scalars["labels"]
        if any(not 0 < len({*names}) == len(names) for names in (items, *labels)):
            raise ValueError("names of items or of answers are repeated")
        has_draws = "alphas" in scalars
        parts = [("weights", "weights"), ("coefficients", "design")]
        known = [array for array, scalar in parts if scalar in scalars]
        for prefix in [""] if has_draws else ["", "error_"]:
            known += names_of_tables(len(items), prefix)
        content.refuse_others(known)
        model, counts, made = cls(**content.parameters), None, stored_tables(content)
        coefficients = model._restore(content)
        if has_draws:
            alphas = checks.positive_vector("alphas", scalars["alphas"], 1 + len(items)).tolist()
            tells = tuple(scalars["tells"])
            if len(tells) != len(items):
                raise ValueError("tells are not one for each item")
            counts = ClassCounts(made.weights, made.items, alphas, tells, coefficients)
            made = counts.expected()
        else:
            model._errors = stored_tables(content, "error_")
        if "weights" in scalars:
            model._row_weights = RowWeights(**scalars["weights"], values=arrays["weights"])
        model._set(items, labels, counts, made)
        return model

    # Standard errors of the logits of the probabilities, of maximum likelihood.
    _errors: ClassTables

    def _set(
        self, items: Any, labels: Any, counts: ClassCounts | None, tables: ClassTables
    ) -> None:
        """Keep classes, the largest first: their tables and, of draws, the counts behind them."""
        order = tables.by_size()
        self._counts = None if counts is None else counts.ordered(order)
        self._tables = tables.ordered(order)
        if counts is None:
            self._errors = self._errors.ordered(order)
        self._labels = tuple(map(tuple, labels))
        self.feature_names_in_ = np.array(items, dtype=object)
        self.n_features_in_ = len(items)
        self.n_classes_ = tables.n_classes
        self.n_parameters_ = (tables if counts is None else counts).n_parameters

    def _methods_text(self) -> str:
        """Sentences about the model for a methods section."""
        table = [row for row in zip(*self.profiles().values(), strict=True) if not row[1]]
        best = next(row for row in self.choice_.rows if row["n_classes"] == self.n_classes_)
        how = "by maximum likelihood"
        if self._counts is not None:
            how = f"with {self.prior} Dirichlet priors, missing answers summed out"
            if "concentration" in best:
                how = CALLS["learned prior"].format(best["concentration"])
            elif not isinstance(self.prior, str):
                parameters = ClassPrior.of(self.prior)
                how = CALLS["given prior"].format(parameters.weights, parameters.items[0])
        weighted = "" if self._row_weights is None else self._row_weights.sentence(self._counts)
        ends = [f" ({row[4]:.2f} to {row[5]:.2f})" if row[4] == row[4] else "" for row in table]
        weights = ", ".join(f"{row[3]:.2f}{end}" for row, end in zip(table, ends, strict=True))
        telling = ""
        if self._counts is not None and not all(self._counts.tells):
            telling = CALLS["telling items"].format(sum(self._counts.tells))
        told = f"{how}.{telling}{weighted}{self._sampling}{self._covariates_text()}"
        told += f" {self.choice_._methods_text()} Class weights are {weights}"
        told += f"{', with 95 % intervals' if any(ends) else ''}."
        return f"We used latent class analysis of {self.n_features_in_:,} items {told}"
