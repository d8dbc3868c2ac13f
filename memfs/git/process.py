"""Runs git; the only module that imports GitPython or starts git.

Verbs outside a closed list and dangerous arguments are refused; folder, environment and time limit are always set.
GitPython's ``Git`` is subclassed so that its calls pass the same check. No child outlives its lock unnoticed. Also asks
git for the contents of many blobs, and what an index has staged or leaves out.
"""

from __future__ import annotations

import fcntl
import os
import re
import struct
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

from memfs.dataclass import NamedTuple
from memfs.errors import GitBusy, GitFailed, HistoryUnavailable, MemfsError, WorkspaceClosed
from memfs.fs import io
from memfs.fs.lock import locked_within, reset_on_fork
from memfs.git.layout import NULL, Facts, Layout, facts_of
from memfs.git.objects import EMPTY_TREE, LARGEST, Object, TreeEntry
from memfs.model.item import object_id
from memfs.startup import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import subprocess
    from typing import IO

    from git import Git


_DROPPED = frozenset({"LANG", "LANGUAGE", "PAGER", "EDITOR", "VISUAL", "SSH_ASKPASS", "LESS", "LV", "TERM", "EMAIL"})
_FIXED = {
    "LC_ALL": "C",
    "LANGUAGE": "C",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_LITERAL_PATHSPECS": "1",
    "GIT_ALLOW_PROTOCOL": "",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_GRAFT_FILE": os.devnull,
    "GIT_PAGER": "cat",
    "GIT_EDITOR": ":",
    "GIT_ASKPASS": "",
    "GIT_DEFAULT_HASH": "sha1",
    "GIT_DEFAULT_REF_FORMAT": "files",
}
SETTINGS = {
    "advice.graftFileDeprecated": "false",  # it would come before git's reason in every error
    "core.hooksPath": "/dev/null",
    "core.fsmonitor": "false",
    "core.pager": "cat",
    "core.editor": ":",
    "core.askPass": "",
    "core.sshCommand": "false",
    "core.untrackedCache": "keep",
    "core.fsync": "committed,reference",
    "core.useReplaceRefs": "false",
    "credential.helper": "",
    "diff.external": "",
    "gc.auto": "0",
    "maintenance.auto": "false",
    "log.showSignature": "false",
    "protocol.allow": "never",
    "safe.bareRepository": "explicit",
}
# How a person reaches their remotes: by environment, and by settings of their own that SETTINGS would switch off.
_PERSONS = ("GIT_CONFIG_", "GIT_SSH", "GIT_SSL_", "GIT_PROXY_", "GIT_HTTP_")
_FOR_REMOTES = frozenset({"core.sshCommand", "credential.helper", "protocol.allow"})
_AT_REMOTES = {
    "fetch.recurseSubmodules": "false",
    "fetch.writeCommitGraph": "false",
    "http.lowSpeedLimit": "1",
    "http.lowSpeedTime": "60",
    "push.followTags": "false",
    "push.gpgSign": "false",
    "push.recurseSubmodules": "no",
    "submodule.recurse": "false",
    "transfer.bundleURI": "false",
}
PROTOCOLS = ("file", "git", "http", "https", "ssh")
"""The ways of transport to a remote that run no program which an address names."""


def scrubbed(outer: Mapping[str, str], layout: Layout | None, folder: Path) -> dict[str, str]:
    """The environment for a git process in this repository, or in none.

    Every ``GIT_*`` of the caller's is dropped; hooks, monitors, pagers, prompts, replacement objects and every
    transport are switched off; and git's own writes are made durable.
    """
    inner = {name: value for name, value in _plain(outer).items() if not name.startswith("GIT_")}
    return inner | _numbered(SETTINGS) | _FIXED | _places(layout, folder)


def for_settings(outer: Mapping[str, str], layout: Layout | None, folder: Path) -> dict[str, str]:
    """The environment in which git reports the person's configuration: where it lies stays as the person set it."""
    inner = {
        name: value for name, value in _plain(outer).items() if name.startswith("GIT_CONFIG") or name[:4] != "GIT_"
    }
    return inner | _FIXED | _places(layout, folder)


def for_remote(outer: Mapping[str, str], git_dir: Path, objects: Path) -> dict[str, str]:
    """The environment in which git talks to a remote: what the person configured for that holds, but runs no helper.

    Args:
        git_dir: a folder of memfs's own that stands for a repository: the settings of the real one are not read.
        objects: the real one's objects.
    """
    inner = {name: value for name, value in _plain(outer).items() if name[:4] != "GIT_" or name.startswith(_PERSONS)}
    settings = {name: value for name, value in SETTINGS.items() if name not in _FOR_REMOTES} | _AT_REMOTES
    count = outer.get("GIT_CONFIG_COUNT", "")
    first = int(count) if count.isdecimal() and len(count) < 5 else 0
    places = {"GIT_DIR": str(git_dir), "GIT_OBJECT_DIRECTORY": str(objects)}
    return inner | _numbered(settings, first) | _FIXED | places | {"GIT_ALLOW_PROTOCOL": ":".join(PROTOCOLS)}


def search_path(outer: Mapping[str, str]) -> str:
    """Where programs are looked for: the folders of ``PATH`` that do not depend on the working folder."""
    return os.pathsep.join(filter(os.path.isabs, outer.get("PATH", os.defpath).split(os.pathsep)))


def _plain(outer: Mapping[str, str]) -> dict[str, str]:
    inner = {name: value for name, value in outer.items() if name not in _DROPPED and not name.startswith("LC_")}
    return inner | {"PATH": search_path(outer)}


def _numbered(settings: Mapping[str, str], first: int = 0) -> dict[str, str]:
    """Settings as git takes them from its environment, behind those that are there already."""
    made = {"GIT_CONFIG_COUNT": str(first + len(settings))}
    for number, (name, value) in enumerate(settings.items(), first):
        made |= {f"GIT_CONFIG_KEY_{number}": name, f"GIT_CONFIG_VALUE_{number}": value}
    return made


def _places(layout: Layout | None, folder: Path) -> dict[str, str]:
    # The working folder stands for the working tree: git finds no files and no attributes there to act upon, and takes
    # every path from the top.
    return {"GIT_DIR": str(layout.git_dir) if layout else os.devnull, "GIT_WORK_TREE": str(folder)}


_LACKING = "'git fetch --unshallow', in a partial clone 'git fetch --refetch --no-filter'; if damaged, git fsck"
_GITPYTHON_PROGRAM = "GIT_PYTHON_GIT_EXECUTABLE"
TIMEOUT = 30.0
_SAY_WHERE = ("GIT_CONFIG", "HOME", "XDG_CONFIG_HOME")

# Each verb with the arguments one of which it needs, or it could run something of the repository's, or write where it
# should not.
VERBS: Mapping[str, str] = {
    "cat-file": "",
    "check-attr": "--stdin",
    "check-ignore": "--stdin",
    "commit-graph": "",
    "config": "--get-regexp --file",
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
    "update-index": "--index-info --skip-worktree",
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


class _Settings(NamedTuple):
    """What git said of the person's settings (scope, name, value), and what that depended on."""

    variables: Mapping[str, str]
    files: Mapping[Path, Facts]
    found: tuple[tuple[str, str, str], ...]


class GitCommands:
    """Git for one repository, or for none (``layout`` None: reading the person's settings, making a repository).

    Args:
        folder: working folder of every process, by which other memfs processes know ours from a person's.
    """

    def __init__(self, layout: Layout | None, folder: Path) -> None:
        self.layout, self.folder = layout, folder
        self._lock = threading.Lock()
        reset_on_fork(self)
        self._reader: Git | None = None
        self._owner = 0
        self._settings: _Settings | None = None
        self.closed = False

    @property
    def reader(self) -> Git:
        """GitPython's runner of git, behind the same gate, with the process that it keeps; its own after a fork."""
        self.require_open()
        if self._reader is None or self._owner != os.getpid():
            self._reader, self._owner = _closed_git()(self), os.getpid()
        return self._reader

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
        """Run one verb of git.

        Args:
            data: its standard input.
            variables: further variables of its environment.
            accept: the exit codes that are no failure.
            timeout: seconds after which it is ended.
            keep: descriptors that it inherits.

        Returns:
            Its standard output.

        Raises:
            GitFailed: the verb is not allowed, git is missing, failed or took too long.
        """
        process = self.open(verb, *arguments, variables=variables or {}, keep=keep)
        code, out, err = finish(process, data, timeout)
        if code not in accept:
            raise failure(verb, code, err)
        return out

    def settings(self, pattern: str, own: bool = False) -> list[tuple[str, str]]:
        """The person's git settings whose names match, as the person's own git would see them, in order.

        Args:
            own: leave out what the repository says: of what only the person may decide.
        """
        matches = re.compile(pattern).search
        rows = [row for row in self._all_settings() if not own or row[0] in ("system", "global", "command")]
        return [(name, value) for _, name, value in rows if matches(name)]

    def _all_settings(self) -> tuple[tuple[str, str, str], ...]:
        """Scope, name and value of every setting; asked again when a file or a variable that says some has changed."""
        self.require_open()
        variables = {name: value for name, value in os.environ.items() if name.startswith(_SAY_WHERE)}
        kept = self._settings
        if (
            kept is not None
            and kept.variables == variables
            and kept.files == {path: facts_of(path) for path in kept.files}
        ):
            return kept.found
        home = Path(os.environ.get("HOME", "/nonexistent"))
        xdg = Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config")
        places = [home / ".gitconfig", xdg / "git/config", Path("/etc/gitconfig")]
        places += [Path(os.environ[name]) for name in ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM") if name in os.environ]
        if self.layout:
            places += [self.layout.common_dir / "config", self.layout.git_dir / "config.worktree"]
        files = {path: facts_of(path) for path in places}
        env = for_settings(os.environ, self.layout, self.folder)
        command = (git_program(), "config", "-z", "--show-scope", "--get-regexp", ".")
        code, out, err = finish(start(command, self.folder, env), b"", TIMEOUT)
        if code not in (0, 1):
            raise failure("config", code, err)
        fields = os.fsdecode(out).split("\0")
        rows = ((scope, *record.partition("\n")) for scope, record in zip(fields[::2], fields[1::2], strict=False))
        found = tuple((scope, name, value) for scope, name, _, value in rows)
        # Which files an include names may depend on the branch, and one that says nothing yet is not shown.
        includes = any(name.startswith("include") for _, name, _ in found)
        self._settings = None if includes else _Settings(variables, files, found)
        return found

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
                self.reader.clear_cache()
            try:
                return self._object(name)
            except (ValueError, OSError) as error:
                self.reader.clear_cache()
                reason = f"the object {name} is not in the repository"
                raise HistoryUnavailable(reason, hint=_LACKING) from error

    def _object(self, name: str) -> Object:
        _, kind, _, data = self.reader.get_object_data(name)
        return Object(os.fsdecode(kind), data)

    def environment(self) -> dict[str, str]:
        """What our processes see."""
        self.require_open()
        return scrubbed(os.environ, self.layout, self.folder)

    def require_open(self) -> None:
        """Let only calls pass before it is ``closed`` for good.

        Raises:
            WorkspaceClosed: a process that is started now would never be ended.
        """
        if self.closed:
            raise WorkspaceClosed(path=str(self.folder))

    def close(self) -> None:
        """End the kept process; the next question begins another."""
        if self._reader is not None and self._owner == os.getpid():
            self._reader.clear_cache()
        self._reader = None


@cache
def git_program() -> str:
    """Where git is. A folder of ``PATH`` that depends on the working folder is skipped: a clone may bring a git.

    Raises:
        GitFailed: it is not installed.
    """
    import shutil  # as ``subprocess`` below: most commands that read start no git

    found = shutil.which("git", path=search_path(os.environ))
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
        raise GitFailed(f"memfs does not run 'git {verb}'", hint="see memfs.git.process.VERBS")
    for argument in arguments:
        name = argument.partition("=")[0]
        # git takes any unambiguous beginning of a long option
        if name.startswith("--") and len(name) > 4 and any(option.startswith(name) for option in FORBIDDEN):
            raise GitFailed(f"memfs does not pass '{name}' to git", hint="see memfs.git.process.FORBIDDEN")
    if VERBS[verb] and not any(one in arguments for one in VERBS[verb].split()):
        raise GitFailed(
            f"memfs runs 'git {verb}' only with {VERBS[verb].replace(' ', ' or ')}", hint="see memfs.git.process.VERBS"
        )


def start(
    command: Sequence[str], folder: Path, env: Mapping[str, str], keep: Sequence[int] = ()
) -> subprocess.Popen[bytes]:
    """Start an allowed git command, its three streams piped.

    Its process group is its own, so that neither Ctrl-C nor the end of ours stops git in the middle of a ref update.
    """
    import subprocess

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
    import subprocess

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
    import signal
    import subprocess

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
@cache
def _closed_git() -> Any:
    # GitPython looks for git along ``PATH`` when it is imported, and runs it: a clone may bring one
    before = os.environ.get(_GITPYTHON_PROGRAM)
    os.environ[_GITPYTHON_PROGRAM] = git_program()
    try:
        from git import Git  # here: 90 ms that commands without a git process need not pay
    finally:
        os.environ.pop(_GITPYTHON_PROGRAM)
        if before is not None:
            os.environ[_GITPYTHON_PROGRAM] = before

    class ClosedGit(Git):
        """GitPython's runner, behind ``check`` and the scrubbed environment: of processes that are kept."""

        def __init__(self, commands: GitCommands) -> None:
            super().__init__(str(commands.folder))
            self._commands = commands

        def execute(self, command: Any, **_: Any) -> Any:  # type: ignore[override]
            process = start([git_program(), *command[1:]], self._commands.folder, self._commands.environment())
            return self.AutoInterrupt(_AnswerPipe(process), command)  # type: ignore[arg-type]

        def __del__(self) -> None:
            self.clear_cache()  # it may not have been closed: the process ends before its streams are taken away

    return ClosedGit


class _AnswerPipe:
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
        import select  # what asks git nothing does without

        poll = select.poll()
        poll.register(self._stream, select.POLLIN | select.POLLHUP)
        if not poll.poll(int(TIMEOUT * 1000)):
            end(self._process)
            return b""
        return self._stream.readline(*size)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


_AT_ONCE = 2_000
_BYTES_AT_ONCE = 32 << 20


def sizes(git: GitCommands, blobs: Iterable[str]) -> dict[str, int]:
    """The sizes of blobs; those that are not there are left out."""
    request = "".join(f"{blob}\n" for blob in dict.fromkeys(blobs)).encode()
    out = git.run("cat-file", "--batch-check", data=request) if request else b""
    rows = (line.split() for line in out.decode("ascii", "replace").splitlines())
    return {row[0]: int(row[2]) for row in rows if len(row) == 3 and row[1] == "blob"}


def contents(git: GitCommands, sizes: Mapping[str, int], timeout: float = TIMEOUT) -> Iterator[tuple[str, bytes]]:
    """The contents of objects, each verified.

    Args:
        sizes: by id how large each is: as many are asked for at once as fit into memory.
        timeout: seconds for these.

    Raises:
        HistoryUnavailable: one is missing or damaged.
    """
    from memfs.fs.archive import batches  # most commands ask for no contents

    for chunk in batches(sizes, sizes.__getitem__, _BYTES_AT_ONCE, _AT_ONCE):
        request = "".join(f"{name}\n" for name in chunk).encode()
        out = git.run("cat-file", "--batch", "--buffer", data=request, timeout=timeout)
        at = 0
        for name in chunk:
            end = out.find(b"\n", at)
            facts = out[at:end].decode("ascii", "replace").split()
            if len(facts) != 3 or facts[0] != name:
                raise HistoryUnavailable(f"the object {name} is not in the repository", hint="run git fsck")
            start, at = end + 1, end + 2 + int(facts[2])
            data = out[start : at - 1]
            if object_id(facts[1], data) != name:
                raise HistoryUnavailable(f"the object {name} is damaged", hint="run git fsck")
            yield name, data


def files_of(
    git: GitCommands, commit: str, variables: Mapping[str, str] | None = None, timeout: float = TIMEOUT
) -> dict[bytes, TreeEntry]:
    """Every file, link and submodule of a commit, by its path from the top, in git's order."""
    found = {}
    out = git.run("ls-tree", "-r", "-z", "--full-tree", commit, variables=variables, timeout=timeout)
    for row in out.split(b"\0")[:-1]:
        facts, _, path = row.partition(b"\t")
        mode, _, name = facts.decode().split(" ")
        found[path] = TreeEntry(mode, name)
    return found


CHILDREN = "children"
CHILD_PATIENCE = 10.0


@contextmanager
def child_lock(state: Path) -> Iterator[int]:
    """A descriptor for git processes to inherit. The caller holds ``commit.lock``; for the person's index, the store's.

    A killed memfs takes no git with it: one that still runs would put its index in the place of the next step's, move a
    branch that was just given back, or make a working tree of one that is gone. The next process waits for it to end.

    Args:
        state: the workspace's own folder, for what a step changes; the one above it, for branches and working trees.
    """
    with _opened(state) as fd:
        fcntl.flock(fd, fcntl.LOCK_SH)
        yield fd


def wait_for_children(state: Path) -> None:
    """Return when the git processes of an ended memfs process have ended too.

    Raises:
        GitBusy: they run on.
    """
    with _opened(state) as fd:
        if not locked_within(fd, CHILD_PATIENCE):
            raise GitBusy("a git process of an ended memfs process still runs", path=str(state))


@contextmanager
def _opened(state: Path) -> Iterator[int]:
    io.refuse_links(state, state.parent.parent)
    fd = io.make_file(state / CHILDREN, os.O_RDWR)
    _open_tether.add(fd)
    try:
        yield fd
    finally:
        if fd in _open_tether:
            _open_tether.discard(fd)
            os.close(fd)


_open_tether: set[int] = set()


def _forget_in_child() -> None:
    """A child that another thread forks meanwhile is no git: commits would wait for it as long as it lives."""
    for fd in _open_tether:
        os.close(fd)
    _open_tether.clear()


os.register_at_fork(after_in_child=_forget_in_child)


class StagedEntry(NamedTuple):
    """What an index holds for a path: mode and blob; None when it holds nothing, "" for both sides of a conflict."""

    mode: str
    blob: str | None


def staged_changes(git: GitCommands, commit: str | None, index: Path | None = None) -> Mapping[bytes, StagedEntry]:
    """The paths whose index entry differs from a commit (None: from nothing), in the person's index or another file."""
    variables = {"GIT_INDEX_FILE": str(index)} if index else {}
    options = ("--cached", "--raw", "-z", "--no-abbrev", "--no-renames", commit or EMPTY_TREE)
    fields = git.run("diff-index", *options, "--", variables=variables).split(b"\0")[:-1]
    changes = {}
    for facts, path in zip(fields[::2], fields[1::2], strict=True):
        _, mode, _, blob, status = facts.decode().split(" ")
        changes[path] = StagedEntry(mode, "" if status == "U" else None if blob == NULL else blob)
    return changes


class IndexEntry(NamedTuple):
    """A row of an index: path below the top of the working tree, mode, blob, and 0 but where a merge is unfinished."""

    path: bytes
    mode: str
    blob: str
    stage: int


def entries_of(git: GitCommands, *, unmerged: bool = False) -> list[IndexEntry]:
    """Everything that the person's index names; with ``unmerged`` only what it has in several versions."""
    rows = []
    for row in git.run("ls-files", "-t", "-u" if unmerged else "-s", "-z", "--full-name").split(b"\0")[:-1]:
        facts, _, path = row.partition(b"\t")
        _, mode, blob, stage = facts.decode("ascii").split(" ")
        rows.append(IndexEntry(path, mode, blob, int(stage)))
    return rows


def surely_merged(index: Path) -> bool:
    """Whether it is certain, without a git, that an index has no path in several versions."""
    try:
        data = io.read_file(index, LARGEST)
        version, number = struct.unpack(">4xII", data[:12])
        place, end = 12, len(data) - 20
        if not data.startswith(b"DIRC") or version not in (2, 3):
            return False
        for _ in range(number):
            length = data[place + 61]
            if high := data[place + 60]:  # seldom
                if high & 0x30 or (high & 15, length) == (15, 255):  # one of several versions, or a long name
                    return False
                length += (high >> 5 & 2) + ((high & 15) << 8)
            place += 70 + length & ~7
        while place < end:  # what git must understand of what follows may have more entries
            if not data[place : place + 1].isupper():
                return False
            place += 8 + int.from_bytes(data[place + 4 : place + 8])
    except FileNotFoundError:
        return True
    except (MemfsError, OSError, LookupError, struct.error):
        return False
    return place == end


def left_out(git: GitCommands) -> frozenset[bytes]:
    """The paths that git leaves out of the working tree by the person's wish (sparse checkout, skip-worktree)."""
    out = git.run("ls-files", "-t", "-z", "--cached", "--full-name")
    return frozenset(row[2:] for row in out.split(b"\0") if row.startswith(b"S "))
