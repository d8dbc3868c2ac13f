"""Conflict scan: items that nobody compared with what was there, such as files written by hand or pulled.

Owns which items still have to be compared, and the note in the user's cache that spares the next scan what has not
changed since. The note is never believed: what it names is judged again from the files. What becomes of a
contradiction, it does not know.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from memfs.errors import MemfsError, StorageIO
from memfs.files import io
from memfs.model import MemoryItem
from memfs.pipeline.conflictrecord import holds
from memfs.pipeline.contradictions import traces
from memfs.pipeline.neighbours import Neighbourhood, is_momentary, may_meet
from memfs.pipeline.wording import gist
from memfs.store import Store
from memfs.store.parts import Parts
from memfs.version import __version__

Step = Callable[[int, int], None]
"""Told how many are done, and of how many."""

FILE = "compared.json"
_LARGEST = 64 << 20
_STEP = 200
_AT_ONCE = 20_000
_MOST_OTHERS = 32
"""With so many others of those that say nearly the same an item is compared."""
_MOST_FOUND = 5


@dataclass(slots=True)
class _Note:
    """By path the content that was compared, and the pairs that were found to contradict each other."""

    compared: dict[str, str] = field(default_factory=dict)
    pairs: set[tuple[str, str]] = field(default_factory=set)


class ConflictScan:
    """Compares the items of one workspace."""

    def __init__(self, store: Store, parts: Parts) -> None:
        self._store = store
        self._parts = parts
        self._neighbourhood = Neighbourhood(store, parts.kinds)

    def found(self) -> set[tuple[str, str]]:
        """The pairs of ids that the last scan found; whether they contradict each other still is not said."""
        return self._read().pairs

    def scan(self, step: Step | None = None) -> set[tuple[str, str]]:
        """Compare every item that changed since the last scan with all others; the pairs of all scans.

        Every file is read for it, where one changed. Of many that say nearly the same only some are compared.
        """
        self._store.follow()
        note = self._read()
        stamps = {path: stamp.blob for path, (_, stamp) in self._parts.index.stamps().items()}
        changed = {path for path, blob in stamps.items() if note.compared.get(path) != blob}
        if changed or note.compared.keys() != stamps.keys():
            texts = self._texts(stamps, step) if changed else {}
            note.pairs.update(self._pairs(texts, changed))
            there = {name for name, _ in self._parts.index.stamps().values()}
            note.pairs = {pair for pair in note.pairs if there.issuperset(pair)}
            note.compared = stamps
            self._write(note)
        return note.pairs

    def objection(self, one: MemoryItem, other: MemoryItem) -> str:
        """Why the two cannot both hold, "" where they can."""
        if one.id in other.supersedes or other.id in one.supersedes or not may_meet(one, other):
            return ""
        return self._neighbourhood.objection(one, other)

    # -- comparing ------------------------------------------------------------------------------------------------
    def _texts(self, paths: Collection[str], step: Step | None) -> dict[str, str]:
        """What each item says that may contradict another."""
        now = self._parts.clock()
        found = {}
        for done, path in enumerate(paths):
            if step is not None and done % _STEP == 0:
                step(done, len(paths))
            item = self._load(path)
            if item is not None and not is_momentary(item) and holds(item, now):
                found[path] = gist(item)
        if step is not None:
            step(len(paths), len(paths))
        return found

    def _pairs(self, texts: Mapping[str, str], changed: Collection[str]) -> set[tuple[str, str]]:
        """The pairs that contradict each other, of which one changed at least."""
        found: set[tuple[str, str]] = set()
        for path, others in _candidates(texts, changed):
            item = self._load(path)
            against = 0
            for other in map(self._load, others):
                if item is None or against == _MOST_FOUND:
                    break
                if other is not None and other.id != item.id and self.objection(item, other):
                    found.add(in_order(item.id, other.id))
                    against += 1
        return found

    def _load(self, path: str) -> MemoryItem | None:
        try:
            return self._store.read(path)
        except (MemfsError, FileNotFoundError):  # 'check' names what cannot be read
            return None

    # -- the note -------------------------------------------------------------------------------------------------
    def _path(self) -> Path:
        return self._parts.index.folder / FILE

    def _read(self) -> _Note:
        """The note; an empty one where there is none that can be understood, so that all is compared anew."""
        try:
            written = json.loads(io.read_file(self._path(), _LARGEST))
        except (MemfsError, FileNotFoundError, ValueError, RecursionError):
            return _Note()
        return _understood(written)

    def _write(self, note: _Note) -> None:
        values = {"version": __version__, "compared": note.compared, "pairs": sorted(note.pairs)}
        with suppress(StorageIO, FileNotFoundError):  # without it the next scan takes longer
            io.write_file(self._path(), json.dumps(values).encode(), durable=False)


def _candidates(texts: Mapping[str, str], changed: Collection[str]) -> Iterator[tuple[str, list[str]]]:
    """Each item that changed, with the others that it may contradict.

    Traces take more room than texts: of many items some are looked at in a pass, and made anew for the next.
    """
    passes = len(texts) // _AT_ONCE + 1
    for turn in range(passes):
        places: dict[int, list[str]] = {}
        for path, text in texts.items():
            for trace in traces(text):
                if trace % passes == turn:
                    places.setdefault(trace, []).append(path)
        beside: dict[str, dict[str, None]] = {}
        for paths in places.values():
            if len(paths) > 1:
                for at, path in enumerate(paths):
                    if path in changed:
                        near = paths[max(0, at - _MOST_OTHERS // 2) : at + _MOST_OTHERS // 2]
                        beside.setdefault(path, {}).update(dict.fromkeys(near))
        for path, others in beside.items():
            yield path, [other for other in others if other != path][:_MOST_OTHERS]


def in_order(one: str, other: str) -> tuple[str, str]:
    """A pair of ids, the same whichever is named first."""
    return (one, other) if one < other else (other, one)


def _understood(written: Any) -> _Note:
    if not isinstance(written, dict) or written.get("version") != __version__:
        return _Note()
    compared, pairs = written.get("compared"), written.get("pairs")
    if not isinstance(compared, dict) or not isinstance(pairs, list):
        return _Note()
    found = {(one[0], one[1]) for one in pairs if isinstance(one, list) and len(one) == 2 and _are_texts(one)}
    return _Note({path: blob for path, blob in compared.items() if isinstance(blob, str)}, found)


def _are_texts(values: list[Any]) -> bool:
    return all(isinstance(value, str) for value in values)
