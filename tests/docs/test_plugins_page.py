"""What the page about sources shows runs (P2)."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memfs.context.plugins import ENTRY_POINTS, MOST_LETTERS
from memfs.model.episode import StateSnapshot

Read = Callable[[str], str]


def test_the_source_of_the_page_runs_and_keeps_the_contract(
    page: Read, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its class is a source, and its test class passes."""
    source_code, test_code = re.findall(r"^```python\n(.*?)^```$", page("docs/plugins.md"), re.MULTILINE | re.DOTALL)
    (tmp_path / "my_package.py").write_text(source_code)
    monkeypatch.syspath_prepend(tmp_path)
    names: dict[str, Any] = {"__name__": "plugins_page"}
    exec(test_code, names)
    contract, source = names["TestOnCall"](), names["OnCall"]()
    contract.test_it_has_a_name_and_a_layer(source)
    contract.test_it_takes_its_table(source)
    contract.test_an_unknown_key_is_refused(source)
    contract.test_it_may_be_asked_from_several_threads(source)
    state = StateSnapshot.create(context="deploy")
    assert asyncio.run(source.get_context(state)) == "On call today:\n- Grace"


def test_the_bounds_of_the_page_are_those_of_the_code(page: Read) -> None:
    """Limits and names are on the page as they are."""
    text = page("docs/plugins.md")
    assert f'entry-points."{ENTRY_POINTS}"' in text
    assert f"{MOST_LETTERS:,} letters" in text
    for code in ("SourceUnusable", "SourceFailing"):
        assert code in text
