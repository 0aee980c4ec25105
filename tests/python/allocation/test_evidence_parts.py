"""Evidence on workers and from checkpoints: the bits of one process, whatever comes between."""

from __future__ import annotations

import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import polyabayes as pb
from interruption import interrupted_when_done
from polyabayes import AllocationModel, CountTensor, _core
from polyabayes._support.random import draw_seed
from polyabayes.allocation.evidence import folder as evidence_folder, parts as evidence_parts
from polyabayes.allocation.layout import lay_out
from polyabayes.allocation.options import Options
from polyabayes.exceptions import (
    CheckpointWarning,
    Interrupted,
    InvalidArgumentError,
    InvalidTypeError,
)

# Light and heavy cells.
COUNTS = np.array([[45, 3, 0, 1], [0, 9, 5, 0], [1, 0, 34, 2], [0, 2, 1, 7]])
MODEL = AllocationModel.nmf(3)
# Hidden nodes that are summed out one after the other, and together where tokens pile up.
CHAIN = AllocationModel.hidden_markov(3, 2)
SMALL = [[4, 3, 0], [0, 0, 3], [0, 0, 3]]


def triples(most: int) -> CountTensor:
    counts = np.random.default_rng(0).poisson(2.0, (3, 3, 3))
    return CountTensor.from_dense(np.minimum(counts, most), axes=["x1", "x2", "x3"])


WAYS: dict[str, dict[str, Any]] = {
    "tempered": {"method": "tempered", "n_samples": 64},
    "smc": {"method": "smc", "n_particles": 64, "resampling": "residual", "order": "sorted"},
    "smc-lookahead": {"method": "smc-lookahead", "n_particles": 64, "n_replicates": 3},
    "auto": {"budget": 10.0},
    "auto, exact": {},
    "auto, of tempering": {"budget": 10.0, "n_samples": 32},
}
TEMPERED = {**WAYS["tempered"], "random_state": 3}

pytestmark = pytest.mark.filterwarnings("ignore::polyabayes.exceptions.UnreliableErrorWarning")


def assert_same(found: pb.Evidence, expected: pb.Evidence) -> None:
    for field in fields(pb.Evidence):
        if field.name != "seconds":
            mine, other = getattr(found, field.name), getattr(expected, field.name)
            np.testing.assert_equal(mine, other, field.name)


@pytest.fixture(scope="module")
def spawned() -> Iterator[ProcessPoolExecutor]:
    with ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as pool:
        yield pool


def test_a_second_path_is_taken_where_the_first_does_not_settle(tmp_path: Path) -> None:
    """All tokens in one of ten topics: the first ladder spreads them, from one urn they stay."""
    counts = 1 + np.arange(64).reshape(8, 8) % 5
    model = AllocationModel.nmf(10, concentration=1e-3)
    asked: dict[str, Any] = {"method": "tempered", "n_samples": 128, "given_total": True}
    found = model.log_evidence(counts, random_state=1, **asked)
    assert found.round_trips > 100
    assert found.barrier < 2.0
    # The pseudo-counts of one topic, which holds nearly all of the evidence.
    one = AllocationModel.nmf(1, concentration=1e-4).log_evidence(counts, given_total=True)
    assert one.method == "exact"
    own_error = np.sqrt(found.std_error**2 - found.left_open**2)
    assert abs(found.value - one.value) < 4 * own_error < 0.5
    # The first path, which is rough, leaves that much open.
    assert found.std_error > found.left_open > 1.0
    assert not found.converged
    with ThreadPoolExecutor(2) as pool:
        there = model.log_evidence(
            counts, random_state=1, executor=pool, checkpoint=tmp_path / "states", **asked
        )
    assert_same(there, found)


@pytest.mark.parametrize("way", WAYS)
def test_workers_and_checkpoints_give_the_bits_of_one_process(
    way: str, spawned: Executor, tmp_path: Path
) -> None:
    options = {**WAYS[way], "random_state": 7}
    counts = SMALL if way.endswith("exact") else COUNTS
    plain = MODEL.log_evidence(counts, n_jobs=1, **options)
    assert plain.method == way.split()[-1].replace("tempering", "tempered") or way == "auto"
    assert_same(MODEL.log_evidence(counts, executor=spawned, **options), plain)
    with ThreadPoolExecutor(3) as pool:
        threads = MODEL.log_evidence(counts, executor=pool, n_jobs=2, **options)
    assert_same(threads, plain)
    for n_jobs in (3, 1):
        kept = MODEL.log_evidence(counts, n_jobs=n_jobs, checkpoint=tmp_path, **options)
        assert_same(kept, plain)


def test_hidden_nodes_apart_joined_or_tied_and_huge_cells_go_on_too(
    spawned: Executor, tmp_path: Path
) -> None:
    tied = AllocationModel.symmetric_nmf(2)
    huge = COUNTS.copy()
    huge[0, 0] = 70_000
    cases = [(CHAIN, triples(9)), (CHAIN, triples(1)), (tied, COUNTS), (MODEL, huge)]
    for number, (model, data) in enumerate(cases):
        plain = model.log_evidence(data, **TEMPERED)
        folder = tmp_path / str(number)
        found = model.log_evidence(data, executor=spawned, checkpoint=folder, **TEMPERED)
        assert_same(found, plain)


def test_an_elimination_order_travels(spawned: Executor) -> None:
    hidden = lay_out(CHAIN, triples(1)).hidden
    options = {**TEMPERED, "elimination_order": [hidden[1], hidden[0], hidden[2]]}
    plain = CHAIN.log_evidence(triples(1), **options)
    assert plain.value != CHAIN.log_evidence(triples(1), **TEMPERED).value
    assert_same(CHAIN.log_evidence(triples(1), executor=spawned, **options), plain)


def test_a_folder_of_a_short_run_goes_on_to_a_long_one(tmp_path: Path) -> None:
    wanted = {**TEMPERED, "n_samples": 256, "target_std_error": 0.001}
    plain = MODEL.log_evidence(COUNTS, **wanted)
    short = MODEL.log_evidence(COUNTS, checkpoint=tmp_path, **TEMPERED)
    assert short.n_rounds < plain.n_rounds
    assert_same(MODEL.log_evidence(COUNTS, checkpoint=tmp_path, **wanted), plain)
    # All rounds are there, of which the short run needs the first.
    assert_same(MODEL.log_evidence(COUNTS, checkpoint=tmp_path, **TEMPERED), short)


def test_rounds_in_several_parts_are_whole_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts that end no round, which take ten seconds otherwise."""
    plain = MODEL.log_evidence(COUNTS, **TEMPERED)
    parts, seen = evidence_parts._ladder_parts, set()

    def shorter(work: Any, kappa: float, n_scans: int, ladders: list[bytes]) -> Any:
        if ladders[0] not in seen:
            seen.update(ladders)
            return [(ladder, None) for ladder in ladders]
        return parts(work, kappa, n_scans, ladders)

    monkeypatch.setattr(evidence_parts, "_ladder_parts", shorter)
    with ThreadPoolExecutor(2) as pool:
        assert_same(MODEL.log_evidence(COUNTS, executor=pool, **TEMPERED), plain)
    assert len(seen) > 4


def test_ladders_that_lag_or_are_damaged_catch_up(tmp_path: Path) -> None:
    """A folder as kills and bad disks leave it."""
    plain = MODEL.log_evidence(COUNTS, **TEMPERED)
    MODEL.log_evidence(COUNTS, checkpoint=tmp_path / "short", **{**TEMPERED, "n_samples": 16})
    long = tmp_path / "long"
    MODEL.log_evidence(COUNTS, checkpoint=long, **{**TEMPERED, "n_samples": 32})
    shutil.copy(tmp_path / "short" / "replicate-1.safetensors", long)
    (long / "replicate-2.safetensors").unlink()
    content = bytearray((long / "replicate-3.safetensors").read_bytes())
    content[-5] ^= 1
    (long / "replicate-3.safetensors").write_bytes(content)
    (long / ".replicate-0.safetensors.1234abcd").write_bytes(b"")
    assert_same(MODEL.log_evidence(COUNTS, checkpoint=long, **TEMPERED), plain)


def test_an_interrupt_keeps_the_rounds_and_the_same_call_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = MODEL.log_evidence(COUNTS, **TEMPERED)
    with (
        interrupted_when_done(2, monkeypatch, evidence_parts),
        pytest.raises(Interrupted, match="stopped after 2 rounds") as caught,
    ):
        MODEL.log_evidence(COUNTS, checkpoint=tmp_path, **TEMPERED)
    partial = caught.value.partial
    assert partial.rounds == plain.rounds[:2]
    assert not partial.converged
    with ThreadPoolExecutor(2) as pool:
        found = MODEL.log_evidence(COUNTS, checkpoint=tmp_path, executor=pool, **TEMPERED)
    assert_same(found, plain)


SCRIPT = """
    import os, signal, sys
    import numpy as np
    import polyabayes as pb
    from polyabayes.allocation.evidence import folder as evidence_folder

    left = int(sys.argv[2])

    def killed(self, *arguments, keep=evidence_folder.EvidenceFolder.keep):
        global left
        keep(self, *arguments)
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    evidence_folder.EvidenceFolder.keep = killed
    counts = np.array({counts})
    pb.AllocationModel.nmf(3).log_evidence(counts, checkpoint=sys.argv[1], n_jobs=1, **{options})
"""


@pytest.mark.skipif(os.name == "nt", reason="there is no SIGKILL")
def test_a_run_that_is_killed_goes_on_in_another_process(tmp_path: Path) -> None:
    """Killed between the ladders of a round, then within another, then run to its end."""
    script, folder = tmp_path / "script.py", tmp_path / "folder"
    script.write_text(textwrap.dedent(SCRIPT).format(counts=COUNTS.tolist(), options=TEMPERED))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    for n_writes in (6, 5):
        done = subprocess.run(
            [sys.executable, str(script), str(folder), str(n_writes)],
            timeout=100,
            env=environment,
        )
        assert done.returncode == -signal.SIGKILL
    n_rounds = [len(_replicate(folder, number).found) for number in range(4)]
    # Four ladders were made before two rounds and a half of another.
    assert sum(n_rounds) == 6 + 5 - 4
    plain = MODEL.log_evidence(COUNTS, **TEMPERED)
    assert_same(MODEL.log_evidence(COUNTS, checkpoint=folder, n_jobs=2, **TEMPERED), plain)


def _replicate(folder: Path, number: int) -> evidence_folder.Replicate:
    given = {name: value for name, value in TEMPERED.items() if name != "random_state"}
    seed = draw_seed(TEMPERED["random_state"])
    layout, options = lay_out(MODEL, COUNTS), Options.of(given)
    return evidence_folder.EvidenceFolder(folder, layout, options, seed).read(number)


def test_a_full_disk_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = MODEL.log_evidence(COUNTS, **TEMPERED)
    write, written = evidence_folder.write_arrays, []

    def full(path: Path, *arguments: Any) -> None:
        written.append(path)
        if len(written) > 8:
            raise OSError(28, "No space left on device")
        write(path, *arguments)

    with monkeypatch.context() as patched:
        patched.setattr(evidence_folder, "write_arrays", full)
        with pytest.warns(CheckpointWarning, match="No space left") as warned:
            found = MODEL.log_evidence(COUNTS, checkpoint=tmp_path, **TEMPERED)
    assert len([one for one in warned if one.category is CheckpointWarning]) == 1
    assert_same(found, plain)
    assert_same(MODEL.log_evidence(COUNTS, checkpoint=tmp_path, **TEMPERED), plain)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("random_state", {"random_state": 4}),
        ("n_replicates", {"n_replicates": 5}),
        ("method", {"method": "smc", "n_samples": None}),
        ("data", {"data": COUNTS + 1}),
        ("sizes", {"model": AllocationModel.nmf(2)}),
        ("concentration", {"model": AllocationModel.nmf(3, concentration=2.0)}),
    ],
)
def test_a_folder_of_another_run_is_refused(
    name: str, change: dict[str, Any], tmp_path: Path
) -> None:
    MODEL.log_evidence(COUNTS, checkpoint=tmp_path, **TEMPERED)
    options = {**TEMPERED, **change}
    model, data = options.pop("model", MODEL), options.pop("data", COUNTS)
    with pytest.raises(InvalidArgumentError, match=f"another run: its {name}"):
        model.log_evidence(data, checkpoint=tmp_path, **options)


def test_the_rate_and_the_total_are_no_part_of_a_run(tmp_path: Path) -> None:
    MODEL.log_evidence(COUNTS, checkpoint=tmp_path, **TEMPERED)
    for options in ({"given_total": True}, {}):
        model = AllocationModel.nmf(3, rate=0.7)
        plain = model.log_evidence(COUNTS, **TEMPERED, **options)
        assert_same(model.log_evidence(COUNTS, checkpoint=tmp_path, **TEMPERED, **options), plain)


def test_bad_combinations_are_refused_before_any_work(tmp_path: Path) -> None:
    with ThreadPoolExecutor(1) as pool:
        for method in ("exact", "vb"):
            with pytest.raises(InvalidArgumentError, match=f"not of '{method}'"):
                MODEL.log_evidence(COUNTS, method, executor=pool)
            with pytest.raises(InvalidArgumentError, match="checkpoint are of methods that draw"):
                MODEL.log_evidence(COUNTS, method, checkpoint=tmp_path / "none")
        observed = np.ones(COUNTS.shape, bool)
        observed[0, 0] = False
        rated = AllocationModel.nmf(3, rate=0.5)
        with pytest.raises(InvalidArgumentError, match="need all cells observed, and 1 are"):
            rated.log_evidence(COUNTS, observed=observed, executor=pool)
        with pytest.raises(InvalidArgumentError, match="needs all hidden nodes in one clique"):
            CHAIN.log_evidence(triples(1), "smc-lookahead", executor=pool)
    with pytest.raises(InvalidTypeError, match="executor must be"):
        MODEL.log_evidence(COUNTS, executor=4)  # type: ignore[arg-type]
    with pytest.raises(InvalidTypeError, match="checkpoint must be a folder"):
        MODEL.log_evidence(COUNTS, checkpoint=4)
    assert list(tmp_path.iterdir()) == []


def test_models_that_are_compared_have_folders_of_their_own(tmp_path: Path) -> None:
    models = {f"K = {K}": AllocationModel.nmf(K) for K in (2, 3)}
    options: dict[str, Any] = {"method": "tempered", "n_samples": 32, "random_state": 1}
    plain = pb.posterior_over_models(models, COUNTS, **options)
    for _ in range(2):
        kept = pb.posterior_over_models(models, COUNTS, checkpoint=tmp_path, **options)
        assert kept.probabilities == plain.probabilities
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model-0", "model-1"]


@pytest.mark.filterwarnings("ignore::polyabayes.exceptions.EdgeWarning")
def test_sizes_are_chosen_by_evidence_on_workers_and_from_a_checkpoint(tmp_path: Path) -> None:
    options: dict[str, Any] = {"method": "tempered", "n_samples": 32, "random_state": 1}
    model = AllocationModel.nmf(None)
    plain = pb.choose_n_components(model, COUNTS, [2, 3], **options)
    with ThreadPoolExecutor(2) as pool:
        found = pb.choose_n_components(
            model, COUNTS, [2, 3], executor=pool, checkpoint=tmp_path, **options
        )
    assert found.to_frame().equals(plain.to_frame())
    assert len(list(tmp_path.rglob("size-*-concentration-1.0.safetensors"))) == 2


def test_a_ladder_of_other_data_is_refused() -> None:
    options = Options("tempered")
    parts, others = (
        _core.AllocationParts(lay_out(MODEL, counts).core, options, seed=0)
        for counts in (COUNTS, COUNTS + 1)
    )
    (ladder,) = parts.ladders(1.0, [0], n_jobs=1)
    for saved in (ladder[:-1], b"", ladder[:50] + bytes(len(ladder) - 50)):
        with pytest.raises(InvalidArgumentError, match="saved state is damaged, or is of other"):
            parts.ladder_parts(1.0, [saved], 8, n_jobs=1)
    with pytest.raises(InvalidArgumentError, match="of other work"):
        others.ladder_parts(1.0, [ladder], 8, n_jobs=1)
