"""Wanted: what is asked for when the system's state is retrieved, checked and made plain (S3).

Owns the meaning of each argument: which sections a question names, which iterations it is about when it says none, and
the errors for what makes no sense. What answers it, it does not know.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from memfs.errors import QueryInvalid
from memfs.model.kinds import nearest
from memfs.model.states import REQUEST_TYPES
from memfs.model.time import given_time

SYSTEM, AGENTS, HYPOTHESES, TOURNAMENT, FEEDBACK = "system", "agents", "hypotheses", "tournament", "feedback"
SECTIONS = (SYSTEM, AGENTS, HYPOTHESES, TOURNAMENT, FEEDBACK)
_ALSO_CALLED = {
    "system_state": SYSTEM,
    "agent_states": AGENTS,
    "hypothesis_data": HYPOTHESES,
    "tournament_results": TOURNAMENT,
    "feedback_history": FEEDBACK,
    "meta_reviews": FEEDBACK,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """One question for the system's state.

    Attributes:
        request_type: ``full``, ``partial`` or ``summary``.
        start, end: with a time from and until these, both included.
        iterations: only of these; none named means all within the times, or the present where no time is named either.
        components: names that are no section: agents, or parts of the system that state updates tell of.
        sections: which parts of the answer are wanted.
    """

    request_type: str
    start: datetime | None = None
    end: datetime | None = None
    agents: tuple[str, ...] = ()
    components: tuple[str, ...] = ()
    hypotheses: tuple[str, ...] = ()
    iterations: tuple[int, ...] = ()
    metrics: tuple[str, ...] = ()
    sections: frozenset[str] = frozenset(SECTIONS)

    @property
    def present(self) -> bool:
        """Whether it is about how things are now."""
        return self.start is None and self.end is None and not self.iterations

    @property
    def full(self) -> bool:
        """Whether all content is wanted."""
        return self.request_type == "full"

    @property
    def summary(self) -> bool:
        """Whether only statistics and counts are wanted."""
        return self.request_type == "summary"


def wanted_of(request_type: Any, values: Mapping[str, Any]) -> Wanted:
    """The question that arguments make.

    Args:
        request_type: ``full``, ``partial`` or ``summary``.
        values: the other arguments by name; None for those not given.

    Raises:
        QueryInvalid: naming the argument.
    """
    if request_type not in REQUEST_TYPES:
        raise QueryInvalid(
            f"there is no request type {request_type!r}",
            field="request_type",
            hint=nearest(str(request_type), REQUEST_TYPES) or f"use one of {', '.join(REQUEST_TYPES)}",
        )
    start, end = (_moment(values.get(name), name) for name in ("start", "end"))
    if start is not None and end is not None and start > end:
        raise QueryInvalid("the start lies after the end", field="start", hint="exchange them")
    named = {name: _names(values.get(name), name) for name in ("agents", "components", "hypotheses", "metrics")}
    return Wanted(
        request_type=request_type,
        start=start,
        end=end,
        agents=named["agents"],
        components=tuple(one for one in named["components"] if _section(one) is None),
        hypotheses=named["hypotheses"],
        iterations=_numbers(values.get("iterations")),
        metrics=named["metrics"],
        sections=_sections(request_type, named),
    )


def _sections(request_type: str, named: Mapping[str, Sequence[str]]) -> frozenset[str]:
    """A partial answer has what is named; a full one or a summary everything, unless components are named."""
    sections = {found for one in named["components"] if (found := _section(one))}
    if named["agents"]:
        sections.add(AGENTS)
    if named["hypotheses"]:
        sections |= {HYPOTHESES, TOURNAMENT}
    narrowed = bool(named["components"]) or (request_type == "partial" and any(named.values()))
    return frozenset(sections if narrowed else SECTIONS)


def _section(name: str) -> str | None:
    plain = name.casefold()
    return plain if plain in SECTIONS else _ALSO_CALLED.get(plain)


def _moment(value: Any, name: str) -> datetime | None:
    try:
        return None if value is None else given_time(value)
    except (ValueError, TypeError, AttributeError, OverflowError):
        message = f"{value!r} is not a point in time"
        raise QueryInvalid(message, field=name, hint="write 2026-03-01T10:00:00Z") from None


def _names(value: Any, name: str) -> tuple[str, ...]:
    listed = [value] if isinstance(value, str) else _listed(value, name)
    for one in listed:
        if not isinstance(one, str) or not one:
            raise QueryInvalid(f"{one!r} is not a name", field=name, hint="give names, each a text")
    return tuple(dict.fromkeys(listed))


def _numbers(value: Any) -> tuple[int, ...]:
    listed = [value] if isinstance(value, int) else _listed(value, "iterations")
    for one in listed:
        if isinstance(one, bool) or not isinstance(one, int) or not 0 <= one < 10**12:
            raise QueryInvalid(f"{one!r} is not the number of an iteration", field="iterations", hint="give numbers")
    return tuple(sorted(set(listed)))


def _listed(value: Any, name: str) -> list[Any]:
    if value is None:
        return []
    if isinstance(value, Iterable) and not isinstance(value, bytes | Mapping | str):
        return list(value)
    raise QueryInvalid(f"{value!r} is no list", field=name, hint="give a list")
