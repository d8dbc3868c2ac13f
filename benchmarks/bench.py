"""Bench: one workspace of one size with one engine, which every part measures in turn.

Opens that workspace, and says how often things are repeated.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.corpus import Question, Text
from benchmarks.surroundings import memfs_command
from memfs.model import MemoryItem, Query
from memfs.workspace import Workspace, open_workspace

SPARE, SPARE_QUICK = 2_800, 500
"""Texts beyond those of the workspace, for what is written while measuring."""


@dataclass(slots=True)
class Bench:
    """What every part gets.

    Attributes:
        folder: for files of the benchmark's own.
        texts: those of the workspace.
        spare: more texts, used up one by one.
        quick: repeat as little as possible, to see that everything works.
    """

    folder: Path
    size: int
    engine: str
    texts: tuple[Text, ...]
    spare: Iterator[Text]
    asked: list[Question]
    quick: bool = False

    @property
    def root(self) -> Path:
        """The workspace's folder."""
        return self.folder / "workspace"

    def rounds(self, count: int) -> int:
        """How often to repeat."""
        return min(count, 3) if self.quick else count

    def open(
        self, *, create: bool = False, watch: bool | None = False, commit: str = "interval", **more: Any
    ) -> Workspace:
        """The workspace, opened in this process; ``more`` are settings, with ``__`` for the dot."""
        settings = {"index.engine": self.engine, "history.commit": commit}
        settings |= {name.replace("__", "."): value for name, value in more.items()}
        return open_workspace(self.root, create=create, watch=watch, settings=settings)

    def item(self) -> MemoryItem:
        """The next fresh item of those that are committed: working memory stays on the machine."""
        text = next(text for text in self.spare if text.type != "working")
        return MemoryItem(
            text.content,
            text.type,
            title=text.title,
            tags=text.tags,
            timestamp=text.timestamp,
            created=text.timestamp,
        )

    def query(self, number: int, *, filtered: bool = False) -> Query:
        """The question of that number, narrowed to its type and 90 days if wanted."""
        asked = self.asked[number % len(self.asked)]
        if not filtered:
            return Query(text=asked.words)
        return Query(text=asked.words, types=frozenset({asked.type}), since=asked.since, until=asked.until)

    def cli(self, *arguments: str) -> None:
        """Run ``memfs`` as a process of its own, and wait for it.

        Raises:
            RuntimeError: it failed.
        """
        done = subprocess.run(
            [*memfs_command(), *arguments],
            check=False,
            cwd=self.folder,
            env={**os.environ, "MEMFS_WORKSPACE": str(self.root), "MEMFS_INDEX_ENGINE": self.engine},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        if done.returncode:
            raise RuntimeError(f"memfs {arguments[0]} ended with {done.returncode}: {done.stderr[-500:]}")
