"""Clashes: fields of state documents in which one writer's value gave way, brought before a person.

Owns which records of conflicts still wait for a decision, and what becomes of record and document with it. How two
versions are joined in the first place is ``memfs.files.merge``' business.
"""

from __future__ import annotations

import builtins
from collections.abc import Collection, Mapping
from itertools import count
from typing import TYPE_CHECKING, Any

from memfs.errors import ItemNotFound, MemfsError, QueryInvalid
from memfs.files.merge.recorded import DELETED
from memfs.files.merge.values import equal
from memfs.files.secrets import refuse_text
from memfs.model.conflicts import KEPT, LOST, DocumentClash
from memfs.model.shape import plain
from memfs.model.statepaths import conflict_path, document_kind, iteration_of
from memfs.model.statequery import Question
from memfs.model.time import time_in
from memfs.states.contention import settled
from memfs.store.statefiles import Change

if TYPE_CHECKING:
    from memfs.states.reading import StateReading
    from memfs.store.statefiles import StateFiles

KIND = "conflict"


class Clashes:
    """Finds and settles clashes in one workspace. May be used from several threads."""

    def __init__(self, files: StateFiles, reading: StateReading) -> None:
        self._files = files
        self._reading = reading

    def list(self) -> builtins.list[DocumentClash]:
        """The clashes that nobody decided about, the newest first.

        One whose field has got another value since, or whose document is gone or archived, waits for nobody.
        """
        found = []
        for row in self._reading.rows(Question(kinds=(KIND,), newest=True)):
            if row.archive:
                continue
            try:
                clash = _read(row.path, self._files.read(row.path).values)
                values = self._files.read(clash.document).values
            except (MemfsError, FileNotFoundError):  # 'check' names what cannot be read
                continue
            if _stands(values, clash):
                found.append(clash)
        return found

    def resolve(self, path: str, *, keep: str, reason: str = "", source: str = "") -> DocumentClash:
        """Decide about a clash: the record goes, and the field gets the value that is kept, in one commit.

        Args:
            path: of the record.
            keep: ``kept`` for the value that stands in the document, ``lost`` for the one that gave way.
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
        return settled(lambda: self._resolve(path, keep, why, source))

    def record(self, values: Mapping[str, Any], given_up: Collection[str] = (), source: str = "merge") -> bool:
        """Write down a clash that a merge of git's left behind; False where its document has another value by now.

        Args:
            values: of the record, as its schema has them.
            given_up: digests of the document by which it is known that the merge was given up.

        Raises:
            Conflict, ContentError, StorageIO: nothing was written.
        """
        self._reading.parts.require_open()
        clash = _read("", values)
        number, moment = iteration_of(clash.document), clash.timestamp
        try:
            document = self._files.read(clash.document)
        except (MemfsError, FileNotFoundError):  # 'check' names what cannot be read
            return False
        given = document.sha256 in given_up or not _stands(document.values, clash)
        if given or number is None or moment is None:
            return False
        turns = (conflict_path(number, clash.document, moment, turn) for turn in count(1))
        path = next(path for path in turns if not self._files.exists(path))
        message = f"Record that a merge kept one of two values of {clash.field} in {clash.document}"
        self._files.write([Change(path, values, "")], message, source=source)
        return True

    def _resolve(self, path: str, keep: str, reason: str, source: str) -> DocumentClash:
        if document_kind(path) != KIND:
            raise ItemNotFound(f"{path!r} is no record of a conflict", hint="'memfs conflicts' names them")
        try:
            record = self._files.read(path)
            clash = _read(path, record.values)
            document = self._files.read(clash.document)
        except FileNotFoundError:
            raise ItemNotFound(
                f"there is no record {path!r}, or its document is gone", hint="'memfs conflicts' names them"
            ) from None
        changes = [Change(path, None, record.sha256)]
        if keep == LOST:
            values = _changed(document.values, clash) if clash.field else _removed(clash)
            changes.append(Change(clash.document, values, document.sha256))
        value = "the value that stands" if keep == KEPT else "the value that gave way"
        field = f"{clash.field} of " if clash.field else ""
        message = f"Decide for {value} in {field}{clash.document}"
        self._files.write(changes, f"{message}: {reason}" if reason else message, source=source)
        return clash


def _read(path: str, values: Mapping[str, Any]) -> DocumentClash:
    return DocumentClash(
        path=path,
        document=str(values.get("document", "")),
        iteration=iteration_of(path),
        field=str(values.get("field", "")),
        kept=plain(values.get("kept")),
        lost=plain(values.get("lost")),
        by=str(values.get("by", "")),
        timestamp=time_in(values.get("timestamp")),
    )


def _changed(values: Mapping[str, Any], clash: DocumentClash) -> dict[str, Any]:
    """The document's values with the one that gave way."""
    changed: dict[str, Any] = plain(values)
    found = _place(changed, clash.field)
    if found is None or not equal(found[0].get(found[1]), clash.kept):
        raise QueryInvalid(f"{clash.field} of {clash.document} has another value by now", hint="look at it again")
    holder, key = found
    if clash.lost is None:
        holder.pop(key, None)
    else:
        holder[key] = clash.lost
    return changed


def _removed(clash: DocumentClash) -> dict[str, Any] | None:
    """Nothing: a document that one side had removed goes after all.

    Raises:
        QueryInvalid: it was no removal that gave way, but a version, which the record does not hold.
    """
    if clash.lost != DELETED:
        hint = f"'memfs log {clash.document}' names the versions, 'memfs rollback' brings one back"
        raise QueryInvalid("the record does not hold the version that gave way", path=clash.document, hint=hint)
    return None


def _stands(values: Mapping[str, Any], clash: DocumentClash) -> bool:
    """Whether the document has the value still that was kept."""
    if not clash.field:  # the document as a whole, which is there
        return True
    found = _place(values, clash.field)
    return found is not None and equal(found[0].get(found[1]), clash.kept)


def _place(values: Any, field: str) -> tuple[Any, str] | None:
    """The mapping that holds a dotted field, and its key there, which may hold a dot; None where there is none."""
    holder, rest = values, field
    while rest not in holder and "." in rest:
        heads = [rest[:at] for at, letter in enumerate(rest) if letter == "."]
        inner = next((head for head in reversed(heads) if isinstance(holder.get(head), Mapping)), None)
        if inner is None:
            return None
        holder, rest = holder[inner], rest[len(inner) + 1 :]
    return holder, rest
