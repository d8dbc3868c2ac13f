"""Find every version of an item, remove it from every place besides files and git, and prove that it is nowhere.

Texts that only quote the item are no versions. Each row of the table removes what it can; a new store of content adds a
row. Places that memfs cannot reach, such as remotes and clones, are listed. The proof reads
everything that could hold the item once more, and changes nothing.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import closing, suppress
from pathlib import Path

from memfs.admin.archive_file import INDEX_LIMIT, PAYLOAD_SUFFIX, Archive, ArchiveMember, decode, index_path
from memfs.config_names import SETTINGS_FILE
from memfs.dataclass import dataclass, replace
from memfs.errors import ArchiveInvalid, CorruptRecord, EraseRefused, FormatUnsupported, MemfsError
from memfs.fs import append_log, io
from memfs.fs.archive import decompressed, file_chunks
from memfs.fs.atomic_replace import is_temporary
from memfs.fs.journal import FileChange, Journal
from memfs.fs.lock import FileLock
from memfs.fs.tree import Tree
from memfs.git.commit_object import EXPORT
from memfs.git.layout import ERASE_FOLDER, HEX, discover
from memfs.git.process import entries_of
from memfs.git.remote import without_login
from memfs.git.repository import Repository
from memfs.git.rewrite import HistoryRemoval, HistorySurvey, Traces, Versions, edit_object, files_below
from memfs.learning.inbox import FILE as INBOX
from memfs.learning.inbox import erased
from memfs.learning.triggers import LOG as WARNINGS
from memfs.model.ids import stem_of
from memfs.model.item import object_id
from memfs.model.state_facts import texts
from memfs.model.state_paths import ARCHIVE, CHECKPOINTS, MERGES, PAYLOAD, document_kind, document_of_sidecar
from memfs.model.time import utc_now
from memfs.search.generations import Cache, caches, empty, recorded
from memfs.store.access_log import FOLDER as SERVED
from memfs.store.parts import CONTENT, ITEM_SUFFIXES, RECOVERED_FOLDER, Parts, content_at
from memfs.store.plan import excerpt
from memfs.store.recovery import DAMAGED_SUFFIX, all_aside, read_aside
from memfs.usage import ASIDE, Usage
from memfs.usage import FILE as USES

_NEVER = (SETTINGS_FILE, CONTENT, f"{CONTENT}/.gitattributes")
_PHRASE = 12
_WHOLE = 8
_MOST_PHRASES = 200
_TRIVIAL = 8
_KEY = re.compile(r"^[\s-]*(?:\"?[A-Za-z_][\w.-]*\"?\s*:\s*)?[|>]?[-+]?\s*")


@dataclass(frozen=True, slots=True, kw_only=True)
class EraseName:
    """How a person names what is to be erased: an id, or the path of a file or folder below the workspace."""

    reference: str
    is_path: bool

    @classmethod
    def of(cls, reference: str, is_path: bool) -> EraseName:
        """The name that a person gave.

        Raises:
            EraseRefused: it is not a memory's.
        """
        plain = reference.rstrip("/")
        if is_path and (plain in _NEVER or not plain.startswith(f"{CONTENT}/")):
            hint = f"name an item, or a file or folder below {CONTENT}/"
            raise EraseRefused(f"{plain!r} is not a memory", path=plain, hint=hint)
        return cls(reference=plain, is_path=is_path)

    def means(self, path: str) -> bool:
        """Whether a path of the workspace is meant."""
        if self.is_path:
            return path == self.reference or path.startswith(self.reference + "/")
        inside = path.startswith(CONTENT + "/") and path.endswith(ITEM_SUFFIXES)
        return inside and not document_kind(path) and stem_of(path).casefold() == self.reference.casefold()


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """What is to be erased.

    Attributes:
        named: how a person named it.
        removal: its paths, below the top of the working tree as git names them, its versions, and what betrays it.
        copies: other paths at which one of its versions was.
        quotes: files that hold a line of it and stay.
    """

    named: EraseName
    removal: HistoryRemoval
    copies: tuple[bytes, ...]
    quotes: tuple[str, ...]

    def means(self, path: bytes) -> bool:
        """Whether a path below the top of the working tree is erased."""
        return path in self.removal.paths or path in self.copies

    def holds(self, change: FileChange) -> bool:
        """Whether a change carries a version of the item."""
        data = change.data
        return data is not None and (object_id("blob", data) in self.removal.blobs or self.traces.copied_in([data]))

    @property
    def traces(self) -> Traces:
        """What betrays it."""
        return self.removal.traces

    @property
    def ids(self) -> set[str]:
        """The ids it had, which may reveal what it was about."""
        names = {stem_of(os.fsdecode(name)) for name in self.removal.paths}
        return names if self.named.is_path else names | {self.named.reference}


class TargetFinder:
    """Finds the target in one workspace and one survey of its repository."""

    def __init__(
        self, parts: Parts, survey: HistorySurvey, named: EraseName, known: HistoryRemoval | None = None
    ) -> None:
        self._parts, self._survey, self._named = parts, survey, named
        self._known = known

    def find(self) -> Target:
        """Everything the name refers to, with what an interrupted erase found before."""
        names, versions = self._versions()
        blobs = set(versions.blobs)
        contents = [(names_of(versions.blobs, blob), data) for blob, data in self._survey.contents(blobs)]
        trivial = {self._parts.repository.blob_id(data) for _, data in contents if len(data.strip()) < _TRIVIAL}
        texts = [(path, data) for path, data in contents if len(data.strip()) >= _TRIVIAL]
        texts += [(change.path, change.data or b"") for change in self._elsewhere()]
        blobs = (blobs - trivial) | (self._known.blobs if self._known else set())
        for path, data in texts:  # what commits call the item: each version's first words
            with suppress(MemfsError):
                names.add(excerpt(self._parts.codec.read(data, path, utc_now())))
        traces = self._traces(texts, names)
        paths = {path for found in versions.blobs.values() for path in found}
        paths |= self._known.paths if self._known else set()
        removal = HistoryRemoval(
            blobs=frozenset(blobs),
            paths=frozenset(paths),
            cuts={tree: frozenset(cut) for tree, cut in versions.cuts.items()},
            traces=traces,
        )
        copies = sorted(self._survey.paths(blobs) - paths)
        others = self._survey.contents(name for name in self._survey.of_kind("blob") if name not in blobs)
        quotes = quoted_at(
            self._parts.repository, self._survey, {name for name, data in others if traces.quoted_in(data)}
        )
        return Target(named=self._named, removal=removal, copies=tuple(copies), quotes=quotes)

    # -- versions -------------------------------------------------------------------------------------------------
    def _versions(self) -> tuple[set[str], Versions]:
        """The item's names and versions; a name under which only its bytes were, and which is gone, is one of them."""
        repository = self._parts.repository
        folder = repository.full(CONTENT)
        former: set[str] = set()
        while True:
            current = frozenset(former)

            def means(path: bytes, current: frozenset[str] = current) -> bool:
                inner = repository.below(path)
                return inner is not None and (self._named.means(inner) or inner in current)

            versions = self._survey.versions(folder, means)
            big = [blob for blob in versions.blobs if self._survey.facts[blob].size >= _TRIVIAL]
            found = {inner for path in self._survey.paths(big) if (inner := self._former(path)) is not None}
            if found <= former:
                break
            former |= found
        paths = {os.fsdecode(path) for found in versions.blobs.values() for path in found}
        names = {stem_of(path) for path in paths} | (set() if self._named.is_path else {self._named.reference})
        return names, versions

    def _former(self, path: bytes) -> str | None:
        inner = self._parts.repository.below(path)
        if inner is None or not inner.startswith(CONTENT + "/") or not inner.endswith(ITEM_SUFFIXES):
            return None
        return inner if self._parts.repository.head_blob(inner) is None and not self._named.means(inner) else None

    def _elsewhere(self) -> Iterator[FileChange]:
        """Versions outside git's objects: those in no commit, those that wait, and those that were set aside."""
        for entry in self._parts.tree.scan(CONTENT):
            own = self._parts.is_local(entry.path) and self._named.means(entry.path)
            found = content_at(self._parts.tree, entry.path) if own else None
            if found is not None:
                yield FileChange(path=entry.path, old="", new="", data=found.data)
        secondary = self._parts.secondary
        for operation in (*self._parts.journal.operations(), *(secondary.operations() if secondary else ())):
            yield from (change for change in operation.changes if change.data and self._named.means(change.path))
        for _, path, data in all_aside(self._parts.repository.state):
            if self._named.means(path):
                yield FileChange(path=path, old="", new="", data=data)

    # -- phrases --------------------------------------------------------------------------------------------------
    def _traces(self, texts: Iterable[tuple[str, bytes]], names: set[str]) -> Traces:
        versions = [frozenset(self._phrases(path, data)) for path, data in texts]
        if self._known:
            versions += self._known.traces.versions
            names = names | {os.fsdecode(name) for name in self._known.traces.names}
        unique = dict.fromkeys(version for version in versions if version)
        return Traces(versions=tuple(unique), names=tuple(sorted(os.fsencode(name) for name in names if name)))

    def _phrases(self, path: str, data: bytes) -> list[bytes]:
        try:
            item = self._parts.codec.read(data, path, utc_now())
        except MemfsError:
            values = [_KEY.sub("", line).strip("\"'") for line in data.decode("utf-8", "replace").splitlines()]
        else:
            whole = item.content.strip()
            found = (line for text in texts(item.data) for line in text.splitlines())
            short = [whole.encode("utf-8", "surrogatepass")] if _WHOLE <= len(whole) < _PHRASE else []
            return short + _long([item.title, *item.content.splitlines(), *found])
        return _long(values)


def quoted_at(repository: Repository, survey: HistorySurvey, blobs: Collection[str]) -> tuple[str, ...]:
    """The paths of some blobs in any commit and the index; that of a note is the id of what it is about."""
    added = {entry.path for entry in entries_of(repository.git) if entry.blob in blobs}
    found = sorted(map(os.fsdecode, survey.paths(blobs) | added))
    return tuple(f"git note on {name}" if HEX.fullmatch(name := path.replace("/", "")) else path for path in found)


def names_of(paths: Mapping[str, set[bytes]], blob: str) -> str:
    """One of the paths of a blob, for reading it."""
    path = os.fsdecode(min(paths[blob]))
    at = path.find(CONTENT + "/")
    return path[at:] if at >= 0 else path


def _long(values: Iterable[str]) -> list[bytes]:
    found = {value.strip() for value in values if len(value.strip()) >= _PHRASE}
    return [value.encode("utf-8", "surrogatepass") for value in sorted(found, key=len, reverse=True)[:_MOST_PHRASES]]


def _archives(parts: Parts, target: Target) -> None:
    """Remove payloads that hold a version of what is erased, or whose contents are unknown."""
    for entry in list(parts.tree.scan(ARCHIVE, hidden=True)):
        name = entry.path.removeprefix(f"{ARCHIVE}/")
        if not entry.regular or not (name.endswith(PAYLOAD_SUFFIX) or is_temporary(name)):
            continue
        path = index_path(name.removesuffix(PAYLOAD_SUFFIX))
        with suppress(FileNotFoundError, ArchiveInvalid):  # then the payload's contents are unknown
            archive = Archive(parts.tree, decode(parts.tree.read(path, INDEX_LIMIT).data, path))
            if not _holds(archive, target):
                continue
            # What git never had goes back where it lay: its document, read from history, finds it there.
            for member in archive.index.members:
                if not (member.blob or _is_meant(member, target)) and parts.tree.entry(member.path) is None:
                    with suppress(ArchiveInvalid):  # damaged: there is nothing to be kept
                        parts.tree.write_stream(member.path, archive.chunks(member))
        parts.tree.remove(entry.path)


def _holds(archive: Archive, target: Target) -> bool:
    """Whether a document is a version or a copy of what is erased; one that cannot be read may be."""
    copied = target.traces.copied_in
    try:
        return any(
            _is_meant(one, target) or (one.blob and copied(archive.chunks(one))) for one in archive.index.members
        )
    except ArchiveInvalid:
        return True


def _is_meant(member: ArchiveMember, target: Target) -> bool:
    return member.blob in target.removal.blobs or target.named.means(member.path)


def states_of(parts: Parts) -> list[Path]:
    """The state folders of all workspaces that the repository ever had, those of removed working trees included."""
    return sorted(path for path in parts.repository.state.parent.iterdir() if path.is_dir())


def journals_of(parts: Parts) -> Iterator[Journal]:
    """The journals of all workspaces of the repository, each open until the next is asked for."""
    yield parts.journal
    for state in states_of(parts):
        path = state / parts.journal.path.name
        if state != parts.repository.state and os.path.lexists(path):
            with closing(Journal(path)) as journal:
                yield journal


TOLD = "told"
"""Where it is recorded which items each session got, by id."""
_LARGEST = 1 << 31
_LOCK_SECONDS = 10.0
_PIECE = 1 << 22


def purge(parts: Parts, target: Target) -> None:
    """Take the item out of every place. The store's lock is held."""
    for remove in PLACES:
        remove(parts, target)
    for cache in caches_of(parts):
        empty(cache)  # whole: all in them is made again from files and history
    for path, within in _records(parts):
        with suppress(FileNotFoundError):  # another process removed it
            if _goes(path, within, target):
                io.unlink(path, missing_ok=True)


# -- records that are reduced -----------------------------------------------------------------------------------------
def _journals(parts: Parts, target: Target) -> None:
    """What waits here is committed before; this finds what an interrupted erase left, and what waits elsewhere."""
    for journal in journals_of(parts):  # one's file was renewed when history was
        touched = [found for found in journal.operations() if any(map(target.holds, found.changes))]
        reduced = ((found, tuple(one for one in found.changes if not target.holds(one))) for found in touched)
        kept = [replace(found, id=f"{found.id}-e", changes=changes) for found, changes in reduced if changes]
        if kept:
            journal.append(kept)
            for found in kept:
                journal.mark_applied(found.id)
        if touched:
            journal.drop([found.id for found in touched], tip=parts.repository.head_commit() or "")


def _uses(parts: Parts, target: Target) -> None:
    """An id may reveal what its item was about."""
    for path in _of_states(parts, USES):
        with closing(Usage(path)) as usage:
            usage.forget(target.ids)
    for name in ASIDE:  # its contents are unknown
        for path in _of_states(parts, name):
            io.unlink(path)


def _suggestions(parts: Parts, target: Target) -> None:
    """What was suggested of the item, accepted or refused; unreadable suggestions may hold anything."""
    for path in _of_states(parts, INBOX):
        with FileLock(path.with_suffix(".lock"), root=parts.repository.common_dir).hold("erase", _LOCK_SECONDS):
            try:
                kept, gone = erased(io.read_file(path, _LARGEST), target.traces.quoted_in, target.ids)
                if gone:
                    io.write_file(path, kept)
            except FileNotFoundError:
                continue
            except (CorruptRecord, FormatUnsupported):
                io.unlink(path, missing_ok=True)


def _events(parts: Parts, target: Target) -> None:
    """Pending events of sessions."""
    for spool in _of_states(parts, append_log.FOLDER):
        for path in append_log.waiting(spool):
            append_log.keep_only(path, lambda text: not _mentioned_in(text, target))


def _mentioned_in(text: bytes, target: Target) -> bool:
    """Whether an event holds a line of the item, as it is written or as JSON writes it."""
    try:
        plain = json.dumps(json.loads(text), ensure_ascii=False).replace("\\n", "\n").replace('\\"', '"').encode()
    except (ValueError, RecursionError):
        return True  # its contents are unknown
    return target.traces.quoted_in(text) or target.traces.quoted_in(plain)


def _of_states(parts: Parts, name: str) -> list[Path]:
    """What has a name in the state of each workspace that the repository ever had."""
    return [path for state in states_of(parts) if os.path.lexists(path := state / name)]


# -- records that go as a whole ---------------------------------------------------------------------------------------
_RESOLUTIONS = "rr-cache"
"""Where git remembers how conflicts were resolved, with the texts."""


def _records(parts: Parts) -> Iterator[tuple[Path, tuple[str, ...]]]:
    """Whatever else memfs and git have written down outside of history; no journal in use.

    Each with the folders of a workspace's state that it is in.
    """
    for state in states_of(parts):
        for path in files_below(state):
            within = path.relative_to(state).parts
            if within[0] not in (parts.journal.path.name, ERASE_FOLDER):
                yield path, within[:-1]
    secondary = parts.secondary
    if secondary is not None:
        yield from ((path, ()) for path in files_below(secondary.folder) if path != secondary.journal.path)
    yield from ((path, ()) for path in files_below(parts.repository.common_dir / _RESOLUTIONS))


def _goes(path: Path, within: tuple[str, ...], target: Target) -> bool:
    """Whether a record mentions the item, or cannot be read, or holds little but ids."""
    if path.name == WARNINGS or within in ((TOLD,), (SERVED,)):
        return True
    if within == (RECOVERED_FOLDER,) and (path.name.endswith(DAMAGED_SUFFIX) or _is_version(path, target)):
        return True
    data = io.read_file(path, _LARGEST)
    if within == (MERGES,):
        return _mentioned_in(data, target) or any(name in data for name in target.removal.paths)
    return target.traces.quoted_in(data)


def _is_version(path: Path, target: Target) -> bool:
    try:
        where, data = read_aside(path)
    except MemfsError:
        return False
    return target.named.means(where) or target.holds(FileChange(path=where, old="", new="", data=data))


# -- caches, large values, payloads -----------------------------------------------------------------------------------
def caches_of(parts: Parts) -> list[Cache]:
    """The caches in which the item can be: those of the repository, wherever its workspaces lay, and of what mounts
    them; also those of folders that are gone, as a deleted clone's: nothing else would ever empty them.
    """
    inside = (parts.repository.work_tree, parts.repository.common_dir)

    def concerns(cache: Cache) -> bool:
        root = cache.root
        return cache.recorded or cache.orphaned or any(root is not None and root.is_relative_to(one) for one in inside)

    return [cache for cache in caches(parts.repository.state.parent) if concerns(cache)]


def _sidecars(parts: Parts, target: Target) -> None:
    """Large values of state documents are beside them, outside of git."""
    for root in (parts.tree.root, *abandoned(parts)):
        with closing(Tree(root)) as tree:
            for entry in list(tree.scan(CONTENT)):
                document = document_of_sidecar(entry.path)
                if document and target.means(parts.repository.full(document)):
                    tree.remove(entry.path)


def abandoned(parts: Parts) -> list[Path]:
    """The folders of former workspaces of the repository in which files stayed, and which no repository holds now."""
    roots = sorted({root for _, root in recorded(parts.repository.state.parent)} - {parts.tree.root})
    return [root for root in roots if (root / CONTENT).is_dir() and _in_no_repository(root)]


def _in_no_repository(root: Path) -> bool:
    try:
        return discover(root) is None
    except MemfsError:
        return False


def _checkpoints(parts: Parts, target: Target) -> None:
    """Remove payloads that hold a version: their checkpoints then have none, as in a clone."""
    for entry in list(parts.tree.scan(CHECKPOINTS)):
        if entry.regular and entry.path.endswith(f"/{PAYLOAD}") and _packed_in(parts, entry.path, target):
            parts.tree.remove(entry.path)


def _packed_in(parts: Parts, path: str, target: Target) -> bool:
    """Whether compressed bytes hold a version; unreadable ones may hold anything."""
    try:
        return target.traces.copied_in(decompressed(file_chunks(parts.tree, path)))
    except CorruptRecord:
        return True


PLACES: tuple[Callable[[Parts, Target], None], ...] = (
    _journals, _uses, _events, _suggestions, _archives, _sidecars, _checkpoints,
)  # fmt: skip


def out_of_reach(parts: Parts) -> list[str]:
    """Where the item may still be and memfs cannot go: remotes, clones, copies."""
    found = [f"the remote {name} ({without_login(url)}) and its forks" for name, url in remotes(parts)]
    if any(entry.path.endswith(".tar.zst") for entry in parts.tree.scan(ARCHIVE)):
        found.append(
            "archives of iterations: 'memfs admin archive unpack' those that may hold it, erase, and archive again"
        )
    # The files into which history was cut, as the commit that stands for it says.
    head = parts.repository.head_commit()
    roots = parts.repository.git.run("rev-list", "--max-parents=0", head).decode().split() if head else []
    exports = [name for root in roots for name in parts.repository.commit_object(root).trailers.get(EXPORT, ())]
    found += [f"the export of older history, {name}" for name in exports]
    found.append("other clones, and repositories that borrow objects from this one")
    found.append("processes that are running now, backups and snapshots of this disk made by others")
    return found


def remotes(parts: Parts) -> list[tuple[str, str]]:
    """The remotes of the repository with their addresses."""
    rows = parts.repository.git.settings(r"^remote\..*\.url$")
    return [(name.removeprefix("remote.").removesuffix(".url"), url) for name, url in rows]


# -- the proof -----------------------------------------------------------------------------------------------------
_KEEP_OUT = ("hooks", "modules")


@dataclass(frozen=True, slots=True, kw_only=True)
class EraseProof:
    """What was looked at, and what was found.

    Attributes:
        objects: how many of git's objects were read, unpacked.
        files: how many files were read as they are on disk.
        hits: where a version of the item, or one of its lines where no line of it may be, still is.
        quotes: files that stay and hold a line of it.
    """

    objects: int
    files: int
    hits: tuple[str, ...]
    quotes: tuple[str, ...]


def prove(parts: Parts, target: Target) -> EraseProof:
    """Read everything that could hold a target."""
    survey = HistorySurvey(parts.repository, everything=True)
    removal, traces = target.removal, target.traces
    hits = [f"object {blob} is still there" for blob in sorted(removal.blobs & survey.facts.keys())]
    left = survey.versions(parts.repository.full(CONTENT), removal.paths.__contains__)
    hits += [f"{os.fsdecode(path)} is still in a commit" for path in sorted(set().union(*left.blobs.values()))]
    quoting, copies = [], []
    for name, data in survey.contents(survey.facts):
        kind = survey.facts[name].kind
        if kind == "blob":
            quoting += [name] if traces.quoted_in(data) else []
            copies += [name] if traces.copied_in([data]) else []
        else:
            named = kind == "tree" and any(b" %s." % word in data for word in traces.distinctive)
            told = kind != "tree" and edit_object(data, {}, traces) != data
            hits += [f"{kind} {name} holds it"] if named or told else []
    # What some commit holds is someone else's file, which may quote the item.
    held = {blob for found in survey.holding(quoting).values() for blob in found}
    hits += [f"blob {name} holds it" for name in copies if name not in held]
    read = {path: _in_file(path, traces) for path in _paths(parts)}
    hits += [f"{path} holds it" for path, found in read.items() if found]
    return EraseProof(
        objects=len(survey.facts),
        files=sum(found is not None for found in read.values()),
        hits=tuple(hits),
        quotes=quoted_at(parts.repository, survey, quoting),
    )


def _paths(parts: Parts) -> Iterator[Path]:
    """Every file that can hold it."""
    common, record = parts.repository.common_dir, parts.repository.state / ERASE_FOLDER
    for path in files_below(common):
        if path.relative_to(common).parts[0] not in _KEEP_OUT and not path.is_relative_to(record):
            yield path
    folders = [*(cache.folder for cache in caches_of(parts)), *(root / CONTENT for root in abandoned(parts))]
    folders += [parts.secondary.folder] if parts.secondary is not None else []
    yield from (path for folder in folders for path in files_below(folder))


def _in_file(path: Path, traces: Traces) -> bool | None:
    """Whether a file holds it; None where it cannot be opened."""
    longest = max(map(len, (*traces.phrases, *traces.distinctive)), default=1)
    rest = b""
    try:
        found = io.open_file(path, os.O_RDONLY | os.O_NONBLOCK)
    except (OSError, MemfsError):
        return None
    with io.descriptor(found) as fd:
        while piece := os.read(fd, _PIECE):
            if traces.quoted_in(rest + piece) or any(word in rest + piece for word in traces.distinctive):
                return True
            rest = piece[-longest:]
    return False
