"""MemoryItem: one remembered thing, with its origin, links, trust and recorded conflicts, and the stamp of its file.

An item is immutable, and its fields are checked when it is made. What is shown of one is chosen here, and counted in
tokens of a model's context, without a vocabulary or a network.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from enum import StrEnum
from functools import lru_cache

from memfs.dataclass import KW_ONLY, NamedTuple, dataclass, field, replace
from memfs.errors import SchemaInvalid
from memfs.model.time import EPOCH, given_time
from memfs.startup import TYPE_CHECKING, Any, TypeVar, regex, sha1


class Trust(StrEnum):
    """Who vouches for an item."""

    HUMAN = "human"
    REVIEWED = "reviewed"
    AGENT = "agent"
    TOOL = "tool"


BY_TRUST = tuple(trust.value for trust in reversed(Trust))
"""How far an item is vouched for, the least first."""
VOUCHED = frozenset({Trust.HUMAN.value, Trust.REVIEWED.value})
"""A person vouches for it: wrote it, or looked through it."""


def trust_rank(trust: str) -> int:
    """How well an item is vouched for, the higher the better; what is no trust counts as the least there is."""
    return BY_TRUST.index(trust) if trust in BY_TRUST else 0


def lower_trust(*trusts: str) -> str:
    """The lowest of these; an unknown one counts as the lowest there is."""
    return BY_TRUST[min(map(trust_rank, trusts))]


class Phase(StrEnum):
    """The phases of an EDRR workflow."""

    EXPAND = "expand"
    DIFFERENTIATE = "differentiate"
    REFINE = "refine"
    RETROSPECT = "retrospect"


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Who said it, and when in which order. Empty text means unknown; names are free text.

    Attributes:
        speaker: who said it.
        role: of the speaker in the conversation, such as ``user`` or ``assistant``.
        agent: the agent that wrote it.
        session: the session it is from.
        sequence: its place in that session.
        task: the task it was written for.
        tool: the tool that said it.
        phase: the phase of the work.
    """

    speaker: str = ""
    role: str = ""
    agent: str = ""
    session: str = ""
    sequence: int | None = None
    task: str = ""
    tool: str = ""
    phase: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A link to another item.

    Attributes:
        to: the id of that item.
        relation: what this item is to it: ``relates``, ``contradicts``, ...
    """

    to: str
    relation: str = "relates"


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedConflict:
    """A field that two branches changed to different values, as recorded in the merged item.

    Attributes:
        field: its dotted name; "" for the item as a whole, whose ``kept`` and ``lost`` are then words: ``edited``,
            ``deleted``, ``one version``.
        kept, lost: the value that was kept, and the one that was overridden; None where that side had none.
        part: whether the two are passages of a longer text, with lines around them that both have.
        lost_sha256: of the file that holds the lost value, in the history; "" where ``lost`` says it all.
        by: who wrote the overridden value, as far as known.
        time: when the two met.
    """

    field: str
    kept: Any = None
    lost: Any = None
    part: bool = False
    lost_sha256: str = ""
    by: str = ""
    time: datetime | None = None


if TYPE_CHECKING:
    from typing import TypedDict, Unpack

    class ItemFields(TypedDict, total=False):
        """The fields of an item by name, as they may be given: any iterable, and a time as text, too."""

        id: str
        title: str
        tags: Iterable[str]
        timestamp: datetime | str | None
        created: datetime | str | None
        updated: datetime | str | None
        origin: Origin
        trust: str
        importance: float
        pinned: bool
        status: str
        expires: datetime | str | None
        supersedes: Iterable[str]
        links: Iterable[Link]
        context: Mapping[str, Any]
        metadata: Mapping[str, Any]
        data: Mapping[str, Any]
        conflicts: Iterable[RecordedConflict]
        path: str
        sha256: str
        durability: str

    class ItemChanges(ItemFields, total=False):
        """What may be changed of an item: its fields, its text and its type."""

        content: str
        memory_type: str


class NoValues(dict[str, Any]):
    """No values; it refuses any, as all items share it that have none in a field."""

    def _refuse(self, *_: object, **__: object) -> Any:
        raise TypeError("an item cannot be changed: replace() makes another one")

    __setitem__ = update = setdefault = __ior__ = _refuse
    __hash__ = object.__hash__  # type: ignore[assignment]  # as a default it counts as one that never changes


NONE = NoValues()


@dataclass(frozen=True, slots=True)
class MemoryItem:
    """One remembered thing, as a value.

    Attributes:
        content: the text that is searched and shown; may be empty only when there is a title.
        memory_type, type: name of its kind.
        id: the stem of its file; "" until it is stored.
        title: a short name.
        tags: free words, in order, without repeats.
        timestamp: when it happened; None means "when it was stored".
        created, updated: when it was first and last written; set by the store.
        origin: who said it, and where.
        trust: who vouches for it.
        importance: weight of the item, 0 to 10, 1 unless feedback or a person changed it.
        pinned: never pruned, archived or faded.
        status: stage of a prospective item or a convention, "" for others.
        expires: when it stops being true; None means never.
        supersedes: ids of the items it replaces.
        links: links to other items.
        context: circumstances matched at recall.
        metadata: free facts.
        data: structured body, shaped by the kind's schema where it has one.
        conflicts: what was overridden when branches were joined, until it is settled.
        path: its file below the workspace, "/" separated; "" until it is stored.
        sha256: hex digest of the file's bytes; "" until it is stored.
        durability: of an item a write returned, where it is durable: ``file``, or ``fallback`` while only the secondary
            location could take it; "" for an item that was read.
    """

    content: str = ""
    memory_type: str = "semantic"
    _: KW_ONLY
    id: str = ""
    title: str = ""
    tags: tuple[str, ...] = ()
    timestamp: datetime | None = None
    created: datetime | None = None
    updated: datetime | None = None
    origin: Origin = Origin()
    trust: str = Trust.HUMAN.value
    importance: float = 1.0
    pinned: bool = False
    status: str = ""
    expires: datetime | None = None
    supersedes: tuple[str, ...] = ()
    links: tuple[Link, ...] = ()
    context: Mapping[str, Any] = NONE
    metadata: Mapping[str, Any] = NONE
    data: Mapping[str, Any] = NONE
    conflicts: tuple[RecordedConflict, ...] = ()
    path: str = ""
    sha256: str = ""
    durability: str = field(default="", compare=False)

    if TYPE_CHECKING:

        def __init__(self, content: str = "", memory_type: str = "semantic", **fields: Unpack[ItemFields]) -> None: ...

    def __post_init__(self) -> None:
        put = object.__setattr__
        if not (  # spelt out: every file that is read passes here, and a loop over names takes three times as long
            type(self.content) is type(self.title) is type(self.id) is type(self.status) is str
            and type(self.path) is type(self.sha256) is str
            and (self.context is NONE or type(self.context) is dict)
            and (self.metadata is NONE or type(self.metadata) is dict)
            and (self.data is NONE or type(self.data) is dict)
            and type(self.origin) is Origin
            and type(self.importance) is float
            and type(self.pinned) is bool
            and type(self.memory_type) is type(self.trust) is str
        ):
            _check_sorts(self)
            put(self, "memory_type", str(self.memory_type))
            put(self, "trust", str(self.trust))
        if self.tags != ():
            put(self, "tags", texts_in("tags", self.tags))
        if self.supersedes != ():
            put(self, "supersedes", texts_in("supersedes", self.supersedes))
        if self.links != ():
            put(self, "links", _values("links", self.links, Link))
        if self.conflicts != ():
            put(self, "conflicts", _values("conflicts", self.conflicts, RecordedConflict))
        if (when := self.timestamp) is not None and (type(when) is not datetime or when.tzinfo is not UTC):
            put(self, "timestamp", moment_in("timestamp", when))
        if (when := self.created) is not None and (type(when) is not datetime or when.tzinfo is not UTC):
            put(self, "created", moment_in("created", when))
        if (when := self.updated) is not None and (type(when) is not datetime or when.tzinfo is not UTC):
            put(self, "updated", moment_in("updated", when))
        if (when := self.expires) is not None and (type(when) is not datetime or when.tzinfo is not UTC):
            put(self, "expires", moment_in("expires", when))
        if not self.content and not self.title:
            raise SchemaInvalid("an item needs content or a title", field="content", hint="write what to remember")

    @property
    def type(self) -> str:
        """The name of the item's kind."""
        return self.memory_type

    @property
    def moment(self) -> datetime:
        """When it happened, else when it was made; 1970 where neither is known."""
        return self.timestamp or self.created or EPOCH

    def has_expired(self, now: datetime) -> bool:
        """Whether it has stopped being true."""
        return self.expires is not None and self.expires <= now

    def replace(self, **changes: Any) -> MemoryItem:
        """A copy with the given fields changed."""
        return replace(self, **changes)


Value = TypeVar("Value")
_TEXTS, _LISTS = frozenset({str}), frozenset({list, tuple})
_SORTS: tuple[tuple[str, type | tuple[type, ...], str], ...] = (
    ("content", str, "text"),
    ("memory_type", str, "the name of a type"),
    ("id", str, "text"),
    ("title", str, "text"),
    ("origin", Origin, "an Origin"),
    ("trust", str, "text"),
    ("importance", (float, int), "a number"),
    ("pinned", bool, "True or False"),
    ("status", str, "text"),
    ("context", (dict, Mapping), "a mapping"),
    ("metadata", (dict, Mapping), "a mapping"),
    ("data", (dict, Mapping), "a mapping"),
    ("path", str, "text"),
    ("sha256", str, "text"),
)


def _check_sorts(item: MemoryItem) -> None:
    """Refuse a field whose value is of the wrong sort, by its name."""
    for name, wanted, expected in _SORTS:
        value = getattr(item, name)
        if not isinstance(value, wanted) or (type(value) is bool and wanted is not bool):
            raise unfit(name, expected, value)


def unfit(name: str, wanted: str, value: object) -> SchemaInvalid:
    """The error for a field whose value is of the wrong sort."""
    written = ascii(value)
    shown = written if len(written) <= 60 else written[:57] + "..."
    return SchemaInvalid(
        f"expected {wanted}, got {shown}", field=name, hint="its documentation says what each field holds"
    )


def texts_in(name: str, values: Iterable[str]) -> tuple[str, ...]:
    """The texts that a field is given, each once.

    Raises:
        SchemaInvalid: they are no list, or no texts.
    """
    if isinstance(values, str):
        raise SchemaInvalid("expected a list of texts, got one text", field=name, hint=f"write {name}=[{values!r}]")
    if type(values) not in _LISTS and not isinstance(values, Iterable):
        raise unfit(name, "a list of texts", values)
    found = tuple(values)
    for number, value in enumerate(found) if not _TEXTS.issuperset(map(type, found)) else ():
        if not isinstance(value, str):
            raise unfit(f"{name}.{number}", "text", value)
    return tuple(dict.fromkeys(found))


def _values(name: str, values: Any, sort: type[Value]) -> tuple[Value, ...]:
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise unfit(name, f"a list of {sort.__name__}", values)
    found = tuple(values)
    for number, value in enumerate(found):
        if not isinstance(value, sort):
            raise unfit(f"{name}.{number}", f"a {sort.__name__}", value)
    return found


def moment_in(name: str, value: Any) -> datetime:
    """The point in time that a field is given, in UTC.

    Raises:
        SchemaInvalid: it is none.
    """
    try:
        return given_time(value)
    except (ValueError, TypeError, AttributeError, OverflowError) as error:
        hint = "write it like 2026-03-01T10:00:00Z"
        raise SchemaInvalid(f"{ascii(value)[:60]} is not a date or time", field=name, hint=hint) from error


RACY_NS = 2_000_000_000


def object_id(kind: str, data: bytes) -> str:
    """The id git gives to these bytes as a ``blob``, ``tree`` or ``commit`` (SHA-1 repositories)."""
    digest = sha1(b"%s %d\0" % (kind.encode(), len(data)), usedforsecurity=False)
    digest.update(data)
    return digest.hexdigest()


class Stamp(NamedTuple):
    """What the file system and git say of one file.

    Attributes:
        size, mtime_ns, ctime_ns, inode: as ``stat`` gave them when the content was read.
        blob: git's id of the content, hex.
        checked_ns: when it was read, nanoseconds since 1970.
    """

    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int
    blob: str
    checked_ns: int

    @property
    def racy(self) -> bool:
        """Whether the file was so young when read that a later change could carry the same times."""
        return self.checked_ns - max(self.mtime_ns, self.ctime_ns) < RACY_NS


# -- what is shown of it, and how many tokens a text takes ------------------------------------------------------------
MARGIN = 1.12
"""How much an estimate of tokens is raised above the count of pieces, so that what is said to fit a budget fits it."""
_PIECE = regex(r"[A-Z]?[^\W\d_A-Z]+|[A-Z]{1,3}|\d{1,3}|\n\s*|[^\w\s]{1,3}|_")
_ASCII_PIECE = regex(r"[A-Z]?[a-z]+|[A-Z]{1,3}|\d{1,3}|\n\s*|[^\w\s]{1,3}|_", re.ASCII)
_LONG_PIECE, _EACH_BEYOND = 8, 0.2
# What one character costs besides the word it is in, by script; the last row is everything else beyond ASCII.
_SCRIPTS = (
    (regex("[\u00c0-\u024f\u1e00-\u1eff]"), 0.8),
    (regex("[\u0370-\u06ff]"), 0.16),
    (regex("[\u0900-\u0dff]"), 0.113),
    (regex("[\u0e01-\u0eff\u1000-\u109f\u1780-\u17ff]"), 0.35),
    (regex("[\u10a0-\u10ff]"), 0.3),
    (regex("[\u3005-\u3007\u3041-\u3096\u30a1-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]"), 0.85),
    (regex("[\u1100-\u11ff\uac00-\ud7ff]"), 0.7),
    (regex("[\u2010-\u2027]"), 0.113),
)
_ELSEWHERE = 1.6
_ASTRAL = 2.2


def count_tokens(text: str) -> int:
    """About how many tokens a text is to a language model, more likely too many than too few; 0 for "".

    Words, capitals within them, groups of three digits and short runs of signs are tokens of the vocabularies in use;
    long words are several, and scripts beyond ASCII have their share a character.
    """
    return _remembered(text) if len(text) <= 4_000 else _counted(text)


def _counted(text: str) -> int:
    if not text:
        return 0
    lengths = list(map(len, (_ASCII_PIECE if text.isascii() else _PIECE).findall(text)))
    found = len(lengths) + _EACH_BEYOND * sum([length - _LONG_PIECE for length in lengths if length > _LONG_PIECE])
    if text.isascii():
        return max(1, math.ceil(MARGIN * found))
    rest = len(text) - len(text.encode("ascii", "ignore"))
    astral = sum(character > "\uffff" for character in text)
    cost, rest = _ASTRAL * astral, rest - astral
    for pattern, each in _SCRIPTS:
        number = len(pattern.findall(text))
        cost, rest = cost + each * number, rest - number
    return max(1, math.ceil(MARGIN * (found + (cost + _ELSEWHERE * rest))))


# What is found once is often found again.
_remembered = lru_cache(maxsize=4096)(_counted)


def whole(item: MemoryItem) -> str:
    """What of an item is shown: its title and its content, a line each."""
    return "\n".join(filter(None, (item.title, item.content)))


def gist(item: MemoryItem) -> str:
    """What an item says: its content, or its title where it has no other words."""
    return item.content if item.content.strip() else item.title
