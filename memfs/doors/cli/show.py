"""``show``: one item, now or at a revision."""

from __future__ import annotations

from memfs.dataclass import dataclass, field
from memfs.doors.cli.command import Unclear, complete_ids, invocation, verb
from memfs.doors.cli.declare import click
from memfs.doors.cli.options import as_of, item_found, note_served, reference
from memfs.doors.cli.output import MERGE, OMIT, TEXT_ONLY, Block, Note, Text, facts, readable, styled, time_text
from memfs.errors import ContentError, HistoryUnavailable, IndexUnavailable, MemfsError, StorageIO
from memfs.model.ids import of_mount, without_mount
from memfs.model.kinds import ITEM_LIMIT
from memfs.recall.conflict_notes import disputes, unresolved_note
from memfs.startup import TYPE_CHECKING
from memfs.usage import NEVER

if TYPE_CHECKING:
    from memfs.model import MemoryItem
    from memfs.team.asof import Past
    from memfs.usage import Use
    from memfs.workspace import Workspace


@dataclass(frozen=True, slots=True)
class ShownItem:
    """One item.

    Attributes:
        item: all of it; its fields are inlined.
        usage: how it was used; not of a revision.
        contradicts: ids of the items of which only one can hold beside it.
        stale: whether its file is currently invalid, and this is its last good version.
        problem: what is wrong with the file then.
        file: the bytes of the file, where they were asked for.
        error: what is wrong with the file, with its place.
    """

    item: MemoryItem = field(metadata=MERGE)
    usage: Use | None = field(default=None, metadata=OMIT)
    contradicts: tuple[str, ...] = field(default=(), metadata=OMIT)
    stale: bool = field(default=False, metadata=OMIT)
    problem: str = field(default="", metadata=OMIT)
    file: bytes | None = field(default=None, metadata=TEXT_ONLY)
    error: MemfsError | None = field(default=None, metadata=TEXT_ONLY)


def _text(shown: ShownItem) -> Text:
    if shown.file is not None:
        yield Block(shown.file.decode("utf-8", "replace").removesuffix("\n"))
        return
    item = shown.item
    yield styled(item.id, fg="green", bold=True)
    if item.title:
        yield styled(item.title, bold=True)
    yield from facts(_facts(item))
    for name, mapping in (("context", item.context), ("metadata", item.metadata), ("data", item.data)):
        for key, value in mapping.items():
            yield from facts({name: f"{key} = {readable(value)}"})
    if item.conflicts:
        yield from facts({"conflict": unresolved_note(item) or "decided by an edit"})
    if item.content:
        yield ""
        yield Block(item.content.rstrip("\n"), "  ")
    if shown.error:
        yield Note("the file is currently invalid; showing its last good version")
        yield shown.error
    for name in shown.contradicts:
        yield Note(f"contradicts {name}, or is contradicted by it; 'memfs team conflicts' asks which one holds")


def _facts(item: MemoryItem) -> dict[str, str]:
    """What an item says of itself beside its text, by the word it is shown under; "" where it says nothing."""
    origin = [(name, getattr(item.origin, name)) for name in item.origin.__slots__]
    return {
        "type": item.type,
        "when": time_text(item.timestamp) or "",
        "tags": ", ".join(item.tags),
        "origin": ", ".join(f"{name} {value}" for name, value in origin if value not in ("", None)),
        "trust": item.trust,
        "importance": "" if item.importance == 1 else f"{item.importance:g}",
        "pinned": "yes" if item.pinned else "",
        "status": item.status,
        "expires": time_text(item.expires) or "",
        "replaces": ", ".join(item.supersedes),
        "links": ", ".join(f"{link.relation} {link.to}" for link in item.links),
        "path": item.path,
    }


@verb("show", text=_text)
@click.argument("id", metavar="ID[@REV]", shell_complete=complete_ids)
@as_of
@click.option("--raw", is_flag=True, help="Print the file as it is.")
def show(workspace: Workspace, id: str, as_of: str | None, raw: bool) -> ShownItem:
    """Show one item, by its id, the beginning of its id, or its path; of a mounted workspace, by NAME:ID.

    Examples:
        memfs show use-postgresql-for-transactions-7h2k9q
        memfs show use-postgresql@HEAD~3
        memfs show use-postgresql --as-of 2026-03-01
    """
    name, _, revision = id.partition("@")
    revision = as_of or revision
    past: Past | None = None
    wrong: ContentError | None = None
    mounted = bool(of_mount(name)) and not workspace.store.locate(name)
    if mounted:
        item, data = _item_of_mount(workspace, name, revision)
    elif revision:
        past, item, data = _item_at(workspace, reference(workspace, name), revision)
    else:
        item, data, wrong = _item_now(workspace, reference(workspace, name))
    if past is None:
        note_served(workspace, [item])
    return ShownItem(
        item,
        usage=workspace.usage.of([item.id]).get(item.id, NEVER) if past is None and invocation().json else None,
        contradicts=() if past or raw or mounted else _against(workspace, item),
        stale=wrong is not None,
        problem=wrong.sentence if wrong else "",
        file=data if raw else None,
        error=wrong,
    )


def _item_of_mount(workspace: Workspace, reference: str, revision: str) -> tuple[MemoryItem, bytes]:
    """An item of a mount, and its file.

    Raises:
        Unclear: it is asked for at a revision.
        ItemNotFound, ContentError: see ``Mounts.find``.
    """
    if revision:
        hint = f"run memfs show there: -C <folder of {of_mount(reference)}>"
        raise Unclear("the history of a mounted workspace is not read", hint)
    mounts = workspace.sources.mounts
    item = mounts.find(reference)
    store = next(mount.store for mount in mounts.opened() if mount.name == of_mount(item.id))
    return item, store.tree.read(store.index_sync.locate(without_mount(item.id)), ITEM_LIMIT).data


def _item_at(workspace: Workspace, named: str, revision: str) -> tuple[Past, MemoryItem, bytes]:
    """An item and its file at a revision."""
    past = invocation().past = workspace.teams.past.at(revision)
    try:
        path, data = workspace.history.found_at(revision, named)
    except HistoryUnavailable:
        path = past.items.beginning(named)
        if not path:
            raise
        data = past.files.read(path, ITEM_LIMIT).data
    return past, past.store.read(path), data


def _against(workspace: Workspace, item: MemoryItem) -> tuple[str, ...]:
    from memfs.intake.contradictions import NeighbourSearch

    try:
        return NeighbourSearch(workspace.store, workspace.kinds).against(item, workspace.parts.clock())
    except (IndexUnavailable, StorageIO):  # the item itself can be shown all the same
        return tuple(disputes([item]).get(item.id, ()))


def _item_now(workspace: Workspace, name: str) -> tuple[MemoryItem, bytes, ContentError | None]:
    """An item, its file, and what is wrong with that; the item is then its last good version."""
    wrong = None
    try:
        item = item_found(workspace, name)
    except ContentError as error:
        good = workspace.store.last_good(error.path) if error.path else None
        if good is None:
            raise
        item, wrong = good, error
    return item, workspace.parts.seen.read(item.path, ITEM_LIMIT).data, wrong
