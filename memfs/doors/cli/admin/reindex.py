"""``admin reindex``: rebuild the search index."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from memfs.admin.store_builder import has_states
from memfs.dataclass import dataclass, field
from memfs.doors.cli.command import remark, verb
from memfs.doors.cli.output import OMIT, Text, count, problems_note, progress

if TYPE_CHECKING:
    from memfs.workspace import Workspace


@dataclass(frozen=True, slots=True)
class IndexReport:
    """What was indexed.

    Attributes:
        items: how many items.
        engine: the search engine that keeps the index.
        seconds: how long it took.
        state_documents: how many documents of a multi-agent system; left out where there are none.
    """

    items: int
    engine: str
    seconds: float
    state_documents: int | None = field(default=None, metadata=OMIT)


def _text(done: IndexReport) -> Text:
    states = done.state_documents
    also = f" and {count(states, 'state document')}" if states is not None else ""
    yield f"Indexed {count(done.items, 'item')} with {done.engine}{also} in {done.seconds:.1f} s"


@verb("reindex", text=_text)
def reindex(workspace: Workspace) -> IndexReport:
    """Rebuild the search index from the files. Nothing is lost by it: the index is only a cache.

    Examples:
        memfs admin reindex
    """
    began = time.monotonic()
    with progress("Indexing") as step:
        items = workspace.store.reindex(progress=step)
    states = workspace.states.reading.reindex() if has_states(workspace.parts.seen) else None
    remark(problems_note(len(workspace.store.problems())))
    return IndexReport(items, workspace.settings.index.engine, round(time.monotonic() - began, 3), states)
