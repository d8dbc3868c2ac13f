"""Show a commit that changed an answer, as text and as JSON, the same way for every verb that names one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from memfs.doors.cli.history import revision_json
from memfs.doors.cli.output import clean, count, one_line, styled

if TYPE_CHECKING:
    from memfs.git.log import Revision
    from memfs.team.culprit import Culprit

_BROUGHT = 5


def culprit_json(culprit: Culprit) -> dict[str, Any]:
    """A culprit as scripts read it: the commit, whose it is, and what is not certain of it."""
    return {
        "commit": revision_json(culprit.revision),
        "agent": ", ".join(culprit.agents),
        "session": ", ".join(culprit.sessions),
        "source": ", ".join(culprit.sources),
        "or_earlier": list(culprit.or_earlier),
        "brought": [revision_json(one) for one in culprit.brought],
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
