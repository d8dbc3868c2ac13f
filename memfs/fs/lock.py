"""Locks between processes and threads: flock on a file that is never deleted.

The system releases a lock when its process dies; the text inside the file is for messages only.

A lock is two files, and its holder has locked both. When one of them is deleted while the lock is held, the next
process makes that one again, and waits for the other all the same. A third file is the head of the queue: who has it
locks next, so that a process that locks again as soon as it has released does not starve the others.
"""

from __future__ import annotations

import fcntl
import os
import sys
import threading
import time
import weakref
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path

from memfs.errors import LockTimeout, MemfsError, StorageIO
from memfs.fs import io
from memfs.startup import TYPE_CHECKING, TypeVar, json

_PAUSE = 0.01
_Value = TypeVar("_Value")


def locked(fd: int, *, shared: bool = False) -> bool:
    """Lock an open file, if that is possible at once: against every other process, or beside those that share it."""
    try:
        fcntl.flock(fd, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def locked_within(fd: int, seconds: float) -> bool:
    """Lock an open file against every other process, if that is possible within ``seconds``."""
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


@contextmanager
def folder_held(folder: Path, seconds: float) -> Iterator[None]:
    """Keep other processes out of a short change in a folder.

    Where it cannot be locked, or is for so long that its holder was stopped, there is no waiting.
    """
    fd = io.open_file(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with suppress(OSError):  # a file system without locks
            locked_within(fd, seconds)
        yield
    finally:
        with suppress(OSError):
            release(fd)


def leads_to(path: Path, fd: int) -> bool:
    """Whether a path leads to an open file: it may have been replaced or removed.

    Raises:
        StorageIO: it cannot be looked at.
    """
    try:
        found = io.facts(path)
    except FileNotFoundError:
        return False
    return os.path.samestat(os.fstat(fd), found)


_MAKERS = {type(threading.Lock()): threading.Lock, type(threading.RLock()): threading.RLock}
_known: weakref.WeakSet[object] = weakref.WeakSet()

Part = TypeVar("Part")


def reset_on_fork(part: Part) -> Part:
    """Give an object new locks in each forked child, and call its ``after_fork()`` where it has one.

    A child has none of its parent's threads: a lock that one of them held at the fork would be held forever, and what
    only a thread does would never be done.

    Its locks are the attributes that are a ``threading.Lock`` or ``RLock``.
    """
    _known.add(part)
    return part


_alone = False
"""Whether this process forks with no thread but the one that forks."""


def fork_alone() -> int:
    """Fork a process that has no other thread: as ``os.fork``, and parts whose class says ``survives_fork`` go on with
    what they know, since nothing was in progress.
    """
    global _alone
    _alone = threading.active_count() == 1
    try:
        return os.fork()
    finally:
        _alone = False


def _renew() -> None:
    parts = list(_known)
    for part in parts:
        for name, value in vars(part).items():
            if (make := _MAKERS.get(type(value))) is not None:
                setattr(part, name, make())
    for part in parts:
        if hasattr(part, "after_fork") and not (_alone and getattr(part, "survives_fork", False)):
            part.after_fork()
    if _alone:
        return
    # Another thread may have been at a lazy value: Python 3.11 holds a lock for every ``cached_property`` of a class,
    # which no thread of the child would ever release.
    modules = [module for name, module in list(sys.modules.items()) if name.startswith("memfs.")]
    for part in [part for module in modules for part in vars(module).values() if isinstance(part, type)]:
        for lazy in vars(part).values():
            if isinstance(lazy, cached_property) and hasattr(lazy, "lock"):
                lazy.lock = threading.RLock()


os.register_at_fork(after_in_child=_renew)


_FORK_WAIT = 10.0


class _OwnDepth(threading.local):
    depth = 0


class _ForkBarrier:
    """A context in which no other thread forks this process.

    It is for libraries that have locks of their own, such as SQLite: a child would wait forever for one that another
    thread of its parent held at the fork. A fork waits ten seconds at most, and threads that come later wait for it.
    """

    def __init__(self) -> None:
        self._own = _OwnDepth()
        self.after_fork()

    def __enter__(self) -> None:
        if not self._own.depth:
            with self._free:
                self._free.wait_for(lambda: not self.wanted)
                self._within += 1
        self._own.depth += 1

    def __exit__(self, *_: object) -> None:
        self._own.depth -= 1
        if not self._own.depth:
            with self._free:
                self._within -= 1
                self._free.notify_all()

    def close(self) -> None:
        """Wait until no other thread is within, and let none in."""
        self._free.acquire()
        self.wanted = True
        self._free.wait_for(lambda: self._within <= (self._own.depth > 0), _FORK_WAIT)

    def open(self) -> None:
        """Let threads in again."""
        self.wanted = False
        self._free.notify_all()
        self._free.release()

    def after_fork(self) -> None:
        """Forget the other threads, which a child does not have."""
        self._free, self.wanted, self._within = threading.Condition(threading.Lock()), False, int(self._own.depth > 0)


no_fork = _ForkBarrier()
os.register_at_fork(before=no_fork.close, after_in_parent=no_fork.open, after_in_child=no_fork.after_fork)


_FIRST_WAIT = 0.0005
_LONGEST_WAIT = 0.04
_LEAST_WAIT = 0.002
_PATIENCE = 2.0
"""Seconds after which a process no longer cares for the queue: its head may have been stopped."""
_STUCK = 30.0
_LONGEST = 600.0
_AFTERLIFE = 1.0
"""Seconds that a lock may outlive a killed holder: a child it had just forked has its files until its program runs."""


class FileLock:
    """One lock of a workspace or repository, shared by every process that opens the same path."""

    def __init__(self, path: Path, root: Path | None = None, *, keep_open: bool = False) -> None:
        """
        Args:
            root: a folder above it; while that is there, folders that are missing in between are made again.
            keep_open: leave its files open until ``close``: for a lock that is taken again and again.
        """
        self.path, self._root, self._keep_open = path, root, keep_open
        self._idle: dict[Path, int] = {}
        self._second = path.with_name(f".{path.name}.second")
        self._queue = path.with_name(f".{path.name}.queue")
        self._threads = threading.Lock()
        reset_on_fork(self)

    @contextmanager
    def hold(self, purpose: str, timeout: float | None = None) -> Iterator[None]:
        """Hold the lock while the block runs.

        Args:
            purpose: what for, shown to those who wait.
            timeout: seconds to wait; None for as long as others take turns, until one keeps it for 30 seconds.

        Raises:
            LockTimeout: naming the holder.
            StorageIO: its folder is gone, or its disk fails.
        """
        began = time.monotonic()
        threads = self._threads  # a child forked meanwhile gets another one
        if not threads.acquire(timeout=_LONGEST if timeout is None else timeout):
            raise self._timeout(began)
        try:
            fds = self._acquire(began, timeout)
            owner = os.getpid()
            try:
                self._sign(fds[0], purpose)
                yield
            finally:
                if os.getpid() == owner:  # and not a child that left its parent's block
                    self._let_go({self.path: fds[0], self._second: fds[1]})
        finally:
            threads.release()

    def _acquire(self, began: float, timeout: float | None) -> tuple[int, int]:
        now, head, tries, signed = began, -1, 0, b""
        waiting, self._idle = self._idle, {}
        deadline = began + (_STUCK if timeout is None else timeout)
        try:
            while True:
                head = head if head >= 0 else self._tried(self._queue, waiting)
                if head >= 0 or now - began >= _PATIENCE:
                    both = self._tried_both(waiting)
                    if both is not None:
                        return both
                now = time.monotonic()
                if now >= deadline:
                    if timeout is not None:
                        if now - deadline > _AFTERLIFE or not self._outlives_holder():
                            raise self._timeout(began)
                    elif signed == (signed := self._signature()) or now - began > _LONGEST:
                        raise self._timeout(began)
                    else:
                        deadline = now + _STUCK
                elif not signed:
                    signed = self._signature()
                # A long waiter asks more often, so that its turn comes, but not so often that a crowd takes the
                # processor from the one that writes; no process asks in step with others.
                longest = max(_LONGEST_WAIT / max(now - began, 1), _LEAST_WAIT if head >= 0 else 5 * _LEAST_WAIT)
                tries += 1
                time.sleep(min(_FIRST_WAIT * tries, longest) * (0.5 + os.urandom(1)[0] / 512))
        finally:
            self._let_go({**waiting, self._queue: head} if head >= 0 else waiting)

    def _tried_both(self, waiting: dict[Path, int]) -> tuple[int, int] | None:
        first = self._tried(self.path, waiting)
        if first < 0:
            return None
        second = -1
        try:
            second = self._tried(self._second, waiting)
        finally:
            if second < 0:
                _let_go(first)
        return (first, second) if second >= 0 else None

    def _let_go(self, files: Mapping[Path, int]) -> None:
        """Unlock files, and close them unless they are kept open."""
        if not self._keep_open:
            _let_go(*files.values())
            return
        for path, fd in files.items():
            fcntl.flock(fd, fcntl.LOCK_UN)
            self._idle[path] = fd

    def close(self) -> None:
        """Close its files; who has it now does so at the end. It can be taken as before."""
        self._keep_open = False
        if self._threads.acquire(blocking=False):
            idle, self._idle = self._idle, {}
            _let_go(*idle.values())
            self._threads.release()

    def after_fork(self) -> None:
        """Its files are closed in a child."""
        self._idle = {}

    def _tried(self, path: Path, waiting: dict[Path, int]) -> int:
        """The locked file at a path, or -1 where another process has locked it; that stays open in ``waiting``."""
        while True:
            fd = waiting.pop(path, -1)
            if fd < 0:
                if self._root is not None:
                    io.refuse_links(path.parent, self._root)
                    if not os.path.exists(path.parent) and os.path.isdir(self._root):
                        io.make_private_folder(path.parent)
                _open.add(fd := io.make_file(path, os.O_RDWR))
            try:
                got, there = locked(fd), leads_to(path, fd)
            except BaseException:
                _let_go(fd)
                raise
            if there and not got:
                waiting[path] = fd
                return -1
            if there:
                return fd
            _let_go(fd)  # it was deleted, and the next process locks another

    def _sign(self, fd: int, purpose: str) -> None:
        holder = {"pid": os.getpid(), "host": os.uname().nodename, "since": time.time(), "purpose": purpose}
        line = json.dumps(holder).encode()
        # Whatever the disk says, the lock is held: the holder's name is for messages only.
        with suppress(StorageIO), io.operation("sign", self.path):
            os.pwrite(fd, line.ljust(256), 0)

    def _signature(self) -> bytes:
        with suppress(OSError, MemfsError):
            return io.read_file(self.path, 4096)
        return b""

    def holder(self) -> str:
        """Who signed the lock last, in words."""
        try:
            facts = json.loads(self._signature())
            seconds = max(0, time.time() - float(facts["since"]))
            here = facts["host"] == os.uname().nodename
            stopped = ", which is stopped" if here and _state(facts["pid"]) in ("T", "t") else ""
            return f"pid {facts['pid']} on {facts['host']} for {seconds:.0f} s ({facts['purpose']}){stopped}"
        except (ValueError, KeyError, TypeError):
            return "an unknown process"

    def _outlives_holder(self) -> bool:
        """Whether the process that signed the lock last has ended."""
        try:
            facts = json.loads(self._signature())
            if facts["host"] != os.uname().nodename:
                return False
            os.kill(facts["pid"], 0)
            return _state(facts["pid"]) == "Z"
        except ProcessLookupError:
            return True
        except (ValueError, KeyError, TypeError, OSError, OverflowError):
            return False

    def _timeout(self, began: float) -> LockTimeout:
        return LockTimeout(
            f"still locked after {time.monotonic() - began:.0f} s, held by {self.holder()}",
            path=str(self.path),
            hint="wait for it to finish, or stop that process; the lock is released when it ends",
        )


_open: set[int] = set()
"""The files of locks that this process holds, or waits for."""


def _forget_in_child() -> None:
    """A forked child holds none of its parent's locks: with its copies of their files, also of those that the parent
    gets later, it would keep them from others after the parent's death.
    """
    for fd in _open:
        os.close(fd)
    _open.clear()


os.register_at_fork(after_in_child=_forget_in_child)


@contextmanager
def let_go_in_child(fd: int) -> Iterator[None]:
    """While the block runs, a forked child closes its copy of a locked file: else it would keep it from others."""
    _open.add(fd)
    try:
        yield
    finally:
        _open.discard(fd)


def _let_go(*fds: int) -> None:
    _open.difference_update(fds)
    for fd in fds:
        release(fd)


def _state(pid: int) -> str:
    """The letter that ``ps`` shows for a process of this machine; "" where it is unknown."""
    try:
        with open(f"/proc/{int(pid)}/stat", encoding="ascii", errors="replace") as facts:
            return facts.read().rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        return ""


class shared_property(cached_property[_Value]):  # noqa: N801  named as the property that it is
    """A cached property of which all threads get the same value, also those that ask for it first at once.

    What a thread made needlessly is dropped, so making it must not open anything.
    """

    if not TYPE_CHECKING:  # its types are those of a cached property

        def __get__(self, instance, owner=None):
            """The value; the property itself where the class is asked."""
            return self if instance is None else instance.__dict__.setdefault(self.attrname, self.func(instance))
