"""Yardsticks: the same work done in the barest way, to run beside memfs in the same minute.

The bare durable write, SQLite's FTS5 without anything around it, and the git command line. Imports nothing of memfs.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Sequence
from pathlib import Path

from benchmarks.corpus import Question, Text
from benchmarks.surroundings import git

WRITE, FTS5, GIT, PYTHON = "write+fsync+rename", "SQLite FTS5", "git add + git commit", "python -c pass"


class BareWrites:
    """Writes files durably, the least a store can do."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._count = 0
        folder.mkdir(exist_ok=True)

    def write(self, data: bytes) -> None:
        """Write, fsync, rename: one new file."""
        self._count += 1
        temporary = self._folder / "new.tmp"
        fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        os.write(fd, data)
        os.fsync(fd)
        os.close(fd)
        os.rename(temporary, self._folder / f"{self._count}.yaml")


class Fts5:
    """A full-text table with type and time beside it."""

    def __init__(self, path: Path, texts: Sequence[Text]) -> None:
        self._db = sqlite3.connect(path)
        self._db.execute("PRAGMA journal_mode=WAL")
        self._db.execute("CREATE VIRTUAL TABLE item USING fts5(title, content, tags, tokenize='porter unicode61')")
        self._db.execute("CREATE TABLE fact (id INTEGER PRIMARY KEY, type TEXT, time REAL)")
        rows = [(text.title, text.content, " ".join(text.tags)) for text in texts]
        facts = [(number, text.type, text.timestamp.timestamp()) for number, text in enumerate(texts, 1)]
        self._db.executemany("INSERT INTO item(title, content, tags) VALUES (?, ?, ?)", rows)
        self._db.executemany("INSERT INTO fact VALUES (?, ?, ?)", facts)
        self._db.commit()

    def search(self, question: Question) -> list[tuple[int]]:
        """The ten best rows that share a word with the question."""
        sql = "SELECT rowid FROM item WHERE item MATCH ? ORDER BY rank LIMIT 10"
        return self._db.execute(sql, (_any_word(question),)).fetchall()

    def search_filtered(self, question: Question) -> list[tuple[int]]:
        """The same, of one type and within a time."""
        sql = (
            "SELECT item.rowid FROM item JOIN fact ON fact.id = item.rowid "
            "WHERE item MATCH ? AND type = ? AND time BETWEEN ? AND ? ORDER BY bm25(item) LIMIT 10"
        )
        bounds = (question.since.timestamp(), question.until.timestamp())
        return self._db.execute(sql, (_any_word(question), question.type, *bounds)).fetchall()

    def close(self) -> None:
        """Release the file."""
        self._db.close()


class GitFolder:
    """A clone in which a person commits with the git command line."""

    def __init__(self, origin: Path, place: Path) -> None:
        self._root = place
        git(place.parent, "clone", "--quiet", str(origin), place.name)

    def write(self, path: str, data: bytes) -> None:
        """Put a file there, not yet committed."""
        target = self._root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)

    def commit(self, paths: Sequence[str]) -> None:
        """``git add`` and ``git commit`` of these files."""
        git(self._root, "add", "--", *paths)
        git(self._root, "commit", "--quiet", "--message", "Remember")


def _any_word(question: Question) -> str:
    return " OR ".join(f'"{word}"' for word in question.words.split())
