"""``checkpoint``: make, list, verify, use and prune checkpoints of a multi-agent system's state.

Also what ``status`` says of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from memfs.doors.cli.backup import size
from memfs.doors.cli.command import opened, verb
from memfs.doors.cli.filters import as_of, as_of_json, note_past, past_at
from memfs.doors.cli.output import clean, count, note, print_json, print_raw, print_table, readable, styled, time_text

if TYPE_CHECKING:
    from memfs.model.state_documents import RecoveryState
    from memfs.state.checkpoint_store import Checkpoint, CheckpointVerdict
    from memfs.team.asof import Past
    from memfs.workspace import Workspace

_ACTIONS = ("create", "list", "verify", "recover", "prune")
_MOST_SHOWN = 20


@verb(
    "checkpoint",
    example="memfs checkpoint create --reason 'before the tournament'\nmemfs checkpoint list\nmemfs checkpoint verify\n"
    "memfs checkpoint list --as-of 2026-03-01\nmemfs checkpoint recover --json\n"
    "memfs checkpoint recover ckpt_20260301_1000 --component Ranking --restore --dry-run",
)
@click.argument("action", type=click.Choice(_ACTIONS))
@click.argument("checkpoint_id", metavar="[ID]", required=False)
@click.option("--reason", metavar="TEXT", help="With create: why, for the manifest.")
@click.option("--component", "components", multiple=True, metavar="NAME", help="With recover: only this; repeatable.")
@click.option("--restore", is_flag=True, help="With recover: bring back documents that are missing or differ.")
@as_of
@click.option("--dry-run", is_flag=True, help="With prune, or recover --restore: only say what would be done.")
@click.pass_context
def checkpoint(
    ctx: click.Context,
    action: str,
    checkpoint_id: str | None,
    reason: str | None,
    components: tuple[str, ...],
    restore: bool,
    as_of: str | None,
    dry_run: bool,
    as_json: bool,
) -> int:
    """Keep the whole state of a multi-agent system as it is at one moment, and go on from it after a crash.

    'create' makes one and verifies it; 'list' shows those there are, newest first; 'verify' reads them whole; 'recover'
    says what to go on from, by the newest that verifies or by ID; 'prune' removes those the retention policy does not
    keep.

    Exit code 1: no checkpoint can be used; with verify: one of them cannot.
    """
    options = {"--reason": reason, "--component": components, "--restore": restore, "--as-of": as_of}
    _check(ctx, action, checkpoint_id, options, dry_run)
    with opened(ctx) as workspace:
        checkpoints = workspace.states.checkpoints
        if action == "create":
            _tell_created(checkpoints.create(reason=reason or ""), as_json)
        elif action == "list":
            past = past_at(workspace, as_of) if as_of is not None else None
            _tell_list(checkpoints.list(past.files if past else None), past, as_json)
        elif action == "verify":
            return _tell_verdicts(checkpoints.verify(checkpoint_id), as_json)
        elif action == "prune":
            _tell_pruned(checkpoints.prune(dry_run), dry_run, as_json)
        else:
            state = checkpoints.recover(checkpoint_id, list(components) or None, restore, dry_run)
            _tell_recovery(state, as_json)
    return 0


def _check(
    ctx: click.Context, action: str, checkpoint_id: str | None, options: Mapping[str, object], dry_run: bool
) -> None:
    allowed = {"create": {"--reason"}, "recover": {"--component", "--restore"}, "list": {"--as-of"}}.get(action, set())
    for name, value in options.items():
        if value and name not in allowed:
            raise click.UsageError(f"'{action}' takes no {name}", ctx)
    if checkpoint_id is not None and action not in ("verify", "recover"):
        raise click.UsageError(f"'{action}' takes no ID", ctx)
    if dry_run and action != "prune" and not options["--restore"]:
        raise click.UsageError("--dry-run goes with prune, or with recover --restore", ctx)


# -- one action each ----------------------------------------------------------------------------------------------
def _json(one: Checkpoint) -> dict[str, Any]:
    return {
        "id": one.id,
        "timestamp": time_text(one.timestamp),
        "reason": one.reason,
        "iteration": one.iteration,
        "files": one.files,
        "bytes": one.bytes,
        "payload_bytes": one.payload_bytes,
        "sha256": one.sha256,
        "present": one.present,
        "problem": one.problem,
    }


def _tell_created(made: Checkpoint, as_json: bool) -> None:
    if as_json:
        print_json({**_json(made), "verified": True})
        return
    weight = f"{count(made.files, 'document')}, {size(made.bytes)} in {size(made.payload_bytes)}"
    print_raw(f"{styled('Created', fg='green')} {made.id}: {weight}, verified")


def _tell_list(found: Sequence[Checkpoint], past: Past | None, as_json: bool) -> None:
    note_past(past)
    if as_json:
        print_json({"checkpoints": [_json(one) for one in found], **as_of_json(past)})
    elif not found and past is not None:
        print_raw("There was no checkpoint")
    elif not found:
        print_raw("No checkpoints yet: 'memfs checkpoint create' makes one")
    else:
        print_table(
            [
                (
                    one.id,
                    "" if one.iteration is None else f"iteration {one.iteration}",
                    "" if one.problem and not one.files else count(one.files, "document"),
                    size(one.payload_bytes),
                    clean(one.problem or one.reason),
                )
                for one in found
            ]
        )


def _tell_verdicts(verdicts: Sequence[CheckpointVerdict], as_json: bool) -> int:
    if as_json:
        rows = [
            {"id": one.id, "good": one.good, "reason": one.reason, "files": one.files, "bytes": one.bytes}
            for one in verdicts
        ]
        print_json({"checkpoints": rows})
    elif not verdicts:
        print_raw("No checkpoints yet: 'memfs checkpoint create' makes one")
    for one in () if as_json else verdicts:
        if one.good:
            print_raw(f"{styled('good', fg='green'):<7}{one.id}  {count(one.files, 'document')}, {size(one.bytes)}")
        else:
            print_raw(f"{styled('bad', fg='red'):<7}{one.id}  {clean(one.reason)}")
    return int(not all(one.good for one in verdicts))


def _tell_pruned(removed: Sequence[str], dry_run: bool, as_json: bool) -> None:
    if as_json:
        print_json({"removed": [] if dry_run else list(removed), "would_remove": list(removed) if dry_run else []})
        return
    did = "Would remove" if dry_run else "Removed"
    print_raw(f"{did} {', '.join(removed)}" if removed else "Nothing to remove: the retention policy keeps them all")


def _tell_recovery(state: RecoveryState, as_json: bool) -> None:
    from memfs.state.archives import iterations_text

    if as_json:
        print_json(state.to_dict())
        return
    integrity = state.data_integrity
    print_raw(f"{styled('Go on from', fg='green')} {state.checkpoint_id}, of {time_text(state.checkpoint_timestamp)}")
    work = state.completed_work
    iterations = iterations_text(work.get("iterations", ())) or "no iteration"
    done = f"{iterations}; {count(work.get('agent_outputs', 0), 'output')}"
    print_raw(f"{'done':<9}{done}, {count(work.get('hypotheses', 0), 'hypothesis', 'hypotheses')}")
    for task in work.get("completed_since", ()):
        print_raw(f"{'since':<9}{clean(readable(task))}")
    for task in state.active_tasks:
        print_raw(f"{'retry':<9}{clean(readable(task))}")
    for name, point in state.resume_points.items():
        print_raw(f"{'resume':<9}{clean(name)}: {clean(readable(point))[:200]}")
    for word in ("restored", "would_restore"):
        _tell_restored(word, integrity.get(word))
    for one, why in integrity["rejected"].items():
        note(f"{one} was rejected: {clean(why)}")
    for sentence in integrity["warnings"]:
        note(clean(sentence))


def _tell_restored(word: str, paths: Sequence[str] | None) -> None:
    if paths is None:
        return
    said = "restored" if word == "restored" else "would restore"
    print_raw(f"{said} {count(len(paths), 'document')}")
    for path in paths[:_MOST_SHOWN]:
        print_raw(f"{'':9}{clean(path)}")
    if len(paths) > _MOST_SHOWN:
        print_raw(f"{'':9}and {len(paths) - _MOST_SHOWN} more")


# -- status -------------------------------------------------------------------------------------------------------
def checkpoint_facts(workspace: Workspace) -> dict[str, Any]:
    """The state of the workspace's checkpoints, as JSON; nothing where no state is kept."""
    from memfs.admin.store_builder import has_states

    if not has_states(workspace.parts.seen):
        return {}
    found = workspace.states.checkpoints.standing()
    return {
        "checkpoints": {
            "last": found.last or None,
            "age_seconds": None if found.age is None else round(found.age),
            "count": found.count,
            "damaged": found.damaged,
            "due": found.due,
            "update_late_seconds": round(found.update_late),
        }
    }


def checkpoint_row(facts: Mapping[str, Any]) -> dict[str, str]:
    """The same for people."""
    found = facts.get("checkpoints")
    if found is None:
        return {}
    parts = [f"{count(found['count'], 'checkpoint')}, the last {found['last']}" if found["last"] else "none yet"]
    if found["damaged"]:
        parts.append(f"{found['damaged']} cannot be used, see 'memfs checkpoint verify'")
    if found["due"]:
        parts.append(f"one is due by {found['due']}")
    if found["update_late_seconds"]:
        parts.append(f"no state update for {found['update_late_seconds']} s, update_interval_seconds expects one")
    return {"checkpoint": "; ".join(parts)}
