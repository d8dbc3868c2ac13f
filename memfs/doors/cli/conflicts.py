"""List conflicts and resolve them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from memfs.dataclass import dataclass, field
from memfs.doors.cli.command import Unclear, complete_ids, opened, remark, verb
from memfs.doors.cli.options import SOURCE, as_of, land, past_at
from memfs.doors.cli.output import Note, Text, count, day, merge, one_line, readable, styled, time_text, width
from memfs.doors.cli.parser import Actions
from memfs.errors import MemfsError

if TYPE_CHECKING:
    from memfs.model import MemoryItem, RecordedConflict
    from memfs.model.learning import Decision, Disagreement
    from memfs.team.resolve import DecisionResult, MergeOutcome, OpenConflicts, Side
    from memfs.workspace import Workspace

_ENDINGS = {
    "MERGE_HEAD": "git commit",
    "CHERRY_PICK_HEAD": "git cherry-pick --continue",
    "REVERT_HEAD": "git revert --continue",
    "REBASE_HEAD": "git rebase --continue",
}
_LONGEST = 200
_SIDES = ("ours", "theirs")
_VALUES = ("kept", "lost")


# -- list ---------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class MergedItem:
    """An item that carries conflicts of a merge.

    Attributes:
        item: of which these fields are inlined.
    """

    item: MemoryItem = field(metadata=merge("id path sha256 conflicts"))


@dataclass(frozen=True, slots=True)
class ConflictList:
    """What waits for a decision.

    Attributes:
        conflicts: memories that cannot both hold.
        left: what merges left; its fields are inlined.
        items: items that carry conflicts of a merge.
    """

    conflicts: tuple[Disagreement, ...]
    left: OpenConflicts = field(metadata=merge("waiting=count situation open documents others"))
    items: tuple[MergedItem, ...] = ()


def _list_text(found: ConflictList, scan: bool, as_of: str | None) -> Text:
    left = found.left
    for pair in found.conflicts:
        reopened = " (decided before, and edited since)" if pair.reopened else ""
        yield f"{styled(one_line(pair.reason), fg='yellow')}{reopened}"
        for item in pair.items:
            yield f"  {styled(item.id, bold=True)}  {styled(f'{day(item)} {item.trust}', dim=True)}"
            yield f"    {one_line(item.content or item.title, width() - 4 if width() else 200)}"
        yield _command(f"{' '.join(pair.ids)} --keep ID|both")
    yield from (f"{styled('open', fg='yellow')}  {one.path}  {one.what}" for one in left.open)
    if left.open:
        yield _command("--all")
        yield Note("that joins the files; a value that both sides changed is decided after it")
    for merged in found.items:
        yield from _item_text(merged.item)
    for clash in left.documents:
        last = ", ".join(filter(None, (clash.by and f"written last by {clash.by}", time_text(clash.timestamp))))
        yield f"{styled(_what(clash.field), fg='yellow')} {clash.document}" + (f"  {last}" if last else "")
        yield from _values_text(_VALUES, clash.kept, clash.lost)
        yield _command(f"{clash.path} --keep kept|lost")
    if found.conflicts or not left.count:
        more = "; '--scan' also compares what you remembered, wrote by hand or pulled"
        yield Note(count(len(found.conflicts), "conflict") + ("" if found.conflicts or scan or as_of else more))
    if left.count or left.others or left.situation:
        yield Note(_summary(left))


def _command(words: str) -> str:
    return styled(f"  memfs team conflicts resolve {words}", dim=True)


def _item_text(item: MemoryItem) -> Text:
    """The conflicts that an item carries, and the command that settles them."""
    from memfs.recall.conflict_notes import values

    for one in item.conflicts:
        merged = f"  merged {time_text(one.time)}" if one.time else ""
        yield f"{styled(_what(one.field), fg='yellow')} {styled(item.id, bold=True)}{merged}"
        for word, value, by in zip(_VALUES, values(one), ("", one.by), strict=True):
            yield f"  {styled(word, bold=True)}  {one_line(value, _LONGEST)}"
            if by:
                yield styled(f"        by {by}", dim=True)
    yield _command(f"{item.id} --keep kept|lost")


def _what(name: str) -> str:
    return f"two values of {name} in" if name else "two versions of"


def _values_text(words: Sequence[str], *values: Any) -> Text:
    for word, value in zip(words, values, strict=True):
        shown = "nothing" if value is None else readable(value)
        yield f"  {styled(word, bold=True)}  {one_line(shown, _LONGEST)}"


def _summary(left: OpenConflicts) -> str:
    summary = "nothing waits for a decision"
    if left.count:
        summary = f"{count(left.count, 'decision')} wait{'s' if left.count == 1 else ''}"
    if left.others:
        are = "is" if left.others == 1 else "are"
        summary += f"; {count(left.others, 'file')} of the merge {are} not memory: see 'git status'"
    elif not left.open and left.situation:
        summary += f"; run '{_ENDINGS[left.situation]}' to finish"
    return summary


@verb("list", text=_list_text)
@click.option("--scan", is_flag=True, help="Also look for conflicts in files written by hand or pulled.")
@as_of
def _list(scan: bool, as_of: str | None) -> ConflictList:
    """Show memories that cannot both hold, and what merges left.

    With --as-of only those pairs that a link named then.

    Examples:
        memfs team conflicts
        memfs team conflicts --scan
    """
    if as_of is not None and scan:
        raise Unclear("--scan finds present conflicts only", "leave out --scan or --as-of")
    from memfs.team.resolve import OpenConflicts  # --help does without it

    with opened() as workspace:
        if as_of is not None:
            past = past_at(workspace, as_of)
            pairs = workspace.conflicts.list_in(past.store, past.now)
            return ConflictList(tuple(pairs), OpenConflicts())
        pairs = workspace.conflicts.list(scan=scan)
        left = workspace.teams.resolver.waiting()
        return ConflictList(tuple(pairs), left, tuple(map(MergedItem, left.items)))


# -- resolve ------------------------------------------------------------------------------------------------------
def _held(pair: RecordedConflict, take: bool) -> str:
    """What a field has once that is decided, in words."""
    value = pair.lost if take else pair.kept
    if not pair.field or pair.part:
        return "the other version" if take else "as it is"
    return "empty" if value is None else f"'{one_line(readable(value), _LONGEST)}'"


@dataclass(frozen=True, slots=True)
class ConflictDecision:
    """What was decided.

    Attributes:
        kept: what was to hold, as it was said; "" where versions were joined.
        files: what became of files that git had left open.
        decided: items and documents whose fields were decided about.
        left: names that could not be decided about, and why.
        ids: the two memories of which one holds, or both do.
        changed: whether anything was written about those two.
    """

    kept: str
    files: tuple[MergeOutcome, ...] = ()
    decided: tuple[DecisionResult, ...] = ()
    left: Mapping[str, str] = field(default_factory=dict)
    ids: tuple[str, ...] = ()
    changed: bool = False


def _decision_text(done: ConflictDecision) -> Text:
    for file in done.files:
        word, why = ("left", f": {file.undecided}") if file.undecided else (file.outcome, "")
        shown = styled("yours" if word == "own" else word, fg="yellow" if file.undecided else "green")
        yield f"{shown}  {file.open.path}{why}"
        for pair in file.conflicts:
            what = "both sides changed it" if pair.field else f"{file.open.what}; the {pair.kept} version stays"
            yield f"  {pair.field or 'the item as a whole'}: {what}"
            if pair.field:
                yield from _values_text(_SIDES if file.undecided else _VALUES, pair.kept, pair.lost)
    for one in done.decided:
        take = done.kept == "lost"
        held = {pair.field or "the item as a whole": _held(pair, take) for pair in reversed(one.settled)}
        verb_of = "is now" if take else "stays"
        values = ", ".join(f"{name} {verb_of} {value}" for name, value in reversed(held.items()))
        yield f"{styled(one.id or one.path, bold=True)}: {'removed' if one.removed else values}"
    if done.ids:
        before = "" if done.changed else ", as it was decided before"
        if done.kept == "both":
            yield f"{styled('Both hold:', fg='green')} {', '.join(done.ids)}{before}"
        else:
            (lost,) = (one for one in done.ids if one != done.kept)
            yield f"{styled('Kept', fg='green')} {done.kept}; {lost} is superseded{before}"
    yield from (Note(f"{name}: {reason}") for name, reason in done.left.items())


@verb(
    "resolve", text=_decision_text, exit_code=lambda done: bool(done.left) or any(one.undecided for one in done.files)
)
@click.argument("names", nargs=-1, metavar="[ID|PATH]...", shell_complete=complete_ids)
@click.option("--all", "every", is_flag=True, help="Everything that a merge left, instead of names.")
@click.option("--keep", default="", metavar="WHAT", help="What to keep: ours, theirs, kept, lost, an ID, or both.")
@click.option("--field", metavar="NAME", help="With kept or lost: only this field, such as content or data.port.")
@click.option("--reason", default="", metavar="TEXT", help="With an ID or both: why, for the items and the commit.")
def _resolve(names: tuple[str, ...], every: bool, keep: str, field: str | None, reason: str) -> ConflictDecision:
    """Resolve a merge conflict, or choose between two contradicting memories.

    Files that git left open are joined field by field, or taken whole with --keep ours or --keep theirs; one that you
    put right yourself stays as you made it. 'git commit' then finishes the merge.

    Of a field that a merge recorded, or that two writers of a document changed, --keep kept confirms the present
    value, and --keep lost puts the other in its place.

    Of two memories, ID OTHER --keep ID keeps one: the other gets the status 'superseded'. --keep both says that they
    are compatible. It is not asked about again, until an edit makes the two contradict each other again.

    Exit code 1: something was left, and the reason is given.

    Examples:
        memfs team conflicts resolve --all
        memfs team conflicts resolve deploy-target --keep theirs
        memfs team conflicts resolve deploy-target --field content --keep lost
        memfs team conflicts resolve timeout-9s timeout-5s --keep timeout-9s --reason 'measured again'
    """
    _refuse_unfit(names, every, keep, field, reason)
    with opened() as workspace:
        if keep in _VALUES:
            return _decide(workspace, names, keep, field)
        if not keep or keep in _SIDES:
            return _finish(workspace, names, keep)
        done: Decision = workspace.conflicts.resolve(*names, keep=keep, reason=reason, source=SOURCE)
        land(workspace)
        return ConflictDecision(done.kept, ids=(done.one.id, done.other.id), changed=done.changed)


def _refuse_unfit(names: Sequence[str], every: bool, keep: str, field: str | None, reason: str) -> None:
    """Refuse what means nothing together."""
    of_two = bool(keep) and keep not in (*_SIDES, *_VALUES)
    if bool(names) == every:
        raise Unclear("name an item or a file, or say --all", "'memfs team conflicts' lists what waits")
    if of_two and (len(names) != 2 or every or keep not in (*names, "both")):
        hint = "of two memories, ID OTHER --keep ID, or both; of a merge ours, theirs, kept or lost"
        raise Unclear(f"'{keep}' is not a valid choice for --keep", hint)
    if field is not None and keep not in _VALUES:
        raise Unclear("--field goes with a recorded conflict", "add --keep kept or --keep lost")
    if reason and not of_two:
        raise Unclear("--reason goes with --keep ID and --keep both", "leave it out")


def _finish(workspace: Workspace, names: tuple[str, ...], keep: str) -> ConflictDecision:
    """Join, or take, what git left open."""
    resolver = workspace.teams.resolver
    side: Side = "ours" if keep == "ours" else "theirs" if keep == "theirs" else ""
    outcomes = resolver.finish(names, side=side)
    remark(_summary(resolver.waiting()) if outcomes else "nothing is open; 'memfs team conflicts' lists what waits")
    return ConflictDecision(keep, files=tuple(outcomes))


def _decide(workspace: Workspace, names: tuple[str, ...], keep: str, field: str | None) -> ConflictDecision:
    """Confirm, or put back, values of fields."""
    resolver, take = workspace.teams.resolver, keep == "lost"
    if not names:  # items, of one field those that have a conflict over it; else the records of documents too
        waiting = resolver.waiting()
        over = [(item.id, {one.field for one in item.conflicts}) for item in waiting.items]
        names = tuple(name for name, fields in over if field is None or field in fields)
        names += tuple(clash.path for clash in waiting.documents if field is None)
    decided, left = [], {}
    for name in dict.fromkeys(names):
        try:
            decided.append(resolver.decide(name, take=take, field=field, source=SOURCE))
        except MemfsError as error:
            if len(names) == 1:
                raise
            left[name] = str(error)
    remark("" if names else "nothing waits for a decision")
    if workspace.parts.journal.operations():
        land(workspace)
    elif (after := resolver.waiting()).situation:
        remark(_summary(after))
    return ConflictDecision(keep, decided=tuple(decided), left=left)


conflicts = Actions("conflicts", __doc__, _list, _resolve)
