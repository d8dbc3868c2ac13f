"""The spool: events are durable at once, whatever is killed, and lines of several processes never mix."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from kit.faults import DISK_FULL, Fault, Stopped, injected
from kit.orphans import linger
from kit.patience import LONG
from memfs.errors import LockTimeout, QuotaExceeded, StorageFull, WorkspaceNotFound
from memfs.fs import append_log
from memfs.model.time import format_time, utc_now
from memfs.sessions.spool import (
    SUFFIX,
    SessionEvent,
    SessionNotes,
    Spool,
    file_name,
    find_place,
    left_behind,
    write_notes,
)
from memfs.workspace import Workspace

Opener = Callable[..., Workspace]


def _event(number: int, session: str = "s") -> SessionEvent:
    return SessionEvent("UserPromptSubmit", session, fields={"prompt": f"prompt {number}"})


def _prompts(spool: Spool, session: str = "s") -> list[str]:
    return [one.event.text("prompt") for one in spool.look(spool.path(session)).events]


def test_events_wait_in_order_by_session(tmp_path: Path) -> None:
    """Each session has a file of its own, private to this user."""
    spool = Spool(tmp_path)
    for number in range(3):
        spool.append(_event(number))
    spool.append(_event(9, "../../other session"))
    assert _prompts(spool) == ["prompt 0", "prompt 1", "prompt 2"]
    assert _prompts(spool, "../../other session") == ["prompt 9"]
    assert spool.waiting() == 4
    assert {path.parent for path in tmp_path.rglob("*.jsonl")} == {spool.folder}
    assert spool.path("s").stat().st_mode & 0o777 == 0o600
    assert spool.folder.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("session", ["", "../x", "a/b", "\0", "x" * 500, ".hidden", "unnamed", "CON", "é", "_1"])
def test_any_session_name_is_a_safe_file(tmp_path: Path, session: str) -> None:
    """A session's name never leads out of the spool (faults row 13)."""
    name = file_name(session)
    assert "/" not in name
    assert not name.startswith(".")
    assert len(name) < 100
    spool = Spool(tmp_path)
    spool.append(_event(1, session))
    [path] = spool.folder.glob("*.jsonl")
    assert [one.event.session for one in spool.look(path).events] == [" ".join(session.split())[:200]]


def test_a_kill_at_every_step_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    """kill -9 in an append leaves what was there, and spoils nothing that comes after (C6, faults row 21)."""
    for at in range(1, 40):
        spool = Spool(tmp_path / str(at))
        spool.append(_event(0))
        with injected(Fault(at=at)) as fault:
            try:
                spool.append(_event(1))
                acknowledged = True
            except Stopped:
                acknowledged = False
        spool.append(_event(2))
        found = _prompts(spool)
        assert found[0] == "prompt 0"
        assert found[-1] == "prompt 2"
        assert not acknowledged or "prompt 1" in found
        if not fault.stopped:
            return
    pytest.fail("an append takes fewer steps")


def test_a_torn_line_spoils_no_other(tmp_path: Path) -> None:
    """A line that was cut short anywhere is skipped, and is not damage."""
    whole = Spool(tmp_path / "whole")
    whole.append(_event(0))
    line = whole.path("s").read_bytes()
    for cut in range(1, len(line)):
        spool = Spool(tmp_path / "torn")
        spool.folder.mkdir(parents=True, exist_ok=True)
        spool.path("s").write_bytes(line[:cut])
        spool.append(_event(1))
        lines, damaged = append_log.read(spool.path("s"))
        assert len(lines) in (1, 2)
        assert not damaged, cut
        spool.path("s").unlink()


def test_a_flipped_bit_is_noticed(tmp_path: Path) -> None:
    """A damaged line is reported as damaged, and the others are read (faults row 28)."""
    spool = Spool(tmp_path)
    for number in range(3):
        spool.append(_event(number))
    data = bytearray(spool.path("s").read_bytes())
    data[data.index(b"prompt 1") + 3] ^= 1
    spool.path("s").write_bytes(bytes(data))
    lines, damaged = append_log.read(spool.path("s"))
    assert len(lines) == 2
    assert len(damaged) == 1
    assert _prompts(spool) == ["prompt 0", "prompt 2"]


def test_a_full_disk_is_reported_and_leaves_the_rest(tmp_path: Path) -> None:
    """Where there is no room nothing is acknowledged, and what waited before still does (faults row 25)."""
    spool = Spool(tmp_path)
    spool.append(_event(0))
    with injected(Fault()) as counting:
        spool.append(_event(1))
    writes = [number for number, seen in enumerate(counting.seen, 1) if seen.startswith(("write", "fdatasync"))]
    for at in writes:
        with injected(Fault(at=at, error=DISK_FULL)), pytest.raises(StorageFull):
            spool.append(_event(7))
    spool.append(_event(2))
    assert _prompts(spool) == ["prompt 0", "prompt 1", "prompt 2"]


def test_many_writers_never_mix_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, forked: Path) -> None:
    """Threads and processes add at once while somebody takes away: every event is there once."""
    monkeypatch.setattr(append_log, "_WAIT", LONG)
    code = (
        "import sys; from pathlib import Path; from memfs.sessions.spool import Spool\n"
        "from memfs.sessions.spool import SessionEvent\n"
        f"from memfs.fs import append_log; append_log._WAIT = {LONG}\n"
        "spool = Spool(Path(sys.argv[1]))\n"
        "for number in range(40):\n"
        "    spool.append(SessionEvent('Stop', 's', fields={'prompt': f'{sys.argv[2]}-{number}'}))\n"
    )
    others = [subprocess.Popen([str(forked), "-c", code, str(tmp_path), str(number)]) for number in range(3)]
    spool = Spool(tmp_path)
    taken: list[str] = []

    def add(name: str) -> None:
        for number in range(40):
            spool.append(SessionEvent("Stop", "s", fields={"prompt": f"{name}-{number}"}))

    with ThreadPoolExecutor(2) as pool:
        adding = [pool.submit(add, name) for name in ("t1", "t2")]
        while any(other.poll() is None for other in others):
            found = spool.look(spool.path("s")).events
            if found:
                append_log.take_away(spool.path("s"), found[-1].end)
                taken += [one.event.text("prompt") for one in found]
    for one in adding:
        one.result()
    taken += _prompts(spool)
    names = ["0", "1", "2", "t1", "t2"]
    assert sorted(taken) == sorted(f"{name}-{number}" for name in names for number in range(40))
    assert all(other.returncode == 0 for other in others)


@pytest.mark.durable
def test_a_killed_process_loses_nothing_that_it_acknowledged(tmp_path: Path, forked: Path) -> None:
    """kill -9 at any moment: every event that was acknowledged is there, in order (C6, faults row 21)."""
    code = (
        "import sys; from pathlib import Path; from memfs.sessions.spool import Spool\n"
        "from memfs.sessions.spool import SessionEvent\n"
        "spool, number = Spool(Path(sys.argv[1])), int(sys.argv[2])\n"
        "while True:\n"
        "    spool.append(SessionEvent('Stop', 's', fields={'prompt': str(number)}))\n"
        "    sys.stdout.write(f'{number}\\n'); sys.stdout.flush(); number += 1\n"
    )
    acknowledged: list[str] = []
    for turn in range(4):
        arguments = [str(forked), "-c", code, str(tmp_path), str(turn * 100_000)]
        with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            acknowledged += [process.stdout.readline().strip() for _ in range(5 + 7 * turn)]
            process.kill()
            acknowledged += process.stdout.read().split()
    found = _prompts(Spool(tmp_path))
    assert [one for one in acknowledged if one not in found] == []
    assert found == sorted(found, key=int)


def test_what_is_added_meanwhile_stays(tmp_path: Path) -> None:
    """Taking away a beginning keeps the rest, and an empty file goes."""
    spool = Spool(tmp_path)
    for number in range(3):
        spool.append(_event(number))
    append_log.take_away(spool.path("s"), spool.look(spool.path("s")).events[1].end)
    assert _prompts(spool) == ["prompt 2"]
    append_log.take_away(spool.path("s"), spool.look(spool.path("s")).events[0].end)
    assert not spool.path("s").exists()
    append_log.take_away(spool.path("s"), 10)


def test_a_spool_that_is_out_of_order_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that reports without end fills no disk."""
    monkeypatch.setattr(append_log, "MOST_BYTES", 400)
    spool = Spool(tmp_path)
    spool.append(_event(0))
    spool.append(_event(1))
    with pytest.raises(QuotaExceeded):
        spool.append(_event(2))
    assert spool.waiting() == 2


def test_a_stopped_holder_is_waited_for_and_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that was stopped while it holds the file keeps a hook only for a bounded time (faults row 47)."""
    import fcntl

    monkeypatch.setattr(append_log, "_WAIT", 0.05)
    spool = Spool(tmp_path)
    spool.append(_event(0))
    with spool.path("s").open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(LockTimeout):
            spool.append(_event(1))
    assert _prompts(spool) == ["prompt 0"]


def test_47_a_child_forked_beside_an_event_holds_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that forks in one thread while another reports an event: the next one is kept all the same."""
    monkeypatch.setattr(append_log, "_WAIT", 0.0)
    spool, children = Spool(tmp_path), []
    spool.append(_event(0))
    monkeypatch.setattr(append_log.io, "fdatasync", lambda *_: children.append(linger()))
    spool.append(_event(1))
    spool.append(_event(2))
    for end in children:
        end()
    assert _prompts(spool) == ["prompt 0", "prompt 1", "prompt 2"]


def test_a_link_in_its_place_is_not_followed(tmp_path: Path) -> None:
    """A link in the spool leads nowhere."""
    spool = Spool(tmp_path)
    spool.append(_event(0, "other"))
    target = tmp_path / "target"
    target.write_text("mine")
    spool.path("s").symlink_to(target)
    with pytest.raises(Exception, match="not a regular file"):
        spool.append(_event(1))
    assert target.read_text() == "mine"


# -- the place ----------------------------------------------------------------------------------------------------
def test_the_place_is_private_memory_beside_the_workspace(opened: Opener, tmp_path: Path, own_world: Path) -> None:
    """An agent's folder leads to the project's private memory and to the workspace that is read with it (C1, C6)."""
    workspace = opened()
    inner = workspace.root / "src" / "deep"
    inner.mkdir(parents=True)
    place = find_place(str(inner), {})
    assert place.root.parent == own_world / ".local/share/memfs/projects"
    assert (place.memory, place.folder) == (workspace.root, workspace.root)
    assert place.state.is_relative_to(place.root)
    assert find_place("/nowhere/at/all", {"CLAUDE_PROJECT_DIR": str(inner)}) == place
    elsewhere = find_place(str(tmp_path), {"MEMFS_WORKSPACE": str(workspace.root)})
    assert (elsewhere.memory, elsewhere.root == place.root) == (workspace.root, False)
    with pytest.raises(WorkspaceNotFound):
        find_place(str(inner), {"MEMFS_WORKSPACE": str(tmp_path / "gone")})


def test_what_was_meant_for_the_repository_goes_there(opened: Opener, tmp_path: Path) -> None:
    """``repository`` leads to the workspace around the folder; without one private memory takes it (C1)."""
    workspace = opened()
    place = find_place(str(workspace.root), {}, into="repository")
    assert (place.root, place.state) == (workspace.root, workspace.repository.state)
    (tmp_path / "empty").mkdir()
    assert find_place(str(tmp_path / "empty"), {}, into="repository").memory is None


def test_a_folder_that_only_looks_like_a_workspace_is_not_read(tmp_path: Path) -> None:
    """Without a repository there is private memory alone."""
    (tmp_path / "memfs.toml").write_text("")
    assert find_place(str(tmp_path), {}).memory is None


def test_spooling_is_light(opened: Opener) -> None:
    """A hook that only spools imports no parser, git, search engine or command line (C6)."""
    workspace = opened()
    code = (
        "import sys; from memfs.sessions.spool import Spool, find_place, parse\n"
        "Spool(find_place('', into=sys.argv[1]).state).append(parse('{\"session_id\": \"s\"}', 'Stop'))\n"
        "print(sorted({'yaml', 'git', 'whoosh', 'jsonschema', 'click', 'sqlite3', 'asyncio', 'subprocess', "
        "'memfs.workspace', 'memfs.config'} & set(sys.modules)))"
    )
    place = find_place(str(workspace.root), {})
    for into in ("private", "repository"):
        words = [sys.executable, "-c", code, into]
        done = subprocess.run(words, cwd=workspace.root, capture_output=True, text=True, check=True)
        assert done.stdout == "[]\n"
    assert Spool(workspace.repository.state).waiting() == 1
    assert Spool(place.state).waiting() == 1


def test_a_start_waits_for_what_was_left_behind_and_for_nothing_else(tmp_path: Path) -> None:
    """Its own event may wait; what another session or it reported before, one that ended and one that died may not."""
    spool, now = Spool(tmp_path), format_time(utc_now())
    spool.append(SessionEvent("SessionStart", "s"))
    write_notes(spool.folder / f"open{SUFFIX}", SessionNotes("open", now))
    assert not left_behind(tmp_path, "s")
    assert left_behind(tmp_path, "another")
    for notes in (SessionNotes("done", now, ended=True), SessionNotes("dead", "2026-01-01T00:00:00Z")):
        write_notes(spool.folder / f"gone{SUFFIX}", notes)
        assert left_behind(tmp_path, "s")
    (spool.folder / f"gone{SUFFIX}").unlink()
    spool.append(_event(1))
    assert left_behind(tmp_path, "s")
