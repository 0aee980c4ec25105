"""Corpora larger than memory, and computation on many processes and machines."""

from polyabayes.scale.shard import Shard
from polyabayes.scale.shards import Shards, read_shards

__all__ = ["Shard", "Shards", "read_shards"]
