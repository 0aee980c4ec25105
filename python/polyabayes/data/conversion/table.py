"""A table of named columns, and code that reads it, for messages."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from polyabayes.data.conversion.numbers import (
    is_dash,
    is_like_a_number,
    options_of_numbers,
    read_number,
)
from polyabayes.data.counts import CountMatrix
from polyabayes.data.names import NAMES
from polyabayes.exceptions import InvalidArgumentError, argument

if TYPE_CHECKING:
    import pandas as pd

# Kinds: numbers, labels, texts of several words, lists of tokens, and others such as times.
Kind = Literal["number", "name", "text", "tokens", "other"]
_NOT_GIVEN: tuple[Any, ...] = (None, (), [], "auto")
PLAIN_KINDS = ("number", "name", "text")


class Table(ABC):
    """A table of named columns.

    `row_names` are names of rows outside the columns, such as the index of a data frame.
    `has_headers` says whether columns have names, not just numbers. Error messages call the table
    by its title. `taker` is the function that takes the options of tables, if it is not the one
    that the user called; `code` is that of a data frame with its content, and `maker` takes one,
    with the options `given`.
    With `is_turned`, its rows are words. `sep` divides the fields of a file.
    """

    names: list[str]
    n_rows: int
    row_names: list[str] | None = None
    has_headers: bool = True
    title: str = "the table"
    taker: str = ""
    code: str = "table"
    maker: str = "Corpus.from_table"
    sep: str = ""
    is_turned: bool = False
    given: Mapping[str, Any] = {}

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
    def written(self) -> dict[str, str]:
        """Options of pandas that read the numbers of the table as they are written."""
        texts: set[str] = set()
        for name in self.names:
            held: Any = set(self.values(name)) - {None} if self.kind(name) in PLAIN_KINDS else {0}
            if all(isinstance(x, str) and (is_dash(x) or is_like_a_number(x)) for x in held):
                texts |= held
        return options_of_numbers(texts, self.sep)

    def call(self, change: str = "", **options: Any) -> str:
        """Code that reads the table, changed, with the options that the caller gave, and others."""
        told = {name: x for name, x in {**self.given, **options}.items() if x not in _NOT_GIVEN}
        code = self.as_frame + change
        if self.is_turned:
            others = f".drop(columns={list(told['metadata'])})" if "metadata" in told else ""
            return f"polyabayes.Corpus({code}{others}.set_index({told.get('ids')!r}).T)"
        named = [f"{name}={value!r}" for name, value in told.items()]
        return f"polyabayes.{self.maker}({', '.join([code, *named])})"

    def remedy(self, name: str, text: str | None) -> str:
        """What reads a table with this text in the place of a count, to end a message."""
        number = read_number((text or "-").removesuffix("%"), self.written)
        kept, told = f"`{name}` >= 0", ""
        if text in NAMES["missing"] or (number is not None and number != number):
            filled = {name: 0} if "axes" in self.given else 0
            told = f"where nothing was counted, {self.call(f'.fillna({filled})')}"
            numbers = [self.values(x) for x in self.names if self.kind(x) == "number"]
            # Notes below a table count nothing at all.
            rows = zip(*numbers, strict=True)
            if len(numbers) > 1 and all({*row} == {None} or None not in row for row in rows):
                told = f"without rows that count nothing, {self.call(f'.dropna(subset={[name]})')}"
        elif number is not None and number < 0:
            told = f"without such rows, {self.call(f'.query({kept!r})')}"
        elif number is not None and (number % 1 or str(text).endswith("%")):
            told = "weights and shares have no likelihood: bring the counts, or name a property"
            told += f" by {argument('metadata', [name])}"
        elif (self.written and number is not None) or str(text).lower() in NAMES["truth"]:
            told = f"of numbers that are written so, {self.call()}"
            if self.written.get("thousands") == "." and "decimal" not in self.written:
                told += "; of floats, " + self.call().replace(", thousands='.'", "")
        return f"; {told}" * bool(told)

    def complete(self, name: str) -> list[Any]:
        """The values of a column, none of which is missing or blank."""
        values = self.values(name)
        for row, value in enumerate(values):
            if value is None or not str(value).strip():
                told = f"leave such rows out, {self.call(f'.dropna(subset={[name]})')}"
                raise InvalidArgumentError(f"{self.place(row)}: no {name} is given: {told}")
        return values

    @abstractmethod
    def kind(self, name: str) -> Kind:
        """Kind of a column."""

    @abstractmethod
    def values(self, name: str) -> list[Any]:
        """The values of a column; None if missing."""

    @abstractmethod
    def counts(self, names: Sequence[str]) -> CountMatrix:
        """Columns of counts, checked; an error names the place."""

    @abstractmethod
    def numbers(self, name: str) -> Any:
        """A column of numbers as an array of integers or floats; an error names the place."""

    @abstractmethod
    def place(self, row: int) -> str:
        """Place of a row, for error messages."""

    @abstractmethod
    def data_frame(self, names: Sequence[str]) -> pd.DataFrame:
        """Columns as a data frame of pandas."""

    def are_distinct(self, names: Sequence[str]) -> bool:
        """Whether no two rows have the same values in these columns."""
        rows = zip(*(self.values(name) for name in names), strict=True)
        return len(set(map(str, rows))) == self.n_rows
