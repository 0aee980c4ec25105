"""
Estimators against the exact value
==================================

Seven methods estimate the likelihood of one document, twenty times each. The exact
value is known. The harmonic mean is far off, but its output does not show it.
"""

import matplotlib.pyplot as plt
import numpy as np

import polyabayes as pb

data = pb.datasets.make_lda_corpus(1, 60, 5, document_length=40, random_state=1)
model = pb.LatentDirichletAllocation.from_parameters(
    doc_topic_prior=data.doc_topic_prior, topic_word=data.topic_word
)
exact = pb.log_likelihood(model, data.corpus, "exact").total

methods = ["annealed", "smc-lookahead", "smc", "chib"]
methods += ["left-to-right-sequential", "direct", "harmonic"]
figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
for row, method in enumerate(methods):
    values = np.array(
        [
            pb.log_likelihood(
                model, data.corpus, method, n_replicates=4, random_state=seed
            ).total
            for seed in range(20)
        ]
    )
    places = row + np.linspace(-0.25, 0.25, 20)
    ax.plot(values - exact, places, ".")
    print(f"{method:25} off by {np.abs(values - exact).mean():7.3f} nats on average")
ax.axvline(0, color="0.3", linewidth=0.8, linestyle="--")
ax.set_yticks(range(len(methods)), methods)
ax.invert_yaxis()
ax.set_xscale("symlog", linthresh=0.1)
ax.margins(x=0.05)
ax.set_xlabel("estimate minus exact value (nats; linear between -0.1 and 0.1)")
ax.set_title("The harmonic mean is 20 nats too high")
plt.show()
