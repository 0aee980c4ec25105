"""
Estimates as the samples grow
=============================

``trace=True`` keeps the intermediate estimates. Bands are 95 % intervals, and the
dashed line is the exact value.
"""

import matplotlib.pyplot as plt

import polyabayes as pb

data = pb.datasets.make_lda_corpus(30, 100, 5, document_length=40, random_state=0)
model = pb.LatentDirichletAllocation.from_parameters(
    doc_topic_prior=data.doc_topic_prior, topic_word=data.topic_word
)
results = {
    method: pb.log_likelihood(
        model,
        data.corpus,
        method,
        n_samples=1000,
        n_replicates=4,
        trace=True,
        random_state=0,
    )
    for method in ("direct", "mean-field")
}
exact = pb.log_likelihood(model, data.corpus, "exact")
pb.plotting.plot_convergence(results, exact, document=3)
plt.title("Mean-field proposals need far fewer samples than the prior")
plt.show()
