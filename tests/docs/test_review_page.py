"""docs/review.md: every rule of every reviewer is on it."""

from __future__ import annotations

from pathlib import Path

import pytest

from memfs.recall import reviewers
from memfs.recall.reviewers import ScoreRule

PAGE = Path(__file__).resolve().parents[2] / "docs" / "review.md"


@pytest.mark.parametrize("table", ["ANALYZER_RULES", "PATTERNS_RULES", "ARCHAEOLOGIST_RULES"])
def test_every_rule_is_documented_with_its_points(table: str) -> None:
    """How a score comes about can be read without the code (C3)."""
    rules: tuple[ScoreRule, ...] = getattr(reviewers, table)
    page = PAGE.read_text(encoding="utf-8")
    assert [rule.what for rule in rules if f"| {rule.points:+g} | {rule.what}" not in page] == []
