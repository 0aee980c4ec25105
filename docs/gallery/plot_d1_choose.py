"""
How many topics?
================

All sizes are scored on the same held-out folds. The difference between two sizes
therefore has a small error even if the scores themselves vary much. The lower panel
shows properties of the topics.
"""

import matplotlib.pyplot as plt

import polyabayes as pb

corpus = pb.datasets.make_lda_corpus(
    300, 200, 6, document_length=50, random_state=0
).corpus
choice = pb.choose_n_components(
    pb.LatentDirichletAllocation(max_iter=50),
    corpus,
    [2, 4, 6, 8, 12],
    n_folds=3,
    random_state=0,
)
print(choice)
pb.plotting.plot_choice(choice)
plt.show()
