"""``schema``: write the schemas by which editors complete and check memory files."""

from __future__ import annotations

from pathlib import Path

import click

from memfs.admin.format import EDITOR_FOLDER
from memfs.doors.cli.command import opened, verb
from memfs.doors.cli.output import clean, count, print_json, print_raw


@verb("schema", example="memfs schema export\nmemfs schema export ~/schemas")
@click.argument("action", type=click.Choice(["export"]))
@click.argument("folder", required=False, metavar="[FOLDER]", type=click.Path(file_okay=False, path_type=Path))
@click.pass_context
def schema(ctx: click.Context, action: str, folder: Path | None, as_json: bool) -> None:
    """Write the schemas of all files of the workspace, those of its own kinds included, into FOLDER.

    Without FOLDER they go to ContextMemory/.schemas/, where the editor settings in the documentation look for them; git
    leaves that folder out. memfs itself validates by what it brings along, never by these copies.
    """
    del action  # there is one so far
    from memfs.admin.layout import export_schemas

    with opened(ctx) as workspace:
        place = (folder or workspace.root / EDITOR_FOLDER).resolve()
        names = export_schemas(workspace.parts.codec.schemas, place, ignored=folder is None)
    if as_json:
        print_json({"folder": str(place), "files": names})
    else:
        print_raw(f"Wrote {count(len(names), 'file')} into {clean(str(place))}")
