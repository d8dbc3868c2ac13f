"""The catalog: what bytes and kind alone decide about a file, in one SQLite file for all worktrees of a repository.

Processes and threads share the file. A fact that is damaged, or made by other rules, is not found: the caller makes
it again from the bytes.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from zlib import crc32

from memfs.catalog.database import Database, remove_base
from memfs.errors import IndexUnavailable, MemfsError
from memfs.format.codec import Codec
from memfs.format.item_fields import fields_of, fresh
from memfs.fs.lock import reset_on_fork
from memfs.fs.tree import Content
from memfs.model import MemoryItem, Stamp
from memfs.model.ids import stem_of
from memfs.model.time import EPOCH, from_timestamp_ns
from memfs.startup import Any, json

FILE = "catalog.sqlite"
_MOST_BYTES = 256 << 20
_MEASURED = 64
"""A process looks how large the file is with its first fact, and after each such part of what it may hold."""
_SCHEMA = (
    "CREATE TABLE IF NOT EXISTS facts (blob TEXT NOT NULL, kind TEXT NOT NULL, maker INTEGER NOT NULL, "
    "json TEXT NOT NULL, checksum INTEGER NOT NULL, PRIMARY KEY (blob, kind, maker)) WITHOUT ROWID"
)
_ASK, _ASKED_TOGETHER = "SELECT blob, kind, json, checksum FROM facts WHERE maker = ? AND blob IN ({})", 100

Key = tuple[str, str]
"""A content's id, and what else decides: the name of its kind, and whatever more the maker needs."""


def maker(extractor: str, rules: str) -> int:
    """The number of an extractor that works by these rules; under others it is another one."""
    return crc32(f"{extractor}\0{rules}".encode())


class Catalog:
    """The facts of one repository. May be used from several threads; processes share the file.

    It is bounded, and started over where it is damaged or too large. Where the disk does not take it, facts are kept in
    memory.
    """

    def __init__(self, folder: Path | None, texts: bool = True, most_bytes: int = _MOST_BYTES) -> None:
        """
        Args:
            folder: the repository's own in the user's cache; None keeps facts in memory.
            texts: whether the words of memories may be in the file; else there are none, and those there are removed.
            most_bytes: beyond this it is started over.
        """
        path = folder / FILE if folder is not None else None
        self._base = Database(path if texts else None, _SCHEMA, "", what="the catalog", durable=False)
        self._most = self._unmeasured = most_bytes
        if path is not None and not texts:
            remove_base(path)

    def found(self, made_by: int, wanted: Iterable[Key]) -> dict[Key, Any]:
        """The facts that this maker has of these contents, as far as they are kept."""
        keys = frozenset(wanted)
        blobs = [*{blob for blob, _ in keys}]

        def act(base: sqlite3.Connection) -> dict[Key, Any]:
            parts = [blobs[start : start + _ASKED_TOGETHER] for start in range(0, len(blobs), _ASKED_TOGETHER)]
            sound = {
                (blob, kind): fact
                for some in parts
                for blob, kind, fact, checksum in base.execute(_ASK.format(",".join("?" * len(some))), (made_by, *some))
                if (blob, kind) in keys and checksum == _checksum(blob, kind, made_by, fact)
            }
            return dict(zip(sound, json.loads(f"[{','.join(sound.values())}]"), strict=True))

        try:
            return self._base.ask(act)
        except IndexUnavailable:
            return {}

    def keep(self, made_by: int, made: Mapping[Key, str]) -> None:
        """Keep facts, each as JSON; where that cannot be done they are made again the next time."""
        rows = [(*key, made_by, fact, _checksum(*key, made_by, fact)) for key, fact in sorted(made.items())]

        def act(base: sqlite3.Connection) -> None:
            if self._unmeasured > self._most // _MEASURED:
                self._unmeasured = 0
                measures = ("page_count", "freelist_count", "page_size")
                pages, free, size = (base.execute(f"PRAGMA {name}").fetchone()[0] for name in measures)
                if (pages - free) * size > self._most:
                    base.execute("DELETE FROM facts")
            base.executemany("INSERT OR REPLACE INTO facts VALUES (?, ?, ?, ?, ?)", rows)

        if rows:
            self._unmeasured += sum([len(fact) for fact in made.values()])
            with suppress(IndexUnavailable):
                self._base.change(act)

    def close(self) -> None:
        """Release the file. May be repeated."""
        self._base.close()


def _checksum(blob: str, kind: str, made_by: int, fact: str) -> int:
    return crc32(f"{blob}\0{kind}\0{made_by}\0{fact}".encode())


_FORM = 2
_AT_ONCE = 500
_LONGEST = 1 << 16
_MOST_HELD, _SHORT = 4096, 4096
_CHANGEABLE = frozenset({"context", "metadata", "data", "conflicts"})
# What making an item of a fact raises that another program wrote.
_UNFIT = (MemfsError, ValueError, TypeError, LookupError, AttributeError)


WrittenItem = tuple[MemoryItem, Stamp, "Mapping[str, Any] | None"]
"""An item that was written, the stamp of its file, and what that says, where it is known."""


class ItemCatalog:
    """Makes items of files, by the facts that are kept of their contents. May be used from several threads.

    A fact holds what the file says: id and path follow from where it is, and a time that it does not name from the
    file. It knows whether the schema was asked about it. What is above 64 KiB is not kept. Short
    items that were asked for are also kept in memory, by path and stamp.

    Attributes:
        catalog: where they are kept, for anyone who adds facts about the same contents.
        codec: how files are read.
    """

    def __init__(self, catalog: Catalog, codec: Codec) -> None:
        self.catalog, self.codec = catalog, codec
        self._maker = maker("item", f"{_FORM} {codec.rules}")
        self._fresh: dict[Key, str] = {}
        self._held: dict[str, tuple[tuple[str, int], MemoryItem, bool]] = {}
        self._guard = threading.Lock()
        reset_on_fork(self)

    def known(self, stamps: Mapping[str, Stamp], *, checked: bool = True) -> dict[str, MemoryItem]:
        """The items in files that are known to hold these contents, by path, as far as facts say what they are.

        Args:
            checked: these very bytes obeyed the schema before.
        """
        found: dict[str, MemoryItem] = {}
        keys: dict[str, Key] = {}
        for path, stamp in stamps.items():
            row = self._held.get(path)
            if row is not None and row[0] == (stamp.blob, stamp.mtime_ns) and (checked or row[2]):
                found[path] = row[1]
            else:
                keys[path] = self.key(path, stamp.blob)
        facts = self.catalog.found(self._maker, keys.values()) if keys else {}
        twins = len(facts) < len(keys)
        for path, key in keys.items():
            try:
                mapping, sha256, obeys = fact = facts.pop(key)  # two items share nothing that can be changed
                if twins:
                    facts[key] = json.loads(json.dumps(fact))
                if checked or self.codec.allows(mapping, path, checked=obeys is True):
                    kind, named = key[1].removesuffix(".json"), mapping.get("timestamp") or mapping.get("created")
                    modified = EPOCH if named else from_timestamp_ns(stamps[path].mtime_ns)
                    fields = fields_of(mapping, kind, modified, id=stem_of(path), path=path, sha256=sha256)
                    found[path] = item = MemoryItem(**fields)
                    self._hold(stamps[path], item, not checked or obeys is True, fields)
            except _UNFIT:
                continue
        return found

    def _hold(self, stamp: Stamp, item: MemoryItem, obeys: bool, fields: Iterable[str]) -> None:
        """Keep a short item in memory, unless it has a value that a caller could change."""
        if stamp.size <= _SHORT and _CHANGEABLE.isdisjoint(fields):
            if len(self._held) >= _MOST_HELD:
                self._held = {}
            self._held[item.path] = (stamp.blob, stamp.mtime_ns), item, obeys

    def hold(self, item: MemoryItem, stamp: Stamp) -> None:
        """Keep in memory what a file says that was just written, if it is short: the schema allowed it."""
        self._hold(stamp, item, True, [name for name in _CHANGEABLE if getattr(item, name)])

    def read(self, path: str, content: Content, *, checked: bool = False, keep: bool = False) -> MemoryItem:
        """The item in bytes that were just read from a file, parsed only where no fact says what they hold.

        Args:
            checked: as ``known``.
            keep: make it a fact, from the next ``flush`` on; for bytes that may be in the user's cache.

        Raises:
            ContentError, IdInvalid: as ``Codec.read``.
        """
        known = self.known({path: content.stamp}, checked=checked).get(path)
        return known or self.parse(path, content, checked=checked, keep=keep)

    def parse(self, path: str, content: Content, *, checked: bool = False, keep: bool = False) -> MemoryItem:
        """As ``read``, for bytes of which ``known`` has no fact."""
        modified = from_timestamp_ns(content.stamp.mtime_ns)
        item, mapping = self.codec.decoded(content.data, path, modified, checked=checked)
        if keep and len(content.data) <= _LONGEST:
            with self._guard:
                self._fresh[self.key(path, content.stamp.blob)] = json.dumps([mapping, item.sha256, not checked])
                full = len(self._fresh) >= _AT_ONCE
            if full:
                self.flush()
        return item

    def keep(self, written: Iterable[WrittenItem]) -> None:
        """Keep what files say that were just written, so that they need not be parsed: the schema allowed each."""
        for item, stamp, mapping in written:
            with suppress(*_UNFIT), self._guard:  # the write itself has succeeded
                if stamp.size <= _LONGEST:
                    fact = json.dumps([mapping or fresh(item), item.sha256, True])
                    self._fresh[self.key(item.path, stamp.blob)] = fact
        self.flush()

    def flush(self) -> None:
        """Keep what was read, for every process."""
        with self._guard:
            waiting, self._fresh = self._fresh, {}
        if waiting:
            self.catalog.keep(self._maker, waiting)

    def close(self) -> None:
        """Keep what was read, and release the catalog. May be repeated."""
        self.flush()
        self.catalog.close()

    def after_fork(self) -> None:
        """Leave what waits to the parent."""
        self._fresh = {}

    def key(self, path: str, blob: str) -> Key:
        """What decides about an item: its bytes, how they are read, and its kind, which follows from its folder.

        Raises:
            SchemaInvalid: the folder belongs to no kind.
        """
        kind = self.codec.kind_at(path)
        return blob, f"{kind.name}.json" if path.endswith(".json") else kind.name
