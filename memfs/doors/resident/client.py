"""Ask the resident of a workspace to run this command, before anything else of memfs is imported.

A command runs by itself where there is no resident, where it does not greet in time, and wherever it is not certain
that asking is right. Once the request has gone out the resident's child runs the command, with our streams, folder and
environment, and only what is known to have done nothing is run here again.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # ``signal`` takes longer to import than the command has
import os
import sys

from memfs.config_names import RESIDENT_SWITCH, RESIDENT_USE, WORKSPACE_VARIABLE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

GREETING = b"memfs-resident-1\n"
"""What a resident's child says first; another number is another language."""
READING = frozenset({"recall", "list", "show", "status", "log", "diff"})
"""Verbs that change nothing that is remembered: they may be run twice."""
WRITING = {"remember": "Remembered", "update": "Updated", "forget": "Forgot"}
"""Verbs that change one thing, in one step; and what they say that they did."""
_OFF = frozenset({"off", "no", "false", "0"})
_HERE = frozenset({"-h", "--help", "--version", "--edit", "-e", "--review"})
"""What is asked of a person or of a service, or shown without a workspace."""
_WITH_VALUE = frozenset({"-C", "--workspace", "--set"})
_PATIENCE = 0.02
_LOOK_EVERY = 1.0
_INPUT_SECONDS = 0.5
LONGEST_ADDRESS = 100
"""Of how many bytes the path of a socket may be; a longer one is reached through its folder."""
_HEAD = 5
_INTERRUPTED, _CANNOT_TELL = 130, 2
OUTPUT, CODE, DECLINED, WRITES, WROTE = b"o", b"c", b"d", b"w", b"s"
"""What a child says: that it prints from here on; the exit code; that it does nothing; which items it is about to
write; that these are durable."""
_PASSED_ON = (_signal.SIGINT, _signal.SIGTERM, _signal.SIGHUP, _signal.SIGQUIT)


def run_in_resident(words: Sequence[str]) -> int | None:
    """The exit code of a command that a resident ran; None where it is to be run here.

    Args:
        words: the arguments of the command.
    """
    if switched_off() or os.environ.get(RESIDENT_USE, "").lower() in _OFF:
        return None
    # what is piped in cannot be read twice
    reads_input = any(word == "-" or (word.startswith("--") and word.endswith("=-")) for word in words)
    if not is_event(words) and (reads_input or verb_of(words) not in READING | WRITING.keys()):
        return None
    stated = os.environ.get(RESIDENT_SWITCH, "")
    patience = int(stated) / 1000 if stated.isascii() and stated.isdigit() and len(stated) < 6 else _PATIENCE
    folder = socket_folder()
    try:
        names = _names(folder, words) if patience else []
        if not names or not _buffer_input(words):
            return None
        for name in names:
            link = ChildConnection.to(folder, name, patience)
            if link is not None:
                try:
                    return _run_in_child(link, words)
                finally:
                    link.close()
                    if is_event(words):
                        os.lseek(0, 0, os.SEEK_SET)
    except KeyboardInterrupt:  # before the child was informed
        return _INTERRUPTED
    return None


def verb_of(words: Sequence[str]) -> str:
    """The verb of a command that a resident may run, "" for any other."""
    verb = ""
    rest = iter(words)
    for word in rest:
        if word == "--":
            break
        if word in _HERE or word.startswith(("--edit=", "-e=")) or "resident." in word:
            return ""
        if not verb:
            if word in _WITH_VALUE:
                if "resident." in next(rest, ""):
                    return ""
            elif not word.startswith("-"):
                verb = word
    return verb


def identity() -> bytes:
    """Which memfs this is, in which interpreter: only its like may answer for it."""
    named = {name: os.environ[name] for name in sorted(os.environ) if name.startswith("PYTHON")}
    package = os.path.dirname(os.path.dirname(os.path.dirname(__file__)))
    own = os.stat(__file__)
    installed = (package, own.st_ino, own.st_mtime_ns)  # another version writes each file again
    interpreter = (sys.executable, sys.prefix, sys.version, tuple(sys.flags), sys.path[1:], named)
    return repr((installed, interpreter, os.getgid())).encode("utf-8", "surrogateescape")


def socket_folder() -> str:
    """Where this user's residents have their sockets, "" where there is no such place. Nothing is made."""
    runtime, cache = os.environ.get("XDG_RUNTIME_DIR", ""), os.environ.get("XDG_CACHE_HOME", "")
    if runtime.startswith("/"):
        return f"{runtime}/memfs"
    if cache.startswith("/"):
        return f"{cache}/memfs/residents"
    home = os.environ.get("HOME", "")
    return f"{home}/.cache/memfs/residents" if home.startswith("/") else ""


def is_private(folder: str) -> bool:
    """Whether a folder is this user's, no link, and closed to others."""
    try:
        facts = os.lstat(folder)
    except OSError:
        return False
    return facts.st_mode & 0o170077 == 0o040000 and facts.st_uid == os.getuid()


def socket_name(facts: os.stat_result) -> str:
    """The name of the socket for the workspace in a folder with these facts."""
    return f"{facts.st_dev:x}-{facts.st_ino:x}"


def switched_off() -> bool:
    """Whether this environment wants no resident, asked or begun."""
    return os.environ.get(RESIDENT_SWITCH, "").lower() in _OFF


def start_of(words: Sequence[str]) -> str:
    """The folder from which the command looks for its workspace."""
    named = ""
    rest = iter(words)
    for word in rest:
        if word == "--":
            break
        if word in ("-C", "--workspace"):
            named = next(rest, "")
        elif word.startswith("--workspace="):
            named = word[12:]
        elif word.startswith("-C") and len(word) > 2:
            named = word[2:]
    return os.path.realpath(named or os.path.expanduser(os.environ.get(WORKSPACE_VARIABLE, "")) or ".")


def _names(folder: str, words: Sequence[str]) -> list[str]:
    """The sockets in a folder that are of the folder a command works in, or of one above it, the nearest first."""
    found: list[str] = []
    try:
        names = frozenset(os.listdir(folder)) if folder and is_private(folder) else frozenset()
        place = start_of(words) if names else ""
        while place:
            name = socket_name(os.stat(place))
            if name in names:
                found.append(name)
            place = os.path.dirname(place) if place != "/" else ""
    except OSError:
        return []
    return found


def is_event(words: Sequence[str]) -> bool:
    """Whether a program of an agent hands over an event."""
    return [*words[:1]] == ["hook"] and not any(one.startswith("-") and not one.startswith("--into=") for one in words)


def _buffer_input(words: Sequence[str]) -> bool:
    """Keep the event that is piped in, so that it can be read twice; false where that, or a closed stream, cannot be
    handed on.
    """
    try:
        for number in (0, 1, 2):
            os.fstat(number)
        if not is_event(words):
            return True
        if os.isatty(0):
            return False
        kept = os.memfd_create("memfs-input")
        try:
            _signal.signal(_signal.SIGALRM, _interrupt)  # what does not end in time is taken as far as it came
            _signal.setitimer(_signal.ITIMER_REAL, _INPUT_SECONDS)
            while piece := os.read(0, 1 << 16):
                while piece:
                    piece = piece[os.write(kept, piece) :]
        except InterruptedError:
            pass
        finally:
            _signal.setitimer(_signal.ITIMER_REAL, 0)
            _signal.signal(_signal.SIGALRM, _signal.SIG_DFL)
        os.dup2(kept, 0)
        os.close(kept)
        os.lseek(0, 0, os.SEEK_SET)
    except OSError:
        return False
    return True


def _interrupt(*_: object) -> None:
    raise InterruptedError


class ChildConnection:
    """A connection to a child of a resident, which has greeted."""

    def __init__(self, connection: object, process: int) -> None:
        self._connection: Any = connection
        self.process = process
        self._pidfd = os.pidfd_open(process)
        self._kept = b""

    @classmethod
    def to(cls, folder: str, name: str, patience: float) -> ChildConnection | None:
        """Connect; None where no one greets in time, or one of another version."""
        import _socket

        connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
        near = -1
        try:
            connection.settimeout(patience)
            address = f"{folder}/{name}"
            if len(os.fsencode(address)) > LONGEST_ADDRESS:
                near = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
                address = f"/proc/self/fd/{near}/{name}"
            connection.connect(address)
            theirs = connection.getsockopt(_socket.SOL_SOCKET, _socket.SO_PEERCRED, 12)
            if int.from_bytes(theirs[4:8], sys.byteorder) == os.getuid():
                head = _received(connection, len(GREETING) + 8)
                if head.startswith(GREETING):
                    process, length = (int.from_bytes(head[at:][:4], "big") for at in (-8, len(head) - 4))
                    if _received(connection, length) == identity():
                        return cls(connection, process)
        except (OSError, AttributeError):  # among them that it took too long, and a system without such calls
            pass
        finally:
            if near >= 0:
                os.close(near)
        connection.close()
        return None

    def send(self, data: bytes, descriptors: Sequence[int]) -> bool:
        """Send a request with descriptors; false where it has not got through, so that nothing will come of it."""
        import _socket

        rights = b"".join(one.to_bytes(4, sys.byteorder) for one in descriptors)
        try:
            self._connection.settimeout(_LOOK_EVERY)
            sent = self._connection.sendmsg([data], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, rights)])
            if sent < len(data):  # to send nothing fails, too, where a child is done already
                self._connection.sendall(data[sent:])
        except OSError:  # a child that is gone, or stopped: it must not get to know the rest
            self.kill()
            return False
        return True

    def next(self) -> tuple[bytes, bytes]:
        """What the child says next, as kind and content; (b"", b"") once it has ended, or was stopped and killed.

        A child that was stopped is killed: it must not resume once we do without it.
        """
        while len(self._kept) < _HEAD or len(self._kept) < _HEAD + int.from_bytes(self._kept[1:_HEAD], "big"):
            try:
                piece = self._connection.recv(1 << 16)
            except TimeoutError:
                if is_stopped(self.process):
                    self.kill()
                continue
            except OSError:
                piece = b""
            if not piece:
                return b"", b""
            self._kept += piece
        end = _HEAD + int.from_bytes(self._kept[1:_HEAD], "big")
        kind, content, self._kept = self._kept[:1], self._kept[_HEAD:end], self._kept[end:]
        return kind, content

    def signal(self, number: int) -> None:
        """Send the child a signal."""
        try:  # noqa: SIM105  contextlib takes time to import
            _signal.pidfd_send_signal(self._pidfd, number)
        except OSError:
            pass  # it has ended

    def kill(self) -> None:
        """End the child for certain."""
        self.signal(_signal.SIGKILL)

    def close(self) -> None:
        """Hang up, which ends a child that still runs."""
        self._connection.close()
        os.close(self._pidfd)


def is_stopped(process: int) -> bool:
    """Whether somebody stopped a process."""
    try:
        with open(f"/proc/{process}/stat", "rb") as facts:
            return facts.read().rpartition(b")")[2].split()[0] in (b"T", b"t")
    except (OSError, IndexError):
        return False


def _received(connection: Any, length: int) -> bytes:
    data = b""
    while len(data) < length:
        piece = connection.recv(length - len(data))
        if not piece:
            break
        data += piece
    return data


def _request(words: Sequence[str]) -> bytes:
    """What a child needs to know to be this command."""
    umask = os.umask(0o077)
    os.umask(umask)
    ignored = [str(int(one)) for one in _PASSED_ON if _signal.getsignal(one) == _signal.SIG_IGN]
    standard: tuple[Any, ...] = (sys.stdin, sys.stdout, sys.stderr)
    streams = [f"{one.encoding} {one.errors} {one.write_through:d}" for one in standard]
    facts = [f"{umask:o}", " ".join(ignored), sys.argv[0], sys.path[0], *streams, str(len(words)), *words]
    environment = [name + b"=" + value for name, value in os.environb.items()]
    data = b"\0".join([*map(os.fsencode, facts), *environment])
    return len(data).to_bytes(4, "big") + data


def _run_in_child(link: ChildConnection, words: Sequence[str]) -> int | None:
    """Let the child run the command; its exit code, or None where it did nothing and the command runs here."""
    try:
        request, here = _request(words), os.open(".", os.O_RDONLY | os.O_DIRECTORY)
    except (OSError, AttributeError, ValueError):  # a stream is closed, or the folder is gone
        return None
    try:
        if not link.send(request, (0, 1, 2, here)):
            return None
    finally:
        os.close(here)
    passed: list[int] = []

    def hand_on(number: int, _: object) -> None:
        link.signal(_signal.SIGKILL if number in passed else number)  # who asks twice does not want to wait
        passed.append(number)

    before = [(one, _signal.getsignal(one)) for one in _PASSED_ON if _signal.getsignal(one) != _signal.SIG_IGN]
    for one, _ in before:
        _signal.signal(one, hand_on)
    try:
        return _outcome(link, words, passed)
    finally:
        for one, handler in before:
            _signal.signal(one, handler)


def _outcome(link: ChildConnection, words: Sequence[str], passed: list[int]) -> int | None:
    """The exit code that the child sends, or that its end means; None where it had done nothing."""
    printed = unsure = False
    written: dict[str, None] = {}
    kind = OUTPUT
    while kind:
        kind, content = link.next()
        if kind == CODE:
            return int.from_bytes(content, "big")
        if kind == DECLINED:
            return None
        printed |= kind == OUTPUT
        if kind in (WRITES, WROTE):
            unsure = kind == WRITES
            written |= dict.fromkeys(content.decode().split())
    if passed:
        if passed[-1] == _signal.SIGINT:
            return _INTERRUPTED
        _signal.signal(passed[-1], _signal.SIG_DFL)
        os.kill(os.getpid(), passed[-1])
    if written and verb_of(words) in WRITING:  # what else was written is kept, and no part of the answer
        return _report_written(words, [*written], unsure, printed)
    if not printed:
        return None
    if is_event(words):  # it is kept, and an agent's program never sees a failure
        return 0
    sys.stderr.write("memfs: the resident process ended while it answered: what was printed may be incomplete\n")
    return 1


def _report_written(words: Sequence[str], names: Sequence[str], unsure: bool, printed: bool) -> int:
    """Say what became of items that a child was to write when it ended; the exit code."""
    named = ", ".join(names)
    if unsure:
        sys.stderr.write(f"memfs: the resident process ended while writing {named}: check whether it was stored\n")
        return _CANNOT_TELL
    if not printed:
        done = f"{WRITING[verb_of(words)]} {named}"
        if "--json" in words:
            import json  # no other command of a client needs it

            done = json.dumps({"ids": names, "stored": True})
        sys.stdout.write(f"{done}\n")
    sys.stderr.write(f"memfs: the resident process ended after this was stored: {named}\n")
    return 0
