"""Covariates of documents as rows of a design matrix: matrices, tables and formulas."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from polyabayes._support import checks
from polyabayes._support.output.frames import import_pandas
from polyabayes.data.conversion.frames import frame_of
from polyabayes.exceptions import (
    InvalidArgumentError,
    InvalidTypeError,
    MissingDependencyError,
    argument,
)

if TYPE_CHECKING:
    import pandas as pd

_INTERCEPT = "Intercept"

# Functions that a formula may call: functions of formulaic that only read columns. A formula may
# come from a file, and must not run other code.
_TRANSFORMS = ("bs", "cc", "cr", "cs", "poly", "center", "scale", "standardize", "C", "I")
_FUNCTIONS = frozenset((*_TRANSFORMS, "log", "log2", "log10", "exp", "exp2", "exp10"))
_SYNTAX = (
    *(ast.Expression, ast.Call, ast.keyword, ast.Name, ast.Load, ast.Constant, ast.List, ast.Tuple),
    *(ast.BinOp, ast.UnaryOp, ast.Compare, ast.operator, ast.unaryop, ast.cmpop),
)

# Smallest share of a standardised column that is independent of earlier columns; less is rounding.
_LEAST_REST = 1e-7
# Largest spread of a column, and inverse of the smallest, for coefficients far from overflow.
_MOST_SPREAD = 1e100


class Design(NamedTuple):
    """Design of covariates: how they become rows of a matrix, as plain data that a file can hold.

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

    @classmethod
    def learn(
        cls, covariates: Any, formula: str | None, n_documents: int
    ) -> tuple[Self, NDArray[np.float64]]:
        """Learn names, levels and transforms from training documents; also returns their matrix.

        Missing values, constant or collinear columns, more columns than documents and a wrong
        number of rows are refused; the message names the column and the remedy.
        """
        frame = _frame(covariates)
        if formula is not None:
            if frame is None:
                raise InvalidTypeError(
                    f"{argument('covariates')} must be a DataFrame if there is a "
                    f"{argument('formula')}, which names its columns"
                )
            _check_length(len(frame), n_documents)
            design, rows = _by_formula(cls, frame, formula)
        elif frame is not None:
            _check_length(len(frame), n_documents)
            design, rows = _by_columns(cls, frame)
        else:
            values = covariate_matrix(covariates)
            _check_length(len(values), n_documents)
            names = [_INTERCEPT, *(f"x{i}" for i in range(values.shape[1]))]
            design = cls(names, {}, None, None, [], [], [])
            rows = design._with_intercept(values)
        _check_columns(design.names, rows)
        means, deviations = rows[:, 1:].mean(axis=0), rows[:, 1:].std(axis=0)
        return design._replace(means=means.tolist(), deviations=deviations.tolist()), rows

    def rows(self, covariates: Any, n_documents: int | None = None) -> NDArray[np.float64]:
        """The design matrix of other documents.

        Missing columns or values, unknown levels and a wrong number of rows are refused.
        """
        frame = _frame(covariates)
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

    def standardised(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """Rows without the intercept; columns have mean 0 and variance 1 in training."""
        centred = rows[:, 1:] - np.array(self.means)
        return np.ascontiguousarray(centred / np.array(self.deviations))

    def coefficients(self, standardised: NDArray[np.float64]) -> NDArray[np.float64]:
        """Coefficients in the units of the columns, for any shape (..., n_columns)."""
        found = standardised.copy()
        found[..., 1:] /= np.array(self.deviations)
        found[..., 0] -= found[..., 1:] @ np.array(self.means)
        return found

    def levels_of_columns(self) -> dict[str, list[Any]]:
        """Columns coded by levels; factors of a formula are columns or C(column)."""
        names = {x.removeprefix("C(").split(",")[0].rstrip(")"): x for x in self.levels}
        return {name: self.levels[x] for name, x in names.items() if name in (self.columns or [])}

    def to_json(self) -> dict[str, Any]:
        """Plain data for a file."""
        return self._asdict()

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> Self:
        """Restore a design from a file and check its formula."""
        design = cls(**content)
        n_slopes = len(design.names) - 1
        checks.vector("means of covariates", design.means, n_slopes)
        checks.positive_vector("deviations of covariates", design.deviations, n_slopes)
        if design.formula is not None:
            formula_columns(design.formula)
        return design

    def _with_intercept(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.column_stack([np.ones(len(values)), values])

    def _checked(self, frame: pd.DataFrame) -> pd.DataFrame:
        """The columns of the design; missing columns or values and unknown levels are refused."""
        for name in self.columns or []:
            if name not in frame.columns:
                raise InvalidArgumentError(
                    f"{argument('covariates')} has no column {name!r}, on which the prior depends"
                )
        frame = _complete(frame[list(self.columns or [])])
        for name, levels in self.levels_of_columns().items():
            unseen = sorted(set(_plain(frame[name])) - set(levels), key=str)
            if unseen:
                raise InvalidArgumentError(
                    f"{argument('covariates')}: column {name!r} has the level {unseen[0]!r}, which "
                    f"training never saw; it saw {', '.join(map(repr, levels[:10]))}: drop these "
                    "documents, or train with some of them"
                )
        return frame

    def _of_columns(self, frame: pd.DataFrame) -> NDArray[np.float64]:
        parts = [np.ones(len(frame))]
        for name in self.columns or []:
            if name in self.levels:
                values = np.array(_plain(frame[name]), dtype=object)
                parts += [(values == level).astype(float) for level in self.levels[name][1:]]
            else:
                parts.append(frame[name].to_numpy(dtype=np.float64))
        return np.column_stack(parts)

    def _of_formula(self, frame: pd.DataFrame) -> NDArray[np.float64]:
        formulaic = _import_formulaic()
        kind = formulaic.parser.types.Factor.Kind.CATEGORICAL
        spec = formulaic.ModelSpec(
            formula=formulaic.Formula(self.formula),
            transform_state=_unpacked(self.transforms),
            encoder_state={k: (kind, {"categories": x}) for k, x in self.levels.items()},
            materializer="pandas",
            **_OPTIONS,
        )
        return _evaluated(lambda: spec.get_model_matrix(frame, context={}))[1]


_OPTIONS = {"na_action": "ignore", "output": "numpy"}


def _by_columns(design: type[Design], frame: pd.DataFrame) -> tuple[Any, NDArray[np.float64]]:
    """Numbers unchanged, categories coded by levels."""
    if not len(frame.columns):
        raise InvalidArgumentError(f"{argument('covariates')} has no columns")
    frame, names, levels = _complete(frame), [_INTERCEPT], {}
    for name in frame.columns:
        if _is_number(frame[name]):
            names.append(name)
            continue
        levels[name] = _levels(frame[name])
        names += [f"{name}[T.{level}]" for level in levels[name][1:]]
        if len(levels[name]) == 1:
            raise _constant(name)
    found = design(names, levels, list(frame.columns), None, [], [], [])
    return found, found._of_columns(frame)


def _by_formula(
    design: type[Design], frame: pd.DataFrame, formula: str
) -> tuple[Any, NDArray[np.float64]]:
    formulaic = _import_formulaic()
    columns = formula_columns(formula)
    missing = [name for name in columns if name not in frame.columns]
    if missing:
        raise InvalidArgumentError(
            f"{argument('formula')}: there is no column {missing[0]!r}; the documents have "
            f"{', '.join(map(repr, frame.columns))}"
        )
    frame = _complete(frame[columns])
    # Unused levels would be constant columns.
    levelled = [x for x in frame.columns if _has_levels(frame[x])]
    frame = frame.assign(**{x: frame[x].cat.remove_unused_categories() for x in levelled})
    spec, rows = _evaluated(lambda: formulaic.model_matrix(formula, frame, context={}, **_OPTIONS))
    names = list(spec.column_names)
    if names[:1] != [_INTERCEPT]:
        raise InvalidArgumentError(
            f"{argument('formula')} removes the intercept: keep it, it models how frequent "
            "topics are at the mean of the covariates"
        )
    levels = {
        name: [_value(level) for level in state["categories"]]
        for name, (_, state) in spec.encoder_state.items()
        if "categories" in state
    }
    for factor, known in levels.items():
        if len(known) == 1:
            raise _constant(factor)
    found = design(names, levels, columns, formula, _packed(spec.transform_state), [], [])
    return found, rows


def _evaluated(evaluate: Any) -> tuple[Any, NDArray[np.float64]]:
    """Evaluate a formula by formulaic: its specification and the matrix."""
    try:
        matrix = evaluate()
    except Exception as error:
        raise InvalidArgumentError(
            f"{argument('formula')} cannot be evaluated on these covariates: {error}"
        ) from error
    return matrix.model_spec, np.array(matrix, dtype=np.float64)


def formula_columns(formula: Any) -> list[str]:
    """Columns of a formula; anything but columns, numbers and known functions is refused."""
    formulaic = _import_formulaic()
    if not isinstance(formula, str):
        raise InvalidTypeError(f"{argument('formula')} must be a str, got {formula!r:.60}")
    try:
        parsed = formulaic.Formula(formula)
        factors = [factor for term in parsed for factor in term.factors]
    except Exception as error:
        raise InvalidArgumentError(
            f"{argument('formula')}={formula!r:.80} has only a right side, such as '~ party + day'"
            f"; it cannot be read: {str(error).partition(chr(10))[0]}"
        ) from error
    columns: dict[str, None] = {}
    for factor in factors:
        kind = factor.eval_method.value
        if kind == "lookup":
            columns[factor.expr] = None
        elif kind == "python":
            columns |= dict.fromkeys(_names_in(factor.expr, formula))
    return list(columns)


def _names_in(expression: str, formula: str) -> list[str]:
    """Columns in an expression of Python."""
    tree = ast.parse(expression, mode="eval")
    functions = {node.func for node in ast.walk(tree) if isinstance(node, ast.Call)}
    for node in ast.walk(tree):
        is_known = node not in functions or (isinstance(node, ast.Name) and node.id in _FUNCTIONS)
        if not isinstance(node, _SYNTAX) or not is_known:
            raise InvalidArgumentError(
                f"{argument('formula')}={formula!r:.80} holds {ast.unparse(node)!r:.40}: it may "
                f"hold columns, numbers and {', '.join(sorted(_FUNCTIONS))}; make other columns "
                "before"
            )
    names = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
    return [node.id for node in names if node not in functions]


def _frame(covariates: Any) -> pd.DataFrame | None:
    """A table with column names as text; None for other types."""
    if isinstance(covariates, Mapping):
        try:
            covariates = import_pandas().DataFrame(dict(covariates))
        except (TypeError, ValueError) as error:
            raise InvalidArgumentError(
                f"{argument('covariates')} must hold one value for each document in every column: "
                f"{error}"
            ) from error
    frame = frame_of(covariates)
    if frame is None:
        return None
    names = [str(name) for name in frame.columns]
    twice = [name for ix, name in enumerate(names) if name in names[:ix]]
    if twice:
        raise InvalidArgumentError(
            f"{argument('covariates')} has two columns that are called {twice[0]!r}; rename one"
        )
    frame = frame.set_axis(names, axis=1).reset_index(drop=True)
    # Texts as objects: formulaic treats other string types as numbers.
    texts = [
        name for name in names if frame[name].dtype.kind == "O" and not _has_levels(frame[name])
    ]
    return frame.astype(dict.fromkeys(texts, object))


def covariate_matrix(covariates: Any) -> NDArray[np.float64]:
    """Numbers and flags of a matrix."""
    values = covariates.toarray() if hasattr(covariates, "toarray") else np.asarray(covariates)
    if values.dtype.kind not in "biufO":
        raise InvalidTypeError(
            f"{argument('covariates')} must hold numbers, got {covariates!r:.60}: give a data "
            "frame, whose columns of text are coded by their levels"
        )
    values = values.astype(np.float64) if values.dtype.kind == "b" else values
    return checks.matrix("covariates", values, "(n_documents, n_covariates)")


def _complete(frame: Any) -> pd.DataFrame:
    """Return the table; missing values and columns of times are refused."""
    for name in frame.columns:
        missing = np.flatnonzero(frame[name].isna().to_numpy())
        if len(missing):
            raise InvalidArgumentError(
                f"{argument('covariates')}: column {name!r} has no value in row {missing[0]} "
                f"({len(missing):,} in all): drop these rows, or fill them in"
            )
        if frame[name].dtype.kind in "mM":
            raise InvalidTypeError(
                f"{argument('covariates')}: column {name!r} holds times; make it a number, such as "
                "days since the first"
            )
    checked: pd.DataFrame = frame
    return checked


def _has_levels(column: pd.Series[Any]) -> bool:
    return column.dtype.name == "category"


def _is_number(column: pd.Series[Any]) -> bool:
    pandas = import_pandas()
    return bool(pandas.api.types.is_numeric_dtype(column.dtype))


def _levels(column: pd.Series[Any]) -> list[Any]:
    """Levels that occur, in the order of a categorical column, else sorted."""
    present = set(_plain(column))
    if _has_levels(column):
        return [x for x in map(_value, column.cat.categories) if x in present]
    return sorted(present, key=lambda level: (str(type(level)), level))


def _plain(column: Any) -> list[Any]:
    return [_value(value) for value in column]


def _value(value: Any) -> Any:
    """A level in a form that a file can hold."""
    plain = value.item() if isinstance(value, np.generic) else value
    return plain if isinstance(plain, (bool, int, float, str)) else str(plain)


def _check_length(found: int, n_documents: int) -> None:
    if found != n_documents:
        raise InvalidArgumentError(
            f"{argument('covariates')} has {found:,} rows for {n_documents:,} documents; give one "
            "row for each",
            argument="covariates",
            value=found,
            limit=n_documents,
        )


def _check_finite(names: list[str], rows: NDArray[np.float64]) -> None:
    bad = np.argwhere(~np.isfinite(rows))
    if len(bad):
        row, column = bad[0]
        raise InvalidArgumentError(
            f"{argument('covariates')}: column {names[column]!r} is {rows[row, column]} in row "
            f"{row}: drop this document, or correct the value"
        )


def _check_columns(names: list[str], rows: NDArray[np.float64]) -> None:
    """Refuse columns whose coefficients cannot be learned."""
    _check_finite(names, rows)
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


def _packed(state: Any) -> Any:
    """Dictionaries as lists of pairs, since keys in a file must be text."""
    if isinstance(state, Mapping):
        return [[_value(key), _packed(x)] for key, x in state.items()] + [["", "dict"]]
    if isinstance(state, (list, tuple, np.ndarray)):
        return [_packed(x) for x in state]
    return None if state is None else _value(state)


def _unpacked(state: Any) -> Any:
    if isinstance(state, list):
        if state[-1:] == [["", "dict"]]:
            return {key: _unpacked(x) for key, x in state[:-1]}
        return [_unpacked(x) for x in state]
    return state


def _import_formulaic() -> Any:
    try:
        import formulaic
        import formulaic.parser.types
    except ImportError as error:
        raise MissingDependencyError(
            "formulas need formulaic: pip install 'polyabayes[formula]'"
        ) from error
    return formulaic
