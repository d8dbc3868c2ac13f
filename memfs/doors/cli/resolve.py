"""``resolve``: list what a merge could not decide, and decide it; and what ``status`` says of that."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from memfs.doors.cli.command import complete_ids, opened, verb
from memfs.doors.cli.commit_report import SOURCE, land
from memfs.doors.cli.output import (
    clean,
    conflict_values,
    count,
    note,
    one_line,
    plain,
    print_json,
    print_raw,
    readable,
    styled,
    time_text,
)
from memfs.doors.cli.team.blame import written_by
from memfs.errors import MemfsError
from memfs.model.conflict import DocumentClash

if TYPE_CHECKING:
    from memfs.model import MemoryItem, RecordedConflict
    from memfs.team.blame import LearnedFrom
    from memfs.team.decisions import DecisionResult, DecisionRule
    from memfs.team.open_merges import MergeOutcome, Side
    from memfs.team.resolve import OpenConflicts
    from memfs.workspace import Workspace

_ENDINGS = {
    "MERGE_HEAD": "git commit",
    "CHERRY_PICK_HEAD": "git cherry-pick --continue",
    "REVERT_HEAD": "git revert --continue",
    "REBASE_HEAD": "git rebase --continue",
}
_REFUSED = 1
_SHORT = 10
_LONGEST = 200


@verb(
    "resolve",
    example="memfs resolve\nmemfs resolve --all\nmemfs resolve deploy-target --theirs\n"
    "memfs resolve deploy-target --field content --take\nmemfs resolve deploy-target --keep",
)
@click.argument("names", nargs=-1, metavar="[ID|PATH]...", shell_complete=complete_ids)
@click.option("--all", "every", is_flag=True, help="Everything that waits, instead of names.")
@click.option("--ours", is_flag=True, help="Of what git left open: take our version whole.")
@click.option("--theirs", is_flag=True, help="Of what git left open: take their version whole.")
@click.option("--keep", is_flag=True, help="Of a recorded conflict: the value that stands is right.")
@click.option("--take", is_flag=True, help="Of a recorded conflict: put back the value that gave way.")
@click.option("--field", metavar="NAME", help="With --keep or --take: only this field, such as content or data.port.")
@click.option(
    "--number", metavar="N", type=click.IntRange(min=1), help="With --keep or --take: only the N-th conflict."
)
@click.option("--dry-run", is_flag=True, help="Tell what would be done, and do nothing.")
@click.pass_context
def resolve(
    ctx: click.Context,
    names: tuple[str, ...],
    every: bool,
    ours: bool,
    theirs: bool,
    keep: bool,
    take: bool,
    field: str | None,
    number: int | None,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Decide what a merge could not, and finish it.

    Without a name it lists what waits. With names, or --all, it joins the versions that git left open, field by field
    as the merge driver does; 'git commit' then finishes the merge.
    Where both sides changed one field to different values, one stands and the other is recorded: --keep confirms the
    one that stands, --take puts the other in its place.
    """
    _refuse_unfit(ctx, [ours, theirs, keep, take])
    side: Side = "ours" if ours else "theirs" if theirs else ""
    with opened(ctx) as workspace:
        if not (names or every):
            _list(workspace, as_json)
        elif keep or take:
            refused = _decide(workspace, names, _ruling(take, field, number), dry_run, as_json)
            ctx.exit(_REFUSED if refused else 0)
        else:
            refused = _finish(workspace, names, side, dry_run, as_json)
            ctx.exit(_REFUSED if refused else 0)


def _refuse_unfit(ctx: click.Context, ways: Sequence[bool]) -> None:
    """Refuse options that mean nothing together. ``ways``: --ours, --theirs, --keep, --take."""
    given = ctx.params
    deciding, meant = any(ways[2:]), bool(given["names"] or given["every"])
    if sum(ways) > 1:
        raise click.UsageError("choose one of --ours, --theirs, --keep and --take", ctx)
    if given["field"] is not None and not deciding:
        raise click.UsageError("--field goes with --keep or --take", ctx)
    if given["number"] is not None and (len(given["names"]) != 1 or not deciding):
        raise click.UsageError("--number goes with one ID, and --keep or --take", ctx)
    if (given["names"] and given["every"]) or (not meant and (any(ways) or given["dry_run"])):
        raise click.UsageError("name what is meant, or say --all", ctx)


# -- what waits ---------------------------------------------------------------------------------------------------
def _list(workspace: Workspace, as_json: bool) -> None:
    waiting = workspace.teams.resolver.waiting()
    if as_json:
        print_json(_waiting_json(workspace, waiting))
        return
    for one in waiting.open:
        print_raw(f"{styled('open', fg='yellow')}  {clean(one.path)}  {one.what}")
    if waiting.open:
        print_raw(styled("  memfs resolve --all", dim=True))
    for item in waiting.items:
        print_recorded(workspace, item)
    for clash in waiting.documents:
        last = ", ".join(filter(None, (clash.by and f"written last by {clash.by}", time_text(clash.timestamp))))
        print_raw(f"{styled(_what(clash), fg='yellow')} {clean(clash.document)}" + (f"  {last}" if last else ""))
        print_values({"kept": clash.kept, "lost": clash.lost})
        print_raw(styled(f"  memfs resolve {clean(clash.path)} --keep|--take", dim=True))
    for record in waiting.spooled:
        print_raw(
            f"{styled('two values of ' + clean(str(record['field'])), fg='yellow')} in {clean(str(record['document']))}"
            ", to be decided when the merge is over"
        )
    note(_summary(waiting))


def print_recorded(workspace: Workspace, item: MemoryItem) -> None:
    """Print the conflicts that an item carries, who wrote which value and when, and the command that settles them."""
    for number, one in enumerate(item.conflicts, 1):
        counted = f"{number}. " if len(item.conflicts) > 1 else ""
        merged = f"  merged {time_text(one.time)}" if one.time else ""
        print_raw(f"{counted}{styled(_what(one), fg='yellow')} {styled(item.id, bold=True)}{merged}")
        kept, lost = workspace.teams.blame.writers(item, one)
        named = (_by(kept), _by(lost) or one.by)
        for word, value, by in zip(("kept", "lost"), conflict_values(one, _LONGEST), named, strict=True):
            print_raw(f"  {styled(word, bold=True)}  {value}")
            if by:
                print_raw(styled(f"        by {by}", dim=True))
    numbered = " [--number N]" if len(item.conflicts) > 1 else ""
    print_raw(styled(f"  memfs resolve {item.id} --keep|--take{numbered}", dim=True))


def _by(one: LearnedFrom | None) -> str:
    """Who wrote a value, when, and in which commit; "" where the history does not tell."""
    if one is None:
        return ""
    return ", ".join(filter(None, (written_by(one), time_text(one.time), one.commit[:_SHORT] or "not committed")))


def _what(one: RecordedConflict | DocumentClash) -> str:
    return f"two values of {clean(one.field)} in" if one.field else "two versions of"


def print_values(values: Mapping[str, Any]) -> None:
    """Print values below each other, each behind its word."""
    for word, value in values.items():
        shown = "nothing" if value is None else readable(value)
        print_raw(f"  {styled(word, bold=True)}  {one_line(shown, _LONGEST)}")


def _summary(waiting: OpenConflicts) -> str:
    if not waiting.count:
        told = "nothing waits for a decision"
    else:
        told = f"{count(waiting.count, 'decision')} wait{'s' if waiting.count == 1 else ''}"
    if waiting.others:
        told += f"; {count(waiting.others, 'file')} of the merge {_are(waiting.others)} not memory: see 'git status'"
    elif not waiting.open and waiting.situation:
        told += f"; '{_ENDINGS[waiting.situation]}' finishes what git began"
    return told


def _are(number: int) -> str:
    return "is" if number == 1 else "are"


def merges_facts(workspace: Workspace) -> dict[str, Any]:
    """For 'status': what merges left to decide, and whether git joins memory files field by field here."""
    from memfs.admin import merge_driver_setup

    try:
        waiting = workspace.teams.resolver.waiting().count
    except MemfsError:  # git's files cannot be read: 'check' says why
        waiting = 0
    return {"merges": {"waiting": waiting, "driver": merge_driver_setup.installed(workspace.repository)}}


def merges_row(facts: Mapping[str, Any]) -> dict[str, str]:
    """The row of 'status', left out where there is nothing to say."""
    merges, told = facts["merges"], []
    if merges["waiting"]:
        told.append(f"{count(merges['waiting'], 'decision')} waiting ('memfs resolve')")
    if not merges["driver"]:
        told.append("as plain text: the merge driver is not installed ('memfs init')")
    return {"merges": "; ".join(told)} if told else {}


# -- ending merges ------------------------------------------------------------------------------------------------
def _finish(workspace: Workspace, names: tuple[str, ...], side: Side, dry_run: bool, as_json: bool) -> bool:
    resolver = workspace.teams.resolver
    outcomes = resolver.finish(names, side=side, dry_run=dry_run)
    _tell_outcomes(outcomes, dry_run, as_json)
    if not as_json:
        if not outcomes:
            note("nothing is open; 'memfs resolve' lists what waits")
        elif not dry_run:
            note(_summary(resolver.waiting()))
    return any(one.undecided for one in outcomes)


def _tell_outcomes(outcomes: Sequence[MergeOutcome], dry_run: bool, as_json: bool) -> None:
    if as_json:
        print_json({"dry_run": dry_run, "files": [_outcome_json(one) for one in outcomes]})
        return
    for one in outcomes:
        _print_outcome(one, dry_run)


def _print_outcome(one: MergeOutcome, dry_run: bool) -> None:
    path = clean(one.open.path)
    if one.undecided:
        print_raw(f"{styled('left', fg='yellow')}  {path}: {clean(one.undecided)}")
        for conflict in one.conflicts:
            print_raw(f"  {clean(conflict.field)}: both sides changed it")
            print_values({"ours": conflict.kept, "theirs": conflict.lost})
        return
    word = "yours" if one.own else _became(one)
    print_raw(f"{styled(f'would be {word}' if dry_run else word, fg='green')}  {path}")
    for conflict in one.conflicts:
        print_raw(f"  {clean(conflict.field) or 'the item as a whole'}: both sides changed it")
        print_values({"kept": conflict.kept, "lost": conflict.lost})


def _became(one: MergeOutcome) -> str:
    return "removed" if one.data is None else one.side or "joined"


def _outcome_json(one: MergeOutcome) -> dict[str, Any]:
    return {
        "path": one.open.path,
        "what": one.open.what,
        "outcome": "left" if one.undecided else "own" if one.own else _became(one),
        "reason": one.undecided,
        "conflicts": [
            {"field": conflict.field, "kept": plain(conflict.kept), "lost": plain(conflict.lost)}
            for conflict in one.conflicts
        ],
    }


# -- deciding -----------------------------------------------------------------------------------------------------
def _ruling(take: bool, field: str | None, number: int | None) -> DecisionRule:
    from memfs.team.decisions import DecisionRule

    return DecisionRule(take=take, field=field, number=number or 0)


def _decide(workspace: Workspace, names: tuple[str, ...], ruling: DecisionRule, dry_run: bool, as_json: bool) -> bool:
    resolver = workspace.teams.resolver
    names = names or _waiting_names(resolver.waiting(), ruling.field)
    decided: list[DecisionResult | DocumentClash] = []
    left: dict[str, str] = {}
    for name in dict.fromkeys(names):
        try:
            decided.append(resolver.decide(name, ruling, source=SOURCE, dry_run=dry_run))
        except MemfsError as error:
            if len(names) == 1:
                raise
            left[name] = str(error)
    waits = "" if dry_run else land(workspace, None).reason
    if as_json:
        chosen = "take" if ruling.take else "keep"
        print_json({"dry_run": dry_run, "chosen": chosen, "decided": [_decided_json(one) for one in decided]})
    else:
        _print_decided(decided, ruling.take, dry_run)
        if not decided and not left:
            note("nothing waits for a decision")
        if waits:
            note(f"stored; its commit waits: {waits}")
    for name, reason in left.items():
        note(clean(f"{name}: {reason}"))
    return bool(left)


def _waiting_names(waiting: OpenConflicts, field: str | None) -> tuple[str, ...]:
    """What --all means: items, of one field those that have a conflict over it; else the records of documents too."""
    carrying = [item.id for item in waiting.items if field is None or field in {one.field for one in item.conflicts}]
    aside = {clash.path: clash for clash in waiting.documents if field is None or field == clash.field}
    return (*carrying, *(path for path, clash in aside.items() if field is None or path == clash.document))


def _print_decided(decided: Sequence[DecisionResult | DocumentClash], take: bool, dry_run: bool) -> None:
    for one in decided:
        name, fields = _told(one)
        would = "would stand" if dry_run else "stands"
        value = f"the value that gave way {would}" if take else f"the value that is there {would}"
        removed = not isinstance(one, DocumentClash) and one.removed
        outcome = f"{'would be ' if dry_run else ''}removed" if removed else f"{value} for {clean(fields)}"
        print_raw(f"{styled(name, bold=True)}: {outcome}")


def _told(one: DecisionResult | DocumentClash) -> tuple[str, str]:
    if isinstance(one, DocumentClash):
        return clean(one.document), one.field
    return one.id, ", ".join(dict.fromkeys(conflict.field or "the item as a whole" for conflict in one.settled))


def _decided_json(one: DecisionResult | DocumentClash) -> dict[str, Any]:
    if isinstance(one, DocumentClash):
        return {"record": one.path, "path": one.document, "fields": [one.field]}
    fields = [conflict.field for conflict in one.settled]
    sha256 = one.item.sha256 if one.item else None
    return {"id": one.id, "path": one.path, "fields": fields, "sha256": sha256, "removed": one.removed}


# -- for programs -------------------------------------------------------------------------------------------------
def _waiting_json(workspace: Workspace, waiting: OpenConflicts) -> dict[str, Any]:
    return {
        "waiting": waiting.count,
        "situation": waiting.situation,
        "open": [{"path": one.path, "what": one.what} for one in waiting.open],
        "items": [recorded_json(workspace, item) for item in waiting.items],
        "documents": [
            {"record": one.path, "document": one.document, "field": one.field, "kept": plain(one.kept)}
            | {"lost": plain(one.lost), "by": one.by, "time": time_text(one.timestamp)}
            for one in waiting.documents
        ],
        "spooled": [dict(record) for record in waiting.spooled],
        "others": waiting.others,
    }


def recorded_json(workspace: Workspace, item: MemoryItem) -> dict[str, Any]:
    """An item's conflicts with who wrote which value, as scripts read them."""
    return {
        "id": item.id,
        "path": item.path,
        "sha256": item.sha256,
        "conflicts": [
            {
                "field": one.field,
                "kept": plain(one.kept),
                "lost": plain(one.lost),
                "lost_sha256": one.lost_sha256,
                "part": one.part,
                "by": one.by,
                "time": time_text(one.time),
                "kept_by": _by_json(kept),
                "lost_by": _by_json(lost),
            }
            for one in item.conflicts
            for kept, lost in (workspace.teams.blame.writers(item, one),)
        ],
    }


def _by_json(one: LearnedFrom | None) -> dict[str, Any] | None:
    if one is None:
        return None
    facts = {"author": one.author, "agent": one.agent, "session": one.session}
    return {**facts, "time": time_text(one.time), "commit": one.commit}
