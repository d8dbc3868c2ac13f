"""Suggestions: durable, decided once, and gone where the memories are that they quote (D1)."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from kit.faults import DISK_FULL, Fault, Stopped, injected
from memfs import CorruptRecord, ItemNotFound, MemfsError, MemoryItem, SecretDetected
from memfs.admin.backup_file import restore
from memfs.errors import Conflict, FormatUnsupported, IdExists
from memfs.learning import inbox
from memfs.learning.inbox import Inbox
from memfs.model import Origin
from memfs.model.learning import Source, Suggestion, SuggestionDecision
from memfs.model.time import utc_now
from memfs.workspace import Workspace, open_workspace

Opened = Callable[..., Workspace]
Git = Callable[..., str]


def suggestion(name: str, text: str = "", source: Source = Source.LESSON) -> Suggestion:
    """A suggestion of a semantic memory."""
    item = MemoryItem(text or f"{name} is worth knowing", "semantic", id=name, trust="agent")
    return Suggestion(item=item, source=source, made=utc_now(), evidence=("some-memory",), reason="learned in t1")


@pytest.fixture
def workspace(opened: Opened) -> Workspace:
    """An empty workspace."""
    return opened(history__commit="batch")


def path_of(workspace: Workspace) -> Path:
    """Where suggestions are."""
    return workspace.repository.state / inbox.FILE


def test_a_suggestion_reads_back_as_it_was_noted(workspace: Workspace, git: Git) -> None:
    """Every field survives the file; nothing of it is in git or in the tree (D1)."""
    given = suggestion("one")
    assert workspace.inbox.add([given]) == [given]
    assert workspace.inbox.add([given]) == []

    (read,) = Inbox(workspace.store, workspace.parts).all()
    assert read == given
    assert (read.item.timestamp, read.item.created) == (None, None)
    assert git(workspace.root, "status", "--porcelain") == ""
    assert workspace.store.count() == 0


def test_what_waits_is_brought_up_to_date(workspace: Workspace) -> None:
    """A suggestion that waits has the newest figures and its first date; one that was decided about stays (D1)."""
    first = suggestion("one")
    workspace.inbox.add([first])
    more = Suggestion(item=first.item, source=first.source, made=utc_now(), count=5)
    workspace.inbox.add([more])
    (one,) = workspace.inbox.all()
    assert (one.count, one.made) == (5, first.made)

    workspace.inbox.refuse([one])
    workspace.inbox.add([more])
    workspace.inbox.drop(["one"])
    assert [(kept.id, kept.decision) for kept in workspace.inbox.all()] == [("one", SuggestionDecision.REFUSED)]
    workspace.inbox.add([suggestion("other", "One  is worth knowing")])  # another id, the same words
    assert len(workspace.inbox.all()) == 1


def test_accepting_twice_at_once_makes_one_memory(workspace: Workspace, opened: Opened, git: Git) -> None:
    """Two processes that accept the same make one item and one commit, and neither fails (D1)."""
    workspace.inbox.add([suggestion("one")])
    other = opened(workspace.root, history__commit="batch")
    before = int(git(workspace.root, "rev-list", "--count", "HEAD"))
    start = threading.Barrier(2)
    got: list[list[MemoryItem]] = []

    def accept(one: Workspace) -> None:
        found = one.inbox.find("one")
        start.wait()
        got.append(one.inbox.accept([found]))
        one.store.flush()

    threads = [threading.Thread(target=accept, args=(one,)) for one in (workspace, other)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert [[item.id for item in items] for items in got] == [["one"], ["one"]]
    assert int(git(workspace.root, "rev-list", "--count", "HEAD")) == before + 1
    assert workspace.inbox.waiting() == []


@pytest.mark.parametrize("error", [None, DISK_FULL], ids=["killed", "disk full"])
def test_an_acceptance_that_stops_anywhere_is_whole_or_nothing(opened: Opened, error: int | None) -> None:
    """Stopped at any disk operation, there is one memory or none, and accepting again ends well (D1)."""
    workspace = opened()
    for number in range(1, 400, 3):
        name = f"number-{number}"
        workspace.inbox.add([suggestion(name)])
        found = workspace.inbox.find(name)
        fault = Fault(number, error)
        try:
            with injected(fault):
                workspace.inbox.accept([found])
        except (Stopped, MemfsError):
            workspace.close()
            workspace = opened(workspace.root)
            workspace.inbox.accept([workspace.inbox.find(name)])
        known = workspace.store.get(name)
        assert known is not None
        assert known.content == found.item.content
        assert workspace.inbox.waiting() == []
        if len(fault.seen) < number:
            return
        workspace.store.delete(name)  # each file that is young costs the next round a look
    raise AssertionError("an acceptance takes fewer operations")


def test_the_one_who_accepts_makes_the_commit(workspace: Workspace, git: Git) -> None:
    """An accepted memory says who said it, and its commit is of the one who accepted it, not of an agent (D1)."""
    base = suggestion("one")
    suggested = Suggestion(
        item=base.item.replace(origin=Origin(agent="coder", session="s1")), source=base.source, made=base.made
    )
    workspace.inbox.add([suggested])
    (item,) = workspace.inbox.accept([workspace.inbox.find("one")])
    workspace.store.flush()
    assert (item.origin.agent, item.trust) == ("coder", "reviewed")
    assert (
        git(workspace.root, "log", "-1", "--format=%an: %s").strip().endswith("Accept a lesson: one is worth knowing")
    )
    assert "coder" not in git(workspace.root, "log", "-1", "--format=%an %B")


def test_a_refusal_survives_the_death_of_its_process(workspace: Workspace) -> None:
    """What ``refuse`` acknowledged holds after ``kill -9`` (D1)."""
    workspace.inbox.add([suggestion("one")])
    script = (
        "import os, signal, sys\n"
        "from memfs.workspace import open_workspace\n"
        "opened = open_workspace(sys.argv[1], watch=False)\n"
        "opened.inbox.refuse([opened.inbox.find('one')])\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run([sys.executable, "-c", script, str(workspace.root)], check=False)
    assert done.returncode == -9
    assert [one.decision for one in workspace.inbox.all()] == [SuggestionDecision.REFUSED]


def test_many_processes_note_and_lose_nothing(workspace: Workspace, opened: Opened) -> None:
    """Suggestions that several note at the same time are all there (D1)."""
    others = [opened(workspace.root) for _ in range(3)]

    def note(number: int, one: Workspace) -> None:
        for turn in range(5):
            one.inbox.add([suggestion(f"of-{number}-{turn}")])

    threads = [threading.Thread(target=note, args=row) for row in enumerate(others)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(workspace.inbox.all()) == 15


def test_a_name_that_is_taken_is_refused(workspace: Workspace) -> None:
    """What is another memory's id is not a suggestion's, and an accepted one is not refused (D1)."""
    workspace.store.put(MemoryItem("something else", "knowledge", id="one"))
    workspace.inbox.add([suggestion("one"), suggestion("two-a"), suggestion("two-b")])
    with pytest.raises(IdExists, match="is a knowledge"):
        workspace.inbox.accept([workspace.inbox.find("one")])
    with pytest.raises(ItemNotFound, match="two"):
        workspace.inbox.find("two")
    workspace.inbox.accept([workspace.inbox.find("two-a")])
    with pytest.raises(Conflict, match="was accepted"):
        workspace.inbox.refuse([workspace.inbox.find("two-a")])


def test_no_secret_is_suggested(workspace: Workspace) -> None:
    """What could not be stored is not noted either (B6)."""
    with pytest.raises(SecretDetected):
        workspace.inbox.add([suggestion("one", "the key is AKIA" + "Q3EGRTZ5WJ7KPLMN")])
    assert not path_of(workspace).exists()


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (b"{", CorruptRecord),
        (b"[]", CorruptRecord),
        (b'{"format": 1, "suggestions": [3]}', CorruptRecord),
        (b'{"format": 2, "suggestions": []}', FormatUnsupported),
        (b"\xff\xfe", CorruptRecord),
    ],
)
def test_a_damaged_file_is_named_and_left(workspace: Workspace, data: bytes, error: type[MemfsError]) -> None:
    """A file that cannot be read is refused with its path and what to do, and never written over (D1)."""
    path_of(workspace).write_bytes(data)
    with pytest.raises(error) as caught:
        workspace.inbox.waiting()
    assert caught.value.path == str(path_of(workspace))
    assert caught.value.hint
    with pytest.raises(error):
        workspace.inbox.add([suggestion("one")])
    with pytest.raises(error):
        workspace.learner.run()
    assert [problem.code for problem in workspace.checker.check() if problem.path == caught.value.path] == [
        error.__name__
    ]
    assert path_of(workspace).read_bytes() == data


def test_one_entry_that_cannot_be_read_hides_no_other(workspace: Workspace) -> None:
    """An entry somebody broke is named among the problems, and stays in the file (D1)."""
    workspace.inbox.add([suggestion("one"), suggestion("two")])
    document = json.loads(path_of(workspace).read_bytes())
    document["suggestions"][0]["id"] = "../../etc/passwd"
    path_of(workspace).write_text(json.dumps(document))

    assert [one.id for one in workspace.inbox.all()] == ["two"]
    assert any("a suggestion cannot be read" in problem.message for problem in workspace.store.problems())
    workspace.inbox.refuse([workspace.inbox.find("two")])
    assert b"../../etc/passwd" in path_of(workspace).read_bytes()


def test_there_is_room_for_what_matters(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of what was suggested the oldest is dropped, of what is found again anyway no more is noted (D1)."""
    monkeypatch.setattr(inbox, "MOST_HEARD", 2)
    monkeypatch.setattr(inbox, "MOST_FOUND", 1)
    workspace.inbox.add([suggestion("zero")])
    workspace.inbox.refuse([workspace.inbox.find("zero")])
    for name in ("one", "two", "three"):
        workspace.inbox.add([suggestion(name), suggestion(f"rule-{name}", source=Source.RULE)])
    assert [one.id for one in workspace.inbox.all()] == ["zero", "rule-one", "two", "three"]


def remember(workspace: Workspace, *numbers: int) -> list[MemoryItem]:
    """Similar memories."""
    texts = [f"the {number}th zqxmark kumquat is ripe" for number in numbers]
    return [workspace.store.put(MemoryItem(text, "knowledge")) for text in texts]


def test_erase_takes_what_quotes_an_item(workspace: Workspace) -> None:
    """An erased item is in no suggestion; of a refusal that quoted it the refusal stays, and so it is proved (B6)."""
    first = remember(workspace, 1, 2, 3)
    workspace.learner.run()
    (one,) = workspace.inbox.waiting()
    workspace.inbox.refuse([one])
    workspace.inbox.add([suggestion("heard", first[0].content)])
    workspace.store.flush()

    done = workspace.eraser.erase(first[0].id)

    assert done.proof.hits == ()
    assert first[0].content.encode() not in path_of(workspace).read_bytes()
    assert first[0].id.encode() not in path_of(workspace).read_bytes()
    assert [(kept.id, kept.decision) for kept in workspace.inbox.all()] == [(one.id, SuggestionDecision.REFUSED)]
    remember(workspace, 4, 5)
    workspace.learner.run()
    assert workspace.inbox.waiting() == []


def test_erase_takes_a_file_that_nobody_can_read(workspace: Workspace) -> None:
    """Suggestions that are damaged may hold anything, and go (B6)."""
    (item,) = remember(workspace, 1)
    workspace.store.flush()
    path_of(workspace).write_bytes(b'{"broken')
    workspace.eraser.erase(item.id)
    assert not path_of(workspace).exists()


def test_a_backup_has_suggestions_and_refusals(workspace: Workspace, tmp_path: Path) -> None:
    """What waits and what was refused comes back with a backup (S21)."""
    workspace.inbox.add([suggestion("one"), suggestion("two")])
    workspace.inbox.refuse([workspace.inbox.find("two")])
    (made,) = workspace.backups.make(tmp_path / "backups")

    restored = restore(made.path, tmp_path / "again")

    with open_workspace(restored.root, watch=False) as again:
        assert {one.id: one.decision for one in again.inbox.all()} == {
            "one": SuggestionDecision.WAITING,
            "two": SuggestionDecision.REFUSED,
        }
