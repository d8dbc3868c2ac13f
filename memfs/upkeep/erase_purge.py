"""Where an item can be besides files and git, and how it is taken out there.

Owns the table of those places. Each is a function that removes what it can and says what it did; a new store of content
adds a row.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from memfs.errors import CorruptRecord, LockTimeout, MemfsError
from memfs.files import io, spoolfile, zstd
from memfs.files.operation import FileChange, Operation
from memfs.index.engines import engine
from memfs.index.generations import POINTER, Generations
from memfs.index.place import forget_past
from memfs.index.statebase import FILE as STATES
from memfs.index.triggerbase import FILE as TRIGGERS
from memfs.model.ids import stem_of
from memfs.model.statepaths import ARCHIVE, CHECKPOINTS, MERGES, PAYLOAD, document_of_sidecar
from memfs.pipeline.conflictscan import FILE as COMPARED
from memfs.pipeline.meanings import FOLDER as VECTORS
from memfs.pipeline.warninglog import FILES as WARNINGS
from memfs.served.log import FOLDER as SERVED
from memfs.served.log import ServedLog
from memfs.store.mounted import indexes_of_mounts
from memfs.store.parts import CONTENT, Parts
from memfs.store.setaside import DAMAGED_SUFFIX, FOLDER, SUFFIX, read_aside
from memfs.upkeep.erase_archives import purge_archives
from memfs.upkeep.erase_target import Target
from memfs.usage import FILE as USES
from memfs.usage import Usage

Purge = Callable[[Parts, Target], int]
TOLD = "told"
"""Where it is kept what each session was told, by the ids of items."""
_WAIT = 60.0
_LARGEST = 1 << 31
_PIECE = 1 << 22


def purge(parts: Parts, target: Target) -> dict[str, int]:
    """Take the item out of every place; return how many pieces each one held. The store's lock is held."""
    return {place: remove(parts, target) for place, remove in PLACES.items()}


def holds(change: FileChange, parts: Parts, target: Target) -> bool:
    """Whether a change carries a version of the item."""
    data = change.data
    if data is None:
        return False
    return parts.repository.blob_id(data) in target.blobs or target.traces.copied_in(data)


def _journal(parts: Parts, target: Target) -> int:
    """What waits is committed before; this finds what an interrupted erase left, and renews the file in any case."""
    waiting = parts.journal.operations()
    touched = [found for found in waiting if any(holds(change, parts, target) for change in found.changes)]
    reduced = [_without(found, parts, target) for found in touched]
    if touched:
        kept = [found for found in reduced if found.changes]
        if kept:
            parts.journal.append(kept)
            for found in kept:
                parts.journal.mark_applied(found.id)
    if touched or os.path.lexists(parts.journal.path):
        # The commit behind the last drop has a new id, too.
        parts.journal.drop([found.id for found in touched], tip=parts.repository.head_commit() or "")
    return len(touched)


def _without(operation: Operation, parts: Parts, target: Target) -> Operation:
    changes = tuple(change for change in operation.changes if not holds(change, parts, target))
    return replace(operation, id=f"{operation.id}-e", changes=changes)


def _set_aside(parts: Parts, target: Target) -> int:
    folder = parts.repository.state / FOLDER
    count = 0
    for path in _files(folder):
        if path.name.endswith(DAMAGED_SUFFIX):  # nobody can tell what is in it
            io.unlink(path, missing_ok=True)
            count += 1
            continue
        if not path.name.endswith(SUFFIX):
            count += _drop(path, target)
            continue
        try:
            where, data = read_aside(path)
        except MemfsError:
            try:
                where, data = "", io.read_file(path, _LARGEST)
            except FileNotFoundError:
                continue
        found = FileChange(path=where, old="", new="", data=data)
        if holds(found, parts, target) or target.named.means(where) or target.traces.quoted_in(data):
            io.unlink(path, missing_ok=True)
            count += 1
    if count:
        io.sync_folder(folder)
    return count


def _salvage(parts: Parts, target: Target) -> int:
    """Damaged journals are kept; one that holds the item goes as a whole."""
    state = parts.repository.state
    return sum(_drop(path, target) for path in _files(state) if path.parent == state and path != parts.journal.path)


def _uses(parts: Parts, target: Target) -> int:
    """An id can tell what its item was about."""
    path = parts.repository.state / USES
    if not os.path.lexists(path):
        return 0
    ids = _ids(target)
    usage = Usage(path)
    try:
        counted = len(usage.of(ids))
        usage.forget(ids)
        return counted
    finally:
        usage.close()


def _ids(target: Target) -> set[str]:
    names = {stem_of(os.fsdecode(name)) for name in target.paths}
    return names if target.named.is_path else names | {target.named.reference}


def _served(parts: Parts, target: Target) -> int:
    """When the item was handed out, and questions that quote it."""
    log = ServedLog(parts.repository.state / SERVED)
    return log.forget(_ids(target), lambda question: target.traces.quoted_in(question.encode("utf-8", "replace")))


def _warnings(parts: Parts, target: Target) -> int:  # noqa: ARG001  it is short, and goes as a whole
    """The ids of what agents were warned with."""
    found = [path for name in WARNINGS if os.path.lexists(path := parts.repository.state / name)]
    for path in found:
        io.unlink(path, missing_ok=True)
    return len(found)


def _events(parts: Parts, target: Target) -> int:
    """What sessions told and nobody has taken in yet, what was noted of them, and what they were told."""
    state = parts.repository.state
    count = 0
    for path in spoolfile.waiting(state / spoolfile.FOLDER):
        count += spoolfile.keep_only(path, lambda text: not _told_in(text, target))
    for path in _files(state / spoolfile.FOLDER):
        count += path.suffix != spoolfile.SUFFIX and _drop(path, target)
    for path in (*spoolfile.kept_aside(state / spoolfile.FOLDER), *_files(state / TOLD)):
        io.unlink(path, missing_ok=True)
        count += 1
    return count


def _told_in(text: bytes, target: Target) -> bool:
    """Whether an event holds a line of the item, as it is written or as JSON writes it."""
    try:
        plain = json.dumps(json.loads(text), ensure_ascii=False).replace("\\n", "\n").replace('\\"', '"').encode()
    except (ValueError, RecursionError):
        return True  # nobody can tell what is in it
    return target.traces.quoted_in(text) or target.traces.quoted_in(plain)


def _secondary(parts: Parts, target: Target) -> int:
    """What lay there has come home before; this finds readable copies and damaged journals that stayed."""
    if parts.secondary is None:
        return 0
    kept = parts.secondary.journal.path
    return sum(_drop(path, target) for path in _files(parts.secondary.folder) if path != kept)


def _resolutions(parts: Parts, target: Target) -> int:
    """Git remembers how conflicts were resolved, with the texts."""
    return sum(_drop(path, target) for path in _files(parts.repository.common_dir / "rr-cache"))


def _merges(parts: Parts, target: Target) -> int:
    """Conflicts that a merge of git's left and nobody has written down yet, where they tell of the item."""
    count = 0
    for path in _files(parts.repository.state / MERGES):
        data = io.read_file(path, _LARGEST)
        if _told_in(data, target) or any(name in data for name in target.paths):
            io.unlink(path, missing_ok=True)
            count += 1
    return count


def _drop(path: Path, target: Target) -> bool:
    """Remove a file if it holds a line of the item."""
    try:
        data = io.read_file(path, _LARGEST)
    except FileNotFoundError:  # another process removed it
        return False
    if not target.traces.quoted_in(data):
        return False
    io.unlink(path, missing_ok=True)
    return True


def _indexes(parts: Parts, target: Target) -> int:  # noqa: ARG001  a cache goes as a whole
    """Every generation of the index goes, whichever engine made it: the next look at the files makes a new one."""
    return sum(map(_generations, _index_folders(parts)))


def _index_folders(parts: Parts) -> list[Path]:
    """Where the workspace is indexed for this user: as itself, and as a mount of others."""
    return [folder for folder in (parts.index.folder, *indexes_of_mounts(parts.tree.root)) if folder.is_dir()]


def _generations(folder: Path) -> int:
    generations = Generations(folder, engine("memory"))  # it opens none of them
    count = sum(name.startswith("gen-") for name in os.listdir(folder))
    with generations.lock(_WAIT) as held:
        if not held:
            raise LockTimeout("another process is folding the index", path=str(folder), hint="try again in a moment")
        io.unlink(folder / POINTER, missing_ok=True)
        generations.prune(())
    return count


def _vectors(parts: Parts, target: Target) -> int:  # noqa: ARG001  a cache goes as a whole
    """What was embedded can be guessed from its vector: every model's vectors go, and are made anew."""
    files = list(_files(parts.index.folder / VECTORS))
    for path in files:
        io.unlink(path, missing_ok=True)
    return len(files)


def _states(parts: Parts, target: Target) -> int:  # noqa: ARG001  a cache goes as a whole
    """What is known of state documents is learned anew from the files."""
    files = [path for path in _files(parts.index.folder) if path.name.startswith(STATES)]
    for path in files:
        io.unlink(path, missing_ok=True)
    return len(files)


def _past(parts: Parts, target: Target) -> int:  # noqa: ARG001  a cache goes as a whole
    """What was read of revisions is read anew, of those that are left."""
    return forget_past(parts.repository.common_dir)


def _triggers(parts: Parts, target: Target) -> int:  # noqa: ARG001  a cache goes as a whole
    """What is known of episodes and rules is learned anew from the files."""
    folders = _index_folders(parts)
    files = [path for folder in folders for path in _files(folder) if path.name.startswith(TRIGGERS)]
    for path in files:
        io.unlink(path, missing_ok=True)
    return len(files)


def _comparisons(parts: Parts, target: Target) -> int:  # noqa: ARG001  a cache goes as a whole
    """Which items were compared, by path, and which of them contradict each other."""
    path = parts.index.folder / COMPARED
    known = os.path.lexists(path)
    io.unlink(path, missing_ok=True)
    return int(known)


def _sidecars(parts: Parts, target: Target) -> int:
    """Large values of state documents lie beside them, outside of git."""
    count = 0
    for entry in list(parts.tree.scan(CONTENT)):
        document = document_of_sidecar(entry.path)
        if document and target.means(parts.repository.full(document)):
            parts.tree.remove(entry.path)
            count += 1
    return count


def _checkpoints(parts: Parts, target: Target) -> int:
    """A payload that holds a version goes: its checkpoint then has none, as in a clone."""
    count = 0
    for entry in list(parts.tree.scan(CHECKPOINTS)):
        if entry.regular and entry.path.endswith(f"/{PAYLOAD}") and _packed_in(parts, entry.path, target):
            parts.tree.remove(entry.path)
            count += 1
    return count


def _packed_in(parts: Parts, path: str, target: Target) -> bool:
    """Whether compressed bytes hold all phrases of some version; those that nobody can read may hold anything."""
    missing = [set(version) for version in target.traces.versions if version]
    overlap = max((len(phrase) for version in missing for phrase in version), default=0)
    before = b""
    try:
        with os.fdopen(parts.tree.open_read(path), "rb") as source:
            read = zstd.reader(source.read)
            while data := read(_PIECE):
                window = before + data
                for version in missing:
                    version -= {phrase for phrase in version if phrase in window}
                before = window[-overlap:] if overlap else b""
    except CorruptRecord:
        return True
    return not all(missing)


PLACES: dict[str, Purge] = {
    "journal": _journal,
    "set aside": _set_aside,
    "counts of uses": _uses,
    "record of what was handed out": _served,
    "what agents were warned with": _warnings,
    "events that wait": _events,
    "damaged journals": _salvage,
    "secondary location": _secondary,
    "remembered conflicts": _resolutions,
    "conflicts that a merge left": _merges,
    "index generations": _indexes,
    "vectors": _vectors,
    "archives": purge_archives,
    "what was read of the past": _past,
    "index of state documents": _states,
    "index of episodes, rules and preferences": _triggers,
    "comparisons": _comparisons,
    "large values": _sidecars,
    "checkpoints": _checkpoints,
}


def out_of_reach(parts: Parts) -> list[str]:
    """Where the item may still be and memfs cannot go: remotes, clones, copies."""
    found = [f"the remote {name} ({_plain(url)}) and its forks" for name, url in remotes(parts)]
    if any(entry.path.endswith(".tar.zst") for entry in parts.tree.scan(ARCHIVE)):
        found.append("archives of iterations: 'memfs archive unpack' those that may hold it, erase, and archive anew")
    found.append("other clones, and repositories that borrow objects from this one")
    found.append("processes that are running now, backups and snapshots of this disk made by others")
    return found


def remotes(parts: Parts) -> list[tuple[str, str]]:
    """The remotes of the repository with their addresses."""
    rows = parts.repository.git.settings(r"^remote\..*\.url$")
    return [(name.removeprefix("remote.").removesuffix(".url"), url) for name, url in rows]


def _plain(url: str) -> str:
    scheme, found, rest = url.partition("://")
    return f"{scheme}://{rest.rpartition('@')[2]}" if found else url


def _files(folder: Path) -> Iterator[Path]:
    for place, _, names in os.walk(folder):
        for name in sorted(names):
            path = Path(place) / name
            if path.is_file() and not path.is_symlink():
                yield path


__all__ = ["PLACES", "holds", "out_of_reach", "purge", "remotes"]
