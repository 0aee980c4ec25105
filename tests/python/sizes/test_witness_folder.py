"""Models in the folder of a search: none but its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import polyabayes as pb
from polyabayes import priors
from polyabayes.exceptions import CheckpointWarning, FileFormatError, InvalidArgumentError
from polyabayes.sizes.witness import WitnessSearch

CORPUS = pb.datasets.make_lda_corpus(30, 12, 3, document_length=15, random_state=3).corpus
SIZES = (1, 2, 3)


def nested(**options: Any) -> WitnessSearch:
    arguments = {"max_steps": len(SIZES), "random_state": 1, "scoring": "bound", **options}
    lda = pb.LatentDirichletAllocation(learn_priors=True, max_iter=20)
    return WitnessSearch(lda, priors.Poisson(2.0), **arguments)


def fill_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no model be written, and what is small find its place."""
    open_file = Path.open

    def full(path: Path, mode: str = "r", *rest: Any, **named: Any) -> Any:
        if "x" in mode and "topics" in path.name:
            raise OSError(28, "No space left on device")
        return open_file(path, mode, *rest, **named)

    monkeypatch.setattr(Path, "open", full)


def assert_same_models(one: WitnessSearch, other: WitnessSearch) -> None:
    for size in SIZES:
        assert one.model(size).components_.tolist() == other.model(size).components_.tolist(), size


def test_models_of_a_deleted_search_are_not_taken_for_those_of_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nested(checkpoint=tmp_path).fit(CORPUS[:15])
    (tmp_path / "search.jsonl").unlink()
    other = tmp_path / "topics-20.safetensors"
    other.write_text("")
    whole = nested().fit(CORPUS)
    with monkeypatch.context() as patch:
        fill_disk(patch)
        with pytest.warns(CheckpointWarning, match="the model of size 1 is not in the checkpoint"):
            search = nested(checkpoint=tmp_path).fit(CORPUS)
    assert set(tmp_path.glob("topics*")) == {other}
    assert_same_models(search, whole)
    assert_same_models(nested(checkpoint=tmp_path).fit(CORPUS), whole)


def test_a_search_that_is_refused_removes_no_models(tmp_path: Path) -> None:
    path = tmp_path / "topics-2.safetensors"
    path.write_text("")
    with pytest.raises(InvalidArgumentError):
        nested(checkpoint=tmp_path, level=2.0).fit(CORPUS)
    assert path.exists()


def test_a_model_that_was_not_written_stays_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = nested().fit(CORPUS)
    path, save = tmp_path / "topics-2.safetensors", pb.LatentDirichletAllocation.save

    def save_other(model: pb.LatentDirichletAllocation, place: Path) -> None:
        if place == path:
            # A file of this name that is not of this search.
            save(whole.model(1), path)
            raise OSError(28, "No space left on device")
        save(model, place)

    monkeypatch.setattr(pb.LatentDirichletAllocation, "save", save_other)
    with pytest.warns(CheckpointWarning, match="the model of size 2 is not in the checkpoint"):
        search = nested(checkpoint=tmp_path).fit(CORPUS)
    assert not path.exists()
    assert_same_models(search, whole)


@pytest.mark.parametrize("name", ["a\0b", "a\ud800b"])
def test_a_folder_that_cannot_have_its_name_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(InvalidArgumentError, match=r"checkpoint has .*; leave"):
        nested(checkpoint=tmp_path / name).fit(CORPUS)


def flipped(content: bytes, bit: int) -> bytes:
    changed = bytearray(content)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


def test_one_flipped_bit_of_a_record_is_refused(tmp_path: Path) -> None:
    nested(checkpoint=tmp_path).fit(CORPUS)
    path = tmp_path / "search.jsonl"
    content = path.read_bytes()
    for bit in range(0, 8 * len(content), 7):
        path.write_bytes(flipped(content, bit))
        with pytest.raises(FileFormatError, match="search"):
            nested(checkpoint=tmp_path).fit(CORPUS)


@pytest.mark.parametrize("damage", ["cut", "flip", "empty", "gone", "other"])
def test_a_damaged_model_is_scored_again(tmp_path: Path, damage: str) -> None:
    whole = nested(checkpoint=tmp_path).fit(CORPUS)
    held_out = whole.predictive_bounds(CORPUS[:5])
    (tmp_path / "predictions.jsonl").unlink()
    path = tmp_path / "topics-2.safetensors"
    content = path.read_bytes()
    if damage == "gone":
        path.unlink()
    elif damage == "other":
        path.write_bytes((tmp_path / "topics-3.safetensors").read_bytes())
    else:
        damaged = {"cut": content[:-40], "flip": flipped(content, 8 * 300), "empty": b""}
        path.write_bytes(damaged[damage])
    again = nested(checkpoint=tmp_path).fit(CORPUS)
    assert tuple(again.predictive_bounds(CORPUS[:5])) == tuple(held_out)
    assert_same_models(again, whole)
    assert path.read_bytes() == content


def test_damaged_predictions_are_made_again(tmp_path: Path) -> None:
    search = nested(checkpoint=tmp_path).fit(CORPUS)
    bounds = search.predictive_bounds(CORPUS[:5])
    path = tmp_path / "predictions.jsonl"
    content = path.read_bytes()
    for bit in range(0, 8 * len(content), 97):
        path.write_bytes(flipped(content, bit))
        found = nested(checkpoint=tmp_path).fit(CORPUS).predictive_bounds(CORPUS[:5])
        assert tuple(found) == tuple(bounds)
