"""Keeps the list of quarantined branches, from which no memory is given to anybody.

The list is ``memfs/quarantine.json`` in the git common folder: no clone, checkout, reset or stash touches it, and it
holds for every working tree. A process is started only where a single commit is checked.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memfs.dataclass import NamedTuple
from memfs.errors import BranchQuarantined, MemfsError
from memfs.git.refs import HEADS, HEX, NULL, Refs, is_branch, read_rows, save_rows

if TYPE_CHECKING:
    from memfs.git.layout import Layout
    from memfs.git.repository import Repository


FILE = "memfs/quarantine.json"
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


def listed(common_dir: Path) -> tuple[QuarantinedBranch, ...]:
    """What is quarantined in a repository; without a list, nothing.

    Raises:
        CorruptRecord: the list cannot be read. Nobody can tell what is quarantined then.
    """
    hint = "look at it; where nothing is to be quarantined, remove it"
    return tuple(read_rows(common_dir / FILE, "quarantined", _entry, hint))


def save(common_dir: Path, entries: Iterable[QuarantinedBranch]) -> None:
    """Replace the list, durably. The caller holds ``commit.lock``."""
    save_rows(common_dir / FILE, "quarantined", sorted(entries, key=lambda entry: entry.branch))


def renew(repository: Repository, mapped: Mapping[str, str]) -> None:
    """Name the commits of the list by their new ids, where history is rewritten. The caller holds ``commit.lock``.

    Args:
        mapped: new id by old one; what has none any more, ``NULL``, is in the first commit that is left of the branch.
    """
    from memfs.git.ancestry import beyond

    entries = listed(repository.common_dir)

    def renewed(entry: QuarantinedBranch) -> QuarantinedBranch:
        tip = mapped.get(entry.tip, entry.tip)
        if tip == NULL:  # all of it is gone, and what is gone is in nothing
            return entry
        start, head = mapped.get(entry.start, entry.start), mapped.get(entry.head, entry.head)
        first = beyond(repository, [tip], own_line=True)[-1] if NULL in (start, head) else ""
        return entry._replace(tip=tip, start=first if start == NULL else start, head=first if head == NULL else head)

    after = tuple(map(renewed, entries))
    if after != entries:
        save(repository.common_dir, after)


def of_ref(common_dir: Path, ref: str) -> QuarantinedBranch | None:
    """The quarantine of a branch, by its full name."""
    return next((entry for entry in listed(common_dir) if entry.branch == ref), None)


def of_checkout(layout: Layout, entries: Collection[QuarantinedBranch] | None = None) -> QuarantinedBranch | None:
    """The quarantine of what is checked out in a working tree; None where it may be read. Costs one look at a file
    where nothing is quarantined.

    Args:
        entries: what is quarantined, where that is known.
    """
    if entries is None:
        entries = listed(layout.common_dir) if os.path.lexists(layout.common_dir / FILE) else ()
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


def refuse(entry: QuarantinedBranch, hint: str = _LOOK) -> BranchQuarantined:
    """The error for one who would read from a quarantined branch."""
    why = f": {entry.reason}" if entry.reason else ""
    return BranchQuarantined(f"the branch {entry.name} is quarantined{why}", hint=hint)


def require_readable(layout: Layout, entries: Collection[QuarantinedBranch] | None = None) -> None:
    """Refuse to give memory from what is checked out in a working tree, if it is quarantined.

    Args:
        entries: as ``of_checkout``.

    Raises:
        BranchQuarantined: naming the branch and why.
        CorruptRecord: nobody can tell.
    """
    entry = of_checkout(layout, entries)
    if entry is not None:
        raise refuse(entry)


def require_unmixed(repository: Repository, head: str, entries: Iterable[QuarantinedBranch]) -> None:
    """Refuse what is checked out if it took a quarantined branch over since, as a plain ``git merge`` does.

    What the branch itself had taken over, from a line that knows nothing of it, is held back nowhere else.

    Raises:
        BranchQuarantined: naming the branch and why.
    """
    for entry in entries:
        if entry.head not in ("", head) and _holds_own(repository, head, entry):
            raise refuse(entry, hint=_TAKE_BACK)


def require_clean(repository: Repository, commit: str) -> None:
    """Refuse a commit that holds what only a quarantined branch wrote, under whichever name it is reached.

    What HEAD holds, or the branch held before it began, is not the branch's.

    Raises:
        BranchQuarantined: naming the branch.
        CorruptRecord: nobody can tell.
    """
    entries = listed(repository.common_dir)
    own = of_checkout(repository.layout) if entries else None
    head = repository.head().commit
    for entry in entries:
        present = repository.ref_commit(entry.branch)
        innocent = [name for name in (None if entry == own else head, entry.start) if name]
        if any(_shares(repository, commit, tip, innocent) for tip in {entry.tip, present} - {None, ""} if tip):
            raise refuse(entry)


def _holds_own(repository: Repository, head: str, entry: QuarantinedBranch) -> bool:
    """Whether a history holds a commit of the branch's own line: of those, the first is in whatever holds any."""
    if not _exists(repository, entry.tip):
        return False
    from memfs.git.ancestry import beyond, is_ancestor  # most repositories have nothing quarantined

    innocent = [name for name in (entry.head, entry.start) if name and _exists(repository, name)]
    own = beyond(repository, [entry.tip], innocent, own_line=True)
    return bool(own) and is_ancestor(repository, own[-1], head)


def _shares(repository: Repository, commit: str, tip: str, innocent: Iterable[str]) -> bool:
    """Whether both histories hold a commit that no innocent one does."""
    if not _exists(repository, tip):  # what was removed from history can be in nothing
        return False
    from memfs.git.ancestry import beyond, merge_bases

    bases = merge_bases(repository, commit, tip)
    return bool(bases and beyond(repository, bases, [name for name in innocent if _exists(repository, name)], most=1))


def _exists(repository: Repository, name: str) -> bool:
    try:
        return repository.object(name).kind == "commit"
    except MemfsError:
        return False


def _entry(row: Mapping[str, Any]) -> QuarantinedBranch:
    entry = QuarantinedBranch(**row)
    texts = (entry.branch, entry.tip, entry.start, entry.git_dir, entry.reason, entry.time, entry.head)
    if not all(isinstance(text, str) for text in texts) or not is_branch(entry.branch):
        raise ValueError("not an entry")
    if not all(HEX.fullmatch(name) for name in (entry.tip, entry.start, entry.head) if name):
        raise ValueError("not a commit")
    return entry
