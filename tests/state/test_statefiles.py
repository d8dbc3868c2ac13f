"""State documents on disk: checked, whole, durable (S1, S2, S16, S18)."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from kit.faults import DISK_FULL, Fault, Stopped, injected
from memfs.errors import (
    Conflict,
    ContentError,
    CorruptItem,
    NotRegularFile,
    PathEscape,
    QuotaExceeded,
    SchemaInvalid,
    SecretDetected,
    StorageFull,
)
from memfs.fs import io
from memfs.fs.atomic_replace import sha256
from memfs.model.state_paths import (
    document_kind,
    hypothesis_path,
    output_path,
    system_state_path,
    token_path,
    update_path,
)
from memfs.state.reader import DocumentChange, State, StateFiles
from memfs.workspace import Workspace

Open = Callable[..., Workspace]
Git = Callable[..., str]
MOMENT = datetime(2026, 3, 1, 10, tzinfo=UTC)
UPDATE = {"timestamp": "2026-03-01T10:00:00Z", "update_type": "periodic", "system_statistics": {"total_hypotheses": 3}}
HEADER = {"iteration": 1, "status": "open", "opened": "2026-03-01T09:00:00Z"}
FAKE_KEY = "AKIA" + "IOSFODNN7EXAMPLQ"


def files_of(workspace: Workspace) -> StateFiles:
    """The documents of a workspace."""
    return StateFiles(workspace.store, workspace.parts, workspace.states.index)


def put(files: StateFiles, path: str, values: Mapping[str, Any], expected: str | None = None) -> State:
    """Write one document."""
    return files.write([DocumentChange(path, values, expected)], "Store it")[0]


def remove(files: StateFiles, path: str, expected: str | None = None) -> None:
    """Remove one document."""
    assert files.write([DocumentChange(path, None, expected)], "Remove it") == []


def test_a_document_comes_back_as_it_was_given(opened: Open) -> None:
    """Any JSON value stays what it was, in this process and the next; the file is plain, indented JSON (S1, S2)."""
    workspace = opened()
    values = {
        "agent_type": "Évolution/Agent",
        "task_id": "Task/7",
        "timestamp": "2026-03-01T10:00:00Z",
        "results": {"primary_output": [1, 2.5, None, True, {"a b": "line\nline\x1f", "": {}} if False else {"k": []}]},
    }
    path = output_path(1, "Évolution/Agent", "Task/7")

    written = put(files_of(workspace), path, values)

    data = (workspace.root / path).read_bytes()
    assert (written.sha256, written.bytes, written.durability) == (sha256(data), len(data), "file")
    assert written.stamp is not None
    assert written.stamp.size == len(data)
    assert data.decode() == json.dumps(values, indent=2, ensure_ascii=False).replace("\x1f", "\\u001f") + "\n"
    for reader in (files_of(workspace), files_of(opened(workspace.root))):
        state = reader.read(path)
        assert (state.values, state.sha256, state.bytes, state.problem) == (values, written.sha256, len(data), "")


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({"system_statistics": {"tournament_progress": 1.5}}, "system_statistics.tournament_progress"),
        ({"system_statistics": {"hypotheses_by_state": {"new": -1}}}, "system_statistics.hypotheses_by_state.new"),
        ({"orchestration_state": {"agent_weights": {"Ranking Agent": "2"}}}, "orchestration_state.agent_weights.Rank"),
        ({"update_type": "sometimes"}, "update_type"),
        ({"timestamp": "yesterday"}, "timestamp"),
        ({"checkpoint_data": {"in_flight_tasks": "none"}}, "checkpoint_data.in_flight_tasks"),
        ({"strategic_focus": "x"}, "strategic_focus"),
        ({"orchestration_state": {"queue_statistics": {"a": float("nan")}}}, "orchestration_state.queue_statistics.a"),
    ],
)
def test_an_error_names_the_dotted_field_and_nothing_is_written(opened: Open, values: Any, field: str) -> None:
    """State is validated before it is stored; the error says where and what would be right (S1)."""
    workspace = opened()
    path = update_path(1, MOMENT)
    good = DocumentChange(system_state_path(1), HEADER)

    with pytest.raises(SchemaInvalid) as caught:
        files_of(workspace).write([good, DocumentChange(path, {**UPDATE, **values})], "Store it")

    assert (caught.value.field or "").startswith(field)
    assert (caught.value.path, bool(caught.value.hint)) == (path, True)
    assert not (workspace.root / "ContextMemory/iterations").exists()


def test_hypotheses_and_results_may_have_further_keys(opened: Open) -> None:
    """A system's own fields are kept (S2)."""
    files = files_of(opened())
    values = {"id": "H/1", "parents": [], "my own": {"key": [1]}, "wins": 2}

    put(files, hypothesis_path(1, "H/1"), values)

    assert files.read(hypothesis_path(1, "H/1")).values == values


def test_only_what_was_expected_is_replaced(opened: Open) -> None:
    """A writer that read an older version, or expected none, gets the present one in the error (S5)."""
    files = files_of(opened())
    path = hypothesis_path(1, "h")
    first = put(files, path, {"id": "h"}, expected="")
    second = put(files, path, {"id": "h", "state": "new"}, expected=first.sha256)

    for expected in (first.sha256, "", "0" * 64):
        with pytest.raises(Conflict) as caught:
            put(files, path, {"id": "h", "state": "old"}, expected=expected)
        assert (caught.value.current, caught.value.path) == (second.sha256, path)
    remove(files, path, expected=second.sha256)
    with pytest.raises(Conflict, match="removed since"):
        put(files, path, {"id": "h"}, expected=second.sha256)
    assert not files.exists(path)
    with pytest.raises(FileNotFoundError):
        files.read(path)


def test_a_batch_is_written_whole_or_not_at_all(opened: Open, git: Git) -> None:
    """One document that cannot be written keeps back the others; together they are one commit."""
    workspace = opened()
    files = files_of(workspace)
    put(files, hypothesis_path(1, "b"), {"id": "b"})
    files.commit_now()

    taken = DocumentChange(hypothesis_path(1, "b"), {"id": "b", "wins": 1}, "")
    with pytest.raises(Conflict):
        files.write([DocumentChange(hypothesis_path(1, "a"), {"id": "a"}), taken], "Two")
    with pytest.raises(Conflict, match="two changes of one"):
        files.write([DocumentChange(hypothesis_path(1, "a"), {"id": "a"})] * 2, "Twice")
    assert not files.exists(hypothesis_path(1, "a"))

    files.write(
        [DocumentChange(hypothesis_path(1, "a"), {"id": "a"}), DocumentChange(hypothesis_path(1, "b"), None)],
        "Replace b by a",
    )
    assert files.revision_of(hypothesis_path(1, "a")) == ""
    files.commit_now()
    assert files.revision_of(hypothesis_path(1, "a")) == git(workspace.root, "rev-parse", "HEAD").strip()
    changed = git(workspace.root, "show", "--name-status", "--format=%s", "HEAD").split("\n")
    assert [changed[0], sorted(line[0] for line in changed[2:4])] == ["Replace b by a", ["A", "D"]]


def test_documents_written_one_by_one_share_a_commit(opened: Open, git: Git) -> None:
    """A busy system does not make a commit for each document."""
    workspace = opened()
    files = files_of(workspace)
    for number in range(5):
        put(files, hypothesis_path(1, f"h{number}"), {"id": f"h{number}"})

    assert len(files.commit_now().commits) == 1
    assert git(workspace.root, "log", "-1", "--format=%s").strip() == "Store it and 4 more"


def test_equal_values_leave_the_file_alone(opened: Open) -> None:
    """Storing the same again writes nothing and answers as before."""
    workspace = opened()
    files = files_of(workspace)
    path = hypothesis_path(1, "h")
    first = put(files, path, {"id": "h", "wins": 1})
    before = os.stat(workspace.root / path)

    again = put(files, path, {"id": "h", "wins": 1})
    assert (again.path, again.sha256, again.bytes) == (first.path, first.sha256, first.bytes)
    assert os.stat(workspace.root / path) == before
    assert workspace.store.pending().count == 1


def test_what_was_read_before_is_not_parsed_again(opened: Open) -> None:
    """Of equal bytes everybody gets an own copy; a large document takes no room, and an edit counts at once (S14)."""
    workspace = opened()
    files = files_of(workspace)
    path, large = hypothesis_path(1, "h"), hypothesis_path(1, "large")
    put(files, path, {"id": "h", "tags": ["a"]})
    put(files, large, {"id": "large", "text": "x" * (1 << 16)})

    files.read(path).values["tags"].append("spoilt")
    assert files.read(path).values == {"id": "h", "tags": ["a"]}
    assert files.read(large).values["id"] == files.read(large).values["id"] == "large"
    assert files.parsed.cache_info()[:2] == (1, 1)

    (workspace.root / path).write_text('{"id": "h", "tags": ["b"]}')
    assert files.read(path).values["tags"] == ["b"]


def test_the_index_learns_of_each_write_and_removal(opened: Open) -> None:
    """What is written is known without being read again (S13)."""
    workspace = opened()
    files, index = files_of(workspace), workspace.states.index
    path = hypothesis_path(1, "h")

    put(files, path, {"id": "h", "state": "new"})
    row = index.row(path)
    assert row is not None
    assert row.facts.state == "new"
    assert row.stamp is not None
    remove(files, path)
    assert index.row(path) is None


def test_only_documents_are_found_and_written(opened: Open) -> None:
    """A path that names no document is refused; a scan passes over whatever else is there."""
    workspace = opened()
    files = files_of(workspace)
    put(files, hypothesis_path(1, "h"), {"id": "h"})
    (workspace.root / "ContextMemory/iterations/iteration_001/notes.txt").write_text("mine")
    (workspace.root / "ContextMemory/iterations/iteration_001/hypotheses/.memfs-x.tmp").write_text("{}")

    assert [entry.path for entry in files.scan("ContextMemory/iterations")] == [hypothesis_path(1, "h")]
    for path in ("ContextMemory/memories/semantic/a.yaml", "../x.json", "ContextMemory/iterations/x/system_state.json"):
        with pytest.raises(PathEscape):
            put(files, path, {"id": "h"})
        assert document_kind(path) == ""


def test_secrets_are_refused_and_tokens_are_not_secrets(opened: Open) -> None:
    """What looks like a key does not enter the files; digests and continuation tokens are none (B6, S9)."""
    files = files_of(opened())
    token = f"ct-1-{'3f9a71c0' * 4}"
    with pytest.raises(SecretDetected) as caught:
        put(files, hypothesis_path(1, "h"), {"id": "h", "note": FAKE_KEY})
    assert FAKE_KEY not in str(caught.value)

    kept = {"token": token, "agent": "a", "task_id": "t", "state": {}, "created": "2026-03-01T10:00:00Z"}
    put(files, token_path(1, token), kept)
    output = {"agent_type": "a", "task_id": "t", "timestamp": "2026-03-01T10:00:00Z"}
    put(files, output_path(1, "a", "t"), {**output, "state_data": {"continuation_token": token}})
    put(files, hypothesis_path(1, "s"), {"id": "s", "fingerprint": "ab" * 32, "version": f"sha256:{'cd' * 32}"})


# -- a person's edits ---------------------------------------------------------------------------------------------
def test_a_good_edit_by_hand_is_read_and_adopted(opened: Open, git: Git) -> None:
    """A person may correct a document with any editor; ``memfs commit`` records it (S18)."""
    workspace = opened()
    files = files_of(workspace)
    path = hypothesis_path(1, "h")
    put(files, path, {"id": "h", "wins": 1})
    files.commit_now()

    (workspace.root / path).write_text('{"id": "h",\n\n"wins": 5}')
    assert files.read(path).values == {"id": "h", "wins": 5}
    assert workspace.store.hand_edits() == [path]
    workspace.store.flush(adopt=True)

    assert git(workspace.root, "show", f"HEAD:{path}") == '{"id": "h",\n\n"wins": 5}'
    assert workspace.store.hand_edits() == []


@pytest.mark.parametrize("committed", [True, False], ids=["committed", "waiting"])
def test_an_invalid_edit_is_a_problem_and_the_last_good_version_answers(opened: Open, committed: bool) -> None:
    """Reads go on; the problem names line and remedy; nothing commits the edit; a new write keeps it in history."""
    workspace = opened()
    files = files_of(workspace)
    path = hypothesis_path(1, "h")
    put(files, path, {"id": "h", "wins": 1})
    if committed:
        files.commit_now()
    broken = '{\n  "id": "h",\n  "wins": "many"\n}\n'
    (workspace.root / path).write_text(broken)

    for reader in (files, files_of(opened(workspace.root))):
        state = reader.read(path)
        assert (state.values, state.sha256) == ({"id": "h", "wins": 1}, sha256(broken.encode()))
        assert ":3:" in state.problem
    assert [found.path for found in workspace.checker.check() if found.code == "SchemaInvalid"] == [path]
    assert workspace.store.flush(adopt=True).adopted == ()

    put(files, path, {"id": "h", "wins": 2}, expected=state.sha256)
    assert (files.read(path).values, files.read(path).problem) == ({"id": "h", "wins": 2}, "")
    waiting = [change.data for found in workspace.parts.journal.operations() for change in found.changes]
    assert broken.encode() in waiting


def test_a_document_that_never_was_valid_is_an_error(opened: Open) -> None:
    """Nothing is made up: the error names line and remedy, until the file is corrected."""
    workspace = opened()
    files = files_of(workspace)
    path = workspace.root / hypothesis_path(1, "h")
    path.parent.mkdir(parents=True)
    path.write_text('{"id": "h",}')

    with pytest.raises(ContentError) as caught:
        files.read(hypothesis_path(1, "h"))
    assert (caught.value.line, bool(caught.value.hint)) == (1, True)
    path.write_text('{"id": "h"}')
    assert files.read(hypothesis_path(1, "h")).problem == ""


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xff\xfe{\0}\0",
        b"[1, 2]",
        b'{"id": "h"',
        b'{"a":' * 5_000,
        b'{"id": "h", "id": "g"}',
        b'{"id": "h", "n": 1e999}',
        b'{"id": "h", "n": NaN}',
        b"<<<<<<< ours\n{}\n>>>>>>> theirs\n",
        b'{"wins": 1}',
    ],
)
def test_garbage_is_a_problem_of_its_file_alone(opened: Open, data: bytes) -> None:
    """Whatever is in a file, the error names path and remedy, and the other documents are served (S18)."""
    workspace = opened()
    files = files_of(workspace)
    put(files, hypothesis_path(1, "good"), {"id": "good"})
    (workspace.root / hypothesis_path(1, "h")).write_bytes(data)

    with pytest.raises(ContentError) as caught:
        files.read(hypothesis_path(1, "h"))

    assert (caught.value.path, bool(caught.value.hint)) == (hypothesis_path(1, "h"), True)
    assert [problem.path for problem in workspace.checker.check()] == [hypothesis_path(1, "h")]
    assert files.read(hypothesis_path(1, "good")).values == {"id": "good"}
    assert workspace.store.flush(adopt=True).adopted == ()


def test_what_is_not_a_file_is_never_followed(opened: Open, tmp_path: Path) -> None:
    """A link or a folder in a document's place is refused, and a scan passes over it."""
    workspace = opened()
    files = files_of(workspace)
    put(files, hypothesis_path(1, "good"), {"id": "good"})
    (tmp_path / "outside.json").write_text('{"id": "outside"}')
    (workspace.root / hypothesis_path(1, "link")).symlink_to(tmp_path / "outside.json")
    (workspace.root / hypothesis_path(1, "folder")).mkdir()

    for name in ("link", "folder"):
        with pytest.raises(NotRegularFile):
            files.read(hypothesis_path(1, name))
        with pytest.raises(NotRegularFile):
            put(files, hypothesis_path(1, name), {"id": name})
        assert not files.exists(hypothesis_path(1, name))
    assert [entry.path for entry in files.scan("ContextMemory/iterations")] == [hypothesis_path(1, "good")]
    assert (tmp_path / "outside.json").read_text() == '{"id": "outside"}'


def test_a_document_may_have_many_parts(opened: Open) -> None:
    """Long lists of numbers are usual in state, and a secret among them is found all the same (S2, B6)."""
    files = files_of(opened())
    values = {"id": "h", "vector": list(range(60_000))}

    put(files, hypothesis_path(1, "h"), values)

    assert files.read(hypothesis_path(1, "h")).values == values
    with pytest.raises(SecretDetected):
        put(files, hypothesis_path(1, "h"), {**values, "note": f"line\n{FAKE_KEY}"})


def test_a_protected_edit_is_not_replaced_unread(opened: Open) -> None:
    """Where edits by hand are left to the person, only one who read the edit replaces it."""
    workspace = opened(history__adopt="leave")
    files = files_of(workspace)
    path = hypothesis_path(1, "h")
    put(files, path, {"id": "h"})
    (workspace.root / path).write_text('{"id": "h", "state": "mine"}')

    with pytest.raises(Conflict, match="edited by hand"):
        put(files, path, {"id": "h", "state": "other"})
    put(files, path, {"id": "h", "state": "other"}, expected=files.read(path).sha256)

    assert files.read(path).values["state"] == "other"


def test_bytes_that_nobody_wrote_are_reported_from_an_edit(opened: Open) -> None:
    """A flipped bit is an error of its own, isolated to the file (S18)."""
    workspace = opened()
    files = files_of(workspace)
    path, other = hypothesis_path(1, "h"), hypothesis_path(1, "other")
    put(files, path, {"id": "h", "wins": 1})
    put(files, other, {"id": "other"})
    stamp = files.read(path).stamp._replace(blob="0" * 40, checked_ns=files.read(path).stamp.ctime_ns + 10**10)

    with pytest.raises(CorruptItem) as caught:
        files.read(path, known=stamp)

    assert caught.value.path == path
    assert "memfs check --fix" in (caught.value.hint or "")
    assert files.read(other).values == {"id": "other"}


# -- the disk -----------------------------------------------------------------------------------------------------
def batch(files: StateFiles, number: int) -> None:
    """What a supervisor's update writes: the update and the header, together."""
    update = {**UPDATE, "system_statistics": {"total_hypotheses": number}}
    path = update_path(1, MOMENT.replace(second=number))
    header = {**HEADER, "update": update}
    files.write([DocumentChange(path, update), DocumentChange(system_state_path(1), header)], f"Store update {number}")


def total(files: StateFiles) -> int:
    """The number that the last batch put into the header."""
    found: int = files.read(system_state_path(1)).values["update"]["system_statistics"]["total_hypotheses"]
    return found


def test_a_batch_stopped_anywhere_is_whole_or_absent(opened: Open) -> None:
    """Wherever the process is killed, both documents are there or neither; what was acknowledged stays (S18)."""
    workspace = opened()
    batch(files_of(workspace), 1)
    files = files_of(opened(workspace.root))
    with injected(Fault()) as counted:
        batch(files, 2)
    batches = 2
    for at in range(2, len(counted.seen), 5):
        writer = files_of(opened(workspace.root))
        with injected(Fault(at=at)), pytest.raises(Stopped):
            batch(writer, batches + 1)
        reader = files_of(opened(workspace.root))
        seen = total(reader)
        assert seen in (batches, batches + 1)
        assert reader.exists(update_path(1, MOMENT.replace(second=batches + 1))) == (seen == batches + 1)
        batches = seen
    assert batches > 2


def test_a_full_disk_refuses_and_leaves_everything_as_it_was(opened: Open) -> None:
    """Nothing is half-written when the disk refuses anywhere (S17)."""
    workspace = opened()
    files = files_of(workspace)
    batch(files, 1)
    with injected(Fault()) as counted:
        batch(files, 2)
    refusing = ("write", "link", "exchange", "mkdir")
    points = [at for at, name in enumerate(counted.seen, 1) if name.split()[0] in refusing]
    refused = 0
    for number, at in enumerate(points, 3):
        before = total(files)
        with injected(Fault(at=at, error=DISK_FULL)):
            try:
                batch(files, number)
            except StorageFull:
                refused += 1
                assert total(files) == before
                assert not files.exists(update_path(1, MOMENT.replace(second=number)))
    assert refused > 2
    batch(files, 50)
    assert total(files) == 50


def test_threads_and_handles_write_at_once_and_lose_nothing(opened: Open) -> None:
    """Several handles and threads write other documents and one in common; every write arrives (S5)."""
    workspace = opened()
    handles = [files_of(workspace), files_of(opened(workspace.root))]
    started = threading.Barrier(4)

    def write(worker: int) -> None:
        started.wait()
        for number in range(6):
            put(handles[worker % 2], hypothesis_path(1, f"h{worker}-{number}"), {"id": f"h{worker}-{number}"})
            put(handles[worker % 2], hypothesis_path(1, "common"), {"id": "common", "wins": worker})

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, range(4)))

    assert len(list(handles[0].scan("ContextMemory/iterations"))) == 25
    assert handles[1].read(hypothesis_path(1, "common")).values["wins"] in range(4)


def test_at_the_quota_periodic_updates_wait_and_critical_ones_land(opened: Open) -> None:
    """A full area refuses with its name and a remedy, and critical state is stored all the same (S16)."""
    workspace = opened()
    files = files_of(workspace)
    config = workspace.root / "ContextMemory/configuration/system_config.json"
    config.write_text(json.dumps({"quotas": {"iterations_bytes": 2000}}))
    put(files, hypothesis_path(1, "h"), {"id": "h", "text": "x" * 1500})

    with pytest.raises(QuotaExceeded) as caught:
        put(files, update_path(1, MOMENT), {**UPDATE, "orchestration_state": {"strategic_focus": "y" * 1000}})
    assert (caught.value.field, bool(caught.value.hint)) == ("quotas.iterations_bytes", True)
    files.write([DocumentChange(update_path(1, MOMENT), UPDATE)], "Store a critical update", critical=True)

    assert files.exists(update_path(1, MOMENT))


def test_what_the_secondary_location_took_is_read_from_there(opened: Open, tmp_path: Path) -> None:
    """While the workspace cannot take writes, documents land elsewhere and are read as if they were home (S17)."""
    (tmp_path / "secondary").mkdir(0o700)
    workspace = opened(storage__secondary=str(tmp_path / "secondary"))
    files = files_of(workspace)
    put(files, hypothesis_path(1, "h"), {"id": "h"})

    before = io.set_hook(_full_but(str(tmp_path / "secondary")))
    try:
        written = put(files, hypothesis_path(1, "h"), {"id": "h", "wins": 1})
    finally:
        io.set_hook(before)

    assert written.durability == "fallback"
    assert files.read(hypothesis_path(1, "h")).values == {"id": "h", "wins": 1}
    put(files, hypothesis_path(1, "g"), {"id": "g"})
    assert json.loads((workspace.root / hypothesis_path(1, "h")).read_text()) == {"id": "h", "wins": 1}


def _full_but(spared: str) -> io.Hook:
    changes = {"write", "fsync", "fdatasync", "sync", "mkdir", "link", "rename", "exchange", "truncate", "unlink"}

    def hook(name: str, path: str) -> None:
        if name in changes and not path.startswith(spared):
            raise OSError(DISK_FULL, "No space left on device")

    return hook


def test_rollback_and_check_treat_documents_as_their_own(opened: Open) -> None:
    """A document goes back to an earlier commit like any file of memfs, and a sound workspace has no problems."""
    workspace = opened()
    files = files_of(workspace)
    path = hypothesis_path(1, "h")
    put(files, path, {"id": "h", "wins": 1})
    first = files.commit_now().commits[-1]
    put(files, path, {"id": "h", "wins": 2})
    files.commit_now()

    workspace.history.restore(first, path)

    assert files.read(path).values["wins"] == 1
    assert workspace.checker.check(integrity=True) == []


KILLED = """
import os, signal, sys
from datetime import UTC, datetime
from pathlib import Path
from memfs.fs import io
from memfs.model.state_paths import system_state_path, update_path
from memfs.state.reader import DocumentChange, StateFiles
from memfs.workspace import open_workspace

settings = {"index.engine": "memory", "history.commit": "manual"}
workspace = open_workspace(Path(sys.argv[1]), watch=False, settings=settings)
files = StateFiles(workspace.store, workspace.parts, workspace.states.index)
left = [int(sys.argv[2])]

def hook(name, path):
    left[0] -= 1
    if left[0] == 0:
        os.kill(os.getpid(), signal.SIGKILL)

io.set_hook(hook)
for number in range(1, 60):
    moment = datetime(2026, 3, 1, 10, 0, number, tzinfo=UTC)
    update = {"timestamp": moment.isoformat(), "update_type": "periodic",
              "system_statistics": {"total_hypotheses": number}}
    header = {"iteration": 1, "status": "open", "opened": "2026-03-01T09:00:00Z", "update": update}
    changes = [DocumentChange(update_path(1, moment), update), DocumentChange(system_state_path(1), header)]
    files.write(changes, "Store it")
    os.write(1, b"%d\\n" % number)
"""


@pytest.mark.parametrize("operations", [41, 157, 333])
def test_what_was_acknowledged_survives_kill_9(opened: Open, operations: int, forked: Path) -> None:
    """A process killed in a batch of two documents leaves every acknowledged one, and no half of another (S18)."""
    root = opened().root
    done = subprocess.run(
        [str(forked), "-c", KILLED, str(root), str(operations)], capture_output=True, text=True, check=False
    )
    acknowledged = len(done.stdout.split())
    assert (done.returncode, done.stderr) == (-signal.SIGKILL, "")

    files = files_of(opened(root))

    updates = [entry.path for entry in files.scan("ContextMemory/iterations") if "state_updates" in entry.path]
    assert len(updates) in (acknowledged, acknowledged + 1)
    if updates:
        assert total(files) == len(updates)
    assert not list((root / "ContextMemory").rglob(".memfs-*"))
