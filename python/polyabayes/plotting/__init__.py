"""Plots of models and comparisons."""

from polyabayes._support.docs import fill_room
from polyabayes.plotting.allocation import (
    plot_evidence,
    plot_graph,
    plot_posterior,
    plot_table,
    plot_total,
)
from polyabayes.plotting.choice import plot_choice
from polyabayes.plotting.comparison import plot_comparison
from polyabayes.plotting.convergence import plot_convergence
from polyabayes.plotting.latent_classes import plot_item_probabilities, plot_transitions
from polyabayes.plotting.prevalence import plot_prevalence
from polyabayes.plotting.signatures import plot_signatures
from polyabayes.plotting.topics import plot_topics
from polyabayes.plotting.training import plot_topic_similarity, plot_topic_weights, plot_trace
from polyabayes.plotting.witness import plot_size_bounds, plot_size_posterior

__all__ = [
    "plot_choice",
    "plot_comparison",
    "plot_convergence",
    "plot_evidence",
    "plot_graph",
    "plot_item_probabilities",
    "plot_posterior",
    "plot_prevalence",
    "plot_signatures",
    "plot_size_bounds",
    "plot_size_posterior",
    "plot_table",
    "plot_topic_similarity",
    "plot_topic_weights",
    "plot_topics",
    "plot_total",
    "plot_trace",
    "plot_transitions",
]

fill_room(globals())
