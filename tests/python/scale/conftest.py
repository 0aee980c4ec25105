import pytest


@pytest.fixture
def small_blocks(monkeypatch):
    """Several blocks a shard, also where documents have more cells."""
    from polyabayes.scale import shard_sweeps, token_order

    monkeypatch.setattr(token_order, "_BLOCK_TOKENS", 60)
    monkeypatch.setattr(token_order, "_TOKENS_PER_WORD", 0)
    monkeypatch.setattr(token_order, "_MOST_DOCUMENTS", 7)
    monkeypatch.setattr(token_order, "_CELLS", 70)
    monkeypatch.setattr(shard_sweeps, "_BLOCKS", 2)
    monkeypatch.setattr(shard_sweeps, "_THREAD_BLOCKS", 1)
    monkeypatch.setattr(shard_sweeps, "_TOPICS", 64)


@pytest.fixture(scope="module")
def dask_client():
    distributed = pytest.importorskip("distributed")
    options = {"threads_per_worker": 1, "processes": True, "dashboard_address": ":0"}
    cluster = distributed.LocalCluster(n_workers=2, **options)
    with cluster, distributed.Client(cluster) as client:
        yield client
