"""Files of models that are damaged, tampered with or something else are refused."""

import gzip
import io
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from safetensors.numpy import save_file

import polyabayes as pb
from helpers.stored_models import COUNTS, LDA, TOPICS, WORDS, known_lda, known_pfa, rewrite
from polyabayes import exceptions as errors
from polyabayes._support import storage
from polyabayes.models.fitted.formulas import formula_columns


@pytest.mark.parametrize("share", [0.0, 0.001, 0.5, 0.999])
def test_files_that_are_cut_short(share, tmp_path):
    path = tmp_path / "m.safetensors"
    known_lda(vocabulary=WORDS).save(path)
    whole = path.read_bytes()
    path.write_bytes(whole[: int(share * len(whole))])
    with pytest.raises(errors.FileFormatError, match=r"m\.safetensors is not a whole"):
        pb.load(path)


STATE = b"#doc source pos typeindex type topic\n#alpha : 0.1 0.1\n"


def zipped(name):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr(name, b"content")
    return stream.getvalue()


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("counts.tns", b"1 1 3\n2 1 4\n", r"a tensor, which polyabayes\.read_tensor reads"),
        (
            "tens.tns.gz",
            gzip.compress(b"1 1 3\n"),
            r"a tensor, which polyabayes\.read_tensor reads",
        ),
        ("state.gz", gzip.compress(STATE), r"a state of MALLET, which .*interop\.read_model reads"),
        ("model.gz", gzip.compress(b"\x80" + bytes(7) + b"{}"), "a model in a gzip file"),
        ("notes.gz", gzip.compress(b"many words"), "a gzip file: unpack it, and name what it held"),
        ("ap.ldac", b"2 0:1 3:2\n", r"LDA-C: counts .* polyabayes\.read_corpus reads"),
        ("ap.txt", b"many words\n", r"text, whose words polyabayes\.read_corpus counts"),
        ("ap.npz", zipped("data.npy"), r"an archive of arrays, \.npz: .*read_corpus.*read_tensor"),
        ("net.pt", zipped("net/data.pkl"), "a zip archive: unpack it, and name what it held"),
        ("net.gz", gzip.compress(zipped("data")), "a zip archive in a gzip file: unpack both"),
        ("cut.npz", b"PK\x03\x04...", "a zip archive that is damaged or cut short"),
        ("model.joblib", b"\x80\x04\x95", "a pickle, .* load it by the package that wrote it"),
        ("model.bin", b"LDA\0...", "a model of tomotopy: load it by the package"),
        ("cells.h5ad", b"\x89HDF\r\n", "HDF5, as .h5ad: read it by the package that wrote it"),
    ],
)
def test_files_that_are_no_models_are_told_by_what_they_look_like(name, content, message, tmp_path):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(
        errors.FileFormatError, match=rf"{name} is not a model .* looks like {message}"
    ):
        pb.load(path)


def test_a_gzip_file_that_is_cut_short_is_said_to_be(tmp_path):
    path = tmp_path / "counts.tns.gz"
    path.write_bytes(gzip.compress(b"1 1 3\n")[:12])
    with pytest.raises(errors.FileFormatError, match=r"counts\.tns\.gz is damaged or cut short"):
        pb.load(path)


def test_safetensors_of_something_else(tmp_path):
    save_file({"weight": np.zeros(3)}, tmp_path / "a")
    with pytest.raises(errors.FileFormatError, match="safetensors file, but not"):
        pb.load(tmp_path / "a")
    save_file({"weight": np.zeros(3)}, tmp_path / "b", {"format": "pt"})
    with pytest.raises(errors.FileFormatError, match="'pt'"):
        pb.load(tmp_path / "b")


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
    done = subprocess.run(
        [sys.executable, "-c", _UNDER_LIMITS, tmp_path / "model"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**os.environ, "RUST_BACKTRACE": "1"},
    )
    ends = done.stdout.split()
    assert set(ends) == {"read", "refused"}, done.stdout + done.stderr
    assert (ends[0], ends[-1]) == ("refused", "read")


def test_arrays_that_are_not_where_the_header_says_are_refused(tmp_path):
    def file(header, n_bytes, name="model"):
        text = json.dumps(header).encode()
        content = len(text).to_bytes(8, "little") + text + bytes(n_bytes)
        (tmp_path / name).write_bytes(content)
        return tmp_path / name

    entry = {"dtype": "F64", "shape": [2], "data_offsets": [0, 16]}
    for changes, n_bytes in (
        ({"data_offsets": [0, 2**40]}, 16),
        ({"data_offsets": [-8, 8]}, 16),
        ({"shape": [2**62, 4]}, 16),
        ({"shape": [-2]}, 16),
        ({"shape": "2"}, 16),
        ({"dtype": "C64"}, 16),
        ({}, 15),
        ({}, 17),
    ):
        with pytest.raises(errors.FileFormatError, match="not a whole safetensors file"):
            pb.load(file({"x": {**entry, **changes}}, n_bytes))
    with pytest.raises(errors.FileFormatError, match="not a whole safetensors file"):
        pb.load(file({"x": entry, "y": entry}, 16))
    (tmp_path / "short").write_bytes(b"\xff" * 8 + b"{}")
    with pytest.raises(errors.FileFormatError, match="the header is cut"):
        pb.load(tmp_path / "short")


def set_array(name, value):
    return lambda arrays, _: arrays.update({name: np.ascontiguousarray(value)})


def drop_array(name):
    return lambda arrays, _: arrays.__delitem__(name)


def set_entry(key, value):
    return lambda _, header: header.update({key: value})


def set_scalar(name, value):
    return lambda _, header: header["scalars"].update({name: value})


TAMPERED = {
    "negative weight": set_array("components_", TOPICS * [[-1], [1]]),
    "rows that do not sum to 1": set_array("components_", 2 * TOPICS),
    "NaN": set_array("components_", np.where(TOPICS > 0.3, np.nan, TOPICS)),
    "flat topics": set_array("components_", TOPICS.ravel()),
    "no topics": drop_array("components_"),
    "negative prior": set_array("doc_topic_prior_", [0.1, -0.1]),
    "infinite prior": set_array("doc_topic_prior_", [0.1, np.inf]),
    "prior too long": set_array("doc_topic_prior_", [0.1] * 4),
    "prior of two axes": set_array("doc_topic_prior_", [[0.1, 0.7]]),
    "no prior": drop_array("doc_topic_prior_"),
    "prior of whole numbers": set_array("doc_topic_prior_", [1, 2]),
    "too few words": set_array("vocabulary", np.frombuffer(b'["a", "b"]', np.uint8)),
    "broken words": set_array("vocabulary", np.frombuffer(b'["a", \xff', np.uint8)),
    "numbers as words": set_array("vocabulary", np.frombuffer(b"[1, 2, 3, 4, 5, 6]", np.uint8)),
    "unknown class": set_entry("class", "Pipeline"),
    "class of another kind": set_entry("class", ["LatentDirichletAllocation"]),
    "no class": lambda _, header: header.__delitem__("class"),
    "unknown parameter": set_entry("parameters", {"evil": 1}),
    "parameters of another kind": set_entry("parameters", [1, 2]),
    "scalars of another kind": set_entry("scalars", [1, 2]),
    "header of another kind": lambda *_: [1, 2],
    "seed that is no number": set_scalar("seed_", "x"),
    "seed too large": set_scalar("seed_", 2**64),
    "token counts of another size": set_array("topic_counts_", [3]),
    "negative token counts": set_array("topic_counts_", [3, -1]),
    "token counts that are no number": set_array("topic_counts_", [np.nan, 1.0]),
    "topic prior that is no number": set_scalar("topic_word_prior_", "x"),
}


@pytest.mark.parametrize("change", TAMPERED.values(), ids=TAMPERED)
def test_tampered_models_are_refused(change, tmp_path):
    path = tmp_path / "m.safetensors"
    known_lda(vocabulary=WORDS).save(path)
    rewrite(path, change)
    with pytest.raises(errors.FileFormatError, match=r"m\.safetensors"):
        pb.load(path)


@pytest.mark.parametrize(
    "about", [None, "{", "[1, 2]", "{}", '{"format": "polyabayes 2"}', "[" * 9999]
)
def test_models_without_a_header_are_refused(about, tmp_path):
    path = tmp_path / "m.safetensors"
    known_lda().save(path)
    _, arrays = storage.read_arrays(path)
    save_file(arrays, path, None if about is None else {"polyabayes": about})
    with pytest.raises(errors.FileFormatError, match=r"m\.safetensors"):
        pb.load(path)


def test_one_flipped_bit_is_refused(tmp_path):
    path = tmp_path / "m.safetensors"
    model = LDA(2, max_iter=4, random_state=0).fit(pb.Corpus(COUNTS, WORDS))
    model.save(path)
    content = path.read_bytes()
    for bit in range(0, 8 * len(content), 5):
        changed = bytearray(content)
        changed[bit // 8] ^= 1 << bit % 8
        path.write_bytes(changed)
        with pytest.raises(errors.FileFormatError):
            pb.load(path)


def test_a_model_takes_no_paths_from_its_file(tmp_path):
    path = tmp_path / "m.safetensors"
    known_lda().save(path)
    where = str(tmp_path / "elsewhere")
    rewrite(path, lambda _, header: header["parameters"].update(checkpoint=where, n_jobs=999))
    model = pb.load(path)
    assert model.checkpoint is None
    assert model.n_jobs is None


@pytest.mark.parametrize(("name", "value"), [("shape_", [1.0, 0.0]), ("probability_", [0.5, 1.0])])
def test_tampered_rates_are_refused(name, value, tmp_path):
    path = tmp_path / "m.safetensors"
    known_pfa().save(path)
    rewrite(path, set_array(name, value))
    with pytest.raises(errors.FileFormatError, match=name.rstrip("_")):
        pb.load(path)


def test_missing_files_and_folders(tmp_path):
    for path in (tmp_path / "missing", tmp_path, tmp_path / "no" / "model"):
        with pytest.raises(errors.FileAccessError, match="cannot read") as caught:
            pb.load(path)
        assert str(path) in str(caught.value)
    file = tmp_path / "file"
    file.write_text("not a folder")
    for path in (tmp_path / "no" / "model", file / "model", tmp_path):
        with pytest.raises(errors.FileAccessError, match="cannot write"):
            known_lda().save(path)
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize(
    "formula",
    [
        "~ (a+b)**40",
        "~ I(10**10**8)",
        "~ " + "*".join("abcdefghijklmnopqrstuvw"),
        "~ (a+b)**a",
        "~ (" + "+".join(f"x{n}" for n in range(900)) + ")**4",
    ],
)
def test_formulas_that_would_never_end_are_refused(formula):
    pytest.importorskip("formulaic")
    with pytest.raises(errors.InvalidArgumentError, match="may have too many terms"):
        formula_columns(formula)


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


DESIGNS = {
    "names twice": {"names": ["Intercept", *["party[T.b]"] * 5]},
    "level that is no text": {"levels": {"party": ["a", ["b"]]}},
    "levels twice": {"levels": {"party": ["a", "a"]}},
    "columns of another formula": {"columns": ["age", "day"]},
    "formula without end": {"formula": "~ (a+b)**40"},
    "transform that is no name": {"transforms": [[1, [["lower_bound", 0], ["", "dict"]]]]},
    "bounds that are no numbers": {
        "transforms": [["bs(age, df=4)", [["lower_bound", "x"], ["", "dict"]]], ["", "dict"]]
    },
    "deviations of 0": {"deviations": [0.0] * 5},
    "dates of no column": {"dates": ["day"]},
}


@pytest.mark.parametrize("changes", DESIGNS.values(), ids=DESIGNS)
def test_tampered_designs_are_refused(changes, tmp_path):
    pytest.importorskip("formulaic")
    path = tmp_path / "m.safetensors"
    KINDS["covariates"]().save(path)
    rewrite(path, lambda _, header: header["scalars"]["design"].update(changes))
    with pytest.raises(errors.FileFormatError, match=r"m\.safetensors"):
        pb.load(path)


def test_tampered_classes_are_refused(tmp_path):
    path = tmp_path / "m.safetensors"
    fitted_classes(method="em").save(path)
    rewrite(path, set_scalar("labels", [["0", "0"]] * 3))
    with pytest.raises(errors.FileFormatError, match="does not hold a complete model"):
        pb.load(path)
