"""Corpora to try things on: synthetic ones with known truth, and a real one."""

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
