"""Undo what a session, an agent or a commit wrote, and nothing else, as one new commit.

Later edits stay: a field that somebody changed since is kept, and reported. History is never rewritten.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from datetime import datetime
from typing import Any

from memfs.admin.history import History
from memfs.admin.store_builder import first_files
from memfs.dataclass import dataclass, field, replace
from memfs.errors import Conflict, GitBusy, HistoryUnavailable, MemfsError, QueryInvalid, SecretDetected
from memfs.format.field_merge import equal, settled, value_at
from memfs.format.file_merge import FileMerger
from memfs.format.secrets import refuse_text
from memfs.fs.atomic_replace import sha256
from memfs.git.commit_object import AGENT, SESSION, SOURCE, ParsedCommit, trailer_value
from memfs.git.log import OWN_PATHS, changed_paths, log
from memfs.git.objects import REGULAR
from memfs.git.repository import is_ancestor
from memfs.model import Origin, Query
from memfs.model.ids import stem_of
from memfs.model.item import RecordedConflict, object_id
from memfs.model.query import MOST, moment
from memfs.model.state_paths import AGGREGATES
from memfs.model.time import EPOCH
from memfs.store import Store
from memfs.store.parts import READ_LIMIT, Parts
from memfs.store.plan import FilePlan, signed_by
from memfs.team.blame import Fields, Trailers, named_in, shared, trailers_of

UNDOES = "Memfs-Undoes"
"""The trailer by which an undo names the commits that it takes back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RevertSelection:
    """Whose changes are meant: what one session, or one agent, wrote, or what some commits changed.

    Attributes:
        session, agent: their names; with both, what the agent wrote in that session.
        commits: revisions; each is a commit of HEAD's history.
        since: only what was written at this time or later.
    """

    session: str = ""
    agent: str = ""
    commits: tuple[str, ...] = ()
    since: datetime | None = None

    def __post_init__(self) -> None:
        """Take a time without an offset for local time."""
        object.__setattr__(self, "since", moment("since", self.since))

    def names(self, trailers: Trailers) -> bool:
        """Whether a commit's writers are, or are among, those that are meant."""
        expected = {SESSION: self.session, AGENT: self.agent}
        return all(trailer_value(name) in trailers.get(key, ()) for key, name in expected.items() if name)


@dataclass(frozen=True, slots=True, kw_only=True)
class RevertStep:
    """A commit that something is taken back of.

    Attributes:
        commit: its id.
        time: when it was made.
        author: by whom.
        subject: the first line of its message.
    """

    commit: str
    time: datetime
    author: str
    subject: str


@dataclass(frozen=True, slots=True)
class RevertVersion:
    """A file as it was: where it lay, its blob id, and its bytes where they are in no commit."""

    path: str
    blob: str
    data: bytes | None = field(default=None, compare=False)

    @classmethod
    def of(cls, path: str, data: bytes) -> RevertVersion:
        """A version that may be in no commit."""
        return cls(path, object_id("blob", data), data)


@dataclass(frozen=True, slots=True, kw_only=True)
class StepChange:
    """What one step did to one file; a version is None where the file was not there.

    ``name`` stays the same where the file moves.
    """

    name: str
    step: RevertStep
    before: RevertVersion | None
    after: RevertVersion | None

    @property
    def paths(self) -> tuple[str, ...]:
        """Where the file lay."""
        return tuple(one.path for one in (self.before, self.after) if one is not None)


@dataclass(frozen=True, slots=True)
class UntouchedFile:
    """A file that an undo leaves alone.

    Attributes:
        path: where it is.
        reason: why.
    """

    path: str
    reason: str


_OWN_ACCOUNT = ("created", "updated", "origin", "trust", "conflicts")
"""Fields that say who wrote the others, when, and who vouches for them: they go with those, without a decision."""
_BESIDE = frozenset({"updated", "importance", "links", "metadata", "conflicts"})
"""Fields in which others, and memfs, keep what became of an item; they do not make its words theirs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UntouchedField:
    """A field that keeps what somebody wrote into it later.

    Attributes:
        id: the item's id, or the document's path.
        path: its file.
        field: dotted name; "" for the whole file.
        now: what it says, and keeps saying.
        undone: what it would say had the later edit not been.
    """

    id: str = ""
    path: str = ""
    field: str
    now: Any
    undone: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Reversal:
    """One file: what it is and becomes, None where it is absent, and what of it stays as somebody made it later.

    ``reason`` says why nothing could be done, "" where something could.
    """

    id: str = ""
    present: RevertVersion | None = None
    result: RevertVersion | None
    clashes: tuple[UntouchedField, ...] = ()
    reason: str = ""

    @property
    def action(self) -> str:
        """What becomes of it; "" for nothing at all."""
        present, result = self.present, self.result
        if present == result:
            return "kept" if self.clashes else ""
        if present is None:
            return "restored"
        if result is None:
            return "removed"
        return "moved" if present.path != result.path else "changed"

    @property
    def paths(self) -> tuple[str, ...]:
        """Where it is afterwards, and where it is now."""
        return tuple(one.path for one in (self.result, self.present) if one is not None)


class Reverter:
    """Finds what a selection means, and takes it out of the files. One is made for each undo.

    Attributes:
        steps: the commits from which the changes come, newest first.
        already: commits that were meant, and were taken back before, each with the one that did so.
        left: files that are not touched, with why.
    """

    def __init__(self, store: Store, parts: Parts, selection: RevertSelection) -> None:
        self._store, self._selection = store, selection
        self._repository, self._codec = parts.repository, parts.codec
        self._merger, self.fields = FileMerger(parts.codec), Fields(parts.kinds)
        self.steps: tuple[RevertStep, ...] = ()
        self.already: dict[str, str] = {}
        self.left: dict[str, str] = {}

    def choose(self) -> list[list[StepChange]]:
        """The changes that are meant, of each file newest first.

        Raises:
            HistoryUnavailable: a commit does not exist, or is not in HEAD's history.
        """
        head = self._repository.head_commit()
        if self._selection.commits and not head:
            raise HistoryUnavailable("there is no commit yet", hint="'memfs log' shows what there is")
        meant = dict(self._commits(head)) if head else {}
        # What those commits that are meant say of themselves counts for nothing: they could keep their own from being
        # undone. The newest come first, so that what was taken back and brought back again is not among them.
        undone: dict[str, str] = {}
        for commit in self._listed(head, "--fixed-strings", f"--grep={UNDOES}: ") if head else ():
            if commit not in undone and commit not in meant:
                undone |= dict.fromkeys(self._repository.commit_object(commit).trailers.get(UNDOES, ()), commit)
        self.already = {commit: undone[commit] for commit in meant if commit in undone}
        changes: list[StepChange] = []
        for commit, parsed in meant.items():
            if commit not in undone:
                changes += self._of_commit(commit, parsed)
        if not self._selection.commits:
            changes += self._unsigned(head or "", {change.name for change in changes}, undone)
        self.steps = tuple(dict.fromkeys(change.step for change in changes))
        by_name: dict[str, list[StepChange]] = {}
        for change in changes:
            by_name.setdefault(change.name, []).append(change)
        return list(by_name.values())

    # -- commits ------------------------------------------------------------------------------------------------------
    def _commits(self, head: str) -> Iterator[tuple[str, ParsedCommit]]:
        """The commits that are meant, newest first."""
        selection = self._selection
        if selection.commits:
            chosen = {self._in_history(revision, head) for revision in selection.commits}
            found = [one for one in self._listed(head) if one in chosen]
        else:
            named = ((SESSION, selection.session), (AGENT, selection.agent))
            words = [f"--grep={key}: {trailer_value(name)}" for key, name in named if name]
            found = self._listed(head, "--fixed-strings", "--all-match", *words)
        for commit in found:
            parsed = self._repository.commit_object(commit)
            if selection.since is not None and parsed.time < selection.since:
                continue
            if selection.commits or len(parsed.parents) < 2:  # what a merge brought, others wrote
                yield commit, parsed

    def _listed(self, head: str, *arguments: str) -> list[str]:
        return self._repository.git.run("rev-list", "--topo-order", *arguments, head, "--").decode().split()

    def _in_history(self, revision: str, head: str) -> str:
        commit = self._repository.resolve(revision)
        if not is_ancestor(self._repository, commit, head):
            raise HistoryUnavailable(
                f"{revision!a} is not in the history of what is checked out", hint="check its branch out, or merge it"
            )
        return commit

    def _of_commit(self, commit: str, parsed: ParsedCommit) -> list[StepChange]:
        step = RevertStep(commit=commit, time=parsed.time, author=parsed.author.name, subject=parsed.subject)
        parent = parsed.parents[0] if parsed.parents else ""
        paths = [path for own in OWN_PATHS for path in changed_paths(self._repository, parent, commit, own)]
        before = {path: found for path in paths if (found := self._at(parent, path))}
        after = {path: found for path in paths if (found := self._at(commit, path))}
        needed = {path for path in first_files({}) if path in after and path not in before}
        self.left |= dict.fromkeys(needed if self._selection.commits else (), "without it there is no workspace")
        paths = [path for path in paths if path not in needed]
        return self._chosen(self._paired(step, paths, before, after), named_in(parsed.body, parsed.trailers))

    def _at(self, commit: str, path: str) -> RevertVersion | None:
        entry = self._repository.entry(commit or None, path)
        return RevertVersion(path, entry.id) if entry is not None and entry.mode in REGULAR else None

    def _unsigned(self, head: str, known: set[str], undone: Mapping[str, str]) -> Iterator[StepChange]:
        """What a person committed by hand for those that are meant: the items say so, the commit does not."""
        selection = self._selection
        sessions, agents = (frozenset(filter(None, [name])) for name in (selection.session, selection.agent))
        query = Query(sessions=sessions, agents=agents, limit=MOST)
        found = [one.id for one in self._store.candidates(query) if one.id.casefold() not in known]
        paths = tuple(filter(None, map(self._store.locate, found)))
        edited = set(self._store.hand_edits(paths)) if paths else set()
        absent = (path for path in paths if path in edited and self._at(head, path) is None)
        self.left |= dict.fromkeys(absent, "it was written by hand, and is not committed")
        for revision in log(self._repository, paths, MOST) if paths and head else ():
            signed = {AGENT, SESSION, SOURCE} & named_in(revision.body, revision.trailers).keys()
            late = selection.since is not None and revision.time < selection.since
            parsed = self._repository.commit_object(revision.commit)
            # it says whose it is; what memfs brought back for a person is that person's
            if not (signed or late or revision.commit in undone or len(parsed.parents) > 1):
                changes = self._of_commit(revision.commit, parsed)
                others = (one for one in changes if one.before is None or not self._owns(one.before))
                yield from (one for one in others if one.name not in known)

    def _owns(self, version: RevertVersion) -> bool:
        """Whether a file says itself that it is of those that are meant."""
        origin = self.values(version).get("origin")
        stated = origin if isinstance(origin, Mapping) else {}
        expected = {"session": self._selection.session, "agent": self._selection.agent}
        return all(stated.get(key) == name for key, name in expected.items() if name)

    # -- files --------------------------------------------------------------------------------------------------------
    def _paired(
        self,
        step: RevertStep,
        paths: Iterable[str],
        before: Mapping[str, RevertVersion],
        after: Mapping[str, RevertVersion],
    ) -> Iterator[StepChange]:
        """The changes of a step by file: one that moved is one file, at two paths."""
        names: dict[str, list[str]] = {}
        for path in sorted(paths):
            if self._store.edit_finder.is_own(path) and not path.startswith(f"{AGGREGATES}/"):  # these are rebuilt
                names.setdefault(self.fields.name(path), []).append(path)
        for name, lain in names.items():
            old = next((before[path] for path in lain if path in before and path not in after), None)
            new = next((after[path] for path in lain if path in after and path not in before), None)
            stayed = next((path for path in lain if path in before and path in after), None)
            old, new = (before[stayed], after[stayed]) if stayed is not None else (old, new)
            if old != new:
                yield StepChange(name=name, step=step, before=old, after=new)

    def _chosen(self, changes: Iterable[StepChange], trailers: Trailers) -> list[StepChange]:
        """The part of a commit's changes that is meant: where several wrote together, each file says whose it is."""
        meant = self._selection.commits or (self._selection.names(trailers) and not shared(trailers))
        if meant:
            return list(changes)
        found = []
        for change in changes:
            version = change.after or change.before
            assert version is not None  # a change has one of them
            if self._owns(version):
                found.append(change)
            elif not self.fields.is_item(version.path) and self._selection.names(trailers):
                self.left[version.path] = "several wrote this commit together, and the file does not say whose it is"
        return found

    # -- versions -----------------------------------------------------------------------------------------------------
    def data(self, version: RevertVersion) -> bytes:
        """The bytes of a version."""
        return version.data if version.data is not None else self._repository.blob(version.blob)

    def values(self, version: RevertVersion | None) -> Mapping[str, Any]:
        """The fields of a version; none of a file that was not there."""
        return {} if version is None else self.fields.read(self.data(version), version.path)[1]

    def revert(self, present: RevertVersion | None, changes: Sequence[StepChange]) -> Reversal:
        """Take the changes of one file back, newest first, from what the file is now."""
        result = None if present is None else self._settled(present, changes)
        clashes: list[UntouchedField] = []
        for change in _joined(changes):
            step = self._one(result, change)
            if step.reason:
                return Reversal(result=present, reason=step.reason)
            result = step.result
            clashes += step.clashes
        oldest = {clash.field: clash for clash in clashes}  # of several, what the field would say is the oldest value
        return Reversal(result=result, clashes=tuple(oldest.values()))

    def _one(self, present: RevertVersion | None, change: StepChange) -> Reversal:
        before, after = change.before, change.after
        if present == after:
            return Reversal(result=before)
        if present is None or present == before:  # somebody took it away, or put it back, already
            return Reversal(result=present)
        if after is None:
            return Reversal(result=present, clashes=(UntouchedField(field="", now="restored", undone="brought back"),))
        if before is None:
            if after.path == present.path and self.fields.is_item(after.path):
                differing = self.fields.differing(self.data(after), self.data(present), after.path)
                # it still is what it was made as, whatever feedback it was given, whatever was linked to it
                if differing is not None and differing <= _BESIDE:
                    return Reversal(result=None)
            return Reversal(result=present, clashes=(UntouchedField(field="", now="edited later", undone="removed"),))
        return self._merged(before, after, present)

    def _merged(self, before: RevertVersion, after: RevertVersion, present: RevertVersion) -> Reversal:
        """Take the difference between two versions out of a third that came from the later one."""
        clashes = []
        path = before.path if present.path == after.path else present.path
        if path != before.path and before.path != after.path:
            clashes.append(UntouchedField(field="path", now=present.path, undone=before.path))
        versions = (self.data(one) for one in (after, present, before))
        joined = self._merger.merge(path, *versions, prefer="ours", record=False)
        if joined.whole or joined.data is None:
            return Reversal(result=present, reason=joined.reason or "its versions cannot be joined")
        clashes += [
            UntouchedField(field=one.field, now=one.kept, undone=one.lost)
            for one in joined.conflicts
            if one.field.partition(".")[0] not in _OWN_ACCOUNT
        ]
        return Reversal(result=RevertVersion.of(path, joined.data), clashes=tuple(clashes))

    def _settled(self, present: RevertVersion, changes: Sequence[StepChange]) -> RevertVersion:
        """The file without the conflicts that a merge recorded against what is taken back."""
        path, data = present.path, self.data(present)
        if not self.fields.is_item(path) or b"conflicts" not in data:
            return present
        try:
            item = begun = self._codec.read(data, path, EPOCH)
        except MemfsError:  # it is joined, or left alone, as it is
            return present
        for conflict in begun.conflicts:
            lost = any(self._is_lost(conflict, change) for change in changes)
            if lost or any(self._made(conflict, conflict.kept, change) for change in changes):
                with suppress(MemfsError):  # the field says something else now: the record is for a person
                    item = settled(item, conflict, take=not lost)
        return present if item == begun else RevertVersion.of(path, self._codec.write(item, path, data).data)

    def _is_lost(self, conflict: RecordedConflict, change: StepChange) -> bool:
        """Whether what was displaced is what the change had made of the field, or of the whole."""
        if conflict.lost_sha256:
            return change.after is not None and sha256(self.data(change.after)) == conflict.lost_sha256
        return self._made(conflict, conflict.lost, change) if conflict.field else change.after is None

    def _made(self, conflict: RecordedConflict, value: Any, change: StepChange) -> bool:
        """Whether a change made of a field what one side of a conflict says; of a whole version that is not known."""
        if not conflict.field or conflict.lost_sha256:
            return False
        old, new = (value_at(self.values(one), conflict.field) for one in (change.before, change.after))
        if conflict.part:
            texts = isinstance(value, str) and isinstance(new, str)
            return texts and value in new and not (isinstance(old, str) and value in old)
        return equal(new, value) and not equal(old, value)


def _joined(changes: Sequence[StepChange]) -> list[StepChange]:
    """Changes with no other writer in between as one, newest first."""
    found: list[StepChange] = []
    for change in changes:
        if found and found[-1].before == change.after:
            found[-1] = replace(found[-1], before=change.before)
        else:
            found.append(change)
    return found


_TRIES = 5
_FEW = 100
_LONGEST = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class RevertResult:
    """What became of one file.

    Attributes:
        id: the item's id, or the document's path.
        path: where its file is afterwards; where it was, if it was removed.
        action: ``removed``, ``restored`` (it had been deleted), ``changed``, ``moved``, or ``kept`` (somebody's later
            edit left nothing to take back).
    """

    id: str
    path: str
    action: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Undone:
    """What an undo did, or would do.

    Attributes:
        steps: the commits of which something is taken back, newest first.
        files: what became of each file.
        conflicts: what stays because somebody edited it later.
        already: commits that were meant, and had been taken back before.
        left: files that are not touched, with why.
        commit: the commit that takes it back, or did so before; None while it waits, and in a dry run.
        waiting: why it waits, "" where it does not; in a dry run, how many writes wait, which are left out of it.
    """

    steps: tuple[RevertStep, ...]
    files: tuple[RevertResult, ...]
    conflicts: tuple[UntouchedField, ...]
    already: tuple[str, ...]
    left: tuple[UntouchedFile, ...]
    commit: str | None
    waiting: str = ""


class Undo:
    """Takes back what was written, as a commit. May be used from several threads."""

    def __init__(self, store: Store, parts: Parts, history: History) -> None:
        self._store, self._parts, self._history = store, parts, history

    def run(
        self, selection: RevertSelection, *, message: str = "", dry_run: bool = False, by: Origin | None = None
    ) -> Undone:
        """Take back exactly what is meant, as one commit; what others wrote later stays.

        Counters lose what was added, and nothing else. What waits for its commit is committed first.

        Args:
            selection: whose changes are meant.
            message: the commit's sentence; a plain one is made when empty.
            dry_run: say what would happen, write nothing.
            by: the agent in whose name it is done; None for a person.

        Raises:
            QueryInvalid: nothing is named, or both commits and a writer.
            HistoryUnavailable: a commit does not exist, or is not in HEAD's history.
            Conflict: a file to be changed holds an edit that is not committed.
            GitBusy: what is meant waits for its commit, and git is busy. Nothing was changed.
        """
        if bool(selection.commits) == bool(selection.session or selection.agent):
            raise QueryInvalid(
                "an undo needs to know whose changes are meant",
                field="commits" if selection.commits else "session",
                hint="name a session, an agent or both, or else commits",
            )
        with suppress(HistoryUnavailable):  # a revision is what it names before what waits is committed, or names that
            named = tuple(map(self._parts.repository.resolve, selection.commits))
            selection = replace(selection, commits=named)
        reason = "" if dry_run else self._store.flush(adopt=False).reason
        # How many writes of those that are meant wait for their commit on this branch.
        self._parts.journal.catch_up()
        branch = self._parts.repository.head().ref or ""
        since = selection.since.timestamp() if selection.since is not None else 0.0
        written = [one for one in self._parts.journal.operations() if one.branch == branch and one.time >= since]
        waiting = 0 if selection.commits else sum(selection.names(trailers_of(one)) for one in written)
        if waiting and not dry_run:
            why = reason or "more was written in the meantime"
            raise GitBusy(f"what is to be undone waits for its commit: {why}", hint="undo it when that is over")
        for _ in range(_TRIES):
            choice = Reverter(self._store, self._parts, selection)
            files = self._files(choice)
            changing = [one for one in files if one.present != one.result]
            self._history.refuse_edited(list(dict.fromkeys(path for one in changing for path in one.paths)))
            plans = self._plans(choice, files)
            if plans is None:
                continue
            done = self._report(choice, files)
            if dry_run or not plans:
                left_out = f"writes that wait for their commit are left out: {waiting}" if waiting else ""
                return replace(done, waiting=left_out)
            trailers = "\n".join(f"{UNDOES}: {step.commit}" for step in done.steps)
            try:
                with signed_by(by) if by is not None else nullcontext():
                    text = f"{message or _sentence(selection, done)}\n\n{trailers}"
                    self._store.carry_out(plans, text, source="undo")
            except Conflict:  # somebody wrote meanwhile: their edit counts
                continue
            flushed = self._store.flush(adopt=False)
            made = flushed.commits[-1] if flushed.commits else None
            return replace(done, commit=made, waiting="" if made else flushed.reason)
        raise Conflict("the files keep changing while they are written", hint="try again")

    # -- what becomes of the files ------------------------------------------------------------------------------------
    def _files(self, choice: Reverter) -> list[Reversal]:
        chosen = choice.choose()
        self._store.follow()
        found = []
        for changes in chosen:
            name = changes[0].name
            present = self._present(choice, changes)
            path = present.path if present is not None else changes[0].paths[0]
            item_id = stem_of(path) if choice.fields.is_item(path) else name
            found.append(replace(choice.revert(present, changes), id=item_id, present=present))
        return found

    def _present(self, choice: Reverter, changes: Sequence[StepChange]) -> RevertVersion | None:
        """The file as it is, wherever it is now."""
        paths = list(dict.fromkeys(path for change in changes for path in change.paths))
        if choice.fields.is_item(paths[0]):
            paths.insert(0, self._store.locate(changes[0].name))
        for path in filter(None, paths):
            with suppress(FileNotFoundError):
                return RevertVersion.of(path, self._parts.seen.read(path, READ_LIMIT).data)
        return None

    def _plans(self, choice: Reverter, files: Iterable[Reversal]) -> list[FilePlan] | None:
        """The writes; None where a file is not what it was when it was read."""
        before = {one.path: choice.data(one) for file in files if (one := file.present) is not None}
        after = {one.path: choice.data(one) for file in files if (one := file.result) is not None}
        plans = self._store.plan_restore({path: after.get(path) for path in {**before, **after}})
        return plans if all(plan.before == before.get(plan.path) for plan in plans) else None

    def _report(self, choice: Reverter, files: Sequence[Reversal]) -> Undone:
        touched = [(one, one.paths[0]) for one in files if one.action]
        left = choice.left.items() | {(one.paths[0], one.reason) for one in files if one.reason}
        return Undone(
            steps=choice.steps,
            files=tuple(RevertResult(id=one.id, path=path, action=one.action) for one, path in touched),
            conflicts=tuple(replace(clash, id=one.id, path=path) for one, path in touched for clash in one.clashes),
            already=tuple(choice.already),
            left=tuple(UntouchedFile(*one) for one in sorted(left)),
            commit=None if choice.steps else next(iter(choice.already.values()), None),
        )


def _sentence(selection: RevertSelection, done: Undone) -> str:
    """The commit's message: whose writing is taken back, and what stays."""
    named = (("agent", selection.agent), ("session", selection.session))
    who, steps = [f"{word} {name[:_LONGEST]}" for word, name in named if name], done.steps
    commits = f"{steps[0].commit[:10]}: {steps[0].subject}" if len(steps) == 1 else f"{len(steps)} commits"
    subject = f"Undo {' in '.join(who) or commits}"
    try:
        refuse_text(subject, "message")
    except SecretDetected:  # a name may look like one, and need not be named: the commits are
        subject = f"Undo {len(steps)} commits"
    kept = [f"- kept {one.id} {one.field}".rstrip() for one in done.conflicts[:_FEW]]
    return "\n\n".join(filter(None, (subject, "\n".join(kept))))
