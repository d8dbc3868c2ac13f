"""``memfs team conflicts``: contradictions shown and decided (P7)."""

from __future__ import annotations

from pathlib import Path

from memfs.workspace import open_workspace
from tests.cli.conftest import Memfs, git


def hand_written(root: Path) -> None:
    """Two files that nobody compared."""
    folder = root / "ContextMemory" / "memories" / "semantic"
    folder.mkdir(parents=True)
    (folder / "friday.yaml").write_text("content: We deploy on Friday.\n")
    (folder / "never.yaml").write_text("content: We never deploy on Friday.\ncreated: 2026-03-01\n")


def test_what_a_person_remembers_is_compared_by_a_scan(memfs: Memfs) -> None:
    """It is stored without a look at the rest; the list says how to look, and recall gives the newer one (P7)."""
    memfs("remember", "--id", "half", "The timeout of the payment gateway is 30 seconds")
    memfs("remember", "--id", "whole", "The timeout of the payment gateway is 60 seconds")
    assert "'--scan' also compares what you remembered" in memfs("team", "conflicts").err
    assert memfs("team", "conflicts", "--scan", "--json").json["conflicts"][0]["ids"] in (
        ["half", "whole"],
        ["whole", "half"],
    )
    (hit,) = memfs("recall", "timeout of the payment gateway", "--json").json["hits"]
    assert (hit["id"], [one["id"] for one in hit["earlier"]]) == ("whole", ["half"])


def test_conflicts_are_scanned_shown_and_decided(memfs: Memfs, root: Path) -> None:
    """Each with its reason and the command that decides; the decision is committed (P7)."""
    hand_written(root)
    assert "0 conflicts; '--scan'" in memfs("team", "conflicts").err

    shown = memfs("team", "conflicts", "--scan")
    assert "one denies what the other says" in shown.out
    assert "We never deploy on Friday." in shown.out
    assert "--keep ID|both" in shown.out
    as_json = memfs("team", "conflicts", "--scan", "--json").json
    assert sorted(as_json["conflicts"][0]["ids"]) == ["friday", "never"]
    assert as_json["documents"] == []

    done = memfs("team", "conflicts", "resolve", "friday", "never", "--keep", "never", "--reason", "team decision")
    assert "Kept never; friday is superseded" in done.out
    assert "Decide for: We never deploy on Friday (against: " in git(root, "log", "--format=%s")
    assert "0 conflicts" in memfs("team", "conflicts", "--scan").err
    again = memfs("team", "conflicts", "resolve", "friday", "never", "--keep", "never", "--json").json
    assert (again["kept"], again["changed"]) == ("never", False)
    both = memfs("team", "conflicts", "resolve", "friday", "never", "--keep", "both")
    assert "Both hold: friday, never" in both.out


def test_fields_of_state_documents_are_a_section_of_their_own(memfs: Memfs, root: Path) -> None:
    """Shown with both values, and decided by the record's path (P7)."""
    with open_workspace(root, watch=False) as workspace:
        first = {"id": "h-1", "claim": "Caching helps."}
        recorder = workspace.states.recorder
        recorder.hypothesis(first)
        recorder.hypothesis({**first, "claim": "It helps reads."}, base=first)
        recorder.hypothesis({**first, "claim": "It helps writes."}, base=first)

    shown = memfs("team", "conflicts")
    (found,) = memfs("team", "conflicts", "--json").json["documents"]
    assert "two values of claim in" in shown.out
    assert (found["kept"], found["lost"]) == ("It helps writes.", "It helps reads.")

    done = memfs("team", "conflicts", "resolve", found["record"], "--keep", "lost")
    assert "claim is now 'It helps reads.'" in done.out
    assert "It helps reads." in (root / found["document"]).read_text()
    assert memfs("team", "conflicts", "--json").json["documents"] == []
    assert memfs("team", "conflicts", "resolve", found["record"], "--keep", "lost").code == 1


def test_what_does_not_go_together_is_refused(memfs: Memfs) -> None:
    """With the usual exit codes."""
    for words in (
        ("list", "a"),
        ("--keep", "both"),
        ("resolve",),
        ("resolve", "--keep", "both"),
        ("resolve", "a", "b", "c", "--keep", "both"),
        ("resolve", "a", "b", "--keep", "both", "--scan"),
        ("resolve", "a", "--keep", "both"),
        ("resolve", "a", "b", "--keep", "c"),
        ("resolve", "a", "--keep", "kept", "--reason", "why"),
        ("decide",),
    ):
        assert memfs("team", "conflicts", *words).code == 2, words
    ran = memfs("team", "conflicts", "resolve", "a", "b", "--keep", "both")
    assert (ran.code, "no memory" in ran.err) == (1, True)
