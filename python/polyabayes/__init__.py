"""How probable are count data under a model? Exact and unbiased likelihoods with error bars."""

from polyabayes import datasets, exceptions
from polyabayes.corpus import Corpus
from polyabayes.io import read_corpus

__all__ = ["Corpus", "datasets", "exceptions", "read_corpus"]
