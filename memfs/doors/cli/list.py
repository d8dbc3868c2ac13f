"""``list``: the items there are, newest first."""

from __future__ import annotations

from memfs.dataclass import dataclass, field
from memfs.doors.cli.command import invocation, remark, verb
from memfs.doors.cli.declare import click
from memfs.doors.cli.options import as_of, filters, note_served, past_at, query
from memfs.doors.cli.output import MERGE, OMIT, Table, Text, count, day, one_line, partial_note, problems_note
from memfs.model.query import MOST
from memfs.recall.conflict_notes import unresolved_note
from memfs.startup import TYPE_CHECKING, Any
from memfs.usage import NEVER

if TYPE_CHECKING:
    from memfs.model import MemoryItem
    from memfs.store.reader import Reader
    from memfs.team.asof import Past
    from memfs.usage import Use
    from memfs.workspace import Workspace


_SHOWN = 100
"""How many items a person sees who names no limit."""


@dataclass(frozen=True, slots=True)
class ListedItem:
    """An item in a list.

    Attributes:
        item: all of it; its fields are inlined.
        usage: how it was used; not of a revision.
    """

    item: MemoryItem = field(metadata=MERGE)
    usage: Use | None = field(default=None, metadata=OMIT)


@dataclass(frozen=True, slots=True)
class ItemList:
    """Items, newest first.

    Attributes:
        items: each as ``show`` has it.
        partial: whether the list may be incomplete: a file cannot be read.
    """

    items: tuple[ListedItem, ...]
    partial: bool = False


def _text(listed: ItemList) -> Text:
    rows = []
    for item in (one.item for one in listed.items):
        left, title = unresolved_note(item), item.title or one_line(item.content[:500], 100)
        rows.append((item.id, item.type, day(item), f"({left}) {title}" if left else title))
    yield Table(rows, dim=(1, 2))


@verb("list", text=_text)
@click.option("-n", "--limit", type=click.IntRange(1, MOST), help="At most this many; 100 by default, all with --json.")
@click.option("--archived", "pruned", is_flag=True, help="List what was pruned instead; no other filter applies.")
@filters
@as_of
def list_(workspace: Workspace, limit: int | None, pruned: bool, as_of: str | None, **chosen: Any) -> ItemList:
    """List items, newest first.

    Examples:
        memfs list --type convention
        memfs list --since 7d --agent coder --limit 20
        memfs list --json
        memfs list --as-of HEAD~3
    """
    most = limit or (MOST if invocation().json else _SHOWN)
    past = past_at(workspace, as_of)
    if pruned:
        return _pruned(workspace, past, most)
    asked = query(workspace, "", most, past=past, **chosen)
    store: Reader = workspace.store if past is None else past.store
    found = store.candidates(asked)
    number = min(MOST, store.count_of(asked)) if len(found) == most else len(found)
    loaded = list(zip(found, store.load_each(found), strict=True))
    missing = [candidate.path for candidate, item in loaded if item is None]
    store.refresh(missing)
    problems, missing = store.problems(), [*store.unread(asked)] or missing
    items = [one.item for _, one in loaded if one is not None]
    if number > len(items) + len(missing):
        more = "+" if number == MOST else ""
        remark(f"the newest {len(items):,} of {number:,}{more} items; --limit shows more")
    else:
        remark(count(len(items), "item"))
    remark(partial_note(missing) if missing else problems_note(len(problems)))
    if past is None:
        note_served(workspace, items)
    uses = workspace.usage.of(item.id for item in items) if invocation().json and past is None else None
    rows = tuple(ListedItem(item, None if uses is None else uses.get(item.id, NEVER)) for item in items)
    return ItemList(rows, bool(missing))


def _pruned(workspace: Workspace, past: Past | None, most: int) -> ItemList:
    from memfs.admin.prune import PrunedItems

    pruned = workspace.pruner.pruned if past is None else PrunedItems(workspace.store, workspace.parts, past.files)
    for problem in pruned.problems():
        place = f"{problem.path}:{problem.line}" if problem.line else problem.path
        remark(f"{place}: {problem.message}", problem.hint)
    found = list(pruned.list())
    remark(f"{count(len(found), 'pruned item')}; 'memfs restore ID' brings one back")
    return ItemList(tuple(map(ListedItem, found[:most])))
