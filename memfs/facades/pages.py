"""Texts kept under paths, as a tree of files that exists in the workspace as items.

Each page is an item of kind ``note`` whose title is its path; a folder exists as long as a page is below it.
Reading, changing, moving and removing are safe from several threads and processes.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from functools import cached_property

from memfs.dataclass import dataclass
from memfs.errors import Conflict, IdExists, IdInvalid, ItemNotFound, PathEscape
from memfs.facades.open_workspaces import SignedFacade
from memfs.format.secrets import reason_in
from memfs.model import MemoryItem, Origin, Trust
from memfs.model.ids import slug, suffix_of
from memfs.recall.conflict_notes import unresolved_note
from memfs.store.plan import signed_by
from memfs.store.reader import Extracts
from memfs.store.store import retry_on_conflict
from memfs.workspace import Workspace

PAGE = "note"
"""The kind of an item that is a page."""
MOST = 300
"""The most characters of a path: it is the page's title."""
_LONGEST_NAME = 255
_CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


def clean(path: str) -> str:
    """A path in its one spelling: no empty parts, no ``.`` and ``..``, no slash at its ends; "" for the root.

    Raises:
        PathEscape: it leads above the root.
        IdInvalid: it is too long, or holds a character that cannot be seen.
    """
    found: list[str] = []
    for part in path.split("/"):
        if part == "..":
            if not found:
                raise PathEscape(f"{ascii(path)[:80]} leads above the root", hint="name a path below it")
            found.pop()
        elif part not in ("", "."):
            found.append(part)
    tidy = "/".join(found)
    if _CONTROLS.search(tidy):
        raise IdInvalid(f"{ascii(tidy)[:80]} holds a control character", hint="use letters, digits and ordinary signs")
    if len(tidy) > MOST or any(len(part.encode()) > _LONGEST_NAME for part in found):
        hint = f"use at most {MOST} characters, and {_LONGEST_NAME} bytes a name"
        raise IdInvalid(f"a path of {len(tidy)} characters is too long", hint=hint)
    return tidy


def page_id(path: str, turn: int = 0) -> str:
    """The id of the page at a clean path: readable, and one for each spelling, upper and lower case included.

    Args:
        turn: for another id where that one is taken by a page that was given another path since.
    """
    stem = f"{slug(path) or 'page'}-{suffix_of(path.encode(), 12)}"
    return f"{stem}-{turn + 1}" if turn else stem


def path_of(item: MemoryItem) -> str:
    """The path of a page: its title, where that is one in its one spelling, or else its id."""
    try:
        return item.title if item.title and clean(item.title) == item.title else item.id
    except (PathEscape, IdInvalid):
        return item.id


_TRIES = 20
_TURNS = 10


@dataclass(frozen=True, slots=True)
class Page:
    """A page as it is: its path, how many bytes its text has, and the item it is."""

    path: str
    size: int
    id: str


class Pages(SignedFacade):
    """The pages of one workspace, or those below a folder of it. Threads and processes may share them.

    Every path is taken in any spelling (``a//b``, ``a/./b``); one that leads above the root is refused. Pages that
    people or other tools made are among them.
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        folder: str = "",
        origin: Origin | None = None,
        source: str = "pages",
        workspace: Workspace | None = None,
    ) -> None:
        """Choose the workspace, as every facade does.

        Args:
            folder: the pages below this path only, which are called by what follows it.
            origin: who writes, for the items' origin and the commits.
            source: which door it is, for the commits.

        Raises:
            WorkspaceNotFound: see ``path``.
            PathEscape, IdInvalid: ``folder`` is no path.
        """
        super().__init__(path, origin=origin, source=source, workspace=workspace)
        self._folder = clean(folder)

    # -- reading --------------------------------------------------------------------------------------------------
    def read(self, path: str) -> str | None:
        """The text of a page, None where there is none.

        Raises:
            PathEscape, IdInvalid: it is no path.
            ContentError: the page's file is invalid at present.
        """
        item = self._find(self._whole(path))
        if item is None:
            return None
        self._served([item.id])
        return item.content

    def undecided(self, path: str) -> str:
        """What a merge left open in a page, and the other values; "" for nothing.

        Raises:
            PathEscape, IdInvalid: it is no path.
            ContentError: the page's file is invalid at present.
        """
        item = self._find(self._whole(path))
        return unresolved_note(item) if item is not None else ""

    def below(self, path: str = "") -> list[Page]:
        """The pages below a folder, by path; none where there is no such folder.

        Raises:
            PathEscape, IdInvalid: it is no path.
        """
        whole = self._whole(path)
        head = f"{whole}/" if whole else ""
        cut = len(self._folder) + 1 if self._folder else 0
        found = {page.path: page for page in self._listed() if page.path.startswith(head)}
        return [Page(page.path[cut:], page.size, page.id) for _, page in sorted(found.items())]

    def is_folder(self, path: str) -> bool:
        """Whether a page is below this path; the root is always a folder.

        Raises:
            PathEscape, IdInvalid: it is no path.
        """
        return not clean(path) or bool(self.below(path))

    # -- changing -------------------------------------------------------------------------------------------------
    def create(self, path: str, text: str) -> None:
        """Store a page that is not there yet, durable on return.

        Raises:
            PathEscape, IdInvalid: it is no path, or one of a page leads through another page.
            IdExists: a page or a folder is there.
            ContentError, StorageIO: nothing was stored.
        """
        whole = self._free(path)
        self._refuse_below(whole)
        draft = self._signed(MemoryItem(text, PAGE, title=whole))
        for turn in range(_TURNS):
            try:
                self._write([(draft.replace(id=page_id(whole, turn)), "")], "", one=f"Write {whole}")
                return
            except IdExists:
                if self._find(whole) is not None:
                    raise _taken(path) from None
        raise _taken(path)

    def change(self, path: str, edit: Callable[[str], str]) -> None:
        """Give a page the text that ``edit`` makes of the one it has; no other change is lost.

        Args:
            edit: called again where the page was changed meanwhile; what it raises ends the change.

        Raises:
            PathEscape, IdInvalid: it is no path.
            ItemNotFound: there is no such page.
            Conflict: it was changed by others again and again.
            ContentError, StorageIO: nothing was changed.
        """
        whole = self._whole(path)

        def changed() -> None:
            item = self._find(whole)
            if item is None:
                raise _missing(path)
            page = self._signed(item.replace(content=edit(item.content), title=whole))
            self._write([(page, item.sha256)], "", one=f"Change {whole}")

        retry_on_conflict(changed, tries=_TRIES)

    def remove(self, path: str) -> int:
        """Remove a page, or a folder with all pages below it, in one commit; git keeps them.

        Returns:
            How many pages that were.

        Raises:
            PathEscape, IdInvalid: it is no path.
            ItemNotFound: there is neither.
            Conflict, StorageIO: nothing was removed.
        """
        whole = self._whole(path)
        if whole == self._folder:
            return self.clear()
        item = self._find(whole)
        found = [item.id] if item is not None else [page.id for page in self.below(path)]
        if not found:
            raise _missing(path)
        self._write([(one, None) for one in found], f"Remove {whole}")
        return len(found)

    def clear(self) -> int:
        """Remove every page, in one commit; git keeps them. Returns how many there were.

        Raises:
            Conflict, StorageIO: nothing was removed.
        """
        found = [page.id for page in self.below()]
        self._write(
            [(one, None) for one in found], f"Remove all pages{' below ' + self._folder if self._folder else ''}"
        )
        return len(found)

    def rename(self, old: str, new: str) -> None:
        """Move a page, or a folder with all pages below it, all or nothing and in one commit.

        Raises:
            PathEscape, IdInvalid: one of them is no path, or ``new`` is below ``old``.
            IdExists: there is something at ``new``.
            ItemNotFound: there is nothing at ``old``.
            Conflict, StorageIO: nothing was moved.
        """
        source, target = self._whole(old), self._free(new)
        for _ in range(_TRIES):
            moves = self._moves(source, target)
            if not moves:
                raise _missing(old)
            self._refuse_below(target, source)
            try:
                self._move(moves, f"Move {source} to {target}")
                return
            except (Conflict, ItemNotFound):
                continue  # somebody changed one of them, or was quicker
            except IdExists:
                raise _taken(new) from None
        raise Conflict(f"{old!r} keeps changing", hint="try again")

    # -- inside ---------------------------------------------------------------------------------------------------
    @cached_property
    def _extracts(self) -> Extracts[Page]:
        return Extracts(self.workspace.store, _page)

    def _listed(self) -> list[Page]:
        return self._extracts.every(self.workspace.kinds.get(PAGE))

    def _whole(self, path: str) -> str:
        """A path as it is in the workspace."""
        tidy = clean(path)
        return clean(f"{self._folder}/{tidy}") if tidy else self._folder

    def _free(self, path: str) -> str:
        """The path in the workspace of what is to be made there.

        Raises:
            IdExists: a page or folder is there.
        """
        whole = self._whole(path)
        listed = [page.path for page in self._listed()]
        if whole == self._folder or whole in listed or any(one.startswith(f"{whole}/") for one in listed):
            raise _taken(path)
        return whole

    def _refuse_below(self, whole: str, moving: str = "") -> None:
        """Refuse a path that leads through a page, or through what is to be moved there."""
        if moving and whole.startswith(f"{moving}/"):
            raise IdInvalid(f"{whole!r} is below {moving!r}", hint="choose another path")
        above = next((page.path for page in self._listed() if whole.startswith(f"{page.path}/")), None)
        if above is not None:
            raise IdInvalid(f"{above!r} is a page, not a folder", hint="choose another path")

    def _find(self, whole: str) -> MemoryItem | None:
        """The page at a path of the workspace: the one whose id follows from it, or else the first with its title."""
        item = self.workspace.store.get(page_id(whole))
        if item is not None and item.type == PAGE and path_of(item) == whole:
            return item
        ids = sorted(page.id for page in self._listed() if page.path == whole)
        return self.workspace.store.get(ids[0]) if ids else None

    def _signed(self, item: MemoryItem) -> MemoryItem:
        return item.replace(origin=self._origin, trust=Trust.AGENT.value)

    def _moves(self, source: str, target: str) -> list[tuple[MemoryItem, str]]:
        """What is at or below a path, each with the path it is to have."""
        if not source:
            return []
        item = self._find(source)
        if item is not None:
            return [(item, target)]
        inside = [page for page in self._listed() if page.path.startswith(f"{source}/")]
        items = [self.workspace.store.get(page.id) for page in inside]
        return [(one, target + path_of(one)[len(source) :]) for one in items if one is not None]

    def _move(self, moves: Sequence[tuple[MemoryItem, str]], message: str) -> None:
        with signed_by(self._origin), self.workspace.store.batch(message, source=self._source) as batch:
            for item, whole in moves:
                moved = item.replace(id=self._free_id(clean(whole), item.id), title=whole)
                if moved.id == item.id:
                    batch.put(moved, item.sha256)
                    continue
                batch.delete(item.id, item.sha256)
                known = {**item.metadata, "moved_from": item.id}
                moved = moved.replace(metadata=known, path="", sha256="")
                batch.put(moved, "", allow_secret=reason_in(item.metadata))

    def _free_id(self, whole: str, present: str) -> str:
        """The id for a page that moves to a path where no page is.

        Raises:
            IdExists: there is one now.
        """
        ids = [page_id(whole, turn) for turn in range(_TURNS)]
        for one in ids:
            item = self.workspace.store.get(one)
            if item is None or one == present:
                return one
            if item.type == PAGE and path_of(item) == whole:
                break  # somebody made it meanwhile
        raise _taken(whole)


def _page(item: MemoryItem) -> Page:
    return Page(path_of(item), len(item.content.encode()), item.id)


def _taken(path: str) -> IdExists:
    return IdExists(f"there is something at {path!r} already", hint="choose another path")


def _missing(path: str) -> ItemNotFound:
    return ItemNotFound(f"there is nothing at {path!r}", hint="list the folder to see what there is")
