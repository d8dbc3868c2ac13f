"""Create the files a new workspace begins with, and install the merge driver.

Only missing files are written. Also exports the schemas that editors complete and check by.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from memfs import resources
from memfs.admin import merge_driver_setup
from memfs.config import first_policies, first_toml
from memfs.config_names import SETTINGS_FILE
from memfs.errors import MemfsError
from memfs.format.schema import Schemas
from memfs.fs import io
from memfs.git.repository import Repository
from memfs.store import Store
from memfs.store.parts import CONTENT

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


def files(chosen: Mapping[str, str]) -> dict[str, bytes]:
    """The content of each file a new workspace begins with, by path."""
    return {
        SETTINGS_FILE: first_toml(chosen).encode(),
        f"{CONTENT}/.gitattributes": resources.template_text("gitattributes").encode(),
        f"{CONTENT}/.gitignore": _IGNORED,
    }


def missing(root: Path, chosen: Mapping[str, str]) -> list[str]:
    """Those of a new workspace's files that are not there yet."""
    return [path for path in files(chosen) if not (root / path).exists()]


def lay_out(store: Store, repository: Repository, repository_made: bool) -> CreateResult:
    """Write what is missing of a workspace's first files, and install the merge driver.

    Where the repository was made for it, exactly those files become its first commit; in one that was there before,
    nothing is committed. A file that is there already stays as it is. Where nothing is missing, nothing is installed
    either: the workspace is merely opened.
    """
    chosen = first_policies(repository_made)
    plans = [
        plan
        for path, data in files(chosen).items()
        if (plan := store.plan_restore(path, data)) is not None and plan.before is None
    ]
    driver = bool(plans or repository_made) and _install(store, repository)  # first: once files lie here, nobody would
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
        ignored: also tell git to leave the folder out: they are copies, and anybody can make them.

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
        return merge_driver_setup.install(repository)
    except MemfsError as error:
        store.note_failure(error)
        return False
