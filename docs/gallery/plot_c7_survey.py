"""
A survey experiment
===================

Half of the 341 people in a survey were asked what makes them worry about immigration.
The others were asked what comes to their mind. Does the question change the topics of
the answers? The survey ships with R's stm, and the published effects of stm are drawn
beside ours. The program needs ``gadarian.RData`` and ``gadarianFit.RData`` in the
folder ``POLYABAYES_STM``.
"""

import os
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import polyabayes as pb

folder = Path(os.environ.get("POLYABAYES_STM", "."))


def survey():
    """The answers over the words of the fit, and its topics."""
    import rdata

    fit = rdata.read_rda(folder / "gadarianFit.RData")["gadarianFit"]
    corpus = pb.Corpus.from_table(
        rdata.read_rda(folder / "gadarian.RData")["gadarian"],
        text="open.ended.response",
        vocabulary=[str(word) for word in fit["vocab"]],
        metadata=["treatment", "pid_rep"],
        stem="english",
        token_pattern="[a-z]+",
    )
    return corpus, np.exp(np.asarray(fit["beta"]["logbeta"][0]))


# Effects of the treatment, printed by R's
# ``estimateEffect(1:3 ~ treatment, gadarianFit, gadarian)``.
PUBLISHED, STD_ERROR = np.array([-0.161, 0.243, -0.083]), 0.030

if not (folder / "gadarianFit.RData").exists():
    print(
        f"skipped: no gadarianFit.RData in {folder}; set POLYABAYES_STM to its folder"
    )
else:
    corpus, topics = survey()
    lda = pb.LatentDirichletAllocation(
        3, formula="~ treatment + pid_rep", max_iter=5000, random_state=0
    ).fit(corpus)
    effect = pb.topics.contrast(
        lda, {"treatment": 1.0}, {"treatment": 0.0}, documents=corpus
    )
    # The topic of ours that is most like each of stm's.
    alike = (np.sqrt(topics) @ np.sqrt(lda.components_).T).argmax(axis=1)
    means, ends = effect.mean[0, alike], effect.interval()[:, 0, alike]
    fig, axes = plt.subplots(figsize=(7, 3.4), layout="constrained")
    places = np.arange(3)
    axes.errorbar(
        PUBLISHED,
        places + 0.1,
        xerr=1.96 * STD_ERROR,
        fmt="s",
        label="stm, as published",
    )
    axes.errorbar(
        means, places - 0.1, xerr=abs(ends - means), fmt="o", label="polyabayes"
    )
    words = [" ".join(corpus.vocabulary[np.argsort(-topic)[:5]]) for topic in topics]
    axes.set_yticks(places, words)
    axes.axvline(0, color="grey", linewidth=0.8)
    axes.set_xlabel("effect of the treatment on the prevalence")
    axes.set_title("Effects on three topics of answers, with 95 % intervals")
    fig.legend(loc="outside lower center", ncols=2)
    plt.show()
