"""From what a person types to one commit.

Owns which texts name a revision or a date. Nothing a person types reaches git where git could take it for an option:
revisions go to its input, dates become numbers.
"""

from __future__ import annotations

from datetime import UTC, datetime

from memfs.errors import GitFailed, HistoryUnavailable
from memfs.history.git import GitCommands
from memfs.model.time import parse_until, parse_when

_LONGEST = 250
_HINT = "give a commit, a branch, HEAD~2, a date such as 2026-03-01 or an age such as '3 days ago'"


def resolve(git: GitCommands, text: str, now: datetime) -> str:
    """The commit that a revision or date names.

    A date means the newest commit of HEAD's own line that is not younger; a day means the end of it.

    Raises:
        HistoryUnavailable: there is no such commit.
    """
    wanted = text.strip()
    if not wanted or len(wanted) > _LONGEST or not wanted.isprintable() or wanted.startswith("-"):
        raise HistoryUnavailable(f"{ascii(text)[:80]} does not name a revision", hint=_HINT)
    commit = _commit(git, wanted)
    if commit:
        return commit
    moment = parse_moment(wanted, now, end=True)
    if moment is None:
        raise HistoryUnavailable(f"there is no revision {wanted!a}", hint=_HINT)
    return _before(git, moment, wanted)


def parse_moment(text: str, now: datetime, *, end: bool = False) -> datetime | None:
    """The point in time of a text such as ``2026-03-01``, ``7d``, ``3 days ago``, ``yesterday``; None for others.

    Args:
        end: a day means its end, else its beginning.
    """
    try:
        return (parse_until if end else parse_when)(text, now)
    except (ValueError, OverflowError):
        return None


def _commit(git: GitCommands, text: str) -> str | None:
    request = f"{text}^{{commit}}\n".encode("utf-8", "surrogateescape")
    try:
        answer = git.run("cat-file", "--batch-check", data=request).decode("utf-8", "replace").rsplit(maxsplit=2)
    except GitFailed as error:
        _, fatal, reason = error.message.partition("fatal: ")
        if not fatal:
            raise
        raise HistoryUnavailable(f"{text!a} names no revision: {reason}", hint=_HINT) from error
    return answer[0] if len(answer) == 3 and answer[1] == "commit" else None


def _before(git: GitCommands, moment: datetime, text: str) -> str:
    seconds = int(moment.astimezone(UTC).timestamp())
    if seconds >= 0 and _commit(git, "HEAD"):
        found = git.run("rev-list", "--first-parent", "--max-count=1", f"--min-age={seconds}", "HEAD").decode().strip()
        if found:
            return found
    raise HistoryUnavailable(f"the history has no commit before {text!a}", hint="see memfs log for its beginning")
