"""Running git: the only module that knows GitPython, and the only one that starts git.

Owns the closed list of verbs, the arguments that may never be passed, the working folder, the environment and the time
limit. GitPython's ``Repo`` and ``Git`` are subclassed so that whatever goes through them passes the same gate. What the
verbs mean is the callers' business.
"""

from __future__ import annotations

import os
import select
import shutil
import signal
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from memfs.errors import GitFailed, HistoryUnavailable, WorkspaceClosed
from memfs.files import io
from memfs.files.forked import renewed_in_child
from memfs.history import environment
from memfs.history.layout import Layout
from memfs.history.objects import Object

if TYPE_CHECKING:
    from git import Repo

_LACKING = "'git fetch --unshallow', in a partial clone 'git fetch --refetch --no-filter'; if damaged, git fsck"
_GITPYTHON_PROGRAM = "GIT_PYTHON_GIT_EXECUTABLE"
TIMEOUT = 30.0
_OWN_SCOPES = frozenset({"system", "global", "command"})

# Each verb with the argument without which it could run something of the repository's, or write where it should not.
VERBS: Mapping[str, str] = {
    "cat-file": "",
    "check-attr": "--stdin",
    "commit-graph": "",
    "config": "--get-regexp",
    "diff-index": "--cached",
    "diff-tree": "--no-ext-diff",
    "fetch": "--no-tags",
    "fsck": "--no-dangling",
    "for-each-ref": "",
    "index-pack": "--stdin",
    "init": "--template=",
    "ls-files": "-t",
    "ls-remote": "--heads",
    "ls-tree": "",
    "merge-base": "",
    "pack-objects": "-q",
    "push": "--no-verify",
    "repack": "-d",
    "rev-list": "",
    "update-index": "--index-info",
    "update-ref": "--stdin",
    "version": "",
    "worktree": "--no-checkout",
}
FORBIDDEN = (
    "--exec",
    "--ext-diff",
    "--filters",
    "--force",
    "--lost-found",
    "--open-files-in-pager",
    "--output",
    "--prune",
    "--receive-pack",
    "--textconv",
    "--upload-pack",
)


class GitCommands:
    """Git for one repository, or for none (``layout`` None: reading the person's settings, making a repository).

    Args:
        folder: working folder of every process, by which other memfs processes know ours from a person's.
    """

    def __init__(self, layout: Layout | None, folder: Path) -> None:
        self.layout = layout
        self.folder = folder
        self._lock = threading.Lock()
        renewed_in_child(self)
        self._repo: Repo | None = None
        self._owner = 0
        self.closed = False

    @property
    def repo(self) -> Repo:
        """GitPython's view of the repository, behind the same gate; a process of its own after a fork."""
        self.require_open()
        if self._repo is None or self._owner != os.getpid():
            self._repo, self._owner = _open(self), os.getpid()
        return self._repo

    def run(
        self,
        verb: str,
        *arguments: str,
        data: bytes = b"",
        variables: Mapping[str, str] | None = None,
        accept: Sequence[int] = (0,),
        timeout: float = TIMEOUT,
        keep: Sequence[int] = (),
    ) -> bytes:
        """Run one verb with ``data`` on its input; return its output. ``keep`` are descriptors that it inherits.

        Raises:
            GitFailed: the verb is not allowed, git is missing, failed or took too long.
        """
        env = self.environment() | dict(variables or {})
        process = start((git_program(), verb, *arguments), self.folder, env, keep)
        code, out, err = finish(process, data, timeout)
        if code not in accept:
            raise failure(verb, code, err)
        return out

    def settings(self, pattern: str) -> list[tuple[str, str]]:
        """The person's git settings whose names match, as the person's own git would see them, in order."""
        pairs = (record.partition("\n") for record in self._config("--get-regexp", pattern) if record)
        return [(name, value) for name, _, value in pairs]

    def own_settings(self, pattern: str) -> list[tuple[str, str]]:
        """As ``settings``, without what the repository says: what only the person may decide."""
        fields = self._config("--show-scope", "--get-regexp", pattern)
        found = zip(fields[::2], fields[1::2], strict=False)
        pairs = (record.partition("\n") for scope, record in found if scope in _OWN_SCOPES)
        return [(name, value) for name, _, value in pairs]

    def _config(self, *arguments: str) -> list[str]:
        self.require_open()
        env = environment.for_settings(os.environ, self.layout, self.folder)
        process = start((git_program(), "config", "-z", *arguments), self.folder, env)
        code, out, err = finish(process, b"", TIMEOUT)
        if code not in (0, 1):
            raise failure("config", code, err)
        return os.fsdecode(out).split("\0")

    def open(
        self, verb: str, *arguments: str, variables: Mapping[str, str], keep: Sequence[int] = ()
    ) -> subprocess.Popen[bytes]:
        """Start a verb that is fed later; ``keep`` are descriptors it inherits. The caller finishes it."""
        env = self.environment() | dict(variables)
        return start((git_program(), verb, *arguments), self.folder, env, keep)

    def object(self, name: str) -> Object:
        """An object by its id, through a process that is kept.

        Raises:
            HistoryUnavailable: there is no such object.
        """
        self.require_open()
        with self._lock:
            try:
                return self._object(name)
            except (ValueError, OSError):
                # It may be the kept process that is gone, not the object: ask a new one.
                self.repo.git.clear_cache()
            try:
                return self._object(name)
            except (ValueError, OSError) as error:
                self.repo.git.clear_cache()
                reason = f"the object {name} is not in the repository"
                raise HistoryUnavailable(reason, hint=_LACKING) from error

    def _object(self, name: str) -> Object:
        _, kind, _, data = self.repo.git.get_object_data(name)
        return Object(os.fsdecode(kind), data)

    def environment(self) -> dict[str, str]:
        """What our processes see."""
        self.require_open()
        return environment.scrubbed(os.environ, self.layout, self.folder)

    def require_open(self) -> None:
        """Let only pass who comes before it is ``closed`` for good.

        Raises:
            WorkspaceClosed: a process that is started now nobody would end.
        """
        if self.closed:
            raise WorkspaceClosed(path=str(self.folder))

    def close(self) -> None:
        """End the kept process; the next question begins another."""
        if self._repo is not None and self._owner == os.getpid():
            self._repo.close()
        self._repo = None


@cache
def git_program() -> str:
    """Where git is. A folder of ``PATH`` that depends on where we stand is not looked into: a clone may bring a git.

    Raises:
        GitFailed: it is not installed.
    """
    found = shutil.which("git", path=environment.search_path(os.environ))
    if found is None:
        raise GitFailed("git is not installed", hint="install git 2.39 or later")
    return found


def check(command: Sequence[str]) -> None:
    """Refuse a command that is not on the list.

    Raises:
        GitFailed: naming the verb or the argument.
    """
    verb, arguments = command[1] if len(command) > 1 else "", command[2:]
    if verb not in VERBS:
        raise GitFailed(f"memfs does not run 'git {verb}'", hint="see memfs.history.git.VERBS")
    for argument in arguments:
        name = argument.partition("=")[0]
        # git takes any unambiguous beginning of a long option
        if name.startswith("--") and len(name) > 4 and any(option.startswith(name) for option in FORBIDDEN):
            raise GitFailed(f"memfs does not pass '{name}' to git", hint="see memfs.history.git.FORBIDDEN")
    if VERBS[verb] and VERBS[verb] not in arguments:
        raise GitFailed(f"memfs runs 'git {verb}' only with {VERBS[verb]}", hint="see memfs.history.git.VERBS")


def start(
    command: Sequence[str], folder: Path, env: Mapping[str, str], keep: Sequence[int] = ()
) -> subprocess.Popen[bytes]:
    """Start an allowed git command, its three streams piped.

    Its process group is its own, so that neither Ctrl-C nor the end of ours stops git in the middle of a ref update.
    """
    check(command)
    pipe = subprocess.PIPE
    with io.operation("git", command[1]):
        return subprocess.Popen(
            command, stdin=pipe, stdout=pipe, stderr=pipe, cwd=folder, env=env, pass_fds=keep, process_group=0
        )


def finish(process: subprocess.Popen[bytes], data: bytes, timeout: float) -> tuple[int, bytes, str]:
    """Feed a process, wait for its end; return code, output and messages.

    Raises:
        GitFailed: it took too long and was ended.
    """
    try:
        out, err = process.communicate(data, timeout)
    except subprocess.TimeoutExpired:
        end(process)
        raise GitFailed(f"git did not answer within {timeout:g} seconds", hint="is the disk reachable?") from None
    except BaseException:
        end(process)
        raise
    return process.returncode, out, err.decode("utf-8", "replace").strip()


def end(process: subprocess.Popen[bytes]) -> None:
    """Ask a process and its children to end, then make them, and release the streams. Asked, git removes its locks."""
    for number, patience in ((signal.SIGTERM, 2.0), (signal.SIGKILL, None)):
        if process.poll() is None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, number)
            with suppress(subprocess.TimeoutExpired):
                process.wait(patience)
    for stream in (process.stdin, process.stdout, process.stderr):
        if stream is not None:
            with suppress(OSError):
                stream.close()


def failure(verb: str, code: int, err: str) -> GitFailed:
    """The error for a git process that failed."""
    return GitFailed(f"git {verb} failed ({code}): {err or 'no message'}", hint="run git fsck if this repeats")


# -- GitPython ----------------------------------------------------------------------------------------------------
def _open(commands: GitCommands) -> Repo:
    closed_git, closed_repo = _classes()
    return closed_repo(commands, closed_git)  # type: ignore[no-any-return]


@contextmanager
def _only_this_git() -> Iterator[None]:
    """GitPython looks for git along ``PATH`` when it is imported, and runs it: a clone may bring one."""
    before = os.environ.get(_GITPYTHON_PROGRAM)
    os.environ[_GITPYTHON_PROGRAM] = git_program()
    try:
        yield
    finally:
        os.environ.pop(_GITPYTHON_PROGRAM)
        if before is not None:
            os.environ[_GITPYTHON_PROGRAM] = before


@cache
def _classes() -> tuple[Any, Any]:
    with _only_this_git():
        return _closed_git(), _closed_repo()


def _closed_git() -> Any:
    from git import Git  # here: 90 ms that commands without a git process need not pay

    class ClosedGit(Git):
        """GitPython's command runner, behind ``check`` and the scrubbed environment."""

        def __init__(self, commands: GitCommands) -> None:
            super().__init__(str(commands.folder))
            self._commands = commands

        def execute(self, command: Any, istream: Any = None, **options: Any) -> Any:  # type: ignore[override]
            process = start([git_program(), *command[1:]], self._commands.folder, self._commands.environment())
            if options.get("as_process"):
                return self.AutoInterrupt(_Answering(process), command)  # type: ignore[arg-type]
            data = istream.read() if hasattr(istream, "read") else b""
            return _as_gitpython(command[1], finish(process, data, TIMEOUT), options)

    return ClosedGit


def _closed_repo() -> Any:
    from git import Repo  # as above
    from git.db import GitCmdObjectDB

    class ClosedRepo(Repo):
        """GitPython's repository, laid out by ``memfs.history.layout`` instead of by environment and configuration."""

        def __init__(self, commands: GitCommands, runner: Any) -> None:
            layout = commands.layout
            assert layout is not None  # commands without a repository never ask for one
            self.git_dir = str(layout.git_dir)
            self._working_tree_dir = str(layout.work_tree)
            self._common_dir = str(layout.common_dir)
            self._bare = False
            self.working_dir = str(layout.work_tree)
            self.git = runner(commands)
            self.odb = GitCmdObjectDB(str(layout.common_dir / "objects"), self.git)

    return ClosedRepo


def _as_gitpython(verb: str, result: tuple[int, bytes, str], options: Mapping[str, Any]) -> Any:
    code, out, err = result
    if code and options.get("with_exceptions", True):
        raise failure(verb, code, err)
    if options.get("strip_newline_in_stdout", True):
        out = out.removesuffix(b"\n")
    answer = out.decode("utf-8", "surrogateescape") if options.get("stdout_as_string", True) else out
    return (code, answer, err) if options.get("with_extended_output") else answer


class _Answering:
    """A kept process whose answers must begin within the time limit; else it is ended and its stream reads empty."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self.stdout = _Patient(process)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._process, name)


class _Patient:
    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self._stream: IO[bytes] = process.stdout  # type: ignore[assignment]

    def readline(self, *size: int) -> bytes:
        # Between two answers nothing is buffered here, so that silence of the pipe is silence of git.
        poll = select.poll()
        poll.register(self._stream, select.POLLIN | select.POLLHUP)
        if not poll.poll(int(TIMEOUT * 1000)):
            end(self._process)
            return b""
        return self._stream.readline(*size)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)
