"""``conflicts``: show memories that cannot both hold, and decide about them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from memfs.doors.cli.command import complete_ids, opened, verb
from memfs.doors.cli.commit_report import SOURCE, land
from memfs.doors.cli.filters import as_of, as_of_json, note_past, past_at
from memfs.doors.cli.output import (
    clean,
    count,
    day,
    note,
    one_line,
    plain,
    print_json,
    print_raw,
    progress,
    styled,
    time_text,
    width,
)
from memfs.doors.cli.resolve import print_recorded, print_values, recorded_json

if TYPE_CHECKING:
    from memfs.model import MemoryItem
    from memfs.model.conflict import Decision, Disagreement, DocumentClash
    from memfs.workspace import Workspace

_RECORD = ".json"


@verb(
    "conflicts",
    example="memfs team conflicts\nmemfs team conflicts --scan\n"
    "memfs team conflicts resolve timeout-9s timeout-5s --keep timeout-9s --reason 'measured again'\n"
    "memfs team conflicts resolve no-deploys deploys --keep both --reason 'one is about staging'",
)
@click.argument("action", required=False, default="list", type=click.Choice(["list", "resolve"]))
@click.argument("names", nargs=-1, metavar="[ID OTHER]", shell_complete=complete_ids)
@click.option("--scan", is_flag=True, help="First compare what nobody compared: hand-written files, pulls.")
@click.option("--keep", metavar="ID|both", help="With resolve: which one holds. Of a field: kept or lost.")
@click.option("--reason", default="", metavar="TEXT", help="With resolve: why, for the items and the commit.")
@as_of
@click.pass_context
def conflicts(
    ctx: click.Context,
    action: str,
    names: tuple[str, ...],
    scan: bool,
    keep: str | None,
    reason: str,
    as_of: str | None,
    as_json: bool,
) -> None:
    """Show memories that cannot both hold, and write down what you decide about them.

    'resolve ID OTHER --keep ID' keeps one: the other gets the status 'superseded'. '--keep both' says that they are
    compatible. It is not asked about again, until an edit makes the two contradict each other anew. Where two writers
    changed one field of a state document, 'resolve RECORD --keep kept' leaves the value that stands, '--keep lost'
    brings back the one that gave way.
    """
    if as_of is not None and (scan or action != "list"):
        raise click.UsageError("--as-of lists what there was: it goes with no --scan, and not with 'resolve'", ctx)
    if action == "list":
        if names or keep is not None or reason:
            raise click.UsageError("--keep, --reason and names go with 'resolve'", ctx)
        with opened(ctx) as workspace:
            if as_of is None:
                _list(workspace, scan, as_json)
            else:
                _list_at(workspace, as_of, as_json)
        return
    if keep is None and len(names) == 2:
        raise click.UsageError(f"say with --keep which one holds: {names[0]}, {names[1]} or both", ctx)
    if scan or keep is None or len(names) not in (1, 2):
        raise click.UsageError("'resolve' takes ID OTHER, or the record of a field, and --keep", ctx)
    with opened(ctx) as workspace:
        if len(names) == 1:
            _resolve_field(workspace, names[0], keep, reason, as_json)
        else:
            _resolve(workspace, names[0], names[1], keep, reason, as_json)


# -- showing ------------------------------------------------------------------------------------------------------
def _list(workspace: Workspace, scan: bool, as_json: bool) -> None:
    with progress("Comparing") as step:
        found = workspace.conflicts.list(scan=scan, step=step)
    clashes = workspace.teams.resolver.documents()
    joined = workspace.teams.resolver.items()
    if as_json:
        shown = {"conflicts": [_json(one) for one in found], "documents": [_clash_json(one) for one in clashes]}
        shown["merges"] = [recorded_json(workspace, item) for item in joined]
        print_json(shown)
        return
    for one in found:
        _print(one)
    for clash in clashes:
        _print_clash(clash)
    for item in joined:
        print_recorded(workspace, item)
    more = f"; {count(len(clashes), 'field')} of documents" if clashes else ""
    more += f"; {count(sum(len(item.conflicts) for item in joined), 'field')} of merged items" if joined else ""
    hint = "" if found or clashes or joined or scan else "; '--scan' compares what nobody compared"
    note(count(len(found), "conflict") + more + hint)


def _list_at(workspace: Workspace, revision: str, as_json: bool) -> None:
    """The pairs that links named at a revision; what only a scan finds has no past."""
    past = past_at(workspace, revision)
    found = workspace.conflicts.list_in(past.store, past.now)
    if as_json:
        print_json({"conflicts": [_json(one) for one in found], **as_of_json(past)})
        return
    for one in found:
        _print(one)
    note_past(past)
    note(count(len(found), "conflict"))


def _print(one: Disagreement) -> None:
    anew = " (decided before, and edited since)" if one.anew else ""
    print_raw(f"{styled(one_line(one.reason), fg='yellow')}{anew}")
    for item in (one.one, one.other):
        print_raw(f"  {styled(item.id, bold=True)}  {styled(f'{day(item)} {item.trust}', dim=True)}")
        print_raw(f"    {one_line(item.content or item.title, width() - 4 if width() else 200)}")
    print_raw(styled(f"  memfs team conflicts resolve {one.one.id} {one.other.id} --keep ID|both", dim=True))


def _print_clash(one: DocumentClash) -> None:
    by = f" by {one.by}" if one.by else ""
    print_raw(f"{styled(f'two writers of {one.field}', fg='yellow')} in {clean(one.document)}{clean(by)}")
    print_values({"kept": one.kept, "lost": one.lost})
    kept_aside = one.path == one.document  # it has no record in the tree
    how = f"resolve {one.path} --keep|--take" if kept_aside else f"conflicts resolve {one.path} --keep kept|lost"
    print_raw(styled(f"  memfs {how}", dim=True))


def _json(one: Disagreement) -> dict[str, Any]:
    return {
        "ids": list(one.ids),
        "reason": one.reason,
        "linked": one.linked,
        "anew": one.anew,
        "items": [_item_json(item) for item in (one.one, one.other)],
    }


def _item_json(item: MemoryItem) -> dict[str, Any]:
    return {
        "id": item.id,
        "type": item.type,
        "title": item.title,
        "content": item.content,
        "trust": item.trust,
        "timestamp": time_text(item.timestamp),
        "path": item.path,
        "sha256": item.sha256,
    }


def _clash_json(one: DocumentClash) -> dict[str, Any]:
    return {
        "record": one.path,
        "document": one.document,
        "iteration": one.iteration,
        "field": one.field,
        "kept": plain(one.kept),
        "lost": plain(one.lost),
        "by": one.by,
        "timestamp": time_text(one.timestamp),
    }


# -- deciding -----------------------------------------------------------------------------------------------------
def _resolve(workspace: Workspace, one: str, other: str, keep: str, reason: str, as_json: bool) -> None:
    done = workspace.conflicts.resolve(one, other, keep=keep, reason=reason, source=SOURCE)
    landed = land(workspace, done.one)
    if as_json:
        ids = [done.one.id, done.other.id]
        print_json({"kept": done.kept, "ids": ids, "changed": done.changed, **landed.json()})
        return
    print_raw(_told(done) + ("" if done.changed else ", as it was decided before"))
    if not done.known and done.kept != "both":
        note("nothing said that these two contradict each other; if it was a slip, --keep both takes it back")
    if landed.reason:
        note(f"stored; its commit waits: {landed.reason}")


def _told(done: Decision) -> str:
    one, other = done.one.id, done.other.id
    if done.kept == "both":
        return f"{styled('Both hold:', fg='green')} {clean(one)}, {clean(other)}"
    lost = other if done.kept == one else one
    return f"{styled('Kept', fg='green')} {clean(done.kept)}; {clean(lost)} is superseded"


def _resolve_field(workspace: Workspace, path: str, keep: str, reason: str, as_json: bool) -> None:
    if not path.endswith(_RECORD):
        raise click.UsageError("'resolve' takes two ids, or the path of a record")
    done = workspace.states.clashes.resolve(path, keep=keep, reason=reason, source=SOURCE)
    waits = land(workspace, None).reason
    if as_json:
        print_json({"kept": keep, **_clash_json(done)})
        return
    word = "The value that stands stays" if keep == "kept" else "The value that gave way is back"
    print_raw(f"{styled(word, fg='green')}: {clean(done.field)} of {clean(done.document)}")
    if waits:
        note(f"stored; its commit waits: {waits}")
