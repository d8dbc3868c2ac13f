"""How the answer to a question differs between two revisions, and the commits that changed it.

A culprit, the commit that changed an answer, is shown here for every verb that names one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from memfs.dataclass import dataclass, field
from memfs.doors.cli.command import Unclear, remark
from memfs.doors.cli.output import Text, count, merge, one_line, styled

if TYPE_CHECKING:
    from memfs.git.log import Revision
    from memfs.model import Query
    from memfs.team.bisect import AnswerChange, Culprit, Difference, RevisionAnswer
    from memfs.workspace import Workspace

_BROUGHT = 5


@dataclass(frozen=True, slots=True)
class ComparedAnswers:
    """How an answer differs from one revision to another.

    Attributes:
        query: what was asked.
        difference: of which these fields stand beside the others.
        same: whether they are the same.
    """

    query: str
    difference: Difference = field(metadata=merge("older newer now changes"))
    same: bool


def head_line(revision: Revision) -> str:
    """A commit on one line: its id, when, by whom, and what it says."""
    head = f"{styled(revision.short, fg='yellow')} {styled(f'{revision.time:%Y-%m-%d}', dim=True)}"
    return f"{head} {revision.author}: {one_line(revision.subject, 0)}"


def whose(culprit: Culprit) -> str:
    """By which agent, in which session, through which door; "" where the commit names none."""
    named = (("agent", culprit.agents), ("session", culprit.sessions), ("through", culprit.sources))
    return ", ".join(f"{word} {' and '.join(values)}" for word, values in named if values)


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
    for text in found.notes:
        remark(text)
    if newer == "HEAD" and (waiting := workspace.store.pending().count):
        remark(f"{count(waiting, 'write')} not committed yet, and not in it; 'memfs commit' commits them")
    return ComparedAnswers(asked.text, found, not found.changes)


def compared_text(answers: ComparedAnswers) -> Text:
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
        yield f"slid     {', '.join(f'{one.id} {_ranks(one)}' for one in slid)}"


def _end(answer: RevisionAnswer) -> str:
    return f"{styled(answer.commit[:10], fg='yellow')} ({answer.time:%Y-%m-%d})"


def _counted(difference: Difference) -> str:
    kinds = [change.fate.value for change in difference.changes]
    told = ", ".join(f"{kinds.count(kind)} {kind}" for kind in _COLOURS if kind in kinds)
    return told or f"the same answer: {count(len(difference.newer.ids), 'hit')}"


def _ranks(change: AnswerChange) -> str:
    ranks = [one.rank for one in (change.before, change.after) if one is not None]
    return " -> ".join(map(str, dict.fromkeys(ranks)))


def _change_text(change: AnswerChange) -> Text:
    item = (change.after or change.before).item  # type: ignore[union-attr]
    word = styled(f"{change.fate.value:<8}", fg=_COLOURS[change.fate.value])
    said = one_line(item.title or item.content, 60)
    yield f"{word} {styled(change.id, bold=True)}  {_ranks(change)}  {said}"
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
