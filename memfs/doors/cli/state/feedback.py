"""``state feedback``: what the newest meta-review says to an agent."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from memfs.doors.cli.command import verb
from memfs.doors.cli.options import land
from memfs.doors.cli.output import Block, Note, Text

if TYPE_CHECKING:
    from memfs.model.insights import AgentFeedback
    from memfs.workspace import Workspace


def _text(feedback: AgentFeedback) -> Text:
    if feedback.text:
        yield Block(feedback.text.rstrip("\n"))
    yield from map(Note, feedback.remarks)
    if not feedback.text and not feedback.version:
        yield Note("there is no meta-review yet")


@verb("feedback", text=_text)
@click.argument("agent", metavar="AGENT")
@click.option("--no-record", is_flag=True, help="Only look: do not record that the agent was given it.")
def feedback(workspace: Workspace, agent: str, no_record: bool) -> AgentFeedback:
    """Print what the newest meta-review has to say to an agent, ready for its prompt.

    It is the agent's own feedback, what is meant for everybody, priorities and patterns; what reviewers wrote stands in
    it as quoted data. That the agent was given this version is recorded once in an iteration, so that 'memfs state
    analyze' can tell what it brought.

    Examples:
        memfs state feedback "Evolution Agent"
        memfs state feedback Scout --no-record
    """
    workspace.repository.require_readable()
    given = workspace.states.feedback.for_agent(agent, record=not no_record)
    if given.recorded:
        land(workspace)
    return given
