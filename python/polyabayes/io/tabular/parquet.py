"""Parquet files: whole tables, and documents of tables in blocks."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from polyabayes._support.files import content_of, open_binary, reading
from polyabayes._support.optional import import_optional
from polyabayes._support.output.frames import DataFrame, import_pandas
from polyabayes.data.conversion import documents, frames, numbers, roles as _roles, sources
from polyabayes.data.corpus import Corpus
from polyabayes.data.counts import Words
from polyabayes.data.selection import number_of_documents

# Rows that are read at once.
_WHY, _BATCH_ROWS = "reading Parquet files needs pyarrow", 1 << 16


def read_parquet_frame(path: Path) -> DataFrame:
    """The table of a Parquet file."""
    pandas, _ = import_pandas(), import_optional("pyarrow", _WHY, "frames")
    with open_binary(path) as stream, reading(path):
        return pandas.read_parquet(stream)


def parquet_blocks(path: Path, vocabulary: Words | None, /, **options: Any) -> Iterator[Corpus]:
    """Documents of a table in blocks over one vocabulary; without it, a first pass gathers it.

    `options` are those of tables and of texts; further words are dropped. Rows of a document of a
    long table must be next to each other.
    """
    named = _roles.NamedColumns.taken_from(options)
    least, most = options.pop("min_df", 1), options.pop("max_df", 1.0)

    def read() -> Iterator[sources.Source]:
        for frame in _batches(path, named):
            with content_of(path):
                table = frames.FrameTable(frame)
                table.row_names = None
                yield documents.source_of_table(table, named, None, options)

    words: Words | list[str] | None = vocabulary
    if words is None:
        n_documents, seen = 0, Counter[str]()
        for found in read():
            # All blocks of a wide table have the same columns.
            if found.words_are != "gathered" or found.vocabulary is None:
                break
            n_documents += found.counts.shape[0]
            used = np.asarray((found.counts > 0).sum(axis=0)).ravel().tolist()
            seen.update(dict(zip(list(found.vocabulary), used, strict=True)))
        lower = number_of_documents("min_df", least, n_documents)
        upper = number_of_documents("max_df", most, n_documents)
        words = numbers.label_order(word for word, n in seen.items() if lower <= n <= upper) or None
    for found in read():
        corpus = Corpus._made(found)
        yield corpus if words is None else corpus.aligned_to(words, "drop")[0]


def _batches(path: Path, named: _roles.NamedColumns) -> Iterator[DataFrame]:
    """Blocks of rows; those of a document of a long table stay together."""
    pq: Any = import_optional("pyarrow.parquet", _WHY, "frames")
    pandas, left, document, start = import_pandas(), None, None, 0
    with reading(path):
        batches = pq.ParquetFile(path).iter_batches(_BATCH_ROWS)
    for batch in batches:
        frame = batch.to_pandas()
        frame.index = range(start, start + len(frame))
        start += len(frame)
        if start == len(frame):
            with content_of(path):
                roles = _roles.roles_of(frames.FrameTable(frame), named)
            document = roles.columns[0] if roles.layout == "long" else None
        if document is not None:
            frame = pandas.concat([left, frame])
            # The last document may go on in the next batch.
            is_last = frame[document] == frame[document].iloc[-1]
            left, frame = frame[is_last], frame[~is_last]
        if len(frame):
            yield frame
    if left is not None:
        yield left
