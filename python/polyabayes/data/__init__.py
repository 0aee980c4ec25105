"""Count data: corpora of documents, and count tensors."""

from polyabayes.data.corpus import Corpus
from polyabayes.data.tensors.tensor import CountTensor

__all__ = ["Corpus", "CountTensor"]
