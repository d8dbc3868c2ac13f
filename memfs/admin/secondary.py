"""Find the secondary location of a workspace, and say whether it will do.

It counts from a person's own settings, or from ``configuration/system_config.json`` in a workspace that they trust.
"""

from __future__ import annotations

import os
from pathlib import Path

from memfs.config_names import SYSTEM_CONFIG
from memfs.errors import FormatUnsupported, MemfsError, SettingInvalid
from memfs.fs.journal import Journal
from memfs.fs.tree import Tree
from memfs.git.repository import Repository
from memfs.model import Problem
from memfs.model.problem import WARNING
from memfs.store.failover import Secondary
from memfs.store.parts import READ_LIMIT
from memfs.trust import standing

SETTING = "storage.secondary"
_KEY = "secondary.path"


def find_secondary(tree: Tree, repository: Repository, journal: Journal, setting: str) -> Secondary | None:
    """The secondary location, None where none is configured, or only by a file that does not count or will not do;
    ``problems_of`` says so.

    Args:
        setting: the value of ``storage.secondary``, "" for none.

    Raises:
        SettingInvalid: the setting names a place that will not do.
    """
    if setting:
        return Secondary(usable(setting, repository, SETTING), tree.root, journal)
    named = _from_document(tree)
    try:
        return Secondary(usable(named, repository, _KEY), tree.root, journal) if named else None
    except SettingInvalid:
        return None


def problems_of(tree: Tree, repository: Repository, secondary: Secondary | None) -> list[Problem]:
    """What is wrong with the choice of the place."""
    if secondary is not None:
        return [_same_disk(secondary)] if _shares_disk(secondary.place, tree.root) else []
    named = _from_document(tree)
    try:
        if named:
            usable(named, repository, _KEY)
    except SettingInvalid as error:
        return [Problem.of(error, SYSTEM_CONFIG)]
    return []


def usable(named: object, repository: Repository, field: str) -> Path:
    """The folder, if it may serve.

    Raises:
        SettingInvalid: it is not absolute, or lies in the workspace or its repository.
    """
    hint = "name an absolute folder on another disk"
    place = Path(str(named)).expanduser()
    if not place.is_absolute() or "\0" in str(named):
        raise SettingInvalid("the secondary location is not an absolute path", field=field, hint=hint)
    real = Path(os.path.realpath(place))
    for inside in (repository.work_tree, repository.workspace, repository.git_dir, repository.common_dir):
        if real.is_relative_to(os.path.realpath(inside)):
            raise SettingInvalid(f"the secondary location lies inside {inside}", field=field, hint=hint)
    return real


def _from_document(tree: Tree) -> object:
    """The place that ``system_config.json`` names, where that counts; asked only if the word is in it."""
    try:
        if b"secondary" not in tree.read(SYSTEM_CONFIG, READ_LIMIT).data:
            return None
    except (MemfsError, FileNotFoundError, FormatUnsupported):
        return None
    return standing(tree.root).value(SYSTEM_CONFIG, _KEY)


def _shares_disk(place: Path, root: Path) -> bool:
    existing = next(folder for folder in (place, *place.parents) if os.path.exists(folder))
    return os.stat(existing).st_dev == os.stat(root).st_dev


def _same_disk(secondary: Secondary) -> Problem:
    return Problem(
        path=str(secondary.place),
        code="SameDisk",
        message="the secondary location is on the workspace's own disk and fills and fails with it",
        hint=f"set {SETTING} to a folder on another disk",
        severity=WARNING,
    )
