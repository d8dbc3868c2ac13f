"""Pack the documents of iterations into the payload of an archive.

A payload is read back and durable before it gets its name; until then the originals stay.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime

from memfs.admin.archive_file import ArchiveIndex, ArchiveMember, Packer, damaged, payload_path, verify
from memfs.errors import Conflict, ContentError, StorageIO
from memfs.fs import io
from memfs.model.state_facts import describe
from memfs.model.state_paths import ARCHIVE, document_kind, document_of_sidecar, iteration_folder, iteration_of
from memfs.store.parts import READ_LIMIT, Parts
from memfs.store.state_files import StateFiles

PARTIAL = ".partial.zst"
"""How the name of an unfinished file ends; git ignores it."""

_MOST_BYTES = 1 << 30
_MOST_DOCUMENTS = 20_000
_CHUNK = 1 << 18


@dataclass(frozen=True, slots=True)
class Original:
    """A file of an iteration that is to be archived; ``closed`` says when the iteration was."""

    path: str
    size: int
    closed: datetime


class ArchiveWriter:
    """Writes files of one workspace into archives; the caller holds the archive's lock."""

    def __init__(self, parts: Parts, files: StateFiles) -> None:
        self._parts = parts
        self._files = files

    def originals(self, closed: Mapping[int, datetime]) -> list[Original]:
        """The files of closed iterations: documents and their sidecars; what else a person keeps there stays."""
        found = []
        for number, moment in sorted(closed.items(), key=lambda row: (f"{row[1]:%Y-%m}", row[0])):
            rows = sorted(self._parts.seen.scan(iteration_folder(number)))
            found += [
                Original(row.path, row.size, moment)
                for row in rows
                if row.regular and (document_kind(row.path) or document_of_sidecar(row.path))
            ]
        return found

    def same(self, file: Original, member: ArchiveMember) -> bool:
        """Whether a file holds what was archived."""
        return file.size == member.bytes and digest_of(self.chunks(file.path)) == member.sha256

    def pack(self, name: str, group: Sequence[Original], level: int, left: dict[str, str]) -> ArchiveIndex:
        """Write a payload, read it back, and give it its name.

        Raises:
            ArchiveInvalid: it does not read back as it was written.
        """
        path = payload_path(name)
        self._parts.tree.make_folders(ARCHIVE)
        folder = self._parts.tree.open_read(ARCHIVE)
        temporary = f".{name}.{os.getpid()}{PARTIAL}"
        try:
            fd = io.open_file(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666, dir_fd=folder)
            try:
                with Packer(lambda data: io.write_all(fd, data, path), level) as packer:
                    self._fill(packer, group, left)
                io.fsync(fd, path)
                if wrong := verify(fd, packer.frames, packer.members, path):
                    raise damaged(f"{next(iter(wrong.items()))} right after it was written", path)
                if packer.members:
                    io.rename(temporary, path.rpartition("/")[2], dir_fd=folder)
                    io.fsync(folder, ARCHIVE)
            finally:
                os.close(fd)
        finally:
            with suppress(StorageIO):
                io.unlink(temporary, dir_fd=folder, missing_ok=True)
            os.close(folder)
        return self._index(name, group, packer)

    def _index(self, name: str, group: Sequence[Original], packer: Packer) -> ArchiveIndex:
        """What says where in the payload everything lies."""
        packed = {iteration_of(member.path) for member in packer.members}
        moments = {number: one.closed for one in group if (number := iteration_of(one.path)) in packed}
        return ArchiveIndex(
            name=name,
            created=self._parts.clock(),
            closed={number: moment for number, moment in moments.items() if number is not None},
            bytes=packer.bytes,
            sha256=packer.sha256,
            frames=tuple(packer.frames),
            members=tuple(packer.members),
        )

    def _fill(self, packer: Packer, group: Sequence[Original], left: dict[str, str]) -> None:
        for one in group:
            try:
                if document_kind(one.path):
                    packer.add(one.path, *self._document(one.path))
                else:
                    packer.stream(one.path, one.size, self.chunks(one.path))
            except FileNotFoundError:
                continue
            except (ContentError, Conflict) as error:
                left[one.path] = error.message

    def _document(self, path: str) -> tuple[bytes, Mapping[str, object]]:
        """A document's bytes and its row for the index.

        Raises:
            ContentError: it is invalid, or damaged: it stays where it is, for its good version is found by its place.
            Conflict: it is being written.
        """
        state = self._files.read(path, whole=False)
        if state.problem:
            raise ContentError(state.problem, path=path)
        data = self._parts.seen.read(path, READ_LIMIT).data
        if digest_of([data]) != state.sha256:
            raise Conflict("the document changed while it was archived", path=path)
        return data, describe(path, state.values).to_dict()

    def chunks(self, path: str) -> Iterator[bytes]:
        """A file's bytes, in pieces."""
        if document_kind(path):
            yield self._parts.seen.read(path, READ_LIMIT).data
            return
        fd = self._parts.tree.open_read(path)
        try:
            while data := os.read(fd, _CHUNK):
                yield data
        finally:
            os.close(fd)

    def sweep(self) -> None:
        """Remove unfinished payloads of processes that ended; the archive's lock is held."""
        for entry in self._parts.tree.scan(ARCHIVE, hidden=True):
            if entry.path.endswith(PARTIAL):
                self._parts.tree.remove(entry.path)


def groups(files: Sequence[Original]) -> Iterator[list[Original]]:
    """What goes into one archive each: files of one month, in order, up to a size."""
    group: list[Original] = []
    size = 0
    for one in files:
        other_month = group and f"{group[0].closed:%Y-%m}" != f"{one.closed:%Y-%m}"
        if other_month or size + one.size > _MOST_BYTES or len(group) >= _MOST_DOCUMENTS:
            if group:
                yield group
            group, size = [], 0
        group.append(one)
        size += one.size
    if group:
        yield group


def digest_of(chunks: Iterable[bytes]) -> str:
    """Hex digest of bytes that come in pieces."""
    digest = hashlib.sha256()
    for chunk in chunks:
        digest.update(chunk)
    return digest.hexdigest()
