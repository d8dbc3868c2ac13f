"""``bisect``: find the commit that broke an answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from memfs.dataclass import dataclass, field
from memfs.doors.cli.answer_diff import head_line, remarks, whose
from memfs.doors.cli.command import verb
from memfs.doors.cli.output import Note, Text, count, merge, note, styled
from memfs.model import Query
from memfs.model.query import MOST

if TYPE_CHECKING:
    from memfs.team.bisect import BisectResult
    from memfs.workspace import Workspace

_SHOWN = 20
_COLOURS = {"added": "green", "changed": "yellow", "removed": "red"}


@dataclass(frozen=True, slots=True)
class ChangedPath:
    """A file that the commit changed, against its first parent.

    Attributes:
        what: `added`, `changed` or `removed`.
        path: the file.
    """

    what: str
    path: str


@dataclass(frozen=True, slots=True)
class BrokenAnswer:
    """The commit that broke an answer.

    Attributes:
        found: of which these fields stand beside the others.
        agent: whose it is.
        session: of which session.
        source: through which door it was written.
        changes: the files that it changed.
    """

    found: BisectResult = field(
        metadata=merge(
            "good bad steps=culprit.steps commit=culprit.revision or_earlier=culprit.or_earlier "
            "brought=culprit.brought expectations=answers"
        )
    )
    agent: str
    session: str
    source: str
    changes: tuple[ChangedPath, ...]

    @classmethod
    def of(cls, found: BisectResult) -> BrokenAnswer:
        """What was found."""
        culprit = found.culprit
        agent, session, source = map(", ".join, (culprit.agents, culprit.sessions, culprit.sources))
        return cls(found, agent, session, source, tuple(ChangedPath(*pair) for pair in found.changes))


def _text(broken: BrokenAnswer) -> Text:
    culprit = broken.found.culprit
    yield f"{styled('broken by', fg='red')} {head_line(culprit.revision)}"
    for line in filter(None, (whose(culprit), *remarks(culprit))):
        yield f"  {line}"
    for one in broken.found.answers:
        if one.broken:
            yield f"  {one.expect}"
            yield f"    before  {_listed(one.before)}"
            yield f"    after   {_listed(one.after)}"
    for change in broken.changes[:_SHOWN]:
        yield f"  {styled(f'{change.what:<7}', fg=_COLOURS[change.what])} {change.path}"
    if (more := len(broken.changes) - _SHOWN) > 0:
        yield f"  and {count(more, 'more file')}"
    name = culprit.revision.short
    yield Note(f"'memfs diff {name}^ {name}' shows the change, 'memfs undo --commit {name}' takes it back")
    yield from map(Note, broken.found.notes)


def _listed(ids: tuple[str, ...]) -> str:
    return ", ".join(ids[:5]) + (" ..." if len(ids) > 5 else "") if ids else "nothing"


@verb("bisect", text=_text)
@click.option("--good", required=True, metavar="REV", help="A commit, tag or date at which every expectation was met.")
@click.option("--bad", default="HEAD", show_default=True, metavar="REV", help="One at which an expectation is not met.")
@click.option(
    "--expect",
    "expected",
    multiple=True,
    required=True,
    metavar="'QUERY => ID'",
    help="The item that a question brings; '=> !ID': must not bring. May be repeated.",
)
@click.option("-n", "--limit", type=click.IntRange(1, MOST), help="Among so many hits; 'recall.limit' by default.")
def bisect(workspace: Workspace, good: str, bad: str, expected: tuple[str, ...], limit: int | None) -> BrokenAnswer:
    """Find the commit that broke an answer, and say whose it is.

    Both ends are asked first; then the commits between them that changed the memory are halved, each asked with the
    full ranking as it was. Commits that cannot be read are passed over. Nothing is checked out or changed. Exit code
    2: an end is not what it is said to be.

    Examples:
        memfs team bisect --good v1.0 --expect "which database => use-postgresql"
        memfs team bisect --good "3 weeks ago" --bad HEAD --expect "deploy => deploy-by-tag" --limit 3
        memfs team bisect --good HEAD~40 --expect "tabs or spaces => !use-tabs" --json
    """
    from memfs.team.bisect import Expectation

    def tell(left: int, steps: int) -> None:
        note(f"{count(left, 'commit')} left, about {count(steps, 'step')}")

    asked = Query(limit=limit or workspace.settings.recall.limit)
    expectations = [Expectation.read(text, asked) for text in expected]
    return BrokenAnswer.of(workspace.teams.bisect.find(expectations, good, bad, tell))
