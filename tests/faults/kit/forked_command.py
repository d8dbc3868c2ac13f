"""Commands that are quick to start: each call is a fork of one process that has imported everything.

For tests that run many commands as people do and look at what they print. What a command is given is its own:
arguments, environment, folder, standard streams, signals, exit code, and a process. With ``-c`` each runs a text of
Python, as an interpreter would. Tests of starting and of what is imported start an interpreter instead.

Two processes are forked: a small one that has imported memfs, and a fork of the tests' own process, which has imported
the libraries of all doors too. That one is made before the first test: nothing that a test leaves is in it.
"""

from __future__ import annotations

import importlib
import marshal
import os
import signal
import socket
import subprocess
import sys
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

RESIDENT_LOG = "KIT_RESIDENT_LOG"
"""The variable by which each command has a resident begun before; names the file of what residents answered."""
_LENGTH = 8
_DESCRIPTORS = 4  # standard input, output and errors, and the folder
_CHECKOUT = Path(__file__).parents[3]
_LATE = (
    *("memfs.__main__", "memfs.testing", "memfs.doors.mcp"),
    *(f"memfs.doors.{name}" for name in ("anthropic", "langgraph", "openai_agents")),
)
_CLIENT = """#!{python} -IS
import _signal, _socket, marshal, os, sys
link = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
link.connect({address!r})
passed_on = (_signal.SIGHUP, _signal.SIGINT, _signal.SIGQUIT, _signal.SIGTERM)
for one in passed_on:
    _signal.signal(one, lambda number, _: link.send(bytes([number])))
request = marshal.dumps(({program!r}, sys.argv, {{**os.environ}}))
given = b"".join(one.to_bytes(4, sys.byteorder) for one in (0, 1, 2, os.open(".", os.O_RDONLY)))
link.sendmsg([len(request).to_bytes(8, "big")], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, given)])
link.sendall(request)
code = int(link.recv(4) or 70)
if code < 0:
    if -code in passed_on:
        _signal.signal(-code, _signal.SIG_DFL)
    os.kill(os.getpid(), -code)
os._exit(code)
"""


class ForkedCommands:
    """A process that waits for calls, for as long as the tests' process lives or until it is closed.

    Args:
        large: It is a fork of this process, from which calls of libraries that take seconds to import are quick; others
            are quicker from a new interpreter, which has half the memory to fork.
    """

    def __init__(self, *, large: bool = False) -> None:
        near = "/tmp" if os.access("/tmp", os.W_OK) else None  # the address of a socket has at most a hundred bytes
        self._folder = TemporaryDirectory(prefix="memfs-", dir=near)
        self._address = os.path.join(self._folder.name, "address")
        until, self._lives = os.pipe()
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
            listener.bind(self._address)
            listener.listen(128)
            begin = _fork if large else _start
            self._process = begin(listener, until)
        os.close(until)

    def write(self, folder: Path, program: str = "memfs") -> Path:
        """Put a command into a folder: ``memfs`` or ``python``."""
        path = folder / program
        path.write_text(_CLIENT.format(python=sys.executable, address=self._address, program=program))
        path.chmod(0o755)
        return path

    def close(self) -> None:
        """End the process, and all that it began."""
        os.close(self._lives)
        os.waitpid(self._process, 0)
        self._folder.cleanup()


def _start(listener: socket.socket, until: int) -> int:
    words = [sys.executable, __file__, str(listener.fileno()), str(until)]
    started = subprocess.Popen(words, pass_fds=(listener.fileno(), until))
    started.returncode = 0  # the process that has the number waits for it
    return started.pid


def _fork(listener: socket.socket, until: int) -> int:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the process of a worker has a thread more, which only reads
        process = os.fork()
    if not process:
        _live(listener, until, large=True)
    return process


def _live(listener: socket.socket, until: int, *, large: bool = False) -> None:
    """Be the process that is forked; in each fork, run its command."""
    code = 70
    try:
        from kit.patience import LONG

        os.setsid()
        if large:
            _forget_the_tests({listener.fileno(), until})
        _Server(listener, until, LONG).serve()
        code = _command()
    except BaseException:  # noqa: BLE001
        sys.__excepthook__(*sys.exc_info())
    finally:
        os._exit(code)


def _forget_the_tests(kept: set[int]) -> None:
    """Let nothing of what pytest set up, or of the modules of tests, come along."""
    import atexit
    import faulthandler
    import gc
    import logging
    import threading

    atexit._clear()
    faulthandler.disable()
    sys.settrace(None)
    sys.setprofile(None)
    warnings.resetwarnings()
    warnings.simplefilter("ignore")
    logging.root.handlers.clear()
    logging.root.setLevel(logging.WARNING)
    sys.excepthook, sys.unraisablehook = sys.__excepthook__, sys.__unraisablehook__
    threading.excepthook = threading.__excepthook__
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGHUP, signal.SIGQUIT, signal.SIGTERM, signal.SIGALRM):
        signal.signal(number, signal.SIG_DFL)
    null = os.open(os.devnull, os.O_RDWR)
    for one in set(range(1024)) - kept - {2, null}:
        with suppress(OSError):
            os.fstat(one)
            os.dup2(null, one, inheritable=False)  # the process that has it may close it later
    strange = {str(_CHECKOUT / name) for name in ("tests", "docs", "examples")}
    sys.path[:] = [path for path in sys.path if not path.startswith(tuple(strange))]
    for name, module in list(sys.modules.items()):
        if (getattr(module, "__file__", None) or "").startswith(tuple(strange)):
            del sys.modules[name]
    gc.freeze()


class _Server:
    """Answers calls, each in a fork, until nobody holds the other end of a pipe any more."""

    def __init__(self, listener: socket.socket, until: int, patience: float) -> None:
        self._listener, self._until, self._patience = listener, until, patience
        self._ready = False
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
            watched = [self._listener, self._wakeup, self._until, *self._calls.values()]
            ready, _, _ = select.select(watched, [], [])
            if self._until in ready:
                for process in self._calls:
                    _kill(process)
                os._exit(0)
            if self._wakeup in ready:
                self._wakeup.recv(4096)
            self._reap()
            for process, link in list(self._calls.items()):
                if link in ready:
                    self._signal(process, link)
            if self._listener in ready and self._call():
                return

    def _signal(self, process: int, link: socket.socket) -> None:
        """Pass on the signals that a caller got, or end what was called by one who is gone."""
        numbers = b""
        with suppress(ConnectionError):
            numbers = link.recv(64)
        if not numbers:
            _kill(process)
            del self._calls[process]
            link.close()
        for number in numbers:
            with suppress(ProcessLookupError):
                os.kill(process, number)

    def _reap(self) -> None:
        with suppress(ChildProcessError):
            while (found := os.waitpid(-1, os.WNOHANG))[0]:
                link = self._calls.pop(found[0], None)
                if link is not None:
                    code = os.waitstatus_to_exitcode(found[1])
                    with suppress(OSError):
                        link.send(str(code).encode())
                    link.close()

    def _call(self) -> bool:
        """Begin a call; whether this is the fork."""
        link, _ = self._listener.accept()
        head, given, _, _ = socket.recv_fds(link, _LENGTH, _DESCRIPTORS)
        size = int.from_bytes(head, "big")
        request = b""
        while len(request) < size and (part := link.recv(size - len(request))):
            request += part
        if not self._ready:
            self._ready = True
            _import_all(self._patience)
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
        os.close(self._until)
        _become(*marshal.loads(request), given)
        return True


_program: Callable[[], None]


def _become(program: str, arguments: list[str], environment: dict[str, str], given: list[int]) -> None:
    """Take over what a call gives: its program, arguments, environment, folder and standard streams."""
    import random
    import time

    global _program
    _program = _memfs if program == "memfs" and arguments[1:2] != ["-c"] else _python
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
    sys.path[:0] = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    time.tzset()
    random.seed()
    sys.stdin = sys.__stdin__ = open(0, closefd=False)  # type: ignore[misc]  # noqa: SIM115
    sys.stdout = sys.__stdout__ = open(1, "w", closefd=False)  # type: ignore[misc]  # noqa: SIM115
    sys.stderr = sys.__stderr__ = open(  # type: ignore[misc]  # noqa: SIM115
        2, "w", closefd=False, errors="backslashreplace", buffering=1
    )


def _kill(process: int) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process, signal.SIGKILL)


def _import_all(patience: float) -> None:
    """Import what commands import, but for doors to others, whose libraries take longer than all the rest."""
    import gc

    for path in sorted((_CHECKOUT / "memfs").rglob("*.py")):
        name = ".".join(path.relative_to(_CHECKOUT).with_suffix("").parts).removesuffix(".__init__")
        if not name.startswith(_LATE):
            with suppress(ImportError):  # of an extra that is not installed
                importlib.import_module(name)
    from memfs.doors.claude_code import hook

    hook._PATIENCE_SECONDS = patience  # type: ignore[assignment]
    for table in (hook.LIMITS, hook.DRAINS):
        table.update(dict.fromkeys(table, patience))  # type: ignore[attr-defined]
    gc.collect()
    gc.freeze()


def _memfs() -> None:
    from memfs.__main__ import main

    if log := os.environ.get(RESIDENT_LOG):
        _have_resident(log)
    main()


def _have_resident(log: str) -> None:
    """Have a resident up for the workspace that the command works in, and note each command that it answered."""
    from memfs.doors.resident import client, place
    from memfs.errors import MemfsError
    from memfs.fs.workspace_location import find_workspace

    answered = client.run_in_resident

    def noted(words: Sequence[str]) -> int | None:
        code = answered(words)
        if code is not None:
            with open(log, "a") as file:
                file.write(f"{' '.join(words)}\n")
        return code

    client.run_in_resident = noted
    with suppress(MemfsError):  # there is no workspace, or it cannot be opened
        root = find_workspace(client.start_of(sys.argv[1:]))
        if sys.argv[1:2] != ["serve"] and not place.answering(root):
            place.start(root)


def _python() -> None:
    """What an interpreter does with ``-c``, ``-m`` or a file."""
    import runpy
    from types import ModuleType

    words = [word for number, word in enumerate(sys.argv[1:]) if number or word != "-u"]
    sys.argv[:] = words
    if words[0] == "-c":
        del sys.argv[1]
        sys.path.insert(0, "")
        sys.modules["__main__"] = module = ModuleType("__main__")
        exec(compile(words[1], "<string>", "exec", dont_inherit=True), vars(module))
    elif words[0] == "-m":
        del sys.argv[0]
        sys.path.insert(0, os.getcwd())
        runpy.run_module(words[1], run_name="__main__", alter_sys=True)
    else:
        sys.path.insert(0, str(Path(words[0]).parent.resolve()))
        runpy.run_path(words[0], run_name="__main__")


def _command() -> int:
    """Run the command as its own process would, but for taking the interpreter apart, which would copy all memory."""
    import atexit
    import threading

    code: object = None
    try:
        _program()
    except SystemExit as ended:
        code = ended.code
        if isinstance(code, str):
            print(code, file=sys.stderr)
    except BaseException:  # noqa: BLE001
        sys.excepthook(*sys.exc_info())
        code = 1
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    return code if isinstance(code, int) else int(code is not None)


if __name__ == "__main__":
    sys.path[:1] = [str(Path(__file__).parents[1]), str(_CHECKOUT)]
    _live(socket.socket(fileno=int(sys.argv[1])), int(sys.argv[2]))
