"""Progress: how far the research was at the end of an iteration (seed 001; S12).

Owns the entry that an iteration has in ``research_progress``. It follows from the documents alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from memfs.model.statefacts import Facts
from memfs.model.statequery import Row
from memfs.states.digest import Load
from memfs.states.measures import mapping, number, short, summary

KINDS = ("agent_output", "hypothesis", "meta_review", "system_state", "tournament_result")
"""The documents that an entry follows from."""

_REPORTED = ("total_hypotheses", "pending_reviews", "tournament_progress")
_MOST = 20
_LONGEST = 300


def progress(rows: Iterable[Row], load: Load) -> dict[str, Any]:
    """How far the research was in one iteration.

    Args:
        rows: of the iteration's documents of ``KINDS``.
        load: reads one; only the header and the meta-review are read.
    """
    given = sorted(rows, key=lambda row: row.path)
    header = next((load(row) for row in given if row.facts.kind == "system_state"), {})
    review = next((load(row) for row in given if row.facts.kind == "meta_review"), {})
    counts = Counter(row.facts.kind for row in given)
    made: dict[str, Any] = {name: header[name] for name in ("status", "opened", "closed") if _text(header.get(name))}
    made["outputs"] = counts["agent_output"]
    made["hypotheses"] = counts["hypothesis"]
    made["tournament_results"] = counts["tournament_result"]
    states = Counter(row.facts.state for row in given if row.facts.kind == "hypothesis" and row.facts.state)
    made["by_state"] = {name: states[name] for name in sorted(states)[:_MOST]}
    return made | _ratings(row.facts for row in given) | _reported(header) | _overview(review)


def _ratings(given: Iterable[Facts]) -> dict[str, Any]:
    ratings = {facts.name: facts.rating for facts in given if facts.kind == "hypothesis" and facts.rating is not None}
    if not ratings:
        return {}
    best = min(ratings, key=lambda name: (-ratings[name], name))
    return {"ratings": summary(ratings.values()), "best": {"id": best, "rating": short(ratings[best])}}


def _reported(header: Mapping[str, Any]) -> dict[str, Any]:
    update = mapping(header.get("update"))
    statistics = mapping(update.get("system_statistics"))
    made: dict[str, Any] = {name: statistics[name] for name in _REPORTED if number(statistics.get(name)) is not None}
    focus = mapping(update.get("orchestration_state")).get("strategic_focus")
    return made | ({"strategic_focus": focus[:_LONGEST]} if isinstance(focus, str) and focus else {})


def _overview(review: Mapping[str, Any]) -> dict[str, Any]:
    overview = mapping(review.get("research_overview"))
    areas, priorities = overview.get("research_areas"), overview.get("next_priorities")
    made: dict[str, Any] = {"research_areas": len(areas)} if isinstance(areas, list) else {}
    if isinstance(priorities, list):
        made["next_priorities"] = [one[:_LONGEST] for one in priorities if _text(one)][:_MOST]
    return made


def _text(value: Any) -> bool:
    return isinstance(value, str) and bool(value)
