"""Recognises trivial texts, which are not worth remembering, without a reviewer.

Greetings, acknowledgements, fragments and echoes are trivial; a text that merely says little is not.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import chain

from memfs.recall.cues import spoken

TRIVIAL = "trivial: "

_TABLE = "small_talk"
_SORTS: Mapping[str, str] = {
    "greeting": "a greeting",
    "farewell": "a farewell",
    "thanks": "thanks",
    "acknowledgement": "an acknowledgement",
    "filler": "a filler",
}
_ADDRESSING = frozenset(_SORTS[name] for name in ("greeting", "farewell", "thanks"))
_LONGEST = 200
_FEWEST_LETTERS = 4
_FEWEST_WORDS = 2

_COMMANDS = (
    r"cd|ls|ll|pwd|clear|exit|quit|whoami|date|history|top|htop|df|du|ps|jobs|fg|bg|reset|"
    r"git (?:status|log|diff|pull|push|fetch|add|stash|branch|show)"
)
_ARGUMENT = r"(?:-\S+|[\w.~*-]*[/.~*][\w./~*-]*)"
_COMMAND = re.compile(rf"[$%❯➜]\s+\S.{{0,38}}|(?:{_COMMANDS})(?:\s+{_ARGUMENT})*|/[a-z][\w-]*")
_WORD = re.compile(r"[^\W_]+(?:['\u2019][^\W\d_]+)*")
_UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7ff]")


@cache  # takes milliseconds, and a filter is made for each facade
def _tree() -> dict[str, list[tuple[tuple[str, ...], str]]]:
    """Every phrase with its sort, by its first word, the longest first."""
    found: dict[str, list[tuple[tuple[str, ...], str]]] = {}
    for name, sort in _SORTS.items():
        for phrase in chain.from_iterable(language.phrases(f"{_TABLE}.{name}") for language in spoken(_TABLE)):
            words = tuple(_words(phrase))
            found.setdefault(words[0], []).append((words, sort))
    for rows in found.values():
        rows.sort(key=lambda row: -len(row[0]))
    return found


@cache
def _neutral() -> frozenset[str]:
    """Words that may be between small talk without adding to it, and those one may be addressed by."""
    return frozenset(chain.from_iterable(language.phrases(f"{_TABLE}.neutral") for language in spoken(_TABLE)))


class TrivialFilter:
    """Distinguishes greetings, acknowledgements, fragments and echoes from what somebody may want to know again.

    It refuses only what is nothing else: "thanks to caching it is fast" and the short order "use tabs" pass.
    """

    def reason(self, content: str) -> str:
        """Why the text is not worth remembering, beginning with ``trivial: ``; "" where it may be."""
        sort = self._sort(content.strip())
        return TRIVIAL + sort if sort else ""

    def is_trivial(self, content: str) -> bool:
        """Whether the text is not worth remembering."""
        return bool(self.reason(content))

    def _sort(self, text: str) -> str:
        if len(text) > _LONGEST:
            return "" if any(character.isalpha() for character in text) else _without_letters(text)
        if not any(character.isalpha() for character in text):
            return _without_letters(text)
        if _COMMAND.fullmatch(text):
            return "an echo of a command"
        words = _words(text)
        return self._small_talk(words, text) or _fragment(words, text)

    def _small_talk(self, words: list[str], text: str) -> str:
        """The sort of the first phrase, where nothing but phrases and neutral words is said."""
        first, at = "", 0
        while at < len(words):
            length, sort = self._phrase(words, at)
            if length:
                first = first or sort
            elif words[at] not in _neutral() and not (first in _ADDRESSING and _is_address(words, at, text)):
                return ""
            at += length or 1
        return first

    def _phrase(self, words: list[str], at: int) -> tuple[int, str]:
        for phrase, sort in _tree().get(words[at], ()):
            if tuple(words[at : at + len(phrase)]) == phrase:
                return len(phrase), sort
        return 0, ""


def _words(text: str) -> list[str]:
    plain = unicodedata.normalize("NFKC", text).replace("\u2019", "'").casefold()
    return [_squeezed(word) for word in _WORD.findall(plain)]


def _squeezed(word: str) -> str:
    """``heyyyy`` as ``hey``: three letters in a row are one."""
    return re.sub(r"(\w)\1{2,}", r"\1", word)


def _without_letters(text: str) -> str:
    if not text:
        return "empty"
    digits = sum(character.isdigit() for character in text)
    return "nothing but numbers" if digits else "nothing but punctuation or signs"


def _is_address(words: list[str], at: int, text: str) -> bool:
    """Whether the last word is the name of somebody spoken to: ``Hi Bob``, ``thanks, Alice!``."""
    return at == len(words) - 1 <= 3 and any(word.casefold() == words[at] for word in _capitals(text))


def _capitals(text: str) -> Iterator[str]:
    return (word for word in _WORD.findall(text)[1:] if word.istitle())


def _fragment(words: list[str], text: str) -> str:
    """Why a text is too little to mean anything; "" where it is enough."""
    letters = sum(character.isalnum() for character in text)
    if _UNSPACED.search(text):
        return "" if letters >= _FEWEST_LETTERS else "too short"
    if len(words) < _FEWEST_WORDS or letters < _FEWEST_LETTERS:
        says = re.search(r"\w[=:@/]\w", text)  # ``editor=vim``, a link, an address: short, and yet a fact
        return "" if says else "too short"
    if len(set(words)) == 1:
        return "one word over and over"
    return ""
