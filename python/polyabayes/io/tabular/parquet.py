"""Parquet files: whole tables, and long tables in blocks."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from polyabayes._support.files import open_binary, reading
from polyabayes._support.output.frames import import_pandas
from polyabayes.data.corpus import Corpus
from polyabayes.exceptions import FileFormatError, MissingDependencyError

if TYPE_CHECKING:
    import pandas as pd


def read_parquet_frame(path: Path) -> pd.DataFrame:
    """The table of a Parquet file."""
    pandas = import_pandas()
    with open_binary(path) as stream, reading(path):
        try:
            frame: pd.DataFrame = pandas.read_parquet(stream)
        except ImportError as error:
            raise _missing(error) from error
        if not frame.columns.is_unique:
            twice = frame.columns[frame.columns.duplicated()][0]
            raise FileFormatError(f"{path} has two columns that are called {twice!r}; rename one")
    return frame


def parquet_blocks(path: Path) -> Iterator[Corpus]:
    """Documents of a long table in blocks; a first pass collects the words."""
    try:
        import pyarrow.parquet as pq
    except ImportError as error:
        raise _missing(error) from error
    with reading(path):
        file = pq.ParquetFile(path)
        absent = {"document", "word", "count"} - set(file.schema_arrow.names)
        if absent:
            raise FileFormatError(
                f"{path} has no column {sorted(absent)[0]!r}: shards need a long table with "
                "the columns document, word and count; give read_corpus(path) if the "
                "corpus fits into memory"
            )
        distinct = (batch[0].unique().to_pylist() for batch in file.iter_batches(columns=["word"]))
        words = sorted({str(word) for some in distinct for word in some})
        column = {word: number for number, word in enumerate(words)}
    vocabulary = np.array(words, dtype=object)
    left: list[tuple[Any, int, int]] = []
    with reading(path):
        for batch in file.iter_batches(columns=["document", "word", "count"]):
            names, counts = batch["document"].to_pylist(), batch["count"].to_pylist()
            numbers = [column[str(word)] for word in batch["word"].to_pylist()]
            left.extend(zip(names, numbers, counts, strict=True))
            # The last document may go on in the next batch.
            last, start = left[-1][0], len(left)
            while start and left[start - 1][0] == last:
                start -= 1
            if start:
                yield _long_block(left[:start], vocabulary)
            left = left[start:]
    if left:
        yield _long_block(left, vocabulary)


def _missing(error: ImportError) -> MissingDependencyError:
    return MissingDependencyError(
        f"reading Parquet files needs pyarrow ({error}): pip install 'polyabayes[frames]'"
    )


def _long_block(cells: list[tuple[Any, int, int]], vocabulary: NDArray[np.object_]) -> Corpus:
    names = [name for name, _, _ in cells]
    rows = np.cumsum([0, *(one != other for one, other in pairwise(names))])
    columns, counts = (np.array([cell[ix] for cell in cells]) for ix in (1, 2))
    shape = (int(rows[-1]) + 1, len(vocabulary))
    firsts = np.unique(rows, return_index=True)[1]
    ids = [str(names[first]) for first in firsts]
    return Corpus(sparse.csr_matrix((counts, (rows, columns)), shape), vocabulary, ids)
