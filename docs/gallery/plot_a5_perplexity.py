"""
A perplexity that depends on the size of the test set
=====================================================

scikit-learn divides the bound of the topics by the number of *test* words. The same
model therefore looks worse on fewer documents of the same kind. The likelihood per
token does not depend on their number, and has an error bar.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.decomposition import LatentDirichletAllocation

import polyabayes as pb

corpus = pb.datasets.make_lda_corpus(
    800, 300, 8, document_length=60, random_state=0
).corpus
theirs = LatentDirichletAllocation(8, random_state=0).fit(corpus.counts[:400])
sizes = [25, 50, 100, 200, 400]
own = [theirs.perplexity(corpus.counts[400 : 400 + n]) for n in sizes]
ours = [
    pb.log_likelihood(theirs, corpus.counts[400 : 400 + n], random_state=0)
    for n in sizes
]

figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
ax.plot(sizes, own, "s--", label="scikit-learn's own perplexity")
ax.errorbar(
    sizes,
    [result.perplexity for result in ours],
    yerr=[2 * result.perplexity * result.nats_per_token_std_error for result in ours],
    fmt="o-",
    label="perplexity of the likelihood",
)
ax.set_xscale("log")
ax.set_xticks(sizes, [str(n) for n in sizes])
ax.minorticks_off()
ax.set_xlabel("test documents")
ax.set_ylabel("perplexity")
ax.set_title("One model: scikit-learn's figure depends on the size of the test set")
figure.legend(loc="outside lower center", ncols=2)
print(f"scikit-learn: {np.round(own)}")
plt.show()
