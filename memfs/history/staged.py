"""What the person has staged: how their index differs from a commit.

Owns reading that difference. Never changes an index, and never looks at working files, so that no filter runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from memfs.history.git import GitCommands
from memfs.history.objects import EMPTY_TREE
from memfs.history.refs import NULL


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


def left_out(git: GitCommands) -> frozenset[bytes]:
    """The paths that git leaves out of the working tree by the person's wish (sparse checkout, skip-worktree)."""
    out = git.run("ls-files", "-t", "-z", "--cached", "--full-name")
    return frozenset(row[2:] for row in out.split(b"\0") if row.startswith(b"S "))
