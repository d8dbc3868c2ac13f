"""Recommendations: what a meta-review says, as sentences (seed 001; S4).

Owns which part of a review becomes which part of the feedback, whatever form a reviewer gave it: text, lists, objects.
Works on plain values and never fails over what a reviewer wrote.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from memfs.model.states import FeedbackContent
from memfs.states.measures import mapping

_TEXTS = (
    "text",
    "recommendation",
    "suggestion",
    "improvement",
    "action",
    "feedback",
    "message",
    "description",
    "summary",
)
_PLAIN = frozenset(
    {
        *_TEXTS,
        *(f"{name}s" for name in _TEXTS),
        *("general", "general_recommendations", "items", "notes", "note", "list", "all", "everyone", "priorities"),
        *("next_priorities", "summaries", "comments", "comment", "advice"),
    }
)
_BLANK = re.compile(r"[._\-\s]+")
_DEEPEST = 6
_MOST = 1_000


def content_of(review: Mapping[str, Any]) -> FeedbackContent:
    """What a meta-review recommends: generally, to each agent, next, and what worked."""
    critique, overview = mapping(review.get("critique")), mapping(review.get("research_overview"))
    by_agent = mapping(critique.get("agent_feedback"))
    return FeedbackContent(
        general_recommendations=sentences(critique.get("iteration_improvements")),
        agent_specific={str(agent): sentences(value) for agent, value in by_agent.items()},
        priority_improvements=sentences(overview.get("next_priorities")),
        success_patterns=_patterns(critique.get("common_patterns")),
    )


def version_of(review: Mapping[str, Any]) -> str:
    """What names the content of a review: the iteration, and a digest of all but its time. "" for none."""
    if not review:
        return ""
    told = {key: value for key, value in review.items() if key not in ("timestamp", "$schema")}
    text = json.dumps(told, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12]
    return f"{review.get('iteration_number', '')}-{digest}"


def sentences(value: Any) -> tuple[str, ...]:
    """A text, a list or an object as sentences, one for each thing that is said.

    What stands under a key keeps the key in front of it, but for keys that only say that it is advice, such as
    ``recommendations``.
    """
    found: list[str] = []
    for sentence in _sentences(value, "", 0):
        found.append(sentence)
        if len(found) >= _MOST:
            break
    return tuple(dict.fromkeys(found))


def _sentences(value: Any, where: str, depth: int) -> Iterator[str]:
    if value is None or depth > _DEEPEST:
        return
    if isinstance(value, Mapping):
        yield from _of_object(value, where, depth)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _sentences(inner, where, depth + 1)
    else:
        text = _word(value)
        if text:
            yield f"{where}: {text}" if where else text


def _of_object(value: Mapping[str, Any], where: str, depth: int) -> Iterator[str]:
    main = next((key for key in _TEXTS if isinstance(value.get(key), str) and value[key].strip()), "")
    beside = {key: inner for key, inner in value.items() if key != main}
    if main and all(not isinstance(inner, Mapping | list | tuple) for inner in beside.values()):
        facts = ", ".join(f"{key}: {_word(inner)}" for key, inner in beside.items() if _word(inner))
        text = f"{value[main].strip()} ({facts})" if facts else value[main].strip()
        yield f"{where}: {text}" if where else text
        return
    for key, inner in value.items():
        name = where if str(key).casefold() in _PLAIN else " ".join(part for part in (where, str(key)) if part)
        yield from _sentences(inner, name, depth + 1)


def _word(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return value.strip() if isinstance(value, str) else str(value) if isinstance(value, int | float) else ""


def _patterns(value: Any) -> tuple[Any, ...]:
    if isinstance(value, list | tuple):
        return tuple(value)
    return () if value in (None, "", {}) else (value,)


# -- agents' names ------------------------------------------------------------------------------------------------
def name_in(names: Iterable[str], agent: str) -> str:
    """The name by which an agent is known: its own, or else the only one that is written alike.

    Letter case, blanks, dots, dashes and a trailing "agent" do not count: ``evolution_agent`` is ``Evolution``. "" for
    none.
    """
    given = list(names)
    if agent in given:
        return agent
    alike = [name for name in given if _folded(name) == _folded(agent)]
    return alike[0] if len(alike) == 1 else ""


def _folded(name: str) -> str:
    words = _BLANK.sub(" ", name.casefold()).split()
    return " ".join(words[:-1] if len(words) > 1 and words[-1] == "agent" else words)
