"""Origins: who a change of memory came from, by the commit that made it and by the item itself (B2).

Owns how the two are put together. A commit names its writers in trailers; where it names several, as a batch of many
may, each item says itself which of them it is of.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from memfs.files.operation import Operation
from memfs.history.commitobject import AGENT, SESSION, SOURCE, trailer_value

Trailers = Mapping[str, tuple[str, ...]]
_AMID = re.compile(rf"({AGENT}|{SESSION}): (\S.*)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Wrote:
    """Who a change came from; "" for what nobody said.

    Attributes:
        agent, session: who wrote, and in which session.
        source: the door it came through.
        tool: what produced the text, as the item says.
    """

    agent: str = ""
    session: str = ""
    source: str = ""
    tool: str = ""


def wrote(trailers: Trailers, values: Mapping[str, Any] | None = None) -> Wrote:
    """Who a change of one file came from.

    Args:
        trailers: the commit's.
        values: the file's fields after the change, or before it where it was removed.
    """
    origin = _origin(values)
    agent = _one(trailers.get(AGENT, ()), origin.get("agent", ""))
    session = _one(trailers.get(SESSION, ()), origin.get("session", ""))
    own = origin.get("agent", "") in ("", agent) and origin.get("session", "") in ("", session)
    return Wrote(
        agent=agent,
        session=session,
        source=_one(trailers.get(SOURCE, ()), ""),
        tool=origin.get("tool", "") if own else "",
    )


def trailers_of(operation: Operation) -> Trailers:
    """The trailers that the commit of a waiting write will have."""
    return {
        name: found
        for name, field in ((AGENT, "agent"), (SESSION, "session"), (SOURCE, "source"))
        if (found := tuple(dict.fromkeys(filter(None, (_text(one.get(field)) for one in operation.writers)))))
    }


def _text(value: object) -> str:
    return trailer_value(value) if isinstance(value, str) else ""


def named_in(body: str, trailers: Trailers) -> Trailers:
    """The writers that a commit names anywhere: one that was squashed out of several has trailers amid its text."""
    found: dict[str, dict[str, None]] = {name: dict.fromkeys(values) for name, values in trailers.items()}
    for line in body.splitlines():
        if match := _AMID.fullmatch(line.strip()):
            found.setdefault(match[1], {})[match[2]] = None
    return {name: tuple(values) for name, values in found.items()}


def shared(trailers: Trailers) -> bool:
    """Whether a commit holds the writing of several."""
    return any(len(trailers.get(name, ())) > 1 for name in (AGENT, SESSION))


def _one(named: tuple[str, ...], own: str) -> str:
    """The one that a commit names; of several, the one that the item names itself."""
    if len(named) == 1:
        return named[0]
    return trailer_value(own) if trailer_value(own) in named else ""


def _origin(values: Mapping[str, Any] | None) -> Mapping[str, str]:
    found = (values or {}).get("origin")
    return {name: text for name, text in found.items() if isinstance(text, str)} if isinstance(found, dict) else {}
