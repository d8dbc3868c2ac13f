"""Show memories that memfs suggests, and why; accept or refuse them.

Patterns in your memories, rules that failures teach, preferences that people voiced and what sessions leave behind wait
here, outside of git, and are not recalled. 'accept' stores one as a memory, 'refuse' never suggests it again.

Suggestions of your private memory of the project are listed with them; their ids begin with 'private:', and what
is accepted stays private.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from memfs.dataclass import dataclass, replace
from memfs.doors.cli.command import Unclear, opened, remark, verb
from memfs.doors.cli.options import SOURCE, land
from memfs.doors.cli.output import Note, Text, count, one_line, styled
from memfs.doors.cli.parser import Actions
from memfs.doors.cli.private import private_folder
from memfs.errors import MemfsError
from memfs.model.ids import of_mount, without_mount
from memfs.model.item import Trust, gist
from memfs.model.learning import Source, Suggestion, SuggestionDecision
from memfs.private import NAME

if TYPE_CHECKING:
    from memfs.model import MemoryItem
    from memfs.workspace import Workspace

_NAMED = 3
_MEMORIES = ("memory", "memories")
_WHAT = {Source.PATTERN: _MEMORIES, Source.RULE: ("failure", "failures")}
_SUGGESTED, _SHOWN = 5, 100


@contextmanager
def _owner(ids: Sequence[str]) -> Iterator[tuple[Workspace, str, list[Suggestion]]]:
    """Whose suggestions are meant, the workspace's or those of the private memory beside it, and which.

    Raises:
        Unclear: they are of both, or of none that has any.
    """
    from memfs.workspace import open_workspace

    mounts = {of_mount(one) for one in ids}
    if len(mounts) > 1:
        raise click.UsageError("decide about suggestions of private memory in a separate command")
    (mount,) = mounts
    names = [without_mount(one) if mount else one for one in ids]
    with opened() as workspace:
        if not mount:
            yield workspace, "", _found(workspace, names)
            return
        folder = private_folder(workspace) if mount == NAME else None
        if folder is None:
            raise Unclear(f"nothing is suggested by {mount!r}", "'memfs inbox' lists what is")
        with open_workspace(folder, watch=False, one_shot=True) as private:
            yield private, mount, _found(private, names)


def _found(workspace: Workspace, names: Sequence[str]) -> list[Suggestion]:
    return list({one.id: one for one in map(workspace.inbox.find, names)}.values())


def _mounted(suggestion_id: str, mount: str) -> str:
    return f"{mount}:{suggestion_id}" if mount else suggestion_id


_ids = click.argument("ids", nargs=-1, required=True, metavar="ID...")


# -- list ---------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class InboxList:
    """What waits for a decision.

    Attributes:
        suggestions: memories that are suggested, or those that were refused.
        count: how many there are.
        to_share: private memories that could be shared.
        to_share_count: how many there are.
    """

    suggestions: tuple[Suggestion, ...]
    count: int
    to_share: tuple[MemoryItem, ...]
    to_share_count: int


def _list_text(found: InboxList, refused: bool) -> Text:
    for one in found.suggestions:
        whose = "  from private" if of_mount(one.id) else ""
        yield f"{styled(one.source.value, dim=True)}  {styled(one_line(gist(one.item), 100), bold=True)}"
        yield f"  {one.id}{styled(whose, dim=True)}"
        yield f"  {_evidence(one)}"
    left = found.count - len(found.suggestions)
    were = (" was refused" if found.count == 1 else " were refused") if refused else ""
    yield Note(count(found.count, "suggestion") + were + (f"; {left:,} more with --limit" if left else ""))
    if found.suggestions and not refused:
        yield Note("'memfs inbox accept ID' stores one as a memory, 'memfs inbox refuse ID' never suggests it again")
    if found.to_share:
        could = f"{count(found.to_share_count, 'private memory', 'private memories')} could be shared"
        yield Note(f"{could}; 'memfs share' lists them")


def _evidence(one: Suggestion) -> str:
    named = ", ".join(one.evidence[:_NAMED])
    more = max(one.count if one.source in _WHAT else 0, len(one.evidence)) - _NAMED
    listed = f"{named} and {more:,} more" if named and more > 0 else named
    counted = count(one.count, *_WHAT[one.source]) if one.source in _WHAT else ""
    facts = " ".join(filter(None, (counted, one.reason)))
    return ": ".join(filter(None, (facts, listed))) or "said once"


@verb("list", text=_list_text)
@click.option("--refused", is_flag=True, help="List what was refused.")
@click.option("-n", "--limit", type=click.IntRange(1, 10_000), default=20, help="At most this many; 20.")
def list_(workspace: Workspace, refused: bool, limit: int) -> InboxList:
    """List what is suggested, with its evidence; 'memfs inbox' alone means this.

    Examples:
        memfs inbox
        memfs inbox --refused
    """
    try:
        if written := workspace.learner.run().written:
            land(workspace)
            remark(f"{count(len(written), 'pattern')} written, as learning.patterns says")
    except MemfsError as error:  # what keeps that from being done hides nothing that waits
        remark(f"nothing was learned: {error}")
    beside, to_share = _beside(workspace, refused)
    every = [
        *_suggestions(workspace, refused),
        *(replace(one, item=one.item.replace(id=f"{NAME}:{one.id}")) for one in beside),
    ]
    return InboxList(tuple(every[:limit]), len(every), tuple(to_share[:limit]), len(to_share))


def _suggestions(workspace: Workspace, refused: bool) -> list[Suggestion]:
    """The suggestions that wait, or those that were refused."""
    box = workspace.inbox
    return [one for one in box.all() if one.decision is SuggestionDecision.REFUSED] if refused else box.waiting()


def _beside(workspace: Workspace, refused: bool) -> tuple[list[Suggestion], list[MemoryItem]]:
    """What waits in private memory, and what could be shared; what keeps it from being read hides nothing else."""
    from memfs.learning.inbox import waiting
    from memfs.workspace import open_workspace

    folder = private_folder(workspace)
    if folder is None:
        return [], []
    try:
        with open_workspace(folder, watch=False, one_shot=True) as private:
            return _suggestions(private, refused), [] if refused else waiting(private.store)
    except MemfsError as error:
        remark(f"private memory was not read: {error}")
        return [], []


# -- accept -------------------------------------------------------------------------------------------------------
def _accepted_text(accepted: tuple[MemoryItem, ...]) -> Text:
    for one in accepted:
        yield f"Accepted {styled(one.id, fg='green', bold=True)}"
        yield f"  {one.path}"


@verb("accept", text=_accepted_text, key="accepted", lands=True)
@_ids
@click.option("--content", metavar="TEXT", help="Accept it with other words.")
def accept(ids: tuple[str, ...], content: str | None) -> tuple[MemoryItem, ...]:
    """Store each of these suggestions as a memory, vouched for by you.

    An ID may be shortened. Accepting what was refused takes that back; what private memory suggests stays private. To
    change more than its words, accept it, and then use 'memfs update ID --edit'.

    Examples:
        memfs inbox accept service-variable-listens-on-port-variable-e5ee8574
        memfs inbox accept always-use-tabs-1b0c2d3e --content "Use tabs in Makefiles"
    """
    if content is not None and len(ids) > 1:
        raise click.UsageError("--content is for one suggestion")
    with _owner(ids) as (workspace, mount, found):
        if content is not None:
            if not content.strip() and not found[0].item.title:
                raise click.UsageError("--content is blank: give the words that are to be remembered")
            found = [replace(found[0], item=found[0].item.replace(content=content))]
        stored = workspace.inbox.accept(found, trust=Trust.REVIEWED.value, source=SOURCE)
        land(workspace, stored[-1])
        root = workspace.root
    base = str(root) + os.sep if mount else ""
    return tuple(item.replace(id=_mounted(item.id, mount), path=base + item.path) for item in stored)


# -- refuse -------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class RefusedSuggestions:
    """What was refused.

    Attributes:
        refused: ids of the suggestions.
    """

    refused: tuple[str, ...]


@verb("refuse", text=lambda done: [f"Refused {one}: it is not suggested again" for one in done.refused])
@_ids
def refuse(ids: tuple[str, ...]) -> RefusedSuggestions:
    """Never suggest these again; an ID may be shortened.

    Examples:
        memfs inbox refuse service-variable
    """
    with _owner(ids) as (workspace, mount, found):
        workspace.inbox.refuse(found)
    return RefusedSuggestions(tuple(_mounted(one.id, mount) for one in found))


inbox = Actions("inbox", __doc__, list_, accept, refuse)
