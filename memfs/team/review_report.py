"""The values that a review's report consists of, and the table of its findings with their severities."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from memfs.errors import MemfsError
from memfs.model.problem import ERROR, WARNING, Problem

NOTE = "note"
"""Worth knowing; it fails nothing."""
SEVERITIES = (ERROR, WARNING, NOTE)
ADDED, CHANGED, MOVED, SUPERSEDED, REMOVED, ARCHIVED, RETURNED = (
    "added", "changed", "moved", "superseded", "removed", "archived", "returned",
)  # fmt: skip
KINDS_OF_CHANGE = (ADDED, CHANGED, SUPERSEDED, MOVED, REMOVED, ARCHIVED, RETURNED)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewFinding:
    """One thing a reviewer should know.

    Attributes:
        severity: ``error`` (fails the check), ``warning`` (fails it where that is asked for) or ``note``.
        code: its stable name; an error's class name where an error was behind it.
        message: what was found, in a sentence.
        path: the file, below the workspace; "" where it is about none.
        line: 1-based, None where there is none.
        id: the item it is about, "" where there is none.
        other: a second item, such as the one that says otherwise.
        hint: what to do.
    """

    severity: str
    code: str
    message: str
    path: str = ""
    line: int | None = None
    id: str = ""
    other: str = ""
    hint: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldChange:
    """One field that differs: its dotted name, and its plain values; None where it was or is not there."""

    field: str
    before: Any = None
    after: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemChange:
    """What became of one item.

    Attributes:
        what: ``added``, ``changed``, ``moved``, ``superseded``, ``removed``, ``archived`` or ``returned``.
        id, type, title: of the item as it is, or as it was where it is gone.
        text: what it says; "" where its file cannot be read.
        path: where it lies, or lay.
        before: where it lay before, "" where that is the same or it was not there.
        by: the item that replaces a superseded one, "" where none says so.
        trust: who vouches for it.
        origin: who said it, by part.
        fields: what differs, in the order of the file; none for what was added or is gone.
    """

    what: str
    id: str
    type: str
    path: str
    title: str = ""
    text: str = ""
    before: str = ""
    by: str = ""
    trust: str = ""
    origin: Mapping[str, Any] = field(default_factory=dict)
    fields: tuple[FieldChange, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ConventionChange:
    """A convention whose standing changed: its status, "" where it was or is not there; who owns it, where it holds."""

    id: str
    before: str
    after: str
    text: str = ""
    owner: str = ""
    scope: tuple[str, ...] = ()
    supersedes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewedDocument:
    """A file that is no item, such as settings or a state document: what became of it, and its keys that differ."""

    what: str
    path: str
    fields: tuple[FieldChange, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AnsweredQuestion:
    """How the answer to a pinned question changes.

    Attributes:
        ask: the question.
        expect: ids that must be among the answers.
        before, after: ids of the answers, best first; ``before`` is None where it could not be asked then.
        missing: expected ids that are not among the answers any more, or still not.
        changed: ids whose text differs in the two answers.
    """

    ask: str
    after: tuple[str, ...]
    before: tuple[str, ...] | None = None
    expect: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()

    @property
    def differs(self) -> bool:
        """Whether the two answers are not the same."""
        return bool(self.changed) or (self.before is not None and self.before != self.after)


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What a change does to memory.

    Attributes:
        base, head: the commits that were compared; ``head`` is "" for what is staged, ``base`` where there is none.
        title: what was asked for, such as ``main..work``.
        prefix: the workspace's folder below the top of its repository, "" where that is the same.
        items, conventions, documents: what changed.
        findings: what a reviewer should know, the worst first.
        questions: the pinned questions.
        commits: how many commits the change consists of.
    """

    base: str
    head: str
    title: str
    prefix: str = ""
    items: tuple[ItemChange, ...] = ()
    conventions: tuple[ConventionChange, ...] = ()
    documents: tuple[ReviewedDocument, ...] = ()
    findings: tuple[ReviewFinding, ...] = ()
    questions: tuple[AnsweredQuestion, ...] = ()
    commits: int = 0

    @property
    def empty(self) -> bool:
        """Whether nothing of memory changed."""
        return not (self.items or self.documents or self.findings)

    def count(self, severity: str) -> int:
        """How many findings of a severity there are."""
        return sum(found.severity == severity for found in self.findings)

    def failed(self, *, strict: bool = False) -> bool:
        """Whether the change must not go in as it is: there are errors, or, where strict, warnings."""
        return bool(self.count(ERROR) or (strict and self.count(WARNING)))


def in_order(found: list[ReviewFinding]) -> tuple[ReviewFinding, ...]:
    """Findings, the worst first, each once."""
    rank = {severity: number for number, severity in enumerate(SEVERITIES)}
    unique = dict.fromkeys(found)
    return tuple(sorted(unique, key=lambda one: (rank[one.severity], one.path, one.line or 0, one.code, one.other)))


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
    "NotAsked": (WARNING, "the memory could not be asked: neither questions nor other memories were compared"),
    "NotCompared": (NOTE, "the change has more memories than are compared with the others"),
    "NotLookedInto": (WARNING, "a packed or binary file, of which nobody sees what it holds"),
    "OriginMismatch": (WARNING, "a memory names another agent than the commit that brings it"),
    "PinnedRemoved": (WARNING, "a pinned memory goes"),
    "PossibleSecret": (NOTE, "a long word without any order may be a key or password"),
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


def finding(name: str, message: str, *, severity: str = "", **where: Any) -> ReviewFinding:
    """A finding of the table; ``severity`` only where this one is less grave than the table says."""
    return ReviewFinding(severity=severity or CODES[name][0], code=name, message=message, **where)


def of_error(error: MemfsError, path: str) -> ReviewFinding:
    """What an error says of a file."""
    return of_problem(Problem.of(error, path), path)


def of_problem(problem: Problem, path: str) -> ReviewFinding:
    """A problem as a finding."""
    severity = problem.severity if problem.severity in (ERROR, WARNING) else NOTE
    return ReviewFinding(
        severity=severity, code=problem.code, message=problem.message, path=path, line=problem.line, hint=problem.hint
    )
