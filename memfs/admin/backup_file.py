"""The file format of a backup, version 1 (``docs/format.md``): its manifest, its parts, and the proof that it is whole.

It is a tar whose first member is ``manifest-<sha256 of itself>.json``, followed by exactly the parts that the
manifest names with size and sha256. One of them, ``files.tar.gz``, holds the workspace's files; one that changed
while the backup was made is in it twice, and the manifest says which does not count.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from functools import partial
from pathlib import Path
from subprocess import Popen
from typing import Annotated

from memfs.admin.store_builder import install_driver
from memfs.config_names import SETTINGS_FILE
from memfs.dataclass import dataclass, field
from memfs.errors import (
    BackupInvalid,
    Conflict,
    CorruptRecord,
    FormatUnsupported,
    HistoryError,
    HistoryUnavailable,
    MemfsError,
)
from memfs.fs import io
from memfs.fs.archive import Digest, TarMember, check_name, chunks_of, decoded, members, verified
from memfs.fs.executor import Worker
from memfs.fs.journal import Journal
from memfs.git.layout import HEADS, HEX, PER_WORKTREE, read_small, require_branch
from memfs.git.process import end, failure
from memfs.git.repository import Repository
from memfs.learning.inbox import FILE as INBOX
from memfs.store.parts import CONTENT

DETACHED = "HEAD"
_PATIENCE = 1800.0
_CHUNK = 1 << 18
_FIRST = b"# v2 git bundle\n"
# What belongs to other places, or to something in progress here.
_ELSEWHERE = ("refs/remotes/", "refs/prefetch/", *PER_WORKTREE)


@dataclass(frozen=True, slots=True, kw_only=True)
class RepositorySnapshot:
    """The state of a repository: branch or detached commit, commits and tags by ref, where a shallow history ends."""

    head: str
    refs: Mapping[str, str]
    shallow: tuple[str, ...] = ()


def snapshot(repository: Repository) -> RepositorySnapshot:
    """The present state of a repository; without refs where it has no commit.

    Raises:
        HistoryError: git's files are damaged.
    """
    listed = repository.git.run("for-each-ref", "--format=%(objectname) %(refname)")
    rows = (os.fsdecode(line).split(" ", 1) for line in listed.splitlines())
    refs = {name: commit for commit, name in rows if not name.startswith(_ELSEWHERE)}
    head = repository.head()
    if head.ref is None and head.commit is not None:
        refs[DETACHED] = head.commit
    shallow = read_small(repository.common_dir / "shallow") or ""
    return RepositorySnapshot(head=head.ref or head.commit or "", refs=refs, shallow=tuple(shallow.split()))


def write_bundle(repository: Repository, history: RepositorySnapshot, fd: int, path: str) -> None:
    """Write everything that the refs reach; nothing where there are none.

    Only reading it back shows that git's own files were whole: what git packed before is copied as it is.

    Raises:
        GitFailed, HistoryUnavailable: git could not read it all.
        StorageIO: it could not be written.
    """
    if not history.refs:
        return
    commit = history.refs.get(history.head)
    heads = {**history.refs, **({DETACHED: commit} if commit else {})}
    rows = "".join(f"{object_id} {name}\n" for name, object_id in sorted(heads.items()))
    io.write_all(fd, _FIRST + os.fsencode(rows) + b"\n", path)
    revisions = "".join(f"{object_id}\n" for object_id in sorted(set(heads.values()))).encode()
    arguments = ("--stdout", "--revs", "--delta-base-offset", "--threads=1", "-q")
    with _running(repository, "pack-objects", *arguments) as process:
        _feed(process, iter([revisions]))
        for data in _output(process):
            io.write_all(fd, data, path)


def read_bundle(repository: Repository, chunks: Iterator[bytes], history: RepositorySnapshot) -> None:
    """Take a bundle into a new repository, and set its refs and HEAD.

    Raises:
        GitFailed, HistoryError: it is damaged, or does not hold what the refs name.
    """
    head = history.head or next((name for name in history.refs if name.startswith(HEADS)), f"{HEADS}main")
    text = head if HEX.fullmatch(head) else f"ref: {require_branch(head)}"
    io.write_file(repository.git_dir / "HEAD", os.fsencode(text) + b"\n", 0o644)
    if not history.refs:
        return
    if history.shallow:
        io.write_file(repository.common_dir / "shallow", "".join(f"{one}\n" for one in history.shallow).encode(), 0o644)
    with _running(repository, "index-pack", "--stdin") as process:
        _feed(process, _after_header(chunks))
        for _ in _output(process):
            pass
    commits = "".join(f"{commit}\n" for commit in sorted(set(history.refs.values())))
    repository.git.run("rev-list", "--objects", "--quiet", "--stdin", data=commits.encode(), timeout=_PATIENCE)
    named = {name: commit for name, commit in history.refs.items() if name != DETACHED}
    orders = b"".join(b"create %s\0%s\0" % (os.fsencode(name), commit.encode()) for name, commit in named.items())
    repository.git.run("update-ref", "-z", "--stdin", data=orders)


def fill_index(repository: Repository) -> list[bytes]:
    """Make the index of a new repository agree with HEAD; return the paths in it."""
    if repository.head_commit() is None:
        return []
    entries = repository.git.run("ls-tree", "-r", "-z", "--full-tree", "HEAD")
    repository.git.run("update-index", "-z", "--index-info", data=entries)
    return [entry.partition(b"\t")[2] for entry in entries.split(b"\0") if entry]


def _after_header(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """What follows the empty line that ends the refs."""
    seen = b""
    for data in chunks:
        _, ended, rest = (seen := seen + data).partition(b"\n\n")
        if ended:
            yield rest
            yield from chunks
            return
    raise HistoryUnavailable("this is not a bundle", hint="use another backup")


@contextmanager
def _running(repository: Repository, verb: str, *arguments: str) -> Iterator[Popen[bytes]]:
    """A git process that is ended whatever happens.

    Raises:
        GitFailed: it failed.
    """
    process = repository.git.open(verb, *arguments, variables={})
    late = Worker("memfs-bundle", partial(end, process), lambda _: None)
    late.wake(_PATIENCE)
    try:
        yield process
        assert process.stderr is not None
        message = process.stderr.read().decode("utf-8", "replace").strip()
        if process.wait():
            raise failure(verb, process.returncode, message)
    finally:
        late.close()
        end(process)


def _feed(process: Popen[bytes], chunks: Iterator[bytes]) -> None:
    assert process.stdin is not None
    with suppress(BrokenPipeError):  # its exit code and message say more
        for data in chunks:
            process.stdin.write(data)
        process.stdin.close()
    for _ in chunks:  # a check made while reading must see the end
        pass


def _output(process: Popen[bytes]) -> Iterator[bytes]:
    assert process.stdout is not None
    while data := process.stdout.read(_CHUNK):
        yield data


# -- the file ---------------------------------------------------------------------------------------------------------
FILES = "files.tar.gz"
HISTORY = "history.bundle"
STATE = "state/"
FALLBACK = "fallback"
VERSION = 1
GZIP = 31
_FORMAT = "memfs-backup"
_LONGEST_MANIFEST = 1 << 30
_PIECE = 1 << 18
_MANIFEST = re.compile(r"manifest-([0-9a-f]{64})\.json")
_DEEP = 64

Commit = Annotated[str, re.compile(r"[0-9a-f]{40}")]
Contents = Iterator[tuple[str, Iterator[bytes]]]
"""Names with the bytes, which are right if no error comes at their end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupManifest:
    """What a backup says of itself.

    Attributes:
        created: when, ISO 8601.
        workspace: the folder's name.
        origin: which workspace it came from, as the workspace's own state names it.
        prefix: where in its repository the workspace is.
        head: the branch, or the commit where HEAD was detached.
        refs: commits and tags by full ref name; ``HEAD`` where it was detached.
        shallow: commits at which a shallow clone's history ends.
        parts: what follows in the archive, in order.
        files: the workspace's files by path.
        unpacked: bytes of ``files.tar.gz`` when unpacked.
        outdated: which files of that archive do not count, by their place in it from 0: they changed meanwhile.
        waiting: how many writes waited for their commit.
        left_out: what could not be taken along, and why.
        whole: whether nothing is missing that should be there; what is no file is left out on purpose.
    """

    created: str
    workspace: str
    origin: str
    prefix: str = ""
    head: str = ""
    refs: Mapping[str, Commit] = field(default_factory=dict)
    shallow: tuple[Commit, ...] = ()
    parts: Mapping[str, Digest]
    files: Mapping[str, Digest]
    unpacked: int
    outdated: tuple[int, ...] = ()
    waiting: int = 0
    left_out: tuple[str, ...] = ()
    whole: bool = True

    @property
    def count(self) -> int:
        """How many files it holds."""
        return len(self.files)

    @property
    def tip(self) -> str | None:
        """The commit that HEAD was at; None where there was none."""
        return self.refs.get(self.head) or self.refs.get("HEAD")

    def encode(self) -> bytes:
        """As it is in the archive."""
        from dataclasses import asdict

        facts = {"format": _FORMAT, "version": VERSION, **asdict(self)}
        return json.dumps(facts, separators=(",", ":"), sort_keys=True).encode("ascii")


def manifest_name(data: bytes) -> str:
    """The name of the manifest in the archive."""
    return f"manifest-{hashlib.sha256(data).hexdigest()}.json"


@contextmanager
def opened(path: Path) -> Iterator[tuple[BackupManifest, Contents]]:
    """A backup's manifest and its parts, each of them once and in the manifest's order.

    Raises:
        BackupInvalid: it is not a backup, or is damaged.
        FormatUnsupported: it was made by a newer memfs.
        StorageIO: it cannot be read.
    """
    try:
        fd = io.open_file(path, os.O_RDONLY | os.O_NONBLOCK)
    except (FileNotFoundError, MemfsError) as error:
        raise BackupInvalid("no backup can be read here", path=str(path), hint="name the file of one") from error
    try:
        with io.descriptor(fd):
            found = os.fstat(fd)
            if not stat.S_ISREG(found.st_mode):
                raise _invalid("it is not a file")
            archive = members(chunks_of(fd, found.st_size, str(path)))
            first = next(archive, None)
            if first is None:
                raise _invalid("it is empty")
            manifest = _manifest(first)
            yield manifest, _parts(manifest, archive)
    except BackupInvalid as error:
        raise error.located(str(path)) from error.__cause__
    except CorruptRecord as error:
        raise _invalid(error.message).located(str(path)) from error


def _parts(manifest: BackupManifest, archive: Iterator[TarMember]) -> Contents:
    for name, digest in manifest.parts.items():
        member = next(archive, None)
        if member is None or (member.name, member.size) != (name, digest[0]):
            raise _invalid(f"the part {name!a} is missing")
        yield from _checked(name, member, digest)
    if next(archive, None) is not None:
        raise _invalid("it holds more than its manifest names")


def _checked(name: str, member: TarMember, digest: Digest) -> Contents:
    chunks = verified(member.chunks(), digest, name)
    yield name, chunks
    for _ in chunks:
        pass


def files_of(manifest: BackupManifest, chunks: Iterable[bytes]) -> Contents:
    """The workspace's files in a part, each once.

    Raises:
        BackupInvalid: a file is missing or unknown, or there are more bytes than the manifest says.
        CorruptRecord: a file is damaged.
    """
    awaited = dict(manifest.files)
    outdated = frozenset(manifest.outdated)
    for number, member in enumerate(members(_unpacked(chunks, manifest.unpacked))):
        if number in outdated:
            continue
        digest = awaited.pop(member.name, None)
        if digest is None:
            raise _invalid(f"the file {member.name!a} is not one of those it names")
        yield from _checked(member.name, member, digest)
    if awaited:
        raise _invalid(f"the file {next(iter(awaited))!a} is missing")


def _manifest(member: TarMember) -> BackupManifest:
    named = _MANIFEST.fullmatch(member.name)
    if named is None:
        raise _invalid("it does not begin with a manifest")
    data = member.data(_LONGEST_MANIFEST)
    if hashlib.sha256(data).hexdigest() != named[1]:
        raise _invalid("its manifest is damaged")
    try:
        facts = json.loads(data)
        sort, version = facts.pop("format"), facts.pop("version")
    except (ValueError, RecursionError, KeyError, AttributeError, TypeError):
        raise _invalid("its manifest cannot be read") from None
    if sort != _FORMAT or not isinstance(version, int):
        raise _invalid("its manifest is of another sort")
    if version > VERSION:
        raise FormatUnsupported(
            f"the backup is of format {version}, this memfs knows up to {VERSION}", hint="use a newer memfs"
        )
    try:
        found: BackupManifest = decoded(BackupManifest, facts)
    except ValueError as error:
        raise _invalid(f"its manifest is of another shape: {error}") from None
    _refuse_names(found)
    return found


def _refuse_names(found: BackupManifest) -> None:
    """Refuse a manifest whose names are not what they should be: nothing has checked them before."""
    for name in (*found.parts, *found.files, *([found.prefix] if found.prefix else ())):
        if ".git" in check_name(name).casefold().split("/"):
            raise _invalid(f"the name {name!a} leads into a repository")
    for path in found.files:
        folder = path.rpartition("/")[0]
        while folder:
            if folder in found.files or path.count("/") > _DEEP:
                raise _invalid(f"the name {path!a} cannot be a file's")
            folder = folder.rpartition("/")[0]
    if any(name not in (FILES, HISTORY) and not name.startswith(STATE) for name in found.parts):
        raise _invalid("it names parts that no backup has")
    if FILES not in found.parts or bool(found.refs) != (HISTORY in found.parts):
        raise _invalid("a part is missing")


def _unpacked(chunks: Iterable[bytes], limit: int) -> Iterator[bytes]:
    """What was compressed; never more than ``limit`` bytes, and never more than a piece of them at once."""
    packed, given = zlib.decompressobj(GZIP), 0
    for fresh in chunks:
        rest, data = fresh, b""
        while rest or (len(data) == _PIECE and not packed.eof):
            if packed.eof:
                raise _invalid("something follows its files")
            try:
                data = packed.decompress(rest, _PIECE)
            except zlib.error:
                raise _invalid("its files cannot be unpacked") from None
            rest = packed.unconsumed_tail or packed.unused_data
            given += len(data)
            if given > limit:
                raise _invalid("its files take more room than it says")
            yield data
    if not packed.eof:
        raise _invalid("its files are cut short")


def prove_history(chunks: Iterator[bytes], history: RepositorySnapshot, folder: Path) -> None:
    """Take a bundle into a new repository in ``folder``, which must not exist, and remove it.

    Raises:
        HistoryError: it cannot be taken.
        StorageIO: there is no room to try.
    """
    io.mkdir(folder, 0o700)
    try:
        with closing(Repository.create(folder)) as repository:
            read_bundle(repository, chunks, history)
    finally:
        with suppress(MemfsError, OSError):
            io.remove_all(folder)


def verify(path: Path) -> BackupManifest:
    """Read a whole backup: every part and every file in it is what the manifest says.

    Raises:
        BackupInvalid, FormatUnsupported, StorageIO: see ``opened``.
    """
    with opened(path) as (manifest, parts):
        for name, chunks in parts:
            for _ in files_of(manifest, chunks) if name == FILES else ():
                pass
    return manifest


def _invalid(reason: str) -> BackupInvalid:
    return BackupInvalid(f"this is not a valid backup: {reason}", hint="use another backup")


_STATE_NAMES = frozenset({"journal", "usage.db", INBOX, FALLBACK})
_STATE_FOLDERS = ("recovered", "spool")


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoreResult:
    """What was made: the workspace's folder, how many files, the manifest of the backup.

    ``others`` says whether the last commit holds more than the workspace: those files are the person's to check out,
    since their repository's filters belong to it.
    """

    root: Path
    files: int
    manifest: BackupManifest
    others: bool


def restore(backup: Path, target: Path) -> RestoreResult:
    """Make a workspace in ``target`` from a backup; the folder must not exist, or be empty.

    Raises:
        BackupInvalid, FormatUnsupported: the backup is damaged or holds what no backup may hold; nothing was made.
        Conflict: something is at ``target``.
        StorageIO, HistoryError: it could not be made.
    """
    target = target.absolute()
    _require_nothing(target)
    manifest = verify(backup)
    with io.operation("restore", target.parent):
        target.parent.mkdir(parents=True, exist_ok=True)
        io.sweep(target.parent, f".{target.name}.", folders=True)  # what a killed restore left
    building = target.with_name(f".{target.name}.restored.{os.getpid()}.tmp")
    if not io.mkdir(building, 0o700):  # of a killed one that had our number, as in a container that was restarted
        io.remove_all(building)
        io.mkdir(building, 0o700)
    try:
        others = _build(backup, building)
        io.sync_everything(str(building))
        mask = os.umask(0o077)
        os.umask(mask)
        io.chmod(building, 0o777 & ~mask)
        _require_nothing(target)
        io.rename(str(building), str(target))
        io.sync_folder(target.parent)
    except BaseException:
        with suppress(MemfsError, OSError):
            io.remove_all(building)
        raise
    return RestoreResult(root=target / manifest.prefix, files=len(manifest.files), manifest=manifest, others=others)


# -- before -------------------------------------------------------------------------------------------------------
def _require_nothing(target: Path) -> None:
    try:
        taken = bool(os.listdir(target))
    except FileNotFoundError:
        taken = False
    except OSError:
        taken = True
    if taken or target.is_symlink():
        raise Conflict(
            "something is there already", path=str(target), hint="name a folder that does not exist, or is empty"
        )


# -- building -----------------------------------------------------------------------------------------------------
def _build(backup: Path, building: Path) -> bool:
    with opened(backup) as (manifest, parts):
        workspace = building / manifest.prefix
        _make_folders(building, workspace)
        io.mkdir(workspace / CONTENT)
        made = Repository.create(building)
        repository = Repository.find(workspace) or made
        history = RepositorySnapshot(head=manifest.head, refs=manifest.refs, shallow=manifest.shallow)
        for name, chunks in parts:
            if name == FILES:
                for path, data in files_of(manifest, chunks):
                    if path != SETTINGS_FILE and not path.startswith(f"{CONTENT}/"):
                        raise BackupInvalid(f"it names a file that no backup has: {path!a}", hint="use another backup")
                    _make_folders(workspace, (workspace / path).parent)
                    _write_file(workspace / path, data, 0o666)
            elif name == HISTORY:
                _take_history(repository, chunks, history)
            else:
                kept = name.removeprefix(STATE)
                folder, _, last = kept.rpartition("/")
                if kept not in _STATE_NAMES and (folder not in _STATE_FOLDERS or not last):
                    raise BackupInvalid(f"it names a state that no backup has: {kept!a}", hint="use another backup")
                if folder:
                    io.make_private_folder(repository.state / folder)
                _write_file(repository.state / kept, chunks, 0o600)
        if not history.refs:
            _take_history(repository, iter(()), history)
        # Writes that lay in the secondary location follow those in the journal; opening the workspace carries them out.
        fallback = repository.state / FALLBACK
        with closing(Journal(fallback)) as other, closing(Journal(repository.state / "journal")) as journal:
            journal.catch_up()
            if waiting := [one for one in other.operations() if not journal.knows(one.id)]:
                journal.append(waiting)
        io.unlink(fallback, missing_ok=True)
        install_driver(repository)
        own = tuple(repository.full(path) for path in (CONTENT, SETTINGS_FILE))
        others = not all(name.startswith(own) for name in fill_index(repository))
        repository.close()
        made.close()
    return others


def _take_history(repository: Repository, chunks: Iterator[bytes], history: RepositorySnapshot) -> None:
    try:
        read_bundle(repository, chunks, history)
    except HistoryError as error:
        raise BackupInvalid(
            f"its history cannot be taken: {error.message}",
            hint="use another backup, or take the files alone: tar -xOf BACKUP files.tar.gz | tar -xz",
        ) from error


def _write_file(path: Path, data: Iterator[bytes], mode: int) -> None:
    try:
        fd = io.open_file(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    except FileExistsError:
        raise BackupInvalid(f"it names the same file twice: {path.name!a}", hint="use another backup") from None
    with io.descriptor(fd):
        for chunk in data:
            io.write_all(fd, chunk, str(path))


def _make_folders(top: Path, folder: Path) -> None:
    """Make the folders on the way down. The top is new and ours alone, so that no link can be there."""
    missing = []
    while folder != top and not folder.is_dir():
        missing.append(folder)
        folder = folder.parent
    for place in reversed(missing):
        io.mkdir(place)
