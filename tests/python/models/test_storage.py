"""Models in files: they come back bit by bit, and work removes nothing else."""

import json
import os
import pickle
import stat
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from safetensors import safe_open

import polyabayes as pb
from helpers.damage import full_disk
from helpers.stored_models import COUNTS, LDA, PFA, TOPICS, WORDS, known_lda, known_pfa, rewrite
from polyabayes import exceptions as errors

FRAME = pd.DataFrame(COUNTS, columns=list("abcdef"))
EM = {"fit_method": "em", "max_iter": 8, "random_state": 0}
ROWS = {"party": list("DIRR") * 5, "day": np.arange(20.0) ** 2}
DESCRIBED = pb.Corpus(COUNTS).with_metadata(ROWS)
HALVES = {"en": TOPICS[:, :3] / TOPICS[:, :3].sum(axis=1, keepdims=True), "de": TOPICS[:, [3, 5]]}
HALVES["de"] /= HALVES["de"].sum(axis=1, keepdims=True)


def bursty(kind, concentration):
    return kind(3, max_iter=12, thin=2, random_state=0, topic_concentration=concentration)


def by(formula):
    return LDA(3, max_iter=12, thin=2, random_state=0, formula=formula).fit(DESCRIBED)


def softmax():
    tables, bias = [np.log(table) for table in HALVES.values()], [[0.0, 1, 2], [1, 0]]
    options = {"decoder": "softmax", "bias": bias, "random_state": 0}
    return pb.DocumentModel.logistic_normal(tables, np.zeros(1), np.eye(1), **options)


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
    "frame": lambda: PFA(2, max_iter=4, random_state=2).fit(FRAME),
    "bursty LDA": lambda: bursty(LDA, "learn").fit(COUNTS),
    "bursty PFA": lambda: bursty(PFA, "learn").fit(COUNTS),
    "given concentrations": lambda: bursty(PFA, [1.0, np.inf, 3.0]).fit(COUNTS),
    "EM": lambda: LDA(4, init=LDA(3, **EM).fit(COUNTS), **EM).fit(COUNTS),
    "NMF": lambda: PFA(2, prior="nmf", max_iter=8, random_state=0).fit(COUNTS),
    "spline": lambda: by("~ party + bs(day, df=4)"),
    "interaction": lambda: by("~ party*day"),
    "levels": lambda: by("~ C(day > 5) + day"),
    "vocabularies": lambda: pb.DocumentModel.dirichlet(HALVES, [0.5, 1.0], random_state=0),
    "softmax": softmax,
}


def fitted_attributes(model):
    """What a file holds of a model: not its trace, its last state and the spread of its topics."""
    left_out = ("trace_", "components_std_", "provenance_", "feature_names_in_")
    return {n: x for n, x in vars(model).items() if n.endswith("_") and n not in left_out}


@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
def test_models_come_back_bit_by_bit(make, tmp_path):
    model, path = make(), tmp_path / "modèle 🎲.safetensors"
    model.save(path)
    loaded, expected = pb.load(str(path)), fitted_attributes(model)
    documents = DESCRIBED if model.n_features_in_ == 6 else [COUNTS[:, :3], COUNTS[:, [3, 5]]]
    documents = FRAME if hasattr(model, "feature_names_in_") else documents
    for same in (loaded, pickle.loads(pickle.dumps(model))):
        assert type(same) is type(model)
        assert fitted_attributes(same).keys() == expected.keys()
        for name, value in expected.items():
            np.testing.assert_array_equal(getattr(same, name), value, name, strict=True)
        np.testing.assert_array_equal(same.transform(documents), model.transform(documents))
        assert hasattr(same, "score") == hasattr(model, "score")
        if hasattr(model, "score"):
            scores = [one.score_samples(documents) for one in (same, model)]
            np.testing.assert_array_equal(*scores)
    for name, value in model.get_params(deep=False).items():
        if name == "init":
            assert loaded.init is None
        elif name != "random_state" or value is None or isinstance(value, (int, np.integer)):
            np.testing.assert_array_equal(getattr(loaded, name), value)
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]


def test_a_model_file_is_open_to_other_tools(tmp_path):
    path = tmp_path / "m.safetensors"
    known_pfa(vocabulary=WORDS).save(path)
    with safe_open(path, framework="numpy") as content:
        np.testing.assert_array_equal(content.get_tensor("components_"), 3 * TOPICS)
        assert json.loads(content.get_tensor("vocabulary").tobytes()) == WORDS
        about = json.loads(content.metadata()["polyabayes"])
        assert json.loads(about["header"])["class"] == "PoissonFactorAnalysis"


def classes():
    return pb.LatentClassAnalysis(2, random_state=0).fit([[0, 0, 1]] * 9 + [[1, 1, 0]] * 9)


def test_files_tell_what_made_them_and_when(tmp_path, monkeypatch):
    path, notes = tmp_path / "m", {"corpus": "ap", "n": 3, "seeds": [1, 2]}
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "86400")
    model = LDA(2, max_iter=4, random_state=0).fit(COUNTS)
    for saved in (model, classes()):
        saved.save(path, notes=notes)
        found = pb.load(path).provenance_
        date = "1970-01-02T00:00:00+00:00"
        assert found == {"version": pb.__version__, "date": date, "notes": notes}
        assert not hasattr(saved, "provenance_")
    model.save(path)
    loaded = pb.load(path)
    assert loaded.provenance_["notes"] == {}
    assert not hasattr(loaded.fit(COUNTS), "provenance_")
    rewrite(path, lambda _, header: header.__delitem__("provenance"))
    with pytest.raises(errors.FileFormatError, match="provenance"):
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


def test_failed_writing_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "m.safetensors"
    known_lda().save(path)
    old = path.read_bytes()

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", full_disk)
        with pytest.raises(errors.FileAccessError, match="No space left"):
            known_pfa().save(path)
    assert path.read_bytes() == old
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]
    known_pfa().save(path)
    assert isinstance(pb.load(path), PFA)


def resumed(change, model):
    """Train on from a state that was changed, and sealed again."""
    model.set_params(random_state=0, burn_in=1, thin=1, max_iter=4, checkpoint="folder").fit(COUNTS)
    rewrite(Path("folder/checkpoint.safetensors"), change)
    model.set_params(max_iter=6).fit(COUNTS)


# Files of a user in a folder that is given as a checkpoint, with names near those of states.
BESIDE = (
    "notes.txt",
    ".lda.safetensors.mine",
    ".checkpoint.safetensors.mine",
    ".checkpoint.safetensors.0123",
    "choice.safetensors.bak",
    "size-2-fold-0.safetensors.old",
    "shard-00000.mine.sweep-1.topics",
    f".model.safetensors.{'0' * 32}",
)


@pytest.mark.parametrize("work", ["train", "shards", "choose", "search"])
def test_work_removes_nothing_that_it_did_not_write(work, tmp_path):
    folder, corpus = tmp_path / "state", pb.Corpus(COUNTS)
    folder.mkdir()
    torn = f".checkpoint.safetensors.{'0123456789abcdef' * 2}"
    for name in (*BESIDE, torn):
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
        options = {"scoring": "bound", "max_steps": 2, "checkpoint": folder}
        pb.WitnessSearch(model, pb.priors.Poisson(2.0), **options).fit(corpus)
    assert len(list(folder.iterdir())) > len(BESIDE) + (work != "train")
    assert (folder / torn).exists() == (work != "train")
    assert all((folder / name).read_text() == name for name in BESIDE)
