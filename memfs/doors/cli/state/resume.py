"""``state resume``: what an agent kept under a continuation token."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from memfs.dataclass import dataclass
from memfs.doors.cli.command import verb
from memfs.doors.cli.output import Document, Text

if TYPE_CHECKING:
    from memfs.workspace import Workspace


@dataclass(frozen=True, slots=True)
class KeptState:
    """What was kept under a token.

    Attributes:
        token: the token.
        state: whatever the agent kept.
    """

    token: str
    state: Any


def _text(kept: KeptState) -> Text:
    yield Document(kept.state)


@verb("resume", text=_text)
@click.argument("token", metavar="TOKEN")
def resume(workspace: Workspace, token: str) -> KeptState:
    """Print the state that an agent kept under a continuation token, as JSON.

    Examples:
        memfs state resume ct-3-5d41402abc4b2a76b9719d911017c592
    """
    workspace.repository.require_readable()
    return KeptState(token, workspace.states.continuations.resume(token))
