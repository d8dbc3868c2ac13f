"""What a resident imports and computes once, so that no child of it has to."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

from memfs.doors.resident.client import READING, WRITING
from memfs.errors import MemfsError
from memfs.intake.intake import TrivialFilter
from memfs.model import MemoryItem, Query
from memfs.sessions.event import PROMPT, STOP, TOOL_DONE, TOOL_FAILED, SessionEvent
from memfs.sessions.extract import hear
from memfs.sessions.spool import PendingEvent, SessionNotes
from memfs.startup import compile_all
from memfs.store.access_log import not_handed_out
from memfs.store.parts import CONTENT
from memfs.store.reader import FolderReader
from memfs.workspace import Workspace

Given = TypeVar("Given")
_VERBS = ("app", "parser", *sorted(READING | WRITING))
_MORE = {
    "admin": "backup prune",
    "context": "builtin_sources mounts plugins",
    "doors.claude_code": "answer installer",
    "format": "yaml_text",
    "git": "commits signing transaction",
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
    _hear()


def _hear() -> None:
    """Read the wordings of the languages, and compile their expressions: a session's events are read with them."""
    told: list[tuple[str, dict[str, Any]]] = [(PROMPT, {"prompt": text}) for text in _SAID]
    told.append((STOP, {"last_assistant_message": _SAID[2]}))
    step = {"tool_name": "Bash", "tool_input": {"command": "make test"}}
    told += [(TOOL_FAILED, {**step, "error": "1 failed"}), (TOOL_DONE, {**step, "tool_response": {"stdout": "ok"}})]
    events = [SessionEvent(name, "rehearsal", fields=MappingProxyType(fields)) for name, fields in told]
    waiting = [PendingEvent(event, str(number), number) for number, event in enumerate(events)]
    hear(waiting, SessionNotes(), Path("/"), lambda _: ())
    for text in _SAID:
        TrivialFilter().is_trivial(text)


def each(workspace: Workspace, ask: Callable[[FolderReader], Given]) -> list[Given]:
    """What the store of a workspace answers, and those of what it mounts."""
    mounts = workspace.sources.mounts.each(lambda mount: ask(mount.store)) if workspace.settings.mounts else {}
    return [ask(workspace.store), *mounts.values()]


def warm(workspace: Workspace) -> None:
    """Open and read what questions and events are answered from."""
    each(workspace, lambda store: store.candidates(_ANY))
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
