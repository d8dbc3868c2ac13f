"""Reverting: what a file becomes when some of its changes are taken back (B2).

Owns the decision for one file: put back, removed, brought back, moved back, or joined with what others wrote later. It
writes nothing and knows no commits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from memfs.files.merge.files import FileMerger
from memfs.teams.leaves import Fields
from memfs.teams.undochoice import Data, FileVersion, StepChange
from memfs.teams.undorecords import Records

_OWN_ACCOUNT = ("created", "updated", "origin", "trust", "conflicts")
"""Fields that say who wrote the others, when, and who vouches for them: they go with those, nobody decides on them."""
_BESIDE = frozenset({"updated", "importance", "links", "metadata", "conflicts"})
"""Fields in which others, and memfs, keep what became of an item; they do not make its words theirs."""


@dataclass(frozen=True, slots=True)
class There:
    """A file as it is, or is to be."""

    path: str
    data: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class LaterEdit:
    """A field that keeps what somebody wrote into it later: what it says, and what it would have said."""

    field: str
    now: Any
    undone: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Reversal:
    """What a file becomes: None where it is to be absent; and what of it stays as somebody made it later.

    ``reason`` says why nothing could be done, "" where something could.
    """

    result: There | None
    clashes: tuple[LaterEdit, ...] = ()
    reason: str = ""


class Reverting:
    """Takes changes out of files."""

    def __init__(self, merger: FileMerger, fields: Fields, records: Records, data: Data) -> None:
        """``data`` gives the bytes of a version."""
        self._merger = merger
        self._fields = fields
        self._records = records
        self._data = data

    def revert(self, present: There | None, changes: Sequence[StepChange]) -> Reversal:
        """Take the changes of one file back, newest first, from what the file is now."""
        result = self._settled(present, changes)
        clashes: list[LaterEdit] = []
        for change in _joined(changes):
            step = self._one(result, change)
            if step.reason:
                return Reversal(result=present, reason=step.reason)
            result = step.result
            clashes += step.clashes
        return Reversal(result=result, clashes=_last(clashes))

    def _settled(self, present: There | None, changes: Sequence[StepChange]) -> There | None:
        """The file without the conflicts that a merge recorded against what is taken back."""
        if present is None:
            return None
        return There(present.path, self._records.settle(present.path, present.data, changes))

    def _one(self, present: There | None, change: StepChange) -> Reversal:
        before, after = self._there(change.before), self._there(change.after)
        if present == after:
            return Reversal(result=before)
        if present is None or present == before:  # somebody took it away, or put it back, already
            return Reversal(result=present)
        if after is None:
            return Reversal(result=present, clashes=(LaterEdit(field="", now="made anew", undone="brought back"),))
        if before is None:
            if self._is_same(after, present):
                return Reversal(result=None)
            return Reversal(result=present, clashes=(LaterEdit(field="", now="edited later", undone="removed"),))
        return self._merged(before, after, present)

    def _is_same(self, made: There, present: There) -> bool:
        """Whether an item still is what it was made as, whatever feedback it was given, whatever was linked to it."""
        if made.path != present.path or not self._fields.is_item(made.path):
            return False
        differing = self._fields.differing(made.data, present.data, made.path)
        return differing is not None and differing <= _BESIDE

    def _merged(self, before: There, after: There, present: There) -> Reversal:
        """Take the difference between two versions out of a third that came from the later one."""
        clashes = []
        path = before.path if present.path == after.path else present.path
        if path != before.path and before.path != after.path:
            clashes.append(LaterEdit(field="path", now=present.path, undone=before.path))
        joined = self._merger.merge(path, after.data, present.data, before.data, prefer="ours", record=False)
        if joined.whole or joined.data is None:
            return Reversal(result=present, reason=joined.reason or "its versions cannot be joined")
        clashes += [
            LaterEdit(field=one.field, now=one.kept, undone=one.lost)
            for one in joined.conflicts
            if one.field.partition(".")[0] not in _OWN_ACCOUNT
        ]
        return Reversal(result=There(path, joined.data), clashes=tuple(clashes))

    def _there(self, version: FileVersion | None) -> There | None:
        return None if version is None else There(version.path, self._data(version))


def _joined(changes: Sequence[StepChange]) -> list[StepChange]:
    """Changes between which nobody else wrote as one, newest first."""
    found: list[StepChange] = []
    for change in changes:
        if found and found[-1].before == change.after:
            found[-1] = replace(found[-1], before=change.before)
        else:
            found.append(change)
    return found


def _last(clashes: Sequence[LaterEdit]) -> tuple[LaterEdit, ...]:
    """Of several clashes in a field, the one with the oldest value: that is what it would say."""
    return tuple({clash.field: clash for clash in clashes}.values())
