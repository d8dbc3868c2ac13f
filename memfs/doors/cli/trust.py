"""What ``status`` and ``config`` say of the trust in a workspace."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from memfs import trust as workspace_trust
from memfs.doors.cli.output import clean, count, note

if TYPE_CHECKING:
    from memfs.workspace import Workspace


def status_facts(workspace: Workspace) -> dict[str, Any]:
    """What ``status`` says of trust: whether what the workspace asks for counts, and what that is."""
    standing = workspace_trust.standing(workspace.root)
    return {
        "trusted": standing.trusted,
        "reason": standing.reason or None,
        "enables": [want.key for want in standing.wants],
        "subjects": [want.subject for want in standing.wants],
        "command": None if standing.trusted or not standing.wants else workspace_trust.command(standing.root),
    }


def status_row(facts: dict[str, Any]) -> dict[str, str]:
    """The row of ``status`` for a person, none where nothing asks for trust."""
    asked = ", ".join(facts["subjects"])  # of a list of sources the names that need trust: the others count
    if not asked:
        return {}
    if facts["trusted"]:
        return {"trust": f"{asked} enabled"}
    return {"trust": f"{asked} ignored: {facts['reason']}; look, then: {facts['command']}"}


def note_ignored(root: Path) -> None:
    """Say on standard error which settings do not count, and what would change that."""
    standing = workspace_trust.standing(root)
    if standing.wants and not standing.trusted:
        verb = "is" if len(standing.wants) == 1 else "are"
        note(f"{count(len(standing.wants), 'setting')} {verb} ignored: {standing.reason}")
        meant = next(filter(None, (want.mistyped for want in standing.wants)), "")
        told = f"{meant} If not, look" if meant else "look"
        note(f"  {clean(told)} at what they say, then: {workspace_trust.command(standing.root)}")
