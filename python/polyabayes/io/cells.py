"""Counts of genes in cells: folders of 10x Genomics, and ``.h5ad`` files of AnnData."""

from __future__ import annotations

from pathlib import Path

from polyabayes._support.files import content_of, read_lines, reading
from polyabayes._support.optional import import_optional
from polyabayes._support.warnings import warn
from polyabayes.data.corpus import Corpus
from polyabayes.exceptions import DataWarning, FileFormatError, InvalidArgumentError, argument
from polyabayes.io.matrices.matrix_market import read_matrix_market
from polyabayes.io.tabular.delimited import Dialect, records_of

_MATRIX, _BARCODES, _FEATURES = "matrix.mtx", "barcodes.tsv", ("features.tsv", "genes.tsv")
_WORDS = {"id": 0, "name": 1}


def matrix_of_folder(folder: Path) -> Path | None:
    """The matrix of a folder as Cell Ranger writes it; None in other folders."""
    with reading(folder):
        return _packed_or_not(folder, _MATRIX)


def read_10x(path: Path, *, word: str = "id") -> Corpus:
    """Read a folder of 10x Genomics: matrix.mtx, barcodes.tsv and features.tsv or genes.tsv.

    Files may be gzipped. Cells are documents, named by their barcodes; features are words, by their
    "id" or their "name". Repeated names get numbers, as in ``"TBCE-1"``.
    """
    if word not in _WORDS:
        raise InvalidArgumentError(
            f"{argument('word')} must be 'id' or 'name' of the features, got {word!r}"
        )
    matrix, barcodes = matrix_of_folder(path), _packed_or_not(path, _BARCODES)
    features = next(filter(None, (_packed_or_not(path, name) for name in _FEATURES)), None)
    if matrix is None or barcodes is None or features is None:
        missing = _MATRIX if matrix is None else _BARCODES if barcodes is None else _FEATURES[0]
        raise FileFormatError(f"{path} is not a folder of 10x Genomics: it has no {missing}")
    words = []
    for number, fields in records_of(features, Dialect("\t")):
        if len(fields) <= _WORDS[word]:
            raise FileFormatError(f"{features}, line {number}: there is no {word} of the feature")
        words.append(fields[_WORDS[word]])
    counts = read_matrix_market(matrix, transpose=True).counts
    with content_of(path):
        return Corpus(counts, _distinct(words), read_lines(barcodes))


def read_h5ad(path: Path, *, layer: str | None = None) -> Corpus:
    """Read an AnnData file: cells are documents, and ``obs`` is their metadata.

    ``var_names`` are the words and ``obs_names`` the ids; the counts are in `layer`, default ``X``.
    """
    anndata = import_optional("anndata", "reading .h5ad files needs anndata")
    with reading(path):
        cells = anndata.read_h5ad(path)
    with content_of(path):
        return Corpus.from_anndata(cells, layer)


def _packed_or_not(folder: Path, name: str) -> Path | None:
    found = (folder / name, folder / f"{name}.gz")
    return next((path for path in found if path.is_file()), None)


def _distinct(names: list[str]) -> list[str]:
    """Make names unique by numbers, as AnnData does."""
    taken, seen, renamed = set(names), set[str](), []
    for name in names:
        own, number = name, 0
        while own in seen or (number and own in taken):
            number += 1
            own = f"{name}-{number}"
        seen.add(own)
        renamed.append(own)
    n_changed = sum(own != name for own, name in zip(renamed, names, strict=True))
    if n_changed:
        warn(
            f"{n_changed:,} features share their name with another and got a number, as in "
            f"{next(own for own, name in zip(renamed, names, strict=True) if own != name)!r}; "
            f"{argument('word', 'id')} uses their identifiers",
            DataWarning,
        )
    return renamed
