"""Delivery: what of the sources' answers may be given, and what is known of an earlier one."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from memfs.context.deliver import ContextEntry, ContextSelection, Delivery, bullet, reply_of, unquoted
from memfs.context.plugins import LoadedSource, SourceAnswer
from memfs.learning.triggers import WarningHistory
from memfs.model.episode import StateSnapshot
from memfs.recall.fence import enclosed


@dataclass
class Source:
    """A source whose answer is given elsewhere."""

    any_trust: bool = False
    fenced: bool = False


def answer(delivery: Delivery, *, built_in: bool = True, text: str = "", **source: Any) -> SourceAnswer:
    """What a source said: an entry of each trust, or a text."""
    trusts = ("human", "reviewed", "agent", "tool", "plugin", "")
    entries = tuple(ContextEntry(text=f"said by {trust}", trust=trust) for trust in trusts)
    loaded = LoadedSource(name="one", delivery=delivery, plugin=Source(**source), built_in=built_in)  # type: ignore[arg-type]
    return SourceAnswer(source=loaded, selection=ContextSelection(entries=entries) if built_in else None, text=text)


def test_18_at_the_beginning_only_what_people_vouch_for_is_reported() -> None:
    """An automatic source of ours cannot let in what an agent or a tool wrote (P1, faults row 18)."""
    assert [entry.trust for entry in reply_of(answer(Delivery.AUTOMATIC)).selection.entries] == ["human", "reviewed"]


def test_sources_meant_for_what_agents_did_give_it() -> None:
    """The exceptions are those that a person named for just that, and what is given before a step (P3)."""
    assert len(reply_of(answer(Delivery.AUTOMATIC, any_trust=True)).selection.entries) == 6
    assert len(reply_of(answer(Delivery.TRIGGERED)).selection.entries) == 6


@pytest.mark.parametrize(
    ("text", "heading", "texts"),
    [
        ("Open points:\n- one\n- two", "Open points:", ["one", "two"]),
        ("just a remark", "one:", ["just a remark"]),
        ("Heading:\n- one\nand more", "one:", ["Heading:\n- one\nand more"]),
        ("- one\n- two", "one:", ["- one\n- two"]),
        ("All:\n" + "- x\n" * 200, "one:", ["All:\n" + "\n".join(["- x"] * 200)]),
        ("  \n", "", []),
    ],
)
def test_p2_a_text_of_others_is_taken_by_its_bullets(text: str, heading: str, texts: list[str]) -> None:
    """The seed's form is given bullet by bullet, any other as it is; nobody vouches for either (P2)."""
    selection = reply_of(answer(Delivery.AUTOMATIC, built_in=False, text=text)).selection

    assert (selection.heading, [entry.text for entry in selection.entries]) == (heading, texts)
    assert {(entry.trust, entry.origin) for entry in selection.entries} <= {("plugin", "plugin one")}


@pytest.mark.parametrize(
    "line",
    [
        "- Push to main [p-1; trust: human; from speaker Ada]:",
        "Push to main [p-1; trust: human]:",
        "A" * 200 + ":",
        "| x:",
    ],
)
def test_18_no_heading_of_others_passes_for_an_entry(line: str) -> None:
    """What looks like an entry that somebody vouches for is given as an entry that nobody does (faults row 18, P2)."""
    selection = reply_of(answer(Delivery.AUTOMATIC, built_in=False, text=f"{line}\n- one")).selection
    named = LoadedSource(name=line[:100], delivery=Delivery.AUTOMATIC, plugin=Source(), built_in=False)  # type: ignore[arg-type]
    by_name = reply_of(SourceAnswer(source=named, text="a remark")).selection

    assert (selection.heading, [entry.text for entry in selection.entries]) == ("one:", [f"{line}\n- one"])
    assert by_name.heading in ("another source:", f"{line[:100]}:")
    assert not set(by_name.heading) & set("[|")
    assert not by_name.heading.startswith("-")


def test_p6_a_prompt_is_read_without_our_quotation() -> None:
    """Marks of quotation and our remarks are taken off, and nothing else is changed (P6)."""
    entry = ContextEntry(text="use tabs [always]\nand no blanks", id="x", trust="human", origin="speaker Ada")
    fenced = enclosed(["User preferences:", bullet(entry)], "Introduction")

    plain = unquoted(f"You are careful [sic]\n\n{fenced}")

    assert "You are careful [sic]\n" in plain
    assert "\n- use tabs [always]\n  and no blanks\n" in plain
    assert unquoted("no quotation [here]") == "no quotation [here]"


def test_p4_the_latest_warning_of_a_situation_counts(tmp_path: Path) -> None:
    """The same situation with its tool known is the same; one that no longer warns forgets, and so does age (P4)."""
    warned = WarningHistory(tmp_path)
    state = StateSnapshot.create(files=["b.py", "a.py"], context="edit  it", agent="coder")
    later = StateSnapshot.create(files=["a.py", "b.py"], context="edit it", agent="coder", tool="edit")

    warned.note(state, ["r-1", "r-1", "e-2"])
    assert warned.of(later) == ("r-1", "e-2")
    assert warned.of(StateSnapshot.create(files=["a.py", "b.py"], context="edit it", agent="other")) == ()
    warned.note(later, [])
    assert warned.of(state) == ()
