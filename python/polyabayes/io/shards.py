"""Writing shards from corpora, streams of documents, and files larger than memory."""

import os
from collections.abc import Iterator
from itertools import chain, islice
from typing import Any

from polyabayes._support import checks
from polyabayes._support.files import STANDARD_INPUT, checked_path
from polyabayes.data.conversion import sources
from polyabayes.data.corpus import Corpus, as_corpus, of_layer
from polyabayes.data.names import refusal
from polyabayes.exceptions import InvalidArgumentError, argument
from polyabayes.io.formats import format_of
from polyabayes.io.matrices.ldac import ldac_blocks
from polyabayes.io.tabular.parquet import parquet_blocks
from polyabayes.io.vocabularies import VocabularyLike, resolve_vocabulary
from polyabayes.scale.shard_writing import write_blocks
from polyabayes.scale.shards import BLOCK_DOCUMENTS, Shards


def write_shards(
    corpus: Any,
    folder: str | os.PathLike[str],
    n_shards: int | None = None,
    *,
    layer: str | None = None,
    vocabulary: VocabularyLike | None = None,
    text: str | None = None,
    **options: Any,
) -> Shards:
    """Write a corpus, or a stream of its parts, as shards with about equally many tokens.

    A stream is read once and copied once on the disk; at most one block of it is in memory.

    Parameters
    ----------
    corpus : Corpus, matrix, AnnData, path or iterable of Corpus or matrix
        One of:

        * documents in memory; exposures, ids and metadata of a Corpus are kept;
        * a stream of texts, lists of tokens or bags, or of lists of them, which is gathered in
          memory unless there is a `vocabulary`;
        * a stream of blocks of documents over the same words;
        * a file, which may be larger than memory: LDA-C (``.ldac``, ``.dat`` or ``.lda-c``, plain
          or gzipped), or ``.parquet``: a table as :func:`read_corpus` takes it, with the rows of
          a document next to each other.
    folder : path-like
        Folder to write to; created if missing. Shards in it are replaced.
    n_shards : int, optional
        Number of shards; default: 32 million tokens per shard.
    layer : str, optional
        Layer of an AnnData that holds the counts; default ``X``.
    vocabulary : path or sequence of str, optional
        For files and streams of texts or tokens: the words, as a sequence or a file with one word
        per line; others are dropped from texts. Without it, files are read twice, first for the
        words.
    text : str, optional
        For ``.parquet``: the column of texts or of lists of tokens.
    **options
        For ``.parquet``: further options of tables and of texts, such as ``ids``, ``stop_words``
        and ``min_df``, as for :func:`read_corpus`.

    Returns
    -------
    Shards

    Raises
    ------
    FileAccessError
        If the folder cannot be written, or the file cannot be read. Earlier shards in the folder
        stay until all documents are read; no part of the new shards is left.
    FileFormatError
        If the content of the file does not match its format; the message names the line.
    InvalidArgumentError, InvalidCountsError, InvalidTypeError
        If there are no documents, blocks differ in their words, or counts are invalid.

    Examples
    --------
    >>> blocks = ([[2, 0, 1], [0, 3, 0]] for _ in range(3))
    >>> pb.write_shards(blocks, folder, n_shards=2)
    <Shards: 2 of 6 documents, 3 words, 18 tokens>
    """
    path = checked_path(folder, "folder")
    number = None if n_shards is None else checks.whole_number("n_shards", n_shards)
    options |= {} if text is None else {"text": text}
    return write_blocks(_blocks(corpus, layer, vocabulary, options), path, number)


def _blocks(
    corpus: Any, layer: str | None, vocabulary: VocabularyLike | None, options: dict[str, Any]
) -> Iterator[Corpus]:
    path, kind = None, None
    if isinstance(corpus, (str, os.PathLike)):
        path = checked_path(corpus, "corpus")
        kind = "ldac" if path == STANDARD_INPUT else format_of(path)
        if kind not in ("ldac", "parquet"):
            raise refusal("blocks", str(path))
    if options and kind != "parquet":
        raise InvalidArgumentError(f"{argument(next(iter(options)))} is for a .parquet file")
    if not sources.is_anndata(corpus):
        of_layer(corpus, layer)
    words = resolve_vocabulary(vocabulary)
    if path is not None:
        is_ldac = kind == "ldac"
        yield from ldac_blocks(path, words) if is_ldac else parquet_blocks(path, words, **options)
        return
    if isinstance(corpus, Iterator) or sources.is_stream(corpus):
        stream = iter(corpus)
        first = list(islice(stream, 1))
        parts = chain(first, stream)
        is_block = first and isinstance(first[0], list) and not sources.is_document(first[0])
        if is_block and sources.is_document(first[0][0]):
            # Blocks of documents: the documents, one after the other.
            parts, first = chain.from_iterable(parts), first[0]
        if not any(map(sources.is_document, first)):
            yield from (as_corpus(block, "a block of corpus") for block in parts)
        elif words is None:
            # Words are known only after the last document if there is no vocabulary.
            yield as_corpus(parts, "corpus")
        while words is not None and (some := list(islice(parts, BLOCK_DOCUMENTS))):
            yield Corpus.from_documents(some, words)
        return
    if words is not None:
        raise InvalidArgumentError(f"{argument('vocabulary')} is for files and streams only")
    if not sources.is_anndata(corpus):
        yield as_corpus(corpus, "corpus")
        return
    for start in range(0, len(corpus), BLOCK_DOCUMENTS):
        yield Corpus.from_anndata(corpus[start : start + BLOCK_DOCUMENTS], layer)
