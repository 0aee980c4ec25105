"""
Topics that are alike
=====================

A model with too many topics, ten instead of five, has pairs of similar topics. They
show as bright squares beside the diagonal. Matching two runs shows which topics are
found again.
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
left.set_title("similarity of the topics of one run")
match = pb.topics.match_topics(first, second)
order = np.argsort(-match.similarities)
right.bar(range(len(order)), match.similarities[order])
right.set_xticks(range(len(order)), [str(k) for k in order])
right.set_xlabel("topic of the first run")
right.set_ylabel("similarity")
right.set_title("similarity to the matched topic of a second run")
plt.show()
