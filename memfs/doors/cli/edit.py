"""``new`` and ``edit``: write items by hand, in the person's own editor.

What is wrong with the result is reported, and the person's text is never thrown away.
"""

from __future__ import annotations

import json
import os
import re
from typing import TYPE_CHECKING, Any

import click

from memfs.admin.format import EDITOR_FOLDER
from memfs.doors.cli.command import complete_ids, complete_types, opened, verb
from memfs.doors.cli.commit_report import AT_ONCE
from memfs.doors.cli.filters import known_type
from memfs.doors.cli.options import allow_in, allow_secret_option, reference, refuse_secret, secrets_in
from memfs.doors.cli.output import clean, note, print_json, print_raw, styled, write_error
from memfs.doors.cli.streams import is_interactive
from memfs.errors import ContentError, IdExists, ItemNotFound, MemfsError, NotRegularFile, StorageIO, StorageUnavailable
from memfs.model.ids import check_id, new_id
from memfs.model.kinds import ITEM_LIMIT, OFFERED
from memfs.model.time import utc_now
from memfs.resources import template_text
from memfs.store.searcher import path_of

if TYPE_CHECKING:
    from memfs.model import Kind
    from memfs.workspace import Workspace

_SCHEMA_LINE = re.compile(r"\A(# yaml-language-server: \$schema=)\S*?([^/\s]+\n)")
_TITLE = re.compile(r"^title:.*$", re.MULTILINE)


@verb(
    "new",
    example='memfs new convention --title "Name branches after issues"\nmemfs new semantic --no-edit',
    offers=OFFERED,
)
@click.argument("type", metavar="TYPE", shell_complete=complete_types)
@click.option("--title", help="The title to begin with; the id is made from it.")
@click.option("--id", "id", metavar="ID", help="Name the item yourself.")
@click.option("--no-edit", is_flag=True, help="Only write the file; you edit it later.")
@allow_secret_option
@click.pass_context
def new(
    ctx: click.Context, /, type: str, title: str | None, id: str | None, no_edit: bool, allow_secret: str, as_json: bool
) -> int:
    """Start an item from the template of its TYPE, and open it in your editor.

    The editor ($VISUAL, $EDITOR) is opened at once, where one is set or there is a terminal; a template left as it was
    is taken away again.
    """
    with opened(ctx) as workspace:
        kind = known_type(workspace, type)
        if not allow_secret:
            refuse_secret(f"{title or ''}\n{id or ''}", "title")
        chosen = _free_id(workspace, id or new_id(title or type))
        path = _place(kind, chosen)
        text = _filled(kind, path, title, schemas=(workspace.root / EDITOR_FOLDER).is_dir())
        _create(workspace, path, text)
        edits = not no_edit and _has_editor()
        problems = _first_edit(workspace, path, text, allow_secret) if edits else _wrong(workspace, path, allow_secret)
        kept = not edits or _read(workspace, path) != text.encode()
        if not kept:
            workspace.parts.tree.remove(path)
            problems = []
        _take_in(workspace, path, commit=kept and edits and not problems)
    if kept and not edits:
        note("it holds the template's words until you edit it")
    if as_json:
        print_json({"id": chosen, "path": path, "created": kept, "problems": _rows(problems)})
    elif kept:
        print_raw(f"Created {styled(chosen, fg='green', bold=True)}")
        print_raw(f"  {path}")
    else:
        print_raw("Nothing written: the template was left as it was")
    return _tell(problems, path, f"memfs edit {path}")


@verb("edit", example="memfs edit use-postgresql-for-transactions-7h2k9q")
@click.argument("id", metavar="ID|PATH", shell_complete=complete_ids)
@allow_secret_option
@click.pass_context
def edit(ctx: click.Context, id: str, allow_secret: str, as_json: bool) -> int:
    """Open an item in your editor ($VISUAL, $EDITOR), and check it when you are done.

    Your text stays in the file even if it is wrong; until it is right, recall uses the last good version.
    """
    with opened(ctx) as workspace:
        path = _path_of(workspace, id)
        if workspace.parts.durability(path) == "fallback":
            hint = "edit it once 'memfs status' says that the disk takes writes again"
            raise StorageUnavailable("this item lies in the secondary location for now", path=path, hint=hint)
        if not _has_editor():
            hint = "set EDITOR, or change the file directly"
            raise StorageIO("there is no terminal to edit on", path=path, hint=hint)
        before, written = _read(workspace, path), _written(workspace, path)
        problems = _edited(workspace, path, allow_secret)
        after, meanwhile = _read(workspace, path), _written(workspace, path)
        changed = after != before
        if changed and meanwhile not in (written, after):
            note(f"{path} was written by somebody else while you edited it, and what you saved stands in place of that")
            note(f"'memfs log {id}' and 'memfs restore --displaced' have what it was: bring in what you want of it")
        if changed:
            _take_in(workspace, path, commit=not problems)
    if as_json:
        print_json({"path": path, "changed": changed, "problems": _rows(problems)})
    else:
        print_raw(f"{'Changed' if changed else 'Unchanged'} {clean(path)}")
    return _tell(problems, path, f"memfs edit {id}")


# -- the editor ---------------------------------------------------------------------------------------------------
def _has_editor() -> bool:
    """Whether there is an editor that a person can use here."""
    return is_interactive() or bool(os.environ.get("VISUAL") or os.environ.get("EDITOR"))


def _first_edit(workspace: Workspace, path: str, text: str, allow_secret: str) -> list[MemfsError]:
    """Edit a fresh template; where the editor fails, take the template away unless something was written into it."""
    try:
        return _edited(workspace, path, allow_secret)
    except click.ClickException as error:
        left = _read(workspace, path) != text.encode()
        if not left:
            workspace.parts.tree.remove(path)
        workspace.store.refresh([path])
        hint = f"what you wrote is in {path}" if left else "the template was taken away again"
        raise StorageIO(error.format_message(), hint=hint) from error


def _edited(workspace: Workspace, path: str, allow_secret: str) -> list[MemfsError]:
    """Let the person edit, again and again if they like; return what is wrong in the end."""
    while True:
        click.edit(filename=str(workspace.root / path))
        problems = _wrong(workspace, path, allow_secret)
        if not problems or not is_interactive():
            return problems
        for problem in problems:
            write_error(problem)
        try:
            if not click.confirm("Edit again?", default=True, err=True):
                return problems
        except click.Abort:
            return problems


def _take_in(workspace: Workspace, path: str, *, commit: bool) -> None:
    workspace.store.refresh([path])
    if commit and workspace.settings.history.commit in AT_ONCE:
        workspace.store.flush()


def _wrong(workspace: Workspace, path: str, allow_secret: str) -> list[MemfsError]:
    """Everything that is wrong with the file as it is now, once the reason for a secret in it was written down."""
    try:
        allow_in(workspace, [path], allow_secret)
        data = workspace.parts.tree.read(path, ITEM_LIMIT).data
        return [*workspace.parts.codec.errors(data, path), *secrets_in(data, path)]
    except FileNotFoundError:
        hint = f"the editor removed it; 'git checkout HEAD -- {path}' brings back what was committed"
        return [StorageIO("the file is gone", path=path, hint=hint)]
    except MemfsError as error:
        return [error]


def _tell(problems: list[MemfsError], path: str, again: str) -> int:
    if not problems:
        return 0
    if not is_interactive():  # there they were named before the question
        for problem in problems:
            write_error(problem)
    note(f"your text is kept in {path}; correct it there or with '{again}'")
    return 1


def _rows(problems: list[MemfsError]) -> list[dict[str, Any]]:
    names = ("path", "line", "code", "field", "message", "hint")
    return [{name: getattr(problem, name) for name in names} for problem in problems]


# -- files --------------------------------------------------------------------------------------------------------
def _path_of(workspace: Workspace, written: str) -> str:
    """The file of an item, also when it cannot be read at present."""
    named = reference(workspace, written)
    try:
        return workspace.store.find(named).path
    except ContentError as error:
        if error.path:
            return error.path
        raise
    except ItemNotFound:
        path = path_of(named)
        if workspace.store.edit_finder.is_own(path) and workspace.parts.tree.entry(path) is not None:
            return path
        raise


def _free_id(workspace: Workspace, chosen: str) -> str:
    if workspace.store.locate(check_id(chosen)):
        raise IdExists(f"the id {chosen!r} is taken", hint=f"choose another, or 'memfs edit {chosen}'")
    return chosen


def _read(workspace: Workspace, path: str) -> bytes:
    try:
        return workspace.parts.tree.read(path, ITEM_LIMIT).data
    except (FileNotFoundError, ContentError, NotRegularFile):  # the check reports what is wrong with it
        return b""


def _written(workspace: Workspace, path: str) -> bytes | None:
    """What a file holds by the last write of memfs or by the last commit, whatever an editor made of it since."""
    for operation in reversed(workspace.parts.journal.operations()):
        for change in operation.changes:
            if change.path == path:
                return change.data
    blob = workspace.parts.repository.head_blob(path)
    return workspace.parts.repository.blob(blob) if blob else None


def _place(kind: Kind, item_id: str) -> str:
    month = f"/{utc_now():%Y-%m}" if kind.dated else ""
    return f"ContextMemory/{kind.folder}{month}/{item_id}.yaml"


def _filled(kind: Kind, path: str, title: str | None, *, schemas: bool) -> str:
    """The template of a kind, with the title; it names the schema only where the schemas lie in the workspace."""
    try:
        text = template_text(kind.name)
    except KeyError:  # a kind of the workspace's own need not bring a template
        text = template_text("semantic")
    up = "../" * (path.count("/") - 1)
    text = _SCHEMA_LINE.sub(lambda line: f"{line[1]}{up}.schemas/{line[2]}" if schemas else "", text, count=1)
    if title:
        written = f"title: {json.dumps(title, ensure_ascii=False)}"
        text = _TITLE.sub(lambda _: written, text, count=1) if _TITLE.search(text) else f"{written}\n{text}"
    return text


def _create(workspace: Workspace, path: str, text: str) -> None:
    if workspace.parts.tree.entry(path) is not None:
        raise IdExists("this file exists", path=path, hint="choose another id")
    workspace.parts.tree.write(path, text.encode())
