"""Learns from which hits are used how much the factors of a ranking and single items count.

Nothing is kept beside the record of what was handed out: the same record teaches the same. What is learned is one
bounded factor of a hit's score, for which few signals do little.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import timedelta
from math import exp, log
from types import MappingProxyType

from memfs.dataclass import dataclass
from memfs.recall.ranking import FACTORS, LEARNED
from memfs.store.access_log import MARKS, REFUSED, SCORE, AccessRecord, ServedLog, reduced

_MOST = 0.4
"""The most by which the logarithm of a score is changed: a half more, or a third less."""
_SHARES = frozenset({"neighbours", "session"})
_NAMES = _SHARES | FACTORS.keys() - {"text", "importance"}
"""What may count for more or less than it does: not the importance, which feedback changes already."""
_FURTHEST = 0.5
_STEP = 0.6
_SHARP = 4.0
_FADE = 0.99
_FAR = 50.0
_ITEM_SHARE, _ITEM_MOST = 0.3, 0.25
_ITEM_SLACK, _ANSWER_SLACK = 16, 20
_OF_ONE = 10
"""An item teaches by no more answers than that, however often it is said to be of use."""
_SHOWN = 20
_BACK = 50
_READ_WITHIN, _SAID_WITHIN = timedelta(hours=1), timedelta(days=1)
_WINDOW = 1 << 19
_PARTS = 8


@dataclass(frozen=True, slots=True)
class UseWeights:
    """What the use of hits taught.

    Attributes:
        answers: how many answers were learned from, of which something was used or refused.
        weights: by how much the exponent of each factor is moved, and what shares of the text count for more or less.
        items: by how much the logarithm of each item's score is moved.
    """

    answers: int = 0
    weights: Mapping[str, float] = MappingProxyType({})
    items: Mapping[str, float] = MappingProxyType({})

    def factor(self, item_id: str, reasons: Mapping[str, float]) -> float:
        """What an item's score is to be multiplied with.

        Args:
            reasons: the factors that made the score, as ``Hit.reasons`` has them.
        """
        moved = self.items.get(item_id, 0.0)
        for name, weight in self.weights.items():
            if name in reasons:
                moved += weight * _size(name, reasons)
        return exp(max(-_MOST, min(_MOST, moved))) if moved else 1.0


class WeightLearner:
    """Keeps what was learned from the record of one workspace as new as that. May be used from several threads."""

    def __init__(self, served: ServedLog) -> None:
        self._served = served
        self._known: tuple[int, UseWeights] | None = None

    def current(self) -> UseWeights:
        """What the record teaches; learned again where it grew by an eighth of what is read of it, or shrank."""
        size, known = self._served.size(), self._known
        if known is None or size < known[0] or (size - known[0]) * _PARTS > min(size, _WINDOW):
            self._known = known = size, learned(self._served.newest(_WINDOW))
        return known[1]


_Answer = tuple[AccessRecord, dict[str, int]]
"""An answer, and which of its items were used (1) or refused (-1)."""


def learned(rows: Iterable[AccessRecord]) -> UseWeights:
    """What a record teaches, its lines in the order of time.

    An item counts as used where it was opened within an hour by the same agent in the same session, or was corrected or
    said to have helped within a day; as refused where it was said not to. It is compared with what was shown beside it.
    """
    weights: dict[str, float] = {}
    shown: Counter[str] = Counter()
    used: Counter[str] = Counter()
    count = 0
    # the same answer to the same agent teaches once, and each item by no more than ten answers
    taught: Counter[str] = Counter()
    last = {(row.agent, row.ids, frozenset(marks.items())): (row, marks) for row, marks in _answers(rows) if marks}
    for row, marked in last.values():
        marks = {key: mark for key, mark in marked.items() if taught[key] < _OF_ONE}
        if not marks:
            continue
        taught.update(marks.keys())
        if spent := frozenset(key.casefold() for key in marked.keys() - marks.keys()):
            row = reduced(row, spent)
        count += 1
        shown.update({*row.ids[:_SHOWN], *marks})
        used.update(key for key, mark in marks.items() if mark > 0)
        shown.update(key for key, mark in marks.items() if mark < 0)
        _step(weights, row.reasons, marks)
    return UseWeights(count, weights, _items(used, shown, count))


def _answers(rows: Iterable[AccessRecord]) -> list[_Answer]:
    found: list[_Answer] = []
    for row in rows:
        if row.way == "recall":
            found.append((row, {}))
        elif row.way in MARKS or (row.way == "read" and len(row.ids) == 1):
            marks = next((marks for one, marks in found[: -_BACK - 1 : -1] if _concerns(row, one)), {})
            if row.way in MARKS:
                marks[row.ids[0]] = -1 if row.way == REFUSED else 1
            else:
                marks.setdefault(row.ids[0], 1)
    return found


def _concerns(row: AccessRecord, answer: AccessRecord) -> bool:
    """Whether what was opened, or was said of an item, is due to an answer."""
    if row.ids[0] not in answer.ids:
        return False
    if row.way in MARKS:
        return row.time - answer.time <= _SAID_WITHIN
    return row.time - answer.time <= _READ_WITHIN and (row.agent, row.session) == (answer.agent, answer.session)


def _step(weights: dict[str, float], reasons: Mapping[str, Mapping[str, float]], marks: Mapping[str, int]) -> None:
    """Move the weights a little towards ranking what was used before what was not; fade them a little."""
    known = {key: one for key, one in reasons.items() if min(one.get(SCORE, 0.0), one.get(LEARNED, 1.0)) > 0}
    pairs = [(one, other) for one in known for other in known if marks.get(one, 0) > marks.get(other, 0)]
    pull: dict[str, float] = {}
    for one, other in pairs:
        names = sorted((known[one].keys() | known[other].keys()) & _NAMES)
        apart = {name: _size(name, known[one]) - _size(name, known[other]) for name in names}
        lead = _plain(known[one]) - _plain(known[other]) + sum(weights.get(name, 0.0) * apart[name] for name in names)
        wrong = 1.0 / (1.0 + exp(min(_SHARP * lead, _FAR)))
        for name, size in apart.items():
            pull[name] = pull.get(name, 0.0) + wrong * size / len(pairs)
    for name in sorted(weights.keys() | pull.keys()):
        moved = weights.get(name, 0.0) * _FADE + _STEP * pull.get(name, 0.0)
        weights[name] = max(-_FURTHEST, min(_FURTHEST, moved))


def _plain(reasons: Mapping[str, float]) -> float:
    """The logarithm of a score without what was learned before."""
    return log(reasons[SCORE]) - log(reasons.get(LEARNED, 1.0))


def _size(name: str, reasons: Mapping[str, float]) -> float:
    """How much a weight of this name would change the logarithm of a score."""
    value = reasons.get(name)
    if value is None:
        return 0.0
    if name in _SHARES:
        return max(0.0, min(1.0, value / (reasons.get("text") or 1.0)))
    return log(value) if value > 0 else 0.0


def _items(used: Mapping[str, int], shown: Mapping[str, int], answers: int) -> dict[str, float]:
    """By how much each item that was shown is moved: by how much more often than others it was used."""
    if not answers or not (usual := sum(used.values()) / sum(shown.values())):
        return {}
    trust = _ITEM_SHARE * answers / (answers + _ANSWER_SLACK)
    found: dict[str, float] = {}
    for key, number in shown.items():
        moved = trust * log((used.get(key, 0) + _ITEM_SLACK * usual) / (number + _ITEM_SLACK) / usual)
        found[key] = max(-_ITEM_MOST, min(_ITEM_MOST, moved))
    return found
