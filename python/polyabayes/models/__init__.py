"""Topic models: training, fitted models, their chains and files."""

from polyabayes.models.chains import Chains, sample_chains
from polyabayes.models.concentrations import TopicConcentration, learn_topic_concentration
from polyabayes.models.document_model import DocumentModel
from polyabayes.models.files.load import load
from polyabayes.models.fitted.topic_weights import TopicWeights
from polyabayes.models.lda import LatentDirichletAllocation
from polyabayes.models.pfa import PoissonFactorAnalysis

__all__ = [
    "Chains",
    "DocumentModel",
    "LatentDirichletAllocation",
    "PoissonFactorAnalysis",
    "TopicConcentration",
    "TopicWeights",
    "learn_topic_concentration",
    "load",
    "sample_chains",
]
