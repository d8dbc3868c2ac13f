"""Compare every byte that memfs relies on with what vouches for it, and repair what is damaged from what is whole.

The damaged bytes are copied aside before. Never deletes, and restores only what is proven to be what was written, or
says that it is an older version. A person's edit is left alone unless they name the file.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from typing import TYPE_CHECKING

from memfs import errors
from memfs.admin.backup_file import verify
from memfs.catalog.database import FILE as DERIVED
from memfs.dataclass import dataclass, replace
from memfs.format.codec import schema_of
from memfs.fs import io, journal
from memfs.fs.atomic_replace import FileChanged, sha256
from memfs.fs.journal import Journal
from memfs.fs.tree import refuse_rot
from memfs.git import log
from memfs.git.process import contents, finish, sizes
from memfs.git.repository import Repository
from memfs.model import Problem, Stamp
from memfs.model.state_facts import StateQuery, StateRow
from memfs.model.state_paths import ITERATIONS
from memfs.search.state_index import StateIndex
from memfs.store import Store
from memfs.store.parts import CONTENT, ITEM_SUFFIXES, READ_LIMIT, RECOVERED_FOLDER, Parts, content_at
from memfs.store.reader import path_of
from memfs.store.recovery import DAMAGED, DAMAGED_SUFFIX, keep_aside

if TYPE_CHECKING:
    from memfs.admin.check import Checker, Examine


PATIENCE = 900.0
_ARGUMENTS = ("--full", "--strict", "--no-dangling", "--no-progress", "--name-objects")
_NAMED = re.compile(r"(?<!pack-)\b([0-9a-f]{40})\b(?: \((\S+)\))?")
_LOOSE = re.compile(r"objects/([0-9a-f]{2})/([0-9a-f]{38})\b")
_OF_OBJECT = re.compile(
    r"object corrupt or missing|^missing |^loose object|^packed |^cannot unpack|^index CRC mismatch|hash mismatch"
    r"|^unable to (?:unpack|read|parse)|garbage at end|^corrupt"
)
# What fsck says beside the point: how it reached an object, and what zlib thought of it.
_ASIDE = re.compile(r"^(?:hint:|notice|dangling|unreachable|broken link|to |inflate|bad object|Could not read)")
_LINT = re.compile(r"^(?:warning )?in (?:blob|tree|commit|tag) |: invalid reflog entry|^bad ref for \S*logs/")


def examine(repository: Repository) -> dict[str, str]:
    """The damage that git finds when it reads every object of the repository, in words; not what is merely untidy.

    Returns:
        By the id of the damaged or missing object, or by the words where it is about something else.

    Raises:
        GitFailed: git took too long or is missing, so the state is unknown.
    """
    _, out, err = finish(repository.git.open("fsck", *_ARGUMENTS, variables={}), b"", PATIENCE)
    rows = filter(None, map(_read, [*out.decode("utf-8", "replace").splitlines(), *err.splitlines()]))
    return dict(sorted(rows, key=lambda row: len(row[1])))  # of one object what says most


def _read(line: str) -> tuple[str, str] | None:
    text = line.strip()
    level, colon, rest = text.partition(": ")
    complaint = rest if colon and level in ("error", "fatal", "warning") else text
    if loose := _LOOSE.search(complaint):
        return _lost_object(loose[1] + loose[2])
    if not complaint or level == "warning" or _LINT.search(complaint) or _ASIDE.search(complaint):
        return None
    named = _NAMED.search(complaint)
    is_object = named is not None and _OF_OBJECT.search(complaint)
    return _lost_object(named[1], named[2] or "") if named and is_object else (complaint, complaint)


def _lost_object(name: str, place: str = "") -> tuple[str, str]:
    where = f" ({place})" if place else ""  # how git reached it
    return name, f"the git object {name}{where} is damaged or missing"


def read_items(store: Store, parts: Parts) -> None:
    """Read every item file, and have those looked at again whose content is not what the index was made from.

    What is wrong with them is then among the store's problems. From now on the index vouches for the others.
    """
    store.refresh()
    items = (path for path in store.edit_finder.own_paths() if store.index_sync.is_item(path))
    suspects = [path for path in items if _suspect(store, parts, path)]
    if suspects:
        store.refresh(suspects)
    with suppress(errors.StorageIO):  # an index that cannot be written vouches for nothing next time, but is no damage
        if parts.index.overlay_size():
            store.fold()


def document_problems(parts: Parts, paths: Iterable[str]) -> Iterator[Problem]:
    """What is wrong with those files that are settings, context and state documents."""
    stamps = document_stamps(parts)
    for path in paths:  # memfs.toml was read when the workspace was opened
        schema = schema_of(path)
        if not schema:
            continue
        try:
            content = parts.tree.read(path, READ_LIMIT)
            refuse_rot(path, stamps.get(path), content, parts.tree.root)
            parts.codec.read_document(content.data, path, schema)
        except FileNotFoundError:
            continue
        except errors.MemfsError as error:
            yield Problem.of(error, path)


def document_stamps(parts: Parts) -> dict[str, Stamp]:
    """By path, the stamps that vouch for state documents; none where nothing is known of them."""
    found: dict[str, Stamp] = {}
    with _states(parts) as index:
        if index is not None:
            known = index.stamps(ITERATIONS)
            found = {path: stamp for path, (stamp, _) in known.items() if stamp is not None}
    return found


def read_documents(parts: Parts) -> None:
    """Read every state document, so that from now on the index vouches for those that are as it knows them."""
    with _states(parts) as index:
        if index is not None:
            index.learn(fresh for row in index.find(StateQuery()) if (fresh := _vouched(parts, row)) is not None)


@contextmanager
def _states(parts: Parts) -> Iterator[StateIndex | None]:
    """The index of state documents, None where there is none; where it is of no use the block ends."""
    if not (parts.index.folder / DERIVED).exists():
        yield None
        return
    with suppress(errors.IndexUnavailable), closing(StateIndex(parts.index.folder)) as index:
        yield index


def _vouched(parts: Parts, row: StateRow) -> StateRow | None:
    """A document's row with a stamp that can be relied on; None where it has one, or is another by now."""
    if row.stamp is None or not row.stamp.racy:
        return None
    found = content_at(parts.tree, row.path)
    same = found is not None and found.stamp.blob == row.stamp.blob and not found.stamp.racy
    return replace(row, stamp=found.stamp) if found and same else None


def _suspect(store: Store, parts: Parts, path: str) -> bool:
    content, stamp = content_at(parts.seen, path), store.index_sync.stamp_of(path)
    known = content is not None and stamp is not None and stamp.blob == content.stamp.blob
    return not known or store.index_sync.damaged(path)


def _journals(checker: Checker) -> Iterator[Problem]:
    secondary = checker.parts.secondary
    for known in (checker.parts.journal, *([secondary.journal] if secondary else [])):
        with closing(Journal(known.path)) as journal:
            try:
                changes = [(one.id, change) for one in journal.operations() for change in one.changes]
                yield from map(Problem.of, journal.damage)
                for record, change in changes:
                    if change.data is not None and sha256(change.data) != change.new:
                        yield Problem(
                            path=change.path,
                            code="JournalDamaged",
                            message=f"the journal's record {record} does not hold what it names",
                            hint="the file itself is the truth; 'memfs commit' records it",
                        )
            except errors.MemfsError as error:
                yield Problem.of(error)


def _backups(checker: Checker) -> Iterator[Problem]:
    for path in checker.backups():
        try:
            verify(path)
        except errors.StorageIO:
            raise
        except errors.MemfsError as error:
            yield Problem.of(error, str(path))


def _advice(message: str) -> str:
    """What a person can do about damage in git's folder."""
    if ".pack" in message:
        return "once each object in it is whole again, 'git repack -a -d' makes another pack"
    if "refs/" in message or "HEAD" in message:
        return "'git reflog' names the commits a branch had, 'git update-ref' sets it to one"
    if "the git object" in message:
        return "'git hash-object -w FILE' makes it again where a file holds it; else fetch it from a clone or a backup"
    return "'git fsck --full' says more"


def lost_in_head(repository: Repository) -> Iterator[tuple[str, errors.HistoryError]]:
    """The files of HEAD's memory whose content git cannot give, and why.

    Raises:
        HistoryError: HEAD itself cannot be read.
    """
    commit = repository.head().commit
    files = repository.tree(commit, CONTENT) if commit else {}
    whole: set[str] = set()
    with suppress(errors.HistoryError):  # of the others one by one is asked
        whole.update(name for name, _ in contents(repository.git, sizes(repository.git, files.values()), PATIENCE))
    for path, blob in files.items():
        if blob not in whole:
            try:
                repository.blob(blob)
            except errors.HistoryError as error:
                yield path, error


def _objects(checker: Checker) -> Iterator[Problem]:
    """What git finds wrong; asked again where it finds something, while no process packs or commits."""
    if not examine(checker.parts.repository):
        return
    with checker.parts.commit_lock.hold("check", timeout=60):
        found = examine(checker.parts.repository)
    places: dict[str, str] = {}  # which file of the present memory each blob is
    repository = checker.parts.repository
    with suppress(errors.MemfsError):
        if (commit := repository.head_commit()) is not None:
            places = {blob: path for path, blob in repository.tree(commit, CONTENT).items()}
    for name, message in found.items():
        path, hint = places.get(name, ""), _advice(message)
        yield Problem(path=path, code="HistoryUnavailable", message=message, hint=hint)


DEEP: tuple[Examine, ...] = (
    _journals,
    lambda checker: map(Problem.of, checker.recovered.damaged()),
    _backups,
    _objects,
    lambda checker: checker.checkpoints(),
)


_DEPTH = 200

Whole = tuple[bytes, str]
"""A whole content, and where it was found, in words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Repair:
    """One thing that is wrong, and what a repair did about it.

    Attributes:
        path: the file, below the workspace; "" where it is not about one.
        sentence: what was done and where the whole content comes from, or why nothing was.
        done: whether it was done.
    """

    path: str
    sentence: str
    done: bool = False


class Repairer:
    """Puts right what is damaged in one workspace."""

    def __init__(self, store: Store, parts: Parts) -> None:
        self._store, self._parts = store, parts

    def repair(self, paths: Sequence[str] = ()) -> list[Repair]:
        """Repair what is damaged, and report what was done for each.

        Args:
            paths: only these items (by path or id) and documents; an invalid one gets its last good version back.

        Raises:
            ItemNotFound: there is no file for one of ``paths``.
        """
        named = [self.file(reference) for reference in paths]
        done = [] if named else list(self._journal())
        read_items(self._store, self._parts)
        documents = document_problems(self._parts, self._store.edit_finder.own_paths())
        for problem in (*self._store.index_sync.problems(), *documents):
            rot = problem.code == errors.CorruptItem.__name__
            if problem.path in named or (not named and rot):
                done.append(self._item(problem.path, problem.message, rot))
            elif not named:
                done.append(self._invalid(problem))
        return done

    def file(self, reference: str) -> str:
        """The path of an item or document that is named by path or id.

        Raises:
            ItemNotFound: there is no such file.
        """
        named = "/" in reference or reference.endswith(ITEM_SUFFIXES)
        path = path_of(reference) if named else self._store.locate(reference)
        if not path or self._parts.tree.entry(path) is None:
            hint = f"'memfs list' shows what there is; if it was there once, 'memfs log {reference}' names its commits"
            raise errors.ItemNotFound(f"there is no file for {reference!r}", hint=hint)
        return path

    # -- items ----------------------------------------------------------------------------------------------------
    def _item(self, path: str, reason: str, rot: bool) -> Repair:
        try:
            found = self._parts.tree.read(path, READ_LIMIT)
        except (FileNotFoundError, errors.MemfsError) as error:
            return _lost(path, f"it cannot be read ({error}); move it away, then 'git checkout HEAD -- {path}'")
        stamp = self._store.index_sync.stamp_of(path) or document_stamps(self._parts).get(path)
        if not rot and self._parts.codec.accepts(found.data, path):
            return _lost(path, f"its bytes are undamaged, and it is not used for another reason: {reason}")
        if not rot and self._parts.repository.busy():
            return _lost(path, f"{self._parts.repository.busy()}; finish that first")
        whole = self._whole(path, stamp.blob if rot and stamp else "") or self._older(path)
        if whole is None:
            return _lost(path, f"no good version of it is left anywhere ({reason})")
        data, source = whole
        name = DAMAGED + sha256(found.data)[:16]
        sentence = f"restored from {source}; the bytes it had are kept as {name} ('memfs restore --displaced')"
        return _done(Repair(path=path, sentence=sentence), lambda: self._put_back(path, found.data, data, name))

    def _invalid(self, problem: Problem) -> Repair:
        """A file that the disk did not damage: its author decides about it."""
        path = problem.path
        found = content_at(self._parts.tree, path)
        if found and not self._parts.codec.accepts(found.data, path):
            remedy = f"'memfs check --fix {path}' brings back its last good version"
            why, remedy = ("an edit made it", remedy) if self._older(path) else ("it is", "remove it")
            return _lost(path, f"{why} invalid: {problem.message}; correct it, or {remedy}")
        return _lost(path, "; ".join(filter(None, (problem.message, problem.hint))))

    def _whole(self, path: str, blob: str) -> Whole | None:
        """The content that is known to have been written."""
        if not blob:
            return None
        known = (row for row in _waiting(self._parts, path) if self._parts.repository.blob_id(row[0]) == blob)
        return next(known, None) or _from_history(self._parts, path, blob)

    def _older(self, path: str) -> Whole | None:
        """The newest valid version that a journal or history has."""
        for data, name in _waiting(self._parts, path):
            if self._parts.codec.accepts(data, path):
                return data, name
        with suppress(errors.HistoryError):
            for revision in log.log(self._parts.repository, (path,), _DEPTH):
                with suppress(errors.HistoryError):
                    there = self._parts.repository.read(revision.commit, path)
                    if there is not None and self._parts.codec.accepts(there, path):
                        return there, f"commit {revision.short}, the newest good version"
        return None

    def _put_back(self, path: str, damaged: bytes, data: bytes, name: str) -> None:
        """No journal record is needed: what is put in place is durable in the journal or history already."""
        keep_aside(self._parts.repository.state, path, damaged, name)
        with self._parts.lock.hold("repair"):
            self._parts.tree.write(path, data, over=sha256(damaged))
        self._store.refresh([path])

    # -- the journal ----------------------------------------------------------------------------------------------
    def _journal(self) -> Iterator[Repair]:
        try:
            saved = journal.salvage(self._parts.journal.path)
        except (errors.MemfsError, errors.FormatUnsupported) as error:
            yield Repair(path="", sentence=f"the journal: {error}")
            return
        if saved is not None:
            count = len(saved.operations())
            saved.close()
            sentence = f"the journal is rebuilt from the writes that are whole in it: {count}; a copy is kept"
            yield _done(Repair(path="", sentence=sentence), self._renew_journal)

    def _renew_journal(self) -> None:
        path = self._parts.journal.path
        with self._parts.lock.hold("repair"):
            saved = journal.salvage(path)
            if saved is not None:
                data = io.read_file(path)
                folder = self._parts.repository.state / RECOVERED_FOLDER
                io.make_private_folder(folder)
                io.write_file(folder / f"journal-{sha256(data)[:16]}{DAMAGED_SUFFIX}", data)
                saved.renew()
                saved.close()
                self._parts.journal.damage.clear()
                self._parts.journal.catch_up()
                self._store.notes[:] = [note for note in self._store.notes if note.path != str(path)]


def _lost(path: str, reason: str) -> Repair:
    return Repair(path=path, sentence=reason)


def _done(repair: Repair, act: Callable[[], object]) -> Repair:
    """What came of a repair."""
    try:
        act()
    except (errors.MemfsError, FileChanged, FileNotFoundError) as error:
        reason = str(error) if isinstance(error, errors.MemfsError) else "the file changed meanwhile"
        return replace(repair, sentence=f"{repair.sentence}: not done: {reason}")
    return replace(repair, done=True)


def _waiting(parts: Parts, path: str) -> Iterator[Whole]:
    """What the journals hold of a file, the newest first."""
    journals = [(parts.journal, "the journal")]
    journals += [(parts.secondary.journal, "the secondary location")] if parts.secondary is not None else []
    for found, name in journals:
        with suppress(errors.MemfsError):
            for operation in reversed(found.operations()):
                for change in operation.changes:
                    if change.path == path and change.data is not None:
                        yield change.data, name


def _from_history(parts: Parts, path: str, blob: str) -> Whole | None:
    try:
        data = parts.repository.blob(blob)
    except errors.MemfsError:
        return None
    with suppress(errors.MemfsError):
        for revision in log.log(parts.repository, (path,), _DEPTH):
            entry = parts.repository.entry(revision.commit, path)
            if entry is not None and entry.id == blob:
                return data, f"commit {revision.short}"
    return data, "git"
