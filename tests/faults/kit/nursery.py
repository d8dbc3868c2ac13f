"""Writers: processes that carry out a script and can be killed at any moment.

The nursery is one process that has memfs loaded and forks a writer on request, so that a kill costs milliseconds; it
has one thread, so that a fork is safe. A writer says one line for each step, *after* the store acknowledged it, through
a pipe of which the test's process holds the other end.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import select
import signal
import socket
import subprocess
import sys
import traceback
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Any

from kit import broken
from kit.beginning import make
from kit.script import EACH_VERB, Step, carry_out
from memfs.errors import MemfsError
from memfs.fs import io
from memfs.workspace import open_workspace

OPENED = "opened"
_REFUSED, _FAILED = "refused", "failed"
_PATIENCE_MS = 60_000
_LARGEST = 1 << 22


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What a writer is to do.

    Attributes:
        root: its workspace.
        steps: one after the other.
        settings: of the workspace, by dotted key.
        die_at: kill itself right before its N-th disk operation, counted from the opening; 0 for never.
        variant: a name in ``broken.VARIANTS`` that is in force in the writer, "" for memfs as it is.
        waits: do nothing after opening until the test says so.
        create: make the workspace.
    """

    root: Path
    steps: Iterable[Step] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    die_at: int = 0
    variant: str = ""
    waits: bool = False
    create: bool = False

    def encoded(self) -> bytes:
        """As sent to the nursery."""
        return json.dumps({**asdict(self), "root": str(self.root)}).encode()

    @classmethod
    def decoded(cls, data: bytes) -> Job:
        """As received there."""
        fields = json.loads(data)
        steps = [Step(**step) for step in fields.pop("steps")]
        return cls(**{**fields, "root": Path(fields["root"]), "steps": steps})


class Writer:
    """A running writer, as the test's process sees it."""

    def __init__(self, pid: int, pidfd: int, reading: int, go: int) -> None:
        self.pid = pid
        self._pidfd = pidfd
        self._reading = reading
        self._go = go
        self._received = b""

    def wait_until_opened(self) -> None:
        """Wait until the workspace is open, or the writer is dead."""
        while OPENED not in self._lines() and self._receive():
            pass

    def wait_until_done(self, steps: int) -> None:
        """Wait until so many steps are acknowledged, or the writer is dead."""
        while self._done() < steps and self._receive():
            pass

    def go(self) -> None:
        """Let a writer that waits begin."""
        os.write(self._go, b"!")

    def is_over(self, seconds: float) -> bool:
        """Whether the writer ended, after waiting for it so long at most."""
        return bool(select.select([self._pidfd], [], [], seconds)[0])

    def kill(self, number: int = signal.SIGKILL) -> None:
        """Send a signal; nothing happens to one that is dead."""
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._pidfd, number)

    def bury(self, *, may_be_refused: bool = False) -> int:
        """Wait until the writer has gone with all it held; return how many steps it acknowledged.

        Args:
            may_be_refused: memfs may have reported to it that something could not be done.

        Raises:
            AssertionError: it met an error that is not memfs's own, or was refused unexpectedly.
        """
        while self._receive():
            pass
        assert self.is_over(_PATIENCE_MS / 1000), f"writer {self.pid} does not end"
        for fd in (self._reading, self._pidfd, self._go):
            os.close(fd)
        unexpected = _FAILED if may_be_refused else (_FAILED, _REFUSED)
        failed = [line for line in self._lines() if line.startswith(unexpected)]
        assert not failed, "\n".join(json.loads(line.partition(" ")[2]) for line in failed)
        return self._done()

    def _done(self) -> int:
        return sum(line.isdecimal() for line in self._lines())

    def _receive(self) -> bool:
        chunk = os.read(self._reading, 1 << 16)
        self._received += chunk
        return bool(chunk)

    def _lines(self) -> list[str]:
        return self._received.decode().split("\n")[:-1]


class Nursery:
    """Starts writers. Use it in a ``with`` statement."""

    def __enter__(self) -> Nursery:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        for end in (ours, theirs):
            end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _LARGEST)
        path = os.pathsep.join(entry for entry in sys.path if entry)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "kit.nursery", str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            env={**os.environ, "PYTHONPATH": path},
        )
        theirs.close()
        self._line = ours
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._line.close()
        self._process.wait()

    def start(self, job: Job) -> Writer:
        """Start a writer."""
        reading, acknowledging = os.pipe()
        waiting, go = os.pipe()
        socket.send_fds(self._line, [job.encoded()], [acknowledging, waiting])
        os.close(acknowledging)
        os.close(waiting)
        answer, (pidfd,), _, _ = socket.recv_fds(self._line, 64, 1)
        return Writer(int(answer), pidfd, reading, go)


# -- in the nursery's own process -----------------------------------------------------------------------------------
def serve(line: socket.socket) -> None:
    """Fork a writer for each job that arrives, until the test's process closes the line."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the dead are gone at once, as they are once a shell has seen them
    while True:
        data, fds, _, _ = socket.recv_fds(line, _LARGEST, 2)
        if not data:
            return
        gate, opening = os.pipe()
        pid = os.fork()
        if pid == 0:
            line.close()
            os.close(opening)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            os.read(gate, 1)  # until there is a pidfd by which its death will be seen
            _live(Job.decoded(data), *fds)
        pidfd = os.pidfd_open(pid)
        socket.send_fds(line, [str(pid).encode()], [pidfd])
        for fd in (*fds, pidfd, gate, opening):
            os.close(fd)


def _live(job: Job, acknowledging: int, waiting: int) -> None:
    """A writer's whole life; it never returns."""
    try:
        with broken.in_force(job.variant):
            _work(job, acknowledging, waiting)
    except KeyboardInterrupt:
        pass  # as a program ends that was asked to
    except BaseException as error:  # noqa: BLE001 - whatever it is, it is reported to the test
        what = _REFUSED if isinstance(error, MemfsError) else _FAILED
        os.write(acknowledging, f"{what} {json.dumps(traceback.format_exc())}\n".encode())
    finally:
        os._exit(0)


def _work(job: Job, acknowledging: int, waiting: int) -> None:
    if job.die_at:
        io.set_hook(_Reaper(job.die_at))
    settings = {"index.engine": "memory", **job.settings}
    with open_workspace(job.root, create=job.create, watch=False, settings=settings) as workspace:
        os.write(acknowledging, f"{OPENED}\n".encode())
        if job.waits:
            os.read(waiting, 1)
        for number, step in enumerate(job.steps):
            carry_out(workspace, step)
            os.write(acknowledging, f"{number}\n".encode())


class _Reaper:
    """A fault hook that kills its own process right before the N-th operation."""

    def __init__(self, at: int) -> None:
        self._left = at

    def __call__(self, name: str, path: str) -> None:
        self._left -= 1
        if self._left == 0:
            os.kill(os.getpid(), signal.SIGKILL)


def _practise() -> None:
    """Do everything once, so that a writer finds it loaded."""
    with TemporaryDirectory() as folder, contextlib.chdir(folder):
        make(Path("practice"))
        with open_workspace("practice", watch=False) as workspace:
            for step in EACH_VERB:
                carry_out(workspace, step)


if __name__ == "__main__":
    with socket.socket(fileno=int(sys.argv[1])) as own:
        _practise()
        gc.freeze()  # what is loaded is never copied into a writer's memory only to be counted
        serve(own)
