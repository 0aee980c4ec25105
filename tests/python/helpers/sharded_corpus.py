"""A corpus with empty documents, to be written as shards."""

import numpy as np
from scipy import sparse

import polyabayes as pb
from helpers.small_models import known_lda

DATA = pb.datasets.make_lda_corpus(40, 30, 4, document_length=20, random_state=0)
DRAWN = DATA.corpus.counts.toarray()
COUNTS = sparse.csr_matrix(np.concatenate([DRAWN, np.zeros((2, 30)), DRAWN[:3]]).astype(int))
CORPUS = pb.Corpus(COUNTS, vocabulary=[f"w{i}" for i in range(30)])
TOPICS = np.random.default_rng(0).dirichlet(np.full(30, 0.5), 6)
MODEL = known_lda(0.2, TOPICS, vocabulary=[f"w{i}" for i in range(30)])


def rows_of(shards):
    return np.concatenate([shard.corpus().counts.toarray() for shard in shards])
