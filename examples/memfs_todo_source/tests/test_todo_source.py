"""The source keeps the contract of all sources, and finds remarks."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import ClassVar

import pytest
from memfs_todo_source import TodoSource

from memfs import StateSnapshot
from memfs.testing.plugin_contract import PluginContract


class TestTodoSource(PluginContract):
    """What memfs expects of every source."""

    config: ClassVar[dict[str, int]] = {"max_items": 3}

    @pytest.fixture
    def plugin(self, tmp_path: Path) -> TodoSource:
        """A source that looks into a folder of its own."""
        made = TodoSource()
        made.configure({"folder": str(tmp_path)})
        return made


def test_it_tells_the_remarks_of_the_files_at_hand(tmp_path: Path) -> None:
    """Line and words of each remark are given, of no other file, and no more than asked for."""
    (tmp_path / "auth.py").write_text("import jwt\n# TODO: refuse a token that has expired\n# FIXME later\n")
    (tmp_path / "other.py").write_text("# TODO: something else\n")
    source = TodoSource()
    source.configure({"folder": str(tmp_path), "max_items": 1})
    state = StateSnapshot.create(files=["auth.py", "../secret", "missing.py"])
    text = asyncio.run(source.get_context(state))
    assert text == "Open remarks in these files:\n- auth.py:2 TODO: refuse a token that has expired"
    assert asyncio.run(source.get_context(StateSnapshot.create(files=["missing.py"]))) is None
