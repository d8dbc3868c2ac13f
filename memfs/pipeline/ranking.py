"""Ranking: one score from named factors.

Owns the factors and the presets that weigh them. A factor sees a match, the question and the time; it opens no file.
The sizes of the factors were chosen in ``benchmarks/retrieval``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from math import log1p
from typing import Any

from memfs.errors import SettingInvalid
from memfs.model import Candidate, KindTable, Query
from memfs.model.kinds import nearest
from memfs.pipeline.talk import ASSISTANTS, NOTHING, Shares
from memfs.usage import NEVER, Use

_SECONDS_PER_DAY = 86400.0
_SPEAKER_NAMED = 1.25
_TIME_NAMED = 1.4
_ASKS = 0.75
_ASSISTANT = 0.6
_CONTEXT_SHARED = 1.5
_PATTERN = 1.3
_WEEK_HOURS = 168.0
_WEEK_FLOOR = 0.5
_FADED = 0.5
_LEAST = 1e-9
_MONTHS = tuple(
    "january february march april may june july august september october november december".split()  # noqa: SIM905
)
_VERBS = frozenset({"march", "may"})
_WORD = re.compile(r"\w+")
_YEAR = re.compile(r"(?:19|20)\d\d")


@dataclass(frozen=True, slots=True)
class Match:
    """A candidate, and what is known of it besides.

    Attributes:
        shares: what it gained from the talk around it.
        use: how often it was brought back, and when last.
        half_life_days: of its kind; 0 for one that does not fade.
    """

    candidate: Candidate
    shares: Shares = NOTHING
    use: Use = NEVER
    half_life_days: float = 0.0


@dataclass(frozen=True, slots=True)
class Ranked:
    """A match with its score and the factors that made it."""

    match: Match
    score: float
    reasons: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Asked:
    """What a question names, read once.

    Attributes:
        text: whether anything was asked in words.
        words: its words in lower case.
        months, years: numbers of the months and years it names.
        context: the circumstances it is asked in.
    """

    text: bool
    words: frozenset[str]
    months: frozenset[int]
    years: frozenset[int]
    context: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, query: Query) -> Asked:
        """What a query names."""
        written = _WORD.findall(query.text)
        words = frozenset(word.lower() for word in written)
        # "may" and "march" are months where they are written like names
        named = {word.lower() for word in written if word[0].isupper()} | (words - _VERBS)
        return cls(
            text=bool(query.text.strip()),
            words=words,
            months=frozenset(number for number, name in enumerate(_MONTHS, 1) if name in named),
            years=frozenset(int(word) for word in words if _YEAR.fullmatch(word)),
            context=query.context,
        )


Factor = Callable[[Match, Asked, datetime], float]


def text(match: Match, asked: Asked, now: datetime) -> float:  # noqa: ARG001  every factor has one signature
    """How well the words match, in the item and in the talk around it; 1 where nothing was asked."""
    if not asked.text:
        return 1.0
    shares = match.shares
    # a factor below nothing would turn the order round
    return max(_LEAST, match.candidate.similarity + shares.neighbours + shares.session + shares.meaning)


def importance(match: Match, asked: Asked, now: datetime) -> float:  # noqa: ARG001
    """The weight a person or feedback gave the item."""
    return max(match.candidate.importance, 0.01)


def speaker(match: Match, asked: Asked, now: datetime) -> float:  # noqa: ARG001
    """More where the question names who said it, by the first name or any longer part of it."""
    name = _WORD.findall(match.candidate.speaker.lower())
    return _SPEAKER_NAMED if name and name[0] in asked.words else 1.0


def when(match: Match, asked: Asked, now: datetime) -> float:  # noqa: ARG001
    """More where the question names the month or year it happened in."""
    if not asked.months and not asked.years:
        return 1.0
    moment = match.candidate.timestamp
    fits = (not asked.months or moment.month in asked.months) and (not asked.years or moment.year in asked.years)
    return _TIME_NAMED if fits else 1.0


def statement(match: Match, asked: Asked, now: datetime) -> float:  # noqa: ARG001
    """Less for a question: what answers one is seldom another one."""
    return _ASKS if asked.text and match.candidate.asks else 1.0


def person(match: Match, asked: Asked, now: datetime) -> float:  # noqa: ARG001
    """Less for what an assistant said in a talk: people's words are what is to be remembered."""
    one = match.candidate
    return _ASSISTANT if asked.text and one.sequence is not None and one.role in ASSISTANTS else 1.0


def recency(match: Match, asked: Asked, now: datetime) -> float:  # noqa: ARG001
    """1 for now, falling to a half after ten days (seed 003: 1 / (1 + 0.1 x days))."""
    return fresh(match.candidate.timestamp, now)


def week(match: Match, asked: Asked, now: datetime) -> float:  # noqa: ARG001
    """1 for now, falling evenly to a half and never lower (seed 002: max(0.5, 1 - hours / 168))."""
    return max(_WEEK_FLOOR, 1.0 - 24.0 * days_since(match.candidate.timestamp, now) / _WEEK_HOURS)


def access(match: Match, asked: Asked, now: datetime) -> float:  # noqa: ARG001
    """More for what was brought back before; 1 for what never was (M1)."""
    return 1.0 + log1p(match.use.count) / 10.0


def context(match: Match, asked: Asked, now: datetime) -> float:  # noqa: ARG001
    """More where the question is asked in circumstances of which the item has one, by key and value (M1)."""
    held = match.candidate.context
    shared = any(key in held and _same(held[key], value) for key, value in asked.context.items())
    return _CONTEXT_SHARED if shared else 1.0


def pattern(match: Match, asked: Asked, now: datetime) -> float:  # noqa: ARG001
    """More for what holds for several memories (M1)."""
    return _PATTERN if match.candidate.type == "pattern" else 1.0


def fading(match: Match, asked: Asked, now: datetime) -> float:  # noqa: ARG001
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


FACTORS: Mapping[str, Factor] = {
    "text": text,
    "importance": importance,
    "speaker": speaker,
    "when": when,
    "statement": statement,
    "person": person,
    "context": context,
    "recency": recency,
    "week": week,
    "access": access,
    "pattern": pattern,
    "fading": fading,
}
_DEFAULT = dict.fromkeys(("text", "importance", "speaker", "when", "statement", "person", "context"), 1.0)
PRESETS: Mapping[str, Mapping[str, float]] = {
    "default": _DEFAULT,
    "time_weighted": {**_DEFAULT, "recency": 1.0},
    "learning": {**_DEFAULT, "week": 1.0, "access": 1.0, "pattern": 1.0},
    "fading": {**_DEFAULT, "fading": 1.0},
}
_OF_USE = frozenset({"access", "fading"})
# These two are told whatever they are; a factor of 1 explains nothing.
_ALWAYS_TOLD = frozenset({"text", "importance"})
_SHARES = ("neighbours", "session", "meaning")


def preset(name: str) -> Mapping[str, float]:
    """The exponents of a preset, by factor.

    Raises:
        SettingInvalid: no such preset; the hint names the nearest.
    """
    if name not in PRESETS:
        hint = nearest(name, PRESETS) or "known: " + ", ".join(PRESETS)
        raise SettingInvalid(f"unknown ranking preset {name!r}", field="recall.preset", hint=hint)
    return PRESETS[name]


class Ranking:
    """The order of one question's answers."""

    def __init__(
        self, query: Query, weights: Mapping[str, float], now: datetime, kinds: KindTable | None = None
    ) -> None:
        """
        Args:
            weights: the exponent of each factor, by name.
            kinds: say how quickly items fade; without them none does.
        """
        self.asked = Asked.of(query)
        self._now = now
        self._factors = [(name, FACTORS[name], weight) for name, weight in weights.items()]
        fades = kinds is not None and "fading" in weights
        self._half_lives = {kind.name: kind.half_life_days for kind in kinds} if kinds is not None and fades else {}
        self.counts_use = not _OF_USE.isdisjoint(weights)
        """Whether the order depends on how items were used."""

    def completed(self, matches: Iterable[Match], uses: Mapping[str, Use]) -> list[Match]:
        """The matches with what the factors of use and fading need to know of them."""
        if not self.counts_use:
            return list(matches)
        return [
            replace(
                match,
                use=uses.get(match.candidate.id, NEVER),
                half_life_days=self._half_lives.get(match.candidate.type, 0.0),
            )
            for match in matches
        ]

    def score(self, match: Match) -> float:
        """The product of the factors, each to the power of its weight."""
        product = 1.0
        for _, factor, weight in self._factors:
            value = factor(match, self.asked, self._now)
            product *= value if weight == 1.0 else value**weight
        return product

    def reasons(self, match: Match) -> dict[str, float]:
        """The factors that matter, by name, each as it counted.

        ``text`` comes with the shares it is made of, where there are any: ``neighbours``, ``session`` and ``meaning``.
        """
        told = {}
        for name, factor, weight in self._factors:
            value = factor(match, self.asked, self._now) ** weight
            if value != 1.0 or name in _ALWAYS_TOLD:
                told[name] = value
        if self.asked.text:
            told |= {name: share for name in _SHARES if (share := getattr(match.shares, name))}
        return told

    def ranked(self, matches: Iterable[Match]) -> list[Ranked]:
        """The matches with score and reasons, best first, ties by id; where nothing was asked, in the order given."""
        found = [Ranked(match, self.score(match)) for match in matches]
        if self.asked.text:
            found.sort(key=lambda one: (-one.score, one.match.candidate.id))
        return found
