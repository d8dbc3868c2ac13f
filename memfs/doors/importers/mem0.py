"""Read what mem0's ``get_all`` answers, or an export of mem0 or OpenMemory.

The file holds a list of memories, by itself or below ``results`` or ``memories``, or one memory a line. What was
deleted in OpenMemory is left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from memfs.doors.importers.source_files import SourceContent, line_of, moment, name_of, records, tags_of
from memfs.errors import MemfsError
from memfs.model import Origin, Trust

NAME = "mem0"
_LISTS = ("results", "memories")
_TEXTS = ("memory", "text", "data", "content")
_SORTS = ("type", "category")
_SESSIONS = ("run_id", "session_id")
_ENDED = ("deleted", "archived", "paused")


def is_record(value: Any) -> bool:
    """Whether a first value in a file is of this format."""
    if isinstance(value, dict) and any(isinstance(value.get(key), list) for key in _LISTS):
        rows = next(value[key] for key in _LISTS if isinstance(value.get(key), list))
        return not rows or _is_memory(rows[0])
    if isinstance(value, list):
        return bool(value) and _is_memory(value[0])
    return _is_memory(value)


def _is_memory(value: Any) -> bool:
    if not isinstance(value, dict):
        return False
    exported = value.keys() >= {"id", "content", "state"}  # by OpenMemory
    return exported or ("memory" in value and ("id" in value or "user_id" in value or "hash" in value))


def read(text: str, name: str) -> SourceContent:
    """The memories of an export.

    Raises:
        ItemSyntaxError: it is no JSON at all.
    """
    taken = SourceContent(NAME, Trust.AGENT)
    seen: set[str] = set()
    for line, value in records(text, name):
        for number, row in enumerate(_rows(value), 1):
            where = f"{name}:{line}" if row is value else f"{name}#{number}"
            if isinstance(row, MemfsError):
                taken.skip(where, row.message)
            elif not isinstance(row, dict) or not _said(row):
                taken.skip(where, "no memory: it has no text")
            elif state := _ended(row):
                taken.skip(where, f"it is {state} there")
            else:
                _take(row, where, name, seen, taken)
    return taken


def _rows(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        lists = [value[key] for key in _LISTS if isinstance(value.get(key), list)]
        yield from (_named(row, value) for row in lists[0]) if lists else [value]
    elif isinstance(value, list):
        yield from value
    else:
        yield value


def _named(row: Any, export: dict[str, Any]) -> Any:
    """A memory with the names of its user and categories, which OpenMemory keeps beside the memories."""
    user, categories = export.get("user"), export.get("categories")
    if not isinstance(row, dict) or not isinstance(user, dict):
        return row
    rows = categories if isinstance(categories, list) else []
    names = {name_of(one.get("id")): line_of(one.get("name")) for one in rows if isinstance(one, dict)}
    ids = row.get("category_ids")
    known = [names.get(name_of(one), "") for one in ids] if isinstance(ids, list) else []
    return {**row, "user_id": user.get("user_id"), "categories": row.get("categories") or list(filter(None, known))}


def _ended(row: dict[str, Any]) -> str:
    """What was done to a memory that its store no longer gives: deleted, archived or paused; "" where it does."""
    state = line_of(row.get("state")) or ("deleted" if row.get("deleted_at") else "")
    return state if state in _ENDED else ""


def _said(row: dict[str, Any]) -> str:
    texts = (row.get(key) for key in _TEXTS)
    return next((text.strip() for text in texts if isinstance(text, str) and text.strip()), "")


def _take(row: dict[str, Any], where: str, name: str, seen: set[str], taken: SourceContent) -> None:
    said = _said(row)
    own = name_of(row.get("id"))
    key = own or f"{name_of(row.get('user_id'))}\n{said}"
    if key in seen:
        taken.skip(where, f"the id {own} stands there already" if own else "it stands there already")
        return
    seen.add(key)
    inner = row.get("metadata")
    metadata = dict(inner) if isinstance(inner, dict) else {}
    facts = {key: line_of(row.get(key)) for key in ("id", "hash", "created_at", "updated_at", "app_id")}
    taken.take(
        said,
        _kind(row, metadata),
        tags=tags_of(row.get("categories") or []),
        timestamp=moment(row.get("updated_at")) or moment(row.get("created_at")),
        expires=moment(row.get("expiration_date")),
        origin=_origin(row),
        metadata=metadata,
        where=where,
        key=key,
        name=f"{NAME} {own[:8]}" if own else said,  # of what has an id, the words may change
        facts={"file": name, **facts},
    )


def _kind(row: dict[str, Any], metadata: dict[str, Any]) -> str:
    stated = " ".join(
        [*tags_of(row.get("categories") or []), *(line_of(metadata.get(key)) for key in _SORTS)]
    ).casefold()
    if line_of(metadata.get("memory_type")) == "procedural_memory":
        return "procedural"
    return "preference" if "preference" in stated else "semantic"


def _origin(row: dict[str, Any]) -> Origin:
    session = next((name_of(row.get(key)) for key in _SESSIONS if row.get(key)), "")
    speaker = name_of(row.get("actor_id")) or name_of(row.get("user_id"))
    agent, role = name_of(row.get("agent_id")) or name_of(row.get("app")), name_of(row.get("role"))
    return Origin(speaker=speaker, agent=agent, role=role, session=session)
