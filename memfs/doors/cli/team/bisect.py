"""``bisect``: find the commit that broke an answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from memfs.doors.cli.answer_diff import culprit_json, head_line, remarks, whose
from memfs.doors.cli.command import Unclear, opened, verb
from memfs.doors.cli.output import clean, count, note, print_json, print_raw, styled
from memfs.model.query import MOST

if TYPE_CHECKING:
    from memfs.team.bisect import BisectResult, Broke

_SHOWN = 20
_COLOURS = {"added": "green", "changed": "yellow", "removed": "red"}


@verb(
    "bisect",
    example='memfs team bisect --good v1.0 --expect "which database => use-postgresql"\n'
    'memfs team bisect --good "3 weeks ago" --bad HEAD --expect "deploy => deploy-by-tag" --limit 3\n'
    'memfs team bisect --good HEAD~40 --expect "tabs or spaces => !use-tabs" --json',
)
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
@click.pass_context
def bisect(
    ctx: click.Context, /, good: str, bad: str, expected: tuple[str, ...], limit: int | None, as_json: bool
) -> None:
    """Find the commit that broke an answer, and say whose it is.

    Both ends are asked first; then the commits between them that changed the memory are halved, each asked with the
    full ranking as it was. Commits that cannot be read are passed over. Nothing is checked out or changed.
    """
    from memfs.errors import QueryInvalid  # --help does without these
    from memfs.model import Query
    from memfs.team.bisect import Expectation

    def tell(left: int, steps: int) -> None:
        note(f"{count(left, 'commit')} left, about {count(steps, 'step')}")

    with opened(ctx) as workspace:
        asked = Query(limit=limit or workspace.settings.recall.limit)
        try:
            expectations = [Expectation.read(text, asked) for text in expected]
        except QueryInvalid as error:
            raise Unclear.of(error, "--expect") from error
        found = workspace.teams.bisect.find(expectations, good, bad, tell)
    if as_json:
        print_json(_json(found))
    else:
        _print(found)
    for sentence in found.notes:
        note(sentence)


def _print(found: BisectResult) -> None:
    culprit = found.culprit
    print_raw(f"{styled('broken by', fg='red')} {head_line(culprit.revision)}")
    for line in filter(None, (whose(culprit), *remarks(culprit))):
        print_raw(f"  {line}")
    for one in found.answers:
        if one.broken:
            print_raw(f"  {clean(str(one.expectation))}")
            print_raw(f"    before  {_listed(one.before)}")
            print_raw(f"    after   {_listed(one.after)}")
    for what, path in found.changes[:_SHOWN]:
        print_raw(f"  {styled(f'{what:<7}', fg=_COLOURS[what])} {clean(path)}")
    if len(found.changes) > _SHOWN:
        print_raw(f"  and {count(len(found.changes) - _SHOWN, 'more file')}")
    name = culprit.revision.short
    note(f"'memfs diff {name}^ {name}' shows the change, 'memfs undo --commit {name}' takes it back")


def _listed(ids: tuple[str, ...]) -> str:
    return clean(", ".join(ids[:5])) + (" ..." if len(ids) > 5 else "") if ids else "nothing"


def _json(found: BisectResult) -> dict[str, Any]:
    return {
        "good": found.good,
        "bad": found.bad,
        "steps": found.culprit.steps,
        **culprit_json(found.culprit),
        "changes": [{"what": what, "path": path} for what, path in found.changes],
        "expectations": [_expectation_json(one) for one in found.answers],
    }


def _expectation_json(one: Broke) -> dict[str, Any]:
    return {
        "expect": str(one.expectation),
        "broken": one.broken,
        "before": list(one.before),
        "after": list(one.after),
    }
