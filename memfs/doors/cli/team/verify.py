"""``verify``: check who signed the commits of the memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from memfs.dataclass import dataclass
from memfs.doors.cli.command import remark, verb
from memfs.doors.cli.output import Text, count, one_line, styled

if TYPE_CHECKING:
    from memfs.team.verify import CommitCheck
    from memfs.workspace import Workspace

_SHORT = 10
_GOOD = "good"


@dataclass(frozen=True, slots=True)
class VerifiedRange:
    """Who signed the commits of a range.

    Attributes:
        range: the range as it was asked for.
        good: whether all of them are good.
        commits: the commits, newest first, or those that are not good.
    """

    range: str
    good: bool
    commits: tuple[CommitCheck, ...]


def _text(checked: VerifiedRange) -> Text:
    for one in checked.commits:
        good = one.verdict == _GOOD
        verdict = styled(f"{one.verdict.value:<15}", fg="green" if good else "red", bold=not good)
        yield f"{styled(one.commit[:_SHORT], fg='yellow')}  {verdict}  {one.author}"
        yield f"    {one_line(one.subject, 100)}"
        if not good:
            yield f"    {one.reason}"


@verb("verify", text=_text, exit_code=lambda found: not found.good)
@click.argument("range", required=False, default="HEAD", metavar="[RANGE]")
@click.option(
    "--allowed-signers",
    metavar="FILE",
    type=click.Path(),
    help="Who may sign, with which key; else the file that your git setting gpg.ssh.allowedSignersFile names.",
)
@click.option("--bad", is_flag=True, help="Print only those that are not good.")
def verify(workspace: Workspace, range: str, allowed_signers: str | None, bad: bool) -> VerifiedRange:
    """Check who signed the commits that changed the memory.

    RANGE is A..B, what B has and A has not, or one revision with all that came before it; HEAD by default. A commit is
    good when its author's key signed it, or the committer's for an agent that has none. Exit code 1: not all are good,
    or it cannot be told.

    Examples:
        memfs team verify origin/main..HEAD
        memfs team verify --allowed-signers ~/team/allowed_signers
    """
    checked = workspace.teams.signatures.verify(range, allowed_signers)
    wrong = [one for one in checked if one.verdict != _GOOD]
    told = f"{count(len(checked), 'commit')}, {f'{len(wrong)} not good' if wrong else 'all good'}"
    remark(told if checked else "no commit there changes the memory")
    return VerifiedRange(range, not wrong, tuple(wrong if bad else checked))
