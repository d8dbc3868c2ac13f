"""Turn an agent's use of a tool into a situation, an action and an outcome.

A tool is described the same way before it ran and after, so that a warning finds its outcome. ``same_thing`` is equal
for two calls that try the same thing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from memfs.model.episode import Action, StateSnapshot
from memfs.sessions.event import TOOL_FAILED, SessionEvent

TASK_TOOLS = frozenset({"TodoWrite", "TaskCreate", "TaskUpdate"})
"""The tools by which an agent plans; what they tell, ``memfs.sessions.extract`` says."""
_LOOKING_TOOLS = (
    "Agent AskUserQuestion EnterPlanMode ExitPlanMode Glob Grep LS Read Skill Task TaskGet TaskList TaskOutput "
    "ToolSearch WebFetch WebSearch"
)
_LOOKING = TASK_TOOLS.union(_LOOKING_TOOLS.split())
_FILE_KEYS = ("file_path", "notebook_path", "path")
_TOLD_KEYS = ("description", "query", "pattern", "url", "prompt", "intent")
_LONGEST = 400
# What a person stopped or forbade says nothing of the step itself.
_STOPPED = re.compile(
    r"user (?:doesn'?t|does not) want|was rejected|permission (?:was )?denied by|requires approval|"
    r"interrupted by (?:the )?user|tool use was (?:rejected|cancelled)|hasn'?t been (?:granted|read)|"
    r"has not been read yet",
    re.I,
)
# An edit that did not take: the file's text was another one than the agent had in mind, which the next look puts right.
_SLIP = re.compile(
    r"string to replace (?:was )?not found|has been (?:unexpectedly )?modified since|matches of the string to replace|"
    r"no changes to make|InputValidationError",
    re.I,
)
# Commands whose exit code is an answer, not an error.
_ASKING = re.compile(r"\s*(?:[^\s=]+=\S+ )*(?:grep|egrep|rg|diff|test|\[|which|command -v|pgrep|git diff|cmp)\b")
_EXIT = re.compile(r"^(?:Error: )?(?:Exit code:?|exited with(?: code)?|Command failed with exit code) (\d+)\s*", re.I)
_GLUE = re.compile(r"&&|\|\||;|\n")
_PREPARING = ("cd ", "export ", "source ", "echo ")
_SETTING = re.compile(r"(?<!\S)(?:\w+=\S* +)+")


def situation_of(event: SessionEvent, root: Path) -> StateSnapshot:
    """The situation in which a tool is used: the same before it ran and after, so that a warning finds its outcome.

    Args:
        event: about a tool.
        root: the workspace; files below it are named from there.
    """
    given = event.mapping("tool_input")
    told = next((text for key in _TOLD_KEYS if isinstance(text := given.get(key), str) and text.strip()), "")
    told = _command(event) or told
    files = [_named(text, event.cwd, root) for key in _FILE_KEYS if isinstance(text := given.get(key), str) and text]
    return StateSnapshot.create(
        files,
        told[:_LONGEST] or description_of(event, root),
        tool=event.tool,
        agent=event.agent or event.client,
        session=event.session,
    )


def action_of(event: SessionEvent, root: Path) -> Action:
    """What the agent did with the tool, in a sentence."""
    return Action(event.tool, description_of(event, root))


def description_of(event: SessionEvent, root: Path) -> str:
    """What a tool is used for, in a line: ``Edit src/auth.py``, ``pytest -q``."""
    given = event.mapping("tool_input")
    if command := _command(event):
        return " ".join(command.split())[:_LONGEST]
    for key in _FILE_KEYS:
        if isinstance(path := given.get(key), str) and path:
            return f"{event.tool} {_named(path, event.cwd, root)}"
    told = next((text for text in given.values() if isinstance(text, str) and text.strip()), "")
    return f"{event.tool} {' '.join(told.split())[:_LONGEST]}".strip()


def teaches(event: SessionEvent) -> bool:
    """Whether what came of a tool's use may teach something: it changes or runs things, and nobody stopped it."""
    return bool(event.tool) and event.tool not in _LOOKING and event.fields.get("is_interrupt") is not True


def failure(event: SessionEvent) -> str:
    """What went wrong when a tool was used; "" where nothing did, or a person stopped it."""
    told = _told_failure(event)
    if not told or _STOPPED.search(told) or (not _command(event) and _SLIP.search(told)):
        return ""
    code = _EXIT.match(told)
    if _ASKING.match(_command(event)) and code is not None and not told[code.end() :].strip():
        return ""
    return told


def same_thing(event: SessionEvent, root: Path) -> str:
    """What a call tries, however it is worded: the file, or the program with what it is to do."""
    given = event.mapping("tool_input")
    for key in _FILE_KEYS:
        if isinstance(path := given.get(key), str) and path:
            return f"file {_named(path, event.cwd, root)}"
    if command := _command(event):
        return f"{event.tool} {_program(command)}"
    return f"{event.tool} {json.dumps(given, sort_keys=True, default=str)[:_LONGEST]}"


def _command(event: SessionEvent) -> str:
    """The command that a tool runs, in one text; "" where it runs none."""
    given = event.mapping("tool_input")
    for key in ("command", "cmd"):
        told = given.get(key)
        if isinstance(told, list) and told and all(isinstance(word, str) for word in told):
            return str(told[-1] if len(told) == 3 and told[1].startswith("-") and "c" in told[1] else " ".join(told))
        if isinstance(told, str) and told.strip():
            return told
    return ""


def _told_failure(event: SessionEvent) -> str:
    if event.name == TOOL_FAILED:
        return event.text("error").strip() or "it failed"
    response = event.fields.get("tool_response")
    if isinstance(response, Mapping):
        return _failed(response, ran=bool(_command(event)))
    if isinstance(response, str) and (_EXIT.match(response) or response.startswith(("Error:", "<tool_use_error>"))):
        code = _EXIT.match(response)
        return "" if code is not None and code[1] == "0" else response.strip()
    return ""


def _failed(response: Mapping[str, Any], *, ran: bool) -> str:
    """What a tool's answer says of a failure. ``ran``: it ran a command; a ``code`` of others may be that of a page."""
    codes = (response.get(key) for key in ("exit_code", "exitCode", "returncode", *(("code",) if ran else ())))
    code = next((one for one in codes if isinstance(one, int) and not isinstance(one, bool)), 0)
    failed = (
        code != 0
        or any(response.get(key) is True for key in ("is_error", "isError"))
        or response.get("success") is False
        or response.get("status") in ("error", "failed", "failure")
        or (isinstance(response.get("error"), str) and bool(str(response["error"]).strip()))
    )
    if not failed or response.get("interrupted") is True:
        return ""
    texts = (response.get(key) for key in ("error", "stderr", "output", "message", "content", "stdout"))
    told = next((text.strip() for text in texts if isinstance(text, str) and text.strip()), "")
    exit_code = f"Exit code {code}" if code else ""
    return "\n".join(filter(None, (exit_code, told))) or "it failed"


def _program(command: str) -> str:
    """The last part of a command that is no preparation, by its program and what that is to do."""
    whole = (part.strip() for part in _GLUE.split(command))
    parts = [part for part in whole if part and not part.startswith(_PREPARING)]
    last = _SETTING.sub("", parts[-1] if parts else command, count=1).partition("|")[0]
    words = [word for word in last.split() if not word.startswith("-") and not word[0].isdigit()]
    return " ".join(words[:3])[:_LONGEST]


def _named(path: str, cwd: str, root: Path) -> str:
    """A path from the workspace's folder where it lies below that."""
    try:
        whole = Path(cwd or root, path)
        return whole.relative_to(root).as_posix() if whole.is_relative_to(root) else path
    except ValueError:
        return path
