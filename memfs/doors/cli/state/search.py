"""``state search``: the documents that hold some words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from memfs.dataclass import dataclass
from memfs.doors.cli.command import verb
from memfs.doors.cli.filters import as_of, span, state_at, when
from memfs.doors.cli.output import Note, Text, styled

if TYPE_CHECKING:
    from memfs.state.search import StateHit
    from memfs.workspace import Workspace


@dataclass(frozen=True, slots=True)
class FoundDocuments:
    """State documents that hold words, the best first.

    Attributes:
        query: the words.
        hits: the documents.
    """

    query: str
    hits: tuple[StateHit, ...]


def _text(found: FoundDocuments) -> Text:
    for hit in found.hits:
        where = f"  (in the archive {hit.archive})" if hit.archive else ""
        yield f"{styled(hit.path, fg='yellow')}{where}"
        yield f"  {hit.excerpt}"
    if not found.hits:
        yield Note("no document holds any of these words")


@verb("search", text=_text)
@click.argument("words", nargs=-1, required=True, metavar="WORDS...")
@click.option("-n", "--limit", type=click.IntRange(1, 1000), default=10, show_default=True, help="At most so many.")
@click.option("--agent", "agents", multiple=True, metavar="NAME", help="Only of or about this agent; repeatable.")
@click.option("--iteration", "iterations", multiple=True, type=int, metavar="N", help="Only of this one; repeatable.")
@span
@as_of
def search(
    workspace: Workspace, words: tuple[str, ...], since: str | None, until: str | None, as_of: str | None, **given: Any
) -> FoundDocuments:
    """Find documents by their words, archived ones too.

    Examples:
        memfs state search kinase inhibitors
        memfs state search kinase --iteration 3 --agent Ranking
    """
    from memfs.state.search import search_states

    text = " ".join(words)
    start, end = when(since, "since"), when(until, "until", end=True)
    workspace.repository.require_readable()
    states = state_at(workspace, as_of)
    found = search_states(states.reading, text, start=start, end=end, **given)
    return FoundDocuments(text, tuple(found))
