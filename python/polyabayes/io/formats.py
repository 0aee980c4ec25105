"""Formats of files: who reads and writes each, and which one a name stands for."""

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias, TypeVar

from polyabayes._support import checks
from polyabayes._support.files import STANDARD_INPUT, open_regular, reading
from polyabayes.data.corpus import Corpus
from polyabayes.data.names import refusal, say
from polyabayes.data.tensors.tensor import CountTensor
from polyabayes.exceptions import FileAccessError, InvalidArgumentError, argument
from polyabayes.io import kinds
from polyabayes.io.cells import matrices_of_folder, read_10x, read_h5ad
from polyabayes.io.mallet import read_mallet
from polyabayes.io.matrices import ldac, matrix_market as mtx, npz, svmlight
from polyabayes.io.tabular import corpora, factor_tables as factors
from polyabayes.io.tensors import npz as tensor_npz, tns
from polyabayes.io.text import read_text

T = TypeVar("T")
Writer: TypeAlias = Callable[[T, Path], None]


class Format(NamedTuple):
    """Endings of names of a format, and its readers and writers of corpora and of tensors."""

    endings: str
    read: Callable[..., Corpus]
    write: Writer[Corpus] | None = None
    read_tensor: Callable[..., CountTensor] | None = None
    write_tensor: Writer[CountTensor] | None = None


_TABLES = ".csv .tsv .tab .all .gct .maf .sf .results"
_FACTORS = factors.read_factor_csv, factors.write_factor_csv
_OF_TENSORS = tensor_npz.read_tensor_npz, tensor_npz.write_tensor_npz
_FORMATS = {
    "ldac": Format(".ldac .dat .lda-c", ldac.read_ldac, ldac.write_ldac),
    "mtx": Format(".mtx .mm", mtx.read_matrix_market, mtx.write_matrix_market),
    "npz": Format(".npz", npz.read_npz, npz.write_npz, *_OF_TENSORS),
    "svmlight": Format(".svmlight .libsvm .svm", svmlight.read_svmlight),
    "docword": Format("", mtx.read_docword),
    "csv": Format(_TABLES, corpora.read_csv, None, *_FACTORS),
    "tns": Format(".tns", tns.read_tns_corpus, None, tns.read_tns, tns.write_tns),
    "parquet": Format(".parquet", corpora.read_parquet, None, factors.read_factor_parquet),
    "jsonl": Format(".jsonl .ndjson", corpora.read_json_lines),
    "h5ad": Format(".h5ad", read_h5ad),
    "10x": Format(".h5", read_10x),
    "text": Format(".txt", read_text),
    "mallet": Format(".mallet", read_mallet),
}
READERS = {name: own.read for name, own in _FORMATS.items()}
WRITERS = {name: own.write for name, own in _FORMATS.items() if own.write}
TENSOR_READERS = {name: own.read_tensor for name, own in _FORMATS.items() if own.read_tensor}
TENSOR_WRITERS = {name: own.write_tensor for name, own in _FORMATS.items() if own.write_tensor}
_FORMAT_OF_SUFFIX = {end: name for name, own in _FORMATS.items() for end in own.endings.split()}
# Options that only tables have: a .txt file with one of them is no text.
OPTIONS_OF_TABLES = {*kinds.READ, "text", "ids", "document", "word", "count", "metadata", "layout"}


def reader_of(
    path: Path, name: str | None, readers: dict[str, Callable[..., T]], options: dict[str, Any]
) -> Callable[..., T]:
    """Reader of format `name`, by default that of the path; standard input has one."""
    is_corpus = "text" in readers
    piped = "ldac" if is_corpus else "tns"
    with reading(path):
        if path != STANDARD_INPUT and not path.exists():
            raise FileAccessError(f"{path} does not exist")
        if path.is_dir() and not is_corpus:
            raise FileAccessError(f"cannot read {path}: it is a folder")
        if path != STANDARD_INPUT and not path.is_dir():
            open_regular(path).close()
    if name is None:
        name = piped if path == STANDARD_INPUT else format_of(path)
        if name == "text" and path.is_dir():
            kinds.refuse_other_folders(path, options)
        taker = "Corpus.from_table" if is_corpus else "CountTensor.from_frame"
        kinds.refuse_other_doors(path, taker, options)
        if name in kinds.LOOKED_AT and path != STANDARD_INPUT and not path.is_dir():
            is_table = bool(options.keys() & OPTIONS_OF_TABLES) and name in kinds.OPEN
            if is_corpus:
                kinds.refuse_other_kinds(path, name, options, is_table)
            name = "csv" if is_table else name
    if name is None or checks.text("format", name) not in readers:
        known = f"name it by {argument('format')}; known are {', '.join(readers)}"
        if name in READERS:
            told = say("table or text", kinds.options_of_table(path)) if name == "text" else ""
            known = told or f"polyabayes.read_corpus reads it; else {known}"
        what = f"unknown format {name!r} here" if name else f"{path} does not show its format"
        raise InvalidArgumentError(f"{what}; {known}")
    if path == STANDARD_INPUT and name != piped:
        raise InvalidArgumentError(f"standard input is read as {piped} only, not as {name}")
    try:
        inspect.signature(readers[name]).bind(path, **options)
    except TypeError as error:
        raise refusal("bind", name, error, argument("format")) from error
    return readers[name]


def writer_of(path: Path, writers: dict[str, Writer[T]]) -> Writer[T]:
    """Writer of the format that the path names."""
    name = format_of(path)
    if name not in writers or (name == "npz" and path.suffix == ".gz"):
        endings = [f".{known}" for known in writers]
        endings += [f"{ending}.gz" for ending in endings if ending != ".npz"]
        raise InvalidArgumentError(f"{path}: its name must end in {', '.join(endings)}")
    return writers[name]


def format_of(path: Path) -> str | None:
    """The format that a name shows, if any."""
    if path.is_dir():
        return "10x" if matrices_of_folder(path) and any(path.glob("*.tsv*")) else "text"
    name = path.name.removesuffix(".gz")
    if name.startswith("docword") and name.endswith(".txt"):
        return "docword"
    return _FORMAT_OF_SUFFIX.get(Path(name).suffix.lower())
