"""Record, list and settle conflicts of documents: fields of which one writer's value was displaced.

A conflict of a document in an iteration has a record beside it; any other is kept in this clone. It waits until
somebody decides, or the field has another value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import count
from typing import TYPE_CHECKING, Any

from memfs.admin.merge_spool import MergeSpool, can_be_recorded, digest, key_of
from memfs.admin.store_builder import has_states
from memfs.errors import Conflict, ContentError, ItemNotFound, MemfsError, NotRegularFile, PathEscape, SchemaInvalid
from memfs.format.codec import schema_of
from memfs.format.field_merge import stands_in, with_lost
from memfs.format.file_merge import Form, form_of
from memfs.fs.atomic_replace import sha256
from memfs.model.shape import plain
from memfs.model.state_documents import DocumentClash
from memfs.model.state_facts import StateQuery
from memfs.model.state_paths import conflict_path, iteration_of
from memfs.store import Store
from memfs.store.parts import READ_LIMIT, Parts

if TYPE_CHECKING:
    from memfs.state.parts import States


class DocumentConflicts:
    """The conflicts of documents in one workspace. May be used from several threads.

    Attributes:
        spool: keeps those that have no record in the tree, and those of a merge that goes on.
    """

    def __init__(self, store: Store, parts: Parts, states: Callable[[], States]) -> None:
        self._store, self._parts, self._states = store, parts, states
        self.spool = MergeSpool(parts.repository.state)

    # -- looking --------------------------------------------------------------------------------------------------
    def waiting(self) -> list[DocumentClash]:
        """What waits, by document; of the clone's nothing does while a merge goes on: nobody knows its outcome yet."""
        kept = self._kept()
        return [*self._recorded(), *(kept.values() if kept and not self._parts.repository.busy() else ())]

    def kept(self, path: str) -> dict[str, DocumentClash] | None:
        """What the clone keeps of a document and can be decided about, by name; None where it keeps nothing of it."""
        if not schema_of(path) or all(one["document"] != path for one in self.spool.waiting().values()):
            return None
        return {name: clash for name, clash in self._kept().items() if clash.document == path}

    def _recorded(self) -> list[DocumentClash]:
        """Those with a record that nobody decided about, the newest first.

        One whose field has got another value since, or whose document is gone or archived, waits for nobody.
        """
        found: list[DocumentClash] = []
        if not has_states(self._parts.seen):
            return found
        files = self._states().files
        for row in self._states().reading.rows(StateQuery(kinds=("conflict",), newest=True)):
            if row.archive:
                continue
            with suppress(MemfsError, FileNotFoundError):  # 'check' names what cannot be read
                clash = DocumentClash.of(row.path, files.read(row.path).values)
                if stands_in(files.read(clash.document).values, clash):
                    found.append(clash)
        return found

    def _kept(self) -> dict[str, DocumentClash]:
        """Those of the clone that wait, by name, in an order that stays: by document, field and value.

        Not where the document has another value by now, or is what it was before the merge: another may stand again, on
        another branch, or in an older state.
        """
        found = {}
        for name, one in self.spool.kept().items():
            clash = DocumentClash.of(one["record"]["document"], one["record"])
            if can_be_recorded(clash.document):
                continue
            # Where markers stand in it, a slip, or something else in its place, nobody can tell.
            with suppress(ContentError, FileNotFoundError, NotRegularFile, PathEscape):
                data = self._parts.seen.read(clash.document, READ_LIMIT).data
                values = plain(self._form(clash.document).read(data).mapping)
                if digest(data) not in one["given_up"] and stands_in(values, clash):
                    found[name] = clash
        return dict(sorted(found.items(), key=lambda pair: (pair[1].document, pair[1].field, pair[0])))

    # -- recording ------------------------------------------------------------------------------------------------
    def take_up(self) -> int:
        """Write down what merges of git's left behind, once they are over and there is a place for it; how many were.

        One whose field has got another value since (the merge was given up, or decided by hand) is forgotten.

        Raises:
            StorageIO: it stays where it is.
        """
        kept = {name: one for name, one in self.spool.kept().items() if can_be_recorded(one["record"]["document"])}
        if not kept or self._parts.repository.busy():
            return 0
        known = {key_of(one) for one in self._recorded()}
        written = 0
        for name, one in kept.items():
            try:
                clash = DocumentClash.of("", one["record"])
                written += key_of(clash) not in known and self._record(clash, one)
            except (ContentError, Conflict):  # it stays, and is listed; or somebody writes it at this very moment
                continue
            self.spool.drop(name)
        return written

    def _record(self, clash: DocumentClash, kept: Mapping[str, Any]) -> bool:
        """Write down a conflict; False where its document has another value by now, or the merge was given up."""
        from memfs.store.state_files import DocumentChange

        files, number, moment = self._states().files, iteration_of(clash.document), clash.timestamp
        try:
            document = files.read(clash.document)
        except (MemfsError, FileNotFoundError):  # 'check' names what cannot be read
            return False
        given_up = document.sha256 in kept["given_up"] or not stands_in(document.values, clash)
        if given_up or number is None or moment is None:
            return False
        turns = (conflict_path(number, clash.document, moment, turn) for turn in count(1))
        path = next(path for path in turns if not files.exists(path))
        message = f"Record that a merge kept one of two values of {clash.field} in {clash.document}"
        files.write([DocumentChange(path, kept["record"], "")], message, source="merge")
        return True

    # -- deciding -------------------------------------------------------------------------------------------------
    def decide(self, record: str, take: bool, source: str, dry_run: bool) -> DocumentClash:
        """Take a record away, in one commit with the document where the other value is taken.

        Raises:
            ItemNotFound: there is no such record, or no document any more.
            QueryInvalid, Conflict, ContentError, StorageIO: nothing was written.
        """
        from memfs.store.state_files import DocumentChange

        files = self._states().files
        try:
            state = files.read(record)
            clash = DocumentClash.of(record, state.values)
            document = files.read(clash.document)
        except FileNotFoundError:
            hint = "'memfs team conflicts' lists what waits"
            raise ItemNotFound(f"there is no record {record!r}, or its document is gone", hint=hint) from None
        changes = [DocumentChange(record, None, state.sha256)]
        if take:
            changes.append(DocumentChange(clash.document, with_lost(plain(document.values), clash), document.sha256))
        if not dry_run:
            files.write(changes, _message([clash], "other" if take else "present"), source=source)
        return clash

    def settle(self, path: str, taken: Sequence[DocumentClash], gone: Iterable[str], source: str) -> None:
        """Write a document with what was displaced, or remove it where that was its removal, and forget conflicts.

        Args:
            gone: the names of those that are decided.
        """
        if taken:
            self._take(path, taken, source)
        for name in gone:
            self.spool.drop(name)

    def _form(self, path: str) -> Form:
        form = form_of(path, self._parts.codec)
        assert form is not None  # nothing else is kept aside
        return form

    def _take(self, path: str, clashes: Sequence[DocumentClash], source: str) -> None:
        """Write the document with what was displaced, or remove it where that was its removal."""
        data = self._parts.tree.read(path, READ_LIMIT).data
        form = self._form(path)
        parsed = form.read(data)
        values: dict[str, Any] | None = plain(parsed.mapping)
        for clash in clashes:
            values = with_lost(values, clash) if values is not None else None
        if values is not None and (faults := form.faults(values)):
            field = ".".join(map(str, faults[0])) or None
            hint = "edit the document by hand, then decide with --keep kept"
            raise SchemaInvalid("with that value the document would be invalid", path=path, field=field, hint=hint)
        after = form.write(values, parsed).data if values is not None else None
        plans = [plan._replace(expected=sha256(data)) for plan in self._store.plan_restore({path: after})]
        self._store.carry_out(plans, _message(clashes, "other"), source=source)


def _message(clashes: Sequence[DocumentClash], which: str) -> str:
    fields = ", ".join(one.field or "the document as a whole" for one in clashes)
    return f"Decide for the {which} value in {fields} of {clashes[0].document}"
