"""Keeps the search index in step with the item files, no matter who changes them.

Decides which files are items, what is wrong with invalid ones, and which of two files with one id has it. Files are
only read here.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import cache
from itertools import chain

from memfs.catalog.facts import ItemCatalog, Key, WrittenItem, maker
from memfs.dataclass import NamedTuple, dataclass, field
from memfs.errors import (
    ContentError,
    CorruptItem,
    DuplicateId,
    IdInvalid,
    MemfsError,
    NotRegularFile,
    StorageFull,
    StorageIO,
)
from memfs.format import codec
from memfs.fs.journal import Journal
from memfs.fs.lock import reset_on_fork
from memfs.fs.tree import Content, FolderScan, ScanEntry, View, blob_id, refuse_rot
from memfs.git.objects import tree_ids
from memfs.git.repository import Repository
from memfs.model import Freshness, MemoryItem, Problem, Stamp
from memfs.model.ids import check_id, stem_of
from memfs.model.kinds import ITEM_LIMIT
from memfs.search.columns import NO_STAMPS, StampTable
from memfs.search.generations import UnchangedFolders
from memfs.search.search_index import SearchIndex
from memfs.startup import Any, sha256
from memfs.store.parts import CONTENT, ITEM_SUFFIXES, below_content, content_at


@cache
def _secret_rules() -> int:
    """Who knows of contents that they hold no secret, as a maker of facts: another one after each installation."""
    facts = [os.stat(f"{os.path.dirname(codec.__file__)}/{name}") for name in ("secrets.py", "secret_rules.json")]
    return maker("secrets", repr([(one.st_size, one.st_mtime_ns) for one in facts]))


def _may_count(entry: ScanEntry) -> bool:
    """Whether a scan has to look at what it found."""
    return not entry.regular or entry.path.endswith(ITEM_SUFFIXES)


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncResult:
    """What a refresh found: paths that came, changed and went."""

    added: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.paths())

    def paths(self) -> tuple[str, ...]:
        """All of them."""
        return (*self.added, *self.changed, *self.removed)


class RejectedFile(NamedTuple):
    """What is wrong with a file, and the facts it had then: size, times, inode."""

    problem: Problem
    facts: tuple[int, int, int, int]

    @property
    def rot(self) -> bool:
        """Whether the file's facts say nothing of its content, which the disk changed."""
        return self.problem.code == CorruptItem.__name__


class ScanResult:
    """What one look at files gathers before the index is updated."""

    def __init__(self, known: Mapping[str, Stamp], witness: Mapping[str, Stamp] | None = None) -> None:
        """``witness``: the stamps by which rot is recognised, where they are not the known ones."""
        self.known = known
        self.witness = known if witness is None else witness
        self.items: list[tuple[MemoryItem, Stamp]] = []
        self.removals: list[str] = []

    def retract(self, path: str) -> None:
        """Take back an item whose id turned out to belong to another file."""
        self.items = [row for row in self.items if row[0].path != path]


def creation_order(item: MemoryItem) -> tuple[datetime, str]:
    """The key that sorts the older of two items with one id first."""
    return (item.created or item.timestamp or datetime.max.replace(tzinfo=UTC), item.path)


@dataclass(slots=True)
class ScanFindings:
    """What a look at all files found.

    Attributes:
        learned: what the index learned of it.
        vouched: items of which the index held already what they hold, but for those of the folders in ``unchanged``.
        unchanged: folders in which nothing changed since the index had all of them, each with the names of its items.
        trees: the ids of git's trees of these, after a survey.
        others: everything else; after a survey all files but those of unchanged folders, also vouched ones.
        suspects: of these, those that may have to be read, and what is gone.
        closed: what could not be entered or is no file, as the beginning of the paths below it.
    """

    learned: SyncResult = field(default_factory=SyncResult)
    vouched: list[str] = field(default_factory=list)
    unchanged: dict[str, list[str]] = field(default_factory=dict)
    trees: dict[str, str] = field(default_factory=dict)
    others: list[ScanEntry] = field(default_factory=list)
    suspects: dict[str, ScanEntry | None] = field(default_factory=dict)
    closed: list[str] = field(default_factory=list)

    def missed(self, paths: Iterable[str]) -> None:
        """Of these paths, those that were not found are suspects; what is behind a folder that cannot be entered is
        not known to be gone.
        """
        seen, behind = {*self.vouched, *(entry.path for entry in self.others)}, tuple(self.closed)
        seen.update(f"{folder}/{name}" for folder, names in self.unchanged.items() for name in names)
        self.suspects.update((path, None) for path in paths if path not in seen and not path.startswith(behind))


class IdOwners:
    """The path that has each id, compared without case: as a table of stamps says, and what was decided since."""

    def __init__(self, table: StampTable) -> None:
        self._table, self._decided = table, table.owners_over()

    def get(self, item_id: str) -> str:
        """The path that has an id, "" where none has."""
        folded = item_id.casefold()
        known = self._decided.get(folded)
        return self._table.owner(folded) if known is None else known

    def give(self, item_id: str, path: str) -> None:
        """Say who has an id from now on, "" for no one."""
        self._decided[item_id.casefold()] = path

    def claim(self, item_id: str, path: str) -> bool:
        """Give an id to a path unless another one has it; whether this one has it then."""
        if not (owner := self.get(item_id)):
            self.give(item_id, path)
        return not owner or owner == path


Progress = Callable[[int, int], None]
_AT_ONCE = 100
_STALE = _LOOK_AGAIN = (0, 0, 0, 0)


class IndexSync:
    """Keeps the index in step with the files, in one process. Its methods may be called from several threads.

    Attributes:
        files, kinds, index: what is kept in step.
        scanned: whether every file was looked at.
        reassigned: whether an id went from a file that is still there to another one, which only this process knows.
    """

    survives_fork = True

    def __init__(
        self, tree: View, items: ItemCatalog, index: SearchIndex, git: Repository | None, journal: Journal | None
    ) -> None:
        """
        Args:
            git: has earlier versions of files that are invalid now, and the files that are committed; None for none.
            journal: has those that wait for their commit.
        """
        self.files = tree
        self._items, self.kinds, self.index = items, items.codec.kinds, index
        self._repository, self._journal = git, journal
        self._rejected: dict[str, RejectedFile] = {}
        self._owners: IdOwners | None = None
        self._typed: dict[str, bool] = {}
        self._unchanged = UnchangedFolders(index.folder)
        self.scanned = self.reassigned = False
        self._closed: list[str] = []
        self._written: dict[str, WrittenItem] = {}
        self._lock = threading.RLock()
        reset_on_fork(self)

    def after_fork(self) -> None:
        """Know nothing of the files, as their index does."""
        self._rejected, self._owners, self.scanned, self._closed, self._written = {}, None, False, [], {}

    # -- asking ---------------------------------------------------------------------------------------------------
    def problems(self) -> list[Problem]:
        """What is wrong with files, by path."""
        with self._lock:
            return [self._rejected[path].problem for path in sorted(self._rejected)]

    def locate(self, item_id: str) -> str:
        """The path of the file that holds the id, compared without case; "" where none does."""
        with self._lock:
            path = self._held_by(item_id.casefold())
            if not path and not self.scanned:
                self._refresh_all(None)
                path = self._held_by(item_id.casefold())
            return path

    def locate_surely(self, item_id: str) -> str:
        """As ``locate``, for a writer: what cannot be seen is not taken for absent.

        Raises:
            StorageIO: the id was not found, and a folder that may hold it cannot be entered.
        """
        with self._lock:
            if not (path := self.locate(item_id)) and self._closed:
                self._refresh_all(None)
                path = self.locate(item_id)
            if not path and self._closed:
                raise StorageIO(
                    f"this folder cannot be entered, and may hold {item_id!r}",
                    path=self._closed[0],
                    hint="make it readable, or move it away, and try again",
                )
            return path

    def _held_by(self, folded: str) -> str:
        rejected = sorted(path for path in self._rejected if stem_of(path).casefold() == folded)
        candidates = [self._ids().get(folded), *rejected]
        return next((path for path in candidates if path and self.files.entry(path) is not None), "")

    def ids(self) -> list[str]:
        """The ids of all valid items."""
        return [item_id for _, item_id in self.index.stamps().ids()]

    def count(self) -> int:
        """How many valid items there are."""
        return len(self.index.stamps())

    def stamp_of(self, path: str) -> Stamp | None:
        """The stamp that vouches for a file, None when it is unknown."""
        return self.index.stamp(path)

    def stamps_of(self, paths: Iterable[str]) -> dict[str, Stamp]:
        """The stamps of those files that are known."""
        self.flush()
        return self.index.stamps().stamps(list(paths))

    def rejected(self, path: str) -> bool:
        """Whether the file is invalid at present."""
        return path in self._rejected

    def damaged(self, path: str) -> bool:
        """Whether the disk changed the file's bytes, so that not even their last good version is served."""
        row = self._rejected.get(path)
        return row is not None and row.rot

    def rejected_items(self) -> list[str]:
        """Paths of item files that are invalid at present."""
        with self._lock:
            return [path for path in self._rejected if self.is_item(path)] if self._rejected else []

    def freshness(self) -> Freshness:
        """The proof of what an answer given now rests on: HEAD, how many memory files differ from it, and a digest of
        exactly what is indexed.
        """
        present = dict(self.index.stamps().blobs())
        lines = "".join([f"{path}\0{present[path]}\n" for path in sorted(present)])
        digest = sha256(lines.encode("utf-8", "surrogateescape")).hexdigest()
        if self._repository is None:
            return Freshness(head=None, dirty=None, indexed=digest)
        found = self._repository.head()
        if found.commit is None:
            return Freshness(head=None, dirty=None if found.damage else len(present), indexed=digest)
        broken = ((path, content_at(self.files, path)) for path in self.rejected_items())
        present |= {path: content.stamp.blob for path, content in broken if content is not None}
        tree = self._repository.tree(found.commit, CONTENT, present)
        items = {path: blob for path, blob in tree.items() if self.is_item(path)}
        dirty = sum(present.get(path) != items.get(path) for path in present.keys() | items.keys())
        return Freshness(head=found.commit, dirty=dirty, indexed=digest)

    # -- which files ------------------------------------------------------------------------------------------------
    def is_item(self, path: str) -> bool:
        """Whether a file at this path is an item."""
        return path.endswith(ITEM_SUFFIXES) and "/." not in path and self._is_typed(path.rpartition("/")[0])

    def _is_typed(self, folder: str) -> bool:
        """Whether a folder belongs to a kind; asked for every file of a scan, so remembered."""
        known = self._typed.get(folder)
        if known is None:
            known = self._typed[folder] = self.kinds.at(below_content(f"{folder}/x")) is not None
        return known

    def _listings(self) -> Iterator[FolderScan]:
        """What is in every folder of a kind."""
        return chain.from_iterable(map(self.files.listings, self._folders()))

    def _among(self, found: list[FolderScan]) -> Iterator[FolderScan]:
        """As ``_listings``, of one look at all of ``ContextMemory/``, hidden names with it.

        Where a folder could not be entered, or a folder of a kind is none, those folders are scanned once more: only
        that shows what is behind which of them.
        """
        folders = self._folders()
        above = (entry for listing in found if listing.folder == CONTENT for entry in listing.entries())
        if any(listing.others for listing in found) or any(
            not entry.regular and entry.path in folders for entry in above
        ):
            yield from self._listings()
            return
        inside = tuple(f"{folder}/" for folder in folders)
        for listing in found:
            if f"{listing.folder}/".startswith(inside) and "/." not in listing.folder:
                yield listing._replace(rows=[row for row in listing.rows if row[0][0] != "."])

    def _folders(self) -> list[str]:
        return sorted({f"{CONTENT}/{kind.folder.partition('/')[0]}" for kind in self.kinds})

    # -- learning -------------------------------------------------------------------------------------------------
    def learn(self, written: Iterable[WrittenItem], removed: Iterable[str]) -> None:
        """Take in what this process wrote itself; what other processes, or questions, gain by is left to ``flush``."""
        rows, gone = list(written), list(removed)
        with self._lock:
            self._update([row[:2] for row in rows], gone, later=True)
            for item, stamp, _ in rows:
                self._items.hold(item, stamp)
            if len(rows) > _AT_ONCE:
                self._items.keep(rows)
            else:
                self._written.update((row[0].path, row) for row in rows)
            for path in (*gone, *(row[0].path for row in rows)):
                self._rejected.pop(path, None)
            if gone:
                self._look_at({path: self.files.entry(path) for path in self._twins()}, None)

    def flush(self, *, cut: bool = False) -> None:
        """Make facts of what this process wrote, as far as the files still hold it: an erase may have been there.

        Args:
            cut: cut it into terms, too, for the next question.
        """
        if not self._written:
            return
        with self._lock:
            written, self._written = self._written, {}
        with suppress(MemfsError), self.files.holding_folders():  # they are made again by who needs them
            entries = ((row, self.files.entry(path)) for path, row in written.items())
            self._items.keep([row for row, entry in entries if entry is not None and entry[1:5] == row[1][:4]])
        if cut:
            self.index.cut()

    def catch_up(self, paths: Iterable[str] | None = None) -> SyncResult:
        """As ``refresh``, after a look at what other processes made of the index.

        One that is new is compared with every file: it says what its maker saw, also of files that changed, or went,
        and were looked at here since.
        """
        if self.index.reload():
            with self._lock:
                self._owners = None  # who owns which id is asked again
            paths = None
        return self.refresh(paths)

    def refresh(self, paths: Iterable[str] | None = None, progress: Progress | None = None) -> SyncResult:
        """Look at the given files, or at every file whose facts changed, and bring the index in step."""
        with self._lock:
            if paths is None:
                return self._refresh_all(progress)
            found = {path: self.files.entry(path) for path in paths}
            if any(self._needs_scan(path, entry) for path, entry in found.items()):
                return self._refresh_all(progress)
            return self._look_at({path: entry for path, entry in found.items() if self.is_item(path)}, progress)

    def _needs_scan(self, path: str, entry: ScanEntry | None) -> bool:
        """Whether all files must be scanned: the path is no regular file, misplaced, or gone after it was rejected."""
        if entry is None or self.is_item(path):
            return path in self._rejected if entry is None else not entry.regular
        inside = "/." not in path and path.startswith(tuple(f"{folder}/" for folder in self._folders()))
        return inside and _may_count(entry)

    def survey(self) -> ScanFindings:
        """As ``refresh`` of every file: all that was found below ``ContextMemory/``."""
        with self._lock:
            listings, found = list(self.files.listings(CONTENT, hidden=True)), ScanFindings()
            self._refresh_all(None, self._among(listings), found)
            stamps = self.index.stamps()
            for folder, names in found.unchanged.items():
                # git's tree of it: once its id is noted, the ids of its files need not be unpacked
                if not (tree := self._unchanged.tree(folder)):
                    tree = tree_ids({os.fsencode(name): stamps.blob(f"{folder}/{name}") for name in names})[b""]
                    self._unchanged.note_tree(folder, tree)
                found.trees[folder] = tree
            self._unchanged.keep()
        found.others = []
        for listing in listings:
            rows = [row for row in listing.rows if row[0][0] == "." or listing.folder not in found.unchanged]
            found.others += listing._replace(rows=rows).entries()
        return found

    def rebuild(self, progress: Progress | None = None) -> None:
        """Rebuild the index from every file.

        Raises:
            StorageIO: it cannot be written; questions are answered from memory.
        """
        with self._lock:
            witness = self.index.stamps()
            self._rejected.clear()
            self._owners = IdOwners(NO_STAMPS)
            outcome = ScanResult({}, witness)
            found = (entry for listing in self._listings() for entry in listing.entries())
            self._look_each([entry for entry in found if self.is_item(entry.path)], outcome, progress)
            try:
                self.index.rebuild(outcome.items)
            except StorageFull as error:
                error.hint = "free some space and try again; until then questions take longer, and miss nothing"
                raise
            self._owners = None
            self.scanned = True

    def fold(self) -> bool:
        """Move fresh items into the base of the index; false if another process is doing so.

        Files that were very young when read are looked at again first, so that their stamps can be trusted.
        """
        self.flush()
        living = self._living() if self.index.worn else ()
        with self._lock:
            fresh = sorted(path for path, stamp in self.index.overlay_stamps().items() if stamp.racy)
            with self.files.holding_folders():
                self._look_at({path: self.files.entry(path) for path in fresh}, None)
            before, changed = self.index.base, self.index.stamps().over_folders()
        folded = self.index.fold(living)
        with self._lock:
            self._unchanged.follow(before, self.index.base, changed)
            self._owners = None  # it holds the table of the base before
        return folded

    # -- internal -------------------------------------------------------------------------------------------------
    def _living(self) -> Sequence[tuple[MemoryItem, Stamp]]:
        """All items as the index has them; none where a file holds something else and what it held is unknown."""
        stamps = dict(self.index.stamps())
        try:
            items = self._items.known(stamps)
            for path in stamps.keys() - items.keys():
                content = self.files.read(path, ITEM_LIMIT)
                if content.stamp.blob != stamps[path].blob:
                    return ()
                items[path] = self._items.parse(path, content)
        except (FileNotFoundError, MemfsError):
            return ()
        return [(items[path], stamp) for path, stamp in stamps.items()]

    def _ids(self) -> IdOwners:
        if self._owners is None:
            self._owners = IdOwners(self.index.stamps())
        return self._owners

    def _refresh_all(
        self, progress: Progress | None, listings: Iterable[FolderScan] | None = None, found: ScanFindings | None = None
    ) -> SyncResult:
        """``found`` is filled with what comes of it."""
        lost, known = self.index.lost, self.index.stamps()
        self._unchanged.take_up(*self.index.base)
        by_file = {*known.over_folders(), *(path.rpartition("/")[0] for path in self._rejected)}
        found = ScanFindings() if found is None else found
        self._closed = []
        for listing in self._listings() if listings is None else listings:
            folder = listing.folder
            whole = not listing.others and folder not in by_file and self._is_typed(folder)
            digest = listing.digest() if whole else ""
            if whole and self._unchanged.holds(folder, digest):
                found.unchanged[folder] = [name for name, _ in listing.rows]
                continue
            before = len(found.vouched)
            for entry in filter(_may_count, listing.entries()):
                self._sort(entry, known, found)
            if whole and len(found.vouched) - before == len(listing.rows):
                self._unchanged.note(folder, digest)
        self._unchanged.keep()
        if len(found.vouched) + sum(map(len, found.unchanged.values())) < len(known):
            found.missed(known)
        if self._rejected:
            found.missed(self._rejected)
        self.scanned = True
        found.learned = self._look_at(found.suspects, progress)
        self.index.make_good(lost)
        return found.learned

    def _sort(self, entry: ScanEntry, known: StampTable, found: ScanFindings) -> None:
        path = entry.path
        typed = entry.regular and self._is_typed(path.rpartition("/")[0])
        if typed and known.matches(*entry[:5]):
            found.vouched.append(path)
            row = self._rejected.get(path)
            if row is not None and not (row.rot and row.facts == entry[1:5]):  # of rot the facts say nothing
                del self._rejected[path]
            return
        found.others.append(entry)
        if not entry.regular:
            found.closed.append(f"{path}/")
            self._closed += [path] if entry.refused else []
            hint = "replace it with a regular file or folder, or move it away"
            error: MemfsError = NotRegularFile(entry.reason or "not a regular file", hint=hint)
            self._rejected[path] = RejectedFile(Problem.of(error, path), entry[1:5])
        elif not typed:
            hint = "move the file below memories/<type>/, or add the type to kinds.yaml"
            error = ContentError("this folder belongs to no memory type", hint=hint)
            self._rejected[path] = RejectedFile(Problem.of(error, path), entry[1:5])
            if path in known:
                self._update((), [path])
        elif path not in self._rejected or self._rejected[path].facts != entry[1:5]:
            found.suspects[path] = entry

    def _look_at(self, suspects: Mapping[str, ScanEntry | None], progress: Progress | None) -> SyncResult:
        outcome = ScanResult(self.index.stamps())
        known = outcome.known
        for path in [path for path, entry in suspects.items() if entry is None]:
            self._rejected.pop(path, None)
            if path in known:
                outcome.removals.append(path)
        self._update((), outcome.removals)
        twins = [self.files.entry(path) for path in self._twins()] if outcome.removals else []
        self._look_each([entry for entry in (*twins, *suspects.values()) if entry is not None], outcome, progress)
        self._update(outcome.items, outcome.removals)
        paths = [item.path for item, _ in outcome.items]
        return SyncResult(
            added=tuple(path for path in paths if path not in known),
            changed=tuple(path for path in paths if path in known),
            removed=tuple(outcome.removals),
        )

    def _twins(self) -> list[str]:
        """Files kept out because another has their id."""
        return [path for path, row in self._rejected.items() if row.problem.code == DuplicateId.__name__]

    def _look_each(self, entries: Sequence[ScanEntry], outcome: ScanResult, progress: Progress | None) -> None:
        """Read files, and ask the catalog once for many of them."""
        few = len(entries) <= _AT_ONCE  # more are soon in the index's base, and not looked through again
        for start in range(0, len(entries), _AT_ONCE):
            read: dict[ScanEntry, Content | MemfsError] = {}
            with self.files.holding_folders():
                for entry in entries[start : start + _AT_ONCE]:
                    try:
                        if not entry.regular:
                            hint = "replace it with a regular file, or move it away"
                            raise NotRegularFile("not a regular file", path=entry.path, hint=hint)
                        content = self.files.read(entry.path, ITEM_LIMIT)
                        check_id(stem_of(entry.path))
                        read[entry] = content
                    except FileNotFoundError:
                        continue
                    except MemfsError as error:
                        read[entry] = error.located(entry.path)
            stamps = {
                entry.path: content.stamp
                for entry, content in read.items()
                if isinstance(content, Content) and not self._is_known(entry.path, content, outcome)
            }
            known = self._items.known(stamps, checked=False)
            wanted = [(stamp.blob, ascii(path)) for path, stamp in stamps.items()] if few else []
            clean = self._items.catalog.found(_secret_rules(), wanted) if wanted else {}
            for number, entry in enumerate(entries[start : start + _AT_ONCE], start + 1):
                if entry in read:
                    self._take(entry, read[entry], known.get(entry.path), outcome, clean)
                if progress is not None:
                    progress(number, len(entries))
            # those that the catalog had are ``True``: only what is new is still JSON
            fresh = {key: fact for key, fact in clean.items() if fact == "true"}
            self._items.catalog.keep(_secret_rules(), fresh if few else {})
        self._items.flush()

    def _take(
        self,
        entry: ScanEntry,
        content: Content | MemfsError,
        known: MemoryItem | None,
        outcome: ScanResult,
        clean: dict[Key, Any],
    ) -> None:
        """What a file holds, or why it cannot be read.

        Args:
            known: what the catalog has of it.
            clean: contents that hold no secret, by content's id and path; those that turn out so are added.
        """
        path = entry.path
        try:
            if isinstance(content, MemfsError):
                raise content
            if self._is_known(path, content, outcome):
                self.index.restamp(path, content.stamp)
                self._ids().claim(stem_of(path), path)  # a writer could never plan for an id without an owner
                return
            refuse_rot(path, outcome.witness.get(path), content, self.files.root)
            if (key := (content.stamp.blob, ascii(path))) not in clean:
                from memfs.format.secrets import refuse_file  # what only reads does without

                refuse_file(content.data, path)
                clean[key] = "true"
            item = known or self._items.parse(path, content, keep=True)
            self._settle_twins(item, outcome)
        except MemfsError as error:
            self._reject(path, entry, error, outcome)
            return
        self._rejected.pop(path, None)
        outcome.items.append((item, content.stamp))
        self._ids().give(item.id, path)

    def _is_known(self, path: str, content: Content, outcome: ScanResult) -> bool:
        stamp = outcome.known.get(path)
        return stamp is not None and stamp.blob == content.stamp.blob and path not in self._rejected

    def _settle_twins(self, item: MemoryItem, outcome: ScanResult) -> None:
        owner = self._ids().get(item.id)
        if not owner or owner == item.path:
            return
        hint = "rename this file; until then read it by its path"
        if (entry := self.files.entry(owner)) is not None:
            other: MemoryItem | None = None
            with suppress(FileNotFoundError, MemfsError):
                other = self._items.read(owner, self.files.read(owner, ITEM_LIMIT))
            if other is None or self._precedence(other) <= self._precedence(item):
                raise DuplicateId(f"the id {item.id!r} belongs to {owner}", path=item.path, hint=hint)
            error = DuplicateId(f"the id {other.id!r} belongs to {item.path}", path=owner, hint=hint)
            self._rejected[owner], self.reassigned = RejectedFile(Problem.of(error), entry[1:5]), True
        outcome.retract(owner)
        self._update((), [owner])

    def _precedence(self, item: MemoryItem) -> tuple[bool, datetime, str]:
        """The key that sorts first, of two items with one id, the one that memfs or a commit has; then the older."""
        path, kept = item.path, False
        if self._journal is not None:
            kept = any(change.path == path for one in self._journal.operations() for change in one.changes)
        if self._repository is not None and not kept:
            with suppress(MemfsError):
                kept = self._repository.head_blob(path) is not None
        return (not kept, *creation_order(item))

    def _reject(self, path: str, entry: ScanEntry, error: MemfsError, outcome: ScanResult) -> None:
        facts = _LOOK_AGAIN if isinstance(error, StorageIO) else entry[1:5]
        self._rejected[path] = RejectedFile(Problem.of(error, path), facts)
        rot = isinstance(error, CorruptItem)
        if isinstance(error, (DuplicateId, IdInvalid, NotRegularFile)) or (rot and path in outcome.known):
            return
        if path in outcome.known:
            # history has a later version than the index where another process wrote it, and folded nothing
            held, newest = self.index.item(stem_of(path)), self.last_good(path)
            if (held is not None and held.path == path) or newest is None:
                return
            if outcome.known[path].blob == blob_id(newest):
                return
        item, stamp = self._earlier(path, entry)
        if rot:  # so that a new index does not forget the stamp that proves it
            earlier, stamp = stamp, outcome.witness[path]
            if item is None or earlier.blob != stamp.blob:
                kind, name = self.kinds.at(below_content(path)), stem_of(path)
                item = MemoryItem("", kind.name if kind else "semantic", id=name, title=name, path=path)
        if item is not None and self._ids().claim(item.id, path):
            outcome.items.append((item, stamp))

    def last_good(self, path: str) -> bytes | None:
        """What history has for a path, None when it has nothing or cannot be read."""
        try:
            commit = self._repository.head().commit if self._repository is not None else None
            return self._repository.read(commit, path) if self._repository is not None and commit else None
        except MemfsError:
            return None

    def _earlier(self, path: str, entry: ScanEntry) -> tuple[MemoryItem | None, Stamp]:
        """What history has for an invalid file, to be found in its place."""
        data = self.last_good(path) or b""
        stamp = Stamp(*_STALE, blob_id(data), 0)
        if not 0 < len(data) <= ITEM_LIMIT:  # nobody looks through what cannot be an item at every question
            return None, stamp
        try:
            from memfs.format.secrets import refuse_file  # what only reads does without

            refuse_file(data, path)
            seen = Content(data, stamp._replace(mtime_ns=entry.mtime_ns))
            return self._items.read(path, seen), stamp
        except MemfsError:
            return None, stamp

    def _update(
        self, items: Iterable[tuple[MemoryItem, Stamp]], removed: Iterable[str], *, later: bool = False
    ) -> None:
        rows, gone = list(items), list(removed)
        if not rows and not gone:
            return
        owners = self._owners
        if owners is not None:  # else they are made of what the index has then
            for path in gone:
                if owners.get(stem_of(path)) == path:
                    owners.give(stem_of(path), "")
            for item, _ in rows:
                owners.give(item.id, item.path)
        self.index.update(rows, gone, later=later)
