"""``state show``: the state of a multi-agent system, whole or in part."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from memfs.doors.cli.command import verb
from memfs.doors.cli.declare import between, click
from memfs.doors.cli.filters import as_of, span, state_at, when
from memfs.doors.cli.output import Document, Text, as_json

if TYPE_CHECKING:
    from memfs.model.state_documents import RetrievedState
    from memfs.workspace import Workspace


def _text(shown: RetrievedState) -> Text:
    yield Document(as_json(shown))


@verb("show", text=_text)
@click.option("--request", type=click.Choice(["full", "partial", "summary"]), help="How much of it.")
@click.option("--agent", "agents", multiple=True, metavar="NAME", help="Only this agent; repeatable.")
@click.option("--component", "components", multiple=True, metavar="NAME", help="Only this part; repeatable.")
@click.option("--hypothesis", "hypotheses", multiple=True, metavar="ID", help="Only this one; repeatable.")
@click.option("--metric", "metrics", multiple=True, metavar="NAME", help="Only this figure; repeatable.")
@click.option("--iteration", "iterations", multiple=True, type=int, metavar="N", help="Only of this one; repeatable.")
@span
@click.option("--deadline", type=between(0), metavar="SECONDS", help="Only what is found by then.")
@click.option("--whole", is_flag=True, help="All of it, however long that takes.")
@as_of
def show(
    workspace: Workspace,
    request: str | None,
    since: str | None,
    until: str | None,
    deadline: float | None,
    whole: bool,
    as_of: str | None,
    **named: Any,
) -> RetrievedState:
    """Print the present state of a multi-agent system, or what the options name, as JSON.

    Examples:
        memfs state show --request summary
        memfs state show --agent "Evolution Agent" --metric pending_reviews --since 7d
    """
    if whole and deadline is not None:
        raise click.UsageError("'--whole' has no deadline")
    wanted = {name: values or None for name, values in named.items()}
    chosen = request or ("partial" if any(wanted.values()) else "full")
    start, end = when(since, "since"), when(until, "until", end=True)
    limit = math.inf if whole else deadline
    workspace.repository.require_readable()
    states = state_at(workspace, as_of)
    return states.retrieval.retrieve(chosen, start=start, end=end, deadline=limit, **wanted)
