"""ItemFiles: which files below ``ContextMemory/`` are items, by their folder and ending.

Owns walking the folders that kinds have. What the files hold is ``following``'s business.
"""

from __future__ import annotations

from collections.abc import Iterator

from memfs.files.scan import Entry
from memfs.files.tree import View
from memfs.model import KindTable
from memfs.store.parts import CONTENT, ITEM_SUFFIXES, below_content


class ItemFiles:
    """The item files of one tree."""

    def __init__(self, tree: View, kinds: KindTable) -> None:
        self._tree = tree
        self._kinds = kinds
        self._typed: dict[str, bool] = {}

    def holds(self, path: str) -> bool:
        """Whether a file at this path is an item."""
        return path.endswith(ITEM_SUFFIXES) and "/." not in path and self.is_typed(path.rpartition("/")[0])

    def is_typed(self, folder: str) -> bool:
        """Whether a folder belongs to a kind; asked for every file of a scan, so remembered."""
        known = self._typed.get(folder)
        if known is None:
            known = self._typed[folder] = self._kinds.at(below_content(f"{folder}/x")) is not None
        return known

    def scan(self) -> Iterator[Entry]:
        """What may be an item, and what is no regular file, in every folder of a kind."""
        for folder in self._folders():
            yield from filter(_may_count, self._tree.scan(folder))

    def survey(self, found: list[Entry]) -> Iterator[Entry]:
        """As ``scan``, by one look at all of ``ContextMemory/``; ``found`` is filled with that, hidden names with it.

        Where a folder could not be entered, or a folder of a kind is none, those folders are scanned once more: only
        that tells what lies behind which of them.
        """
        found.extend(self._tree.scan(CONTENT, hidden=True))
        folders = self._folders()
        if any(not entry.regular and (entry.reason or entry.path in folders) for entry in found):
            yield from self.scan()
            return
        inside = tuple(f"{folder}/" for folder in folders)
        for entry in found:
            if _may_count(entry) and entry.path.startswith(inside) and "/." not in entry.path:
                yield entry

    def _folders(self) -> list[str]:
        return sorted({f"{CONTENT}/{kind.folder.partition('/')[0]}" for kind in self._kinds})


def _may_count(entry: Entry) -> bool:
    return entry.path.endswith(ITEM_SUFFIXES) or not entry.regular
