"""Ctrl-C where training has nothing yet, or has just ended."""

import copy
import gc
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import polyabayes as pb
from polyabayes.exceptions import Interrupted
from polyabayes.models import em, fitting, pfa, topic_model

LDA, PFA = pb.LatentDirichletAllocation, pb.PoissonFactorAnalysis
# Estimators, and a function that each calls before its first sweep or iteration.
FIRST_CALLS = [
    (LDA(3, max_iter=5, random_state=0), fitting, "progress_bar"),
    (LDA(3, max_iter=5, random_state=0), topic_model, "as_corpus"),
    (LDA(3, max_iter=5, random_state=0, fit_method="em"), em, "progress_bar"),
    (PFA(3, max_iter=5, random_state=0), fitting, "progress_bar"),
    (PFA(3, max_iter=5, random_state=0, prior="nmf"), pfa, "progress_bar"),
]


def corpus(n_words):
    counts = pb.datasets.make_lda_corpus(30, n_words, 3, document_length=20, random_state=0)
    return pb.Corpus(counts.corpus.counts, [f"w{i}" for i in range(n_words)])


def stop(*_, **__):
    raise KeyboardInterrupt


@pytest.mark.parametrize(("model", "place", "name"), FIRST_CALLS)
def test_before_the_first_sweep_a_model_stays_as_it_was(model, place, name, monkeypatch):
    new, fitted = copy.deepcopy(model), copy.deepcopy(model).fit(corpus(12))
    before = copy.deepcopy(vars(fitted))
    monkeypatch.setattr(place, name, stop)
    for one in (new, fitted):
        with pytest.raises(KeyboardInterrupt, match="before the first sweep") as caught:
            one.fit(corpus(9))
        assert not isinstance(caught.value, Interrupted)
    assert not hasattr(new, "n_features_in_")
    assert vars(fitted).keys() == before.keys()
    np.testing.assert_array_equal(fitted.components_, before["components_"])
    assert fitted.vocabulary_.tolist() == [f"w{i}" for i in range(12)]
    monkeypatch.undo()
    assert fitted.transform(corpus(12)).shape == (30, 3)


def test_partial_fit_before_the_first_sweep(monkeypatch):
    model = LDA(3, max_iter=5, random_state=0).fit(corpus(12))
    components = model.components_.copy()
    monkeypatch.setattr(fitting, "progress_bar", stop)
    with pytest.raises(KeyboardInterrupt, match="before the first sweep"):
        model.partial_fit(corpus(12))
    np.testing.assert_array_equal(model.components_, components)


@pytest.mark.parametrize("kind", [LDA, PFA])
def test_while_the_result_is_taken_it_is_not_lost(kind, monkeypatch):
    original, calls = topic_model.row_normalised, []

    def once(*arguments):
        calls.append(arguments)
        if len(calls) == 1:
            raise KeyboardInterrupt
        return original(*arguments)

    monkeypatch.setattr(topic_model, "row_normalised", once)
    model = kind(3, max_iter=5, random_state=0)
    with pytest.raises(Interrupted, match="stopped after 5 of 5 sweeps") as caught:
        model.fit(corpus(12))
    assert caught.value.partial is model
    whole = kind(3, max_iter=5, random_state=0).fit(corpus(12))
    np.testing.assert_array_equal(model.components_, whole.components_)
    np.testing.assert_array_equal(model.topic_counts_, whole.topic_counts_)


NMF = pb.AllocationModel.nmf(2)
TABLE = np.arange(12).reshape(3, 4)
PARTLY = np.ma.masked_array(TABLE, mask=np.eye(3, 4, dtype=bool))
SHORT_CALLS: dict[str, Callable[[], Any]] = {
    "lookahead": lambda: NMF.log_evidence(TABLE, "smc", n_particles=2, n_replicates=2),
    "tempered": lambda: NMF.log_evidence(TABLE, "tempered", n_replicates=2),
    "bound": lambda: NMF.log_evidence(TABLE, "vb"),
    "exact": lambda: NMF.log_evidence(TABLE // 4, "exact"),
    "vb": lambda: NMF.decompose(TABLE, "vb", n_restarts=1),
    "gibbs": lambda: NMF.decompose(TABLE, "gibbs", max_iter=10),
    "smc": lambda: NMF.decompose(TABLE, "smc", n_particles=2),
    "bidirectional": lambda: NMF.bidirectional_bounds(
        {"doc": 3, "word": 4}, 20, n_samples=5, n_replicates=2
    ),
    "missing": lambda: pb.AllocationModel.nmf(2, rate=0.1).predict_missing(
        PARTLY, method="smc", n_particles=2, n_replicates=2
    ),
    "score": lambda: pb.log_likelihood(LDA_OF_TWO, TABLE, "smc", n_particles=2),
}
LDA_OF_TWO = LDA.from_parameters(doc_topic_prior=0.5, topic_word=[[0.25] * 4, [0.1, 0.2, 0.3, 0.4]])


@contextmanager
def alarm_after(seconds):
    """As if Ctrl-C were pressed after `seconds`; gives a list that has an entry from then on."""
    pressed: list[int] = []

    def press(number, _frame):
        pressed.append(number)
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, press)
    # Python drops what is raised in a callback of its collector, and Hypothesis has such callbacks.
    gc.disable()
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield pressed
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        gc.enable()


@pytest.mark.filterwarnings("ignore::polyabayes.exceptions.UnreliableErrorWarning")
@pytest.mark.parametrize("call", SHORT_CALLS.values(), ids=SHORT_CALLS.keys())
def test_no_interrupt_of_a_loop_of_short_calls_is_lost(call):
    def repeat(pressed):
        while not pressed:
            call()

    call()
    for n in range(8):
        with alarm_after(0.011 + 0.003 * n) as pressed, pytest.raises(KeyboardInterrupt):
            repeat(pressed)


LONG = """
import sys, threading, time
from concurrent.futures import ThreadPoolExecutor
import numpy as np
import polyabayes as pb

rng = np.random.default_rng(0)
counts = rng.poisson(3.0, (400, 300))
model = pb.LatentDirichletAllocation.from_parameters(
    doc_topic_prior=np.full(20, 0.1), topic_word=rng.dirichlet(np.ones(300), 20)
)
network = pb.AllocationModel.nmf(3)
WORK = {
    "score": lambda: pb.log_likelihood(model, counts, "smc", n_particles=100_000),
    "l2r": lambda: pb.log_likelihood(model, counts * 10, "l2r", budget=1e18),
    "fit": lambda: pb.LatentDirichletAllocation(20, max_iter=10**6).fit(counts),
    "em": lambda: pb.LatentDirichletAllocation(50, fit_method="em", max_iter=10**6).fit(counts),
    "choice": lambda: pb.choose_n_components(pb.LatentDirichletAllocation(max_iter=10**5), counts),
    "evidence": lambda: network.log_evidence(counts, "smc", n_particles=1000),
    "heavy": lambda: network.log_evidence([[2 * 10**8, 1]], "tempered", n_samples=10**6),
    "decompose": lambda: network.decompose(counts, "gibbs", max_iter=10**7),
}
work = WORK[sys.argv[1]]
print("started", flush=True)
if sys.argv[2] == "pool":
    with ThreadPoolExecutor() as pool:
        pool.submit(work).result()
elif sys.argv[2] == "left":
    pool = ThreadPoolExecutor()
    future = pool.submit(work)
    time.sleep(100)
else:
    work()
"""


def wait_for_work(process):
    """Wait for half a second of the process's processor time, where the system tells it.

    On a busy machine, a fixed time may end before the work begins.
    """
    status = Path(f"/proc/{process.pid}/stat")
    if not status.exists():
        time.sleep(0.5)
        return

    def ticks():
        return sum(map(int, status.read_text().rpartition(")")[2].split()[11:13]))

    end = ticks() + os.sysconf("SC_CLK_TCK") / 2
    while process.poll() is None and ticks() < end:
        time.sleep(0.02)


@pytest.mark.parametrize(
    ("work", "where"),
    [
        ("score", "pool"),
        ("evidence", "main"),
        ("heavy", "main"),
        ("decompose", "left"),
        ("fit", "pool"),
        *(pytest.param(x, "main", marks=pytest.mark.slow) for x in ("l2r", "em", "choice")),
    ],
)
def test_one_interrupt_ends_a_process_wherever_it_works(work, where):
    command = [sys.executable, "-c", LONG, work, where]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        wait_for_work(process)
        assert process.poll() is None
        process.send_signal(signal.SIGINT)
        try:
            _, errors = process.communicate(timeout=30)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
    assert b"KeyboardInterrupt" in errors or b"Interrupted" in errors
    assert process.returncode != 0
