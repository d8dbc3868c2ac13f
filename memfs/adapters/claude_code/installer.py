"""Installer: memfs's hooks, and if wanted its server, into the files of Claude Code and out of them again (C6).

Owns what belongs together and in which order: every file is looked at before the first is written. How an entry looks,
``handlers`` says; how it gets into a text, ``hookentries`` and ``serverentry``; how it is written, ``settingsfile``.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from memfs.adapters.claude_code import handlers, hookentries, serverentry
from memfs.adapters.claude_code.settingsfile import (
    Change,
    Changed,
    Scope,
    SettingsFile,
    carry_out,
    servers_file,
    settings_file,
)
from memfs.config import MEMORY_FOLDER
from memfs.errors import MemfsError, WorkspaceNotFound
from memfs.files import jsontext
from memfs.files.ownbranch import code_of

_TOPS = (MEMORY_FOLDER, ".git")


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """How memfs is called: a name or whole path, and what stands before the verb."""

    command: str
    arguments: tuple[str, ...] = ()

    @property
    def words(self) -> tuple[str, ...]:
        """All of it."""
        return (self.command, *self.arguments)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of the files, and what a person should know.

    Attributes:
        by_hand: the lines of the settings at which somebody calls memfs himself.
        elsewhere: other settings that hold memfs's hooks as well.
        switched_off: whether these settings switch all hooks off.
    """

    files: tuple[Changed, ...]
    by_hand: tuple[int, ...] = ()
    elsewhere: tuple[Path, ...] = field(default=())
    switched_off: bool = False


def project_folder(start: str | os.PathLike[str] | None = None) -> Path:
    """The folder that is a project to Claude Code: the nearest with a workspace or repository, else the folder itself.

    Within a memory on its own branch, which a link leads to, it is the main working tree of the code.

    Raises:
        WorkspaceNotFound: there is no such folder.
    """
    folder = Path(start or ".").resolve()
    if not folder.is_dir():
        raise WorkspaceNotFound(f"there is no folder {str(start)!r}", hint="name one that exists")
    for candidate in (folder, *folder.parents):
        if any(os.path.exists(candidate / name) for name in _TOPS):
            return code_of(candidate, folder)
    return folder


def program(scope: Scope) -> Program:
    """How hooks of a scope call memfs: by name where a team shares the file, else the one that is running, wherever.

    ``-P`` keeps Python from looking for modules in the folder it is called in, which anybody may have filled.
    """
    if scope is Scope.PROJECT:
        return Program(command=handlers.COMMAND)
    script = os.path.join(os.path.dirname(sys.executable), handlers.COMMAND)
    if os.access(script, os.X_OK) and script.isprintable():
        return Program(command=script)
    return Program(command=sys.executable, arguments=("-P", "-m", handlers.COMMAND))


def install(
    scope: Scope, project: Path, *, server: bool = False, into_repository: bool = False, dry: bool = False
) -> Outcome:
    """Put the hooks in, or bring them up to date; with ``server`` the MCP server of the project, too.

    What is there stays as it is, to the byte; installing twice changes nothing.

    Args:
        server: for the project only: a person's own servers stand in a file that Claude Code keeps writing.
        into_repository: keep what is told in the repository's memory, instead of each person's private one.
        dry: look, but write nothing.

    Raises:
        ContentError: a file is no JSON, with line and remedy.
        Conflict: a server of that name is somebody else's, or somebody keeps saving a file.
        PathEscape, StorageReadOnly, StorageIO: a file is not to be written. The first file is written only when all
            can be.
    """
    called = program(scope)
    options = (f"{handlers.INTO}{handlers.REPOSITORY}",) if into_repository else ()
    groups = handlers.groups(called.command, called.arguments, options)
    plan: list[tuple[SettingsFile, Change]] = []
    settings = settings_file(scope, project)
    plan.append((settings, lambda text: hookentries.with_hooks(text, groups)))
    if server:
        wanted = handlers.server(called.command, called.arguments)
        plan.append((servers_file(project), lambda text: serverentry.with_server(text, wanted)))
    files = carry_out(plan, dry)
    after = (files[0].after or b"{}").decode("utf-8-sig")
    return Outcome(
        files=files,
        by_hand=tuple(hookentries.lines_by_hand(after)),
        elsewhere=tuple(_elsewhere(settings, project)),
        switched_off=jsontext.load(after, None).get("disableAllHooks") is True,
    )


def uninstall(scope: Scope, project: Path, *, dry: bool = False) -> Outcome:
    """Take the hooks out, and the server of the project: every other byte is as it was before they came.

    Raises:
        what ``install`` raises, besides that a server of somebody else's simply stays.
    """
    settings = settings_file(scope, project)
    plan: list[tuple[SettingsFile, Change]] = [(settings, hookentries.without_hooks)]
    if scope is Scope.PROJECT:
        plan.append((servers_file(project), serverentry.without_server))
    return Outcome(files=carry_out(plan, dry), elsewhere=tuple(_elsewhere(settings, project)))


def _elsewhere(settings: SettingsFile, project: Path) -> Iterator[Path]:
    """Other settings that Claude Code reads here and that hold memfs's hooks."""
    for scope in Scope:
        with suppress(MemfsError):  # what is wrong with another file is no matter of this one
            other = settings_file(scope, project)
            if os.path.realpath(other.path) == os.path.realpath(settings.path):
                continue
            text = other.read()
            if text and hookentries.handlers_in(text):
                yield other.path
