"""
Watch a training
================

Score held-out documents every few sweeps to see when more sweeps no longer help.
``transform``, ``score`` and pipelines work as in scikit-learn.
"""

import matplotlib.pyplot as plt

import polyabayes as pb

corpus = pb.datasets.make_lda_corpus(
    400, 300, 8, document_length=60, random_state=0
).corpus
train, test = corpus.split(test_size=0.2, random_state=0)
models = {
    f"{k} topics": pb.LatentDirichletAllocation(k, max_iter=100, random_state=0).fit(
        train, eval_corpus=test, eval_every=10
    )
    for k in (4, 8)
}
pb.plotting.plot_trace(models)
plt.title("More than ten sweeps hardly help here")
plt.show()
