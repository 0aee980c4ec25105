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
from polyabayes.topics.words import TopicWords, topic_words

__all__ = [
    "Drift",
    "TopDocuments",
    "TopicDiagnostics",
    "TopicMatch",
    "TopicPrevalence",
    "TopicWords",
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
    "topic_words",
]

fill_room(globals())
