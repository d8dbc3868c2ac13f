"""Corpus: real English, cut into memories, the same for the same seed and the same installed packages.

The text comes from docstrings of the standard library and of installed packages, and from Debian's package descriptions
where there are any. Nothing is fetched.
"""

from __future__ import annotations

import hashlib
import os
import random
import re
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from memfs.format.secrets import find
from memfs.model import MemoryItem
from memfs.search.analyzer import STOP_WORDS

_DEBIAN = Path("/var/lib/dpkg/status")
_DOCSTRING = re.compile(r'^[ \t]*[rR]?("""|\'\'\')(.*?)\1', re.DOTALL | re.MULTILINE)
_DESCRIPTION = re.compile(r"^Package: (\S+)$.*?^Description: (.*?)^(?=\S)", re.DOTALL | re.MULTILINE)
_PROMPT = re.compile(r"^\s*(>>>|\.\.\.).*$", re.MULTILINE)
_SENTENCE = re.compile(r"(?<=[.!?:;])\s+")
_WORD = re.compile(r"[A-Za-z]{4,}")
_ENGLISH = frozenset(
    re.findall(r"\w+", "a an and are as be by for from if in is it not of on or that the this to with")
)
_LEFT_OUT = frozenset({"__pycache__", "site-packages", "test", "tests", "idle_test"})
_LENGTH = 235
_TITLE = 50
_TYPES = ("semantic", "episodic", "knowledge", "task_history", "working", "procedural", "error_log", "documentation")
_WEIGHTS = (26, 22, 14, 12, 10, 8, 5, 3)
_FIRST_DAY = datetime(2025, 1, 1, tzinfo=UTC)
_SECONDS = 365 * 86400


@dataclass(frozen=True, slots=True)
class Text:
    """One memory to be: what an item needs, and nothing that depends on the machine."""

    title: str
    content: str
    tags: tuple[str, ...]
    type: str
    timestamp: datetime

    def item(self) -> MemoryItem:
        """As an item that nobody has stored."""
        return MemoryItem(self.content, self.type, title=self.title, tags=self.tags, timestamp=self.timestamp)

    def line(self) -> dict[str, Any]:
        """As a line for ``memfs import``."""
        moment = self.timestamp.isoformat()
        return {
            "title": self.title,
            "content": self.content,
            "tags": list(self.tags),
            "type": self.type,
            "timestamp": moment,
            "created": moment,
        }


@dataclass(frozen=True, slots=True)
class Question:
    """Three words of one memory, and the type and time that the memory has."""

    words: str
    type: str
    since: datetime
    until: datetime


@dataclass(frozen=True, slots=True)
class Corpus:
    """Memories to store, and how many of them are whole passages rather than recombined halves."""

    texts: tuple[Text, ...]
    distinct: int

    @property
    def digest(self) -> str:
        """Names the corpus: equal digests mean equal texts."""
        text = "\0".join(f"{text.title}\0{text.content}" for text in self.texts)
        return hashlib.sha256(text.encode()).hexdigest()[:12]


def read(count: int, seed: int = 1) -> Corpus:
    """That many memories of about 235 characters, in a seeded order."""
    random_ = random.Random(seed)
    found: dict[str, tuple[str, str]] = {}
    for source, text in _sources(random_):
        for passage in _passages(text):
            found.setdefault(passage, (source, passage))
        if len(found) >= 2 * count:
            break
    passages = list(found.values())
    random_.shuffle(passages)
    distinct = min(count, len(passages))
    while len(passages) < count:
        passages.append(_recombined(random_.choice(passages[:distinct]), random_.choice(passages[:distinct])))
    texts = tuple(_text(source, passage, random_) for source, passage in passages[:count])
    return Corpus(texts, distinct)


def questions(texts: tuple[Text, ...], count: int, seed: int = 2) -> list[Question]:
    """Questions that have an answer: each is three words of one memory, asked in any order."""
    random_ = random.Random(seed)
    asked: list[Question] = []
    while len(asked) < count:
        text = random_.choice(texts)
        words = sorted(set(_WORD.findall(text.content.lower())) - _ENGLISH - STOP_WORDS)
        if len(words) >= 3:
            around = timedelta(days=45)
            chosen = " ".join(random_.sample(words, 3))
            asked.append(Question(chosen, text.type, text.timestamp - around, text.timestamp + around))
    return asked


def _sources(random_: random.Random) -> Iterator[tuple[str, str]]:
    """Name and text of every source, in a seeded order."""
    if _DEBIAN.is_file():
        for name, text in _DESCRIPTION.findall(_DEBIAN.read_text(encoding="utf-8", errors="replace")):
            yield name, text
    files = sorted(_python_files())
    random_.shuffle(files)
    for name, path in files:
        code = Path(path).read_text(encoding="utf-8", errors="replace")
        for _, text in _DOCSTRING.findall(code):
            yield name, text


def _python_files() -> Iterator[tuple[str, str]]:
    for key in ("stdlib", "purelib"):
        root = sysconfig.get_path(key)
        for folder, inner, names in os.walk(root):
            inner[:] = [name for name in inner if name not in _LEFT_OUT]
            place = os.path.relpath(folder, root)
            for name in names:
                if name.endswith(".py"):
                    module = os.path.normpath(os.path.join(place, name[:-3])).replace(os.sep, ".")
                    yield module.removesuffix(".__init__"), os.path.join(folder, name)


def _passages(text: str) -> Iterator[str]:
    plain = " ".join(_PROMPT.sub("", text).split())
    gathered = ""
    for sentence in _SENTENCE.split(plain):
        gathered = f"{gathered} {sentence}".strip()
        if len(gathered) >= _LENGTH - 45:
            passage = gathered[: _LENGTH + 65].rpartition(" ")[0] if len(gathered) > _LENGTH + 65 else gathered
            if _reads_like_english(passage) and not find(passage):  # documentation is full of examples of passwords
                yield passage
            gathered = ""


def _reads_like_english(passage: str) -> bool:
    words = passage.lower().split()
    common = sum(word in _ENGLISH for word in words)
    return passage.isascii() and passage.isprintable() and "/home/" not in passage and common * 6 >= len(words)


def _recombined(one: tuple[str, str], other: tuple[str, str]) -> tuple[str, str]:
    first, second = one[1].split(), other[1].split()
    return one[0], " ".join([*first[: len(first) // 2], *second[len(second) // 2 :]])


def _text(source: str, passage: str, random_: random.Random) -> Text:
    names = [part for part in source.strip("_").split(".") if part]
    title = f"{names[-1].replace('_', ' ').strip()}: {passage}"[:_TITLE].rpartition(" ")[0]
    tags = tuple(dict.fromkeys(part.strip("_").lower() for part in (names[0], names[-1]) if part.strip("_")))
    moment = _FIRST_DAY + timedelta(seconds=random_.randrange(_SECONDS))
    return Text(title.strip(" :"), passage, tags, random_.choices(_TYPES, _WEIGHTS)[0], moment)
