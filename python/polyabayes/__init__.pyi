# The public names, and the rooms that they come from: the only list of them.
from . import (
    datasets as datasets,
    exceptions as exceptions,
    interop as interop,
    plotting as plotting,
    priors as priors,
    results as results,
    scale as scale,
    topics as topics,
)
from .allocation import (
    AllocationModel as AllocationModel,
    Decomposition as Decomposition,
    Evidence as Evidence,
    MissingCells as MissingCells,
    ModelPosterior as ModelPosterior,
    PosteriorDraws as PosteriorDraws,
    n_effective_parameters as n_effective_parameters,
    posterior_over_models as posterior_over_models,
)
from .citation import cite as cite
from .data import Corpus as Corpus, CountTensor as CountTensor
from .interop import read_model as read_model
from .io import (
    read_corpus as read_corpus,
    read_tensor as read_tensor,
    write_corpus as write_corpus,
    write_shards as write_shards,
    write_tensor as write_tensor,
)
from .latent_classes import (
    ClassChoice as ClassChoice,
    ClassInvariance as ClassInvariance,
    ClassOutcome as ClassOutcome,
    LatentClassAnalysis as LatentClassAnalysis,
    LatentTransitionAnalysis as LatentTransitionAnalysis,
    PairResiduals as PairResiduals,
)
from .likelihood import (
    BidirectionalBounds as BidirectionalBounds,
    Comparison as Comparison,
    LogLikelihood as LogLikelihood,
    Perplexity as Perplexity,
    Trace as Trace,
    bidirectional_bounds as bidirectional_bounds,
    compare as compare,
    completion_perplexity as completion_perplexity,
    estimator_divergence as estimator_divergence,
    log_completion as log_completion,
    log_likelihood as log_likelihood,
    plug_in_perplexity as plug_in_perplexity,
    split_tokens as split_tokens,
)
from .models import (
    Chains as Chains,
    DocumentModel as DocumentModel,
    LatentDirichletAllocation as LatentDirichletAllocation,
    PoissonFactorAnalysis as PoissonFactorAnalysis,
    TopicConcentration as TopicConcentration,
    TopicWeights as TopicWeights,
    learn_topic_concentration as learn_topic_concentration,
    load as load,
    sample_chains as sample_chains,
)
from .scale import Shards as Shards, read_shards as read_shards
from .sizes import (
    SizeChoice as SizeChoice,
    WitnessSearch as WitnessSearch,
    choose_n_components as choose_n_components,
    cross_validate as cross_validate,
)
from .topics import Drift as Drift, drift as drift
from .versions import show_versions as show_versions

__version__: str
