"""Writes an index for a partial checkout, and reads which entries of an index are staged or skipped.

Writes version 3 of git's index format, and only where nobody works yet; git itself makes every other change.
"""

from __future__ import annotations

import hashlib
import os
import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from memfs.errors import RepoUnsupported
from memfs.git.objects import EMPTY_TREE, TreeEntry
from memfs.git.process import GitCommands
from memfs.git.refs import NULL

_SKIP_WORKTREE, _EXTENDED, _LONGEST = 0x4000, 0x4000, 0xFFF
_BITS = 0xFFFFFFFF
_STAT = struct.Struct(">10I20sH")
_NO_STAT = (0,) * 6


def encode_index(entries: Iterable[tuple[bytes, TreeEntry]], laid: Mapping[bytes, os.stat_result]) -> bytes:
    """An index that holds these paths; those that were not laid out are marked as meant to be missing.

    Args:
        laid: what the disk says of the files that lie there, so that git need not read them to see they are unchanged.

    Raises:
        RepoUnsupported: there are paths that no working tree can have.
    """
    rows = sorted(entries)
    body = b"".join(_encoded(path, entry, laid.get(path)) for path, entry in rows)
    data = b"DIRC" + struct.pack(">II", 3, len(rows)) + body
    return data + hashlib.sha1(data, usedforsecurity=False).digest()


def _encoded(path: bytes, entry: TreeEntry, facts: os.stat_result | None) -> bytes:
    _require_path(path)
    times = _NO_STAT if facts is None else _times(facts)
    who = (0, 0, 0) if facts is None else (facts.st_uid & _BITS, facts.st_gid & _BITS, facts.st_size & _BITS)
    flags = min(len(path), _LONGEST) | (_EXTENDED if facts is None else 0)
    fixed = _STAT.pack(*times, int(entry.mode, 8), *who, bytes.fromhex(entry.id), flags)
    fixed += b"" if facts is not None else struct.pack(">H", _SKIP_WORKTREE)
    row = fixed + path
    return row + b"\0" * (8 - len(row) % 8)


def _times(facts: os.stat_result) -> tuple[int, ...]:
    seconds = (divmod(moment, 10**9) for moment in (facts.st_ctime_ns, facts.st_mtime_ns))
    (changed, changed_ns), (modified, modified_ns) = seconds
    return (
        *(changed & _BITS, changed_ns, modified & _BITS, modified_ns),
        *(facts.st_dev & _BITS, facts.st_ino & _BITS),
    )


def _require_path(path: bytes) -> None:
    """Refuse what git itself would not take into an index: it may lay that out later without asking again."""
    for part in path.split(b"/"):
        plain = part.lower().rstrip(b". ").replace(b"\xe2\x80\x8c", b"").replace(b"\xe2\x80\x8d", b"")
        if part in (b"", b".", b"..") or plain in (b".git", b"git~1") or plain.startswith(b".git:"):
            shown = ascii(path)[2:-1]
            raise RepoUnsupported("a commit names a file inside a git folder", path=shown, hint="run git fsck")


@dataclass(frozen=True, slots=True)
class StagedEntry:
    """What an index holds for a path: mode and blob; None when it holds nothing, "" for both sides of a conflict."""

    mode: str
    blob: str | None


def staged_changes(
    git: GitCommands, commit: str | None, index: Path | None = None, *, planned: bool = True
) -> Mapping[bytes, StagedEntry]:
    """The paths whose index entry differs from a commit (None: from nothing), in the person's index or another file.

    Args:
        planned: those that are only going to be added (``git add -N``), too; no commit takes them.
    """
    variables = {"GIT_INDEX_FILE": str(index)} if index else {}
    against = commit or EMPTY_TREE
    options: tuple[str, ...] = ("--cached", "--raw", "-z", "--no-abbrev", "--no-renames")
    options += () if planned else ("--ita-invisible-in-index",)
    out = git.run("diff-index", *options, against, "--", variables=variables)
    fields = out.split(b"\0")[:-1]
    changes = {}
    for facts, path in zip(fields[::2], fields[1::2], strict=True):
        _, mode, _, blob, status = facts.decode().split(" ")
        changes[path] = StagedEntry(mode, "" if status == "U" else None if blob == NULL else blob)
    return changes


@dataclass(frozen=True, slots=True)
class IndexEntry:
    """A row of an index: path below the top of the working tree, mode, blob, and 0 but where a merge is unfinished."""

    path: bytes
    mode: str
    blob: str
    stage: int


def entries_of(git: GitCommands) -> list[IndexEntry]:
    """Everything that the person's index names."""
    rows = []
    for row in git.run("ls-files", "-t", "-s", "-z", "--full-name").split(b"\0")[:-1]:
        facts, _, path = row.partition(b"\t")
        _, mode, blob, stage = facts.decode("ascii").split(" ")
        rows.append(IndexEntry(path, mode, blob, int(stage)))
    return rows


def left_out(git: GitCommands) -> frozenset[bytes]:
    """The paths that git leaves out of the working tree by the person's wish (sparse checkout, skip-worktree)."""
    out = git.run("ls-files", "-t", "-z", "--cached", "--full-name")
    return frozenset(row[2:] for row in out.split(b"\0") if row.startswith(b"S "))
