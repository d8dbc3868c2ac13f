"""Sums: what the entries of an aggregate come to over all iterations (seed 001; S12).

Owns one fold for each aggregate: a sum, the next iteration's entry, the new sum. A sum has a bounded size. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from memfs.states.measures import combined, mapping, number, short
from memfs.states.series import Entry, size_of

_MOST_AGENTS = 200
_MOST_PATTERNS = 500
_MOST_IN_ENTRY = 12_000


# -- agents -------------------------------------------------------------------------------------------------------
def fold_agents(total: Entry, iteration: int, entry: Entry) -> dict[str, Any]:
    """How each agent did in all iterations so far."""
    agents = dict(mapping(total.get("agents")))
    for name, one in mapping(entry.get("agents")).items():
        before = mapping(agents.get(name))
        made: dict[str, Any] = {
            "first": before.get("first", iteration),
            "last": iteration,
            "iterations": before.get("iterations", 0) + 1,
            "outputs": before.get("outputs", 0) + one.get("outputs", 0),
        }
        for key in ("confidence", "cost", "gains"):
            if key in before or key in one:
                made[key] = combined(part[key] for part in (before, one) if key in part)
        if "better" in before or "better" in one:
            made["better"] = before.get("better", 0) + one.get("better", 0)
        agents[name] = made
    busiest = sorted(agents, key=lambda name: (-agents[name]["outputs"], name))[:_MOST_AGENTS]
    return {"agents": {name: agents[name] for name in sorted(busiest)}}


def fitting(agents: Mapping[str, Any]) -> dict[str, Any]:
    """The entry of an iteration with as many agents as there is room for, the busiest first, and how many are not."""
    kept: list[str] = []
    room = _MOST_IN_ENTRY
    for name in sorted(agents, key=lambda name: (-agents[name]["outputs"], name)):
        room -= 2 + size_of(agents[name])
        if room < 0:
            break
        kept.append(name)
    made: dict[str, Any] = {"agents": {name: agents[name] for name in sorted(kept)}}
    return made | ({"left_out": len(agents) - len(kept)} if len(kept) < len(agents) else {})


# -- patterns -----------------------------------------------------------------------------------------------------
def fold_patterns(total: Entry, iteration: int, entry: Entry) -> dict[str, Any]:
    """When each pattern was first and last seen, how often, and in how many reviews."""
    patterns = dict(mapping(total.get("patterns")))
    named = mapping(entry.get("patterns"))
    for key, one in named.items():
        before = mapping(patterns.get(key))
        patterns[key] = {
            "name": one["name"],
            "first_seen": before.get("first_seen", iteration),
            "last_seen": iteration,
            "total": before.get("total", 0) + one["count"],
            "reviews": before.get("reviews", 0) + 1,
        }
    kept = sorted(patterns, key=lambda key: (-patterns[key]["total"], -patterns[key]["last_seen"], key))
    reviews = total.get("reviews", 0) + (1 if entry.get("reviewed") else 0)
    return {"reviews": reviews, "patterns": {key: patterns[key] for key in kept[:_MOST_PATTERNS]}}


# -- progress -----------------------------------------------------------------------------------------------------
_COUNTED = ("outputs", "hypotheses", "tournament_results")


def fold_progress(total: Entry, iteration: int, entry: Entry) -> dict[str, Any]:
    """How much was done so far, and the best hypothesis of all."""
    made: dict[str, Any] = {"first": total.get("first", iteration), "last": iteration}
    made["iterations"] = total.get("iterations", 0) + 1
    made["closed"] = total.get("closed", 0) + (1 if entry.get("status") == "closed" else 0)
    made |= {name: total.get(name, 0) + entry.get(name, 0) for name in _COUNTED}
    before, best = mapping(total.get("best")), mapping(entry.get("best"))
    rating, known = number(best.get("rating")), number(before.get("rating"))
    if rating is not None and (known is None or rating > known):
        before = {"id": best.get("id", ""), "rating": short(rating), "iteration": iteration}
    return made | ({"best": dict(before)} if before else {})
