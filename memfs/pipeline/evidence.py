"""Evidence: what episodes say for and against a rule (seed 004, P4).

Owns in which episodes a rule applied, and how sure it is by how they ended. Reads and writes nothing.

A failure in a situation in which the rule applies, with its error, speaks for it; a success without a warning speaks
against it. A success after a warning with the rule, or with one of the failures that taught it, is counted as
``helped``: it says nothing against a rule that it was heeded. Nor does the one success that mends a failure. Where
agents tell apart what they do, both hold only for those that did something else than what had failed. With each
episode that speaks for or against it, what was before counts a tenth less; with age it counts half as much after each
half-life. The confidence is ``(for + 1) / (for + against + 2)``; what helped makes up, at a quarter of its
weight, for what age took from the failures, and never adds more.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from memfs.model.episode import Outcome
from memfs.model.globs import is_wild, telling
from memfs.model.triggerrow import TriggerRow
from memfs.pipeline.situations import APPLIES, GENERIC, Asked, asked_again, fit, means, same_deed

RECENT = 0.9
"""What an episode still counts after each later one that speaks for or against the rule."""
_HELPS = 0.25
_DAY = 86_400.0
_MENDED_WITHIN = 3_600.0
_GENERIC_WORTH = 0.25
_PRIOR = 2.0
_TELLING = 2
"""From so many successes that did something else than what failed, what agents say they did tells who heeded."""
_MOST_DEEDS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What the episodes say of a rule.

    Attributes:
        confidence: how sure it is, 0 to 1.
        failures: those that speak for it, oldest first.
        against: how many successes speak against it.
        helped: how many came after a warning.
        since: how many spoke against it since it last went wrong.
        remedies: successes that mended a failure or heeded a warning, oldest first.
    """

    confidence: float
    failures: tuple[TriggerRow, ...] = ()
    against: int = 0
    helped: int = 0
    since: int = 0
    remedies: tuple[TriggerRow, ...] = field(default=(), repr=False)


@dataclass(frozen=True, slots=True)
class _Event:
    time: float
    good: bool


def worth(word: str) -> float:
    """What a term of a pattern is worth: a quarter for one that tells little."""
    return _GENERIC_WORTH if word in GENERIC else 1.0


def has_failed(row: TriggerRow) -> bool:
    """Whether something went wrong in an episode: what worked in part counts where it tells an error."""
    return row.outcome == Outcome.FAILURE.value or (row.outcome == Outcome.PARTIAL.value and bool(row.error))


class Casebook:
    """Episodes, found by the situations in which a rule applies."""

    def __init__(self, rows: Sequence[TriggerRow], *, now: float, half_life_days: float = 0.0) -> None:
        """Begin with these episodes, the oldest first.

        Args:
            now: in seconds since 1970; the newest episode that is not later than that is the present, so that the same
                episodes always say the same.
            half_life_days: after so many days an episode counts half, 0 for never.
        """
        self.rows = rows
        self._present = max((row.time for row in rows if row.time <= now), default=now)
        self._half_life = half_life_days
        self.compared = 0
        """In how many situations it was asked so far whether a rule applies."""
        self._asked: dict[int, Asked] = {}
        self._by_file: dict[str, list[int]] = {}
        self._by_word: dict[str, list[int]] = {}
        self._without_files: dict[str, list[int]] = {}
        for place, row in enumerate(rows):
            for file in row.files:
                self._by_file.setdefault(file, []).append(place)
            for word in row.words:
                self._by_word.setdefault(word, []).append(place)
                if not row.files:
                    self._without_files.setdefault(word, []).append(place)

    def cases(self, rule: TriggerRow) -> list[TriggerRow]:
        """The episodes in whose situation a rule applies, oldest first."""
        places = set(self._said(rule))
        for glob in rule.files:
            places.update(self._touching(glob))
        self.compared += len(places)
        return [self.rows[place] for place in sorted(places) if fit(self._situation(place), rule, worth)]

    def _situation(self, place: int) -> Asked:
        known = self._asked.get(place)
        if known is None:
            known = self._asked[place] = asked_again(self.rows[place])
        return known

    def _said(self, rule: TriggerRow) -> Iterable[int]:
        """Episodes that may have enough of a rule's words: of those it needs, all but so many must be there.

        Where a rule names files, words count only in a situation that names none.
        """
        holders = self._without_files if rule.files else self._by_word
        by_rarity = sorted(set(rule.words), key=lambda word: (len(holders.get(word, ())), word))
        spare = sum(map(worth, by_rarity)) * (1.0 - APPLIES)
        passed = 0.0
        for word in by_rarity:
            if passed > spare + 1e-9:
                return
            passed += worth(word)
            yield from holders.get(word, ())

    def _touching(self, glob: str) -> Iterable[int]:
        """Episodes that touched a file a glob may mean."""
        part = telling(glob if is_wild(glob) else glob.rpartition("/")[2])  # a name may be written from further up
        for file, places in self._by_file.items():
            if part in file and means(glob, file):
                yield from places

    # -- weighing -----------------------------------------------------------------------------------------------------
    def weigh(
        self,
        cases: Sequence[TriggerRow],
        speaks: Callable[[TriggerRow], bool],
        warnings: Collection[str] = (),
        stated: Mapping[str, Any] | None = None,
    ) -> Verdict:
        """What episodes say of a rule.

        Args:
            cases: those in which it applied, oldest first.
            speaks: whether a failure is what the rule is about.
            warnings: ids with which an agent is warned of it, besides those of the failures themselves.
            stated: what its author said before: the figures begin there.
        """
        sheet = _entered(cases, speaks, _Sheet(set(warnings)))
        if sum(bool(row.deeds) and not sheet.did(row) for row in sheet.remedies) >= _TELLING:
            sheet = _entered(cases, speaks, _Sheet(set(warnings), strict=True))
        return Verdict(
            confidence=self._confidence(sheet, stated),
            failures=tuple(sheet.failures),
            against=sum(event.good for event in sheet.events),
            helped=len(sheet.helped),
            since=sheet.since,
            remedies=tuple(sheet.remedies),
        )

    def _confidence(self, sheet: _Sheet, stated: Mapping[str, Any] | None) -> float:
        fors = unaged = against = 0.0
        recent = 1.0
        for event in reversed(sheet.events):
            weight = recent * self._faded(event.time)
            if event.good:
                against += weight
            else:
                fors, unaged = fors + weight, unaged + recent
            recent *= RECENT
        heeded = sum(map(self._faded, sheet.helped))
        fors += min(_HELPS * heeded, unaged - fors)
        prior, strength = 0.5, _PRIOR
        if stated is not None:
            prior = float(stated["confidence"])
            strength += int(stated.get("support", 0)) + int(stated.get("against", 0))
        return round((fors + prior * strength) / (fors + against + strength), 2)

    def _faded(self, time: float) -> float:
        if not self._half_life:
            return 1.0
        return float(0.5 ** (max(self._present - time, 0.0) / (self._half_life * _DAY)))


class _Sheet:
    """Where episodes are entered, one after another.

    ``strict``: what an agent says it did tells whether it heeded a warning.
    """

    def __init__(self, warnings: set[str], strict: bool = False) -> None:
        self._warnings = warnings
        self._strict = strict
        self._open: TriggerRow | None = None
        self._deeds: dict[tuple[str, ...], TriggerRow] = {}
        self.events: list[_Event] = []
        self.failures: list[TriggerRow] = []
        self.helped: list[float] = []
        self.remedies: list[TriggerRow] = []
        self.since = 0

    def fail(self, row: TriggerRow) -> None:
        self.events.append(_Event(row.time, good=False))
        self.failures.append(row)
        self._warnings.add(row.id)
        if row.deeds and len(self._deeds) < _MOST_DEEDS:
            self._deeds.setdefault(row.deeds, row)
        self._open, self.since = row, 0

    def succeed(self, row: TriggerRow) -> None:
        failed, self._open = self._open, None
        warned = not self._warnings.isdisjoint(row.warned)
        again = self._strict and self.did(row)
        if again or not (warned or (failed is not None and _mends(failed, row))):
            self.events.append(_Event(row.time, good=True))
            self.since += 1
            return
        self.remedies.append(row)
        if warned:
            self.helped.append(row.time)

    def did(self, row: TriggerRow) -> bool:
        """Whether an agent did what had failed before."""
        return bool(row.deeds) and any(same_deed(failed, row) for failed in self._deeds.values())


def _entered(cases: Iterable[TriggerRow], speaks: Callable[[TriggerRow], bool], sheet: _Sheet) -> _Sheet:
    for row in cases:
        if has_failed(row):
            if speaks(row):
                sheet.fail(row)
        elif row.outcome == Outcome.SUCCESS.value:
            sheet.succeed(row)
    return sheet


def _mends(failed: TriggerRow, row: TriggerRow) -> bool:
    """Whether a success is the next try at what has just failed."""
    if failed.task and row.task:
        return failed.task == row.task and failed.session == row.session
    if failed.session and row.session:
        return failed.session == row.session
    return row.time - failed.time <= _MENDED_WITHIN
