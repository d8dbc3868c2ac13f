"""The replay of questions with a ranking that learns from what is opened."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from benchmarks.retrieval.replay import main

_ITEM = {"store": "s", "timestamp": "2026-01-01", "session": "", "seq": None, "speaker": "", "role": "", "title": ""}
_COLOURS = "red green blue white black yellow orange purple grey brown pink violet".split()  # noqa: SIM905


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A set of one memory, in which every question is answered by the same one of twelve items."""
    kept = tmp_path / "sets" / "tiny"
    kept.mkdir(parents=True)
    items: list[dict[str, object]] = [
        {**_ITEM, "id": f"i{n:02}", "text": f"the lamp number{n} burns", "tags": []} for n in range(12)
    ]
    questions = [
        {"id": f"q-{one}", "store": "s", "text": f"which {one} lamp burns", "relevant": ["i07"], "exclude": []}
        | {"category": "", "as_of": None}
        for one in _COLOURS
    ]
    for name, rows in (("items", items), ("queries", questions)):
        (kept / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return kept.parent


def test_what_is_asked_for_again_is_found_sooner(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One half of the questions teaches what answers the other; the table says by how much, for each set."""
    assert main([str(folder)]) == 0
    *_, line = capsys.readouterr().out.splitlines()
    name, asked, _, _, _, plain, gained, _ = re.split(r" +", line)
    assert (name, asked) == ("tiny", "12")
    assert float(gained) > 0.1
    assert float(plain) < 0.5
