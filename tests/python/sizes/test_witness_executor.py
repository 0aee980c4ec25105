"""Searches whose configurations are scored by executors: same steps, nothing scored twice."""

import math
import multiprocessing
import os
import signal
import threading
import time
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import polyabayes as pb
from helpers.nested_searches import assert_same_search
from polyabayes import priors
from polyabayes.exceptions import Interrupted, ScoreError, ScoreWarning, WorkerError
from polyabayes.sizes.witness import WitnessSearch

POISSON = priors.Poisson(2.0)
TWO = priors.Product(POISSON, priors.Poisson(3.0))


def rising(a, b):
    return -10 / a - 7 / (b + 0.1 * a)


def ends_the_process(k):
    if k == 3:
        os._exit(1)
    return -3.0 / k


@pytest.fixture
def threads():
    with ThreadPoolExecutor(4) as pool:
        yield pool


class OnDemand(Executor):
    """Runs what it was given in the order in which the test says so; the rest when nothing moves.

    Whoever waits would wait for ever otherwise: a thread runs the tasks by a key of their sizes.
    """

    def __init__(self, key):
        self._key, self._tasks = key, dict[tuple[int, ...], tuple[Future[Any], Any]]()
        self._lock, self._over = threading.Lock(), False
        self.most = 0
        self._thread = threading.Thread(target=self._work)
        self._thread.start()

    def submit(self, fn, /, *args, **_):
        future: Future[Any] = Future()
        with self._lock:
            self._tasks[args[2][0]] = future, lambda: fn(*args)
            self.most = max(self.most, len(self._tasks))
        return future

    def scatter(self, shared):
        return shared

    def shutdown(self, wait=True, *, cancel_futures=False):  # noqa: ARG002
        self._over = True
        self._thread.join()

    def _work(self):
        while not self._over:
            # Time for the search to hand out all that it will.
            time.sleep(0.02)
            with self._lock:
                if not self._tasks:
                    continue
                future, task = self._tasks.pop(min(self._tasks, key=self._key))
            if future.set_running_or_notify_cancel():
                future.set_result(task())


class Counted:
    """A score that remembers what it was asked for, from any thread."""

    def __init__(self, score):
        self.score, self.asked = score, list[tuple[int, ...]]()

    def __call__(self, *sizes):
        self.asked.append(sizes)
        return self.score(*sizes)


@pytest.mark.parametrize(
    "key",
    [lambda sizes: sizes, lambda sizes: tuple(-size for size in sizes)],
    ids=["smallest first", "largest first"],
)
@pytest.mark.parametrize("strategy", ["successor", "widest"])
@pytest.mark.parametrize("kind", ["nested", "evidence"])
def test_the_steps_do_not_depend_on_which_score_is_there_first(kind, strategy, key):
    options: dict[str, Any] = {"kind": kind, "strategy": strategy, "max_steps": 12}
    alone = WitnessSearch(rising, TWO, **options).fit()
    score = Counted(rising)
    with OnDemand(key) as pool:
        together = WitnessSearch(score, TWO, **options).fit(executor=pool, n_in_flight=3)
    assert_same_search(alone, together)
    assert pool.most == 3
    assert len(set(score.asked)) == len(score.asked)


def test_one_size_is_scored_ahead_without_waste(threads):
    """Four wait for each other: they must run at once."""
    meeting = threading.Barrier(4, timeout=30)

    def score(k):
        meeting.wait()
        return -3.0 / k

    search = Counted(score)
    found = WitnessSearch(search, POISSON, max_steps=8).fit(executor=threads, n_in_flight=4)
    assert_same_search(WitnessSearch(lambda k: -3.0 / k, POISSON, max_steps=8).fit(), found)
    assert sorted(search.asked) == [(k,) for k in range(1, 9)]


def test_evidence_in_processes_is_the_same_to_the_bit(spawned):
    counts = pb.CountTensor.from_dense([[3, 0, 1], [1, 2, 4]], ["doc", "word"])
    options = {"method": "tempered", "n_samples": 128, "n_jobs": 1}
    search = WitnessSearch(
        pb.AllocationModel.nmf(None), priors.Uniform(1, 4), scoring_options=options, random_state=0
    )
    alone = search.fit(counts).bounds_
    together = search.fit(counts, executor=spawned).bounds_
    for name in ("log_score", "std_error", "lower", "upper"):
        assert alone[name].tolist() == together[name].tolist()


def test_a_failure_in_a_worker_marks_its_configuration(threads):
    def score(k):
        if k in (2, 3):
            raise MemoryError(f"no room for {k}")
        return -3.0 / k

    search = WitnessSearch(score, POISSON, max_steps=6)
    with pytest.warns(ScoreWarning, match="size [23] could not be scored: MemoryError"):
        alone = search.fit().bounds_
    with pytest.warns(ScoreWarning, match="size [23] could not be scored: MemoryError") as warned:
        together = search.fit(executor=threads).bounds_
    assert {Path(one.filename).name for one in warned} == {Path(__file__).name}
    for name in ("size", "failure", "lower", "upper"):
        assert alone[name].tolist() == together[name].tolist()


def test_bad_scores_are_refused_in_their_turn(threads):
    """Size 5 is NaN, and size 3 falls: it is size 3 that is told of."""
    values = {1: -5.0, 2: -4.0, 3: -6.0, 4: -3.0, 5: math.nan}

    def score(k):
        time.sleep(0.05 if k < 4 else 0.0)
        return values[k]

    search = WitnessSearch(score, POISSON, max_steps=5)
    with pytest.raises(ScoreError, match=r"falls from -4.0 at size 2 to -6.0 at size 3"):
        search.fit(executor=threads, n_in_flight=5)
    assert search.n_steps_ == 2


def test_a_broken_pool_ends_the_search_and_the_next_goes_on(tmp_path):
    search = WitnessSearch(
        ends_the_process, POISSON, max_steps=5, checkpoint=tmp_path, random_state=0
    )
    pool = ProcessPoolExecutor(1, multiprocessing.get_context("spawn"))
    with pool, pytest.raises(WorkerError, match=r"died during size 3 or another task \(BrokenPro"):
        search.fit(executor=pool, n_in_flight=1)
    assert search.n_steps_ == 2
    with pytest.raises(WorkerError, match=r"died during size 3 "):
        search.fit(executor=pool)


def test_what_was_scored_ahead_is_not_scored_again(tmp_path):
    """Size 2 is interrupted while 3 and 4 are there already."""
    later = {3: threading.Event(), 4: threading.Event()}

    def score(k):
        if k in later:
            later[k].set()
        if k == 2:
            assert all(event.wait(30) for event in later.values())
            deadline = time.monotonic() + 30
            while len(list(tmp_path.glob("score-*"))) < 3:
                assert time.monotonic() < deadline, "3 and 4 were not kept"
                time.sleep(0.01)
            raise KeyboardInterrupt
        return -3.0 / k

    search = WitnessSearch(score, POISSON, max_steps=4, checkpoint=tmp_path, random_state=0)
    with ThreadPoolExecutor(4) as pool, pytest.raises(Interrupted, match="after 1 steps") as stop:
        search.fit(executor=pool, n_in_flight=4)
    assert stop.value.partial.bounds_["size"].tolist() == [1]
    assert sorted(path.stem for path in tmp_path.glob("score-*")) == [
        "score-1",
        "score-3",
        "score-4",
    ]

    again = Counted(lambda k: -3.0 / k)
    # The name by which a function is known.
    again.__module__, again.__qualname__ = score.__module__, score.__qualname__  # type: ignore[attr-defined]
    resumed = search.set_params(estimator=again).fit()
    assert again.asked == [(2,)]
    assert_same_search(WitnessSearch(lambda k: -3.0 / k, POISSON, max_steps=4).fit(), resumed)


def test_ctrl_c_does_not_wait_for_the_workers(threads):
    over = threading.Event()
    finished: list[int] = []
    main = threading.main_thread().ident
    assert main is not None

    def score(k):
        if k == 2:
            signal.pthread_kill(main, signal.SIGINT)
        if k > 1:
            over.wait(60)
            finished.append(k)
        return -3.0 / k

    with pytest.raises(Interrupted, match=r"after [01] steps"):
        WitnessSearch(score, POISSON, max_steps=9).fit(executor=threads)
    assert not finished
    over.set()


def test_nothing_is_asked_for_beyond_the_last_step(threads):
    score = Counted(lambda k: -3.0 / k)
    WitnessSearch(score, POISSON, max_steps=3).fit(executor=threads, n_in_flight=9)
    WitnessSearch(score, priors.Uniform(4, 6)).fit(executor=threads, n_in_flight=9)
    assert sorted(score.asked) == [(k,) for k in range(1, 7)]


THREAD = {"executor": ThreadPoolExecutor(1)}
