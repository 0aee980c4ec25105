"""How probable are count data under a model? Exact and unbiased likelihoods with error bars."""

from polyabayes import datasets, exceptions, interop, plotting, priors
from polyabayes._fitted_model import TopicWeights
from polyabayes._log_likelihood import LogLikelihood, Trace
from polyabayes._particle_mcmc import ParticleChain, particle_mcmc
from polyabayes._persistence import load
from polyabayes.allocation import (
    AllocationModel,
    Allocations,
    Decomposition,
    Evidence,
    MissingCells,
    n_effective_parameters,
)
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
from polyabayes.discretisation import discretise
from polyabayes.io import read_corpus, read_tensor, write_corpus, write_tensor
from polyabayes.lda import LatentDirichletAllocation
from polyabayes.likelihood import log_likelihood
from polyabayes.model_choice import ModelPosterior, posterior_over_models
from polyabayes.pfa import PoissonFactorAnalysis
from polyabayes.tensor import CountTensor
from polyabayes.witness import WitnessSearch, cross_validate

__version__ = "0.1.0"

__all__ = [
    "AllocationModel",
    "Allocations",
    "BidirectionalBounds",
    "Chains",
    "Comparison",
    "Corpus",
    "CountTensor",
    "Decomposition",
    "Evidence",
    "LatentDirichletAllocation",
    "LogLikelihood",
    "MissingCells",
    "ModelPosterior",
    "ParticleChain",
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
    "discretise",
    "estimator_divergence",
    "exceptions",
    "interop",
    "load",
    "log_completion",
    "log_likelihood",
    "n_effective_parameters",
    "particle_mcmc",
    "plotting",
    "plug_in_perplexity",
    "posterior_over_models",
    "priors",
    "read_corpus",
    "read_tensor",
    "sample_chains",
    "split_tokens",
    "write_corpus",
    "write_tensor",
]
