"""Where the resident of a workspace is found, whether one is up, and how it is ended."""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # ``signal`` takes long to import
import os
import select
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import MappingProxyType

from memfs.dataclass import NamedTuple
from memfs.doors.resident.client import is_private, socket_folder, socket_name, switched_off
from memfs.errors import MemfsError, StorageIO
from memfs.fs import io
from memfs.fs.executor import in_daemon
from memfs.fs.lock import let_go_in_child, locked, release
from memfs.startup import Any

_STOP_SECONDS, _START_SECONDS, _LONGEST_START = 10.0, 1.0, 30.0
_LONGEST_REASON, _ID_BYTES = 1 << 12, 8
LISTENS = b"\n\n"
"""What follows the process id of a resident in its file from when it listens; the socket before may be another's."""


class ResidentFiles(NamedTuple):
    """Where the resident of a workspace is found.

    Attributes:
        name: of its socket, in the folder.
        hosts: what processes keep locked together that want it up.
        lock: what it keeps locked while it lives; its process id is in it.
    """

    folder: Path
    name: str
    socket: Path
    hosts: Path
    lock: Path


def files_of(root: Path) -> ResidentFiles:
    """Where the resident of the workspace in a folder is found, or would be.

    Raises:
        StorageIO: this user has no folder for it.
    """
    folder = socket_folder()
    if not folder:
        raise StorageIO("there is no folder for the socket", hint="set HOME or XDG_RUNTIME_DIR")
    place, name = Path(folder), socket_name(os.stat(root))
    return ResidentFiles(place, name, place / name, place / f"{name}.hosts", place / f"{name}.lock")


def resident_of(root: Path) -> int:
    """The process id of a workspace's resident, 0 where none is up."""
    with suppress(MemfsError, OSError):
        found = files_of(root)
        if is_private(str(found.folder)):
            return _held(found.lock, shared=True) or 0
    return 0


def has_host(files: ResidentFiles) -> bool:
    """Whether a process hosts the resident that has these files."""
    return _held(files.hosts) is not None


def _held(lock: Path, shared: bool = False) -> int | None:
    """The process id in a file that a process keeps locked, 0 where it names none; None where nobody locks it."""
    with suppress(MemfsError, OSError):
        fd = io.open_file(lock, os.O_RDWR)
        try:
            return None if locked(fd, shared=shared) else holder(fd)
        finally:
            release(fd)
    return None


@contextmanager
def claimed(files: ResidentFiles) -> Iterator[int | None]:
    """Be the resident while the block runs: the descriptor that says so; None where there is another one.

    A process that claimed it, and runs another program since, has done so already.
    """
    io.make_private_folder(files.folder)
    if not is_private(str(files.folder)):
        io.chmod(files.folder, 0o700)
    fd = io.make_file(files.lock, os.O_RDWR)
    try:
        until = time.monotonic() + _START_SECONDS
        while not locked(fd):
            if holder(fd) == os.getpid() and (own := _opened_before(fd)) is not None:
                os.close(fd)
                fd = own
                break
            if ((other := holder(fd)) and io.is_running(other)) or time.monotonic() >= until:
                yield None
                return
            time.sleep(0.01)  # it died, and a child that it had just forked has its files for a moment
        with io.operation("write", files.lock):
            os.ftruncate(fd, 0)
            os.pwrite(fd, b"%d\n" % os.getpid(), 0)
        with let_go_in_child(fd):
            yield fd
            os.ftruncate(fd, 0)
    finally:
        os.close(fd)


def _opened_before(fd: int) -> int | None:
    """Another descriptor of this process for the same file."""
    for number in map(int, os.listdir("/proc/self/fd")):
        with suppress(OSError):
            if number != fd and os.path.samestat(os.fstat(number), os.fstat(fd)):
                os.set_inheritable(number, False)
                return number
    return None


def name_process(name: str) -> None:
    """Let the system list this process by a name, where it can."""
    with suppress(OSError), open("/proc/self/comm", "w", encoding="ascii") as own:
        own.write(name)


def holder(fd: int) -> int:
    """The process id in an open lock file, 0 where there is none."""
    try:
        return int(os.pread(fd, 20, 0))
    except (OSError, ValueError):
        return 0


def stop(root: Path) -> int:
    """End a workspace's resident, and wait for its end; its process id, 0 where none was up.

    Raises:
        StorageIO: it does not end.
    """
    process = resident_of(root)
    if not process:
        return 0
    with suppress(ProcessLookupError):
        os.kill(process, _signal.SIGTERM)
        os.kill(process, _signal.SIGCONT)
    until = time.monotonic() + _STOP_SECONDS
    while resident_of(root) == process:
        if time.monotonic() >= until:
            raise StorageIO(f"the resident process {process} does not end", hint=f"kill -9 {process}")
        time.sleep(0.01)
    return process


def answering(root: Path) -> int:
    """The process id of a resident that listens."""
    process = resident_of(root)
    with suppress(OSError):
        files = files_of(root)
        if process and files.socket.is_socket() and files.lock.read_bytes().endswith(LISTENS):
            return process
    return 0


def start(root: Path, settings: Mapping[str, Any] = MappingProxyType({})) -> int:
    """Have a resident in the background; returns its process id once it is up.

    Where another one was quicker, ours has ended by then: else it would come up when that one is stopped.

    Raises:
        StorageIO: none comes up.
    """
    reader, end = os.pipe()
    try:
        begin(root, settings, end)
        os.close(end)
        own = int.from_bytes(os.read(reader, _ID_BYTES), "big") or -1
        until = time.monotonic() + _LONGEST_START
        ended = False
        while (up := answering(root)) != own and time.monotonic() < until:
            if ended and (up or not resident_of(root)):  # the other one may be about to come up
                break
            ended = bool(select.select([reader], [], [], 0.01)[0])
            time.sleep(0.01 * ended)
        if process := answering(root):
            return process
        reason = os.read(reader, _LONGEST_REASON) if ended else b""
        raise StorageIO(os.fsdecode(reason) or "no resident process comes up", hint="see what 'memfs serve' says")
    finally:
        os.close(reader)


def may_begin(root: Path, use: bool) -> bool:
    """Whether a resident is wanted, and none is up."""
    return use and not switched_off() and not resident_of(root)


@contextmanager
def hosted(root: Path, use: bool = True) -> Iterator[None]:
    """While the block runs, let commands find a resident of a workspace, for a process that has its own threads.

    It is a process begun by a command, since a process with threads cannot be forked; it does not leave for want of
    questions meanwhile. What keeps it from coming up keeps nothing else.

    Args:
        use: whether settings allow one.
    """
    fd = -1
    with suppress(MemfsError, OSError):
        if use and not switched_off():
            files = files_of(root)
            io.make_private_folder(files.folder)
            fd = io.make_file(files.hosts, os.O_RDWR)
            until = time.monotonic() + _START_SECONDS
            while not locked(fd, shared=True) and time.monotonic() < until:
                time.sleep(0.01)  # a resident looks for hosts in this moment
    if fd < 0:
        yield
        return

    def begin_it() -> None:
        if not resident_of(root):
            import subprocess  # most who ask for a resident's place host none

            words = [*_served(root), "--detach"]
            subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, check=False)

    in_daemon("memfs-host", begin_it)
    try:
        yield
    finally:
        release(fd)


def _served(root: Path) -> list[str]:
    """The command that answers for a workspace."""
    return [sys.executable, "-m", "memfs", "-C", str(root), "serve"]


def begin(root: Path, settings: Mapping[str, Any] = MappingProxyType({}), end: int = -1) -> None:
    """Let a detached process become the resident, where settings allow one.

    Args:
        end: the end of a pipe to which it writes its process id, and why it cannot be one; it holds that while it is.
    """
    if child := os.fork():
        os.waitpid(child, 0)
        return
    try:
        os.setsid()
        reader, writer = os.pipe()
        if os.fork():
            os.close(writer)
            os.read(reader, 1)  # the caller then finds that one is starting
            return
        os.close(reader)
        if end >= 0:
            os.write(end, os.getpid().to_bytes(_ID_BYTES, "big"))
        for one in (_signal.SIGALRM, _signal.SIGINT, _signal.SIGTERM):
            _signal.signal(one, _signal.SIG_DFL)
        os.chdir("/")
        nowhere = os.open(os.devnull, os.O_RDWR)
        for number in (0, 1, 2):
            os.dup2(nowhere, number)
        try:
            with claimed(files_of(root)) as claim:
                os.close(writer)
                if claim is not None and end < 0:  # a hook began it, and the system would keep listing it as one
                    os.set_inheritable(claim, True)
                    os.execv(sys.executable, _served(root))  # noqa: S606 - the interpreter that runs this
                if claim is not None:
                    from memfs.doors.resident.server import serve  # in the background: it takes a while

                    serve(root, settings)
        except MemfsError as error:
            if end >= 0:
                os.write(end, os.fsencode(str(error)))
    finally:
        os._exit(0)
