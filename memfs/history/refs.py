"""Where HEAD and branches point, read from git's own files.

Owns the files format of refs: HEAD, loose refs, ``packed-refs``. Reads only and starts no process; moving a ref is
git's own business.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass

from memfs.errors import HistoryError, HistoryUnavailable, MemfsError
from memfs.files import io
from memfs.history.layout import Layout, read_small

HEX = re.compile(r"[0-9a-f]{40}")
NULL = "0" * 40
HEADS = "refs/heads/"
PER_WORKTREE = ("refs/bisect/", "refs/worktree/", "refs/rewritten/")
"""Refs of which each working tree has its own."""
_BRANCH = re.compile(
    r"refs/heads/(?!/)(?!.*(?:\.\.|//|@\{|\.lock(?:/|$)|/\.))[^\x00-\x20\x7f~^:?*\[\\.][^\x00-\x20\x7f~^:?*\[\\]*(?<![./])"
)
_DEPTH = 5
_CHECK = "run git fsck; what memfs wrote since waits until this is repaired"


@dataclass(frozen=True, slots=True)
class Head:
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
        """Where HEAD points. Files that a power cut left empty or garbled are told as damage, never guessed at."""
        path = self._layout.git_dir / "HEAD"
        try:
            text = f"ref: {os.readlink(path)}" if path.is_symlink() else read_small(path) or ""
        except (MemfsError, OSError) as error:
            return Head(None, None, f"HEAD is unreadable: {error}")
        if HEX.fullmatch(text):
            return Head(None, text)
        ref = text.removeprefix("ref:").strip()
        if not text.startswith("ref:") or not _sound(ref):
            return Head(None, None, "HEAD is unreadable")
        try:
            return Head(ref, self.commit(ref))
        except HistoryUnavailable as error:
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
        except HistoryUnavailable:
            raise
        except (MemfsError, OSError) as error:
            raise HistoryUnavailable(f"{ref!a} is unreadable: {error}", hint=_CHECK) from error

    def _commit(self, ref: str, depth: int) -> str | None:
        if not _sound(ref):
            raise HistoryUnavailable(f"{ref!a} is no ref", hint=_CHECK)
        folder = self._layout.git_dir if ref.startswith(PER_WORKTREE) else self._layout.common_dir
        text = read_small(folder / ref)
        if text is None and (text := self._packed_refs().get(ref)) is None:
            return None
        if text.startswith("ref:") and depth:
            return self._commit(text.removeprefix("ref:").strip(), depth - 1)
        if not HEX.fullmatch(text):
            raise HistoryUnavailable(f"{ref} is unreadable", path=str(folder / ref), hint=_CHECK)
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
        raise HistoryError(f"{ref!a} is not a branch", hint="give a full name such as refs/heads/main")
    return ref


def is_branch(ref: str) -> bool:
    """Whether a text is a well-formed full name of a branch."""
    return _BRANCH.fullmatch(ref) is not None
