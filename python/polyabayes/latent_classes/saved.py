"""What fitted classes of one wave and of several share: profiles, effects, and files."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from polyabayes._support import checks
from polyabayes._support.arrays import Floats, Indices
from polyabayes._support.docs import shared_docs
from polyabayes._support.output.frames import DataFrame, data_frame
from polyabayes._support.results import ResultTable
from polyabayes.data.naming import rows_by_name
from polyabayes.exceptions import InvalidArgumentError, NotFittedError, argument
from polyabayes.latent_classes.answers import Answers
from polyabayes.latent_classes.choice import ClassChoice
from polyabayes.latent_classes.tables import ClassTables
from polyabayes.models.fitted.covariates import Design
from polyabayes.models.fitted.stored_model import StoredModel

_WITHOUT_COVARIATES = f"these classes depend on no {argument('covariates')}: give them to fit"


@shared_docs
class SavedClasses(BaseEstimator):  # type: ignore[misc]
    """Base class of fitted classes, which have names of items, labels of answers and a choice."""

    n_classes_: int
    choice_: ClassChoice
    log_evidence_: float
    feature_names_in_: NDArray[np.object_]
    n_features_in_: int
    seed_: int
    # Version of the package, date and notes, of classes from a file.
    provenance_: Mapping[str, Any]

    # Levels of each item, and values that are no answers.
    _labels: tuple[tuple[str, ...], ...]
    _missing: Any = ()
    # A sentence about how the rows were sampled, as far as errors know it.
    _sampling: str = ""
    # How the covariates that membership depends on become numbers.
    formula: str | None
    _design: Design | None = None
    # Figures that files keep as they are.
    _figures: tuple[str, ...] = ("log_evidence_",)
    predict_proba: Callable[..., Floats]

    @property
    def class_weights_(self) -> Floats:
        """Probabilities of the classes, of the first wave if there are several, largest first."""
        return self._means().weights[0]

    @property
    def item_probabilities_(self) -> dict[str, DataFrame]:
        """Probabilities of the answers to each item, one row per class."""
        means, found = self._means(), {}
        for item, own, table in zip(self._items(), self._labels, means.items, strict=True):
            frame = data_frame(dict(zip(own, table[0], strict=True)))
            frame.index.name, frame.columns.name = "class", item
            found[item] = frame
        return found

    def profiles(self, level: float = 0.95) -> ResultTable:
        """Class weights (of the first wave) and answers of each class, with intervals.

        Parameters
        ----------
        {level}

        Returns
        -------
        ResultTable
            Columns ``class``, ``item`` and ``answer`` (empty for the weights), ``probability``, and
            ``lower`` and ``upper``: quantiles over draws; for ``"em"``, from sandwich standard
            errors of the logits, which are valid for sampling weights, and NaN at 0 or 1.

        {raises: bad level}

        Examples
        --------
        >>> classes = pb.LatentClassAnalysis(2, random_state=0).fit(answers)
        >>> first = classes.profiles().row(0)
        >>> bool(first["lower"] < first["probability"] < first["upper"])
        True
        """
        means, half = self._means(), checks.share("level", level) / 2
        tables = [means, *self._quantiles([0.5 - half, 0.5 + half])]
        names = [("", ("",)), *zip(self._items(), self._labels, strict=True)]
        parts = zip(*((t.weights[:, None], *t.items) for t in tables), strict=True)
        rows = [
            [k, item, label, *(float(table[0, at, k]) for table in of_item)]
            for (item, own), of_item in zip(names, parts, strict=True)
            for k in range(means.n_classes)
            for at, label in enumerate(own)
        ]
        return ResultTable(["class", "item", "answer", "probability", "lower", "upper"], rows)

    def predict(self, X: Any, *, covariates: Any = None) -> Indices:
        """The most probable class of each row, as numbers from 0; class 0 is the largest.

        Parameters
        ----------
        X, covariates
            As for :meth:`predict_proba`.

        Returns
        -------
        ndarray of int, shape (n_rows,), or (n_rows, n_waves) if there are waves

        {raises: bad rows}

        Examples
        --------
        >>> pb.LatentClassAnalysis(2, random_state=0).fit(answers).predict([[1, 1, 0]]).tolist()
        [1]
        """
        return self.predict_proba(X, covariates=covariates).argmax(axis=-1)

    def save(self, path: str | os.PathLike[str], *, notes: Mapping[str, Any] | None = None) -> None:
        """Write the classes to a safetensors file that :func:`polyabayes.load` reads.

        Parameters
        ----------
        path : str or path-like
            The file, by custom ``*.safetensors``; it appears only when it is complete.
        notes : mapping of str to text, number, list or mapping, optional
            Notes, kept as ``provenance_["notes"]`` of the loaded model.

        Raises
        ------
        FileAccessError
            If the file cannot be written.
        InvalidArgumentError, InvalidTypeError
            If the name is not possible for this format, or the notes cannot be JSON.
        NotFittedError
            If there are no classes yet.

        Examples
        --------
        >>> classes = pb.LatentClassAnalysis(2, random_state=0).fit(answers)
        >>> file = folder / "classes.safetensors"
        >>> classes.save(file)
        >>> bool((pb.load(file).class_weights_ == classes.class_weights_).all())
        True
        """
        self._check_fitted()
        scalars, arrays = self._content()
        scalars |= {
            "seed_": self.seed_,
            "labels": self._labels,
            "choice": [self.choice_.best, self.choice_.criterion, self.choice_.rows],
            "occupied": list(self.choice_.occupied.items()),
            "missing": self._missing,
            "sampling": self._sampling,
            **{name: getattr(self, name) for name in self._figures},
        }
        coefficients = self._kept_tables().coefficients
        if self._design is not None and coefficients is not None:
            scalars["design"], arrays["coefficients"] = self._design._asdict(), coefficients
        parameters = {
            name: value
            for name, value in self.get_params(deep=False).items()
            if name not in ("n_jobs", "progress", "size_prior")
        }
        StoredModel(type(self).__name__, parameters, scalars, arrays, None).write(path, notes)

    @property
    def covariate_names_(self) -> list[str]:
        """Columns of the covariates' design matrix, the intercept first."""
        return self._with_covariates().names

    @property
    def coefficient_draws_(self) -> Floats:
        """Log odds ratios against class 0, shape (n_draws, n_classes, n_columns)."""
        design, coefficients = self._with_covariates(), self._kept_tables().coefficients
        assert coefficients is not None
        found = design.coefficients(coefficients)
        return found - found[:, :1]

    @property
    def coefficients_(self) -> Floats:
        """Means of the draws of the coefficients, shape (n_classes, n_columns)."""
        return self.coefficient_draws_.mean(axis=0)

    def effects(self, level: float = 0.95) -> ResultTable:
        """Coefficients of the covariates of membership, with intervals.

        Parameters
        ----------
        {level}

        Returns
        -------
        ResultTable
            Columns ``class``, ``covariate``, ``coefficient`` (log odds ratio of the class against
            class 0, per unit of the covariate), and ``lower`` and ``upper``, quantiles over draws.

        {raises: bad level}
        NotFittedError
            If the classes do not depend on covariates.

        Examples
        --------
        >>> classes = pb.LatentClassAnalysis(2, random_state=0)
        >>> age = {"age": [60.0, 70.0] * 10 + [20.0, 70.0] * 5}
        >>> table = classes.fit(answers, covariates=age).effects().to_frame()
        >>> bool((table.coefficient[table.covariate == "age"] < 0).all())
        True
        """
        draws, half = self.coefficient_draws_, checks.share("level", level) / 2
        low, high = np.quantile(draws, [0.5 - half, 0.5 + half], axis=0)
        means = draws.mean(axis=0)
        rows = [
            [k, name, means[k, at], low[k, at], high[k, at]]
            for k in range(1, self.n_classes_)
            for at, name in enumerate(self.covariate_names_)
        ]
        return ResultTable(["class", "covariate", "coefficient", "lower", "upper"], rows)

    def _with_covariates(self) -> Design:
        self._check_fitted()
        if self._design is None:
            raise NotFittedError(_WITHOUT_COVARIATES)
        return self._design

    def _with_design(
        self, answers: Answers, X: Any, covariates: Any
    ) -> tuple[Design | None, Answers]:
        """How covariates become numbers, and the answers with them."""
        if covariates is None and self.formula is None:
            return None, answers
        given = X if covariates is None else covariates
        given = rows_by_name("covariates", given, checks.index_of(X))
        # Rows with covariates stand as often as they are counted.
        n_numbers = answers.levels.shape[1] + 2
        n_rows = len(answers.weights) if answers.has_fractions else int(answers.weights.sum())
        checks.fits("weights", n_rows, n_numbers * answers.levels.itemsize)
        counts = np.ceil(answers.weights).astype(np.int64)
        if answers.has_fractions:
            counts = np.minimum(counts, 1)
        design, rows = Design.learn(given, self.formula, len(answers.levels), counts)
        return design, answers._replace(covariates=standardised(design, rows))

    def _covariates_of(self, X: Any, covariates: Any, n_rows: int | None) -> Floats | None:
        """Rows of the design matrix, standardised; None without covariates."""
        if self._design is None:
            if covariates is not None:
                raise InvalidArgumentError(_WITHOUT_COVARIATES)
            return None
        given = X if covariates is None and self._design.columns is not None else covariates
        if given is None:
            told = f"these classes depend on {argument('covariates')}: give those of these rows"
            raise InvalidArgumentError(told)
        given = rows_by_name("covariates", given, checks.index_of(X))
        return standardised(self._design, self._design.rows(given, n_rows))

    def _covariates_text(self) -> str:
        """A sentence about covariates for a methods section."""
        if self._design is None:
            return ""
        on = self.formula or ", ".join(self.covariate_names_[1:])
        return f" Class membership is a regression on covariates ({on}), drawn with the classes."

    def _kept_tables(self) -> ClassTables:
        """Tables of the classes, one for each draw, with coefficients if membership has some."""
        raise NotImplementedError

    def _means(self) -> ClassTables:
        self._check_fitted()
        return self._kept_tables().mean()

    def _quantiles(self, shares: Sequence[float]) -> list[ClassTables]:
        """Ends of intervals of the tables."""
        tables = self._kept_tables()
        return [tables.quantile(share) for share in shares]

    def _items(self) -> list[str]:
        """Names of the tables of answers."""
        return list(self.feature_names_in_.tolist())

    def _content(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Scalars and arrays of a file beside those of all classes."""
        raise NotImplementedError

    def _restore(self, content: StoredModel) -> Floats | None:
        """Set what all classes keep in a file, and return the coefficients of a design in it."""
        scalars, coefficients = content.scalars, None
        for name in self._figures:
            setattr(self, name, float(scalars[name]))
        self._labels = tuple(map(tuple, scalars["labels"]))
        self._missing, self._sampling = scalars["missing"], scalars.get("sampling", "")
        best, criterion, rows = scalars["choice"]
        if checks.choice("choice", criterion, ("evidence", "bic")) and not rows:
            raise ValueError("the choice has no numbers of classes")
        self.choice_ = ClassChoice(best, criterion, rows, dict(map(tuple, scalars["occupied"])))
        self.seed_ = checks.whole_number("seed_", scalars["seed_"], 0, 2**64 - 1)
        if "design" in scalars:
            self._design = Design.from_json(scalars["design"])
            coefficients = content.arrays["coefficients"]
            if coefficients.shape[2] != len(self._design.names):
                raise ValueError("coefficients are not one for each column")
        return coefficients

    def _check_fitted(self) -> None:
        if not self.__sklearn_is_fitted__():
            raise NotFittedError(f"this {type(self).__name__} has no classes yet: call fit first")

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "n_classes_")


def stored_tables(content: StoredModel, prefix: str = "") -> ClassTables:
    """Tables of a file; arrays that are no tables of its items and labels are refused."""
    labels, arrays = content.scalars["labels"], content.arrays
    classes, *tables = (arrays[name] for name in names_of_tables(len(labels), prefix))
    if 0 in classes.shape or [table.shape[1] for table in tables] != list(map(len, labels)):
        raise ValueError("tables are not of the levels of the items")
    is_probability = not prefix and "alphas" not in content.scalars
    if is_probability and not all(np.allclose(x.sum(axis=1), 1.0) for x in (classes, *tables)):
        raise ValueError("probabilities do not sum to 1")
    return ClassTables(classes, tuple(tables))


def names_of_tables(n_items: int, prefix: str = "") -> list[str]:
    """Names of the arrays of a file that hold tables."""
    return [f"{prefix}classes", *(f"{prefix}item{number}" for number in range(n_items))]


def arrays_of(kept: Any, prefix: str = "") -> dict[str, Floats]:
    """Tables by name, for a file."""
    items = {f"{prefix}item{number}": table for number, table in enumerate(kept[1])}
    return {f"{prefix}classes": kept[0], **items}


def standardised(design: Design, rows: Floats) -> Floats:
    """Rows of a design matrix with the intercept, the other columns standardised."""
    return np.column_stack([rows[:, :1], design.standardised(rows)])
