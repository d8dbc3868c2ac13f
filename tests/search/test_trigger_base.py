"""The table of episodes and rules, and its rows as facts."""

from __future__ import annotations

import json
from typing import Any

import pytest

from memfs.learning.triggers import FAILURE, TriggerTable, packed, unpacked
from memfs.model.episode import EPISODE, RULE, TriggerRow


def row(name: str = "one", **values: object) -> TriggerRow:
    """A row with something in every field."""
    made = TriggerRow(
        id=name,
        path=f"{name}.yaml",
        blob="b" * 40,
        sort=EPISODE,
        outcome="failure",
        tool="edit",
        files=("src/a.py", "src/ü b.py"),
        words=("login", "naiv"),
        deeds=(),
        context='Say "hello"\n\u2028',
        time=12.5,
        warned=("x", "y"),
        expires=3.0,
    )
    return made._replace(**values)


def again(made: TriggerRow, fact: Any) -> TriggerRow:
    """The row of a fact in the place of another row."""
    return unpacked(made.id, made.path, made.blob, fact)


@pytest.mark.parametrize("made", [row(), row("two", sort=RULE, pinned=True, confidence=0.25), row("three", blob="c")])
def test_rows_come_back_as_they_were(made: TriggerRow) -> None:
    """Another process gets every field as it was kept; where a file is, and what is in it, is read from the file."""
    assert made.id not in packed(made)
    assert again(made, json.loads(packed(made))) == made


@pytest.mark.parametrize("fact", [{}, [1, 2], None, ["a"], [None] * (len(TriggerRow._fields) - 3), "x" * 9, 5])
def test_what_cannot_be_a_row_is_not_taken_for_one(fact: Any) -> None:
    """A fact that holds something else is refused, and its file read."""
    with pytest.raises((ValueError, TypeError, LookupError)):
        again(row(), fact)


def test_the_table_finds_by_name_and_by_words_and_forgets() -> None:
    """Rows are candidates by a file's name or by words that are worth enough; removed and replaced ones are none."""
    table = TriggerTable(frozenset)
    table.put(row())
    table.put(row("two", files=("x/other.py",), words=("kraken",)))
    weights = {"kraken": 2.0, "strange": 1.0}

    def found(names: list[str], weights: dict[str, float], share: float) -> list[str]:
        return sorted(one.id for one in table.candidates(FAILURE, names, weights, share))

    assert found(["a.py"], {}, 0.3) == ["one"]
    assert found([], weights, 0.3) == ["two"]
    assert found([], weights, 0.9) == []
    assert found(["a.py", "other.py"], weights, 0.3) == ["one", "two"]
    table.put(row("two", files=(), words=("walrus",)))
    assert found(["other.py"], weights, 0.3) == []
    table.remove("one.yaml")
    table.remove("one.yaml")
    assert (found(["a.py"], {}, 0.3), len(table), [one.id for one in table]) == ([], 1, ["two"])


def test_p1_what_has_nothing_in_common_is_not_looked_at() -> None:
    """Among 2,000 failures a situation that shares only what many share has no candidates (P1)."""
    table = TriggerTable(frozenset)
    for number in range(2_000):
        words = (f"rare{number}", f"seldom{number % 50}", "often", "always")
        table.put(row(f"n{number}", files=(f"src/f{number}.py",), words=words))
    strange = {word: table.worth(word) for word in ("often", "always", "walrus", "kraken", "otter")}
    assert table.candidates(FAILURE, ["other.py"], strange, 0.29) == []
    known = {word: table.worth(word) for word in ("often", "rare7", "seldom7")}
    assert [one.id for one in table.candidates(FAILURE, ["f9.py"], known, 0.8)] in (["n9", "n7"], ["n7", "n9"])


def test_rules_are_found_by_file_and_word() -> None:
    """A rule is kept under its words and files; one without either, or with a wildcard alone, may always apply."""
    table = TriggerTable(frozenset)
    rules = {
        "words": {"words": ("deploy", "friday"), "files": (), "tool": ""},
        "file": {"words": (), "files": ("src/a.py",), "tool": ""},
        "folder": {"words": (), "files": ("db/steps",), "tool": ""},
        "ending": {"words": ("deploy",), "files": ("src/**/*.sql",), "tool": ""},
        "tool": {"words": (), "files": (), "tool": "Bash"},
    }
    for name, values in rules.items():
        table.put(row(name, sort=RULE, **values))

    def found(files: list[str], words: list[str]) -> set[str]:
        return {one.id for one in table.applying(files, words)} - {"tool"}

    assert found([], ["deploy", "friday"]) == {"words", "ending"}
    assert found(["x/a.py"], []) == {"file"}
    assert found(["x/db/steps/1.sql"], ["walrus"]) == {"folder"}
    assert "tool" in {one.id for one in table.applying([], [])}


def test_a_row_says_which_others_it_replaces_until_it_is_gone() -> None:
    """What another item supersedes is known as replaced, and no longer when that item is removed."""
    table = TriggerTable(frozenset)
    table.put(row())
    table.put(row("two", supersedes=("one",)))
    assert table.replaced(row())
    table.put(row("two", supersedes=("one",)))
    table.remove("two.yaml")
    assert not table.replaced(row())
