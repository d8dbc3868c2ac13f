"""Packs objects so that the repository stays small and its log fast, finds damage by ``git fsck``, and puts lost
objects back.

Nothing is ever pruned. An object is named by its content, so that what is put back is provably what was lost.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from contextlib import suppress

from memfs.dataclass import dataclass
from memfs.errors import HistoryError, MemfsError
from memfs.fs import io
from memfs.git import objects
from memfs.git.objects import Object, Objects, TreeEntry, build
from memfs.git.process import contents, entries_of, finish, sizes
from memfs.git.repository import Repository
from memfs.model.item import object_id

PATIENCE = 900.0
# A commit of one item writes six or seven loose objects, spread evenly over 256 folders: this many are 1,000 commits.
LOOSE_DUE = 6000
PACKS_DUE = 40
PACKS_JOINED = 8
_SAMPLED = ("17", "5e", "a3", "d9")


def due(repository: Repository) -> bool:
    """Whether about 1,000 commits have gathered since objects were last packed; looks at five folders only."""
    folder = repository.common_dir / "objects"
    loose = sum(len(io.listed(folder / name)) for name in _SAMPLED) * 256 // len(_SAMPLED)
    packs = sum(name.endswith(".pack") for name in io.listed(folder / "pack"))
    return loose >= LOOSE_DUE or packs >= PACKS_DUE


def maintain(repository: Repository) -> int:
    """Pack loose objects, join many packs, write the commit-graph with changed paths; the caller holds ``commit.lock``.

    Returns:
        How many bytes less the objects take.

    Raises:
        GitFailed: git refused; the repository is as usable as before.
    """
    top = repository.common_dir / "objects"
    before = io.weigh(top)
    packs = sum(name.endswith(".pack") for name in io.listed(top / "pack"))
    # One pack of all lets git store each version as a difference; what is unreachable is kept, as without joining.
    join = ("-a", "-k") if packs >= PACKS_JOINED else ()
    repository.git.run("repack", "-d", "-q", *join, timeout=PATIENCE)
    write_graph(repository)
    for name in ("pack", "info", "info/commit-graphs"):
        if (top / name).is_dir():
            io.sync_folder(top / name)
    return max(0, before - io.weigh(top))


def write_graph(repository: Repository, seconds: float = PATIENCE) -> None:
    """Write git's cache of the graph, with the paths that each commit changed.

    Raises:
        GitFailed: git refused, or took longer than so many seconds.
    """
    if repository.head_commit() is not None:
        options = ("write", "--reachable", "--changed-paths", "--split", "--no-progress")
        repository.git.run("commit-graph", *options, timeout=seconds)


def sound(repository: Repository, blobs: Iterable[str]) -> set[str]:
    """Those of the contents that git gives whole, each proved by its id; of the others one by one can be asked."""
    found: set[str] = set()
    with suppress(HistoryError):
        for name, _ in contents(repository.git, sizes(repository.git, blobs), PATIENCE):
            found.add(name)
    return found


_ARGUMENTS = ("--full", "--strict", "--no-dangling", "--no-progress", "--name-objects")
_NAMED = re.compile(r"(?<!pack-)\b([0-9a-f]{40})\b(?: \((\S+)\))?")
_LOOSE = re.compile(r"objects/([0-9a-f]{2})/([0-9a-f]{38})\b")
_OF_OBJECT = re.compile(
    r"object corrupt or missing|^missing |^loose object|^packed |^cannot unpack|^index CRC mismatch|hash mismatch"
    r"|^unable to (?:unpack|read|parse)|garbage at end|^corrupt"
)
# What fsck says beside the point: how it came upon an object, and what zlib thought of it.
_ASIDE = re.compile(r"^(?:hint:|notice|dangling|unreachable|broken link|to |inflate|bad object|Could not read)")
_LINT = re.compile(r"^(?:warning )?in (?:blob|tree|commit|tag) |: invalid reflog entry|^bad ref for \S*logs/")


@dataclass(frozen=True, slots=True, kw_only=True)
class FsckFinding:
    """One thing that git found.

    Attributes:
        message: what it is.
        object: the id of the damaged or missing object, "" where it is about something else.
        serious: false for what is merely untidy: no content is lost by it.
    """

    message: str
    object: str = ""
    serious: bool = True


def examine(repository: Repository) -> list[FsckFinding]:
    """Everything that git finds wrong when it reads every object of the repository.

    Raises:
        GitFailed: git took too long or is missing, so that nobody can tell.
    """
    process = repository.git.open("fsck", *_ARGUMENTS, variables={})
    _, out, err = finish(process, b"", PATIENCE)
    lines = [*out.decode("utf-8", "replace").splitlines(), *err.splitlines()]
    found: dict[str, FsckFinding] = {}
    for line in lines:
        finding = _read(line)
        if finding is not None:
            key = finding.object or finding.message
            before = found.get(key)
            found[key] = finding if before is None or len(finding.message) > len(before.message) else before
    return list(found.values())


def _read(line: str) -> FsckFinding | None:
    text = line.strip()
    level, colon, rest = text.partition(": ")
    said = rest if colon and level in ("error", "fatal", "warning") else text
    if level == "warning" or (level == "error" and _LINT.search(said)) or said.startswith("warning in "):
        return FsckFinding(message=said, serious=False)
    loose = _LOOSE.search(said)
    named = _NAMED.search(said)
    if not said or (_ASIDE.search(said) and not loose):
        return None
    if loose:
        return lost(loose[1] + loose[2])
    if named and _OF_OBJECT.search(said):
        return lost(named[1], named[2] or "")
    return FsckFinding(message=said)


def lost(name: str, place: str = "") -> FsckFinding:
    """The finding that an object is damaged or missing; ``place`` is how git came upon it."""
    where = f" ({place})" if place else ""
    return FsckFinding(message=f"the git object {name}{where} is damaged or missing", object=name)


def put_back(repository: Repository, known: Objects) -> bool:
    """Write damaged or missing objects again, of which the bytes are known; return whether they are whole now.

    Raises:
        StorageIO: they could not be written.
    """
    objects.write_loose(repository.common_dir / "objects", known)
    return all(_whole(repository, name) for name in known)


def known_objects(repository: Repository, wanted: Collection[str], contents: Iterable[bytes]) -> Objects:
    """Those of the wanted objects whose bytes are known: from contents, and for folders from the person's index."""
    found: Objects = {}
    for data in contents:
        name = object_id("blob", data)
        if name in wanted:
            found[name] = Object("blob", data)
    if set(wanted) - set(found):
        with suppress(MemfsError):  # a damaged index knows no folders
            found |= {name: tree for name, tree in _trees_of_index(repository).items() if name in wanted}
    return found


def _whole(repository: Repository, name: str) -> bool:
    try:
        return bool(repository.object(name).kind)
    except HistoryError:
        return False


def _trees_of_index(repository: Repository) -> Objects:
    """The trees that a commit of the person's index would have."""
    staged = {one.path: TreeEntry(one.mode, one.blob) for one in entries_of(repository.git) if one.stage == 0}
    made: Objects = {}
    build(staged, made)
    return made
