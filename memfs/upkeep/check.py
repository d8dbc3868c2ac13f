"""Check: everything that is wrong with a workspace, and its repair.

Owns the list of checks. Each names what it found, where, and what to do; a repair never loses anything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from memfs.errors import CorruptRecord, FormatUnsupported, HistoryError, MemfsError, SchemaInvalid
from memfs.files.mounts import NETWORK_TYPES, file_system
from memfs.files.placing import is_temporary
from memfs.history.attributes import attribute_conflicts
from memfs.model import Problem
from memfs.model.problem import UNKNOWN, WARNING
from memfs.pipeline.inbox import Inbox
from memfs.store import Store
from memfs.store.documents import schema_of
from memfs.store.parts import CONTENT, ITEM_SUFFIXES, READ_LIMIT, Parts
from memfs.store.setaside import DAMAGED, REPLACED
from memfs.trust import standing
from memfs.upkeep import archivecheck, branchcheck, conventioncheck, leaks, mergedriver, sidecarcheck
from memfs.upkeep import integrity as every
from memfs.upkeep.clock import clock
from memfs.upkeep.contextfile import memory_context_problems
from memfs.upkeep.format import problems as format_problems
from memfs.upkeep.layout import files
from memfs.upkeep.pruned import Pruned
from memfs.upkeep.recovered import Recovered
from memfs.upkeep.repair import Repairer

Examine = Callable[["Checker"], Iterator[Problem]]

ATTRIBUTES = f"{CONTENT}/.gitattributes"
_NAMED = 5
_ITEMS = (f"{CONTENT}/memories/", f"{CONTENT}/conventions/")
_TOO_MANY_FOR_WHOOSH = 200_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Checker:
    """Examines one workspace.

    ``backups`` names its backups, ``checkpoints`` reads its checkpoints and says what is wrong with them,
    ``memory_context`` is the memory context that holds, and ``embedder`` raises where that asks for an embedder that
    cannot be had.
    """

    store: Store
    parts: Parts
    recovered: Recovered
    backups: Callable[[], Iterable[Path]] = tuple
    checkpoints: Callable[[], Iterable[Problem]] = tuple
    memory_context: str = ""
    embedder: Callable[[], object] = lambda: None

    def check(self, *, fix: bool = False, integrity: bool = False) -> list[Problem]:
        """Every problem of the workspace, by path.

        Args:
            fix: repair first what can be repaired without losing anything: damaged files and records, temporary files
                that were left over, a stale index, missing git attributes.
            integrity: read every byte: items, journal, index, git's objects.

        Returns:
            With the severity ``unknown``: what could not be examined.
        """
        if fix:
            self.repair()
        found = self._examined(every.BEFORE) if integrity else []
        if integrity:
            every.read_items(self.store, self.parts)
            every.read_documents(self.parts)
        self.store.refresh()
        deep = (*every.EXAMINATIONS, sidecarcheck.damaged, archivecheck.payloads, _checkpoints) if integrity else ()
        found += self._examined((*EXAMINATIONS, *deep))
        return sorted(dict.fromkeys(found), key=lambda problem: (problem.path, problem.line or 0, problem.code))

    def _examined(self, examinations: tuple[Examine, ...]) -> list[Problem]:
        found: list[Problem] = []
        for examine in examinations:
            try:
                found.extend(examine(self))
            except MemfsError as error:
                found.append(Problem.of(error, severity=UNKNOWN))
        return found

    def repair(self) -> list[str]:
        """Repair what can be repaired without losing anything; say in a sentence each what was done."""
        repaired = Repairer(self.store, self.parts).repair(deep=False)
        done = [f"{row.path}: {row.sentence}".removeprefix(": ") for row in repaired if row.done]
        removed = _remove_leftovers(self)
        done += [f"removed {removed} temporary file(s) that a killed process left"] if removed else []
        left = sidecarcheck.remove_left(self.parts)
        done += [f"removed {left} large value(s) that no document refers to"] if left else []
        if _restore_attributes(self):
            done.append(f"wrote {ATTRIBUTES} anew")
        if mergedriver.install(self.parts.repository):
            done.append("installed the merge driver")
        if self.store.take_up(at_once=True):
            done.append("committed what was left by a process that ended before it could")
        return [*done, f"built the index anew over {self.store.reindex()} item(s)"]

    def item_problems(self) -> list[Problem]:
        """What is wrong with the item files: of each that is invalid, everything that can be known."""
        found: list[Problem] = []
        for problem in self.store.problems():
            found += self._faults(problem.path) if problem.code == SchemaInvalid.__name__ else ()
            if not found or found[-1].path != problem.path:
                found.append(problem)
        return found

    def _faults(self, path: str) -> list[Problem]:
        try:
            data = self.parts.seen.read(path, READ_LIMIT).data
        except (FileNotFoundError, MemfsError):
            return []
        return [Problem.of(error, path) for error in self.parts.codec.errors(data, path)]

    def invalid_edits(self) -> list[str]:
        """Files that a person changed since the last commit and that are not valid, so that nothing commits them."""
        invalid = {problem.path for examine in (_items, _documents) for problem in examine(self)}
        edited = self.store.hand_edits()
        leaking = set(leaks.leaking(self.parts, edited))
        return [path for path in edited if path in invalid or path in leaking]

    def leaking_edits(self) -> list[str]:
        """Those of the edits by hand that hold what looks like a secret, so that nothing commits them."""
        return leaks.leaking(self.parts, self.store.hand_edits())


def _items(checker: Checker) -> Iterator[Problem]:
    yield from checker.item_problems()


def _warnings(checker: Checker) -> Iterator[Problem]:
    parts = checker.parts
    broken = {problem.path for problem in checker.store.problems()}
    for path in checker.store.edits.own_paths():
        if schema_of(path) or path in broken or not checker.store.following.is_item(path):
            continue
        try:
            content = parts.tree.read(path, READ_LIMIT)
            modified = datetime.fromtimestamp(content.stamp.mtime_ns / 1e9, UTC)
            _, warnings = parts.codec.read_with_warnings(content.data, path, modified)
        except FileNotFoundError:
            continue
        yield from warnings


def _documents(checker: Checker) -> Iterator[Problem]:
    yield from every.document_problems(checker.store, checker.parts)


def _archived(checker: Checker) -> Iterator[Problem]:
    yield from Pruned(checker.store, checker.parts).problems()


def _memory_contexts(checker: Checker) -> Iterator[Problem]:
    yield from memory_context_problems(checker.parts.seen, checker.memory_context)


def _embedder(checker: Checker) -> Iterator[Problem]:
    try:
        checker.embedder()
    except MemfsError as error:
        yield Problem.of(error)


def _unwanted(checker: Checker) -> Iterator[Problem]:
    """Files that no memory is in: temporary ones, and others that somebody put between the items."""
    for entry in checker.parts.tree.scan(CONTENT, hidden=True):
        name = entry.path.rpartition("/")[2]
        if entry.regular and entry.path.startswith(_ITEMS) and "/." not in entry.path and _is_stray(name):
            page = name.endswith((".md", ".markdown"))
            yield Problem(
                path=entry.path,
                code="NotAMemory",
                message="only YAML and JSON files are memories, so nobody reads this one",
                hint=f"memfs import {entry.path}, then remove it" if page else "move it elsewhere, or remove it",
                severity=WARNING,
            )
        if is_temporary(name):
            yield Problem(
                path=entry.path,
                code="LeftoverTemporary",
                message="a killed process left this temporary file",
                hint="memfs check --fix removes it",
                severity=WARNING,
            )


def _is_stray(name: str) -> bool:
    return not name.endswith(ITEM_SUFFIXES) and not is_temporary(name)


def _attributes(checker: Checker) -> Iterator[Problem]:
    if checker.parts.tree.entry(ATTRIBUTES) is None:
        yield Problem(
            path=ATTRIBUTES,
            code="AttributesMissing",
            message="git could change the bytes of memory files at checkout",
            hint="memfs check --fix writes it",
            severity=WARNING,
        )
    elif not _joined_by_field(checker):
        yield Problem(
            path=ATTRIBUTES,
            code="MergeAttributeMissing",
            message="git joins memory files as plain text: no attribute asks for the merge driver",
            hint="memfs check --fix adds it",
            severity=WARNING,
        )
    for conflict in attribute_conflicts(checker.parts.repository, checker.store.edits.own_paths()):
        yield Problem.of(conflict)


def _joined_by_field(checker: Checker) -> bool:
    return mergedriver.asks_for_driver(checker.parts.tree.read(ATTRIBUTES, READ_LIMIT).data)


def _merge_driver(checker: Checker) -> Iterator[Problem]:
    yield from mergedriver.problems(checker.parts.repository)


def _history(checker: Checker) -> Iterator[Problem]:
    repository = checker.parts.repository
    head = repository.head()
    if head.damage:
        yield Problem(path="", code="HistoryUnavailable", message=head.damage, hint=_head_hint(head.ref))
    if head.commit is None:
        return
    for path, blob in repository.tree(head.commit, CONTENT).items():
        try:
            repository.blob(blob)
        except HistoryError as error:
            yield Problem.of(error, path)


def _head_hint(ref: str | None) -> str:
    if ref is None:
        return "write 'ref: refs/heads/BRANCH' into git's file HEAD; git itself does nothing before that"
    return f"'git reflog' names the commits it had, 'git update-ref {ref} COMMIT' sets it to one"


def _waiting(checker: Checker) -> Iterator[Problem]:
    pending = checker.store.pending()
    if pending.late:
        more = len(pending.paths) - _NAMED
        named = ", ".join(pending.paths[:_NAMED]) + (f" and {more} more" if more > 0 else "")
        why = f": {pending.reason}" if pending.reason else ""
        when = "memfs commits them when that is over" if pending.reason else "'memfs commit' commits them"
        yield Problem(
            path="",
            code="CommitsWaiting",
            message=f"{pending.count} write(s) wait for their commit{why} ({named})",
            hint=f"they are safe in the journal; {when}",
            severity=WARNING,
        )
    for row in checker.recovered.list():
        if row.name.startswith((DAMAGED, REPLACED)):
            continue
        yield Problem(
            path=row.path,
            code="Recoverable",
            message=f"a content that a change by hand displaced was set aside as {row.name}",
            hint="memfs recover lists it and brings it back",
            severity=WARNING,
        )


def _engine(checker: Checker) -> Iterator[Problem]:
    count = checker.store.count()
    if checker.parts.index.engine == "whoosh" and count > _TOO_MANY_FOR_WHOOSH:
        yield Problem(
            path="memfs.toml",
            code="EngineTooSmall",
            message=f"{count} memories are more than the whoosh engine answers quickly",
            hint='set index.engine = "sqlite"',
            severity=WARNING,
        )


def _file_system(checker: Checker) -> Iterator[Problem]:
    kind = file_system(str(checker.parts.tree.root))
    if kind in NETWORK_TYPES:
        yield Problem(
            path="",
            code="SharedStorage",
            message=f"the workspace is on a network file system ({kind}), where locks cannot be relied on",
            hint="write from one machine only, or clone the repository on each",
            severity=WARNING,
        )


def _untrusted(checker: Checker) -> Iterator[Problem]:
    yield from standing(checker.parts.tree.root).problems()


def _format(checker: Checker) -> Iterator[Problem]:
    yield from format_problems(checker.parts.seen)


def _suggestions(checker: Checker) -> Iterator[Problem]:
    """What is suggested lies in a file that somebody may have damaged."""
    try:
        Inbox(checker.store, checker.parts).all()
    except (CorruptRecord, FormatUnsupported) as error:
        yield Problem.of(error)


EXAMINATIONS: tuple[Examine, ...] = (
    _format,
    _items,
    _warnings,
    _documents,
    _archived,
    _memory_contexts,
    conventioncheck.statuses,
    _embedder,
    leaks.leaks,
    _unwanted,
    sidecarcheck.missing,
    sidecarcheck.left,
    archivecheck.indexes,
    _attributes,
    _merge_driver,
    branchcheck.examine,
    _history,
    _waiting,
    _suggestions,
    _engine,
    _file_system,
    clock,
    _untrusted,
)


def _checkpoints(checker: Checker) -> Iterator[Problem]:
    yield from checker.checkpoints()


def _remove_leftovers(checker: Checker) -> int:
    tree = checker.parts.tree
    folders = {entry.path.rpartition("/")[0] for entry in tree.scan(CONTENT, hidden=True)}
    with checker.parts.lock.hold("sweep"):
        return sum(tree.sweep(folder) for folder in folders)


def _restore_attributes(checker: Checker) -> bool:
    wanted = files({})[ATTRIBUTES]
    if checker.parts.tree.entry(ATTRIBUTES) is not None:
        if _joined_by_field(checker):
            return False
        present = checker.parts.tree.read(ATTRIBUTES, READ_LIMIT).data
        wanted = present + (b"" if present.endswith(b"\n") else b"\n") + mergedriver.attribute_lines().encode()
    plan = checker.store.plan_restore(ATTRIBUTES, wanted)
    if plan is not None:
        checker.store.carry_out([plan], "Restore the git attributes of memory files", source="check")
    return plan is not None
