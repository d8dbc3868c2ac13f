"""Kept aside: conflicts of documents that have no place for a record in the tree, brought before a person (B3).

Owns which of them still wait in this clone, and what becomes of the document with a decision. Documents of an iteration
have records beside them (``memfs.states.clashes``), items carry theirs (``decisions``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from memfs.errors import ContentError, ItemNotFound, NotRegularFile, PathEscape, QueryInvalid, SchemaInvalid
from memfs.files.merge.forms import Form, form_of
from memfs.files.merge.recorded import DELETED, replaced_at, value_at
from memfs.files.merge.values import equal
from memfs.files.placing import sha256
from memfs.model.conflicts import DocumentClash
from memfs.model.item import RecordedConflict
from memfs.model.shape import plain
from memfs.model.time import time_in
from memfs.store import Store
from memfs.store.naming import path_of
from memfs.store.parts import READ_LIMIT, Parts
from memfs.teams.decisions import Decided, Ruling
from memfs.upkeep.mergespool import MergeSpool, Record, can_be_recorded, digest


class KeptAside:
    """Finds and settles such conflicts in one clone. May be used from several threads."""

    def __init__(self, store: Store, parts: Parts) -> None:
        self._store = store
        self._parts = parts
        self._spool = MergeSpool(parts.repository.state)

    def waiting(self) -> tuple[DocumentClash, ...]:
        """What waits, by document; while a merge goes on nothing does, as nobody knows its outcome yet."""
        kept = self._kept()
        if not kept or self._parts.repository.busy():
            return ()
        return tuple(_clash(one["record"]) for _, one in self._standing(kept))

    def decide(self, reference: str, ruling: Ruling, *, source: str, dry_run: bool) -> Decided | None:
        """Settle what waits for a document, or for one field of it.

        Args:
            reference: the document's path.

        Returns:
            What was settled; None where nothing is kept of such a document.

        Raises:
            ItemNotFound: it has no such conflict.
            QueryInvalid: several values gave way to one, and none of them is chosen; or a version did, which only
                history has.
            Conflict, ContentError, StorageIO: nothing was written.
        """
        path = path_of(reference)
        mine = {name: one for name, one in self._kept().items() if one["record"]["document"] == path}
        if not mine:
            return None
        standing = [(name, one["record"]) for name, one in self._standing(mine)]
        chosen = [(name, one) for name, one in standing if ruling.field in (None, one["field"])]
        chosen = chosen[ruling.number - 1 : ruling.number] if ruling.number else chosen
        if not chosen:
            raise ItemNotFound(f"no such conflict is kept of {path}", hint="'memfs resolve' lists what waits")
        records = [record for _, record in chosen]
        if ruling.take and len({record["field"] for record in records}) < len(records):
            hint = f"choose as 'memfs resolve' lists them: 'memfs resolve {path} --take --number 1', or 2, ..."
            raise QueryInvalid("more than one value gave way", path=path, hint=hint)
        if not dry_run:
            if ruling.take:
                self._write(path, records, source)
            fields = {record["field"] for record in records}
            for name, one in standing:  # once a field has another value, its other records speak of none
                if (name, one) in chosen or (ruling.take and one["field"] in fields):
                    self._spool.drop(name)
        settled = tuple(
            RecordedConflict(field=one["field"], kept=one.get("kept"), lost=one.get("lost")) for one in records
        )
        removed = ruling.take and any(not one["field"] for one in records)
        return Decided(id=path, path=path, settled=settled, removed=removed)

    # -- internal -----------------------------------------------------------------------------------------------
    def _kept(self) -> dict[str, Mapping[str, Any]]:
        """By name, in an order that stays: by document, field and value."""
        found = self._spool.kept().items()
        ours = {name: one for name, one in found if not can_be_recorded(one["record"]["document"])}
        return dict(
            sorted(ours.items(), key=lambda pair: (pair[1]["record"]["document"], pair[1]["record"]["field"], pair[0]))
        )

    def _standing(self, kept: Mapping[str, Mapping[str, Any]]) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """Those that wait: not where the document has another value by now, or is what it was before the merge."""
        for name, one in kept.items():
            try:
                data = self._parts.seen.read(one["record"]["document"], READ_LIMIT).data
                stands = digest(data) not in one["given_up"] and self._stands(one["record"], data)
            except (ContentError, FileNotFoundError, NotRegularFile, PathEscape):
                # Markers stand in it, a slip, or something else in its place: nobody can tell.
                continue
            if stands:  # else it may stand again: on another branch, or in an older state
                yield name, one

    def _stands(self, record: Record, data: bytes) -> bool:
        values: dict[str, Any] = plain(self._form(record["document"]).read(data).mapping)
        return not record["field"] or equal(value_at(values, record["field"]), record.get("kept"))

    def _form(self, path: str) -> Form:
        form = form_of(path, self._parts.codec)
        assert form is not None  # nothing else is kept aside
        return form

    def _write(self, path: str, records: list[Record], source: str) -> None:
        data = self._parts.tree.read(path, READ_LIMIT).data
        plan = self._store.plan_restore(path, self._with_lost(path, data, records))
        if plan is not None:
            fields = ", ".join(one["field"] or "the document as a whole" for one in records)
            message = f"Decide for the value that gave way in {fields} of {path}"
            self._store.carry_out([replace(plan, expected=sha256(data))], message, source=source)

    def _with_lost(self, path: str, data: bytes, records: list[Record]) -> bytes | None:
        """The document with what gave way; None where that was its removal."""
        form = self._form(path)
        parsed = form.read(data)
        values: dict[str, Any] = plain(parsed.mapping)
        for record in records:
            if not record["field"]:
                _require_removal(record)
                return None
            values = replaced_at(values, record["field"], record.get("lost"))
        if faults := form.faults(values):
            field = ".".join(map(str, faults[0])) or None
            hint = "edit the document by hand, then decide with --keep"
            raise SchemaInvalid("with that value the document would be invalid", path=path, field=field, hint=hint)
        return form.write(values, parsed).data


def _require_removal(record: Record) -> None:
    if record.get("lost") != DELETED:
        path = record["document"]
        hint = f"'memfs log {path}' names the versions, 'memfs rollback' brings one back"
        raise QueryInvalid("what gave way was a version, which only history has", path=path, hint=hint)


def _clash(record: Record) -> DocumentClash:
    return DocumentClash(
        path=record["document"],
        document=record["document"],
        iteration=None,
        field=record["field"],
        kept=record.get("kept"),
        lost=record.get("lost"),
        timestamp=time_in(record["timestamp"]),
    )
