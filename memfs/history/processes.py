"""Which git commands of this user are running, as ``/proc`` tells.

Owns reading ``/proc``. Where there is none, nothing is running as far as anybody can tell.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass

_WITH_VALUE = frozenset({"-C", "-c", "--git-dir", "--work-tree", "--namespace", "--exec-path", "--config-env"})


@dataclass(frozen=True, slots=True)
class GitProcess:
    """A running git: its process id, its verb ("" when it has none), its working folder."""

    pid: int
    verb: str
    folder: str


def running_git() -> Iterator[GitProcess]:
    """Every running git process of this user."""
    try:
        names = os.listdir("/proc")
    except OSError:
        return
    me = os.geteuid()
    for name in names:
        if not name.isdigit():
            continue
        try:
            found = _git_process(name, me)
        except OSError:  # it ended meanwhile, or is not ours to see
            continue
        if found is not None:
            yield found


def _git_process(name: str, owner: int) -> GitProcess | None:
    folder = f"/proc/{name}"
    if not _read(f"{folder}/comm").startswith(b"git") or os.stat(folder).st_uid != owner:
        return None
    words = [os.fsdecode(word) for word in _read(f"{folder}/cmdline").split(b"\0")]
    program = os.path.basename(words[0])
    if program != "git" and not program.startswith("git-"):
        return None
    return GitProcess(int(name), verb_of(words), os.readlink(f"{folder}/cwd"))


def users_of(*folders: str) -> list[tuple[int, str]]:
    """The other processes of this user that stand in one of some folders, or hold a file open there: id and name."""
    found = []
    inside = tuple(f"{folder.rstrip('/')}/" for folder in folders)
    try:
        names = [name for name in os.listdir("/proc") if name.isdigit() and int(name) != os.getpid()]
    except OSError:
        return []
    for name in names:
        try:
            places = [os.readlink(f"/proc/{name}/cwd")]
            places += [os.readlink(f"/proc/{name}/fd/{fd}") for fd in os.listdir(f"/proc/{name}/fd")]
            if any(f"{place}/".startswith(inside) for place in places):
                found.append((int(name), os.fsdecode(_read(f"/proc/{name}/comm")).strip()))
        except OSError:  # it ended meanwhile, or is not ours to see
            continue
    return sorted(found)


def verb_of(words: list[str]) -> str:
    """The verb of a git command line: ``commit`` in ``git -C there commit -m x``."""
    program = os.path.basename(words[0])
    if program.startswith("git-"):
        return program.removeprefix("git-")
    skip = False
    for word in words[1:]:
        if skip:
            skip = False
        elif word.startswith("-"):
            skip = word in _WITH_VALUE
        else:
            return word
    return ""


def _read(path: str) -> bytes:
    # Not through memfs.files.io: /proc is no disk, and a few hundred of these must take milliseconds.
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(fd, 4096)
    finally:
        os.close(fd)
