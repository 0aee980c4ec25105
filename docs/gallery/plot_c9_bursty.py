"""
Words that come in bursts
=========================

What does each repetition of a word cost? The page of a module is scored as it is, and
with one token of the word instead of all. The difference, divided by the tokens left
out, is the surprise of a repetition. LDA is surprised each time that the page names its
subject again; bursty topics expect it.
"""

import matplotlib.pyplot as plt
import numpy as np

import polyabayes as pb

corpus = pb.datasets.load_python_docs()
train, test = corpus.split(test_size=0.2, random_state=0)
settings = {"n_components": 10, "max_iter": 100, "random_state": 0}
lda = pb.LatentDirichletAllocation(**settings).fit(train)
bursty = pb.LatentDirichletAllocation(**settings, topic_concentration="learn").fit(
    train
)
models = {"LDA": lda, "bursty topics": bursty}

# The new page that gains most, and its words that are repeated most often.
of_lda, of_bursty = (
    pb.log_likelihood(model, test, random_state=0).values for model in models.values()
)
gains = of_bursty - of_lda
page = test.counts[gains.argmax()].toarray()[0]
words = np.argsort(-page, kind="stable")[:12]
once = np.tile(page, (len(words), 1))
once[np.arange(len(words)), words] = 1

fig, ax = plt.subplots(figsize=(6, 4.5), layout="constrained")
heights = np.arange(len(words))
for place, (name, model) in zip((-0.2, 0.2), models.items(), strict=True):
    values = pb.log_likelihood(model, np.vstack([page, once]), random_state=0).values
    surprise = (values[1:] - values[0]) / (page[words] - 1)
    print(f"{name}: {values[0]:,.0f} nats, {surprise.mean():.1f} nats a repetition")
    ax.barh(heights + place, surprise, 0.38, label=name)
names = [f"{corpus.vocabulary[word]} ({page[word]})" for word in words]
ax.set_yticks(heights, names)
ax.invert_yaxis()
ax.set_xlabel("surprise of a repetition, nats")
ax.set_ylabel("word (tokens on the page)")
fig.legend(loc="outside lower center", ncols=2)
plt.show()
