"""Models in the folder of a search: none but its own."""

import builtins
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import polyabayes as pb
from helpers import nested_searches
from helpers.damage import flip, flipped
from helpers.nested_searches import CORPUS
from polyabayes import exceptions as errors
from polyabayes._support.storage.arrays import read_arrays, write_arrays

SIZES = (1, 2, 3)
nested = partial(nested_searches.nested, max_steps=len(SIZES))


def fill_disk(monkeypatch):
    """Let no model be written, and what is small find its place."""
    opened = builtins.open

    def full(path, mode="r", *rest, **named):
        if "x" in mode and "topics" in Path(path).name:
            raise OSError(28, "No space left on device")
        return opened(path, mode, *rest, **named)

    monkeypatch.setattr(builtins, "open", full)


def assert_same_models(one, other):
    for size in SIZES:
        assert one.model(size).components_.tolist() == other.model(size).components_.tolist(), size


def test_models_of_a_deleted_search_are_not_taken_for_those_of_the_next(tmp_path, monkeypatch):
    nested(checkpoint=tmp_path).fit(CORPUS[:15])
    (tmp_path / "search.safetensors").unlink()
    other = tmp_path / "topics-20.safetensors"
    other.write_text("")
    whole = nested().fit(CORPUS)
    with monkeypatch.context() as patch:
        fill_disk(patch)
        told = "the model of size 1 is not in the checkpoint"
        with pytest.warns(errors.CheckpointWarning, match=told):
            search = nested(checkpoint=tmp_path).fit(CORPUS)
    assert set(tmp_path.glob("topics*")) == {other}
    assert_same_models(search, whole)
    assert_same_models(nested(checkpoint=tmp_path).fit(CORPUS), whole)


def test_a_flipped_bit_is_refused_or_made_again(tmp_path):
    """What says whose folder it is, is refused; a score is made again, with a warning."""
    whole = nested(checkpoint=tmp_path).fit(CORPUS).bounds_["log_score"].tolist()
    for name in ("search", "score-2"):
        path = tmp_path / f"{name}.safetensors"
        content = path.read_bytes()
        for bit in range(0, 8 * len(content), 1801):
            path.write_bytes(flipped(content, bit // 8, bit % 8))
            if name == "search":
                with pytest.raises(errors.FileFormatError, match="search"):
                    nested(checkpoint=tmp_path).fit(CORPUS)
                continue
            with pytest.warns(errors.CheckpointWarning, match="score-2.*it is made again"):
                again = nested(checkpoint=tmp_path).fit(CORPUS)
            assert again.bounds_["log_score"].tolist() == whole
        path.write_bytes(content)


def test_a_score_that_says_nonsense_is_made_again(tmp_path):
    whole = nested(checkpoint=tmp_path).fit(CORPUS).bounds_["log_score"].tolist()
    path = tmp_path / "score-2.safetensors"
    header, _ = read_arrays(path)
    for change in ({"score": ["x"]}, {"score": [float("nan")]}, {"seconds": None}):
        write_arrays(path, {**header, **change}, {})
        with pytest.warns(errors.CheckpointWarning, match="holds no record.*it is made again"):
            again = nested(checkpoint=tmp_path).fit(CORPUS)
        assert again.bounds_["log_score"].tolist() == whole
    write_arrays(path, {**header, "of": "another search"}, {})
    assert nested(checkpoint=tmp_path).fit(CORPUS).bounds_["log_score"].tolist() == whole


@pytest.mark.parametrize("file", ["score-2", "topics-2"])
def test_what_may_not_be_read_is_an_error(tmp_path, monkeypatch, file):
    nested(checkpoint=tmp_path).fit(CORPUS)
    read = np.fromfile

    def refused(stream, **options):
        if Path(stream.name).name == f"{file}.safetensors":
            raise PermissionError(13, "Permission denied")
        return read(stream, **options)

    monkeypatch.setattr(np, "fromfile", refused)
    with pytest.raises(errors.FileAccessError, match=rf"{file}.*Permission denied"):
        nested(checkpoint=tmp_path).fit(CORPUS)


@pytest.mark.parametrize("damage", ["cut", "flip", "empty", "gone", "other"])
def test_a_damaged_model_is_scored_again(tmp_path, damage):
    whole = nested(checkpoint=tmp_path).fit(CORPUS)
    held_out = whole.predictive_bounds(CORPUS[:5])
    for kept in tmp_path.glob("prediction-*"):
        kept.unlink()
    path = tmp_path / "topics-2.safetensors"
    content, components = path.read_bytes(), pb.load(path).components_
    if damage == "gone":
        path.unlink()
    elif damage == "other":
        path.write_bytes((tmp_path / "topics-3.safetensors").read_bytes())
    else:
        damaged = {"cut": content[:-40], "flip": flipped(content, 300), "empty": b""}
        path.write_bytes(damaged[damage])
    if damage in ("gone", "other"):
        again = nested(checkpoint=tmp_path).fit(CORPUS)
    else:
        with pytest.warns(errors.CheckpointWarning, match="topics-2.*it is made again"):
            again = nested(checkpoint=tmp_path).fit(CORPUS)
    assert tuple(again.predictive_bounds(CORPUS[:5])) == tuple(held_out)
    assert_same_models(again, whole)
    np.testing.assert_array_equal(pb.load(path).components_, components)


def test_a_damaged_prediction_is_made_again(tmp_path):
    bounds = nested(checkpoint=tmp_path).fit(CORPUS).predictive_bounds(CORPUS[:5])
    path = next(tmp_path.glob("prediction-2-*"))
    flip(path, 124)
    search = nested(checkpoint=tmp_path).fit(CORPUS)
    with pytest.warns(errors.CheckpointWarning, match="prediction-2.*it is made again"):
        assert tuple(search.predictive_bounds(CORPUS[:5])) == tuple(bounds)
