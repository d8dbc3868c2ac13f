"""Counts what in a text shows that it is a decision, a cause, an instruction or a passing remark.

Where a language has no cues, names, figures and length still count.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache, lru_cache

from memfs.dataclass import dataclass
from memfs.recall.cues import all_cues
from memfs.search.analyzer import STOP_WORDS, tokens
from memfs.search.terms import COMMON_WORDS

_EMPTY_WORDS = STOP_WORDS | COMMON_WORDS
_LOOKED_AT = 5_000
"""Characters of a text that are looked at: a longer one has said by then what it is."""
_TABLE, _ORDER = "features", "task"

_NUMBERED = re.compile(r"(?m)^[ \t]*(?:\d+[.)]|[-*])\s+\S|(?<=[:;,.\s])\(?[1-9][.)]\s+\S|\s(?:->|→|=>)\s")
_NAME = re.compile(
    r"(?<![\w`'])(?:`[^`\n]+`|https?://\S+|[\w.-]{1,64}@[\w-]{1,64}\.[\w.]+|[\w.-]{0,64}(?:/[\w.-]+)+|[A-Za-z]\w*_\w+|"
    r"[A-Z][a-z]+(?:[A-Z][a-z]*)+|[a-z]+[A-Z]\w*|[A-Z]{2,}\w*|[A-Za-z]+\d\w*|\w+\.(?:py|js|ts|go|rs|md|ya?ml|toml|"
    r"json|sh|sql|html|css|java|txt|cfg|ini|lock)\b)"
)
_PROPER = re.compile(r"(?<=[a-z0-9,;:)] )[A-Z][a-z]+\b(?:[ -][A-Z][a-z]+\b)*")
_FIGURE = re.compile(r"(?<![\w.])[$€£v#]?\d[\d,.:/]*(?:\s?(?:%|ms|s|min|h|days?|weeks?|months?|years?|[KMGT]i?B))?\b")
_SENTENCE = re.compile(r"(?<![.!?\n])[.!?\n]+(?:\s|$)")


@dataclass(frozen=True, slots=True)
class Traits:
    """What one text shows.

    Attributes:
        words: how many significant words it has: none that people say about anything.
        variety: distinct ones of these words by all of them, 1 for none.
        letters: letters and blanks by characters.
        names: distinct names, identifiers, paths and links.
        figures: distinct numbers, dates and versions.
        cues: how often each cue occurs; a cue that does not is absent.
        asks: whether nothing but a question is put.
        orders: whether it begins as an order does.
        steps: marks of a list of steps.
    """

    words: int
    variety: float
    letters: float
    names: int
    figures: int
    cues: Mapping[str, int]
    asks: bool
    orders: bool
    steps: int

    def has(self, *names: str) -> bool:
        """Whether any of these cues occurs."""
        return any(name in self.cues for name in names)


def traits(text: str) -> Traits:
    """What a text shows; of a long one, its first 5,000 characters."""
    return _traits(text[:_LOOKED_AT].strip())


@cache
def _patterns() -> dict[str, list[re.Pattern[str]]]:
    """The expressions of each cue, one a language."""
    found: dict[str, list[re.Pattern[str]]] = {}
    for language in all_cues(_TABLE):
        for name in language.names(_TABLE):
            if name != _ORDER:
                found.setdefault(name, []).append(language.pattern(f"{_TABLE}.{name}", r"(?<!\w){}(?!\w)"))
    return found


@lru_cache(maxsize=64)
def _traits(text: str) -> Traits:
    words = [word.casefold() for word, stems in tokens(text) if stems and word.casefold() not in _EMPTY_WORDS]
    counted = {name: sum(len(cue.findall(text)) for cue in patterns) for name, patterns in _patterns().items()}
    sentences = [sentence for sentence in _SENTENCE.split(text) if sentence.strip()]
    return Traits(
        words=len(words),
        variety=len(set(words)) / len(words) if words else 1.0,
        letters=sum(character.isalnum() or character.isspace() for character in text) / max(len(text), 1),
        names=len({*_NAME.findall(text), *_PROPER.findall(text)}),
        figures=len(set(_FIGURE.findall(text))),
        cues={name: number for name, number in counted.items() if number},
        asks=text.endswith("?") and len(sentences) <= 1,
        orders=any(one.pattern(f"{_TABLE}.{_ORDER}").match(text) for one in all_cues(_TABLE)),
        steps=len(_NUMBERED.findall(text)),
    )
