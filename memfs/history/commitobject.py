"""The text of a commit: writing ours, reading anybody's.

Owns the commit object's format, the trailers that name who wrote what, and their parsing. Stores and reads nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from memfs.errors import HistoryUnavailable
from memfs.history.group import Writer
from memfs.history.identity import Person

AGENT, SESSION, SOURCE = "Memfs-Agent", "Memfs-Session", "Memfs-Source"
_TRAILER = re.compile(r"([A-Za-z0-9][A-Za-z0-9-]*)\s*:\s+(\S.*)")
_PERSON = re.compile(r"(.*?) ?<([^>]*)> (-?\d+) [+-]\d{4}")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_LONGEST_VALUE = 200


@dataclass(frozen=True, slots=True)
class Parsed:
    """A commit object read."""

    tree: str
    parents: tuple[str, ...]
    author: Person
    committer: Person
    time: datetime
    subject: str
    body: str
    trailers: Mapping[str, tuple[str, ...]]


def encode_commit(
    tree: str, parents: Sequence[str], author: Person, committer: Person, time: datetime, text: str
) -> bytes:
    """A commit object; author and committer carry the same time, in UTC."""
    stamp = f"{int(time.timestamp())} +0000"
    lines = [f"tree {tree}", *(f"parent {parent}" for parent in parents)]
    lines += [f"author {author} {stamp}", f"committer {committer} {stamp}", "", text]
    return "\n".join(lines).encode("utf-8", "replace")


def compose(message: str, writers: Iterable[Writer]) -> str:
    """A message with its trailers in one last paragraph, each named once, in the order of the writers."""
    plain = "\n".join(line.rstrip() for line in _CONTROL.sub(" ", message).strip().splitlines()) or "Change memories"
    found = tuple(writers)
    trailers = [
        f"{name}: {value}"
        for name, field in ((AGENT, "agent"), (SESSION, "session"), (SOURCE, "source"))
        for value in dict.fromkeys(_one_line(getattr(writer, field)) for writer in found)
        if value
    ]
    if not trailers:
        return plain + "\n"
    gap = "\n" if "\n\n" in plain and _trailers(plain.rpartition("\n\n")[2]) else "\n\n"
    return plain + gap + "\n".join(trailers) + "\n"


def parse_commit(data: bytes) -> Parsed:
    """Read a commit object, whoever wrote it; undecodable bytes become replacement characters.

    Raises:
        HistoryUnavailable: it is none.
    """
    head, _, message = data.partition(b"\n\n")
    fields: dict[str, list[str]] = {}
    for line in head.decode("utf-8", "replace").split("\n"):
        name, _, value = line.partition(" ")
        if name:
            fields.setdefault(name, []).append(value)
    text = message.decode(_encoding(fields), "replace").strip("\n")
    paragraphs = text.split("\n\n")
    trailers = _trailers(paragraphs[-1]) if len(paragraphs) > 1 else {}
    body = "\n\n".join(paragraphs[1 : -1 if trailers else None]).strip("\n")
    author, _ = _person(fields.get("author", [""])[0])
    committer, time = _person(fields.get("committer", [""])[0])
    subject = " ".join(paragraphs[0].split("\n"))
    if "tree" not in fields:
        raise HistoryUnavailable("a commit names no tree", hint="run git fsck")
    return Parsed(fields["tree"][0], tuple(fields.get("parent", ())), author, committer, time, subject, body, trailers)


def _one_line(value: str) -> str:
    return " ".join(_CONTROL.sub(" ", value).split())[:_LONGEST_VALUE]


def _encoding(fields: Mapping[str, Sequence[str]]) -> str:
    wanted = fields.get("encoding", ["utf-8"])[0]
    try:
        "".encode(wanted)
    except LookupError:
        return "utf-8"
    return wanted


def _trailers(paragraph: str) -> dict[str, tuple[str, ...]]:
    """The trailers of a last paragraph; none unless every line is one or continues one."""
    found: dict[str, list[str]] = {}
    last: list[str] | None = None
    for line in paragraph.split("\n"):
        trailer = _TRAILER.fullmatch(line)
        if trailer:
            last = found.setdefault(trailer[1], [])
            last.append(trailer[2].strip())
        elif line[:1].isspace() and last:
            last[-1] += " " + line.strip()
        else:
            return {}
    return {name: tuple(values) for name, values in found.items()}


def _person(line: str) -> tuple[Person, datetime]:
    match = _PERSON.fullmatch(line)
    if not match:
        return Person(line, ""), datetime.fromtimestamp(0, UTC)
    try:
        time = datetime.fromtimestamp(int(match[3]), UTC)
    except (ValueError, OverflowError, OSError):
        time = datetime.fromtimestamp(0, UTC)
    return Person(match[1], match[2]), time
