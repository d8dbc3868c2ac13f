"""``list``: the items there are, newest first."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import click

from memfs.doors.cli.command import verb, wants_json
from memfs.doors.cli.filters import AsOf, as_of, filters, past_at, query, revision_of
from memfs.doors.cli.options import ListedItem, note_served
from memfs.doors.cli.output import OMIT, TEXT_ONLY, Note, Table, count, partial_note, problems_note
from memfs.errors import MemfsError
from memfs.model.query import MOST
from memfs.usage import NEVER

if TYPE_CHECKING:
    from memfs.model import Query
    from memfs.store.reader import Reader
    from memfs.team.asof import Past
    from memfs.workspace import Workspace


_SHOWN = 100
"""How many items a person sees who names no limit."""


@dataclass(frozen=True, slots=True)
class ItemList:
    """Items, newest first.

    Attributes:
        items: each as ``show`` has it.
        partial: whether something may be missing: a file cannot be read as it is now.
        as_of: the revision they are of.
        found: how many there are; more than are shown where the limit is lower.
        archived: whether these are pruned items.
        missing: the files that hold none at present.
        problems: how many files need a look.
        errors: what is wrong with pruned items that cannot be read.
    """

    items: tuple[ListedItem, ...]
    partial: bool = False
    as_of: AsOf | None = field(default=None, metadata=OMIT)
    found: int = field(default=0, metadata=TEXT_ONLY)
    archived: bool = field(default=False, metadata=TEXT_ONLY)
    missing: tuple[str, ...] = field(default=(), metadata=TEXT_ONLY)
    problems: int = field(default=0, metadata=TEXT_ONLY)
    errors: tuple[MemfsError, ...] = field(default=(), metadata=TEXT_ONLY)


def _text(listed: ItemList) -> Iterator[Any]:
    yield from listed.errors
    yield Table([item.row() for item in listed.items], dim=(1, 2))
    if listed.archived:
        yield Note(f"{count(listed.found, 'pruned item')}; 'memfs restore ID' brings one back")
    elif listed.found > len(listed.items) + len(listed.missing):
        more = "+" if listed.found == MOST else ""
        yield Note(f"the newest {len(listed.items):,} of {listed.found:,}{more} items; --limit shows more")
    else:
        yield Note(count(len(listed.items), "item"))
    if listed.missing:
        yield partial_note(listed.missing)
    if listed.problems:
        yield from problems_note(listed.problems)


@verb(
    "list",
    text=_text,
    example="memfs list --type convention\nmemfs list --since 7d --agent coder --limit 20\nmemfs list --json\n"
    "memfs list --as-of HEAD~3",
)
@click.option("-n", "--limit", type=click.IntRange(1, MOST), help="At most this many; 100 by default, all with --json.")
@click.option("--archived", "pruned", is_flag=True, help="List what was pruned instead; no other filter applies.")
@filters
@as_of
def list_(workspace: Workspace, limit: int | None, pruned: bool, as_of: str | None, **chosen: Any) -> ItemList:
    """List items, newest first."""
    most = limit or (MOST if wants_json() else _SHOWN)
    workspace.repository.require_readable()
    past = past_at(workspace, as_of) if as_of is not None else None
    if pruned:
        return _pruned(workspace, past, most)
    listed = _listed(workspace, past, query(workspace, "", MOST, past=past, **chosen), most, wants_json())
    if past is None:
        note_served(workspace, [one.item for one in listed.items])
    return listed


def _listed(workspace: Workspace, past: Past | None, asked: Query, most: int, used: bool) -> ItemList:
    store: Reader = workspace.store if past is None else past.store
    found = store.candidates(asked)
    loaded = [(candidate.path, store.load(candidate)) for candidate in found[:most]]
    missing = [path for path, item in loaded if item is None]
    store.refresh(missing)
    problems, unread = store.problems(), store.unread(asked)
    items = [one.item for _, one in loaded if one is not None]
    uses = workspace.usage.of(item.id for item in items) if used and past is None else None
    return ItemList(
        tuple(ListedItem(item, None if uses is None else uses.get(item.id, NEVER)) for item in items),
        partial=bool(unread or missing),
        as_of=revision_of(past) if past else None,
        found=len(found),
        missing=tuple(unread or missing),
        problems=len(problems),
    )


def _pruned(workspace: Workspace, past: Past | None, most: int) -> ItemList:
    from memfs.doors.cli.admin.prune import archived

    found, errors = archived(workspace, past)
    items = tuple(ListedItem(item) for item in found[:most])
    return ItemList(items, as_of=revision_of(past), found=len(found), archived=True, errors=tuple(errors))
