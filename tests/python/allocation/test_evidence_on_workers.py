"""Evidence on workers has the bits of one process; comparisons go on from what is done."""

import os
import pickle
import signal
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields

import numpy as np
import pytest

import polyabayes as pb
from helpers.damage import flip
from helpers.interruption import interrupted_when_done, unwanted
from polyabayes import AllocationModel, CountTensor, _core
from polyabayes.allocation import options as options_module
from polyabayes.allocation.evidence.estimation import _task
from polyabayes.allocation.layout import lay_out
from polyabayes.allocation.options import Options
from polyabayes.exceptions import CheckpointWarning, Interrupted, InvalidArgumentError

# Light and heavy cells.
COUNTS = np.array([[45, 3, 0, 1], [0, 9, 5, 0], [1, 0, 34, 2], [0, 2, 1, 7]])
MODEL = AllocationModel.nmf(3)
# Hidden nodes that are summed out one after the other, and together where tokens pile up.
CHAIN = AllocationModel.hidden_markov(3, 2)
SMALL = [[4, 3, 0], [0, 0, 3], [0, 0, 3]]


def triples(most):
    counts = np.random.default_rng(0).poisson(2.0, (3, 3, 3))
    return CountTensor.from_dense(np.minimum(counts, most), axes=["x1", "x2", "x3"])


WAYS = {
    "tempered": {"method": "tempered", "n_samples": 32},
    "smc": {"method": "smc", "n_particles": 64, "resampling": "residual", "order": "sorted"},
    "auto": {"budget": 10.0},
    "auto, exact": {},
    "auto, of tempering": {"budget": 10.0, "n_samples": 32},
}
TEMPERED = {**WAYS["tempered"], "random_state": 3}

pytestmark = pytest.mark.filterwarnings("ignore::polyabayes.exceptions.UnreliableErrorWarning")


def assert_same(found, expected):
    for field in fields(pb.Evidence):
        if field.name != "seconds":
            mine, other = getattr(found, field.name), getattr(expected, field.name)
            np.testing.assert_equal(mine, other, field.name)


@pytest.mark.parametrize("way", WAYS)
def test_workers_give_the_bits_of_one_process(way, spawned):
    options = {**WAYS[way], "random_state": 7}
    counts = SMALL if way.endswith("exact") else COUNTS
    plain = MODEL.log_evidence(counts, n_jobs=1, **options)
    assert plain.method == way.split()[-1].replace("tempering", "tempered") or way == "auto"
    assert_same(MODEL.log_evidence(counts, executor=spawned, **options), plain)
    with ThreadPoolExecutor(3) as pool:
        threads = MODEL.log_evidence(counts, executor=pool, n_jobs=2, **options)
    assert_same(threads, plain)


def test_hidden_nodes_apart_joined_or_tied_and_huge_cells_travel(spawned):
    huge = COUNTS.copy()
    huge[0, 0] = 70_000
    tied = AllocationModel.symmetric_nmf(2)
    for model, data in ((CHAIN, triples(9)), (CHAIN, triples(1)), (tied, COUNTS), (MODEL, huge)):
        plain = model.log_evidence(data, **TEMPERED)
        assert_same(model.log_evidence(data, executor=spawned, **TEMPERED), plain)
    hidden = lay_out(CHAIN, triples(1)).hidden
    options = {**TEMPERED, "elimination_order": [hidden[1], hidden[0], hidden[2]]}
    plain = CHAIN.log_evidence(triples(1), **options)
    assert plain.value != CHAIN.log_evidence(triples(1), **TEMPERED).value
    assert_same(CHAIN.log_evidence(triples(1), executor=spawned, **options), plain)


def test_layouts_travel_in_unaligned_buffers():
    """Dask sends them so."""
    buffers = []
    packed = pickle.dumps(lay_out(MODEL, COUNTS), 5, buffer_callback=buffers.append)
    found = pickle.loads(packed, buffers=[memoryview(b"0" + x.raw())[1:] for x in buffers])
    assert not found.tensor.counts.flags.aligned
    assert len(_core.AllocationRun(found.core, Options("smc"), n_jobs=1).tasks()) > 1


def test_an_interrupt_on_workers_keeps_the_rounds(monkeypatch):
    plain = MODEL.log_evidence(COUNTS, **TEMPERED)
    with (
        ThreadPoolExecutor(2) as pool,
        interrupted_when_done(2, monkeypatch, options_module),
        pytest.raises(Interrupted, match="stopped after 2 rounds") as caught,
    ):
        MODEL.log_evidence(COUNTS, executor=pool, **TEMPERED)
    partial = caught.value.partial
    assert partial.rounds == plain.rounds[:2]
    assert not partial.converged


def test_tasks_of_other_work_are_refused():
    options = Options("tempered", n_samples=64)
    core, others = (lay_out(MODEL, counts).core for counts in (COUNTS, COUNTS + 1))
    run = _core.AllocationRun(core, options, n_jobs=1)
    (reference,) = run.tasks()

    def result(core, task):
        return _core.run_allocation_task(core, options, task, seed=0, n_jobs=1)

    run.add([result(core, reference)])
    run.add([result(core, task) for task in run.tasks()])
    task = run.tasks()[0]
    # On Dask, nobody may wait for a task any more.
    with unwanted(), pytest.raises(KeyboardInterrupt):
        _task((lay_out(MODEL, COUNTS), options, {"seed": 0, "n_jobs": 1}), task)
    for damaged in (task[:-1], b"", task[:50] + bytes(len(task) - 50)):
        with pytest.raises(InvalidArgumentError, match="saved state is damaged, or is of other"):
            result(core, damaged)
    with pytest.raises(InvalidArgumentError, match="of other work"):
        result(others, task)
    with pytest.raises(InvalidArgumentError, match="saved state is damaged"):
        run.add([b"nothing"])


MODELS = {f"K = {K}": AllocationModel.nmf(K) for K in (2, 3)}
COMPARED = {"method": "tempered", "n_samples": 32, "random_state": 1}


def test_a_comparison_goes_on_from_the_evidences_that_are_done(tmp_path, monkeypatch):
    plain = pb.posterior_over_models(MODELS, COUNTS, **COMPARED)
    original = AllocationModel.log_evidence

    def interrupted(self, *arguments, **options):
        if self.sizes["topic"] == 3:
            os.kill(os.getpid(), signal.SIGINT)
        return original(self, *arguments, **options)

    with monkeypatch.context() as patched:
        patched.setattr(AllocationModel, "log_evidence", interrupted)
        with pytest.raises(Interrupted, match="1 of 2 models are done") as caught:
            pb.posterior_over_models(MODELS, COUNTS, checkpoint=tmp_path, **COMPARED)
    assert caught.value.partial.probabilities == {"K = 2": 1.0}
    assert sorted(path.name for path in tmp_path.glob("model-*")) == ["model-0.safetensors"]
    found = pb.posterior_over_models(MODELS, COUNTS, checkpoint=tmp_path, **COMPARED)

    def refused(*_, **__):
        raise AssertionError("all evidences are in the folder")

    monkeypatch.setattr(AllocationModel, "log_evidence", refused)
    again = pb.posterior_over_models(MODELS, COUNTS, checkpoint=tmp_path, **COMPARED)
    for name in MODELS:
        assert_same(found.evidences[name], plain.evidences[name])
        assert_same(again.evidences[name], plain.evidences[name])


def other_comparison(**change):
    """Go on in the folder of another comparison."""
    arguments = {"models": MODELS, "data": SMALL, "method": "exact", "random_state": 1}
    for own in ({}, change):
        pb.posterior_over_models(checkpoint="folder", **{**arguments, **own})


def test_a_damaged_evidence_is_made_again_with_a_warning(tmp_path):
    plain = pb.posterior_over_models(MODELS, COUNTS, checkpoint=tmp_path, **COMPARED)
    path = tmp_path / "model-1.safetensors"
    flip(path, path.stat().st_size // 2)
    with pytest.warns(CheckpointWarning, match=r"model-1\.safetensors"):
        found = pb.posterior_over_models(MODELS, COUNTS, checkpoint=tmp_path, **COMPARED)
    assert found.probabilities == plain.probabilities


@pytest.mark.filterwarnings("ignore::polyabayes.exceptions.EdgeWarning")
def test_sizes_are_chosen_by_evidence_on_workers_and_from_a_checkpoint(tmp_path):
    model = AllocationModel.nmf(None)
    plain = pb.choose_n_components(model, COUNTS, [2, 3], **COMPARED)
    for _ in range(2):
        with ThreadPoolExecutor(2) as pool:
            found = pb.choose_n_components(
                model, COUNTS, [2, 3], executor=pool, checkpoint=tmp_path, **COMPARED
            )
        assert found.to_frame().equals(plain.to_frame())
    assert len(list(tmp_path.iterdir())) == 3
