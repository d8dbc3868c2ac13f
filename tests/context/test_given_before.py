"""What an agent was given before, and how much it is given at once."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from memfs.context.deliver import ContextEntry, ContextSelection, Room, SourceReply, choose, first_of
from memfs.model.episode import Action, Episode, Outcome, StateSnapshot
from memfs.workspace import Workspace

ROWS = {"One:": ("alpha", "beta"), "Two:": ("gamma", "delta")}
REPLIES = [
    SourceReply(
        source=name,
        selection=ContextSelection(heading=name, entries=tuple(ContextEntry(text=text, id=text[0]) for text in texts)),
    )
    for name, texts in ROWS.items()
]


def _ids(replies: list[SourceReply]) -> list[list[str]]:
    return [[entry.id for entry in one.selection.entries] for one in replies]


@pytest.mark.parametrize(
    ("most", "kept"),
    [(0, [[], []]), (1, [["a"], []]), (2, [["a"], ["g"]]), (3, [["a", "b"], ["g"]]), (9, [["a", "b"], ["g", "d"]])],
)
def test_so_many_entries_of_all_sources_are_reported(most: int, kept: list[list[str]]) -> None:
    """P6: the first of every source comes before the second of any."""
    assert _ids(first_of(REPLIES, most)) == kept


def test_what_an_agent_has_is_left_out_and_named() -> None:
    """P6: by its id, whatever the words."""
    chosen = choose(REPLIES, lambda _: False, Room(tokens=None), ["a", "g"])
    assert _ids(chosen) == [["b"], ["d"]]
    assert [[entry.id for entry in one.repeated] for one in chosen] == [["a"], ["g"]]


def test_a_warning_that_was_reported_counts_as_one(opened: Callable[..., Workspace]) -> None:
    """P4: one that was warned is not warned again, and what becomes of the step counts as warned all the same."""
    workspace = opened()
    state = StateSnapshot.create(["src/auth.py"], "raise the timeout", session="s1")
    episode = Episode.create(state, Action("edit", "raised the timeout"), Outcome.FAILURE, "test_login failed")
    stored = workspace.sources.episodes.record(episode)
    first = workspace.sources.delivery.triggered(state, most=1)
    again = workspace.sources.delivery.triggered(state, delivered=first.ids, most=1)
    assert (first.ids, again.ids, again.repeated, again.text) == ((stored.id,), (), (stored.id,), "")
    assert workspace.sources.warned.of(state) == (stored.id,)
