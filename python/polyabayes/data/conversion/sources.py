"""Counts from objects of other packages: tokens, bags of ids, AnnData."""

import re
from collections.abc import Collection, Iterable, Mapping, Set
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from polyabayes._support.checks import is_single
from polyabayes._support.output.tables import some
from polyabayes.data.counts import Words, checked_counts
from polyabayes.data.names import refusal, say, warn
from polyabayes.exceptions import InvalidArgumentError, InvalidTypeError, argument

# Rows per block of a backed file, and those that tell whether a layer holds counts.
_BLOCK_ROWS, _ROWS_LOOKED_AT, _OF_COUNTS = 1_000, 100, re.compile("(?i)count|raw|umi")


class Source(NamedTuple):
    """Parts of a corpus.

    `has_open_width` means that there may be words beyond the last column. `words_are` says where
    the words come from: "gathered" from the documents, so that others do not occur, "given" with
    the counts, or "measured", so that others were not counted.
    """

    counts: Any
    vocabulary: Words | list[str] | None = None
    ids: Words | list[str] | None = None
    exposure: Any = None
    metadata: Any = None
    has_open_width: bool = False
    words_are: str = "given"

    def rows(self, are_kept: NDArray[np.bool_]) -> "Source":
        """The documents where the mask is True."""
        held = {name: getattr(self, name) for name in ("counts", "exposure", "metadata")}
        held["ids"] = None if self.ids is None else np.asarray(self.ids, dtype=object)
        return self._replace(**{name: x[are_kept] for name, x in held.items() if x is not None})


def checked_tokens(number: int, document: Any, known: Collection[str] | None = None) -> list[str]:
    """The tokens of a document; those that are not `known`, if given, are refused."""
    if isinstance(document, (str, bytes)):
        raise InvalidTypeError(f"document {number} is a text, but earlier ones are lists of tokens")
    tokens = list(iterated(document, f"document {number}", "tokens"))
    if odd := [token for token in tokens if not isinstance(token, str)]:
        raise InvalidTypeError(say("token", number, odd[0]))
    if odd := [] if known is None else [token for token in tokens if token not in known]:
        raise refusal("unknown", number, odd[0])
    return tokens


def bags(documents: Iterable[Any], dictionary: Any = None) -> Source:
    """Count documents in gensim's form, each a list of (id, count).

    The documents are read once. Ids between those of the dictionary are called ``#id``.
    """
    rows, columns, values, number = list[int](), list[int](), list[Any](), -1
    for number, document in enumerate(iterated(documents, "corpus", "lists of (id, count)")):
        for pair in iterated(document, f"document {number}", "pairs (id, count)"):
            try:
                column, count = pair
                is_id = int(column) == column and column >= 0
            except (TypeError, ValueError):
                is_id = False
            if not is_id:
                raise InvalidTypeError(say("no pair", number, pair)) from None
            rows.append(number)
            columns.append(int(column))
            values.append(count)
    n_words = 1 + max(columns, default=-1)
    size = n_words if dictionary is None else 1 + max(map(int, dictionary.keys()), default=-1)
    if n_words > size:
        raise refusal("other ids", n_words - 1, size - 1)
    places = np.array([rows, columns], dtype=np.int64)
    data = np.array(values) if columns else np.zeros(0, dtype=np.int64)
    counts = sparse.coo_matrix((data, tuple(places)), shape=(number + 1, max(size, 1)))
    words = None if dictionary is None else words_by_id(dictionary, size)
    return Source(counts, words, has_open_width=words is None)


def words_by_id(dictionary: Any, n_words: int) -> list[str]:
    """Words of a gensim Dictionary or mapping; ids that it skips are called ``#id``."""
    # A gensim Dictionary makes its words by id on first access, and lists them by keys().
    known = {int(key): str(dictionary[key]) for key in dictionary.keys()}  # noqa: SIM118
    return [known.get(column, f"#{column}") for column in range(n_words)]


def of_r(value: Any) -> Source | None:
    """Counts that rdata has read: a DocumentTermMatrix, a dgCMatrix, a dfm, or documents of stm.

    These are words, counted from 1, over their counts, also beside a vocabulary and metadata.
    """
    held = value if isinstance(value, dict) else getattr(value, "__dict__", {})
    documents = held.get("documents", value) if "vocab" in held else value
    ids = [*documents] if isinstance(documents, dict) else None
    parts = documents if ids is None else [*documents.values()]
    are_counts = isinstance(parts, list | tuple) and len(parts) > 0
    if are_counts and all(isinstance(x, np.ndarray) and x.ndim == len(x) == 2 for x in parts):
        found = bags(zip(words - 1, counts, strict=True) for words, counts in parts)
        return found._replace(vocabulary=held.get("vocab"), ids=ids, metadata=held.get("meta"))
    if {"i", "j", "v", "nrow", "ncol", "dimnames"} <= held.keys():
        places, shape = (held["i"] - 1, held["j"] - 1), (*held["nrow"], *held["ncol"])
        counts: Any = sparse.coo_array((held["v"], places), shape=shape)
    elif {"i", "p", "x", "Dim", "Dimnames"} <= held.keys():
        counts = sparse.csc_array((held["x"], held["i"], held["p"]), shape=(*held["Dim"],))
    else:
        return None
    names = held.get("dimnames", held.get("Dimnames"))
    ids, words = names.values() if isinstance(names, dict) else names or (None, None)
    is_turned = isinstance(names, dict) and next(iter(names)) == "Terms"
    return Source(counts.T, ids, words) if is_turned else Source(counts, words, ids)


def is_stream(value: Any) -> bool:
    """Whether a value can only be iterated over, such as a corpus that gensim reads from a file.

    Tables, arrays and other types with known attributes are not streams.
    """
    known = ("__array__", "__arrow_c_stream__", "columns", "shape", "keys", "with_format")
    other = isinstance(value, (str, bytes, list, tuple, Set)) or is_of(value, "tomotopy", "Corpus")
    return hasattr(value, "__iter__") and not (other or any(hasattr(value, x) for x in known))


def is_document(value: Any) -> bool:
    """Whether an entry of a stream is a document (text, tokens or bag), not a block."""
    are_parts = isinstance(value, (list, tuple)) and all(isinstance(x, (str, tuple)) for x in value)
    return isinstance(value, str) or are_parts


def is_anndata(value: Any) -> bool:
    """Whether a value is an AnnData object; anndata is not imported."""
    return is_of(value, "anndata", "AnnData")


def is_of(value: Any, package: str, kind: str) -> bool:
    """Whether a value is of a class of a package, which is not imported."""
    bases = [(x.__module__.partition(".")[0], x.__name__) for x in type(value).__mro__]
    return (package, kind) in bases


def anndata(data: Any, layer: str | None = None, code: str = "adata") -> Source:
    """Count a layer of an AnnData object: cells are documents, variables are words.

    A backing file is read in blocks of rows; the default layer is ``X``. Messages call the object
    adata; `code` makes it, if it was read from a file.
    """
    known = ["X", *data.layers]
    if layer is not None and (not isinstance(layer, str) or layer not in known):
        raise InvalidArgumentError(f"the AnnData has no layer {layer!r:.100}, only {some(known)}")
    is_layer = layer is not None and layer in data.layers
    name, stored = (f"layers[{layer!r}]", data.layers[layer]) if is_layer else ("X", data.X)
    others, same = _layers_of_counts(data, stored)
    named = [other for other in others if _OF_COUNTS.search(other)]
    call = "it has no layer of counts; give the raw counts"
    if first := next(iter(named or others), None):
        call = say("layer", some(others), argument("layer", first), code, first)
    elif data.raw is not None and not _fractions(data.raw.X[:_ROWS_LOOKED_AT]).any():
        call = say("in raw", code + ".to_memory()" * data.isbacked)
    if stored is None:
        raise InvalidArgumentError(f"the AnnData has no X: {call}")
    if not data.var_names.is_unique:
        raise refusal("two variables", data.var_names[data.var_names.duplicated()][0], code)
    if len(kinds := sorted({*map(str, data.var.get("feature_types", ()))})) > 1:
        warn(say("kinds", some(kinds), code, kinds[-1]))
    # Matrices in files are read in blocks.
    is_read = sparse.issparse(stored) or isinstance(stored, np.ndarray)
    step = max(len(data), 1) if is_read else _BLOCK_ROWS
    rows = range(0, max(len(data), 1), step)
    parts = ((row, stored if is_read else stored[row : row + step]) for row in rows)
    blocks = [_counts_of_cells(part, name, data, row, call) for row, part in parts]
    if layer is None and named:
        raise refusal("rounded", " or ".join(argument("layer", x) for x in ("X", *same)), call)
    counts = sparse.vstack(blocks, format="csr") if len(blocks) > 1 else blocks[0]
    words, ids = ([str(name) for name in names] for names in (data.var_names, data.obs_names))
    metadata = data.obs if len(data.obs.columns) else None
    return Source(counts, words, ids, metadata=metadata, words_are="measured")


def _layers_of_counts(data: Any, stored: Any) -> tuple[list[str], list[str]]:
    """Layers that begin with other counts than those stored, and with the same.

    The others are that of scVelo first, then by size.
    """
    heads = {name: sparse.csr_array(held[:_ROWS_LOOKED_AT]) for name, held in data.layers.items()}
    own = None if stored is None else sparse.csr_array(stored[:_ROWS_LOOKED_AT], dtype=float)
    whole = [name for name, head in heads.items() if not _fractions(head).any()]
    others = [name for name in whole if own is None or (own - heads[name]).nnz]
    others.sort(key=lambda name: (name.lower() != "spliced", -heads[name].sum()))
    return others, [name for name in whole if name not in others]


def _counts_of_cells(block: Any, name: str, data: Any, start: int, call: str) -> Any:
    entries: Any = sparse.coo_array(block)
    if (is_fraction := _fractions(entries)).any():
        cell = int(np.argmax(is_fraction))
        row, column = (int(axis[cell]) for axis in (entries.row, entries.col))
        place = f"cell {data.obs_names[start + row]!r}, variable {data.var_names[column]!r}"
        raise refusal("logs", name, entries.data[cell], place, call)
    return checked_counts(block, f"{name} (rows from {start:,})" if start else name)


def _fractions(block: Any) -> NDArray[np.bool_]:
    values = sparse.coo_array(block).data
    return np.asarray(np.isfinite(values) & (values % 1 != 0))


def iterated(values: Any, name: str, content: str) -> Iterable[Any]:
    """Values that are no text, mapping or number; messages call them `name`, of some content."""
    if isinstance(values, Mapping) or is_single(values) or not hasattr(values, "__iter__"):
        raise InvalidTypeError(f"{name} must hold {content}, got {values!r:.100}")
    return values
