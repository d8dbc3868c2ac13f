"""Undo: take back what a session, an agent or a commit wrote, and nothing else (B2).

Owns the one commit that does so, and what is told of it. Which changes are meant is ``undochoice``'s business, what
becomes of a file that of ``undofiles``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from memfs.errors import Conflict, GitBusy, SecretDetected
from memfs.files.merge.files import FileMerger
from memfs.files.secrets import refuse_text
from memfs.model import Origin
from memfs.model.ids import stem_of
from memfs.served.handed import Handed
from memfs.store import Store
from memfs.store.parts import READ_LIMIT, Parts
from memfs.store.plan import Planned
from memfs.store.signing import signed_by
from memfs.teams.blame import Blame
from memfs.teams.leaves import Fields
from memfs.teams.undochoice import UNDOES, Choice, Choosing, Selection, Step, StepChange
from memfs.teams.undofiles import Reversal, Reverting, There
from memfs.teams.undorecords import Records
from memfs.upkeep.history import History
from memfs.usage import Usage

__all__ = ["Kept", "Reverted", "Selection", "Step", "Undo", "Undone"]

SOURCE = "undo"
_TRIES = 5
_FEW = 100
_LONGEST = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """A field that keeps what somebody wrote into it later.

    Attributes:
        id: the item's id, or the document's path.
        path: its file.
        field: dotted name; "" for the whole file.
        now: what it says, and goes on saying.
        undone: what it would say had the later edit not been.
    """

    id: str
    path: str
    field: str
    now: Any
    undone: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Reverted:
    """What became of one file.

    Attributes:
        id: the item's id, or the document's path.
        path: where its file lies afterwards; where it lay, if it was removed.
        action: ``removed``, ``restored`` (it had been deleted), ``changed``, ``moved``, or ``kept`` (somebody's later
            edit left nothing to take back).
        handed_out: how often it was handed out since it was written, as far as this machine's record goes.
    """

    id: str
    path: str
    action: str
    handed_out: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Undone:
    """What an undo did, or would do.

    Attributes:
        steps: the commits of which something is taken back, newest first.
        files: what became of each file.
        conflicts: what stays because somebody edited it later.
        already: commits that were meant, and had been taken back before.
        left: files that are not touched, with why.
        handed_out: how many times any of it was handed out since it was written.
        commit: the commit that takes it back; None while it waits, and in a dry run.
        waiting: why it waits, "" where it does not.
    """

    steps: tuple[Step, ...]
    files: tuple[Reverted, ...]
    conflicts: tuple[Kept, ...]
    already: tuple[str, ...]
    left: tuple[tuple[str, str], ...]
    handed_out: int
    commit: str | None
    waiting: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _File:
    """One file: what it is, and what it becomes; ``clean`` is its blob id before any of what is taken back."""

    id: str
    present: There | None
    reversal: Reversal
    since: datetime
    clean: str

    def counts(self, row: Handed) -> bool:
        """Whether something was handed out that held what is taken back."""
        held = any(one.casefold() == self.id.casefold() and blob != self.clean for one, blob in row.items)
        return held and row.time >= self.since

    @property
    def action(self) -> str:
        """What becomes of it; "" for nothing at all."""
        present, result = self.present, self.reversal.result
        if present == result:
            return "kept" if self.reversal.clashes else ""
        if present is None:
            return "restored"
        if result is None:
            return "removed"
        return "moved" if present.path != result.path else "changed"

    @property
    def path(self) -> str:
        """Where it lies afterwards, or lay."""
        there = self.reversal.result or self.present
        return there.path if there is not None else ""


class Undo:
    """Takes back what was written, as a commit. May be used from several threads."""

    def __init__(self, store: Store, parts: Parts, history: History, usage: Usage) -> None:
        self._blame = Blame(store, parts, history)
        self._store = store
        self._parts = parts
        self._history = history
        self._usage = usage
        self._fields = Fields(parts.kinds)

    def run(
        self, selection: Selection, *, message: str = "", dry_run: bool = False, by: Origin | None = None
    ) -> Undone:
        """Take back exactly what is meant, as one commit; what others wrote later stays (B2).

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
        waits = "" if dry_run else self._store.flush(adopt=False).reason
        for _ in range(_TRIES):
            choosing = Choosing(self._store, self._parts, self._blame, selection)
            choice = choosing.choose()
            if waits and any(not step.commit for step in choice.steps):
                raise GitBusy(f"what is to be undone waits for its commit: {waits}", hint="undo it when that is over")
            records = Records(self._parts.codec, self._fields, choosing.data)
            reverting = Reverting(FileMerger(self._parts.codec), self._fields, records, choosing.data)
            files = self._files(choice, reverting)
            self._refuse_edited(files)
            plans = self._plans(files)
            if plans is None:
                continue
            done = self._told(choice, files)
            if dry_run or not plans:
                return done
            try:
                return self._carried_out(plans, message or _sentence(selection, choice, done), choice, done, by)
            except Conflict:  # somebody wrote meanwhile: their edit counts
                continue
        raise Conflict("the files keep changing while they are written", hint="try again")

    # -- what becomes of the files ------------------------------------------------------------------------------------
    def _files(self, choice: Choice, reverting: Reverting) -> list[_File]:
        self._store.follow()
        found = []
        for name, changes in choice.changes.items():
            present = self._present(name, changes)
            reversal = reverting.revert(present, changes)
            found.append(
                _File(
                    id=self._id_of(name, present, changes),
                    present=present,
                    reversal=reversal,
                    since=min(change.step.time for change in changes),
                    clean=changes[-1].before.blob if changes[-1].before is not None else "none",
                )
            )
        return found

    def _present(self, name: str, changes: Sequence[StepChange]) -> There | None:
        """The file as it is, wherever it lies by now."""
        paths = list(dict.fromkeys(path for change in changes for path in change.paths))
        if self._fields.is_item(paths[0]):
            paths.insert(0, self._store.locate(name))
        for path in filter(None, paths):
            try:
                return There(path, self._parts.seen.read(path, READ_LIMIT).data)
            except FileNotFoundError:
                continue
        return None

    def _id_of(self, name: str, present: There | None, changes: Sequence[StepChange]) -> str:
        path = present.path if present is not None else changes[0].paths[0]
        return stem_of(path) if self._fields.is_item(path) else name

    def _refuse_edited(self, files: Iterable[_File]) -> None:
        """What a person changed and nobody committed is not overwritten.

        Raises:
            Conflict: naming the first such file.
        """
        wanted = {
            there.path
            for one in files
            if one.present != one.reversal.result
            for there in (one.present, one.reversal.result)
            if there is not None
        }
        edited = self._store.hand_edits(wanted if len(wanted) <= _FEW else None) if wanted else []
        unsaved = [path for path in edited if path in wanted]
        if unsaved:
            raise Conflict(
                f"{len(unsaved)} file(s) hold edits that are not committed: {', '.join(unsaved[:3])}",
                path=unsaved[0],
                hint=self._history.way_out(unsaved),
            )

    def _plans(self, files: Iterable[_File]) -> list[Planned] | None:
        """The writes; None where a file is not what it was when it was read."""
        plans: list[Planned] = []
        for one in files:
            present, result = one.present, one.reversal.result
            wanted: dict[str, tuple[bytes | None, bytes | None]] = {}
            if present is not None:
                wanted[present.path] = present.data, None
            if result is not None:
                before = present.data if present is not None and present.path == result.path else None
                wanted[result.path] = (before, result.data)
            for path, (before, after) in wanted.items():
                plan = self._store.plan_restore(path, after)
                if plan is not None and plan.before != before:
                    return None
                plans += [plan] if plan is not None else []
        return plans

    # -- writing ------------------------------------------------------------------------------------------------------
    def _carried_out(
        self, plans: list[Planned], message: str, choice: Choice, done: Undone, by: Origin | None
    ) -> Undone:
        trailers = "\n".join(f"{UNDOES}: {step.commit}" for step in choice.steps if step.commit)
        with signed_by(by) if by is not None else nullcontext():
            self._store.carry_out(plans, f"{message}\n\n{trailers}", source=SOURCE)
        flushed = self._store.flush(adopt=False)
        made = flushed.commits[-1] if flushed.commits else None
        return replace(done, commit=made, waiting="" if made else flushed.reason)

    def _told(self, choice: Choice, files: Sequence[_File]) -> Undone:
        touched = [one for one in files if one.action]
        since = min((one.since for one in touched), default=None)
        names = [one.id for one in touched]
        found = self._usage.served.find(names, since=since, now=self._parts.clock()) if names else []
        rows = [row for row in found if any(one.counts(row) for one in touched)]
        return Undone(
            steps=choice.steps,
            files=tuple(
                Reverted(id=one.id, path=one.path, action=one.action, handed_out=sum(map(one.counts, rows)))
                for one in touched
            ),
            conflicts=tuple(
                Kept(id=one.id, path=one.path, field=clash.field, now=clash.now, undone=clash.undone)
                for one in touched
                for clash in one.reversal.clashes
            ),
            already=choice.already,
            left=(*choice.left, *((one.path, one.reversal.reason) for one in files if one.reversal.reason)),
            handed_out=len(rows),
            commit=None,
        )


def _sentence(selection: Selection, choice: Choice, done: Undone) -> str:
    """The commit's message: whose writing is taken back, and what stays."""
    named = (("agent", selection.agent), ("session", selection.session))
    who, steps = [f"{word} {name[:_LONGEST]}" for word, name in named if name], choice.steps
    commits = f"{steps[0].commit[:10]}: {steps[0].subject}" if len(steps) == 1 else f"{len(steps)} commits"
    subject = f"Undo {' in '.join(who) or commits}"
    try:
        refuse_text(subject, "message")
    except SecretDetected:  # a name may look like one, and need not be told: the commits are
        subject = f"Undo {len(steps)} commits"
    kept = [f"- kept {one.id} {one.field}".rstrip() for one in done.conflicts[:_FEW]]
    return "\n\n".join(filter(None, (subject, "\n".join(kept))))
