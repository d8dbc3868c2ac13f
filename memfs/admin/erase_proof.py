"""Prove an erase: read once more everything that could hold the item.

Changes nothing.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from memfs.admin.erase_purge import abandoned, caches_of
from memfs.admin.erase_target import Target, quoted_at
from memfs.errors import MemfsError
from memfs.fs import io
from memfs.git.busy import ERASE_FOLDER
from memfs.git.rewrite_survey import Survey
from memfs.git.rewrite_text import edit_commit, edit_tag
from memfs.store.parts import CONTENT, Parts

_PIECE = 4 << 20
_KEEP_OUT = ("hooks", "modules")


@dataclass(frozen=True, slots=True, kw_only=True)
class EraseProof:
    """What was looked at, and what was found.

    Attributes:
        objects, files, bytes: how much was read; objects are read unpacked, files as they lie on disk.
        places: how many of those files by place.
        hits: where a version of the item, or one of its lines where no line of it may be, still is.
        quotes: files that stay and hold a line of it.
    """

    objects: int
    files: int
    bytes: int
    places: dict[str, int]
    hits: tuple[str, ...]
    quotes: tuple[str, ...]


class Prover:
    """Looks for one target in one workspace."""

    def __init__(self, parts: Parts, target: Target) -> None:
        self._parts = parts
        self._target = target
        self._traces = target.traces
        self._words = target.traces.telling
        self._hits: list[str] = []
        self._files = 0
        self._bytes = 0
        self._quoting: list[str] = []

    @staticmethod
    def nothing() -> EraseProof:
        """The proof before anything was looked at."""
        return EraseProof(objects=0, files=0, bytes=0, places={}, hits=(), quotes=())

    def prove(self) -> EraseProof:
        """Read everything."""
        survey = Survey(self._parts.repository)
        self._objects(survey)
        places = {name: self._scan(name, paths) for name, paths in self._places().items()}
        return EraseProof(
            objects=len(survey.facts),
            files=self._files,
            bytes=self._bytes,
            places=places,
            hits=tuple(self._hits),
            quotes=self._quotes(survey),
        )

    # -- git's objects --------------------------------------------------------------------------------------------
    def _objects(self, survey: Survey) -> None:
        self._hits += [f"object {blob} is still there" for blob in sorted(self._target.blobs & survey.facts.keys())]
        folder = self._parts.repository.full(CONTENT)
        left = survey.versions(folder, self._target.paths.__contains__)
        self._hits += [
            f"{os.fsdecode(path)} is still in a commit" for path in sorted(set().union(*left.blobs.values()))
        ]
        held = self._held(survey)
        for name, data in survey.contents(survey.facts):
            self._bytes += len(data)
            if self._is_hit(survey.facts[name].kind, name, data, held):
                self._hits.append(f"{survey.facts[name].kind} {name} holds it")

    def _is_hit(self, kind: str, name: str, data: bytes, held: set[str]) -> bool:
        if kind == "blob":
            return self._traces.copied_in(data) and name not in held
        if kind == "tree":
            return any(b" %s." % word in data for word in self._words)
        if kind == "commit":
            return edit_commit(data, {}, self._traces, names=False) != data
        return kind == "tag" and edit_tag(data, {}, self._traces) != data

    def _held(self, survey: Survey) -> set[str]:
        """The blobs that some commit holds: files of others, which may quote the item."""
        blobs = survey.contents(survey.of_kind("blob"))
        self._quoting = quoting = [name for name, data in blobs if self._traces.quoted_in(data)]
        return {blob for found in survey.holding(quoting).values() for blob in found}

    def _quotes(self, survey: Survey) -> tuple[str, ...]:
        return quoted_at(survey, self._quoting)

    # -- files ----------------------------------------------------------------------------------------------------
    def _places(self) -> dict[str, list[Path]]:
        """Files by the place they belong to."""
        parts = self._parts
        common, state = parts.repository.common_dir, parts.repository.common_dir / "memfs"
        record = parts.repository.state / ERASE_FOLDER
        places: dict[str, list[Path]] = {
            "packs and loose objects": list(_files(common / "objects")),
            "reflogs": list(_files(common / "logs")),
            "journal and state": [path for path in _files(state) if not path.is_relative_to(record)],
            "caches": [path for cache in caches_of(parts) for path in _files(cache.folder)],
            "folders that branches left": [path for root in abandoned(parts) for path in _files(root / CONTENT)],
        }
        seen = {common / "objects", common / "logs", state, *(common / name for name in _KEEP_OUT)}
        places["other files of git"] = [
            path for path in _files(common) if not any(path.is_relative_to(folder) for folder in seen)
        ]
        if parts.secondary is not None:
            places["secondary location"] = list(_files(parts.secondary.folder))
        return places

    def _scan(self, place: str, paths: list[Path]) -> int:
        for path in paths:
            found = self._in_file(path)
            if found:
                self._hits.append(f"{place}: {path} holds it")
        return len(paths)

    def _in_file(self, path: Path) -> bool:
        longest = max(map(len, (*self._traces.phrases, *self._words)), default=1)
        rest = b""
        try:
            fd = io.open_file(path, os.O_RDONLY | os.O_NONBLOCK)
        except (OSError, MemfsError):
            return False
        try:
            self._files += 1
            while piece := os.read(fd, _PIECE):
                self._bytes += len(piece)
                if self._traces.quoted_in(rest + piece) or any(word in rest + piece for word in self._words):
                    return True
                rest = piece[-longest:]
        finally:
            os.close(fd)
        return False


def _files(folder: Path) -> Iterator[Path]:
    for place, _, names in os.walk(folder):
        for name in sorted(names):
            path = Path(place) / name
            if path.is_file() and not path.is_symlink():
                yield path
