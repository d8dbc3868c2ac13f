"""``new`` and ``edit``: items written by hand, in the person's own editor.

Owns starting the editor and telling what is wrong with the result; the person's text is never thrown away.
"""

from __future__ import annotations

import json
import os
import re
import sys
from typing import TYPE_CHECKING, Any

import click

from memfs.adapters.cli.frame import complete_ids, complete_types, opened, verb
from memfs.adapters.cli.landing import land
from memfs.adapters.cli.output import clean, note, print_json, print_raw, styled, write_error
from memfs.errors import ContentError, IdExists, ItemNotFound, MemfsError, StorageIO
from memfs.files import io
from memfs.model.ids import check_id, new_id
from memfs.model.time import utc_now
from memfs.resources import template_text

if TYPE_CHECKING:
    from memfs.model import Kind
    from memfs.workspace import Workspace

_SCHEMA_LINE = re.compile(r"\A(# yaml-language-server: \$schema=)\S*?([^/\s]+)$", re.MULTILINE)
_TITLE = re.compile(r"^title:.*$", re.MULTILINE)


@verb("new", example='memfs new convention --title "Name branches after issues"\nmemfs new semantic --no-edit')
@click.argument("type", metavar="TYPE", shell_complete=complete_types)
@click.option("--title", help="The title to begin with; the id is made from it.")
@click.option("--id", "id", metavar="ID", help="Name the item yourself.")
@click.option("--no-edit", is_flag=True, help="Only write the file; you edit it later.")
@click.pass_context
def new(ctx: click.Context, type: str, title: str | None, id: str | None, no_edit: bool, as_json: bool) -> int:
    """Start an item from the template of its TYPE, and open it in your editor.

    On a terminal the editor ($VISUAL, $EDITOR) is opened at once; a template left as it was is taken away again.
    """
    with opened(ctx) as workspace:
        kind = workspace.kinds.get(type)
        chosen = check_id(id) if id else new_id(title or type)
        if workspace.store.locate(chosen):
            raise IdExists(f"the id {chosen!r} is taken", hint=f"choose another, or 'memfs edit {chosen}'")
        path = _place(kind, chosen)
        text = _filled(kind, path, title)
        _create(workspace, path, text)
        problem: MemfsError | None = None
        kept = True
        if not no_edit and _interactive():
            problem = _edited(workspace, path)
            kept = _read(workspace, path) != text.encode() or title is not None
        if kept:
            workspace.store.refresh([path])
            problem = problem or _wrong(workspace, path)
        else:
            io.unlink(workspace.root / path, missing_ok=True)
        if kept and problem is None and not no_edit:
            land(workspace, None)
    if as_json:
        print_json({"id": chosen, "path": path, "created": kept, "problems": _rows(problem)})
    elif not kept:
        print_raw("Nothing written: the template was left as it was")
    else:
        print_raw(f"Created {styled(chosen, fg='green', bold=True)}\n  {clean(path)}")
    return _tell(problem, path, f"memfs edit {path}")


@verb("edit", example="memfs edit use-postgresql-for-transactions-7h2k9q")
@click.argument("id", metavar="ID|PATH", shell_complete=complete_ids)
@click.pass_context
def edit(ctx: click.Context, id: str, as_json: bool) -> int:
    """Open an item in your editor ($VISUAL, $EDITOR), and check it when you are done.

    Your text stays in the file even if it is wrong; until it is right, recall uses the last good version.
    """
    with opened(ctx) as workspace:
        path = _path_of(workspace, id)
        if not _interactive() and not (os.environ.get("VISUAL") or os.environ.get("EDITOR")):
            raise StorageIO(
                "there is no terminal to edit on", path=path, hint="set EDITOR, or change the file directly"
            )
        before = _read(workspace, path)
        problem = _edited(workspace, path)
        while problem is not None and _interactive():
            write_error(problem)
            if not click.confirm("Edit again?", default=True, err=True):
                break
            problem = _edited(workspace, path)
        changed = _read(workspace, path) != before
        if changed:
            workspace.store.refresh([path])
            if problem is None:
                land(workspace, None, quiet_seconds=0)
    if as_json:
        print_json({"path": path, "changed": changed, "problems": _rows(problem)})
    else:
        print_raw(f"{'Changed' if changed else 'Unchanged'} {clean(path)}")
    return _tell(problem, path, f"memfs edit {id}")


# -- the editor ---------------------------------------------------------------------------------------------------
def _interactive() -> bool:
    return sys.stdin.isatty() and sys.stdout.isatty()


def _edited(workspace: Workspace, path: str) -> MemfsError | None:
    click.edit(filename=str(workspace.root / path))
    return _wrong(workspace, path)


def _wrong(workspace: Workspace, path: str) -> MemfsError | None:
    try:
        workspace.store.read(path)
    except FileNotFoundError:
        return StorageIO(
            "the file is gone", path=path, hint="the editor removed it; 'memfs rollback HEAD' brings it back"
        )
    except MemfsError as error:
        return error
    return None


def _tell(problem: MemfsError | None, path: str, again: str) -> int:
    if problem is None:
        return 0
    write_error(problem)
    note(f"your text is kept in {path}; correct it there or with '{again}'")
    return 1


def _rows(problem: MemfsError | None) -> list[dict[str, Any]]:
    if problem is None:
        return []
    row = {name: getattr(problem, name) for name in ("path", "line", "code", "field", "message", "hint")}
    return [row]


# -- files --------------------------------------------------------------------------------------------------------
def _path_of(workspace: Workspace, reference: str) -> str:
    """The file of an item, also when it cannot be read at present."""
    try:
        return workspace.store.find(reference).path
    except ContentError as error:
        if error.path:
            return error.path
        raise
    except ItemNotFound:
        path = workspace.store.path_of(reference)
        if workspace.store.is_own(path) and _exists(workspace, path):
            return path
        raise


def _exists(workspace: Workspace, path: str) -> bool:
    return ".." not in path.split("/") and (workspace.root / path).is_file()


def _read(workspace: Workspace, path: str) -> bytes:
    try:
        return io.read_file(workspace.root / path)
    except FileNotFoundError:
        return b""


def _place(kind: Kind, item_id: str) -> str:
    month = f"/{utc_now():%Y-%m}" if kind.dated else ""
    return f"ContextMemory/{kind.folder}{month}/{item_id}.yaml"


def _filled(kind: Kind, path: str, title: str | None) -> str:
    try:
        text = template_text(kind.name)
    except KeyError:  # a kind of the workspace's own need not bring a template
        text = template_text("semantic")
    up = "../" * (path.count("/") - 1)
    text = _SCHEMA_LINE.sub(lambda line: f"{line[1]}{up}.schemas/{line[2]}", text, count=1)
    if title:
        written = f"title: {json.dumps(title, ensure_ascii=False)}"
        text = _TITLE.sub(lambda _: written, text, count=1) if _TITLE.search(text) else f"{written}\n{text}"
    return text


def _create(workspace: Workspace, path: str, text: str) -> None:
    target = workspace.root / path
    for folder in reversed(target.relative_to(workspace.root).parents[:-1]):
        io.mkdir(workspace.root / folder)
    try:
        fd = io.open_file(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    except FileExistsError as error:
        raise IdExists("this file exists", path=path, hint="choose another id") from error
    try:
        io.write_all(fd, text.encode(), path)
        io.fsync(fd, path)
    finally:
        os.close(fd)
