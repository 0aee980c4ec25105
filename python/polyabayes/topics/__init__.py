"""Tools for interpreting topics: coherence, diagnostics, top documents, matching, a report."""

from polyabayes._support.docs import fill_room
from polyabayes.topics.coherence import coherence
from polyabayes.topics.diagnostics import (
    TopDocuments,
    TopicDiagnostics,
    diagnostics,
    diversity,
    top_documents,
)
from polyabayes.topics.drift import Drift, drift
from polyabayes.topics.groups import TopicsByGroup, by_group
from polyabayes.topics.matching import TopicMatch, match_topics, stability
from polyabayes.topics.prevalence import TopicPrevalence, contrast, prevalence
from polyabayes.topics.report import report

__all__ = [
    "Drift",
    "TopDocuments",
    "TopicDiagnostics",
    "TopicMatch",
    "TopicPrevalence",
    "TopicsByGroup",
    "by_group",
    "coherence",
    "contrast",
    "diagnostics",
    "diversity",
    "drift",
    "match_topics",
    "prevalence",
    "report",
    "stability",
    "top_documents",
]

fill_room(globals())
