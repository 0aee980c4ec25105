"""Counts: of documents, and of cells of a tensor."""

from polyabayes.data.corpus import Corpus
from polyabayes.data.discretisation import discretise
from polyabayes.data.tensor import CountTensor

__all__ = ["Corpus", "CountTensor", "discretise"]
