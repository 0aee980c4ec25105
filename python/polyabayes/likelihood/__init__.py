"""Likelihood of documents under a model: estimates, comparisons and diagnostics."""

from polyabayes.likelihood.comparing import compare
from polyabayes.likelihood.comparison import Comparison
from polyabayes.likelihood.completion import (
    Perplexity,
    completion_perplexity,
    log_completion,
    plug_in_perplexity,
    split_tokens,
)
from polyabayes.likelihood.diagnostics import (
    BidirectionalBounds,
    bidirectional_bounds,
    estimator_divergence,
)
from polyabayes.likelihood.result import LogLikelihood, Trace
from polyabayes.likelihood.scoring import log_likelihood
