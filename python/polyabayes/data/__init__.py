"""Count data: corpora of documents, and count tensors."""

from polyabayes.data.corpus import Corpus
from polyabayes.data.discretisation import discretise
from polyabayes.data.tensor import CountTensor

__all__ = ["Corpus", "CountTensor", "discretise"]
