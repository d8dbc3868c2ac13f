"""remember --review, and where a contradiction shows."""

from __future__ import annotations

from pathlib import Path

from .conftest import Memfs

DECISION = "Decided to use PostgreSQL for transactions"


def test_what_is_worth_it_is_stored_with_its_verdict(root: Path, memfs: Memfs) -> None:
    """The scores and reasons of all three reviewers are shown, and the file is there (C3)."""
    ran = memfs("remember", "--review", DECISION, "--type", "episodic", "--json")
    assert ran.code == 0, ran.err
    shown = ran.json
    assert (shown["stored"], shown["durability"], shown["merged_into"]) == (True, "commit", "")
    assert shown["score"] >= 6.0
    assert [row["name"] for row in shown["reviewers"]] == ["analyzer", "patterns", "knowledge-archaeologist"]
    assert all(row["reason"] for row in shown["reviewers"])
    assert (root / shown["path"]).is_file()


def test_what_is_not_worth_it_is_refused_with_the_reason(root: Path, memfs: Memfs) -> None:
    """Exit code 1 and the reason; nothing is stored (C3)."""
    trivial = memfs("remember", "--review", "Hi there", "--json")
    assert (trivial.code, trivial.json["stored"], "id" in trivial.json) == (1, False, False)
    assert trivial.json["reason"] == "trivial: a greeting"
    poor = memfs("remember", "--review", "I'm looking at the file now")
    assert poor.code == 1
    assert "Not stored" in poor.out
    assert "not worth keeping" in poor.out
    assert "a remark on the moment" in poor.out
    assert memfs("list", "--json").json["items"] == []
    assert list((root / "ContextMemory").rglob("memories/*/*/*.yaml")) == []


def test_a_repetition_is_merged_and_reported_as_such(memfs: Memfs) -> None:
    """The id is that of the item that says so already (C3)."""
    first = memfs("remember", DECISION, "--json").json["id"]
    again = memfs("remember", "--review", DECISION.lower())
    assert again.code == 0
    assert f"Merged into {first}" in again.out
    assert len(memfs("list", "--json").json["items"]) == 1


def test_a_contradiction_is_shown_when_stored_recalled_and_shown(memfs: Memfs) -> None:
    """Both sides name the other, for people, programs and prompts (C3)."""
    old = memfs("remember", DECISION, "--json").json["id"]
    stored = memfs("remember", "--review", "Decided to use MySQL for transactions", "--json").json
    new = stored["id"]
    assert stored["contradicts"] == [old]
    (hit,) = memfs("recall", "transactions", "--json").json["hits"]
    assert (hit["id"], hit["contradicts"], [one["id"] for one in hit["earlier"]]) == (new, [old], [old])
    hits = {hit["id"]: hit for hit in memfs("recall", "transactions", "--no-dedupe", "--json").json["hits"]}
    assert (hits[new]["contradicts"], hits[old]["contradicts"]) == ([old], [new])
    assert f"contradicts {old}" in memfs("recall", "transactions").out
    assert f"contradicts: {old}" in memfs("recall", "transactions", "--fenced").out
    assert f"contradicts {new}" in memfs("show", old).err
    assert memfs("show", old, "--json").json["contradicts"] == [new]
    assert "contradicts" not in memfs("show", memfs("remember", "Use UTC", "--json").json["id"], "--json").json


def test_a_text_of_the_editor_is_not_reviewed(memfs: Memfs) -> None:
    """--review with --edit is a usage error, with what to leave out."""
    ran = memfs("remember", "--review", "--edit")
    assert (ran.code, "leave out the text and --review" in ran.err) == (2, True)


def test_a_taken_id_names_the_way_out(memfs: Memfs) -> None:
    """A reviewed text with an id is create-only, as any."""
    assert memfs("remember", "--review", DECISION, "--id", "database").code == 0
    ran = memfs("remember", "--review", "Chose ruff as the linter of all services", "--id", "database")
    assert ran.code == 1
    assert "memfs update database" in ran.err


def test_an_unknown_reviewer_is_a_wrong_setting(memfs: Memfs) -> None:
    """A misspelt reviewer is reported with the nearest name."""
    ran = memfs("remember", "--review", DECISION, "--set", "review.reviewers=analyser")
    assert ran.code == 2
    assert "did you mean 'analyzer'?" in ran.err


def test_a_reviewer_named_by_the_repository_needs_trust(root: Path, memfs: Memfs) -> None:
    """Code that a cloned memfs.toml names does not run until the workspace is trusted (C3)."""
    (root / "memfs.toml").write_text('[review]\nreviewers = ["no_such_module_of_mine:X"]\n')
    assert memfs("remember", "--review", DECISION).code == 0
    assert memfs("admin", "trust", "--yes").code == 0
    ran = memfs("remember", "--review", "Chose ruff as the linter of all services")
    assert ran.code != 0
    assert "no_such_module_of_mine" in ran.err
