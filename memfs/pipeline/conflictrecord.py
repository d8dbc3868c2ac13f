"""Conflict record: what a person decided about two items that contradict each other, as it stands in the items.

Owns the form of a decision in an item, and whether it still covers what the two say. Where contradictions are found,
and that both items are written together, is ``memfs.pipeline.conflicts``' business.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from memfs.model import MemoryItem
from memfs.model.conflicts import BOTH
from memfs.model.item import Link
from memfs.model.time import format_time
from memfs.pipeline.disputes import COMPATIBLE, CONTRADICTS, OVER, SUPERSEDED
from memfs.pipeline.wording import gist

KEY = "decided"
"""The key below ``metadata`` that holds, by the other item's id, what was decided about the two."""
REPLACED_BY = "superseded_by"
_DIGITS = 16
_OURS = frozenset({CONTRADICTS, COMPATIBLE, REPLACED_BY})


def texts(one: MemoryItem, other: MemoryItem) -> str:
    """A digest of what the two say, whichever is named first; the rest of them does not count."""
    parts = sorted(hashlib.sha256(gist(item).strip().encode()).hexdigest() for item in (one, other))
    return hashlib.sha256("".join(parts).encode()).hexdigest()[:_DIGITS]


def record_of(one: MemoryItem, other: MemoryItem) -> Mapping[str, Any] | None:
    """What was decided about the two, as either of them has it; None where nothing was."""
    for item, name in ((one, other.id), (other, one.id)):
        decided = item.metadata.get(KEY)
        if isinstance(decided, Mapping) and isinstance(found := decided.get(name), Mapping):
            return found
    return None


def covers(record: Mapping[str, Any] | None, one: MemoryItem, other: MemoryItem) -> bool:
    """Whether a decision says that both hold, of the texts that they have now."""
    return record is not None and record.get("kept") == BOTH and record.get("texts") == texts(one, other)


def decided_about(item: MemoryItem) -> Iterator[str]:
    """Ids of the items about which and this one something was decided."""
    decided = item.metadata.get(KEY)
    if isinstance(decided, Mapping):
        yield from (name for name in decided if isinstance(name, str))


def holds(item: MemoryItem, now: datetime) -> bool:
    """Whether an item counts at present: it was not replaced, and has not expired."""
    return item.status.strip() not in OVER and (item.expires is None or item.expires > now)


def both_kept(one: MemoryItem, other: MemoryItem, reason: str, now: datetime) -> tuple[MemoryItem, MemoryItem]:
    """The two as they are once somebody decided that both hold; neither replaces the other any more."""
    record = _record(BOTH, one, other, reason, now)
    return _compatible(one, other, record), _compatible(other, one, record)


def _compatible(item: MemoryItem, other: MemoryItem, record: Mapping[str, Any]) -> MemoryItem:
    replaced = item.status == SUPERSEDED and item.id in other.supersedes
    return _with(item, other, record).replace(
        links=_links(item, other, COMPATIBLE),
        supersedes=tuple(name for name in item.supersedes if name != other.id),
        status=_status_before(item, other) if replaced and not _by_third(item, other) else item.status,
    )


def _by_third(item: MemoryItem, other: MemoryItem) -> bool:
    """Whether a decision about another than these two replaced the item: that one stands."""
    return item.status == SUPERSEDED and any(
        link.relation == REPLACED_BY and link.to != other.id for link in item.links
    )


def one_kept(kept: MemoryItem, lost: MemoryItem, reason: str, now: datetime) -> tuple[MemoryItem, MemoryItem]:
    """The two as they are once somebody decided which one holds: that one, and the one it replaces."""
    record = _record(kept.id, kept, lost, reason, now)
    holding = _with(kept, lost, record).replace(
        links=_links(kept, lost),
        supersedes=tuple(dict.fromkeys((*kept.supersedes, lost.id))),
        status=_status_before(kept, lost) if kept.status.strip() in OVER and not _by_third(kept, lost) else kept.status,
    )
    was = _status_before(lost, kept) if lost.status == SUPERSEDED else lost.status
    replaced = _with(lost, kept, {**record, **({"was": was} if was else {})}).replace(
        links=_links(lost, kept, REPLACED_BY),
        supersedes=tuple(name for name in lost.supersedes if name != kept.id),
        status=SUPERSEDED,
    )
    return holding, replaced


def _status_before(item: MemoryItem, other: MemoryItem) -> str:
    """The status that an item had before a decision took it away: the one about the other, else one about a third."""
    decided = item.metadata.get(KEY)
    records = {**decided} if isinstance(decided, Mapping) else {}
    first = records.pop(other.id, None)
    found = (record.get("was") for record in (first, *records.values()) if isinstance(record, Mapping))
    return next((was for was in found if isinstance(was, str)), "")


def _record(kept: str, one: MemoryItem, other: MemoryItem, reason: str, now: datetime) -> dict[str, Any]:
    """What was decided; one that says the same as the one before keeps its time, and its reason without another."""
    said = texts(one, other)
    before = record_of(one, other) or {}
    if (before.get("kept"), before.get("texts")) == (kept, said):
        why, when = reason or before.get("reason", ""), before.get("when", "")
    else:
        why, when = reason, ""
    moment = when or format_time(now.replace(microsecond=0))
    return {"kept": kept, **({"reason": why} if why else {}), "texts": said, "when": moment}


def _with(item: MemoryItem, other: MemoryItem, record: Mapping[str, Any]) -> MemoryItem:
    before = item.metadata.get(KEY)
    decided = {**(before if isinstance(before, Mapping) else {}), other.id: dict(record)}
    return item.replace(metadata={**item.metadata, KEY: decided})


def _links(item: MemoryItem, other: MemoryItem, relation: str = "") -> tuple[Link, ...]:
    """The item's links with what a decision made of those to the other; links of other sorts stay."""
    kept = [link for link in item.links if link.to != other.id or link.relation not in _OURS]
    return (*kept, *((Link(to=other.id, relation=relation),) if relation else ()))
