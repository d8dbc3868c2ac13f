"""PatternDetector: seed 002's finder of patterns, which takes memories in whatever shape they come.

Owns the shapes it takes; what a pattern is, is ``memfs.pipeline.patterns``' business.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from memfs.errors import SchemaInvalid
from memfs.facades.drafts import draft
from memfs.model import MemoryItem
from memfs.pipeline import patterns
from memfs.pipeline.patterns import Pattern

Shape = MemoryItem | Mapping[str, Any] | str


def _drafts(memories: Iterable[Any]) -> Iterator[MemoryItem]:
    """Memories in whatever shape as items.

    Raises:
        SchemaInvalid: one of them is none, or one memory was given instead of several.
    """
    if isinstance(memories, (str, Mapping, MemoryItem)):
        what = f"expected several memories, got {ascii(memories)[:60]}"
        raise SchemaInvalid(what, field="memories", hint="write them in a list")
    return map(draft, memories)


class PatternDetector(patterns.PatternDetector):
    """Finds what memories have in common (M2): items, ``Memory`` values, texts, or mappings with ``content``.

    The arguments are ``threshold`` (3), ``similarity`` (0.5) and ``min_common_words`` (2).
    """

    def detect_pattern(self, memories: Iterable[Any]) -> Pattern | None:
        """The first pattern among these memories, None where there is none."""
        return super().detect_pattern(_drafts(memories))

    def detect_all(self, memories: Iterable[Any]) -> list[Pattern]:
        """Every pattern among these memories, the oldest first; each memory belongs to one at most."""
        return super().detect_all(_drafts(memories))

    def group_by_similarity(self, memories: Iterable[Any]) -> list[list[MemoryItem]]:
        """The memories that are similar to another, in groups."""
        return super().group_by_similarity(_drafts(memories))

    def are_similar(self, one: Any, other: Any) -> bool:
        """Whether two memories are of one type and share enough of their words."""
        return super().are_similar(draft(one), draft(other))

    def extract_pattern(self, group: Iterable[Any]) -> Pattern | None:
        """What a group has in common; None where too little or too few remain."""
        return super().extract_pattern(_drafts(group))
