"""What a resident answers is what the command itself would have answered, and nothing depends on it."""

from __future__ import annotations

import gc
import json
import os
import pty
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from kit.patience import LONG, until
from kit.residents import CLIENT, NOBODY, Asked
from memfs import open_workspace, trust
from memfs.doors.cli.app import run
from memfs.doors.resident import client, place, server, upkeep
from memfs.fs import io
from memfs.fs.lock import locked
from memfs.sessions.spool import SessionLocation
from memfs.sessions.store import DrainResult


def _file(root: Path, name: str) -> Path:
    return next((root / "ContextMemory/memories").rglob(f"{name}.yaml"))


COMMANDS: list[tuple[list[str], dict[str, str]]] = [
    (["recall", "staging"], {}),
    (["recall", "staging", "--json"], {}),
    (["recall", "nothing-like-it"], {}),
    (["recall", "staging", "--limit", "x"], {}),
    (["recall", "staging", "--limit", "x", "--json"], {}),
    (["recall", "gateway", "--explain"], {"COLUMNS": "40"}),
    (["list"], {"NO_COLOR": "1"}),
    (["list", "--json"], {"TZ": "Asia/Tokyo"}),
    (["list", "--type", "preference"], {"LC_ALL": "C", "PYTHONUTF8": "0"}),
    (["show", "umlauts"], {}),
    (["show", "nobody"], {}),
    (["show", "retries", "--json"], {}),
    (["log"], {}),
    (["--set", "recall.limit=1", "recall", "the"], {}),
    (["--set", "no.such=1", "list"], {}),
    (["-C", "/nowhere/at/all", "list"], {}),
    (["list"], {"MEMFS_INDEX_ENGINE": "nonsense"}),
    (["list"], {"MEMFS_INDEX_ENGINE": "memory"}),
    (["list", "--since", "1d"], {"GIT_AUTHOR_NAME": "Somebody"}),
    (["recall", "retries", "--colour"], {}),
]
"""Commands that read, and what else is in their environment."""
_UNASKED = [["-C", "/nowhere/at/all", "list"], ["list", "--type", "preference"]]


def test_a_resident_prints_what_the_command_itself_prints_to_the_byte(ask: Asked, resident: int) -> None:
    """Output, errors and exit code of every sort of reading command."""
    assert ask("commit", alone=True).returncode == 0  # else the resident commits between two commands
    ask("list", alone=True)
    for words, env in COMMANDS:
        alone, served = ask(*words, alone=True, env=env), ask(*words, env=env)
        if words in _UNASKED:
            assert served.returncode == NOBODY, words
            continue
        assert (served.returncode, served.stdout, served.stderr) == (alone.returncode, alone.stdout, alone.stderr), (
            words
        )


def test_a_resident_prints_to_a_terminal_as_the_command_does(forked: Path, root: Path, resident: int) -> None:
    """Colours and width follow the terminal that the person sits at."""
    assert _on_terminal([str(forked), "-c", CLIENT, "recall", "gateway"], root) == _on_terminal(
        [str(forked), "recall", "gateway"], root, MEMFS_RESIDENT="off"
    )


def _on_terminal(command: list[str], root: Path, **env: str) -> bytes:
    import fcntl
    import struct
    import termios

    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("4H", 24, 50, 0, 0))
    done = subprocess.Popen(
        command, cwd=root, stdin=theirs, stdout=theirs, stderr=theirs, env={**os.environ, "TERM": "xterm", **env}
    )
    os.close(theirs)
    data = b""
    with suppress(OSError):
        while piece := os.read(ours, 4096):
            data += piece
    os.close(ours)
    assert done.wait() == 0
    assert b"\x1b[" in data
    return data


def test_a_workspace_is_found_from_below_by_name_and_by_variable(ask: Asked, root: Path, resident: int) -> None:
    """The folder is looked for as the command looks for it."""
    below = _file(root, "staging").parent
    assert ask("show", "staging", cwd=below).returncode == 0
    assert ask("-C", str(root), "show", "staging", cwd=Path("/")).returncode == 0
    assert ask("show", "staging", cwd=Path("/"), env={"MEMFS_WORKSPACE": str(root)}).returncode == 0
    assert ask("show", "staging", cwd=Path("/")).returncode == NOBODY


def test_every_change_before_a_question_is_seen(
    ask: Asked, root: Path, resident: int, git: Callable[..., str], memfs: Callable[..., str]
) -> None:
    """A hand edit, a new file in a new folder, a removal, a checkout and another process's write."""
    file = _file(root, "staging")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "before")
    for number in range(20):
        file.write_text(f"content: Staging is rebuilt on day xq{number}\n")
        assert f"xq{number}" in ask("show", "staging").stdout.decode()
        assert b"staging" in ask("recall", f"xq{number}").stdout
    git(root, "checkout", "-q", "--", ".")
    assert b"Sundays" in ask("recall", "staging").stdout
    new = root / "ContextMemory/memories/semantic/1999-12/by-hand.yaml"
    new.parent.mkdir(parents=True)
    new.write_text("content: zebras graze\n")
    assert b"by-hand" in ask("recall", "zebras").stdout
    shutil.rmtree(new.parent)
    assert b"by-hand" not in ask("recall", "zebras").stdout
    memfs(root, "remember", "quokkas smile", "--id", "quokka")
    assert b"quokka" in ask("recall", "quokkas").stdout
    assert place.resident_of(root) == resident  # what it imported meanwhile was not reinstalled


def test_a_changed_configuration_counts_at_once(ask: Asked, root: Path, resident: int) -> None:
    """``memfs.toml`` is as the command would read it."""
    (root / "memfs.toml").write_text("[recall]\nlimit = 1\n")
    assert ask("recall", "the staging gateway").stdout == ask("recall", "the staging gateway", alone=True).stdout
    (root / "memfs.toml").write_text("[recall]\nlimit = 'x'\n")
    alone = ask("list", alone=True)
    served = ask("list")
    assert served.returncode == NOBODY or (served.stderr, served.returncode) == (alone.stderr, alone.returncode)


def test_a_configuration_that_cannot_be_read_does_not_end_it(ask: Asked, root: Path, resident: int) -> None:
    """While memfs.toml is half saved each command says so by itself, and the resident answers again afterwards."""
    settings = root / "memfs.toml"
    before = settings.read_text(encoding="utf-8")
    settings.write_text(before + "[history\n", encoding="utf-8")
    assert ask("list").returncode == NOBODY
    settings.write_text(before, encoding="utf-8")
    assert ask("list").returncode == 0
    assert place.resident_of(root) == resident


@pytest.mark.parametrize("words", [("remember", "-"), ("hook", "UserPromptSubmit")], ids=" ".join)
def test_a_closed_input_is_not_a_fault_of_the_client(ask: Asked, resident: int, words: tuple[str, ...]) -> None:
    """What reads its standard input says by itself that there is none."""
    done = ask(*words, stdin=None, preexec_fn=lambda: os.close(0))
    assert done.returncode in (0, NOBODY)
    assert b"Traceback" not in done.stderr


def test_no_input_is_taken_that_the_command_does_not_read(ask: Asked, root: Path, resident: int) -> None:
    """A text that looks like the wish to read standard input leaves it to anyone who reads it next."""
    ours, theirs = os.pipe()
    os.write(theirs, b"for the next")
    os.close(theirs)
    assert ask("remember", "Set the variable PAGER=-", stdin=ours).returncode == 0
    assert os.read(ours, 100) == b"for the next"
    os.close(ours)


def test_what_is_asked_of_a_person_stays_with_the_command() -> None:
    """Editors, help and what goes past the resident are never handed over."""
    assert client.verb_of(["-C", "x", "--set", "a=b", "recall", "words", "--json"]) == "recall"
    assert client.verb_of(["recall", "--", "--help"]) == "recall"
    for words in (["recall", "--help"], ["remember", "--edit"], ["--set", "resident.use=false", "list"], ["--version"]):
        assert client.verb_of(words) not in client.READING


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_a_command_goes_on_by_itself_where_nobody_greets(
    forked: Path, root: Path, resident: int, number: int, ask: Asked
) -> None:
    """The resident was killed, or hangs; it does nothing for those who did not wait."""
    os.kill(resident, number)
    env = {**os.environ, "MEMFS_RESIDENT": "20"}
    done = subprocess.run([str(forked), "show", "staging"], cwd=root, env=env, capture_output=True, check=False)
    assert (done.returncode, b"Sundays" in done.stdout) == (0, True)
    if number == signal.SIGSTOP:
        os.kill(resident, signal.SIGCONT)
        assert ask("show", "staging").returncode == 0


_STALLED = """
import os, sys
sys.path.pop(0)
from memfs.doors.resident import client
from memfs.fs import io
link = client.ChildConnection.to(folder := client.socket_folder(), client._names(folder, ["show"])[0], 60)
os.kill(link.process, int(sys.argv[1]))
print(client._run_in_child(link, ["show", "staging"]))
"""
"""A command whose child gets a signal between its greeting and its request."""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_a_child_that_is_killed_or_stopped_is_not_waited_for(
    forked: Path, root: Path, resident: int, number: int
) -> None:
    """Nothing was printed, so the command runs by itself; a child that was stopped never goes on."""
    done = subprocess.run(
        [str(forked), "-c", _STALLED, str(int(number))], cwd=root, capture_output=True, check=True, timeout=LONG
    )
    assert done.stdout == b"None\n"


def test_a_folder_that_others_can_enter_is_not_used(ask: Asked, root: Path, resident: int) -> None:
    """Anyone who could put a socket there could answer for us."""
    folder = Path(client.socket_folder())
    folder.chmod(0o755)
    assert ask("list").returncode == NOBODY
    folder.chmod(0o700)
    assert ask("list").returncode == 0


def test_the_path_of_a_socket_may_be_longer_than_the_system_takes(
    forked: Path, ask: Asked, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both sides reach it through its folder."""
    (far := tmp_path / ("far-away-" * 20)).mkdir()
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(far))
    subprocess.run([str(forked), "serve", "--detach"], cwd=root, check=True, capture_output=True)
    try:
        assert len(client.socket_folder()) > client.LONGEST_ADDRESS
        assert ask("list").returncode == 0
    finally:
        assert place.stop(root)


def test_another_installation_is_not_asked(ask: Asked, root: Path, resident: int) -> None:
    """An interpreter that was started otherwise answers for itself."""
    assert ask("list", env={"PYTHONWARNINGS": "error"}).returncode == NOBODY


def test_it_can_be_switched_off(forked: Path, ask: Asked, root: Path, resident: int) -> None:
    """By a variable, by a setting for one command, and for good."""
    for env in ({"MEMFS_RESIDENT": "off"}, {"MEMFS_RESIDENT_USE": "false"}):
        assert ask("list", env=env).returncode == NOBODY
    assert ask("--set", "resident.use=false", "list").returncode == NOBODY
    place.stop(root)
    (root / "memfs.toml").write_text("[resident]\nuse = false\n")
    done = subprocess.run([str(forked), "serve", "--detach"], cwd=root, capture_output=True, check=False)
    assert (done.returncode, b"resident.use" in done.stderr) == (1, True)


def test_two_that_start_at_once_make_one(forked: Path, root: Path) -> None:
    """The second finds that there is one."""
    starting = [
        subprocess.Popen([str(forked), "serve", "--detach"], cwd=root, stdout=subprocess.PIPE) for _ in range(3)
    ]
    outputs = {one.communicate()[0] for one in starting}
    assert len(outputs) == 1
    assert place.stop(root)
    assert not place.stop(root)


def test_one_that_is_about_to_come_up_can_be_ended(root: Path) -> None:
    """Anyone who stops it right after it was begun does not read that there is none, and none comes up later."""
    place.begin(root)
    assert place.stop(root)
    assert not place.resident_of(root)


def _ends(process: int) -> bool:
    until = time.monotonic() + LONG
    while time.monotonic() < until:
        try:
            os.kill(process, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.01)
    return False


def test_it_leaves_when_nobody_asks(forked: Path, root: Path) -> None:
    """And takes its socket along."""
    soon = {"MEMFS_RESIDENT_IDLE_MINUTES": "0.01", "MEMFS_HISTORY_ADOPT_AFTER_SECONDS": "0.1"}
    command = [str(forked), "serve", "--detach"]
    subprocess.run(command, cwd=root, env={**os.environ, **soon}, check=True, timeout=LONG)
    process = place.resident_of(root)
    assert not process or _ends(process)
    assert not place.files_of(root).socket.exists()


def test_it_leaves_though_a_file_is_invalid(forked: Path, root: Path) -> None:
    """What cannot be adopted is nothing that is left to do."""
    (root / "ContextMemory/memories/semantic/odd.yaml").write_text("content: [\n", encoding="utf-8")
    soon = {"MEMFS_RESIDENT_IDLE_MINUTES": "0.01", "MEMFS_HISTORY_ADOPT_AFTER_SECONDS": "0.1"}
    env = {**os.environ, **soon, "MEMFS_HISTORY_ADOPT": "auto"}
    subprocess.run([str(forked), "serve", "--detach"], cwd=root, env=env, check=True, timeout=LONG)
    process = place.resident_of(root)
    assert not process or _ends(process)


def test_it_rests_and_leaves_where_its_workspace_cannot_be_opened(forked: Path, root: Path) -> None:
    """What was due before cannot be done, and keeps it neither busy nor alive."""
    soon = {"MEMFS_RESIDENT_IDLE_MINUTES": "0.02", "MEMFS_HISTORY_ADOPT_AFTER_SECONDS": "600"}
    command = [str(forked), "serve", "--detach"]
    subprocess.run(command, cwd=root, env={**os.environ, **soon}, check=True, timeout=LONG)
    process = place.resident_of(root)
    assert process  # it looks after the memory once what was there has rested, ten minutes from now
    (root / "memfs.toml").write_text("[history\n", encoding="utf-8")
    until = time.monotonic() + LONG
    while io.is_running(process) and time.monotonic() < until:  # it may not have begun to watch at the first time
        (root / "ContextMemory/memories/semantic/new.yaml").write_text("content: It sleeps.\n", encoding="utf-8")
        time.sleep(0.3)
    assert not io.is_running(process)


def test_who_takes_memfs_out_of_a_repository_is_not_stopped_by_it(root: Path, resident: int) -> None:
    """A process of memfs's own is nobody at work: it is ended."""
    assert run(["-C", str(root), "deinit"]) == 0
    assert place.resident_of(root) == 0


def test_its_memory_does_not_grow_with_the_questions(
    ask: Asked, root: Path, resident: int, scale: Callable[[int, int], int]
) -> None:
    """What a question needs ends with the child that answers it."""
    file = _file(root, "staging")

    def asked(number: int) -> int:
        for one in range(number):
            file.write_text(f"content: Staging is rebuilt on day {one}\n")
            assert ask("recall", f"staging {one}").returncode == 0
        rows = Path(f"/proc/{resident}/status").read_text().splitlines()
        return int(next(row.split()[1] for row in rows if row.startswith("RssAnon")))

    before = asked(scale(10, 500))
    assert asked(scale(20, 10_000)) < before + 2_000


def _plain(text: bytes, name: str) -> str:
    """What was printed about a memory, without its name and what differs by its time."""
    return re.sub(r"[0-9a-f]{12,64}|\d{4}-\d\d(-\d\d)?(T[\d:.]+Z?)?", "#", text.decode().replace(name or "ID", "ID"))


WRITINGS: list[list[str]] = [
    ["remember", "Quokkas smile", "--id", "ID", "--tag", "a,b"],
    ["remember", "-", "--id", "ID-2", "--json"],
    ["remember", "again", "--id", "ID"],
    ["remember", "password = 'hunter2hunter2hunter2'", "--json"],
    ["remember"],
    ["update", "ID", "--importance", "3"],
    ["update", "ID", "--content", "-"],
    ["forget", "ID", "--reason", "done", "--json"],
    ["forget", "ID"],
]
"""Commands that write, one after the other."""


def test_what_a_resident_writes_is_what_the_command_itself_writes(ask: Asked, root: Path, resident: int) -> None:
    """Output, errors and exit code, with text that is piped in, and what remains is the same, in a commit each."""
    for words in WRITINGS:
        alone, served = (
            ask(
                *(word.replace("ID", name) for word in words),
                alone=name == "first" or "-" in words,  # what reads its input is not handed over
                stdin=None,
                input=b"Gr\xc3\xbc\xc3\x9fe from a pipe\n",
            )
            for name in ("first", "zweite")
        )
        expected = alone.returncode, _plain(alone.stdout, "first"), _plain(alone.stderr, "first")
        assert (served.returncode, _plain(served.stdout, "zweite"), _plain(served.stderr, "zweite")) == expected
    ids = [one["id"] for one in json.loads(ask("list", "--json").stdout)["items"]]
    assert sorted(ids) == ["retries", "staging", "umlauts"]


_FORCED = """
import sys
sys.path.pop(0)
from pathlib import Path
import memfs.doors.resident.server as server
from memfs.doors.resident import upkeep
from memfs.doors.resident.place import claimed, files_of
from memfs import watch
root = Path(sys.argv[1])
exec(sys.argv[2])
with claimed(files_of(root)):
    server.serve(root)
"""
"""A resident in which something is otherwise."""


@pytest.fixture
def forced(forked: Path, root: Path) -> Iterator[Callable[[str], int]]:
    """Begin a resident in which a program was run before; its process id once it is being one."""
    begun: list[subprocess.Popen[bytes]] = []

    def begin(program: str) -> int:
        begun.append(subprocess.Popen([str(forked), "-c", _FORCED, str(root), program]))
        assert until(lambda: place.resident_of(root))
        return begun[0].pid

    yield begin
    place.stop(root)
    for one in begun:
        one.wait()


def test_what_ends_a_child_is_reported_by_status(ask: Asked, root: Path, forced: Callable[[str], int]) -> None:
    """Whatever it is, and wherever it was raised: nobody else would hear of it."""
    forced("upkeep.maintain = lambda *_: 1 / 0")
    assert until(lambda: b"ZeroDivisionError" in (done := ask("status", alone=True)).stdout + done.stderr)


def test_who_stops_a_resident_that_indexes_does_not_wait_for_the_index(
    root: Path, tmp_path: Path, forced: Callable[[str], int]
) -> None:
    """The child that makes it ends, too: what it made is made again."""
    child = tmp_path / "child"
    forced(
        "import os, time; upkeep.index ="
        f" lambda _: time.sleep({LONG} * bool(Path({str(child)!r}).write_text(str(os.getpid()))))"
    )
    assert until(lambda: child.exists() and child.read_text())
    assert place.stop(root)
    assert not io.is_running(int(child.read_text()))
    assert not place.files_of(root).socket.exists()


def test_no_child_waits_for_a_command_where_it_could_not_be_used(
    ask: Asked, root: Path, tmp_path: Path, forced: Callable[[str], int]
) -> None:
    """Where the system does not report changes, each command finds that files may have changed."""
    rehearsed = tmp_path / "rehearsed"
    forced(
        f"server.rehearse = lambda _: Path({str(rehearsed)!r}).touch();"
        " watch.UNWATCHED_TYPES = {watch.file_system(str(root / 'ContextMemory'))}"
    )
    assert until(lambda: place.answering(root))
    for number in range(3):
        assert ask("remember", f"number {number}").returncode == 0
        time.sleep(0.2)
    assert not rehearsed.exists()


def test_what_is_due_stays_so_where_no_process_can_be_forked(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is tried again a little later."""

    def refused() -> int:
        raise BlockingIOError

    resident = server.Resident(root, 60.0)
    try:
        with ExitStack() as opened:
            resident._open(opened)
            monkeypatch.setattr(server, "fork_alone", refused)
            resident._commit_at = resident._tend_at = began = time.monotonic()
            resident._maintain()
            assert all(at is not None and at > began for at in (resident._commit_at, resident._tend_at))
            assert resident._learn_at is not None
    finally:
        gc.unfreeze()


def _in_child(code: Callable[[], int]) -> int:
    """What a forked child ends with."""
    child = os.fork()
    if not child:
        with suppress(BaseException):
            os._exit(code())
        os._exit(99)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_a_child_looks_at_events_that_its_parent_has_not_looked_at(root: Path) -> None:
    """Whatever kept the parent from it: a child must not answer from what was there before."""
    watcher, item = server._ForkWatcher(root), root / "ContextMemory" / "heard.yaml"
    assert _in_child(lambda: watcher.drain() != []) == 0
    item.write_text("content: x")
    assert watcher.hear()
    assert _in_child(lambda: watcher.drain() != ["ContextMemory/heard.yaml"] or watcher.drain() != []) == 0
    assert watcher.drain() == ["ContextMemory/heard.yaml"]
    watcher.give_back(None)
    assert _in_child(lambda: watcher.drain() is not None) == 0
    assert watcher.drain() is None
    watcher.close()


def test_files_count_as_looked_at_only_where_a_client_was_served(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client that has gone is no reason to look at them."""
    resident = server.Resident(root, 60.0)
    followed: list[object] = []
    monkeypatch.setattr(resident, "_follow", followed.append)
    monkeypatch.chdir(tmp_path)  # addresses are short
    with socket.socket(socket.AF_UNIX) as listener, socket.socket(socket.AF_UNIX) as waiting, ExitStack() as opened:
        listener.bind("socket")
        listener.listen()
        with socket.socket(socket.AF_UNIX) as gone:
            gone.connect("socket")
        waiting.connect("socket")
        assert [(resident._accept(listener, opened), len(followed)) for _ in range(2)] == [(False, 0), (True, 1)]


def test_what_a_resident_imports_ahead_exists() -> None:
    """Each module that is named for import before anybody asks is one of the package."""
    named = [f"doors.cli.{name}" for name in upkeep._VERBS]
    named += [f"{folder}.{name}" for folder, names in upkeep._MORE.items() for name in names.split()]
    assert [name for name in named if find_spec(f"memfs.{name}") is None] == []


def test_the_events_of_a_session_are_left_until_all_were_taken(
    opened: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A drain that takes something goes on; one that can take nothing says that it is left."""
    workspace = opened()
    place_of = SessionLocation.within(Path(workspace.root), workspace.repository.state)
    drained = [DrainResult(events=2, left=2), DrainResult(events=1, left=1), DrainResult(left=1)]
    monkeypatch.setattr(upkeep, "_has_events", lambda _: True)
    monkeypatch.setattr(upkeep.Drain, "run", lambda *_, **__: drained.pop(0))
    assert upkeep._drain(workspace, place_of)
    assert not drained
    drained.append(DrainResult(events=1))
    assert not upkeep._drain(workspace, place_of)


def test_a_host_is_registered_though_a_resident_looks_for_hosts(root: Path) -> None:
    """The look keeps their file locked for a moment."""
    hosts = place.files_of(root).hosts
    hosts.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    looking = hosts.open("w")
    assert locked(looking.fileno())
    ending = threading.Timer(0.2, looking.close)
    ending.start()
    with place.hosted(root):
        ending.join()
        assert place.has_host(place.files_of(root))


_FATAL = """
import os, signal, sys
sys.path.pop(0)
from pathlib import Path
import memfs.doors.resident.answer as answer
from memfs.doors.resident.place import claimed, files_of
from memfs.doors.resident.server import serve
root, spoilt = sys.argv[1:]
begin = answer.set_witness

def fatal(witness):
    def tell(operations, durable):
        witness(operations, durable)
        with open(spoilt + ".killed", "a") as killed:
            killed.write(".")
        if os.path.exists(spoilt):
            with open(f"{root}/memfs.toml", "a") as settings:
                settings.write("x = = ")
        os.kill(os.getpid(), signal.SIGKILL)
    begin(tell)

answer.set_witness = fatal
with claimed(files_of(Path(root))):
    serve(Path(root))
"""
"""A resident whose children are killed when they have announced a write, before the first byte of the journal."""
_ASKED = "import sys; sys.path.pop(0); from memfs.__main__ import main; main()"


@pytest.fixture
def fatal(forked: Path, root: Path, tmp_path: Path) -> Iterator[Path]:
    """A resident whose children die when they write; where the file exists, the settings are spoilt by then."""
    spoilt = tmp_path / "spoilt"
    served = subprocess.Popen([str(forked), "-c", _FATAL, str(root), str(spoilt)])
    try:
        assert until(lambda: place.answering(root))
        yield spoilt
    finally:
        place.stop(root)
        served.wait()


def _killed(spoilt: Path) -> int:
    return len(Path(f"{spoilt}.killed").read_text())


def test_a_write_that_was_only_announced_is_not_reported_as_stored(forked: Path, root: Path, fatal: Path) -> None:
    """A child that was killed while it wrote leaves it to be looked at, with exit code 2; nothing is written twice."""
    asked = [str(forked), "-c", _ASKED, "update", "staging", "--title", "New title", "--json"]
    done = subprocess.run(asked, cwd=root, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"ended while writing staging: check whether it was stored" in done.stderr
    assert "New title" not in _file(root, "staging").read_text()
    assert _killed(fatal) == 1


@pytest.mark.parametrize("printed", [False, True])
@pytest.mark.parametrize(
    ("words", "expected"), [((), "Remembered a, b\n"), (("--json",), '{"ids": ["a", "b"], "stored": true}\n')]
)
def test_a_write_that_was_durable_is_reported_as_stored(
    words: tuple[str, ...], expected: str, printed: bool, capsys: Any
) -> None:
    """Whatever ended the child afterwards; what it printed is not printed again."""
    assert client._report_written(["remember", "x", *words], ["a", "b"], False, printed) == 0
    captured = capsys.readouterr()
    assert captured.out == ("" if printed else expected)
    assert captured.err == "memfs: the resident process ended after this was stored: a, b\n"


def test_a_hook_whose_child_is_killed_while_it_writes_ends_with_0(
    forked: Path, root: Path, fatal: Path, tmp_path: Path
) -> None:
    """An agent's program takes other codes for a refusal: also where the settings cannot be read by then."""
    fatal.touch()
    for event in ("UserPromptSubmit", "Stop"):
        payload = {"cwd": str(root), "session_id": "s1", "prompt": "No, always write breaking dates like 2026-03-01"}
        done = subprocess.run(
            [str(forked), "-c", _ASKED, "hook", event],
            cwd=root,
            input=json.dumps(payload | {"hook_event_name": event}).encode(),
            capture_output=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
    assert _killed(fatal) == 1


def test_edits_by_hand_are_committed_while_a_resident_is_up(
    forked: Path, root: Path, monkeypatch: pytest.MonkeyPatch, git: Callable[..., str]
) -> None:
    """Commands need not do it: the resident does, once a file has rested."""
    (root / "memfs.toml").write_text(
        "[history]\ncommit = 'interval'\nadopt = 'auto'\nadopt_after_seconds = 0.1\n[index]\nengine = 'sqlite'\n"
    )
    monkeypatch.delenv("MEMFS_INDEX_ENGINE")
    for words in (["commit"], ["serve", "--detach"]):
        subprocess.run([str(forked), *words], cwd=root, check=True, stdout=subprocess.DEVNULL)
    try:
        _file(root, "staging").write_text("content: Staging is rebuilt on Fridays\n")
        assert until(lambda: "Fridays" in git(root, "log", "-p", "-1"))
    finally:
        place.stop(root)


def test_status_says_whether_a_resident_is_up(ask: Asked, root: Path, resident: int) -> None:
    """In text and JSON, and the same from both."""
    alone = json.loads(ask("status", "--json", alone=True).stdout)
    assert alone["resident"] == {"pid": resident}
    assert json.loads(ask("status", "--json").stdout)["resident"] == {"pid": resident}
    place.stop(root)
    assert json.loads(ask("status", "--json", alone=True).stdout)["resident"] == {"pid": None}


def test_what_a_resident_does_ahead_is_no_use_of_a_memory(ask: Asked, root: Path, resident: int) -> None:
    """Each child that waits for a command has asked a question before: nothing of it is counted."""
    for _ in range(3):
        assert ask("remember", "A memory like any other", "--id", "memory").returncode in (0, 1)
    time.sleep(0.5)  # counts are gathered for a quarter of a second
    with open_workspace(root, watch=False) as workspace:
        assert not workspace.usage.all()


def test_a_hook_is_answered_by_a_resident(forked: Path, ask: Asked, root: Path, resident: int) -> None:
    """What an agent's program gets is the same, and so is what is kept."""
    for words in (["hook", "UserPromptSubmit", "--into=repository"], ["hook", "PreToolUse"], ["hook", "Nonsense"]):
        payload = {"cwd": str(root), "hook_event_name": words[1], "prompt": "when is staging rebuilt"}
        alone, served = (
            ask(*words, stdin=None, input=json.dumps(payload | {"session_id": str(one)}).encode(), alone=one)
            for one in (True, False)
        )
        assert (served.returncode, _plain(served.stdout, "")) == (0, _plain(alone.stdout, "")), words
        assert (b"Sundays" in served.stdout, served.stderr) == ("UserPromptSubmit" in words, alone.stderr), words


def test_what_a_session_reported_is_remembered_while_a_resident_is_up(ask: Asked, root: Path, resident: int) -> None:
    """The event is kept at once, and its memory made by the resident, in private memory as by the hook itself."""
    payload = {"cwd": str(root), "session_id": "s1", "prompt": "No, always write breaking dates like 2026-03-01"}
    for event in ("UserPromptSubmit", "Stop"):
        done = ask("hook", event, stdin=None, input=json.dumps(payload | {"hook_event_name": event}).encode())
        assert (done.returncode, done.stderr) == (0, b"")
    assert until(lambda: b"private:" in ask("recall", "breaking dates").stdout)
    assert ask("recall", "breaking dates").stdout == ask("recall", "breaking dates", alone=True).stdout


def test_what_is_new_is_embedded_by_the_resident(ask: Asked, root: Path, resident: int) -> None:
    """Where memories are found by meaning, no command has to do it."""
    (root / "memfs.toml").write_text("[semantic]\nmodel = 'hashing'\n")
    assert ask("remember", "zebras graze").returncode == 0

    def embedded() -> bool:
        found = json.loads(ask("semantic", "status", "--json", alone=True).stdout)
        return found["embedded"] == found["items"] == 4

    assert until(embedded)


def test_what_is_not_a_file_or_in_a_wrong_place_is_a_problem_while_it_is_there(
    ask: Asked, root: Path, resident: int
) -> None:
    """A pipe, a link and a file in no folder of a type are counted, and not once they are gone."""
    memories = root / "ContextMemory/memories"
    odd = [memories / name for name in ("pipe.yaml", "semantic/pipe.yaml", "link.yaml", "stray.yaml")]
    for one in odd:
        one.parent.mkdir(exist_ok=True)
    os.mkfifo(odd[0])
    os.mkfifo(odd[1])
    odd[2].symlink_to("nowhere")
    odd[3].write_text("content: It strayed.\n")
    for one in odd:
        assert b"'memfs check'" in (served := ask("list")).stderr
        assert served.stderr == ask("list", alone=True).stderr
        one.unlink()
    assert b"'memfs check'" not in (served := ask("list")).stderr
    assert served.stderr == ask("list", alone=True).stderr


def test_what_is_mounted_is_followed(ask: Asked, root: Path, resident: int, opened: Callable[..., Any]) -> None:
    """A new memory of another workspace, an edit there, and one that is mounted no more."""
    other = opened(root.parent / "other")
    other.remember("Zebras graze at night", id="zebra")
    settings = (root / "memfs.toml").read_text(encoding="utf-8")
    (root / "memfs.toml").write_text(f'{settings}\n[mounts]\nteam = "{other.root}"\n', encoding="utf-8")
    trust.grant(root)
    done = ask("recall", "zebras")
    assert b"team:zebra" in done.stdout, done.stderr
    other.remember("Quokkas smile at noon", id="quokka")
    assert b"team:quokka" in ask("recall", "quokkas").stdout
    _file(other.root, "zebra").write_text("content: Lynxes lurk\n")
    assert b"team:zebra" in ask("recall", "lynxes").stdout
    assert b"team:zebra" not in ask("recall", "zebras graze").stdout
    other.root.rename(root.parent / "away")
    assert b"is left out" in ask("recall", "lynxes").stderr
    (root.parent / "away").rename(other.root)
    back = ask("recall", "lynxes")
    assert (b"team:zebra" in back.stdout, back.stderr) == (True, ask("recall", "lynxes", alone=True).stderr)
    (root / "memfs.toml").write_text(settings, encoding="utf-8")
    assert b"team:" not in ask("recall", "lynxes").stdout
    other.close()


_HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "tester", "version": "1"}}
_CALL = "".join(
    json.dumps({"jsonrpc": "2.0", **message}) + "\n"
    for message in (
        {"id": 0, "method": "initialize", "params": _HELLO},
        {"method": "notifications/initialized"},
        {"id": 1, "method": "tools/call", "params": {"name": "memory_search", "arguments": {"query": "staging"}}},
    )
)


@pytest.mark.parametrize("words", [("mcp",), ("admin", "watch")], ids=" ".join)
def test_a_server_and_a_watch_have_a_resident_while_they_run(words: tuple[str, ...], root: Path) -> None:
    """It answers commands, stays though nobody asks, stays away where it was ended, and goes after its host."""
    (root / "memfs.toml").write_text("[resident]\nidle_minutes = 0.01\n")
    hosting = "import memfs.__main__ as own; own.main()"
    program = (
        "import os, sys; from memfs.doors.resident import client; os._exit(client.run_in_resident(sys.argv[1:]) != 0)"
    )
    host = subprocess.Popen([sys.executable, "-c", hosting, *words], cwd=root, stdin=subprocess.PIPE, bufsize=0)
    assert host.stdin is not None
    try:
        host.stdin.write(_CALL.encode())
        assert until(lambda: place.answering(root))
        first = place.resident_of(root)
        time.sleep(1)
        assert subprocess.run([sys.executable, "-c", program, "list"], cwd=root, check=False).returncode == 0
        assert place.resident_of(root) == first
        place.stop(root)
        time.sleep(0.3)
        assert not place.resident_of(root)
        with place.hosted(root):
            assert until(lambda: place.answering(root))
            host.terminate()
            host.communicate()
            time.sleep(1)
            assert place.resident_of(root)
    finally:
        host.kill()
        host.communicate()
    assert until(lambda: not place.resident_of(root))


def test_a_request_that_got_through_whole_is_never_run_twice() -> None:
    """A child may have answered and gone before the client looks again: nothing is left to send then."""

    class Gone:
        """A connection whose other end took everything and hung up."""

        def settimeout(self, seconds: float) -> None:
            """Nothing waits here."""

        def sendmsg(self, parts: list[bytes], *_: object) -> int:
            """All of it goes through."""
            return sum(map(len, parts))

        def sendall(self, data: bytes) -> None:
            """As the system answers for a connection that is closed, whatever is sent."""
            raise BrokenPipeError

    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        link = client.ChildConnection(Gone(), process.pid)
        assert link.send(b"request", ())
        process.communicate(b"\n")
        assert process.returncode == 0


def test_a_hook_begins_a_resident_for_those_that_follow(
    forked: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first prompt is answered by the hook itself."""
    monkeypatch.delenv("MEMFS_RESIDENT")
    payload = {
        "session_id": "s1",
        "cwd": str(root),
        "hook_event_name": "UserPromptSubmit",
        "prompt": "when is staging rebuilt",
    }
    done = subprocess.run(
        [str(forked), "hook", "UserPromptSubmit"],
        cwd=root,
        input=json.dumps(payload).encode(),
        capture_output=True,
        check=True,
    )
    assert b"Sundays" in done.stdout
    assert until(lambda: place.answering(root))
    listed = Path(f"/proc/{place.resident_of(root)}/cmdline")
    if listed.exists():  # what 'ps' shows is what it does, not what began it
        assert listed.read_bytes().endswith(b"\0serve\0")
    assert place.stop(root)


def test_a_text_is_durable_at_once_and_committed_within_the_window(
    ask: Asked, root: Path, resident: int, git: Callable[..., str]
) -> None:
    """By the resident, or before a command that reports commits; with JSON, which names the commit, at once."""
    (root / "memfs.toml").write_text("[history]\ncommit = 'interval'\n")
    assert ask("remember", "zebras graze", "--id", "zebra").returncode == 0
    assert b"zebras" in ask("log").stdout
    assert ask("remember", "quokkas smile", "--id", "quokka").returncode == 0
    assert until(lambda: "quokkas" in git(root, "log", "-1"))
    assert json.loads(ask("remember", "lynxes lurk", "--json").stdout)["durability"] == "commit"
