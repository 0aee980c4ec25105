"""Answers of rows to items, as numbers of levels; what is no set of answers is refused."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from itertools import permutations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special
from scipy.sparse import csr_matrix

from polyabayes._support import checks
from polyabayes._support.arrays import Floats, Integers
from polyabayes._support.output.frames import DataFrame, data_frame, import_pandas
from polyabayes._support.output.tables import some
from polyabayes._support.storage.state_folder import fingerprint_of
from polyabayes._support.warnings import warn
from polyabayes.allocation.observed_cells import known_levels
from polyabayes.data.conversion.frames import frame_of
from polyabayes.data.conversion.table import DATE
from polyabayes.data.counts import sums_of
from polyabayes.data.names import NAMES, headed, plain, refusal, say
from polyabayes.data.naming import rows_by_name
from polyabayes.data.tensors import non_answers
from polyabayes.data.tensors.factors import axis_names, complete_column, factor, one_column
from polyabayes.data.tensors.tensor import CountTensor
from polyabayes.exceptions import DataWarning, InvalidArgumentError, InvalidCountsError, argument

# Levels of a column above which it is taken for a measurement or a name: rating scales have fewer.
_MOST_LEVELS = 50
# Numbers with more levels are rather measured, as ages: scales have up to 21 points.
_MOST_POINTS = 21
# Respondents of a row, on average, above which rows with the same answers would have been added up.
_FEW_ALIKE = 100
# Rows above which a column with another value in each is taken for the names of the rows.
_FEW_ROWS = 10
# Rows above which items that agree in each of them are hardly two questions.
_MANY_ROWS = 50
# Texts, more than so many and nearly all different, beside more blanks, are taken for remarks.
_FEW_TEXTS = 3
# Chance of a false alarm of all pairs of items, which are looked at in so many rows first.
_CHANCE, _ROWS_LOOKED_AT = 0.05, 2_000
_WEIGHED = re.compile("|".join(NAMES["weighed"]))
# Ends of the names of REDCap's columns that say whether a form is complete, and of their labels.
_FORM = ("_complete", "complete?")

# Units that weights with fractions are rounded to, in all: their relative error is far below that
# of an ascent.
_UNITS = 2.0**40


class Answers(NamedTuple):
    """Answers of rows to items, by the numbers of their levels."""

    items: tuple[str, ...]
    # Levels of each item.
    labels: tuple[tuple[str, ...], ...]
    # Shape (n_rows, n_items); -1 is missing.
    levels: Integers
    # Rows that each row stands for.
    weights: Floats
    # What the class of a row depends on, standardised; the first column is the intercept.
    covariates: Floats | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of levels of each item."""
        return tuple(map(len, self.labels))

    @property
    def has_fractions(self) -> bool:
        """Whether a weight is no whole number."""
        return bool((self.weights != np.rint(self.weights)).any())

    @property
    def n_effective(self) -> float:
        """Effective number of rows (Kish 1965): (Σ w)² / Σ w²."""
        return float(self.weights.sum() ** 2 / (self.weights**2).sum())

    def scaled(self) -> Answers:
        """The same rows, with weights that sum to the effective number of rows."""
        return self._replace(weights=self.weights * (self.n_effective / self.weights.sum()))

    def systematic(self) -> Answers:
        """Patterns with whole weights, a systematic sample of the rows in the order of patterns."""
        patterns, rows = np.unique(self.levels, axis=0, return_inverse=True)
        ends = np.rint(np.cumsum(np.bincount(rows.ravel(), self.weights)))
        return self._replace(levels=patterns, weights=np.diff(ends, prepend=0.0), covariates=None)

    def weighted_sum(self, values: Floats) -> float:
        """Sum of the rows' values by weight; those of weight 0 may be infinite."""
        counted = self.weights > 0
        return float(self.weights[counted] @ values[counted])

    def one_each(self) -> Answers:
        """The same answers, each row as often as its weight, a whole number, says."""
        rows = np.repeat(np.arange(len(self.levels)), self.weights.astype(np.int64))
        return self.take(rows)._replace(weights=np.ones(len(rows)))

    def take(self, rows: NDArray[Any]) -> Answers:
        """The answers of some rows."""
        covariates = None if self.covariates is None else self.covariates[rows]
        levels, weights = self.levels[rows], self.weights[rows]
        return self._replace(levels=levels, weights=weights, covariates=covariates)

    def tensor(self) -> CountTensor:
        """Counts of the patterns of answers; weights with fractions as multiples of a small one."""
        counts = self.weights
        if self.has_fractions:
            counts = np.rint(counts * (_UNITS / counts.sum()))
        # Names that a graph can name.
        axes = axis_names(self.items)
        if len(set(axes)) < len(axes):
            axes = [f"item{number}" for number in range(len(axes))]
        cells = self.levels, counts.astype(np.int64)
        return CountTensor.from_coo(*cells, axes, self.shape, self.labels, unknown=-1)


class RowWeights(NamedTuple):
    """Weights of the rows of a fit: the name of a column, or values for rows of these levels."""

    column: str | None
    fingerprint: str
    values: Floats
    n_effective: float
    are_sampling: bool

    @classmethod
    def of(cls, answers: Answers, weights: Any) -> RowWeights:
        """Weights that were given to a fit."""
        column = weights if isinstance(weights, str) else None
        kept = answers.weights if column is None else np.empty(0)
        fingerprint = fingerprint_of("levels", answers.levels)
        return cls(column, fingerprint, kept, answers.n_effective, answers.has_fractions)

    def sentence(self, counts: Any) -> str:
        """A sentence for a methods section; draws have counts."""
        named = "" if self.column is None else f" (column {self.column!r})"
        if not self.are_sampling:
            return f" Rows count as often as their weights say{named}."
        how = "intervals are from sandwich standard errors"
        if counts is not None:
            how = "the pseudo-posterior has weights that sum to the effective number of rows, and "
            how += "numbers of classes are compared on a systematic sample of this size"
        worth = f"worth {self.n_effective:,.0f} rows (Kish)"
        return f" Rows have sampling weights{named}, {worth}; {how}."

    def put(self, answers: Answers) -> Answers:
        """The rows of the fit with their weights; other rows are refused."""
        if fingerprint_of("levels", answers.levels) != self.fingerprint:
            raise refusal("other rows", argument("weights"))
        return answers._replace(weights=self.values)


def indicators(
    levels: Integers, shape: tuple[int, ...], tables: Integers | slice = slice(None)
) -> Floats:
    """1 where a row has an answer, shape (n_rows, levels of all tables one by one).

    Every item has a table of its own, or that of `tables`.
    """
    starts = np.cumsum((0, *shape[:-1]))[tables]
    rows, items = np.nonzero(levels >= 0)
    shown = np.zeros((len(levels), sum(shape)))
    shown[rows, starts[items] + levels[rows, items]] = 1.0
    return shown


def ln_orders(tensor: CountTensor) -> float:
    """Ln of the number of orders of the rows of a tensor, each with the answers it lacks."""
    _, pattern = np.unique(tensor.coordinates >= 0, axis=0, return_inverse=True)
    totals = np.bincount(pattern.ravel(), tensor.counts)
    return float(special.gammaln(totals + 1).sum() - special.gammaln(tensor.counts + 1).sum())


def read_answers(
    data: Any,
    items: Any,
    weights: Any,
    covariates: Collection[str] = (),
    missing: Any = (),
    call: str = "classes.fit(frame, ",
) -> Answers:
    """Answers to fit classes to; columns of covariates are no items unless they are named.

    A column that is no item, a row without an answer, and a column of counts that would be an item
    without being named are refused.
    """
    frame, counts = _frame_of(data, weights)
    left_out = {*covariates, weights} if isinstance(weights, str) else {*covariates}
    others = [column for column in frame.columns if str(column) not in left_out]
    columns = _columns(frame, others if items is None else items)
    if weights is None and not isinstance(data, CountTensor):
        named = () if items is None else columns
        _refuse_counts(frame[[column for column in others if column not in named]], bool(named))
    frame = non_answers.without_missing(frame, columns, missing)
    given = repr(weights) if isinstance(weights, str) else "weights"
    call += f"weights={given}, " * (weights is not None)
    measured = _measured(frame, columns)
    n_answers = {column: frame[column].nunique() for column in columns}
    unanswered, alone = ([x for x in columns if n_answers[x] == n] for n in (0, 1))
    names = [x for x in columns if x not in measured and _are_names(frame[x])]
    odd = [*unanswered, *alone, *names, *measured]
    if odd and (told := non_answers.further_headers(frame, columns, has_counts=False)[1]):
        raise InvalidArgumentError(told)
    divided = {x: told for x in names if (told := non_answers.choices_of(frame, x))}
    left = [x for x in columns if x not in divided]
    beside = warn_of_non_answers(frame, left, missing, call)
    if odd:
        names = [x for x in names if x not in divided]
        kinds = unanswered, alone, names, measured, [x for x in beside if x not in odd]
        parts = zip(say("no items", _MOST_LEVELS).split("|"), kinds, strict=True)
        told = "; ".join(f"{some(own, 8)}: {said}" for said, own in parts if own)
        odd = [x for x in left if x in odd or x in beside]
        # The last weights of a survey are the final ones, unless others are called so only.
        wt = [x for x in measured if _WEIGHED.search(str(x))] * (weights is None)
        wt = sorted(wt, key=lambda x: plain(str(x)) in NAMES["weights"])[-1:]
        dropped, rest = [x for x in odd if x not in wt] or odd, [x for x in columns if x not in odd]
        kept = argument("items", rest) if items else f"frame.drop(columns={dropped})"
        told += f"; leave them out by {kept}" * bool(odd and (rest[1:] or not items))
        how = "or" if dropped == odd else "and"
        told += "".join(f"; {how} if {x!r} holds weights, use {argument('weights', x)}" for x in wt)
        if names or measured:
            told += "; or cut numbers into a few, as by pandas.cut, and make levels categorical"
        if blank := [x for x in alone if frame[x].isna().any() and x not in beside]:
            others = [column for column in dropped if column not in blank]
            code = non_answers.ticked(frame, blank, f".drop(columns={others})" * bool(others))
            told += f", or if blanks are answers, use {code}"
        raise InvalidArgumentError("; ".join([told] * bool(odd) + [*divided.values()]))
    kinds_of = {column: getattr(frame[column].dtype, "kind", "O") for column in columns}
    most = min(_MOST_POINTS, max(len(frame) - 1, 2))
    if many := [x for x in columns if kinds_of[x] in "iu" and n_answers[x] > most]:
        # Counts of levels in columns, as of a cross table.
        named = [x for x in frame.index.names if x is not None]
        rest = named + [x for x in frame.columns if kinds_of.get(x) not in ("i", "u")]
        told = say("many levels", some(many), _MOST_POINTS, argument("items"))
        cross = "; " + say("cross", "frame" + ".reset_index()" * bool(named), rest)
        # One column of numbers, as of ages, has no levels of a factor.
        warn(told + cross * bool(rest and many[1:]), DataWarning)
    codes, known = zip(*(factor(frame, column) for column in columns), strict=True)
    levels, labels = np.stack(codes, axis=1), tuple(map(tuple, known))
    n_alike = len(levels) - len(np.unique(levels, axis=0))
    are_whole = counts.mean() > _FEW_ALIKE and bool((counts == np.rint(counts)).all())
    if are_whole and n_alike and counts.min() < counts.max():
        warn(say("whole weights", n_alike, argument("weights")), DataWarning)
    rows = np.flatnonzero((levels >= 0).sum(axis=1) == 1)
    places = {*np.argmax(levels[rows], axis=1).tolist()}
    if len(rows) > _FEW_ROWS and len(places) == 1:
        warn(say("alone", len(rows), columns[places.pop()], argument("items")), DataWarning)
    if len(empty := np.flatnonzero((levels < 0).all(axis=1) & (counts > 0))):
        none = "frame.isna()"
        if marks := non_answers.marks_by_column(missing, columns):
            own = marks if isinstance(missing, Mapping) else next(iter(marks.values()))
            none = f"({none} | frame.isin({own}))"
        told = some(frame.index[empty])
        raise refusal("empty rows", len(empty), told, none, columns)
    return Answers(tuple(map(str, columns)), labels, levels, counts)


def warn_of_non_answers(
    frame: DataFrame, items: Sequence[Any], missing: Any = (), call: str = ""
) -> list[Any]:
    """Warn of what may be no item, no respondent or no answer; nothing is dropped.

    It names, and returns, columns of names of rows, times and remarks, and what an export adds
    (REDCap, Qualtrics, SurveyMonkey, KoboToolbox, LimeSurvey, SoSci Survey): a header that may be a
    question's, such as Status, only beside others. It names what :func:`warn_of_answers` names; and
    tables with a row for each answer, by their headers or, of three columns, since no two rows
    share a respondent and a question.
    """
    # LimeSurvey writes a code before each question.
    header = {item: plain(str(item).partition(". ")[0]) for item in items}
    header |= {x: "id" for x in items if re.search("(_(?i:id)|[a-z]ID|Id)$", str(x))}
    forms = [x for x in items if str(x).lower().rstrip(".123456789").endswith(_FORM)]
    header |= dict.fromkeys(forms, "record")
    ids, questions, answers, added, exported = (
        [item for item in items if re.fullmatch("|".join(NAMES[kind]), header[item])]
        for kind in ("respondent", "question", "answer", "added", "export")
    )
    for one, other in permutations(items if len(items) == 3 else (), 2):
        n, m = frame[[one, other]].nunique()
        are_most = max(m, _FEW_ROWS) < n < len(frame) > n * m / 2
        if are_most and not frame.duplicated([one, other]).any():
            ids, questions, answers = [one], [other], [x for x in items if x not in (one, other)]
    if ids and questions and answers and frame[ids].duplicated().any():
        warn(say("long answers", ids, questions[0], answers[0]), DataWarning)
        return []
    # Forms of REDCap are complete (2), unlike items with such names.
    is_form = any(frame[x].isin([2, "2", "Complete"]).any() for x in forms)
    times = [x for x in items if _are_times_or_remarks(frame[x])]
    exported, added = ([x for x in exported if x not in times], [*added, *times])
    ids += added + exported * (len(exported) + len(added) > 1 or is_form)
    ids = [x for x in items if x in ids]
    # One answer in all rows is refused with its own call.
    if several := [x for x in ids if frame[x].nunique() > 1]:
        warn(say("export", some(several, 8), argument("items"), several), DataWarning)
    left = [item for item in items if item not in ids]
    if len(frame) > _FEW_ROWS and _ends_with_a_summary(frame, left):
        warn(say("last row", frame.index[-1]), DataWarning)
        frame = frame.iloc[:-1]
    if len(frame) > _FEW_ROWS and (scores := _scores(frame, left)):
        warn(say("scores", some(scores), argument("items"), scores), DataWarning)
    if left:
        non_answers.warn_of_answers(frame, left, missing, call)
    return ids


def _scores(frame: DataFrame, items: Sequence[Any]) -> list[Any]:
    """Numbers that are sums of those of other items, to a hundredth, in every row."""
    numbers = frame[items].apply(partial(import_pandas().to_numeric, errors="coerce"))
    numbers = numbers.dropna(axis=1, how="all").fillna(0).mul(100).round().clip(0, 1e9)
    counts = csr_matrix(numbers.to_numpy(np.int64).T)
    return [numbers.columns[k] for k in (sums_of(counts) if len(counts.data) else ())]


def _are_times_or_remarks(values: Any) -> bool:
    """Whether values are dates or times, or texts that are few beside blanks and mostly differ.

    Or most levels are sentences that one row each has.
    """
    n_rows, n_known = values.astype(str)[values.notna()].value_counts(), values.count()
    texts, alone = [*n_rows.index], [x for x, n in n_rows.items() if n == 1 and x.count(" ") > 1]
    are_few = 2 * n_known < len(values) and 3 * n_known < 4 * len(texts)
    are_remarks = are_few or (n_known > _FEW_ROWS and len(texts) < 2 * len(alone))
    are_few = n_known == len(texts) > 1 and len(values) > _FEW_ROWS
    are_remarks &= len(texts) > _FEW_TEXTS or are_few
    are_remarks |= 2 * n_known < len(values) and len(alone) > 1
    are_remarks &= values.dtype.kind == "O"
    is_other = hasattr(values, "cat") or not texts
    return not is_other and (are_remarks or all(map(DATE.fullmatch, texts)))


def _ends_with_a_summary(frame: DataFrame, items: Sequence[Any]) -> bool:
    """Whether the numbers of the last row are sums, or alone have fractions."""
    read = partial(import_pandas().to_numeric, errors="coerce")
    last = frame[items].iloc[-1:].apply(read).squeeze(axis=0).dropna()
    if len(last) < 2 or any((frame[x] == frame[x].iloc[-1]).sum() > 1 for x in last.index):
        return False
    above = frame[last.index].iloc[:-1].apply(read)
    are_sums = (above.max() < last) & (above.sum() == last)
    return bool((are_sums | (((above % 1).max() == 0) & (last % 1 > 0))).all())


def like_answers(
    data: Any, items: Sequence[str], labels: Sequence[Sequence[str]], weights: Any, missing: Any
) -> Answers:
    """Answers of new rows to the items of a fit; other levels are refused."""
    frame, counts = _frame_of(data, weights)
    named = {str(column): column for column in frame.columns}
    if not isinstance(data, CountTensor) and frame_of(data) is None:
        if frame.shape[1] != len(items):
            told = say("fitted to", frame.shape[1], len(items), ", ".join(items))
            raise InvalidArgumentError(told)
        named = dict(zip(items, frame.columns, strict=True))
    if lacking := [item for item in items if item not in named]:
        told = f"X has no column {lacking[0]!r}; the classes were fitted to {', '.join(items)}"
        raise InvalidArgumentError(told)
    columns = [named[item] for item in items]
    frame = non_answers.without_missing(frame, columns, missing, may_lack=True)
    levels = [known_levels(frame, x, [*known]) for x, known in zip(columns, labels, strict=True)]
    return Answers(tuple(items), tuple(map(tuple, labels)), np.stack(levels, axis=1), counts)


def column_of(X: Any, name: str, y: Any, n_rows: int) -> Any:
    """The argument of this name, a column of the rows or its name, as a series."""
    frame = frame_of(X)
    if isinstance(y, str):
        if frame is None:
            raise InvalidArgumentError(f"{argument(name)} names a column, but X is no data frame")
        return one_column(frame, y)
    given = rows_by_name(name, y, checks.index_of(X))
    if getattr(given, "ndim", 1) != 1 or isinstance(given, (set, frozenset)):
        raise checks.wrong_type(name, given, say("one value", given))
    if len(values := import_pandas().Series(given)) != n_rows:
        raise checks.wrong(name, y, f"has {len(values):,} values, but X has {n_rows:,} rows")
    return values


def levels_of(
    X: Any, name: str, given: Any, n_rows: int, most: float = _MOST_LEVELS
) -> tuple[Integers, list[str]]:
    """Numbers of the levels of such an argument, -1 if missing, and the levels."""
    values = column_of(X, name, given, n_rows).reset_index(drop=True)
    codes, labels = factor(data_frame({name: values}), name)
    if len(labels) > most and not hasattr(values, "cat"):
        raise refusal("cut", argument(name), len(labels), most)
    return codes, labels


def _frame_of(data: Any, weights: Any) -> tuple[DataFrame, Floats]:
    """A frame of pandas whose whole numbers are whole, and the weights of its rows."""
    if isinstance(data, CountTensor):
        if weights is not None:
            raise refusal("weighted", argument("weights"))
        return _cells_of(data), data.counts.astype(np.float64)
    found = frame_of(data)
    names = [] if found is None else non_answers.as_python(found.columns)
    frame = _array_of(data) if found is None else found.set_axis(names, axis=1)
    if not len(frame):
        raise InvalidArgumentError("X has no rows")
    for column in frame.columns:
        values: Any = frame[column]
        if values.ndim == 1 and getattr(values.dtype, "kind", "") == "f":
            known = values.dropna()
            if len(known) and np.isfinite(known).all() and (known == np.rint(known)).all():
                frame[column] = values.astype("Int64")
    weights = rows_by_name("weights", weights, checks.index_of(data))
    if isinstance(weights, str):
        weights = complete_column(frame, weights).to_numpy()
    return frame, _checked_weights(weights, len(frame))


def _refuse_counts(frame: DataFrame, has_items: bool) -> None:
    """Refuse a column of counts as an item; warn of it if other columns are named as items."""
    # A last header, "value", may also be that of an answer.
    kinds = {x: getattr(own, "kind", "O") for x, own in frame.dtypes.items()}
    columns = [x for x in kinds if isinstance(x, str) and kinds[x] in "iu"]
    if (column := headed(columns, NAMES["count"][:-1] + NAMES["weights"])) is None:
        return
    remedy = f"if each row stands for so many, use {argument('weights', column)}"
    if has_items:
        warn(f"column {column!r} is left out and each row counts once: {remedy}", DataWarning)
        return
    raise refusal("named counts", column, remedy, argument("items"))


def _cells_of(tensor: CountTensor) -> DataFrame:
    pandas, columns = import_pandas(), {}
    for axis, (name, labels) in enumerate(zip(tensor.axes, tensor.labels, strict=True)):
        texts: Any = list(map(str, range(tensor.shape[axis]) if labels is None else labels))
        columns[name] = pandas.Categorical.from_codes(tensor.coordinates[:, axis], texts)
    return data_frame(columns)


def _array_of(data: Any) -> DataFrame:
    try:
        array = np.asarray(data)
    except ValueError:
        array = np.empty(0)
    if array.ndim != 2 or array.dtype.kind not in "biufOUS":
        told = say("no answers", type(data).__name__, array.shape)
        is_path = isinstance(data, (str, os.PathLike))
        raise checks.wrong_type("X", data, told + "; read files by pandas.read_csv" * is_path)
    return data_frame({f"x{column}": array[:, column] for column in range(array.shape[1])})


def _columns(frame: DataFrame, items: Any) -> list[Any]:
    if isinstance(items, str):
        raise checks.wrong_type("items", items, f"must be a list of columns, got {items!r}")
    columns = list(items)
    for column in columns:
        one_column(frame, column)
    if len(set(columns)) < len(columns) or len(columns) < 2:
        raise refusal("two items", argument("items"), columns)
    return columns


def _checked_weights(weights: Any, n_rows: int) -> Floats:
    if weights is None:
        return np.ones(n_rows)
    found = np.asarray(weights)
    if found.dtype.kind not in "biuf" or found.shape != (n_rows,):
        told = say("no weights", n_rows, found.dtype, found.shape)
        raise checks.wrong_type("weights", weights, told)
    found = found.astype(np.float64)
    if (bad := ~(np.isfinite(found) & (found >= 0))).any():
        row = int(np.argmax(bad))
        raise InvalidCountsError(say("bad weight", argument("weights"), found[row], row))
    if not found.any():
        raise InvalidCountsError(f"all {argument('weights')} are 0")
    return found


def _measured(frame: DataFrame, columns: Sequence[Any]) -> list[Any]:
    """Columns that are measured, not chosen from a few levels."""
    fractions = [x for x in columns if getattr(frame[x].dtype, "kind", "O") == "f"]
    held = {x: frame[x].dropna().to_numpy(dtype=float) for x in fractions}
    bad = {x: own[~np.isfinite(own) | (own != np.rint(own))] for x, own in held.items()}
    bad = {x: own for x, own in bad.items() if len(own)}
    told = ""
    if bad and np.abs(np.concatenate([*bad.values()])).max() < np.finfo(float).eps:
        code = f"frame.assign(**frame[{[*bad]}].round())"
        told = f"if that stands for 0, as pandas reads files of SAS, use {code}"
    elif len(frame) > _FEW_ROWS and all([*own] == [frame[x].iloc[-1]] for x, own in bad.items()):
        told = "if the last row holds averages, use frame.iloc[:-1]" * bool(bad)
    if told:
        column, own = next(iter(bad.items()))
        raise InvalidArgumentError(f"{column!r} holds {own[0]:g}, which is not whole; {told}")
    return [*bad]


def _are_names(values: Any) -> bool:
    """Whether a column may name the rows: too many levels, or another one in each row."""
    n_levels = values.nunique()
    is_distinct = n_levels == values.count() > _FEW_ROWS
    # Times of answers, of which a few may be missing.
    dates = {x for x in values if isinstance(x, str) and DATE.match(x)}
    is_distinct |= 2 * len(dates) > values.count() > _FEW_ROWS
    return not hasattr(values, "cat") and (n_levels > _MOST_LEVELS or is_distinct)


def warn_of_copies(data: Any, answers: Answers) -> None:
    """Warn of items of a frame that follow from others in all rows, as points from an answer.

    Items that say the same are always told. Where several answers give the same one, the rate is
    the smallest share of misses from any item from which it does not follow, and which does not
    follow from the source: by the chance of no miss at this rate, less than one item would be such,
    and by the product of all chances, less than :data:`_CHANCE` pairs. The first row of each level
    of the source says nothing.
    """
    levels, names, total, n_agreed = answers.levels, answers.items, 0.0, 0
    if (frame := frame_of(data)) is None:
        return
    sample, told = levels[:: len(levels) // _ROWS_LOOKED_AT + 1], dict[int, list[str]]()
    shape, (n_missed, n_rows) = answers.shape, _misses(sample, answers.shape)
    # Answers of several choices that have columns, too, are told to be left out.
    named = ((str(x), non_answers.choices_of(frame, x)) for x in frame if str(x) in names)
    left_out = {x for x, told in named if told.endswith(f".drop(columns={x!r})")}
    order = [k for k, x in enumerate(names) if x not in left_out]
    rates = np.where(n_missed > 0, n_missed / np.maximum(n_rows, 1), 1.0)
    are_same = (n_missed[:-1] + n_missed[:-1].T == 0) & (2 * n_rows[:-1] > len(sample))
    for item in sorted(order, key=lambda item: -shape[item]):
        sure = {}
        for x in (x for x in told if not n_missed[x, item]):
            least = rates[np.append(n_missed[x] > 0, True), item].min()
            sure[x] = np.inf if are_same[x, item] else special.xlog1py(-n_rows[x, item], -least)
        for x in sorted(sure, key=sure.__getitem__, reverse=True):
            holds = not _misses(levels[:, [x, item]], (shape[x], shape[item]))[0][0, 1]
            if holds and sure[x] > np.log(len(names)):
                told[x].append(names[item])
                total, n_agreed = total + sure[x], n_agreed + n_rows[x, item]
                break
        else:
            told[item] = []
    if n_agreed > _MANY_ROWS and total > np.log(len(names) * (len(names) - 1) / _CHANCE):
        pairs = [f"{some(own)} from {names[x]!r}" for x, own in told.items() if own]
        shown = "; ".join(pairs[:_FEW_TEXTS])
        shown += f"; {len(pairs) - _FEW_TEXTS} more" * (len(pairs) > _FEW_TEXTS)
        kept = [names[x] for x in sorted(told)]
        copies = [x for x in names if x not in kept]
        warn(say("copies", shown, argument("items", kept), copies), DataWarning)


def _misses(levels: Integers, shape: tuple[int, ...]) -> tuple[Floats, Floats]:
    """Rows without the most frequent answer given that to another item, and those that may be so.

    Both have the shape (n_items + 1, n_items): the last other item is the same in all rows.
    """
    shown = indicators(levels, shape).astype(np.float32)
    starts = np.cumsum((0, *shape[:-1]))
    counts = np.vstack([shown.T @ shown, shown.sum(axis=0)])
    rows = np.append(starts, sum(shape))
    known = np.add.reduceat(counts, starts, axis=1)
    most = np.add.reduceat(np.maximum.reduceat(counts, starts, axis=1), rows)
    n_known = np.add.reduceat(known, rows)
    return n_known - most, n_known - np.add.reduceat((known > 0).astype(float), rows)


def refuse_fractions(answers: Answers) -> None:
    """Refuse weights that are no whole numbers, where data sets are drawn."""
    if answers.has_fractions:
        row = int(np.argmax(answers.weights != np.rint(answers.weights)))
        raise InvalidCountsError(say("fraction", argument("weights"), answers.weights[row], row))
