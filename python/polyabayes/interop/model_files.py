"""Models of other programs from their files, without running any code that a file holds."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polyabayes._support.files import checked_path, content_of, open_binary, reading
from polyabayes.exceptions import FileFormatError, MissingDependencyError
from polyabayes.interop._pickles import MalformedPickleError, Stored, read_pickle
from polyabayes.interop.gensim import from_gensim
from polyabayes.interop.mallet import from_mallet
from polyabayes.interop.tomotopy import from_tomotopy
from polyabayes.io.archives import read_array
from polyabayes.models import LatentDirichletAllocation, PoissonFactorAnalysis, load

__all__ = ["read_model"]

_STATE_OF_MALLET = b"#doc source pos typeindex type topic"
_PICKLE = b"\x80"
_JAVA = b"\xac\xed"
# Time and memory that tomotopy has to load a file in a process of its own: some damaged ones never
# end, or announce more than any machine has. A busy machine may take longer for the same work.
_SECONDS, _SECONDS_A_BYTE, _PATIENCE = 4, 2e-7, 15
_BYTES, _BYTES_A_BYTE = 4 << 30, 64
_LOADING = """
import sys, warnings
warnings.simplefilter("ignore")
try:
    import resource
    resource.setrlimit(resource.RLIMIT_AS, (int(sys.argv[3]),) * 2)
    resource.setrlimit(resource.RLIMIT_CPU, (int(sys.argv[4]),) * 2)
except (ImportError, ValueError):
    pass
import numpy, tomotopy
model = tomotopy.LDAModel.load(sys.argv[1])
words = [str(word) for word in model.used_vocabs]
rows = [model.get_topic_word_dist(topic, normalize=False) for topic in range(model.k)]
priors = [model.get_word_prior(word) for word in words]
numpy.savez(
    sys.argv[2], kind=type(model).__name__, tw=int(model.tw), k=model.k, eta=float(model.eta),
    alpha=numpy.asarray(model.alpha), steps=model.global_step, words=numpy.array(words, dtype=str),
    rows=numpy.array(rows), priors=numpy.array(priors),
)
"""


def read_model(
    path: str | os.PathLike[str],
) -> LatentDirichletAllocation | PoissonFactorAnalysis:
    """Read a fitted model, ours or another program's, by what the file holds.

    Parameters
    ----------
    path : path
        A file that ``save`` wrote; the file that gensim's ``LdaModel.save`` was given, or the
        folder that holds it and the files beside it; a ``.bin`` of tomotopy; a state of MALLET, or
        a folder with the state and the table of ``--topic-word-weights-file`` or
        ``--word-topic-counts-file``.

    Returns
    -------
    LatentDirichletAllocation or PoissonFactorAnalysis

    Raises
    ------
    FileAccessError
        If the file is missing or unreadable.
    FileFormatError
        If it is damaged or none of these. Pickles are read for gensim only, and of those nothing
        but numbers and words; joblib and other pickles are refused, as loading them runs code.
    MissingDependencyError
        If tomotopy is not installed, which alone reads its files. It does so in a process of its
        own, because it ends the process that gives it a bad file.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import polyabayes as pb
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "model.safetensors"
    >>> pb.LatentDirichletAllocation.from_parameters(
    ...     doc_topic_prior=0.5, topic_word=[[0.5, 0.5]]
    ... ).save(path)
    >>> pb.interop.read_model(path).components_.tolist()
    [[0.5, 0.5]]
    """
    place = checked_path(path)
    if place.is_dir():
        return _from_folder(place)
    head = _head(place)
    if head.startswith((_STATE_OF_MALLET, _JAVA)):
        return from_mallet(place)
    if head.startswith(_PICKLE):
        return _read_gensim(place)
    if head.startswith(b"LDA\0"):
        return from_tomotopy(_load_tomotopy(place))
    return load(place)


def _head(path: Path) -> bytes:
    with open_binary(path) as stream, reading(path):
        head: bytes = stream.peek(64)[:64]
    return head


def _from_folder(folder: Path) -> LatentDirichletAllocation:
    """The one model of a folder: gensim's file beside its ``.state``, or files of MALLET."""
    with reading(folder):
        files = sorted(path for path in folder.iterdir() if path.is_file())
    of_gensim = [path for path in files if path.with_name(f"{path.name}.state") in files]
    states = [path for path in files if _head(path).startswith(_STATE_OF_MALLET)]
    if len(of_gensim) + len(states) != 1:
        raise FileFormatError(
            f"{folder} holds {len(of_gensim)} models of gensim (a file and its .state) and "
            f"{len(states)} states of MALLET; name one file"
        )
    if of_gensim:
        return _read_gensim(of_gensim[0])
    tables = {_kind_of_table(_head(path)): path for path in files if path not in states}
    return from_mallet(
        states[0],
        topic_word_weights=tables.get("weights"),
        word_topic_counts=tables.get("counts"),
    )


def _kind_of_table(head: bytes) -> str:
    """Which of MALLET's tables a file is, by its first line."""
    line = head.split(b"\n")[0]
    fields = line.split(b"\t")
    if len(fields) == 3 and fields[0] == b"0" and fields[2][:1].isdigit():
        return "weights"
    words = line.split(b" ")
    return "counts" if words[0] == b"0" and b":" in words[-1] else ""


def _unpickle(path: Path) -> Any:
    with open_binary(path) as stream, reading(path):
        content = stream.read()
    with reading(path):
        try:
            return read_pickle(content, "gensim")
        except MalformedPickleError as error:
            raise FileFormatError(
                f"{path} is no model that gensim saved, or damaged ({error}); pickles and joblib "
                "files of other packages run code when they are loaded: load them in Python and "
                "give the model to polyabayes.log_likelihood"
            ) from error


def _read_gensim(path: Path) -> LatentDirichletAllocation:
    """What LdaModel.save wrote: the model, ``.state``, ``.id2word`` and large arrays beside it."""
    model = _unpickle(path)
    state_path = path.with_name(f"{path.name}.state")
    if not isinstance(model, Stored) or not state_path.exists():
        raise FileFormatError(
            f"{path} is no LdaModel of gensim with its file {state_path.name} beside it"
        )
    state = _unpickle(state_path)
    words_path = path.with_name(f"{path.name}.id2word")
    words = _unpickle(words_path) if words_path.exists() else model.attributes.get("id2word")
    try:
        # Missing where it stands in a file of its own.
        statistics = state.attributes.get("sstats")
        if statistics is None:
            statistics = _array_beside(state_path, "sstats")
        pseudo_counts = _numbers(statistics) + _numbers(state.attributes["eta"])
        alpha = _numbers(model.attributes["alpha"])
        n_documents = int(_numbers(state.attributes["numdocs"]))
        id2word = _id2word(words)
    except (KeyError, TypeError, AttributeError, ValueError, OverflowError) as error:
        raise FileFormatError(f"{path} is no LdaModel of gensim, or damaged: {error!r}") from error
    found = SimpleNamespace(numdocs=n_documents, get_lambda=lambda: pseudo_counts)
    kind = "LdaModel" if model.kind == "LdaMulticore" else model.kind
    saved = type(kind, (SimpleNamespace,), {})
    with content_of(path):
        return from_gensim(saved(state=found, alpha=alpha, id2word=id2word))


def _numbers(value: Any) -> NDArray[np.float64]:
    """Numbers of a pickle: an array, or a list whose entries are numbers and nothing deeper."""
    if isinstance(value, (list, tuple)) and not all(isinstance(x, (int, float)) for x in value):
        raise TypeError("a list holds what is no number")
    if not isinstance(value, (int, float, list, tuple, np.ndarray)):
        raise TypeError(f"a {type(value).__name__} stands where numbers should")
    return np.asarray(value, dtype=np.float64)


def _array_beside(path: Path, name: str) -> Any:
    """A large array, which gensim keeps in a file of its own."""
    return read_array(path.with_name(f"{path.name}.{name}.npy"))


def _id2word(words: Any) -> dict[int, str] | None:
    """Words by id from a Dictionary or a mapping."""
    pairs = words
    if isinstance(words, Stored):
        ids = words.attributes.get("token2id")
        pairs = None if ids is None else {key: word for word, key in ids.items()}
    if pairs is None:
        return None
    if not all(isinstance(key, int) and isinstance(word, str) for key, word in pairs.items()):
        raise TypeError("the words of id2word are no words, or its ids no numbers")
    return dict(pairs)


def _load_tomotopy(path: Path) -> Any:
    """A model that only tomotopy can read, loaded in a process that it may take down."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "model.npz"
        n_bytes = path.stat().st_size
        limit = int(_SECONDS + _SECONDS_A_BYTE * n_bytes)
        limits = [_BYTES + _BYTES_A_BYTE * n_bytes, limit]
        places = [os.fspath(path.resolve()), os.fspath(place)]
        call = [sys.executable, "-c", _LOADING, *places, *map(str, limits)]
        try:
            ended = subprocess.run(
                call, capture_output=True, timeout=_PATIENCE * limit, check=False
            )
            is_late = -ended.returncode in (signal.SIGKILL, getattr(signal, "SIGXCPU", 0))
        except subprocess.TimeoutExpired:
            is_late = True
        if is_late:
            raise FileFormatError(
                f"tomotopy did not load {path} in {limit} s: it is damaged or cut"
            )
        if ended.returncode:
            told = ended.stderr.decode(errors="replace").strip().splitlines()
            if any("No module named 'tomotopy'" in line for line in told):
                raise MissingDependencyError(
                    "reading its models needs tomotopy: pip install tomotopy"
                )
            raise FileFormatError(
                f"tomotopy cannot read {path}: {told[-1] if told else 'it ended without a word'}"
            )
        with np.load(place) as held:
            arrays = {name: held[name] for name in held.files}
    words, priors = arrays["words"].tolist(), arrays["priors"]
    index = {word: row for row, word in enumerate(words)}
    loaded = type(str(arrays["kind"]), (SimpleNamespace,), {})
    return loaded(
        tw=int(arrays["tw"]),
        k=int(arrays["k"]),
        eta=float(arrays["eta"]),
        alpha=arrays["alpha"],
        global_step=int(arrays["steps"]),
        used_vocabs=words,
        get_topic_word_dist=lambda topic, normalize: arrays["rows"][topic],  # noqa: ARG005
        get_word_prior=lambda word: priors[index[word]] if priors.size else (),
    )
