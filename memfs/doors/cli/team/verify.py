"""``verify``: check who signed the commits of the memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from memfs.doors.cli.command import opened, verb
from memfs.doors.cli.output import clean, count, note, one_line, print_json, print_raw, styled, time_text

if TYPE_CHECKING:
    from memfs.team.verify import CommitCheck

_SHORT = 10
_GOOD = "good"


@verb(
    "verify",
    example="memfs team verify origin/main..HEAD\nmemfs team verify --allowed-signers ~/team/allowed_signers\n"
    "memfs team verify v1.0..HEAD --json",
)
@click.argument("range", required=False, default="HEAD", metavar="[RANGE]")
@click.option(
    "--allowed-signers",
    metavar="FILE",
    type=click.Path(),
    help="Who may sign, with which key; else the file that your git setting gpg.ssh.allowedSignersFile names.",
)
@click.option("--bad", is_flag=True, help="Print only those that are not good.")
@click.pass_context
def verify(ctx: click.Context, range: str, allowed_signers: str | None, bad: bool, as_json: bool) -> int:
    """Check who signed the commits that changed the memory.

    RANGE is A..B, what B has and A has not, or one revision with all that came before it; HEAD by default. A commit is
    good when its author's key signed it, or the committer's for an agent that has none. Exit code 1: not all are good.
    """
    with opened(ctx) as workspace:
        checked = workspace.teams.signatures.verify(range, allowed_signers)
    wrong = [one for one in checked if one.verdict != _GOOD]
    shown = wrong if bad else checked
    if as_json:
        print_json({"range": range, "good": not wrong, "commits": [_json(one) for one in shown]})
    else:
        for one in shown:
            _print(one)
        _sum_up(checked, wrong)
    return 1 if wrong else 0


def _json(one: CommitCheck) -> dict[str, Any]:
    return {
        "commit": one.commit,
        "verdict": one.verdict.value,
        "principals": list(one.principals),
        "reason": one.reason,
        "author": one.author,
        "committer": one.committer,
        "agent": one.agent,
        "session": one.session,
        "time": time_text(one.time),
        "subject": one.subject,
    }


def _print(one: CommitCheck) -> None:
    good = one.verdict == _GOOD
    verdict = styled(f"{one.verdict.value:<15}", fg="green" if good else "red", bold=not good)
    print_raw(f"{styled(one.commit[:_SHORT], fg='yellow')}  {verdict}  {clean(one.author)}")
    print_raw(f"    {clean(one_line(one.subject, 100))}")
    if not good:
        print_raw(f"    {clean(one.reason)}")


def _sum_up(checked: Sequence[CommitCheck], wrong: Sequence[CommitCheck]) -> None:
    if not checked:
        note("no commit there changes the memory")
        return
    found = count(len(checked), "commit")
    note(f"{found}, all good" if not wrong else f"{found}, {len(wrong)} not good")
