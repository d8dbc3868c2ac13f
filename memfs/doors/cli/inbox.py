"""``inbox``: show, accept and refuse what memfs suggests to remember, and what could be shared."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import click

from memfs.doors.cli.command import Unclear, opened, verb
from memfs.doors.cli.commit_report import SOURCE, land
from memfs.doors.cli.output import clean, count, item_json, note, one_line, print_json, print_raw, progress, styled
from memfs.doors.cli.private import private_folder
from memfs.doors.cli.share import print_waiting
from memfs.doors.cli.streams import is_interactive
from memfs.errors import ContentError, MemfsError
from memfs.learning.inbox import item_in, text_of
from memfs.model.ids import of_mount, without_mount
from memfs.model.item import Trust
from memfs.model.suggestion import Source, Suggestion, SuggestionDecision
from memfs.private import NAME
from memfs.recall.tokens import gist

if TYPE_CHECKING:
    from memfs.learning.learner import LearnResult
    from memfs.model import MemoryItem
    from memfs.workspace import Workspace

_SHOWN = 20
_NAMED = 3
_WHAT = {Source.PATTERN: ("memory", "memories"), Source.RULE: ("failure", "failures")}


@dataclass(frozen=True, slots=True)
class _Beside:
    """What waits in private memory: suggestions, and the items that could be shared."""

    suggestions: list[Suggestion]
    to_share: list[MemoryItem]


@verb(
    "inbox",
    example="memfs inbox\nmemfs inbox accept service-variable-listens-on-port-variable-e5ee8574\n"
    'memfs inbox accept always-use-tabs-1b0c2d3e --content "Use tabs in Makefiles"\n'
    "memfs inbox refuse service-variable",
)
@click.argument("action", type=click.Choice(["list", "accept", "refuse"]), default="list", metavar="[accept|refuse]")
@click.argument("ids", nargs=-1, metavar="[ID]...")
@click.option("--content", metavar="TEXT", help="Accept it with other words.")
@click.option("--edit", is_flag=True, help="Accept it as you change it in your editor.")
@click.option("--refused", is_flag=True, help="List what was refused.")
@click.option("-n", "--limit", type=click.IntRange(1, 10_000), default=_SHOWN, help="List at most so many; 20.")
@click.pass_context
def inbox(
    ctx: click.Context,
    /,
    action: str,
    ids: tuple[str, ...],
    content: str | None,
    edit: bool,
    refused: bool,
    limit: int,
    as_json: bool,
) -> None:
    """Show what memfs suggests to remember, with its evidence; accept or refuse it.

    Patterns in your memories, rules that failures teach, preferences that somebody was heard to have and what sessions
    leave behind wait here, outside of git, and are not recalled. 'accept' makes a memory of one, 'refuse' never
    suggests it again; accepting what was refused takes that back. An ID may be shortened.

    Suggestions of your private memory of the project are listed with them; their ids begin with 'private:', and what
    is accepted stays private. What private memory holds and nobody else has follows: 'memfs share' copies it.
    """
    _refuse_unfit(ctx, action, ids, content is not None, edit, refused)
    mount = of_mount(ids[0]) if ids else ""
    with opened(ctx) as asked, _owner(asked, mount) as workspace:
        if action == "list":
            _list(workspace, refused, limit, as_json)
            return
        names = [without_mount(one) if mount else one for one in ids]
        found = list({one.id: one for one in map(workspace.inbox.find, names)}.values())
        if action == "refuse":
            workspace.inbox.refuse(found)
            _tell_refused(found, mount, as_json)
            return
        if content is not None or edit:
            found = [_changed(workspace, found[0], content)]
        agent = workspace.parts.policy.agent  # on an agent's branch nobody else speaks
        stored = workspace.inbox.accept(found, trust="" if agent else Trust.REVIEWED.value, source=SOURCE)
        landed = land(workspace, stored[-1])
    if as_json:
        print_json({"accepted": [_stored_json(item, mount) for item in stored], **landed.json()})
        return
    for item in stored:
        print_raw(f"Accepted {styled(_named(item.id, mount), fg='green', bold=True)}")
        print_raw(f"  {clean(str(workspace.root / item.path) if mount else item.path)}")
    if landed.reason:
        note(f"stored; its commit waits: {landed.reason}")


def _refuse_unfit(
    ctx: click.Context, action: str, ids: Sequence[str], reworded: bool, edit: bool, refused: bool
) -> None:
    if action == "list" and ids:
        raise click.UsageError(f"say what to do: 'memfs inbox accept {ids[0]}', or 'refuse'", ctx)
    if action != "list" and not ids:
        raise click.UsageError(f"name what to {action}: 'memfs inbox' lists it", ctx)
    if action != "accept" and (reworded or edit):
        raise click.UsageError("--content and --edit go with 'accept'", ctx)
    if (reworded or edit) and (len(ids) > 1 or (reworded and edit)):
        raise click.UsageError("change one suggestion at a time, with --content or with --edit", ctx)
    if action != "list" and refused:
        raise click.UsageError("--refused lists: leave out the action", ctx)
    if len({of_mount(one) for one in ids}) > 1:
        raise click.UsageError("suggestions of private memory are decided about in a command of their own", ctx)


@contextmanager
def _owner(workspace: Workspace, mount: str) -> Iterator[Workspace]:
    """Whose suggestions are meant: the workspace's, or those of the private memory beside it."""
    from memfs.workspace import open_workspace

    if not mount:
        yield workspace
        return
    folder = private_folder(workspace) if mount == NAME else None
    if folder is None:
        raise Unclear(f"nothing is suggested by {mount!r}", "'memfs inbox' lists what is")
    with open_workspace(folder, watch=False, one_shot=True) as private:
        yield private


def _named(suggestion_id: str, mount: str) -> str:
    return clean(f"{mount}:{suggestion_id}" if mount else suggestion_id)


# -- listing ------------------------------------------------------------------------------------------------------
def _list(workspace: Workspace, refused: bool, limit: int, as_json: bool) -> None:
    learned = _learn(workspace)
    beside = _beside(workspace, refused)
    every = [(one, "") for one in _told(workspace, refused)] + [(one, NAME) for one in beside.suggestions]
    shown = every[:limit]
    if as_json:
        to_share = list(map(item_json, beside.to_share[:limit]))
        facts = {"suggestions": [_json_of(*one) for one in shown], "count": len(every), "to_share": to_share}
        print_json({**facts, "to_share_count": len(beside.to_share)})
        return
    for one, mount in shown:
        whose = "  from private" if mount else ""
        print_raw(f"{styled(one.source.value, dim=True)}  {styled(one_line(gist(one.item), 100), bold=True)}")
        print_raw(f"  {_named(one.id, mount)}{styled(whose, dim=True)}")
        print_raw(f"  {_evidence(one)}")
    further = f"; {len(every) - limit:,} more with --limit" if len(every) > limit else ""
    told = count(len(every), "suggestion")
    note(f"{told} {'were' if len(every) != 1 else 'was'} refused{further}" if refused else f"{told}{further}")
    if shown and not refused:
        note("'memfs inbox accept ID' makes a memory of one, 'memfs inbox refuse ID' never suggests it again")
    if learned is not None and learned.written:
        note(f"{count(len(learned.written), 'pattern')} written, as learning.patterns says")
    if beside.to_share:
        print_waiting(beside.to_share, limit)
        note("'memfs share ID' copies one into this workspace, 'memfs share ID --keep-private' takes it off this list")


def _told(workspace: Workspace, refused: bool) -> list[Suggestion]:
    """The suggestions that wait, or those that were refused."""
    box = workspace.inbox
    return [one for one in box.all() if one.decision is SuggestionDecision.REFUSED] if refused else box.waiting()


def _beside(workspace: Workspace, refused: bool) -> _Beside:
    """What waits in private memory; what keeps it from being read is said, and hides nothing else."""
    from memfs.learning.share import waiting
    from memfs.workspace import open_workspace

    folder = private_folder(workspace)
    if folder is None:
        return _Beside([], [])
    try:
        with open_workspace(folder, watch=False, one_shot=True) as private:
            return _Beside(_told(private, refused), [] if refused else waiting(private.store))
    except MemfsError as error:
        note(f"private memory was not read: {clean(str(error))}")
        return _Beside([], [])


def _learn(workspace: Workspace) -> LearnResult | None:
    """Learn from what is new; what keeps that from being done is said, and hides nothing that waits."""
    try:
        with progress("Learning") as step:
            learned = workspace.learner.run(progress=step)
        land(workspace, None)
    except MemfsError as error:
        note(f"nothing was learned: {clean(str(error))}")
        return None
    return learned


def _evidence(one: Suggestion) -> str:
    named = ", ".join(map(clean, one.evidence[:_NAMED]))
    more = len(one.evidence) - _NAMED
    listed = f"{named} and {more:,} more" if more > 0 else named
    counted = count(one.count, *_WHAT[one.source]) if one.source in _WHAT else ""
    told = " ".join(filter(None, (counted, clean(one.reason))))
    return ": ".join(filter(None, (told, listed))) or "said once"


def _json_of(one: Suggestion, mount: str) -> dict[str, Any]:
    return {
        "id": f"{mount}:{one.id}" if mount else one.id,
        "source": one.source.value,
        "type": one.item.type,
        "title": one.item.title,
        "content": one.item.content,
        "data": dict(one.item.data),
        "count": one.count,
        "evidence": list(one.evidence),
        "reason": one.reason,
        "made": one.made.isoformat(),
        "decision": one.decision.value,
    }


# -- deciding -----------------------------------------------------------------------------------------------------
def _tell_refused(found: Sequence[Suggestion], mount: str, as_json: bool) -> None:
    if as_json:
        print_json({"refused": [_named(one.id, mount) for one in found]})
        return
    for one in found:
        print_raw(f"Refused {_named(one.id, mount)}: it is not suggested again")


def _stored_json(item: MemoryItem, mount: str) -> dict[str, Any]:
    return {"id": _named(item.id, mount), "type": item.type, "path": item.path, "sha256": item.sha256}


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
            note(clean(error.sentence))
            if not is_interactive() or not click.confirm("Edit again?", default=True, err=True):
                print_raw(written if written != before else "")
                raise
