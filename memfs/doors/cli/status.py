"""``status``: what a workspace knows, what waits, what is wrong, what it weighs, and where private memory lies."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from memfs import private
from memfs.admin.store_builder import problems as branch_problems
from memfs.admin.usage_by_area import tally
from memfs.doors.cli.agent.hook import hook_problems, hooks_facts, hooks_row
from memfs.doors.cli.backup import keeping_facts, keeping_rows, size
from memfs.doors.cli.command import Invocation, Unclear, opened, verb, wants_json
from memfs.doors.cli.filters import AsOf, as_of, past_at, revision_of
from memfs.doors.cli.mounts import mounts_facts, mounts_problems, mounts_row
from memfs.doors.cli.output import (
    MERGE,
    OMIT,
    TEXT_ONLY,
    Note,
    Table,
    clean,
    count,
    facts,
    problems_note,
    styled,
)
from memfs.doors.cli.private import PrivateMemory, private_folder, private_memory
from memfs.doors.cli.semantic import SemanticStatus, semantic_row, semantic_status
from memfs.doors.cli.state.checkpoint import checkpoint_facts, checkpoint_row
from memfs.doors.cli.summary import knowledge_facts, knowledge_rows, states_facts, states_row
from memfs.doors.cli.team.conflicts import merges_facts, merges_row
from memfs.doors.cli.trust import status_facts, status_row
from memfs.model import Problem
from memfs.watch import watch_facts

if TYPE_CHECKING:
    from memfs.admin.usage_by_area import MemoryTally
    from memfs.workspace import Workspace


_FEW_ITEMS = 1_000
"""Conflicts are counted where there are no more items than that: files are read for it."""


def delivery_facts(workspace: Workspace, items: int) -> dict[str, Any]:
    """The part of ``memfs status --json``.

    Args:
        items: how many items there are.
    """
    memory = workspace.settings.memory
    return {
        "delivery": {
            "automatic": list(memory.automatic),
            "triggered": list(memory.triggered),
            "on_demand": memory.on_demand,
            "on_demand_sources": list(memory.on_demand_sources),
            "conflicts": len(workspace.conflicts.list()) if items <= _FEW_ITEMS else None,
        }
    }


def delivery_row(facts: Mapping[str, Any]) -> dict[str, str]:
    """The row of ``memfs status``."""
    found = facts["delivery"]
    asked = ", ".join(["recall", *found["on_demand_sources"]]) if found["on_demand"] else "nothing"
    told = [f"{name} {', '.join(found[name]) or 'nothing'}" for name in ("automatic", "triggered")]
    told.append(f"on demand {asked}")
    if found["conflicts"]:
        told.append(f"{count(found['conflicts'], 'conflict')} to decide (memfs team conflicts)")
    return {"delivery": "; ".join(told)}


def storage_facts(workspace: Workspace) -> dict[str, Any]:
    """As scripts read it."""
    found = workspace.store.storage()
    return {"state": found.state, **asdict(found)}


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
_LAST = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class PresentState:
    """How a workspace is now.

    Attributes:
        workspace: its folder.
        knowledge: what was learned in the last days and by whom, what contradicts something, and what is used most.
        head: the newest commit; null where there is none.
        branch: the branch that is checked out; null where none is.
        pending_commits: how many changes wait for their commit.
        pending_reason: why they wait.
        pending: the files that wait.
        hand_edits: the files that a person changed.
        index: the search engine, and whether the index was up to date.
        watch: which processes follow changes of the files.
        trust: what the workspace's files ask for, and whether that counts.
        storage: whether the disk takes writes, how much is free, and what the secondary location holds.
        quota: how much of each quota is used.
        backup: when the last one was made, and whether one is overdue.
        semantic: how far search by meaning is, where it is on.
        states: iterations and documents of a multi-agent system, where there are any.
        checkpoints: the newest checkpoint, and what is wrong with checkpoints, where there is such a system.
        delivery: which sources give agents their context, which of them fail, and how many conflicts there are.
        hooks: how many sessions have events that are no memory yet.
        mounts: each mounted workspace.
        merges: what merges left to decide, and whether git joins memory files field by field.
        invalid: the edits that are invalid, so that nothing commits them.
    """

    workspace: Path
    knowledge: Mapping[str, Any]
    head: str | None
    branch: str | None
    pending_commits: int
    pending_reason: str
    pending: tuple[str, ...]
    hand_edits: tuple[str, ...]
    index: Mapping[str, Any]
    watch: Mapping[str, Any]
    trust: Mapping[str, Any]
    storage: Mapping[str, Any]
    quota: tuple[Mapping[str, Any], ...]
    backup: Mapping[str, Any]
    semantic: SemanticStatus | None = field(default=None, metadata=OMIT)
    states: Mapping[str, Any] | None = field(default=None, metadata=OMIT)
    checkpoints: Mapping[str, Any] | None = field(default=None, metadata=OMIT)
    delivery: Mapping[str, Any]
    hooks: Mapping[str, Any]
    mounts: Mapping[str, Any] | None = field(default=None, metadata=OMIT)
    merges: Mapping[str, Any]
    invalid: frozenset[str] = field(default=frozenset(), metadata=TEXT_ONLY)


@dataclass(frozen=True, slots=True)
class ContentBytes:
    """What the parts of a workspace weigh.

    Attributes:
        content: the files of items.
        repository: what git keeps; not of a revision.
        index: the search index; not of a revision.
    """

    content: int
    repository: int | None = field(default=None, metadata=OMIT)
    index: int | None = field(default=None, metadata=OMIT)


@dataclass(frozen=True, slots=True)
class ItemCounts:
    """Items by type and layer, and what they weigh.

    Attributes:
        types: how many there are of each type.
        layers: how many there are in each layer.
        bytes: what content, history and index weigh.
        bytes_by_type: what the files of each type weigh.
    """

    types: Mapping[str, int]
    layers: Mapping[str, int]
    bytes: ContentBytes
    bytes_by_type: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class AreaWeight:
    """An area of a workspace.

    Attributes:
        bytes: what it weighs.
        quota: its quota in bytes; null where it has none.
    """

    bytes: int
    quota: int | None

    def row(self, name: str) -> tuple[str, str, str]:
        """Its row in a table."""
        share = f"{self.bytes * 100 // self.quota}% of {size(self.quota)}" if self.quota else ""
        return f"  {name}", size(self.bytes), share


@dataclass(frozen=True, slots=True)
class IterationWeight:
    """An iteration of a multi-agent system.

    Attributes:
        number: its number.
        documents: how many documents it has.
        bytes: what they weigh.
        archived: how many of them are in an archive.
    """

    number: int
    documents: int
    bytes: int
    archived: int


@dataclass(frozen=True, slots=True)
class StorageUse:
    """What everything weighs, and how often memories were used.

    Attributes:
        usage: how many items were recalled (``items``), and how often (``uses``).
        areas: what each area weighs, beside its quota.
        total: all of them, beside the quota of the workspace.
        free: bytes that are free on the disk; null where the system does not tell.
        iterations: what each iteration adds.
        bytes_per_iteration: the mean of that.
        growth_of_an_iteration: by how much each iteration is larger than the one before.
        uncounted: why uses were not counted.
    """

    usage: Mapping[str, int]
    areas: Mapping[str, AreaWeight]
    total: AreaWeight
    free: int | None
    iterations: tuple[IterationWeight, ...]
    bytes_per_iteration: int
    growth_of_an_iteration: int
    uncounted: str = field(default="", metadata=TEXT_ONLY)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkspaceStatus:
    """The state of a workspace.

    Attributes:
        items: how many memories there are.
        now: how it is now; its fields stand beside. Not of a revision.
        counts: items by type and layer; its fields stand beside.
        weights: what everything weighs; its fields stand beside. Not of a revision.
        private: your private memory of this project; null where there is none.
        problems: what is wrong; 'memfs check' looks for more.
        as_of: the revision that was asked for.
        all: whether a person is shown every row.
        only_private: whether only private memory was asked for.
    """

    items: int = 0
    now: PresentState | None = field(default=None, metadata=MERGE)
    counts: ItemCounts | None = field(default=None, metadata=MERGE)
    weights: StorageUse | None = field(default=None, metadata=MERGE)
    private: PrivateMemory | None = None
    problems: tuple[Problem, ...] = ()
    as_of: AsOf | None = field(default=None, metadata=OMIT)
    all: bool = field(default=False, metadata=TEXT_ONLY)
    only_private: bool = field(default=False, metadata=TEXT_ONLY)


def _text(found: WorkspaceStatus) -> Iterator[Any]:
    if found.only_private:
        assert found.private is not None  # else there is no result
        yield str(found.private.folder)
        yield from found.private.remarks()
        return
    if found.now is not None:
        yield from facts(_rows(found, found.now))
        yield from _waiting(found.now)
    if found.counts is not None:
        yield from _counted(found.items, found.counts)
    if found.weights is not None:
        yield from _weighed(found.weights)
    if found.as_of is not None:
        yield from found.as_of.remarks()
    else:
        yield from found.problems
    yield from problems_note(len(found.problems))


def _rows(found: WorkspaceStatus, now: PresentState) -> dict[str, str]:
    """The rows; of what is usual only where all of them are asked for."""
    states = asdict(now)
    at = f" at {now.head[:12]}" if now.head else ", no commits yet"
    waiting = count(now.pending_commits, "change") if now.pending_commits else "nothing"
    reason = f" ({now.pending_reason})" if now.pending_reason else ""
    rows = {
        "workspace": str(now.workspace),
        "items": f"{found.items:,}",
        **knowledge_rows(states),
        "branch": f"{now.branch or 'detached HEAD'}{at}",
        "to commit": waiting + reason + (f", {count(len(now.hand_edits), 'hand edit')}" if now.hand_edits else ""),
    }
    if found.all or not now.index["fresh"]:
        rows["index"] = f"{now.index['engine']}, {'fresh' if now.index['fresh'] else 'stale'}"
    if found.all or now.watch["state"].startswith("degraded"):
        rows["watch"] = now.watch["state"]
    rows |= status_row(dict(now.trust))
    rows |= semantic_row(now.semantic) if now.semantic is not None else {}
    if found.all or now.delivery["conflicts"]:
        rows |= delivery_row(states)
    rows |= hooks_row(states)
    rows |= mounts_row({"mounts": now.mounts or {}})
    rows |= {"private": found.private.held()} if found.private is not None else {}
    rows |= merges_row(states)
    rows |= states_row({"states": now.states}) if now.states else {}
    if now.checkpoints and (
        found.all or any(now.checkpoints[name] for name in ("damaged", "due", "update_late_seconds"))
    ):
        rows |= checkpoint_row({"checkpoints": now.checkpoints})
    if found.all or any(now.storage[name] for name in ("reason", "waiting", "secondary_reason")):
        rows |= storage_row(now.storage)
    kept = keeping_rows(states)
    if not (found.all or any(one["level"] for one in now.quota)):
        kept.pop("quota", None)
    if not (found.all or now.backup["overdue"] or now.backup["error"]):
        kept.pop("backup", None)
    return rows | kept


def _waiting(now: PresentState) -> Iterator[str]:
    for path in now.pending[:_NAMED]:
        yield f"{'':11}{styled('waiting', fg='yellow')} {clean(path)}"
    if len(now.pending) > _NAMED:
        yield f"{'':11}{styled('waiting', fg='yellow')} and {len(now.pending) - _NAMED} more"
    for path in now.hand_edits:
        wrong = "  invalid: 'memfs commit' leaves it alone" if path in now.invalid else ""
        yield f"{'':11}{styled('edited', fg='yellow')} {clean(path)}{wrong}"


def _counted(items: int, found: ItemCounts) -> Iterator[Any]:
    yield styled(count(items, "item"), bold=True)
    yield Table(
        [(f"  {name}", f"{number:>9,}", size(found.bytes_by_type[name])) for name, number in found.types.items()]
    )
    yield styled("Layers", bold=True)
    yield Table([(f"  {layer}", f"{number:>9,}") for layer, number in found.layers.items()])


def _weighed(found: StorageUse) -> Iterator[Any]:
    yield styled("Areas", bold=True)
    yield Table([area.row(name) for name, area in (*found.areas.items(), ("total", found.total))])
    if found.free is not None:
        yield f"  {size(found.free)} free"
    yield f"{count(found.usage['uses'], 'use')} of {count(found.usage['items'], 'item')}"
    if found.uncounted:
        yield Note(found.uncounted)
    if not found.iterations:
        return
    yield styled("Iterations", bold=True)
    shown = found.iterations[-_LAST:]
    yield Table([(f"  {row.number}", size(row.bytes), "archived" if row.archived else "") for row in shown])
    slope, mean = found.growth_of_an_iteration, found.bytes_per_iteration
    trend = f"not linear: each {size(abs(slope))} {'larger' if slope > 0 else 'smaller'} than the one before"
    even = abs(slope) * len(found.iterations) < 0.1 * mean
    yield f"  {size(mean)} each on average; growth is {'linear' if even else trend}"


@verb(
    "status",
    text=_text,
    example="memfs status\nmemfs status --all\nmemfs status --storage\nmemfs status --as-of 2026-03-01\n"
    'memfs -C ~/project status --json\nmemfs -C "$(memfs status --private)" list',
)
@click.option("--all", "all_", is_flag=True, help="Show every row, and what everything weighs.")
@click.option("--storage", is_flag=True, help="Show only what items, areas and iterations weigh, and the quotas.")
@click.option("--private", "mine", is_flag=True, help="Print only the folder of your private memory of this project.")
@as_of
@click.pass_context
def status(ctx: click.Context, all_: bool, storage: bool, mine: bool, as_of: str | None) -> WorkspaceStatus:
    """Show what was learned of late and is used most, what waits for a commit, and what needs a look.

    JSON has all of it. Private memory is what you type to an agent and what its sessions teach: hooks keep it outside
    the repository, readable by you alone. Nothing of it reaches others unless you say 'memfs share'. All branches and
    worktrees of a repository have one together; a copy, a fork or a fresh clone begins with none, see 'memfs init'.
    """
    if mine:
        return _private(ctx)
    if as_of is not None:
        return _past(ctx, as_of)
    with opened(ctx) as workspace, workspace.store.looking_once():  # what follows would look at every file again
        now = None if storage else _now(workspace)
        problems = [
            *(workspace.checker.item_problems() if workspace.store.problems() else ()),  # which takes much to import
            *mounts_problems(workspace),
            *hook_problems(workspace),
            *branch_problems(workspace.repository, workspace.parts.policy.agent),
        ]
        counts = weights = None
        if storage or all_ or wants_json(ctx):
            counts = _counts(tally(workspace.store, workspace.parts))
            weights = _weights(workspace)
        problems += filter(None, [workspace.quota.problem])
        folder = private_folder(workspace)
        return WorkspaceStatus(
            items=workspace.store.count(),
            now=now,
            counts=counts,
            weights=weights,
            private=private_memory(private.project_at(workspace.root), folder) if folder else None,
            problems=tuple(problems),
            all=all_,
        )


def _private(ctx: click.Context) -> WorkspaceStatus:
    """Private memory alone, for which no workspace is needed.

    Raises:
        Unclear: there is none yet.
    """
    project = private.project_at(ctx.ensure_object(Invocation).workspace or ".")
    found = private_memory(project, private.find(project))
    if found.folder is None and not wants_json(ctx):
        hint = "hooks make it: memfs agent install claude-code"
        if found.clones:
            hint += f"; 'memfs init --join-private' uses that of {found.clones[0].home}"
        raise Unclear("there is no private memory of this project yet", hint)
    return WorkspaceStatus(items=found.items, private=found, only_private=True)


def _past(ctx: click.Context, revision: str) -> WorkspaceStatus:
    """What there was at a revision: items and their bytes. Uses, history and index have no past."""
    from memfs.team.asof import past_tally

    with opened(ctx) as workspace:
        past = past_at(workspace, revision, quarantined=True)
        found, problems = past_tally(past), tuple(past.store.problems())
        counts = _counts(found, past=True)
        return WorkspaceStatus(items=found.items, counts=counts, problems=problems, as_of=revision_of(past))


def _now(workspace: Workspace) -> PresentState:
    store = workspace.store
    store.writing.bring_home()
    store.notice_commits(thorough=True)
    with store.change_detector.everywhere():
        learned, edits = store.edit_finder.look()  # brings the index in step first
    pending, head = store.pending(), workspace.repository.head()
    return PresentState(
        workspace=workspace.root,
        **knowledge_facts(workspace),
        head=head.commit,
        branch=head.branch or None,
        pending_commits=pending.count,
        pending_reason=pending.reason,
        pending=tuple(pending.paths),
        hand_edits=tuple(edits),
        index={"engine": workspace.settings.index.engine, "fresh": not (learned and store.refresh())},
        watch=watch_facts(workspace.repository.state),
        trust=status_facts(workspace),
        storage=storage_facts(workspace),
        **keeping_facts(workspace),
        semantic=semantic_status(workspace),
        **states_facts(workspace),
        **checkpoint_facts(workspace),
        **delivery_facts(workspace, store.count()),
        **hooks_facts(workspace),
        **mounts_facts(workspace),
        **merges_facts(workspace),
        invalid=frozenset(workspace.checker.invalid_edits()) if edits else frozenset(),
    )


def _counts(found: MemoryTally, *, past: bool = False) -> ItemCounts:
    weight = ContentBytes(found.content_bytes)
    if not past:
        weight = ContentBytes(found.content_bytes, found.repository_bytes, found.index_bytes)
    return ItemCounts(found.types, found.layers, weight, found.type_bytes)


def _weights(workspace: Workspace) -> StorageUse:
    from memfs.state.retention import growth_of

    measured = workspace.quota.measure(history=True)
    limits, uses = workspace.quota.limits().bytes, workspace.usage.all()
    growth = growth_of(workspace.parts, workspace.states.archives)
    return StorageUse(
        usage={"items": len(uses), "uses": sum(use.count for use in uses.values())},
        areas={name: AreaWeight(weight, limits.get(name)) for name, weight in measured.areas.items()},
        total=AreaWeight(measured.total, limits.get("total")),
        free=measured.free,
        iterations=tuple(
            IterationWeight(row.number, row.documents, row.bytes, row.archived) for row in growth.iterations
        ),
        bytes_per_iteration=round(growth.mean),
        growth_of_an_iteration=round(growth.slope),
        uncounted=workspace.usage.problem,
    )
