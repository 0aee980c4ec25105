"""Covariates of documents as rows of a design matrix: matrices, tables and formulas."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from polyabayes._support import checks
from polyabayes._support.arrays import Floats, Integers
from polyabayes._support.output.frames import DataFrame
from polyabayes.data.corpus import Corpus
from polyabayes.data.naming import rows_by_name
from polyabayes.exceptions import InvalidArgumentError, InvalidTypeError, argument
from polyabayes.models.fitted.covariate_tables import (
    complete,
    covariate_frame,
    covariate_matrix,
    dates_in,
    is_number,
    levels_of,
    plain_values,
    with_days,
)
from polyabayes.models.fitted.formulas import (
    OPTIONS,
    check_transforms,
    evaluated,
    formula_columns,
    import_formulaic,
    packed,
    unpacked,
)
from polyabayes.scale.shards import Shards

_INTERCEPT = "Intercept"

# Smallest share of a standardised column that is independent of earlier columns; less is rounding.
_LEAST_REST = 1e-7
# Largest spread of a column, and inverse of the smallest, for coefficients far from overflow.
_MOST_SPREAD = 1e100
_OF_SPLINES = ", or from_stm the covariates= of its training, which tell the knots of splines"
# Bounds of a pseudo-count in the compiled core.
_RANGE = (1e-100, 1e100)


class Design(NamedTuple):
    """Design of covariates: how they become rows of a matrix, as plain data that a file can hold.

    `dates` are columns of dates, which count days since 1970.

    `names` starts with the intercept, and each of `levels` with its reference. `columns` are taken
    from a table, None for a matrix. `transforms` is the state of transforms, such as knots of
    splines. `means` and `deviations` are over the training documents, without the intercept.
    """

    names: list[str]
    levels: dict[str, list[Any]]
    columns: list[str] | None
    formula: str | None
    transforms: list[Any]
    means: list[float]
    deviations: list[float]
    dates: list[str] = []  # noqa: RUF012

    @classmethod
    def learn(
        cls, covariates: Any, formula: str | None, n_documents: int, counts: Integers | None = None
    ) -> tuple[Design, Floats]:
        """Learn names, levels and transforms from training documents; also returns their matrix.

        Documents count as often as `counts` says in means and deviations, by default once.
        Missing values, constant or collinear columns, more columns than documents and a wrong
        number of rows are refused; the message names the column and the remedy.
        """
        frame = covariate_frame(covariates)
        if formula is not None and frame is None:
            raise InvalidTypeError(
                f"{argument('covariates')} must be a DataFrame if there is a "
                f"{argument('formula')}, which names its columns"
            )
        values: Any = covariate_matrix(covariates) if frame is None else frame
        _check_length(len(values), n_documents)
        if frame is None:
            names = [_INTERCEPT, *(f"x{i}" for i in range(values.shape[1]))]
            design = cls(names, {}, None, None, [], [], [])
            rows = design._with_intercept(values)
        else:
            design, rows = _by_columns(frame) if formula is None else _by_formula(frame, formula)
        for name, known in design.levels.items():
            if len(known) == 1:
                raise _constant(name)
        _check_finite(design.names, rows)
        counted = rows if counts is None else np.repeat(rows, counts, axis=0)
        _check_columns(design.names, counted)
        means, deviations = counted[:, 1:].mean(axis=0), counted[:, 1:].std(axis=0)
        return design._replace(means=means.tolist(), deviations=deviations.tolist()), rows

    def rows(self, covariates: Any, n_documents: int | None = None) -> Floats:
        """The design matrix of other documents.

        Missing columns or values, unknown levels and a wrong number of rows are refused.
        """
        frame = covariate_frame(covariates)
        if self.columns is None:
            values = covariate_matrix(covariates if frame is None else frame.to_numpy())
            if values.shape[1] != len(self.names) - 1:
                raise InvalidArgumentError(
                    f"{argument('covariates')} has {values.shape[1]} columns: this model was "
                    f"trained with {len(self.names) - 1}"
                )
        elif frame is None:
            raise InvalidTypeError(
                f"{argument('covariates')} must be a data frame with the columns "
                f"{', '.join(map(repr, self.columns))}, as in training"
            )
        if n_documents is not None:
            _check_length(len(values if frame is None else frame), n_documents)
        if frame is not None and self.columns is not None:
            frame = self._checked(frame)
            rows = self._of_formula(frame) if self.formula else self._of_columns(frame)
        else:
            rows = self._with_intercept(values)
        _check_finite(self.names, rows)
        return rows

    def standardised(self, rows: Floats) -> Floats:
        """Rows without the intercept; columns have mean 0 and variance 1 in training."""
        centred = rows[:, 1:] - np.array(self.means)
        return np.ascontiguousarray(centred / np.array(self.deviations))

    def coefficients(self, standardised: Floats) -> Floats:
        """Coefficients in the units of the columns, for any shape (..., n_columns)."""
        found = standardised.copy()
        found[..., 1:] /= np.array(self.deviations)
        found[..., 0] -= found[..., 1:] @ np.array(self.means)
        return found

    def levels_of_columns(self) -> dict[str, list[Any]]:
        """Columns coded by levels; factors of a formula are columns or C(column)."""
        names = {x.removeprefix("C(").split(",")[0].rstrip(")"): x for x in self.levels}
        return {name: self.levels[x] for name, x in names.items() if name in (self.columns or [])}

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> Self:
        """Restore a design from a file and check its formula."""
        design = cls(**content)
        numbers = [*design.means, *design.deviations]
        if not len(numbers) == 2 * len(design.means) == 2 * len(design.names) - 2:
            raise ValueError("means or deviations are not those of the columns")
        if not np.isfinite(numbers).all() or min(design.deviations) <= 0:
            raise ValueError("means are not finite, or deviations not positive")
        columns = design.columns or []
        if design.formula is not None and formula_columns(design.formula) != columns:
            raise ValueError("columns are not those of the formula")
        if design.formula is None and design.columns is not None:
            wanted = [_INTERCEPT, *_names_of(columns, design.levels)]
        else:
            wanted = [_INTERCEPT, *design.names[1:]]
        lists = [design.names, columns, *design.levels.values()]
        if any(len(set(held)) < max(1, len(held)) for held in lists) or wanted != design.names:
            raise ValueError("names of columns or levels are repeated, or those of others")
        if not set(design.dates) <= set(columns):
            raise ValueError("dates are in no column")
        check_transforms(unpacked(design.transforms))
        return design

    def _with_intercept(self, values: Floats) -> Floats:
        return np.column_stack([np.ones(len(values)), values])

    def _checked(self, frame: DataFrame) -> DataFrame:
        """The columns of the design; missing columns or values and unknown levels are refused."""
        for name in self.columns or []:
            if name not in frame.columns:
                raise InvalidArgumentError(
                    f"the covariates have no column {name!r}, on which the prior depends: give "
                    f"values of {', '.join(map(repr, self.columns or []))}"
                )
        frame = complete(with_days(frame[list(self.columns or [])], self.dates))
        for name, levels in self.levels_of_columns().items():
            unseen = sorted(set(frame[name]) - set(levels), key=str)
            if unseen:
                raise InvalidArgumentError(
                    f"{argument('covariates')}: column {name!r} has the level {unseen[0]!r}, which "
                    f"training never saw; it saw {', '.join(map(repr, levels[:10]))}: drop these "
                    "documents, or train with some of them"
                )
        return frame

    def _of_columns(self, frame: DataFrame) -> Floats:
        parts = [np.ones(len(frame))]
        for name in self.columns or []:
            if name in self.levels:
                values = frame[name].to_numpy(dtype=object)
                parts += [(values == level).astype(float) for level in self.levels[name][1:]]
            else:
                parts.append(frame[name].to_numpy(dtype=np.float64))
        return np.column_stack(parts)

    def _of_formula(self, frame: DataFrame) -> Floats:
        formulaic = import_formulaic()
        self._check_ranges(frame)
        kind = formulaic.parser.types.Factor.Kind.CATEGORICAL
        spec = formulaic.ModelSpec(
            formula=formulaic.Formula(self.formula),
            transform_state=unpacked(self.transforms),
            encoder_state={k: (kind, {"categories": x}) for k, x in self.levels.items()},
            materializer="pandas",
            **OPTIONS,
        )
        found, rows = evaluated(lambda: spec.get_model_matrix(frame, context={}))
        if list(found.column_names) != self.names:
            others = sorted(set(self.names) ^ set(found.column_names))
            raise InvalidArgumentError(
                f"{argument('covariates')} gives other columns than in training ({others[0]!r}): "
                "numbers must be numbers, and levels be levels, as they were there"
            )
        return rows

    def _check_ranges(self, frame: DataFrame) -> None:
        """Refuse values beyond the knots of a spline that does not say how it goes on."""
        for factor, state in unpacked(self.transforms).items() if self.transforms else ():
            name = factor.partition("(")[2].partition(",")[0].rstrip(")")
            if "upper_bound" not in state or "extrapolation" in factor or name not in frame:
                continue
            ends, values = (state["lower_bound"], state["upper_bound"]), frame[name].to_numpy()
            bad = np.flatnonzero((values < ends[0]) | (values > ends[1]))
            if len(bad):
                shown = [self._shown(name, x) for x in (values[bad[0]], *ends)]
                raise InvalidArgumentError(
                    f"{argument('covariates')}: column {name!r} is {shown[0]} in row {bad[0]}, but "
                    f"{factor} knows {shown[1]} to {shown[2]}, the range of training: leave such "
                    "rows out, or train with extrapolation='clip'"
                )

    def _shown(self, name: str, value: float) -> str:
        if name not in self.dates:
            return f"{value:g}"
        return str(np.datetime64(round(value * 86_400), "s"))[:10]


def learn_design(
    documents: Corpus | Shards, covariates: Any, formula: str | None
) -> tuple[Design | None, Floats]:
    """The design of covariates, if any, and the standardised rows of the training documents."""
    name = "formula" if covariates is None else "covariates"
    if covariates is None and formula is not None:
        covariates = documents.metadata if isinstance(documents, Corpus) else ()
        if covariates is None:
            raise InvalidArgumentError(
                f"{argument('formula')} needs columns: give {argument('covariates')}, or "
                "documents with metadata, by corpus.with_metadata(...)"
            )
    if covariates is None:
        return None, np.empty((documents.n_documents, 0))
    if isinstance(documents, Shards):
        raise InvalidArgumentError(
            f"{argument(name)}: documents with covariates must be in memory; give a Corpus"
        )
    covariates = rows_by_name("covariates", covariates, documents.ids)
    design, rows = Design.learn(covariates, formula, documents.n_documents)
    return design, design.standardised(rows)


def pseudo_counts(predicted: Floats) -> Floats:
    """Exp of the linear predictor, clipped to the range of prior parameters."""
    # Clipped twice, since exp(ln bound) may exceed the bound by rounding.
    return np.asarray(np.exp(np.clip(predicted, *np.log(_RANGE))).clip(*_RANGE))


def _by_columns(frame: DataFrame) -> tuple[Design, Floats]:
    """Numbers unchanged, categories coded by levels."""
    if not len(frame.columns):
        raise InvalidArgumentError(f"{argument('covariates')} has no columns")
    dates = dates_in(frame)
    frame = complete(with_days(frame, dates))
    levels = {
        name: levels_of(frame[name]) for name in map(str, frame) if not is_number(frame[name])
    }
    names = [_INTERCEPT, *_names_of(frame.columns, levels)]
    found = Design(names, levels, list(frame.columns), None, [], [], [], dates)
    return found, found._of_columns(frame)


def _names_of(columns: Iterable[str], levels: Mapping[str, Sequence[Any]]) -> list[str]:
    """Names of the columns of the matrix of a table."""
    coded = ([f"{name}[T.{x}]" for x in levels.get(name, ())[1:]] or [name] for name in columns)
    return list(chain.from_iterable(coded))


def _by_formula(frame: DataFrame, formula: str) -> tuple[Design, Floats]:
    formulaic = import_formulaic()
    columns = formula_columns(formula)
    missing = [name for name in columns if name not in frame.columns]
    if missing:
        raise InvalidArgumentError(
            f"{argument('formula')}: there is no column {missing[0]!r}; the documents have "
            f"{', '.join(map(repr, frame.columns))}"
        )
    dates = dates_in(frame[columns])
    frame = complete(with_days(frame[columns], dates))
    spec, rows = evaluated(lambda: formulaic.model_matrix(formula, frame, context={}, **OPTIONS))
    names = list(spec.column_names)
    if names[:1] != [_INTERCEPT]:
        raise InvalidArgumentError(
            f"{argument('formula')} removes the intercept: keep it, it models how frequent "
            "topics are at the mean of the covariates"
        )
    levels = {
        name: plain_values(state["categories"])
        for name, (_, state) in spec.encoder_state.items()
        if "categories" in state
    }
    transforms = packed(spec.transform_state)
    return Design(names, levels, columns, formula, transforms, [], [], dates), rows


def _check_length(found: int, n_documents: int) -> None:
    if found != n_documents:
        rule = f"has {found:,} rows for {n_documents:,} documents; give one row for each"
        raise checks.wrong("covariates", found, rule, n_documents)


def _check_finite(names: list[str], rows: Floats) -> None:
    bad = np.argwhere(~np.isfinite(rows))
    if len(bad):
        row, column = bad[0]
        raise InvalidArgumentError(
            f"{argument('covariates')}: column {names[column]!r} is {rows[row, column]} in row "
            f"{row}: drop this document, or correct the value"
        )


def _check_columns(names: list[str], rows: Floats) -> None:
    """Refuse columns whose coefficients cannot be learned."""
    n_documents, n_columns = rows.shape
    if n_columns < 2:
        raise InvalidArgumentError(f"{argument('covariates')} has no columns")
    if n_columns > n_documents:
        raise InvalidArgumentError(
            f"{argument('covariates')} gives {n_columns} columns, with the intercept, for "
            f"{n_documents} documents, the last {names[-1]!r}: drop columns, or merge levels"
        )
    values = rows[:, 1:]
    spread = np.ptp(values, axis=0)
    constant = np.flatnonzero(spread <= 1e-12 * np.abs(values).max(axis=0))
    if len(constant):
        raise _constant(names[1 + constant[0]])
    extreme = np.flatnonzero(~((spread > 1 / _MOST_SPREAD) & (spread < _MOST_SPREAD)))
    if len(extreme):
        raise InvalidArgumentError(
            f"{argument('covariates')}: values of column {names[1 + extreme[0]]!r} differ by "
            f"{spread[extreme[0]]:.2g}: give it in other units"
        )
    scaled = (values - values.mean(axis=0)) / values.std(axis=0)
    basis = np.linalg.qr(scaled / np.sqrt(n_documents))[1]
    collinear = np.flatnonzero(np.abs(np.diag(basis)) < _LEAST_REST)
    if len(collinear):
        raise InvalidArgumentError(
            f"{argument('covariates')}: column {names[1 + collinear[0]]!r} is a combination of the "
            "columns before it: omit it; splines cr, cc and cs need constraints='center'"
        )


def _constant(name: str) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"{argument('covariates')}: column {name!r} is the same for all documents: omit it; "
        "there is an intercept without it"
    )


def design_of(frame: DataFrame, names: list[str]) -> NDArray[Any]:
    """Columns of a design: those of the table, or made of them as R names products and levels.

    Splines are named as formulaic names them, with their knots: ``bs(day, knots=[3.5])[1]``.
    """
    if set(names) <= set(frame):
        return frame[names].to_numpy()
    terms = {name: [x.rpartition("$")[2] for x in name.split(":")] for name in names}
    wanted = {term for parts in terms.values() for term in parts}
    columns: dict[str, Any] = {"(Intercept)": np.ones(len(frame))}
    for name, values in frame.select_dtypes(exclude="number").astype(str).items():
        levels = values.replace({"True": "TRUE"}).to_numpy(dtype=object)
        own = {term for term in wanted if term.startswith(str(name)) and term != name}
        columns |= {term: 1.0 * (name + levels == term) for term in own}
        other = sorted({level for level in levels if f"{name}{level}" not in own})
        if own and len(other) > 1:
            raise InvalidArgumentError(
                f"{argument('covariates')}: column {name!r} has the levels {other[0]!r} and "
                f"{other[1]!r}, and only one that is not in the fit can be its reference"
            )
    numbers = frame.select_dtypes("number")
    columns |= {str(name): values.to_numpy() for name, values in numbers.items()}
    frame = with_days(frame, dates_in(frame))
    for spline in {term.rpartition("[")[0] for term in wanted if term.startswith("bs(")}:
        for missing in set(formula_columns(f"~ {spline}")) - set(frame):
            raise InvalidArgumentError(
                f"{argument('covariates')} has no column {missing!r}; the prior of this model "
                "depends on a spline of it"
            )
        matrix = partial(import_formulaic().model_matrix, f"~ 0 + {spline}", frame, **OPTIONS)
        spec, splines = evaluated(matrix)
        columns |= zip(spec.column_names, splines.T, strict=True)
    if lacking := [term for parts in terms.values() for term in parts if term not in columns]:
        raise InvalidArgumentError(
            f"{argument('covariates')} has no column {lacking[0]!r}; the prior of this model "
            f"depends on {', '.join(map(repr, names))}: give these, as model.matrix of R does"
            f"{_OF_SPLINES if lacking[0].startswith('s(') else ''}"
        )
    return np.column_stack([np.prod([columns[x] for x in term], axis=0) for term in terms.values()])
