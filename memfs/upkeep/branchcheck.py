"""Branchcheck: what keeps memory of the checked-out branch from being read, and its commits from being signed.

Owns these findings; what a quarantine and a signature are is ``memfs.history``'s business.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from memfs.errors import BranchQuarantined, MemfsError
from memfs.files import ownbranch
from memfs.history.repository import Repository
from memfs.model.problem import WARNING, Problem

if TYPE_CHECKING:
    from memfs.upkeep.check import Checker


def problems(repository: Repository, agent: str = "") -> Iterator[Problem]:
    """What is to be told of the branch that is checked out.

    Args:
        agent: whose branch it is, "" for a person's.
    """
    try:
        repository.require_readable()
    except BranchQuarantined as error:
        yield Problem.of(error, severity=WARNING)
    except MemfsError as error:
        yield Problem.of(error)
    yield from _replaced_links(repository)
    try:
        yield from repository.signing.problems([agent] if agent else [])
    except MemfsError as error:
        yield Problem.of(error)


def _replaced_links(repository: Repository) -> Iterator[Problem]:
    """The working trees of code in which something else stands where the link to the memory's own branch belongs."""
    common = repository.common_dir
    if ownbranch.place_in(common) != repository.work_tree:
        return
    for place in ownbranch.replaced(common):
        yield Problem(
            path=str(place),
            code="LinkReplaced",
            message="something else stands where the link to the memory belongs: the memory is not read from it",
            hint="move what you need of it away, and remove it; the next command makes the link again",
            severity=WARNING,
        )


def examine(checker: Checker) -> Iterator[Problem]:
    """The same, for ``memfs check``."""
    yield from problems(checker.parts.repository, checker.parts.policy.agent)
