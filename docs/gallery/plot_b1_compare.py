"""
Which of these models is better?
================================

Models scored on the same documents are compared by paired differences. The band shows
how far a model may be behind on *new* documents. The line is the error of the estimate,
which is often too small to be seen.
"""

import matplotlib.pyplot as plt

import polyabayes as pb

data = pb.datasets.make_lda_corpus(600, 200, 6, document_length=50, random_state=0)
train, test = data.corpus.split(test_size=0.3, random_state=0)
models = {
    "the truth": pb.LatentDirichletAllocation.from_parameters(
        doc_topic_prior=data.doc_topic_prior, topic_word=data.topic_word
    ),
    **{
        f"LDA, {k} topics": pb.LatentDirichletAllocation(
            k, max_iter=60, random_state=0
        ).fit(train)
        for k in (3, 6, 12)
    },
}
comparison = pb.compare(models, test, random_state=0)
print(comparison)
pb.plotting.plot_comparison(comparison)
plt.show()
