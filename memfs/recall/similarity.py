"""Measures how far two texts say the same.

The one similarity behind duplicates and near-duplicates, at recall and at store. It compares stems and their order, and
asks no model.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import pairwise

from memfs.dataclass import dataclass
from memfs.search.analyzer import terms
from memfs.startup import TypeVar, regex

Part = TypeVar("Part")

SAME = 0.85
"""From this likeness on, one text repeats the other."""
_OTHER_FACTS = 0.8
_LENGTH_SLACK = 1.5
_COMPARED = 20_000
# With less than half of the stems of the shorter text in common, no order gives more than a third.
_FEW = 0.35
_WORD = regex(r"(?<![-./])[-./]*\w+(?:['.,:/@-]\w+)*[+#]*")
_NAME = regex(r"\d|\w[._/:@]\w|^[-./]|[+#]$")
_BEFORE = "\"'`("
_AFTER = "\"'`).,;:!?\u2026"
_HIDDEN = regex("[\u00ad\u200b-\u200f\u2060-\u2064\ufeff]")
_QUOTES = str.maketrans({"\u2018": "'", "\u2019": "'", "\u201c": '"', "\u201d": '"', "\u2013": "-", "\u2014": "-"})
_DENIAL = regex(r"\b(?:no|not|never|none|nor|neither|without|cannot|nothing|nobody|\w+n't)\b")
_SENTENCE_END = frozenset(".!?:\n")
_SIGNS = regex(r"[^\w\s]+")
_TELLING_SIGNS = frozenset({"Sm", "Sc", "So"})
# What NFKC would make an ordinary digit: ten squared is not a hundred and two.
_RAISED = str.maketrans({sign: f"^{digit}" for digit, sign in enumerate("⁰¹²³⁴⁵⁶⁷⁸⁹")})


def normalised(text: str) -> str:
    """A text without what does not change its meaning: letter case, blanks, hidden characters, and the punctuation
    around words. Punctuation within words stays, and every sign that may be part of a name (``C++``, ``C#``, ``-5``).
    """
    if not text.isascii():
        text = _HIDDEN.sub("", unicodedata.normalize("NFKC", text.translate(_RAISED))).translate(_QUOTES)
    return " ".join(word.lstrip(_BEFORE).rstrip(_AFTER) or word for word in text.casefold().split())


def likeness(one: str, other: str) -> float:
    """How alike two texts are: 0 for nothing in common, 1 for the same text but for case, blanks and punctuation.

    It is symmetric: the share of stems, and of pairs of neighbouring stems, that both have. A word that is replaced by
    another costs more than one that is added. Where each text has a number or name that the other lacks, or one denies
    what the other says, they state different facts, and the result stays below ``SAME`` however long they are.
    """
    return alike(TextShape(one), TextShape(other))


def _numbered(parts: Iterable[Part]) -> Iterator[tuple[Part, int]]:
    seen: dict[Part, int] = {}
    for part in parts:
        times = seen[part] = seen.get(part, 0) + 1
        yield part, times


@dataclass(frozen=True)
class TextShape:
    """What likeness looks at in one text; worked out when first needed, for a text that is compared several times.

    Of a very long text only the beginning and the end are looked at.
    """

    text: str

    @cached_property
    def plain(self) -> str:
        """The normalised text."""
        return normalised(self.text)

    @cached_property
    def stems(self) -> list[str]:
        """The stems in order."""
        return terms(_ends(self.plain))

    @cached_property
    def counted(self) -> frozenset[tuple[str, int]]:
        """The stems, each with the number of its occurrence."""
        return frozenset(_numbered(self.stems))

    @cached_property
    def pairs(self) -> frozenset[tuple[tuple[str, str], int]]:
        """The pairs of neighbouring stems, in the same way."""
        return frozenset(_numbered(pairwise(self.stems)))

    @cached_property
    def facts(self) -> frozenset[str]:
        """What cannot be replaced without changing what is said: words with a digit or a sign in them, those with a
        capital that does not come from beginning a sentence, and signs that say something by themselves: comparisons,
        currencies, emoji.
        """
        text, facts, between, start, at = _ends(self.text), set[str](), list[str](), True, 0
        for found in _WORD.finditer(text):
            between.append(text[at : found.start()])
            start = start or not _SENTENCE_END.isdisjoint(between[-1])
            word, at = found.group(), found.end()
            if _NAME.search(word) or (not start and word[0].isupper()):
                facts.add(word.casefold())
            start = False
        runs = [run for part in (*between, text[at:]) if len(part) > 1 for run in _SIGNS.findall(part)]
        facts.update(run for run in runs if not _TELLING_SIGNS.isdisjoint(map(unicodedata.category, run)))
        return frozenset(facts)

    @cached_property
    def denies(self) -> int:
        """How often it denies."""
        return len(_DENIAL.findall(_ends(self.plain)))


def alike(one: TextShape, other: TextShape, least: float = 0.0) -> float:
    """The likeness of two shapes; 0 for one that cannot reach ``least``, which costs less to find out.

    It is what both have, of what they have: by Dice where only one adds to the other, by Jaccard where both differ. A
    pair counts half as much as a stem: moving a word changes less than replacing it.
    """
    if one.plain == other.plain:
        return 1.0
    short, long = sorted((len(one.plain), len(other.plain)))
    bound = _LENGTH_SLACK * short / long if long else 0.0
    if bound < least or not short:
        return 0.0
    equal, fewer = len(one.counted & other.counted), min(len(one.counted), len(other.counted))
    if not equal or (least > _FEW and 2 * equal < fewer):  # it stays below, whatever the order: most pairs do
        return 0.0
    common = 2 * equal + len(one.pairs & other.pairs)
    lone, strange = (2 * len(shape.counted) + len(shape.pairs) - common for shape in (one, other))
    shared = min(bound, 2 * common / (2 * common + lone + strange + 2 * min(lone, strange)), 0.999)
    if shared >= least and (
        one.denies % 2 != other.denies % 2 or (one.facts - other.facts and other.facts - one.facts)
    ):
        shared *= _OTHER_FACTS
    return shared if shared >= least else 0.0


def _ends(text: str) -> str:
    return text if len(text) <= 2 * _COMPARED else f"{text[:_COMPARED]} {text[-_COMPARED:]}"
