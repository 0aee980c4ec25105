"""Models of other programs from their files, without running any code that a file holds."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import tempfile
from collections import OrderedDict, defaultdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from polyabayes._support.files import checked_path, open_binary, reading
from polyabayes.exceptions import FileFormatError, MissingDependencyError
from polyabayes.interop.gensim import from_gensim
from polyabayes.interop.mallet import from_mallet
from polyabayes.interop.tomotopy import from_tomotopy
from polyabayes.models import LatentDirichletAllocation, PoissonFactorAnalysis, load

__all__ = ["read_model"]

_STATE_OF_MALLET = b"#doc source pos typeindex type topic"
_PICKLE = b"\x80"
_JAVA = b"\xac\xed"
# Time that tomotopy has to load a file in a process of its own: some damaged ones never end.
_SECONDS, _SECONDS_A_BYTE = 20, 2e-7
_LOADING = """
import sys, warnings
warnings.simplefilter("ignore")
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


class _Held:
    """An object of a pickle, of which only the attributes are kept."""

    def __init__(self, *_: object) -> None:
        pass

    def __setstate__(self, state: object) -> None:
        # Generators have a state that is no dict; nobody asks for it.
        if isinstance(state, dict):
            self.__dict__.update(state)


class _DataOnly(pickle.Unpickler):
    """Numbers, words and containers; classes of gensim and generators become :class:`_Held`."""

    _NUMPY = ("_reconstruct", "scalar", "_frombuffer", "ndarray", "dtype")
    _PLAIN: dict[tuple[str, str], Any] = {  # noqa: RUF012
        ("collections", "defaultdict"): defaultdict,
        ("collections", "OrderedDict"): OrderedDict,
        ("builtins", "set"): set,
        ("builtins", "dict"): dict,
        ("builtins", "list"): list,
        ("builtins", "int"): int,
        ("builtins", "float"): float,
    }

    def find_class(self, module: str, name: str) -> Any:
        """Give what is harmless, and refuse everything else."""
        package = module.partition(".")[0]
        if package == "gensim" or module.startswith("numpy.random"):
            return _Held
        if package == "numpy" and name in self._NUMPY:
            return super().find_class(module, name)
        kind = getattr(np, name, None) if package == "numpy" else None
        if isinstance(kind, type) and issubclass(kind, np.generic):
            return kind
        found = self._PLAIN.get((module, name))
        if found is None:
            raise pickle.UnpicklingError(f"it holds {module}.{name}, which is no data of gensim")
        return found


def _unpickle(path: Path) -> Any:
    with open_binary(path) as stream, reading(path):
        try:
            return _DataOnly(stream).load()
        except (OSError, MemoryError):
            raise
        except Exception as error:
            raise FileFormatError(
                f"{path} is no model that gensim saved, or damaged ({error}); pickles and joblib "
                "files of other packages run code when they are loaded: load them in Python and "
                "give the model to polyabayes.log_likelihood"
            ) from error


def _read_gensim(path: Path) -> LatentDirichletAllocation:
    """What LdaModel.save wrote: the model, ``.state``, ``.id2word`` and large arrays beside it."""
    model = _unpickle(path)
    state_path = path.with_name(f"{path.name}.state")
    if not isinstance(model, _Held) or not state_path.exists():
        raise FileFormatError(
            f"{path} is no LdaModel of gensim with its file {state_path.name} beside it"
        )
    state = _unpickle(state_path)
    words_path = path.with_name(f"{path.name}.id2word")
    words = _unpickle(words_path) if words_path.exists() else vars(model).get("id2word")
    try:
        # Missing where it stands in a file of its own.
        statistics = vars(state).get("sstats")
        if statistics is None:
            statistics = _array_beside(state_path, "sstats")
        pseudo_counts = statistics + np.asarray(vars(state)["eta"])
        alpha = vars(model)["alpha"]
        found = SimpleNamespace(numdocs=vars(state)["numdocs"], get_lambda=lambda: pseudo_counts)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise FileFormatError(f"{path} is no LdaModel of gensim: {error!r} is missing") from error
    saved = type("LdaModel", (SimpleNamespace,), {})
    return from_gensim(saved(state=found, alpha=alpha, id2word=_id2word(words)))


def _array_beside(path: Path, name: str) -> Any:
    """A large array, which gensim keeps in a file of its own."""
    place = path.with_name(f"{path.name}.{name}.npy")
    with reading(place):
        return np.load(place, allow_pickle=False)


def _id2word(words: Any) -> dict[int, str] | None:
    """Words by id from a Dictionary or a mapping."""
    if isinstance(words, _Held):
        words = vars(words).get("token2id")
        return None if words is None else {int(key): str(word) for word, key in words.items()}
    return words if isinstance(words, dict) else None


def _load_tomotopy(path: Path) -> Any:
    """A model that only tomotopy can read, loaded in a process that it may take down."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "model.npz"
        call = [sys.executable, "-c", _LOADING, os.fspath(path.resolve()), os.fspath(place)]
        limit = _SECONDS + _SECONDS_A_BYTE * path.stat().st_size
        try:
            ended = subprocess.run(call, capture_output=True, timeout=limit, check=False)
        except subprocess.TimeoutExpired as error:
            raise FileFormatError(
                f"tomotopy did not load {path} in {limit:.0f} s: it is damaged or cut"
            ) from error
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
