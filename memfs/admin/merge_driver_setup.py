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

from memfs.errors import ContentError, MemfsError, NotRegularFile
from memfs.fs import shared_file
from memfs.git.config import parse_config, read_config, with_section
from memfs.git.repository import Repository
from memfs.model import Problem
from memfs.model.problem import WARNING

DRIVER = "memfs"
SUFFIXES = ("yaml", "yml", "json")
_COMMAND = "memfs"
_NAME = "joins memory files field by field"
_SETTING = f"merge.{DRIVER}.driver"
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

    Every other byte of the file stays, even while others write it.

    Raises:
        ContentError: the file cannot be read as git's configuration.
        NotRegularFile: a link leads out of the repository.
        Conflict, StorageIO: it is not to be written.
    """
    return _rewrite(repository, {"name": _NAME, "driver": command()})


def uninstall(repository: Repository) -> bool:
    """Take the driver out of the configuration; False where it was not there. Raises what ``install`` raises."""
    return _rewrite(repository, {})


def setting_lines() -> tuple[str, ...]:
    """What ``install`` writes, as git's configuration names it."""
    return f"merge.{DRIVER}.name = {_NAME}", f"{_SETTING} = {command()}"


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


def _rewrite(repository: Repository, values: dict[str, str]) -> bool:
    def change(before: bytes | None, place: Path) -> tuple[bytes | None, bool]:
        try:
            text = (before or b"").decode("utf-8", "surrogateescape")
            after = with_section(text, "merge", DRIVER, values)
            _prove(text, after, values)
        except MemfsError as error:
            raise error.located(str(place)) from None
        return after.encode("utf-8", "surrogateescape") if after != text else before, after != text

    return shared_file.rewrite(lambda: _place(repository), change)


def _place(repository: Repository) -> Path:
    """The configuration that all working trees share."""
    place = Path(os.path.realpath(repository.common_dir / "config"))
    if place.parent != Path(os.path.realpath(repository.common_dir)):
        raise NotRegularFile("git's configuration is a link to elsewhere", path=str(place), hint="replace it by a file")
    return place


def _prove(before: str, after: str, values: dict[str, str]) -> None:
    """Nothing else may have changed; git's own words are not read otherwise than git reads them.

    Raises:
        ContentError: it would have.
    """
    start = f"merge.{DRIVER}."
    others = {key: value for key, value in parse_config(before).items() if not key.startswith(start)}
    wanted = others | {start + key: value for key, value in values.items()}
    found = parse_config(after)
    if {key: found.get(key) for key in wanted} != wanted or (not values and found != wanted):
        raise ContentError(
            "memfs cannot write its section without changing others", hint=f"set {_SETTING} with git config"
        )
