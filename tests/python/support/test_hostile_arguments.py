"""Any value for any argument of any public callable: an error of the package, or a result."""

import inspect
import warnings
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import polyabayes as pb
from helpers.small_models import known_lda
from test_docstrings import CALLABLES

WORDS = ["a", "b", "c", "d"]
PHI = [[0.5, 0.3, 0.1, 0.1], [0.1, 0.1, 0.3, 0.5]]
COUNTS = [[4, 3, 0], [0, 0, 3]]
BLOCKS = [[40, 30, 0, 0], [40, 30, 0, 0], [0, 0, 30, 20]]
CORPUS = pb.Corpus([[3, 1, 0, 0], [0, 1, 2, 2], [1, 1, 1, 1]], WORDS, metadata={"g": list("uvu")})
LDA = known_lda(0.3, PHI, vocabulary=WORDS, random_state=0)
SHORT = {"max_iter": 10, "random_state": 0}
FITTED = pb.LatentDirichletAllocation(2, **SHORT).fit(CORPUS)
NMF = pb.AllocationModel.nmf(2)
SURVEY = pd.DataFrame({"p": list("aabbab") * 3, "q": list("aabbba") * 3, "r": list("abbbaa") * 3})
# Good values of required arguments, by name.
GOOD = dict.fromkeys(("documents", "X", "corpus", "observed", "held_out"), CORPUS)
GOOD |= {"model": LDA, "models": {"a": LDA, "b": FITTED}, "topic_word": PHI, "doc_topic_prior": 0.3}
GOOD |= {"data": COUNTS, "graph": "doc <- topic -> word", "axes": ["doc", "word"], "node": "doc"}
GOOD |= {"tensor": pb.CountTensor.from_dense(COUNTS, GOOD["axes"]), "frame": SURVEY}
GOOD |= {"prior": pb.priors.Uniform(1, 3), "estimator": pb.LatentDirichletAllocation(2, max_iter=3)}
GOOD |= {"sizes": [1, 2], "n_folds": 2, "n_documents": 2, "level": 0.9}
GOOD |= {"path": "x.npz", "at": {"g": "u"}}
# Optional arguments that are given, too, or the work would take long.
QUICK = ("sizes", "n_folds", "n_documents")
# Objects whose methods are called.
OWNERS = [
    CORPUS,
    LDA,
    FITTED,
    pb.PoissonFactorAnalysis(2, **SHORT).fit(CORPUS),
    NMF,
    GOOD["tensor"],
    pb.DocumentModel.dirichlet(PHI, [1.0, 1.0]),
    pb.LatentClassAnalysis(2, method="em", random_state=0).fit(SURVEY),
    pb.WitnessSearch(lambda k: -3.0 - 4.0 / k, GOOD["prior"]).fit(),
    pb.choose_n_components(pb.AllocationModel.nmf(None), BLOCKS, [1, 2, 3], random_state=0),
    pb.log_likelihood(LDA, CORPUS, "direct", n_samples=32, trace=True, random_state=0),
    pb.compare(GOOD["models"], CORPUS),
    NMF.log_evidence(COUNTS),
    NMF.decompose(COUNTS, random_state=0),
    NMF.sample_posterior(COUNTS, 4, random_state=0),
    *(pb.priors.Poisson(2.0), GOOD["prior"]),
]
# Methods that only the package calls: with sizes of a search, or records of its own.
OF_THE_PACKAGE = {"log_box", "log_masses", "next_size", "from_plain", "of_columns"}
ODD = [
    *(None, float("nan"), -1, 0, 0.5, 10**30, 1 + 1j, True, "x", "", b"x", "\0", "\ud800"),
    *([], {}, set(), [None], ["a", 3], [[]], {"a": None}, {"a": 3}, [LDA, 3], object(), print, pb),
    *(np.array(0), np.zeros((0, 4)), np.zeros((2, 3, 4)), pd.DataFrame(), SimpleNamespace()),
]


def calls():
    """Public callables with parameters, by name; methods are those of a small object."""
    for name, thing in CALLABLES.items():
        *_, owner, own = name.split(".")
        is_result = inspect.isclass(thing) and "\nParameters\n" not in (thing.__doc__ or "")
        if own in OF_THE_PACKAGE or own.startswith("load_") or is_result or own in vars(pb.results):
            continue
        if not inspect.isclass(thing) and "self" in inspect.signature(thing).parameters:
            kinds = [x for x in OWNERS if owner in {kind.__name__ for kind in type(x).__mro__}]
            if not kinds:
                continue
            thing = getattr(kinds[0], own)
        if inspect.signature(thing).parameters:
            yield pytest.param(thing, id=name)


@pytest.mark.parametrize("call", [*calls()])
def test_an_odd_argument_gives_an_error_of_the_package(call, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    warnings.simplefilter("ignore")
    good = {**GOOD, "X": SURVEY} if "latent_classes" in call.__module__ else GOOD
    named = [p for p in inspect.signature(call).parameters.values() if p.kind < p.VAR_KEYWORD]
    given = {p.name: good.get(p.name) for p in named if p.default is p.empty or p.name in QUICK}
    others = []
    for name in [p.name for p in named if p.kind != p.VAR_POSITIONAL]:
        for value in [*ODD, (x for x in ())]:
            try:
                call(**{**given, name: value})
            except pb.exceptions.PolyabayesError:
                pass
            except Exception as error:
                others.append(f"{name}={value!r:.80}: {error!r:.300}")
    assert others == [], "\n".join(others)
