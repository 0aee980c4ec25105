"""Matrix Market files, and UCI bags of words, which are the same with another header."""

import io
import re
from codecs import BOM_UTF8
from pathlib import Path

from scipy.io import mminfo, mmread, mmwrite

from polyabayes._support.files import content_of, open_binary, reading, refuse_announced, replacing
from polyabayes._support.machine import memory_of_machine
from polyabayes.data.corpus import Corpus
from polyabayes.data.counts import Words
from polyabayes.data.names import say, warn
from polyabayes.exceptions import FileFormatError, argument
from polyabayes.io.integers import COUNT, DECIMAL, PLACE, check_lines, is_number, shown
from polyabayes.io.vocabularies import words_beside

# Two lines, so that the entries begin at the fourth line, as in a bag of words, and messages name
# the right line.
_BANNER = b"%%MatrixMarket matrix coordinate integer general\n%\n"
# The banner, comments and the line of sizes.
_HEADER = re.compile(rb"(?:[ \t\r]*(?:%[^\n]*)?\n)*+[^\n]*\n?")
_KINDS = ("integer", "real", "unsigned-integer", "pattern", "general", "symmetric")
# Endings of the names of genes and of cells beside a matrix of kallisto, and of alevin-fry.
_CELL_BYTES, _BESIDE = 16, ((".genes.txt", ".barcodes.txt"), ("_cols.txt", "_rows.txt"))


def read_matrix_market(path: Path, *, transpose: bool = False) -> Corpus:
    """Read a Matrix Market file of counts.

    Formats are coordinate or array; integer, real or pattern; general or symmetric. Repeated
    entries are summed; entries of a pattern count once. With `transpose`, rows are words (genes)
    and columns are documents (cells).
    """
    if not transpose and any(path.parent.glob("*barcodes.tsv*")):
        how = ("format", "10x") if "matrix.mtx" in path.name else ("transpose", True)
        warn(say("of 10x", path, argument(*how)))
    start = re.sub(r"\.\w+(\.gz)?$", "", str(path))
    for names in _BESIDE:
        if all(Path(start + name).is_file() for name in names):
            code = f"pathlib.Path({start!r} + x).read_text().split() for x in {names}"
            warn(say("beside", path, code))
    return _corpus(path, _content(path), None, transpose=transpose)


def read_docword(path: Path, vocabulary: Words | None = None) -> Corpus:
    """Read a UCI ``docword`` file, plain or gzipped; its ids are counted from 1.

    Three lines are the numbers of documents, words and further lines ``document word count``.
    Documents without a line are empty.
    """
    if not (content := _content(path)).strip():
        raise FileFormatError(f"{path} holds no documents")
    *sizes, body = (*content.split(b"\n", 3), b"", b"", b"")[:4]
    for number, line in enumerate(sizes, start=1):
        if not is_number(line.strip()):
            raise FileFormatError(say("no size line", path, number, shown(line.decode("latin-1"))))
    content = _BANNER + b" ".join(map(bytes.strip, sizes)) + b"\n" + body
    return _corpus(path, content, vocabulary, transpose=False)


def write_matrix_market(corpus: Corpus, path: Path) -> None:
    """Write a Matrix Market file, gzipped if it ends in ``.gz``, without ids of documents.

    Words, if any, go to a file of the same name with the ending ``.vocab``.
    """
    with words_beside(corpus.vocabulary, path), replacing(path) as handle:
        mmwrite(handle, corpus.counts, field="integer", symmetry="general")


def _content(path: Path) -> bytes:
    with open_binary(path) as stream, reading(path):
        content: bytes = stream.read().removeprefix(BOM_UTF8)
    # SciPy reads beyond the end of a file that ends in a carriage return.
    return content + b"\n" if content.endswith(b"\r") else content


def _corpus(path: Path, content: bytes, vocabulary: Words | None, *, transpose: bool) -> Corpus:
    with reading(path):
        n_rows, n_columns, n_entries, layout, field, symmetry = mminfo(io.BytesIO(content))
        if {field, symmetry} - set(_KINDS):
            raise FileFormatError(say("no kind", path, field, symmetry, ", ".join(_KINDS)))
        if symmetry == "symmetric" and n_rows != n_columns:
            raise FileFormatError(f"{path} is symmetric, but of shape {n_rows} x {n_columns}")
        refuse_announced(path, n_rows, n_columns)
        if n_entries * _CELL_BYTES > memory_of_machine():
            raise FileFormatError(f"{path} announces {n_entries:,} entries, more than memory holds")
        # SciPy reads numbers from the start of a line, whatever follows.
        entry = [PLACE] * 2 * (layout == "coordinate")
        entry += [] if field == "pattern" else [DECIMAL if field == "real" else COUNT]
        what = ", ".join(["whole numbers: row", "column", "count"][: len(entry)])
        what = what if layout == "coordinate" else "a count"
        start = next(_HEADER.finditer(content)).end()
        check_lines(path, content, rb"[ \t]++".join(entry), what, start=start)
        matrix = mmread(io.BytesIO(content))
    with content_of(path):
        return Corpus(matrix.T if transpose else matrix, vocabulary)
