"""Summing: what a summary says of documents, from what is known of them (S3, S14).

Owns counts, means and standings. Reads no document.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from memfs.model.matches import matches
from memfs.model.statequery import Row
from memfs.model.time import format_time


def agents(rows: Iterable[Row], names: Sequence[str]) -> dict[str, dict[str, Any]]:
    """By agent: how many outputs, their mean confidence, what they took, and when the last came."""
    held: dict[str, list[Row]] = {name: [] for name in names}
    for row in rows:
        if row.facts.agent in held:
            held[row.facts.agent].append(row)
    return {name: _agent(name, found) for name, found in held.items() if found}


def _agent(name: str, rows: Sequence[Row]) -> dict[str, Any]:
    figures = [row.facts.agent_metrics.get(name, {}) for row in rows]
    confidence = [one["confidence_score"] for one in figures if "confidence_score" in one]
    summed: dict[str, Any] = {
        "outputs": len(rows),
        "tasks": len({row.facts.task for row in rows}),
        "resource_consumed": sum(one.get("resource_consumed", 0.0) for one in figures),
    }
    if confidence:
        summed["mean_confidence"] = sum(confidence) / len(confidence)
    moments = [row.facts.timestamp for row in rows if row.facts.timestamp is not None]
    if moments:
        summed["last_timestamp"] = format_time(max(moments))
    return summed


def by_state(hypotheses: Mapping[str, Row]) -> dict[str, int]:
    """How many hypotheses are in each state."""
    return dict(sorted(Counter(row.facts.state for row in hypotheses.values()).items()))


def standings(results: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """By hypothesis: its matches and wins, and its rating after the last."""
    table: dict[str, dict[str, Any]] = {}
    for match in (one for result in results for one in matches(result)):
        for name in match.participants:
            row = table.setdefault(name, {"matches": 0, "wins": 0})
            row["matches"] += 1
            row["wins"] += name in match.winners
            if name in match.ratings:
                row["rating"] = match.ratings[name]
    return dict(sorted(table.items()))


def review(values: Mapping[str, Any]) -> dict[str, Any]:
    """What a meta-review is about, in numbers."""
    critique, overview = (_mapping(values.get(name)) for name in ("critique", "research_overview"))
    summed = {key: values[key] for key in ("iteration_number", "timestamp") if key in values}
    return {
        **summed,
        "patterns": len(critique.get("common_patterns") or ()),
        "agents": sorted(map(str, _mapping(critique.get("agent_feedback")))),
        "priorities": len(overview.get("next_priorities") or ()),
    }


def component(name: str, update: Mapping[str, Any]) -> dict[str, Any]:
    """What a state update tells of one component."""
    recovery = _mapping(_mapping(update.get("checkpoint_data")).get("recovery_metadata"))
    queues = _mapping(_mapping(update.get("orchestration_state")).get("queue_statistics"))
    told = {"timestamp": update["timestamp"]} if "timestamp" in update else {}
    for key, held in (("recovery_metadata", recovery), ("queue_statistics", queues)):
        if name in held:
            told[key] = held[name]
    return told


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
