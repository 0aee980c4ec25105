"""Training on shards: the chain of memory, bit for bit, on any number of workers.

Given phi and the pseudo-counts of documents, these are independent: `tasks` draw the topics of
their shards' tokens and give back counts of words by topic, whole numbers whose sums are exact in
any order. All else is drawn here, by the `chain`, which begins with the best of its `starts`;
`updates` are those of matrix factorisation. The state is written to `files` after every sweep,
before the next one begins, so that no shard is ever ahead of it by more than one sweep.
"""

from polyabayes.models.sharded.chain import ShardedChain
from polyabayes.models.sharded.files import fingerprint, state_folder
from polyabayes.models.sharded.model import ShardedModel, ShardedState
from polyabayes.models.sharded.run import ShardedResult, run_sharded
from polyabayes.models.sharded.updates import ShardedUpdates

__all__ = [
    "ShardedChain",
    "ShardedModel",
    "ShardedResult",
    "ShardedState",
    "ShardedUpdates",
    "fingerprint",
    "run_sharded",
    "state_folder",
]
