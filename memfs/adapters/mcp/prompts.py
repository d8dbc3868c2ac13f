"""Prompts: what a person can ask for by name.

Owns their names, arguments and words. What is remembered stands in them as quoted data.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from memfs.adapters.mcp import reading
from memfs.adapters.mcp.arguments import Argument, checked

if TYPE_CHECKING:
    from memfs.adapters.mcp.desk import Desk
    from memfs.facades.caller import Caller

_LIMIT = 10
_KEEP = (
    "Look back over this conversation and keep what a later session should know, with memory_store: decisions and "
    "their reasons, facts that were found out, ways of doing things that worked, what is still to be done, and how I "
    "want things done. One thought each, understandable on its own, without secrets. Look with memory_search first; "
    "change what is outdated with memory_update. Then say in a few lines what you kept."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One prompt: its name for people, what it is for, what it takes, and its text, made on a thread."""

    title: str
    about: str
    arguments: tuple[Argument, ...] = ()
    text: Callable[[Desk, Caller, Mapping[str, str]], str]


def _recall(desk: Desk, caller: Caller, given: Mapping[str, str]) -> str:
    found = desk.memory.search(given["about"], _LIMIT, agent=caller.agent)
    return f"What do we know about {given['about']}?\n\n{found.text or reading.NOTHING}"


def _session_start(desk: Desk, caller: Caller, _: Mapping[str, str]) -> str:
    start, reminders = desk.memory.beginning("" if desk.read_only else caller.agent)
    told = "\n\n".join(filter(None, (start.text, reading.reminded(reminders))))
    return told or "Nothing is remembered for this work yet."


def _remember(_: Desk, __: Caller, given: Mapping[str, str]) -> str:
    focus = given.get("focus", "").strip()
    return f"{_KEEP}\n\nAbove all: {focus}" if focus else _KEEP


PROMPTS: Mapping[str, Row] = {
    "recall": Row(
        title="What do we know about ...",
        about="What is remembered about something",
        arguments=(Argument(name="about", about="A question or a few words", required=True, most=5_000),),
        text=_recall,
    ),
    "session_start": Row(
        title="Begin with what is remembered",
        about="What an agent should know at the start, and what is still to be done",
        text=_session_start,
    ),
    "remember_session": Row(
        title="Keep what matters of this conversation",
        about="Has the agent store what a later session should know",
        arguments=(Argument(name="focus", about="What matters most"),),
        text=_remember,
    ),
}


def text_of(desk: Desk, caller: Caller, name: str, given: Mapping[str, str]) -> str:
    """The text of a prompt.

    Raises:
        KeyError: there is none of that name.
        QueryInvalid: an argument is missing, unknown or wrong.
        SettingInvalid: it asks, and agents may not ask.
    """
    row = PROMPTS[name]
    return row.text(desk, caller, checked(row.arguments, given))
