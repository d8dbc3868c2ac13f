"""``share``: copy items of private memory into the memory that others see."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from memfs.doors.cli.command import Invocation, Unclear, opened, verb
from memfs.doors.cli.commit_report import land
from memfs.doors.cli.output import clean, count, day, item_json, note, one_line, print_json, print_raw, styled
from memfs.doors.cli.streams import is_interactive
from memfs.errors import WorkspaceNotFound
from memfs.model.ids import of_mount, without_mount

if TYPE_CHECKING:
    from memfs.learning.share import ShareResult
    from memfs.model import MemoryItem
    from memfs.workspace import Workspace

_SHOWN = 20
_WIDTH = 72
_TOLD = {
    "stored": ("Shared", "Would share"),
    "updated": ("Brought up to date", "Would bring up to date"),
    "same": ("Shared already", "Shared already"),
    "repeated": ("There already", "There already"),
}


@verb(
    "share",
    example="memfs share\nmemfs share always-use-pnpm-in-this-repository-never-npm-0b9494f8\n"
    "memfs share always-use-pnpm --to ../team-memory --dry-run\nmemfs share always-use-pnpm --keep-private",
)
@click.argument("ids", nargs=-1, metavar="[ID]...")
@click.option(
    "--to", metavar="FOLDER", type=click.Path(file_okay=False), help="Copy into this workspace, not the one at hand."
)
@click.option("--keep-private", is_flag=True, help="Share nothing: take these IDs off the list.")
@click.option("--replace", is_flag=True, help="Replace a copy that was edited there.")
@click.option("--allow-secret", metavar="REASON", default="", help="Why what looks like a secret may stay.")
@click.option("--dry-run", is_flag=True, help="Tell what would be shared, and write nothing.")
@click.option("--yes", is_flag=True, help="Do not ask before sharing what you edited by hand and have not committed.")
@click.option("-n", "--limit", type=click.IntRange(1, 10_000), default=_SHOWN, help="List at most so many; 20.")
@click.pass_context
def share(
    ctx: click.Context,
    /,
    ids: tuple[str, ...],
    to: str | None,
    keep_private: bool,
    replace: bool,
    allow_secret: str,
    dry_run: bool,
    yes: bool,
    limit: int,
    as_json: bool,
) -> int:
    """Copy items of your private memory into this workspace, for others to see.

    Without an ID it lists what could be shared. A copy is a file to be reviewed like any other. It keeps its id, its
    trust and who said it in which session; what was typed in that session stays private. Sharing again brings the copy
    up to date. An ID may be shortened.
    """
    if keep_private and (to or replace or allow_secret or dry_run or not ids):
        raise click.UsageError("--keep-private takes IDs, and nothing else", ctx)
    names = [without_mount(one) if of_mount(one) == "private" else one for one in ids]
    with _private(ctx) as private:
        if not ids:
            _list(private, limit, as_json)
            return 0
        if keep_private:
            _keep(private, names, as_json)
            return 0
        ctx.ensure_object(Invocation).workspace = to or ctx.ensure_object(Invocation).workspace
        with opened(ctx) as workspace:
            if workspace.root == private.root:
                raise Unclear("this is the private memory itself", "name the workspace to share with: --to FOLDER")
            return _share(private, workspace, names, _Wishes(replace, allow_secret, dry_run, yes), as_json)


class _Wishes:
    """The options of sharing."""

    def __init__(self, replace: bool, allow_secret: str, dry_run: bool, yes: bool) -> None:
        self.replace, self.allow_secret, self.dry_run, self.yes = replace, allow_secret, dry_run, yes


@contextmanager
def _private(ctx: click.Context) -> Iterator[Workspace]:
    """The private memory of the project at hand.

    Raises:
        WorkspaceNotFound: there is none yet.
    """
    from memfs import private
    from memfs.workspace import open_workspace  # --help does without it

    asked = ctx.ensure_object(Invocation)
    start = Path(asked.workspace or ".")
    folder = start.resolve() if private.holds(start.resolve()) else private.find(private.project_at(start))
    if folder is None:
        hint = "hooks make it: memfs install claude-code"
        raise WorkspaceNotFound("there is no private memory of this project yet", path=str(start.resolve()), hint=hint)
    with open_workspace(folder, watch=False, settings=dict(asked.settings)) as workspace:
        yield workspace


def _share(private: Workspace, workspace: Workspace, names: Sequence[str], wishes: _Wishes, as_json: bool) -> int:
    from memfs.intake.import_service import ImportService
    from memfs.learning.share import ShareService

    sharing = ShareService(private.store, ImportService(workspace.store, workspace.parts))
    items = sharing.items(names)
    if not wishes.dry_run and not wishes.yes:
        _ask(sharing.unsaved(items))
    done = sharing.run(items, replace=wishes.replace, allow_secret=wishes.allow_secret, dry_run=wishes.dry_run)
    reason = "" if wishes.dry_run else land(workspace, None).reason
    if as_json:
        print_json({"dry_run": wishes.dry_run, "to": str(workspace.root), "items": [_json_of(one) for one in done]})
    else:
        for one in done:
            _tell(workspace, one, wishes.dry_run)
        if workspace.settings.history.commit == "manual" and any(one.fate.became == "stored" for one in done):
            note("review the file, then add and commit it with git: until then nobody else has it")
    if reason:
        note(f"stored; the commit waits: {reason}")
    return int(any(one.fate.became in ("refused", "kept") for one in done))


def _ask(edited: Sequence[str]) -> None:
    """Ask before an edit is shared that may be half done."""
    if not edited:
        return
    named = ", ".join(clean(path) for path in edited)
    note(f"edited by hand, and in no commit yet: {named}")
    if not is_interactive():
        raise Unclear("an edit made by hand would be shared with it", "look at it, and add --yes")
    click.confirm("Share it as it is now?", abort=True, err=True)


def _tell(workspace: Workspace, one: ShareResult, dry_run: bool) -> None:
    fate = one.fate
    told = _TOLD.get(fate.became.value)
    if told is None:
        also = "; --replace takes yours" if fate.became == "kept" else ""
        note(f"{clean(one.item.id)}: {clean(fate.reason)}{also}")
        return
    print_raw(f"{styled(told[dry_run], fg='green')} {styled(clean(fate.id), bold=True)}")
    if path := workspace.store.locate(fate.id):
        print_raw(f"  {clean(path)}")
    if fate.contradicts:
        note(f"{clean(fate.id)} contradicts {clean(', '.join(fate.contradicts))}")
    if one.unmarked:
        note(f"the private one could not be marked as shared: {clean(one.unmarked)}; share it again")


def _keep(private: Workspace, names: Sequence[str], as_json: bool) -> None:
    from memfs.learning.share import mark

    kept = [mark(private.store, private.store.find(name)) for name in names]
    land(private, None)
    if as_json:
        print_json({"kept_private": [item.id for item in kept]})
        return
    for item in kept:
        print_raw(f"{styled('Stays private', fg='green')} {clean(item.id)}")


def _list(private: Workspace, limit: int, as_json: bool) -> None:
    from memfs.learning.share import waiting

    found = waiting(private.store)
    if as_json:
        print_json({"folder": str(private.root), "count": len(found), "items": list(map(item_json, found[:limit]))})
        return
    print_waiting(found, limit)
    if found:
        note("'memfs share ID' copies one into this workspace, 'memfs share ID --keep-private' takes it off this list")


def print_waiting(found: Sequence[MemoryItem], limit: int) -> None:
    """List what could be shared: text, type, day and id."""
    for item in found[:limit]:
        print_raw(styled(one_line(item.title or item.content, _WIDTH), bold=True))
        print_raw(f"  {clean(item.id)}  {styled(f'{item.type}  {day(item)}', dim=True)}")
    further = f"; {len(found) - limit:,} more with --limit" if len(found) > limit else ""
    note(f"{count(len(found), 'memory', 'memories')} in private memory could be shared{further}")


def _json_of(one: ShareResult) -> dict[str, Any]:
    fate = one.fate
    return {
        "id": one.item.id,
        "became": fate.became.value,
        "shared_as": fate.id or None,
        "reason": fate.reason,
        "contradicts": list(fate.contradicts),
    }
