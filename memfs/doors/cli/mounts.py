"""What verbs say of mounted workspaces: which there are, their state, and one item of theirs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from memfs import trust
from memfs.doors.cli.command import Unclear
from memfs.doors.cli.output import Note, clean
from memfs.model.ids import of_mount, without_mount
from memfs.model.kinds import ITEM_LIMIT
from memfs.settings import MOUNTS

if TYPE_CHECKING:
    from memfs.model import MemoryItem, Problem, Query
    from memfs.recall.recaller import Recaller
    from memfs.workspace import Workspace


def recaller(workspace: Workspace, own: bool) -> Recaller:
    """What answers: the workspace with its mounts, or the workspace's ``own`` memory alone."""
    named = bool(workspace.settings.mounts) and not own  # a workspace without mounts is spared what they import
    return workspace.sources.mounts.recall if named else workspace.recaller


def unread_of(workspace: Workspace, own: bool, asked: Query) -> list[str]:
    """The files that an answer may lack, those of mounts after the mount's name."""
    mounts = workspace.sources.mounts.opened() if workspace.settings.mounts and not own and not asked.path else []
    return [*workspace.store.unread(asked), *(path for mount in mounts for path in mount.unread(asked))]


def left_out(workspace: Workspace, own: bool) -> list[Problem]:
    """Why mounts were not asked: they cannot be, or nobody trusted the file that names them."""
    if own:
        return []
    standing, mounts = trust.standing(workspace.root), workspace.settings.mounts
    named = (want.key for want in standing.wants if want.key.startswith(f"{MOUNTS}."))
    ignored = [key for key in named if key.removeprefix(f"{MOUNTS}.") not in mounts]
    untrusted = standing.problems(*ignored) if ignored else []
    return [*untrusted, *(workspace.sources.mounts.refused() if mounts else [])]


def left_out_notes(problems: Iterable[Problem]) -> Iterator[Note]:
    """Which mounts were not asked, and why."""
    for problem in problems:
        yield Note(clean(problem.message) + (f"; {clean(problem.hint)}" if problem.hint else ""))


def is_mounted(workspace: Workspace, reference: str) -> bool:
    """Whether a person's reference is to an item of a mount."""
    return bool(of_mount(reference)) and not workspace.store.locate(reference)


def item_of_mount(workspace: Workspace, reference: str, revision: str) -> tuple[MemoryItem, bytes]:
    """An item of a mount, and its file.

    Raises:
        Unclear: it is asked for at a revision.
        ItemNotFound, ContentError: see ``Mounts.find``.
    """
    if revision:
        hint = f"run memfs show there: -C <folder of {of_mount(reference)}>"
        raise Unclear("the history of a mounted workspace is not read", hint)
    mounts = workspace.sources.mounts
    item = mounts.find(reference)
    store = next(mount.store for mount in mounts.opened() if mount.name == of_mount(item.id))
    path = store.index_sync.locate(without_mount(item.id))
    return item, store.tree.read(path, ITEM_LIMIT).data
