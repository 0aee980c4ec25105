"""Files of models that are damaged, tampered with or something else are refused."""

import io
import json
import os
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from safetensors.numpy import save_file

import polyabayes as pb
from helpers.damage import flipped
from helpers.processes import python
from helpers.stored_models import COUNTS, LDA, TOPICS, WORDS, known_lda, known_pfa, rewrite
from polyabayes import exceptions as errors
from polyabayes._support.storage import arrays as storage
from polyabayes.models.fitted.formulas import formula_columns

STATE = b"#doc source pos typeindex type topic\n#alpha : 0.1 0.1\n"
ENTRY = {"dtype": "F64", "shape": [2], "data_offsets": [0, 16]}


def load(name, content):
    """Read a file of this content as a model."""
    Path(name).write_bytes(content)
    return pb.load(name)


def cut(share):
    """A share of the file of a model."""
    known_lda(vocabulary=WORDS).save("whole")
    whole = Path("whole").read_bytes()
    return whole[: int(share * len(whole))]


def zipped(name):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr(name, b"content")
    return stream.getvalue()


def with_header(header, n_bytes):
    """Read a safetensors file of this header and so many bytes of arrays."""
    text = json.dumps(header).encode()
    return load("model", len(text).to_bytes(8, "little") + text + bytes(n_bytes))


def told(about):
    """Read a model whose metadata are these."""
    known_lda().save("m.safetensors")
    _, arrays = storage.read_arrays(Path("m.safetensors"))
    save_file(arrays, "m.safetensors", None if about is None else {"polyabayes": about})
    return pb.load("m.safetensors")


def tampered(change, model=None):
    """Read a model of whose file the arrays or the header were changed, and sealed again."""
    (model or known_lda(vocabulary=WORDS)).save("m.safetensors")
    rewrite(Path("m.safetensors"), change)
    return pb.load("m.safetensors")


def classes():
    rows = [[0, 0, 1], [1, 1, 0]] * 8
    return pb.LatentClassAnalysis(2, method="em", random_state=0).fit(rows)


_UNDER_LIMITS = """
import resource, sys
import numpy as np
import polyabayes as pb
path, n_topics, n_words = sys.argv[1], 10, 200_000
topics = np.full((n_topics, n_words), 1 / n_words)
words = [f"w{column}" for column in range(n_words)]
pb.LatentDirichletAllocation.from_parameters(
    doc_topic_prior=0.1, topic_word=topics, vocabulary=words
).save(path)
del words
pb.load(path)
_, hard = resource.getrlimit(resource.RLIMIT_AS)
ends = []
for megabytes in (1, 8, 14, 18, 24, 30, 40, 60, 100, 400):
    pages = int(open("/proc/self/statm").read().split()[0])
    limit = pages * resource.getpagesize() + (megabytes << 20)
    resource.setrlimit(resource.RLIMIT_AS, (limit, hard))
    try:
        pb.load(path)
        ends.append("read")
    except pb.exceptions.FileFormatError as error:
        ends.append("refused" if "more than fits into memory" in str(error) else str(error))
    resource.setrlimit(resource.RLIMIT_AS, (hard, hard))
print(*ends)
"""


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="no /proc here")
def test_a_model_that_memory_does_not_hold_is_refused_whatever_the_limit(tmp_path):
    environment = {**os.environ, "RUST_BACKTRACE": "1"}
    done = python("-c", _UNDER_LIMITS, tmp_path / "model", env=environment)
    ends = done.stdout.split()
    assert set(ends) == {"read", "refused"}, done.stdout + done.stderr
    assert (ends[0], ends[-1]) == ("refused", "read")


def set_array(name, value):
    return lambda arrays, _: arrays.update({name: np.ascontiguousarray(value)})


def drop_array(name):
    return lambda arrays, _: arrays.__delitem__(name)


def set_entry(key, value):
    return lambda _, header: header.update({key: value})


def set_scalar(name, value):
    return lambda _, header: header["scalars"].update({name: value})


def test_one_flipped_bit_is_refused(tmp_path):
    path = tmp_path / "m.safetensors"
    model = LDA(2, max_iter=4, random_state=0).fit(pb.Corpus(COUNTS, WORDS))
    model.save(path)
    content = path.read_bytes()
    for bit in range(0, 8 * len(content), 11):
        path.write_bytes(flipped(content, bit // 8, bit % 8))
        with pytest.raises(errors.FileFormatError):
            pb.load(path)


@pytest.mark.parametrize("make", [known_lda, classes])
def test_a_model_takes_no_paths_from_its_file(make, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    where = {"n_jobs": 999, **({"checkpoint": "elsewhere"} if make is known_lda else {})}
    model = tampered(lambda _, header: header["parameters"].update(where), make())
    assert model.n_jobs is None
    assert getattr(model, "checkpoint", None) is None


@pytest.mark.parametrize("formula", ["~ a + b*c", "~ bs(a, df=5)*b + I(c**2)", "~ (a+b+c)**2"])
def test_formulas_within_the_limits_are_read(formula):
    pytest.importorskip("formulaic")
    assert sorted(formula_columns(formula)) == ["a", "b", "c"]


def rows_of(n):
    generator = np.random.default_rng(0)
    return pd.DataFrame({"age": generator.normal(size=n), "party": generator.choice(["a", "b"], n)})


def fitted_classes(**options):
    fit = {key: options.pop(key) for key in ("covariates", "weights") if key in options}
    return pb.LatentClassAnalysis(2, random_state=0, **options).fit(
        [[0, 0, 1], [1, 1, 0]] * 8, **fit
    )


KINDS = {
    "LDA": lambda: LDA(2, max_iter=4, topic_concentration="learn", random_state=0).fit(COUNTS),
    "covariates": lambda: LDA(2, max_iter=4, formula="~ bs(age, df=4) + party", random_state=0).fit(
        COUNTS, covariates=rows_of(20)
    ),
    "PFA": known_pfa,
    "logistic normal": lambda: pb.DocumentModel.logistic_normal(
        TOPICS, [0.0, 0.0], np.eye(2), decoder="softmax"
    ),
    "DMR": lambda: pb.DocumentModel.dirichlet(TOPICS, coefficients=[[0.0, 1.5], [0.0, -1.5]]),
    "classes": lambda: fitted_classes(method="em", weights=np.full(16, 1.5)),
    "classes with covariates": lambda: fitted_classes(covariates=rows_of(16)),
}
ARRAYS = {
    "NaN": lambda array: np.where(np.arange(array.size).reshape(array.shape) == 0, np.nan, array),
    "minus infinity": lambda array: np.full(array.shape, -np.inf),
    "fewer": lambda array: np.ascontiguousarray(array[..., :-1]),
    "one axis more": lambda array: array[None, None],
    "bytes": lambda array: np.ones(array.shape, np.uint8),
}
# Sizes that no other array shares.
FREE = {"weights fewer", "coefficients_ fewer", "components_ fewer"}


@pytest.mark.parametrize("make", KINDS.values(), ids=KINDS)
def test_each_array_and_entry_of_a_file_has_its_kind_range_and_shape(make, tmp_path):
    path = tmp_path / "m.safetensors"
    make().save(path)
    header, arrays = storage.read_arrays(path)
    machine = {**header["parameters"], "n_jobs": 999, "progress": True}
    storage.write_arrays(path, {**header, "parameters": machine}, arrays)
    assert pb.load(path).n_jobs is None

    def refuse(scalars, others):
        storage.write_arrays(path, {**header, "scalars": scalars}, others)
        with pytest.raises(errors.FileFormatError, match=r"m\.safetensors"):
            pb.load(path)

    refuse(header["scalars"], {**arrays, "unknown": np.ones(2)})
    refuse({**header["scalars"], "unknown": 1}, arrays)
    for name, array in arrays.items():
        for kind, change in ARRAYS.items():
            if f"{name} {kind}" not in FREE and not name.startswith("error_"):
                refuse(header["scalars"], {**arrays, name: change(array.astype(float))})
    for name, value in header["scalars"].items():
        refuse({**header["scalars"], name: [{}] if isinstance(value, dict) else {}}, arrays)
