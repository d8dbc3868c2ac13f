"""Show what memfs suggests to remember, with its evidence; accept or refuse it.

Patterns in your memories, rules that failures teach, preferences that somebody was heard to have and what sessions
leave behind wait here, outside of git, and are not recalled. 'accept' makes a memory of one, 'refuse' never
suggests it again.

Suggestions of your private memory of the project are listed with them; their ids begin with 'private:', and what
is accepted stays private.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from memfs.dataclass import dataclass, field, replace
from memfs.doors.cli.command import Unclear, opened, remark, verb, wants_json
from memfs.doors.cli.options import SOURCE, as_of, land, pair, past_at
from memfs.doors.cli.output import (
    OMIT,
    TEXT_ONLY,
    Note,
    Table,
    Text,
    count,
    is_interactive,
    merge,
    note,
    one_line,
    print_raw,
    styled,
)
from memfs.doors.cli.parser import Actions
from memfs.doors.cli.private import private_folder
from memfs.errors import ContentError, MemfsError
from memfs.learning.inbox import item_in, text_of
from memfs.model.ids import of_mount, without_mount
from memfs.model.item import Trust
from memfs.model.query import MOST
from memfs.model.suggestion import Source, Suggestion, SuggestionDecision
from memfs.private import NAME
from memfs.recall.tokens import gist

if TYPE_CHECKING:
    from memfs.model import Hit, MemoryItem
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
        raise click.UsageError("suggestions of private memory are decided about in a command of their own")
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
        yield Note("'memfs inbox accept ID' makes a memory of one, 'memfs inbox refuse ID' never suggests it again")
    if found.to_share:
        could = f"{count(found.to_share_count, *_MEMORIES)} in private memory could be shared"
        yield Note(f"{could}; 'memfs share' lists them")


def _evidence(one: Suggestion) -> str:
    named = ", ".join(one.evidence[:_NAMED])
    more = max(one.count if one.source in _WHAT else 0, len(one.evidence)) - _NAMED
    listed = f"{named} and {more:,} more" if named and more > 0 else named
    counted = count(one.count, *_WHAT[one.source]) if one.source in _WHAT else ""
    told = " ".join(filter(None, (counted, one.reason)))
    return ": ".join(filter(None, (told, listed))) or "said once"


@verb("list", text=_list_text)
@click.option("--refused", is_flag=True, help="List what was refused.")
@click.option("-n", "--limit", type=click.IntRange(1, 10_000), default=20, help="List at most so many; 20.")
def list_(workspace: Workspace, refused: bool, limit: int) -> InboxList:
    """List what is suggested, with its evidence; 'memfs inbox' alone means this.

    Examples:
        memfs inbox
        memfs inbox --refused
    """
    _learn(workspace)
    beside, to_share = _beside(workspace, refused)
    every = [
        *_told(workspace, refused),
        *(replace(one, item=one.item.replace(id=f"{NAME}:{one.id}")) for one in beside),
    ]
    return InboxList(tuple(every[:limit]), len(every), tuple(to_share[:limit]), len(to_share))


def _told(workspace: Workspace, refused: bool) -> list[Suggestion]:
    """The suggestions that wait, or those that were refused."""
    box = workspace.inbox
    return [one for one in box.all() if one.decision is SuggestionDecision.REFUSED] if refused else box.waiting()


def _beside(workspace: Workspace, refused: bool) -> tuple[list[Suggestion], list[MemoryItem]]:
    """What waits in private memory, and what could be shared; what keeps it from being read hides nothing else."""
    from memfs.learning.exchange import waiting
    from memfs.workspace import open_workspace

    folder = private_folder(workspace)
    if folder is None:
        return [], []
    try:
        with open_workspace(folder, watch=False, one_shot=True) as private:
            return _told(private, refused), [] if refused else waiting(private.store)
    except MemfsError as error:
        remark(f"private memory was not read: {error}")
        return [], []


def _learn(workspace: Workspace) -> None:
    """Learn from what is new; what keeps that from being done hides nothing that waits."""
    try:
        if written := workspace.learner.run().written:
            land(workspace)
            remark(f"{count(len(written), 'pattern')} written, as learning.patterns says")
    except MemfsError as error:
        remark(f"nothing was learned: {error}")


# -- accept -------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class AcceptedMemory:
    """A suggestion that is a memory now.

    Attributes:
        id: its id; of one in private memory it begins with `private:`.
        item: the memory.
        place: the file, as a person finds it.
    """

    id: str
    item: MemoryItem = field(metadata=merge("type path sha256"))
    place: str = field(metadata=TEXT_ONLY)


def _accepted_text(accepted: tuple[AcceptedMemory, ...]) -> Text:
    for one in accepted:
        yield f"Accepted {styled(one.id, fg='green', bold=True)}"
        yield f"  {one.place}"


@verb("accept", text=_accepted_text, key="accepted", lands=True)
@_ids
@click.option("--content", metavar="TEXT", help="Accept it with other words.")
@click.option("--edit", is_flag=True, help="Accept it as you change it in your editor.")
def accept(ids: tuple[str, ...], content: str | None, edit: bool) -> tuple[AcceptedMemory, ...]:
    """Make a memory of each of these suggestions, vouched for by you.

    An ID may be shortened. Accepting what was refused takes that back; what private memory suggests stays private.

    Examples:
        memfs inbox accept service-variable-listens-on-port-variable-e5ee8574
        memfs inbox accept always-use-tabs-1b0c2d3e --content "Use tabs in Makefiles"
    """
    reworded = content is not None
    if (reworded or edit) and (len(ids) > 1 or (reworded and edit)):
        raise click.UsageError("change one suggestion at a time, with --content or with --edit")
    with _owner(ids) as (workspace, mount, found):
        if reworded or edit:
            found = [_changed(workspace, found[0], content)]
        stored = workspace.inbox.accept(found, trust=Trust.REVIEWED.value, source=SOURCE)
        land(workspace, stored[-1])
        root = workspace.root
    base = str(root) + os.sep if mount else ""
    return tuple(AcceptedMemory(_mounted(item.id, mount), item, base + item.path) for item in stored)


def _changed(workspace: Workspace, one: Suggestion, content: str | None) -> Suggestion:
    """A suggestion in the person's own words."""
    if content is not None:
        if not content.strip() and not one.item.title:
            raise click.UsageError("--content is blank: give the words that are to be remembered")
        return replace(one, item=one.item.replace(content=content))
    text = before = text_of(workspace.parts, one.item)
    while True:
        written = click.edit(text, extension=".yaml", require_save=True)
        if written is None:
            raise click.ClickException("nothing was saved, so nothing was accepted")
        try:
            return replace(one, item=item_in(workspace.parts, written, one.item))
        except ContentError as error:
            text = written
            note(error.sentence)
            if not is_interactive() or not click.confirm("Edit again?", default=True, err=True):
                print_raw(written if written != before else "")
                raise


# -- refuse -------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class RefusedSuggestions:
    """What was refused.

    Attributes:
        refused: ids of the suggestions.
    """

    refused: tuple[str, ...]


def _refused_text(done: RefusedSuggestions) -> Text:
    return (f"Refused {one}: it is not suggested again" for one in done.refused)


@verb("refuse", text=_refused_text)
@_ids
def refuse(ids: tuple[str, ...]) -> RefusedSuggestions:
    """Never suggest these again; an ID may be shortened.

    Examples:
        memfs inbox refuse service-variable
    """
    with _owner(ids) as (workspace, mount, found):
        workspace.inbox.refuse(found)
    return RefusedSuggestions(tuple(_mounted(one.id, mount) for one in found))


_OF_A_PATTERN = (
    "pattern_type", "occurrences", "confidence", "first_seen", "last_seen", "examples", "common_context"
)  # fmt: skip


# -- patterns -----------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class PatternRow:
    """A pattern.

    Attributes:
        item: the pattern, and what the memories have in common; these fields stand beside the others.
        pattern_type: their type.
        occurrences: how many memories there are.
        confidence: how sure it is, 0 to 1.
        first_seen: when the first of them was.
        last_seen: when the last of them was.
        examples: what some of them say.
        common_context: the circumstances that they share.
        score: how well it fits what is at hand, where that was asked.
        reasons: what that is made of.
    """

    item: MemoryItem = field(metadata=merge("id template=content path"))
    pattern_type: str = ""
    occurrences: int = 0
    confidence: float = 0.0
    first_seen: str | None = None
    last_seen: str | None = None
    examples: tuple[str, ...] = ()
    common_context: Mapping[str, Any] = field(default_factory=dict)
    score: float | None = field(default=None, metadata=OMIT)
    reasons: Mapping[str, float] = field(default_factory=dict, metadata=OMIT)

    @classmethod
    def of(cls, item: MemoryItem, hit: Hit | None = None) -> PatternRow:
        """A pattern as it is stored, and how well it fits."""
        known = {name: item.data[name] for name in _OF_A_PATTERN if name in item.data}
        if hit is not None:
            known["score"] = round(hit.score, 6)
            known["reasons"] = {name: round(value, 6) for name, value in hit.reasons.items()}
        return cls(item, **known)


def _patterns_text(found: tuple[PatternRow, ...]) -> Text:
    rows = [(f"{one.occurrences:>5,} x", f"{one.confidence:.2f}", one.pattern_type, one.item) for one in found]
    yield Table([(*figures, one_line(item.content), item.id) for *figures, item in rows], dim=(0, 1))


@verb("patterns", text=_patterns_text, key="patterns")
@click.argument("text", nargs=-1, metavar="[TEXT]...")
@click.option("--context", multiple=True, metavar="KEY=VALUE", help="A circumstance of the moment; may be repeated.")
@click.option("-n", "--limit", type=click.IntRange(1, MOST), help="At most so many: 100 of all, 5 of the fitting ones.")
@as_of
def patterns(
    text: tuple[str, ...], context: tuple[str, ...], limit: int | None, as_of: str | None
) -> tuple[PatternRow, ...]:
    """Show what several memories have in common, the most frequent first: the patterns that were accepted.

    With TEXT or --context those that fit what is at hand are shown, the best first.

    Examples:
        memfs inbox patterns
        memfs inbox patterns "create a login for the auditor" --context project=shop
    """
    from memfs.learning.learner import patterns_in

    if as_of is not None and (text or context):
        raise click.UsageError("--as-of lists what there was: it goes with no TEXT or --context")
    circumstances = dict(pair(written) for written in context)
    with opened() as workspace:
        if text or context:
            hits = workspace.patterns.suggest(" ".join(text), circumstances, limit or _SUGGESTED)
            rows, more, past = tuple(PatternRow.of(hit.item, hit) for hit in hits), 0, None
        else:
            past = past_at(workspace, as_of)
            every = workspace.patterns.all() if past is None else patterns_in(past.store.select)
            rows = tuple(map(PatternRow.of, every[: limit or (MOST if wants_json() else _SHOWN)]))
            more = len(every) - len(rows)
        further = f"; {more:,} more with --limit" if more else ""
        further = further if rows or past else "; 'memfs inbox' looks for them"
        remark(count(len(rows), "pattern") + further)
        return rows


inbox = Actions("inbox", __doc__, list_, accept, refuse, patterns)
