"""Values that a framework keeps under namespaces and keys, each as an item.

Storing and finding them is safe from several threads and processes. What people added to an item stays when its value
is replaced.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any

from memfs.dataclass import dataclass, field
from memfs.errors import Conflict, ContentError, IdExists, ItemNotFound, ItemTooLarge
from memfs.facades.open_workspaces import SignedFacade
from memfs.model import MemoryItem, Query, Trust
from memfs.model.ids import slug, suffix_of
from memfs.model.query import MOST
from memfs.model.time import EPOCH
from memfs.recall.conflict_notes import unresolved_note
from memfs.recall.review import relevances
from memfs.search.analyzer import terms
from memfs.store.access_log import not_handed_out
from memfs.store.reader import Extracts
from memfs.store.store import retry_on_conflict

ENTRY = "entry"
"""The kind of an item that is an entry."""
Namespace = tuple[str, ...]

_LONGEST_TITLE = 300
_LONGEST_TAG = 100
_DEEPEST_TAG = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One value under its namespace and key.

    Attributes:
        value: what is kept; the readers of an entry share it.
        text: what of the value is searched, "" for nothing.
        created, updated: when it was first and last stored.
        expires: when it ends, where somebody wrote that into its file.
        undecided: what a merge left open in it, and the other values; "" for nothing.
    """

    namespace: Namespace
    key: str
    value: Mapping[str, Any] = field(hash=False)
    text: str = ""
    created: datetime = EPOCH
    updated: datetime = EPOCH
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
    path = json.dumps([*namespace, key]).encode()
    return f"{slug(' '.join([*namespace[-2:], key])) or 'entry'}-{suffix_of(path, 16)}"


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
    """An entry as an item; of the one it replaces, what people gave that stays: importance, links, tags of theirs,
    and when it expires, where that is not over.
    """
    title = "/".join(map(_label, (*entry.namespace, entry.key)))[:_LONGEST_TITLE]
    known = existing or MemoryItem(title="-", memory_type=ENTRY)
    own = tuple(namespace_tag(entry.namespace[:depth]) for depth in range(1, len(entry.namespace) + 1)[:_DEEPEST_TAG])
    return known.replace(
        id=entry.id,
        title=title.strip() or ENTRY,
        content=entry.text,
        tags=(*own, *(tag for tag in known.tags if tag not in own)),
        created=entry.created,
        timestamp=entry.updated,
        expires=known.expires if known.expires and known.expires > entry.updated else None,
        data={"namespace": list(entry.namespace), "key": entry.key, "value": entry.value},
    )


def entry_of(item: MemoryItem) -> Entry | None:
    """The entry that an item is, with what a merge left open in it; None where it is none, or its file was given
    another namespace or key by hand.
    """
    namespace, key, value = (item.data.get(name) for name in ("namespace", "key", "value"))
    if item.type != ENTRY or not isinstance(namespace, list) or not isinstance(key, str):
        return None
    if not isinstance(value, Mapping) or not all(isinstance(label, str) for label in namespace):
        return None
    created = item.created or item.timestamp or EPOCH
    found = Entry(
        namespace=tuple(namespace),
        key=key,
        value=value,
        text=item.content,
        created=created,
        updated=max(item.timestamp or created, created),
        expires=item.expires,
        undecided=unresolved_note(item) if item.conflicts else "",
    )
    return found if found.id == item.id else None


def readable(value: Mapping[str, Any]) -> str:
    """All that a value says, a line a leaf with its path; the text alone where it holds nothing else."""
    leaves = list(_leaves(value, ""))
    if len(leaves) == 1 and isinstance(leaves[0][1], str):
        return leaves[0][1]
    return "\n".join(f"{path}: {leaf}" for path, leaf in leaves)


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
    """A label as it is written between slashes, on one line."""
    if not any(sign in label for sign in "%/\r\n"):
        return label
    for sign in "%/\r\n":
        label = label.replace(sign, f"%{ord(sign):02X}")
    return label


_TRIES = 20
_TYPES = frozenset({ENTRY})
_LONGEST = 10_000
_PATIENCE = 2.0
"""How many seconds a search waits for the vectors of what was just stored: frameworks ask for it at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryChange:
    """What is to become of one entry: a value, or None to remove it."""

    namespace: Namespace
    key: str
    value: dict[str, Any] | None = None
    text: str = ""


@dataclass(frozen=True, slots=True)
class EntryHit:
    """An entry that was found, and how well it answers, 0 to 1; None where it does not, or nothing was asked."""

    entry: Entry
    score: float | None = None


class Entries(SignedFacade):
    """The entries of one workspace. Threads and processes may share them."""

    # -- reading --------------------------------------------------------------------------------------------------
    def get(self, namespace: Namespace, key: str) -> Entry | None:
        """The entry with a key; None where there is none, or its time has passed.

        Raises:
            ContentError: its file is invalid at present.
        """
        item = self.workspace.store.get(entry_id(namespace, key))
        entry = None if item is None else entry_of(item)
        if entry is None or entry.is_over(self._now()):
            return None
        self._served([entry.id])
        return entry

    def below(self, prefix: Namespace = ()) -> list[Entry]:
        """The entries in a namespace and below it, those of one namespace together, in the order they were made."""
        every = self._every() if not prefix else self._extracts.of(Query(types=_TYPES, tags=asked_tags(prefix)))
        now = self._now()
        first: dict[Namespace, int] = {}
        found = [
            entry
            for entry in every
            if entry is not None and entry.namespace[: len(prefix)] == prefix and not entry.is_over(now)
        ]
        found.sort(key=lambda entry: (entry.created, entry.key))
        for entry in found:
            first.setdefault(entry.namespace, len(first))
        return sorted(found, key=lambda entry: first[entry.namespace])

    def search(
        self, prefix: Namespace, fits: Callable[[Entry], bool], text: str = "", limit: int = 10, offset: int = 0
    ) -> list[EntryHit]:
        """The entries below a prefix that fit: first what answers a question, the best first, then the others.

        By meaning where the workspace has an embedder, else by words. An entry without text answers no question.

        Args:
            limit, offset: which of them, as a slice has it.
        """
        found: dict[tuple[Namespace, str], EntryHit] = {}
        if text.strip():
            asked = self._asked(prefix, fits, text, offset + limit)
            found = {(answer.entry.namespace, answer.entry.key): answer for answer in asked}
        if not found or len(found) < offset + limit or min(offset, limit) < 0:
            for entry in self.below(prefix):
                if (entry.namespace, entry.key) not in found and fits(entry):
                    found[entry.namespace, entry.key] = EntryHit(entry)
        chosen = list(found.values())[offset : offset + limit]
        self._served([answer.entry.id for answer in chosen], "recall", text)
        self.workspace.usage.touch([one.entry.id for one in chosen if one.score is not None], self._now())
        return chosen

    def _asked(self, prefix: Namespace, fits: Callable[[Entry], bool], text: str, count: int) -> list[EntryHit]:
        now, words = self._now(), set(terms(text))
        meaning = self.workspace.meaning.current()
        if meaning is not None:
            meaning.embeddings.keep_up(_PATIENCE)

        def unfit(item: MemoryItem) -> bool:
            entry = entry_of(item)
            if entry is None or not entry.text or entry.is_over(now) or entry.namespace[: len(prefix)] != prefix:
                return True
            # recall looks into names and values, too: here only what was to be searched answers
            return not (meaning or words.intersection(terms(entry.text))) or not fits(entry)

        query = Query(text=text, types=_TYPES, tags=asked_tags(prefix), limit=min(max(count, 1), MOST))
        with not_handed_out():  # a page of them is, and what else fits
            hits = self.workspace.recaller.search(query, leave_out=unfit).hits
        return [
            EntryHit(entry, score)
            for hit, score in zip(hits, relevances(hits), strict=True)
            if (entry := entry_of(hit.item)) is not None
            and (hit.reasons.get("meaning", 0.0) > 0 or words.intersection(terms(entry.text)))
        ]

    # -- changing -------------------------------------------------------------------------------------------------
    def apply(self, changes: Sequence[EntryChange]) -> None:
        """Store and remove entries, all or nothing, durable on return; of several changes of one, the last counts.

        Raises:
            ContentError: a value cannot be kept in a file, or holds what looks like a secret; a name that is too long.
                Nothing was changed.
            Conflict: others changed the same entries again and again; nothing was changed.
            StorageIO: nothing was changed.
        """
        for change in changes:
            if change.value is not None:
                _refuse_long(change.namespace, change.key)
        last = list({(change.namespace, change.key): change for change in changes}.values())

        def applied() -> None:
            """Where another process was quicker, what it wrote is replaced, knowingly."""
            planned = [self._planned(change, place) for place, change in enumerate(last)]
            present = [one for one in planned if not isinstance(one[0], str) or self._is_there(one[0])]
            self._write(present, f"Store {len(present)} entries")

        retry_on_conflict(applied, tries=_TRIES, on=(Conflict, IdExists, ItemNotFound))

    # -- inside ---------------------------------------------------------------------------------------------------
    @cached_property
    def _extracts(self) -> Extracts[Entry | None]:
        return Extracts(self.workspace.store, entry_of)

    def _every(self) -> list[Entry | None]:
        return self._extracts.every(self.workspace.kinds.get(ENTRY))

    def _planned(self, change: EntryChange, place: int) -> tuple[MemoryItem | str, str | None]:
        """The item to store with the digest of what it replaces, or the id to remove."""
        now = self._now() + timedelta(microseconds=place)  # the order within one batch stays
        one = entry_id(change.namespace, change.key)
        if change.value is None:
            return one, None
        try:
            existing = self.workspace.store.get(one)
            expected = existing.sha256 if existing is not None else ""
        except ContentError:
            existing, expected = None, None  # a file that is invalid at present: history keeps its bytes
        known = None if existing is None else entry_of(existing)
        fresh = Entry(
            namespace=change.namespace,
            key=change.key,
            value=change.value,
            text=change.text,
            created=known.created if known is not None and not known.is_over(now) else now,
            updated=now,
        )
        return item_of(fresh, existing).replace(origin=self._origin, trust=Trust.AGENT.value), expected

    def _is_there(self, item_id: str) -> bool:
        """Whether a file holds the id, written by whatever process."""
        store = self.workspace.store
        if not store.locate(item_id):
            store.follow()
        return bool(store.locate(item_id))


def _refuse_long(namespace: Namespace, key: str) -> None:
    """Refuse names that are texts, before anything is made of them."""
    for part, size in (("namespace", len(namespace) + sum(map(len, namespace))), ("key", len(key))):
        if size > _LONGEST:
            raise ItemTooLarge(
                f"has {size} characters, at most {_LONGEST} are allowed", field=part, hint="put the text into the value"
            )
