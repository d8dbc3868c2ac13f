"""An event of an agent's session, such as a prompt or the result of a tool, read from the JSON that a hook gets.

Every spelling that programs use is understood, and what an event holds is bounded. Imports little, so that a hook
which only keeps an event ends at once.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import MappingProxyType

from memfs.dataclass import dataclass, field
from memfs.errors import ItemSyntaxError
from memfs.model.time import format_time, utc_now
from memfs.startup import Any, regex

LARGEST = 1 << 16
"""How many bytes one event takes at most, as JSON."""
LARGEST_INPUT = 1 << 26
"""How many bytes a hook's input may have to be read at all."""

CLAUDE_CODE = "claude-code"
PROMPT, TOOL_DONE, TOOL_FAILED, TASK_DONE = "UserPromptSubmit", "PostToolUse", "PostToolUseFailure", "TaskCompleted"
SESSION_START, SESSION_END = "SessionStart", "SessionEnd"
STOP, PRE_COMPACT, PRE_TOOL = "Stop", "PreCompact", "PreToolUse"
SUBAGENT_START, SUBAGENT_STOP = "SubagentStart", "SubagentStop"
EVENTS = (
    SESSION_START,
    PROMPT,
    PRE_TOOL,
    TOOL_DONE,
    TOOL_FAILED,
    TASK_DONE,
    PRE_COMPACT,
    STOP,
    SUBAGENT_START,
    SUBAGENT_STOP,
    SESSION_END,
)
"""The events that memfs answers or keeps, in the order of a session."""

_PLAIN = {name.lower(): name for name in EVENTS}
_NAME = "hook_event_name"
_TEXTS = ("name", "session", "moment", "cwd", "client")
_TAKEN = frozenset({_NAME, "session_id", "cwd"})
_LONGEST_NAME = 64
_LONGEST_SESSION = 200
_LONGEST_PATH = 4096
_LONGEST_TEXT = 24_000
_LONGEST_OF_TOOL = 4_000  # whole files come with each edit, and nobody remembers those
_MOST_MEMBERS = 256
_DEEPEST = 8
_CUT = "\n[... {} characters left out ...]\n"


@dataclass(frozen=True, slots=True)
class SessionEvent:
    """One event of an agent's session.

    Attributes:
        name: what happened, as Claude Code names it: ``UserPromptSubmit``.
        session: the session's id, "" when the program named none.
        moment: when it was heard, ISO 8601, UTC.
        cwd: the folder in which the agent works, "" when unknown.
        client: the program that reported it: ``claude-code``.
        fields: everything else that was reported, bounded in size.
    """

    name: str
    session: str = ""
    moment: str = field(default_factory=lambda: format_time(utc_now()))
    cwd: str = ""
    client: str = CLAUDE_CODE
    fields: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))

    def text(self, name: str) -> str:
        """A field as text; "" where it is absent or no text."""
        value = self.fields.get(name)
        return value if isinstance(value, str) else ""

    def mapping(self, name: str) -> Mapping[str, Any]:
        """A field as a mapping; an empty one where it is absent or none."""
        value = self.fields.get(name)
        return value if isinstance(value, Mapping) else {}

    @property
    def agent(self) -> str:
        """The sort of agent that it is about: a subagent's type, "" for the one that the person talks to."""
        return _line(self.text("agent_type"))[:_LONGEST_NAME]

    @property
    def tool(self) -> str:
        """The tool that it is about, "" for none."""
        return self.text("tool_name")

    def as_record(self) -> dict[str, Any]:
        """It as a mapping that JSON can hold."""
        return {**{name: getattr(self, name) for name in _TEXTS}, "fields": dict(self.fields)}


def from_record(record: object) -> SessionEvent | None:
    """The event that ``as_record`` described; None where it describes none, whatever somebody wrote there."""
    if not isinstance(record, dict) or not isinstance(record.get("fields"), dict):
        return None
    texts = {name: text for name in _TEXTS if isinstance(text := record.get(name), str)}
    if len(texts) < len(_TEXTS):
        return None
    return SessionEvent(**texts, fields=MappingProxyType(record["fields"]))


def canonical_name(name: str) -> str:
    """An event's name as Claude Code writes it, from any case: ``user-prompt-submit`` means ``UserPromptSubmit``."""
    plain = "".join(character for character in name if character.isalnum()).lower()
    return _PLAIN.get(plain, _clean(name.strip())[:_LONGEST_NAME])


def parse(given: bytes | str, name: str = "") -> SessionEvent:
    """Read what a program hands to its hook.

    Args:
        given: JSON, an object. Fields of the wrong sort are kept as they are: ``text`` and ``mapping`` pass them over.
        name: what happened, where the caller knows it better than the input.

    Raises:
        ItemSyntaxError: it is no JSON object, or no event is named.
    """
    told = _object(given)
    named = name or told.get(_NAME)
    if not isinstance(named, str) or not named:
        raise ItemSyntaxError("no event is named", field=_NAME, hint="give the event's name as an argument")
    session, cwd = told.get("session_id"), told.get("cwd")
    return bounded(
        SessionEvent(
            name=canonical_name(named),
            session=str(session if isinstance(session, str | int) else ""),
            cwd=_clean(cwd)[:_LONGEST_PATH] if isinstance(cwd, str) else "",
            fields={key: value for key, value in told.items() if key not in _TAKEN},
        )
    )


def bounded(event: SessionEvent) -> SessionEvent:
    """The event in at most ``LARGEST`` bytes: long texts keep beginning and end, and the session's name is one line."""
    about_tool = event.name in (PRE_TOOL, TOOL_DONE, TOOL_FAILED)
    longest, members = _LONGEST_OF_TOOL if about_tool else _LONGEST_TEXT, _MOST_MEMBERS
    session = _line(event.session)[:_LONGEST_SESSION].strip()
    while True:
        fields = _cut(dict(event.fields), longest, members, 0)
        cut = SessionEvent(event.name, session, event.moment, event.cwd, event.client, MappingProxyType(fields))
        if len(encoded(cut)) <= LARGEST or members < 1:
            return cut
        longest, members = longest // 2, members // 2


def encoded(event: SessionEvent) -> bytes:
    """The event as one line of JSON, without its newline."""
    return json.dumps(event.as_record(), ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()


def _object(given: bytes | str) -> dict[str, Any]:
    hint = "a hook gets one JSON object on standard input"
    if len(given) > LARGEST_INPUT:
        raise ItemSyntaxError("the hook's input is too large", hint=hint)
    try:
        text = given.decode("utf-8-sig", "replace") if isinstance(given, bytes) else given
        told = json.loads(text, parse_int=_number, parse_constant=lambda _: None)
    except (ValueError, RecursionError) as error:
        raise ItemSyntaxError("the hook's input is not JSON", hint=hint) from error
    if not isinstance(told, dict):
        raise ItemSyntaxError("the hook's input is not a JSON object", hint=hint)
    return told


def _number(digits: str) -> int | str:
    """A whole number; one that nobody counts to stays a text, which costs no time to read."""
    return int(digits) if len(digits) < 19 else digits


def _cut(value: Any, longest: int, members: int, depth: int) -> Any:
    if isinstance(value, str):
        return _shortened(_clean(value), longest)
    if isinstance(value, bool | int | None):
        return value
    if isinstance(value, float):
        return value if value == value and abs(value) != float("inf") else None
    if depth >= _DEEPEST:
        return "[...]"
    if isinstance(value, Mapping):
        some = list(value.items())[:members]
        return {_clean(str(key))[:_LONGEST_NAME]: _cut(inner, longest, members, depth + 1) for key, inner in some}
    if isinstance(value, list | tuple):
        return [_cut(inner, longest, members, depth + 1) for inner in value[:members]]
    return _shortened(_clean(str(value)), longest)


def _shortened(text: str, longest: int) -> str:
    if len(text) <= longest:
        return text
    begin = longest * 2 // 3
    end = longest - begin
    return text[:begin] + _CUT.format(len(text) - longest) + (text[-end:] if end else "")


def _line(text: str) -> str:
    """A name on one line."""
    return " ".join(_clean(text).split())


def _clean(text: str) -> str:
    """The text as UTF-8 can hold it: halves of characters become question marks."""
    return text.encode("utf-8", "replace").decode()


_COMMAND = regex(r"\s*/[A-Za-z][\w:-]*(?:\s|$)")
_MARKUP = regex(r"<(?:command-(?:name|message|args)|local-command-\w+|system-reminder|task-notification)>")


def own_words(event: SessionEvent) -> str:
    """What a person said in a prompt; "" where a program said it, or it is a command to the program."""
    text = event.text("prompt").strip()
    if _COMMAND.match(text) or _MARKUP.match(text):
        return ""
    return text if event.text("source") in ("", "user", "sdk") else ""


def by_person(event: SessionEvent) -> bool:
    """Whether a person typed it, and not a program that drives the agent."""
    return event.text("source") in ("", "user")
