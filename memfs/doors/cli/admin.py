"""The verbs of ``memfs admin``: care of a whole workspace."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memfs import trust as workspace_trust
from memfs.admin import store_builder
from memfs.admin.store_builder import EDITOR_FOLDER
from memfs.dataclass import dataclass, field, replace
from memfs.doors.cli import output
from memfs.doors.cli.command import Unclear, complete_ids, invocation, opened, remark, verb
from memfs.doors.cli.declare import click
from memfs.doors.cli.options import AT_ONCE, as_of, confirm_rewrite, is_path, land, reference, state_at
from memfs.doors.cli.parser import Actions
from memfs.errors import EraseRefused, MemfsError, WorkspaceNotFound
from memfs.fs.workspace_location import find_workspace
from memfs.git.layout import discover
from memfs.model.time import parse_when, utc_now

if TYPE_CHECKING:
    from memfs.admin.erase import CutPlan, ErasePlan, EraseResult
    from memfs.admin.prune import CleanupStep, PruneResult
    from memfs.state.archives import Period, RetentionResult, UnpackResult
    from memfs.trust import PluginTrust
    from memfs.watch import NoticedChange
    from memfs.workspace import Workspace


# -- gc -----------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class GcReport:
    """What was done.

    Attributes:
        steps: what made room: a sentence, the bytes, and why it failed.
        bytes: how much room that is.
        learned_from: how many new memories were looked through.
        folded: whether fresh items were folded into the index; not where another process is at it.
        embedded: how many memories were embedded.
        backed_up: whether a backup was due, and made.
    """

    steps: tuple[CleanupStep, ...]
    bytes: int
    learned_from: int = 0
    folded: bool = False
    embedded: int = 0
    backed_up: bool = False


def _gc_text(report: GcReport) -> output.Text:
    named = ((step, f": {step.error}" if step.error else "") for step in report.steps)
    yield from (f"{output.size(step.bytes):>16}  {step.what}{error}" for step, error in named)
    if not report.steps:
        yield "Nothing to clean up"
    if report.backed_up:
        yield "Made the backup that was due"


@verb("gc", text=_gc_text, exit_code=lambda report: any(step.error for step in report.steps))
def gc(workspace: Workspace) -> GcReport:
    """Make room without losing anything: leftovers, duplicate contents, unpacked git objects.

    Also packs the history of a repository that memfs joined, writes the commit-graph that makes log quick, merges new
    items into the index, learns from what is new, embeds new memories where search by meaning is on, and makes the
    backup that is due. Room is made automatically when a quota fills up; long-lived processes do the rest.

    Exit code 1: a step failed; the others were done.

    Examples:
        memfs admin gc
    """
    from memfs.admin.prune import CleanupStep
    from memfs.doors.cli.semantic import embed

    steps, care = list(workspace.cleaner.clean()), dict[str, Any]()
    try:
        learned = workspace.learner.run()
        land(workspace)
        if freed := workspace.history.maintain():
            steps.append(CleanupStep(what="packed the history", bytes=freed))
        care = {"learned_from": learned.read, "folded": workspace.store.fold()}
        care |= {"embedded": embed(workspace, workspace.meaning.current()), "backed_up": workspace.backups.keep_up()}
    except MemfsError as error:
        what = "look after history, index and backups"
        steps.append(CleanupStep(what=what, bytes=0, error=str(error)))
    return GcReport(tuple(steps), sum(step.bytes for step in steps), **care)


# -- cut ----------------------------------------------------------------------------------------------------------
def _cut_text(plan: CutPlan) -> output.Text:
    if plan.refused and not plan.commit:
        return (f"Nothing is cut: {plan.refused}",)
    return output.document(plan) if plan.commit or plan.ended else (f"No history before {plan.before.date()}",)


@verb("cut", text=_cut_text, exit_code=lambda plan: bool(plan.refused))
@click.argument("before", metavar="DATE")
@click.option("--export", type=click.Path(path_type=Path), metavar="FILE", help="Where what is cut goes: a git bundle.")
@click.option("-n", "--dry-run", is_flag=True, help="Only say what would be cut.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
def cut(before: str, export: Path | None, dry_run: bool, yes: bool) -> CutPlan:
    """Cut off the history before DATE, after writing it to a file: what is there at the cut becomes the first commit.

    No memory is lost by it; older versions, and what had been forgotten by then, are afterwards in the file alone,
    which 'git clone FILE old' turns into a repository. Commits since then get new ids and lose their signatures. Only
    for a repository that memfs made; remotes, clones and backups keep the old history.

    Exit code 1: it is refused, or a dry run says that it would be.

    Examples:
        memfs admin cut 2025-01-01 --dry-run
        memfs admin cut '2 years ago' --export ~/memory-until-2024.bundle
    """
    try:
        moment = parse_when(before, utc_now())
    except (ValueError, OverflowError):
        raise Unclear(f"{before!r} is not a date", "write 2025-01-01, or an age such as '2 years ago'") from None
    with opened() as workspace:
        if dry_run or not yes or workspace.history_cut.ended:  # which may be all that was asked for
            plan = workspace.history_cut.plan(moment)
            if dry_run or not plan.commit:
                return plan
            if not plan.refused and not yes:
                confirm_rewrite("Cut it?", output.document(plan))
        if export is None:
            hint = "add --export FILE, outside of the workspace"
            raise EraseRefused("what is cut has to be kept somewhere", hint=hint)
        return workspace.history_cut.cut(moment, export.absolute())


# -- reindex ------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class IndexReport:
    """What was indexed.

    Attributes:
        items: how many items.
        engine: the search engine that keeps the index.
        seconds: how long it took.
        state_documents: how many documents of a multi-agent system; left out where there are none.
    """

    items: int
    engine: str
    seconds: float
    state_documents: int | None = field(default=None, metadata=output.OMIT)


def _indexed_text(done: IndexReport) -> output.Text:
    states = f" and {output.count(done.state_documents, 'state document')}" if done.state_documents else ""
    yield f"Indexed {output.count(done.items, 'item')}{states} for {done.engine} in {done.seconds:.1f} s"


@verb("reindex", text=_indexed_text)
def reindex(workspace: Workspace) -> IndexReport:
    """Rebuild the search index from the files. Nothing is lost by it: the index is only a cache.

    Examples:
        memfs admin reindex
    """
    from memfs.admin.store_builder import has_states

    began = time.monotonic()
    with output.progress("Indexing") as step:
        items = workspace.store.reindex(progress=step)
    states = workspace.states.reading.reindex() if has_states(workspace.parts.seen) else None
    remark(output.problems_note(len(workspace.store.problems())))
    return IndexReport(items, workspace.settings.index.engine, round(time.monotonic() - began, 3), states)


# -- erase --------------------------------------------------------------------------------------------------------
_PLAN = "paths copies versions commits quotes shared unreachable backups refused"


@dataclass(frozen=True, slots=True)
class Erasure:
    """What was erased, or would be.

    Attributes:
        id: what was named.
        plan: what goes and what stays; its fields are inlined.
        done: what was done, with the proof; its fields are inlined, not with ``--dry-run``.
    """

    id: str
    plan: ErasePlan = field(metadata=output.merge(_PLAN))
    done: EraseResult | None = field(metadata=output.merge("head backups_left proof"))


def _erase_code(erasure: Erasure) -> bool:
    """1 where a trace is left, or where it would be refused now."""
    done = erasure.done
    return bool(erasure.plan.refused if done is None else done.proof.hits or done.backups_left)


def _erase_text(erasure: Erasure, dry_run: bool) -> output.Text:
    plan, done = erasure.plan, erasure.done
    proof = ""
    if done is not None and not done.proof.hits:
        objects, files = output.count(done.proof.objects, "object"), output.count(done.proof.files, "file")
        proof = f"; no trace in {objects} of git and {files}"
    versions, commits = output.count(plan.versions, "version"), output.count(plan.commits, "commit")
    yield f"{'Would erase' if done is None else 'Erased'} {erasure.id}: {versions}, from {commits}{proof}"
    yield from output.listed("erases" if done is None else "erased", [*plan.paths, *plan.copies])
    yield from output.listed("keeps ", [f"{path}, which quotes it" for path in (done.proof if done else plan).quotes])
    yield from output.listed("left  ", [*done.proof.hits, *map(str, done.backups_left)] if done else ())
    yield from output.listed("not erased from:", plan.unreachable)
    if done is None:
        yield from output.listed("backup from before:", map(str, plan.backups))
        yield from map(output.Note, [plan.refused] * bool(plan.refused) + ["a dry run: nothing was changed"] * dry_run)


@verb("erase", text=_erase_text, exit_code=_erase_code)
@click.argument("id", metavar="ID|PATH", shell_complete=complete_ids)
@click.option("-n", "--dry-run", is_flag=True, help="Only say what would be erased and rewritten.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@click.option(
    "--rewrite-shared-history", is_flag=True, help="Also in a repository that memfs did not make: others rely on it."
)
def erase(workspace: Workspace, id: str, dry_run: bool, yes: bool, rewrite_shared_history: bool) -> Erasure:
    """Erase an item for good: from the files, from every commit that ever held it, and from memfs's own stores.

    This rewrites history: commits since the item's first one get new ids and lose their signatures, and git's notes
    stay under the old ids. There is no undo.
    Exit code 1 when a trace is left that memfs could not remove, or a dry run says that it would be refused now.

    Examples:
        memfs admin erase old-password-4k8m2p --dry-run
        memfs admin erase old-password-4k8m2p --yes
        memfs admin erase ContextMemory/memories/knowledge/2026-03/note.yaml --rewrite-shared-history
    """
    ended = workspace.eraser.ended  # by the opening of the workspace, just now
    done = ended if ended is not None and ended.plan.reference in (id, id.rpartition("/")[2]) else None
    if done is None:
        named = reference(workspace, id)
        if dry_run or not yes:
            plan = workspace.eraser.plan(named, is_path(named))
            if plan.shared and not (plan.refused or rewrite_shared_history):
                plan = replace(plan, refused="others may rely on this history: this requires --rewrite-shared-history")
            planned = Erasure(plan.reference, plan, None)
            if dry_run:
                return planned
            confirm_rewrite("Erase it?", _erase_text(planned, dry_run=False))
        done = workspace.eraser.erase(named, is_path(named), rewrite_shared=rewrite_shared_history)
    remark("backups that are left may still hold it: delete them yourself" if done.backups_left else "")
    return Erasure(done.plan.reference, done.plan, done)


# -- prune --------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class PruneReport:
    """What was pruned.

    Attributes:
        away: what went, weakest first, and where to; its fields are inlined.
        revision: the commit; null where nothing changed or it waits.
    """

    away: PruneResult = field(metadata=output.merge("pruned=items action"))
    revision: str | None = None


@verb("prune", text=lambda report: output.document(report) if report.away.items else ())
@click.option("-n", "--dry-run", is_flag=True, help="Only say what would go.")
def prune(workspace: Workspace, dry_run: bool) -> PruneReport:
    """Move weak items into the archive: those beyond the limit, and those with almost no weight.

    They are in ContextMemory/archive/pruned then, where recall does not look. One commit says what went and why:
    'memfs undo --commit REV' takes it back, 'memfs restore ID' brings one item back. Pinned items and
    conventions of people stay.

    Examples:
        memfs admin prune --dry-run
        memfs admin prune
    """
    head = workspace.repository.head().commit
    result = workspace.pruner.prune(dry_run)
    if result.items and not dry_run:
        land(workspace)
    remark("nothing is due" if not result.items else "a dry run: nothing was changed" if dry_run else "")
    revision = workspace.repository.head().commit
    return PruneReport(result, revision if revision != head else None)


# -- archive run --------------------------------------------------------------------------------------------------
@verb("run", text=output.document, exit_code=lambda report: bool(report.archived.reason or report.archived.left))
@click.option("-n", "--dry-run", is_flag=True, help="Say what would be archived and deleted, and do nothing.")
@click.option("--older-than", "days", type=click.IntRange(min=0), metavar="DAYS", help="Instead of active_days.")
def _archive_run(workspace: Workspace, dry_run: bool, days: int | None) -> RetentionResult:
    """Pack iterations that were closed long ago, as configuration/retention_policy.json says.

    Iterations closed for active_days go into a verified archive and leave the tree; archives older than
    delete.archives_after_days are deleted, if that is set.

    Exit code 1: something stays in the tree that was to go.

    Examples:
        memfs admin archive run --dry-run
        memfs admin archive run --older-than 7
    """
    return workspace.states.archiver.run(dry_run, active_days=days)


# -- archive list -------------------------------------------------------------------------------------------------
@verb("list", text=lambda rows: output.document(rows) if rows else ("No archives yet",), key="archives")
@as_of
def _archive_list(workspace: Workspace, as_of: str | None) -> tuple[Period, ...]:
    """List the archives with their iterations and sizes.

    Examples:
        memfs admin archive list
        memfs admin archive list --as-of HEAD~3
    """
    return tuple(state_at(workspace, as_of).archives.periods())


# -- archive unpack -----------------------------------------------------------------------------------------------
@verb("unpack", text=output.document, key="unpacked")
@click.argument("numbers", nargs=-1, required=True, type=click.IntRange(min=0), metavar="N...")
def _archive_unpack(workspace: Workspace, numbers: tuple[int, ...]) -> tuple[UnpackResult, ...]:
    """Bring iterations back into the tree, as a commit; what is in the tree already is newer and stays.

    Examples:
        memfs admin archive unpack 3
    """
    return tuple(workspace.states.archiver.unpack(number) for number in numbers)


archive = Actions(
    "archive",
    "Pack iterations that were closed long ago; they stay readable.",
    _archive_run,
    _archive_list,
    _archive_unpack,
)


# -- trust --------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class TrustReport:
    """Whether this user trusts a workspace, and what its files would enable.

    Attributes:
        workspace: its folder.
        trusted: whether what it would enable counts.
        reason: why not; null where it does.
        changed: whether this command recorded something.
        enables: the settings that ask for trust: file, line, dotted key and value.
        other_owners: numbers of the users who own a part of the repository.
        lines: what it would enable, and what was done, or the present state.
    """

    workspace: Path
    trusted: bool
    reason: str | None
    changed: bool
    enables: tuple[PluginTrust, ...]
    other_owners: tuple[int, ...]
    lines: tuple[str, ...] = field(metadata=output.TEXT_ONLY)


def _wants(enables: tuple[PluginTrust, ...], owners: tuple[int, ...], elsewhere: Path | None) -> Iterator[str]:
    for want in enables:
        place = f"{want.file}:{want.line}" if want.line else want.file
        yield f"{output.styled(place, bold=True)}: {want.key} = {want.value!r}"
    for owner in owners:
        import pwd  # wanted only where a repository is somebody else's

        name = f"user {owner}"
        with suppress(KeyError):
            name = f"{pwd.getpwuid(owner).pw_name} ({name})"
        yield f"the repository belongs to {name}"
    if elsewhere is not None:
        yield f"its git folder is another working tree's: {elsewhere}"
    if not enables and not owners and elsewhere is None:
        yield "Nothing in this workspace asks for trust; if a setting does later, trust the workspace again"


@verb("trust", text=lambda report: report.lines)
@click.argument("path", required=False, metavar="[PATH]", type=click.Path(file_okay=False))
@click.option("--show", is_flag=True, help="Show what would be trusted, and change nothing.")
@click.option("--revoke", is_flag=True, help="Revoke the trust.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
def trust(path: str | None, show: bool, revoke: bool, yes: bool) -> TrustReport:
    """Let the workspace at PATH enable what its files ask for, and use a repository of another user.

    Shows what that is, and asks, before anything is recorded. The trust holds for this folder and the values you saw:
    it ends when one of these settings changes. Reading, writing and committing need no trust.

    Examples:
        memfs admin trust --show
        memfs admin trust ~/project
        memfs admin trust ~/project --revoke
    """
    if show and revoke:
        raise Unclear("--show and --revoke exclude each other")
    named = path or invocation().workspace
    try:
        root = find_workspace(named)
    except WorkspaceNotFound:  # a workspace is yet to be made in this folder of a repository
        if named is None or not Path(named).is_dir():
            raise
        root = Path(named).resolve()
    status, layout = workspace_trust.status_of(root), discover(root)
    owners = tuple(sorted(layout.foreign_owners)) if layout is not None else ()
    elsewhere = layout.elsewhere if layout is not None else None
    lines: tuple[str, ...]
    changed, wants = False, list(_wants(status.wants, owners, elsewhere))
    if revoke:
        changed = workspace_trust.revoke(root)
        status = workspace_trust.status_of(root)
        lines = (f"{root} {'is no longer trusted' if changed else 'was not trusted'}",)
    elif show or not (yes or status.wants or owners or elsewhere):
        lines = (*wants, "trusted" if status.trusted else f"not trusted: {status.reason}")
    else:
        if not (yes or invocation().json):
            output.render(None, wants, json=False)
        if not yes:
            _ask(root)
        status, changed = workspace_trust.grant(root, status.wants), True
        lines = (*(wants if yes else ()), f"{output.styled('Trusted', fg='green')} {root}")
    return TrustReport(status.root, status.trusted, status.reason or None, changed, status.wants, owners, lines)


def _ask(root: Path) -> None:
    """Ask once.

    Raises:
        MemfsError: the answer is no, or there is no one to ask.
    """
    if not output.somebody_types():
        raise MemfsError("nothing was trusted: there is no one to ask", path=str(root), hint="say so with --yes")
    if not click.confirm(f"Trust {output.clean(str(root))}?", err=True):
        raise MemfsError("nothing was trusted")


# -- schema -------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class SchemaExport:
    """The schemas that were written.

    Attributes:
        folder: where they are.
        files: their names.
    """

    folder: Path
    files: tuple[str, ...]


@verb("schema", text=lambda done: (f"Wrote {output.count(len(done.files), 'file')} into {done.folder}",))
@click.argument("folder", required=False, metavar="[FOLDER]", type=click.Path(file_okay=False, path_type=Path))
def schema(workspace: Workspace, folder: Path | None) -> SchemaExport:
    """Write the JSON Schemas of all files of the workspace, those of its own kinds included, into FOLDER.

    Without FOLDER they go to ContextMemory/.schemas/, where the editor settings in the documentation look for them; git
    leaves that folder out. memfs itself validates with its built-in schemas, never with these copies.

    Examples:
        memfs admin schema
        memfs admin schema ~/schemas
    """
    from memfs.admin.store_builder import export_schemas

    place = (folder or workspace.root / EDITOR_FOLDER).resolve()
    names = export_schemas(workspace.parts.codec.schemas, place, ignored=folder is None)
    return SchemaExport(place, tuple(names))


# -- migrate ------------------------------------------------------------------------------------------------------
_CURRENT = ("The files already have the current version of the format",)


@verb("migrate", text=lambda done: output.document(done) if done.changed else _CURRENT)
@click.option("-n", "--dry-run", is_flag=True, help="Say what would be done, and do nothing.")
def migrate(workspace: Workspace, dry_run: bool) -> store_builder.MigrationResult:
    """Bring the files to the version of the format that this memfs writes, as one commit.

    Where history.commit is manual the changed files are left for you to commit. A workspace of an older version is
    read and written all the same, and 'memfs check' names it; one of a newer version is not opened at all.

    Examples:
        memfs admin migrate --dry-run
    """
    done = store_builder.migrate(workspace.store, workspace.parts, dry_run)
    if done.changed and not dry_run:
        land(workspace)
        if workspace.settings.history.commit not in AT_ONCE:
            remark("commit these files with git, or 'memfs commit'")
    return done


# -- watch --------------------------------------------------------------------------------------------------------
@verb("watch")
def watch(as_json: bool) -> None:
    """Follow changes of the files, by hand or by git, and keep the index fresh, until interrupted.

    Examples:
        memfs admin watch
        memfs admin watch --json | tee changes.jsonl
    """
    from memfs.doors.resident.place import hosted
    from memfs.watch import Watcher, notes_folder  # watchdog is slow to start, and no other verb needs it

    ended = threading.Event()

    def report(noticed: NoticedChange) -> None:
        found = {name: list(getattr(noticed.refreshed, name)) for name in ("added", "changed", "removed")}
        try:
            if as_json:
                output.print_json({"reason": noticed.reason, **found, "error": noticed.error}, indent=None)
                return
            for name, path in ((name, path) for name, paths in found.items() for path in paths):
                output.print_raw(f"{output.styled(f'{name:<8}', dim=True)} {path}")
            if noticed.error:
                output.note(noticed.error)
        except BrokenPipeError:  # we are on the watcher's thread: let the command's own end
            ended.set()

    with opened() as workspace:
        settings = workspace.settings
        quiet = settings.history.adopt_after_seconds if settings.history.adopt == "auto" else None

        def watcher() -> Watcher:
            notes = notes_folder(workspace.repository.state)
            return Watcher(
                workspace.store, workspace.root, settings.watch, quiet_seconds=quiet, listener=report, notes=notes
            )

        workspace.store.watch_with(watcher, at_once=True)
        output.note(f"watching {workspace.root}; Ctrl-C ends it")
        with hosted(workspace.root, settings.resident.use):
            ended.wait()
    raise BrokenPipeError
