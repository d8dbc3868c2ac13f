"""Branchlist: which branches agents have been given, and the folders in which they work.

Owns that list, ``memfs/branches.json`` in the git common folder, and what counts as a name of a branch. It is written
before a working tree is begun, so that one that was interrupted can be taken up again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from memfs.errors import BranchRefused, CorruptRecord, ItemTooLarge, MemfsError, NotRegularFile
from memfs.files import io
from memfs.history.refs import HEADS, HEX, is_branch

FILE = "memfs/branches.json"
OURS = "memfs/"
_LIMIT = 4 << 20
_VERSION = 1
_PART = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """One branch that an agent was given.

    Attributes:
        branch: full ref.
        folder: top of its working tree.
        git_dir: its git folder below the common one, "" until git has made it.
        start: the commit from which it began.
        agent: who works there, "" where nobody was named.
        time: when it was begun, as ISO 8601.
        ready: whether its working tree is complete.
    """

    branch: str
    folder: str
    git_dir: str = ""
    start: str = ""
    agent: str = ""
    time: str = ""
    ready: bool = False

    @property
    def name(self) -> str:
        """The branch as people name it here: without ``memfs/``."""
        return short_name(self.branch)


def short_name(ref: str) -> str:
    """A branch as people name it here: without ``memfs/``."""
    return ref.removeprefix(HEADS).removeprefix(OURS)


def ref_of(name: str) -> str:
    """The branch that a name means: ``memfs/NAME``, or, with a slash in it, the name as it stands.

    Raises:
        BranchRefused: no branch of memfs can be called so.
    """
    plain = name.removeprefix(HEADS)
    ref = HEADS + (plain if "/" in plain else OURS + plain)
    if not is_branch(ref) or not all(_PART.fullmatch(part) for part in plain.split("/")) or plain.endswith(".lock"):
        hint = "use letters, digits, '-', '_' and '.', as in memfs branch start refactoring"
        raise BranchRefused(f"no branch can be called {ascii(name)[:80]}", hint=hint)
    return ref


def read_list(common_dir: Path) -> dict[str, Given]:
    """The branches by their refs.

    Raises:
        CorruptRecord: the list cannot be read.
    """
    path = common_dir / FILE
    try:
        value = json.loads(io.read_file(path, _LIMIT))
        if value["version"] != _VERSION:
            raise ValueError("another version")
        rows = [_given(row) for row in value["branches"]]
    except FileNotFoundError:
        return {}
    except (NotRegularFile, ItemTooLarge, ValueError, KeyError, TypeError, RecursionError) as error:
        hint = "move it away; git worktree list still knows the folders"
        raise CorruptRecord("the list of branches cannot be read", path=str(path), hint=hint) from error
    return {row.branch: row for row in rows}


def save_list(common_dir: Path, rows: Iterable[Given]) -> None:
    """Replace the list, durably. The caller holds ``commit.lock``."""
    listed = [asdict(row) for row in sorted(rows, key=lambda row: row.branch)]
    io.make_private_folder(common_dir / "memfs")
    text = json.dumps({"version": _VERSION, "branches": listed}, indent=2)
    io.write_file(common_dir / FILE, text.encode() + b"\n")


def agent_at(common_dir: Path, git_dir: Path) -> str:
    """The agent that works in a working tree, by its git folder; "" where none was named, or nobody can tell."""
    if git_dir == common_dir:
        return ""
    try:
        rows = read_list(common_dir).values()
    except MemfsError:
        return ""
    return next((row.agent for row in rows if row.git_dir and common_dir / row.git_dir == git_dir), "")


def _given(row: Mapping[str, Any]) -> Given:
    given = Given(**row)
    texts = (given.branch, given.folder, given.git_dir, given.start, given.agent, given.time)
    if not all(isinstance(text, str) and "\0" not in text for text in texts) or not is_branch(given.branch):
        raise ValueError("not a branch")
    if given.start and not HEX.fullmatch(given.start):
        raise ValueError("not a commit")
    if given.git_dir and not re.fullmatch(r"worktrees/(?!\.{1,2}$)[^/\0]+", given.git_dir):
        raise ValueError("not a working tree")
    return given
