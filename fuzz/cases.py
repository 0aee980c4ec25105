"""What is fuzzed: files that the package reads, and how each of them is changed."""

from __future__ import annotations

import io
import json
import random
import shutil
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from scipy.io import mmwrite

import polyabayes as pb
from polyabayes._support import storage
from polyabayes.sizes.witness import WitnessSearch, records

COUNTS = np.random.default_rng(0).poisson(0.8, (8, 6))
WORDS = [f"w{column}" for column in range(6)]
CORPUS = pb.Corpus(COUNTS, WORDS, [f"d{row}" for row in range(8)])
TENSOR = pb.CountTensor.from_dense(COUNTS.reshape(4, 2, 6), axes=["i", "j", "k"])
# Numbers and texts that parsers have trouble with.
NASTY = [
    *(b"0", b"-1", b"1.5", b"1e9", b"1e400", b"nan", b"inf", b"9" * 400, b"4294967296"),
    *(b"2147483648", b"9223372036854775807", b"-9223372036854775808", b"1000000000000", b"", b" "),
    *(b"\n", b"\r", b"\0", b"%", b"#", b":", b"::", b",", b'"', b"1_0", b"0x10", b"\xff\xfe"),
    *("\u0661".encode(), b"[" * 5000, b'{"a":' * 3000, b"True", b"null", b"'''", b"\x1f\x8b"),
    b"PK\x03\x04",
]
_LARGEST = 1 << 16


def changed_bytes(content: bytes, rng: random.Random) -> bytes:
    """Flip, cut, double or replace a few parts of a file."""
    data = bytearray(content)
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        place = rng.randrange(len(data) + 1)
        other = min(len(data), place + rng.choice((1, 1, 4, 16, 200)))
        match rng.randrange(7):
            case 0 if data:
                data[place % len(data)] ^= 1 << rng.randrange(8)
            case 1:
                data[place:other] = b""
            case 2:
                data[place:place] = data[place:other]
            case 3:
                data[place:other] = rng.choice(NASTY)
            case 4:
                del data[place:]
            case 5:
                data[place:place] = rng.choice(NASTY)
            case _:
                data[place:other] = rng.randbytes(other - place)
    return bytes(data[:_LARGEST])


def changed_fields(content: bytes, rng: random.Random) -> bytes:
    """Change numbers and words of a text, and its lines."""
    lines = content.split(b"\n")
    for _ in range(rng.choice((1, 1, 2, 3))):
        row = rng.randrange(len(lines))
        fields = lines[row].split(b" " if b" " in lines[row] else b",")
        match rng.randrange(5):
            case 0:
                lines.insert(row, lines[rng.randrange(len(lines))])
            case 1 if len(lines) > 1:
                del lines[row]
            case 2:
                fields.append(rng.choice(NASTY))
            case _:
                fields[rng.randrange(len(fields))] = rng.choice(NASTY)
        if row < len(lines):
            lines[row] = (b" " if b" " in lines[row] else b",").join(fields)
    return b"\n".join(lines)[:_LARGEST]


def changed_array(array: Any, rng: random.Random) -> bytes:
    """Bytes of an ``.npy`` file whose header or values are changed."""
    array = np.array(array)
    header = np.lib.format.header_data_from_array_1_0(array)
    match rng.randrange(6):
        case 0 if array.dtype.kind in "iu" and array.size:
            array = array.astype(np.int64)
            header = np.lib.format.header_data_from_array_1_0(array)
            index = rng.randrange(array.size)
            array.ravel()[index] = rng.choice((-1, 0, 1, 5, 100_000, 2**31, 2**62, -(2**63)))
        case 1:
            shape = rng.choice(((), (0,), (-1,), (10**12,), (3, 10**18), (2, 2), array.shape * 2))
            header["shape"] = shape
        case 2:
            header["descr"] = rng.choice(
                ("<f8", "|O", "<U1000000000", ">i8", "|S0", "<c16", "<M8[s]")
            )
        case 3:
            header["fortran_order"] = not header["fortran_order"]
        case 4:
            array = array.ravel()[: rng.randrange(array.size + 1)]
            header = np.lib.format.header_data_from_array_1_0(array)
        case _:
            kinds = ("f8", "i2", "S3", "?") if array.dtype.kind in "iuf" else ("S3", "U2")
            array = array.astype(rng.choice(kinds))
            header = np.lib.format.header_data_from_array_1_0(array)
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(stream, header)
    stream.write(array.tobytes())
    content = stream.getvalue()
    return changed_bytes(content, rng) if rng.random() < 0.2 else content


class Case:
    """Valid files of one kind, one of them changed at a time."""

    suffix = ""

    def __init__(self, folder: Path, rng: random.Random) -> None:
        folder.mkdir()
        self.folder, self.rng, self.name = folder, rng, type(self).__name__
        self.path = folder / f"x{self.suffix}"
        self.make()
        self.valid = self.path.read_bytes()

    def make(self) -> None:
        """Write the valid file."""
        raise NotImplementedError

    def change(self) -> tuple[Path, bytes]:
        """A file and its changed content."""
        change = self.rng.choice((changed_bytes, changed_fields))
        return self.path, change(self.valid, self.rng)

    def read(self) -> str:
        """Read the changed file; the outcome in a word."""
        corpus = pb.read_corpus(self.path)
        corpus.summary()
        # Samplers draw token by token: large counts take their time, as they should.
        if corpus.n_words < 10_000 and corpus.n_tokens < 1_000:
            pb.log_likelihood(_model(corpus.n_words), corpus[:3], "mean-field", n_jobs=1)
        return "read"

    def restore(self) -> None:
        """Put all files back in their places."""


def _model(n_words: int) -> Any:
    topics = np.full((2, n_words), 1.0 / n_words)
    return pb.LatentDirichletAllocation.from_parameters(doc_topic_prior=0.5, topic_word=topics)


class MatrixMarket(Case):
    suffix = ".mtx"

    def make(self) -> None:
        field = self.rng.choice(("integer", "real"))
        matrix = self.rng.choice((sparse.coo_matrix(COUNTS), COUNTS))
        mmwrite(self.path, matrix, field=field)


class Ldac(Case):
    suffix = ".ldac"

    def make(self) -> None:
        pb.write_corpus(CORPUS, self.path)


class PackedLdac(Ldac):
    suffix = ".ldac.gz"


class Svmlight(Case):
    suffix = ".svmlight"

    def make(self) -> None:
        rows = ([f"{w + 1}:{n}" for w, n in enumerate(row) if n] for row in COUNTS)
        self.path.write_text("".join(f"1 {' '.join(row)} # c\n" for row in rows))


class Docword(Case):
    suffix = ".txt"

    def make(self) -> None:
        self.path = self.folder / "docword.x.txt"
        cells = np.argwhere(COUNTS)
        lines = [f"{d + 1} {w + 1} {COUNTS[d, w]}\n" for d, w in cells]
        self.path.write_text(f"8\n6\n{len(lines)}\n{''.join(lines)}")


class LongCsv(Case):
    suffix = ".csv"

    def make(self) -> None:
        lines = [f"d{d},w{w},{COUNTS[d, w]}\n" for d, w in np.argwhere(COUNTS)]
        self.path.write_text(f"document,word,count\n{''.join(lines)}")


class WideCsv(Case):
    suffix = ".csv"

    def make(self) -> None:
        rows = [",".join(map(str, row)) for row in COUNTS]
        self.path.write_text("\n".join([",".join(WORDS), *rows]))


class Text(Case):
    suffix = ".txt"

    def make(self) -> None:
        self.path.write_text("the urn and the ball\nball of colours\n\nan urn of balls\n")


class Parquet(Case):
    suffix = ".parquet"

    def make(self) -> None:
        import pandas as pd

        pd.DataFrame(COUNTS, columns=WORDS).to_parquet(self.path)


class CorpusArchive(Case):
    suffix = ".npz"

    def make(self) -> None:
        pb.write_corpus(CORPUS, self.path)

    def change(self) -> tuple[Path, bytes]:
        if self.rng.random() < 0.3:
            return super().change()
        with np.load(io.BytesIO(self.valid)) as archive:
            arrays = dict(archive)
        if self.rng.random() < 0.3:
            layout = self.rng.choice(("csc", "coo", "bsr", "dia"))
            matrix = sparse.csr_matrix(COUNTS).asformat(layout)
            parts = ("data", "indices", "indptr", "row", "col", "offsets")
            arrays = {part: getattr(matrix, part) for part in parts if hasattr(matrix, part)}
            arrays |= {"format": np.array(layout.encode()), "shape": np.array(matrix.shape)}
        wrong = self.rng.sample(sorted(arrays), self.rng.choice((1, 1, 2)))
        stream = io.BytesIO()
        with zipfile.ZipFile(stream, "w") as archive:
            for name, array in arrays.items():
                plain = io.BytesIO()
                np.lib.format.write_array(plain, array)
                broken = changed_array(array, self.rng) if name in wrong else plain.getvalue()
                archive.writestr(f"{name}.npy", broken)
        return self.path, stream.getvalue()


class TensorArchive(CorpusArchive):
    def make(self) -> None:
        pb.write_tensor(TENSOR, self.path)

    def change(self) -> tuple[Path, bytes]:
        with np.load(io.BytesIO(self.valid)) as archive:
            arrays = dict(archive)
        wrong = self.rng.choice(sorted(arrays))
        stream = io.BytesIO()
        with zipfile.ZipFile(stream, "w") as archive:
            for name, array in arrays.items():
                plain = io.BytesIO()
                np.lib.format.write_array(plain, array)
                broken = changed_array(array, self.rng) if name == wrong else plain.getvalue()
                archive.writestr(f"{name}.npy", broken)
        return self.path, stream.getvalue()

    def read(self) -> str:
        return read_tensor(self.path)


def read_tensor(path: Path) -> str:
    """Read a tensor and lay a network out for it."""
    tensor = pb.read_tensor(path)
    if len(tensor.axes) == 3 and tensor.total < 1000 and max(tensor.shape) < 1000:
        model = pb.AllocationModel(f"h -> {', '.join(tensor.axes)}", sizes={"h": 2})
        model.decompose(tensor, "vb", max_iter=2, n_restarts=1, n_jobs=1, random_state=0)
    return "read"


class Tns(Case):
    suffix = ".tns"

    def make(self) -> None:
        pb.write_tensor(TENSOR, self.path)

    def read(self) -> str:
        return read_tensor(self.path)


class Modes(Tns):
    def make(self) -> None:
        super().make()
        self.path = self.folder / "x.modes.json"

    def read(self) -> str:
        return read_tensor(self.folder / "x.tns")


class FactorCsv(Tns):
    suffix = ".csv"


class GraphText(Case):
    suffix = ".graph"

    def make(self) -> None:
        self.path.write_text("doc -> topic -> word; topic, doc -> r")

    def change(self) -> tuple[Path, bytes]:
        tokens = [b"->", b"<-", b";", b",", b"doc", b"a", b"topic", b" ", b"\n", b"1", *NASTY]
        if self.rng.random() < 0.5:
            return super().change()
        n_tokens = self.rng.randrange(1, 40)
        return self.path, b" ".join(self.rng.choice(tokens) for _ in range(n_tokens))

    def read(self) -> str:
        text = self.path.read_bytes().decode("utf-8", "surrogateescape")
        pb.AllocationModel(text, sizes={"topic": 2, "a": 3}).log_evidence(COUNTS, "vb", n_jobs=1)
        return "read"


class ModelFile(Case):
    """Any change is to be refused; a changed file that is sealed again may be read."""

    suffix = ".safetensors"

    def make(self) -> None:
        self.model = pb.LatentDirichletAllocation(2, max_iter=3, random_state=0).fit(CORPUS)
        self.model.save(self.path)

    def change(self) -> tuple[Path, bytes]:
        self.is_sealed = self.rng.random() < 0.5
        if not self.is_sealed:
            return self.path, changed_bytes(self.valid, self.rng)
        self.path.write_bytes(self.valid)
        header, arrays = storage.read_arrays(self.path)
        seal(self.path, header, arrays, self.rng)
        return self.path, self.path.read_bytes()

    def read(self) -> str:
        if not self.is_sealed and self.path.read_bytes() == self.valid:
            return "unchanged"
        model = pb.load(self.path)
        if not self.is_sealed:
            return "BAD the damage was not noticed"
        if model.components_.shape[1] == 6:
            pb.log_likelihood(model, COUNTS[:2], "mean-field", n_jobs=1)
        return "read"


def seal(path: Path, header: Any, arrays: dict[str, Any], rng: random.Random) -> None:
    """Write changed arrays, or a changed header, with a checksum that holds."""
    name = rng.choice([*arrays, "header", "header"])
    if name == "header":
        text = changed_fields(json.dumps(header).encode(), rng).decode("utf-8", "replace")
        try:
            header = json.loads(text)
        except (ValueError, RecursionError):
            place = header[rng.choice(sorted(header))]
            entries = place if isinstance(place, dict) else header
            entries[rng.choice(sorted(entries))] = rng.choice(
                (None, -1, 10**400, "x", [], {}, 1e308)
            )
    else:
        array = np.array(arrays[name])
        match rng.randrange(4):
            case 0 if array.size and array.dtype.kind in "iuf":
                worst = (0, 1, np.iinfo(array.dtype).max) if array.dtype.kind in "iu" else ()
                values = worst or (np.nan, np.inf, -1.0, 1e308, 1e-308, 0.0)
                array.ravel()[rng.randrange(array.size)] = rng.choice(values)
            case 1:
                array = array.ravel()[: rng.randrange(array.size + 1)]
            case 2:
                array = array.astype(rng.choice(("f4", "i8", "u1", "f8")))
            case _:
                array = np.concatenate([array.ravel()] * 2)
        arrays[name] = array
    storage.write_arrays(path, header, arrays)


class Checkpoint(ModelFile):
    suffix = ""

    def make(self) -> None:
        self.checkpoints = self.folder / "state"
        self.kind = self.rng.randrange(3)
        self._train(4)
        self.path = self.checkpoints / "checkpoint.safetensors"

    def _train(self, max_iter: int) -> Any:
        options = {"random_state": 0, "checkpoint": self.checkpoints, "checkpoint_every": 2}
        options |= {"max_iter": max_iter, "burn_in": 1, "n_jobs": 1}
        if self.kind == 0:
            return pb.LatentDirichletAllocation(2, **options).fit(CORPUS)
        prior = "gap" if self.kind == 1 else "beta-gamma-gamma"
        return pb.PoissonFactorAnalysis(2, prior=prior, **options).fit(CORPUS)

    def read(self) -> str:
        if not self.is_sealed and self.path.read_bytes() == self.valid:
            return "unchanged"
        model = self._train(6)
        if not self.is_sealed:
            return "BAD the damage was not noticed"
        if not np.isfinite(model.components_).all():
            return "BAD the model is not finite"
        return "read"

    def restore(self) -> None:
        self.path.write_bytes(self.valid)


class SearchRecord(Case):
    """Records of a search: any change is refused, or what it says is made again."""

    def make(self) -> None:
        self.state = self.folder / "state"
        self._search()
        self.path = self.state / "search.jsonl"
        self.kept = self.folder / "kept"
        shutil.copytree(self.state, self.kept)

    def _search(self) -> Any:
        search = WitnessSearch(
            pb.LatentDirichletAllocation(max_iter=5, n_jobs=1),
            pb.priors.Poisson(2.0),
            scoring="bound",
            max_steps=2,
            random_state=0,
            checkpoint=self.state,
        ).fit(CORPUS)
        return [float(value) for value in search.bounds_["lower"]]

    def change(self) -> tuple[Path, bytes]:
        self.bounds = getattr(self, "bounds", None) or self._search()
        names = (
            "search.jsonl",
            "predictions.jsonl",
            "topics-1.safetensors",
            "topics-2.safetensors",
        )
        path = self.state / self.rng.choice([n for n in names if (self.state / n).exists()])
        content = path.read_bytes()
        if path.suffix == ".jsonl" and content and self.rng.random() < 0.5:
            lines = content.decode().splitlines()
            row = self.rng.randrange(len(lines))
            inner = changed_fields(lines[row].rpartition("\t")[0].encode(), self.rng)
            try:
                lines[row] = records._sealed(json.loads(inner))
            except (ValueError, RecursionError):
                lines[row] = records._sealed({"sizes": [10**400], "score": ["x"], "seconds": None})
            self.is_sealed = True
            return path, "\n".join(lines).encode()
        self.is_sealed = False
        return path, changed_bytes(content, self.rng)

    def read(self) -> str:
        bounds = self._search()
        return "read" if self.is_sealed or bounds == self.bounds else "BAD other bounds"

    def restore(self) -> None:
        shutil.rmtree(self.state)
        shutil.copytree(self.kept, self.state)


CASES: list[type[Case]] = [
    MatrixMarket,
    Ldac,
    PackedLdac,
    Svmlight,
    Docword,
    LongCsv,
    WideCsv,
    Text,
    Parquet,
    CorpusArchive,
    TensorArchive,
    Tns,
    Modes,
    FactorCsv,
    GraphText,
    ModelFile,
    Checkpoint,
    SearchRecord,
]
