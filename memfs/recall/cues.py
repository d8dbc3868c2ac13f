"""Cues: the wordings by which a text shows what it is, from one data file for each language.

``memfs/languages/<language>.toml`` holds lists of regular expressions, and of plain phrases, in tables. A file is read
when a table is first needed, and an expression compiled when it is first matched. A language is added by its file
alone. Small talk is known by phrases of all languages at once, from ``languages/words.json``.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from functools import cache

from memfs.resources import language_names, language_text, word_lists
from memfs.search.analyzer import text_languages
from memfs.startup import Any, regex

_FRAGMENT = regex(r"\{\{(\w+)\}\}")
_INDENT = regex(r"(?m)^ +")


class Cues:
    """The cues of one language. May be used from several threads."""

    def __init__(self, language: str, tables: Mapping[str, Any]) -> None:
        """
        Args:
            language: its ISO 639 code.
            tables: what its file holds.
        """
        self.language, self._tables = language, tables
        self._compiled: dict[tuple[str, str, int], re.Pattern[str]] = {}

    def has(self, table: str) -> bool:
        """Whether the language has cues of a sort."""
        return table in self._tables

    def names(self, table: str) -> tuple[str, ...]:
        """The names of the lists in a table, such as ``statements.decisions``, in order."""
        return tuple(name for name, rows in self._table(table).items() if isinstance(rows, list))

    def phrases(self, name: str) -> tuple[str, ...]:
        """A list as it is written, such as ``small_talk.greeting``; empty where the language has none."""
        table, _, key = name.rpartition(".")
        return tuple(self._table(table).get(key, ()))

    def pattern(self, name: str, frame: str = "{}", flags: int = re.IGNORECASE) -> re.Pattern[str]:
        """A list as one expression that matches where any of its rows does; never, where the language has no such list.

        Args:
            name: such as ``corrections.order``.
            frame: what is around it, with ``{}`` in its place, such as ``\\\\b{}\\\\b``.
            flags: of ``re``.
        """
        key = name, frame, flags
        found = self._compiled.get(key)
        if found is None:
            found = self._compiled[key] = re.compile(frame.replace("{}", self._joined(name)), flags)
        return found

    def _joined(self, name: str) -> str:
        rows = [self._expanded(row) for row in self.phrases(name)]
        return f"(?:{'|'.join(f'(?:{row})' for row in rows)})" if rows else r"(?!)"

    def _expanded(self, row: str) -> str:
        plain = _INDENT.sub("", row).replace("\n", "") if "\n" in row else row
        return _FRAGMENT.sub(lambda found: self._joined(f"fragments.{found[1]}"), plain)

    def _table(self, name: str) -> Mapping[str, Any]:
        found: Any = self._tables
        for part in name.split("."):
            found = found.get(part, {})
        return found if isinstance(found, Mapping) else {}


@cache
def cues(language: str = "en") -> Cues:
    """The cues of a language, by its code.

    Raises:
        KeyError: there is no file of it.
    """
    import tomllib  # takes long, and most processes look at no text so closely

    return Cues(language, tomllib.loads(language_text(language)))


@cache
def all_cues(table: str) -> tuple[Cues, ...]:
    """The languages that have cues of a sort, English first. The files of others are not parsed."""
    names = sorted(language_names(), key=lambda name: (name != "en", name))
    found = (cues(name) for name in names if f"[{table}" in language_text(name))
    return tuple(one for one in found if one.has(table))


def cues_for_text(table: str, text: str) -> tuple[Cues, ...]:
    """The languages that have cues of a sort and that a text may be in, English first: it may always be."""
    languages = dict.fromkeys(("en", *text_languages(text)))
    return tuple(found for name in languages if name in language_names() and (found := cues(name)).has(table))


@cache
def ends() -> re.Pattern[str]:
    """Where a sentence ends: at its mark, with quotes and brackets behind it, or with the line; not at ``e.g.``."""
    short = "".join(rf"(?<!{row})" for language in all_cues("sentences") for row in language.phrases("sentences.short"))
    return re.compile(
        rf"(?<=[.!?]){short}[\"')\]*]{{0,3}}\s+|(?<=[\u3002\uff01\uff1f])[\u300d\u300f\uff09]{{0,3}}\s*|\n+"
    )


TRIVIAL = "trivial: "

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

_PROGRAMS = "cd|ls|ll|pwd|clear|exit|quit|whoami|date|history|top|htop|df|du|ps|jobs|fg|bg|reset"
_COMMANDS = rf"{_PROGRAMS}|git (?:status|log|diff|pull|push|fetch|add|stash|branch|show)"
_BEGINNINGS = ("$", "%", "❯", "➜", "/", "git ", *_PROGRAMS.split("|"))
"""How every command begins."""
_ARGUMENT = r"(?:-\S+|[\w.~*-]*[/.~*][\w./~*-]*)"
_COMMAND = regex(rf"[$%❯➜]\s+\S.{{0,38}}|(?:{_COMMANDS})(?:\s+{_ARGUMENT})*|/[a-z][\w-]*")
_WORD = regex(r"[^\W_]+(?:['\u2019][^\W\d_]+)*")
_UNSPACED = regex("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7ff]")


@cache  # takes milliseconds, and a filter is made for each facade
def _tree() -> dict[str, list[tuple[tuple[str, ...], str]]]:
    """Every phrase with its sort, by its first word, the longest first."""
    found: dict[str, list[tuple[tuple[str, ...], str]]] = {}
    for name, sort in _SORTS.items():
        for phrase in word_lists()["small_talk"][name].split(", "):
            words = tuple(phrase.split())
            found.setdefault(words[0], []).append((words, sort))
    for rows in found.values():
        rows.sort(key=lambda row: -len(row[0]))
    return found


@cache
def _neutral() -> frozenset[str]:
    """Words that may be between small talk without adding to it, and those one may be addressed by."""
    return frozenset(word_lists()["small_talk"]["neutral"].split())


class TrivialFilter:
    """Distinguishes greetings, acknowledgements, fragments and echoes from what someone may want to know again.

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
        if not any(character.isalpha() for character in text):
            signs = "nothing but numbers" if any(map(str.isdigit, text)) else "nothing but punctuation or signs"
            return signs if text else "empty"
        if len(text) > _LONGEST:
            return ""
        if text.startswith(_BEGINNINGS) and _COMMAND.fullmatch(text):
            return "an echo of a command"
        words = _words(text)
        return self._small_talk(words, text) or _fragment(words, text)

    def _small_talk(self, words: list[str], text: str) -> str:
        """The sort of the first phrase, where nothing but phrases and neutral words is said."""
        first, at = "", 0
        while at < len(words):
            phrases = _tree().get(words[at], ())
            found = (row for row in phrases if tuple(words[at : at + len(row[0])]) == row[0])
            phrase, sort = next(found, ((), ""))
            length = len(phrase)
            if length:
                first = first or sort
            elif words[at] not in _neutral() and not (first in _ADDRESSING and _is_address(words, at, text)):
                return ""
            at += length or 1
        return first


def _words(text: str) -> list[str]:
    """The words of a text, ``heyyyy`` as ``hey``: three letters in a row are one."""
    plain = unicodedata.normalize("NFKC", text).replace("\u2019", "'").casefold()
    return [re.sub(r"(\w)\1{2,}", r"\1", word) for word in _WORD.findall(plain)]


def _is_address(words: list[str], at: int, text: str) -> bool:
    """Whether the last word is the name of someone spoken to: ``Hi Bob``, ``thanks, Alice!``."""
    return at == len(words) - 1 <= 3 and any(
        word.istitle() and word.casefold() == words[at] for word in _WORD.findall(text)[1:]
    )


def _fragment(words: list[str], text: str) -> str:
    """Why a text is too little to mean anything; "" where it is enough."""
    letters = sum(character.isalnum() for character in text)
    if not text.isascii() and _UNSPACED.search(text):
        return "" if letters >= _FEWEST_LETTERS else "too short"
    if len(words) < _FEWEST_WORDS or letters < _FEWEST_LETTERS:
        says = re.search(r"\w[=:@/]\w", text)  # ``editor=vim``, a link, an address: short, and yet a fact
        return "" if says else "too short"
    return "one word over and over" if len(set(words)) == 1 else ""
