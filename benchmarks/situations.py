"""Situations with known answers: which past failures each should bring to mind.

A small labelled set, in the words agents use, and the measures of how well it is answered. The episodes are of two
made-up projects: a shop's web service and its mobile app. Labels were written before the formula was tried on them.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from memfs.model.episode import Action, Episode, StateSnapshot

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
_DATA = Path(__file__).with_suffix(".json")


@dataclass(frozen=True, slots=True)
class Case:
    """A situation, and the names of the failures it should bring to mind; none where it should bring up nothing."""

    files: tuple[str, ...]
    context: str
    tool: str
    wanted: frozenset[str]


@dataclass(frozen=True, slots=True)
class Measured:
    """How many of the failures that were brought up were right, and how many of the right ones were brought up."""

    precision: float
    recall: float
    wrong: tuple[str, ...]
    missed: tuple[str, ...]


def failures() -> dict[str, Episode]:
    """The past failures by name."""
    return {
        row["name"]: Episode.create(
            StateSnapshot.create(row["files"], row["situation"], tool=row["tool"]),
            Action(row["tool"], row["done"]),
            "failure",
            row["error"],
            timestamp=NOW - timedelta(days=row["days"]),
        )
        for row in _rows("failures")
    }


def cases() -> list[Case]:
    """The situations with what each should bring to mind."""
    return [
        Case(tuple(row["files"]), row["situation"], row["tool"], frozenset(row["wanted"])) for row in _rows("cases")
    ]


def measured(answers: Collection[tuple[Case, Collection[str]]]) -> Measured:
    """How good answers are: each with its case and the names it brought up."""
    given = sum(len(set(found)) for _, found in answers)
    right = sum(len(case.wanted.intersection(found)) for case, found in answers)
    wanted = sum(len(case.wanted) for case, _ in answers)
    wrong = [f"{case} brought up {name}" for case, found in answers for name in set(found) - case.wanted]
    missed = [f"{case} missed {name}" for case, found in answers for name in case.wanted.difference(found)]
    return Measured(right / given if given else 1.0, right / wanted if wanted else 1.0, tuple(wrong), tuple(missed))


def _rows(part: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads(_DATA.read_text(encoding="utf-8"))[part]
    return rows
