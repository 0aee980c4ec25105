"""Work that memory does not hold is refused, and does not end the process."""

from pathlib import Path

import pytest

from helpers.processes import limited

PROGRAM = """
import resource
import sys
import polyabayes as pb
from scipy import sparse

WIDE = sparse.csr_matrix(([1], ([0], [0])), shape=(1, 10**7))
MODEL = pb.LatentDirichletAllocation.from_parameters(
    doc_topic_prior=1.0, topic_word=[[0.5, 0.5], [0.1, 0.9]]
)


def nmf():
    import sklearn.decomposition

    with open("/proc/self/statm") as pages:
        used = int(pages.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + 2**25, used + 2**25))
    pb.PoissonFactorAnalysis(2, prior="nmf").fit([[3, 1, 0], [0, 2, 4], [1, 1, 1]])


WORK = {
    "NMF": nmf,
    "LDA": lambda: pb.LatentDirichletAllocation(65_535).fit(WIDE),
    "PFA": lambda: pb.PoissonFactorAnalysis(65_535).fit(WIDE),
    "score": lambda: pb.log_likelihood(MODEL, [[2, 1]], "smc", n_particles=10**9),
}
try:
    WORK[sys.argv[1]]()
except (pb.exceptions.PolyabayesError, MemoryError) as error:
    print("refused:", error)
"""
BLAS = "which the process cannot get: give it more, or fewer documents at once\n"
TOPICS = "topic-word probabilities would take 5.2e12 bytes, more than there is\n"


@pytest.mark.parametrize(
    ("work", "says"), [("LDA", TOPICS), ("PFA", TOPICS), ("score", "\n"), ("NMF", BLAS)]
)
def test_work_beyond_the_memory_is_refused(work, says):
    if work == "NMF" and not Path("/proc/self/statm").exists():
        pytest.skip("needs the size of the process")
    done = limited("RLIMIT_AS", 4 << 30, "-c", PROGRAM, work)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("refused: ")
    assert done.stdout.endswith(says)
