"""Contenders: memfs and the plain ways to search it is compared with, behind one small shape.

The entries of a set become items here. A contender is made for one memory and answers questions with ids.
"""

from __future__ import annotations

import re
import sqlite3
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import datetime
from math import log
from pathlib import Path
from typing import Any, Protocol

from benchmarks.retrieval.measures import DEPTH
from benchmarks.retrieval.sets import Asked, Entry
from memfs import MemoryItem, Origin, Query, open_workspace
from memfs.model.time import parse_time
from memfs.search.analyzer import STOP_WORDS, stem

_WORD = re.compile(r"\w+")
_BATCH = 500


class Contender(Protocol):
    """Something that was given the entries of one memory."""

    def answer(self, asked: Asked) -> list[str]:
        """The ids of the ten best entries, best first."""
        ...

    def close(self) -> None:
        """Release everything."""
        ...


Make = Callable[[Sequence[Entry], Path], Contender]


class Memfs:
    """A workspace of its own, asked through ``recall`` as any caller would."""

    def __init__(self, entries: Sequence[Entry], folder: Path, settings: Mapping[str, Any], embedder: str = "") -> None:
        """``embedder``: the model that also finds by meaning, "" for words alone."""
        memory = {"storage_type": "vector_db", "embedding_model": embedder} if embedder else None
        self._ids: dict[str, str] = {}
        self._workspace = open_workspace(
            folder, create=True, settings={"history.commit": "manual", **settings}, memory=memory
        )
        for start in range(0, len(entries), _BATCH):
            with self._workspace.store.batch("Import") as batch:
                for number, entry in enumerate(entries[start : start + _BATCH], start):
                    name = f"entry-{number}"
                    self._ids[name] = entry.id
                    batch.put(_item(entry, name))
        meaning = self._workspace.meaning.wanted()
        if meaning is not None:
            meaning.embeddings.catch_up()

    def answer(self, asked: Asked) -> list[str]:
        """See ``Contender``."""
        hits = self._workspace.recaller.search(Query(text=asked.text, limit=DEPTH)).hits
        return [self._ids[hit.item.id] for hit in hits]

    def fitting(self, asked: Asked, without: Collection[str] = ()) -> tuple[list[str], bool]:
        """The answer, which leaves out some entries, and whether it says that nothing fits."""
        found = self._workspace.recaller.search(
            Query(text=asked.text, limit=DEPTH), leave_out=lambda item: self._ids[item.id] in without
        )
        return [self._ids[hit.item.id] for hit in found.hits], found.nothing_fits

    def close(self) -> None:
        """See ``Contender``."""
        self._workspace.close()


def _item(entry: Entry, name: str) -> MemoryItem:
    moment: datetime | None = parse_time(entry.timestamp) if entry.timestamp else None
    return MemoryItem(
        entry.text,
        "conversation" if entry.session else "knowledge",
        id=name,
        title=entry.title,
        tags=entry.tags,
        timestamp=moment,
        origin=Origin(speaker=entry.speaker, role=entry.role, session=entry.session, sequence=entry.sequence),
    )


class PlainBm25:
    """BM25 over lower-cased words of title, text and tags; k1 1.2, b 0.75; nothing else."""

    named = False
    """Whether the speaker's name is a word of what was said."""

    def __init__(self, entries: Sequence[Entry], folder: Path) -> None:
        del folder
        self._ids = [entry.id for entry in entries]
        self._bags = [Counter(self.words(_text(entry, named=self.named))) for entry in entries]
        self._lengths = [sum(bag.values()) for bag in self._bags]
        self._mean = sum(self._lengths) / max(1, len(entries))
        self._held = Counter(word for bag in self._bags for word in bag)

    @staticmethod
    def words(text: str) -> Sequence[str]:
        """What is counted of a text."""
        return _WORD.findall(text.lower())

    def answer(self, asked: Asked) -> list[str]:
        """See ``Contender``."""
        words = set(self.words(asked.text))
        scored = [(self._score(number, words), number) for number in range(len(self._ids))]
        best = sorted((row for row in scored if row[0] > 0), key=lambda row: (-row[0], row[1]))
        return [self._ids[number] for _, number in best[:DEPTH]]

    def _score(self, number: int, words: set[str]) -> float:
        bag, total = self._bags[number], len(self._bags)
        score = 0.0
        for word in words & bag.keys():
            held = self._held[word]
            rarity = log(1 + (total - held + 0.5) / (held + 0.5))
            damped = bag[word] + 1.2 * (0.25 + 0.75 * self._lengths[number] / self._mean)
            score += rarity * bag[word] * 2.2 / damped
        return score

    def close(self) -> None:
        """See ``Contender``."""


class Reference(PlainBm25):
    """What a plain ranker does in a few lines: BM25 over English stems without stop words, the speaker's name among
    them, and in a talk half of what its neighbours have and a fifth of what the best of its session has.
    """

    named = True

    def __init__(self, entries: Sequence[Entry], folder: Path) -> None:
        super().__init__(entries, folder)
        self._places = {(entry.session, entry.sequence): at for at, entry in enumerate(entries) if entry.session}
        self._sessions = [entry.session for entry in entries]
        self._numbers = [entry.sequence for entry in entries]

    @staticmethod
    def words(text: str) -> Sequence[str]:
        """Stems without stop words."""
        return [stem(word) for word in _WORD.findall(text.lower()) if word not in STOP_WORDS]

    def answer(self, asked: Asked) -> list[str]:
        """See ``Contender``."""
        words = set(self.words(asked.text))
        plain = [self._score(number, words) for number in range(len(self._ids))]
        best: dict[str, float] = {}
        for session, score in zip(self._sessions, plain, strict=True):
            best[session] = max(score, best.get(session, 0.0))
        scored = [
            score + sum(0.5 * plain[at] for at in self._beside(number)) + 0.2 * (best[session] if session else 0.0)
            for number, (score, session) in enumerate(zip(plain, self._sessions, strict=True))
        ]
        return [self._ids[at] for at in sorted(range(len(scored)), key=lambda at: -scored[at])[:DEPTH] if scored[at]]

    def _beside(self, number: int) -> Iterator[int]:
        """The places of what stands right before and after one in its session."""
        session, at = self._sessions[number], self._numbers[number]
        if session and at is not None:
            places = (self._places.get((session, at + step)) for step in (-1, 1))
            yield from (place for place in places if place is not None)


def _text(entry: Entry, *, named: bool = False) -> str:
    return " ".join(((entry.speaker,) if named else ()) + (entry.title, entry.text, *entry.tags))


class Fts5:
    """SQLite's FTS5, any word of the question."""

    def __init__(self, entries: Sequence[Entry], folder: Path, tokenizer: str = "porter unicode61") -> None:
        """``tokenizer``: one of FTS5's; of words, or ``trigram``, which is asked for any three letters in a row."""
        self._window = 3 if tokenizer == "trigram" else 0
        folder.mkdir(parents=True, exist_ok=True)
        self._ids = [entry.id for entry in entries]
        self._db = sqlite3.connect(folder / "fts.db")
        self._db.execute(f"CREATE VIRTUAL TABLE item USING fts5(text, tokenize='{tokenizer}')")
        rows = [(_text(entry),) for entry in entries]
        self._db.executemany("INSERT INTO item(text) VALUES (?)", rows)

    def answer(self, asked: Asked) -> list[str]:
        """See ``Contender``."""
        found = _WORD.findall(asked.text.lower())
        if size := self._window:
            found = [word[start : start + size] for word in found for start in range(len(word) - size + 1)]
        words = " OR ".join(f'"{word}"' for word in dict.fromkeys(found))
        if not words:
            return []
        rows = self._db.execute("SELECT rowid FROM item WHERE item MATCH ? ORDER BY rank LIMIT ?", (words, DEPTH))
        return [self._ids[number - 1] for (number,) in rows]

    def close(self) -> None:
        """See ``Contender``."""
        self._db.close()
