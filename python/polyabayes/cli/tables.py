"""Tables of what is known of documents: read, and made of it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import polyabayes as pb
from polyabayes._support.files import content_of, open_binary
from polyabayes._support.frames import import_pandas
from polyabayes._support.tables import counted
from polyabayes.cli.output import write_table
from polyabayes.io.tabular.parquet import read_parquet_frame

if TYPE_CHECKING:
    import pandas as pd


def read_table(path: str, sep: str = ",") -> pd.DataFrame:
    """The table of a CSV or Parquet file; what pandas takes for missing is missing."""
    place = Path(path)
    if place.suffix.lower() == ".parquet":
        return read_parquet_frame(place)
    pandas = import_pandas()
    with open_binary(place) as stream, content_of(place):
        frame: pd.DataFrame = pandas.read_csv(stream, sep=sep)
    return frame


def described(corpus: pb.Corpus, metadata: str | None) -> pb.Corpus:
    """The corpus with the metadata of a table, if there is one."""
    if metadata is None:
        return corpus
    return corpus.with_metadata(read_table(metadata))


def write_groups(model: Any, documents: pb.Corpus, by: str, output: str | None) -> int:
    """Mean weights of topics in groups of documents, as a table or printed."""
    found = pb.topics.by_group(model, documents, by)
    if output is not None:
        write_table(found._columns(), output)
        return 0
    for row, (group, n) in enumerate(zip(found.groups, found.n_documents, strict=True)):
        print(f"{by}={group}  {counted(n, 'document')}")
        for topic, (mean, error) in enumerate(
            zip(found.means[row], found.std_errors[row], strict=True)
        ):
            print(f"{topic:>5}  {mean:9.4f} +- {error:.4f}")
    return 0
