"""
Topics by covariates
====================

Does a topic depend on the party and the day? This program draws contrasts with
intervals, the prevalence over the days, and a permutation test: how large are effects
if the parties are shuffled?
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import permutation_test

import polyabayes as pb

rng = np.random.default_rng(0)
party, day = rng.choice(["D", "R"], 400), rng.uniform(0, 10, 400)
effects = np.column_stack([-0.3 * day, np.zeros(400), 1.5 * (party == "R")])
theta = np.array([rng.dirichlet(np.exp(row)) for row in effects])
counts = rng.multinomial(
    40, theta @ (0.9 * np.kron(np.eye(3), np.full(4, 0.25)) + 0.1 / 12)
)


def fitted(is_republican, max_iter):
    """The corpus with these parties, its model, and the effect of the party in it."""
    corpus = pb.Corpus(counts).with_metadata({"republican": is_republican, "day": day})
    options = {"formula": "~ republican + day", "max_iter": max_iter, "random_state": 0}
    lda = pb.LatentDirichletAllocation(3, **options).fit(corpus)
    effect = pb.topics.contrast(
        lda, {"republican": 1}, {"republican": 0}, documents=corpus
    )
    return lda, effect


lda, effect = fitted((party == "R").astype(float), 600)
fig, axes = plt.subplots(2, 1, figsize=(7, 6), layout="constrained")
pb.plotting.plot_prevalence(effect, ax=axes[0])
axes[0].set_title("Party R speaks more of topic 0 (95 % intervals)", loc="left")
days = np.linspace(0, 10, 21)
by_day = pb.topics.prevalence(lda, at={"republican": 0, "day": days})
pb.plotting.plot_prevalence(by_day, along=days, ax=axes[1])
axes[1].set_xlabel("day")
axes[1].set_title("Topic 2 becomes rarer over the days (party D)")

# %%
# The model is fitted again for each of 39 permutations. The statistic is the largest
# absolute effect.
tested = permutation_test(
    ((party == "R").astype(float),),
    lambda shuffled: np.abs(fitted(shuffled, 100)[1].mean).max(),
    permutation_type="pairings",
    n_resamples=39,
    vectorized=False,
    alternative="greater",
    random_state=0,
)
print(f"largest effect {tested.statistic:.2f}, p = {tested.pvalue:.3f}")
fig, ax = plt.subplots(figsize=(7, 3.4), layout="constrained")
ax.hist(tested.null_distribution, bins=12, label="parties shuffled")
ax.axvline(tested.statistic, color="C1", label="parties as observed")
ax.set_xlabel("largest absolute effect of the party")
ax.set_ylabel("permutations")
ax.set_title("No shuffle gives an effect as large as the observed one")
fig.legend(loc="outside lower center", ncols=2)
plt.show()
