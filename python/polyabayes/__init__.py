"""How probable are count data under a model? Exact and unbiased likelihoods with error bars."""

from polyabayes import datasets, exceptions, interop, plotting, priors
from polyabayes._model import TopicWeights
from polyabayes._persistence import load
from polyabayes.chains import Chains, sample_chains
from polyabayes.comparison import Comparison, compare
from polyabayes.completion import (
    Perplexity,
    completion_perplexity,
    log_completion,
    plug_in_perplexity,
    split_tokens,
)
from polyabayes.corpus import Corpus
from polyabayes.diagnostics import (
    BidirectionalBounds,
    bidirectional_bounds,
    estimator_divergence,
)
from polyabayes.io import read_corpus, write_corpus
from polyabayes.lda import LatentDirichletAllocation
from polyabayes.likelihood import LogLikelihood, Trace, log_likelihood
from polyabayes.pfa import PoissonFactorAnalysis
from polyabayes.witness import WitnessSearch, cross_validate

__version__ = "0.1.0"

__all__ = [
    "BidirectionalBounds",
    "Chains",
    "Comparison",
    "Corpus",
    "LatentDirichletAllocation",
    "LogLikelihood",
    "Perplexity",
    "PoissonFactorAnalysis",
    "TopicWeights",
    "Trace",
    "WitnessSearch",
    "bidirectional_bounds",
    "compare",
    "completion_perplexity",
    "cross_validate",
    "datasets",
    "estimator_divergence",
    "exceptions",
    "interop",
    "load",
    "log_completion",
    "log_likelihood",
    "plotting",
    "plug_in_perplexity",
    "priors",
    "read_corpus",
    "sample_chains",
    "split_tokens",
    "write_corpus",
]
