"""``stats``, ``watch``, ``reindex``, ``migrate`` and ``maintain``: what a workspace weighs, and its care."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from memfs.admin.usage_by_area import MemoryTally, tally
from memfs.doors.cli.command import Unclear, opened, verb
from memfs.doors.cli.commit_report import AT_ONCE, land
from memfs.doors.cli.cut import cut_history
from memfs.doors.cli.filters import as_of, as_of_json, note_past, past_at
from memfs.doors.cli.output import (
    clean,
    count,
    note,
    note_problems,
    plain,
    print_json,
    print_json_line,
    print_problem,
    print_raw,
    print_table,
    progress,
    styled,
)
from memfs.doors.cli.semantic import embed
from memfs.doors.cli.summary import knowledge_facts, knowledge_rows, reindex_states

if TYPE_CHECKING:
    from memfs.admin.usage_by_area import AreaUsage
    from memfs.watch import NoticedChange


@verb("stats", example="memfs stats\nmemfs stats --json\nmemfs stats --as-of 2026-03-01")
@as_of
@click.pass_context
def stats(ctx: click.Context, as_of: str | None, as_json: bool) -> None:
    """Say what was learned of late and is used most, count the items by type and layer, and weigh the files."""
    if as_of is not None:
        _stats_at(ctx, as_of, as_json)
        return
    with opened(ctx) as workspace:
        facts = tally(workspace.store, workspace.parts)
        usage = workspace.quota.measure(history=True)
        workspace.quota.limits()
        unread = workspace.quota.problem
        problems = [*workspace.store.problems(), *([unread] if unread else [])]
        uses = workspace.usage.all()
        known = knowledge_facts(workspace)
        uncounted = workspace.usage.problem
    used = {"items": len(uses), "uses": sum(use.count for use in uses.values())}
    if as_json:
        areas = {"areas": dict(usage.areas), "total": usage.total, "free": usage.free}
        print_json({**known, **_tally_json(facts), "usage": used, **areas})
    else:
        for name, said in knowledge_rows(known).items():
            print_raw(f"{styled(f'{name:<11}', dim=True)}{clean(said)}")
        print_raw(f"{styled('uses       ', dim=True)}{used['uses']:,} of {count(used['items'], 'item')}")
        _print_tally(facts)
        _print_usage(usage)
        if unread:
            print_problem(unread)
    if uncounted:
        note(uncounted)
    note_problems(problems)


def _stats_at(ctx: click.Context, revision: str, as_json: bool) -> None:
    """What there was at a revision: items and their bytes. Uses, history and index have no past."""
    from memfs.team.asof import past_tally

    with opened(ctx) as workspace:
        past = past_at(workspace, revision, quarantined=True)
        facts = past_tally(past)
        problems = past.store.problems()
    if as_json:
        print_json({**_tally_json(facts), "bytes": {"content": facts.content_bytes}, **as_of_json(past)})
    else:
        _print_tally(facts, ("content",))
    note_past(past)
    note_problems(problems)


def _print_usage(usage: AreaUsage) -> None:
    print_raw(styled("Areas", bold=True))
    print_table([(f"  {area}", _bytes(size)) for area, size in usage.areas.items()])
    free = f", {usage.free:,} bytes free" if usage.free is not None else ""
    print_raw(f"  {usage.total:,} bytes in all{free}")


def _tally_json(facts: MemoryTally) -> dict[str, Any]:
    return {
        "items": facts.items,
        "types": facts.types,
        "layers": facts.layers,
        "bytes": {"content": facts.content_bytes, "repository": facts.repository_bytes, "index": facts.index_bytes},
        "bytes_by_type": facts.type_bytes,
    }


def _print_tally(facts: MemoryTally, weighed: Sequence[str] = ("content", "repository", "index")) -> None:
    sizes = {name: getattr(facts, f"{name}_bytes") for name in weighed}
    print_raw(styled(count(facts.items, "item"), bold=True))
    print_table(
        [(f"  {name}", f"{number:>9,}", _bytes(facts.type_bytes[name])) for name, number in facts.types.items()]
    )
    print_raw(styled("Layers", bold=True))
    print_table([(f"  {layer}", f"{number:>9,}") for layer, number in facts.layers.items()])
    print_raw(styled("Size", bold=True))
    print_table([(f"  {name}", _bytes(size)) for name, size in sizes.items()])


def _bytes(number: int) -> str:
    return f"{number:>13,} bytes"


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
