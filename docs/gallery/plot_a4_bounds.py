"""
Bounds where nothing is exact
=============================

For documents simulated from the model, a posterior draw of the topics is known. From
this draw, the sampler can also run backwards, which bounds the likelihood from above.
The gap between the two bounds limits the error of both (Grosse, Ghahramani and Adams
2015).
"""

import matplotlib.pyplot as plt
import numpy as np

import polyabayes as pb

data = pb.datasets.make_lda_corpus(1, 500, 30, random_state=0)
model = pb.LatentDirichletAllocation.from_parameters(
    doc_topic_prior=data.doc_topic_prior, topic_word=data.topic_word
)
sizes = [10, 30, 100, 300]
gaps = []
for n_samples in sizes:
    bounds = pb.bidirectional_bounds(
        model,
        "annealed",
        n_documents=10,
        document_length=150,
        n_samples=n_samples,
        random_state=0,
    )
    gaps.append(np.asarray(bounds.gap))
    print(f"{n_samples:4} temperatures: mean gap {np.mean(bounds.gap):6.3f} nats")

figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
ax.boxplot(gaps, tick_labels=[str(n) for n in sizes])
ax.axhline(0, color="0.4", linewidth=0.8, linestyle="--")
ax.set_xlabel("temperatures")
ax.set_ylabel("upper minus lower bound (nats)")
ax.set_title("More temperatures narrow the gap between the bounds")
plt.show()
