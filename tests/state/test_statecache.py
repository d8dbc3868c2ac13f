"""What was asked for lately stays in the cache, within its room (S14)."""

from __future__ import annotations

import os

from memfs.state.reader import DocumentProof, StateCache


def proof(sha256: str) -> DocumentProof:
    """What vouches for a document."""
    return DocumentProof((1, 1, 1, 1), 1, sha256)


def test_what_is_kept_comes_back_as_a_copy() -> None:
    """A kept document comes back equal, and changing it changes nothing that is kept (S14)."""
    cache = StateCache()
    assert cache.get("a") is None
    cache.keep("a", {"x": [1, 2.5, None, "ü"]}, proof("one"))
    kept = cache.get("a")
    assert kept is not None
    kept.values()["x"].append(3)
    assert (kept.values(), kept.proof) == ({"x": [1, 2.5, None, "ü"]}, proof("one"))
    cache.keep("a", {}, proof("other"))
    kept = cache.get("a")
    assert kept is not None
    assert (kept.values(), kept.proof) == ({}, proof("other"))
    cache.clear()
    assert cache.get("a") is None
    assert (cache.statistics()["documents"], cache.statistics()["bytes"]) == (0, 0)


def test_what_was_used_longest_ago_goes_first() -> None:
    """When room is short, what was asked for lately stays; the bytes stay bounded (S14)."""
    cache = StateCache(most_bytes=20_000)
    for name in "abcdefgh":
        cache.keep(name, {"x": "x" * 3000}, proof(name))
        cache.get("a")
    assert cache.statistics()["bytes"] <= 20_000
    assert [name for name in "abcdefgh" if cache.get(name)] == ["a", "e", "f", "g", "h"]


def test_what_is_too_large_is_not_kept() -> None:
    """One document never fills the cache (S14)."""
    cache = StateCache(most_bytes=20_000)
    cache.keep("large", {"x": "x" * 6000}, proof("large"))
    assert (cache.get("large"), cache.statistics()["bytes"]) == (None, 0)


def test_a_forked_child_can_use_it() -> None:
    """A lock that another thread held at the fork does not hold up the child."""
    cache = StateCache()
    cache.keep("a", {"b": 1}, proof("a"))
    with cache._guard:
        child = os.fork()
        if child == 0:
            os._exit(0 if cache.get("a") else 1)
    assert os.waitpid(child, 0)[1] == 0
