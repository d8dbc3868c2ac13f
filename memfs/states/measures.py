"""Measures: what an output, a hypothesis or a set of figures says in numbers (seed 001; S5, S11).

Owns which parts of a document count as figures, as the strategy used, as success and as an improvement, whatever agents
call them, and how figures are summed up. Works on plain values and never fails over what somebody wrote.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

MOST_METRICS = 64
"""So many metrics of one agent are kept for an iteration, the most frequent first."""
_MOST_TEXT = 8_000
_LONGEST_NAME = 120
_LONGEST_KEY = 250
_LARGEST = 1e100
_DEEPEST = 3
_WORD = re.compile(r"\w{2,40}")
_STRATEGY = re.compile(r"strateg", re.IGNORECASE)
_LABEL = re.compile(
    r"(?:^|\.)(?:index|iteration|iteration_number|timestamp|version|year)$|(?:^|[._\- ])(?:id|seed)$", re.IGNORECASE
)
_SUCCESS = ("success", "succeeded", "successful", "accepted")
_ENDS = ("outcome", "status", "result")
_GOOD = frozenset({"success", "succeeded", "successful", "accepted", "passed", "ok", "done", "completed", "complete"})
_BAD = frozenset({"failure", "failed", "fail", "error", "rejected", "aborted", "timeout", "cancelled"})
_LESS_IS_BETTER = re.compile(
    r"(?:^|[^a-z])(?:cost|costs|error|errors|loss|latency|duration|seconds|time|resource|resources|consumed|failure|failures"
    r"|failed|rejected|tokens|retries|duplicates|memory|delay|waste)(?:[^a-z]|$)"
)

Summary = list[float]
"""How many values, their mean, and their standard deviation: short, as there are many of them in a file."""


# -- summing up ---------------------------------------------------------------------------------------------------
def short(value: float) -> float:
    """A number as aggregates have it: nine digits, the same whatever the order it was summed up in."""
    return float(f"{value:.9g}")


def summary(values: Iterable[float]) -> Summary:
    """How many, mean and deviation; ``[0, 0.0, 0.0]`` of none."""
    given = [value for value in values if abs(value) < _LARGEST]
    if not given:
        return [0, 0.0, 0.0]
    mean = math.fsum(given) / len(given)
    spread = math.sqrt(math.fsum((value - mean) ** 2 for value in given) / len(given))
    return [len(given), short(mean), short(spread)]


def combined(parts: Iterable[Summary]) -> Summary:
    """The summary of the values behind several summaries."""
    given = [part for part in parts if part[0]]
    count = sum(int(part[0]) for part in given)
    if not count:
        return [0, 0.0, 0.0]
    mean = math.fsum(part[0] * part[1] for part in given) / count
    squares = math.fsum(part[0] * (part[2] ** 2 + (part[1] - mean) ** 2) for part in given)
    return [count, short(mean), short(math.sqrt(squares / count))]


def slope(points: Sequence[tuple[float, float]]) -> float:
    """How much a value changes for each step, by least squares; 0.0 with fewer than two places."""
    if len({x for x, _ in points}) < 2:
        return 0.0
    middle_x = math.fsum(x for x, _ in points) / len(points)
    middle_y = math.fsum(y for _, y in points) / len(points)
    below = math.fsum((x - middle_x) ** 2 for x, _ in points)
    return short(math.fsum((x - middle_x) * (y - middle_y) for x, y in points) / below)


def direction(points: Sequence[tuple[float, float]], least: float = 0.1) -> str:
    """Where a value goes: ``rising`` or ``falling`` where the line through it moves by a tenth of its size at least.

    ``unknown`` with fewer than two places.
    """
    if len({x for x, _ in points}) < 2:
        return "unknown"
    move = slope(points) * (max(x for x, _ in points) - min(x for x, _ in points))
    size = math.fsum(abs(y) for _, y in points) / len(points)
    if abs(move) <= least * size or move == 0:
        return "steady"
    return "rising" if move > 0 else "falling"


def less_is_better(name: str) -> bool:
    """Whether a metric, by its name, is the better the smaller it is."""
    folded = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).casefold()
    return bool(_LESS_IS_BETTER.search(folded.replace("_", " ")))


# -- what a document says -----------------------------------------------------------------------------------------
def number(value: Any) -> float | None:
    """A value as a number, None where it is none that can be summed up."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if -_LARGEST < value < _LARGEST else None


def mapping(value: Any) -> Mapping[str, Any]:
    """A value as keys and values; nothing where it is none."""
    return value if isinstance(value, Mapping) else {}


def figures(value: Any, prefix: str = "") -> dict[str, float]:
    """Every number in a value by dotted name; one without a name is called ``effectiveness``."""
    return dict(list(_figures(value, prefix))[: 4 * MOST_METRICS])


def _figures(value: Any, prefix: str, depth: int = 0) -> Iterator[tuple[str, float]]:
    if isinstance(value, Mapping):
        if depth < _DEEPEST:
            for key, inner in value.items():
                yield from _figures(inner, f"{prefix}.{key}" if prefix else str(key), depth + 1)
    elif (found := number(value)) is not None and len(prefix) <= _LONGEST_NAME:
        yield prefix or "effectiveness", found


def key_of(name: str) -> str:
    """A name as a key in an aggregate; one that is too long for a key keeps its beginning and a digest."""
    return name if len(name) <= _LONGEST_KEY else f"{name[:160]}~{hashlib.sha256(name.encode()).hexdigest()[:16]}"


def metrics_of(results: Mapping[str, Any]) -> dict[str, float]:
    """The figures of an output: those of its metadata, and the plain ones of a primary output that has keys.

    Numbers that only tell one thing from another, such as ``seed`` or ``iteration``, are none.
    """
    own = {key: value for key, value in mapping(results.get("primary_output")).items() if number(value) is not None}
    found = {**figures(own), **figures(mapping(results.get("metadata")))}
    return {name: value for name, value in found.items() if not _LABEL.search(name)}


def strategies_of(values: Mapping[str, Any]) -> tuple[str, ...]:
    """The strategies that keys such as ``strategy`` or ``strategies_used`` name, each once."""
    found: list[str] = []
    for key, value in values.items():
        if _STRATEGY.search(str(key)):
            for one in value if isinstance(value, list | tuple) else (value,):
                name = one.get("name") if isinstance(one, Mapping) else one
                if isinstance(name, str) and name.strip():
                    found.append(" ".join(name.split())[:_LONGEST_NAME])
    return tuple(dict.fromkeys(found))[:8]


def success_of(values: Mapping[str, Any]) -> bool | None:
    """Whether a document says that the work succeeded; None where it does not say."""
    for key in _SUCCESS:
        if isinstance(values.get(key), bool):
            return bool(values[key])
    for key in _ENDS:
        word = values.get(key)
        if isinstance(word, str) and word.casefold() in _GOOD | _BAD:
            return word.casefold() in _GOOD
    return None


def named(given: Mapping[str, Any], beginning: str) -> list[str]:
    """The names that begin with a word, or have a part that does: ``improvement_rate``, ``scores.improvement``."""
    pattern = re.compile(rf"(?:^|[._\- ]){re.escape(beginning)}", re.IGNORECASE)
    found = (name for name in given if pattern.search(name))
    return sorted(found, key=lambda name: (not name.casefold().startswith(beginning), name))


# -- how far outputs differ ---------------------------------------------------------------------------------------
def words_of(value: Any) -> frozenset[str]:
    """The words of whatever an agent made."""
    return frozenset(_WORD.findall(" ".join(_texts(value, [_MOST_TEXT])).casefold()))


def _texts(value: Any, room: list[int]) -> Iterator[str]:
    if room[0] <= 0:
        return
    if isinstance(value, Mapping):
        for inner in value.values():
            yield from _texts(inner, room)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _texts(inner, room)
    elif isinstance(value, str):
        yield value[: room[0]]
        room[0] -= len(value)


def dissimilarity(sets: Sequence[frozenset[str]]) -> float | None:
    """How little the words of texts overlap, mean over all pairs: 0.0 all the same, 1.0 nothing shared."""
    given = [one for one in sets if one]
    if len(given) < 2:
        return None
    apart = [1 - len(one & other) / len(one | other) for place, one in enumerate(given) for other in given[place + 1 :]]
    return short(math.fsum(apart) / len(apart))
