"""Taking: what has to be written for one record of an import, and why it may not be.

Owns the comparison with what is there: equal content needs nothing, other content is a conflict unless it is to be
replaced. It writes nothing.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace as changed
from typing import Any

from memfs.errors import Conflict, ContentError, ItemTooLarge, PathEscape, SchemaInvalid
from memfs.files import fields
from memfs.files.placing import sha256
from memfs.files.plain import plain, same
from memfs.files.secrets import allowed, refuse_file
from memfs.model.ids import check_id, stem_of
from memfs.model.item import MemoryItem
from memfs.model.statepaths import document_kind
from memfs.states.reading import StateReading
from memfs.states.record import Record
from memfs.states.transfer import ALL_TYPES
from memfs.store import Store
from memfs.store.documents import schema_of
from memfs.store.parts import CONTENT, Parts
from memfs.store.plan import Planned, Planner
from memfs.store.statefiles import Change, StateFiles

_REPLACE = "import with --replace to have it so, or take the record out"
_GIVEN_BY_PLACE = ("id", "type")


class DocumentTaking:
    """What becomes of state documents."""

    def __init__(self, files: StateFiles, reading: StateReading, parts: Parts) -> None:
        self._files = files
        self._reading = reading
        self._parts = parts

    def change(self, record: Record, replace: bool, *, check: bool) -> Change | None:
        """The change that stores a document; None where it is there with equal content.

        Args:
            check: whether to see if it is valid; who writes it finds out in any case.

        Raises:
            PathEscape: no document of that type lies there.
            ContentError: it is not valid.
            Conflict: it is there with other content, and is not to be replaced or cannot be.
        """
        kind = document_kind(record.path)
        if not kind or kind not in ALL_TYPES:
            hint = "see docs/format.md for where documents lie"
            raise PathEscape("no document that can be imported lies there", hint=hint)
        if record.type != kind:
            raise SchemaInvalid(f"a document of type {kind!r} lies there", field="type", hint=f"write {kind}")
        change = self._needed(record, replace)
        if change is not None and check:
            self._require_valid(record)
        return change

    def _needed(self, record: Record, replace: bool) -> Change | None:
        try:
            there = self._files.read(record.path)
        except FileNotFoundError:
            return self._new(record)
        except ContentError as error:
            raise Conflict(
                f"what is there cannot be read: {error.message}", hint="repair it first: 'memfs check' says how"
            ) from error
        if not there.problem and same(plain(there.values), plain(record.document)):
            return None
        if not replace:
            raise Conflict("it is there with other content", current=there.sha256, hint=_REPLACE)
        return Change(record.path, record.document, expected=there.sha256)

    def _new(self, record: Record) -> Change | None:
        row = self._reading.index.row(record.path)
        if row is None or not row.archive:
            return Change(record.path, record.document, expected="")
        if same(plain(self._reading.load(row)), plain(record.document)):
            return None
        raise Conflict(
            "it is archived with other content",
            hint=f"unpack it first: memfs archive unpack {record.iteration}",
        )

    def _require_valid(self, record: Record) -> None:
        """The checks of a write, without one."""
        try:
            data = self._parts.codec.write_document(record.document, record.path, schema_of(record.path))
        except ItemTooLarge:
            return  # it is checked when its large values have got files of their own
        refuse_file(data, record.path)


class ItemTaking:
    """What becomes of memories."""

    def __init__(self, store: Store, parts: Parts) -> None:
        self._store = store
        self._parts = parts
        self._planner = Planner(parts, store.following)

    def plans(self, record: Record, replace: bool) -> list[Planned]:
        """What stores a memory, nothing where it is there with equal content.

        Its file's text counts while it says the same as its fields: then it gets the very bytes it had. Otherwise the
        fields count, as somebody changed them.

        Raises:
            ContentError: it is not valid.
            Conflict: it is there with other content, and is not to be replaced.
        """
        item = self._item(record)
        data = self._text(record, item)
        existing = self._store.get(item.id)
        if existing is not None and (existing.sha256 == _digest(data) or _values(existing) == _values(item)):
            return []
        if existing is not None and not replace:
            raise Conflict(
                f"the memory {item.id!r} is there with other content", current=existing.sha256, hint=_REPLACE
            )
        if data is None or (existing is not None and existing.path != record.path):
            return self._planner.put(item, existing.sha256 if existing else "")
        return self._restored(record.path, data, item)

    def _item(self, record: Record) -> MemoryItem:
        """The item that the fields describe, read as the file it could be: one home for what a valid item is."""
        own = {key: value for key, value in record.document.items() if key not in _GIVEN_BY_PLACE}
        own = {key: value for key, value in own.items() if value not in (None, "", [], {})}
        kind = self._parts.kinds.get(str(record.document.get("type") or "semantic"))
        chosen = check_id(str(record.document.get("id") or stem_of(record.path)))
        place = f"{CONTENT}/{kind.folder}/{chosen}.json"
        data = json.dumps(own, ensure_ascii=False).encode("utf-8", "surrogatepass")
        item: MemoryItem = self._parts.codec.read(data, place, self._parts.clock())
        allowed(item)
        return item.replace(path="", sha256="")

    def _text(self, record: Record, item: MemoryItem) -> bytes | None:
        """The bytes to restore, None where the fields count."""
        kind = self._parts.kinds.at(record.path.removeprefix(f"{CONTENT}/"))
        if not record.text or kind is None or kind.name != item.type or stem_of(record.path) != item.id:
            return None
        data = record.text.encode()
        there = self._parts.codec.read(data, record.path, item.timestamp or self._parts.clock())
        return data if _values(there) == _values(item) else None

    def _restored(self, path: str, data: bytes, item: MemoryItem) -> list[Planned]:
        planned = self._store.plan_restore(path, data)
        if planned is None:
            return []
        reason = allowed(item)[1]
        return [changed(planned, item=item.replace(path=path, sha256=sha256(data)), vetted=False, reason=reason)]


def _values(item: MemoryItem) -> Mapping[str, Any]:
    """What is compared: all but when the file was last written, which a replacement changes."""
    return {"id": item.id, "type": item.type, **fields.values(item), "updated": None}


def _digest(data: bytes | None) -> str:
    return "" if data is None else sha256(data)
