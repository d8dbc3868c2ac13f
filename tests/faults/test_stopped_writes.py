"""Stopped, or refused by the disk, at every single operation of everything that writes (faults rows 21, 24-26, 32).

The fault hook counts the operations of one act. The act is then repeated once for each of them, from the same
beginning: stopped there as by death, and refused there by the disk.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from kit import aftermath, broken
from kit.beginning import Beginning, fast_folder
from kit.faults import Fault, Stopped, injected
from kit.script import FIRST, NAMES, State, Step, Value, after, carry_out
from kit.stops import far_apart
from memfs import MemoryItem, Query
from memfs.errors import ContentError, MemfsError
from memfs.fs import io
from memfs.store import write
from memfs.workspace import Workspace

pytestmark = pytest.mark.faults

REFUSALS = (
    errno.ENOSPC,
    errno.EIO,
    errno.EROFS,
    errno.EMFILE,
    errno.EACCES,
    errno.EAGAIN,
    errno.EFBIG,
    errno.ENOMEM,
    errno.EDQUOT,
)
LOOK_CLOSELY_EVERY = 10
MANY = 5


# -- what is there before -------------------------------------------------------------------------------------------
def nothing_more(workspace: Workspace) -> None:
    """Only what is committed."""


def writes_wait(workspace: Workspace) -> None:
    """Writes of each sort whose commit is still to come."""
    workspace.store.put(MemoryItem("waits", "knowledge", id=NAMES[5]))
    workspace.store.put(MemoryItem("waits too", "knowledge", id=NAMES[8]))
    workspace.store.delete(NAMES[4])


def a_person_edited(workspace: Workspace) -> None:
    """A hand edit that is not committed yet."""
    path = workspace.root / workspace.store.locate(NAMES[5])
    path.write_text(path.read_text().replace(FIRST[NAMES[5]][1], "waits"))


def an_item_changed(workspace: Workspace) -> None:
    """A committed change, to be undone."""
    workspace.store.put(MemoryItem("changed", "episodic", id=NAMES[0]))
    workspace.store.flush()


def a_write_was_displaced(workspace: Workspace) -> None:
    """A write that a person removed before it was committed, and that was set aside."""
    path = workspace.store.put(MemoryItem("displaced", "knowledge", id=NAMES[9])).path
    (workspace.root / path).unlink()
    workspace.store.flush(adopt=False)


def a_batch_died(workspace: Workspace) -> None:
    """A batch whose process died before its second file, so that opening has something to finish."""
    with suppress(Stopped), injected(DiesBeforeSecondFile()), workspace.store.batch("Died") as batch:
        for name in NAMES[:3]:
            batch.put(MemoryItem("from a dead process", "knowledge", id=name))


class DiesBeforeSecondFile(Fault):
    """Stops right before a second file gets its name."""

    named = 0

    def __call__(self, name: str, path: str) -> None:
        """The hook itself."""
        self.named += name in ("rename", "link", "exchange")
        self.at = len(self.seen) + 1 if self.named == 2 else 0
        Fault.__call__(self, name, path)


# -- what is done ---------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True, kw_only=True)
class Act:
    """One thing that writes.

    Attributes:
        do: it.
        changes: what each id holds afterwards, None for nothing.
        arrange: what is done to the workspace before.
        holds: what each id holds then, beyond ``FIRST``.
        engine: the search engine; the one in memory has no files.
        known: what ``memfs check`` may say about the workspace as it was arranged.
    """

    do: Callable[[Workspace], object]
    changes: Mapping[str, Value | None] = field(default_factory=dict)
    arrange: Callable[[Workspace], None] = nothing_more
    holds: Mapping[str, Value | None] = field(default_factory=dict)
    engine: str = "memory"
    known: frozenset[str] = frozenset()

    @property
    def before(self) -> State:
        """What is there before the act."""
        return after(FIRST, [Step("", self.holds)])

    @property
    def after(self) -> State:
        """What is there after it."""
        return after(self.before, [Step("", self.changes)])

    def open(self, root: Path) -> Workspace:
        """The workspace as the act needs it."""
        return aftermath.reopened(root, **{"index.engine": self.engine})


def scripted(verb: str, changes: Mapping[str, Value | None], **more: Any) -> Act:
    """An act that is a step of the script."""
    return Act(do=lambda workspace: carry_out(workspace, Step(verb, changes)), changes=changes, **more)


def import_many(workspace: Workspace) -> None:
    """As ``memfs import``: so many files that all are made durable at once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(write, "_SYNC_ONCE_ABOVE", 3)
        carry_out(workspace, Step("batch", IMPORTED))


def bring_back(workspace: Workspace) -> None:
    """As ``memfs restore NAME --displaced``; again, if it came to nothing before."""
    if workspace.recovered.list():
        workspace.recovered.restore(NAMES[9])


def reindex(workspace: Workspace) -> None:
    """As ``memfs admin reindex``."""
    workspace.store.reindex()
    workspace.store.fold()


NEW, CHANGED, MOVED = ("knowledge", "new"), ("knowledge", "changed"), ("episodic", "changed")
IMPORTED = dict.fromkeys(NAMES[6:11], ("knowledge", "imported"))
EDITED = {NAMES[5]: ("knowledge", "waits")}
WAITING = {**EDITED, NAMES[8]: ("knowledge", "waits too"), NAMES[4]: None}
FROM_THE_DEAD = dict.fromkeys(NAMES[:3], ("knowledge", "from a dead process"))
ACTS: Mapping[str, Act] = {
    "put": scripted("put", {NAMES[7]: NEW}),
    "update": scripted("put", {NAMES[0]: CHANGED}),
    "retype": scripted("put", {NAMES[0]: MOVED}),
    "delete": scripted("delete", {NAMES[0]: None}),
    "batch": scripted("batch", {NAMES[0]: None, NAMES[1]: CHANGED, NAMES[7]: NEW}),
    "import": Act(do=import_many, changes=IMPORTED),
    "rollback": scripted("rollback", {NAMES[0]: FIRST[NAMES[0]]}, arrange=an_item_changed, holds={NAMES[0]: MOVED}),
    "commit": Act(do=lambda workspace: workspace.store.flush(adopt=False), arrange=writes_wait, holds=WAITING),
    "adopt": Act(do=lambda workspace: workspace.store.flush(adopt=True), arrange=a_person_edited, holds=EDITED),
    "recover": Act(
        do=bring_back,
        changes={NAMES[9]: ("knowledge", "displaced")},
        arrange=a_write_was_displaced,
        known=frozenset({"Recoverable"}),
    ),
    "open": Act(do=nothing_more, arrange=a_batch_died, holds=FROM_THE_DEAD),
    "reindex with sqlite": Act(do=reindex, engine="sqlite"),
    "reindex with whoosh": Act(do=reindex, engine="whoosh"),
    "maintenance": Act(do=lambda workspace: workspace.history.maintain()),
}


# -- at every operation ---------------------------------------------------------------------------------------------
class Stage:
    """One act, to be tried from the same beginning again and again."""

    def __init__(self, act: Act, folder: Path) -> None:
        self.act = act
        self._beginning = Beginning(folder, act.arrange)

    def stopped_at(self, number: int) -> tuple[Fault, list[State]]:
        """Open and act, stopped at an operation; return the fault, and the states that may then be found."""
        root = self._beginning.fresh()
        fault = Fault(at=number)
        done = False
        with suppress(Stopped), injected(fault), self.act.open(root) as workspace:
            self.act.do(workspace)
            done = True
        return fault, [self.act.after] if done else [self.act.before, self.act.after]

    def refused_at(self, number: int, error: int) -> tuple[Fault, bool]:
        """Act, with one operation refused; return the fault, and whether it raised.

        If it raised, the caller tries again, in the same process, and it works.
        """
        root = self._beginning.fresh()
        with self.act.open(root) as workspace:
            fault = Fault(at=number, error=error)
            raised = True
            try:
                with injected(fault):
                    self.act.do(workspace)
                raised = False
            except MemfsError:
                assert aftermath.held(workspace) == self.act.before, fault.seen[-1]
                self.act.do(workspace)
            assert aftermath.held(workspace) == self.act.after, fault.seen[-1]
            self.verify_index(workspace)
        return fault, raised

    def verify(self, possible: list[State], closely: bool) -> None:
        """Reopen as a person would next: one of the states that are possible, whole, and with nothing lying about."""
        root = self._beginning.root
        with mock.patch.object(io, "is_running", return_value=False):  # to others, the stopped process is dead
            found = aftermath.look(root).state
        assert found in possible, aftermath.lost(found, possible)
        if closely:
            aftermath.assert_whole(root, found, self.act.known)
            with self.act.open(root) as workspace:
                self.verify_index(workspace)

    @staticmethod
    def verify_index(workspace: Workspace) -> None:
        """The index says what the files say."""
        assert {item.id for item in workspace.store.select(Query(limit=100))} == set(aftermath.held(workspace))

    def operations(self, *, opening: bool) -> list[str]:
        """The operations of the act, with or without the opening before and the closing after it."""
        return (self.stopped_at(0)[0] if opening else self.refused_at(0, 0)[0]).seen


def leaves_a_trace(operation: str) -> bool:
    """Whether the disk may be different afterwards. To stop right after one that only reads is to stop before it."""
    name, _, path = operation.partition(" ")
    return name not in ("open", "read", "stat") or "tmp" in path


@pytest.fixture
def staged(tmp_path: Path) -> Iterator[Callable[[str], Stage]]:
    """Makes the stage for an act."""
    with fast_folder(tmp_path) as folder:
        yield lambda name: Stage(ACTS[name], folder)


@pytest.mark.parametrize("name", ACTS)
def test_21_stopped_at_any_operation_leaves_old_or_new(
    staged: Callable[[str], Stage], name: str, scale: Callable[[int, int], int], figures: Callable[..., None]
) -> None:
    """Stopped at each operation in turn: old or new, acknowledged means new, nothing left over, all whole."""
    stage = staged(name)
    seen = stage.operations(opening=True)
    every = scale(LOOK_CLOSELY_EVERY, 1)
    points = [number for number in range(1, len(seen) + 1) if scale(leaves_a_trace(seen[number - 2]), True)]
    points = points[:: scale(7, 1)]
    stops = 0
    for number in points:
        fault, possible = stage.stopped_at(number)
        try:
            stage.verify(possible, closely=number % every == 0)
        except AssertionError as error:
            error.add_note(f"stopped at operation {number}: {fault.seen[-1]}")
            raise
        stops += fault.stopped
    assert stops >= len(points) * 0.9
    figures(f"stopped at every operation of {name}", points=stops, lost=0, torn=0)


@pytest.mark.parametrize("name", [name for name in ACTS if name != "open"])
def test_24_25_26_refused_at_any_operation_is_a_typed_error_or_done(
    staged: Callable[[str], Stage], name: str, scale: Callable[[int, int], int], figures: Callable[..., None]
) -> None:
    """When the disk refuses any one operation it raises and nothing changed, or all is done (rows 24-26)."""
    stage = staged(name)
    total = len(stage.operations(opening=False))
    raised = tried = 0
    every = scale(1 + total // MANY, 1)  # most operations of a long act only read

    def reasons(number: int) -> tuple[int, ...]:
        """All of them in the long form; in the short one they take turns."""
        return tuple(REFUSALS[(number + more) % len(REFUSALS)] for more in range(scale(1, len(REFUSALS))))

    for number in range(1, total + 1, every):
        for error in reasons(number):
            fault, refused = stage.refused_at(number, error)
            try:
                stage.verify([stage.act.after], closely=number % scale(LOOK_CLOSELY_EVERY, 2) == 0)
            except AssertionError as failed:
                failed.add_note(f"{errno.errorcode[error]} at operation {number}: {fault.seen[number - 1]}")
                raise
            raised += refused
            tried += 1
    figures(f"refused at every operation of {name}", points=tried, reported=raised, lost=0, torn=0)


@pytest.mark.parametrize(
    ("variant", "name"),
    [
        ("no journal", "batch"),
        ("no recovery", "batch"),
        ("written in place", "update"),
        ("early acknowledgement", "put"),
    ],
)
def test_21_a_broken_memfs_is_caught_by_stopping_it(staged: Callable[[str], Stage], variant: str, name: str) -> None:
    """The same stops find what is lost or torn when a safeguard is missing."""
    stage = staged(name)
    seen = stage.operations(opening=True)
    for number in [number for number in far_apart(len(seen)) if leaves_a_trace(seen[number - 2])]:
        with broken.in_force(variant):
            _, possible = stage.stopped_at(number)
            try:
                stage.verify(possible, closely=False)
            except (AssertionError, ContentError):
                return
    pytest.fail(f"stopping at {len(seen)} operations did not notice: {variant}")
