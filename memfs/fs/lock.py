"""Locks between processes and threads: flock on a file that is never deleted.

The system releases a lock when its process dies; the text inside the file is for messages only.

The file has a second name, its twin. When somebody deletes the first while the lock is held, the next process finds the
same file by the second: a new file would be a second lock, and two processes would hold it.

A process that has waited for seconds takes a ticket and comes next, so that nobody waits forever among many that write
without pause. Others are let in as it happens, which is ten times faster than first come, first served.
"""

from __future__ import annotations

import fcntl
import json
import os
import secrets
import socket
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Generic, Self, TypeVar, overload

from memfs.errors import LockTimeout, MemfsError, StorageIO
from memfs.fs import io

_PAUSE = 0.01
_Value = TypeVar("_Value")


def locked(fd: int, *, shared: bool = False) -> bool:
    """Lock an open file, if that can be had at once: against every other process, or beside those that share it."""
    try:
        fcntl.flock(fd, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def locked_within(fd: int, seconds: float) -> bool:
    """Lock an open file against every other process, if that can be had in so many seconds."""
    until = time.monotonic() + seconds
    while not locked(fd):
        if time.monotonic() >= until:
            return False
        time.sleep(_PAUSE)
    return True


def release(fd: int) -> None:
    """Unlock a file and close it: a child that another thread forked meanwhile has the same open file."""
    try:
        fcntl.flock(fd, fcntl.LOCK_UN)
    finally:
        os.close(fd)


def leads_to(path: Path, fd: int) -> bool:
    """Whether a path leads to an open file: somebody may have put another in its place, or taken it away.

    Raises:
        StorageIO: it cannot be looked at.
    """
    try:
        found = io.facts(path)
    except FileNotFoundError:
        return False
    return os.path.samestat(os.fstat(fd), found)


_FRESH_SECONDS = 2.0


class Turn:
    """One waiter's place in the queue of a folder, which is there only while somebody waits.

    A ticket is advice among those who keep to it: who holds a lock, the lock alone decides. It ends with its process,
    and one whose owner was stopped is passed over.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._name = ""
        self._fd = -1

    @property
    def taken(self) -> bool:
        """Whether this waiter has a ticket."""
        return self._fd >= 0

    def take(self) -> None:
        """Take a ticket; where none can be had, this waiter goes on without."""
        name = f"{time.monotonic_ns():020d}-{os.getpid()}-{secrets.token_hex(3)}"
        with suppress(MemfsError, OSError):
            io.mkdir(self._folder, 0o700)
            self._fd = io.open_file(self._folder / name, os.O_RDWR | os.O_CREAT | os.O_EXCL)
            self._name = name
            if not (locked(self._fd) and leads_to(self._folder / name, self._fd)):
                self.leave()  # taken for a dead one's in the very moment it was made

    def ahead(self) -> int:
        """How many are to come first, 0 when it is this waiter's turn."""
        try:
            names = sorted(os.listdir(self._folder))
        except OSError:
            return 0
        if self.taken:
            with suppress(StorageIO):
                io.touch(self._fd)
            names = [name for name in names if name < self._name]
        for number, name in enumerate(names):
            if self._waits(self._folder / name):
                return len(names) - number
        if not self.taken:
            self._clear()
        return 0

    def leave(self) -> None:
        """Give the ticket back."""
        if not self.taken:
            return
        with suppress(MemfsError, OSError):
            io.unlink(self._folder / self._name, missing_ok=True)
        os.close(self._fd)
        self._fd = -1
        self._clear()

    def _clear(self) -> None:
        """The last one leaves no folder; while others wait it cannot be removed."""
        with suppress(MemfsError, OSError):
            io.rmdir(self._folder)

    @staticmethod
    def _waits(ticket: Path) -> bool:
        """Whether a ticket's owner lives and is at it."""
        try:
            fd = io.open_file(ticket, os.O_RDONLY | os.O_NONBLOCK)
        except (FileNotFoundError, MemfsError):
            return False
        try:
            if not locked(fd, shared=True):
                return abs(time.time() - os.fstat(fd).st_mtime) < _FRESH_SECONDS
            with suppress(MemfsError, OSError):
                io.unlink(ticket, missing_ok=True)
            return False
        finally:
            os.close(fd)


_MAKERS = {type(threading.Lock()): threading.Lock, type(threading.RLock()): threading.RLock}
_RENEWING = "begin_anew_in_child"
_known: weakref.WeakSet[object] = weakref.WeakSet()

Part = TypeVar("Part")


def renewed_in_child(part: Part) -> Part:
    """Give an object new locks in each forked child, and call its ``begin_anew_in_child()`` where it has one.

    A child has none of its parent's threads: a lock that one of them held at the fork would be held forever, and what
    only a thread does would never be done.

    Its locks are the attributes that are a ``threading.Lock`` or ``RLock``.
    """
    _known.add(part)
    return part


def _renew() -> None:
    parts = list(_known)
    for part in parts:
        for name, value in vars(part).items():
            if (make := _MAKERS.get(type(value))) is not None:
                setattr(part, name, make())
    for part in parts:
        getattr(part, _RENEWING, _nothing)()


def _nothing() -> None:
    """An object that has nothing but locks."""


os.register_at_fork(after_in_child=_renew)


_FIRST_WAIT = 0.0005
_LONGEST_WAIT = 0.02
_PATIENCE = 3.0
_STEP = 0.001
_FAR = 0.05


class FileLock:
    """One lock of a workspace or repository, shared by every process that opens the same path."""

    def __init__(self, path: Path, home: Path | None = None) -> None:
        """``home``: a folder above it; while that is there, folders that are missing in between are made again."""
        self.path = path
        self._home = home
        self._twin = path.with_name(f".{path.name}.twin")
        self._queue = path.with_name(f".{path.name}.queue")
        self._threads = threading.Lock()
        renewed_in_child(self)

    @contextmanager
    def hold(self, purpose: str, timeout: float = 30.0) -> Iterator[None]:
        """Hold the lock while the block runs.

        Args:
            purpose: what for, shown to those who wait.
            timeout: seconds to wait.

        Raises:
            LockTimeout: naming the holder.
            StorageIO: its folder is gone, or its disk fails.
        """
        deadline = time.monotonic() + timeout
        threads = self._threads  # a child forked meanwhile gets another one
        if not threads.acquire(timeout=timeout):
            raise self._timeout(timeout)
        try:
            fd = self._acquire(deadline, timeout)
            owner = os.getpid()
            _held.add(fd)
            try:
                self._sign(fd, purpose)
                yield
            finally:
                _release(fd, owner)
        finally:
            threads.release()

    def _acquire(self, deadline: float, timeout: float) -> int:
        began, wait, turn = time.monotonic(), _FIRST_WAIT, Turn(self._queue)
        try:
            while True:
                now = time.monotonic()
                ahead = turn.ahead()
                fd = self._tried() if not ahead or now >= deadline else -1
                if fd >= 0:
                    return fd
                if now >= deadline:
                    raise self._timeout(timeout)
                if now - began > _PATIENCE and not turn.taken:
                    turn.take()
                time.sleep(min(_STEP * (ahead + 1), _FAR) if turn.taken else wait)
                wait = min(wait * 1.5, _LONGEST_WAIT)
        finally:
            turn.leave()

    def _tried(self) -> int:
        """The locked file, or -1 where another holds it."""
        while True:
            fd = self._opened()
            try:
                if not locked(fd):
                    break
                if leads_to(self.path, fd):
                    if leads_to(self._twin, fd) or self._twinned(fd):
                        return fd
                    break
            except BaseException:
                os.close(fd)
                raise
            os.close(fd)
        os.close(fd)
        return -1

    def _opened(self) -> int:
        if self._home is not None:
            io.refuse_links(self.path.parent, self._home)
        try:
            return io.open_file(self.path, os.O_RDWR)
        except FileNotFoundError:
            with suppress(FileNotFoundError, FileExistsError, StorageIO):
                io.link(str(self._twin), str(self.path))
        try:
            self._make_folder()
            return io.open_file(self.path, os.O_RDWR | os.O_CREAT)
        except FileNotFoundError as error:
            raise io.storage_error(error, "lock", str(self.path)) from error

    def _make_folder(self) -> None:
        if self._home is not None and not os.path.exists(self.path.parent) and os.path.isdir(self._home):
            io.make_private_folder(self.path.parent)

    def _twinned(self, fd: int) -> bool:
        """Give the locked file its second name; false while somebody holds the file that has it.

        Where a file can have one name only, the lock does without.
        """
        try:
            old = io.open_file(self._twin, os.O_RDWR)
        except FileNotFoundError:
            return self._named_twice(fd)
        try:
            if not locked(old):
                return False
            io.unlink(self._twin, missing_ok=True)
            return self._named_twice(fd)
        finally:
            os.close(old)

    def _named_twice(self, fd: int) -> bool:
        try:
            io.link(str(self.path), str(self._twin))
        except (FileNotFoundError, FileExistsError):
            return False
        except StorageIO:
            return True
        return leads_to(self._twin, fd)

    def _sign(self, fd: int, purpose: str) -> None:
        holder = {"pid": os.getpid(), "host": socket.gethostname(), "since": time.time(), "purpose": purpose}
        line = json.dumps(holder).encode()
        # Whatever the disk says, the lock is held: who holds it is for messages only.
        with suppress(StorageIO), io.operation("sign", self.path):
            os.pwrite(fd, line.ljust(256), 0)

    def holder(self) -> str:
        """Who signed the lock last, in words."""
        try:
            facts = json.loads(io.read_file(self.path, 4096))
            seconds = max(0, time.time() - float(facts["since"]))
            stopped = ", which is stopped" if facts["host"] == socket.gethostname() and _stopped(facts["pid"]) else ""
            return f"pid {facts['pid']} on {facts['host']} for {seconds:.0f} s ({facts['purpose']}){stopped}"
        except (OSError, MemfsError, ValueError, KeyError, TypeError):
            return "an unknown process"

    def _timeout(self, timeout: float) -> LockTimeout:
        return LockTimeout(
            f"still locked after {timeout:g} s, held by {self.holder()}",
            path=str(self.path),
            hint="wait for it to finish, or stop that process; the lock is released when it ends",
        )


_held: set[int] = set()


def _forget_in_child() -> None:
    """A forked child holds none of its parent's locks: with its copies of their files it would keep them from others
    after the parent's death.
    """
    for fd in _held:
        os.close(fd)
    _held.clear()


os.register_at_fork(after_in_child=_forget_in_child)


def _release(fd: int, owner: int) -> None:
    """Give the lock back and close its file, unless this is a child that left its parent's block."""
    if os.getpid() != owner:
        return
    _held.discard(fd)
    release(fd)


def _stopped(pid: int) -> bool:
    """Whether a process of this machine was stopped by a signal, as far as the system tells."""
    try:
        with open(f"/proc/{int(pid)}/stat", encoding="ascii", errors="replace") as facts:
            return facts.read().rpartition(")")[2].split()[0] in ("T", "t")
    except (OSError, IndexError):
        return False


class shared_property(Generic[_Value]):  # noqa: N801  named as the property that it is
    """A cached property of which all threads get the same value, also those that ask for it first at once.

    What a thread made in vain is dropped, so making it must not open anything.
    """

    def __init__(self, make: Callable[[Any], _Value]) -> None:
        """``make``: makes the value for an object, which must have a ``__dict__``."""
        self._make = make
        self._name = ""
        self.__doc__ = make.__doc__

    def __set_name__(self, owner: type[Any], name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type[Any] | None = None) -> Self: ...

    @overload
    def __get__(self, instance: object, owner: type[Any] | None = None) -> _Value: ...

    def __get__(self, instance: object | None, owner: type[Any] | None = None) -> Self | _Value:
        """The value; the property itself where the class is asked."""
        if instance is None:
            return self
        value: _Value = instance.__dict__.setdefault(self._name, self._make(instance))
        return value
