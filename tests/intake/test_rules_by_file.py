"""Which rules apply where their file is at hand and their words are not, or where they have no words (P1, seed 004)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from memfs.errors import SchemaInvalid
from memfs.model import MemoryItem
from memfs.model.episode import Rule, StateSnapshot
from memfs.workspace import Workspace

Open = Callable[..., Workspace]


def advice(workspace: Workspace, context: str = "", *files: str, tool: str = "") -> list[str]:
    """What the rules advise in a situation."""
    state = StateSnapshot.create(files, context, tool=tool)
    return [rule.action for rule in workspace.sources.rules.find_matching_rules(state)]


def test_p1_a_rule_that_names_the_very_file_applies_whatever_the_edit_is_about(opened: Open) -> None:
    """Editing a file that caused issues before surfaces them; a wildcard needs the words as well (seed 004)."""
    workspace = opened()
    workspace.sources.rules.add_rule(
        Rule("session token lifetime", "Run the login tests.", 0.9, files=("src/auth.py",))
    )
    workspace.sources.rules.add_rule(Rule("session token lifetime", "Ask Ada.", 0.9, files=("**/src/auth.py",)))

    assert advice(workspace, "fix the typo in the docstring", "/home/ada/shop/src/auth.py") == ["Run the login tests."]
    assert advice(workspace, "", "src/auth.py") == ["Run the login tests."]
    assert set(advice(workspace, "a longer session token", "src/auth.py")) == {"Run the login tests.", "Ask Ada."}
    assert advice(workspace, "fix the typo in the docstring", "src/menu.py") == []


def test_p1_much_that_was_learned_of_a_file_is_not_reported_at_each_edit(opened: Open) -> None:
    """Of rules that only the file speaks for there are three, behind those whose words fit (P1: no noise)."""
    workspace = opened()
    matters = ["tokens", "cookies", "passwords", "redirects", "captchas", "invitations", "avatars"]
    for number, matter in enumerate(matters):
        workspace.sources.rules.add_rule(
            Rule(f"change {matter} there", matter, 0.9 - number / 100, files=("src/auth.py",))
        )

    assert advice(workspace, "correct a comment", "src/auth.py") == matters[:3]
    assert advice(workspace, "let avatars be larger", "src/auth.py") == ["avatars", *matters[:3]]


def test_p1_a_rule_without_words_applies_where_its_file_or_tool_is(opened: Open) -> None:
    """Nothing else was said of when it applies: neither its advice nor its title counts as words (P1)."""
    workspace = opened()
    workspace.sources.rules.add_rule(Rule("", "Regenerate the client.", 0.9, files=("api/*.proto",)))
    workspace.sources.rules.add_rule(Rule("", "Pass --dry-run first.", 0.9, tool="rsync"))
    workspace.store.put(
        MemoryItem("Never on a Friday.", "rule", id="f", title="Deploy day", trust="human", data={"tool": "kubectl"})
    )

    assert advice(workspace, "whatever it is", "api/shop.proto") == ["Regenerate the client."]
    assert advice(workspace, "regenerate the client of the api") == []
    assert advice(workspace, "copy the photos", "a.txt", tool="rsync") == ["Pass --dry-run first."]
    assert advice(workspace, "copy the photos", tool="cp") == []
    assert advice(workspace, "restart the shop", tool="kubectl") == ["Never on a Friday."]
    with pytest.raises(SchemaInvalid, match="situation") as refused:
        Rule(" ", "Think.", tool=" ")
    assert "tool" in str(refused.value.hint)
