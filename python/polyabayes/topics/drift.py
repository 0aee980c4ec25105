"""Whether new documents still fit a model: a test, and the documents and words that carry it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from scipy.optimize import nnls

from polyabayes._support import checks
from polyabayes._support.arrays import Flags, Floats, Indices, Integers
from polyabayes._support.docs import shared_docs
from polyabayes._support.random import RandomState, random_generator
from polyabayes._support.results import Result, ResultTable
from polyabayes._support.warnings import quiet
from polyabayes.data.corpus import Corpus, of_layer
from polyabayes.exceptions import InvalidArgumentError, argument
from polyabayes.likelihood.foreign import exposed, of_measured_words, read_documents
from polyabayes.likelihood.scoring import log_likelihood
from polyabayes.models.fitted_topics import TopicModel, fitted_model, named_by, names

# Documents of a stratum of about equal length, within which the test permutes.
_STRATUM = 20
# Share of the reference that counts as unusual, and fewest documents that tell it.
_UNUSUAL, _FEWEST = 0.01, 2
# Temperatures and replicates of a score: its error is far below the spread of documents, and what
# it is low by is alike in documents of the model.
_EFFORT: dict[str, Any] = {"n_samples": 100, "n_replicates": 4}
_EFFORT |= {"event": "sequence", "given_length": True}


@dataclass(frozen=True, repr=False, eq=False)
class Drift(Result):
    """Fit of new documents to a model, against reference documents; its table has the new ones.

    Attributes
    ----------
    p_value : float
        Probability, if new and reference documents are alike given their lengths, that new ones fit
        as badly as these or worse.
    shift : float
        Mean z-score of the new documents minus that of reference documents of about the same
        length: negative if they fit worse.
    share_beyond : float
        Share of new documents that fit worse than 99 % of the reference documents.
    z, z_reference : ndarray of shape (n_documents,)
        ln p of each document minus its mean over documents of this length drawn from the model, in
        standard deviations of these.
    n_tokens : ndarray of int, shape (n_documents,)
        Known tokens of the new documents.
    words : ResultTable
        Words by the nats per token that they take from the new documents, most first: ``word``,
        ``nats``, and its ``share`` and ``reference_share`` of the tokens. The nats of all words add
        up to the loss per token at the posterior mean weights.
    unseen, unseen_reference : float
        Share of the tokens whose words the model does not know, or the other documents did not
        measure; they are left out of the rest.
    ids : ndarray of str objects or None
        Names of the new documents.

    Examples
    --------
    >>> data = pb.datasets.make_lda_corpus(100, 20, 2, document_length=8, random_state=0)
    >>> model = pb.LatentDirichletAllocation.from_parameters(
    ...     doc_topic_prior=0.5, topic_word=data.topic_word
    ... )
    >>> found = pb.drift(model, data.corpus[:60], data.corpus[60:], random_state=0)
    >>> found.to_frame().columns.tolist()
    ['document', 'n_tokens', 'z']
    """

    p_value: float
    shift: float
    share_beyond: float
    z: Floats
    z_reference: Floats
    n_tokens: Integers
    words: ResultTable
    unseen: float
    unseen_reference: float
    ids: NDArray[np.object_] | None = None

    def _columns(self) -> dict[str, Any]:
        documents = np.arange(len(self.z)) if self.ids is None else self.ids
        return {"document": documents, "n_tokens": self.n_tokens, "z": self.z}

    def __str__(self) -> str:
        first = ", ".join(map(str, self.words["word"][:8]))
        return (
            f"p = {self.p_value:.2g}: {len(self.z):,} new documents are {self.shift:+.2f} standard "
            f"deviations from {len(self.z_reference):,} of the reference; {self.share_beyond:.1%} "
            f"are beyond its 1 %; unseen words: {self.unseen:.1%} (reference "
            f"{self.unseen_reference:.1%})\nwords that carry it: {first}"
        )

    def __repr__(self) -> str:
        return f"<Drift: {self}>"


@shared_docs
def drift(
    model: Any,
    reference: Any,
    new: Any,
    *,
    layer: str | None = None,
    missing_words: str | None = None,
    n_permutations: int = 9_999,
    n_simulated: int = 200,
    random_state: RandomState = None,
    n_jobs: int | None = None,
) -> Drift:
    """Test whether new documents still fit a model as well as reference documents do.

    Every document gets a z-score: its ln p against documents of the same length that are drawn from
    the model. The test compares new and reference documents of about equal length, by their ranks
    in strata of 20 (van Elteren), and permutes them within the strata. Its size is therefore right
    also if the model is wrong, and if new documents are longer; it asks for exchangeable documents.

    Parameters
    ----------
    model : LatentDirichletAllocation, PoissonFactorAnalysis or foreign model
        A fitted model.
    reference, new : Corpus, sparse matrix, integer array or DataFrame, shape (n_documents, n_words)
        Documents that the model was *not* trained on, from the time of training, and new ones.
        Unknown words are dropped and counted; so are documents without known words.
    {layer}
    {missing words}
    n_permutations : int, default=9999
        Random permutations; the smallest p-value is 1 / (n_permutations + 1).
    n_simulated : int, default=200
        Documents drawn from the model with the lengths of each part.
    random_state : None, int, RandomState, Generator or SeedSequence
        Seed of scores, permutations and simulated documents.
    {n_jobs}

    Returns
    -------
    Drift

    {raises: bad documents}

    References
    ----------
    P. van Elteren (1960). On the combination of independent two-sample tests of Wilcoxon. Bulletin
    of the International Statistical Institute 37.

    Examples
    --------
    >>> data = pb.datasets.make_lda_corpus(100, 20, 2, document_length=8, random_state=0)
    >>> model = pb.LatentDirichletAllocation.from_parameters(
    ...     doc_topic_prior=0.5, topic_word=data.topic_word
    ... )
    >>> reference, new = data.corpus[:60], data.corpus[60:]
    >>> other = pb.Corpus(new.counts[:, ::-1])
    >>> [pb.drift(model, reference, x, random_state=0).p_value < 0.01 for x in (new, other)]
    [False, True]
    """
    fitted = fitted_model(model)
    n_draws = checks.whole_number("n_permutations", n_permutations)
    n_simulated = checks.whole_number("n_simulated", n_simulated, 50)
    generator = random_generator(random_state)
    seed = int(generator.integers(2**63))
    given, parts, unseen = {}, [], []
    for name, documents in (("reference", reference), ("new", new)):
        given[name] = read_documents([fitted], of_layer(documents, layer), name)
        fitted = named_by(fitted, fitted._aligned(given[name], name, "drop")[0])
        fitted = of_measured_words(fitted, given[name], name, missing_words, "drop")[0]
    for name, documents in given.items():
        corpus, n_unseen = fitted._aligned(documents, name, "drop")
        corpus = exposed(fitted, corpus, None)
        has_words = corpus._lengths() > 0
        if has_words.sum() < _FEWEST:
            raise InvalidArgumentError(
                f"{argument(name)} needs at least {_FEWEST} documents with known words, got "
                f"{has_words.sum()}"
            )
        parts.append(corpus[has_words])
        unseen.append(n_unseen / (n_unseen + corpus.n_tokens))
    lengths = [part._lengths() for part in parts]
    scores = [_scores(fitted, part, seed, n_jobs) for part in parts]
    drawn = [_simulated(fitted, part, n_simulated, generator) for part in parts]
    mean, spread = _by_length(
        np.concatenate([part._lengths() for part in drawn]),
        np.concatenate([_scores(fitted, part, seed, n_jobs) for part in drawn]),
    )
    before, after = ((x - mean(own)) / spread(own) for x, own in zip(scores, lengths, strict=True))
    is_new = np.repeat([False, True], [len(before), len(after)])
    z = np.concatenate([before, after])
    strata = _strata(np.concatenate(lengths), is_new, generator)
    limit = np.quantile(before, _UNUSUAL)
    return Drift(
        _p_value(z, is_new, strata, n_draws, generator),
        _shift(z, is_new, strata),
        float((after < limit).mean()),
        after,
        before,
        lengths[1],
        _words(fitted, parts),
        unseen[1],
        unseen[0],
        parts[1].ids,
    )


def _scores(model: TopicModel, corpus: Corpus, seed: int, n_jobs: int | None) -> Floats:
    """Ln p of documents given their lengths; impossible ones get the least finite value."""
    run = {"random_state": seed, "n_jobs": n_jobs} | _EFFORT
    with quiet():
        found = log_likelihood(model, corpus, "annealed", **run).values
    return np.maximum(found, -1e6)


def _simulated(
    model: TopicModel, part: Corpus, n_documents: int, generator: np.random.Generator
) -> Corpus:
    """Documents of the model, with lengths or exposures, and covariates, of those given."""
    part = part[generator.integers(part.n_documents, size=n_documents)]
    sizes: Any = part._lengths() if model._conditions_on_length else part.exposure
    priors = model._priors_of(part, None)
    counts = model._draw_documents(part.n_documents, sizes, priors, generator)[0]
    drawn = Corpus(counts, exposure=part.exposure, metadata=part.metadata)
    return drawn[drawn._lengths() > 0]


def _by_length(lengths: Integers, values: Floats) -> tuple[Any, Any]:
    """Mean and standard deviation of values by length, as functions: least squares."""

    def basis(n: Integers) -> Floats:
        return np.column_stack([n, np.sqrt(n), np.log1p(n)])

    # Values vary in proportion to the root of the length, about.
    roots = np.sqrt(lengths)
    slopes = np.linalg.lstsq(basis(lengths) / roots[:, None], values / roots, rcond=None)[0]
    squares = (values - basis(lengths) @ slopes) ** 2
    terms = np.column_stack([roots, lengths, lengths * roots]) / roots[:, None]
    variances = nnls(terms, squares / roots)[0]

    def spread(n: Integers) -> Floats:
        found = np.column_stack([np.sqrt(n), n, n**1.5]) @ variances
        return np.sqrt(np.maximum(found, np.finfo(float).tiny))

    return (lambda n: basis(n) @ slopes), spread


def _strata(lengths: Integers, is_new: Flags, generator: np.random.Generator) -> Indices:
    """Strata of documents of about equal length; equal lengths are ordered at random.

    A stratum ends after 20 documents if it has new and reference ones.
    """
    order = np.lexsort((generator.random(len(lengths)), lengths))
    strata, stratum, members = np.zeros(len(lengths), np.intp), 0, [0, 0]
    for place, document in enumerate(order):
        strata[document] = stratum
        members[int(is_new[document])] += 1
        if sum(members) >= _STRATUM and min(members) and len(lengths) - place > _STRATUM // 2:
            stratum, members = stratum + 1, [0, 0]
    return strata


def _p_value(
    z: Floats, is_new: Flags, strata: Indices, n_draws: int, generator: np.random.Generator
) -> float:
    """One-sided permutation test of ranks within strata."""
    observed, drawn = 0.0, np.zeros(n_draws)
    for stratum in range(int(strata.max()) + 1):
        own = np.flatnonzero(strata == stratum)
        n, n_new = len(own), int(is_new[own].sum())
        if not 0 < n_new < n:
            continue
        # Weights of van Elteren, for the mean rank of new documents.
        ranks = stats.rankdata(z[own]) / (n + 1)
        observed += float(ranks[is_new[own]].sum())
        shuffled = generator.permuted(np.broadcast_to(ranks, (n_draws, n)), axis=1)
        drawn += shuffled[:, :n_new].sum(axis=1)
    # Sums of the same ranks in another order may differ by rounding.
    return float((1 + (drawn <= observed + 1e-9).sum()) / (1 + n_draws))


def _shift(z: Floats, is_new: Flags, strata: Indices) -> float:
    """Mean over new documents of their distance to the mean of the reference in their stratum."""
    n_old = np.bincount(strata[~is_new], minlength=strata.max() + 1)
    means = np.bincount(strata[~is_new], z[~is_new], strata.max() + 1) / np.maximum(n_old, 1)
    known = is_new & (n_old[strata] > 0)
    return float((z[known] - means[strata[known]]).mean()) if known.any() else float("nan")


def _words(model: TopicModel, parts: list[Corpus]) -> ResultTable:
    """What each word adds to the loss of new documents, at posterior mean weights."""
    costs, shares = [], []
    for part in parts:
        rates = np.asarray(model.transform(part))
        rates /= rates @ model.components_.sum(axis=1, keepdims=True)
        cells = part.counts.tocoo()
        told = np.einsum("ik,ki->i", rates[cells.row], model.components_[:, cells.col])
        nats = -cells.data * np.log(np.maximum(told, 1e-300))
        costs.append(np.bincount(cells.col, nats, part.n_words) / part.n_tokens)
        shares.append(np.bincount(cells.col, cells.data, part.n_words) / part.n_tokens)
    nats = costs[1] - costs[0]
    order = np.argsort(-nats, kind="stable")
    columns: dict[str, Any] = {"word": names(model)[order], "nats": nats[order]}
    columns |= {"share": shares[1][order], "reference_share": shares[0][order]}
    return ResultTable.of_columns(columns)
