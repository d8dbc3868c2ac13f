"""Bulk: many blobs at once, asked of one git process, where one question each would cost a wait each.

Owns the form of git's batch answers. What is done with the contents is its callers' business.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from memfs.errors import HistoryUnavailable
from memfs.history.git import GitCommands
from memfs.model.stamp import object_id

_AT_ONCE = 2_000
_BYTES_AT_ONCE = 32 << 20


def sizes(git: GitCommands, blobs: Iterable[str]) -> dict[str, int]:
    """The sizes of blobs; those that are not there are left out."""
    request = "".join(f"{blob}\n" for blob in dict.fromkeys(blobs)).encode()
    out = git.run("cat-file", "--batch-check", data=request) if request else b""
    rows = (line.split() for line in out.decode("ascii", "replace").splitlines())
    return {row[0]: int(row[2]) for row in rows if len(row) == 3 and row[1] == "blob"}


def contents(git: GitCommands, blobs: Mapping[str, int]) -> Iterator[tuple[str, bytes]]:
    """The contents of blobs, each verified.

    Args:
        blobs: by id their sizes, as ``sizes`` gives them: so much is asked for at once as fits into memory.

    Raises:
        HistoryUnavailable: one is missing or damaged.
    """
    for chunk in _chunks(blobs):
        out = git.run("cat-file", "--batch", data="".join(f"{blob}\n" for blob in chunk).encode())
        at = 0
        for blob in chunk:
            end = out.find(b"\n", at)
            facts = out[at:end].split()
            if len(facts) != 3 or facts[0] != blob.encode():
                raise HistoryUnavailable(f"the object {blob} is not in the repository", hint="run git fsck")
            start, at = end + 1, end + 2 + int(facts[2])
            data = out[start : at - 1]
            if object_id("blob", data) != blob:
                raise HistoryUnavailable(f"the object {blob} is damaged", hint="run git fsck")
            yield blob, data


def _chunks(blobs: Mapping[str, int]) -> Iterator[list[str]]:
    chunk: list[str] = []
    size = 0
    for blob, length in blobs.items():
        if chunk and (len(chunk) >= _AT_ONCE or size + length > _BYTES_AT_ONCE):
            yield chunk
            chunk, size = [], 0
        chunk.append(blob)
        size += length
    if chunk:
        yield chunk
