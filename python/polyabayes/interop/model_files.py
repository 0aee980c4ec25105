"""Models from files: saved by this package, or text files of MALLET."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from polyabayes._support.files import checked_path, open_binary, reading
from polyabayes.exceptions import FileFormatError
from polyabayes.interop.mallet import JAVA, from_mallet
from polyabayes.interop.stm import from_stm
from polyabayes.models import LatentDirichletAllocation, load

_STATE = b"#doc source pos typeindex type topic"
# First bytes of a file of R's save, of saveRDS, and of both if xz or bzip2 packed it.
_R = (b"RDX", b"X\n", b"\xfd7zXZ", b"BZh")


def read_model(path: str | os.PathLike[str]) -> Any:
    """Read a fitted model from a file of this package, of R's stm or of MALLET.

    Load models of other packages with those packages, and give them to :func:`log_likelihood`, or
    save them for the command line: ``from_gensim(LdaModel.load("lda")).save("lda.safetensors")``.

    Parameters
    ----------
    path : path
        A file written by ``save``; a fit of R's stm; a state file of MALLET; or a folder with the
        state and the table of ``--topic-word-weights-file`` or ``--word-topic-counts-file``.

    Returns
    -------
    LatentDirichletAllocation, PoissonFactorAnalysis, DocumentModel or LatentClassAnalysis
        As :func:`load`.

    Raises
    ------
    FileAccessError
        If the file is missing or unreadable.
    FileFormatError
        If it is damaged or of another kind. Reading never runs code from a file.

    Examples
    --------
    >>> path = folder / "model.safetensors"
    >>> pb.LatentDirichletAllocation.from_parameters(
    ...     doc_topic_prior=0.5, topic_word=[[0.5, 0.5]]
    ... ).save(path)
    >>> pb.read_model(path).components_.tolist()
    [[0.5, 0.5]]
    """
    place = checked_path(path)
    if place.is_dir():
        return _from_folder(place)
    head = _head(place)
    if head.startswith(_R):
        return from_stm(place)
    return from_mallet(place) if head.startswith((_STATE, JAVA)) else load(place)


def _head(path: Path) -> bytes:
    with open_binary(path) as stream, reading(path):
        head: bytes = stream.peek(64)[:64]
    return head


def _from_folder(folder: Path) -> LatentDirichletAllocation:
    with reading(folder):
        heads = {path: _head(path) for path in sorted(folder.iterdir()) if path.is_file()}
    states = [path for path, head in heads.items() if head.startswith(_STATE)]
    if len(states) != 1:
        raise FileFormatError(f"{folder} holds {len(states)} states of MALLET; name one file")
    kinds = {path: _kind_of_table(head) for path, head in heads.items()}
    tables = {kind: path for path, kind in kinds.items()}
    for kind, path in tables.items():
        if kind and list(kinds.values()).count(kind) > 1:
            raise FileFormatError(
                f"{folder} holds several tables of MALLET like {path.name}; name the files of one "
                "run for from_mallet"
            )
    return from_mallet(
        states[0], topic_word_weights=tables.get("weights"), word_topic_counts=tables.get("counts")
    )


def _kind_of_table(head: bytes) -> str:
    """Which of MALLET's tables a file is, by its first line."""
    line = head.split(b"\n")[0]
    fields = line.split(b"\t")
    if len(fields) == 3 and fields[0] == b"0" and fields[2][:1].isdigit():
        return "weights"
    words = line.split(b" ")
    return "counts" if words[0] == b"0" and b":" in words[-1] else ""
