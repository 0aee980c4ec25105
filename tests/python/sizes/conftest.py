"""Documents of three topics, which choices are quick on."""

import pytest

import polyabayes as pb


@pytest.fixture(scope="module")
def corpus():
    # Documents of fewer than 64 tokens are scored by chains alone, in a tenth of the time.
    drawn = pb.datasets.make_lda_corpus(60, 40, 3, document_length=50, random_state=0)
    return drawn.corpus
