"""Example corpora: synthetic corpora with known parameters, and a real corpus."""

from polyabayes.data.datasets import (
    SyntheticGammaPoisson,
    SyntheticLDA,
    load_python_docs,
    make_gamma_poisson_corpus,
    make_lda_corpus,
)

__all__ = [
    "SyntheticGammaPoisson",
    "SyntheticLDA",
    "load_python_docs",
    "make_gamma_poisson_corpus",
    "make_lda_corpus",
]
