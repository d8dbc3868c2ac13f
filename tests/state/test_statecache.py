"""What was asked for often stays in the cache, within its room (S14)."""

from __future__ import annotations

import os

import pytest

from memfs.state.reader import StateCache


def test_what_is_kept_comes_back_as_a_copy() -> None:
    """A kept value comes back equal, and changing it changes nothing that is kept."""
    cache = StateCache()
    assert cache.proof("a") is None
    cache.keep("a", {"x": [1, 2.5, None, "ü"]}, "proof")
    assert cache.proof("a") == "proof"
    cache.value("a")["x"].append(3)
    assert cache.value("a") == {"x": [1, 2.5, None, "ü"]}
    cache.keep("a", 1, "other")
    assert (cache.proof("a"), cache.value("a")) == ("other", 1)
    cache.clear()
    assert (cache.proof("a"), len(cache), cache.bytes) == (None, 0, 0)
    with pytest.raises(KeyError):
        cache.value("a")


def test_what_is_asked_for_least_goes_first() -> None:
    """When room is short, what was asked for often stays and what was asked for once goes; the bytes stay bounded."""
    cache = StateCache(most_bytes=20_000)
    for name in "abcdefgh":
        for _ in range(5 if name in "ab" else 1):
            cache.proof(name)
        cache.keep(name, "x" * 3000, name)
    assert cache.bytes <= 20_000
    assert cache.proof("a") == "a"
    assert cache.proof("b") == "b"
    assert cache.proof("h") == "h"
    assert cache.proof("c") is None


def test_old_uses_fade() -> None:
    """What was asked for often long ago does not stay for ever."""
    cache = StateCache(most_bytes=20_000)
    for _ in range(20):
        cache.proof("old")
    cache.keep("old", "x" * 3000, "old")
    for turn in range(8000):
        cache.proof(turn % 4)
    for name in range(8):
        cache.proof(f"new {name}")
        cache.proof(f"new {name}")
        cache.keep(f"new {name}", "x" * 3000, name)
    assert cache.proof("old") is None


def test_what_is_too_large_or_not_plain_is_not_kept() -> None:
    """One value never fills the cache, and only plain values are kept."""
    cache = StateCache(most_bytes=20_000)
    cache.keep("large", "x" * 6000, 1)
    cache.keep("odd", object(), 1)
    assert (cache.proof("large"), cache.proof("odd"), cache.bytes) == (None, None, 0)


def test_a_forked_child_can_use_it() -> None:
    """A lock that another thread held at the fork does not hold up the child."""
    cache = StateCache()
    cache.keep("a", 1, 1)
    with cache._guard:
        child = os.fork()
        if child == 0:
            os._exit(0 if cache.value("a") == 1 else 1)
    assert os.waitpid(child, 0)[1] == 0
