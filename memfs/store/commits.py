"""Commits what waits in the journal, and a person's own edits, when it is due.

Waiting operations are cut into commits in their order: no path twice, no two writers, each batch alone; with a message
of the person's, everything of one writer together. One process commits at a time. What a person committed with git of
it waits no longer: HEAD's bytes at a path show it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import UTC, datetime

from memfs import errors
from memfs.dataclass import dataclass, field, replace
from memfs.fs.atomic_replace import FileChanged, sha256
from memfs.fs.journal import FileChange, Operation
from memfs.git.layout import Head
from memfs.git.repository import blobs_in_history
from memfs.model import Problem
from memfs.model.time import utc_now
from memfs.startup import TYPE_CHECKING
from memfs.store.hand_edits import HandEdits
from memfs.store.parts import FlushResult, Parts, is_item
from memfs.store.plan import and_more, combined_message, item_label
from memfs.store.recovery import content_now, keep_replaced, set_aside, sweep
from memfs.store.write import FileWriter, allowed_reasons

if TYPE_CHECKING:
    from memfs.git.commit_object import Group

_PIECE = 40
_DETACHED = "HEAD"


@dataclass(slots=True)
class _Progress:
    commits: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    notes: list[Problem] = field(default_factory=list)
    displaced: bool = False


class Committer:
    """Turns waiting operations into commits. One process at a time, under the commit lock."""

    def __init__(self, parts: Parts, writer: FileWriter, edits: HandEdits) -> None:
        self._parts = parts
        self._people = PersonCommits(parts)
        self._asked = False  # this and the next: of the holder of the commit lock
        self._below: tuple[str, ...] = ()
        self._writer, self._edits = writer, edits

    def flush(
        self,
        *,
        adopt: bool = False,
        include_staged: bool = False,
        quiet_seconds: float = 0,
        message: str = "",
        patience: float = 10,
        asked: bool = False,
        below: tuple[str, ...] = (),
    ) -> FlushResult:
        """Commit what waits.

        It does not raise when git is busy or refuses: the journal keeps everything, and ``reason`` says why it waits.

        Args:
            adopt: commit a person's edits, too.
            include_staged: of those, also the ones the person has staged.
            quiet_seconds: of those, only files unchanged for that long.
            message: for the commit of the person's edits.
            patience: how long, in seconds, to wait for another process that is committing.
            asked: a person asks for the commit: their ``commit.gpgsign`` holds, as it does wherever memfs commits only
                when asked.
            below: only what was written below these folders; everything where none is named.

        Raises:
            SecretDetected: the message holds a secret.
        """
        from memfs.format.secrets import refuse_text  # who commits nothing does without

        refuse_text(message, "message")
        try:
            with self._parts.commit_lock.hold("commit", timeout=patience):
                self._asked = asked or self._parts.policy.commit == "manual"
                self._below = below
                return self._flush(adopt, include_staged, quiet_seconds, message)
        except (errors.MemfsError, FileNotFoundError) as error:  # the latter where a folder of git's went meanwhile
            return FlushResult(waiting=len(self._parts.journal.waiting), reason=str(error))

    def maintain_if_due(self) -> None:
        """Pack a repository that memfs made, once about a thousand commits have gathered; never one that it joined."""
        parts = self._parts
        if parts.policy.adopt != "auto":
            return
        from memfs.git import commits  # only a process that commits needs what makes commits, here and below

        if commits.due(parts.repository):
            with contextlib.suppress(errors.LockTimeout), parts.commit_lock.hold("maintenance", timeout=1):
                commits.maintain(parts.repository)

    def _flush(self, adopt: bool, include_staged: bool, quiet_seconds: float, message: str) -> FlushResult:
        from memfs.git import commits

        parts = self._parts
        busy = parts.repository.busy()
        if busy:
            raise errors.GitBusy(busy, hint=parts.policy.when_free)
        done = _Progress()
        done.notes.extend(commits.recover(parts.repository))
        done.notes.extend(self._writer.recover())
        done.notes.extend(self._people.notice_locked(thorough=True))
        adopted = self._adopt(done, include_staged, quiet_seconds, message) if adopt else ()
        reasons = self._commit_waiting(done, message)
        if parts.repository.sign != "off":
            done.notes.extend(parts.repository.signing.take_notes())
        if adopt and done.displaced:
            # While a write of theirs waited these removals were no edits of their own; now they are.
            adopted += self._adopt(done, include_staged, quiet_seconds, message)
            reasons = self._commit_waiting(done, message)
        return FlushResult(
            commits=tuple(done.commits),
            adopted=adopted,
            skipped=tuple(dict.fromkeys(done.skipped)),
            waiting=len(parts.journal.operations()),
            reason="; ".join(reasons),
            notes=tuple(done.notes),
        )

    def _adopt(self, done: _Progress, include_staged: bool, quiet_seconds: float, message: str) -> tuple[str, ...]:
        """Journal the person's edits; the paths of those that are to be committed."""
        found = self._edits.find(include_staged, quiet_seconds)
        done.skipped.extend(found.staged)
        if not found.plans:
            return ()
        sentence = message
        if not message:
            verb = "Remove" if all(plan.after is None for plan in found.plans) else "Edit"
            first = found.plans[0]
            if first.after is not None and is_item(first.path, self._parts.kinds):
                with contextlib.suppress(errors.ContentError):
                    item = self._parts.codec.read(first.after, first.path, utc_now())
                    first = first._replace(item=item)
            sentence = f"{verb} by hand: {item_label(first)}{and_more(len(found.plans))}"
        sentence += allowed_reasons([plan.reason for plan in found.plans])
        return tuple(plan.path for plan in self._writer.record_edits(found.plans, sentence))

    def _commit_waiting(self, done: _Progress, message: str) -> list[str]:
        from memfs.git import commits

        with self._parts.lock.hold("copy what waits"):
            operations = [self._shareable(operation) for operation in self._parts.journal.operations()]
            operations = _touching(operations, self._below) if self._below else operations
            current = self._head().ref or _DETACHED
            by_branch = self._by_branch(operations, current)
            removed = self._removed(by_branch.get(current, ()))
        reasons = []
        for ref, chosen in by_branch.items():
            aside = removed if ref == current else {}
            try:
                for piece in _pieces(chosen, message):
                    left = [_reduced(operation, aside.keys()) for operation in piece]
                    again, groups = False, windows(left, message)
                    if groups:
                        tip = self._parts.journal.tip
                        made = commits.commit(self._parts.repository, groups, ref, tip, asked=self._asked)
                        done.commits.extend(made.commits)
                        done.skipped.extend(made.left_staged)
                        # some of it was committed already, perhaps by one that died before it had settled that
                        again = len(made.commits) < len(groups)
                    for members in _cut(left, message):
                        last = _last(members)
                        for path, data in [(one.path, one.data) for operation in members for one in operation.changes]:
                            if data is not None and data != last[path]:  # the commit has only a later version
                                keep_replaced(self._parts.repository.state, path, data)
                    done.notes.extend(self._set_aside(aside, piece))
                    done.notes.extend(self._settle(piece, ref, again))
            except errors.GitBusy as error:
                reasons.append(str(error))
            else:
                done.displaced = done.displaced or bool(aside)
        return reasons

    def _shareable(self, operation: Operation) -> Operation:
        """An operation without what stays on this machine; what is in history already may leave it."""
        repository = self._parts.repository
        local = {change.path for change in operation.changes if self._parts.is_local(change.path)}
        kept = {
            change.path
            for change in operation.changes
            if change.path in local and change.data is None and repository.head_blob(change.path) is not None
        }
        return _reduced(operation, local - kept) if local else operation

    def _head(self) -> Head:
        """Where HEAD points, for sure: the files here would else be taken for another branch's, and taken out."""
        head = self._parts.repository.head()
        if head.damage:
            raise errors.HistoryUnavailable(head.damage, hint="commits wait until git's own files can be read")
        return head

    def _by_branch(self, operations: Iterable[Operation], current: str) -> dict[str, list[Operation]]:
        chosen: dict[str, list[Operation]] = {}
        # Where the person commits, a write goes along to another branch like any other change of a file.
        stays = self._parts.policy.commit != "manual"
        for operation in operations:
            elsewhere = operation.branch and operation.branch != current and (stays or operation.merges)
            known = elsewhere and self._parts.repository.ref_commit(operation.branch) is not None
            # what was joined with a branch that is gone was not joined with this one
            kept = operation if known or not elsewhere else replace(operation, merges="")
            chosen.setdefault(operation.branch if known else current, []).append(kept)
        return chosen

    def _removed(self, operations: Sequence[Operation]) -> dict[str, list[tuple[str, FileChange]]]:
        """Files that were removed after they were written: every version that waits, by path, oldest first.

        What a merge wrote is none of them: its commit without the file would take it from everybody.
        """
        versions: dict[str, list[tuple[str, FileChange]]] = {}
        merged = {change.path for operation in operations if operation.merges for change in operation.changes}
        for operation in operations:
            for number, change in enumerate(operation.changes):
                versions.setdefault(change.path, []).append((f"{operation.id}-{number}", change))
        last = {path: rows[-1][1].data for path, rows in versions.items() if path not in merged}
        with self._parts.tree.holding_folders():
            gone = [path for path in sorted(last) if last[path] is not None and self._parts.tree.entry(path) is None]
        return {path: [row for row in versions[path] if row[1].data is not None] for path in gone}

    def displaced(self) -> list[tuple[str, float, FileChange]]:
        """What waits for this branch and was removed by someone: a name for it, when it was written, the change."""
        if found := self._displaced():
            with contextlib.suppress(errors.MemfsError), self._parts.lock.hold("look for what was removed", timeout=10):
                return self._displaced()  # a write that was on its way to its file is there by now
        return found

    def _displaced(self) -> list[tuple[str, float, FileChange]]:
        """The same, with what a writer has journalled and is about to put at its place."""
        operations = [self._shareable(operation) for operation in self._parts.journal.operations()]
        current = self._parts.repository.head().ref or _DETACHED
        times = {operation.id: operation.time for operation in operations}
        removed = self._removed(self._by_branch(operations, current).get(current, ()))
        rows = [row for versions in removed.values() for row in versions]
        return [(name, times[name.rpartition("-")[0]], change) for name, change in rows]

    def _set_aside(
        self, removed: dict[str, list[tuple[str, FileChange]]], operations: Sequence[Operation]
    ) -> list[Problem]:
        """Of the removed versions, those that these operations wrote."""
        state, ids = self._parts.repository.state, {operation.id for operation in operations}
        rows = (row for versions in removed.values() for row in versions)
        return [set_aside(state, change, name) for name, change in rows if name.rpartition("-")[0] in ids]

    def _settle(self, operations: Sequence[Operation], ref: str, again: bool) -> list[Problem]:
        """Forget what is committed; where the branch is not checked out (any more), its files leave the tree."""
        parts = self._parts
        done = {operation.id for operation in operations}
        found: list[Problem] = []
        with parts.lock.hold("settle what is committed"):
            if again:  # one that died while it took files out of the tree may have left some under temporary names
                last = {change.path.rpartition("/")[0]: one for one in operations for change in one.changes}
                for folder, operation in last.items():
                    found += sweep(parts, folder, operation)
            parts.repository.let_moves_end()
            head = self._head()
            checked_out = (head.ref or _DETACHED) == ref
            if not checked_out:
                others = (operation for operation in parts.journal.operations() if operation.id not in done)
                wanted = {change.path for operation in others for change in operation.changes}
                self._take_out(operations, wanted)
            parts.journal.catch_up()
            known = {*done, *parts.journal.taken}  # what failed here half-way may be there, too
            taken = parts.secondary.may_hold(known) if parts.secondary else None
            parts.journal.drop(done, tip=head.commit or "" if checked_out else "", taken=taken)
        return found

    def _take_out(self, operations: Sequence[Operation], wanted: set[str]) -> None:
        """Where a file is still as the other branch's operations left it, bring back what the index has there.

        What a checkout has laid out stays, even before it has moved HEAD: it has written the index by then.

        Raises:
            GitBusy: a person's command is at work; the next flush takes out what is left.
        """
        parts = self._parts
        last = {change.path: change.new for operation in operations for change in operation.changes}
        paths = [path for path, digest in last.items() if path not in wanted and self._is_still(path, digest)]
        if not paths:
            return
        from memfs.git.commits import index_lock

        with index_lock(parts.repository):
            for path, blob in parts.repository.staged(paths).items():
                theirs = parts.repository.blob(blob) if blob else None
                with contextlib.suppress(FileChanged):
                    if theirs is not None and sha256(theirs) != last[path]:
                        parts.tree.write(path, theirs, over=last[path])
                    elif blob is None and last[path]:
                        parts.tree.remove(path, over=last[path])

    def _is_still(self, path: str, digest: str) -> bool:
        try:
            return content_now(self._parts.tree, path) == digest
        except (errors.NotRegularFile, errors.PathEscape, errors.ItemTooLarge):
            return False


def windows(operations: Iterable[Operation], message: str = "") -> list[Group]:
    """Cut operations, in order, into commits: no path twice, no two writers, each batch alone.

    What someone commits with a ``message`` of their own is one commit, a path as it was written last: only where an
    agent or a session differs there is another commit, of the same message.
    """
    if not (cut := _cut(operations, message)):
        return []
    from memfs.git.commit_object import CommitChange, Group

    return [
        Group(
            changes=tuple(CommitChange(path=path, data=data) for path, data in _last(members).items()),
            message=combined_message([operation.message for operation in members], message),
            writers=tuple(dict.fromkeys(writer for operation in members for writer in operation.writers)),
            time=datetime.fromtimestamp(members[-1].time, UTC),
            merges=members[0].merges,
        )
        for members in cut
    ]


def _pieces(operations: Sequence[Operation], message: str) -> list[list[Operation]]:
    """Operations in the portions that land on the branch together.

    All that waits, in one, would have to start over whenever another process moves the branch meanwhile: beside a busy
    person a long queue would never land. Cuts are between commits.
    """
    starts = {members[0].id for members in _cut(operations, message)[_PIECE::_PIECE]}
    pieces: list[list[Operation]] = [[]]
    for operation in operations:
        if operation.id in starts:
            pieces.append([])
        pieces[-1].append(operation)
    return pieces


def _cut(operations: Iterable[Operation], message: str) -> list[list[Operation]]:
    cut: list[list[Operation]] = []
    paths: set[str] = set()
    for operation in operations:
        if not operation.changes and not operation.merges:
            continue
        touched = {change.path for change in operation.changes}
        together = False
        if cut and message:
            last = cut[-1][-1]
            before, agents = ({(writer.agent, writer.session) for writer in one.writers} for one in (last, operation))
            together = not operation.merges and not last.merges and before == agents
        elif cut:
            last = cut[-1][-1]
            alone = operation.batch or last.batch or touched & paths
            together = not alone and last.writers == operation.writers
        if not together:
            cut.append([])
            paths = set()
        cut[-1].append(operation)
        paths |= touched
    return cut


def _last(operations: Iterable[Operation]) -> dict[str, bytes | None]:
    """What operations leave at each path, in the order of the last changes: a folder may replace a file."""
    last: dict[str, bytes | None] = {}
    for operation in operations:
        for change in operation.changes:
            last.pop(change.path, None)
            last[change.path] = change.data
    return last


def _touching(operations: Sequence[Operation], below: tuple[str, ...]) -> list[Operation]:
    """The operations that write below some folders, and the earlier ones on whose files those build."""
    chosen: list[Operation] = []
    paths: set[str] = set()
    for operation in reversed(operations):
        touched = {change.path for change in operation.changes}
        if touched & paths or any(path.startswith(below) for path in touched):
            chosen.append(operation)
            paths |= touched
    return chosen[::-1]


def _reduced(operation: Operation, removed: Collection[str]) -> Operation:
    return replace(operation, changes=tuple(change for change in operation.changes if change.path not in removed))


@dataclass(slots=True)
class _Versions:
    """What waits for one path, oldest first.

    Attributes:
        names: of each version, as contents that were set aside are called.
        done: how many of the versions, from the first on, need no commit any more.
        displaced: a person's own version is in place of all of them.
    """

    changes: list[FileChange] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    done: int = 0
    displaced: bool = False


class PersonCommits:
    """Notices what a person committed of one workspace."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    def notice(self, *, thorough: bool = False) -> list[Problem]:
        """Let go of waiting writes that HEAD holds, or in whose place a person put something else.

        Bytes of theirs that no commit holds are set aside first. One who is at work in the repository, or lacks the
        right to write, leaves everything as it is: the next one notices.

        Args:
            thorough: look also where HEAD has not moved since this was last done, at every file that waits.

        Returns:
            What a person changed after memfs had written it.
        """
        try:
            if not self._wanted(thorough):
                return []
            with self._parts.commit_lock.hold("notice commits", timeout=0):
                return [] if self._parts.repository.busy() else self.notice_locked(thorough=thorough)
        except errors.MemfsError:  # a write or commit reports what is wrong
            return []

    def notice_locked(self, *, thorough: bool = False) -> list[Problem]:
        """As ``notice``, for the holder of the repository's ``commit.lock``, who has seen that git rests.

        Raises:
            StorageIO, LockTimeout: nothing was let go of.
        """
        parts = self._parts
        if not self._wanted(thorough):
            return []
        with parts.lock.hold("notice commits"):
            operations, head = parts.journal.operations(), parts.repository.head().commit or ""
            if parts.journal.unfinished() or any(operation.merges for operation in operations):
                return []
            moved = head != parts.journal.tip
            versions: dict[str, _Versions] = {}
            for operation in operations:
                for number, change in enumerate(operation.changes):
                    waiting = versions.setdefault(change.path, _Versions())
                    waiting.changes.append(change)
                    waiting.names.append(f"{operation.id}-{number}")
            for path, waiting in versions.items():
                self._judge(path, waiting, head, moved)
            notes = list(self._set_aside(versions, head))
            self._let_go(operations, versions, head, moved)
        return notes

    def _wanted(self, thorough: bool) -> bool:
        parts = self._parts
        if parts.policy.commit != "manual" or not parts.journal.operations():
            return False
        head = parts.repository.head()
        return not head.damage and head.commit is not None and (thorough or head.commit != parts.journal.tip)

    def _judge(self, path: str, waiting: _Versions, head: str, moved: bool) -> None:
        """Decide how many of the versions need no commit any more."""
        ids = [self._blob_id(change) for change in waiting.changes]
        committed = self._committed(head, path)
        as_before = not moved or self._digest(committed) == waiting.changes[0].old
        if committed in ids:  # also where a later write took an earlier one back
            waiting.done = len(ids) - ids[::-1].index(committed)
            return
        now = content_now(self._parts.tree, path)
        if now == waiting.changes[-1].new:
            return
        # A person restored what HEAD has, or committed something else and perhaps went on from there.
        if now == self._digest(committed) or not as_before:
            waiting.done, waiting.displaced = len(ids), True

    def _set_aside(self, versions: dict[str, _Versions], head: str) -> Iterator[Problem]:
        state, left = self._parts.repository.state, []
        for path, waiting in versions.items():
            held = self._committed(head, path) if waiting.done else None
            for name, change in zip(waiting.names[: waiting.done], waiting.changes, strict=False):
                if change.data is not None and self._blob_id(change) != held:
                    left.append((waiting.displaced, name, change, change.data))
        elsewhere = blobs_in_history(self._parts.repository, {change.path for _, _, change, _ in left})
        for displaced, name, change, data in left:
            if self._blob_id(change) in elsewhere:  # in a commit of another branch, or in one before HEAD
                continue
            if displaced:
                yield set_aside(state, change, name)
            else:
                keep_replaced(state, change.path, data)

    def _let_go(self, operations: Sequence[Operation], versions: dict[str, _Versions], head: str, moved: bool) -> None:
        gone, reduced = set(), {}
        for operation in operations:
            left = []
            for change in operation.changes:
                waiting = versions[change.path]
                if waiting.done:
                    waiting.done -= 1
                else:
                    left.append(change)
            if not left:
                gone.add(operation.id)
            elif len(left) < len(operation.changes):
                reduced[operation.id] = replace(operation, changes=tuple(left))
        if gone or reduced or moved:
            self._parts.journal.drop(gone, tip=head, reduced=reduced)

    def _committed(self, head: str, path: str) -> str | None:
        entry = self._parts.repository.entry(head, path)
        return entry.id if entry else None

    def _blob_id(self, change: FileChange) -> str | None:
        return None if change.data is None else self._parts.repository.blob_id(change.data)

    def _digest(self, blob: str | None) -> str | None:
        """The sha256 of a committed content, "" for none; None where it cannot be read, which is like no other."""
        if blob is None:
            return ""
        with contextlib.suppress(errors.MemfsError):
            return sha256(self._parts.repository.blob(blob))
        return None
