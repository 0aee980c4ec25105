"""
How many topics?
================

All sizes are scored on the same held-out folds. The difference between two sizes
therefore has a small error even if the scores themselves vary much. The lower panel
shows properties of the topics. Two criteria of R's ldatuning are printed for comparison:
they look at the topics only, and have no error.
"""

import matplotlib.pyplot as plt
import numpy as np

import polyabayes as pb

corpus = pb.datasets.make_lda_corpus(
    300, 200, 6, document_length=50, random_state=0
).corpus
model = pb.LatentDirichletAllocation(max_iter=50)
choice = pb.choose_n_components(model, corpus, n_folds=3, random_state=0)
print(choice)


def mean_of_pairs(table):
    return (table.sum() - np.trace(table)) / (len(table) * (len(table) - 1))


for size in choice.to_frame().index:
    fitted = pb.LatentDirichletAllocation(size, max_iter=50, random_state=0).fit(corpus)
    topics = np.maximum(fitted.components_, 1e-300)
    units = topics / np.linalg.norm(topics, axis=1, keepdims=True)
    divergences = (topics * np.log(topics)).sum(axis=1)[:, None]
    divergences = divergences - topics @ np.log(topics).T
    print(
        f"{size} topics: Cao & Juan 2009 {mean_of_pairs(units @ units.T):.3f} (least), "
        f"Deveaud 2014 {mean_of_pairs(divergences) / 2:.3f} (largest)"
    )
pb.plotting.plot_choice(choice)
plt.show()
