"""What a file is, by its name and its first lines, and the call that reads it."""

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from polyabayes._support.files import BOMS_UTF16, check_encoding, line_blocks
from polyabayes.data.conversion import numbers, remedies
from polyabayes.data.conversion.table import named_within
from polyabayes.data.names import CALLS, named_rows, say
from polyabayes.exceptions import FileFormatError, InvalidArgumentError, argument
from polyabayes.io.integers import is_number
from polyabayes.io.tabular import delimited
from polyabayes.io.text import files_code, files_of, is_text

_BYTES_LOOKED_AT, _READ = 1 << 16, re.compile(r"read_(csv|json)\((\{\w+\}|x)")
# Kinds of files by their endings, the pattern of their first or all of their first lines, and their
# first bytes: what each is, and the option or the call that reads it.
_KINDS = [x.split("\t") for x in Path(__file__).with_suffix(".txt").read_text("utf-8").splitlines()]
_NAMES = ("csv", "ldac", "svmlight", "jsonl", "docword", "parquet", "h5ad", "10x", "npz")
_FORMATS = {name: argument("format", name) for name in _NAMES}
# Options of tables that only files have.
READ = ("sep", "columns", "transpose", "skiprows")
_LDAC, _AS_TEXT = "LDA-C", argument("format", "text")
# Formats of which a file may be of another kind: those of any text, of tables and of unknown names,
# and those whose reader knows its own lines.
OPEN, _STRICT = ("text", "csv", None), ("ldac", "jsonl", "mallet")
LOOKED_AT = OPEN + _STRICT


def refuse_other_doors(path: Path, taker: str, options: dict[str, Any]) -> None:
    """Refuse a file whose ending is that of another door; `taker` is the method for frames."""
    what, remedy = _kind_by_name(path)
    if told := remedy and _filled(remedy, path, options.get("encoding"), (taker, options)):
        raise InvalidArgumentError(f"{path} is {what}: {told}")


def _kind_by_name(path: Path) -> tuple[str, str]:
    """What a file is by its ending, and what reads it; empty if nothing that is known."""
    ending = Path(path.name.removesuffix(".gz")).suffix.lower()
    # Programs give this name to tables with tabs, which are looked at as files of unknown names.
    lines = _head(path)[1] if ending in (".json", ".xls") else []
    if ending == ".xls" and lines and not lines[0].strip("\ufeff ").startswith("<"):
        return "", ""
    told = [_kind_of(lines)] if ending == ".json" else []
    told += [(own[2], own[3]) for own in _KINDS if own[0] == "ending" and ending in own[1].split()]
    return next((own for own in told if own[1]), ("", ""))


def refuse_other_folders(path: Path, options: dict[str, Any]) -> None:
    """Refuse a folder of other files than texts, by the first of them, a text if there is one."""
    files, encoding = files_of(path), options.get("encoding")
    first = path / next(filter(is_text, files), next(iter(files), ""))
    lines = _head(first, encoding)[1][: delimited.LINES_LOOKED_AT] if files else []
    head, asked = "\n".join([first.name, *(lines or [""])]), ("Corpus.from_table", options)
    kind, call = _kind_of(lines)
    kind, call = (kind, call) if call or not files else _kind_by_name(first)
    call = re.sub(r"\(\[(.*)\{each\}\]\)", r"(pandas.Series({{str(x): \1{each}}}))", call)
    if table := re.match(r"polyabayes\.\{taker\}\((.*?)\{given\}\)", call):
        call = f"polyabayes.{{taker}}(pandas.concat([{table[1]}{{each}}], ignore_index=True)"
        call += "{given}) takes their rows"
    each = _filled(call, path, encoding, asked, first) if "{each}" in call else ""
    for by, pattern, what, remedy in () if each else _KINDS:
        found = sorted(path.glob(pattern)) if by == "folder" else []
        if found or (by == "files" and files and re.fullmatch(pattern, head)):
            alike = [x for x in files.values() if x.suffix == first.suffix]
            n_folders, own = len({x.parent for x in alike}), path
            # Folders of several files hold other counts of the same documents.
            if "{{x.name" in remedy and 1 < n_folders < len(alike):
                own = first.parent
            elif n_folders > 1:
                remedy = remedy.replace("{{x.name", "{{x.parent.name")
            told = _filled(remedy, own, encoding, asked, found[0] if found else first)
            raise InvalidArgumentError(f"{own} is {what}: {told}")
    if lines and not each:
        kind, call = _as_table(first, lines, encoding or "utf-8")
        code = call.removeprefix("read it by ").partition(";")[0]
        if kind.startswith("a table of"):
            sep = delimited.separator_of(lines) or " "
            call = CALLS["rows of files"].replace("{sep}", repr(sep)) * ("columns" not in code)
            each = _filled(call, path, encoding, asked, first)
            each += f"polyabayes.read_corpus({str(first)!r}, {code}) reads the first"
    if each:
        raise InvalidArgumentError(f"{path} has files as {first}, {kind}: {each}; or {_AS_TEXT}")


def refuse_other_kinds(path: Path, name: str | None, given: dict[str, Any], is_table: bool) -> None:
    """Refuse a file whose first lines are of another kind than the format `name`.

    None is the name of a format that the name of the file does not show. With `is_table`, options
    of tables are given: refused is what another call takes with them.
    """
    block, lines, encoding = _head(path, given.get("encoding"))
    head = "" if lines or b"\0" not in block else block[:20].decode("latin-1")
    what, remedy = _kind_of(lines[: delimited.LINES_LOOKED_AT], head)
    # Calls that turn their table need no `transpose`.
    is_turned = {*given} == {"transpose"} and ".T" in remedy
    if is_table and not is_turned and "{given}" not in remedy and what != "JSON lines":
        return
    remedy = _filled(remedy, path, encoding, ("Corpus.from_table", given))
    is_row = name == "jsonl" and lines and re.match(r'\s*\{\s*"', lines[0])  # Perhaps a broken one.
    if is_row or (name in _STRICT and remedy in _FORMATS.values()):
        return
    if lines and not remedy and name in ("text", "ldac", None):
        what, remedy = _as_table(path, lines, encoding)
    if remedy:
        told = f"; as text, {_AS_TEXT}" if not head and what not in (_LDAC, "svmlight") else ""
        raise FileFormatError(f"{path} looks like {what}, not text: {remedy}{told}")
    if name is None:
        raise FileFormatError(say("no format", path, _AS_TEXT, argument("format")))


def options_of_table(path: Path) -> str:
    """Options that read a file as a table."""
    sep = delimited.separator_of(_head(path)[1][: delimited.LINES_LOOKED_AT] or [""])
    return _FORMATS["csv"] + f", {argument('sep', sep)}" * (sep not in (",", None))


def _asked(taker: str, options: dict[str, Any]) -> dict[str, Any]:
    """Code of the options of a table in a call that takes it: its name, and what ends it."""
    if options.get("transpose"):
        left_out = f".drop(columns={options['metadata']!r})" if "metadata" in options else ""
        named = ".pipe(lambda rows: rows.set_index(rows.columns[0]))"
        named = f".set_index({options['ids']!r})" if "ids" in options else named
        return {"taker": "Corpus", "given": f"{left_out}{named}.T"}
    read = {*READ, "encoding"}
    told = [f", {x}={y!r}" for x, y in options.items() if x not in read and not callable(y)]
    return {"taker": taker, "given": "".join(told)}


def _head(path: Path, encoding: str | None = None) -> tuple[bytes, list[str], str]:
    """The first bytes of a file, the lines of a text, and its encoding."""
    block = next(line_blocks(path, _BYTES_LOOKED_AT), (1, b""))[1]
    encoding = encoding or ("utf-16" if block.startswith(BOMS_UTF16) else "utf-8")
    check_encoding(encoding)
    text = block.decode(encoding, "replace") if encoding != "utf-8" or b"\0" not in block else ""
    lines = [line for line in text.split("\n") if line.strip()]
    # A single line is no row of JSON lines.
    return block, [""] * (len(lines) == 1 and ".json" in path.suffixes) + lines, encoding


def _filled(
    remedy: str, path: Path, encoding: str | None, asked: tuple[str, Any], first: Path = Path()
) -> str:
    """A remedy with names of files and the options; `first` is the first file of a folder."""
    taker, options = asked
    files, is_folder, others, held = files_code(path, first.suffix), path.is_dir(), "", ""
    if "json_normalize" in remedy:
        rows = [*_objects(first if is_folder else path, encoding)]
        # The list that has the column, where there are several.
        name = str(options.get("text") or options.get("word") or options.get("ids", ""))
        is_later = bool(rows and name) and name not in rows[0] and repr(name) in str(rows)
        held = f" and any({name!r} in own for own in x if isinstance(own, dict))" * is_later
        options, others = named_within(options, lambda x: [row.get(x) for row in rows])
    told = delimited.encoding_code(encoding)
    text = f"x.read_text({told[2:]})" if is_folder else delimited.text_code(path, encoding)
    code = {"path": "x" if "{each}" in remedy else repr(str(path)), "content": text}
    code |= {"each": f" for x in {files}" * is_folder, "encoding": told[2:], "files": files}
    code |= {"bytes": re.sub(r"read_text\(.*\)$", "read_bytes()", text), "first": repr(str(first))}
    code |= _FORMATS | _asked(taker, options) | {"held": held}
    return _READ.sub(rf"\g<0>{told}", remedy).format(**code) + others


def _objects(path: Path, encoding: str | None) -> Iterator[dict[str, Any]]:
    """The objects of the first list among the first lines of a file of JSON."""
    text, decode = "\n".join(_head(path, encoding)[1]), json.JSONDecoder().raw_decode
    with suppress(ValueError):
        place = text.index("[")
        while True:
            row, place = decode(text, text.index("{", place))
            yield row


def _kind_of(lines: list[str], head: str = "") -> tuple[str, str]:
    """What lines, or the first bytes, are, and what reads them; empty if nothing that is known."""
    known = {"head": [head]} if head else {"lines": lines, "start": ["\n".join(lines)]}
    for by, pattern, what, remedy in _KINDS if lines or head else ():
        parts, match = known.get(by, []), re.fullmatch if by == "lines" else re.match
        matches = [found for part in parts if (found := match(pattern, part))]
        n_pairs = [found[0].count(":") for found in matches]
        is_ldac = what == _LDAC and [int(found[1]) for found in matches] == n_pairs and any(n_pairs)
        if matches and len(matches) == len(parts) and (is_ldac or what != _LDAC):
            return what, remedy
    return "", ""


def _as_table(path: Path, lines: list[str], encoding: str) -> tuple[str, str]:
    """The same of a table: its lines have equally many numbers or tabs, or a header names roles."""
    sep = delimited.separator_of(lines) or " "
    head = lines[0].split(None if sep == " " else sep)
    columns = remedies.columns_of(len(head), 0) if all(map(is_number, head)) else None
    dialect, most = delimited.Dialect(sep, encoding, columns=columns), delimited.LINES_LOOKED_AT
    try:
        table = delimited.DelimitedTable(path, dialect, None if sep == "\t" else most)
    except FileFormatError as error:  # Quotes of prose, or another encoding.
        if sep == " " and all(is_number(x) for line in lines for x in line.split()):
            code = f"map(str.split, {delimited.text_code(path, encoding)}.splitlines())"
            return "lists of numbers", f"polyabayes.Corpus.from_documents({code})"
        return ("a table", str(error.args[0])) if sep == "\t" else ("", "")
    names, n_names = table.names, len(table.names)
    fields = [x for name in names[1:] for x in table.values(name)]
    are_numbers = all(x is not None and numbers.number_of(x) is not None for x in fields)
    # R divides by blanks, and does not name the column of the row names.
    is_counted = any(map(table.holds_whole_numbers, names[1:])) and table.n_rows > 1 < n_names - 1
    is_counted = is_counted and not any(map(is_number, names))
    if not (fields and (sep == "\t" or are_numbers or named_rows(names) or is_counted)):
        return "", ""
    options = {"format": "csv", "sep": " " if sep == " " else None, "columns": columns}
    options["encoding"] = None if encoding == "utf-8" else encoding
    told = ", ".join(argument(name, x) for name, x in options.items() if x is not None)
    then = "" if columns else delimited.next_refusal(table)
    return f"a table of {n_names} columns", f"read it by {told}{then}"
