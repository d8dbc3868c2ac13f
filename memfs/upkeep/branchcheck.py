"""Branchcheck: what keeps memory of the checked-out branch from being read, and its commits from being signed.

Owns these findings; what a quarantine and a signature are is ``memfs.history``'s business.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from memfs.errors import BranchQuarantined, MemfsError
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
    try:
        yield from repository.signing.problems([agent] if agent else [])
    except MemfsError as error:
        yield Problem.of(error)


def examine(checker: Checker) -> Iterator[Problem]:
    """The same, for ``memfs check``."""
    yield from problems(checker.parts.repository, checker.parts.policy.agent)
