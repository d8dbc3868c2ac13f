"""Read every byte that memfs relies on, and compare it with what vouches for it.

Each problem says what is damaged and where. Changes nothing, except that items and documents whose files differ from
the index are read again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from typing import TYPE_CHECKING

from memfs.admin.backup_file import verify
from memfs.catalog.workspace_tables import FILE as DERIVED
from memfs.dataclass import replace
from memfs.errors import HistoryError, IndexUnavailable, MemfsError, StorageIO
from memfs.format.codec import schema_of
from memfs.fs.atomic_replace import sha256
from memfs.fs.journal import Journal
from memfs.fs.tree import refuse_rot
from memfs.git import maintenance
from memfs.git.repository import Repository
from memfs.model import Problem, Stamp
from memfs.model.state_paths import ITERATIONS
from memfs.model.state_query import StateQuery, StateRow
from memfs.search.engine import engine
from memfs.search.generations import NOBODY, Generations
from memfs.search.state_index import StateIndex
from memfs.store import Store
from memfs.store.parts import CONTENT, READ_LIMIT, Parts, content_at

if TYPE_CHECKING:
    from memfs.admin.check import Checker, Examine

_STORED = ("whoosh", "sqlite")


def read_items(store: Store, parts: Parts) -> None:
    """Read every item file, and have those looked at again whose content is not what the index was made from.

    What is wrong with them is then among the store's problems. From now on the index vouches for the others.
    """
    store.refresh()
    items = (path for path in store.edit_finder.own_paths() if store.index_sync.is_item(path))
    suspects = [path for path in items if _suspect(store, parts, path)]
    if suspects:
        store.refresh(suspects)
    with suppress(StorageIO):  # an index that cannot be written vouches for nothing next time, but is no damage
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
        except MemfsError as error:
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
    with suppress(IndexUnavailable), closing(StateIndex(parts.index.folder)) as index:
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
    for journal in (checker.parts.journal, *([secondary.journal] if secondary else [])):
        yield from _examined(Journal(journal.path))


def _examined(journal: Journal) -> Iterator[Problem]:
    try:
        operations = journal.operations()
        for error in journal.damage:
            yield Problem.of(error)
        for operation in operations:
            for change in operation.changes:
                if change.data is not None and sha256(change.data) != change.new:
                    yield Problem(
                        path=change.path,
                        code="JournalDamaged",
                        message=f"the journal's record {operation.id} does not hold what it names",
                        hint="the file itself is the truth; 'memfs commit' records it",
                    )
    except MemfsError as error:
        yield Problem.of(error)
    finally:
        journal.close()


def _backups(checker: Checker) -> Iterator[Problem]:
    for path in checker.backups():
        try:
            verify(path)
        except StorageIO:
            raise
        except MemfsError as error:
            yield Problem.of(error, str(path))


def _set_aside(checker: Checker) -> Iterator[Problem]:
    for error in checker.recovered.damaged():
        yield Problem.of(error)


def index_damaged(parts: Parts) -> bool:
    """Whether the index on disk is not, to the last byte, what was written."""
    index = parts.index
    if index.engine not in _STORED:
        return False
    generations = Generations(index.folder, engine(index.engine))
    if generations.pointer() == NOBODY:
        return False
    try:
        return (found := generations.current()) is None or not found.stamps()
    except (MemfsError, OSError):
        return True


def _index(checker: Checker) -> Iterator[Problem]:
    if index_damaged(checker.parts):
        message = "the index is damaged, or was made by another version; it is not used"
        hint = "the next recall rebuilds it from the files"
        yield Problem.warning("", "IndexDamaged", message, hint)


def examine_objects(parts: Parts) -> list[maintenance.FsckFinding]:
    """What git finds wrong; asked again where it finds something, while nobody packs or commits meanwhile.

    Raises:
        GitFailed, LockTimeout: nobody can tell.
    """
    found = maintenance.examine(parts.repository)
    if not any(finding.serious for finding in found):
        return found
    with parts.commit_lock.hold("check", timeout=60):
        return maintenance.examine(parts.repository)


def advice(finding: maintenance.FsckFinding) -> str:
    """What a person can do about damage that memfs cannot put right."""
    if finding.object:
        return "where nothing here holds it, fetch it from a clone, or restore a backup"
    if ".pack" in finding.message:
        return "once each object in it is whole again, 'git repack -a -d' makes another pack"
    if "refs/" in finding.message or "HEAD" in finding.message:
        return "'git reflog' names the commits a branch had, 'git update-ref' sets it to one"
    return "'git fsck --full' says more"


def lost_in_head(repository: Repository) -> Iterator[tuple[str, str, HistoryError]]:
    """The contents of HEAD's memory that git cannot give: the path and blob of each, and why.

    Raises:
        HistoryError: HEAD itself cannot be read.
    """
    commit = repository.head().commit
    files = repository.tree(commit, CONTENT) if commit else {}
    sound = maintenance.sound(repository, files.values())
    for path, blob in files.items():
        if blob not in sound:
            try:
                repository.blob(blob)
            except HistoryError as error:
                yield path, blob, error


def _objects(checker: Checker) -> Iterator[Problem]:
    places = _places(checker)
    for finding in examine_objects(checker.parts):
        path = places.get(finding.object, "")
        if finding.serious:
            hint = f"'memfs check --fix --integrity' makes it again where the files hold it; {advice(finding)}"
            chosen = hint if finding.object else advice(finding)
            yield Problem(path=path, code="HistoryUnavailable", message=finding.message, hint=chosen)
        else:
            hint = "git remarks on it; nothing is lost"
            yield Problem.warning(path, "HistoryUntidy", finding.message, hint)


def _places(checker: Checker) -> dict[str, str]:
    """Which file of the present memory each blob is."""
    repository = checker.parts.repository
    with suppress(MemfsError):
        commit = repository.head_commit()
        if commit is not None:
            return {blob: path for path, blob in repository.tree(commit, CONTENT).items()}
    return {}


BEFORE: tuple[Examine, ...] = (_index,)
"""What is examined before anything is asked of the workspace, which would put it right."""
DEEP: tuple[Examine, ...] = (
    _journals,
    _set_aside,
    _backups,
    _objects,
    lambda checker: checker.checkpoints(),
)
