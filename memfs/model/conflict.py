"""Conflicts as values: contradictions between items and clashing writes to state documents.

Each value names both sides and the decision, and is immutable.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from memfs.dataclass import dataclass
from memfs.model.item import MemoryItem, RecordedConflict
from memfs.model.shape import plain
from memfs.model.state_paths import iteration_of
from memfs.model.time import time_in

BOTH = "both"


@dataclass(frozen=True, slots=True, kw_only=True)
class Disagreement:
    """Two items that hold at present and cannot both be right.

    Attributes:
        one: the newer of the two.
        other: the older.
        reason: why they cannot both hold, in one sentence.
        linked: whether a link between them says so; else a scan found it.
        anew: whether it was decided before, and an edit since made them contradict again.
    """

    one: MemoryItem
    other: MemoryItem
    reason: str
    linked: bool = True
    anew: bool = False

    @property
    def ids(self) -> tuple[str, str]:
        """The ids of the two, the newer first."""
        return self.one.id, self.other.id

    @property
    def items(self) -> tuple[MemoryItem, MemoryItem]:
        """The two, the newer first."""
        return self.one, self.other


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What was decided about two items.

    Attributes:
        kept: the id of the item that holds, or ``both``.
        one, other: the items as they are stored now.
        changed: whether anything was written; false where it had been decided so already.
    """

    kept: str
    one: MemoryItem
    other: MemoryItem
    changed: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentClash:
    """Two writers' values of one field of a state document, of which one was overridden.

    Attributes:
        path: the record of it.
        document: the document.
        iteration: the one it belongs to; None where there is none.
        field: its dotted name.
        kept: the value in the document; None where the field is gone.
        lost: the overridden value; None where that writer had removed the field.
        by: who wrote last, "" where nobody is named.
        timestamp: when.
    """

    path: str
    document: str
    iteration: int | None
    field: str
    kept: Any
    lost: Any
    by: str = ""
    timestamp: datetime | None = None

    @property
    def conflict(self) -> RecordedConflict:
        """The two values, as an item would carry them."""
        return RecordedConflict(field=self.field, kept=self.kept, lost=self.lost)

    @classmethod
    def of(cls, path: str, values: Mapping[str, Any]) -> DocumentClash:
        """The clash that a record at this path is about, by the record's values."""
        return cls(
            path=path,
            document=str(values.get("document", "")),
            iteration=iteration_of(path),
            field=str(values.get("field", "")),
            kept=plain(values.get("kept")),
            lost=plain(values.get("lost")),
            by=str(values.get("by", "")),
            timestamp=time_in(values.get("timestamp")),
        )
