"""
How many topics?
================

All sizes are scored on the same held-out folds. The difference between two sizes
therefore has a small error even if the scores themselves vary much. The lower panels
show properties of the topics, and the criteria of R's ldatuning.
"""

import matplotlib.pyplot as plt

import polyabayes as pb

corpus = pb.datasets.make_lda_corpus(
    300, 200, 6, document_length=50, random_state=0
).corpus
model = pb.LatentDirichletAllocation(max_iter=50)
choice = pb.choose_n_components(model, corpus, n_folds=3, random_state=0)
print(choice)
criteria = choice.criteria(model, corpus, random_state=0)
pb.plotting.plot_choice(choice, criteria=criteria)
plt.show()
