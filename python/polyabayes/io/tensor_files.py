"""Reading and writing count tensors of any format."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from polyabayes._support.files import checked_path, within_memory
from polyabayes.data.tensors.cells import checked_axes
from polyabayes.data.tensors.tensor import CountTensor
from polyabayes.exceptions import InvalidTypeError
from polyabayes.io.formats import TENSOR_READERS, TENSOR_WRITERS, reader_of, writer_of
from polyabayes.io.tabular.factor_tables import read_factor_csv, read_factor_parquet


def read_tensor(
    path: str | os.PathLike[str],
    axes: Sequence[str] | None = None,
    *,
    format: str | None = None,  # noqa: A002
    counts: str | None = None,
    sep: str | None = None,
    columns: Sequence[str] | None = None,
    encoding: str | None = None,
    **options: Any,
) -> CountTensor:
    """Read a count tensor from a file.

    Parameters
    ----------
    path : str or path
        The format follows from the name:

        ========================================  ==============================================
        ``.tns``                                  FROSTT: ``i j k count``, counted from 1; names,
                                                  sizes and labels of the axes are in a file of
                                                  the same name with the ending ``.modes.json``
        ``.npz``                                  :func:`write_tensor`
        ``.csv``, ``.tsv``, ``.parquet``          a column per axis, and optionally one of counts
        ========================================  ==============================================

        Any file may be gzipped, with a name that ends in ``.gz``. ``"-"`` reads FROSTT from
        standard input.
    axes : sequence of str, optional
        For ``.csv`` and ``.parquet``, the columns that are axes; else new names of the axes.
    format : {"tns", "npz", "csv", "parquet"}, optional
        The format, if the name does not show it.
    counts : str, optional
        Tables: the column of counts. Default: a column with a name such as ``count`` or ``freq``;
        else each row counts once. Without `axes`, a column that may hold counts is refused, and so
        are measured numbers as axes.
    sep : str, optional
        Delimited files: the separator. Default: as for :func:`polyabayes.read_corpus`.
    columns : sequence of str, optional
        Delimited files: names of the columns of a file without a header.
    encoding : str, default="utf-8"
        Encoding of a delimited file.
    **options
        Options of the format: ``shape`` (tns), the sizes of the axes if there is no
        ``.modes.json``; ``skiprows`` (csv); ``missing`` (tables), values that mark missing ones,
        or those of each column.

    Returns
    -------
    CountTensor
        The counts.

    Raises
    ------
    FileAccessError
        If the file is missing or cannot be read.
    FileFormatError
        If its content is not what the format promises; the message names the line.
    InvalidArgumentError
        If the format is unknown or lacks an option.
    MissingDependencyError
        If the format needs an optional dependency that is not installed.

    Warns
    -----
    DataWarning
        If an unused column may hold the counts, or a level may mark missing values or be a sum.

    Examples
    --------
    >>> file = folder / "counts.tns"
    >>> pb.write_tensor(pb.CountTensor.from_dense([[4, 0], [1, 2]], ["hair", "eye"]), file)
    >>> pb.read_tensor(file, ["hair", "eye"])
    <CountTensor: hair 2 x eye 2, 3 cells, total 7>
    """
    path = checked_path(path)
    named = {"counts": counts, "sep": sep, "columns": columns, "encoding": encoding}
    options.update({name: value for name, value in named.items() if value is not None})
    reader = reader_of(path, format, TENSOR_READERS, options)
    # Names of columns that are not valid in a graph are changed for the axes.
    names = [axes] if isinstance(axes, str) else axes
    if names is not None and reader not in (read_factor_csv, read_factor_parquet):
        names = checked_axes(names)
    with within_memory(path):
        return reader(path, names, **options)


def write_tensor(tensor: CountTensor, path: str | os.PathLike[str]) -> None:
    """Write a count tensor to a file, completely or not at all.

    Parameters
    ----------
    tensor : CountTensor
        The counts.
    path : str or path
        The format follows from the name: ``.tns`` or ``.tns.gz``, with the axes in a file of the
        same name with the ending ``.modes.json``; ``.npz``, which keeps everything; ``.csv`` or
        ``.csv.gz``, which lose levels that do not occur and the order of levels.

    Raises
    ------
    FileAccessError
        If the file cannot be written.
    InvalidArgumentError
        If the format is unknown or cannot hold the labels.
    InvalidTypeError
        If `tensor` is not a CountTensor.

    Examples
    --------
    >>> tensor = pb.CountTensor.from_dense([[4, 0], [1, 2]], ["hair", "eye"])
    >>> pb.write_tensor(tensor, folder / "counts.npz")
    >>> pb.read_tensor(folder / "counts.npz").to_dense().tolist()
    [[4, 0], [1, 2]]
    """
    if not isinstance(tensor, CountTensor):
        raise InvalidTypeError(f"tensor must be a CountTensor, got {type(tensor).__name__}")
    path = checked_path(path)
    writer_of(path, TENSOR_WRITERS)(tensor, path)
