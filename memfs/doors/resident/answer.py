"""Answer one request in a child of the resident: become the command that was asked for, and run it.

The child takes over the client's streams, folder, environment and mask, so that it is the command in every respect but
its process. It uses the workspace that its parent holds open where the command itself would open the same one by the
same settings; else it opens what the command would open.
"""

from __future__ import annotations

import fcntl
import io
import locale
import os
import signal
import socket
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from memfs.admin.store_builder import foundation
from memfs.config_names import RESIDENT_SWITCH, VARIABLES, WORKSPACE_VARIABLE
from memfs.dataclass import NamedTuple
from memfs.doors.claude_code import hook
from memfs.doors.cli import command
from memfs.doors.resident.client import CODE, DECLINED, GREETING, OUTPUT, WRITES, WRITING, WROTE, is_event, verb_of
from memfs.doors.resident.place import name_process
from memfs.fs.journal import set_witness
from memfs.fs.workspace_location import find_workspace
from memfs.git.layout import ERASE_FOLDER
from memfs.git.process import git_program
from memfs.model.ids import stem_of
from memfs.private import NAME
from memfs.workspace import Workspace, open_workspace

if TYPE_CHECKING:
    from collections.abc import Sequence

    from memfs.fs.journal import Operation

SIGN = f"{VARIABLES}HISTORY_SIGN"
_PATIENCE = 2.0
_DESCRIPTORS = 4
_LARGEST = 1 << 26
_RESET = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGCHLD, signal.SIGALRM)
_FAILED, _ENDED_BY_OUTPUT = 1, 120
SESSION_CODE = 64
"""A child's exit code where a session reported something of which memories are to be made."""
_PRIVATE = f"mounts.{NAME}"
_SAYS_WHERE = ("GIT_", VARIABLES, "XDG_")


class Request(NamedTuple):
    """What a client asks: to be this command."""

    umask: int
    ignored: tuple[int, ...]
    program: str
    path: str
    streams: tuple[list[str], ...]
    words: tuple[str, ...]
    environment: dict[bytes, bytes]
    descriptors: tuple[int, ...]


def answer(link: socket.socket, workspace: Workspace, identity: bytes) -> int:
    """Greet a client, and be the command that it asks for; returns when that is done.

    Args:
        link: the connection to the client, who is this user.
        workspace: what the parent holds open; it is this process's own from here on.
        identity: which memfs this is (``client.identity``).

    Returns:
        The exit code, which the client was given already.
    """
    os.setsid()  # what is typed at the parent's terminal is not for this command
    link.settimeout(_PATIENCE)
    try:
        link.sendall(GREETING + os.getpid().to_bytes(4, "big") + len(identity).to_bytes(4, "big") + identity)
        request = received(link)
    except OSError:
        return 0
    if request is None:  # the client gave up: it does the work itself
        return 0
    link.settimeout(None)
    signal.signal(signal.SIGIO, signal.SIG_DFL)  # which ends this process when the client is gone, as if it was killed
    fcntl.fcntl(link, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(link, fcntl.F_SETFL, fcntl.fcntl(link, fcntl.F_GETFL) | os.O_ASYNC)
    if has_gone(link):  # before it was listened to
        return 0
    program = git_program()
    same = _take_over(request, link)
    # a person may be asked for what a commit is signed with
    named = any("history.sign" in word for word in request.words) or SIGN.encode() in request.environment
    signs = verb_of(request.words) in WRITING and (named or workspace.settings.history.sign != "off")
    if signs or git_program() != program:  # what is imported already knows of the parent's git
        say(link, DECLINED)
        return 0
    command.opener = opener = _opener(workspace, request.words) if same else open_workspace
    set_witness(partial(_announce, link))
    if is_event(request.words):
        notice = _OutputNotice(link)
        root = workspace.root if same else None
        host = hook.HookHost(root, opener, notice.send, partial(_end_hook, link))
        hook.main(request.words[1:], host=host)
    code = _run(request.words)
    say(link, CODE, code.to_bytes(4, "big"))
    return code


def _end_hook(link: socket.socket, left: bool) -> None:
    """Let the program of an agent continue; the parent hears by the exit code of what is left to do."""
    if left:
        fcntl.fcntl(link, fcntl.F_SETFL, fcntl.fcntl(link, fcntl.F_GETFL) & ~os.O_ASYNC)
    say(link, CODE, bytes(4))
    os._exit(SESSION_CODE if left else 0)


def _announce(link: socket.socket, operations: Sequence[Operation], durable: bool) -> None:
    """Tell the client which items are about to be written, and once they are durable.

    An edit by hand that is recorded before them changes no file, and is not its own.
    """
    changes = [change for one in operations for change in one.changes if change.old != change.new]
    if names := dict.fromkeys(stem_of(change.path) for change in changes):
        say(link, WROTE if durable else WRITES, " ".join(names).encode())


def has_gone(link: socket.socket) -> bool:
    """Whether the other end hung up, so that the work is being done elsewhere."""
    try:
        return not link.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
    except BlockingIOError:
        return False
    except OSError:
        return True


def say(link: socket.socket, kind: bytes, content: bytes = b"") -> None:
    """Send the client a message; a client that is gone ends this process by a signal."""
    with suppress(OSError):
        link.sendall(kind + len(content).to_bytes(4, "big") + content)


def received(link: socket.socket) -> Request | None:
    """What a client asks; None where it hung up, or sent no whole request.

    Raises:
        OSError: it kept silent for too long.
    """
    data, descriptors, _, _ = socket.recv_fds(link, 1 << 16, _DESCRIPTORS, socket.MSG_CMSG_CLOEXEC)
    length = int.from_bytes(data[:4], "big") + 4
    pieces, size = [data], len(data)
    while 4 <= size < length <= _LARGEST and pieces[-1]:
        pieces.append(link.recv(min(length - size, 1 << 20)))
        size += len(pieces[-1])
    if size != length or len(descriptors) != _DESCRIPTORS or length <= 4:
        return None
    parts = b"".join(pieces)[4:].split(b"\0")
    umask, ignored, program, path, *streams = map(os.fsdecode, parts[:7])
    end = 8 + int(parts[7])
    pairs = (part.partition(b"=") for part in parts[end:])
    return Request(
        int(umask, 8),
        tuple(map(int, ignored.split())),
        program,
        path,
        tuple(one.split(" ") for one in streams),
        tuple(map(os.fsdecode, parts[8:end])),
        {name: value for name, _, value in pairs},
        tuple(descriptors),
    )


def reset_signals() -> None:
    """Take signals as a command does."""
    signal.set_wakeup_fd(-1)
    for one in _RESET:
        signal.signal(one, signal.default_int_handler if one == signal.SIGINT else signal.SIG_DFL)


def _take_over(request: Request, link: socket.socket) -> bool:
    """Be the client in all that a command can see; whether its surroundings are those of the parent, too."""
    for one in request.ignored:
        signal.signal(one, signal.SIG_IGN)
    name_process("memfs")
    *streams, folder = request.descriptors
    os.fchdir(folder)
    os.close(folder)
    for number, given in enumerate(streams):
        os.dup2(given, number)
        os.close(given)
    os.umask(request.umask)
    before = _surroundings()
    path = os.environ.get("PATH")
    os.environb.clear()
    os.environb.update(request.environment)
    if os.environ.get("PATH") != path:
        git_program.cache_clear()
    time.tzset()
    with suppress(locale.Error):
        locale.setlocale(locale.LC_CTYPE, "")
    sys.argv = [request.program, *request.words]
    sys.path[0] = request.path
    _open_streams(request.streams, _OutputNotice(link))
    return _surroundings() == before


def _surroundings() -> dict[str, str]:
    """The variables by which a workspace is opened one way or another."""
    left_out = (RESIDENT_SWITCH, WORKSPACE_VARIABLE)
    return {
        name: value
        for name, value in os.environ.items()
        if name == "HOME" or (name.startswith(_SAYS_WHERE) and name not in left_out)
    }


class _OutputNotice:
    """Notifies the client, once, that something is printed from now on."""

    def __init__(self, link: socket.socket) -> None:
        self._link: socket.socket | None = link

    def send(self) -> None:
        link, self._link = self._link, None
        if link is not None:
            say(link, OUTPUT)


class _OutputStream(io.RawIOBase):
    """A stream whose first byte is announced."""

    def __init__(self, number: int, name: str, once: _OutputNotice) -> None:
        self._number, self.name, self._once = number, name, once

    def write(self, data: Any) -> int:
        self._once.send()
        return os.write(self._number, data)

    def writable(self) -> bool:
        """It is for nothing else."""
        return True

    def fileno(self) -> int:
        """The number that the interpreter knows it by."""
        return self._number

    def isatty(self) -> bool:
        """Whether a person reads it."""
        return os.isatty(self._number)


def _open_streams(streams: Sequence[list[str]], once: _OutputNotice) -> None:
    """Standard streams as the interpreter of the client made its own."""
    names = ("stdin", "stdout", "stderr")
    for number, (name, (encoding, errors, unbuffered)) in enumerate(zip(names, streams, strict=True)):
        buffer: Any
        if number:
            buffer = _OutputStream(number, f"<{name}>", once)
            buffer = buffer if unbuffered == "1" else io.BufferedWriter(buffer)
        else:
            buffer = io.BufferedReader(io.FileIO(number, "rb", closefd=False))
        stream = io.TextIOWrapper(
            buffer,
            encoding,
            errors,
            newline="\n" if number else None,
            line_buffering=number == 2 or os.isatty(number),
            write_through=unbuffered == "1",
        )
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)


_LATER = frozenset({"remember", "update", "hook"})


def _opener(workspace: Workspace, words: Sequence[str] = ()) -> Callable[..., Workspace]:
    """Opens the parent's workspace where it is what the command would open, and any other as the command would."""

    def opened(path: Any = None, **given: Any) -> Workspace:
        asked = dict(given.get("settings") or {})
        if asked.get(_PRIVATE) and asked[_PRIVATE] == workspace.settings.mounts.get(NAME):
            del asked[_PRIVATE]
        same = find_workspace(path) == workspace.root
        if same and asked:
            with foundation(path, False, asked, False) as on:
                same = on.settings == workspace.settings
                on.repository.close()
        if not same or os.path.lexists(workspace.repository.state / ERASE_FOLDER):
            return open_workspace(path, **given)
        if (notes := given.get("notes")) not in (None, workspace.usage.notes):
            workspace.usage.note_in(notes)
        store, by_interval = workspace.store, command.by_interval(workspace)
        store.resume()
        store.take_up(at_once=by_interval and verb_of(words) not in command.ANY_TIME, patience=command.COMMIT_SECONDS)
        # Its result is durable without: the parent commits it within the window. JSON says in which commit it is, and
        # a verb, why that has to wait.
        later = by_interval and verb_of(words) in _LATER and "--json" not in words
        store.commits_later = later and (is_event(words) or not workspace.repository.busy())
        return workspace

    return opened


def _run(words: Sequence[str]) -> int:
    """Run the command as a separate process would, to its last byte; its exit code."""
    from memfs.doors.cli.app import run

    try:
        code = run(words)
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except BaseException:  # noqa: BLE001  as an interpreter ends
        import traceback

        traceback.print_exc()
        code = _FAILED
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            code = code or _ENDED_BY_OUTPUT
    return code
