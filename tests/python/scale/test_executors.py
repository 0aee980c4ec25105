"""Executors of every kind give the bits of one process; those that break down say so."""

import itertools
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest

import polyabayes as pb
from helpers.small_models import known_lda
from polyabayes.exceptions import BudgetExceededError, Interrupted, InvalidTypeError, WorkerError
from polyabayes.scale import executors
from polyabayes.scale.executors import sharing

N_WORDS = 40
DATA = pb.datasets.make_lda_corpus(24, N_WORDS, 3, document_length=25, random_state=0)
# Some documents twice, and an empty one.
DRAWN = DATA.corpus.counts.toarray()
CORPUS = pb.Corpus(np.concatenate([DRAWN, DRAWN[:3], np.zeros((1, N_WORDS))]).astype(int))
MODEL = known_lda(0.1, np.random.default_rng(0).dirichlet(np.full(N_WORDS, 0.3), 8))
SETTINGS = {"method": "annealed", "n_samples": 200, "random_state": 5}
PLAIN = pb.log_likelihood(MODEL, CORPUS, **SETTINGS)


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """Several blocks of some documents each."""
    from polyabayes.likelihood import blocks

    monkeypatch.setattr(blocks, "_TOKENS", (128, 2**16))


def assert_same(found, expected=PLAIN):
    for name in ("values", "std_errors", "n_effs", "methods", "sizes", "reached", "n_tokens"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name), name)
    assert found.total_std_error == expected.total_std_error


@pytest.fixture(params=["spawn", "forkserver", "fork", "threads", "loky", "dask"])
def executor(request):
    if request.param == "dask":
        yield request.getfixturevalue("dask_client").get_executor()
        return
    if request.param == "threads":
        pool = ThreadPoolExecutor(2)
    elif request.param == "loky":
        pool = pytest.importorskip("loky").ProcessPoolExecutor(2)
    else:
        pool = ProcessPoolExecutor(2, multiprocessing.get_context(request.param))
    with pool:
        yield pool


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_executors_give_the_same_bits(executor):
    for n_jobs in (None, 2):
        assert_same(pb.log_likelihood(MODEL, CORPUS, executor=executor, n_jobs=n_jobs, **SETTINGS))


def test_a_client_of_dask_is_told_what_to_pass(dask_client):
    with pytest.raises(InvalidTypeError, match=r"pass client\.get_executor\(\)"):
        pb.log_likelihood(MODEL, CORPUS, executor=dask_client)


@pytest.mark.filterwarnings("ignore::polyabayes.exceptions.UnreliableErrorWarning")
def test_the_trace_and_exact_values_are_the_same():
    with ThreadPoolExecutor(2) as pool:
        for settings in (
            {"method": "direct", "n_samples": 64, "trace": True},
            {"method": "smc", "n_particles": 20, "trace": True},
            {"method": "auto"},
        ):
            alone = pb.log_likelihood(MODEL, CORPUS, random_state=1, **settings)
            found = pb.log_likelihood(MODEL, CORPUS, random_state=1, executor=pool, **settings)
            assert_same(found, alone)
            if alone.trace is not None:
                for mine, other in zip(found.trace, alone.trace, strict=True):
                    np.testing.assert_array_equal(mine, other)


def test_comparisons_and_completions_are_the_same():
    other = known_lda(1.0, MODEL.components_)
    models = {"one": MODEL, "other": other}
    alone = pb.compare(models, CORPUS, **SETTINGS)
    perplexity = pb.completion_perplexity(MODEL, CORPUS, **SETTINGS)
    with ThreadPoolExecutor(2) as pool:
        found = pb.compare(models, CORPUS, executor=pool, **SETTINGS)
        assert found.difference("one", "other") == alone.difference("one", "other")
        completed = pb.completion_perplexity(MODEL, CORPUS, executor=pool, **SETTINGS)
        assert (completed.value, completed.std_error) == (perplexity.value, perplexity.std_error)


def test_what_is_too_expensive_is_refused_before_any_work():
    class Untouched(Executor):
        def submit(self, *_, **__):
            raise AssertionError

    counts = CORPUS.counts[[0, 1, 2]].toarray()
    counts[2] += 50
    with pytest.raises(BudgetExceededError, match="document 2"):
        pb.log_likelihood(MODEL, counts, "exact", budget=1e13, executor=Untouched())


def _end(_shared, number):
    if number == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def test_a_worker_that_dies_is_named():
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        with sharing(pool, None) as workers:
            tasks = [(number,) for number in range(6)]
            with pytest.raises(WorkerError, match=r"died during task \d or another task .*memory"):
                list(workers.run(_end, tasks, lambda number: f"task {number}"))
        with pytest.raises(WorkerError, match="take a new executor"):
            pb.log_likelihood(MODEL, CORPUS, executor=pool, **SETTINGS)


def _end_once(path, number):
    try:
        Path(path).touch(exist_ok=False)
    except FileExistsError:
        return number
    os.kill(os.getpid(), signal.SIGKILL)
    return -1


def test_dask_runs_the_tasks_of_a_dead_worker_again_or_names_it(dask_client, tmp_path):
    """It cancels the tasks where the worker had the only copy of what they share."""
    with sharing(dask_client.get_executor(), str(tmp_path / "died")) as workers:
        tasks = [(number,) for number in range(6)]
        named = None
        try:
            found = dict(workers.run(_end_once, tasks, str))
        except WorkerError as error:
            named = str(error)
    if named is None:
        assert found == {number: number for number in range(6)}
    else:
        assert "died during" in named


def _load(shared, number):
    return os.getpid(), id(shared), number


class _Counted:
    """Counts how often it is packed."""

    n_packed = 0

    def __getstate__(self):
        _Counted.n_packed += 1
        return {}


def test_what_is_shared_is_packed_once_and_unpacked_once_a_worker(spawned):
    _Counted.n_packed = 0
    with sharing(spawned, _Counted()) as workers:
        found = [row for _, row in workers.run(_load, [(n,) for n in range(20)], str)]
    assert _Counted.n_packed == 1
    held = {pid: {ix for other, ix, _ in found if other == pid} for pid, _, _ in found}
    assert all(len(objects) == 1 for objects in held.values())


def test_workers_without_the_file_get_the_bytes(spawned, monkeypatch):
    submit, with_bytes = spawned.submit, []

    def look(call, shared, *rest):
        with_bytes.append(shared.content is not None)
        return submit(call, shared, *rest)

    def elsewhere(self, *_):
        return executors._Packed, (Path("/no/such/folder/file"), self.digest, self.content)

    monkeypatch.setattr(spawned, "submit", look)
    monkeypatch.setattr(executors._Packed, "__reduce__", elsewhere)
    assert_same(pb.log_likelihood(MODEL, CORPUS, executor=spawned, **SETTINGS))
    assert any(with_bytes)
    assert not all(with_bytes)


def test_ctrl_c_cancels_what_has_not_begun():
    begun = []

    class Recorded(ThreadPoolExecutor):
        def submit(self, fn, /, *args, **kwargs):
            def run():
                begun.append(time.perf_counter())
                if len(begun) == 2:
                    os.kill(os.getpid(), signal.SIGINT)
                    time.sleep(0.2)
                return fn(*args, **kwargs)

            return super().submit(run)

    with Recorded(1) as pool, pytest.raises(Interrupted, match="documents are scored") as caught:
        pb.log_likelihood(MODEL, CORPUS, executor=pool, **SETTINGS)
    partial = caught.value.partial
    scored = partial.methods != ""
    assert 0 < scored.sum() < len(scored)
    np.testing.assert_array_equal(partial.values[scored], PLAIN.values[scored])
    assert len(begun) <= 3
    assert threading.active_count() < 20


def test_a_second_ctrl_c_does_not_keep_tasks_going_wherever_it_comes(monkeypatch):
    """Python looks for signals when a function begins and after a call of a compiled one."""
    monkeypatch.setattr(executors, "_LOOK_SECONDS", 0.01)
    for place in itertools.count():
        numbers, executor, tasks = itertools.count(), Executor(), [Future(), Future()]

        def press(_frame, event, _argument, numbers=numbers, place=place):
            if event in ("call", "c_return") and next(numbers) == place:
                raise KeyboardInterrupt

        executor.submit = Mock(side_effect=tasks)
        try:
            with sharing(executor, 0) as workers:
                list(workers.run(max, [(), ()], str, lambda: not sys.setprofile(press)))
        except KeyboardInterrupt:
            sys.setprofile(None)

        def wait(tasks=tasks, path=workers._shared.path):
            while path.exists() or not all(task.cancelled() for task in tasks):
                time.sleep(0.001)

        # In another thread, since locks that this one has kept do not stop it.
        waiting = threading.Thread(target=wait, daemon=True)
        waiting.start()
        waiting.join(timeout=10)
        assert not waiting.is_alive(), f"interrupted at place {place}"
        if next(numbers) <= place:
            break
    assert place > 10


def _press_and_work(caller, number):
    """Press Ctrl-C, then work for as long as somebody waits."""
    if number == 0:
        os.kill(caller, signal.SIGINT)
    pb.log_likelihood(MODEL, CORPUS, "annealed", n_samples=9_000_000, n_jobs=1)


@pytest.mark.parametrize("processes", [False, True])
def test_ctrl_c_ends_the_tasks_of_dask_and_leaves_its_client_usable(processes, request):
    """Whether its workers are threads, which hear the signal, too, or processes, which do not."""
    distributed = pytest.importorskip("distributed")
    with ExitStack() as stack:
        if processes:
            client = request.getfixturevalue("dask_client")
        else:
            cluster = {"processes": False, "threads_per_worker": 2, "dashboard_address": ":0"}
            client = stack.enter_context(distributed.Client(n_workers=1, **cluster))
        with sharing(client.get_executor(), os.getpid()) as workers:
            tasks = [(number,) for number in range(6)]
            with pytest.raises(KeyboardInterrupt):
                list(workers.run(_press_and_work, tasks, str))
        assert client.submit(max, 3, 5).result(timeout=60) == 5


WITHOUT_CALLER = """
import multiprocessing, sys
from concurrent.futures import ProcessPoolExecutor
import polyabayes as pb
from polyabayes.scale.executors import sharing
if __name__ == "__main__":
    model = pb.LatentDirichletAllocation.from_parameters(
        doc_topic_prior=1.0, topic_word=[[0.5, 0.5], [0.1, 0.9]]
    )
    if sys.argv[1] == "loky":
        import loky
        made = loky.ProcessPoolExecutor(3)
    else:
        made = ProcessPoolExecutor(3, multiprocessing.get_context(sys.argv[1]))
    with made as pool:
        with sharing(pool, 0) as workers:
            list(workers.run(max, [(n,) for n in range(3)], str))
        print("begun", flush=True)
        pb.log_likelihood(model, [[20, 30]], "annealed", n_samples=9_000_000, executor=pool)
"""


@pytest.mark.skipif(os.name != "posix", reason="ends a process by signals")
@pytest.mark.parametrize(
    "how", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("start", ["spawn", "forkserver", "fork", "loky"])
def test_workers_end_with_the_process_that_made_them(start, how):
    """Those that have a task, and those that never had one; signals are for the caller alone."""
    if start == "loky":
        pytest.importorskip("loky")
    command, pipe = [sys.executable, "-c", WITHOUT_CALLER, start], subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True) as caller:
        assert caller.stdout.readline() == "begun\n"
        while caller.poll() is None:
            caller.send_signal(how)
            with suppress(subprocess.TimeoutExpired):
                caller.wait(timeout=0.5)
        # Workers hold the other ends of the pipes for as long as they live.
        caller.communicate(timeout=60)
    assert caller.returncode != 0


def test_an_interruption_travels_with_its_result():
    found = pickle.loads(pickle.dumps(Interrupted("stopped", [1, 2])))
    assert (str(found), found.partial) == ("stopped", [1, 2])


def test_what_cannot_be_pickled_is_refused():
    refused = pytest.raises(InvalidTypeError, match=r"cannot be sent to processes .*: use fun")
    with ProcessPoolExecutor(1) as pool, refused, sharing(pool, lambda: 0):
        pass
