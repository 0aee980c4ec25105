"""Golden values of files and corpora."""

from __future__ import annotations

import gzip
import hashlib
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import polyabayes as pb
from golden_cases.allocation import table
from golden_cases.inputs import DOCUMENTS, WORDS
from golden_cases.public_api import Case, fields, plain

CORPUS_TEXTS: dict[str, tuple[str, dict[str, Any]]] = {
    "x.ldac": ("2 0:2 2:1\n0\n1 1:3\n", {}),
    "x.svmlight": ("1 0:2 2:1\n0\n-1 1:3\n", {"zero_based": True}),
    "docword.x.txt": ("3\n3\n3\n1 1 2\n1 3 1\n3 2 3\n", {}),
    "x.csv": ("document,urn,ball,colour\na,2,0,1\nb,0,0,0\nc,0,3,0\n", {}),
    "long.csv": ("document,word,count\na,urn,2\na,colour,1\nc,ball,3\n", {}),
    "x.mtx": (
        "%%MatrixMarket matrix coordinate integer general\n3 3 3\n1 1 2\n1 3 1\n3 2 3\n",
        {},
    ),
    "x.txt": ("Urns and balls, balls.\n\nA ball of colour\n", {"lowercase": True}),
}

TENSOR_TEXTS = {
    "x.tns": "# hair eye sex count\n1 1 1 32\n1 3 2 11\n\n3 4 2 5\n",
    "x.csv": 'hair,eye,count\nred,"a, b",2\nblack,c,1\nred,c,4\n',
}


def file_cases() -> Iterator[tuple[str, Case]]:
    for name, (text, options) in CORPUS_TEXTS.items():
        yield (
            f"corpus from {name}",
            lambda n=name, t=text, o=options: read_back(pb.read_corpus, n, t.encode(), **o),
        )
        yield (
            f"corpus from {name}.gz",
            lambda n=name, t=text, o=options: read_back(
                pb.read_corpus, f"{n}.gz", gzip.compress(t.encode()), **o
            ),
        )
    for name, text in TENSOR_TEXTS.items():
        yield f"tensor from {name}", lambda n=name, t=text: read_back(pb.read_tensor, n, t.encode())
    for name in ("x.ldac", "x.mtx", "x.npz"):
        yield f"corpus to {name}", lambda n=name: written(pb.write_corpus, named_corpus(), n)
        yield (
            f"corpus there and back, {name}",
            lambda n=name: there_and_back(pb.write_corpus, pb.read_corpus, named_corpus(), n),
        )
    for name in ("x.tns", "x.csv", "x.npz"):
        yield f"tensor to {name}", lambda n=name: written(pb.write_tensor, named_tensor(), n)
        yield (
            f"tensor there and back, {name}",
            lambda n=name: there_and_back(pb.write_tensor, pb.read_tensor, named_tensor(), n),
        )
    yield "folder of texts", folder_of_texts
    yield "parquet", parquet
    yield "split", lambda: plain(named_corpus().split(0.4, random_state=16))
    yield (
        "synthetic lda",
        lambda: synthetic(pb.datasets.make_lda_corpus(4, 6, 2, document_length=9, random_state=17)),
    )
    yield (
        "synthetic gamma-Poisson",
        lambda: synthetic(pb.datasets.make_gamma_poisson_corpus(4, 6, 2, random_state=17)),
    )
    yield (
        "discretised",
        lambda: plain(
            pb.discretise(
                pd.DataFrame({"a": [0.5, 1.5, 4.0, 9.0, 2.5], "b": [1.0, 0.0, 3.0, 2.0, 8.0]}),
                ["a", "b"],
                2,
                random_state=18,
            )
        ),
    )


def named_corpus() -> pb.Corpus:
    return pb.Corpus(DOCUMENTS, vocabulary=WORDS[:8], ids=[*"abcdef"])


def named_tensor() -> pb.CountTensor:
    return pb.CountTensor.from_dense(
        table((2, 3, 2), 9), ["i", "j", "k"], [["x", "y"], ["1", "2", "3"], ["a, b", "c"]]
    )


def read_back(reader: Callable[..., Any], name: str, content: bytes, **options: Any) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(content)
        return plain(reader(path, **options))


def written(writer: Callable[..., Any], data: Any, name: str) -> dict[str, str]:
    """Digest of every file written, by its name; of the arrays inside where it is an archive."""
    with tempfile.TemporaryDirectory() as folder:
        writer(data, Path(folder) / name)
        return {path.name: digest(path) for path in sorted(Path(folder).iterdir())}


def digest(path: Path) -> str:
    if path.suffix != ".npz":
        return hashlib.sha256(path.read_bytes()).hexdigest()
    with np.load(path, allow_pickle=False) as arrays:
        parts = {key: [str(arrays[key].dtype), arrays[key].tolist()] for key in arrays.files}
    return hashlib.sha256(repr(sorted(parts.items())).encode()).hexdigest()


def there_and_back(
    writer: Callable[..., Any], reader: Callable[..., Any], data: Any, name: str
) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        writer(data, Path(folder) / name)
        return plain(reader(Path(folder) / name))


def folder_of_texts() -> Any:
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "sub").mkdir()
        (Path(folder) / "one.txt").write_text("urns and balls")
        (Path(folder) / "sub" / "two.txt").write_text("balls running in urns")
        return plain(pb.read_corpus(folder, stem="english"))


def parquet() -> Any:
    frame = pd.DataFrame({"document": ["a", "a", "c"], "word": [*"uvw"], "count": [2, 1, 3]})
    with tempfile.TemporaryDirectory() as folder:
        frame.to_parquet(Path(folder) / "x.parquet")
        corpus = pb.read_corpus(Path(folder) / "x.parquet")
        tensor = pb.read_tensor(Path(folder) / "x.parquet")
    return {"corpus": plain(corpus), "tensor": plain(tensor)}


def synthetic(data: Any) -> dict[str, Any]:
    names = ("corpus", "topic_word", "doc_topic", "doc_topic_prior", "shape", "probability")
    return fields(data, *(name for name in names if hasattr(data, name)))
