"""The merge driver: join three versions of one file while git merges, rebases, cherry-picks or reverts.

Git may call it in the middle of anything: it opens no workspace, takes no lock, and touches neither index nor
journal. Where versions cannot be joined, both stay in the file between conflict markers.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from contextlib import closing, suppress
from pathlib import Path

from memfs.config import load_kinds
from memfs.dataclass import dataclass
from memfs.errors import HistoryError, MemfsError
from memfs.format.codec import DOCUMENT_LIMIT, Codec, schema_of
from memfs.format.field_merge import FieldConflict
from memfs.format.file_merge import FileMerger
from memfs.format.text import whole_marked
from memfs.fs import io
from memfs.fs.tree import Tree
from memfs.fs.workspace_location import MEMORY_FOLDER
from memfs.git.layout import Layout, discover, read_small, require_trusted, state_folder
from memfs.git.process import GitCommands, files_of
from memfs.model.ids import stem_of
from memfs.model.item import object_id
from memfs.model.kinds import KindTable

JOINED, UNDECIDED, FAILED = 0, 1, 3
_BOTH = frozenset({"ours", "theirs"})
_MARKER_SIZE = 7
_NAMED = "GITHEAD_"
_COMMIT = re.compile(r"[0-9a-f]{40}")
_OF_MOVES = 1  # by which git's markers are longer in a file that both sides moved


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverResult:
    """What git gets back.

    Attributes:
        code: 0 where the file is joined; 1 where somebody has to decide before the merge can be committed; 3 where
            nothing could be written.
        notes: one sentence for each conflict, for the person who called git.
    """

    code: int
    notes: tuple[str, ...] = ()


def drive(
    base: Path, ours: Path, theirs: Path, path: str, *, marker_size: int = _MARKER_SIZE, top: Path | None = None
) -> DriverResult:
    """Join three versions of a file and put the outcome in the place of ours, in one step.

    Args:
        base, ours, theirs: git's temporary files; an empty base is none.
        path: of the file that is merged, below the work tree, "/" separated.
        marker_size: how long git's conflict markers are; those of two more than usual, and longer ones, say that git
            makes a common ancestor of two: no one decides a conflict in it.
        top: the work tree; the current folder where git calls.

    Raises:
        MemfsError, OSError: nothing was changed; ``give_up`` leaves both versions in the file.
    """
    root, inside = place_of(path)
    folder = (top or Path.cwd()) / root
    begun, mine, other = (io.read_file(version, DOCUMENT_LIMIT) for version in (base, ours, theirs))
    kinds, schemas = KindTable(), None  # those that cannot be read are not known: their files are joined as text
    with suppress(MemfsError, OSError), closing(Tree(folder)) as tree:
        kinds, schemas = load_kinds(tree)
    merger = FileMerger(Codec(schemas, kinds, allow_invisible=True))
    ancestor = marker_size > _MARKER_SIZE + _OF_MOVES
    strange = frozenset() if ancestor else _strangers(merger, folder, path, inside, (begun, mine, other))
    if len(strange & _BOTH) == 1:
        first_unknown, own = (mine, other) if "ours" in strange else (other, mine)
        if marker_size == _MARKER_SIZE:
            return _parted(ours, own, inside)
        _remind(folder, inside, b"" if "base" in strange else begun, own)
        return _parted(ours, first_unknown, inside)
    merged = merger.merge(inside, None if strange else begun or None, mine, other, marker_size=marker_size)
    undecided = bool(merged.conflicts) and not (ancestor or merged.whole or merged.recorded)
    if merged.data is not None and merged.data != mine:
        io.write_file(ours, merged.data, ours.stat().st_mode & 0o777, durable=False)
    notes = [f"{sentence(one)} (memfs team conflicts)" for one in merged.conflicts]
    notes = [merged.reason or "both versions are in the file"] if merged.whole else notes
    notes += [f"look at the file, then 'memfs team conflicts resolve {inside}' takes it"] if undecided else []
    return DriverResult(
        code=UNDECIDED if merged.whole or merged.data is None or undecided else JOINED,
        notes=tuple(f"{inside}: {note}" for note in notes),
    )


def _strangers(
    merger: FileMerger, folder: Path, path: str, inside: str, versions: tuple[bytes, bytes, bytes]
) -> frozenset[str]:
    """The versions that are of another item, by what the commits say; where git names none, as they seem."""
    if schema_of(inside):
        return frozenset()
    with suppress(MemfsError, OSError):
        layout = _layout(folder)
        git = GitCommands(layout, state_folder(layout))
        base, other = _brought_in(git, layout)
        found = unrelated(git, path, versions, (base, "HEAD", other))
        if other or "ours" in found:
            return found
    unlike = merger.unrelated(inside, versions[0] or None, *versions[1:])
    return unlike if len(unlike) != 1 else _BOTH - unlike  # the base is of the item that git followed here


def _brought_in(git: GitCommands, layout: Layout) -> tuple[str, str]:
    """The commit that git brings in, and the one from which that and ours began; "" for what git does not say.

    Git names that of a merge to the driver, and notes that of a rebase.
    """
    named = _named()
    merging = bool(named)
    if not named:
        lines = (read_small(layout.git_dir / "rebase-merge/done") or "").splitlines()
        named = lines[-1].split()[1:2] if lines else []
    if len(named) != 1 or not _COMMIT.fullmatch(named[0]):
        return "", ""
    if not merging:
        return f"{named[0]}^", named[0]
    bases = git.run("merge-base", "--all", "HEAD", named[0], accept=(0, 1)).decode().split()
    return bases[0] if len(bases) == 1 else "", named[0]


def _remind(folder: Path, path: str, begun: bytes, own: bytes) -> None:
    """Remind memfs of an item whose place git gives to another one, which the other place has as well.

    What comes of them goes there, and git forgets that it was undecided where both sides have the same there.
    """
    from memfs.store.recovery import MissedItem, MissedItems  # few merges need it, and git waits for each file

    layout = _layout(folder)
    git = GitCommands(layout, state_folder(layout))
    joined = git.run("cat-file", "--batch-check", data=b"HEAD\n").decode().split()[:1]
    joined += [name for name in _named() if _COMMIT.fullmatch(name)]
    begun_id, own_id = (object_id("blob", data) if data else "" for data in (begun, own))
    MissedItems(state_folder(layout)).remind(MissedItem(path, begun_id, own_id, tuple(joined)))


def _named() -> list[str]:
    """The commits of a merge that git names to the driver."""
    return [name.removeprefix(_NAMED) for name in os.environ if name.startswith(_NAMED)]


def _parted(ours: Path, own: bytes, path: str) -> DriverResult:
    """Leave to a file the version that is its own: the other is of an item that git takes for this one."""
    io.write_file(ours, own, ours.stat().st_mode & 0o777, durable=False)
    note = f"{path}: git took it for another item, which one side removed; 'memfs team conflicts resolve' parts them"
    return DriverResult(code=UNDECIDED, notes=(note,))


def give_up(ours: Path, theirs: Path, path: str, reason: str, marker_size: int = _MARKER_SIZE) -> DriverResult:
    """Leave both versions in the file, between markers, as git's own text merge would.

    Raises:
        OSError, MemfsError: not even that could be done.
    """
    data = whole_marked(io.read_file(ours), io.read_file(theirs), marker_size)
    io.write_file(ours, data, durable=False)
    return DriverResult(code=UNDECIDED, notes=(f"{path}: {reason}; both versions are in the file",))


def place_of(path: str) -> tuple[str, str]:
    """The workspace's folder below the work tree, and the file's path below the workspace."""
    parts = path.split("/")
    if MEMORY_FOLDER in parts[:-1]:
        at = parts.index(MEMORY_FOLDER)
        return "/".join(parts[:at]), "/".join(parts[at:])
    return "/".join(parts[:-1]), parts[-1]


def sentence(conflict: FieldConflict) -> str:
    """What is kept of a conflict, and what waits for a decision."""
    if not conflict.field:
        return f"one side removed it, the other changed it: it is {conflict.kept}"
    return f"both sides changed {conflict.field}: one value is kept, the other waits for your decision"


def _layout(folder: Path) -> Layout:
    layout = discover(folder)
    if layout is None:
        raise HistoryError("this is not a repository", path=str(folder), hint="run git there")
    require_trusted(layout)
    return layout


def unrelated(git: GitCommands, path: str, versions: Sequence[bytes], commits: Sequence[str]) -> frozenset[str]:
    """Which versions of a file are of another item than its path says: of ``base``, ``ours`` and ``theirs``.

    Where a commit has no such path, git followed the file there from another place: of the same item, if its id is the
    same there. Where it has something else there, git joined other files first, whose places collided with this one.

    Args:
        path: of the file that is merged, below the top of the repository.
        versions: the base, ours and theirs.
        commits: from which they are; "" for one that is not known, whose version is not looked at.

    Raises:
        GitFailed: a commit is not there.
    """
    if "\n" in path:  # git would be asked for something else
        return frozenset()
    known = [number for number, commit in enumerate(commits) if commit and versions[number]]
    asked = os.fsencode("".join(f"{commits[number]}:{path}\n" for number in known))
    rows = git.run("cat-file", "--batch-check", data=asked).split(b"\n") if known else []
    strange, names = set(), ("base", "ours", "theirs")
    for number, row in zip(known, rows, strict=False):
        if row.endswith(b" missing"):
            blob = object_id("blob", versions[number])
            paths = (os.fsdecode(path) for path, one in files_of(git, commits[number]).items() if one.id == blob)
            places = [found for found in paths if not schema_of(found)]
            if places and stem_of(path) not in map(stem_of, places):
                strange.add(names[number])
        elif commits[-1] and row.split()[0] != object_id("blob", versions[number]).encode():
            strange.add(names[number])  # git joined others into it before
    return frozenset(strange)
