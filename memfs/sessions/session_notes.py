"""What has to be known of a session from one drain to the next: todos, failures, how far the spool was read.

Notes are written in one piece after the memories, so that the next drain goes on from there whatever is killed. They
hold digests in place of texts that may be secret.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from hashlib import sha256
from pathlib import Path
from typing import Any

from memfs.fs import io

SUFFIX = ".notes.json"
_MOST = 500
_LARGEST = 4 << 20


@dataclass(slots=True)
class SessionNotes:
    """What is known of one session.

    Attributes:
        session: whose notes these are.
        heard: when the last event came, ISO 8601.
        upto, last: where the line ends that was taken last, and its key.
        head, tries: the key of the event that is to be taken first, and how often that was begun.
        todos: by digest of its text, the stage a todo was in last, and since when it is being worked on.
        tasks: by its id, what a task is about, and since when it is being worked on.
        done: digests of the tasks that are reported as done, with when.
        failures: digest of what failed, and of how; empty where it worked since.
        seen: digests of the latest events with when they came, to notice one that is reported twice.
        steps: what was done lately, in words, cleaned.
        episodes: how many episodes the session has given.
        ended: whether the session said that it ended.
    """

    session: str = ""
    heard: str = ""
    upto: int = 0
    last: str = ""
    head: str = ""
    tries: int = 0
    todos: dict[str, list[str]] = field(default_factory=dict)
    tasks: dict[str, list[str]] = field(default_factory=dict)
    done: dict[str, str] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)
    seen: dict[str, str] = field(default_factory=dict)
    steps: list[str] = field(default_factory=list)
    episodes: int = 0
    ended: bool = False


def kept(folder: Path) -> list[Path]:
    """The files of notes in a spool's folder."""
    return list(folder.glob(f"*{SUFFIX}"))


def read(path: Path) -> SessionNotes:
    """The notes in a file; empty ones where it is not there or holds something else."""
    told, empty = io.read_record(path, _LARGEST), SessionNotes()
    if not isinstance(told, dict):
        return empty
    fitting = {
        one.name: told[one.name] for one in fields(SessionNotes) if _fits(told.get(one.name), getattr(empty, one.name))
    }
    return SessionNotes(**fitting)


def write(path: Path, notes: SessionNotes) -> None:
    """Keep notes in a file, in one piece; of long lists, what is newest.

    Raises:
        StorageIO: as the system says; what was there before is kept.
    """
    for kept in (notes.todos, notes.tasks, notes.done, notes.failures, notes.seen):
        _keep_newest(kept)
    io.write_file(path, json.dumps(asdict(notes)).encode())


def digest(*parts: str) -> str:
    """What stands for texts that are not kept."""
    return sha256("\0".join(parts).encode("utf-8", "replace")).hexdigest()[:20]


def _keep_newest(kept: dict[str, Any]) -> None:
    for key in list(kept)[: max(len(kept) - _MOST, 0)]:
        del kept[key]


def _fits(value: object, like: object) -> bool:
    if type(value) is not type(like):
        return False
    if isinstance(value, Mapping):
        return all(isinstance(one, str) or _texts(one) for one in value.values())
    return not isinstance(value, list) or _texts(value)


def _texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in value)
