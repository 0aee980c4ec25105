"""Types of what the public functions return, for annotations; nobody needs to make one."""

from polyabayes._support.results import ResultTable
from polyabayes.allocation.evidence.result import Round
from polyabayes.allocation.graphs.graph import Graph
from polyabayes.allocation.layout import Cost
from polyabayes.allocation.simulation import Simulation
from polyabayes.citation import Citation
from polyabayes.data.document_counts import CorpusSummary
from polyabayes.models.fitted.topic_table import TopicTable
from polyabayes.models.lda import LdaSample
from polyabayes.models.pfa import PfaSample
from polyabayes.models.traces import BoundTrace, TrainingTrace
from polyabayes.sizes.choice.result import Gain
from polyabayes.sizes.witness.results import PredictiveBounds
from polyabayes.sizes.witness.search import SearchStep

__all__ = [
    "BoundTrace",
    "Citation",
    "CorpusSummary",
    "Cost",
    "Gain",
    "Graph",
    "LdaSample",
    "PfaSample",
    "PredictiveBounds",
    "ResultTable",
    "Round",
    "SearchStep",
    "Simulation",
    "TopicTable",
    "TrainingTrace",
]
