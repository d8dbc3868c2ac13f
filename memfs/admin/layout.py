"""Create the files a new workspace begins with, install the merge driver, and bring older files to the present format.

Only missing files are written. Also exports the schemas that editors complete and check by.

Version 1 of the format named itself in ``configuration/system_config.json`` and kept the schemas for editors in
``ContextMemory/.schemas/``; version 2 names itself in ``memfs.toml`` and keeps no copies of what memfs brings along.
A migration is one batch: a killed one leaves the old version.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from memfs import resources
from memfs.admin.store_builder import (
    DRIVER,
    DRIVER_SETTING,
    has_driver,
    read_whole,
    settings_text,
    version_in_old_place,
    version_in_settings,
)
from memfs.config import first_policies, first_toml
from memfs.config_names import SETTINGS_FILE, SYSTEM_CONFIG
from memfs.dataclass import dataclass
from memfs.errors import MemfsError, NotRegularFile
from memfs.format import toml_text
from memfs.format.codec import parse
from memfs.format.schema import Schemas
from memfs.format.toml_text import FORMAT, FORMAT_VERSION
from memfs.fs import io
from memfs.fs.tree import View
from memfs.git.layout import read_config
from memfs.git.repository import Repository
from memfs.model import Problem
from memfs.store import Store
from memfs.store.parts import CONTENT, Parts

EDITOR_FOLDER = f"{CONTENT}/.schemas"
_IGNORED = b"""# Files memfs is in the middle of writing, and large bodies kept beside their documents.
.memfs-*.tmp
*.zst
"""
_ALL_IGNORED = "# Copies of what memfs brings along, for editors: 'memfs admin schema' writes them again.\n*\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateResult:
    """What making a workspace did.

    Attributes:
        files: paths written.
        repository_made: whether a repository was made, too.
        policies: the settings that were chosen, by dotted key.
        commit: the first commit, None while it waits; ``reason`` says why.
        driver: whether the merge driver was installed.
    """

    files: tuple[str, ...]
    repository_made: bool
    policies: Mapping[str, str]
    commit: str | None
    reason: str = ""
    driver: bool = False


def first_files(chosen: Mapping[str, str]) -> dict[str, bytes]:
    """The content of each file a new workspace begins with, by path."""
    return {
        SETTINGS_FILE: first_toml(chosen).encode(),
        f"{CONTENT}/.gitattributes": resources.template_text("gitattributes").encode(),
        f"{CONTENT}/.gitignore": _IGNORED,
    }


def missing(root: Path, chosen: Mapping[str, str]) -> list[str]:
    """Those of a new workspace's files that are not there yet."""
    return [path for path in first_files(chosen) if not (root / path).exists()]


def lay_out(store: Store, repository: Repository, repository_made: bool) -> CreateResult:
    """Write what is missing of a workspace's first files, and install the merge driver.

    Where the repository was made for it, exactly those files become its first commit; in one that was there before,
    nothing is committed. A file that is there already stays as it is. Where nothing is missing, nothing is installed
    either: the workspace is merely opened.
    """
    chosen = first_policies(repository_made)
    plans = [plan for plan in store.plan_restore(first_files(chosen)) if plan.before is None]
    driver = bool(plans or repository_made) and _install(store, repository)  # first: once files are here, no one would
    store.carry_out(plans, "Begin a memory workspace", source="init")
    flushed = store.flush(adopt=False) if plans and repository_made else None
    return CreateResult(
        files=tuple(plan.path for plan in plans),
        repository_made=repository_made,
        policies=chosen,
        commit=flushed.commits[-1] if flushed and flushed.commits else None,
        reason=flushed.reason if flushed else "",
        driver=driver,
    )


def export_schemas(schemas: Schemas, folder: Path, *, ignored: bool = False) -> list[str]:
    """Write the schemas that editors complete and check by into a folder, replacing those that are there.

    Args:
        ignored: also have git ignore the folder: they are copies that anyone can make again.

    Returns:
        The names of the files written.

    Raises:
        StorageIO: one could not be written.
    """
    texts = schemas.editor_files() | ({".gitignore": _ALL_IGNORED} if ignored else {})
    io.make_folders(folder)
    for name, text in texts.items():
        io.write_file(folder / name, text.encode(), mode=0o644)
    return sorted(texts)


def _install(store: Store, repository: Repository) -> bool:
    """A configuration that cannot be written is no reason to be without a workspace."""
    try:
        return install_driver(repository)
    except MemfsError as error:
        store.note_failure(error)
        return False


SUFFIXES = ("yaml", "yml", "json")
_COMMAND = "memfs"
_NAME = "joins memory files field by field"
_SECTION = f"merge.{DRIVER}"
_ANSWERED = 2  # the driver answers 0 or 1; anything above comes of a program that is not there, or knows no such verb


def driver_command() -> str:
    """What git's shell runs: this very memfs; where that is gone, the one on ``PATH``; else git's own text merge.

    Without the last, a driver that is not there would leave our version in the file, and theirs nowhere.
    """
    from shlex import quote  # most commands install nothing

    words = "merge-driver %O %A %B --marker-size %L --path %P"
    script = os.path.join(os.path.dirname(sys.executable), _COMMAND)
    called = script if os.access(script, os.X_OK) and script.isprintable() else ""
    first = quote(called).replace("%", "%%") if called else _COMMAND
    text = "git merge-file -L ours -L base -L theirs --marker-size=%L %A %O %B"
    return f'm={first}; test -x "$m" || m={_COMMAND}; "$m" {words}; s=$?; test $s -lt {_ANSWERED} && exit $s; {text}'


def install_driver(repository: Repository) -> bool:
    """Name the driver in the repository's own configuration; False where that is so already.

    Raises:
        NotRegularFile: a link leads out of the repository.
        GitFailed: git cannot read the file, or another process writes it.
    """
    place, wanted = _place(repository), {f"{_SECTION}.name": _NAME, DRIVER_SETTING: driver_command()}
    known = read_config(place)
    missing = {name: value for name, value in wanted.items() if known.get(name) != value}
    for name, value in missing.items():
        repository.git.run("config", "--file", str(place), "--replace-all", name, value)
    return bool(missing)


def uninstall_driver(repository: Repository) -> bool:
    """Take the driver out of the configuration; False where it was not there. Raises what ``install_driver`` raises."""
    place = _place(repository)
    if not any(name.startswith(f"{_SECTION}.") for name in read_config(place)):
        return False
    repository.git.run("config", "--file", str(place), "--remove-section", _SECTION)
    return True


def setting_lines() -> tuple[str, ...]:
    """What ``install_driver`` writes, as git's configuration names it."""
    return f"{_SECTION}.name = {_NAME}", f"{DRIVER_SETTING} = {driver_command()}"


def is_driver_named(common_dir: Path) -> bool:
    """Whether the repository's own configuration names just this driver."""
    return read_config(common_dir / "config").get(DRIVER_SETTING) == driver_command()


def driver_problems(repository: Repository) -> Iterator[Problem]:
    """A warning where git would join memory files as plain text."""
    if not has_driver(repository):
        message = "git joins memory files as plain text here: the merge driver is not installed"
        hint = "'memfs init' installs it"
        yield Problem.warning("", "MergeDriverMissing", message, hint)


def ignore_problems(repository: Repository) -> Iterator[Problem]:
    """A warning where a rule of a person's keeps git from taking memory files; it names the rule."""
    name = f"{CONTENT}/memories/semantic/memory.yaml"  # is not there: what git has already, no rule keeps from it
    tree = {"GIT_WORK_TREE": str(repository.work_tree), "GIT_LITERAL_PATHSPECS": "0"}
    path = os.fsencode(repository.work_tree) + b"/" + repository.full(name)
    output = repository.git.run("check-ignore", "-v", "-z", "--stdin", data=path, variables=tree, accept=(0, 1))
    file, line, rule, *_ = [*os.fsdecode(output).split("\0"), "", "", ""]
    if rule and not rule.startswith("!"):
        message = f"git ignores memory files by {file}:{line} {rule}: 'git add' and 'git status' pass them over"
        hint = "remove that rule, or exempt this folder from it; until then only memfs commits them"
        yield Problem.warning(CONTENT, "MemoryIgnored", message, hint)


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


# -- the version of the format ----------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True, kw_only=True)
class MigrationResult:
    """What bringing a workspace to the present version did.

    Attributes:
        before: the version that it said it was in; None where it said none.
        after: the version that it is in now.
        changed: whether that was written, or would be.
        paths: the files that were written or removed, or would be.
    """

    before: int | None
    after: int
    changed: bool
    paths: tuple[str, ...] = ()


def format_problems(tree: View) -> Iterator[Problem]:
    """A warning where the files say that they are of an older version, which is read and written all the same."""
    version = version_in_settings(tree)
    if version is None:
        version = version_in_old_place(tree)
    if version is not None and version < FORMAT_VERSION:
        message = f"the workspace is of format {version}; this memfs writes {FORMAT_VERSION}"
        hint = "'memfs admin migrate' brings it there"
        yield Problem.warning(SETTINGS_FILE, "FormatOld", message, hint)


def migrate(store: Store, parts: Parts, dry_run: bool = False) -> MigrationResult:
    """Bring a workspace to the present version of the format, as one batch; whatever else its files say stays.

    Raises:
        ContentError, SettingInvalid: a file is invalid beyond its version; nothing was changed.
        StorageIO: nothing was changed.
    """
    written = version_in_settings(parts.seen)
    before = written if written is not None else version_in_old_place(parts.seen)
    if written == FORMAT_VERSION:
        return MigrationResult(before=before, after=FORMAT_VERSION, changed=False)
    plans = store.plan_restore(_wanted(parts))
    if not dry_run:
        store.carry_out(plans, f"Bring the format to version {FORMAT_VERSION}", source="migrate")
    paths = tuple(plan.path for plan in plans)
    return MigrationResult(before=before, after=FORMAT_VERSION, changed=True, paths=paths)


def _wanted(parts: Parts) -> dict[str, bytes | None]:
    text = settings_text(parts.seen)
    toml_text.parse(text)  # what is no TOML stays as it is
    wanted: dict[str, bytes | None] = {SETTINGS_FILE: toml_text.with_format_version(text).encode()}
    data = read_whole(parts.seen, SYSTEM_CONFIG)
    if data is not None:
        values = dict(parse(data, SYSTEM_CONFIG).mapping)
        if values.pop(FORMAT, None) is not None:
            wanted[SYSTEM_CONFIG] = None
            if values.keys() - {"$schema"}:
                wanted[SYSTEM_CONFIG] = parts.codec.write_document(values, SYSTEM_CONFIG, "system_config", data)
    copies = parts.tree.scan(EDITOR_FOLDER, hidden=True)
    wanted.update((entry.path, None) for entry in copies if entry.regular and parts.repository.head_blob(entry.path))
    return wanted
