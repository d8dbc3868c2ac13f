"""``share``: copy items of private memory into the memory that others see."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from memfs.dataclass import dataclass, field
from memfs.doors.cli.command import Unclear, invocation, opened, remark, verb
from memfs.doors.cli.options import land, waiting_text
from memfs.doors.cli.output import OMIT, TEXT_ONLY, Note, Text, styled
from memfs.errors import ItemNotFound, WorkspaceNotFound
from memfs.model import MemoryItem
from memfs.model.ids import of_mount, without_mount

if TYPE_CHECKING:
    from memfs.learning.inbox import ShareResult
    from memfs.workspace import Workspace

_WORDS = {
    "stored": ("Shared", "Would share"),
    "updated": ("Brought up to date", "Would bring up to date"),
    "same": ("Already shared", "Already shared"),
    "repeated": ("Already there", "Already there"),
}


@dataclass(frozen=True, slots=True)
class ShareReport:
    """What was shared, or without an ID what could be.

    Attributes:
        items: each copied item; without an ID those that could be copied, as `show` has them.
        to: the workspace they were copied into.
        folder: the private memory, where that is listed.
        count: how many there are in it that could be shared.
        kept_private: ids of those that are to stay private.
        paths: the file of each copy, by its id.
    """

    items: tuple[ShareResult | MemoryItem, ...]
    to: Path | None = field(default=None, metadata=OMIT)
    folder: Path | None = field(default=None, metadata=OMIT)
    count: int | None = field(default=None, metadata=OMIT)
    kept_private: tuple[str, ...] = field(default=(), metadata=OMIT)
    paths: Mapping[str, str] = field(default_factory=dict, metadata=TEXT_ONLY)


def _code(done: ShareReport) -> bool:
    """1 where something was refused, or left as somebody edited it."""
    copies = (one for one in done.items if not isinstance(one, MemoryItem))
    return any(one.fate.became in ("refused", "kept") for one in copies)


def _text(done: ShareReport, dry_run: bool) -> Text:
    yield from (f"{styled('Kept private', fg='green')} {kept}" for kept in done.kept_private)
    if done.count is not None:
        yield from waiting_text([one for one in done.items if isinstance(one, MemoryItem)], done.count)
        return
    for one in done.items:
        if isinstance(one, MemoryItem):
            continue
        fate = one.fate
        if (words := _WORDS.get(fate.became.value)) is None:
            also = "; --replace takes yours" if fate.became == "kept" else ""
            yield Note(f"{one.item.id}: {fate.reason}{also}")
            continue
        yield f"{styled(words[dry_run], fg='green')} {styled(fate.id, bold=True)}"
        if path := done.paths.get(fate.id):
            yield f"  {path}"
        if fate.contradicts:
            yield Note(f"{fate.id} contradicts {', '.join(fate.contradicts)}")
        if one.unmarked:
            yield Note(f"the private one could not be marked as shared: {one.unmarked}; share it again")


@verb("share", text=_text, exit_code=_code)
@click.argument("ids", nargs=-1, metavar="[ID]...")
@click.option(
    "--to", metavar="FOLDER", type=click.Path(file_okay=False), help="Copy into this workspace, not the current one."
)
@click.option("--keep-private", is_flag=True, help="Share nothing: do not offer these IDs again.")
@click.option("--replace", is_flag=True, help="Replace a copy that was edited there.")
@click.option("--allow-secret", metavar="REASON", default="", help="Why what looks like a secret may stay.")
@click.option("--dry-run", is_flag=True, help="Say what would be shared, and write nothing.")
@click.option("--yes", is_flag=True, help="Share also what you edited by hand and have not committed.")
@click.option("-n", "--limit", type=click.IntRange(1, 10_000), default=20, help="At most this many; 20.")
def share(
    ids: tuple[str, ...], to: str | None, keep_private: bool, dry_run: bool, yes: bool, limit: int, **given: Any
) -> ShareReport:
    """Copy items of your private memory into this workspace, for others to see.

    Without an ID it lists what could be shared. A copy is a file to be reviewed like any other. It keeps its id, its
    trust and who said it in which session; the commit's author is you. What was typed in that session stays private.
    Sharing again brings the copy up to date. An ID may be shortened. The exit code is 1 where something was refused, or
    was skipped because the copy had been edited.

    Examples:
        memfs share
        memfs share always-use-pnpm-in-this-repository-never-npm-0b9494f8
        memfs share always-use-pnpm --to ../team-memory --dry-run
        memfs share always-use-pnpm --keep-private
    """
    from memfs.intake.import_service import ImportService
    from memfs.learning.inbox import ShareService, mark, waiting

    if keep_private and (to or any(given.values()) or dry_run or not ids):
        raise click.UsageError("--keep-private takes IDs, and nothing else")
    names = [without_mount(one) if of_mount(one) == "private" else one for one in ids]
    with _private() as private:
        if not ids:
            found = waiting(private.store)
            return ShareReport(tuple(found[:limit]), folder=private.root, count=len(found))
        if keep_private:
            kept = tuple(mark(private.store, private.store.find(name)).id for name in names)
            land(private, None)
            return ShareReport((), kept_private=kept)
        invocation().workspace = to or invocation().workspace
        with opened() as workspace:
            if workspace.root == private.root:
                raise Unclear("this is the private memory itself", "name the workspace to share with: --to FOLDER")
            sharing = ShareService(private.store, ImportService(workspace.store, workspace.parts))
            items = sharing.items(names)
            if not (dry_run or yes) and (edited := sharing.unsaved(items)):
                raise Unclear(f"edited by hand, and in no commit yet: {', '.join(edited)}", "look at it, and add --yes")
            done = sharing.run(items, dry_run=dry_run, **given)
            if not dry_run:
                land(workspace)
            if workspace.settings.history.commit == "manual" and any(one.fate.became == "stored" for one in done):
                remark("review the file, then add and commit it with git: until then nobody else has it")
            paths = {one.fate.id: workspace.store.locate(one.fate.id) for one in done if one.fate.id}
            return ShareReport(tuple(done), to=workspace.root, paths=paths)


@contextmanager
def _private() -> Iterator[Workspace]:
    """The private memory of the project at hand.

    Raises:
        WorkspaceNotFound: there is none yet.
    """
    from memfs import private
    from memfs.workspace import open_workspace  # --help does without it

    asked = invocation()
    start = Path(asked.workspace or ".")
    folder = start.resolve() if private.holds(start.resolve()) else private.find(private.project_at(start))
    if folder is None:
        hint = "hooks make it: memfs agent install claude-code"
        raise WorkspaceNotFound("there is no private memory of this project yet", path=str(start.resolve()), hint=hint)
    with open_workspace(folder, watch=False, settings=dict(asked.settings)) as workspace:
        try:
            yield workspace
        except ItemNotFound as error:
            error.hint = (error.hint or "").replace("memfs list", "memfs share")
            raise
