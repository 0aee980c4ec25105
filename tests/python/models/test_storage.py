import gzip
import io
import json
import os
import stat
import subprocess
import sys
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from safetensors import safe_open
from safetensors.numpy import save_file
from sklearn.base import clone

import polyabayes as pb
from polyabayes import exceptions as errors
from polyabayes._support import storage

LDA, PFA = pb.LatentDirichletAllocation, pb.PoissonFactorAnalysis
WORDS = ["urn", "größe", "🎲", 'quo"te\n', "", "漢字"]
COUNTS = np.random.default_rng(0).poisson(1.5, (20, 6))
TOPICS = np.random.default_rng(1).dirichlet(np.ones(6), 2)
ARRAYS = ("components_", "doc_topic_prior_", "shape_", "probability_")
SCALARS = ("n_iter_", "seed_", "n_features_in_")


def known_lda(**options):
    return LDA.from_parameters(
        doc_topic_prior=[0.1, 0.7], topic_word=TOPICS, random_state=5, **options
    )


def known_pfa(**options):
    return PFA.from_parameters(
        topic_word=3 * TOPICS, shape=[0.5, 2.0], probability=0.3, random_state=5, **options
    )


def rewrite(path, change):
    """Apply `change` to the arrays and the header of a model file, and seal it again."""
    header, arrays = storage.read_arrays(path)
    storage.write_arrays(path, change(arrays, header) or header, arrays)


MODELS = {
    "known LDA": known_lda,
    "known PFA": known_pfa,
    "known words": lambda: known_pfa(vocabulary=WORDS),
    "fitted LDA": lambda: LDA(3, max_iter=8, random_state=1).fit(COUNTS),
    "fitted PFA": lambda: PFA(3, max_iter=8, prior="beta-gamma-gamma", random_state=1).fit(COUNTS),
    "fitted on words": lambda: LDA(3, max_iter=8).fit(pb.Corpus(COUNTS, WORDS)),
    "array priors": lambda: LDA(
        2, doc_topic_prior=np.array([0.2, 0.9]), topic_word_prior=np.float64(0.3), max_iter=4
    ).fit(COUNTS),
    "array start": lambda: PFA(
        2, shape=np.float32([1.0, 2.0]), probability=(0.2, 0.4), prior="gap", max_iter=4
    ).fit(COUNTS),
    "generator": lambda: LDA(2, random_state=np.random.default_rng(3), max_iter=4).fit(COUNTS),
    "random state": lambda: PFA(2, random_state=np.random.RandomState(3), max_iter=4).fit(COUNTS),
    "seed sequence": lambda: LDA(2, random_state=np.random.SeedSequence(3), max_iter=4).fit(COUNTS),
    "numpy sizes": lambda: LDA(np.int64(2), max_iter=np.int32(4), random_state=np.uint8(3)).fit(
        COUNTS
    ),
}


@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
def test_models_come_back_bit_by_bit(make, tmp_path):
    model, path = make(), tmp_path / "modèle 🎲.safetensors"
    model.save(path)
    loaded = pb.load(str(path))
    assert type(loaded) is type(model)
    for name in ARRAYS:
        assert hasattr(loaded, name) == hasattr(model, name)
        if hasattr(model, name):
            np.testing.assert_array_equal(getattr(loaded, name), getattr(model, name))
            assert getattr(loaded, name).dtype == np.float64
    for name in SCALARS:
        assert getattr(loaded, name, None) == getattr(model, name, None)
    words = None if model.vocabulary_ is None else model.vocabulary_.tolist()
    assert (None if loaded.vocabulary_ is None else loaded.vocabulary_.tolist()) == words
    np.testing.assert_array_equal(loaded.score_samples(COUNTS), model.score_samples(COUNTS))
    np.testing.assert_array_equal(loaded.transform(COUNTS), model.transform(COUNTS))
    sampled = (pb.log_likelihood(m, COUNTS, "smc", random_state=0) for m in (model, loaded))
    assert next(sampled).total == next(sampled).total
    for name, value in model.get_params().items():
        if name != "random_state" or value is None or isinstance(value, (int, np.integer)):
            np.testing.assert_array_equal(getattr(loaded, name), value)
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("cls", [LDA, PFA])
def test_loaded_models_can_be_trained_again(cls, tmp_path):
    model = cls(2, max_iter=4, random_state=2).fit(COUNTS)
    model.save(tmp_path / "m")
    again = pb.load(tmp_path / "m").fit(COUNTS)
    np.testing.assert_array_equal(again.components_, model.components_)


@pytest.mark.parametrize("cls", [LDA, PFA])
def test_models_of_a_frame_still_take_frames(cls, tmp_path):
    frame = pd.DataFrame(COUNTS, columns=list("abcdef"))
    model = cls(2, max_iter=4, random_state=2).fit(frame)
    model.save(tmp_path / "m")
    loaded = pb.load(tmp_path / "m")
    np.testing.assert_array_equal(loaded.transform(frame), model.transform(frame))
    assert loaded.score(frame) == model.score(frame)


def test_a_model_file_is_open_to_other_tools(tmp_path):
    path = tmp_path / "m.safetensors"
    known_pfa(vocabulary=WORDS).save(path)
    with safe_open(path, framework="numpy") as content:
        np.testing.assert_array_equal(content.get_tensor("components_"), 3 * TOPICS)
        assert json.loads(content.get_tensor("vocabulary").tobytes()) == WORDS
        about = json.loads(content.metadata()["polyabayes"])
        assert json.loads(about["header"])["class"] == "PoissonFactorAnalysis"


@pytest.mark.parametrize("share", [0.0, 0.001, 0.5, 0.999])
def test_files_that_are_cut_short(share, tmp_path):
    path = tmp_path / "m.safetensors"
    known_lda(vocabulary=WORDS).save(path)
    whole = path.read_bytes()
    path.write_bytes(whole[: int(share * len(whole))])
    with pytest.raises(errors.FileFormatError, match=r"m\.safetensors is not a whole"):
        pb.load(path)


@pytest.mark.parametrize("content", [b"{}", b"word,count\n" * 50, b"\x00" * 64, b"\xff" * 64])
def test_files_of_another_format(content, tmp_path):
    path = tmp_path / "model"
    path.write_bytes(content)
    with pytest.raises(errors.FileFormatError, match="model"):
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
        errors.FileFormatError, match=rf"{name} is no model .* looks like {message}"
    ):
        pb.load(path)


def test_a_gzip_file_that_is_cut_short_is_said_to_be(tmp_path):
    path = tmp_path / "counts.tns.gz"
    path.write_bytes(gzip.compress(b"1 1 3\n")[:12])
    with pytest.raises(errors.FileFormatError, match=r"counts\.tns\.gz is damaged or cut short"):
        pb.load(path)


@pytest.mark.parametrize("name", ["model.gz", "model.pkl", "model.NPZ"])
def test_a_model_is_not_saved_under_a_name_of_another_format(tmp_path, name):
    classes = pb.LatentClassAnalysis(2, random_state=0)
    for model in (known_lda(), classes.fit([[0, 0, 1]] * 9 + [[1, 1, 0]] * 9)):
        with pytest.raises(errors.InvalidArgumentError, match=r"call it model\.safetensors"):
            model.save(tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_files_tell_what_made_them_and_when(tmp_path, monkeypatch):
    path, notes = tmp_path / "m", {"corpus": "ap", "n": 3, "seeds": [1, 2]}
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "86400")
    model = LDA(2, max_iter=4, random_state=0).fit(COUNTS)
    classes = pb.LatentClassAnalysis(2, random_state=0)
    for saved in (model, classes.fit([[0, 0, 1]] * 9 + [[1, 1, 0]] * 9)):
        saved.save(path, notes=notes)
        found = pb.load(path).provenance_
        assert found == {
            "version": pb.__version__,
            "date": "1970-01-02T00:00:00+00:00",
            "notes": notes,
        }
        assert not hasattr(saved, "provenance_")
    model.save(path)
    loaded = pb.load(path)
    assert loaded.provenance_["notes"] == {}
    assert not hasattr(loaded.fit(COUNTS), "provenance_")
    for bad in ({"a": {1}}, {"a": float("nan")}, [1], "text"):
        with pytest.raises(errors.InvalidTypeError, match="notes must"):
            model.save(path, notes=bad)
    rewrite(path, lambda _, header: header.__delitem__("provenance"))
    with pytest.raises(errors.FileFormatError, match="provenance"):
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


def test_equal_models_make_equal_files(tmp_path, monkeypatch):
    code = (
        "import sys, numpy as np, polyabayes as pb;"
        "x = np.arange(24).reshape(4, 6) % 5;"
        "pb.LatentDirichletAllocation(2, max_iter=4, random_state=0).fit(x).save(sys.argv[1])"
    )
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")
    files = [tmp_path / str(n) for n in range(2)]
    for file in files:
        subprocess.run([sys.executable, "-c", code, str(file)], check=True)
    assert len({file.read_bytes() for file in files}) == 1
    model = pb.load(files[0])
    for _ in range(30):
        model.save(files[1])
        assert files[1].read_bytes() == files[0].read_bytes()


def test_a_model_takes_no_paths_from_its_file(tmp_path):
    path = tmp_path / "m.safetensors"
    known_lda().save(path)
    where = str(tmp_path / "elsewhere")
    rewrite(path, lambda _, header: header["parameters"].update(checkpoint=where, n_jobs=999))
    model = pb.load(path)
    assert model.checkpoint is None
    assert model.n_jobs is None


def test_files_keep_their_mode_and_what_is_no_file_is_refused(tmp_path):
    path = tmp_path / "m.safetensors"
    known_lda().save(path)
    path.chmod(0o604)
    known_pfa().save(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o604
    link = tmp_path / "link"
    link.symlink_to(path)
    known_lda().save(link)
    assert link.is_symlink()
    assert isinstance(pb.load(path), LDA)
    path.chmod(0o444)
    with pytest.raises(errors.FileAccessError, match="it is read-only"):
        known_pfa().save(path)
    assert isinstance(pb.load(path), LDA)
    os.mkfifo(tmp_path / "pipe")
    for special in (tmp_path / "pipe", Path("/dev/null")):
        with pytest.raises(errors.FileAccessError, match="a device, pipe or socket"):
            known_lda().save(special)
    assert not Path("/dev/null").is_file()


def test_nothing_else_in_the_folder_of_a_checkpoint_is_removed(tmp_path):
    mine = [tmp_path / ".checkpoint.safetensors.mine", tmp_path / ".checkpoint.safetensors.0123"]
    torn = tmp_path / f".checkpoint.safetensors.{'0123456789abcdef' * 2}"
    for file in (*mine, torn):
        file.write_text("")
    LDA(2, max_iter=2, random_state=0, checkpoint=tmp_path).fit(COUNTS)
    assert all(file.exists() for file in mine)
    assert not torn.exists()


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


def test_what_is_no_path_is_refused():
    counts = [[1, 2]]
    tensor = pb.CountTensor.from_dense(counts, ["i", "j"])
    for call in (
        lambda: pb.load(3),
        lambda: known_lda().save(None),
        lambda: pb.read_corpus(3),
        lambda: pb.write_corpus(counts, None),
        lambda: pb.read_tensor(b"name"),
        lambda: pb.write_tensor(tensor, 3),
    ):
        with pytest.raises(errors.InvalidTypeError, match="path must be a str or a path, got"):
            call()


@pytest.mark.parametrize(
    ("path", "message"),
    [("a\0.npz", "null character"), ("a\ud800.npz", "characters that no file name can have")],
)
def test_what_no_file_can_be_called_is_refused(path, message):
    tensor = pb.CountTensor.from_dense([[1, 2]], ["i", "j"])
    for call in (
        lambda: pb.load(path),
        lambda: known_lda().save(path),
        lambda: pb.read_corpus(path),
        lambda: pb.write_corpus([[1, 2]], path),
        lambda: pb.read_tensor(path),
        lambda: pb.write_tensor(tensor, path),
    ):
        with pytest.raises(errors.InvalidArgumentError, match=f"path has .*{message}"):
            call()


def test_failed_writing_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "m.safetensors"
    known_lda().save(path)
    old = path.read_bytes()

    def full_disk(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", full_disk)
        with pytest.raises(errors.FileAccessError, match="No space left"):
            known_pfa().save(path)
    assert path.read_bytes() == old
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]
    known_pfa().save(path)
    assert isinstance(pb.load(path), PFA)


def test_only_fitted_models_are_saved(tmp_path):
    for model in (LDA(), PFA()):
        with pytest.raises(errors.NotFittedError):
            model.save(tmp_path / "m")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "change",
    [
        lambda arrays, _: arrays["parameters"].fill(np.nan),
        lambda arrays, _: arrays.update(parameters=-arrays["parameters"]),
        lambda arrays, _: arrays["kept_sum"].fill(np.nan),
        lambda arrays, _: arrays.update(kept_sum=arrays["kept_sum"][:-1].copy()),
        lambda arrays, _: arrays.__delitem__("kept_sum"),
        lambda arrays, _: arrays["assignments"].fill(2**16 - 1),
        lambda arrays, _: arrays.update(assignments=arrays["assignments"].astype(np.int64)),
        lambda arrays, _: arrays.update(parameters=arrays["parameters"][np.newaxis]),
        lambda _, header: header.update(n_kept=10**400),
        lambda _, header: header.update(position=["sweep", 0, -1]),
    ],
)
@pytest.mark.parametrize("model", [LDA(2), PFA(2), PFA(2, prior="beta-gamma-gamma")])
def test_states_that_no_training_was_in_are_refused(model, change, tmp_path):
    model = clone(model).set_params(random_state=0, burn_in=1, thin=1, checkpoint=tmp_path)
    model.set_params(max_iter=4).fit(COUNTS)
    rewrite(tmp_path / "checkpoint.safetensors", change)
    with pytest.raises(errors.PolyabayesError):
        model.set_params(max_iter=6).fit(COUNTS)


# Files of a user in a folder that is given as a checkpoint, with names near those of states.
BESIDE = (
    "notes.txt",
    ".lda.safetensors.mine",
    "choice.safetensors.bak",
    "size-2-fold-0.safetensors.old",
    "shard-00000.mine.sweep-1.topics",
    f".model.safetensors.{'0' * 32}",
)


@pytest.mark.parametrize("work", ["train", "shards", "choose", "search"])
def test_work_removes_nothing_that_it_did_not_write(work, tmp_path):
    folder, corpus = tmp_path / "state", pb.Corpus(COUNTS)
    folder.mkdir()
    for name in BESIDE:
        (folder / name).write_text(name)
    model = LDA(2, max_iter=4, random_state=0, n_jobs=1)
    if work == "train":
        model.set_params(checkpoint=folder, checkpoint_every=1).fit(corpus)
    elif work == "shards":
        shards = pb.write_shards(corpus, tmp_path / "shards", 2)
        model.set_params(checkpoint=folder).fit(shards)
    elif work == "choose":
        with warnings.catch_warnings(action="ignore", category=errors.EdgeWarning):
            pb.choose_n_components(model, corpus, [1, 2], n_folds=2, checkpoint=folder)
    else:
        pb.WitnessSearch(
            model, pb.priors.Poisson(2.0), scoring="bound", max_steps=2, checkpoint=folder
        ).fit(corpus)
    assert len(list(folder.iterdir())) > len(BESIDE)
    assert all((folder / name).read_text() == name for name in BESIDE)
