"""Keep conflicts of documents until their records can be written, or somebody decides.

They wait outside the tree: while git is at work, and where a document has no place for a record beside it. Records
are written once each, and only of conflicts that the merge's outcome still has.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path

from memfs.dataclass import dataclass
from memfs.format.codec import schema_of
from memfs.fs import io
from memfs.model.state_paths import MERGES, document_kind, iteration_of
from memfs.model.time import format_time
from memfs.startup import TYPE_CHECKING, Any, sha256

if TYPE_CHECKING:
    from memfs.format.field_merge import FieldConflict
    from memfs.git.repository import Repository
    from memfs.model.state_documents import DocumentClash


_ENDING = ".json"
_MISSED = ".missed"
SEEN = "merges.seen"
"""The file of the state folder that holds the newest commit whose merges were looked at."""
_LARGEST = 64 << 20
_MOST = 10_000

Record = Mapping[str, Any]
"""A record of a conflict, as its document will have it (``schemas/conflict.schema.json``)."""


@dataclass(frozen=True, slots=True)
class MissedConflict:
    """An item that may be missing in the outcome of a merge.

    Attributes:
        path: where the side that has it had it, below the workspace.
        begun, own: the blobs of what both sides began from, "" for none, and of that side's version.
        merged: the commits that are in history once the merge is made.
    """

    path: str
    begun: str
    own: str
    merged: tuple[str, ...]


def is_due(repository: Repository) -> bool:
    """Whether something may wait for a merge to be over, or git may have merged since the last look."""
    if os.path.lexists(repository.state / MERGES):
        return True
    times = []
    for place in (repository.git_dir / "ORIG_HEAD", repository.state / SEEN):
        try:
            times.append(os.stat(place).st_mtime_ns)
        except OSError:
            times.append(0)
    return times[0] > 0 and times[0] >= times[1]


def can_be_recorded(path: str) -> bool:
    """Whether a document's conflicts have a place for their records: beside it, in its iteration."""
    return document_kind(path) not in ("", "conflict") and iteration_of(path) is not None


def can_wait(path: str) -> bool:
    """Whether a document's conflicts can be kept in this clone: of every document but a record of one."""
    return schema_of(path) not in ("", "conflict")


def records_of(path: str, conflicts: Sequence[FieldConflict], now: datetime, **more: Any) -> list[dict[str, Any]]:
    """The records of conflicts in a state document; each with ``more``."""
    told = {"timestamp": format_time(now), **more}
    return [{"document": path, "field": one.field, "kept": one.kept, "lost": one.lost, **told} for one in conflicts]


class MergeSpool:
    """The conflicts that wait in one workspace's state folder. May be used from several processes.

    Args:
        state: the workspace's own folder inside the git folder.
    """

    def __init__(self, state: Path) -> None:
        self._folder = state / MERGES

    def keep(
        self,
        path: str,
        conflicts: Sequence[FieldConflict],
        now: datetime,
        outcome: bytes | None,
        versions: Sequence[bytes | None],
    ) -> None:
        """Make records of a document's conflicts durable; one that is there already stays.

        Args:
            outcome: what the merge made of the document.
            versions: what it was made of: where the document is one of these again, the merge was given up.

        Raises:
            StorageIO: not all could be kept.
        """
        from memfs.model.state_documents import DocumentClash  # who only looks whether something waits does without

        given_up = sorted({digest(one) for one in versions} - {digest(outcome)})
        for record in records_of(path, conflicts, now):
            self._put(key_of(DocumentClash.of("", record)), _ENDING, {"record": record, "given_up": given_up})

    def remind(self, missed: MissedConflict) -> None:
        """Make a reminder of an item durable.

        Raises:
            StorageIO: it could not be kept.
        """
        values = {name: getattr(missed, name) for name in MissedConflict.__slots__}
        self._put(json.dumps(values), _MISSED, values)

    def _put(self, key: str, ending: str, values: Record) -> None:
        io.make_private_folder(self._folder)
        place = self._folder / (digest(key.encode())[:32] + ending)
        if not os.path.lexists(place):
            io.write_file(place, json.dumps(values).encode())

    def missed(self) -> dict[str, MissedConflict]:
        """The reminders of items, by name. What is damaged is left out."""
        found: dict[str, MissedConflict] = {}
        for name in self._names(_MISSED):
            with suppress(KeyError, TypeError):
                values = io.read_record(self._folder / name, _LARGEST)
                found[name] = MissedConflict(**{**values, "merged": tuple(values["merged"])})
        return found

    def waiting(self) -> dict[str, Record]:
        """The records that wait, by name. What is none, or is damaged, is left out: nobody can tell what it was."""
        return {name: kept["record"] for name, kept in self.kept().items()}

    def kept(self) -> dict[str, Mapping[str, Any]]:
        """As ``waiting``, each in ``record``; with ``given_up``, the digests of a document that was not merged."""
        found = ((name, self._read(name)) for name in self._names(_ENDING))
        return {name: kept for name, kept in found if kept is not None}

    def _names(self, ending: str) -> list[str]:
        return [name for name in io.listed(self._folder) if name.endswith(ending)][:_MOST]

    def drop(self, name: str) -> None:
        """Forget one."""
        with suppress(OSError):
            io.unlink(self._folder / name, missing_ok=True)

    def _read(self, name: str) -> Mapping[str, Any] | None:
        kept = io.read_record(self._folder / name, _LARGEST)
        if not isinstance(kept, dict) or not isinstance(kept.get("given_up"), list):
            return None
        record = kept.get("record")
        if not isinstance(record, dict) or not can_wait(str(record.get("document", ""))):
            return None
        return kept if isinstance(record.get("field"), str) and isinstance(record.get("timestamp"), str) else None


def digest(data: bytes | None) -> str:
    """By which the spool knows a document's content again."""
    return sha256(data or b"").hexdigest()


def key_of(clash: DocumentClash) -> str:
    """What distinguishes one conflict from another."""
    return json.dumps([clash.document, clash.field, clash.kept, clash.lost], sort_keys=True, default=str)
