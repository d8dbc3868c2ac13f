"""Let a person write an item in their own editor: what is wrong with it is told, and the text is never thrown away."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

from memfs.admin.format import EDITOR_FOLDER
from memfs.dataclass import dataclass
from memfs.doors.cli.command import remark, wants_json
from memfs.doors.cli.options import AT_ONCE, allow_in
from memfs.doors.cli.output import error_notes, is_interactive, write_error
from memfs.errors import ContentError, IdExists, MemfsError, NotRegularFile, StorageIO, StorageUnavailable
from memfs.format.secrets import refuse_file, refuse_text
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
class FileFault:
    """What is wrong with a file that was edited.

    Attributes:
        path: the file.
        line: where in it.
        code: which error it is.
        field: the field that it is about.
        message: what is wrong.
        hint: what to do.
    """

    path: str | None
    line: int | None
    code: str
    field: str | None
    message: str
    hint: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class EditedFile:
    """What an editor left: the id, the file, whether it is another than before, and the errors in it."""

    id: str
    path: str
    changed: bool
    errors: tuple[MemfsError, ...] = ()
    overtaken: bool = False

    def faults(self) -> tuple[FileFault, ...]:
        """The errors, for programs."""
        return tuple(FileFault(one.path, one.line, one.code, one.field, one.message, one.hint) for one in self.errors)

    def tell(self) -> None:
        """Remark the errors, for people, and where the text is."""
        if self.overtaken:
            remark(f"{self.path} was written by somebody else while you edited it, and what you saved stands")
            remark(f"'memfs log {self.id}' and 'memfs restore --displaced' have what it was")
        if not (is_interactive() or wants_json()):  # there they were named before the question
            for text, hint in (row for error in self.errors for row in error_notes(error)):
                remark(text, hint)
        if self.errors:
            remark(f"your text is kept in {self.path}; correct it there or with 'memfs update {self.id} --edit'")


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
        errors = _edited(workspace, path, allow_secret)
    except click.ClickException as error:
        left = _read(workspace, path) != text
        if not left:
            workspace.parts.tree.remove(path)
        workspace.store.refresh([path])
        hint = f"what you wrote is in {path}" if left else "the template was taken away again"
        raise StorageIO(error.format_message(), hint=hint) from error
    if _read(workspace, path) == text:
        workspace.parts.tree.remove(path)
        workspace.store.refresh([path])
        return EditedFile(id=chosen, path=path, changed=False)
    _take_in(workspace, path, errors)
    return EditedFile(id=chosen, path=path, changed=True, errors=tuple(errors))


def edit_file(workspace: Workspace, item_id: str, path: str, allow_secret: str) -> EditedFile:
    """Let a person edit the file of an item; what is wrong stays in it, and recall uses the last good version.

    Raises:
        StorageUnavailable: it lies in the secondary location.
        StorageIO: there is no editor.
    """
    if workspace.parts.durability(path) == "fallback":
        hint = "edit it once 'memfs status' says that the disk takes writes again"
        raise StorageUnavailable("this item lies in the secondary location for now", path=path, hint=hint)
    _require_editor("set EDITOR, or change the file directly", path)
    before, written = _read(workspace, path), _written(workspace, path)
    errors = _edited(workspace, path, allow_secret)
    after, meanwhile = _read(workspace, path), _written(workspace, path)
    changed = after != before
    if changed:
        _take_in(workspace, path, errors)
    overtaken = changed and meanwhile not in (written, after)
    return EditedFile(id=item_id, path=path, changed=changed, errors=tuple(errors), overtaken=overtaken)


def _require_editor(hint: str, path: str | None = None) -> None:
    if not (is_interactive() or os.environ.get("VISUAL") or os.environ.get("EDITOR")):
        raise StorageIO("there is no terminal to edit on", path=path, hint=hint)


def _edited(workspace: Workspace, path: str, allow_secret: str) -> list[MemfsError]:
    """Let the person edit, again and again if they like; return what is wrong in the end."""
    while True:
        click.edit(filename=str(workspace.root / path))
        errors = _wrong(workspace, path, allow_secret)
        if not errors or not is_interactive():
            return errors
        for error in errors:
            write_error(error)
        try:
            if not click.confirm("Edit again?", default=True, err=True):
                return errors
        except click.Abort:
            return errors


def _take_in(workspace: Workspace, path: str, errors: Iterable[MemfsError]) -> None:
    workspace.store.refresh([path])
    if not errors and workspace.settings.history.commit in AT_ONCE:
        workspace.store.flush()


def _wrong(workspace: Workspace, path: str, allow_secret: str) -> list[MemfsError]:
    """Everything that is wrong with the file as it is now, once the reason for a secret in it was written down."""
    try:
        allow_in(workspace, [path], allow_secret)
        data = workspace.parts.tree.read(path, ITEM_LIMIT).data
        errors = list(workspace.parts.codec.errors(data, path))
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


def _written(workspace: Workspace, path: str) -> bytes | None:
    """What a file holds by the last write of memfs or by the last commit, whatever an editor made of it since."""
    for operation in reversed(workspace.parts.journal.operations()):
        for change in operation.changes:
            if change.path == path:
                return change.data
    blob = workspace.parts.repository.head_blob(path)
    return workspace.parts.repository.blob(blob) if blob else None


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
