"""Encodes and parses commit objects, their trailers and signatures, and chooses their authors and committers.

Parsing accepts commits of any program. Of the person at work the environment comes before git's configuration, and that
before memfs's own name. Nothing is read from disk or stored.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime

from memfs.dataclass import NamedTuple
from memfs.errors import HistoryUnavailable
from memfs.fs.journal import Writer
from memfs.model import ids
from memfs.model.time import EPOCH
from memfs.startup import regex

_SIGNATURE, _OTHER_SIGNATURE = b"gpgsig", b"gpgsig-sha256"
AGENT, SESSION, SOURCE, EXPORT = "Memfs-Agent", "Memfs-Session", "Memfs-Source", "Memfs-Export"
_TRAILER = regex(r"([A-Za-z0-9][A-Za-z0-9-]*)\s*:\s+(\S.*)")
_MOMENT = regex(r"(-?\d+) [+-]\d{4}")
_PLAIN_PERSON = regex(rb"[^<>\x00-\x1f]*<[^<>\x00-\x1f]*> \d{1,12} [+-]\d{4}")
_CONTROL = regex(r"[\x00-\x08\x0b-\x1f\x7f]")


class ParsedCommit(NamedTuple):
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
    """A commit object; author and committer carry the same time, in UTC.

    Args:
        tree, parents: ids of objects.
        text: the message, with its trailers.
    """
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
    """What was signed of a commit object, and its signatures; none where it has none, two are not to be trusted."""
    rows = headers(data)[0]
    found = [row.removeprefix(_SIGNATURE + b" ") for row in rows if row.startswith(_SIGNATURE + b" ")]
    # a signature of another sort of object ids is left out, as git does
    kept = [row for row in rows if row.partition(b" ")[0] not in (_SIGNATURE, _OTHER_SIGNATURE)]
    _, gap, message = data.partition(b"\n\n")
    return b"\n".join(kept) + gap + message, tuple(one.replace(b"\n ", b"\n") + b"\n" for one in found)


def headers(data: bytes) -> tuple[list[bytes], bytes]:
    """The headers of a commit or tag, continued lines joined to theirs, and its message."""
    head, _, message = data.partition(b"\n\n")
    found: list[bytes] = []
    for line in head.split(b"\n"):
        if line.startswith(b" ") and found:
            found[-1] += b"\n" + line
        else:
            found.append(line)
    return found, message


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
    try:
        text = message.decode(fields.get("encoding", ["utf-8"])[0], "replace")
    except LookupError:  # no encoding that is known
        text = message.decode("utf-8", "replace")
    paragraphs = text.strip("\n").split("\n\n")
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
    named = [[value for name, _, value in lines if name == once] for once in (b"tree", b"author", b"committer")]
    if b"\0" in data or any(len(values) != 1 for values in named):
        return False
    return all(_PLAIN_PERSON.fullmatch(values[0]) for values in named[1:])


def trailer_value(value: str) -> str:
    """A name as a trailer carries it: on one line, cut where it is very long."""
    return " ".join(_CONTROL.sub(" ", value).split())[:200]


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
        return Person(line, ""), EPOCH
    try:
        time = datetime.fromtimestamp(int(moment[1]), UTC)
    except (ValueError, OverflowError, OSError):
        time = EPOCH
    return Person(who[:start].removesuffix(" "), who[start + 1 :]), time


class CommitChange(NamedTuple):
    """New content of one path below the workspace; ``data`` None removes it."""

    path: str
    data: bytes | None


class Group(NamedTuple):
    """Changes that belong together, with the sentence that says why and those who wrote them.

    Attributes:
        merges: a commit that is joined with the branch: the second parent; "" for none.
    """

    changes: tuple[CommitChange, ...]
    message: str
    writers: tuple[Writer, ...]
    time: datetime
    merges: str = ""


class CommitResult(NamedTuple):
    """What became of the groups.

    Attributes:
        commits: the new commits, oldest first; a group that the branch held already made none.
        left_staged: paths that the person has staged differently; their entry in the person's index was left alone.
    """

    commits: tuple[str, ...]
    left_staged: tuple[str, ...]


_FORBIDDEN = regex(r"[\x00-\x1f\x7f<>]+")
_CRUD = " .,:;\"'"
_AGENTS = "@agent.memfs"


class Person(NamedTuple):
    """A name and an address as in a commit."""

    name: str
    email: str

    @property
    def is_agent(self) -> bool:
        """Whether the address is one that memfs gives to agents."""
        return self.email.endswith(_AGENTS)

    @property
    def in_reflogs(self) -> dict[str, str]:
        """The variables by which git names it in the reflogs that it writes."""
        return {"GIT_COMMITTER_NAME": self.name, "GIT_COMMITTER_EMAIL": self.email}

    def __str__(self) -> str:
        return f"{self.name} <{self.email}>"


MEMFS = Person("memfs", "memfs@localhost")


class Identity(NamedTuple):
    """The person at work: as author of what they wrote, and as committer of everything."""

    author: Person
    committer: Person


def identity(environment: Mapping[str, str], settings: Mapping[str, str]) -> Identity:
    """The person by ``GIT_AUTHOR_*`` and ``GIT_COMMITTER_*``, then by git's configuration, else memfs itself.

    Args:
        environment: the process's, before it is scrubbed.
        settings: ``user.name``, ``author.email`` and their like from git's configuration.
    """
    author = _named_person("author", environment, settings)
    committer = _named_person("committer", environment, settings)
    return Identity(author or committer or MEMFS, committer or author or MEMFS)


def _named_person(role: str, environment: Mapping[str, str], settings: Mapping[str, str]) -> Person | None:
    def first(part: str) -> str:
        choices = (
            environment.get(f"GIT_{role.upper()}_{part.upper()}", ""),
            settings.get(f"{role}.{part}", ""),
            settings.get(f"user.{part}", ""),
        )
        return next((clean for choice in choices if (clean := sanitised(choice))), "")

    name, email = first("name"), first("email") or sanitised(environment.get("EMAIL", ""))
    if not name and not email:
        return None
    return Person(name or email.partition("@")[0] or MEMFS.name, email or MEMFS.email)


def sanitised(text: str) -> str:
    """A text as it may be in an author line: one line, no angle brackets, no punctuation at either end."""
    plain = text.encode("utf-8", "replace").decode()
    return " ".join(_FORBIDDEN.sub(" ", plain).split()).strip(_CRUD)[:100].rstrip(_CRUD)


def agent(name: str) -> Person:
    """The author line of an agent: ``name <name@agent.memfs>``."""
    shown = sanitised(name) or "agent"
    local = re.sub(r"[^a-z0-9._+-]+", "-", shown.lower()).strip("-._")
    return Person(shown, f"{local or ids.slug(shown) or 'agent'}{_AGENTS}")


def author(writers: Iterable[Writer], person: Person) -> Person:
    """The one agent that a group's writers name, else the person."""
    name = sole_agent(writers)
    return agent(name) if name else person


def sole_agent(writers: Iterable[Writer]) -> str:
    """The name of the one agent that a group's writers name; "" where they name none or several, or a person."""
    found = tuple(writers)
    agents = {writer.agent for writer in found if writer.agent}
    return agents.pop() if len(agents) == 1 and not any(writer.person for writer in found) else ""
