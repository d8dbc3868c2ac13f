"""Question sets: items and questions in JSON Lines, one folder a set.

``items.jsonl`` holds ``id, store, session, seq, timestamp, speaker, role, title, text, tags, meta``; ``queries.jsonl``
holds ``id, store, text, category, as_of, relevant, exclude``. Items of one store form one memory. ``languages.jsonl``
beside this module is a set of its own, in ten languages and one file.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_LANGUAGES = Path(__file__).with_name("languages.jsonl")


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One remembered thing of a set."""

    id: str
    text: str
    title: str = ""
    tags: tuple[str, ...] = ()
    timestamp: str | None = None
    speaker: str = ""
    role: str = ""
    session: str = ""
    sequence: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One question, the ids that answer it, and those that must not come back."""

    id: str
    text: str
    relevant: frozenset[str]
    exclude: frozenset[str] = frozenset()
    as_of: str | None = None
    category: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """One store of a set with the questions asked of it."""

    name: str
    entries: tuple[Entry, ...]
    questions: tuple[Asked, ...]


def read_set(folder: Path, *, every: bool = False) -> list[Memory]:
    """The stores of a set; questions without evidence are left out, but with ``every``."""
    entries: dict[str, list[Entry]] = {}
    questions: dict[str, list[Asked]] = {}
    for row in _lines(folder / "items.jsonl"):
        entries.setdefault(row["store"], []).append(_entry(row))
    for row in _lines(folder / "queries.jsonl"):
        if row["relevant"] or every:
            questions.setdefault(row["store"], []).append(_asked(row))
    return [
        Memory(name=name, entries=tuple(found), questions=tuple(questions.get(name, ())))
        for name, found in sorted(entries.items())
    ]


def read_languages() -> list[Memory]:
    """The set in ten languages: one memory, and questions whose category is their language.

    An item has ``id, source, text``, a question ``answer, text``; an id begins with its language.
    """
    rows = list(_lines(_LANGUAGES))
    entries = tuple(Entry(id=row["id"], text=row["text"]) for row in rows if "id" in row)
    questions = tuple(
        Asked(
            id=f"q-{row['answer']}", text=row["text"], relevant=frozenset({row["answer"]}), category=row["answer"][:2]
        )
        for row in rows
        if "answer" in row
    )
    return [Memory(name="languages", entries=entries, questions=questions)]


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)


def _entry(row: dict[str, Any]) -> Entry:
    return Entry(
        id=row["id"],
        text=row["text"],
        title=row["title"] or "",
        tags=tuple(row["tags"] or ()),
        timestamp=row["timestamp"],
        speaker=row["speaker"] or "",
        role=row["role"] or "",
        session=row["session"] or "",
        sequence=row["seq"],
    )


def _asked(row: dict[str, Any]) -> Asked:
    return Asked(
        id=row["id"],
        text=row["text"],
        relevant=frozenset(row["relevant"]),
        exclude=frozenset(row["exclude"] or ()),
        as_of=row["as_of"],
        category=row["category"] or "",
    )
