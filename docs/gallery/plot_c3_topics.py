"""
What the topics are about
=========================

The corpus is the documentation of Python. Topics are ordered by their share of the
tokens, and shown with their most probable words.
"""

import matplotlib.pyplot as plt

import polyabayes as pb

corpus = pb.datasets.load_python_docs()
lda = pb.LatentDirichletAllocation(8, max_iter=80, random_state=0).fit(corpus)
pb.plotting.plot_topics(lda, n_words=7)
plt.show()
