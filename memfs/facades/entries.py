"""Entries: values that a framework keeps under namespaces and keys (B5).

Owns what storing, finding, refreshing and ending such a value means in the workspace. Which framework asks, and in
which words, doors decide.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cached_property
from math import isfinite
from typing import Any

from memfs.errors import Conflict, ContentError, IdExists, ItemNotFound, ItemTooLarge, LockTimeout, StorageIO
from memfs.facades.opening import Facade
from memfs.index.analyzer import terms
from memfs.model import MemoryItem, Origin, Query, Trust
from memfs.model.entry import ENTRY, Entry, Namespace, asked_tags, entry_id, item_of, later
from memfs.model.entry import entry_of as plain_entry
from memfs.model.query import MOST
from memfs.pipeline.relevance import relevances
from memfs.pipeline.undecided import told
from memfs.served.recipient import not_handed_out, served_to
from memfs.store.catalogue import Catalogue
from memfs.store.signing import signed_by
from memfs.workspace import Workspace

_TRIES = 20
_TYPES = frozenset({ENTRY})
_SLACK = 0.1
"""How much later than asked an entry may end: else each read of it would write its file."""
_LONGEST = 10_000
_PATIENCE = 2.0
"""How many seconds a search waits for the vectors of what was just stored: frameworks ask for it at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What is to become of one entry: a value, or None to remove it."""

    namespace: Namespace
    key: str
    value: dict[str, Any] | None = None
    text: str = ""
    ttl: float | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """An entry that was found, and how well it answers, 0 to 1; None where it does not, or nothing was asked."""

    entry: Entry
    score: float | None = None


class Entries(Facade):
    """The entries of one workspace. Threads and processes may share them."""

    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        origin: Origin | None = None,
        source: str = "entries",
        allow_secret: str = "",
        workspace: Workspace | None = None,
    ) -> None:
        """Choose the workspace, as every facade does.

        Args:
            origin: who writes, for the items' origin and the commits.
            source: which door it is, for the commits.
            allow_secret: why what looks like a secret may stay; recorded in the items that need it.

        Raises:
            WorkspaceNotFound: see ``path``.
        """
        super().__init__(path, workspace=workspace)
        self._origin = origin or Origin()
        self._source = source
        self._allow_secret = allow_secret

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
        self._served("read", [entry])
        return entry

    def _served(self, way: str, entries: Iterable[Entry], question: str = "") -> None:
        """Note which entries were handed out."""
        with served_to(self._source, self._origin.agent, self._origin.session):
            ids = [entry.id for entry in entries]
            self.workspace.usage.served.note(way, ids, self.workspace.parts.clock(), question=question)

    def below(self, prefix: Namespace = ()) -> list[Entry]:
        """The entries in a namespace and below it, those of one namespace together, in the order they were made."""
        every = self._every() if not prefix else self._catalogue.of(Query(types=_TYPES, tags=asked_tags(prefix)))
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
    ) -> list[Answer]:
        """The entries below a prefix that fit: first what answers a question, the best first, then the others.

        By meaning where the workspace has an embedder, else by words. An entry without text answers no question.

        Args:
            limit, offset: which of them, as a slice has it.
        """
        found: dict[tuple[Namespace, str], Answer] = {}
        if text.strip():
            asked = self._asked(prefix, fits, text, offset + limit)
            found = {(answer.entry.namespace, answer.entry.key): answer for answer in asked}
        if not found or len(found) < offset + limit or min(offset, limit) < 0:
            for entry in self.below(prefix):
                if (entry.namespace, entry.key) not in found and fits(entry):
                    found[entry.namespace, entry.key] = Answer(entry)
        chosen = list(found.values())[offset : offset + limit]
        self._served("recall", [answer.entry for answer in chosen], text)
        return chosen

    def _asked(self, prefix: Namespace, fits: Callable[[Entry], bool], text: str, count: int) -> list[Answer]:
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
            hits = self.workspace.recall.search(query, leave_out=unfit).hits
        return [
            Answer(entry, score)
            for hit, score in zip(hits, relevances(hits), strict=True)
            if (entry := entry_of(hit.item)) is not None
            and (hit.reasons.get("meaning", 0.0) > 0 or words.intersection(terms(entry.text)))
        ]

    # -- changing -------------------------------------------------------------------------------------------------
    def apply(self, changes: Sequence[Change]) -> None:
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
        for _ in range(_TRIES):
            try:
                self._write([self._planned(change, place) for place, change in enumerate(last)])
                return
            except (Conflict, IdExists, ItemNotFound):
                continue  # another process was quicker: what it wrote is replaced, knowingly
        raise Conflict("the entries keep changing", hint="try again")

    def refresh(self, entries: Iterable[Entry]) -> None:
        """Let entries live on that were read: each ends its time to live from now, or a tenth of that later.

        What others do to them meanwhile wins; a disk that takes no writes costs the refreshing, never the reading.
        """
        now = self._now()
        due = []
        for entry in entries:
            if entry.ttl is None or (entry.expires is not None and entry.expires >= later(now, entry.ttl)):
                continue
            item = self.workspace.store.get(entry.id)
            if item is not None:
                due.append((item.replace(expires=later(now, entry.ttl * (1 + _SLACK))), item.sha256))
        try:
            self._write(due)
        except (Conflict, IdExists, ItemNotFound):
            return
        except (StorageIO, LockTimeout) as error:
            self.workspace.store.note_failure(error)

    def sweep(self) -> int:
        """Remove the entries whose time has passed, in one commit; returns how many those were.

        Raises:
            StorageIO: nothing was removed.
        """
        now = self._now()
        over = [entry.id for entry in self._every() if entry is not None and entry.is_over(now)]
        try:
            self._write([(one, None) for one in over], message=f"Remove {len(over)} entries whose time has passed")
        except (Conflict, ItemNotFound):
            return 0  # somebody else is at it
        return len(over)

    # -- inside ---------------------------------------------------------------------------------------------------
    @cached_property
    def _catalogue(self) -> Catalogue[Entry | None]:
        return Catalogue(self.workspace.store, self.workspace.parts.index, entry_of)

    def _every(self) -> list[Entry | None]:
        return self._catalogue.every(self.workspace.kinds.get(ENTRY))

    def _now(self) -> Any:
        return self.workspace.parts.clock()

    def _planned(self, change: Change, place: int) -> tuple[MemoryItem | str, str | None]:
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
        timed = change.ttl is not None and isfinite(change.ttl)
        fresh = Entry(
            namespace=change.namespace,
            key=change.key,
            value=change.value,
            text=change.text,
            created=known.created if known is not None and not known.is_over(now) else now,
            updated=now,
            ttl=change.ttl if timed else None,
            expires=later(now, change.ttl) if timed and change.ttl is not None else None,
        )
        return item_of(fresh, existing).replace(origin=self._origin, trust=Trust.AGENT.value), expected

    def _write(self, planned: Sequence[tuple[MemoryItem | str, str | None]], message: str = "") -> None:
        store = self.workspace.store
        present = [one for one in planned if not isinstance(one[0], str) or self._is_there(one[0])]
        with signed_by(self._origin):
            if len(present) == 1:
                item, expected = present[0]
                if isinstance(item, str):
                    store.delete(item, source=self._source)
                else:
                    store.put(item, expected, source=self._source, allow_secret=self._allow_secret)
            elif present:
                with store.batch(message or f"Store {len(present)} entries", source=self._source) as batch:
                    for item, expected in present:
                        if isinstance(item, str):
                            batch.delete(item)
                        else:
                            batch.put(item, expected, allow_secret=self._allow_secret)

    def _is_there(self, item_id: str) -> bool:
        """Whether a file holds the id, written by whatever process."""
        store = self.workspace.store
        if not store.locate(item_id):
            store.follow()
        return bool(store.locate(item_id))


def entry_of(item: MemoryItem) -> Entry | None:
    """The entry that an item is, with what a merge left open in it; None where it is none."""
    entry = plain_entry(item)
    return replace(entry, undecided=told(item)) if entry is not None and item.conflicts else entry


def _refuse_long(namespace: Namespace, key: str) -> None:
    """Refuse names that are texts, before anything is made of them."""
    for field, size in (("namespace", len(namespace) + sum(map(len, namespace))), ("key", len(key))):
        if size > _LONGEST:
            raise ItemTooLarge(
                f"has {size} characters, at most {_LONGEST} are allowed",
                field=field,
                hint="put the text into the value",
            )
