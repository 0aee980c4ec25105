"""Counts of genes in cells: folders and files of 10x Genomics, and ``.h5ad`` of AnnData."""

from itertools import compress, count
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from scipy import sparse

from polyabayes._support.files import content_of, read_lines, reading, refuse_announced
from polyabayes._support.optional import import_optional
from polyabayes.data.conversion.sources import Source, anndata as source_of_anndata
from polyabayes.data.corpus import Corpus
from polyabayes.data.names import say, warn
from polyabayes.exceptions import FileFormatError, InvalidArgumentError, argument
from polyabayes.io.matrices.matrix_market import read_matrix_market
from polyabayes.io.tabular.delimited import Dialect, records_of

_MATRIX, _BARCODES = "matrix.mtx", "barcodes.tsv"
_FEATURES, _WORDS = ("features.tsv", "genes.tsv", "peaks.bed"), {"id": 0, "name": 1}
_Parts: TypeAlias = "tuple[Any, list[str], list[str], list[str]]"


def matrices_of_folder(folder: Path) -> list[Path]:
    """Matrices as Cell Ranger writes them, also with the name of a sample before their names."""
    with reading(folder):
        found = sorted(folder.glob(f"*{_MATRIX}.gz")) + sorted(folder.glob(f"*{_MATRIX}"))
    by_name = {path.name.removesuffix(".gz"): path for path in found if path.name[0] != "."}
    return [by_name[_MATRIX]] if _MATRIX in by_name else [*by_name.values()]


def read_10x(
    path: Path, *, word: str = "id", feature_type: str | None = "Gene Expression"
) -> Corpus:
    """Read counts of 10x Genomics: a folder of matrix.mtx, barcodes.tsv and features.tsv, or a .h5.

    Files of a folder may be gzipped, and begin with the name of a sample; of several samples, the
    matrix of one is given. Cells are documents, named by their barcodes; features are
    words, by their "id" or their "name". Repeated names get numbers, as in ``"TBCE-1"``. Of
    features of several kinds, those of `feature_type` are kept, None keeps all.
    """
    if word not in _WORDS:
        raise InvalidArgumentError(f"{argument('word')} must be 'id' or 'name', got {word!r}")
    if len(matrices := matrices_of_folder(path) if path.is_dir() else [path]) > 1:
        raise FileFormatError(say("samples", path, len(matrices), str(matrices[0])))
    is_file = path.is_file() and not path.name.removesuffix(".gz").endswith(_MATRIX)
    counts, names, kinds, ids = _of_h5(path, word) if is_file else _of_folder(path, matrices, word)
    if feature_type is not None and len(set(kinds)) > 1:
        are_kept = np.array([kind == feature_type for kind in kinds])
        known = ", ".join(map(repr, sorted(set(kinds))))
        if not are_kept.any():
            raise FileFormatError(say("no kept", path, known, argument("feature_type", kinds[0])))
        totals = np.asarray(counts.sum(axis=0)).ravel()
        told = feature_type, totals[are_kept].sum() / max(1, totals.sum()), argument("feature_type")
        warn(say("one kind", path.name, known, *told))
        counts, names = counts[:, are_kept], [*compress(names, are_kept)]
    with content_of(path):
        return Corpus._made(Source(counts, _distinct(names), ids, words_are="measured"))


def _of_folder(path: Path, matrices: list[Path], word: str) -> _Parts:
    """Counts of cells, names and kinds of features, and barcodes, beside a matrix."""
    matrix = matrices[0] if matrices else path / _MATRIX
    start = matrix.name.removesuffix(".gz").removesuffix(_MATRIX)
    places = {x: matrix.parent / f"{start}{x}" for x in (_MATRIX, _BARCODES, *_FEATURES)}
    either = {name: (path, Path(f"{path}.gz")) for name, path in places.items()}
    found = {name: next(filter(Path.is_file, paths), None) for name, paths in either.items()}
    features, barcodes = next(filter(None, map(found.get, _FEATURES)), None), found[_BARCODES]
    if features is None or barcodes is None or not matrices:
        missing = next(start + name for name, own in found.items() if own is None)
        raise FileFormatError(f"{path} is not a folder of 10x Genomics: it has no {missing}")
    is_peak, rows = ".bed" in features.name, [*records_of(features, Dialect("\t"))]
    if short := [number for number, fields in rows if len(fields) <= _WORDS[word]]:
        raise FileFormatError(f"{features}, line {short[0]}: there is no {word} of the feature")
    names = ["{}:{}-{}".format(*x) if is_peak else x[_WORDS[word]] for _, x in rows]
    kinds = [x[2] if x[2:] and not is_peak else "" for _, x in rows]
    return read_matrix_market(matrix, transpose=True).counts, names, kinds, read_lines(barcodes)


def _of_h5(path: Path, word: str) -> _Parts:
    """The same of a file of Cell Ranger: a column a cell, compressed by columns.

    Up to version 2, the group is named by the one genome, and holds the names of the genes.
    """
    h5py = import_optional("h5py", "reading .h5 files of Cell Ranger needs h5py")
    try:
        with reading(path), h5py.File(path, "r") as file:
            group = file[next(iter(file)) if len(file) == 1 else "matrix"]
            size, n_cells = (int(x) for x in group["shape"][:])
            refuse_announced(path, n_cells, size)
            parts = tuple(group[name][:] for name in ("data", "indices", "indptr"))
            own = group.get("features", {"id": group.get("genes"), "name": group.get("gene_names")})
            texts = (own[word], own.get("feature_type", np.full(size, b"")), group["barcodes"])
            names, kinds, barcodes = ([text.decode() for text in held[:]] for held in texts)
        return sparse.csr_matrix(parts, shape=(n_cells, size)), names, kinds, barcodes
    except (KeyError, ValueError, TypeError, AttributeError, OSError) as error:
        raise FileFormatError(say("h5", str(path), error, argument("format", "h5ad"))) from error


def read_h5ad(path: Path, *, layer: str | None = None) -> Corpus:
    """Read an AnnData file: cells are documents, and ``obs`` is their metadata.

    ``var_names`` are the words and ``obs_names`` the ids; the counts are in `layer`, default ``X``.
    """
    with reading(path):
        cells = import_optional("anndata", "reading .h5ad files needs anndata").read_h5ad(path)
    with content_of(path):
        code = f"(adata := anndata.read_h5ad({str(path)!r}))"
        return Corpus._made(source_of_anndata(cells, layer, code))


def _distinct(names: list[str]) -> list[str]:
    """Make names unique by numbers, as AnnData does."""
    taken, renamed = set(names), dict[str, None]()
    for name in names:
        numbered = (f"{name}-{number}" for number in count(1))
        free = (x for x in numbered if x not in taken and x not in renamed)
        renamed[next(free) if name in renamed else name] = None
    if changed := [own for own, name in zip(renamed, names, strict=True) if own != name]:
        warn(say("shared", len(changed), changed[0], argument("word", "id")))
    return [*renamed]
