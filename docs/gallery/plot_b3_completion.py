"""
Completing documents
====================

How well does a model predict some tokens of a document from the others? You choose the
share that is held out. The probability is a ratio of two likelihoods, estimated with an
error.
"""

import matplotlib.pyplot as plt

import polyabayes as pb

data = pb.datasets.make_lda_corpus(300, 200, 6, document_length=60, random_state=0)
train, test = data.corpus.split(test_size=0.2, random_state=0)
models = {
    f"{k} topics": pb.LatentDirichletAllocation(k, max_iter=60, random_state=0).fit(
        train
    )
    for k in (2, 3, 6)
}
shares = [0.1, 0.25, 0.5, 0.75, 0.9]
figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
for (name, model), marker in zip(models.items(), "osD", strict=True):
    found = [
        pb.completion_perplexity(
            model, test, held_out=share, n_replicates=4, random_state=0
        )
        for share in shares
    ]
    ax.plot(shares, [one.value for one in found], marker=marker, label=name)
ax.set_xlabel("share of each document that is held out")
ax.set_ylabel("perplexity of the held-out tokens")
ax.set_title("Six topics predict best, whatever the share that is held out")
figure.legend(loc="outside lower center", ncols=3)
plt.show()
