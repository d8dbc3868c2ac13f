"""Archived work: what a checkpoint tells of iterations that left the tree before it was taken (S7, S15).

Owns the gathering of it from the archives' indexes. Their documents belong to no checkpoint: archives keep them, and a
restore leaves them there.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from memfs.errors import ContentError, CorruptRecord
from memfs.files import jsontext
from memfs.model.statepaths import document_kind
from memfs.states.checkpoint_points import Said, latest_of, newest_update, said_in, updates_in
from memfs.store.sidecars import holds_reference

if TYPE_CHECKING:
    from memfs.states.archives import Archives


@dataclass(frozen=True, slots=True)
class ArchivedWork:
    """The documents that archives hold, and the iterations that they had closed."""

    paths: frozenset[str] = field(default_factory=frozenset)
    closed: frozenset[int] = field(default_factory=frozenset)


def archived_work(archives: Archives | None) -> ArchivedWork:
    """What archives hold at present; one whose index is damaged is left out: verifying archives names it."""
    paths: set[str] = set()
    closed: set[int] = set()
    for name in archives.stamp() if archives is not None else ():
        with suppress(CorruptRecord, FileNotFoundError):
            index = archives.index(name)  # type: ignore[union-attr]  # there is a name
            paths.update(one.path for one in index.members if document_kind(one.path))
            closed.update(index.closed)
    return ArchivedWork(frozenset(paths), frozenset(closed))


def archived_update(archives: Archives | None, work: ArchivedWork) -> Mapping[str, Any]:
    """The latest state update in archives; empty where there is none that can be read whole."""
    return _update(archives, newest_update(work.paths))


def archived_data(archives: Archives | None, work: ArchivedWork) -> dict[tuple[str, ...], Said]:
    """What was said last of each part of ``checkpoint_data`` in the iterations that were archived."""
    return latest_of(one for path in updates_in(work.paths) for one in said_in(path, _update(archives, path)))


@dataclass(frozen=True, slots=True)
class Archived:
    """What archives hold, and what their updates say of ``checkpoint_data``."""

    work: ArchivedWork
    said: Mapping[tuple[str, ...], Said]

    @staticmethod
    def of(archives: Archives | None) -> Archived:
        """As things are at present."""
        work = archived_work(archives)
        return Archived(work, archived_data(archives, work))


def _update(archives: Archives | None, path: str) -> Mapping[str, Any]:
    if not path or archives is None:
        return {}
    with suppress(ContentError, CorruptRecord, FileNotFoundError, UnicodeDecodeError):
        data = archives.read(path)
        if not holds_reference(data):
            found = jsontext.load(data.decode("utf-8"), parts=None)
            return found if isinstance(found, Mapping) else {}
    return {}
