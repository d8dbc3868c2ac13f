"""The proof of what an answer rests on: HEAD, how many memory files differ from it, a digest of what is indexed."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from memfs.errors import MemfsError, StorageIO
from memfs.fs import io
from memfs.fs.tree import View, blob_id
from memfs.git.repository import Repository
from memfs.model import Freshness
from memfs.search.search_index import SearchIndex
from memfs.store.parts import CONTENT, READ_LIMIT

_FILE = "head"
_LIMIT = 4096


def prove(
    index: SearchIndex,
    files: View,
    repository: Repository | None,
    rejected: Iterable[str],
    is_item: Callable[[str], bool],
) -> Freshness:
    """HEAD, how many memory files differ from it, and a digest of exactly what is indexed.

    The digest of HEAD's own files is cached beside the index, so that the usual answer, that nothing differs, needs no
    git.
    """
    indexed = dict(index.stamps().blobs())
    digest = _digest(indexed)
    if repository is None:
        return Freshness(head=None, dirty=None, indexed=digest)
    found = repository.head()
    head = found.commit
    if head is None:
        return Freshness(head=None, dirty=None if found.damage else len(indexed), indexed=digest)
    broken = {path: _blob(files, path) for path in rejected}
    present = {**indexed, **{path: blob for path, blob in broken.items() if blob}}
    if _kept(index.folder, head) == (_digest(present) if broken else digest):
        return Freshness(head=head, dirty=0, indexed=digest)
    items = {path: blob for path, blob in repository.tree(head, CONTENT).items() if is_item(path)}
    _keep(index.folder, head, _digest(items))
    dirty = sum(1 for path, blob in present.items() if items.get(path) != blob)
    dirty += sum(1 for path in items if path not in present)
    return Freshness(head=head, dirty=dirty, indexed=digest)


def _blob(files: View, path: str) -> str:
    """The id of what an invalid file holds, "" where it cannot be read."""
    try:
        return blob_id(files.read(path, READ_LIMIT).data)
    except (FileNotFoundError, MemfsError):
        return ""


def _digest(blobs: Mapping[str, str]) -> str:
    lines = "".join([f"{path}\0{blobs[path]}\n" for path in sorted(blobs)])
    return hashlib.sha256(lines.encode("utf-8", "surrogateescape")).hexdigest()


def _kept(folder: Path, head: str) -> str:
    """The digest of the items of this very commit, "" when it is not known."""
    commit, _, digest = io.read_note(folder / _FILE, _LIMIT).partition(" ")
    return digest if commit == head else ""


def _keep(folder: Path, head: str, digest: str) -> None:
    with contextlib.suppress(StorageIO, FileNotFoundError):
        io.write_file(folder / _FILE, f"{head} {digest}".encode(), durable=False)
