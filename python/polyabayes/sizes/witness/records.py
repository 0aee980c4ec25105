"""The scores of a search in a folder, so that nothing is scored twice."""

from __future__ import annotations

import hashlib
import json
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from polyabayes._support.files import read_lines, replacing
from polyabayes._support.state_folder import StateFolder, refuse_other
from polyabayes.exceptions import FileFormatError
from polyabayes.sizes.witness.scores import Record, Score, Sizes, named

_FILE = "search.jsonl"
_PREDICTIONS = "predictions.jsonl"


class RecordFile:
    """A header, then one line a record; the file is replaced whole after every step.

    Parameters
    ----------
    folder : path-like
        Made by :meth:`resume` where it is missing.
    """

    def __init__(self, folder: Any) -> None:
        self.folder = StateFolder(folder, "the search")
        self._path = self.folder.path / _FILE
        self._lines = self._read()
        if not self._lines and self.folder.path.is_dir():
            # Predictions of a search whose records are gone.
            self.folder.remove([self.folder.path / _PREDICTIONS])

    @property
    def header(self) -> dict[str, Any] | None:
        """Identity of the search in the folder; None where there is none."""
        return self._lines[0] if self._lines else None

    def resume(self, identity: dict[str, Any]) -> list[Record]:
        """Records of this very search; refuse those of another and name the difference."""
        self.folder.make(_FILE)
        if self.header is None:
            self._lines = [identity]
        for name in sorted(identity.keys() | (self.header or {}).keys()):
            found = (self.header or {}).get(name)
            refuse_other(self._path, "search", name, found, identity.get(name))
        try:
            return [_record(line) for line in self._lines[1:]]
        except (ArithmeticError, LookupError, TypeError, ValueError) as error:
            raise FileFormatError(f"{self._path} holds a damaged record: {error!r}") from error

    def append(self, record: Record) -> None:
        """Write all records, this one last; one that is there already stays where it is."""
        if any(line.get("sizes") == list(record.sizes) for line in self._lines):
            return
        score = None if record.score is None else list(record.score)
        self._lines.append(
            {
                "sizes": list(record.sizes),
                "score": score,
                "seconds": record.seconds,
                "failure": record.failure,
            }
        )
        self.folder.put(self._write, f"the score of {named(record.sizes)}")

    def _write(self) -> None:
        with replacing(self._path) as stream:
            stream.write("".join(f"{_sealed(line)}\n" for line in self._lines).encode())

    def _read(self) -> list[dict[str, Any]]:
        if not self._path.exists():
            return []
        lines = []
        for number, text in enumerate(read_lines(self._path), start=1):
            line = _opened(text)
            if not isinstance(line, dict):
                raise FileFormatError(
                    f"{self._path}, line {number}: it is no record of a search, or is damaged"
                )
            lines.append(line)
        if not lines:
            raise FileFormatError(f"{self._path} is no record of a search")
        return lines


class Predictions:
    """Scores of new documents by size and fingerprint; in a folder, one line each.

    Parameters
    ----------
    folder : StateFolder, optional
        That of the search; None keeps them in memory.
    """

    def __init__(self, folder: StateFolder | None) -> None:
        self._folder = folder
        self._known: dict[tuple[Sizes, str], Score] = {}
        if folder is not None and (folder.path / _PREDICTIONS).exists():
            for line in read_lines(folder.path / _PREDICTIONS, "latin-1"):
                # The last line of a run that was killed may be torn, and one that follows with it.
                with suppress(ValueError, TypeError):
                    sizes, documents, score = _opened(line)
                    self._known[tuple(sizes), documents] = Score(*map(float, score))

    def get(self, key: tuple[Sizes, str]) -> Score | None:
        """The score that is known."""
        return self._known.get(key)

    def add(self, key: tuple[Sizes, str], score: Score) -> None:
        """Remember a score."""
        self._known[key] = score
        if self._folder is not None:
            line = _sealed([list(key[0]), key[1], list(score)])
            self._folder.put(partial(self._append, line), "a score of new documents")

    def _append(self, line: str) -> None:
        assert self._folder is not None
        with (self._folder.path / _PREDICTIONS).open("a") as stream:
            stream.write(f"{line}\n")


def model_path(folder: StateFolder, sizes: Sizes) -> Path:
    """Path of the model of a size in a folder."""
    return folder.path / f"topics-{sizes[0]}.safetensors"


def _sealed(content: Any) -> str:
    """JSON in one line, with its checksum."""
    text = json.dumps(content)
    return f"{text}\t{hashlib.sha256(text.encode()).hexdigest()}"


def _opened(line: str) -> Any:
    """Content of a line that :func:`_sealed` made; None where one bit of it is another."""
    text, _, checksum = line.rpartition("\t")
    if hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest() != checksum:
        return None
    return json.loads(text)


def _record(line: dict[str, Any]) -> Record:
    score = None if line["score"] is None else Score(*map(float, line["score"]))
    sizes = tuple(int(size) for size in line["sizes"])
    return Record(sizes, score, float(line["seconds"]), line["failure"])
