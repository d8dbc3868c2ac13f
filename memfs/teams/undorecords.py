"""Records of conflicts that an undo settles: what one wrote is in dispute no more once it is taken back (B2, B3).

Owns which side of a recorded conflict is that of the changes which are taken back, and what follows: where it gave way,
the record goes; where it stood, the other side's value takes its place.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from memfs.errors import MemfsError
from memfs.files.codec import Codec
from memfs.files.merge.recorded import settled, value_at
from memfs.files.merge.values import equal
from memfs.files.placing import sha256
from memfs.model.item import RecordedConflict
from memfs.teams.leaves import Fields
from memfs.teams.undochoice import Data, StepChange

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Records:
    """Settles the records of conflicts within items."""

    def __init__(self, codec: Codec, fields: Fields, data: Data) -> None:
        """``data`` gives the bytes of a version."""
        self._codec = codec
        self._fields = fields
        self._data = data

    def settle(self, path: str, present: bytes, changes: Sequence[StepChange]) -> bytes:
        """An item's file without the records in which one side is that of the changes; any other file as it is."""
        if not self._fields.is_item(path) or b"conflicts" not in present:
            return present
        try:
            item = begun = self._codec.read(present, path, _EPOCH)
        except MemfsError:  # it is joined, or left alone, as it is
            return present
        sides = list(self._sides(changes))
        for conflict in begun.conflicts:
            with suppress(MemfsError):  # the field says something else by now: the record is for a person
                if any(_is_lost(conflict, *side) for side in sides):
                    item = settled(item, conflict, take=False)
                elif any(_is_kept(conflict, *side) for side in sides):
                    item = settled(item, conflict, take=True)
        return present if item == begun else self._codec.write(item, path, present).data

    def _sides(
        self, changes: Iterable[StepChange]
    ) -> Iterable[tuple[bytes | None, Mapping[str, Any], Mapping[str, Any]]]:
        """Of each change the bytes after it, and the fields before and after it."""
        for change in changes:
            before, after = (
                self._fields.read(self._data(one), one.path)[1] if one is not None else {}
                for one in (change.before, change.after)
            )
            yield (None if change.after is None else self._data(change.after)), before, after


def _is_lost(
    conflict: RecordedConflict, data: bytes | None, before: Mapping[str, Any], after: Mapping[str, Any]
) -> bool:
    """Whether what gave way is what the change had made of the field, or of the whole."""
    if conflict.lost_sha256:
        return data is not None and sha256(data) == conflict.lost_sha256
    if not conflict.field:
        return data is None
    return _made(conflict, conflict.lost, before, after)


def _is_kept(
    conflict: RecordedConflict, data: bytes | None, before: Mapping[str, Any], after: Mapping[str, Any]
) -> bool:
    """Whether what stands is what the change had made of the field."""
    known = conflict.field and not conflict.lost_sha256 and data is not None
    return bool(known) and _made(conflict, conflict.kept, before, after)


def _made(conflict: RecordedConflict, value: Any, before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    old, new = (value_at(version, conflict.field) for version in (before, after))
    if conflict.part:
        texts = isinstance(value, str) and isinstance(new, str)
        return texts and value in new and not (isinstance(old, str) and value in old)
    return equal(new, value) and not equal(old, value)
