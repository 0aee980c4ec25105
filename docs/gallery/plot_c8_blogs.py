"""
Political blogs of 2008
=======================

Which topics do liberal and conservative blogs write about, and when in an election
year? The corpus is the sample of 5,000 blogs that R's stm ships. Covariates are the
rating of each blog, and its day as a spline. The program needs ``poliblog5k.ldac.gz``,
``poliblog5k.vocab`` and ``poliblog5k.meta.csv`` in the folder ``POLYABAYES_DATA``, and
takes a few minutes.
"""

import os
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import polyabayes as pb

folder = Path(os.environ.get("POLYABAYES_DATA", "."))
# Days of 2008: John McCain names Sarah Palin, Lehman Brothers fails, the election.
EVENTS = {242: "Palin", 259: "Lehman", 309: "election"}

if not (folder / "poliblog5k.ldac.gz").exists():
    print(
        f"skipped: no poliblog5k.ldac.gz in {folder}; set POLYABAYES_DATA to its folder"
    )
else:
    corpus = pb.read_corpus(
        folder / "poliblog5k.ldac.gz", vocabulary=folder / "poliblog5k.vocab"
    ).with_metadata(pd.read_csv(folder / "poliblog5k.meta.csv"))
    lda = pb.LatentDirichletAllocation(
        20, formula="~ rating + bs(day, df=8)", max_iter=2000, random_state=0
    ).fit(corpus)
    names = [
        " ".join(corpus.vocabulary[np.argsort(-topic)[:4]]) for topic in lda.components_
    ]

    # Effect of a liberal rating on the share of each topic, averaged over all blogs.
    effect = pb.topics.contrast(
        lda, {"rating": "Liberal"}, {"rating": "Conservative"}, documents=corpus
    )
    fig, axes = plt.subplots(2, 1, figsize=(7.2, 9), layout="constrained")
    pb.plotting.plot_prevalence(effect, range(20), labels=names, ax=axes[0])

    # Over the year: the topics that speak most of Palin and of the banks.
    words = corpus.vocabulary.tolist()
    shares = lda.components_ / lda.components_.sum(axis=1, keepdims=True)
    shown = [int(shares[:, words.index(word)].argmax()) for word in ("palin", "bank")]
    days = np.linspace(1, 366, 74)
    over_year = pb.topics.prevalence(lda, at={"rating": "Liberal", "day": days})
    pb.plotting.plot_prevalence(
        over_year, shown, along=days, labels=[names[k] for k in shown], ax=axes[1]
    )
    for day, name in EVENTS.items():
        axes[1].axvline(day, color="grey", linewidth=0.8, linestyle=":")
        place = {"xycoords": ("data", "axes fraction"), "rotation": 45}
        axes[1].annotate(name, (day, 1.01), fontsize="small", **place)
    axes[1].legend(loc="upper left", fontsize="small")
    axes[1].set_xlabel("day of 2008")
    axes[1].set_title("two topics of liberal blogs over the year", pad=40)
    plt.show()
