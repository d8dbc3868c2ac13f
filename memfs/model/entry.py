"""Entry: a value that a framework keeps under a namespace and a key.

Owns how an entry is an item: its id, its tags, what stands in its file. Values only; who keeps them, it does not know.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from memfs.model.ids import slug, suffix_of
from memfs.model.item import MemoryItem

ENTRY = "entry"
"""The kind of an item that is an entry."""
Namespace = tuple[str, ...]

_LONGEST_TITLE = 300
_LONGEST_TAG = 100
_DEEPEST_TAG = 32
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One value under its namespace and key.

    Attributes:
        value: what is kept; whoever gets an entry shares it with others.
        text: what of the value is searched, "" for nothing.
        created, updated: when it was first and last stored.
        ttl: it ends so many minutes after it was last stored or read; None: never.
        expires: when it ends, if it is not read before.
        undecided: what a merge left open in it, and the other values; "" for nothing.
    """

    namespace: Namespace
    key: str
    value: Mapping[str, Any] = field(hash=False)
    text: str = ""
    created: datetime = _EPOCH
    updated: datetime = _EPOCH
    ttl: float | None = None
    expires: datetime | None = None
    undecided: str = ""

    @property
    def id(self) -> str:
        """The id of its item."""
        return entry_id(self.namespace, self.key)

    def is_over(self, now: datetime) -> bool:
        """Whether its time has passed."""
        return self.expires is not None and self.expires <= now


def entry_id(namespace: Namespace, key: str) -> str:
    """The id of the entry with a key in a namespace: readable, and one for each, upper and lower case included."""
    said = json.dumps([*namespace, key]).encode()
    return f"{slug(' '.join([*namespace[-2:], key])) or 'entry'}-{suffix_of(said, 16)}"


def namespace_tag(namespace: Namespace) -> str:
    """The tag of all entries in a namespace or below it."""
    tag = "/".join(map(_label, namespace))
    if len(tag) <= _LONGEST_TAG:
        return tag
    digest = hashlib.sha256(tag.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return f"{tag[: _LONGEST_TAG - 17]}~{digest}"


def asked_tags(prefix: Namespace) -> frozenset[str]:
    """The tags by which the entries below a prefix are found."""
    return frozenset({namespace_tag(prefix[:_DEEPEST_TAG])}) if prefix else frozenset()


def item_of(entry: Entry, existing: MemoryItem | None = None) -> MemoryItem:
    """An entry as an item; of the one it replaces, what people gave that stays: importance, links, tags of theirs."""
    title = "/".join(map(_label, (*entry.namespace, entry.key)))[:_LONGEST_TITLE]
    known = existing or MemoryItem(title="-", memory_type=ENTRY)
    own = tuple(namespace_tag(entry.namespace[:depth]) for depth in range(1, len(entry.namespace) + 1)[:_DEEPEST_TAG])
    data: dict[str, Any] = {"namespace": list(entry.namespace), "key": entry.key, "value": entry.value}
    if entry.ttl is not None:
        data["ttl_minutes"] = entry.ttl
    return known.replace(
        id=entry.id,
        title=title.strip() or ENTRY,
        content=entry.text,
        tags=(*own, *(tag for tag in known.tags if tag not in own)),
        created=entry.created,
        timestamp=entry.updated,
        expires=entry.expires,
        data=data,
    )


def entry_of(item: MemoryItem) -> Entry | None:
    """The entry that an item is; None where it is none, or its file was given another namespace or key by hand."""
    data = item.data
    namespace, key, value, ttl = data.get("namespace"), data.get("key"), data.get("value"), data.get("ttl_minutes")
    if item.type != ENTRY or not isinstance(namespace, list) or not isinstance(key, str):
        return None
    if not isinstance(value, Mapping) or not all(isinstance(label, str) for label in namespace):
        return None
    timed = isinstance(ttl, int | float) and not isinstance(ttl, bool) and ttl > 0
    created = item.created or item.timestamp or _EPOCH
    found = Entry(
        namespace=tuple(namespace),
        key=key,
        value=value,
        text=item.content,
        created=created,
        updated=max(item.timestamp or created, created),
        ttl=float(ttl) if timed and ttl is not None else None,
        expires=item.expires,
    )
    return found if found.id == item.id else None


def readable(value: Mapping[str, Any]) -> str:
    """All that a value says, a line a leaf with its path; the text alone where it holds nothing else."""
    leaves = list(_leaves(value, ""))
    if len(leaves) == 1 and isinstance(leaves[0][1], str):
        return leaves[0][1]
    return "\n".join(f"{path}: {leaf}" for path, leaf in leaves)


def later(now: datetime, minutes: float) -> datetime:
    """A point in time so many minutes from now; the last there is where none is that late."""
    try:
        return now + timedelta(minutes=minutes)
    except OverflowError:
        return datetime.max.replace(tzinfo=UTC)


def _leaves(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        for key, part in value.items():
            yield from _leaves(part, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _leaves(part, path)
    elif value is not None and value != "":
        yield path, value


def _label(label: str) -> str:
    """A label as it stands between slashes, on one line."""
    if not any(sign in label for sign in "%/\r\n"):
        return label
    for sign in "%/\r\n":
        label = label.replace(sign, f"%{ord(sign):02X}")
    return label
