"""A source for memfs: the remarks that wait in the files an agent is about to touch."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from memfs import StateSnapshot

_KEYS = ("max_items", "words", "folder")
_MOST_BYTES = 1 << 20
_MOST_FILES = 50
_MOST_LETTERS = 200


class TodoSource:
    """Tells which ``TODO`` and ``FIXME`` remarks stand in the files of a situation."""

    name = "todo"
    layer = "triggered"

    def __init__(self) -> None:
        self.max_items = 5
        self.words: tuple[str, ...] = ("TODO", "FIXME")
        self.folder = Path()

    def configure(self, config: Mapping[str, Any]) -> None:
        """Take ``max_items``, ``words``, and ``folder``: where the paths of a situation begin.

        Raises:
            ValueError: a key is unknown, or its value of the wrong sort.
        """
        for key in config:
            if key not in _KEYS:
                raise ValueError(f"unknown key {key!r}; the keys are {', '.join(_KEYS)}")
        most, words = config.get("max_items", self.max_items), config.get("words", self.words)
        if isinstance(most, bool) or not isinstance(most, int) or most < 0:
            raise ValueError(f"max_items must be a whole number, 0 or more, and is {most!r}")
        if not isinstance(words, (list, tuple)) or not all(isinstance(word, str) and word for word in words):
            raise ValueError(f"words must be a list of words, and is {words!r}")
        self.max_items, self.words = most, tuple(words)
        self.folder = Path(config.get("folder", self.folder))

    async def get_context(self, state: StateSnapshot) -> str | None:
        """The remarks, the first ``max_items`` of them; None where there are none."""
        # Reading files takes time: a thread does it, so that whatever else this loop has to do goes on.
        found = await asyncio.to_thread(lambda: list(self._remarks(state.files[:_MOST_FILES])))
        return "\n".join(["Open remarks in these files:", *found]) if found else None

    def _remarks(self, files: tuple[str, ...]) -> Iterator[str]:
        if not self.words:
            return
        wanted = re.compile(rf"\b({'|'.join(map(re.escape, self.words))})\b.*")
        left = self.max_items
        for path in files:
            for number, line in enumerate(self._lines(path), 1):
                if left <= 0:
                    return
                if remark := wanted.search(line):
                    yield f"- {path}:{number} {remark[0].strip()[:_MOST_LETTERS]}"
                    left -= 1

    def _lines(self, path: str) -> list[str]:
        """The lines of a file below the folder; none where it is elsewhere, is no file, or cannot be read."""
        try:
            home = self.folder.resolve()
            file = (home / path).resolve()
            if not file.is_relative_to(home) or not file.is_file():
                return []
            with file.open("rb") as stream:
                return stream.read(_MOST_BYTES).decode("utf-8", "replace").splitlines()
        except (OSError, ValueError):
            return []
