"""What a resident does so that commands need not: a child commits, adopts, folds, drains and learns; and what they need
is imported and computed once.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

from memfs.doors.cli.app import EVERYDAY
from memfs.doors.resident.client import READING, WRITING
from memfs.errors import LockTimeout, MemfsError
from memfs.fs import append_log
from memfs.model import MemoryItem, Query
from memfs.recall.cues import TrivialFilter
from memfs.sessions import spool
from memfs.sessions.extract import extract_memories
from memfs.sessions.store import Drain
from memfs.startup import compile_all
from memfs.store.access_log import not_handed_out
from memfs.store.parts import CONTENT
from memfs.store.reader import FolderReader
from memfs.workspace import Workspace, open_workspace

_SECONDS, _NICE = 10.0, 10
_WHO = "resident"


def index(root: Path) -> bool:
    """Make the index of a workspace, and of what it mounts, where there is none, and fold it where it is large.

    The memory that this takes ends with the child.
    """
    with suppress(MemfsError), open_workspace(root, watch=False, one_shot=True) as workspace:
        warm(workspace)
        each_store(workspace, lambda store: store.fold_if_large())
    return False


def maintain(workspace: Workspace, resting: bool) -> bool:
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
        each_store(workspace, lambda one: one.maintain())
    policy, journal = workspace.parts.policy, workspace.parts.journal
    left = policy.commit == "interval" and bool(journal.operations())
    left = left or (resting and policy.adopts and bool(store.edit_finder.find(include_staged=False).plans))
    workspace.close()
    return left


def learn(workspace: Workspace) -> bool:
    """Make memories of session events, in the workspace and in private memory, learn, and embed what is new, where
    memories are found by meaning; true where something reported is left.
    """
    os.nice(_NICE)
    workspace.store.resume()
    root = workspace.root
    left = _drain(workspace, spool.SessionLocation.within(root, workspace.repository.state))
    with suppress(MemfsError):
        place = spool.known_place(spool.agent_location(folder=str(root)))
        if place is not None and _has_events(place):
            with open_workspace(place.root, watch=False, one_shot=True) as own:
                left |= _drain(own, place)
    found = None if workspace.words_only else workspace.meaning.current()
    if found is not None:
        with suppress(MemfsError):  # the next recall says that some are lacking
            found.embeddings.catch_up()
    workspace.close()
    return left


def report(workspace: Workspace | None, error: Exception) -> None:
    """Note for ``memfs status`` what ended a child, or say it where no workspace is open; who waited too long for
    another process tries again.
    """
    sentence = f"{type(error).__name__}: {error}"
    if workspace is None:
        sys.stderr.write(f"memfs serve: {sentence}\n")
    elif not isinstance(error, LockTimeout):
        spool.note_error(workspace.repository.state, _WHO, sentence)


def _has_events(place: spool.SessionLocation) -> bool:
    folder = place.state / append_log.FOLDER
    return bool(append_log.waiting(folder) or spool.noted_sessions(folder))


def _drain(workspace: Workspace, place: spool.SessionLocation) -> bool:
    """Whether something is left that a session reported."""
    complain = partial(spool.note_error, place.state, _WHO)
    try:
        left = _has_events(place)
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


# -- what is imported and computed once -----------------------------------------------------------------------------
Given = TypeVar("Given")
_VERBS = (
    "app",
    "parser",
    *sorted({verb.module or verb.name for verb in EVERYDAY if verb.name in READING | WRITING.keys()}),
)
_MORE = {
    "admin": "backup prune",
    "context": "builtin_sources mounts plugins",
    "doors.claude_code": "answer installer",
    "format": "yaml_text",
    "git": "commits signing",
    "learning": "consolidation conventions inbox learner preferences rules triggers",
    "sessions": "respond",
    "store": "commits hand_edits",
    "team": "asof parts resolve",
}
"""What verbs import while they run."""
_SAID = (
    "Remember: the staging server is rebuilt on Sundays.",
    "No, that's wrong. The base path is /v2, not /v1.",
    "We decided to keep the parser by hand, because generated ones were slow. Alice says that it works now.",
    "When you write tests, always use tabs from now on. Could you look at the log file for this one?",
    "Later we should clean up the cache, otherwise it grows. Please fix the failing test in the parser today!",
)
"""Sentences of every sort that is recognised in what people say, so that reading them compiles all expressions."""

_ANY = Query(text="memory", limit=1)
_TEXT = MemoryItem(_SAID[0], "semantic", id="rehearsal")


def import_verbs() -> None:
    """Import and compile all that the verbs need."""
    for name in _VERBS:
        importlib.import_module(f"memfs.doors.cli.{name}")
    for folder, names in _MORE.items():
        for name in names.split():
            importlib.import_module(f"memfs.{folder}.{name}")
    with suppress(ImportError):
        importlib.import_module("jsonschema_rs")
    compile_all()
    for name, module in list(sys.modules.items()):
        for one in list(vars(module).values()) if name.startswith("memfs.") else ():
            if isinstance(one, type):
                _ = [getattr(one, made) for made in ("__init__", "__new__")]  # they are compiled when first asked for
    _compile_wordings()


def _compile_wordings() -> None:
    """Read the wordings of the languages, and compile their expressions: a session's events are read with them."""
    samples: list[tuple[str, dict[str, Any]]] = [(spool.PROMPT, {"prompt": text}) for text in _SAID]
    samples.append((spool.STOP, {"last_assistant_message": _SAID[2]}))
    step = {"tool_name": "Bash", "tool_input": {"command": "make test"}}
    samples += [
        (spool.TOOL_FAILED, {**step, "error": "1 failed"}),
        (spool.TOOL_DONE, {**step, "tool_response": {"stdout": "ok"}}),
    ]
    events = [spool.SessionEvent(name, "rehearsal", fields=MappingProxyType(fields)) for name, fields in samples]
    waiting = [spool.PendingEvent(event, str(number), number) for number, event in enumerate(events)]
    extract_memories(waiting, spool.SessionNotes(), Path("/"), lambda _: ())
    for text in _SAID:
        TrivialFilter().is_trivial(text)


def each_store(workspace: Workspace, ask: Callable[[FolderReader], Given]) -> list[Given]:
    """What the store of a workspace answers, and those of what it mounts."""
    mounts = workspace.sources.mounts.each(lambda mount: ask(mount.store)) if workspace.settings.mounts else {}
    return [ask(workspace.store), *mounts.values()]


def warm(workspace: Workspace) -> None:
    """Open and read what questions and events are answered from."""
    each_store(workspace, lambda store: store.candidates(_ANY))
    _ = workspace.repository.git.reader
    with suppress(MemfsError):  # a write says so
        workspace.parts.codec.write(_TEXT, f"{CONTENT}/{workspace.kinds.get(_TEXT.type).folder}/{_TEXT.id}.yaml")
    if workspace.settings.mounts:
        workspace.sources.mounts.each(lambda mount: mount.triggers.count())
    workspace.sources.triggers.count()


def rehearse(workspace: Workspace) -> None:
    """Touch what a question touches: what a child shares with its parent is copied when it is first touched."""
    warm(workspace)
    if workspace.words_only and not workspace.settings.review.endpoint:  # else others would be asked
        recaller = workspace.sources.mounts.recall if workspace.settings.mounts else workspace.recaller
        with not_handed_out():
            recaller.search(_ANY)
