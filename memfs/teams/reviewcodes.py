"""Review codes: the names of what a review finds, how grave each is, and what it means.

Owns the table alone; the pages hold it against theirs. What an error class names keeps that name and is an error.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from memfs.errors import MemfsError
from memfs.model.problem import ERROR, WARNING, Problem
from memfs.teams.reviewvalues import NOTE, Finding

CODES: Mapping[str, tuple[str, str]] = {
    "AnswerBroken": (ERROR, "an expected memory is no longer among the answers to a pinned question"),
    "AnswerMissing": (WARNING, "an expected memory is not among the answers to a pinned question, nor was it before"),
    "AttributesChanged": (WARNING, "git attributes changed: git may then change the bytes of memory files"),
    "ConflictMarkers": (ERROR, "a merge left its markers in a file"),
    "Contradiction": (WARNING, "two memories cannot both hold"),
    "DuplicateId": (ERROR, "two files have one id"),
    "HiddenInstruction": (ERROR, "a memory gives orders to whoever reads it, in place of a fact"),
    "HistoryNotRead": (NOTE, "the change has more commits than are looked through one by one"),
    "InstructionQuoted": (NOTE, "a memory quotes such orders, or warns of them"),
    "LinkInMemory": (ERROR, "a link or submodule stands where a memory file belongs"),
    "MergeConflict": (WARNING, "a merge kept one of two values, and nobody decided yet"),
    "NearDuplicate": (WARNING, "two memories say nearly the same"),
    "NotCompared": (NOTE, "the change has more memories than are compared with the others"),
    "NotLookedInto": (WARNING, "a packed or binary file, of which nobody sees what it holds"),
    "OriginMismatch": (WARNING, "a memory names another agent than the commit that brings it"),
    "OverBudget": (WARNING, "what is always loaded has no room in its budget any more"),
    "PinnedRemoved": (WARNING, "a pinned memory goes"),
    "PossibleSecret": (NOTE, "a long word without any order may be a key or password"),
    "QuestionsNotAsked": (WARNING, "the pinned questions could not be asked"),
    "ReferenceUnknown": (WARNING, "a memory names another one that is not there"),
    "Repeated": (WARNING, "a memory says what another one says already"),
    "SecretAllowed": (WARNING, "a secret stays, for a reason that the file gives"),
    "SecretInHistory": (ERROR, "a commit of the change has a secret that the last one has not"),
    "SettingPersonal": (WARNING, "a setting counts only for those who trust the workspace"),
    "SuspectName": (ERROR, "a file's name holds characters that nobody sees"),
    "TrustClaimed": (WARNING, "an agent's commit says that a person stands behind a memory"),
    "TrustRaised": (WARNING, "somebody else stands behind a memory than before, who counts for more"),
    "UnknownFile": (WARNING, "a file below ContextMemory that memfs does not know"),
    "Unmerged": (ERROR, "a merge is not finished: the index has several versions of a file"),
}  # fmt: skip
"""By code its severity, and what it means."""


def finding(name: str, message: str, *, severity: str = "", **where: Any) -> Finding:
    """A finding of the table; ``severity`` only where this one is less grave than the table says."""
    return Finding(severity=severity or CODES[name][0], code=name, message=message, **where)


def of_error(error: MemfsError, path: str) -> Finding:
    """What an error says of a file."""
    return of_problem(Problem.of(error, path), path)


def of_problem(problem: Problem, path: str) -> Finding:
    """A problem as a finding."""
    severity = problem.severity if problem.severity in (ERROR, WARNING) else NOTE
    return Finding(
        severity=severity, code=problem.code, message=problem.message, path=path, line=problem.line, hint=problem.hint
    )
