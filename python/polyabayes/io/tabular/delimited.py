"""Delimited files such as CSV and TSV, parsed by Python's csv module."""

import csv
import re
import sys
from array import array
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import accumulate, chain, count, islice
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from polyabayes._support import checks
from polyabayes._support.files import check_encoding, text_lines
from polyabayes._support.output.frames import DataFrame, import_pandas
from polyabayes._support.output.tables import some
from polyabayes._support.warnings import quiet
from polyabayes.data.conversion import documents, numbers as _numbers, remedies, roles
from polyabayes.data.conversion.table import PADDED, Kind, Table, is_further_header, kind_of_strings
from polyabayes.data.counts import CountMatrix, checked_labels
from polyabayes.data.names import CALLS, NAMES, say, warn
from polyabayes.exceptions import DataWarning, FileFormatError, PolyabayesError, argument
from polyabayes.io.integers import is_number, parsed_count, shown

# A line, or the first of several where a quoted field holds newlines, and its fields.
Record: TypeAlias = "tuple[int, list[str]]"

# Lines of the head of a file, rows of counts that are dense at once, lines of notes, and letters.
LINES_LOOKED_AT, _BLOCK_ROWS, _MOST_NOTES, _LONGEST_FIELD = 20, 512, 100, 1 << 30
_SEPARATORS, _NO_SEPARATORS = ",\t;|", '0123456789+-.eE\r\n"'
# The first line of a spreadsheet's file that names its separator.
_SAID = re.compile(r"\"?sep=(.)\"?", re.IGNORECASE)


@dataclass(frozen=True)
class Dialect:
    """How a file is divided into fields.

    `sep` None means that of :func:`separator_of`; quotes enclose fields that hold it.
    `skiprows` lines come before the header. `columns` are names for a file without a header. Fields
    that are among `missing` are read as empty. With `is_padded`, blanks follow the separators. All
    first fields of columns that are `quoted` have quotes. The sign `escape` stands before quotes
    within quotes, which else are doubled.
    """

    sep: str | None = None
    encoding: str = "utf-8"
    skiprows: int = 0
    columns: Sequence[str] | None = None
    missing: Collection[str] = ()
    is_padded: bool = False
    quoted: Collection[int] = ()
    escape: str | None = None

    def __post_init__(self) -> None:
        if self.sep == r"\t":  # The command line passes escapes such as \t unchanged.
            object.__setattr__(self, "sep", "\t")
        sep = self.sep or ","
        if not (isinstance(sep, str) and len(sep) == 1 and sep.isascii()) or sep in _NO_SEPARATORS:
            raise checks.wrong("sep", sep, say("sep", sep))
        checks.whole_number("skiprows", self.skiprows, least=0, most=sys.maxsize)
        check_encoding(self.encoding)


class DelimitedTable(Table):
    """The table of a file: of each field the number of its text, since most texts recur."""

    def __init__(self, path: Path, dialect: Dialect, most: int | None = None, /, **given: Any):
        self.path, self.names, self.given = path, [], given
        self.keys, self.is_turned = {"": "Unnamed: 0"}, given.get("transpose", False)
        self.may_lack_header, self._are_longer, self._guard = dialect.columns is None, False, ""
        try:
            self._read(path, dialect, most)
        except FileFormatError:
            # R's write.table writes quotes within quotes so.
            if not any('\\"' in line for line in text_lines(path, dialect.encoding)):
                raise
            self._read(path, replace(dialect, escape="\\"), most)

    def _read(self, path: Path, dialect: Dialect, most: int | None) -> None:
        """Read the file; lines with other numbers of fields than the header are refused."""
        found = list[Dialect]()
        first = islice(records_of(path, dialect, found), most)
        self.names, records = self._header(first, dialect, found)
        # R quotes factors, but no counts.
        quoted = {self.names[k] for k in self._dialect.quoted if k < len(self.names)}
        self.quoted = quoted if 2 * len(quoted) < len(self.names) else ()
        known = defaultdict[str, int](count().__next__)
        self.lines, codes, n_names = array("q"), array("i"), len(self.names)
        code = f"{text_code(path, dialect.encoding)}.splitlines(), delimiter={self.sep!r}"
        self.as_lists = f"polyabayes.Corpus.from_documents(csv.reader({code}))"
        odd = dict[int, int]()
        for line, given in records:
            fields = given if len(given) == n_names else _filled(given, n_names)
            if len(fields) != n_names:
                odd[line] = len(fields)
                continue
            self._are_longer |= len(given) > n_names
            self.lines.append(line)
            codes.extend(map(known.__getitem__, fields))
        self.n_rows = len(self.lines)
        self._codes = np.array(codes, np.int32).reshape(self.n_rows, n_names)
        # R writes missing names without quotes among those with quotes.
        lines = text_lines(path, dialect.encoding) if self._dialect.quoted and "NA" in known else ()
        split = ((n, re.sub('"[^"]*"', '"', own).strip()) for n, own in enumerate(lines, 1))
        bare = {n: own.split(self.sep) for n, own in split if "NA" in own}
        for row, k in np.argwhere(self._codes == known["NA"]) if bare else ():
            if k in self._dialect.quoted and bare.get(self.lines[row], [])[k : k + 1] == ["NA"]:
                self._codes[row, k] = known[""]
        # Excel takes what stands in ="0" as it is.
        texts = [x[2:-1] if x[:2] + x[-1:] == '=""' else x for x in known]
        self._texts = np.array([*texts, None], dtype=object)
        self._guard = CALLS["guarded"] * (texts != [*known])
        self._column = {name: column for column, name in enumerate(self.names)}
        if odd:
            line, n_fields = next(iter(odd.items()))
            more, told = "more" if n_fields > n_names else "less", ""
            # Notes and totals stand above all other lines, or below.
            are_outside = not any(self.lines[0] < x < self.lines[-1] for x in odd if self.n_rows)
            are_counts = any(map(is_number, known)) and not all(map(is_number, self.names))
            if self.n_rows and are_outside and are_counts and len(odd) <= _MOST_NOTES:
                self._skipped += [x - 1 for x in odd]
                change = self.completion() if "text" not in self.given else ""
                where = f"line{'s' * (len(odd) > 1)} {some([*odd])}"
                told = f"; if notes or totals, without {where}, {self.call(change)}"
            elif self.may_lack_header:
                told = f"; if each line is a list of words, {self.as_lists}"
                told += say("ragged", self.call()) * (max(odd.values()) < n_names)
            raise _refused(path, line, say("fields", n_fields, more, n_names, told))

    @property
    def as_frame(self) -> str:
        """Code of a data frame with the content of the file."""
        given, named = self._dialect, {*map(self.given.get, ("ids", "document", "word"))}
        named |= {*NAMES["document"], *NAMES["word"]}
        names = [self.keys.get(x, x) for x in self.names if self._is_rewritten(x, named)]
        held = {x: {*self.values(x)} for x in self.names}
        marked = [x for x in held if not held[x].isdisjoint(NAMES["missing"])]
        # NA is a name among names of rows, if nothing is missing.
        are_names = all(self.are_labels(x) and self.is_distinct(x) for x in marked)
        are_names = are_names and not any(None in values for values in held.values())
        options: dict[str, Any] = {"sep": None if self.sep == "," else self.sep}
        lines = text_lines(self.path, given.encoding) if self._skipped else ()
        reader = csv.reader(lines, delimiter=self.sep, escapechar=given.escape)
        # pandas counts records, of several lines where quoted fields hold newlines.
        starts = [0, *(reader.line_num for _ in reader)]
        skipped = sorted({*(np.searchsorted(starts, self._skipped, "right") - 1).tolist()})
        is_head = len(self._skipped) == given.skiprows
        options |= {"skiprows": (len(skipped) if is_head else skipped) or None}
        options |= {"encoding": None if given.encoding == "utf-8" else given.encoding}
        options |= {"names": given.columns, "dtype": dict.fromkeys(names, "str") or None}
        options |= {"skipinitialspace": given.is_padded or None, "escapechar": given.escape}
        # pandas takes first fields for names where fields at the ends of lines have none.
        options |= {"index_col": False if self._are_longer and "" not in self.names else None}
        options |= {"keep_default_na": False if marked and are_names else None, **self.written}
        # An answer may be None.
        if not are_names and any("None" in held[x] and self.are_labels(x) for x in marked):
            others = set().union(*held.values()).intersection(NAMES["missing"]) - {"None", ""}
            options |= {"keep_default_na": False, "na_values": ["", *sorted(others)]}
        told = [f", {name}={value!r}" for name, value in options.items() if value is not None]
        return f"pandas.read_csv({str(self.path)!r}{''.join(told)}){self._guard}"

    @property
    def has_blank_rows(self) -> bool:  # type: ignore[override]
        """Whether some line holds separators only, which pandas reads as a row."""
        lines = text_lines(self.path, self._dialect.encoding) if self.sep.strip() else ()
        return any(line.strip() and not line.strip(f'{self.sep}" \r\n') for line in lines)

    def _is_rewritten(self, name: str, named: Collection[str | None]) -> bool:
        """Whether pandas writes numbers otherwise: 01, and of columns that are `named`, 2.50."""
        values = [None if x in NAMES["missing"] else x for x in self.values(name)]
        texts = [x for x in values if x is not None]
        is_name = name in named or name.lower() in named or any(map(PADDED.match, texts))
        if not is_name or any(_numbers.number_of(x) is None for x in texts):
            return False
        pairs = zip(_array_of(values).tolist(), values, strict=True)
        return any(str(number) != x for number, x in pairs if x is not None)

    def kind(self, name: str) -> Kind:
        """Kind of the non-empty fields of a column."""
        texts = self._texts[np.unique(self._codes[:, self._column[name]])]
        return kind_of_strings([text for text in texts if text])

    def values(self, name: str) -> list[Any]:
        """The fields of a column as text; None if empty."""
        return [text or None for text in self._texts[self._codes[:, self._column[name]]]]

    def counts(self, names: Sequence[str]) -> CountMatrix:
        """Columns of counts; an error names the line and the column."""
        codes = self._codes[:, [self._column[name] for name in names]]
        count_of = np.zeros(len(self._texts), np.int64)
        for code in np.flatnonzero(np.bincount(codes.ravel())):
            text = self._texts[code].strip()
            count_of[code], mistake = parsed_count(text) if text else (0, say("no count"))
            if not mistake and text.endswith(".000") and self.written.get("thousands") == ".":
                mistake = f"the count {text!r} may be in thousands"
            if mistake:
                row, column = np.argwhere(codes == code)[0]
                reason = f"column {names[column]!r}: {mistake}{self.remedy(names[column], text)}"
                raise _refused(self.path, self.lines[row], reason)
        starts = range(0, self.n_rows, _BLOCK_ROWS)
        parts = [sparse.csr_matrix(count_of[codes[k : k + _BLOCK_ROWS]]) for k in starts]
        return sparse.vstack(parts, format="csr")

    def numbers(self, name: str) -> Any:
        """A column of numbers: integers if all are written as such, else floats."""
        texts = self.values(name)
        for row, text in enumerate(texts):
            value = None if text is None else _numbers.number_of(text)
            is_other = text and "." in text and _numbers.read_number(text, self.written) != value
            if value is None or value != value or is_other:
                held = "no value" if text is None else repr(shown(text))
                told = f"{self.path}: column {name!r} holds {held} at {self.place(row)}, "
                raise FileFormatError(f"{told}not a number{self.remedy(name, text)}")
        return _array_of(texts)

    def place(self, row: int) -> str:
        """The line where a row begins."""
        return f"line {self.lines[row]}"

    def data_frame(self, names: Sequence[str]) -> DataFrame:
        """Columns as a DataFrame: numbers if all present values are, else text."""
        columns = {name: self.values(name) for name in names}
        # R writes NA for a missing number.
        held = {x: [None if y == "NA" else y for y in own] for x, own in columns.items()}
        kinds = {x: kind_of_strings([y for y in own if y is not None]) for x, own in held.items()}
        numbers = {x: _array_of(own) for x, own in held.items() if kinds[x] == "number"}
        return import_pandas().DataFrame(columns | numbers)

    def _header(
        self, records: Iterator[Record], dialect: Dialect, found: list[Dialect]
    ) -> tuple[list[str], Iterator[Record]]:
        """Names of the columns, and the other records; the first record adds to `found`."""

        def then(**other: Any) -> str:
            return next_refusal(DelimitedTable(self.path, replace(dialect, **other), **self.given))

        line, fields = next(records, (0, []))
        if not fields:
            raise FileFormatError(f"{self.path} cannot be read: it holds no header")
        self._dialect, self.sep = found[0], found[0].sep or ","
        self._skipped = [*range(dialect.skiprows)]
        names = [name.strip() for name in _filled(fields, 0)]
        if dialect.columns is not None:
            records = chain([(line, fields)], records)
            names = list(checked_labels(dialect.columns, "columns"))
        elif names.count("") > 1:
            start, below = next(records, (line, []))
            above: Iterator[str] = accumulate(fields, lambda before, own: own or before)
            columns = [" ".join(pair).strip() for pair in zip(above, below, strict=False)]
            told = f"{argument('skiprows', start)}, {argument('columns', columns)}"
            told += then(skiprows=start, columns=columns)
            raise _refused(self.path, line, f"two lines of header: use {told}")
        if twice := [name for name, n in Counter(names).items() if n > 1]:
            told = f"two columns are called {twice[0]!r}; rename one, as pandas does: "
            told += self.call(ids=self.given.get("ids") or (names[0] if self.is_turned else None))
            if _numbers.number_of(twice[0]) is not None:
                own = remedies.columns_of(len(names), [*map(_numbers.number_of, names)].count(None))
                told = say("head", argument("columns", own), argument("transpose", True))
            raise _refused(self.path, line, told)
        first = list(islice(records, LINES_LOOKED_AT))
        second = [n for n, (_, held) in enumerate(first[:2], 1) if is_further_header(held)]
        if second and dialect.columns is None and len(names) > 1:
            last = first[second[0] - 1][0]
            warn(say("headers", self.path, line + 1, last))
            self._skipped += range(first[0][0] - 1, last)
            first = first[second[0] :]
        sizes = [len(_filled(fields, len(names))) for _, fields in first]
        plain = [n for n, (_, held) in zip(sizes, first, strict=True) if held[0][:1] != "#"]
        n_fields = max(plain, key=plain.count, default=0)
        is_title = " " in names[0].strip() or names[0].startswith("#") or len(fields) > 1
        is_title = is_title if len(names) == 1 else len(fields) > len(names) + 1
        # Reports have lines of a name and a value above.
        notes = sizes.count(2) * (len(names) == 2 and sizes == sorted(sizes))
        below = [x for _, own in first[notes:][:1] for x in own if not re.match(r"(19|20)\d\d$", x)]
        if notes and first[notes + 1 :] and not any(map(is_number, below)):
            n_fields, is_title = sizes[-1], any(map(is_number, first[-1][1]))
        if is_title and n_fields > len(names):
            start = first[sizes.index(n_fields)][0] - 1
            told = argument("skiprows", start) + then(skiprows=start)
            raise _refused(self.path, line, say("above", shown(names[0]), n_fields, told))
        if len(names) == n_fields == 1:
            # Such a table would be read as one column of texts.
            fields = first[0][1][0].split()
            if len(fields) == len(names[0].split()) > 1 and all(map(is_number, fields[1:])):
                told = say("blanks between", len(fields), argument("sep", " "))
                raise _refused(self.path, line, told)
        has_more = {len(x) for _, x in first} == {len(names) + 1} == {max(sizes, default=0)}
        is_first = names[0].lower() in NAMES["document"] + NAMES["text"] * (not dialect.sep)
        # Texts may hold separators, but no table divided by blanks has texts outside quotes.
        if has_more and dialect.columns is None and not (is_first and self.sep != " "):
            if len({held[0] for _, held in first}) < len(first):
                known = [argument("columns", x) for x in ([*names, "last"], ["", *names])]
                told = say("short header", *known, argument("skiprows", line))
                raise _refused(self.path, line, told)
            # R does not name the column of the row names, and pandas makes it the index.
            names[:0], self.keys = [""], {"": None}
        return names, chain(first, records)


def text_code(path: Path, encoding: str | None = None) -> str:
    """Code of the text of a file, plain or gzipped."""
    told = encoding_code(encoding)
    code = f"gzip.open({str(path)!r}, 'rt'{told}).read()"
    return code if path.suffix == ".gz" else f"pathlib.Path({str(path)!r}).read_text({told[2:]})"


def encoding_code(encoding: str | None) -> str:
    """Code of the encoding as a further argument; empty for the default."""
    return "" if encoding in (None, "utf-8") else f", encoding={encoding!r}"


def _filled(fields: list[str], n_names: int) -> list[str]:
    """Fields without empty ones beyond the names at the end of a line."""
    n_fields = len(fields)
    while n_fields > max(n_names, 1) and not fields[n_fields - 1].strip():
        n_fields -= 1
    return fields[:n_fields]


def next_refusal(table: Table) -> str:
    """What stands in the way of counts of a table, to end a message; empty if nothing."""
    try:
        with quiet(DataWarning):
            documents.source_of_table(table, roles.NamedColumns.taken_from(dict(table.given)))
    except PolyabayesError as error:
        return f"; then {error.args[0]}"
    return ""


def records_of(path: Path, dialect: Dialect, into: list[Dialect] | None = None) -> Iterator[Record]:
    """The records of a file, without blank lines; the one reader of delimited text.

    The dialect, with what the header shows of it, is added to `into`.
    """
    lines, sep, header = text_lines(path, dialect.encoding), dialect.sep, ""
    n_skipped = sum(1 for _ in islice(lines, dialect.skiprows)) - 1
    for header in lines:
        n_skipped += 1
        # Spreadsheets write the separator into a first line.
        if said := _SAID.fullmatch(header.strip("\r\n")):
            sep = sep or said[1]
        elif header.strip():
            break
    head = [header, *islice(lines, LINES_LOOKED_AT)]
    own = "\t" if ".tsv" in path.name.lower() and "\t" in header else None
    sep = sep or own or separator_of(head) or ","
    sep = sep if sep in header or dialect.columns is None else " "
    is_padded = sep == " " or f"{sep} " in header
    if into is not None:
        rows = (re.sub('"[^"]*"', '"', line).split(sep) for line in head[1:] if line.strip())
        first = ({x[:1] for x in own if x.strip() != "NA"} for own in zip(*rows, strict=False))
        quoted = [k for k, own in enumerate(first) if own == {'"'}]
        into.append(replace(dialect, sep=sep, is_padded=is_padded, quoted=quoted))
    # A limit of the whole process: the parser's default is too short for texts of books.
    csv.field_size_limit(max(csv.field_size_limit(), _LONGEST_FIELD))
    given: dict[str, Any] = {"escapechar": dialect.escape, "skipinitialspace": is_padded}
    reader = csv.reader(chain(head, lines), delimiter=sep, strict=True, **given)
    line = n_skipped + 1
    try:
        for fields in reader:
            if any(map(str.strip, fields)):
                yield line, ["" if text in dialect.missing else text for text in fields]
            line = n_skipped + reader.line_num + 1
    except csv.Error as error:
        unended = "unexpected end" in str(error)
        reason = "a quoted field does not end" if unended else f"a quote in a field: {error}"
        may_be_blanks = '" "' in header and sep != " "
        reason += f"; if blanks divide fields, use {argument('sep', ' ')}" * may_be_blanks
        given = {"skiprows": dialect.skiprows, "names": dialect.columns, "keep_default_na": False}
        told = "".join(f", {x}={held!r}" for x, held in given.items() if held or held is False)
        told = say("quotes", str(path), sep, told + encoding_code(dialect.encoding))
        raise _refused(path, line, reason + told) from error


def _refused(path: Path, line: int, reason: str) -> FileFormatError:
    return FileFormatError(f"{path}, line {line}: {reason}")


def _array_of(texts: list[str | None]) -> NDArray[Any]:
    """Numbers of texts: integers if all are written as such, else floats, NaN if missing."""
    for kind in (np.int64, np.uint64):
        with suppress(ValueError, TypeError, OverflowError):
            return np.array([int(text) for text in texts], dtype=kind)  # type: ignore[arg-type]
    return np.array([np.nan if x is None else _numbers.number_of(x) for x in texts], dtype=float)


def separator_of(lines: list[str]) -> str | None:
    """The separator of a header outside quotes; None if there is none.

    It is the one that most of the other lines have as often, since names, as those of taxa, may
    have others, and else the most frequent. Below a title, it is that of a header of quoted fields
    and of the line behind. If the header has none, it is one of the other lines,
    equally often in each: before numbers only, or twice and more below a title. Below a comment it
    is in each. Notes without one may stand above or below more than half of the others. The header
    of a column of texts stands for none, since texts hold any character.
    """
    plain = ["".join(line.split('"')[::2]) for line in lines]
    held = {sep: [line.count(sep) for line in plain] for sep in _SEPARATORS}
    for sep, n in held.items():
        header = re.compile(rf'"[^"]*"({re.escape(sep)}"[^"]*")+\s*').fullmatch
        if any(header(line) and n[k : k + 1] == n[k + 1 : k + 2] for k, line in enumerate(lines)):
            return sep
    # R names one column less.
    n_alike = {sep: n.count(n[0]) + n.count(n[0] + 1) for sep, n in held.items()}
    sep = max(_SEPARATORS, key=lambda sep: (held[sep][0] > 0, n_alike[sep], held[sep][0]))
    if sep in plain[0] and not plain[0].startswith("# "):
        return sep
    if lines[0].strip().strip('"').lower() in NAMES["text"]:
        return None
    others = [line for line in plain[1:] if line.strip() and not line.startswith("#")]
    is_title, is_comment = " " in plain[0].strip(), plain[0].startswith("#")
    for sep in _SEPARATORS:
        places = [k for k, line in enumerate(others) if sep in line] or [0]
        rows = others[places[0] : places[-1] + 1]
        rows = rows if 2 * len(rows) > len(others) and len(rows) > 1 else others
        n_found = {line.count(sep) for line in rows} or {0}
        # A title stands above a header.
        fields = {text.strip() for line in rows[is_title:] for text in line.split(sep)[1:]} - {""}
        are_numbers = bool(fields) and all(map(_numbers.is_like_a_number, fields))
        is_told = are_numbers or (is_title and min(n_found) > 1)
        if min(n_found) and (is_comment or (is_told and len(n_found) == 1)):
            return sep
    return None
