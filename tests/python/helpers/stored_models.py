"""Models and counts that tests write to files."""

import numpy as np

import polyabayes as pb
from polyabayes._support.storage import arrays as storage

LDA, PFA = pb.LatentDirichletAllocation, pb.PoissonFactorAnalysis
WORDS = ["urn", "größe", "🎲", 'quo"te\n', "", "漢字"]
COUNTS = np.random.default_rng(0).poisson(1.5, (20, 6))
TOPICS = np.random.default_rng(1).dirichlet(np.ones(6), 2)


def known_lda(**options):
    return LDA.from_parameters(
        doc_topic_prior=[0.1, 0.7], topic_word=TOPICS, random_state=5, **options
    )


def known_pfa(**options):
    return PFA.from_parameters(
        topic_word=3 * TOPICS, shape=[0.5, 2.0], probability=0.3, random_state=5, **options
    )


def rewrite(path, change):
    """Apply `change` to the arrays and the header of a model file, and seal it again."""
    header, arrays = storage.read_arrays(path)
    storage.write_arrays(path, change(arrays, header) or header, arrays)
