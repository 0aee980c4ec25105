"""What a file is, by its name and its first lines, and the call that reads it."""

from __future__ import annotations

import re
from pathlib import Path

from polyabayes._support.files import BOMS_UTF16, line_blocks
from polyabayes.data.conversion.tables import columns_of, named_rows, number_of
from polyabayes.exceptions import FileFormatError, InvalidArgumentError, argument
from polyabayes.io.integers import is_number
from polyabayes.io.tabular.delimited import (
    LINES_LOOKED_AT,
    DelimitedTable,
    Dialect,
    next_refusal,
    separator_of,
)

_BYTES_LOOKED_AT = 1 << 16
# Lines before the counts of a UCI bag of words.
_N_SIZES = 3
_FRAME = "polyabayes.{{taker}}(pandas.{}({{path}})) takes its table"
_PACKED = f"not packed by gzip: unpack it first; of a table, {_FRAME.format('read_csv')}"
_PICKLE = (
    "a pickle, which may run code: if you trust it, give polyabayes.log_likelihood the model of "
    "scikit-learn, joblib.load({path}), or that of gensim, gensim.models.LdaModel.load({path})"
)
# Endings of tables by the function of pandas that reads them.
_OF_PANDAS = {"excel": ".xlsx .xls .ods", "json": ".json", "spss": ".sav", "stata": ".dta"}
_OF_PANDAS |= {"sas": ".sas7bdat .xpt", "feather": ".feather .arrow"}
# Kinds of files by their endings, and the call that reads each.
_OTHER_DOORS = {
    ".rda .rds .rdata": "a file of R: polyabayes.interop.from_stm({path}) reads models of stm; "
    "save counts by Matrix::writeMM(counts, 'x.mtx')",
    ".pkl .pickle .joblib .model": _PICKLE,
    ".safetensors": "a model: polyabayes.load({path}) reads it",
    ".npy": "an array: polyabayes.Corpus(numpy.load({path})) takes its counts",
    ".biom": "a table of BIOM: polyabayes.Corpus(biom.load_table({path}).to_dataframe().T)",
    ".h5mu": "a file of MuData: polyabayes.Corpus(mudata.read_h5mu({path})['rna']) takes cells",
    ".pdf .docx .doc .html": "no plain text: convert its text to a .txt file first",
    ".zip .bz2 .xz .zst .tar .tgz .7z": _PACKED,
    **{x: f"a table: {_FRAME.format(f'read_{name}')}" for name, x in _OF_PANDAS.items()},
}
_PAIRS = r"( \d+:\d+(\.0*)?)"
_STATE = "polyabayes.interop.from_mallet('state.gz') reads the state of the same run"
_KEYS, _TOPICS = "the keys of topics of MALLET", "the topics of documents of MALLET"
# Files whose first lines all match a pattern: what they are, and the option or the call that reads
# them.
_LINES = {
    rf"(\d+){_PAIRS}*": ("LDA-C", argument("format", "ldac")),
    rf"\S+( qid:\d+)?{_PAIRS}+( ?#.*)?": ("svmlight", argument("format", "svmlight")),
    r"\s*\{.*\}\s*": ("JSON lines", argument("format", "jsonl")),
    r"\d+\t[\d.eE-]+\t(\S+ ?){2,}": (_KEYS, _STATE),
    r"\d+\t\S+(\t[\d.eE-]+){2,}\s*": (_TOPICS, _STATE),
}
_FIRST_LINE = {
    r"#doc .*proportion.*": (_TOPICS, _STATE),
    r"#doc source pos.*": (
        "the state of MALLET",
        "polyabayes.interop.from_mallet({path}) reads it",
    ),
    r"\s*\[\s*(\{.*)?": ("a JSON array", _FRAME.format("read_json")),
}
# First bytes of files that are not text.
_HEADS = {
    b"PAR1": ("Parquet", argument("format", "parquet")),
    b"\x89HDF": ("HDF5", f"{argument('format', 'h5ad')}, or {argument('format', '10x')}"),
    b"PK": ("an archive of zip", f"{argument('format', 'npz')}, if NumPy or SciPy wrote it"),
    b"\x93NUMPY": ("an array", "polyabayes.Corpus(numpy.load({path})) takes its counts"),
    b"\x80": ("a pickle", _PICKLE),
    b"": ("no text", "open it by the package that wrote it; counts go to polyabayes.Corpus"),
}


def refuse_other_doors(path: Path, taker: str) -> None:
    """Refuse a file whose ending is that of another door; `taker` is the method for frames."""
    for endings, told in _OTHER_DOORS.items():
        if path.suffix.lower() in endings.split():
            raise InvalidArgumentError(f"{path} is {_filled(told, path, taker)}")


def refuse_other_kinds(path: Path, name: str | None) -> None:
    """Refuse a file whose first lines are neither text nor, if `name` is "csv", a table.

    None is the name of a format that the name of the file does not show.
    """
    block = next(line_blocks(path, _BYTES_LOOKED_AT), (1, b""))[1]
    if b"\0" in block and not block.startswith(BOMS_UTF16):
        what, remedy = next(told for head, told in _HEADS.items() if block.startswith(head))
        raise FileFormatError(f"{path} looks like {what}: {_filled(remedy, path)}")
    lines = [line for line in block.decode("utf-8", "replace").split("\n") if line.strip()]
    what, remedy = _kind_of(lines[:LINES_LOOKED_AT])
    remedy = _filled(remedy, path)
    if lines and not remedy and name != "csv":
        what, remedy = _as_table(path, lines)
    as_text = argument("format", "text")
    if remedy:
        told = "" if what in ("LDA-C", "svmlight") else f"; as text, {as_text}"
        raise FileFormatError(f"{path} looks like {what}, not text: {remedy}{told}")
    if name is None:
        raise FileFormatError(
            f"the name of {path} does not show its format: if each line is a document, use "
            f"{as_text}, else name another {argument('format')}"
        )


def _filled(remedy: str, path: Path, taker: str = "Corpus.from_table") -> str:
    return remedy.format(path=repr(str(path)), taker=taker)


def _kind_of(lines: list[str]) -> tuple[str, str]:
    """What lines are, and what reads them; empty if nothing that is known."""
    for pattern, found in _FIRST_LINE.items():
        if lines and re.fullmatch(pattern, lines[0]):
            return found
    for pattern, found in _LINES.items():
        matches = [match for line in lines if (match := re.fullmatch(pattern, line))]
        n_pairs = [match[0].count(":") for match in matches]
        if found[0] == "LDA-C" and [int(match[1]) for match in matches] != n_pairs:
            continue
        if lines and len(matches) == len(lines) and (any(n_pairs) or found[0] != "LDA-C"):
            return found
    are_sizes = len(lines) > _N_SIZES and all(map(is_number, lines[:_N_SIZES]))
    return ("a bag of words", argument("format", "docword")) if are_sizes else ("", "")


def _as_table(path: Path, lines: list[str]) -> tuple[str, str]:
    """The same of a table: its lines have equally many numbers or tabs, or a header names roles."""
    sep = next(filter(None, map(separator_of, lines[:2])), " ")
    head = lines[0].split(None if sep == " " else sep)
    columns = columns_of(len(head), 0) if all(map(is_number, head)) else None
    try:
        table = DelimitedTable(path, Dialect(sep, columns=columns), LINES_LOOKED_AT)
    except FileFormatError as error:  # Quotes of prose, or another encoding.
        return ("a table", str(error.args[0])) if sep == "\t" else ("", "")
    names, n_names = table.names, len(table.names)
    fields = [x for name in names[1:] for x in table.values(name)]
    are_numbers = all(x is not None and number_of(x) is not None for x in fields)
    if not (fields and (sep == "\t" or are_numbers or named_rows(names))):
        return "", ""
    options = [argument("format", "csv")]
    if sep == " ":
        options.append(argument("sep", " "))
    if columns:
        options.append(argument("columns", columns))
        return f"a table of {n_names} columns", f"read it by {', '.join(options)}"
    then = next_refusal(table)
    return f"a table of {n_names} columns", f"read it by {', '.join(options)}{then}"
