"""Models: what answers the agent's messages, a script or a service.

Both are given messages and tools and nothing else, in the form of OpenAI's chat protocol, and give a message back.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from typing import Any, Protocol
from urllib.parse import urlsplit

Message = dict[str, Any]
KEY = "OPENAI_API_KEY"
"""The environment variable with the key; services on the own machine mostly need none."""


class Model(Protocol):
    """Answers a conversation."""

    async def answer(self, messages: Sequence[Message], tools: Sequence[Mapping[str, Any]]) -> Message:
        """The next message of the assistant, with ``tool_calls`` where it wants to use tools."""
        ...


class Script:
    """Plays a model: goes by the words of the messages alone, makes the mistake, and heeds what it is told.

    It edits and submits. Where it is warned of something, or the build complains, it calls every tool that is named
    there before it submits.
    """

    async def answer(self, messages: Sequence[Message], tools: Sequence[Mapping[str, Any]]) -> Message:
        """The next step of a simple mind."""
        offered = [tool["function"]["name"] for tool in tools]
        system, job, said = messages[0]["content"], messages[1]["content"], messages[2:]
        used = [call["function"]["name"] for message in said for call in message.get("tool_calls", ())]
        heard = [message["content"] for message in said if message["role"] == "tool"]
        if used[-1:] == ["submit"] and "handed in" in heard[-1]:
            return {"role": "assistant", "content": "It is done."}
        task, _, warnings = job.partition("\n\n")
        if "what went wrong" in task and "memory_recall" in offered and "memory_recall" not in used:
            return _call("memory_recall", {"query": task})
        if "edit_file" not in used:
            return _call("edit_file", {"path": task.rpartition("Files: ")[2].split(", ")[0], "change": task})
        told = f"{warnings} {heard[-1] if used[-1] == 'submit' else ''}"
        for name in sorted(set(offered) - {"edit_file", "submit", "memory_recall"}):
            if name in told and name not in used:
                return _call(name, {})
        return _call("submit", {"summary": _summary(system, task)})


def _summary(system: str, task: str) -> str:
    line = task.splitlines()[0].partition(": ")
    return f"{line[0]}: {line[2]}" if "ticket" in system else line[2]


def _call(name: str, arguments: Mapping[str, Any]) -> Message:
    function = {"name": name, "arguments": json.dumps(arguments)}
    call = {"id": name, "type": "function", "function": function}
    return {"role": "assistant", "content": None, "tool_calls": [call]}


class Service:
    """A model behind an OpenAI-compatible endpoint."""

    def __init__(self, endpoint: str, model: str, key: str | None = None, seconds: float = 120.0) -> None:
        """
        Args:
            endpoint: what the protocol's paths are appended to, such as ``http://localhost:11434/v1``.
            model: its name.
            key: None takes it from the environment, see ``KEY``.
        """
        self._url = endpoint.rstrip("/") + "/chat/completions"
        self._model = model
        self._key = os.environ.get(KEY, "") if key is None else key
        self._seconds = seconds
        parts = urlsplit(self._url)
        if self._key and parts.scheme != "https" and parts.hostname not in ("localhost", "127.0.0.1", "::1"):
            raise ValueError(f"the key would travel unencrypted to {parts.hostname}: use https, or unset {KEY}")

    async def answer(self, messages: Sequence[Message], tools: Sequence[Mapping[str, Any]]) -> Message:
        """Ask the service.

        Raises:
            RuntimeError: it gave no usable answer; the text says why.
        """
        import httpx  # only here: the script needs no network

        body = {"model": self._model, "messages": [*messages], "tools": [*tools]}
        headers = {"Authorization": f"Bearer {self._key}"} if self._key else {}
        try:
            async with httpx.AsyncClient(timeout=self._seconds) as client:
                reply = await client.post(self._url, json=body, headers=headers)
                reply.raise_for_status()
                message = reply.json()["choices"][0]["message"]
        except (httpx.HTTPError, ValueError, LookupError, TypeError) as error:
            raise RuntimeError(f"{self._url} gave no usable answer: {error}") from error
        if not isinstance(message, dict):
            raise RuntimeError(f"{self._url} gave no usable answer: {str(message)[:100]}")
        return {"role": "assistant", "content": message.get("content"), **_calls(message)}


def _calls(message: Mapping[str, Any]) -> Message:
    """The tool calls of a message, where it has any."""
    calls = message.get("tool_calls")
    wellformed = [call for call in calls if isinstance(call, dict)] if isinstance(calls, list) else []
    return {"tool_calls": wellformed} if wellformed else {}


def arguments_of(call: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Name and arguments of a tool call; no arguments where the model wrote none that can be read."""
    function = call.get("function")
    function = function if isinstance(function, dict) else {}
    try:
        read = json.loads(function.get("arguments") or "{}")
    except (TypeError, ValueError):
        read = {}
    return str(function.get("name", "")), read if isinstance(read, dict) else {}


def tokens(text: str) -> int:
    """About how many tokens a text has, rather too many."""
    return len(re.findall(r"\w{1,4}|[^\w\s]", text))
