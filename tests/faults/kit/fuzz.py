"""Fuzz: files as no sane editor writes them, made from sane ones.

The same number always gives the same file, so that a finding is a number.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path

TEMPLATES = Path(__file__).parents[3] / "templates"
PLACES = (
    "ContextMemory/memories/semantic/2026-03/fuzzed.yaml",
    "ContextMemory/memories/knowledge/fuzzed.yaml",
    "ContextMemory/memories/pattern/fuzzed.yaml",
    "ContextMemory/memories/rule/fuzzed.yaml",
    "ContextMemory/conventions/fuzzed.yaml",
    "ContextMemory/memories/semantic/2026-03/fuzzed.json",
)
_PIECES = [
    *(
        "- ",
        "? ",
        ": ",
        "& ",
        "*",
        "!",
        "!!",
        "|",
        "|2-",
        ">+",
        "'",
        '"',
        "%",
        "@",
        "`",
        "{",
        "}",
        "[",
        "]",
        ",",
        "#",
        "~",
    ),
    *("\n", "\r\n", "\r", "\t", "  ", "\n\n\n", "---\n", "...\n", "<<: ", "&a ", "*a", "!!set ", "!!python/object:x "),
    *(
        "null",
        "no",
        "yes",
        "on",
        "0x1f",
        "010",
        "1:30",
        "1e3",
        ".inf",
        ".nan",
        "-0",
        "2024-13-45",
        "2026-03-04T05:06:07Z",
    ),
    *(
        "9" * 400,
        "[" * 80,
        "{a: " * 80,
        "- " * 80,
        "é",
        "日本",
        "😀",
        "\u202e",
        "\u200b",
        "\u2028",
        "\x85",
        "\ufeff",
        "\x00",
    ),
    *("content: ", "type: ", "tags: ", "created: ", "metadata:\n  ", "origin:\n  agent: ", "id: x\n", "<<<<<<< HEAD\n"),
    *("=======\n", ">>>>>>> theirs\n", "\\", "\\ud800", "\\u0000", "\\x", "://", "a" * 5000, "\ud7ff", "\ufffe"),
]
_BYTES = [
    b"\x00",
    b"\xff",
    b"\xfe\xff",
    b"\xc3",
    b"\xed\xa0\x80",
    b"\xf4\x90\x80\x80",
    b"\x1b[31m",
    b"\x7f",
    b"\xef\xbb\xbf",
]
Spoil = Callable[[bytes, random.Random], bytes]


def seeds() -> list[tuple[str, bytes]]:
    """Valid files to begin with, each with where it may be."""
    full = (
        "# yaml-language-server: $schema=../x.json\ncontent: |\n  Use PostgreSQL 15.\n  It has transactions.\n\n"
        "title: 'A choice: made'\ntags:\n- db\n- \"42\"\ncreated: 2026-03-04T05:06:07Z\n"
        "timestamp: 2026-03-04T05:06:07Z\n"
        "importance: 0.7\ntrust: agent\norigin:\n  agent: planner\n  session: s-1\n  sequence: 3\n"
        "context:\n  language: python\nmetadata:\n  deep:\n    list: [1, 2.5, true, null, 'no']\n"
    )
    found = [
        (PLACES[0], full.encode()),
        (PLACES[0], b"content: hello\n"),
        (PLACES[1], b"content: 'it''s'\ntags: [a, b]\n"),
    ]
    mapping = {"content": "as JSON", "tags": ["x"], "metadata": {"n": 1.5, "t": True, "z": None, "l": [[], {}]}}
    found.append((PLACES[5], json.dumps(mapping, indent=2).encode()))
    for kind, place in (("pattern", PLACES[2]), ("rule", PLACES[3]), ("convention", PLACES[4])):
        template = TEMPLATES / f"{kind}.yaml"
        if template.exists():
            found.append((place, template.read_bytes()))
    return found


def _flip(data: bytes, rng: random.Random) -> bytes:
    place = rng.randrange(len(data))
    return data[:place] + bytes([data[place] ^ (1 << rng.randrange(8))]) + data[place + 1 :]


def _insert(data: bytes, rng: random.Random) -> bytes:
    place = rng.randrange(len(data) + 1)
    return data[:place] + rng.choice(_PIECES).encode("utf-8", "surrogatepass") + data[place:]


def _insert_bytes(data: bytes, rng: random.Random) -> bytes:
    place = rng.randrange(len(data) + 1)
    return data[:place] + rng.choice(_BYTES) + data[place:]


def _cut(data: bytes, rng: random.Random) -> bytes:
    first, last = sorted(rng.randrange(len(data) + 1) for _ in range(2))
    return data[:first] + data[last:]


def _lines(data: bytes, rng: random.Random) -> bytes:
    lines = data.split(b"\n")
    first, second = rng.randrange(len(lines)), rng.randrange(len(lines))
    way = rng.randrange(3)
    if way == 0:
        lines[first], lines[second] = lines[second], lines[first]
    elif way == 1:
        lines.insert(first, lines[second])
    else:
        lines[first] = b" " * rng.randrange(9) + lines[first].lstrip()
    return b"\n".join(lines)


def _replace(data: bytes, rng: random.Random) -> bytes:
    lines = data.split(b"\n")
    number = rng.randrange(len(lines))
    key, colon, _ = lines[number].partition(b": ")
    if colon:
        lines[number] = key + colon + rng.choice(_PIECES).encode("utf-8", "surrogatepass")
    return b"\n".join(lines)


def _truncate(data: bytes, rng: random.Random) -> bytes:
    return data[: rng.randrange(len(data) + 1)]


def _recode(data: bytes, rng: random.Random) -> bytes:
    text = data.decode("utf-8", "replace")
    return text.encode(rng.choice(["utf-16", "utf-16-le", "latin-1", "utf-32", "utf-8-sig", "cp037"]), "replace")


_SPOILS: list[Spoil] = [
    _flip,
    _insert,
    _insert,
    _insert_bytes,
    _cut,
    _lines,
    _lines,
    _replace,
    _replace,
    _truncate,
    _recode,
]
_WEIGHTS = [4, 4, 4, 1, 2, 3, 3, 4, 4, 1, 0.2]


def spoiled(number: int, begin: list[tuple[str, bytes]]) -> tuple[str, bytes]:
    """The file of that number, and where it is to be."""
    rng = random.Random(number)
    place, data = rng.choice(begin)
    for spoil in rng.choices(_SPOILS, _WEIGHTS, k=rng.choice((1, 1, 1, 2, 3, 6))):
        if data:
            data = spoil(data, rng)
    return place, data
