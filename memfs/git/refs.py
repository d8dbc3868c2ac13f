"""Reads HEAD, branches and other refs from git's own files, and keeps the lists of agents' and of quarantined branches.

Reading starts no process, and a garbled ref raises instead of being guessed at. No ref is moved here. The lists lie in
the git common folder: no clone, checkout, reset or stash touches them, and they hold for every working tree. From a
quarantined branch no memory is given to anybody.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from memfs import errors
from memfs.dataclass import NamedTuple
from memfs.fs import io
from memfs.git.layout import Layout, read_small
from memfs.pattern import regex

if TYPE_CHECKING:
    from memfs.git.repository import Repository

HEX = regex(r"[0-9a-f]{40}")
NULL = "0" * 40
HEADS = "refs/heads/"
PER_WORKTREE = ("refs/bisect/", "refs/worktree/", "refs/rewritten/")
"""Refs of which each working tree has its own."""
_BRANCH = regex(
    r"refs/heads/(?!/)(?!.*(?:\.\.|//|@\{|\.lock(?:/|$)|/\.))[^\x00-\x20\x7f~^:?*\[\\.][^\x00-\x20\x7f~^:?*\[\\]*(?<![./])"
)
_DEPTH = 5
_CHECK = "run git fsck; what memfs wrote since waits until this is repaired"


class Head(NamedTuple):
    """Where HEAD points.

    Attributes:
        ref: the branch; None = detached, or not to be known.
        commit: None = a branch without a commit yet, or, where ``damage`` says so, not to be known.
        damage: what is wrong with git's own files, in words; "" when nothing is.
    """

    ref: str | None
    commit: str | None
    damage: str = ""

    @property
    def branch(self) -> str:
        """The branch as people name it; "" where HEAD is detached, or nobody can tell."""
        return (self.ref or "").removeprefix(HEADS)


class Refs:
    """The refs of one working tree. Every call looks at the disk; only the parsed ``packed-refs`` is kept."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._packed: tuple[tuple[int, int, int] | None, Mapping[str, str]] = (None, {})

    def head(self) -> Head:
        """Where HEAD points. Files that a power cut left empty or garbled are reported as damage, never guessed at."""
        path = f"{self._layout.git_dir}/HEAD"
        try:
            text = read_small(path) or (f"ref: {os.readlink(path)}" if os.path.islink(path) else "")
        except (errors.MemfsError, OSError) as error:
            return Head(None, None, f"HEAD is unreadable: {error}")
        if HEX.fullmatch(text):
            return Head(None, text)
        ref = text.removeprefix("ref:").strip()
        if not text.startswith("ref:") or not _sound(ref):
            return Head(None, None, "HEAD is unreadable")
        try:
            return Head(ref, self.commit(ref))
        except errors.HistoryUnavailable as error:
            return Head(ref, None, error.message)

    def commit(self, ref: str) -> str | None:
        """The commit a ref names; None when there is no such ref.

        Raises:
            HistoryUnavailable: its file is empty, garbled or cannot be read.
        """
        if not _sound(ref):
            return None
        try:
            return self._commit(ref, _DEPTH)
        except errors.HistoryUnavailable:
            raise
        except (errors.MemfsError, OSError) as error:
            raise errors.HistoryUnavailable(f"{ref!a} is unreadable: {error}", hint=_CHECK) from error

    def _commit(self, ref: str, depth: int) -> str | None:
        path = f"{self._layout.git_dir if ref.startswith(PER_WORKTREE) else self._layout.common_dir}/{ref}"
        text = read_small(path)
        if text is None and (text := self._packed_refs().get(ref)) is None:
            return None
        if text.startswith("ref:") and depth:
            if not _sound(further := text.removeprefix("ref:").strip()):
                raise errors.HistoryUnavailable(f"{further!a} is no ref", hint=_CHECK)
            return self._commit(further, depth - 1)
        if not HEX.fullmatch(text):
            raise errors.HistoryUnavailable(f"{ref} is unreadable", path=path, hint=_CHECK)
        return text

    def _packed_refs(self) -> Mapping[str, str]:
        path = self._layout.common_dir / "packed-refs"
        try:
            facts = os.stat(path)
        except FileNotFoundError:
            return {}
        known = (facts.st_ino, facts.st_size, facts.st_mtime_ns)
        seen, packed = self._packed
        if known != seen:
            packed = parse_packed(io.read_file(path))
            self._packed = (known, packed)
        return packed


def parse_packed(data: bytes) -> dict[str, str]:
    """What each ref names, by the content of ``packed-refs``."""
    lines = os.fsdecode(data).splitlines()
    return {line[41:]: line[:40] for line in lines if line[:1] not in ("#", "^", "")}


def _sound(ref: str) -> bool:
    """Whether a text can be a ref that lies among the others; one cut off or filled up by a power cut cannot."""
    try:
        os.fsencode(ref)
    except UnicodeEncodeError:
        return False
    return ref.startswith("refs/") and "\0" not in ref and {"", ".", ".."}.isdisjoint(ref.split("/"))


def require_branch(ref: str) -> str:
    """Return the ref unchanged if it is a well-formed branch name such as ``refs/heads/main``.

    Raises:
        HistoryError: it is not.
    """
    if not is_branch(ref):
        raise errors.HistoryError(f"{ref!a} is not a branch", hint="give a full name such as refs/heads/main")
    return ref


def is_branch(ref: str) -> bool:
    """Whether a text is a well-formed full name of a branch."""
    return _BRANCH.fullmatch(ref) is not None


def at_a_tip(repository: Repository, path: str) -> bool:
    """Whether HEAD's commit or that of any ref has a file at a workspace path; so too where that is unknown.

    What memfs keeps outside git beside such a file is then no leftover: a checkout of that branch needs it.
    """
    try:
        return bool(blobs_at_tips(repository, path))
    except (errors.MemfsError, OSError):
        return True


def blobs_at_tips(repository: Repository, path: str) -> set[str]:
    """The ids of the blobs that a workspace path has in HEAD's commit and in those of all refs.

    Raises:
        HistoryError: git or its files are damaged or missing.
    """
    listed = repository.git.run("for-each-ref", "--format=%(objecttype) %(objectname) %(*objecttype) %(*objectname)")
    commits = {words[-1] for line in listed.splitlines() if (words := os.fsdecode(line).split())[-2] == "commit"}
    head = repository.head_commit()
    entries = (repository.entry(commit, path) for commit in {*commits, *([head] if head else [])})
    return {entry.id for entry in entries if entry is not None}


FILE = "memfs/branches.json"
OURS = "memfs/"
Row = TypeVar("Row")
_LIMIT = 4 << 20
_VERSION = 1
_PART = regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


class BranchEntry(NamedTuple):
    """One branch that an agent was given.

    Attributes:
        branch: full ref.
        folder: top of its working tree.
        git_dir: its git folder below the common one, "" until git has made it.
        start: the commit from which it began.
        agent: who works there, "" where nobody was named.
        time: when it was begun, as ISO 8601.
        ready: whether its working tree is complete.
    """

    branch: str
    folder: str
    git_dir: str = ""
    start: str = ""
    agent: str = ""
    time: str = ""
    ready: bool = False

    @property
    def name(self) -> str:
        """The branch as people name it here: without ``memfs/``."""
        return short_name(self.branch)


def short_name(ref: str) -> str:
    """A branch as people name it here: without ``memfs/``."""
    return ref.removeprefix(HEADS).removeprefix(OURS)


def ref_of(name: str) -> str:
    """The branch that a name means: ``memfs/NAME``, or, with a slash in it, the name as it stands.

    Raises:
        BranchRefused: no branch of memfs can be called so.
    """
    plain = name.removeprefix(HEADS)
    ref = HEADS + (plain if "/" in plain else OURS + plain)
    if not is_branch(ref) or not all(_PART.fullmatch(part) for part in plain.split("/")) or plain.endswith(".lock"):
        hint = "use letters, digits, '-', '_' and '.', as in memfs team branch start refactoring"
        raise errors.BranchRefused(f"no branch can be called {ascii(name)[:80]}", hint=hint)
    return ref


def read_list(common_dir: Path) -> dict[str, BranchEntry]:
    """The branches by their refs.

    Raises:
        CorruptRecord: the list cannot be read.
    """
    hint = "move it away; git worktree list still knows the folders"
    return {row.branch: row for row in read_rows(common_dir / FILE, "branches", _given, hint)}


def save_list(common_dir: Path, rows: Iterable[BranchEntry]) -> None:
    """Replace the list, durably. The caller holds ``commit.lock``.

    It is written before a working tree is begun, so that one that was interrupted can be taken up again.
    """
    save_rows(common_dir / FILE, "branches", sorted(rows, key=lambda row: row.branch))


def read_rows(path: Path, key: str, read: Callable[[Mapping[str, Any]], Row], hint: str) -> list[Row]:
    """The rows of a list of branches that memfs keeps in the git common folder; without a file there are none.

    Args:
        key: what the list is called in the file.
        read: makes a row of its values; raises ``ValueError`` or ``TypeError`` where they are none.

    Raises:
        CorruptRecord: it cannot be read.
    """
    try:
        value = json.loads(io.read_file(path, _LIMIT))
        if value["version"] != _VERSION:
            raise ValueError("another version")
        return [read(row) for row in value[key]]
    except FileNotFoundError:
        return []
    except (errors.NotRegularFile, errors.ItemTooLarge, ValueError, KeyError, TypeError, RecursionError) as error:
        what = "branches" if key == "branches" else f"{key} branches"
        raise errors.CorruptRecord(f"the list of {what} cannot be read", path=str(path), hint=hint) from error


def save_rows(path: Path, key: str, rows: Iterable[Any]) -> None:
    """Replace such a list, durably. The caller holds ``commit.lock``."""
    text = json.dumps({"version": _VERSION, key: [row._asdict() for row in rows]}, indent=2)
    io.make_private_folder(path.parent)
    io.write_file(path, text.encode() + b"\n")


def agent_at(common_dir: Path, git_dir: Path) -> str:
    """The agent that works in a working tree, by its git folder; "" where none was named, or nobody can tell."""
    if git_dir == common_dir:
        return ""
    try:
        rows = read_list(common_dir).values()
    except errors.MemfsError:
        return ""
    return next((row.agent for row in rows if row.git_dir and common_dir / row.git_dir == git_dir), "")


def _given(row: Mapping[str, Any]) -> BranchEntry:
    given = BranchEntry(**row)
    texts = (given.branch, given.folder, given.git_dir, given.start, given.agent, given.time)
    if not all(isinstance(text, str) and "\0" not in text for text in texts) or not is_branch(given.branch):
        raise ValueError("not a branch")
    if given.start and not HEX.fullmatch(given.start):
        raise ValueError("not a commit")
    if given.git_dir and not re.fullmatch(r"worktrees/(?!\.{1,2}$)[^/\0]+", given.git_dir):
        raise ValueError("not a working tree")
    return given


QUARANTINE_FILE = "memfs/quarantine.json"
_LOOK = "look at it with memfs show, log, diff or review; memfs team branch release lets it be read again"
_TAKE_BACK = (
    "git merged it into what is checked out: 'memfs undo --agent NAME' takes back what it wrote, "
    "and then memfs team branch release lets this be read again"
)


class QuarantinedBranch(NamedTuple):
    """One branch that nobody reads from.

    Attributes:
        branch: full ref.
        tip: its commit when it was quarantined; what came later counts as well.
        start: the commit from which it began, "" where that is not known.
        git_dir: the git folder of its working tree below the common one, "" where it has none: who renames the branch
            there does not get out.
        reason: why, in words.
        time: when, as ISO 8601.
        head: what was checked out where it was quarantined, "" where that is not known: what had been merged into that
            before is not held back.
    """

    branch: str
    tip: str
    start: str = ""
    git_dir: str = ""
    reason: str = ""
    time: str = ""
    head: str = ""

    @property
    def name(self) -> str:
        """The branch as people name it."""
        return self.branch.removeprefix(HEADS)


def quarantined(common_dir: Path) -> tuple[QuarantinedBranch, ...]:
    """What is quarantined in a repository; without a list, nothing.

    Raises:
        CorruptRecord: the list cannot be read. Nobody can tell what is quarantined then.
    """
    hint = "look at it; where nothing is to be quarantined, remove it"
    return tuple(read_rows(common_dir / QUARANTINE_FILE, "quarantined", _quarantined, hint))


def save_quarantined(common_dir: Path, entries: Iterable[QuarantinedBranch]) -> None:
    """Replace the list, durably. The caller holds ``commit.lock``."""
    save_rows(common_dir / QUARANTINE_FILE, "quarantined", sorted(entries, key=lambda entry: entry.branch))


def renew_quarantine(repository: Repository, mapped: Mapping[str, str]) -> None:
    """Name the commits of the list by their new ids, where history is rewritten. The caller holds ``commit.lock``.

    Args:
        mapped: new id by old one; what has none any more, ``NULL``, is in the first commit that is left of the branch.
    """
    from memfs.git.repository import beyond

    entries = quarantined(repository.common_dir)

    def renewed(entry: QuarantinedBranch) -> QuarantinedBranch:
        tip = mapped.get(entry.tip, entry.tip)
        if tip == NULL:  # all of it is gone, and what is gone is in nothing
            return entry
        start, head = mapped.get(entry.start, entry.start), mapped.get(entry.head, entry.head)
        first = beyond(repository, [tip], own_line=True)[-1] if NULL in (start, head) else ""
        return entry._replace(tip=tip, start=first if start == NULL else start, head=first if head == NULL else head)

    after = tuple(map(renewed, entries))
    if after != entries:
        save_quarantined(repository.common_dir, after)


def quarantine_of(common_dir: Path, ref: str) -> QuarantinedBranch | None:
    """The quarantine of a branch, by its full name."""
    return next((entry for entry in quarantined(common_dir) if entry.branch == ref), None)


def quarantine_at(layout: Layout, entries: Collection[QuarantinedBranch] | None = None) -> QuarantinedBranch | None:
    """The quarantine of what is checked out in a working tree; None where it may be read. Costs one look at a file
    where nothing is quarantined.

    Args:
        entries: what is quarantined, where that is known.
    """
    if entries is None:
        entries = quarantined(layout.common_dir) if os.path.lexists(layout.common_dir / QUARANTINE_FILE) else ()
    if not entries:
        return None
    head = Refs(layout).head()
    where = os.path.relpath(layout.git_dir, layout.common_dir)
    for entry in entries:
        # A worktree is its agent's place: the branch's name may be changed there, or HEAD detached.
        if entry.branch == head.ref or (entry.git_dir and entry.git_dir == where):
            return entry
        if head.commit is not None and head.commit == entry.tip:
            return entry
    return None


def refused(entry: QuarantinedBranch, hint: str = _LOOK) -> errors.BranchQuarantined:
    """The error for one who would read from a quarantined branch."""
    why = f": {entry.reason}" if entry.reason else ""
    return errors.BranchQuarantined(f"the branch {entry.name} is quarantined{why}", hint=hint)


def require_readable(layout: Layout, entries: Collection[QuarantinedBranch] | None = None) -> None:
    """Refuse to give memory from what is checked out in a working tree, if it is quarantined.

    Args:
        entries: as ``of_checkout``.

    Raises:
        BranchQuarantined: naming the branch and why.
        CorruptRecord: nobody can tell.
    """
    entry = quarantine_at(layout, entries)
    if entry is not None:
        raise refused(entry)


def require_unmixed(repository: Repository, head: str, entries: Iterable[QuarantinedBranch]) -> None:
    """Refuse what is checked out if it took a quarantined branch over since, as a plain ``git merge`` does.

    What the branch itself had taken over, from a line that knows nothing of it, is held back nowhere else.

    Raises:
        BranchQuarantined: naming the branch and why.
    """
    for entry in entries:
        if entry.head not in ("", head) and _holds_own(repository, head, entry):
            raise refused(entry, hint=_TAKE_BACK)


def require_clean(repository: Repository, commit: str) -> None:
    """Refuse a commit that holds what only a quarantined branch wrote, under whichever name it is reached.

    What HEAD holds, or the branch held before it began, is not the branch's.

    Raises:
        BranchQuarantined: naming the branch.
        CorruptRecord: nobody can tell.
    """
    entries = quarantined(repository.common_dir)
    own = quarantine_at(repository.layout) if entries else None
    head = repository.head().commit
    for entry in entries:
        present = repository.ref_commit(entry.branch)
        innocent = [name for name in (None if entry == own else head, entry.start) if name]
        if any(_shares(repository, commit, tip, innocent) for tip in {entry.tip, present} - {None, ""} if tip):
            raise refused(entry)


def _holds_own(repository: Repository, head: str, entry: QuarantinedBranch) -> bool:
    """Whether a history holds a commit of the branch's own line: of those, the first is in whatever holds any."""
    if not _exists(repository, entry.tip):
        return False
    from memfs.git.repository import beyond, is_ancestor  # most repositories have nothing quarantined

    innocent = [name for name in (entry.head, entry.start) if name and _exists(repository, name)]
    own = beyond(repository, [entry.tip], innocent, own_line=True)
    return bool(own) and is_ancestor(repository, own[-1], head)


def _shares(repository: Repository, commit: str, tip: str, innocent: Iterable[str]) -> bool:
    """Whether both histories hold a commit that no innocent one does."""
    if not _exists(repository, tip):  # what was removed from history can be in nothing
        return False
    from memfs.git.repository import beyond, merge_bases

    bases = merge_bases(repository, commit, tip)
    return bool(bases and beyond(repository, bases, [name for name in innocent if _exists(repository, name)], most=1))


def _exists(repository: Repository, name: str) -> bool:
    try:
        return repository.object(name).kind == "commit"
    except errors.MemfsError:
        return False


def _quarantined(row: Mapping[str, Any]) -> QuarantinedBranch:
    entry = QuarantinedBranch(**row)
    texts = (entry.branch, entry.tip, entry.start, entry.git_dir, entry.reason, entry.time, entry.head)
    if not all(isinstance(text, str) for text in texts) or not is_branch(entry.branch):
        raise ValueError("not an entry")
    if not all(HEX.fullmatch(name) for name in (entry.tip, entry.start, entry.head) if name):
        raise ValueError("not a commit")
    return entry
