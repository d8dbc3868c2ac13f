"""Rename detection: an item that git took for another one, which it believes to be renamed (B3; decision 47).

Owns finding out, from the commits that are merged, which versions are of another item than their path says. Asks git;
changes nothing.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Literal

from memfs.files.documents import schema_of
from memfs.history.git import GitCommands
from memfs.model.ids import stem_of
from memfs.model.stamp import object_id

Whose = Literal["ours", "theirs"]
WHOSE: tuple[Whose, Whose] = ("ours", "theirs")


_NAMES = ("base", *WHOSE)


def strangers(git: GitCommands, path: str, versions: Sequence[bytes], commits: Sequence[str]) -> frozenset[str]:
    """Which versions of a file are of another item than its path says: of ``base``, ``ours`` and ``theirs``.

    Where a commit has no such path, git followed the file there from another place: of the same item, if its id is the
    same there. Where it has something else there, git joined other files first, whose places collided with this one.

    Args:
        path: of the file that is merged, below the top of the repository.
        versions: the base, ours and theirs.
        commits: from which they are; "" for one that is not known, whose version is not looked at.

    Raises:
        GitFailed: a commit is not there.
    """
    if "\n" in path:  # git would be asked for something else
        return frozenset()
    known = [number for number, commit in enumerate(commits) if commit and versions[number]]
    asked = os.fsencode("".join(f"{commits[number]}:{path}\n" for number in known))
    rows = git.run("cat-file", "--batch-check", data=asked).split(b"\n") if known else []
    strange = set()
    for number, row in zip(known, rows, strict=False):
        if row.endswith(b" missing"):
            places = _places_of(git, commits[number], versions[number])
            if places and stem_of(path) not in map(stem_of, places):
                strange.add(_NAMES[number])
        elif commits[-1] and row.split()[0] != object_id("blob", versions[number]).encode():
            strange.add(_NAMES[number])  # git joined others into it before
    return frozenset(strange)


def _places_of(git: GitCommands, commit: str, data: bytes) -> list[str]:
    """Where a commit has an item of these bytes, in order."""
    blob = object_id("blob", data).encode()
    rows = git.run("ls-tree", "-r", "-z", "--full-tree", commit).split(b"\0")
    found = (row.partition(b"\t") for row in rows if blob in row)
    paths = (os.fsdecode(path) for facts, _, path in found if facts.endswith(blob))
    return sorted(path for path in paths if not schema_of(path))
