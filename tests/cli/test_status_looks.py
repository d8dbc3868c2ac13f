"""``memfs status`` costs no more the more there is to tell."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from memfs.fs.tree import ScanEntry, Tree
from tests.cli.conftest import Memfs


def test_status_looks_at_all_files_once(memfs: Memfs, monkeypatch: pytest.MonkeyPatch) -> None:
    """For the index and for edits by hand; once more, whether it is fresh by then, only where it learned something."""
    memfs("remember", "Tokens expire after an hour.")
    memfs("admin", "reindex")
    walks: list[str] = []
    scan = Tree.scan

    def counted(self: Tree, folder: str, hidden: bool = False) -> Iterator[ScanEntry]:
        walks.append(folder)
        return scan(self, folder, hidden)

    monkeypatch.setattr(Tree, "scan", counted)
    told = memfs("status").out
    assert ("items      1\n" in told, "stale" in told) == (True, False)
    assert [folder for folder in walks if "ContextMemory/memories".startswith(folder)] == ["ContextMemory"]
