"""Sidecarsharing: large values of state documents, brought from one working tree of a repository to another.

Owns that copy: git does not have these files, so no checkout and no merge brings them. They are named by what they
hold, so that one which is there is never another's.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from memfs.errors import MemfsError
from memfs.files import io
from memfs.files.tree import Tree
from memfs.model.statepaths import ITERATIONS, THREADS, document_of_sidecar

_PIECE = 1 << 20


def share_sidecars(source: Path, target: Path) -> int:
    """Copy what a workspace has beside its documents to another that has the documents; how many files.

    What cannot be read is left out: the document that needs it says so when it is read, and ``memfs check`` too.
    """
    copied = 0
    here, there = Tree(source), Tree(target)
    try:
        for folder in (ITERATIONS, THREADS):
            for entry in list(here.scan(folder)):
                document = document_of_sidecar(entry.path) if entry.regular else ""
                if document and there.entry(document) is not None and there.entry(entry.path) is None:
                    with suppress(FileNotFoundError, MemfsError):
                        there.write_stream(entry.path, _pieces(here, entry.path))
                        copied += 1
    finally:
        here.close()
        there.close()
    return copied


def _pieces(tree: Tree, path: str) -> Iterator[bytes]:
    fd = tree.open_read(path)
    with io.operation("read", path), open(fd, "rb") as file:
        while piece := file.read(_PIECE):
            yield piece
