"""``admin schema``: write the schemas by which editors complete and check memory files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from memfs.admin.format import EDITOR_FOLDER
from memfs.dataclass import dataclass
from memfs.doors.cli.command import verb
from memfs.doors.cli.output import Text, count

if TYPE_CHECKING:
    from memfs.workspace import Workspace


@dataclass(frozen=True, slots=True)
class SchemaExport:
    """The schemas that were written.

    Attributes:
        folder: where they are.
        files: their names.
    """

    folder: Path
    files: tuple[str, ...]


def _text(done: SchemaExport) -> Text:
    yield f"Wrote {count(len(done.files), 'file')} into {done.folder}"


@verb("schema", text=_text)
@click.argument("folder", required=False, metavar="[FOLDER]", type=click.Path(file_okay=False, path_type=Path))
def schema(workspace: Workspace, folder: Path | None) -> SchemaExport:
    """Write the JSON Schemas of all files of the workspace, those of its own kinds included, into FOLDER.

    Without FOLDER they go to ContextMemory/.schemas/, where the editor settings in the documentation look for them; git
    leaves that folder out. memfs itself validates by what it brings along, never by these copies.

    Examples:
        memfs admin schema
        memfs admin schema ~/schemas
    """
    from memfs.admin.layout import export_schemas

    place = (folder or workspace.root / EDITOR_FOLDER).resolve()
    names = export_schemas(workspace.parts.codec.schemas, place, ignored=folder is None)
    return SchemaExport(place, tuple(names))
