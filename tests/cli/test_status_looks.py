"""``memfs status`` costs no more the more there is to report."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from memfs.fs.tree import FolderScan, Tree
from tests.cli.conftest import Memfs


def test_status_looks_at_all_files_once(memfs: Memfs, monkeypatch: pytest.MonkeyPatch) -> None:
    """For the index and for edits by hand; whether it is fresh by then, of what it learned alone."""
    memfs("remember", "Tokens expire after an hour.")
    memfs("admin", "reindex")
    walks: list[str] = []
    listings = Tree.listings

    def counted(self: Tree, folder: str, hidden: bool = False) -> Iterator[FolderScan]:
        walks.append(folder)
        return listings(self, folder, hidden)

    monkeypatch.setattr(Tree, "listings", counted)
    output = memfs("status").out
    assert ("items      1\n" in output, "stale" in output) == (True, False)
    assert [folder for folder in walks if "ContextMemory/memories".startswith(folder)] == ["ContextMemory"]
