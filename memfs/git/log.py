"""Reads history: the log, ``diff`` and ``blame`` of memory files, and the content of the working files.

Patches are made by memfs itself, and lines traced by it: no colour, pager, conversion, ignored commit or external
program of the repository takes part.
"""

from __future__ import annotations

import difflib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from io import StringIO

from memfs.config_names import SETTINGS_FILE
from memfs.dataclass import dataclass
from memfs.errors import HistoryUnavailable, ItemTooLarge, NotRegularFile, PathEscape
from memfs.fs.tree import Tree
from memfs.git import objects
from memfs.git.commit_object import parse_commit
from memfs.git.objects import DEEPEST, EMPTY_TREE, FILE, FOLDER, REGULAR, TreeEntry, tree_of
from memfs.git.repository import Repository, parse_moment, since_filter
from memfs.model.time import utc_now

_SHORT = 7
_SNIFFED = 8000
_ABSENT = "0" * _SHORT

Read = Callable[[str], bytes]


def differences(before: Mapping[str, str], after: Mapping[str, str], read: Read) -> str:
    """The patch from one state to another.

    Args:
        before, after: path to blob id.
        read: the content of a blob.
    """
    changed = sorted(path for path in before.keys() | after.keys() if before.get(path) != after.get(path))
    return "".join(line for path in changed for line in _file(path, before.get(path), after.get(path), read))


def _file(path: str, old: str | None, new: str | None, read: Read) -> Iterator[str]:
    old_name, new_name = _quoted(f"a/{path}"), _quoted(f"b/{path}")
    yield f"diff --git {old_name} {new_name}\n"
    if old is None:
        yield f"new file mode {FILE}\n"
    elif new is None:
        yield f"deleted file mode {FILE}\n"
    yield f"index {old[:_SHORT] if old else _ABSENT}..{new[:_SHORT] if new else _ABSENT}\n"
    before, after = read(old) if old else b"", read(new) if new else b""
    if b"\0" in before[:_SNIFFED] or b"\0" in after[:_SNIFFED]:
        yield f"Binary files {old_name if old else '/dev/null'} and {new_name if new else '/dev/null'} differ\n"
        return
    names = old_name if old else "/dev/null", new_name if new else "/dev/null"
    for line in difflib.unified_diff(_lines(before), _lines(after), *names):
        yield line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"


def _lines(data: bytes) -> list[str]:
    """Lines as git sees them: only a line feed ends one."""
    return StringIO(data.decode("utf-8", "replace"), newline="\n").readlines()


def _quoted(name: str) -> str:
    """A name in a patch's header, in quotes where it holds what would be misread."""
    return name if name.isprintable() and not {'"', "\\"} & {*name} else json.dumps(name)


LARGEST = 1 << 26
OUTSIDE_GIT = ".zst"
"""How names end that the workspace's ``.gitignore`` names: large bodies beside their documents."""


def working_files(repository: Repository, paths: tuple[str, ...]) -> dict[str, bytes]:
    """The content of every regular file at or below some workspace paths, but for bodies that are kept out of git."""
    tree = Tree(repository.workspace)
    found: dict[str, bytes] = {}
    try:
        for path in paths:
            entry = tree.entry(path)
            for file in [entry] if entry is not None and entry.regular else tree.scan(path, hidden=True):
                with suppress(FileNotFoundError, NotRegularFile, PathEscape, ItemTooLarge):
                    if file.regular and not file.path.endswith(OUTSIDE_GIT):
                        found[file.path] = tree.read(file.path, LARGEST).data
    finally:
        tree.close()
    return found


OWN_PATHS = ("ContextMemory", SETTINGS_FILE)
SHORT = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Revision:
    """One commit as a person reads it.

    Attributes:
        commit, short: its id, whole and abbreviated.
        author, email: who wrote it; an agent where the commit names one.
        committer: whose repository it was written in.
        time: when it was committed.
        subject, body: the message without its trailers.
        trailers: ``Memfs-Agent`` and its like, each with all its values.
        paths: what it changed below the workspace, against its first parent.
    """

    commit: str
    short: str
    author: str
    email: str
    committer: str
    time: datetime
    subject: str
    body: str
    trailers: Mapping[str, tuple[str, ...]]
    paths: tuple[str, ...]


def log(
    repository: Repository,
    paths: Iterable[str] = (),
    limit: int = 20,
    since: str | datetime | None = None,
    revision: str = "",
) -> list[Revision]:
    """The newest commits that touched some workspace paths, newest first; without paths, any of memfs's own.

    Args:
        since: leave out commits before this time; a datetime or text such as ``7d``, ``2026-03-01``.
        revision: the newest commit that counts, or a date; "" for HEAD.

    Raises:
        HistoryUnavailable: ``since`` is not a point in time, there is no such revision, or git's files are damaged.
    """
    head = repository.resolve(revision) if revision else repository.head_commit()
    if head is None or limit <= 0:
        return []
    arguments = [f"--max-count={limit}"]
    if since is not None:
        moment = since if isinstance(since, datetime) else parse_moment(since, utc_now())
        if moment is None:
            raise HistoryUnavailable(f"{since!a} is not a point in time", hint="2026-03-01, 7d, '3 days ago'")
        arguments.append(since_filter(moment))
    names = [one_line(repository.full(path)) for path in (tuple(paths) or OWN_PATHS)]
    request = b"\n".join((head.encode(), b"--", *names, b""))
    out = repository.git.run("rev-list", *arguments, "--stdin", data=request)
    return revisions(repository, out.decode().split())


def diff(repository: Repository, a: str, b: str | None = None, paths: Iterable[str] = ()) -> str:
    """The patch from one revision to another, or to the working files where ``b`` is None; "" when nothing differs.

    Raises:
        HistoryUnavailable: a revision does not exist.
    """
    wanted = tuple(paths) or OWN_PATHS
    before = _files(repository, repository.resolve(a), wanted)
    if b is not None:
        return differences(before, _files(repository, repository.resolve(b), wanted), repository.blob)
    contents = working_files(repository, wanted)
    after = {path: repository.blob_id(data) for path, data in contents.items()}
    made = {after[path]: data for path, data in contents.items()}
    return differences(before, after, lambda blob: made[blob] if blob in made else repository.blob(blob))


def one_line(name: bytes) -> bytes:
    """Return a path as git's input takes it.

    Raises:
        HistoryUnavailable: it holds a line break.
    """
    if b"\n" in name:
        raise HistoryUnavailable("a path holds a line break", path=ascii(name)[2:-1], hint="rename the file")
    return name


def _files(repository: Repository, commit: str, paths: Sequence[str]) -> dict[str, str]:
    files: dict[str, str] = {}
    for path in paths:
        entry = repository.entry(commit, path)
        if entry is not None and entry.mode == FOLDER:
            files |= repository.tree(commit, path)
        elif entry is not None and entry.mode in REGULAR:
            files[path] = entry.id
    return files


def revisions(repository: Repository, commits: Sequence[str]) -> list[Revision]:
    """Some commits, by their ids, as a person reads them."""
    if not commits:
        return []
    arguments = ("-r", "-z", "--root", "--no-renames", "--name-only", "--no-ext-diff", "--diff-merges=first-parent")
    out = repository.git.run("diff-tree", *arguments, "--stdin", data="\n".join((*commits, "")).encode())
    changed: dict[str, list[str]] = {commit: [] for commit in commits}
    current: list[str] = []
    for field in out.split(b"\0")[:-1]:
        name = field.decode("ascii", "replace")
        if name in changed:
            current = changed[name]
        elif (path := repository.below(field)) is not None:
            current.append(path)
    read = [parse_commit(repository.object(commit).data) for commit in commits]
    return [
        Revision(
            commit=commit,
            short=commit[:SHORT],
            author=one.author.name,
            email=one.author.email,
            committer=one.committer.name,
            time=one.time,
            subject=one.subject,
            body=one.body,
            trailers=one.trailers,
            paths=tuple(changed[commit]),
        )
        for commit, one in zip(commits, read, strict=True)
    ]


def line_of(repository: Repository, paths: Iterable[str], commit: str, without: str = "") -> dict[str, list[str]]:
    """The commits that changed one of some paths, children before parents, each with the nearest such parents.

    Args:
        without: leave out this commit and all that it came from.
    """
    names = b"".join(one_line(repository.full(path)) + b"\n" for path in paths)
    left_out = f"^{without}\n" if without else ""
    request = f"{commit}\n{left_out}--\n".encode() + names
    out = repository.git.run("rev-list", "--topo-order", "--parents", "--stdin", data=request)
    words = (line.split() for line in out.decode().splitlines())
    return {first: parents for first, *parents in words}


def changed_paths(repository: Repository, old: str, new: str, folder: str) -> Iterator[str]:
    """The workspace paths of the files below a folder that two commits have differently, in either of them or both.

    Raises:
        HistoryUnavailable: a commit or tree is not there, or damaged.
    """
    before, after = (repository.entry(commit, folder) for commit in (old, new))
    for path, sides in _differences(repository, tree_of(before), tree_of(after)):
        if any(one is not None and one.mode in REGULAR for one in sides):
            yield f"{folder}/{os.fsdecode(path)}"


_MOST = 2_000_000

Snapshot = Mapping[bytes, TreeEntry]
"""Entries by their path from the top of the working tree; folders are not among them."""


def snapshots(repository: Repository, commits: Sequence[str | None]) -> list[dict[bytes, TreeEntry]]:
    """For each commit (None: an empty one) its entries at the paths where any of them differs from the first.

    Raises:
        HistoryUnavailable: a commit or tree is not there, or damaged.
    """
    roots = [repository.root(commit) if commit else EMPTY_TREE for commit in commits]
    paths: set[bytes] = set()
    for root in dict.fromkeys(roots[1:]):
        paths.update(differing(repository, roots[0], root))
    made = []
    for root in roots:
        found = ((path, objects.find(repository.read_tree, root, tuple(path.split(b"/")))) for path in paths)
        made.append({path: entry for path, entry in found if entry is not None and entry.mode != FOLDER})
    return made


def differing(repository: Repository, one: str, other: str) -> Iterator[bytes]:
    """The paths of files, links and submodules that two trees have differently.

    Raises:
        HistoryUnavailable: a tree is not there or damaged, or they differ in more than two million names.
    """
    for path, entries in _differences(repository, one, other):
        if any(entry is not None and entry.mode != FOLDER for entry in entries):
            yield path


def _differences(
    repository: Repository, one: str, other: str
) -> Iterator[tuple[bytes, tuple[TreeEntry | None, TreeEntry | None]]]:
    """Each path that two trees have differently, with what either has there."""
    waiting = [(b"", one, other)]
    seen = 0
    while waiting:
        above, left, right = waiting.pop()
        here, there = repository.read_tree(left), repository.read_tree(right)
        for name in dict.fromkeys((*here, *there)):
            entries = here.get(name), there.get(name)
            if entries[0] == entries[1]:
                continue
            seen += 1
            if seen > _MOST or above.count(b"/") > DEEPEST:
                raise HistoryUnavailable("two trees differ in too many files", hint="run git fsck")
            yield above + name, entries
            trees = tree_of(entries[0]), tree_of(entries[1])
            if trees[0] != trees[1]:
                waiting.append((above + name + b"/", *trees))
