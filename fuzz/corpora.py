"""Files of counts and graphs that are fuzzed: every reader of corpora and of tensors."""

import io
import random
from pathlib import Path
from typing import Any

import numpy as np
from changes import NASTY, changed_archive, changed_bytes, changed_fields
from scipy import sparse
from scipy.io import mmwrite

import polyabayes as pb

COUNTS = np.random.default_rng(0).poisson(0.8, (8, 6))
WORDS = [f"w{column}" for column in range(6)]
CORPUS = pb.Corpus(COUNTS, WORDS, [f"d{row}" for row in range(8)])
TENSOR = pb.CountTensor.from_dense(COUNTS.reshape(4, 2, 6), axes=["i", "j", "k"])


class Case:
    """Valid files of one kind, one of them changed at a time.

    ``share`` is how often it is taken: rarely where reading is slow.
    """

    suffix = ""
    share = 4.0

    def __init__(self, folder: Path, rng: random.Random) -> None:
        folder.mkdir()
        self.folder, self.rng, self.name = folder, rng, type(self).__name__
        self.path = folder / f"x{self.suffix}"
        self.make()
        self.valid = self.path.read_bytes()

    def make(self) -> None:
        """Write the valid file."""
        pb.write_corpus(CORPUS, self.path)

    def change(self) -> tuple[Path, bytes]:
        """A file and its changed content."""
        change = self.rng.choice((changed_bytes, changed_fields))
        return self.path, change(self.valid, self.rng)

    def read(self) -> str:
        """Read the changed file; the outcome in a word."""
        return self.use(pb.read_corpus(self.path))

    def use(self, corpus: pb.Corpus) -> str:
        """Sum a corpus up, and score it now and then."""
        corpus.summary()
        # Samplers draw token by token: large counts take their time, as they should.
        is_small = corpus.n_words < 10_000 and corpus.n_tokens < 1_000
        if is_small and self.rng.random() < 0.25:
            pb.log_likelihood(_model(corpus.n_words), corpus[:3], "mean-field", n_jobs=1)
        return "read"

    def restore(self) -> None:
        """Put all files back in their places."""


def _model(n_words: int) -> Any:
    topics = np.full((2, n_words), 1.0 / n_words)
    return pb.LatentDirichletAllocation.from_parameters(doc_topic_prior=0.5, topic_word=topics)


class Packed(Case):
    """Files with a checksum of their own: what is read must be what was written."""

    is_packed_anew = False

    def read(self) -> str:
        corpus = pb.read_corpus(self.path)
        # A part that is there twice has its checksum twice.
        is_doubled = self.path.read_bytes().count(b"\x1f\x8b\x08") > 1
        if not (self.is_packed_anew or is_doubled) and (
            corpus.counts.shape != COUNTS.shape or (corpus.counts != sparse.csr_matrix(COUNTS)).nnz
        ):
            return "BAD the damage was not noticed"
        return self.use(corpus)


class MatrixMarket(Case):
    share = 8
    suffix = ".mtx"

    def make(self) -> None:
        field = self.rng.choice(("integer", "real"))
        matrix = self.rng.choice((sparse.coo_matrix(COUNTS), COUNTS))
        mmwrite(self.path, matrix, field=field)


class Ldac(Case):
    share = 8
    suffix = ".ldac"


class PackedLdac(Packed):
    suffix = ".ldac.gz"
    share = 12


class Vocabulary(Ldac):
    """The words beside a corpus."""

    def make(self) -> None:
        super().make()
        self.corpus_path, self.path = self.path, self.folder / "x.vocab"

    def read(self) -> str:
        return self.use(pb.read_corpus(self.corpus_path, vocabulary=self.path))


def text_case(name: str, share: float, file: str, text: str) -> type[Case]:
    """Files of a text that is written as it stands."""

    def make(self: Case) -> None:
        self.path = self.folder / file
        self.path.write_text(text)

    return type(name, (Case,), {"share": share, "make": make})


_CELLS = [(d, w, COUNTS[d, w]) for d, w in np.argwhere(COUNTS)]
_ROWS = [",".join(map(str, row)) for row in COUNTS]
_HEADER = ",".join(WORDS)
_PAIRS = (" ".join(f"{w + 1}:{n}" for w, n in enumerate(row) if n) for row in COUNTS)
_TRIPLES = "".join(f"{d + 1} {w + 1} {n}\n" for d, w, n in _CELLS)
TEXTS = [
    text_case("Svmlight", 3, "x.svmlight", "".join(f"1 {row} # c\n" for row in _PAIRS)),
    text_case("Docword", 12, "docword.x.txt", f"8\n6\n{len(_CELLS)}\n{_TRIPLES}"),
    text_case(
        *("LongCsv", 10, "x.csv"),
        "document,word,count\n" + "".join(f"d{d},w{w},{n}\n" for d, w, n in _CELLS),
    ),
    text_case("WideCsv", 10, "x.csv", "\n".join([_HEADER, *_ROWS])),
    # Names in quotes, which hold separators, quotes and newlines.
    text_case(
        *("QuotedCsv", 10, "x.csv"),
        "\n".join([f'"",{_HEADER}', *(f'"d ""{d}"",\n",{row}' for d, row in enumerate(_ROWS))]),
    ),
    # Texts in a column, which are counted.
    text_case(
        *("TextCsv", 4, "x.csv"),
        'id,text,n\n1,the urn,2\n2,"an urn, of balls",3\n3,"the ""ball""",1\n',
    ),
    text_case("Text", 2, "x.txt", "the urn and the ball\nball of colours\n\nan urn of balls\n"),
]


class Parquet(Case):
    share = 4
    suffix = ".parquet"

    def make(self) -> None:
        import pandas as pd

        pd.DataFrame(COUNTS, columns=WORDS).to_parquet(self.path)


class CorpusArchive(Packed):
    suffix = ".npz"

    def change(self) -> tuple[Path, bytes]:
        self.is_packed_anew = self.rng.random() < 0.7
        if not self.is_packed_anew:
            return super().change()
        with np.load(io.BytesIO(self.valid)) as archive:
            arrays = dict(archive)
        if self.rng.random() < 0.3:
            layout = self.rng.choice(("csc", "coo", "bsr", "dia"))
            matrix = sparse.csr_matrix(COUNTS).asformat(layout)
            parts = ("data", "indices", "indptr", "row", "col", "offsets")
            arrays = {part: getattr(matrix, part) for part in parts if hasattr(matrix, part)}
            arrays |= {"format": np.array(layout.encode()), "shape": np.array(matrix.shape)}
        return self.path, changed_archive(arrays, self.rng)


class TensorArchive(Case):
    suffix = ".npz"
    share = 4

    def make(self) -> None:
        pb.write_tensor(TENSOR, self.path)

    def change(self) -> tuple[Path, bytes]:
        self.is_packed_anew = self.rng.random() < 0.7
        if not self.is_packed_anew:
            return self.path, changed_bytes(self.valid, self.rng)
        with np.load(io.BytesIO(self.valid)) as archive:
            return self.path, changed_archive(dict(archive), self.rng)

    def read(self) -> str:
        outcome = read_tensor(self.path)
        if not self.is_packed_anew and pb.read_tensor(self.path) != TENSOR:
            return "BAD the damage was not noticed"
        return outcome


def read_tensor(path: Path) -> str:
    """Read a tensor and lay a network out for it."""
    tensor = pb.read_tensor(path)
    if len(tensor.axes) == 3 and tensor.total < 1000 and max(tensor.shape) < 1000:
        model = pb.AllocationModel(f"h -> {', '.join(tensor.axes)}", sizes={"h": 2})
        model.decompose(tensor, "vb", max_iter=2, n_restarts=1, n_jobs=1, random_state=0)
    return "read"


class Tns(Case):
    share = 6
    suffix = ".tns"

    def make(self) -> None:
        pb.write_tensor(TENSOR, self.path)

    def read(self) -> str:
        return read_tensor(self.path)


class Modes(Tns):
    share = 12

    def make(self) -> None:
        super().make()
        self.path = self.folder / "x.modes.json"

    def read(self) -> str:
        return read_tensor(self.folder / "x.tns")


class FactorCsv(Tns):
    share = 6
    suffix = ".csv"


class GraphText(Case):
    share = 12
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


class ShardFolder(Case):
    """A corpus on the disk: what is not as it was written is refused, at the latest by verify."""

    def make(self) -> None:
        self.shards = self.folder / "shards"
        pb.write_shards(CORPUS, self.shards, 3)
        files = sorted(path for path in self.shards.rglob("*") if path.is_file())
        self.files = {path: path.read_bytes() for path in files}
        self.path = files[0]

    def change(self) -> tuple[Path, bytes]:
        path = self.rng.choice(sorted(self.files))
        change = self.rng.choice((changed_bytes, changed_fields))
        self.changed = path, change(self.files[path], self.rng)
        return self.changed

    def read(self) -> str:
        shards = pb.read_shards(self.shards)
        read = [shard.corpus().counts for shard in shards]
        shards.verify()
        path, content = self.changed
        is_text = path.suffix == ".json"
        if content != self.files[path] and not is_text:
            return "BAD the damage was not noticed"
        return f"read {len(read)}"

    def restore(self) -> None:
        for path, content in self.files.items():
            path.write_bytes(content)


CORPORA: list[type[Case]] = [
    *(MatrixMarket, Ldac, PackedLdac, Vocabulary, *TEXTS),
    *(Parquet, CorpusArchive, TensorArchive, Tns, Modes, FactorCsv, GraphText, ShardFolder),
]
