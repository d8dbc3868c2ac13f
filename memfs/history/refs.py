"""Where HEAD and branches point, read from git's own files.

Owns the files format of refs: HEAD, loose refs, ``packed-refs``. Reads only and starts no process; moving a ref is
git's own business.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass

from memfs.errors import HistoryError
from memfs.files import io
from memfs.history.layout import Layout, read_small

HEX = re.compile(r"[0-9a-f]{40}")
NULL = "0" * 40
_BRANCH = re.compile(
    r"refs/heads/(?!/)(?!.*(?:\.\.|//|@\{|\.lock(?:/|$)|/\.))[^\x00-\x20\x7f~^:?*\[\\.][^\x00-\x20\x7f~^:?*\[\\]*(?<![./])"
)
_PER_WORKTREE = ("refs/bisect/", "refs/worktree/", "refs/rewritten/")
_DEPTH = 5


@dataclass(frozen=True, slots=True)
class Head:
    """Where HEAD points: ``ref`` None = detached; ``commit`` None = a branch without a commit yet."""

    ref: str | None
    commit: str | None


class Refs:
    """The refs of one working tree. Every call looks at the disk; only the parsed ``packed-refs`` is kept."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._packed: dict[str, str] = {}
        self._packed_facts: tuple[int, int, int] | None = None

    def head(self) -> Head:
        """Where HEAD points.

        Raises:
            HistoryError: HEAD is missing or unreadable.
        """
        path = self._layout.git_dir / "HEAD"
        text = f"ref: {os.readlink(path)}" if path.is_symlink() else read_small(path) or ""
        if HEX.fullmatch(text):
            return Head(None, text)
        if not text.startswith("ref:"):
            raise HistoryError("HEAD is unreadable", path=str(path), hint="run git fsck")
        ref = text.removeprefix("ref:").strip()
        return Head(ref, self.commit(ref))

    def commit(self, ref: str, depth: int = _DEPTH) -> str | None:
        """The commit a ref names; None when there is no such ref."""
        folder = self._layout.git_dir if ref.startswith(_PER_WORKTREE) else self._layout.common_dir
        text = read_small(folder / ref)
        if text is None:
            return self._packed_refs().get(ref)
        if text.startswith("ref:") and depth:
            return self.commit(text.removeprefix("ref:").strip(), depth - 1)
        if not HEX.fullmatch(text):
            raise HistoryError(f"{ref} is unreadable", path=str(folder / ref), hint="run git fsck")
        return text

    def _packed_refs(self) -> dict[str, str]:
        path = self._layout.common_dir / "packed-refs"
        try:
            facts = os.stat(path)
        except FileNotFoundError:
            return {}
        known = (facts.st_ino, facts.st_size, facts.st_mtime_ns)
        if known != self._packed_facts:
            lines = os.fsdecode(io.read_file(path)).splitlines()
            self._packed = {line[41:]: line[:40] for line in lines if line[:1] not in ("#", "^")}
            self._packed_facts = known
        return self._packed


def require_branch(ref: str) -> str:
    """Return the ref unchanged if it is a well-formed branch name such as ``refs/heads/main``.

    Raises:
        HistoryError: it is not.
    """
    if not _BRANCH.fullmatch(ref):
        raise HistoryError(f"{ref!a} is not a branch", hint="give a full name such as refs/heads/main")
    return ref
