"""
Score documents with error bars
===============================

Every document gets a log-likelihood and a standard error. Short documents are computed
exactly, with an error of zero.
"""

import matplotlib.pyplot as plt

import polyabayes as pb

data = pb.datasets.make_lda_corpus(
    300, 200, 8, document_length=[10 + i % 90 for i in range(300)], random_state=0
)
model = pb.LatentDirichletAllocation.from_parameters(
    doc_topic_prior=data.doc_topic_prior, topic_word=data.topic_word
)
result = pb.log_likelihood(model, data.corpus, random_state=0)
print(result)

# %%
# Nats per token against the length: short documents vary most, whatever the model.

lengths = result.n_tokens
exact = result.std_errors == 0
figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
for name, rows, marker in (("exact", exact, "o"), ("estimated", ~exact, "^")):
    ax.errorbar(
        lengths[rows],
        result.values[rows] / lengths[rows],
        yerr=2 * result.std_errors[rows] / lengths[rows],
        fmt=marker,
        markersize=4,
        label=f"{name}: {rows.sum()} documents",
    )
ax.axhline(result.nats_per_token, color="0.4", linewidth=0.8, linestyle="--")
ax.set_xlabel("tokens of the document")
ax.set_ylabel("nats per token")
ax.set_title("Errors (two standard errors) are smaller than the markers")
figure.legend(loc="outside lower center", ncols=2)
plt.show()
