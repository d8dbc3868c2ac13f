"""How the answer to a question differs between two revisions, and the commits that changed it.

A culprit, the commit that changed an answer, is shown here for every verb that names one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from memfs.doors.cli.command import Unclear
from memfs.doors.cli.output import TEXT_ONLY, Note, as_json, clean, count, merge, one_line, styled

if TYPE_CHECKING:
    from datetime import datetime

    from memfs.git.log import Revision
    from memfs.model import MemoryItem, Query
    from memfs.team.answer_diff import AnswerChange, Difference
    from memfs.team.answers import PlacedHit, RevisionAnswer
    from memfs.team.culprit import Culprit
    from memfs.workspace import Workspace

_BROUGHT = 5


@dataclass(frozen=True, slots=True)
class AnswerEnd:
    """One of two answers.

    Attributes:
        commit: the commit that was asked.
        time: when it was made.
        hits: ids of what it found, best first.
    """

    commit: str
    time: datetime
    hits: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RankedItem:
    """An item in one of two answers.

    Attributes:
        rank: its place, from 1.
        score: what it was ranked by.
        item: of which these fields stand beside the others.
    """

    rank: int
    score: float
    item: MemoryItem = field(metadata=merge("title content status path"))

    @classmethod
    def of(cls, placed: PlacedHit | None) -> RankedItem | None:
        """Where an item stands; None where it is in no answer."""
        return None if placed is None else cls(placed.rank, round(placed.score, 6), placed.item)


@dataclass(frozen=True, slots=True)
class ChangeAuthor:
    """The commit that changed an answer, and whose it is.

    Attributes:
        commit: the commit.
        agent: whose it is.
        session: of which session.
        source: through which door it was written.
        or_earlier: commits right before it that cannot be read: one of them may have done it.
        brought: of a merge, the commits of the line that it joined.
        taken_back: whether only the older revision has that commit.
    """

    commit: Revision
    agent: str
    session: str
    source: str
    or_earlier: tuple[str, ...]
    brought: tuple[Revision, ...]
    taken_back: bool


@dataclass(frozen=True, slots=True)
class ChangedHit:
    """An item whose place or text differs.

    Attributes:
        id: its id.
        kind: `came`, `went`, `moved`, `changed` or `slid`.
        before: its place in the older answer; null where it was in none.
        after: its place in the newer one.
        fields: what it says otherwise.
        by: the commit that did it; null where none can be named.
    """

    id: str
    kind: str
    before: RankedItem | None
    after: RankedItem | None
    fields: tuple[str, ...]
    by: ChangeAuthor | None

    @classmethod
    def of(cls, change: AnswerChange) -> ChangedHit:
        """What became of an item."""
        by = None
        if (one := change.by) is not None:
            agent, session, source = (", ".join(values) for values in (one.agents, one.sessions, one.sources))
            by = ChangeAuthor(
                one.revision, agent, session, source, one.or_earlier, one.brought, taken_back=change.taken_back
            )
        places = (RankedItem.of(change.before), RankedItem.of(change.after))
        return cls(change.id, change.fate.value, *places, change.fields, by)


@dataclass(frozen=True, slots=True)
class ComparedAnswers:
    """How an answer differs from one revision to another.

    Attributes:
        query: what was asked.
        older: the older answer.
        newer: the newer one.
        now: what counted as the present in both.
        same: whether they are the same.
        changes: what differs.
        difference: all of it.
        waiting: how many writes are in no revision yet.
    """

    query: str
    older: AnswerEnd
    newer: AnswerEnd
    now: datetime
    same: bool
    changes: tuple[ChangedHit, ...]
    difference: Difference = field(metadata=TEXT_ONLY)
    waiting: int = field(metadata=TEXT_ONLY)


def culprit_json(culprit: Culprit) -> dict[str, Any]:
    """A culprit as scripts read it: the commit, whose it is, and what is not certain of it."""
    return {
        "commit": as_json(culprit.revision),
        "agent": ", ".join(culprit.agents),
        "session": ", ".join(culprit.sessions),
        "source": ", ".join(culprit.sources),
        "or_earlier": list(culprit.or_earlier),
        "brought": [as_json(one) for one in culprit.brought],
    }


def head_line(revision: Revision) -> str:
    """A commit on one line: its id, when, by whom, and what it says."""
    head = f"{styled(revision.short, fg='yellow')} {styled(f'{revision.time:%Y-%m-%d}', dim=True)}"
    return f"{head} {clean(revision.author)}: {one_line(revision.subject, 0)}"


def whose(culprit: Culprit) -> str:
    """By which agent, in which session, through which door; "" where the commit names none."""
    named = (("agent", culprit.agents), ("session", culprit.sessions), ("through", culprit.sources))
    return clean(", ".join(f"{word} {' and '.join(values)}" for word, values in named if values))


def remarks(culprit: Culprit) -> list[str]:
    """What is to be known of how it was found: what it joined, and which commits could not be read."""
    found = []
    if culprit.brought:
        shown = [head_line(one) for one in culprit.brought[:_BROUGHT]]
        more = len(culprit.brought) - _BROUGHT
        found.append("it joined a line on which that never held:")
        found += [f"  {line}" for line in shown] + ([f"  and {count(more, 'more commit')}"] if more > 0 else [])
    if culprit.or_earlier:
        names = ", ".join(one[:10] for one in culprit.or_earlier[:_BROUGHT])
        found.append(f"or one of those before it that could not be read: {names}")
    return found


_COLOURS = {"came": "green", "went": "red", "moved": "cyan", "changed": "yellow", "slid": "white"}
_TEXTS = ("title", "content", "status")


def revisions_of(written: str) -> tuple[str, str]:
    """The two revisions of ``A..B``; ``A`` and ``A..`` mean up to the last commit.

    Raises:
        Unclear: there is no first one, or the dots are three.
    """
    older, _, newer = written.partition("..")
    if not older.strip() or newer.startswith("."):
        raise Unclear(f"--diff: {written!r} does not name two revisions", "write A..B, such as HEAD~5..HEAD")
    return older.strip(), newer.strip() or "HEAD"


def compared(workspace: Workspace, asked: Query, written: str) -> ComparedAnswers:
    """How the answer to a question differs from one revision to another."""
    older, newer = revisions_of(written)
    found = workspace.teams.answers.between(asked, older, newer)
    first, last = (AnswerEnd(one.commit, one.time, one.ids) for one in (found.older, found.newer))
    changes = tuple(map(ChangedHit.of, found.changes))
    waiting = workspace.store.pending().count if newer == "HEAD" else 0
    return ComparedAnswers(asked.text, first, last, found.now, not changes, changes, found, waiting)


def compared_text(answers: ComparedAnswers) -> Iterator[str | Note]:
    """The same for people."""
    difference = answers.difference
    counted = styled(_counted(difference), bold=True)
    yield f"{_end(difference.older)} .. {_end(difference.newer)}  {counted}"
    for change in difference.changes:
        if change.fate != "slid":
            yield ""
            yield from _change_text(change)
    if slid := [one for one in difference.changes if one.fate == "slid"]:
        yield ""
        yield f"slid     {', '.join(f'{clean(one.id)} {_ranks(one)}' for one in slid)}"
    yield from map(Note, difference.notes)
    if answers.waiting:
        yield Note(f"{count(answers.waiting, 'write')} not committed yet, and not in it; 'memfs commit' commits them")


def _end(answer: RevisionAnswer) -> str:
    return f"{styled(answer.commit[:10], fg='yellow')} ({answer.time:%Y-%m-%d})"


def _counted(difference: Difference) -> str:
    kinds = [change.fate.value for change in difference.changes]
    told = ", ".join(f"{kinds.count(kind)} {kind}" for kind in _COLOURS if kind in kinds)
    return told or f"the same answer: {count(len(difference.newer.ids), 'hit')}"


def _ranks(change: AnswerChange) -> str:
    ranks = [one.rank for one in (change.before, change.after) if one is not None]
    return " -> ".join(map(str, dict.fromkeys(ranks)))


def _change_text(change: AnswerChange) -> Iterator[str]:
    item = (change.after or change.before).item  # type: ignore[union-attr]
    word = styled(f"{change.fate.value:<8}", fg=_COLOURS[change.fate.value])
    said = one_line(item.title or item.content, 60)
    yield f"{word} {styled(clean(change.id), bold=True)}  {_ranks(change)}  {said}"
    for line in _texts(change):
        yield f"         {line}"
    if change.by is None:
        yield f"         {styled('no commit can be named', dim=True)}"
        return
    back = " (only the older revision has it)" if change.taken_back else ""
    yield f"         by {head_line(change.by.revision)}{back}"
    for line in filter(None, (whose(change.by), *remarks(change.by))):
        yield f"            {line}"


def _texts(change: AnswerChange) -> list[str]:
    if change.before is None or change.after is None or not change.fields:
        return []
    lines = []
    for name in change.fields:
        if name in _TEXTS:
            old, new = (one_line(getattr(one.item, name), 50) for one in (change.before, change.after))
            lines.append(f"{name}: {old or '-'} -> {new or '-'}")
    others = [name for name in change.fields if name not in (*_TEXTS, "updated")]
    return [*lines, *([f"also {', '.join(others)}"] if others else [])]
