"""What a person sees of what is known: status, relevance, kinds, pictures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from memfs.model import MemoryItem
from memfs.model.item import Link
from memfs.model.kinds import BUILT_IN, OFFERED
from memfs.workspace import open_workspace


@pytest.fixture
def known(root: Path, memfs: Any) -> Any:
    """A workspace with two new memories, one of them contradicting another, and an old one that was used."""
    memfs("remember", "Deploys happen on Fridays", "--id", "friday", "--time", "2020-01-01")
    with open_workspace(root, watch=False) as workspace:
        link = Link(to="friday", relation="contradicts")
        workspace.store.put(MemoryItem("Deploys never happen on Fridays", id="never", links=(link,)))
    memfs("remember", "We chose PostgreSQL for transactions", "--id", "pg", "--agent", "coder")
    memfs("recall", "happen")
    return memfs


@pytest.mark.parametrize("words", [["status"], ["status", "--all"]])
def test_knowledge_comes_first_and_bytes_last(known: Any, words: list[str]) -> None:
    """What was learned of late and by whom, and what is disputed come before any weight (D2)."""
    output = known(*words).out
    learned = next(line for line in output.splitlines() if line.startswith("learned"))
    assert "2 in the last 7 days: " in learned
    assert "1 by coder" in learned
    assert "1 by people" in learned
    newest = next(line for line in output.splitlines() if line.startswith("newest"))
    assert "We chose PostgreSQL for transactions" in newest
    assert "Deploys never happen on Fridays" in newest
    assert "disputed   Deploys never happen on Fridays" in output
    assert output.index("disputed") < (output.index("\nareas:") if "--all" in words else len(output))


def test_knowledge_as_json(known: Any) -> None:
    """A script gets the numbers, ids and texts; the two weights of git have names of their own (D2)."""
    found = known("status", "--json").json["knowledge"]
    assert (found["learned"], found["by"]) == (2, {"coder": 1, "people": 1})
    assert {one["id"] for one in found["newest"]} == {"pg", "never"}
    assert found["contradicting"] == [
        {"id": "never", "text": "Deploys never happen on Fridays", "contradicts": ["friday"]}
    ]
    stats = known("status", "--json").json
    assert "history" not in stats["bytes"]
    assert stats["bytes"]["repository"] > 0
    assert "history" in stats["areas"]


def test_a_workspace_without_memories_says_so(memfs: Any) -> None:
    """Where nothing was learned, it says so (D2)."""
    assert "0 in the last 7 days\n" in memfs("status").out


def test_relevance_goes_from_0_to_100(known: Any) -> None:
    """A hit with every word asked for has 100, the others less by their scores, which JSON keeps (D2)."""
    output = known("recall", "deploys on fridays").out
    assert "relevance 100" in output
    hits = known("recall", "deploys never postgres", "--json").json["hits"]
    assert [hit["relevance"] for hit in hits] == sorted((hit["relevance"] for hit in hits), reverse=True)
    assert 0 < hits[-1]["relevance"] <= hits[0]["relevance"] < 100
    assert all(hit["score"] > 0 for hit in hits)
    assert "because score " in known("recall", "deploys", "--explain").out
    assert "relevance" not in known("recall", "").out


def test_help_offers_a_handful_of_kinds(memfs: Any) -> None:
    """Each with when to choose it; the others stay valid, and phases are not spoken of (D2)."""
    output = memfs("remember", "--help").out
    assert all(f"{name:<12} {use}" in output for name, use in OFFERED.items())
    assert len(OFFERED) <= 7
    hidden = [kind.name for kind in BUILT_IN if kind.name not in OFFERED]
    assert not any(f"  {name} " in output for name in hidden)
    assert "--phase" not in output + memfs("recall", "--help").out + memfs("list", "--help").out
    assert memfs("remember", "Noted", "--type", "knowledge", "--phase", "refine").code == 0


def test_a_review_is_reported_in_words(memfs: Any) -> None:
    """Neither who judged nor points are printed; JSON has both (C3)."""
    for text in ("We chose PostgreSQL because it is consistent", "it looks a bit odd somewhere today"):
        result = memfs("remember", text, "--review")
        assert "worth keeping" in result.out
        assert "analyzer" not in result.out
        assert "(+" not in result.out
        assert "(-" not in result.out
    found = memfs("remember", "it looks a bit odd somewhere today", "--review", "--json").json
    assert {row["name"] for row in found["reviewers"]} == {"analyzer", "patterns", "knowledge-archaeologist"}
