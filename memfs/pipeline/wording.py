"""Wording: which words of an item stand for it.

Owns the two answers: all that is shown of it, and what it says. What is done with the words, it does not know.
"""

from __future__ import annotations

from memfs.model import MemoryItem


def whole(item: MemoryItem) -> str:
    """What of an item is shown: its title and its content, a line each."""
    return "\n".join(filter(None, (item.title, item.content)))


def gist(item: MemoryItem) -> str:
    """What an item says: its content, or its title where it has no other words."""
    return item.content if item.content.strip() else item.title
