"""Corpora and tables on the command line, with what is known of their documents."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polyabayes as pb
from polyabayes._support.files import content_of, open_binary
from polyabayes._support.output.frames import DataFrame, import_pandas
from polyabayes.cli.parser import Given
from polyabayes.exceptions import InvalidArgumentError, argument
from polyabayes.io.tabular.delimited import DelimitedTable, Dialect
from polyabayes.io.tabular.parquet import read_parquet_frame

# Formats without the number of words: they hold only the words that occur.
_FORMATS_WITHOUT_WIDTH = (".ldac", ".dat", ".lda-c", ".svmlight", ".libsvm")


def read_as_wide(n_words: int, path: str, options: dict[str, Any]) -> pb.Corpus:
    """Read a corpus of so many words where its format does not tell their number."""
    name = path.lower().removesuffix(".gz")
    if options.get("vocabulary") is None and (path == "-" or name.endswith(_FORMATS_WITHOUT_WIDTH)):
        return pb.read_corpus(path, n_words=n_words, **options)
    return pb.read_corpus(path, **options)


def read(path: str, given: Given, model: Any = None) -> pb.Corpus:
    """Read documents, those of a model if given, with the metadata of a table if there is one."""
    options = given.of("read_corpus", "Corpus.from_documents")
    if model is None:
        corpus = pb.read_corpus(path, **options)
    else:
        corpus = read_as_wide(model.n_features_in_, path, options)
    return corpus if given.metadata is None else corpus.with_metadata(read_table(given.metadata))


# Texts of missing values; None is an answer of many surveys, although pandas reads it as missing.
_MISSING = ("", "NA", "N/A", "n/a", "NaN", "nan", "NULL", "null", "<NA>", "#N/A")


def read_table(
    path: str, sep: str | None = None, columns: Any = None, encoding: str = "utf-8"
) -> DataFrame:
    """The table of a CSV or Parquet file; with names of `columns`, it has no header."""
    place = Path(path)
    if place.suffix.lower() == ".parquet":
        return read_parquet_frame(place)
    if columns is None and sep != " ":
        table = DelimitedTable(place, Dialect(sep, encoding, missing=_MISSING))
        return table.data_frame(table.names)
    pandas = import_pandas()
    with open_binary(place) as stream, content_of(place):
        frame: DataFrame = pandas.read_csv(
            stream,
            sep=r"\s+" if sep == " " else sep or ",",
            header="infer" if columns is None else None,
            na_values=_MISSING,
            keep_default_na=False,
            encoding=encoding,
        )
    if columns is not None:
        if len(columns) != frame.shape[1]:
            rule = f"names {len(columns)} columns, but {path} has {frame.shape[1]}; name each"
            raise InvalidArgumentError(f"{argument('columns')} {rule}")
        frame.columns = columns
    return frame


def given_exposure(corpus: pb.Corpus, given: Given) -> dict[str, Any]:
    """Exposures that the user gave, which LDA refuses; others come with the corpus."""
    return {"exposure": corpus.exposure} if "exposure" in given.of("read_corpus") else {}


def size(corpus: pb.Corpus) -> str:
    """Size of a corpus in words."""
    return repr(corpus).removeprefix("<Corpus: ").removesuffix(">")
