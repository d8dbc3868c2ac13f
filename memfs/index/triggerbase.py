"""Trigger base: the rows of episodes and rules in a file of the user's cache, so that no process reads them all again.

Owns what of a row is kept in which form. The file is ``memfs.index.rowbase``'s.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from memfs.index.rowbase import RowBase
from memfs.model.triggerrow import TriggerRow

FILE = "triggers.sqlite"
_LISTS = {"files", "warned", "supersedes"}
_TERMS = {"words", "deeds"}
_PLACES = {name: place for place, name in enumerate(TriggerRow._fields)}
_LIST_PLACES = sorted(_PLACES[name] for name in _LISTS)
_SORTS = tuple(map(type, TriggerRow(id="", path="", blob="", sort="")))
_TERM_PLACES = sorted(_PLACES[name] for name in _TERMS)


class TriggerBase:
    """The kept rows of one workspace. Shared by threads and processes.

    Raises (every method):
        IndexUnavailable: the file gives no answer, and neither does a new one.
    """

    def __init__(self, folder: Path, made_by: str) -> None:
        """
        Args:
            folder: the workspace's own in the user's cache.
            made_by: names the rules by which rows are made; those made by others are dropped.
        """
        self._base = RowBase(folder, made_by, file=FILE, what="the index of episodes and rules")

    def load(self) -> list[TriggerRow]:
        """All rows that are kept."""
        return self._base.load(_rows)

    def keep(self, rows: Iterable[TriggerRow], gone: Iterable[str] = ()) -> None:
        """Keep rows in place of what their files had, and drop those of other files."""
        self._base.keep([(row.path, row.blob, _values(row)) for row in rows], gone)

    def clear(self) -> None:
        """Forget everything."""
        self._base.clear()

    def close(self) -> None:
        """Release the file."""
        self._base.close()


def _values(row: TriggerRow) -> list[Any]:
    values: list[Any] = list(row)
    for place in _TERM_PLACES:
        values[place] = " ".join(values[place])
    return values


def _rows(kept: list[Any]) -> list[TriggerRow]:
    known: dict[str, str] = {}
    return [_row(values, known) for values in kept]


def _row(values: list[Any], known: dict[str, str]) -> TriggerRow:
    """The row again; equal words of all rows are one text in memory."""
    for place in _LIST_PLACES:
        values[place] = tuple(values[place])
    for place in _TERM_PLACES:
        words = str(values[place]).split(" ") if values[place] else []
        values[place] = tuple(map(known.setdefault, words, words))
    if tuple(map(type, values)) != _SORTS:
        raise ValueError("a row is damaged")
    return TriggerRow._make(values)
