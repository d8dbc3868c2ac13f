"""Hostile content: files that a hand, a pull request or a tool could put into a workspace.

A table says which bytes are under which name, and the one error that each must be reported as.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

FOLDER = "ContextMemory/memories/knowledge"
Make = Callable[[Path], None]


@dataclass(frozen=True, slots=True)
class Hostile:
    """One hostile file: the row of the list of faults, how to make it, and how it must be reported.

    Attributes:
        name: its name below the folder of a kind.
        code: the error's class.
        words: what the message must say.
        line: the line it must name, None where there is none.
    """

    row: str
    make: Make
    code: str
    words: str
    line: int | None = None
    name: str = "x.yaml"

    @property
    def path(self) -> str:
        """Where it is in the workspace."""
        return f"{FOLDER}/{self.name}"

    def put(self, root: Path) -> None:
        """Lay it into a workspace."""
        place = root / self.path
        place.parent.mkdir(parents=True, exist_ok=True)
        self.make(place)


def holding(data: str | bytes) -> Make:
    """Make a file that holds these bytes."""
    return lambda place: place.write_bytes(data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data)


def sized(size: int) -> Make:
    """Make a file of this size with nothing in it."""

    def make(place: Path) -> None:
        place.touch()
        os.truncate(place, size)

    return make


def linked(target: str) -> Make:
    """Make a symbolic link."""
    return lambda place: place.symlink_to(target)


def _device(place: Path) -> None:
    os.mknod(place, 0o600 | stat.S_IFCHR, os.makedev(1, 5))  # zeros without end


LAUGHS = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{name}: &{name} [{','.join([f'*{before}'] * 9)}]\n" for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)
BRACKETS = "[" * 25_000
SECOND = "content: two\n---\ncontent: documents\n"

BYTES = (
    Hostile("1", holding(BRACKETS), "ItemTooDeep", "deeper than 64", 1),
    Hostile("1", holding(BRACKETS), "ItemTooDeep", "deeper than 64", 1, "x.json"),
    Hostile("1", holding("data: " + "{a: " * 25_000), "ItemTooDeep", "deeper than 64", 1),
    Hostile("1", holding('{"a":' * 25_000), "ItemTooDeep", "deeper than 64", 1, "x.json"),
    Hostile("1", holding("- " * 25_000), "ItemTooDeep", "deeper than 64", 1),
    Hostile("2", holding(LAUGHS), "AliasForbidden", "anchors and aliases", 1),
    Hostile("3", holding("data: &a [*a]\n"), "AliasForbidden", "anchors and aliases", 1),
    Hostile("4", holding("content: x\ndata: !!python/object/apply:os.system ['id']\n"), "TagForbidden", "python", 2),
    Hostile("4", holding("content: !!binary aGVsbG8=\n"), "TagForbidden", "binary", 1),
    Hostile("4", holding("content: !foo x\n"), "TagForbidden", "foo", 1),
    Hostile("4", holding("content: x\ntags: !!set {a, b}\n"), "TagForbidden", "set", 2),
    Hostile("5", holding("content: a\ncontent: b\n"), "DuplicateKey", "first at line 1", 2),
    Hostile("5", holding('{"content": "a",\n "content": "b"}'), "DuplicateKey", "first at line 1", 2, "x.json"),
    Hostile("6", holding("content: x\ntags: [1.10]\n"), "SchemaInvalid", "quote", 2),
    Hostile("7", holding("content: x\ntimestamp: 2024-13-45\n"), "SchemaInvalid", "2024-13-45", 2),
    Hostile("7", holding(f"content: x\nimportance: {'9' * 5_000}\n"), "ItemSyntaxError", "64 bit", 2),
    Hostile("7", holding("content: x\nimportance: .inf\n"), "ItemSyntaxError", "finite", 2),
    Hostile("7", holding('{"content": "x", "importance": NaN}'), "ItemSyntaxError", "finite", 1, "x.json"),
    Hostile("8", holding('content: "half \\ud800"\n'), "ItemSyntaxError", "not valid Unicode", 1),
    Hostile("8", holding('{"content": "half \\ud800"}'), "ItemSyntaxError", "not valid Unicode", 1, "x.json"),
    Hostile("8", holding("content: half \ud800\n"), "ItemSyntaxError", "UTF-8", 1),
    Hostile("10", holding("content: a\0b\n"), "ItemSyntaxError", "NUL byte at offset 10", 1),
    Hostile("10", holding("content: x\n".encode("utf-16")), "ItemSyntaxError", "UTF-16", 1),
    Hostile("10", holding("content: Grüße\n".encode("latin-1")), "ItemSyntaxError", "UTF-8", 1),
    Hostile("10", holding("content:\n\tx: 1\n"), "ItemSyntaxError", "tab", 2),
    Hostile("10", holding(""), "ItemSyntaxError", "empty", 1),
    Hostile("10", holding("just a text\n"), "ItemSyntaxError", "", 1),
    Hostile("10", holding(SECOND), "ItemSyntaxError", "second document", 2),
    Hostile("11", holding("content: " + "x" * 10_000_000), "ItemTooLarge", "limit"),
    Hostile("11", sized(1 << 40), "ItemTooLarge", "limit"),
    Hostile(
        "16",
        holding("content: x\ndata:\n" + "".join(f"  k{n}: 0\n" for n in range(40_000))),
        "ItemTooLarge",
        "40000",
        20_000,
    ),
    Hostile("17", holding("content: ok \U000e0041\U000e0042\n"), "InvisibleCharacter", "U+E0041", 1),
    Hostile("17", holding("content: x\ntitle: a\u202eb\n"), "InvisibleCharacter", "U+202E", 2),
    Hostile("43", holding("<<<<<<< HEAD\ncontent: a\n=======\ncontent: b\n>>>>>>> x\n"), "ItemSyntaxError", "merge", 1),
)
NO_FILES = (
    Hostile("12", os.mkfifo, "NotRegularFile", "regular"),
    Hostile("12", lambda place: place.mkdir(), "", ""),
    Hostile("12", linked("good.yaml"), "NotRegularFile", "regular"),
    Hostile("12", linked("/etc/passwd"), "NotRegularFile", "regular"),
    Hostile("12", linked("x.yaml"), "NotRegularFile", "regular"),
    Hostile("12", linked("/dev/zero"), "NotRegularFile", "regular"),
    Hostile("12", linked("nowhere"), "NotRegularFile", "regular"),
)
DEVICE = Hostile("12", _device, "NotRegularFile", "regular")
NAMES = (
    "CON.yaml",
    "nul.txt.yaml",
    "-rf.yaml",
    "a:b.yaml",
    "a .yaml",
    "a..b.yaml",
    "%2e%2e.yaml",
    "git~1.yaml",
    "a\u202eb.yaml",
    "a\nb.yaml",
    "x" * 200 + ".yaml",
    "ü.yaml",
    "u\u0308.yaml",
    "pаypal.yaml",
)
"""Names of files that no id can have (row 13)."""
