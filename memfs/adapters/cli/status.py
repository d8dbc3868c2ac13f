"""``status``: how the workspace stands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from memfs.adapters.cli.checkpointing import checkpoint_facts, checkpoint_row
from memfs.adapters.cli.frame import opened, verb
from memfs.adapters.cli.hooking import hook_problems, hooks_facts, hooks_row
from memfs.adapters.cli.keeping import keeping_facts, keeping_rows
from memfs.adapters.cli.knowledge import knowledge_facts, knowledge_rows
from memfs.adapters.cli.mending import blocked_at, tell_problems
from memfs.adapters.cli.mounting import mounts_facts, mounts_problems, mounts_row
from memfs.adapters.cli.output import (
    clean,
    count,
    note_problems,
    print_json,
    print_problem,
    print_raw,
    problem_json,
    styled,
)
from memfs.adapters.cli.private import private_facts, private_row
from memfs.adapters.cli.resolving import merges_facts, merges_row
from memfs.adapters.cli.semantic import semantic_facts, semantic_row
from memfs.adapters.cli.sourcing import delivery_facts, delivery_row
from memfs.adapters.cli.stating import states_facts, states_row
from memfs.adapters.cli.storing import storage_facts, storage_row
from memfs.adapters.cli.trusting import status_facts, status_row
from memfs.upkeep.branchcheck import problems as branch_problems
from memfs.watch.notes import watch_facts

if TYPE_CHECKING:
    from memfs.workspace import Workspace


_NAMED = 20


@verb("status", example="memfs status\nmemfs -C ~/project status --json")
@click.pass_context
def status(ctx: click.Context, as_json: bool) -> int:
    """Show how the workspace stands: what was learned of late, what is used, what waits for a commit, problems."""
    if (root := blocked_at(ctx)) is not None:
        tell_problems(root, as_json)
        return 1
    with opened(ctx) as workspace, workspace.store.looking_once():  # what is told below would look at every file again
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
    learned, edits = store.sight.everywhere(store.edits.look)  # brings the index in step first
    items, pending = store.count(), store.pending()
    head = workspace.repository.head()
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
