"""KnownFiles: the files that coding agents read on their own (seed 004, P6).

Owns which files these are, reading them without leaving the repository, and reading them again only when they change.
When a text is said in one is ``memfs.sources.known_text``'s business.
"""

from __future__ import annotations

import os
import posixpath
import re
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from memfs.errors import MemfsError
from memfs.files.forked import renewed_in_child
from memfs.files.scan import Entry
from memfs.files.tomltext import FILE
from memfs.files.tree import Tree
from memfs.sources.known_text import KnownText, Passages

NAMES = ("CLAUDE.md", "CLAUDE.local.md", ".claude/CLAUDE.md", "AGENTS.md")
"""What is looked for in the workspace's folder and in each above it, up to the repository's top."""

_MOST_BYTES = 256 << 10
_MOST_IMPORTS = 20
_DEEPEST = 32
_IMPORT = re.compile(r"(?:^|(?<=\s))@([\w./-]{1,300}[\w/-])")
_Facts = tuple[int, int, int, int]


class _File:
    """One file that was read: its facts, its passages, and the files it imports."""

    __slots__ = ("facts", "imports", "passages")

    def __init__(self, facts: _Facts, text: str, imports: tuple[str, ...]) -> None:
        self.facts = facts
        self.passages = Passages(text)
        self.imports = imports


class KnownFiles:
    """The files that agents read on their own: ``CLAUDE.md``, ``CLAUDE.local.md``, ``.claude/CLAUDE.md`` and
    ``AGENTS.md`` from the workspace up to the repository's top, with what they import by ``@path``, and ``memfs.toml``.

    Of each the first 256 KiB count. Nothing outside the repository is read. May be used from several threads.
    """

    def __init__(self, root: Path, top: Path | None = None) -> None:
        """
        Args:
            root: the workspace's folder.
            top: the repository's top folder, ``root`` or above it; None means ``root``.
        """
        self._root = root.resolve()
        resolved = self._root if top is None else top.resolve()
        self._top = resolved if self._root.is_relative_to(resolved) else self._root
        self._files: dict[str, _File] = {}
        self._lock = threading.Lock()
        renewed_in_child(self)

    def text(self, prompt: str = "") -> KnownText:
        """What they say at present, and the prompt; a file that cannot be read says nothing."""
        with self._lock:
            return KnownText(prompt, passages=self._read())

    def _read(self) -> list[Passages]:
        try:
            tree = Tree(self._top)
        except (MemfsError, OSError):
            return []
        known, self._files = self._files, {}
        try:
            for path in self._paths():
                for imported in self._take(tree, path, known):
                    self._take(tree, imported, known)
        finally:
            tree.close()
        return [file.passages for file in self._files.values()]

    def _paths(self) -> Iterator[str]:
        """Where they may lie, below the repository's top."""
        here = self._root.relative_to(self._top).as_posix()
        folder = "" if here == "." else here
        yield posixpath.join(folder, FILE)
        for _ in range(_DEEPEST):
            yield from (posixpath.join(folder, name) for name in NAMES)
            if not folder:
                return
            folder = posixpath.dirname(folder)

    def _take(self, tree: Tree, path: str, known: dict[str, _File]) -> tuple[str, ...]:
        """Read a file, or know that it is as it was; return the files that it imports."""
        if path in self._files:
            return ()
        with suppress(MemfsError, OSError):
            entry = tree.entry(path)
            if entry is None:
                return ()
            if not entry.regular:
                return self._aim(path)
            file = known.get(path)
            if file is None or file.facts != _facts(entry):
                file = _file(tree, path, entry)
            self._files[path] = file
            return file.imports
        return ()

    def _aim(self, path: str) -> tuple[str, ...]:
        """Where a link leads within the repository: ``CLAUDE.md`` is often one to ``AGENTS.md``."""
        target = os.readlink(self._top / path)
        return _within(path, target)


def _file(tree: Tree, path: str, entry: Entry) -> _File:
    fd = tree.open_read(path)
    try:
        data = os.read(fd, _MOST_BYTES)
    finally:
        os.close(fd)
    text = data.decode("utf-8", "replace")
    found = _IMPORT.findall(text) if not path.endswith(".toml") else []
    imports = dict.fromkeys(one for written in found[:_MOST_IMPORTS] for one in _within(path, written))
    return _File(_facts(entry), text, tuple(imports))


def _within(path: str, written: str) -> tuple[str, ...]:
    """A path that a file names, below the repository's top; nothing where it leads out of it."""
    if written.startswith(("/", "~")):
        return ()
    found = posixpath.normpath(posixpath.join(posixpath.dirname(path), written))
    return () if found.startswith("../") or found in ("..", ".") else (found,)


def _facts(entry: Entry) -> _Facts:
    return entry[1:5]
