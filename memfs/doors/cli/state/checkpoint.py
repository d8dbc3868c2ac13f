"""Keep the whole state of a multi-agent system as it is at one moment, and go on from it after a crash."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from memfs.dataclass import dataclass, field
from memfs.doors.cli.command import opened, verb
from memfs.doors.cli.filters import as_of, past_at
from memfs.doors.cli.output import MERGE, Note, Table, Text, count, listed, readable, styled, time_text
from memfs.doors.cli.parser import Actions

if TYPE_CHECKING:
    from memfs.model.state_documents import RecoveryState
    from memfs.state.checkpoint_store import Checkpoint, CheckpointVerdict
    from memfs.workspace import Workspace

_MOST_SHOWN = 20
_NONE_YET = "No checkpoints yet: 'memfs state checkpoint create' makes one"


# -- create -------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class MadeCheckpoint:
    """A new checkpoint.

    Attributes:
        checkpoint: all of it; its fields stand beside the others.
        verified: that it was read back whole.
    """

    checkpoint: Checkpoint = field(metadata=MERGE)
    verified: bool = True


def _made_text(made: MadeCheckpoint) -> Text:
    one = made.checkpoint
    weight = f"{count(one.files, 'document')}, {one.bytes:,} bytes in {one.payload_bytes:,}"
    yield f"{styled('Created', fg='green')} {one.id}: {weight}, verified"


@verb("create", text=_made_text)
@click.option("--reason", default="", metavar="TEXT", help="Why, for the manifest.")
def create(workspace: Workspace, reason: str) -> MadeCheckpoint:
    """Make a checkpoint and verify it, while others may go on writing.

    It holds iterations, aggregates, configuration and context; memories and archives are not part of it. Killed before
    it is durable and read back, there is no new checkpoint. Its manifest is in git, its payload beside it is not.

    Examples:
        memfs state checkpoint create --reason 'before the tournament'
    """
    return MadeCheckpoint(workspace.states.checkpoints.create(reason=reason))


# -- list ---------------------------------------------------------------------------------------------------------
def _list_text(listed: tuple[Checkpoint, ...], as_of: str | None) -> Text:
    if not listed:
        yield "There was no checkpoint" if as_of else _NONE_YET
    yield Table([
        (
            one.id,
            "" if one.iteration is None else f"iteration {one.iteration}",
            "" if one.problem and not one.files else count(one.files, "document"),
            count(one.payload_bytes, "byte"),
            one.problem or one.reason,
        )
        for one in listed
    ])  # fmt: skip


@verb("list", text=_list_text, key="checkpoints")
@as_of
def list_(workspace: Workspace, as_of: str | None) -> tuple[Checkpoint, ...]:
    """List the checkpoints there are, newest first.

    Examples:
        memfs state checkpoint list --as-of 2026-03-01
    """
    past = past_at(workspace, as_of)
    found = workspace.states.checkpoints.list(past.files if past else None)
    return tuple(found)


# -- verify -------------------------------------------------------------------------------------------------------
def _verdicts_text(checked: tuple[CheckpointVerdict, ...]) -> Text:
    if not checked:
        yield _NONE_YET
    for one in checked:
        word = styled("good", fg="green") if one.good else styled("bad", fg="red")
        yield f"{word}  {one.id}  " + (
            f"{count(one.files, 'document')}, {one.bytes:,} bytes" if one.good else one.reason
        )


@verb("verify", text=_verdicts_text, key="checkpoints", exit_code=lambda found: not all(one.good for one in found))
@click.argument("checkpoint_id", metavar="[ID]", required=False)
def verify(workspace: Workspace, checkpoint_id: str | None) -> tuple[CheckpointVerdict, ...]:
    """Read all checkpoints whole, or the one with this ID.

    Exit code 1: one of them cannot be used.

    Examples:
        memfs state checkpoint verify
    """
    return tuple(workspace.states.checkpoints.verify(checkpoint_id))


# -- prune --------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class PrunedCheckpoints:
    """Checkpoints that the retention policy does not keep.

    Attributes:
        removed: ids of those that were removed.
        would_remove: ids of those that would be.
    """

    removed: tuple[str, ...]
    would_remove: tuple[str, ...]


def _pruned_text(pruned: PrunedCheckpoints) -> Text:
    did = "Removed" if pruned.removed else "Would remove"
    names = ", ".join(pruned.removed or pruned.would_remove)
    yield f"{did} {names}" if names else "Nothing to remove: the retention policy keeps them all"


@verb("prune", text=_pruned_text)
@click.option("--dry-run", is_flag=True, help="Only say what would be removed.")
def prune(workspace: Workspace, dry_run: bool) -> PrunedCheckpoints:
    """Remove what the retention policy does not keep, as every 'create' does.

    Examples:
        memfs state checkpoint prune --dry-run
    """
    removed = tuple(workspace.states.checkpoints.prune(dry_run))
    return PrunedCheckpoints(() if dry_run else removed, removed if dry_run else ())


# -- recover ------------------------------------------------------------------------------------------------------
def _recovery_text(state: RecoveryState) -> Text:
    from memfs.state.archives import iterations_text

    integrity, work = state.data_integrity, state.completed_work
    yield f"{styled('Go on from', fg='green')} {state.checkpoint_id}, of {time_text(state.checkpoint_timestamp)}"
    iterations = iterations_text(work.get("iterations", ())) or "no iteration"
    done = f"{iterations}; {count(work.get('agent_outputs', 0), 'output')}"
    yield f"{'done':<9}{done}, {count(work.get('hypotheses', 0), 'hypothesis', 'hypotheses')}"
    for word, tasks in (("since", work.get("completed_since", ())), ("retry", state.active_tasks)):
        for task in tasks:
            yield f"{word:<9}{readable(task)}"
    for name, resumed in state.resume_points.items():
        yield f"{'resume':<9}{name}: {readable(resumed)[:200]}"
    for word in ("restored", "would_restore"):
        yield from _restored_text(word.replace("_", " "), integrity.get(word))
    for one, why in integrity["rejected"].items():
        yield Note(f"{one} was rejected: {why}")
    for sentence in integrity["warnings"]:
        yield Note(sentence)


def _restored_text(word: str, paths: Sequence[str] | None) -> Text:
    if paths is not None:
        yield f"{word} {count(len(paths), 'document')}"
        yield from listed("", paths, _MOST_SHOWN)


@verb("recover", text=_recovery_text)
@click.argument("checkpoint_id", metavar="[ID]", required=False)
@click.option("--component", "components", multiple=True, metavar="NAME", help="Only this; repeatable.")
@click.option("--restore", is_flag=True, help="Bring back documents that are missing or differ.")
@click.option("--dry-run", is_flag=True, help="With --restore: only say what would come back.")
def recover(checkpoint_id: str | None, components: tuple[str, ...], restore: bool, dry_run: bool) -> RecoveryState:
    """Say what to go on from after a crash; nothing is changed.

    By the newest checkpoint that verifies, or by ID, it tells what is done, which tasks in flight were completed since,
    which are to be done again, and where each component goes on. A component is an agent, system, hypotheses,
    tournament, feedback, configuration, context, aggregates, or a name in recovery_metadata. With --restore, what is
    newer and not in the checkpoint stays, what is archived stays archived, and what is replaced is in history.

    Exit code 1: no checkpoint can be used.

    Examples:
        memfs state checkpoint recover --json
        memfs state checkpoint recover ckpt_20260301_1000 --component Ranking --restore --dry-run
    """
    if dry_run and not restore:
        raise click.UsageError("--dry-run goes with --restore")
    with opened() as workspace:
        checkpoints = workspace.states.checkpoints
        return checkpoints.recover(checkpoint_id, list(components) or None, restore, dry_run)


checkpoint = Actions("checkpoint", __doc__, list_, create, verify, recover, prune)
