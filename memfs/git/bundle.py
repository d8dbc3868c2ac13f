"""Writes a whole history as one stream that ``git clone`` reads (``git bundle``, version 2), and reads it back.

A stream that is damaged or incomplete raises, and its refs are not set.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from subprocess import Popen

from memfs.dataclass import dataclass
from memfs.errors import HistoryUnavailable
from memfs.fs import io
from memfs.fs.executor import Worker
from memfs.git.layout import read_small
from memfs.git.process import end, failure
from memfs.git.refs import HEADS, HEX, PER_WORKTREE, require_branch
from memfs.git.repository import Repository

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
