"""Settle the conflicts that writers of one document leave.

A value that was displaced where writers were merged is recorded as a conflict, until a person decides about it.
"""

from __future__ import annotations

import builtins
from collections.abc import Collection, Mapping
from itertools import count
from typing import TYPE_CHECKING, Any

from memfs.admin.merge_spool import MergeSpool, can_be_recorded, key_of
from memfs.errors import Conflict, ContentError, ItemNotFound, MemfsError, QueryInvalid
from memfs.format.merge_conflicts import stands_in, with_lost
from memfs.format.secrets import refuse_text
from memfs.model.conflict import KEPT, LOST, DocumentClash
from memfs.model.shape import plain
from memfs.model.state_paths import conflict_path, document_kind, iteration_of
from memfs.model.state_query import StateQuery
from memfs.store.state_files import DocumentChange
from memfs.store.store import retry_on_conflict

if TYPE_CHECKING:
    from memfs.state.reader import StateReader


KIND = "conflict"


class Clashes:
    """Finds and settles clashes in one workspace. May be used from several threads."""

    def __init__(self, reader: StateReader) -> None:
        self._files = reader.files
        self._reader = reader

    def list(self) -> builtins.list[DocumentClash]:
        """The clashes that nobody decided about, the newest first.

        One whose field has got another value since, or whose document is gone or archived, waits for nobody.
        """
        found = []
        for row in self._reader.rows(StateQuery(kinds=(KIND,), newest=True)):
            if row.archive:
                continue
            try:
                clash = DocumentClash.of(row.path, self._files.read(row.path).values)
                values = self._files.read(clash.document).values
            except (MemfsError, FileNotFoundError):  # 'check' names what cannot be read
                continue
            if stands_in(values, clash):
                found.append(clash)
        return found

    def resolve(self, path: str, *, keep: str, reason: str = "", source: str = "") -> DocumentClash:
        """Decide about a clash: the record goes, and the field gets the value that is kept, in one commit.

        Args:
            path: of the record.
            keep: ``kept`` for the value in the document, ``lost`` for the displaced one.
            reason: why, for the commit.

        Raises:
            ItemNotFound: there is no such record.
            QueryInvalid: ``keep`` is neither of the two, or the field has another value by now.
            Conflict: others never stopped changing the document.
            ContentError, StorageIO: nothing was written.
        """
        if keep not in (KEPT, LOST):
            raise QueryInvalid(f"{ascii(keep)[:60]} is neither value", field="keep", hint=f"keep '{KEPT}' or '{LOST}'")
        why = " ".join(reason.split())
        refuse_text(why, "reason")
        return retry_on_conflict(lambda: self._resolve(path, keep, why, source))

    def take_up(self, spool: MergeSpool) -> int:
        """Write down the clashes that merges of git's left behind, as far as there is a place for it; how many were.

        One whose field has got another value since (the merge was given up, or decided by hand) is forgotten.

        Raises:
            StorageIO: it stays where it is.
        """
        kept = {name: one for name, one in spool.kept().items() if can_be_recorded(one["record"]["document"])}
        known = {key_of(one.document, one.field, one.kept, one.lost) for one in self.list()} if kept else set()
        written = 0
        for name, one in kept.items():
            record = one["record"]
            key = key_of(record["document"], record["field"], record.get("kept"), record.get("lost"))
            try:
                written += key not in known and self._record(record, one["given_up"])
            except (ContentError, Conflict):  # it stays, and is listed; or somebody writes it at this very moment
                continue
            spool.drop(name)
        return written

    def _record(self, values: Mapping[str, Any], given_up: Collection[str]) -> bool:
        """Write down a clash; False where its document has another value by now.

        Args:
            values: of the record, as its schema has them.
            given_up: digests of the document by which it is known that the merge was given up.
        """
        clash = DocumentClash.of("", values)
        number, moment = iteration_of(clash.document), clash.timestamp
        try:
            document = self._files.read(clash.document)
        except (MemfsError, FileNotFoundError):  # 'check' names what cannot be read
            return False
        given = document.sha256 in given_up or not stands_in(document.values, clash)
        if given or number is None or moment is None:
            return False
        turns = (conflict_path(number, clash.document, moment, turn) for turn in count(1))
        path = next(path for path in turns if not self._files.exists(path))
        message = f"Record that a merge kept one of two values of {clash.field} in {clash.document}"
        self._files.write([DocumentChange(path, values, "")], message, source="merge")
        return True

    def _resolve(self, path: str, keep: str, reason: str, source: str) -> DocumentClash:
        if document_kind(path) != KIND:
            raise ItemNotFound(f"{path!r} is no record of a conflict", hint="'memfs team conflicts' names them")
        try:
            record = self._files.read(path)
            clash = DocumentClash.of(path, record.values)
            document = self._files.read(clash.document)
        except FileNotFoundError:
            raise ItemNotFound(
                f"there is no record {path!r}, or its document is gone", hint="'memfs team conflicts' names them"
            ) from None
        changes = [DocumentChange(path, None, record.sha256)]
        if keep == LOST:
            changes.append(DocumentChange(clash.document, with_lost(plain(document.values), clash), document.sha256))
        value = "the present value" if keep == KEPT else "the other value"
        field = f"{clash.field} of " if clash.field else ""
        message = f"Decide for {value} in {field}{clash.document}"
        self._files.write(changes, f"{message}: {reason}" if reason else message, source=source)
        return clash
