"""Check a workspace for everything that may be wrong with it, and fix what can be fixed.

Each problem says what it is, where, and what to do. A fix never loses anything.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

from memfs import errors
from memfs.admin import store_builder
from memfs.admin.archive_file import archive_lock
from memfs.admin.history import RecoveryCopies
from memfs.admin.prune import PrunedItems, remove_leftovers
from memfs.admin.repair import (
    DEEP,
    Repair,
    Repairer,
    document_problems,
    lost_in_head,
    read_documents,
    read_items,
)
from memfs.config import memory_context_problems
from memfs.dataclass import dataclass, replace
from memfs.errors import UNKNOWN
from memfs.format.codec import remarks, schema_of
from memfs.format.secrets import SecretFinding, find_likely, found_in_file, reason_in_file, secret_error
from memfs.format.text import decode, shortlist
from memfs.fs.atomic_replace import is_temporary
from memfs.fs.io import NETWORK_TYPES, file_system
from memfs.git.repository import Repository, blobs_at_tips
from memfs.learning.conventions import STATUSES, Conventions
from memfs.learning.inbox import Inbox
from memfs.model import Problem
from memfs.model.kinds import nearest
from memfs.model.state_paths import SIDECAR_SUFFIX, document_kind, document_of_sidecar
from memfs.recall.conflict_notes import OVER
from memfs.store import Store, sidecars
from memfs.store.hand_edits import ROOT_FILES
from memfs.store.parts import CONTENT, ITEM_SUFFIXES, READ_LIMIT, Parts, content_at
from memfs.store.recovery import DAMAGED, REPLACED
from memfs.trust import status_of

_TOLERATED = timedelta(hours=1)


def clock(checker: Checker) -> Iterator[Problem]:
    """A warning when the last commit is of the future; where it cannot be read, those who examine history say so."""
    with suppress(errors.MemfsError):
        head = checker.parts.repository.head_commit()
        ahead = checker.parts.repository.commit_object(head).time - checker.parts.clock() if head else timedelta()
        if ahead > _TOLERATED:
            message = f"this machine's clock is {ahead / timedelta(days=1):,.1f} days behind the last commit"
            hint = "set the clock; the order of versions does not depend on it, but their dates and 'since' do"
            yield Problem.warning("", "ClockBehind", message, hint)


CHANGING = ("text", "eol", "filter", "ident", "working-tree-encoding")
_HARMLESS = ("unset", "unspecified")


def attribute_conflicts(repository: Repository, paths: Sequence[str]) -> list[errors.AttributeConflict]:
    """One error for each attribute by which git would change the bytes of one of the paths; no filter runs."""
    top = f"{repository.work_tree}/".replace("//", "/")
    names = [top + os.fsdecode(repository.full(path)) for path in paths]
    request = os.fsencode("".join(f"{name}\0" for name in names))
    tree = {"GIT_WORK_TREE": str(repository.work_tree)}
    out = repository.git.run("check-attr", "-z", "--stdin", *CHANGING, data=request, variables=tree) if names else b""
    fields = os.fsdecode(out).split("\0")[:-1]
    shown = dict(zip(names, paths, strict=True))
    return [
        errors.AttributeConflict(
            f"the git attribute {name} is {value}",
            path=shown[path],
            hint="set '-text -filter -ident -working-tree-encoding' for it in ContextMemory/.gitattributes",
        )
        for path, name, value in zip(fields[::3], fields[1::3], fields[2::3], strict=True)
        if value not in _HARMLESS
    ]


_WORDS = f"write {', '.join(STATUSES[:-1])} or {STATUSES[-1]}"
_SAME = frozenset({"agreed", "active", "approved", "adopted"})
"""What people write who mean ``accepted``."""


def statuses(checker: Checker) -> Iterator[Problem]:
    """The conventions whose status does not exist."""
    for convention in Conventions(checker.store, checker.parts.clock).every():
        if convention.status and convention.status not in (*STATUSES, *OVER):
            status = convention.status
            hint = nearest(status, STATUSES) or _WORDS
            if status in _SAME:
                hint = f"'memfs team convention accept {convention.id}', or {_WORDS}"
            yield Problem(
                path=convention.item.path,
                code="ConventionStatus",
                message=f"status: {ascii(status)[1:-1][:60]} is not a status of a convention, so agents do not see it",
                hint=hint,
            )


_YOUNG_NS = 3600 * 10**9


def references(checker: Checker) -> Iterator[Problem]:
    """Sidecars that are not here and, where every byte is read, those that are not what their documents say."""
    parts = checker.parts
    for entry in parts.tree.scan(CONTENT):
        path = entry.path
        # one that cannot be read is reported as a document
        found = content_at(parts.tree, path) if entry.regular and document_kind(path) else None
        if not found or not sidecars.holds_reference(found.data):
            continue
        data = found.data
        absent = [beside for beside in sidecars.named_in(data, path) if parts.tree.entry(beside) is None]
        for beside in absent:
            yield Problem(
                path=path,
                code="SidecarMissing",
                message=f"a value of this document is stored in {beside}, which is missing",
                hint="such files are not in git: copy it from where it was written, or from a backup or checkpoint",
            )
        if checker.deep and not absent:
            yield from (Problem.of(error, path) for error in sidecars.verify(parts, data, path))


def left(checker: Checker) -> Iterator[Problem]:
    """Sidecars that no document refers to."""
    for path in unreferred(checker.parts):
        message = "nothing refers to this file: an earlier version of its document did, or a killed writer left it"
        hint = "memfs check --fix removes it"
        yield Problem.warning(path, "LeftoverSidecar", message, hint)


def remove_left(parts: Parts) -> int:
    """Remove the sidecars that no document refers to; return how many.

    None while iterations go into an archive or come back: sidecars are there without their documents meanwhile.
    """
    with suppress(errors.LockTimeout), archive_lock(parts).hold("remove sidecars", timeout=0):
        with parts.lock.hold("remove sidecars"):
            found = unreferred(parts)
            for path in found:
                parts.tree.remove(path)
        return len(found)
    return 0


def unreferred(parts: Parts) -> list[str]:
    """Sidecars to which neither a document, nor what waits for its commit, nor the last commit of any branch refers.

    One that is younger than an hour is not among them: its document may be about to be written.
    """
    now = time.time_ns()
    return [
        entry.path
        for entry in parts.tree.scan(CONTENT)
        if entry.regular
        and entry.path.endswith(SIDECAR_SUFFIX)
        and (document := document_of_sidecar(entry.path))
        and not abs(now - entry.mtime_ns) < _YOUNG_NS  # a disk's clock may be ahead
        and not _referred_to(parts, entry.path, document)
    ]


def _referred_to(parts: Parts, sidecar: str, document: str) -> bool:
    """Whether any version of its document that may be needed refers to a sidecar; so too where history is damaged."""
    try:
        return any(sidecar in sidecars.named_in(data, document) for data in _versions(parts, document))
    except errors.HistoryError:
        return True


def _versions(parts: Parts, path: str) -> Iterator[bytes]:
    for operation in parts.journal.operations():
        yield from (change.data for change in operation.changes if change.path == path and change.data is not None)
    if found := content_at(parts.seen, path):
        yield found.data
    for blob in blobs_at_tips(parts.repository, path):
        yield parts.repository.blob(blob)


_LIKELY_SHOWN = 3


def contents(checker: Checker) -> Iterator[Problem]:
    """What only the bytes of files show: every secret that nothing allows, in them and in the last commit, and what may
    be one; in items also what is accepted but worth a look.
    """
    invalid = checker.store.problems()
    broken = {row.path for row in invalid}
    known = {(row.path, row.line) for row in invalid if row.code == errors.SecretDetected.__name__}
    committed = _committed(checker.parts)
    with checker.parts.tree.holding_folders():
        for path in sorted({*ROOT_FILES, *checker.own_paths()}):
            content = content_at(checker.parts.tree, path)
            if content is None:
                continue
            data = content.data
            if path not in broken and not schema_of(path) and checker.store.index_sync.is_item(path):
                with suppress(errors.ContentError):  # it was valid when it was looked at
                    yield from remarks(decode(data), path)
            kept = committed.pop(path, "") == content.stamp.blob
            problems = [_in_file(finding, path, kept) for finding in _unallowed(data, path)]
            yield from (problem for problem in problems if kept or (path, problem.line) not in known)
            likely = find_likely(data.decode("utf-8", "replace"))[:_LIKELY_SHOWN] if not problems else []
            for finding in likely if likely and not reason_in_file(data, path) else ():
                message = "a long word without any order may be a key or password"
                hint = "if it is one, take it out and revoke it"
                yield Problem.warning(path, "PossibleSecret", message, hint, line=finding.line)
            if not kept:
                yield from _in_head(checker.parts, path)
    for path in committed:
        yield from _in_head(checker.parts, path)


def leaked(parts: Parts, paths: Iterable[str]) -> list[str]:
    """Those of the files that hold a secret nothing allows."""
    return [path for path in paths if (found := content_at(parts.tree, path)) and _unallowed(found.data, path)]


def _unallowed(data: bytes, path: str) -> list[SecretFinding]:
    found = found_in_file(data, path)
    return found if found and not reason_in_file(data, path) else []


def _in_file(finding: SecretFinding, path: str, kept: bool) -> Problem:
    problem = Problem.of(secret_error(finding, path))
    if not kept:
        return problem
    return Problem(
        path=path,
        code=problem.code,
        message=f"{problem.message}; git has it already",
        line=problem.line,
        hint="revoke it; 'memfs admin erase' takes it out of history; or say in the file why it may stay",
    )


def _in_head(parts: Parts, path: str) -> Iterator[Problem]:
    """What the last commit still holds of a file that is gone or another one by now."""
    try:
        head = parts.repository.head().commit
        data = parts.repository.read(head, path) if head else None
    except errors.HistoryError:
        return  # reported by the look at history
    for finding in _unallowed(data, path) if data else ():
        message = f"the last commit has {finding.what} (rule {finding.rule} at line {finding.line})"
        hint = "revoke it; 'memfs admin erase' takes it out of history"
        yield Problem.warning(path, "SecretInHistory", message, hint)


def _committed(parts: Parts) -> dict[str, str]:
    """The files of the last commit by path, with their blob ids."""
    try:
        head = parts.repository.head().commit
        found = dict(parts.repository.tree(head, CONTENT)) if head else {}
        for path in ROOT_FILES:
            blob = parts.repository.head_blob(path)
            if blob is not None:
                found[path] = blob
    except errors.HistoryError:
        return {}
    return found


Examine = Callable[["Checker"], Iterable[Problem]]

ATTRIBUTES = f"{CONTENT}/.gitattributes"
_NAMED = 5
_ITEMS = (f"{CONTENT}/memories/", f"{CONTENT}/conventions/")


@dataclass(frozen=True, slots=True, kw_only=True)
class Checker:
    """Examines one workspace.

    ``backups`` names its backups, ``checkpoints`` and ``archives`` say what is wrong with these,
    ``memory_context`` is the memory context that holds, and ``embedder`` raises where that asks for an embedder that
    is not available. ``deep``: every byte is read. ``own``: our files, where they
    have been scanned already.
    """

    store: Store
    parts: Parts
    recovered: RecoveryCopies
    backups: Callable[[], Iterable[Path]] = tuple
    checkpoints: Callable[[], Iterable[Problem]] = tuple
    archives: Callable[[bool], Iterable[Problem]] = lambda deep: ()  # noqa: ARG005
    memory_context: str = ""
    embedder: Callable[[], object] = lambda: None
    deep: bool = False
    own: Sequence[str] = ()

    def check(self, *, integrity: bool = False) -> list[Problem]:
        """Every problem of the workspace, by path.

        Args:
            integrity: read every byte: items, journal, index, git's objects.

        Returns:
            With the severity ``unknown``: what could not be examined.
        """
        looking = replace(self, deep=integrity)
        if integrity:
            read_items(self.store, self.parts)
            read_documents(self.parts)
        self.store.refresh()
        looking = replace(looking, own=self.own_paths())
        found: list[Problem] = []
        for examine in (*EXAMINATIONS, *DEEP) if integrity else EXAMINATIONS:
            try:
                found.extend(examine(looking))
            except errors.MemfsError as error:
                found.append(Problem.of(error, severity=UNKNOWN))
        return sorted(dict.fromkeys(found), key=lambda problem: (problem.path, problem.line or 0, problem.code))

    def own_paths(self) -> Sequence[str]:
        """Every file of ours that is on disk."""
        return self.own or self.store.edit_finder.own_paths()

    def repair(self) -> list[Repair]:
        """Repair what can be repaired without losing anything; say of each what was done, or why it was not."""
        repairs = Repairer(self.store, self.parts).repair()
        done = []
        removed = len(remove_leftovers(self.parts))
        done += [f"removed temporary files that killed processes left: {removed}"] if removed else []
        left = remove_left(self.parts)
        done += [f"removed large values that no document refers to: {left}"] if left else []
        done += [f"rewrote {ATTRIBUTES}"] if _restore_attributes(self) else []
        done += ["installed the merge driver"] if store_builder.install_driver(self.parts.repository) else []
        if self.store.take_up(at_once=True):
            done.append("committed what was left by a process that ended before it could")
        items = self.store.reindex()
        done.append(f"rebuilt the index over {items:,} item{'s' * (items != 1)}")
        return [*repairs, *(Repair(path="", sentence=sentence, done=True) for sentence in done)]

    def item_problems(self) -> list[Problem]:
        """What is wrong with the item files: of each that is invalid, everything that can be known."""
        found: list[Problem] = []
        for problem in self.store.problems():
            path = problem.path
            data = content_at(self.parts.seen, path) if problem.code == errors.SchemaInvalid.__name__ else None
            found += [Problem.of(error, path) for error in self.parts.codec.errors(data.data, path)] if data else []
            if not found or found[-1].path != problem.path:
                found.append(problem)
        return found

    def invalid_edits(self, edited: Sequence[str] | None = None) -> list[str]:
        """Files that a person changed since the last commit and that are not valid, so that nothing commits them.

        Args:
            edited: those that were changed, where that is known; None: they are looked for.
        """
        edited = self.store.hand_edits() if edited is None else edited
        invalid = {problem.path for problem in (*self.item_problems(), *document_problems(self.parts, edited))}
        leaking = set(leaked(self.parts, edited))
        return [path for path in edited if path in invalid or path in leaking]

    def leaking_edits(self) -> list[str]:
        """Those of the edits by hand that hold what looks like a secret, so that nothing commits them."""
        return leaked(self.parts, self.store.hand_edits())


def _embedder(checker: Checker) -> Iterator[Problem]:
    try:
        checker.embedder()
    except errors.MemfsError as error:
        yield Problem.of(error)


def _unwanted(checker: Checker) -> Iterator[Problem]:
    """Files that no memory is in: temporary ones, and others that were put between the items."""
    for entry in checker.parts.tree.scan(CONTENT, hidden=True):
        name = entry.path.rpartition("/")[2]
        stray = not name.endswith(ITEM_SUFFIXES) and not is_temporary(name)
        if stray and entry.regular and entry.path.startswith(_ITEMS) and "/." not in entry.path:
            page = name.endswith((".md", ".markdown"))
            message = "only YAML and JSON files are memories, so memfs ignores this file"
            hint = f"memfs import {entry.path}, then remove it" if page else "move it elsewhere, or remove it"
            yield Problem.warning(entry.path, "NotAMemory", message, hint)
        if is_temporary(name):
            message = "a killed process left this temporary file"
            hint = "memfs check --fix removes it"
            yield Problem.warning(entry.path, "LeftoverTemporary", message, hint)


def _attributes(checker: Checker) -> Iterator[Problem]:
    if checker.parts.tree.entry(ATTRIBUTES) is None:
        message = "git could change the bytes of memory files at checkout"
        hint = "memfs check --fix writes it"
        yield Problem.warning(ATTRIBUTES, "AttributesMissing", message, hint)
    elif not _joined_by_field(checker):
        message = "git merges memory files as plain text: no attribute asks for the merge driver"
        hint = "memfs check --fix adds it"
        yield Problem.warning(ATTRIBUTES, "MergeAttributeMissing", message, hint)
    for conflict in attribute_conflicts(checker.parts.repository, checker.own_paths()):
        yield Problem.of(conflict)


def _joined_by_field(checker: Checker) -> bool:
    return store_builder.asks_for_driver(checker.parts.tree.read(ATTRIBUTES, READ_LIMIT).data)


def _history(checker: Checker) -> Iterator[Problem]:
    repository = checker.parts.repository
    head = repository.head()
    if head.damage:
        hint = f"'git reflog' names the commits it had, 'git update-ref {head.ref} COMMIT' sets it to one"
        if head.ref is None:
            hint = "write 'ref: refs/heads/BRANCH' into git's file HEAD; git itself does nothing before that"
        yield Problem(path="", code="HistoryUnavailable", message=head.damage, hint=hint)
    yield from (Problem.of(error, path) for path, error in lost_in_head(repository))


def _waiting(checker: Checker) -> Iterator[Problem]:
    pending = checker.store.pending()
    if pending.late:
        named = shortlist(pending.paths, _NAMED)
        why = f": {pending.reason}" if pending.reason else ""
        when = checker.parts.policy.when_free if pending.reason else "'memfs commit' commits them"
        message = f"writes wait for their commit: {pending.count}, to {named}{why}"
        hint = f"they are safe in the journal; {when}"
        yield Problem.warning("", "CommitsWaiting", message, hint)
    for row in checker.recovered.uncommitted():
        if row.name.startswith((DAMAGED, REPLACED)):
            continue
        message = f"a content that a change by hand displaced was set aside as {row.name}"
        hint = "'memfs restore --displaced' lists it and brings it back"
        yield Problem.warning(row.path, "Recoverable", message, hint)


def _file_system(checker: Checker) -> Iterator[Problem]:
    kind = file_system(str(checker.parts.tree.root))
    if kind in NETWORK_TYPES:
        message = f"the workspace is on a network file system ({kind}), where locks cannot be relied on"
        hint = "write from one machine only, or clone the repository on each"
        yield Problem.warning("", "SharedStorage", message, hint)


def _suggestions(checker: Checker) -> Iterator[Problem]:
    """Suggestions are kept in a file that may be damaged."""
    try:
        Inbox(checker.store, checker.parts).all()
    except (errors.CorruptRecord, errors.FormatUnsupported) as error:
        yield Problem.of(error)


EXAMINATIONS: tuple[Examine, ...] = (
    lambda checker: store_builder.format_problems(checker.parts.seen),
    lambda checker: checker.item_problems(),
    lambda checker: document_problems(checker.parts, checker.own_paths()),
    lambda checker: PrunedItems(checker.store, checker.parts).problems(),
    lambda checker: memory_context_problems(checker.parts.seen, checker.memory_context),
    statuses,
    _embedder,
    contents,
    _unwanted,
    references,
    left,
    lambda checker: checker.archives(checker.deep),
    _attributes,
    lambda checker: store_builder.driver_problems(checker.parts.repository),
    lambda checker: store_builder.ignore_problems(checker.parts.repository),
    lambda checker: store_builder.problems(checker.parts.repository),
    _history,
    _waiting,
    _suggestions,
    _file_system,
    clock,
    lambda checker: status_of(checker.parts.tree.root).problems(),
)


def _restore_attributes(checker: Checker) -> bool:
    wanted = store_builder.first_files({})[ATTRIBUTES]
    if checker.parts.tree.entry(ATTRIBUTES) is not None:
        if _joined_by_field(checker):
            return False
        present = checker.parts.tree.read(ATTRIBUTES, READ_LIMIT).data
        wanted = present + (b"" if present.endswith(b"\n") else b"\n") + store_builder.attribute_lines().encode()
    plans = checker.store.plan_restore({ATTRIBUTES: wanted})
    checker.store.carry_out(plans, "Restore the git attributes of memory files", source="check")
    return bool(plans)
