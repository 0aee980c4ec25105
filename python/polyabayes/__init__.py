"""How probable are count data under a model? Exact and unbiased likelihoods with error bars."""

from polyabayes import datasets, exceptions, interop, plotting, priors, topics
from polyabayes.allocation import (
    AllocationModel,
    Allocations,
    Decomposition,
    Evidence,
    MissingCells,
    ModelPosterior,
    ParticleChain,
    n_effective_parameters,
    particle_mcmc,
    posterior_over_models,
)
from polyabayes.data import Corpus, CountTensor, discretise
from polyabayes.io import read_corpus, read_tensor, write_corpus, write_tensor
from polyabayes.likelihood import (
    BidirectionalBounds,
    Comparison,
    LogLikelihood,
    Perplexity,
    Trace,
    bidirectional_bounds,
    compare,
    completion_perplexity,
    estimator_divergence,
    log_completion,
    log_likelihood,
    plug_in_perplexity,
    split_tokens,
)
from polyabayes.models import (
    Chains,
    LatentDirichletAllocation,
    PoissonFactorAnalysis,
    TopicWeights,
    load,
    sample_chains,
)
from polyabayes.sizes import SizeChoice, WitnessSearch, choose_n_components, cross_validate
from polyabayes.versions import show_versions

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
    "SizeChoice",
    "TopicWeights",
    "Trace",
    "WitnessSearch",
    "bidirectional_bounds",
    "choose_n_components",
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
    "show_versions",
    "split_tokens",
    "topics",
    "write_corpus",
    "write_tensor",
]
