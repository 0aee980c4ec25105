"""
Topics by covariates
====================

Does a topic depend on the party and the day? Contrasts with intervals, and the check by
permutation: with the rows of the covariates shuffled, no effect may be left.
"""

import matplotlib.pyplot as plt
import numpy as np

import polyabayes as pb

rng = np.random.default_rng(0)
party, day = rng.choice(["D", "R"], 400), rng.uniform(0, 10, 400)
effects = np.column_stack([-0.3 * day, np.zeros(400), 1.5 * (party == "R")])
theta = np.array([rng.dirichlet(np.exp(row)) for row in effects])
counts = rng.multinomial(40, theta @ (0.9 * np.kron(np.eye(3), np.full(4, 0.25)) + 0.1 / 12))
corpus = pb.Corpus(counts).with_metadata({"party": party, "day": day})
shuffled = corpus.with_metadata(corpus.metadata.sample(frac=1.0, random_state=0))

lda = pb.LatentDirichletAllocation(3, formula="~ party + day", thin=1, random_state=0)
fig, axes = plt.subplots(3, 1, figsize=(6, 8), layout="constrained")
days = np.linspace(0, 10, 21)
for ax, documents in zip(axes, (corpus, shuffled), strict=False):
    lda.fit(documents)
    effect = pb.topics.contrast(lda, {"party": "R"}, {"party": "D"}, documents=documents)
    pb.plotting.plot_prevalence(effect, ax=ax)
axes[0].set_title("documents as they are")
axes[1].set_title("covariates shuffled")

by_day = pb.topics.prevalence(lda.fit(corpus), at={"party": "D", "day": days})
pb.plotting.plot_prevalence(by_day, along=days, ax=axes[2])
axes[2].set_xlabel("day")
plt.show()
