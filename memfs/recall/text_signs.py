"""Looks in the texts of hits for what a question asks besides its words: phrases, times, preferences, denials; for what
it leaves out, or asks to list; and whether any hit has enough of it to be an answer.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from itertools import pairwise
from math import prod
from types import MappingProxyType

from memfs.dataclass import NamedTuple, replace
from memfs.model import Hit, MemoryItem
from memfs.model.item import whole
from memfs.model.time import MONTHS
from memfs.recall.ranking import ASSISTANTS, ONE_QUESTION
from memfs.resources import word_lists
from memfs.search import analyzer, terms
from memfs.search.terms import Asked
from memfs.startup import regex

_WORD = regex(r"\w+")
_PHRASE = 1.2
_PHRASES = 32
_COUNTS = 1.0
_DENIED = 1.2
_SAME_SESSION = 0.98
"""What a hit of a list counts for each better one of its session."""
_DATED = 1.3
_IN_PERSON, _OF_NAMED = 1.1, 1.25
_PREFERENCE = 1.3
_NAMED = 2.0
_READ, _READ_FOR_ADVICE = 2, 4
"""How many hits are read for each that is wanted."""
_I = frozenset(("i", "me", "mine", "my", "our", "us", "we"))
_DATES, _ADVICE = (frozenset(word_lists()["signs"][name].split()) for name in ("dates", "advice"))
_NEAR = 4
_EXCEPT = regex(
    r"(?:\b(?:besides|other than|except(?: for)?|apart from|aside from|excluding)\b|, not\b)"
    r"(?:(?!\b(?:do|does|did|has|have|had|is|are|was|were|can|could|will|would|should)\b)[^?.,;!])*",
    re.IGNORECASE,
)
_CENTURIES = ("19", "20")
_TIMES = frozenset(("date", "day", "days", "month", "months", "time", "week", "weekend", "weeks", "year", "years"))
_PREFERENCES = frozenset(("always", "prefer", "preference", "preferences", "preferred", "prefers", "rather"))


def asks_for_list(text: str) -> bool:
    """Whether a question asks how many there are, or for all of them."""
    brief = len(_WORD.findall(text)) <= ONE_QUESTION
    return brief and any(_lists(code).search(text) for code in ("en", *analyzer.text_languages(text)))


@cache
def _lists(code: str) -> re.Pattern[str]:
    """What a question of a language has that asks for a count or a list."""
    return re.compile(word_lists()["signs"]["lists"].get(code, r"(?!)"), re.IGNORECASE)


@cache
def _denials(languages: tuple[str, ...]) -> frozenset[str]:
    """The words that deny what is near them, in English and some other languages."""
    known = word_lists()["signs"]["denials"]
    return frozenset(word for code in ("en", *languages) for word in known.get(code, "").split())


def _words(text: str) -> list[str]:
    """The words of a text, folded; what denies in a script without spaces is a word of its own."""
    text = text.casefold()
    if not text.isascii():
        text = _apart().sub(lambda one: f" {one[2]} " if one[2] else one[0], text)
    return _WORD.findall(text)


@cache
def _apart() -> re.Pattern[str]:
    signs = word_lists()["signs"]
    words = (word for known in signs["denials"].values() for word in known.split() if analyzer.is_unspaced(word))
    return re.compile(f"{signs['undenied']}|({'|'.join(words)})")


@lru_cache(maxsize=64)
def asked_for(text: str) -> str:
    """A question without what it leaves out, as *besides basketball*; the whole where nothing else would remain."""
    if len(_WORD.findall(text)) > ONE_QUESTION or not _EXCEPT.search(text):
        return text
    rest = _EXCEPT.sub(" ", text)
    return text if analyzer.STOP_WORDS.issuperset(terms.weights(rest)) else rest


class TextSigns(NamedTuple):
    """What in the text of a memory makes it worth more for a question.

    Attributes:
        phrases: the first 32 pairs of words side by side in the question, without words that say nothing by themselves.
        words: by a factor's name, the factor itself and the words of which a text must have one for it.
        pairs: the two words of each phrase.
        needed: the terms that a text with each phrase has, whatever language it is in.
        denied: the terms near which a text is to deny something.
        asked: the words of the question.
    """

    phrases: tuple[str, ...] = ()
    words: Mapping[str, tuple[float, frozenset[str]]] = MappingProxyType({})
    pairs: Sequence[Sequence[str]] = ()
    needed: Sequence[frozenset[str]] = ()
    denied: frozenset[str] = frozenset()
    asked: frozenset[str] = frozenset()

    @classmethod
    def of(cls, text: str, *, talk: bool) -> TextSigns:
        """What to look for.

        Args:
            text: the question.
            talk: whether what was found comes from conversations.
        """
        words = _words(text)
        sought: dict[str, tuple[float, frozenset[str]]] = {}
        brief = len(words) <= ONE_QUESTION
        if brief and (
            "when" in words
            or any(
                (one == "how" and other == "long") or (one in {"what", "which", "many"} and other in _TIMES)
                for one, other in pairwise(words)
            )
        ):  # a time answers it
            sought["dated"] = _DATED, _DATES
        if brief and not _ADVICE.isdisjoint(words):
            sought["preference"] = _PREFERENCE, _PREFERENCES
        if talk and words:
            sought["in_person"] = _OF_NAMED, _I
        if persons := terms.persons(text):
            sought["named"] = _NAMED, persons
        denied: frozenset[str] = frozenset()
        if brief and not (denials := _denials(analyzer.text_languages(text))).isdisjoint(words):
            sought["denied"] = _DENIED, denials
            denied = frozenset(terms.weights(text)).difference(*map(analyzer.terms, denials.intersection(words)))
        worth = terms.weights(text)
        counts = {word for word in words if any(worth.get(term, 0.0) >= _COUNTS for term in _terms_of(word))}
        found = [f" {one} {other} " for one, other in pairwise(words) if one in counts and other in counts]
        phrases = tuple(dict.fromkeys(found))[:_PHRASES]
        pairs = [*map(str.split, phrases)]
        needed = [frozenset().union(*map(analyzer.certain_terms, pair)) for pair in pairs]
        return cls(phrases, sought, pairs, needed, denied, frozenset(words))

    def most(self, lacking: frozenset[str] = frozenset()) -> float:
        """The factor of a text without some terms that has all else that is looked for: no such text gets more."""
        start = _PHRASE if any(map(lacking.isdisjoint, self.needed)) else 1.0
        return prod([factor for factor, _ in self.words.values()], start=start) if self.words else start

    def read(self, limit: int) -> int:
        """How many texts to look through for these hits."""
        if "preference" in self.words:
            return _READ_FOR_ADVICE * limit
        return _READ * limit if self.phrases or self.words else 0

    def factors(self, item: MemoryItem) -> dict[str, float]:
        """The factors that an item's text earns, by name."""
        text = whole(item).casefold()
        if not self.words:
            for one, other in self.pairs:
                if one in text and other in text:
                    break
            else:
                return {}  # mostly; cutting words is what takes time
        tokens = _words(text) if "denied" in self.words else _WORD.findall(text)
        found = {name: factor for name, (factor, words) in self.words.items() if not words.isdisjoint(tokens)}
        if "dated" in self.words and any(
            len(word) == 4 and word[:2] in _CENTURIES for word in tokens if word.isdecimal()
        ):
            found["dated"] = _DATED
        if "in_person" in found:
            if item.origin.sequence is None or item.origin.role in ASSISTANTS:
                del found["in_person"]
            elif self.asked.isdisjoint(_WORD.findall(item.origin.speaker.casefold())[:1]):
                found["in_person"] = _IN_PERSON
        if "denied" in found:
            denials, last = self.words["denied"][1], len(tokens)
            places = (at for at, word in enumerate(tokens) if word in denials)
            near = {place for at in places for place in range(max(0, at - _NEAR), min(last, at + _NEAR + 1))}
            if all(self.denied.isdisjoint(analyzer.terms(tokens[place])) for place in near):
                del found["denied"]
        if self.phrases:
            plain = f" {' '.join(tokens)} "
            if any(phrase in plain for phrase in self.phrases):
                found["phrase"] = _PHRASE
        return found


def spread(hits: Iterable[Hit]) -> Iterator[Hit]:
    """Hits in an order for a list: each counts less for every better one of its session."""
    left = list(hits)
    if any(one.score < other.score for one, other in pairwise(left)):  # a strategy has its own order
        yield from left
        return
    given: Counter[str] = Counter()
    while left:
        fewer, best = max(
            ((_SAME_SESSION ** given[hit.item.origin.session], hit) for hit in left),
            key=lambda row: row[0] * row[1].score,
        )
        left.remove(best)
        given.update(filter(None, [best.item.origin.session]))
        reasons = best.reasons if fewer == 1 else {**best.reasons, "spread": fewer}
        yield replace(best, score=best.score * fewer, reasons=reasons)


@lru_cache(maxsize=4096)
def _terms_of(word: str) -> tuple[str, ...]:
    return tuple(term for _, parts in analyzer.tokens(word) for term in parts)


_ENDS = ".!?:\u3002\uff01\uff1f"
_HEAVIEST = 6
_LOOKED_AT = 10
_ENOUGH = (0.27, 0.18, 0.135, 0.09)
"""By how many words are shared, one to four or more: what share of what the heaviest words are worth that must be."""
_OF_STRANGERS = 2.0
"""How much more that is of a question all of whose names are unknown."""


@cache
def _month_terms() -> frozenset[str]:
    return frozenset(term for name in MONTHS for term in analyzer.terms(name))


def _names_strangers(text: str, asked: Asked) -> bool:
    """Whether a question has names, and memory has none of them, nor what one may be a slip of.

    A name is a word with a capital within a sentence. In German every noun is one, and a talk names much beside what is
    asked.
    """
    worth, statistics = asked
    names: list[str] = []
    for found in _WORD.finditer(text):
        word, before = found[0], text[: found.start()].rstrip()
        if word[0].isupper() and word != "I" and before and before[-1] not in _ENDS:
            names += [] if word.lower() in _DATES else analyzer.terms(word)
    if not names or "de" in analyzer.languages(text) or len(terms.turns(text)) > 1:
        return False
    known = [term for term, many in statistics.frequencies.items() if many and term in worth]
    return not any(name in known or terms.misspellings(name, known) for name in names)


def nothing_fits(text: str, asked: Asked, hits: Sequence[Hit], known: Mapping[str, Collection[str]]) -> bool:
    """Whether none of the best hits has enough of what was asked to be an answer, by the words alone.

    Words count by what they are worth in the question and how rare they are; one that is a tag of a memory counts as
    the heaviest, however many have it. Numbers and months do not count: they are seldom written where something is
    told. Where a question has names, and no memory any of them, twice as much is enough. The shares were chosen so
    that hardly any question that has an answer is said to have none.

    Args:
        text: the question.
        asked: its words, and how they are spread over all that was searched.
        hits: best first.
        known: terms that they have, by id; there may be more.
    """
    weights = terms.rare(asked, lambda term: term.isdigit() or term in _month_terms())
    times = _OF_STRANGERS if _names_strangers(text, asked) else 1.0
    heaviest = sorted(weights.values(), reverse=True)[:_HEAVIEST]

    def fits(held: Collection[str], tags: Collection[str] = ()) -> bool:
        shared = weights.keys() & held
        least = _ENOUGH[min(len(shared), len(_ENOUGH)) - 1]
        worth = sum(heaviest[0] if term in tags else weights[term] for term in shared)
        return bool(shared) and worth >= sum(heaviest) * least * times

    best = hits[:_LOOKED_AT]
    enough = any(fits(known.get(hit.item.id, ())) for hit in best)  # mostly, and no text is cut into terms for it
    return bool(weights) and not (
        enough or any(fits(terms.held_terms(text, hit.item), analyzer.terms(" ".join(hit.item.tags))) for hit in best)
    )
