"""``show``, ``list``, ``forget``: looking at items and taking them away."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from memfs.adapters.cli.asking import filters, query
from memfs.adapters.cli.frame import complete_ids, opened, verb
from memfs.adapters.cli.landing import SOURCE, is_committed, land
from memfs.adapters.cli.learning import archived, use_json
from memfs.adapters.cli.mounting import is_mounted, item_of_mount
from memfs.adapters.cli.output import (
    clean,
    count,
    day,
    item_json,
    note,
    note_partial,
    note_problems,
    one_line,
    origin_json,
    print_json,
    print_raw,
    print_table,
    readable,
    say,
    styled,
    time_text,
)
from memfs.adapters.cli.places import reference
from memfs.errors import IndexUnavailable, ItemNotFound, MemfsError, StorageIO
from memfs.model.kinds import ITEM_LIMIT
from memfs.model.query import MOST
from memfs.model.time import utc_now
from memfs.pipeline.disputes import disputes
from memfs.usage import NEVER

if TYPE_CHECKING:
    from memfs.model import MemoryItem
    from memfs.workspace import Workspace


_SHOWN = 100
"""How many items ``list`` shows a person who names no limit."""


@verb(
    "show",
    example="memfs show use-postgresql-for-transactions-7h2k9q\nmemfs show use-postgresql@HEAD~3\n"
    "memfs show use-postgresql --at 2026-03-01",
)
@click.argument("id", metavar="ID[@REV]", shell_complete=complete_ids)
@click.option("--at", metavar="REV", help="As it was at this revision or date.")
@click.option("--raw", is_flag=True, help="Print the file as it is.")
@click.pass_context
def show(ctx: click.Context, id: str, at: str | None, raw: bool, as_json: bool) -> None:
    """Show one item, by its id, the beginning of its id, or its path; of a mounted workspace, by NAME:ID."""
    name, _, revision = id.partition("@")
    revision = at or revision
    with opened(ctx) as workspace:
        mounted = is_mounted(workspace, name)
        if mounted:
            item, data = item_of_mount(workspace, name, revision)
        else:
            item, data, revision = _item(workspace, reference(workspace, name), revision)
        use = workspace.usage.of([item.id]).get(item.id, NEVER)
        against = () if revision or raw or mounted else _against(workspace, item)
    if as_json:
        present = {"usage": use_json(use), **({"contradicts": list(against)} if against else {})}
        print_json({**item_json(item), **({"revision": revision} if revision else present)})
    elif raw:
        say(data.decode("utf-8", "replace").removesuffix("\n"))
    else:
        _print_item(item)
        for name in against:
            note(f"contradicts {name}, or is contradicted by it; 'memfs conflicts' asks which one holds")


def _item(workspace: Workspace, named: str, revision: str) -> tuple[MemoryItem, bytes, str]:
    """An item, its file, and the commit that the revision means, "" for the file as it is now."""
    if not revision:
        return (*_item_now(workspace, named), "")
    commit = workspace.repository.resolve(revision)
    return (*_item_at(workspace, named, commit), commit)


def _against(workspace: Workspace, item: MemoryItem) -> tuple[str, ...]:
    from memfs.pipeline.neighbours import Neighbourhood  # only what is shown needs it

    try:
        return Neighbourhood(workspace.store, workspace.kinds).against(item, workspace.parts.clock())
    except (IndexUnavailable, StorageIO):  # the item itself can be shown all the same
        return tuple(disputes([item]).get(item.id, ()))


def _item_now(workspace: Workspace, name: str) -> tuple[MemoryItem, bytes]:
    try:
        item = workspace.store.find(name)
    except ItemNotFound as error:
        raise _pruned(workspace, name) or error from None
    return item, workspace.parts.seen.read(item.path, ITEM_LIMIT).data


def _pruned(workspace: Workspace, name: str) -> ItemNotFound | None:
    """What to say of an item that was pruned; None of any other that is not there."""
    try:
        item = workspace.pruner.pruned.find(name)
    except MemfsError:
        return None
    if name.casefold() not in (item.id.casefold(), item.path.casefold()):
        return None
    hint = f"memfs prune --bring-back {item.id} puts it back"
    return ItemNotFound(f"{item.id} was pruned into {item.path}", hint=hint)


def _item_at(workspace: Workspace, name: str, revision: str) -> tuple[MemoryItem, bytes]:
    path, data = workspace.history.found_at(revision, name)
    return workspace.parts.codec.read(data, path, utc_now()), data


def _print_item(item: MemoryItem) -> None:
    print_raw(styled(item.id, fg="green", bold=True))
    if item.title:
        print_raw(styled(item.title, bold=True))
    facts = {
        "type": item.type,
        "when": time_text(item.timestamp) or "",
        "tags": ", ".join(item.tags),
        "origin": ", ".join(f"{name} {value}" for name, value in origin_json(item).items()),
        "trust": item.trust,
        "importance": "" if item.importance == 1 else f"{item.importance:g}",
        "pinned": "yes" if item.pinned else "",
        "status": item.status,
        "expires": time_text(item.expires) or "",
        "replaces": ", ".join(item.supersedes),
        "links": ", ".join(f"{link.relation} {link.to}" for link in item.links),
        "path": item.path,
    }
    for name, value in facts.items():
        if value:
            print_raw(f"{styled(f'{name:<11}', dim=True)}{clean(value)}")
    for name, mapping in (("context", item.context), ("metadata", item.metadata), ("data", item.data)):
        for key, value in mapping.items():
            print_raw(f"{styled(f'{name:<11}', dim=True)}{clean(f'{key} = {readable(value)}')}")
    if item.content:
        print_raw("")
        print_raw(clean(item.content.rstrip("\n")))


@verb("list", example="memfs list --type convention\nmemfs list --since 7d --agent coder --limit 20\nmemfs list --json")
@click.option("-n", "--limit", type=click.IntRange(1, MOST), help="At most this many; 100 by default, all with --json.")
@click.option("--archived", "pruned", is_flag=True, help="List what was pruned instead; no other filter applies.")
@filters
@click.pass_context
def list_(ctx: click.Context, /, limit: int | None, pruned: bool, as_json: bool, **chosen: Any) -> None:
    """List items, newest first."""
    if pruned:
        _list_archived(ctx, limit, as_json)
        return
    shown = limit or (MOST if as_json else _SHOWN)
    with opened(ctx) as workspace:
        asked = query(workspace, "", MOST, **chosen)
        found = workspace.store.candidates(asked)
        loaded = [(candidate.path, workspace.store.load(candidate)) for candidate in found[:shown]]
        items = [item.item for _, item in loaded if item is not None]
        missing = [path for path, item in loaded if item is None]
        workspace.store.refresh(missing)
        problems = workspace.store.problems()
        unread = workspace.store.unread(asked)
        uses = workspace.usage.of(item.id for item in items) if as_json else {}
    if as_json:
        rows = [{**item_json(item), "usage": use_json(uses.get(item.id, NEVER))} for item in items]
        print_json({"items": rows, "partial": bool(missing or unread)})
    else:
        print_table(
            [(item.id, item.type, day(item), item.title or one_line(item.content[:500], 100)) for item in items],
            dim=(1, 2),
        )
    more = f"the newest {len(items):,} of {len(found):,}{'+' if len(found) == MOST else ''} items; --limit shows more"
    note(more if len(found) > shown else count(len(items), "item"))
    if missing or unread:
        note_partial(unread or missing)
    note_problems(problems)


def _list_archived(ctx: click.Context, limit: int | None, as_json: bool) -> None:
    with opened(ctx) as workspace:
        found = archived(workspace)
    items = found[: limit or (MOST if as_json else _SHOWN)]
    if as_json:
        print_json({"items": [item_json(item) for item in items], "partial": False})
        return
    print_table([(item.id, item.type, day(item), item.title or one_line(item.content[:500], 100)) for item in items])
    note(f"{count(len(found), 'pruned item')}; 'memfs prune --bring-back ID' puts one back")


@verb("forget", example='memfs forget old-decision-4k8m2p --reason "we moved to another database"')
@click.argument("ids", nargs=-1, required=True, metavar="ID...", shell_complete=complete_ids)
@click.option("--reason", default="", help="Why, for the history.")
@click.option("--dry-run", is_flag=True, help="Only say what would be removed.")
@click.pass_context
def forget(ctx: click.Context, ids: tuple[str, ...], reason: str, dry_run: bool, as_json: bool) -> None:
    """Remove items from the memory; history keeps them, and the command that brings each back is printed."""
    with opened(ctx) as workspace:
        found = [workspace.store.find(reference(workspace, name)) for name in dict.fromkeys(ids)]
        items = list({item.id: item for item in found}.values())
        revision, waits = (None, "") if dry_run else _forget(workspace, items, reason)
    if as_json:
        rows = [{"id": item.id, "path": item.path, "undo": _undo(item, revision)} for item in items]
        print_json({"forgotten": rows, "revision": revision, "dry_run": dry_run})
        return
    for item in items:
        print_raw(
            f"{'Would forget' if dry_run else 'Forgot'} {styled(item.id, fg='yellow', bold=True)}  {clean(item.path)}"
        )
        if revision:
            print_raw(f"  to bring it back: {clean(_undo(item, revision) or '')}")
            print_raw(f"  to erase it from history, too: memfs erase {clean(item.id)}")
    if waits:
        note(f"removed; the commit waits: {waits}")


def _forget(workspace: Workspace, items: list[MemoryItem], reason: str) -> tuple[str | None, str]:
    """Remove the items; return a revision that holds them all, None while git cannot take it, and why it cannot."""
    head = workspace.repository.head().commit
    if all(is_committed(workspace, item) for item in items):
        _remove(workspace, items, reason)
        return head, land(workspace, None).reason
    # what only the files or the journal hold goes into history now, whatever the policy: else there were no way back
    _remove(workspace, items, reason)
    flushed = workspace.store.flush(adopt=False)
    kept = workspace.repository.resolve(f"{flushed.commits[-1]}~1") if flushed.commits else None
    return kept, flushed.reason


def _remove(workspace: Workspace, items: list[MemoryItem], reason: str) -> None:
    if len(items) == 1:
        workspace.store.delete(items[0].id, expected=items[0].sha256, reason=reason, source=SOURCE)
        return
    message = f"Forget {count(len(items), 'memory', 'memories')}" + (f": {reason}" if reason else "")
    with workspace.store.batch(message, source=SOURCE) as batch:
        for item in items:
            batch.delete(item.id, expected=item.sha256)


def _undo(item: MemoryItem, revision: str | None) -> str | None:
    return f"memfs rollback {revision[:12]} {item.id}" if revision else None
