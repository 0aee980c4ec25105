"""Golden values: what seeds give on small inputs, kept in tests/golden.json.

``python tests/python/test_golden.py --write`` computes them anew; a change is deliberate, and its
commit says why. Elementary functions differ in the last bit between machines, so values may differ
by 1e-12 of their size.
"""

import json
import sys
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import polyabayes as pb

FILE = Path(__file__).parents[1] / "golden.json"

TOPIC_WORD = [[0.5, 0.2, 0.1, 0.1, 0.1], [0.1, 0.1, 0.2, 0.2, 0.4], [0.2, 0.2, 0.2, 0.3, 0.1]]
DOCUMENTS = np.array([[3, 1, 0, 2, 0], [0, 0, 0, 0, 0], [1, 4, 1, 0, 7], [0, 2, 9, 3, 5]])
TRAINING = np.add.outer(np.arange(12), 3 * np.arange(6)) % 7 * (np.arange(6) % 3)
TABLE = np.array([[4, 3, 0, 1], [0, 0, 3, 1], [1, 0, 3, 2]])
SMALL = {"n_components": 3, "max_iter": 20, "burn_in": 10, "random_state": 9}


def lda(topic_concentration=None):
    return pb.LatentDirichletAllocation.from_parameters(
        doc_topic_prior=[0.2, 0.5, 1.0],
        topic_word=TOPIC_WORD,
        topic_concentration=topic_concentration,
    )


def pfa():
    return pb.PoissonFactorAnalysis.from_parameters(
        topic_word=TOPIC_WORD, shape=[0.3, 0.7, 2.0], probability=[0.6, 0.5, 0.8]
    )


def logistic_normal():
    return pb.DocumentModel.logistic_normal(TOPIC_WORD, [0.2, 0.0, -0.5], np.eye(3))


def scored(model, method, **sizes):
    found = pb.log_likelihood(model, DOCUMENTS, method, random_state=1, **sizes)
    return [*found.values, *found.std_errors]


def fitted(model):
    model.fit(TRAINING)
    return [*model.components_[:, :2].ravel(), model.score(TRAINING[:3])]


def evidence(model, data, method, **sizes):
    found = model.log_evidence(data, method, random_state=2, **sizes)
    return [found.value, found.std_error]


def decomposed(method, **sizes):
    model = pb.AllocationModel.nmf(2)
    found = model.decompose(TABLE, method, random_state=3, max_iter=30, **sizes)
    return [found.value, *np.ravel(found.fitted_counts)[:3]]


def missing(method, **sizes):
    cells = np.where(TABLE == 4, np.nan, TABLE)
    model = pb.AllocationModel.nmf(2, rate=0.1)
    found = model.predict_missing(cells, method, observed="nan", random_state=4, **sizes)
    return [found.evidence.value, float(found.expected_counts[0])]


def searched():
    search = pb.WitnessSearch(lambda k: -3.0 - 4.0 / k, pb.priors.Poisson(2), max_steps=6).fit()
    return [*search.bounds_["lower"], *search.bounds_["upper"]]


CASES: dict[str, Callable[[], list[float]]] = {
    "lda, auto": lambda: scored(lda(), "auto"),
    "lda, exact": lambda: scored(lda(), "exact"),
    "lda, annealed": lambda: scored(lda(), "annealed", n_samples=10),
    "lda, smc": lambda: scored(lda(), "smc", n_particles=16),
    "lda, smc-lookahead": lambda: scored(lda(), "smc-lookahead", n_particles=16),
    "lda, left-to-right": lambda: scored(lda(), "left-to-right", n_particles=4),
    "lda, sequential": lambda: scored(lda(), "left-to-right-sequential", n_particles=4),
    "lda, l2r": lambda: scored(lda(), "l2r", n_particles=4),
    "lda, chib": lambda: scored(lda(), "chib", n_samples=10),
    "lda, mean-field": lambda: scored(lda(), "mean-field", n_samples=40),
    "lda, direct": lambda: scored(lda(), "direct", n_samples=40),
    "lda, harmonic": lambda: scored(lda(), "harmonic", n_samples=20),
    "bursty lda, annealed": lambda: scored(lda([2.0, 9.0, np.inf]), "annealed", n_samples=10),
    "pfa, exact": lambda: scored(pfa(), "exact"),
    "pfa, annealed": lambda: scored(pfa(), "annealed", n_samples=10),
    "logistic normal, annealed": lambda: scored(logistic_normal(), "annealed", n_samples=10),
    "lda, Gibbs": lambda: fitted(pb.LatentDirichletAllocation(**SMALL)),
    "bursty lda, Gibbs": lambda: fitted(
        pb.LatentDirichletAllocation(**SMALL, topic_concentration="learn")
    ),
    "lda, many topics": lambda: fitted(
        pb.LatentDirichletAllocation(70, max_iter=6, burn_in=2, random_state=9)
    ),
    "lda, EM": lambda: fitted(
        pb.LatentDirichletAllocation(3, fit_method="em", max_iter=10, random_state=9)
    ),
    "pfa, gamma": lambda: fitted(pb.PoissonFactorAnalysis(**SMALL, prior="gamma")),
    "pfa, beta-gamma-gamma": lambda: fitted(pb.PoissonFactorAnalysis(**SMALL)),
    "nmf, exact": lambda: evidence(pb.AllocationModel.nmf(2), TABLE, "exact"),
    "nmf, smc": lambda: evidence(pb.AllocationModel.nmf(2), TABLE, "smc", n_particles=16),
    "nmf, tempered": lambda: evidence(pb.AllocationModel.nmf(2), TABLE, "tempered", n_samples=16),
    "nmf, vb": lambda: evidence(pb.AllocationModel.nmf(2), TABLE, "vb", max_iter=50, n_restarts=3),
    "symmetric nmf, exact": lambda: evidence(
        pb.AllocationModel.symmetric_nmf(2), TABLE[:, :3], "exact"
    ),
    "decomposition, vb": lambda: decomposed("vb", n_restarts=3),
    "decomposition, em": lambda: decomposed("em", n_restarts=3),
    "decomposition, dual-em": lambda: decomposed("dual-em", n_restarts=3),
    "decomposition, gibbs": lambda: decomposed("gibbs", burn_in=10),
    "missing cell, exact": lambda: missing("exact"),
    "missing cell, smc": lambda: missing("smc", n_particles=16),
    "witness search": searched,
}


def compute(case):
    """Values of the case; small samples may doubt their errors."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pb.exceptions.PolyabayesWarning)
        return [float(value) for value in CASES[case]()]


@pytest.mark.parametrize("case", CASES)
def test_value_is_the_one_kept(case):
    kept = json.loads(FILE.read_text())[case]
    assert compute(case) == pytest.approx(kept, rel=1e-12, abs=1e-12, nan_ok=True)


def test_every_value_kept_has_its_case():
    assert list(json.loads(FILE.read_text())) == list(CASES)


if __name__ == "__main__":
    assert sys.argv[1:] == ["--write"]
    lines = [f"{json.dumps(case)}: {json.dumps(compute(case))}" for case in CASES]
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n")
