"""Travelling: the option ``--as-of``, and what verbs say of the revision they looked at.

Owns the words and the JSON of it. What a revision's memory is, is ``memfs.teams.past``' business.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from memfs.adapters.cli.output import clean, note, progress, time_text

if TYPE_CHECKING:
    from memfs.teams.past import Past
    from memfs.workspace import Workspace


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


def as_of_json(past: Past | None) -> dict[str, Any]:
    """The part of an answer in JSON that says what it is of; nothing for one of the present."""
    return {"as_of": {"commit": past.commit, "time": time_text(past.time)}} if past is not None else {}


def note_past(past: Past | None) -> None:
    """Say on standard error what an answer is of, and what it may lack; nothing of one of the present."""
    if past is not None:
        note(f"as of {time_text(past.time)}, commit {past.commit[:10]}")
        for sentence in past.notes:
            note(clean(sentence))
