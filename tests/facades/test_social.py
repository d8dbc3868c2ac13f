"""A type and its reviewer, added by configuration alone (C2), and the example of seed 000."""

from __future__ import annotations

import runpy
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from memfs import MemoryCoordinator, MemoryItem, MultiLayeredMemorySystem, trust
from memfs.errors import SchemaInvalid, SettingInvalid
from memfs.workspace import Workspace

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
SOCIAL = EXAMPLES / "social"
TEXT = "Ines decides about releases and prefers small pull requests"


@pytest.fixture
def social(opened: Callable[..., Workspace], monkeypatch: pytest.MonkeyPatch) -> Workspace:
    """A workspace with the files of ``examples/social``."""
    root = opened().root
    monkeypatch.syspath_prepend(str(SOCIAL))
    (root / "ContextMemory/configuration/kinds.yaml").write_bytes((SOCIAL / "kinds.yaml").read_bytes())
    trust.grant(root)
    named = tomllib.loads((SOCIAL / "memfs.toml").read_text())["review"]["reviewers"]
    return opened(root, review__reviewers=named)


def test_the_new_type_is_like_any_other(social: Workspace) -> None:
    """It is reviewed, stored, retrieved, counted, and has its layer and its folder (C2, L1)."""
    memory = MemoryCoordinator(workspace=social)
    result = memory.store(TEXT, "social")

    assert result.stored
    assert result.review is not None
    assert set(result.review.agent_scores) == {"analyzer", "patterns", "knowledge-archaeologist", "social"}
    assert result.review.agent_scores["social"] == 9.0
    assert "decides" in result.review.reasons["social"]
    (found,) = memory.retrieve("who decides about releases", memory_types=["social"])
    assert (found.id, found.type, dict(memory.stats().by_type)) == (result.memory_id, "social", {"social": 1})
    assert [item.id for item in MultiLayeredMemorySystem(workspace=social).get_items_by_layer("semantic")] == [found.id]
    assert (social.root / f"ContextMemory/memories/social/{found.id}.yaml").exists()


def test_it_reads_drafts_and_judges_answers(social: Workspace) -> None:
    """What it reads out of a draft is stored before anybody judges it, and its word orders answers (D7)."""
    memory = MemoryCoordinator(workspace=social)
    memory.store("Releases are signed off by the team that is on call, and releases wait for it", "social")
    memory.store("Tomasz maintains the label printer, ask Ines about parcels", "social")
    first, *rest = memory.retrieve("releases ines", memory_types=["social"])
    assert first.metadata["people"] == ["Ines", "Tomasz"]
    assert rest
    assert memory.retrieve("releases", memory_types=["social"])[0].content.startswith("Releases")


def test_its_body_is_checked(social: Workspace) -> None:
    """The shape of its data is that of ``kinds.yaml`` (C2, K3)."""
    social.store.put(MemoryItem(TEXT, "social", data={"person": "Ines", "reach_by": "chat"}))

    with pytest.raises(SchemaInvalid, match="persn"):
        social.store.put(MemoryItem(TEXT, "social", data={"persn": "Ines"}))


def test_its_reviewer_has_no_opinion_on_other_types(social: Workspace) -> None:
    """A memory of another type is judged as before (C2)."""
    result = MemoryCoordinator(workspace=social).store("Decided to use PostgreSQL for transactions", "episodic")

    assert result.stored
    assert result.review is not None
    assert result.review.agent_scores["social"] == 6.0


def test_a_repository_brings_no_reviewer_along(opened: Callable[..., Workspace]) -> None:
    """A reviewer is code: one that ``memfs.toml`` names counts only where the workspace is trusted (C2, B6)."""
    root = opened().root
    with (root / "memfs.toml").open("a") as file:
        file.write('\n[review]\nreviewers = ["os:getcwd"]\n')

    workspace = opened(root)

    assert workspace.settings.review.reviewers == ("analyzer", "patterns", "knowledge-archaeologist")
    assert "not trusted" in workspace.settings.origins["review.reviewers"]
    with pytest.raises(SettingInvalid):
        _ = opened(root, review__reviewers=["social_reviewer_that_is_nowhere:Social"]).intake


@pytest.mark.parametrize("name", ["seed_000.py", "social/run.py"])
def test_the_example_runs(name: str) -> None:
    """What the example asserts holds, as a script anywhere (C2, L1-L4)."""
    done = subprocess.run(
        [sys.executable, "-W", "error", str(EXAMPLES / name)], capture_output=True, text=True, check=False
    )

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout
    assert runpy.run_path(str(EXAMPLES / name))["main"]
