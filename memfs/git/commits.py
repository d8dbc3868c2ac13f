"""Turns groups of changes into commits on a branch, and keeps the person's index in step.

Commits are durable on return, and are rebuilt when the branch moved meanwhile. The caller holds the repository's
``commit.lock``.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterable, Mapping, Sequence

from memfs.dataclass import NamedTuple
from memfs.errors import WARNING, GitBusy, HistoryError, HistoryUnavailable, Problem
from memfs.fs import io
from memfs.git import objects
from memfs.git.busy import holder_of
from memfs.git.commit_object import CommitResult, Group, Identity, author, compose, encode_commit
from memfs.git.layout import HEADS, HEX, Head, require_branch
from memfs.git.objects import Objects, Parts, TreeEditor, TreeEntry
from memfs.git.process import wait_for_children
from memfs.git.repository import Repository, beyond, holds_commit, is_ancestor
from memfs.git.transaction import RefIndexStep, StepRecord, settle, take, unfinished

AT_MOST = 1000


class _Mark(NamedTuple):
    """What stays the same in a commit when it is rebased."""

    author: bytes
    message: bytes


def not_held(repository: Repository, groups: Sequence[Group], tip: str | None, since: str = "") -> list[Group]:
    """The groups that no commit after ``since`` made: same author, time, message and content.

    So our own commits are recognised after a crash between the branch's move and the journal's note of it.

    Each commit stands for one group at most, the oldest first: of two equal groups the second is not held by the commit
    of the first. A group that joins a line of history is held where the branch has that line, no matter who joined it.
    """
    if tip is None or not groups or tip == since:
        return list(groups)
    groups = [group for group in groups if not (group.merges and is_ancestor(repository, group.merges, tip))]
    if not groups:
        return []
    since = since if HEX.fullmatch(since) else ""
    person = repository.identity()
    marks = [_mark(commit_bytes(group, objects.EMPTY_TREE, (), person)) for group in groups]
    found: dict[_Mark, list[str]] = {}
    for mark, commit in _after(repository, groups, tip, since):
        if mark in marks:
            found.setdefault(mark, []).append(commit)
    return [group for group, mark in zip(groups, marks, strict=True) if not _taken(repository, group, found.get(mark))]


def _taken(repository: Repository, group: Group, commits: list[str] | None) -> bool:
    """Whether one of the commits, newest first, holds the group; that one is taken out."""
    for commit in reversed(commits or ()):
        if _holds(repository, commit, group):
            if commits is not None:
                commits.remove(commit)
            return True
    return False


def commit_bytes(group: Group, tree: str, parents: Sequence[str], person: Identity) -> bytes:
    """The commit object of a group."""
    return encode_commit(
        tree,
        parents,
        author(group.writers, person.author),
        person.committer,
        group.time,
        compose(group.message, group.writers),
    )


def _after(repository: Repository, groups: Sequence[Group], tip: str, since: str) -> list[tuple[_Mark, str]]:
    """The commits to look at with their marks, newest first: none of ours is older than its group."""
    known = [since] if since and holds_commit(repository, since) else []
    names = beyond(repository, [tip], known, most=AT_MOST, since=min(group.time for group in groups))
    return [(_mark(repository.object(name).data), name) for name in names]


def _mark(data: bytes) -> _Mark:
    head, _, message = data.partition(b"\n\n")
    line = next((line for line in head.split(b"\n") if line.startswith(b"author ")), b"")
    return _Mark(line, message)


def _holds(repository: Repository, commit: str, group: Group) -> bool:
    for change in group.changes:
        entry = repository.entry(commit, change.path)
        blob = None if change.data is None else repository.blob_id(change.data)
        if (entry.id if entry else None) != blob:
            return False
    return True


Named = Mapping[Parts, str | None]

ATTEMPTS = 8
PATIENCE = 2.0
LOOSE_AT_MOST = 20
_PAUSE = 0.02


class Chain(NamedTuple):
    """Commits made in memory.

    Attributes:
        commits: their ids, oldest first.
        objects: all that is new.
        editor: finds paths in the new trees.
        root: the last commit's tree, None when it is empty.
        contents: every blob that a path was given; None for removed.
    """

    commits: tuple[str, ...]
    objects: Objects
    editor: TreeEditor
    root: str | None
    contents: Mapping[bytes, frozenset[str | None]]


def commit(
    repository: Repository, groups: Sequence[Group], ref: str, since: str = "", *, asked: bool = False
) -> CommitResult:
    """Put each group on a branch as one commit; on return the commits are durable.

    A group whose changes the branch holds already makes no commit; one that joins another line makes a commit with two
    parents, or moves a branch that has nothing of its own along that line. Where the branch is HEAD's, the person's
    index learns the paths; an entry that the person staged differently stays theirs and is reported. Where it is
    another branch, only that branch moves. The caller holds ``commit.lock``.

    Args:
        ref: full name of the branch, or ``HEAD`` where it is detached and the repository allows that.
        since: a commit that was made before any of the groups waited: only what the branch got after it can be theirs.
            "" where none is known; then a group that repeats a recent commit to the second is taken for that commit.
        asked: a person asked for them (``Signing.signed``).

    Raises:
        GitBusy: a person is in the middle of something; nothing has changed.
        SigningFailed: commits must be signed, and one cannot be; nothing has changed.
        HistoryUnavailable: the branch is gone.
        HistoryError, StorageIO: git or the disk refused. Whether the branch moved is for the next call to find out.
    """
    _finish(repository)
    until = time.monotonic() + PATIENCE
    stored: set[str] = set()
    for attempt in range(ATTEMPTS):
        _wait(repository, until, again=attempt > 0)
        head = repository.head()
        tip = _tip(repository, head, ref)
        chain = build(repository, groups, tip, since, asked)
        if not chain.commits:
            return CommitResult(commits=(), left_staged=())
        store(repository, {name: item for name, item in chain.objects.items() if name not in stored})
        stored |= chain.objects.keys()
        left = take(repository, _step(head, ref, tip, chain))
        if left is not None:
            repository.remember(chain.editor.made)
            shown = (repository.below(path) for path in sorted(left))
            return CommitResult(commits=chain.commits, left_staged=tuple(path for path in shown if path))
        time.sleep(_PAUSE * (1 + attempt) * random.random())  # noqa: S311 - spreads retries, guards nothing
    raise GitBusy("the branch moved again and again", hint="commits wait until it rests")


def recover(repository: Repository) -> list[Problem]:
    """Finish or undo what an ended memfs process left in the middle of a commit; the caller holds ``commit.lock``.

    Afterwards the person's index agrees with HEAD about our paths as it did before, and no lock of ours is left. Locks
    of others are reported by ``Repository.busy``, never removed.
    """
    io.sweep(repository.state)
    return [
        Problem(
            path="",
            code="InterruptedCommit",
            message=f"a commit to {record.ref} had been interrupted; its lock was removed",
            hint="nothing is lost: what was waiting is committed again",
            severity=WARNING,
        )
        for record in _finish(repository)
    ]


def build(
    repository: Repository, groups: Sequence[Group], tip: str | None, since: str = "", asked: bool = False
) -> Chain:
    """Make the commits of some groups on top of a commit, in memory."""
    made: Objects = {}
    editor = TreeEditor(repository.read_tree, made)
    root = repository.root(tip) if tip else None
    person = repository.identity()
    commits: list[str] = []
    named = [(group, _named(repository, group)) for group in not_held(repository, groups, tip, since)]
    for group, changes in named:
        other = group.merges if group.merges and holds_commit(repository, group.merges) else ""
        if other and not commits and _leads_there(repository, changes, tip, other):
            root = repository.root(other)
            commits.append(other)
            continue
        _add_blobs(repository, group, changes, made, other)
        after = editor.apply(root, changes)
        if after == root and not other:
            continue
        root = after
        tree = after or objects.add(made, "tree", b"")
        parents = [parent for parent in (commits[-1] if commits else tip, other) if parent]
        unsigned = commit_bytes(group, tree, parents, person)
        commits.append(objects.add(made, "commit", repository.signing.signed(unsigned, group.writers, asked=asked)))
    contents = _contents(changes for _, changes in named)
    return Chain(commits=tuple(commits), objects=made, editor=editor, root=root, contents=contents)


def store(repository: Repository, made: Objects) -> None:
    """Make objects durable: a few as loose files, many as one pack."""
    folder = repository.common_dir / "objects"
    if len(made) <= LOOSE_AT_MOST:
        objects.write_loose(folder, made)
        return
    repository.git.run("index-pack", "--stdin", data=objects.pack(made))
    io.sync_folder(folder / "pack")


def _named(repository: Repository, group: Group) -> Named:
    """The ids of a group's contents by path, None for what is removed."""
    return {
        objects.split(repository.full(change.path)): None if change.data is None else repository.blob_id(change.data)
        for change in group.changes
    }


def _contents(named: Iterable[Named]) -> dict[bytes, frozenset[str | None]]:
    """Every blob that each path was given."""
    found: dict[bytes, set[str | None]] = {}
    for changes in named:
        for parts, blob in changes.items():
            found.setdefault(b"/".join(parts), set()).add(blob)
    return {path: frozenset(blobs) for path, blobs in found.items()}


def _leads_there(repository: Repository, changes: Named, tip: str | None, other: str) -> bool:
    """Whether the branch need only move along the other line: it has nothing of its own, and would hold the same."""
    if tip is not None and not is_ancestor(repository, tip, other):
        return False
    after = TreeEditor(repository.read_tree, {}).apply(repository.root(tip) if tip else None, changes)
    return (after or objects.EMPTY_TREE) == repository.root(other)


def _add_blobs(repository: Repository, group: Group, changes: Named, made: Objects, other: str) -> None:
    """Make objects of a group's contents, but for what the other line has at the same path."""
    there = repository.root(other) if other else None
    for (parts, blob), change in zip(changes.items(), group.changes, strict=True):
        known = objects.find(repository.read_tree, there, parts)
        if change.data is not None and (known is None or known.id != blob):
            objects.add(made, "blob", change.data)


def _step(head: Head, ref: str, tip: str | None, chain: Chain) -> RefIndexStep:
    entries: dict[bytes, TreeEntry | None] = {}
    if ref in (head.ref, "HEAD"):
        look = chain.editor.tree
        entries = {path: objects.find(look, chain.root, tuple(path.split(b"/"))) for path in chain.contents}
    return RefIndexStep(head=head, ref=ref, old=tip, new=chain.commits[-1], entries=entries, contents=chain.contents)


def _tip(repository: Repository, head: Head, ref: str) -> str | None:
    if ref == "HEAD":
        if head.ref is not None:
            raise HistoryError("HEAD is not detached", hint="name the branch")
        return head.commit
    if require_branch(ref) == head.ref:
        return head.commit
    elsewhere = holder_of(repository.layout, ref)
    if elsewhere:
        raise GitBusy(elsewhere, hint="commits to it wait until it is not")
    tip = repository.ref_commit(ref)
    if tip is None:
        raise HistoryUnavailable(f"the branch {ref.removeprefix(HEADS)} is gone", hint="commit to the current one")
    return tip


def _wait(repository: Repository, until: float, *, again: bool) -> None:
    """Wait until git rests. A step looks itself at running processes; here they are, where it was not taken."""
    while (found := repository.obstacle(processes=again)) is not None:
        if not found.transient or time.monotonic() >= until:
            raise GitBusy(found.reason, hint="commits wait until it is over")
        time.sleep(_PAUSE)


def _finish(repository: Repository) -> list[StepRecord]:
    """End the steps that dead processes began, in whichever workspace; return those of which something was left.

    Costs two listings where there are none, so that ``commit`` can rely on it by itself.
    """
    ended = []
    wait_for_children(repository.state)  # where there was no index, a step leaves no trace until git has made one
    for state in unfinished(repository):
        wait_for_children(state)
        record = settle(repository, state, died=True)
        if record is not None:
            ended.append(record)
    return ended
