"""Weighs the terms of a query, and computes the BM25 factors, the same for every engine.

Words that people say about anything weigh half, a repeated word weighs more but not in proportion, and a word that
nothing holds is replaced by those one typing error away. In a transcript each turn weighs a little less than the next,
an assistant's half of a person's. The English term of a word in another language weighs a quarter of the one that it
has there; a few words without a language are also asked for as the languages of what is searched have them, at half.
Measured in ``benchmarks/retrieval``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, KeysView, Mapping, Sequence
from functools import cache, lru_cache
from itertools import pairwise
from math import log
from pathlib import Path

from memfs.dataclass import NamedTuple, dataclass, field
from memfs.model import MemoryItem
from memfs.resources import word_lists
from memfs.search import analyzer
from memfs.startup import Generic, TypeVar, regex


@dataclass(frozen=True, slots=True, kw_only=True)
class TermStatistics:
    """What BM25 needs to know of a collection.

    Attributes:
        passages: how many passages its items have together.
        average_length: mean number of terms of a passage.
        frequencies: for each asked term, in how many passages it occurs.
        groups: of terms that stand for one another, the name of their group: of those a passage has, the best counts.
    """

    passages: int
    average_length: float
    frequencies: Mapping[str, int]
    groups: Mapping[str, str] = field(default_factory=dict)


Asked = tuple[Mapping[str, float], TermStatistics]
"""What a query's terms are worth, and their statistics over all that is asked together."""

MAX_TERMS = 128
COMMON_WEIGHT = 0.5
DENIAL_WEIGHT = 0.25
ASSISTANT_WEIGHT = 0.5
SLIP_WEIGHT = 0.5
OTHER_WEIGHT = 0.25
GUESS_WEIGHT = 0.5
RELATED_WEIGHT = 0.5

_SHORTEST_SLIP = 5
_SLIPS = 3
_EARLIER_WEIGHT = 0.9
"""What a turn of a transcript counts, of the one after it."""
_SPEAKER = regex(r"(?m)^[^\S\n]*([^\W\d_][\w .-]{0,30}?)[^\S\n]*:\s")
_ASSISTANTS, _NAMELESS = (frozenset(word_lists()["speakers"][name].split()) for name in ("assistants", "nameless"))
COMMON_WORDS = frozenset(word_lists()["talk"].split())
"""Words of talk that narrow nothing down. They are searched for, as they may be all that was said."""
_DENIALS = frozenset(("never", "no", "nobody", "none", "nor", "not", "nothing", "without"))
"""What is denied is looked for in texts: these words alone are in many that deny something else."""


@cache
def generic_terms() -> frozenset[str]:
    """Terms that most steps of an agent have, and that say little about its subject."""
    return frozenset(analyzer.terms(word_lists()["steps"]))


@lru_cache(maxsize=64)  # the search, the reviewers and what shows passages ask for those of one question
def weights(text: str) -> Mapping[str, float]:
    """The distinct terms a question asks for with what each is worth, in order: the first 128, of a transcript the
    latest; empty without a word.
    """
    found: dict[str, float] = {}
    codes = analyzer.languages(text)
    for turn in reversed(turns(text)):
        for word in analyzer.words(turn.text, codes):
            plain, share = word.text.casefold(), turn.worth
            if plain in _DENIALS or plain in COMMON_WORDS:
                share *= DENIAL_WEIGHT if plain in _DENIALS else COMMON_WEIGHT
            for terms, part in ((word.terms, share), (word.others, share * OTHER_WEIGHT)):
                for term in terms:
                    if term in found or len(found) < MAX_TERMS:
                        found[term] = found.get(term, 0.0) + part
    if not found:
        return dict.fromkeys(analyzer.terms(text)[:MAX_TERMS], 1.0)
    return {term: 1.0 + log(weight) if weight > 1.0 else weight for term, weight in found.items()}


def english_terms(text: str) -> frozenset[str]:
    """The English terms that a question in another language asks for, beside its own.

    Mostly nothing holds them, which makes them no slips.
    """
    codes = analyzer.languages(text)
    return frozenset(term for word in analyzer.words(text, codes) for term in word.others) if codes else frozenset()


def marks(text: str) -> Mapping[str, str]:
    """The marks of the languages that a question of a few words may be in, with their codes; none for any other."""
    return analyzer.language_marks() if analyzer.has_no_language(text) else {}


def guesses(text: str, codes: Collection[str]) -> Mapping[str, float]:
    """The stems that a question's words have if it is in one of some languages, with what each is worth."""
    found = analyzer.in_languages(text, codes).values()
    return dict.fromkeys((stem for stems in found for stem in stems), GUESS_WEIGHT)


def held_terms(text: str, item: MemoryItem) -> frozenset[str]:
    """The terms that an item has, and those of a question's words that it has in another form of its own language."""
    held = {term for passage in analyzer.passage_terms(item) for field in passage for term in field}
    codes = [code for mark, code in analyzer.language_marks().items() if mark in held]
    for token, stems in analyzer.in_languages(text, codes).items() if codes else ():
        if not held.isdisjoint(stems):
            held.update(term for _, found in analyzer.tokens(token) for term in found)
    return frozenset(held)


@lru_cache(maxsize=1024)
def shares_held(text: str, held: frozenset[str]) -> tuple[float, float]:
    """How much of a question some terms are: of what its terms are worth, and of the pairs of neighbours among them."""
    worth = weights(text)
    pairs = [*pairwise(worth)] or [*zip(worth, worth, strict=True)]
    words = sum([share for term, share in worth.items() if term in held])
    beside = sum([one in held and other in held for one, other in pairs])
    return words / (sum(worth.values()) or 1.0), beside / (len(pairs) or 1)


def misspellings(term: str, known: Iterable[str]) -> list[str]:
    """Those of the known terms that are one slip of the finger away from a longer term: at most three, in order."""
    if len(term) < _SHORTEST_SLIP or not term.isalpha():
        return []
    return sorted(other for other in known if abs(len(other) - len(term)) <= 1 and _one_slip(term, other))[:_SLIPS]


def _one_slip(one: str, other: str) -> bool:
    """Whether one letter is missing, too many, another one, or has changed places with its neighbour."""
    start = 0
    while start < min(len(one), len(other)) and one[start] == other[start]:
        start += 1
    left, right = one[start:], other[start:]
    while left and right and left[-1] == right[-1]:
        left, right = left[:-1], right[:-1]
    return (len(left) <= 1 and len(right) <= 1) or (len(left) == 2 and left == right[::-1])


@cache
def _senses() -> bytes:
    """A line for each English stem: those of words that are used alike, each with how nearly, in tenths."""
    return Path(__file__).with_name("related.txt").read_bytes()


def related(text: str, worth: Mapping[str, float]) -> Mapping[str, tuple[str, float]]:
    """The terms that mean nearly what those of an English question do: which each represents, and what it is worth."""
    found: dict[str, tuple[str, float]] = {}
    for term, share in worth.items() if not analyzer.languages(text) else ():
        if (start := _senses().find(f"\n{term} ".encode())) < 0:
            continue
        for near in _senses()[start + 1 : _senses().index(b"\n", start + 1)].decode().split()[1:]:
            part = share * RELATED_WEIGHT * int(near[-1]) / 10
            if near[:-1] not in worth and part > found.get(near[:-1], ("", 0.0))[1]:
                found[near[:-1]] = term, part
    return found


class Turn(NamedTuple):
    """What was said in one go, who said it, and what it counts beside the rest."""

    text: str
    speaker: str = ""
    worth: float = 1.0


def turns(text: str) -> Sequence[Turn]:
    """The turns of a transcript, in which someone speaks more than once, or an assistant; any other text as one."""
    found = list(_SPEAKER.finditer(text)) if ":" in text else []
    speakers = [one[1].casefold() for one in found]
    if len(found) < 2 or (len({*speakers}) == len(found) and _ASSISTANTS.isdisjoint(speakers)):
        return [Turn(text)]
    starts = [0, *(one.start() for one in found[1:]), len(text)]
    return [
        Turn(
            text[start:end],
            speaker,
            _EARLIER_WEIGHT ** (len(found) - place) * (ASSISTANT_WEIGHT if speaker in _ASSISTANTS else 1.0),
        )
        for place, (speaker, (start, end)) in enumerate(zip(speakers, pairwise(starts), strict=True), 1)
    ]


def persons(text: str) -> frozenset[str]:
    """The words of the names of those who speak in a transcript, as far as they have names."""
    names = {turn.speaker for turn in turns(text)} - _ASSISTANTS - _NAMELESS
    return frozenset(word for name in names for word in name.split())


K1 = 1.2
B = 0.3
REST = 0.5


def idf(passages: int, frequency: int) -> float:
    """How much a term says that ``frequency`` of ``passages`` hold; always above 0."""
    frequency = min(frequency, passages)
    return log(1.0 + (passages - frequency + 0.5) / (frequency + 0.5))


def rare(asked: Asked, but: Callable[[str], bool] = lambda _: False) -> dict[str, float]:
    """What each term of a question is worth times how rare it is, without some."""
    worth, statistics = asked
    return {
        term: share * idf(statistics.passages, statistics.frequencies.get(term, 0))
        for term, share in worth.items()
        if not but(term)
    }


def length_terms(average_length: float, b: float = B) -> tuple[float, float]:
    """The two constants of the denominator: ``weight + first + second * length``."""
    return K1 * (1.0 - b), K1 * b / (average_length or 1.0)


def combine(parts: Iterable[TermStatistics], terms: Collection[str]) -> TermStatistics:
    """The statistics of several collections seen as one."""
    parts = tuple(parts)
    if len(parts) == 1 and parts[0].frequencies.keys() == {*terms}:
        return parts[0]
    passages = 0
    length = 0
    frequencies: dict[str, int] = dict.fromkeys(terms, 0)
    for part in parts:
        passages += part.passages
        length += round(part.average_length * part.passages)  # the whole number it was: the mean over all is exact then
        for term in terms:
            frequencies[term] += part.frequencies.get(term, 0)
    average = length / passages if passages else 0.0
    return TermStatistics(passages=passages, average_length=average, frequencies=frequencies)


def factors(worth: Mapping[str, float], statistics: TermStatistics) -> Mapping[str, float]:
    """For each term the constant its weight in an item is multiplied with, what the term is worth included."""
    known = statistics.frequencies
    return {term: share * idf(statistics.passages, known.get(term, 0)) * (K1 + 1.0) for term, share in worth.items()}


Postings = tuple[Sequence[int], Sequence[float]]
"""The passages that hold a term, and its weight in each."""

Key = TypeVar("Key", bound=Hashable)


class PassageScores(Generic[Key]):
    """Adds up what each term gives to each passage, and makes of it one score an item.

    An item is worth its best passage, and half of what the others add to that: of each term the passage counts in
    which it says most.

    Attributes:
        best: the best passage of each item that ``items`` named, where that is not the first.
    """

    def __init__(self, firsts: Mapping[Key, Key]) -> None:
        """``firsts``: for each passage of an item that has several, the key of its first one."""
        self._firsts = firsts
        self._scores: dict[Key, float] = {}
        self.best: dict[Key, Key] = {}
        self._all: dict[Key, float] = {}
        self._most: dict[str, dict[Key, float]] = {}
        self._holders: list[tuple[str, KeysView[Key]]] = []

    def add(self, term: str, given: dict[Key, float], group: str | None = None) -> None:
        """Add the shares of one term by passage; of a group, what they are above those of its other terms."""
        keys, shares = given.keys(), given.values()
        self._holders.append((term, keys))
        if group is not None:
            known = self._most.setdefault(group, {})
            more = {key: share - known.get(key, 0.0) for key, share in given.items() if share > known.get(key, 0.0)}
            known.update((key, known.get(key, 0.0) + share) for key, share in more.items())
            keys, shares = more.keys(), more.values()
        scores, firsts = self._scores, self._firsts
        if not firsts:
            if scores:
                before = scores.get
                for key, share in zip(keys, shares, strict=True):
                    scores[key] = before(key, 0.0) + share
            else:
                self._scores = dict(zip(keys, shares, strict=True))
            return
        most: dict[Key, float] = {}
        for key, share in zip(keys, shares, strict=True):
            scores[key] = scores.get(key, 0.0) + share
            first = firsts.get(key)
            if first is not None and share > most.get(first, 0.0):
                most[first] = share
        self._holders.append((term, most.keys()))
        for first, share in most.items():
            self._all[first] = self._all.get(first, 0.0) + share

    def items(self) -> dict[Key, float]:
        """The score of each item, by the key of its first passage."""
        if not self._all:
            return self._scores
        found: dict[Key, float] = {}
        for key, score in self._scores.items():
            first = self._firsts.get(key)
            if first is None:
                found[key] = score
            elif score > found.get(first, 0.0):
                found[first] = score
                self.best[first] = key
        for first, together in self._all.items():
            found[first] += REST * (together - found[first])
        return found

    def words(self, firsts: Iterable[Key]) -> dict[Key, tuple[frozenset[str], frozenset[str]]]:
        """The terms that each of some items has, and those that it has not."""
        held: dict[Key, tuple[str, ...]] = dict.fromkeys(firsts, ())
        for term, passages in self._holders:
            for key in held.keys() & passages:
                held[key] += (term,)
        every = frozenset(term for term, _ in self._holders)
        parted = {terms: (frozenset(terms), every.difference(terms)) for terms in {*held.values()}}
        return {key: parted[terms] for key, terms in held.items()}
