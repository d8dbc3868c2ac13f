"""Convention check: conventions with a status that means nothing, so that no agent is told of them.

Owns that warning and its words. Which conventions hold is ``memfs.pipeline.conventions``' business.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from memfs.model import Problem
from memfs.model.kinds import nearest
from memfs.pipeline.conventions import ACCEPTED, STATUSES, Convention, Conventions
from memfs.pipeline.disputes import OVER

if TYPE_CHECKING:
    from memfs.upkeep.check import Checker

_WORDS = f"write {', '.join(STATUSES[:-1])} or {STATUSES[-1]}"
_SAME = frozenset({"agreed", "active", "approved", "adopted"})
"""What people write who mean ``accepted``."""


def statuses(checker: Checker) -> Iterator[Problem]:
    """The conventions whose status is none of those there are (K8)."""
    for one in Conventions(checker.store, checker.parts.clock).every():
        if one.status and one.status not in (*STATUSES, *OVER):
            yield _problem(one)


def _problem(one: Convention) -> Problem:
    meant = ACCEPTED if one.status in _SAME else ""
    hint = f"'memfs convention accept {one.id}', or {_WORDS}" if meant else nearest(one.status, STATUSES) or _WORDS
    return Problem(
        path=one.item.path,
        code="ConventionStatus",
        message=f"status: {ascii(one.status)[1:-1][:60]} is no status of a convention, so no agent is told of it",
        hint=hint,
    )
