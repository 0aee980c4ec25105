"""Effects of covariates on real data: what stm reports, and what our intervals say.

``python benches/effects.py survey`` takes the survey on immigration that R's stm ships, and its fit
of three topics (``gadarian.RData``, ``gadarianFit.RData``, in the folder that POLYABAYES_STM
names). Standard errors of stm are by the method of composition, from eta and Sigma of the fit:
theta is drawn from normal posteriors of one covariance, and each draw regressed on the covariates.
``python benches/effects.py blogs`` takes 5,000 political blogs of 2008, and in place of R the STM
of topica, with its ``estimate_effect``.
"""

import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import topica
from covariates import blogs as poliblog, design, in_order
from record import ROOT, Table, main, save, texts
from scipy.optimize import linear_sum_assignment
from scipy.special import softmax

import polyabayes as pb
from polyabayes._support.arrays import Floats

STM = Path(os.environ.get("POLYABAYES_STM", ROOT.parent / "shared" / "interop" / "stm"))
COMMAND = "python benches/effects.py"
RESTS_ON = ["lda, Gibbs"]
COLUMNS = {
    "effect of": "s", "topic of stm": "s", "likeness of ours": ".2f", "stm": "+.3f", "±": ".3f",
    "ours": "+.3f", "95 % from": "+.3f", "to": "+.3f",
}  # fmt: skip
N_TOPICS = 20
# Draws of theta, as of stm's own documentation where precision matters.
N_DRAWS = 1000


def paired(topics: Floats, others: Floats, vocabulary: Any) -> tuple[Any, list[str], list[float]]:
    """The topic of `others` that is most like each topic, one for each; its words and likeness.

    The likeness of two topics is the sum of the geometric means of their probabilities.
    """
    likeness = np.sqrt(topics) @ np.sqrt(others).T
    order = linear_sum_assignment(-likeness)[1]
    names = [", ".join(str(vocabulary[word]) for word in np.argsort(-row)[:4]) for row in topics]
    return order, names, likeness[np.arange(len(topics)), order].tolist()


def composed(fit: Any, design: Floats) -> tuple[Floats, Floats]:
    """Coefficients of every topic and their standard errors, (n_covariates, n_topics).

    Sigma of the fit is the scatter of the means of eta about the regression, plus the mean of their
    variances: the difference is the covariance that all documents are given.
    """
    eta, mean = np.asarray(fit["eta"]), np.asarray(fit["mu"]["mu"]).T
    off = eta - mean
    factor = np.linalg.cholesky(np.asarray(fit["sigma"]) - off.T @ off / len(eta))
    rng = np.random.default_rng(0)
    inverse = np.linalg.inv(design.T @ design)
    found, variances = [], []
    for _ in range(N_DRAWS):
        drawn = eta + rng.standard_normal(eta.shape) @ factor.T
        theta = softmax(np.column_stack([drawn, np.zeros(len(eta))]), axis=1)
        coefficients = inverse @ design.T @ theta
        residuals = theta - design @ coefficients
        noise = (residuals**2).sum(axis=0) / (len(eta) - design.shape[1])
        found.append(coefficients)
        variances.append(np.outer(np.diag(inverse), noise))
    total = np.mean(variances, axis=0) + np.var(found, axis=0)
    return np.mean(found, axis=0), np.sqrt(total)


def gadarian() -> tuple[pb.Corpus, Any]:
    """Answers over the words of the fit, with treatment and party; and the fit."""
    import rdata

    fit = rdata.read_rda(STM / "gadarianFit.RData")["gadarianFit"]
    table = rdata.read_rda(STM / "gadarian.RData")["gadarian"]
    corpus = pb.Corpus.from_table(
        table.rename(columns={"open.ended.response": "answer", "pid_rep": "party"}),
        text="answer",
        vocabulary=[str(word) for word in fit["vocab"]],
        metadata=["treatment", "party"],
        stem="english",
        token_pattern="[a-z]+",
    )
    return corpus, fit


def trained(corpus: pb.Corpus, n_topics: int, formula: str, **options: Any) -> Any:
    """Our model; a warning tells where its intervals rest on too few draws."""
    with warnings.catch_warnings():
        warnings.simplefilter("default", pb.exceptions.UnreliableErrorWarning)
        return pb.LatentDirichletAllocation(n_topics, formula=formula, **options).fit(corpus)


def survey() -> None:
    """Treatment, and party from Democrat to Republican."""
    corpus, fit = gadarian()
    options: dict[str, Any] = {"max_iter": 20_000, "random_state": 0, "n_jobs": 1}
    lda = trained(corpus, 3, "~ treatment + party", **options)
    topics = np.exp(np.asarray(fit["beta"]["logbeta"][0]))
    rows = corpus.metadata[["treatment", "party"]].to_numpy(dtype=np.float64)
    regressors = np.column_stack([np.ones(len(rows)), rows])
    plain = pb.LatentDirichletAllocation(3, **options).fit(corpus)
    order = paired(topics, plain.components_, corpus.vocabulary)[0]
    slopes = np.linalg.lstsq(regressors, plain.transform(corpus)[:, order])[0]
    columns = COLUMNS | {"topics without covariates": "+.3f"}
    table = Table("effects-survey", f"{COMMAND} survey", columns, RESTS_ON)
    places = {"treatment": 1, "party": 2}
    fill(table, lda, corpus, topics, places, composed(fit, regressors), slopes)
    save(table)


def fill(
    table: Table,
    lda: Any,
    corpus: pb.Corpus,
    topics: Floats,
    places: dict[str, int],
    theirs: tuple[Floats, Floats],
    *others: Floats,
) -> None:
    """Effects of covariates from 0 to 1 on the topics of stm, and on those of ours most like them.

    `places` has the row of each covariate in the coefficients of stm, in their errors, and in those
    of others.
    """
    order, names, likeness = paired(topics, lda.components_, corpus.vocabulary)
    for covariate, place in places.items():
        effect = pb.topics.contrast(lda, {covariate: 1.0}, {covariate: 0.0}, documents=corpus)
        ours = np.vstack([effect.mean, effect.interval()[:, 0]])[:, order]
        for k, name in enumerate(names):
            figures = (part[place, k] for part in theirs)
            more = (part[place, k] for part in others)
            table.add(covariate, name, likeness[k], *figures, *ours[:, k], *more)


def blogs() -> None:
    """Rating, liberal or not, and the year from its first day to its last."""
    corpus = poliblog()
    rows = design(corpus)
    corpus = corpus.with_metadata(pd.DataFrame(rows, columns=["liberal", "year"]))
    options: dict[str, Any] = {"max_iter": 3_400, "random_state": 0, "n_jobs": 1}
    lda = trained(corpus, N_TOPICS, "~ liberal + year", **options)
    stm = topica.STM(N_TOPICS, seed=1)
    stm.fit(texts(corpus), prevalence=rows, num_threads=1)
    found = topica.estimate_effect(stm, rows, nsims=100, seed=1)
    theirs = tuple(np.array([getattr(own, name) for own in found]).T for name in ("coef", "se"))
    topics = in_order(pb.interop.from_topica(stm), corpus)
    table = Table("effects-blogs", f"{COMMAND} blogs", COLUMNS, RESTS_ON)
    fill(table, lda, corpus, topics, {"liberal": 1, "year": 2}, theirs)
    save(table)


if __name__ == "__main__":
    main(survey, blogs)
