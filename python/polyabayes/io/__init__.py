"""Reading and writing corpora and count tensors, with one module per format."""

from polyabayes.io.corpora import read_corpus, write_corpus
from polyabayes.io.shards import write_shards
from polyabayes.io.tensor_files import read_tensor, write_tensor

__all__ = ["read_corpus", "read_tensor", "write_corpus", "write_shards", "write_tensor"]
