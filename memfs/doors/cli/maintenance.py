"""``stats``, ``watch``, ``reindex``, ``migrate`` and ``maintain``: what a workspace weighs, and its care."""

from __future__ import annotations

import threading
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from memfs.doors.cli.command import Unclear, opened, verb
from memfs.doors.cli.commit_report import AT_ONCE, land
from memfs.doors.cli.cut import cut_history
from memfs.doors.cli.output import (
    clean,
    count,
    note,
    note_problems,
    plain,
    print_json,
    print_json_line,
    print_raw,
    progress,
    styled,
)
from memfs.doors.cli.semantic import embed
from memfs.doors.cli.summary import reindex_states

if TYPE_CHECKING:
    from memfs.watch import NoticedChange


@verb("watch", example="memfs watch\nmemfs watch --json | tee changes.jsonl")
@click.pass_context
def watch(ctx: click.Context, as_json: bool) -> None:
    """Follow changes of the files, by hand or by git, and keep the index fresh, until interrupted."""
    from memfs.watch import Watcher, notes_folder  # watchdog is slow to start, and no other verb needs it

    ended = threading.Event()

    def tell(noticed: NoticedChange) -> None:
        try:
            _print_noticed(noticed, as_json)
        except BrokenPipeError:  # we are on the watcher's thread: let the command's own end
            ended.set()

    with opened(ctx) as workspace:
        settings = workspace.settings
        quiet = settings.history.adopt_after_seconds if settings.history.adopt == "auto" else None

        def watcher() -> Watcher:
            notes = notes_folder(workspace.repository.state)
            return Watcher(
                workspace.store, workspace.root, settings.watch, quiet_seconds=quiet, listener=tell, notes=notes
            )

        workspace.store.watch_with(watcher, at_once=True)
        note(f"watching {workspace.root}; Ctrl-C ends it")
        ended.wait()
    raise BrokenPipeError


def _print_noticed(noticed: NoticedChange, as_json: bool) -> None:
    found = {name: list(getattr(noticed.refreshed, name)) for name in ("added", "changed", "removed")}
    if as_json:
        print_json_line({"reason": noticed.reason, **found, "error": noticed.error})
        return
    for name, paths in found.items():
        for path in paths:
            print_raw(f"{styled(f'{name:<8}', dim=True)} {clean(path)}")
    if noticed.error:
        note(noticed.error)


@verb("reindex", example="memfs reindex")
@click.pass_context
def reindex(ctx: click.Context, as_json: bool) -> None:
    """Build the search index anew from the files. Nothing is lost by it: the index is only a cache."""
    began = time.monotonic()
    with opened(ctx) as workspace:
        with progress("Indexing") as step:
            items = workspace.store.reindex(progress=step)
        states = reindex_states(workspace)
        engine = workspace.settings.index.engine
        problems = workspace.store.problems()
    seconds = round(time.monotonic() - began, 3)
    if as_json:
        print_json({"items": items, "engine": engine, "seconds": seconds, **states})
    else:
        also = f" and {count(states['state_documents'], 'state document')}" if states else ""
        print_raw(f"Indexed {count(items, 'item')} with {engine}{also} in {seconds:.1f} s")
    note_problems(problems)


@verb("migrate", example="memfs migrate --dry-run")
@click.option("-n", "--dry-run", is_flag=True, help="Say what would be done, and do nothing.")
@click.pass_context
def migrate(ctx: click.Context, dry_run: bool, as_json: bool) -> None:
    """Bring the files to the version of the format that this memfs writes, as one commit.

    Where history.commit is manual the changed files are left for you to commit. A workspace of a newer version than
    this memfs knows is not opened at all.
    """
    from memfs.admin.format import migrate as migrate_format

    with opened(ctx) as workspace:
        done = migrate_format(workspace.store, workspace.parts, dry_run)
        reason = "" if dry_run or not done.changed else land(workspace, None).reason
        waits = workspace.settings.history.commit not in AT_ONCE
    if as_json:
        print_json({**asdict(done), "dry_run": dry_run})
        return
    if not done.changed:
        print_raw(f"Nothing to do: the workspace is of format {done.after}")
    else:
        said = "Would bring" if dry_run else "Brought"
        before = "which names none" if done.before is None else f"which was of format {done.before}"
        print_raw(f"{said} the workspace, {before}, to format {done.after}")
        for path in done.paths:
            print_raw(f"  {clean(path)}")
        if waits and not dry_run:
            print_raw("  commit these files with git, or 'memfs commit'")
    if reason:
        note(f"its commit waits: {reason}")


@verb(
    "maintain",
    example="memfs maintain\nmemfs maintain --cut-before 2025-01-01 --dry-run\n"
    "memfs maintain --cut-before 2025-01-01 --export ~/memory-2024.bundle",
)
@click.option(
    "--cut-before", metavar="DATE", help="Also cut off the history before this: what 'memfs log' shows of it."
)
@click.option("--export", type=click.Path(path_type=Path), metavar="FILE", help="Where what is cut goes: a git bundle.")
@click.option("-n", "--dry-run", is_flag=True, help="Only say what would be cut.")
@click.option("--yes", is_flag=True, help="Do not ask before cutting.")
@click.pass_context
def maintain(
    ctx: click.Context, cut_before: str | None, export: Path | None, dry_run: bool, yes: bool, as_json: bool
) -> int:
    """Pack the history, write the commit-graph that makes log quick, fold fresh items into the index, learn, and embed.

    What was stored since the last time is looked through for patterns and rules, as the settings learning.* say;
    'memfs inbox' shows what they suggest. Where memories are searched by meaning, those that wait are embedded.

    --cut-before takes old history out of a repository that memfs made, after writing it to a file. No memory is lost by
    it: what stands at the cut becomes the first commit. Commits since then get new ids and lose their signatures.
    """
    if cut_before is not None:
        return cut_history(ctx, cut_before, export, dry_run=dry_run, yes=yes, as_json=as_json)
    if export is not None or dry_run or yes:
        raise Unclear("--export, --dry-run and --yes belong to --cut-before", "add --cut-before DATE")
    with opened(ctx) as workspace:
        learned = workspace.learner.run()
        land(workspace, None)
        done = workspace.history.maintain()
        folded = workspace.store.fold()
        embedded = embed(workspace, workspace.meaning.current())
        backed_up = workspace.backups.keep_up()
    facts = {name: getattr(done, name) for name in type(done).__slots__}
    if as_json:
        print_json(
            {
                **plain(facts),
                "folded": folded,
                "embedded": embedded,
                "backed_up": backed_up,
                "learned_from": learned.read,
            }
        )
        return 0
    if backed_up:
        print_raw("Made the backup that was due")
    if embedded:
        print_raw(f"Embedded {count(embedded, 'memory', 'memories')}")
    told = {"index folded": "yes" if folded else "another process is at it", "learned from": f"{learned.read:,}"}
    for name, value in {**facts, **told}.items():
        label = name.replace("_", " ")
        print_raw(f"{styled(f'{label:<16}', dim=True)}{clean(str(value))}")
    return 0
