"""Finds what several memories have in common, as a template with ``{variable}`` where they differ.

Decides when memories are alike, how sure a pattern is, and how it is written as an item. Nothing is read or written.
"""

from __future__ import annotations

import string
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from math import ceil

from memfs.dataclass import dataclass, field
from memfs.errors import SettingInvalid
from memfs.model import Link, MemoryItem, Trust
from memfs.model.ids import stable_id
from memfs.model.item import gist
from memfs.model.time import format_time, parse_time
from memfs.search.analyzer import STOP_WORDS
from memfs.startup import Any, regex

VARIABLE = "{variable}"
MOST_WORDS = 120
"""A longer text is a document in itself: it is compared with none."""
EXAMPLES = 3
COMPARED = 500
"""The most others that each memory is compared with, those that share its rarest words first."""
_MOST_SHARE = 0.7
_EDGES = string.punctuation.replace("{", "").replace("}", "") + "\u2018\u2019\u201c\u201d\u2026\u2013\u2014\u00ab\u00bb"
_PLACEHOLDER = regex(r"\{[^{}\s]*\}")
_PATTERN = "pattern"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pattern:
    """What several memories of one type have in common.

    Attributes:
        type: the type of the memories.
        template: the text they share, with ``{variable}`` for each stretch in which they differ.
        examples: the texts of up to three of them, oldest first.
        occurrences: how many there are.
        confidence: how sure it is, 0 to 1 (``sure``).
        first_seen, last_seen: when the oldest and the newest happened.
        common_context: the circumstances that are equal in all of them.
        members: their ids.
        trust: who vouches for it: ``agent``, or ``tool`` where any of them comes from a tool.
    """

    type: str
    template: str
    examples: tuple[str, ...]
    occurrences: int
    confidence: float
    first_seen: datetime
    last_seen: datetime
    common_context: Mapping[str, Any] = field(default_factory=dict)
    members: tuple[str, ...] = ()
    trust: str = Trust.AGENT.value

    @property
    def id(self) -> str:
        """The id of its item: the same for the same words of the same type, however it is found."""
        return stable_id(self.template, self.type, *sorted(fixed_words(self.template)), otherwise=_PATTERN)


# -- words --------------------------------------------------------------------------------------------------------
@lru_cache(maxsize=4096)
def _spelled(text: str) -> tuple[tuple[str, str], ...]:
    """Each word as it is written and as it is compared: without letter case and the punctuation around it."""
    return tuple((word, word.casefold().strip(_EDGES) or word.casefold()) for word in text.split())


def words_of(text: str) -> frozenset[str]:
    """The words of a text as they are compared; none of a text that is longer than ``MOST_WORDS``."""
    fits = len(text) <= MOST_WORDS * 40 and len(_spelled(text)) <= MOST_WORDS
    return fixed_words(text) if fits else frozenset()


def fixed_words(template: str) -> frozenset[str]:
    """The words of a template that are no placeholder."""
    return frozenset(word for written, word in _spelled(template) if not _PLACEHOLDER.search(written))


def overlap(one: Collection[str], other: Collection[str]) -> float:
    """The Jaccard similarity of two sets of words: the share of all words that are in both."""
    first, second = frozenset(one), frozenset(other)
    together = len(first | second)
    return len(first & second) / together if together else 0.0


# -- finding ------------------------------------------------------------------------------------------------------
class PatternFinder:
    """Finds what memories have in common. It keeps nothing, so that one may be used from several threads."""

    def __init__(self, threshold: int = 3, *, similarity: float = 0.5, min_common_words: int = 2) -> None:
        """Look for patterns.

        Args:
            threshold: how many similar memories make a pattern, at least 2.
            similarity: share of common words, above 0 and at most 1, from which two memories are similar.
            min_common_words: the fewest words that a pattern has in common; one of them is no stop word.

        Raises:
            SettingInvalid: a value is out of range.
        """
        _in_range("pattern_threshold", threshold, threshold >= 2, "2 or more")
        _in_range("similarity_threshold", similarity, 0 < similarity <= 1, "above 0, at most 1")
        _in_range("min_common_words", min_common_words, min_common_words >= 1, "1 or more")
        self.threshold, self.similarity = threshold, similarity
        self.min_common_words = min_common_words

    def detect_pattern(self, memories: Iterable[Any]) -> Pattern | None:
        """The first pattern among these memories, None where there is none."""
        return next(iter(self.detect_all(memories)), None)

    def detect_all(self, memories: Iterable[MemoryItem]) -> list[Pattern]:
        """Every pattern among these memories, the oldest first; each memory belongs to one at most."""
        shelf = _Shelf(memories)
        found = []
        for number in range(len(shelf.items)):
            near = self._star(shelf, number)
            common, kept = self._refined([shelf.words[other] for other in near])
            if common:
                members = [near[place] for place in kept]
                found.append(self._pattern([shelf.items[other] for other in members], common))
                shelf.used.update(members)
            shelf.used.add(number)
        return found

    def group_by_similarity(self, memories: Iterable[MemoryItem]) -> list[list[MemoryItem]]:
        """The memories that are similar to another, in groups: each with those that are similar to its oldest."""
        shelf = _Shelf(memories)
        groups = []
        for number in range(len(shelf.items)):
            near = self._star(shelf, number)
            shelf.used.update(near, (number,))
            if len(near) > 1:
                groups.append([shelf.items[other] for other in near])
        return groups

    def are_similar(self, one: MemoryItem, other: MemoryItem) -> bool:
        """Whether two memories are of one type and share enough of their words."""
        return one.type == other.type and self._near(words_of(gist(one)), words_of(gist(other)))

    def extract_pattern(self, group: Iterable[MemoryItem]) -> Pattern | None:
        """What a group has in common, without those of it that do not fit; None where too little or too few remain."""
        items = sorted((item for item in group if item.type != _PATTERN), key=lambda item: item.moment)
        common, kept = self._refined([words_of(gist(item)) for item in items])
        return self._pattern([items[place] for place in kept], common) if common else None

    def follows(self, item: MemoryItem, pattern: MemoryItem) -> float:
        """How well a memory fits a pattern's item, 0 (it does not) to 1."""
        if item.type != pattern.data.get("pattern_type") or item.type == _PATTERN:
            return 0.0
        return self._fits(words_of(gist(item)), fixed_words(pattern.content))

    # -- rules ------------------------------------------------------------------------------------------------------
    def _star(self, shelf: _Shelf, number: int) -> list[int]:
        """A memory and those that are similar to it, oldest first; none where it is used up or has no words."""
        words = shelf.words[number]
        if number in shelf.used or not words:
            return []
        others = shelf.beside(number, self.similarity)
        return [number, *(other for other in others if self._near(words, shelf.words[other]))]

    def _near(self, one: frozenset[str], other: frozenset[str]) -> bool:
        """Whether ``overlap`` reaches the similarity, without the union."""
        first, second = len(one), len(other)
        if not min(first, second) or min(first, second) < self.similarity * max(first, second):
            return False
        return len(one & other) * (1 + self.similarity) >= self.similarity * (first + second) - 1e-9

    def _fits(self, words: frozenset[str], fixed: frozenset[str]) -> float:
        """How many of a template's words a text has, 0 where that is too few, or too few of the text's own."""
        share = len(words & fixed) / len(fixed) if fixed else 0.0
        return share if share >= _MOST_SHARE and overlap(words, fixed) >= self.similarity else 0.0

    def _refined(self, group: Sequence[frozenset[str]]) -> tuple[frozenset[str], list[int]]:
        """The words that most of a group share, and which of it have most of them; no words where it is no pattern.

        A memory that does not fit is left out and the rest looked at again: each round is smaller than the one before.
        """
        kept = list(range(len(group)))
        while len(kept) >= self.threshold:
            words = [group[place] for place in kept]
            counted = Counter(word for one in words for word in one)
            shared = frozenset(word for word, count in counted.items() if count >= _MOST_SHARE * len(words))
            common = shared & max(words, key=lambda one: len(shared & one))  # what one can show as the template
            if len(common) < self.min_common_words or common <= STOP_WORDS:
                break
            fitting = [place for place in kept if self._fits(group[place], common)]
            if len(fitting) == len(kept):
                return common, kept
            kept = fitting
        return frozenset(), []

    @staticmethod
    def _pattern(members: Sequence[MemoryItem], common: frozenset[str]) -> Pattern:
        texts = [gist(item) for item in members]
        # with most of the words and fewest variables; of several, the oldest
        template = max(
            (create_template(common, text) for text in texts),
            key=lambda written: (len(fixed_words(written)), -len(written.split())),
        )
        return Pattern(
            type=members[0].type,
            template=template,
            examples=tuple(dict.fromkeys(texts))[:EXAMPLES],
            occurrences=len(members),
            confidence=sure(template, members, len(members)),
            first_seen=min(item.moment for item in members),
            last_seen=max(item.moment for item in members),
            common_context=find_common_context([item.context for item in members]),
            members=tuple(item.id for item in members),
            trust=(Trust.TOOL if any(item.trust == Trust.TOOL.value for item in members) else Trust.AGENT).value,
        )


class _Shelf:
    """Memories in the order of their age, by those of their words that similar ones must share.

    Two sets of which one shares at least a given part of the other have one of their rarest words in common, if one
    looks at enough of them: so similar ones are found without comparing each with each.
    """

    def __init__(self, memories: Iterable[MemoryItem]) -> None:
        self.items = sorted((item for item in memories if item.type != _PATTERN), key=lambda item: item.moment)
        self.words = [words_of(gist(item)) for item in self.items]
        self.used: set[int] = set()
        self._holders: dict[tuple[str, str], list[int]] = {}
        for number, item in enumerate(self.items):
            for word in self.words[number]:
                self._holders.setdefault((item.type, word), []).append(number)

    def beside(self, number: int, similarity: float) -> list[int]:
        """Later memories of the same type that may be similar, at most ``COMPARED``."""
        kind, words = self.items[number].type, self.words[number]
        rarest = sorted(words, key=lambda word: (len(self._holders[kind, word]), word))
        enough = len(words) - ceil(similarity * len(words)) + 1
        found: dict[int, None] = {}
        for word in rarest[:enough]:
            for other in self._holders[kind, word]:
                if other > number and other not in self.used:
                    found[other] = None
                if len(found) >= COMPARED:
                    return sorted(found)
        return sorted(found)


# -- what a group shares ------------------------------------------------------------------------------------------
def find_common_context(contexts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The keys that all circumstances have with equal values."""
    first, *others = contexts or [{}]
    return {key: value for key, value in first.items() if all(key in o and o[key] == value for o in others)}


def create_template(common: Collection[str], text: str) -> str:
    """The text with ``{variable}`` for each stretch of words that are not common."""
    words: list[str] = []
    for written, word in _spelled(text):
        if word in common:
            words.append(written)
        elif not words or words[-1] != VARIABLE:
            words.append(VARIABLE)
    return " ".join(words)


def sure(template: str, members: Sequence[MemoryItem], occurrences: int) -> float:
    """The confidence of a pattern: the mean share of its words that a memory has, times n / (n + 1), ``n`` of them."""
    fixed = fixed_words(template)
    shares = [len(fixed & words_of(gist(item))) / len(fixed) for item in members] if fixed else []
    share = sum(shares) / len(shares) if shares else 0.0
    return round(share * occurrences / (occurrences + 1), 4)


# -- as items -----------------------------------------------------------------------------------------------------
def item_of(pattern: Pattern) -> MemoryItem:
    """The item that holds a pattern."""
    return MemoryItem(
        pattern.template,
        _PATTERN,
        id=pattern.id,
        timestamp=pattern.last_seen,
        trust=pattern.trust,
        context=dict(pattern.common_context),
        links=tuple(Link(to=member, relation="example") for member in pattern.members[:EXAMPLES] if member),
        data=data_of(pattern),
    )


def data_of(pattern: Pattern) -> dict[str, Any]:
    """The body of a pattern's item."""
    return {
        "pattern_type": pattern.type,
        "occurrences": pattern.occurrences,
        "confidence": pattern.confidence,
        "first_seen": format_time(pattern.first_seen),
        "last_seen": format_time(pattern.last_seen),
        "examples": list(pattern.examples),
        "common_context": dict(pattern.common_context),
    }


def grown(known: MemoryItem, members: Sequence[MemoryItem], occurrences: int) -> MemoryItem:
    """A pattern's item with what these memories add to it, and this count. What a person wrote into it stays."""
    data, template = known.data, known.content
    times = [
        *(item.moment for item in members),
        *(parse_time(data[key]) for key in ("first_seen", "last_seen") if key in data),
    ]
    contexts = [item.context for item in members]
    shared = find_common_context([data["common_context"], *contexts] if "common_context" in data else contexts)
    examples = list(data.get("examples", ()))
    examples += [text for text in dict.fromkeys(map(gist, members)) if text not in examples][:EXAMPLES]
    pattern = Pattern(
        type=members[0].type,
        template=template,
        examples=tuple(examples[: max(EXAMPLES, len(data.get("examples", ())))]),
        occurrences=occurrences,
        confidence=sure(template, members, occurrences),
        first_seen=min(times),
        last_seen=max(times),
        common_context=shared,
    )
    context = shared if known.context == data.get("common_context") else known.context
    return known.replace(data={**data, **data_of(pattern)}, context=context, timestamp=pattern.last_seen)


def _in_range(name: str, value: float, fits: bool, wanted: str) -> None:
    if not fits:
        raise SettingInvalid(f"{value} is out of range", field=name, hint=f"choose {wanted}")


_CONTEXT = 1.5
_FOLLOWED = 2.0


def reasons_for(
    pattern: MemoryItem, similarity: float, text: str, context: Mapping[str, Any], detector: PatternFinder
) -> dict[str, float]:
    """The factors that make a suggestion's score; 0 among them where its circumstances all differ."""
    common: Mapping[str, Any] = pattern.data.get("common_context", pattern.context)
    both = common.keys() & context.keys()
    shared = [key for key in both if common[key] == context[key]]
    reasons = {"text": similarity, "confidence": float(pattern.data.get("confidence", 0.5))}
    kind = pattern.data.get("pattern_type", "")
    if text.strip() and kind and detector.follows(MemoryItem(text, kind), pattern):
        reasons["follows"] = _FOLLOWED
    if both:
        reasons["context"] = _CONTEXT if shared else 0.0
    return reasons
