"""Cues: the wordings by which a text shows what it is, from one data file for each language.

``memfs/languages/<language>.toml`` holds lists of regular expressions, and of plain phrases, in tables. A file is read
when a table is first needed, and an expression compiled when it is first matched. A language is added by its file
alone.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from functools import cache
from typing import Any

from memfs.resources import language_names, language_text
from memfs.search.analyzer import text_languages

_FRAGMENT = re.compile(r"\{\{(\w+)\}\}")
_INDENT = re.compile(r"(?m)^ +")


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
    return Cues(language, tomllib.loads(language_text(language)))


@cache
def all_cues(table: str) -> tuple[Cues, ...]:
    """The languages that have cues of a sort, English first. The files of others are not parsed."""
    names = sorted(language_names(), key=lambda name: (name != "en", name))
    found = (cues(name) for name in names if f"[{table}" in language_text(name))
    return tuple(one for one in found if one.has(table))


def cues_for_text(table: str, text: str) -> tuple[Cues, ...]:
    """The languages that have cues of a sort and that a text may be in, English first: it may always be."""
    told = dict.fromkeys(("en", *text_languages(text)))
    return tuple(found for name in told if name in language_names() and (found := cues(name)).has(table))


@cache
def ends() -> re.Pattern[str]:
    """Where a sentence ends: at its mark, with quotes and brackets behind it, or with the line; not at ``e.g.``."""
    short = "".join(rf"(?<!{row})" for language in all_cues("sentences") for row in language.phrases("sentences.short"))
    return re.compile(
        rf"(?<=[.!?]){short}[\"')\]*]{{0,3}}\s+|(?<=[\u3002\uff01\uff1f])[\u300d\u300f\uff09]{{0,3}}\s*|\n+"
    )
