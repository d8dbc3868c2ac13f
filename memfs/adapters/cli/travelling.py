"""Travelling: the option ``--as-of``, and what verbs say of the revision they looked at.

Owns the words and the JSON of it. What a revision's memory is, is ``memfs.teams.past``' business.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from memfs.adapters.cli.output import clean, note, progress, time_text

if TYPE_CHECKING:
    from memfs.teams.past import Past
    from memfs.workspace import Workspace

_STATE = ("aggregates", "archive", "checkpoints", "configuration", "iterations")


def as_of(function: Callable[..., Any]) -> Callable[..., Any]:
    """Give a verb the option that names a revision; the verb gets ``as_of``, None where it is not given."""
    text = "As it was at this revision or date: HEAD~3, a branch, 2026-03-01, '3 days ago'."
    return click.option("--as-of", "as_of", metavar="REV", help=text)(function)


def past_at(workspace: Workspace, revision: str, *, quarantined: bool = False) -> Past:
    """The memory at a revision; a terminal is shown how far its first reading is.

    Args:
        quarantined: also of a quarantined branch.
    """
    with progress("Reading the past") as step:
        past = workspace.teams.past.at(revision, progress=step, quarantined=quarantined)
        _ = past.store.index
    return past


@contextmanager
def state_at(workspace: Workspace, revision: str | None) -> Iterator[tuple[Workspace, Past | None]]:
    """The workspace to ask for the state of a multi-agent system: itself, or one that holds a revision's documents.

    That one is passing: it is laid out in a folder of its own, and gone afterwards. Payloads of archives that no commit
    holds are taken from the workspace where they are still there.
    """
    if revision is None:
        yield workspace, None
        return
    import tempfile

    from memfs.files import io
    from memfs.store.parts import CONTENT
    from memfs.workspace import open_workspace

    def lay(path: str, data: bytes) -> None:
        io.make_folders((root / path).parent)
        io.write_file(root / path, data, durable=False)

    past = past_at(workspace, revision)
    with tempfile.TemporaryDirectory(prefix="memfs-") as folder:
        root = Path(folder) / "state"
        settings = {"history.commit": "manual", "watch.enabled": False}
        open_workspace(root, create=True, own_repository=True, watch=False, settings=settings).close()
        for path in past.files.blobs:
            if path.startswith(tuple(f"{CONTENT}/{part}/" for part in _STATE)):
                lay(path, past.files.content(path, 1 << 31))
            payload = path.replace(".index.json", ".tar.zst")
            if payload != path and payload not in past.files.blobs and (workspace.root / payload).is_file():
                lay(payload, io.read_file(workspace.root / payload))
        with open_workspace(root, watch=False, settings=settings, one_shot=True) as then:
            yield then, past


def as_of_json(past: Past | None) -> dict[str, Any]:
    """The part of an answer in JSON that says what it is of; nothing for one of the present."""
    return {"as_of": {"commit": past.commit, "time": time_text(past.time)}} if past is not None else {}


def note_past(past: Past | None) -> None:
    """Say on standard error what an answer is of, and what it may lack; nothing of one of the present."""
    if past is not None:
        note(f"as of {time_text(past.time)}, commit {past.commit[:10]}")
        for sentence in past.notes:
            note(clean(sentence))
