"""
Topics that say the same
========================

Twice as many topics as there are: pairs that share their words show as dark squares off the
diagonal, and matching two runs shows which topics come back.
"""

import matplotlib.pyplot as plt
import numpy as np

import polyabayes as pb

data = pb.datasets.make_lda_corpus(300, 120, 5, document_length=60, random_state=0)
first, second = (
    pb.LatentDirichletAllocation(10, max_iter=60, random_state=seed).fit(data.corpus)
    for seed in (0, 1)
)
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.4), layout="constrained")
pb.plotting.plot_topic_similarity(first, ax=left)
left.set_title("one run, its topics with one another")
match = pb.topics.match_topics(first, second)
order = np.argsort(-match.similarities)
right.bar(range(len(order)), match.similarities[order])
right.set_xticks(range(len(order)), [str(k) for k in order])
right.set_xlabel("topic of the first run")
right.set_ylabel("similarity to its match in the second run")
plt.show()
