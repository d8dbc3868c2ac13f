"""What a child of the resident does for the memory, so that commands need not: commit, adopt, fold, drain, learn."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from functools import partial
from pathlib import Path

from memfs.doors.resident.preload import each, warm
from memfs.errors import LockTimeout, MemfsError
from memfs.fs import append_log
from memfs.sessions.spool import SessionLocation, known_place, note_error, noted_sessions, whereabouts
from memfs.sessions.store import Drain
from memfs.workspace import Workspace, open_workspace

_SECONDS, _NICE = 10.0, 10
_WHO = "resident"


def index(root: Path) -> bool:
    """Make the index of a workspace, and of what it mounts, where there is none, and fold it where it is large.

    The memory that this takes ends with the child.
    """
    with suppress(MemfsError), open_workspace(root, watch=False, one_shot=True) as workspace:
        warm(workspace)
        each(workspace, lambda store: store.fold_if_large())
    return False


def tend(workspace: Workspace, resting: bool) -> bool:
    """Commit what waits; true where something is left to do.

    Args:
        resting: edits by hand may have rested: commit these, too, and fold the index.
    """
    store = workspace.store
    store.resume()
    if resting:
        store.change_detector.close()  # who does not watch commits what rested
        store.adopt_rested()
    store.take_up(at_once=True)
    if resting:
        each(workspace, lambda one: one.tend())
    policy, journal = workspace.parts.policy, workspace.parts.journal
    left = policy.commit == "interval" and bool(journal.operations())
    left = left or (resting and policy.adopts and bool(store.edit_finder.find(include_staged=False).plans))
    workspace.close()
    return left


def learn(workspace: Workspace) -> bool:
    """Make memories of what sessions told, in the workspace and in private memory, learn, and embed what is new, where
    memories are found by meaning; true where something that was told is left.
    """
    os.nice(_NICE)
    workspace.store.resume()
    left = _take_all(workspace)
    found = None if workspace.words_only else workspace.meaning.current()
    if found is not None:
        with suppress(MemfsError):  # the next recall says that some are lacking
            found.embeddings.catch_up()
    workspace.close()
    return left


def report(workspace: Workspace | None, error: Exception) -> None:
    """Note for ``memfs status`` what ended a child, or say it where no workspace is open; whoever waited too long for
    another process tries again.
    """
    sentence = f"{type(error).__name__}: {error}"
    if workspace is None:
        sys.stderr.write(f"memfs serve: {sentence}\n")
    elif not isinstance(error, LockTimeout):
        note_error(workspace.repository.state, _WHO, sentence)


def _take_all(workspace: Workspace) -> bool:
    root = workspace.root
    left = _take(workspace, SessionLocation.within(root, workspace.repository.state))
    with suppress(MemfsError):
        place = known_place(whereabouts(folder=str(root)))
        if place is not None and _waits(place):
            with open_workspace(place.root, watch=False, one_shot=True) as own:
                left |= _take(own, place)
    return left


def _waits(place: SessionLocation) -> bool:
    folder = place.state / append_log.FOLDER
    return bool(append_log.waiting(folder) or noted_sessions(folder))


def _take(workspace: Workspace, place: SessionLocation) -> bool:
    """Whether something is left that a session told."""
    complain = partial(note_error, place.state, _WHO)
    try:
        left = _waits(place)
        while left:
            done = Drain(workspace, place.folder).run(seconds=_SECONDS)
            for sentence in done.refused:
                complain(sentence)
            left = bool(done.left)
            if not done.events:
                break
        workspace.learner.run(_SECONDS)
    except MemfsError as error:
        complain(f"what was said waits: {error}")
        return True
    return left
