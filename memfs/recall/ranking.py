"""Orders the candidates of a recall by one score made of named factors, and selects the hits that fit.

A factor sees a candidate, the query and the time; it opens no file. Presets and registered strategies weigh the
factors, whose sizes were chosen in ``benchmarks/retrieval``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from datetime import datetime
from functools import cached_property
from itertools import repeat
from math import log1p
from operator import attrgetter, mul
from types import MappingProxyType

from memfs.dataclass import NamedTuple, dataclass, field, replace
from memfs.errors import QueryInvalid, SettingInvalid
from memfs.model import Anchor, Candidate, EarlierVersion, Hit, KindTable, MemoryItem, Query, Recall
from memfs.model.item import count_tokens, whole
from memfs.model.kinds import nearest
from memfs.model.query import MOST
from memfs.model.time import MONTHS, utc_now
from memfs.recall.similarity import TextShape, alike
from memfs.resources import word_lists
from memfs.search import analyzer, terms
from memfs.search.terms import Asked
from memfs.startup import TYPE_CHECKING, Any, Protocol, regex, runtime_checkable
from memfs.usage import NEVER, Use

if TYPE_CHECKING:
    from memfs.recall.dates import NamedTimes
    from memfs.recall.use_weights import UseWeights

Place = tuple[str, int]
LookUp = Callable[[Collection[Place]], list[Candidate]]

# What an item lends to those after it, by distance: a question most to the very next one, often the answer.
LENT = {1: 0.2, -1: 0.125, 2: 0.125, -2: 0.125}
LENT_BY_ANSWER = 0.25
LENT_BY_QUESTION = 0.7
SESSION_SHARE = 0.4
_SESSION_FADE = 0.6
ASSISTANTS = frozenset({"assistant", "tool"})
_GIVERS = 100


class Shares(NamedTuple):
    """What one candidate gained, in the unit of text scores; what its meaning added may be less than nothing.

    ``time``: for being of a time, where nothing more was asked for.
    """

    neighbours: float = 0.0
    session: float = 0.0
    meaning: float = 0.0
    time: float = 0.0


NOTHING = Shares()
_AROUND = 4
_COVERED, _LEAST_COVERED = 1 / 3, 0.05


def with_neighbours(found: list[Candidate], look_up: LookUp) -> list[tuple[Candidate, Shares]]:
    """The candidates, joined by their neighbours, with what each gains.

    In a conversation the words of a question are often beside the answer, not in it: a candidate lends a share to its
    neighbours in the same session, and a session to its items. Items without a place in a session neither give nor get
    anything.

    Args:
        found: what the search found, best first.
        look_up: gives the items at some places, those that pass the query's filters.
    """
    givers = [one for one in found[:_GIVERS] if one.sequence is not None]
    if not givers:
        return [(one, NOTHING) for one in found]
    gained: dict[Place, float] = {}
    for giver in givers:
        assert giver.sequence is not None  # only items with a place give
        for step, share in LENT.items():
            if step == -1 and giver.role in ASSISTANTS:
                share = LENT_BY_ANSWER
            elif step == 1 and giver.asks:
                share = LENT_BY_QUESTION
            place = giver.session, giver.sequence + step
            gained[place] = gained.get(place, 0.0) + share * giver.similarity
    known = {(one.session, one.sequence) for one in found}
    fresh = look_up([place for place in gained if place not in known])
    # what each session is worth: the score of its best item, and of each further one less
    worth: dict[str, float] = {}
    fade: dict[str, float] = {}
    for candidate in found:
        if candidate.sequence is not None:
            share = fade.get(candidate.session, 1.0)
            worth[candidate.session] = worth.get(candidate.session, 0.0) + share * candidate.similarity
            fade[candidate.session] = share * _SESSION_FADE
    return [
        (one, NOTHING)
        if one.sequence is None
        else (one, Shares(gained.get((one.session, one.sequence), 0.0), SESSION_SHARE * worth.get(one.session, 0.0)))
        for one in (*found, *fresh)
    ]


def with_coverage(found: Sequence[RankCandidate], words: Asked) -> Sequence[RankCandidate]:
    """The candidates; those of talks between people with how much of the question is said within four turns of each.

    Terms count what they are worth, one that stands for another half of it, and what is covered best 1. With an
    assistant, whose turns are long and repeat the question, that means nothing.
    """
    assisted = {one.session for one, *_ in found if one.role in ASSISTANTS}
    talks: dict[tuple[str, int | None], frozenset[str]] = {
        (one.session, one.sequence): one.held
        for one, *_ in found
        if one.sequence is not None and one.session not in assisted
    }
    worth, groups = terms.rare(words), words[1].groups
    bits = {term: 1 << number for number, term in enumerate(worth)}
    parts = [
        (bits[term], share / (1 + (term in groups))) for term, share in worth.items() if term == groups.get(term, term)
    ]
    parts += [
        (sum(bits[near] for near in groups if groups[near] == term), worth[term] / 2) for term in {*groups.values()}
    ]
    around: dict[tuple[str, int | None], int] = {}
    for (session, sequence), held in talks.items():
        mask = sum([bits[term] for term in held if term in bits])
        for step in range(-_AROUND, _AROUND + 1) if mask else ():
            place = session, (sequence or 0) + step
            around[place] = around.get(place, 0) | mask
    shares = {mask: sum([share for bit, share in parts if bit & mask]) for mask in {0, *around.values()}}
    if not (most := max(shares.values())):
        return found
    factors = {mask: max(share / most, _LEAST_COVERED) ** _COVERED for mask, share in shares.items()}
    return [
        RankCandidate(*row[:4], factors[around.get(at, 0)])
        if (at := (row.candidate.session, row.candidate.sequence)) in talks
        else row
        for row in found
    ]


_SECONDS_PER_DAY = 86400.0
_SPEAKER_NAMED = 1.25
_TIME_NAMED = 1.4
ONE_QUESTION = 40
"""A text of more words is a talk, in which much is asked and told."""
_ASKS = 0.75
_ASSISTANT = 0.6
_CONTEXT_SHARED = 1.5
_PATTERN = 1.3
_WEEK_HOURS = 168.0
_WEEK_FLOOR = 0.5
_FADED = 0.5
JUDGED_SHARE = 0.05
"""What the word of the built-in reviewers adds at most: more lost answers in ``benchmarks/retrieval``."""
_LEAST = 1e-9
_AS_GOOD = 0.85
"""From what share of the best score on a memory is taken for an answer as well."""
_TIME_WORDS = frozenset(MONTHS).union(
    ("after", "ago", "autumn", "before", "earliest", "fall", "first", "last", "latest", "most", "past", "previous"),
    ("prior", "since", "spring", "summer", "this", "until", "winter", "yesterday"),
)
"""An English question has one of them, or a figure, where it names a time."""
_WORD = regex(r"\w+")
_SUMMARIES: Sequence[str] = word_lists()["signs"]["summaries"].split()


class RankCandidate(NamedTuple):
    """A candidate, and what is known of it besides.

    Attributes:
        shares: what it gained from the talk around it.
        use: how often it was recalled, and when last.
        half_life_days: of its kind; 0 for one that does not fade.
        covered: what it counts for how much of the question is said around it.
    """

    candidate: Candidate
    shares: Shares = NOTHING
    use: Use = NEVER
    half_life_days: float = 0.0
    covered: float = 1.0


@dataclass(frozen=True, slots=True)
class RankedCandidate:
    """A match with its score and the factors that made it."""

    match: RankCandidate
    score: float
    reasons: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class QueryTerms:
    """The names, dates and words of a query, parsed once.

    Attributes:
        text: what was asked in words, "" for nothing.
        words: its words in lower case.
        times: the days, months and years that it names.
        context: the circumstances it is asked in.
        anchor: the memory from whose day some of the times count.
        literal: memories that write the days themselves.
    """

    text: str
    words: frozenset[str]
    times: NamedTimes | None = None
    context: Mapping[str, Any] = field(default_factory=dict)
    anchor: Anchor | None = None
    literal: Sequence[Candidate] = ()

    @classmethod
    def of(cls, query: Query, now: datetime) -> QueryTerms:
        """What a query names."""
        written, times = _WORD.findall(query.text), None
        words = frozenset(map(str.lower, written))
        names_time = not _TIME_WORDS.isdisjoint(words) or any(word[0].isdecimal() for word in words)
        if names_time or analyzer.text_languages(query.text):
            from memfs.recall.dates import times_in  # most questions name no time

            times = times_in(query.text, now.date(), brief=len(written) <= ONE_QUESTION)
        return cls(text=query.text if query.text.strip() else "", words=words, times=times, context=query.context)

    def sought(self, text: str) -> str:
        """A query's text as it is searched for: first without the words of days, where there are others."""
        return (self.times.rest if self.times is not None else "") or text


Factor = Callable[[RankCandidate, QueryTerms, datetime], float]


def text(match: RankCandidate, asked: QueryTerms, now: datetime) -> float:  # noqa: ARG001  every factor has one signature
    """How well the words match, in the item and in the talk around it; 1 where nothing was asked."""
    if not asked.text:
        return 1.0
    shares = match.shares
    if shares is NOTHING:
        return max(_LEAST, match.candidate.similarity)
    # a factor below nothing would turn the order round
    return max(_LEAST, match.candidate.similarity + shares.neighbours + shares.session + shares.meaning + shares.time)


def importance(match: RankCandidate, asked: QueryTerms, now: datetime) -> float:  # noqa: ARG001
    """The weight a person or feedback gave the item."""
    return max(match.candidate.importance, 0.01)


def speaker(match: RankCandidate, asked: QueryTerms, now: datetime) -> float:  # noqa: ARG001
    """More where the question names who said it, by the first name or any longer part of it."""
    name = _WORD.findall(match.candidate.speaker.lower()) if match.candidate.speaker else ()
    return _SPEAKER_NAMED if name and name[0] in asked.words else 1.0


def when(match: RankCandidate, asked: QueryTerms, now: datetime) -> float:  # noqa: ARG001
    """More where the question names when it happened: the month, the year, most the day."""
    times, moment = asked.times, match.candidate.timestamp
    if times is None or not times.dated:
        return 1.0
    if times.days:
        return max((one.worth for one in times.days if one.holds(moment.date())), default=1.0)
    fits = (not times.months or moment.month in times.months) and (not times.years or moment.year in times.years)
    return _TIME_NAMED if fits else 1.0


def statement(match: RankCandidate, asked: QueryTerms, now: datetime) -> float:  # noqa: ARG001
    """Less for a question: what answers one is seldom another one."""
    return _ASKS if asked.text and match.candidate.asks else 1.0


def asks_for_summary(text: str) -> bool:
    """Whether a question asks for a summary."""
    text = text.casefold()
    return any(beginning in text for beginning in _SUMMARIES)


def person(match: RankCandidate, asked: QueryTerms, now: datetime) -> float:  # noqa: ARG001
    """Less for what an assistant said in a talk: people's words are what is to be remembered, but in a summary."""
    candidate = match.candidate
    return _ASSISTANT if asked.text and candidate.sequence is not None and candidate.role in ASSISTANTS else 1.0


def covered(match: RankCandidate, asked: QueryTerms, now: datetime) -> float:  # noqa: ARG001
    """Less where less of the question is said in the talk around it; see ``with_coverage``."""
    return match.covered


def reviewers(match: RankCandidate, asked: QueryTerms, now: datetime) -> float:  # noqa: ARG001
    """More for what holds more of the question, as the two built-in relevance reviewers judge it by the index."""
    words, pairs = terms.shares_held(asked.text, match.candidate.held)
    return 1.0 + JUDGED_SHARE * (words + pairs) / 2


def recency(match: RankCandidate, asked: QueryTerms, now: datetime) -> float:  # noqa: ARG001
    """1 for now, falling to a half after ten days (1 / (1 + 0.1 x days))."""
    return fresh(match.candidate.timestamp, now)


def week(match: RankCandidate, asked: QueryTerms, now: datetime) -> float:  # noqa: ARG001
    """1 for now, falling evenly to a half and never lower (max(0.5, 1 - hours / 168))."""
    return max(_WEEK_FLOOR, 1.0 - 24.0 * days_since(match.candidate.timestamp, now) / _WEEK_HOURS)


def access(match: RankCandidate, asked: QueryTerms, now: datetime) -> float:  # noqa: ARG001
    """More for what was recalled before; 1 for what never was."""
    return 1.0 + log1p(match.use.count) / 10.0


def context(match: RankCandidate, asked: QueryTerms, now: datetime) -> float:  # noqa: ARG001
    """More where the question is asked in circumstances of which the item has one, by key and value."""
    held = match.candidate.context
    shared = any(key in held and _same(held[key], value) for key, value in asked.context.items())
    return _CONTEXT_SHARED if shared else 1.0


def pattern(match: RankCandidate, asked: QueryTerms, now: datetime) -> float:  # noqa: ARG001
    """More for what holds for several memories."""
    return _PATTERN if match.candidate.type == "pattern" else 1.0


def fading(match: RankCandidate, asked: QueryTerms, now: datetime) -> float:  # noqa: ARG001
    """Half after each half-life of its kind without use, never lower than a half; a pinned item does not fade."""
    if not match.half_life_days or match.candidate.pinned:
        return 1.0
    last = max(match.candidate.timestamp, match.use.last or match.candidate.timestamp)
    halved: float = 0.5 ** (days_since(last, now) / match.half_life_days)
    return max(_FADED, halved)


def fresh(moment: datetime, now: datetime) -> float:
    """1 for now, a half after ten days, less and less with time."""
    return 1.0 / (1.0 + 0.1 * days_since(moment, now))


def days_since(moment: datetime, now: datetime) -> float:
    """Days between, 0 for a moment that is still to come."""
    return max(0.0, (now - moment).total_seconds() / _SECONDS_PER_DAY)


def _same(one: object, other: object) -> bool:
    if isinstance(one, str) and isinstance(other, str):
        return one.strip().casefold() == other.strip().casefold()
    return type(one) is type(other) and one == other


_ALWAYS = text, importance, speaker, when, statement, person, covered, context, reviewers
FACTORS: Mapping[str, Factor] = {one.__name__: one for one in (*_ALWAYS, recency, week, access, pattern, fading)}
_DEFAULT = {one.__name__: 1.0 for one in _ALWAYS}
PRESETS: Mapping[str, Mapping[str, float]] = {
    "default": _DEFAULT,
    "time_weighted": {**_DEFAULT, "recency": 1.0},
    "learning": {**_DEFAULT, "week": 1.0, "access": 1.0, "pattern": 1.0},
    "fading": {**_DEFAULT, "fading": 1.0},
}
_NEEDED: Mapping[str, Callable[[QueryTerms], object]] = {
    "when": lambda asked: asked.times is not None and asked.times.dated,
    "context": lambda asked: asked.context,
    "person": lambda asked: not asks_for_summary(asked.text),  # which is of both sides of a talk
    "reviewers": lambda asked: asked.text,
}
"""What a question must name for a factor to be anything but 1."""
_IDLE: Mapping[str, tuple[Callable[[Candidate], object], object]] = {
    "importance": (attrgetter("importance"), 1.0),
    "speaker": (attrgetter("speaker"), ""),
    "statement": (attrgetter("asks"), False),
    "person": (attrgetter("sequence"), None),
    "covered": (attrgetter("sequence"), None),
}
"""By factor what must be of a candidate for it to be 1; what is of all that was found is looked at once."""
_OF_USE = frozenset({"access", "fading"})
_UNUSED: Mapping[str, Use] = MappingProxyType({})
LEARNED = "learned"
"""The factor that use taught."""


class Ranking:
    """The order of one question's answers."""

    def __init__(
        self,
        query: Query,
        weights: Mapping[str, float],
        now: datetime,
        kinds: KindTable | None = None,
        learned: UseWeights | None = None,
        asked: QueryTerms | None = None,
    ) -> None:
        """
        Args:
            weights: the exponent of each factor, by name.
            kinds: say how quickly items fade; without them none does.
            learned: what use taught, where that is to count.
            asked: what the query names, where that is known.
        """
        self._learned = learned if query.text.strip() else None
        self.asked = asked or QueryTerms.of(query, now)
        self._now = now
        idle = {name for name, needed in _NEEDED.items() if not needed(self.asked)}
        self._factors = [(name, FACTORS[name], weight) for name, weight in weights.items() if name not in idle]
        moved = {"text", *learned.weights} if learned is not None else ()
        self._moved = [row for row in self._factors if row[0] in moved]
        fades = kinds is not None and "fading" in weights
        self._half_lives = {kind.name: kind.half_life_days for kind in kinds} if kinds is not None and fades else {}
        self.counts_use = not _OF_USE.isdisjoint(weights)
        """Whether the order depends on how items were used."""

    def reasons(self, match: RankCandidate) -> dict[str, float]:
        """The factors that matter, by name, each as it counted.

        ``text`` comes with the shares it is made of, where there are any: ``neighbours``, ``session``, ``meaning`` and
        ``time``.
        """
        factors = {}
        for name, factor, weight in self._factors:
            value = factor(match, self.asked, self._now) ** weight
            if value != 1.0 or name == "text":  # a factor of 1 explains nothing, but how well the words fit does
                factors[name] = value
        if self.asked.text and match.shares is not NOTHING:
            factors |= {name: share for name, share in match.shares._asdict().items() if share}
        if self._learned is not None and (learned := self._learned.factor(match.candidate.id, factors)) != 1.0:
            factors[LEARNED] = learned
        return factors

    def ranked(self, matches: Iterable[RankCandidate], uses: Mapping[str, Use] = _UNUSED) -> list[RankedCandidate]:
        """The matches with score and reasons, best first, ties by id; where nothing was asked, in the order given.

        A score is the product of the factors, each to the power of its weight.

        Args:
            matches: what was found.
            uses: how items were used, by id; where that counts (``counts_use``).
        """
        rows, asked, now, learned = list(matches), self.asked, self._now, self._learned
        if self.counts_use:
            lives = self._half_lives
            rows = [
                one._replace(use=uses.get(one.candidate.id, NEVER), half_life_days=lives.get(one.candidate.type, 0.0))
                for one in rows
            ]
        candidates = [row.candidate for row in rows]
        idle = {name for name, (held, value) in _IDLE.items() if {*map(held, candidates)} <= {value}}
        self._factors = [row for row in self._factors if row[0] not in idle]
        scores = [1.0] * len(rows)
        for _, factor, weight in self._factors:
            values = [factor(match, asked, now) for match in rows]
            scores = [*map(mul, scores, values if weight == 1.0 else [value**weight for value in values])]
        if learned is not None:
            for place, match in enumerate(rows):
                factors = {name: factor(match, asked, now) ** weight for name, factor, weight in self._moved}
                scores[place] *= learned.factor(match.candidate.id, factors | match.shares._asdict())
        found = [*map(RankedCandidate, rows, scores, repeat(_NO_REASONS))]
        if asked.text:
            if len({*scores}) < len(scores):  # mostly some are worth the same
                found.sort(key=lambda one: one.match.candidate.id)
            found.sort(key=attrgetter("score"), reverse=True)
        order = asked.times.order if asked.times is not None else 0
        if not order or not found:
            return found
        # those that fit nearly as well as the best by their time
        fit = [one for one in found if one.score >= _AS_GOOD * found[0].score]
        timed = sorted(fit, key=lambda one: one.match.candidate.timestamp, reverse=order > 0)
        name = "latest" if order > 0 else "first"
        moved = [
            replace(one, score=place.score, reasons={**one.reasons, name: place.score / one.score})
            for one, place in zip(timed, fit, strict=True)
        ]
        return [*moved, *found[len(fit) :]]


_NO_REASONS: Mapping[str, float] = MappingProxyType({})
_NAME_LIMIT = 60


@runtime_checkable
class Strategy(Protocol):
    """A way to order the answers to a question.

    Attributes:
        weights: the exponent of each factor it uses, by the factor's name; a factor that is not named does not count.
    """

    @property
    def weights(self) -> Mapping[str, float]: ...

    def rerank(self, query: Query, ranked: Sequence[RankedCandidate]) -> Sequence[RankedCandidate]:
        """The candidates in their final order: those given, best first, perhaps fewer, perhaps with other scores."""


Rerank = Callable[[Query, Sequence[RankedCandidate]], Sequence[RankedCandidate]]


@dataclass(frozen=True, slots=True)
class WeightedStrategy:
    """A strategy made of weights, of a function over the ranked candidates, or of both."""

    weights: Mapping[str, float] = field(default_factory=lambda: PRESETS["default"])
    function: Rerank | None = None

    def rerank(self, query: Query, ranked: Sequence[RankedCandidate]) -> Sequence[RankedCandidate]:
        """See ``Strategy``."""
        return ranked if self.function is None else self.function(query, ranked)


_BUILT_IN: Mapping[str, Strategy] = {name: WeightedStrategy(weights) for name, weights in PRESETS.items()}
_registered: dict[str, Strategy] = {}


def register_strategy(name: str, strategy: Strategy | Mapping[str, float] | Rerank) -> None:
    """Give a strategy of one's own a name that ``Query.strategy`` may hold, in this process.

    Args:
        name: a name registered before gets the new strategy; those of the presets are taken.
        strategy: an object of the protocol, or only its weights, or only a function ``(query, ranked) -> ranked`` that
            orders what the default weights scored.

    Raises:
        SettingInvalid: the name is taken or none, a weight belongs to no factor, or this is not a strategy.
    """
    if not isinstance(name, str) or not name.strip() or len(name) > _NAME_LIMIT:
        raise SettingInvalid("a strategy needs a name of at most 60 characters", field="strategy", hint="name it")
    if name in _BUILT_IN:
        raise SettingInvalid(f"the strategy {name!r} is built in", field="strategy", hint="choose another name")
    made: Strategy
    if isinstance(strategy, Mapping):
        made = WeightedStrategy(dict(strategy))
    elif isinstance(strategy, Strategy) and not isinstance(strategy, type):
        made = strategy
    elif callable(strategy) and not isinstance(strategy, type):
        made = WeightedStrategy(function=strategy)
    else:
        hint = "give weights by factor, a function (query, ranked) -> ranked, or an object with both"
        raise SettingInvalid(f"this is not a strategy: {ascii(strategy)[:60]}", field="strategy", hint=hint)
    for factor, weight in made.weights.items():
        if factor not in FACTORS:
            hint = nearest(factor, FACTORS) or f"the factors are {', '.join(FACTORS)}"
            raise SettingInvalid(f"there is no factor {factor!r}", field="strategy", hint=hint)
        if not isinstance(weight, (int, float)) or isinstance(weight, bool) or not abs(weight) <= 10:
            raise SettingInvalid(f"{factor}: a weight is a number from -10 to 10", field="strategy", hint="1 is usual")
    _registered[name] = made


def unregister_strategy(name: str) -> None:
    """Take a registered strategy's name away; one that is not known is ignored."""
    _registered.pop(name, None)


def strategy_names() -> tuple[str, ...]:
    """Every name that ``Query.strategy`` may hold now."""
    return (*_BUILT_IN, *_registered)


def strategy(name: str) -> Strategy:
    """The strategy of that name.

    Raises:
        QueryInvalid: there is none; the hint names the nearest.
    """
    found = _BUILT_IN.get(name) or _registered.get(name)
    if found is None:
        known = strategy_names()
        hint = " ".join(filter(None, (nearest(name, known), f"the strategies are {', '.join(known)}")))
        raise QueryInvalid(f"there is no strategy {name!r}", field="strategy", hint=hint)
    return found


def reranked(chosen: Strategy, query: Query, ranked: Sequence[RankedCandidate]) -> list[RankedCandidate]:
    """What a strategy makes of ranked candidates.

    Raises:
        QueryInvalid: it gave something that was not given to it, or gave something twice.
    """
    if isinstance(chosen, WeightedStrategy) and chosen.function is None:
        return list(ranked)
    found = list(chosen.rerank(query, ranked))
    known = {one.match.candidate.id for one in ranked}
    ids = [one.match.candidate.id for one in found if isinstance(one, RankedCandidate)]
    if len(ids) != len(found) or len(set(ids)) != len(ids) or not known.issuperset(ids):
        hint = "rerank gives back the candidates it was given, each at most once"
        raise QueryInvalid("the strategy gave what it was not given", field="strategy", hint=hint)
    return found


# -- time-weighted ------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class TimeWeightedSearch:
    """Retrieval that mixes relevance with recency; ``search`` answers queries, as that of ``Workspace.recaller``."""

    search: Callable[[Query], Recall]
    clock: Callable[[], datetime] = utc_now

    def retrieve_time_weighted(self, query: str | Query, recency_weight: float = 0.3, limit: int = 10) -> list[Hit]:
        """The best of twice as many hits, by relevance x (1 - weight) + recency x weight.

        Relevance is the hit's score over the best hit's; recency is 1 / (1 + 0.1 x days).

        Raises:
            QueryInvalid: the weight is not between 0 and 1, or the query cannot be understood.
        """
        if not isinstance(recency_weight, (int, float)) or not 0 <= recency_weight <= 1:
            raise QueryInvalid(f"{ascii(recency_weight)[:60]} is not a weight", field="recency_weight", hint="0 to 1")
        asked = replace(query, limit=limit) if isinstance(query, Query) else Query(text=query, limit=limit)
        found = self.search(replace(asked, limit=min(2 * limit, MOST))).hits
        best = max((hit.score for hit in found), default=0.0) or 1.0
        now = self.clock()
        mixed = []
        for hit in found:
            parts = {
                "relevance": hit.score / best,
                "recency": fresh(hit.item.timestamp or hit.item.created or now, now),
            }
            score = parts["relevance"] * (1.0 - recency_weight) + parts["recency"] * recency_weight
            mixed.append(replace(hit, score=score, reasons={**hit.reasons, **parts}))
        mixed.sort(key=lambda hit: (-hit.score, hit.item.id))
        return mixed[:limit]


Mark = Callable[[MemoryItem], Hashable]
"""What items that say the same have in common; None for one that is like no other."""
_COMPARED = 200
_MISFITS = 20
_BRIEF = 600
_NEWEST = "newest"
"""The factor by which the newest version of a fact takes the place of an earlier one."""


class HitSelection:
    """Takes hits, best first, until there is no more room.

    Where there is a budget, a long content is taken with its passage alone.

    Attributes:
        hits: those that were taken.
        duplicates: id of each one that repeats a hit, with that hit's id.
        versions: id of each one that says what a hit says as it was earlier, with that hit's id.
        misfits: ids of those that had no room in the token budget.
        tokens: what the hits take together, with the frame around them where they are fenced; 0 where ``counts`` is
            false.
        counts: whether that is of interest: there is a budget, or a frame.
    """

    def __init__(
        self, query: Query, *, fenced: bool = False, mark: Mark | None = None, times: NamedTimes | None = None
    ) -> None:
        """
        Args:
            fenced: the hits will be shown as quoted data, whose overhead counts.
            mark: of items with the same mark the best one is taken, and the others repeat it.
            times: those that the query names.
        """
        self._query = query
        self._times = times
        self._mark = mark or (lambda _: None)
        self._takes_all = mark is None and not (fenced or query.deduplicate) and query.max_tokens is None
        self._marked: dict[Hashable, str] = {}
        self._frame = 0
        self.counts = fenced or query.max_tokens is not None
        if fenced:
            from memfs.recall.fence import frame  # for hits that are put before a model alone

            self._frame = count_tokens(frame())
        self._fenced = fenced
        self._shapes: list[tuple[str, TextShape, MemoryItem]] = []
        self._plain: dict[str, list[MemoryItem]] = {}
        self.hits: list[Hit] = []
        self.duplicates: dict[str, str] = {}
        self.versions: dict[str, str] = {}
        self.misfits: list[str] = []
        self.tokens = 0

    @property
    def full(self) -> bool:
        """Whether the limit is reached, or too many had no room for it to be worth looking for smaller ones."""
        return len(self.hits) >= self._query.limit or len(self.misfits) >= _MISFITS

    def offer(self, hit: Hit) -> bool:
        """Take a hit, unless it repeats one that was taken or has no room; say whether it was taken."""
        if self._takes_all:
            self.hits.append(hit)
            return True
        if self._repeats(hit.item, self._marked.get(self._mark(hit.item), "")):
            return False
        shape = TextShape(whole(hit.item)) if self._query.deduplicate else None
        if shape is not None and self._repeats(hit.item, self._repeated(shape, hit.item)):
            return False
        if shape is not None and self._joins(hit, shape):
            return False
        most = self._query.max_tokens
        if most is not None and hit.passage is not None:
            hit = replace(hit, shortened=True)
        cost = self._cost(hit) + (0 if self.hits else self._frame)
        if most is not None and self.tokens + cost > most:
            self.misfits.append(hit.item.id)
            return False
        self.hits.append(hit)
        self.tokens += cost
        self._note_mark(hit.item)
        if shape is not None:
            self._plain.setdefault(shape.plain, []).append(hit.item)
            self._shapes.append((hit.item.id, shape, hit.item))
        return True

    def join(self, hit: Hit) -> bool:
        """Take a hit for which there is no place as a version of one that was taken; say whether it is."""
        item = hit.item
        repeats = self._repeats(item, self._marked.get(self._mark(item), ""))
        return not repeats and self._joins(hit, TextShape(whole(item)))

    def _repeats(self, item: MemoryItem, taken: str) -> bool:
        """Note that an item repeats a hit, or what is now an earlier version of one; whether ``taken`` names any."""
        if taken:
            self.duplicates[item.id] = self.versions.get(taken, taken)
            if taken in self.versions:
                self.versions[item.id] = self.versions[taken]
        return bool(taken)

    def _joins(self, hit: Hit, shape: TextShape) -> bool:
        """Put a hit beneath the newest version of what it says, or in the place of earlier ones, where there are any.

        Not where the past may be asked for: earlier versions are hits then.
        """
        item = hit.item
        near = [place for place, held in enumerate(self._shapes[:_COMPARED]) if _near(item, shape, held[2], held[1])]
        if not near or self._of_past:
            return False
        from memfs.recall.versions import is_earlier, version_of  # seldom two hits are of one matter

        for place in near:
            held = self.hits[place]
            if is_earlier(item, held.item):
                extended = replace(held, earlier=_latest_first(*held.earlier, version_of(item)))
                return self._exchange([place], extended, item, [item.id], held)
        places = [place for place in near if is_earlier(self.hits[place].item, item)]
        if not places:
            return False
        earlier = [self.hits[place] for place in places]
        versions = [one for held in earlier for one in (version_of(held.item), *held.earlier)]
        best = max(hit.score, earlier[0].score)
        reasons = {**hit.reasons, _NEWEST: best / hit.score} if best > hit.score > 0 else hit.reasons
        shortened = self._query.max_tokens is not None and hit.passage is not None
        bare = replace(hit, score=best, reasons=reasons, shortened=shortened)
        newest = replace(bare, earlier=_latest_first(*versions))
        if not self._exchange(places, newest, item, [one.id for one in versions], bare):
            return False
        self._shapes[places[0]] = item.id, shape, item
        for place in reversed(places[1:]):
            del self.hits[place], self._shapes[place]
        return True

    @cached_property
    def _of_past(self) -> bool:
        """Whether the question is, or may be, about what was: it names a time, or says so."""
        text, times = self._query.text, self._times
        if not text or self._query.until is not None:
            return True
        if times is not None and (any(times[:4]) or times.order < 0):
            return True
        from memfs.recall.versions import asks_for_earlier

        return asks_for_earlier(text)

    def _exchange(self, places: Sequence[int], hit: Hit, item: MemoryItem, earlier: Sequence[str], bare: Hit) -> bool:
        """Put a hit in the first of some places and count none of the others, where the budget has room.

        Args:
            item: what is taken thereby.
            earlier: the ids of what is its earlier version from now on.
            bare: the hit without them, for a budget without room for their lines.
        """
        most = self._query.max_tokens
        rest = self.tokens - sum(self._cost(self.hits[place]) for place in places)
        for version in (hit, bare):
            tokens = rest + self._cost(version)
            if most is None or tokens <= most:
                self.tokens, self.hits[places[0]] = tokens, version
                repeats = [name for name, held in self.duplicates.items() if held in earlier]
                # of some there may be no line, for want of room
                older = [name for name, held in self.versions.items() if held in earlier]
                self.versions.update(dict.fromkeys((*earlier, *repeats, *older), hit.item.id))
                self.duplicates.update(dict.fromkeys(repeats, hit.item.id))
                self._note_mark(item)
                if version is bare:
                    self.misfits += earlier
                return True
        return False

    def _note_mark(self, item: MemoryItem) -> None:
        if (mark := self._mark(item)) is not None:
            self._marked[mark] = item.id

    def _repeated(self, shape: TextShape, item: MemoryItem) -> str:
        """The id of the hit that an item repeats, "" for none.

        Every hit is compared word by word, the best ones by likeness too: a long list costs no more than a short one.
        """
        for held in self._plain.get(shape.plain, ()):
            if _same_body(held, item):
                return held.id
        least = self._query.similarity_threshold
        for held_id, other, held in self._shapes[:_COMPARED]:
            if _same_body(held, item) and alike(shape, other, least) >= least:
                return held_id
        return ""

    def widen(self) -> None:
        """Spend what is left of the budget on whole texts in place of passages, those of the best hits first."""
        for place, hit in enumerate(self.hits):
            if hit.shortened:
                wider = replace(hit, shortened=False)
                more = self._cost(wider) - self._cost(hit)
                if self.tokens + more <= (self._query.max_tokens or 0):
                    self.hits[place] = wider
                    self.tokens += more

    def _cost(self, hit: Hit) -> int:
        if not self.counts:
            return 0
        if self._fenced:
            from memfs.recall.fence import quoted

            return count_tokens(quoted(hit) + "\n\n")
        return hit.tokens


def _near(item: MemoryItem, shape: TextShape, other: MemoryItem, held: TextShape) -> bool:
    """Whether one may be a version of the other: one names the other, or both are brief and share half their words."""
    if other.id in item.supersedes or item.id in other.supersedes:
        return True
    if any(link.to in {item.id, other.id} for link in (*item.links, *other.links)):
        return True
    shared = 2 * len(shape.counted & held.counted) if max(len(shape.text), len(held.text)) <= _BRIEF else 0
    return shared > 0 and shared >= min(len(shape.counted), len(held.counted))


def _latest_first(*versions: EarlierVersion) -> tuple[EarlierVersion, ...]:
    return tuple(sorted(versions, key=lambda one: one.timestamp.timestamp() if one.timestamp else 0.0, reverse=True))


def _same_body(one: MemoryItem, other: MemoryItem) -> bool:
    return not (one.data or other.data) or one.data == other.data


_BY_MEANING = 0.8
"""The most that a best hit gets which shares no word with the question, and was found by what it means."""


def relevance_percents(text: str, hits: Sequence[Hit]) -> list[int]:
    """How relevant each hit is, 1 to 100, in their order; nothing is said of hits where nothing was asked.

    The best hit gets the share of the question's words that it holds, each by what it is worth; the others their part
    of that, by their scores. So 100 says that a hit holds all that was asked for, and the order is that of the scores.

    Args:
        text: the question.
        hits: with the factors that made their scores.
    """
    best = max(hits, key=lambda hit: hit.score, default=None)
    if best is None or best.score <= 0 or not text.strip():
        return []
    share = 1.0
    if "time" not in best.reasons:
        words, _ = terms.shares_held(text, terms.held_terms(text, best.item))
        by_text = best.reasons.get("text", 0.0)
        meaning = best.reasons.get("meaning", 0.0) / by_text if by_text > 0 else 0.0
        share = min(1.0, max(words, _BY_MEANING * min(meaning, 1.0)))
    return [max(1, round(100 * share * max(hit.score, 0.0) / best.score)) for hit in hits]
