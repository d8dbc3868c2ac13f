"""Values of recall: the query, the candidates of a search engine, the hits, and the proof of freshness."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import date, datetime
from types import MappingProxyType

from memfs.dataclass import NamedTuple, dataclass, field
from memfs.errors import QueryInvalid
from memfs.model.item import VOUCHED, MemoryItem, count_tokens
from memfs.model.time import given_time, parse_until, parse_when, utc_now
from memfs.model.time import moment as moment_of
from memfs.startup import TYPE_CHECKING, Any

MOST = 10_000
"""The most items a query may ask for."""
_NAMES = ("types", "layers", "tags", "agents", "sessions", "phases")


if TYPE_CHECKING:
    from typing import TypedDict, Unpack

    class QueryFields(TypedDict, total=False):
        """The fields of a query but its text, as they may be given: any iterable of names, and a time as text, too."""

        limit: int
        types: Iterable[str]
        layers: Iterable[str]
        tags: Iterable[str]
        agents: Iterable[str]
        sessions: Iterable[str]
        phases: Iterable[str]
        since: datetime | str | None
        until: datetime | str | None
        path: str
        context: Mapping[str, Any]
        max_tokens: int | None
        deduplicate: bool
        similarity_threshold: float
        strategy: str
        seconds: float | None
        related: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """What to bring back.

    An empty ``text`` matches everything, newest first. Several values of one filter mean "any of them", except tags,
    of which an item needs all. An empty filter does not restrict.

    Attributes:
        text: natural words; a hit shares at least one stem with it.
        limit: at most this many, 1 to 10,000.
        types, tags, agents, sessions, phases: names to match exactly; any iterable of texts is taken.
        layers: layers to search (the index itself sees them as types).
        since, until: bounds of ``timestamp``, both inclusive; text such as ``2026-03-01``, ``7d``, ``2 days ago``,
            ``today`` or ``last week`` is read, and a day, week or month as ``until`` means the whole of it.
        path: only items whose path begins with this prefix, at a "/" boundary.
        context: the circumstances of the moment, such as ``{"project": "shop"}``; they never filter, but an item that
            shares one is worth more.
        max_tokens: how many tokens (``memfs.model.item``) the hits together hold at most; None: no bound.
        deduplicate: whether an item that repeats a better hit is left out.
        similarity_threshold: from this likeness on, 0 to 1, an item repeats another.
        strategy: a ranking preset or a registered strategy; "" means the workspace's own.
        seconds: after so long, give what was found until then and call it partial; None: no bound.
        related: whether English words that mean nearly what those of the text do are searched, too.

    Raises:
        QueryInvalid: a value is of the wrong sort; ``field`` names it.
    """

    text: str = ""
    limit: int = 10
    types: frozenset[str] = frozenset()
    layers: frozenset[str] = frozenset()
    tags: frozenset[str] = frozenset()
    agents: frozenset[str] = frozenset()
    sessions: frozenset[str] = frozenset()
    phases: frozenset[str] = frozenset()
    since: datetime | None = None
    until: datetime | None = None
    path: str = ""
    context: Mapping[str, Any] = field(default_factory=dict, hash=False)
    max_tokens: int | None = None
    deduplicate: bool = False
    similarity_threshold: float = 0.85
    strategy: str = ""
    seconds: float | None = None
    related: bool = False

    if TYPE_CHECKING:

        def __init__(self, *, text: str = "", **fields: Unpack[QueryFields]) -> None: ...

    def __post_init__(self) -> None:
        put, most, share, seconds = object.__setattr__, self.max_tokens, self.similarity_threshold, self.seconds
        for name, wanted, fits in (
            ("text", "text", isinstance(self.text, str)),
            ("path", "text", isinstance(self.path, str)),
            ("strategy", "text", isinstance(self.strategy, str)),
            ("limit", "a whole number", _is_number(self.limit, int)),
            ("context", "a mapping", isinstance(self.context, Mapping)),
            ("deduplicate", "True or False", isinstance(self.deduplicate, bool)),
            ("max_tokens", "a whole number of at least 1", most is None or (_is_number(most, int) and most >= 1)),
            ("similarity_threshold", "a number above 0, at most 1", _is_number(share) and 0 < share <= 1),
            ("seconds", "a number above 0", seconds is None or (_is_number(seconds) and seconds > 0)),
        ):
            if not fits:
                raise _unfit(name, wanted, getattr(self, name))
        if not 1 <= self.limit <= MOST:
            raise QueryInvalid(f"a limit of {self.limit} is out of range", field="limit", hint=f"ask for 1 to {MOST:,}")
        for name in _NAMES:
            if (given := getattr(self, name)) or type(given) is not frozenset:
                put(self, name, _names(name, given))
        for name in ("since", "until"):
            if (given := getattr(self, name)) is not None:
                put(self, name, moment(name, given, end=name == "until"))


def _is_number(value: object, *sorts: type) -> bool:
    return isinstance(value, sorts or (int, float)) and not isinstance(value, bool)


def moment(
    name: str, value: str | datetime | None, *, end: bool = False, now: datetime | None = None
) -> datetime | None:
    """A point in time as people write it, in UTC; None stays None.

    Args:
        name: what to call it in the error.
        end: whether it ends a span, so that a day means the whole of it.
        now: from when an age counts back; None: from now on.

    Raises:
        QueryInvalid: it is none.
    """
    if value is None:
        return None
    try:
        if isinstance(value, datetime):
            return given_time(value)
        return (parse_until if end else parse_when)(value, now or utc_now())
    except (ValueError, TypeError, AttributeError, OverflowError) as error:
        raise QueryInvalid(
            f"{ascii(value)[:60]} is not a date, time or age",
            field=name,
            hint="write 2026-03-01, 2026-03-01T10:00Z, 7d, '2 days ago', today, monday, 'last week' or 2026-03",
        ) from error


def _names(name: str, values: Iterable[str]) -> frozenset[str]:
    if isinstance(values, str):
        raise QueryInvalid(
            f"expected several names, got one text: {ascii(values)[:60]}",
            field=name,
            hint=f"write {name}={{{ascii(values)[:60]}}}",
        )
    if not isinstance(values, Iterable):
        raise _unfit(name, "a set of names", values)
    found = tuple(values)
    for value in found:
        if not isinstance(value, str):
            raise _unfit(name, "texts", value)
    return frozenset(map(str, found))


def _unfit(name: str, wanted: str, value: object) -> QueryInvalid:
    return QueryInvalid(f"expected {wanted}, got {ascii(value)[:60]}", field=name)


_NOTHING: Mapping[str, Any] = MappingProxyType({})


class Candidate(NamedTuple):
    """What an index engine returns for one item: enough to rank it without opening its file.

    Attributes:
        similarity: the engine's text score, > 0 for a text query and 0 for an empty one.
        time: when it happened, in microseconds since 1970.
        agent: who wrote it, "" where that was a person.
        session, sequence: where in which talk it was said; None where it has no place in one.
        speaker, role: who said it.
        asks: whether it is a question.
        pinned: whether it never fades.
        meaning: how near the embedder puts it to the question, -1 to 1; 0 without an embedder.
        passage: the number of the passage that answers best, from 0.
        held, lacking: of the terms that were searched, those it has and those it has not; none where it was not found
            by words.
    """

    id: str
    path: str
    similarity: float
    type: str
    time: int
    importance: float = 1.0
    context: Mapping[str, Any] = _NOTHING
    agent: str = ""
    session: str = ""
    sequence: int | None = None
    speaker: str = ""
    role: str = ""
    asks: bool = False
    pinned: bool = False
    meaning: float = 0.0
    passage: int = 0
    held: frozenset[str] = frozenset()
    lacking: frozenset[str] = frozenset()

    @property
    def timestamp(self) -> datetime:
        """When it happened."""
        return moment_of(self.time)


@dataclass(frozen=True, slots=True, kw_only=True)
class HitPassage:
    """The passage of a long content that answers best.

    Attributes:
        start, end: where it begins and ends in the content, in characters.
        line, last_line: the numbers of its first and its last line there, from 1.
        sentence: where in the content the sentence or line of it begins that holds most of what was asked.
        text: what it says.
    """

    start: int
    end: int
    line: int
    last_line: int
    sentence: int
    text: str

    def within(self, content: str, *, sentence: bool = False) -> str:
        """It, or its best sentence and what follows in it, with ``…`` where something of the content is left out."""
        start = self.sentence if sentence else self.start
        rest = content[self.end :].strip()
        return f"{'… ' if start else ''}{content[start : self.end]}{' …' if rest else ''}"


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlierVersion:
    """What an item said of a fact before a newer one restated it.

    Attributes:
        timestamp: when that was.
        trust: who vouches for it.
        text: the beginning of what it says, on one line.
    """

    id: str
    timestamp: datetime | None
    trust: str
    text: str

    def __str__(self) -> str:
        day = self.timestamp.date().isoformat() if self.timestamp else ""
        facts = ", ".join(filter(None, (day, "" if self.trust in VOUCHED else f"by {self.trust}")))
        return f"{self.id} ({facts}): {self.text}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """An item, its score, and the named factors that made the score.

    Attributes:
        stale: whether the file is at present invalid, and this is its last good version.
        passage: what of a long content answers best; None for a content that is a single passage, and where nothing
            was asked.
        shortened: whether only the passage had room in the token budget, so that ``text`` is less than the content.
        earlier: earlier versions of what it says, the latest first, that are no hits of their own.
    """

    item: MemoryItem
    score: float
    reasons: Mapping[str, float] = field(default_factory=dict)
    stale: bool = False
    passage: HitPassage | None = None
    shortened: bool = False
    earlier: tuple[EarlierVersion, ...] = ()

    @property
    def text(self) -> str:
        """The content as it is to be shown: all of it, or the passage, with ``…`` where something is left out."""
        return self.excerpt if self.shortened else self.item.content

    @property
    def tokens(self) -> int:
        """How many tokens it holds with its title and its earlier versions, an estimate."""
        return count_tokens("\n".join(filter(None, (self.item.title, self.text, *map(str, self.earlier)))))

    @property
    def excerpt(self) -> str:
        """The passage, with ``…`` where something is left out; the whole content where there is no passage."""
        return self.item.content if self.passage is None else self.passage.within(self.item.content)


@dataclass(frozen=True, slots=True, kw_only=True)
class Anchor:
    """The memory of an event from whose day a question counts, as *two weeks after the launch*.

    Attributes:
        id: of the memory.
        day: that it names, or else its own.
        event: the words of the question that it was found by.
    """

    id: str
    day: date
    event: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Freshness:
    """The proof of what an answer rests on.

    Attributes:
        head: commit the branch points at, None where there is none yet.
        dirty: how many memory files differ from that commit; None when that is unknown.
        indexed: digest over path and content id of every file in the index; equal trees give equal digests.
    """

    head: str | None
    dirty: int | None
    indexed: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Recall:
    """The answer to a query.

    Attributes:
        query: what was asked.
        hits: what was found, best first.
        partial: whether the answer may be incomplete: a file that the question could concern is damaged or invalid at
            present (``Store.problems`` names it), or the index could not be asked.
        fresh: what the answer rests on, when that was asked.
        more: whether a higher limit would give more hits.
        counted: ``tokens``, where a budget or a frame required counting them.
        duplicates: ids that were left out because they repeat a hit, each with that hit's id.
        cut: why the answer was cut short (the deadline, the token budget), "" where it was not.
        absent: reviewers that gave no usable answer in time, with why.
        semantic: whether memories were searched by meaning, too, as far as they have vectors.
        without_room: ids of those that had no room in the token budget, best first.
        nothing_fits: whether the hits share so little with the question that none is likely to answer it; never where
            memories were searched by meaning.
        anchor: the memory from whose day the question counts, where it names an event and no date.
    """

    query: Query
    hits: tuple[Hit, ...]
    partial: bool
    fresh: Freshness | None = None
    more: bool = False
    counted: int | None = None
    duplicates: Mapping[str, str] = field(default_factory=dict)
    cut: str = ""
    absent: Mapping[str, str] = field(default_factory=dict)
    semantic: bool = False
    without_room: tuple[str, ...] = ()
    nothing_fits: bool = False
    anchor: Anchor | None = None

    @property
    def tokens(self) -> int:
        """How many tokens the hits hold together, an estimate (``memfs.model.item``)."""
        return sum(hit.tokens for hit in self.hits) if self.counted is None else self.counted

    def __iter__(self) -> Iterator[Hit]:
        return iter(self.hits)

    def __len__(self) -> int:
        return len(self.hits)
