"""Options of commands by the keyword of the API that they are handed to."""

from __future__ import annotations

import argparse
from typing import Any

from polyabayes.allocation.options import Options

GENERAL = ("random_state", "n_jobs", "progress")
TRAINING = (
    "n_components",
    "max_iter",
    "burn_in",
    "n_init",
    "fit_method",
    "doc_topic_prior",
    "topic_word_prior",
    "learn_priors",
    "prior",
    "sampler",
    "checkpoint",
    "checkpoint_every",
    *GENERAL,
)
SCORING = (
    "method",
    "event",
    "given_length",
    "n_particles",
    "n_samples",
    "n_replicates",
    "target_std_error",
    "unseen",
    "budget",
    "options",
    *GENERAL,
)

COSTING = ("n_folds", "max_fits")
CHOOSING = ("n_folds", "max_fits", "checkpoint", "random_state", "progress")
SEARCHING = (
    "max_steps",
    "width",
    "max_seconds",
    "max_unexplored",
    "scoring",
    "strategy",
    "bound",
    "upper",
    "level",
    "checkpoint",
    "random_state",
    "progress",
)
# Options of the likelihoods, or the evidences, that a search scores by.
SEARCH_SCORING = (
    "method",
    "n_particles",
    "n_samples",
    "n_replicates",
    "target_std_error",
    "given_total",
    "budget",
)
# Options that apply to only one kind of search.
OF_NETWORKS = (
    "axes",
    "sizes",
    "concentration",
    "rate",
    "table_prior",
    "tied",
    "undirected",
    "strategy",
    "given_total",
    "budget",
)
OF_DOCUMENTS = (
    "vocabulary",
    "scoring",
    "target_std_error",
    "max_iter",
    "tol",
    "test",
    "folds",
    "n_workers",
)
MODEL = ("concentration", "rate", "tied")
# Options of all methods of allocation models; a method refuses those that it does not take.
EVIDENCE = ("method", "given_total", "max_total", "checkpoint", *Options.names(), *GENERAL)
DECOMPOSITION = ("method", *Options.names(), *GENERAL)


def given(arguments: argparse.Namespace, names: tuple[str, ...]) -> dict[str, Any]:
    """Keywords for the API: those options of `names` that the user gave."""
    values = {name: getattr(arguments, name, None) for name in names}
    return {name: value for name, value in values.items() if value is not None}
