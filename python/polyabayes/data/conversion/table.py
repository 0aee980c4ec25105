"""A table of named columns, and code that reads it, for messages."""

import re
from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from functools import cached_property
from itertools import chain, combinations, groupby, takewhile
from typing import Any, Literal, Protocol

import numpy as np

from polyabayes._support.output.frames import DataFrame
from polyabayes.data.conversion import numbers as _numbers
from polyabayes.data.counts import MAX_COUNT, TOTAL, CountMatrix, told_of_thousands
from polyabayes.data.names import CALLS, NAMES, NO_WORD, counts_nothing, headed, is_headed, say
from polyabayes.exceptions import InvalidArgumentError, InvalidTypeError, argument

# Kinds: numbers, labels, texts of several words, lists of tokens, lists of others or counts by word
# in each cell, and others.
Kind = Literal["number", "name", "text", "tokens", "cells", "other"]
_NOT_GIVEN: tuple[Any, ...] = (None, (), [], "auto")
PLAIN_KINDS = ("number", "name", "text")
_ROWS_LOOKED_AT = _COLUMNS_LOOKED_AT = 100
# Columns among which sums of others are looked for, and so few words that one may be half of all;
# ratio to all other counts above which the first column looks like numbers of documents, or codes;
# largest error of a sum of rounded probabilities.
_FEW, _FEW_WORDS, FAR_LARGER, ROUNDED = 20, 5, 10, 0.01
# Fields of further headers of survey exports: those of Qualtrics and of SurveyMonkey.
_SECOND_HEADER = re.compile(r'(?s:\{"ImportId".*)|(Open-Ended )?Response')
DATE = re.compile("|".join(NAMES["dates"]))
# Leading zeros occur only in names.
PADDED = re.compile(r"[+-]?0[0-9]")


class Table(Protocol):
    """A table of named columns.

    `row_names` are names of rows outside the columns, such as the index of a data frame, whose name
    is `row_label`.
    `has_headers` says whether columns have names, not just numbers. Error messages call the table
    by its title. `taker` is the function that takes the options of tables, if it is not the one
    that the user called; `code` is that of a data frame with its content, taken with the options
    `given`: by CountTensor, if these are axes.
    `keys` are the names of columns of a data frame that may be numbers.
    With `is_turned`, its rows are words. `sep` divides the fields of a file; `as_lists` is code of
    a corpus whose documents are its lines; with
    `may_lack_header`, its first line may be data. Numbers in columns that are `quoted` may stand
    for levels, as R writes those of factors.
    """

    names: list[str]
    n_rows: int
    row_names: list[str] | None = None
    has_headers: bool = True
    title: str = "the table"
    row_label: str = ""
    taker: str = ""
    code: str = "table"
    sep: str = ""
    as_lists: str = ""
    is_turned: bool = False
    may_lack_header: bool = False
    has_blank_rows: bool = False
    quoted: Collection[str] = ()
    given: Mapping[str, Any] = {}
    keys: Mapping[str | None, Any] = {}

    def options(self, *names: str, **values: Any) -> str:
        """Options of tables in a message, some with values; those that are None are left out.

        If the options of numbers are needed, too, a call with all of them.
        """
        if values and self.written:
            return self.call(**values)
        given = [*((name, None) for name in names), *values.items()]
        told = [argument(*pair) for pair in given if pair[1] is not None or pair[0] in names]
        return ", ".join(told) + (f" of {self.taker}" if self.taker else "")

    @property
    def as_frame(self) -> str:
        """Code of a data frame with the content of the table, its numbers read as such."""
        told = "".join(f", {name}={value!r}" for name, value in self.written.items())
        index = ("index=False", "") if self.row_names is None else ("", ", index_col=0")
        text = f"io.StringIO({self.code}.to_csv({index[0]})){index[1]}"
        return f"pandas.read_csv({text}{told})" if told else self.code

    @cached_property
    def written(self) -> dict[str, Any]:
        """Options of pandas that read the numbers of the table as they are written."""
        return _numbers.options_of_numbers(map(self.values, self.names), self.sep)

    def call(self, change: str = "", **options: Any) -> str:
        """Code that reads the table, changed, with the options that the caller gave, and others."""
        own = {name: x for name, x in options.items() if x is not None}
        told = {name: x for name, x in {**self.given, **own}.items() if x not in _NOT_GIVEN}
        code = self.as_frame + change
        if self.is_turned:
            others = f".drop(columns={list(told['metadata'])})" if "metadata" in told else ""
            return f"polyabayes.Corpus({code}{others}{self.index_code([told.get('ids')])}.T)"
        left_out = {x for x, y in told.items() if x == "transpose" or callable(y) or y == ""}
        left_out |= {*told} - {"axes", "counts", "missing"} if "axes" in self.given else set()
        named = [f"{name}={value!r}" for name, value in told.items() if name not in left_out]
        maker = "CountTensor.from_frame" if "axes" in self.given else "Corpus.from_table"
        return f"polyabayes.{maker}({', '.join([code, *named])})"

    def index_code(self, labels: Sequence[str | None]) -> str:
        """Code that names the rows by columns, if there are any and pandas has not."""
        named = [x for x in (self.keys.get(x, x) for x in labels) if x is not None]
        if not named[1:] and named and not self.is_distinct(*(x for x in labels if x is not None)):
            return f".groupby({named[0]!r}, sort=False).sum()"
        return f".set_index({named if named[1:] else named[0]!r})" if named else ""

    def remedy(self, name: str, text: str | None) -> str:
        """What reads a table with this text in the place of a count, to end a message."""
        number = _numbers.read_number((text or "-").removesuffix("%"), self.written)
        kept, told, named = f"`{name}` >= 0", "", [*(self.given.get("metadata") or ())]
        filled, change = self.filled(), self.completion()
        if "axes" in self.given:
            change = filled = f".fillna({ {name: 0} })"
        is_count = "axes" in self.given or name in (self.given.get("count"), *NAMES["count"])
        is_truth = str(text).lower() in NAMES["truth"]
        if str(text)[:2] == '="':
            told = f"if numbers are guarded for Excel, {self.call(CALLS['guarded'])}"
        elif text in NAMES["missing"] or (number is not None and number != number):
            # Only readers of files take texts for missing values.
            is_read = text is None or self.as_frame.startswith("pandas.read_csv(")
            filled = ("" if is_read else f".replace({text!r}, 0)") + filled
            beside = self.numbers_beside(named)
            told = f"of a property, {self.call(metadata=[*named, *beside])}; " * (name in beside)
            told += self.kept_back(filled) or f"where nothing was counted, {self.call(filled)}"
            told += f"; {self.melted}" * (name in self.codes)
            if "drop" in change and not self.kept_back(filled):
                told = f"without rows that count nothing, {self.call(change)}"
        elif number is not None and number < 0 and is_count:
            told = f"without such rows, {self.call(f'.query({kept!r})')}"
        elif number is not None and (number < 0 or number % 1 or str(text).endswith("%")):
            told = self._of_fractions(name, is_count)
        elif (self.written and number is not None) or is_truth:
            told = "TRUE counts as 1 and FALSE as 0 by " if is_truth else "of numbers written so, "
            told += self.kept_back(filled) or self.call(change * ("na_values" in self.written))
            texts = {str(x) for y in self.names for x in self.values(y)}
            are_whole = not any((_numbers.number_of(x) or 0) % 1 for x in texts)
            if are_whole and self.written.get("thousands") == "." and "decimal" not in self.written:
                told += "; of floats, " + self.call().replace(", thousands='.'", "")
        elif re.fullmatch(r"[\d.]+ ?[a-z]{1,4} *", str(text)):
            told = f"if letters behind numbers are flags, {self.call(CALLS['flags'])}"
        elif number is not None and number > MAX_COUNT:
            told = f"if it names rows, use {self.options(ids=name)}"
        elif number is None and is_count:
            texts = {str(x) for x in self.values(name) if x is not None}
            kept = f"`{name}` not in {sorted(x for x in texts if not _numbers.is_like_a_number(x))}"
            told = f"without rows of others than counts, {self.call(f'.query({kept!r})')}"
        elif number is None:
            told = self.under_units or self.melted * (name in self.codes)
            told = told or f"of a property, {self.call(metadata=[*named, name])}"
        return f"; {told}" * bool(told)

    def _of_fractions(self, name: str, is_count: bool) -> str:
        """What reads a table with shares, weights or negative numbers in a column."""
        told, named = CALLS["weights"], self.given.get("metadata") or []
        held = {x: self.numbers_of(x) for x in self.names}
        odd = {x: own for x, own in held.items() if any(n < 0 or n % 1 for n in own)}
        sums, values = [*map(sum, zip(*odd.values(), strict=False))], [*chain(*odd.values())]
        if len(odd) > 1 and np.allclose(sums, 1, atol=ROUNDED):
            return say("sum to one", self.as_frame, [*odd])
        ids = self.given.get("ids") or headed(self.names, NAMES["document"] + NAMES["row"])
        if shares := self.presence([] if ids is None else [ids]):
            return f"{told}; {shares}"
        given = [*dict.fromkeys([*named, *odd, name])]
        given += self.numbers_beside(given)
        counted = self.count_among([x for x in self.names if x != name], NAMES["may count"])
        other = ("; " + say("events", self.options("document", "word", "count"))) * bool(counted)
        if is_count and counted and self.holds_whole_numbers(counted):
            other = f"; if {counted!r} holds those, use {self.options(count=counted)}"
        are_counts = any(map(self.numbers_of, {*self.names} - {*given}))
        if are_counts and not (other or is_count or self.is_turned):
            other = f"; or name properties, {self.call(metadata=given)}"
        if not (len(odd) > 1 or self.is_turned or name.lower() in NAMES["may count"]):
            return told + other
        if shown := told_of_thousands(values):
            return (told + other + shown) * bool(self.sep)
        if max(values, default=0) <= 1 or min(values) < 0:
            return told + other
        whole = dict.fromkeys((x for x in odd if x not in named), 0) if named else ""
        use = f"; if they are estimates of counts, use {self.call(f'.round({whole})')}"
        return told + (other + use if 2 * len(odd) < sum(map(bool, held.values())) else use + other)

    def kept_back(self, filled: str = ".fillna(0)", /, **options: Any) -> str:
        """Calls that read a table with marks of counts that are kept back; empty without marks."""
        marked = {x: {*map(_numbers.is_kept_back, self.values(x))} for x in self.names}
        blank = [x for x in marked if marked[x] == {True, False}]
        own = (self.call(x, **options) for x in (f".dropna(subset={blank})", filled))
        return say("kept back", self.written.get("na_values"), *own) * bool(blank and self.written)

    @cached_property
    def under_units(self) -> str:
        """Code without a first row of units or further names, which stand above numbers."""
        held = [self.values(name) for name in self.names]
        numbers = [[_numbers.number_of(str(x)) is not None for x in own] for own in held]
        above = {str(x[0]) for x, y in zip(held, numbers, strict=True) if y[1:] and all(y[1:])}
        above -= {"None", *NAMES["missing"], *filter(_numbers.is_dash, above)}
        if any(own[:1] == [True] for own in numbers) or not above:
            return ""
        code = ".iloc[1:].reset_index(drop=True).infer_objects()"
        return f"its first row holds no counts: without it, use {self.call(code)}"

    @cached_property
    def codes(self) -> list[str]:
        """Columns that are called alike but for a number, as codes: texts, or numbers as of a list.

        The numbers of a row then differ, none is 0, and blanks stand only to their right.
        """
        stems = {x: re.sub(r"[\W_]*\d+$", "", x) for x in self.names if self.kind(x) in PLAIN_KINDS}
        n_alike = Counter(stems.values())
        found = [x for x in stems if n_alike[stems[x]] > 1 and x not in self.marks_of_presence([x])]
        known = set(chain(*(self.values(x) for x in found))) - {None}
        rows = [*zip(*map(self.values, found), strict=True)] * known.isdisjoint({0, "0"})
        pairs = [(row[: (n := len({*row} - {None}))], row[n:]) for row in rows]
        are_first = all(None not in own and {*rest} <= {None} for own, rest in pairs)
        are_first &= any(rest for _, rest in pairs)
        are_texts = 2 * sum(_numbers.is_cell(str(x)) for x in known) <= len(known)
        return found * (are_texts or (are_first and "axes" not in self.given))

    @property
    def melted(self) -> str:
        """Code of a corpus with a document for each row, whose words are codes in columns."""
        code, rest = self.as_frame, [x for x in self.names if x and x not in self.codes]
        # Codes such as 250.00 and 011 are texts.
        is_read, code = code.startswith("pandas.read_csv("), re.sub(", dtype={.*?}", "", code)
        code = f"{code[:-1]}, dtype=str)" if is_read else f"{code}.convert_dtypes()"
        ids = self.own_name(rest)
        kept = [ids, *(x for x in rest if x != ids and x.lower() not in NAMES["count"])]
        kept, codes = ([self.keys.get(x, x) for x in own] for own in (kept, self.codes))
        word = "code" + "_" * ("code" in self.names)
        code += ".reset_index(names='document')" * (ids not in rest)
        code += f".melt(id_vars={kept}, value_vars={codes}, value_name={word!r})"
        return say("codes", code=code, ids=ids, word=word)

    def own_name(self, names: Sequence[str]) -> str:
        """The column among these that names the rows, or else the name for their numbers."""
        own = [x for x in names if self.are_labels(x) or counts_nothing(x) or is_headed(x, "units")]
        return next(filter(self.is_distinct, own), "document")

    def completion(self, names: Sequence[str] = (), metadata: Sequence[str] = ()) -> str:
        """Code that leaves out rows that count nothing, as notes, and has 0 for other blanks.

        Names are those of columns of counts, by default that of a long table, or all that may be.
        Of a single one, blanks are 0 unless the whole row is blank.
        """
        left_out = (self.given.get("ids"), *(self.given.get("metadata") or ()))
        others = [x for x in (self.given.get("count"),) if x] or {*self.names}.difference(left_out)
        held = {x: {*map(str, self.values(x))} - {"None"} for x in self.names if x in others}
        names = names or [x for x in held if all(map(_numbers.is_cell, held[x]))]
        own = [x for x in self.names if self.keys.get(x, x) is not None]
        texts = np.array([[*map(str, self.values(name))] for name in own], dtype=object)
        is_count, are_blank = np.isin(own, names), np.isin(texts, NAMES["missing"])
        are_notes = are_blank[is_count if len(names) > 1 else ...].all(axis=0)
        # pandas reads dashes as blanks.
        are_blank |= np.vectorize(_numbers.is_dash, otypes=[bool])(texts)
        n_known, told = (~are_blank).sum(axis=0), ".dropna(how='all')" * self.has_blank_rows
        most = n_known[are_notes].max(initial=0)
        if are_notes.any():
            told = f".reset_index(drop=True).drop(index={np.flatnonzero(are_notes).tolist()})"
            told = f".dropna(subset={[*names]}, how='all')" if self.sep else told
            told = f".dropna(thresh={most + 1})" if (n_known[~are_notes] > most).all() else told
        return told + self.filled(metadata) * bool(are_blank[is_count][:, ~are_notes].any())

    def filled(self, metadata: Sequence[str] = ()) -> str:
        """Code that writes 0 for blanks, but not in properties of the rows."""
        names, missing = metadata or self.given.get("metadata") or (), NAMES["missing"]
        kept = [x for x in names if not {*map(str, self.values(x))}.isdisjoint(missing)]
        code = f"rows.fillna(dict.fromkeys(rows.columns.drop({kept}), 0))"
        return f".pipe(lambda rows: {code})" if kept else ".fillna(0)"

    def complete(self, name: str) -> list[Any]:
        """The values of a column, none of which is missing or blank."""
        values, key = self.values(name), self.keys.get(name, name)
        if any(isinstance(x, Mapping) for x in values):
            own, told = named_within(self.given, lambda x: x in self.names and self.values(x))
            change = f"(pandas.json_normalize({self.as_frame}.to_dict('records'))"
            told = self.call(**own).replace(f"({self.as_frame}", change, 1) + told
            raise InvalidArgumentError(f"column {name!r} holds objects: use {told}")
        if not all(isinstance(x, Hashable) for x in values):
            raise InvalidTypeError(say("list column", name, self.call(f".explode({key!r})")))
        for row, value in enumerate(values):
            if value is None or not str(value).strip():
                told = f"leave such rows out, {self.call(f'.dropna(subset={[key]})')}"
                if are_merged(values):
                    code = f".pipe(lambda rows: rows.assign(**rows[{[name]}].ffill()))"
                    told = f"if cells were merged, use {self.call(code)}; if not, {told}"
                # pandas takes such names for missing ones.
                told = CALLS["na"] * (self.as_frame == "table" and "merged" not in told) + told
                raise InvalidArgumentError(f"{self.place(row)}: no {name} is given: {told}")
        return values

    def kind(self, name: str) -> Kind:
        """Kind of a column."""

    def values(self, name: str) -> list[Any]:
        """The values of a column; None if missing."""

    def counts(self, names: Sequence[str]) -> CountMatrix:
        """Columns of counts, checked; an error names the place."""

    def numbers(self, name: str) -> Any:
        """A column of numbers as an array of integers or floats; an error names the place."""

    def place(self, row: int) -> str:
        """Place of a row, for error messages."""

    def data_frame(self, names: Sequence[str]) -> DataFrame:
        """Columns as a data frame of pandas."""

    def is_distinct(self, *names: str) -> bool:
        """Whether no two rows have the same values in these columns."""
        return self.n_distinct(*names) == self.n_rows

    def n_distinct(self, *names: str) -> int:
        """Number of different rows of these columns."""
        return len({*map(str, zip(*map(self.values, names), strict=True))})

    def depends(self, name: str, other: str) -> bool:
        """Whether each value of another column stands beside one of these, twice on average."""
        return self.n_distinct(name, other) == self.n_distinct(other) <= self.n_rows / 2

    def are_codes(self, name: str, other: str) -> bool:
        """Whether large whole numbers recur, but not beside the same value of another column."""
        levels = {*self.numbers_of(name)}
        are_large = max(levels, default=0) > FAR_LARGER * len(levels) and 0 not in levels
        return are_large and not self.is_distinct(name) and self.is_distinct(name, other)

    def totals_among(self, names: Sequence[str]) -> list[str]:
        """The largest column that is the sum of two others or more side by side in every row."""
        held = [self.numbers_of(x) for x in names[:_FEW]]
        if {*map(len, held)} != {self.n_rows} or self.n_rows <= 2:
            return []
        sums = np.cumsum([np.zeros(self.n_rows), *held], axis=0)
        # Sums of one column and of zeros are no totals.
        runs = [x for x in combinations(range(len(sums)), 2) if sum(map(any, held[slice(*x)])) > 1]
        found = [x for x in held if any(np.array_equal(sums[j] - sums[i], x) for i, j in runs)]
        return [names[held.index(max(found, key=sum))]] if found else []

    def numbers_beside(self, known: Collection[str], ids: str | None = None) -> list[str]:
        """Columns of numbers that may be properties, as they stand among those that are `known`.

        They are outside the longest run of other columns, or next to one that is known, as codes.
        One property without names of rows may stand anywhere: only codes are found beside it. The
        first column may hold codes without any that is known.
        """
        left_out = (ids, self.given.get("ids"))
        names = [x for x in self.names if x not in left_out and x.lower() not in NAMES["row"]]
        quoted = [x for x in names if x in self.quoted and x not in known]
        known = [x for x in names if x in (*known, *quoted) and self.kind(x) in PLAIN_KINDS]
        first = [x for x in names[:1] if x not in known and self.are_far_larger(x, names)]
        if not known or self.given.get("layout") == "wide":
            is_named = self.row_names is not None or set(left_out) != {None}
            return first * (is_named and self.n_rows > 2 and self.given.get("layout") != "wide")
        runs = [[*own] for is_known, own in groupby(names, known.__contains__) if not is_known]
        words = max(runs, key=len, default=[])
        outer = [x for own in runs if 2 * len(own) <= len(words) for x in own]
        n_known = len(known) + (self.names[0] not in names)
        found = quoted + [x for x in outer if n_known > 1 or self._is_code(x, words, known)]
        for run, edge in ((words, names[:1]), (words[::-1], names[-1:])):
            if run[:1] != edge:
                found += takewhile(lambda x: self._is_code(x, words, known), run)
                found += [x for x in run[:1] if self._is_total(x, words)]
        found = [x for x in names if x in found and self.numbers_of(x)]
        more = self.numbers_beside({*known, *found}, ids) if {*found} - {*known} else []
        return [name for name in self.names if name in (*found, *more)]

    def are_far_larger(self, name: str, others: Sequence[str]) -> bool:
        """Whether the numbers of a column differ, and are far larger than all others, as codes."""
        least = min(self.numbers_of(name), default=0)
        rest = (self.numbers_of(x) for x in others[:_COLUMNS_LOOKED_AT] if x != name)
        return self.is_distinct(name) and least >= FAR_LARGER * max(chain([1], *rest))

    def _is_total(self, name: str, words: list[str]) -> bool:
        """Whether a column is in every row at least the sum of several others."""
        rest = [x for x in words if x != name]
        are_many = len(words) > _FEW_WORDS and self.n_rows > 2
        # Words may be many: some of them are looked at first.
        parts = ([*map(self.numbers_of, (name, *rest[:n]))] for n in (_COLUMNS_LOOKED_AT, None))
        full = (x if {*map(len, x)} == {self.n_rows} else ([0], [1]) for x in parts if are_many)
        return are_many and all(np.all(np.sum(x[1:], axis=0) <= x[0]) for x in full)

    def _is_code(self, name: str, words: Sequence[str], known: Collection[str]) -> bool:
        """Whether a column has blanks or numbers from 1, unlike words, or stands for levels."""
        held, rest = self.values(name), [x for x in words[:_COLUMNS_LOOKED_AT] if x != name]
        if None in held or not 1 < len(levels := Counter(map(str, held))) <= self.n_rows / 2:
            return None in held and len(rest) > 1 and not any(None in self.values(x) for x in rest)
        is_1_to_n = {*self.numbers_of(name)} == {*range(1, len(levels) + 1)}
        have_gaps = (0 in self.numbers_of(x) or None in self.values(x) for x in rest)
        if is_1_to_n and 2 * sum(have_gaps) > len(rest):
            return True
        pairs = ({*zip(map(str, held), map(str, self.values(x)), strict=True)} for x in known)
        return any(len(own) == len(levels) == len({*dict(own).values()}) for own in pairs)

    def names_words(self, name: str) -> bool:
        """Whether a column is headed as words are, or has reads of no gene."""
        held = {x.lower() for x in self.values(name) if isinstance(x, str)}
        return is_headed(name, "words in rows") or any(map(NO_WORD.fullmatch, held))

    def are_labels(self, name: str) -> bool:
        """Whether most values of a column are no numbers; what should be one is found when read."""
        texts = [value for value in self.values(name) if isinstance(value, str)]
        cells = [x for x in texts if _numbers.is_cell(x) or x.lstrip()[:1].isdigit()]
        are_few = 2 * len(cells) < len(texts) or not any(map(_numbers.is_like_a_number, texts))
        return are_few and self.kind(name) not in ("number", "other")

    def call_of_cells(self, name: str, ids: str | None = None) -> str:
        """Code of a corpus of a column with a count by word, or a list of other than words."""
        first: Any = next((x for x in self.values(name) if x is not None and len(x)), [])
        column = f"{self.as_frame}{self.index_code([ids])}[{name!r}]"
        column += ".dropna()" * any(x is None for x in self.values(name))
        if isinstance(first, Mapping):
            places = ".map(lambda row: {word: len(places) for word, places in row.items()})"
            column += places * any(isinstance(x, list) for x in first.values())
            return f"polyabayes.Corpus({column}.apply(pandas.Series).fillna(0))"
        if len(first) and all(_is_bag(list(x)) for x in self.values(name) if x is not None):
            return f"polyabayes.Corpus.from_gensim({self.as_frame}[{name!r}])"
        if isinstance(entry := next(iter(first), None), Mapping):
            code = f"pandas.json_normalize([*itertools.chain(*{self.as_frame}[{name!r}])])"
            code += ", text='text'" * ("text" in entry)
            return f"polyabayes.Corpus.from_table({code})"
        words = "row" if isinstance(entry, Hashable) else "itertools.chain(*row)"
        return f"polyabayes.Corpus({column}.map(lambda row: [*map(str, {words})]))"

    def marks_of_presence(self, names: Sequence[str]) -> dict[str, set[str]]:
        """The marks of what is there in each column of nothing but such marks."""
        marks: dict[str, set[str]] = {}
        for name in (name for name in names if self.kind(name) in PLAIN_KINDS):
            held = {x: str(x).strip().lower() for x in self.values(name) if x is not None}
            present = {*held.values()} - {*NAMES["absent"]}
            if len(present) < 2 and present <= {*NAMES["present"]}:
                marks[name] = {x for x in held if held[x] in present}
        return marks

    def presence(self, labels: Sequence[str]) -> str:
        """Code that counts what is there at all, if all columns but labels hold shares."""
        held = [*chain(*(self.numbers_of(name) for name in self.names if name not in labels))]
        if not min(held, default=1) == 0 < sum(x % 1 for x in held) or max(held) > 1:
            return ""
        is_turned = self.is_turned or is_headed(self.row_label, "words in rows")
        code = self.as_frame + self.index_code(labels)
        code += ".T" * (is_turned or any(map(self.names_words, labels)))
        return f"if shares above 0 say that something is there, use polyabayes.Corpus({code} > 0)"

    def numbers_of(self, name: str) -> list[float]:
        """The numbers of a column but missing ones; empty if it holds others, or categories."""
        held = [x for x in self.values(name) if str(x) not in NAMES["missing"]]
        texts = {x for x in held if isinstance(x, str)}
        # Texts mostly recur in many rows, so that each is read once; dashes are read as NaN.
        read: dict[str, Any] = {x: _numbers.read_number(x, self.written) for x in texts}
        may_count = self.kind(name) in ("number", "other") or all(isinstance(x, str) for x in held)
        if not may_count or None in read.values() or any(map(PADDED.match, texts)):
            return []
        try:
            found = [read[x] if isinstance(x, str) else float(x) for x in held]
        except (TypeError, ValueError, OverflowError):
            return []
        return [x for x in found if x == x]

    def count_among(self, names: Sequence[str], more: Sequence[str] = ()) -> str | None:
        """The column with a header of counts, or of `more`: of whole numbers, or else of some."""
        whole, known = [*filter(self.holds_whole_numbers, names)], (*NAMES["count"], *more)
        held = {x: [str(y) for y in self.values(x) if y is not None] for x in names}
        numbered = [x for x in names if {*map(_numbers.number_of, held[x])} != {None}]
        return headed(whole, known) or headed(numbered, known)

    def holds_whole_numbers(self, name: str) -> bool:
        """Whether a column holds whole numbers, and nothing else that is not missing."""
        return {number % 1 for number in self.numbers_of(name)} == {0}

    def refuse_other_kinds(self, name: str) -> None:
        """Refuse a named column of documents that holds neither texts nor tokens."""
        kind, values, column = self.kind(name), self.values(name), f"{self.as_frame}[{name!r}]"
        told = ""
        if any(isinstance(value, bytes) for value in values):
            told = f"bytes, not texts: decode it, as by {column}.str.decode('utf-8')"
        elif kind == "cells":
            code = self.call_of_cells(name, self.given.get("ids"))
            told = f"lists of other than words, or counts by word: use {code}"
        elif kind in ("number", "other"):
            content = "mixed" if any(isinstance(x, str) for x in values) else f"no texts, {kind}"
            told = CALLS[content].format(self.call(f".astype({ {name: 'string'} })", text=name))
        elif any(isinstance(value, str) and value.startswith(("['", '["')) for value in values):
            told = f"lists written as texts: make them lists, as by {column}.map(ast.literal_eval)"
        if told:
            raise InvalidTypeError(f"column {name!r} of {self.title} holds {told}")
        if header := [k for k, value in enumerate(values[:3]) if is_further_header([value])]:
            told = f"{self.place(header[-1])} is a further header of a survey: use "
            raise InvalidArgumentError(told + self.call(f".iloc[{header[-1] + 1}:]", text=name))


def named_within(given: Mapping[str, Any], values: Any) -> tuple[dict[str, Any], str]:
    """Options for the columns that `json_normalize` makes, where `given` ones name objects.

    `values` are those of a name. Texts come before numbers; the text names several in one object.
    """
    own, told = dict(given), ""
    for option, name in given.items():
        held = values(name) if isinstance(name, str) else ()
        pairs = chain(*(x.items() for x in held or () if isinstance(x, Mapping)))
        if found := {f"{name}.{key}": x for key, x in pairs if not isinstance(x, Mapping)}:
            own[option] = max(found, key=lambda x: isinstance(found[x], str))
            told += f"; {name!r} holds {', '.join(map(repr, found))}" * (len(found) > 1)
        elif option == "metadata" and not isinstance(name, str):
            own[option] = [named_within({"": x}, values)[0][""] for x in name or ()]
    return own, told


def are_merged(values: list[Any]) -> bool:
    """Whether labels stand above as many blanks, each once, as in merged cells of a spreadsheet.

    Totals by name may stand between.
    """
    held = [x for x in values if x is not None and not TOTAL.fullmatch(str(x))]
    is_once = 1 < len({*map(str, held)}) == len(held) <= values.count(None)
    return is_once and values[0] is not None and all(isinstance(x, str) for x in held)


def is_further_header(fields: Iterable[Any]) -> bool:
    """Whether fields are those of a further header of a survey export, but some that are empty."""
    texts = [text for text in map(str, fields) if text]
    return bool(texts) and all(map(_SECOND_HEADER.fullmatch, texts))


def divider(levels: list[Any]) -> str:
    """What divides several choices in one answer; empty if nothing does.

    Some choice occurs in several answers; beside commas and line breaks, as sentences have them,
    there are fewer choices than answers, and beside blanks, each is a number, or an answer, too.
    """
    texts = [level.strip(" ,;|") for level in levels if isinstance(level, str)]
    for sep in (*";|", "\r\n", *"\n, "):
        choices = Counter(chain(*({x.strip() for x in text.split(sep)} for text in texts)))
        is_shared = sep in ";|" and max(choices.values(), default=0) > 1
        are_answers = all(x.lstrip("-").isdigit() for x in choices) or choices.keys() <= {*texts}
        is_shared |= are_answers if sep == " " else len(choices) < len(texts)
        if is_shared and any(sep in text for text in texts):
            return sep + " " * all(f"{sep} " in text for text in texts if sep in text)
    return ""


def _is_bag(cell: list[Any]) -> bool:
    """Whether a list holds pairs of numbers, the first of which ascend, as gensim's bags do."""
    are_pairs = all(isinstance(pair, list | tuple | np.ndarray) and len(pair) == 2 for pair in cell)
    are_numbers = are_pairs and all(isinstance(x, int | float | np.number) for x in chain(*cell))
    return are_numbers and bool(np.all(np.diff([pair[0] for pair in cell]) > 0))


def kind_of_strings(values: Sequence[str]) -> Kind:
    """Kind of non-empty strings: numbers, names, or texts of several words."""
    if all(_numbers.number_of(x) is not None and not PADDED.match(x) for x in {*values}):
        return "number"
    shown = [" " in value.strip() for value in values[:_ROWS_LOOKED_AT]]
    return "text" if 2 * sum(shown) > len(shown) else "name"
