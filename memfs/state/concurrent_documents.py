"""Record the conflicts that writers of one document leave, and list them.

A value that was displaced where writers were merged is recorded as a conflict, until a person decides about it.
"""

from __future__ import annotations

import builtins
from collections.abc import Collection, Mapping
from itertools import count
from typing import TYPE_CHECKING, Any

from memfs.admin.merge_spool import MergeSpool, can_be_recorded, key_of
from memfs.errors import Conflict, ContentError, MemfsError
from memfs.format.merge_conflicts import stands_in
from memfs.model.conflict import DocumentClash
from memfs.model.state_paths import conflict_path, iteration_of
from memfs.model.state_query import StateQuery
from memfs.store.state_files import DocumentChange

if TYPE_CHECKING:
    from memfs.state.reader import StateReader


KIND = "conflict"


class Clashes:
    """Records and lists clashes in one workspace. May be used from several threads."""

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
