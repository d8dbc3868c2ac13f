"""Agents' block: what the team agreed on, in the file that agents read on their own (``AGENTS.md``, ``CLAUDE.md``).

Owns which file may hold the block, and that nobody's save of the same moment is lost. What the block says is the
business of ``memfs.sources.agents_text``, how it lies among other bytes that of ``memfs.sources.agents_marks``.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from memfs.errors import PathEscape
from memfs.files import sharedfile
from memfs.files.ownpath import is_own, names_git
from memfs.pipeline.conventions import ACCEPTED, Convention, Conventions, told
from memfs.pipeline.preferences import Preference
from memfs.sources import agents_marks as marks
from memfs.sources.agents_text import block_text
from memfs.store.parts import CONTENT

FILE = "AGENTS.md"
MOST_PREFERENCES = 100
"""So many of them the block says at most."""


class Standing(StrEnum):
    """How a file stands to what is agreed on."""

    CURRENT = "current"
    STALE = "stale"
    MISSING = "missing"
    EDITED = "edited"


class Done(StrEnum):
    """What became of a file."""

    CREATED = "created"
    WRITTEN = "written"
    UPDATED = "updated"
    SAME = "same"
    REMOVED = "removed"
    DELETED = "deleted"
    NOTHING = "nothing"


@dataclass(frozen=True, slots=True, kw_only=True)
class Looked:
    """How a file stands: ``line`` is where its block begins, 0 where there is none; ``wanted`` what it is to say."""

    path: Path
    standing: Standing
    wanted: str
    line: int = 0
    preferences: bool = False


class AgentsBlock:
    """Keeps the block of one workspace."""

    def __init__(
        self, root: Path, top: Path, conventions: Conventions, preferences: Callable[[], Sequence[Preference]]
    ) -> None:
        """
        Args:
            root: the folder in which ``AGENTS.md`` lies by default: the workspace, or the code's working tree.
            top: the top folder of the working tree around it; no file outside it is touched.
            conventions: where they are read.
            preferences: gives all that hold.
        """
        self._root = Path(os.path.realpath(root))
        self._top = Path(os.path.realpath(top))
        self._conventions = conventions
        self._preferences = preferences

    @property
    def folder(self) -> Path:
        """In which ``AGENTS.md`` lies by default."""
        return self._root

    def beside(self, folder: Path) -> AgentsBlock:
        """The block in another folder, which is a working tree of the same repository, or is in it."""
        if folder == self._root:
            return self
        return AgentsBlock(folder, folder, self._conventions, self._preferences)

    # -- what it says ---------------------------------------------------------------------------------------------
    def text(self, preferences: bool = False) -> str:
        """What stands between the marks: what is agreed on, and that a person stands behind (P6); "" for nothing."""
        wishes = self._preferences() if preferences else ()
        return block_text(told(self._conventions.holding()), wishes)

    def left_out(self) -> list[Convention]:
        """What is agreed on and yet not told, as nobody stands behind it."""
        held = self._conventions.holding(status=ACCEPTED)
        vouched = {one.id for one in told(held)}
        return [one for one in held if one.id not in vouched]

    # -- the file -------------------------------------------------------------------------------------------------
    def check(self, path: str | os.PathLike[str] | None = None, preferences: bool | None = None) -> Looked:
        """How a file stands. With nothing to say and no block, it is current.

        Args:
            path: the file; ``AGENTS.md`` in the workspace by default.
            preferences: whether they belong into it; None means as it was written.

        Raises:
            ContentError: its marks are damaged. PathEscape, NotRegularFile: no block belongs there. StorageIO.
        """
        place = self._place(path)
        data = sharedfile.read(place)
        block = marks.find(data, place.name) if data is not None else None
        return self._looked(place, block, preferences)

    def write(
        self, path: str | os.PathLike[str] | None = None, *, preferences: bool | None = None, force: bool = False
    ) -> Done:
        """Put the block into a file, or bring it up to date; all other bytes stay as they are.

        With nothing to say, a block that is there goes. A link is followed where it stays within the repository. What
        somebody saves in the same moment is kept.

        Args:
            path, preferences: as for ``check``; ``AGENTS.md`` is made where there is none.
            force: overwrite a block that somebody edited.

        Raises:
            Conflict: somebody edited the block, or keeps saving the file.
            ContentError, PathEscape, NotRegularFile, StorageIO: nothing was changed.
        """

        def change(data: bytes | None, place: Path) -> tuple[bytes | None, Done]:
            block = marks.find(data, place.name) if data is not None else None
            looked = self._looked(place, block, preferences)
            if looked.standing is Standing.CURRENT:
                return data, Done.SAME if block is not None else Done.NOTHING
            if block is not None and not force:
                marks.refuse_edited(block, place.name)
            if not looked.wanted:
                return self._taken_out(data, block)
            after = marks.placed(data, block, looked.wanted, looked.preferences)
            return after, Done.UPDATED if block is not None else Done.CREATED if data is None else Done.WRITTEN

        return self._change(path, change)

    def remove(self, path: str | os.PathLike[str] | None = None, *, force: bool = False) -> Done:
        """Take the block out: every other byte is as it was before it came; a file made for it goes.

        Raises:
            Conflict, ContentError, PathEscape, NotRegularFile, StorageIO: as for ``write``.
        """

        def change(data: bytes | None, place: Path) -> tuple[bytes | None, Done]:
            block = marks.find(data, place.name) if data is not None else None
            if block is not None and not force:
                marks.refuse_edited(block, place.name)
            return self._taken_out(data, block)

        return self._change(path, change)

    @staticmethod
    def _taken_out(data: bytes | None, block: marks.Block | None) -> tuple[bytes | None, Done]:
        if data is None or block is None:
            return data, Done.NOTHING
        rest = marks.without(data, block)
        return rest, Done.DELETED if rest is None else Done.REMOVED

    def _looked(self, place: Path, block: marks.Block | None, preferences: bool | None) -> Looked:
        said = (block is not None and block.preferences) if preferences is None else preferences
        wanted = self.text(said)
        if block is None:
            standing = Standing.MISSING if wanted else Standing.CURRENT
        elif not block.intact:
            standing = Standing.EDITED
        else:
            same = block.body == wanted and block.preferences == said
            standing = Standing.CURRENT if same else Standing.STALE
        line = block.line if block is not None else 0
        return Looked(path=place, standing=standing, wanted=wanted, line=line, preferences=said)

    # -- places ---------------------------------------------------------------------------------------------------
    def _place(self, path: str | os.PathLike[str] | None) -> Path:
        """Where the file really lies.

        Raises:
            PathEscape: outside the repository, among git's files or memfs's own.
        """
        named = self._root / FILE if path is None else Path(path)
        try:
            place = Path(os.path.realpath(named))
            below = place.relative_to(self._top).as_posix()
        except (ValueError, OSError):
            raise PathEscape("it lies outside the repository", path=str(named), hint="name a file in it") from None
        inside = place.relative_to(self._root).as_posix() if place.is_relative_to(self._root) else ""
        if names_git(below) or is_own(inside) or CONTENT in place.relative_to(self._top).parts:
            raise PathEscape("this file is none for agents to read", path=str(named), hint=f"name a file like {FILE}")
        return place

    def _change(
        self,
        path: str | os.PathLike[str] | None,
        change: Callable[[bytes | None, Path], tuple[bytes | None, Done]],
    ) -> Done:
        return sharedfile.rewrite(lambda: self._place(path), change)
