"""The resident of one workspace: holds it open, in step with its files, and forks a child for each command.

It has one thread and answers nothing itself, so that what a question needs ends with the child, and a fork is safe.
What follows from the files is looked at before each fork: a command sees every change that was there when it asked.
"""

from __future__ import annotations

import gc
import importlib
import mmap
import os
import select
import signal
import socket
import struct
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from types import MappingProxyType
from typing import Any

from memfs.config import load
from memfs.config_names import CONFIGURATION, SETTINGS_FILE
from memfs.doors.resident import answer
from memfs.doors.resident.client import READING, WRITING, is_private
from memfs.doors.resident.place import ResidentFiles, files_of, holder, name_process
from memfs.errors import MemfsError, StorageIO
from memfs.fs import io
from memfs.fs.inotify import FolderEvents
from memfs.fs.lock import fork_alone, let_go_in_child, locked
from memfs.fs.workspace_location import MEMORY_FOLDER, find_workspace
from memfs.git.busy import RESIDENT
from memfs.model import Query
from memfs.watch import Presence, notes_folder
from memfs.workspace import Workspace, open_workspace

_VERBS = ("app", "parser", *sorted(READING | WRITING))
_MORE = (
    "difflib",
    "subprocess",
    "memfs.admin.backup",
    "memfs.doors.claude_code.answer",
    "memfs.sessions.store",
    "memfs.sessions.respond",
    "memfs.sessions.session_location",
    "memfs.admin.history",
    "memfs.admin.prune",
    "memfs.admin.recover",
    "memfs.doors.cli.draft",
    "memfs.admin.quota",
    "memfs.context.mounts",
    "memfs.git.log",
    "memfs.git.maintenance",
    "memfs.learning.inbox",
    "memfs.learning.learner",
    "memfs.learning.reactions",
    "memfs.git.commits",
    "memfs.git.transaction",
    "memfs.store.commits",
    "memfs.recall.conflict_notes",
    "memfs.sessions.spool",
    "memfs.store.hand_edits",
    "memfs.team.asof",
    "memfs.team.resolve",
)
"""What verbs import while they run."""
_MOST_CHILDREN = 8
_WAITING_CLIENTS = 64
_SAY_SECONDS = 20.0
_QUIET_SECONDS = 0.1
_COMPARE_SECONDS = 1.0
_START_SECONDS = 1.0
_LONGEST_ADDRESS = 100
_SHORTEST_REST, _LONGEST_REST = 2.0, 600.0
_CREDENTIALS = struct.Struct("3i")


class _ForkWatcher:
    """What the resident saw of the files, for itself and for its children (``memfs.store.values.FileWatcher``).

    A child must not read events, which are its parent's: where there are any it looks at every file.
    """

    degraded = ""

    def __init__(self, events: FolderEvents, root: Path) -> None:
        self._events, self._prefix = events, f"{root}/"
        self._owner = os.getpid()
        self._read = mmap.mmap(-1, 8)
        self._known = self._read[:]
        self._again: set[str] = set()

    def drain(self) -> list[str] | None:
        """Paths seen to change since the last call; None where every file is to be looked at."""
        if os.getpid() != self._owner:
            # What the parent reads meanwhile it has counted before.
            sure = not self._events.doubt and not self._events.waiting() and self._read[:] == self._known
            return [] if sure else None
        if self._events.doubt or self._events.waiting():
            self._known = (int.from_bytes(self._known, "big") + 1).to_bytes(8, "big")
            self._read[:] = self._known
            paths = self._events.read()
            if paths is None:
                self._again = set()
                return None
            self._again |= paths
        paths, self._again = self._again, set()
        return sorted(path.removeprefix(self._prefix) for path in paths if path.startswith(self._prefix))

    def give_back(self, paths: list[str]) -> None:
        """Take back paths that could not be looked at."""
        self._again |= {f"{self._prefix}{path}" for path in paths}

    def close(self) -> None:
        """Nothing: who holds the events closes them."""


class Resident:
    """The resident of the workspace at one root, from its socket to its children."""

    def __init__(self, root: Path, idle_seconds: float) -> None:
        self.root = root
        self._idle = idle_seconds
        self._facts = os.stat(root)
        self._children: set[int] = set()
        self._ending = False
        self._tending = 0
        self._tend_at: float | None = None
        self._commit_at: float | None = None
        self._tend_again = _SHORTEST_REST
        self._workspace: Workspace | None = None
        self._settled: object = None

    # -- the loop ---------------------------------------------------------------------------------------------------
    def serve(self, listener: socket.socket, files: ResidentFiles) -> None:
        """Answer until nobody has asked for long, somebody ends it, or what it stands on has changed."""
        own = os.stat(files.socket)
        woken, wake = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        with self._signals(wake), closing(FolderEvents(self.root / MEMORY_FOLDER)) as events, ExitStack() as opened:
            self._eyes = _ForkWatcher(events, self.root)
            self._open(opened)
            program = _program()
            asked = said = compared = time.monotonic()
            self._presence.say("")
            look_at: float | None = None
            while not self._ending:
                now = time.monotonic()
                chores = [one for one in (self._tend_at, self._commit_at) if one is not None]
                if now - asked > self._idle and not self._children and not chores:
                    return
                due = [moment - now for moment in (look_at, *([] if self._tending else chores)) if moment is not None]
                wait = min(_SAY_SECONDS, max(self._idle - (now - asked), 0.1), *due)
                heard: list[Any] = [events] if events.fileno() >= 0 and look_at is None else []
                ready = select.select([listener, woken, *heard], [], [], max(wait, 0))[0]
                self._reap(woken)
                if not self._stands(files, own):
                    return
                if time.monotonic() - compared > _COMPARE_SECONDS:  # some hundred files: not for each of many commands
                    compared = time.monotonic()
                    if _program() != program:
                        return
                if listener in ready:
                    asked = time.monotonic()
                    self._accept(listener, opened)
                    look_at = None
                elif look_at is not None and time.monotonic() >= look_at:
                    look_at = None
                    self._follow(opened)
                elif events in ready:
                    look_at = time.monotonic() + _QUIET_SECONDS  # an editor or git may be in the middle of it
                self._tend()
                if self._workspace is not None and time.monotonic() - said > _SAY_SECONDS:
                    said = time.monotonic()
                    self._presence.say("")

    def finish(self) -> None:
        """Wait until nobody looks after the memory any more: who ended the resident may take the workspace away."""
        if self._tending:
            with suppress(ChildProcessError):
                os.waitpid(self._tending, 0)

    @contextmanager
    def _signals(self, wake: int) -> Iterator[None]:
        def end(*_: object) -> None:
            self._ending = True

        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        for one in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(one, end)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        yield

    def _reap(self, woken: int) -> None:
        with suppress(BlockingIOError):
            os.read(woken, 1 << 12)
        with suppress(ChildProcessError):
            while (ended := os.waitpid(-1, os.WNOHANG))[0] != 0:
                self._children.discard(ended[0])
                if ended[0] == self._tending:
                    self._tending = 0
                    if ended[1]:  # something could not be done yet
                        self._tend_at = time.monotonic() + self._tend_again
                        self._tend_again = min(2 * self._tend_again, _LONGEST_REST)

    def _stands(self, files: ResidentFiles, own: os.stat_result) -> bool:
        """Whether the workspace and the socket are where they were."""
        try:
            here = os.path.samestat(os.stat(self.root), self._facts)
            return here and os.path.samestat(os.stat(files.socket, follow_symlinks=False), own)
        except OSError:
            return False

    # -- the workspace ----------------------------------------------------------------------------------------------
    def _open(self, opened: ExitStack) -> None:
        """Open the workspace, as its configuration is now, and get to know its files."""
        opened.close()
        self._workspace = None
        self._settled = _configuration(self.root)
        workspace = open_workspace(self.root, watch=False, one_shot=True)
        self._ending = self._ending or not workspace.settings.resident.use
        opened.callback(workspace.close)
        workspace.store.watch_with(lambda: self._eyes, at_once=True)
        workspace.store.candidates(Query(text="memory", limit=1))  # the engine, and what reads git, are imported now
        _ = workspace.repository.git.reader
        state = workspace.repository.state
        self._presence = Presence(notes_folder(state), state.parent.parent)
        opened.callback(self._presence.close)
        self._workspace = workspace
        self._tend_soon()
        gc.collect()
        gc.freeze()  # what a child does not touch stays the parent's

    def _follow(self, opened: ExitStack) -> Workspace | None:
        """The workspace as it is now; None while it cannot be opened: the command that asked says why itself."""
        if _configuration(self.root) != self._settled or self._workspace is None:
            with suppress(MemfsError):
                self._open(opened)
            return self._workspace
        if self._workspace.store.follow():
            self._tend_soon()
        by_interval = self._workspace.parts.policy.commit == "interval"
        if by_interval and self._commit_at is None and self._workspace.parts.journal.operations():
            self._commit_at = time.monotonic() + self._workspace.parts.policy.interval
        return self._workspace

    # -- what commands need not do ----------------------------------------------------------------------------------
    def _tend_soon(self) -> None:
        """Look after the memory once what was changed has rested."""
        if self._workspace is not None:
            policy = self._workspace.parts.policy
            self._tend_again = max(policy.rest, _SHORTEST_REST)
            self._tend_at = time.monotonic() + (policy.rest if policy.adopts else 0.0) + _SHORTEST_REST

    def _tend(self) -> None:
        """Where it is due, let a child commit what waits and edits that rested, and fold the index."""
        workspace, now = self._workspace, time.monotonic()
        resting = self._tend_at is not None and now >= self._tend_at
        waiting = self._commit_at is not None and now >= self._commit_at
        if self._tending or workspace is None or not (resting or waiting):
            return
        self._commit_at = None
        if resting:
            self._tend_at = None
        workspace.store.release()
        with suppress(OSError):
            self._tending = fork_alone()
            if self._tending:
                self._children.add(self._tending)
                return
            left = 1
            try:
                answer.reset_signals()
                left = _tended(workspace, resting)
            finally:
                os._exit(left)

    # -- a command --------------------------------------------------------------------------------------------------
    def _accept(self, listener: socket.socket, opened: ExitStack) -> None:
        """Fork a child for a client that still waits; one that cannot be served finds the connection closed."""
        try:
            link, _ = listener.accept()
        except (BlockingIOError, InterruptedError, ConnectionAbortedError):
            return
        with link:
            if not _is_ours(link) or _has_gone(link) or len(self._children) >= _MOST_CHILDREN:
                return
            workspace = self._follow(opened)
            if workspace is None:
                return
            workspace.store.release()
            try:
                child = fork_alone()
            except OSError:
                return
            if child:
                self._children.add(child)
                return
            code = 1
            try:
                listener.close()
                code = answer.answer(link, workspace)
            finally:
                os._exit(code)


def _tended(workspace: Workspace, resting: bool) -> int:
    """Look after a memory, in a child; 1 where something is left to do. ``resting``: edits by hand may have rested."""
    store = workspace.store
    store.resume()
    if resting:
        store.change_detector.close()  # who does not watch commits what rested
        store.adopt_rested()
    store.take_up(at_once=True)
    if resting:
        store.tend()
    policy, journal = workspace.parts.policy, workspace.parts.journal
    left = policy.commit == "interval" and bool(journal.operations())
    left = left or (resting and policy.adopts and bool(store.hand_edits()))
    workspace.close()
    return int(left)


def _is_ours(link: socket.socket) -> bool:
    """Whether the other end is a process of this user, in the same group."""
    _, user, group = _CREDENTIALS.unpack(link.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size))
    return (user, group) == (os.getuid(), os.getgid())


def _has_gone(link: socket.socket) -> bool:
    """Whether the other end hung up, so that the work is being done elsewhere."""
    try:
        return not link.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
    except BlockingIOError:
        return False
    except OSError:
        return True


def _configuration(root: Path) -> object:
    """What tells that the workspace must be opened again: the facts about the files that say how."""
    paths = [root / SETTINGS_FILE]
    folder = root / CONFIGURATION
    with suppress(OSError):
        paths += [folder / name for name in sorted(os.listdir(folder))]
    return [_facts(path) for path in paths]


def _program() -> object:
    """The facts about memfs's own files as far as they are loaded."""
    loaded = (
        getattr(module, "__file__", None) for name, module in list(sys.modules.items()) if name.startswith("memfs")
    )
    return {path: _facts(Path(path)) for path in loaded if path}


def _facts(path: str | Path) -> tuple[int, ...]:
    try:
        found = os.stat(path)
    except OSError:
        return ()
    return found.st_ino, found.st_size, found.st_mtime_ns


# -- starting ---------------------------------------------------------------------------------------------------------
def _import_verbs() -> None:
    """Import all that the verbs need, so that no child has to."""
    for name in _VERBS:
        importlib.import_module(f"memfs.doors.cli.{name}")
    for name in _MORE:
        importlib.import_module(name)


@contextmanager
def _claimed(files: ResidentFiles) -> Iterator[bool]:
    """Be the resident while the block runs; false where there is one."""
    io.make_private_folder(files.folder)
    if not is_private(str(files.folder)):
        io.chmod(files.folder, 0o700)
    fd = io.make_file(files.lock, os.O_RDWR)
    try:
        until = time.monotonic() + _START_SECONDS
        while not locked(fd):
            if io.lives(holder(fd)) or time.monotonic() >= until:
                yield False
                return
            time.sleep(0.01)  # it died, and a child that it had just forked has its files for a moment
        os.ftruncate(fd, 0)
        os.pwrite(fd, b"%d\n" % os.getpid(), 0)
        with let_go_in_child(fd):
            yield True
            os.ftruncate(fd, 0)
    finally:
        os.close(fd)


@contextmanager
def _listening(files: ResidentFiles) -> Iterator[socket.socket]:
    """Listen where clients look."""
    near = os.open(files.folder, os.O_RDONLY | os.O_DIRECTORY)
    fresh = f"{files.name}.{os.getpid()}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        try:
            long = len(os.fsencode(files.folder / fresh)) > _LONGEST_ADDRESS
            listener.bind(f"/proc/self/fd/{near}/{fresh}" if long else str(files.folder / fresh))
            listener.listen(_WAITING_CLIENTS)
            listener.setblocking(False)
            os.rename(fresh, files.name, src_dir_fd=near, dst_dir_fd=near)
            own = os.stat(files.socket)
            yield listener
        finally:
            with suppress(OSError):
                os.unlink(fresh, dir_fd=near)
            with suppress(OSError, UnboundLocalError):
                if os.path.samestat(os.stat(files.socket), own):
                    os.unlink(files.name, dir_fd=near)
            os.close(near)


def serve(path: str | None, settings: Mapping[str, Any] = MappingProxyType({})) -> bool:
    """Be the resident of the workspace at or above a path until it ends; false where one is up.

    Args:
        settings: values that win over the workspace's.

    Raises:
        WorkspaceNotFound, SettingInvalid: it cannot be one.
        StorageIO: nor here, where settings switch it off.
    """
    root = find_workspace(path)
    files = files_of(root)
    chosen = load(root, settings).resident
    if not chosen.use:
        raise StorageIO("resident processes are switched off here", hint="memfs config --unset resident.use")
    _import_verbs()
    with _claimed(files) as free:
        if not free:
            return False
        resident = Resident(root, chosen.idle_minutes * 60)
        name_process(RESIDENT)
        with _listening(files) as listener:
            resident.serve(listener, files)
        resident.finish()
    return True
