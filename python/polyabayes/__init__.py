"""How probable are count data under a model? Exact and unbiased likelihoods with error bars."""

from polyabayes import datasets, exceptions, plotting
from polyabayes._model import load
from polyabayes.comparison import Comparison, compare
from polyabayes.corpus import Corpus
from polyabayes.io import read_corpus, write_corpus
from polyabayes.lda import LatentDirichletAllocation
from polyabayes.likelihood import LogLikelihood, log_likelihood
from polyabayes.pfa import PoissonFactorAnalysis

__version__ = "0.1.0"

__all__ = [
    "Comparison",
    "Corpus",
    "LatentDirichletAllocation",
    "LogLikelihood",
    "PoissonFactorAnalysis",
    "compare",
    "datasets",
    "exceptions",
    "load",
    "log_likelihood",
    "plotting",
    "read_corpus",
    "write_corpus",
]
