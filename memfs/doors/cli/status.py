"""``status``: show the state of the workspace, its storage and what it delivers to agents."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from memfs.admin.store_builder import problems as branch_problems
from memfs.doors.cli.agent.hook import hook_problems, hooks_facts, hooks_row
from memfs.doors.cli.backup import keeping_facts, keeping_rows
from memfs.doors.cli.command import opened, verb
from memfs.doors.cli.mounts import mounts_facts, mounts_problems, mounts_row
from memfs.doors.cli.output import (
    clean,
    count,
    note_problems,
    print_json,
    print_problem,
    print_raw,
    problem_json,
    styled,
)
from memfs.doors.cli.private import private_facts, private_row
from memfs.doors.cli.semantic import semantic_facts, semantic_row
from memfs.doors.cli.state.checkpoint import checkpoint_facts, checkpoint_row
from memfs.doors.cli.summary import knowledge_facts, knowledge_rows, states_facts, states_row
from memfs.doors.cli.team.conflicts import merges_facts, merges_row
from memfs.doors.cli.trust import status_facts, status_row
from memfs.settings import BUILT_IN_SOURCES
from memfs.watch import watch_facts

if TYPE_CHECKING:
    from memfs.workspace import Workspace


_FEW_ITEMS = 1_000
"""Conflicts are counted where there are no more items than that: files are read for it."""


def delivery_facts(workspace: Workspace, items: int) -> dict[str, Any]:
    """The part of ``memfs status --json``.

    Args:
        items: how many items there are.
    """
    memory = workspace.settings.memory
    foreign = [
        name
        for name in dict.fromkeys((*memory.automatic, *memory.triggered, *memory.on_demand_sources))
        if name not in BUILT_IN_SOURCES
    ]
    book = workspace.sources.plugins.guard.book if foreign else None  # most workspaces are spared what it imports
    paused = {name: why for name in foreign if book is not None and (why := book.paused(name))}
    row = {name: book.of(name).in_a_row for name in foreign if book is not None and name not in paused}
    return {
        "delivery": {
            "automatic": list(memory.automatic),
            "triggered": list(memory.triggered),
            "on_demand": memory.on_demand,
            "on_demand_sources": list(memory.on_demand_sources),
            "paused": paused,
            "failing": {name: times for name, times in row.items() if times},
            "conflicts": len(workspace.conflicts.list()) if items <= _FEW_ITEMS else None,
        }
    }


def delivery_row(facts: Mapping[str, Any]) -> dict[str, str]:
    """The row of ``memfs status``."""
    found = facts["delivery"]
    asked = ", ".join(["recall", *found["on_demand_sources"]]) if found["on_demand"] else "nothing"
    told = [f"{name} {', '.join(found[name]) or 'nothing'}" for name in ("automatic", "triggered")]
    told.append(f"on demand {asked}")
    failing = [f"{state}: {', '.join(found[state])}" for state in ("paused", "failing") if found[state]]
    if failing:
        told.append(f"{'; '.join(failing)} (memfs admin plugins check)")
    if found["conflicts"]:
        told.append(f"{count(found['conflicts'], 'conflict')} to decide (memfs team conflicts)")
    return {"delivery": "; ".join(told)}


def storage_facts(workspace: Workspace) -> dict[str, Any]:
    """As scripts read it."""
    found = workspace.store.storage()
    return {"state": found.state, **dataclasses.asdict(found)}


def storage_row(facts: Mapping[str, Any]) -> dict[str, str]:
    """As people read it."""
    free = "" if facts["free"] is None else f"{facts['free'] / 1e9:,.1f} GB free"
    words = [f"degraded: {facts['reason']}" if facts["reason"] else f"ok, {free}" if free else "ok"]
    if facts["waiting"]:
        words.append(f"{count(facts['waiting'], 'write')} in {facts['secondary']}")
    elif facts["secondary"]:
        words.append(f"secondary {facts['secondary']}")
    if facts["secondary_reason"]:
        words.append(f"which takes no writes: {facts['secondary_reason']}")
    return {"storage": "; ".join(words)}


_NAMED = 20


@verb("status", example="memfs status\nmemfs -C ~/project status --json")
@click.pass_context
def status(ctx: click.Context, as_json: bool) -> int:
    """Show how the workspace stands: what was learned of late, what is used, what waits for a commit, problems."""
    with opened(ctx) as workspace, workspace.store.looking_once():  # what follows would look at every file again
        facts = _status(workspace)
        invalid = frozenset(workspace.checker.invalid_edits()) if facts["hand_edits"] else frozenset()
        problems = [
            *(workspace.checker.item_problems() if workspace.store.problems() else ()),  # which takes much to import
            *filter(None, [workspace.quota.problem]),
            *mounts_problems(workspace),
        ]
        problems += hook_problems(workspace)
        problems += branch_problems(workspace.repository, workspace.parts.policy.agent)
        place = str(workspace.root)
    if as_json:
        print_json({**facts, "problems": [problem_json(problem) for problem in problems]})
    else:
        _print_status(place, facts, invalid)
        for problem in problems:
            print_problem(problem)
    note_problems(problems)
    return 0


def _status(workspace: Workspace) -> dict[str, Any]:
    store = workspace.store
    store.writing.bring_home()
    store.notice_commits(thorough=True)
    with store.change_detector.everywhere():
        learned, edits = store.edit_finder.look()  # brings the index in step first
    items, pending, head = store.count(), store.pending(), workspace.repository.head()
    return {
        "items": items,
        **knowledge_facts(workspace),
        "head": head.commit,
        "branch": head.branch or None,
        "pending_commits": pending.count,
        "pending_reason": pending.reason,
        "pending": list(pending.paths),
        "hand_edits": edits,
        "index": {"engine": workspace.settings.index.engine, "fresh": not (learned and store.refresh())},
        "watch": watch_facts(workspace.repository.state),
        "trust": status_facts(workspace),
        "storage": storage_facts(workspace),
        **keeping_facts(workspace),
        **semantic_facts(workspace),
        **states_facts(workspace),
        **checkpoint_facts(workspace),
        **delivery_facts(workspace, items),
        **hooks_facts(workspace),
        **mounts_facts(workspace),
        **private_facts(workspace),
        **merges_facts(workspace),
    }


def _print_status(root: str, facts: dict[str, Any], invalid: frozenset[str]) -> None:
    branch = facts["branch"] or "detached HEAD"
    at = f" at {facts['head'][:12]}" if facts["head"] else ", no commits yet"
    waiting = count(facts["pending_commits"], "change") if facts["pending_commits"] else "nothing"
    reason = f" ({facts['pending_reason']})" if facts["pending_reason"] else ""
    edits = facts["hand_edits"]
    rows = {
        "workspace": root,
        "items": f"{facts['items']:,}",
        **knowledge_rows(facts),
        "branch": f"{branch}{at}",
        "to commit": f"{waiting}{reason}" + (f", {count(len(edits), 'hand edit')}" if edits else ""),
        "index": f"{facts['index']['engine']}, {'fresh' if facts['index']['fresh'] else 'stale'}",
        "watch": facts["watch"]["state"],
    }
    rows |= status_row(facts["trust"]) | semantic_row(facts) | delivery_row(facts) | hooks_row(facts)
    rows |= mounts_row(facts) | private_row(facts) | merges_row(facts) | states_row(facts) | checkpoint_row(facts)
    rows |= storage_row(facts["storage"]) | keeping_rows(facts)
    for name, value in rows.items():
        print_raw(f"{styled(f'{name:<11}', dim=True)}{clean(value)}")
    for path in facts["pending"][:_NAMED]:
        print_raw(f"{'':11}{styled('waiting', fg='yellow')} {clean(path)}")
    if len(facts["pending"]) > _NAMED:
        print_raw(f"{'':11}{styled('waiting', fg='yellow')} and {len(facts['pending']) - _NAMED} more")
    for path in edits:
        wrong = "  invalid: 'memfs commit' leaves it alone" if path in invalid else ""
        print_raw(f"{'':11}{styled('edited', fg='yellow')} {clean(path)}{wrong}")
