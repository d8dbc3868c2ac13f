"""``stats`` and ``watch``: what a workspace weighs, and what changes in it."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from memfs.admin.usage_by_area import MemoryTally, tally
from memfs.doors.cli.command import opened, verb
from memfs.doors.cli.filters import as_of, as_of_json, note_past, past_at
from memfs.doors.cli.output import (
    clean,
    count,
    note,
    note_problems,
    print_json,
    print_json_line,
    print_problem,
    print_raw,
    print_table,
    styled,
)
from memfs.doors.cli.summary import knowledge_facts, knowledge_rows

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
