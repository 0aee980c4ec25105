"""Corpora on the command line: read with what is known of their documents, cleaned, divided."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import polyabayes as pb
from polyabayes._support.output.tables import counted
from polyabayes.cli.output import checked_file, say
from polyabayes.cli.parser import Given
from polyabayes.io.tabular.delimited import DelimitedTable, Dialect
from polyabayes.io.tabular.parquet import read_parquet_frame

if TYPE_CHECKING:
    import pandas as pd

_CORPUS_SUFFIXES = (".npz", ".ldac", ".ldac.gz", ".mtx", ".mtx.gz")
# These formats do not tell the number of words, only the largest that occurs.
_FORMATS_WITHOUT_WIDTH = (".ldac", ".dat", ".lda-c", ".svmlight", ".libsvm")


def convert(
    given: Given,
    corpus: str,
    *,
    output: str,
    drop_duplicates: str | None = None,
    not_in: str | None = None,
) -> int:
    """Read documents of any format, clean them and write a corpus.

    Parameters
    ----------
    output : FILE
        The corpus: .npz, which keeps all, .ldac, .ldac.gz, .mtx or .mtx.gz.
    drop_duplicates : {"words", "ids"}
        Leave out documents that equal an earlier one: its words, or its id.
    not_in : FILE
        Leave out documents that are in this corpus, too, as in that of the training; written by
        this command or by split.

    Examples
    --------
    $ polyabayes convert reviews.csv -o reviews.npz --text review --min-df 2 --drop-duplicates words
    """
    path = checked_file(output, _CORPUS_SUFFIXES)
    found = read(corpus, given)
    filtering = given.of("Corpus.filter")
    if filtering:
        found = found.filter(**filtering)
    by = drop_duplicates or "words"
    if drop_duplicates is not None:
        found = _without(found, found.duplicated(by), "equal to an earlier one")
    if not_in is not None:
        others = pb.read_corpus(not_in)
        found = _without(found, found.duplicated(by, others), f"also in {not_in}")
    pb.write_corpus(found, path)
    say(f"wrote {size(found)} to {path}")
    return 0


def _without(corpus: pb.Corpus, is_left_out: Any, why: str) -> pb.Corpus:
    say(f"left out {counted(int(is_left_out.sum()), 'document')} {why}")
    return corpus[~is_left_out] if is_left_out.any() else corpus


def split(given: Given, corpus: str, *, train: str, test: str) -> int:
    """Hold documents out.

    Parameters
    ----------
    train : FILE
        Documents to train on: .npz, .ldac, .ldac.gz, .mtx or .mtx.gz.
    test : FILE
        Documents held out, likewise.

    Examples
    --------
    $ polyabayes split corpus.ldac --train train.npz --test test.npz --seed 0
    """
    paths = [checked_file(path, _CORPUS_SUFFIXES) for path in (train, test)]
    parts = read(corpus, given).split(**given.of("Corpus.split"))
    for path, part in zip(paths, parts, strict=True):
        pb.write_corpus(part, path)
        say(f"wrote {size(part)} to {path}")
    n_twice = int(parts[1].duplicated(other=parts[0]).sum())
    if n_twice:
        say(
            f"duplicates: {counted(n_twice, 'document')} of {test} also in {train}; to leave them "
            "out, run polyabayes convert --drop-duplicates words before"
        )
    return 0


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
    if given.metadata is None:
        return corpus
    return corpus.with_metadata(read_table(given.metadata))


# Texts of missing values. None, which pandas takes for one, is an answer of many surveys.
_MISSING = ("", "NA", "N/A", "n/a", "NaN", "nan", "NULL", "null", "<NA>", "#N/A")


def read_table(path: str, sep: str | None = None) -> pd.DataFrame:
    """The table of a CSV or Parquet file."""
    place = Path(path)
    if place.suffix.lower() == ".parquet":
        return read_parquet_frame(place)
    table = DelimitedTable(place, Dialect(sep, missing=_MISSING))
    return table.data_frame(table.names)


def given_exposure(corpus: pb.Corpus, given: Given) -> dict[str, Any]:
    """Exposures that the user gave, which LDA refuses; others come with the corpus."""
    return {"exposure": corpus.exposure} if "exposure" in given.of("read_corpus") else {}


def size(corpus: pb.Corpus) -> str:
    """How large a corpus is."""
    return repr(corpus).removeprefix("<Corpus: ").removesuffix(">")
