"""LangGraph's long-term memory, kept in a workspace: each value under its namespace and key is an item.

Operations behave as ``BaseStore`` promises. Threads and processes may share a store. What people added to an item stays
when its value is replaced.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import operator
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any

from langgraph.store.base import (
    BaseStore,
    GetOp,
    Item,
    ListNamespacesOp,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
    get_text_at_path,
    tokenize_path,
    validate_op_namespace,
)

from memfs.dataclass import dataclass, field, replace
from memfs.errors import Conflict, ContentError, IdExists, ItemNotFound, ItemTooLarge
from memfs.facades.open_workspaces import Closable, SignedFacade
from memfs.model import MemoryItem, Origin, Query, Trust
from memfs.model.ids import slug, suffix_of
from memfs.model.query import MOST
from memfs.model.time import EPOCH
from memfs.recall.conflict_notes import unresolved_note
from memfs.recall.review import relevances
from memfs.search.analyzer import terms
from memfs.store.access_log import not_handed_out
from memfs.store.reader import Extracts
from memfs.store.store import retry_on_conflict
from memfs.workspace import Workspace

Namespace = tuple[str, ...]


# -- one value ----------------------------------------------------------------------------------------------------
ENTRY = "entry"
"""The kind of an item that is an entry."""
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
    """The tags that find the entries below a prefix."""
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


# -- LangGraph's filters ------------------------------------------------------------------------------------------
def matches(value: Mapping[str, Any], wanted: Mapping[str, Any] | None) -> bool:
    """Whether a value has all that a filter names; ``user.name`` is the name in user, unless a key has that name.

    Raises:
        ValueError: the filter has an operator there is none of, or compares with what is no number.
    """
    return all(_agrees(_part(value, key), part) for key, part in (wanted or {}).items())


def _part(value: Mapping[str, Any], key: str) -> Any:
    """What a value has under a key or, as LangGraph's databases have it, a dotted path."""
    if key in value or "." not in key:
        return value.get(key)
    found: Any = value
    for name in key.split("."):
        found = found.get(name) if isinstance(found, Mapping) else None
    return found


def _agrees(found: Any, wanted: Any) -> bool:
    if isinstance(wanted, Mapping):
        if any(str(key).startswith("$") for key in wanted):
            return all(_holds(found, str(name), operand) for name, operand in wanted.items())
        return isinstance(found, Mapping) and all(_agrees(found.get(key), part) for key, part in wanted.items())
    if isinstance(wanted, list | tuple):
        if not isinstance(found, list | tuple) or len(found) != len(wanted):
            return False
        return all(map(_agrees, found, wanted))
    return bool(found == wanted)


_ORDERS: Mapping[str, Callable[[float, float], bool]] = {
    "$gt": operator.gt,
    "$gte": operator.ge,
    "$lt": operator.lt,
    "$lte": operator.le,
}


def _holds(found: Any, name: str, operand: Any) -> bool:
    if name == "$eq":
        return bool(found == operand)
    if name == "$ne":
        return bool(found != operand)
    if name not in _ORDERS:
        raise ValueError(f"Unsupported operator: {name}")
    bound = float(operand)
    try:
        return _ORDERS[name](float(found), bound)
    except (TypeError, ValueError):  # what is no number is neither more nor less than one
        return False


def is_like(namespace: Namespace, pattern: Sequence[str], kind: str) -> bool:
    """Whether a namespace begins (``prefix``) or ends (``suffix``) as a pattern says; ``*`` matches any label.

    Raises:
        ValueError: there is no such kind.
    """
    if kind not in ("prefix", "suffix"):
        raise ValueError(f"Unsupported match type: {kind}")
    if len(namespace) < len(pattern):
        return False
    part = namespace[: len(pattern)] if kind == "prefix" else namespace[len(namespace) - len(pattern) :]
    return all(wanted in ("*", label) for label, wanted in zip(part, pattern, strict=True))


# -- LangGraph's store --------------------------------------------------------------------------------------------
_SOURCE = "langgraph"
_LONGEST = 10_000
_ALL = "$"
_TRIES = 20
_TYPES = frozenset({ENTRY})
_PATIENCE = 2.0
"""How many seconds a search waits for the vectors of what was just stored: frameworks ask for it at once."""
UNDECIDED = "memfs:undecided"
"""The key of a value that holds what a merge left open in it; it is never stored."""
_MOST_TEXT = 100_000


class MemfsStore(Closable, BaseStore):
    """LangGraph's store over a workspace: each value is an item of kind ``entry``.

    Entries are durable on return of every write, versioned, and found by every other way of asking. ``search`` finds by
    meaning where the workspace has an embedder, else by words; what answers the query comes first, with a score, and
    the other entries that fit follow. Threads, tasks and processes may share a workspace.
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        fields: Sequence[str] = (_ALL,),
        agent: str = "",
        session: str = "",
        allow_secret: str = "",
        workspace: Workspace | None = None,
    ) -> None:
        """Choose the workspace, as every facade does.

        Args:
            path: a folder: the workspace there or above it, else one that is made there; None: the workspace at hand.
            fields: what of a value is searched unless ``put`` says otherwise, as LangGraph writes paths; ``$`` is all.
            agent, session: who writes, for the items' origin and the commits; without a name, the door's own.
            allow_secret: why what looks like a secret may stay; recorded in the items that need it.
            workspace: an open workspace to work in; it stays open.

        Raises:
            WorkspaceNotFound: none is there, and none can be made.
        """
        self._fields = tuple(fields)
        self._origin = Origin(agent=agent or _SOURCE, session=session)
        self._facade = SignedFacade(
            path, origin=self._origin, source=_SOURCE, allow_secret=allow_secret, workspace=workspace
        )

    # -- operations -----------------------------------------------------------------------------------------------
    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Carry out operations: what is read is as it was before all of them, then all writes happen or none.

        Raises:
            InvalidNamespaceError, ValueError: LangGraph's own refusals.
            ContentError: a value cannot be kept in a file, or holds what looks like a secret; a name that is too long.
                Nothing was changed.
            Conflict: others changed the same entries again and again; nothing was changed.
            StorageIO: nothing was changed.
        """
        asked = list(ops)
        for op in asked:
            validate_op_namespace(op)
        results = [self._read(op) for op in asked]
        changes = {(tuple(op.namespace), str(op.key)): self._entry(op) for op in asked if isinstance(op, PutOp)}
        for (namespace, key), fresh in changes.items():
            # names that are texts, before anything is made of them
            for part, size in (("namespace", len(namespace) + sum(map(len, namespace))), ("key", len(key))):
                if fresh is not None and size > _LONGEST:
                    hint = "put the text into the value"
                    message = f"has {size} characters, at most {_LONGEST} are allowed"
                    raise ItemTooLarge(message, field=part, hint=hint)

        def applied() -> None:
            """Where another process was quicker, what it wrote is replaced, knowingly."""
            planned = [
                self._planned(entry_id(*name), fresh, place) for place, (name, fresh) in enumerate(changes.items())
            ]
            present = [one for one in planned if not isinstance(one[0], str) or self._is_there(one[0])]
            self._facade.write(present, f"Store {len(present)} entries")

        if changes:
            retry_on_conflict(applied, tries=_TRIES, on=(Conflict, IdExists, ItemNotFound))
        return results

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """As ``batch``, on a thread."""
        return await asyncio.to_thread(self.batch, list(ops))

    def close(self) -> None:
        """End the session, which commits what waits for that, and the use of the workspace. May be repeated."""
        self._facade.finish()

    # -- reading --------------------------------------------------------------------------------------------------
    def _read(self, op: Op) -> Result:
        if isinstance(op, GetOp):
            item = self._facade.workspace.store.get(entry_id(tuple(op.namespace), str(op.key)))
            entry = None if item is None else entry_of(item)
            if entry is None or entry.is_over(self._facade.now()):
                return None
            self._facade.served([entry.id])
            return Item(**_facts(entry))
        if isinstance(op, SearchOp):
            return self._search(op)
        if isinstance(op, ListNamespacesOp):
            every, conditions = {entry.namespace for entry in self._below()}, op.match_conditions or ()
            fitting = {one for one in every if all(is_like(one, cond.path, cond.match_type) for cond in conditions)}
            if op.max_depth is not None:
                fitting = {one[: op.max_depth] for one in fitting}
            return sorted(fitting)[op.offset : op.offset + op.limit]
        if isinstance(op, PutOp):
            return None
        raise ValueError(f"Unknown operation type: {type(op)}")

    def _search(self, op: SearchOp) -> list[SearchItem]:
        """The entries below a prefix that fit: first what answers a question, the best first, each with how well it
        does, 0 to 1; then the others, or all where nothing is asked.
        """
        text, last = op.query or "", op.offset + op.limit
        found: dict[str, tuple[Entry, float | None]] = {}
        if text.strip():
            found |= {entry.id: (entry, score) for entry, score in self._asked(op, text, last)}
        if not found or len(found) < last or min(op.offset, op.limit) < 0:
            for entry in self._below(tuple(op.namespace_prefix)):
                if entry.id not in found and matches(entry.value, op.filter):
                    found[entry.id] = entry, None
        chosen = list(found.values())[op.offset : last]
        self._facade.served([entry.id for entry, _ in chosen], "recall", text)
        used = [entry.id for entry, score in chosen if score is not None]
        self._facade.workspace.usage.touch(used, self._facade.now())
        return [SearchItem(**_facts(entry), score=score) for entry, score in chosen]

    def _asked(self, op: SearchOp, text: str, count: int) -> list[tuple[Entry, float]]:
        """What answers a question, by meaning where the workspace has an embedder, else by words; an entry without text
        answers none.
        """
        now, words, prefix = self._facade.now(), set(terms(text)), tuple(op.namespace_prefix)
        workspace = self._facade.workspace
        meaning = workspace.meaning.current()
        if meaning is not None:
            meaning.embeddings.keep_up(_PATIENCE)

        def unfit(item: MemoryItem) -> bool:
            entry = entry_of(item)
            if entry is None or not entry.text or entry.is_over(now) or entry.namespace[: len(prefix)] != prefix:
                return True
            # recall looks into names and values, too: here only what was to be searched answers
            answers = meaning or words.intersection(terms(entry.text))
            return not (answers and matches(entry.value, op.filter))

        query = Query(text=text, types=_TYPES, tags=asked_tags(prefix), limit=min(max(count, 1), MOST))
        with not_handed_out():  # a page of them is, and what else fits
            hits = workspace.recaller.search(query, leave_out=unfit).hits
        return [
            (entry, score)
            for hit, score in zip(hits, relevances(hits), strict=True)
            if (entry := entry_of(hit.item)) is not None
            and (hit.reasons.get("meaning", 0.0) > 0 or words.intersection(terms(entry.text)))
        ]

    @cached_property
    def _extracts(self) -> Extracts[Entry | None]:
        return Extracts(self._facade.workspace.store, entry_of)

    def _below(self, prefix: Namespace = ()) -> list[Entry]:
        """The entries in a namespace and below it, those of one namespace together, in the order they were made."""
        if prefix:
            every = self._extracts.of(Query(types=_TYPES, tags=asked_tags(prefix)))
        else:
            every = self._extracts.every(self._facade.workspace.kinds.get(ENTRY))
        now = self._facade.now()
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

    # -- writing --------------------------------------------------------------------------------------------------
    def _entry(self, op: PutOp) -> Entry | None:
        """What is to be stored; None for what is to be removed."""
        given: object = op.value
        if given is None:
            return None
        if not isinstance(given, Mapping):
            raise ContentError(
                f"a value is a mapping, got {type(given).__name__}", field="value", hint='wrap it: {"value": ...}'
            )
        return Entry(
            namespace=tuple(op.namespace),
            key=str(op.key),
            value={key: part for key, part in given.items() if key != UNDECIDED},
            text="" if op.index is False else self._text(given, op.index),
        )

    def _text(self, value: Mapping[str, Any], paths: Sequence[str] | None) -> str:
        """What of a value is searched."""
        found: list[str] = []
        for path in self._fields if paths is None else paths:
            found += [readable(value)] if path == _ALL else get_text_at_path(dict(value), tokenize_path(path))
        return "\n".join(dict.fromkeys(filter(None, found)))[:_MOST_TEXT]

    def _planned(self, one: str, fresh: Entry | None, place: int) -> tuple[MemoryItem | str, str | None]:
        """The item to store with the digest of what it replaces, or the id to remove."""
        if fresh is None:
            return one, None
        now = self._facade.now() + timedelta(microseconds=place)  # the order within one batch stays
        try:
            existing = self._facade.workspace.store.get(one)
            expected = existing.sha256 if existing is not None else ""
        except ContentError:
            existing, expected = None, None  # a file that is invalid at present: history keeps its bytes
        known = None if existing is None else entry_of(existing)
        created = known.created if known is not None and not known.is_over(now) else now
        item = item_of(replace(fresh, created=created, updated=now), existing)
        return item.replace(origin=self._origin, trust=Trust.AGENT.value), expected

    def _is_there(self, item_id: str) -> bool:
        """Whether a file holds the id, written by whatever process."""
        store = self._facade.workspace.store
        if not store.locate(item_id):
            store.follow()
        return bool(store.locate(item_id))


def _facts(entry: Entry) -> dict[str, Any]:
    return {
        "namespace": entry.namespace,
        "key": entry.key,
        "value": deepcopy(dict(entry.value)) | ({UNDECIDED: entry.undecided} if entry.undecided else {}),
        "created_at": entry.created,
        "updated_at": entry.updated,
    }
