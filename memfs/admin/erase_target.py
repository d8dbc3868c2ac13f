"""Find every version of an item that anything ever held, and the phrases that betray it.

Texts that only quote the item are no copies. Reads history, journal and displaced contents; changes nothing.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any

from memfs.dataclass import dataclass
from memfs.errors import MemfsError
from memfs.fs.journal import FileChange
from memfs.git.refs import HEX
from memfs.git.rewrite import Survey, Versions
from memfs.git.rewrite_text import Traces
from memfs.model.ids import stem_of
from memfs.model.state_paths import document_kind
from memfs.model.time import utc_now
from memfs.store.parts import CONTENT, ITEM_SUFFIXES, Parts, content_at
from memfs.store.plan import excerpt
from memfs.store.recovery import all_aside

_PHRASE = 12
_WHOLE = 8
_MOST_PHRASES = 200
_TRIVIAL = 8
_KEY = re.compile(r"^[\s-]*(?:\"?[A-Za-z_][\w.-]*\"?\s*:\s*)?[|>]?[-+]?\s*")


@dataclass(frozen=True, slots=True, kw_only=True)
class EraseName:
    """How a person names what is to be erased: an id, or the path of a file or folder below the workspace."""

    reference: str
    is_path: bool

    def means(self, path: str) -> bool:
        """Whether a path of the workspace is meant."""
        if self.is_path:
            return path == self.reference or path.startswith(self.reference + "/")
        inside = path.startswith(CONTENT + "/") and path.endswith(ITEM_SUFFIXES)
        return inside and not document_kind(path) and stem_of(path).casefold() == self.reference.casefold()


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """What is to be erased.

    Attributes:
        paths: the paths it had, below the top of the working tree, as git names them.
        blobs: its versions; ``cuts``: by tree, the names under which something trivial of it was.
        copies: other paths at which one of its versions was.
        loose: how many of the versions no commit holds.
        traces: what betrays it.
        quotes: files that hold a line of it and stay.
        gone: every object that an interrupted erase was about to remove.
    """

    named: EraseName
    paths: frozenset[bytes]
    blobs: frozenset[str]
    cuts: Mapping[str, frozenset[bytes]]
    copies: tuple[bytes, ...]
    loose: int
    traces: Traces
    quotes: tuple[str, ...]
    gone: frozenset[str] = frozenset()

    def means(self, path: bytes) -> bool:
        """Whether a path below the top of the working tree goes."""
        return path in self.paths or path in self.copies


def to_record(target: Target) -> dict[str, Any]:
    """What ``from_record`` makes the target of again, where an erase is interrupted."""
    return {
        "reference": target.named.reference,
        "is_path": target.named.is_path,
        "paths": sorted(os.fsdecode(path) for path in target.paths),
        "blobs": sorted(target.blobs),
        "versions": [sorted(phrase.hex() for phrase in version) for version in target.traces.versions],
        "names": [name.hex() for name in target.traces.names],
    }


def from_record(record: Mapping[str, Any]) -> Target:
    """The target that an interrupted erase has noted.

    Raises:
        ValueError, KeyError, TypeError: something in it is not what ``to_record`` writes.
    """
    if type(record["is_path"]) is not bool or not all(map(HEX.fullmatch, (*record["blobs"], *record["gone"]))):
        raise ValueError("it names no object")
    versions = (frozenset(map(bytes.fromhex, version)) for version in record["versions"])
    return Target(
        named=EraseName(reference=os.fsdecode(record["reference"]), is_path=record["is_path"]),
        paths=frozenset(map(os.fsencode, record["paths"])),
        blobs=frozenset(record["blobs"]),
        cuts={},
        copies=(),
        loose=0,
        traces=Traces(versions=tuple(versions), names=tuple(map(bytes.fromhex, record["names"]))),
        quotes=(),
        gone=frozenset(record["gone"]),
    )


class TargetFinder:
    """Finds the target in one workspace and one survey of its repository."""

    def __init__(self, parts: Parts, survey: Survey, named: EraseName, known: Target | None = None) -> None:
        self._parts = parts
        self._survey = survey
        self._named = named
        self._known = known

    def find(self) -> Target:
        """Everything the name stands for; what an interrupted erase knew already is part of it."""
        names, versions = self._versions()
        blobs = set(versions.blobs)
        contents = [(names_of(versions.blobs, blob), data) for blob, data in self._survey.contents(blobs)]
        trivial = {self._parts.repository.blob_id(data) for _, data in contents if len(data.strip()) < _TRIVIAL}
        texts = [(path, data) for path, data in contents if len(data.strip()) >= _TRIVIAL]
        texts += [(change.path, change.data or b"") for change in self._elsewhere()]
        blobs = (blobs - trivial) | (self._survey.facts.keys() & (self._known.blobs if self._known else ()))
        traces = self._traces(texts, names | set(self._said(texts)))
        lines = {line.strip() for _, data in texts for line in data.splitlines() if len(line.strip()) >= _WHOLE}
        loose, quotes = self._look_through(blobs, traces, lines)
        blobs |= loose
        paths = {path for found in versions.blobs.values() for path in found}
        paths |= self._known.paths if self._known else set()
        copies = set(self._survey.paths(blobs)) - paths
        return Target(
            named=self._named,
            paths=frozenset(paths),
            blobs=frozenset(blobs),
            cuts={tree: frozenset(cut) for tree, cut in versions.cuts.items()},
            copies=tuple(sorted(copies)),
            loose=len(loose),
            traces=traces,
            quotes=quotes,
        )

    # -- versions -------------------------------------------------------------------------------------------------
    def _versions(self) -> tuple[set[str], Versions]:
        """The item's names and versions; a name under which only its bytes were, and which is gone, is one of them."""
        repository = self._parts.repository
        folder = repository.full(CONTENT)
        former: set[str] = set()
        while True:
            current = frozenset(former)

            def means(path: bytes, current: frozenset[str] = current) -> bool:
                inner = repository.below(path)
                return inner is not None and (self._named.means(inner) or inner in current)

            versions = self._survey.versions(folder, means)
            big = [blob for blob in versions.blobs if self._survey.facts[blob].size >= _TRIVIAL]
            found = {inner for path in self._survey.paths(big) if (inner := self._former(path)) is not None}
            if found <= former:
                break
            former |= found
        paths = {os.fsdecode(path) for found in versions.blobs.values() for path in found}
        names = {stem_of(path) for path in paths} | (set() if self._named.is_path else {self._named.reference})
        return names, versions

    def _former(self, path: bytes) -> str | None:
        inner = self._parts.repository.below(path)
        if inner is None or not inner.startswith(CONTENT + "/") or not inner.endswith(ITEM_SUFFIXES):
            return None
        return inner if self._parts.repository.head_blob(inner) is None and not self._named.means(inner) else None

    def _elsewhere(self) -> Iterator[FileChange]:
        """Versions outside git's objects: those in no commit, those that wait, and those that were set aside."""
        for entry in self._parts.tree.scan(CONTENT):
            own = self._parts.is_local(entry.path) and self._named.means(entry.path)
            found = content_at(self._parts.tree, entry.path) if own else None
            if found is not None:
                yield FileChange(path=entry.path, old="", new="", data=found.data)
        secondary = self._parts.secondary
        for operation in (*self._parts.journal.operations(), *(secondary.operations() if secondary else ())):
            yield from (change for change in operation.changes if change.data and self._named.means(change.path))
        for _, path, data in all_aside(self._parts.repository.state):
            if self._named.means(path):
                yield FileChange(path=path, old="", new="", data=data)

    # -- phrases --------------------------------------------------------------------------------------------------
    def _traces(self, texts: Iterable[tuple[str, bytes]], names: set[str]) -> Traces:
        versions = [frozenset(self._phrases(path, data)) for path, data in texts]
        if self._known:
            versions += self._known.traces.versions
            names = names | {os.fsdecode(name) for name in self._known.traces.names}
        unique = dict.fromkeys(version for version in versions if version)
        return Traces(versions=tuple(unique), names=tuple(sorted(os.fsencode(name) for name in names if name)))

    def _said(self, texts: Iterable[tuple[str, bytes]]) -> Iterator[str]:
        """What commits call the item: each version's first words."""
        for path, data in texts:
            with suppress(MemfsError):
                yield excerpt(self._parts.codec.read(data, path, utc_now()))

    def _phrases(self, path: str, data: bytes) -> list[bytes]:
        try:
            item = self._parts.codec.read(data, path, utc_now())
        except MemfsError:
            values = [_KEY.sub("", line).strip("\"'") for line in data.decode("utf-8", "replace").splitlines()]
        else:
            whole = item.content.strip()
            short = [whole.encode("utf-8", "surrogatepass")] if _WHOLE <= len(whole) < _PHRASE else []
            return short + _long([item.title, *item.content.splitlines(), *_texts(item.data)])
        return _long(values)

    # -- what else holds it ---------------------------------------------------------------------------------------
    def _look_through(self, blobs: set[str], traces: Traces, lines: set[bytes]) -> tuple[set[str], tuple[str, ...]]:
        """Blobs that no commit holds and that have a line only the item has; and files that quote it."""
        others = [name for name in self._survey.of_kind("blob") if name not in blobs]
        marks = lines.union(traces.phrases)
        marked: dict[str, set[bytes]] = {}
        quoting = set()
        for name, data in self._survey.contents(others):
            found = {mark for mark in marks if mark in data}
            if found:
                marked[name] = found
            if found and traces.quoted_in(data):
                quoting.add(name)
        if not marked:
            return set(), ()
        committed = self._survey.committed()
        held = {blob for tree, found in self._survey.holding(marked).items() if tree in committed for blob in found}
        shared: set[bytes] = set().union(*(marked[blob] for blob in held))
        loose = {blob for blob, found in marked.items() if blob not in held and found - shared}
        return loose, quoted_at(self._survey, quoting & held)


def quoted_at(survey: Survey, blobs: Collection[str]) -> tuple[str, ...]:
    """The paths of some blobs in any commit; that of a note is the id of what it is about."""
    found = sorted(os.fsdecode(path) for path in survey.paths(blobs)) if blobs else []
    return tuple(f"git note on {name}" if HEX.fullmatch(name := path.replace("/", "")) else path for path in found)


def names_of(paths: Mapping[str, set[bytes]], blob: str) -> str:
    """One of the paths of a blob, for reading it."""
    path = os.fsdecode(min(paths[blob]))
    at = path.find(CONTENT + "/")
    return path[at:] if at >= 0 else path


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield from value.splitlines()
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from _texts(inner)
    elif isinstance(value, (list, tuple)):
        for inner in value:
            yield from _texts(inner)


def _long(values: Iterable[str]) -> list[bytes]:
    found = {value.strip() for value in values if len(value.strip()) >= _PHRASE}
    return [value.encode("utf-8", "surrogatepass") for value in sorted(found, key=len, reverse=True)[:_MOST_PHRASES]]
