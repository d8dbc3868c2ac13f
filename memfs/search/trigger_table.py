"""Finds the episodes and rules that a situation could concern, by file, word and tool, in memory.

The cost does not grow with rows that have nothing to do with the situation.
"""

from __future__ import annotations

import heapq
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import log
from typing import Any

from memfs.model.episode import RULE, TriggerRow
from memfs.model.item import BY_TRUST, trust_rank
from memfs.model.rule import is_wild

_PRIOR = 5.0
_GENERIC_SHARE = 0.25
_REDO_AT = 1.25
_MOST_PER_FILE = 300
_MOST_CANDIDATES = 400
_MOST_RULES = 1_000
_SETTLE_AT = 1.5
_WITHIN = 0.2  # rules apply from a third on; less, for what words are worth changes
_CHEAP = 8
_DEEPEST = 32
_LAST_SIGN = re.compile(r".*[*?\]]", re.DOTALL)
_FAILURE = "failure"


class Pool:
    """Rows of one sort. Places are given once; what is removed leaves its place empty."""

    def __init__(self) -> None:
        self.rows: list[TriggerRow | None] = []
        self.words: dict[str, list[int]] = {}
        self.names: dict[str, list[int]] = {}
        self.empty = 0

    def __len__(self) -> int:
        return len(self.rows) - self.empty

    def add(self, row: TriggerRow, words: Iterable[str], names: Iterable[str]) -> int:
        """Add a row that is found by these words and names; return its place."""
        place = len(self.rows)
        self.rows.append(row)
        for word in words:
            self.words.setdefault(word, []).append(place)
        for name in names:
            self.names.setdefault(name, []).append(place)
        return place

    def remove(self, place: int) -> None:
        """Forget a row."""
        self.rows[place] = None
        self.empty += 1

    def named(self, names: Iterable[str], most: int = _MOST_PER_FILE) -> Iterator[int]:
        """Places of rows with these names, of each name the ones added last."""
        for name in names:
            yield from self.names.get(name, ())[-most:]


class TriggerTable:
    """The rows. Not safe for several threads: the holder sees to that.

    ``changes`` rises whenever a row comes or goes.
    """

    def __init__(self, generic: frozenset[str]) -> None:
        """``generic``: terms that tell little."""
        self._generic = generic
        self.failures, self.others, self.rules = Pool(), Pool(), Pool()
        self._where: dict[str, tuple[Pool, int]] = {}
        self._worths: dict[str, float] = {}
        self._counted = self._settled = 0
        self._filling = False
        self._replaced: Counter[tuple[str, int]] = Counter()
        self.changes = 0

    def __len__(self) -> int:
        return len(self._where)

    def __iter__(self) -> Iterator[TriggerRow]:
        for pool, place in self._where.values():
            row = pool.rows[place]
            if row is not None:
                yield row

    @property
    def wasteful(self) -> bool:
        """Whether most places are empty, so that it should be rebuilt."""
        empty = self.failures.empty + self.others.empty + self.rules.empty
        return empty > 1_000 and empty > len(self._where)

    def put(self, row: TriggerRow) -> None:
        """Add a row in place of what its file had; none of an item that is neither an episode nor a rule."""
        self.remove(row.path)
        if not row.sort:
            return
        words: Iterable[str]
        if row.sort == RULE:
            pool = self.rules
            words, names = ((), set()) if self._filling else (self._telling(row), rule_names(row))  # else once settled
        else:
            pool = self.failures if row.outcome == _FAILURE else self.others
            names = {file.rpartition("/")[2] for file in row.files}
            words = dict.fromkeys((*row.words, *row.deeds))
        self._where[row.path] = pool, pool.add(row, words, names)
        if self._counted * _REDO_AT < len(self._where) or self._counted > len(self._where) * _REDO_AT:
            self._worths.clear()
            self._counted = len(self._where)
        if len(self._where) > self._settled * _SETTLE_AT and not self._filling:
            self.settle()
        for one in row.supersedes:
            self._replaced[one, trust_rank(row.trust)] += 1

    def fill(self, rows: Iterable[TriggerRow]) -> None:
        """Add many rows."""
        self._filling = True
        for row in rows:
            self.put(row)
        self._filling = False
        self.settle()

    def settle(self) -> None:
        """Choose the words by which rules are found again: what words are worth has changed since."""
        self._worths.clear()
        self._settled = len(self._where)
        before, self.rules = self.rules, Pool()
        for row in before.rows:
            if row is not None:
                self._where[row.path] = self.rules, self.rules.add(row, self._telling(row), rule_names(row))

    def remove(self, path: str) -> None:
        """Forget the row of a file; one that is not known is passed over."""
        self.changes += 1
        pool, place = self._where.pop(path, (self.failures, -1))
        if place < 0:
            return
        row = pool.rows[place]
        pool.remove(place)
        if row is not None:
            for one in row.supersedes:
                self._replaced[one, trust_rank(row.trust)] -= 1

    def replaced(self, row: TriggerRow) -> bool:
        """Whether another row says that it replaces this one, and is vouched for as well: no tool silences a person."""
        return any(self._replaced[row.id, level] for level in range(trust_rank(row.trust), len(BY_TRUST)))

    # -- words ------------------------------------------------------------------------------------------------------
    def worth(self, word: str) -> float:
        """What a term is worth: the logarithm of how few rows have it; a quarter of that for one that tells little."""
        known = self._worths.get(word)
        if known is not None:
            return known
        held = sum(len(pool.words.get(word, ())) for pool in (self.failures, self.others, self.rules))
        found = log(1.0 + (self._counted + _PRIOR) / (held + 0.5))
        self._worths[word] = found = found * _GENERIC_SHARE if word in self._generic else found
        return found

    def _telling(self, rule: TriggerRow) -> list[str]:
        """The rule's words by which it is found: a situation that has enough of all of them has one of these."""
        by_worth = sorted([(self.worth(word), word) for word in rule.words], reverse=True)
        rest = sum([weight for weight, _ in by_worth])
        least = _WITHIN * rest
        chosen = []
        for weight, word in by_worth:
            if rest < least:
                break
            chosen.append(word)
            rest -= weight
        return chosen

    # -- candidates -------------------------------------------------------------------------------------------------
    def candidates(
        self, pool: Pool, names: Iterable[str], weights: Mapping[str, float], share: float, most: int = _MOST_CANDIDATES
    ) -> list[TriggerRow]:
        """Rows of a pool that have one of the file names, or words worth so great a share of all that are given.

        Args:
            weights: what each word is worth.
            most: so many at most, the ones added last.
        """
        places = set(pool.named(names))
        places.update(_sharing(pool, weights, share))
        newest = heapq.nlargest(most, places) if len(places) > most else places
        return [row for place in newest if (row := pool.rows[place]) is not None]

    def applying(self, files: Sequence[str], words: Sequence[str], tool: str) -> Iterator[TriggerRow]:
        """The rules that may apply: by file, by telling word, by tool; of more than 1,000 the ones added last."""
        names = [name for file in files for name in file_keys(file)]
        places = set(self.rules.named((*names, f"tool {tool}"), most=2_000))
        for word in words:
            places.update(self.rules.words.get(word, ()))
        newest = heapq.nlargest(_MOST_RULES, places) if len(places) > _MOST_RULES else places
        return (row for row in map(self.rules.rows.__getitem__, newest) if row is not None)


def _sharing(pool: Pool, weights: Mapping[str, float], share: float) -> list[int]:
    """Places of rows whose words may be worth the share; of words that many have, only where it costs little to ask."""
    rest = sum(weights.values())
    least = share * rest
    reached: dict[int, float] = {}
    asked = [(weight, pool.words.get(word, [])) for word, weight in weights.items()]
    for weight, places in sorted(asked, key=lambda pair: len(pair[1])):
        # Rarest first: what shares none of the words up to here cannot reach the least any more.
        if rest >= least:
            for place in places:
                reached[place] = reached.get(place, 0.0) + weight
        elif len(places) < _CHEAP * len(reached):
            for place in reached.keys() & places:
                reached[place] += weight
        else:
            least -= weight  # not counted: a row that comes near enough is looked at closely
        rest -= weight
    return [place for place, weight in reached.items() if weight >= least - 1e-9]


def file_keys(file: str) -> set[str]:
    """The names under which rules for a file, or for a folder that holds it, are kept."""
    names = file.split("/")[-_DEEPEST:]
    return {"*", *names, *(f"*{_ending(name)}" for name in names)}


def rule_names(rule: TriggerRow) -> set[str]:
    """The names under which a rule is kept: of its files, or of its tool where it has nothing else."""
    if not rule.files:
        return {f"tool {rule.tool.casefold()}"} if rule.tool and not rule.words else set()
    globs = (glob for glob in rule.files if not rule.words or not is_wild(glob))
    return {key for glob in globs for key in _glob_keys(glob)}


def _glob_keys(glob: str) -> set[str]:
    """The name that a glob ends in, or where that has a wildcard its ending; both where brackets may be either."""
    name = glob.rstrip("/").rpartition("/")[2]
    wild, brackets = is_wild(name), "[" in name
    keys = set() if wild and not brackets else {name}
    return keys | {f"*{_ending(_LAST_SIGN.sub('', name))}"} if wild or brackets else keys


def _ending(name: str) -> str:
    return name[name.rfind(".") :] if "." in name else ""


# -- as a fact ------------------------------------------------------------------------------------------------------
_LISTS = {"files", "warned", "supersedes"}
_TERMS = {"words", "deeds"}
_PLACES = {name: place for place, name in enumerate(TriggerRow._fields)}
_LIST_PLACES = sorted(_PLACES[name] for name in _LISTS)
_SORTS = tuple(map(type, TriggerRow(id="", path="", blob="", sort="")))
_TERM_PLACES = sorted(_PLACES[name] for name in _TERMS)
_DECIDED, _ASKED = _PLACES["sort"], _PLACES["similarity"]


def packed(row: TriggerRow) -> str:
    """What the bytes of a row's file decide of it, as JSON: all but the first three fields and the last."""
    values: list[Any] = list(row)
    for place in _TERM_PLACES:
        values[place] = " ".join(values[place])
    return json.dumps(values[_DECIDED:_ASKED], separators=(",", ":"))


def unpacked(id: str, path: str, blob: str, fact: Any, known: dict[str, str]) -> TriggerRow:  # noqa: A002
    """The row of a file again; equal words of all rows are one text in memory.

    Args:
        known: the words of the rows before.

    Raises:
        ValueError, TypeError, LookupError: the fact holds something else.
    """
    values: list[Any] = [id, path, blob, *fact, 0.0]
    for place in _LIST_PLACES:
        values[place] = tuple(values[place])
    for place in _TERM_PLACES:
        words = str(values[place]).split(" ") if values[place] else []
        values[place] = tuple(map(known.setdefault, words, words))
    if tuple(map(type, values)) != _SORTS:
        raise ValueError("a row is damaged")
    return TriggerRow._make(values)
