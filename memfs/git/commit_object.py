"""Encodes and parses commit objects, their trailers and signatures.

Parsing accepts commits of any program. Nothing is read from disk or stored.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from memfs.errors import HistoryUnavailable
from memfs.git.identity import CommitWriter, Person

_SIGNATURE, _OTHER_SIGNATURE = b"gpgsig", b"gpgsig-sha256"
AGENT, SESSION, SOURCE, EXPORT = "Memfs-Agent", "Memfs-Session", "Memfs-Source", "Memfs-Export"
_TRAILER = re.compile(r"([A-Za-z0-9][A-Za-z0-9-]*)\s*:\s+(\S.*)")
_MOMENT = re.compile(r"(-?\d+) [+-]\d{4}")
_PLAIN_PERSON = re.compile(rb"[^<>\x00-\x1f]*<[^<>\x00-\x1f]*> \d{1,12} [+-]\d{4}")
_ONCE = (b"tree", b"author", b"committer")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_LONGEST_VALUE = 200


@dataclass(frozen=True, slots=True)
class ParsedCommit:
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


def compose(message: str, writers: Iterable[CommitWriter]) -> str:
    """A message with its trailers in one last paragraph, each named once, in the order of the writers."""
    plain = "\n".join(line.rstrip() for line in _CONTROL.sub(" ", message).strip().splitlines()) or "Change memories"
    found = tuple(writers)
    trailers = [
        f"{name}: {value}"
        for name, field in ((AGENT, "agent"), (SESSION, "session"), (SOURCE, "source"))
        for value in dict.fromkeys(trailer_value(getattr(writer, field)) for writer in found)
        if value
    ]
    if not trailers:
        return plain + "\n"
    gap = "\n" if "\n\n" in plain and _trailers(plain.rpartition("\n\n")[2]) else "\n\n"
    return plain + gap + "\n".join(trailers) + "\n"


def with_signature(data: bytes, signature: str) -> bytes:
    """A commit object with an armoured signature of it, where git keeps that."""
    head, _, message = data.partition(b"\n\n")
    lines = signature.strip("\n").encode().replace(b"\n", b"\n ")
    return head + b"\n" + _SIGNATURE + b" " + lines + b"\n\n" + message


def without_signature(data: bytes) -> tuple[bytes, tuple[bytes, ...]]:
    """What was signed of a commit object, and its signatures; none where it has none, two are for nobody to trust."""
    head, gap, message = data.partition(b"\n\n")
    kept: list[bytes] = []
    signatures: list[list[bytes]] = []
    inside: list[bytes] | None = None
    for line in head.split(b"\n"):
        name, _, value = line.partition(b" ")
        if name == _SIGNATURE:
            inside = [value]
            signatures.append(inside)
        elif name == _OTHER_SIGNATURE:  # of another sort of object ids, as git leaves it out too
            inside = []
        elif line[:1] == b" " and inside is not None:
            inside.append(line[1:])
        else:
            inside = None
            kept.append(line)
    found = tuple(b"\n".join((*lines, b"")) for lines in signatures)
    return b"\n".join(kept) + gap + message, found


def parse_commit(data: bytes) -> ParsedCommit:
    """Read a commit object of any program; undecodable bytes become replacement characters.

    Raises:
        HistoryUnavailable: it is not a commit.
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
    return ParsedCommit(
        fields["tree"][0], tuple(fields.get("parent", ())), author, committer, time, subject, body, trailers
    )


def reads_one_way(data: bytes) -> bool:
    """Whether every program reads the same from a commit object: nothing named twice, one address for each person.

    What a commit says twice one program takes the first of, and another the last; a message ends at a NUL for some.
    """
    lines = [line.partition(b" ") for line in data.partition(b"\n\n")[0].split(b"\n")]
    named = [[value for name, _, value in lines if name == once] for once in _ONCE]
    if b"\0" in data or any(len(values) != 1 for values in named):
        return False
    return all(_PLAIN_PERSON.fullmatch(values[0]) for values in named[1:])


def trailer_value(value: str) -> str:
    """A name as a trailer carries it: on one line, cut where it is very long."""
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
    who, _, when = line.rpartition("> ")
    moment, start = _MOMENT.fullmatch(when), who.find("<", who.rfind(">") + 1)
    if moment is None or start < 0:
        return Person(line, ""), datetime.fromtimestamp(0, UTC)
    try:
        time = datetime.fromtimestamp(int(moment[1]), UTC)
    except (ValueError, OverflowError, OSError):
        time = datetime.fromtimestamp(0, UTC)
    return Person(who[:start].removesuffix(" "), who[start + 1 :]), time
