"""Install the merge driver in a repository: the setting that names the program, the attributes that ask for it.

Only ``memfs init`` and ``memfs check --fix`` write here, never merely opening a workspace. Every other byte of the
files stays.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

from memfs.errors import NotRegularFile
from memfs.git.layout import read_config
from memfs.git.repository import Repository
from memfs.model import Problem
from memfs.model.problem import WARNING

DRIVER = "memfs"
SUFFIXES = ("yaml", "yml", "json")
_COMMAND = "memfs"
_NAME = "joins memory files field by field"
_SECTION = f"merge.{DRIVER}"
_SETTING = f"{_SECTION}.driver"
_ANSWERED = 2  # the driver answers 0 or 1; anything above comes of a program that is not there, or knows no such verb


def command() -> str:
    """What git's shell runs: this very memfs; where that is gone, the one on ``PATH``; else git's own text merge.

    Without the last, a driver that is not there would leave our version in the file, and theirs nowhere.
    """
    words = "merge-driver %O %A %B --marker-size %L --path %P"
    script = os.path.join(os.path.dirname(sys.executable), _COMMAND)
    called = script if os.access(script, os.X_OK) and script.isprintable() else ""
    first = shlex.quote(called).replace("%", "%%") if called else _COMMAND
    text = "git merge-file -L ours -L base -L theirs --marker-size=%L %A %O %B"
    return f'm={first}; test -x "$m" || m={_COMMAND}; "$m" {words}; s=$?; test $s -lt {_ANSWERED} && exit $s; {text}'


def install(repository: Repository) -> bool:
    """Name the driver in the repository's own configuration; False where that is so already.

    Raises:
        NotRegularFile: a link leads out of the repository.
        GitFailed: git cannot read the file, or somebody else writes it.
    """
    place, wanted = _place(repository), {f"{_SECTION}.name": _NAME, _SETTING: command()}
    known = read_config(place)
    missing = {name: value for name, value in wanted.items() if known.get(name) != value}
    for name, value in missing.items():
        repository.git.run("config", "--file", str(place), "--replace-all", name, value)
    return bool(missing)


def uninstall(repository: Repository) -> bool:
    """Take the driver out of the configuration; False where it was not there. Raises what ``install`` raises."""
    place = _place(repository)
    if not any(name.startswith(f"{_SECTION}.") for name in read_config(place)):
        return False
    repository.git.run("config", "--file", str(place), "--remove-section", _SECTION)
    return True


def setting_lines() -> tuple[str, ...]:
    """What ``install`` writes, as git's configuration names it."""
    return f"{_SECTION}.name = {_NAME}", f"{_SETTING} = {command()}"


def named(common_dir: Path) -> bool:
    """Whether the repository's own configuration names just this driver."""
    return read_config(common_dir / "config").get(_SETTING) == command()


def installed(repository: Repository) -> bool:
    """Whether git finds a driver of that name, in the repository's configuration or the person's."""
    if read_config(repository.common_dir / "config").get(_SETTING):
        return True
    return any(value for _, value in repository.git.settings(rf"^{_SETTING.replace('.', '[.]')}$"))


def problems(repository: Repository) -> Iterator[Problem]:
    """A warning where git would join memory files as plain text."""
    if not installed(repository):
        yield Problem(
            path="",
            code="MergeDriverMissing",
            message="git joins memory files as plain text here: the merge driver is not installed",
            hint="'memfs init' installs it",
            severity=WARNING,
        )


def attribute_lines() -> str:
    """The lines of ``.gitattributes`` that ask for the driver."""
    return "".join(f"*.{suffix} merge={DRIVER}\n" for suffix in SUFFIXES)


def asks_for_driver(attributes: bytes) -> bool:
    """Whether attributes say anything of how files are merged; a person may have chosen something else."""
    words = (
        word for line in attributes.splitlines() if not line.lstrip().startswith(b"#") for word in line.split()[1:]
    )
    return any(word.lstrip(b"-!").partition(b"=")[0] == b"merge" for word in words)


def _place(repository: Repository) -> Path:
    """The configuration that all working trees share."""
    place = Path(os.path.realpath(repository.common_dir / "config"))
    if place.parent != Path(os.path.realpath(repository.common_dir)):
        raise NotRegularFile("git's configuration is a link to elsewhere", path=str(place), hint="replace it by a file")
    return place
