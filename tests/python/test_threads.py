"""Many threads of Python at once, with objects they share: the same bits as one after another."""

import sys
import sysconfig
import threading
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context

import numpy as np
import pytest

import polyabayes as pb
from helpers.processes import python
from helpers.small_models import known_lda

N_THREADS = 8
DATA = pb.datasets.make_lda_corpus(12, 60, 4, document_length=30, random_state=0)
MODEL = known_lda(DATA.doc_topic_prior, DATA.topic_word)
HALVES = pb.split_tokens(DATA.corpus, 0.5, random_state=0)
TABLE = np.array([[4, 3, 0], [0, 0, 3], [0, 0, 3]])
NMF = pb.AllocationModel.nmf(2)
SEED = {"random_state": 3, "n_jobs": 1}


def score(method):
    result = pb.log_likelihood(MODEL, DATA.corpus, method, **SEED)
    return np.concatenate([result.values, result.std_errors])


def fit(estimator):
    return estimator.set_params(max_iter=5, **SEED).fit(DATA.corpus).components_


def evidence(method):
    found = NMF.log_evidence(TABLE, method, **SEED)
    return np.array([found.value, found.std_error])


WORK = {
    "auto": lambda: score("auto"),
    "smc-lookahead": lambda: score("smc-lookahead"),
    "chib": lambda: score("chib"),
    "transform": lambda: MODEL.transform(DATA.corpus),
    "completion": lambda: pb.log_completion(MODEL, *HALVES, **SEED).values,
    "LDA": lambda: fit(pb.LatentDirichletAllocation(3)),
    "EM": lambda: fit(pb.LatentDirichletAllocation(3, fit_method="em")),
    "PFA": lambda: fit(pb.PoissonFactorAnalysis(3)),
    "exact evidence": lambda: evidence("exact"),
    "smc evidence": lambda: evidence("smc"),
    "tempered evidence": lambda: evidence("tempered"),
    "decompose": lambda: NMF.decompose(TABLE, random_state=3).trace,
}


@pytest.fixture
def often_switching():
    """Threads that take turns as often as the interpreter lets them."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


@pytest.mark.usefixtures("often_switching")
def test_threads_share_models_and_get_the_same_bits():
    alone = {name: work() for name, work in WORK.items()}
    assert len({values.tobytes() for values in alone.values()}) == len(WORK)
    together = threading.Barrier(N_THREADS)

    def all_work(first):
        names = list(WORK)[first:] + list(WORK)[:first]
        together.wait()
        return {name: WORK[name]() for name in names}

    with ThreadPoolExecutor(N_THREADS) as pool:
        for found in pool.map(all_work, range(N_THREADS)):
            for name, values in found.items():
                assert values.tobytes() == alone[name].tobytes(), name


def test_threads_may_be_the_first_to_use_the_package():
    program = f"""
import threading
import polyabayes as pb
together, found = threading.Barrier({N_THREADS}), []
def work():
    together.wait()
    found.append(pb.AllocationModel.nmf(2).log_evidence({TABLE.tolist()}).value)
threads = [threading.Thread(target=work) for _ in range({N_THREADS})]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(len(found), len(set(found)))
"""
    done = python("-c", program)
    assert done.stdout.split() == [str(N_THREADS), "1"], done.stderr


@pytest.mark.skipif(
    not sysconfig.get_config_var("Py_GIL_DISABLED"), reason="an interpreter with a lock"
)
def test_the_core_leaves_a_free_threaded_interpreter_without_a_lock():
    assert not sys._is_gil_enabled()


@pytest.mark.skipif(sys.platform == "win32", reason="no fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_child_of_a_fork_does_not_wait_for_threads_of_its_parent():
    expected = score("annealed")
    with ProcessPoolExecutor(1, get_context("fork")) as pool:
        np.testing.assert_array_equal(pool.submit(score, "annealed").result(60), expected)
