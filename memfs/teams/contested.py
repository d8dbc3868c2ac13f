"""Contested: how a merge that memfs makes itself keeps what gave way (B3).

Owns the records beside state documents, which cannot hold their conflicts themselves, those in this clone of other
documents, and the lines in the commit's message. An item's own record is part of the item.
"""

from __future__ import annotations

from collections.abc import Sequence

from memfs.model.statepaths import conflict_path, iteration_of
from memfs.store.parts import Parts
from memfs.teams.historyjoin import Wanted
from memfs.teams.treejoin import Contested
from memfs.upkeep.mergespool import MergeSpool, can_be_recorded, can_wait, records_of

_SCHEMA = "conflict"
_TOLD = 20


def conflict_records(parts: Parts, contested: Sequence[Contested]) -> tuple[Wanted, ...]:
    """The documents that record what gave way in state documents, as files that are part of the merge."""
    now = parts.clock()
    found = []
    for file in contested:
        number = iteration_of(file.path)
        if file.recorded or number is None or not can_be_recorded(file.path):
            continue
        for turn, record in enumerate(records_of(file.path, file.conflicts, now), 1):
            path = conflict_path(number, file.path, now, turn)
            found.append(Wanted(path, None, parts.codec.write_document(record, path, _SCHEMA)))
    return tuple(found)


def keep_others(parts: Parts, contested: Sequence[Contested], wanted: Sequence[Wanted]) -> None:
    """Keep in this clone what gave way in documents that have no place for a record beside them.

    Raises:
        StorageIO: not all could be kept.
    """
    changes = {one.path: one for one in wanted}
    for file in contested:
        if file.recorded or can_be_recorded(file.path) or not can_wait(file.path):
            continue
        change = changes.get(file.path)
        before, after = ((change.before,), change.after) if change else ((), None)
        records = records_of(file.path, file.conflicts, parts.clock())
        MergeSpool(parts.repository.state).keep(records, after, before)


def told(message: str, contested: Sequence[Contested]) -> str:
    """The commit's message, naming the fields in which one side's value gave way."""
    fields = [f"- {file.path}: {one.field or 'the whole file'}" for file in contested for one in file.conflicts]
    if not fields:
        return message
    more = [f"- and {len(fields) - _TOLD} more"] if len(fields) > _TOLD else []
    heading = "Both sides changed these; one value stands, the other is recorded:"
    return "\n".join([message, "", heading, *fields[:_TOLD], *more])
