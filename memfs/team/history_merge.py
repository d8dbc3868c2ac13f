"""Merge another line of history into the branch that is checked out.

What waits is committed first, nothing of a person's is replaced, and the merged files and the merge commit are
written as one batch. Values that were displaced are recorded. An item is followed by its id where one side moved it,
and lines that crossed are joined from a version that both began from.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from memfs.dataclass import dataclass, field, replace
from memfs.errors import Conflict, ContentError, GitBusy, HistoryError, HistoryUnavailable, MemfsError, MergeRefused
from memfs.format.field_merge import FieldConflict, records_of
from memfs.format.file_merge import FileMerger
from memfs.format.secrets import refuse_text
from memfs.format.text import has_markers, shortlist
from memfs.fs import io
from memfs.fs.workspace_location import is_own
from memfs.git.commits import MERGED, REVERTED, situation
from memfs.git.layout import HEX, read_small
from memfs.git.log import Snapshot, snapshots
from memfs.git.objects import REGULAR, TreeEntry
from memfs.git.repository import Repository, holds_commit, is_ancestor, merge_bases
from memfs.model.ids import stem_of
from memfs.model.state_paths import conflict_path, document_kind, iteration_of
from memfs.model.time import EPOCH
from memfs.startup import regex
from memfs.store import Store
from memfs.store.parts import CONTENT, READ_LIMIT, Parts, PlanOutdated, below_content, is_item
from memfs.store.plan import FilePlan
from memfs.store.recovery import SEEN, MissedItems, is_merge_due
from memfs.store.write import signatures_of

_TYPE = regex(rb"^type:[^\n]*\n", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class TreeVersion:
    """A file at one side: its blob id, and its bytes where they are in no commit."""

    blob: str
    data: bytes | None = field(default=None, compare=False)


Versions = Mapping[str, TreeVersion]
"""The files of one side by workspace path, as far as the sides differ."""


@dataclass(frozen=True, slots=True)
class ContestedPath:
    """What was displaced in a file, and whether the file says so itself."""

    path: str
    conflicts: tuple[FieldConflict, ...]
    recorded: bool


@dataclass(slots=True)
class JoinedTree:
    """What two sides come to: the files, what was displaced in them, and by path why others cannot be joined."""

    versions: dict[str, TreeVersion] = field(default_factory=dict)
    contested: list[ContestedPath] = field(default_factory=list)
    unjoined: dict[str, str] = field(default_factory=dict)


Sides = tuple[Versions, Versions, Versions]
"""What both lines of a merge began from, ours and theirs."""

Place = tuple[str, TreeVersion] | None
"""Where a side has a file, and what; None where it has none."""


_MOST_BASES = 32


def memory_path(repository: Repository, path: bytes, *entries: TreeEntry | None) -> str:
    """Where in the workspace a file of memory is; "" for another file, and where an entry of it is no file."""
    inside = repository.below(path)
    own = inside is not None and is_own(inside) and all(entry is None or entry.mode in REGULAR for entry in entries)
    return inside if own and inside is not None else ""


class HistoryJoin:
    """Joins versions of files, and lines of history, of one workspace's repository. It writes nothing."""

    def __init__(self, parts: Parts) -> None:
        self._repository, self._codec, self._kinds = parts.repository, parts.codec, parts.kinds
        self._merger = FileMerger(parts.codec)

    def join(self, base: Versions, ours: Versions, theirs: Versions) -> JoinedTree:
        """What two sides that began from ``base`` come to.

        A file that one side changed is as that side has it; one that both changed is joined by the rules of its schema.
        """
        done = JoinedTree()
        for group in self.groups((base, ours, theirs)):
            place = self._settled(place_in(base, group), place_in(ours, group), place_in(theirs, group), done)
            if place is not None:
                done.versions[place[0]] = place[1]
        return done

    def names(self, paths: Iterable[str]) -> set[str]:
        """The names, regardless of case, of the items at some paths."""
        return {stem_of(path).casefold() for path in paths if is_item(path, self._kinds)}

    def content(self, version: TreeVersion | None) -> bytes | None:
        """The bytes of a version."""
        if version is None or version.data is not None:
            return version.data if version else None
        return self._repository.blob(version.blob)

    # -- which files are one --------------------------------------------------------------------------------------
    def groups(self, sides: Sequence[Versions]) -> Iterable[tuple[str, ...]]:
        """The paths that belong together: those of one item, where each side has it once; else each path alone."""
        by_name: dict[str, set[str]] = {}
        for path in {path for side in sides for path in side}:
            by_name.setdefault(stem_of(path).casefold() if is_item(path, self._kinds) else path, set()).add(path)
        for name in sorted(by_name):
            paths = tuple(sorted(by_name[name]))
            if len(paths) == 1 or self._moved(sides, paths):
                yield paths
            else:
                yield from ((path,) for path in paths)

    def _moved(self, sides: Sequence[Versions], paths: Sequence[str]) -> bool:
        """Whether several paths are places of one item: no side has two of them, and all began from one.

        An item that others deleted, and that both sides kept as they had edited it, began from none: it is known by the
        time of its making, and by something that it still says on both sides.
        """
        counts = [sum(path in side for path in paths) for side in sides]
        if max(counts) > 1 or counts[0] == 1:
            return max(counts) == 1
        try:
            one, other = (
                self._codec.read(self.content(side[path]) or b"", path, EPOCH)
                for side in sides[1:]
                for path in paths
                if path in side
            )
        except ContentError:
            return False
        lines = [{line for line in (item.title, *item.content.splitlines()) if line.strip()} for item in (one, other)]
        return one.created is not None and one.created == other.created and bool(lines[0] & lines[1])

    # -- which version is kept -----------------------------------------------------------------------------------
    def _settled(self, base: Place, ours: Place, theirs: Place, done: JoinedTree) -> Place:
        if ours == theirs or theirs == base:
            return ours
        if ours == base:
            return theirs
        path = joined_place(*(place[0] if place else "" for place in (base, ours, theirs)))
        try:
            merged = self._merger.merge(path, *(self.moved_to(path, place) for place in (base, ours, theirs)))
        except ContentError as error:
            done.unjoined[path] = str(error)
            return ours
        if merged.whole:
            done.unjoined[path] = merged.reason
            return ours
        if merged.conflicts:
            done.contested.append(ContestedPath(path, merged.conflicts, merged.recorded))
        data = merged.data
        return (path, TreeVersion(self._repository.blob_id(data), data)) if data is not None else None

    def moved_to(self, path: str, place: Place) -> bytes | None:
        """The bytes of a version as they are at another path: an item that names its type names that of its folder.

        Raises:
            ContentError: it cannot be read where it was.
        """
        data = self.content(place[1]) if place else None
        if place is None or data is None or place[0] == path:
            return data
        old, new = (self._kinds.at(below_content(one)) for one in (place[0], path))
        if new is None or old == new:
            return data
        item = self._codec.read(data, place[0], EPOCH)
        untyped = _TYPE.sub(b"", data, count=1)
        try:
            self._codec.read(untyped, path, EPOCH)
        except ContentError:  # a form in which a key shares its line
            return self._codec.write(item.replace(memory_type=new.name), path).data
        return untyped

    # -- lines of history -----------------------------------------------------------------------------------------
    def outcome(
        self, ours: str | None, theirs: str, bases: Sequence[str]
    ) -> tuple[tuple[FilePlan, ...], tuple[ContestedPath, ...]]:
        """The files that change when ``theirs`` is joined with ``ours``, and what was displaced in files.

        Args:
            ours: None for a branch without a commit.

        Raises:
            MergeRefused: the other line changes what is not memory, or a file that cannot be joined.
            HistoryUnavailable: a commit is not in the repository.
        """
        base, here, there = self.sides(ours, theirs, bases, memory_only=True)
        joined = self.join(base, here, there)
        if joined.unjoined:
            named = shortlist(f"{path} ({reason})" for path, reason in joined.unjoined.items())
            raise MergeRefused(
                f"files cannot be joined: {named}",
                path=next(iter(joined.unjoined)),
                hint="correct them on one side and commit; or join the lines with git merge, then"
                " memfs team conflicts resolve",
            )
        changed = sorted(path for path in {*here, *joined.versions} if here.get(path) != joined.versions.get(path))
        content = self.content
        plans = tuple(_plan(path, content(here.get(path)), content(joined.versions.get(path))) for path in changed)
        for one in plans:  # a line of history in which somebody committed conflict markers: everybody would get them
            if one.after is not None and has_markers(one.after) and not (one.before and has_markers(one.before)):
                raise MergeRefused(
                    "the other line has conflict markers in this file",
                    path=one.path,
                    hint="there: keep what is right, delete the marker lines, memfs commit; then join it again",
                )
        return plans, tuple(joined.contested)

    def sides(self, ours: str | None, theirs: str, bases: Sequence[str], *, memory_only: bool = False) -> Sides:
        """The files from which both lines began, and those of each, as far as the three differ.

        Args:
            memory_only: refuse a line that changes other files.

        Raises:
            MergeRefused: it does, or the lines crossed too often.
            HistoryUnavailable: a commit is not in the repository.
        """
        commits = [ours, theirs, *self._below(bases)]
        taken = snapshots(self._repository, commits)
        if memory_only:
            self._refuse_outside(theirs, taken, [taken[commits.index(base)] for base in bases])
        versions: dict[str, Versions] = {}
        for commit, snapshot in zip(commits, taken, strict=True):  # one that is there twice has the same versions
            below = ((memory_path(self._repository, path, entry), entry) for path, entry in snapshot.items())
            versions[commit or ""] = {path: TreeVersion(entry.id) for path, entry in below if path}
        here, there = versions[ours or ""], versions[theirs]
        return self._crossing(bases, versions), here, there

    def going_on(self) -> Sides | None:
        """The sides of what git is in the middle of; None where it does not say what it brings in."""
        repository = self._repository
        name, ours = situation(repository), repository.head_commit()
        other = read_small(repository.git_dir / name) if name else None
        if not ours or not other or not HEX.fullmatch(other):
            return None
        with suppress(HistoryError, MergeRefused):
            bases: Sequence[str] = (other,)
            if name == MERGED:
                bases = merge_bases(repository, ours, other)
            else:
                above = repository.commit_object(other).parents[:1]
                if name == REVERTED and above:
                    other = above[0]
                elif name != REVERTED:
                    bases = above
            return self.sides(ours, other, bases)
        return None

    def _crossing(self, bases: Sequence[str], versions: Mapping[str, Versions]) -> Versions:
        """The version that two lines began from which crossed: that of their meeting points, joined.

        Args:
            bases: the commits where they met last.
            versions: of each commit that may be asked about.
        """
        found: Versions = versions[bases[0]] if bases else {}
        for number, other in enumerate(bases[1:], 1):
            below = tuple(dict.fromkeys(name for one in bases[:number] for name in self._met(one, other)))
            found = self.join(self._crossing(below, versions), found, versions[other]).versions
        return found

    def _met(self, one: str, other: str) -> Sequence[str]:
        return merge_bases(self._repository, one, other)

    def _below(self, bases: Sequence[str]) -> list[str]:
        """The commits in which lines met, and, where those lines crossed, in which these met, and so on.

        Raises:
            MergeRefused: they crossed too often.
        """
        found = list(bases)
        waiting = [tuple(bases)]
        while waiting:
            group = waiting.pop()
            for number, other in enumerate(group[1:], 1):
                below = tuple(dict.fromkeys(name for one in group[:number] for name in self._met(one, other)))
                found += [name for name in below if name not in found]
                waiting.append(below)
            if len(found) > _MOST_BASES:
                raise MergeRefused("these lines of history crossed too often", hint="join them with git merge")
        return found

    def _refuse_outside(self, commit: str, taken: Sequence[Snapshot], bases: Sequence[Snapshot]) -> None:
        """Refuse what the other line changed beside memory: there memfs writes nothing."""
        ours, theirs = taken[:2]
        foreign = sorted(
            path
            for path in {*ours, *theirs}
            if ours.get(path) != theirs.get(path)
            and all(base.get(path) != theirs.get(path) for base in bases or ({},))
            and not memory_path(self._repository, path, ours.get(path), theirs.get(path))
        )
        if foreign:
            named = shortlist(path.decode("utf-8", "backslashreplace") for path in foreign)
            place = shlex.quote(str(self._repository.work_tree))
            option = "" if bases else "--allow-unrelated-histories "
            raise MergeRefused(
                f"the other line changes files that memfs does not merge: {named}",
                path=foreign[0].decode("utf-8", "backslashreplace"),
                hint=f"git -C {place} merge {option}{commit[:12]} joins it: memory is merged by memfs there, too",
            )


def place_in(side: Versions, paths: Sequence[str]) -> Place:
    """Where a side has one of some paths, and what."""
    return next(((path, side[path]) for path in paths if path in side), None)


def joined_place(began: str, here: str, there: str) -> str:
    """Where a joined file is: where the side that moved it put it; of two such places one that does not depend on
    which side is ours. The paths are "" where there is no file.
    """
    if not here or not there or here == there:
        return here or there
    return there if here == began else here if there == began else max(here, there)


def _plan(path: str, before: bytes | None, after: bytes | None) -> FilePlan:
    """The write of a merged file; what is in it both lines had in their history."""
    return FilePlan(path=path, before=before, after=after, item=None, vetted=True)


def conflict_records(parts: Parts, contested: Sequence[ContestedPath]) -> tuple[FilePlan, ...]:
    """The documents that record what was displaced in state documents, as files that are part of the merge."""
    now = parts.clock()
    found = []
    for file in contested:
        number = iteration_of(file.path)
        if file.recorded or number is None or document_kind(file.path) in ("", "conflict"):
            continue
        for turn, record in enumerate(records_of(file.path, file.conflicts, now), 1):
            path = conflict_path(number, file.path, now, turn)
            found.append(_plan(path, None, parts.codec.write_document(record, path, "conflict")))
    return tuple(found)


_TRIES = 5
_FEW = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class FileClash:
    """One field that both sides changed differently; one value was kept.

    Attributes:
        path: the file, below the workspace.
        field: dotted name; "" for the whole file (deleted on one side, edited on the other).
        kept: what the file holds now.
        lost: what it does not hold; recorded in the file or beside it, and of a file without an iteration in history.
    """

    path: str
    field: str
    kept: Any = None
    lost: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeResult:
    """What a merge did, or would do.

    Attributes:
        commit: the commit that holds both lines: the branch's tip. "" where nothing was made (``dry_run``), or where it
            waits.
        forward: the branch only moved along the other line, without a new commit.
        changed: the files that are different from before, below the workspace.
        conflicts: what both sides changed differently.
        waiting: why the merge commit waits, where git became busy; the files are merged already.
        nothing: the branch held the other line already. Where both lines say the same, a commit joins them all the
            same, and no file changes.
    """

    commit: str
    forward: bool = False
    changed: tuple[str, ...] = ()
    conflicts: tuple[FileClash, ...] = ()
    waiting: str = ""
    nothing: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class _MergePlan:
    commit: str
    branch: str
    plans: tuple[FilePlan, ...]
    result: MergeResult


class Merger:
    """Merges commits into the checked-out branch of one workspace. May be used from several threads."""

    def __init__(self, store: Store, parts: Parts, sum_up: Callable[[Sequence[str]], None]) -> None:
        """``sum_up`` gets the files that a merge changed, to bring up to date what follows from them."""
        self._sum_up, self._store, self._parts = sum_up, store, parts
        self._histories = HistoryJoin(parts)

    def merge(
        self,
        commit: str,
        message: str,
        *,
        source: str = "",
        dry_run: bool = False,
        adopt: bool | None = None,
        unrelated: bool = False,
    ) -> MergeResult:
        """Join a commit's memory with what is here; the branch then holds both lines.

        What waits is committed first. Files are written journal first: killed anywhere, the merge is finished or was
        never begun. Where the branch holds nothing that the commit lacks, it moves there without a merge commit.

        Args:
            commit: full id of the commit to join; it must be in the repository.
            message: the merge commit's sentence.
            source: which door asked for it, for the commit's trailers.
            dry_run: report what would happen, write nothing; what waits for its commit is left out.
            adopt: whether edits by hand are committed first; None as ``history.adopt`` says.
            unrelated: also join a line that has no commit in common with this one.

        Returns:
            What changed, and what both sides changed differently.

        Raises:
            Conflict: a file that the merge would change was edited by hand, and the edit is not committed.
            GitBusy: a person is in the middle of something; nothing was changed.
            MergeRefused: the other line changes files that are not memory, or files that no merge can join, or has
                nothing in common with this one.
            HistoryUnavailable: the commit, or what both share, is not in the repository (a shallow clone).
        """
        for attempt in range(_TRIES):
            if not dry_run:
                flushed = self._store.flush(adopt=adopt)
                if flushed.reason or flushed.waiting:
                    reason = flushed.reason or f"writes still wait for their commit: {flushed.waiting}"
                    raise GitBusy(reason, hint="merge again when that is over")
                self._store.change_detector.take_news()  # a plan made without it is outdated
            planned = self._plan(commit, unrelated)
            if planned is None:
                return MergeResult(commit=self._parts.repository.head_commit() or "", nothing=True)
            paths = [one.path for one in planned.plans]
            edited = set(self._store.hand_edits(paths if len(paths) <= _FEW else None)).intersection(paths)
            if edited:  # a person's, that are in no commit
                raise Conflict(
                    f"the merge changes what holds edits that are not committed: {shortlist(sorted(edited))}",
                    path=min(edited),
                    hint="'memfs commit' commits them, after you corrected what 'memfs check' names; then merge again",
                )
            if dry_run:
                return planned.result
            try:
                return self._carry_out(planned, message, source)
            except Conflict:  # somebody wrote, or switched, meanwhile: what it comes to is another thing
                if attempt + 1 == _TRIES:
                    raise
        raise AssertionError("the last try returns or raises")

    def _plan(self, commit: str, unrelated: bool) -> _MergePlan | None:
        """What is to be done; None where the branch holds the commit already."""
        repository = self._parts.repository
        if busy := repository.busy():
            raise GitBusy(busy, hint="merge again when that is over")
        head = repository.head()
        if not holds_commit(repository, commit):
            raise HistoryUnavailable(f"the commit {commit[:10]} is not in this repository", hint="fetch it first")
        ours = head.commit
        if ours is not None and is_ancestor(repository, commit, ours):
            return None
        bases = merge_bases(repository, ours, commit) if ours else ()
        if ours and not bases and not unrelated:
            raise MergeRefused(
                f"{commit[:10]} has no history in common with this branch",
                hint=f"'git merge --allow-unrelated-histories {commit[:12]}' joins them; memfs merges memory there",
            )
        changed, contested = self._histories.outcome(ours, commit, bases)
        plans = (*changed, *conflict_records(self._parts, contested))
        result = MergeResult(
            commit="",
            forward=ours is None or bases == (ours,),
            changed=tuple(one.path for one in plans),
            conflicts=tuple(
                FileClash(path=file.path, field=one.field, kept=one.kept, lost=one.lost)
                for file in contested
                for one in file.conflicts
            ),
        )
        return _MergePlan(commit=commit, branch=head.ref or "", plans=plans, result=result)

    # -- the merge ------------------------------------------------------------------------------------------------
    def _carry_out(self, planned: _MergePlan, message: str, source: str) -> MergeResult:
        """Write the merged files durably, whereupon they wait in the journal, and commit them.

        Raises:
            Conflict: a file, or the branch, is not what the plan was made against; nothing was written.
            SecretDetected: the message holds one.
            StorageIO: nothing was written.
        """
        refuse_text(message, "message")
        self._parts.quota_guard.prepare()
        signed = signatures_of(planned.plans, source)
        carry_out = partial(self._store.writing.carry_out, batch=True, critical=True)  # a quota does not keep it out
        try:
            carry_out(planned.plans, message, signed, merges=planned.commit, on=planned.branch)
        except PlanOutdated as outdated:
            if outdated.path:
                self._store.index_sync.refresh([outdated.path])
            reason = "a file or the branch changed while the merge was prepared"
            raise Conflict(reason, path=outdated.path or None, hint="try again") from None
        self._parts.quota_guard.settle()
        self._store.wrote = True
        flushed = self._store.flush(adopt=False)
        tip = self._parts.repository.head_commit() or ""
        if not is_ancestor(self._parts.repository, planned.commit, tip):
            reason = flushed.reason or "the branch moved meanwhile"
            return replace(planned.result, forward=False, waiting=reason)
        if tip == planned.commit:
            return replace(planned.result, commit=tip, forward=True)
        try:  # totals, which neither side had of both; the merge is done, whatever becomes of that
            self._sum_up([one.path for one in planned.plans])
        except MemfsError as error:
            self._store.note_failure(error)
        self._store.flush(adopt=False)
        return replace(planned.result, commit=self._parts.repository.head_commit() or tip, forward=False)


# -- what merges of git's lost ------------------------------------------------------------------------------------
_MESSAGE = "Bring back what a merge lost"
_MOST = 20


def bring_back(store: Store, parts: Parts, missed: MissedItems) -> int:
    """Put items that merges lost back where they belong, unless a merge is still going on; how many there were.

    They are those of which the driver left a reminder, and those that both sides of a merge made since the last look
    have, and its outcome has not. Where one side removed an item, the edit of the other comes back with a record. A
    merge that was given up, or that another branch has, is left alone.

    Raises:
        Conflict, StorageIO: it stays to be done.
    """
    if not is_merge_due(parts.repository):
        return 0
    head = parts.repository.head_commit()
    waiting = missed.all()
    seen = ""
    with suppress(FileNotFoundError, MemfsError, UnicodeDecodeError):
        noted = io.read_file(parts.repository.state / SEEN, 64).decode()
        seen = noted if HEX.fullmatch(noted) else ""
    if not head or (seen == head and not waiting) or parts.repository.busy():
        return 0
    paths = (entry.path for entry in parts.tree.scan(CONTENT) if is_item(entry.path, parts.kinds))
    present = {stem_of(path).casefold(): path for path in paths}
    settled = [
        name
        for name, one in waiting.items()
        if one.merged != (head,) and all(is_ancestor(parts.repository, commit, head) for commit in one.merged)
    ]
    contents: dict[str, bytes] = {}
    if seen != head:
        for commit in _merges(parts, seen, head):
            contents = dict(_lost(parts, commit, present)) | contents
    for name in settled:
        one = waiting[name]
        path = present.get(stem_of(one.path).casefold(), one.path)
        with suppress(HistoryError, ContentError, FileNotFoundError):  # erased since, or unreadable
            begun, own = (parts.repository.blob(blob) if blob else None for blob in (one.begun, one.own))
            there = parts.tree.read(path, READ_LIMIT).data if path in present.values() else None
            merged = FileMerger(parts.codec).merge(path, begun, own, there)
            if merged.data not in (None, there) and not merged.whole:
                contents[path] = merged.data or b""
    plans = [plan._replace(expected=plan.old_sha) for plan in store.plan_restore(contents)]
    if plans:
        store.carry_out(plans, _MESSAGE, source="merge")
    for name in settled:
        missed.drop(name)
    with suppress(MemfsError):  # it is looked at once more
        io.write_file(parts.repository.state / SEEN, head.encode())
    return len(plans)


def _merges(parts: Parts, seen: str, head: str) -> list[str]:
    """The merges of two lines made since the last look, newest first; at the first look the newest commit alone."""
    known = [f"^{seen}", f"--max-count={_MOST}"] if seen else ["--no-walk"]
    with suppress(HistoryError):
        rows = parts.repository.git.run("rev-list", "--merges", "--parents", *known, head).decode().splitlines()
        return [row.split()[0] for row in rows if len(row.split()) == 3]
    return []


def _lost(parts: Parts, commit: str, present: Mapping[str, str]) -> Iterator[tuple[str, bytes]]:
    """The items that both parents of a merge have and nothing has now, as they should have come to be."""
    repository, join = parts.repository, HistoryJoin(parts)
    with suppress(HistoryError, MergeRefused):
        ours, theirs = repository.commit_object(commit).parents
        sides = join.sides(ours, theirs, merge_bases(repository, ours, theirs))
        missing = (join.names(sides[1]) & join.names(sides[2])) - present.keys()
        before, after = snapshots(repository, [ours, commit]) if missing else ({}, {})
        gone = (repository.below(path) for path in before if path not in after)
        kept = (repository.below(path) for path in after)
        missing &= join.names(filter(None, gone)) - join.names(filter(None, kept))
        own = [{path: side[path] for path in side if join.names([path]) & missing} for side in sides]
        for path, version in join.join(*own).versions.items():
            data = join.content(version)
            if data is not None:
                yield path, data
