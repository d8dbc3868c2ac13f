"""Whatever becomes of a resident, nothing that was acknowledged is lost, nothing happens twice, and nobody waits."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
import yaml

from kit.patience import LONG, until
from kit.residents import CLIENT, NOBODY, Asked
from memfs.doors.resident import client, place

pytestmark = pytest.mark.faults

Scale = Callable[[int, int], int]
ROOT = Path(__file__).resolve().parents[2]


def _ends(process: int) -> bool:
    def gone() -> bool:
        try:
            os.kill(process, 0)
        except ProcessLookupError:
            return True
        return False

    return until(gone)


# -- killed ---------------------------------------------------------------------------------------------------------
_WRITER = """
number=0
while [ ! -e "$3" ]; do
    number=$((number + 1))
    said=$("$1" remember "crowd $2 says $number" --id "crowd-$2-$number" 2>&1) || case "$?$said" in
        2*"check whether it was stored") for try in 1 2 3; do
            "$1" show "crowd-$2-$number" >/dev/null 2>&1 && break
            "$1" remember "crowd $2 says $number" --id "crowd-$2-$number" >/dev/null 2>&1
        done ;;
        *) echo "failed: $said" ;;
    esac
    for try in 1 2 3; do
        shown=$("$1" show "crowd-$2-$number" 2>&1 >/dev/null) && break
        case "$shown" in *"may be incomplete") ;; *) echo "not found: $number: $shown" ;; esac
    done
    echo "$number"
done
"""
"""Remembers and shows until a file appears; says each number once it was acknowledged, and what went wrong.

Where a killed child leaves it open whether a write is stored, it looks, and writes again what is not. What was killed
while it printed, it asks again.
"""


def test_eight_that_write_lose_nothing_while_residents_are_killed(
    forked: Path, root: Path, tmp_path: Path, scale: Scale, figures: Callable[..., None]
) -> None:
    """Each write is there once, no matter who carried it out: the resident, its child, or the command itself."""
    kills, over = scale(3, 300), tmp_path / "over"
    env = {**os.environ, "MEMFS_RESIDENT": "500"}
    crowd = [
        subprocess.Popen(
            ["sh", "-c", _WRITER, "sh", str(forked), str(one), str(over)], cwd=root, env=env, stdout=subprocess.PIPE
        )
        for one in range(8)
    ]
    outputs: dict[int, bytes] = {}
    killed = children = 0
    rng = random.Random(1)
    try:
        while killed < kills:
            subprocess.run([str(forked), "serve", "--detach"], cwd=root, check=False, capture_output=True)
            time.sleep(rng.uniform(0.05, 0.5))
            process = place.resident_of(root)
            if process and killed % 3 == 2:
                children += _kill(*_children(process))
            killed += _kill(process) if process else 0
    finally:
        over.touch()
        outputs = {one: process.communicate()[0] for one, process in enumerate(crowd)}
    place.stop(root)
    acknowledged = {one: text.decode().splitlines() for one, text in outputs.items()}
    assert all(rows == [str(number) for number in range(1, len(rows) + 1)] for rows in acknowledged.values())
    files = (root / "ContextMemory/memories").rglob("crowd-*.yaml")
    texts = sorted((path.stem, yaml.safe_load(path.read_text())["content"]) for path in files)
    assert texts == sorted(
        (f"crowd-{one}-{number}", f"crowd {one} says {number}") for one, rows in acknowledged.items() for number in rows
    )
    figures("resident: kill -9", killed=killed, children=children, writers=8, acknowledged=len(texts), lost=0)


def _kill(*processes: int) -> int:
    """Kill processes; how many were there."""
    killed = 0
    for one in processes:
        with suppress(ProcessLookupError):
            os.kill(one, signal.SIGKILL)
            killed += 1
    return killed


def _children(process: int) -> list[int]:
    with suppress(OSError):
        return [int(one) for one in Path(f"/proc/{process}/task/{process}/children").read_text().split()]
    return []


# -- stopped --------------------------------------------------------------------------------------------------------
_STRUCK = """
import os, signal, sys, threading, time
sys.path.pop(0)
from memfs.doors.resident import client
from memfs.__main__ import main
strike, delay, going_on = sys.argv.pop(1), float(sys.argv.pop(1)), float(sys.argv.pop(1))
send, close = client.ChildConnection.send, client.ChildConnection.close

def struck(link, data, descriptors):
    def stop(*_):
        link.signal(getattr(signal, strike))
        if going_on:
            signal.signal(signal.SIGALRM, lambda *_: link.signal(signal.SIGCONT))
            signal.setitimer(signal.ITIMER_REAL, going_on)

    signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, delay)
    return send(link, data, descriptors)

def closing(link):
    signal.setitimer(signal.ITIMER_REAL, 0)
    close(link)

client.ChildConnection.send, client.ChildConnection.close = struck, closing
main()
"""
"""The command, whose child gets a signal so many seconds after its request, and goes on so many seconds later."""


def test_a_write_whose_child_is_killed_or_stopped_happens_once(
    forked: Path, root: Path, resident: int, scale: Scale, figures: Callable[..., None], ask: Asked
) -> None:
    """At any moment, also where it goes on before it is given up: it is stored once, or reported as uncertain."""
    points = scale(12, 300)
    asked = {"killed": 0, "stopped": 0}
    for point in range(points):
        stopped = point % 3 == 2
        going_on = (0.0, 0.3, 0.98, 1.0, 1.02, 1.5)[point // 3 % 6] if stopped else 0.0
        strike = ["SIGSTOP" if stopped else "SIGKILL", str(0.0005 + 0.06 * point / points), str(going_on)]
        text = f"the struck write number zq{point}zq"
        done = subprocess.run(
            [str(forked), "-c", _STRUCK, *strike, "remember", text, "--json"],
            cwd=root,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
        outcome = done.returncode, done.stderr
        uncertain = (done.returncode, b"ended while writing" in done.stderr) == (2, True)
        assert uncertain or done.returncode == 0 or b"may be incomplete" in done.stderr, outcome
        found = json.loads(ask("recall", f"zq{point}zq", "--json", alone=True).stdout)["hits"]
        stored = [one["content"] for one in found if f"zq{point}zq" in one["content"]]
        assert stored == [text] or (uncertain and not stored), (strike, outcome)
        asked["stopped" if stopped else "killed"] += 1
    assert ask("log", "-n", "1").returncode == 0
    figures("resident: a child is struck", **asked, lost=0, doubled=0)


def test_commands_go_on_while_the_resident_is_stopped_and_continued(
    forked: Path, root: Path, resident: int, scale: Scale, figures: Callable[..., None]
) -> None:
    """Whether it greets depends on the moment; what is done, and how often, does not."""
    rounds = scale(10, 300)
    env = {**os.environ, "MEMFS_RESIDENT": "20"}
    rng = random.Random(2)
    for number in range(rounds):
        writing = subprocess.Popen(
            [str(forked), "remember", f"in round {number}", "--id", f"round-{number}"],
            cwd=root,
            env=env,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        time.sleep(rng.uniform(0, 0.08))
        os.kill(resident, signal.SIGSTOP)
        time.sleep(rng.uniform(0, 0.05))
        os.kill(resident, signal.SIGCONT)
        assert writing.communicate(timeout=LONG)[0].startswith(b"Remembered")
    assert len(list((root / "ContextMemory/memories").rglob("round-*.yaml"))) == rounds
    assert place.resident_of(root) == resident
    figures("resident: stopped and continued", rounds=rounds, lost=0)


# -- many -----------------------------------------------------------------------------------------------------------
_CROWD = f"""
import os, sys
sys.path.pop(0)
from memfs.doors.resident import client
number = int(sys.argv[1])
begin, wait = os.pipe(), os.pipe()
for one in range(number):
    if not os.fork():
        os.close(wait[1])
        os.read(wait[0], 1)
        os.close(1)
        os.dup2(os.open(f"{{sys.argv[2]}}/{{one}}", os.O_WRONLY | os.O_CREAT), 1)
        code = client.run_in_resident(["show", "staging"])
        os._exit({NOBODY} if code is None else code)
os.close(wait[1])
codes = [os.waitstatus_to_exitcode(os.wait()[1]) for _ in range(number)]
print(codes.count(0), codes.count({NOBODY}))
"""
"""So many clients that ask in the same moment; says how many were answered, and how many go on by themselves."""


def test_a_thousand_clients_at_once(
    forked: Path, root: Path, resident: int, tmp_path: Path, scale: Scale, figures: Callable[..., None], ask: Asked
) -> None:
    """Each is answered whole, or does its work by itself; the resident lives, and is no larger for it."""
    clients = scale(100, 1000)
    expected = ask("show", "staging", alone=True).stdout

    def crowd(number: int) -> tuple[int, int]:
        (answers := tmp_path / f"said-{number}").mkdir()
        command = [str(forked), "-c", _CROWD, str(number), str(answers)]
        done = subprocess.run(command, cwd=root, capture_output=True, check=True, timeout=5 * LONG)
        answered, alone = map(int, done.stdout.split())
        assert answered + alone == number
        assert sorted(one.read_bytes() for one in answers.iterdir()) == [b""] * alone + [expected] * answered
        return answered, alone

    crowd(clients // 10)
    before = _memory(resident)
    answered, alone = crowd(clients)
    assert ask("show", "staging").returncode == 0
    assert _memory(resident) < before + 2_000
    figures("resident: clients at once", clients=clients, answered=answered, alone=alone, wrong=0)


def _memory(process: int) -> int:
    rows = Path(f"/proc/{process}/status").read_text().splitlines()
    return int(next(row.split()[1] for row in rows if row.startswith("RssAnon")))


# -- the socket's place ---------------------------------------------------------------------------------------------
@pytest.mark.parametrize("what", ["file", "folder", "link", "silent", "other user"])
def test_what_was_planted_in_the_place_of_the_socket_is_passed_by(
    what: str, forked: Path, ask: Asked, root: Path, tmp_path: Path
) -> None:
    """Nobody is asked there; a resident takes the place, or says at once that it cannot."""
    folder = Path(client.socket_folder())
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    planted = folder / client.socket_name(os.stat(root))
    listening = None
    with socket.socket(socket.AF_UNIX) as listener:
        if what == "file":
            planted.write_text("")
        elif what == "folder":
            (planted / "inner").mkdir(parents=True)
        elif what == "link":
            planted.symlink_to(tmp_path / "nothing")
        elif what == "silent":
            listener.bind(str(planted))
            listener.listen()
        else:
            listening = _listen_as_nobody(planted)
        patience = "50" if what == "silent" else str(int(LONG * 100))
        assert ask("list", env={"MEMFS_RESIDENT": patience}).returncode == NOBODY
        done = subprocess.run([str(forked), "serve", "--detach"], cwd=root, capture_output=True, check=False)
        if what == "folder":
            assert (done.returncode, b"rename failed" in done.stderr) == (1, True), done.stderr
            shutil.rmtree(planted / "inner")
            subprocess.run([str(forked), "serve", "--detach"], cwd=root, check=True, capture_output=True)
        assert ask("list").returncode == 0
        assert place.stop(root)
    if listening is not None:
        listening.kill()
        assert listening.communicate()[0] == b""


_NOBODY_LISTENS = """
import os, socket, sys
sys.path.pop(0)
from memfs.doors.resident import client
listener = socket.socket(socket.AF_UNIX)
listener.bind(sys.argv[1])
said = client.identity()
os.setuid(65534)
listener.listen()
print("up", file=sys.stderr, flush=True)
while True:
    link, _ = listener.accept()
    link.sendall(client.GREETING + os.getpid().to_bytes(4, "big") + len(said).to_bytes(4, "big") + said)
    link.settimeout(1)
    data = link.recv(1 << 16)
    print(data)
"""
"""Somebody else who greets as a resident does, and prints what was sent to them."""


def _listen_as_nobody(planted: Path) -> subprocess.Popen[bytes]:
    if os.geteuid() != 0:
        pytest.skip("only root can be somebody else")
    command = [sys.executable, "-c", _NOBODY_LISTENS, str(planted)]
    listening = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert listening.stderr is not None
    assert listening.stderr.readline() == b"up\n"
    return listening


# -- what it relies on ----------------------------------------------------------------------------------------------
def test_it_leaves_when_its_workspace_is_moved(ask: Asked, root: Path, resident: int) -> None:
    """A folder of the same name is another workspace."""
    root.rename(root.with_name("moved"))
    root.mkdir()
    assert ask("list", cwd=root.with_name("moved")).returncode == NOBODY
    assert _ends(resident)


def test_it_leaves_when_its_workspace_is_removed(
    forked: Path, root: Path, scale: Scale, figures: Callable[..., None], tmp_path: Path
) -> None:
    """Also where commands write meanwhile: each says what it did, and nothing is made again."""
    shutil.copytree(root, tmp_path / "kept", symlinks=True)
    rounds = scale(2, 50)
    for number in range(rounds):
        subprocess.run([str(forked), "serve", "--detach"], cwd=root, check=True, capture_output=True)
        resident = place.resident_of(root)
        writing = [
            subprocess.Popen(
                [str(forked), "-C", str(root), "remember", f"while it goes {one}"],
                cwd=tmp_path,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
            for one in range(3)
        ]
        time.sleep(0.1 * number / rounds)
        subprocess.run(["rm", "-rf", str(root)], check=False, capture_output=True)
        for one in writing:
            output, wrong = one.communicate(timeout=LONG)
            assert b"Traceback" not in wrong, wrong
            assert one.returncode in (0, 1, 2), (output, wrong)
            assert (one.returncode == 0) == (b"Remembered" in output), (output, wrong)
        shutil.rmtree(root, ignore_errors=True)  # a write may have come between what rm saw and what it removed
        assert _ends(resident)
        assert not root.exists()
        shutil.copytree(tmp_path / "kept", root, symlinks=True)
    figures("resident: workspace removed", rounds=rounds, writers=3)


def test_another_version_of_memfs_is_not_asked(root: Path, tmp_path: Path) -> None:
    """What was installed again counts from the next command on, and the resident of the former version leaves."""
    package = shutil.copytree(
        ROOT / "memfs", tmp_path / "installed/memfs", ignore=shutil.ignore_patterns("__pycache__")
    )
    env = {**os.environ, "PYTHONPATH": str(package.parent), "MEMFS_RESIDENT": str(int(LONG * 100))}

    def run(program: str, *words: str) -> int:
        command = [sys.executable, "-c", program, *words]
        return subprocess.run(command, cwd=root, env=env, capture_output=True, check=False).returncode

    assert run("import sys; sys.path.pop(0); from memfs.__main__ import main; main()", "serve", "--detach") == 0
    resident = place.resident_of(root)
    assert run(CLIENT, "list") == 0
    for path in package.rglob("*.py"):
        fresh = path.with_suffix(".fresh")
        shutil.copy(path, fresh)
        fresh.rename(path)
    assert run(CLIENT, "list") == NOBODY
    assert _ends(resident)


def test_a_full_disk_says_the_same_with_a_resident(
    forked: Path, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A question is answered, a write refused with the same words, nothing is half there, and later all goes on."""
    if os.geteuid() != 0:
        pytest.skip("only root can mount a disk")
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=24m", "none", str(disk)], check=False).returncode:
        pytest.skip("no disk can be mounted here")
    try:
        there = shutil.copytree(root, disk / "workspace", symlinks=True)
        monkeypatch.setenv("XDG_CACHE_HOME", str(disk / "cache"))

        def run(*words: str, switch: str) -> tuple[int, bytes, bytes]:
            env = {**os.environ, "MEMFS_RESIDENT": switch}
            done = subprocess.run([str(forked), *words], cwd=there, env=env, capture_output=True, check=False)
            return done.returncode, done.stdout, done.stderr

        served = str(int(LONG * 100))
        assert run("serve", "--detach", switch=served)[0] == 0
        assert run("recall", "staging", switch=served) == run("recall", "staging", switch="off")

        def both(*words: str) -> list[tuple[int, bytes, bytes]]:
            with suppress(OSError), (disk / "filler").open("ab", buffering=0) as filler:
                while True:
                    filler.write(bytes(4096))
            return [run(*words, switch=switch) for switch in ("off", served)]

        for words in (("recall", "staging"), ("list",), ("show", "large")):
            alone, by_resident = both(*words)
            assert by_resident == alone, words
        for number in range(20):  # what the resident does in the background may give room back for a moment
            alone, by_resident = both("remember", "x" * 5000, "--id", f"large{number}")
            if alone[0] and by_resident[0]:
                break
        assert (by_resident, alone[0]) == (alone, 1)
        assert run("show", f"large{number}", switch=served)[0] == run("show", f"large{number}", switch="off")[0] == 1
        assert place.resident_of(there)
        place.stop(there)
        code, _, wrong = run("serve", "--detach", switch=served)
        assert code == 0 or b"No space left" in wrong, wrong
        (disk / "filler").unlink()
        assert run("serve", "--detach", switch=served)[0] == 0
        assert run("remember", "there is room", "--id", "room", switch=served)[0] == 0
        assert b"there is room" in run("show", "room", switch=served)[1]
    finally:
        place.stop(disk / "workspace")
        subprocess.run(["umount", "-l", str(disk)], check=False, capture_output=True)


def test_a_command_begins_one_where_that_is_wished(root: Path) -> None:
    """By ``resident.auto``, which a workspace cannot set for others."""
    (root / "memfs.toml").write_text("[resident]\nauto = true\n")
    env = {**os.environ, "MEMFS_RESIDENT": "20"}
    listing = [sys.executable, "-m", "memfs", "list"]
    subprocess.run(listing, cwd=root, env=env, check=True, capture_output=True)
    assert not place.resident_of(root)
    env["MEMFS_RESIDENT_AUTO"] = "true"
    subprocess.run(listing, cwd=root, env=env, check=True, capture_output=True)
    try:
        assert place.resident_of(root)  # it is about to come up, and can be ended
        assert until(lambda: place.answering(root))
        command = [sys.executable, "-c", CLIENT.replace("sys.path.pop(0)", ""), "list"]
        env["MEMFS_RESIDENT"] = str(int(LONG * 100))
        assert subprocess.run(command, cwd=root, env=env, check=False).returncode == 0
    finally:
        place.stop(root)


# -- interrupted ------------------------------------------------------------------------------------------------------
_INTERRUPTED = """
import os, signal, sys
sys.path.pop(0)
from memfs.doors.resident import client
from memfs.__main__ import main
signal.signal(signal.SIGINT, signal.default_int_handler)  # what runs the tests may ignore it
times = [int(sys.argv.pop(1))]
send, following = client.ChildConnection.send, client.ChildConnection.next

def stopped(link, data, descriptors):
    link.signal(signal.SIGSTOP)
    return send(link, data, descriptors)

def interrupted(link):
    for _ in range(times[0]):
        os.kill(os.getpid(), signal.SIGINT)
    if times[0] == 1:
        link.signal(signal.SIGCONT)
    times[0] = 0
    return following(link)

client.ChildConnection.send, client.ChildConnection.next = stopped, interrupted
main()
"""
"""The command, interrupted so often while its child, which has yet to read the request, is stopped."""


@pytest.mark.parametrize("times", ["1", "2"])
def test_ctrl_c_ends_a_command_and_its_child(times: str, forked: Path, root: Path, resident: int, ask: Asked) -> None:
    """It is handed on; a child that hangs is killed by the second. Nothing is stored, and nobody complains."""
    words = [str(forked), "-c", _INTERRUPTED, times, "remember", "never stored", "--id", "never"]
    done = subprocess.run(words, cwd=root, stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=LONG)
    assert (done.returncode, done.stdout, done.stderr) == (130, b"", b"")
    assert ask("show", "never", alone=True).returncode == 1
    assert place.resident_of(root) == resident
