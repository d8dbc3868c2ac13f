"""What was asked for lately stays in the cache, within its room (S14)."""

from __future__ import annotations

import marshal
import os
from typing import Any

from memfs.state.reader import CachedDocument, StateCache


def document(values: dict[str, Any], sha256: str = "") -> CachedDocument:
    """A document as it is kept."""
    return CachedDocument(marshal.dumps(values), sha256, None)


def test_what_is_kept_comes_back_as_a_copy() -> None:
    """A kept document comes back equal, and changing it changes nothing that is kept (S14)."""
    cache = StateCache()
    assert cache.get("a") is None
    cache.keep("a", document({"x": [1, 2.5, None, "ü"]}, "one"))
    kept = cache.get("a")
    assert kept is not None
    kept.values()["x"].append(3)
    assert (kept.values(), kept.sha256) == ({"x": [1, 2.5, None, "ü"]}, "one")
    cache.keep("a", document({}, "other"))
    kept = cache.get("a")
    assert kept is not None
    assert (kept.values(), kept.sha256) == ({}, "other")
    cache.clear()
    assert cache.get("a") is None
    assert (cache.statistics()["documents"], cache.statistics()["bytes"]) == (0, 0)


def test_what_was_used_longest_ago_goes_first() -> None:
    """When room is short, what was asked for lately stays; the bytes stay bounded (S14)."""
    cache = StateCache(most_bytes=20_000)
    for name in "abcdefgh":
        cache.keep(name, document({"x": "x" * 3000}))
        cache.get("a")
    assert cache.statistics()["bytes"] <= 20_000
    assert [name for name in "abcdefgh" if cache.get(name)] == ["a", "e", "f", "g", "h"]


def test_what_is_too_large_is_not_kept() -> None:
    """One document never fills the cache (S14)."""
    cache = StateCache(most_bytes=20_000)
    cache.keep("large", document({"x": "x" * 6000}))
    assert (cache.get("large"), cache.statistics()["bytes"]) == (None, 0)


def test_a_forked_child_can_use_it() -> None:
    """A lock that another thread held at the fork does not hold up the child."""
    cache = StateCache()
    cache.keep("a", document({"b": 1}))
    with cache._guard:
        child = os.fork()
        if child == 0:
            os._exit(0 if cache.get("a") else 1)
    assert os.waitpid(child, 0)[1] == 0
