"""The clock: whether this machine's can be right.

Owns comparing it with the newest times that are known. Nothing in memfs depends on the outcome: versions are ordered by
revision, waiting writes by their place in the journal (faults row 31).
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from memfs.errors import MemfsError
from memfs.model import Problem
from memfs.model.problem import WARNING

if TYPE_CHECKING:
    from memfs.upkeep.check import Checker

_TOLERATED = timedelta(hours=1)


def clock(checker: Checker) -> Iterator[Problem]:
    """A warning when what was written last lies in the future."""
    behind = max(_times(checker), default=checker.parts.clock()) - checker.parts.clock()
    if behind > _TOLERATED:
        yield Problem(
            path="",
            code="ClockBehind",
            message=f"this machine's clock is {_words(behind)} behind the newest version",
            hint="set the clock; the order of versions does not depend on it, but their dates and 'since' do",
            severity=WARNING,
        )


def _times(checker: Checker) -> Iterator[datetime]:
    repository = checker.parts.repository
    try:
        head = repository.head_commit()
        if head is not None:
            yield repository.commit_object(head).time
    except MemfsError:
        pass  # said by those who examine history
    for operation in checker.parts.journal.operations():
        yield datetime.fromtimestamp(operation.time, UTC)


def _words(length: timedelta) -> str:
    if length.days >= 730:
        return f"{length.days // 365} years"
    return f"{length.days} days" if length.days > 1 else f"{length.total_seconds() / 3600:.0f} hours"
