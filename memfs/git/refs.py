"""Reads HEAD, branches and other refs from git's own files.

Reading starts no process, and a garbled ref raises instead of being guessed at. No ref is moved here.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from memfs import errors
from memfs.dataclass import NamedTuple
from memfs.fs import io
from memfs.git.layout import Layout, read_small
from memfs.startup import regex

if TYPE_CHECKING:
    from memfs.git.repository import Repository

HEX = regex(r"[0-9a-f]{40}")
NULL = "0" * 40
HEADS = "refs/heads/"
PER_WORKTREE = ("refs/bisect/", "refs/worktree/", "refs/rewritten/")
"""Refs of which each working tree has its own."""
_BRANCH = regex(
    r"refs/heads/(?!/)(?!.*(?:\.\.|//|@\{|\.lock(?:/|$)|/\.))[^\x00-\x20\x7f~^:?*\[\\.][^\x00-\x20\x7f~^:?*\[\\]*(?<![./])"
)
_DEPTH = 5
_CHECK = "run git fsck; what memfs wrote since waits until this is repaired"


class Head(NamedTuple):
    """Where HEAD points.

    Attributes:
        ref: the branch; None = detached, or not to be known.
        commit: None = a branch without a commit yet, or, where ``damage`` says so, not to be known.
        damage: what is wrong with git's own files, in words; "" when nothing is.
    """

    ref: str | None
    commit: str | None
    damage: str = ""

    @property
    def branch(self) -> str:
        """The branch as people name it; "" where HEAD is detached, or nobody can tell."""
        return (self.ref or "").removeprefix(HEADS)


class Refs:
    """The refs of one working tree. Every call looks at the disk; only the parsed ``packed-refs`` is kept."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._packed: tuple[tuple[int, int, int] | None, Mapping[str, str]] = (None, {})

    def head(self) -> Head:
        """Where HEAD points. Files that a power cut left empty or garbled are reported as damage, never guessed at."""
        path = f"{self._layout.git_dir}/HEAD"
        try:
            text = read_small(path) or (f"ref: {os.readlink(path)}" if os.path.islink(path) else "")
        except (errors.MemfsError, OSError) as error:
            return Head(None, None, f"HEAD is unreadable: {error}")
        if HEX.fullmatch(text):
            return Head(None, text)
        ref = text.removeprefix("ref:").strip()
        if not text.startswith("ref:") or not _sound(ref):
            return Head(None, None, "HEAD is unreadable")
        try:
            return Head(ref, self.commit(ref))
        except errors.HistoryUnavailable as error:
            return Head(ref, None, error.message)

    def commit(self, ref: str) -> str | None:
        """The commit a ref names; None when there is no such ref.

        Raises:
            HistoryUnavailable: its file is empty, garbled or cannot be read.
        """
        if not _sound(ref):
            return None
        try:
            return self._commit(ref, _DEPTH)
        except errors.HistoryUnavailable:
            raise
        except (errors.MemfsError, OSError) as error:
            raise errors.HistoryUnavailable(f"{ref!a} is unreadable: {error}", hint=_CHECK) from error

    def _commit(self, ref: str, depth: int) -> str | None:
        path = f"{self._layout.git_dir if ref.startswith(PER_WORKTREE) else self._layout.common_dir}/{ref}"
        text = read_small(path)
        if text is None and (text := self._packed_refs().get(ref)) is None:
            return None
        if text.startswith("ref:") and depth:
            if not _sound(further := text.removeprefix("ref:").strip()):
                raise errors.HistoryUnavailable(f"{further!a} is no ref", hint=_CHECK)
            return self._commit(further, depth - 1)
        if not HEX.fullmatch(text):
            raise errors.HistoryUnavailable(f"{ref} is unreadable", path=path, hint=_CHECK)
        return text

    def _packed_refs(self) -> Mapping[str, str]:
        path = self._layout.common_dir / "packed-refs"
        try:
            facts = os.stat(path)
        except FileNotFoundError:
            return {}
        known = (facts.st_ino, facts.st_size, facts.st_mtime_ns)
        seen, packed = self._packed
        if known != seen:
            packed = parse_packed(io.read_file(path))
            self._packed = (known, packed)
        return packed


def parse_packed(data: bytes) -> dict[str, str]:
    """What each ref names, by the content of ``packed-refs``."""
    lines = os.fsdecode(data).splitlines()
    return {line[41:]: line[:40] for line in lines if line[:1] not in ("#", "^", "")}


def _sound(ref: str) -> bool:
    """Whether a text can be a ref that lies among the others; one cut off or filled up by a power cut cannot."""
    try:
        os.fsencode(ref)
    except UnicodeEncodeError:
        return False
    return ref.startswith("refs/") and "\0" not in ref and {"", ".", ".."}.isdisjoint(ref.split("/"))


def require_branch(ref: str) -> str:
    """Return the ref unchanged if it is a well-formed branch name such as ``refs/heads/main``.

    Raises:
        HistoryError: it is not.
    """
    if not is_branch(ref):
        raise errors.HistoryError(f"{ref!a} is not a branch", hint="give a full name such as refs/heads/main")
    return ref


def is_branch(ref: str) -> bool:
    """Whether a text is a well-formed full name of a branch."""
    return _BRANCH.fullmatch(ref) is not None


def at_a_tip(repository: Repository, path: str) -> bool:
    """Whether HEAD's commit or that of any ref has a file at a workspace path; so too where that is unknown.

    What memfs keeps outside git beside such a file is then no leftover: a checkout of that branch needs it.
    """
    try:
        return bool(blobs_at_tips(repository, path))
    except (errors.MemfsError, OSError):
        return True


def blobs_at_tips(repository: Repository, path: str) -> set[str]:
    """The ids of the blobs that a workspace path has in HEAD's commit and in those of all refs.

    Raises:
        HistoryError: git or its files are damaged or missing.
    """
    listed = repository.git.run("for-each-ref", "--format=%(objecttype) %(objectname) %(*objecttype) %(*objectname)")
    commits = {words[-1] for line in listed.splitlines() if (words := os.fsdecode(line).split())[-2] == "commit"}
    head = repository.head_commit()
    entries = (repository.entry(commit, path) for commit in {*commits, *([head] if head else [])})
    return {entry.id for entry in entries if entry is not None}
