"""``status``: what a workspace knows, what waits, what is wrong, its size, and where private memory is."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

from memfs import private, trust
from memfs.admin.quota import sentence, tally
from memfs.admin.store_builder import has_driver, has_states
from memfs.admin.store_builder import problems as branch_problems
from memfs.dataclass import NamedTuple, dataclass, field
from memfs.doors.cli import output
from memfs.doors.cli.command import Unclear, invocation, opened, remark, verb
from memfs.doors.cli.declare import click
from memfs.doors.cli.hook import hook_problems, waiting_sessions
from memfs.errors import MemfsError
from memfs.fs import io
from memfs.model import Layer, Problem, Query
from memfs.model.state_paths import BACKUPS, WATCHERS
from memfs.recall.conflict_notes import OVER, contradicted
from memfs.startup import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from memfs.admin.backup import BackupState
    from memfs.admin.quota import MemoryTally
    from memfs.context.mounts import MountState
    from memfs.doors.cli.private import PrivateMemory
    from memfs.doors.cli.semantic import SemanticStatus
    from memfs.model import MemoryItem
    from memfs.state.archives import IterationUse
    from memfs.state.checkpoints import CheckpointStatus
    from memfs.store.parts import Storage
    from memfs.workspace import Workspace


_FEW_ITEMS = 1_000
"""Conflicts are counted where there are no more items than that: files are read for it."""
_DAYS = 7
_READ = 50
_FEW = 3
_LASTING = frozenset({Layer.EPISODIC.value, Layer.SEMANTIC.value})


# -- the parts ----------------------------------------------------------------------------------------------------
class StatusPart(NamedTuple):
    """A part of what is reported of a workspace: a key of JSON with its value, and rows for people.

    What is ``usual`` has rows only where all of them are asked for.
    """

    key: str
    value: Any
    rows: Mapping[str, str]
    usual: bool = False


def _knowledge(workspace: Workspace) -> StatusPart:
    """What lasts of the last days, who wrote it, and which of it contradicts something."""
    since = workspace.parts.clock() - timedelta(days=_DAYS)
    learned = list(workspace.store.every(Query(since=since, layers=_LASTING)))
    loaded = [one.item for found in learned[:_READ] if (one := workspace.store.load(found)) is not None]
    disputed = [item for item in loaded if contradicted(item) and item.status.strip() not in OVER]
    by = dict(Counter(one.agent or "people" for one in learned).most_common())
    newest = [_named(item) for item in loaded[:_FEW]]
    who = ", ".join(f"{number:,} by {name}" for name, number in by.items())
    rows = {
        "learned": f"{len(learned):,} in the last {_DAYS} days" + (f": {who}" if who else ""),
        "newest": "; ".join(one["text"] for one in newest),
    }
    if disputed:
        texts = "; ".join(_named(item)["text"] for item in disputed[:_FEW])
        named = "them" if len(disputed) > 1 else "it"
        rows["disputed"] = f"{texts}; 'memfs team conflicts' names {named} and what they deny"
    value = {
        "days": _DAYS,
        "learned": len(learned),
        "by": by,
        "newest": newest,
        "contradicting": [{**_named(item), "contradicts": list(contradicted(item))} for item in disputed],
    }
    return StatusPart("knowledge", value, rows)


def _named(item: MemoryItem) -> dict[str, Any]:
    return {"id": item.id, "text": output.one_line(item.title or item.content, 60)}


def _index(workspace: Workspace, fresh: bool) -> StatusPart:
    engine = workspace.settings.index.engine
    text = f"{engine}, {'fresh' if fresh else 'stale'}"
    return StatusPart("index", {"engine": engine, "fresh": fresh}, {"index": text}, usual=fresh)


def _watch(workspace: Workspace, all_: bool) -> StatusPart:
    if not all_ and not io.listed(workspace.repository.state / WATCHERS):
        return StatusPart("watch", {}, {})
    from memfs.watch import watch_facts  # few workspaces are watched

    found = watch_facts(workspace.repository.state)
    return StatusPart("watch", found, {"watch": found["state"]}, usual=not found["state"].startswith("degraded"))


def _resident(workspace: Workspace) -> StatusPart:
    from memfs.doors.resident.place import resident_of  # which can end one, too

    process = resident_of(workspace.root)
    text = f"up, pid {process}" if process else "off"
    return StatusPart("resident", {"pid": process or None}, {"resident": text}, usual=not process)


def _trust(workspace: Workspace) -> StatusPart:
    """Whether what the workspace's files ask for counts, and what that is."""
    standing = trust.status_of(workspace.root)
    command = None if standing.trusted or not standing.wants else trust.command(standing.root)
    asked = ", ".join(want.subject for want in standing.wants)  # of a list the names that need trust: the others count
    value = {
        "trusted": standing.trusted,
        "reason": standing.reason or None,
        "enables": [want.key for want in standing.wants],
        "subjects": [want.subject for want in standing.wants],
        "command": command,
    }
    text = f"{asked} enabled" if standing.trusted else f"{asked} ignored: {standing.reason}; look, then: {command}"
    return StatusPart("trust", value, {"trust": text if asked else ""})


def _semantic(workspace: Workspace) -> StatusPart:
    if workspace.words_only:
        return StatusPart("semantic", None, {})
    from memfs.doors.cli.semantic import how_far, semantic_status  # which can switch it on, too

    found = semantic_status(workspace)
    return StatusPart("semantic", found, {"semantic": how_far(found)} if found else {})


def _hooks(workspace: Workspace) -> StatusPart:
    waiting = waiting_sessions(workspace)
    text = f"events of {output.count(waiting, 'session')} wait; the next answer or session turns them into memories"
    return StatusPart("hooks", {"waiting": waiting}, {"hooks": text if waiting else ""})


def _mounts(workspace: Workspace) -> StatusPart:
    """Each mount; private memory has its own row where it can be read."""
    if not workspace.settings.mounts:
        return StatusPart("mounts", None, {})
    states, texts = {}, []
    for one in workspace.sources.mounts.states():
        if one.name == private.NAME and not one.problem and one.folder is not None and private.holds(one.folder):
            continue
        states[one.name] = one
        unread = f", {output.count(one.unread, 'file')} invalid" if one.unread else ""
        held = f"{output.count(one.items or 0, 'item')}{unread}, {one.path}"
        texts.append(f"{one.name} ({'left out' if one.problem else held})")
    return StatusPart("mounts", states, {"mounts": ", ".join(texts)})


def _merges(workspace: Workspace) -> StatusPart:
    """Conflicts that wait for a decision, and whether git merges memory files field by field here."""
    few = workspace.store.count() <= _FEW_ITEMS
    conflicts, waiting, driver = len(workspace.conflicts.list()) if few else None, 0, has_driver(workspace.repository)
    with suppress(MemfsError):  # git's files cannot be read: 'check' says why
        waiting = workspace.teams.waiting()
    notes = [f"{output.count(waiting, 'decision')} waiting ('memfs team conflicts')"] if waiting else []
    notes += [] if driver else ["plain text only; 'memfs init' installs the merge driver"]
    rows = {"merges": "; ".join(notes)}
    if conflicts:
        rows["conflicts"] = f"{conflicts:,} to decide ('memfs team conflicts')"
    return StatusPart("merges", {"conflicts": conflicts, "waiting": waiting, "driver": driver}, rows)


def _states(workspace: Workspace) -> Iterator[StatusPart]:
    """Iterations and checkpoints; a workspace without any does not load the machinery for them."""
    if not has_states(workspace.parts.seen):
        return
    reading, late = workspace.states.reading, workspace.states.checkpoints.status()
    iterations, current = reading.iterations(), reading.open_iteration()
    archived, documents = sum(bool(one.archive) for one in iterations), sum(reading.index.counts().values())
    value: dict[str, Any] = {
        "iterations": len(iterations), "archived": archived, "open": current, "documents": documents,
    }  # fmt: skip
    text = f"{len(iterations):,}" + (f", {archived} archived" if archived else "")
    text += f", number {current} is open" if current is not None else ", none is open"
    yield StatusPart("states", value, {"iterations": f"{text}; {output.count(documents, 'document')}"})
    parts = [f"{output.count(late.count, 'checkpoint')}, the last {late.last}" if late.last else "none yet"]
    if late.damaged:
        parts.append(f"{late.damaged} cannot be used: 'memfs state checkpoint recover' says why")
    if late.due:
        parts.append(f"one is due by {late.due}")
    if late.update_late:
        parts.append(f"no state update for {late.update_late} s, update_interval_seconds expects one")
    usual = not (late.damaged or late.due or late.update_late)
    yield StatusPart("checkpoints", late, {"checkpoint": "; ".join(parts)}, usual)


def _storage(workspace: Workspace) -> StatusPart:
    found = workspace.store.storage()
    free = "" if found.free is None else f"{found.free / 1e9:,.1f} GB free"
    words = [f"degraded: {found.reason}" if found.reason else f"ok, {free}" if free else "ok"]
    if found.waiting:
        words.append(f"{output.count(found.waiting, 'write')} in {found.secondary}")
    elif found.secondary:
        words.append(f"secondary {found.secondary}")
    if found.secondary_reason:
        words.append(f"which takes no writes: {found.secondary_reason}")
    amiss = found.reason or found.waiting or found.secondary_reason
    return StatusPart("storage", found, {"storage": "; ".join(words)}, not amiss)


def _quota(workspace: Workspace) -> StatusPart:
    found = tuple(standing.facts() for standing in workspace.quota.statuses())
    text = "; ".join(map(sentence, found))
    return StatusPart("quota", found, {"quota": text}, usual=not any(one["level"] for one in found))


def _backup(workspace: Workspace, all_: bool) -> StatusPart:
    known = workspace.settings.backup.interval_hours or os.path.lexists(workspace.repository.state / BACKUPS)
    if not (all_ or known):
        return StatusPart("backup", None, {})
    state = workspace.backups.state()
    made = "none yet" if state.age is None else f"{_age(state.age)} ago, {state.path}"
    overdue = f"; overdue, one is expected every {state.interval_hours:g} h" if state.due else ""
    failed = f"; the last try failed: {state.error}" if state.error else ""
    return StatusPart("backup", state, {"backup": made + overdue + failed}, usual=not (state.due or state.error))


def _age(seconds: int) -> str:
    for length, word in ((86400, "day"), (3600, "hour"), (60, "minute")):
        if seconds >= length:
            return output.count(seconds // length, word)
    return output.count(max(0, seconds), "second")


# -- what it prints -----------------------------------------------------------------------------------------------
_TO_COMMIT = "to commit"
_LAST = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class PresentState:
    """How a workspace is now.

    Attributes:
        workspace: its folder.
        knowledge: what was learned in the last days and by whom, and what contradicts something.
        head: the newest commit; null where there is none.
        branch: the branch that is checked out; null where none is.
        pending_commits: how many changes wait for their commit.
        pending_reason: why they wait.
        pending: the files that wait.
        hand_edits: the files that a person changed.
        index: the search engine, and whether the index was up to date.
        watch: which processes follow changes of the files.
        resident: which process answers commands; its pid is null where none does.
        trust: what the workspace's files ask for, and whether that counts.
        storage: whether the disk takes writes, how much is free, and what the secondary location holds.
        quota: how much of each quota is used.
        backup: when the last one was made, and whether one is overdue.
        semantic: how far search by meaning is, where it is on.
        states: iterations and documents of a multi-agent system, where there are any.
        checkpoints: the newest checkpoint, and what is wrong with checkpoints, where there is such a system.
        hooks: how many sessions have events that are no memory yet.
        mounts: each mounted workspace.
        merges: how many contradictions, and decisions of merges, wait; whether git joins memory field by field.
        invalid: the edits that are invalid, so that nothing commits them.
        new: the edits that are files which no commit has, and which memfs did not write.
        rows: what is said of all that in a line each.
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
    resident: Mapping[str, Any]
    trust: Mapping[str, Any]
    storage: Storage
    quota: tuple[Mapping[str, Any], ...]
    backup: BackupState
    semantic: SemanticStatus | None = field(default=None, metadata=output.OMIT)
    states: Mapping[str, Any] | None = field(default=None, metadata=output.OMIT)
    checkpoints: CheckpointStatus | None = field(default=None, metadata=output.OMIT)
    hooks: Mapping[str, Any]
    mounts: Mapping[str, MountState] | None = field(default=None, metadata=output.OMIT)
    merges: Mapping[str, Any]
    invalid: frozenset[str] = field(default=frozenset(), metadata=output.TEXT_ONLY)
    new: frozenset[str] = field(default=frozenset(), metadata=output.TEXT_ONLY)
    rows: Mapping[str, str] = field(metadata=output.TEXT_ONLY)


@dataclass(frozen=True, slots=True)
class StorageUse:
    """Items by type and layer, what everything weighs, and how often memories were used.

    Attributes:
        tally: how many items there are, and what they weigh; of which these fields are inlined.
        bytes: what the files of items (``content``), git (``repository``) and the search index (``index``) weigh.
        usage: how many items were recalled (``items``), and how often (``uses``).
        areas: what each area weighs (``bytes``), beside its ``quota``; null where it has none.
        total: all of them, beside the quota of the workspace.
        free: bytes that are free on the disk; null where the system does not say.
        iterations: what each iteration adds.
        bytes_per_iteration: the mean of that.
        growth_of_an_iteration: by how much each iteration is larger than the one before.
    """

    tally: MemoryTally = field(metadata=output.merge("types layers bytes_by_type=type_bytes"))
    bytes: Mapping[str, int]
    usage: Mapping[str, int]
    areas: Mapping[str, Mapping[str, int | None]]
    total: Mapping[str, int | None]
    free: int | None
    iterations: tuple[IterationUse, ...]
    bytes_per_iteration: int
    growth_of_an_iteration: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkspaceStatus:
    """The state of a workspace.

    Attributes:
        items: how many memories there are.
        now: how it is now; its fields are inlined.
        weights: items by type and layer, and what everything weighs; its fields are inlined.
        private: your private memory of this project; null where there is none.
        problems: what is wrong; 'memfs check' looks for more.
    """

    items: int = 0
    now: PresentState | None = field(default=None, metadata=output.MERGE)
    weights: StorageUse | None = field(default=None, metadata=output.MERGE)
    private: PrivateMemory | None = None
    problems: tuple[Problem, ...] = ()


def _text(found: WorkspaceStatus, mine: bool) -> output.Text:
    if mine:
        assert found.private is not None  # else there is no result
        yield str(found.private.folder)
        return
    if found.now is not None:
        for name, value in found.now.rows.items():
            yield from output.facts({name: value})
            if name == _TO_COMMIT:
                yield from _waiting(found.now)
    if found.weights is not None:
        yield from output.document(found.weights)
    yield from found.problems


def _waiting(now: PresentState) -> output.Text:
    waiting = [path for path in now.pending if path not in now.hand_edits]
    yield from output.listed(f"{'':9}{output.styled('waiting', fg='yellow')}", waiting, 20)
    for path in now.hand_edits:
        wrong = "  invalid: 'memfs commit' skips it" if path in now.invalid else ""
        word = "new" if path in now.new else "edited" if (now.workspace / path).exists() else "deleted"
        yield f"{'':10}{output.styled(f'{word:>7}', fg='yellow')} {path}{wrong}"


@verb("status", text=_text)
@click.option("--all", "all_", is_flag=True, help="Show every row, and how much room everything takes.")
@click.option("--storage", is_flag=True, help="Show only the room that items, areas and iterations take, and quotas.")
@click.option("--private", "mine", is_flag=True, help="Print only the folder of your private memory of this project.")
def status(all_: bool, storage: bool, mine: bool) -> WorkspaceStatus:
    """Show what was learned recently, what waits for a commit, and what needs attention.

    JSON has all of it. Private memory is what you type to an agent and what its sessions teach: hooks keep it outside
    the repository, readable by you alone. Nothing of it reaches others unless you say 'memfs share'. All branches and
    worktrees of a repository share it; a copy, fork or fresh clone starts without it, see 'memfs init'.

    Examples:
        memfs status
        memfs status --all
        memfs status --storage
        memfs -C ~/project status --json
        memfs -C "$(memfs status --private)" list
    """
    if mine:
        return _private()
    with opened() as workspace, workspace.store.scan_once():  # what follows would look at every file again
        mine_here = None
        if private.NAME in workspace.settings.mounts:
            from memfs.doors.cli.private import private_folder, private_memory  # where there is some

            folder = private_folder(workspace)
            mine_here = private_memory(private.project_at(workspace.root), folder) if folder else None
        now = None if storage else _now(workspace, mine_here, all_)
        problems = [
            *(workspace.checker.item_problems() if workspace.store.problems() else ()),  # which takes much to import
            *(workspace.sources.mounts.problems() if workspace.settings.mounts else ()),
            *hook_problems(workspace),
            *branch_problems(workspace.repository),
        ]
        weights = _weights(workspace) if storage or all_ or invocation().json else None
        problems += filter(None, [workspace.quota.problem])
        return WorkspaceStatus(
            items=workspace.store.count(),
            now=now,
            weights=weights,
            private=mine_here,
            problems=tuple(problems),
        )


def _private() -> WorkspaceStatus:
    """Private memory alone, for which no workspace is needed.

    Raises:
        Unclear: there is none yet.
    """
    from memfs.doors.cli.private import private_memory  # as above

    project = private.project_at(invocation().workspace or ".")
    found = private_memory(project, private.find(project))
    if found.folder is None and not invocation().json:
        hint = "hooks make it: memfs agent install claude-code"
        if found.clones:
            hint += f"; 'memfs init --join-private' uses that of {found.clones[0].home}"
        raise Unclear("there is no private memory of this project yet", hint)
    found.report()
    return WorkspaceStatus(items=found.items, private=found)


def _now(workspace: Workspace, mine: PrivateMemory | None, all_: bool) -> PresentState:
    """How a workspace is now; rows of what is usual only with ``all_``."""
    store = workspace.store
    store.fail_back()
    store.notice_commits(thorough=True)
    with store.change_detector.everywhere():
        learned, edits = store.edit_finder.look()  # brings the index in step first
    pending, head, detailed = store.pending(), workspace.repository.head(), all_ or invocation().json
    at = f" at {head.commit[:12]}" if head.commit else ", no commits yet"
    told = ((pending.paths, "file"), (edits, "uncommitted hand edit"))
    to_commit = ", ".join(output.count(len(paths), word) for paths, word in told if paths) or "nothing"
    if reason := pending.reason or (workspace.repository.busy() if edits else ""):
        to_commit += f" ({reason})"
    parts = (
        _knowledge(workspace),
        StatusPart("branch", head.branch or None, {"branch": f"{head.branch or 'detached HEAD'}{at}"}),
        StatusPart("hand_edits", tuple(sorted(edits)), {_TO_COMMIT: to_commit}),
        _index(workspace, fresh=not (learned and store.index_sync.refresh(learned.paths()))),
        _watch(workspace, detailed),
        _resident(workspace),
        _trust(workspace),
        _semantic(workspace),
        _hooks(workspace),
        _mounts(workspace),
        StatusPart("", None, {"private": mine.held()} if mine is not None else {}),
        _merges(workspace),
        *_states(workspace),
        _storage(workspace),
        _quota(workspace),
        _backup(workspace, detailed),
    )
    rows = {name: text for part in parts if all_ or not part.usual for name, text in part.rows.items()}
    return PresentState(
        workspace=workspace.root,
        head=head.commit,
        pending_commits=pending.count,
        pending_reason=pending.reason,
        pending=tuple(pending.paths),
        invalid=frozenset(workspace.checker.invalid_edits(edits)) if edits else frozenset(),
        new=frozenset(path for path in {*edits} - {*pending.paths} if workspace.repository.head_blob(path) is None),
        rows={"workspace": str(workspace.root), "items": f"{store.count():,}", **rows},
        **{part.key: part.value for part in parts if part.key},
    )


def _weights(workspace: Workspace) -> StorageUse:
    from memfs.state.archives import growth_of

    found, measured = tally(workspace.store, workspace.parts), workspace.quota.measure()
    limits, uses = workspace.quota.limits().bytes, workspace.usage.all()
    remark(workspace.usage.problem)
    iterations, slope = growth_of(workspace.parts, workspace.states.archives)
    return StorageUse(
        tally=found,
        bytes={"content": found.content_bytes, "repository": found.repository_bytes, "index": found.index_bytes},
        usage={"items": len(uses), "uses": sum(use.count for use in uses.values())},
        areas={name: {"bytes": weight, "quota": limits.get(name)} for name, weight in measured.areas.items()},
        total={"bytes": measured.total, "quota": limits.get("total")},
        free=measured.free,
        iterations=iterations,
        bytes_per_iteration=round(sum(one.bytes for one in iterations) / len(iterations)) if iterations else 0,
        growth_of_an_iteration=round(slope),
    )
