"""A corpus with empty documents, to be written as shards."""

import numpy as np
from scipy import sparse

import polyabayes as pb

DATA = pb.datasets.make_lda_corpus(40, 30, 4, document_length=20, random_state=0)
COUNTS = sparse.csr_matrix(
    np.concatenate(
        [DATA.corpus.counts.toarray(), np.zeros((2, 30)), DATA.corpus.counts.toarray()[:3]]
    ).astype(int)
)
CORPUS = pb.Corpus(COUNTS, vocabulary=[f"w{i}" for i in range(30)])
MODEL = pb.LatentDirichletAllocation.from_parameters(
    doc_topic_prior=0.2,
    topic_word=np.random.default_rng(0).dirichlet(np.full(30, 0.5), 6),
    vocabulary=[f"w{i}" for i in range(30)],
)


def rows_of(shards):
    return np.concatenate([shard.corpus().counts.toarray() for shard in shards])
