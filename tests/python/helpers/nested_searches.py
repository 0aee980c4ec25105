"""Searches over numbers of topics that are quick to make, and their comparison."""

import polyabayes as pb
from polyabayes import priors

CORPUS = pb.datasets.make_lda_corpus(30, 12, 3, document_length=15, random_state=3).corpus


def lda(**options):
    return pb.LatentDirichletAllocation(**{"learn_priors": True, "max_iter": 20, **options})


def nested(**options):
    """A search over models, by their bounds."""
    arguments = {"max_steps": 4, "random_state": 1, "scoring": "bound", **options}
    return pb.WitnessSearch(lda(), priors.Poisson(2.0), **arguments)


def assert_same_search(one, other):
    """The same steps and tables, but for the seconds."""
    assert one.trace_ == other.trace_
    assert one.stop_reason_ == other.stop_reason_
    for name in one.bounds_:
        if name != "seconds":
            assert repr(one.bounds_[name].tolist()) == repr(other.bounds_[name].tolist()), name
