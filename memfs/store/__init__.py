"""The store: the only door for durable change, keeping tree, history and index in step."""

from memfs.store.batch import Batch
from memfs.store.outcome import Refreshed
from memfs.store.store import Store
from memfs.store.values import Eyes, Flushed, Loaded, Pending

__all__ = ["Batch", "Eyes", "Flushed", "Loaded", "Pending", "Refreshed", "Store"]
