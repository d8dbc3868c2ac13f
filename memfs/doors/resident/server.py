"""The resident of one workspace: holds it open, in step with its files, and forks a child for each command.

It has one thread and answers nothing itself, so that what a question needs ends with the child, and a fork is safe.
What follows from the files is looked at before each fork: a command sees every change that was there when it asked.
"""

from __future__ import annotations

import gc
import mmap
import os
import select
import signal
import socket
import struct
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from stat import S_ISDIR
from types import MappingProxyType
from typing import Any

from memfs import private, trust
from memfs.config import load, own_file
from memfs.config_names import CONFIGURATION, SETTINGS_FILE
from memfs.dataclass import NamedTuple
from memfs.doors.resident import answer, upkeep
from memfs.doors.resident.client import LONGEST_ADDRESS, identity
from memfs.doors.resident.place import LISTENS, ResidentFiles, files_of, has_host, name_process
from memfs.doors.resident.upkeep import each_store, import_verbs, rehearse, warm
from memfs.errors import MemfsError, StorageIO
from memfs.fs import io
from memfs.fs.lock import fork_alone
from memfs.fs.workspace_location import MEMORY_FOLDER, repository_around
from memfs.git.busy import RESIDENT
from memfs.watch import FolderEvents, Presence, notes_folder
from memfs.workspace import Workspace, open_workspace

_MOST_CHILDREN = 8
_SAY_SECONDS = 20.0
_SOON, _QUIET_SECONDS = 0.003, 0.1
_COMPARE_SECONDS = 1.0
_SHORTEST_REST, _LONGEST_REST = 2.0, 600.0
_CREDENTIALS = struct.Struct("3i")


class _ForkWatcher:
    """What the resident saw of the files, for itself and for its children (``memfs.store.parts.FileWatcher``).

    A child must not read events, which are its parent's: where there are any it looks at every file.
    """

    degraded, hears_at_once = "", True

    def __init__(self, root: Path) -> None:
        self._events, self._prefix = FolderEvents(root / MEMORY_FOLDER), f"{root}/"
        self._owner = os.getpid()
        self._read = mmap.mmap(-1, 8)
        self._known = self._read[:]
        self._paths: set[str] | None = set()

    @property
    def heard(self) -> bytes:
        """Another value once events were read that a process which is there already does not know of."""
        return self._known

    @property
    def is_sure(self) -> bool:
        """Whether it hears of all that happens."""
        return not self._events.doubt

    def hear(self) -> bool:
        """Read what is queued; whether that may concern a memory: no hidden file does."""
        if self.is_sure and not self._events.waiting():
            return False
        before = self._known
        self._known = self._read[:] = (int.from_bytes(before, "big") + 1).to_bytes(8, "big")
        found = self._events.read()
        if found is not None and not (found := {path for path in found if "/." not in path.removeprefix(self._prefix)}):
            self._known = self._read[:] = before
            return False
        self._paths = None if found is None or self._paths is None else self._paths | found
        return True

    def drain(self) -> list[str] | None:
        """Paths seen to change since the last call; None where every file is to be looked at."""
        if os.getpid() != self._owner:
            # What the parent reads meanwhile it has counted before; what it had not looked at yet is not here either.
            if not self.is_sure or self._events.waiting() or self._read[:] != self._known:
                return None
        else:
            self.hear()
        paths, self._paths = self._paths, set()
        return None if paths is None else sorted(path.removeprefix(self._prefix) for path in paths)

    def fileno(self) -> int:
        """What to wait for; -1 where nothing will come."""
        return self._events.fileno()

    def give_back(self, paths: Collection[str] | None) -> None:
        """Take back paths that could not be looked at, None: every file."""
        known = None if paths is None else {f"{self._prefix}{path}" for path in paths}
        self._paths = None if self._paths is None or known is None else self._paths | known

    def close(self) -> None:
        """Hear no more, in the process that hears."""
        if os.getpid() == self._owner:
            self._events.close()


class _Spare(NamedTuple):
    """A child that was forked ahead of its command, the line to it, and what the parent had heard until then."""

    process: int
    line: socket.socket
    heard: tuple[bytes, ...]


class Resident:
    """The resident of the workspace at one root, from its socket to its children."""

    def __init__(self, root: Path, idle_seconds: float) -> None:
        self.root = root
        self._idle = idle_seconds
        self._facts = os.stat(root)
        self._children: set[int] = set()
        self._ending = False
        self._tending = self._learning = 0
        self._learn_at: float | None = time.monotonic()
        self._tend_at: float | None = None
        self._commit_at: float | None = None
        self._tend_again = self._learn_again = _SHORTEST_REST
        self._workspace: Workspace | None = None
        self._watchers: list[_ForkWatcher] = []
        self._spare: _Spare | None = None
        self._wants_spare = True
        self._settled: dict[Path, tuple[int, ...]] = {}
        self._identity = identity()  # its children are of what was loaded, whatever is installed by then

    # -- the loop ---------------------------------------------------------------------------------------------------
    def serve(self, files: ResidentFiles) -> None:
        """Answer until no one has asked for long, somebody ends it, or what it depends on has changed."""
        woken, wake = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)

        def end(*_: object) -> None:
            self._ending = True

        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        for one in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(one, end)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        with ExitStack() as opened:
            self._tending = self._forked(partial(upkeep.index, self.root))
            while self._tending and not self._ending:
                select.select([woken], [], [])
                self._reap(woken)
            if self._ending:
                self._end_now(self._tending)  # the index is derived
                return
            with suppress(MemfsError):  # the commands say so
                self._open(opened)
            with _listening(files) as listener:
                self._answer(listener, files, opened, woken)
        # until no process looks after the memory any more: who ended the resident may take the workspace away
        self._drop_spare()
        self._end_now(self._learning)  # no one waits as long as that takes, and the next one continues it
        if self._tending:
            with suppress(ChildProcessError):
                os.waitpid(self._tending, 0)

    def _answer(self, listener: socket.socket, files: ResidentFiles, opened: ExitStack, woken: int) -> None:
        own = os.stat(files.socket)
        program = _program()
        asked = announced = compared = time.monotonic()
        look_at: float | None = None
        looked = asked - _QUIET_SECONDS
        while not self._ending:
            now = time.monotonic()
            chores = [one for one in (self._tend_at, self._commit_at) if one is not None]
            if now - asked > self._idle and not self._children and not chores:
                if not has_host(files):
                    return
                asked = now
            awaited = [look_at, *([] if self._tending else chores)]
            awaited += [] if self._learning or self._workspace is None else [self._learn_at]
            due = [moment - now for moment in awaited if moment is not None]
            wait = min(_SAY_SECONDS, max(self._idle - (now - asked), 0.1), *due)
            heard: list[Any] = [one for one in self._watchers if one.fileno() >= 0] if look_at is None else []
            ready: set[Any] = set(select.select([listener, woken, *heard], [], [], max(wait, 0))[0])
            self._reap(woken)
            if not self._stands(files, own):
                return
            if time.monotonic() - compared > _COMPARE_SECONDS:  # some hundred files: not for each of many commands
                compared = time.monotonic()
                if any(_facts(path) != found for path, found in program.items()):
                    return
            if listener in ready:
                asked = time.monotonic()
                look_at = None if self._accept(listener, opened) else look_at
            elif look_at is not None and time.monotonic() >= look_at:
                look_at, looked = None, time.monotonic()
                self._follow(opened)
            elif any(one.hear() for one in heard if one in ready):
                # The next command may come at once, and an editor or git may be in the middle of it.
                look_at = max(time.monotonic() + _SOON, looked + _QUIET_SECONDS)
            self._maintain()
            quiet = self._children <= {self._learning} and look_at is None
            sure = all(one.is_sure for one in self._watchers)
            if self._wants_spare and quiet and sure and threading.active_count() == 1:
                self._fork_ahead(listener)  # files that a thread has open would stay open with it
            if self._workspace is not None and time.monotonic() - announced > _SAY_SECONDS:
                announced = time.monotonic()
                self._presence.say("")

    @staticmethod
    def _end_now(child: int) -> None:
        if child:
            with suppress(ChildProcessError, ProcessLookupError):
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)

    def _reap(self, woken: int) -> None:
        with suppress(BlockingIOError):
            os.read(woken, 1 << 12)
        with suppress(ChildProcessError):
            while (ended := os.waitpid(-1, os.WNOHANG))[0] != 0:
                self._children.discard(ended[0])
                if self._spare is not None and ended[0] == self._spare.process:
                    self._spare.line.close()
                    self._spare = None  # the next one comes after the next command: what ended it might end all
                if os.waitstatus_to_exitcode(ended[1]) == answer.SESSION_CODE:
                    self._learn_at, self._learn_again = time.monotonic(), _SHORTEST_REST
                if ended[0] == self._learning:
                    self._learning = 0
                    if ended[1] and self._learn_at is None:
                        self._learn_at = time.monotonic() + self._learn_again
                        self._learn_again = min(2 * self._learn_again, _LONGEST_REST)
                if ended[0] == self._tending:
                    self._tending = 0
                    self._take_up_index()
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
        gc.unfreeze()
        opened.close()
        self._drop_spare()
        self._workspace, self._watchers = None, []
        self._tend_at = self._commit_at = None  # while it cannot be opened there is nothing to look after
        self._settled = _configuration(self.root)
        workspace = open_workspace(self.root, watch=False, one_shot=True)
        self._ending = self._ending or not workspace.settings.resident.use
        opened.callback(workspace.close)
        workspace.store.watch_with(lambda: self._watch(self.root), at_once=True)
        if workspace.settings.mounts:
            workspace.sources.mounts.watch_with(self._watch)
        warm(workspace)
        state = workspace.repository.state
        self._presence = Presence(notes_folder(state), state.parent.parent)
        opened.callback(self._presence.close)
        self._presence.say("")
        self._workspace = workspace
        self._maintain_soon()
        _compact()

    def _take_up_index(self) -> None:
        """Read what a child made of the index, and let go what this process had in memory in its place."""
        if self._workspace is not None:
            changed = True
            with suppress(MemfsError):
                before = each_store(self._workspace, lambda store: store.index_sync.index.base)
                each_store(self._workspace, lambda store: store.index_sync.catch_up(()))
                changed = before != each_store(self._workspace, lambda store: store.index_sync.index.base)
            if changed:
                self._drop_spare()
                self._workspace.repository.forget_trees()
            _compact()

    @staticmethod
    def _release(workspace: Workspace) -> None:
        workspace.store.release()
        if workspace.settings.mounts:
            workspace.sources.mounts.release()

    def _watch(self, root: Path) -> _ForkWatcher:
        self._watchers.append(_ForkWatcher(root))
        return self._watchers[-1]

    def _follow(self, opened: ExitStack) -> Workspace | None:
        """The workspace as it is now; None while it cannot be opened: the command that asked says why itself."""
        if self._workspace is None or any(_facts(path) != before for path, before in self._settled.items()):
            with suppress(MemfsError):
                self._open(opened)
            return self._workspace
        if each_store(self._workspace, lambda store: store.follow())[0]:
            self._maintain_soon()
        if self._spare is not None and self._spare.heard != tuple(one.heard for one in self._watchers):
            self._drop_spare()
        by_interval = self._workspace.parts.policy.commit == "interval"
        if by_interval and self._commit_at is None and self._workspace.parts.journal.operations():
            self._commit_at = time.monotonic() + self._workspace.parts.policy.interval
        return self._workspace

    # -- what commands need not do ----------------------------------------------------------------------------------
    def _maintain_soon(self) -> None:
        """Look after the memory once what was changed has rested; where much is to be folded, though more changes."""
        if self._workspace is not None:
            policy, due = self._workspace.parts.policy, self._workspace.store.is_fold_due
            self._tend_again = max(policy.rest, _SHORTEST_REST)
            rested = time.monotonic() + (policy.rest if policy.adopts and not due else 0.0) + _SHORTEST_REST
            self._tend_at = min(self._tend_at or rested, rested) if due else rested

    def _maintain(self) -> None:
        """Where it is due, let a child commit what waits and edits that rested, and fold the index; let another one
        make memories of what sessions reported, which may take longer.
        """
        workspace, now = self._workspace, time.monotonic()
        if workspace is None:
            return
        resting = self._tend_at is not None and now >= self._tend_at
        waiting = self._commit_at is not None and now >= self._commit_at
        if not self._tending and (resting or waiting):
            self._tending = self._forked(partial(upkeep.maintain, workspace, resting))
            self._commit_at = None if self._tending else now + _SHORTEST_REST
            if resting:
                self._tend_at = self._commit_at
                if not workspace.words_only:
                    self._learn_at = now
        if not self._learning and self._learn_at is not None and now >= self._learn_at:
            self._learning = self._forked(partial(upkeep.learn, workspace))
            self._learn_at = None if self._learning else now + _SHORTEST_REST

    def _forked(self, act: Callable[[], int], *lines: socket.socket) -> int:
        """The process id of a child that does something, and ends with what that returns, or 1 where it failed; 0 where
        there can be none.

        Args:
            lines: what is the parent's alone.
        """
        if self._workspace is not None:
            self._release(self._workspace)
        try:
            child = fork_alone()
        except OSError:
            return 0
        if child:
            self._children.add(child)
            return child
        code = 1
        try:
            answer.reset_signals()
            for line in (*lines, *([] if self._spare is None else [self._spare.line])):
                line.close()  # the child that waits for a command is to see the end of its parent alone
            code = int(act())
        except Exception as error:  # noqa: BLE001  of others, too: nothing else would report it
            upkeep.report(self._workspace, error)
        finally:
            os._exit(code)

    # -- a command --------------------------------------------------------------------------------------------------
    def _accept(self, listener: socket.socket, opened: ExitStack) -> bool:
        """Fork a child for a client that still waits; one that cannot be served finds the connection closed.

        Returns:
            Whether it was looked at what follows from the files.
        """
        try:
            link, _ = listener.accept()
        except (BlockingIOError, InterruptedError, ConnectionAbortedError):
            return False
        with link:
            _, *theirs = _CREDENTIALS.unpack(link.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size))
            is_ours = theirs == [os.getuid(), os.getgid()]  # a process of this user, in the same group
            if not is_ours or answer.has_gone(link) or len(self._children) >= _MOST_CHILDREN:
                return False
            workspace = self._follow(opened)
            if workspace is not None:
                self._wants_spare |= self._spare is None
                if not self._hand_over(link):
                    self._forked(partial(answer.answer, link, workspace, self._identity), listener)
            return True

    def _fork_ahead(self, listener: socket.socket) -> None:
        """Have a child that waits for the next command, and has touched by then what a question touches."""
        workspace = self._workspace
        if workspace is None:
            return
        self._wants_spare = False
        line, own = socket.socketpair()
        with own:
            child = self._forked(partial(self._wait_for_command, workspace, own), line, listener)
        if child:
            self._children.discard(child)  # it has no command yet
            self._spare = _Spare(child, line, tuple(one.heard for one in self._watchers))
        else:
            line.close()

    def _wait_for_command(self, workspace: Workspace, own: socket.socket) -> int:
        with suppress(MemfsError):  # the commands say so
            rehearse(workspace)
        self._release(workspace)
        try:
            own.send(b"1")
            given = socket.recv_fds(own, 1, 1, socket.MSG_CMSG_CLOEXEC)[1]
        except OSError:  # its parent is gone
            return 0
        own.close()
        return answer.answer(socket.socket(fileno=given[0]), workspace, self._identity) if given else 0

    def _hand_over(self, link: socket.socket) -> bool:
        """Let the child that waits, which knows all that we know, have a client; false where none is ready."""
        spare = self._spare
        if spare is None:
            return False
        try:
            if not spare.line.recv(1, socket.MSG_DONTWAIT):
                return False
            socket.send_fds(spare.line, [b"1"], [link.fileno()])
        except OSError:
            return False
        self._spare, self._wants_spare = None, True
        spare.line.close()
        self._children.add(spare.process)
        return True

    def _drop_spare(self) -> None:
        if self._spare is not None:
            self._spare.line.close()
            with suppress(ProcessLookupError):
                os.kill(self._spare.process, signal.SIGKILL)  # it has no command yet
            self._spare, self._wants_spare = None, True


def _compact() -> None:
    """Free unused memory, and exempt the rest from garbage collection: children share the pages that stay unchanged."""
    gc.collect()
    gc.freeze()
    io.give_memory_back()


def _configuration(root: Path) -> dict[Path, tuple[int, ...]]:
    """The facts about the files that say how the workspace is opened: its own, the person's, the repository's.

    Private memory, which may be made at any time, is among them.
    """
    paths = [root / SETTINGS_FILE, root / CONFIGURATION]
    with suppress(OSError):
        paths += [paths[1] / name for name in os.listdir(paths[1])]
    with suppress(MemfsError):
        paths += [own_file(), trust.list_path(), private.projects_folder()]
    start = Path(os.path.realpath(root))
    paths += [above / ".git" for above in (start, *start.parents)]
    with suppress(MemfsError):
        if found := repository_around(start):
            paths += [found[1] / "config", found[1] / "config.worktree", found[1] / "memfs" / private.KEY_FILE]
    return {path: _facts(path) for path in paths}


def _program() -> dict[Path, tuple[int, ...]]:
    """The facts about memfs's own files as far as they are loaded."""
    loaded = [getattr(module, "__file__", None) for name, module in sys.modules.items() if name.startswith("memfs")]
    return {path: _facts(path) for path in map(Path, filter(None, loaded))}


def _facts(path: Path) -> tuple[int, ...]:
    try:
        found = os.stat(path)
    except OSError:
        return ()
    if not S_ISDIR(found.st_mode):
        return found.st_dev, found.st_ino, found.st_uid, found.st_size, found.st_mtime_ns, found.st_ctime_ns
    return found.st_dev, found.st_ino, found.st_uid, 0 if path.name == ".git" else found.st_mtime_ns


# -- starting ---------------------------------------------------------------------------------------------------------
@contextmanager
def _listening(files: ResidentFiles) -> Iterator[socket.socket]:
    """Listen where clients look."""
    near = os.open(files.folder, os.O_RDONLY | os.O_DIRECTORY)
    fresh = f"{files.name}.{os.getpid()}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        try:
            long = len(os.fsencode(files.folder / fresh)) > LONGEST_ADDRESS
            with io.operation("bind", files.folder / fresh):
                listener.bind(f"/proc/self/fd/{near}/{fresh}" if long else str(files.folder / fresh))
                listener.listen(64)
            listener.setblocking(False)
            with io.operation("rename", files.socket):
                with suppress(OSError):
                    os.rmdir(files.name, dir_fd=near)  # somebody made a folder in its place
                os.rename(fresh, files.name, src_dir_fd=near, dst_dir_fd=near)
                own = os.stat(files.socket)
            with io.operation("write", files.lock), open(files.lock, "r+b") as lock:
                lock.write(b"%d%b" % (os.getpid(), LISTENS))
            yield listener
        finally:
            with suppress(OSError):
                os.unlink(fresh, dir_fd=near)
            with suppress(OSError, UnboundLocalError):
                if os.path.samestat(os.stat(files.socket), own):
                    os.unlink(files.name, dir_fd=near)
            os.close(near)


def serve(root: Path, settings: Mapping[str, Any] = MappingProxyType({})) -> None:
    """Be the resident of the workspace in a folder until it ends, for who has ``place.claimed`` that.

    Args:
        settings: values that win over the workspace's.

    Raises:
        SettingInvalid: it cannot be one.
        StorageIO: nor here, where settings switch it off.
    """
    chosen = load(root, settings).resident
    if not chosen.use:
        raise StorageIO("resident processes are switched off here", hint="memfs config --unset resident.use")
    import_verbs()
    name_process(RESIDENT)
    Resident(root, chosen.idle_minutes * 60).serve(files_of(root))
