"""Pack iterations that were closed long ago; they stay readable."""

from __future__ import annotations

from typing import TYPE_CHECKING

from memfs.doors.cli.command import verb
from memfs.doors.cli.declare import between, click
from memfs.doors.cli.filters import as_of, state_at
from memfs.doors.cli.output import Note, Text, count, size, styled
from memfs.doors.cli.parser import Actions
from memfs.state.archives import ArchiveResult, ArchiveVerdict, Period, UnpackResult, iterations_text

if TYPE_CHECKING:
    from memfs.state.retention import RetentionResult
    from memfs.workspace import Workspace


# -- run ----------------------------------------------------------------------------------------------------------
def _run_text(report: RetentionResult, dry_run: bool) -> Text:
    done = report.archived
    if not done.iterations and not report.deleted:
        yield "Nothing is due"
    elif done.iterations:
        what = f"{iterations_text(done.iterations)}: {count(done.documents, 'document')}, {size(done.bytes)}"
        if dry_run:
            yield f"would archive {what}"
        else:
            packed = f"now {size(done.packed)} ({_smaller(done)}), verified"
            yield f"{styled('Archived', fg='green')} {what} {packed}; {count(done.removed, 'file')} left the tree"
    for name in report.deleted:
        yield f"{'would delete' if dry_run else 'Deleted'} the archive {name}"
    for path, reason in done.left.items():
        yield Note(f"{path} stays in the tree: {reason}")
    if done.reason:
        yield Note(f"archived, but the originals stay until git is free: {done.reason}")


def _smaller(one: ArchiveResult | Period) -> str:
    return f"{100 - one.packed * 100 / one.bytes if one.bytes else 0:.0f}% smaller"


@verb(
    "run",
    text=_run_text,
    exit_code=lambda report: bool(report.archived.reason or report.archived.left),
)
@click.option("-n", "--dry-run", is_flag=True, help="Say what would be archived and deleted, and do nothing.")
@click.option("--older-than", "days", type=between(0), metavar="DAYS", help="Instead of active_days.")
@click.option(
    "--iteration",
    "chosen",
    multiple=True,
    type=click.IntRange(min=0),
    metavar="N",
    help="Exactly this one, also if not due.",
)
def run(workspace: Workspace, dry_run: bool, days: float | None, chosen: tuple[int, ...]) -> RetentionResult:
    """Pack iterations that were closed long ago, as configuration/retention_policy.json says.

    Iterations closed for active_days go into a verified archive and leave the tree; archives older than
    delete.archives_after_days are deleted, if that is set.

    Exit code 1: something stays in the tree that was to go.

    Examples:
        memfs admin archive run --dry-run
        memfs admin archive run --older-than 7
        memfs admin archive run --iteration 3
    """
    return workspace.states.retention.run(dry_run, active_days=days, iterations=chosen)


# -- list ---------------------------------------------------------------------------------------------------------
def _list_text(listed: tuple[Period, ...], as_of: str | None) -> Text:
    for one in listed:
        where = "" if one.present else "  (payload not here: read from history)"
        back = f"  back in the tree: {iterations_text(one.unpacked)}" if one.unpacked else ""
        packed = f"{size(one.bytes)} in {size(one.packed)} ({_smaller(one)})"
        what = f"{iterations_text(one.iterations)}: {count(one.documents, 'document')}, {packed}"
        yield f"{one.name:<10} {what}{where}{back}"
    if not listed:
        yield "No archives at that time" if as_of else "No archives yet"


@verb("list", text=_list_text, key="archives")
@as_of
def list_(workspace: Workspace, as_of: str | None) -> tuple[Period, ...]:
    """List the archives with their iterations and sizes.

    Examples:
        memfs admin archive list
        memfs admin archive list --as-of HEAD~3
    """
    return tuple(state_at(workspace, as_of).archives.periods())


# -- verify -------------------------------------------------------------------------------------------------------
def _verify_text(proof: tuple[ArchiveVerdict, ...]) -> Text:
    yield from map(_verdict_text, proof)
    if not proof:
        yield "No archives yet"


def _verdict_text(one: ArchiveVerdict) -> str:
    if one.sound and one.present:
        return f"{styled('Sound', fg='green')}  {one.name}: {count(one.documents, 'document')}"
    if one.sound:
        kept = count(one.documents, "document")
        return f"{styled('Sound', fg='green')}  {one.name}: its payload is not here, history has {kept}"
    wrong = "; ".join(f"{path} {reason}".strip() for path, reason in list(one.problems.items())[:3])
    lost = f"lost: {', '.join(one.lost[:3])}" if one.lost else "history has every document"
    return f"{styled('Damaged', fg='red')}  {one.name}: {wrong or 'its payload is not here'}; {lost}"


@verb("verify", text=_verify_text, key="archives", exit_code=lambda proof: not all(one.sound for one in proof))
def verify(workspace: Workspace) -> tuple[ArchiveVerdict, ...]:
    """Read every byte of the archives; a document that only history still has is no loss.

    Exit code 1: one is damaged.

    Examples:
        memfs admin archive verify
    """
    return tuple(workspace.states.archives.verify())


# -- unpack -------------------------------------------------------------------------------------------------------
def _unpack_text(done: tuple[UnpackResult, ...]) -> Text:
    for one in done:
        what = f"{count(one.documents, 'file')}, {size(one.bytes)}"
        yield f"{styled('Unpacked', fg='green')} iteration {one.iteration}: {what}"
        if one.kept:
            yield Note(f"{count(len(one.kept), 'file')} in the tree already, and newer: left as they are")


@verb("unpack", text=_unpack_text, key="unpacked")
@click.argument("numbers", nargs=-1, required=True, type=click.IntRange(min=0), metavar="N...")
def unpack(workspace: Workspace, numbers: tuple[int, ...]) -> tuple[UnpackResult, ...]:
    """Bring iterations back into the tree, as a commit; what is in the tree already is newer and stays.

    Examples:
        memfs admin archive unpack 3
    """
    return tuple(workspace.states.archiver.unpack(number) for number in numbers)


archive = Actions("archive", __doc__, run, list_, verify, unpack)
