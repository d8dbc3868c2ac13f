"""An agent's own branch with a working tree of its own, from its start to its merge or end.

Nothing that is written on such a branch is lost, whatever ends it.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from memfs import trust
from memfs.admin.store_builder import parts_of
from memfs.config import load
from memfs.dataclass import dataclass, replace
from memfs.errors import BranchRefused, HistoryUnavailable, StorageIO
from memfs.fs import io
from memfs.fs.lock import FileLock
from memfs.git.busy import users_of
from memfs.git.layout import Layout, state_folder
from memfs.git.process import wait_for_children
from memfs.git.refs import (
    HEADS,
    OURS,
    BranchEntry,
    QuarantinedBranch,
    quarantine_of,
    quarantined,
    read_list,
    ref_of,
    refused,
    require_clean,
    save_list,
    save_quarantined,
    short_name,
)
from memfs.git.repository import Repository, count_beyond, is_ancestor, merge_bases
from memfs.model.time import format_time
from memfs.search.cache_folders import drop
from memfs.store import Store
from memfs.store.parts import Parts
from memfs.store.plan import FlushResult
from memfs.team.worktrees import (
    at,
    forget_missing,
    is_locked,
    lay_out,
    remains,
    share_sidecars,
    take_away,
    update_refs,
    waiting_in,
)

if TYPE_CHECKING:
    from memfs.team.history_merge import Merger, MergeResult


@dataclass(frozen=True, slots=True, kw_only=True)
class Branch:
    """The state of one branch.

    Attributes:
        name: as people name it here; ``branch`` as git does.
        commit: its tip, "" where the branch is gone.
        folder: the workspace in its working tree, to be used as ``MEMFS_WORKSPACE``; None where it has none.
        agent: who works there.
        started: when, as ISO 8601.
        ready: false where making its working tree was interrupted; ``start`` takes it up again.
        ahead: how many commits it has that the checked-out line lacks.
        waiting: how many writes in its working tree are not committed yet.
        quarantined: whether it is not to be read; ``reason`` says why.
    """

    name: str
    branch: str
    commit: str = ""
    folder: Path | None = None
    agent: str = ""
    started: str = ""
    ready: bool = True
    ahead: int = 0
    waiting: int = 0
    quarantined: bool = False
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class BranchMerge:
    """What a merge of a branch did: what was joined, how its last writes were committed, who still works there.

    Attributes:
        edited: files that were changed there by hand and are not committed: they were left out.
        alive: processes at work in its working tree, as id and name.
        uncommitted: in a dry run, how many writes wait there: they would be committed first, and merged.
    """

    branch: str
    joined: MergeResult
    flushed: FlushResult
    edited: tuple[str, ...] = ()
    alive: tuple[tuple[int, str], ...] = ()
    uncommitted: int = 0

    @property
    def at_work(self) -> tuple[int, ...]:
        """Ids of the processes that still work there."""
        return tuple(number for number, _ in self.alive)


@dataclass(frozen=True, slots=True, kw_only=True)
class DroppedBranch:
    """What became of a branch that was dropped.

    Attributes:
        commit: its last one.
        rescue: the ref that keeps it, "" where the checked-out line holds all of it.
        folder: its working tree; ``left`` are the files that stay there.
    """

    branch: str
    commit: str
    rescue: str = ""
    folder: str = ""
    left: tuple[str, ...] = ()


SOURCE = "branch"
RESCUE = "refs/memfs/rescue/branches"


class Branches:
    """The branches of agents in one repository, as seen from one workspace."""

    def __init__(self, store: Store, parts: Parts, merger: Callable[[], Merger]) -> None:
        """``merger`` gives what joins lines of history, when it is first needed."""
        self._store, self._parts, self._merger = store, parts, merger
        self._repository = parts.repository
        self._common = parts.repository.common_dir

    # -- looking --------------------------------------------------------------------------------------------------
    def list(self) -> list[Branch]:
        """The branches of agents, and those that are quarantined, by name.

        Raises:
            CorruptRecord: one of memfs's lists cannot be read.
        """
        given = read_list(self._common)
        held = {entry.branch: entry for entry in quarantined(self._common)}
        refs = {*given, *held, *self._refs()}
        return [self._branch(ref, given.get(ref), held.get(ref)) for ref in sorted(refs)]

    def find(self, name: str) -> Branch:
        """One branch, by its name here or in git.

        Raises:
            BranchRefused: there is none.
        """
        ref = self._ref(name)
        return self._branch(ref, read_list(self._common).get(ref), quarantine_of(self._common, ref))

    # -- a branch's life ------------------------------------------------------------------------------------------
    def start(self, name: str, *, agent: str = "", folder: str | os.PathLike[str] | None = None) -> Branch:
        """Give an agent a branch at HEAD, and a working tree of its own with the memory in it.

        What waits here is committed first. A start that was interrupted is taken up again.

        Args:
            name: the branch becomes ``memfs/NAME``, or NAME where that has a slash.
            agent: whose it is: what names nobody there is committed in its name.
            folder: where the working tree goes; by default beside this one.

        Returns:
            The branch; ``folder`` is what ``MEMFS_WORKSPACE`` is to be set to.

        Raises:
            BranchRefused: it is there already, cannot be called so, or something is in the folder's place.
            BranchQuarantined: a branch of that name was quarantined, or this one is.
            GitBusy, HistoryUnavailable, StorageIO.
        """
        ref = ref_of(name)
        self._repository.require_readable()
        self._commit_what_waits()
        with self._parts.commit_lock.hold("start a branch"):
            wait_for_children(self._common / "memfs")
            self._refuse_quarantined(ref)
            given = read_list(self._common)
            place = Path(os.path.realpath(folder)) if folder is not None else self._beside(ref)
            row = self._begun(given.get(ref), place) or self._begin(ref, agent, place)
            save_list(self._common, {**given, ref: row}.values())
            tip = self._commit(ref)
            if not tip:
                update_refs(self._repository, [f"create {ref} {row.start}"], "memfs team branch")
            layout = lay_out(self._repository, Path(row.folder), row.branch, tip or row.start)
            share_sidecars(self._parts.tree.root, layout.work_tree / self._repository.prefix)
            laid = row._replace(git_dir=os.path.relpath(layout.git_dir, self._common), ready=True)
            save_list(self._common, {**given, ref: laid}.values())
        return self.find(ref)

    def merge(self, name: str, *, message: str = "", dry_run: bool = False) -> BranchMerge:
        """Join what a branch wrote with the checked-out line; what waits there is committed first.

        Args:
            message: the merge commit's sentence, instead of a plain one.
            dry_run: tell what would come of it, change nothing; what waits for its commit is left out.

        Raises:
            BranchQuarantined: it is not to be read, or holds what another quarantined branch wrote.
            BranchRefused: there is no such branch, it is checked out here, or its writes cannot be committed.
            Conflict, GitBusy, MergeRefused, HistoryUnavailable: see ``Merger.merge``.
        """
        ref = self._ref(name)
        self._refuse_quarantined(ref)
        self._repository.require_readable()
        self._refuse_own(ref)
        layout = self._layout(read_list(self._common).get(ref))
        flushed, edited = (FlushResult(), ()) if dry_run else self._flush(layout)
        if flushed.reason:
            hint = "merge again when that is over"
            raise BranchRefused(f"what was written there cannot be committed: {flushed.reason}", hint=hint)
        tip = self._tip(ref)
        require_clean(self._repository, tip)
        said = message or f"Merge the branch {short_name(ref)}"
        joined = self._merger().merge(tip, said, source=SOURCE, dry_run=dry_run)
        if not dry_run and layout is not None:
            share_sidecars(layout.workspace, self._parts.tree.root)
        return BranchMerge(
            branch=ref,
            joined=joined,
            flushed=flushed,
            edited=edited,
            alive=self._alive(layout),
            uncommitted=self._waiting(layout) if dry_run else 0,
        )

    def drop(self, name: str, *, force: bool = False, dry_run: bool = False) -> DroppedBranch:
        """Take a branch and its working tree away.

        Killed anywhere, it goes on when it is called again.

        Args:
            force: even if it was not merged; a rescue ref keeps what it has. Files that are not committed, or not
                memory, stay in the folder.
            dry_run: tell what would be done, change nothing.

        Raises:
            BranchRefused: there is no such branch, it is checked out here, or something would be lost; the message
                names all of it.
        """
        wait_for_children(self._common / "memfs")
        ref = self._ref(name)
        self._refuse_own(ref)
        row = read_list(self._common).get(ref)
        layout = self._layout(row)
        if layout is not None and row is not None and row.ready and is_locked(layout):
            reason = f"its working tree is locked: {is_locked(layout)}"
            raise BranchRefused(reason, path=str(layout.work_tree), hint="git worktree unlock it first")
        if not dry_run:
            self._flush(layout, adopt=force or None)
            self._refuse_waiting(ref, row, layout)
        self._refuse_losses(ref, row, layout, force)
        if dry_run:
            kept = self._waiting(layout) or not self._merged(ref)
            rescue = f"{RESCUE}/{short_name(ref)}" if kept else ""
            return DroppedBranch(branch=ref, commit=self._commit(ref), rescue=rescue, folder=row.folder if row else "")
        with self._parts.commit_lock.hold("drop a branch"), self._still(layout):
            wait_for_children(self._common / "memfs")
            self._refuse_waiting(ref, row, layout)
            return self._drop(ref, row, layout)

    def quarantine(self, name: str, reason: str = "") -> Branch:
        """Let nobody be given memory from a branch, nor merge it, until it is released; durable on return.

        Raises:
            BranchRefused: there is no such branch.
        """
        ref = self._ref(name)
        with self._parts.commit_lock.hold("quarantine a branch"):
            row = read_list(self._common).get(ref)
            entry = QuarantinedBranch(
                branch=ref,
                tip=self._commit(ref),
                start=row.start if row is not None else self._fork_point(ref),
                git_dir=row.git_dir if row is not None else "",
                reason=" ".join(reason.split()),
                time=format_time(self._parts.clock()),
                head=self._merged_before(ref),
            )
            others = [one for one in quarantined(self._common) if one.branch != ref]
            save_quarantined(self._common, [*others, entry])
        return self.find(ref)

    def release(self, name: str) -> Branch:
        """End a quarantine.

        Raises:
            BranchRefused: the branch is not quarantined.
        """
        self._store.require_open()
        with self._parts.commit_lock.hold("release a branch"):
            entries = quarantined(self._common)
            known = ((one.branch, one.branch.removeprefix(HEADS), short_name(one.branch)) for one in entries)
            ref = next((names[0] for names in known if name in names), "")
            if not ref:
                raise BranchRefused(f"no branch {name!a} is quarantined", hint="see memfs team branch list")
            save_quarantined(self._common, [one for one in entries if one.branch != ref])
        return self._branch(ref, read_list(self._common).get(ref), None)

    # -- which branch ---------------------------------------------------------------------------------------------
    def _ref(self, name: str) -> str:
        """The branch that a name means: one that was given, is quarantined, or is there."""
        ref = name if name.startswith(HEADS) else ref_of(name)
        known = {*read_list(self._common), *(one.branch for one in quarantined(self._common))}
        plain = HEADS + name.removeprefix(HEADS)
        for one in (ref, plain):
            if one in known or self._commit(one):
                return one
        raise BranchRefused(f"there is no branch {name!a}", hint="see memfs team branch list")

    def _refs(self) -> Iterator[str]:
        out = self._repository.git.run("for-each-ref", "--format=%(refname)", f"{HEADS}{OURS}")
        yield from os.fsdecode(out).splitlines()

    def _commit(self, ref: str) -> str:
        return self._repository.ref_commit(ref) or ""

    def _tip(self, ref: str) -> str:
        tip = self._commit(ref)
        if not tip:
            raise BranchRefused(f"the branch {short_name(ref)} is gone", hint="memfs team branch drop forgets it")
        return tip

    def _refuse_own(self, ref: str) -> None:
        if self._repository.head().ref == ref:
            hint = "run it in the workspace it was started from, or name that with -C"
            raise BranchRefused(f"the branch {short_name(ref)} is checked out here", hint=hint)

    def _refuse_quarantined(self, ref: str) -> None:
        entry = quarantine_of(self._common, ref)
        if entry is not None:
            raise refused(entry)

    def _merged_before(self, ref: str) -> str:
        """HEAD, whose history is not held back; in the branch's own folder what it began from."""
        own = quarantine_of(self._common, ref)
        if own is not None and own.head:  # quarantined again: what was taken over since then stays held back
            return own.head
        head, row = self._repository.head(), read_list(self._common).get(ref)
        if head.ref != ref:
            return head.commit or ""
        return row.start if row is not None else ""

    def _fork_point(self, ref: str) -> str:
        head, tip = self._repository.head().commit, self._commit(ref)
        if not head or not tip:
            return ""
        bases = merge_bases(self._repository, head, tip)
        # What was merged before it was quarantined is in both lines: then nobody can tell what the branch wrote.
        return bases[0] if bases and bases[0] != tip else ""

    # -- its state ------------------------------------------------------------------------------------------------
    def _branch(self, ref: str, row: BranchEntry | None, entry: QuarantinedBranch | None) -> Branch:
        tip, layout = self._commit(ref), self._layout(row)
        return Branch(
            name=short_name(ref),
            branch=ref.removeprefix(HEADS),
            commit=tip,
            folder=layout.workspace if layout is not None else None,
            agent=row.agent if row is not None else "",
            started=row.time if row is not None else "",
            ready=row is None or (row.ready and layout is not None),
            ahead=count_beyond(self._repository, tip, self._repository.head().commit),
            waiting=self._waiting(layout or self._gone(row)),
            quarantined=entry is not None,
            reason=entry.reason if entry is not None else "",
        )

    def _merged(self, ref: str) -> bool:
        tip, head = self._commit(ref), self._repository.head().commit
        return not tip or (head is not None and is_ancestor(self._repository, tip, head))

    # -- starting -------------------------------------------------------------------------------------------------
    def _commit_what_waits(self) -> None:
        done = self._store.flush(adopt=False)
        if done.reason:
            raise BranchRefused(
                f"what waits here cannot be committed: {done.reason}", hint="start it when that is over"
            )

    def _begun(self, row: BranchEntry | None, place: Path) -> BranchEntry | None:
        """The row of a branch whose start was interrupted; None where none was."""
        if row is None:
            return None
        if row.ready and self._layout(row) is not None:
            hint = f"memfs team branch merge {row.name}, or drop; it works in {row.folder}"
            raise BranchRefused(f"the branch {row.name} is there already", hint=hint)
        if Path(row.folder) != place:
            # The list may have come with the repository: it sends nobody to a place that he did not name.
            hint = f"repeat it with --at {shlex.quote(row.folder)}, or memfs team branch drop {row.name}"
            raise BranchRefused(f"{row.name} was begun in another folder, {row.folder}", hint=hint)
        return row

    def _begin(self, ref: str, agent: str, place: Path) -> BranchEntry:
        """A row for a new branch that can be made."""
        head = self._repository.head_commit()
        if head is None:
            raise HistoryUnavailable("there is no commit to start from", hint="memfs commit makes the first one")
        if self._commit(ref):
            hint = f"memfs team branch merge {short_name(ref)}, or choose another name"
            raise BranchRefused(f"git has a branch {ref.removeprefix(HEADS)} already", hint=hint)
        if place.is_relative_to(self._repository.work_tree) or place.is_relative_to(self._common):
            hint = "name a folder outside it with --at"
            raise BranchRefused("the working tree would lie inside this one", path=str(place), hint=hint)
        if os.path.lexists(place) and (not place.is_dir() or os.listdir(place)):
            raise BranchRefused("something is in the folder's place", path=str(place), hint="name another with --at")
        time = format_time(self._parts.clock())
        return BranchEntry(branch=ref, folder=str(place), start=head, agent=" ".join(agent.split()), time=time)

    # -- dropping -------------------------------------------------------------------------------------------------
    def _refuse_waiting(self, ref: str, row: BranchEntry | None, layout: Layout | None) -> None:
        """Refuse to drop what was acknowledged and is in no commit yet: no rescue ref would keep it."""
        count = self._waiting(layout or self._gone(row))
        if count:
            first = f"memfs team branch start {short_name(ref)} first" if layout is None else "see memfs status there"
            raise BranchRefused(_waits(count), path=row.folder if row is not None else None, hint=first)

    def _refuse_losses(self, ref: str, row: BranchEntry | None, layout: Layout | None, force: bool) -> None:
        if force:
            return
        lost = []
        if waiting := self._waiting(layout):  # in a dry run alone: else they are committed by now
            lost.append(_waits(waiting))
        if not self._merged(ref):
            ahead = count_beyond(self._repository, self._commit(ref), self._repository.head().commit)
            lost.append(f"{ahead} of its commits {'is' if ahead == 1 else 'are'} not in what is checked out here")
        if layout is not None and self._commit(ref):
            found = remains(layout.work_tree, self._repository, self._commit(ref))
            unlaid = row is not None and not row.ready  # by a start that ended early: what is missing was never there
            edited = [name for name in found.edited if not unlaid or os.path.lexists(layout.work_tree / name)]
            lost += [f"{name} is not committed" for name in edited[:3]]
            lost += [f"{name} is no memory" for name in found.others[:3]]
            lost += [f"{name} (process {number}) works there" for number, name in self._alive(layout)[:3]]
        if lost:
            hint = (
                f"memfs team branch merge {short_name(ref)} first; --force drops it all the same, and says what stays"
            )
            raise BranchRefused("; ".join(lost), path=row.folder if row is not None else None, hint=hint)

    def _drop(self, ref: str, row: BranchEntry | None, layout: Layout | None) -> DroppedBranch:
        tip, rescue = self._commit(ref), ""
        if tip and not self._merged(ref):
            moment = self._parts.clock()
            rescue = f"{RESCUE}/{short_name(ref)}/{moment:%Y%m%dT%H%M%S%f}Z"
            update_refs(self._repository, [f"create {rescue} {tip}"], "memfs team branch")
        left: tuple[str, ...] = ()
        if layout is not None:
            left = take_away(layout, self._repository, tip or (row.start if row is not None else ""))
        elif row is not None:
            forget_missing(row.folder, row.git_dir, self._repository, self._gone(row))
        if row is not None:
            drop(self._repository.state.parent, lambda root: root.is_relative_to(row.folder))
        if tip:
            update_refs(self._repository, [f"delete {ref} {tip}"], "memfs team branch")
        save_list(self._common, [one for one in read_list(self._common).values() if one.branch != ref])
        folder = row.folder if row is not None else ""
        if folder and Path(folder) == self._beside(ref):
            with suppress(StorageIO):  # it held another's working tree, too
                io.rmdir(os.path.dirname(folder))
        return DroppedBranch(branch=ref, commit=tip, rescue=rescue, folder=folder, left=left)

    # -- working trees --------------------------------------------------------------------------------------------
    def _layout(self, row: BranchEntry | None) -> Layout | None:
        """Where a branch's working tree keeps what, as its workspace sees it; None where it has none, or it is gone."""
        found = at(Path(row.folder), self._repository) if row is not None else None
        if found is None:
            return None
        prefix = self._repository.prefix
        return replace(found, workspace=found.work_tree / prefix, prefix=prefix)

    def _beside(self, ref: str) -> Path:
        """Where a branch's working tree goes if nobody says: next to this one."""
        top, common = self._repository.work_tree, self._repository.common_dir
        top = common.parent if top.is_relative_to(common) else top  # the memory's own branch lies in the git folder
        return top.parent / f"{top.name}.branches" / short_name(ref).replace("/", "-")

    def _gone(self, row: BranchEntry | None) -> Layout | None:
        """Where memfs keeps what of a working tree whose folder was removed; None where there never was one."""
        if row is None or not row.git_dir or self._layout(row) is not None:
            return None
        git_dir = self._repository.common_dir / row.git_dir
        return replace(self._repository.layout, work_tree=Path(row.folder), git_dir=git_dir)

    def _waiting(self, layout: Layout | None) -> int:
        """How many writes in a place are not committed yet."""
        return waiting_in(state_folder(layout)) if layout is not None else 0

    def _alive(self, layout: Layout | None) -> tuple[tuple[int, str], ...]:
        """The processes at work in a place, as id and name."""
        return tuple(users_of(str(layout.work_tree), str(state_folder(layout)))) if layout is not None else ()

    def _still(self, layout: Layout | None) -> AbstractContextManager[None]:
        """Let nobody write in a place."""
        if layout is None:
            return nullcontext()
        return FileLock(state_folder(layout) / "lock", home=self._repository.common_dir).hold("drop a branch")

    def _flush(self, layout: Layout | None, adopt: bool | None = None) -> tuple[FlushResult, tuple[str, ...]]:
        """Commit what waits in a place; what was done, and which edits by hand are left out.

        Args:
            adopt: commit those, too; None: as its settings say.
        """
        if layout is None:
            return FlushResult(), ()
        with closing(self._opened(layout.workspace)) as store:
            if store.pending().count == 0:
                flushed = store.flush(adopt=False)
                if not flushed.reason and store.edit_finder.untouched():
                    return flushed, ()
            return store.flush(adopt=adopt), tuple(store.hand_edits())

    def _opened(self, root: Path) -> Store:
        settings = load(root)
        repository = Repository.find(root, allow_detached=settings.history.allow_detached, trusted=trust.repository)
        if repository is None:
            raise BranchRefused("its working tree is in no repository", path=str(root), hint="git worktree repair")
        return Store(parts_of(root, repository, settings, self._parts.clock))


def _waits(number: int) -> str:
    return f"{number} {'write waits' if number == 1 else 'writes wait'} there for a commit"
