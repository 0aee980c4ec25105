"""Corpora and tables on the command line, with what is known of their documents."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import polyabayes as pb
from polyabayes._support.files import content_of, open_binary
from polyabayes._support.output.frames import import_pandas
from polyabayes.cli.output import say
from polyabayes.cli.parser import Given
from polyabayes.exceptions import InvalidArgumentError
from polyabayes.io.tabular.parquet import read_parquet_frame

if TYPE_CHECKING:
    import pandas as pd

# These formats do not tell the number of words, only the largest that occurs.
_FORMATS_WITHOUT_WIDTH = (".ldac", ".dat", ".lda-c", ".svmlight", ".libsvm")


def read_as_wide(n_words: int, path: str, options: dict[str, Any]) -> pb.Corpus:
    """Read a corpus of so many words where its format does not tell their number."""
    name = path.lower().removesuffix(".gz")
    if options.get("vocabulary") is None and (path == "-" or name.endswith(_FORMATS_WITHOUT_WIDTH)):
        return pb.read_corpus(path, n_words=n_words, **options)
    return pb.read_corpus(path, **options)


def read(path: str, given: Given, model: Any = None) -> pb.Corpus:
    """Read documents, those of a model if given, with the metadata of a table if there is one."""
    options = given.of("read_corpus")
    if model is None:
        corpus = pb.read_corpus(path, **options)
    else:
        corpus = read_as_wide(model.n_features_in_, path, options)
    if given.metadata is None:
        return corpus
    return corpus.with_metadata(_in_order_of(corpus.ids, read_table(given.metadata)))


def _in_order_of(ids: Any, table: pd.DataFrame) -> pd.DataFrame:
    """Rows in the order of the documents, where a column has the name of each document once."""
    wanted = [] if ids is None else [str(name) for name in ids]
    found = []
    for name in table.columns if wanted else ():
        texts = [str(text) for text in table[name]]
        place = {text: row for row, text in enumerate(texts)}
        if texts == wanted:
            return table
        if len(place) == len(table) and set(wanted) <= set(place):
            found.append((name, [place[text] for text in wanted]))
    if len(found) > 1:
        raise InvalidArgumentError(
            f"metadata: columns {found[0][0]!r} and {found[1][0]!r} both have the names of the "
            "documents, in other orders than the corpus: put the rows in its order"
        )
    if not found:
        return table
    column, rows = found[0]
    say(f"metadata: rows are matched with documents by column {column!r}")
    return table.iloc[rows].reset_index(drop=True)


# Texts of missing values. None, which pandas takes for one, is an answer of many surveys.
_MISSING = ("", "NA", "N/A", "n/a", "NaN", "nan", "NULL", "null", "<NA>", "#N/A")


def read_table(path: str, sep: str = ",", columns: Any = None) -> pd.DataFrame:
    """The table of a CSV or Parquet file; with names of `columns`, it has no header."""
    place = Path(path)
    if place.suffix.lower() == ".parquet":
        return read_parquet_frame(place)
    pandas = import_pandas()
    with open_binary(place) as stream, content_of(place):
        frame: pd.DataFrame = pandas.read_csv(
            stream,
            sep=r"\s+" if sep == " " else sep,
            names=columns,
            na_values=_MISSING,
            keep_default_na=False,
        )
    return frame


def given_exposure(corpus: pb.Corpus, given: Given) -> dict[str, Any]:
    """Exposures that the user gave, which LDA refuses; others come with the corpus."""
    return {"exposure": corpus.exposure} if "exposure" in given.of("read_corpus") else {}


def size(corpus: pb.Corpus) -> str:
    """How large a corpus is."""
    return repr(corpus).removeprefix("<Corpus: ").removesuffix(">")
