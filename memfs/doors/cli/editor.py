"""Let a person write an item in their own editor: what is wrong with it is reported, and the text is never lost."""

from __future__ import annotations

import json
import os
import re
from typing import TYPE_CHECKING

import click

from memfs.admin.store_builder import EDITOR_FOLDER
from memfs.dataclass import dataclass
from memfs.doors.cli.command import remark
from memfs.doors.cli.options import AT_ONCE, allow_in
from memfs.doors.cli.output import is_interactive
from memfs.errors import ContentError, IdExists, MemfsError, NotRegularFile, StorageIO, StorageUnavailable
from memfs.format.secrets import refuse_file, refuse_text
from memfs.model import Problem
from memfs.model.ids import check_id, new_id
from memfs.model.kinds import ITEM_LIMIT
from memfs.model.time import utc_now
from memfs.resources import template_text

if TYPE_CHECKING:
    from memfs.model import Kind
    from memfs.workspace import Workspace

_SCHEMA_LINE = re.compile(r"\A(# yaml-language-server: \$schema=)\S*?([^/\s]+\n)")
_TITLE = re.compile(r"^title:.*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class EditedFile:
    """What an editor left: the file, whether it is another than before, and what is wrong with it."""

    path: str
    changed: bool
    problems: tuple[Problem, ...] = ()


def edit_new(workspace: Workspace, kind: Kind, title: str | None, item_id: str | None, allow_secret: str) -> EditedFile:
    """Let a person fill in the template of a kind; one that is left as it was is taken away again.

    Raises:
        SecretDetected, IdInvalid, IdExists: the title or the id cannot be.
        StorageIO: there is no editor, or it failed.
    """
    if not allow_secret:
        refuse_text(f"{title or ''}\n{item_id or ''}", "title")
    chosen = check_id(item_id or new_id(title or kind.name))
    month = f"/{utc_now():%Y-%m}" if kind.dated else ""
    path = f"ContextMemory/{kind.folder}{month}/{chosen}.yaml"
    if workspace.store.locate(chosen) or workspace.parts.tree.entry(path) is not None:
        raise IdExists(f"the id {chosen!r} is taken", hint=f"choose another, or 'memfs update {chosen} --edit'")
    _require_editor("give a text, or set EDITOR")
    text = _filled(kind, path, title, schemas=(workspace.root / EDITOR_FOLDER).is_dir()).encode()
    workspace.parts.tree.write(path, text)
    try:
        return edit_file(workspace, path, allow_secret)
    finally:
        if _read(workspace, path) == text:
            workspace.parts.tree.remove(path)
            remark("the template was left as it was")
        workspace.store.refresh([path])


def edit_file(workspace: Workspace, path: str, allow_secret: str) -> EditedFile:
    """Let a person edit the file of an item; what is wrong stays in it, and recall uses the last good version.

    Raises:
        StorageUnavailable: it is in the secondary location.
        StorageIO: there is no editor, or it failed.
    """
    if workspace.parts.durability(path) == "fallback":
        hint = "edit it once 'memfs status' says that the disk takes writes again"
        raise StorageUnavailable("this item is in the secondary location for now", path=path, hint=hint)
    _require_editor("set EDITOR, or change the file directly", path)
    before = _read(workspace, path)
    try:
        click.edit(filename=str(workspace.root / path))
    except click.ClickException as error:
        raise StorageIO(error.format_message(), hint="set VISUAL or EDITOR to an editor that works") from error
    if (after := _read(workspace, path)) == before and after:
        return EditedFile(path, changed=False)
    errors = _wrong(workspace, path, allow_secret)
    workspace.store.refresh([path])
    if errors:
        remark(f"your text is kept in {path}; correct it there, or open it again with --edit")
    elif workspace.settings.history.commit in AT_ONCE:
        workspace.store.flush()
    return EditedFile(path, changed=True, problems=tuple(Problem.of(error, path) for error in errors))


def _require_editor(hint: str, path: str | None = None) -> None:
    if not (is_interactive() or os.environ.get("VISUAL") or os.environ.get("EDITOR")):
        raise StorageIO("there is no terminal to edit on", path=path, hint=hint)


def _wrong(workspace: Workspace, path: str, allow_secret: str) -> list[MemfsError]:
    """Everything that is wrong with the file as it is now, once the reason for a secret in it was written down."""
    try:
        allow_in(workspace, [path], allow_secret)
        data = workspace.parts.tree.read(path, ITEM_LIMIT).data
        errors: list[MemfsError] = list(workspace.parts.codec.errors(data, path))
        try:
            refuse_file(data, path)
        except ContentError as error:
            errors.append(error)
        return errors
    except FileNotFoundError:
        hint = f"the editor removed it; 'git checkout HEAD -- {path}' brings back what was committed"
        return [StorageIO("the file is gone", path=path, hint=hint)]
    except MemfsError as error:
        return [error]


def _read(workspace: Workspace, path: str) -> bytes:
    try:
        return workspace.parts.tree.read(path, ITEM_LIMIT).data
    except (FileNotFoundError, ContentError, NotRegularFile):  # the check reports what is wrong with it
        return b""


def _filled(kind: Kind, path: str, title: str | None, *, schemas: bool) -> str:
    """The template of a kind, with the title; it names the schema only where the schemas are in the workspace."""
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
