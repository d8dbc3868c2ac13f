"""``show``, ``list`` and ``forget``: look at items, and remove them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from memfs.admin.recover import RECOVERED
from memfs.doors.cli.command import complete_ids, opened, verb
from memfs.doors.cli.commit_report import SOURCE, is_committed, land
from memfs.doors.cli.feedback import archived, use_json
from memfs.doors.cli.filters import as_of, as_of_json, filters, note_past, past_at, query
from memfs.doors.cli.mounts import is_mounted, item_of_mount
from memfs.doors.cli.options import reference
from memfs.doors.cli.output import (
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
    print_text,
    readable,
    styled,
    time_text,
    write_error,
)
from memfs.errors import ContentError, HistoryUnavailable, IndexUnavailable, ItemNotFound, MemfsError, StorageIO
from memfs.model import Origin
from memfs.model.kinds import ITEM_LIMIT
from memfs.model.query import MOST
from memfs.recall.conflict_notes import disputes, unresolved_note
from memfs.store.authorship import signed_by
from memfs.store.commit_message import of_items
from memfs.usage import NEVER

if TYPE_CHECKING:
    from memfs.model import MemoryItem, Problem, Query
    from memfs.store import Store
    from memfs.team.asof import Past
    from memfs.team.revision_reader import PastStore
    from memfs.workspace import Workspace


_SHOWN = 100
"""How many items ``list`` shows a person who names no limit."""


@verb(
    "show",
    example="memfs show use-postgresql-for-transactions-7h2k9q\nmemfs show use-postgresql@HEAD~3\n"
    "memfs show use-postgresql --as-of 2026-03-01",
)
@click.argument("id", metavar="ID[@REV]", shell_complete=complete_ids)
@as_of
@click.option("--raw", is_flag=True, help="Print the file as it is.")
@click.pass_context
def show(ctx: click.Context, id: str, as_of: str | None, raw: bool, as_json: bool) -> None:
    """Show one item, by its id, the beginning of its id, or its path; of a mounted workspace, by NAME:ID."""
    name, _, revision = id.partition("@")
    revision = as_of or revision
    past: Past | None = None
    wrong: ContentError | None = None
    with opened(ctx) as workspace:
        mounted = is_mounted(workspace, name)
        if mounted:
            item, data = item_of_mount(workspace, name, revision)
        elif revision:
            past, item, data = _item_at(workspace, reference(workspace, name), revision)
        else:
            item, data, wrong = _item_now(workspace, reference(workspace, name))
        use = workspace.usage.of([item.id]).get(item.id, NEVER)
        against = () if past or raw or mounted else _against(workspace, item)
        if past is None:
            _served(workspace, [item])
    if as_json:
        present = {"usage": use_json(use), **({"contradicts": list(against)} if against else {})}
        stale = {"stale": True, "problem": wrong.sentence} if wrong else {}
        print_json({**item_json(item), **(as_of_json(past) or present), **stale})
    elif raw:
        print_text(data.decode("utf-8", "replace").removesuffix("\n"))
    else:
        _print_item(item)
        if wrong:
            note("the file is invalid at present; this is its last good version")
            write_error(wrong)
        for name in against:
            note(f"contradicts {name}, or is contradicted by it; 'memfs conflicts' asks which one holds")


def _served(workspace: Workspace, items: Sequence[MemoryItem]) -> None:
    """Note that items were handed out: the reader of what is printed may be an agent."""
    paths = {item.id: item.path for item in items}
    workspace.usage.served.note("read", paths, workspace.parts.clock(), paths=paths)


def _item_at(workspace: Workspace, named: str, revision: str) -> tuple[Past, MemoryItem, bytes]:
    """An item and its file at a revision."""
    past = workspace.teams.past.at(revision, quarantined=True)  # a person may look at everything
    try:
        path, data = workspace.history.found_at(revision, named)
    except HistoryUnavailable:
        path = past.store.beginning(named)
        if not path:
            raise
        data = past.files.read(path, ITEM_LIMIT).data
    return past, past.store.read(path), data


def _against(workspace: Workspace, item: MemoryItem) -> tuple[str, ...]:
    from memfs.intake.neighbours import Neighbourhood

    try:
        return Neighbourhood(workspace.store, workspace.kinds).against(item, workspace.parts.clock())
    except (IndexUnavailable, StorageIO):  # the item itself can be shown all the same
        return tuple(disputes([item]).get(item.id, ()))


def _item_now(workspace: Workspace, name: str) -> tuple[MemoryItem, bytes, ContentError | None]:
    """An item, its file, and what is wrong with that; the item is then its last good version."""
    wrong = None
    try:
        item = workspace.store.find(name)
    except ItemNotFound as error:
        raise _pruned(workspace, name) or error from None
    except ContentError as error:
        good = workspace.store.last_good(error.path) if error.path else None
        if good is None:
            raise
        item, wrong = good, error
    return item, workspace.parts.seen.read(item.path, ITEM_LIMIT).data, wrong


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


def _print_item(item: MemoryItem) -> None:
    print_raw(styled(item.id, fg="green", bold=True))
    if item.title:
        print_raw(styled(item.title, bold=True))
    for name, value in _facts(item).items():
        if value:
            print_raw(f"{styled(f'{name:<11}', dim=True)}{clean(value)}")
    for name, mapping in (("context", item.context), ("metadata", item.metadata), ("data", item.data)):
        for key, value in mapping.items():
            print_raw(f"{styled(f'{name:<11}', dim=True)}{clean(f'{key} = {readable(value)}')}")
    if item.conflicts:
        print_raw(f"{styled('conflict   ', dim=True)}{unresolved_note(item) or 'decided by an edit'}")
    if item.content:
        print_raw("")
        print_text(item.content.rstrip("\n"), "  ")


def _facts(item: MemoryItem) -> dict[str, str]:
    """What an item says of itself beside its text, by the word it is shown under; "" where it says nothing."""
    return {
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


@verb(
    "list",
    example="memfs list --type convention\nmemfs list --since 7d --agent coder --limit 20\nmemfs list --json\n"
    "memfs list --as-of HEAD~3",
)
@click.option("-n", "--limit", type=click.IntRange(1, MOST), help="At most this many; 100 by default, all with --json.")
@click.option("--archived", "pruned", is_flag=True, help="List what was pruned instead; no other filter applies.")
@filters
@as_of
@click.pass_context
def list_(
    ctx: click.Context, /, limit: int | None, pruned: bool, as_of: str | None, as_json: bool, **chosen: Any
) -> None:
    """List items, newest first."""
    if pruned:
        _list_archived(ctx, limit, as_of, as_json)
        return
    shown = limit or (MOST if as_json else _SHOWN)
    with opened(ctx) as workspace:
        workspace.repository.require_readable()
        past = past_at(workspace, as_of) if as_of is not None else None
        store: Store | PastStore = workspace.store if past is None else past.store
        listed = _listed(store, query(workspace, "", MOST, past=past, **chosen), shown)
        uses = workspace.usage.of(item.id for item in listed.items) if as_json and past is None else {}
        if past is None:
            _served(workspace, listed.items)
    if as_json:
        used = {} if past else {item.id: {"usage": use_json(uses.get(item.id, NEVER))} for item in listed.items}
        rows = [{**item_json(item), **used.get(item.id, {})} for item in listed.items]
        print_json({"items": rows, "partial": bool(listed.missing), **as_of_json(past)})
    else:
        print_table([_row(item) for item in listed.items], dim=(1, 2))
    _note_listed(listed, shown)
    note_past(past)
    if listed.missing:
        note_partial(listed.missing)
    note_problems(listed.problems)


@dataclass(frozen=True, slots=True)
class _ListQuery:
    """The items that are shown, how many there are, the files that hold none at present, and what is wrong."""

    items: Sequence[MemoryItem]
    found: int
    missing: Sequence[str]
    problems: Sequence[Problem]


def _listed(store: Store | PastStore, asked: Query, shown: int) -> _ListQuery:
    found = store.searcher.candidates(asked)
    loaded = [(candidate.path, store.load(candidate)) for candidate in found[:shown]]
    missing = [path for path, item in loaded if item is None]
    store.refresh(missing)
    problems, unread = store.problems(), store.unread(asked)
    return _ListQuery([one.item for _, one in loaded if one is not None], len(found), unread or missing, problems)


def _note_listed(listed: _ListQuery, shown: int) -> None:
    more = "+" if listed.found == MOST else ""
    unresolved_note = f"the newest {len(listed.items):,} of {listed.found:,}{more} items; --limit shows more"
    note(unresolved_note if listed.found > shown else count(len(listed.items), "item"))


def _row(item: MemoryItem) -> tuple[str, ...]:
    left, title = unresolved_note(item), item.title or one_line(item.content[:500], 100)
    return item.id, item.type, day(item), f"({left}) {title}" if left else title


def _list_archived(ctx: click.Context, limit: int | None, as_of: str | None, as_json: bool) -> None:
    with opened(ctx) as workspace:
        past = past_at(workspace, as_of) if as_of is not None else None
        found = archived(workspace, past)
    items = found[: limit or (MOST if as_json else _SHOWN)]
    if as_json:
        print_json({"items": [item_json(item) for item in items], "partial": False, **as_of_json(past)})
        return
    print_table([_row(item) for item in items])
    note_past(past)
    note(f"{count(len(found), 'pruned item')}; 'memfs prune --bring-back ID' puts one back")


@verb("forget", example='memfs forget old-decision-4k8m2p --reason "we moved to another database"')
@click.argument("ids", nargs=-1, required=True, metavar="ID...", shell_complete=complete_ids)
@click.option("--reason", default="", help="Why, for the history.")
@click.option("--agent", default="", metavar="NAME", help="The agent that removes them.")
@click.option("--session", default="", metavar="NAME", help="The session it does so in.")
@click.option("--dry-run", is_flag=True, help="Only say what would be removed.")
@click.pass_context
def forget(
    ctx: click.Context, ids: tuple[str, ...], reason: str, agent: str, session: str, dry_run: bool, as_json: bool
) -> None:
    """Remove items from the memory; history keeps them, and the command that brings each back is printed."""
    with opened(ctx) as workspace, signed_by(Origin(agent=agent, session=session)):
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
            if revision != RECOVERED:
                print_raw(f"  to erase it from history, too: memfs erase {clean(item.id)}")
    if waits:
        note(f"removed; the commit waits: {waits}")


def _forget(workspace: Workspace, items: list[MemoryItem], reason: str) -> tuple[str | None, str]:
    """Remove the items; return a revision that holds them all, None while git cannot take it, and why it cannot.

    Where the person commits, nothing is committed for it: what no commit holds is set aside instead.
    """
    head = workspace.repository.head().commit
    if all(is_committed(workspace, item) for item in items):
        _remove(workspace, items, reason)
        return head, land(workspace, None).reason
    if workspace.settings.history.commit == "manual":
        for item in items:
            workspace.recovered.keep(item.path, workspace.parts.seen.read(item.path, ITEM_LIMIT).data)
        _remove(workspace, items, reason)
        return RECOVERED, ""
    # what only the files or the journal hold goes into history now: else there were no way back
    _remove(workspace, items, reason)
    flushed = workspace.store.flush(adopt=False)
    kept = workspace.repository.resolve(f"{flushed.commits[-1]}~1") if flushed.commits else None
    return kept, flushed.reason


def _remove(workspace: Workspace, items: list[MemoryItem], reason: str) -> None:
    if len(items) == 1:
        workspace.store.delete(items[0].id, expected=items[0].sha256, reason=reason, source=SOURCE)
        return
    with workspace.store.batch(of_items("Forget", items, reason), source=SOURCE) as batch:
        for item in items:
            batch.delete(item.id, expected=item.sha256)


def _undo(item: MemoryItem, revision: str | None) -> str | None:
    if revision == RECOVERED:
        return f"memfs recover {item.id}"
    return f"memfs rollback {revision[:12]} {item.id}" if revision else None
