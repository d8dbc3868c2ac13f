"""Conflicts: contradictions are brought before a person, and the decision is in the items (seed 004, P7)."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memfs.catalog.facts import Catalog
from memfs.errors import Conflict, ItemNotFound, QueryInvalid, SecretDetected
from memfs.fs import io
from memfs.model import MemoryItem, Query
from memfs.model.episode import Action, Episode, StateSnapshot
from memfs.model.ids import stem_of
from memfs.model.item import Link
from memfs.recall.conflict_notes import MarkedItems
from memfs.recall.fence import fence
from memfs.recall.versions import traces
from memfs.search.search_index import SearchIndex
from memfs.workspace import Workspace, open_workspace
from tests.intake.test_contradictions import OPPOSED

Opened = Callable[..., Workspace]


def remember(workspace: Workspace, name: str, text: str, **fields: Any) -> None:
    """Take a text in as every door does that compares."""
    workspace.intake.store(MemoryItem(text, "semantic", id=name, **fields), review=False)


def by_hand(workspace: Workspace, name: str, text: str) -> Path:
    """Write an item's file, as a person or a pull does."""
    path = workspace.root / "ContextMemory" / "memories" / "semantic" / f"{name}.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"content: {text}\n")
    return path


@pytest.fixture
def workspace(opened: Opened) -> Workspace:
    """One in which two memories contradict each other."""
    made = opened()
    remember(made, "five", "The API timeout is 5 seconds.", timestamp="2026-03-01")
    remember(made, "nine", "The API timeout is 9 seconds.", timestamp="2026-03-02")
    remember(made, "other", "Kestrel sends local times without an offset.")
    return made


def asked(workspace: Workspace, **options: Any) -> list[tuple[str, str]]:
    """The pairs that are asked about."""
    return [one.ids for one in workspace.conflicts.list(**options)]


def test_what_contradicts_is_asked_about_with_its_reason(workspace: Workspace) -> None:
    """The newer first, and why the two cannot both hold (P7)."""
    (found,) = workspace.conflicts.list()

    assert found.ids == ("nine", "five")
    assert (found.reason, found.linked, found.reopened) == ("they disagree: 9 and 5", True, False)


def test_keeping_one_is_written_into_both_in_one_commit(workspace: Workspace, git: Callable[..., str]) -> None:
    """Kept supersedes, the other is superseded; the sentence is in git; it is not asked about again (P7)."""
    workspace.store.flush()
    before = git(workspace.root, "rev-list", "--count", "HEAD")

    done = workspace.conflicts.resolve("five", "nine", keep="nine", reason="measured again")
    workspace.store.flush()

    five, nine = workspace.store.get("five"), workspace.store.get("nine")
    assert five is not None
    assert nine is not None
    assert (done.kept, done.changed) == ("nine", True)
    assert (five.status, nine.supersedes) == ("superseded", ("five",))
    assert [(link.to, link.relation) for link in (*five.links, *nine.links)] == [("nine", "superseded_by")]
    assert five.metadata["decided"]["nine"]["reason"] == "measured again"
    assert int(git(workspace.root, "rev-list", "--count", "HEAD")) == int(before) + 1
    assert git(workspace.root, "log", "-1", "--format=%s").strip() == (
        "Decide for: The API timeout is 9 seconds (against: The API timeout is 5 seconds; measured again)"
    )
    assert asked(workspace) == []
    assert asked(workspace, scan=True) == []
    assert workspace.conflicts.resolve("five", "nine", keep="nine", reason="measured again").changed is False
    assert "superseded" in fence([five])


def test_a_decision_can_be_turned_round(workspace: Workspace) -> None:
    """The other one holds again, with the status it had."""
    five = workspace.store.get("five")
    assert five is not None
    workspace.store.put(five.replace(status="checked"))
    workspace.conflicts.resolve("five", "nine", keep="nine")

    workspace.conflicts.resolve("five", "nine", keep="five")

    five, nine = workspace.store.get("five"), workspace.store.get("nine")
    assert five is not None
    assert nine is not None
    assert (five.status, five.supersedes) == ("checked", ("nine",))
    assert (nine.status, nine.supersedes) == ("superseded", ())
    assert asked(workspace, scan=True) == []


def test_both_kept_are_compatible_until_an_edit_makes_them_contradict_again(workspace: Workspace) -> None:
    """Links say so; another text is another question; a text that says the same is none (P7)."""
    workspace.conflicts.resolve("five", "nine", keep="both", reason="two services")

    five = workspace.store.get("five")
    assert five is not None
    assert ("nine", "compatible") in [(link.to, link.relation) for link in five.links]
    assert asked(workspace, scan=True) == []

    path = workspace.root / five.path
    path.write_text(path.read_text().replace("trust: human", "trust: human\ntags: [api]"))
    assert asked(workspace, scan=True) == []

    path.write_text(path.read_text().replace("is 5 seconds", "is 7 seconds"))
    (found,) = workspace.conflicts.list()
    assert (found.ids, found.reopened) == (("nine", "five"), True)

    path.write_text(path.read_text().replace("timeout is 7 seconds", "has versions"))
    assert asked(workspace) == []


def test_one_that_is_set_back_to_hold_is_asked_about(workspace: Workspace) -> None:
    """A person who brings a superseded memory back by hand did not decide about the other."""
    workspace.conflicts.resolve("five", "nine", keep="nine")
    path = workspace.root / workspace.store.locate("five")
    path.write_text(path.read_text().replace("status: superseded\n", ""))
    kept = workspace.root / workspace.store.locate("nine")
    kept.write_text(kept.read_text().replace("supersedes:\n- five\n", ""))

    (found,) = workspace.conflicts.list()

    assert (found.ids, found.reopened) == (("nine", "five"), True)


def test_a_scan_compares_what_nobody_compared(workspace: Workspace) -> None:
    """Hand-written files are found by a scan alone (P7)."""
    by_hand(workspace, "hand-1", "We deploy on Friday.")
    by_hand(workspace, "hand-2", "We never deploy on Friday.")
    assert asked(workspace) == [("nine", "five")]

    found = workspace.conflicts.list(scan=True)
    assert {frozenset(one.ids) for one in found} == {frozenset(("hand-1", "hand-2")), frozenset(("nine", "five"))}

    by_hand(workspace, "hand-2", "We deploy on Friday, and on Monday.")
    assert asked(workspace, scan=True) == [("nine", "five")]


def test_links_that_people_made_are_asked_about(workspace: Workspace) -> None:
    """Though the texts do not show it; a link to nobody is passed over."""
    other = workspace.store.get("other")
    assert other is not None
    links = (Link(to="five", relation="contradicts"), Link(to="nobody", relation="contradicts"))
    workspace.store.put(other.replace(links=links))

    found = {frozenset(one.ids): one.reason for one in workspace.conflicts.list()}

    assert "a link says so" in found[frozenset(("five", "other"))]


def test_nothing_is_written_where_somebody_edits_at_that_moment(workspace: Workspace) -> None:
    """An edit in the moment of writing refuses the decision."""
    path = workspace.root / workspace.store.locate("five")
    path.write_text(path.read_text().replace("5 seconds", "6 seconds"))

    def person(name: str, _: str) -> None:
        if name == "fdatasync":
            io.set_hook(None)
            path.write_text(path.read_text().replace("6 seconds", "8 seconds"))

    io.set_hook(person)
    try:
        workspace.conflicts.resolve("five", "nine", keep="nine")
    except Conflict:
        pass
    finally:
        io.set_hook(None)
    assert "8 seconds" in path.read_text()
    five, nine = workspace.store.get("five"), workspace.store.get("nine")
    assert five is not None
    assert nine is not None
    assert (five.status == "superseded") == ("five" in nine.supersedes)  # both or neither


@pytest.mark.parametrize(
    ("names", "keep", "reason", "error"),
    [
        (("five", "five"), "five", "", QueryInvalid),
        (("five", "nine"), "other", "", QueryInvalid),
        (("five", "nine"), "", "", QueryInvalid),
        (("five", "nobody"), "five", "", ItemNotFound),
        (("five", "nine"), "five", "x" * 501, QueryInvalid),
        (("five", "nine"), "five", "key ghp_" + "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8", SecretDetected),
    ],
)
def test_what_cannot_be_decided_changes_nothing(
    workspace: Workspace, names: tuple[str, str], keep: str, reason: str, error: type[Exception]
) -> None:
    """With the remedy, and without a byte of a secret."""
    before = {name: (workspace.root / workspace.store.locate(name)).read_bytes() for name in ("five", "nine")}
    with pytest.raises(error) as raised:
        workspace.conflicts.resolve(*names, keep=keep, reason=reason)
    assert "ghp_" not in str(raised.value)
    assert {name: (workspace.root / workspace.store.locate(name)).read_bytes() for name in before} == before


def test_expired_and_unreadable_ones_are_passed_over(workspace: Workspace) -> None:
    """What does not hold contradicts nothing."""
    nine = workspace.store.get("nine")
    assert nine is not None
    workspace.store.put(nine.replace(expires="2001-01-01"))  # type: ignore[arg-type]
    assert asked(workspace, scan=True) == []
    workspace.store.put(nine)
    (workspace.root / workspace.store.locate("five")).write_text("content: [\n")
    assert asked(workspace, scan=True) == []


def test_a_fresh_process_knows_the_decision(workspace: Workspace) -> None:
    """It is in the files: a clone, or another user, is not asked either."""
    workspace.conflicts.resolve("five", "nine", keep="both")
    with open_workspace(workspace.root, watch=False) as other:
        assert [one.ids for one in other.conflicts.list(scan=True)] == []


@pytest.mark.parametrize(("one", "other"), OPPOSED)
def test_a_scan_compares_whatever_could_contradict(one: str, other: str) -> None:
    """Two texts that contradict each other have a trace in common, whatever is around them (P7)."""
    assert traces(one) & traces(f"Something else first. {other}. And more.")
    assert not traces("Kestrel sends local times.") & traces("The moon is far away.")


def test_a_superseded_memory_comes_after_the_one_that_replaced_it(workspace: Workspace) -> None:
    """Though its words fit better; it is found still, with the reason for its place (P7)."""
    asked_for = Query(text="API timeout 5 seconds")
    assert [hit.item.id for hit in workspace.recaller.search(asked_for).hits][:2] == ["five", "nine"]

    workspace.conflicts.resolve("five", "nine", keep="nine")

    hits = workspace.recaller.search(asked_for).hits
    assert [hit.item.id for hit in hits][:2] == ["nine", "five"]
    assert hits[1].reasons["superseded"] == 0.5
    assert workspace.recaller.search(Query(text="API timeout 5 seconds", limit=1)).hits[0].item.id == "nine"


def test_a_retired_rule_comes_after_what_holds(workspace: Workspace) -> None:
    """A question does not give first what stopped holding (P4)."""
    for name, status in (("old", "retired"), ("new", "")):
        workspace.store.put(MemoryItem("Restart the proxy after a deploy.", "rule", id=name, status=status))

    hits = workspace.recaller.search("restart the proxy").hits

    assert [hit.item.id for hit in hits] == ["new", "old"]
    assert hits[1].reasons["retired"] == 0.5


def meanwhile(workspace: Workspace, monkeypatch: pytest.MonkeyPatch, **change: Any) -> None:
    """Somebody else changes ``five`` once, between our look and our write."""
    batch, done = workspace.store.batch, list[bool]()

    def first(*words: Any, **options: Any) -> Any:
        if not done:
            done.append(True)
            five = workspace.store.get("five")
            assert five is not None
            workspace.store.put(five.replace(**change))
        return batch(*words, **options)

    monkeypatch.setattr(workspace.store, "batch", first)


def test_an_edit_of_the_same_moment_is_kept_by_a_decision(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is not part of the question stays as somebody else just made it, and the decision is kept (P7)."""
    meanwhile(workspace, monkeypatch, tags=("api",))
    workspace.conflicts.resolve("five", "nine", keep="nine")
    five = workspace.store.get("five")
    assert five is not None
    assert (five.tags, five.status) == (("api",), "superseded")


def test_a_decision_about_other_words_is_refused(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where one says something else by the time of writing, nobody decided about that (P7)."""
    meanwhile(workspace, monkeypatch, content="The API timeout is 9 seconds, since Monday.")
    with pytest.raises(Conflict):
        workspace.conflicts.resolve("five", "nine", keep="nine")
    five = workspace.store.get("five")
    assert five is not None
    assert five.status == ""


def test_a_link_that_is_written_later_is_seen(workspace: Workspace) -> None:
    """An item that named nobody is read again once it changed; links of other sorts outlast a decision (P7)."""
    assert asked(workspace) == [("nine", "five")]
    links = (Link(to="nine", relation="contradicts"), Link(to="nine", relation="example"))
    other = workspace.store.get("other")
    assert other is not None
    workspace.store.put(other.replace(links=links))
    assert sorted(map(sorted, asked(workspace))) == [["five", "nine"], ["nine", "other"]]

    workspace.conflicts.resolve("other", "nine", keep="both")
    kept = workspace.store.get("other")
    assert kept is not None
    assert [link.relation for link in kept.links] == ["example", "compatible"]


def test_episodes_say_what_happened_and_contradict_nothing(workspace: Workspace) -> None:
    """Two episodes differ in a number; neither says that the other did not happen (P7)."""
    for number in (2400, 820):
        state = StateSnapshot.create([f"pkg/mod{number}/part.py"], f"noise matter delta {number}")
        action = Action("edit", f"did thing {number} to it")
        workspace.sources.episodes.record(Episode.create(state, action, "success"))

    assert asked(workspace, scan=True) == [("nine", "five")]


def test_a_write_does_not_let_all_marks_be_asked_again(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of what is in the index's base it is known at once what is marked; only what is over it is asked about."""
    workspace = opened(index__engine="sqlite")
    for number in range(5):
        workspace.store.put(MemoryItem(f"The shed number {number} is green.", "semantic", id=f"plain{number}"))
    workspace.store.put(MemoryItem("Both conflicts are settled.", "semantic", id="marked"))
    assert workspace.store.fold()
    marked = MarkedItems(workspace.store, workspace.parts)
    assert [stem_of(path) for path in marked.paths()] == ["marked"]
    workspace.store.put(MemoryItem("No conflicts here.", "semantic", id="other"))
    workspace.store.put(MemoryItem("All is quiet.", "semantic", id="marked"))
    asked, found = [], Catalog.found

    def watched(catalog: Catalog, made_by: int, wanted: Any) -> Any:
        asked.extend(wanted)
        return found(catalog, made_by, wanted)

    monkeypatch.setattr(Catalog, "found", watched)
    assert [stem_of(path) for path in marked.paths()] == ["other"]
    assert len(asked) == 3  # the base as a whole, and two files


def test_a_fold_in_another_thread_loses_no_mark(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is over the index's base, and the base itself, are of one moment: what a fold moves stays marked."""
    workspace = opened(index__engine="sqlite")
    workspace.store.put(MemoryItem("Nothing to decide.", "semantic", id="plain"))
    assert workspace.store.fold()
    workspace.store.put(MemoryItem("Both conflicts are settled.", "semantic", id="marked"))
    fold, seen = threading.Thread(target=workspace.store.fold), SearchIndex.stamps

    def then_folded(index: SearchIndex) -> Any:
        found = seen(index)
        if fold.ident is None:
            fold.start()
            fold.join(0.3)
        return found

    monkeypatch.setattr(SearchIndex, "stamps", then_folded)
    marked = MarkedItems(workspace.store, workspace.parts)
    for _ in range(2):
        assert [stem_of(path) for path in marked.paths()] == ["marked"]
        fold.join()
