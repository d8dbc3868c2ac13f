"""The store: the only door for durable change, keeping tree, history and index in step."""

from memfs.store.index_sync import SyncResult
from memfs.store.store import Store

__all__ = ["Store", "SyncResult"]
