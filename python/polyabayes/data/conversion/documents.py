"""Parts of a corpus from documents in any accepted form."""

from collections.abc import Iterable, Mapping, Set
from itertools import chain, count, islice, repeat
from typing import Any

import numpy as np
from scipy import sparse

from polyabayes._support import checks
from polyabayes._support.output.tables import counted, some
from polyabayes.data.conversion import frames, numbers, sources
from polyabayes.data.conversion.roles import NamedColumns, Roles, roles_of
from polyabayes.data.conversion.table import PLAIN_KINDS, Table
from polyabayes.data.conversion.texts import Place, count_texts, places_of, without_missing
from polyabayes.data.counts import checked_exposure, checked_words, warn_of_sums
from polyabayes.data.names import refusal, say, warn
from polyabayes.exceptions import InvalidArgumentError, InvalidTypeError, argument


def source_of(documents: Any, name: str) -> sources.Source:
    """Parts of a corpus from documents in any form but a corpus; the counts are checked.

    Forms are AnnData, a corpus of tomotopy, a table, matrices and stm's documents of R, lists of
    (id, count) as in gensim, lists of tokens, texts, or a matrix of counts.
    """
    if sources.is_anndata(documents):
        return sources.anndata(documents)
    if sources.is_of(documents, "tomotopy", "Corpus"):
        texts = [(list(document), document.uid) for document in documents]
        ids = [str(uid) for _, uid in texts] if all(uid for _, uid in texts) else None
        return counted_texts((x for x, _ in texts), None, {}, are_tokens=True)._replace(ids=ids)
    if (frame := frames.frame_of(documents)) is not None:
        table = frames.FrameTable(frame, name, "Corpus.from_table")
        return source_of_table(table) if frame.size else sources.Source(frame.to_numpy())
    return sources.of_r(documents) or _of_lists(documents) or sources.Source(documents)


def _of_lists(documents: Any) -> sources.Source | None:
    """Counts of lists of pairs or of tokens, or of texts; None for anything else."""
    if getattr(documents, "ndim", 0) == 1 and documents.dtype.kind not in "biufc":
        found = sources.of_r(documents.tolist()) or _of_lists(documents.tolist())
        return found and found._replace(ids=frames.row_names(documents))
    if getattr(checks.index_of(documents), "nlevels", 1) == 2 and documents.ndim == 1:
        raise InvalidTypeError("a Series counts pairs: use series.unstack(fill_value=0)")
    _refuse_mappings(documents)
    if not isinstance(documents, (list, tuple)) or not documents:
        return None
    if any(document is None or isinstance(document, (str, bytes)) for document in documents):
        return counted_texts(documents, None, {}, are_tokens=False)
    if not all(isinstance(document, (list, tuple, Set)) for document in documents):
        return None
    entry = next((entry for document in documents for entry in document), None)
    if isinstance(entry, str):
        return counted_texts(documents, None, {}, are_tokens=True)
    return sources.bags(documents) if entry is None or isinstance(entry, tuple) else None


def _refuse_mappings(documents: Any) -> None:
    """Refuse mappings, lists of mappings or of lists of sentences, and tables of several parts.

    The message has code that is taken.
    """
    is_mapping = isinstance(documents, Mapping) and not sparse.issparse(documents)
    is_list = isinstance(documents, (list, tuple))
    first = next(iter(documents.values() if is_mapping else documents if is_list else ()), None)
    inner = next(iter(first), None) if isinstance(first, (list, tuple)) else None
    code = "pandas.Series(documents)" if is_mapping else ""
    if sources.is_of(documents, "mudata", "MuData"):
        code = f"documents[{next(iter(documents.mod), '')!r}]"
    elif sources.is_of(documents, "anndata", "Raw"):
        code = "documents.to_adata()"
    elif isinstance(first, Mapping):
        code = "[*documents]" if is_list else "[*documents.values()], [*documents]"
        code = f"pandas.DataFrame({code}).fillna(0)"
    elif isinstance(inner, (list, tuple)) and isinstance(next(iter(inner), None), str):
        code = "[[*itertools.chain(*document)] for document in documents]"
    if code:
        raise InvalidTypeError(say("mapping", type(documents).__name__, code))


def source_of_table(
    table: Table,
    named: NamedColumns | None = None,
    vocabulary: Any = None,
    options: Mapping[str, Any] | None = None,
    on_empty: str | None = None,
) -> sources.Source:
    """Count the documents of a table.

    A row is a document or a count. `named` are columns that the caller named; `options` are options
    of texts.
    """
    named = NamedColumns() if named is None else named
    if not table.n_rows:
        raise InvalidArgumentError(f"{table.title} holds no documents")
    roles = roles_of(table, named)
    if options and roles.layout != "texts":
        raise refusal("texts", ", ".join(options), table.options("text"))
    if roles.layout == "texts":
        table.refuse_other_kinds(roles.columns[0])
        texts = without_missing(table, roles.columns[0], on_empty)
        are_tokens = table.kind(roles.columns[0]) == "tokens"
        sizes, metadata = _beside(table, roles, named.exposure)
        found = counted_texts(texts, vocabulary, options or {}, are_tokens=are_tokens)
        found = found._replace(ids=ids_of(table, roles), exposure=sizes, metadata=metadata)
        return without_empty(found, on_empty, table.place)
    if roles.layout == "long":
        return _from_counts(table, roles, named.exposure)
    counts, words = table.counts(roles.columns), roles.columns if table.has_headers else None
    beside = _beside(table, roles, named.exposure)
    return sources.Source(counts, words, ids_of(table, roles), *beside)


def counted_texts(
    documents: Iterable[Any], vocabulary: Any, options: Mapping[str, Any], *, are_tokens: bool
) -> sources.Source:
    """Counts and words of texts, or of lists of tokens, which are checked."""
    vocabulary = None if vocabulary is None else checked_words(vocabulary)
    if are_tokens:
        known = repeat(None if vocabulary is None or options else set(vocabulary))
        documents = map(sources.checked_tokens, count(), documents, known)
        start: list[Any] = []
        for tokens in documents:
            start.append(tokens)
            if tokens:
                break
        if not any(start) and vocabulary is None:
            return sources.bags(start)
        documents = chain(start, documents)
    counts, words = count_texts(documents, vocabulary, options, are_tokens=are_tokens)
    return sources.Source(counts, words, words_are="gathered" if vocabulary is None else "given")


def source_of_lists(
    documents: Iterable[Any],
    vocabulary: Any,
    ids: Any,
    options: Mapping[str, Any],
    on_empty: str | None,
    place: Place = "document {}".format,
) -> sources.Source:
    """Count texts or lists of tokens; the first document decides which."""
    stream = iter(sources.iterated(documents, "documents", "texts or lists of tokens"))
    start = list(islice(stream, 1))
    are_tokens = not (start and isinstance(start[0], (str, bytes)))
    found = counted_texts(chain(start, stream), vocabulary, options, are_tokens=are_tokens)
    names = frames.row_names(documents) if ids is None else ids
    return without_empty(found._replace(ids=names), on_empty, place)


def without_empty(found: sources.Source, on_empty: str | None, place: Place) -> sources.Source:
    """Apply `on_empty` to documents without words.

    They are refused, dropped with a warning that lists their places, or kept.
    """
    if on_empty not in ("drop", "raise"):
        return found
    if not (is_empty := np.asarray(found.counts.sum(axis=1)).ravel() == 0).any():
        return found
    places = places_of(np.flatnonzero(is_empty), place)
    number = counted(int(is_empty.sum()), "document")
    if on_empty == "raise" or is_empty.all():
        told = f"{number} without words, at {places}: drop them by {argument('on_empty', 'drop')}, "
        raise InvalidArgumentError(f"{told}or keep them by {argument('on_empty', 'keep')}")
    warn(f"{number} without words dropped, at {places}")
    return found.rows(~is_empty)


def ids_of(table: Table, roles: Roles) -> list[str] | None:
    """Names of the documents of a table with a row for each."""
    own = roles.ids
    return table.row_names if own is None else [*map(frames.name_of, table.complete(own))]


def _beside(table: Table, roles: Roles, exposure: str | None, rows: Any = None) -> tuple[Any, Any]:
    """Sizes and metadata of documents; `rows` are the documents of rows, which must agree."""
    sizes = None if exposure is None else checked_exposure(table.numbers(exposure), table.n_rows)
    if rows is None:
        return sizes, table.data_frame(roles.metadata) if roles.metadata else None
    first = np.unique(rows, return_index=True)[1]
    if sizes is not None and (sizes != sizes[firsts := first[rows]]).any():
        raise refusal("exposures", table.place(int(np.argmax(sizes != sizes[firsts]))))
    pairs = {x: zip(rows.tolist(), table.values(x), strict=True) for x in roles.metadata}
    held = {x: {(row, str(y)) for row, y in own if y is not None} for x, own in pairs.items()}
    # Programs write what an order has only once, in one of its rows.
    kept = [x for x, own in held.items() if len(own) == len(dict(own))]
    if left := [name for name in held if name not in kept]:
        warn(say("left out", some(left, 8), table.title))
    metadata = table.data_frame(kept).groupby(rows).first() if kept else None
    return None if sizes is None else sizes[first], metadata


def _from_counts(table: Table, roles: Roles, exposure: str | None) -> sources.Source:
    """Sums of the rows of each document and word; the words are sorted."""
    found = [list(map(frames.name_of, table.complete(name))) for name in roles.columns]
    # Documents are in the order of appearance.
    labels = list(dict.fromkeys(found[0])), numbers.label_order(set(found[1]))
    places = [{label: place for place, label in enumerate(own)} for own in labels]
    rows, columns = (np.array([places[k][label] for label in found[k]]) for k in (0, 1))
    counts = np.ones(table.n_rows, dtype=np.int64)
    if len(roles.columns) > 2:
        counts = table.counts(roles.columns[2:]).toarray().ravel()
    names = [x for x in roles.metadata if table.kind(x) in PLAIN_KINDS]
    shown = roles.columns[: 2 * bool(names)]
    warn_of_sums(table.data_frame([*shown, *names]), shown, (), counts, table.call)
    matrix = sparse.coo_matrix((counts, (rows, columns)), shape=tuple(map(len, labels)))
    beside = _beside(table, roles, exposure, rows)
    return sources.Source(matrix, labels[1], labels[0], *beside, words_are="gathered")
