"""Ranking: one score from named factors.

Owns the factors and the presets that weigh them. A factor sees a match, the question and the time; it opens no file.
The sizes of the factors were chosen in ``benchmarks/retrieval``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime

from memfs.errors import SettingInvalid
from memfs.model import Candidate, Query
from memfs.model.kinds import nearest
from memfs.pipeline.talk import ASSISTANTS, NOTHING, Shares

_SECONDS_PER_DAY = 86400.0
_SPEAKER_NAMED = 1.25
_TIME_NAMED = 1.4
_ASKS = 0.75
_ASSISTANT = 0.6
_MONTHS = tuple(
    "january february march april may june july august september october november december".split()  # noqa: SIM905
)
_VERBS = frozenset({"march", "may"})
_WORD = re.compile(r"\w+")
_YEAR = re.compile(r"(?:19|20)\d\d")


@dataclass(frozen=True, slots=True)
class Match:
    """A candidate and what it gained from the talk around it."""

    candidate: Candidate
    shares: Shares = NOTHING


@dataclass(frozen=True, slots=True)
class Asked:
    """What a question names, read once.

    Attributes:
        text: whether anything was asked in words.
        words: its words in lower case.
        months, years: numbers of the months and years it names.
    """

    text: bool
    words: frozenset[str]
    months: frozenset[int]
    years: frozenset[int]

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
        )


Factor = Callable[[Match, Asked, datetime], float]


def text(match: Match, asked: Asked, now: datetime) -> float:  # noqa: ARG001  every factor has one signature
    """How well the words match, in the item and in the talk around it; 1 where nothing was asked."""
    if not asked.text:
        return 1.0
    return match.candidate.similarity + match.shares.neighbours + match.shares.session


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
    days = max(0.0, (now - match.candidate.timestamp).total_seconds() / _SECONDS_PER_DAY)
    return 1.0 / (1.0 + 0.1 * days)


FACTORS: Mapping[str, Factor] = {
    "text": text,
    "importance": importance,
    "speaker": speaker,
    "when": when,
    "statement": statement,
    "person": person,
    "recency": recency,
}
_DEFAULT = {"text": 1.0, "importance": 1.0, "speaker": 1.0, "when": 1.0, "statement": 1.0, "person": 1.0}
PRESETS: Mapping[str, Mapping[str, float]] = {
    "default": _DEFAULT,
    "time_weighted": {**_DEFAULT, "recency": 1.0},
}
# These two are told whatever they are; a factor of 1 explains nothing.
_ALWAYS_TOLD = frozenset({"text", "importance"})


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

    def __init__(self, query: Query, weights: Mapping[str, float], now: datetime) -> None:
        """``weights``: the exponent of each factor, by name."""
        self.asked = Asked.of(query)
        self._now = now
        self._factors = [(FACTORS[name], weight) for name, weight in weights.items()]
        self._names = list(weights)

    def score(self, match: Match) -> float:
        """The product of the factors, each to the power of its weight."""
        product = 1.0
        for factor, weight in self._factors:
            value = factor(match, self.asked, self._now)
            product *= value if weight == 1.0 else value**weight
        return product

    def reasons(self, match: Match) -> dict[str, float]:
        """The values of the factors that matter, by name.

        ``text`` comes with the shares it is made of, where there are any: ``neighbours`` and ``session``.
        """
        values = {name: FACTORS[name](match, self.asked, self._now) for name in self._names}
        told = {name: value for name, value in values.items() if name in _ALWAYS_TOLD or value != 1.0}
        if self.asked.text:
            told |= {name: share for name in ("neighbours", "session") if (share := getattr(match.shares, name))}
        return told
