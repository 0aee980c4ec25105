"""Formulas of covariates: the columns that they name, and their evaluation by formulaic."""

import ast
import math
import re
from collections.abc import Mapping
from importlib import import_module
from typing import Any

import numpy as np

from polyabayes._support.arrays import Floats
from polyabayes._support.optional import import_optional
from polyabayes.exceptions import InvalidArgumentError, InvalidTypeError, argument
from polyabayes.models.fitted.covariate_tables import plain_value

# Functions that a formula may call: functions of formulaic that only read columns. A formula may
# come from a file, and must not run other code.
_TRANSFORMS = ("bs", "cc", "cr", "cs", "poly", "center", "scale", "standardize", "C", "I")
_FUNCTIONS = frozenset((*_TRANSFORMS, "log", "log2", "log10", "exp", "exp2", "exp10"))
_SYNTAX = (
    *(ast.Expression, ast.Call, ast.keyword, ast.Name, ast.Load, ast.Constant, ast.List, ast.Tuple),
    *(ast.BinOp, ast.UnaryOp, ast.Compare, ast.operator, ast.unaryop, ast.cmpop),
)
# Characters and terms of a formula, which may come from a file: formulaic has no limits.
_LONGEST, _MOST_TERMS = 10_000, 1_000_000
_POWER = re.compile(r"(?:\*\*|\^)\s*\(?([0-4](?![0-9.*^eE]))?")
# Options of every evaluation.
OPTIONS = {"na_action": "ignore", "output": "numpy"}


def formula_columns(formula: Any) -> list[str]:
    """Columns of a formula; anything but columns, numbers and known functions is refused."""
    formulaic = import_formulaic()
    if not isinstance(formula, str):
        raise InvalidTypeError(f"{argument('formula')} must be a str, got {formula!r:.60}")
    if len(formula) > _LONGEST or _most_terms(formula) > _MOST_TERMS:
        raise InvalidArgumentError(
            f"{argument('formula')}={formula!r:.80} may have too many terms: more than "
            f"{_MOST_TERMS:,}, or {_LONGEST:,} characters, or a power above 4; make such columns "
            "before"
        )
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


def _most_terms(formula: str) -> float:
    """Upper bound on the number of terms, summand by summand; infinite for large powers."""
    summands, depth = [""], 0
    for sign in formula:
        depth += (sign == "(") - (sign == ")")
        if sign == "+" and depth <= 0:
            summands.append("")
        else:
            summands[-1] += sign
    found = 0.0
    for summand in summands:
        powers = _POWER.findall(summand)
        if "" in powers:
            return math.inf
        products = sum(map(_POWER.sub("", summand).count, "*:%"))
        order = 1 + products + sum(max(0, int(power) - 1) for power in powers)
        found += math.exp(min(order * math.log(summand.count("+") + 2), 700))
    return found


# In R's stm, the function s makes a spline of at most ten columns.
_OF_STM = "; the s(day) of stm is bs(day, df=10)"


def _names_in(expression: str, formula: str) -> list[str]:
    """Columns in an expression of Python."""
    try:
        tree = ast.parse(expression, mode="eval")
    except SyntaxError as error:
        raise InvalidArgumentError(
            f"{argument('formula')}={formula!r:.80} holds {expression!r:.40}, which cannot be read:"
            " columns in functions need names without spaces and signs"
        ) from error
    functions = {node.func for node in ast.walk(tree) if isinstance(node, ast.Call)}
    for node in ast.walk(tree):
        is_known = node not in functions or (isinstance(node, ast.Name) and node.id in _FUNCTIONS)
        if not isinstance(node, _SYNTAX) or not is_known:
            raise InvalidArgumentError(
                f"{argument('formula')}={formula!r:.80} holds {ast.unparse(node)!r:.40}: it may "
                f"hold columns, numbers and {', '.join(sorted(_FUNCTIONS))}; make other columns "
                f"before{_OF_STM if ast.unparse(node) == 's' else ''}"
            )
    names = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
    return [node.id for node in names if node not in functions]


def evaluated(evaluate: Any) -> tuple[Any, Floats]:
    """Evaluate a formula by formulaic: its specification and the matrix."""
    try:
        matrix = evaluate()
    except Exception as error:
        raise InvalidArgumentError(
            f"{argument('formula')} cannot be evaluated on these covariates: {error}"
        ) from error
    return matrix.model_spec, np.array(matrix, dtype=np.float64)


def packed(state: Any) -> Any:
    """Dictionaries as lists of pairs, since keys in a file must be text, and arrays marked."""
    if isinstance(state, Mapping):
        return [[plain_value(key), packed(x)] for key, x in state.items()] + [["", "dict"]]
    if isinstance(state, np.ndarray):
        return [state.tolist(), ["", "array"]]
    if isinstance(state, (list, tuple)):
        return [packed(x) for x in state]
    return None if state is None else plain_value(state)


def unpacked(state: Any) -> Any:
    """Lists of pairs as dictionaries again, and arrays."""
    if isinstance(state, list):
        if state[-1:] == [["", "array"]]:
            return np.array(state[0])
        if state[-1:] == [["", "dict"]]:
            return {key: unpacked(x) for key, x in state[:-1]}
        return [unpacked(x) for x in state]
    return state


def check_transforms(state: Any) -> None:
    """Refuse states of transforms, from a file, that are not names of factors and their numbers."""
    for factor, held in dict(state).items():
        for name, value in held.items():
            numbers = [*value, *value.values()] if isinstance(value, Mapping) else value
            array = np.array(0 if value is None else numbers)
            if array.dtype.kind not in "biuf" or not np.isfinite(array).all():
                raise ValueError(f"{name!r} of the transform of {factor!r} is {value!r:.60}")
        if {"lower_bound", "upper_bound"} & held.keys():
            is_ordered = held["lower_bound"] < held["upper_bound"]
            if not (isinstance(factor, str) and is_ordered):
                raise ValueError(f"the transform of {factor!r} has no bounds")


def import_formulaic() -> Any:
    """Import formulaic; the error names the extra."""
    import_optional("formulaic.parser.types", "formulas need formulaic", "formula")
    return import_module("formulaic")
