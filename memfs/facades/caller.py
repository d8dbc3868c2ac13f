"""Caller: who uses an agent's tools, as a value.

Apart from the tools themselves, so that a door knows it before a workspace is opened.
"""

from __future__ import annotations

from dataclasses import dataclass

from memfs.model import Origin


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Who uses the tools: the agent's name, its session, and the door it came through."""

    agent: str = ""
    session: str = ""
    source: str = "agent"

    @property
    def origin(self) -> Origin:
        """What each item says of it."""
        return Origin(agent=self.agent, session=self.session, role="assistant")
