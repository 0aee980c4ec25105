"""Any value for any argument: an error of the package before any work, or a result."""

import warnings
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn.decomposition import LatentDirichletAllocation

import polyabayes as pb
from helpers.small_models import known_lda

WORDS = ["a", "b", "c", "d"]
CORPUS = pb.Corpus([[3, 1, 0, 0], [0, 1, 2, 2], [1, 1, 1, 1]], WORDS)
LDA = known_lda(0.3, [[0.5, 0.3, 0.1, 0.1], [0.1, 0.1, 0.3, 0.5]], vocabulary=WORDS, random_state=0)
FITTED = pb.LatentDirichletAllocation(2, max_iter=10, random_state=0).fit(CORPUS)
SCORES = pb.log_likelihood(LDA, CORPUS, "direct", n_samples=32, trace=True, random_state=0)
THEIRS = LatentDirichletAllocation(2, random_state=0).fit(CORPUS.counts)
CISTOPIC = SimpleNamespace(
    topic_region=pd.DataFrame([[0.75, 0.0], [0.25, 1.0]], index=["x", "y"]),
    topic_ass=pd.DataFrame({"Topic": [1, 2], "Assignments": [4, 2]}),
    parameters=pd.DataFrame({"Parameter": {"package": "Mallet", "n_topics": 2}}),
)
NMF = pb.AllocationModel.nmf(2)
COUNTS = [[4, 3, 0], [0, 0, 3]]
topics, plotting, interop = pb.topics, pb.plotting, pb.interop

DOORS = [
    (topics.coherence, {"model": LDA, "documents": CORPUS, "measure": "npmi", "n_words": 2}),
    (topics.coherence, {"model": [["a", "b"]], "texts": [WORDS], "window": 3}),
    (topics.diagnostics, {"model": LDA, "documents": CORPUS, "n_words": 2}),
    (topics.diversity, {"model": LDA, "n_words": 2}),
    (topics.top_documents, {"model": LDA, "documents": CORPUS, "n_documents": 2}),
    (topics.match_topics, {"first": LDA, "second": FITTED, "metric": "cosine"}),
    (topics.stability, {"models": [LDA, FITTED], "metric": "cosine"}),
    (topics.report, {"model": LDA, "documents": CORPUS, "path": "r.html", "title": "t"}),
    (topics.report, {**dict.fromkeys(("model", "documents", "path")), "n_words": 2, "n_jobs": 1}),
    (plotting.plot_comparison, {"comparison": None, "level": 0.9, "ax": None}),
    (plotting.plot_convergence, {"results": SCORES, "exact": 1.0, "document": 0, "level": 0.9}),
    (plotting.plot_evidence, {"evidences": {1: NMF.log_evidence(COUNTS)}, "level": 0.9}),
    (plotting.plot_graph, {"model": NMF, "visible": None, "ax": None}),
    (plotting.plot_table, {"decomposition": NMF.decompose(COUNTS, random_state=0), "node": "doc"}),
    (plotting.plot_topics, {"model": LDA, "n_words": 2, "topics": [0], "vocabulary": None}),
    (plotting.plot_topic_weights, {"model": FITTED, "documents": None, "ax": None}),
    (plotting.plot_topic_similarity, {"model": LDA, "ax": None}),
    (plotting.plot_trace, {"models": FITTED, "what": None, "against": "n_iter"}),
    (interop.from_sklearn, {"model": THEIRS, "vocabulary": None, "documents": None, "shape": None}),
    (interop.from_pycistopic, {"model": CISTOPIC, "doc_topic_prior": 1, "topic_word_prior": 0.1}),
    (interop.from_fasttopics, {"F": [[8.0, 0.0], [2.0, 5.0]], "L": None, "doc_topic_prior": 0.5}),
    (interop.from_fasttopics, {"F": [[8.0], [2.0]], "L": [[0.5]], "vocabulary": None}),
    (interop.from_mallet, {"state": None, "word_topic_counts": None, "doc_topic_prior": 0.5}),
    (interop.from_gensim, {"model": None}),
    (interop.from_tomotopy, {"model": None}),
    (interop.from_schpf, {"model": None, "vocabulary": None}),
    (interop.to_anndata, {"adata": None, "model": LDA, "key": "k", "layer": None}),
    (interop.pyldavis_arguments, {"model": LDA, "corpus": CORPUS}),
]


class Odd:
    """Neither a number nor a container."""


def values():
    """Values of every type, made anew, as generators are."""
    numbers = [3, -1, 0, 2**31, 10**30, 0.5, float("nan"), float("inf"), 1 + 1j, True]
    texts = ["x", "", b"x", "\0", "\ud800"]
    lists = [[], {}, set(), [None], ["a", 3], [[]], [[1, 2], [3]], [LDA, 3], [["a", "b"], 3]]
    arrays = [np.array("x"), np.zeros(0), np.zeros((0, 4)), np.zeros((2, 3, 4)), np.array([1j])]
    mappings = [{"a": 3}, {"a": None}, pd.DataFrame(), SimpleNamespace()]
    things = [None, object(), Odd(), Odd, len, pb, range(3), LDA, CORPUS, SCORES]
    return [*numbers, *texts, *lists, *arrays, *mappings, *things, (x for x in ())]


@pytest.mark.parametrize(
    ("door", "arguments"), DOORS, ids=[f"{door.__name__}{i}" for i, (door, _) in enumerate(DOORS)]
)
def test_a_hostile_argument_is_refused_by_an_error_of_the_package(
    door, arguments, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    warnings.simplefilter("ignore")
    others = []
    for name in arguments:
        for value in values():
            try:
                door(**{**arguments, name: value})
            except pb.exceptions.PolyabayesError:
                pass
            except Exception as error:
                others.append(f"{name}={value!r:.80}: {error!r:.300}")
    assert others == []


SAMPLED = {"max_iter": 40, "burn_in": 10, "thin": 2, "random_state": 0}


@pytest.mark.parametrize(
    ("argument", "call"),
    [
        (
            "n_chains",
            lambda: pb.sample_chains(
                pb.LatentDirichletAllocation(2, **SAMPLED), CORPUS, n_chains=10**9
            ),
        ),
        (
            "n_init",
            lambda: pb.LatentDirichletAllocation(2, fit_method="em", n_init=2**31).fit(CORPUS),
        ),
        ("n_documents", lambda: pb.bidirectional_bounds(LDA, n_documents=10**11)),
        ("document_length", lambda: pb.bidirectional_bounds(LDA, document_length=10**12)),
    ],
)
def test_absurd_numbers_are_refused_before_any_work(argument, call):
    with pytest.raises(pb.exceptions.PolyabayesError) as caught:
        call()
    assert caught.value.argument == argument
