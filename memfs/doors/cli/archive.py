"""``archive``: pack old iterations, which stay readable."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from memfs.doors.cli.backup import size
from memfs.doors.cli.command import opened, verb
from memfs.doors.cli.filters import as_of, as_of_json, note_past, state_at
from memfs.doors.cli.output import clean, count, note, print_json, print_raw, progress, styled, time_text

if TYPE_CHECKING:
    from memfs.state.archives import ArchiveResult, ArchiveVerdict
    from memfs.state.retention import RetentionResult
    from memfs.team.asof import Past
    from memfs.workspace import Workspace


@verb(
    "archive",
    example="memfs archive --dry-run\nmemfs archive\nmemfs archive --older-than 7\nmemfs archive --iteration 3\n"
    "memfs archive list\nmemfs archive verify\nmemfs archive unpack 3",
)
@click.argument("action", required=False, default="run", type=click.Choice(["run", "list", "verify", "unpack"]))
@click.argument("numbers", nargs=-1, type=click.IntRange(min=0), metavar="[N]...")
@click.option("-n", "--dry-run", is_flag=True, help="Say what would be archived and deleted, and do nothing.")
@click.option("--older-than", "days", type=click.FloatRange(min=0), metavar="DAYS", help="Instead of active_days.")
@click.option("--iteration", "chosen", multiple=True, type=click.IntRange(min=0), metavar="N", help="Exactly this one.")
@as_of
@click.pass_context
def archive(
    ctx: click.Context,
    action: str,
    numbers: tuple[int, ...],
    dry_run: bool,
    days: float | None,
    chosen: tuple[int, ...],
    as_of: str | None,
    as_json: bool,
) -> int:
    """Pack iterations that were closed long ago; they stay listed, searchable and readable.

    'run', the default, obeys configuration/retention_policy.json: iterations closed for active_days go into a verified
    archive and leave the tree; archives older than delete.archives_after_days are deleted, if that is set. 'list' shows
    the archives, 'verify' reads every byte of them, 'unpack' brings iterations back into the tree.

    Exit code 1: something could not be archived or removed, or an archive is damaged.
    """
    _check(ctx, action, numbers, chosen, dry_run or days is not None)
    if as_of is not None and action != "list":
        raise click.UsageError(f"'{action}' takes no --as-of", ctx)
    with opened(ctx) as workspace:
        if action == "run":
            with progress("Packing") as step:
                done = workspace.states.retention.run(dry_run, active_days=days, iterations=chosen, progress=step)
            _print_kept(done, dry_run, as_json)
            return int(bool(done.archived.reason or done.archived.left))
        if action == "unpack":
            _unpack(workspace, numbers, as_json)
            return 0
        if action == "verify":
            return _verify(workspace, as_json)
        with state_at(workspace, as_of) as (then, past):
            _list(then, past, as_json)
    return 0


def _check(ctx: click.Context, action: str, numbers: tuple[int, ...], chosen: tuple[int, ...], asked: bool) -> None:
    if action == "unpack" and not numbers:
        raise click.UsageError("name the iterations to unpack: memfs archive unpack 3", ctx)
    if action != "unpack" and numbers:
        raise click.UsageError(f"'{action}' takes no numbers; --iteration N archives one", ctx)
    if action != "run" and (chosen or asked):
        raise click.UsageError(f"'{action}' takes none of --dry-run, --older-than and --iteration", ctx)


def _print_kept(done: RetentionResult, dry_run: bool, as_json: bool) -> None:
    archived = done.archived
    if as_json:
        print_json({"dry_run": dry_run, **_facts(archived), "deleted": list(done.deleted)})
        return
    from memfs.state.archives import iterations_text

    if not archived.iterations and not done.deleted:
        print_raw("Nothing is due")
    elif archived.iterations:
        which = iterations_text(archived.iterations)
        what = f"{which}: {count(archived.documents, 'document')}, {size(archived.bytes)}"
        if dry_run:
            print_raw(f"would archive {what}")
        else:
            saved = 100 - archived.packed * 100 / archived.bytes if archived.bytes else 0.0
            print_raw(
                f"{styled('Archived', fg='green')} {what} now {size(archived.packed)} ({saved:.0f}% smaller), "
                f"verified; {count(archived.removed, 'file')} left the tree"
            )
    for name in done.deleted:
        print_raw(f"{'would delete' if dry_run else 'Deleted'} the archive {clean(name)}")
    for path, reason in archived.left.items():
        note(f"{clean(path)} stays in the tree: {clean(reason)}")
    if archived.reason:
        note(f"archived, but the originals stay until git is free: {clean(archived.reason)}")


def _facts(archived: ArchiveResult) -> dict[str, Any]:
    facts = asdict(archived)
    return {name: list(value) if isinstance(value, tuple) else value for name, value in facts.items()}


def _unpack(workspace: Workspace, numbers: tuple[int, ...], as_json: bool) -> None:
    done = [workspace.states.archiver.unpack(number) for number in numbers]
    if as_json:
        print_json({"unpacked": [{**asdict(one), "kept": list(one.kept)} for one in done]})
        return
    for one in done:
        what = f"{count(one.documents, 'file')}, {size(one.bytes)}"
        print_raw(f"{styled('Unpacked', fg='green')} iteration {one.iteration}: {what}")
        if one.kept:
            note(f"{count(len(one.kept), 'file')} in the tree already, and newer: left as they are")


def _verify(workspace: Workspace, as_json: bool) -> int:
    verdicts = workspace.states.archives.verify()
    if as_json:
        print_json({"archives": [_verdict_json(one) for one in verdicts]})
    else:
        for one in verdicts:
            print_raw(_verdict_text(one))
        if not verdicts:
            print_raw("No archives yet")
    return int(not all(one.sound for one in verdicts))


def _verdict_json(one: ArchiveVerdict) -> dict[str, Any]:
    return {
        "name": one.name,
        "documents": one.documents,
        "sound": one.sound,
        "present": one.present,
        "problems": dict(one.problems),
        "lost": list(one.lost),
    }


def _verdict_text(one: ArchiveVerdict) -> str:
    if one.sound and one.present:
        return f"{styled('Sound', fg='green')}  {one.name}: {count(one.documents, 'document')}"
    if one.sound:
        kept = count(one.documents, "document")
        return f"{styled('Sound', fg='green')}  {one.name}: its payload is not here, history has {kept}"
    wrong = "; ".join(f"{clean(path)} {clean(reason)}".strip() for path, reason in list(one.problems.items())[:3])
    lost = f"lost: {', '.join(map(clean, one.lost[:3]))}" if one.lost else "history has every document"
    return f"{styled('Damaged', fg='red')}  {one.name}: {wrong or 'its payload is not here'}; {lost}"


def _list(workspace: Workspace, past: Past | None, as_json: bool) -> None:
    periods = workspace.states.archives.periods()
    if as_json:
        rows = [
            {**asdict(one), "iterations": list(one.iterations), "unpacked": list(one.unpacked),
             "created": time_text(one.created)}
            for one in periods
        ]  # fmt: skip
        print_json({"archives": rows, **as_of_json(past)})
        return
    from memfs.state.archives import iterations_text

    for one in periods:
        share = 100 - one.packed * 100 / one.bytes if one.bytes else 0.0
        where = "" if one.present else "  (payload not here: read from history)"
        back = f"  back in the tree: {iterations_text(one.unpacked)}" if one.unpacked else ""
        print_raw(
            f"{one.name:<10} {iterations_text(one.iterations)}: {count(one.documents, 'document')}, "
            f"{size(one.bytes)} in {size(one.packed)} ({share:.0f}% smaller){where}{back}"
        )
    if not periods:
        print_raw("No archives yet" if past is None else "No archives at that time")
    note_past(past)
