"""A ``memfs`` command that is quick to start: each call is a fork of one process that has imported everything.

For tests that run many commands as people do and look at what they print. What a command is given is its own:
arguments, environment, folder, standard streams, exit code, and a process. With ``-c`` it runs a text of Python, as an
interpreter would, and dies of the signal of which the fork died. Tests of starting, of signals that are sent to it and
of what is imported start an interpreter instead.
"""

from __future__ import annotations

import importlib
import marshal
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

_LENGTH = 8
_DESCRIPTORS = 4  # standard input, output and errors, and the folder
_LATE = (
    *("memfs.__main__", "memfs.testing", "memfs.doors.mcp"),
    *(f"memfs.doors.{name}" for name in ("anthropic", "langgraph", "openai_agents")),
)
_CLIENT = """#!{python} -IS
import _socket, marshal, os, sys
link = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
link.connect({address!r})
request = marshal.dumps((sys.argv, {{**os.environ}}))
given = b"".join(one.to_bytes(4, sys.byteorder) for one in (0, 1, 2, os.open(".", os.O_RDONLY)))
link.sendmsg([len(request).to_bytes(8, "big")], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, given)])
link.sendall(request)
answer = link.recv(4)
code = int(answer) if answer else 70
if sys.argv[1:2] == ["-c"] and code > 128:
    os.kill(os.getpid(), code - 128)
os._exit(code)
"""


@contextmanager
def command(folder: Path, name: str = "memfs") -> Iterator[Path]:
    """A command in a folder, as long as the context lasts."""
    program = folder / name
    near = "/tmp" if os.access("/tmp", os.W_OK) else None  # the address of a socket has at most a hundred bytes
    with TemporaryDirectory(prefix="memfs-", dir=near) as short:
        address = os.path.join(short, "address")
        program.write_text(_CLIENT.format(python=sys.executable, address=address))
        program.chmod(0o755)
        words = [sys.executable, __file__, address]
        with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True) as server:
            assert server.stdin is not None
            assert server.stdout is not None
            server.stdout.readline()  # it listens
            yield program
            server.stdin.close()  # it ends, and all that it began


class _Server:
    """Answers calls, each in a fork, until nobody holds its standard input any more."""

    def __init__(self, listener: socket.socket) -> None:
        self._listener = listener
        self._calls: dict[int, socket.socket] = {}  # by process
        self._wakeup, ended = socket.socketpair()
        self._wakeup.setblocking(False)
        ended.setblocking(False)
        self._ended = ended
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(ended.fileno())

    def serve(self) -> None:
        """Take calls; in a fork, return to run the command."""
        import select

        while True:
            watched = [self._listener, self._wakeup, sys.stdin, *self._calls.values()]
            ready, _, _ = select.select(watched, [], [])
            if sys.stdin in ready:
                for process in self._calls:
                    _kill(process)
                os._exit(0)
            if self._wakeup in ready:
                self._wakeup.recv(4096)
            self._reap()
            for process, link in list(self._calls.items()):
                if link in ready:  # whoever called is gone
                    _kill(process)
                    del self._calls[process]
                    link.close()
            if self._listener in ready and self._call():
                return

    def _reap(self) -> None:
        with suppress(ChildProcessError):
            while (found := os.waitpid(-1, os.WNOHANG))[0]:
                link = self._calls.pop(found[0], None)
                if link is not None:
                    code = os.waitstatus_to_exitcode(found[1])
                    with suppress(OSError):
                        link.send(str(code if code >= 0 else 128 - code).encode())
                    link.close()

    def _call(self) -> bool:
        """Begin a call; whether this is the fork."""
        link, _ = self._listener.accept()
        head, given, _, _ = socket.recv_fds(link, _LENGTH, _DESCRIPTORS)
        size = int.from_bytes(head, "big")
        request = b""
        while len(request) < size and (part := link.recv(size - len(request))):
            request += part
        process = os.fork()
        if process:
            for one in given:
                os.close(one)
            self._calls[process] = link
            return False
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for one in (link, self._listener, self._wakeup, self._ended, *self._calls.values()):
            one.close()
        _become(*marshal.loads(request), given)
        return True


def _become(arguments: list[str], environment: dict[str, str], given: list[int]) -> None:
    """Take over what a call gives: its arguments, environment, folder and standard streams."""
    import random
    import time

    os.setsid()
    *streams, folder = given
    os.fchdir(folder)
    for number, one in enumerate(streams):
        os.dup2(one, number)
    for one in given:
        os.close(one)
    sys.argv[:] = arguments
    os.environ.clear()
    os.environ.update(environment)
    time.tzset()
    random.seed()
    sys.stdin = open(0, closefd=False)  # noqa: SIM115
    sys.stdout = sys.__stdout__ = open(1, "w", closefd=False)  # type: ignore[misc]  # noqa: SIM115
    sys.stderr = sys.__stderr__ = open(  # type: ignore[misc]  # noqa: SIM115
        2, "w", closefd=False, errors="backslashreplace", buffering=1
    )


def _kill(process: int) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process, signal.SIGKILL)


def _import_all() -> None:
    """Import what commands import, but for doors to others, whose libraries take longer than all the rest."""
    checkout = Path(__file__).parents[3]
    for path in sorted((checkout / "memfs").rglob("*.py")):
        name = ".".join(path.relative_to(checkout).with_suffix("").parts).removesuffix(".__init__")
        if not name.startswith(_LATE):
            with suppress(ImportError):  # of an extra that is not installed
                importlib.import_module(name)


def _main() -> None:
    import gc

    from kit.patience import LONG
    from memfs.doors.claude_code import hook

    _import_all()
    hook._PATIENCE_SECONDS = LONG  # type: ignore[assignment]
    for table in (hook.LIMITS, hook.DRAINS):
        table.update(dict.fromkeys(table, LONG))  # type: ignore[attr-defined]
    gc.collect()
    gc.freeze()
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(sys.argv[1])
        listener.listen(128)
        print(flush=True)
        _Server(listener).serve()
    os._exit(_command())


def _command() -> int:
    """Run the command as its own process would, but for taking the interpreter apart, which would copy all memory."""
    import atexit
    import threading

    from memfs.__main__ import main

    code: object = None
    try:
        if sys.argv[1:2] == ["-c"]:
            text = sys.argv[2]
            del sys.argv[:2]
            sys.argv[0] = "-c"
            exec(compile(text, "-c", "exec"), {"__name__": "__main__"})
        else:
            main()
    except SystemExit as ended:
        code = ended.code
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError):
            stream.flush()
    return code if isinstance(code, int) else int(code is not None)


if __name__ == "__main__":
    sys.path[:1] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[3])]
    _main()
