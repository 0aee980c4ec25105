"""Documents of three topics, which choices are quick on, and a spy on fits."""

import pytest

import polyabayes as pb


@pytest.fixture(scope="module")
def corpus():
    # Documents of fewer than 64 tokens are scored by chains alone, in a tenth of the time.
    drawn = pb.datasets.make_lda_corpus(60, 40, 3, document_length=50, random_state=0)
    return drawn.corpus


@pytest.fixture
def fits(monkeypatch):
    """Size, size of the model grown from, method, seed and number of documents of each training."""
    seen = []
    fit = pb.LatentDirichletAllocation.fit

    def spy(self, X):
        init = None if self.init is None else len(self.init.components_)
        told = (self.n_components, init, self.fit_method, self.random_state, X.n_documents)
        seen.append(told)
        return fit(self, X)

    monkeypatch.setattr(pb.LatentDirichletAllocation, "fit", spy)
    return seen
