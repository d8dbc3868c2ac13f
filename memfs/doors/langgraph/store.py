"""LangGraph's long-term memory, kept in a workspace.

Operations behave as ``BaseStore`` promises. Threads and processes may share a store.
"""

from __future__ import annotations

import asyncio
import operator
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import deepcopy
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

from memfs.errors import ContentError
from memfs.facades.entries import Entries, Entry, EntryChange, EntryHit, readable
from memfs.facades.open_workspaces import Closable
from memfs.model import Origin
from memfs.workspace import Workspace

Namespace = tuple[str, ...]


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


_SOURCE = "langgraph"
_ALL = "$"
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
        origin = Origin(agent=agent or _SOURCE, session=session)
        self._entries = Entries(path, origin=origin, source=_SOURCE, allow_secret=allow_secret, workspace=workspace)

    # -- operations -----------------------------------------------------------------------------------------------
    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Carry out operations: what is read is as it was before all of them, then all writes happen or none.

        Raises:
            InvalidNamespaceError, ValueError: LangGraph's own refusals.
            ContentError: a value cannot be kept in a file, or holds what looks like a secret; nothing was changed.
            Conflict, StorageIO: nothing was changed.
        """
        asked = list(ops)
        for op in asked:
            validate_op_namespace(op)
        results = [self._read(op) for op in asked]
        changes = [self._change(op) for op in asked if isinstance(op, PutOp)]
        if changes:
            self._entries.apply(changes)
        return results

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """As ``batch``, on a thread."""
        return await asyncio.to_thread(self.batch, list(ops))

    def close(self) -> None:
        """End the session, which commits what waits for that, and the use of the workspace. May be repeated."""
        self._entries.finish()

    # -- inside ---------------------------------------------------------------------------------------------------
    def _read(self, op: Op) -> Result:
        if isinstance(op, GetOp):
            entry = self._entries.get(tuple(op.namespace), str(op.key))
            return None if entry is None else Item(**_facts(entry))
        if isinstance(op, SearchOp):
            return self._search(op)
        if isinstance(op, ListNamespacesOp):
            return self._namespaces(op)
        if isinstance(op, PutOp):
            return None
        raise ValueError(f"Unknown operation type: {type(op)}")

    def _search(self, op: SearchOp) -> list[SearchItem]:
        found: list[EntryHit] = self._entries.search(
            tuple(op.namespace_prefix),
            lambda entry: matches(entry.value, op.filter),
            op.query or "",
            op.limit,
            op.offset,
        )
        return [SearchItem(**_facts(answer.entry), score=answer.score) for answer in found]

    def _namespaces(self, op: ListNamespacesOp) -> list[tuple[str, ...]]:
        every = {entry.namespace for entry in self._entries.below()}
        conditions = op.match_conditions or ()
        fitting = {one for one in every if all(is_like(one, cond.path, cond.match_type) for cond in conditions)}
        if op.max_depth is not None:
            fitting = {one[: op.max_depth] for one in fitting}
        return sorted(fitting)[op.offset : op.offset + op.limit]

    def _change(self, op: PutOp) -> EntryChange:
        given: object = op.value
        if given is not None and not isinstance(given, Mapping):
            raise ContentError(
                f"a value is a mapping, got {type(given).__name__}", field="value", hint='wrap it: {"value": ...}'
            )
        return EntryChange(
            namespace=tuple(op.namespace),
            key=str(op.key),
            value=None if op.value is None else {key: part for key, part in op.value.items() if key != UNDECIDED},
            text="" if op.value is None or op.index is False else self._text(op.value, op.index),
        )

    def _text(self, value: Mapping[str, Any], paths: Sequence[str] | None) -> str:
        """What of a value is searched."""
        found: list[str] = []
        for path in self._fields if paths is None else paths:
            found += [readable(value)] if path == _ALL else get_text_at_path(dict(value), tokenize_path(path))
        return "\n".join(dict.fromkeys(filter(None, found)))[:_MOST_TEXT]


def _facts(entry: Entry) -> dict[str, Any]:
    return {
        "namespace": entry.namespace,
        "key": entry.key,
        "value": deepcopy(dict(entry.value)) | ({UNDECIDED: entry.undecided} if entry.undecided else {}),
        "created_at": entry.created,
        "updated_at": entry.updated,
    }
