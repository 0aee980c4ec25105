"""How probable are count data under a model? Exact and unbiased likelihoods with error bars."""

from polyabayes import datasets, exceptions, plotting
from polyabayes._model import load
from polyabayes._particle_mcmc import ParticleChain, particle_mcmc
from polyabayes.allocation import (
    AllocationModel,
    Decomposition,
    Evidence,
    n_effective_parameters,
)
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
from polyabayes.discretisation import discretise
from polyabayes.io import read_corpus, read_tensor, write_corpus, write_tensor
from polyabayes.lda import LatentDirichletAllocation
from polyabayes.likelihood import LogLikelihood, Trace, log_likelihood
from polyabayes.model_choice import ModelPosterior, posterior_over_models
from polyabayes.pfa import PoissonFactorAnalysis
from polyabayes.tensor import CountTensor

__version__ = "0.1.0"

__all__ = [
    "AllocationModel",
    "BidirectionalBounds",
    "Comparison",
    "Corpus",
    "CountTensor",
    "Decomposition",
    "Evidence",
    "LatentDirichletAllocation",
    "LogLikelihood",
    "ModelPosterior",
    "ParticleChain",
    "Perplexity",
    "PoissonFactorAnalysis",
    "Trace",
    "bidirectional_bounds",
    "compare",
    "completion_perplexity",
    "datasets",
    "discretise",
    "estimator_divergence",
    "exceptions",
    "load",
    "log_completion",
    "log_likelihood",
    "n_effective_parameters",
    "particle_mcmc",
    "plotting",
    "plug_in_perplexity",
    "posterior_over_models",
    "read_corpus",
    "read_tensor",
    "split_tokens",
    "write_corpus",
    "write_tensor",
]
