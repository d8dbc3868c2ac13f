"""Mistaken: an item that git took for another one, which it believes to be renamed (B3; decision 47).

Owns finding out, from the two commits that are merged, whether a version is of another item, and where that belongs.
Asks git; changes nothing.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from memfs.files.documents import schema_of
from memfs.history.git import GitCommands
from memfs.model.ids import stem_of
from memfs.model.stamp import object_id

Whose = Literal["ours", "theirs"]
WHOSE: tuple[Whose, Whose] = ("ours", "theirs")


@dataclass(frozen=True, slots=True)
class Foreign:
    """A version of another item.

    Attributes:
        whose: the side it is from.
        path: where that side has it, below the top of the repository.
    """

    whose: Whose
    path: str


def foreign(git: GitCommands, path: str, versions: Sequence[bytes], commits: Sequence[str]) -> Foreign | None:
    """The version that is of another item than its path says; None where there is none.

    Where one side has no such path, git followed the file there from another place: of the same item, if its id is the
    same there.

    Args:
        path: of the file that is merged, below the top of the repository.
        versions: ours and theirs.
        commits: ours and theirs.

    Raises:
        GitFailed: a commit is not there.
    """
    if "\n" in path:  # git would be asked for something else
        return None
    asked = os.fsencode("".join(f"{commit}:{path}\n" for commit in commits))
    rows = git.run("cat-file", "--batch-check", data=asked).splitlines()
    lacking = [number for number, row in enumerate(rows) if row.endswith(b" missing")]
    if len(lacking) != 1:
        return None
    side = lacking[0]
    found = _places_of(git, commits[side], versions[side])
    if not found or stem_of(path) in map(stem_of, found):
        return None
    return Foreign(WHOSE[side], found[0])


def _places_of(git: GitCommands, commit: str, data: bytes) -> list[str]:
    """Where a commit has an item of these bytes, in order."""
    blob = object_id("blob", data).encode()
    rows = git.run("ls-tree", "-r", "-z", "--full-tree", commit).split(b"\0")
    found = (row.partition(b"\t") for row in rows if blob in row)
    paths = (os.fsdecode(path) for facts, _, path in found if facts.endswith(blob))
    return sorted(path for path in paths if not schema_of(path))
