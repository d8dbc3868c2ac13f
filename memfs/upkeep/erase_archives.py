"""Erasing from archives: a payload that holds what is to go is removed as a whole.

Owns finding such payloads. Nothing else is lost by it: history has the other documents, under the names that the index
gives, and what only the payload had (values too large for a document) is laid back into the tree before.
"""

from __future__ import annotations

import os
from contextlib import suppress

from memfs.errors import ArchiveInvalid
from memfs.model.statepaths import ARCHIVE
from memfs.store.parts import Parts
from memfs.upkeep.archivefile import Member, Payload
from memfs.upkeep.archiveindex import INDEX_LIMIT, PAYLOAD_SUFFIX, Index, decode, index_path, is_name
from memfs.upkeep.erase_target import Target

_PARTIAL = ".partial.zst"


def purge_archives(parts: Parts, target: Target) -> int:
    """Remove the payloads that hold a version of what is erased, or nobody knows what; return how many."""
    count = 0
    for entry in list(parts.tree.scan(ARCHIVE, hidden=True)):
        if not entry.regular or not entry.path.endswith((PAYLOAD_SUFFIX, _PARTIAL)):
            continue
        name = entry.path.removeprefix(f"{ARCHIVE}/").removesuffix(PAYLOAD_SUFFIX)
        index = _index(parts, name)
        fd = parts.tree.open_read(entry.path)
        try:
            payload = Payload(fd, index.frames, entry.path) if index else None
            if index is not None and payload is not None:
                if not _holds(payload, index, target):
                    continue
                _lay_back(parts, payload, index, target)
        finally:
            os.close(fd)
        parts.tree.remove(entry.path)
        count += 1
    return count


def _index(parts: Parts, name: str) -> Index | None:
    """The archive's index; None where there is none or it is damaged: nobody can tell then what the payload holds."""
    if not is_name(name):
        return None
    path = index_path(name)
    try:
        return decode(parts.tree.read(path, INDEX_LIMIT).data, path)
    except (FileNotFoundError, ArchiveInvalid):
        return None


def _holds(payload: Payload, index: Index, target: Target) -> bool:
    """Whether a document is a version or a copy of what is erased; one that cannot be read may be."""
    try:
        return any(_is_meant(member, target) or _quotes(payload, member, target) for member in index.members)
    except ArchiveInvalid:
        return True


def _is_meant(member: Member, target: Target) -> bool:
    return member.blob in target.blobs or target.named.means(member.path)


def _quotes(payload: Payload, member: Member, target: Target) -> bool:
    return bool(member.blob) and target.traces.copied_in(b"".join(payload.chunks(member)))


def _lay_back(parts: Parts, payload: Payload, index: Index, target: Target) -> None:
    """Put what git never had back where it lay: its document, read from history, finds it there."""
    for member in index.members:
        if member.blob or _is_meant(member, target) or parts.tree.entry(member.path) is not None:
            continue
        with suppress(ArchiveInvalid):  # damaged: there is nothing to be kept
            parts.tree.write_stream(member.path, payload.chunks(member))
