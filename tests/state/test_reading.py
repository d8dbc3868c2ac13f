"""The index of state documents agrees with the files, no matter who changes them."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks import state_corpus as corpus
from memfs.catalog.database import FILE
from memfs.errors import ContentError, CorruptItem
from memfs.fs import io
from memfs.fs.executor import Deadline
from memfs.model import state_paths as paths
from memfs.model.item import RACY_NS
from memfs.model.state_facts import StateQuery
from memfs.search.generations import index_folder
from memfs.state import reader
from memfs.state.parts import States
from memfs.state.reader import DocumentChange
from memfs.workspace import Workspace

Opened = Callable[..., Workspace]
OUTPUTS = StateQuery(kinds=("agent_output",))


def write(states: States, *iterations: int, **more: Any) -> None:
    """Store the documents of these iterations, each as one batch."""
    for number in iterations:
        made = corpus.iteration_documents(number, **more)
        states.files.write([DocumentChange(path, values) for path, values in made.items()], f"Iteration {number}")


def by_hand(workspace: Workspace, path: str, values: Any) -> Path:
    """Write a document as a person would."""
    place = workspace.root / path
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(values if isinstance(values, str) else json.dumps(values, indent=2) + "\n")
    return place


def found(states: States, question: StateQuery) -> list[str]:
    """The names of the files that are found."""
    return [row.path.rpartition("/")[2] for row in states.reading.rows(question)]


def test_what_is_written_is_found_at_once_by_everything_it_is_about(opened: Opened) -> None:
    """A document is found by kind, iteration, agent, component, hypothesis, state, figure and time (S13)."""
    states = opened().states
    write(states, 1, 2)
    agent = "Critic/2"
    assert len(states.reading.rows(StateQuery(iterations=(2,), agents=(agent,), kinds=("agent_output",)))) == 2
    assert found(states, StateQuery(agents=(agent,), tasks=("task/2-1",))) == ["task%2F2-1.json"]
    assert len(states.reading.rows(StateQuery(components=("ranking",)))) == 6
    assert found(states, StateQuery(hypotheses=("H 2-1",))) == ["H%202-1.json", "M%202.json"]
    assert found(states, StateQuery(parents=("H 1-3",))) == ["H%202-3.json"]
    assert found(states, StateQuery(kinds=("hypothesis",), states=("retired",))) == ["H%201-0.json", "H%202-0.json"]
    assert len(states.reading.rows(StateQuery(metrics=("total_hypotheses",)))) == 6
    start, end = corpus.opening(2), corpus.opening(3)
    late = states.reading.rows(StateQuery(kinds=("agent_output",), start=start, end=end, newest=True, limit=3))
    assert [row.facts.iteration for row in late] == [2, 2, 2]
    assert late[0].facts.timestamp > late[-1].facts.timestamp  # type: ignore[operator]


def test_iterations_agents_and_figures_are_listed(opened: Opened) -> None:
    """Iterations, agents and figures are answered without reading documents (S13)."""
    states = opened().states
    assert (states.reading.latest_iteration(), states.reading.open_iteration()) == (None, None)
    write(states, 1, 2)
    write(states, 3, closed=False)
    assert [(row.number, row.status) for row in states.reading.iterations()] == [
        (1, "closed"),
        (2, "closed"),
        (3, "open"),
    ]
    assert (states.reading.latest_iteration(), states.reading.open_iteration()) == (3, 3)
    assert states.index.agents() == sorted(corpus.AGENTS)
    figures = states.index.metrics(["yield"], agents=["Judge"], iterations=[1, 3])
    assert [(one.iteration, one.value) for one in figures] == [(1, 3.001)] * 3 + [(3, 3.003)] * 3
    assert [one.value for one in states.index.metrics(["total_hypotheses"], agents=[""], iterations=[2])] == [10.0] * 3


def test_a_change_by_hand_is_seen_when_the_document_is_loaded(opened: Opened) -> None:
    """A document changed in place, with no new name in its folder, is handed out as it is now (S18)."""
    workspace = opened()
    states = workspace.states
    write(states, 1, 2, 3)
    path = paths.hypothesis_path(1, "H 1-2")
    values = states.reading.load(path)
    by_hand(workspace, path, {**values, "state": "proven"})
    assert states.reading.load(path)["state"] == "proven"
    assert found(states, StateQuery(states=("proven",))) == ["H%201-2.json"]


def test_a_question_is_asked_again_when_a_row_was_out_of_date(opened: Opened) -> None:
    """A document that no longer agrees with the question is not in the answer, though the index held it did."""
    workspace = opened()
    states = workspace.states
    write(states, 1, 2, 3)
    question = StateQuery(kinds=("hypothesis",), states=("active",), iterations=(1,))
    states.reading.catch_up()
    path = paths.hypothesis_path(1, "H 1-2")
    by_hand(workspace, path, {**states.reading.load(path), "state": "proven"})
    found = states.reading.gather(question).documents
    assert [one.values["id"] for one in found] == ["H 1-1", "H 1-3", "H 1-4"]


def test_new_and_removed_files_in_an_iteration_at_work_are_seen(opened: Opened) -> None:
    """What a person adds to or removes from an open iteration counts from the next question on (S13)."""
    workspace = opened()
    states = workspace.states
    write(states, 1, closed=False)
    states.reading.catch_up()
    place = by_hand(workspace, paths.output_path(1, "New One", "t"), corpus.output(1, "New One"))
    assert found(states, StateQuery(agents=("New One",))) == ["t.json"]
    place.unlink()
    assert found(states, StateQuery(agents=("New One",))) == []
    by_hand(workspace, paths.system_state_path(7), {"iteration": 7, "status": "open", "opened": "2100-02-01T00:00:00Z"})
    assert states.reading.open_iteration() == 7


def test_another_process_and_its_commit_are_seen(opened: Opened, git: Callable[..., str]) -> None:
    """What another process wrote is found; so is what a checkout changes in iterations closed long ago (S13)."""
    workspace = opened()
    states = workspace.states
    write(states, 1, 2, 3, 4)
    workspace.store.flush()
    states.reading.catch_up()
    program = (
        "import sys\nfrom memfs.workspace import open_workspace\nfrom memfs.state.reader import DocumentChange\n"
        "from benchmarks import state_corpus as c\nfrom memfs.model import state_paths as p\n"
        "with open_workspace(sys.argv[1], watch=False) as w:\n"
        "    v = {**c.output(1, 'Elsewhere'), 'task_id': 'x'}\n"
        "    w.states.files.write([DocumentChange(p.output_path(1, 'Elsewhere', 'x'), v)], 'elsewhere')\n"
        "    w.store.flush()\n"
    )
    subprocess.run([sys.executable, "-c", program, str(workspace.root)], check=True)
    assert found(states, StateQuery(agents=("Elsewhere",))) == ["x.json"]
    git(workspace.root, "checkout", "-q", "HEAD~1")
    assert found(states, StateQuery(agents=("Elsewhere",))) == []
    git(workspace.root, "checkout", "-q", "main")
    assert found(states, StateQuery(agents=("Elsewhere",))) == ["x.json"]


def test_an_edit_in_place_is_found_with_its_commit(opened: Opened, git: Callable[..., str]) -> None:
    """What a person changed in an iteration closed long ago, in the file as it is, is found by its commit."""
    workspace = opened()
    states = workspace.states
    write(states, 1, 2, 3, 4)
    workspace.store.flush()
    place = next((workspace.root / paths.iteration_folder(1)).rglob("agent_outputs/*/*.json"))
    time.sleep(0.03)  # the folder is looked into later than its facts changed
    states.reading.catch_up()
    place.write_text(json.dumps(json.loads(place.read_text()) | {"agent_type": "By Hand"}))
    git(workspace.root, "commit", "-qam", "by hand")
    assert found(states, StateQuery(agents=("By Hand",))) == [place.name]


def test_a_look_at_a_large_commit_goes_on_where_time_was_over(
    opened: Opened, git: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a commit changed is looked at in portions: questions without the time for all of it get through it (S14)."""
    monkeypatch.setattr(reader, "_AT_ONCE", 4)
    workspace = opened()
    states = workspace.states
    write(states, 1)
    workspace.store.flush()
    write(states, 2, 3, 4, 5)
    workspace.store.flush()
    states.reading.catch_up()
    git(workspace.root, "checkout", "-q", "HEAD~4")
    asked = [0]

    def tick() -> float:
        asked[0] += 1
        return float(asked[0])

    looks = 0
    while not states.reading.catch_up(Deadline(4.0, tick)):
        looks += 1
        assert looks < 40
    assert looks > 5
    assert states.index.newest_iteration() == 1


def test_two_open_handles_see_each_others_writes(opened: Opened) -> None:
    """Handles of one workspace share what is known; each answers with the other's last write (S14)."""
    one = opened()
    other = opened(one.root)
    write(one.states, 1)
    assert len(other.states.reading.rows(OUTPUTS)) == 10
    write(other.states, 2)
    assert len(one.states.reading.rows(OUTPUTS)) == 20


@pytest.mark.parametrize("harm", ["gone", "noise", "cut", "other"])
def test_a_damaged_or_missing_index_is_made_again(opened: Opened, harm: str) -> None:
    """The index is derived: gone, overwritten, cut or of another make, the next question has everything (S13)."""
    workspace = opened()
    write(workspace.states, 1, 2)
    workspace.states.reading.catch_up()
    workspace.states.index.close()
    place = index_folder(workspace.root) / FILE
    for beside in place.parent.glob(FILE + "-*"):
        beside.unlink()
    if harm == "gone":
        place.unlink()
    elif harm == "noise":
        place.write_bytes(os.urandom(5000))
    elif harm == "cut":
        place.write_bytes(place.read_bytes()[:9000])
    else:
        place.unlink()
        subprocess.run([sys.executable, "-c", _OTHER, str(place)], check=True)
    assert len(workspace.states.reading.rows(OUTPUTS)) == 20
    assert workspace.states.reading.latest_iteration() == 2


_OTHER = "import sqlite3, sys\nwith sqlite3.connect(sys.argv[1]) as b:\n    b.execute('CREATE TABLE documents (x)')\n"


def test_an_index_that_is_replaced_by_another_process_is_taken_up(opened: Opened) -> None:
    """Where another process begins the index again, this one goes on with the new file."""
    one = opened()
    other = opened(one.root)
    write(one.states, 1)
    assert len(other.states.reading.rows(OUTPUTS)) == 10
    one.states.index.clear()
    assert len(other.states.reading.rows(OUTPUTS)) == 10
    write(one.states, 2)
    assert len(other.states.reading.rows(OUTPUTS)) == 20


def test_an_index_deleted_between_look_and_question_is_made_again_first(
    opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No answer is of the new, empty file (S13)."""
    workspace = opened()
    write(workspace.states, 1)
    reading, place = workspace.states.reading, index_folder(workspace.root)
    look = reading.looking.look
    looks: list[bool] = []

    def looked(*given: Any, **more: Any) -> bool:
        looks.append(look(*given, **more))
        for path in [*place.glob(FILE + "*")] if len(looks) % 2 else ():
            path.unlink()
        return looks[-1]

    monkeypatch.setattr(reading.looking, "look", looked)
    assert len(reading.rows(OUTPUTS)) == 10
    assert reading.latest_iteration() == 1
    reading.catch_up()
    assert len(reading.gather(OUTPUTS).documents) == 10
    assert len(looks) == 6


def test_without_a_place_for_the_index_questions_are_answered(opened: Opened, tmp_path: Path) -> None:
    """Where the disk takes no index, it lives in memory."""
    workspace = opened()
    write(workspace.states, 1)
    workspace.states.index.close()
    folder = index_folder(workspace.root)
    place = folder / FILE
    for found_file in folder.glob(FILE + "*"):
        found_file.unlink()
    place.mkdir()
    assert len(workspace.states.reading.rows(OUTPUTS)) == 10


def test_reindex_forgets_and_finds_everything(opened: Opened) -> None:
    """``reindex`` looks at every file again, those changed in place among them (S13)."""
    workspace = opened()
    states = workspace.states
    write(states, 1, 2, 3)
    path = paths.hypothesis_path(1, "H 1-2")
    by_hand(workspace, path, {**states.reading.load(path), "state": "odd"})
    assert states.reading.reindex() == len(states.reading.rows(StateQuery())) == 3 * 21
    assert found(states, StateQuery(states=("odd",))) == ["H%201-2.json"]


def test_an_invalid_document_gives_its_last_good_version(opened: Opened) -> None:
    """A hand edit that is not JSON leaves the committed version readable and findable (S18)."""
    workspace = opened()
    states = workspace.states
    write(states, 1)
    workspace.store.flush()
    path = paths.hypothesis_path(1, "H 1-2")
    by_hand(workspace, path, '{"id": "H 1-2", ')
    assert states.reading.load(path)["state"] == "active"
    assert found(states, StateQuery(names=("H 1-2",))) == ["H%201-2.json"]


def test_a_document_without_a_good_version_is_a_problem_and_not_the_end(opened: Opened) -> None:
    """One unreadable document keeps no other from being found; loading it says why (S18)."""
    workspace = opened()
    states = workspace.states
    write(states, 1, closed=False)
    path = paths.output_path(1, "Judge", "broken")
    by_hand(workspace, path, "[1, 2")
    states.reading.catch_up()
    gathered = states.reading.gather(StateQuery(iterations=(1,), kinds=("agent_output",)))
    assert len(gathered.documents) == 10
    assert list(gathered.problems) == [path]
    with pytest.raises(ContentError):
        states.reading.load(path)


def test_rot_is_refused(opened: Opened) -> None:
    """A flipped bit with the file's times unchanged is not an edit: the document is not handed out (S18)."""
    workspace = opened()
    states = workspace.states
    write(states, 1)
    path = paths.hypothesis_path(1, "H 1-2")
    row, place = states.index.row(path), workspace.root / path
    assert row is not None
    assert row.stamp is not None
    data = place.read_bytes()
    place.write_bytes(data[:-5] + bytes([data[-5] ^ 1]) + data[-4:])
    now = workspace.parts.tree.entry(path)
    assert now is not None
    read = now.ctime_ns + RACY_NS
    stamp = row.stamp._replace(mtime_ns=now.mtime_ns, ctime_ns=now.ctime_ns, checked_ns=read)
    states.index.learn([replace(row, stamp=stamp)])  # as if the file had been so when it was read
    with pytest.raises(CorruptItem):
        states.reading.load(path)


def test_a_missing_document_is_reported(opened: Opened) -> None:
    """What was never stored, or is gone, is not found; nothing is made up."""
    workspace = opened()
    states = workspace.states
    write(states, 1)
    path = paths.hypothesis_path(1, "H 1-2")
    (workspace.root / path).unlink()
    with pytest.raises(FileNotFoundError):
        states.reading.load(path)
    assert found(states, StateQuery(names=("H 1-2",))) == []


def test_a_link_in_the_place_of_a_document_is_not_followed(opened: Opened, tmp_path: Path) -> None:
    """A link planted among the documents leads nowhere."""
    workspace = opened()
    states = workspace.states
    write(states, 1, closed=False)
    secret = tmp_path / "secret.json"
    secret.write_text(json.dumps({"id": "stolen", "state": "stolen"}))
    (workspace.root / paths.hypothesis_path(1, "stolen")).symlink_to(secret)
    assert found(states, StateQuery(states=("stolen",))) == []


def test_a_name_that_is_not_text_disturbs_nothing(opened: Opened) -> None:
    """A file with a name that is not UTF-8 is passed over; what is beside it is found."""
    workspace = opened()
    write(workspace.states, 1, closed=False)
    folder = os.fsencode(workspace.root / paths.hypothesis_path(1, "x")).rpartition(b"/")[0]
    for name in (b"odd-\xff.json", b"odd-\xe9"):
        with open(folder + b"/" + name, "wb") as place:
            place.write(b"{}")
    assert len(workspace.states.reading.rows(StateQuery(kinds=("hypothesis",)))) == 5
    assert workspace.states.reading.reindex() == 20


def test_of_very_many_documents_the_folders_show_what_came(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a person adds to an iteration closed long ago is found after a while, without a commit (S13)."""
    monkeypatch.setattr(reader, "_FEW", 0)
    monkeypatch.setattr(reader, "_MINUTE_NS", 0)
    workspace = opened()
    write(workspace.states, 1, 2, 3, 4, closed=True)
    workspace.states.reading.catch_up()
    by_hand(workspace, paths.hypothesis_path(1, "late"), {"id": "late"})
    assert found(workspace.states, StateQuery(names=("late",))) == ["late.json"]


def test_a_reader_killed_while_it_learns_leaves_an_index_that_can_be_used(opened: Opened) -> None:
    """kill -9 in the middle of a whole look: the next process has every document (S13)."""
    workspace = opened()
    write(workspace.states, 1, 2, 3)
    workspace.states.index.clear()
    workspace.states.index.close()
    program = (
        "import os, sys\nfrom memfs.fs import io\nfrom memfs.workspace import open_workspace\n"
        "from memfs.model.state_facts import StateQuery\n"
        "w = open_workspace(sys.argv[1], watch=False)\nleft = [int(sys.argv[2])]\n"
        "def hook(name, path):\n"
        "    if name in ('states', 'scan'):\n"
        "        left[0] -= 1\n"
        "        if left[0] == 0:\n"
        "            os.kill(os.getpid(), 9)\n"
        "io.set_hook(hook)\nw.states.reading.rows(StateQuery())\n"
    )
    for point in ("3", "9"):
        done = subprocess.run([sys.executable, "-c", program, str(workspace.root), point], check=False)
        assert done.returncode == -9
        assert len(workspace.states.reading.rows(OUTPUTS)) == 30
        workspace.states.index.clear()
        workspace.states.index.close()


def test_what_the_secondary_location_holds_is_found(opened: Opened, tmp_path: Path) -> None:
    """On a full disk a document lands in the secondary location, and this and another handle find it there (S17)."""
    secondary = tmp_path / "secondary"
    secondary.mkdir(0o700)
    workspace = opened(storage__secondary=str(secondary))
    write(workspace.states, 1)
    workspace.states.reading.catch_up()

    def full(name: str, path: str) -> None:
        if name in _CHANGES and not path.startswith(str(secondary)):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    before = io.set_hook(full)
    try:
        path = paths.output_path(1, "Late", "t")
        change = DocumentChange(path, {**corpus.output(1, "Late"), "task_id": "t"})
        (written,) = workspace.states.files.write([change], "Late", critical=True)
        assert written.durability == "fallback"
        assert found(workspace.states, StateQuery(agents=("Late",))) == ["t.json"]
        assert workspace.states.reading.load(path)["task_id"] == "t"
        other = opened(workspace.root, storage__secondary=str(secondary))
        assert found(other.states, StateQuery(agents=("Late",))) == ["t.json"]
    finally:
        io.set_hook(before)
    assert found(workspace.states, StateQuery(agents=("Late",))) == ["t.json"]


_CHANGES = frozenset({"write", "fsync", "fdatasync", "sync", "mkdir", "link", "rename", "truncate", "unlink"})


def test_readers_and_writers_at_once_see_whole_answers(opened: Opened) -> None:
    """While another handle stores iteration after iteration, each answer is of one piece and nothing is lost (S14)."""
    reader = opened()
    writer = opened(reader.root)
    failures: list[str] = []

    def store() -> None:
        for number in range(1, 9):
            write(writer.states, number)

    thread = threading.Thread(target=store)
    thread.start()
    while thread.is_alive():
        answer = reader.states.retrieval.retrieve("full").content
        failures += [one["id"] for one in answer.hypothesis_data if not one.get("agent")]
    thread.join()
    assert failures == []
    assert len(reader.states.reading.rows(OUTPUTS)) == 80
    assert len(reader.states.retrieval.retrieve("full").content.hypothesis_data) == 40
