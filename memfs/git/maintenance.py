"""Packs objects, finds damage by ``git fsck``, and writes a whole history as one stream.

Nothing is ever pruned. The stream is one that ``git clone`` reads (``git bundle``, version 2); one that is damaged or
incomplete raises, and its refs are not set.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from subprocess import Popen

from memfs.dataclass import dataclass
from memfs.errors import HistoryError, HistoryUnavailable
from memfs.fs import io
from memfs.fs.executor import Worker
from memfs.git.layout import HEADS, HEX, PER_WORKTREE, read_small, require_branch
from memfs.git.objects import Objects, TreeEntry, build
from memfs.git.process import contents, end, entries_of, failure, finish, sizes
from memfs.git.repository import Repository

PATIENCE = 900.0
# A commit of one item writes six or seven loose objects, spread evenly over 256 folders: this many are 1,000 commits.
LOOSE_DUE = 6000
PACKS_DUE = 40
PACKS_JOINED = 8
_SAMPLED = ("17", "5e", "a3", "d9")


def due(repository: Repository) -> bool:
    """Whether about 1,000 commits have gathered since objects were last packed; looks at five folders only."""
    folder = repository.common_dir / "objects"
    loose = sum(len(io.listed(folder / name)) for name in _SAMPLED) * 256 // len(_SAMPLED)
    packs = sum(name.endswith(".pack") for name in io.listed(folder / "pack"))
    return loose >= LOOSE_DUE or packs >= PACKS_DUE


def maintain(repository: Repository) -> int:
    """Pack loose objects, join many packs, write the commit-graph with changed paths; the caller holds ``commit.lock``.

    Returns:
        How many bytes less the objects take.

    Raises:
        GitFailed: git refused; the repository is as usable as before.
    """
    top = repository.common_dir / "objects"
    before = io.weigh(top)
    packs = sum(name.endswith(".pack") for name in io.listed(top / "pack"))
    # One pack of all lets git store each version as a difference; what is unreachable is kept, as without joining.
    join = ("-a", "-k") if packs >= PACKS_JOINED else ()
    repository.git.run("repack", "-d", "-q", *join, timeout=PATIENCE)
    if repository.head_commit() is not None:
        options = ("write", "--reachable", "--changed-paths", "--split", "--no-progress")
        repository.git.run("commit-graph", *options, timeout=PATIENCE)
    for name in ("pack", "info", "info/commit-graphs"):
        if (top / name).is_dir():
            io.sync_folder(top / name)
    return max(0, before - io.weigh(top))


def intact(repository: Repository, blobs: Iterable[str]) -> set[str]:
    """Those of the contents that git gives whole, each proved by its id; of the others one by one can be asked."""
    found: set[str] = set()
    with suppress(HistoryError):
        for name, _ in contents(repository.git, sizes(repository.git, blobs), PATIENCE):
            found.add(name)
    return found


_ARGUMENTS = ("--full", "--strict", "--no-dangling", "--no-progress", "--name-objects")
_NAMED = re.compile(r"(?<!pack-)\b([0-9a-f]{40})\b(?: \((\S+)\))?")
_LOOSE = re.compile(r"objects/([0-9a-f]{2})/([0-9a-f]{38})\b")
_OF_OBJECT = re.compile(
    r"object corrupt or missing|^missing |^loose object|^packed |^cannot unpack|^index CRC mismatch|hash mismatch"
    r"|^unable to (?:unpack|read|parse)|garbage at end|^corrupt"
)
# What fsck says beside the point: how it came upon an object, and what zlib thought of it.
_ASIDE = re.compile(r"^(?:hint:|notice|dangling|unreachable|broken link|to |inflate|bad object|Could not read)")
_LINT = re.compile(r"^(?:warning )?in (?:blob|tree|commit|tag) |: invalid reflog entry|^bad ref for \S*logs/")


@dataclass(frozen=True, slots=True, kw_only=True)
class FsckFinding:
    """One thing that git found.

    Attributes:
        message: what it is.
        object: the id of the damaged or missing object, "" where it is about something else.
    """

    message: str
    object: str = ""


def examine(repository: Repository) -> list[FsckFinding]:
    """The damage that git finds when it reads every object of the repository; not what is merely untidy.

    Raises:
        GitFailed: git took too long or is missing, so that nobody can tell.
    """
    _, out, err = finish(repository.git.open("fsck", *_ARGUMENTS, variables={}), b"", PATIENCE)
    lines = [*out.decode("utf-8", "replace").splitlines(), *err.splitlines()]
    found: dict[str, FsckFinding] = {}
    for line in lines:
        finding = _read(line)
        if finding is not None:
            key = finding.object or finding.message
            before = found.get(key)
            found[key] = finding if before is None or len(finding.message) > len(before.message) else before
    return list(found.values())


def _read(line: str) -> FsckFinding | None:
    text = line.strip()
    level, colon, rest = text.partition(": ")
    said = rest if colon and level in ("error", "fatal", "warning") else text
    if loose := _LOOSE.search(said):
        return lost(loose[1] + loose[2])
    if not said or level == "warning" or _LINT.search(said) or _ASIDE.search(said):
        return None
    named = _NAMED.search(said)
    return lost(named[1], named[2] or "") if named and _OF_OBJECT.search(said) else FsckFinding(message=said)


def lost(name: str, place: str = "") -> FsckFinding:
    """The finding that an object is damaged or missing; ``place`` is how git came upon it."""
    where = f" ({place})" if place else ""
    return FsckFinding(message=f"the git object {name}{where} is damaged or missing", object=name)


def trees_of_index(repository: Repository) -> Objects:
    """The trees that a commit of the person's index would have."""
    staged = {one.path: TreeEntry(one.mode, one.blob) for one in entries_of(repository.git) if one.stage == 0}
    made: Objects = {}
    build(staged, made)
    return made


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
    wanted = "".join(f"{object_id}\n" for object_id in sorted(set(heads.values()))).encode()
    arguments = ("--stdout", "--revs", "--delta-base-offset", "--threads=1", "-q")
    with _running(repository, "pack-objects", *arguments) as process:
        _feed(process, iter([wanted]))
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


def _after_header(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """What follows the empty line that ends the refs."""
    seen = b""
    found = False
    for data in chunks:
        if found:
            yield data
            continue
        seen += data
        at = seen.find(b"\n\n")
        if at >= 0:
            found = True
            yield seen[at + 2 :]
    if not found:
        raise HistoryUnavailable("this is no bundle", hint="use another backup")


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
